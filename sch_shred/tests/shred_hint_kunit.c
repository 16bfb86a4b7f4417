// SPDX-License-Identifier: GPL-2.0
/*
 * The edge's window estimate and its policing. Expected values: worked by
 * hand from the definitions in flight.h; tests/test_flight.py drives a whole
 * simulated sender past a router.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "../flight.h"

#define MSS	1448U

static void flight_counts_what_is_not_acknowledged_test(struct kunit *test)
{
	struct shred_flight f = {};
	u32 seq = 0xfffff000;	/* wraps within the test */
	int i;

	KUNIT_EXPECT_TRUE(test, shred_flight_sent(&f, seq, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, 1U, shred_flight_pkts(&f));	/* SYN: one packet */
	shred_flight_acked(&f, seq + 1, 0);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_TRUE(test, shred_flight_sent(&f, seq + 1 + i * MSS, MSS, MSS, 0));
		KUNIT_EXPECT_EQ(test, i + 1U, shred_flight_pkts(&f));
	}
	shred_flight_acked(&f, seq + 1 + 4 * MSS, 0);
	KUNIT_EXPECT_EQ(test, 6U, shred_flight_pkts(&f));
	/* a retransmission is no new data and adds nothing */
	KUNIT_EXPECT_FALSE(test, shred_flight_sent(&f, seq + 1 + 4 * MSS, MSS, MSS, 0));
	KUNIT_EXPECT_EQ(test, 6U, shred_flight_pkts(&f));
	/* an old acknowledgement changes nothing, one beyond all leaves one packet */
	shred_flight_acked(&f, seq + 1, 0);
	KUNIT_EXPECT_EQ(test, 6U, shred_flight_pkts(&f));
	shred_flight_acked(&f, seq + 1 + 20 * MSS, 0);
	KUNIT_EXPECT_EQ(test, 1U, shred_flight_pkts(&f));
}

static void flight_counts_what_the_sender_knew_test(struct kunit *test)
{
	struct shred_flight f = {};
	int i;

	/* the first packets echo nothing that passed here; ACKs pass at ticks 100, 101, ... */
	for (i = 0; i < 10; i++)
		shred_flight_sent(&f, 1000 + i * MSS, MSS, MSS, 99);
	for (i = 0; i < 10; i++)
		shred_flight_acked(&f, 1000 + (i + 1) * MSS, 100 + i);
	/* the eleventh was sent when only the ACK of tick 100 had come: 10 under way */
	shred_flight_sent(&f, 1000 + 10 * MSS, MSS, MSS, 100);
	KUNIT_EXPECT_EQ(test, 10U, shred_flight_pkts(&f));
	/* the twelfth when all had: itself and the eleventh */
	shred_flight_sent(&f, 1000 + 11 * MSS, MSS, MSS, 109);
	KUNIT_EXPECT_EQ(test, 2U, shred_flight_pkts(&f));
}

static void flight_is_unknown_without_acks_test(struct kunit *test)
{
	struct shred_flight f = {};
	u32 seq;

	for (seq = 0; seq <= SHRED_BLIND_BYTES; seq += MSS)
		shred_flight_sent(&f, seq, MSS, MSS, 0);
	KUNIT_EXPECT_EQ(test, 0U, shred_flight_pkts(&f));
	shred_flight_acked(&f, MSS, 0);
	KUNIT_EXPECT_NE(test, 0U, shred_flight_pkts(&f));
}

static void flight_judges_persistent_lies_only_test(struct kunit *test)
{
	struct shred_flight f = {};
	u32 seq = 0;
	int i;

	for (; seq < 20 * MSS; seq += MSS)
		shred_flight_sent(&f, seq, MSS, MSS, 0);
	/* half the window and more is honest: 10 of 20 */
	for (i = 0; i < 3 * SHRED_STRIKES; i++)
		KUNIT_EXPECT_FALSE(test, shred_flight_judge(&f, 10, true));
	/* after a time-out the hint is 1, but nothing of it is new data */
	for (i = 0; i < 3 * SHRED_STRIKES; i++)
		KUNIT_EXPECT_FALSE(test, shred_flight_judge(&f, 1, false));
	/* one honest packet in between and the count starts over */
	for (i = 0; i < 3 * SHRED_STRIKES; i++)
		KUNIT_EXPECT_FALSE(test, shred_flight_judge(&f, i % 8 ? 1 : 20, true));
	/* 32 lies in a row, counted from the last truth */
	KUNIT_EXPECT_FALSE(test, shred_flight_judge(&f, 20, true));
	for (i = 0; i < SHRED_STRIKES; i++)
		KUNIT_EXPECT_EQ(test, i == SHRED_STRIKES - 1, shred_flight_judge(&f, 9, true));
	/* a cheat's honest packet is believed, its lies are not, and 32 truths clear it */
	KUNIT_EXPECT_FALSE(test, shred_flight_judge(&f, 20, true));
	KUNIT_EXPECT_TRUE(test, shred_flight_judge(&f, 9, true));
	for (i = 0; i < SHRED_STRIKES; i++)
		shred_flight_judge(&f, 20, true);
	KUNIT_EXPECT_FALSE(test, shred_flight_judge(&f, 9, true));
}

static struct kunit_case shred_hint_cases[] = {
	KUNIT_CASE(flight_counts_what_is_not_acknowledged_test),
	KUNIT_CASE(flight_counts_what_the_sender_knew_test),
	KUNIT_CASE(flight_is_unknown_without_acks_test),
	KUNIT_CASE(flight_judges_persistent_lies_only_test),
	{}
};

static struct kunit_suite shred_hint_suite = {
	.name = "shred_hint",
	.test_cases = shred_hint_cases,
};

kunit_test_suite(shred_hint_suite);

MODULE_DESCRIPTION("KUnit tests of the edge's window estimate");
MODULE_LICENSE("GPL");
