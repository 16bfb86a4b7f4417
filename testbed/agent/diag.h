/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP_INFO of many sockets by sock_diag: two system calls for DIAG_BATCH
 * sockets, where getsockopt() needs two for each.  System calls are slow in a
 * user-mode kernel.
 */
#ifndef LBE_AGENT_DIAG_H
#define LBE_AGENT_DIAG_H

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/tcp.h>

#include "types.h"

/* Sockets in one batch; an answer takes about 2 kB of the receive buffer. */
#define DIAG_BATCH	64

/* The request for one connection, always the same; all 0 = not made yet */
struct diag_request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

/* A socket to query, and the answer */
struct diag_socket {
	int fd;				/* from the caller, with the request */
	struct diag_request *request;	/* made when first needed, owned by the caller */
	struct tcp_info info;		/* fields unknown to an older kernel are 0 */
	union tcp_cc_info cc;		/* 0 if the congestion control has none */
	bool valid;			/* the kernel answered */
};

/*
 * Queries n <= DIAG_BATCH connected sockets.  Sockets that sock_diag does not
 * find (closed by the peer, a deferred handshake, a kernel without tcp_diag)
 * are queried by getsockopt().
 */
void diag_ask(struct diag_socket *sockets, u32 n);

#endif
