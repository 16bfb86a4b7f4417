// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the law of credit (credit.h): its arithmetic at the ends of the ranges, and
 * each transition between its states. tests/test_credit.py tests it in a closed loop with a link.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../credit.h"
#include "../credit_use.h"

#define MSS	1448
#define T0	1000000ULL	/* begin of the clock, us */

/* A new path, freed with the test. The law is too large for the stack. */
static struct credit_law *new_path(struct kunit *test)
{
	struct credit_law *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	credit_init_law(c, T0);
	c->mss_bytes = MSS;
	c->flows = 1;
	return c;
}

/* A path of 10 Mbit/s and 100 ms, in CRUISE with the pipe and two packets. */
static struct credit_law *cruising(struct kunit *test)
{
	struct credit_law *c = new_path(test);

	c->base_us = 100000;
	c->mu_Bps = 1250000;
	c->mu_us = T0;
	c->rate_Bps = 1225000;
	credit_cruise(c, T0);
	c->filling = false;
	c->ask_us = U64_MAX;
	return c;
}

/* Packets arrive at the link's rate for @for_us, each with @queue_us. Return: the time then. */
static u64 arrive(struct credit_law *c, u64 now_us, u32 for_us, u32 queue_us)
{
	u32 gap_us = credit_packet_us(c);
	u64 end_us = now_us + for_us;

	for (; now_us < end_us && c->phase == CREDIT_CRUISE; now_us += gap_us)
		credit_on_data(c, now_us, MSS, queue_us);
	return now_us;
}

/* Arithmetic */

struct path_row {
	const char *name;
	u64 mu_Bps;
	u32 base_us, noise_us, flows;
	u32 packet_us, target_us, jump_us, tick_us, trips;
};

static const struct path_row path_rows[] = {
	{ "nothing known", 0, 0, 0, 1, 0, 2000, 6000, 4000, 0 },
	{ "10 Mbit/s, 100 ms", 1250000, 100000, 0, 1, 1158, 2316, 6000, 25000, 5 },
	{ "1 Mbit/s, 10 ms", 125000, 10000, 0, 1, 11584, 23168, 57920, 46336, 2 },
	{ "10 Gbit/s, 100 ms", 1250000000, 100000, 0, 1, 1, 2000, 6000, 25000, 15 },
	{ "noise", 1250000, 100000, 4000, 1, 1158, 3316, 14000, 25000, 5 },
	{ "16 flows bunch", 1250000, 100000, 0, 17, 1158, 2316, 10632, 25000, 5 },
	{ "no more than 16", 1250000, 100000, 0, 1000, 1158, 2316, 10632, 25000, 5 },
	{ "a byte a second", 1, 100000, 0, 1, 1000000, 2000000, 5000000, 4000000, 2 },
};

static void path_describe(const struct path_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(path, path_rows, path_describe);

static void paths_have_their_scales(struct kunit *test)
{
	const struct path_row *row = test->param_value;
	struct credit_law *c = new_path(test);

	c->mu_Bps = row->mu_Bps;
	c->base_us = row->base_us;
	c->noise_us = row->noise_us;
	c->flows = row->flows;
	KUNIT_EXPECT_EQ(test, credit_packet_us(c), row->packet_us);
	KUNIT_EXPECT_EQ(test, credit_target_us(c), row->target_us);
	KUNIT_EXPECT_EQ(test, credit_jump_us(c), row->jump_us);
	KUNIT_EXPECT_EQ(test, credit_tick_len_us(c), row->tick_us);
	if (row->trips)
		KUNIT_EXPECT_EQ(test, credit_blind_us(c), (u64)row->trips * row->base_us);
}

static void rates_do_not_overflow(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, credit_bytes_of(1250000, 100000), 125000U);
	KUNIT_EXPECT_EQ(test, credit_bytes_of(U64_MAX, U32_MAX), 1U << 30);
	KUNIT_EXPECT_EQ(test, credit_bytes_of(0, U32_MAX), 0U);
	KUNIT_EXPECT_EQ(test, credit_rate_of(125000, 100000), 1250000ULL);
	KUNIT_EXPECT_EQ(test, credit_rate_of(1ULL << 42, 1000000), 1ULL << 42);
	KUNIT_EXPECT_EQ(test, credit_rate_of(5, 0), 0ULL);
}

/* States */

static void an_empty_queue_lets_w_grow(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 before = c->window_bytes;

	arrive(c, T0, 1000000, 0);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_GT(test, c->window_bytes, before);
}

static void a_foreign_jump_ends_cruise(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u64 now_us = arrive(c, T0, 500000, 1000), i;

	/* The flow has a fifth of the link's rate: the queue is that of other traffic. */
	for (i = 0; i < 20 && c->phase == CREDIT_CRUISE; i++)
		credit_on_data(c, now_us += 5 * credit_packet_us(c), MSS, 30000);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_FLOOR);
	KUNIT_EXPECT_EQ(test, c->window_bytes, 0U);
	KUNIT_EXPECT_GE(test, c->blind_us, now_us + 5 * c->base_us);
}

static void our_own_queue_does_not(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u64 now_us = arrive(c, T0, 500000, 1000);
	u32 before = c->window_bytes;

	arrive(c, now_us, 100000, 30000);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_LT(test, c->window_bytes, before);
}

/* A buffer of three packets: it is empty once in each tick, so that only a loss shows that it is
 * full. Return: the window in the end, bytes.
 */
static u32 in_a_short_buffer(struct kunit *test, bool lost)
{
	struct credit_law *c = cruising(test);
	u64 now_us = T0;
	u32 i;

	for (i = 0; i < 2000 && c->phase == CREDIT_CRUISE; i++) {
		if (lost && i % 20 == 0)
			credit_on_resent(c, now_us, MSS);
		credit_on_data(c, now_us += credit_packet_us(c), MSS,
			       i % 10 ? 3 * credit_packet_us(c) : 0);
	}
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	return c->window_bytes;
}

static void losses_tell_of_a_short_buffer(struct kunit *test)
{
	u32 with_losses = in_a_short_buffer(test, true);

	KUNIT_EXPECT_LT(test, with_losses, in_a_short_buffer(test, false));
	KUNIT_EXPECT_LT(test, with_losses, 130000U);
}

/* Random losses of a link, without a queue, do not show other traffic. */
static void random_losses_cost_nothing(struct kunit *test)
{
	struct credit_law *lossy = cruising(test), *clean = cruising(test);
	u64 now_us = T0;
	u32 i;

	for (i = 0; i < 1000; i++) {
		now_us += credit_packet_us(clean);
		if (i % 20 == 0)
			credit_on_resent(lossy, now_us, MSS);
		/* Some packets meet a burst. */
		credit_on_data(lossy, now_us, MSS, i % 10 ? 500 : 12000);
		credit_on_data(clean, now_us, MSS, i % 10 ? 500 : 12000);
	}
	KUNIT_EXPECT_EQ(test, lossy->window_bytes, clean->window_bytes);
}

/* START with the loss of one packet in @one_in. Return: packets until it ended, 400 at most. */
static u32 start_that_loses(struct credit_law *c, u32 one_in)
{
	u64 now_us = T0;
	u32 i;

	c->base_us = 20000;
	for (i = 1; i < 400 && c->phase == CREDIT_START; i++) {
		if (i % one_in == 0)
			credit_on_resent(c, now_us, MSS);
		credit_on_data(c, now_us += 1000, MSS, 0);
	}
	return i;
}

/* START continues if one packet in twenty is lost, and ends if one in ten is. */
static void start_ends_with_losses(struct kunit *test)
{
	struct credit_law *few = new_path(test), *many = new_path(test);

	KUNIT_EXPECT_EQ(test, start_that_loses(few, 20), 400U);
	KUNIT_EXPECT_EQ(test, few->phase, CREDIT_START);
	KUNIT_EXPECT_LT(test, start_that_loses(many, 10), 100U);
	KUNIT_EXPECT_EQ(test, many->phase, CREDIT_FLOOR);
	KUNIT_EXPECT_GT(test, many->mu_Bps, 1000000ULL);
}

/* Trains */

struct train_row {
	const char *name;
	s32 sent_us, arrived_us;	/* spacing of the packets */
	u32 n;				/* number of packets that arrive */
	enum credit_phase phase;	/* expected after the verdict */
	u64 rate_Bps;			/* likewise, within a hundredth; 0 = any */
};

static const struct train_row train_rows[] = {
	{ "an empty path", 1158, 1158, 10, CREDIT_CRUISE, 1225000 },
	{ "half of it taken", 1158, 1737, 10, CREDIT_CRUISE, 500000 },
	{ "all of it", 1158, 2316, 10, CREDIT_FLOOR, 0 },
	{ "too few came", 1158, 1158, 5, CREDIT_FLOOR, 0 },
	{ "the last three did not", 1158, 1158, 7, CREDIT_CRUISE, 1225000 },
	{ "sent at once", 100, 1158, 10, CREDIT_FLOOR, 0 },
	{ "sent too slowly", 3000, 3000, 10, CREDIT_PROBE, 0 },
};

static void train_describe(const struct train_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(train, train_rows, train_describe);

/* A train whose first packet has the queueing delay @queue_us, and its verdict. */
static struct credit_move judge_behind(struct credit_law *c, const struct train_row *row,
				       u64 kept_Bps, u32 queue_us)
{
	u32 i;

	c->jumped_us = 0;
	c->kept_Bps = kept_Bps;
	credit_probe(c, T0);
	for (i = 0; i < row->n; i++)
		credit_on_train(c, i, T0 + queue_us + i * row->arrived_us, T0 + i * row->sent_us);
	return credit_judge(c, T0 + 200000);
}

static struct credit_move judge(struct credit_law *c, const struct train_row *row, u64 kept_Bps)
{
	return judge_behind(c, row, kept_Bps, 0);
}

static void trains_decide(struct kunit *test)
{
	const struct train_row *row = test->param_value;
	struct credit_law *c = cruising(test);

	judge(c, row, 0);
	KUNIT_EXPECT_EQ(test, c->phase, row->phase);
	if (row->rate_Bps)
		KUNIT_EXPECT_LT(test, abs((s64)(c->rate_Bps - row->rate_Bps)),
				(s64)row->rate_Bps / 100);
}

/* An empty path is used even if its senders cannot send a train. */
static void slow_senders_are_let_go(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 i;

	for (i = 0; i < CREDIT_SPOILT_MOST; i++) {
		KUNIT_EXPECT_EQ(test, i, c->spoilt);
		judge(c, &train_rows[6], 0);
		judge(c, &train_rows[6], 0);	/* repeated */
	}
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_EQ(test, c->rate_Bps, 144800ULL);	/* ten packets a round trip */
	KUNIT_EXPECT_EQ(test, c->spoilt, 0U);
}

/* A path whose noise has made a train, which begins now, longer than its sender's window. */
static struct credit_law *sending_long_train(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->noise_us = 5000;
	c->kept_Bps = 0;
	credit_probe(c, T0);
	return c;
}

/* What arrives at first, @n marks @gap_us apart, and the others a round trip later if there are
 * any.
 */
static void send_window(struct kunit *test, struct credit_law *c, u32 n, u32 gap_us, bool others)
{
	u32 i, rest_us;

	KUNIT_ASSERT_EQ(test, c->phase, CREDIT_PROBE);
	KUNIT_ASSERT_GT(test, c->train_marks, 30U);
	for (i = 0; i < (others ? c->train_marks : n); i++) {
		rest_us = i < n ? 0 : c->base_us;
		credit_on_train(c, i, T0 + 100000 + i * gap_us + rest_us,
				T0 + i * 1158 + rest_us);
	}
	credit_judge(c, T0 + 200000);
}

/* It is sent again a round trip later. */
static void send_window_twice(struct kunit *test, struct credit_law *c, u32 n, u32 gap_us,
			      bool others)
{
	send_window(test, c, n, gap_us, others);
	KUNIT_EXPECT_GE(test, c->slot_us, T0 + 200000 + c->base_us);
	send_window(test, c, n, gap_us, others);
}

/* It is then judged by what its sender's window let it send. */
static void a_train_longer_than_a_window_is_repeated(struct kunit *test)
{
	u32 others;

	for (others = 0; others < 2; others++) {
		struct credit_law *c = sending_long_train(test);

		send_window_twice(test, c, 10, 1158, others);
		KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
		KUNIT_EXPECT_EQ(test, c->fails, 0U);
		KUNIT_EXPECT_FALSE(test, c->repeated);
	}
}

/* Ten of more than thirty marks must find three times as much room. */
static void a_part_of_a_train_needs_more_room(struct kunit *test)
{
	struct credit_law *c = sending_long_train(test);

	send_window_twice(test, c, 10, 1158 * 3 / 2, true);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_FLOOR);
	KUNIT_EXPECT_EQ(test, c->growth_permille, 500U);
	KUNIT_EXPECT_EQ(test, c->fails, 1U);
}

/* Fewer marks than CREDIT_TRAIN_LEAST after the first two show nothing. */
static void a_train_is_not_judged_by_three_packets(struct kunit *test)
{
	struct credit_law *c = sending_long_train(test);

	send_window_twice(test, c, 5, 1158, true);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_FLOOR);
	KUNIT_EXPECT_EQ(test, c->fails, 0U);
	KUNIT_EXPECT_EQ(test, c->spoilt, 1U);
}

/* A longer route is not forgotten because of a window; but a full buffer loses packets. */
static void a_window_does_not_make_a_route_shorter(struct kunit *test)
{
	struct credit_law *c = sending_long_train(test);

	c->shift_us = 30000;
	c->shift_new = true;
	send_window(test, c, 10, 1158, false);
	KUNIT_EXPECT_EQ(test, c->shift_us, 30000U);
	send_window(test, c, 10, 1158, false);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_EQ(test, c->base_us, 130000U);
}

/* In CRUISE, only a train that found room at its time shows that the next one may wait longer. */
static void the_next_train_waits_after_room_alone(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->reprobe_us = CREDIT_REPROBE_US;
	c->ask_us = 0;
	judge(c, &train_rows[0], 400000);
	KUNIT_EXPECT_EQ(test, c->reprobe_us, 2 * CREDIT_REPROBE_US);
	c->ask_us = 0;
	judge(c, &train_rows[6], 400000);	/* no result */
	KUNIT_EXPECT_EQ(test, c->spoilt, 1U);
	KUNIT_EXPECT_EQ(test, c->reprobe_us, 2 * CREDIT_REPROBE_US);
	c->ask_us = T0 + 1;			/* before its time */
	judge(c, &train_rows[0], 400000);
	KUNIT_EXPECT_EQ(test, c->reprobe_us, 2 * CREDIT_REPROBE_US);
}

/* A capacity that seems to have halved a minute ago: a fair queue, unless the probes took longer. */
static void a_fair_queue_is_no_slower_link(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->gap_us = 1158;
	c->mu_us = T0;
	c->free_us = 1158;
	c->probed_us = 1158 + 400;
	KUNIT_EXPECT_FALSE(test, credit_is_slower(c, T0 + CREDIT_STALE_US, 2316));
	KUNIT_EXPECT_TRUE(test, credit_is_slower(c, T0 + CREDIT_STALE_TIMES / 2ULL * CREDIT_STALE_US,
						 2316));
	c->probed_us = 2316;
	KUNIT_EXPECT_FALSE(test, credit_is_slower(c, T0 + CREDIT_STALE_US - 1, 2316));
	KUNIT_EXPECT_TRUE(test, credit_is_slower(c, T0 + CREDIT_STALE_US, 2316));
	c->mu_us = 0;
	KUNIT_EXPECT_TRUE(test, credit_is_slower(c, T0, 2316));
}

/* The longer train of a noisy path does not give senders that cannot send it a higher rate. */
static void slow_senders_get_no_more_on_noisy_paths(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 i;

	c->mu_Bps = 25000000;
	c->noise_us = 4000;
	for (i = 0; i < CREDIT_SPOILT_MOST; i++) {
		c->jumped_us = 0;
		c->kept_Bps = 0;
		credit_probe(c, T0);
		credit_train_spoilt(c, T0, true);
		credit_train_spoilt(c, T0, true);	/* repeated */
	}
	KUNIT_EXPECT_GT(test, c->train_pkts, 500U);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_LE(test, c->rate_Bps, CREDIT_TRAIN * MSS * 10ULL);
}

/* A single train in CRUISE that meets a burst does not decide. With a fair queue each one fails. */
static void three_trains_end_cruise(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 i;

	for (i = 1; i < CREDIT_DOUBTS_MOST; i++) {
		judge(c, &train_rows[2], 400000);
		KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
		KUNIT_EXPECT_LE(test, c->ask_us, T0 + 1000000);
	}
	judge(c, &train_rows[2], 400000);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_FLOOR);
}

/* Whether R is short of what one more flow would leave is counted in each CRUISE anew. */
static void a_short_share_lasts_in_each_cruise(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->short_ticks = CREDIT_HIGH_TICKS;
	KUNIT_EXPECT_TRUE(test, credit_is_shared(c));
	credit_cruise(c, T0);
	KUNIT_EXPECT_FALSE(test, credit_is_shared(c));
}

/* A train that met no other traffic, perhaps between two bursts, at most doubles the rate. */
static void a_train_of_cruise_gives_as_much_again(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->rate_Bps = 400000;
	c->doubts = 1;
	judge(c, &train_rows[0], 400000);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_EQ(test, c->rate_Bps, 800000ULL);
	KUNIT_EXPECT_EQ(test, c->doubts, 0U);
}

/* A train behind a burst, and before the next one, does not raise the rate. */
static void a_train_behind_a_burst_gives_nothing(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->rate_Bps = 400000;
	judge_behind(c, &train_rows[0], 400000, credit_met_us(c));
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_EQ(test, c->rate_Bps, 400000ULL);
}

static void probes_among_bursts_keep_no_period(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 first_us;

	credit_yield(c, T0, 0);
	KUNIT_EXPECT_EQ(test, credit_dither_us(c, 25000), 0U);
	credit_on_probe(c, T0 + 100000, 0);
	credit_on_probe(c, T0 + 200000, 6000);
	first_us = credit_dither_us(c, 25000);
	KUNIT_EXPECT_LT(test, first_us, 25000U);
	KUNIT_EXPECT_NE(test, credit_dither_us(c, 25000), first_us);
}

/* With less than half of the path, a queue counts if it lasts for two ticks of eight samples. */
static void a_burst_takes_nothing_from_a_small_share(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->window_bytes = 30 * MSS;
	c->n_ticks = 2;
	c->ticks[0] = (struct credit_tick){ .queue_us = 300, .samples = CREDIT_TICK_SAMPLES };
	c->ticks[1] = (struct credit_tick){ .queue_us = 5000, .samples = CREDIT_TICK_SAMPLES };
	KUNIT_EXPECT_EQ(test, credit_lasting_queue(c, 5000), 300U);
	c->ticks[1].samples = 2 * CREDIT_TICK_SAMPLES;
	KUNIT_EXPECT_EQ(test, credit_lasting_queue(c, 5000), 5000U);
}

static void failures_fade(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	credit_yield(c, T0, 0);
	c->fails = 3;
	KUNIT_EXPECT_EQ(test, credit_fails(c, T0), 3U);
	KUNIT_EXPECT_EQ(test, credit_fails(c, T0 + CREDIT_MEMORY_US), 2U);
	KUNIT_EXPECT_EQ(test, credit_fails(c, T0 + 100ULL * CREDIT_MEMORY_US), 0U);
}

/* The rate that other traffic left limits R while that traffic is there, or if it was found to be
 * there after CRUISE had begun.
 */
static void what_was_left_is_forgotten(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->left_Bps = 200000;
	judge(c, &train_rows[0], 0);
	KUNIT_EXPECT_GT(test, c->rate_Bps, 1000000ULL);

	c = cruising(test);
	c->left_Bps = 200000;
	judge(c, &train_rows[1], 0);
	KUNIT_EXPECT_LE(test, c->rate_Bps, 180000ULL);

	c = cruising(test);
	c->left_Bps = 200000;
	c->regret = true;
	judge(c, &train_rows[0], 0);
	KUNIT_EXPECT_LE(test, c->rate_Bps, 180000ULL);
}

/* The least of eight to fifteen values does not contain a delay that comes and goes. */
static void what_is_longer_of_late_is_the_least_of_a_few(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 i;

	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 0U);
	credit_lately_add(&c->back, 70000);
	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 70000U);
	credit_lately_add(&c->back, 60);
	for (i = 2; i < 2 * CREDIT_LATELY; i++)
		credit_lately_add(&c->back, 40000);
	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 60U);
	credit_lately_add(&c->back, 40000);
	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 40000U);
	c->shift_us = 5000;
	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 45000U);
}

/* The one-way delay of each probe is 50 ms longer, and so is that of the way back. */
static struct credit_law *on_a_longer_route(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 i;

	credit_yield(c, T0, 0);
	for (i = 0; i < CREDIT_FLAT_SAMPLES; i++) {
		credit_lately_add(&c->back, 50000);
		credit_on_probe(c, T0 + i * CREDIT_FLAT_US / (CREDIT_FLAT_SAMPLES - 1), 50000);
	}
	KUNIT_EXPECT_EQ(test, c->shift_us, 50000U);
	KUNIT_EXPECT_EQ(test, c->base_us, 100000U);
	return c;
}

/* A longer way back needs no train, since it is no queue of data. */
static void a_longer_way_back_moves_the_base(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	struct credit_move moved;
	u32 i;

	credit_yield(c, T0, 0);
	for (i = 1; i < CREDIT_LATELY; i++) {
		credit_lately_add(&c->back, 30000);
		moved = credit_watch_back(c);
		KUNIT_EXPECT_EQ(test, moved.rtt_us, 0U);
	}
	KUNIT_EXPECT_EQ(test, c->base_us, 100000U);
	credit_lately_add(&c->back, 30000);
	moved = credit_watch_back(c);
	KUNIT_EXPECT_EQ(test, c->base_us, 130000U);
	KUNIT_EXPECT_EQ(test, moved.rtt_us, 30000U);
	KUNIT_EXPECT_EQ(test, moved.trip_us, 0U);
	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 0U);
	for (i = 0; i < 2 * CREDIT_LATELY; i++) {
		credit_lately_add(&c->back, 10000);
		moved = credit_watch_back(c);
		KUNIT_EXPECT_EQ(test, moved.rtt_us, 0U);
	}
}

/* The route is longer if a train finds room and loses nothing; otherwise a full queue has the same
 * constant delay.
 */
static void a_train_confirms_a_longer_route(struct kunit *test)
{
	struct credit_law *c = on_a_longer_route(test);
	struct credit_move moved = judge(c, &train_rows[0], 0);

	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_CRUISE);
	KUNIT_EXPECT_EQ(test, c->base_us, 200000U);
	KUNIT_EXPECT_EQ(test, moved.rtt_us, 100000U);
	KUNIT_EXPECT_EQ(test, moved.trip_us, 50000U);
	KUNIT_EXPECT_EQ(test, c->shift_us, 0U);
	KUNIT_EXPECT_EQ(test, credit_longer_us(c), 0U);
	KUNIT_EXPECT_EQ(test, c->window_bytes, 1225000 / 5 + 2U * MSS);

	c = on_a_longer_route(test);
	moved = judge(c, &train_rows[1], 0);
	KUNIT_EXPECT_EQ(test, c->phase, CREDIT_FLOOR);
	KUNIT_EXPECT_EQ(test, c->base_us, 100000U);
	KUNIT_EXPECT_EQ(test, moved.rtt_us, 0U);
	KUNIT_EXPECT_EQ(test, c->shift_us, 0U);
}

/* Five packets arrive together after half of a packet's time, and then comes a pause. This happens
 * on a radio link, and not in a fair queue.
 */
static void a_link_in_bunches_is_slower_now(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u32 jump_us = credit_jump_us(c), i;

	c->kept_Bps = 0;
	c->fails = 3;
	credit_probe(c, T0);
	for (i = 0; i < c->train_marks; i++) {
		u64 at_us = T0 + (i < 3 ? 0 : i < 8 ? 600 : 20 * 1158);

		c->bytes += MSS;
		credit_on_bunch(c, i, at_us);
		credit_on_train(c, i, at_us, T0 + i * 1158);
	}
	credit_judge(c, T0 + 200000);
	KUNIT_EXPECT_EQ(test, credit_packet_us(c), 1544U);
	KUNIT_EXPECT_EQ(test, c->pause_us, (20 * 1158 - 600 - 1158) / 2U);
	KUNIT_EXPECT_LE(test, c->fails, 1U);
	KUNIT_EXPECT_EQ(test, credit_jump_us(c), max(jump_us, 5 * 1544U) + c->pause_us);
	credit_fade_bunches(c, T0 + 200001 + CREDIT_BUNCHED_US);
	KUNIT_EXPECT_EQ(test, c->pause_us, 0U);
}

struct use_row {
	const char *name;
	u32 every_us, bytes;	/* distance and size of ten arrivals */
	u32 used_bytes;		/* expected for a round trip of 100 ms */
	bool paused;
};

static const struct use_row use_rows[] = {
	{ "ten packets a round trip", 10000, MSS, 10 * MSS, false },
	{ "one each 101 ms", 101000, MSS, MSS, false },
	{ "one each four round trips", 400000, MSS, MSS, false },
	{ "one each 401 ms", 401000, MSS, (u32)(MSS * 100000ULL / 401000), true },
	{ "two at once each second", 1000000, 2 * MSS, MSS, true },
	{ "the most that a count holds", 10000, U32_MAX / 16, U32_MAX / 16 * 10, false },
};

static void use_describe(const struct use_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(use, use_rows, use_describe);

static void use_is_counted_over_its_time(struct kunit *test)
{
	const struct use_row *row = test->param_value;
	struct credit_use u = {};
	u32 i;

	KUNIT_EXPECT_EQ(test, credit_use_trip(&u, MSS), 0U);
	for (i = 0; i < 10; i++)
		credit_use_add(&u, T0 + (u64)i * row->every_us, 100000, row->bytes);
	KUNIT_EXPECT_EQ(test, credit_use_trip(&u, MSS), row->used_bytes);
	KUNIT_EXPECT_EQ(test, u.paused, row->paused);
}

/* A sender may answer credit as late, and write as wrong timestamps, as it likes. */

static void late_answers_are_bounded(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u64 now_us = T0;
	int i;

	/* with S32_MAX, twice the round trip with a queue of 1 us would be 0 */
	c->base_us = credit_bounded_us(U64_MAX);
	KUNIT_EXPECT_EQ(test, c->base_us, CREDIT_RTT_MAX_US);
	for (i = 0; i < 64; i++) {
		now_us += credit_tick_len_us(c) / 8;
		credit_on_data(c, now_us, MSS, 1);
	}
	KUNIT_EXPECT_GT(test, c->n_ticks, 1U);
}

static void wrong_delays_are_bounded(struct kunit *test)
{
	struct credit_law *c = new_path(test);
	u64 now_us = T0;
	int i;

	for (i = 0; i < 1000; i++) {
		now_us += 100;
		credit_on_data(c, now_us, MSS, i % 4 ? CREDIT_NO_QUEUE - 1 : 0);
	}
	KUNIT_EXPECT_GT(test, c->noise_us, 0U);
	KUNIT_EXPECT_LE(test, c->noise_us, CREDIT_RTT_MAX_US);
	c->base_us = CREDIT_RTT_MAX_US;
	credit_yield(c, now_us, credit_blind_us(c));
	KUNIT_EXPECT_EQ(test, c->blind_us, now_us + CREDIT_RTT_MAX_US);
	c->shift_us = CREDIT_RTT_MAX_US;
	credit_move_route(c);
	KUNIT_EXPECT_EQ(test, c->base_us, CREDIT_RTT_MAX_US);
}

/* A train that nobody answers goes on when a download comes after half an hour. */
static void marks_may_be_far_apart(struct kunit *test)
{
	struct credit_law *c = cruising(test);
	u64 sent_us = T0 + CREDIT_RTT_MAX_US, us;

	credit_probe(c, sent_us);
	us = sent_us - CREDIT_RTT_MAX_US;
	credit_on_train(c, 0, us, us);
	credit_on_train(c, 1, us, us);
	us = sent_us + S32_MAX;
	credit_on_train(c, 2, us, us);
	KUNIT_EXPECT_GT(test, c->train_least_us, 1000U * 1000000);
}

static void w_has_bounds(struct kunit *test)
{
	struct credit_law *c = cruising(test);

	c->window_bytes = 2 * MSS;
	credit_take_mss(c, 8948);
	KUNIT_EXPECT_EQ(test, c->window_bytes, 2U * 8948);
	c->phase = CREDIT_START;
	c->base_us = CREDIT_RTT_MAX_US;
	c->rate_Bps = 1ULL << 30;
	credit_on_data(c, T0, MSS, CREDIT_NO_QUEUE);
	KUNIT_EXPECT_EQ(test, c->window_bytes, CREDIT_WINDOW_MAX_BYTES);
}

static struct kunit_case credit_cases[] = {
	KUNIT_CASE_PARAM(paths_have_their_scales, path_gen_params),
	KUNIT_CASE(rates_do_not_overflow),
	KUNIT_CASE(an_empty_queue_lets_w_grow),
	KUNIT_CASE(a_foreign_jump_ends_cruise),
	KUNIT_CASE(our_own_queue_does_not),
	KUNIT_CASE(losses_tell_of_a_short_buffer),
	KUNIT_CASE(random_losses_cost_nothing),
	KUNIT_CASE(start_ends_with_losses),
	KUNIT_CASE_PARAM(trains_decide, train_gen_params),
	KUNIT_CASE(slow_senders_are_let_go),
	KUNIT_CASE(a_train_longer_than_a_window_is_repeated),
	KUNIT_CASE(a_part_of_a_train_needs_more_room),
	KUNIT_CASE(a_train_is_not_judged_by_three_packets),
	KUNIT_CASE(a_window_does_not_make_a_route_shorter),
	KUNIT_CASE(the_next_train_waits_after_room_alone),
	KUNIT_CASE(a_fair_queue_is_no_slower_link),
	KUNIT_CASE(slow_senders_get_no_more_on_noisy_paths),
	KUNIT_CASE(three_trains_end_cruise),
	KUNIT_CASE(a_short_share_lasts_in_each_cruise),
	KUNIT_CASE(a_train_of_cruise_gives_as_much_again),
	KUNIT_CASE(a_train_behind_a_burst_gives_nothing),
	KUNIT_CASE(probes_among_bursts_keep_no_period),
	KUNIT_CASE(a_burst_takes_nothing_from_a_small_share),
	KUNIT_CASE(failures_fade),
	KUNIT_CASE(what_was_left_is_forgotten),
	KUNIT_CASE(what_is_longer_of_late_is_the_least_of_a_few),
	KUNIT_CASE(a_longer_way_back_moves_the_base),
	KUNIT_CASE(a_train_confirms_a_longer_route),
	KUNIT_CASE(a_link_in_bunches_is_slower_now),
	KUNIT_CASE_PARAM(use_is_counted_over_its_time, use_gen_params),
	KUNIT_CASE(late_answers_are_bounded),
	KUNIT_CASE(wrong_delays_are_bounded),
	KUNIT_CASE(marks_may_be_far_apart),
	KUNIT_CASE(w_has_bounds),
	{}
};

static struct kunit_suite credit_suite = {
	.name = "vulture_credit",
	.test_cases = credit_cases,
};

kunit_test_suite(credit_suite);

MODULE_DESCRIPTION("KUnit tests of vulture's law of credit");
MODULE_LICENSE("GPL");
