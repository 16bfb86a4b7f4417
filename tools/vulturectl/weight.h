/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The weight of a cgroup's uploads: a table of the module tcp_lbe, one in each network namespace.
 *
 * A weight ends with its cgroup. Only root may set one; for a user's run the administrator's
 * service does (lend.h).
 */
#ifndef VULTURECTL_WEIGHT_H
#define VULTURECTL_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * weight_set() - give the uploads of a cgroup a weight
 * @pid: in the network namespace of this process; 0: of the caller
 * @cgroup: number of the cgroup, from set_cgroup()
 * @weight: 1 to STEER_WEIGHT_MAX; an ordinary upload has STEER_WEIGHT
 * @each: for each connection, not for all together
 * Return: 0, or -1: weight_error() says why.
 */
int weight_set(pid_t pid, uint64_t cgroup, uint32_t weight, bool each);

/** weight_clear() - take it away again, if there is one, in the caller's network namespace */
void weight_clear(uint64_t cgroup);

/** weight_error() - a sentence that describes the latest failure of weight_set() */
const char *weight_error(void);

#endif /* VULTURECTL_WEIGHT_H */
