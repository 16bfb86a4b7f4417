/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Minimum over the last nr slots of time. Slots are dropped as time passes and not as
 * samples arrive, so that a flow that was idle for an hour does not keep a minimum of an
 * hour ago. The caller provides the array (10 slots of a minute for RFC 6817's BASE_HISTORY;
 * 4 slots of a quarter round trip for a current-delay filter) and chooses the unit of
 * time, which may be any that wraps as u32.
 *
 * Pure functions: no clock, no socket. The caller's lock protects both the struct
 * and the array.
 */
#ifndef LBE_SLOTS_H
#define LBE_SLOTS_H

#include <lbe/arith.h>

struct lbe_slots {
	u32 start;	/* when the newest slot began, caller's unit */
	u8  newest;	/* its index */
	u8  nr;		/* slots in the caller's array */
};

#define LBE_SLOT_EMPTY	U32_MAX

static inline void lbe_slots_init(struct lbe_slots *s, u32 *slot, u8 nr,
				  u32 now)
{
	unsigned int i;

	s->start = now;
	s->newest = 0;
	s->nr = nr;
	for (i = 0; i < nr; i++)
		slot[i] = LBE_SLOT_EMPTY;
}

/* Begin the slots up to the present time; slots without samples are empty. */
static inline void lbe_slots_age(struct lbe_slots *s, u32 *slot, u32 slot_len,
				 u32 now)
{
	unsigned int n;

	if ((s32)(now - s->start) < 0)
		return;
	for (n = 0; now - s->start >= slot_len; n++) {
		if (n == s->nr) {	/* all are empty by now */
			s->start = now;
			break;
		}
		s->start += slot_len;
		s->newest = s->newest + 1 < s->nr ? s->newest + 1 : 0;
		slot[s->newest] = LBE_SLOT_EMPTY;
	}
}

/* Return: the minimum; LBE_SLOT_EMPTY if no sample is recent enough. */
static inline u32 lbe_slots_min(const struct lbe_slots *s, const u32 *slot)
{
	u32 least = LBE_SLOT_EMPTY;
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		least = min(least, slot[i]);
	return least;
}

/* Raise the values that are kept, after their scale has moved (lbe_owd_rise_us() of owd.h). */
static inline void lbe_slots_raise(const struct lbe_slots *s, u32 *slot, u32 by)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		if (slot[i] != LBE_SLOT_EMPTY)
			slot[i] += min(by, LBE_SLOT_EMPTY - 1 - slot[i]);
}

/* Add one value and return the minimum over the window. */
static inline u32 lbe_slots_update(struct lbe_slots *s, u32 *slot,
				   u32 slot_len, u32 now, u32 value)
{
	lbe_slots_age(s, slot, slot_len, now);
	slot[s->newest] = min(slot[s->newest], value);
	return lbe_slots_min(s, slot);
}

#endif /* LBE_SLOTS_H */
