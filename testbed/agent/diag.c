// SPDX-License-Identifier: GPL-2.0
/* TCP_INFO by sock_diag, see diag.h. */
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "diag.h"
#include "netlink.h"
#include "plan.h"

#define ANSWER_BYTES	2048	/* the kernel's answers have at most about 700 */

static struct netlink_batch batch;	/* opened when first needed */

/* ---- the request ---- */

static void copy_address(__be32 *to, __be16 *port, const union address *from)
{
	if (from->any.sa_family == AF_INET6) {
		memcpy(to, &from->v6.sin6_addr, sizeof(from->v6.sin6_addr));
		*port = from->v6.sin6_port;
	} else {
		to[0] = from->v4.sin_addr.s_addr;
		*port = from->v4.sin_port;
	}
}

/* Returns false, and makes no request, while fd has no peer. */
static bool make_request(struct diag_request *request, int fd)
{
	union address local, peer;
	socklen_t local_len = sizeof(local), peer_len = sizeof(peer);
	struct inet_diag_sockid *id = &request->body.id;

	if (request->header.nlmsg_len)
		return true;
	if (getsockname(fd, &local.any, &local_len) ||
	    getpeername(fd, &peer.any, &peer_len))
		return false;
	*request = (struct diag_request) {
		.header.nlmsg_len = sizeof(*request),
		.header.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.header.nlmsg_flags = NLM_F_REQUEST,
		.body.sdiag_family = local.any.sa_family,
		.body.sdiag_protocol = IPPROTO_TCP,
		/* Vegas' bit requests the data of any congestion control. */
		.body.idiag_ext = 1 << (INET_DIAG_INFO - 1) |
				  1 << (INET_DIAG_VEGASINFO - 1),
		.body.idiag_states = ~0u,
	};
	copy_address(id->idiag_src, &id->idiag_sport, &local);
	copy_address(id->idiag_dst, &id->idiag_dport, &peer);
	id->idiag_cookie[0] = INET_DIAG_NOCOOKIE;
	id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return true;
}

/* ---- the answer ---- */

static void parse(struct diag_socket *s, struct nlmsghdr *header)
{
	struct rtattr *a = (void *)((u8 *)NLMSG_DATA(header) +
				    NLMSG_ALIGN(sizeof(struct inet_diag_msg)));
	int len = header->nlmsg_len -
		  NLMSG_SPACE(sizeof(struct inet_diag_msg));

	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		size_t bytes = RTA_PAYLOAD(a);

		switch (a->rta_type) {
		case INET_DIAG_INFO:
			memcpy(&s->info, RTA_DATA(a),
			       min_u64(bytes, sizeof(s->info)));
			s->valid = true;
			break;
		case INET_DIAG_VEGASINFO:
		case INET_DIAG_DCTCPINFO:
		case INET_DIAG_BBRINFO:
			memcpy(&s->cc, RTA_DATA(a),
			       min_u64(bytes, sizeof(s->cc)));
			break;
		}
	}
}

static void ask_one(struct diag_socket *s)
{
	socklen_t len = sizeof(s->info), cc_len = sizeof(s->cc);

	s->valid = !getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &s->info, &len);
	if (s->valid)
		getsockopt(s->fd, IPPROTO_TCP, TCP_CC_INFO, &s->cc, &cc_len);
}

/* ---- batches ---- */

static void take_answer(void *context, u32 place, struct nlmsghdr *header)
{
	struct diag_socket *sockets = context;

	if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY)
		parse(&sockets[place], header);
}

/* If the socket cannot be opened, getsockopt() is used for all. */
static bool batch_is_open(void)
{
	static bool tried, opened;

	if (!tried)
		opened = !netlink_batch_open(&batch, NETLINK_SOCK_DIAG,
					     DIAG_BATCH, ANSWER_BYTES);
	tried = true;
	return opened;
}

/* Queries the sockets for which a request can be made. */
static void ask_together(struct diag_socket *sockets, u32 n)
{
	struct diag_request requests[DIAG_BATCH];
	u32 asked = 0;

	for (u32 i = 0; i < n; i++) {
		if (!make_request(sockets[i].request, sockets[i].fd))
			continue;
		requests[asked] = *sockets[i].request;
		requests[asked++].header.nlmsg_seq = i;
	}
	if (asked && batch_is_open())
		netlink_batch_ask(&batch, requests, asked * sizeof(requests[0]),
				  asked, take_answer, sockets);
}

void diag_ask(struct diag_socket *sockets, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		memset(&sockets[i].info, 0, sizeof(sockets[i].info));
		memset(&sockets[i].cc, 0, sizeof(sockets[i].cc));
		sockets[i].valid = false;
	}
	ask_together(sockets, n);
	for (u32 i = 0; i < n; i++)
		if (!sockets[i].valid)
			ask_one(&sockets[i]);
}
