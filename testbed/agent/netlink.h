/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several netlink requests by two system calls.  All requests go out in one
 * message.  The kernel answers each of them within send(), so the answers wait
 * in the socket and one recvmmsg() fetches them; nlmsg_seq says whose an
 * answer is.
 */
#ifndef LBE_AGENT_NETLINK_H
#define LBE_AGENT_NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>

#include "types.h"

struct mmsghdr;

struct netlink_batch {
	int fd;
	u32 most;			/* requests at once */
	u32 first;			/* nlmsg_seq of place 0 of the last batch; may wrap */
	struct mmsghdr *messages;	/* most of them, each with a buffer for an answer */
};

/* One answer to the request that had this place; header lasts until the return. */
typedef void netlink_answer_fn(void *context, u32 place,
			       struct nlmsghdr *header);

/*
 * Opens a socket for batches of up to most requests, whose answers have up to
 * answer_bytes each.  All answers of a batch must fit into netlink's default
 * receive buffer of 208 kB.  Returns 0 or a negative errno.
 */
int netlink_batch_open(struct netlink_batch *b, int protocol, u32 most,
		       size_t answer_bytes);

/*
 * Sends the n <= most requests of bytes in all, one after the other at
 * requests.  Each carries its place, below most, as nlmsg_seq; this is
 * overwritten.  Calls answer for each answer that came; a request may have
 * none.  Returns 0 or a negative errno, then nothing was answered.
 */
int netlink_batch_ask(struct netlink_batch *b, void *requests, size_t bytes,
		      u32 n, netlink_answer_fn *answer, void *context);

#endif
