/* SPDX-License-Identifier: GPL-2.0 */
/* What lines.c tells the BPF program of lines.bpf.c: lines of the file of apply. */
#ifndef VULTURECTL_LINES_MAP_H
#define VULTURECTL_LINES_MAP_H

#include <linux/types.h>

#define LINES_MAX	256	/* the lines of a file */
#define LINES_CONTROL	16	/* TCP_CA_NAME_MAX of the kernel */

/**
 * struct lines_match - one line; a connection must meet all that is not 0
 * @local_port, @remote_port: in host order
 * @family: AF_INET or AF_INET6, of the packets, not of the socket; with @prefix and @mask
 * @by_dscp: the socket sends with @dscp
 * @prefix, @mask: the peer's address in network order; IPv4 has the first word only
 */
struct lines_match {
	__u16 local_port, remote_port;
	__u8 family;
	__u8 by_dscp, dscp;
	__u8 unused;
	__u32 prefix[4], mask[4];
};

/**
 * struct lines_map - all lines for uploads
 * @netns: cookie of the network namespace in which they act
 * @control: the congestion control that they give a socket
 */
struct lines_map {
	__u64 netns;
	char control[LINES_CONTROL];
	__u32 count;
	__u32 unused;
	struct lines_match match[LINES_MAX];
};

#endif /* VULTURECTL_LINES_MAP_H */
