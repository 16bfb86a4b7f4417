/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the source files of shred_hint.ko: per-namespace state and functions. */
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

#define SHRED_DEVICES_LEN	128	/* longest value of the setting, with its NUL */

/* Size of the flow table: 2^14 buckets take 1 MiB and hold 81920 flows that are active within
 * 1.5 seconds. On a link of 1 Gbit/s each of so many flows sends 1.5 packets in that time.
 */
#define SHRED_BUCKETS_LOG	14
#define SHRED_BUCKETS		(1U << SHRED_BUCKETS_LOG)

enum shred_hint_count {
	SHRED_WRITTEN_HOST,	/* hints written on the sending host */
	SHRED_WRITTEN_EDGE,	/* hints written at the edge, to packets without one */
	SHRED_OVERWRITTEN,	/* hints replaced at the edge: less than the flow's age */
	SHRED_KEPT,		/* hints that the edge did not change */
	SHRED_SKIPPED,		/* packets with another DSCP, not changed */
	SHRED_TABLE_FULL,	/* packets of flows for which the table had no room */
	SHRED_COUNTS
};

struct shred_hint_counters {
	u64 n[SHRED_COUNTS];
};

/* One cache line: all that a look-up touches. */
struct shred_bucket {
	spinlock_t lock;
	struct shred_age ages[SHRED_WAYS];
};

/* Interfaces by name, so that the list may name one that does not exist yet; replaced as a whole,
 * under RCU.
 */
struct shred_devices {
	struct rcu_head rcu;
	unsigned int n;			/* entries of names */
	char text[SHRED_DEVICES_LEN];	/* the setting as written */
	char names[SHRED_DEVICES_LEN / 2][IFNAMSIZ];
};

/* Settings of one byte each. */
enum shred_setting {
	SHRED_MODE,	/* enum shred_hint_mode; default off */
	SHRED_HOST,	/* 0 or 1; default 0 */
	SHRED_EDGE,	/* 0 or 1; default 0 */
	SHRED_POLICE,	/* 0 = off, 1 = by flow (default), 2 = by flow and pair of hosts */
	SHRED_SETTINGS
};

struct shred_hint_net {
	struct net *net;
	struct mutex mutex;		/* writers of set, hooked, devices */
	u8 set[SHRED_SETTINGS];		/* hooks read it with READ_ONCE */
	bool hooked;			/* the netfilter hooks are registered */
	struct shred_devices __rcu *devices;	/* NULL: all interfaces */
	struct shred_bucket *buckets;	/* flows.c; NULL until hooks are first registered */
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
