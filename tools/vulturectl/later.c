// SPDX-License-Identifier: GPL-2.0
/* vulturectl bg and fg: switches the connections that a program opens later. */
#define _GNU_SOURCE
#include "later.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "own.h"
#include "scope.h"

/* ms until a run has switched its rule and its program after the signal, and the longest wait for
 * it if its connections still go to the background then
 */
#define TOLD_MS		50
#define TOLD_MAX_MS	1000

/* The runs that have started these processes */

void later_status(pid_t pid, const char *name, char *value, size_t room)
{
	char path[64], line[256];
	size_t length = strlen(name);
	FILE *file;

	*value = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, length))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, room, "%s", line + length + strspn(line + length, " \t"));
		break;
	}
	if (file)
		fclose(file);
}

/* Whether a process is a run: it has this program's name and blocks both signals, which therefore
 * cannot end it.
 */
static bool is_run(pid_t pid)
{
	const uint64_t ours = 1ULL << (SIGNAL_FG - 1) | 1ULL << (SIGNAL_BG - 1);
	char own[64], name[64], blocked[64];

	later_status(getpid(), "Name:", own, sizeof(own));
	later_status(pid, "Name:", name, sizeof(name));
	later_status(pid, "SigBlk:", blocked, sizeof(blocked));
	return pid > 0 && *name && !strcmp(own, name) &&
	       (strtoull(blocked, NULL, 16) & ours) == ours;
}

/* The pid in the name of a cgroup that a run has made; 0 if none is in the path. */
static pid_t run_of_cgroup(const char *cgroup)
{
	const char *at = strstr(cgroup, "/" RUN_CGROUP "-");

	return at ? (pid_t)atoi(at + strlen("/" RUN_CGROUP "-")) : 0;
}

/* The run that has started a process, or 0. @cgroup: the process's cgroup */
static pid_t run_of(pid_t pid, const char *cgroup)
{
	pid_t run = run_of_cgroup(cgroup);

	if (run && is_run(run))
		return run;
	for (; pid > 1; pid = parent_of(pid))
		if (is_run(pid))
			return pid;
	return 0;
}

/* Whether @pids stands for the run's whole command: the run itself, or the process that the run has
 * started, is among them.
 */
static bool has_whole(const struct pids *pids, pid_t run)
{
	size_t i;

	if (pids_has(pids, run))
		return true;
	for (i = 0; i < pids->count; i++)
		if (parent_of(pids->pid[i]) == run)
			return true;
	return false;
}

/* Signal the run of a process, each run once. */
static void tell_run(struct later *later, const struct pids *pids, pid_t pid, bool background)
{
	bool whole;
	union sigval which = {};
	char cgroup[1024] = "";
	pid_t run;

	find_cgroup_of(pid, cgroup, sizeof(cgroup));
	run = run_of(pid, cgroup);
	if (!run) {
		if (run_of_cgroup(cgroup))
			later->deaf = run_of_cgroup(cgroup);
		return;
	}
	if (pids_has(&later->runs, run))
		return;
	pids_add(&later->runs, run);
	whole = has_whole(pids, run);
	/* pids->pid[0] is the process that was named */
	which.sival_int = whole ? 0 : (int)pids->pid[0];
	if (sigqueue(run, background ? SIGNAL_BG : SIGNAL_FG, which))
		later->deaf = run;
	else if (whole)
		later->whole = run;
	else if (run_of_cgroup(cgroup) == run)
		later->part = run;
}

/* Find the cgroup of a process, and whether processes other than @pids are in it. */
static void find_scope(struct later *later, const struct pids *pids, pid_t pid)
{
	char root[512], cgroup[1024];
	struct pids all = {};

	find_cgroup_root(root, sizeof(root));
	if (!*root || find_cgroup_of(pid, cgroup, sizeof(cgroup)))
		return;
	snprintf(later->dir, sizeof(later->dir), "%s%s", root, cgroup);
	if (cgroup[1] && !cgroup_pids(later->dir, &all))
		pids_leave_out(&all, pids);
	later->shared = !cgroup[1] || all.count ? EBUSY : 0;
	pids_free(&all);
}

/* Move a process and its descendants, as far as they are in cgroup @from. Return: how many moved */
static size_t move_tree(pid_t pid, const char *from, const char *to)
{
	struct pids tree = {};
	char cgroup[1024];
	size_t i, moved = 0;

	tree_pids(pid, &tree);
	for (i = 0; i < tree.count; i++)
		if (!find_cgroup_of(tree.pid[i], cgroup, sizeof(cgroup)) && !strcmp(cgroup, from))
			moved += !enter_cgroup(to, tree.pid[i]);
	pids_free(&tree);
	return moved;
}

/* Move the processes to a cgroup of their own below the one that they share with others. It is
 * removed when the last of them has ended.
 */
static void separate(struct later *later, pid_t pid)
{
	char dir[CGROUP_CHARS], from[1024];

	if (find_cgroup_of(pid, from, sizeof(from)) || make_cgroup(dir, OWN_CGROUP, pid)) {
		later->shared = errno;
		return;
	}
	if (enter_cgroup(dir, pid)) {
		later->shared = errno;
		remove_cgroup(dir);
		return;
	}
	/* repeat until no child was forked meanwhile */
	while (move_tree(pid, from, dir))
		;
	guard_cgroup(dir);
	later->shared = 0;
	memcpy(later->dir, dir, sizeof(dir));
}

/* Whether the run that was told to go to the foreground has gone there, with its command @pids. A
 * user's run cannot if a cgroup above that of its command is in the background, or if a rule for
 * any cgroup may match.
 */
static bool went_to_front(struct later *later, const struct pids *pids)
{
	pid_t run = later->whole;
	char root[512], cgroup[1024] = "", dir[CGROUP_CHARS];
	int waited;
	size_t i;

	find_cgroup_root(root, sizeof(root));
	for (i = 0; i < pids->count && run_of_cgroup(cgroup) != run; i++)
		find_cgroup_of(pids->pid[i], cgroup, sizeof(cgroup));
	if (run_of_cgroup(cgroup) != run && find_cgroup_of(run, cgroup, sizeof(cgroup)))
		return true;
	if (!*root)
		return true;
	snprintf(dir, sizeof(dir), "%s%s", root, cgroup);
	for (waited = 0; waited < TOLD_MAX_MS; waited += TOLD_MS) {
		if (scope_is(dir, false, NULL))
			return true;
		poll(NULL, 0, TOLD_MS);
	}
	later->held = scope_is_held(dir);
	return false;
}

/* Have the service switch the uploads of a user's process. Return: whether it has done so; its
 * cgroup then is the user's
 */
static bool by_service(struct later *later, const struct pids *pids, bool background,
		       const char *up)
{
	if (background && (!up || !own_background(pids, &later->refusal)))
		return false;
	if (!background && (later->shared || !own_foreground(pids->pid[0])))
		return false;
	find_scope(later, pids, pids->pid[0]);
	later->shared = 0;
	later->served = true;
	return true;
}

void later_settle(struct later *later, const struct pids *pids, const char *unit, bool background,
		  const char *up)
{
	size_t i;

	for (i = 0; i < pids->count; i++)
		tell_run(later, pids, pids->pid[i], background);
	if (later->runs.count)
		poll(NULL, 0, TOLD_MS);
	if (unit)
		snprintf(later->dir, sizeof(later->dir), "%s", unit);
	else if (!later->runs.count && !later->deaf)
		find_scope(later, pids, pids->pid[0]);
	if (geteuid() && !unit && *later->dir && by_service(later, pids, background, up)) {
		later->done = !v || !scope_switch_down(later->dir, background);
		return;
	}
	if (*later->dir)
		later->done = scope_is(later->dir, background, up);
	else
		later->done = later->whole &&
			      (background || went_to_front(later, pids));
	if (later->shared && !later->done)
		separate(later, pids->pid[0]);
	if (*later->dir && !later->shared)
		later->done = !scope_switch(later->dir, background, up);
}

void later_report(const struct later *later, bool background)
{
	char help[700] = "";
	const char *stay = background ? "stay in the foreground, unless it accepts them" :
					"go to the background", *unit = strrchr(later->dir, '/');

	if (later->deaf && is_run(later->deaf))
		say("connections that it opens later do not change: process %d, which has started it, is another user's vulturectl run: run this as that user, or as root",
		    (int)later->deaf);
	else if (later->deaf)
		say("connections that it opens later do not change: the vulturectl run that has started it was killed");
	else if (later->part && !background)
		say("connections that it opens later go to the background again; \"vulturectl fg %d\" takes all that this vulturectl run has started, and what that opens later",
		    (int)later->part);
	else if (later->whole && !later->done && !later->held)
		say("some connections that it opens later go to the background: those that a rule for a port, a prefix or a DSCP matches, which only root's vulturectl run can leave");
	else if (later->whole && !later->done)
		say("connections that it opens later stay in the background: the cgroup that vulturectl run was started in is there, and only root's vulturectl run can leave it");
	if (later->done || !*later->dir)
		return;
	if (geteuid() && background && later->refusal)
		snprintf(help, sizeof(help), "; lbe-background refuses to help: %s",
			 later->refusal);
	else if (geteuid() && background)
		snprintf(help, sizeof(help), ", or do once: sudo systemctl enable --now lbe-background");
	if (!later->shared)
		say("connections that it opens later %s: %s%s", stay, scope_error(), help);
	else if (unit && strchr(unit, '.'))
		say("connections that it opens later %s: other processes are in its cgroup, too, and it cannot get one of its own (%s); \"sudo vulturectl %s %s\" takes them all, and what they open later%s",
		    stay, strerror(later->shared), command_name, unit + 1, help);
	else
		say("connections that it opens later %s: other processes are in its cgroup, too, and it cannot get one of its own: %s%s%s",
		    stay, strerror(later->shared), geteuid() ? "; run this as root" : "", help);
}

void later_free(struct later *later)
{
	pids_free(&later->runs);
}
