// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/vulture.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <uapi/vulture.h>

/* Integer value ranges */
static const struct netlink_range_validation vulture_a_max_flows_range = {
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_paper_o_psi_us_range = {
	.min	= 1000ULL,
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_paper_o_cons_low_us_range = {
	.min	= 1ULL,
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_paper_o_cons_high_us_range = {
	.min	= 1ULL,
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_paper_o_aggr_low_us_range = {
	.min	= 1ULL,
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_paper_o_aggr_high_us_range = {
	.min	= 1ULL,
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_credit_o_min_kbit_range = {
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_credit_o_escape_s_range = {
	.max	= 86400ULL,
};

static const struct netlink_range_validation vulture_credit_o_weight_range = {
	.min	= 1ULL,
	.max	= 1000000ULL,
};

static const struct netlink_range_validation vulture_rledbat_o_target_us_range = {
	.min	= 1000ULL,
	.max	= 100000ULL,
};

/* Common nested types */
const struct nla_policy vulture_addr_nl_policy[VULTURE_ADDR_REMOTE_PORT + 1] = {
	[VULTURE_ADDR_LOCAL] = { .type = NLA_BINARY, },
	[VULTURE_ADDR_LOCAL_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[VULTURE_ADDR_REMOTE] = { .type = NLA_BINARY, },
	[VULTURE_ADDR_REMOTE_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
};

const struct nla_policy vulture_credit_options_nl_policy[VULTURE_CREDIT_O_WEIGHT + 1] = {
	[VULTURE_CREDIT_O_MIN_KBIT] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_credit_o_min_kbit_range),
	[VULTURE_CREDIT_O_ESCAPE_S] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_credit_o_escape_s_range),
	[VULTURE_CREDIT_O_WEIGHT] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_credit_o_weight_range),
};

const struct nla_policy vulture_options_nl_policy[VULTURE_O_RLEDBAT + 1] = {
	[VULTURE_O_CONTROLLER] = NLA_POLICY_MAX(NLA_U32, 2),
	[VULTURE_O_PAPER] = NLA_POLICY_NESTED(vulture_paper_options_nl_policy),
	[VULTURE_O_CREDIT] = NLA_POLICY_NESTED(vulture_credit_options_nl_policy),
	[VULTURE_O_RLEDBAT] = NLA_POLICY_NESTED(vulture_rledbat_options_nl_policy),
};

const struct nla_policy vulture_paper_options_nl_policy[VULTURE_PAPER_O_OBSERVE + 1] = {
	[VULTURE_PAPER_O_TICK_US] = NLA_POLICY_RANGE(NLA_U32, 1, 10000),
	[VULTURE_PAPER_O_PSI_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_paper_o_psi_us_range),
	[VULTURE_PAPER_O_CONS_LOW_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_paper_o_cons_low_us_range),
	[VULTURE_PAPER_O_CONS_HIGH_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_paper_o_cons_high_us_range),
	[VULTURE_PAPER_O_AGGR_LOW_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_paper_o_aggr_low_us_range),
	[VULTURE_PAPER_O_AGGR_HIGH_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_paper_o_aggr_high_us_range),
	[VULTURE_PAPER_O_PAIRING] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
	[VULTURE_PAPER_O_ALPHA_PERMILLE] = NLA_POLICY_RANGE(NLA_U32, 500, 999),
	[VULTURE_PAPER_O_INCREASE_SEGS] = NLA_POLICY_RANGE(NLA_U32, 1, 64),
	[VULTURE_PAPER_O_POSITIVE_TEST] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
	[VULTURE_PAPER_O_GOALS] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
	[VULTURE_PAPER_O_SETTLE] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
	[VULTURE_PAPER_O_RETRACT] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
	[VULTURE_PAPER_O_OBSERVE] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
};

const struct nla_policy vulture_rledbat_options_nl_policy[VULTURE_RLEDBAT_O_SLOWDOWN + 1] = {
	[VULTURE_RLEDBAT_O_TARGET_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_rledbat_o_target_us_range),
	[VULTURE_RLEDBAT_O_SLOWDOWN] = NLA_POLICY_RANGE(NLA_U32, 0, 1),
};

const struct nla_policy vulture_rule_nl_policy[VULTURE_R_FOREGROUND + 1] = {
	[VULTURE_R_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[VULTURE_R_CGROUP] = { .type = NLA_U64, },
	[VULTURE_R_LOCAL_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[VULTURE_R_REMOTE_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[VULTURE_R_REMOTE_PREFIX] = { .type = NLA_BINARY, },
	[VULTURE_R_REMOTE_PREFIX_BITS] = NLA_POLICY_MAX(NLA_U8, 128),
	[VULTURE_R_OPTIONS] = NLA_POLICY_NESTED(vulture_options_nl_policy),
	[VULTURE_R_STARTED] = { .type = NLA_U64, },
	[VULTURE_R_FAILED] = { .type = NLA_U64, },
	[VULTURE_R_CGROUP_FD] = { .type = NLA_U32, },
	[VULTURE_R_UID] = { .type = NLA_U32, },
	[VULTURE_R_DSCP] = NLA_POLICY_MAX(NLA_U8, 63),
	[VULTURE_R_FOREGROUND] = { .type = NLA_FLAG, },
};

/* VULTURE_CMD_START - do */
static const struct nla_policy vulture_start_nl_policy[VULTURE_A_OPTIONS + 1] = {
	[VULTURE_A_FD] = { .type = NLA_U32, },
	[VULTURE_A_ADDR] = NLA_POLICY_NESTED(vulture_addr_nl_policy),
	[VULTURE_A_PID] = NLA_POLICY_MIN(NLA_U32, 1),
	[VULTURE_A_CGROUP] = { .type = NLA_U64, },
	[VULTURE_A_OPTIONS] = NLA_POLICY_NESTED(vulture_options_nl_policy),
};

/* VULTURE_CMD_STOP - do */
static const struct nla_policy vulture_stop_nl_policy[VULTURE_A_ID + 1] = {
	[VULTURE_A_FD] = { .type = NLA_U32, },
	[VULTURE_A_ADDR] = NLA_POLICY_NESTED(vulture_addr_nl_policy),
	[VULTURE_A_PID] = NLA_POLICY_MIN(NLA_U32, 1),
	[VULTURE_A_CGROUP] = { .type = NLA_U64, },
	[VULTURE_A_ID] = { .type = NLA_U64, },
};

/* VULTURE_CMD_GET - do */
static const struct nla_policy vulture_get_nl_policy[VULTURE_A_ID + 1] = {
	[VULTURE_A_FD] = { .type = NLA_U32, },
	[VULTURE_A_ADDR] = NLA_POLICY_NESTED(vulture_addr_nl_policy),
	[VULTURE_A_ID] = { .type = NLA_U64, },
};

/* VULTURE_CMD_SET - do */
static const struct nla_policy vulture_set_nl_policy[VULTURE_A_MAX_FLOWS + 1] = {
	[VULTURE_A_OPTIONS] = NLA_POLICY_NESTED(vulture_options_nl_policy),
	[VULTURE_A_MAX_FLOWS] = NLA_POLICY_FULL_RANGE(NLA_U32, &vulture_a_max_flows_range),
};

/* VULTURE_CMD_RULE_ADD - do */
static const struct nla_policy vulture_rule_add_nl_policy[VULTURE_A_RULE + 1] = {
	[VULTURE_A_RULE] = NLA_POLICY_NESTED(vulture_rule_nl_policy),
};

/* VULTURE_CMD_RULE_DEL - do */
static const struct nla_policy vulture_rule_del_nl_policy[VULTURE_A_RULE + 1] = {
	[VULTURE_A_RULE] = NLA_POLICY_NESTED(vulture_rule_nl_policy),
};

/* Ops table for vulture */
static const struct genl_split_ops vulture_nl_ops[] = {
	{
		.cmd		= VULTURE_CMD_START,
		.doit		= vulture_nl_start_doit,
		.policy		= vulture_start_nl_policy,
		.maxattr	= VULTURE_A_OPTIONS,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= VULTURE_CMD_STOP,
		.doit		= vulture_nl_stop_doit,
		.policy		= vulture_stop_nl_policy,
		.maxattr	= VULTURE_A_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= VULTURE_CMD_GET,
		.doit		= vulture_nl_get_doit,
		.policy		= vulture_get_nl_policy,
		.maxattr	= VULTURE_A_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= VULTURE_CMD_GET,
		.dumpit	= vulture_nl_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= VULTURE_CMD_SET,
		.doit		= vulture_nl_set_doit,
		.policy		= vulture_set_nl_policy,
		.maxattr	= VULTURE_A_MAX_FLOWS,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= VULTURE_CMD_GET_DEFAULTS,
		.doit	= vulture_nl_get_defaults_doit,
		.flags	= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= VULTURE_CMD_RULE_ADD,
		.doit		= vulture_nl_rule_add_doit,
		.policy		= vulture_rule_add_nl_policy,
		.maxattr	= VULTURE_A_RULE,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= VULTURE_CMD_RULE_DEL,
		.doit		= vulture_nl_rule_del_doit,
		.policy		= vulture_rule_del_nl_policy,
		.maxattr	= VULTURE_A_RULE,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= VULTURE_CMD_RULE_GET,
		.dumpit	= vulture_nl_rule_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
};

static const struct genl_multicast_group vulture_nl_mcgrps[] = {
	[VULTURE_NLGRP_EVENTS] = { "events", },
};

struct genl_family vulture_nl_family __ro_after_init = {
	.name		= VULTURE_FAMILY_NAME,
	.version	= VULTURE_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= vulture_nl_ops,
	.n_split_ops	= ARRAY_SIZE(vulture_nl_ops),
	.mcgrps		= vulture_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(vulture_nl_mcgrps),
};
