/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The weights of a network namespace: which cgroups' flows have another weight than ordinary ones.
 *
 * A flow has the weight of its socket's cgroup, or of the nearest one above that has a weight. A
 * socket belongs to the cgroup in which its process was when it opened the socket. A weight is for
 * all flows of a cgroup (and of those below it that have none of their own) together, to whatever
 * destination, or for each of them. Those that have a weight together divide it: each has the same
 * part, and only those count that have data to send.
 */
#ifndef LBE_WEIGHTS_H
#define LBE_WEIGHTS_H

#include <net/sock.h>

u8 lbe_weights_group(const struct sock *sk);
u32 lbe_weights_each(const struct sock *sk, u8 group);
void lbe_weights_count(const struct sock *sk, u8 group, bool on);
int lbe_weights_register(void);
void lbe_weights_unregister(void);

#endif /* LBE_WEIGHTS_H */
