// SPDX-License-Identifier: GPL-2.0
/* vulturectl top and metrics: background connections by program, uploads and downloads. */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "activity.h"
#include "ctl.h"
#include "print.h"

/* ms before the first table: rates and holders are computed from two looks */
#define RATE_MS	500

/* A program's name, or its user if the name is not known, safe for a terminal. */
static const char *program_text(const struct activity *one, char *to, size_t room)
{
	const struct passwd *user;

	if (one->pid) {
		text_string(one->name, to, room);
		return to;
	}
	user = getpwuid(one->uid);
	if (user)
		snprintf(to, room, "(of %s)", user->pw_name);
	else
		snprintf(to, room, "(of user %u)", one->uid);
	return to;
}

static void table(const struct look *look, const struct program *programs, size_t count)
{
	double bps[2] = {};
	char name[40];
	size_t i;

	for (i = 0; i < count; i++)
		bps[programs[i].first->up] += programs[i].rate_bps;
	screen_line("%zu background connection%s: %.2f Mbit/s down, %.2f Mbit/s up", look->count,
		    look->count == 1 ? "" : "s", bps[0] / 1e6, bps[1] / 1e6);
	if (!v)
		screen_line("downloads cannot be shown: %s", vulture_error(NULL));
	screen_line("%-16s %7s %-4s %5s %9s %9s %-11s %13s", "PROGRAM", "PID", "WAY", "CONNS",
		    "Mbit/s", "QUEUE-ms", "HELD BY", "IN-PAUSES-MB");
	for (i = 0; i < count; i++) {
		const struct program *p = &programs[i];
		char pid[16] = "-";

		if (p->first->pid)
			snprintf(pid, sizeof(pid), "%d", p->first->pid);
		screen_line("%-16.16s %7s %-4s %5u %9.2f %9.1f %-11s %13.3f",
			    program_text(p->first, name, sizeof(name)), pid,
			    p->first->up ? "up" : "down", p->connections, p->rate_bps / 1e6,
			    p->queue_us / 1e3, holder_name(p->holder), p->pause_bytes / 1e6);
	}
}

static void json_program_of(const struct activity *one)
{
	fputs("\"program\":", stdout);
	if (!one->pid) {
		printf("null,\"uid\":%u", one->uid);
		return;
	}
	fputs("{\"name\":", stdout);
	json_string(one->name);
	printf(",\"pid\":%d},\"uid\":%u", one->pid, one->uid);
}

static void json_up(const struct activity *one)
{
	char local[ADDRESS_CHARS], remote[ADDRESS_CHARS];

	printf("\"direction\":\"up\",\"local\":\"%s\",\"remote\":\"%s\"",
	       endpoint(&one->address.local.sa, local), endpoint(&one->address.remote.sa, remote));
	printf(",\"controller\":\"%s\",\"bytes\":%" PRIu64, one->law, one->bytes);
	printf(",\"rtt_us\":%u,\"queue_us\":%u", one->rtt_us, one->queue_us);
}

static void json_connection(const struct activity *one)
{
	putchar('{');
	if (one->flow)
		json_flow(one->flow);
	else
		json_up(one);
	putchar(',');
	json_program_of(one);
	printf(",\"rate_bps\":%.0f,\"held_by\":\"%s\",\"pause_bytes\":%" PRIu64 "}", one->rate_bps,
	       holder_name(one->holder), one->pause_bytes);
}

static void json_table(const struct look *look, const struct program *programs, size_t count)
{
	size_t i;

	json_begin();
	printf(",\"time_s\":%lld,\"programs\":[", (long long)time(NULL));
	for (i = 0; i < count; i++) {
		const struct program *p = &programs[i];

		fputs(i ? ",{" : "{", stdout);
		json_program_of(p->first);
		printf(",\"direction\":\"%s\",\"connections\":%u", p->first->up ? "up" : "down",
		       p->connections);
		printf(",\"rate_bps\":%.0f,\"queue_us\":%u,\"held_by\":\"%s\"", p->rate_bps,
		       p->queue_us, holder_name(p->holder));
		printf(",\"bytes\":%" PRIu64 ",\"pause_bytes\":%" PRIu64 "}", p->bytes,
		       p->pause_bytes);
	}
	fputs("],\"connections\":[", stdout);
	for (i = 0; i < look->count; i++) {
		if (i)
			putchar(',');
		json_connection(&look->activity[i]);
	}
	putchar(']');
	json_end();
}

static void print_look(const struct look *look)
{
	struct program *programs;
	size_t count;

	programs = look_programs(look, &count);
	if (!programs)
		refused("top: out of memory");
	if (json) {
		json_table(look, programs, count);
	} else {
		screen_begin();
		table(look, programs, count);
		screen_end();
	}
	free(programs);
}

/* @times: number of tables; 0 for no end */
static int watch_look(unsigned int seconds, uint64_t times)
{
	struct look before, now;
	uint64_t i;

	if (look_again(&before, NULL))
		refused("top: %s", look_error());
	for (i = 0; !times || i < times; i++) {
		poll(NULL, 0, i ? (int)seconds * 1000 : RATE_MS);
		if (look_again(&now, &before))
			refused("top: %s", look_error());
		print_look(&now);
		if (fflush(stdout))
			return 1;
		look_free(&before);
		before = now;
	}
	look_free(&before);
	return 0;
}

int do_top(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "interval", required_argument, NULL, 'n' },
		{ "count", required_argument, NULL, 'c' },
		{}
	};
	unsigned int seconds = 1;
	uint64_t times = 0;
	int c;

	/* without a verb, and without a terminal to show it live: one table */
	if (!argc)
		return watch_look(1, isatty(STDOUT_FILENO) ? 0 : 1);
	while ((c = getopt_long(argc, argv, "n:c:", longs, NULL)) != -1) {
		if (c == 'n')
			seconds = (unsigned int)read_number(optarg, "interval", 1, 86400);
		else if (c == 'c')
			times = read_number(optarg, "count", 1, UINT32_MAX);
		else
			wrong_option();
	}
	if (optind != argc)
		wrong("top takes no argument '%s'", argv[optind]);
	return watch_look(seconds, times);
}

/* metrics: the text format of Prometheus, 0.0.4 */

static void metric(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Print the name and labels of a program's metric; the caller prints the value.
 * @held_by: value of a label of that name, or NULL
 */
static void labels(const char *metric, const struct program *program, const char *held_by)
{
	const struct activity *one = program->first;
	char name[40];
	const char *c;

	printf("%s{direction=\"%s\",program=\"", metric, one->up ? "up" : "down");
	for (c = program_text(one, name, sizeof(name)); *c; c++) {
		if (*c == '"' || *c == '\\')
			putchar('\\');
		putchar(*c);
	}
	printf("\",pid=\"%d\"", one->pid);
	if (held_by)
		printf(",held_by=\"%s\"", held_by);
	fputs("} ", stdout);
}

static void program_metrics(const struct program *programs, size_t count)
{
	size_t i;

	metric("lbe_connections", "gauge", "Background connections of a program.");
	for (i = 0; i < count; i++) {
		labels("lbe_connections", &programs[i], NULL);
		printf("%u\n", programs[i].connections);
	}
	metric("lbe_rate_bytes_per_second", "gauge",
	       "Rate of a program's background connections, over the half second before this output.");
	for (i = 0; i < count; i++) {
		labels("lbe_rate_bytes_per_second", &programs[i], NULL);
		printf("%.0f\n", programs[i].rate_bps / 8);
	}
	metric("lbe_held_by", "gauge",
	       "1 for what limits the rate of a program's connections: us (the background law), sender, receiver or application.");
	for (i = 0; i < count; i++) {
		if (programs[i].holder == HELD_UNKNOWN)
			continue;
		labels("lbe_held_by", &programs[i], holder_name(programs[i].holder));
		puts("1");
	}
	metric("lbe_live_bytes", "gauge",
	       "Bytes moved so far by the background connections that are open now. The value falls when one of them is closed, so that it is no counter.");
	for (i = 0; i < count; i++) {
		labels("lbe_live_bytes", &programs[i], NULL);
		printf("%" PRIu64 "\n", programs[i].bytes);
	}
	metric("lbe_queue_seconds", "gauge",
	       "Longest queueing delay that one of a program's background connections finds on its path.");
	for (i = 0; i < count; i++) {
		labels("lbe_queue_seconds", &programs[i], NULL);
		printf("%.6f\n", programs[i].queue_us / 1e6);
	}
}

static void rule_metrics(void)
{
	struct vulture_rule *rules;
	size_t i, n;

	rules = all_rules(&n);
	metric("vulture_rule_started_total", "counter", "Connections that a rule has started.");
	for (i = 0; i < n; i++)
		printf("vulture_rule_started_total{rule=\"%u\"} %" PRIu64 "\n", rules[i].id,
		       rules[i].started);
	metric("vulture_rule_failed_total", "counter",
	       "Connections that a rule has matched and could not start.");
	for (i = 0; i < n; i++)
		printf("vulture_rule_failed_total{rule=\"%u\"} %" PRIu64 "\n", rules[i].id,
		       rules[i].failed);
	free(rules);
}

static void module_metrics(void)
{
	struct vulture_defaults defaults;

	metric("vulture_up", "gauge", "Whether the kernel module vulture is loaded.");
	printf("vulture_up %d\n", !!v);
	if (!v)
		return;
	check(vulture_get_defaults(v, &defaults));
	metric("vulture_info", "gauge", "The module's version.");
	printf("vulture_info{version=\"%s\"} 1\n", defaults.version);
	metric("vulture_flows", "gauge", "Downloads under control in this network namespace.");
	printf("vulture_flows %u\n", defaults.flows);
	metric("vulture_flows_limit", "gauge", "Limit on them.");
	printf("vulture_flows_limit %u\n", defaults.max_flows);
	rule_metrics();
}

int do_metrics(int argc, char **argv)
{
	struct look before, look;
	struct program *programs;
	size_t count;

	no_arguments(argc, argv);
	if (look_again(&before, NULL))
		refused("metrics: %s", look_error());
	poll(NULL, 0, RATE_MS);
	if (look_again(&look, &before))
		refused("metrics: %s", look_error());
	look_free(&before);
	programs = look_programs(&look, &count);
	if (!programs)
		refused("metrics: out of memory");
	module_metrics();
	program_metrics(programs, count);
	free(programs);
	look_free(&look);
	return 0;
}
