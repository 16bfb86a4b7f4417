/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One sender's view of its path by delay: what every delay-based control of the
 * suite needs. One ACK goes in, the queue that its data met comes out.
 *
 *	delay	= one way plus a constant (owd.h), or the round trip
 *	base	= least delay of the last 5 to 10 minutes
 *	queue	= delay - base
 *	clean	: queue <= 1 ms + a packet's time at the bottleneck: less is noise
 *	full	= delay at which packets are lost
 *
 * Delayed ACKs. A receiver delays the ACK of a single packet until a second one comes.
 * Of two samples in a row at most one was delayed, so the lesser one counts; an ACK of
 * two packets was not delayed. If packets travel alone, each ACK may be delayed: its
 * delay can show that there is no queue, but not that there is one.
 *
 * A loss on a clean path was random and changes nothing. A loss near full or above moves
 * full up, by half of the range at most, since a single stall of a radio link is not a
 * buffer. A loss below moves full down by an eighth of the difference. Time does not
 * change full: a flow that leaves at a part of full never sees full again.
 *
 * A longer path. The queues of other flows vary; TCP's does at least when TCP halves its
 * window. A delay that is constant while this flow sends its least is the path's.
 *
 * A shorter path. If the window filled the longer path, the packets that no longer fit
 * form a queue now, and the delay falls only as the window does, so that the new base is
 * not seen. But the ACKs' way back becomes shorter at once, by more than clocks drift
 * between two ACKs.
 *
 * Pure functions: no clock, no socket. One struct a flow, written by the flow's
 * own ACK processing under the socket lock.
 */
#ifndef LBE_PATH_DELAY_H
#define LBE_PATH_DELAY_H

#include <lbe/arith.h>
#include <lbe/owd.h>
#include <lbe/slots.h>

/* Base is kept in slots of so many ms: RFC 6817's BASE_HISTORY of 10 minutes is
 * the most. Longer: an old base outlives the route that it was measured on.
 */
#define LBE_DELAY_SLOTS		2
#define LBE_DELAY_SLOT_MS	300000U
/* Jitter that every path has, us. Double it: queues of 2 ms go unnoticed. */
#define LBE_DELAY_NOISE_US	1000U
/* A loss with a queue of at least so many times the noise is that of a full buffer: once is
 * what a random loss meets. Twice as much: at 10 Mbit/s buffers of less than 9 ms are never
 * known.
 */
#define LBE_DELAY_FULL_NOISES	2
/* Weight of a loss that came below full: 1/8. */
#define LBE_DELAY_FULL_SHIFT	3
/* Samples that a flat stretch must hold at least: with fewer a rest's two or three ACKs
 * would be one. Twice as many: at the longest rest a longer path is known 10 s later at 100 ms.
 */
#define LBE_DELAY_FLAT_SAMPLES	6

struct lbe_path_delay {
	struct lbe_owd owd;	/* forward delay out of round trip and TSval */
	struct lbe_slots age;	/* ages @slot, in ms: wraps in 49 days; later the
				 * base is kept for longer, no more
				 */
	u32 slot[LBE_DELAY_SLOTS]; /* least delay of each slot, us */
	u32 last_us;		/* delay of the ACK before, unfiltered, us; 0 = none */
	u32 full_us;		/* delay at which packets are lost, us; 0 = none yet */
	u32 undo_full_us;	/* full_us before the latest loss, us */
	u32 peak_us;		/* largest delay of the loss going on, us; 0 = none;
				 * as long as full_us is 0 the largest of all
				 */
	u32 flat_us;		/* least delay of the flat stretch, us */
	u32 flat_ms;		/* it began then, ms; wraps in 49 days, of which a
				 * stretch that ends then is taken for too short
				 */
	u16 flat_span_us;	/* its largest delay less its least, us */
	u16 pkt_us;		/* least time between packets at the receiver, us;
				 * 0 = none yet, saturates
				 */
	u8 flat_samples;	/* in the flat stretch, saturates */
	u8 crowd_rtts;		/* the caller's: twice the rest after the latest loss in
				 * a crowd, RTT; 1 = one loss, perhaps by chance; 0 = the
				 * window was larger than a crowd's since
				 */
};

/* What the sender knows of one ACK. */
struct lbe_delay_ack {
	struct lbe_owd_ack owd;
	u32 pkts;	/* packets that it covers */
	bool round_trip; /* go by the round trip, the reverse path's queue counts */
};

/* What it tells. */
struct lbe_delay_sample {
	u32 delay_us;	/* filtered, us */
	u32 queue_us;	/* of it above base, us */
	u32 held_us;	/* what the ACK waited on its way back, us */
	bool rerouted;	/* the way back became shorter at once: base may be too high */
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

/* Queueing delay that is no more than noise, us: jitter, and the packet of our
 * own that went before. In a crowd the least time between our packets is our part
 * of the link and no packet's time.
 */
static inline u32 lbe_delay_noise_us(const struct lbe_path_delay *p)
{
	return LBE_DELAY_NOISE_US + (p->crowd_rtts > 1 ? 0 : p->pkt_us);
}

/* Queue of a full buffer, us; 0 = not known, or not above base. */
static inline u32 lbe_delay_range_us(const struct lbe_path_delay *p)
{
	u32 base_us = lbe_delay_base_us(p);

	return p->full_us > base_us ? p->full_us - base_us : 0;
}

/* A delivery of pkts packets took interval_us. The least time that a packet took
 * so far is that of the bottleneck, once the flow has filled it.
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

/* Delays are longer from now on, by the path or by the clock (owd.h): what is kept moves along. */
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
 * @ack: of data that was sent once (of retransmitted data the round trip may be
 *	too short)
 * @sample: what it tells
 *
 * Return: does it tell anything?
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

/* A loss was found. */
static inline void lbe_delay_loss(struct lbe_path_delay *p)
{
	p->undo_full_us = p->full_us;
}

/* A loss was found, or is being repaired, at this delay. */
static inline void lbe_delay_lost(struct lbe_path_delay *p, u32 delay_us)
{
	p->peak_us = max(p->peak_us, delay_us);
}

/* The latest loss was none after all. Without timestamps the sender may know that only
 * when the repair is over.
 */
static inline void lbe_delay_undone(struct lbe_path_delay *p)
{
	p->full_us = p->undo_full_us;
	p->peak_us = 0;
}

/* Was the queue of the loss that of a full buffer, and not noise? */
static inline bool lbe_delay_peak_is_full(const struct lbe_path_delay *p)
{
	u32 base_us = lbe_delay_base_us(p);

	return base_us != LBE_SLOT_EMPTY && p->peak_us > base_us &&
	       p->peak_us - base_us >= LBE_DELAY_FULL_NOISES * lbe_delay_noise_us(p);
}

/* Repair is over: learn from it. */
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

/* Begin a stretch anew: this flow sends more than its least, or lost packets. */
static inline void lbe_delay_unsteady(struct lbe_path_delay *p)
{
	p->flat_samples = 0;
}

/**
 * lbe_delay_steady() - has the delay stood still for long?
 * @p: state
 * @delay_us: this delay, while the flow sends its least, us
 * @within_us: "still", us
 * @wait_ms: "long", ms
 * @now_ms: now, ms
 *
 * Return: yes, it is the path's: base was moved up to it, and full along.
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

/* Is base soon forgotten without having been met again, within so much, us? */
static inline bool lbe_delay_base_fades(const struct lbe_path_delay *p,
					u32 within_us, u32 now_ms)
{
	return now_ms - p->age.start >= LBE_DELAY_SLOT_MS / 10 * 9 &&
	       p->slot[p->age.newest % LBE_DELAY_SLOTS] >
	       lbe_delay_base_us(p) + within_us;
}

#endif /* LBE_PATH_DELAY_H */
