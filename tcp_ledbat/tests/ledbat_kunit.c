// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of tcp_ledbat: the laws row by row, then the registered congestion
 * controls on a socket with ACKs that the tests generate. Load tcp_ledbat first: the
 * second part selects "ledbat" and "ledbatpp" by name, as an application does, and
 * expects the default parameters.
 */
#include <linux/module.h>
#include <linux/pkt_sched.h>

#include <lbe/kunit_flow.h>

#include "ledbat.h"

#define ONE_Q32		(1LL << 32)
#define HALF_Q16	(LEDBAT_ONE_Q16 / 2)

#define LEDBAT_ROWS(_name, _rows)					\
	static void _name##_row_name(const struct _name##_row *row, char *desc) \
	{								\
		strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);	\
	}								\
	KUNIT_ARRAY_PARAM(_name, _rows, _name##_row_name)

/* RFC 6817's law */

struct rate_row {
	const char *name;
	u32 cwnd, queue_us, target_us, rtt_us, gain_q16, decrease_q16;
	s64 milli;	/* packets a round trip, thousandths */
};

/* Expected: the formulas at the head of ledbat_law.h, calculated by hand. */
static const struct rate_row rate_rows[] = {
	{ "empty queue: one packet a round trip, as Reno (RFC 2.4.2)",
	  100, 0, 25 * MS, 100 * MS, LEDBAT_ONE_Q16, 0, 1000 },
	{ "half the target: half a packet",
	  100, 12500, 25 * MS, 112500, LEDBAT_ONE_Q16, 0, 500 },
	{ "at the target: nothing",
	  100, 25 * MS, 25 * MS, 125 * MS, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16, 0 },
	{ "twice the target: one packet less (RFC 2.5, GAIN 1)",
	  100, 50 * MS, 25 * MS, 150 * MS, LEDBAT_ONE_Q16, 0, -1000 },
	{ "half the gain, half the growth",
	  100, 0, 25 * MS, 100 * MS, HALF_Q16, 0, 500 },
	{ "the paper's G = 40 per second: 40 * (0.025 - 0.010)",
	  4, 10 * MS, 25 * MS, 80 * MS, LEDBAT_ONE_Q16, 0, 600 },
	{ "excess of 100 * 25 / 150 packets goes at once",
	  100, 50 * MS, 25 * MS, 150 * MS, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16, -16666 },
	{ "half of the excess with D = 1/2",
	  100, 50 * MS, 25 * MS, 150 * MS, LEDBAT_ONE_Q16, HALF_Q16, -8333 },
	{ "a small window still obeys the linear law",
	  2, 50 * MS, 25 * MS, 150 * MS, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16, -1000 },
	{ "one wild delay costs half the window at most",
	  100, 60000 * MS, 25 * MS, 100 * MS, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16, -50000 },
	{ "a delay above what the arithmetic takes",
	  100, U32_MAX, 1 * MS, 1, LEDBAT_ONE_Q16, 0, -50000 },
	{ "no round-trip time: no division by zero",
	  10, 2 * MS, 1 * MS, 0, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16, -5000 },
	{ "window of zero counts as one packet",
	  0, 3 * MS, 1 * MS, 1 * MS, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16, -500 },
	{ "largest window does not overflow",
	  U32_MAX, 200 * MS, 100 * MS, 300 * MS, LEDBAT_ONE_Q16, LEDBAT_ONE_Q16,
	  -349520000 },
};

LEDBAT_ROWS(rate, rate_rows);

/* Within 1/1000 packet plus 1/10000 of the expected value. */
static void expect_milli(struct kunit *test, s64 rate_q32, s64 milli)
{
	s64 got = (rate_q32 >> 16) * 1000 / LEDBAT_ONE_Q16;
	s64 slack = 1 + abs(milli) / 10000;

	KUNIT_EXPECT_GE(test, got, milli - slack);
	KUNIT_EXPECT_LE(test, got, milli + slack);
}

static void ledbat_test_rate(struct kunit *test)
{
	const struct rate_row *row = test->param_value;
	const struct ledbat_window w = { .cwnd = row->cwnd };

	expect_milli(test, ledbat_rate_q32(&w, row->queue_us, row->target_us,
					   row->rtt_us, row->gain_q16,
					   row->decrease_q16), row->milli);
}

/* LEDBAT++ */

struct divisor_row {
	const char *name;
	u32 target_us, base_us, divisor;
};

/* Expected: draft section 4.2, min(16, ceil(2 * TARGET / base)). */
static const struct divisor_row divisor_rows[] = {
	{ "base 5 ms", 60 * MS, 5 * MS, 16 },
	{ "base 10 ms", 60 * MS, 10 * MS, 12 },
	{ "base 30 ms", 60 * MS, 30 * MS, 4 },
	{ "base 50 ms: 2.4 rounds up", 60 * MS, 50 * MS, 3 },
	{ "base 60 ms", 60 * MS, 60 * MS, 2 },
	{ "base 119.999 ms", 60 * MS, 119999, 2 },
	{ "base 120 ms", 60 * MS, 120 * MS, 1 },
	{ "base 300 ms", 60 * MS, 300 * MS, 1 },
	{ "base 1 us", 60 * MS, 1, 16 },
	{ "no base yet: no division by zero", 60 * MS, 0, 16 },
	{ "target of 1 ms on a long path", 1 * MS, 100 * MS, 1 },
};

LEDBAT_ROWS(divisor, divisor_rows);

static void ledbat_test_divisor(struct kunit *test)
{
	const struct divisor_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, ledbatpp_divisor(row->target_us, row->base_us),
			row->divisor);
}

struct pp_rate_row {
	const char *name;
	u32 cwnd, queue_us, divisor, constant_q16;
	s64 milli;
};

/* Expected: draft section 4.3 with TARGET 60 ms. */
static const struct pp_rate_row pp_rate_rows[] = {
	{ "empty queue: GAIN", 100, 0, 4, LEDBAT_ONE_Q16, 250 },
	{ "just below the target: GAIN, not scaled by the distance",
	  100, 59999, 4, LEDBAT_ONE_Q16, 250 },
	{ "at the target: GAIN", 100, 60 * MS, 4, LEDBAT_ONE_Q16, 250 },
	{ "10 % above: 1/4 - 100 * 0.1", 100, 66 * MS, 4, LEDBAT_ONE_Q16, -9750 },
	{ "10 % above, Constant 1/2", 100, 66 * MS, 4, HALF_Q16, -4750 },
	{ "half above: at the bound of -W/2", 100, 90 * MS + 150, 4, LEDBAT_ONE_Q16, -50000 },
	{ "five times the target: still -W/2", 100, 300 * MS, 4, LEDBAT_ONE_Q16, -50000 },
	{ "a wild delay: still -W/2", 100, U32_MAX, 1, LEDBAT_ONE_Q16, -50000 },
	{ "two packets, a little above: GAIN still wins",
	  2, 63 * MS, 1, LEDBAT_ONE_Q16, 900 },
};

LEDBAT_ROWS(pp_rate, pp_rate_rows);

static void ledbat_test_pp_rate(struct kunit *test)
{
	const struct pp_rate_row *row = test->param_value;
	const struct ledbat_window w = { .cwnd = row->cwnd };

	expect_milli(test, ledbatpp_rate_q32(&w, row->queue_us, 60 * MS, row->divisor,
					     row->constant_q16), row->milli);
}

/* Window arithmetic */

/* No fraction is lost: W ACKs of one packet make the round trip's change. */
static void ledbat_test_remainder(struct kunit *test)
{
	static const u32 windows[] = { 1, 2, 3, 7, 100, 1000, 20000 };
	int i;
	u32 j;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		struct ledbat_window w = { .cwnd = windows[i] };
		s64 per_ack = ledbat_per_ack_q32(ONE_Q32 / 16, 1, &w);
		u64 sum;

		for (j = 0; j < windows[i]; j++)
			ledbat_window_add(&w, per_ack, 1);
		sum = ((u64)w.cwnd << 32 | w.part_q32) - ((u64)windows[i] << 32);
		KUNIT_EXPECT_GE(test, sum, ONE_Q32 / 16);
		KUNIT_EXPECT_LE(test, sum, ONE_Q32 / 16 + windows[i]);
	}
}

static void ledbat_test_aggregate(struct kunit *test)
{
	const struct ledbat_window w = { .cwnd = 100 };

	/* an ACK for 8 packets counts as 8 (GRO), a whole window as no more than one */
	expect_milli(test, ledbat_per_ack_q32(ONE_Q32, 8, &w), 80);
	expect_milli(test, ledbat_per_ack_q32(-ONE_Q32, 8, &w), -80);
	expect_milli(test, ledbat_per_ack_q32(-50 * ONE_Q32, 1000, &w), -50000);
	KUNIT_EXPECT_EQ(test, ledbat_per_ack_q32(ONE_Q32, 0, &w), 0);
}

struct reverse_row {
	const char *name;
	u32 cwnd;
	s32 change_us;
	u32 rtt_us, acked;
	s64 milli;
};

/* Expected: W * change / RTT. */
static const struct reverse_row reverse_rows[] = {
	{ "no change", 100, 0, 100 * MS, 1, 0 },
	{ "1 ms longer of 100: 1 % more", 100, 1 * MS, 100 * MS, 1, 1000 },
	{ "1 ms shorter: 1 % less", 100, -1000, 100 * MS, 1, -1000 },
	{ "no faster than slow start", 100, 50 * MS, 100 * MS, 2, 2000 },
	{ "at most half down", 100, -90000, 100 * MS, 1, -50000 },
	{ "no round-trip time: no division by zero", 10, 5, 0, 1, 1000 },
	{ "the least of all numbers", 10, S32_MIN, 100 * MS, 1, -5000 },
};

LEDBAT_ROWS(reverse, reverse_rows);

static void ledbat_test_reverse(struct kunit *test)
{
	const struct reverse_row *row = test->param_value;
	const struct ledbat_window w = { .cwnd = row->cwnd };

	expect_milli(test, ledbat_reverse_q32(&w, row->change_us, row->rtt_us,
					      row->acked), row->milli);
}

static void ledbat_test_window_add(struct kunit *test)
{
	struct ledbat_window w = { .cwnd = 3, .part_q32 = 0x80000000 };

	ledbat_window_add(&w, ONE_Q32 / 2, 2);
	KUNIT_EXPECT_EQ(test, w.cwnd, 4U);
	KUNIT_EXPECT_EQ(test, w.part_q32, 0U);
	ledbat_window_add(&w, -ONE_Q32 / 4, 2);
	KUNIT_EXPECT_EQ(test, w.cwnd, 3U);
	KUNIT_EXPECT_EQ(test, w.part_q32, 0xc0000000U);
	/* the window does not fall below the floor; a lower one is not raised to it */
	ledbat_window_add(&w, -100 * ONE_Q32, 2);
	KUNIT_EXPECT_EQ(test, w.cwnd, 2U);
	w.cwnd = 1;
	ledbat_window_add(&w, -100 * ONE_Q32, 2);
	KUNIT_EXPECT_EQ(test, w.cwnd, 1U);
	KUNIT_EXPECT_EQ(test, w.part_q32, 0U);
}

static void ledbat_test_loss(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ledbat_loss_pkts(100, 2), 50U);
	KUNIT_EXPECT_EQ(test, ledbat_loss_pkts(3, 2), 2U);
	/* a loss never raises the window: the min() in RFC 6817, 2.4.2 */
	KUNIT_EXPECT_EQ(test, ledbat_loss_pkts(1, 2), 1U);
	KUNIT_EXPECT_EQ(test, ledbat_loss_pkts(5, 10), 5U);
}

/* Slow start */

static void ledbat_test_slow_start_exit(struct kunit *test)
{
	/* 3/4 of 60 ms are 45 ms; the queue has to exceed this */
	KUNIT_EXPECT_FALSE(test, ledbat_leaves_slow_start(45 * MS, 60 * MS));
	KUNIT_EXPECT_TRUE(test, ledbat_leaves_slow_start(45 * MS + 1, 60 * MS));
	KUNIT_EXPECT_FALSE(test, ledbat_leaves_slow_start(0, 1));
	KUNIT_EXPECT_TRUE(test, ledbat_leaves_slow_start(U32_MAX, 100 * MS));
}

struct exit_row {
	const char *name;
	u32 cwnd, sent, base_us, queue_us, target_us, after;
};

/* Expected: sent * (base + T) / (base + q), at most cwnd. */
static const struct exit_row exit_rows[] = {
	{ "what the link carries, and the target's queue",
	  200, 100, 100 * MS, 25 * MS, 25 * MS, 100 },
	{ "a queue of three quarters leaves room",
	  250, 119, 100 * MS, 19 * MS, 25 * MS, 125 },
	{ "a long queue asks for less",
	  250, 125, 100 * MS, 150 * MS, 25 * MS, 62 },
	{ "never above the window",
	  100, 100, 100 * MS, 19 * MS, 100 * MS, 100 },
	{ "nothing known: the window stays",
	  100, 0, 100 * MS, 50 * MS, 25 * MS, 100 },
	{ "floor", 10, 1, 1 * MS, 500 * MS, 25 * MS, 2 },
	{ "no base: no division by zero", 10, 10, 0, 0, 25 * MS, 10 },
};

LEDBAT_ROWS(exit, exit_rows);

static void ledbat_test_exit(struct kunit *test)
{
	const struct exit_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, ledbat_exit_pkts(row->cwnd, row->sent, row->base_us,
					       row->queue_us, row->target_us, 2),
			row->after);
}

struct aim_row {
	const char *name;
	u32 target_us, range_us, noise_us, after;
};

/* Expected: 60 % of the range, from twice the noise to the target. */
static const struct aim_row aim_rows[] = {
	{ "no loss yet", 100 * MS, 0, 2 * MS, 100 * MS },
	{ "a buffer about as deep", 100 * MS, 104 * MS, 2 * MS, 62400 },
	{ "a deep one leaves the target alone", 25 * MS, 42 * MS, 2 * MS, 25 * MS },
	{ "one of little more than noise", 25 * MS, 5 * MS, 2 * MS, 4 * MS },
	{ "noise above the target", 1 * MS, 5 * MS, 2 * MS, 1 * MS },
	{ "largest range", 25 * MS, U32_MAX, 2 * MS, 25 * MS },
};

LEDBAT_ROWS(aim, aim_rows);

static void ledbat_test_aim(struct kunit *test)
{
	const struct aim_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, ledbat_aim_us(row->target_us, row->range_us,
					    row->noise_us), row->after);
}

/* Delays */

static void ledbat_test_queue(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ledbat_queue_us(125 * MS, 100 * MS), 25 * MS);
	KUNIT_EXPECT_EQ(test, ledbat_queue_us(99 * MS, 100 * MS), 0U);
	KUNIT_EXPECT_EQ(test, ledbat_queue_us(U32_MAX, 1), LEDBAT_DELAY_MAX_US);
}

/* Slowdowns */

/* A duration below that of the freeze counts as the freeze; the pause is at least a second. */
static void ledbat_test_slowdown_pause(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ledbat_slowdown_pause_us(0, 100 * MS), 1800000ULL);
	KUNIT_EXPECT_EQ(test, ledbat_slowdown_pause_us(150 * MS, 100 * MS), 1800000ULL);
	KUNIT_EXPECT_EQ(test, ledbat_slowdown_pause_us(300 * MS, 100 * MS), 2700000ULL);
	KUNIT_EXPECT_EQ(test, ledbat_slowdown_pause_us(200, 100),
			(u64)LEDBAT_SLOWDOWN_LEAST_US);
}

/* Rest */

struct rest_row {
	const char *name;
	u32 rest;
	bool less, empty;
	u32 most, after;
};

/* Expected: twice, a half, or one less, from 0 to the longest rest. */
static const struct rest_row rest_rows[] = {
	{ "the law asks for less: a round trip", 0, true, false, 8, 1 },
	{ "and again: twice", 1, true, false, 8, 2 },
	{ "no longer than the most", 8, true, false, 8, 8 },
	{ "a most that is no power of two", 4, true, false, 6, 6 },
	{ "none, as RFC 6817", 0, true, false, 0, 0 },
	{ "hardly a queue: half", 8, false, true, 8, 4 },
	{ "half of one", 1, false, true, 8, 0 },
	{ "half of none", 0, false, true, 8, 0 },
	{ "a queue near the target: one less", 8, false, false, 8, 7 },
	{ "one less than none", 0, false, false, 8, 0 },
};

LEDBAT_ROWS(rest, rest_rows);

static void ledbat_test_rest_rtts(struct kunit *test)
{
	const struct rest_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, ledbat_rest_rtts(row->rest, row->less, row->empty,
					       row->most),
			row->after);
}

static void ledbat_test_rest_time(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ledbat_rest_us(0, 100 * MS, U32_MAX), 0U);
	KUNIT_EXPECT_EQ(test, ledbat_rest_us(8, 100 * MS, 0), 800 * MS);
	KUNIT_EXPECT_EQ(test, ledbat_rest_us(8, 100 * MS, 1U << 31), 600 * MS);
	KUNIT_EXPECT_EQ(test, ledbat_rest_us(8, 100 * MS, U32_MAX), 400 * MS + 1);
	/* sch_fq's horizon is 10 s */
	KUNIT_EXPECT_EQ(test, ledbat_rest_us(64, 1000 * MS, 0), LEDBAT_REST_MAX_US);
	KUNIT_EXPECT_EQ(test, ledbat_rest_us(64, U32_MAX, 0), LEDBAT_REST_MAX_US);
	/* 5 packets in 100 ms are 20 ms apart */
	KUNIT_EXPECT_TRUE(test, ledbat_paces(5, 100 * MS));
	KUNIT_EXPECT_FALSE(test, ledbat_paces(4, 100 * MS));
	KUNIT_EXPECT_TRUE(test, ledbat_paces(1, 0));
	KUNIT_EXPECT_FALSE(test, ledbat_paces(2, U32_MAX));
}

/* Dynamic minimum window */

struct floor_row {
	const char *name;
	u64 capacity_bytes;
	u32 share_permille, flows, rtt_us, packet_bytes, pkts;
};

/* Expected: max(2, S C RTT / (N P)). */
static const struct floor_row floor_rows[] = {
	{ "10 Mbit/s, 5 %, 200 ms: 8.3 packets", 1250000, 50, 1, 200 * MS, 1500, 8 },
	{ "grows with the link: 100 Mbit/s", 12500000, 50, 1, 200 * MS, 1500, 83 },
	{ "shared by four flows", 12500000, 50, 4, 200 * MS, 1500, 20 },
	{ "nothing known yet: the fixed minimum", 0, 50, 1, 200 * MS, 1500, 2 },
	{ "slow link: the fixed minimum", 125000, 50, 1, 100 * MS, 1500, 2 },
	{ "no flow counted: as one", 1250000, 50, 0, 200 * MS, 1500, 8 },
	{ "no round-trip time", 1250000, 50, 1, 0, 1500, 2 },
	{ "capacity and delay above all bounds", U64_MAX, 1000, 1, U32_MAX, 1, 1000 },
};

LEDBAT_ROWS(floor, floor_rows);

static void ledbat_test_floor(struct kunit *test)
{
	const struct floor_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, ledbat_floor_pkts(2, 1000, row->capacity_bytes,
						row->share_permille, row->flows,
						row->rtt_us, row->packet_bytes),
			row->pkts);
}

/* The congestion controls, on a socket that is never connected */

static struct ledbat *flow_of(struct flow *flow)
{
	return inet_csk_ca(flow->sk);
}

static u8 flow_mode(struct flow *flow)
{
	return flow_of(flow)->mode;
}

static u32 flow_queue_us(struct flow *flow)
{
	return flow_of(flow)->queue_us;
}

static void ledbat_test_init_window(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "ledbat");
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
	/* slow start doubles, for RFC 6817 as for TCP */
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 4U);
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 8U);
}

/* Selected in SYN_SENT: TCP sets its initial window after the control's init. One packet may
 * have been sent by then, with Fast Open.
 */
static void ledbat_test_chosen_in_syn_sent(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp", "ledbat", "ledbatpp" };
	struct flow f;
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open(test, &f, names[i]);
		f.tp->data_segs_out = i / 2;
		tcp_snd_cwnd_set(f.tp, TCP_INIT_CWND);
		flow_idle(&f, 0);
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
		/* later a short idle time changes nothing */
		f.tp->data_segs_out = 20;
		tcp_snd_cwnd_set(f.tp, TCP_INIT_CWND);
		flow_idle(&f, 0);
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), (u32)TCP_INIT_CWND);
		flow_close(test);
		test->priv = NULL;
	}
}

static void ledbat_test_info(struct kunit *test)
{
	union tcp_cc_info info = {};
	struct flow f;
	int attr = 0;

	flow_open_at(test, &f, "ledbat", 20);
	f.queue_us = 10 * MS;
	flow_round(&f);
	f.tp->rate_delivered = 20;
	f.tp->rate_interval_us = 110 * MS;
	KUNIT_EXPECT_EQ(test, f.ops->get_info(f.sk, ~0U, &attr, &info),
			sizeof(info.bbr));
	KUNIT_EXPECT_EQ(test, attr, INET_DIAG_BBRINFO);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_bw_lo, 20 * 1448 * 100U / 11);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_min_rtt, 100 * MS);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_pacing_gain, 256U);
	/* 20 packets; bw times min_rtt is 18.2 */
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_cwnd_gain / 8, 256U * 11 / 10 / 8);
	KUNIT_EXPECT_EQ(test, flow_queue_us(&f), 10 * MS);
	KUNIT_EXPECT_EQ(test, f.ops->get_info(f.sk, 0, NULL, NULL), 0U);
}

/* No queue: +1 a round trip. A queue above the target: down to the floor. */
static void ledbat_test_control(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_at(test, &f, "ledbat", 20);
	flow_round(&f);
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 21U);
	f.queue_us = 100 * MS;
	for (i = 0; i < 30; i++)
		flow_round(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
}

/* A base below a microsecond, and one of a LAN: no division by zero. */
static void ledbat_test_short_path(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	struct flow f;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open(test, &f, names[i]);
		f.base_us = 0;
		for (j = 0; j < 20; j++)
			flow_ack(&f, 1, 1);
		KUNIT_EXPECT_EQ(test, flow_base_us(&f), 1U);
		KUNIT_EXPECT_GE(test, tcp_snd_cwnd(f.tp), 2U);
		flow_close(test);
		test->priv = NULL;
	}
}

static void ledbat_test_leaves_slow_start(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "ledbat");
	flow_round(&f);
	flow_round(&f);
	flow_round(&f);
	f.queue_us = 20 * MS;
	/* of two successive samples the lesser counts: an older one is still in use */
	flow_ack(&f, 1, 10 * MS);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_SLOW_START);
	/* four more: slow start has ended */
	flow_ack(&f, 1, 10 * MS);
	flow_ack(&f, 1, 10 * MS);
	flow_ack(&f, 1, 10 * MS);
	flow_ack(&f, 1, 10 * MS);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, tcp_snd_cwnd(f.tp));
}

static void ledbat_test_no_growth_unless_limited(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbat", 20);
	f.tp->is_cwnd_limited = 0;
	f.tp->max_packets_out = 0;
	flow_round(&f);
	KUNIT_EXPECT_LE(test, tcp_snd_cwnd(f.tp), 21U);
}

static void ledbat_test_loss_halves(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbat", 100);
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 50U);
}

/* A loss at a queue about as long as the target lowers the target. */
static void ledbat_test_depth_flow(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbat", 20);
	f.queue_us = 30 * MS;
	flow_round(&f);
	flow_recover(&f);
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, ledbat_flow_aim_us(flow_of(&f), 25 * MS), 18000U);
}

/* Run round trips until the flow is in a mode, at most @rounds. */
static bool flow_reaches(struct flow *flow, u8 mode, int rounds)
{
	while (rounds-- && flow_mode(flow) != mode)
		flow_round(flow);
	return flow_mode(flow) == mode;
}

/* An idle time, also in a freeze, ends a slowdown, and reduces the window that TCP leaves (its
 * initial window, 10) to 2.
 */
static void ledbat_test_idle_restart(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	struct flow f;
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open_at(test, &f, names[i], 50);
		tcp_snd_cwnd_set(f.tp, 10);
		flow_idle(&f, 10);
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
		flow_ack(&f, 1, 1000);
		KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_SLOW_START);
		flow_close(test);
		test->priv = NULL;
	}
	flow_open_at(test, &f, "ledbatpp", 64);
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 5));
	flow_idle(&f, 10);
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_SLOW_START);
	flow_close(test);
	test->priv = NULL;
	/* at the floor ssthresh is the least window: the flow must not remain in slow start */
	flow_open_learnt(test, &f, "ledbat");
	flow_expect_yields(test, &f);
	f.queue_us = 0;
	flow_idle(&f, 10);
	f.tp->tcp_wstamp_ns = 0;
	f.tp->snd_ssthresh = 2;
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
}

/* Beside TCP the flow rests for 1, 2, 4, 8, 16 round trips between windows of two packets. When
 * TCP has ended, rests become shorter in as many steps, and then the window grows.
 */
static void ledbat_test_rest(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	static const u32 longer[] = { 1, 2, 4, 8, 16, 16 };
	static const u32 shorter[] = { 8, 4, 2, 1, 0 };
	struct flow f;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open_at(test, &f, names[i], 2);
		f.queue_us = 100 * MS;
		/* the first samples are still those of the shorter queue */
		for (j = 0; j < 5 && !flow_rest_us(&f); j++)
			flow_pair(&f);
		for (j = 0; j < ARRAY_SIZE(longer); j++) {
			KUNIT_EXPECT_GT(test, flow_rest_us(&f),
					longer[j] * 100 * MS);
			KUNIT_EXPECT_LE(test, flow_rest_us(&f),
					longer[j] * 200 * MS);
			KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
			flow_pair(&f);
		}
		/* a rest is not an idle time: no slow start after it */
		f.tp->tcp_wstamp_ns = f.tp->tcp_clock_cache + 11ULL * NSEC_PER_SEC;
		flow_idle(&f, 10);
		KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
		f.tp->tcp_wstamp_ns = 0;
		f.queue_us = 0;
		for (j = 0; j < ARRAY_SIZE(shorter); j++) {
			flow_pair(&f);
			KUNIT_EXPECT_GE(test, flow_rest_us(&f),
					shorter[j] * 50 * MS);
			KUNIT_EXPECT_LE(test, flow_rest_us(&f),
					shorter[j] * 100 * MS);
			f.tp->tcp_wstamp_ns = 0;
		}
		for (j = 0; j < 10 && tcp_snd_cwnd(f.tp) < 5; j++)
			flow_round(&f);
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 5U);
		flow_close(test);
		test->priv = NULL;
	}
}

/* After half of the sequence space, round trips are still detected, and rests become longer. */
static void ledbat_test_rest_after_2gib(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_at(test, &f, "ledbat", 20);
	for (i = 0; i < 9 * 16; i++) {	/* 2.25 GiB */
		f.tp->snd_una += 1 << 24;
		flow_ack(&f, 1, 100 * MS);
	}
	tcp_snd_cwnd_set(f.tp, 2);
	f.tp->snd_ssthresh = 2;
	f.tp->snd_una = f.tp->snd_nxt;
	f.queue_us = 100 * MS;
	for (i = 0; i < 10; i++)
		flow_pair(&f);
	KUNIT_EXPECT_EQ(test, flow_of(&f)->rest_rtts, 16);
}

/* Losses without a queue from a window of few packets. The first may be random; if the window
 * was not larger in between, further ones are caused by many flows, and rests follow. With a
 * larger window the flow behaves as Reno.
 */
static void ledbat_test_loss_in_a_crowd(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	static const u8 rests[] = { 0, 1, 2, 4, 8, 16, 16 };
	struct flow f;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open_at(test, &f, names[i], 20);
		flow_round(&f);
		flow_recover(&f);
		for (j = 0; j < ARRAY_SIZE(rests); j++) {
			tcp_snd_cwnd_set(f.tp, 4);
			flow_of(&f)->rest_rtts = 0;
			flow_recover(&f);
			KUNIT_EXPECT_EQ(test, flow_of(&f)->rest_rtts, rests[j]);
		}
		/* no queueing delay: such a rest becomes shorter by one round trip each */
		for (j = 15; j > 10; j--) {
			flow_pair(&f);
			f.tp->tcp_wstamp_ns = 0;
			KUNIT_EXPECT_EQ(test, flow_of(&f)->rest_rtts, j);
		}
		tcp_snd_cwnd_set(f.tp, 6);
		flow_of(&f)->rest_rtts = 0;
		flow_recover(&f);
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 3U);
		flow_recover(&f);
		KUNIT_EXPECT_EQ(test, flow_of(&f)->rest_rtts, 0);
		flow_close(test);
		test->priv = NULL;
	}
}

/* Delay within the noise is no queue: the window grows as Reno's does, by a packet for each
 * window acknowledged.
 */
static void ledbat_test_noise_is_no_queue(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_at(test, &f, "ledbat", 20);
	flow_round(&f);
	tcp_snd_cwnd_set(f.tp, 20);
	f.tp->snd_ssthresh = 20;
	flow_of(&f)->part_q32 = 0;
	f.queue_us = LBE_DELAY_NOISE_US - 1;
	for (i = 20; i < 30; i++) {
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), i);
		flow_round(&f);
	}
}

/* If the path becomes longer by 80 ms, its delay becomes the base after a minute. */
static void ledbat_test_longer_path(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	struct flow f;
	u64 begun_us;
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open_at(test, &f, names[i], 20);
		flow_round(&f);
		f.base_us = 180 * MS;
		begun_us = f.now_us;
		while (flow_base_us(&f) < 180 * MS &&
		       f.now_us - begun_us < 120 * USEC_PER_SEC)
			flow_pair(&f);
		KUNIT_EXPECT_EQ(test, flow_base_us(&f), 180 * MS);
		KUNIT_EXPECT_GE(test, f.now_us - begun_us, 60 * USEC_PER_SEC);
		KUNIT_EXPECT_LE(test, f.now_us - begun_us,
				60 * USEC_PER_SEC + 20 * USEC_PER_SEC);
		/* if it becomes shorter, at once */
		f.tp->tcp_wstamp_ns = 0;
		f.base_us = 60 * MS;
		flow_round(&f);
		KUNIT_EXPECT_EQ(test, flow_base_us(&f), 60 * MS);
		flow_close(test);
		test->priv = NULL;
	}
}

/* A queue that varies does not become the base, however long it lasts; nor does a queue with
 * losses.
 */
static void ledbat_test_standing_queue(struct kunit *test)
{
	struct flow f;
	u64 begun_us;
	int i;

	flow_open_at(test, &f, "ledbat", 2);
	begun_us = f.now_us;
	while (f.now_us - begun_us < 3 * 60 * USEC_PER_SEC) {
		f.queue_us = 80 * MS + f.now_us / 1000 % 10000;
		flow_pair(&f);
	}
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
	f.queue_us = 80 * MS;
	for (i = 0; i < 10; i++) {
		begun_us = f.now_us;
		while (f.now_us - begun_us < 30 * USEC_PER_SEC)
			flow_pair(&f);
		flow_recover(&f);
	}
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
}

/* TCP's queue falls by half for a third of each period. The flow detects that the delay is not
 * constant, whatever the period and the rests. (8 minutes: the base expires after 9 to 10.)
 */
static void ledbat_test_out_of_step(struct kunit *test)
{
	struct flow f;
	u32 period_us, phase_us;
	u64 begun_us;

	for (period_us = 1000 * MS; period_us <= 6000 * MS; period_us += 250 * MS) {
		flow_open_at(test, &f, "ledbatpp", 2);
		begun_us = f.now_us;
		while (f.now_us - begun_us < 8 * 60 * USEC_PER_SEC) {
			div_u64_rem(f.now_us, period_us, &phase_us);
			f.queue_us = phase_us < period_us / 3 ? 65 * MS : 124 * MS;
			flow_pair(&f);
		}
		KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
		flow_close(test);
		test->priv = NULL;
	}
}

/* If no refresh of the base was needed for days, the wrap of the clock does not delay the next. */
static void ledbat_test_doubt_after_days(struct kunit *test)
{
	int days, i;

	for (days = 0; days <= 26; days += 26) {
		struct flow f;

		flow_open_at(test, &f, "ledbat", 20);
		flow_round(&f);
		for (i = 0; i < days * 24; i++)
			flow_ack(&f, 2, 3600U * (u32)USEC_PER_SEC);
		tcp_snd_cwnd_set(f.tp, 20);
		f.tp->snd_ssthresh = 20;
		flow_round(&f);
		f.queue_us = 20 * MS;
		for (i = 0; i < 620 && flow_mode(&f) != LEDBAT_FREEZE; i++)
			flow_ack(&f, 2, USEC_PER_SEC);
		KUNIT_EXPECT_EQ_MSG(test, flow_mode(&f), LEDBAT_FREEZE, "after %d days", days);
		flow_close(test);
		test->priv = NULL;
	}
}

/* LEDBAT++: two round trips after slow start the window is two packets for two round trips;
 * then it returns by doubling.
 */
static void ledbat_test_initial_slowdown(struct kunit *test)
{
	struct flow f;
	u64 begun_us;

	flow_open_at(test, &f, "ledbatpp", 64);
	begun_us = f.now_us;
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 5));
	KUNIT_EXPECT_GE(test, f.now_us - begun_us, 2ULL * 100 * MS);
	KUNIT_EXPECT_LE(test, f.now_us - begun_us, 4ULL * 100 * MS);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
	KUNIT_EXPECT_GE(test, f.tp->snd_ssthresh, 64U);

	/* many ACKs at once do not end the freeze */
	flow_ack(&f, 60, 0);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);

	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_AVOID, 12));
	KUNIT_EXPECT_GE(test, tcp_snd_cwnd(f.tp), 64U);
}

/* The pause before the next slowdown is 9 times the duration of the last one. */
static void ledbat_test_periodic_slowdown(struct kunit *test)
{
	u64 begun_us, ended_us;
	struct flow f;

	flow_open_at(test, &f, "ledbatpp", 64);
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 5));
	begun_us = f.now_us;
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_AVOID, 12));
	ended_us = f.now_us;
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 200));
	KUNIT_EXPECT_GE(test, f.now_us - ended_us, 8 * (ended_us - begun_us));
	/* the freeze began up to a round trip before the test saw it */
	KUNIT_EXPECT_LE(test, f.now_us - ended_us,
			9 * (ended_us - begun_us + 100 * MS) + 300 * MS);
}

/* A ramp continues above 3/4 of the target, and ends above the target. */
static void ledbat_test_ramp_delay(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbatpp", 64);
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 5));
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_RAMP, 5));
	f.queue_us = 50 * MS;
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_RAMP);
	f.queue_us = 70 * MS;
	KUNIT_EXPECT_TRUE(test, flow_reaches(&f, LEDBAT_AVOID, 3));
	KUNIT_EXPECT_LT(test, tcp_snd_cwnd(f.tp), 64U);
}

/* A loss during the freeze: half of the window before it, and no ramp. */
static void ledbat_test_loss_in_freeze(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbatpp", 64);
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 5));
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 32U);
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
}

/* The same with a time-out. A loss in the ramp: half of the present window, and the next
 * slowdown is scheduled.
 */
static void ledbat_test_loss_in_slowdown(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbatpp", 64);
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 5));
	flow_timeout(&f);
	KUNIT_EXPECT_GE(test, f.tp->snd_ssthresh, 32U);
	flow_state(&f, TCP_CA_Open);
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);

	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 200));
	KUNIT_ASSERT_TRUE(test, flow_reaches(&f, LEDBAT_RAMP, 5));
	flow_round(&f);
	tcp_snd_cwnd_set(f.tp, 16);
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 8U);
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
	KUNIT_EXPECT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 200));
}

/* At its end recovery sets cwnd to ssthresh, which would undo a freeze: none begins in it. */
static void ledbat_test_no_slowdown_in_recovery(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_at(test, &f, "ledbatpp", 64);
	flow_state(&f, TCP_CA_Disorder);
	for (i = 0; i < 200; i++)
		flow_round(&f);
	KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
	flow_state(&f, TCP_CA_Open);
	KUNIT_EXPECT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 2));
}

/* An ECN mark counts as a loss, but does not change the known buffer depth. */
static void ledbat_test_ecn(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbat", 100);
	f.queue_us = 24 * MS;
	flow_round(&f);
	flow_round(&f);
	tcp_snd_cwnd_set(f.tp, 100);
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_CWR);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 50U);
	tcp_snd_cwnd_set(f.tp, f.tp->snd_ssthresh);
	flow_state(&f, TCP_CA_Open);
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, ledbat_flow_aim_us(flow_of(&f), 25 * MS), 25 * MS);
}

/* An undo restores the window. */
static void ledbat_test_undo(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbatpp", 64);
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 32U);
	KUNIT_EXPECT_EQ(test, f.ops->undo_cwnd(f.sk), 64U);
}

/* A spurious loss (reordering) does not change the known buffer depth. */
static void ledbat_test_undone_depth(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbat", 20);
	f.queue_us = 30 * MS;
	flow_round(&f);
	f.tp->prior_cwnd = tcp_snd_cwnd(f.tp);
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_Recovery);
	tcp_snd_cwnd_set(f.tp, f.ops->undo_cwnd(f.sk));
	flow_state(&f, TCP_CA_Open);
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, ledbat_flow_aim_us(flow_of(&f), 25 * MS), 25 * MS);

	/* without timestamps TCP undoes the loss only after the repair */
	flow_recover(&f);
	KUNIT_EXPECT_LT(test, ledbat_flow_aim_us(flow_of(&f), 25 * MS), 25 * MS);
	tcp_snd_cwnd_set(f.tp, f.ops->undo_cwnd(f.sk));
	KUNIT_EXPECT_EQ(test, ledbat_flow_aim_us(flow_of(&f), 25 * MS), 25 * MS);
}

/* Reordering with the smallest windows does not count as losses caused by many flows. */
static void ledbat_test_undone_in_a_crowd(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_at(test, &f, "ledbat", 2);
	for (i = 0; i < 4; i++) {
		f.tp->prior_cwnd = tcp_snd_cwnd(f.tp);
		f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
		flow_state(&f, TCP_CA_Recovery);
		tcp_snd_cwnd_set(f.tp, f.ops->undo_cwnd(f.sk));
		flow_state(&f, TCP_CA_Open);
		KUNIT_EXPECT_EQ(test, flow_of(&f)->rest_rtts, 0);
	}
}

/* ACKs without a delay (of retransmissions, without timestamps) do not change the window. */
static void ledbat_test_no_sample(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	struct ack_sample none = { .pkts_acked = 1, .rtt_us = -1 };
	struct flow f;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open_at(test, &f, names[i], 20);
		flow_round(&f);
		f.now_us += 101 * MS;
		f.tp->tcp_mstamp = f.now_us;
		tcp_snd_cwnd_set(f.tp, 20);
		for (j = 0; j < 100; j++) {
			f.ops->pkts_acked(f.sk, &none);
			f.ops->cong_avoid(f.sk, f.tp->snd_una, 1);
		}
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 20U);
		flow_close(test);
		test->priv = NULL;
	}
}

/* With four packets or fewer a slowdown is skipped, and congestion avoidance continues. */
static void ledbat_test_skip(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_at(test, &f, "ledbatpp", 3);
	f.base_us = 130 * MS;
	flow_round(&f);
	f.base_us = 125 * MS;
	for (i = 0; i < 4; i++) {
		flow_round(&f);
		if (tcp_snd_cwnd(f.tp) <= LEDBAT_SLOWDOWN_SKIP)
			KUNIT_EXPECT_EQ(test, flow_mode(&f), LEDBAT_AVOID);
	}
	KUNIT_EXPECT_GT(test, tcp_snd_cwnd(f.tp), 4U);
}

/* To another congestion control and back: the window is kept, and release may be called twice. */
static void ledbat_test_switch(struct kunit *test)
{
	struct flow f;

	flow_open_at(test, &f, "ledbatpp", 64);
	f.ops->release(f.sk);
	f.ops->release(f.sk);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 64U);
	/* the window is cubic's: no slow start, but a slowdown to measure the base */
	f.tp->data_segs_out = 1000;
	f.ops->init(f.sk);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 64U);
	KUNIT_EXPECT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 2));
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 64U);
}

/* From BBR, whose ssthresh is infinite: also a slowdown, or the law if the window is too small
 * for one, but not slow start.
 */
static void ledbat_test_switch_from_bbr(struct kunit *test)
{
	static const char * const names[] = { "ledbat", "ledbatpp" };
	struct flow f;
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		flow_open_at(test, &f, names[i], 64);
		f.tp->data_segs_out = 1000;
		f.ops->release(f.sk);
		f.tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
		f.ops->init(f.sk);
		KUNIT_EXPECT_TRUE(test, flow_reaches(&f, LEDBAT_FREEZE, 2));
		KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 64U);
		f.ops->release(f.sk);
		tcp_snd_cwnd_set(f.tp, LEDBAT_SLOWDOWN_SKIP);
		f.tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
		f.ops->init(f.sk);
		flow_round(&f);
		flow_round(&f);
		KUNIT_EXPECT_LE(test, tcp_snd_cwnd(f.tp), LEDBAT_SLOWDOWN_SKIP + 2);
		flow_close(test);
		test->priv = NULL;
	}
}

static void ledbat_test_unprivileged(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "ledbat");
	KUNIT_EXPECT_TRUE(test, f.ops->flags & TCP_CONG_NON_RESTRICTED);
	flow_close(test);
	flow_open(test, &f, "ledbatpp");
	KUNIT_EXPECT_TRUE(test, f.ops->flags & TCP_CONG_NON_RESTRICTED);
}

FLOW_SUITE(ledbat_every, "ledbat");
FLOW_SUITE(ledbatpp_every, "ledbatpp");

static struct kunit_case ledbat_law_cases[] = {
	KUNIT_CASE_PARAM(ledbat_test_rate, rate_gen_params),
	KUNIT_CASE_PARAM(ledbat_test_divisor, divisor_gen_params),
	KUNIT_CASE_PARAM(ledbat_test_pp_rate, pp_rate_gen_params),
	KUNIT_CASE(ledbat_test_remainder),
	KUNIT_CASE(ledbat_test_aggregate),
	KUNIT_CASE_PARAM(ledbat_test_reverse, reverse_gen_params),
	KUNIT_CASE(ledbat_test_window_add),
	KUNIT_CASE(ledbat_test_loss),
	KUNIT_CASE(ledbat_test_slow_start_exit),
	KUNIT_CASE_PARAM(ledbat_test_exit, exit_gen_params),
	KUNIT_CASE_PARAM(ledbat_test_aim, aim_gen_params),
	KUNIT_CASE(ledbat_test_queue),
	KUNIT_CASE(ledbat_test_slowdown_pause),
	KUNIT_CASE_PARAM(ledbat_test_rest_rtts, rest_gen_params),
	KUNIT_CASE(ledbat_test_rest_time),
	KUNIT_CASE_PARAM(ledbat_test_floor, floor_gen_params),
	{}
};

static struct kunit_suite ledbat_law_suite = {
	.name = "ledbat_law",
	.test_cases = ledbat_law_cases,
};

static struct kunit_case ledbat_flow_cases[] = {
	KUNIT_CASE(ledbat_test_init_window),
	KUNIT_CASE(ledbat_test_chosen_in_syn_sent),
	KUNIT_CASE(ledbat_test_info),
	KUNIT_CASE(ledbat_test_control),
	KUNIT_CASE(ledbat_test_short_path),
	KUNIT_CASE(ledbat_test_leaves_slow_start),
	KUNIT_CASE(ledbat_test_no_growth_unless_limited),
	KUNIT_CASE(ledbat_test_loss_halves),
	KUNIT_CASE(ledbat_test_depth_flow),
	KUNIT_CASE(ledbat_test_idle_restart),
	KUNIT_CASE(ledbat_test_rest),
	KUNIT_CASE(ledbat_test_rest_after_2gib),
	KUNIT_CASE(ledbat_test_loss_in_a_crowd),
	KUNIT_CASE(ledbat_test_noise_is_no_queue),
	KUNIT_CASE(ledbat_test_longer_path),
	KUNIT_CASE(ledbat_test_standing_queue),
	KUNIT_CASE(ledbat_test_out_of_step),
	KUNIT_CASE(ledbat_test_doubt_after_days),
	KUNIT_CASE(ledbat_test_initial_slowdown),
	KUNIT_CASE(ledbat_test_periodic_slowdown),
	KUNIT_CASE(ledbat_test_ramp_delay),
	KUNIT_CASE(ledbat_test_loss_in_freeze),
	KUNIT_CASE(ledbat_test_loss_in_slowdown),
	KUNIT_CASE(ledbat_test_no_slowdown_in_recovery),
	KUNIT_CASE(ledbat_test_ecn),
	KUNIT_CASE(ledbat_test_undo),
	KUNIT_CASE(ledbat_test_undone_depth),
	KUNIT_CASE(ledbat_test_undone_in_a_crowd),
	KUNIT_CASE(ledbat_test_no_sample),
	KUNIT_CASE(ledbat_test_skip),
	KUNIT_CASE(ledbat_test_switch),
	KUNIT_CASE(ledbat_test_switch_from_bbr),
	KUNIT_CASE(ledbat_test_unprivileged),
	{}
};

static struct kunit_suite ledbat_flow_suite = {
	.name = "ledbat_flow",
	.exit = flow_close,
	.test_cases = ledbat_flow_cases,
};

kunit_test_suites(&ledbat_law_suite, &ledbat_flow_suite,
		  &ledbat_every_suite, &ledbatpp_every_suite);

MODULE_DESCRIPTION("KUnit tests of tcp_ledbat");
MODULE_LICENSE("GPL");
