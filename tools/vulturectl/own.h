/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The service that the administrator starts (hold --users) gives a user's running program a cgroup
 * of its own, for the user's bg and fg.
 *
 *	bg, as a user                   the service
 *	  | "bg PID" ---------------------> | makes a cgroup below the process's own, moves the
 *	  |                                 | process there, gives the cgroup to the user, attaches
 *	  | <--------- "+", or "-" and why  | the BPF program for uploads
 *	  | "in PID OF", for a child -----> | moves a process to the cgroup of OF from the one above
 *	fg, as a user
 *	  | "fg PID" ---------------------> | detaches the program
 *
 * The program is attached to the cgroup without a link, so that it outlives the service. When the
 * last process has ended, the service removes the cgroup.
 *
 * The service takes the user from the kernel (SO_PEERCRED). It moves only processes of which all
 * four user numbers are that user's, which the user may kill anyway, and only to a cgroup directly
 * below the one that they are in, so that all limits of that one still hold.
 */
#ifndef VULTURECTL_OWN_H
#define VULTURECTL_OWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "sockets.h"

/**
 * own_background() - have the service put a program's later uploads in the background
 * @pids: the process that was named, and its descendants
 * @why: a sentence on why it was not done; NULL if no service runs
 * Return: whether it was done; the process then is in another cgroup, which is the caller's.
 */
bool own_background(const struct pids *pids, const char **why);

/** own_foreground() - have the service undo it for a process. Return: whether it was done */
bool own_foreground(pid_t pid);

/**
 * own_listen() - let every user ask
 * Return: a descriptor that is readable when own_serve() has something to do; -1 with errno.
 */
int own_listen(void);

/** own_serve() - do what there is to do. @control: congestion control for uploads */
void own_serve(const char *control);

/** own_waits() - whether own_serve() is to be called again after REMOVE_MS */
bool own_waits(void);

/** own_end() - answer no more. The cgroups and their programs stay. */
void own_end(void);

#endif /* VULTURECTL_OWN_H */
