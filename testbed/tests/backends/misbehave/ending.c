// SPDX-License-Identifier: GPL-2.0
/*
 * A KUnit suite for the tests of the testbed. It ends as KIND (Kbuild) says:
 * pass, fail, skip or oops.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/string.h>

static void ending_first_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 2, 1 + 1);
}

static void ending_second_test(struct kunit *test)
{
	int *nowhere = NULL;

	if (!strcmp(KIND, "skip"))
		kunit_mark_skipped(test, "on purpose");
	if (!strcmp(KIND, "oops")) {
		OPTIMIZER_HIDE_VAR(nowhere);
		WRITE_ONCE(*nowhere, 1);
	}
	KUNIT_EXPECT_STRNEQ_MSG(test, KIND, "fail", "on purpose");
}

static struct kunit_case ending_cases[] = {
	KUNIT_CASE(ending_first_test),
	KUNIT_CASE(ending_second_test),
	{}
};

static struct kunit_suite ending_suite = {
	.name = "ending",
	.test_cases = ending_cases,
};

kunit_test_suite(ending_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A KUnit suite that ends as told, for the tests of the testbed");
