/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of sch_shred.ko share: the queue's settings and state. */
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

/* What the user set; the times and the burst are 0 where bytes or nothing were set. */
struct shred_config {
	/* read for each packet */
	u32 limit_bytes;
	u32 split_bytes;	/* larger aggregates are split: 0 or the limit */
	u32 min_bytes;
	u32 max_bytes;
	u32 weight_q32;		/* of one hint in their average */
	u16 flags;		/* SHRED_F_* */
	u8 hint;		/* enum shred_hint_mode */
	u8 wlog;		/* RED's weight is 2^-wlog: from burst, min and avpkt */
	/* seldom */
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
	struct sk_buff *head;	/* NULL: the band is empty, and tail means nothing */
	struct sk_buff *tail;
};

/* Why a packet is not to pass; in the order of TCA_SHRED_STATS_*. */
enum shred_verdict {
	SHRED_EARLY,		/* hit by probability */
	SHRED_FORCED,		/* the average queue is above the last threshold */
	SHRED_LIMIT,		/* the queue is full */
	SHRED_VERDICTS,
	SHRED_PASS = SHRED_VERDICTS
};

/* Counters, packets since the queue was made. */
struct shred_stats {
	u64 class_pkts[SHRED_CLASSES];	/* arrived, by shred_hint_class() */
	u64 class_drops[SHRED_CLASSES];
	u64 drops[SHRED_VERDICTS];
	u64 marks[SHRED_LIMIT];		/* early, forced */
};

/* All under the qdisc's tree lock. */
struct shred_sched_data {
	u64 qavg;		/* RED's average queue, bytes << wlog */
	u64 left_bytes;		/* R - A: what packets may add until the next hit */
	s32 count;		/* of plain RED: packets since R was drawn; -1 = draw it next */
	u32 hint_avg_q22;	/* 10.22; 0 = no hint seen yet */
	u32 floor_bytes;	/* lowest threshold of any packet */
	u32 arrivals;		/* packets that were queued; wraps, compared by difference */
	u32 busy;		/* bit of each band that has packets */
	s32 owed_bytes;		/* to the packet that arrived first; within +-2^20 */
	struct shred_config config;
	ktime_t idle_since;	/* when the queue became empty; means nothing while it is not */
	struct shred_band bands[SHRED_BANDS] ____cacheline_aligned;
	struct shred_stats stats;
	/* seldom */
	struct timer_list adapt_timer;
	struct Qdisc *sch;	/* for the timer */
};

/* A packet that passes needs at most four cache lines: what is before limit_us, also where bands
 * compete; the bands; its class's counter; and, where it finds the queue empty or leaves it so, the
 * rest of the settings with the idle time.
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
