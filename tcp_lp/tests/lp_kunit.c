// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of tcp_lp: one-way delay (include/lbe/owd.h) and the law (lp.h),
 * row by row. The host tests compare the same headers with floating-point oracles,
 * also on longer traces; here they are tested as the kernel compiles them.
 */
#include <linux/module.h>
#include <linux/pkt_sched.h>

#include <net/inet_ecn.h>

#include <lbe/kunit_flow.h>

#include "lp.h"

#define S	1000000ULL	/* us */

/* ---- the peer's tick ------------------------------------------------------ */

struct tick_row {
	const char *name;
	u64 span_us;
	u32 ticks;
	u32 tick_us;
};

/* Expected: the tick nearest to span / ticks that systems use, if within 1/8 of it. */
static const struct tick_row tick_rows[] = {
	{ "1 us: Linux TCP_USEC_TS",		2 * S, 2000000, 1 },
	{ "1 ms: Linux, BSD, Windows",		2 * S, 2000, 1 * MS },
	{ "2 ms: BSD at 500 Hz",		2 * S, 1000, 2 * MS },
	{ "4 ms: Linux 2.6 at 250 Hz",		2 * S, 500, 4 * MS },
	{ "10 ms: Linux 2.4",			2 * S, 200, 10 * MS },
	{ "100 ms",				2 * S, 20, 100 * MS },
	{ "500 ms: BSD slow timer",		2 * S, 4, 500 * MS },
	{ "1 s: the slowest of RFC 7323, 4.1",	2 * S, 2, 1000 * MS },
	{ "250 ms more queue at the end",	2250 * MS, 2000, 1 * MS },
	{ "250 ms less queue at the end",	1750 * MS, 2000, 1 * MS },
	{ "just outside 1/8 of 1 ms",		2260 * MS, 2000, 0 },
	{ "between 4 and 10 ms",		2 * S, 300, 0 },
	{ "slower than 1 s",			16 * S, 8, 0 },
	{ "faster than 1 us",			2 * S, 4000000, 0 },
	{ "200 ppm slow over 64 s",		64012800, 64000, 1 * MS },
	{ "longest span",			1ULL << 43, 8796093, 1000 * MS },
};

static void tick_desc(const struct tick_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(tick, tick_rows, tick_desc);

static void owd_snaps_tick(struct kunit *test)
{
	const struct tick_row *row = test->param_value;

	struct lbe_owd owd = {
		.tick = lbe_tick_snap(row->span_us, row->ticks),
	};

	KUNIT_EXPECT_EQ(test, lbe_owd_tick_us(&owd), row->tick_us);
}

/* ---- one-way delay over a path -------------------------------------------- */

struct path_row {
	const char *name;
	u32 tick_us;		/* tick of the peer's clock */
	u32 tsval;		/* the peer's clock at time 0 */
	s32 ppm;		/* its speed error */
	u32 forward_us;		/* queue on the forward path, from 20 s on */
	u32 reverse_us;		/* queue on the reverse path, from 20 s on */
	u32 least_us;		/* bounds of the delay above base */
	u32 most_us;
	bool owd;		/* source expected at the end */
};

/* Base round trip 50 ms. Expected: the forward queue, and at most two ticks of
 * the reverse one (TSval is rounded down).
 */
static const struct path_row path_rows[] = {
	{ "idle, 1 ms",			1 * MS, 12345, 0, 0, 0,
	  0, 0, true },
	{ "forward queue counts",	1 * MS, 12345, 0, 30 * MS, 0,
	  30 * MS, 30 * MS, true },
	{ "reverse queue does not",	1 * MS, 12345, 0, 0, 30 * MS,
	  0, 2 * MS, true },
	{ "both, 1 ms",			1 * MS, 12345, 0, 20 * MS, 30 * MS,
	  20 * MS, 22 * MS, true },
	{ "both, 1 us",			1, 99, 0, 20 * MS, 30 * MS,
	  20 * MS, 20 * MS + 2, true },
	{ "both, 4 ms",			4 * MS, 5, 0, 20 * MS, 30 * MS,
	  20 * MS, 28 * MS, true },
	{ "both, 10 ms",		10 * MS, 5, 0, 20 * MS, 30 * MS,
	  20 * MS, 40 * MS, true },
	{ "100 ms is too coarse: RTT",	100 * MS, 5, 0, 20 * MS, 30 * MS,
	  50 * MS, 50 * MS, false },
	{ "TSval wraps, 1 ms",		1 * MS, U32_MAX - 20500, 0, 20 * MS,
	  30 * MS, 20 * MS, 22 * MS, true },
	{ "TSval wraps, 1 us",		1, U32_MAX - 20500000, 0, 20 * MS,
	  30 * MS, 20 * MS, 20 * MS + 2, true },
	{ "offset in the upper half",	1 * MS, 1U << 31, 0, 20 * MS, 30 * MS,
	  20 * MS, 22 * MS, true },
	{ "offset 0",			1 * MS, 0, 0, 20 * MS, 30 * MS,
	  20 * MS, 22 * MS, true },
	{ "clock 200 ppm fast",		1 * MS, 7, 200, 20 * MS, 30 * MS,
	  20 * MS, 24 * MS, true },
	{ "clock 200 ppm slow",		1 * MS, 7, -200, 20 * MS, 30 * MS,
	  18 * MS, 22 * MS, true },
};

static void path_desc(const struct path_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(path, path_rows, path_desc);

/* An ACK at t: the peer sent it half a round trip and a reverse queue earlier. */
static struct lbe_owd_ack path_ack(const struct path_row *row, u64 t_us,
				   u32 forward_us, u32 reverse_us)
{
	s64 stamped_us = t_us - 25 * MS - reverse_us;

	stamped_us += div_s64(stamped_us * row->ppm, 1000000);
	return (struct lbe_owd_ack) {
		.now_us = t_us,
		.tsval = row->tsval + (u32)div_s64(stamped_us, row->tick_us),
		.rtt_us = 50 * MS + forward_us + reverse_us,
		.min_rtt_us = 50 * MS,
		.has_tsval = true,
	};
}

static void owd_over_path(struct kunit *test)
{
	const struct path_row *row = test->param_value;
	struct lbe_owd owd;
	u64 t_us;

	lbe_owd_init(&owd);
	for (t_us = 1 * S; t_us < 30 * S; t_us += 9973) {
		bool late = t_us >= 20 * S;
		struct lbe_owd_ack ack;
		u32 delay_us;

		ack = path_ack(row, t_us, late ? row->forward_us : 0,
			       late ? row->reverse_us : 0);
		delay_us = lbe_owd_update(&owd, &ack) - 50 * MS;
		if (!late)
			continue;
		KUNIT_ASSERT_GE(test, delay_us, row->least_us);
		KUNIT_ASSERT_LE(test, delay_us, row->most_us);
		KUNIT_ASSERT_EQ(test, lbe_owd_source(&owd), row->owd);
	}
}

/* A single implausible TSval affects only its own sample, whose delay is the RTT. */
static void owd_wild_sample(struct kunit *test)
{
	static const u32 wild[] = { 1, 1U << 31, U32_MAX, 4000000, 123456789 };
	struct lbe_owd_ack ack;
	struct lbe_owd owd;
	unsigned int i;
	u64 t_us;

	lbe_owd_init(&owd);
	for (t_us = 1 * S; t_us < 10 * S; t_us += 10 * MS) {
		ack = path_ack(&path_rows[0], t_us, 0, 0);
		lbe_owd_update(&owd, &ack);
	}
	for (i = 0; i < ARRAY_SIZE(wild); i++, t_us += 10 * MS) {
		ack = path_ack(&path_rows[0], t_us, 20 * MS, 30 * MS);
		ack.tsval += wild[i];
		KUNIT_EXPECT_GE(test, lbe_owd_update(&owd, &ack), 50 * MS);
		ack = path_ack(&path_rows[0], t_us, 20 * MS, 30 * MS);
		KUNIT_EXPECT_LE(test, lbe_owd_update(&owd, &ack), 72 * MS);
		KUNIT_EXPECT_GE(test, lbe_owd_update(&owd, &ack), 70 * MS);
	}
}

/* If the peer's clock restarts with another offset, three ACKs set the new one. */
static void owd_peer_starts_over(struct kunit *test)
{
	struct lbe_owd_ack ack;
	struct lbe_owd owd;
	u64 t_us;
	int i;

	lbe_owd_init(&owd);
	for (t_us = 1 * S; t_us < 10 * S; t_us += 10 * MS) {
		ack = path_ack(&path_rows[0], t_us, 0, 0);
		lbe_owd_update(&owd, &ack);
	}
	for (i = 0; i < 8; i++, t_us += 10 * MS) {
		ack = path_ack(&path_rows[0], t_us, 0, 0);
		ack.tsval += 500000;
		lbe_owd_update(&owd, &ack);
	}
	ack = path_ack(&path_rows[0], t_us, 20 * MS, 30 * MS);
	ack.tsval += 500000;
	KUNIT_EXPECT_LE(test, lbe_owd_update(&owd, &ack), 72 * MS);
	KUNIT_EXPECT_EQ(test, lbe_owd_source(&owd), LBE_OWD_SOURCE_TS);
}

static void owd_without_timestamps(struct kunit *test)
{
	struct lbe_owd_ack ack = { .rtt_us = 70 * MS, .min_rtt_us = 50 * MS };
	struct lbe_owd owd;

	lbe_owd_init(&owd);
	for (ack.now_us = S; ack.now_us < 10 * S; ack.now_us += S) {
		KUNIT_EXPECT_EQ(test, lbe_owd_update(&owd, &ack), 70 * MS);
		KUNIT_EXPECT_EQ(test, lbe_owd_source(&owd),
				LBE_OWD_SOURCE_RTT);
	}
}

/* ---- minimum over slots of time ------------------------------------------- */

static void slots_age_by_time(struct kunit *test)
{
	struct lbe_slots s;
	u32 slot[3];

	lbe_slots_init(&s, slot, 3, U32_MAX - 50);	/* time wraps below */
	KUNIT_EXPECT_EQ(test, lbe_slots_min(&s, slot), LBE_SLOT_EMPTY);
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, U32_MAX - 50, 7),
			7);
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, 40, 9), 7);
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, 140, 9), 7);
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, 240, 9), 7);
	/* third slot after that of the 7: the 7 has expired */
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, 260, 9), 9);
	/* an idle hour empties all slots at once */
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, 3600000, 30),
			30);
	/* a clock that steps back is ignored */
	KUNIT_EXPECT_EQ(test, lbe_slots_update(&s, slot, 100, 3599000, 40),
			30);
}

/* ---- delay of the path ------------------------------------------------------- */

/* An ACK of @pkts packets; the delay is the round trip. Return: the filtered delay, us;
 * 0 = no sample.
 */
static u32 path_hears(struct lbe_path_delay *path, u32 rtt_us, u32 pkts, u64 now_us)
{
	struct lbe_delay_ack ack = {
		.pkts = pkts, .round_trip = true,
		.owd = { .now_us = now_us, .rtt_us = rtt_us, .min_rtt_us = rtt_us },
	};
	struct lbe_delay_sample sample;

	if (!lbe_delay_ack(path, &ack, &sample))
		return 0;
	return lbe_delay_base_us(path) + sample.queue_us;
}

/* Of two successive ACKs of one packet the lesser delay counts; an ACK of two packets always. */
static void path_delayed_ack(struct kunit *test)
{
	struct lbe_path_delay path;

	lbe_delay_init(&path, 1000);
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&path), LBE_SLOT_EMPTY);
	KUNIT_EXPECT_EQ(test, path_hears(&path, 100 * MS, 1, 1 * S), 100 * MS);
	KUNIT_EXPECT_EQ(test, path_hears(&path, 300 * MS, 1, 2 * S), 100 * MS);
	KUNIT_EXPECT_EQ(test, path_hears(&path, 120 * MS, 1, 3 * S), 120 * MS);
	KUNIT_EXPECT_EQ(test, path_hears(&path, 130 * MS, 2, 4 * S), 130 * MS);
	KUNIT_EXPECT_EQ(test, path_hears(&path, 140 * MS, 1, 5 * S), 130 * MS);
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&path), 100 * MS);
}

/* Base expires after 5 to 10 minutes; lbe_delay_base_fades() announces it before. */
static void path_base_fades(struct kunit *test)
{
	struct lbe_path_delay path;
	u32 t_s;

	lbe_delay_init(&path, 0);
	path_hears(&path, 100 * MS, 2, 1 * S);
	for (t_s = 2; t_s <= 599; t_s++) {
		path_hears(&path, 110 * MS, 2, t_s * S);
		KUNIT_ASSERT_EQ(test, lbe_delay_base_us(&path), 100 * MS);
		/* nine tenths of the slot without this base are over */
		KUNIT_ASSERT_EQ(test, lbe_delay_base_fades(&path, 5 * MS, t_s * 1000),
				t_s >= 570);
		KUNIT_ASSERT_FALSE(test, lbe_delay_base_fades(&path, 10 * MS, t_s * 1000));
	}
	path_hears(&path, 110 * MS, 2, 600 * S);
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&path), 110 * MS);
}

/* ACKs at intervals of 10 ms, with a delay of reverse_us on the reverse path. Return: number
 * of samples that report a shorter reverse path.
 */
static unsigned int path_acks(struct lbe_path_delay *p, u64 *now_us, u32 reverse_us, int acks)
{
	struct lbe_delay_sample sample;
	unsigned int rerouted = 0;

	while (acks--) {
		struct lbe_delay_ack ack = {
			.owd = {
				.now_us = *now_us += 10 * MS,
				.tsval = (u32)div_u64(*now_us - reverse_us, 1000),
				.rtt_us = 60 * MS + reverse_us,
				.min_rtt_us = 60 * MS,
				.has_tsval = true,
			},
			.pkts = 2,
		};

		lbe_delay_ack(p, &ack, &sample);
		rerouted += sample.rerouted;
	}
	return rerouted;
}

/* A reverse path that becomes shorter by 30 ms at once is reported; a gradual change is not. */
static void path_rerouted(struct kunit *test)
{
	struct lbe_path_delay p;
	u64 now_us = 1000 * MS;
	int i;

	lbe_delay_init(&p, 1000);
	KUNIT_EXPECT_EQ(test, path_acks(&p, &now_us, 40 * MS, 500), 0U);
	KUNIT_EXPECT_EQ(test, path_acks(&p, &now_us, 10 * MS, LBE_OWD_AGREE - 1), 0U);
	KUNIT_EXPECT_EQ(test, path_acks(&p, &now_us, 10 * MS, 100), 1U);
	/* longer, and back in steps of 1 ms, as a queue drains */
	KUNIT_EXPECT_EQ(test, path_acks(&p, &now_us, 30 * MS, 100), 0U);
	for (i = 30; i >= 5; i--)
		KUNIT_EXPECT_EQ(test, path_acks(&p, &now_us, i * MS, 3), 0U);
}

/* A constant delay becomes base, and full rises by the same amount. */
static void path_steady(struct kunit *test)
{
	struct lbe_path_delay path;
	u32 t;

	lbe_delay_init(&path, 0);
	path_hears(&path, 100 * MS, 2, 1 * S);
	lbe_delay_lost(&path, 200 * MS);
	lbe_delay_repaired(&path);
	lbe_delay_loss(&path);
	for (t = 1000; t < 11000; t += 1000)
		KUNIT_EXPECT_FALSE(test, lbe_delay_steady(&path, 150 * MS + t % 3000,
							  2 * MS, 10000, t));
	KUNIT_EXPECT_TRUE(test, lbe_delay_steady(&path, 151 * MS, 2 * MS, 10000, 11000));
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&path), 150 * MS);
	KUNIT_EXPECT_EQ(test, lbe_delay_range_us(&path), 100 * MS);
	/* an undo restores full as raised for the longer path */
	lbe_delay_undone(&path);
	KUNIT_EXPECT_EQ(test, lbe_delay_range_us(&path), 100 * MS);
	/* a delay that varies by more is a queue; too few samples do not change base either */
	for (t = 20000; t < 60000; t += 1000)
		KUNIT_EXPECT_FALSE(test, lbe_delay_steady(&path, 200 * MS + t % 3000 + t % 2000,
							  2 * MS, 10000, t));
	for (t = 60000; t < 60000 + 20000 * (LBE_DELAY_FLAT_SAMPLES - 1); t += 20000)
		KUNIT_EXPECT_FALSE(test, lbe_delay_steady(&path, 300 * MS, 2 * MS, 10000, t));
}

/* ---- the threshold --------------------------------------------------------- */

struct margin_row {
	const char *name;
	u32 dmin_us, dmax_us;
	u16 delta_permille;
	u32 margin_us;
};

/* Expected: the paper's delta (dmax - dmin), equation (2), else the noise. */
static const struct margin_row margin_rows[] = {
	{ "the paper's 15 %",		50000, 150000, 150, 15000 },
	{ "delta 0.4 of Figure 6",	50000, 150000, 400, 40000 },
	{ "noise",			50000, 54000, 150, 1000 },
	{ "noise above the range",	5000, 5500, 150, 1000 },
	{ "no range",			5000, 5000, 150, 1000 },
	{ "dmax below dmin (route up)",	5000, 4000, 150, 1000 },
	{ "15 x range beyond 32 bits",	0, 4000000000U, 150, 600000000 },
	{ "delta 0.9, whole range",	0, U32_MAX, 900, 3865470565U },
};

static void margin_desc(const struct margin_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(margin, margin_rows, margin_desc);

static void lp_margin(struct kunit *test)
{
	const struct margin_row *row = test->param_value;
	struct lp lp;

	lp_init(&lp, row->delta_permille, false, false, 0);
	lp.path.slot[0] = row->dmin_us;
	lp.path.full_us = row->dmax_us;
	KUNIT_EXPECT_EQ(test, lp_margin_us(&lp), row->margin_us);
}

/* ---- samples, indications, reactions --------------------------------------- */

#define SEQ	1000U	/* first sequence number; one for each packet */

/* An ACK of two packets. */
static enum lp_event sample_at(struct lp *lp, u32 d_us, u32 snd_una, u32 snd_nxt,
			       u32 now_ms)
{
	struct lbe_delay_ack path_ack = {
		.pkts = 2, .owd = {
			.now_us = now_ms * 1000ULL, .rtt_us = d_us, .min_rtt_us = d_us,
		},
	};
	struct lp_ack ack = {
		.snd_una = snd_una, .snd_nxt = snd_nxt, .now_ms = now_ms,
	};

	lbe_delay_ack(&lp->path, &path_ack, &ack.path);
	return lp_sample(lp, &ack);
}

static enum lp_event sample(struct lp *lp, u32 d_us, u32 snd_una, u32 snd_nxt)
{
	return sample_at(lp, d_us, snd_una, snd_nxt, 0);
}

/* The same with nothing left in flight: a pair. */
static enum lp_event pair(struct lp *lp, u32 d_us, u32 now_ms)
{
	return sample_at(lp, d_us, lp->mark_seq + 2, lp->mark_seq + 2, now_ms);
}

/* A loss with this smoothed delay, and its repair. */
static void loss_at(struct lp *lp, u32 d_us)
{
	lp->sd_q = d_us << LP_GAMMA_SHIFT;
	lbe_delay_lost(&lp->path, lp_sd_us(lp));
	lbe_delay_repaired(&lp->path);
}

/* A flow with base 50 ms and full 150 ms: its threshold is 65 ms. */
static struct lp learnt(void)
{
	struct lp lp;

	lp_init(&lp, 150, false, false, 0);
	sample(&lp, 50 * MS, SEQ, SEQ);
	loss_at(&lp, 150 * MS);
	lp.sd_q = 0;
	lp.path.last_us = 0;
	return lp;
}

/* Packets ACKed at d_us, with window packets in flight, until an indication;
 * 0 if none in 1000.
 */
static u32 packets_until(struct lp *lp, u32 d_us, u32 window)
{
	u32 n;

	for (n = 2; n <= 1000; n += 2)
		if (sample(lp, d_us, SEQ + n, SEQ + n + window) == LP_DELAY)
			return n;
	return 0;
}

/* A flow at the floor whose latest pair was above the threshold. */
static struct lp at_floor(void)
{
	struct lp lp = learnt();

	sample(&lp, 90 * MS, SEQ, SEQ + 10);
	lp_react(&lp, LP_DELAY, 1, SEQ + 10, 100 * MS, 0);
	return lp;
}

static void lp_nothing_before_a_loss(struct kunit *test)
{
	struct lp lp;

	lp_init(&lp, 150, false, false, 0);
	sample(&lp, 50 * MS, SEQ, SEQ);
	KUNIT_EXPECT_EQ(test, packets_until(&lp, 500 * MS, 10), 0);
}

static void lp_learns_at_a_loss(struct kunit *test)
{
	struct lp lp = learnt();

	KUNIT_EXPECT_TRUE(test, lp_learnt(&lp));
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&lp.path) + lp_margin_us(&lp), 65 * MS);
	KUNIT_EXPECT_EQ(test, packets_until(&lp, 65 * MS, 10), 0);
	lp = learnt();
	KUNIT_EXPECT_NE(test, packets_until(&lp, 65 * MS + 1, 10), 0);
}

/* There is an indication once all packets of a round trip had a delay above the threshold. */
static void lp_takes_a_round_trip(struct kunit *test)
{
	struct lp lp = learnt();
	u32 n;

	/* the first ACK sets the mark; the ACK beyond the 10 packets in flight is the indication */
	KUNIT_EXPECT_EQ(test, packets_until(&lp, 80 * MS, 10), 2 + 10 + 2);
	lp = learnt();
	KUNIT_EXPECT_EQ(test, packets_until(&lp, 80 * MS, 100), 2 + 100 + 2);
	/* no indication if one packet is below the threshold in each round trip */
	lp = learnt();
	for (n = 2; n < 1000; n += 2)
		KUNIT_ASSERT_EQ(test, sample(&lp, n % 10 ? 120 * MS : 60 * MS,
					     SEQ + n, SEQ + n + 10), LP_NONE);
}

/* Random losses without a queue do not set or change full, however many there are; nor does
 * a spurious one.
 */
static void lp_losses_without_queue(struct kunit *test)
{
	struct lp lp;
	int i;

	lp_init(&lp, 150, false, false, 0);
	sample(&lp, 50 * MS, SEQ, SEQ);
	for (i = 0; i < 100; i++)
		loss_at(&lp, 52 * MS - 1);
	KUNIT_EXPECT_FALSE(test, lp_learnt(&lp));
	lbe_delay_lost(&lp.path, 150 * MS);
	lbe_delay_undone(&lp.path);
	lbe_delay_repaired(&lp.path);
	KUNIT_EXPECT_FALSE(test, lp_learnt(&lp));
	loss_at(&lp, 52 * MS);
	KUNIT_EXPECT_TRUE(test, lp_learnt(&lp));

	lp = learnt();
	for (i = 0; i < 100; i++)
		loss_at(&lp, 51 * MS);
	KUNIT_EXPECT_EQ(test, lp.path.full_us, 150 * MS);
}

/* The packet time: the least one of all deliveries; it is part of the noise. */
static void lp_packet_time(struct kunit *test)
{
	struct lp lp = learnt();

	lbe_delay_delivered(&lp.path, 1, 5000);		/* one packet gives no rate */
	lbe_delay_delivered(&lp.path, 10, 0);
	KUNIT_EXPECT_EQ(test, lbe_delay_noise_us(&lp.path), 1000);
	lbe_delay_delivered(&lp.path, 2, 100 * MS);		/* a pair in a round trip */
	KUNIT_EXPECT_EQ(test, lp.path.pkt_us, 50 * MS);
	lbe_delay_delivered(&lp.path, 80, 98400);		/* 10 Mbit/s */
	lbe_delay_delivered(&lp.path, 10, 98400);
	KUNIT_EXPECT_EQ(test, lbe_delay_noise_us(&lp.path), 2230);
	lbe_delay_delivered(&lp.path, U32_MAX, 1);
	KUNIT_EXPECT_EQ(test, lp.path.pkt_us, 1);
	lp.path.pkt_us = 0;
	lbe_delay_delivered(&lp.path, 2, U32_MAX);
	KUNIT_EXPECT_EQ(test, lp.path.pkt_us, U16_MAX);
}

/* Full rises at once, at most by half of the range, and falls by an eighth of the difference. */
static void lp_full_follows_losses(struct kunit *test)
{
	struct lp lp = learnt();
	int i;

	loss_at(&lp, 142 * MS);
	KUNIT_EXPECT_EQ(test, lp.path.full_us, 149 * MS);
	loss_at(&lp, 160 * MS);
	KUNIT_EXPECT_EQ(test, lp.path.full_us, 160 * MS);
	loss_at(&lp, 5000 * MS);		/* a stall */
	KUNIT_EXPECT_EQ(test, lp.path.full_us, 215 * MS);
	for (i = 0; i < 100; i++)
		loss_at(&lp, 90 * MS);
	KUNIT_EXPECT_LE(test, lp.path.full_us, 90 * MS + 8);
}

struct react_row {
	const char *name;
	u32 window_pkts;
	bool inference;
	enum lp_event kind;
	u32 cut_us, sd_us;	/* at the last indication, and now */
	u32 new_pkts;
};

/* Expected: Figure 3 of the paper, and P6 (at least 1 packet). */
static const struct react_row react_rows[] = {
	{ "first: half",		40, false, LP_DELAY, 0, 90000, 20 },
	{ "first, odd: rounded down",	41, false, LP_DELAY, 0, 90000, 20 },
	{ "first, from 1: 1",		1, false, LP_DELAY, 0, 90000, 1 },
	{ "again: 1",			20, true, LP_DELAY, 90000, 90000, 1 },
	{ "again, queue fell a little",	20, true, LP_DELAY, 90000, 60000, 1 },
	{ "again, our own queue: half",	20, true, LP_DELAY, 150000, 90000, 10 },
	{ "mark: half",			40, false, LP_ECE, 0, 90000, 20 },
	{ "mark again: 1",		20, true, LP_ECE, 150000, 90000, 1 },
	{ "largest window",		U32_MAX, false, LP_DELAY, 0, 1, S32_MAX },
};

static void react_desc(const struct react_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(react, react_rows, react_desc);

static void lp_reaction(struct kunit *test)
{
	const struct react_row *row = test->param_value;
	struct lp lp = learnt();

	lp.inference = row->inference;
	lp.cut_us = row->cut_us;
	lp.sd_q = row->sd_us << LP_GAMMA_SHIFT;
	KUNIT_EXPECT_EQ(test, lp_react(&lp, row->kind, row->window_pkts, 1, 1, 1),
			row->new_pkts);
	KUNIT_EXPECT_TRUE(test, (bool)lp.inference);
	KUNIT_EXPECT_FALSE(test, lp_may_grow(&lp));
	KUNIT_EXPECT_EQ(test, (bool)lp.floor, row->new_pkts == 1);
}

/* Data sent before the reaction gives no indication, and sd restarts after it. */
static void lp_once_a_round_trip(struct kunit *test)
{
	struct lp lp = learnt();
	u32 n;

	KUNIT_ASSERT_EQ(test, packets_until(&lp, 90 * MS, 10), 14);
	lp_react(&lp, LP_DELAY, 10, SEQ + 24, 100 * MS, 0);
	for (n = 14; n <= 24; n++)
		KUNIT_ASSERT_EQ(test, sample(&lp, 90 * MS, SEQ + n, SEQ + 30),
				LP_NONE);
	sample(&lp, 51 * MS, SEQ + 25, SEQ + 30);
	KUNIT_EXPECT_EQ(test, lp_sd_us(&lp), 51 * MS);
}

/* The inference phase ends 3 round trips after its indication, even if later round trips
 * differ, and across a wrap of the clock.
 */
static void lp_inference_is_latched(struct kunit *test)
{
	struct lp lp = learnt();
	u32 t0 = U32_MAX - 100;

	lp_react(&lp, LP_DELAY, 40, 1, 100 * MS, t0);
	KUNIT_EXPECT_FALSE(test, lp_inference_over(&lp, t0));
	KUNIT_EXPECT_FALSE(test, lp_inference_over(&lp, t0 + 299));
	KUNIT_EXPECT_FALSE(test, lp_may_grow(&lp));
	KUNIT_EXPECT_TRUE(test, lp_inference_over(&lp, t0 + 300));
	KUNIT_EXPECT_TRUE(test, lp_may_grow(&lp));

	/* not while the delay is above the threshold */
	lp = learnt();
	lp_react(&lp, LP_DELAY, 40, SEQ, 100 * MS, 0);
	sample(&lp, 90 * MS, SEQ + 2, SEQ + 20);
	KUNIT_EXPECT_FALSE(test, lp_inference_over(&lp, 300));
	sample(&lp, 60 * MS, SEQ + 4, SEQ + 20);
	KUNIT_EXPECT_TRUE(test, lp_inference_over(&lp, 300));
}

static void lp_rests_at_the_floor(struct kunit *test)
{
	static const u8 rests[] = { 1, 2, 4, 8, 8 };
	struct lp lp = learnt();
	unsigned int i;

	lp_react(&lp, LP_DELAY, 40, 1, 100 * MS, 0);
	for (i = 0; i < ARRAY_SIZE(rests); i++) {
		lp_react(&lp, LP_DELAY, 2, 1, 100 * MS, 0);
		KUNIT_EXPECT_EQ(test, lp.rest_rtts, rests[i]);
		KUNIT_EXPECT_EQ(test, lp.itt_end_ms, (3 + rests[i]) * 100);
	}
	/* a loss at the floor: the flow stays there with the longest rest */
	KUNIT_EXPECT_TRUE(test, lp_repaired(&lp, 2, 1));
	KUNIT_EXPECT_EQ(test, lp_react(&lp, LP_LOSS, 2, 1, 100 * MS, 0), 1);
	KUNIT_EXPECT_TRUE(test, (bool)lp.floor);
	KUNIT_EXPECT_EQ(test, lp.rest_rtts, 8);
	/* the next indication continues from this rest */
	lp.above = 0;
	KUNIT_EXPECT_TRUE(test, lp_inference_over(&lp, 1100));
	lp_react(&lp, LP_DELAY, 2, 1, 100 * MS, 1200);
	KUNIT_EXPECT_EQ(test, lp.rest_rtts, 8);
	/* after a larger window the rest starts from 1 again */
	KUNIT_EXPECT_TRUE(test, lp_inference_over(&lp, 2300));
	lp_react(&lp, LP_DELAY, LP_CROWD_PKTS + 1, 1, 100 * MS, 2400);
	KUNIT_EXPECT_EQ(test, lp.itt_end_ms, 2700);
	lp_react(&lp, LP_DELAY, 2, 1, 100 * MS, 2400);
	KUNIT_EXPECT_EQ(test, lp.rest_rtts, 1);
}

/* The receiver may have delayed the ACK of a single packet: it gives no indication. */
static void lp_held_ack(struct kunit *test)
{
	struct lp lp = at_floor();
	struct lp_ack ack = {
		.path = { .delay_us = 90 * MS, .queue_us = 40 * MS },
		.snd_una = SEQ + 11, .snd_nxt = SEQ + 11, .lone = true,
	};

	KUNIT_EXPECT_EQ(test, lp_sample(&lp, &ack), LP_NONE);
	KUNIT_EXPECT_TRUE(test, lp.stale);
	ack.lone = false;
	KUNIT_EXPECT_EQ(test, lp_sample(&lp, &ack), LP_DELAY);
}

/* At the floor two successive pairs above the threshold are an indication, then each pair. */
static void lp_pairs(struct kunit *test)
{
	struct lp lp = learnt();

	lp_react(&lp, LP_DELAY, 1, SEQ, 100 * MS, 0);
	KUNIT_EXPECT_EQ(test, pair(&lp, 90 * MS, 0), LP_NONE);
	KUNIT_EXPECT_EQ(test, pair(&lp, 60 * MS, 0), LP_NONE);
	KUNIT_EXPECT_EQ(test, pair(&lp, 90 * MS, 0), LP_NONE);
	KUNIT_EXPECT_EQ(test, pair(&lp, 90 * MS, 0), LP_DELAY);
	lp_react(&lp, LP_DELAY, 2, lp.mark_seq + 2, 100 * MS, 0);
	KUNIT_EXPECT_EQ(test, pair(&lp, 90 * MS, 0), LP_DELAY);
}

/* The delay of a longer path is constant, that of a queue is not. */
static void lp_longer_path(struct kunit *test)
{
	struct lp lp = at_floor();
	u32 t_ms, adopted_ms = 0;

	lp.before_pkts = 60;
	for (t_ms = 0; t_ms < 60000; t_ms += 500)
		if (pair(&lp, 100 * MS + t_ms % 1000, t_ms) == LP_LONGER_PATH) {
			adopted_ms = t_ms;
			break;
		}
	KUNIT_EXPECT_EQ(test, adopted_ms, 10000);
	KUNIT_EXPECT_FALSE(test, lp.floor);
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&lp.path), 100 * MS);
	KUNIT_EXPECT_EQ(test, lbe_delay_range_us(&lp.path), 100 * MS);
	/* dmin was 50 ms: 60 packets at 50 ms are the same rate as 120 at 100 ms */
	KUNIT_EXPECT_EQ(test, lp.before_pkts, 120);

	/* a delay that varies by 20 ms is a queue, however long it lasts */
	lp = at_floor();
	for (t_ms = 0; t_ms < 500000; t_ms += 500)
		KUNIT_ASSERT_EQ(test, pair(&lp, 90 * MS + t_ms * 4 % 20000,
					   t_ms), LP_DELAY);
}

/* The window for the same rate on a longer path: in proportion, at most twice. */
static void lp_longer_path_window(struct kunit *test)
{
	struct lp lp = at_floor();

	lp.before_pkts = 60;
	__lp_scale_before(&lp, 50 * MS, 70 * MS);
	KUNIT_EXPECT_EQ(test, lp.before_pkts, 84);
	__lp_scale_before(&lp, 50 * MS, 500 * MS);
	KUNIT_EXPECT_EQ(test, lp.before_pkts, 168);
	lp.before_pkts = U16_MAX;
	__lp_scale_before(&lp, 50 * MS, 51 * MS);
	KUNIT_EXPECT_EQ(test, lp.before_pkts, U16_MAX);
	lp.before_pkts = 1;
	__lp_scale_before(&lp, 0, U32_MAX);
	KUNIT_EXPECT_EQ(test, lp.before_pkts, 2);
}

/* A shorter path becomes base at once. */
static void lp_shorter_path(struct kunit *test)
{
	struct lp lp = learnt();

	sample(&lp, 20 * MS, SEQ, SEQ);
	KUNIT_EXPECT_EQ(test, lbe_delay_base_us(&lp.path), 20 * MS);
}

/* A flow whose window does not grow has no losses; it learns full from the largest delay. */
static void lp_receive_window_limited(struct kunit *test)
{
	struct lp lp;

	lp_init(&lp, 150, false, false, 0);
	sample(&lp, 50 * MS, SEQ, SEQ);
	packets_until(&lp, 150 * MS, 10);
	lp_limited(&lp, true, 5000);
	lp_limited(&lp, false, 14999);
	KUNIT_EXPECT_FALSE(test, lp_learnt(&lp));
	lp_limited(&lp, false, 15000);
	KUNIT_EXPECT_TRUE(test, lp_learnt(&lp));
	KUNIT_EXPECT_NE(test, packets_until(&lp, 150 * MS, 10), 0);
}

/* lp_ecn: delay is measured and shown, but gives no indication. */
static void lp_marks_alone(struct kunit *test)
{
	struct lp lp = learnt();

	lp.marks = 1;
	KUNIT_EXPECT_EQ(test, packets_until(&lp, 150 * MS, 10), 0);
	KUNIT_EXPECT_TRUE(test, lp_may_grow(&lp));
}

/* A loss from a window of few packets is an indication, with or without a queue. */
static void lp_crowd(struct kunit *test)
{
	struct lp lp = learnt();

	KUNIT_EXPECT_FALSE(test, lp_repaired(&lp, LP_CROWD_PKTS + 1, SEQ));
	KUNIT_EXPECT_TRUE(test, lp_repaired(&lp, LP_CROWD_PKTS, SEQ));
	KUNIT_EXPECT_EQ(test, lp_react(&lp, LP_LOSS, 4, SEQ, 100 * MS, 0), 1);
	lp.paper = 1;
	lp.floor = 0;
	KUNIT_EXPECT_FALSE(test, lp_repaired(&lp, 2, SEQ));
}

/* paper=1: the smoothed delay above the threshold, once; 65 ms for base 50 and full 150 ms. */
static void lp_paper_rule(struct kunit *test)
{
	struct lp lp = learnt();

	lp.paper = 1;
	KUNIT_EXPECT_EQ(test, sample(&lp, 60 * MS, SEQ, SEQ + 10), LP_NONE);
	KUNIT_EXPECT_EQ(test, sample(&lp, 90 * MS, SEQ + 2, SEQ + 12), LP_NONE);
	KUNIT_EXPECT_EQ(test, lp_sd_us(&lp), 63750);	/* 60 + 30 / 8 */
	KUNIT_EXPECT_EQ(test, sample(&lp, 90 * MS, SEQ + 4, SEQ + 14), LP_DELAY);
	KUNIT_EXPECT_EQ(test, lp_react(&lp, LP_DELAY, 40, SEQ + 14, 100 * MS, 0), 20);
	/* again within the phase: 1, also if the flow's own window explains it */
	lp.sd_q = 55 * MS << LP_GAMMA_SHIFT;
	KUNIT_EXPECT_EQ(test, lp_react(&lp, LP_DELAY, 20, SEQ + 24, 100 * MS, 0), 1);
}

static void lp_fits_the_socket(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, sizeof(struct lp), ICSK_CA_PRIV_SIZE);
	KUNIT_EXPECT_EQ(test, sizeof(struct lbe_owd), 24);
}

static struct kunit_case owd_cases[] = {
	KUNIT_CASE_PARAM(owd_snaps_tick, tick_gen_params),
	KUNIT_CASE_PARAM(owd_over_path, path_gen_params),
	KUNIT_CASE(owd_wild_sample),
	KUNIT_CASE(owd_peer_starts_over),
	KUNIT_CASE(owd_without_timestamps),
	KUNIT_CASE(slots_age_by_time),
	{}
};

static struct kunit_suite owd_suite = {
	.name = "lbe_owd",
	.test_cases = owd_cases,
};

FLOW_SUITE(lp_flow, "lp");

/* If ECN was not negotiated, no packet may be sent as ECT: a router would mark it instead of
 * dropping it, and the receiver would not echo the mark.
 */
static void lp_ecn_not_agreed(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "lp_ecn");
	INET_ECN_xmit(f.sk);
	f.sk->sk_state = TCP_ESTABLISHED;
	f.ops->init(f.sk);
	f.sk->sk_state = TCP_CLOSE;
	KUNIT_EXPECT_FALSE(test, tcp_ca_needs_ecn(f.sk));
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos & INET_ECN_MASK, INET_ECN_NOT_ECT);
	KUNIT_EXPECT_STREQ(test, inet_csk(f.sk)->icsk_ca_ops->name, "lp_ecn");
}

static struct lp *lp_of(const struct flow *flow)
{
	return inet_csk_ca(flow->sk);
}

/* A time-out soon after an indication: slow start up to half of the window, also if the
 * inference phase ends meanwhile, or if the flow was at its floor.
 */
static void lp_timeout_after_an_indication(struct kunit *test)
{
	struct flow f;
	int i, floor;

	for (floor = 0; floor <= 1; floor++) {
		flow_open_learnt(test, &f, "lp");
		f.queue_us = 100 * MS;
		for (i = 0; i < 40 && !(floor ? lp_of(&f)->floor : lp_of(&f)->inference); i++)
			flow_round(&f);
		KUNIT_ASSERT_TRUE(test, lp_of(&f)->inference);
		KUNIT_ASSERT_EQ(test, (bool)lp_of(&f)->floor, floor == 1);
		tcp_snd_cwnd_set(f.tp, 64);
		flow_timeout(&f);
		for (i = 0; i < 31; i++)
			flow_ack(&f, 1, floor ? 1 * MS : 1000 * MS);
		KUNIT_EXPECT_EQ(test, (bool)lp_of(&f)->inference, floor == 1);
		KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 32U);
		KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 32U);
		flow_close(test);
		test->priv = NULL;
	}
}

/* A spurious loss (reordering) does not change full. */
static void lp_undone(struct kunit *test)
{
	struct flow f;
	u32 full_us;

	flow_open_learnt(test, &f, "lp");
	f.queue_us = 10 * MS;
	flow_round(&f);
	flow_round(&f);
	full_us = lp_of(&f)->path.full_us;
	f.tp->prior_cwnd = tcp_snd_cwnd(f.tp);
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_Recovery);
	KUNIT_EXPECT_EQ(test, f.ops->undo_cwnd(f.sk), f.tp->prior_cwnd);
	flow_state(&f, TCP_CA_Open);
	KUNIT_EXPECT_EQ(test, lp_of(&f)->path.full_us, full_us);
	/* the same without undo changes it */
	flow_recover(&f);
	KUNIT_EXPECT_LT(test, lp_of(&f)->path.full_us, full_us);
}

/* The delay at a spurious loss does not count for the next loss, which has a shorter queue;
 * with full known and not known.
 */
static void lp_undone_leaves_no_peak(struct kunit *test)
{
	struct lp lp = learnt();

	lbe_delay_loss(&lp.path);
	lbe_delay_lost(&lp.path, 150 * MS);
	lp.losing = 1;
	KUNIT_EXPECT_FALSE(test, lp_undo(&lp));
	KUNIT_EXPECT_FALSE(test, lp_repaired(&lp, 20, SEQ));
	lp.undone = 0;
	lbe_delay_lost(&lp.path, 110 * MS);
	lp_repaired(&lp, 20, SEQ);
	KUNIT_EXPECT_EQ(test, lp.path.full_us, 145 * MS);

	lp_init(&lp, 150, false, false, 0);
	sample(&lp, 50 * MS, SEQ, SEQ);
	lbe_delay_lost(&lp.path, 150 * MS);
	lp_undo(&lp);
	lp_repaired(&lp, 20, SEQ);
	lp.undone = 0;
	lbe_delay_lost(&lp.path, 110 * MS);
	lp_repaired(&lp, 20, SEQ);
	KUNIT_EXPECT_EQ(test, lp.path.full_us, 110 * MS);
}

/* An undo only concerns the loss before it: a later time-out in the same repair is a loss. */
static void lp_timeout_after_an_undo(struct kunit *test)
{
	struct flow f;

	flow_open_learnt(test, &f, "lp");
	tcp_snd_cwnd_set(f.tp, LP_CROWD_PKTS);
	f.tp->prior_cwnd = tcp_snd_cwnd(f.tp);
	flow_state(&f, TCP_CA_Recovery);
	f.ops->undo_cwnd(f.sk);
	flow_timeout(&f);
	flow_state(&f, TCP_CA_Open);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->inference);
}

/* A spurious loss from a small window is no indication and does not change full, before full
 * is known and after.
 */
static void lp_undone_is_no_loss(struct kunit *test)
{
	struct flow f;
	int learnt;

	for (learnt = 0; learnt <= 1; learnt++) {
		if (learnt)
			flow_open_learnt(test, &f, "lp");
		else
			flow_open(test, &f, "lp");
		flow_ack(&f, 1, 1000);
		f.queue_us = 10 * MS;
		flow_round(&f);
		tcp_snd_cwnd_set(f.tp, LP_CROWD_PKTS);
		f.tp->prior_cwnd = tcp_snd_cwnd(f.tp);
		f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
		flow_state(&f, TCP_CA_Recovery);
		f.ops->undo_cwnd(f.sk);
		flow_state(&f, TCP_CA_Open);
		KUNIT_EXPECT_FALSE(test, lp_of(&f)->inference);
		KUNIT_EXPECT_EQ(test, lp_learnt(lp_of(&f)), (bool)learnt);
		/* the next loss is a real one */
		flow_recover(&f);
		KUNIT_EXPECT_TRUE(test, lp_of(&f)->inference);
		KUNIT_EXPECT_TRUE(test, lp_learnt(lp_of(&f)));
		flow_close(test);
		test->priv = NULL;
	}
}

/* The same, if TCP undoes the loss after its repair: full is restored and the inference phase
 * ends. A phase with an indication by delay continues.
 */
static void lp_undone_late(struct kunit *test)
{
	struct flow f;
	u32 full_us;

	flow_open_learnt(test, &f, "lp");
	full_us = lp_of(&f)->path.full_us;
	f.queue_us = 10 * MS;
	flow_round(&f);
	tcp_snd_cwnd_set(f.tp, LP_CROWD_PKTS);
	flow_recover(&f);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->floor);
	KUNIT_EXPECT_LT(test, lp_of(&f)->path.full_us, full_us);
	/* an undo within a repair does not concern the loss before it */
	flow_state(&f, TCP_CA_Recovery);
	f.ops->undo_cwnd(f.sk);
	flow_state(&f, TCP_CA_Open);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->floor);
	KUNIT_EXPECT_LT(test, lp_of(&f)->path.full_us, full_us);
	tcp_snd_cwnd_set(f.tp, LP_CROWD_PKTS);
	full_us = lp_of(&f)->path.full_us;
	flow_recover(&f);
	KUNIT_EXPECT_LT(test, lp_of(&f)->path.full_us, full_us);
	KUNIT_EXPECT_EQ(test, f.ops->undo_cwnd(f.sk), LP_CROWD_PKTS);
	KUNIT_EXPECT_FALSE(test, lp_of(&f)->floor);
	KUNIT_EXPECT_FALSE(test, lp_of(&f)->inference);
	KUNIT_EXPECT_EQ(test, lp_of(&f)->path.full_us, full_us);
	tcp_snd_cwnd_set(f.tp, 20);
	flow_expect_yields(test, &f);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->inference);
	flow_recover(&f);
	f.ops->undo_cwnd(f.sk);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->inference);
}

/* A drop by the sender's own device is a loss. ECN-Echo is not. */
static void lp_local_drop(struct kunit *test)
{
	struct flow f;
	int marked;

	for (marked = 0; marked <= 1; marked++) {
		flow_open(test, &f, "lp");
		flow_ack(&f, 1, 1000);
		f.queue_us = 100 * MS;
		flow_round(&f);
		f.ops->in_ack_event(f.sk, marked ? CA_ACK_ECE : 0);
		f.tp->prior_cwnd = tcp_snd_cwnd(f.tp);
		f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
		flow_state(&f, TCP_CA_CWR);
		f.ops->in_ack_event(f.sk, 0);
		flow_ack(&f, 1, 1000);
		flow_state(&f, TCP_CA_Open);
		KUNIT_EXPECT_EQ(test, lp_learnt(lp_of(&f)), !marked);
		KUNIT_EXPECT_EQ(test, (bool)lp_of(&f)->inference, marked == 1);
		flow_close(test);
		test->priv = NULL;
	}
}

/* One of many flows: a loss from four packets leads to the floor and to longer rests,
 * one from more does not.
 */
static void lp_socket_in_a_crowd(struct kunit *test)
{
	struct flow f;
	int i;

	flow_open_learnt(test, &f, "lp");
	tcp_snd_cwnd_set(f.tp, LP_CROWD_PKTS + 1);
	flow_recover(&f);
	KUNIT_EXPECT_FALSE(test, lp_of(&f)->inference);
	for (i = 1; i <= LP_REST_MAX_RTTS; i *= 2) {
		tcp_snd_cwnd_set(f.tp, LP_CROWD_PKTS);
		flow_recover(&f);
		KUNIT_EXPECT_TRUE(test, lp_of(&f)->floor);
		KUNIT_EXPECT_EQ(test, lp_of(&f)->rest_rtts, i);
	}
	flow_ack_of(&f, 2, 100 * MS, 0);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
	KUNIT_EXPECT_EQ(test, flow_rest_us(&f), LP_REST_MAX_RTTS * 100 * MS);
}

/* The delay has been constant for long enough to be that of a longer path while TCP reduces the
 * window because of a mark: the inference phase continues without further indications, and the
 * flow resumes with the first pair after the reduction.
 */
static void lp_longer_path_in_cwr(struct kunit *test)
{
	struct flow f;
	u64 until_us;
	u32 end_ms;
	int i;

	flow_open_learnt(test, &f, "lp");
	flow_expect_yields(test, &f);
	f.queue_us = 50 * MS;	/* above the threshold, and not that of a full buffer */
	for (i = 0; i < 8; i++)
		flow_pair(&f);
	KUNIT_ASSERT_TRUE(test, lp_of(&f)->floor);
	KUNIT_ASSERT_GE(test, lp_of(&f)->path.flat_samples, 2);
	lp_of(&f)->before_pkts = 60;
	f.ops->in_ack_event(f.sk, CA_ACK_ECE);
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_CWR);
	f.ops->in_ack_event(f.sk, 0);
	end_ms = lp_of(&f)->itt_end_ms;
	for (until_us = f.now_us + LP_ROUTE_MS * MS; f.now_us < until_us;)
		flow_pair(&f);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->inference);
	KUNIT_EXPECT_TRUE(test, lp_of(&f)->floor);
	KUNIT_EXPECT_EQ(test, lp_of(&f)->itt_end_ms, end_ms);
	flow_state(&f, TCP_CA_Open);
	flow_pair(&f);
	KUNIT_EXPECT_FALSE(test, lp_of(&f)->inference);
	/* 60 packets at 100 ms are the same rate as 90 at 150 ms */
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 90U);
}

static void lp_ecn_mark_by_default(struct kunit *test)
{
	flow_test_mark_by_default(test, "lp_ecn");
}

/* A flow of 2 packets a round trip measures a packet time of 50 ms. If it has losses from such
 * small windows, it is one of many flows: a loss at a queue of 30 ms is that of a full buffer.
 */
static void path_in_a_crowd(struct kunit *test)
{
	struct lbe_path_delay path;

	lbe_delay_init(&path, 0);
	path_hears(&path, 100 * MS, 2, 1 * S);
	lbe_delay_delivered(&path, 2, 100 * MS);
	KUNIT_EXPECT_EQ(test, lbe_delay_noise_us(&path), 51 * MS);
	lbe_delay_lost(&path, 130 * MS);
	lbe_delay_repaired(&path);
	KUNIT_EXPECT_EQ(test, lbe_delay_range_us(&path), 0U);
	path.crowd_rtts = 1;	/* a single loss may be random */
	KUNIT_EXPECT_EQ(test, lbe_delay_noise_us(&path), 51 * MS);
	path.crowd_rtts = 2;
	KUNIT_EXPECT_EQ(test, lbe_delay_noise_us(&path), LBE_DELAY_NOISE_US);
	lbe_delay_lost(&path, 130 * MS);
	lbe_delay_repaired(&path);
	KUNIT_EXPECT_EQ(test, lbe_delay_range_us(&path), 30 * MS);
}

static struct kunit_case path_cases[] = {
	KUNIT_CASE(path_delayed_ack),
	KUNIT_CASE(path_base_fades),
	KUNIT_CASE(path_rerouted),
	KUNIT_CASE(path_steady),
	KUNIT_CASE(path_in_a_crowd),
	{}
};

static struct kunit_suite path_suite = {
	.name = "lbe_path",
	.test_cases = path_cases,
};

static struct kunit_case lp_cases[] = {
	KUNIT_CASE_PARAM(lp_margin, margin_gen_params),
	KUNIT_CASE_PARAM(lp_reaction, react_gen_params),
	KUNIT_CASE(lp_nothing_before_a_loss),
	KUNIT_CASE(lp_learns_at_a_loss),
	KUNIT_CASE(lp_takes_a_round_trip),
	KUNIT_CASE(lp_losses_without_queue),
	KUNIT_CASE(lp_packet_time),
	KUNIT_CASE(lp_full_follows_losses),
	KUNIT_CASE(lp_once_a_round_trip),
	KUNIT_CASE(lp_inference_is_latched),
	KUNIT_CASE(lp_rests_at_the_floor),
	KUNIT_CASE(lp_held_ack),
	KUNIT_CASE(lp_pairs),
	KUNIT_CASE(lp_longer_path),
	KUNIT_CASE(lp_longer_path_window),
	KUNIT_CASE(lp_shorter_path),
	KUNIT_CASE(lp_receive_window_limited),
	KUNIT_CASE(lp_marks_alone),
	KUNIT_CASE(lp_crowd),
	KUNIT_CASE(lp_paper_rule),
	KUNIT_CASE(lp_fits_the_socket),
	KUNIT_CASE(lp_ecn_not_agreed),
	KUNIT_CASE(lp_timeout_after_an_indication),
	KUNIT_CASE(lp_undone),
	KUNIT_CASE(lp_undone_leaves_no_peak),
	KUNIT_CASE(lp_timeout_after_an_undo),
	KUNIT_CASE(lp_undone_is_no_loss),
	KUNIT_CASE(lp_undone_late),
	KUNIT_CASE(lp_local_drop),
	KUNIT_CASE(lp_socket_in_a_crowd),
	KUNIT_CASE(lp_longer_path_in_cwr),
	KUNIT_CASE(lp_ecn_mark_by_default),
	{}
};

static struct kunit_suite lp_suite = {
	.name = "tcp_lp",
	.exit = flow_close,
	.test_cases = lp_cases,
};

kunit_test_suites(&owd_suite, &path_suite, &lp_suite, &lp_flow_suite);

MODULE_DESCRIPTION("KUnit tests of one-way delay and the TCP-LP law");
MODULE_LICENSE("GPL");
