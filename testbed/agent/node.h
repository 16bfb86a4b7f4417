/* SPDX-License-Identifier: GPL-2.0 */
/* A node's settings and counters, as by sysctl(8) and cat(1), in one process. */
#ifndef LBE_AGENT_NODE_H
#define LBE_AGENT_NODE_H

#include "types.h"

/* Moves this process to a namespace of `ip netns`: 0, or 1 with a message. */
int node_enter(const char *name);

/* Sets the sysctls of a file with lines NAME=VALUE: 0, or 1 with a message. */
int node_set_sysctls(const char *file);

/*
 * Writes OUT.sysctl, "NAME = VALUE" for each name in the file, and
 * OUT.counters, which is /proc/net/snmp and /proc/net/netstat: 0, or 1 with a
 * message.
 */
int node_read_back(const char *file, const char *out);

#endif
