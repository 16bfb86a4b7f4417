// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/*
 * libvulture on libmnl: one request, its answer, its error text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* Command and attribute numbers; users of the library need none of them. */
#include "../../vulture/uapi/vulture.h"

/* Requests are small; answers fit a page of the kernel's. */
#define BUFFER_BYTES	32768

struct vulture {
	struct mnl_socket *nl;
	uint16_t family;
	uint32_t events;		/* multicast group */
	uint32_t seq;
	char error[256];
	char buffer[BUFFER_BYTES];	/* the message under way */
	size_t event_len;		/* events left in buffer, bytes */
	const struct nlmsghdr *event;	/* the next of them */
};

static __thread char open_error[256];

/* What an answer is turned into. */
struct sink {
	void (*message)(const struct nlmsghdr *nlh, struct sink *sink);
	int (*each_flow)(const struct vulture_flow *flow, void *arg);
	int (*each_rule)(const struct vulture_rule *rule, void *arg);
	void *arg;		/* of either */
	int ended;		/* what it returned, if not 0 */
	void *result;		/* of other messages */
};

/* Options by their number in the library: the nest of their controller, 0 for the
 * controller itself, and their attribute there.
 */
static const struct {
	const char *name;
	uint16_t nest, attr;
} option_table[] = {
	[VULTURE_OPTION_CONTROLLER] = { "controller", 0, VULTURE_O_CONTROLLER },
	{ "tick-us", VULTURE_O_PAPER, VULTURE_PAPER_O_TICK_US },
	{ "psi-us", VULTURE_O_PAPER, VULTURE_PAPER_O_PSI_US },
	{ "cons-low-us", VULTURE_O_PAPER, VULTURE_PAPER_O_CONS_LOW_US },
	{ "cons-high-us", VULTURE_O_PAPER, VULTURE_PAPER_O_CONS_HIGH_US },
	{ "aggr-low-us", VULTURE_O_PAPER, VULTURE_PAPER_O_AGGR_LOW_US },
	{ "aggr-high-us", VULTURE_O_PAPER, VULTURE_PAPER_O_AGGR_HIGH_US },
	{ "pairing", VULTURE_O_PAPER, VULTURE_PAPER_O_PAIRING },
	{ "alpha-permille", VULTURE_O_PAPER, VULTURE_PAPER_O_ALPHA_PERMILLE },
	{ "increase-segs", VULTURE_O_PAPER, VULTURE_PAPER_O_INCREASE_SEGS },
	{ "positive-test", VULTURE_O_PAPER, VULTURE_PAPER_O_POSITIVE_TEST },
	{ "goals", VULTURE_O_PAPER, VULTURE_PAPER_O_GOALS },
	{ "settle", VULTURE_O_PAPER, VULTURE_PAPER_O_SETTLE },
	{ "retract", VULTURE_O_PAPER, VULTURE_PAPER_O_RETRACT },
	{ "observe", VULTURE_O_PAPER, VULTURE_PAPER_O_OBSERVE },
	{ "min-kbit", VULTURE_O_CREDIT, VULTURE_CREDIT_O_MIN_KBIT },
	{ "escape-s", VULTURE_O_CREDIT, VULTURE_CREDIT_O_ESCAPE_S },
	{ "weight", VULTURE_O_CREDIT, VULTURE_CREDIT_O_WEIGHT },
	{ "target-us", VULTURE_O_RLEDBAT, VULTURE_RLEDBAT_O_TARGET_US },
	{ "slowdown", VULTURE_O_RLEDBAT, VULTURE_RLEDBAT_O_SLOWDOWN },
};

#define N_OPTIONS	(sizeof(option_table) / sizeof(option_table[0]))

_Static_assert(VULTURE_OPTIONS + 1 >= sizeof(option_table) / sizeof(option_table[0]),
	       "no room for every option");

static const char *const controller_names[] = {
	[VULTURE_CONTROLLER_PAPER] = "paper",
	[VULTURE_CONTROLLER_CREDIT] = "credit",
	[VULTURE_CONTROLLER_RLEDBAT] = "rledbat",
};

/* Statistics by their attribute, for each controller. */
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

static const struct {
	uint16_t nest;
	const char *const *names;
	size_t n;
} stat_table[] = {
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
	return option >= 1 && option < N_OPTIONS ? option_table[option].name : NULL;
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

const char *vulture_reason_name(uint32_t reason)
{
	static const char *const names[] = { "stopped", "closed", "removed" };

	return NAME_OF(names, reason);
}

static void set_option(struct vulture_options *options, unsigned int option, uint32_t value)
{
	options->set |= 1ULL << option;
	options->value[option] = value;
}

int vulture_option(struct vulture_options *options, const char *name, uint32_t value)
{
	unsigned int i;

	for (i = 1; i < N_OPTIONS; i++) {
		if (!strcmp(option_table[i].name, name)) {
			set_option(options, i, value);
			return 0;
		}
	}
	errno = EINVAL;
	return -1;
}

__attribute__((format(printf, 3, 4)))
static int fail(struct vulture *v, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(v->error, sizeof(v->error), format, args);
	va_end(args);
	errno = err;
	return -1;
}

const char *vulture_error(const struct vulture *v)
{
	return v ? v->error : open_error;
}

/* Attributes of one nest, by type; unknown ones are passed over, so that a
 * newer kernel may say more.
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

static void parse_nest(const struct nlattr *nest, const struct nlattr **attrs, unsigned int max)
{
	struct table table = { attrs, max };

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	if (nest)
		mnl_attr_parse_nested(nest, collect, &table);
}

static void parse_message(const struct nlmsghdr *nlh, const struct nlattr **attrs,
			  unsigned int max)
{
	struct table table = { attrs, max };

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), collect, &table);
}

static uint32_t get_u32(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u32(attr) : 0;
}

static uint16_t get_u16(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u16(attr) : 0;
}

static uint64_t get_u64(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u64(attr) : 0;
}

static void read_options(const struct nlattr *nest, struct vulture_options *options)
{
	const struct nlattr *outer[VULTURE_O_MAX + 1], *inner[VULTURE_OPTIONS + 1];
	unsigned int i;

	memset(options, 0, sizeof(*options));
	parse_nest(nest, outer, VULTURE_O_MAX);
	for (i = 1; i < N_OPTIONS; i++) {
		const struct nlattr *attr = outer[option_table[i].attr];

		if (option_table[i].nest) {
			parse_nest(outer[option_table[i].nest], inner, VULTURE_OPTIONS);
			attr = inner[option_table[i].attr];
		}
		if (!attr)
			continue;
		options->set |= 1ULL << i;
		options->value[i] = mnl_attr_get_u32(attr);
	}
}

/* The statistics of whichever controller runs, by name. */
static void read_stats(const struct nlattr *const *flow_attrs, struct vulture_flow *flow)
{
	size_t k;

	for (k = 0; k < sizeof(stat_table) / sizeof(stat_table[0]); k++) {
		const struct nlattr *attrs[VULTURE_STATS + 1];
		size_t i;

		if (!flow_attrs[stat_table[k].nest])
			continue;
		parse_nest(flow_attrs[stat_table[k].nest], attrs, VULTURE_STATS);
		for (i = 1; i < stat_table[k].n; i++) {
			struct vulture_stat *stat = &flow->stats[flow->n_stats++];

			stat->name = stat_table[k].names[i];
			stat->value = (int64_t)get_u64(attrs[i]);
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

	parse_nest(nest, attrs, VULTURE_ADDR_MAX);
	read_end(attrs[VULTURE_ADDR_LOCAL], attrs[VULTURE_ADDR_LOCAL_PORT], &address->local.in6);
	read_end(attrs[VULTURE_ADDR_REMOTE], attrs[VULTURE_ADDR_REMOTE_PORT],
		 &address->remote.in6);
}

static void read_flow(const struct nlattr *nest, struct vulture_flow *flow)
{
	const struct nlattr *a[VULTURE_STATS + 1];

	parse_nest(nest, a, VULTURE_F_MAX);
	memset(flow, 0, sizeof(*flow));
	flow->id = get_u64(a[VULTURE_F_ID]);
	read_address(a[VULTURE_F_ADDR], &flow->address);
	flow->rule = get_u32(a[VULTURE_F_RULE]);
	read_options(a[VULTURE_F_OPTIONS], &flow->options);
	flow->controller = flow->options.value[VULTURE_OPTION_CONTROLLER];
	flow->rwnd_bytes = get_u32(a[VULTURE_F_WINDOW_BYTES]);
	flow->advertised_bytes = get_u32(a[VULTURE_F_ADVERTISED_BYTES]);
	flow->own_bytes = get_u32(a[VULTURE_F_OWN_BYTES]);
	flow->rtt_us = get_u32(a[VULTURE_F_RTT_US]);
	flow->min_rtt_us = get_u32(a[VULTURE_F_MIN_RTT_US]);
	flow->queue_us = get_u32(a[VULTURE_F_QUEUE_US]);
	flow->mss_bytes = get_u32(a[VULTURE_F_MSS_BYTES]);
	flow->age_us = get_u64(a[VULTURE_F_AGE_US]);
	flow->segments = get_u64(a[VULTURE_F_SEGMENTS]);
	flow->bytes = get_u64(a[VULTURE_F_BYTES]);
	flow->acks = get_u64(a[VULTURE_F_ACKS]);
	flow->rewritten = get_u64(a[VULTURE_F_REWRITTEN]);
	flow->updates = get_u64(a[VULTURE_F_UPDATES]);
	read_stats(a, flow);
	parse_nest(a[VULTURE_F_PAPER], a, VULTURE_PAPER_S_MAX);
	flow->phase = (uint32_t)get_u64(a[VULTURE_PAPER_S_PHASE]);
	flow->mode = (uint32_t)get_u64(a[VULTURE_PAPER_S_MODE]);
	flow->policy = (uint32_t)get_u64(a[VULTURE_PAPER_S_POLICY]);
	flow->thresh_bytes = (uint32_t)get_u64(a[VULTURE_PAPER_S_THRESH_BYTES]);
	flow->cwnd_bytes = (uint32_t)get_u64(a[VULTURE_PAPER_S_CWND_BYTES]);
	flow->peer_tick_us = (uint32_t)get_u64(a[VULTURE_PAPER_S_PEER_TICK_US]);
	flow->last_pivs = (uint32_t)get_u64(a[VULTURE_PAPER_S_LAST_PIVS]);
	flow->last_positive = (uint32_t)get_u64(a[VULTURE_PAPER_S_LAST_POSITIVE]);
	flow->last_sum_us = (int64_t)get_u64(a[VULTURE_PAPER_S_LAST_SUM_US]);
	flow->piv_negative = get_u64(a[VULTURE_PAPER_S_PIV_NEGATIVE]);
	flow->piv_zero = get_u64(a[VULTURE_PAPER_S_PIV_ZERO]);
	flow->piv_positive = get_u64(a[VULTURE_PAPER_S_PIV_POSITIVE]);
	flow->piv_low = get_u64(a[VULTURE_PAPER_S_PIV_LOW]);
	flow->piv_middle = get_u64(a[VULTURE_PAPER_S_PIV_MIDDLE]);
	flow->piv_high = get_u64(a[VULTURE_PAPER_S_PIV_HIGH]);
	flow->rounds = get_u64(a[VULTURE_PAPER_S_ROUNDS]);
	flow->fixes = get_u64(a[VULTURE_PAPER_S_FIXES]);
	flow->increases = get_u64(a[VULTURE_PAPER_S_INCREASES]);
	flow->doublings = get_u64(a[VULTURE_PAPER_S_DOUBLINGS]);
	flow->halvings = get_u64(a[VULTURE_PAPER_S_HALVINGS]);
	flow->losses = get_u64(a[VULTURE_PAPER_S_LOSSES]);
	flow->conservative_us = get_u64(a[VULTURE_PAPER_S_CONSERVATIVE_US]);
	flow->aggressive_us = get_u64(a[VULTURE_PAPER_S_AGGRESSIVE_US]);
}

static void read_rule(const struct nlattr *nest, struct vulture_rule *rule)
{
	const struct nlattr *a[VULTURE_R_MAX + 1];
	const struct nlattr *prefix;
	uint16_t length;

	parse_nest(nest, a, VULTURE_R_MAX);
	memset(rule, 0, sizeof(*rule));
	rule->id = get_u32(a[VULTURE_R_ID]);
	rule->cgroup = get_u64(a[VULTURE_R_CGROUP]);
	rule->owned = a[VULTURE_R_UID];
	rule->uid = get_u32(a[VULTURE_R_UID]);
	rule->local_port = get_u16(a[VULTURE_R_LOCAL_PORT]);
	rule->remote_port = get_u16(a[VULTURE_R_REMOTE_PORT]);
	read_options(a[VULTURE_R_OPTIONS], &rule->options);
	rule->started = get_u64(a[VULTURE_R_STARTED]);
	rule->failed = get_u64(a[VULTURE_R_FAILED]);
	prefix = a[VULTURE_R_REMOTE_PREFIX];
	if (!prefix)
		return;
	length = mnl_attr_get_payload_len(prefix);
	if (length != 4 && length != 16)
		return;
	rule->family = length == 4 ? AF_INET : AF_INET6;
	memcpy(rule->prefix, mnl_attr_get_payload(prefix), length);
	if (a[VULTURE_R_REMOTE_PREFIX_LEN])
		rule->prefix_len = mnl_attr_get_u8(a[VULTURE_R_REMOTE_PREFIX_LEN]);
}

/* Requests */

static struct nlmsghdr *request(struct vulture *v, uint16_t type, uint16_t flags, uint8_t cmd,
				uint8_t version)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(v->buffer);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++v->seq;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
	return nlh;
}

static struct nlmsghdr *command(struct vulture *v, uint8_t cmd, uint16_t flags)
{
	return request(v, v->family, flags, cmd, VULTURE_GENL_VERSION);
}

/* The kernel's own words on a failure, if it gave any. */
static int kernel_error(struct vulture *v, const struct nlmsghdr *nlh, int err, size_t skip)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, skip) {
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG) {
			const char *text = mnl_attr_get_str(attr);

			/* The module's name, which it puts before them. */
			if (!strncmp(text, "vulture: ", 9))
				text += 9;
			return fail(v, err, "%s", text);
		}
	}
	return fail(v, err, "%s", strerror(err));
}

/* Return: 1 the answer is complete, 0 go on, -1 failed. */
static int answer(struct vulture *v, const struct nlmsghdr *nlh, struct sink *sink)
{
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

		if (!e->error)
			return 1;
		return kernel_error(v, nlh, -e->error, sizeof(*e));
	}
	if (nlh->nlmsg_type == NLMSG_DONE) {
		const int *err = mnl_nlmsg_get_payload(nlh);

		return *err < 0 ? kernel_error(v, nlh, -*err, sizeof(*err)) : 1;
	}
	if (sink && !sink->ended)
		sink->message(nlh, sink);
	return 0;
}

/* Messages of a dump, kept until it is complete. */
struct kept {
	char *data;
	size_t bytes, room;
};

static int keep(struct kept *kept, const struct nlmsghdr *nlh)
{
	size_t bytes = MNL_ALIGN(nlh->nlmsg_len);

	if (kept->bytes + bytes > kept->room) {
		size_t room = kept->room ? 2 * kept->room : 4 * BUFFER_BYTES;
		char *grown = realloc(kept->data, room);

		if (!grown)
			return -1;
		kept->data = grown;
		kept->room = room;
	}
	memcpy(kept->data + kept->bytes, nlh, nlh->nlmsg_len);
	kept->bytes += bytes;
	return 0;
}

/* The caller's function may use this handle: the dump is over, and none of it is in the buffer. */
static void hand_over(const struct kept *kept, struct sink *sink)
{
	size_t at = 0;

	while (at < kept->bytes && !sink->ended) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(kept->data + at);

		sink->message(nlh, sink);
		at += MNL_ALIGN(nlh->nlmsg_len);
	}
}

/* Read an answer to its end. A dump is handed over once it is complete. */
static int read_answer(struct vulture *v, uint32_t seq, struct sink *sink, struct kept *kept)
{
	uint32_t portid = mnl_socket_get_portid(v->nl);

	for (;;) {
		ssize_t got = mnl_socket_recvfrom(v->nl, v->buffer, sizeof(v->buffer));
		const struct nlmsghdr *nlh;
		int left = (int)got;

		if (got < 0)
			return fail(v, errno, "no answer from the kernel: %s", strerror(errno));
		for (nlh = (const struct nlmsghdr *)v->buffer; mnl_nlmsg_ok(nlh, left);
		     nlh = mnl_nlmsg_next(nlh, &left)) {
			int state;

			/* The rest of an earlier answer that was given up. */
			if (!mnl_nlmsg_seq_ok(nlh, seq) || !mnl_nlmsg_portid_ok(nlh, portid))
				continue;
			if (kept && nlh->nlmsg_type >= NLMSG_MIN_TYPE) {
				if (keep(kept, nlh))
					return fail(v, ENOMEM, "no memory for the answer");
				continue;
			}
			state = answer(v, nlh, sink);
			if (state)
				return state < 0 ? -1 : 0;
		}
	}
}

/* Send what is in the buffer and read the answer to its end. */
static int talk(struct vulture *v, struct nlmsghdr *nlh, struct sink *sink)
{
	bool dump = nlh->nlmsg_flags & NLM_F_DUMP;
	uint32_t seq = nlh->nlmsg_seq;
	struct kept kept = {};
	int result;

	v->error[0] = '\0';
	if (!dump)
		nlh->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(v->nl, nlh, nlh->nlmsg_len) < 0)
		return fail(v, errno, "cannot send to the kernel: %s", strerror(errno));
	result = read_answer(v, seq, sink, dump ? &kept : NULL);
	if (!result)
		hand_over(&kept, sink);
	free(kept.data);
	return result;
}

/* One nest for each controller whose options are set. */
static void put_values(struct nlmsghdr *nlh, uint16_t type, const struct vulture_options *options)
{
	struct nlattr *nest = NULL;
	unsigned int i;

	for (i = 1; i < N_OPTIONS; i++) {
		if (option_table[i].nest != type || !(options->set & (1ULL << i)))
			continue;
		if (!nest)
			nest = mnl_attr_nest_start(nlh, type);
		mnl_attr_put_u32(nlh, option_table[i].attr, options->value[i]);
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

static void on_count(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];

	parse_message(nlh, attrs, VULTURE_A_MAX);
	*(int *)sink->result = (int)get_u32(attrs[VULTURE_A_COUNT]);
}

static void on_flow(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];
	struct vulture_flow flow;

	parse_message(nlh, attrs, VULTURE_A_MAX);
	read_flow(attrs[VULTURE_A_FLOW], &flow);
	if (sink->each_flow)
		sink->ended = sink->each_flow(&flow, sink->arg);
	else
		*(struct vulture_flow *)sink->result = flow;
}

static void on_rule(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];
	struct vulture_rule rule;

	parse_message(nlh, attrs, VULTURE_A_MAX);
	read_rule(attrs[VULTURE_A_RULE], &rule);
	if (sink->each_rule)
		sink->ended = sink->each_rule(&rule, sink->arg);
	else
		*(struct vulture_rule *)sink->result = rule;
}

static void on_defaults(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[VULTURE_A_MAX + 1];
	struct vulture_defaults *defaults = sink->result;

	parse_message(nlh, attrs, VULTURE_A_MAX);
	memset(defaults, 0, sizeof(*defaults));
	read_options(attrs[VULTURE_A_OPTIONS], &defaults->options);
	defaults->max_flows = get_u32(attrs[VULTURE_A_MAX_FLOWS]);
	defaults->flows = get_u32(attrs[VULTURE_A_COUNT]);
	defaults->flow_bytes = get_u32(attrs[VULTURE_A_FLOW_BYTES]);
	if (attrs[VULTURE_A_VERSION])
		snprintf(defaults->version, sizeof(defaults->version), "%s",
			 mnl_attr_get_str(attrs[VULTURE_A_VERSION]));
}

static int talk_count(struct vulture *v, struct nlmsghdr *nlh)
{
	int count = 0;
	struct sink sink = { .message = on_count, .result = &count };

	return talk(v, nlh, &sink) < 0 ? -1 : count;
}

static int talk_flow(struct vulture *v, struct nlmsghdr *nlh, struct vulture_flow *flow)
{
	struct sink sink = { .message = on_flow, .result = flow };

	return talk(v, nlh, &sink);
}

/* Opening */

static int find_group(const struct nlattr *nest, uint32_t *id)
{
	const struct nlattr *group;

	mnl_attr_for_each_nested(group, nest) {
		const struct nlattr *attrs[CTRL_ATTR_MCAST_GRP_MAX + 1];

		parse_nest(group, attrs, CTRL_ATTR_MCAST_GRP_MAX);
		if (attrs[CTRL_ATTR_MCAST_GRP_NAME] && attrs[CTRL_ATTR_MCAST_GRP_ID] &&
		    !strcmp(mnl_attr_get_str(attrs[CTRL_ATTR_MCAST_GRP_NAME]),
			    VULTURE_MCGRP_EVENTS)) {
			*id = mnl_attr_get_u32(attrs[CTRL_ATTR_MCAST_GRP_ID]);
			return 0;
		}
	}
	return -1;
}

static void on_family(const struct nlmsghdr *nlh, struct sink *sink)
{
	const struct nlattr *attrs[CTRL_ATTR_MAX + 1];
	struct vulture *v = sink->result;

	parse_message(nlh, attrs, CTRL_ATTR_MAX);
	v->family = get_u16(attrs[CTRL_ATTR_FAMILY_ID]);
	if (attrs[CTRL_ATTR_MCAST_GROUPS])
		find_group(attrs[CTRL_ATTR_MCAST_GROUPS], &v->events);
}

static int find_family(struct vulture *v)
{
	struct nlmsghdr *nlh = request(v, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, 1);
	struct sink sink = { .message = on_family, .result = v };

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, VULTURE_GENL_NAME);
	if (talk(v, nlh, &sink) < 0)
		return errno != ENOENT ? -1 :
		       fail(v, ENOENT, "the kernel module vulture is not loaded (modprobe vulture)");
	return v->family ? 0 : fail(v, EPROTO, "the kernel named no netlink family");
}

struct vulture *vulture_open(void)
{
	struct vulture *v = calloc(1, sizeof(*v));
	int on = 1;

	if (!v) {
		snprintf(open_error, sizeof(open_error), "out of memory");
		return NULL;
	}
	v->nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!v->nl || mnl_socket_bind(v->nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		fail(v, errno, "cannot open generic netlink: %s", strerror(errno));
		goto err;
	}
	/* Texts with errors; short ones, without our request in them. */
	mnl_socket_setsockopt(v->nl, NETLINK_EXT_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(v->nl, NETLINK_CAP_ACK, &on, sizeof(on));
	if (!find_family(v))
		return v;
err:
	on = errno;
	snprintf(open_error, sizeof(open_error), "%s", v->error);
	vulture_close(v);
	errno = on;
	return NULL;
}

void vulture_close(struct vulture *v)
{
	if (!v)
		return;
	if (v->nl)
		mnl_socket_close(v->nl);
	free(v);
}

/* One connection, or all of a process or cgroup */

static int nothing_or_error(int count)
{
	return count < 0 ? -1 : 0;
}

int vulture_start(struct vulture *v, int fd, const struct vulture_options *options)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_START, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_FD, fd);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_stop(struct vulture *v, int fd)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_FD, fd);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_get(struct vulture *v, int fd, struct vulture_flow *flow)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_GET, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_FD, fd);
	return talk_flow(v, nlh, flow);
}

int vulture_start_address(struct vulture *v, const struct vulture_address *address,
			  const struct vulture_options *options)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_START, 0);

	put_address(nlh, address);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_stop_address(struct vulture *v, const struct vulture_address *address)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_STOP, 0);

	put_address(nlh, address);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_get_address(struct vulture *v, const struct vulture_address *address,
			struct vulture_flow *flow)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_GET, 0);

	put_address(nlh, address);
	return talk_flow(v, nlh, flow);
}

int vulture_start_pid(struct vulture *v, uint32_t pid, const struct vulture_options *options)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_START, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_PID, pid);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return talk_count(v, nlh);
}

int vulture_stop_pid(struct vulture *v, uint32_t pid)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u32(nlh, VULTURE_A_PID, pid);
	return talk_count(v, nlh);
}

int vulture_start_cgroup(struct vulture *v, uint64_t cgroup,
			 const struct vulture_options *options)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_START, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_CGROUP, cgroup);
	put_options(nlh, VULTURE_A_OPTIONS, options);
	return talk_count(v, nlh);
}

int vulture_stop_cgroup(struct vulture *v, uint64_t cgroup)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_CGROUP, cgroup);
	return talk_count(v, nlh);
}

int vulture_get_id(struct vulture *v, uint64_t id, struct vulture_flow *flow)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_GET, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_ID, id);
	return talk_flow(v, nlh, flow);
}

int vulture_stop_id(struct vulture *v, uint64_t id)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_STOP, 0);

	mnl_attr_put_u64(nlh, VULTURE_A_ID, id);
	return nothing_or_error(talk_count(v, nlh));
}

int vulture_list(struct vulture *v, int (*each)(const struct vulture_flow *flow, void *arg),
		 void *arg)
{
	struct sink sink = { .message = on_flow, .each_flow = each, .arg = arg };

	if (talk(v, command(v, VULTURE_CMD_GET, NLM_F_DUMP), &sink) < 0)
		return -1;
	return sink.ended;
}

/* Rules and defaults */

int vulture_rule_add(struct vulture *v, struct vulture_rule *rule)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_RULE_ADD, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, VULTURE_A_RULE);
	struct sink sink = { .message = on_rule, .result = rule };

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
		mnl_attr_put_u8(nlh, VULTURE_R_REMOTE_PREFIX_LEN, rule->prefix_len);
	}
	put_options(nlh, VULTURE_R_OPTIONS, &rule->options);
	mnl_attr_nest_end(nlh, nest);
	return talk(v, nlh, &sink);
}

int vulture_rule_del(struct vulture *v, uint32_t id)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_RULE_DEL, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, VULTURE_A_RULE);

	mnl_attr_put_u32(nlh, VULTURE_R_ID, id);
	mnl_attr_nest_end(nlh, nest);
	return talk(v, nlh, NULL);
}

int vulture_rule_list(struct vulture *v, int (*each)(const struct vulture_rule *rule, void *arg),
		      void *arg)
{
	struct sink sink = { .message = on_rule, .each_rule = each, .arg = arg };

	if (talk(v, command(v, VULTURE_CMD_RULE_GET, NLM_F_DUMP), &sink) < 0)
		return -1;
	return sink.ended;
}

int vulture_get_defaults(struct vulture *v, struct vulture_defaults *defaults)
{
	struct sink sink = { .message = on_defaults, .result = defaults };

	return talk(v, command(v, VULTURE_CMD_GET_DEFAULTS, 0), &sink);
}

int vulture_set_defaults(struct vulture *v, const struct vulture_options *options,
			 const uint32_t *max_flows)
{
	struct nlmsghdr *nlh = command(v, VULTURE_CMD_SET, 0);

	put_options(nlh, VULTURE_A_OPTIONS, options);
	if (max_flows)
		mnl_attr_put_u32(nlh, VULTURE_A_MAX_FLOWS, *max_flows);
	return talk(v, nlh, NULL);
}

/* Events */

int vulture_listen(struct vulture *v)
{
	if (mnl_socket_setsockopt(v->nl, NETLINK_ADD_MEMBERSHIP, &v->events,
				  sizeof(v->events)) < 0)
		return fail(v, errno, "cannot listen to events: %s", strerror(errno));
	return mnl_socket_get_fd(v->nl);
}

/* The next message: of those read before, or from the kernel. */
static const struct nlmsghdr *next_event(struct vulture *v)
{
	const struct nlmsghdr *nlh;
	int left;

	while (!v->event || !mnl_nlmsg_ok(v->event, (int)v->event_len)) {
		ssize_t got = mnl_socket_recvfrom(v->nl, v->buffer, sizeof(v->buffer));

		if (got < 0)
			return NULL;
		v->event = (const struct nlmsghdr *)v->buffer;
		v->event_len = got;
	}
	nlh = v->event;
	left = (int)v->event_len;
	v->event = mnl_nlmsg_next(nlh, &left);
	v->event_len = left;
	return nlh;
}

int vulture_event(struct vulture *v, struct vulture_flow *flow, uint32_t *reason)
{
	for (;;) {
		const struct nlattr *attrs[VULTURE_A_MAX + 1];
		const struct nlmsghdr *nlh = next_event(v);
		const struct genlmsghdr *genl;

		if (!nlh)
			return fail(v, errno, "cannot read an event: %s", strerror(errno));
		if (nlh->nlmsg_type != v->family)
			continue;
		genl = mnl_nlmsg_get_payload(nlh);
		if (genl->cmd != VULTURE_CMD_EVENT_START && genl->cmd != VULTURE_CMD_EVENT_END)
			continue;
		parse_message(nlh, attrs, VULTURE_A_MAX);
		read_flow(attrs[VULTURE_A_FLOW], flow);
		*reason = get_u32(attrs[VULTURE_A_REASON]);
		return genl->cmd == VULTURE_CMD_EVENT_START ? VULTURE_EVENT_START :
							     VULTURE_EVENT_END;
	}
}
