// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl bg and fg: switch the connections of a running program at once, uploads and downloads.
 *
 * They change the sockets that the program has now through duplicates of its descriptors
 * (sockets.h), which needs only the right to trace the program. A connection that is accepted
 * later inherits the congestion control of its listening socket; later.h switches what the program
 * opens later.
 */
#define _GNU_SOURCE
#include "ctl.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "later.h"
#include "print.h"
#include "sockets.h"
#include "upload.h"

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

/* A sentence on why the kernel does not allow us to inspect the sockets, and what to do. */
static const char *why_not_seen(const char *target, pid_t pid)
{
	static char text[512];
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	char line[64];
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	later_status(pid, "Uid:", line, sizeof(line));
	if (scope >= 3)
		snprintf(text, sizeof(text), "nobody may inspect the sockets of %s: kernel.yama.ptrace_scope is %d until the next boot",
			 target, scope);
	else if (scope > 0 && *line && (uid_t)strtoul(line, NULL, 10) == getuid())
		snprintf(text, sizeof(text), "you may not inspect the sockets of %s, though it is yours: kernel.yama.ptrace_scope is %d, which allows %s: run this as root (sudo vulturectl %s %s)",
			 target, scope,
			 scope == 1 ? "a process to inspect its own descendants only" :
				      "only root to inspect a process",
			 command_name, target);
	else
		snprintf(text, sizeof(text), "you may not inspect the sockets of %s: run this as its user, or as root",
			 target);
	return text;
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
	later_settle(&later, &pids, *unit ? unit : NULL, background, live.up);
	for (i = 0; i < pids.count; i++)
		if (pid_sockets(pids.pid[i], NULL, one_socket, &live) < 0 && errno == EPERM)
			refusing = pids.pid[i];
	pids_free(&pids);
	/* a run may inspect the processes that it has started, even if we may not */
	if (refusing && !live.sockets && !later.whole && !later.served)
		refused("%s", why_not_seen(argv[1], refusing));
	if (refusing && !live.sockets && later.served)
		say("the connections that it has now do not change: %s",
		    why_not_seen(argv[1], refusing));
	else if (refusing && !live.sockets)
		say("you may not inspect the sockets of %s, but vulturectl run, process %d, has been told to switch them",
		    argv[1], (int)later.whole);
	if (json || !refusing || live.sockets || later.served)
		report(&live, argv[1], later.done);
	later_report(&later, background);
	later_free(&later);
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
