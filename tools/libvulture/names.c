// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/* libvulture: names of options, controllers and statistics. */
#include <errno.h>
#include <string.h>

#include "parts.h"

const struct lv_option lv_options[] = {
	[VULTURE_OPTION_CONTROLLER] = {
		"controller", 0, VULTURE_O_CONTROLLER, 0, LV_CONTROLLERS - 1,
		VULTURE_CONTROLLER_CREDIT, "-"
	},
	{ "tick-us", VULTURE_O_PAPER, VULTURE_PAPER_O_TICK_US, 1, 10000, 4000, "us" },
	{ "psi-us", VULTURE_O_PAPER, VULTURE_PAPER_O_PSI_US, 1000, 1000000, 20000, "us" },
	{ "cons-low-us", VULTURE_O_PAPER, VULTURE_PAPER_O_CONS_LOW_US, 1, 1000000, 4000, "us" },
	{ "cons-high-us", VULTURE_O_PAPER, VULTURE_PAPER_O_CONS_HIGH_US, 1, 1000000, 8000, "us" },
	{ "aggr-low-us", VULTURE_O_PAPER, VULTURE_PAPER_O_AGGR_LOW_US, 1, 1000000, 12000, "us" },
	{ "aggr-high-us", VULTURE_O_PAPER, VULTURE_PAPER_O_AGGR_HIGH_US, 1, 1000000, 20000, "us" },
	{ "pairing", VULTURE_O_PAPER, VULTURE_PAPER_O_PAIRING, 0, 1, 0, "-" },
	{ "alpha-permille", VULTURE_O_PAPER, VULTURE_PAPER_O_ALPHA_PERMILLE, 500, 999, 875,
	  "1/1000" },
	{ "increase-segs", VULTURE_O_PAPER, VULTURE_PAPER_O_INCREASE_SEGS, 1, 64, 1, "segments" },
	{ "positive-test", VULTURE_O_PAPER, VULTURE_PAPER_O_POSITIVE_TEST, 0, 1, 1, "-" },
	{ "goals", VULTURE_O_PAPER, VULTURE_PAPER_O_GOALS, 0, 1, 0, "-" },
	{ "settle", VULTURE_O_PAPER, VULTURE_PAPER_O_SETTLE, 0, 1, 0, "-" },
	{ "retract", VULTURE_O_PAPER, VULTURE_PAPER_O_RETRACT, 0, 1, 1, "-" },
	{ "observe", VULTURE_O_PAPER, VULTURE_PAPER_O_OBSERVE, 0, 1, 0, "-" },
	{ "min-kbit", VULTURE_O_CREDIT, VULTURE_CREDIT_O_MIN_KBIT, 0, 1000000, 2, "kbit/s" },
	{ "escape-s", VULTURE_O_CREDIT, VULTURE_CREDIT_O_ESCAPE_S, 0, 86400, 20, "s" },
	{ "weight", VULTURE_O_CREDIT, VULTURE_CREDIT_O_WEIGHT, 1, 1000000, 1000, "-" },
	{ "target-us", VULTURE_O_RLEDBAT, VULTURE_RLEDBAT_O_TARGET_US, 1000, 100000, 60000, "us" },
	{ "slowdown", VULTURE_O_RLEDBAT, VULTURE_RLEDBAT_O_SLOWDOWN, 0, 1, 1, "-" },
};

const unsigned int lv_n_options = sizeof(lv_options) / sizeof(lv_options[0]);

_Static_assert(VULTURE_OPTIONS + 1 >= sizeof(lv_options) / sizeof(lv_options[0]),
	       "no room for every option");

static const char *const controller_names[] = {
	[VULTURE_CONTROLLER_PAPER] = "paper",
	[VULTURE_CONTROLLER_CREDIT] = "credit",
	[VULTURE_CONTROLLER_RLEDBAT] = "rledbat",
};

/* Names of each controller's statistics, indexed by attribute number. */
static const char *const paper_stats[] = {
	[VULTURE_PAPER_S_PHASE] = "phase",
	[VULTURE_PAPER_S_MODE] = "mode",
	[VULTURE_PAPER_S_POLICY] = "policy",
	[VULTURE_PAPER_S_THRESH_BYTES] = "thresh_bytes",
	[VULTURE_PAPER_S_CWND_BYTES] = "cwnd_bytes",
	[VULTURE_PAPER_S_PEER_TICK_US] = "peer_tick_us",
	[VULTURE_PAPER_S_LAST_PIVS] = "last_pivs",
	[VULTURE_PAPER_S_LAST_POSITIVE] = "last_positive",
	[VULTURE_PAPER_S_LAST_SUM_US] = "last_sum_us",
	[VULTURE_PAPER_S_PIV_NEGATIVE] = "piv_negative",
	[VULTURE_PAPER_S_PIV_ZERO] = "piv_zero",
	[VULTURE_PAPER_S_PIV_POSITIVE] = "piv_positive",
	[VULTURE_PAPER_S_PIV_LOW] = "piv_low",
	[VULTURE_PAPER_S_PIV_MIDDLE] = "piv_middle",
	[VULTURE_PAPER_S_PIV_HIGH] = "piv_high",
	[VULTURE_PAPER_S_ROUNDS] = "rounds",
	[VULTURE_PAPER_S_FIXES] = "fixes",
	[VULTURE_PAPER_S_INCREASES] = "increases",
	[VULTURE_PAPER_S_DOUBLINGS] = "doublings",
	[VULTURE_PAPER_S_HALVINGS] = "halvings",
	[VULTURE_PAPER_S_LOSSES] = "losses",
	[VULTURE_PAPER_S_CONSERVATIVE_US] = "conservative_us",
	[VULTURE_PAPER_S_AGGRESSIVE_US] = "aggressive_us",
};

static const char *const credit_stats[] = {
	[VULTURE_CREDIT_S_PHASE] = "phase",
	[VULTURE_CREDIT_S_FLOWS] = "path_flows",
	[VULTURE_CREDIT_S_CAPACITY_BPS] = "capacity_bps",
	[VULTURE_CREDIT_S_RATE_BPS] = "path_rate_bps",
	[VULTURE_CREDIT_S_CREDIT_BYTES] = "credit_bytes",
	[VULTURE_CREDIT_S_GROWTH_PERMILLE] = "growth_permille",
	[VULTURE_CREDIT_S_FAILS] = "fails",
	[VULTURE_CREDIT_S_YIELDS] = "yields",
	[VULTURE_CREDIT_S_TRAINS] = "trains",
	[VULTURE_CREDIT_S_TRAINS_FAILED] = "trains_failed",
};

static const char *const rledbat_stats[] = {
	[VULTURE_RLEDBAT_S_STATE] = "state",
	[VULTURE_RLEDBAT_S_SSTHRESH_BYTES] = "ssthresh_bytes",
	[VULTURE_RLEDBAT_S_SAMPLES] = "samples",
	[VULTURE_RLEDBAT_S_LOSSES] = "losses",
	[VULTURE_RLEDBAT_S_SLOWDOWNS] = "slowdowns",
};

const struct lv_stats lv_stats[LV_CONTROLLERS] = {
	{ VULTURE_F_CREDIT, credit_stats, sizeof(credit_stats) / sizeof(credit_stats[0]) },
	{ VULTURE_F_PAPER, paper_stats, sizeof(paper_stats) / sizeof(paper_stats[0]) },
	{ VULTURE_F_RLEDBAT, rledbat_stats, sizeof(rledbat_stats) / sizeof(rledbat_stats[0]) },
};

static const char *name_of(const char *const *names, size_t n, uint32_t i)
{
	return i < n ? names[i] : "unknown";
}

#define NAME_OF(names, i) name_of(names, sizeof(names) / sizeof((names)[0]), i)

const char *vulture_option_name(unsigned int option)
{
	return option >= 1 && option < lv_n_options ? lv_options[option].name : NULL;
}

const char *vulture_controller_name(uint32_t controller)
{
	return NAME_OF(controller_names, controller);
}

int vulture_controller_number(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(controller_names) / sizeof(controller_names[0]); i++)
		if (!strcmp(controller_names[i], name))
			return (int)i;
	errno = EINVAL;
	return -1;
}

const char *vulture_phase_name(uint32_t phase)
{
	static const char *const names[] = { "observe", "start", "wait", "collect" };

	return NAME_OF(names, phase);
}

const char *vulture_mode_name(uint32_t mode)
{
	static const char *const names[] = { "conservative", "aggressive" };

	return NAME_OF(names, mode);
}

const char *vulture_policy_name(uint32_t policy)
{
	static const char *const names[] = { "fix", "increase", "double", "halve" };

	return NAME_OF(names, policy);
}

const char *vulture_credit_phase_name(uint32_t phase)
{
	static const char *const names[] = { "start", "cruise", "floor", "probe" };

	return NAME_OF(names, phase);
}

const char *vulture_rledbat_state_name(uint32_t state)
{
	static const char *const names[] = { "start", "steady", "down", "ramp" };

	return NAME_OF(names, state);
}

const char *vulture_reason_name(uint32_t reason)
{
	static const char *const names[] = { "stopped", "closed", "removed" };

	return NAME_OF(names, reason);
}

unsigned int lv_option_number(const char *name)
{
	unsigned int i;

	for (i = 1; i < lv_n_options; i++)
		if (!strcmp(lv_options[i].name, name))
			return i;
	errno = EINVAL;
	return 0;
}

int lv_option_range(const char *name, uint32_t *min, uint32_t *max)
{
	unsigned int option = lv_option_number(name);

	if (!option)
		return -1;
	*min = lv_options[option].min;
	*max = lv_options[option].max;
	return 0;
}

int vulture_option(struct vulture_options *options, const char *name, uint32_t value)
{
	unsigned int option = lv_option_number(name);

	if (!option)
		return -1;
	options->set |= 1ULL << option;
	options->value[option] = value;
	return 0;
}
