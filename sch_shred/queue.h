/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the source files of sch_shred.ko: the queue's settings and state. */
#ifndef _SHRED_QUEUE_H
#define _SHRED_QUEUE_H

#include <linux/build_bug.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>
#include <linux/timer.h>
#include <net/pkt_sched.h>

#include "hint.h"
#include "shred.h"

#define SHRED_BANDS		4U
#define SHRED_AGES_PER_BAND	(SHRED_AGE_CLASSES / SHRED_BANDS)

/* Settings. A time is 0 if the size was set in bytes, the burst is 0 if it was not set. */
struct shred_config {
	/* read for each packet */
	u32 limit_bytes;
	u32 split_bytes;	/* larger aggregates are split: 0 or the limit */
	u32 min_bytes;
	u32 max_bytes;
	u32 weight_q32;		/* weight of one hint in the average hint */
	u16 flags;		/* SHRED_F_* */
	u8 hint;		/* enum shred_hint_mode */
	u8 wlog;		/* RED's weight is 2^-wlog; follows from burst, min and avpkt */
	/* rarely read */
	u32 limit_us;
	u32 min_us;
	u32 max_us;
	u32 avpkt_bytes;
	u32 burst_pkts;
	u32 max_p_q32;
	u64 rate_bytes_s;
};

/* Packets in the order of arrival, linked by skb->next. */
struct shred_band {
	struct sk_buff *head;	/* NULL: the band is empty, and tail is not valid */
	struct sk_buff *tail;
};

/* Why a packet is to be dropped or marked; in the order of TCA_SHRED_STATS_*. */
enum shred_verdict {
	SHRED_EARLY,		/* selected by probability */
	SHRED_FORCED,		/* average queue above max, with gentle above 2 max */
	SHRED_LIMIT,		/* the queue is full */
	SHRED_VERDICTS,
	SHRED_PASS = SHRED_VERDICTS
};

/* Counters, packets since the queue was created. */
struct shred_stats {
	u64 class_pkts[SHRED_CLASSES];	/* arrived, by shred_hint_class() */
	u64 class_drops[SHRED_CLASSES];
	u64 drops[SHRED_VERDICTS];
	u64 marks[SHRED_LIMIT];		/* early, forced */
};

/* All under the qdisc's tree lock. */
struct shred_sched_data {
	u64 qavg;		/* RED's average queue, bytes << wlog */
	u64 left_bytes;		/* R - A: bytes that may be added to A until the next selection */
	s32 count;		/* plain RED: packets since R was drawn; -1 = not drawn yet */
	u32 hint_avg_q22;	/* 10.22; 0 = no hint seen yet */
	u32 floor_bytes;	/* lowest threshold of any packet */
	u32 arrivals;		/* packets queued so far; wraps, compared by difference */
	u32 busy;		/* bit of each band that has packets */
	s32 owed_bytes;		/* credit of the packet that arrived first; within +-2^20 */
	struct shred_config config;
	ktime_t idle_since;	/* when the queue became empty; valid only while it is empty */
	struct shred_band bands[SHRED_BANDS] ____cacheline_aligned;
	struct shred_stats stats;
	/* rarely used */
	struct timer_list adapt_timer;
	struct Qdisc *sch;	/* for the timer */
};

/* A packet that is not dropped or marked needs at most four cache lines: the fields before
 * limit_us, also if several bands have packets; the bands; the counter of its class; and, if it
 * arrives at an empty queue or leaves the queue empty, the other settings and the idle time.
 */
static_assert(offsetofend(struct shred_sched_data, owed_bytes) <=
	      offsetof(struct shred_sched_data, config) &&
	      offsetof(struct shred_sched_data, config.limit_us) <= 64 &&
	      offsetofend(struct shred_sched_data, idle_since) <= 2 * 64 &&
	      sizeof_field(struct shred_sched_data, bands) <= 64);

/* config.c */
extern const struct shred_config shred_defaults;
int shred_config_parse(struct nlattr *opt, struct shred_config *c, struct netlink_ext_ack *extack);
void shred_config_get(struct Qdisc *sch, struct shred_config *c);
int shred_dump(struct Qdisc *sch, struct sk_buff *skb);
int shred_dump_stats(struct Qdisc *sch, struct gnet_dump *d);

#endif
