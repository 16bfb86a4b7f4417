// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the sockets that a request names by a file descriptor, addresses, a process, a
 * cgroup, or the id of a flow.
 */
#include <linux/cgroup.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <net/inet_hashtables.h>
#include <net/netlink.h>
#include <net/tcp.h>

#include "vulture.h"

/* The sockets that a request names: one of the two is not NULL. */
struct vulture_match {
	const struct vulture_key *key;	/* this connection */
	struct cgroup *cgroup;		/* this cgroup and those below */
};

static bool vulture_match_sock(struct net *net, const struct vulture_match *match,
			       const struct sock *sk)
{
	struct vulture_key key;

	if (!sk_fullsock(sk) || !net_eq(sock_net(sk), net) || !vulture_sock_is_tcp(sk))
		return false;
	if (match->cgroup)
		return vulture_sock_in_cgroup(sk, match->cgroup);
	vulture_key_of_sock(sk, &key);
	return !memcmp(&key, match->key, sizeof(key));
}

void vulture_sockets_put(struct sock **socks, unsigned int n)
{
	while (n--)
		sock_put(socks[n]);
	kvfree(socks);
}

/* Collects the matching sockets of one bucket: stores references to at most @room of them in @socks
 * and adds their number to @held. If a socket is freed and reused during the walk, the walk may end
 * in another bucket; the value at its end shows this, and the walk is repeated.
 * Return: number of matching sockets.
 */
static unsigned int vulture_sockets_bucket(struct net *net, const struct vulture_match *match,
					   unsigned int bucket, struct sock **socks,
					   unsigned int room, unsigned int *held)
{
	struct inet_hashinfo *hashinfo = net->ipv4.tcp_death_row.hashinfo;
	unsigned int found, n;
	struct hlist_nulls_node *node;
	struct sock *sk;

	rcu_read_lock();
again:
	found = 0;
	n = 0;
	sk_nulls_for_each_rcu(sk, node, &hashinfo->ehash[bucket].chain) {
		if (!vulture_match_sock(net, match, sk))
			continue;
		found++;
		if (n == room || !refcount_inc_not_zero(&sk->sk_refcnt))
			continue;
		if (vulture_match_sock(net, match, sk))
			socks[n++] = sk;
		else
			sock_gen_put(sk);
	}
	if (get_nulls_value(node) != bucket) {
		while (n)
			sock_gen_put(socks[--n]);
		goto again;
	}
	rcu_read_unlock();
	*held += n;
	return found;
}

/* One pass over the established sockets. Stores references to at most @room matching
 * ones in @socks. Return: number of matching sockets.
 */
static unsigned int vulture_sockets_scan(struct net *net, const struct vulture_match *match,
					 struct sock **socks, unsigned int room,
					 unsigned int *held)
{
	struct inet_hashinfo *hashinfo = net->ipv4.tcp_death_row.hashinfo;
	unsigned int bucket, found = 0;

	*held = 0;
	for (bucket = 0; bucket <= hashinfo->ehash_mask; bucket++) {
		if (hlist_nulls_empty(&hashinfo->ehash[bucket].chain))
			continue;
		found += vulture_sockets_bucket(net, match, bucket, socks + *held, room - *held,
						held);
		cond_resched();
	}
	return found;
}

/**
 * vulture_sockets_find() - find all connections that match
 * @net: namespace
 * @match: what to look for
 * @n: where to put their number
 *
 * Reads all connections of the machine, so it is for requests, not for packets.
 * Return: an array of references for vulture_sockets_put(), or an ERR_PTR().
 */
static struct sock **vulture_sockets_find(struct net *net,
					  const struct vulture_match *match,
					  unsigned int *n)
{
	unsigned int room = 64, found;
	struct sock **socks;

	for (;;) {
		socks = kvmalloc_array(room, sizeof(*socks), GFP_KERNEL_ACCOUNT);
		if (!socks)
			return ERR_PTR(-ENOMEM);
		found = vulture_sockets_scan(net, match, socks, room, n);
		if (found <= room)
			return socks;
		vulture_sockets_put(socks, *n);
		room = found + found / 4;
	}
}

struct vulture_fd_walk {
	struct net *net;
	struct sock **socks;
	unsigned int n, room, found;
};

static int vulture_fd_visit(const void *arg, struct file *file, unsigned int fd)
{
	struct vulture_fd_walk *walk = (struct vulture_fd_walk *)arg;
	struct socket *sock = sock_from_file(file);
	struct sock *sk = sock ? sock->sk : NULL;

	if (!sk || !vulture_sock_is_tcp(sk) || !net_eq(sock_net(sk), walk->net))
		return 0;
	walk->found++;
	if (walk->n < walk->room) {
		sock_hold(sk);
		walk->socks[walk->n++] = sk;
	}
	return 0;
}

static struct sock **vulture_sockets_of_task(struct task_struct *task, struct net *net,
					     unsigned int *n)
{
	struct vulture_fd_walk walk = { .net = net, .room = 64 };

	for (;;) {
		walk.n = 0;
		walk.found = 0;
		walk.socks = kvmalloc_array(walk.room, sizeof(*walk.socks),
					    GFP_KERNEL_ACCOUNT);
		if (!walk.socks)
			return ERR_PTR(-ENOMEM);
		task_lock(task);
		iterate_fd(task->files, 0, vulture_fd_visit, &walk);
		task_unlock(task);
		*n = walk.n;
		if (walk.found <= walk.room)
			return walk.socks;
		vulture_sockets_put(walk.socks, walk.n);
		walk.room = walk.found + walk.found / 4;
	}
}

struct sock **vulture_sockets_of_pid(u32 nr, struct net *net, unsigned int *n,
				     struct netlink_ext_ack *extack)
{
	struct task_struct *task;
	struct sock **socks;
	struct pid *pid;

	pid = find_get_pid(nr);
	task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	put_pid(pid);
	if (!task) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "no process %u", nr);
		return ERR_PTR(-ESRCH);
	}
	socks = vulture_sockets_of_task(task, net, n);
	put_task_struct(task);
	return socks;
}

struct sock **vulture_sockets_of_cgroup(struct cgroup *cgroup, struct net *net,
					unsigned int *n)
{
	struct vulture_match match = { .cgroup = cgroup };

	return vulture_sockets_find(net, &match, n);
}

static struct sock **vulture_sockets_one(struct sock *sk, unsigned int *n)
{
	struct sock **socks = kvmalloc(sizeof(*socks), GFP_KERNEL);

	if (!socks) {
		sock_put(sk);
		return ERR_PTR(-ENOMEM);
	}
	socks[0] = sk;
	*n = 1;
	return socks;
}

struct sock **vulture_sockets_of_fd(u32 fd, unsigned int *n,
				    struct netlink_ext_ack *extack)
{
	struct socket *sock;
	struct sock *sk;
	int err;

	sock = sockfd_lookup(fd, &err);
	if (!sock) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "file descriptor %u is not %s", fd,
				       err == -EBADF ? "open" : "a socket");
		return ERR_PTR(err);
	}
	sk = sock->sk;
	if (!vulture_sock_is_tcp(sk)) {
		NL_SET_ERR_MSG_MOD(extack, "the socket is not a TCP socket");
		sockfd_put(sock);
		return ERR_PTR(-EPROTONOSUPPORT);
	}
	sock_hold(sk);
	sockfd_put(sock);
	return vulture_sockets_one(sk, n);
}

struct sock **vulture_sockets_of_addr(const struct vulture_key *key, struct net *net,
				      unsigned int *n, struct netlink_ext_ack *extack)
{
	struct vulture_match match = { .key = key };
	struct sock **socks;

	socks = vulture_sockets_find(net, &match, n);
	if (!IS_ERR(socks) && !*n) {
		vulture_sockets_put(socks, 0);
		NL_SET_ERR_MSG_MOD(extack, "no such connection in this network namespace");
		return ERR_PTR(-ENOENT);
	}
	return socks;
}
