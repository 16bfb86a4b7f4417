/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface that tc (iproute2) offers to a plugin.
 *
 * tc opens <folder>/q_<name>.so and looks up the symbol <name>_qdisc_util. The
 * functions that the plugin calls are resolved from tc itself, which exports
 * its own. No distribution ships headers for them, so those that this plugin
 * uses are declared here. tests/test_q_shred.py checks that each release's tc
 * still exports each of them.
 *
 * struct qdisc_util is the same from iproute2 5.12 on (has_block was appended
 * then; later releases only made the first argument const).
 */
#ifndef _TC_ABI_H
#define _TC_ABI_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt, __u32 block_idx,
			 bool *p_has);
};

/* arguments; they return 0 on success */
int get_size(unsigned int *size, const char *str);
int get_time(unsigned int *time_us, const char *str);
int get_rate64(__u64 *rate, const char *str);
int get_percent_rate64(__u64 *rate, const char *str, const char *dev);
int get_unsigned(unsigned int *val, const char *arg, int base);

/* attributes */
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *rta, int len,
		       unsigned short flags);

/* output as text or JSON, whichever tc was called for */
enum output_type {
	PRINT_FP = 1,
	PRINT_JSON = 2,
	PRINT_ANY = 4,
};

enum color_attr {
	COLOR_NONE = 6,
};

extern int show_details;
extern int use_iec;

bool is_json_context(void);
void open_json_object(const char *key);
void close_json_object(void);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *delim);
int print_color_string(enum output_type t, enum color_attr color, const char *key,
		       const char *fmt, const char *value);
int print_color_uint(enum output_type t, enum color_attr color, const char *key,
		     const char *fmt, unsigned int value);
int print_color_u64(enum output_type t, enum color_attr color, const char *key,
		    const char *fmt, uint64_t value);
int print_color_bool(enum output_type t, enum color_attr color, const char *key,
		     const char *fmt, bool value);
int print_color_float(enum output_type t, enum color_attr color, const char *key,
		      const char *fmt, double value);
int print_color_size(enum output_type t, enum color_attr color, const char *key,
		     const char *fmt, __u32 value);
int print_color_rate(bool use_iec, enum output_type t, enum color_attr color, const char *key,
		     const char *fmt, unsigned long long rate);
void print_nl(void);

#endif
