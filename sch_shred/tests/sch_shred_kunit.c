// SPDX-License-Identifier: GPL-2.0
/*
 * SHRED's arithmetic on the kernel's compiler and word size. Expected values:
 * the equations of section 2.2 worked by hand, the source beside each row;
 * tests/test_shred.py holds the whole parameter range against doubles.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "../hint.h"
#include "../shred.h"

#define AVG(pkts)	((u32)((pkts) << SHRED_CWND_SHIFT))

struct min_th_row {
	const char *name;
	u32 min, max, floor;	/* bytes << Wlog */
	u32 sample_pkts;
	u32 avg_q22;
	u32 expected;
};

static const struct min_th_row min_th_rows[] = {
	{ "ratio 1 is RED (paper: remains at min_th)",
	  30000, 90000, 7500, 10, AVG(10), 30000 },
	{ "ratio 1/2: half way to max_th (Equation 2)",
	  30000, 90000, 7500, 5, AVG(10), 60000 },
	{ "ratio 1/10", 30000, 90000, 7500, 1, AVG(10), 84000 },
	{ "ratio 1/255: near max_th, never above", 30000, 90000, 7500, 1, AVG(255), 89765 },
	{ "ratio 1.3: below min_th", 30000, 90000, 7500, 13, AVG(10), 12000 },
	{ "ratio 2: held at five packets", 30000, 90000, 7500, 20, AVG(10), 7500 },
	{ "ratio 255, largest thresholds: no overflow",
	  1U << 30, U32_MAX, 1U << 20, 255, AVG(1), 1U << 20 },
	{ "largest thresholds, ratio 1/2", 1U << 30, 3U << 30, 1U << 20, 5, AVG(10), 2U << 30 },
};

static void shred_case_desc(const struct min_th_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(min_th, min_th_rows, shred_case_desc);

static void shred_min_th_test(struct kunit *test)
{
	const struct min_th_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, row->expected,
			shred_min_th(row->min, row->max, row->floor, row->sample_pkts,
				     row->avg_q22));
}

/* The decision on a row's packet, worked by hand: threshold t, average queue q, Wlog 0. */
static void shred_decision_test(struct kunit *test)
{
	u64 excess;

	/* ratio 1/2: t = 60000 */
	KUNIT_EXPECT_LT(test, shred_excess(30000, 90000, 59999, 5, AVG(10)), 0LL);
	KUNIT_EXPECT_EQ(test, AVG(10) / 2, shred_excess(30000, 90000, 60000, 5, AVG(10)));
	excess = shred_excess(30000, 90000, 75000, 5, AVG(10));
	KUNIT_EXPECT_EQ(test, 15000ULL * AVG(10) + AVG(10) / 2, excess);
	KUNIT_EXPECT_EQ(test, excess, shred_excess_cap(excess, 7500, 75000, AVG(10)));
	/* q - t = 15000: with max_p 0.1 RED's random number is 0 to 600000; 40 packets reach its end */
	KUNIT_EXPECT_FALSE(test, shred_hit(excess, AVG(10), 0, 39, 600000));
	KUNIT_EXPECT_TRUE(test, shred_hit(excess, AVG(10), 0, 40, 600000));
	/* the same queue with Wlog 4 */
	excess = shred_excess(30000 << 4, 90000 << 4, 75000 << 4, 5, AVG(10));
	KUNIT_EXPECT_FALSE(test, shred_hit(excess, AVG(10), 4, 39, 600000));
	KUNIT_EXPECT_TRUE(test, shred_hit(excess, AVG(10), 4, 40, 600000));
	/* ratio 2: the threshold is the floor, not below */
	excess = shred_excess(30000, 90000, 7500, 20, AVG(10));
	KUNIT_EXPECT_EQ(test, 0ULL, shred_excess_cap(excess, 7500, 7500, AVG(10)));
	/* largest numbers */
	excess = shred_excess(1, U32_MAX, U32_MAX, 255, AVG(255));
	KUNIT_EXPECT_EQ(test, excess, shred_excess_cap(excess, 0, U32_MAX, AVG(255)));
	KUNIT_EXPECT_EQ(test, (u64)(U32_MAX - 1) * AVG(255) + AVG(255) / 2, excess);
	KUNIT_EXPECT_TRUE(test, shred_hit(excess, AVG(255), 0, U32_MAX, U32_MAX - 1));
}

static void shred_slope_stays_test(struct kunit *test)
{
	/* Equation 3: max_p 0.1 over 60000 bytes; a line from 60000 has half the height */
	u32 max_p = U32_MAX / 10;

	KUNIT_EXPECT_EQ(test, max_p, shred_max_p(max_p, 30000, 90000, 30000));
	KUNIT_EXPECT_EQ(test, max_p / 2, shred_max_p(max_p, 30000, 90000, 60000));
	KUNIT_EXPECT_EQ(test, 0U, shred_max_p(max_p, 30000, 90000, 90000));
	/* a lower start makes it higher, at most 1 */
	KUNIT_EXPECT_EQ(test, U32_MAX, shred_max_p(U32_MAX, 30000, 90000, 7500));
}

static void shred_average_test(struct kunit *test)
{
	u32 avg = shred_cwnd_avg(0, 7, SHRED_WEIGHT_DEFAULT);
	int i;

	/* departs from the paper: the first hint is the average */
	KUNIT_EXPECT_EQ(test, AVG(7), avg);
	/* Equation 1 with w = 0.002: 7 + 0.002 (107 - 7) = 7.2 */
	avg = shred_cwnd_avg(avg, 107, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_LE(test, abs((s32)(avg - AVG(72) / 10)), 2);
	/* and back below: 7.2 - 0.002 * 6.2 = 7.1876 */
	avg = shred_cwnd_avg(avg, 1, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_LE(test, abs((s32)(avg - (u32)(((u64)71876 << SHRED_CWND_SHIFT) / 10000))), 3);

	/* it reaches both ends and stays within them */
	for (i = 0; i < 20000; i++)
		avg = shred_cwnd_avg(avg, 255, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_LE(test, avg, AVG(255));
	KUNIT_EXPECT_LE(test, AVG(255) - avg, 300U);
	for (i = 0; i < 20000; i++)
		avg = shred_cwnd_avg(avg, 1, SHRED_WEIGHT_DEFAULT);
	KUNIT_EXPECT_GE(test, avg, AVG(1));
	KUNIT_EXPECT_LE(test, avg - AVG(1), 300U);
}

static void shred_gentle_test(struct kunit *test)
{
	u32 max_p = U32_MAX / 10;

	KUNIT_EXPECT_EQ(test, max_p, shred_gentle_p(max_p, 90000, 90000));
	/* half way to 2 max: 0.1 + 0.9 / 2 = 0.55 */
	KUNIT_EXPECT_LE(test, abs((s64)shred_gentle_p(max_p, 90000, 135000) -
				  (s64)U32_MAX * 55 / 100), 2LL);
	KUNIT_EXPECT_EQ(test, U32_MAX, shred_gentle_p(max_p, 90000, 180000));
	/* drops are spread evenly: p = 1/4 hits at the fourth packet at the latest */
	KUNIT_EXPECT_FALSE(test, shred_gentle_hit(1U << 30, 3, U32_MAX));
	KUNIT_EXPECT_TRUE(test, shred_gentle_hit(1U << 30, 4, U32_MAX));
	KUNIT_EXPECT_TRUE(test, shred_gentle_hit(1U << 30, 1, 1U << 30));
}

static void shred_hint_coding_test(struct kunit *test)
{
	u32 w;

	for (w = 1; w <= 255; w++) {
		u8 tos = shred_hint_write(SHRED_HINT_DSCP, 0x03, w);
		u32 read = shred_hint_read(SHRED_HINT_DSCP, tos);

		KUNIT_EXPECT_EQ_MSG(test, 3, tos & 3, "window %u: ECN was touched", w);
		KUNIT_EXPECT_LE_MSG(test, abs((s32)(read - w)) * 1000, w * 48, "window %u", w);
		KUNIT_EXPECT_EQ(test, w, shred_hint_read(SHRED_HINT_TOS,
							 shred_hint_write(SHRED_HINT_TOS, 0, w)));
	}
	KUNIT_EXPECT_EQ(test, 1, shred_hint_write(SHRED_HINT_TOS, 0, 0));
	KUNIT_EXPECT_EQ(test, 255, shred_hint_write(SHRED_HINT_TOS, 0, 100000));
	KUNIT_EXPECT_EQ(test, 0xb9, shred_hint_write(SHRED_HINT_OFF, 0xb9, 10));
	KUNIT_EXPECT_EQ(test, 0U, shred_hint_read(SHRED_HINT_DSCP, 0x02));
	KUNIT_EXPECT_EQ(test, 0U, shred_hint_read(SHRED_HINT_OFF, 0xff));
	/* the classes of the statistics: 1, 2-3, 4-7, ... 128-255 */
	KUNIT_EXPECT_EQ(test, 0U, shred_hint_class(1));
	KUNIT_EXPECT_EQ(test, 1U, shred_hint_class(3));
	KUNIT_EXPECT_EQ(test, 2U, shred_hint_class(4));
	KUNIT_EXPECT_EQ(test, 6U, shred_hint_class(127));
	KUNIT_EXPECT_EQ(test, 7U, shred_hint_class(255));
}

static struct kunit_case sch_shred_cases[] = {
	KUNIT_CASE_PARAM(shred_min_th_test, min_th_gen_params),
	KUNIT_CASE(shred_decision_test),
	KUNIT_CASE(shred_slope_stays_test),
	KUNIT_CASE(shred_average_test),
	KUNIT_CASE(shred_gentle_test),
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
