/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Configuration and statistics of the "shred" queueing discipline.
 *
 * RTM_NEWQDISC, RTM_GETQDISC with TCA_KIND "shred". TCA_OPTIONS is a nest of
 * TCA_SHRED_* attributes. Each may be left out: a new queue then takes the
 * default, and a change keeps the present value.
 *
 *   RATE64     u64  bytes a second of the link, default 1250000 (10 Mbit/s)
 *   LIMIT      u32  bytes that the queue may hold
 *   MIN, MAX   u32  bytes, thresholds on the average queue, MIN < MAX <= LIMIT
 *   LIMIT_US, MIN_US, MAX_US
 *              u32  the same as time at RATE64, us; the bytes are recalculated
 *                   when RATE64 changes; defaults 175000, 80000, 168000. If both
 *                   forms of a value are given, the time is used.
 *   AVPKT      u32  bytes of a full-sized packet, default 1500
 *   BURST      u32  packets; RED's weight 2^-w is the largest with which a burst
 *                   of this many packets raises the average from 0 to at most MIN.
 *                   Default (2 MIN + MAX) / (3 AVPKT), at least MIN / AVPKT,
 *                   recalculated when these change
 *   MAX_P      u32  0.32 fixed point, probability at MAX, default 0.1
 *   FLAGS      bitfield32 of SHRED_F_*, default SHRED_F_GENTLE
 *   HINT       u8   enum shred_hint_mode, default SHRED_HINT_DSCP
 *   WEIGHT     u32  0.32 fixed point, weight of one hint in the average hint,
 *                   SHRED_WEIGHT_MIN to SHRED_WEIGHT_MAX, default 0.002
 *
 * A dump contains all sizes in bytes, and also as times those that were set as
 * times; BURST only if it was set. MAX_P is the present value, which the adaptive
 * rule may have changed. WLOG appears in dumps only; a request with it is refused.
 *
 * TCA_STATS_APP is a nest of TCA_SHRED_STATS_* attributes. Counters are u64
 * packets since the queue was created. Arrays have SHRED_CLASSES entries of u64:
 * packets without a hint, then with a hint of 1, 2-3, 4-7, ... 128-255.
 */
#ifndef _UAPI_LBE_SHRED_H
#define _UAPI_LBE_SHRED_H

#include <linux/types.h>

enum {
	TCA_SHRED_UNSPEC,
	TCA_SHRED_LIMIT,
	TCA_SHRED_MIN,
	TCA_SHRED_MAX,
	TCA_SHRED_AVPKT,
	TCA_SHRED_WLOG,
	TCA_SHRED_BURST,
	TCA_SHRED_PAD,
	TCA_SHRED_RATE64,
	TCA_SHRED_MAX_P,
	TCA_SHRED_FLAGS,
	TCA_SHRED_HINT,
	TCA_SHRED_WEIGHT,
	TCA_SHRED_LIMIT_US,
	TCA_SHRED_MIN_US,
	TCA_SHRED_MAX_US,
	__TCA_SHRED_MAX
};

#define TCA_SHRED_MAX_ATTR	(__TCA_SHRED_MAX - 1)

#define SHRED_F_ECN		(1U << 0)	/* mark ECT packets instead of dropping them */
#define SHRED_F_HARDDROP	(1U << 1)	/* above MAX (GENTLE: 2 MAX) drop even with ECN */
#define SHRED_F_ADAPTIVE	(1U << 2)	/* adapt MAX_P, as red's "adaptive" does */
#define SHRED_F_NODROP		(1U << 3)	/* with ECN: queue packets that are not ECT */
#define SHRED_F_GENTLE		(1U << 4)	/* MAX to 2 MAX: probability rises to 1 */
#define SHRED_F_BYTES		(1U << 5)	/* probability times packet size / AVPKT, as ns-2 */
#define SHRED_F_WASH		(1U << 6)	/* clear the hint when a packet leaves */
#define SHRED_F_SPLIT_GSO	(1U << 7)	/* queue the packets of an aggregate one by one */
#define SHRED_F_ALL		((1U << 8) - 1)

/* How hints are coded, and which law uses them. */
enum shred_hint_mode {
	SHRED_HINT_OFF,		/* hints are ignored: plain RED */
	SHRED_HINT_TOS,		/* the paper: cwnd in the whole TOS byte or traffic class */
	SHRED_HINT_DSCP,	/* the flow's age in eight DSCPs, yyy111; four bands */
	__SHRED_HINT_MAX
};

#define SHRED_WEIGHT_MIN	429497U		/* 0.0001 */
#define SHRED_WEIGHT_DEFAULT	8589935U	/* 0.002, the paper's w_c */
#define SHRED_WEIGHT_MAX	4294967295U	/* 1 */

#define SHRED_CLASSES		9

enum {
	TCA_SHRED_STATS_UNSPEC,
	TCA_SHRED_STATS_PAD,
	TCA_SHRED_STATS_EARLY,		/* u64 dropped by probability */
	TCA_SHRED_STATS_FORCED,		/* u64 dropped, average queue above MAX or 2 MAX */
	TCA_SHRED_STATS_LIMIT,		/* u64 dropped, queue full */
	TCA_SHRED_STATS_EARLY_MARK,	/* u64 marked CE by probability */
	TCA_SHRED_STATS_FORCED_MARK,	/* u64 marked CE, average queue above MAX or 2 MAX */
	TCA_SHRED_STATS_HINT_AVG,	/* u32 average hint, 10.22, 0 = no hint seen yet */
	TCA_SHRED_STATS_QAVG,		/* u32 average queue, bytes */
	TCA_SHRED_STATS_CLASS_PKTS,	/* u64[SHRED_CLASSES] arrived */
	TCA_SHRED_STATS_CLASS_DROPS,	/* u64[SHRED_CLASSES] dropped, for any reason */
	__TCA_SHRED_STATS_MAX
};

#define TCA_SHRED_STATS_MAX_ATTR	(__TCA_SHRED_STATS_MAX - 1)

#endif
