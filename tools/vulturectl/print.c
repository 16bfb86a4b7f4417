// SPDX-License-Identifier: GPL-2.0
/* Connections and rules as text and as JSON. */
#include "print.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define JSON_SCHEMA	1	/* of vulturectl.schema.json */
#define LINE_CHARS	256	/* of a table's line, at most */

/* The state of the page. On a terminal, a page is cut to the terminal's size. */
static struct {
	unsigned int rows, columns;	/* 0: no limit */
	unsigned int lines;		/* lines of the page so far, printed or not */
	char last[LINE_CHARS];		/* printed in the last row if no further line follows */
} screen;

void screen_begin(void)
{
	struct winsize size = {};

	if (isatty(STDOUT_FILENO)) {
		fputs("\033[H\033[J", stdout);
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	}
	/* the row below the last line is for the cursor */
	screen.rows = size.ws_row > 1 ? size.ws_row - 1U : size.ws_row;
	screen.columns = size.ws_col;
	screen.lines = 0;
}

static void put_line(const char *line)
{
	printf("%.*s\n", screen.columns ? (int)screen.columns : -1, line);
}

void screen_line(const char *format, ...)
{
	char line[LINE_CHARS];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	screen.lines++;
	if (!screen.rows || screen.lines < screen.rows)
		put_line(line);
	else if (screen.lines == screen.rows)
		strcpy(screen.last, line);
}

void screen_end(void)
{
	char more[LINE_CHARS];

	if (!isatty(STDOUT_FILENO))
		putchar('\n');
	if (!screen.rows || screen.lines < screen.rows)
		return;
	snprintf(more, sizeof(more), "and %u more", screen.lines - screen.rows + 1);
	put_line(screen.lines == screen.rows ? screen.last : more);
}

void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else
			putchar(*text >= ' ' && *text < 0x7f ? *text : '?');
	}
	putchar('"');
}

void text_string(const char *text, char *to, size_t room)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < room; i++)
		to[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
	to[i] = '\0';
}

void json_begin(void)
{
	printf("{\"schema\":%d", JSON_SCHEMA);
}

void json_end(void)
{
	puts("}");
}

const char *endpoint(const struct sockaddr *sa, char text[ADDRESS_CHARS])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	char host[INET6_ADDRSTRLEN] = "?";

	if (sa->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, ADDRESS_CHARS, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, ADDRESS_CHARS, "%s:%u", host, ntohs(in->sin_port));
	}
	return text;
}

static const char *option_text(const struct vulture_options *options, unsigned int i,
			       char *text, size_t room)
{
	if (i == VULTURE_OPTION_CONTROLLER)
		return vulture_controller_name(options->value[i]);
	snprintf(text, room, "%u", options->value[i]);
	return text;
}

void json_options(const struct vulture_options *options)
{
	const char *comma = "";
	unsigned int i;
	char text[16];

	printf("\"options\":{");
	for (i = 1; vulture_option_name(i); i++) {
		const char *quote = i == VULTURE_OPTION_CONTROLLER ? "\"" : "";

		if (!(options->set & (1ULL << i)))
			continue;
		printf("%s\"%s\":%s%s%s", comma, vulture_option_name(i), quote,
		       option_text(options, i, text, sizeof(text)), quote);
		comma = ",";
	}
	printf("}");
}

void text_options(const struct vulture_options *options, const char *indent)
{
	unsigned int i;
	char text[16];

	for (i = 1; vulture_option_name(i); i++)
		if (options->set & (1ULL << i))
			printf("%s%-18s %s\n", indent, vulture_option_name(i),
			       option_text(options, i, text, sizeof(text)));
}

/* A field of a connection, for text and JSON alike. */
struct field {
	const char *name, *text;	/* text is NULL: print value */
	int64_t value;
};

/* The name of a statistic's value; NULL if the statistic is a number. */
static const char *stat_text(const struct vulture_flow *f, const struct vulture_stat *stat)
{
	static const struct {
		const char *controller, *stat;
		const char *(*name)(uint32_t value);
	} named[] = {
		{ "paper", "phase", vulture_phase_name },
		{ "paper", "mode", vulture_mode_name },
		{ "paper", "policy", vulture_policy_name },
		{ "credit", "phase", vulture_credit_phase_name },
		{ "rledbat", "state", vulture_rledbat_state_name },
	};
	const char *controller = vulture_controller_name(f->controller);
	size_t i;

	for (i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (!strcmp(controller, named[i].controller) && !strcmp(stat->name, named[i].stat))
			return named[i].name((uint32_t)stat->value);
	return NULL;
}

static unsigned int flow_fields(const struct vulture_flow *f, struct field *to)
{
	const struct field fields[] = {
		{ "rule", NULL, f->rule },
		{ "controller", vulture_controller_name(f->controller), 0 },
		{ "rwnd_bytes", NULL, f->rwnd_bytes },
		{ "advertised_bytes", NULL, f->advertised_bytes },
		{ "own_bytes", NULL, f->own_bytes },
		{ "rtt_us", NULL, f->rtt_us },
		{ "min_rtt_us", NULL, f->min_rtt_us },
		{ "queue_us", NULL, f->queue_us },
		{ "mss_bytes", NULL, f->mss_bytes },
		{ "age_us", NULL, f->age_us },
		{ "segments", NULL, f->segments },
		{ "bytes", NULL, f->bytes },
		{ "acks", NULL, f->acks },
		{ "rewritten", NULL, f->rewritten },
		{ "updates", NULL, f->updates },
	};
	unsigned int i, n = sizeof(fields) / sizeof(fields[0]);

	memcpy(to, fields, sizeof(fields));
	for (i = 0; i < f->n_stats; i++)
		to[n++] = (struct field){ f->stats[i].name, stat_text(f, &f->stats[i]),
					  f->stats[i].value };
	return n;
}

void json_flow(const struct vulture_flow *flow)
{
	char local[ADDRESS_CHARS], remote[ADDRESS_CHARS];
	struct field fields[64];
	unsigned int i, n = flow_fields(flow, fields);

	printf("\"id\":%" PRIu64 ",\"direction\":\"down\"", flow->id);
	printf(",\"local\":\"%s\",\"remote\":\"%s\"",
	       endpoint(&flow->address.local.sa, local),
	       endpoint(&flow->address.remote.sa, remote));
	for (i = 0; i < n; i++) {
		if (fields[i].text)
			printf(",\"%s\":\"%s\"", fields[i].name, fields[i].text);
		else
			printf(",\"%s\":%" PRId64, fields[i].name, fields[i].value);
	}
	putchar(',');
	json_options(&flow->options);
}

void text_flow(const struct vulture_flow *flow)
{
	char local[ADDRESS_CHARS], remote[ADDRESS_CHARS];
	struct field fields[64];
	unsigned int i, n = flow_fields(flow, fields);

	printf("id %" PRIu64 "  %s <- %s\n", flow->id, endpoint(&flow->address.local.sa, local),
	       endpoint(&flow->address.remote.sa, remote));
	for (i = 0; i < n; i++) {
		if (fields[i].text)
			printf("  %-18s %s\n", fields[i].name, fields[i].text);
		else
			printf("  %-18s %" PRId64 "\n", fields[i].name, fields[i].value);
	}
	text_options(&flow->options, "  ");
}

void list_header(const char *last)
{
	screen_line("%-6s %-23s %-23s %-8s %9s %8s %9s %8s", "ID", "LOCAL", "REMOTE", "LAW",
		    "WINDOW-kB", "RTT-ms", "QUEUE-ms", last);
}

void list_line(const struct vulture_flow *flow, double last)
{
	char local[ADDRESS_CHARS], remote[ADDRESS_CHARS];

	screen_line("%-6" PRIu64 " %-23s %-23s %-8s %9.1f %8.1f %9.1f %8.2f", flow->id,
		    endpoint(&flow->address.local.sa, local),
		    endpoint(&flow->address.remote.sa, remote),
		    vulture_controller_name(flow->controller), flow->rwnd_bytes / 1e3,
		    flow->rtt_us / 1e3, flow->queue_us / 1e3, last);
}

void text_rule(const struct vulture_rule *rule)
{
	char prefix[INET6_ADDRSTRLEN];

	printf("%-4u", rule->id);
	if (rule->cgroup)
		printf(" cgroup %" PRIu64, rule->cgroup);
	if (rule->local_port)
		printf(" local-port %u", rule->local_port);
	if (rule->remote_port)
		printf(" remote-port %u", rule->remote_port);
	if (rule->family)
		printf(" remote %s/%u",
		       inet_ntop(rule->family, rule->prefix, prefix, sizeof(prefix)),
		       rule->prefix_len);
	if (rule->by_dscp)
		printf(" dscp %s", dscp_name(rule->dscp));
	if (rule->foreground) {
		puts(" foreground");
		return;
	}
	printf(" started %" PRIu64, rule->started);
	if (rule->failed)
		printf(" failed %" PRIu64, rule->failed);
	if (rule->owned)
		printf(" of user %u", rule->uid);
	putchar('\n');
}

void json_rule(const struct vulture_rule *rule)
{
	char prefix[INET6_ADDRSTRLEN];

	printf("{\"id\":%u,", rule->id);
	if (rule->owned)
		printf("\"uid\":%u,", rule->uid);
	if (rule->cgroup)
		printf("\"cgroup\":%" PRIu64 ",", rule->cgroup);
	if (rule->local_port)
		printf("\"local_port\":%u,", rule->local_port);
	if (rule->remote_port)
		printf("\"remote_port\":%u,", rule->remote_port);
	if (rule->family)
		printf("\"remote\":\"%s/%u\",",
		       inet_ntop(rule->family, rule->prefix, prefix, sizeof(prefix)),
		       rule->prefix_len);
	if (rule->by_dscp)
		printf("\"dscp\":%u,", rule->dscp);
	if (rule->foreground)
		fputs("\"foreground\":true,", stdout);
	printf("\"started\":%" PRIu64 ",\"failed\":%" PRIu64 ",", rule->started, rule->failed);
	json_options(&rule->options);
	putchar('}');
}
