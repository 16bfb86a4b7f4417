// SPDX-License-Identifier: GPL-2.0
/* vulturectl list, monitor and show: downloads under control, once or live. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "activity.h"
#include "ctl.h"
#include "print.h"

/* ms between the two looks of show: several round trips on most paths */
#define SHOW_MS	300

/* All connections under control. They are read completely before the first is printed, so that a
 * list that fails half way does not leave an incomplete JSON document.
 */
struct flows {
	struct vulture_flow *at;
	size_t n, room;
};

static int keep_flow(const struct vulture_flow *flow, void *arg)
{
	struct flows *flows = arg;

	flows->at = with_room(flows->at, flows->n, &flows->room, sizeof(*flows->at));
	flows->at[flows->n++] = *flow;
	return 0;
}

static void read_flows(struct flows *flows)
{
	flows->n = 0;
	check(vulture_list(v, keep_flow, flows));
}

int do_list(int argc, char **argv)
{
	struct flows flows = {};
	size_t i;

	no_arguments(argc, argv);
	read_flows(&flows);
	if (json) {
		json_begin();
		fputs(",\"connections\":[", stdout);
	} else {
		list_header("MB");
	}
	for (i = 0; i < flows.n; i++) {
		const struct vulture_flow *flow = &flows.at[i];

		if (json) {
			fputs(i ? ",\n{" : "{", stdout);
			json_flow(flow);
			putchar('}');
		} else {
			list_line(flow, flow->bytes / 1e6);
		}
	}
	free(flows.at);
	if (json) {
		putchar(']');
		json_end();
	}
	return 0;
}

/* monitor: rates are differences of two lists */

static double monitor_rate_bps(const struct flows *old, size_t nth, const struct vulture_flow *flow)
{
	size_t i;

	/* The order of two lists is mostly the same, so start at the same index. */
	for (i = 0; i < old->n; i++) {
		const struct vulture_flow *s = &old->at[(i + nth) % old->n];

		if (s->id == flow->id)
			return flow->age_us <= s->age_us ? 0 :
			       8e6 * (double)(flow->bytes - s->bytes) /
			       (double)(flow->age_us - s->age_us);
	}
	return 0;
}

static void monitor_one(const struct flows *old, size_t nth, const struct vulture_flow *flow)
{
	double rate_bps = monitor_rate_bps(old, nth, flow);

	if (json) {
		fputs(nth ? ",{" : "{", stdout);
		json_flow(flow);
		printf(",\"rate_bps\":%.0f}", rate_bps);
	} else {
		list_line(flow, rate_bps / 1e6);
	}
}

static int monitor_table(unsigned int seconds)
{
	struct flows lists[2] = {}, *old = &lists[0], *new = &lists[1], *seen;
	size_t i;

	for (;;) {
		read_flows(new);
		if (json) {
			json_begin();
			printf(",\"time_s\":%lld,\"connections\":[", (long long)time(NULL));
		} else {
			screen_begin();
			list_header("Mbit/s");
		}
		for (i = 0; i < new->n; i++)
			monitor_one(old, i, &new->at[i]);
		if (json) {
			putchar(']');
			json_end();
		} else {
			screen_end();
		}
		if (fflush(stdout))
			return 1;
		seen = new;
		new = old;
		old = seen;
		sleep(seconds);
	}
}

static void print_event(int event, const struct vulture_flow *flow, uint32_t reason)
{
	char local[ADDRESS_CHARS], remote[ADDRESS_CHARS];

	if (json) {
		json_begin();
		printf(",\"event\":\"%s\"", event == VULTURE_EVENT_START ? "start" : "end");
		if (event == VULTURE_EVENT_END)
			printf(",\"reason\":\"%s\"", vulture_reason_name(reason));
		fputs(",\"connections\":[{", stdout);
		json_flow(flow);
		fputs("}]", stdout);
		json_end();
		return;
	}
	printf("%s %" PRIu64 " %s <- %s", event == VULTURE_EVENT_START ? "start" : "end  ",
	       flow->id, endpoint(&flow->address.local.sa, local),
	       endpoint(&flow->address.remote.sa, remote));
	if (event == VULTURE_EVENT_END)
		printf(" %s after %.1f s, %.3f MB", vulture_reason_name(reason),
		       flow->age_us / 1e6, flow->bytes / 1e6);
	putchar('\n');
}

static int monitor_events(void)
{
	check(vulture_listen(v));
	for (;;) {
		struct vulture_flow flow;
		uint32_t reason;
		int event = vulture_event(v, &flow, &reason);

		if (event < 0 && errno == ENOBUFS) {
			say("events were lost");
			continue;
		}
		check(event);
		print_event(event, &flow, reason);
		if (fflush(stdout))
			return 1;
	}
}

int do_monitor(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "events", no_argument, NULL, 'e' },
		{ "interval", required_argument, NULL, 'n' },
		{}
	};
	unsigned int seconds = 1;
	bool events = false;
	int c;

	while ((c = getopt_long(argc, argv, "en:", longs, NULL)) != -1) {
		if (c == 'e')
			events = true;
		else if (c == 'n')
			seconds = (unsigned int)read_number(optarg, "interval", 1, 86400);
		else
			wrong_option();
	}
	if (optind != argc)
		wrong("monitor takes no argument '%s'", argv[optind]);
	return events ? monitor_events() : monitor_table(seconds);
}

/* show */

static const char *holder_sentence(enum holder holder, bool yields)
{
	switch (holder) {
	case HELD_US:
		return yields ? "us: others use the path, and this connection steps aside" :
				"us: it uses the bandwidth that is spare";
	case HELD_SENDER:
		return "the sender: it sends less than it may";
	case HELD_RECEIVER:
		return "the receiver: TCP's own window is smaller than ours";
	case HELD_APPLICATION:
		return "the application: it does not read the data that has arrived";
	default:
		return "not known yet: nothing was measured";
	}
}

/* The rate and the holder need two looks. */
void show_plain(const struct vulture_flow *flow)
{
	char local[ADDRESS_CHARS], remote[ADDRESS_CHARS], name[32];
	struct look first, second;
	const struct activity *now;

	if (look_again(&first, NULL))
		refused("show: %s", look_error());
	poll(NULL, 0, SHOW_MS);
	if (look_again(&second, &first))
		refused("show: %s", look_error());
	now = look_find(&second, false, flow->id);
	if (now)
		flow = now->flow;
	printf("id %" PRIu64 "  %s <- %s\n", flow->id, endpoint(&flow->address.local.sa, local),
	       endpoint(&flow->address.remote.sa, remote));
	if (now && now->pid) {
		text_string(now->name, name, sizeof(name));
		printf("  %-12s %s (process %d)\n", "program", name, now->pid);
	}
	if (now) {
		printf("  %-12s %.3f Mbit/s\n", "rate", now->rate_bps / 1e6);
		printf("  %-12s %s\n", "held by", holder_sentence(now->holder, now->yields));
	}
	printf("  %-12s %.3f MB in %.1f s\n", "received", flow->bytes / 1e6, flow->age_us / 1e6);
	printf("  %-12s %.1f ms of queueing delay on the path\n", "queue", flow->queue_us / 1e3);
	printf("  %-12s %.1f ms, %.1f ms at best\n", "round trip", flow->rtt_us / 1e3,
	       flow->min_rtt_us / 1e3);
	printf("  %-12s %.1f kB allowed; TCP itself would allow %.1f kB\n", "window",
	       flow->rwnd_bytes / 1e3, flow->own_bytes / 1e3);
	printf("  %-12s %s\n", "law", vulture_controller_name(flow->controller));
	if (flow->rule)
		printf("  %-12s rule %u\n", "started by", flow->rule);
	puts("  (--all: every counter of the law, and its options)");
	look_free(&first);
	look_free(&second);
}
