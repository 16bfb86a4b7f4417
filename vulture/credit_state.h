/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: what is known of a path, in which units, and the ways to START and
 * FLOOR. The law is at the head of credit.h.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_STATE_H
#define VULTURE_CREDIT_STATE_H

#include <lbe/arith.h>

/* Ticks that are kept: 4 are a round trip, 16 leave room for a queue of three. */
#define CREDIT_TICKS		16
/* Least tick, us. Half of it: fewer packets a tick on short paths, noise counts
 * as queue; twice: a foreign burst on a 6 ms path is seen a round trip later.
 */
#define CREDIT_TICK_MIN_US	4000U
/* Samples of a tick, unless a round trip has fewer: the least of them is then free of
 * bursts. Twice: with a small share a tick lasts twice as long.
 */
#define CREDIT_TICK_SAMPLES	8
/* Packets in front of a train: with them the bottleneck stays busy although the
 * window's unit releases packets unevenly. Twice: 2.4 ms more delay at 10 Mbit/s.
 */
#define CREDIT_TRAIN_PRIME	2
/* Packets that are measured: a sender's jitter of p makes g err by p / 8 p. Twice:
 * half of the error for twice the cost to others.
 */
#define CREDIT_TRAIN_PKTS	8
/* On noisy paths the train lasts 8 times the noise, but no longer than this, us. Half of it:
 * g errs by twice as much where packets swing by more than 10 ms; twice: others meet twice
 * the train.
 */
#define CREDIT_TRAIN_MOST_US	50000U
/* Of more packets than this each second, third, ... is measured. Twice: g errs by less, by
 * the square root of that; for twice the memory.
 */
#define CREDIT_TRAIN_MARKS	40
#define CREDIT_TRAIN		(CREDIT_TRAIN_PRIME + CREDIT_TRAIN_MARKS)
/* Fewer measured packets than this give no verdict. */
#define CREDIT_TRAIN_LEAST	4
/* Target of the queue, us, and packets: one packet of ours and one of delayed ACKs;
 * 2 ms are two ticks of a timestamp. Twice: twice the delay that others get.
 */
#define CREDIT_TARGET_US	2000U
#define CREDIT_TARGET_PKTS	2
/* A jump of the queue that is no noise, us, and packets: half of an initial window,
 * and below the 4 to 16 ms at which HyStart ends a slow start. Twice: others leave
 * slow start early because of us; half: a jitter of 3 ms ends our use of the path.
 */
#define CREDIT_JUMP_US		6000U
#define CREDIT_JUMP_PKTS	5
/* Share of mu that probes of the floor may take, 1/1000. It is what a greedy flow
 * loses to us for ever; half of it doubles the time until we see that it has gone.
 */
#define CREDIT_FLOOR_PERMILLE	6
/* The rarest probes, us, where trains fail and packets meet no queue. Twice: a path that has
 * become free there is seen twice as late; half: others meet twice the trains.
 */
#define CREDIT_RARE_US		5000000U
/* Memory of where the window met a queue, and of a train that failed, us: a few of others'
 * sawteeth. Twice: twice as long until W grows faster again; half: each sawtooth is met anew.
 */
#define CREDIT_MEMORY_US	10000000U
/* A capacity that nothing has confirmed for so long is no longer believed, us, where trains come
 * half as fast; where they come at a tenth of it, after a fifth of this. It is longer than others
 * in a fair queue stay. Twice: a slower path is used as little for twice as long; half: the share
 * that others leave is taken for the capacity sooner.
 */
#define CREDIT_STALE_US		60000000U
/* Samples of the floor that agree for so long are the path's new base, us, and so many at least.
 * Twice: a longer route is used twice as late; half: a full short buffer looks like one.
 */
#define CREDIT_FLAT_US		8000000U
#define CREDIT_FLAT_SAMPLES	16
/* How much longer the way back is now is the least of so many probes, and of as many before them.
 * Half: others' bursts on that way are in it; twice: a longer one is known after twice as many.
 */
#define CREDIT_LATELY		8
/* Ticks of a queue that dW does not take away: one round trip until it shows, one to
 * drain. Half of it: a rate that others leave constant is given up now and then; twice:
 * somebody's slow growth loses two round trips more.
 */
#define CREDIT_HIGH_TICKS	8
/* A jump is wrong if a foreign queue comes within so many halves of a round trip: its own data
 * come in the second. Twice: others that begin then count; half: they are not seen yet.
 */
#define CREDIT_REGRET_HALVES	3

/* Part of the path and no queue: what others leave, or one's share of a fair queue,
 * which no delay tells from an empty path. A train does: first after so long, us, and
 * each that passes doubles it. Twice: a flow beside us in a fair queue waits longer.
 */
#define CREDIT_REPROBE_US	1500000U
#define CREDIT_REPROBE_MOST_US	48000000U
/* So many in a row must fail. One less: others' bursts end what is rightly ours each minute;
 * one more: a flow beside us in a fair queue waits three round trips longer.
 */
#define CREDIT_DOUBTS_MOST	3

/* The capacity is counted over so many times the noise: what that moves into a span is a part
 * in 16 of it at most. Half of it: twice that part, for ever, and what is left of the path
 * then looks like somebody's; twice: a faster path is seen after twice the time.
 */
#define CREDIT_SPAN		32

/* Fewer packets in a round trip say nothing of the capacity. Twice: that of a path of few packets
 * is found by trains alone; half: what an application wrote is taken for it.
 */
#define CREDIT_LEAST_PKTS	8
/* A slow start that loses a part in so many fills a buffer of a few packets: no link loses
 * that much. Half of it: some do; twice: others lose as much, for a second longer.
 */
#define CREDIT_LOST_PART	16

/* Most noise that is learnt beside others, us: half of the target. Twice: their bursts hide
 * their queue, and we take half of a short one that our ACKs share; none: after each loss of
 * a link's own the bursts of resent data look like somebody's queue.
 */
#define CREDIT_NOISE_BESIDE_US	1000U

/* Where p is shorter, us, packets that come together say nothing of the link: receivers take
 * several at once. Twice: links of 24 Mbit/s and more have no pauses of their own; half: interrupts
 * of a fast link look like those.
 */
#define CREDIT_BUNCH_US		250U
/* Most that a link is believed to pause for, us, so that an outage does not hide others for long.
 * Half or twice: two recorded cellular links are used as much, within a fiftieth.
 */
#define CREDIT_LINK_PAUSE_US	40000U

/* So long, us, a link is believed to serve in bunches after a train has shown it: longer than
 * CRUISE goes without a train. Half: recorded cellular links are used less; twice: others meet
 * what was learnt of another link for longer.
 */
#define CREDIT_BUNCHED_US	60000000U

#define CREDIT_NO_QUEUE		U32_MAX
#define CREDIT_SPOILT		20000U	/* a train that says nothing */
/* Trains in a row that say nothing, until the download goes on without. Twice: senders with small
 * windows wait twice as long; half: one that ACKs held up lets it go on beside others.
 */
#define CREDIT_SPOILT_MOST	3

enum credit_phase { CREDIT_START, CREDIT_CRUISE, CREDIT_FLOOR, CREDIT_PROBE };

struct credit_tick {
	u64 at_us;	/* its end */
	u64 bytes;	/* arrivals until then */
	u32 queue_us;	/* least in it, or CREDIT_NO_QUEUE */
	u32 mean_us;	/* mean in it; 0 = no sample */
	u32 samples;
};

/* The least of the latest CREDIT_LATELY values at least, and of less than twice as many. */
struct credit_lately {
	u32 least[2];	/* of the present ones; of the CREDIT_LATELY before */
	u32 n;		/* values; 0 = none yet */
};

/* A longer route: by how much, us. The flows' least values are to be raised by it, if not 0. */
struct credit_move {
	u32 rtt_us;	/* a round trip */
	u32 trip_us;	/* of it, the way of data */
};

/* One path. Written under the path's lock by whichever flow has an event. */
struct credit_law {
	enum credit_phase phase;
	u64 since_us;		/* of the phase, our clock */
	u32 mss_bytes;		/* largest segment seen, bytes */
	u32 flows;		/* active */
	u32 base_us;		/* least round trip, us; 0 = none yet */
	u32 window_bytes;	/* W */
	u64 mu_Bps;		/* bytes/s; 0 = none yet */
	u64 mu_us;		/* when arrivals last confirmed it; 0 = never, it is a guess */
	u64 rate_Bps;		/* r; in CRUISE until W is handed out: R */
	u64 bytes, lost_bytes;	/* arrivals, for ever; of them what had been lost before */

	/* The present tick */
	u64 tick_us;		/* began */
	u64 first_us, first_bytes, latest_us;	/* first and latest arrival in it */
	u32 arrivals;
	u32 least_us;		/* q */
	bool lost;		/* a loss was found out in it */
	u64 lost_us;		/* the latest */
	u64 sum_us;		/* of its samples of the queue */
	u32 samples;
	u32 noise_us;		/* e */
	u32 pause_us;		/* z; 0 = the link has one rate */
	u64 bunched_us;		/* when a train last showed that it serves in bunches; 0 = never */
	u64 bunched_Bps;	/* largest mu until it first did */
	u64 fast_Bps;		/* largest mu ever */
	u32 back_us;		/* what the way back and the sender hold a credit up, mean */
	struct credit_tick ticks[CREDIT_TICKS];
	u32 n_ticks;		/* since CRUISE began; the ring's index */

	/* CRUISE */
	bool filling;		/* W is handed out at R, arrivals give nothing back */
	u32 low_ticks;		/* in a row with q < qt / 2 */
	u32 high_ticks;		/* in a row above 2 qt, not our own */
	u32 high_row, jump_row;	/* samples in a row above 2 qhi; the last tick + qhi */
	u64 row_us;		/* when jump_row began */
	u64 quiet_us, quiet_bytes;	/* latest sample below qt */
	u32 peak_bytes;		/* largest W since the jump */
	u32 rose_bytes;		/* W where a queue was met last */
	u64 rose_us;		/* when */
	u64 left_Bps;		/* what others left us when we yielded last; 0 = not known */
	bool regret;		/* they had been there when we jumped */
	u64 jumped_us;
	u64 kept_Bps;		/* r when CRUISE asked for a train; 0 = it did not */
	u32 reprobe_us;		/* from one such train to the next */
	u64 ask_us;		/* the next */
	u32 doubts;		/* of them, in a row, failed */

	/* FLOOR */
	u64 blind_us;		/* until then */
	u64 probe_us;		/* next probe */
	u32 fails, tried;	/* now; at the latest jump */
	u32 score, deep;
	bool bursts;		/* probes met an empty queue, and then one */
	u32 random;
	u32 shift_us;		/* what a longer route adds to every q */
	bool shift_new;		/* no train has confirmed it yet */
	u32 flat_min_us, flat_max_us, flat_samples;
	u64 flat_us;		/* since when they agree */
	struct credit_lately back;	/* a credit of the probes came back so much later than its
					 * data was on the way, since CRUISE
					 */

	/* PROBE and filling */
	u64 slot_us;		/* next credit */
	u64 train_end_us;	/* verdict at the latest; 0 = the train is not all out */
	u32 gap_us;		/* p when it began */
	u32 spoilt;		/* trains in a row that said nothing */
	u32 train_pkts;		/* its length, with the first two */
	u32 train_step;		/* after these one of so many packets is a mark */
	u32 train_marks;	/* the first two, and the marks after them */
	u32 train_sent, train_got;	/* packets; marks */
	u32 train_high;		/* the furthest mark that came, and one */
	u32 train_cut;		/* marks that came, and that their sender had held back */
	u64 train_bytes;	/* c->bytes when it began */
	/* Of the marks after the first two, each half's: sums, and how many came */
	s64 half_arrived_us[2], half_sent_us[2];
	s64 half_bytes[2], half_marks[2];	/* arrivals until then; numbers */
	u32 half_got[2];
	s32 train_late_us[2];	/* the latest two arrivals */
	u32 train_least_us;	/* least time between packets, over two gaps */
	u64 bunch_us;		/* its latest arrival, our clock; 0 = none yet */
	u32 bunch_most_us;	/* most between two */
	s32 bunch_early_us;	/* how much sooner than at p they came, since the end of a bunch */
	bool bunched;		/* sooner than a bottleneck of one rate lets them */
	bool bunch_mixed;	/* they came in another order */
	u32 train_queue_us;	/* that its first packet met */
	u32 growth_permille;	/* g of the latest */

	u64 yields, trains, failed;	/* counters */
};

static inline void credit_lately_add(struct credit_lately *l, u32 value)
{
	if (l->n++ % CREDIT_LATELY == 0) {
		l->least[1] = l->n == 1 ? U32_MAX : l->least[0];
		l->least[0] = U32_MAX;
	}
	l->least[0] = min(l->least[0], value);
}

/* Return: 0 if there is none. */
static inline u32 credit_lately(const struct credit_lately *l)
{
	return l->n ? min(l->least[0], l->least[1]) : 0;
}

/* What a route adds to a round trip if it is longer, us: on the way of data and on the way back. */
static inline u32 credit_longer_us(const struct credit_law *c)
{
	return c->shift_us + credit_lately(&c->back);
}

/* Time of a packet at a rate, us; 0: the rate is not known. */
static inline u32 credit_packet_at_us(const struct credit_law *c, u64 Bps)
{
	return Bps ? (u32)min_t(u64, div64_u64(c->mss_bytes * 1000000ULL, Bps), 1000000) : 0;
}

/* Time of a packet, us. */
static inline u32 credit_packet_us(const struct credit_law *c)
{
	return credit_packet_at_us(c, c->mu_Bps);
}

/* Time of a packet at the largest mu ever, us. */
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

/* qt: q is the least of a tick, which noise raises little */
static inline u32 credit_target_us(const struct credit_law *c)
{
	return max_t(u32, CREDIT_TARGET_US, CREDIT_TARGET_PKTS * credit_packet_us(c)) +
	       c->noise_us / 4;
}

/* A single packet that waited longer met a queue: noise raises it by twice its mean. */
static inline u32 credit_met_us(const struct credit_law *c)
{
	return credit_target_us(c) + 2 * c->noise_us;
}

/* qhi. Several flows bunch by chance: a quarter packet each, up to 16. */
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

/* With less than half of the path credit goes out evenly, not as data comes: that
 * stays in step with the bursts that it came behind, and meets them again.
 */
static inline bool credit_spreads(const struct credit_law *c)
{
	return c->phase == CREDIT_CRUISE && !c->filling &&
	       (u64)c->window_bytes * 2000000 < c->mu_Bps * c->base_us;
}

/* A queue that is gone after so long was a burst, us. */
static inline u32 credit_burst_us(const struct credit_law *c)
{
	return min(8 * credit_packet_us(c), credit_tick_len_us(c));
}

/* What a rate brings in a time, bytes. */
static inline u32 credit_bytes_of(u64 Bps, u32 us)
{
	return (u32)min_t(u64, div_u64(min_t(u64, Bps, 1ULL << 40) * us, 1000000), 1U << 30);
}

static inline u64 credit_rate_of(u64 bytes, u64 us)
{
	return us ? div64_u64(bytes * 1000000, us) : 0;
}

/* Length of a slow start from 10 packets to the pipe, and two round trips, us. */
static inline u64 credit_blind_us(const struct credit_law *c)
{
	u32 tens = credit_bytes_of(c->mu_Bps, c->base_us) / (10 * c->mss_bytes);
	u32 trips = 2;

	while (tens >>= 1)
		trips++;
	return (u64)trips * c->base_us;
}

/* Failures that count: each CREDIT_MEMORY_US at the floor forgets one. Beside others that
 * leave part of the path most probes meet a queue, and never would enough in a row be clean.
 */
static inline u32 credit_fails(const struct credit_law *c, u64 now_us)
{
	u64 faded = div_u64(now_us - c->since_us, CREDIT_MEMORY_US);

	return c->fails - (u32)min_t(u64, faded, c->fails);
}

/* P: a sixth of the time at the floor, but a round trip and a quarter at least, and
 * no rarer than the floor's share of mu allows.
 */
static inline u32 credit_period_us(const struct credit_law *c, u64 now_us)
{
	u64 least = c->base_us * 5ULL / 4;
	u64 budget = credit_packet_us(c) * 1000ULL / CREDIT_FLOOR_PERMILLE;
	u64 sixth = div_u64(now_us - c->since_us, 6);
	u32 fails = credit_fails(c, now_us);

	u64 us = max(min(max(sixth, least), budget), least);

	/* Trains that fail beside packets that meet no queue: fair queueing, or others
	 * that come in bursts. Each costs them; ask more rarely.
	 */
	if (fails >= 2 && c->score)
		us = max_t(u64, us, min_t(u64, (u64)c->base_us << min(fails - 1, 10U),
					  CREDIT_RARE_US));
	return (u32)us;
}

/* Up to @most_us, evenly spread. */
static inline u32 credit_random_us(struct credit_law *c, u32 most_us)
{
	c->random = c->random * 1664525 + 1013904223;
	return (u32)((u64)most_us * c->random >> 32);
}

/* Others that come in bursts may have a period: probes that are a fixed time apart meet the
 * same part of each. How much later a probe goes, us.
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
	c->window_bytes = 65535;	/* what the handshake advertised at most */
	c->least_us = CREDIT_NO_QUEUE;
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
	c->high_row = 0;
	c->jump_row = 0;
}

/**
 * credit_yield() - to FLOOR
 * @c: law
 * @now_us: our clock
 * @blind_us: no probe before so long
 */
static inline void credit_yield(struct credit_law *c, u64 now_us, u64 blind_us)
{
	credit_enter(c, CREDIT_FLOOR, now_us);
	c->blind_us = now_us + blind_us;
	c->probe_us = c->blind_us;
	c->score = 0;
	c->deep = 0;
	c->bursts = false;
	c->flat_samples = 0;
	c->kept_Bps = 0;
	c->doubts = 0;
	c->window_bytes = 0;
	c->yields++;
}

/* From CRUISE, to others. @failed: they had been there when we jumped. */
static inline void credit_yield_to_others(struct credit_law *c, u64 now_us, bool failed)
{
	u64 quiet_us = now_us - c->quiet_us, left_Bps = c->mu_Bps;

	c->fails = failed ? c->tried + 1 : 0;
	if (quiet_us > c->base_us / 8)
		left_Bps = credit_rate_of(c->bytes - c->quiet_bytes, quiet_us);
	/* They had been there when we jumped: half as far next time. */
	c->regret = now_us - c->jumped_us < c->base_us * (u64)CREDIT_REGRET_HALVES / 2;
	if (c->regret)
		left_Bps = min(left_Bps, c->left_Bps ? c->left_Bps : c->mu_Bps) / 2;
	c->left_Bps = max(left_Bps, div_u64(c->mu_Bps, 20));
	c->rose_bytes = c->window_bytes;
	c->rose_us = now_us;
	credit_yield(c, now_us, credit_blind_us(c));
}

/* Is what stands in the queue our own? It is if others, since the queue was short last, had
 * less of the bottleneck's time than half of the queue takes, and a twelfth of the time since:
 * where ACKs share the link ours take a part in 22, and mu may be wrong by as much. Twice that
 * part: a slow start of others that has a seventh of the path passes for ours; half: our own ACKs
 * end our use of the path.
 */
static inline bool credit_is_own(const struct credit_law *c, u64 now_us, u32 queue_us)
{
	u64 time_us = now_us - c->quiet_us, others_us = time_us / 12 + queue_us / 2;

	return others_us >= time_us ||
	       (c->bytes - c->quiet_bytes) * 1000000 >= (time_us - others_us) * c->mu_Bps;
}

#endif /* VULTURE_CREDIT_STATE_H */
