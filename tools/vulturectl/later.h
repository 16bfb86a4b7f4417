/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vulturectl bg and fg switch the connections that a program opens later. How depends on what put
 * it in the background:
 *
 *	vulturectl run		the run gets a signal, and switches its rule, its BPF program and
 *				its looks at sockets
 *	its cgroup, or nothing	the cgroup is switched (scope.h): the cgroup of a unit, or of a
 *				process if no process but its descendants is in it; else the
 *				process and its descendants get a cgroup of their own below it
 *	the same, as a user	the administrator's service makes that cgroup (own.h)
 */
#ifndef VULTURECTL_LATER_H
#define VULTURECTL_LATER_H

#include <stdbool.h>
#include <sys/types.h>

#include "ctl.h"
#include "sockets.h"

/**
 * struct later - result for connections that the processes open later
 * @runs: the runs that have been signalled
 * @whole: a run that switches all that it has started; 0 for none
 * @part: a run that keeps its rule and program, since only a part of its command was named; 0: none
 * @deaf: a run that this user may not signal, or that has been killed; 0 for none
 * @dir: the cgroup of the processes; "" if they are under a run, or in no cgroup
 * @shared: errno if other processes are in @dir and these could not get a cgroup of their own
 * @held: the cgroup of the run, or one above, keeps later connections in the background
 * @refusal: why the service did not help; NULL if none runs
 * @served: the service has switched uploads
 * @done: later connections will be as asked for
 */
struct later {
	struct pids runs;
	pid_t whole, part, deaf;
	char dir[CGROUP_CHARS];
	int shared;
	const char *refusal;
	bool held, served, done;
};

/**
 * later_settle() - switch connections that the processes open later
 * @later: set to zero; gets the result, for later_report()
 * @pids: the process that was named, and its descendants; or those of a unit
 * @unit: the unit's cgroup, or NULL for a process
 * @up: congestion control for uploads; NULL with @background leaves them as they are
 *
 * This comes before the change of the present sockets, so that a socket which is opened in between
 * is covered by one of the two.
 */
void later_settle(struct later *later, const struct pids *pids, const char *unit, bool background,
		  const char *up);

/** later_report() - say why later connections are not switched, if they are not */
void later_report(const struct later *later, bool background);

void later_free(struct later *later);

/** later_status() - the value of a line of /proc/PID/status; "" if there is none */
void later_status(pid_t pid, const char *name, char *value, size_t room);

#endif /* VULTURECTL_LATER_H */
