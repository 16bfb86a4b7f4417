// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of tcp_lbe: the law (include/lbe/path.h) row by row as the kernel compiles
 * it, and what the module does to a socket. The model on the host (model.c) tests the law in
 * a closed loop with a link.
 *
 * Of the tests of all delay-based controls (kunit_flow.h), those of data before init and of
 * get_info apply here. The others check a congestion window, but lbe sends by slots.
 *
 * Expected values are for a path of 10 Mbit/s and 100 ms without noise:
 *
 *	p = 1448 bytes / 1250000 bytes a second = 1158 us	e = 250 us
 *	target 2 p + e = 2566 us		jump 5 p + 2 e = 6290 us
 */
#include <linux/module.h>

#include <lbe/kunit_flow.h>
#include <lbe/path_send.h>

#define NOW_US	(1ULL << 33)	/* 2.4 hours: beyond 32 bits */
#define MU	1250000ULL	/* bytes a second */
#define RTT_US	100000U
#define BASE_US	50000U
#define PKT	1448U
#define TARGET	2566U
#define JUMP	6290U

/* What a path keeps of a flow of ordinary weight */
static const struct lbe_view ordinary = { .weight = LBE_WEIGHT };

static struct lbe_path *new_path(struct kunit *test)
{
	struct lbe_path *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	lbe_path_init(p, NOW_US, PKT, RTT_US);
	return p;
}

static struct lbe_path *known_path(struct kunit *test)
{
	struct lbe_path *p = new_path(test);

	lbe_path_base(p, NOW_US, BASE_US);
	lbe_path_set_mu(p, MU);
	p->heard_us = NOW_US;
	p->now_us = NOW_US;
	return p;
}

static struct lbe_path *cruising(struct kunit *test, u64 rate)
{
	struct lbe_path *p = known_path(test);

	lbe_path_cruise(p, NOW_US, rate, LBE_TRAIN_PASSED);
	return p;
}

/* So many ordinary flows wait for their turn. */
static void let_wait(struct lbe_path *p, u32 flows)
{
	p->waiting = flows;
	p->line_weight = (u64)flows * LBE_WEIGHT;
}

#define EXPECT_NEAR(test, value, expected, error)				\
do {										\
	KUNIT_EXPECT_GE(test, (u64)(value) + (error), (u64)(expected));		\
	KUNIT_EXPECT_LE(test, (u64)(value), (u64)(expected) + (error));		\
} while (0)

/* ---- CRUISE: R <- 1/2 (R + S + mu (qt - q) / (2 RTT)) ------------------------ */

struct cruise_row {
	const char *name;
	u64 rate;
	u32 q_us;	/* it was at the target one tick of 25 ms before */
	u64 expected;
};

static const struct cruise_row cruise_rows[] = {
	{ "at the target it stays",			MU / 2, TARGET, MU / 2 },
	/* S = 625000 - mu / 25; drain 2 mu / 200 */
	{ "1 ms above: what came, and the drain",	MU / 2, TARGET + 1000, 593750 },
	/* S = 625000 + 2.566 mu / 25; drain 2.566 mu / 200 */
	{ "no queue: what was left, and the rise",	MU / 2, 0, 697168 },
	{ "at most 1/128 above the capacity",		MU, 0, MU + MU / 128 },
	{ "at least 1/64 of it",			MU / 64, TARGET + 100000, MU / 64 },
};

static void cruise_desc(const struct cruise_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cruise, cruise_rows, cruise_desc);

static void lbe_cruise_law(struct kunit *test)
{
	const struct cruise_row *row = test->param_value;
	struct lbe_path *p = cruising(test, row->rate);

	lbe_path_cruise_law(p, row->q_us, 25000);
	EXPECT_NEAR(test, p->rate, row->expected, 1);
}

/* ---- other traffic begins ---------------------------------------------------- */

struct watch_row {
	const char *name;
	u32 q_us;
	u32 samples;
	u32 gap_us;
	bool yields;
};

static const struct watch_row watch_rows[] = {
	{ "less than a jump, for long",		TARGET + JUMP - 1, 100, 4000, false },
	{ "a jump, three samples",		TARGET + JUMP, 3, 8000, false },
	{ "a jump, four in 3 ms",		TARGET + JUMP, 4, 1000, false },
	{ "a jump, for 8 packets' time",	TARGET + JUMP, 4, 4000, true },
	{ "two jumps, a sample",		2 * JUMP + 1, 1, 4000, false },
	{ "two jumps, two samples",		2 * JUMP + 1, 2, 100, true },
};

static void watch_desc(const struct watch_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(watch, watch_rows, watch_desc);

static void lbe_yields(struct kunit *test)
{
	const struct watch_row *row = test->param_value;
	struct lbe_path *p = cruising(test, MU / 2);
	u32 i;

	for (i = 0; i < row->samples; i++)
		lbe_path_watch(p, NOW_US + i * row->gap_us, row->q_us, false);
	KUNIT_EXPECT_EQ(test, p->state, row->yields ? LBE_FLOOR : LBE_CRUISE);
	if (row->yields)
		KUNIT_EXPECT_EQ(test, p->reason, LBE_QUEUE_JUMPED);
}

/* The queue of a pulse is no sign of other traffic, but twice a jump is. */
static void lbe_watches_during_a_pulse(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	u32 i;

	for (i = 0; i < 8; i++)
		lbe_path_watch(p, NOW_US + i * 4000, 2 * JUMP, true);
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
	lbe_path_watch(p, NOW_US + 32000, 2 * JUMP + 1, true);
	lbe_path_watch(p, NOW_US + 32100, 2 * JUMP + 1, true);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
}

/* An ECN mark shows the queue of other traffic, whatever the delay is. */
static void lbe_yields_to_marks(struct kunit *test)
{
	struct lbe_path_ack ack = {
		.now_us = NOW_US + RTT_US, .delay_us = BASE_US, .rtt_us = RTT_US,
		.acked_bytes = PKT, .acked_pkts = 1, .marked = true,
	};
	struct lbe_path *p = cruising(test, MU / 2);

	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
	ack.now_us += 1000;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
}

/* ---- the verdict of a train -------------------------------------------------- */

struct train_row {
	const char *name;
	u32 samples;
	u32 growth_q10;	/* of the delay, divided by the time of sending */
	u32 lost_pct;
	u8 state;
	u8 reason;
	u64 rate;
	u32 sent;	/* packets, if fewer than 8 */
	bool more;	/* there was more data */
};

static const struct train_row train_rows[] = {
	{ "idle",			8, 0, 0, LBE_CRUISE, LBE_TRAIN_PASSED, MU - MU / 50 },
	/* (1024 - 300 - 154) / 1024 */
	{ "others send 3/10",		8, 300, 0, LBE_CRUISE, LBE_TRAIN_PASSED, 695801 },
	{ "others send 8/10",		8, 800, 0, LBE_FLOOR, LBE_TRAIN_GREW, 0 },
	{ "a third was lost",		8, 0, 33, LBE_FLOOR, LBE_TRAIN_GREW, 0 },
	{ "one sample",			1, 0, 0, LBE_FLOOR, LBE_TRAIN_LOST, 0 },
	{ "none",			0, 0, 0, LBE_FLOOR, LBE_TRAIN_LOST, 0 },
	{ "data for three packets",	3, 0, 0, LBE_FLOOR, LBE_TRAIN_LOST, 0, 3 },
	{ "late timers: three packets",	3, 0, 0, LBE_FLOOR, LBE_TRAIN_LOST, 0, 3, true },
};

static void train_desc(const struct train_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(train, train_rows, train_desc);

static void probe(struct lbe_path *p, const struct train_row *row)
{
	u32 len_us = lbe_path_train_us(p), i;

	lbe_path_enter(p, NOW_US, LBE_PROBE, LBE_PATH_IDLE);
	lbe_train_start(&p->train, NOW_US, MU, len_us);
	for (i = 0; i < row->samples; i++) {
		u32 sent_us = i * len_us / 8;

		lbe_train_add(&p->train, NOW_US + sent_us, BASE_US + (sent_us * row->growth_q10 >> 10),
			      false);
	}
	p->train.bytes = (row->sent ?: 8) * PKT;
	p->now_us = NOW_US;
	if (row->sent && !row->more)
		lbe_path_ran_out(p);
	p->train.lost_bytes = 8 * PKT * row->lost_pct / 100;
	lbe_path_probe_verdict(p, NOW_US + RTT_US);
}

static void lbe_train_verdict(struct kunit *test)
{
	const struct train_row *row = test->param_value;
	struct lbe_path *p = known_path(test);

	probe(p, row);
	KUNIT_EXPECT_EQ(test, p->state, row->state);
	KUNIT_EXPECT_EQ(test, p->reason, row->reason);
	KUNIT_EXPECT_EQ(test, p->fails, row->state == LBE_FLOOR && (!row->sent || row->more));
	if (row->rate)
		EXPECT_NEAR(test, p->rate, row->rate, MU / 200);
}

/* After two failures: either the link has slowed down to mu / (1 + g), or this is a fair queue. */
static void lbe_second_failure(struct kunit *test)
{
	struct lbe_path *p = known_path(test);

	p->calm_us = 200;
	probe(p, &train_rows[2]);
	KUNIT_EXPECT_FALSE(test, p->inspect);
	probe(p, &train_rows[2]);
	KUNIT_EXPECT_TRUE(test, p->inspect);
	EXPECT_NEAR(test, p->slower, MU * 1024 / 1824, MU / 100);
}

/* The capacity has a least value: a train at half of less would never end, or divide by 0. */
static void lbe_slower_has_a_least(struct kunit *test)
{
	static const struct train_row grew = { "grew", 8, 300 };
	struct lbe_path *p = known_path(test);

	lbe_path_set_mu(p, LBE_PATH_RATE_MIN);
	p->calm_us = 200;
	p->fails = 1;
	p->longer_us = 1;
	probe(p, &grew);
	KUNIT_EXPECT_TRUE(test, p->inspect);
	KUNIT_EXPECT_EQ(test, p->slower, LBE_PATH_RATE_MIN);
}

/* A peer can make a round trip as long as it likes. START then begins at next to nothing, but slots
 * are divided by the rate.
 */
static void lbe_any_round_trip_gives_a_rate(struct kunit *test)
{
	struct lbe_path *p = new_path(test);

	lbe_path_init(p, NOW_US, 36, U32_MAX);
	KUNIT_EXPECT_GT(test, p->rate, 0);
	KUNIT_EXPECT_LE(test, p->rtt_us, LBE_PATH_RTT_MAX_US);
}

/* After a failed return the path sends a 64th of its rate between the end of a train and its
 * verdict: not nothing, if that rate is below 64 bytes a second and the capacity is not known.
 */
static void lbe_any_rate_gives_a_slot(struct kunit *test)
{
	struct lbe_path *p = new_path(test);

	lbe_path_init(p, NOW_US, 36, 8 * USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p->rate, 45);
	p->flows = 1;
	p->fails = 1;
	lbe_path_enter(p, NOW_US, LBE_PROBE, LBE_PATH_IDLE);
	KUNIT_ASSERT_GT(test, lbe_path_send_rate(p), 0);
	KUNIT_EXPECT_EQ(test, lbe_path_burst_pkts(p), 2);
	KUNIT_EXPECT_GT(test, lbe_path_slot_ns(p, PKT, 0), 0);
}

/* The base delay stays in range when the path has become longer than any is. */
static void lbe_base_has_a_limit(struct kunit *test)
{
	struct lbe_path *p = known_path(test);

	p->longer_us = LBE_PATH_RTT_MAX_US;
	lbe_path_longer(p);
	KUNIT_EXPECT_EQ(test, p->base_us, LBE_PATH_RTT_MAX_US);
	KUNIT_EXPECT_EQ(test, p->rtt_us, LBE_PATH_RTT_MAX_US);
}

/* The growth has a limit if the own device delayed a train so that next to nothing was sent. */
static void lbe_growth_has_a_limit(struct kunit *test)
{
	struct lbe_train t = {
		.until_us = 10000, .rate = U32_MAX, .bytes = 1, .throttled = true,
		.n = { 1, 1 }, .delay_us = { 0, 1000000 }, .sent_us = { 0, 1 },
	};
	s32 g;

	KUNIT_EXPECT_TRUE(test, lbe_train_growth(&t, &g));
	KUNIT_EXPECT_EQ(test, g, (1 << 20) - 1024);
}

/* If packets arrived at the rate of the failed train when the path gave way, the link is slower. */
static void lbe_step_is_a_slower_link(struct kunit *test)
{
	struct lbe_path *p = known_path(test);

	p->came = MU * 1024 / 1824;
	probe(p, &train_rows[2]);
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_SLOWER);
	KUNIT_EXPECT_EQ(test, p->mu, MU * 1024 / 1824);
}

/* Only the first train can agree with it: of several, one does by chance. */
static void lbe_step_is_forgotten(struct kunit *test)
{
	struct lbe_path *p = known_path(test);

	p->came = MU / 4;
	probe(p, &train_rows[2]);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	p->mu = MU / 4 * 1824 / 1024;
	probe(p, &train_rows[2]);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
}

/* What arrives in the round trip after the path gave way shows a slower link only if the path used
 * nearly all of the link before.
 */
struct leaving_row {
	const char *name;
	u64 before;
	u64 came;
};

static const struct leaving_row leaving_rows[] = {
	{ "all of the link was used",		MU, MU / 2 },
	{ "four fifths of it",			MU * 4 / 5, MU / 2 },
	{ "six tenths: others were there",	MU * 6 / 10, 0 },
	{ "it comes as fast as it was sent",	MU / 2, 0 },
};

static void leaving_desc(const struct leaving_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(leaving, leaving_rows, leaving_desc);

static void lbe_leaving(struct kunit *test)
{
	const struct leaving_row *row = test->param_value;
	struct lbe_path *p = cruising(test, row->before);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + RTT_US,
		.rtt_us = RTT_US,
		.acked_bytes = MU / 2 / (USEC_PER_SEC / RTT_US),
	};

	p->round_us = NOW_US;
	p->leaving = true;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_FALSE(test, p->leaving);
	EXPECT_NEAR(test, p->came, row->came, MU / 50);
}

/* ---- the verdict of a pulse -------------------------------------------------- */

struct pulse_row {
	const char *name;
	u64 rate;
	u32 growth_q10;
	u32 noise_us;
	u8 state;
};

static const struct pulse_row pulse_rows[] = {
	{ "others send what is left",		MU / 3, 683, 0, LBE_CRUISE },
	{ "and a seventh more: an error",	MU / 3, 830, 0, LBE_CRUISE },
	{ "they fill a queue of their own",	MU / 3, 1024, 0, LBE_FLOOR },
	{ "the same, at a fifth",		MU / 5, 1024, 0, LBE_FLOOR },
	{ "noise may be as much",		MU / 3, 950, 2000, LBE_CRUISE },
};

static void pulse_desc(const struct pulse_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pulse, pulse_rows, pulse_desc);

static void pulse(struct lbe_path *p, u64 rate, u32 growth_q10)
{
	u32 len_us = lbe_path_train_us(p), i;

	lbe_train_start(&p->train, NOW_US, rate, len_us);
	for (i = 0; i < 8; i++) {
		u32 sent_us = i * len_us / 8;

		lbe_train_add(&p->train, NOW_US + sent_us, BASE_US + (sent_us * growth_q10 >> 10), false);
	}
	p->train.bytes = 8 * PKT;
	lbe_path_pulse_verdict(p, NOW_US + RTT_US);
}

static void lbe_pulse_verdict(struct kunit *test)
{
	const struct pulse_row *row = test->param_value;
	struct lbe_path *p = cruising(test, row->rate);
	int i;

	p->noise_us = row->noise_us;
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
		p->rate = row->rate;
		pulse(p, MU, row->growth_q10);
	}
	KUNIT_EXPECT_EQ(test, p->state, row->state);
}

/* Two far measurements in a row change the capacity; three are needed if noise may cause them. */
static void lbe_noise_is_no_capacity(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU);

	pulse(p, MU + MU / 4, 0);
	KUNIT_EXPECT_EQ(test, p->mu, MU);
	pulse(p, MU + MU / 4, 0);
	EXPECT_NEAR(test, p->mu, MU + MU / 4, MU / 100);
	p = cruising(test, MU);
	p->noise_us = 1000;
	pulse(p, MU + MU / 4, 0);
	pulse(p, MU + MU / 4, 0);
	KUNIT_EXPECT_EQ(test, p->mu, MU);
	pulse(p, MU + MU / 4, 0);
	EXPECT_NEAR(test, p->mu, MU + MU / 4, MU / 100);
}

/* ---- the sender's own device ---------------------------------------------------- */

static void lbe_own_device(struct kunit *test)
{
	struct lbe_path *p = known_path(test);
	int i;

	p->state = LBE_CRUISE;
	for (i = 0; i < 100; i++)	/* packets of others wait there, but none of this path */
		KUNIT_EXPECT_FALSE(test, lbe_path_device_busy(p, false, true));
	for (i = 0; i < LBE_LOCAL_MAX; i++)	/* packets of this path stay, but no others wait */
		KUNIT_EXPECT_FALSE(test, lbe_path_device_busy(p, true, false));
	p->now_us += USEC_PER_SEC;
	KUNIT_EXPECT_TRUE(test, lbe_path_device_busy(p, false, true));
	KUNIT_EXPECT_EQ(test, p->heard_us, p->now_us);
	p->state = LBE_FLOOR;
	KUNIT_EXPECT_FALSE(test, lbe_path_device_busy(p, false, true));
	p->state = LBE_CRUISE;
	for (i = 0; i <= LBE_LOCAL_MAX / 2; i++)	/* the device is idle for a while */
		KUNIT_EXPECT_FALSE(test, lbe_path_device_busy(p, false, false));
	KUNIT_EXPECT_FALSE(test, lbe_path_device_busy(p, false, true));
}

/* ---- FLOOR ------------------------------------------------------------------- */

struct rtts_row {
	const char *name;
	u64 mu;
	u32 rtt_us;
	u32 expected;
};

static const struct rtts_row rtts_rows[] = {
	{ "least rate",			LBE_PATH_RATE_MIN, RTT_US, 2 },
	{ "10 packets: no more than 2",	144800, RTT_US, 2 },
	{ "86 packets: 3 doublings",	MU, RTT_US, 5 },
	{ "34 Gbit/s, a second",	U32_MAX, USEC_PER_SEC, 20 },
};

static void rtts_desc(const struct rtts_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rtts, rtts_rows, rtts_desc);

static void lbe_leaves_a_slow_start(struct kunit *test)
{
	const struct rtts_row *row = test->param_value;
	struct lbe_path *p = known_path(test);

	lbe_path_set_mu(p, row->mu);
	p->rtt_us = row->rtt_us;
	KUNIT_EXPECT_EQ(test, lbe_path_slow_start_rtts(p), row->expected);
}

struct pair_row {
	const char *name;
	u64 mu;
	u64 floor_us;	/* time in FLOOR so far */
	u32 fails;
	bool prompt;
	u32 expected;
};

static const struct pair_row pair_rows[] = {
	{ "at first: 1.25 round trips",		MU, 0, 0, false, 125000 },
	{ "a seventh of the time",		MU, 1400000, 0, false, 200000 },
	{ "1/4 % of the capacity",		MU, 3600000000ULL, 0, false, 579200 },
	{ "the same, singles",			MU, 3600000000ULL, 0, true, 289600 },
	{ "two failures: two round trips",	MU, 0, 2, false, 200000 },
	{ "many: 16 round trips",		MU, 0, 1000, false, 1600000 },
	{ "no less often than every 5 s",	1000, 3600000000ULL, 0, false, 5000000 },
};

static void pair_desc(const struct pair_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pair, pair_rows, pair_desc);

static void lbe_pairs(struct kunit *test)
{
	const struct pair_row *row = test->param_value;
	struct lbe_path *p = known_path(test);

	lbe_path_set_mu(p, row->mu);
	lbe_path_yield(p, NOW_US, LBE_QUEUE_JUMPED, 0);
	p->now_us = NOW_US + row->floor_us;
	p->fails = row->fails;
	p->prompt = row->prompt;
	KUNIT_EXPECT_EQ(test, lbe_path_pair_us(p), row->expected);
}

struct idle_row {
	const char *name;
	u32 pairs;
	u32 excess_us;	/* of each above the base */
	u32 fails;
	bool policed;
	bool expected;
	u32 floor_rtts;
};

/* Pairs on the idle path are 200 us above the base: the mean has to be below 200 us + p / 4. */
static const struct idle_row idle_rows[] = {
	{ "one that met nothing",		1, 500, 0, false, true },
	{ "one that met half a packet",		1, 600, 0, false, false },
	{ "two",				2, 1000, 0, false, true },
	{ "after a failure: two",		2, 1000, 1, false, true },
	{ "after two: three",			2, 100, 2, false, false },
	{ "after three: eight as on the idle path", 8, 480, 3, false, true },
	{ "eight behind halves of packets",	8, 700, 3, false, false },
	{ "seven",				7, 100, 3, false, false },
	{ "at a policer after the first",	3, 100, 1, true, false },
	{ "three that met others, before 64 round trips", 3, 2000, 3, false, false, 63 },
	{ "three that met others, after 64 round trips", 3, 2000, 3, false, true, 64 },
	{ "after nine failures: before 512",	3, 2000, 9, false, false, 511 },
	{ "after nine failures: after 512",	3, 2000, 9, false, true, 512 },
	{ "at a policer: any number before 16",	20, 100, 1, true, false, 15 },
	{ "at a policer: after 16",		2, 100, 1, true, true, 16 },
};

static void idle_desc(const struct idle_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(idle, idle_rows, idle_desc);

static void lbe_evidence(struct kunit *test)
{
	const struct idle_row *row = test->param_value;
	struct lbe_path *p = known_path(test);

	p->n = row->pairs;
	p->excess_us = row->pairs * row->excess_us;
	p->idle_us = 200;
	p->fails = row->fails;
	p->since_us = NOW_US;
	p->now_us = NOW_US + (u64)row->floor_rtts * p->rtt_us;
	p->policed_us = row->policed ? p->now_us + 1 : 0;
	KUNIT_EXPECT_EQ(test, lbe_path_looks_idle(p), row->expected);
}

/* All pairs meet the same delay, nine of them in 4.8 s: that of a longer path, of the idle path, or
 * of part of another flow's packets. The second packet of each pair waits for the first.
 */
static void lbe_flat_pairs(struct kunit *test)
{
	static const struct {
		u32 q_us;
		u8 state;
		u32 longer_us;
	} rows[] = {
		{ 0, LBE_PROBE, 0 },
		{ 900, LBE_FLOOR, 0 },
		{ 20000, LBE_PROBE, 20000 },
	};
	int i, pairs;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct lbe_path *p = known_path(test);
		u32 q_us = lbe_path_pkt_us(p) + rows[i].q_us;
		u64 now_us = NOW_US;

		p->fails = 9;
		p->idle_us = 0;
		lbe_path_yield(p, NOW_US, LBE_TRAIN_GREW, 0);
		for (pairs = 0; pairs < 9 && p->state == LBE_FLOOR; pairs++) {
			struct lbe_path_ack ack = {
				.now_us = now_us += 600000, .delay_us = BASE_US + q_us,
				.rtt_us = RTT_US + q_us, .acked_pkts = 2,
				.acked_bytes = 2 * PKT,
			};

			lbe_path_ack(p, &ack);
		}
		KUNIT_EXPECT_EQ(test, p->state, rows[i].state);
		KUNIT_EXPECT_EQ(test, p->longer_us, rows[i].longer_us);
	}
}

/* ---- loss ------------------------------------------------------------------- */

struct loss_row {
	const char *name;
	u32 lost;	/* of the packets of a round trip */
	u32 of;
	u32 rounds;	/* number of such round trips in a row */
	bool policed;	/* a policer is known */
	bool yields;
	bool polices;
	u32 unlost;	/* packets that came through before without a loss */
};

static const struct loss_row loss_rows[] = {
	{ "a tenth, as links lose them",	6, 64, 3, false, false, false },
	{ "a third, as a link or a clock loses them once",	22, 64, 1, false, false, false },
	{ "a third, again",			22, 64, 2, false, true, true },
	{ "a third of few",			8, 24, 3, false, false, false },
	{ "a third of few, again",		8, 24, 4, false, true, true },
	{ "half of very few",			2, 4, 13, false, false, false },
	{ "half of very few, again",		2, 4, 14, false, true, true },
	{ "a third of one more",		8, 25, 2, false, true, true },
	{ "one packet at a policer",		1, 64, 1, true, true, true, 1023 - 63 },
	{ "one of 1024",			1, 64, 1, true, false, true, 1024 },
	{ "another in the next round trip",	1, 64, 2, true, true, true, 1024 },
	{ "two of 1024",			2, 64, 1, true, true, true, 1024 },
	{ "1/20 at a policer",			3, 64, 1, true, true, true, 1024 },
	{ "none at a policer",			0, 64, 3, true, false, true },
};

static void loss_desc(const struct loss_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(loss, loss_rows, loss_desc);

static void lbe_losses(struct kunit *test)
{
	const struct loss_row *row = test->param_value;
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_path_ack ack = {
		.now_us = NOW_US,
		.rtt_us = RTT_US,
		.acked_bytes = (row->of - row->lost) * PKT,
		.lost_bytes = row->lost * PKT,
	};
	u64 known = 64 * PKT * (USEC_PER_SEC / RTT_US);
	u32 i;

	p->mu = known;
	p->round_us = NOW_US;
	p->policed_us = row->policed ? NOW_US + 60 * USEC_PER_SEC : 0;
	p->unlost = (u64)row->unlost * PKT;
	for (i = 0; i < row->rounds; i++) {
		ack.now_us += RTT_US;
		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, row->yields ? LBE_FLOOR : LBE_CRUISE);
	KUNIT_EXPECT_EQ(test, lbe_path_policed(p), row->polices);
	if (row->yields) {
		KUNIT_EXPECT_EQ(test, p->reason, LBE_HEAVY_LOSS);
		KUNIT_EXPECT_EQ(test, p->fails, 1U);
		KUNIT_EXPECT_LT(test, p->mu, known);
		KUNIT_EXPECT_EQ(test, p->policed_us == p->now_us + LBE_LOSSES_US,
				!row->policed || row->lost > 2);
	}
}

/* What was lost before CRUISE began does not end it. */
static void lbe_losses_of_floor(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + RTT_US,
		.rtt_us = RTT_US,
		.acked_bytes = 2 * PKT,
	};

	p->since_us = NOW_US;
	p->round_us = NOW_US;
	p->loss_us = NOW_US - 1;
	p->loss_bytes = 24 * PKT;
	p->loss_lost = 24 * PKT;
	p->lossy = 1;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
}

/* The capacity that a lossy round trip at a known policer shows */
struct policer_row {
	const char *name;
	u32 lost;	/* of 64 packets, which are a round trip at mu */
	u32 span_us;
	u32 fails;
	u32 mu_pkts;	/* afterwards, packets a round trip */
};

static const struct policer_row policer_rows[] = {
	{ "what came through",			16, RTT_US, 0, 48 },
	{ "at least half of it",		60, RTT_US, 0, 32 },
	{ "at the fifth failure",		16, RTT_US, 5, 48 },
	{ "at the seventh: others take the rest", 16, RTT_US, 6, 64 },
	{ "an outage",				16, 3 * RTT_US, 0, 64 },
	{ "more, from a full bucket",		2, RTT_US / 2, 0, 64 },
};

static void policer_desc(const struct policer_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(policer, policer_rows, policer_desc);

static void lbe_learns_at_a_policer(struct kunit *test)
{
	const struct policer_row *row = test->param_value;
	struct lbe_path *p = cruising(test, MU);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + row->span_us,
		.rtt_us = RTT_US,
		.acked_bytes = (64 - row->lost) * PKT,
		.lost_bytes = row->lost * PKT,
	};
	u64 mu = 64 * PKT * (USEC_PER_SEC / RTT_US);

	p->mu = mu;
	p->fails = row->fails;
	p->rtt_us = min_t(u32, p->rtt_us, row->span_us);
	p->policed_us = NOW_US + 60 * USEC_PER_SEC;
	p->round_us = NOW_US;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_HEAVY_LOSS);
	EXPECT_NEAR(test, p->mu, mu / 64 * row->mu_pkts, mu / 500);
}

/* CRUISE that ends by a loss at a policer has failed unless it had 1024 packets and 16 round trips.
 * Then one failure is assumed.
 */
static void lbe_fails_at_a_policer(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU);
	u64 long_us = max_t(u64, 1024 * lbe_path_pkt_us(p), 16 * RTT_US);

	KUNIT_EXPECT_TRUE(test, lbe_path_failed(p, p->since_us + long_us - 1, LBE_HEAVY_LOSS));
	KUNIT_EXPECT_FALSE(test, lbe_path_failed(p, p->since_us + long_us, LBE_HEAVY_LOSS));
	p->rtt_us /= 16;
	long_us = 1024 * lbe_path_pkt_us(p);
	KUNIT_EXPECT_TRUE(test, lbe_path_failed(p, p->since_us + long_us - 1, LBE_HEAVY_LOSS));
	KUNIT_EXPECT_FALSE(test, lbe_path_failed(p, p->since_us + long_us, LBE_HEAVY_LOSS));
	p->fails = 5;
	p->now_us = p->since_us + long_us;
	p->policed_us = p->now_us + 1;
	lbe_path_give_way(p, p->now_us, LBE_HEAVY_LOSS);
	KUNIT_EXPECT_EQ(test, p->fails, 1U);
}

/* START doubles its rate, so that one round trip is enough if more was sent than before. */
struct start_loss_row {
	const char *name;
	u32 sent;	/* packets of the round trip, half of them lost; 64 came through before */
	u32 span_us;
	u32 rounds;
	bool limited;
	bool yields;
};

static const struct start_loss_row start_loss_rows[] = {
	{ "twice as much as before",		128, RTT_US, 1, false, true },
	{ "no more than before: once",		64, RTT_US, 1, false, false },
	{ "no more than before: twice",		64, RTT_US, 2, false, true },
	{ "more, and then data ran out",	128, RTT_US, 1, true, false },
	{ "an outage of three round trips",	512, 4 * RTT_US, 1, false, false },
	{ "another",				512, 4 * RTT_US, 2, false, false },
};

static void start_loss_desc(const struct start_loss_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(start_loss, start_loss_rows, start_loss_desc);

static void lbe_start_loses(struct kunit *test)
{
	const struct start_loss_row *row = test->param_value;
	struct lbe_path *p = new_path(test);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + RTT_US,
		.rtt_us = RTT_US,
		.acked_bytes = 64 * PKT,
	};
	u32 i;

	p->round_us = NOW_US;
	lbe_path_ack(p, &ack);
	ack.limited = row->limited;
	ack.acked_bytes = row->sent / 2 * PKT;
	ack.lost_bytes = row->sent / 2 * PKT;
	for (i = 0; i < row->rounds; i++) {
		ack.now_us += row->span_us;
		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, row->yields ? LBE_FLOOR : LBE_START);
	KUNIT_EXPECT_EQ(test, lbe_path_policed(p), row->yields);
	if (!row->yields)
		KUNIT_EXPECT_EQ(test, p->mu, 0ULL);
}

/* A buffer that START has filled is no policer, which has none. */
static void lbe_start_fills_a_buffer(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + RTT_US,
		.rtt_us = RTT_US,
		.delay_us = BASE_US,
		.acked_bytes = 64 * PKT,
	};

	p->round_us = NOW_US;
	lbe_path_ack(p, &ack);
	ack.now_us += RTT_US;
	ack.delay_us += 100000;
	ack.lost_bytes = 64 * PKT;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_FALSE(test, lbe_path_policed(p));
}

/* The target of a path that has lost one of the latest 256 packets: at most 5 ms or a packet */
static void lbe_target_of_a_path_that_loses(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU);

	KUNIT_EXPECT_EQ(test, p->unlost, 256ULL * PKT);
	lbe_path_set_mu(p, MU / 10);
	KUNIT_EXPECT_EQ(test, lbe_path_target_us(p), 2 * 11584U + 250);
	p->unlost--;
	KUNIT_EXPECT_EQ(test, lbe_path_target_us(p), 11584U + 250);
	lbe_path_set_mu(p, MU / 4);
	KUNIT_EXPECT_EQ(test, lbe_path_target_us(p), 5000U + 250);
	lbe_path_set_mu(p, MU);
	KUNIT_EXPECT_EQ(test, lbe_path_target_us(p), TARGET);
}

/* A packet is lost in CRUISE, after the queue has been as long as this for so long. */
struct lose_row {
	const char *name;
	u32 q_us;
	u32 for_us;
	bool train;
	bool chance;	/* it was seen before that the link loses packets by chance */
	bool yields;
	bool learns;	/* that the link does */
};

static const struct lose_row lose_rows[] = {
	{ "a queue of others",			6000, 100000, false, false, true, false },
	{ "not yet for 100 ms",			6000, 99999, false, false, false, false },
	{ "one that an AQM lets stand",		5000, 1000001, false, false, false, true },
	{ "a pulse has made it",		6000, 100000, true, false, false, false },
	{ "on a link that loses packets",	6000, 100000, false, true, false, false },
	{ "without a queue",			0, 1000001, false, false, false, true },
	{ "too soon after one",			0, 1000000, false, false, false, false },
};

static void lose_desc(const struct lose_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lose, lose_rows, lose_desc);

static void lbe_loses_in_a_queue(struct kunit *test)
{
	const struct lose_row *row = test->param_value;
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + row->for_us,
		.rtt_us = RTT_US,
		.acked_bytes = PKT,
		.lost_bytes = PKT,
	};
	u64 known_us = row->chance ? ack.now_us + 1 : 0;

	lbe_path_learn_queue(p, NOW_US + 25000, row->q_us, 25000);
	p->train.on = row->train;
	p->chance_us = known_us;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->state, row->yields ? LBE_FLOOR : LBE_CRUISE);
	if (row->yields)
		KUNIT_EXPECT_EQ(test, p->reason, LBE_QUEUE_LOST);
	KUNIT_EXPECT_EQ(test, p->chance_us,
			row->learns ? ack.now_us + LBE_LOSSES_US : known_us);
	lbe_path_learn_queue(p, ack.now_us, 0, 25000);
	KUNIT_EXPECT_EQ(test, p->queue, LBE_QUEUE_SHORT);
	KUNIT_EXPECT_EQ(test, p->queue_us, row->q_us > 5000 ? ack.now_us : NOW_US);
}

/* At MU / 8 the path's own queue is longer than an AQM lets stand: its losses are not by chance. */
static void lbe_loses_in_its_own_queue(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 8);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + LBE_SILENCE_US + 1,
		.rtt_us = RTT_US,
		.acked_bytes = PKT,
		.lost_bytes = PKT,
	};

	lbe_path_set_mu(p, MU / 8);
	lbe_path_learn_queue(p, NOW_US, lbe_path_aqm_us(p) + 1, 0);
	KUNIT_EXPECT_EQ(test, p->queue, LBE_QUEUE_OWN);
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->chance_us, 0ULL);
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
	lbe_path_learn_queue(p, NOW_US, lbe_path_aqm_us(p), 0);
	KUNIT_EXPECT_EQ(test, p->queue, LBE_QUEUE_SHORT);
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->chance_us, ack.now_us + LBE_LOSSES_US);
}

/* START sends 10 packets, as slow start does, until the first delay is known. */
static void lbe_start_is_a_slow_start(struct kunit *test)
{
	struct lbe_path *p = new_path(test);

	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), 10ULL * PKT);
	lbe_path_base(p, NOW_US, BASE_US);
	p->rate = MU;
	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), MU / 5 + 10 * PKT);
}

/* START ended when few packets had come through: those in flight tell the capacity. */
struct few_row {
	const char *name;
	u32 pkts;	/* acknowledged after that */
	u32 in_flight;	/* still */
	u32 span_us;	/* in this time */
	u32 rtt_us;	/* of the last of them */
	u64 mu;		/* then */
};

static const struct few_row few_rows[] = {
	{ "eight, one behind the other",	8, 2, 80000, 90000, 100 * 8 * PKT / 8 },
	{ "seven",				7, 2, 80000, 90000, MU },
	{ "all that was in flight",		6, 0, 60000, 90000, 100 * 6 * PKT / 6 },
	{ "the last was sent later",		8, 2, 80000, 79999, MU },
	{ "faster than was thought",		8, 2, 1000, 90000, MU },
	{ "an ACK of nothing",			0, 0, 80000, 1, MU },
};

static void few_desc(const struct few_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(few, few_rows, few_desc);

static void lbe_few_tell_the_capacity(struct kunit *test)
{
	const struct few_row *row = test->param_value;
	struct lbe_path *p = known_path(test);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + row->span_us,
		.rtt_us = row->rtt_us,
		.acked_bytes = row->pkts * PKT,
	};

	lbe_path_yield(p, NOW_US, LBE_QUEUE_FOUND, 1);
	lbe_path_next_round(p, NOW_US);
	p->few = true;
	p->in_flight = row->in_flight * PKT;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, p->mu, row->mu);
	KUNIT_EXPECT_EQ(test, p->few, !row->pkts || row->pkts == 7);
}

/* An ACK of a single packet after a silence was not delayed if its delay is too short for that. */
static void lbe_acks_that_may_be_delayed(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU);
	struct lbe_path_ack ack = {
		.now_us = NOW_US,
		.rtt_us = RTT_US,
		.delay_us = BASE_US + LBE_DELACK_US + 1,
		.alone_us = LBE_DELACK_US + 1,
	};

	KUNIT_EXPECT_TRUE(test, lbe_path_maybe_delayed(p, &ack));
	ack.delay_us--;
	KUNIT_EXPECT_FALSE(test, lbe_path_maybe_delayed(p, &ack));
	ack.small = true;
	KUNIT_EXPECT_TRUE(test, lbe_path_maybe_delayed(p, &ack));
	ack.small = false;
	ack.delay_us++;
	ack.alone_us--;
	KUNIT_EXPECT_FALSE(test, lbe_path_maybe_delayed(p, &ack));
	ack.alone_us++;
	lbe_path_yield(p, NOW_US, LBE_QUEUE_JUMPED, 0);
	KUNIT_EXPECT_TRUE(test, lbe_path_maybe_delayed(p, &ack));
	p->prompt = true;
	KUNIT_EXPECT_FALSE(test, lbe_path_maybe_delayed(p, &ack));
	p->base_us = U32_MAX;
	p->prompt = false;
	KUNIT_EXPECT_FALSE(test, lbe_path_maybe_delayed(p, &ack));
}

/* Heavy loss in single round trips does not count: one without loss resets it. */
static void lbe_loses_now_and_then(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_path_ack ack = { .now_us = NOW_US, .rtt_us = RTT_US };
	u32 i;

	p->round_us = NOW_US;
	for (i = 0; i < 8; i++) {
		ack.now_us += RTT_US;
		ack.lost_bytes = i % 2 ? 0 : 40 * PKT;
		ack.acked_bytes = 64 * PKT - ack.lost_bytes;
		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
	KUNIT_EXPECT_FALSE(test, lbe_path_policed(p));
	KUNIT_EXPECT_EQ(test, p->mu, MU);
}

/* Two round trips with an eighth of the capacity: other traffic uses the link. */
static void lbe_is_crowded_out(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 8);
	u64 now_us = NOW_US;
	int ms;

	for (ms = 0; ms < 600 && p->state == LBE_CRUISE; ms++) {
		struct lbe_path_ack ack = {
			.now_us = now_us += 1000,
			.delay_us = BASE_US + TARGET + 2000,
			.rtt_us = RTT_US + TARGET + 2000,
			.acked_pkts = 2,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_NOTHING_LEFT);
	KUNIT_EXPECT_EQ(test, p->fails, 1U);
	KUNIT_EXPECT_LE(test, now_us, NOW_US + 4 * RTT_US);
}

/* ---- base delay -------------------------------------------------------------- */

static void lbe_base_takes_four(struct kunit *test)
{
	struct lbe_path *p = known_path(test);
	int i;

	lbe_path_base(p, NOW_US, 49500);	/* within 1 ms: at once */
	KUNIT_EXPECT_EQ(test, p->base_us, 49500U);
	for (i = 0; i < 3; i++)
		lbe_path_base(p, NOW_US, 40000 + i);
	KUNIT_EXPECT_EQ(test, p->base_us, 49500U);
	lbe_path_base(p, NOW_US, 40000);
	KUNIT_EXPECT_EQ(test, p->base_us, 40002U);
}

static void lbe_base_is_forgotten(struct kunit *test)
{
	u64 later_us = NOW_US + LBE_PATH_SLOTS * LBE_PATH_SLOT_S * (u64)USEC_PER_SEC;
	struct lbe_path *p = known_path(test);

	lbe_path_base(p, NOW_US + 60 * USEC_PER_SEC, 70000);
	lbe_path_base(p, NOW_US + 120 * USEC_PER_SEC, 70000);
	KUNIT_EXPECT_EQ(test, p->base_us, BASE_US);
	lbe_path_base(p, later_us, 70000);
	KUNIT_EXPECT_EQ(test, p->base_us, 70000U);
}

/* ---- START ------------------------------------------------------------------- */

/* A link with the capacity mu queues what is sent beyond it. */
static void lbe_start_finds_the_queue(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	u64 backlog_bytes = 0, now_us = NOW_US;
	int ms;

	for (ms = 0; ms < 3000 && p->state == LBE_START; ms++) {
		u64 sent = div_u64(p->rate, 1000);
		u64 through = min(backlog_bytes + sent, MU / 1000);
		struct lbe_path_ack ack = { .acked_pkts = 2, .acked_bytes = through };

		backlog_bytes += sent - through;
		now_us += 1000;
		ack.now_us = now_us;
		ack.delay_us = BASE_US + div_u64(backlog_bytes * USEC_PER_SEC, MU);
		ack.rtt_us = ack.delay_us + RTT_US / 2;
		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_QUEUE_FOUND);
	KUNIT_EXPECT_EQ(test, p->base_us, BASE_US);
	EXPECT_NEAR(test, p->mu, MU, MU / 20);
}

/* In a dialogue of single packets the time until the answer shows no queue and no capacity. */
static void lbe_start_waits_for_data(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	u64 rate = p->rate;
	int i;

	for (i = 1; i < 50; i++) {
		struct lbe_path_ack ack = {
			.now_us = NOW_US + i * (u64)RTT_US,
			.delay_us = BASE_US + i % 4 * 15000,
			.rtt_us = RTT_US + i % 4 * 15000,
			.acked_bytes = 100, .acked_pkts = 1, .limited = true,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_START);
	KUNIT_EXPECT_EQ(test, p->rate, rate);
	KUNIT_EXPECT_EQ(test, p->mu, 0ULL);
}

/* Packets of an application that sends at half of @mu, for @ms, which meet a queue of @queue_us. */
static u64 limited_packets(struct lbe_path *p, u64 now_us, int ms, u32 queue_us)
{
	u64 end_us = now_us + ms * 1000ULL;
	u8 state = p->state;

	for (; now_us < end_us && p->state == state; now_us += 4000) {
		struct lbe_path_ack ack = {
			.now_us = now_us, .delay_us = BASE_US + queue_us,
			.rtt_us = RTT_US + queue_us, .limited = true,
			.acked_pkts = 2, .acked_bytes = MU / 2 / 250,
		};

		lbe_path_ack(p, &ack);
	}
	return now_us;
}

/* An application that sends less than the link carries: START gives way to the queue of other
 * traffic, although it does not learn the capacity, and begins again when the path is idle.
 */
static void lbe_start_gives_way_without_data(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	u64 now_us;

	now_us = limited_packets(p, NOW_US, 2000, 0);
	KUNIT_EXPECT_EQ(test, p->state, LBE_START);
	now_us = limited_packets(p, now_us, 400, 40000);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_QUEUE_JUMPED);
	KUNIT_EXPECT_EQ(test, p->mu, 0ULL);
	KUNIT_EXPECT_EQ(test, p->fails, 0U);
	now_us = limited_packets(p, now_us, 3000, 40000);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	now_us = limited_packets(p, now_us, 1000, 0);
	KUNIT_EXPECT_EQ(test, p->state, LBE_PROBE);
	/* Of the train, only what the application had was sent. */
	now_us = limited_packets(p, now_us, 1000, 0);
	KUNIT_EXPECT_EQ(test, p->state, LBE_START);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_PATH_IDLE);
	KUNIT_EXPECT_EQ(test, p->rate, lbe_path_first_rate(p));
	/* The return fails: more evidence is needed for the next one. */
	now_us = limited_packets(p, now_us, 200, 40000);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->fails, 1U);
}

/* Another socket of the path, which has nothing to send, does not make the samples of this one show
 * the capacity.
 */
static void lbe_start_gives_way_beside_an_idle_socket(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	u64 now_us = NOW_US;
	int i;

	p->flows = 2;
	for (i = 0; i < 500 && p->state == LBE_START; i++, now_us += 4000) {
		u32 queue_us = i < 100 ? 0 : 40000;
		struct lbe_path_ack ack = {
			.now_us = now_us, .delay_us = BASE_US + queue_us,
			.rtt_us = RTT_US + queue_us, .limited = true,
			.acked_pkts = 2, .acked_bytes = MU / 2 / 250,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->mu, 0ULL);
}

/* Answers that are slow time after time are a dialogue's, which has one in a round trip. */
static void lbe_start_waits_for_slow_answers(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	int i;

	for (i = 1; i < 50; i++) {
		struct lbe_path_ack ack = {
			.now_us = NOW_US + i * (u64)(RTT_US + 50000),
			.delay_us = BASE_US + (i > 9 ? 50000 : 0),
			.rtt_us = RTT_US + (i > 9 ? 50000 : 0),
			.acked_bytes = 100, .acked_pkts = 2, .limited = true,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_START);
}

/* Packets that do not queue up behind each other are marked: it is the queue of other traffic. */
static void lbe_start_gives_way_to_marks(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	int i;

	for (i = 0; i < 500 && p->state == LBE_START; i++) {
		struct lbe_path_ack ack = {
			.now_us = NOW_US + i * 4000, .delay_us = BASE_US, .rtt_us = RTT_US,
			.limited = true, .marked = i > 100, .acked_pkts = 2, .acked_bytes = 2000,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_GT(test, i, 100);
}

/* A train that is much faster than the link tells an unknown capacity; of a fast link, of a link
 * with a bucket that holds the train, or if a packet of it was lost, it tells nothing.
 */
static void lbe_train_tells_the_capacity(struct kunit *test)
{
	static const u64 links[] = { MU, MU / 4, 64 * MU, MU };
	int i;

	for (i = 0; i < ARRAY_SIZE(links); i++) {
		struct lbe_path *p = new_path(test);
		u64 rate, sent_us;
		u32 queue_us;

		p->base_us = BASE_US;
		p->state = LBE_FLOOR;
		lbe_path_probe(p, NOW_US);
		KUNIT_EXPECT_EQ(test, p->state, LBE_PROBE);
		KUNIT_EXPECT_GT(test, lbe_path_send_rate(p), 2 * MU);
		rate = p->train.rate;
		p->train.bytes = lbe_train_paced(&p->train);
		p->train.lost_bytes = i == 3 ? PKT : 0;
		for (sent_us = NOW_US; p->state == LBE_PROBE; sent_us += 500) {
			struct lbe_path_ack ack = { .acked_pkts = 1 };

			queue_us = div64_u64((sent_us - NOW_US) *
					     (rate - min(rate, links[i])), links[i]);
			ack.now_us = sent_us + RTT_US + queue_us;
			ack.rtt_us = RTT_US + queue_us;
			ack.delay_us = BASE_US + queue_us;
			p->now_us = ack.now_us;
			lbe_path_ack(p, &ack);
		}
		if (links[i] > rate || i == 3) {
			KUNIT_EXPECT_EQ(test, p->state, LBE_START);
			KUNIT_EXPECT_EQ(test, p->mu, 0ULL);
			continue;
		}
		KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
		KUNIT_EXPECT_EQ(test, p->reason, LBE_MEASURED);
		EXPECT_NEAR(test, p->mu, links[i], links[i] / 20);
	}
}

/* The first packets of each flow are sent when it has no more data. If another flow waits for its
 * turn, the path has more, and its rate doubles each round trip.
 */
static void lbe_start_is_not_limited_while_others_wait(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	u64 rate = p->rate;
	int ms;

	p->flows = 1000;
	let_wait(p, 1);
	for (ms = 1; ms < 4 * RTT_US / 1000; ms++) {
		struct lbe_path_ack ack = {
			.now_us = NOW_US + ms * 1000ULL, .delay_us = BASE_US, .rtt_us = RTT_US,
			.acked_bytes = div_u64(p->rate, 1000), .acked_pkts = 2, .limited = true,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_GE(test, p->rate, 4 * rate);
}

/* A path that was made before the handshake: a round trip of a second, and packets of 536 bytes */
static void lbe_start_corrects_a_guess(struct kunit *test)
{
	struct lbe_path *p = new_path(test);
	struct lbe_path_ack ack = {
		.now_us = NOW_US + RTT_US, .delay_us = BASE_US, .rtt_us = RTT_US,
		.acked_bytes = 2 * PKT, .acked_pkts = 2,
	};

	lbe_path_init(p, NOW_US, 536, USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p->rate, 5360ULL);
	p->mss = PKT;
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_GE(test, p->rate, 10ULL * PKT * USEC_PER_SEC / RTT_US);
}

/* ---- flows that meet another queue -------------------------------------------- */

struct view_row {
	const char *name;
	s32 off_us;	/* of one flow's delays */
	u32 noise_us;	/* of both */
	u32 gap_us;	/* between samples */
	u32 samples;	/* of each flow */
	bool splits;
};

static const struct view_row view_rows[] = {
	{ "the same",				0, 0, 10000, 1000, false },
	{ "a packet's time longer",		1158, 0, 10000, 1000, false },
	{ "30 ms shorter, for 3 s",		-30000, 1000, 10000, 150, false },
	{ "30 ms shorter, for 6 s",		-30000, 1000, 10000, 300, true },
	{ "30 ms longer, for 6 s",		30000, 1000, 10000, 300, true },
	{ "5 ms in 10 ms of noise",		5000, 10000, 10000, 1000, false },
	{ "30 ms shorter, in turns of 100 ms",	-30000, 1000, RTT_US, 30, true },
	{ "farther apart than a turn",		-30000, 0, 2 * RTT_US, 1000, false },
};

static void view_desc(const struct view_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(view, view_rows, view_desc);

/* An ACK of a flow. Return: true if it contradicts the others. */
static bool speaks(struct lbe_path *p, struct lbe_view *v, u64 now_us, u32 delay_us)
{
	struct lbe_path_ack ack = {
		.now_us = now_us, .rtt_us = RTT_US, .acked_pkts = 2, .delay_us = delay_us,
	};

	return lbe_path_contradicts(p, v, &ack);
}

static void lbe_views(struct kunit *test)
{
	const struct view_row *row = test->param_value;
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_view views[2] = { ordinary, ordinary };
	u64 now_us = NOW_US;
	bool splits = false;
	u32 draw = 1, i;

	p->flows = 2;
	p->in_flight = 5 * PKT;
	for (i = 0; i < 2 * row->samples && !splits; i++) {
		draw = draw * 1664525 + 1013904223;
		now_us += row->gap_us;
		splits = speaks(p, &views[i & 1], now_us,
				BASE_US + (i & 1 ? row->off_us : 0) +
				(row->noise_us ? (draw >> 8) % row->noise_us : 0));
	}
	KUNIT_EXPECT_EQ(test, splits, row->splits);
	KUNIT_EXPECT_EQ(test, p->flows, 2U);
	KUNIT_EXPECT_EQ(test, p->in_flight, 5ULL * PKT);
	KUNIT_EXPECT_EQ(test, p->base_us, splits ? U32_MAX : BASE_US);
	KUNIT_EXPECT_EQ(test, p->state, splits ? LBE_START : LBE_CRUISE);
}

/* Of ten parts of a second the heavy flow has nine, and then the light one follows. */
static void lbe_views_after_a_heavy_turn(struct kunit *test)
{
	static const u64 apart_us[] = { 9 * RTT_US, 11 * RTT_US };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(apart_us); i++) {
		struct lbe_path *p = cruising(test, MU / 2);
		struct lbe_view light = ordinary, heavy = ordinary;
		u64 now_us = NOW_US;

		heavy.weight = 9 * LBE_WEIGHT;
		p->flows = 2;
		lbe_path_turn_begin(p, &light);
		lbe_path_wait(p, &heavy);
		speaks(p, &light, now_us, BASE_US);
		now_us += 2 * RTT_US;
		speaks(p, &heavy, now_us, BASE_US + 30000);
		now_us += apart_us[i];
		speaks(p, &light, now_us, BASE_US);
		KUNIT_EXPECT_EQ(test, light.odd, apart_us[i] < 10 * RTT_US ? -1 : 0);
	}
}

static void lbe_resumes(struct kunit *test)
{
	struct lbe_path *p = known_path(test);

	p->fails = 9;
	lbe_path_join(p, NOW_US + USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p->fails, 9U);
	lbe_path_join(p, NOW_US + USEC_PER_SEC + 1);
	KUNIT_EXPECT_EQ(test, p->fails, 9U);
	p->flows = 0;
	lbe_path_join(p, NOW_US + USEC_PER_SEC + 1);
	KUNIT_EXPECT_EQ(test, p->fails, 0U);
}

/* Behind a fair queue the delay of a flow grows in its turn, and begins at the base again. */
static void lbe_own_queues_are_one_path(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_view views[2] = { ordinary, ordinary };
	u64 now_us = NOW_US;
	int turn, i;

	p->flows = 2;
	for (turn = 0; turn < 200; turn++)
		for (i = 0; i < 10; i++) {
			now_us += RTT_US / 10;
			KUNIT_ASSERT_FALSE(test, speaks(p, &views[turn & 1], now_us,
							BASE_US + 3000 * i));
		}
	KUNIT_EXPECT_EQ(test, views[0].odd, 0);
	KUNIT_EXPECT_EQ(test, views[1].odd, 0);
}

/* Of three flows in turn only the one that differs is odd; what one that has left showed is void. */
static void lbe_only_one_differs(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_view views[3] = { ordinary, ordinary, ordinary };
	u64 now_us = NOW_US;
	int i;

	p->flows = 3;
	for (i = 0; i < 18; i++) {
		now_us += RTT_US;
		KUNIT_ASSERT_FALSE(test, speaks(p, &views[i % 3], now_us,
						BASE_US + (i % 3 == 2) * 15000));
	}
	KUNIT_EXPECT_LE(test, max(views[0].odd, -views[0].odd), 1);
	KUNIT_EXPECT_LE(test, max(views[1].odd, -views[1].odd), 1);
	KUNIT_EXPECT_GE(test, views[2].odd, 10);

	lbe_path_leave(p, &views[0]);
	KUNIT_EXPECT_PTR_EQ(test, p->spoke, &views[2]);
	lbe_path_leave(p, &views[2]);
	KUNIT_EXPECT_NULL(test, p->spoke);
	KUNIT_EXPECT_EQ(test, p->flows, 1U);
}

/* Two queues that drain at once, and whose ACKs alternate, are compared once a round trip. */
static void lbe_two_queues_drain(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	struct lbe_view views[2] = { ordinary, ordinary };
	u64 now_us = NOW_US;
	int i;

	p->flows = 2;
	for (i = 0; i < 400; i++) {
		now_us += 1000;
		speaks(p, &views[i & 1], now_us, BASE_US + (i & 1) * 15000);
	}
	KUNIT_EXPECT_LE(test, max(views[0].odd, -views[0].odd), 8);
	KUNIT_EXPECT_LE(test, max(views[1].odd, -views[1].odd), 8);
}

/* ---- sending ----------------------------------------------------------------- */

/* Send in the next slot, @late_ns after it has come. Return: when it came. */
static u64 send_slot(struct lbe_path *p, u64 late_ns, u64 slot_ns)
{
	u64 due_ns = lbe_path_due_ns(p);

	lbe_path_sent(p, due_ns + late_ns, slot_ns, 1, PKT);
	return due_ns;
}

static void send_twice(struct lbe_path *p)
{
	send_slot(p, 0, 1000);
	send_slot(p, 0, 1000);
}

static void lbe_slots_follow(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	u64 now_ns = NOW_US * 1000, slot_ns = lbe_path_slot_ns(p, PKT, 0);

	KUNIT_EXPECT_EQ(test, slot_ns, 2316800ULL);
	p->next_ns = now_ns;
	KUNIT_EXPECT_EQ(test, send_slot(p, 0, slot_ns), now_ns);
	KUNIT_EXPECT_EQ(test, send_slot(p, 0, slot_ns), now_ns + slot_ns);
	/* A timer that is late by up to 1 ms costs no rate, and nothing is sent twice for it. */
	KUNIT_EXPECT_EQ(test, send_slot(p, NSEC_PER_MSEC, slot_ns), now_ns + 2 * slot_ns);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), now_ns + 3 * slot_ns);
	/* After an hour without sending, the slot began 1 ms in the past, and not earlier. */
	now_ns += 3600 * (u64)NSEC_PER_SEC;
	lbe_path_sent(p, now_ns, slot_ns, 1, PKT);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), now_ns - NSEC_PER_MSEC + slot_ns);
}

/* The clock starts at 0 at boot: no slot begins before that. */
static void lbe_slots_at_boot(struct kunit *test)
{
	struct lbe_path *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u64 slot_ns;

	KUNIT_ASSERT_NOT_NULL(test, p);
	lbe_path_init(p, 0, PKT, RTT_US);
	slot_ns = lbe_path_slot_ns(p, PKT, 0);
	KUNIT_EXPECT_EQ(test, slot_ns, 10000000ULL);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), 0ULL);
	lbe_path_sent(p, 800000, slot_ns, 1, PKT);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), slot_ns);
}

/* In FLOOR a late pair does not make the next one come sooner. */
static void lbe_pairs_keep_their_distance(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	u64 now_ns = NOW_US * 1000, slot_ns = 500 * (u64)NSEC_PER_MSEC;

	lbe_path_yield(p, NOW_US, LBE_QUEUE_FOUND, 0);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), now_ns);
	KUNIT_EXPECT_EQ(test, send_slot(p, 5000, slot_ns), now_ns);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), now_ns + 5000 + slot_ns);
}

/* A turn lasts for a round trip, at least 16 packets' time, and at most 1 s in all of those that
 * wait and this one.
 */
static void lbe_turns_have_an_end(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);

	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), RTT_US);
	let_wait(p, 1);
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), RTT_US);
	p->rtt_us = 1000;
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), 16 * lbe_path_pkt_us(p));
	p->mu = 100 * MU;
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), LBE_TICK_US);
	p->mu = MU;
	p->rtt_us = RTT_US;
	let_wait(p, 999);
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), USEC_PER_SEC / 1000);

	let_wait(p, 1);
	p->now_us = NOW_US + 1;
	lbe_path_turn_begin(p, &ordinary);
	send_twice(p);
	p->now_us += RTT_US - 1;
	KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
	p->now_us++;
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));
	/* One packet more is waited for, since the ACK of an odd one is delayed. */
	send_slot(p, 0, 1000);
	KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
	send_slot(p, 0, 1000);
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));
	send_slot(p, 0, 1000);
	p->now_us += RTT_US;
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));
}

/**
 * struct weight_row - a flow of this weight, as users give it, whose turn it is
 * @name: of the case
 * @given: the weight; others wait, each with a weight
 * @flows: how many have it together
 * @others: number of others
 * @others_given: weight of each of them
 * @rtt_us: round trip
 * @turn_us: how long its turn lasts
 * @others_us: how long that of one of the others lasts
 */
struct weight_row {
	const char *name;
	u32 given, flows, others, others_given, rtt_us, turn_us, others_us;
};

/* 16 packets take 18.5 ms. All turns together take 1 s where it says so. */
static const struct weight_row weight_rows[] = {
	{ "one of two",			1000, 1, 1, 1000, RTT_US, 100000, 100000 },
	{ "two of another weight",	77, 1, 1, 77, RTT_US, 100000, 100000 },
	{ "3 : 1",			3000, 1, 1, 1000, RTT_US, 300000, 100000 },
	{ "1 : 3",			1000, 1, 1, 3000, RTT_US, 100000, 300000 },
	{ "2 : 1, a short path",	2000, 1, 1, 1000, 1000, 37056, 18528 },
	{ "100 : 1, 1 s",		1000, 1, 1, 10, RTT_US, 990099, 9900 },
	{ "1 : 100, 1 s",		10, 1, 1, 1000, RTT_US, 9900, 990099 },
	{ "the greatest, the least",	1000000, 1, 1, 1, RTT_US, 999999, 0 },
	{ "the least, the greatest",	1, 1, 1, 1000000, RTT_US, 0, 999999 },
	{ "3 : 1 : 1 : 1",		3000, 1, 3, 1000, RTT_US, 300000, 100000 },
	{ "one against 16, 1 s",	1000, 1, 16, 1000, RTT_US, 58823, 58823 },
	{ "16 together are two",	2000, 16, 0, 0, RTT_US, 100000, 0 },
	{ "one of 4, against one",	1000, 4, 1, 1000, RTT_US, 100000, 400000 },
};

static void weight_desc(const struct weight_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(weight, weight_rows, weight_desc);

static void lbe_turns_by_weight(struct kunit *test)
{
	const struct weight_row *row = test->param_value;
	const struct lbe_view v = { .weight = lbe_weight_each(row->given, row->flows) };
	const struct lbe_view w = { .weight = lbe_weight_each(row->others_given, 1) };
	struct lbe_path *p = cruising(test, MU / 2);
	u32 i;

	p->rtt_us = row->rtt_us;
	for (i = 0; i < row->others; i++) {
		lbe_path_turn_begin(p, &w);
		lbe_path_wait(p, &w);
	}
	lbe_path_turn_begin(p, &v);
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), row->turn_us);
	if (!row->others)
		return;
	/* The other one of two has its turn. */
	lbe_path_wait(p, &v);
	lbe_path_wait_end(p, &w);
	lbe_path_turn_begin(p, &w);
	KUNIT_EXPECT_EQ(test, p->waiting, row->others);
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), row->others_us);
}

/* In FLOOR a turn is a pair, and with no weight is it shorter than a slot. */
static void lbe_no_weight_starves(struct kunit *test)
{
	const struct lbe_view least = { .weight = 1 };
	struct lbe_path *p = cruising(test, MU / 2);

	let_wait(p, 1);
	p->now_us = NOW_US + 1;
	lbe_path_turn_begin(p, &least);
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), 0U);
	KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
	KUNIT_EXPECT_EQ(test, lbe_path_burst_pkts(p), 2U);
	send_twice(p);
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));

	lbe_path_yield(p, p->now_us, LBE_QUEUE_FOUND, 0);
	lbe_path_turn_begin(p, &(struct lbe_view) { .weight = LBE_WEIGHT_MAX });
	send_slot(p, 0, 1000);
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));
}

/* A sum beyond 64 bits of us and weights, and a flow that does not count in the sum */
static void lbe_weights_have_a_bound(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);

	p->waiting = 1 << 20;
	p->line_weight = (u64)p->waiting * LBE_WEIGHT_MAX;
	lbe_path_turn_begin(p, &(struct lbe_view) { .weight = LBE_WEIGHT_MAX });
	EXPECT_NEAR(test, lbe_path_turn_len_us(p), USEC_PER_SEC / 18446, 1);
	let_wait(p, 0);
	lbe_path_turn_begin(p, &ordinary);
	KUNIT_EXPECT_EQ(test, lbe_path_part_us(p, LBE_WEIGHT_MAX), lbe_path_turn_len_us(p));
}

/* When the flows of a path contradict each other, what is known of it goes, but not the line. */
static void lbe_weights_outlast_what_is_known(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);
	const struct lbe_view v = { .weight = LBE_WEIGHT / 4 };

	lbe_path_turn_begin(p, &v);
	lbe_path_wait(p, &v);
	lbe_path_turn_begin(p, &(struct lbe_view) { .weight = 3 * LBE_WEIGHT });
	lbe_path_begin_anew(p, NOW_US);
	KUNIT_EXPECT_EQ(test, p->state, LBE_START);
	KUNIT_EXPECT_EQ(test, p->waiting, 1U);
	KUNIT_EXPECT_EQ(test, p->line_weight, (u64)v.weight);
	KUNIT_EXPECT_EQ(test, p->turn_weight, 3 * LBE_WEIGHT);
	/* 13 parts of 100 ms are more than 1 s. */
	KUNIT_EXPECT_EQ(test, lbe_path_turn_len_us(p), 12 * USEC_PER_SEC / 13);
}

/* Two flows of 3 : 1 are compared after the longer turn, too. */
static void lbe_weighed_flows_are_compared(struct kunit *test)
{
	struct lbe_view views[2] = { { .weight = 3 * LBE_WEIGHT }, ordinary };
	struct lbe_path *p = cruising(test, MU / 2);
	u64 now_us = NOW_US;
	bool splits = false;
	int i;

	p->flows = 2;
	lbe_path_turn_begin(p, &views[1]);
	for (i = 0; i < 40 && !splits; i++) {
		lbe_path_wait(p, &views[!(i & 1)]);
		lbe_path_turn_begin(p, &views[i & 1]);
		splits = speaks(p, &views[i & 1], now_us, BASE_US + (i & 1) * 15000);
		lbe_path_wait_end(p, &views[!(i & 1)]);
		now_us += i & 1 ? RTT_US : 3 * RTT_US + RTT_US / 2;
		p->now_us = now_us;
	}
	KUNIT_EXPECT_TRUE(test, splits);
}

/* A turn that is not used ends 100 ms after its slot has come, in each state. */
static void lbe_turns_are_used(struct kunit *test)
{
	static const u8 states[] = { LBE_START, LBE_CRUISE, LBE_FLOOR, LBE_PROBE };
	int i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		struct lbe_path *p = cruising(test, MU / 2);

		p->state = states[i];
		let_wait(p, 1);
		p->now_us = NOW_US;
		p->next_ns = (NOW_US + 3 * RTT_US) * 1000;
		lbe_path_turn_begin(p, &ordinary);
		p->now_us = NOW_US + 3 * RTT_US + LBE_TURN_UNUSED_US;
		KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
		p->now_us++;
		KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));
		lbe_path_turn_begin(p, &ordinary);
		KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
	}
}

/* A train is sent by one flow to its end. In FLOOR a turn is a pair. */
static void lbe_turns_follow_the_state(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU);

	let_wait(p, 1);
	p->now_us = NOW_US;
	lbe_path_turn_begin(p, &ordinary);
	send_twice(p);
	p->next_ns = (NOW_US + 2 * RTT_US) * 1000;
	lbe_train_start(&p->train, NOW_US, MU, 2 * RTT_US);
	p->now_us += 2 * RTT_US - 1;
	KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
	p->now_us++;
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));

	lbe_path_yield(p, p->now_us, LBE_QUEUE_FOUND, 100);
	lbe_path_turn_begin(p, &ordinary);
	p->now_us += 99 * RTT_US;
	KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
	send_slot(p, 0, NSEC_PER_SEC);
	KUNIT_EXPECT_TRUE(test, lbe_path_turn_over(p));
	lbe_path_turn_begin(p, &ordinary);
	KUNIT_EXPECT_FALSE(test, lbe_path_turn_over(p));
}

/* Packets that are far apart, or the only ones of a turn, come in twos. */
static void lbe_single_packets_come_in_twos(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);

	KUNIT_EXPECT_EQ(test, lbe_path_burst_pkts(p), 1U);
	p->rate = 140000;	/* a packet in 10.3 ms */
	KUNIT_EXPECT_EQ(test, lbe_path_burst_pkts(p), 2U);
	p->rate = MU / 2;	/* in 2.3 ms */
	let_wait(p, 500);
	KUNIT_EXPECT_EQ(test, lbe_path_burst_pkts(p), 2U);
	let_wait(p, 400);
	KUNIT_EXPECT_EQ(test, lbe_path_burst_pkts(p), 1U);
}

static void lbe_floor_is_silent(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);

	lbe_path_give_way(p, NOW_US, LBE_QUEUE_JUMPED);
	KUNIT_EXPECT_EQ(test, lbe_path_due_ns(p), (NOW_US + 5 * RTT_US) * 1000);
}

static void lbe_bounds_in_flight(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);

	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), MU / 20 + 2 * PKT);
	p->noise_us = 10000;
	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), MU / 2 * 12 / 100 + 2 * PKT);
	p->rate = U32_MAX;
	p->rtt_us = 4 * USEC_PER_SEC;
	p->noise_us = 0;
	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), 4ULL * U32_MAX + 2 * PKT);
}

/* After a time-out packets may still be in flight: one slot is sent until an ACK arrives. */
static void lbe_waits_after_a_timeout(struct kunit *test)
{
	struct lbe_path_ack ack = { .now_us = NOW_US, .rtt_us = RTT_US, .acked_pkts = 1 };
	struct lbe_path *p = cruising(test, MU / 2);

	p->timed_out = true;
	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), 0ULL);
	lbe_path_ack(p, &ack);
	KUNIT_EXPECT_EQ(test, lbe_path_cap(p, PKT), MU / 20 + 2 * PKT);
}

/* ---- a link that stands still ------------------------------------------------ */

struct stall_row {
	const char *name;
	u32 silent_us;
	u32 rtt_us;	/* of the first packet that is acknowledged after it */
	bool stood;
};

static const struct stall_row stall_rows[] = {
	{ "a quarter of a second",			250000, 350000, true },
	{ "no longer than a round trip",		100000, 350000, false },
	{ "there was nothing on its way",		250000, 101000, false },
};

static void stall_desc(const struct stall_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(stall, stall_rows, stall_desc);

/* Packets that waited for the link say nothing about other traffic; packets sent after that do. */
static void lbe_sits_a_stall_out(struct kunit *test)
{
	const struct stall_row *row = test->param_value;
	struct lbe_path *p = cruising(test, MU / 2);
	u64 again_us = NOW_US + row->silent_us;
	u32 i;

	for (i = 0; i < 30; i++) {
		struct lbe_path_ack ack = {
			.now_us = again_us + i * 1000, .rtt_us = row->rtt_us, .acked_pkts = 2,
			.delay_us = BASE_US + 3 * JUMP,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, row->stood ? LBE_CRUISE : LBE_FLOOR);
	for (; i < 60; i++) {
		struct lbe_path_ack ack = {
			.now_us = again_us + RTT_US + i * 1000, .rtt_us = RTT_US + 3 * JUMP,
			.acked_pkts = 2, .delay_us = BASE_US + 3 * JUMP,
		};

		lbe_path_ack(p, &ack);
	}
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
}

static void lbe_falls_silent(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 2);

	lbe_path_time(p, NOW_US + USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p->state, LBE_CRUISE);
	lbe_path_time(p, NOW_US + 3600 * (u64)USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_SILENCE);
	/* The clock of another CPU is behind. */
	lbe_path_time(p, NOW_US);
	KUNIT_EXPECT_EQ(test, p->now_us, NOW_US + 3600 * (u64)USEC_PER_SEC);
}

/* A silence at an eighth of the capacity means that other traffic uses the link. */
static void lbe_falls_silent_beside_others(struct kunit *test)
{
	struct lbe_path *p = cruising(test, MU / 8);

	lbe_path_time(p, NOW_US + 3600 * (u64)USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, p->state, LBE_FLOOR);
	KUNIT_EXPECT_EQ(test, p->reason, LBE_NOTHING_LEFT);
	KUNIT_EXPECT_EQ(test, p->fails, 1);
}

/* ---- the module -------------------------------------------------------------- */

/* The first of the suite's flows: the base delay of their path is not known yet. */
static void lbe_shows_no_base(struct kunit *test)
{
	struct ack_sample no_delay = { .pkts_acked = 1 };
	struct flow f;
	int i;

	flow_open(test, &f, "lbe");
	flow_hear(&f, &no_delay);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 0);
	/* The peer echoes a timestamp of half an hour ago. */
	f.base_us = 2000U * USEC_PER_SEC;
	flow_ack(&f, 2, 1000);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), LBE_PATH_RTT_MAX_US);
	f.base_us = 100 * MS;
	for (i = 0; i < 4; i++)
		flow_ack(&f, 2, 1000);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
}

static void lbe_before_init(struct kunit *test)
{
	flow_test_before_init(test, "lbe");
}

/* Another control takes over no rest, no wide window, and no pacing. */
static void lbe_releases(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "lbe");
	KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_NEEDED);
	tcp_snd_cwnd_set(f.tp, 166);
	f.tp->packets_out = 2;
	f.tp->tcp_wstamp_ns = tcp_clock_ns() + 4 * (u64)NSEC_PER_SEC;
	f.ops->release(f.sk);
	KUNIT_EXPECT_LE(test, f.tp->tcp_wstamp_ns, tcp_clock_ns());
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), TCP_INIT_CWND);
	KUNIT_EXPECT_GT(test, f.tp->snd_ssthresh, 1000U);
	KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_NONE);
	f.tp->packets_out = 0;
}

/* sch_fq claims the pacing of a socket once: the next control must find it claimed. */
static void lbe_gives_the_pacing_back(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "lbe");
	WRITE_ONCE(f.sk->sk_pacing_status, SK_PACING_FQ);
	f.ops->min_tso_segs(f.sk);
	KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_NEEDED);
	f.ops->release(f.sk);
	KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_FQ);
}

static void lbe_info_of_another(struct kunit *test)
{
	flow_test_info_of_another(test, "lbe");
}

static struct kunit_case lbe_cases[] = {
	KUNIT_CASE_PARAM(lbe_cruise_law, cruise_gen_params),
	KUNIT_CASE_PARAM(lbe_yields, watch_gen_params),
	KUNIT_CASE(lbe_watches_during_a_pulse),
	KUNIT_CASE(lbe_yields_to_marks),
	KUNIT_CASE_PARAM(lbe_train_verdict, train_gen_params),
	KUNIT_CASE(lbe_second_failure),
	KUNIT_CASE(lbe_slower_has_a_least),
	KUNIT_CASE(lbe_any_round_trip_gives_a_rate),
	KUNIT_CASE(lbe_any_rate_gives_a_slot),
	KUNIT_CASE(lbe_base_has_a_limit),
	KUNIT_CASE(lbe_growth_has_a_limit),
	KUNIT_CASE(lbe_step_is_a_slower_link),
	KUNIT_CASE(lbe_step_is_forgotten),
	KUNIT_CASE_PARAM(lbe_leaving, leaving_gen_params),
	KUNIT_CASE_PARAM(lbe_pulse_verdict, pulse_gen_params),
	KUNIT_CASE(lbe_noise_is_no_capacity),
	KUNIT_CASE(lbe_own_device),
	KUNIT_CASE_PARAM(lbe_leaves_a_slow_start, rtts_gen_params),
	KUNIT_CASE_PARAM(lbe_pairs, pair_gen_params),
	KUNIT_CASE_PARAM(lbe_evidence, idle_gen_params),
	KUNIT_CASE(lbe_flat_pairs),
	KUNIT_CASE_PARAM(lbe_losses, loss_gen_params),
	KUNIT_CASE(lbe_losses_of_floor),
	KUNIT_CASE_PARAM(lbe_learns_at_a_policer, policer_gen_params),
	KUNIT_CASE(lbe_fails_at_a_policer),
	KUNIT_CASE_PARAM(lbe_start_loses, start_loss_gen_params),
	KUNIT_CASE(lbe_start_fills_a_buffer),
	KUNIT_CASE(lbe_target_of_a_path_that_loses),
	KUNIT_CASE_PARAM(lbe_loses_in_a_queue, lose_gen_params),
	KUNIT_CASE(lbe_loses_in_its_own_queue),
	KUNIT_CASE(lbe_start_is_a_slow_start),
	KUNIT_CASE_PARAM(lbe_few_tell_the_capacity, few_gen_params),
	KUNIT_CASE(lbe_acks_that_may_be_delayed),
	KUNIT_CASE(lbe_loses_now_and_then),
	KUNIT_CASE(lbe_is_crowded_out),
	KUNIT_CASE(lbe_base_takes_four),
	KUNIT_CASE(lbe_base_is_forgotten),
	KUNIT_CASE(lbe_start_finds_the_queue),
	KUNIT_CASE(lbe_start_waits_for_data),
	KUNIT_CASE(lbe_start_gives_way_without_data),
	KUNIT_CASE(lbe_start_gives_way_beside_an_idle_socket),
	KUNIT_CASE(lbe_start_waits_for_slow_answers),
	KUNIT_CASE(lbe_start_gives_way_to_marks),
	KUNIT_CASE(lbe_train_tells_the_capacity),
	KUNIT_CASE(lbe_start_is_not_limited_while_others_wait),
	KUNIT_CASE(lbe_start_corrects_a_guess),
	KUNIT_CASE_PARAM(lbe_views, view_gen_params),
	KUNIT_CASE(lbe_views_after_a_heavy_turn),
	KUNIT_CASE(lbe_resumes),
	KUNIT_CASE(lbe_own_queues_are_one_path),
	KUNIT_CASE(lbe_only_one_differs),
	KUNIT_CASE(lbe_two_queues_drain),
	KUNIT_CASE(lbe_slots_follow),
	KUNIT_CASE(lbe_slots_at_boot),
	KUNIT_CASE(lbe_pairs_keep_their_distance),
	KUNIT_CASE(lbe_turns_have_an_end),
	KUNIT_CASE_PARAM(lbe_turns_by_weight, weight_gen_params),
	KUNIT_CASE(lbe_no_weight_starves),
	KUNIT_CASE(lbe_weights_have_a_bound),
	KUNIT_CASE(lbe_weights_outlast_what_is_known),
	KUNIT_CASE(lbe_weighed_flows_are_compared),
	KUNIT_CASE(lbe_turns_are_used),
	KUNIT_CASE(lbe_turns_follow_the_state),
	KUNIT_CASE(lbe_single_packets_come_in_twos),
	KUNIT_CASE(lbe_floor_is_silent),
	KUNIT_CASE(lbe_bounds_in_flight),
	KUNIT_CASE(lbe_waits_after_a_timeout),
	KUNIT_CASE_PARAM(lbe_sits_a_stall_out, stall_gen_params),
	KUNIT_CASE(lbe_falls_silent),
	KUNIT_CASE(lbe_falls_silent_beside_others),
	KUNIT_CASE(lbe_shows_no_base),
	KUNIT_CASE(lbe_before_init),
	KUNIT_CASE(lbe_releases),
	KUNIT_CASE(lbe_gives_the_pacing_back),
	KUNIT_CASE(lbe_info_of_another),
	{}
};

static struct kunit_suite lbe_suite = {
	.name = "tcp_lbe",
	.exit = flow_close,
	.test_cases = lbe_cases,
};

kunit_test_suite(lbe_suite);

MODULE_DESCRIPTION("KUnit tests of tcp_lbe");
MODULE_LICENSE("GPL");
