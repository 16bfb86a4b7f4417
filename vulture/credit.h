/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: the law of one path.
 *
 * The right edge of a receive window is credit. A sender that waits for it sends
 * a packet the moment credit reaches it, so the packet of a credit arrives one
 * round trip after the credit went out, plus what stood in the queue. The law is
 * that of a sender, then, with arrivals in the place of ACKs: it hands out credit
 * for W bytes at most, and gives back what arrives.
 *
 *	        queue > 3 ms or 3 p                evidence of an empty path
 *	START ----------------------> FLOOR --------------------------------> PROBE
 *	                              ^   ^                                  |    |
 *	     a queue that others made |   +----------------------------------+    |
 *	                              |            train: others, or lost         |
 *	                           CRUISE <---------------------------------------+
 *	                                       train: room, W at once
 *
 *	q	queue: least of two upper bounds of it, each against its own least
 *		value (one-way delay by the peer's timestamps; credit to data)
 *	mu	capacity: most bytes that came in a tick or a round trip, and in 32 e
 *	p	MSS / mu, the time of a packet
 *	r	arrivals of the latest round trip
 *	e	noise: by how much the samples of a tick exceed the least of them, less p
 *	qt	2 p + e / 4, the target		qhi	5 p + 2 e, a jump
 *
 * START	W = 2 r base + 20 MSS: the sender's own slow start is the slower one. It ends
 *		with a queue, or where the buffer is too short for one when 1/16 is lost.
 *		mu is 8 packets a round trip then at least: that few are an application's rate.
 * CRUISE	each tick (a quarter of base, 4 p and 4 ms at least, and eight samples unless
 *		that takes longer than base), q being the least in it, or after a loss the
 *		largest mean of the last five (is the buffer full?):
 *			dW = r / 2 (qt - q) tick / (base + q)		q < qt
 *			dW = max(r, mu / 2) (qt - q) tick / (base + q)	q >= qt
 *		The gain doubles with each 4 ticks of q < qt / 2 (32 at most), below
 *		93 % of the W at which a queue was met in the last 10 s; a step of a
 *		round trip is at most half of qhi. At rest q = qt, so about two packets
 *		of our own stand: W is the pipe and two packets, and arrivals, with them
 *		credit, stop the moment a foreign burst is in front of ours. With less
 *		than half of the path credit goes out evenly instead, 5/4 W a round trip
 *		at most: what comes in step with a burst stays in step with it; and q
 *		is the least of twice as many samples: bursts of others fill a tick.
 *		Yield to FLOOR when q exceeds 2 qhi twice, when four samples in 8 p exceed
 *		the latest tick by qhi, or a tick the one of a round trip ago, and when q
 *		stays above 2 qt (qt if W is 2 MSS) for 8 ticks; unless what others had of the
 *		path since the queue was short is less than half of the queue: such a queue
 *		is ours, and dW takes it away. Where dW has given a quarter of W away, others
 *		grow: yield if packets were lost since the jump, else ask with a train, which
 *		decides alone: ACKs that share the link keep a queue there too.
 * FLOOR	no credit at all for 2 + log2(pipe / 10 packets) round trips: the length
 *		of a slow start, whose bursts leave gaps that look like an empty path.
 *		Then a packet each P; it says q. Score: +1 if q < qt + 2 e, +2 if
 *		q < p / 3 + e / 2 or after deep queues, less if above. PROBE at
 *		2 + 2 fails (12 at most); each 10 s at the floor forgets a failure.
 *		Once q went up after it was low, up to a quarter of P is added, by chance.
 *		Where the samples of 8 s agree above qt the route may be longer: q counts from
 *		there, and a train that loses nothing and has g < 0.1 moves base along.
 * PROBE	a train: two packets to prime the queue, then 8 at mu (8 e / p if that is
 *		more, 50 ms at most), then mu / 4 until the verdict, unless one failed before.
 *		After one that failed it begins at random within a round trip, in CRUISE within
 *		a tick: others' bursts may have a period that divides the round trip.
 *		Of the 8, the time that the bottleneck spent on others:
 *			g = (span of arrivals - work) / span of sending = X / mu,
 *		each span from the mean of the first half's to that of the second's; work is
 *		p for each packet that was sent in between, or that came, if these are more.
 *		The verdict waits until no mark has come for base / 8. Where none came closer
 *		than p' > p, p' is p from now on: up to 4/3 p at once, more if nothing has
 *		ever confirmed mu, or not for 120 s p / p'; the train was then too fast to say
 *		anything else.
 *		g > 0.8, or a quarter of the train lost (later marks came): fails + 1, FLOOR
 *		for a round trip.
 *		Otherwise R = 0.98 mu if g < 0.1, else mu (0.9 - g); at most 0.9 of the rate
 *		that others left us before we yielded (half of it if they were there when we
 *		jumped), until g < 0.1 says that they have gone. W = R base + 2 MSS, handed
 *		out at R.
 *		Sent at once (ACKs were held up on their way), too slowly, or of more than 8
 *		less than half as much of the second half as of the first: nothing is said;
 *		after three of these R = mu / 4, or as many packets a round trip as the
 *		train has marks, if that is less.
 *		CRUISE at k mu < 0.9 mu asks with a train too, first after 15 round trips and
 *		1.5 s, then after twice as long, 48 s at most, and two to three round trips
 *		after one that failed: g > 1 - k / 2 three times in a row ends CRUISE; else
 *		R = k mu, or what the train says if that is more, 2 k mu at most, and k mu if
 *		its first packet met a queue. If nothing of it came and W was more than r base
 *		5/4 (and a jump's worth), senders do not use W, and the train waits: k mu again.
 *
 * Where it comes from: the delay term is FAST's, with a target for the whole queue
 * instead of one's own part; trains are those of TOPP and pathload; the blind time
 * and the evidence are ours.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_H
#define VULTURE_CREDIT_H

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
/* How long a round trip takes now is the least of so many probes, and of as many before them. Half:
 * the queue of others' bursts is in it; twice: a longer route is known after twice as many.
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
	/* Of the probes since CRUISE: by how much a credit took longer than base_us until its data
	 * came, and than its data was on the way
	 */
	struct credit_lately longer, back;
	/* What the route adds to the flows' least values, which are not yet raised; 0 = nothing */
	u32 moved_us, moved_trip_us;

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

/* What a round trip takes of late, us: a longer route, or the queue of others. */
static inline u32 credit_trip_us(const struct credit_law *c)
{
	return c->base_us + credit_lately(&c->longer);
}

/* Time of a packet, us. */
static inline u32 credit_packet_us(const struct credit_law *c)
{
	if (!c->mu_Bps)
		return 0;
	return (u32)min_t(u64, div64_u64(c->mss_bytes * 1000000ULL, c->mu_Bps), 1000000);
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
	u32 us = max_t(u32, CREDIT_JUMP_US, CREDIT_JUMP_PKTS * p_us) + 2 * c->noise_us;

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

/* A credit came back later than its data was on the way, by so much: the queue of the
 * way back, or a sender that waits for something else.
 */
static inline void credit_learn_back(struct credit_law *c, u32 back_us)
{
	if (c->phase != CREDIT_START && !c->filling)
		c->back_us += ((s32)min(back_us, 16000U) - (s32)c->back_us) / 16;
}

static inline void credit_begin_tick(struct credit_law *c)
{
	c->least_us = CREDIT_NO_QUEUE;
	c->lost = false;
	c->arrivals = 0;
	c->samples = 0;
	c->sum_us = 0;
}

/* By how much the samples of a tick exceed the least of them in the mean, without the
 * packet of ours that goes before. Not while somebody's queue stands there. Beside others
 * it is their bursts: as noise these would raise qt and qhi until nothing of theirs counts.
 */
static inline void credit_learn_noise(struct credit_law *c)
{
	u32 over_us;

	if (c->samples < CREDIT_TICK_SAMPLES || c->filling || c->least_us > 2 * credit_target_us(c))
		return;
	over_us = (u32)div_u64(c->sum_us, c->samples) - c->least_us;
	over_us -= min(over_us, credit_packet_us(c));
	if (c->phase != CREDIT_START && c->rate_Bps * 20 < c->mu_Bps * 17)
		over_us = min(over_us, max(c->noise_us, CREDIT_NOISE_BESIDE_US));
	c->noise_us += ((s32)over_us - (s32)c->noise_us) / (c->phase == CREDIT_START ? 4 : 16);
}

/* The tick that ended so long ago, or NULL: less than 3/4 of that is known. */
static inline const struct credit_tick *credit_ago(const struct credit_law *c, u64 now_us,
						   u32 ago_us)
{
	const struct credit_tick *then = NULL;
	u32 i;

	for (i = 2; i <= min_t(u32, c->n_ticks, CREDIT_TICKS); i++) {
		then = &c->ticks[(c->n_ticks - i) % CREDIT_TICKS];
		if (now_us - then->at_us >= ago_us)
			break;
	}
	if (then && now_us - then->at_us < ago_us / 4 * 3 && c->n_ticks < CREDIT_TICKS)
		then = NULL;
	return then;
}

/* A tick has ended: r and mu. Return: time of a round trip with this queue, us. */
static inline u32 credit_measure(struct credit_law *c, u64 now_us, u32 queue_us)
{
	u32 rtt_us = c->base_us + (queue_us == CREDIT_NO_QUEUE ? 0 : queue_us);
	u32 span_us = (c->phase == CREDIT_START ? 8 : CREDIT_SPAN) * c->noise_us;
	const struct credit_tick *then;
	u64 rate_Bps = 0;

	if (c->arrivals > 16 && c->latest_us - c->first_us > span_us)
		rate_Bps = credit_rate_of(c->bytes - c->first_bytes, c->latest_us - c->first_us);
	then = credit_ago(c, now_us, rtt_us);
	if (then)
		c->rate_Bps = credit_rate_of(c->bytes - then->bytes, now_us - then->at_us);
	then = credit_ago(c, now_us, max(rtt_us, span_us));
	if (then && c->bytes - then->bytes >= CREDIT_LEAST_PKTS * c->mss_bytes)
		rate_Bps = max(rate_Bps, credit_rate_of(c->bytes - then->bytes,
							now_us - then->at_us));
	if (rate_Bps * 10 > c->mu_Bps * 8)
		c->mu_us = now_us;
	c->mu_Bps = max(c->mu_Bps, rate_Bps);
	return rtt_us;
}

/* dW of one tick. */
static inline void credit_steer(struct credit_law *c, u64 now_us, u32 queue_us,
				u32 rtt_us, u32 len_us)
{
	u32 target_us = credit_target_us(c);
	u64 rate_Bps;
	s64 step;

	/* Slow links: a tick of four packets is longer than a round trip. */
	len_us = min(len_us, rtt_us);
	/* Too much goes within two round trips, however little of it is ours. */
	rate_Bps = queue_us < target_us ? c->rate_Bps : max(c->rate_Bps, c->mu_Bps / 2);
	step = div_s64((s64)credit_bytes_of(rate_Bps, len_us) *
			   ((s64)target_us - queue_us), max(rtt_us, 1U));

	if (queue_us < target_us) {
		u32 most = (u32)div_u64((u64)credit_jump_us(c) * len_us, 2 * max(rtt_us, 1U));

		step /= 2;
		c->low_ticks = queue_us < target_us / 2 ? c->low_ticks + 1 : 0;
		if (c->window_bytes < c->rose_bytes / 100 * 93 ||
		    now_us - c->rose_us > CREDIT_MEMORY_US)
			step *= 1 << min(c->low_ticks / 4, 5U);
		step = min_t(s64, step, credit_bytes_of(c->mu_Bps, most));
	} else {
		c->low_ticks = 0;
		c->rose_bytes = c->window_bytes;
		c->rose_us = now_us;
	}
	c->window_bytes = (u32)clamp_t(s64, c->window_bytes + step, 2 * c->mss_bytes, 1 << 30);
	c->peak_bytes = max(c->peak_bytes, c->window_bytes);
}

/* Begin a train. */
static inline void credit_probe(struct credit_law *c, u64 now_us)
{
	u32 pkts;

	credit_enter(c, CREDIT_PROBE, now_us);
	c->gap_us = max(credit_packet_us(c), 1U);
	c->slot_us = now_us;
	/* Others' bursts may have a period that divides the round trip: the next train would meet
	 * the part that this one met. In CRUISE nothing is given back until it begins.
	 */
	if (c->fails || c->doubts)
		c->slot_us += credit_random_us(c, c->kept_Bps ? credit_tick_len_us(c) : c->base_us);
	c->train_end_us = 0;
	pkts = CREDIT_TRAIN_PKTS * min(c->noise_us, CREDIT_TRAIN_MOST_US / CREDIT_TRAIN_PKTS);
	pkts = max_t(u32, pkts / c->gap_us, CREDIT_TRAIN_PKTS);
	c->train_step = (pkts - 1) / CREDIT_TRAIN_MARKS + 1;
	c->train_marks = CREDIT_TRAIN_PRIME + pkts / c->train_step;
	c->train_pkts = CREDIT_TRAIN_PRIME + pkts;
	c->train_sent = 0;
	c->train_got = 0;
	c->train_high = 0;
	c->train_cut = 0;
	c->train_least_us = U32_MAX;
	c->train_queue_us = 0;
	memset(c->half_arrived_us, 0, sizeof(c->half_arrived_us));
	memset(c->half_sent_us, 0, sizeof(c->half_sent_us));
	memset(c->half_bytes, 0, sizeof(c->half_bytes));
	memset(c->half_marks, 0, sizeof(c->half_marks));
	c->train_bytes = c->bytes;
	memset(c->half_got, 0, sizeof(c->half_got));
	c->trains++;
}

/* Which mark is the train's packet @nth? U32_MAX = none. */
static inline u32 credit_train_mark(const struct credit_law *c, u32 nth)
{
	u32 past = nth - CREDIT_TRAIN_PRIME, mark = CREDIT_TRAIN_PRIME + past / c->train_step;

	if (nth < CREDIT_TRAIN_PRIME)
		return nth;
	return past % c->train_step || mark >= c->train_marks ? U32_MAX : mark;
}

/* The queue of a tick: what the least of many samples would be, if there are few. */
static inline u32 credit_tick_queue(const struct credit_law *c)
{
	u32 mean_us, over_us = c->noise_us + credit_packet_us(c);

	if (!c->samples || c->samples >= CREDIT_TICK_SAMPLES)
		return c->least_us;
	mean_us = (u32)div_u64(c->sum_us, c->samples);
	return min(c->least_us, mean_us - min(mean_us, over_us));
}

/* The queue that a tick is judged by. A short buffer is empty now and then in each tick, and
 * full in between. Where a loss was found out it is the mean that counts, in the round trip
 * before: high if the buffer was full, low if it was the link that lost.
 */
static inline u32 credit_full_queue(const struct credit_law *c, u32 queue_us)
{
	u32 mean_us = 0, i;

	if (!c->lost || queue_us == CREDIT_NO_QUEUE)
		return queue_us;
	for (i = 1; i <= min_t(u32, c->n_ticks, 5); i++)
		mean_us = max(mean_us, c->ticks[(c->n_ticks - i) % CREDIT_TICKS].mean_us);
	return mean_us > credit_target_us(c) ? max(queue_us, mean_us) : queue_us;
}

/* Do others grow? What dW gave them is a quarter of what we had, a queue stands now, and less
 * than 17/20 of what leaves it is ours. Else W only falls to what a short buffer holds, or
 * our own senders wait for a time-out.
 */
static inline bool credit_is_outgrown(const struct credit_law *c)
{
	return c->window_bytes + 2 * c->mss_bytes < c->peak_bytes / 4 * 3 &&
	       c->ticks[(c->n_ticks - 1) % CREDIT_TICKS].mean_us > credit_target_us(c) &&
	       c->rate_Bps * 20 < c->mu_Bps * 17;
}

/* Most of the path is others', and their bursts fill a tick of a few samples now and then. What
 * W is set by is what stays: the least of twice the samples that a tick has else.
 */
static inline u32 credit_lasting_queue(const struct credit_law *c, u32 queue_us)
{
	u32 i, samples = 0;

	for (i = 1; i <= min_t(u32, c->n_ticks, CREDIT_TICKS); i++) {
		const struct credit_tick *tick = &c->ticks[(c->n_ticks - i) % CREDIT_TICKS];

		queue_us = min(queue_us, tick->queue_us);
		samples += tick->samples;
		if (samples >= 2 * CREDIT_TICK_SAMPLES)
			break;
	}
	return queue_us;
}

static inline void credit_end_tick(struct credit_law *c, u64 now_us)
{
	struct credit_tick *tick = &c->ticks[c->n_ticks++ % CREDIT_TICKS];
	u32 len_us = (u32)(now_us - c->tick_us), queue_us = credit_tick_queue(c), rtt_us;
	const struct credit_tick *ago;
	u32 jump_us = credit_jump_us(c);
	bool high, outgrown;

	*tick = (struct credit_tick){ now_us, c->bytes, queue_us,
				      c->samples ? (u32)div_u64(c->sum_us, c->samples) : 0,
				      c->samples };
	rtt_us = credit_measure(c, now_us, queue_us);
	queue_us = credit_full_queue(c, queue_us);
	c->tick_us = now_us;
	if (queue_us != CREDIT_NO_QUEUE)
		credit_learn_noise(c);
	credit_begin_tick(c);
	if (queue_us == CREDIT_NO_QUEUE)
		return;
	if (c->phase == CREDIT_START) {
		/* The round trip is not known before data answers credit of ours if TCP has no
		 * sample of it: W is what the handshake advertised until then.
		 */
		if ((c->lost_bytes * CREDIT_LOST_PART > c->bytes ||
		     queue_us > max_t(u32, 3000, 3 * credit_packet_us(c))) && c->rate_Bps &&
		    c->base_us) {
			/* In no round trip did that many come: the senders were the limit. */
			if (!c->mu_Bps)
				c->mu_Bps = max(c->rate_Bps,
						credit_rate_of(CREDIT_LEAST_PKTS * c->mss_bytes,
							       rtt_us));
			credit_yield(c, now_us, c->base_us * 3ULL / 2);
		}
		return;
	}
	ago = c->n_ticks > 5 ? &c->ticks[(c->n_ticks - 5) % CREDIT_TICKS] : NULL;
	high = queue_us > 2 * jump_us ||
	       (ago && ago->queue_us != CREDIT_NO_QUEUE && queue_us > ago->queue_us + jump_us);
	if (credit_is_own(c, now_us, queue_us)) {
		high = false;
		c->high_ticks = 0;
	} else {
		c->high_ticks = queue_us > 2 * credit_target_us(c) ||
				(queue_us > credit_target_us(c) &&
				 c->window_bytes <= 2 * c->mss_bytes) ? c->high_ticks + 1 : 0;
	}
	if (credit_spreads(c))
		queue_us = credit_lasting_queue(c, queue_us);
	if (high || c->high_ticks >= CREDIT_HIGH_TICKS)
		credit_yield_to_others(c, now_us, c->high_ticks >= CREDIT_HIGH_TICKS);
	else
		credit_steer(c, now_us, queue_us, rtt_us, len_us);
	if (c->phase != CREDIT_CRUISE || c->filling)
		return;
	outgrown = credit_is_outgrown(c);
	if (outgrown && c->lost_us > c->jumped_us) {
		credit_yield_to_others(c, now_us, true);
		return;
	}
	/* Who has given that much away already is sure after one train. */
	if (outgrown)
		c->doubts = CREDIT_DOUBTS_MOST - 1;
	else if (queue_us >= credit_target_us(c) || c->rate_Bps >= c->mu_Bps / 10 * 9 ||
		 now_us <= c->ask_us)
		return;
	c->kept_Bps = c->rate_Bps;
	credit_probe(c, now_us);
}

/* A sample of CRUISE: does it call for the floor at once? */
static inline bool credit_sees_others(struct credit_law *c, u64 now_us, u32 queue_us)
{
	const struct credit_tick *last = c->n_ticks ?
		&c->ticks[(c->n_ticks - 1) % CREDIT_TICKS] : NULL;
	u32 jump_us = credit_jump_us(c);

	if (queue_us < credit_target_us(c)) {
		c->quiet_us = now_us;
		c->quiet_bytes = c->bytes;
	}
	c->high_row = queue_us > 2 * jump_us ? c->high_row + 1 : 0;
	if (!last || last->queue_us == CREDIT_NO_QUEUE || queue_us <= last->queue_us + jump_us)
		c->jump_row = 0;
	else if (!c->jump_row++)
		c->row_us = now_us;
	return (c->high_row >= 2 ||
		(c->jump_row >= 4 && now_us - c->row_us >= credit_burst_us(c))) &&
	       !credit_is_own(c, now_us, queue_us);
}

/* What came had been lost before. */
static inline void credit_on_resent(struct credit_law *c, u64 now_us, u32 bytes)
{
	c->lost = true;
	c->lost_us = now_us;
	c->lost_bytes += bytes;
}

/* A longer route is no queue; a shorter one ends that. */
static inline u32 credit_unshift(struct credit_law *c, u32 queue_us)
{
	if (queue_us == CREDIT_NO_QUEUE)
		return queue_us;
	c->shift_us = min(c->shift_us, queue_us);
	return queue_us - c->shift_us;
}

/**
 * credit_on_data() - data came, in START or CRUISE
 * @c: law
 * @now_us: our clock
 * @bytes: payload
 * @queue_us: that it met, or CREDIT_NO_QUEUE
 */
static inline void credit_on_data(struct credit_law *c, u64 now_us, u32 bytes, u32 queue_us)
{
	queue_us = credit_unshift(c, queue_us);
	c->bytes += bytes;
	if (!c->tick_us)
		c->tick_us = now_us;
	if (!c->arrivals++) {
		c->first_us = now_us;
		c->first_bytes = c->bytes;
	}
	c->latest_us = now_us;
	c->least_us = min(c->least_us, queue_us);
	if (queue_us != CREDIT_NO_QUEUE) {
		c->sum_us += queue_us;
		c->samples++;
	}
	if (c->phase == CREDIT_CRUISE && queue_us != CREDIT_NO_QUEUE &&
	    credit_sees_others(c, now_us, queue_us)) {
		credit_yield_to_others(c, now_us, false);
		return;
	}
	if (now_us - c->tick_us >= credit_tick_len_us(c) &&
	    (c->samples >= CREDIT_TICK_SAMPLES || c->phase == CREDIT_START ||
	     now_us - c->tick_us >= c->base_us))
		credit_end_tick(c, now_us);
	if (c->phase == CREDIT_START)
		c->window_bytes = max(c->window_bytes,
				      2 * credit_bytes_of(c->rate_Bps, c->base_us) +
				      20 * c->mss_bytes);
}

/* Samples that agree for long, far above base: the route is longer now. */
static inline void credit_watch_route(struct credit_law *c, u64 now_us, u32 queue_us)
{
	u32 least = min(c->flat_min_us, queue_us), most = max(c->flat_max_us, queue_us);

	if (!c->flat_samples || most - least > credit_target_us(c)) {
		c->flat_us = now_us;
		c->flat_samples = 1;
		c->flat_min_us = queue_us;
		c->flat_max_us = queue_us;
		return;
	}
	c->flat_min_us = least;
	c->flat_max_us = most;
	if (++c->flat_samples >= CREDIT_FLAT_SAMPLES && now_us - c->flat_us >= CREDIT_FLAT_US &&
	    least > credit_target_us(c)) {
		c->shift_us += least;
		c->shift_new = true;
		c->flat_samples = 0;
	}
}

/**
 * credit_on_probe_trip() - a packet of the floor came: how long did it take?
 * @c: law
 * @longer_us: than the least round trip of its flow, from the credit on
 * @trip_us: than its way ever took, or CREDIT_NO_QUEUE
 */
static inline void credit_on_probe_trip(struct credit_law *c, u32 longer_us, u32 trip_us)
{
	credit_lately_add(&c->longer, longer_us);
	if (trip_us != CREDIT_NO_QUEUE)
		credit_lately_add(&c->back, longer_us - min(longer_us, trip_us));
}

/**
 * credit_on_probe() - a packet of the floor came
 * @c: law
 * @now_us: our clock
 * @queue_us: that it met
 */
static inline void credit_on_probe(struct credit_law *c, u64 now_us, u32 queue_us)
{
	queue_us = credit_unshift(c, queue_us);
	credit_watch_route(c, now_us, queue_us);
	if (queue_us > max(2 * credit_jump_us(c), c->base_us / 10 * 3)) {
		/* A buffer that deep loses nothing to a train of ours. */
		c->score = 0;
		if (++c->deep >= 2) {
			c->fails = 0;
			c->left_Bps = 0;
		}
		return;
	}
	if (queue_us >= credit_met_us(c)) {
		c->bursts |= c->score > 0;
		c->score = c->score > 2 ? c->score - 2 : 0;
		c->deep = 0;
		return;
	}
	c->score += c->deep ||
		    queue_us < max(credit_packet_us(c) / 3, 300U) + c->noise_us / 2 ? 2 : 1;
	c->deep = 0;
	if (c->fails < 2)
		c->probe_us = now_us + credit_dither_us(c, credit_tick_len_us(c));
	if (c->score >= min(2 + 2 * credit_fails(c, now_us), 12U))
		credit_probe(c, now_us);
}

/* How long after the last mark was due, or came, no other will come, us. */
static inline u32 credit_late_us(const struct credit_law *c)
{
	return max(c->base_us / 8, 4000U) + 2 * c->noise_us;
}

/* The train is out. Its marks come more slowly where the path does: the verdict waits for them. */
static inline void credit_wait_for_train(struct credit_law *c, u64 until_us)
{
	if (until_us > c->train_end_us && c->slot_us == c->train_end_us)
		c->slot_us = until_us;
	c->train_end_us = max(c->train_end_us, until_us);
}

/**
 * credit_on_cut() - a mark came that its sender had held back: its own window is shorter
 * @c: law
 * @now_us: our clock
 */
static inline void credit_on_cut(struct credit_law *c, u64 now_us)
{
	c->train_cut++;
	if (c->train_end_us)
		credit_wait_for_train(c, now_us + credit_trip_us(c) + credit_late_us(c));
}

/**
 * credit_on_train() - a mark of the train came
 * @c: law
 * @mark: its number: packets may come in another order
 * @arrived_us: our clock, less the least round trip of its flow
 * @sent_us: our clock, less a constant: when it was sent
 */
static inline void credit_on_train(struct credit_law *c, u32 mark, u64 arrived_us, u64 sent_us)
{
	u32 half = 2 * mark >= CREDIT_TRAIN_PRIME + c->train_marks, i = c->train_got++ % 2;
	s32 at_us = (s32)(arrived_us - c->since_us);

	if (c->train_end_us)
		credit_wait_for_train(c, arrived_us + credit_trip_us(c) + credit_late_us(c));
	if (c->train_got > 2)
		c->train_least_us = min_t(u32, c->train_least_us,
					  max(at_us - c->train_late_us[i], 0) / 2);
	c->train_late_us[i] = at_us;
	c->train_high = max(c->train_high, mark + 1);
	if (!mark)
		c->train_queue_us = (u32)(arrived_us - sent_us);
	if (mark < CREDIT_TRAIN_PRIME)
		return;
	c->half_arrived_us[half] += at_us;
	c->half_sent_us[half] += (s32)(sent_us - c->since_us);
	c->half_bytes[half] += (s64)(c->bytes - c->train_bytes);
	c->half_marks[half] += mark;
	c->half_got[half]++;
}

/* From the mean of the first half's marks to that of the second's, times @scale. */
static inline s64 credit_train_span(const struct credit_law *c, const s64 *sum, u64 scale)
{
	s32 n[2] = { (s32)c->half_got[0], (s32)c->half_got[1] };

	return div_s64((sum[1] * n[0] - sum[0] * n[1]) * (s64)scale, n[0] * n[1]);
}

/* How long the bottleneck worked for us in that time, us: for what was sent, lost or not; or
 * for what came, if that is more. The window's unit releases packets that are no marks, and
 * in another order.
 */
static inline s32 credit_train_work(const struct credit_law *c)
{
	s64 sent_us = credit_train_span(c, c->half_marks, (u64)c->train_step * c->gap_us);
	s64 came_us = credit_train_span(c, c->half_bytes, c->gap_us);

	return (s32)max(sent_us, div_s64(came_us, (s32)max(c->mss_bytes, 1U)));
}

/* g of the train, 1/1000. */
static inline u32 credit_train_growth(const struct credit_law *c)
{
	s32 span_us = (s32)credit_train_span(c, c->half_arrived_us, 1);
	s32 sent_us = (s32)credit_train_span(c, c->half_sent_us, 1);
	s32 work_us = credit_train_work(c);

	span_us = max(span_us - work_us, 0);
	/* Credit was held up on its way: too slow to keep the bottleneck busy, or all at
	 * once, each too soon after the one before to meet others.
	 */
	if (sent_us > work_us + work_us / 2 || sent_us < work_us / 4)
		return CREDIT_SPOILT;
	return (u32)min_t(u64, div_u64(span_us * 1000ULL, max3(sent_us, work_us / 2, 1)), 10000);
}

static inline void credit_train_fails(struct credit_law *c, u64 now_us)
{
	c->fails++;
	c->failed++;
	credit_yield(c, now_us, c->base_us);
}

/* What looked like a longer route was a queue. */
static inline void credit_forget_route(struct credit_law *c)
{
	c->shift_us = 0;
	c->shift_new = false;
}

/* A train had room: the route is longer, and what it adds is part of the least values now. */
static inline void credit_move_route(struct credit_law *c)
{
	c->moved_us = max(credit_lately(&c->longer), c->shift_us);
	c->moved_trip_us = c->shift_us;
	c->base_us += c->moved_us;
	credit_forget_route(c);
}

/* To CRUISE at R. What was ours before the train stays ours. */
static inline void credit_cruise(struct credit_law *c, u64 now_us)
{
	if (!c->kept_Bps)
		c->reprobe_us = max(CREDIT_REPROBE_US, 15 * c->base_us);
	else if (!c->doubts)
		c->reprobe_us = min(2 * c->reprobe_us, CREDIT_REPROBE_MOST_US);
	c->ask_us = now_us + (c->doubts ? 2 * c->base_us + credit_random_us(c, c->base_us) :
			      c->reprobe_us);
	c->rate_Bps = max(c->rate_Bps, c->kept_Bps);
	c->kept_Bps = 0;
	c->tried = c->fails;
	c->fails = 0;
	credit_enter(c, CREDIT_CRUISE, now_us);
	c->longer.n = 0;
	c->back.n = 0;
	c->jumped_us = now_us;
	c->window_bytes = credit_bytes_of(c->rate_Bps, c->base_us) + 2 * c->mss_bytes;
	c->peak_bytes = c->window_bytes;
	c->filling = true;
	c->slot_us = now_us;
	c->quiet_us = now_us;
	c->quiet_bytes = c->bytes;
	c->n_ticks = 0;
	c->tick_us = now_us;
	credit_begin_tick(c);
}

/* g that leaves nothing to jump into. Beside CRUISE: others who send the rest through
 * the same queue make g = 1 - k, k being our share of mu; those who have queues of their
 * own take half of the link from the train, g = 1 or more. Between the two.
 */
static inline u32 credit_most_growth(const struct credit_law *c)
{
	if (!c->kept_Bps)
		return 800;
	return 1000 - (u32)div64_u64(min(c->kept_Bps, c->mu_Bps) * 500, max_t(u64, c->mu_Bps, 1));
}

/* It says nothing. Senders that cannot send a train, CREDIT_SPOILT_MOST times in a row, are
 * the limit themselves: they get what the end of a train takes, or as many packets a round
 * trip as it has marks, and W grows from there. From CRUISE: back to it, as long as that is
 * rare.
 */
static inline void credit_train_spoilt(struct credit_law *c, u64 now_us)
{
	bool often = ++c->spoilt >= CREDIT_SPOILT_MOST;

	if (often && !(c->kept_Bps && c->back_us > c->gap_us))
		c->spoilt = 0;
	if (!c->kept_Bps && often)
		c->rate_Bps = min(div_u64(c->mu_Bps, 4),
				  credit_rate_of((u64)c->train_marks * c->mss_bytes, c->base_us));
	if (c->kept_Bps ? !often || c->back_us > c->gap_us : often)
		credit_cruise(c, now_us);
	else
		credit_yield(c, now_us, c->base_us);
}

/* What did not come with the train came later, held back by its sender alone. Or:
 * of a train that noise made longer its beginning came, and little of the rest: senders whose own
 * window is shorter, after a rest or a loss. The few marks of the second half are mostly noise.
 */
static inline bool credit_train_outgrows_senders(const struct credit_law *c)
{
	if (c->train_cut)
		return 4 * (c->train_got + c->train_cut) > 3 * c->train_marks;
	return c->train_marks > CREDIT_TRAIN_PRIME + CREDIT_TRAIN_PKTS &&
	       c->half_got[0] >= CREDIT_TRAIN_LEAST && 2 * c->half_got[1] < c->half_got[0];
}

/* A buffer of a few packets is never a queue that delay shows. What its sender did not send is not
 * lost: nothing behind it comes.
 */
static inline bool credit_train_lost_much(const struct credit_law *c)
{
	return 4 * (c->train_high - c->train_got) >= c->train_marks;
}

/* Nothing of CRUISE's train came, and more credit was out before than its senders use in a round
 * trip and a quarter, with a queue of a jump: it waits behind that. Their own windows, or what
 * applications write, are the limit.
 */
static inline bool credit_train_waits(const struct credit_law *c)
{
	u32 used_us = c->base_us + c->base_us / 4 + credit_jump_us(c);

	return c->kept_Bps && !c->train_high &&
	       c->window_bytes > credit_bytes_of(c->kept_Bps, used_us);
}

/* The bottleneck lets no two packets closer than its own rate has them. In a fair queue others do
 * that too: p' / p - 1 of them. The more it takes, the less long that is believed. Trains that
 * failed until then were too fast as well.
 * Return: the train was too fast for the bottleneck to say more than this.
 */
static inline bool credit_relearn_capacity(struct credit_law *c, u64 now_us)
{
	u32 gap_us = c->train_least_us;
	bool much = gap_us >= c->gap_us + c->gap_us / 3;

	if (c->train_got < CREDIT_TRAIN_LEAST || gap_us <= c->gap_us ||
	    c->noise_us >= gap_us / 2 ||
	    (much && c->mu_us && (now_us - c->mu_us) * gap_us < 2ULL * CREDIT_STALE_US * c->gap_us))
		return false;
	c->mu_Bps = credit_rate_of(c->mss_bytes, gap_us);
	c->gap_us = gap_us;
	if (much)
		c->fails = 0;
	return much;
}

/**
 * credit_judge() - the train is in, or will not come
 * @c: law
 * @now_us: our clock
 */
static inline void credit_judge(struct credit_law *c, u64 now_us)
{
	bool slower = credit_relearn_capacity(c, now_us), lost;
	u32 g;

	c->growth_permille = 10000;
	if (credit_train_waits(c)) {
		credit_cruise(c, now_us);
		return;
	}
	/* A full queue is as flat as a longer route, but loses part of a train. */
	lost = c->shift_new && c->train_got < c->train_marks;
	if (lost)
		credit_forget_route(c);
	if (!lost && (slower || credit_train_outgrows_senders(c))) {
		credit_train_spoilt(c, now_us);
		return;
	}
	if (lost || credit_train_lost_much(c) || !c->half_got[0] || !c->half_got[1] ||
	    c->half_got[0] + c->half_got[1] < CREDIT_TRAIN_LEAST) {
		credit_train_fails(c, now_us);
		return;
	}
	g = credit_train_growth(c);
	c->growth_permille = g;
	if (g == CREDIT_SPOILT) {
		credit_train_spoilt(c, now_us);
		return;
	}
	c->spoilt = 0;
	/* Likewise it leaves no room. */
	if (c->shift_new && g >= 100) {
		credit_forget_route(c);
		g = 10000;
	}
	if (c->shift_new)
		credit_move_route(c);
	if (g > credit_most_growth(c)) {
		/* One burst of others is more than a train. */
		if (c->kept_Bps && ++c->doubts < CREDIT_DOUBTS_MOST)
			credit_cruise(c, now_us);
		else
			credit_train_fails(c, now_us);
		return;
	}
	c->doubts = 0;
	c->rate_Bps = div_u64(c->mu_Bps * (g < 100 ? 980 : 900 - min(g, 850U)), 1000);
	/* The train of CRUISE may have missed others' bursts: not more than twice; and nothing
	 * where it came behind one, before the next.
	 */
	if (c->kept_Bps)
		c->rate_Bps = min(c->rate_Bps, c->train_queue_us < credit_met_us(c) ?
				  2 * c->kept_Bps : c->kept_Bps);
	/* Nobody now: what somebody left us then is no longer the measure. */
	if (g < 100 && !c->regret)
		c->left_Bps = 0;
	if (c->left_Bps)
		c->rate_Bps = min(c->rate_Bps, div_u64(c->left_Bps * 9, 10));
	credit_cruise(c, now_us);
}

#endif /* VULTURE_CREDIT_H */
