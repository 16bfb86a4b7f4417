/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP-LP: the arithmetic of the law, as pure functions (tcp_lp.c describes the law).
 *
 * Every function works on struct lp and plain numbers, so that the module, KUnit
 * and the host tests use the same source. path_delay.h defines the delays: base,
 * full (the delay at which packets are lost) and the range between the two.
 */
#ifndef LBE_TCP_LP_LP_H
#define LBE_TCP_LP_LP_H

#include <lbe/arith.h>
#include <lbe/path_delay.h>

/* The paper's gamma, 1/8 as a power of two, and its inference time-out, RTT. */
#define LP_GAMMA_SHIFT		3
#define LP_ITT_RTTS		3
/* Longest rest (pause without packets) between two pairs of packets at the floor, RTT. If
 * it is doubled, a flow at the floor takes half as much from other flows, and notices
 * twice as late that they have ended.
 */
#define LP_REST_MAX_RTTS	8
/* A loss from a window of at most this many packets is an indication, with or without a
 * queue: if many flows have such small windows, the queue never drains, and no flow
 * measures base. A rest doubles the previous one as long as the window has not exceeded
 * this: 64 flows of 2 packets a round trip fill a path of 10 Mbit/s and 100 ms.
 */
#define LP_CROWD_PKTS		4
/* If full is not known, and the window has not limited the flow for this time, ms, other
 * flows caused the largest delay seen, and it is used as full. A TCP flow fills a buffer of
 * one or two round trips well within this time. If it is halved, a burst counts as a full
 * buffer; if it is doubled, a flow with little data to send learns full twice as late.
 */
#define LP_QUIET_MS		10000
/* At the floor, a delay that is constant for this time, ms, is that of a longer path. Near
 * full it may be that of a full queue, and must be constant for NEAR_FULL times as long.
 */
#define LP_ROUTE_MS		10000
#define LP_ROUTE_NEAR_FULL	10
/* If the range holds fewer packets than this, and the reverse path is busy, a packet of this
 * flow costs TCP more than its share: see lp_few(). If it is doubled, lp uses an eighth less
 * of the capacity that TCP leaves, at the same cost to TCP (measured).
 */
#define LP_FEW_PKTS		64
/* Upper bound of lp_few(), by which the inference phase is multiplied: without it the phase
 * takes a minute if the range holds a single packet.
 */
#define LP_FEW_MAX		8
/* If the delay has fallen to this part of its value at the reduction, or below, the halving
 * of this flow's own window explains that: 1/2 and some noise, in eighths.
 */
#define LP_OWN_EIGHTHS		5
/* Longest round trip in the calculations, us; longer ones are limited to it. */
#define LP_RTT_MAX_US		60000000U
/* Longest inference phase, ms: at the floor, with the longest rest. */
#define LP_PHASE_MAX_MS		((LP_ITT_RTTS * LP_FEW_MAX + LP_REST_MAX_RTTS) * \
				 (LP_RTT_MAX_US / 1000))

struct lp {
	struct lbe_path_delay path;
	u32 sd_q;	/* smoothed delay, us << LP_GAMMA_SHIFT; 0 = none yet */
	u32 mark_seq;	/* stale: snd_nxt at the last reaction; else: snd_nxt when
			 * the delay rose above the threshold. Compared only
			 * while stale or above, so no older than a round trip
			 */
	u32 itt_end_ms;	/* end of the inference phase; valid if inference; wraps in
			 * 49 days, and is valid for LP_PHASE_MAX_MS
			 */
	u32 cut_us;	/* sd at the latest indication, us */
	u16 delta_permille; /* threshold's place between base and full */
	u16 before_pkts; /* window before the first of the latest indications,
			  * scaled if the path became longer; saturates
			  */
	u8  rest_rtts;	/* rest before the next pair at the floor, RTT; above the
			 * floor the last one, until the window was above
			 * LP_CROWD_PKTS
			 */
	u8  mark;	/* parts of the LE mark that this flow has set (LBE_MARK_*) */
	u8  on:1,	/* init has run (the handshake's ACK precedes it) */
	    paper:1,	/* the paper's rule: sd above the threshold, once */
	    marks:1,	/* router marks are the signal, delay is not (lp_ecn) */
	    ece:1,	/* the present ACK carries ECN-Echo */
	    held:1,	/* ACKs meet a queue on the reverse path */
	    above:1,	/* the latest delay was above the threshold */
	    stale:1,	/* no data sent after mark_seq has been ACKed yet */
	    inference:1; /* in the inference phase */
	u8  floor:1,	/* window is one packet a round trip, or less */
	    losing:1,	/* a loss is being repaired */
	    by_loss:1,	/* all indications of this inference phase were losses */
	    undone:1;	/* the latest loss was spurious: TCP has undone its reduction */
};

enum lp_event {
	LP_NONE,
	LP_DELAY,	/* early congestion indication by delay */
	LP_ECE,		/* early congestion indication by ECN-Echo */
	LP_LOSS,	/* indication by a loss at the floor or from a small window */
	LP_LONGER_PATH,	/* a longer path had caused the latest indications */
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

/* Is full known? Before that, delay gives no indication. */
static inline bool lp_learnt(const struct lp *lp)
{
	return lp->path.full_us;
}

/* Queueing delay above which there is an indication, us: delta of the range, as in
 * the paper's equation (2), and without paper=1 at least the noise. A flow that
 * never had the link to itself measures too long a packet time; an eighth of the
 * range limits that.
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

/* LP_FEW_PKTS divided by the packets that the range holds if ACKs meet a queue on the
 * reverse path; else 1. Such ACKs arrive in clumps, TCP then sends in bursts, and each
 * packet of this flow within a burst delays TCP by a packet time or takes one of the
 * few places in the buffer. If the result is above 1, a single sample is an
 * indication, and the inference phase at the floor is this many times longer.
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

/* sd = (1 - gamma) sd + gamma d; the first delay if sd_q is 0. Delays are limited to
 * 2^26 us = 67 s, so that sd_q fits.
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

/* @limited: the window limits this flow. If full is not known, and the window has not limited
 * the flow for LP_QUIET_MS, the largest delay seen was caused by other flows and becomes full.
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

/* Delays of data sent before snd_nxt give no indication. */
static inline void lp_mark(struct lp *lp, u32 snd_nxt)
{
	lp->mark_seq = snd_nxt;
	lp->stale = 1;
}

/* One ACK with a delay. */
struct lp_ack {
	struct lbe_delay_sample path;
	u32 snd_una;	/* next sequence number to be ACKed, after this ACK */
	u32 snd_nxt;	/* next sequence number to be sent */
	u32 now_ms;	/* now, ms */
	bool lone;	/* one packet, and no other one was delivered since it was sent */
	bool reducing;	/* TCP sets the window: CWR, Recovery or Loss */
};

/* Has the delay been above the threshold for a whole round trip? A queue that appears
 * and drains within one is a burst, after which the link is idle. At the floor a
 * round trip has only one pair: two pairs in a row are required.
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

/* After a change of the path the rate is to be the same, not the window: on a path
 * twice as long that takes twice the packets. The factor is at most 2, in case the
 * delay was a queue.
 */
static inline void __lp_scale_before(struct lp *lp, u32 old_us, u32 new_us)
{
	u64 pkts = div_u64((u64)lp->before_pkts * new_us, max_t(u32, old_us, 1));

	pkts = min_t(u64, pkts, lp->before_pkts * 2);
	lp->before_pkts = min_t(u64, pkts, U16_MAX);
}

/* At the floor this flow's window is too small to cause a queue, so a constant delay is the
 * path's. While TCP reduces the window, the flow could not resume: the delay is only observed.
 * Return: the path became longer.
 */
static inline bool __lp_longer_path(struct lp *lp, const struct lp_ack *ack)
{
	struct lbe_path_delay *p = &lp->path;
	u32 d_us = ack->path.delay_us, wait_ms = LP_ROUTE_MS;
	u32 range_us = lbe_delay_range_us(p), base_us = lbe_delay_base_us(p);
	bool near_full = d_us + range_us / 4 > p->full_us &&
			 d_us < p->full_us + range_us / 8;

	if (near_full)
		wait_ms *= LP_ROUTE_NEAR_FULL;
	if (ack->reducing)
		wait_ms = U32_MAX;
	if (!lbe_delay_steady(p, d_us, lbe_delay_noise_us(p), wait_ms, ack->now_ms))
		return false;
	__lp_scale_before(lp, base_us, lbe_delay_base_us(p));
	lp->above = 0;
	lp->rest_rtts = 0;
	lp_inference_end(lp);
	return true;
}

/**
 * lp_sample() - evaluate one delay
 * @lp: state
 * @ack: the ACK and its delay
 *
 * Return: LP_DELAY if this is an early congestion indication, LP_LONGER_PATH if
 * a longer path had caused the latest ones, else LP_NONE. LP_NONE while TCP reduces the
 * window, since the caller may not set it then.
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
	if (lp->floor && !lp->paper && __lp_longer_path(lp, ack))
		return LP_LONGER_PATH;
	return ack->reducing ? LP_NONE : LP_DELAY;
}

/* ---- reactions --------------------------------------------------------------- */

/* Is the present delay explained by the halving of this flow's own window? The round-trip
 * time of a flow that is alone is its window divided by the link's rate, so half the window
 * gives half the time. With other flows in the queue the delay falls by less.
 */
static inline bool lp_own_queue(const struct lp *lp)
{
	return !lp->paper &&
	       (u64)lp_sd_us(lp) * 8 <= (u64)lp->cut_us * LP_OWN_EIGHTHS;
}

/**
 * lp_react() - the window after an early congestion indication
 * @lp: state
 * @event: kind of indication
 * @window_pkts: packets in use (the window, or the packets in flight if fewer)
 * @snd_nxt: next sequence number to be sent
 * @srtt_us: smoothed round-trip time, us
 * @now_ms: now, ms
 *
 * First indication: half the window. Another one in the inference phase: 1, unless
 * this flow's own window explains it. A loss: 1. Each indication (re)starts the
 * inference time-out; its end is fixed then and does not change with the round trip.
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

/* The repair of a loss from a window of before_pkts is over, or the loss was spurious. Data in
 * flight gives no indication (the paper ignores indications for a round trip).
 * Return: is the loss an indication?
 */
static inline bool lp_repaired(struct lp *lp, u32 before_pkts, u32 snd_nxt)
{
	lp_mark(lp, snd_nxt);
	if (lp->undone)
		return false;
	lbe_delay_repaired(&lp->path);
	return lp->floor || (before_pkts <= LP_CROWD_PKTS && !lp->paper);
}

/* The latest loss was spurious: restore full, and if the repair is over already, end an
 * inference phase that only losses have caused. Return: was there such a phase?
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

/* End the inference phase if its time is over, but not while the delay is above the
 * threshold; stale delays do not count. Return: it ended.
 */
static inline bool lp_inference_over(struct lp *lp, u32 now_ms)
{
	u32 left_ms = lp->itt_end_ms - now_ms;

	/* more time left than the longest phase has: now is after the end */
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
