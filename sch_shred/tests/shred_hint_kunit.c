// SPDX-License-Identifier: GPL-2.0
/*
 * The writer's counts of flows and pairs of hosts. Expected values: calculated by hand from the
 * definitions in age.h.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "../age.h"

#define FLOW	2U	/* a flow's tag is even */
#define PAIR	3U

static void age_is_what_was_sent_before_test(struct kunit *test)
{
	struct shred_age ages[SHRED_WAYS] = {};
	u32 now_ms = 0xffffff00;	/* the clock wraps within the test */
	int i;

	KUNIT_EXPECT_EQ(test, 0U, shred_age_count(ages, FLOW, 0, 0, now_ms));	/* SYN */
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, i * 1448U,
				shred_age_count(ages, FLOW, 1448, 0, now_ms + i * 100));
	/* an acknowledgement without payload adds nothing */
	KUNIT_EXPECT_EQ(test, 14480U, shred_age_count(ages, FLOW, 0, 0, now_ms + 1000));
	KUNIT_EXPECT_EQ(test, 14480U, shred_age_count(ages, FLOW, 1448, 0, now_ms + 1000));
}

static void age_begins_anew_after_an_idle_time_test(struct kunit *test)
{
	struct shred_age ages[SHRED_WAYS] = {};

	shred_age_count(ages, FLOW, 100000, 0, 5000);
	KUNIT_EXPECT_EQ(test, 100000U, shred_age_count(ages, FLOW, 500, 0, 6500));
	KUNIT_EXPECT_EQ(test, 0U, shred_age_count(ages, FLOW, 700, 0, 8001));
	KUNIT_EXPECT_EQ(test, 700U, shred_age_count(ages, FLOW, 1, 0, 8002));
	/* the least age that a pair sets for its flows */
	KUNIT_EXPECT_EQ(test, 5000U, shred_age_count(ages, FLOW, 1, 5000, 8002));
	KUNIT_EXPECT_EQ(test, 5001U, shred_age_count(ages, FLOW, 1, 0, 8002));
}

static void debt_falls_all_the_time_test(struct kunit *test)
{
	struct shred_age ages[SHRED_WAYS] = {};

	shred_age_count(ages, PAIR, 100000, 0, 5000);
	KUNIT_EXPECT_EQ(test, 100000U - 64000, shred_age_count(ages, PAIR, 0, 0, 6000));
	KUNIT_EXPECT_EQ(test, 0U, shred_age_count(ages, PAIR, 0, 0, 7000));
}

static void a_full_bucket_has_no_room_test(struct kunit *test)
{
	struct shred_age ages[SHRED_WAYS] = {};
	u32 i;

	for (i = 0; i < SHRED_WAYS; i++)
		shred_age_count(ages, shred_age_tag(2 * i + 2, false), U32_MAX, 0, 1000);
	KUNIT_EXPECT_EQ(test, U32_MAX, shred_age_count(ages, 100, 1, 0, 2500));
	KUNIT_EXPECT_EQ(test, SHRED_AGE_MAX, shred_age_count(ages, FLOW, 1, 0, 2500));
	KUNIT_EXPECT_EQ(test, 0U, shred_age_count(ages, 100, 1, 0, 2501));
}

static struct kunit_case shred_hint_cases[] = {
	KUNIT_CASE(age_is_what_was_sent_before_test),
	KUNIT_CASE(age_begins_anew_after_an_idle_time_test),
	KUNIT_CASE(debt_falls_all_the_time_test),
	KUNIT_CASE(a_full_bucket_has_no_room_test),
	{}
};

static struct kunit_suite shred_hint_suite = {
	.name = "shred_hint",
	.test_cases = shred_hint_cases,
};

kunit_test_suite(shred_hint_suite);

MODULE_DESCRIPTION("KUnit tests of the writer's ages");
MODULE_LICENSE("GPL");
