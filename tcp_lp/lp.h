/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP-LP: the arithmetic of the law, as pure functions (tcp_lp.c has the law).
 *
 * Every function works on struct lp and plain numbers, so that the module, KUnit
 * and the host tests run the same source. Delays are those of path_delay.h.
 */
#ifndef LBE_TCP_LP_LP_H
#define LBE_TCP_LP_LP_H

#include <lbe/arith.h>
#include <lbe/path_delay.h>

/* The paper's gamma, 1/8 as a power of two, and inference time-out, RTT. */
#define LP_GAMMA_SHIFT		3
#define LP_ITT_RTTS		3
/* Longest rest between pairs at the floor, RTT. Twice as long halves what a flow at
 * the floor costs other flows, and doubles the time until it notices that they have
 * left.
 */
#define LP_REST_MAX_RTTS	8
/* A loss from a window of so few packets or fewer is an indication, with or without a
 * queue: if each of many flows has so small a window, the queue never drains, and no
 * flow ever sees base. Until the window has grown beyond this, rests continue from the
 * last one: 64 flows of 2 packets a round trip fill a path of 10 Mbit/s and 100 ms.
 */
#define LP_CROWD_PKTS		4
/* If a flow has had no loss, and its window has not limited it for so long, the largest
 * delay seen was caused by other flows and is taken for full, ms. A TCP flow fills a buffer
 * of a round trip or two well within it. Half: a burst is taken for a full buffer; twice: a
 * flow with little to send learns twice as late.
 */
#define LP_QUIET_MS		10000
/* At the floor, a delay that is flat for so long is a longer path, ms; near full
 * it may be a full queue and has to last so many times longer.
 */
#define LP_ROUTE_MS		10000
#define LP_ROUTE_NEAR_FULL	10
/* If the range between base and full holds few packets compared with this, and the way
 * back is busy, one packet of ours costs TCP more than its share: see lp_few(). Doubling
 * it, lp uses an eighth less of what TCP leaves, at the same cost to TCP (measured).
 */
#define LP_FEW_PKTS		64
/* The inference phase is prolonged at most so many times, so that it does not take a minute
 * if the range holds a single packet.
 */
#define LP_FEW_MAX		8
/* A delay of up to this part of what it was at the cut (5/8, in eighths) is
 * what halving our own window explains: 1/2 and some noise.
 */
#define LP_OWN_EIGHTHS		5
/* Longest round trip with which the arithmetic calculates, us; longer ones are cut to it. */
#define LP_RTT_MAX_US		60000000U
/* Longest inference phase: at the floor, with the longest rest. */
#define LP_PHASE_MAX_MS		((LP_ITT_RTTS * LP_FEW_MAX + LP_REST_MAX_RTTS) * \
				 (LP_RTT_MAX_US / 1000))

struct lp {
	struct lbe_path_delay path;
	u32 sd_q;	/* smoothed delay, us << LP_GAMMA_SHIFT; 0 = none yet */
	u32 mark_seq;	/* snd_nxt at the last reaction while stale; after that,
			 * when the delay rose above the threshold. Compared only
			 * while stale or above, so no older than a round trip
			 */
	u32 itt_end_ms;	/* inference ends then; valid if inference; wraps in 49
			 * days, and is believed for LP_PHASE_MAX_MS
			 */
	u32 cut_us;	/* sd when the latest indication came, us */
	u16 delta_permille; /* threshold's place between base and full */
	u16 before_pkts; /* window before the first of the latest indications, or
			  * that rate's on a longer path; saturates
			  */
	u8  rest_rtts;	/* rest before the next pair at the floor, RTT; later the
			 * last one, until the window was above LP_CROWD_PKTS
			 */
	u8  mark;	/* what of the LE mark is ours (LBE_MARK_*) */
	u8  on:1,	/* init has run (the handshake's ACK comes before) */
	    paper:1,	/* the paper's rule: sd above the threshold, once */
	    marks:1,	/* router marks are the signal, delay is not (lp_ecn) */
	    ece:1,	/* the ACK in hand carries ECN-Echo */
	    held:1,	/* ACKs are held up on their way back */
	    above:1,	/* the latest delay was above the threshold */
	    stale:1,	/* waiting for data sent after mark_seq to be ACKed */
	    inference:1; /* within itt of an indication */
	u8  floor:1,	/* window is one packet a round trip, or less */
	    losing:1,	/* a loss is being repaired */
	    by_loss:1,	/* nothing but losses asked for the inference phase */
	    undone:1;	/* the latest loss was none: TCP has undone its reduction */
};

enum lp_event {
	LP_NONE,
	LP_DELAY,	/* early congestion indication: delay */
	LP_ECE,		/* the same: ECN-Echo */
	LP_LOSS,	/* a loss at the floor or in a crowd: the same */
	LP_LONGER_PATH,	/* the latest indications were a longer path */
	LP_OVER,	/* the inference phase ended */
	LP_LEARNT,	/* full is known from now on */
};

static inline void lp_init(struct lp *lp, u32 delta_permille, bool paper,
			   bool marks, u32 now_ms)
{
	memset(lp, 0, sizeof(*lp));
	lbe_delay_init(&lp->path, now_ms);
	lp->delta_permille = delta_permille;
	lp->paper = paper;
	lp->marks = marks;
	lp->on = 1;
}

/* ---- the threshold --------------------------------------------------------- */

static inline u32 lp_sd_us(const struct lp *lp)
{
	return lp->sd_q >> LP_GAMMA_SHIFT;
}

/* Is full known? Before that, delay is not acted upon. */
static inline bool lp_learnt(const struct lp *lp)
{
	return lp->path.full_us;
}

/* Queueing delay that is an indication when exceeded, us: delta of the range,
 * as in the paper's equation (2), and unless that is asked for to the letter no
 * less than noise. A flow that never had the link to itself takes a packet's time
 * for longer than it is; an eighth of the range bounds that.
 */
static inline u32 lp_margin_us(const struct lp *lp)
{
	u32 range_us = lbe_delay_range_us(&lp->path);
	u32 margin_us = div_u64((u64)range_us * lp->delta_permille, 1000);

	if (lp->paper)
		return margin_us;
	return max(margin_us, LBE_DELAY_NOISE_US +
			      min_t(u32, lp->path.pkt_us, range_us / 8));
}

/* How many times fewer packets than LP_FEW_PKTS the range holds, where ACKs are
 * held up on their way back; else 1. They come in clumps then, TCP's packets in
 * bursts, and each of ours in a burst delays TCP by a packet's time or takes a
 * place in a buffer of few. So one sample is an indication, and the inference
 * phase at the floor is so many times longer.
 */
static inline u32 lp_few(const struct lp *lp)
{
	u32 range_us = lbe_delay_range_us(&lp->path);
	u32 pkt_us = min_t(u32, lp->path.pkt_us, range_us / LP_FEW_MAX);

	if (!lp->held || !range_us || lp->paper)
		return 1;
	return clamp_t(u32, (LP_FEW_PKTS * pkt_us + range_us / 2) / range_us, 1,
		       LP_FEW_MAX);
}

/* sd = (1 - gamma) sd + gamma d; begins anew when sd_q is 0. The largest delay
 * that fits, 2^26 us = 67 s, is cut off.
 */
static inline void lp_smooth(struct lp *lp, u32 d_us)
{
	d_us = clamp_t(u32, d_us, 1, 1U << 26);
	if (lp->sd_q)
		lp->sd_q += d_us - lp_sd_us(lp);
	else
		lp->sd_q = d_us << LP_GAMMA_SHIFT;
}

/* ---- samples ---------------------------------------------------------------- */

/* The flow is, or is not, held back by its window. Before any loss, and if it is
 * not for long, the largest delay seen is the work of others and good for full.
 */
static inline void lp_limited(struct lp *lp, bool limited, u32 now_ms)
{
	struct lbe_path_delay *p = &lp->path;

	if (lp_learnt(lp))
		return;
	if (limited)
		p->flat_ms = now_ms;
	else if (now_ms - p->flat_ms >= LP_QUIET_MS && lbe_delay_peak_is_full(p))
		lbe_delay_repaired(p);
}

static inline bool __lp_after(u32 seq, u32 mark)
{
	return (s32)(seq - mark) > 0;
}

/* Data up to snd_nxt says nothing about what comes next. */
static inline void lp_mark(struct lp *lp, u32 snd_nxt)
{
	lp->mark_seq = snd_nxt;
	lp->stale = 1;
}

/* One ACK with a delay. */
struct lp_ack {
	struct lbe_delay_sample path;
	u32 snd_una;	/* next sequence number to be ACKed, after it */
	u32 snd_nxt;	/* next sequence number to be sent */
	u32 now_ms;	/* now, ms */
	bool lone;	/* one packet, and none was delivered since it was sent */
};

/* Has the delay been above the threshold for a whole round trip? What comes and
 * goes within one is a burst, and leaves the link idle the rest of the time. At
 * the floor a pair is all that a round trip has: two pairs in a row.
 */
static inline bool __lp_persists(struct lp *lp, const struct lp_ack *ack,
				 bool was_above)
{
	if (!was_above)
		lp->mark_seq = ack->snd_nxt;
	return lp->paper || lp_few(lp) > 1 ||
	       (was_above &&
		(lp->floor || __lp_after(ack->snd_una, lp->mark_seq)));
}

static inline void lp_inference_end(struct lp *lp)
{
	lp->inference = 0;
	lp->floor = 0;
}

/* What outlives a change of the path is the rate, not the window: on a path twice
 * as long it takes twice the packets. No more than that, in case it was a queue.
 */
static inline void __lp_scale_before(struct lp *lp, u32 old_us, u32 new_us)
{
	u64 pkts = div_u64((u64)lp->before_pkts * new_us, max_t(u32, old_us, 1));

	pkts = min_t(u64, pkts, lp->before_pkts * 2);
	lp->before_pkts = min_t(u64, pkts, U16_MAX);
}

/* At the floor our own window moves no queue. Return: the path became longer. */
static inline bool __lp_longer_path(struct lp *lp, u32 d_us, u32 now_ms)
{
	struct lbe_path_delay *p = &lp->path;
	u32 range_us = lbe_delay_range_us(p), base_us = lbe_delay_base_us(p);
	bool near_full = d_us + range_us / 4 > p->full_us &&
			 d_us < p->full_us + range_us / 8;

	if (!lbe_delay_steady(p, d_us, lbe_delay_noise_us(p), near_full ?
			     LP_ROUTE_MS * LP_ROUTE_NEAR_FULL : LP_ROUTE_MS, now_ms))
		return false;
	__lp_scale_before(lp, base_us, lbe_delay_base_us(p));
	lp->above = 0;
	lp->rest_rtts = 0;
	lp_inference_end(lp);
	return true;
}

/**
 * lp_sample() - take in one delay
 * @lp: state
 * @ack: the ACK that brought it
 *
 * Return: LP_DELAY if this is an early congestion indication, LP_LONGER_PATH if
 * the latest ones were none, else LP_NONE.
 */
static inline enum lp_event lp_sample(struct lp *lp, const struct lp_ack *ack)
{
	u32 margin_us = lp_margin_us(lp), d_us = ack->path.delay_us;
	u32 base_us = lbe_delay_base_us(&lp->path);
	bool was_above = lp->above;

	lp->held = ack->path.held_us > margin_us;
	if (ack->lone && ack->path.queue_us > margin_us)
		return LP_NONE;
	if (lp->stale && __lp_after(ack->snd_una, lp->mark_seq)) {
		lp->stale = 0;
		lp->sd_q = 0;
		was_above = was_above && lp->floor;
	}
	lp_smooth(lp, d_us);
	if (!lp_learnt(lp) || lp->path.peak_us)
		lbe_delay_lost(&lp->path, lp_sd_us(lp));
	lp->above = lp_learnt(lp) && !lp->marks &&
		    (lp->paper ? lp_sd_us(lp) : d_us) > base_us + margin_us;
	if (lp->stale || !lp->above || !__lp_persists(lp, ack, was_above))
		return LP_NONE;
	if (lp->floor && !lp->paper && __lp_longer_path(lp, d_us, ack->now_ms))
		return LP_LONGER_PATH;
	return LP_DELAY;
}

/* ---- reactions --------------------------------------------------------------- */

/* Is the delay that is left what halving our own window explains? Round-trip
 * time of a flow alone is its window over the link's rate, so half the window
 * is half of it. With others in the queue it falls by less.
 */
static inline bool lp_own_queue(const struct lp *lp)
{
	return !lp->paper &&
	       (u64)lp_sd_us(lp) * 8 <= (u64)lp->cut_us * LP_OWN_EIGHTHS;
}

/**
 * lp_react() - the window that an early congestion indication leaves
 * @lp: state
 * @event: what kind of indication
 * @window_pkts: packets in use (the window, or the flight if that is less)
 * @snd_nxt: next sequence number to be sent
 * @srtt_us: smoothed round-trip time, us
 * @now_ms: now, ms
 *
 * First indication: half. Another one within the inference time-out: 1, unless
 * our own window explains it. Either (re)starts the time-out, whose end neither
 * later round trips nor later ACKs move.
 *
 * Return: the new window, at least 1 packet.
 */
static inline u32 lp_react(struct lp *lp, enum lp_event event, u32 window_pkts,
			   u32 snd_nxt, u32 srtt_us, u32 now_ms)
{
	u32 new_pkts = max_t(u32, window_pkts / 2, 1), rtts;

	if (!lp->inference) {
		lp->before_pkts = min_t(u32, window_pkts, U16_MAX);
		lp->by_loss = 1;
	}
	if (event != LP_LOSS)
		lp->by_loss = 0;
	if (event == LP_LOSS ||
	    (lp->inference && !(event == LP_DELAY && lp_own_queue(lp))))
		new_pkts = 1;

	if (window_pkts > LP_CROWD_PKTS)
		lp->rest_rtts = 0;
	if (new_pkts == 1)
		lp->rest_rtts = clamp_t(u32, lp->rest_rtts * 2, 1,
					LP_REST_MAX_RTTS);
	if (!lp->floor)
		lbe_delay_unsteady(&lp->path);
	lp->floor = new_pkts == 1;
	lp->cut_us = lp_sd_us(lp);
	lp_mark(lp, snd_nxt);
	lp->inference = 1;
	rtts = lp->floor ? LP_ITT_RTTS * lp_few(lp) + lp->rest_rtts : LP_ITT_RTTS;
	lp->itt_end_ms = now_ms +
		div_u64((u64)rtts * min(srtt_us, LP_RTT_MAX_US) + 999, 1000);
	return new_pkts;
}

/* A loss was repaired, from a window of before_pkts, or was none. What was in flight is no
 * news (the paper ignores indications for a round trip). Return: is it an indication?
 */
static inline bool lp_repaired(struct lp *lp, u32 before_pkts, u32 snd_nxt)
{
	lp_mark(lp, snd_nxt);
	if (lp->undone)
		return false;
	lbe_delay_repaired(&lp->path);
	return lp->floor || (before_pkts <= LP_CROWD_PKTS && !lp->paper);
}

/* The latest loss was none: it taught nothing, and if it was repaired already, an inference
 * phase that only losses asked for is over. Return: was there one?
 */
static inline bool lp_undo(struct lp *lp)
{
	bool over = !lp->losing && lp->inference && lp->by_loss;

	lp->undone = 1;
	lbe_delay_undone(&lp->path);
	if (over)
		lp_inference_end(lp);
	return over;
}

/* Does the inference phase end now? Not while an indication is under way. */
static inline bool lp_inference_over(struct lp *lp, u32 now_ms)
{
	u32 left_ms = lp->itt_end_ms - now_ms;

	/* more left than the longest phase has: the clock has passed its end */
	if (!lp->inference || (left_ms && left_ms <= LP_PHASE_MAX_MS) ||
	    (lp->above && !lp->stale))
		return false;
	lp_inference_end(lp);
	return true;
}

/* May the window grow? */
static inline bool lp_may_grow(const struct lp *lp)
{
	return !lp->inference && !lp->above;
}

#endif /* LBE_TCP_LP_LP_H */
