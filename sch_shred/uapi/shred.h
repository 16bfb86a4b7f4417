/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Configuration and statistics of the "shred" queueing discipline.
 *
 * RTM_NEWQDISC, RTM_GETQDISC with TCA_KIND "shred". TCA_OPTIONS is a nest of
 * TCA_SHRED_* attributes:
 *
 *   LIMIT      u32  bytes the queue may hold; 0 leaves the child queue alone
 *   MIN, MAX   u32  bytes, RED's thresholds on the average queue, MIN < MAX
 *   AVPKT      u32  bytes of a full-sized packet (the paper's "packet"), > 0
 *   WLOG       u8   RED's averaging weight is 2^-WLOG
 *   PLOG       u8   kept for tools that print it; MAX_P rules
 *   SCELL_LOG  u8   cell size of STAB, below 32
 *   STAB       256 bytes, idle damping table, each value below 32
 *   MAX_P      u32  0.32 fixed point, drop probability at MAX, > 0
 *   FLAGS      bitfield32 of SHRED_F_*
 *   HINT       u8   enum shred_hint_mode, default SHRED_HINT_TOS
 *   WEIGHT     u32  0.32 fixed point, weight of one hint in their average,
 *                   SHRED_WEIGHT_MIN to SHRED_WEIGHT_MAX, default 0.002
 *
 * LIMIT, MIN, MAX, AVPKT, WLOG, SCELL_LOG, STAB and MAX_P are required when
 * the queue is made; a change may leave out what shall stay. A dump returns
 * what was set (MAX_P: what the adaptive rule made of it), all but STAB.
 *
 * TCA_STATS_APP is a nest of TCA_SHRED_STATS_* attributes: counters are u64
 * packets since the queue was made. HINT_PKTS and HINT_DROPS are arrays of
 * SHRED_CLASSES u64, one per class of hint: 1, 2-3, 4-7, ... 128-255 packets;
 * they count every arrival and every drop of whatever reason.
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
	TCA_SHRED_PLOG,
	TCA_SHRED_SCELL_LOG,
	TCA_SHRED_STAB,
	TCA_SHRED_MAX_P,
	TCA_SHRED_FLAGS,
	TCA_SHRED_HINT,
	TCA_SHRED_WEIGHT,
	__TCA_SHRED_MAX
};

#define TCA_SHRED_MAX_ATTR	(__TCA_SHRED_MAX - 1)

#define SHRED_F_ECN		(1U << 0)	/* mark ECT packets instead of dropping them */
#define SHRED_F_HARDDROP	(1U << 1)	/* above MAX drop even with ECN */
#define SHRED_F_ADAPTIVE	(1U << 2)	/* MAX_P adapts, as red's "adaptive" */
#define SHRED_F_NODROP		(1U << 3)	/* with ECN: queue what cannot be marked */
#define SHRED_F_GENTLE		(1U << 4)	/* MAX to 2 MAX: probability rises to 1 */
#define SHRED_F_ALL		(SHRED_F_ECN | SHRED_F_HARDDROP | SHRED_F_ADAPTIVE | \
				 SHRED_F_NODROP | SHRED_F_GENTLE)

enum shred_hint_mode {
	SHRED_HINT_OFF,		/* plain RED */
	SHRED_HINT_TOS,		/* the whole TOS byte or traffic class, in packets */
	SHRED_HINT_DSCP,	/* the upper six bits, in steps; ECN is left alone */
	__SHRED_HINT_MAX
};

#define SHRED_WEIGHT_MIN	429497U		/* 0.0001 */
#define SHRED_WEIGHT_DEFAULT	8589935U	/* 0.002, the paper's w_c */
#define SHRED_WEIGHT_MAX	4294967295U	/* 1 */

#define SHRED_CLASSES		8

enum {
	TCA_SHRED_STATS_UNSPEC,
	TCA_SHRED_STATS_PAD,
	TCA_SHRED_STATS_EARLY_HINTED,		/* u64 dropped by probability */
	TCA_SHRED_STATS_EARLY_UNHINTED,
	TCA_SHRED_STATS_FORCED_HINTED,		/* u64 dropped, average above MAX */
	TCA_SHRED_STATS_FORCED_UNHINTED,
	TCA_SHRED_STATS_LIMIT_HINTED,		/* u64 dropped, queue full */
	TCA_SHRED_STATS_LIMIT_UNHINTED,
	TCA_SHRED_STATS_EARLY_MARK_HINTED,	/* u64 marked CE by probability */
	TCA_SHRED_STATS_EARLY_MARK_UNHINTED,
	TCA_SHRED_STATS_FORCED_MARK_HINTED,	/* u64 marked CE, average above MAX */
	TCA_SHRED_STATS_FORCED_MARK_UNHINTED,
	TCA_SHRED_STATS_PKTS_HINTED,		/* u64 arrived */
	TCA_SHRED_STATS_PKTS_UNHINTED,
	TCA_SHRED_STATS_CWND_AVG,		/* u32 average hint, 10.22 packets, 0 = none yet */
	TCA_SHRED_STATS_QAVG,			/* u32 average queue, bytes */
	TCA_SHRED_STATS_HINT_PKTS,		/* u64[SHRED_CLASSES] */
	TCA_SHRED_STATS_HINT_DROPS,		/* u64[SHRED_CLASSES] */
	__TCA_SHRED_STATS_MAX
};

#define TCA_SHRED_STATS_MAX_ATTR	(__TCA_SHRED_STATS_MAX - 1)

#endif
