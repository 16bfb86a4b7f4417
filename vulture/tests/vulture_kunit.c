// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of vulture's arithmetic: Algorithms 1 to 6. "J" below is the paper's jiffy of 4 ms.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../policy.h"
#include "../wire.h"

#define J 4000

static const struct piv_params paper_piv = {
	.tick_us = J,
	.psi_us = 5 * J,
	.cons_low_us = 1 * J,
	.cons_high_us = 2 * J,
	.aggr_low_us = 3 * J,
	.aggr_high_us = 5 * J,
	.pairing = PIV_PAIR_EACH,
};

static const struct policy_params paper_policy = {
	.alpha_permille = 875,
	.increase_segs = 1,
	.positive_test = true,
	.goals = true,
};

/* Algorithm 3: classes */

struct class_row {
	const char *name;
	s32 piv_us;
	enum piv_class conservative, aggressive;
};

/* Expected: Algorithm 3 as printed, cLow 1, cHigh 2, aLow 3, aHigh 5 jiffies. */
static const struct class_row class_rows[] = {
	{ "nothing", 0, PIV_LOW, PIV_LOW },
	{ "below a jiffy", J - 1, PIV_LOW, PIV_LOW },
	{ "cLow", J, PIV_MIDDLE, PIV_LOW },
	{ "-cLow", -J, PIV_MIDDLE, PIV_LOW },
	{ "below cHigh", 2 * J - 1, PIV_MIDDLE, PIV_LOW },
	{ "cHigh", 2 * J, PIV_HIGH, PIV_LOW },
	{ "-cHigh", -2 * J, PIV_HIGH, PIV_LOW },
	{ "aLow", 3 * J, PIV_HIGH, PIV_LOW },
	{ "above aLow", 4 * J, PIV_HIGH, PIV_MIDDLE },
	{ "-above aLow", -4 * J, PIV_HIGH, PIV_MIDDLE },
	{ "aHigh", 5 * J, PIV_HIGH, PIV_HIGH },
	{ "-aHigh", -5 * J, PIV_HIGH, PIV_HIGH },
	{ "largest", S32_MAX, PIV_HIGH, PIV_HIGH },
	{ "least", S32_MIN, PIV_HIGH, PIV_HIGH },
};

static void class_describe(const struct class_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(class, class_rows, class_describe);

static void classes(struct kunit *test)
{
	const struct class_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, row->conservative,
			piv_classify(&paper_piv, PIV_CONSERVATIVE, row->piv_us));
	KUNIT_EXPECT_EQ(test, row->aggressive,
			piv_classify(&paper_piv, PIV_AGGRESSIVE, row->piv_us));
}

/* Algorithm 1: a train of packets */

struct train_row {
	const char *name;
	enum piv_pairing pairing;
	u32 tick_us;
	u32 packets, each;		/* number of arrivals; packets in each */
	u32 sent_us, arrived_us;	/* distance of the arrivals by either clock */
	s64 start_us;			/* begin of both clocks */
	u32 n, positive, negative;	/* expected variations */
	s64 sum_us;
};

/*
 * Expected, for pairs 20 ms apart. EACH: each packet but those of the first 20 ms is
 * the later one of a pair. LITERAL: as many packets as have filled the queue form a pair,
 * and then it fills again. Growth of 10 % makes 22 ms of 20, so each variation is 2 ms
 * (the paper's Figure 7: 8 Mbit/s where 7 are free).
 */
static const struct train_row train_rows[] = {
	{ "equal intervals", PIV_PAIR_EACH, 1, 100, 1, 2000, 2000, 0, 90, 0, 0, 0 },
	{ "queue grows by 10 %", PIV_PAIR_EACH, 1, 100, 1, 2000, 2200, 0, 90, 90, 0, 90 * 2000 },
	{ "queue drains by 10 %", PIV_PAIR_EACH, 1, 100, 1, 2000, 1800, 0, 90, 0, 90, -90 * 2000 },
	{ "as printed", PIV_PAIR_LITERAL, 1, 100, 1, 2000, 2200, 0, 50, 50, 0, 50 * 2000 },
	{ "aggregates count for their packets", PIV_PAIR_EACH, 1, 10, 4, 20000, 30000, 0,
	  36, 36, 0, 36 * 10000 },
	{ "below PSI there is no pair", PIV_PAIR_EACH, 1, 10, 1, 2000, 9000, 0, 0, 0, 0, 0 },
	{ "idle: no pair across the gap", PIV_PAIR_EACH, 1, 3, 1, 5000000, 5000000, 0, 0, 0, 0, 0 },
	{ "4 ms clocks, 20 ms apart", PIV_PAIR_EACH, J, 11, 1, 20000, 24000, 0, 10, 10, 0, 10 * J },
	{ "less than a tick is nothing", PIV_PAIR_EACH, J, 6, 1, 20000, 20500, 0, 5, 0, 0, 0 },
	{ "clocks wrap", PIV_PAIR_EACH, 1, 100, 1, 2000, 2200, 0xffff8000LL, 90, 90, 0, 90 * 2000 },
	{ "clocks are negative", PIV_PAIR_EACH, J, 11, 1, 20000, 24000, -100 * J, 10, 10, 0, 10 * J },
	{ "more than the queue holds", PIV_PAIR_EACH, 1, 400, 1, 100, 100, 0, 200, 0, 0, 0 },
};

static void train_describe(const struct train_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(train, train_rows, train_describe);

static void trains(struct kunit *test)
{
	const struct train_row *row = test->param_value;
	struct piv_params p = paper_piv;
	struct piv_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct piv_set set = {};
	s64 sent_us = row->start_us, arrived_us = row->start_us;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	p.tick_us = row->tick_us;
	p.pairing = row->pairing;
	for (i = 0; i < row->packets; i++) {
		piv_on_data(q, &set, &p, sent_us, arrived_us, row->each);
		sent_us += row->sent_us;
		arrived_us += row->arrived_us;
	}
	KUNIT_EXPECT_EQ(test, row->n, set.n);
	KUNIT_EXPECT_EQ(test, row->positive, set.positive);
	KUNIT_EXPECT_EQ(test, row->negative, set.negative);
	KUNIT_EXPECT_EQ(test, row->sum_us, set.sum_us);
	KUNIT_EXPECT_EQ(test, set.n, set.positive + set.negative + set.zero);
}

/* A burst of four packets every 20 ms through a bottleneck of 1.2 ms a packet: the n-th
 * is paired with the n-th of the burst before, and all variations are 0.
 */
static void bursts_meet_in_order(struct kunit *test)
{
	struct piv_params p = paper_piv;
	struct piv_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct piv_set set = {};
	u32 burst, i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	p.tick_us = 1;
	for (burst = 0; burst < 10; burst++)
		for (i = 0; i < 4; i++)
			piv_on_data(q, &set, &p, burst * 20000, burst * 20000 + i * 1200, 1);
	KUNIT_EXPECT_EQ(test, 36U, set.n);
	KUNIT_EXPECT_EQ(test, 36U, set.zero);
}

/* Algorithms 2 to 4: mode and policy of a round */

struct round_row {
	const char *name;
	u32 n, positive;
	s64 sum_us;
	u32 high, low;		/* of n, in the mode expected */
	u32 rwnd, thresh;
	bool positive_test;
	enum piv_mode mode;
	enum rwnd_policy policy;
};

static const struct round_row round_rows[] = {
	{ "Figures 3 and 6: 35 % positive, sum 0 or less", 34, 12, -3 * J, 0, 34, 10, 20, true,
	  PIV_AGGRESSIVE, RWND_DOUBLE },
	{ "Figure 6: a sum of 3 already calls for care", 34, 12, 3 * J, 0, 34, 30, 20, true,
	  PIV_CONSERVATIVE, RWND_INCREASE },
	{ "Figures 4 and 7: 73 % positive, sum 41", 68, 50, 41 * J, 60, 8, 30, 20, true,
	  PIV_CONSERVATIVE, RWND_HALVE },
	{ "Figure 5: more than half are positive", 68, 35, -1, 30, 30, 30, 20, true,
	  PIV_CONSERVATIVE, RWND_FIX },
	{ "half of them is not more than half", 68, 34, 0, 0, 68, 30, 30, true,
	  PIV_AGGRESSIVE, RWND_INCREASE },
	{ "Figure 2: without that test always careful", 34, 0, -9 * J, 0, 34, 10, 20, false,
	  PIV_CONSERVATIVE, RWND_DOUBLE },
	{ "7/8 is not more than 7/8", 8, 0, 0, 7, 1, 10, 20, true, PIV_AGGRESSIVE, RWND_FIX },
	{ "8 of 9 is", 9, 0, 0, 8, 1, 10, 20, true, PIV_AGGRESSIVE, RWND_HALVE },
	{ "8 of 9 low", 9, 0, 0, 1, 8, 10, 20, true, PIV_AGGRESSIVE, RWND_DOUBLE },
	{ "one variation decides alone", 1, 1, 1, 0, 1, 2, 1, true, PIV_CONSERVATIVE, RWND_INCREASE },
};

static void round_describe(const struct round_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(round, round_rows, round_describe);

static void rounds(struct kunit *test)
{
	const struct round_row *row = test->param_value;
	struct piv_set set = {
		.n = row->n,
		.positive = row->positive,
		.sum_us = row->sum_us,
	};

	set.by[row->mode][PIV_HIGH] = row->high;
	set.by[row->mode][PIV_LOW] = row->low;
	KUNIT_EXPECT_EQ(test, row->mode, piv_mode(&set, row->positive_test));
	KUNIT_EXPECT_EQ(test, row->policy,
			policy_make(&set, row->mode, paper_policy.alpha_permille, row->rwnd,
				    row->thresh));
}

/* Algorithm 5: a policy carried out over a window's worth of ACKs */

struct carry_row {
	const char *name;
	enum rwnd_policy policy;
	u32 bytes, thresh, used;	/* before, segments of 1000 bytes */
	bool goals, may_grow;
	u32 acks;			/* of two segments each */
	u32 after, thresh_after;	/* expected */
};

static const struct carry_row carry_rows[] = {
	{ "fix", RWND_FIX, 40, 60, 40, true, true, 40, 40, 60 },
	{ "increase, once", RWND_INCREASE, 40, 30, 40, true, true, 40, 41, 30 },
	{ "double", RWND_DOUBLE, 20, 90, 20, true, true, 40, 40, 90 },
	{ "double, half way", RWND_DOUBLE, 20, 90, 20, true, true, 5, 30, 90 },
	{ "double up to the threshold", RWND_DOUBLE, 20, 33, 20, true, true, 40, 33, 33 },
	{ "double as printed ends at the threshold", RWND_DOUBLE, 20, 90, 20, false, true, 40, 90, 90 },
	{ "halve", RWND_HALVE, 40, 90, 40, true, true, 40, 20, 40 },
	{ "halve, half way", RWND_HALVE, 40, 90, 40, true, true, 5, 30, 40 },
	{ "halve as printed ends at the floor", RWND_HALVE, 40, 90, 40, false, true, 40, 2, 40 },
	{ "halve what is used", RWND_HALVE, 40, 90, 20, true, true, 40, 10, 20 },
	{ "the floor is two segments", RWND_HALVE, 3, 90, 3, true, true, 9, 2, 3 },
	{ "no growth that nobody uses", RWND_DOUBLE, 20, 90, 20, true, false, 40, 20, 90 },
	{ "no step that nobody uses", RWND_INCREASE, 20, 9, 20, true, false, 40, 20, 9 },
};

static void carry_describe(const struct carry_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(carry, carry_rows, carry_describe);

static void policies_carried_out(struct kunit *test)
{
	const struct carry_row *row = test->param_value;
	struct policy_params p = paper_policy;
	struct rwnd w = {
		.bytes = row->bytes * 1000,
		.thresh_bytes = row->thresh * 1000,
	};
	u32 i;

	p.goals = row->goals;
	rwnd_set_policy(&w, row->policy, row->used * 1000, 2000, &p);
	for (i = 0; i < row->acks; i++) {
		u32 before = w.bytes;

		rwnd_on_ack(&w, 0, 1000, 2000, row->may_grow);
		KUNIT_EXPECT_EQ(test, before, w.bytes);	/* a duplicate ACK changes nothing */
		rwnd_on_ack(&w, 2000, 1000, 2000, row->may_grow);
	}
	KUNIT_EXPECT_EQ(test, row->after * 1000, w.bytes);
	KUNIT_EXPECT_EQ(test, row->thresh_after * 1000, w.thresh_bytes);
}

/* Algorithm 6 */

static void cwnd_counts_a_window(struct kunit *test)
{
	struct cwnd_est *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	u32 round, i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	/* The first window of 10 segments echoes none of our ACKs. */
	for (i = 0; i < 10; i++) {
		cwnd_on_data(e, 99, 1000);
		if (i % 2)
			cwnd_on_ack(e, 100 + i, 2000);
	}
	KUNIT_EXPECT_EQ(test, 10000U, cwnd_est_bytes(e));
	/* Each ACK is answered by as much data: nothing changes. */
	for (round = 1; round < 5; round++)
		for (i = 0; i < 10; i++) {
			cwnd_on_data(e, 100 * round + (i | 1), 1000);
			if (i % 2)
				cwnd_on_ack(e, 100 * (round + 1) + i, 2000);
		}
	KUNIT_EXPECT_EQ(test, 10000U, cwnd_est_bytes(e));
}

static void cwnd_follows_slow_start(struct kunit *test)
{
	struct cwnd_est *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	for (i = 0; i < 10; i++)
		cwnd_on_data(e, 99, 1000);
	for (i = 0; i < 5; i++)
		cwnd_on_ack(e, 100 + i, 2000);
	/* Each ACK is answered by twice as much data. */
	for (i = 0; i < 20; i++)
		cwnd_on_data(e, 100 + i / 4, 1000);
	KUNIT_EXPECT_EQ(test, 20000U, cwnd_est_bytes(e));
}

static void cwnd_falls_with_the_sender(struct kunit *test)
{
	struct cwnd_est *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	for (i = 0; i < 10; i++)
		cwnd_on_data(e, 99, 1000);
	for (i = 0; i < 5; i++)
		cwnd_on_ack(e, 100 + i, 2000);
	/* The sender answers only the last ACK: no data came for the others. */
	cwnd_on_data(e, 104, 1000);
	KUNIT_EXPECT_EQ(test, 2000U, cwnd_est_bytes(e));
	KUNIT_EXPECT_EQ(test, 1, e->len);
}

/* Several ACKs in one tick: data that echoes it answers them together, and the
 * estimate is too small only until all of them are answered (section 0.3.5).
 */
static void cwnd_several_acks_in_a_tick(struct kunit *test)
{
	struct cwnd_est *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	for (i = 0; i < 10; i++)
		cwnd_on_data(e, 99, 1000);
	for (i = 0; i < 5; i++)
		cwnd_on_ack(e, 100, 2000);
	KUNIT_EXPECT_EQ(test, 1, e->len);
	for (i = 0; i < 10; i++)
		cwnd_on_data(e, 100, 1000);
	KUNIT_EXPECT_EQ(test, 10000U, cwnd_est_bytes(e));
	KUNIT_EXPECT_EQ(test, 0, e->len);
	for (i = 0; i < 10; i++)
		cwnd_on_data(e, 100, 1000);
	KUNIT_EXPECT_EQ(test, 20000U, cwnd_est_bytes(e));
}

static void cwnd_queue_is_bounded(struct kunit *test)
{
	struct cwnd_est *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	u64 queued = 0;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	for (i = 0; i < 1000; i++)
		cwnd_on_ack(e, i, 1000);
	KUNIT_EXPECT_LE(test, e->len, CWND_ACKS);
	for (i = 0; i < e->len; i++)
		queued += cwnd_ack_at(e, i)->bytes;
	KUNIT_EXPECT_EQ(test, 1000000ULL, queued);
	/* The timestamps wrap. */
	cwnd_on_data(e, 0x7fffffff, 1);
	cwnd_on_ack(e, 0x80000010, 1000);
	cwnd_on_data(e, 0x80000010, 1000);
	KUNIT_EXPECT_EQ(test, 0, e->len);
}

/* Options of a header: which segments may be rewritten */

struct option_row {
	const char *name;
	const char *opt;
	u8 len;
	bool expected;		/* with tsval 0x01020304, tsecr 0x05060708 */
};

#define TS	"\010\012\001\002\003\004\005\006\007\010"
#define NOPS	"\001\001"
#define MD5	"\023\0220123456789abcdef"
#define AO	"\035\020\001\0010123456789ab"

/* Kinds and lengths: RFC 9293, RFC 7323, RFC 2385, RFC 5925. */
static const struct option_row option_rows[] = {
	{ "no options", "", 0, false },
	{ "as Linux sends them", NOPS TS, 12, true },
	{ "timestamps last", NOPS "\005\01201234567\001" TS, 23, true },
	{ "another kind alone", "\005\01201234567", 10, false },
	{ "MD5, then timestamps", NOPS MD5 NOPS TS, 32, false },
	{ "timestamps, then MD5", NOPS TS NOPS MD5, 32, false },
	{ "AO, then timestamps", AO NOPS TS, 28, false },
	{ "timestamps, then AO", NOPS TS AO, 28, false },
	{ "MD5 alone", NOPS MD5, 20, false },
	{ "what follows the end is none", NOPS TS "\000" MD5, 31, true },
	{ "the end comes first", "\000\001" TS, 12, false },
	{ "cut short", NOPS TS, 11, false },
	{ "a kind without a length", NOPS TS "\023", 13, true },
	{ "length 0", "\005\000" TS, 12, false },
	{ "length 1", "\005\001" TS, 12, false },
	{ "timestamps of another length", "\010\010123456", 8, false },
};

static void option_describe(const struct option_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(option, option_rows, option_describe);

static void signed_segments_are_left_alone(struct kunit *test)
{
	const struct option_row *row = test->param_value;
	u32 tsval = 0, tsecr = 0;
	const u8 *opt = (const u8 *)row->opt;
	bool found = wire_timestamps(opt, opt + row->len, &tsval, &tsecr);

	KUNIT_ASSERT_EQ(test, row->expected, found);
	if (!found)
		return;
	KUNIT_EXPECT_EQ(test, 0x01020304U, tsval);
	KUNIT_EXPECT_EQ(test, 0x05060708U, tsecr);
}

/* The peer's clock */

struct tick_row {
	const char *name;
	u32 peer_us;		/* true tick */
	u32 drift_us_s;		/* the path's delay grows by this, us a second */
	u32 expected_us;
};

static const struct tick_row tick_rows[] = {
	{ "1 us", 1, 0, 1 },
	{ "1 ms", 1000, 0, 1000 },
	{ "4 ms", 4000, 0, 4000 },
	{ "10 ms", 10000, 0, 10000 },
	{ "a queue that fills", 1000, 50000, 1000 },
	{ "no tick that is known", 1400, 0, 0 },
};

static void tick_describe(const struct tick_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(tick, tick_rows, tick_describe);

static void ticks_are_learnt(struct kunit *test)
{
	const struct tick_row *row = test->param_value;
	struct piv_tick t = {};
	u32 i, changes = 0;
	s64 first, last;

	for (i = 0; i < 1000; i++) {	/* a packet each 10 ms, 10 s */
		u64 sent_us = i * 10000ULL;
		u64 now_us = 5000000 + sent_us + div_u64(sent_us * row->drift_us_s, 1000000);

		changes += piv_tick_on_data(&t, now_us,
					    0xfffffff0 + (u32)div_u64(sent_us, row->peer_us));
	}
	KUNIT_EXPECT_EQ(test, row->expected_us, t.tick_us);
	KUNIT_EXPECT_EQ(test, row->expected_us ? 1U : 0U, changes);
	if (!row->expected_us)
		return;
	first = piv_tick_sent_us(&t, t.last_tsval);
	last = piv_tick_sent_us(&t, t.last_tsval + 10000000 / row->peer_us);
	KUNIT_EXPECT_EQ(test, 10000000LL, last - first);
}

/* Ticks of about 16 and 50 ms are not among the known ones. They are recognized as coarse within
 * 5 s, and only once.
 */
static void coarse_ticks_are_known(struct kunit *test)
{
	static const u32 peers_us[] = { 15625, 16000, 50000 };
	u32 i, n;

	for (n = 0; n < ARRAY_SIZE(peers_us); n++) {
		struct piv_tick t = {};
		u32 changes = 0;

		for (i = 0; i < 3000; i++) {	/* a packet each 10 ms, 30 s */
			changes += piv_tick_on_data(&t, 5000000 + i * 10000ULL,
						    7 + i * 10000 / peers_us[n]);
			if (i == 500)
				KUNIT_EXPECT_GT(test, t.tick_us, PIV_COARSE_US);
		}
		KUNIT_EXPECT_LE(test, abs((s32)(t.tick_us - peers_us[n])), (s32)peers_us[n] / 64);
		KUNIT_EXPECT_EQ(test, changes, 1U);
	}
}

static struct kunit_case vulture_cases[] = {
	KUNIT_CASE_PARAM(classes, class_gen_params),
	KUNIT_CASE_PARAM(trains, train_gen_params),
	KUNIT_CASE(bursts_meet_in_order),
	KUNIT_CASE_PARAM(rounds, round_gen_params),
	KUNIT_CASE_PARAM(policies_carried_out, carry_gen_params),
	KUNIT_CASE(cwnd_counts_a_window),
	KUNIT_CASE(cwnd_follows_slow_start),
	KUNIT_CASE(cwnd_falls_with_the_sender),
	KUNIT_CASE(cwnd_several_acks_in_a_tick),
	KUNIT_CASE(cwnd_queue_is_bounded),
	KUNIT_CASE_PARAM(signed_segments_are_left_alone, option_gen_params),
	KUNIT_CASE_PARAM(ticks_are_learnt, tick_gen_params),
	KUNIT_CASE(coarse_ticks_are_known),
	{}
};

static struct kunit_suite vulture_suite = {
	.name = "vulture",
	.test_cases = vulture_cases,
};

kunit_test_suite(vulture_suite);

MODULE_DESCRIPTION("KUnit tests of vulture's arithmetic");
MODULE_LICENSE("GPL");
