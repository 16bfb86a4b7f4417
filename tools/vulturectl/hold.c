// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl hold: keeps a cgroup in the background, uploads and downloads, for as long as it runs.
 * With --users it also lends cgroups to users' runs (lend.h).
 *
 * A service runs it to hold the rule and the BPF program of a slice. The program is detached when
 * the process ends, however it ends; the rule is deleted at SIGTERM and SIGINT. A killed process
 * leaves its rule. That rule ends with its cgroup, or is deleted by the next hold of that cgroup,
 * which finds the rule's number in /run/lbe.
 */
#define _GNU_SOURCE
#include "ctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lend.h"
#include "own.h"
#include "upload.h"

/* Tell the service manager, if there is one, that rule and program are in force (sd_notify(3)). */
static void tell_ready(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (!length || length >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		*address.sun_path = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, "READY=1", 7, 0, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		say("hold: cannot tell the service manager: %s", strerror(errno));
	close(fd);
}

static void record_path(const struct vulture_rule *rule, char *path, size_t room)
{
	snprintf(path, room, LBE_RUN "/held-%" PRIu64, rule->cgroup);
}

struct search {
	uint32_t id;
	uint64_t cgroup;
	bool found;
};

/* If the module has been reloaded, the number may belong to a rule for something else. */
static int search_rule(const struct vulture_rule *rule, void *arg)
{
	struct search *search = arg;

	search->found |= rule->id == search->id && rule->cgroup == search->cgroup;
	return 0;
}

/* Once the new rule is in force, delete the rule that a killed process has left. */
static void replace_rule(const struct vulture_rule *rule)
{
	struct search left = { .cgroup = rule->cgroup };
	char path[64];
	FILE *file;

	record_path(rule, path, sizeof(path));
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%" SCNu32, &left.id) != 1)
			left.id = 0;
		fclose(file);
	}
	if (left.id && vulture_rule_list(v, search_rule, &left) >= 0 && left.found)
		vulture_rule_del(v, left.id);
	mkdir(LBE_RUN, 0755);
	file = fopen(path, "we");
	if (file) {
		fprintf(file, "%u\n", rule->id);
		fclose(file);
	}
}

static bool hold_down(const char *dir, struct vulture_rule *rule)
{
	if (!v) {
		say("hold: downloads stay in the foreground: %s", vulture_error(NULL));
		return false;
	}
	rule->cgroup = read_cgroup(dir);
	if (!vulture_rule_add(v, rule)) {
		replace_rule(rule);
		return true;
	}
	say("hold: downloads stay in the foreground: %s", vulture_error(v));
	return false;
}

/* Return: name of the uploads' congestion control, or NULL */
static const char *hold_up(const char *dir)
{
	const char *control = upload_control();

	if (!control) {
		say("hold: uploads stay in the foreground: none of %s can be used",
		    upload_controls());
		return NULL;
	}
	if (upload_attach(dir, control, NULL) >= 0)
		return control;
	say("hold: uploads stay in the foreground: %s", upload_error());
	return NULL;
}

/* Open the socket for users' runs. Return: a descriptor, or -1 */
static int open_to_users(const char *control)
{
	int fd = control ? lend_bind(LEND_SOCKET) : -1;

	if (fd < 0)
		say("hold: users' uploads are not taken from the first packet: %s",
		    control ? strerror(errno) : "there is no program for them");
	return fd;
}

int do_hold(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "users", no_argument, NULL, 'U' },
		{ "option", required_argument, NULL, 'o' },
		{}
	};
	struct vulture_rule rule = {};
	bool down, users = false;
	int c, signals, listener = -1, own = -1;
	const char *control;
	char path[64];
	sigset_t ends;

	while ((c = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
		if (c == 'U')
			users = true;
		else if (c == 'o')
			read_option(&rule.options, optarg);
		else
			wrong_option();
	}
	if (optind + 1 != argc)
		wrong("hold takes the directory of a v2 cgroup");
	read_cgroup(argv[optind]);
	if (geteuid())
		refused("hold needs root");
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC);
	if (signals < 0)
		refused("hold: %s", strerror(errno));
	down = hold_down(argv[optind], &rule);
	control = hold_up(argv[optind]);
	if (!down && !control)
		return 1;
	if (users) {
		listener = open_to_users(control);
		own = listener < 0 ? -1 : own_listen();
		if (listener >= 0 && own < 0)
			say("hold: users' bg is not served: %s", strerror(errno));
	}
	tell_ready();
	lend_until(signals, listener, own, control);
	if (!down)
		return 0;
	record_path(&rule, path, sizeof(path));
	unlink(path);
	if (vulture_rule_del(v, rule.id) < 0 && errno != ENOENT)
		refused("hold: %s", vulture_error(v));
	return 0;
}
