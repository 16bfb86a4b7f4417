// SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
/* libvulture: events for connections that come under control or leave it. */
#include <errno.h>
#include <linux/genetlink.h>
#include <string.h>

#include "parts.h"

int vulture_listen(struct vulture *v)
{
	if (mnl_socket_setsockopt(v->nl, NETLINK_ADD_MEMBERSHIP, &v->events,
				  sizeof(v->events)) < 0)
		return lv_fail(v, errno, "cannot listen to events: %s", strerror(errno));
	return mnl_socket_get_fd(v->nl);
}

/* The next message, from the buffer if it has unread ones, else from the kernel. */
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
			return lv_fail(v, errno, "cannot read an event: %s", strerror(errno));
		if (nlh->nlmsg_type != v->family)
			continue;
		genl = mnl_nlmsg_get_payload(nlh);
		if (genl->cmd != VULTURE_CMD_EVENT_START && genl->cmd != VULTURE_CMD_EVENT_END)
			continue;
		lv_parse_message(nlh, attrs, VULTURE_A_MAX);
		lv_read_flow(attrs[VULTURE_A_FLOW], flow);
		*reason = lv_get_u32(attrs[VULTURE_A_REASON]);
		return genl->cmd == VULTURE_CMD_EVENT_START ? VULTURE_EVENT_START :
							     VULTURE_EVENT_END;
	}
}
