// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/* libvulture: names of options, controllers and statistics, from Documentation/vulture.yaml. */
#include <errno.h>
#include <linux/genetlink.h>
#include <string.h>

#include "../../vulture/lists_gen.h"
#include "parts.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

const struct lv_option lv_options[] = { VULTURE_OPTION_ROWS };

const unsigned int lv_n_options = LENGTH(lv_options);

_Static_assert(VULTURE_OPTIONS + 1 >= LENGTH(lv_options), "no room for every option");

/* Names of each controller's statistics, indexed by attribute number. */
static const char *const paper_stats[] = { VULTURE_PAPER_STAT_NAMES };
static const char *const credit_stats[] = { VULTURE_CREDIT_STAT_NAMES };
static const char *const rledbat_stats[] = { VULTURE_RLEDBAT_STAT_NAMES };

const struct lv_stats lv_stats[LV_CONTROLLERS] = {
	{ VULTURE_F_CREDIT, credit_stats, LENGTH(credit_stats) },
	{ VULTURE_F_PAPER, paper_stats, LENGTH(paper_stats) },
	{ VULTURE_F_RLEDBAT, rledbat_stats, LENGTH(rledbat_stats) },
};

/* Two statistics of credit are those of the path. The ABI says so in their names. */
const char *lv_stat_name(const struct lv_stats *stats, size_t stat)
{
	if (stats->nest == VULTURE_F_CREDIT && stat == VULTURE_CREDIT_S_FLOWS)
		return "path_flows";
	if (stats->nest == VULTURE_F_CREDIT && stat == VULTURE_CREDIT_S_RATE_BPS)
		return "path_rate_bps";
	return stats->names[stat];
}

enum { NO_SET, VULTURE_SETS };

/* The attributes of requests, by set and number. */
static const struct {
	const char *name;
	unsigned int nested;	/* the set of its nest */
} attributes[][VULTURE_SETS_MAX + 1] = { VULTURE_SET_ROWS };

/* Walk down from the request's attributes to the one that begins at the offset. */
const struct nlattr *lv_attribute_at(const struct nlmsghdr *nlh, size_t at, const char **name)
{
	const char *base = (const char *)nlh;
	size_t from = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(struct genlmsghdr));
	size_t to = nlh->nlmsg_len;
	unsigned int set = VULTURE_SET_MAIN;

	while (set != NO_SET && from + sizeof(struct nlattr) <= to) {
		const struct nlattr *attr = (const struct nlattr *)(base + from);
		unsigned int type = mnl_attr_get_type(attr);
		size_t end = from + attr->nla_len;

		if (attr->nla_len < sizeof(*attr) || end > to)
			return NULL;
		if (at >= end) {
			from += MNL_ALIGN(attr->nla_len);
			continue;
		}
		if (type > VULTURE_SETS_MAX || !attributes[set][type].name)
			return NULL;
		if (at == from) {
			*name = attributes[set][type].name;
			return attr;
		}
		set = attributes[set][type].nested;
		from += MNL_ATTR_HDRLEN;
		to = end;
	}
	return NULL;
}

static const char *const controller_names[] = { VULTURE_CONTROLLER_NAMES };

static const char *name_of(const char *const *names, size_t n, uint32_t i)
{
	return i < n ? names[i] : "unknown";
}

#define NAME_OF(names, i) name_of(names, LENGTH(names), i)

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

	for (i = 0; i < LENGTH(controller_names); i++)
		if (!strcmp(controller_names[i], name))
			return (int)i;
	errno = EINVAL;
	return -1;
}

const char *vulture_phase_name(uint32_t phase)
{
	static const char *const names[] = { VULTURE_PHASE_NAMES };

	return NAME_OF(names, phase);
}

const char *vulture_mode_name(uint32_t mode)
{
	static const char *const names[] = { VULTURE_MODE_NAMES };

	return NAME_OF(names, mode);
}

const char *vulture_policy_name(uint32_t policy)
{
	static const char *const names[] = { VULTURE_POLICY_NAMES };

	return NAME_OF(names, policy);
}

const char *vulture_credit_phase_name(uint32_t phase)
{
	static const char *const names[] = { VULTURE_CREDIT_PHASE_NAMES };

	return NAME_OF(names, phase);
}

const char *vulture_rledbat_state_name(uint32_t state)
{
	static const char *const names[] = { VULTURE_RLEDBAT_STATE_NAMES };

	return NAME_OF(names, state);
}

const char *vulture_reason_name(uint32_t reason)
{
	static const char *const names[] = { VULTURE_REASON_NAMES };

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
