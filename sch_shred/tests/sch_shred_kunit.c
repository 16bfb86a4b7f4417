// SPDX-License-Identifier: GPL-2.0
/*
 * SHRED's arithmetic as the kernel compiles it, with its word size. Expected
 * values: the equations of section 2.2 calculated by hand, with the source at each
 * row; tests/test_shred.py compares the whole parameter range with doubles.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "../hint.h"
#include "../shred.h"

#define AVG(hint)	((u32)((hint) << SHRED_AVG_SHIFT))

struct threshold_row {
	const char *name;
	u32 min, max, floor;	/* bytes */
	u32 hint;
	u32 avg_q22;
	u32 expected;
};

static const struct threshold_row threshold_rows[] = {
	{ "ratio 1 is RED (paper: remains at min_th)",
	  30000, 90000, 5000, 10, AVG(10), 30000 },
	{ "ratio 1/2: half way to max_th (Equation 2)",
	  30000, 90000, 5000, 5, AVG(10), 60000 },
	{ "ratio 1/10", 30000, 90000, 5000, 1, AVG(10), 84000 },
	{ "ratio 1/255: near max_th, never above", 30000, 90000, 5000, 1, AVG(255), 89765 },
	{ "ratio 1.3: below min_th", 30000, 90000, 5000, 13, AVG(10), 12000 },
	{ "ratio 2: held at five packets", 30000, 90000, 5000, 20, AVG(10), 5000 },
	{ "Equation 2', ratio 2: held at min", 30000, 90000, 30000, 20, AVG(10), 30000 },
	{ "ratio 255, largest thresholds: no overflow",
	  1U << 30, U32_MAX, 1U << 20, 255, AVG(1), 1U << 20 },
	{ "largest thresholds, ratio 1/2", 1U << 30, 3U << 30, 1U << 20, 5, AVG(10), 2U << 30 },
};

static void shred_case_desc(const struct threshold_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(threshold, threshold_rows, shred_case_desc);

static void shred_threshold_test(struct kunit *test)
{
	const struct threshold_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, row->expected,
			shred_threshold(row->min, row->max, row->floor, row->hint, row->avg_q22));
}

static void shred_average_test(struct kunit *test)
{
	u32 avg = shred_hint_avg(0, 7, SHRED_WEIGHT_DEFAULT);
	int i;

	/* departure from the paper: the first hint is the initial average */
	KUNIT_EXPECT_EQ(test, AVG(7), avg);
	/* Equation 1 with w = 0.002: 7 + 0.002 (107 - 7) = 7.2 */
	avg = shred_hint_avg(avg, 107, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_LE(test, abs((s32)(avg - AVG(72) / 10)), 2);
	/* a lower hint: 7.2 - 0.002 * 6.2 = 7.1876 */
	avg = shred_hint_avg(avg, 1, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_LE(test, abs((s32)(avg - (u32)(((u64)71876 << SHRED_AVG_SHIFT) / 10000))), 3);

	/* the average comes near both ends of the range and does not exceed them */
	for (i = 0; i < 20000; i++)
		avg = shred_hint_avg(avg, 255, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_LE(test, avg, AVG(255));
	KUNIT_EXPECT_LE(test, AVG(255) - avg, 300U);
	for (i = 0; i < 20000; i++)
		avg = shred_hint_avg(avg, 1, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_GE(test, avg, AVG(1));
	KUNIT_EXPECT_LE(test, avg - AVG(1), 300U);
}

static void shred_sized_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1500ULL, shred_sized(1000, 1500, 1000));
	KUNIT_EXPECT_EQ(test, 40ULL, shred_sized(1000, 40, 1000));
	KUNIT_EXPECT_EQ(test, 0ULL, shred_sized(U64_MAX, 0, 1000));
	/* the product does not fit into 64 bits */
	KUNIT_EXPECT_EQ(test, 1ULL << 56, shred_sized(1ULL << 50, 1 << 16, 1 << 10));
	KUNIT_EXPECT_EQ(test, U64_MAX, shred_sized(1ULL << 60, 1 << 16, 1 << 10));
}

static void shred_gentle_test(struct kunit *test)
{
	/* max_p 0.1 over 60000 bytes: probability 1 corresponds to 600000 bytes */
	u64 certain = shred_certain(30000, 90000, U32_MAX / 10);

	KUNIT_EXPECT_LE(test, abs((s64)certain - 600000), 1LL);
	/* a packet with the average hint: 0.1 at max, 0.55 half way to 2 max, then 1 */
	KUNIT_EXPECT_EQ(test, 60000ULL, shred_gentle(30000, 90000, certain, 90000));
	KUNIT_EXPECT_LE(test, abs((s64)shred_gentle(30000, 90000, certain, 135000) - 330000), 2LL);
	KUNIT_EXPECT_LE(test, abs((s64)shred_gentle(30000, 90000, certain, 180000) - 600000), 2LL);
	KUNIT_EXPECT_LE(test, abs((s64)shred_gentle(30000, 90000, certain, U32_MAX) - 600000), 2LL);
	/* Equation 3: half the hint, half the probability at max; a threshold at max: 0 there */
	KUNIT_EXPECT_EQ(test, 30000ULL, shred_gentle(60000, 90000, certain, 90000));
	KUNIT_EXPECT_EQ(test, 0ULL, shred_gentle(90000, 90000, certain, 90000));
	/* a lower threshold gives a higher probability, at most 1 */
	certain = shred_certain(30000, 90000, U32_MAX);
	KUNIT_EXPECT_EQ(test, certain, shred_gentle(7500, 90000, certain, 90000));
}

static void shred_idle_test(struct kunit *test)
{
	/* weight 1/512: the half-life is 354 packets; 512 packets leave 1/e */
	KUNIT_EXPECT_EQ(test, 99999ULL, shred_qavg_idle(100000, 9, 0));
	KUNIT_EXPECT_LE(test, abs((s64)shred_qavg_idle(1000000, 9, 512) - 367519), 2LL);
	KUNIT_EXPECT_EQ(test, 0ULL, shred_qavg_idle(~0ULL, 1, 1ULL << 40));
	/* the smallest weight and the longest burst */
	KUNIT_EXPECT_EQ(test, 31U, shred_wlog(1000, 1000, 1U << 24));
	/* burst 190 with min 50000 and avpkt 1000 is 1/512, as with tc's red */
	KUNIT_EXPECT_EQ(test, 9U, shred_wlog(50000, 1000, 190));
	KUNIT_EXPECT_EQ(test, 0U, shred_wlog(50000, 1000, 49));
}

static void shred_hint_coding_test(struct kunit *test)
{
	u32 age, tos, hints = 0;

	for (age = 0; age < 1024 * 1024; age += 1024) {
		u32 hint = 1U << shred_age_class(age);

		tos = shred_hint_write(SHRED_HINT_DSCP, 0x03, hint);
		KUNIT_EXPECT_EQ(test, hint, shred_hint_read(SHRED_HINT_DSCP, tos));
		KUNIT_EXPECT_TRUE(test, hint == 1 || hint << SHRED_AGE_UNIT_LOG <= age);
	}
	for (tos = 0; tos <= 255; tos++) {
		if (!shred_hint_read(SHRED_HINT_DSCP, tos))
			continue;
		hints++;
		KUNIT_EXPECT_EQ_MSG(test, tos & 0x0c, 0x0c, "TOS %u is not in Pool 2", tos);
		KUNIT_EXPECT_EQ(test, tos & 3, shred_hint_clear(SHRED_HINT_DSCP, tos));
	}
	KUNIT_EXPECT_EQ(test, 8U * 4, hints);
	KUNIT_EXPECT_EQ(test, 1, shred_hint_write(SHRED_HINT_TOS, 0, 0));
	KUNIT_EXPECT_EQ(test, 255, shred_hint_write(SHRED_HINT_TOS, 0, 100000));
	KUNIT_EXPECT_EQ(test, 0U, shred_hint_read(SHRED_HINT_OFF, 0xff));
	/* the classes of the statistics: none, 1, 2-3, 4-7, ... 128-255 */
	KUNIT_EXPECT_EQ(test, 0U, shred_hint_class(SHRED_HINT_TOS, 0));
	KUNIT_EXPECT_EQ(test, 1U, shred_hint_class(SHRED_HINT_TOS, 1));
	KUNIT_EXPECT_EQ(test, 2U, shred_hint_class(SHRED_HINT_TOS, 3));
	KUNIT_EXPECT_EQ(test, 3U, shred_hint_class(SHRED_HINT_TOS, 4));
	KUNIT_EXPECT_EQ(test, 8U, shred_hint_class(SHRED_HINT_TOS, 255));
}

static struct kunit_case sch_shred_cases[] = {
	KUNIT_CASE_PARAM(shred_threshold_test, threshold_gen_params),
	KUNIT_CASE(shred_average_test),
	KUNIT_CASE(shred_sized_test),
	KUNIT_CASE(shred_gentle_test),
	KUNIT_CASE(shred_idle_test),
	KUNIT_CASE(shred_hint_coding_test),
	{}
};

static struct kunit_suite sch_shred_suite = {
	.name = "sch_shred",
	.test_cases = sch_shred_cases,
};

kunit_test_suite(sch_shred_suite);

MODULE_DESCRIPTION("KUnit tests of SHRED's arithmetic");
MODULE_LICENSE("GPL");
