/* SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0 */
/*
 * Declarations that the library's files share. A file calls only functions of files above it
 * in this list.
 *
 *	names.c		options, controllers and statistics by their names
 *	transport.c	a handle: requests out, answers in, errors as sentences
 *	parse.c		answers as the structs of internal.h
 *	requests.c	a function for each request
 *	events.c	events from the kernel
 *	opaque.c	functions with which programs make and read the structs
 *
 * Names that are not the ABI's begin with lv_: in the static library the linker sees them.
 */
#ifndef LIBVULTURE_PARTS_H
#define LIBVULTURE_PARTS_H

#include <libmnl/libmnl.h>

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

/* names.c */

/** struct lv_stats - a controller's statistics: its nest, and names by attribute */
struct lv_stats {
	uint16_t nest;
	const char *const *names;
	size_t n;
};

#define LV_CONTROLLERS	3

extern const struct lv_stats lv_stats[LV_CONTROLLERS];

/* transport.c */

/* What an answer is turned into. */
struct sink {
	void (*message)(const struct nlmsghdr *nlh, struct sink *sink);
	int (*each_flow)(const struct vulture_flow *flow, void *arg);
	int (*each_rule)(const struct vulture_rule *rule, void *arg);
	void *arg;		/* of either */
	int ended;		/* what it returned, if not 0 */
	void *result;		/* of other messages */
};

/* lv_fail() - the handle's sentence, and errno. Return: -1 */
__attribute__((format(printf, 3, 4)))
int lv_fail(struct vulture *v, int err, const char *format, ...);

/* lv_command() - begin a request in the handle's buffer */
struct nlmsghdr *lv_command(struct vulture *v, uint8_t cmd, uint16_t flags);

/* lv_talk() - send what is in the buffer and read the answer to its end. Return: 0, or -1 */
int lv_talk(struct vulture *v, struct nlmsghdr *nlh, struct sink *sink);

/* parse.c */

/* By attribute number up to @max; what is not there is NULL, what is unknown is passed over. */
void lv_parse_nest(const struct nlattr *nest, const struct nlattr **attrs, unsigned int max);
void lv_parse_message(const struct nlmsghdr *nlh, const struct nlattr **attrs, unsigned int max);

/* 0 for an attribute that is not there */
uint16_t lv_get_u16(const struct nlattr *attr);
uint32_t lv_get_u32(const struct nlattr *attr);
uint64_t lv_get_u64(const struct nlattr *attr);

void lv_read_options(const struct nlattr *nest, struct vulture_options *options);
void lv_read_flow(const struct nlattr *nest, struct vulture_flow *flow);
void lv_read_rule(const struct nlattr *nest, struct vulture_rule *rule);

#endif /* LIBVULTURE_PARTS_H */
