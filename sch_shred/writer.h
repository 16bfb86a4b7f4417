/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of shred_hint.ko share: a namespace's state, and the calls between them. */
#ifndef _SHRED_WRITER_H
#define _SHRED_WRITER_H

#include <linux/build_bug.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>

#include "age.h"
#include "hint.h"

static_assert(SHRED_IDLE_MS * 1000 > SHRED_OLDEST_SHARE * SHRED_LIMIT_US,
	      "a flow is forgotten while its packets wait");

#define SHRED_DEVICES_LEN	128	/* of the setting, with the last NUL */

/* Of the table: 2^14 buckets are 1 MiB and remember 81920 flows that are active within 1.5 seconds,
 * which on a link of 1 Gbit/s leaves each of them 1.5 packets in that time.
 */
#define SHRED_BUCKETS_LOG	14
#define SHRED_BUCKETS		(1U << SHRED_BUCKETS_LOG)

enum shred_hint_count {
	SHRED_WRITTEN_HOST,	/* packets written on the sending host */
	SHRED_WRITTEN_EDGE,	/* packets that came without a hint */
	SHRED_OVERWRITTEN,	/* packets whose hint said less than their flow's age */
	SHRED_KEPT,		/* packets whose hint was believed */
	SHRED_SKIPPED,		/* packets that carry another DSCP */
	SHRED_TABLE_FULL,	/* packets of flows that had no room */
	SHRED_COUNTS
};

struct shred_hint_counters {
	u64 n[SHRED_COUNTS];
};

/* A packet's age takes one cache line. */
struct shred_bucket {
	spinlock_t lock;
	struct shred_age ages[SHRED_WAYS];
};

/* Interfaces by name, so that one that is made later counts too; replaced as a whole, under RCU. */
struct shred_devices {
	struct rcu_head rcu;
	unsigned int n;
	char text[SHRED_DEVICES_LEN];	/* as it was set */
	char names[SHRED_DEVICES_LEN / 2][IFNAMSIZ];
};

/* What is set; each a number of one byte. */
enum shred_setting {
	SHRED_MODE,	/* enum shred_hint_mode; off at first */
	SHRED_HOST,	/* 0 or 1; 0 at first */
	SHRED_EDGE,	/* 0 or 1; 0 at first */
	SHRED_POLICE,	/* 0; 1 = by flow, at first; 2 = by flow and pair of hosts */
	SHRED_SETTINGS
};

struct shred_hint_net {
	struct net *net;
	struct mutex mutex;		/* settings and hooks; readers use READ_ONCE */
	u8 set[SHRED_SETTINGS];
	bool hooked;
	struct shred_devices __rcu *devices;	/* NULL: all; written under mutex */
	struct shred_bucket *buckets;	/* flows.c; NULL until the first hook */
	struct shred_hint_counters __percpu *counters;
	struct ctl_table_header *sysctls;
};

struct shred_hint_net *shred_hint_pernet(const struct net *net);

static inline void shred_hint_count(struct shred_hint_net *hn, enum shred_hint_count what)
{
	this_cpu_inc(hn->counters->n[what]);
}

/* packet.c */
u8 shred_packet_tos(const struct sk_buff *skb, int family);
int shred_packet_protocol(const struct sk_buff *skb, int family);
void shred_packet_write(struct shred_hint_net *hn, struct sk_buff *skb, int family, u8 mode,
			u32 hint, enum shred_hint_count what);
bool shred_device_wanted(const struct shred_hint_net *hn, const struct net_device *dev);

/* flows.c */
int shred_flows_prepare(struct shred_hint_net *hn);
unsigned int shred_flows_known(const struct shred_hint_net *hn);
u32 shred_flow_count(struct shred_hint_net *hn, u64 hash, bool pair, u32 payload_bytes,
		     u32 least_bytes);
u32 shred_flow_hint(struct shred_hint_net *hn, const struct sk_buff *skb, int family, u8 mode);

/* host.c, edge.c */
unsigned int shred_host_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);
unsigned int shred_edge_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

/* settings.c */
int shred_settings_init(struct shred_hint_net *hn);
void shred_settings_exit(struct shred_hint_net *hn);

#endif
