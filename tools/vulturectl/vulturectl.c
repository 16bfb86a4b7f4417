// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl: the command line that puts programs in the background, uploads and downloads.
 *
 * Exit status: 0 done; 1 refused or failed (a line on standard error says why);
 * 2 the command line is wrong. run has the exit status of its command, or 126
 * or 127 with the meanings that they have in a shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "print.h"
#include "sockets.h"

#include "../../vulture/uapi/vulture.h"

static const char usage_text[] =
	"usage: vulturectl [--json] [COMMAND ...]\n"
	"\n"
	"  top [-n SECONDS] [-c COUNT]       show live what runs in the background; the default\n"
	"  start TARGET [-o NAME=VALUE]...   put downloads in the background\n"
	"  stop TARGET                       give them their window back, at once\n"
	"  show [--all] TARGET               describe one download; --all: print every counter\n"
	"  show                              print defaults, limits and version\n"
	"  list                              print a line for each download in the background\n"
	"  monitor [-n SECONDS]              show the same live, with rates\n"
	"  monitor --events                  print a line for each start and end\n"
	"  metrics                           print the table and counters for Prometheus\n"
	"  run [--up] [--down] [--weight N] [--deadline T] [-u USER] [-o NAME=VALUE]... -- COMMAND...\n"
	"                                    run a command in the background: what it and its children\n"
	"                                    send, receive, or both (the default); needs no privilege\n"
	"  bg PID|UNIT                       put a running program in the background, both ways, at once,\n"
	"                                    and what it opens later\n"
	"  fg PID|UNIT                       take it back to the foreground\n"
	"  hold [--users] DIR [-o NAME=VALUE]...  keep a v2 cgroup in the background, both ways, until\n"
	"                                    this ends; --users: and what users run by vulturectl, too\n"
	"  apply [FILE]                      put in force what FILE (/etc/lbe/background.conf) says,\n"
	"                                    and remove what it no longer says\n"
	"  showconf                          print what apply has put in force, as such a file\n"
	"  rule add MATCH... [-o NAME=VALUE]...   put each new connection that matches in the background\n"
	"  rule add --foreground MATCH...    keep each new connection that matches in the foreground\n"
	"  rule del ID                       delete a rule\n"
	"  rule list                         print all rules\n"
	"  set [-m MAX] [-o NAME=VALUE]...   set the limit and default options of this network namespace\n"
	"\n"
	"  TARGET: LOCAL REMOTE   addresses with ports, 10.0.0.1:80 or [fd00::1]:80\n"
	"          --pid PID      all TCP sockets of a process (start, stop)\n"
	"          --cgroup DIR   all TCP sockets of a v2 cgroup and of those below it (start, stop)\n"
	"          --id ID        a connection's number, as list shows it (stop, show)\n"
	"  MATCH:  --cgroup DIR  --local-port N  --remote-port N  --remote PREFIX[/BITS]\n"
	"          --dscp le|cs1|N  the DSCP, 0 to 63, with which this machine's socket sends\n"
	"\n"
	"\"vulturectl COMMAND --help\" describes one command, \"vulturectl --help-options\" lists what\n"
	"-o takes, and vulturectl(8) is the manual.\n";

bool json;
struct vulture *v;

const char *command_name;

/* Print the lines of the usage that begin with @word, and the more indented lines that continue
 * them. @first is printed before the first of these lines, @others before each further one.
 */
static void usage_of(const char *word, const char *first, const char *others, FILE *to)
{
	size_t length = strlen(word);
	const char *line, *next;
	bool mine = false;

	for (line = usage_text; *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (strncmp(line, "   ", 3)) {
			mine = !strncmp(line, "  ", 2) && !strncmp(line + 2, word, length) &&
			       strchr(" :\n", line[2 + length]);
			if (mine) {
				fprintf(to, "%s%.*s", first, (int)(next - line - 2), line + 2);
				first = others;
			}
		} else if (mine) {
			fwrite(line, 1, (size_t)(next - line), to);
		}
	}
}

void usage_of_command(FILE *to)
{
	if (!command_name) {
		fputs("usage: vulturectl [--json] [COMMAND ...]; --help lists the commands\n", to);
		return;
	}
	usage_of(command_name, "usage: vulturectl ", "       vulturectl ", to);
	if (!strcmp(command_name, "start") || !strcmp(command_name, "stop") ||
	    !strcmp(command_name, "show"))
		usage_of("TARGET", "  ", "  ", to);
	if (!strcmp(command_name, "rule"))
		usage_of("MATCH", "  ", "  ", to);
}

/* The connections that start, stop and show act on, and the options for start. */
struct target {
	enum { BY_NOTHING, BY_ADDRESS, BY_PID, BY_CGROUP, BY_ID } by;
	struct vulture_address address;
	uint64_t number;
	const char *dir;	/* directory of the cgroup */
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
			wrong_option();
		}
	}
	if (optind == argc)
		return;
	if (argc - optind != 2)
		wrong("%s takes LOCAL and REMOTE, or --pid, --cgroup, --id", command_name);
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
	if (result >= 0)
		return;
	say("%s", vulture_error(v));
	exit(errno == ERANGE ? 2 : 1);
}

/* Commands */

/* Without privilege each socket is changed through a duplicate of its descriptor (sockets.h). */
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
		wrong("%s takes no argument '%s'", command_name, argv[1]);
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

/* Remove a word from the arguments. Return: whether it was there. */
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
			wrong_option();
		}
	}
	if (optind != argc)
		wrong("set takes no argument '%s'", argv[optind]);
	if (!has_max && !options.set)
		wrong("set needs -m or -o");
	check(vulture_set_defaults(v, &options, has_max ? &max_flows : NULL));
	return 0;
}

/* without_module: the command also runs, with what remains possible, if the module is absent */
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

/* Whether an argument asks for help. Of run only the first counts: others may belong to the command
 * that it runs.
 */
static bool asks_for_help(int argc, char **argv)
{
	int i;

	if (argc > 2 && !strcmp(argv[0], "run"))
		argc = 2;
	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

/*
 * Open /dev/null in place of standard descriptors that the caller has closed, so that no file
 * opened later gets their numbers. A read from them finds the end of the file, a write fails. They
 * are closed on exec, so a command of run finds them closed.
 */
static void hold_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Write out what has been printed. Return: whether that succeeded */
static bool flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	say("cannot write to standard output");
	return false;
}

static int help_options(void)
{
	static const char *const nests[] = {
		[VULTURE_O_PAPER] = "paper", [VULTURE_O_CREDIT] = "credit",
		[VULTURE_O_RLEDBAT] = "rledbat",
	};
	static const char line[] = "%-15s %-23s %-8s %-9s %s\n";
	char range[24], def[12];
	unsigned int i;

	printf(line, "NAME", "VALUES", "DEFAULT", "UNIT", "CONTROLLER");
	printf(line, lv_options[1].name, "paper, credit, rledbat",
	       vulture_controller_name(lv_options[1].def), "-", "all");
	for (i = 2; i < lv_n_options; i++) {
		const struct lv_option *option = &lv_options[i];

		snprintf(range, sizeof(range), "%u to %u", option->min, option->max);
		snprintf(def, sizeof(def), "%u", option->def);
		printf(line, option->name, range, def, option->unit, nests[option->nest]);
	}
	return !flush();
}

/* Read the options before the command. Return: index of the command, or argc if there is none. */
static int read_globals(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j")) {
			json = true;
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage_text, stdout);
			exit(!flush());
		} else if (!strcmp(argv[i], "--help-options")) {
			exit(help_options());
		} else if (!strcmp(argv[i], "--version")) {
			puts("vulturectl " LBE_VERSION);
			exit(!flush());
		} else {
			wrong("there is no option '%s'", argv[i]);
		}
	}
	return i;
}

int main(int argc, char **argv)
{
	int first, i, end = argc, status;
	const struct command *command;
	char title[32];

	hold_standard();
	first = read_globals(argc, argv);
	command = find_command(first < argc ? argv[first] : "top");
	command_name = command->name;
	if (asks_for_help(argc - first, argv + first)) {
		usage_of_command(stdout);
		return !flush();
	}
	/* --json is accepted anywhere, except after run, where it may belong to run's command. */
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
	/* getopt begins its messages with this text */
	snprintf(title, sizeof(title), "vulturectl: %s", command->name);
	if (first < argc)
		argv[first] = title;
	status = command->function(end - first, argv + first);
	vulture_close(v);
	return flush() ? status : 1;
}
