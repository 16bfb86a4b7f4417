// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl: background downloads from the command line.
 *
 * Exit status: 0 done, 1 refused or failed (a line on standard error says
 * why), 2 the command line is wrong; run: that of the command, or 126 and 127
 * as a shell has them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ctl.h"
#include "print.h"
#include "sockets.h"

static const char usage_text[] =
	"usage: vulturectl [--json] [COMMAND ...]\n"
	"\n"
	"  top [-n SECONDS] [-c COUNT]       what runs in the background, live: also without COMMAND\n"
	"  start TARGET [-o NAME=VALUE]...   connections go to the background\n"
	"  stop TARGET                       they get their window back, at once\n"
	"  show [--all] TARGET               one connection in plain words; --all: every counter\n"
	"  show                              defaults, limits, version\n"
	"  list                              downloads under control, a line each\n"
	"  monitor [-n SECONDS]              the same, live, with rates\n"
	"  monitor --events                  a line for each start and end\n"
	"  metrics                           for Prometheus\n"
	"  run [--up] [--down] [--weight N] [--deadline T] [-u USER] [-o NAME=VALUE]... -- COMMAND...\n"
	"                                    a command and its children: what they send, what they\n"
	"                                    receive, or both (the default); needs no privilege\n"
	"  bg PID|UNIT                       a running program's connections, both ways, at once\n"
	"  fg PID|UNIT                       and back to the foreground\n"
	"  hold DIR [-o NAME=VALUE]...       a v2 cgroup, both ways, for as long as this runs\n"
	"  apply [FILE]                      what FILE (/etc/lbe/background.conf) says, and no more\n"
	"  showconf                          what apply has put in force, as such a file\n"
	"  rule add MATCH... [-o NAME=VALUE]...   new connections that match\n"
	"  rule del ID\n"
	"  rule list\n"
	"  set [-m MAX] [-o NAME=VALUE]...   defaults of this network namespace\n"
	"\n"
	"  TARGET: LOCAL REMOTE   addresses with ports, 10.0.0.1:80 or [fd00::1]:80\n"
	"          --pid PID      all TCP sockets of a process (start, stop)\n"
	"          --cgroup DIR   all of a v2 cgroup, and those below (start, stop)\n"
	"          --id ID        as list shows it (stop, show)\n"
	"  MATCH:  --cgroup DIR  --local-port N  --remote-port N  --remote PREFIX[/BITS]\n"
	"\n"
	"vulturectl --help-options lists the names for -o. vulturectl(8) tells more.\n";

bool json;
struct vulture *v;

void wrong(const char *format, ...)
{
	va_list args;

	fputs("vulturectl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n\n", stderr);
	fputs(usage_text, stderr);
	exit(2);
}

void refused(const char *format, ...)
{
	va_list args;

	fputs("vulturectl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *with_room(void *at, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return at;
	*room = *room ? 2 * *room : 64;
	at = realloc(at, *room * size);
	if (!at)
		refused("out of memory");
	return at;
}

void say(const char *format, ...)
{
	va_list args;

	fputs("vulturectl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* Reading arguments */

uint64_t read_number(const char *text, const char *what, uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || value < min || value > max)
		wrong("%s '%s' is not a number within %" PRIu64 " to %" PRIu64, what, text,
		      min, max);
	return value;
}

void read_option(struct vulture_options *options, char *text)
{
	char *equals = strchr(text, '=');
	uint32_t value;

	if (!equals)
		wrong("option '%s' has no value: -o NAME=VALUE", text);
	*equals = '\0';
	if (!strcmp(text, "controller")) {
		int controller = vulture_controller_number(equals + 1);

		if (controller < 0)
			wrong("there is no controller '%s': paper, credit, rledbat", equals + 1);
		vulture_option(options, text, (uint32_t)controller);
		return;
	}
	value = (uint32_t)read_number(equals + 1, text, 0, UINT32_MAX);
	if (!vulture_option(options, text, value))
		return;
	wrong("there is no option '%s'; vulturectl --help-options lists them", text);
}

/* "10.0.0.1:80", "[fd00::1]:80" */
static void read_endpoint(const char *text, struct sockaddr_in6 *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	char host[ADDRESS_CHARS];
	const char *colon = strrchr(text, ':');
	const char *from = text;
	size_t length;
	uint16_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		wrong("'%s' is no address with a port (10.0.0.1:80 or [fd00::1]:80)", text);
	port = (uint16_t)read_number(colon + 1, "port", 1, 65535);
	length = colon - text;
	if (length >= 2 && *text == '[' && text[length - 1] == ']') {
		from++;
		length -= 2;
	}
	memcpy(host, from, length);
	host[length] = '\0';
	memset(to, 0, sizeof(*to));
	if (from == text && inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else if (from != text && inet_pton(AF_INET6, host, &to->sin6_addr) == 1) {
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(port);
	} else {
		wrong("'%s' is no address with a port (10.0.0.1:80 or [fd00::1]:80)", text);
	}
}

uint64_t read_cgroup(const char *dir)
{
	struct statfs fs;
	struct stat st;

	if (stat(dir, &st))
		refused("%s: %s", dir, strerror(errno));
	/* Elsewhere the number of an inode may be that of a stranger's cgroup. */
	if (!S_ISDIR(st.st_mode) || statfs(dir, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
		refused("%s: not the directory of a v2 cgroup", dir);
	return st.st_ino;
}

int cgroup_descriptor(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		refused("%s: %s", dir, strerror(errno));
	return fd;
}

static void read_prefix(char *text, struct vulture_rule *rule)
{
	char *slash = strchr(text, '/');
	unsigned int bits;

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, rule->prefix) == 1)
		rule->family = AF_INET;
	else if (inet_pton(AF_INET6, text, rule->prefix) == 1)
		rule->family = AF_INET6;
	else
		wrong("'%s' is no IPv4 or IPv6 address", text);
	bits = rule->family == AF_INET ? 32 : 128;
	rule->prefix_len = slash ? (uint8_t)read_number(slash + 1, "prefix length", 0, bits) :
				   (uint8_t)bits;
}

/* What start, stop and show act on, with options. */
struct target {
	enum { BY_NOTHING, BY_ADDRESS, BY_PID, BY_CGROUP, BY_ID } by;
	struct vulture_address address;
	uint64_t number;
	const char *dir;	/* of a cgroup */
	struct vulture_options options;
};

static void set_target(struct target *t, int by)
{
	if (t->by)
		wrong("one target at a time: LOCAL REMOTE, --pid, --cgroup or --id");
	t->by = by;
}

static void read_target(int argc, char **argv, struct target *t, bool options)
{
	static const struct option longs[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "id", required_argument, NULL, 'i' },
		{ "option", required_argument, NULL, 'o' },
		{}
	};
	int c;

	memset(t, 0, sizeof(*t));
	while ((c = getopt_long(argc, argv, options ? "p:c:i:o:" : "p:c:i:", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			set_target(t, BY_PID);
			t->number = read_number(optarg, "pid", 1, INT32_MAX);
			break;
		case 'c':
			set_target(t, BY_CGROUP);
			t->number = read_cgroup(optarg);
			t->dir = optarg;
			break;
		case 'i':
			set_target(t, BY_ID);
			t->number = read_number(optarg, "id", 1, UINT64_MAX);
			break;
		case 'o':
			read_option(&t->options, optarg);
			break;
		default:
			wrong("%s: see above", argv[0]);
		}
	}
	if (optind == argc)
		return;
	if (argc - optind != 2)
		wrong("%s takes LOCAL and REMOTE, or --pid, --cgroup, --id", argv[0]);
	set_target(t, BY_ADDRESS);
	read_endpoint(argv[optind], &t->address.local.in6);
	read_endpoint(argv[optind + 1], &t->address.remote.in6);
	if (t->address.local.sa.sa_family != t->address.remote.sa.sa_family)
		wrong("%s and %s are of different families", argv[optind], argv[optind + 1]);
}

static void say_count(const char *verb, int count)
{
	if (json)
		printf("{\"%s\":%d}\n", verb, count);
	else
		printf("%s %d connection%s\n", verb, count, count == 1 ? "" : "s");
}

void check(int result)
{
	if (result < 0)
		refused("%s", vulture_error(v));
}

/* Commands */

/* Without privilege: each socket by a descriptor of our own (sockets.h). */
struct one_by_one {
	const struct vulture_options *options;	/* NULL: stop */
	int count;
	char reason[256];
};

static void change_one(const struct tcp_socket *socket, void *arg)
{
	struct one_by_one *change = arg;
	int result;

	if (socket->state < 0 || socket->state == TCP_LISTEN)
		return;
	if (change->options)
		result = vulture_start(v, socket->fd, change->options);
	else
		result = vulture_stop(v, socket->fd);
	change->count += !result;
	if (result)
		snprintf(change->reason, sizeof(change->reason), "%s", vulture_error(v));
}

static int change_one_by_one(const struct target *t, bool start)
{
	struct one_by_one change = { .options = start ? &t->options : NULL };
	pid_t one = (pid_t)t->number;
	struct pids pids = { &one, 1, 1 }, found = {};
	size_t i;

	if (t->by == BY_CGROUP && cgroup_pids(t->dir, &found))
		refused("%s: %s", t->dir, strerror(errno));
	if (t->by == BY_CGROUP)
		pids = found;
	for (i = 0; i < pids.count; i++)
		if (pid_sockets(pids.pid[i], NULL, change_one, &change) < 0)
			snprintf(change.reason, sizeof(change.reason), "process %d: %s",
				 pids.pid[i], strerror(errno));
	pids_free(&found);
	if (!change.count)
		refused("no connection was changed: %s",
			*change.reason ? change.reason : "there is none");
	return change.count;
}

static int do_start(int argc, char **argv)
{
	struct target t;
	int count = 1;

	read_target(argc, argv, &t, true);
	switch (t.by) {
	case BY_ADDRESS:
		check(vulture_start_address(v, &t.address, &t.options));
		break;
	case BY_PID:
		count = vulture_start_pid(v, (uint32_t)t.number, &t.options);
		if (count < 0 && errno == EPERM)
			count = change_one_by_one(&t, true);
		break;
	case BY_CGROUP:
		count = vulture_start_cgroup(v, t.number, &t.options);
		if (count < 0 && errno == EPERM)
			count = change_one_by_one(&t, true);
		break;
	default:
		wrong("start needs LOCAL REMOTE, --pid or --cgroup");
	}
	check(count);
	say_count("started", count);
	return 0;
}

static int do_stop(int argc, char **argv)
{
	struct target t;
	int count = 1;

	read_target(argc, argv, &t, false);
	switch (t.by) {
	case BY_ADDRESS:
		check(vulture_stop_address(v, &t.address));
		break;
	case BY_PID:
		count = vulture_stop_pid(v, (uint32_t)t.number);
		if (count < 0 && errno == EPERM)
			count = change_one_by_one(&t, false);
		break;
	case BY_CGROUP:
		count = vulture_stop_cgroup(v, t.number);
		if (count < 0 && errno == EPERM)
			count = change_one_by_one(&t, false);
		break;
	case BY_ID:
		check(vulture_stop_id(v, t.number));
		break;
	default:
		wrong("stop needs LOCAL REMOTE, --pid, --cgroup or --id");
	}
	check(count);
	say_count("stopped", count);
	return 0;
}

void no_arguments(int argc, char **argv)
{
	if (argc > 1)
		wrong("%s takes no argument '%s'", argv[0], argv[1]);
}

static int show_defaults(void)
{
	struct vulture_defaults d;

	check(vulture_get_defaults(v, &d));
	if (json) {
		json_begin();
		printf(",\"defaults\":{\"version\":\"%s\",\"flows\":%u,\"max_flows\":%u,\"flow_bytes\":%u,",
		       d.version, d.flows, d.max_flows, d.flow_bytes);
		json_options(&d.options);
		putchar('}');
		json_end();
		return 0;
	}
	printf("%-18s %s\n%-18s %u\n%-18s %u\n%-18s %u\n", "version", d.version, "flows",
	       d.flows, "max-flows", d.max_flows, "flow-bytes", d.flow_bytes);
	text_options(&d.options, "");
	return 0;
}

/* Whether a word is there; it is taken out. */
static bool take_word(int *argc, char **argv, const char *word)
{
	int i;

	for (i = 1; i < *argc; i++) {
		if (strcmp(argv[i], word))
			continue;
		memmove(&argv[i], &argv[i + 1], (*argc - i) * sizeof(*argv));
		--*argc;
		return true;
	}
	return false;
}

static int do_show(int argc, char **argv)
{
	struct vulture_flow flow;
	bool all = take_word(&argc, argv, "--all");
	struct target t;

	read_target(argc, argv, &t, false);
	if (t.by == BY_NOTHING)
		return show_defaults();
	if (t.by == BY_ADDRESS)
		check(vulture_get_address(v, &t.address, &flow));
	else if (t.by == BY_ID)
		check(vulture_get_id(v, t.number, &flow));
	else
		wrong("show takes LOCAL REMOTE or --id");
	if (json) {
		json_begin();
		fputs(",\"connections\":[{", stdout);
		json_flow(&flow);
		fputs("}]", stdout);
		json_end();
	} else if (all) {
		text_flow(&flow);
	} else {
		show_plain(&flow);
	}
	return 0;
}

/* Rules */

/* All of them, before any is printed: a list that fails half way leaves no half of a document. */
struct rules {
	struct vulture_rule *at;
	size_t n, room;
};

static int keep_rule(const struct vulture_rule *rule, void *arg)
{
	struct rules *rules = arg;

	rules->at = with_room(rules->at, rules->n, &rules->room, sizeof(*rules->at));
	rules->at[rules->n++] = *rule;
	return 0;
}

static int list_rules(void)
{
	struct rules rules = {};
	size_t i;

	check(vulture_rule_list(v, keep_rule, &rules));
	for (i = 0; i < rules.n; i++) {
		if (json) {
			puts(i ? "," : "[");
			json_rule(&rules.at[i]);
		} else {
			text_rule(&rules.at[i]);
		}
	}
	if (json)
		puts(rules.n ? "\n]" : "[]");
	free(rules.at);
	return 0;
}

static int rule_add(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "cgroup", required_argument, NULL, 'c' },
		{ "local-port", required_argument, NULL, 'l' },
		{ "remote-port", required_argument, NULL, 'r' },
		{ "remote", required_argument, NULL, 'a' },
		{ "option", required_argument, NULL, 'o' },
		{}
	};
	struct vulture_rule rule = {};
	int c;

	while ((c = getopt_long(argc, argv, "c:l:r:a:o:", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			rule.cgroup = read_cgroup(optarg);
			rule.by_fd = geteuid();
			if (rule.by_fd)
				rule.cgroup_fd = cgroup_descriptor(optarg);
			break;
		case 'l':
			rule.local_port = (uint16_t)read_number(optarg, "port", 1, 65535);
			break;
		case 'r':
			rule.remote_port = (uint16_t)read_number(optarg, "port", 1, 65535);
			break;
		case 'a':
			read_prefix(optarg, &rule);
			break;
		case 'o':
			read_option(&rule.options, optarg);
			break;
		default:
			wrong("rule add: see above");
		}
	}
	if (optind != argc)
		wrong("rule add takes no argument '%s'", argv[optind]);
	if (!rule.cgroup && !rule.local_port && !rule.remote_port && !rule.family)
		wrong("rule add needs at least one of --cgroup, --local-port, --remote-port, --remote");
	check(vulture_rule_add(v, &rule));
	if (json) {
		json_rule(&rule);
		putchar('\n');
	} else {
		printf("rule %u\n", rule.id);
	}
	return 0;
}

static int do_rule(int argc, char **argv)
{
	if (argc < 2)
		wrong("rule needs add, del or list");
	if (!strcmp(argv[1], "add"))
		return rule_add(argc - 1, argv + 1);
	if (!strcmp(argv[1], "del")) {
		if (argc != 3)
			wrong("rule del takes one ID");
		check(vulture_rule_del(v, (uint32_t)read_number(argv[2], "id", 1, UINT32_MAX)));
		return 0;
	}
	if (strcmp(argv[1], "list") || argc != 2)
		wrong("rule takes add, del or list, not '%s'", argv[argc - 1]);
	return list_rules();
}

static int do_set(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "max-flows", required_argument, NULL, 'm' },
		{ "option", required_argument, NULL, 'o' },
		{}
	};
	struct vulture_options options = {};
	uint32_t max_flows = 0;
	bool has_max = false;
	int c;

	while ((c = getopt_long(argc, argv, "m:o:", longs, NULL)) != -1) {
		if (c == 'm') {
			max_flows = (uint32_t)read_number(optarg, "max-flows", 0, UINT32_MAX);
			has_max = true;
		} else if (c == 'o') {
			read_option(&options, optarg);
		} else {
			wrong("set: see above");
		}
	}
	if (optind != argc)
		wrong("set takes no argument '%s'", argv[optind]);
	if (!has_max && !options.set)
		wrong("set needs -m or -o");
	check(vulture_set_defaults(v, &options, has_max ? &max_flows : NULL));
	return 0;
}

/* Where the v2 hierarchy is; "" if nowhere. */
void find_cgroup_root(char *path, size_t room)
{
	char line[1024], type[64], dir[512];
	FILE *mounts = fopen("/proc/self/mounts", "re");

	*path = '\0';
	if (!mounts)
		return;
	while (fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %511s %63s", dir, type) == 2 && !strcmp(type, "cgroup2")) {
			snprintf(path, room, "%s", dir);
			break;
		}
	}
	fclose(mounts);
}

/* without_module: it does what it can where the kernel module is absent */
static const struct command {
	const char *name;
	int (*function)(int argc, char **argv);
	bool without_module;
} commands[] = {
	{ "start", do_start, false }, { "stop", do_stop, false }, { "show", do_show, false },
	{ "list", do_list, false }, { "monitor", do_monitor, false }, { "top", do_top, true },
	{ "metrics", do_metrics, true }, { "run", do_run, true },
	{ "bg", do_bg, true }, { "fg", do_fg, true }, { "hold", do_hold, true },
	{ "apply", do_apply, true }, { "showconf", do_showconf, true },
	{ "rule", do_rule, false }, { "set", do_set, false },
};

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	wrong("there is no command '%s'", name);
}

static int help_options(void)
{
	unsigned int i;

	for (i = 1; vulture_option_name(i); i++)
		puts(vulture_option_name(i));
	return 0;
}

/* Options before the command. Return: index of the command, argc if there is none. */
static int read_globals(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j")) {
			json = true;
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage_text, stdout);
			exit(0);
		} else if (!strcmp(argv[i], "--help-options")) {
			exit(help_options());
		} else if (!strcmp(argv[i], "--version")) {
			puts("vulturectl " LBE_VERSION);
			exit(0);
		} else {
			wrong("there is no option '%s'", argv[i]);
		}
	}
	return i;
}

int main(int argc, char **argv)
{
	int first = read_globals(argc, argv), i, end = argc, status;
	const struct command *command = find_command(first < argc ? argv[first] : "top");

	/* --json may stand anywhere, except in the command of run. */
	for (i = first + 1; i < end && strcmp(command->name, "run"); i++) {
		if (strcmp(argv[i], "--json") && strcmp(argv[i], "-j"))
			continue;
		json = true;
		memmove(&argv[i], &argv[i + 1], (end - i) * sizeof(*argv));
		end--;
		i--;
	}
	opterr = 1;
	v = vulture_open();
	if (!v && !command->without_module)
		refused("%s", vulture_error(NULL));
	status = command->function(end - first, argv + first);
	vulture_close(v);
	if (fflush(stdout) || ferror(stdout))
		return 1;
	return status;
}
