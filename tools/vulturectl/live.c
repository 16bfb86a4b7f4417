// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl bg and fg: switch the connections of a running program at once, uploads and downloads.
 *
 * They change the sockets that the program has now through duplicates of its descriptors
 * (sockets.h), which needs only the right to trace the program. A connection that is accepted
 * later inherits the congestion control of its listening socket.
 *
 * How connections that the program opens later are switched depends on what put it in the
 * background:
 *
 *	vulturectl run		the run gets a signal, and switches its rule, its BPF program and
 *				its looks at sockets
 *	its cgroup, or nothing	the cgroup is switched (scope.h): the cgroup of a unit, or of a
 *				process if no process but its descendants is in it; else the
 *				process and its descendants get a cgroup of their own below it
 */
#define _GNU_SOURCE
#include "ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "print.h"
#include "scope.h"
#include "sockets.h"
#include "upload.h"

/* ms until a run has switched its rule and its program after the signal, and the longest wait for
 * it if its connections still go to the background then
 */
#define TOLD_MS		50
#define TOLD_MAX_MS	1000

/**
 * struct live - what bg and fg do to each socket, and the results
 * @up: congestion control for bg; NULL leaves uploads as they are
 * @background: true for bg, false for fg
 * @down: bg also switches downloads, with @options
 * @sockets: number of TCP sockets seen
 * @up_done, @down_done: number of sockets of which this direction was changed
 * @reason: why a direction of some socket was not changed; "" if all were changed
 */
struct live {
	const char *up;
	bool background, down;
	const struct vulture_options *options;
	unsigned int sockets, up_done, down_done;
	char reason[320];
};

static void one_socket(const struct tcp_socket *socket, void *arg)
{
	struct live *live = arg;
	int result;

	if (socket->state < 0)
		return;
	live->sockets++;
	if (!live->background) {
		result = upload_foreground(socket->fd);
	} else if (live->up) {
		result = upload_background(socket->fd, live->up);
	} else {
		errno = ENOENT;
		result = -1;
	}
	if (!result)
		live->up_done++;
	else if (live->up || !live->background)
		snprintf(live->reason, sizeof(live->reason), "upload: %s", strerror(errno));
	if (!v || socket->state != TCP_ESTABLISHED || (live->background && !live->down))
		return;
	if (live->background)
		result = vulture_start(v, socket->fd, live->options);
	else
		result = vulture_stop(v, socket->fd);
	if (!result || errno == EALREADY || (!live->background && errno == ENOENT))
		live->down_done += !result;
	else
		snprintf(live->reason, sizeof(live->reason), "download: %s", vulture_error(v));
}

/* The directory of a systemd unit's cgroup. Does not return if there is none. */
static void unit_cgroup(const char *unit, char *dir, size_t room)
{
	char command[512], root[512], path[1024] = "";
	FILE *answer;
	size_t i;

	*dir = '\0';
	for (i = 0; unit[i]; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._:-\\",
			    unit[i]))
			wrong("'%s' is neither a process number nor the name of a unit", unit);
	if (snprintf(command, sizeof(command),
		     "systemctl show -p ControlGroup --value -- '%s' 2>/dev/null", unit) >=
	    (int)sizeof(command))
		wrong("the name of the unit is too long");
	answer = popen(command, "re");
	if (answer && !fgets(path, sizeof(path), answer))
		*path = '\0';
	if (answer)
		pclose(answer);
	path[strcspn(path, "\n")] = '\0';
	find_cgroup_root(root, sizeof(root));
	if (!*path || !*root)
		refused("unit %s has no processes, or systemd does not know it", unit);
	snprintf(dir, room, "%s%s", root, path);
}

/* @dir: directory of the unit's cgroup; "" if @target is a process */
static void find_processes(const char *target, struct pids *pids, char dir[CGROUP_CHARS])
{
	*dir = '\0';
	if (target[strspn(target, "0123456789")] == '\0') {
		if (tree_pids((pid_t)read_number(target, "pid", 1, INT32_MAX), pids))
			refused("there is no process %s", target);
		return;
	}
	unit_cgroup(target, dir, CGROUP_CHARS);
	if (cgroup_pids(dir, pids) || !pids->count)
		refused("unit %s has no processes", target);
}

void live_foreground(const struct pids *pids)
{
	struct live live = {};
	size_t i;

	for (i = 0; i < pids->count; i++)
		pid_sockets(pids->pid[i], NULL, one_socket, &live);
}

void live_background(const struct pids *pids, const char *up,
		     const struct vulture_options *options)
{
	struct live live = { .up = up, .background = true, .down = options, .options = options };
	size_t i;

	for (i = 0; i < pids->count; i++)
		pid_sockets(pids->pid[i], NULL, one_socket, &live);
}

/* The runs that have started these processes */

/* The value of a line of /proc/PID/status; "" if there is none. */
static void status_line(pid_t pid, const char *name, char *value, size_t room)
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

	status_line(getpid(), "Name:", own, sizeof(own));
	status_line(pid, "Name:", name, sizeof(name));
	status_line(pid, "SigBlk:", blocked, sizeof(blocked));
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

/**
 * struct later - result for connections that the processes open later
 * @runs: the runs that have been signalled
 * @whole: a run that switches all that it has started; 0 for none
 * @part: a run that keeps its rule and program, since only a part of its command was named; 0: none
 * @deaf: a run that this user may not signal, or that has been killed; 0 for none
 * @dir: the cgroup of the processes; "" if they are under a run, or in no cgroup
 * @shared: errno if other processes are in @dir and these could not get a cgroup of their own
 * @done: later connections will be as asked for
 */
struct later {
	struct pids runs;
	pid_t whole, part, deaf;
	char dir[CGROUP_CHARS];
	int shared;
	bool done;
};

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

/* Whether a run that was told to go to the foreground has gone there, with its command @pids. A
 * user's run cannot if a cgroup above that of its command is in the background.
 */
static bool went_to_front(pid_t run, const struct pids *pids)
{
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
	return false;
}

/* Switch later connections. This comes before the change of the present sockets, so that a socket
 * which is opened in between is covered by one of the two. @unit: the unit's cgroup, or NULL for a
 * process
 */
static void settle_later(struct later *later, const struct pids *pids, const char *unit,
			 bool background, const char *up)
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
	if (*later->dir)
		later->done = scope_is(later->dir, background, up);
	else
		later->done = later->whole &&
			      (background || went_to_front(later->whole, pids));
	if (later->shared && !later->done)
		separate(later, pids->pid[0]);
	if (*later->dir && !later->shared)
		later->done = !scope_switch(later->dir, background, up);
}

static void report_later(const struct later *later, bool background)
{
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
	else if (later->whole && !later->done)
		say("connections that it opens later stay in the background: the cgroup that vulturectl run was started in is there, and only root's vulturectl run can leave it");
	if (later->done || !*later->dir)
		return;
	if (!later->shared)
		say("connections that it opens later %s: %s", stay, scope_error());
	else if (unit && strchr(unit, '.'))
		say("connections that it opens later %s: other processes are in its cgroup, too, and it cannot get one of its own (%s); \"sudo vulturectl %s %s\" takes them all, and what they open later",
		    stay, strerror(later->shared), command_name, unit + 1);
	else
		say("connections that it opens later %s: other processes are in its cgroup, too, and it cannot get one of its own: %s%s",
		    stay, strerror(later->shared), geteuid() ? "; run this as root" : "");
}

static void report(const struct live *live, const char *target, bool later)
{
	if (json) {
		fputs("{\"target\":", stdout);
		json_string(target);
		printf(",\"sockets\":%u,\"up\":%u,\"down\":%u,\"later\":%s}\n", live->sockets,
		       live->up_done, live->down_done, later ? "true" : "false");
	} else {
		printf("%s: %u TCP sockets, %u sending and %u receiving in the %s now%s\n", target,
		       live->sockets, live->up_done, live->down_done,
		       live->background ? "background" : "foreground",
		       later ? "; later ones too" : "");
	}
	if (*live->reason)
		say("some sockets were not changed: %s", live->reason);
}

/* Say why the kernel does not allow us to inspect the sockets, and what to do. Does not return. */
__attribute__((noreturn))
static void refused_to_look(const char *target, pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	char line[64];
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	status_line(pid, "Uid:", line, sizeof(line));
	if (scope >= 3)
		refused("nobody may inspect the sockets of %s: kernel.yama.ptrace_scope is %d until the next boot",
			target, scope);
	if (scope > 0 && *line && (uid_t)strtoul(line, NULL, 10) == getuid())
		refused("you may not inspect the sockets of %s, though it is yours: kernel.yama.ptrace_scope is %d, which allows %s: run this as root (sudo vulturectl %s %s)",
			target, scope,
			scope == 1 ? "a process to inspect its own descendants only" :
				     "only root to inspect a process",
			command_name, target);
	refused("you may not inspect the sockets of %s: run this as its user, or as root", target);
}

static int change(int argc, char **argv, bool background)
{
	struct live live = { .background = background, .down = true };
	struct later later = {};
	char unit[CGROUP_CHARS];
	pid_t refusing = 0;
	struct pids pids = {};
	size_t i;

	if (argc != 2)
		wrong("%s takes a process number or the name of a unit", command_name);
	find_processes(argv[1], &pids, unit);
	if (background) {
		live.up = upload_control();
		if (!live.up && !v)
			refused("neither vulture nor any of the congestion controls %s is loaded (modprobe -a vulture tcp_lbe)",
				upload_controls());
	}
	settle_later(&later, &pids, *unit ? unit : NULL, background, live.up);
	for (i = 0; i < pids.count; i++)
		if (pid_sockets(pids.pid[i], NULL, one_socket, &live) < 0 && errno == EPERM)
			refusing = pids.pid[i];
	pids_free(&pids);
	/* a run may inspect the processes that it has started, even if we may not */
	if (refusing && !live.sockets && !later.whole)
		refused_to_look(argv[1], refusing);
	if (refusing && !live.sockets)
		say("you may not inspect the sockets of %s, but vulturectl run, process %d, has been told to switch them",
		    argv[1], (int)later.whole);
	if (json || !refusing || live.sockets)
		report(&live, argv[1], later.done);
	report_later(&later, background);
	pids_free(&later.runs);
	return live.sockets || later.done ? 0 : 1;
}

int do_bg(int argc, char **argv)
{
	return change(argc, argv, true);
}

int do_fg(int argc, char **argv)
{
	return change(argc, argv, false);
}
