// SPDX-License-Identifier: GPL-2.0
/* A batch of netlink requests, see netlink.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "netlink.h"

int netlink_batch_open(struct netlink_batch *b, int protocol, u32 most,
		       size_t answer_bytes)
{
	size_t spacing = NLMSG_ALIGN(answer_bytes);
	struct iovec *parts = calloc(most, sizeof(*parts));
	u8 *answers = calloc(most, spacing);

	*b = (struct netlink_batch){
		.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol),
		.most = most,
		.messages = calloc(most, sizeof(*b->messages)),
	};
	if (b->fd < 0)
		return -errno;
	if (!parts || !answers || !b->messages)
		return -ENOMEM;
	for (u32 i = 0; i < most; i++) {
		parts[i] = (struct iovec){ answers + i * spacing, answer_bytes };
		b->messages[i].msg_hdr.msg_iov = &parts[i];
		b->messages[i].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

int netlink_batch_ask(struct netlink_batch *b, void *requests, size_t bytes,
		      u32 n, netlink_answer_fn *answer, void *context)
{
	struct nlmsghdr *request = requests;
	int got;

	b->first += b->most;	/* an answer to an older batch has no valid place */
	for (u32 i = 0; i < n; i++) {
		request->nlmsg_seq += b->first;
		request = (void *)((u8 *)request +
				   NLMSG_ALIGN(request->nlmsg_len));
	}
	if (send(b->fd, requests, bytes, 0) < 0)
		return -errno;
	got = recvmmsg(b->fd, b->messages, n, MSG_DONTWAIT, NULL);
	for (int i = 0; i < got; i++) {
		struct nlmsghdr *header =
			b->messages[i].msg_hdr.msg_iov->iov_base;
		u32 place = header->nlmsg_seq - b->first;

		if (NLMSG_OK(header, b->messages[i].msg_len) && place < b->most)
			answer(context, place, header);
	}
	return 0;
}
