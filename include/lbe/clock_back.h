/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Has the clock of a peer been set back?
 *
 * The law, in the terms of owd.h. The queue of the reverse path is no longer than those of the
 * whole round trip, so each ACK is a lower bound of base, and
 *
 *	behind = rev - T - (rtt - min_rtt) - base
 *
 * is 0 at most, if both paths have been empty at once at min_rtt. If the peer's clock is set back
 * by s, behind grows by s at once, and the delays that owd.h gives would be s too short: a caller
 * that keeps the least delay of minutes would take all delays after them for a queue. owd.h only
 * finds a step that is longer than a round trip; it takes a shorter one for drift, and follows it
 * by 300 us a second.
 *
 * A clock has been set back if LBE_OWD_AGREE samples in a row have a behind that is more than
 * LBE_OWD_STEP_US and two ticks, which is beyond the noise of timestamps. base then rises by
 * behind at once. The samples before that give no delay, so that the caller's least delay keeps its
 * scale. If both paths have always had a queue, behind can be as long as the least of these: the
 * delays then read longer than before, by no more than that.
 *
 * Pure functions, as in owd.h.
 */
#ifndef LBE_CLOCK_BACK_H
#define LBE_CLOCK_BACK_H

#include <lbe/owd.h>

/* How far base is behind the bound that an ACK gives, us; 0: not beyond the noise. */
static inline u32 lbe_clock_behind_us(const struct lbe_owd *o, const struct lbe_owd_ack *ack)
{
	u32 tick_us = lbe_owd_tick_us(o);
	s64 rev_us, behind_us;

	if (!ack->has_tsval || !o->has_base || !tick_us || tick_us > LBE_OWD_COARSE_US)
		return 0;
	rev_us = (s64)(ack->now_us - o->ref_us) -
		 (s64)(s32)(ack->tsval - o->ref_tsval) * tick_us;
	behind_us = rev_us - tick_us - (s64)(ack->rtt_us - ack->min_rtt_us) - o->base_us;
	/* owd.h measures again after a longer step, and after a long pause. */
	if (behind_us <= max_t(s64, LBE_OWD_STEP_US, 2 * tick_us) || behind_us > S32_MAX / 2)
		return 0;
	return (u32)behind_us;
}

/**
 * lbe_clock_back - follow a clock that has been set back
 * @o: state of the flow
 * @ack: an ACK, before lbe_owd_update() gets it; its min_rtt_us is the least round trip of TCP
 * @samples: how many in a row were behind before, 0 to LBE_OWD_AGREE - 1
 *
 * Return: the new @samples. Unless it is 0, this ACK gives no delay, since it is not known yet
 * whether the clock was set.
 */
static inline u32 lbe_clock_back(struct lbe_owd *o, const struct lbe_owd_ack *ack, u32 samples)
{
	u32 behind_us = lbe_clock_behind_us(o, ack);

	if (!behind_us)
		return 0;
	if (samples + 1 < LBE_OWD_AGREE)
		return samples + 1;
	o->base_us = (s32)min_t(s64, (s64)o->base_us + behind_us, S32_MAX / 2);
	return 0;
}

#endif /* LBE_CLOCK_BACK_H */
