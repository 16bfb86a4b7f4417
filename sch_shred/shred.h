/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SHRED's arithmetic: Claypool, Kinicki, Hartling, "Active Queue Management
 * for Web Traffic", section 2.2. Pure functions; RED itself is net/red.h.
 *
 *   (1) cwnd_avg = (1 - w) cwnd_avg + w cwnd_sample              each hinted arrival
 *   (2) min_mod  = min + (max - min) (1 - cwnd_sample / cwnd_avg)
 *                = max - (max - min) cwnd_sample / cwnd_avg
 *       never below 5 packets (or min, where min is lower), never above max
 *   (3) max_p_mod = max_p (max - min_mod) / (max - min)
 *   (4) p_b = max_p_mod (q_avg - min_mod) / (max - min_mod)
 *           = max_p (q_avg - min_mod) / (max - min)
 *
 * The second form of (4) is why RED's own decision remains: the slope
 * max_p / (max - min) is a constant of the queue, only the point where the
 * line starts moves with the packet. At cwnd_sample = cwnd_avg it is RED's.
 *
 * Above max, gentle RED goes on from max_p_mod to 1 at 2 max.
 *
 * Thresholds and average queue are in net/red.h's unit, bytes << Wlog, which
 * red_check_params() keeps below 2^32. Probabilities are 0.32 fixed point.
 */
#ifndef _SHRED_H
#define _SHRED_H

#include <lbe/arith.h>

/* Average of the hints: 10.22 fixed point. 255 << 22 < 2^30, so a difference times a 0.32
 * weight stays below 2^62. The average stops within 1 / (2 w) units of a constant hint:
 * 0.00006 packets at w = 0.002, 0.0012 at the smallest weight.
 */
#define SHRED_CWND_SHIFT	22

/* "Lower bound for min_th-mod is set at five packets" (section 2.2). */
#define SHRED_FLOOR_PKTS	5U

/**
 * shred_cwnd_avg() - Equation (1)
 * @avg_q22: average so far, packets << 22; 0 = none yet, the sample is taken whole
 * @sample_pkts: hint of this packet, 1 to 255
 * @weight_q32: weight of one sample, 0.32; 2^32 - 1 stands for 1
 *
 * Return: new average, packets << 22, 1 << 22 to 255 << 22.
 */
static inline u32 shred_cwnd_avg(u32 avg_q22, u32 sample_pkts, u32 weight_q32)
{
	s64 diff = ((s64)sample_pkts << SHRED_CWND_SHIFT) - avg_q22;

	if (!avg_q22)
		return sample_pkts << SHRED_CWND_SHIFT;
	return avg_q22 + (s32)((diff * weight_q32 + (1LL << 31)) >> 32);
}

/**
 * shred_min_th() - Equation (2), with its bounds
 * @qth_min: RED's lower threshold, bytes << Wlog
 * @qth_max: RED's upper threshold, bytes << Wlog, above @qth_min
 * @floor: lowest threshold of any packet, bytes << Wlog, at most @qth_min
 * @sample_pkts: hint of this packet, 1 to 255
 * @avg_q22: average hint, packets << 22, not 0
 *
 * Return: lower threshold of this packet, bytes << Wlog, @floor to @qth_max.
 */
static inline u32 shred_min_th(u32 qth_min, u32 qth_max, u32 floor,
			       u32 sample_pkts, u32 avg_q22)
{
	/* below 2^32 * 2^8 * 2^22 */
	u64 scaled = (u64)(qth_max - qth_min) * sample_pkts << SHRED_CWND_SHIFT;
	u64 below_max = div64_u64(scaled + avg_q22 / 2, avg_q22);

	return below_max < qth_max - floor ? qth_max - (u32)below_max : floor;
}

/**
 * shred_excess() - how far the average queue is above a packet's threshold of Equation (2)
 * @qth_min: RED's lower threshold, bytes << Wlog
 * @qth_max: RED's upper threshold, bytes << Wlog, above @qth_min
 * @qavg: average queue, bytes << Wlog, at most @qth_max
 * @sample_pkts: hint of this packet, 1 to 255
 * @avg_q22: average hint, packets << 22, not 0
 *
 * Equation (2) times cwnd_avg, so that no packet costs a division, without its lower bound.
 *
 * Return: (@qavg - min_mod) * @avg_q22, below 2^62; negative when @qavg < shred_min_th().
 */
static inline s64 shred_excess(u32 qth_min, u32 qth_max, u32 qavg, u32 sample_pkts, u32 avg_q22)
{
	/* each below 2^32 * 2^8 * 2^22 */
	s64 below_max = (s64)(qth_max - qth_min) * ((u64)sample_pkts << SHRED_CWND_SHIFT);

	return below_max + avg_q22 / 2 - (s64)(qth_max - qavg) * avg_q22;
}

/**
 * shred_excess_cap() - the same above a threshold that has its lower bound
 * @excess: shred_excess(), not negative
 * @floor: lowest threshold of any packet, bytes << Wlog
 * @qavg: average queue, bytes << Wlog, at least @floor
 * @avg_q22: average hint, packets << 22, not 0
 *
 * Return: (@qavg - max(min_mod, @floor)) * @avg_q22, below 2^62.
 */
static inline u64 shred_excess_cap(u64 excess, u32 floor, u32 qavg, u32 avg_q22)
{
	u64 most = (u64)(qavg - floor) * avg_q22;

	return excess < most ? excess : most;
}

/**
 * shred_hit() - Equation (4) and RED's spacing of drops, for one packet
 * @excess: shred_excess_cap()
 * @avg_q22: average hint, packets << 22, not 0
 * @wlog: RED's averaging weight is 2^-wlog
 * @count: packets since the last random number, at least 1
 * @random: RED's random number, uniform on 0 to (qth_max - qth_min) / max_p, bytes
 *
 * As red_mark_probability(): (qavg - min_mod) / 2^wlog * count >= random, times cwnd_avg.
 * The excess is cut to bytes times packets: less than a byte is lost, as by RED's own shift.
 *
 * Return: true when this packet is the one.
 */
static inline bool shred_hit(u64 excess, u32 avg_q22, u8 wlog, u32 count, u32 random)
{
	/* below 2^40; more than 2^23 packets without a drop count as so many */
	u64 bytes_pkts = excess >> SHRED_CWND_SHIFT >> wlog;

	return bytes_pkts * min_t(u32, count, 1U << 23) >=
	       ((u64)random * avg_q22) >> SHRED_CWND_SHIFT;
}

/**
 * shred_max_p() - Equation (3)
 * @max_p_q32: RED's probability at @qth_max, 0.32
 * @qth_min: RED's lower threshold, bytes << Wlog
 * @qth_max: RED's upper threshold, bytes << Wlog, above @qth_min
 * @min_mod: this packet's lower threshold, bytes << Wlog, at most @qth_max
 *
 * Return: probability at @qth_max that keeps the slope, 0.32, at most 2^32 - 1.
 */
static inline u32 shred_max_p(u32 max_p_q32, u32 qth_min, u32 qth_max, u32 min_mod)
{
	u64 p = div64_u64((u64)max_p_q32 * (qth_max - min_mod), qth_max - qth_min);

	return p < U32_MAX ? (u32)p : U32_MAX;
}

/**
 * shred_gentle_p() - drop probability between max and 2 max ("gentle")
 * @max_p_mod_q32: probability at @qth_max, 0.32
 * @qth_max: RED's upper threshold, bytes << Wlog, not 0
 * @qavg: average queue, bytes << Wlog, at least @qth_max
 *
 * Return: probability, 0.32; 2^32 - 1 from 2 @qth_max on.
 */
static inline u32 shred_gentle_p(u32 max_p_mod_q32, u32 qth_max, unsigned long qavg)
{
	u64 over = qavg - qth_max;

	if (over >= qth_max)
		return U32_MAX;
	return max_p_mod_q32 +
	       (u32)div64_u64((u64)(U32_MAX - max_p_mod_q32) * over, qth_max);
}

/**
 * shred_gentle_hit() - RED's spacing of drops, for a given probability
 * @p_q32: probability of this packet, 0.32
 * @count: packets since the last random number, at least 1
 * @random: the random number, uniform over 32 bits
 *
 * As red_mark_probability(): drops are spread evenly over 1 to 1 / p packets.
 *
 * Return: true when this packet is the one.
 */
static inline bool shred_gentle_hit(u32 p_q32, u32 count, u32 random)
{
	return (u64)p_q32 * count >= random;
}

#endif
