// SPDX-License-Identifier: GPL-2.0
/*
 * The paths of a network namespace. A path is found by destination and device, shared by the
 * flows there, and kept for a while after the last one has left. /proc/net/lbe_paths shows them.
 */
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "paths.h"
#include "lbe_trace.h"

#define LBE_PATHS_BUCKETS	256
/* A namespace keeps at most this many paths without a flow. If doubled, they take 1 MB more. */
#define LBE_PATHS_IDLE_MAX	1024
/* A path is freed this long after its last flow has left. Its base and capacity are then older than
 * the time for which a base is kept.
 */
#define LBE_PATHS_KEEP		(600 * HZ)

/**
 * struct lbe_paths - paths of a network namespace
 * @lock: guards all fields; not held while a path's own lock is taken
 * @bucket: paths by hash of the destination; also read under RCU
 * @seed: of the hash, random, since peers choose their addresses
 * @idle: number of paths without a flow
 * @splits: paths made so far for single flows that contradicted the others
 */
struct lbe_paths {
	spinlock_t lock;
	struct hlist_head bucket[LBE_PATHS_BUCKETS];
	u32 seed;
	u32 idle;
	unsigned long splits;
};

static unsigned int lbe_paths_id __read_mostly;

static void lbe_daddr(const struct sock *sk, struct in6_addr *daddr)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		*daddr = sk->sk_v6_daddr;
		return;
	}
#endif
	ipv6_addr_set_v4mapped(sk->sk_daddr, daddr);
}

static bool lbe_shared_old(const struct lbe_shared *shared)
{
	return !READ_ONCE(shared->users) &&
	       time_after64(get_jiffies_64(), READ_ONCE(shared->left) + LBE_PATHS_KEEP);
}

static void lbe_paths_forget(struct lbe_shared *shared)
{
	hlist_del_rcu(&shared->node);
	kfree_rcu(shared, rcu);
}

/* Free the old paths of a bucket; all of its paths without a flow if there are too many. */
static void lbe_paths_age(struct lbe_paths *paths, struct hlist_head *head)
{
	struct lbe_shared *shared;
	struct hlist_node *next;

	hlist_for_each_entry_safe(shared, next, head, node)
		if (!shared->users &&
		    (paths->idle >= LBE_PATHS_IDLE_MAX || lbe_shared_old(shared))) {
			paths->idle--;
			lbe_paths_forget(shared);
		}
}

static struct lbe_shared *lbe_paths_find(struct hlist_head *head, const struct in6_addr *daddr,
					 int ifindex)
{
	struct lbe_shared *shared;

	hlist_for_each_entry(shared, head, node)
		if (!shared->alone && ipv6_addr_equal(&shared->daddr, daddr) &&
		    (!ifindex || shared->ifindex == ifindex))
			return shared;
	return NULL;
}

/**
 * lbe_shared_get - find or make the path of a flow
 * @sk: socket, locked
 * @now_us: TCP's clock
 * @alone: make a path for this flow alone
 *
 * Return: the path, to be released by lbe_shared_put(); NULL if there is no memory.
 */
struct lbe_shared *lbe_shared_get(struct sock *sk, u64 now_us, bool alone)
{
	struct lbe_paths *paths = net_generic(sock_net(sk), lbe_paths_id);
	const struct tcp_sock *tp = tcp_sk(sk);
	int ifindex = lbe_shared_device(sk);
	struct lbe_shared *shared = NULL;
	struct hlist_head *head;
	struct in6_addr daddr;

	lbe_daddr(sk, &daddr);
	head = &paths->bucket[jhash(&daddr, sizeof(daddr), paths->seed) % LBE_PATHS_BUCKETS];
	spin_lock_bh(&paths->lock);
	lbe_paths_age(paths, head);
	if (!alone)
		shared = lbe_paths_find(head, &daddr, ifindex);
	if (!shared) {
		shared = kzalloc(sizeof(*shared), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
		if (!shared)
			goto out;
		shared->daddr = daddr;
		shared->ifindex = ifindex;
		shared->alone = alone;
		shared->born = get_jiffies_64();
		spin_lock_init(&shared->lock);
		INIT_LIST_HEAD(&shared->line);
		INIT_LIST_HEAD(&shared->rest);
		lbe_path_init(&shared->law, now_us, tp->mss_cache,
			      tp->srtt_us ? tp->srtt_us >> 3 : USEC_PER_SEC);
		hlist_add_head_rcu(&shared->node, head);
		if (alone)
			WRITE_ONCE(paths->splits, paths->splits + 1);
	} else if (!shared->users) {
		paths->idle--;
	}
	WRITE_ONCE(shared->users, shared->users + 1);
out:
	spin_unlock_bh(&paths->lock);
	return shared;
}

void lbe_shared_put(const struct sock *sk, struct lbe_shared *shared)
{
	struct lbe_paths *paths = net_generic(sock_net(sk), lbe_paths_id);

	spin_lock_bh(&paths->lock);
	WRITE_ONCE(shared->left, get_jiffies_64());
	WRITE_ONCE(shared->users, shared->users - 1);
	if (!shared->users && (shared->alone || paths->idle >= LBE_PATHS_IDLE_MAX))
		lbe_paths_forget(shared);
	else if (!shared->users)
		paths->idle++;
	spin_unlock_bh(&paths->lock);
}

/**
 * lbe_paths_each - visit all paths of a namespace
 * @net: the namespace
 * @visit: called under RCU, takes the path's lock
 *
 * What the caller has done before is visible to every flow that joins a path that is not visited,
 * since such a path is made under the table's lock after it was released here.
 */
void lbe_paths_each(struct net *net, void (*visit)(struct lbe_shared *shared))
{
	struct lbe_paths *paths = net_generic(net, lbe_paths_id);
	struct lbe_shared *shared;
	int i;

	spin_lock_bh(&paths->lock);
	spin_unlock_bh(&paths->lock);
	rcu_read_lock();
	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		hlist_for_each_entry_rcu(shared, &paths->bucket[i], node)
			visit(shared);
	rcu_read_unlock();
}

/* The dump */

#define LBE_NAME(names, value)						\
	({								\
		static const struct trace_print_flags __names[] = { names }; \
									\
		lbe_name(__names, ARRAY_SIZE(__names), value);		\
	})

static const char *lbe_name(const struct trace_print_flags *names, size_t nr, u8 value)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (names[i].mask == value)
			return names[i].name;
	return "?";
}

static void lbe_number(struct seq_file *seq, bool known, u64 value)
{
	if (known)
		seq_printf(seq, " %llu", value);
	else
		seq_puts(seq, " -");
}

/* The caller holds the RCU read lock. */
static void lbe_shared_show(struct seq_file *seq, struct lbe_shared *shared, u64 now_us)
{
	const struct net_device *dev = dev_get_by_index_rcu(seq_file_single_net(seq),
							     shared->ifindex);
	u64 now = get_jiffies_64(), left = READ_ONCE(shared->left);
	struct lbe_path p;
	bool cruises;

	spin_lock_bh(&shared->lock);
	p = shared->law;
	spin_unlock_bh(&shared->lock);
	cruises = p.state == LBE_CRUISE;

	if (ipv6_addr_v4mapped(&shared->daddr))
		seq_printf(seq, "%pI4", &shared->daddr.s6_addr32[3]);
	else
		seq_printf(seq, "%pI6c", &shared->daddr);
	seq_printf(seq, " %s %s %u %s %s", dev ? dev->name : "-",
		   shared->alone ? "split" : "shared", p.flows,
		   LBE_NAME(lbe_state_names, p.state), LBE_NAME(lbe_reason_names, p.reason));
	lbe_number(seq, true, div_u64(now_us - min(now_us, p.since_us), USEC_PER_SEC));
	lbe_number(seq, p.base_us != U32_MAX, p.base_us);
	lbe_number(seq, cruises, p.q_us[(p.ticks + LBE_PATH_TICKS - 1) % LBE_PATH_TICKS]);
	lbe_number(seq, p.mu, p.mu);
	lbe_number(seq, true, p.rate);
	lbe_number(seq, cruises, p.mu - min(p.mu, p.rate));
	lbe_number(seq, true, p.in_flight);
	lbe_number(seq, true, div_u64(now - shared->born, HZ));
	lbe_number(seq, !p.flows && left, div_u64(now - min(now, left), HZ));
	seq_putc(seq, '\n');
}

static int lbe_paths_show(struct seq_file *seq, void *v)
{
	struct lbe_paths *paths = net_generic(seq_file_single_net(seq), lbe_paths_id);
	u64 now_us = div_u64(tcp_clock_ns(), NSEC_PER_USEC);
	struct lbe_shared *shared;
	int i;

	seq_puts(seq, "destination device path flows state reason state_s base_us queue_us capacity rate others in_flight age_s idle_s\n");
	rcu_read_lock();
	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		hlist_for_each_entry_rcu(shared, &paths->bucket[i], node)
			if (!lbe_shared_old(shared))
				lbe_shared_show(seq, shared, now_us);
	rcu_read_unlock();
	return 0;
}

/* The lines about paths in the counters of the namespace (counters.h) */
void lbe_paths_totals(struct seq_file *seq, struct net *net)
{
	const struct lbe_paths *paths = net_generic(net, lbe_paths_id);
	const struct lbe_shared *shared;
	unsigned int known = 0;
	int i;

	rcu_read_lock();
	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		hlist_for_each_entry_rcu(shared, &paths->bucket[i], node)
			known += !lbe_shared_old(shared);
	rcu_read_unlock();
	seq_printf(seq, "paths %u\nsplits %lu\n", known, READ_ONCE(paths->splits));
}

static int __net_init lbe_paths_init(struct net *net)
{
	struct lbe_paths *paths = net_generic(net, lbe_paths_id);
	int i;

	spin_lock_init(&paths->lock);
	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		INIT_HLIST_HEAD(&paths->bucket[i]);
	paths->seed = get_random_u32();
	if (!proc_create_net_single("lbe_paths", 0444, net->proc_net, lbe_paths_show, NULL) &&
	    IS_ENABLED(CONFIG_PROC_FS))
		return -ENOMEM;
	return 0;
}

/* Sockets hold a reference to their namespace, or are closed before it ends: no path has a flow. */
static void __net_exit lbe_paths_exit(struct net *net)
{
	struct lbe_paths *paths = net_generic(net, lbe_paths_id);
	struct lbe_shared *shared;
	struct hlist_node *next;
	int i;

	remove_proc_entry("lbe_paths", net->proc_net);
	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		hlist_for_each_entry_safe(shared, next, &paths->bucket[i], node)
			lbe_paths_forget(shared);
}

static struct pernet_operations lbe_paths_ops = {
	.init	= lbe_paths_init,
	.exit	= lbe_paths_exit,
	.id	= &lbe_paths_id,
	.size	= sizeof(struct lbe_paths),
};

int lbe_paths_register(void)
{
	return register_pernet_subsys(&lbe_paths_ops);
}

void lbe_paths_unregister(void)
{
	unregister_pernet_subsys(&lbe_paths_ops);
}
