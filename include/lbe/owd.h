/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One-way delay of the forward path, as a TCP sender can measure it.
 *
 * A sender needs the delay of its data and not that of the ACKs, which other traffic
 * on the reverse path may delay. The clocks of two hosts differ, so only changes of a delay
 * can be measured. There are two clocks: the sender's, in microseconds, and the one that
 * stamps the ACKs (TSval of RFC 7323, in ticks of unknown length, plus a random offset per
 * connection).
 *
 * The law. With now = arrival of the ACK on the sender's clock, T = tick of the peer:
 *
 *	rev	= (now - ref_now) - T * (TSval - ref_TSval)	(signed, modular)
 *	reverse	= rev - base - T	at least 0
 *	delay	= rtt - reverse
 *
 * rev is the delay of the ACK plus a constant. It needs no TSecr, and so includes
 * neither the sender's own tick nor the time for which the receiver delays an ACK; TSval -
 * TSecr includes both. base is the value of rev with an empty reverse path. T is
 * subtracted once more because TSval is rounded down: reverse is the least time that the
 * ACK can have waited. delay therefore has the microsecond precision of the
 * round-trip time. It is the round-trip time when the reverse path is idle, and
 * always equals the one-way delay plus a constant (the empty reverse path).
 *
 * If there are no timestamps, or the tick is not known yet or is longer than
 * LBE_OWD_COARSE_US, reverse is 0, and delay is the round-trip time. The caller can keep
 * its least delay then, since both have the same scale.
 *
 * How base begins. While T is measured, the ACK with the least round trip is kept
 * (the first ACK, until one has the caller's min_rtt_us or less), and its rev is the
 * first base. A queue that this ACK met on the reverse path is then in base, as it is in
 * the caller's least delay. A base from a later ACK would include a reverse queue that has
 * grown in the meantime, and any queue beyond that would count as a forward queue until
 * the reverse path is empty again.
 *
 * How base is kept. It falls to the least rev at once, since no ACK is faster than on an
 * empty path. It rises by one bound only, since the queue of the reverse path cannot be
 * longer than those of the whole round trip:
 *
 *	base >= rev - T - (rtt - min_rtt)
 *
 * A sample near the least round trip gives this bound, and base falls behind it if the
 * peer's clock runs slow. The bound holds only if both paths were empty at once at the
 * least round trip, which is never so if there is a queue on either one path or the other.
 * Therefore base rises by no more than clocks can differ, LBE_OWD_SKEW_PPM of the time
 * since it last moved. A sample that breaks the bound by more than a least round trip is
 * not a delay: a single wrong TSval is ignored, while LBE_OWD_AGREE in a row mean that the
 * peer's clock has been reset, and the measurement begins again. As many samples are needed
 * for base to fall by more than LBE_OWD_STEP_US. An error from skew remains while the round
 * trip never comes near its least: it grows at the clocks' relative rate (200 ppm: 12 ms a
 * minute), up to the least forward queue of that time.
 *
 * When base rises for skew, later delays read longer than earlier ones of the same path,
 * so callers raise the least delay that they keep by the same amount (lbe_owd_rise_us()).
 * If the clocks did differ, that least delay had been measured too short, or the next
 * sample of an empty path corrects it. If a busy reverse path was mistaken for skew, the
 * two errors cancel.
 *
 * How T is learnt. From one long baseline (2 s, then 4, 8, 16 s), never from
 * one ACK: T = elapsed / ticks, snapped to a rate that systems are known to
 * use, if within 1/8 of one. A change of reverse delay of 250 ms in the first
 * 2 s is thus tolerated. If T is near no such rate after 16 s, it is measured again.
 *
 * Sources: RFC 7323 sections 4.1 and 5.4 (tick between 1 ms and 1 s, offsets),
 * RFC 6817 section 3.1 and appendix A (offset and skew cancel in differences).
 *
 * Pure functions: no clock, no socket. One struct per flow, written by the
 * flow's own ACK processing alone (the caller holds the socket lock).
 */
#ifndef LBE_OWD_H
#define LBE_OWD_H

#include <lbe/arith.h>
#include <lbe/tick.h>

/* First baseline for the peer's tick, us. If doubled, a flow uses the round-trip time for
 * twice as long, and the effect of reverse queueing on the tick is halved.
 */
#define LBE_OWD_LEARN_US	2000000U
/* Longest baseline is LBE_OWD_LEARN_US << this (16 s), then start over. */
#define LBE_OWD_LEARN_DOUBLINGS	3
/* With a tick above this, us, the round-trip time is the more precise measure. */
#define LBE_OWD_COARSE_US	10000U
/* base falls by up to this (or two ticks) at once, us. */
#define LBE_OWD_STEP_US		2000U
/* Larger moves need this many samples in a row. */
#define LBE_OWD_AGREE		3
/* Clocks differ by less than this. If doubled, a reverse queue that is never empty at the
 * same time as the forward one is taken into base twice as fast, 36 ms a minute.
 */
#define LBE_OWD_SKEW_PPM	300
/* The reference is moved forward after this time, us, so that products stay far below 2^31. */
#define LBE_OWD_REBASE_US	(64 * 1000000LL)
/* After a gap above this, us, a TSval in us is ambiguous (it wraps in 71.6 min and is
 * compared as a signed number, so 35.8 min): the measurement begins again, with the tick kept.
 */
#define LBE_OWD_GAP_US		(1024 * 1000000LL)

enum lbe_owd_source {
	LBE_OWD_SOURCE_RTT,	/* delay is the round-trip time as given */
	LBE_OWD_SOURCE_TS,	/* reverse queueing was taken off */
};

/* State of one flow: 24 bytes, all zero to begin with. */
struct lbe_owd {
	u64 ref_us;	/* sender's clock at the reference, us; 0 = none yet */
	u32 ref_tsval;	/* peer's TSval there, peer ticks; compared modulo 2^32, and
			 * moved forward (LBE_OWD_REBASE_US, LBE_OWD_GAP_US)
			 */
	/* While the tick is learnt these two hold the ACK of the least round trip:
	 * the sender's clock (us) and the peer's (ticks) since the reference.
	 */
	s32 base_us;	/* value of rev with an empty reverse path, us */
	u32 moved_ms;	/* time since which base may rise for skew, sender's clock, ms;
			 * wraps in 49 days, which only makes base rise later
			 */
	u8  doublings;	/* of the learning baseline so far */
	u8  disagree;	/* samples in a row that fit no base, or a far lower one only */
	u8  tick:4,	/* index of the peer's tick, plus 1; 0 = not known yet */
	    has_base:1,	/* tick is known and base_us is base */
	    source:1,	/* enum lbe_owd_source of the latest sample */
	    rose:1,	/* the latest sample raised base, for skew */
	    stray:1;	/* the latest sample fits no base */
	u8  pad;
};

/* What the sender knows about one ACK. */
struct lbe_owd_ack {
	u64 now_us;	/* arrival on the sender's clock (tp->tcp_mstamp), us, not 0 */
	u32 tsval;	/* TSval of this ACK, peer ticks */
	u32 rtt_us;	/* round-trip time that this ACK measured, us */
	u32 min_rtt_us;	/* smallest round-trip time known, us, <= rtt_us */
	bool has_tsval;	/* this very segment carried the option */
};

static inline void lbe_owd_init(struct lbe_owd *o)
{
	memset(o, 0, sizeof(*o));
}

/* Does the latest sample exclude the reverse queue? */
static inline enum lbe_owd_source lbe_owd_source(const struct lbe_owd *o)
{
	return o->source;
}

/* Does the latest sample fit no base? Then its delay may have another scale: the ACK was
 * much faster than any before, or its TSval is wrong. No least delay may come from it.
 */
static inline bool lbe_owd_stray(const struct lbe_owd *o)
{
	return o->stray;
}

/* The peer's tick, us; 0 = not known yet. */
static inline u32 lbe_owd_tick_us(const struct lbe_owd *o)
{
	return o->tick ? lbe_ticks_us[o->tick - 1] : 0;
}

/* Measure from this ACK on; while the tick is learnt, base may come from it. */
static inline void __lbe_owd_reference(struct lbe_owd *o,
				       const struct lbe_owd_ack *ack)
{
	o->ref_us = ack->now_us;
	o->ref_tsval = ack->tsval;
	o->has_base = 0;
	o->base_us = 0;
	o->moved_ms = 0;
	o->disagree = 0;
}

/* Learn the tick from the baseline since the reference, and then base. */
static inline void __lbe_owd_learn(struct lbe_owd *o,
				   const struct lbe_owd_ack *ack)
{
	u64 span_us = ack->now_us - o->ref_us;
	s32 ticks = (s32)(ack->tsval - o->ref_tsval);

	if (ack->rtt_us <= ack->min_rtt_us) {
		o->base_us = (s32)span_us;
		o->moved_ms = (u32)ticks;
	}
	if (span_us < (u64)LBE_OWD_LEARN_US << o->doublings)
		return;
	if (ticks > 0)
		o->tick = lbe_tick_snap(span_us, ticks);
	if (o->tick) {
		s64 base_us = o->base_us -
			      (s64)(s32)o->moved_ms * lbe_owd_tick_us(o);

		/* If that ACK's TSval was wrong, base comes from a later sample. */
		o->has_base = base_us < S32_MAX / 2 && base_us > -(S32_MAX / 2);
		o->base_us = (s32)base_us;
		o->moved_ms = div_u64(ack->now_us, 1000);
	} else if (o->doublings < LBE_OWD_LEARN_DOUBLINGS) {
		o->doublings++;
	} else {
		o->doublings = 0;
		__lbe_owd_reference(o, ack);
	}
}

/* Keep base at the least rev, and not below @lo as far as skew explains that.
 * Return: false if this sample fits no base.
 */
static inline bool __lbe_owd_move_base(struct lbe_owd *o, s64 rev, s64 lo,
				       u32 min_rtt_us, u32 now_ms)
{
	s64 step_us = max_t(s64, LBE_OWD_STEP_US, 2 * lbe_owd_tick_us(o));
	s64 base = o->base_us;

	if (!o->has_base) {
		base = rev;
	} else if (rev < base) {
		if (rev < base - step_us && ++o->disagree < LBE_OWD_AGREE)
			return false;
		base = rev;
	} else if (base < lo) {
		s64 skew_us = div_u64((u64)(u32)(now_ms - o->moved_ms) *
				      LBE_OWD_SKEW_PPM, 1000);

		if (lo - base > min_rtt_us) {
			if (++o->disagree < LBE_OWD_AGREE)
				return false;
			base = rev;
		} else {
			/* By as much as the clocks can have moved apart since
			 * moved_ms, which moves on by the time for that.
			 */
			base = min(lo, base + skew_us);
			o->rose = base > o->base_us;
			o->moved_ms += div_u64((u64)(base - o->base_us) * 1000,
					       LBE_OWD_SKEW_PPM);
			now_ms = o->moved_ms;
		}
	}
	o->disagree = 0;
	if (base != o->base_us || !o->has_base)
		o->moved_ms = now_ms;
	o->base_us = (s32)base;
	o->has_base = 1;
	return true;
}

/**
 * lbe_owd_update() - forward delay that one ACK shows
 * @o: state of the flow
 * @ack: the ACK
 *
 * Return: delay in us, above 0 and at most rtt_us: the one-way delay plus a
 * constant. lbe_owd_source() returns the source of this sample.
 */
static inline u32 lbe_owd_update(struct lbe_owd *o,
				 const struct lbe_owd_ack *ack)
{
	u32 queued_us = ack->rtt_us > ack->min_rtt_us ?
			ack->rtt_us - ack->min_rtt_us : 0;
	s64 span_us = (s64)(ack->now_us - o->ref_us);
	u32 tick_us = lbe_owd_tick_us(o);
	s64 rev, reverse_us;
	s32 ticks;

	o->source = LBE_OWD_SOURCE_RTT;
	o->rose = 0;
	o->stray = 0;
	if (!ack->has_tsval)
		return ack->rtt_us;
	if (!o->ref_us || span_us > LBE_OWD_GAP_US) {
		__lbe_owd_reference(o, ack);
		return ack->rtt_us;
	}
	if (!tick_us) {
		__lbe_owd_learn(o, ack);
		return ack->rtt_us;
	}
	if (tick_us > LBE_OWD_COARSE_US)
		return ack->rtt_us;

	ticks = (s32)(ack->tsval - o->ref_tsval);
	rev = span_us - (s64)ticks * tick_us;
	if (rev > S32_MAX / 2 || rev < -(S32_MAX / 2)) {
		/* Not a delay: the TSval is wrong, or the peer's clock was reset. */
		o->stray = 1;
		if (++o->disagree >= LBE_OWD_AGREE)
			__lbe_owd_reference(o, ack);
		return ack->rtt_us;
	}
	if (!__lbe_owd_move_base(o, rev, rev - tick_us - queued_us,
				 ack->min_rtt_us, div_u64(ack->now_us, 1000))) {
		o->stray = 1;
		return ack->rtt_us;
	}

	if (span_us > LBE_OWD_REBASE_US && ticks > 0) {
		/* By whole ticks on both clocks, so that rev and base do not change. */
		o->ref_us += (u64)ticks * tick_us;
		o->ref_tsval += ticks;
	}

	o->source = LBE_OWD_SOURCE_TS;
	reverse_us = rev - o->base_us - tick_us;
	if (reverse_us <= 0)
		return ack->rtt_us;
	return reverse_us < ack->rtt_us ? ack->rtt_us - (u32)reverse_us : 1;
}

/**
 * lbe_owd_rise_us() - by how much delays read longer from the latest sample on
 * @o: state of the flow
 * @before_us: its base_us before that sample, us
 *
 * Return: amount by which a least delay of earlier samples has to be raised, us.
 */
static inline u32 lbe_owd_rise_us(const struct lbe_owd *o, s32 before_us)
{
	return o->rose ? (u32)(o->base_us - before_us) : 0;
}

#endif /* LBE_OWD_H */
