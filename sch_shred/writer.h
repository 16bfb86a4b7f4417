/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of shred_hint.ko share: a namespace's state, and the calls between them. */
#ifndef _SHRED_WRITER_H
#define _SHRED_WRITER_H

#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/rhashtable.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>

#include "hint.h"

#define SHRED_DEVICES_LEN	128	/* of the setting, with the last NUL */
#define SHRED_MAX_FLOWS		1048576
#define SHRED_DEFAULT_FLOWS	65536

/* Restarts of ages that sending sockets remember; a power of two. Two sockets that share an entry
 * take turns in it, and the one that is not in it counts from its beginning: too old, never too
 * young. Doubling it costs 32 KiB a namespace.
 */
#define SHRED_RESTARTS		4096

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

/* Interfaces by name, so that one that is made later counts too; replaced as a whole, under RCU. */
struct shred_devices {
	struct rcu_head rcu;
	unsigned int n;
	char text[SHRED_DEVICES_LEN];	/* as it was set */
	char names[SHRED_DEVICES_LEN / 2][IFNAMSIZ];
};

struct shred_hint_net {
	struct net *net;
	struct mutex mutex;		/* settings and hooks; readers use READ_ONCE */
	u8 mode;			/* enum shred_hint_mode */
	u8 host;			/* 0 or 1 */
	u8 edge;			/* 0 or 1 */
	u8 police;			/* 0 or 1 */
	bool hooked_host;
	bool hooked_edge;
	unsigned int max_flows;
	struct shred_devices __rcu *devices;	/* NULL: all; written under mutex */
	atomic64_t *restarts;		/* SHRED_RESTARTS entries, host.c; NULL until host was on */
	struct rhashtable flows;	/* edge.c; under RCU */
	atomic_t n_flows;
	struct delayed_work sweep;	/* runs while there are flows */
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
bool shred_packet_write(struct sk_buff *skb, int family, u8 mode, u32 hint);
bool shred_device_wanted(const struct shred_hint_net *hn, const struct net_device *dev);

/* host.c */
int shred_host_prepare(struct shred_hint_net *hn);
void shred_host_free(struct shred_hint_net *hn);
unsigned int shred_host_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

/* edge.c */
int shred_edge_init(struct shred_hint_net *hn);
void shred_edge_free(struct shred_hint_net *hn);
u32 shred_edge_hint(struct shred_hint_net *hn, const struct sk_buff *skb, int family, u8 mode);
unsigned int shred_edge_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

/* settings.c */
int shred_settings_init(struct shred_hint_net *hn);
void shred_settings_exit(struct shred_hint_net *hn);

#endif
