// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/vulture.yaml */
/* YNL-GEN user source */

#include <stdlib.h>
#include <string.h>
#include "vulture-user.h"
#include "ynl.h"
#include <vulture.h>

#include <linux/genetlink.h>

/* Enums */
static const char * const vulture_op_strmap[] = {
	[VULTURE_CMD_START] = "start",
	[VULTURE_CMD_STOP] = "stop",
	[VULTURE_CMD_GET] = "get",
	[VULTURE_CMD_SET] = "set",
	[VULTURE_CMD_GET_DEFAULTS] = "get-defaults",
	[VULTURE_CMD_RULE_ADD] = "rule-add",
	[VULTURE_CMD_RULE_DEL] = "rule-del",
	[VULTURE_CMD_RULE_GET] = "rule-get",
	[VULTURE_CMD_EVENT_START] = "event-start",
	[VULTURE_CMD_EVENT_END] = "event-end",
};

const char *vulture_op_str(int op)
{
	if (op < 0 || op >= (int)YNL_ARRAY_SIZE(vulture_op_strmap))
		return NULL;
	return vulture_op_strmap[op];
}

static const char * const vulture_controller_strmap[] = {
	[0] = "paper",
	[1] = "credit",
	[2] = "rledbat",
};

const char *vulture_controller_str(enum vulture_controller value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_controller_strmap))
		return NULL;
	return vulture_controller_strmap[value];
}

static const char * const vulture_pairing_strmap[] = {
	[0] = "each",
	[1] = "literal",
};

const char *vulture_pairing_str(enum vulture_pairing value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_pairing_strmap))
		return NULL;
	return vulture_pairing_strmap[value];
}

static const char * const vulture_mode_strmap[] = {
	[0] = "conservative",
	[1] = "aggressive",
};

const char *vulture_mode_str(enum vulture_mode value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_mode_strmap))
		return NULL;
	return vulture_mode_strmap[value];
}

static const char * const vulture_policy_strmap[] = {
	[0] = "fix",
	[1] = "increase",
	[2] = "double",
	[3] = "halve",
};

const char *vulture_policy_str(enum vulture_policy value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_policy_strmap))
		return NULL;
	return vulture_policy_strmap[value];
}

static const char * const vulture_phase_strmap[] = {
	[0] = "observe",
	[1] = "start",
	[2] = "wait",
	[3] = "collect",
};

const char *vulture_phase_str(enum vulture_phase value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_phase_strmap))
		return NULL;
	return vulture_phase_strmap[value];
}

static const char * const vulture_credit_phase_strmap[] = {
	[0] = "start",
	[1] = "cruise",
	[2] = "floor",
	[3] = "probe",
};

const char *vulture_credit_phase_str(enum vulture_credit_phase value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_credit_phase_strmap))
		return NULL;
	return vulture_credit_phase_strmap[value];
}

static const char * const vulture_rledbat_state_strmap[] = {
	[0] = "start",
	[1] = "steady",
	[2] = "down",
	[3] = "ramp",
};

const char *vulture_rledbat_state_str(enum vulture_rledbat_state value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_rledbat_state_strmap))
		return NULL;
	return vulture_rledbat_state_strmap[value];
}

static const char * const vulture_reason_strmap[] = {
	[0] = "stopped",
	[1] = "closed",
	[2] = "removed",
};

const char *vulture_reason_str(enum vulture_reason value)
{
	if (value < 0 || value >= (int)YNL_ARRAY_SIZE(vulture_reason_strmap))
		return NULL;
	return vulture_reason_strmap[value];
}

/* Policies */
const struct ynl_policy_attr vulture_addr_policy[VULTURE_ADDR_MAX + 1] = {
	[VULTURE_ADDR_LOCAL] = { .name = "local", .type = YNL_PT_BINARY,},
	[VULTURE_ADDR_LOCAL_PORT] = { .name = "local-port", .type = YNL_PT_U16, },
	[VULTURE_ADDR_REMOTE] = { .name = "remote", .type = YNL_PT_BINARY,},
	[VULTURE_ADDR_REMOTE_PORT] = { .name = "remote-port", .type = YNL_PT_U16, },
};

const struct ynl_policy_nest vulture_addr_nest = {
	.max_attr = VULTURE_ADDR_MAX,
	.table = vulture_addr_policy,
};

const struct ynl_policy_attr vulture_paper_options_policy[VULTURE_PAPER_O_MAX + 1] = {
	[VULTURE_PAPER_O_TICK_US] = { .name = "tick-us", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_PSI_US] = { .name = "psi-us", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_CONS_LOW_US] = { .name = "cons-low-us", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_CONS_HIGH_US] = { .name = "cons-high-us", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_AGGR_LOW_US] = { .name = "aggr-low-us", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_AGGR_HIGH_US] = { .name = "aggr-high-us", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_PAIRING] = { .name = "pairing", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_ALPHA_PERMILLE] = { .name = "alpha-permille", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_INCREASE_SEGS] = { .name = "increase-segs", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_POSITIVE_TEST] = { .name = "positive-test", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_GOALS] = { .name = "goals", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_SETTLE] = { .name = "settle", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_RETRACT] = { .name = "retract", .type = YNL_PT_U32, },
	[VULTURE_PAPER_O_OBSERVE] = { .name = "observe", .type = YNL_PT_U32, },
};

const struct ynl_policy_nest vulture_paper_options_nest = {
	.max_attr = VULTURE_PAPER_O_MAX,
	.table = vulture_paper_options_policy,
};

const struct ynl_policy_attr vulture_credit_options_policy[VULTURE_CREDIT_O_MAX + 1] = {
	[VULTURE_CREDIT_O_MIN_KBIT] = { .name = "min-kbit", .type = YNL_PT_U32, },
	[VULTURE_CREDIT_O_ESCAPE_S] = { .name = "escape-s", .type = YNL_PT_U32, },
	[VULTURE_CREDIT_O_WEIGHT] = { .name = "weight", .type = YNL_PT_U32, },
};

const struct ynl_policy_nest vulture_credit_options_nest = {
	.max_attr = VULTURE_CREDIT_O_MAX,
	.table = vulture_credit_options_policy,
};

const struct ynl_policy_attr vulture_rledbat_options_policy[VULTURE_RLEDBAT_O_MAX + 1] = {
	[VULTURE_RLEDBAT_O_TARGET_US] = { .name = "target-us", .type = YNL_PT_U32, },
	[VULTURE_RLEDBAT_O_SLOWDOWN] = { .name = "slowdown", .type = YNL_PT_U32, },
};

const struct ynl_policy_nest vulture_rledbat_options_nest = {
	.max_attr = VULTURE_RLEDBAT_O_MAX,
	.table = vulture_rledbat_options_policy,
};

const struct ynl_policy_attr vulture_paper_stats_policy[VULTURE_PAPER_S_MAX + 1] = {
	[VULTURE_PAPER_S_PHASE] = { .name = "phase", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_MODE] = { .name = "mode", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_POLICY] = { .name = "policy", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_THRESH_BYTES] = { .name = "thresh-bytes", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_CWND_BYTES] = { .name = "cwnd-bytes", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PEER_TICK_US] = { .name = "peer-tick-us", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_LAST_PIVS] = { .name = "last-pivs", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_LAST_POSITIVE] = { .name = "last-positive", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_LAST_SUM_US] = { .name = "last-sum-us", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PIV_NEGATIVE] = { .name = "piv-negative", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PIV_ZERO] = { .name = "piv-zero", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PIV_POSITIVE] = { .name = "piv-positive", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PIV_LOW] = { .name = "piv-low", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PIV_MIDDLE] = { .name = "piv-middle", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PIV_HIGH] = { .name = "piv-high", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_ROUNDS] = { .name = "rounds", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_FIXES] = { .name = "fixes", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_INCREASES] = { .name = "increases", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_DOUBLINGS] = { .name = "doublings", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_HALVINGS] = { .name = "halvings", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_LOSSES] = { .name = "losses", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_CONSERVATIVE_US] = { .name = "conservative-us", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_AGGRESSIVE_US] = { .name = "aggressive-us", .type = YNL_PT_U64, },
	[VULTURE_PAPER_S_PAD] = { .name = "pad", .type = YNL_PT_IGNORE, },
};

const struct ynl_policy_nest vulture_paper_stats_nest = {
	.max_attr = VULTURE_PAPER_S_MAX,
	.table = vulture_paper_stats_policy,
};

const struct ynl_policy_attr vulture_credit_stats_policy[VULTURE_CREDIT_S_MAX + 1] = {
	[VULTURE_CREDIT_S_PHASE] = { .name = "phase", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_FLOWS] = { .name = "flows", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_CAPACITY_BPS] = { .name = "capacity-bps", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_RATE_BPS] = { .name = "rate-bps", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_CREDIT_BYTES] = { .name = "credit-bytes", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_GROWTH_PERMILLE] = { .name = "growth-permille", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_FAILS] = { .name = "fails", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_YIELDS] = { .name = "yields", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_TRAINS] = { .name = "trains", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_TRAINS_FAILED] = { .name = "trains-failed", .type = YNL_PT_U64, },
	[VULTURE_CREDIT_S_PAD] = { .name = "pad", .type = YNL_PT_IGNORE, },
};

const struct ynl_policy_nest vulture_credit_stats_nest = {
	.max_attr = VULTURE_CREDIT_S_MAX,
	.table = vulture_credit_stats_policy,
};

const struct ynl_policy_attr vulture_rledbat_stats_policy[VULTURE_RLEDBAT_S_MAX + 1] = {
	[VULTURE_RLEDBAT_S_STATE] = { .name = "state", .type = YNL_PT_U64, },
	[VULTURE_RLEDBAT_S_SSTHRESH_BYTES] = { .name = "ssthresh-bytes", .type = YNL_PT_U64, },
	[VULTURE_RLEDBAT_S_SAMPLES] = { .name = "samples", .type = YNL_PT_U64, },
	[VULTURE_RLEDBAT_S_LOSSES] = { .name = "losses", .type = YNL_PT_U64, },
	[VULTURE_RLEDBAT_S_SLOWDOWNS] = { .name = "slowdowns", .type = YNL_PT_U64, },
	[VULTURE_RLEDBAT_S_PAD] = { .name = "pad", .type = YNL_PT_IGNORE, },
};

const struct ynl_policy_nest vulture_rledbat_stats_nest = {
	.max_attr = VULTURE_RLEDBAT_S_MAX,
	.table = vulture_rledbat_stats_policy,
};

const struct ynl_policy_attr vulture_options_policy[VULTURE_O_MAX + 1] = {
	[VULTURE_O_CONTROLLER] = { .name = "controller", .type = YNL_PT_U32, },
	[VULTURE_O_PAPER] = { .name = "paper", .type = YNL_PT_NEST, .nest = &vulture_paper_options_nest, },
	[VULTURE_O_CREDIT] = { .name = "credit", .type = YNL_PT_NEST, .nest = &vulture_credit_options_nest, },
	[VULTURE_O_RLEDBAT] = { .name = "rledbat", .type = YNL_PT_NEST, .nest = &vulture_rledbat_options_nest, },
};

const struct ynl_policy_nest vulture_options_nest = {
	.max_attr = VULTURE_O_MAX,
	.table = vulture_options_policy,
};

const struct ynl_policy_attr vulture_flow_policy[VULTURE_F_MAX + 1] = {
	[VULTURE_F_ID] = { .name = "id", .type = YNL_PT_U64, },
	[VULTURE_F_ADDR] = { .name = "addr", .type = YNL_PT_NEST, .nest = &vulture_addr_nest, },
	[VULTURE_F_RULE] = { .name = "rule", .type = YNL_PT_U32, },
	[VULTURE_F_OPTIONS] = { .name = "options", .type = YNL_PT_NEST, .nest = &vulture_options_nest, },
	[VULTURE_F_WINDOW_BYTES] = { .name = "window-bytes", .type = YNL_PT_U32, },
	[VULTURE_F_ADVERTISED_BYTES] = { .name = "advertised-bytes", .type = YNL_PT_U32, },
	[VULTURE_F_OWN_BYTES] = { .name = "own-bytes", .type = YNL_PT_U32, },
	[VULTURE_F_RTT_US] = { .name = "rtt-us", .type = YNL_PT_U32, },
	[VULTURE_F_MIN_RTT_US] = { .name = "min-rtt-us", .type = YNL_PT_U32, },
	[VULTURE_F_QUEUE_US] = { .name = "queue-us", .type = YNL_PT_U32, },
	[VULTURE_F_MSS_BYTES] = { .name = "mss-bytes", .type = YNL_PT_U32, },
	[VULTURE_F_AGE_US] = { .name = "age-us", .type = YNL_PT_U64, },
	[VULTURE_F_SEGMENTS] = { .name = "segments", .type = YNL_PT_U64, },
	[VULTURE_F_BYTES] = { .name = "bytes", .type = YNL_PT_U64, },
	[VULTURE_F_ACKS] = { .name = "acks", .type = YNL_PT_U64, },
	[VULTURE_F_REWRITTEN] = { .name = "rewritten", .type = YNL_PT_U64, },
	[VULTURE_F_UPDATES] = { .name = "updates", .type = YNL_PT_U64, },
	[VULTURE_F_PAPER] = { .name = "paper", .type = YNL_PT_NEST, .nest = &vulture_paper_stats_nest, },
	[VULTURE_F_CREDIT] = { .name = "credit", .type = YNL_PT_NEST, .nest = &vulture_credit_stats_nest, },
	[VULTURE_F_RLEDBAT] = { .name = "rledbat", .type = YNL_PT_NEST, .nest = &vulture_rledbat_stats_nest, },
	[VULTURE_F_PAD] = { .name = "pad", .type = YNL_PT_IGNORE, },
};

const struct ynl_policy_nest vulture_flow_nest = {
	.max_attr = VULTURE_F_MAX,
	.table = vulture_flow_policy,
};

const struct ynl_policy_attr vulture_rule_policy[VULTURE_R_MAX + 1] = {
	[VULTURE_R_ID] = { .name = "id", .type = YNL_PT_U32, },
	[VULTURE_R_CGROUP] = { .name = "cgroup", .type = YNL_PT_U64, },
	[VULTURE_R_LOCAL_PORT] = { .name = "local-port", .type = YNL_PT_U16, },
	[VULTURE_R_REMOTE_PORT] = { .name = "remote-port", .type = YNL_PT_U16, },
	[VULTURE_R_REMOTE_PREFIX] = { .name = "remote-prefix", .type = YNL_PT_BINARY,},
	[VULTURE_R_REMOTE_PREFIX_BITS] = { .name = "remote-prefix-bits", .type = YNL_PT_U8, },
	[VULTURE_R_OPTIONS] = { .name = "options", .type = YNL_PT_NEST, .nest = &vulture_options_nest, },
	[VULTURE_R_STARTED] = { .name = "started", .type = YNL_PT_U64, },
	[VULTURE_R_PAD] = { .name = "pad", .type = YNL_PT_IGNORE, },
	[VULTURE_R_FAILED] = { .name = "failed", .type = YNL_PT_U64, },
	[VULTURE_R_CGROUP_FD] = { .name = "cgroup-fd", .type = YNL_PT_U32, },
	[VULTURE_R_UID] = { .name = "uid", .type = YNL_PT_U32, },
	[VULTURE_R_DSCP] = { .name = "dscp", .type = YNL_PT_U8, },
	[VULTURE_R_FOREGROUND] = { .name = "foreground", .type = YNL_PT_FLAG, },
};

const struct ynl_policy_nest vulture_rule_nest = {
	.max_attr = VULTURE_R_MAX,
	.table = vulture_rule_policy,
};

const struct ynl_policy_attr vulture_main_policy[VULTURE_A_MAX + 1] = {
	[VULTURE_A_FD] = { .name = "fd", .type = YNL_PT_U32, },
	[VULTURE_A_ADDR] = { .name = "addr", .type = YNL_PT_NEST, .nest = &vulture_addr_nest, },
	[VULTURE_A_PID] = { .name = "pid", .type = YNL_PT_U32, },
	[VULTURE_A_CGROUP] = { .name = "cgroup", .type = YNL_PT_U64, },
	[VULTURE_A_ID] = { .name = "id", .type = YNL_PT_U64, },
	[VULTURE_A_OPTIONS] = { .name = "options", .type = YNL_PT_NEST, .nest = &vulture_options_nest, },
	[VULTURE_A_FLOW] = { .name = "flow", .type = YNL_PT_NEST, .nest = &vulture_flow_nest, },
	[VULTURE_A_RULE] = { .name = "rule", .type = YNL_PT_NEST, .nest = &vulture_rule_nest, },
	[VULTURE_A_COUNT] = { .name = "count", .type = YNL_PT_U32, },
	[VULTURE_A_MAX_FLOWS] = { .name = "max-flows", .type = YNL_PT_U32, },
	[VULTURE_A_FLOW_BYTES] = { .name = "flow-bytes", .type = YNL_PT_U32, },
	[VULTURE_A_REASON] = { .name = "reason", .type = YNL_PT_U32, },
	[VULTURE_A_VERSION] = { .name = "version", .type = YNL_PT_NUL_STR, },
	[VULTURE_A_PAD] = { .name = "pad", .type = YNL_PT_IGNORE, },
};

const struct ynl_policy_nest vulture_main_nest = {
	.max_attr = VULTURE_A_MAX,
	.table = vulture_main_policy,
};

/* Common nested types */
void vulture_addr_free(struct vulture_addr *obj)
{
	free(obj->local);
	free(obj->remote);
}

int vulture_addr_put(struct nlmsghdr *nlh, unsigned int attr_type,
		     struct vulture_addr *obj)
{
	struct nlattr *nest;

	nest = ynl_attr_nest_start(nlh, attr_type);
	if (obj->_present.local_len)
		ynl_attr_put(nlh, VULTURE_ADDR_LOCAL, obj->local, obj->_present.local_len);
	if (obj->_present.local_port)
		ynl_attr_put_u16(nlh, VULTURE_ADDR_LOCAL_PORT, obj->local_port);
	if (obj->_present.remote_len)
		ynl_attr_put(nlh, VULTURE_ADDR_REMOTE, obj->remote, obj->_present.remote_len);
	if (obj->_present.remote_port)
		ynl_attr_put_u16(nlh, VULTURE_ADDR_REMOTE_PORT, obj->remote_port);
	ynl_attr_nest_end(nlh, nest);

	return 0;
}

int vulture_addr_parse(struct ynl_parse_arg *yarg, const struct nlattr *nested)
{
	struct vulture_addr *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_ADDR_LOCAL) {
			unsigned int len;

			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;

			len = ynl_attr_data_len(attr);
			dst->_present.local_len = len;
			dst->local = malloc(len);
			memcpy(dst->local, ynl_attr_data(attr), len);
		} else if (type == VULTURE_ADDR_LOCAL_PORT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.local_port = 1;
			dst->local_port = ynl_attr_get_u16(attr);
		} else if (type == VULTURE_ADDR_REMOTE) {
			unsigned int len;

			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;

			len = ynl_attr_data_len(attr);
			dst->_present.remote_len = len;
			dst->remote = malloc(len);
			memcpy(dst->remote, ynl_attr_data(attr), len);
		} else if (type == VULTURE_ADDR_REMOTE_PORT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.remote_port = 1;
			dst->remote_port = ynl_attr_get_u16(attr);
		}
	}

	return 0;
}

void vulture_paper_options_free(struct vulture_paper_options *obj)
{
}

int vulture_paper_options_put(struct nlmsghdr *nlh, unsigned int attr_type,
			      struct vulture_paper_options *obj)
{
	struct nlattr *nest;

	nest = ynl_attr_nest_start(nlh, attr_type);
	if (obj->_present.tick_us)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_TICK_US, obj->tick_us);
	if (obj->_present.psi_us)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_PSI_US, obj->psi_us);
	if (obj->_present.cons_low_us)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_CONS_LOW_US, obj->cons_low_us);
	if (obj->_present.cons_high_us)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_CONS_HIGH_US, obj->cons_high_us);
	if (obj->_present.aggr_low_us)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_AGGR_LOW_US, obj->aggr_low_us);
	if (obj->_present.aggr_high_us)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_AGGR_HIGH_US, obj->aggr_high_us);
	if (obj->_present.pairing)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_PAIRING, obj->pairing);
	if (obj->_present.alpha_permille)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_ALPHA_PERMILLE, obj->alpha_permille);
	if (obj->_present.increase_segs)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_INCREASE_SEGS, obj->increase_segs);
	if (obj->_present.positive_test)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_POSITIVE_TEST, obj->positive_test);
	if (obj->_present.goals)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_GOALS, obj->goals);
	if (obj->_present.settle)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_SETTLE, obj->settle);
	if (obj->_present.retract)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_RETRACT, obj->retract);
	if (obj->_present.observe)
		ynl_attr_put_u32(nlh, VULTURE_PAPER_O_OBSERVE, obj->observe);
	ynl_attr_nest_end(nlh, nest);

	return 0;
}

int vulture_paper_options_parse(struct ynl_parse_arg *yarg,
				const struct nlattr *nested)
{
	struct vulture_paper_options *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_PAPER_O_TICK_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.tick_us = 1;
			dst->tick_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_PSI_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.psi_us = 1;
			dst->psi_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_CONS_LOW_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.cons_low_us = 1;
			dst->cons_low_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_CONS_HIGH_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.cons_high_us = 1;
			dst->cons_high_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_AGGR_LOW_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.aggr_low_us = 1;
			dst->aggr_low_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_AGGR_HIGH_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.aggr_high_us = 1;
			dst->aggr_high_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_PAIRING) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.pairing = 1;
			dst->pairing = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_ALPHA_PERMILLE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.alpha_permille = 1;
			dst->alpha_permille = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_INCREASE_SEGS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.increase_segs = 1;
			dst->increase_segs = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_POSITIVE_TEST) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.positive_test = 1;
			dst->positive_test = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_GOALS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.goals = 1;
			dst->goals = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_SETTLE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.settle = 1;
			dst->settle = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_RETRACT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.retract = 1;
			dst->retract = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_PAPER_O_OBSERVE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.observe = 1;
			dst->observe = ynl_attr_get_u32(attr);
		}
	}

	return 0;
}

void vulture_credit_options_free(struct vulture_credit_options *obj)
{
}

int vulture_credit_options_put(struct nlmsghdr *nlh, unsigned int attr_type,
			       struct vulture_credit_options *obj)
{
	struct nlattr *nest;

	nest = ynl_attr_nest_start(nlh, attr_type);
	if (obj->_present.min_kbit)
		ynl_attr_put_u32(nlh, VULTURE_CREDIT_O_MIN_KBIT, obj->min_kbit);
	if (obj->_present.escape_s)
		ynl_attr_put_u32(nlh, VULTURE_CREDIT_O_ESCAPE_S, obj->escape_s);
	if (obj->_present.weight)
		ynl_attr_put_u32(nlh, VULTURE_CREDIT_O_WEIGHT, obj->weight);
	ynl_attr_nest_end(nlh, nest);

	return 0;
}

int vulture_credit_options_parse(struct ynl_parse_arg *yarg,
				 const struct nlattr *nested)
{
	struct vulture_credit_options *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_CREDIT_O_MIN_KBIT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.min_kbit = 1;
			dst->min_kbit = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_CREDIT_O_ESCAPE_S) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.escape_s = 1;
			dst->escape_s = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_CREDIT_O_WEIGHT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.weight = 1;
			dst->weight = ynl_attr_get_u32(attr);
		}
	}

	return 0;
}

void vulture_rledbat_options_free(struct vulture_rledbat_options *obj)
{
}

int vulture_rledbat_options_put(struct nlmsghdr *nlh, unsigned int attr_type,
				struct vulture_rledbat_options *obj)
{
	struct nlattr *nest;

	nest = ynl_attr_nest_start(nlh, attr_type);
	if (obj->_present.target_us)
		ynl_attr_put_u32(nlh, VULTURE_RLEDBAT_O_TARGET_US, obj->target_us);
	if (obj->_present.slowdown)
		ynl_attr_put_u32(nlh, VULTURE_RLEDBAT_O_SLOWDOWN, obj->slowdown);
	ynl_attr_nest_end(nlh, nest);

	return 0;
}

int vulture_rledbat_options_parse(struct ynl_parse_arg *yarg,
				  const struct nlattr *nested)
{
	struct vulture_rledbat_options *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_RLEDBAT_O_TARGET_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.target_us = 1;
			dst->target_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_RLEDBAT_O_SLOWDOWN) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.slowdown = 1;
			dst->slowdown = ynl_attr_get_u32(attr);
		}
	}

	return 0;
}

void vulture_paper_stats_free(struct vulture_paper_stats *obj)
{
}

int vulture_paper_stats_parse(struct ynl_parse_arg *yarg,
			      const struct nlattr *nested)
{
	struct vulture_paper_stats *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_PAPER_S_PHASE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.phase = 1;
			dst->phase = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_MODE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.mode = 1;
			dst->mode = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_POLICY) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.policy = 1;
			dst->policy = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_THRESH_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.thresh_bytes = 1;
			dst->thresh_bytes = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_CWND_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.cwnd_bytes = 1;
			dst->cwnd_bytes = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_PEER_TICK_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.peer_tick_us = 1;
			dst->peer_tick_us = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_LAST_PIVS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.last_pivs = 1;
			dst->last_pivs = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_LAST_POSITIVE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.last_positive = 1;
			dst->last_positive = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_LAST_SUM_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.last_sum_us = 1;
			dst->last_sum_us = ynl_attr_get_s64(attr);
		} else if (type == VULTURE_PAPER_S_PIV_NEGATIVE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.piv_negative = 1;
			dst->piv_negative = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_PIV_ZERO) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.piv_zero = 1;
			dst->piv_zero = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_PIV_POSITIVE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.piv_positive = 1;
			dst->piv_positive = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_PIV_LOW) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.piv_low = 1;
			dst->piv_low = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_PIV_MIDDLE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.piv_middle = 1;
			dst->piv_middle = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_PIV_HIGH) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.piv_high = 1;
			dst->piv_high = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_ROUNDS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rounds = 1;
			dst->rounds = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_FIXES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.fixes = 1;
			dst->fixes = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_INCREASES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.increases = 1;
			dst->increases = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_DOUBLINGS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.doublings = 1;
			dst->doublings = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_HALVINGS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.halvings = 1;
			dst->halvings = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_LOSSES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.losses = 1;
			dst->losses = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_CONSERVATIVE_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.conservative_us = 1;
			dst->conservative_us = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_PAPER_S_AGGRESSIVE_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.aggressive_us = 1;
			dst->aggressive_us = ynl_attr_get_u64(attr);
		}
	}

	return 0;
}

void vulture_credit_stats_free(struct vulture_credit_stats *obj)
{
}

int vulture_credit_stats_parse(struct ynl_parse_arg *yarg,
			       const struct nlattr *nested)
{
	struct vulture_credit_stats *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_CREDIT_S_PHASE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.phase = 1;
			dst->phase = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_FLOWS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.flows = 1;
			dst->flows = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_CAPACITY_BPS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.capacity_bps = 1;
			dst->capacity_bps = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_RATE_BPS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rate_bps = 1;
			dst->rate_bps = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_CREDIT_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.credit_bytes = 1;
			dst->credit_bytes = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_GROWTH_PERMILLE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.growth_permille = 1;
			dst->growth_permille = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_FAILS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.fails = 1;
			dst->fails = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_YIELDS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.yields = 1;
			dst->yields = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_TRAINS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.trains = 1;
			dst->trains = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_CREDIT_S_TRAINS_FAILED) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.trains_failed = 1;
			dst->trains_failed = ynl_attr_get_u64(attr);
		}
	}

	return 0;
}

void vulture_rledbat_stats_free(struct vulture_rledbat_stats *obj)
{
}

int vulture_rledbat_stats_parse(struct ynl_parse_arg *yarg,
				const struct nlattr *nested)
{
	struct vulture_rledbat_stats *dst = yarg->data;
	const struct nlattr *attr;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_RLEDBAT_S_STATE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.state = 1;
			dst->state = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_RLEDBAT_S_SSTHRESH_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.ssthresh_bytes = 1;
			dst->ssthresh_bytes = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_RLEDBAT_S_SAMPLES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.samples = 1;
			dst->samples = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_RLEDBAT_S_LOSSES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.losses = 1;
			dst->losses = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_RLEDBAT_S_SLOWDOWNS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.slowdowns = 1;
			dst->slowdowns = ynl_attr_get_u64(attr);
		}
	}

	return 0;
}

void vulture_options_free(struct vulture_options *obj)
{
	vulture_paper_options_free(&obj->paper);
	vulture_credit_options_free(&obj->credit);
	vulture_rledbat_options_free(&obj->rledbat);
}

int vulture_options_put(struct nlmsghdr *nlh, unsigned int attr_type,
			struct vulture_options *obj)
{
	struct nlattr *nest;

	nest = ynl_attr_nest_start(nlh, attr_type);
	if (obj->_present.controller)
		ynl_attr_put_u32(nlh, VULTURE_O_CONTROLLER, obj->controller);
	if (obj->_present.paper)
		vulture_paper_options_put(nlh, VULTURE_O_PAPER, &obj->paper);
	if (obj->_present.credit)
		vulture_credit_options_put(nlh, VULTURE_O_CREDIT, &obj->credit);
	if (obj->_present.rledbat)
		vulture_rledbat_options_put(nlh, VULTURE_O_RLEDBAT, &obj->rledbat);
	ynl_attr_nest_end(nlh, nest);

	return 0;
}

int vulture_options_parse(struct ynl_parse_arg *yarg,
			  const struct nlattr *nested)
{
	struct vulture_options *dst = yarg->data;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	parg.ys = yarg->ys;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_O_CONTROLLER) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.controller = 1;
			dst->controller = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_O_PAPER) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.paper = 1;

			parg.rsp_policy = &vulture_paper_options_nest;
			parg.data = &dst->paper;
			if (vulture_paper_options_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_O_CREDIT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.credit = 1;

			parg.rsp_policy = &vulture_credit_options_nest;
			parg.data = &dst->credit;
			if (vulture_credit_options_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_O_RLEDBAT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rledbat = 1;

			parg.rsp_policy = &vulture_rledbat_options_nest;
			parg.data = &dst->rledbat;
			if (vulture_rledbat_options_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		}
	}

	return 0;
}

void vulture_flow_free(struct vulture_flow *obj)
{
	vulture_addr_free(&obj->addr);
	vulture_options_free(&obj->options);
	vulture_paper_stats_free(&obj->paper);
	vulture_credit_stats_free(&obj->credit);
	vulture_rledbat_stats_free(&obj->rledbat);
}

int vulture_flow_parse(struct ynl_parse_arg *yarg, const struct nlattr *nested)
{
	struct vulture_flow *dst = yarg->data;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	parg.ys = yarg->ys;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_F_ID) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.id = 1;
			dst->id = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_ADDR) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.addr = 1;

			parg.rsp_policy = &vulture_addr_nest;
			parg.data = &dst->addr;
			if (vulture_addr_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_F_RULE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rule = 1;
			dst->rule = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_OPTIONS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.options = 1;

			parg.rsp_policy = &vulture_options_nest;
			parg.data = &dst->options;
			if (vulture_options_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_F_WINDOW_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.window_bytes = 1;
			dst->window_bytes = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_ADVERTISED_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.advertised_bytes = 1;
			dst->advertised_bytes = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_OWN_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.own_bytes = 1;
			dst->own_bytes = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_RTT_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rtt_us = 1;
			dst->rtt_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_MIN_RTT_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.min_rtt_us = 1;
			dst->min_rtt_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_QUEUE_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.queue_us = 1;
			dst->queue_us = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_MSS_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.mss_bytes = 1;
			dst->mss_bytes = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_F_AGE_US) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.age_us = 1;
			dst->age_us = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_SEGMENTS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.segments = 1;
			dst->segments = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.bytes = 1;
			dst->bytes = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_ACKS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.acks = 1;
			dst->acks = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_REWRITTEN) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rewritten = 1;
			dst->rewritten = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_UPDATES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.updates = 1;
			dst->updates = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_F_PAPER) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.paper = 1;

			parg.rsp_policy = &vulture_paper_stats_nest;
			parg.data = &dst->paper;
			if (vulture_paper_stats_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_F_CREDIT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.credit = 1;

			parg.rsp_policy = &vulture_credit_stats_nest;
			parg.data = &dst->credit;
			if (vulture_credit_stats_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_F_RLEDBAT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rledbat = 1;

			parg.rsp_policy = &vulture_rledbat_stats_nest;
			parg.data = &dst->rledbat;
			if (vulture_rledbat_stats_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		}
	}

	return 0;
}

void vulture_rule_free(struct vulture_rule *obj)
{
	free(obj->remote_prefix);
	vulture_options_free(&obj->options);
}

int vulture_rule_put(struct nlmsghdr *nlh, unsigned int attr_type,
		     struct vulture_rule *obj)
{
	struct nlattr *nest;

	nest = ynl_attr_nest_start(nlh, attr_type);
	if (obj->_present.id)
		ynl_attr_put_u32(nlh, VULTURE_R_ID, obj->id);
	if (obj->_present.cgroup)
		ynl_attr_put_u64(nlh, VULTURE_R_CGROUP, obj->cgroup);
	if (obj->_present.local_port)
		ynl_attr_put_u16(nlh, VULTURE_R_LOCAL_PORT, obj->local_port);
	if (obj->_present.remote_port)
		ynl_attr_put_u16(nlh, VULTURE_R_REMOTE_PORT, obj->remote_port);
	if (obj->_present.remote_prefix_len)
		ynl_attr_put(nlh, VULTURE_R_REMOTE_PREFIX, obj->remote_prefix, obj->_present.remote_prefix_len);
	if (obj->_present.remote_prefix_bits)
		ynl_attr_put_u8(nlh, VULTURE_R_REMOTE_PREFIX_BITS, obj->remote_prefix_bits);
	if (obj->_present.options)
		vulture_options_put(nlh, VULTURE_R_OPTIONS, &obj->options);
	if (obj->_present.started)
		ynl_attr_put_u64(nlh, VULTURE_R_STARTED, obj->started);
	if (obj->_present.failed)
		ynl_attr_put_u64(nlh, VULTURE_R_FAILED, obj->failed);
	if (obj->_present.cgroup_fd)
		ynl_attr_put_u32(nlh, VULTURE_R_CGROUP_FD, obj->cgroup_fd);
	if (obj->_present.uid)
		ynl_attr_put_u32(nlh, VULTURE_R_UID, obj->uid);
	if (obj->_present.dscp)
		ynl_attr_put_u8(nlh, VULTURE_R_DSCP, obj->dscp);
	if (obj->_present.foreground)
		ynl_attr_put(nlh, VULTURE_R_FOREGROUND, NULL, 0);
	ynl_attr_nest_end(nlh, nest);

	return 0;
}

int vulture_rule_parse(struct ynl_parse_arg *yarg, const struct nlattr *nested)
{
	struct vulture_rule *dst = yarg->data;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	parg.ys = yarg->ys;

	ynl_attr_for_each_nested(attr, nested) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_R_ID) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.id = 1;
			dst->id = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_R_CGROUP) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.cgroup = 1;
			dst->cgroup = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_R_LOCAL_PORT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.local_port = 1;
			dst->local_port = ynl_attr_get_u16(attr);
		} else if (type == VULTURE_R_REMOTE_PORT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.remote_port = 1;
			dst->remote_port = ynl_attr_get_u16(attr);
		} else if (type == VULTURE_R_REMOTE_PREFIX) {
			unsigned int len;

			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;

			len = ynl_attr_data_len(attr);
			dst->_present.remote_prefix_len = len;
			dst->remote_prefix = malloc(len);
			memcpy(dst->remote_prefix, ynl_attr_data(attr), len);
		} else if (type == VULTURE_R_REMOTE_PREFIX_BITS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.remote_prefix_bits = 1;
			dst->remote_prefix_bits = ynl_attr_get_u8(attr);
		} else if (type == VULTURE_R_OPTIONS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.options = 1;

			parg.rsp_policy = &vulture_options_nest;
			parg.data = &dst->options;
			if (vulture_options_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_R_STARTED) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.started = 1;
			dst->started = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_R_FAILED) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.failed = 1;
			dst->failed = ynl_attr_get_u64(attr);
		} else if (type == VULTURE_R_CGROUP_FD) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.cgroup_fd = 1;
			dst->cgroup_fd = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_R_UID) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.uid = 1;
			dst->uid = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_R_DSCP) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.dscp = 1;
			dst->dscp = ynl_attr_get_u8(attr);
		} else if (type == VULTURE_R_FOREGROUND) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.foreground = 1;
		}
	}

	return 0;
}

/* ============== VULTURE_CMD_START ============== */
/* VULTURE_CMD_START - do */
void vulture_start_req_free(struct vulture_start_req *req)
{
	vulture_addr_free(&req->addr);
	vulture_options_free(&req->options);
	free(req);
}

void vulture_start_rsp_free(struct vulture_start_rsp *rsp)
{
	free(rsp);
}

int vulture_start_rsp_parse(const struct nlmsghdr *nlh,
			    struct ynl_parse_arg *yarg)
{
	struct vulture_start_rsp *dst;
	const struct nlattr *attr;

	dst = yarg->data;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_COUNT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.count = 1;
			dst->count = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_A_ID) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.id = 1;
			dst->id = ynl_attr_get_u64(attr);
		}
	}

	return YNL_PARSE_CB_OK;
}

struct vulture_start_rsp *
vulture_start(struct ynl_sock *ys, struct vulture_start_req *req)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct vulture_start_rsp *rsp;
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_START, 1);
	ys->req_policy = &vulture_main_nest;
	yrs.yarg.rsp_policy = &vulture_main_nest;

	if (req->_present.fd)
		ynl_attr_put_u32(nlh, VULTURE_A_FD, req->fd);
	if (req->_present.addr)
		vulture_addr_put(nlh, VULTURE_A_ADDR, &req->addr);
	if (req->_present.pid)
		ynl_attr_put_u32(nlh, VULTURE_A_PID, req->pid);
	if (req->_present.cgroup)
		ynl_attr_put_u64(nlh, VULTURE_A_CGROUP, req->cgroup);
	if (req->_present.options)
		vulture_options_put(nlh, VULTURE_A_OPTIONS, &req->options);

	rsp = calloc(1, sizeof(*rsp));
	yrs.yarg.data = rsp;
	yrs.cb = vulture_start_rsp_parse;
	yrs.rsp_cmd = VULTURE_CMD_START;

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		goto err_free;

	return rsp;

err_free:
	vulture_start_rsp_free(rsp);
	return NULL;
}

/* ============== VULTURE_CMD_STOP ============== */
/* VULTURE_CMD_STOP - do */
void vulture_stop_req_free(struct vulture_stop_req *req)
{
	vulture_addr_free(&req->addr);
	free(req);
}

void vulture_stop_rsp_free(struct vulture_stop_rsp *rsp)
{
	free(rsp);
}

int vulture_stop_rsp_parse(const struct nlmsghdr *nlh,
			   struct ynl_parse_arg *yarg)
{
	struct vulture_stop_rsp *dst;
	const struct nlattr *attr;

	dst = yarg->data;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_COUNT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.count = 1;
			dst->count = ynl_attr_get_u32(attr);
		}
	}

	return YNL_PARSE_CB_OK;
}

struct vulture_stop_rsp *
vulture_stop(struct ynl_sock *ys, struct vulture_stop_req *req)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct vulture_stop_rsp *rsp;
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_STOP, 1);
	ys->req_policy = &vulture_main_nest;
	yrs.yarg.rsp_policy = &vulture_main_nest;

	if (req->_present.fd)
		ynl_attr_put_u32(nlh, VULTURE_A_FD, req->fd);
	if (req->_present.addr)
		vulture_addr_put(nlh, VULTURE_A_ADDR, &req->addr);
	if (req->_present.pid)
		ynl_attr_put_u32(nlh, VULTURE_A_PID, req->pid);
	if (req->_present.cgroup)
		ynl_attr_put_u64(nlh, VULTURE_A_CGROUP, req->cgroup);
	if (req->_present.id)
		ynl_attr_put_u64(nlh, VULTURE_A_ID, req->id);

	rsp = calloc(1, sizeof(*rsp));
	yrs.yarg.data = rsp;
	yrs.cb = vulture_stop_rsp_parse;
	yrs.rsp_cmd = VULTURE_CMD_STOP;

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		goto err_free;

	return rsp;

err_free:
	vulture_stop_rsp_free(rsp);
	return NULL;
}

/* ============== VULTURE_CMD_GET ============== */
/* VULTURE_CMD_GET - do */
void vulture_get_req_free(struct vulture_get_req *req)
{
	vulture_addr_free(&req->addr);
	free(req);
}

void vulture_get_rsp_free(struct vulture_get_rsp *rsp)
{
	vulture_flow_free(&rsp->flow);
	free(rsp);
}

int vulture_get_rsp_parse(const struct nlmsghdr *nlh,
			  struct ynl_parse_arg *yarg)
{
	struct vulture_get_rsp *dst;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	dst = yarg->data;
	parg.ys = yarg->ys;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_FLOW) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.flow = 1;

			parg.rsp_policy = &vulture_flow_nest;
			parg.data = &dst->flow;
			if (vulture_flow_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		}
	}

	return YNL_PARSE_CB_OK;
}

struct vulture_get_rsp *
vulture_get(struct ynl_sock *ys, struct vulture_get_req *req)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct vulture_get_rsp *rsp;
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_GET, 1);
	ys->req_policy = &vulture_main_nest;
	yrs.yarg.rsp_policy = &vulture_main_nest;

	if (req->_present.fd)
		ynl_attr_put_u32(nlh, VULTURE_A_FD, req->fd);
	if (req->_present.addr)
		vulture_addr_put(nlh, VULTURE_A_ADDR, &req->addr);
	if (req->_present.id)
		ynl_attr_put_u64(nlh, VULTURE_A_ID, req->id);

	rsp = calloc(1, sizeof(*rsp));
	yrs.yarg.data = rsp;
	yrs.cb = vulture_get_rsp_parse;
	yrs.rsp_cmd = VULTURE_CMD_GET;

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		goto err_free;

	return rsp;

err_free:
	vulture_get_rsp_free(rsp);
	return NULL;
}

/* VULTURE_CMD_GET - dump */
void vulture_get_list_free(struct vulture_get_list *rsp)
{
	struct vulture_get_list *next = rsp;

	while ((void *)next != YNL_LIST_END) {
		rsp = next;
		next = rsp->next;

		vulture_flow_free(&rsp->obj.flow);
		free(rsp);
	}
}

struct vulture_get_list *vulture_get_dump(struct ynl_sock *ys)
{
	struct ynl_dump_state yds = {};
	struct nlmsghdr *nlh;
	int err;

	yds.yarg.ys = ys;
	yds.yarg.rsp_policy = &vulture_main_nest;
	yds.yarg.data = NULL;
	yds.alloc_sz = sizeof(struct vulture_get_list);
	yds.cb = vulture_get_rsp_parse;
	yds.rsp_cmd = VULTURE_CMD_GET;

	nlh = ynl_gemsg_start_dump(ys, ys->family_id, VULTURE_CMD_GET, 1);

	err = ynl_exec_dump(ys, nlh, &yds);
	if (err < 0)
		goto free_list;

	return yds.first;

free_list:
	vulture_get_list_free(yds.first);
	return NULL;
}

/* ============== VULTURE_CMD_SET ============== */
/* VULTURE_CMD_SET - do */
void vulture_set_req_free(struct vulture_set_req *req)
{
	vulture_options_free(&req->options);
	free(req);
}

int vulture_set(struct ynl_sock *ys, struct vulture_set_req *req)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_SET, 1);
	ys->req_policy = &vulture_main_nest;

	if (req->_present.options)
		vulture_options_put(nlh, VULTURE_A_OPTIONS, &req->options);
	if (req->_present.max_flows)
		ynl_attr_put_u32(nlh, VULTURE_A_MAX_FLOWS, req->max_flows);

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		return -1;

	return 0;
}

/* ============== VULTURE_CMD_GET_DEFAULTS ============== */
/* VULTURE_CMD_GET_DEFAULTS - do */
void vulture_get_defaults_rsp_free(struct vulture_get_defaults_rsp *rsp)
{
	vulture_options_free(&rsp->options);
	free(rsp->version);
	free(rsp);
}

int vulture_get_defaults_rsp_parse(const struct nlmsghdr *nlh,
				   struct ynl_parse_arg *yarg)
{
	struct vulture_get_defaults_rsp *dst;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	dst = yarg->data;
	parg.ys = yarg->ys;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_OPTIONS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.options = 1;

			parg.rsp_policy = &vulture_options_nest;
			parg.data = &dst->options;
			if (vulture_options_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_A_MAX_FLOWS) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.max_flows = 1;
			dst->max_flows = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_A_COUNT) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.count = 1;
			dst->count = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_A_FLOW_BYTES) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.flow_bytes = 1;
			dst->flow_bytes = ynl_attr_get_u32(attr);
		} else if (type == VULTURE_A_VERSION) {
			unsigned int len;

			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;

			len = strnlen(ynl_attr_get_str(attr), ynl_attr_data_len(attr));
			dst->_present.version_len = len;
			dst->version = malloc(len + 1);
			memcpy(dst->version, ynl_attr_get_str(attr), len);
			dst->version[len] = 0;
		}
	}

	return YNL_PARSE_CB_OK;
}

struct vulture_get_defaults_rsp *vulture_get_defaults(struct ynl_sock *ys)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct vulture_get_defaults_rsp *rsp;
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_GET_DEFAULTS, 1);
	ys->req_policy = &vulture_main_nest;
	yrs.yarg.rsp_policy = &vulture_main_nest;

	rsp = calloc(1, sizeof(*rsp));
	yrs.yarg.data = rsp;
	yrs.cb = vulture_get_defaults_rsp_parse;
	yrs.rsp_cmd = VULTURE_CMD_GET_DEFAULTS;

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		goto err_free;

	return rsp;

err_free:
	vulture_get_defaults_rsp_free(rsp);
	return NULL;
}

/* ============== VULTURE_CMD_RULE_ADD ============== */
/* VULTURE_CMD_RULE_ADD - do */
void vulture_rule_add_req_free(struct vulture_rule_add_req *req)
{
	vulture_rule_free(&req->rule);
	free(req);
}

void vulture_rule_add_rsp_free(struct vulture_rule_add_rsp *rsp)
{
	vulture_rule_free(&rsp->rule);
	free(rsp);
}

int vulture_rule_add_rsp_parse(const struct nlmsghdr *nlh,
			       struct ynl_parse_arg *yarg)
{
	struct vulture_rule_add_rsp *dst;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	dst = yarg->data;
	parg.ys = yarg->ys;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_RULE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rule = 1;

			parg.rsp_policy = &vulture_rule_nest;
			parg.data = &dst->rule;
			if (vulture_rule_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		}
	}

	return YNL_PARSE_CB_OK;
}

struct vulture_rule_add_rsp *
vulture_rule_add(struct ynl_sock *ys, struct vulture_rule_add_req *req)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct vulture_rule_add_rsp *rsp;
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_RULE_ADD, 1);
	ys->req_policy = &vulture_main_nest;
	yrs.yarg.rsp_policy = &vulture_main_nest;

	if (req->_present.rule)
		vulture_rule_put(nlh, VULTURE_A_RULE, &req->rule);

	rsp = calloc(1, sizeof(*rsp));
	yrs.yarg.data = rsp;
	yrs.cb = vulture_rule_add_rsp_parse;
	yrs.rsp_cmd = VULTURE_CMD_RULE_ADD;

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		goto err_free;

	return rsp;

err_free:
	vulture_rule_add_rsp_free(rsp);
	return NULL;
}

/* ============== VULTURE_CMD_RULE_DEL ============== */
/* VULTURE_CMD_RULE_DEL - do */
void vulture_rule_del_req_free(struct vulture_rule_del_req *req)
{
	vulture_rule_free(&req->rule);
	free(req);
}

int vulture_rule_del(struct ynl_sock *ys, struct vulture_rule_del_req *req)
{
	struct ynl_req_state yrs = { .yarg = { .ys = ys, }, };
	struct nlmsghdr *nlh;
	int err;

	nlh = ynl_gemsg_start_req(ys, ys->family_id, VULTURE_CMD_RULE_DEL, 1);
	ys->req_policy = &vulture_main_nest;

	if (req->_present.rule)
		vulture_rule_put(nlh, VULTURE_A_RULE, &req->rule);

	err = ynl_exec(ys, nlh, &yrs);
	if (err < 0)
		return -1;

	return 0;
}

/* ============== VULTURE_CMD_RULE_GET ============== */
/* VULTURE_CMD_RULE_GET - dump */
int vulture_rule_get_rsp_dump_parse(const struct nlmsghdr *nlh,
				    struct ynl_parse_arg *yarg)
{
	struct vulture_rule_get_rsp_dump *dst;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	dst = yarg->data;
	parg.ys = yarg->ys;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_RULE) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.rule = 1;

			parg.rsp_policy = &vulture_rule_nest;
			parg.data = &dst->rule;
			if (vulture_rule_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		}
	}

	return YNL_PARSE_CB_OK;
}

void vulture_rule_get_rsp_list_free(struct vulture_rule_get_rsp_list *rsp)
{
	struct vulture_rule_get_rsp_list *next = rsp;

	while ((void *)next != YNL_LIST_END) {
		rsp = next;
		next = rsp->next;

		vulture_rule_free(&rsp->obj.rule);
		free(rsp);
	}
}

struct vulture_rule_get_rsp_list *vulture_rule_get_dump(struct ynl_sock *ys)
{
	struct ynl_dump_state yds = {};
	struct nlmsghdr *nlh;
	int err;

	yds.yarg.ys = ys;
	yds.yarg.rsp_policy = &vulture_main_nest;
	yds.yarg.data = NULL;
	yds.alloc_sz = sizeof(struct vulture_rule_get_rsp_list);
	yds.cb = vulture_rule_get_rsp_dump_parse;
	yds.rsp_cmd = VULTURE_CMD_RULE_GET;

	nlh = ynl_gemsg_start_dump(ys, ys->family_id, VULTURE_CMD_RULE_GET, 1);

	err = ynl_exec_dump(ys, nlh, &yds);
	if (err < 0)
		goto free_list;

	return yds.first;

free_list:
	vulture_rule_get_rsp_list_free(yds.first);
	return NULL;
}

/* VULTURE_CMD_EVENT_START - event */
int vulture_event_start_rsp_parse(const struct nlmsghdr *nlh,
				  struct ynl_parse_arg *yarg)
{
	struct vulture_event_start_rsp *dst;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	dst = yarg->data;
	parg.ys = yarg->ys;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_FLOW) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.flow = 1;

			parg.rsp_policy = &vulture_flow_nest;
			parg.data = &dst->flow;
			if (vulture_flow_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		}
	}

	return YNL_PARSE_CB_OK;
}

void vulture_event_start_free(struct vulture_event_start *rsp)
{
	vulture_flow_free(&rsp->obj.flow);
	free(rsp);
}

/* VULTURE_CMD_EVENT_END - event */
int vulture_event_end_rsp_parse(const struct nlmsghdr *nlh,
				struct ynl_parse_arg *yarg)
{
	struct vulture_event_end_rsp *dst;
	const struct nlattr *attr;
	struct ynl_parse_arg parg;

	dst = yarg->data;
	parg.ys = yarg->ys;

	ynl_attr_for_each(attr, nlh, yarg->ys->family->hdr_len) {
		unsigned int type = ynl_attr_type(attr);

		if (type == VULTURE_A_FLOW) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.flow = 1;

			parg.rsp_policy = &vulture_flow_nest;
			parg.data = &dst->flow;
			if (vulture_flow_parse(&parg, attr))
				return YNL_PARSE_CB_ERROR;
		} else if (type == VULTURE_A_REASON) {
			if (ynl_attr_validate(yarg, attr))
				return YNL_PARSE_CB_ERROR;
			dst->_present.reason = 1;
			dst->reason = ynl_attr_get_u32(attr);
		}
	}

	return YNL_PARSE_CB_OK;
}

void vulture_event_end_free(struct vulture_event_end *rsp)
{
	vulture_flow_free(&rsp->obj.flow);
	free(rsp);
}

static const struct ynl_ntf_info vulture_ntf_info[] =  {
	[VULTURE_CMD_EVENT_START] =  {
		.alloc_sz	= sizeof(struct vulture_event_start),
		.cb		= vulture_event_start_rsp_parse,
		.policy		= &vulture_main_nest,
		.free		= (void *)vulture_event_start_free,
	},
	[VULTURE_CMD_EVENT_END] =  {
		.alloc_sz	= sizeof(struct vulture_event_end),
		.cb		= vulture_event_end_rsp_parse,
		.policy		= &vulture_main_nest,
		.free		= (void *)vulture_event_end_free,
	},
};

const struct ynl_family ynl_vulture_family =  {
	.name		= "vulture",
	.hdr_len	= sizeof(struct genlmsghdr),
	.ntf_info	= vulture_ntf_info,
	.ntf_info_size	= YNL_ARRAY_SIZE(vulture_ntf_info),
};
