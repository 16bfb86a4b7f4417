// SPDX-License-Identifier: GPL-2.0
/* vulturectl rule: adds, deletes and lists the rules for new connections. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "print.h"

/* All rules. They are read completely before the first is printed, so that a list that fails half
 * way does not leave an incomplete JSON document.
 */
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

struct vulture_rule *all_rules(size_t *n)
{
	struct rules rules = {};

	check(vulture_rule_list(v, keep_rule, &rules));
	*n = rules.n;
	return rules.at;
}

static int list_rules(void)
{
	struct vulture_rule *rules;
	size_t i, n;

	rules = all_rules(&n);
	for (i = 0; i < n; i++) {
		if (json) {
			puts(i ? "," : "[");
			json_rule(&rules[i]);
		} else {
			text_rule(&rules[i]);
		}
	}
	if (json)
		puts(n ? "\n]" : "[]");
	free(rules);
	return 0;
}

static int rule_add(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "cgroup", required_argument, NULL, 'c' },
		{ "local-port", required_argument, NULL, 'l' },
		{ "remote-port", required_argument, NULL, 'r' },
		{ "remote", required_argument, NULL, 'a' },
		{ "dscp", required_argument, NULL, 'd' },
		{ "foreground", no_argument, NULL, 'f' },
		{ "option", required_argument, NULL, 'o' },
		{}
	};
	struct vulture_rule rule = {};
	int c;

	while ((c = getopt_long(argc, argv, "c:l:r:a:d:o:", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			rule.cgroup = read_cgroup(optarg);
			rule.by_fd = geteuid();
			if (rule.by_fd)
				rule.cgroup_fd = cgroup_descriptor(optarg);
			break;
		case 'l':
			must(set_port(&rule.local_port, optarg));
			break;
		case 'r':
			must(set_port(&rule.remote_port, optarg));
			break;
		case 'a':
			must(set_prefix(&rule, optarg));
			break;
		case 'd':
			must(set_dscp(&rule, optarg));
			break;
		case 'f':
			rule.foreground = true;
			break;
		case 'o':
			read_option(&rule.options, optarg);
			break;
		default:
			wrong_option();
		}
	}
	if (optind != argc)
		wrong("rule add takes no argument '%s'", argv[optind]);
	if (!rule.cgroup && !rule.local_port && !rule.remote_port && !rule.family && !rule.by_dscp)
		wrong("rule add needs at least one of --cgroup, --local-port, --remote-port, --remote, --dscp");
	if (rule.foreground && rule.options.set)
		wrong("rule add: --foreground starts nothing: leave -o out");
	check(vulture_rule_add(v, &rule));
	if (json) {
		json_rule(&rule);
		putchar('\n');
	} else {
		printf("rule %u\n", rule.id);
	}
	return 0;
}

int do_rule(int argc, char **argv)
{
	if (argc < 2)
		wrong("rule needs add, del or list");
	if (!strcmp(argv[1], "add")) {
		argv[1] = argv[0];	/* getopt begins its messages with this text */
		return rule_add(argc - 1, argv + 1);
	}
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
