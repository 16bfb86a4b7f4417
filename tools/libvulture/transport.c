// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/*
 * libvulture: the handle on the kernel module, which sends a request, reads its answer and
 * keeps the error text.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

static __thread char open_error[256];

int lv_fail(struct vulture *v, int err, const char *format, ...)
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

struct nlmsghdr *lv_command(struct vulture *v, uint8_t cmd, uint16_t flags)
{
	return request(v, v->family, flags, cmd, VULTURE_FAMILY_VERSION);
}

/* A number of the request; false if the attribute is none. */
static bool number_of(const struct nlattr *attr, uint64_t *value)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		*value = mnl_attr_get_u8(attr);
		return true;
	case 2:
		*value = mnl_attr_get_u16(attr);
		return true;
	case 4:
		*value = mnl_attr_get_u32(attr);
		return true;
	case 8:
		*value = mnl_attr_get_u64(attr);
		return true;
	}
	return false;
}

/* The kernel has refused an attribute by its policy: its text names neither the attribute nor the
 * range. @policy: the range, or NULL
 */
static int policy_error(struct vulture *v, int err, const char *text, const struct nlattr *policy,
			const struct nlattr *attr, const char *name)
{
	const struct nlattr *limits[NL_POLICY_TYPE_ATTR_MAX + 1];
	uint64_t value;

	lv_parse_nest(policy, limits, NL_POLICY_TYPE_ATTR_MAX);
	if (!limits[NL_POLICY_TYPE_ATTR_MIN_VALUE_U] ||
	    !limits[NL_POLICY_TYPE_ATTR_MAX_VALUE_U] || !number_of(attr, &value))
		return lv_fail(v, err, "%s: %s", name, text);
	return lv_fail(v, err, "%s %llu is not within %llu to %llu", name,
		       (unsigned long long)value,
		       (unsigned long long)lv_get_u64(limits[NL_POLICY_TYPE_ATTR_MIN_VALUE_U]),
		       (unsigned long long)lv_get_u64(limits[NL_POLICY_TYPE_ATTR_MAX_VALUE_U]));
}

/* Fail with the kernel's error text if the answer has one, else with strerror()'s.
 * @skip: octets of the answer before its attributes
 * @asked: the request, as the answer repeats it, or NULL
 */
static int kernel_error(struct vulture *v, const struct nlmsghdr *nlh, int err, size_t skip,
			const struct nlmsghdr *asked)
{
	const struct nlattr *attrs[NLMSGERR_ATTR_MAX + 1] = {}, *attr;
	const char *text, *name;

	mnl_attr_for_each(attr, nlh, skip)
		if (mnl_attr_get_type(attr) <= NLMSGERR_ATTR_MAX)
			attrs[mnl_attr_get_type(attr)] = attr;
	if (!attrs[NLMSGERR_ATTR_MSG])
		return lv_fail(v, err, "%s", strerror(err));
	text = mnl_attr_get_str(attrs[NLMSGERR_ATTR_MSG]);
	/* The module begins its texts with its name. Others are the kernel's own. */
	if (!strncmp(text, "vulture: ", 9))
		return lv_fail(v, err, "%s", text + 9);
	attr = asked && attrs[NLMSGERR_ATTR_OFFS] ?
	       lv_attribute_at(asked, lv_get_u32(attrs[NLMSGERR_ATTR_OFFS]), &name) : NULL;
	if (!attr)
		return lv_fail(v, err, "%s", text);
	return policy_error(v, err, text, attrs[NLMSGERR_ATTR_POLICY], attr, name);
}

/* Fail with the error of a message of type NLMSG_ERROR, which repeats the request. */
static int refused(struct vulture *v, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(*e);

	if (nlh->nlmsg_flags & NLM_F_CAPPED)
		return kernel_error(v, nlh, -e->error, skip, NULL);
	if (e->msg.nlmsg_len < sizeof(e->msg) ||
	    e->msg.nlmsg_len > mnl_nlmsg_get_payload_len(nlh) - offsetof(struct nlmsgerr, msg))
		return lv_fail(v, -e->error, "%s", strerror(-e->error));
	skip += MNL_ALIGN(e->msg.nlmsg_len) - sizeof(e->msg);
	return kernel_error(v, nlh, -e->error, skip, &e->msg);
}

/* Process one message. Return: 1 if the answer is complete, 0 if more follows, -1 on failure. */
static int answer(struct vulture *v, const struct nlmsghdr *nlh, struct sink *sink)
{
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

		return e->error ? refused(v, nlh) : 1;
	}
	if (nlh->nlmsg_type == NLMSG_DONE) {
		const int *err = mnl_nlmsg_get_payload(nlh);

		return *err < 0 ? kernel_error(v, nlh, -*err, sizeof(*err), NULL) : 1;
	}
	if (sink && !sink->ended)
		sink->message(nlh, sink);
	return 0;
}

/* Messages of a dump, kept until the dump is complete. */
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

/* Call the sink for each kept message. The sink's callback may use this handle, since the dump is
 * complete and the buffer is free.
 */
static void hand_over(const struct kept *kept, struct sink *sink)
{
	size_t at = 0;

	while (at < kept->bytes && !sink->ended) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(kept->data + at);

		sink->message(nlh, sink);
		at += MNL_ALIGN(nlh->nlmsg_len);
	}
}

/* Read the whole answer. Messages of a dump go to @kept, all others to the sink at once. */
static int read_answer(struct vulture *v, uint32_t seq, struct sink *sink, struct kept *kept)
{
	uint32_t portid = mnl_socket_get_portid(v->nl);

	for (;;) {
		ssize_t got = mnl_socket_recvfrom(v->nl, v->buffer, sizeof(v->buffer));
		const struct nlmsghdr *nlh;
		int left = (int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return lv_fail(v, errno, "no answer from the kernel: %s", strerror(errno));
		for (nlh = (const struct nlmsghdr *)v->buffer; mnl_nlmsg_ok(nlh, left);
		     nlh = mnl_nlmsg_next(nlh, &left)) {
			int state;

			/* It belongs to an earlier answer that was not read to its end. */
			if (!mnl_nlmsg_seq_ok(nlh, seq) || !mnl_nlmsg_portid_ok(nlh, portid))
				continue;
			if (kept && nlh->nlmsg_type >= NLMSG_MIN_TYPE) {
				if (keep(kept, nlh))
					return lv_fail(v, ENOMEM, "no memory for the answer");
				continue;
			}
			state = answer(v, nlh, sink);
			if (state)
				return state < 0 ? -1 : 0;
		}
	}
}

int lv_talk(struct vulture *v, struct nlmsghdr *nlh, struct sink *sink)
{
	bool dump = nlh->nlmsg_flags & NLM_F_DUMP;
	uint32_t seq = nlh->nlmsg_seq;
	struct kept kept = {};
	int result;

	v->error[0] = '\0';
	if (!dump)
		nlh->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(v->nl, nlh, nlh->nlmsg_len) < 0)
		return lv_fail(v, errno, "cannot send to the kernel: %s", strerror(errno));
	result = read_answer(v, seq, sink, dump ? &kept : NULL);
	if (!result)
		hand_over(&kept, sink);
	free(kept.data);
	return result;
}

/* Opening */

static int find_group(const struct nlattr *nest, uint32_t *id)
{
	const struct nlattr *group;

	mnl_attr_for_each_nested(group, nest) {
		const struct nlattr *attrs[CTRL_ATTR_MCAST_GRP_MAX + 1];

		lv_parse_nest(group, attrs, CTRL_ATTR_MCAST_GRP_MAX);
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

	lv_parse_message(nlh, attrs, CTRL_ATTR_MAX);
	v->family = lv_get_u16(attrs[CTRL_ATTR_FAMILY_ID]);
	if (attrs[CTRL_ATTR_MCAST_GROUPS])
		find_group(attrs[CTRL_ATTR_MCAST_GROUPS], &v->events);
}

static int find_family(struct vulture *v)
{
	struct nlmsghdr *nlh = request(v, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, 1);
	struct sink sink = { .message = on_family, .result = v };

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, VULTURE_FAMILY_NAME);
	if (lv_talk(v, nlh, &sink) < 0)
		return errno != ENOENT ? -1 :
		       lv_fail(v, ENOENT, "the kernel module vulture is not loaded (modprobe vulture)");
	return v->family ? 0 : lv_fail(v, EPROTO, "the kernel named no netlink family");
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
		lv_fail(v, errno, "cannot open generic netlink: %s", strerror(errno));
		goto err;
	}
	/* Ask for error texts. */
	mnl_socket_setsockopt(v->nl, NETLINK_EXT_ACK, &on, sizeof(on));
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
