/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lists of Documentation/vulture.yaml, as macros for initializers. Do not edit: written by
 * scripts/ynl.py (say make ynl), since the kernel's generator has no output for them.
 *
 *	VULTURE_<CONTROLLER>_DEFAULTS	defaults of a controller's options, by attribute
 *	VULTURE_<CONTROLLER>_<OPTION>_MAX	the greatest value
 *	VULTURE_OPTION_ROWS		all options, from 1: name, nest, attribute, least, greatest
 *					and default value, unit
 *	VULTURE_<CONTROLLER>_STAT_NAMES	names of a controller's statistics, by attribute
 *	VULTURE_<ENUM>_NAMES		names of an enum's values
 *	VULTURE_SETS			the attribute sets of requests, from 1
 *	VULTURE_SET_ROWS		their attributes, by set and number: name, set nested in it
 */
#ifndef VULTURE_LISTS_GEN_H
#define VULTURE_LISTS_GEN_H

#define VULTURE_CONTROLLER_DEFAULT 1

#define VULTURE_PAPER_TICK_US_MAX 10000
#define VULTURE_PAPER_PSI_US_MAX 1000000
#define VULTURE_PAPER_CONS_LOW_US_MAX 1000000
#define VULTURE_PAPER_CONS_HIGH_US_MAX 1000000
#define VULTURE_PAPER_AGGR_LOW_US_MAX 1000000
#define VULTURE_PAPER_AGGR_HIGH_US_MAX 1000000
#define VULTURE_PAPER_PAIRING_MAX 1
#define VULTURE_PAPER_ALPHA_PERMILLE_MAX 999
#define VULTURE_PAPER_INCREASE_SEGS_MAX 64
#define VULTURE_PAPER_POSITIVE_TEST_MAX 1
#define VULTURE_PAPER_GOALS_MAX 1
#define VULTURE_PAPER_SETTLE_MAX 1
#define VULTURE_PAPER_RETRACT_MAX 1
#define VULTURE_PAPER_OBSERVE_MAX 1

#define VULTURE_PAPER_DEFAULTS \
	[VULTURE_PAPER_O_TICK_US] = 4000, \
	[VULTURE_PAPER_O_PSI_US] = 20000, \
	[VULTURE_PAPER_O_CONS_LOW_US] = 4000, \
	[VULTURE_PAPER_O_CONS_HIGH_US] = 8000, \
	[VULTURE_PAPER_O_AGGR_LOW_US] = 12000, \
	[VULTURE_PAPER_O_AGGR_HIGH_US] = 20000, \
	[VULTURE_PAPER_O_PAIRING] = 0, \
	[VULTURE_PAPER_O_ALPHA_PERMILLE] = 875, \
	[VULTURE_PAPER_O_INCREASE_SEGS] = 1, \
	[VULTURE_PAPER_O_POSITIVE_TEST] = 1, \
	[VULTURE_PAPER_O_GOALS] = 0, \
	[VULTURE_PAPER_O_SETTLE] = 0, \
	[VULTURE_PAPER_O_RETRACT] = 1, \
	[VULTURE_PAPER_O_OBSERVE] = 0,

#define VULTURE_PAPER_STAT_NAMES \
	[VULTURE_PAPER_S_PHASE] = "phase", \
	[VULTURE_PAPER_S_MODE] = "mode", \
	[VULTURE_PAPER_S_POLICY] = "policy", \
	[VULTURE_PAPER_S_THRESH_BYTES] = "thresh_bytes", \
	[VULTURE_PAPER_S_CWND_BYTES] = "cwnd_bytes", \
	[VULTURE_PAPER_S_PEER_TICK_US] = "peer_tick_us", \
	[VULTURE_PAPER_S_LAST_PIVS] = "last_pivs", \
	[VULTURE_PAPER_S_LAST_POSITIVE] = "last_positive", \
	[VULTURE_PAPER_S_LAST_SUM_US] = "last_sum_us", \
	[VULTURE_PAPER_S_PIV_NEGATIVE] = "piv_negative", \
	[VULTURE_PAPER_S_PIV_ZERO] = "piv_zero", \
	[VULTURE_PAPER_S_PIV_POSITIVE] = "piv_positive", \
	[VULTURE_PAPER_S_PIV_LOW] = "piv_low", \
	[VULTURE_PAPER_S_PIV_MIDDLE] = "piv_middle", \
	[VULTURE_PAPER_S_PIV_HIGH] = "piv_high", \
	[VULTURE_PAPER_S_ROUNDS] = "rounds", \
	[VULTURE_PAPER_S_FIXES] = "fixes", \
	[VULTURE_PAPER_S_INCREASES] = "increases", \
	[VULTURE_PAPER_S_DOUBLINGS] = "doublings", \
	[VULTURE_PAPER_S_HALVINGS] = "halvings", \
	[VULTURE_PAPER_S_LOSSES] = "losses", \
	[VULTURE_PAPER_S_CONSERVATIVE_US] = "conservative_us", \
	[VULTURE_PAPER_S_AGGRESSIVE_US] = "aggressive_us",

#define VULTURE_CREDIT_MIN_KBIT_MAX 1000000
#define VULTURE_CREDIT_ESCAPE_S_MAX 86400
#define VULTURE_CREDIT_WEIGHT_MAX 1000000

#define VULTURE_CREDIT_DEFAULTS \
	[VULTURE_CREDIT_O_MIN_KBIT] = 2, \
	[VULTURE_CREDIT_O_ESCAPE_S] = 20, \
	[VULTURE_CREDIT_O_WEIGHT] = 1000,

#define VULTURE_CREDIT_STAT_NAMES \
	[VULTURE_CREDIT_S_PHASE] = "phase", \
	[VULTURE_CREDIT_S_FLOWS] = "flows", \
	[VULTURE_CREDIT_S_CAPACITY_BPS] = "capacity_bps", \
	[VULTURE_CREDIT_S_RATE_BPS] = "rate_bps", \
	[VULTURE_CREDIT_S_CREDIT_BYTES] = "credit_bytes", \
	[VULTURE_CREDIT_S_GROWTH_PERMILLE] = "growth_permille", \
	[VULTURE_CREDIT_S_FAILS] = "fails", \
	[VULTURE_CREDIT_S_YIELDS] = "yields", \
	[VULTURE_CREDIT_S_TRAINS] = "trains", \
	[VULTURE_CREDIT_S_TRAINS_FAILED] = "trains_failed",

#define VULTURE_RLEDBAT_TARGET_US_MAX 100000
#define VULTURE_RLEDBAT_SLOWDOWN_MAX 1

#define VULTURE_RLEDBAT_DEFAULTS \
	[VULTURE_RLEDBAT_O_TARGET_US] = 60000, \
	[VULTURE_RLEDBAT_O_SLOWDOWN] = 1,

#define VULTURE_RLEDBAT_STAT_NAMES \
	[VULTURE_RLEDBAT_S_STATE] = "state", \
	[VULTURE_RLEDBAT_S_SSTHRESH_BYTES] = "ssthresh_bytes", \
	[VULTURE_RLEDBAT_S_SAMPLES] = "samples", \
	[VULTURE_RLEDBAT_S_LOSSES] = "losses", \
	[VULTURE_RLEDBAT_S_SLOWDOWNS] = "slowdowns",

#define VULTURE_CONTROLLER_NAMES \
	"paper", "credit", "rledbat"

#define VULTURE_PAIRING_NAMES \
	"each", "literal"

#define VULTURE_MODE_NAMES \
	"conservative", "aggressive"

#define VULTURE_POLICY_NAMES \
	"fix", "increase", "double", "halve"

#define VULTURE_PHASE_NAMES \
	"observe", "start", "wait", "collect"

#define VULTURE_CREDIT_PHASE_NAMES \
	"start", "cruise", "floor", "probe"

#define VULTURE_RLEDBAT_STATE_NAMES \
	"start", "steady", "down", "ramp"

#define VULTURE_REASON_NAMES \
	"stopped", "closed", "removed"

#define VULTURE_OPTION_ROWS \
	[1] = { "controller", 0, VULTURE_O_CONTROLLER, 0, 2, 1, "-" }, \
	{ "tick-us", VULTURE_O_PAPER, VULTURE_PAPER_O_TICK_US, 1, 10000, 4000, "us" }, \
	{ "psi-us", VULTURE_O_PAPER, VULTURE_PAPER_O_PSI_US, 1000, 1000000, 20000, "us" }, \
	{ "cons-low-us", VULTURE_O_PAPER, VULTURE_PAPER_O_CONS_LOW_US, 1, 1000000, 4000, "us" }, \
	{ "cons-high-us", VULTURE_O_PAPER, VULTURE_PAPER_O_CONS_HIGH_US, 1, 1000000, 8000, "us" }, \
	{ "aggr-low-us", VULTURE_O_PAPER, VULTURE_PAPER_O_AGGR_LOW_US, 1, 1000000, 12000, "us" }, \
	{ "aggr-high-us", VULTURE_O_PAPER, VULTURE_PAPER_O_AGGR_HIGH_US, 1, 1000000, 20000, "us" }, \
	{ "pairing", VULTURE_O_PAPER, VULTURE_PAPER_O_PAIRING, 0, 1, 0, "-" }, \
	{ "alpha-permille", VULTURE_O_PAPER, VULTURE_PAPER_O_ALPHA_PERMILLE, 500, 999, 875, "1/1000" }, \
	{ "increase-segs", VULTURE_O_PAPER, VULTURE_PAPER_O_INCREASE_SEGS, 1, 64, 1, "segments" }, \
	{ "positive-test", VULTURE_O_PAPER, VULTURE_PAPER_O_POSITIVE_TEST, 0, 1, 1, "-" }, \
	{ "goals", VULTURE_O_PAPER, VULTURE_PAPER_O_GOALS, 0, 1, 0, "-" }, \
	{ "settle", VULTURE_O_PAPER, VULTURE_PAPER_O_SETTLE, 0, 1, 0, "-" }, \
	{ "retract", VULTURE_O_PAPER, VULTURE_PAPER_O_RETRACT, 0, 1, 1, "-" }, \
	{ "observe", VULTURE_O_PAPER, VULTURE_PAPER_O_OBSERVE, 0, 1, 0, "-" }, \
	{ "min-kbit", VULTURE_O_CREDIT, VULTURE_CREDIT_O_MIN_KBIT, 0, 1000000, 2, "kbit/s" }, \
	{ "escape-s", VULTURE_O_CREDIT, VULTURE_CREDIT_O_ESCAPE_S, 0, 86400, 20, "s" }, \
	{ "weight", VULTURE_O_CREDIT, VULTURE_CREDIT_O_WEIGHT, 1, 1000000, 1000, "-" }, \
	{ "target-us", VULTURE_O_RLEDBAT, VULTURE_RLEDBAT_O_TARGET_US, 1000, 100000, 60000, "us" }, \
	{ "slowdown", VULTURE_O_RLEDBAT, VULTURE_RLEDBAT_O_SLOWDOWN, 0, 1, 1, "-" },

#define VULTURE_SETS \
	VULTURE_SET_MAIN, \
	VULTURE_SET_ADDR, \
	VULTURE_SET_OPTIONS, \
	VULTURE_SET_PAPER_OPTIONS, \
	VULTURE_SET_CREDIT_OPTIONS, \
	VULTURE_SET_RLEDBAT_OPTIONS, \
	VULTURE_SET_RULE,

/* the greatest number of an attribute there */
#define VULTURE_SETS_MAX 14

#define VULTURE_SET_ROWS \
	[VULTURE_SET_MAIN] = { \
		[VULTURE_A_FD] = { "fd", 0 }, \
		[VULTURE_A_ADDR] = { "addr", VULTURE_SET_ADDR }, \
		[VULTURE_A_PID] = { "pid", 0 }, \
		[VULTURE_A_CGROUP] = { "cgroup", 0 }, \
		[VULTURE_A_ID] = { "id", 0 }, \
		[VULTURE_A_OPTIONS] = { "options", VULTURE_SET_OPTIONS }, \
		[VULTURE_A_FLOW] = { "flow", 0 }, \
		[VULTURE_A_RULE] = { "rule", VULTURE_SET_RULE }, \
		[VULTURE_A_COUNT] = { "count", 0 }, \
		[VULTURE_A_MAX_FLOWS] = { "max-flows", 0 }, \
		[VULTURE_A_FLOW_BYTES] = { "flow-bytes", 0 }, \
		[VULTURE_A_REASON] = { "reason", 0 }, \
		[VULTURE_A_VERSION] = { "version", 0 }, \
	}, \
	[VULTURE_SET_ADDR] = { \
		[VULTURE_ADDR_LOCAL] = { "local", 0 }, \
		[VULTURE_ADDR_LOCAL_PORT] = { "local-port", 0 }, \
		[VULTURE_ADDR_REMOTE] = { "remote", 0 }, \
		[VULTURE_ADDR_REMOTE_PORT] = { "remote-port", 0 }, \
	}, \
	[VULTURE_SET_OPTIONS] = { \
		[VULTURE_O_CONTROLLER] = { "controller", 0 }, \
		[VULTURE_O_PAPER] = { "paper", VULTURE_SET_PAPER_OPTIONS }, \
		[VULTURE_O_CREDIT] = { "credit", VULTURE_SET_CREDIT_OPTIONS }, \
		[VULTURE_O_RLEDBAT] = { "rledbat", VULTURE_SET_RLEDBAT_OPTIONS }, \
	}, \
	[VULTURE_SET_PAPER_OPTIONS] = { \
		[VULTURE_PAPER_O_TICK_US] = { "tick-us", 0 }, \
		[VULTURE_PAPER_O_PSI_US] = { "psi-us", 0 }, \
		[VULTURE_PAPER_O_CONS_LOW_US] = { "cons-low-us", 0 }, \
		[VULTURE_PAPER_O_CONS_HIGH_US] = { "cons-high-us", 0 }, \
		[VULTURE_PAPER_O_AGGR_LOW_US] = { "aggr-low-us", 0 }, \
		[VULTURE_PAPER_O_AGGR_HIGH_US] = { "aggr-high-us", 0 }, \
		[VULTURE_PAPER_O_PAIRING] = { "pairing", 0 }, \
		[VULTURE_PAPER_O_ALPHA_PERMILLE] = { "alpha-permille", 0 }, \
		[VULTURE_PAPER_O_INCREASE_SEGS] = { "increase-segs", 0 }, \
		[VULTURE_PAPER_O_POSITIVE_TEST] = { "positive-test", 0 }, \
		[VULTURE_PAPER_O_GOALS] = { "goals", 0 }, \
		[VULTURE_PAPER_O_SETTLE] = { "settle", 0 }, \
		[VULTURE_PAPER_O_RETRACT] = { "retract", 0 }, \
		[VULTURE_PAPER_O_OBSERVE] = { "observe", 0 }, \
	}, \
	[VULTURE_SET_CREDIT_OPTIONS] = { \
		[VULTURE_CREDIT_O_MIN_KBIT] = { "min-kbit", 0 }, \
		[VULTURE_CREDIT_O_ESCAPE_S] = { "escape-s", 0 }, \
		[VULTURE_CREDIT_O_WEIGHT] = { "weight", 0 }, \
	}, \
	[VULTURE_SET_RLEDBAT_OPTIONS] = { \
		[VULTURE_RLEDBAT_O_TARGET_US] = { "target-us", 0 }, \
		[VULTURE_RLEDBAT_O_SLOWDOWN] = { "slowdown", 0 }, \
	}, \
	[VULTURE_SET_RULE] = { \
		[VULTURE_R_ID] = { "id", 0 }, \
		[VULTURE_R_CGROUP] = { "cgroup", 0 }, \
		[VULTURE_R_LOCAL_PORT] = { "local-port", 0 }, \
		[VULTURE_R_REMOTE_PORT] = { "remote-port", 0 }, \
		[VULTURE_R_REMOTE_PREFIX] = { "remote-prefix", 0 }, \
		[VULTURE_R_REMOTE_PREFIX_BITS] = { "remote-prefix-bits", 0 }, \
		[VULTURE_R_OPTIONS] = { "options", VULTURE_SET_OPTIONS }, \
		[VULTURE_R_STARTED] = { "started", 0 }, \
		[VULTURE_R_FAILED] = { "failed", 0 }, \
		[VULTURE_R_CGROUP_FD] = { "cgroup-fd", 0 }, \
		[VULTURE_R_UID] = { "uid", 0 }, \
		[VULTURE_R_DSCP] = { "dscp", 0 }, \
		[VULTURE_R_FOREGROUND] = { "foreground", 0 }, \
	},

#endif /* VULTURE_LISTS_GEN_H */
