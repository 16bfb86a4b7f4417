/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A cgroup for a user's run, lent by a service that the administrator starts (hold --users).
 *
 *	run, as a user                     the service
 *	  | connect() -----------------------> | which process of which user? (SO_PEERCRED)
 *	  |                                    | makes a cgroup below that process's own, moves
 *	  |                                    | the process there, gives it to the user, attaches
 *	  | <------ "+" and the control's name | the BPF program for uploads
 *	  |         or "-" and why not         |
 *	  | "down", for downloads alone -----> | the program ends
 *	  | "up", after that ----------------> | it is attached again
 *	  | <----------------------------- "+" |
 *	  | close(), by run and its guard ---> | the program ends; the cgroup, once it is empty
 *
 * The caller sends nothing else. What it gets follows from what the kernel says of it, so nobody
 * can name a cgroup of somebody else's. It may put its own processes into the cgroup and below,
 * and no other: the kernel asks for the right to write to the cgroup above, too.
 */
#ifndef VULTURECTL_LEND_H
#define VULTURECTL_LEND_H

#include <stdbool.h>

#define LEND_SOCKET	"/run/lbe/background.sock"

/* what a caller may say */
#define LEND_DOWN	"down"
#define LEND_UP		"up"

/**
 * lend_ask() - a cgroup of our own
 * @up: with the program
 * @said: the control's name, or a sentence on why there is none; NULL if there is no service
 * Return: a connection that holds it, or -1.
 */
int lend_ask(bool up, const char **said);

/**
 * lend_program() - the program of such a cgroup ends, or is there again
 * Return: whether the service has done so
 */
bool lend_program(int fd, bool up);

/** lend_listen() - a socket for everybody. Return: its descriptor, or -1 with errno. */
int lend_listen(void);

/**
 * lend_until() - lend until a signal comes
 * @signals: of signalfd()
 * @listener: of lend_listen(), or -1 to lend nothing
 * @control: what the cgroups' uploads use
 */
void lend_until(int signals, int listener, const char *control);

#endif /* VULTURECTL_LEND_H */
