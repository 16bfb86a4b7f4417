/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of sch_shred.ko share: the queue's settings and state. */
#ifndef _SHRED_QUEUE_H
#define _SHRED_QUEUE_H

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
	u64 rate_bytes_s;
	u32 limit_bytes;
	u32 min_bytes;
	u32 max_bytes;
	u32 limit_us;
	u32 min_us;
	u32 max_us;
	u32 avpkt_bytes;
	u32 burst_pkts;
	u32 wlog;		/* RED's weight is 2^-wlog: from burst, min and avpkt */
	u32 max_p_q32;
	u32 flags;		/* SHRED_F_* */
	u32 weight_q32;		/* of one hint in their average */
	u8 hint;		/* enum shred_hint_mode */
};

/* Packets in the order of arrival, linked by skb->next. */
struct shred_band {
	struct sk_buff *head;	/* NULL: the band is empty, and tail means nothing */
	struct sk_buff *tail;
};

/* Counters, packets since the queue was made. */
struct shred_stats {
	u64 class_pkts[SHRED_CLASSES];	/* arrived, by shred_hint_class() */
	u64 class_drops[SHRED_CLASSES];
	u64 early_drop;
	u64 forced_drop;
	u64 limit_drop;
	u64 early_mark;
	u64 forced_mark;
};

/*
 * A packet that goes in touches the first two cache lines and one of the counters, a packet that
 * comes out the first two. All under the qdisc's tree lock.
 */
struct shred_sched_data {
	u64 qavg;		/* RED's average queue, bytes << wlog */
	u64 acc_bytes;		/* A: sum of what packets added since the last hit */
	u64 random_bytes;	/* R */
	s32 count;		/* packets since R was drawn; -1 = draw it with the next one */
	u32 hint_avg_q22;	/* 10.22; 0 = no hint seen yet */
	u32 weight_q32;
	u32 min_bytes;
	u32 max_bytes;
	u32 floor_bytes;	/* lowest threshold of any packet */
	u32 limit_bytes;
	u32 arrivals;		/* packets that were queued; wraps, compared by difference */
	u16 flags;
	u8 hint;
	u8 wlog;
	u8 busy;		/* bit of each band that has packets */

	struct shred_band bands[SHRED_BANDS] ____cacheline_aligned;

	struct shred_stats stats ____cacheline_aligned;

	/* seldom */
	ktime_t idle_since;	/* when the queue became empty; means nothing while it is not */
	s32 owed_bytes;		/* to the packet that arrived first; within +-2^20 */
	u32 per_byte_q32;	/* max_p / (max - min) as net/red.h cuts it, at least 1 */
	u64 certain_bytes;	/* what a packet of probability 1 adds to A */
	struct shred_config config;
	struct timer_list adapt_timer;
	struct Qdisc *sch;	/* for the timer */
};

/* config.c */
extern const struct shred_config shred_defaults;
int shred_config_parse(struct nlattr *opt, struct shred_config *c, struct netlink_ext_ack *extack);
void shred_config_get(struct Qdisc *sch, struct shred_config *c);
int shred_dump(struct Qdisc *sch, struct sk_buff *skb);
int shred_dump_stats(struct Qdisc *sch, struct gnet_dump *d);

#endif
