// SPDX-License-Identifier: GPL-2.0
/*
 * lbe-agent: generates and measures the traffic of one node.
 *
 * Exit status: 0 success; 1 an error in the run (in the events file and on
 * standard error); 2 wrong usage or an invalid plan, nothing was done.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "flow.h"
#include "loop.h"
#include "netcfg.h"
#include "node.h"
#include "plan.h"
#include "queue.h"
#include "records.h"
#include "sample.h"
#include "sink.h"
#include "web.h"

static void usage(FILE *to)
{
	fprintf(to,
		"usage: lbe-agent [--netns NAME] VERB ...\n"
		"  run PLAN               traffic and measurement of a node\n"
		"  check PLAN             parse only\n"
		"  sysctl FILE            set what the file says, NAME=VALUE a line\n"
		"  offload on|off DEV...  TSO, GSO, GRO, LRO; checksums stay\n"
		"  facts FILE OUT         the file's sysctls into OUT.sysctl, TCP's and IP's\n"
		"                         counters into OUT.counters\n"
		"  wait-until NS          sleep to a CLOCK_MONOTONIC time\n"
		"  poweroff               end the machine\n"
		"  --help                 this, the plan's grammar, the records\n"
		"--netns: in this namespace of `ip netns`\n"
		"exit status: 0 done, 1 an error in the run, 2 bad usage or plan\n");
}

static void help(void)
{
	usage(stdout);
	putchar('\n');
	plan_help();
	printf("\nRecords (little-endian, packed; layouts and events: records.h):\n"
	       "  <out>/<node>.send    %zu bytes: t_ns u64; flow cwnd_pkts ssthresh_pkts srtt_us\n"
	       "                       rttvar_us minrtt_us mss_bytes delivered_pkts retrans_pkts\n"
	       "                       lost_pkts unacked_pkts ca_state u32; bytes_acked\n"
	       "                       bytes_sent u64; cc[5] u32\n"
	       "  <out>/<node>.recv    %zu bytes: t_ns u64; flow reserved u32; bytes u64\n"
	       "  <out>/<node>.queue   %zu bytes: t_ns u64; queue qlen_pkts backlog_bytes drops\n"
	       "                       overlimits requeues u32; sent_bytes u64; sent_pkts\n"
	       "                       marks u32\n"
	       "  <out>/<node>.web     %zu bytes: t_ns u64; dur_us bytes page objects flow flags u32\n"
	       "                       (1 SYN again, 2 failed, 4 a page, 8 unfinished)\n"
	       "  <out>/<node>.events  text: t_ns flow event detail\n",
	       sizeof(struct rec_send), sizeof(struct rec_recv),
	       sizeof(struct rec_queue), sizeof(struct rec_web));
}

static void on_signal(int number)
{
	(void)number;
	loop_stop();
}

/* A signal ends the run early, but its records are written. */
static void catch_signals(void)
{
	struct sigaction stop = { .sa_handler = on_signal };

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Each connection needs a descriptor, and there may be thousands. */
static void raise_file_limit(void)
{
	struct rlimit limit = { 1 << 17, 1 << 17 };

	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int run(const char *path)
{
	struct plan p;
	u64 zero_ns;
	int err;

	if (plan_read(&p, path))
		return 2;
	catch_signals();
	raise_file_limit();
	err = loop_init();
	if (err) {
		fprintf(stderr, "lbe-agent: %s\n", strerror(-err));
		return 1;
	}
	zero_ns = p.zero_ns ? p.zero_ns : loop_now();
	if (zero_ns < loop_now()) {
		fprintf(stderr, "%s: zero_ns %" PRIu64 " has passed, it is %"
			PRIu64 "\n", path, zero_ns, loop_now());
		return 1;
	}
	if (records_open(p.out, p.node, zero_ns))
		return 1;
	err = sinks_open(&p, zero_ns) | servers_open(&p) |
	      flows_open(&p, zero_ns) | webs_open(&p, zero_ns) |
	      queues_open(&p);
	if (!err) {
		sampling_start(&p, zero_ns);
		err = loop_run();
		flows_close();
		webs_close();
		sinks_close();
		servers_close();
	}
	if (records_close())
		err = -1;
	plan_free(&p);
	return err || records_failed();
}

static int check(const char *path)
{
	struct plan p;

	if (plan_read(&p, path))
		return 2;
	printf("%s: %u flows, %u sinks, %u web clients, %u servers, %u queues\n",
	       path, p.nflows, p.nsinks, p.nwebs, p.nservers, p.nqueues);
	plan_free(&p);
	return 0;
}

static int bad_usage(void)
{
	usage(stderr);
	return 2;
}

static int wait_until(const char *text)
{
	char *end;
	u64 at_ns;

	errno = 0;
	at_ns = strtoull(text, &end, 10);
	if (errno || *end || !*text || *text == '-' || at_ns > INT64_MAX) {
		fprintf(stderr, "lbe-agent: wait-until %s: must be 0 to %" PRId64
			" ns\n", text, INT64_MAX);
		return 2;
	}
	return sleep_until(at_ns) ? 1 : 0;
}

static int offload(const char *state, char **devs)
{
	int err = 0;

	if (strcmp(state, "on") && strcmp(state, "off")) {
		fprintf(stderr, "lbe-agent: offload %s: must be on or off\n",
			state);
		return 2;
	}
	for (; !err && *devs; devs++)
		err = set_offload(*devs, !strcmp(state, "on"));
	return err;
}

/* Runs the verb with its n arguments; words ends with NULL. */
static int do_verb(const char *verb, char **words, int n)
{
	if (!strcmp(verb, "run") && n == 1)
		return run(words[0]);
	if (!strcmp(verb, "check") && n == 1)
		return check(words[0]);
	if (!strcmp(verb, "sysctl") && n == 1)
		return node_set_sysctls(words[0]);
	if (!strcmp(verb, "offload") && n >= 2)
		return offload(words[0], words + 1);
	if (!strcmp(verb, "facts") && n == 2)
		return node_read_back(words[0], words[1]);
	if (!strcmp(verb, "wait-until") && n == 1)
		return wait_until(words[0]);
	if (!strcmp(verb, "poweroff") && n == 0)
		return power_off();
	return bad_usage();
}

int main(int argc, char **argv)
{
	const char *verb;

	if (argc > 3 && !strcmp(argv[1], "--netns")) {
		if (node_enter(argv[2]))
			return 1;
		argv += 2;
		argc -= 2;
	}
	verb = argc > 1 ? argv[1] : "";
	if (!strcmp(verb, "--help") || !strcmp(verb, "-h")) {
		help();
		return 0;
	}
	return do_verb(verb, argv + 2, argc - 2);
}
