/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet interval variations: Algorithms 1, 2 and 3 of
 *
 *	Qian Li, Michael Welzl: Vulture - Variable Aggressiveness Ultra Low
 *	Impact Transport Using Receiver-based Flow-control Mechanism. Research
 *	Report 474, University of Oslo, 2017, sections 0.3.2 and 0.3.3.
 *
 * The law. Of two data packets sent at least PSI apart:
 *
 *	psi = sent - head.sent		(sender's clock, from TSval)
 *	pai = arrived - head.arrived	(our clock)
 *	piv = pai - psi			> 0: the path's queue grew in between
 *
 * Over the packets of one round trip:
 *
 *	conservative	if sum(piv) > 0 or more than half of them are > 0
 *	aggressive	otherwise
 *
 *	            conservative               aggressive
 *	high        |piv| >= cons_high         |piv| >= aggr_high
 *	low         |piv| <  cons_low          |piv| <= aggr_low
 *	middle      the rest                   the rest
 *
 * The paper counts in jiffies of 4 ms (PSI 5; thresholds 1, 2 and 3, 5). Here
 * times are microseconds, rounded down to multiples of tick_us: 4000 gives the
 * paper's integers, with which "equal to cons_low" and "from cons_low to below
 * cons_high" are the same.
 *
 * Departs from the paper in:
 *  - The paper does not say which packets enter the queue. Its pseudo-code queues only
 *    those that formed no pair (PIV_PAIR_LITERAL here), so half of the packets are never
 *    the earlier one of a pair, and the queue becomes empty again and again. PIV_PAIR_EACH,
 *    the default, queues each packet, and pairs it with the oldest packet of the latest
 *    sending time that is at least PSI ago. This gives one variation per packet, and the
 *    n-th packet of a burst is paired with the n-th of the burst before. The paper's sum
 *    of 41 jiffies in a round (Figure 7) needs about one pair per packet.
 *  - Packets sent further apart than PIV_GAP_US form no pair: the flow was idle.
 *  - The set of variations is not kept as a list. It is counted by the classes of both
 *    modes as it grows, and in the end those of the mode are used. The result is the
 *    same with O(1) memory.
 *
 * Pure functions: no clock, no packet. The caller holds the flow's lock.
 */
#ifndef VULTURE_PIV_H
#define VULTURE_PIV_H

#include <lbe/arith.h>
#include <lbe/tick.h>

/* Entries for packets that have no partner yet. A PSI of 20 ms is 17 full packets at 10 Mbit/s; at
 * higher rates an entry stands for several packets (PIV_MERGE_US).
 */
#define PIV_QUEUE	64
/* Neighbouring packets with a smaller distance than this in both clocks share an entry once the
 * queue is half full, us: an eighth of the smallest threshold, cons_low / 8.
 */
#define PIV_MERGE_US	500U
/* Longest sending interval of a pair, us: above any round trip, so that a flow
 * of one packet a round still has pairs, and below the pauses of an idle application.
 */
#define PIV_GAP_US	4000000
/* The tick for which the thresholds were chosen: 1/HZ of the paper's kernel. */
#define PIV_PAPER_TICK_US	4000U
/* Peers with a tick above this give no usable sending times (PSI is 20 ms). */
#define PIV_COARSE_US	10000U

enum piv_pairing {
	PIV_PAIR_EACH,		/* each packet enters the queue, and is the later one of a pair */
	PIV_PAIR_LITERAL,	/* the paper's pseudo-code as it stands */
};

enum piv_class { PIV_LOW, PIV_MIDDLE, PIV_HIGH, PIV_CLASSES };

enum piv_mode { PIV_CONSERVATIVE, PIV_AGGRESSIVE, PIV_MODES };

/* Set by the user (uapi/vulture.h gives ranges); never changed by the flow. */
struct piv_params {
	u32 tick_us;		/* both clocks are rounded down to this, us */
	u32 psi_us;		/* least sending interval of a pair, us */
	u32 cons_low_us;	/* conservative: low below this, us */
	u32 cons_high_us;	/* conservative: high from this on, us */
	u32 aggr_low_us;	/* aggressive: low up to this, us */
	u32 aggr_high_us;	/* aggressive: high from this on, us */
	u32 pairing;		/* enum piv_pairing */
};

/* One entry: @n packets with the same times. */
struct piv_packet {
	u32 sent_us;	/* sender's clock, rounded to tick_us, modulo 2^32 */
	u32 arrived_us;	/* our clock, the same way */
	u32 n;		/* number of packets, above 0 */
};

struct piv_queue {
	struct piv_packet at[PIV_QUEUE];
	u8 head;	/* index of the oldest */
	u8 len;		/* entries in use */
};

/* What Algorithms 2 and 3 need of the variations of one round. */
struct piv_set {
	u32 n;		/* number of variations */
	u32 negative, positive, zero;	/* their numbers by sign; the sum is n */
	s64 sum_us;	/* sum of all, us */
	u32 by[PIV_MODES][PIV_CLASSES];	/* their numbers by class, in either mode */
};

/* Round down to a multiple of the tick. Times of both clocks have an arbitrary origin. */
static inline u32 piv_round(s64 t_us, u32 tick_us)
{
	s64 ticks;

	if (tick_us <= 1)
		return (u32)t_us;
	ticks = div_s64(t_us, tick_us);
	if (t_us < 0 && ticks * tick_us != t_us)
		ticks--;
	return (u32)ticks * tick_us;
}

/**
 * piv_scale() - scale the thresholds to a peer with a coarse clock
 * @p: parameters as chosen for a tick of at most 4 ms
 * @peer_tick_us: tick of the peer's timestamps, us
 *
 * The paper's constants are multiples of its 4 ms tick. A coarser tick adds
 * noise of up to a tick to each variation, so all constants grow with the tick.
 */
static inline struct piv_params piv_scale(const struct piv_params *p,
					  u32 peer_tick_us)
{
	struct piv_params s = *p;

	if (peer_tick_us <= PIV_PAPER_TICK_US)
		return s;
	s.psi_us = (u32)div_u64((u64)p->psi_us * peer_tick_us, PIV_PAPER_TICK_US);
	s.cons_low_us = (u32)div_u64((u64)p->cons_low_us * peer_tick_us, PIV_PAPER_TICK_US);
	s.cons_high_us = (u32)div_u64((u64)p->cons_high_us * peer_tick_us, PIV_PAPER_TICK_US);
	s.aggr_low_us = (u32)div_u64((u64)p->aggr_low_us * peer_tick_us, PIV_PAPER_TICK_US);
	s.aggr_high_us = (u32)div_u64((u64)p->aggr_high_us * peer_tick_us, PIV_PAPER_TICK_US);
	return s;
}

/**
 * piv_params_ok() - whether the thresholds are consistent
 * @p: parameters, each within its own range already
 */
static inline bool piv_params_ok(const struct piv_params *p)
{
	return p->cons_low_us <= p->cons_high_us &&
	       p->aggr_low_us < p->aggr_high_us && p->tick_us <= p->psi_us;
}

static inline void piv_queue_clear(struct piv_queue *q)
{
	q->head = 0;
	q->len = 0;
}

static inline struct piv_packet *piv_queue_at(struct piv_queue *q, u8 i)
{
	return &q->at[(q->head + i) % PIV_QUEUE];
}

static inline void piv_queue_pop(struct piv_queue *q)
{
	q->head = (q->head + 1) % PIV_QUEUE;
	q->len--;
}

static inline void piv_queue_push(struct piv_queue *q,
				  const struct piv_packet *pkt)
{
	struct piv_packet *tail = q->len ? piv_queue_at(q, q->len - 1) : NULL;

	if (tail && (q->len == PIV_QUEUE ||
		     (q->len >= PIV_QUEUE / 2 &&
		      pkt->sent_us - tail->sent_us < PIV_MERGE_US &&
		      pkt->arrived_us - tail->arrived_us < PIV_MERGE_US))) {
		tail->n += pkt->n;
		return;
	}
	*piv_queue_at(q, q->len++) = *pkt;
}

/* The class of a variation in one mode, Algorithm 3. */
static inline enum piv_class piv_classify(const struct piv_params *p,
					  enum piv_mode mode, s32 piv_us)
{
	u32 size_us = piv_us < 0 ? -(u32)piv_us : (u32)piv_us;

	if (mode == PIV_CONSERVATIVE) {
		if (size_us >= p->cons_high_us)
			return PIV_HIGH;
		return size_us >= p->cons_low_us ? PIV_MIDDLE : PIV_LOW;
	}
	if (size_us >= p->aggr_high_us)
		return PIV_HIGH;
	return size_us <= p->aggr_low_us ? PIV_LOW : PIV_MIDDLE;
}

/**
 * piv_set_add() - Algorithm 2, one step: count @n equal variations
 */
static inline void piv_set_add(struct piv_set *set, const struct piv_params *p,
			       s32 piv_us, u32 n)
{
	set->n += n;
	if (piv_us < 0)
		set->negative += n;
	else if (piv_us > 0)
		set->positive += n;
	else
		set->zero += n;
	set->sum_us += (s64)piv_us * n;
	set->by[PIV_CONSERVATIVE][piv_classify(p, PIV_CONSERVATIVE, piv_us)] += n;
	set->by[PIV_AGGRESSIVE][piv_classify(p, PIV_AGGRESSIVE, piv_us)] += n;
}

/* Signed distance of two times, which wrap. */
static inline s32 piv_after_us(u32 later, u32 earlier)
{
	return (s32)(later - earlier);
}

/* Remove packets until the head is the oldest one of the latest sending time that lies at least PSI
 * before @sent_us, if there is such a time.
 */
static inline void piv_queue_advance(struct piv_queue *q, u32 sent_us,
				     u32 psi_us)
{
	while (q->len >= 2) {
		u32 first_us = piv_queue_at(q, 0)->sent_us;
		u8 i = 1;

		while (i < q->len && piv_queue_at(q, i)->sent_us == first_us)
			i++;
		if (i == q->len ||
		    piv_after_us(sent_us, piv_queue_at(q, i)->sent_us) < (s32)psi_us)
			return;
		while (i--)
			piv_queue_pop(q);
	}
}

/**
 * piv_on_data() - Algorithm 1: one arrival of @n packets that were sent at one time
 * @q: packets without a partner
 * @set: variations of this round, to which new ones are added
 * @p: parameters
 * @sent_us: when they were sent, sender's clock, us
 * @arrived_us: when they arrived, our clock, us
 * @n: number of packets (several in a GRO aggregate), above 0
 */
static inline void piv_on_data(struct piv_queue *q, struct piv_set *set,
			       const struct piv_params *p, s64 sent_us,
			       s64 arrived_us, u32 n)
{
	struct piv_packet pkt = {
		.sent_us = piv_round(sent_us, p->tick_us),
		.arrived_us = piv_round(arrived_us, p->tick_us),
		.n = n,
	};
	u32 left = n;

	while (q->len && left) {
		struct piv_packet *head;
		s32 psi_us, pai_us;
		u32 pairs;

		if (p->pairing == PIV_PAIR_EACH)
			piv_queue_advance(q, pkt.sent_us, p->psi_us);
		head = piv_queue_at(q, 0);
		psi_us = piv_after_us(pkt.sent_us, head->sent_us);
		pai_us = piv_after_us(pkt.arrived_us, head->arrived_us);
		if (psi_us > PIV_GAP_US || psi_us < -PIV_GAP_US) {
			piv_queue_clear(q);
			break;
		}
		if (psi_us < (s32)p->psi_us)
			break;
		pairs = min(left, head->n);
		piv_set_add(set, p, piv_after_us((u32)pai_us, (u32)psi_us), pairs);
		left -= pairs;
		head->n -= pairs;
		if (!head->n)
			piv_queue_pop(q);
	}
	if (p->pairing == PIV_PAIR_LITERAL)
		pkt.n = left;
	if (pkt.n)
		piv_queue_push(q, &pkt);
}

/**
 * piv_mode() - Algorithm 3: choose the mode by the variations of a round
 * @set: variations of the round, not empty
 * @positive_test: if false, the mode is always conservative, as in the paper's
 *	Figure 2 (before the use of sign and sum)
 */
static inline enum piv_mode piv_mode(const struct piv_set *set,
				     bool positive_test)
{
	if (!positive_test || set->sum_us > 0 || set->positive * 2ULL > set->n)
		return PIV_CONSERVATIVE;
	return PIV_AGGRESSIVE;
}

/* The tick of the peer's timestamps. A receiver cannot use round-trip times instead while it does
 * not know the tick. A first answer is therefore given after TICK_FIRST_US, and checked on longer
 * baselines. tick.h has the known ticks.
 */
#define TICK_FIRST_US	250000U		/* the tick is found despite a change of delay of 31 ms */
#define TICK_CHECK_US	2000000U	/* as LBE_OWD_LEARN_US */
#define TICK_RENEW_US	16000000U	/* start over: the clocks drift, or have a new offset */
#define TICK_MOST_US	1000000U	/* RFC 7323 section 5.4 */

struct piv_tick {
	u64 ref_us;	/* our clock at the begin of the baseline, us; 0 = none yet */
	u64 next_us;	/* length of the baseline for the next answer, us */
	u32 ref_tsval;	/* peer's TSval at its begin, peer ticks */
	u32 tick_us;	/* answer, us; 0 = not known yet */
	s64 sent_us;	/* sending time of last_tsval, us from an arbitrary origin */
	u32 last_tsval;	/* latest TSval that was converted to a time, peer ticks */
};

/* A tick that is not among the known ones, such as the 16 ms of old Windows. The measured value is
 * wrong by one part in some hundreds, too much to compute times of packets. It only shows that the
 * tick is coarse.
 */
static inline u32 piv_tick_coarse(u64 span_us, s32 ticks)
{
	u64 us = div_u64(span_us, ticks);

	return span_us >= 2 * TICK_CHECK_US && us > PIV_COARSE_US ?
		       min_t(u64, us, TICK_MOST_US) : 0;
}

/**
 * piv_tick_on_data() - learn the tick from one arrival
 * Return: true if tick_us changed (earlier sending times are in another unit)
 */
static inline bool piv_tick_on_data(struct piv_tick *t, u64 now_us, u32 tsval)
{
	s32 ticks = (s32)(tsval - t->ref_tsval);
	u64 span_us = now_us - t->ref_us;
	u32 found;
	u8 known;

	if (!t->ref_us || ticks < 0) {
		t->ref_us = now_us;
		t->ref_tsval = tsval;
		t->next_us = t->tick_us ? TICK_CHECK_US : TICK_FIRST_US;
		return false;
	}
	if (span_us < t->next_us || ticks == 0)
		return false;
	known = lbe_tick_snap(span_us, ticks);
	found = known ? lbe_ticks_us[known - 1] : piv_tick_coarse(span_us, ticks);
	if (found && span_us < TICK_CHECK_US)
		t->next_us = TICK_CHECK_US;
	else if (found || span_us >= TICK_RENEW_US)
		t->ref_us = 0;	/* the next packet starts a new baseline */
	else
		t->next_us += t->next_us / 4;
	if (!found || found == t->tick_us || (!known && t->tick_us > PIV_COARSE_US))
		return false;
	t->tick_us = found;
	t->sent_us = 0;
	t->last_tsval = tsval;
	return true;
}

/**
 * piv_tick_sent_us() - convert a TSval to a sending time, on a scale without wraps
 * The tick must be known.
 */
static inline s64 piv_tick_sent_us(struct piv_tick *t, u32 tsval)
{
	s32 ticks = (s32)(tsval - t->last_tsval);

	t->sent_us = (s64)((u64)t->sent_us + (u64)((s64)ticks * t->tick_us));
	t->last_tsval = tsval;
	return t->sent_us;
}

#endif /* VULTURE_PIV_H */
