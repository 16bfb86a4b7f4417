// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/* libvulture: one function for each request to the kernel module. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

/* Building a request */

/* The nest of one controller, if any of its options is set. */
static void put_values(struct nlmsghdr *nlh, uint16_t type, const struct vulture_options *options)
{
	struct nlattr *nest = NULL;
	unsigned int i;

	for (i = 1; i < lv_n_options; i++) {
		if (lv_options[i].nest != type || !(options->set & (1ULL << i)))
			continue;
		if (!nest)
			nest = mnl_attr_nest_start(nlh, type);
		mnl_attr_put_u32(nlh, lv_options[i].attr, options->value[i]);
	}
	if (nest)
		mnl_attr_nest_end(nlh, nest);
}

static void put_options(struct nlmsghdr *nlh, uint16_t type, const struct vulture_options *options)
{
	struct nlattr *nest;

	if (!options || !options->set)
		return;
	nest = mnl_attr_nest_start(nlh, type);
	if (options->set & (1ULL << VULTURE_OPTION_CONTROLLER))
		mnl_attr_put_u32(nlh, VULTURE_O_CONTROLLER,
				 options->value[VULTURE_OPTION_CONTROLLER]);
	put_values(nlh, VULTURE_O_PAPER, options);
	put_values(nlh, VULTURE_O_CREDIT, options);
	put_values(nlh, VULTURE_O_RLEDBAT, options);
	mnl_attr_nest_end(nlh, nest);
}

static void put_end(struct nlmsghdr *nlh, uint16_t address, uint16_t port,
		    const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family == AF_INET) {
		mnl_attr_put(nlh, address, sizeof(in->sin_addr), &in->sin_addr);
		mnl_attr_put_u16(nlh, port, ntohs(in->sin_port));
	} else {
		mnl_attr_put(nlh, address, sizeof(in6->sin6_addr), &in6->sin6_addr);
		mnl_attr_put_u16(nlh, port, ntohs(in6->sin6_port));
	}
}

static void put_address(struct nlmsghdr *nlh, const struct vulture_address *address)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, VULTURE_A_ADDR);

	put_end(nlh, VULTURE_ADDR_LOCAL, VULTURE_ADDR_LOCAL_PORT, &address->local.sa);
	put_end(nlh, VULTURE_ADDR_REMOTE, VULTURE_ADDR_REMOTE_PORT, &address->remote.sa);
	mnl_attr_nest_end(nlh, nest);
}

/* Reading an answer */

static void on_count(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];

	lv_parse_message(nlh, attrs, VULTURE_A_MAX);
	*(int *)sink->result = (int)lv_get_u32(attrs[VULTURE_A_COUNT]);
}

static void on_flow(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];
	struct vulture_flow flow;

	lv_parse_message(nlh, attrs, VULTURE_A_MAX);
	lv_read_flow(attrs[VULTURE_A_FLOW], &flow);
	if (sink->each_flow)
		sink->ended = sink->each_flow(&flow, sink->arg);
	else
		*(struct vulture_flow *)sink->result = flow;
}

static void on_rule(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];
	struct vulture_rule rule;

	lv_parse_message(nlh, attrs, VULTURE_A_MAX);
	lv_read_rule(attrs[VULTURE_A_RULE], &rule);
	if (sink->each_rule)
		sink->ended = sink->each_rule(&rule, sink->arg);
	else
		*(struct vulture_rule *)sink->result = rule;
}

static void on_defaults(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];
	struct vulture_defaults *defaults = sink->result;

	lv_parse_message(nlh, attrs, VULTURE_A_MAX);
	memset(defaults, 0, sizeof(*defaults));
	lv_read_options(attrs[VULTURE_A_OPTIONS], &defaults->options);
	defaults->max_flows = lv_get_u32(attrs[VULTURE_A_MAX_FLOWS]);
	defaults->flows = lv_get_u32(attrs[VULTURE_A_COUNT]);
	defaults->flow_bytes = lv_get_u32(attrs[VULTURE_A_FLOW_BYTES]);
	if (attrs[VULTURE_A_VERSION])
		snprintf(defaults->version, sizeof(defaults->version), "%s",
			 mnl_attr_get_str(attrs[VULTURE_A_VERSION]));
}

static int talk_count(struct vulture *v, struct nlmsghdr *nlh)
{
	int count = 0;
	struct sink sink = { .message = on_count, .result = &count };

	return lv_talk(v, nlh, &sink) < 0 ? -1 : count;
}

static int talk_flow(struct vulture *v, struct nlmsghdr *nlh, struct vulture_flow *flow)
{
	struct sink sink = { .message = on_flow, .result = flow };

	return lv_talk(v, nlh, &sink);
}

/* Requests about one connection, or about all connections of a process or cgroup */

static int nothing_or_error(int count)
{
	return count < 0 ? -1 : 0;
}

int vulture_start(struct vulture *v, int fd, const struct vulture_options *options)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_START, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_FD, fd);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_stop(struct vulture *v, int fd)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_FD, fd);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_get(struct vulture *v, int fd, struct vulture_flow *flow)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_GET, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_FD, fd);
	return talk_flow(v, nlh, flow);
}

int vulture_start_address(struct vulture *v, const struct vulture_address *address,
			  const struct vulture_options *options)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_START, 0);

	put_address(nlh, address);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_stop_address(struct vulture *v, const struct vulture_address *address)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_STOP, 0);

	put_address(nlh, address);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_get_address(struct vulture *v, const struct vulture_address *address,
			struct vulture_flow *flow)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_GET, 0);

	put_address(nlh, address);
	return talk_flow(v, nlh, flow);
}

int vulture_start_pid(struct vulture *v, uint32_t pid, const struct vulture_options *options)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_START, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_PID, pid);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return talk_count(v, nlh);
}

int vulture_stop_pid(struct vulture *v, uint32_t pid)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_PID, pid);
	return talk_count(v, nlh);
}

int vulture_start_cgroup(struct vulture *v, uint64_t cgroup,
			 const struct vulture_options *options)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_START, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_CGROUP, cgroup);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return talk_count(v, nlh);
}

int vulture_stop_cgroup(struct vulture *v, uint64_t cgroup)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_CGROUP, cgroup);
	return talk_count(v, nlh);
}

int vulture_get_id(struct vulture *v, uint64_t id, struct vulture_flow *flow)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_GET, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_ID, id);
	return talk_flow(v, nlh, flow);
}

int vulture_stop_id(struct vulture *v, uint64_t id)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_ID, id);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_list(struct vulture *v, int (*each)(const struct vulture_flow *flow, void *arg),
		 void *arg)
{
	struct sink sink = { .message = on_flow, .each_flow = each, .arg = arg };

	if (lv_talk(v, lv_command(v, VULTURE_CMD_GET, NLM_F_DUMP), &sink) < 0)
		return -1;
	return sink.ended;
}

/* Requests about rules and defaults */

int vulture_rule_add(struct vulture *v, struct vulture_rule *rule)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_RULE_ADD, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, VULTURE_A_RULE);
	const struct vulture_options *options = rule->has_asked ? &rule->asked : &rule->options;
	struct vulture_rule answer = {};
	struct sink sink = { .message = on_rule, .result = &answer };

	if (rule->by_fd)
		mnl_attr_put_u32(nlh, VULTURE_R_CGROUP_FD, (uint32_t)rule->cgroup_fd);
	else if (rule->cgroup)
		mnl_attr_put_u64(nlh, VULTURE_R_CGROUP, rule->cgroup);
	if (rule->local_port)
		mnl_attr_put_u16(nlh, VULTURE_R_LOCAL_PORT, rule->local_port);
	if (rule->remote_port)
		mnl_attr_put_u16(nlh, VULTURE_R_REMOTE_PORT, rule->remote_port);
	if (rule->family) {
		mnl_attr_put(nlh, VULTURE_R_REMOTE_PREFIX, rule->family == AF_INET ? 4 : 16,
			     rule->prefix);
		mnl_attr_put_u8(nlh, VULTURE_R_REMOTE_PREFIX_BITS, rule->prefix_len);
	}
	if (rule->by_dscp)
		mnl_attr_put_u8(nlh, VULTURE_R_DSCP, rule->dscp);
	if (rule->foreground)
		mnl_attr_put(nlh, VULTURE_R_FOREGROUND, 0, NULL);
	put_options(nlh, VULTURE_R_OPTIONS, options);
	mnl_attr_nest_end(nlh, nest);
	if (lv_talk(v, nlh, &sink))
		return -1;
	/* what the kernel does not report, so that a second call sends the same request */
	answer.by_fd = rule->by_fd;
	answer.cgroup_fd = rule->cgroup_fd;
	answer.has_asked = true;
	answer.asked = *options;
	*rule = answer;
	return 0;
}

int vulture_rule_del(struct vulture *v, uint32_t id)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_RULE_DEL, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, VULTURE_A_RULE);

	mnl_attr_put_u32(nlh, VULTURE_R_ID, id);
	mnl_attr_nest_end(nlh, nest);
	return lv_talk(v, nlh, NULL);
}

int vulture_rule_list(struct vulture *v, int (*each)(const struct vulture_rule *rule, void *arg),
		      void *arg)
{
	struct sink sink = { .message = on_rule, .each_rule = each, .arg = arg };

	if (lv_talk(v, lv_command(v, VULTURE_CMD_RULE_GET, NLM_F_DUMP), &sink) < 0)
		return -1;
	return sink.ended;
}

int vulture_get_defaults(struct vulture *v, struct vulture_defaults *defaults)
{
	struct sink sink = { .message = on_defaults, .result = defaults };

	return lv_talk(v, lv_command(v, VULTURE_CMD_GET_DEFAULTS, 0), &sink);
}

int vulture_set_defaults(struct vulture *v, const struct vulture_options *options,
			 const uint32_t *max_flows)
{
	struct nlmsghdr *nlh = lv_command(v, VULTURE_CMD_SET, 0);

	put_options(nlh, VULTURE_A_OPTIONS, options);
	if (max_flows)
		mnl_attr_put_u32(nlh, VULTURE_A_MAX_FLOWS, *max_flows);
	return lv_talk(v, nlh, NULL);
}
