/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The LowPri family: functions and a table for the effect of a drop on the window.
 *
 *	LowPri1    w <- w - 2
 *	LowPri2    w <- w - w^p
 *	LowPri4    w <- w f
 *	LowPri5    w <- w^p
 *	LowPri6    w <- w - k ln(w)
 *	LowPri3    w <- w f, then slow start, s packets for each packet acknowledged
 *	           (factor 1 + s a round trip), up to w^e or w - k of the old w
 *	LowPri3.7  LowPri3, but keeps part of its window after a time-out
 *
 * After that all of them add one packet a round trip.
 *
 * Source: B. Ott, T. Warnky, V. Liberatore, "Congestion control for low-priority
 * filler traffic", Sections 3.1 to 3.6 and 4.4, Tables 1 to 5.
 *
 * Pure functions of integers; windows are in packets, in Q16 where fractions of a
 * packet matter. Exact to 1/32 packet up to 2^20 packets (lbe/fixed_point.h).
 */
#ifndef LOWPRI_LAW_H
#define LOWPRI_LAW_H

#include <lbe/fixed_point.h>

/* TCP's least window, packets: with a smaller one only a time-out detects a drop. */
#define LOWPRI_MIN_PKTS		2U

/* The window left by the last drop, if there was no drop: slow start doubles any window. */
#define LOWPRI_NO_DROP		(~0U)

enum lowpri_rule {
	LOWPRI_MINUS,		/* w - k */
	LOWPRI_MINUS_POWER,	/* w - w^p */
	LOWPRI_TIMES,		/* w f */
	LOWPRI_POWER,		/* w^p */
	LOWPRI_MINUS_LOG,	/* w - k ln(w) */
};

/**
 * struct lowpri_law - one protocol of the paper
 * @name: the paper's name in lower case; name of the congestion control
 * @rule: function that gives the window after a drop
 * @k: packets (LOWPRI_MINUS) or multiples of the logarithm (LOWPRI_MINUS_LOG)
 * @fraction_q30: exponent p or factor f of the other rules
 * @growth_q16: s, increase of the window for each packet acknowledged in slow start
 *	after a drop, packets; 0: no slow start, linear increase follows at once
 * @limit_exponent_q30: e: slow start after a drop ends at w^e of the old window w
 * @limit_minus_pkts: if @limit_exponent_q30 is 0: it ends this far below w, packets
 * @keeps_window: a time-out leaves part of the window (LowPri3.7)
 */
struct lowpri_law {
	const char *name;
	enum lowpri_rule rule;
	u32 k;
	u32 fraction_q30;
	u32 growth_q16;
	u32 limit_exponent_q30;
	u32 limit_minus_pkts;
	u8 keeps_window;
};

#define LOWPRI_ROW_K(_name, _rule, _k) \
	{ .name = (_name), .rule = (_rule), .k = (_k) }

#define LOWPRI_ROW_F(_name, _rule, _percent) \
	{ .name = (_name), .rule = (_rule), \
	  .fraction_q30 = LBE_Q30(_percent, 100) }

#define LOWPRI_ROW_REGROW(_name, _factor, _growth, _limit, _keeps) \
	{ .name = (_name), .rule = LOWPRI_TIMES, \
	  .fraction_q30 = LBE_Q30(_factor, 100), \
	  .growth_q16 = (_growth) * LBE_ONE_Q16 / 100, \
	  .limit_exponent_q30 = LBE_Q30(_limit, 100), \
	  .limit_minus_pkts = (_limit) ? 0 : 2, \
	  .keeps_window = (_keeps) }

/* All protocols of the paper. */
static const struct lowpri_law lowpri_laws[] = {
	/* Section 3.1 */
	LOWPRI_ROW_K("lowpri1", LOWPRI_MINUS, 2),

	/* Table 1: percent of p */
	LOWPRI_ROW_F("lowpri2", LOWPRI_MINUS_POWER, 50),
	LOWPRI_ROW_F("lowpri2.1", LOWPRI_MINUS_POWER, 33),
	LOWPRI_ROW_F("lowpri2.2", LOWPRI_MINUS_POWER, 66),
	LOWPRI_ROW_F("lowpri2.3", LOWPRI_MINUS_POWER, 25),
	LOWPRI_ROW_F("lowpri2.4", LOWPRI_MINUS_POWER, 40),
	LOWPRI_ROW_F("lowpri2.5", LOWPRI_MINUS_POWER, 60),
	LOWPRI_ROW_F("lowpri2.6", LOWPRI_MINUS_POWER, 75),

	/* Table 5: percent of f, s and e (e = 0: limit is the old window less two packets) */
	LOWPRI_ROW_REGROW("lowpri3", 50, 100, 0, 0),
	LOWPRI_ROW_REGROW("lowpri3.1", 50, 100, 95, 0),
	LOWPRI_ROW_REGROW("lowpri3.2", 50, 100, 90, 0),
	LOWPRI_ROW_REGROW("lowpri3.3", 50, 50, 95, 0),
	LOWPRI_ROW_REGROW("lowpri3.4", 75, 50, 85, 0),
	LOWPRI_ROW_REGROW("lowpri3.5", 75, 50, 90, 0),
	LOWPRI_ROW_REGROW("background", 75, 50, 95, 0),

	/* Section 4.4: TCP-Background except for time-outs */
	LOWPRI_ROW_REGROW("lowpri3.7", 75, 50, 95, 1),

	/* Table 2: percent of f */
	LOWPRI_ROW_F("lowpri4", LOWPRI_TIMES, 66),
	LOWPRI_ROW_F("lowpri4.1", LOWPRI_TIMES, 75),
	LOWPRI_ROW_F("lowpri4.2", LOWPRI_TIMES, 25),

	/* Table 3: percent of p */
	LOWPRI_ROW_F("lowpri5", LOWPRI_POWER, 90),
	LOWPRI_ROW_F("lowpri5.1", LOWPRI_POWER, 85),
	LOWPRI_ROW_F("lowpri5.2", LOWPRI_POWER, 95),

	/* Table 4: multiples of ln(w) */
	LOWPRI_ROW_K("lowpri6", LOWPRI_MINUS_LOG, 2),
	LOWPRI_ROW_K("lowpri6.1", LOWPRI_MINUS_LOG, 1),
	LOWPRI_ROW_K("lowpri6.2", LOWPRI_MINUS_LOG, 3),
};

/* a - b, or 0 if that would be negative. */
static inline u64 lowpri_minus(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/**
 * lowpri_rule_q16 - window after a drop by the rule alone
 * @law: protocol
 * @cwnd: window before the drop, packets
 *
 * Return: packets in Q16, 0 if the reduction is larger than the window.
 */
static inline u64 lowpri_rule_q16(const struct lowpri_law *law, u32 cwnd)
{
	u64 cwnd_q16 = (u64)cwnd << 16;

	switch (law->rule) {
	case LOWPRI_MINUS:
		return lowpri_minus(cwnd_q16, (u64)law->k << 16);
	case LOWPRI_MINUS_POWER:
		return lowpri_minus(cwnd_q16, lbe_pow_q16(cwnd, law->fraction_q30));
	case LOWPRI_TIMES:
		return lbe_scale_q16(cwnd, law->fraction_q30);
	case LOWPRI_POWER:
		return lbe_pow_q16(cwnd, law->fraction_q30);
	case LOWPRI_MINUS_LOG:
		return lowpri_minus(cwnd_q16, (u64)law->k * lbe_ln_q27(cwnd) >> 11);
	}
	return 0;
}

/**
 * lowpri_target_q16 - window after a drop
 * @law: protocol
 * @cwnd: window before the drop, packets
 *
 * Return: packets in Q16, at least LOWPRI_MIN_PKTS.
 */
static inline u64 lowpri_target_q16(const struct lowpri_law *law, u32 cwnd)
{
	return max_t(u64, lowpri_rule_q16(law, cwnd), (u64)LOWPRI_MIN_PKTS << 16);
}

/**
 * lowpri_limit_pkts - window at which slow start after a drop ends
 * @law: protocol
 * @cwnd: window before the drop, packets
 *
 * Return: packets, rounded to the nearest; 0: this protocol has no slow start after a drop.
 * May be below the window after the drop (0.75 w against w^0.95 from 316 packets on); then
 * there is no slow start.
 */
static inline u32 lowpri_limit_pkts(const struct lowpri_law *law, u32 cwnd)
{
	if (!law->growth_q16)
		return 0;
	if (law->limit_exponent_q30)
		return (u32)((lbe_pow_q16(cwnd, law->limit_exponent_q30) +
			      LBE_ONE_Q16 / 2) >> 16);
	return (u32)lowpri_minus(cwnd, law->limit_minus_pkts);
}

/**
 * struct lowpri_growth - a window in slow start
 * @cwnd: packets
 * @part_q16: fraction of a packet above @cwnd, below 1 in Q16
 * @acked: acknowledged packets that have not raised the window yet
 */
struct lowpri_growth {
	u32 cwnd;
	u32 part_q16;
	u32 acked;
};

/* Grow by @step_q16 for each packet acknowledged, up to @end or until @acked is used up. */
static inline void lowpri_grow_to(struct lowpri_growth *g, u32 step_q16, u32 end)
{
	u64 earned_q16, room_q16;

	if (g->cwnd >= end || !g->acked || !step_q16)
		return;
	earned_q16 = (u64)g->acked * step_q16;
	room_q16 = ((u64)(end - g->cwnd) << 16) - g->part_q16;
	if (earned_q16 < room_q16) {
		earned_q16 += g->part_q16;
		g->cwnd += (u32)(earned_q16 >> 16);
		g->part_q16 = (u32)earned_q16 & (LBE_ONE_Q16 - 1);
		g->acked = 0;
	} else {
		g->cwnd = end;
		g->part_q16 = 0;
		g->acked = (u32)div_u64(earned_q16 - room_q16, step_q16);
	}
}

/**
 * lowpri_slow_start - slow start, with the law's own growth after a drop
 * @law: protocol
 * @g: window, fraction and acknowledged packets; updated
 * @drop_target: window after the last drop, packets; LOWPRI_NO_DROP: no drop
 * @ssthresh: window at which slow start ends, packets
 *
 * Below @drop_target the window doubles each round trip, as with any TCP; from there to
 * @ssthresh it grows by the law's @growth_q16. Packets left in @g->acked are for the
 * linear increase.
 */
static inline void lowpri_slow_start(const struct lowpri_law *law,
				     struct lowpri_growth *g, u32 drop_target,
				     u32 ssthresh)
{
	if (!law->growth_q16)
		drop_target = LOWPRI_NO_DROP;
	lowpri_grow_to(g, LBE_ONE_Q16, min_t(u32, drop_target, ssthresh));
	lowpri_grow_to(g, law->growth_q16, ssthresh);
}

/**
 * lowpri_credit - the fraction of a packet of a target as progress of linear increase
 * @target_q16: window after a drop
 *
 * The window is set in whole packets, which drops the fraction p of the target. In linear
 * increase p corresponds to p * window acknowledged packets.
 *
 * Return: acknowledged packets to add to those counted, fewer than the window.
 */
static inline u32 lowpri_credit(u64 target_q16)
{
	u64 part_q16 = target_q16 & (LBE_ONE_Q16 - 1);

	return (u32)((part_q16 * (target_q16 >> 16)) >> 16);
}

/**
 * lowpri_timeout_pkts - window after a time-out
 * @law: protocol
 * @cwnd: window before the first of the time-outs in a row, packets
 * @keep_percent: part of it that a law with @keeps_window keeps, 0 to 100
 *
 * Return: packets; 0: the window that TCP sets, one packet.
 */
static inline u32 lowpri_timeout_pkts(const struct lowpri_law *law, u32 cwnd,
				      u32 keep_percent)
{
	if (!law->keeps_window)
		return 0;
	return (u32)div_u64((u64)cwnd * keep_percent, 100);
}

#endif /* LOWPRI_LAW_H */
