/* SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0 */
/*
 * Declarations that the library's files share. A file calls only functions of files above it
 * in this list.
 *
 *	names.c		names of options, controllers and statistics
 *	transport.c	a handle: sends requests, reads answers, turns errors into sentences
 *	parse.c		converts answers to the structs of internal.h
 *	requests.c	a function for each request
 *	events.c	events from the kernel
 *	opaque.c	functions by which programs allocate, fill and read the structs
 *
 * Names that are not part of the ABI begin with lv_, since the static library exports them to the
 * linker.
 */
#ifndef LIBVULTURE_PARTS_H
#define LIBVULTURE_PARTS_H

#include <libmnl/libmnl.h>

#include "internal.h"

/* Command and attribute numbers; users of the library need none of them. */
#include "../../vulture/uapi/vulture.h"

/* A request or a single answer fits a page; a dump comes in datagrams of at most this size. */
#define BUFFER_BYTES	32768

struct vulture {
	struct mnl_socket *nl;
	uint16_t family;
	uint32_t events;		/* multicast group */
	uint32_t seq;
	char error[256];
	char buffer[BUFFER_BYTES];	/* the request, then what was received */
	size_t event_len;		/* bytes of unread events in buffer */
	const struct nlmsghdr *event;	/* the next unread event */
};

/* names.c */

/** struct lv_stats - a controller's statistics: netlink nest, and names by attribute number */
struct lv_stats {
	uint16_t nest;
	const char *const *names;
	size_t n;
};

#define LV_CONTROLLERS	3

extern const struct lv_stats lv_stats[LV_CONTROLLERS];

/* the ABI's name of statistic number 1, 2, ... */
const char *lv_stat_name(const struct lv_stats *stats, size_t stat);

/* lv_attribute_at() - the attribute that begins at an offset of a request, also in a nest
 * @at: octets from the begin of the message
 * @name: where to put its name
 * Return: the attribute, or NULL if there is none, or none that this library knows
 */
const struct nlattr *lv_attribute_at(const struct nlmsghdr *nlh, size_t at, const char **name);

/* transport.c */

/* Where the messages of an answer go. */
struct sink {
	void (*message)(const struct nlmsghdr *nlh, struct sink *sink);
	int (*each_flow)(const struct vulture_flow *flow, void *arg);
	int (*each_rule)(const struct vulture_rule *rule, void *arg);
	void *arg;		/* passed to each_flow or each_rule */
	int ended;		/* their latest return value; not 0: they are called no more */
	void *result;		/* where message writes to without each_flow and each_rule */
};

/* lv_fail() - set the error text of the handle, and errno. Return: -1 */
__attribute__((format(printf, 3, 4)))
int lv_fail(struct vulture *v, int err, const char *format, ...);

/* lv_command() - begin a request in the handle's buffer */
struct nlmsghdr *lv_command(struct vulture *v, uint8_t cmd, uint16_t flags);

/* lv_talk() - send the request in the buffer and read the whole answer. Return: 0, or -1 */
int lv_talk(struct vulture *v, struct nlmsghdr *nlh, struct sink *sink);

/* parse.c */

/* Fill @attrs, indexed by attribute number up to @max. An absent attribute is NULL; an attribute
 * above @max is skipped.
 */
void lv_parse_nest(const struct nlattr *nest, const struct nlattr **attrs, unsigned int max);
void lv_parse_message(const struct nlmsghdr *nlh, const struct nlattr **attrs, unsigned int max);

/* the value of an attribute; 0 if the attribute is NULL */
uint16_t lv_get_u16(const struct nlattr *attr);
uint32_t lv_get_u32(const struct nlattr *attr);
uint64_t lv_get_u64(const struct nlattr *attr);

void lv_read_options(const struct nlattr *nest, struct vulture_options *options);
void lv_read_flow(const struct nlattr *nest, struct vulture_flow *flow);
void lv_read_rule(const struct nlattr *nest, struct vulture_rule *rule);

#endif /* LIBVULTURE_PARTS_H */
