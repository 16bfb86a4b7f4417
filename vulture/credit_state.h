/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: the state of a path with its units, the constants, and how START and
 * FLOOR are entered. The law is at the head of credit.h.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_STATE_H
#define VULTURE_CREDIT_STATE_H

#include <lbe/arith.h>

/* Number of ticks that are kept. Four are a round trip without queueing delay; 16 leave room for a
 * queueing delay of three such round trips.
 */
#define CREDIT_TICKS		16
/* Shortest tick, us. With half of it, a tick on a short path has fewer packets and noise counts as
 * queue; with twice as much, a burst of other traffic on a 6 ms path is seen a round trip later.
 */
#define CREDIT_TICK_MIN_US	4000U
/* Samples of a tick, unless a round trip has fewer. The least of so many is free of bursts. With
 * twice as many, a tick lasts twice as long if the share of the path is small.
 */
#define CREDIT_TICK_SAMPLES	8
/* Packets in front of the measured ones of a train. They keep the bottleneck busy although the
 * window's unit releases packets unevenly. Twice as many add 2.4 ms of delay at 10 Mbit/s.
 */
#define CREDIT_TRAIN_PRIME	2
/* Measured packets of a train. With eight, a jitter of p in the sender makes an error of 1/8 in g.
 * Twice as many halve the error and double the load on other traffic.
 */
#define CREDIT_TRAIN_PKTS	8
/* On noisy paths a train lasts for 8 times the noise, but no longer than this, us. With half of it,
 * the error of g doubles where delays vary by more than 10 ms; with twice as much, the train is
 * twice the load on other traffic.
 */
#define CREDIT_TRAIN_MOST_US	50000U
/* Measured packets at most. Of a longer train every second, third, ... packet is measured. Twice as
 * many reduce the error of g by the square root of two, for twice the memory.
 */
#define CREDIT_TRAIN_MARKS	40
#define CREDIT_TRAIN		(CREDIT_TRAIN_PRIME + CREDIT_TRAIN_MARKS)
/* With fewer measured packets than this a train has failed. */
#define CREDIT_TRAIN_LEAST	4
/* Target of the queueing delay, us, and in packets: one packet, and one because of delayed ACKs.
 * 2 ms are two ticks of the peer's timestamps. Twice as much adds twice the delay to other traffic.
 */
#define CREDIT_TARGET_US	2000U
#define CREDIT_TARGET_PKTS	2
/* A rise of the queueing delay that is no noise, us, and in packets: half of an initial window, and
 * near the lower end of the 4 to 16 ms at which HyStart ends a slow start. With twice as much,
 * competing flows leave slow start early because of this traffic; with half, a jitter of 3 ms ends
 * CRUISE.
 */
#define CREDIT_JUMP_US		6000U
#define CREDIT_JUMP_PKTS	5
/* Share of mu that the probes of FLOOR may take, 1/1000. A greedy competing flow loses this share
 * for as long as it lasts. Half of it doubles the time until its end is noticed.
 */
#define CREDIT_FLOOR_PERMILLE	6
/* Longest interval between probes, us, where trains fail although probes meet no queue. With twice
 * as much, a path that has become free is noticed twice as late; with half, other traffic meets
 * twice as many trains.
 */
#define CREDIT_RARE_US		5000000U
/* Time for which the W that met a queue, and a failed train, are remembered, us: a few sawteeth of
 * competing flows. With twice as much, it takes twice as long until W grows faster again; with
 * half, W runs into the queue at each sawtooth.
 */
#define CREDIT_MEMORY_US	10000000U
/* Time after which a capacity that nothing has confirmed is replaced, us, if trains come half as
 * fast; a fifth of this if they come at a tenth of it. Competing flows in a fair queue last less
 * long. With twice as much, a path that has become slower is used little for twice as long; with
 * half, the share that other traffic leaves is taken for the capacity sooner.
 */
#define CREDIT_STALE_US		60000000U
/* So many p / p' times longer if the probes of FLOOR do not confirm that packets take longer, as on
 * a path whose minima are later than the change. With twice as many, a link that has become slower
 * by half is then used little for five minutes longer; with half, each competing flow in a fair
 * queue loses half of the link after two minutes and a half.
 */
#define CREDIT_STALE_TIMES	10
/* Samples in FLOOR that agree for this time, us, and are at least so many, are taken for the new
 * base delay of the path. With twice as much, a longer route is learnt twice as late; with half, a
 * short buffer that is full looks like a longer route.
 */
#define CREDIT_FLAT_US		8000000U
#define CREDIT_FLAT_SAMPLES	16
/* The increase of the delay of the way back is the least over so many probes, and over as many
 * before them. With half as many, it contains bursts of other traffic on that way; with twice as
 * many, a longer way back is known after twice as many probes.
 */
#define CREDIT_LATELY		8
/* Ticks in a row with a queue that dW does not remove, after which CRUISE yields: one round trip
 * until a smaller W has an effect, and one until the queue has drained. With half as many, CRUISE
 * sometimes ends beside traffic that leaves a constant rate; with twice as many, a flow that grows
 * slowly is given way two round trips later.
 */
#define CREDIT_HIGH_TICKS	8
/* If a queue appears within this many halves of a round trip after CRUISE has begun, other traffic
 * was there when it began. Data of the new W arrives in the second round trip. With twice as many,
 * traffic that begins only then counts too; with half, the queue has not been seen yet.
 */
#define CREDIT_REGRET_HALVES	3

/* CRUISE with a part of mu and no queue has either what other traffic leaves, or its share of a
 * fair queue. Neither can be told from an empty path by delay, but by a train. This is the time
 * until the first train, us; each one that finds room doubles it. With twice as much, a competing
 * flow in a fair queue waits longer.
 */
#define CREDIT_REPROBE_US	1500000U
#define CREDIT_REPROBE_MOST_US	48000000U
/* Number of such trains in a row that must fail to end CRUISE. With one less, bursts of other
 * traffic end a rightful CRUISE each minute; with one more, a competing flow in a fair queue waits
 * three round trips longer.
 */
#define CREDIT_DOUBTS_MOST	3

/* The capacity is measured over at least this many times the noise: what the noise moves into such
 * a span is at most 1/16 of it. With half as many, mu is too high by up to twice that part and
 * stays so, and the missing rest looks like other traffic; with twice as many, a faster path is
 * recognized after twice the time.
 */
#define CREDIT_SPAN		32

/* Fewer packets than this in a round trip say nothing about the capacity. With twice as many, that
 * of a path with a pipe of few packets is found by trains alone; with half, the rate at which an
 * application writes is taken for it.
 */
#define CREDIT_LEAST_PKTS	8
/* A slow start that loses one packet in so many has filled a buffer of a few packets, since no link
 * loses that much. Some links do lose half of that part; with twice that part, other traffic loses
 * as much, for a second longer.
 */
#define CREDIT_LOST_PART	16

/* Most noise that is learnt beside other traffic, us: half of the target. With twice as much, the
 * bursts of that traffic hide its queue, and these flows take half of a short queue that their ACKs
 * share; with none, after each random loss of a link the bursts of retransmitted data look like a
 * queue of other traffic.
 */
#define CREDIT_NOISE_BESIDE_US	1000U

/* If p is shorter than this, us, packets that arrive together say nothing about the link, because
 * receivers process several at once. With twice as much, pauses of links of 24 Mbit/s and more are
 * not recognized; with half, the interrupts of a fast link look like such pauses.
 */
#define CREDIT_BUNCH_US		250U
/* Longest pause that is attributed to a link, us, so that an outage does not hide other traffic for
 * long. With half or twice as much, the use of two recorded cellular links changes by less than a
 * fiftieth.
 */
#define CREDIT_LINK_PAUSE_US	40000U

/* Time for which a link is taken for one that serves in bunches after a train has shown it, us:
 * longer than CRUISE goes without a train. With half, recorded cellular links are used less; with
 * twice as much, what was learnt of an earlier link affects other traffic for longer.
 */
#define CREDIT_BUNCHED_US	60000000U

/* Longest round trip, longest queueing delay and longest time without credit, us. No network has
 * longer ones, but a sender may answer credit as late, and write as wrong timestamps, as it likes.
 * With twice as much, such a sender keeps the other flows of its path without credit for twice as
 * long; a sum of two round trips stays below 2^31 up to 17 minutes.
 */
#define CREDIT_RTT_MAX_US	64000000U

/* Largest W: TCP's own windows are smaller. Twice as much is compared as if it were below 0. */
#define CREDIT_WINDOW_MAX_BYTES	(1U << 30)

/* A sender that was silent for this long in a train, us, waited for something other than the next
 * credit: four ticks of usual timestamps. With half, an ACK that was held up looks like that; with
 * twice as much, windows that are shorter than a train are not recognized on paths of 8 ms.
 */
#define CREDIT_REST_US		4000U

#define CREDIT_NO_QUEUE		U32_MAX
#define CREDIT_SPOILT		20000U	/* as g: the train has no result */
/* Trains in a row without a result, after which CRUISE begins without one. With twice as many,
 * senders with small windows wait twice as long; with half, one train whose ACKs were held up lets
 * the download go on beside other traffic.
 */
#define CREDIT_SPOILT_MOST	3

enum credit_phase { CREDIT_START, CREDIT_CRUISE, CREDIT_FLOOR, CREDIT_PROBE };

struct credit_tick {
	u64 at_us;	/* its end */
	u64 bytes;	/* credit_law.bytes at its end */
	u32 queue_us;	/* its queueing delay, or CREDIT_NO_QUEUE */
	u32 mean_us;	/* mean of its samples; 0 = no sample */
	u32 samples;
};

/* A mark of the train that has arrived */
struct credit_came {
	bool came;
	s32 arrived_us, sent_us;	/* since the train began */
	u32 bytes;			/* that had arrived since then */
};

/* The minimum of the latest values: of between CREDIT_LATELY and twice as many. */
struct credit_lately {
	u32 least[2];	/* of the present group of CREDIT_LATELY, and of the one before */
	u32 n;		/* values; 0 = none yet */
};

/* By how much a route has become longer, us; 0 = it has not. The minima of the flows are to be
 * raised by this.
 */
struct credit_move {
	u32 rtt_us;	/* the round trip */
	u32 trip_us;	/* of that the way of data */
};

/* One path. Written under the path's lock by whichever flow has an event. */
struct credit_law {
	enum credit_phase phase;
	u64 since_us;		/* begin of the phase, our clock */
	u32 mss_bytes;		/* largest segment seen, bytes */
	u32 flows;		/* active */
	u32 base_us;		/* least round trip, us, CREDIT_RTT_MAX_US at most; 0 = none yet */
	u32 window_bytes;	/* W */
	u64 mu_Bps;		/* bytes/s; 0 = none yet */
	u64 mu_us;		/* when arrivals last confirmed mu; 0 = never: it is a guess */
	u64 rate_Bps;		/* r; R in CRUISE until W has been handed out */
	u64 bytes, lost_bytes;	/* all arrivals; of them those that had been lost before */

	/* The present tick */
	u64 tick_us;		/* its begin */
	u64 first_us, first_bytes, latest_us;	/* first and latest arrival in it */
	u32 arrivals;
	u32 least_us;		/* least sample of the queueing delay, or CREDIT_NO_QUEUE */
	bool lost;		/* a loss was detected in it */
	u64 lost_us;		/* when the latest loss was detected, also in an earlier tick */
	u64 sum_us;		/* sum of its samples of the queueing delay */
	u32 samples;
	u32 noise_us;		/* e */
	u32 pause_us;		/* z; 0 = the link has one rate */
	u64 bunched_us;		/* when a train last showed that it serves in bunches; 0 = never */
	u64 bunched_Bps;	/* largest mu until the first such train */
	u64 fast_Bps;		/* largest mu ever */
	u32 back_us;		/* mean time for which the way back and the sender delay credit */
	struct credit_tick ticks[CREDIT_TICKS];
	u32 n_ticks;		/* ticks so far, from 0 in each CRUISE; modulo, the ring's index */

	/* CRUISE */
	bool filling;		/* W is being handed out at R; arrivals bring no credit */
	u32 low_ticks;		/* ticks in a row with q < qt / 2 */
	u32 high_ticks;		/* ticks in a row above 2 qt, not by these flows' own queue */
	u32 short_ticks;	/* ticks in a row with r below credit_alone_Bps() */
	u32 high_row, jump_row;	/* samples in a row above 2 qhi; above the last tick's q + qhi */
	u64 row_us;		/* begin of jump_row */
	u64 quiet_us, quiet_bytes;	/* time and arrivals at the latest sample below qt */
	u32 peak_bytes;		/* largest W since CRUISE began */
	u32 rose_bytes;		/* W that met a queue last */
	u64 rose_us;		/* when it did */
	u64 left_Bps;		/* rate that other traffic left before the latest yield;
				 * 0 = not known
				 */
	bool regret;		/* that traffic had been there when CRUISE began */
	u64 jumped_us;		/* begin of CRUISE */
	u64 kept_Bps;		/* r when CRUISE sent a train; 0 = the train is not CRUISE's */
	u32 reprobe_us;		/* interval between such trains */
	u64 ask_us;		/* time of the next one */
	u32 doubts;		/* number of them in a row that failed */

	/* FLOOR */
	u64 blind_us;		/* no credit before this time */
	u64 probe_us;		/* time of the next probe */
	u32 fails, tried;	/* failed trains in a row; the same when CRUISE last began */
	u32 score, deep;	/* evidence of an empty path; probes in a row with a deep queue */
	bool bursts;		/* a probe met a queue after others had met none */
	u32 random;		/* state of the generator */
	u32 shift_us;		/* what a longer route adds to every q */
	bool shift_new;		/* no train has confirmed shift_us yet */
	u32 flat_min_us, flat_max_us, flat_samples;	/* range and number of samples that agree */
	u64 flat_us;		/* since when they agree */
	u32 probed_us;		/* least time from credit to data, less its minimum, of probes
				 * since CRUISE; CREDIT_NO_QUEUE = none
				 */
	u32 free_us;		/* the same when a train last had g < 0.1: of a minimum of shorter
				 * packets, what those of data take longer
				 */
	struct credit_lately back;	/* of probes since CRUISE: excess of the time from credit to
					 * data over the one-way delay
					 */

	/* PROBE and filling */
	u64 slot_us;		/* time of the next credit */
	u64 train_end_us;	/* verdict at the latest; 0 = the train is not all out */
	u32 gap_us;		/* p when the train began */
	u32 spoilt;		/* trains in a row without a result */
	bool repeated;		/* the train repeats one without a result */
	u32 train_pkts;		/* length of the train, with the first two packets */
	u32 train_step;		/* after the first two, one of so many packets is a mark */
	u32 train_marks;	/* marks, with the first two packets */
	u32 train_sent, train_got;	/* packets for which credit is out; marks that arrived */
	u32 train_high;		/* number of the furthest mark that arrived, plus one */
	u32 train_cut;		/* marks that arrived late because their sender held them back */
	u32 train_cut_at;	/* the lowest number of these; U32_MAX = none */
	u64 train_bytes;	/* credit_law.bytes when the train began */
	struct credit_came train[CREDIT_TRAIN];	/* by number of the mark */
	s32 train_late_us[2];	/* times of the latest two arrivals */
	u32 train_least_us;	/* least spacing of marks, as the mean of two gaps */
	u64 bunch_us;		/* arrival of the latest mark, our clock; 0 = none yet */
	u32 bunch_most_us;	/* longest gap between marks */
	s32 bunch_early_us;	/* how much sooner than at p marks came, since a bunch began */
	bool bunched;		/* they came sooner than a bottleneck of one rate sends them */
	bool bunch_mixed;	/* they came in another order */
	u32 train_queue_us;	/* queueing delay of the first packet */
	u32 growth_permille;	/* g of the latest train */

	u64 yields, trains, failed;	/* counters */
};

/* A delay as it was measured, within bounds, us */
static inline u32 credit_bounded_us(u64 us)
{
	return (u32)min_t(u64, us, CREDIT_RTT_MAX_US);
}

static inline void credit_lately_add(struct credit_lately *l, u32 value)
{
	if (l->n++ % CREDIT_LATELY == 0) {
		l->least[1] = l->n == 1 ? U32_MAX : l->least[0];
		l->least[0] = U32_MAX;
	}
	l->least[0] = min(l->least[0], value);
}

/* Return: the minimum, 0 without a value. */
static inline u32 credit_lately(const struct credit_lately *l)
{
	return l->n ? min(l->least[0], l->least[1]) : 0;
}

/* What a route that may have become longer adds to a round trip, us: on the way of data and on the
 * way back.
 */
static inline u32 credit_longer_us(const struct credit_law *c)
{
	return c->shift_us + credit_lately(&c->back);
}

/* Time of a packet at a rate, us; 0 if the rate is not known. */
static inline u32 credit_packet_at_us(const struct credit_law *c, u64 Bps)
{
	return Bps ? (u32)min_t(u64, div64_u64(c->mss_bytes * 1000000ULL, Bps), 1000000) : 0;
}

/* p, us */
static inline u32 credit_packet_us(const struct credit_law *c)
{
	return credit_packet_at_us(c, c->mu_Bps);
}

/* p at the largest mu ever, us */
static inline u32 credit_least_packet_us(const struct credit_law *c)
{
	return credit_packet_at_us(c, max(c->fast_Bps, c->mu_Bps));
}

static inline void credit_forget_bunches(struct credit_law *c)
{
	c->bunched_us = 0;
	c->pause_us = 0;
}

static inline void credit_fade_bunches(struct credit_law *c, u64 now_us)
{
	if (c->bunched_us && now_us - c->bunched_us > CREDIT_BUNCHED_US)
		credit_forget_bunches(c);
}

/* qt. As q is the least of a tick, noise raises it little. */
static inline u32 credit_target_us(const struct credit_law *c)
{
	return max_t(u32, CREDIT_TARGET_US, CREDIT_TARGET_PKTS * credit_packet_us(c)) +
	       c->noise_us / 4;
}

/* A single packet with a longer queueing delay met a queue. Noise may raise it by twice e. */
static inline u32 credit_met_us(const struct credit_law *c)
{
	return credit_target_us(c) + 2 * c->noise_us;
}

/* qhi. Packets of several flows may arrive together by chance: each further flow adds p / 4, up to
 * 16 flows.
 */
static inline u32 credit_jump_us(const struct credit_law *c)
{
	u32 p_us = credit_packet_us(c);
	u32 us = max_t(u32, CREDIT_JUMP_US, CREDIT_JUMP_PKTS * p_us) + 2 * c->noise_us +
		 c->pause_us;

	return c->flows > 1 ? us + min_t(u32, c->flows - 1, 16) * p_us / 4 : us;
}

static inline u32 credit_tick_len_us(const struct credit_law *c)
{
	return max3(c->base_us / 4, 4 * credit_packet_us(c), CREDIT_TICK_MIN_US);
}

/* With less than half of the path credit goes out evenly. If it followed arrivals it would stay in
 * step with the bursts behind which the data came, and the next data would meet them again.
 */
static inline bool credit_spreads(const struct credit_law *c)
{
	return c->phase == CREDIT_CRUISE && !c->filling &&
	       (u64)c->window_bytes * 2000000 < c->mu_Bps * c->base_us;
}

/* A queue that lasts for less than this was a burst, us. */
static inline u32 credit_burst_us(const struct credit_law *c)
{
	return min(8 * credit_packet_us(c), credit_tick_len_us(c));
}

/* What arrives at a rate in a time, bytes. */
static inline u32 credit_bytes_of(u64 Bps, u32 us)
{
	return (u32)min_t(u64, div_u64(min_t(u64, Bps, 1ULL << 40) * us, 1000000),
			  CREDIT_WINDOW_MAX_BYTES);
}

static inline u64 credit_rate_of(u64 bytes, u64 us)
{
	return us ? div64_u64(bytes * 1000000, us) : 0;
}

/* Length of a slow start from 10 packets to the pipe, plus two round trips, us. */
static inline u64 credit_blind_us(const struct credit_law *c)
{
	u32 tens = credit_bytes_of(c->mu_Bps, c->base_us) / (10 * c->mss_bytes);
	u32 trips = 2;

	while (tens >>= 1)
		trips++;
	return (u64)trips * c->base_us;
}

/* Number of failures that count: each CREDIT_MEMORY_US in FLOOR forgets one. Beside traffic that
 * leaves a part of the path most probes meet a queue, and the score for many failures would never
 * be reached.
 */
static inline u32 credit_fails(const struct credit_law *c, u64 now_us)
{
	u64 faded = div_u64(now_us - c->since_us, CREDIT_MEMORY_US);

	return c->fails - (u32)min_t(u64, faded, c->fails);
}

/* P: a sixth of the time in FLOOR so far, but no more than the period that takes
 * CREDIT_FLOOR_PERMILLE of mu, and in any case a round trip and a quarter at least.
 */
static inline u32 credit_period_us(const struct credit_law *c, u64 now_us)
{
	u64 least = c->base_us * 5ULL / 4;
	u64 budget = credit_packet_us(c) * 1000ULL / CREDIT_FLOOR_PERMILLE;
	u64 sixth = div_u64(now_us - c->since_us, 6);
	u32 fails = credit_fails(c, now_us);

	u64 us = max(min(max(sixth, least), budget), least);

	/* Trains fail although probes meet no queue: there is fair queueing, or other traffic that
	 * sends in bursts. Each train is a load on it, so they become rarer.
	 */
	if (fails >= 2 && c->score)
		us = max_t(u64, us, min_t(u64, (u64)c->base_us << min(fails - 1, 10U),
					  CREDIT_RARE_US));
	return (u32)us;
}

/* A random time up to @most_us, uniformly distributed. */
static inline u32 credit_random_us(struct credit_law *c, u32 most_us)
{
	c->random = c->random * 1664525 + 1013904223;
	return (u32)((u64)most_us * c->random >> 32);
}

/* Other traffic that sends in bursts may have a period, of which probes at a fixed interval would
 * always meet the same part. Return: by how much a probe is delayed at random, us.
 */
static inline u32 credit_dither_us(struct credit_law *c, u32 most_us)
{
	return c->bursts ? credit_random_us(c, most_us) : 0;
}

static inline void credit_init_law(struct credit_law *c, u64 now_us)
{
	memset(c, 0, sizeof(*c));
	c->phase = CREDIT_START;
	c->since_us = now_us;
	c->random = (u32)now_us;
	c->window_bytes = 65535;	/* the most that a handshake advertises */
	c->least_us = CREDIT_NO_QUEUE;
	c->probed_us = CREDIT_NO_QUEUE;
}

/* A flow has segments of this size. In CRUISE W holds two of them: with less, no credit would go
 * out, and W would not change without arrivals.
 */
static inline void credit_take_mss(struct credit_law *c, u32 mss_bytes)
{
	c->mss_bytes = max(c->mss_bytes, mss_bytes);
	if (c->phase == CREDIT_CRUISE)
		c->window_bytes = max(c->window_bytes, 2 * c->mss_bytes);
}

static inline void credit_begin_tick(struct credit_law *c)
{
	c->least_us = CREDIT_NO_QUEUE;
	c->lost = false;
	c->arrivals = 0;
	c->samples = 0;
	c->sum_us = 0;
}

static inline void credit_enter(struct credit_law *c, enum credit_phase phase, u64 now_us)
{
	c->phase = phase;
	c->since_us = now_us;
	c->low_ticks = 0;
	c->high_ticks = 0;
	c->short_ticks = 0;
	c->high_row = 0;
	c->jump_row = 0;
}

/**
 * credit_yield() - enter FLOOR
 * @c: law
 * @now_us: our clock
 * @blind_us: time without any credit
 */
static inline void credit_yield(struct credit_law *c, u64 now_us, u64 blind_us)
{
	credit_enter(c, CREDIT_FLOOR, now_us);
	c->blind_us = now_us + credit_bounded_us(blind_us);
	c->probe_us = c->blind_us;
	c->score = 0;
	c->deep = 0;
	c->bursts = false;
	c->flat_samples = 0;
	c->kept_Bps = 0;
	c->doubts = 0;
	c->window_bytes = 0;
	c->repeated = false;
	c->yields++;
}

/* CRUISE gives way to other traffic. @failed: that was there when CRUISE began, so that the train
 * before it counts as failed.
 */
static inline void credit_yield_to_others(struct credit_law *c, u64 now_us, bool failed)
{
	u64 quiet_us = now_us - c->quiet_us, left_Bps = c->mu_Bps;

	c->fails = failed ? c->tried + 1 : 0;
	if (quiet_us > c->base_us / 8)
		left_Bps = credit_rate_of(c->bytes - c->quiet_bytes, quiet_us);
	/* The traffic was there when CRUISE began: halve the limit of the next R. */
	c->regret = now_us - c->jumped_us < c->base_us * (u64)CREDIT_REGRET_HALVES / 2;
	if (c->regret)
		left_Bps = min(left_Bps, c->left_Bps ? c->left_Bps : c->mu_Bps) / 2;
	c->left_Bps = max(left_Bps, div_u64(c->mu_Bps, 20));
	c->rose_bytes = c->window_bytes;
	c->rose_us = now_us;
	credit_yield(c, now_us, credit_blind_us(c));
}

/* A rate above this shows that these flows have the path to themselves: half of the rest would be
 * the share of a single competing flow in a fair queue. It is 0.95 of mu at most, as the rate of a
 * round trip alone varies by a twentieth.
 */
static inline u64 credit_alone_Bps(const struct credit_law *c)
{
	return c->mu_Bps - div_u64(c->mu_Bps, clamp(2 * (c->flows + 1), 10U, 20U));
}

/* Whether other traffic seems to have a part of the path, at once if that is a tenth. */
static inline bool credit_is_shared(const struct credit_law *c)
{
	return c->rate_Bps < c->mu_Bps / 10 * 9 || c->short_ticks >= CREDIT_HIGH_TICKS;
}

/* Whether the queue is that of these flows: since it was last short, other traffic had less of the
 * bottleneck's time than half of the queue takes plus a twelfth of the time since. The twelfth is
 * for ACKs that share the link (those of these flows take 1/22) and for an equal error of mu. With
 * twice that part, a slow start of a competing flow that has a seventh of the path is not noticed;
 * with half, the flows' own ACKs end CRUISE.
 */
static inline bool credit_is_own(const struct credit_law *c, u64 now_us, u32 queue_us)
{
	u64 time_us = now_us - c->quiet_us, others_us = time_us / 12 + queue_us / 2;

	return others_us >= time_us ||
	       (c->bytes - c->quiet_bytes) * 1000000 >= (time_us - others_us) * c->mu_Bps;
}

#endif /* VULTURE_CREDIT_STATE_H */
