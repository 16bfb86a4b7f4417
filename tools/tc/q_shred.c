// SPDX-License-Identifier: GPL-2.0
/*
 * tc's part of the "shred" queue: parse, print, statistics, JSON, help.
 *
 * RED's own options mean what they mean to "tc qdisc ... red"; its parameters
 * are computed by tc's own functions. What is not said in a change stays.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tc_abi.h"

#include "../../sch_shred/uapi/shred.h"

#define SHRED_MSG_MAX		1024	/* tc's own buffer for one request's options */
#define SHRED_STAB_SIZE		256	/* net/red.h */
#define SHRED_PROBABILITY	0.02	/* as tc's red */
#define Q32			4294967296.0

static const char * const hint_names[__SHRED_HINT_MAX] = { "off", "tos", "dscp" };
static const char * const class_names[SHRED_CLASSES] = {
	"1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127", "128-255",
};

static const struct {
	const char *name;
	unsigned int flag;
} flag_names[] = {
	{ "ecn", SHRED_F_ECN },
	{ "harddrop", SHRED_F_HARDDROP },
	{ "adaptive", SHRED_F_ADAPTIVE },
	{ "nodrop", SHRED_F_NODROP },
	{ "gentle", SHRED_F_GENTLE },
};

#define N_FLAGS	(sizeof(flag_names) / sizeof(flag_names[0]))

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... shred limit BYTES [min BYTES] [max BYTES] avpkt BYTES [burst PACKETS]\n"
		"                 [adaptive] [probability PROBABILITY] [bandwidth RATE]\n"
		"                 [ecn] [harddrop] [nodrop] [gentle]\n"
		"                 [hint tos|dscp|off] [weight WEIGHT]\n"
		"  RED that drops packets of small-window flows less. A packet's window, in\n"
		"  packets, is read from its TOS byte or traffic class.\n"
		"    limit .. harddrop, nodrop: as for red; bandwidth defaults to 10mbit\n"
		"    gentle   above max the probability rises to 1 at twice max\n"
		"    hint     tos: the whole byte (default); dscp: its upper six bits, which\n"
		"             leaves ECN alone; off: plain RED\n"
		"    weight   of one hint in their average, 0.0001 to 1 (default 0.002)\n"
		"  Example, 10 Mbit/s, a queue of up to 175 ms:\n"
		"    tc qdisc add dev eth0 root shred limit 219000 min 30000 max 90000 \\\n"
		"       avpkt 1000 burst 150 probability 0.1 bandwidth 10mbit gentle hint dscp\n");
}

/* What the command line said; RED's part as a whole is sent when any of it was said. */
struct shred_args {
	unsigned int limit;
	unsigned int min;
	unsigned int max;
	unsigned int avpkt;
	unsigned int burst;
	unsigned int rate;		/* bytes a second */
	double probability;
	bool red;			/* any of the above was given */
	unsigned int flags;
	unsigned int weight_q32;
	bool weight;
	__u8 hint;
	bool has_hint;
};

static int bad(const char *what, const char *value, const char *range)
{
	fprintf(stderr, "shred: %s \"%s\": must be %s\n", what, value, range);
	return -1;
}

static int parse_number(const char *what, const char *value, double lowest, double highest,
			const char *range, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(value, &end);
	if (errno || end == value || *end || !(*out >= lowest && *out <= highest))
		return bad(what, value, range);
	return 0;
}

static int parse_bandwidth(const char *value, const char *dev, unsigned int *rate)
{
	int err = strchr(value, '%') ? get_percent_rate(rate, value, dev) :
				       get_rate(rate, value);

	if (err || !*rate)
		return bad("bandwidth", value, "a rate such as 10mbit, or a share of the link such as 50%");
	return 0;
}

static int parse_hint(const char *value, __u8 *hint)
{
	for (__u8 i = 0; i < __SHRED_HINT_MAX; i++) {
		if (!strcmp(value, hint_names[i])) {
			*hint = i;
			return 0;
		}
	}
	return bad("hint", value, "tos, dscp or off");
}

static int parse_weight(const char *value, unsigned int *weight_q32)
{
	double weight;

	if (parse_number("weight", value, 0.0001, 1, "0.0001 to 1", &weight))
		return -1;
	weight = rint(weight * Q32);
	*weight_q32 = weight < SHRED_WEIGHT_MAX ? (unsigned int)weight : SHRED_WEIGHT_MAX;
	return 0;
}

static unsigned int *size_of(struct shred_args *a, const char *name)
{
	if (!strcmp(name, "limit"))
		return &a->limit;
	if (!strcmp(name, "min"))
		return &a->min;
	if (!strcmp(name, "max"))
		return &a->max;
	if (!strcmp(name, "avpkt"))
		return &a->avpkt;
	return NULL;
}

static unsigned int flag_of(const char *name)
{
	for (size_t i = 0; i < N_FLAGS; i++)
		if (!strcmp(name, flag_names[i].name))
			return flag_names[i].flag;
	return 0;
}

/* One option with its value. Returns the words taken, or -1. */
static int parse_word(struct shred_args *a, int argc, char **argv, const char *dev)
{
	unsigned int *size = size_of(a, argv[0]);
	unsigned int flag = flag_of(argv[0]);
	const char *value;

	if (flag) {
		a->flags |= flag;
		return 1;
	}
	if (!size && strcmp(argv[0], "burst") && strcmp(argv[0], "probability") &&
	    strcmp(argv[0], "bandwidth") && strcmp(argv[0], "hint") &&
	    strcmp(argv[0], "weight")) {
		fprintf(stderr, "shred: what is \"%s\"?\n", argv[0]);
		explain();
		return -1;
	}
	if (argc < 2) {
		fprintf(stderr, "shred: \"%s\" needs a value\n", argv[0]);
		return -1;
	}
	value = argv[1];

	if (!strcmp(argv[0], "hint")) {
		a->has_hint = true;
		return parse_hint(value, &a->hint) ? -1 : 2;
	}
	if (!strcmp(argv[0], "weight")) {
		a->weight = true;
		return parse_weight(value, &a->weight_q32) ? -1 : 2;
	}

	a->red = true;
	if (size) {
		if (get_size(size, value) || !*size)
			return bad(argv[0], value, "a size in bytes above 0, such as 60000 or 60kb");
	} else if (!strcmp(argv[0], "burst")) {
		if (get_unsigned(&a->burst, value, 0) || !a->burst)
			return bad("burst", value, "a number of packets above 0");
	} else if (!strcmp(argv[0], "probability")) {
		if (parse_number("probability", value, 1 / Q32, 1, "above 0, at most 1",
				 &a->probability))
			return -1;
	} else if (parse_bandwidth(value, dev, &a->rate)) {
		return -1;
	}
	return 2;
}

/* RED's recommended defaults, as tc's red takes them. */
static int complete_red(struct shred_args *a)
{
	if (!a->limit || !a->avpkt) {
		fprintf(stderr, "shred: limit and avpkt are required\n");
		return -1;
	}
	if (!a->max)
		a->max = a->min ? a->min * 3 : a->limit / 4;
	if (!a->min)
		a->min = a->max / 3;
	if (!a->burst)
		a->burst = (2 * a->min + a->max) / (3 * a->avpkt);
	if (a->min >= a->max) {
		fprintf(stderr, "shred: min %u: must be below max %u\n", a->min, a->max);
		return -1;
	}
	if (a->limit < a->max) {
		fprintf(stderr, "shred: limit %u: must be at least max %u\n", a->limit, a->max);
		return -1;
	}
	if (!a->rate)
		get_rate(&a->rate, "10Mbit");
	return 0;
}

static void put_u32(struct nlmsghdr *n, int type, __u32 value)
{
	addattr_l(n, SHRED_MSG_MAX, type, &value, sizeof(value));
}

static void put_u8(struct nlmsghdr *n, int type, __u8 value)
{
	addattr_l(n, SHRED_MSG_MAX, type, &value, sizeof(value));
}

static int put_red(struct nlmsghdr *n, struct shred_args *a)
{
	__u8 stab[SHRED_STAB_SIZE];
	int wlog, plog, scell_log;
	double max_p = a->probability * Q32;	/* cut, as tc's red does */

	wlog = tc_red_eval_ewma(a->min, a->burst, a->avpkt);
	if (wlog < 0) {
		fprintf(stderr, "shred: burst %u: no averaging weight fits min %u and avpkt %u\n",
			a->burst, a->min, a->avpkt);
		return -1;
	}
	plog = tc_red_eval_P(a->min, a->max, a->probability);
	if (plog < 0) {
		fprintf(stderr, "shred: probability %g is too small for min %u and max %u\n",
			a->probability, a->min, a->max);
		return -1;
	}
	scell_log = tc_red_eval_idle_damping(wlog, a->avpkt, a->rate, stab);
	if (scell_log < 0) {
		fprintf(stderr, "shred: bandwidth: no idle damping table fits avpkt %u at this rate\n",
			a->avpkt);
		return -1;
	}

	put_u32(n, TCA_SHRED_LIMIT, a->limit);
	put_u32(n, TCA_SHRED_MIN, a->min);
	put_u32(n, TCA_SHRED_MAX, a->max);
	put_u32(n, TCA_SHRED_AVPKT, a->avpkt);
	put_u8(n, TCA_SHRED_WLOG, wlog);
	put_u8(n, TCA_SHRED_PLOG, plog);
	put_u8(n, TCA_SHRED_SCELL_LOG, scell_log);
	addattr_l(n, SHRED_MSG_MAX, TCA_SHRED_STAB, stab, sizeof(stab));
	put_u32(n, TCA_SHRED_MAX_P, max_p < Q32 ? (__u32)max_p : 0xffffffffU);
	return 0;
}

static int shred_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			   struct nlmsghdr *n, const char *dev)
{
	struct shred_args a = { .probability = SHRED_PROBABILITY };
	struct nla_bitfield32 flags;
	struct rtattr *nest;
	int taken;

	(void)qu;
	for (; argc > 0; argc -= taken, argv += taken) {
		if (!strcmp(*argv, "help")) {
			explain();
			return -1;
		}
		taken = parse_word(&a, argc, argv, dev);
		if (taken < 0)
			return -1;
	}
	/* a new queue needs RED's part */
	if (n->nlmsg_flags & NLM_F_CREATE)
		a.red = true;
	if (a.red && complete_red(&a))
		return -1;

	nest = addattr_nest(n, SHRED_MSG_MAX, TCA_OPTIONS);
	if (a.red && put_red(n, &a))
		return -1;
	/* with RED's part the flags are said as a whole; alone, a flag is added */
	flags.value = a.flags;
	flags.selector = a.red ? SHRED_F_ALL : a.flags;
	if (flags.selector)
		addattr_l(n, SHRED_MSG_MAX, TCA_SHRED_FLAGS, &flags, sizeof(flags));
	if (a.has_hint)
		put_u8(n, TCA_SHRED_HINT, a.hint);
	if (a.weight)
		put_u32(n, TCA_SHRED_WEIGHT, a.weight_q32);
	addattr_nest_end(n, nest);
	return 0;
}

/* The attribute's value where it has the length it should, else false. */
static bool get_attr(struct rtattr **tb, int type, void *value, size_t len)
{
	if (!tb[type] || RTA_PAYLOAD(tb[type]) < len)
		return false;
	memcpy(value, RTA_DATA(tb[type]), len);
	return true;
}

static void print_bytes(struct rtattr **tb, int type, const char *key, const char *fmt)
{
	__u32 bytes;

	if (get_attr(tb, type, &bytes, sizeof(bytes)))
		print_color_size(PRINT_ANY, COLOR_NONE, key, fmt, bytes);
}

static void print_details(struct rtattr **tb)
{
	__u8 log;

	if (get_attr(tb, TCA_SHRED_WLOG, &log, sizeof(log)))
		print_color_uint(PRINT_ANY, COLOR_NONE, "ewma", "ewma %u ", log);
	if (get_attr(tb, TCA_SHRED_SCELL_LOG, &log, sizeof(log)))
		print_color_uint(PRINT_ANY, COLOR_NONE, "Scell_log", "Scell_log %u ", log);
}

static int shred_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_SHRED_MAX_ATTR + 1];
	struct nla_bitfield32 flags;
	__u32 q32;
	__u8 hint;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr_flags(tb, TCA_SHRED_MAX_ATTR, RTA_DATA(opt), RTA_PAYLOAD(opt),
			   NLA_F_NESTED);

	print_bytes(tb, TCA_SHRED_LIMIT, "limit", "limit %s ");
	print_bytes(tb, TCA_SHRED_MIN, "min", "min %s ");
	print_bytes(tb, TCA_SHRED_MAX, "max", "max %s ");
	print_bytes(tb, TCA_SHRED_AVPKT, "avpkt", "avpkt %s ");
	if (get_attr(tb, TCA_SHRED_MAX_P, &q32, sizeof(q32)))
		print_color_float(PRINT_ANY, COLOR_NONE, "probability", "probability %lg ",
				  q32 / Q32);
	if (get_attr(tb, TCA_SHRED_FLAGS, &flags, sizeof(flags)))
		for (size_t i = 0; i < N_FLAGS; i++) {
			bool on = flags.value & flag_names[i].flag;

			print_color_bool(PRINT_JSON, COLOR_NONE, flag_names[i].name, NULL, on);
			if (on)
				print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ",
						   flag_names[i].name);
		}
	if (get_attr(tb, TCA_SHRED_HINT, &hint, sizeof(hint)) && hint < __SHRED_HINT_MAX)
		print_color_string(PRINT_ANY, COLOR_NONE, "hint", "hint %s ",
				   hint_names[hint]);
	if (get_attr(tb, TCA_SHRED_WEIGHT, &q32, sizeof(q32)))
		print_color_float(PRINT_ANY, COLOR_NONE, "weight", "weight %.4lg ", q32 / Q32);
	if (show_details)
		print_details(tb);
	return 0;
}

/* A counter of hinted packets and, at the next attribute, of unhinted ones. */
static void print_split(struct rtattr **tb, int hinted, const char *key)
{
	__u64 with = 0, without = 0;

	if (!get_attr(tb, hinted, &with, sizeof(with)) ||
	    !get_attr(tb, hinted + 1, &without, sizeof(without)))
		return;
	if (is_json_context()) {
		open_json_object(key);
		print_color_u64(PRINT_JSON, COLOR_NONE, "hinted", NULL, with);
		print_color_u64(PRINT_JSON, COLOR_NONE, "unhinted", NULL, without);
		close_json_object();
		return;
	}
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", key);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, "%llu", with);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, "+%llu ", without);
}

static void print_class(const char *name, __u64 pkts, __u64 drops, double share)
{
	if (is_json_context()) {
		open_json_object(NULL);
		print_color_string(PRINT_JSON, COLOR_NONE, "window", NULL, name);
		print_color_u64(PRINT_JSON, COLOR_NONE, "packets", NULL, pkts);
		print_color_u64(PRINT_JSON, COLOR_NONE, "drops", NULL, drops);
		print_color_float(PRINT_JSON, COLOR_NONE, "drop_share", NULL, share);
		close_json_object();
		return;
	}
	print_nl();
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "   window %-7s", name);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, " pkts %llu", pkts);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, " drops %llu", drops);
	print_color_float(PRINT_FP, COLOR_NONE, NULL, " share %.3lf", share);
}

static void print_classes(struct rtattr **tb)
{
	__u64 pkts[SHRED_CLASSES], drops[SHRED_CLASSES], all = 0;

	if (!get_attr(tb, TCA_SHRED_STATS_HINT_PKTS, pkts, sizeof(pkts)) ||
	    !get_attr(tb, TCA_SHRED_STATS_HINT_DROPS, drops, sizeof(drops)))
		return;
	for (int i = 0; i < SHRED_CLASSES; i++)
		all += drops[i];

	open_json_array(PRINT_JSON, "classes");
	for (int i = 0; i < SHRED_CLASSES; i++)
		if (pkts[i] || is_json_context())
			print_class(class_names[i], pkts[i], drops[i],
				    all ? (double)drops[i] / all : 0);
	close_json_array(PRINT_JSON, NULL);
}

static int shred_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct rtattr *tb[TCA_SHRED_STATS_MAX_ATTR + 1];
	__u32 value;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	parse_rtattr_flags(tb, TCA_SHRED_STATS_MAX_ATTR, RTA_DATA(xstats),
			   RTA_PAYLOAD(xstats), NLA_F_NESTED);

	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "  hinted+unhinted ");
	print_split(tb, TCA_SHRED_STATS_PKTS_HINTED, "arrived");
	print_split(tb, TCA_SHRED_STATS_EARLY_HINTED, "early");
	print_split(tb, TCA_SHRED_STATS_FORCED_HINTED, "forced");
	print_split(tb, TCA_SHRED_STATS_LIMIT_HINTED, "limit_drops");
	print_split(tb, TCA_SHRED_STATS_EARLY_MARK_HINTED, "early_marked");
	print_split(tb, TCA_SHRED_STATS_FORCED_MARK_HINTED, "forced_marked");
	if (!is_json_context()) {
		print_nl();
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "  ");
	}
	if (get_attr(tb, TCA_SHRED_STATS_CWND_AVG, &value, sizeof(value)))
		print_color_float(PRINT_ANY, COLOR_NONE, "average_hint",
				  "average_hint %.3lf ", value / 4194304.0);
	if (get_attr(tb, TCA_SHRED_STATS_QAVG, &value, sizeof(value)))
		print_color_uint(PRINT_ANY, COLOR_NONE, "average_queue",
				 "average_queue %ub ", value);
	print_classes(tb);
	return 0;
}

struct qdisc_util shred_qdisc_util = {
	.id		= "shred",
	.parse_qopt	= shred_parse_opt,
	.print_qopt	= shred_print_opt,
	.print_xstats	= shred_print_xstats,
};
