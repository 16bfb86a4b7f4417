/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a sender's module in each network namespace, in /proc/net/lbe_NAME,
 * a line for each:
 *
 *	flows		sockets that use a control of the module
 *	yielding	those of them that give way to other traffic now
 *	yields		how often a flow began to give way
 *	yielded_bytes	bytes acknowledged while flows gave way
 *
 * One file of the module includes this header. Before that it defines LBE_COUNTERS_FILE,
 * the name of the file in /proc/net; lbe_register() registers the counters with the module's
 * controls. A module that has more lines also defines LBE_COUNTERS_MORE(seq, net), which
 * prints them. A module that keeps more state in a namespace defines LBE_COUNTERS_OWN, the
 * type of that state.
 */
#ifndef LBE_COUNTERS_H
#define LBE_COUNTERS_H

#ifndef LBE_COUNTERS_FILE
#error "LBE_COUNTERS_FILE is the file's name in /proc/net"
#endif

#include <linux/atomic.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <net/tcp.h>

/* All flows of a namespace may write these at the same time, hence atomic. */
struct lbe_counters {
	atomic_t flows;
	atomic_t yielding;
	atomic64_t yields;
	atomic64_t yielded_bytes;
#ifdef LBE_COUNTERS_OWN
	LBE_COUNTERS_OWN own;	/* zero at first */
#endif
};

/* Count an ACK of a flow that has joined. @yielding: it gave way before this ACK; @yields: it gives
 * way now.
 */
static inline void __lbe_counters_ack(struct lbe_counters *c, bool yielding,
				      bool yields, u32 bytes)
{
	if (yielding != yields)
		atomic_add(yields ? 1 : -1, &c->yielding);
	if (yields && !yielding)
		atomic64_inc(&c->yields);
	if (yields && bytes)
		atomic64_add(bytes, &c->yielded_bytes);
}

static inline void __lbe_counters_show(struct seq_file *seq,
				       const struct lbe_counters *c)
{
	seq_printf(seq, "flows %d\nyielding %d\nyields %lld\nyielded_bytes %lld\n",
		   atomic_read(&c->flows), atomic_read(&c->yielding),
		   (long long)atomic64_read(&c->yields),
		   (long long)atomic64_read(&c->yielded_bytes));
}

static unsigned int lbe_counters_id __read_mostly;

static inline struct lbe_counters *lbe_counters_of(const struct sock *sk)
{
	return net_generic(sock_net(sk), lbe_counters_id);
}

static inline void lbe_counters_join(const struct sock *sk)
{
	atomic_inc(&lbe_counters_of(sk)->flows);
}

static inline void lbe_counters_ack(const struct sock *sk, bool yielding,
				    bool yields, u32 bytes)
{
	if (yielding || yields)
		__lbe_counters_ack(lbe_counters_of(sk), yielding,
				   yields, bytes);
}

static inline void lbe_counters_leave(const struct sock *sk, bool yielding)
{
	lbe_counters_ack(sk, yielding, false, 0);
	atomic_dec(&lbe_counters_of(sk)->flows);
}

static int lbe_counters_show(struct seq_file *seq, void *unused)
{
	struct net *net = seq_file_single_net(seq);

	__lbe_counters_show(seq, net_generic(net, lbe_counters_id));
#ifdef LBE_COUNTERS_MORE
	LBE_COUNTERS_MORE(seq, net);
#endif
	return 0;
}

static int __net_init lbe_counters_net_init(struct net *net)
{
	if (!proc_create_net_single(LBE_COUNTERS_FILE, 0444, net->proc_net,
				    lbe_counters_show, NULL) &&
	    IS_ENABLED(CONFIG_PROC_FS))
		return -ENOMEM;
	return 0;
}

static void __net_exit lbe_counters_net_exit(struct net *net)
{
	remove_proc_entry(LBE_COUNTERS_FILE, net->proc_net);
}

static struct pernet_operations lbe_counters_ops = {
	.init	= lbe_counters_net_init,
	.exit	= lbe_counters_net_exit,
	.id	= &lbe_counters_id,
	.size	= sizeof(struct lbe_counters),
};

/* Unregister the first @nr controls, and the counters: for a module's exit. */
static void __maybe_unused lbe_unregister(struct tcp_congestion_ops *const *ops,
					  unsigned int nr)
{
	while (nr--)
		tcp_unregister_congestion_control(ops[nr]);
	unregister_pernet_subsys(&lbe_counters_ops);
}

/* Register the counters and all controls, or nothing: for a module's init. */
static int __maybe_unused lbe_register(struct tcp_congestion_ops *const *ops,
				       unsigned int nr)
{
	int err = register_pernet_subsys(&lbe_counters_ops);
	unsigned int i;

	for (i = 0; i < nr && !err; i++) {
		err = tcp_register_congestion_control(ops[i]);
		if (!err)
			continue;
		if (err == -EEXIST)
			pr_err("the name %s is taken: unload the module that has it first (rmmod tcp_%s; to keep it out, a line 'blacklist tcp_%s' in /etc/modprobe.d/)\n",
			       ops[i]->name, ops[i]->name, ops[i]->name);
		lbe_unregister(ops, i);
	}
	return err;
}

#endif /* LBE_COUNTERS_H */
