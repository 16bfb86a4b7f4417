// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/* libvulture: conversion of the kernel's messages to structs. */
#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <string.h>

#include "parts.h"

/* Attributes of one nest, indexed by type. Unknown types are skipped, so that
 * a newer kernel may send more.
 */
struct table {
	const struct nlattr **attrs;
	unsigned int max;
};

static int collect(const struct nlattr *attr, void *data)
{
	struct table *table = data;

	if (mnl_attr_get_type(attr) <= table->max)
		table->attrs[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

void lv_parse_nest(const struct nlattr *nest, const struct nlattr **attrs, unsigned int max)
{
	struct table table = { attrs, max };

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	if (nest)
		mnl_attr_parse_nested(nest, collect, &table);
}

void lv_parse_message(const struct nlmsghdr *nlh, const struct nlattr **attrs, unsigned int max)
{
	struct table table = { attrs, max };

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), collect, &table);
}

uint32_t lv_get_u32(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u32(attr) : 0;
}

uint16_t lv_get_u16(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u16(attr) : 0;
}

uint64_t lv_get_u64(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u64(attr) : 0;
}

void lv_read_options(const struct nlattr *nest, struct vulture_options *options)
{
	const struct nlattr *outer[VULTURE_O_MAX + 1], *inner[VULTURE_OPTIONS + 1];
	unsigned int i;

	memset(options, 0, sizeof(*options));
	lv_parse_nest(nest, outer, VULTURE_O_MAX);
	for (i = 1; i < lv_n_options; i++) {
		const struct nlattr *attr = outer[lv_options[i].attr];

		if (lv_options[i].nest) {
			lv_parse_nest(outer[lv_options[i].nest], inner, VULTURE_OPTIONS);
			attr = inner[lv_options[i].attr];
		}
		if (!attr)
			continue;
		options->set |= 1ULL << i;
		options->value[i] = mnl_attr_get_u32(attr);
	}
}

/* The statistics of the connection's controller, with their names. */
static void read_stats(const struct nlattr *const *flow_attrs, struct vulture_flow *flow)
{
	size_t k;

	for (k = 0; k < LV_CONTROLLERS; k++) {
		const struct nlattr *attrs[VULTURE_STATS + 1];
		size_t i;

		if (!flow_attrs[lv_stats[k].nest])
			continue;
		lv_parse_nest(flow_attrs[lv_stats[k].nest], attrs, VULTURE_STATS);
		for (i = 1; i < lv_stats[k].n; i++) {
			struct vulture_stat *stat = &flow->stats[flow->n_stats++];

			stat->name = lv_stat_name(&lv_stats[k], i);
			stat->value = (int64_t)lv_get_u64(attrs[i]);
		}
	}
}

static void read_end(const struct nlattr *address, const struct nlattr *port,
		     struct sockaddr_in6 *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (!address || !port)
		return;
	if (mnl_attr_get_payload_len(address) == sizeof(in->sin_addr)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(mnl_attr_get_u16(port));
		memcpy(&in->sin_addr, mnl_attr_get_payload(address), sizeof(in->sin_addr));
	} else if (mnl_attr_get_payload_len(address) == sizeof(to->sin6_addr)) {
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(mnl_attr_get_u16(port));
		memcpy(&to->sin6_addr, mnl_attr_get_payload(address), sizeof(to->sin6_addr));
	}
}

static void read_address(const struct nlattr *nest, struct vulture_address *address)
{
	const struct nlattr *attrs[VULTURE_ADDR_MAX + 1];

	lv_parse_nest(nest, attrs, VULTURE_ADDR_MAX);
	read_end(attrs[VULTURE_ADDR_LOCAL], attrs[VULTURE_ADDR_LOCAL_PORT], &address->local.in6);
	read_end(attrs[VULTURE_ADDR_REMOTE], attrs[VULTURE_ADDR_REMOTE_PORT],
		 &address->remote.in6);
}

void lv_read_flow(const struct nlattr *nest, struct vulture_flow *flow)
{
	const struct nlattr *a[VULTURE_F_MAX + 1];

	lv_parse_nest(nest, a, VULTURE_F_MAX);
	memset(flow, 0, sizeof(*flow));
	flow->id = lv_get_u64(a[VULTURE_F_ID]);
	read_address(a[VULTURE_F_ADDR], &flow->address);
	flow->rule = lv_get_u32(a[VULTURE_F_RULE]);
	lv_read_options(a[VULTURE_F_OPTIONS], &flow->options);
	flow->controller = flow->options.value[VULTURE_OPTION_CONTROLLER];
	flow->rwnd_bytes = lv_get_u32(a[VULTURE_F_WINDOW_BYTES]);
	flow->advertised_bytes = lv_get_u32(a[VULTURE_F_ADVERTISED_BYTES]);
	flow->own_bytes = lv_get_u32(a[VULTURE_F_OWN_BYTES]);
	flow->rtt_us = lv_get_u32(a[VULTURE_F_RTT_US]);
	flow->min_rtt_us = lv_get_u32(a[VULTURE_F_MIN_RTT_US]);
	flow->queue_us = lv_get_u32(a[VULTURE_F_QUEUE_US]);
	flow->mss_bytes = lv_get_u32(a[VULTURE_F_MSS_BYTES]);
	flow->age_us = lv_get_u64(a[VULTURE_F_AGE_US]);
	flow->segments = lv_get_u64(a[VULTURE_F_SEGMENTS]);
	flow->bytes = lv_get_u64(a[VULTURE_F_BYTES]);
	flow->acks = lv_get_u64(a[VULTURE_F_ACKS]);
	flow->rewritten = lv_get_u64(a[VULTURE_F_REWRITTEN]);
	flow->updates = lv_get_u64(a[VULTURE_F_UPDATES]);
	read_stats(a, flow);
}

void lv_read_rule(const struct nlattr *nest, struct vulture_rule *rule)
{
	const struct nlattr *a[VULTURE_R_MAX + 1];
	const struct nlattr *prefix;
	uint16_t length;

	lv_parse_nest(nest, a, VULTURE_R_MAX);
	memset(rule, 0, sizeof(*rule));
	rule->id = lv_get_u32(a[VULTURE_R_ID]);
	rule->cgroup = lv_get_u64(a[VULTURE_R_CGROUP]);
	rule->owned = a[VULTURE_R_UID];
	rule->uid = lv_get_u32(a[VULTURE_R_UID]);
	rule->local_port = lv_get_u16(a[VULTURE_R_LOCAL_PORT]);
	rule->remote_port = lv_get_u16(a[VULTURE_R_REMOTE_PORT]);
	lv_read_options(a[VULTURE_R_OPTIONS], &rule->options);
	rule->started = lv_get_u64(a[VULTURE_R_STARTED]);
	rule->failed = lv_get_u64(a[VULTURE_R_FAILED]);
	rule->by_dscp = a[VULTURE_R_DSCP];
	if (rule->by_dscp)
		rule->dscp = mnl_attr_get_u8(a[VULTURE_R_DSCP]);
	rule->foreground = a[VULTURE_R_FOREGROUND];
	prefix = a[VULTURE_R_REMOTE_PREFIX];
	if (!prefix)
		return;
	length = mnl_attr_get_payload_len(prefix);
	if (length != 4 && length != 16)
		return;
	rule->family = length == 4 ? AF_INET : AF_INET6;
	memcpy(rule->prefix, mnl_attr_get_payload(prefix), length);
	if (a[VULTURE_R_REMOTE_PREFIX_BITS])
		rule->prefix_len = mnl_attr_get_u8(a[VULTURE_R_REMOTE_PREFIX_BITS]);
}
