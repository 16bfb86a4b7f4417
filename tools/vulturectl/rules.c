// SPDX-License-Identifier: GPL-2.0
/* vulturectl rule: which new connections go to the background. */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "print.h"

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
			wrong_option();
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

int do_rule(int argc, char **argv)
{
	if (argc < 2)
		wrong("rule needs add, del or list");
	if (!strcmp(argv[1], "add")) {
		argv[1] = argv[0];	/* as getopt begins its sentences */
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
