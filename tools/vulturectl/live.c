// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl bg and fg: the connections of a running program, both ways, at once.
 *
 * They look at the sockets that the program has now, through descriptors of
 * our own (sockets.h); this needs the right to trace it and nothing else. A
 * listening socket hands its congestion control on to what it accepts; other
 * connections that the program opens later are not covered.
 */
#define _GNU_SOURCE
#include "ctl.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "print.h"
#include "sockets.h"
#include "upload.h"

/**
 * struct live - what bg and fg do to each socket, and what came of it
 * @up: congestion control for bg; NULL leaves what is sent alone
 * @background: bg, else fg
 * @down: bg: downloads too, with @options
 * @sockets: TCP sockets seen
 * @up_done, @down_done: sockets whose direction was changed
 * @reason: why a direction of some socket was not changed; "" if all were
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

/* The cgroup of a systemd unit: its directory, or "" with a sentence said. */
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

static void find_processes(const char *target, struct pids *pids)
{
	char dir[1600];

	if (target[strspn(target, "0123456789")] == '\0') {
		if (tree_pids((pid_t)read_number(target, "pid", 1, INT32_MAX), pids))
			refused("there is no process %s", target);
		return;
	}
	unit_cgroup(target, dir, sizeof(dir));
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

static void report(const struct live *live, const char *target)
{
	if (json) {
		fputs("{\"target\":", stdout);
		json_string(target);
		printf(",\"sockets\":%u,\"up\":%u,\"down\":%u}\n", live->sockets, live->up_done,
		       live->down_done);
	} else {
		printf("%s: %u TCP sockets, %u sending and %u receiving in the %s now\n", target,
		       live->sockets, live->up_done, live->down_done,
		       live->background ? "background" : "foreground");
	}
	if (*live->reason)
		say("some sockets were not changed: %s", live->reason);
}

static int change(int argc, char **argv, bool background)
{
	struct live live = { .background = background, .down = true };
	struct pids pids = {};
	unsigned int denied = 0;
	size_t i;

	if (argc != 2)
		wrong("%s takes a process number or the name of a unit", command_name);
	find_processes(argv[1], &pids);
	if (background) {
		live.up = upload_control();
		if (!live.up && !v)
			refused("neither vulture nor any of the congestion controls %s is loaded (modprobe -a vulture tcp_lbe)",
				upload_controls());
	}
	for (i = 0; i < pids.count; i++)
		if (pid_sockets(pids.pid[i], NULL, one_socket, &live) < 0 && errno == EPERM)
			denied++;
	pids_free(&pids);
	if (denied && !live.sockets)
		refused("you may not inspect the sockets of %s: run this as its user, or as root",
			argv[1]);
	report(&live, argv[1]);
	return live.sockets ? 0 : 1;
}

int do_bg(int argc, char **argv)
{
	return change(argc, argv, true);
}

int do_fg(int argc, char **argv)
{
	return change(argc, argv, false);
}
