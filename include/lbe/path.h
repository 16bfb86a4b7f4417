/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the flows of one path know together, and the one rate that they share.
 *
 * The law. With mu = capacity, R = rate of all our flows, X = rate of the others,
 * d = forward delay, q = d - base its queue, p = time of one packet at mu, e = noise
 * of the delay, RTT = round trip without queue, a full link has
 *
 *	dq/dt = (R + X - mu) / mu	hence	S = R' - mu dq/dt = mu - X
 *
 * is what the others leave, R' being the rate that the samples of now were sent at, a
 * round trip ago. CRUISE takes it and drains what q differs from its target qt = 2 p + e
 * within two round trips (one, if there is too much), per tick of RTT / 4:
 *
 *	R <- 1/2 (R + S + mu (qt - q) / (2 RTT))	at most 1.008 mu
 *	in flight <= R (RTT + 2 e) + 2 packets
 *
 * The bound on what is in flight stops us at once when somebody's burst holds our ACKs
 * up. Growth by more than a jump within a round trip is somebody who comes: we leave for FLOOR.
 * A jump is 2 e and the longest of three times. 5 p: a slow start begins with 10 packets, and half
 * of them must do. 1/2 ms: two slots of our own. RTT / 32, on paths that hold hundreds of packets:
 * a return at a rate that is 1/32 too high queues as much before it hears of it. But a slow start
 * goes on, doubles twice or more until we are gone, and is to find neither a full buffer nor the
 * delay that ends it early (4 to 16 ms in Linux): of that time no more than 4 ms and than 1/16 of
 * the longest queue that was met. START meets half of a BDP if the buffer has it.
 * We leave too if R is mu / 8 or less for two round trips: the others take what there is.
 * A silence that no burst of others explains is the link's: what waited for its end tells nothing.
 *
 * Loss is no sign of others where there are queues, for links lose packets too. If a round
 * trip, and the next one too, loses more than a third of what comes through, somebody drops
 * by rate (a policer), or the buffer was full when the base was learnt. What came through is
 * the capacity. For 180 s from then on CRUISE stays 1/32 below mu, sends no pulses, and ends
 * when 1/32 of a round trip is lost. In START once is enough if more was sent than in the round
 * trip before. A round that lasted for two round trips had an outage in it and tells nothing.
 *
 * A train of 8 packets at rate r shows how its delay grows, g = dq / dt:
 *
 *	r (1 + g)^-1		is what we get of the link
 *	r = mu, we were away	g mu is what the others send
 *	r = 1.25 mu, R near mu	r / (1 + g) is the capacity
 *	r = mu, R = rho mu	g is at most 1 - rho in a queue that is shared and does not grow:
 *				more was sent by others who have queues of their own
 *
 *	         queue             idle pairs            passed
 *	START ----------> FLOOR ---------------> PROBE ----------> CRUISE
 *	  R doubles       ^ ^ ^  a pair or a       | a train          |
 *	  every RTT       | | |  single a time     |                  |
 *	                  | | +--------------------+ grew, lost       |
 *	                  | +-----------------------------------------+ jump, mark,
 *	                  |                                             own queue, silence
 *	        each failure: more pairs, less often
 *
 * FLOOR is silent for as long as a slow start may take, log2(BDP / 10 packets) + 2 round
 * trips, so that it is not met half way by our queue. Then pairs, at most 2/5 % of the
 * capacity. A pair that meets no queue is evidence; a train decides. Each return that
 * fails asks for more pairs, and from the third on for pairs that come in as early as on
 * the idle path, in the mean: at a short queue a train costs the others a loss. Each such
 * failure doubles the time after which three pairs that met no queue do again.
 *
 * Where pairs meet no queue and trains grow, either the link is slower now, or others have
 * queues of their own. Two things tell. A link slows down at once, others come by slow
 * start: where what was in flight when we left came in slower than it was sent, for a round
 * trip, and the train came through at just that rate, the link is slower. Otherwise, at half
 * the rate that the train came through at, delays on an idle link differ no more than they did
 * when we cruised alone; behind another queue each packet waits 0 to p more. Two such trains
 * in a row with a spread below the calm noise + p / 8 set the capacity, where that noise is
 * below p / 4.
 * If pulses at 1.25 mu raise mu four times in a row by all they can tell, START finds out
 * how much faster the link is.
 *
 * Sending. The path has one schedule. A flow that has data takes the next slot of
 * (its burst) / R and queues up again when it has sent: any number of flows share R
 * alike, one that has nothing to send takes nothing, one that ends leaves at once.
 *
 * Constants: LBE_* below. Fractions in the text: 2 p + e keeps the link busy over one
 * delayed ACK.
 *
 * Pure functions: no clock, no socket, no lock. See tcp_lbe for the mechanism.
 */
#ifndef LBE_PATH_H
#define LBE_PATH_H

#include <lbe/arith.h>
#include <lbe/slots.h>

#ifndef USEC_PER_SEC
#define USEC_PER_SEC	1000000UL
#endif

/* The base delay is the least of so many slots, each of so many seconds. Double it: a
 * longer path hides for twice as long, if no flat pairs tell.
 */
#define LBE_PATH_SLOTS		3
#define LBE_PATH_SLOT_S		60
/* Ticks remembered: a round trip has 4. Power of 2. */
#define LBE_PATH_TICKS		8
/* Least noise assumed: timers and interrupts of hosts, us. Double it: a standing queue of
 * that much more on fast links.
 */
#define LBE_PATH_ERROR_US	250
/* A train: packets, and at least so long, us (fast links). Double them: half the error of
 * g, twice the queue in the way of others.
 */
#define LBE_TRAIN_PKTS		8
#define LBE_TRAIN_US		4000
/* Least capacity, bytes a second: keeps divisions sane. */
#define LBE_PATH_RATE_MIN	1000
/* An ACK of one packet may have been held if it comes this long after the one before,
 * us: below any delayed-ACK timer in use (40 ms in Linux).
 */
#define LBE_DELACK_US		25000
/* A slot is 2^-12 s, 244 us, one packet at least and at most what a TSO segment holds. A late
 * timer lets two slots go at once, and their queue is no jump. Double the time: on fast links
 * others must have twice the queue before we give way. Halve it: twice as many timers there.
 */
#define LBE_SLOT_SHIFT		12
#define LBE_SLOT_PKTS		44
/* A slot that was missed by up to this, ns, is made up for: timers are late by that much.
 * Double it: twice the burst after a rest.
 */
#define LBE_LATE_NS		1000000U
/* A train tells the rest of the link to some percent, and what is sent too fast queues for a round
 * trip. Double it: where a round trip holds hundreds of packets, returns beside steady traffic end
 * early; halve it: slow starts of others meet a queue that ends them.
 */
#define LBE_JUMP_RTTS		32
/* Of the longest queue met. Double it: beside steady traffic less is used where the buffer holds a
 * fifth of a round trip; halve it: best effort that comes and goes loses there.
 */
#define LBE_JUMP_DEEP		16
/* And at most, us. Double it: with 300 ms, best effort that comes and goes loses a twentieth; halve
 * it: less is used there.
 */
#define LBE_JUMP_US		4000
/* No ACK for longer than a round trip, than so many packets take, and than so long, us: the link
 * itself stood still. No burst of others is that long, and no receiver's timer. Double them: links
 * that stop for a quarter of a second are left for another second; halve them: a page that comes
 * by many connections at once is taken for a link that stops.
 */
#define LBE_STALL_PKTS		64
#define LBE_STALL_US		100000
/* Growth of a train, Q10. Below 0.05 it met nobody: a third of a packet's time over 8 packets is
 * noise. Above 0.72 somebody who takes turns with us, packet by packet (1.0), cannot be ruled
 * out. Double the first: trains pass that met others; halve the second: a third of the link
 * stays unused beside steady traffic of two fifths.
 */
#define LBE_GROWTH_NONE		52
#define LBE_GROWTH_FULL		742
/* Beside others a train's growth tells what they send to so much of the link, Q10: 0.15. So much
 * is left to them at a return, and by so much at least what they and we send exceeds the link
 * before the queue counts as ours alone: that noise is a sixteenth of the train or less. Double
 * it: behind fair queueing others lose their share for longer; halve it: returns beside steady
 * traffic end early.
 */
#define LBE_GROWTH_ERROR	154

/* Slots that tell whether the bottleneck is our own device. Double it: twice as long until it
 * is found, and until it is forgotten.
 */
#define LBE_LOCAL_MAX		16

/* A link slows down at once. A newcomer at a fair queue sends 10 packets in its first round trip,
 * and 20 in the next. Where a round trip holds so many packets, more than half of the link is
 * ours after the first and until the second are through. Double it: slower links are found by
 * the spread of delays alone where a round trip holds fewer packets; halve it: such a newcomer
 * is taken for a slower link.
 */
#define LBE_STEP_PKTS		40
/* Raises of the capacity in a row after which its growth is no measurement of others who have
 * left: 1.25^4 is 2.4. Double it: a link that is ten times faster is found in 16 s instead of 6 s;
 * halve it: hosts that share a link push each other away.
 */
#define LBE_RAISES		4
/* A flow that differs from the others of its path in so many samples more than it agreed in, and
 * for so long, ms, gets a path of its own. The time is twice what the peer's clock takes to be
 * learnt (owd.h): until then reverse traffic is in a new flow's delays. Double them: a peer that
 * lies is believed for twice as long; halve them: flows that start beside reverse traffic part.
 */
#define LBE_ODD			32
#define LBE_ODD_MS		4000

/* For so many round trips, times two for each failure up to a limit, pairs are held to strict
 * evidence: 6.4 s after the third failure at 100 ms, 51 s from the sixth on. A train costs others
 * eight packets. Double the first: twice as long out of pauses that are too short to prove;
 * halve it: twice as many trains beside a greedy flow.
 */
#define LBE_PATIENCE_RTTS	8
#define LBE_PATIENCE_MAX	6

/* More than a quarter of more packets than that is not lost by chance: at 5 % of random loss seven
 * of 25 are, once in six thousand round trips. Double it: a policer is found where a round trip
 * holds 48 packets; a third of it: of the transfers that begin on such a link one in ten takes it
 * for a policer's, and hardly uses it for three minutes.
 */
#define LBE_LOSS_PKTS		24
/* Who drops by rate drops in each round trip. A link that is gone for a moment, or a sender whose
 * clock was set back (the peer drops what has an older time stamp than it has seen), loses that
 * much of a round trip once. Three instead: best effort at a policer waits for a round trip
 * more; one instead: each such moment costs most of the link for three minutes.
 */
#define LBE_LOSS_ROUNDS		2

/* Pairs that all meet the same queue for so long, us, meet the path: cubic stays within two packets
 * of its plateau for 2 (2 / 0.4)^(1/3) s = 3.4 s. Double it: a longer route is found four seconds
 * later; halve it: a plateau is taken for the path.
 */
#define LBE_FLAT_US		(4 * USEC_PER_SEC)

enum lbe_state {
	LBE_START,	/* doubles its rate each round trip */
	LBE_CRUISE,	/* keeps a queue of about one packet */
	LBE_FLOOR,	/* a pair of packets now and then */
	LBE_PROBE,	/* a train, and its verdict to come */
};

enum lbe_reason {
	LBE_NEW,		/* the path is new */
	LBE_QUEUE_FOUND,	/* START has filled the link */
	LBE_QUEUE_JUMPED,	/* somebody came */
	LBE_PATH_IDLE,		/* evidence that nobody is there */
	LBE_TRAIN_GREW,		/* a train met others */
	LBE_TRAIN_PASSED,	/* a train met room */
	LBE_ISOLATED,		/* a queue of our own hides the others */
	LBE_TRAIN_LOST,		/* too few samples of a train */
	LBE_INSPECT,		/* slower link, or fair queueing? */
	LBE_SLOWER,		/* slower link */
	LBE_FASTER,		/* not slower after all */
	LBE_HEAVY_LOSS,		/* more than a quarter was lost */
	LBE_NOTHING_LEFT,	/* others take it all, bit by bit */
	LBE_SILENCE,		/* nothing heard for long: idle, or an outage */
};

/**
 * struct lbe_train - packets sent at a rate of their own, and what became of them
 * @from_us: it begins, time of sending
 * @until_us: it ends
 * @rate: bytes a second
 * @delay_us: sum of the delays of each half
 * @sent_us: sum of their times of sending since @from_us
 * @n: samples of each half
 * @least_us: least delay
 * @bytes: granted in its time
 * @lost_bytes: lost until its verdict, of whatever was out
 * @throttled: the sender's own device held it up
 * @limited: samples of packets sent when there was no more to send
 * @on: it is under way, or its verdict is to come
 */
struct lbe_train {
	u64 from_us, until_us, rate;
	u64 delay_us[2], sent_us[2];
	u32 n[2], least_us, limited;
	u64 bytes, lost_bytes;
	bool throttled, on;
};

/**
 * struct lbe_path - all of it is written under the caller's lock of the path
 *
 * Times are us on one clock that never wraps (u64), or ns where the name says so.
 *
 * @state: enum lbe_state
 * @reason: enum lbe_reason of the latest change
 * @epoch: counts changes of state; a slot reserved before one is void. Only
 *	compared for equality, so that it may wrap
 * @anew_us: when all was forgotten because flows contradicted each other; 0: never
 * @since_us: beginning of @state
 * @now_us: latest time that any flow told: CPUs may disagree by some us
 * @heard_us: latest ACK
 * @timed_out: a flow's timer has called lost all that it had out, and nothing was heard since
 * @mss: bytes of a full packet
 * @flows: sockets of the path, sending or not
 * @waiting: flows whose slot has come but not the room in flight
 * @in_flight: bytes of all flows
 * @next_ns: first slot that nobody has
 * @free_ns: what was sent last has passed at the rate of now
 * @base_age: ages @base_slot
 * @base_slot: least delays of the last minutes, us
 * @base_us: least of them; U32_MAX: none yet
 * @low_us: greatest of the samples far below the base, us
 * @lows: of these, in a row
 * @rtt_us: round trip with an empty forward queue, smoothed
 * @noise_us: by how much delays exceed the least of a tick in the mean
 * @calm_us: least noise while cruising; U32_MAX: none yet
 * @deep_us: longest queue met for a tick: the buffer is not shorter
 * @mu: capacity, bytes a second; 0: not known, only in LBE_START
 * @mu_far: how many measurements in a row were far off, below 0: all below @mu
 * @raises: how often in a row @mu was raised by as much as a pulse can tell
 * @policed_us: until then a loss is taken for somebody's
 * @round_us: beginning of the present round trip
 * @round_bytes: delivered in it
 * @round_lost: lost in it
 * @lossy: rounds in a row of which more than a quarter was lost
 * @delivered: rate of the one before, bytes a second
 * @leaving: the present one began when the path gave way
 * @tick_us: beginning of the present tick
 * @tick_sum: sum of its delays, us
 * @tick_n: samples in it
 * @tick_min: least of them, us
 * @q_us: mean queue of the latest ticks, ring
 * @r: rate of the latest ticks, bytes a second, ring
 * @ticks: index into both, modulo LBE_PATH_TICKS (a power of 2: it may wrap)
 * @high: samples in a row that say that somebody came
 * @high_us: when the first of them came
 * @low_ticks: ticks in a row with a queue below the target
 * @least_ticks: ticks in a row with an eighth of the capacity or less
 * @rate: of all flows together, bytes a second
 * @pulse_us: end of the latest pulse
 * @pulsed: the latest pulse is still to be paid for by a rest
 * @local: of the latest slots, how many found our own packets still at our own device; 0 to
 *	LBE_LOCAL_MAX
 * @isolated: pulses in a row that speak for a queue of our own
 * @blind_us: nothing is sent before, and nothing that was sent before is believed
 * @n: pairs in a row that met next to no queue
 * @excess_us: sum of their delays above the base
 * @idle_us: mean of these on the idle path; U32_MAX: not known
 * @fails: returns that came too early
 * @flat: pairs in a row that met the same queue
 * @flat_us: when the first of them was heard
 * @flat_min_us: least of these
 * @flat_max_us: greatest of these
 * @longer_us: by how much the base would rise, if the train passes
 * @came: rate at which came in what was in flight when the path gave way, bytes a second;
 *	0: as it was sent, or not known
 * @slower: capacity that would explain the failed train, bytes a second
 * @inspect: a train at half of it is to follow
 * @inspected: of these, how many spoke for it
 * @prompt: the receiver acknowledges single packets at once
 * @spoke: whose delay was the latest; only compared
 * @spoke_us: when it was heard
 * @spoke_delay_us: that delay
 * @train: the train or pulse under way
 */
struct lbe_path {
	u8 state, reason;
	u32 epoch;
	u64 anew_us, since_us, now_us, heard_us;
	bool timed_out;
	u32 mss, flows, waiting;
	u64 in_flight, next_ns, free_ns;

	struct lbe_slots base_age;
	u32 base_slot[LBE_PATH_SLOTS];
	u32 base_us, low_us, lows;
	u32 rtt_us, noise_us, calm_us, deep_us;

	u64 mu, policed_us;
	s8 mu_far;
	u8 raises;

	u64 round_us, round_bytes, round_lost, delivered;
	bool leaving;
	u8 lossy;

	u64 tick_us, tick_sum;
	u32 tick_n, tick_min;
	u32 q_us[LBE_PATH_TICKS];
	u64 r[LBE_PATH_TICKS];
	u32 ticks, low_ticks, least_ticks, high;
	u64 high_us;

	u64 rate, pulse_us;
	bool pulsed;
	u8 local, isolated;

	u64 blind_us;
	u32 n, excess_us, idle_us, fails;
	u64 flat_us;
	u32 flat, flat_min_us, flat_max_us, longer_us;
	u64 came, slower;
	bool inspect, prompt;
	u8 inspected;

	const void *spoke;
	u64 spoke_us;
	u32 spoke_delay_us;

	struct lbe_train train;
};

/**
 * struct lbe_view - how what a flow meets differs from what the others of its path meet
 * @odd: by how many samples more it met a longer (above 0) or a shorter delay (below 0) than agreed
 * @odd_ms: since when @odd is not 0; differences alone count: it wraps
 * @delay_us: its latest delay
 */
struct lbe_view {
	s32 odd;
	u32 odd_ms;
	u32 delay_us;
};

struct lbe_path_ack {
	u64 now_us;
	u32 delay_us;	/* 0: none that counts */
	u32 rtt_us;
	u32 acked_bytes;
	u32 lost_bytes;	/* newly taken to be lost */
	u32 acked_pkts;
	bool marked;
	bool limited;	/* of a packet sent when there was no more to send */
};

/* Arithmetic */

static inline u32 lbe_path_pkt_us(const struct lbe_path *p)
{
	return (u32)div64_u64((u64)p->mss * USEC_PER_SEC, max_t(u64, p->mu ?: p->rate, 1));
}

static inline u32 lbe_path_error_us(const struct lbe_path *p)
{
	return max_t(u32, p->noise_us, LBE_PATH_ERROR_US);
}

static inline u32 lbe_path_target_us(const struct lbe_path *p)
{
	return 2 * lbe_path_pkt_us(p) + lbe_path_error_us(p);
}

static inline u32 lbe_path_jump_us(const struct lbe_path *p)
{
	u32 own_us = max_t(u32, 5 * lbe_path_pkt_us(p), 2 * USEC_PER_SEC >> LBE_SLOT_SHIFT);
	u32 late_us = min(p->rtt_us / LBE_JUMP_RTTS, p->deep_us / LBE_JUMP_DEEP);

	return max(own_us, min_t(u32, late_us, LBE_JUMP_US)) + 2 * lbe_path_error_us(p);
}

static inline u32 lbe_path_tick_len_us(const struct lbe_path *p)
{
	return max_t(u32, p->rtt_us / 4, 8 * lbe_path_pkt_us(p));
}

/* Do losses tell of others here, as no queue does? */
static inline bool lbe_path_policed(const struct lbe_path *p)
{
	return p->now_us < p->policed_us;
}

static inline u64 lbe_path_bdp(u64 rate, u32 us)
{
	return div_u64(rate * us, USEC_PER_SEC);
}

static inline void lbe_path_enter(struct lbe_path *p, u64 now_us, u8 state, u8 reason)
{
	p->state = state;
	p->reason = reason;
	p->since_us = now_us;
	p->epoch++;
	p->train.on = false;
	p->pulsed = false;
	p->high = 0;
	p->waiting = 0;
	p->next_ns = 0;
	p->free_ns = 0;
}

static inline void lbe_path_next_tick(struct lbe_path *p, u64 now_us)
{
	p->tick_us = now_us;
	p->tick_n = 0;
	p->tick_sum = 0;
	p->tick_min = U32_MAX;
}

/* START begins as every TCP does, with 10 packets a round trip. */
static inline u64 lbe_path_first_rate(const struct lbe_path *p)
{
	return div_u64(10ULL * p->mss * USEC_PER_SEC, p->rtt_us);
}

static inline void lbe_path_init(struct lbe_path *p, u64 now_us, u32 mss, u32 rtt_us)
{
	memset(p, 0, sizeof(*p));
	p->mss = mss;
	p->rtt_us = max_t(u32, rtt_us, 100);
	p->rate = lbe_path_first_rate(p);
	p->base_us = U32_MAX;
	p->calm_us = U32_MAX;
	p->idle_us = U32_MAX;
	lbe_slots_init(&p->base_age, p->base_slot, LBE_PATH_SLOTS,
		       (u32)div_u64(now_us, USEC_PER_SEC));
	p->round_us = now_us;
	lbe_path_next_tick(p, now_us);
	lbe_path_enter(p, now_us, LBE_START, LBE_NEW);
}

/* Capacity */

static inline void lbe_path_set_mu(struct lbe_path *p, u64 mu)
{
	p->mu = clamp_t(u64, mu, LBE_PATH_RATE_MIN, U32_MAX);
	p->mu_far = 0;
}

static inline u32 lbe_train_len_us(const struct lbe_path *p)
{
	return max_t(u32, LBE_TRAIN_PKTS * max_t(u32, lbe_path_pkt_us(p), p->noise_us),
		     LBE_TRAIN_US);
}

/* One measurement: near ones are averaged, far ones count from the second in a row on, or from the
 * third where noise alone makes one far (an eighth) as easily as not.
 */
static inline void lbe_path_learn_mu(struct lbe_path *p, u64 now_us, u64 mu)
{
	s64 off = (s64)mu - (s64)p->mu;
	s8 side = off > 0 ? 1 : -1;
	int need = 12 * p->noise_us > lbe_train_len_us(p) ? 2 : 1;

	if (off < (s64)(p->mu >> 3) && -off < (s64)(p->mu >> 3)) {
		p->raises = 0;
		lbe_path_set_mu(p, p->mu + div_s64(off, 8));
	} else if (p->mu_far * side >= need) {
		/* Time and again faster than we could send: how much is to be found. */
		p->raises = off >= (s64)(p->mu / 6) ? p->raises + 1 : 0;
		lbe_path_set_mu(p, mu);
		if (p->raises >= LBE_RAISES) {
			p->raises = 0;
			lbe_path_enter(p, now_us, LBE_START, LBE_FASTER);
		}
	} else {
		p->mu_far = p->mu_far * side > 0 ? p->mu_far + side : side;
	}
}

/* Base delay */

static inline void lbe_path_base(struct lbe_path *p, u64 now_us, u32 delay_us)
{
	if (p->base_us != U32_MAX && delay_us + 1000 < p->base_us) {
		p->low_us = p->lows ? max(p->low_us, delay_us) : delay_us;
		if (++p->lows < 4)
			return;
		delay_us = p->low_us;
	}
	p->lows = 0;
	p->base_us = lbe_slots_update(&p->base_age, p->base_slot, LBE_PATH_SLOT_S,
				      (u32)div_u64(now_us, USEC_PER_SEC), delay_us);
}

/* Trains */

static inline void lbe_train_start(struct lbe_path *p, u64 now_us, u64 rate, u32 len_us)
{
	struct lbe_train *t = &p->train;

	memset(t, 0, sizeof(*t));
	t->from_us = now_us;
	t->until_us = now_us + len_us;
	t->rate = rate;
	t->on = true;
}

static inline u32 lbe_train_samples(const struct lbe_train *t)
{
	return t->n[0] + t->n[1];
}

static inline u32 lbe_train_mean_us(const struct lbe_train *t)
{
	return (u32)div_u64(t->delay_us[0] + t->delay_us[1], max_t(u32, lbe_train_samples(t), 1));
}

/* Bytes that are sent if there is enough */
static inline u64 lbe_train_paced(const struct lbe_train *t)
{
	return lbe_path_bdp(t->rate, (u32)(t->until_us - t->from_us));
}

/* In PROBE only data that ran out, or our own device, makes a train shorter. */
static inline bool lbe_train_whole(const struct lbe_train *t)
{
	return t->throttled || t->bytes >= lbe_train_paced(t);
}

/* Data ran out in it. A packet now and then of a flow with little to send is no such thing. */
static inline bool lbe_train_limited(const struct lbe_train *t)
{
	return 2 * t->limited > lbe_train_samples(t);
}

static inline void lbe_train_add(struct lbe_path *p, u64 sent_us, u32 delay_us, bool limited)
{
	struct lbe_train *t = &p->train;
	int half;

	if (!t->on || sent_us < t->from_us || sent_us >= t->until_us)
		return;
	t->limited += limited;
	t->least_us = lbe_train_samples(t) ? min(t->least_us, delay_us) : delay_us;
	half = sent_us - t->from_us >= (t->until_us - t->from_us) / 2;
	t->n[half]++;
	t->delay_us[half] += delay_us;
	t->sent_us[half] += sent_us - t->from_us;
}

/* Growth of delay a time of sending, Q10; below 0: it fell. Returns false: nothing can be said. */
static inline bool lbe_train_growth(const struct lbe_train *t, s32 *growth_q10)
{
	u64 paced;
	s64 d, s;

	if (!t->n[0] || !t->n[1])
		return false;
	d = (s64)div_u64(t->delay_us[1], t->n[1]) - (s64)div_u64(t->delay_us[0], t->n[0]);
	s = (s64)div_u64(t->sent_us[1], t->n[1]) - (s64)div_u64(t->sent_us[0], t->n[0]);
	if (s <= 0)
		return false;
	*growth_q10 = (s32)clamp_t(s64, div_s64(d * 1024, (s32)s), -1023, 1 << 20);
	paced = lbe_train_paced(t);
	if (t->throttled && paced > t->bytes)
		*growth_q10 = (s32)min_t(u64, div64_u64((1024 + *growth_q10) * paced,
							max_t(u64, t->bytes, 1)), 1 << 20) - 1024;
	return true;
}

/* Changes of state */

static inline void lbe_path_yield(struct lbe_path *p, u64 now_us, u8 reason, u32 blind_rtts)
{
	lbe_path_enter(p, now_us, LBE_FLOOR, reason);
	p->blind_us = now_us + (u64)blind_rtts * p->rtt_us;
	p->n = 0;
	p->excess_us = 0;
	p->flat = 0;
	p->inspect = false;
}

/* Round trips of a slow start from 10 packets to the path's content, and two. */
static inline u32 lbe_path_slow_start_rtts(const struct lbe_path *p)
{
	u64 pkts = div_u64(lbe_path_bdp(p->mu, p->rtt_us), 10 * p->mss);
	u32 rtts = 2;

	for (; pkts > 1; pkts >>= 1)
		rtts++;
	return rtts;
}

/* Others are there while we cruise: leave them the time of a slow start. If they did not
 * come but were there all the time, or came soon after us, our return failed.
 */
static inline void lbe_path_give_way(struct lbe_path *p, u64 now_us, u8 reason)
{
	u32 rtts = lbe_path_slow_start_rtts(p);

	if (reason != LBE_QUEUE_JUMPED || now_us - p->since_us < 3ULL * p->rtt_us) {
		p->fails++;
	} else {
		p->fails = 0;
		/* What is on its way comes in at the rate that is left, for a round trip. */
		p->came = 0;
		p->leaving = lbe_path_bdp(p->mu, p->rtt_us) > LBE_STEP_PKTS * p->mss;
		p->round_us = now_us;
		p->round_bytes = 0;
		p->round_lost = 0;
	}
	lbe_path_yield(p, now_us, reason, rtts);
}

static inline void lbe_path_cruise(struct lbe_path *p, u64 now_us, u64 rate, u8 reason)
{
	unsigned int i;

	lbe_path_enter(p, now_us, LBE_CRUISE, reason);
	p->rate = rate;
	for (i = 0; i < LBE_PATH_TICKS; i++) {
		p->r[i] = rate;
		p->q_us[i] = lbe_path_target_us(p);
	}
	p->pulse_us = now_us;
	lbe_path_next_tick(p, now_us);
	p->ticks = 0;
	p->low_ticks = 0;
	p->least_ticks = 0;
	p->isolated = 0;
}

/* A train passed although all pairs met the same queue: that is the path, not a queue. */
static inline void lbe_path_longer(struct lbe_path *p)
{
	lbe_slots_raise(&p->base_age, p->base_slot, p->longer_us);
	p->base_us += p->longer_us;
	p->rtt_us = max(p->rtt_us, p->base_us);
	p->longer_us = 0;
}

/* The link is slower, and idle. */
static inline void lbe_path_slower(struct lbe_path *p, u64 now_us, u64 mu)
{
	u32 pkt_us = lbe_path_pkt_us(p);

	lbe_path_set_mu(p, mu);
	/* A packet's own transmission is part of the delay. */
	p->longer_us = lbe_path_pkt_us(p) - min(lbe_path_pkt_us(p), pkt_us);
	lbe_path_longer(p);
	lbe_path_cruise(p, now_us, mu - mu / 8, LBE_SLOWER);
}

/* Verdicts of trains */

/* A train at half the rate that a failed one came through at. On an idle link its delays
 * differ as they do alone; behind another queue's packets each also waits for the rest of
 * one of them, 0 to a packet's time.
 */
static inline void lbe_path_inspect(struct lbe_path *p, u64 now_us)
{
	lbe_path_enter(p, now_us, LBE_PROBE, LBE_INSPECT);
	lbe_train_start(p, now_us, p->slower / 2,
			(u32)div64_u64(32ULL * p->mss * USEC_PER_SEC, p->slower / 2));
}

static inline void lbe_path_inspect_verdict(struct lbe_path *p, u64 now_us)
{
	const struct lbe_train *t = &p->train;
	u32 spread_us = lbe_train_mean_us(t) - t->least_us;
	bool calm = lbe_train_samples(t) >= 10 && spread_us < p->calm_us + lbe_path_pkt_us(p) / 8;

	lbe_path_yield(p, now_us, calm ? LBE_INSPECT : LBE_TRAIN_GREW, 1);
	p->inspect = calm && !p->inspected++;
	if (calm && !p->inspect)
		lbe_path_slower(p, now_us, p->slower);
}

/* A train that met nobody: its packets came in as they do on the idle path. */
static inline void lbe_path_learn_idle(struct lbe_path *p)
{
	const struct lbe_train *t = &p->train;
	u32 mean_us = lbe_train_mean_us(t);
	u32 idle_us = mean_us - min(mean_us, p->base_us + p->longer_us);

	p->idle_us = p->idle_us == U32_MAX ? idle_us : (3 * p->idle_us + idle_us) / 4;
}

static inline void lbe_path_probe_verdict(struct lbe_path *p, u64 now_us)
{
	u64 slower;
	s32 g;

	if (!lbe_train_growth(&p->train, &g)) {
		p->fails += !lbe_train_limited(&p->train) && lbe_train_whole(&p->train);
		lbe_path_yield(p, now_us, LBE_TRAIN_LOST, 1);
		return;
	}
	slower = div_u64(p->mu << 10, 1024 + max(g, 0));
	if (g >= LBE_GROWTH_NONE && p->came > slower - slower / 8 &&
	    p->came < slower + slower / 8) {
		lbe_path_slower(p, now_us, p->came);
	} else if (g > (p->longer_us ? LBE_GROWTH_NONE : LBE_GROWTH_FULL) ||
		   p->train.lost_bytes * 4 > p->train.bytes) {
		p->fails++;
		lbe_path_yield(p, now_us, LBE_TRAIN_GREW, 1);
		p->slower = max_t(u64, slower, LBE_PATH_RATE_MIN);
		/* What half of a packet's time is to tell must not drown in noise. */
		p->inspect = p->fails >= 2 && g > LBE_GROWTH_NONE &&
			     p->calm_us < lbe_path_pkt_us(p) / 4;
		p->inspected = 0;
	} else if (g < LBE_GROWTH_NONE) {
		lbe_path_learn_idle(p);
		lbe_path_longer(p);
		lbe_path_cruise(p, now_us, p->mu - p->mu / 50, LBE_TRAIN_PASSED);
	} else {
		lbe_path_cruise(p, now_us, p->mu * (1024 - g - LBE_GROWTH_ERROR) >> 10,
				LBE_TRAIN_PASSED);
	}
}

static inline void lbe_path_pulse_verdict(struct lbe_path *p, u64 now_us)
{
	const struct lbe_train *t = &p->train;
	s32 g, share_q10, error_q10;

	p->train.on = false;
	p->pulse_us = now_us;
	p->high = 0;
	if (lbe_train_limited(t) || !lbe_train_growth(t, &g))
		return;
	if (t->rate > p->mu) {
		u64 c = div_u64(t->rate << 10, (u32)max_t(s32, 1024 + g, 512));

		lbe_path_learn_mu(p, now_us, min(c, t->rate));
		return;
	}
	/* There was no queue before: in one that is shared, what others send and we do fits,
	 * but for the train's error, 5/4 of the noise in half of its length.
	 */
	share_q10 = (s32)div64_u64(p->rate << 10, p->mu);
	error_q10 = max_t(s32, LBE_GROWTH_ERROR,
			  (s32)div64_u64(p->noise_us * 2560ULL, t->until_us - t->from_us));
	if (g + share_q10 > 1024 + error_q10) {
		if (++p->isolated >= 2)
			lbe_path_give_way(p, now_us, LBE_ISOLATED);
		return;
	}
	p->isolated = 0;
	if (g < 870) {
		u64 rate = (p->mu * (u32)clamp_t(s32, 1024 - g - 100, 0, 1000)) >> 10;

		p->rate = max(p->rate, rate);
	}
}

static inline void lbe_path_verdict(struct lbe_path *p, u64 now_us)
{
	if (p->state == LBE_CRUISE)
		lbe_path_pulse_verdict(p, now_us);
	else if (p->reason == LBE_INSPECT)
		lbe_path_inspect_verdict(p, now_us);
	else
		lbe_path_probe_verdict(p, now_us);
}

/* START and CRUISE, tick by tick */

/* The rate that leaves the queue where it should be. */
static inline void lbe_path_cruise_law(struct lbe_path *p, u32 q_us, u32 dt_us)
{
	u32 back = min_t(u32, LBE_PATH_TICKS - 1, p->rtt_us / max_t(u32, dt_us, 1));
	u32 before_us = p->q_us[(p->ticks - 1) % LBE_PATH_TICKS];
	u64 sent = p->r[(p->ticks - 1 - back) % LBE_PATH_TICKS];
	s32 qt = (s32)lbe_path_target_us(p);
	s64 mu = (s64)p->mu;
	s64 spare, drain, rate;

	spare = (s64)sent - div_s64(mu * ((s32)q_us - (s32)before_us), (s32)dt_us);
	drain = div_s64(mu * (qt - (s32)q_us), 2 * (s32)p->rtt_us);
	if ((s32)q_us > qt)
		drain *= 2;
	rate = ((s64)p->rate + spare + drain) / 2;
	p->rate = (u64)clamp_t(s64, rate, max_t(s64, mu / 64, LBE_PATH_RATE_MIN),
			       lbe_path_policed(p) ? mu - mu / 32 : mu + mu / 128);
	p->q_us[p->ticks % LBE_PATH_TICKS] = q_us;
	p->r[p->ticks++ % LBE_PATH_TICKS] = p->rate;
}

static inline void lbe_path_queue_found(struct lbe_path *p, u64 now_us)
{
	u64 span_us = now_us - p->round_us;
	u64 rate = p->delivered;

	if (span_us > p->rtt_us / 4)
		rate = max(rate, div64_u64(p->round_bytes * USEC_PER_SEC, span_us));
	lbe_path_set_mu(p, rate);
	lbe_path_yield(p, now_us, LBE_QUEUE_FOUND, 1);
}

/* Time between pulses: they cost others a short queue. Half while the capacity seems to rise. */
static inline u64 lbe_path_pulse_gap_us(const struct lbe_path *p)
{
	u64 gap_us = max_t(u64, 10ULL * p->rtt_us, USEC_PER_SEC);

	return p->raises || p->mu_far > 0 ? gap_us / 2 : gap_us;
}

/* Others have taken what there was. At so low a rate silence may come before the next tick. */
static inline bool lbe_path_nothing_left(const struct lbe_path *p)
{
	return p->rate <= p->mu / 8;
}

static inline void lbe_path_tick(struct lbe_path *p, u64 now_us)
{
	u32 len_us = lbe_path_tick_len_us(p);
	u32 dt_us = (u32)min_t(u64, now_us - p->tick_us, max_t(u32, len_us, USEC_PER_SEC));
	u32 mean_us, least_us, q_us;

	if (dt_us < len_us || !p->tick_n)
		return;
	mean_us = (u32)div_u64(p->tick_sum, p->tick_n);
	q_us = mean_us - min(mean_us, p->base_us);
	least_us = p->tick_min - min(p->tick_min, p->base_us);
	p->deep_us = max(p->deep_us, least_us);
	if (p->state == LBE_START && least_us > max_t(u32, 3 * lbe_path_pkt_us(p), 3000)) {
		lbe_path_queue_found(p, now_us);
		return;
	}
	if (p->tick_n > 1 && (p->state == LBE_START ||
			      p->state == LBE_CRUISE))
		p->noise_us += ((s32)(mean_us - p->tick_min) - (s32)p->noise_us) /
			       (p->state == LBE_START ? 4 : 16);
	lbe_path_next_tick(p, now_us);

	if (p->state == LBE_START) {
		p->rate = min_t(u64, p->rate + p->rate / 5,
				max_t(u64, 2 * p->delivered + p->delivered / 4,
				      div_u64(12ULL * p->mss * USEC_PER_SEC, p->rtt_us)));
	} else if (p->state == LBE_CRUISE) {
		u32 target_us = lbe_path_target_us(p);

		lbe_path_cruise_law(p, q_us, dt_us);
		if (p->ticks > 16)
			p->calm_us = min(p->calm_us, p->noise_us);
		p->low_ticks = q_us < target_us ? p->low_ticks + 1 : 0;
		p->least_ticks = lbe_path_nothing_left(p) ? p->least_ticks + 1 : 0;
		if (p->least_ticks >= LBE_PATH_TICKS) {
			lbe_path_give_way(p, now_us, LBE_NOTHING_LEFT);
			return;
		}
		if (!p->train.on && p->low_ticks >= 4 && !lbe_path_policed(p) &&
		    now_us - p->pulse_us > lbe_path_pulse_gap_us(p)) {
			p->pulsed = true;
			lbe_train_start(p, now_us,
					p->rate > p->mu - p->mu / 10 ?
					p->mu + p->mu / 4 : p->mu,
					lbe_train_len_us(p));
		}
	}
}

/* Losses and queues of others */

static inline void lbe_path_round(struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 before = p->r[p->ticks % LBE_PATH_TICKS];
	u64 span_us = a->now_us - p->round_us, all;
	u32 least_us = max_t(u32, p->rtt_us, 8 * lbe_path_pkt_us(p));
	bool policed = lbe_path_policed(p), outage, more;

	p->round_bytes += a->acked_bytes;
	p->round_lost += a->lost_bytes;
	p->train.lost_bytes += a->lost_bytes;
	if (span_us < least_us)
		return;
	all = p->round_bytes + p->round_lost;
	outage = span_us > 2ULL * least_us;
	/* START overruns a link with more than it sent before, and not when data runs out. */
	more = !a->limited && all * USEC_PER_SEC >= (p->delivered + p->delivered / 2) * span_us;
	p->delivered = div64_u64(p->round_bytes * USEC_PER_SEC, span_us);
	if (p->round_lost * 4 <= all || all <= LBE_LOSS_PKTS * p->mss)
		p->lossy = 0;
	else if (!outage)
		p->lossy = min(p->lossy + 1, LBE_LOSS_ROUNDS);
	/* No random loss is that heavy: a full buffer that was full when we learnt the
	 * base, or a policer. What came through is what there is: at a known policer only
	 * if it is so much that we were alone.
	 */
	if ((p->state == LBE_START || p->state == LBE_CRUISE) && !p->high &&
	    (policed ? p->round_lost * 32 > all :
	     !outage && p->lossy >= (p->state == LBE_START && more ? 1 : LBE_LOSS_ROUNDS))) {
		if (!policed || (!outage && p->delivered > p->mu / 2))
			lbe_path_set_mu(p, p->delivered);
		p->policed_us = a->now_us + LBE_PATH_SLOTS * LBE_PATH_SLOT_S * USEC_PER_SEC;
		lbe_path_give_way(p, a->now_us, LBE_HEAVY_LOSS);
	}
	if (p->leaving && p->delivered < before - before / 16)
		p->came = p->delivered;
	p->leaving = false;
	p->round_us = a->now_us;
	p->round_bytes = 0;
	p->round_lost = 0;
}

/* Is somebody else's queue there? What a pulse of ours queues is never far. */
static inline void lbe_path_watch(struct lbe_path *p, u64 now_us, u32 q_us, bool pulse)
{
	u32 jump_us = lbe_path_jump_us(p);
	bool far = q_us > 2 * jump_us;

	if (pulse && !far)
		return;
	if (!far && q_us < p->q_us[(p->ticks - 4) % LBE_PATH_TICKS] + jump_us) {
		p->high = 0;
		return;
	}
	if (!p->high)
		p->high_us = now_us;
	p->high++;
	if ((far && p->high >= 2) ||
	    (p->high >= 4 && now_us - p->high_us >= 8 * lbe_path_pkt_us(p)))
		lbe_path_give_way(p, now_us, LBE_QUEUE_JUMPED);
}

/* FLOOR */

/* After three trains that failed, or one at a policer, which has no queue, pairs are to be more,
 * and to come in as early as on the idle path in the mean: behind a queue of others' each waits
 * for the rest of a packet, half of p. Beside others who leave pauses too short for that, or a
 * steady part of the link, it is never so: after LBE_PATIENCE_RTTS, doubled with each failure,
 * fewer do.
 */
static inline bool lbe_path_strict(const struct lbe_path *p)
{
	u64 patience_us = ((u64)p->rtt_us * LBE_PATIENCE_RTTS) <<
			  min_t(u32, p->fails, LBE_PATIENCE_MAX);

	return (p->fails >= 3 || (p->fails && lbe_path_policed(p))) &&
	       p->now_us - p->since_us < patience_us;
}

/* Pairs that met next to no queue. */
static inline bool lbe_path_looks_idle(const struct lbe_path *p)
{
	bool strict = lbe_path_strict(p);
	u32 need = strict ? 2 + 2 * min_t(u32, p->fails, 4) : clamp_t(u32, p->fails + 1, 2, 3);
	u32 pkt_us = lbe_path_pkt_us(p);

	if (!p->fails && p->n == 1)
		return p->excess_us < pkt_us / 3 + lbe_path_error_us(p) / 2;
	return p->n >= need && (!strict || p->idle_us == U32_MAX ||
				p->excess_us / p->n < p->idle_us + pkt_us / 4);
}

/* Time between pairs in FLOOR */
static inline u32 lbe_path_pair_us(const struct lbe_path *p)
{
	u64 least_us = p->rtt_us + p->rtt_us / 4;
	u64 budget_us = div64_u64((p->prompt ? 1ULL : 2ULL) * p->mss * 1000 / 4 * USEC_PER_SEC,
				  max_t(u64, p->mu, 1));
	u64 us = div_u64(p->now_us - p->since_us, 6);

	us = max(min(us, budget_us), least_us);
	/* those that are to agree come one after the other, before a pause is over */
	if (p->n && p->fails >= 3 && !lbe_path_strict(p))
		us = least_us;
	else if (p->fails >= 2)
		us = max(us, (u64)p->rtt_us << min_t(u32, p->fails - 1, 4));
	return (u32)min_t(u64, us, 5 * USEC_PER_SEC);
}

static inline void lbe_path_evidence(struct lbe_path *p, const struct lbe_path_ack *a, u32 q_us)
{
	u32 pkt_us = lbe_path_pkt_us(p);
	u32 own_us = a->acked_pkts >= 2 ? pkt_us : 0;
	bool due;

	if (a->now_us - a->rtt_us < p->blind_us)
		return;
	p->blind_us = a->now_us;
	if (a->acked_pkts == 1) {
		/* It may have been held: ask again with two. */
		if (p->prompt && q_us > LBE_DELACK_US) {
			p->prompt = false;
			return;
		}
		p->prompt = true;
	}
	p->flat_min_us = min(q_us, p->flat_min_us);
	p->flat_max_us = max(q_us, p->flat_max_us);
	if (!p->flat++ || p->flat_max_us - p->flat_min_us >
			  2 * lbe_path_error_us(p) + min_t(u32, pkt_us, 2 * LBE_PATH_ERROR_US)) {
		p->flat = 1;
		p->flat_us = a->now_us;
		p->flat_min_us = q_us;
		p->flat_max_us = q_us;
	}
	if (q_us < lbe_path_target_us(p) + lbe_path_error_us(p)) {
		p->n++;
		p->excess_us += q_us - min(q_us, own_us);
	} else {
		p->n = 0;
		p->excess_us = 0;
	}
	due = lbe_path_looks_idle(p);
	if (due || (p->flat >= 8 && a->now_us - p->flat_us >= LBE_FLAT_US)) {
		p->longer_us = due ? 0 : p->flat_min_us - min(p->flat_min_us, own_us);
		lbe_path_enter(p, a->now_us, LBE_PROBE, LBE_PATH_IDLE);
		lbe_train_start(p, a->now_us, p->mu, lbe_train_len_us(p));
	}
}

/* What is heard */

/* Nothing was heard for as long as no burst of others lasts, while packets were on their way: the
 * link stood still (a station that scans or sleeps, an outage). What was sent until now waited for
 * it, and tells nothing of others.
 */
static inline bool lbe_path_stood_still(const struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 least_us = max3(p->rtt_us, LBE_STALL_PKTS * lbe_path_pkt_us(p), (u32)LBE_STALL_US);

	return p->state == LBE_CRUISE && p->now_us - p->heard_us > least_us &&
	       a->rtt_us > p->rtt_us + least_us;
}

/* A flow had no more to send, as each has when it begins; but another waits for its slot, so that
 * the path sends all that it may.
 */
static inline bool lbe_path_wanted(const struct lbe_path *p)
{
	return p->flows > 1 && p->next_ns > p->now_us * 1000;
}

/**
 * lbe_path_ack() - what one ACK of one flow tells the path
 */
static inline void lbe_path_ack(struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 sent_us = a->now_us - a->rtt_us;
	bool limited;
	u32 q_us;

	p->now_us = max(p->now_us, a->now_us);
	if (lbe_path_stood_still(p, a))
		p->blind_us = p->now_us;
	p->heard_us = p->now_us;
	p->timed_out = false;
	lbe_path_round(p, a);
	if (!a->delay_us || (p->state == LBE_CRUISE && sent_us < p->blind_us))
		return;
	/* Until then a path may not know more than a guess, and have its rate from that. */
	if (p->base_us == U32_MAX) {
		p->rtt_us = clamp_t(u32, a->rtt_us, 100, p->rtt_us);
		if (p->state == LBE_START)
			p->rate = max(p->rate, lbe_path_first_rate(p));
	}
	lbe_path_base(p, a->now_us, a->delay_us);
	q_us = a->delay_us - min(a->delay_us, p->base_us);
	if (a->marked)	/* somebody's queue, whatever the delay says */
		q_us = max(q_us, 2 * lbe_path_jump_us(p) + 1);
	else if (a->rtt_us > q_us)
		p->rtt_us += ((s32)(a->rtt_us - q_us) - (s32)p->rtt_us) / 16;
	limited = a->limited && !lbe_path_wanted(p);
	/* What a pulse queues is no sign of others; and START asks what the link makes of its
	 * rate, which it cannot if there was less to send.
	 */
	if ((!p->train.on || sent_us < p->train.from_us) &&
	    !(p->state == LBE_START && limited)) {
		p->tick_sum += a->delay_us;
		p->tick_n++;
		p->tick_min = min(p->tick_min, a->delay_us);
	}
	lbe_train_add(p, sent_us, a->delay_us, limited);
	if (p->state == LBE_CRUISE)
		lbe_path_watch(p, a->now_us, q_us, p->train.on || sent_us < p->pulse_us);
	else if (p->state == LBE_FLOOR)
		lbe_path_evidence(p, a, q_us);
	if (p->train.on && sent_us > p->train.until_us)
		lbe_path_verdict(p, a->now_us);
	lbe_path_tick(p, a->now_us);
}

/* Time itself moves on, with no ACK. */
static inline void lbe_path_time(struct lbe_path *p, u64 now_us)
{
	p->now_us = max(p->now_us, now_us);
	if (p->state == LBE_CRUISE && p->now_us - p->heard_us >
				      max_t(u64, 4ULL * p->rtt_us, USEC_PER_SEC)) {
		if (lbe_path_nothing_left(p))
			lbe_path_give_way(p, p->now_us, LBE_NOTHING_LEFT);
		else
			lbe_path_yield(p, p->now_us, LBE_SILENCE, 0);
	}
	if (p->state == LBE_FLOOR && p->inspect && p->now_us >= p->blind_us)
		lbe_path_inspect(p, p->now_us);
	if (p->train.on && p->now_us > p->train.until_us + 3ULL * p->rtt_us)
		lbe_path_verdict(p, p->now_us);
}

/* A flow comes. If the path had none, and nothing was heard for long, what failed then says
 * nothing of now.
 */
static inline void lbe_path_join(struct lbe_path *p, u64 now_us)
{
	if (!p->flows++ && now_us - min(now_us, p->heard_us) > USEC_PER_SEC)
		p->fails = 0;
}

/* Sending */

static inline u64 lbe_path_send_rate(const struct lbe_path *p)
{
	if (p->train.on && p->now_us < p->train.until_us)
		return p->train.rate;
	/* After a train a quarter of it, so that there is news when its verdict comes;
	 * after one that failed as good as nothing.
	 */
	if (p->state == LBE_PROBE)
		return p->fails ? p->mu / 64 : p->mu / 4;
	return p->rate;
}

/* Packets that one slot carries. */
static inline u32 lbe_path_burst_pkts(const struct lbe_path *p)
{
	u32 pkts;

	if (p->state == LBE_FLOOR)
		return p->prompt ? 1 : 2;
	pkts = (u32)clamp_t(u64, div64_u64(lbe_path_send_rate(p) >> LBE_SLOT_SHIFT, p->mss),
			    1, LBE_SLOT_PKTS);
	if (pkts < 2 && (u64)p->flows * p->mss * USEC_PER_SEC > lbe_path_send_rate(p) * 10000)
		return 2;
	return pkts;
}

static inline u64 lbe_path_slot_ns(const struct lbe_path *p, u32 bytes, u32 dither)
{
	u64 slot_ns;

	if (p->state != LBE_FLOOR)
		return div64_u64(bytes * 1000000000ULL, lbe_path_send_rate(p));
	slot_ns = lbe_path_pair_us(p) * 1000ULL;
	return slot_ns + (slot_ns >> 10) * ((s32)(dither % 256) - 128);
}

/* How far back a slot may begin that is taken now: a late timer costs no rate. */
static inline u64 lbe_path_late_ns(u64 now_ns, u64 slot_ns)
{
	return now_ns - min(min_t(u64, slot_ns, LBE_LATE_NS), now_ns);
}

/* When the next slot is. Those who wait for room in flight go first. */
static inline u64 lbe_path_next_due(const struct lbe_path *p, u64 now_ns, u64 slot_ns)
{
	if (p->state == LBE_FLOOR)
		return max(max(p->next_ns, now_ns), p->blind_us * 1000);
	return max(p->next_ns, lbe_path_late_ns(now_ns, slot_ns) + p->waiting * slot_ns);
}

/* START does not book for later than a round trip, or its rate would act when all flows have had a
 * slot at the first one's: eight seconds for a thousand of them. Return: when a slot that may not
 * be booked yet would be, at today's rate; 0: it may be.
 */
static inline u64 lbe_path_book_after(const struct lbe_path *p, u64 now_ns, u64 slot_ns)
{
	u64 due_ns;

	if (p->state != LBE_START)
		return 0;
	due_ns = lbe_path_next_due(p, now_ns, slot_ns);
	return due_ns > now_ns + p->rtt_us * 1000ULL ? due_ns : 0;
}

/* Take the next slot: when is it? */
static inline u64 lbe_path_reserve(struct lbe_path *p, u64 now_ns, u64 slot_ns)
{
	u64 due_ns;

	/* A pulse is sent on credit. */
	if (p->pulsed && p->now_us >= p->train.until_us) {
		u64 more = p->train.rate - min(p->train.rate, p->rate);
		u64 len_us = p->train.until_us - p->train.from_us;

		p->pulsed = false;
		p->next_ns = max(p->next_ns, now_ns) +
			     1000 * div64_u64(len_us * more, max_t(u64, p->rate, 1));
	}
	due_ns = lbe_path_next_due(p, now_ns, slot_ns);
	p->next_ns = due_ns + slot_ns;
	return due_ns;
}

/* Nobody takes this slot: the next flow that asks gets it, if it is of the present schedule. */
static inline void lbe_path_give_back(struct lbe_path *p, u32 epoch, u64 due_ns)
{
	if (epoch == p->epoch)
		p->next_ns = min(p->next_ns, due_ns);
}

/* A slot has come. @mine: packets of the flow are still at our own device; @any: packets of
 * anybody wait there. Where ours keep waiting it is the bottleneck, and there is no need to
 * guess what others want: while anything waits, nothing goes. Pairs do go.
 */
static inline bool lbe_path_device_busy(struct lbe_path *p, bool mine, bool any)
{
	if (p->state == LBE_FLOOR)
		return false;
	if (mine)
		p->local += p->local < LBE_LOCAL_MAX;
	else if (!any)
		p->local -= p->local > 0;
	if (!any || p->local < LBE_LOCAL_MAX / 2)
		return false;
	/* That nothing is heard is our own doing, and what the train meets is here. */
	p->heard_us = p->now_us;
	p->train.throttled = p->train.on;
	return true;
}

/* Something leaves now. */
static inline void lbe_path_sent(struct lbe_path *p, u64 now_ns, u64 slot_ns, u32 bytes)
{
	if (p->train.on && p->now_us < p->train.until_us)
		p->train.bytes += bytes;
	if (p->state != LBE_FLOOR)
		p->free_ns = max(p->free_ns, lbe_path_late_ns(now_ns, slot_ns)) + slot_ns;
}

/* Bytes that may be in flight. */
static inline u64 lbe_path_cap(const struct lbe_path *p, u32 burst_bytes)
{
	u64 cap;

	if (p->state == LBE_START)
		return lbe_path_bdp(p->rate, 2 * p->rtt_us) + 10 * p->mss;
	if (p->state != LBE_CRUISE)
		return U64_MAX;
	/* It may still be on its way: one slot goes, and then what is heard decides. */
	if (p->timed_out)
		return 0;
	cap = lbe_path_bdp(p->rate, p->rtt_us + 2 * p->noise_us) +
	      max(2 * p->mss, burst_bytes);
	if (p->train.on)
		cap += lbe_train_paced(&p->train);
	return cap;
}

/* Flows that contradict each other */

/* All that was known of the path may be what one flow made of it. Its flows stay. Not more often
 * than a base is taken: START fills queues, and a peer that lies on each new connection could keep
 * the path there.
 */
static inline void lbe_path_begin_anew(struct lbe_path *p, u64 now_us)
{
	u32 flows = p->flows, epoch = p->epoch + 1;
	u64 in_flight = p->in_flight;

	if (p->anew_us && now_us - p->anew_us < LBE_PATH_SLOT_S * USEC_PER_SEC)
		return;

	lbe_path_init(p, now_us, p->mss, p->rtt_us);
	p->epoch = epoch;
	p->flows = flows;
	p->in_flight = in_flight;
	p->now_us = now_us;
	p->heard_us = now_us;
	p->anew_us = now_us;
}

/**
 * lbe_path_contradicts() - does a flow meet another queue than the others of its path?
 * @p: the path
 * @v: what is known of that; its address is the flow's name
 * @a: an ACK of the flow, with a delay; before lbe_path_ack()
 *
 * Flows of one path meet one queue. One whose delays are longer or shorter than the others', by
 * more than twice what its own move by, time after time, has another route, another host behind
 * the address, or a peer that lies. It is to get a path of its own when this returns true, and what
 * it told has been forgotten, if no other was told apart of late.
 */
static inline bool lbe_path_contradicts(struct lbe_path *p, struct lbe_view *v,
					const struct lbe_path_ack *a)
{
	u64 apart_us = a->now_us - min(a->now_us, p->spoke_us);
	/* In FLOOR the flows take turns: each pair is compared with the one before. */
	u32 within_us = p->state == LBE_FLOOR ? 2 * lbe_path_pair_us(p) + p->rtt_us : p->rtt_us;
	bool another = p->spoke && p->spoke != v && apart_us < within_us;
	s32 off_us = (s32)(a->delay_us - p->spoke_delay_us);
	s32 own_us = (s32)(a->delay_us - v->delay_us);
	s32 same_us = 2 * max(own_us, -own_us) + lbe_path_pkt_us(p) + LBE_PATH_ERROR_US;
	int side = (off_us > same_us) - (off_us < -same_us);

	v->delay_us = a->delay_us;
	p->spoke = v;
	p->spoke_us = a->now_us;
	p->spoke_delay_us = a->delay_us;
	if (!another || p->flows < 2)
		return false;
	if (!v->odd)
		v->odd_ms = (u32)div_u64(a->now_us, 1000);
	if (side && side * v->odd >= 0)
		v->odd += side;
	else
		v->odd -= clamp_t(s32, v->odd, -2, 2);
	if (max(v->odd, -v->odd) < LBE_ODD ||
	    (u32)div_u64(a->now_us, 1000) - v->odd_ms < LBE_ODD_MS)
		return false;
	lbe_path_begin_anew(p, a->now_us);
	return true;
}

#endif /* LBE_PATH_H */
