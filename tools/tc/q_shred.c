// SPDX-License-Identifier: GPL-2.0
/*
 * tc's plugin for the "shred" queue: it parses options, and prints settings and
 * statistics as text and JSON.
 *
 * RED's options have the same meaning as for "tc qdisc ... red". Only the options on
 * the command line are sent; the kernel has the defaults, and in a change it keeps
 * the other settings. The output of "show" can be used with "add"; settings with
 * default values are printed only with -details and in JSON.
 */

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tc_abi.h"

#include "../../sch_shred/uapi/shred.h"

#define SHRED_MSG_MAX		1024	/* tc's own buffer for one request's options */
#define Q32			4294967296.0

/* The kernel's defaults: settings equal to them are not printed. */
#define DEFAULT_RATE		1250000U	/* bytes a second */
#define DEFAULT_AVPKT		1500U
#define DEFAULT_MAX_P		(0xffffffffU / 10)
#define DEFAULT_ON		SHRED_F_GENTLE

static const char * const hint_names[__SHRED_HINT_MAX] = { "off", "tos", "dscp" };
static const char * const class_names[SHRED_CLASSES] = {
	"none", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127", "128-255",
};

/* In the order in which red prints its flags. */
static const struct {
	const char *name;
	unsigned int flag;
} flag_names[] = {
	{ "ecn", SHRED_F_ECN },
	{ "harddrop", SHRED_F_HARDDROP },
	{ "adaptive", SHRED_F_ADAPTIVE },
	{ "nodrop", SHRED_F_NODROP },
	{ "gentle", SHRED_F_GENTLE },
	{ "bytes", SHRED_F_BYTES },
	{ "wash", SHRED_F_WASH },
	{ "split-gso", SHRED_F_SPLIT_GSO },
};

#define N_FLAGS	(sizeof(flag_names) / sizeof(flag_names[0]))

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... shred [bandwidth RATE] [limit SIZE|TIME] [min SIZE|TIME] [max SIZE|TIME]\n"
		"                 [avpkt BYTES] [burst PACKETS] [probability PROBABILITY]\n"
		"                 [[no]adaptive] [[no]ecn] [[no]harddrop] [[no]nodrop]\n"
		"                 [[no]gentle] [[no]bytes] [[no]wash] [[no]split-gso]\n"
		"                 [hint off|tos|dscp] [weight WEIGHT]\n"
		"  RED that spares short flows, by a hint that each packet carries.\n"
		"    bandwidth  rate of the link, which converts a TIME into bytes (default 10mbit)\n"
		"    limit, min, max, avpkt, burst, probability, adaptive, ecn, harddrop, nodrop:\n"
		"               as for red (defaults 175ms, 80ms, 168ms, 1500, from min and max, 0.1)\n"
		"    gentle     above max the probability rises to 1 at twice max (default)\n"
		"    bytes      the probability is in proportion to the packet's size\n"
		"    wash       clear the hint when a packet leaves\n"
		"    split-gso  split aggregates, and queue their packets one by one\n"
		"    hint       dscp: the flow's age in eight DSCPs, four bands (default); tos: the\n"
		"               paper's, a congestion window in the whole TOS byte; off: plain RED\n"
		"    weight     weight of one hint in the average hint, 0.0001 to 1 (default 0.002)\n"
		"  Example: tc qdisc add dev eth0 root shred bandwidth 10mbit\n");
}

static int bad(const char *what, const char *value, const char *range)
{
	fprintf(stderr, "shred: %s \"%s\": must be %s\n", what, value, range);
	return -1;
}

static int put_u32(struct nlmsghdr *n, int type, __u32 value)
{
	return addattr_l(n, SHRED_MSG_MAX, type, &value, sizeof(value));
}

/* ---- the value of one option ---- */

static int parse_number(const char *what, const char *value, double lowest, const char *range,
			__u32 *q32)
{
	double number;
	char *end;

	errno = 0;
	number = strtod(value, &end);
	if (errno || end == value || *end || !(number >= lowest && number <= 1))
		return bad(what, value, range);
	*q32 = number * Q32 < 0xffffffffU ? (__u32)(number * Q32) : 0xffffffffU;
	return 0;
}

static int put_probability(struct nlmsghdr *n, const char *name, const char *value)
{
	__u32 q32;

	if (parse_number(name, value, 1 / Q32, "above 0, at most 1", &q32))
		return -1;
	return put_u32(n, TCA_SHRED_MAX_P, q32);
}

static int put_weight(struct nlmsghdr *n, const char *name, const char *value)
{
	__u32 q32;

	if (parse_number(name, value, 0.0001, "0.0001 to 1", &q32))
		return -1;
	return put_u32(n, TCA_SHRED_WEIGHT, q32 < SHRED_WEIGHT_MIN ? SHRED_WEIGHT_MIN : q32);
}

/* get_time() of tc checks the unit, but accepts any number, and truncates to whole us. */
static int parse_time(const char *value, __u32 *time_us)
{
	unsigned int cut_us;
	char *unit;
	double us = strtod(value, &unit);

	us *= tolower(*unit) == 'u' ? 1 : tolower(*unit) == 'm' ? 1e3 : 1e6;
	if (get_time(&cut_us, value) || !(us >= 1 && us <= 0xffffffffU))
		return -1;
	*time_us = (__u32)(us + 0.5);
	return 0;
}

/* A size or a time. A time ends with "s", a size does not. */
static int put_size(struct nlmsghdr *n, const char *name, const char *value, int bytes_attr,
		    int us_attr)
{
	size_t len = strlen(value);
	unsigned int number;
	__u32 us;

	if (len && value[len - 1] == 's') {
		if (parse_time(value, &us))
			return bad(name, value, "a time of 1us to 4294s, such as 60ms");
		return put_u32(n, us_attr, us);
	}
	if (get_size(&number, value) || !number)
		return bad(name, value,
			   "a size above 0, such as 60000 or 60kb, or a time, such as 60ms");
	return put_u32(n, bytes_attr, number);
}

static int put_count(struct nlmsghdr *n, const char *name, const char *value, int attr)
{
	unsigned int number;

	if (get_size(&number, value) || !number)
		return bad(name, value, "a number above 0");
	return put_u32(n, attr, number);
}

static int put_bandwidth(struct nlmsghdr *n, const char *name, const char *value, const char *dev)
{
	__u64 rate;
	int err = strchr(value, '%') ? get_percent_rate64(&rate, value, dev) :
				       get_rate64(&rate, value);

	if (err || !rate)
		return bad(name, value, "a rate such as 10mbit, or a share of the link such as 50%");
	return addattr_l(n, SHRED_MSG_MAX, TCA_SHRED_RATE64, &rate, sizeof(rate));
}

static int put_hint(struct nlmsghdr *n, const char *name, const char *value)
{
	for (__u8 i = 0; i < __SHRED_HINT_MAX; i++)
		if (!strcmp(value, hint_names[i]))
			return addattr_l(n, SHRED_MSG_MAX, TCA_SHRED_HINT, &i, sizeof(i));
	return bad(name, value, "off, tos or dscp");
}

/* ---- the command line ---- */

/* Does the word set or unset a flag? */
static bool parse_flag(const char *word, struct nla_bitfield32 *flags)
{
	for (size_t i = 0; i < N_FLAGS; i++) {
		const char *name = flag_names[i].name;
		bool on = !strcmp(word, name);

		if (!on && (strncmp(word, "no", 2) || strcmp(word + 2, name)))
			continue;
		flags->selector |= flag_names[i].flag;
		flags->value &= ~flag_names[i].flag;
		if (on)
			flags->value |= flag_names[i].flag;
		return true;
	}
	return false;
}

static int parse_value(struct nlmsghdr *n, const char *name, const char *value, const char *dev)
{
	if (!strcmp(name, "limit"))
		return put_size(n, name, value, TCA_SHRED_LIMIT, TCA_SHRED_LIMIT_US);
	if (!strcmp(name, "min"))
		return put_size(n, name, value, TCA_SHRED_MIN, TCA_SHRED_MIN_US);
	if (!strcmp(name, "max"))
		return put_size(n, name, value, TCA_SHRED_MAX, TCA_SHRED_MAX_US);
	if (!strcmp(name, "avpkt"))
		return put_count(n, name, value, TCA_SHRED_AVPKT);
	if (!strcmp(name, "burst"))
		return put_count(n, name, value, TCA_SHRED_BURST);
	if (!strcmp(name, "probability"))
		return put_probability(n, name, value);
	if (!strcmp(name, "bandwidth"))
		return put_bandwidth(n, name, value, dev);
	if (!strcmp(name, "hint"))
		return put_hint(n, name, value);
	return put_weight(n, name, value);
}

static bool takes_value(const char *word)
{
	static const char * const names[] = {
		"limit", "min", "max", "avpkt", "burst", "probability", "bandwidth", "hint",
		"weight",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(word, names[i]))
			return true;
	return false;
}

static int shred_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			   struct nlmsghdr *n, const char *dev)
{
	struct nla_bitfield32 flags = { 0 };
	struct rtattr *nest = addattr_nest(n, SHRED_MSG_MAX, TCA_OPTIONS);

	(void)qu;
	for (; argc > 0; argc--, argv++) {
		if (parse_flag(*argv, &flags))
			continue;
		if (!takes_value(*argv)) {
			if (strcmp(*argv, "help"))
				fprintf(stderr, "shred: unknown option \"%s\"\n", *argv);
			explain();
			return -1;
		}
		if (argc < 2) {
			fprintf(stderr, "shred: \"%s\" needs a value\n", *argv);
			return -1;
		}
		if (parse_value(n, argv[0], argv[1], dev))
			return -1;
		argc--;
		argv++;
	}
	if (flags.selector)
		addattr_l(n, SHRED_MSG_MAX, TCA_SHRED_FLAGS, &flags, sizeof(flags));
	addattr_nest_end(n, nest);
	return 0;
}

/* ---- settings ---- */

/* Get the value of an attribute. Return: false if it is missing or too short. */
static bool get_attr(struct rtattr **tb, int type, void *value, size_t len)
{
	if (!tb[type] || RTA_PAYLOAD(tb[type]) < len)
		return false;
	memcpy(value, RTA_DATA(tb[type]), len);
	return true;
}

static bool get_attr_u32(struct rtattr **tb, int type, __u32 *value)
{
	return get_attr(tb, type, value, sizeof(*value));
}

/* Output types of a setting: text only if it is not the default, or with -details. */
static enum output_type shown(bool is_default)
{
	return is_default && !show_details ? PRINT_JSON : PRINT_ANY;
}

/* tc rounds sizes near a multiple of a kilobyte or megabyte; print such sizes in bytes. */
static void print_exact_size(__u32 bytes, const char *key, const char *fmt)
{
	char text[sizeof("4294967295b")];
	bool exact = bytes % 1024 == 0 && bytes < 1000000 * 1024;

	print_color_size(exact ? PRINT_ANY : PRINT_JSON, COLOR_NONE, key, fmt, bytes);
	snprintf(text, sizeof(text), "%ub", bytes);
	if (!exact)
		print_color_string(PRINT_FP, COLOR_NONE, NULL, fmt, text);
}

static void print_size_or_time(struct rtattr **tb, int bytes_attr, int us_attr, const char *key,
			       const char *key_us, const char *size_fmt, const char *time_fmt)
{
	__u32 bytes, us;
	bool timed = get_attr_u32(tb, us_attr, &us);

	if (get_attr_u32(tb, bytes_attr, &bytes)) {
		if (timed)
			print_color_size(PRINT_JSON, COLOR_NONE, key, size_fmt, bytes);
		else
			print_exact_size(bytes, key, size_fmt);
	}
	if (timed) {
		print_color_uint(PRINT_JSON, COLOR_NONE, key_us, NULL, us);
		print_color_float(PRINT_FP, COLOR_NONE, NULL, time_fmt, us / 1e3);
	}
}

static void print_flags(struct rtattr **tb)
{
	struct nla_bitfield32 flags;

	if (!get_attr(tb, TCA_SHRED_FLAGS, &flags, sizeof(flags)))
		return;
	for (size_t i = 0; i < N_FLAGS; i++) {
		bool on = flags.value & flag_names[i].flag;
		bool usual = on == !!(DEFAULT_ON & flag_names[i].flag);

		print_color_bool(PRINT_JSON, COLOR_NONE, flag_names[i].name, NULL, on);
		if (!usual || (show_details && on))
			print_color_string(PRINT_FP, COLOR_NONE, NULL, on ? "%s " : "no%s ",
					   flag_names[i].name);
	}
}

static void print_red(struct rtattr **tb)
{
	__u64 rate;
	__u32 value;
	__u8 log;

	if (get_attr_u32(tb, TCA_SHRED_AVPKT, &value))
		print_color_uint(shown(value == DEFAULT_AVPKT), COLOR_NONE, "avpkt", "avpkt %u ",
				 value);
	if (get_attr_u32(tb, TCA_SHRED_BURST, &value))
		print_color_uint(PRINT_ANY, COLOR_NONE, "burst", "burst %u ", value);
	if (get_attr_u32(tb, TCA_SHRED_MAX_P, &value))
		print_color_float(shown(value == DEFAULT_MAX_P), COLOR_NONE, "probability",
				  "probability %lg ", value / Q32);
	if (get_attr(tb, TCA_SHRED_RATE64, &rate, sizeof(rate)))
		print_color_rate(use_iec, shown(rate == DEFAULT_RATE), COLOR_NONE, "bandwidth",
				 "bandwidth %s ", rate);
	if (show_details && get_attr(tb, TCA_SHRED_WLOG, &log, sizeof(log)))
		print_color_uint(PRINT_JSON, COLOR_NONE, "ewma", NULL, log);
}

static void print_hint(struct rtattr **tb)
{
	__u32 weight;
	__u8 hint;

	if (get_attr(tb, TCA_SHRED_HINT, &hint, sizeof(hint)) && hint < __SHRED_HINT_MAX)
		print_color_string(shown(hint == SHRED_HINT_DSCP), COLOR_NONE, "hint", "hint %s ",
				   hint_names[hint]);
	if (get_attr_u32(tb, TCA_SHRED_WEIGHT, &weight))
		print_color_float(shown(weight == SHRED_WEIGHT_DEFAULT), COLOR_NONE, "weight",
				  "weight %.4lg ", weight / Q32);
}

static int shred_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_SHRED_MAX_ATTR + 1];

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr_flags(tb, TCA_SHRED_MAX_ATTR, RTA_DATA(opt), RTA_PAYLOAD(opt),
			   NLA_F_NESTED);

	print_size_or_time(tb, TCA_SHRED_LIMIT, TCA_SHRED_LIMIT_US, "limit", "limit_us",
			   "limit %s ", "limit %.10lgms ");
	print_size_or_time(tb, TCA_SHRED_MIN, TCA_SHRED_MIN_US, "min", "min_us", "min %s ",
			   "min %.10lgms ");
	print_size_or_time(tb, TCA_SHRED_MAX, TCA_SHRED_MAX_US, "max", "max_us", "max %s ",
			   "max %.10lgms ");
	print_flags(tb);
	print_red(tb);
	print_hint(tb);
	return 0;
}

/* ---- statistics ---- */

static __u64 counter(struct rtattr **tb, int attr)
{
	__u64 count = 0;

	get_attr(tb, attr, &count, sizeof(count));
	return count;
}

static void print_counter(const char *key, const char *fmt, __u64 value)
{
	print_color_u64(PRINT_ANY, COLOR_NONE, key, fmt, value);
}

/* As with red: all marks, all drops by the average, drops at the limit, and 0. */
static void print_counters(struct rtattr **tb)
{
	__u64 early_mark = counter(tb, TCA_SHRED_STATS_EARLY_MARK);
	__u64 forced_mark = counter(tb, TCA_SHRED_STATS_FORCED_MARK);
	__u64 early = counter(tb, TCA_SHRED_STATS_EARLY);
	__u64 forced = counter(tb, TCA_SHRED_STATS_FORCED);

	print_counter("marked", "  marked %llu", early_mark + forced_mark);
	print_counter("early", " early %llu", early + forced);
	print_counter("pdrop", " pdrop %llu", counter(tb, TCA_SHRED_STATS_LIMIT));
	print_counter("other", " other %llu", 0);
	print_counter("forced", " forced %llu", forced);
	print_counter("forced_marked", " forced_marked %llu", forced_mark);
}

static void print_class(const char *name, __u64 pkts, __u64 drops)
{
	if (is_json_context()) {
		open_json_object(NULL);
		print_color_string(PRINT_JSON, COLOR_NONE, "hint", NULL, name);
		print_color_u64(PRINT_JSON, COLOR_NONE, "packets", NULL, pkts);
		print_color_u64(PRINT_JSON, COLOR_NONE, "drops", NULL, drops);
		close_json_object();
		return;
	}
	print_nl();
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "   hint %-7s", name);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, " pkts %llu", pkts);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, " drops %llu", drops);
}

static void print_classes(struct rtattr **tb)
{
	__u64 pkts[SHRED_CLASSES], drops[SHRED_CLASSES];

	if (!get_attr(tb, TCA_SHRED_STATS_CLASS_PKTS, pkts, sizeof(pkts)) ||
	    !get_attr(tb, TCA_SHRED_STATS_CLASS_DROPS, drops, sizeof(drops)))
		return;
	open_json_array(PRINT_JSON, "classes");
	for (int i = 0; i < SHRED_CLASSES; i++)
		if (pkts[i] || is_json_context())
			print_class(class_names[i], pkts[i], drops[i]);
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

	print_counters(tb);
	print_nl();
	if (get_attr_u32(tb, TCA_SHRED_STATS_HINT_AVG, &value))
		print_color_float(PRINT_ANY, COLOR_NONE, "average_hint", "  average_hint %.3lf",
				  value / 4194304.0);
	if (get_attr_u32(tb, TCA_SHRED_STATS_QAVG, &value))
		print_color_uint(PRINT_ANY, COLOR_NONE, "average_queue", " average_queue %ub",
				 value);
	print_classes(tb);
	return 0;
}

struct qdisc_util shred_qdisc_util = {
	.id		= "shred",
	.parse_qopt	= shred_parse_opt,
	.print_qopt	= shred_print_opt,
	.print_xstats	= shred_print_xstats,
};
