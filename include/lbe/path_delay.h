/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The delay of a path as one sender measures it, for every delay-based control of the
 * suite: from each ACK it calculates the queueing delay that the data met.
 *
 *	delay	= one-way delay plus a constant (owd.h), or the round trip
 *	base	= least delay of the last 5 to 10 minutes
 *	queue	= delay - base
 *	clean	: queue <= 1 ms + a packet's time at the bottleneck, which is noise
 *	full	= delay at which packets are lost
 *
 * Delayed ACKs. A receiver delays the ACK of a single packet until a second one comes.
 * Of two samples in a row at most one was delayed, so the lesser one counts; an ACK of
 * two packets was not delayed. If packets travel alone, each ACK may be delayed: its
 * delay can show that there is no queue, but not that there is one.
 *
 * A loss on a clean path was random and changes nothing. A loss at full or above moves
 * full up, by half of the range at most, since a single stall of a radio link is not a
 * buffer. A loss below moves full down by an eighth of the difference. Time does not
 * change full: a flow that gives way at a fraction of full never sees full again.
 *
 * A longer path. The queue of another TCP flow varies, at least when that flow halves its
 * window. A delay that is constant while this flow sends its least is that of the path.
 *
 * A shorter path. If the window filled the longer path, the packets that no longer fit
 * form a queue now, and the delay falls only as the window does, so that the new base is
 * not seen. But the reverse path of the ACKs becomes shorter at once, by more than clocks
 * drift between two ACKs.
 *
 * Pure functions: no clock, no socket. One struct per flow, written by the flow's
 * own ACK processing under the socket lock.
 */
#ifndef LBE_PATH_DELAY_H
#define LBE_PATH_DELAY_H

#include <lbe/arith.h>
#include <lbe/owd.h>
#include <lbe/slots.h>

/* Base is kept in slots of this many ms. Two make RFC 6817's BASE_HISTORY of 10 minutes. If
 * longer, an old base is kept after the route on which it was measured has changed.
 */
#define LBE_DELAY_SLOTS		2
#define LBE_DELAY_SLOT_MS	300000U
/* Jitter that every path has, us. If doubled, queues of 2 ms go unnoticed. */
#define LBE_DELAY_NOISE_US	1000U
/* A loss at a queue of at least this many times the noise is that of a full buffer; a random loss
 * may meet a queue of once the noise. If doubled, buffers of less than 9 ms at 10 Mbit/s are never
 * learnt.
 */
#define LBE_DELAY_FULL_NOISES	2
/* Weight of a loss at a delay below full: 1/8. */
#define LBE_DELAY_FULL_SHIFT	3
/* Least number of samples of a flat stretch: with fewer, the two or three ACKs of a rest would make
 * one. If doubled, a longer path is learnt 10 s later at the longest rest and 100 ms.
 */
#define LBE_DELAY_FLAT_SAMPLES	6

struct lbe_path_delay {
	struct lbe_owd owd;	/* forward delay from round trip and TSval */
	struct lbe_slots age;	/* ages @slot, in ms: wraps in 49 days, after which
				 * the base is only kept for longer
				 */
	u32 slot[LBE_DELAY_SLOTS]; /* least delay of each slot, us */
	u32 last_us;		/* delay of the previous ACK, unfiltered, us; 0 = none */
	u32 full_us;		/* delay at which packets are lost, us; 0 = none yet */
	u32 undo_full_us;	/* full_us before the latest loss, us */
	u32 peak_us;		/* largest delay of the loss that is being repaired, us;
				 * 0 = none
				 */
	u32 flat_us;		/* least delay of the flat stretch, us */
	u32 flat_ms;		/* beginning of it, ms; wraps in 49 days: a stretch that
				 * has lasted as long is taken for too short. Before lp
				 * knows full, it keeps here when the window last limited
				 * the flow (lp_limited())
				 */
	u16 flat_span_us;	/* its largest delay minus its least, us */
	u16 pkt_us;		/* least time between packets at the receiver, us;
				 * 0 = none yet, saturates
				 */
	u8 flat_samples;	/* in the flat stretch, saturates */
	u8 crowd_rtts;		/* the caller's: twice the rest after the latest loss in
				 * a crowd, RTT; 1 = one loss, perhaps by chance; 0 = the
				 * window has been larger than in a crowd since
				 */
};

/* What the sender knows about one ACK. */
struct lbe_delay_ack {
	struct lbe_owd_ack owd;
	u32 pkts;	/* packets that it covers */
	bool round_trip; /* use the round trip, which includes the reverse path's queue */
};

/* What the ACK shows. */
struct lbe_delay_sample {
	u32 delay_us;	/* filtered, us */
	u32 queue_us;	/* its part above base, us */
	u32 held_us;	/* queueing delay of the ACK on the reverse path, us */
	bool rerouted;	/* the reverse path became shorter at once: base may be too high */
};

static inline void lbe_delay_init(struct lbe_path_delay *p, u32 now_ms)
{
	memset(p, 0, sizeof(*p));
	p->flat_ms = now_ms;
	lbe_slots_init(&p->age, p->slot, LBE_DELAY_SLOTS, now_ms);
}

/* Base delay, us; LBE_SLOT_EMPTY = none yet. */
static inline u32 lbe_delay_base_us(const struct lbe_path_delay *p)
{
	return min(p->slot[0], p->slot[1]);
}

/* Queueing delay that is no more than noise, us: jitter, and this flow's own previous
 * packet. In a crowd the least time between this flow's packets shows its share of the
 * link and not the time of a packet.
 */
static inline u32 lbe_delay_noise_us(const struct lbe_path_delay *p)
{
	return LBE_DELAY_NOISE_US + (p->crowd_rtts > 1 ? 0 : p->pkt_us);
}

/* Queueing delay of a full buffer, us; 0 = not known, or full is not above base. */
static inline u32 lbe_delay_range_us(const struct lbe_path_delay *p)
{
	u32 base_us = lbe_delay_base_us(p);

	return p->full_us > base_us ? p->full_us - base_us : 0;
}

/* The delivery of @pkts packets took @interval_us. The least time per packet so far is
 * that of the bottleneck, once the flow has filled it.
 */
static inline void lbe_delay_delivered(struct lbe_path_delay *p, u32 pkts,
				       u32 interval_us)
{
	u32 pkt_us;

	if (pkts < 2 || !interval_us)
		return;
	pkt_us = clamp_t(u32, interval_us / pkts, 1, U16_MAX);
	if (!p->pkt_us || pkt_us < p->pkt_us)
		p->pkt_us = pkt_us;
}

/* The path or the clock (owd.h) makes delays longer from now on: raise the delays that are kept. */
static inline void __lbe_delay_raise(struct lbe_path_delay *p, u32 by_us)
{
	lbe_slots_raise(&p->age, p->slot, by_us);
	if (p->full_us)
		p->full_us += by_us;
	if (p->undo_full_us)
		p->undo_full_us += by_us;
	if (p->peak_us)
		p->peak_us += by_us;
}

static inline u32 __lbe_delay_us(struct lbe_path_delay *p,
				 const struct lbe_delay_ack *ack,
				 struct lbe_delay_sample *sample)
{
	bool had_base = p->owd.has_base;
	s32 before_us = p->owd.base_us;
	u32 delay_us;

	sample->rerouted = false;
	if (ack->round_trip)
		return ack->owd.rtt_us;
	delay_us = lbe_owd_update(&p->owd, &ack->owd);
	sample->rerouted = had_base && p->owd.has_base &&
			   before_us - p->owd.base_us > (s32)LBE_OWD_STEP_US;
	__lbe_delay_raise(p, lbe_owd_rise_us(&p->owd, before_us));
	return lbe_owd_stray(&p->owd) ? 0 : delay_us;
}

/**
 * lbe_delay_ack() - take in one ACK
 * @p: state
 * @ack: of data that was sent once (the round trip of retransmitted data may be
 *	too short)
 * @sample: what the ACK shows
 *
 * Return: false if it gives no sample.
 */
static inline bool lbe_delay_ack(struct lbe_path_delay *p,
				 const struct lbe_delay_ack *ack,
				 struct lbe_delay_sample *sample)
{
	u32 delay_us = __lbe_delay_us(p, ack, sample);
	u32 last_us = p->last_us, base_us;

	if (!delay_us)
		return false;
	base_us = lbe_slots_update(&p->age, p->slot, LBE_DELAY_SLOT_MS,
				   div_u64(ack->owd.now_us, 1000), delay_us);
	p->last_us = delay_us;
	sample->held_us = ack->owd.rtt_us - min(delay_us, ack->owd.rtt_us);
	if (ack->pkts <= 1 && last_us)
		delay_us = max(min(delay_us, last_us), base_us);
	sample->delay_us = delay_us;
	sample->queue_us = delay_us - base_us;
	return true;
}

/* ---- losses ---------------------------------------------------------------- */

/* A loss was found: keep full for lbe_delay_undone(). */
static inline void lbe_delay_loss(struct lbe_path_delay *p)
{
	p->undo_full_us = p->full_us;
}

/* A loss was found, or is being repaired, while the delay is @delay_us. */
static inline void lbe_delay_lost(struct lbe_path_delay *p, u32 delay_us)
{
	p->peak_us = max(p->peak_us, delay_us);
}

/* The latest loss was spurious. Without timestamps the sender may learn that only when the
 * repair is over.
 */
static inline void lbe_delay_undone(struct lbe_path_delay *p)
{
	p->full_us = p->undo_full_us;
	p->peak_us = 0;
}

/* Was the queue at the loss that of a full buffer, and not noise? */
static inline bool lbe_delay_peak_is_full(const struct lbe_path_delay *p)
{
	u32 base_us = lbe_delay_base_us(p);

	return base_us != LBE_SLOT_EMPTY && p->peak_us > base_us &&
	       p->peak_us - base_us >= LBE_DELAY_FULL_NOISES * lbe_delay_noise_us(p);
}

/* The repair is over: adjust full to the delay of the loss. */
static inline void lbe_delay_repaired(struct lbe_path_delay *p)
{
	bool full = lbe_delay_peak_is_full(p);
	u32 peak_us = p->peak_us;

	p->peak_us = 0;
	if (!full)
		return;
	if (!p->full_us)
		p->full_us = peak_us;
	else if (peak_us >= p->full_us)
		p->full_us = min(peak_us, p->full_us +
				 max(lbe_delay_range_us(p) / 2,
				     LBE_DELAY_NOISE_US));
	else
		p->full_us -= (p->full_us - peak_us) >> LBE_DELAY_FULL_SHIFT;
}

/* ---- a path that became longer ----------------------------------------------- */

/* End the flat stretch: this flow sends more than its least, or lost packets. */
static inline void lbe_delay_unsteady(struct lbe_path_delay *p)
{
	p->flat_samples = 0;
}

/**
 * lbe_delay_steady() - has the delay been constant for a long time?
 * @p: state
 * @delay_us: latest delay, while the flow sends its least, us
 * @within_us: largest variation that counts as constant, us
 * @wait_ms: least duration that counts as long, ms
 * @now_ms: now, ms
 *
 * Return: true if it has. The delay is then that of the path: base has been raised to it, and
 * full by as much.
 */
static inline bool lbe_delay_steady(struct lbe_path_delay *p, u32 delay_us,
				    u32 within_us, u32 wait_ms, u32 now_ms)
{
	u32 lo_us = min(p->flat_us, delay_us), base_us = lbe_delay_base_us(p);
	u32 span_us = max(p->flat_us + p->flat_span_us, delay_us) - lo_us;

	if (!p->flat_samples || span_us > min_t(u32, within_us, U16_MAX)) {
		p->flat_us = delay_us;
		p->flat_span_us = 0;
		p->flat_ms = now_ms;
		p->flat_samples = 1;
		return false;
	}
	p->flat_us = lo_us;
	p->flat_span_us = span_us;
	p->flat_samples = min(p->flat_samples + 1, U8_MAX);
	if (now_ms - p->flat_ms < wait_ms ||
	    p->flat_samples < LBE_DELAY_FLAT_SAMPLES)
		return false;

	p->flat_samples = 0;
	__lbe_delay_raise(p, lo_us - base_us);
	lbe_slots_init(&p->age, p->slot, LBE_DELAY_SLOTS, now_ms);
	p->slot[0] = lo_us;
	return true;
}

/* Will base be dropped soon, without a recent delay within @within_us of it? */
static inline bool lbe_delay_base_fades(const struct lbe_path_delay *p,
					u32 within_us, u32 now_ms)
{
	return now_ms - p->age.start >= LBE_DELAY_SLOT_MS / 10 * 9 &&
	       p->slot[p->age.newest % LBE_DELAY_SLOTS] >
	       lbe_delay_base_us(p) + within_us;
}

#endif /* LBE_PATH_DELAY_H */
