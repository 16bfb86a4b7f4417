// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/* libvulture: functions that allocate, fill and read the opaque structs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct vulture_options *vulture_options_new(void)
{
	return calloc(1, sizeof(struct vulture_options));
}

void vulture_options_free(struct vulture_options *options)
{
	free(options);
}

int vulture_option_get(const struct vulture_options *options, const char *name, uint32_t *value)
{
	unsigned int option = lv_option_number(name);

	if (!option)
		return -1;
	if (!(options->set & (1ULL << option))) {
		errno = ENOENT;
		return -1;
	}
	*value = options->value[option];
	return 0;
}

/* Connections */

struct vulture_flow *vulture_flow_new(void)
{
	return calloc(1, sizeof(struct vulture_flow));
}

void vulture_flow_free(struct vulture_flow *flow)
{
	free(flow);
}

uint64_t vulture_flow_id(const struct vulture_flow *flow)
{
	return flow->id;
}

const struct vulture_address *vulture_flow_address(const struct vulture_flow *flow)
{
	return &flow->address;
}

uint32_t vulture_flow_rule(const struct vulture_flow *flow)
{
	return flow->rule;
}

uint32_t vulture_flow_controller(const struct vulture_flow *flow)
{
	return flow->controller;
}

const struct vulture_options *vulture_flow_options(const struct vulture_flow *flow)
{
	return &flow->options;
}

/* Names of the numbers that every connection has. The controller's statistics follow them. */
static const char *const common[] = {
	"rwnd_bytes", "own_bytes", "advertised_bytes", "rtt_us", "min_rtt_us", "queue_us",
	"mss_bytes", "age_us", "segments", "bytes", "acks", "rewritten", "updates",
};

#define N_COMMON	(sizeof(common) / sizeof(common[0]))

static int64_t common_number(const struct vulture_flow *flow, unsigned int number)
{
	const int64_t values[N_COMMON] = {
		flow->rwnd_bytes, flow->own_bytes, flow->advertised_bytes, flow->rtt_us,
		flow->min_rtt_us, flow->queue_us, flow->mss_bytes, (int64_t)flow->age_us,
		(int64_t)flow->segments, (int64_t)flow->bytes, (int64_t)flow->acks,
		(int64_t)flow->rewritten, (int64_t)flow->updates,
	};

	return values[number];
}

const char *vulture_flow_name(const struct vulture_flow *flow, unsigned int number)
{
	if (number < N_COMMON)
		return common[number];
	number -= N_COMMON;
	return number < flow->n_stats ? flow->stats[number].name : NULL;
}

int vulture_flow_number(const struct vulture_flow *flow, const char *name, int64_t *value)
{
	const char *one;
	unsigned int i;

	for (i = 0; (one = vulture_flow_name(flow, i)); i++) {
		if (strcmp(one, name))
			continue;
		*value = i < N_COMMON ? common_number(flow, i) : flow->stats[i - N_COMMON].value;
		return 0;
	}
	errno = ENOENT;
	return -1;
}

/* Rules */

struct vulture_rule *vulture_rule_new(void)
{
	return calloc(1, sizeof(struct vulture_rule));
}

void vulture_rule_free(struct vulture_rule *rule)
{
	free(rule);
}

void vulture_rule_set_cgroup(struct vulture_rule *rule, uint64_t inode)
{
	rule->by_fd = false;
	rule->cgroup = inode;
}

void vulture_rule_set_cgroup_fd(struct vulture_rule *rule, int fd)
{
	rule->by_fd = true;
	rule->cgroup_fd = fd;
}

void vulture_rule_set_ports(struct vulture_rule *rule, uint16_t local, uint16_t remote)
{
	rule->local_port = local;
	rule->remote_port = remote;
}

int vulture_rule_set_remote(struct vulture_rule *rule, const struct sockaddr *prefix,
			    unsigned int bits)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)prefix;
	const struct sockaddr_in *in = (const struct sockaddr_in *)prefix;

	if (prefix->sa_family != AF_INET && prefix->sa_family != AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	if (bits > (prefix->sa_family == AF_INET ? 32 : 128)) {
		errno = ERANGE;
		return -1;
	}
	rule->family = prefix->sa_family;
	rule->prefix_len = (uint8_t)bits;
	if (rule->family == AF_INET)
		memcpy(rule->prefix, &in->sin_addr, sizeof(in->sin_addr));
	else
		memcpy(rule->prefix, &in6->sin6_addr, sizeof(in6->sin6_addr));
	return 0;
}

void vulture_rule_set_dscp(struct vulture_rule *rule, uint8_t dscp)
{
	rule->by_dscp = true;
	rule->dscp = dscp;
}

void vulture_rule_set_foreground(struct vulture_rule *rule, bool foreground)
{
	rule->foreground = foreground;
}

void vulture_rule_set_options(struct vulture_rule *rule, const struct vulture_options *options)
{
	rule->options = *options;
	rule->has_asked = false;
}

uint32_t vulture_rule_id(const struct vulture_rule *rule)
{
	return rule->id;
}

uint64_t vulture_rule_cgroup(const struct vulture_rule *rule)
{
	return rule->cgroup;
}

uint16_t vulture_rule_local_port(const struct vulture_rule *rule)
{
	return rule->local_port;
}

uint16_t vulture_rule_remote_port(const struct vulture_rule *rule)
{
	return rule->remote_port;
}

int vulture_rule_remote(const struct vulture_rule *rule, struct sockaddr_in6 *prefix)
{
	struct sockaddr_in *in = (struct sockaddr_in *)prefix;

	if (!rule->family)
		return -1;
	memset(prefix, 0, sizeof(*prefix));
	prefix->sin6_family = (sa_family_t)rule->family;
	if (rule->family == AF_INET)
		memcpy(&in->sin_addr, rule->prefix, sizeof(in->sin_addr));
	else
		memcpy(&prefix->sin6_addr, rule->prefix, sizeof(prefix->sin6_addr));
	return rule->prefix_len;
}

int64_t vulture_rule_uid(const struct vulture_rule *rule)
{
	return rule->owned ? (int64_t)rule->uid : -1;
}

int vulture_rule_dscp(const struct vulture_rule *rule)
{
	return rule->by_dscp ? rule->dscp : -1;
}

bool vulture_rule_foreground(const struct vulture_rule *rule)
{
	return rule->foreground;
}

uint64_t vulture_rule_started(const struct vulture_rule *rule)
{
	return rule->started;
}

uint64_t vulture_rule_failed(const struct vulture_rule *rule)
{
	return rule->failed;
}

const struct vulture_options *vulture_rule_options(const struct vulture_rule *rule)
{
	return &rule->options;
}

/* Defaults */

struct vulture_defaults *vulture_defaults_new(void)
{
	return calloc(1, sizeof(struct vulture_defaults));
}

void vulture_defaults_free(struct vulture_defaults *defaults)
{
	free(defaults);
}

uint32_t vulture_defaults_max_flows(const struct vulture_defaults *defaults)
{
	return defaults->max_flows;
}

uint32_t vulture_defaults_flows(const struct vulture_defaults *defaults)
{
	return defaults->flows;
}

uint32_t vulture_defaults_flow_bytes(const struct vulture_defaults *defaults)
{
	return defaults->flow_bytes;
}

const char *vulture_defaults_version(const struct vulture_defaults *defaults)
{
	return defaults->version;
}

const struct vulture_options *vulture_defaults_options(const struct vulture_defaults *defaults)
{
	return &defaults->options;
}
