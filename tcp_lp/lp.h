/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP-LP: the law's arithmetic, as pure functions (see tcp_lp.c for the law).
 *
 * Every function works on struct lp and plain numbers, so that the module,
 * KUnit and the host tests run the same text. Delays are those of owd.h: one
 * way plus a constant, in microseconds.
 */
#ifndef LBE_TCP_LP_LP_H
#define LBE_TCP_LP_LP_H

#include <lbe/arith.h>
#include <lbe/owd.h>
#include <lbe/slots.h>

/* dmin is kept in so many slots, so it is forgotten after half to all of
 * min_age_s. More slots sharpen that; the private area has room for two.
 */
#define LP_DMIN_SLOTS		2
/* A loss that finds less queue than this many floors was not caused by it (a
 * random loss), and says nothing about the buffer. Double it: buffers twice as
 * deep are taken for lossy links.
 */
#define LP_QUEUE_FLOORS		2
/* Without a loss, and without growth of our own for so long, the largest delay
 * seen was the work of others and serves as dmax, ms.
 */
#define LP_QUIET_MS		10000
/* A flat delay near dmax may be a full queue and has to last so many times
 * longer than elsewhere to be taken for a new path.
 */
#define LP_FLAT_NEAR_MAX	10
/* Where fewer packets than this make the range between dmin and dmax, and the
 * way back is busy, one of ours costs TCP more than its share: see lp_few().
 * Double it: an eighth less use of what TCP leaves, at the same cost (measured).
 */
#define LP_FEW_PKTS		64
/* At most so many times: a range of one packet is no rest for a minute. */
#define LP_FEW_MAX		8
/* Samples that a flat stretch must hold at least. */
#define LP_FLAT_SAMPLES		6
/* A delay of up to this part of what it was at the cut (5/8, in eighths) is
 * what halving our own window explains: 1/2 and some noise.
 */
#define LP_OWN_EIGHTHS		5

/* Round trips above this count as this: (LP_ITT_MAX LP_FEW_MAX + LP_REST_MAX) of
 * them stay
 */
#define LP_RTT_MAX_US		5000000U
#define LP_ITT_MAX		20
#define LP_REST_MAX		64
/* After an idle time longer than this an inference phase is over, s: the clock
 * that its end is compared with goes round in 2^32 us = 71 min.
 */
#define LP_IDLE_S		600

/* Settings, copied to the socket when it starts to use lp. */
struct lp_params {
	u16 delta_permille;	/* threshold's place between dmin and dmax */
	u16 floor_us;		/* smallest queueing delay acted upon, us; to it
				 * comes a packet's time at the bottleneck
				 */
	u16 min_age_s;		/* dmin is forgotten after so long, s */
	u16 route_s;		/* a flat delay is a new path after so long, s */
	u8  gamma_shift;	/* sd moves by 1/2^this of the error a sample */
	u8  itt_rtts;		/* inference time-out, round trips */
	u8  rest_max_rtts;	/* longest rest between pairs at the floor, RTT */
	u8  max_age_losses;	/* dmax is replaced after so many lower losses */
};

#define LP_PARAMS_DEFAULT {		\
	.delta_permille = 150,		\
	.floor_us = 1000,		\
	.min_age_s = 600,		\
	.route_s = 10,			\
	.gamma_shift = 3,		\
	.itt_rtts = 3,			\
	.rest_max_rtts = 8,		\
	.max_age_losses = 8,		\
}

/* State of one flow. All of it is written by the flow's own ACK processing,
 * under the socket lock; inet_diag reads it under the same lock.
 */
struct lp {
	struct lbe_owd owd;		/* forward delay out of RTT and TSval */
	struct lbe_slots dmin_age;	/* ages dmin_slot, in ms */
	u32 dmin_slot[LP_DMIN_SLOTS];	/* smallest delay of each slot, us */
	u32 dmax_us;	/* delay when packets were lost, us; 0 = none yet */
	u32 dmax_next_us; /* largest of the lower ones since, us */
	u32 peak_us;	/* largest sd of the loss going on, us; 0 = no loss */
	u32 sd_q;	/* smoothed delay, us << gamma_shift; 0 = none yet */
	u32 last_us;	/* the sample before this one, us */
	u32 mark_seq;	/* snd_nxt at the last reaction while stale; after that,
			 * when the delay rose above the threshold
			 */
	u32 itt_end_us;	/* inference ends then, us; valid if inference, which ends
			 * in an idle time before this can wrap
			 */
	u32 cut_us;	/* sd when the latest indication came, us */
	u32 flat_lo_us;	/* smallest delay of the flat stretch, us */
	u32 flat_ms;	/* it began then; before learnt: last growth, ms */
	u16 flat_span_us; /* its largest delay less its smallest, us */
	u16 pkt_us;	/* least time between packets at the receiver, us;
			 * 0 = none yet, saturates
			 */
	struct lp_params p;
	u16 before_pkts; /* window before the first of the latest indications,
			  * or that rate's on a longer path; saturates
			  */
	u16 indications; /* early congestion indications acted upon, wraps */
	u8  rest_rtts;	/* rest before the next pair, RTT */
	u8  losses;	/* since dmax was last confirmed, saturates */
	u8  flat_samples:7, /* in the flat stretch, saturates */
	    held:1;	/* ACKs are held up on their way back */
	u8  on:1,	/* init has run (the handshake's ACK comes before) */
	    learnt:1,	/* dmax is known, delay may be acted upon */
	    inference:1, /* within itt of an indication */
	    stale:1,	/* waiting for data sent after mark_seq to be ACKed */
	    floor:1,	/* window is one packet a round trip, or less */
	    ece:1,	/* the ACK in hand carries ECN-Echo */
	    marks:1,	/* router marks are the signal, delay is not (lp_ecn) */
	    above:1;	/* the latest delay was above the threshold */
};

enum lp_kind {
	LP_NONE,
	LP_LONGER_PATH,	/* no indication: dmin moved up, so far they were false */
	LP_DELAY,	/* smoothed delay above the threshold */
	LP_ECE,		/* ECN-Echo */
};

static inline void lp_init(struct lp *lp, const struct lp_params *p, bool marks,
			   u32 now_ms)
{
	memset(lp, 0, sizeof(*lp));
	lp->p = *p;
	lp->marks = marks;
	lp->flat_ms = now_ms;
	lbe_owd_init(&lp->owd);
	lbe_slots_init(&lp->dmin_age, lp->dmin_slot, LP_DMIN_SLOTS, now_ms);
	lp->on = 1;
}

/* ---- delays: dmin, dmax, sd and the threshold --------------------------- */

static inline u32 lp_dmin_us(const struct lp *lp)
{
	return lbe_slots_min(&lp->dmin_age, lp->dmin_slot);
}

static inline u32 lp_sd_us(const struct lp *lp)
{
	return lp->sd_q >> lp->p.gamma_shift;
}

/* The scale of delays has moved up by so much, us: what is kept moves along. */
static inline void lp_raise(struct lp *lp, u32 by_us)
{
	lbe_slots_raise(&lp->dmin_age, lp->dmin_slot, by_us);
	if (lp->dmax_us)
		lp->dmax_us += by_us;
	if (lp->dmax_next_us)
		lp->dmax_next_us += by_us;
}

/* The forward delay that an ACK tells of, us; dmin and dmax on the same scale.
 * 0 = it tells of none.
 */
static inline u32 lp_delay_us(struct lp *lp, const struct lbe_owd_ack *ack)
{
	s32 before_us = lp->owd.base_us;
	u32 d_us = lbe_owd_update(&lp->owd, ack);

	lp_raise(lp, lbe_owd_rise_us(&lp->owd, before_us));
	return lbe_owd_stray(&lp->owd) ? 0 : d_us;
}

/* Range between dmin and dmax, us; 0 if dmax is not above dmin. */
static inline u32 lp_range_us(const struct lp *lp)
{
	u32 dmin_us = lp_dmin_us(lp);

	return lp->dmax_us > dmin_us ? lp->dmax_us - dmin_us : 0;
}

/* Least queueing delay that means anything, us: jitter, and the packet of our
 * own before ours (they go in pairs).
 */
static inline u32 lp_floor_us(const struct lp *lp)
{
	return (u32)lp->p.floor_us + lp->pkt_us;
}

/* Queueing delay that is an indication when exceeded, us: delta of the range,
 * but no less than the floor. A flow that never had the link to itself takes a
 * packet's time for longer than it is; an eighth of the range bounds that.
 */
static inline u32 lp_margin_us(const struct lp *lp)
{
	u32 range_us = lp_range_us(lp);
	u32 margin_us = div_u64((u64)range_us * lp->p.delta_permille, 1000);
	u32 floor_us = lp->p.floor_us + min_t(u32, lp->pkt_us, range_us / 8);

	return max(margin_us, floor_us);
}

/* A delivery of pkts packets took interval_us. The least time a packet took so
 * far is that of the bottleneck, once the flow has filled it.
 */
static inline void lp_delivered(struct lp *lp, u32 pkts, u32 interval_us)
{
	u32 pkt_us;

	if (pkts < 2 || !interval_us)
		return;
	pkt_us = clamp_t(u32, interval_us / pkts, 1, U16_MAX);
	if (!lp->pkt_us || pkt_us < lp->pkt_us)
		lp->pkt_us = pkt_us;
}

/* How many times fewer packets than LP_FEW_PKTS the range holds, where ACKs are
 * held up on their way back; else 1. They come in clumps then, TCP's packets in
 * bursts, and each of ours in a burst delays TCP by a packet's time or takes a
 * place in a buffer of few. So one sample is an indication, and the inference
 * phase at the floor is so many times longer.
 */
static inline u32 lp_few(const struct lp *lp)
{
	u32 range_us = lp_range_us(lp);
	u32 pkt_us = min_t(u32, lp->pkt_us, range_us / LP_FEW_MAX);

	if (!lp->held || !lp->learnt || !range_us)
		return 1;
	return clamp_t(u32, (LP_FEW_PKTS * pkt_us + range_us / 2) / range_us, 1,
		       LP_FEW_MAX);
}

static inline u32 lp_threshold_us(const struct lp *lp)
{
	return lp_dmin_us(lp) + lp_margin_us(lp);
}

/* sd = (1 - g) sd + g d, g = 2^-gamma_shift; begins anew when sd_q is 0. The
 * largest delay that fits, 2^26 us = 67 s, is cut off.
 */
static inline void lp_smooth(struct lp *lp, u32 d_us)
{
	d_us = clamp_t(u32, d_us, 1, 1U << 26);
	if (lp->sd_q)
		lp->sd_q += d_us - lp_sd_us(lp);
	else
		lp->sd_q = d_us << lp->p.gamma_shift;
}

/* ---- losses: what they say about dmax ------------------------------------ */

/* A loss was found (entry), or is being repaired. */
static inline void lp_loss_seen(struct lp *lp)
{
	lp->peak_us = max(lp->peak_us, lp_sd_us(lp));
}

/* It was none after all. */
static inline void lp_loss_undone(struct lp *lp)
{
	lp->peak_us = 0;
}

/* Repair is over: learn from it. A loss without queue says nothing. One at about
 * dmax or above sets it, but widens the range by half at most: one stall is no
 * buffer. Lower ones replace it when there were max_age_losses of them and none
 * as high.
 */
static inline void lp_loss_over(struct lp *lp)
{
	u32 dmin_us = lp_dmin_us(lp), peak_us = lp->peak_us;
	u32 queue_us = LP_QUEUE_FLOORS * lp_floor_us(lp);
	u32 range_us = lp_range_us(lp);
	u32 full_us = lp->dmax_us - range_us / 4;
	u32 most_us = lp->dmax_us + max(range_us / 2, queue_us);

	lp->peak_us = 0;
	if (!peak_us || dmin_us == LBE_SLOT_EMPTY || peak_us < dmin_us + queue_us)
		return;
	lp->losses = min(lp->losses + 1, 255);

	if (!lp->learnt) {
		lp->dmax_us = max(lp->dmax_us, peak_us);
		lp->learnt = 1;
	} else if (peak_us >= full_us) {
		lp->dmax_us = clamp(peak_us, lp->dmax_us, most_us);
	} else {
		lp->dmax_next_us = max(lp->dmax_next_us, peak_us);
		if (lp->losses < lp->p.max_age_losses)
			return;
		lp->dmax_us = lp->dmax_next_us;
	}
	lp->losses = 0;
	lp->dmax_next_us = 0;
}

/* ---- a path that became longer ------------------------------------------- */

/* What outlives a change of the path is the rate, not the window: on a path twice
 * as long it takes twice the packets. No more than that, in case it was a queue.
 */
static inline void __lp_scale_before(struct lp *lp, u32 old_us, u32 new_us)
{
	u64 pkts = div_u64((u64)lp->before_pkts * new_us, max_t(u32, old_us, 1));

	pkts = min_t(u64, pkts, lp->before_pkts * 2);
	lp->before_pkts = min_t(u64, pkts, U16_MAX);
}

/* At the floor our own window moves no queue. A delay that then stays within a
 * floor of itself for route_s is the path's, not a queue's: TCP's queues saw.
 * Near dmax it may be a full one: wait longer. Return: dmin was moved up.
 */
static inline bool lp_flat(struct lp *lp, u32 d_us, u32 now_ms)
{
	u32 dmin_us = lp_dmin_us(lp), range_us = lp_range_us(lp);
	u32 lo_us = min(lp->flat_lo_us, d_us);
	u32 span_us = max(lp->flat_lo_us + lp->flat_span_us, d_us) - lo_us;
	u32 wait_ms = lp->p.route_s * 1000;
	unsigned int i;

	if (!lp->flat_samples || span_us > lp_floor_us(lp) ||
	    span_us > U16_MAX) {
		lp->flat_lo_us = d_us;
		lp->flat_span_us = 0;
		lp->flat_ms = now_ms;
		lp->flat_samples = 1;
		return false;
	}
	lp->flat_lo_us = lo_us;
	lp->flat_span_us = span_us;
	lp->flat_samples = min(lp->flat_samples + 1, 127);

	if (lo_us + range_us / 4 > lp->dmax_us &&
	    lo_us < lp->dmax_us + range_us / 8)
		wait_ms *= LP_FLAT_NEAR_MAX;
	if (now_ms - lp->flat_ms < wait_ms || lp->flat_samples < LP_FLAT_SAMPLES)
		return false;

	__lp_scale_before(lp, dmin_us, lo_us);
	for (i = 0; i < LP_DMIN_SLOTS; i++)
		lp->dmin_slot[i] = lo_us;
	lp->dmax_us += lo_us - dmin_us;
	lp->flat_samples = 0;
	return true;
}

/* ---- samples and indications --------------------------------------------- */

/* The flow was not held back by its window. Before any loss, and if that lasts,
 * the largest delay seen is the work of others and good enough for dmax.
 */
static inline void lp_not_growing(struct lp *lp, u32 now_ms)
{
	if (lp->learnt || now_ms - lp->flat_ms < LP_QUIET_MS ||
	    lp_range_us(lp) < LP_QUEUE_FLOORS * lp_floor_us(lp))
		return;
	lp->learnt = 1;
}

static inline void lp_growing(struct lp *lp, u32 now_ms)
{
	if (!lp->learnt)
		lp->flat_ms = now_ms;
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

static inline void lp_inference_end(struct lp *lp)
{
	lp->inference = 0;
	lp->floor = 0;
	lp->rest_rtts = 0;
}

/* One ACK with a delay. */
struct lp_ack {
	u32 d_us;	/* forward delay, us */
	u32 pkts;	/* packets that it covers */
	u32 held_us;	/* what the ACK waited on its way back, us */
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
	return lp_few(lp) > 1 ||
	       (was_above &&
		(lp->floor || __lp_after(ack->snd_una, lp->mark_seq)));
}

/**
 * lp_sample() - take in one delay
 * @lp: state
 * @ack: the ACK that brought it
 *
 * Return: LP_DELAY if this is an early congestion indication, LP_LONGER_PATH if
 * the latest ones were none, else LP_NONE.
 */
static inline enum lp_kind lp_sample(struct lp *lp, const struct lp_ack *ack)
{
	u32 dmin_us = lbe_slots_update(&lp->dmin_age, lp->dmin_slot,
				       lp->p.min_age_s * 1000 / LP_DMIN_SLOTS,
				       ack->now_ms, ack->d_us);
	u32 threshold_us = dmin_us + lp_margin_us(lp);
	u32 last_us = lp->last_us, d_us = ack->d_us;
	bool was_above = lp->above;

	/* Receivers hold the ACK of a single packet, for a second one to come. Of
	 * two samples in a row at most one was held, and the lesser one counts;
	 * if packets go one at a time, both may be, and none does.
	 */
	lp->last_us = d_us;
	lp->held = ack->held_us > lp_margin_us(lp);
	if (ack->lone && d_us > threshold_us)
		return LP_NONE;
	if (ack->pkts <= 1 && last_us)
		d_us = min(d_us, last_us);
	if (lp->stale && __lp_after(ack->snd_una, lp->mark_seq)) {
		lp->stale = 0;
		lp->sd_q = 0;
		was_above = was_above && lp->floor;
	}
	lp_smooth(lp, d_us);
	if (!lp->learnt)
		lp->dmax_us = max(lp->dmax_us, lp_sd_us(lp));
	lp->above = lp->learnt && !lp->marks && d_us > threshold_us;
	if (lp->stale || !lp->above || !__lp_persists(lp, ack, was_above))
		return LP_NONE;
	if (lp->floor && lp_flat(lp, d_us, ack->now_ms)) {
		lp->above = 0;
		lp_inference_end(lp);
		return LP_LONGER_PATH;
	}
	return LP_DELAY;
}

/* Is the delay that is left what halving our own window explains? Round-trip
 * time of a flow alone is its window over the link's rate, so half the window
 * is half of it. With others in the queue it falls by less.
 */
static inline bool lp_own_queue(const struct lp *lp)
{
	return (u64)lp_sd_us(lp) * 8 <= (u64)lp->cut_us * LP_OWN_EIGHTHS;
}

static inline void __lp_rest_longer(struct lp *lp)
{
	lp->rest_rtts = clamp_t(u32, lp->rest_rtts * 2, 1, lp->p.rest_max_rtts);
}

/* Begin the inference phase, or begin it again. It is latched here: neither
 * later round trips nor later ACKs move its end.
 */
static inline void __lp_inference(struct lp *lp, u32 snd_nxt, u32 srtt_us,
				  u32 now_us)
{
	u32 itt_rtts = lp->p.itt_rtts * (lp->floor ? lp_few(lp) : 1);
	u32 rtts = itt_rtts + lp->rest_rtts;

	lp->itt_end_us = now_us + rtts * min(srtt_us, LP_RTT_MAX_US);
	lp->inference = 1;
	lp_mark(lp, snd_nxt);
}

/**
 * lp_react() - the window that an early congestion indication leaves
 * @lp: state
 * @kind: what kind of indication
 * @window_pkts: packets in use (the window, or the flight if that is less)
 * @snd_nxt: next sequence number to be sent
 * @srtt_us: smoothed round-trip time, us
 * @now_us: now, us
 *
 * First indication: half. Another one within the inference time-out: 1, unless
 * our own window explains it. Either (re)starts the time-out.
 *
 * Return: the new window, at least 1 packet.
 */
static inline u32 lp_react(struct lp *lp, enum lp_kind kind, u32 window_pkts,
			   u32 snd_nxt, u32 srtt_us, u32 now_us)
{
	u32 new_pkts = max_t(u32, window_pkts / 2, 1);

	if (!lp->inference)
		lp->before_pkts = min_t(u32, window_pkts, U16_MAX);
	if (lp->inference && !(kind == LP_DELAY && lp_own_queue(lp)))
		new_pkts = 1;

	if (new_pkts > 1) {
		lp->rest_rtts = 0;
		lp->floor = 0;
	} else if (!lp->floor) {
		lp->floor = 1;
		lp->rest_rtts = 1;
		lp->flat_samples = 0;
	} else {
		__lp_rest_longer(lp);
	}
	lp->cut_us = lp_sd_us(lp);
	lp->indications++;
	__lp_inference(lp, snd_nxt, srtt_us, now_us);
	return new_pkts;
}

/* A loss was repaired: what was in flight is no news (the paper ignores
 * indications for a round trip). A loss at the floor is one itself.
 */
static inline void lp_repaired(struct lp *lp, u32 snd_nxt, u32 srtt_us,
			       u32 now_us)
{
	lp_loss_over(lp);
	lp_mark(lp, snd_nxt);
	if (!lp->floor)
		return;
	__lp_rest_longer(lp);
	__lp_inference(lp, snd_nxt, srtt_us, now_us);
}

/* Does the inference phase end now? Not while an indication is under way. */
static inline bool lp_inference_over(struct lp *lp, u32 now_us)
{
	if (!lp->inference || (s32)(now_us - lp->itt_end_us) < 0 ||
	    (lp->above && !lp->stale))
		return false;
	lp_inference_end(lp);
	return true;
}

/* Rest before the next pair at the floor, RTT: what the reaction asked for, and
 * the least once a pair came back without an indication.
 */
static inline u32 lp_rest_rtts(const struct lp *lp)
{
	return lp->stale ? lp->rest_rtts : 1;
}

/* May the window grow? */
static inline bool lp_may_grow(const struct lp *lp)
{
	return !lp->inference && !lp->above;
}

#endif /* LBE_TCP_LP_LP_H */
