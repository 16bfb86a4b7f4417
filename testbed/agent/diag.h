/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP_INFO of many sockets by sock_diag: two system calls for DIAG_BATCH
 * sockets, where getsockopt() needs two for each.  A system call is what a
 * user-mode kernel is slowest at.
 */
#ifndef LBE_AGENT_DIAG_H
#define LBE_AGENT_DIAG_H

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/tcp.h>

#include "types.h"

/* Sockets asked about at once; the kernel counts about 2 kB for each answer. */
#define DIAG_BATCH	64

/* The question about one connection, the same each time; all 0 = not made */
struct diag_request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

/* A socket that is asked about, and what it says of itself */
struct diag_socket {
	int fd;				/* from the caller, with the request */
	struct diag_request *request;	/* made when first needed, kept by the caller */
	struct tcp_info info;		/* zeros beyond what an older kernel knows */
	union tcp_cc_info cc;		/* zeros if its congestion control says none */
	bool valid;			/* the kernel answered */
};

/*
 * Asks about n <= DIAG_BATCH connected sockets.  Those that sock_diag does not
 * find (closed by the peer, a handshake that is put off, a kernel without
 * tcp_diag) are asked by getsockopt().
 */
void diag_ask(struct diag_socket *sockets, u32 n);

#endif
