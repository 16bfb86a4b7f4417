// SPDX-License-Identifier: GPL-2.0
/*
 * The weights of a network namespace, by cgroup. /proc/net/lbe_weights shows them, and takes
 *
 *	set CGROUP WEIGHT [each]
 *	del CGROUP
 *
 * one request in each write, by a process that has opened the file with CAP_NET_ADMIN in the
 * namespace's user namespace. CGROUP is the number of the cgroup: the inode of its directory.
 *
 * A weight ends with its cgroup's directory. Every change is told to all flows before the write
 * returns, so that no flow refers to a weight that is gone, and its place is free.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "paths.h"
#include "weights.h"

#define LBE_WEIGHTS_FILE	"lbe_weights"
/* Cgroups with a weight in a namespace: a flow refers to one by 8 bits, and 0 is none. If doubled,
 * the state of a flow does not fit into its socket.
 */
#define LBE_WEIGHTS_MOST	U8_MAX
/* How often cgroups are checked for having ended. If doubled, their weights, and the memory of
 * the cgroups, stay for twice as long.
 */
#define LBE_WEIGHTS_LOOK	(5 * HZ)

/**
 * struct lbe_weight - the weight of one cgroup
 * @id: number of the cgroup, which is never another one's; 0: this place is free. Written under the
 *	namespace's @mutex and @lock
 * @cgroup: the cgroup, with a reference; guarded by @mutex. Flows read it under @lock, and only
 *	while @id is not 0
 * @given: the weight as users give it; written under @mutex, read at any time
 * @each: it is for each flow, not for all together; likewise
 * @active: flows of the cgroup that have the turn or wait for it; each is counted under the lock of
 *	its path, and there may be several paths, hence atomic
 */
struct lbe_weight {
	u64 id;
	struct cgroup *cgroup;
	u32 given;
	bool each;
	atomic_t active;
};

/**
 * struct lbe_weights - the weights of a network namespace
 * @mutex: held while weights change, until all flows have been told. Not taken by flows
 * @lock: guards lbe_weight.id and @known; taken by flows under the lock of their path
 * @known: number of weights; also read without @lock, by flows that have joined their path before.
 *	All flows of all paths look again when it changes
 * @place: LBE_WEIGHTS_MOST of them; NULL before the first one is set. It stays until the
 *	namespace ends
 * @look: looks for cgroups that have ended while there is any weight
 * @net: the namespace
 */
struct lbe_weights {
	struct mutex mutex;
	spinlock_t lock;
	unsigned int known;
	struct lbe_weight *place;
	struct delayed_work look;
	struct net *net;
};

static unsigned int lbe_weights_id __read_mostly;

/* Visit all places, also free ones; none before the first weight is set */
#define lbe_weights_for_each(w, weights)					\
	for ((w) = (weights)->place;						\
	     (w) && (w) < (weights)->place + LBE_WEIGHTS_MOST; (w)++)

static struct lbe_weights *lbe_weights_of(const struct sock *sk)
{
	return net_generic(sock_net(sk), lbe_weights_id);
}

/* The place of a cgroup, or NULL. Caller: holds the mutex or the lock. */
static struct lbe_weight *lbe_weights_find(const struct lbe_weights *weights, u64 id)
{
	struct lbe_weight *w;

	lbe_weights_for_each(w, weights)
		if (w->id == id)
			return w;
	return NULL;
}

/* For flows */

/**
 * lbe_weights_group - which weight does a socket's flow have?
 * @sk: any socket that has not been freed; the caller holds the lock of the flow's path
 *
 * Return: for the functions below; 0: that of an ordinary flow. It is valid until the caller of
 * this, or of lbe_flows_regroup(), releases the lock of the path.
 */
u8 lbe_weights_group(const struct sock *sk)
{
	u8 group = 0;
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct lbe_weights *weights = lbe_weights_of(sk);
	struct cgroup *cgroup, *nearest = NULL;
	struct lbe_weight *w;

	if (!READ_ONCE(weights->known))
		return 0;
	cgroup = sock_cgroup_ptr((struct sock_cgroup_data *)&sk->sk_cgrp_data);
	spin_lock_bh(&weights->lock);
	/* Once over the table, however deep the cgroup lies: users choose the depth. */
	lbe_weights_for_each(w, weights)
		if (w->id && cgroup_is_descendant(cgroup, w->cgroup) &&
		    (!nearest || w->cgroup->level > nearest->level)) {
			nearest = w->cgroup;
			group = w - weights->place + 1;
		}
	spin_unlock_bh(&weights->lock);
#endif
	return group;
}

/* The weight that each flow of a group has now, as struct lbe_view has it */
u32 lbe_weights_each(const struct sock *sk, u8 group)
{
	const struct lbe_weight *w;

	if (!group)
		return LBE_WEIGHT;
	w = &lbe_weights_of(sk)->place[group - 1];
	return lbe_weight_each(READ_ONCE(w->given),
			       READ_ONCE(w->each) ? 1 : atomic_read(&w->active));
}

/* A flow of the group has data, or has none any more. */
void lbe_weights_count(const struct sock *sk, u8 group, bool on)
{
	if (group)
		atomic_add(on ? 1 : -1, &lbe_weights_of(sk)->place[group - 1].active);
}

/* Changes. The caller of all of these holds the mutex. */

static void lbe_cgroup_put(struct cgroup *cgroup)
{
#ifdef CONFIG_CGROUPS
	cgroup_put(cgroup);
#endif
}

static int lbe_weights_make_room(struct lbe_weights *weights)
{
	if (!weights->place)
		weights->place = kvcalloc(LBE_WEIGHTS_MOST, sizeof(*weights->place),
					  GFP_KERNEL_ACCOUNT);
	return weights->place ? 0 : -ENOMEM;
}

/* Tell all flows what has changed. Then none refers to a place that has become free. */
static void lbe_weights_tell(struct lbe_weights *weights)
{
	struct lbe_weight *w;

	lbe_paths_each(weights->net, lbe_flows_regroup);
	lbe_weights_for_each(w, weights)
		if (!w->id && w->cgroup) {
			lbe_cgroup_put(w->cgroup);
			w->cgroup = NULL;
		}
}

/* The cgroup has no weight any more. The place is not used again before lbe_weights_tell(). */
static void lbe_weights_forget(struct lbe_weights *weights, struct lbe_weight *w)
{
	spin_lock_bh(&weights->lock);
	w->id = 0;
	WRITE_ONCE(weights->known, weights->known - 1);
	spin_unlock_bh(&weights->lock);
}

static bool lbe_weight_is_dead(const struct lbe_weight *w)
{
#ifdef CONFIG_CGROUPS
	return !(w->cgroup->self.flags & CSS_ONLINE);
#else
	return false;
#endif
}

/* Forget the weights of cgroups whose directories are gone. */
static void lbe_weights_prune(struct lbe_weights *weights)
{
	unsigned int known = weights->known;
	struct lbe_weight *w;

	lbe_weights_for_each(w, weights)
		if (w->id && lbe_weight_is_dead(w))
			lbe_weights_forget(weights, w);
	if (known != weights->known)
		lbe_weights_tell(weights);
}

static void lbe_weights_look(struct work_struct *work)
{
	struct lbe_weights *weights = container_of(to_delayed_work(work), struct lbe_weights,
						   look);

	mutex_lock(&weights->mutex);
	lbe_weights_prune(weights);
	if (weights->known)
		queue_delayed_work(system_power_efficient_wq, &weights->look, LBE_WEIGHTS_LOOK);
	mutex_unlock(&weights->mutex);
}

/* Give a cgroup that has no weight a place, and the reference to the cgroup with it. */
static int lbe_weights_add(struct lbe_weights *weights, struct cgroup *cgroup, u64 id, u32 given,
			   bool each)
{
	int err = lbe_weights_make_room(weights);
	struct lbe_weight *w;

	if (err)
		return err;
	w = lbe_weights_find(weights, 0);
	if (!w) {
		pr_err_ratelimited("%s: set refused: %u cgroups have a weight already, the limit\n",
				   LBE_WEIGHTS_FILE, LBE_WEIGHTS_MOST);
		return -ENOSPC;
	}
	w->cgroup = cgroup;
	WRITE_ONCE(w->given, given);
	WRITE_ONCE(w->each, each);
	/* No flow refers to a place that is free. */
	atomic_set(&w->active, 0);
	spin_lock_bh(&weights->lock);
	w->id = id;
	WRITE_ONCE(weights->known, weights->known + 1);
	spin_unlock_bh(&weights->lock);
	queue_delayed_work(system_power_efficient_wq, &weights->look, LBE_WEIGHTS_LOOK);
	return 0;
}

/* The cgroup with this number, with a reference. The caller may name those of its own cgroup
 * namespace.
 */
static struct cgroup *lbe_cgroup(u64 id)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct cgroup *cgroup = cgroup_get_from_id(id);

	if (!IS_ERR_OR_NULL(cgroup))
		return cgroup;
	pr_err_ratelimited("%s: no v2 cgroup has the number %llu\n", LBE_WEIGHTS_FILE, id);
	return ERR_PTR(-ENOENT);
#else
	pr_err_ratelimited("%s: this kernel does not tie sockets to cgroups (CONFIG_SOCK_CGROUP_DATA)\n",
			   LBE_WEIGHTS_FILE);
	return ERR_PTR(-EOPNOTSUPP);
#endif
}

static int lbe_weights_set(struct lbe_weights *weights, u64 id, u32 given, bool each)
{
	struct cgroup *cgroup = lbe_cgroup(id);
	struct lbe_weight *w;
	int err;

	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	w = lbe_weights_find(weights, id);
	if (w) {
		bool same = w->given == given && w->each == each;

		lbe_cgroup_put(cgroup);
		if (same)
			return 0;
		WRITE_ONCE(w->given, given);
		WRITE_ONCE(w->each, each);
	} else {
		err = lbe_weights_add(weights, cgroup, id, given, each);
		if (err) {
			lbe_cgroup_put(cgroup);
			return err;
		}
	}
	lbe_weights_tell(weights);
	return 0;
}

static int lbe_weights_del(struct lbe_weights *weights, u64 id)
{
	struct lbe_weight *w = lbe_weights_find(weights, id);

	if (!w) {
		pr_err_ratelimited("%s: cgroup %llu has no weight\n", LBE_WEIGHTS_FILE, id);
		return -ENOENT;
	}
	lbe_weights_forget(weights, w);
	lbe_weights_tell(weights);
	return 0;
}

/* The file */

/**
 * struct lbe_request - a request as it was written
 * @set: true: set; false: del
 * @id: number of the cgroup, not 0
 * @given: for set: the weight
 * @each: for set: it is for each flow
 */
struct lbe_request {
	bool set;
	u64 id;
	u32 given;
	bool each;
};

static int lbe_request_wrong(void)
{
	pr_err_ratelimited("%s: neither set CGROUP WEIGHT [each] nor del CGROUP\n",
			   LBE_WEIGHTS_FILE);
	return -EINVAL;
}

static int lbe_request_read(char *text, struct lbe_request *r)
{
	char *word[5] = {}, *part;
	int n = 0, err;

	while ((part = strsep(&text, " \t\n")))
		if (*part && n < ARRAY_SIZE(word))
			word[n++] = part;
	r->set = n >= 3 && n <= 4 && !strcmp(word[0], "set");
	if (!r->set && (n != 2 || strcmp(word[0], "del")))
		return lbe_request_wrong();
	if (kstrtou64(word[1], 10, &r->id) || !r->id)
		return lbe_request_wrong();
	if (!r->set)
		return 0;
	r->each = n == 4;
	if (r->each && strcmp(word[3], "each"))
		return lbe_request_wrong();
	err = kstrtou32(word[2], 10, &r->given);
	if (!err && r->given && r->given <= LBE_GIVEN_MAX)
		return 0;
	pr_err_ratelimited("%s: weight %.32s refused: a number from 1 to %u is wanted\n",
			   LBE_WEIGHTS_FILE, word[2], LBE_GIVEN_MAX);
	return err ?: -ERANGE;
}

static int lbe_weights_write(struct file *file, char *text, size_t size)
{
	struct net *net = seq_file_single_net(file->private_data);
	struct lbe_weights *weights = net_generic(net, lbe_weights_id);
	struct lbe_request r = {};
	int err;

	/* Who opened the file, not who writes: a program with more rights may be made to write. */
	if (!file_ns_capable(file, net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	err = strlen(text) == size ? lbe_request_read(text, &r) : lbe_request_wrong();
	if (err)
		return err;
	mutex_lock(&weights->mutex);
	lbe_weights_prune(weights);
	err = r.set ? lbe_weights_set(weights, r.id, r.given, r.each) :
	      lbe_weights_del(weights, r.id);
	mutex_unlock(&weights->mutex);
	return err;
}

static int lbe_weights_show(struct seq_file *seq, void *v)
{
	struct lbe_weights *weights = net_generic(seq_file_single_net(seq), lbe_weights_id);
	const struct lbe_weight *w;

	seq_puts(seq, "cgroup weight of active\n");
	mutex_lock(&weights->mutex);
	lbe_weights_for_each(w, weights)
		if (w->id && !lbe_weight_is_dead(w))
			seq_printf(seq, "%llu %u %s %d\n", w->id, w->given,
				   w->each ? "each" : "all", atomic_read(&w->active));
	mutex_unlock(&weights->mutex);
	return 0;
}

static int __net_init lbe_weights_init(struct net *net)
{
	struct lbe_weights *weights = net_generic(net, lbe_weights_id);

	mutex_init(&weights->mutex);
	spin_lock_init(&weights->lock);
	INIT_DELAYED_WORK(&weights->look, lbe_weights_look);
	weights->net = net;
	if (!proc_create_net_single_write(LBE_WEIGHTS_FILE, 0644, net->proc_net, lbe_weights_show,
					  lbe_weights_write, NULL) &&
	    IS_ENABLED(CONFIG_PROC_FS))
		return -ENOMEM;
	return 0;
}

/* No flow is left, as in lbe_paths_exit(), which comes after this. */
static void __net_exit lbe_weights_exit(struct net *net)
{
	struct lbe_weights *weights = net_generic(net, lbe_weights_id);
	struct lbe_weight *w;

	remove_proc_entry(LBE_WEIGHTS_FILE, net->proc_net);
	cancel_delayed_work_sync(&weights->look);
	lbe_weights_for_each(w, weights)
		if (w->cgroup)
			lbe_cgroup_put(w->cgroup);
	kvfree(weights->place);
}

static struct pernet_operations lbe_weights_ops = {
	.init	= lbe_weights_init,
	.exit	= lbe_weights_exit,
	.id	= &lbe_weights_id,
	.size	= sizeof(struct lbe_weights),
};

/* After lbe_paths_register(): a write visits the paths. */
int lbe_weights_register(void)
{
	return register_pernet_subsys(&lbe_weights_ops);
}

void lbe_weights_unregister(void)
{
	unregister_pernet_subsys(&lbe_weights_ops);
}
