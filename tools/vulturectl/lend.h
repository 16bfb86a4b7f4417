/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A service that the administrator starts (hold --users) lends a cgroup to a user's run.
 *
 *	run, as a user                   the service
 *	  | connect() ---------------------> | reads the caller's pid and uid (SO_PEERCRED), makes
 *	  |                                  | a cgroup below that process's own, moves the process
 *	  |                                  | there, gives the cgroup to the user, attaches the
 *	  | <---- "+" and the control's name | BPF program for uploads
 *	  |       or "-" and the reason      |
 *	  | "down", for downloads alone ---> | detaches the program
 *	  | "up", after "down" ------------> | attaches it again
 *	  | <--------------------------- "+" |
 *	  | "weight N [each]" -------------> | gives the cgroup's uploads that weight, in the
 *	  | <---- "+", or "-" and the reason | network namespace of the caller
 *	  | close(), by run and its guard -> | detaches the program; removes the cgroup once empty
 *
 * The caller sends nothing else. A weight has a limit, which any user may reach with as many
 * connections of ordinary weight. The service takes the process and the user from the kernel, so
 * a caller cannot name a cgroup or a process of another user. Nor can a user move a process from
 * a cgroup of another user into the lent one: the kernel requires the right to write to the
 * common ancestor of both cgroups, too.
 */
#ifndef VULTURECTL_LEND_H
#define VULTURECTL_LEND_H

#include <stdbool.h>
#include <stdint.h>

#include "steer.h"

#define LEND_SOCKET	"/run/lbe/background.sock"
/* The limits are those of vulture on users' rules: 8 for each of 16 users. A lent cgroup costs a
 * cgroup and two descriptors of the service.
 */
#define LENT_MAX	128
#define LENT_PER_USER	8

/* the requests that a caller may send */
#define LEND_DOWN	"down"
#define LEND_UP		"up"
#define LEND_WEIGHT	"weight"
#define LEND_WEIGHT_MAX	(STEER_WEIGHT * STEER_PERCENT_MAX / STEER_PERCENT)

/* lend_weight_max() - the limit of a weight: that of ten ordinary connections, or for each
 * connection that of an ordinary one. A user can open as many anyway.
 */
static inline uint32_t lend_weight_max(bool each)
{
	return each ? STEER_WEIGHT : LEND_WEIGHT_MAX;
}

/**
 * lend_ask() - ask the service for a cgroup for this process
 * @up: with the program for uploads
 * @said: the control's name, or a sentence on why there is none; NULL if no service runs
 * Return: a connection that keeps the cgroup while it is open, or -1.
 */
int lend_ask(bool up, const char **said);

/**
 * lend_program() - have the program of a lent cgroup detached, or attached again (@up)
 * Return: whether the service has done so
 */
bool lend_program(int fd, bool up);

/**
 * lend_weight() - have the uploads of a lent cgroup given a weight
 * @weight: 1 to lend_weight_max(@each)
 * @each: for each connection, not for all together
 * @why: a sentence on why it was not done
 * Return: whether the service has done so
 */
bool lend_weight(int fd, uint32_t weight, bool each, const char **why);

#define LEND_CHARS	600	/* room for an answer */

/* lend_connect() - connect to a socket of the service. Return: fd, or -1: @why says why, or is NULL
 * if no service runs
 */
int lend_connect(const char *path, const char **why);

/* lend_bind() - open a socket that every user may connect to. Return: fd, or -1 with errno */
int lend_bind(const char *path);

/**
 * lend_until() - lend cgroups until a signal arrives
 * @signals: descriptor of signalfd()
 * @listener: descriptor of lend_bind(LEND_SOCKET), or -1 to lend nothing
 * @own: descriptor of own_listen(), or -1
 * @control: congestion control for uploads of the cgroups
 */
void lend_until(int signals, int listener, int own, const char *control);

#endif /* VULTURECTL_LEND_H */
