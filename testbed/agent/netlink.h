/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several netlink requests by two system calls.  All requests are sent in one
 * message.  The kernel answers them within send(), so that the answers are
 * queued at the socket and one recvmmsg() reads them.  nlmsg_seq identifies
 * the request of an answer.
 */
#ifndef LBE_AGENT_NETLINK_H
#define LBE_AGENT_NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>

#include "types.h"

struct mmsghdr;

struct netlink_batch {
	int fd;
	u32 most;			/* maximum number of requests */
	u32 first;			/* nlmsg_seq of place 0 of the last batch; may wrap */
	struct mmsghdr *messages;	/* array of most, each with a buffer for an answer */
};

/* One answer to the request at this place; header is valid until the return. */
typedef void netlink_answer_fn(void *context, u32 place,
			       struct nlmsghdr *header);

/*
 * Opens a socket for batches of up to most requests, with answers of up to
 * answer_bytes each.  All answers of a batch must fit into netlink's default
 * receive buffer of 208 kB.  Returns 0 or a negative errno.
 */
int netlink_batch_open(struct netlink_batch *b, int protocol, u32 most,
		       size_t answer_bytes);

/*
 * Sends the n <= most requests, which are consecutive at requests and have
 * bytes in total.  nlmsg_seq of each is its place, below most, and is
 * overwritten.  Calls answer for each answer; a request may have none.
 * Returns 0, or a negative errno if there are no answers.
 */
int netlink_batch_ask(struct netlink_batch *b, void *requests, size_t bytes,
		      u32 n, netlink_answer_fn *answer, void *context);

#endif
