// SPDX-License-Identifier: GPL-2.0
/*
 * Paths: the state that flows share if they have the same controller, the same network
 * of peers and the same device. The controller defines the state; this file looks paths
 * up, makes them and frees them.
 *
 * The first flow makes a path. VULTURE_PATH_LINGER after the last flow has ended, a
 * work item frees it.
 */
#include <linux/hash.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/dst.h>

#include "vulture.h"

/* Time for which a path outlives its last flow. A browser's next request comes within
 * seconds, while the route or the other traffic may change within minutes. With twice as
 * long, capacities may be stale; with half, a path is learnt again for each page.
 */
#define VULTURE_PATH_LINGER	(60 * HZ)
/* With more paths than this (about 8 MiB) a path is freed with its last flow. */
#define VULTURE_PATHS_IDLE	4096
/* Length in bits of the prefix that peers behind one access link, or in one data centre, are
 * assumed to have in common.
 */
#define VULTURE_PATH_BITS_4	24
#define VULTURE_PATH_BITS_6	64

static struct hlist_head *vulture_path_bucket(struct vulture_net *vn, const __be32 *network,
					      u32 salt)
{
	u32 hash = jhash_3words((__force u32)network[0], (__force u32)network[1], salt, 0);

	return &vn->paths[hash % VULTURE_PATH_BUCKETS];
}

static void vulture_path_network(const struct vulture_key *key, __be32 *network)
{
	memset(network, 0, 4 * sizeof(*network));
	network[0] = key->remote[0];
	if (key->family == AF_INET)
		network[0] &= htonl(~0U << (32 - VULTURE_PATH_BITS_4));
	else
		memcpy(network, key->remote, VULTURE_PATH_BITS_6 / 8);
}

/* Caller: holds paths_lock. */
static struct vulture_path *vulture_path_find(struct hlist_head *bucket,
					      const struct vulture_path *like)
{
	struct vulture_path *path;

	hlist_for_each_entry(path, bucket, node)
		if (path->family == like->family && path->controller == like->controller &&
		    path->ifindex == like->ifindex &&
		    !memcmp(path->network, like->network, sizeof(path->network)))
			return path;
	return NULL;
}

/* Return: the device that a socket sends through; 0 = not known. Caller: holds its lock. */
static int vulture_path_ifindex(const struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get((struct sock *)sk);

	return dst && dst->dev ? dst->dev->ifindex : 0;
}

/**
 * vulture_path_get() - find or make the path of a flow that starts
 * @vn: namespace
 * @sk: the flow's socket; the caller holds its lock
 * @key: the flow's addresses
 * @controller: enum vulture_controller, of one with path_bytes
 * @gfp: for a new path
 *
 * Return: the path, which counts one flow more; or NULL without memory.
 */
struct vulture_path *vulture_path_get(struct vulture_net *vn, const struct sock *sk,
				      const struct vulture_key *key, u32 controller, gfp_t gfp)
{
	const struct rwnd_controller *c = rwnd_controllers[controller];
	struct vulture_path *path, *made;
	struct hlist_head *bucket;

	made = kzalloc(struct_size(made, state, DIV_ROUND_UP(c->path_bytes, sizeof(u64))), gfp);
	if (!made)
		return NULL;
	made->family = key->family;
	made->controller = controller;
	made->ifindex = vulture_path_ifindex(sk);
	vulture_path_network(key, made->network);
	spin_lock_init(&made->lock);
	if (c->path_init)
		c->path_init(made->state, vulture_now_us());
	bucket = vulture_path_bucket(vn, made->network, made->ifindex ^ controller << 24);

	spin_lock_bh(&vn->paths_lock);
	path = vulture_path_find(bucket, made);
	if (!path) {
		path = made;
		made = NULL;
		hlist_add_head(&path->node, bucket);
		vn->n_paths++;
	}
	path->flows++;
	spin_unlock_bh(&vn->paths_lock);
	kfree(made);
	return path;
}

/* One of the path's flows has ended. Caller: no longer uses the path's state. */
void vulture_path_put(struct vulture_net *vn, struct vulture_path *path)
{
	bool idle, crowded;

	spin_lock_bh(&vn->paths_lock);
	idle = !--path->flows;
	path->idle_since = jiffies;
	crowded = idle && vn->n_paths > VULTURE_PATHS_IDLE;
	if (crowded) {
		hlist_del(&path->node);
		vn->n_paths--;
	}
	spin_unlock_bh(&vn->paths_lock);
	if (crowded)
		kfree(path);
	else if (idle && !READ_ONCE(vn->closing))
		queue_delayed_work(VULTURE_WQ, &vn->paths_work, VULTURE_PATH_LINGER);
}

/* Free the paths that have been idle for @linger. Return: some paths are left. */
static bool vulture_paths_age(struct vulture_net *vn, unsigned long linger)
{
	struct vulture_path *path;
	struct hlist_node *next;
	unsigned int i;
	bool left;

	spin_lock_bh(&vn->paths_lock);
	for (i = 0; i < VULTURE_PATH_BUCKETS; i++) {
		hlist_for_each_entry_safe(path, next, &vn->paths[i], node) {
			if (path->flows ||
			    (linger && time_before(jiffies, path->idle_since + linger)))
				continue;
			hlist_del(&path->node);
			vn->n_paths--;
			kfree(path);
		}
	}
	left = vn->n_paths;
	spin_unlock_bh(&vn->paths_lock);
	return left;
}

static void vulture_paths_work(struct work_struct *work)
{
	struct vulture_net *vn = container_of(to_delayed_work(work), struct vulture_net,
					      paths_work);

	if (vulture_paths_age(vn, VULTURE_PATH_LINGER) && !READ_ONCE(vn->closing))
		queue_delayed_work(VULTURE_WQ, &vn->paths_work, VULTURE_PATH_LINGER);
}

void vulture_paths_init(struct vulture_net *vn)
{
	unsigned int i;

	spin_lock_init(&vn->paths_lock);
	for (i = 0; i < VULTURE_PATH_BUCKETS; i++)
		INIT_HLIST_HEAD(&vn->paths[i]);
	INIT_DELAYED_WORK(&vn->paths_work, vulture_paths_work);
}

/* Free all paths; no flow is left. */
void vulture_paths_exit(struct vulture_net *vn)
{
	cancel_delayed_work_sync(&vn->paths_work);
	WARN_ON(vulture_paths_age(vn, 0));
}
