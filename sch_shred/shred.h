/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SHRED's arithmetic: Claypool, Kinicki, Hartling, "Active Queue Management
 * for Web Traffic", section 2.2, and the suite's own law. Pure functions.
 *
 *   (1) h_avg   = (1 - w) h_avg + w h                          each hinted arrival
 *   (2) m(h)    = min + (max - min) (1 - h / h_avg)
 *               = max - (max - min) h / h_avg
 *   (3) max_p'  = max_p (max - m) / (max - min)
 *   (4) p_b     = max_p' (q_avg - m) / (max - m)
 *               = max_p (q_avg - m) / (max - min)
 *
 * h is the packet's hint, m its lower threshold, q_avg RED's average queue. The
 * second form of (4) shows that the slope is the same for all packets of a queue;
 * the hint only moves the queue size at which the line starts. A packet without a
 * hint has m = min, which is plain RED.
 *
 * The paper's m is never below five packets. The suite's m is never below min:
 *
 *   (2')  m(h) = max(max - (max - min) h / h_avg, min)
 *
 * Most packets belong to flows near the average, and thresholds below min leave
 * the link idle (measured: Documentation/sch_shred.md).
 *
 * RED selects packets for a drop or mark so that the gap between two is uniformly
 * distributed over 1 to 1 / p packets: it compares the product of p and the number
 * of packets since the last one with a random number. If p differs from packet to
 * packet, that product uses the present packet's p for all of them, and the packet
 * selected is nearly always one with the largest hint. Therefore the probabilities
 * are added up:
 *
 *   (4')  A += p_b;  the packet is selected if A >= R;  then A = 0
 *         R uniform on 0 to 1
 *
 * Each packet is then selected in proportion to its own p_b, and packets of equal
 * p_b are selected as by RED. A and R are kept in units of max_p / (max - min), that
 * is in bytes: a packet then adds its q_avg - m to A.
 *
 * Above max, gentle RED raises the probability from max_p' to 1 at 2 max. With ages
 * (hint dscp) the line of (4) continues unchanged: at a probability near 1 young
 * packets would be selected as often as old ones.
 */
#ifndef _SHRED_H
#define _SHRED_H

#include <lbe/arith.h>

/* Average of the hints: 10.22 fixed point. 255 << 22 < 2^30, so a difference times a 0.32
 * weight stays below 2^62. Rounding stops the average within 1 / (2 w) units of 2^-22 of a
 * constant hint: 0.00006 at w = 0.002, 0.0012 at the smallest weight.
 */
#define SHRED_AVG_SHIFT		22

/* "Lower bound for min_th-mod is set at five packets" (section 2.2). */
#define SHRED_FLOOR_PKTS	5U

/* RED's average is bytes << wlog in 64 bits; even a burst of 2^31 packets needs no larger wlog. */
#define SHRED_WLOG_MAX		31U

/**
 * shred_hint_avg() - Equation (1)
 * @avg_q22: average so far, 10.22; 0 = none yet: the hint becomes the average
 * @hint: hint of this packet, 1 to 255
 * @weight_q32: weight of one hint, 0.32; 2^32 - 1 stands for 1
 *
 * Return: new average, 1 << 22 to 255 << 22.
 */
static inline u32 shred_hint_avg(u32 avg_q22, u32 hint, u32 weight_q32)
{
	u32 hint_q22 = hint << SHRED_AVG_SHIFT;
	s64 diff = (s32)(hint_q22 - avg_q22);

	return avg_q22 ? avg_q22 + (s32)((diff * weight_q32 + (1LL << 31)) >> 32) : hint_q22;
}

/**
 * shred_threshold() - Equation (2), with its lower bound
 * @min_bytes: RED's lower threshold
 * @max_bytes: RED's upper threshold, above @min_bytes
 * @floor_bytes: lowest threshold of any packet, at most @min_bytes
 * @hint: hint of this packet, 1 to 255
 * @avg_q22: average hint, 10.22, not 0
 *
 * Return: lower threshold of this packet, @floor_bytes to @max_bytes.
 */
static __always_inline u32 shred_threshold(u32 min_bytes, u32 max_bytes, u32 floor_bytes, u32 hint,
					   u32 avg_q22)
{
	u32 hint_q22 = hint << SHRED_AVG_SHIFT;
	u64 scaled;

	/* most packets have at least the average hint: no multiplication for them */
	if (hint_q22 >= avg_q22 && floor_bytes == min_bytes)
		return floor_bytes;
	/* below 2^32 * 2^30; the second summand rounds the quotient to the nearest */
	scaled = (u64)(max_bytes - min_bytes) * hint_q22 + avg_q22 / 2;
	if (floor_bytes != min_bytes && scaled >= (u64)(max_bytes - floor_bytes) * avg_q22)
		return floor_bytes;
	return max_bytes - (u32)div_u64(scaled, avg_q22);
}

/**
 * shred_certain() - the amount that a packet of probability 1 adds to A
 * @min_bytes: RED's lower threshold
 * @max_bytes: RED's upper threshold, above @min_bytes
 * @max_p_q32: RED's probability at @max_bytes, 0.32, not 0
 *
 * Return: (max - min) / max_p, bytes, below 2^64.
 */
static inline u64 shred_certain(u32 min_bytes, u32 max_bytes, u32 max_p_q32)
{
	return div_u64((u64)(max_bytes - min_bytes) << 32, max_p_q32);
}

/**
 * shred_gentle() - the amount that a packet adds to A if the average queue is above max
 * @threshold_bytes: lower threshold of this packet, at most @max_bytes
 * @max_bytes: RED's upper threshold
 * @certain_bytes: shred_certain()
 * @qavg_bytes: average queue, at least @max_bytes
 *
 * Return: bytes, rising from those of max_p' at max to @certain_bytes at 2 max.
 */
static inline u64 shred_gentle(u32 threshold_bytes, u32 max_bytes, u64 certain_bytes,
			       u32 qavg_bytes)
{
	u64 at_max = min_t(u64, max_bytes - threshold_bytes, certain_bytes);
	u32 over = min_t(u32, qavg_bytes - max_bytes, max_bytes);

	/* over / max is 0.32; at 2 max it would be 2^32 and is limited to 2^32 - 1 */
	return at_max + mul_u64_u32_shr(certain_bytes - at_max,
					(u32)min_t(u64, div_u64((u64)over << 32, max_bytes),
						   U32_MAX), 32);
}

/**
 * shred_sized() - the amount that a packet adds to A in ns-2's byte mode
 * @added_bytes: the amount that a packet of @avpkt_bytes would add
 * @len_bytes: length of the packet; 0 for an Ethernet frame without payload that was redirected
 *	to a device without link-layer headers
 * @avpkt_bytes: length of the average packet, not 0
 *
 * Return: @added_bytes len / avpkt, bytes, limited to 2^64 - 1.
 */
static inline u64 shred_sized(u64 added_bytes, u32 len_bytes, u32 avpkt_bytes)
{
	u64 most = len_bytes ? div_u64(U64_MAX, len_bytes) : U64_MAX, one;

	if (added_bytes <= most)
		return div_u64(added_bytes * len_bytes, avpkt_bytes);
	one = div_u64(added_bytes, avpkt_bytes);
	return one <= most ? one * len_bytes : U64_MAX;
}

/**
 * shred_qavg() - RED's average of the queue at an arrival
 * @qavg: average so far, bytes << wlog
 * @backlog_bytes: bytes queued now
 * @wlog: RED's weight is 2^-wlog
 *
 * Return: the new average, bytes << wlog.
 */
static inline u64 shred_qavg(u64 qavg, u32 backlog_bytes, u32 wlog)
{
	return qavg + backlog_bytes - (qavg >> wlog);
}

/* (1 - 2^-wlog)^n, 0.32; 1 - 2^-32 for n = 0. */
static inline u32 shred_decay(u32 wlog, u64 n)
{
	u64 power = U32_MAX, base = U32_MAX - (U32_MAX >> wlog);

	for (; n && power; n >>= 1) {
		if (n & 1)
			power = (power * base + (1ULL << 31)) >> 32;
		base = (base * base + (1ULL << 31)) >> 32;
	}
	return (u32)power;
}

/**
 * shred_qavg_idle() - RED's average after an idle time
 * @qavg: average when the queue became empty, bytes << wlog
 * @wlog: RED's weight is 2^-wlog
 * @pkts: full-sized packets that the link could have sent since then
 *
 * The average decays as if @pkts packets had found the queue empty (Floyd and Jacobson, 1993,
 * section 4).
 *
 * Return: the new average, bytes << wlog.
 */
static inline u64 shred_qavg_idle(u64 qavg, u32 wlog, u64 pkts)
{
	return mul_u64_u32_shr(qavg, shred_decay(wlog, pkts), 32);
}

/**
 * shred_wlog() - RED's weight for a burst that is to pass
 * @min_bytes: RED's lower threshold
 * @avpkt_bytes: length of a full-sized packet, not 0
 * @burst_pkts: packets that may arrive at once, at most 2^24
 *
 * The largest weight 2^-w with which the average is at most min after a queue has grown by
 * one packet with each arrival: burst + 1 - min / avpkt <= (1 - (1 - 2^-w)^burst) / 2^-w
 * (the same paper, section 4). tc's red calculates it in the same way.
 *
 * Return: w, 1 to 31; 0 if no weight fits: burst below min / avpkt, or min below avpkt.
 */
static inline u32 shred_wlog(u32 min_bytes, u32 avpkt_bytes, u32 burst_pkts)
{
	s64 above_q32 = ((s64)(burst_pkts + 1) << 32) -
			(s64)div_u64((u64)min_bytes << 32, avpkt_bytes);
	u32 wlog;

	if (above_q32 < 1LL << 32 || min_bytes < avpkt_bytes)
		return 0;
	for (wlog = 1; wlog < SHRED_WLOG_MAX; wlog++)
		if (above_q32 >> wlog <= (s64)(U32_MAX - shred_decay(wlog, burst_pkts)))
			break;
	return wlog;
}

#endif
