// SPDX-License-Identifier: GPL-2.0
/*
 * The edge's age of a flow. Expected values: worked by hand from the
 * definitions in age.h.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "../age.h"

static void age_is_what_was_sent_before_test(struct kunit *test)
{
	struct shred_age age = {};
	u32 now_ms = 0xffffff00;	/* the clock wraps within the test */
	int i;

	KUNIT_EXPECT_EQ(test, 0ULL, shred_age_count(&age, 0, now_ms));		/* SYN */
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, i * 1448ULL,
				shred_age_count(&age, 1448, now_ms + i * 100));
	/* an acknowledgement alone adds nothing */
	KUNIT_EXPECT_EQ(test, 14480ULL, shred_age_count(&age, 0, now_ms + 1000));
	KUNIT_EXPECT_EQ(test, 14480ULL, shred_age_count(&age, 1448, now_ms + 1000));
}

static void age_begins_anew_after_an_idle_second_test(struct kunit *test)
{
	struct shred_age age = {};

	shred_age_count(&age, 100000, 5000);
	KUNIT_EXPECT_EQ(test, 100000ULL, shred_age_count(&age, 500, 6000));
	KUNIT_EXPECT_EQ(test, 0ULL, shred_age_count(&age, 700, 7001));
	KUNIT_EXPECT_EQ(test, 700ULL, shred_age_count(&age, 1, 7002));
}

static void age_passes_two_to_the_32_test(struct kunit *test)
{
	struct shred_age age = {};
	u32 i;

	for (i = 0; i < 70000; i++)
		shred_age_count(&age, 65536, i);
	KUNIT_EXPECT_EQ(test, 70000ULL * 65536, shred_age_count(&age, 0, i));
}

static struct kunit_case shred_hint_cases[] = {
	KUNIT_CASE(age_is_what_was_sent_before_test),
	KUNIT_CASE(age_begins_anew_after_an_idle_second_test),
	KUNIT_CASE(age_passes_two_to_the_32_test),
	{}
};

static struct kunit_suite shred_hint_suite = {
	.name = "shred_hint",
	.test_cases = shred_hint_cases,
};

kunit_test_suite(shred_hint_suite);

MODULE_DESCRIPTION("KUnit tests of the edge's age of a flow");
MODULE_LICENSE("GPL");
