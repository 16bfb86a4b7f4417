/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the BPF programs of vulturectl do to a socket, and which events of a socket they act on.
 */
#ifndef VULTURECTL_UPLOAD_BPF_H
#define VULTURECTL_UPLOAD_BPF_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* From in.h, in6.h, socket.h and tcp.h, which do not all compile for BPF. */
#define IPPROTO_IP	0
#define IPPROTO_TCP	6
#define IPPROTO_IPV6	41
#define IP_TOS		1
#define IPV6_TCLASS	67
#define SOL_SOCKET	1
#define SO_PRIORITY	12
#define TCP_CONGESTION	13
#define AF_INET		2
#define AF_INET6	10
#define CONTROL_CHARS	16

/* A reply that neither the kernel nor another program uses for these operations. */
#define SAID_FOREGROUND	0x6c626566

#define LE_TOS		0x04
#define DSCP_BITS	0xfc
#define PRIO_FILLER	1

/* Whether the socket connects, or has been accepted. */
static __always_inline int is_new(const struct bpf_sock_ops *ctx)
{
	return ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB ||
	       ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
}

/* Whether the packets are IPv4, on a socket of either family. */
static __always_inline int is_ipv4(const struct bpf_sock_ops *ctx)
{
	return ctx->family == AF_INET ||
	       (ctx->family == AF_INET6 && !ctx->remote_ip6[0] && !ctx->remote_ip6[1] &&
		ctx->remote_ip6[2] == bpf_htonl(0xffff));
}

static __always_inline void mark(struct bpf_sock_ops *ctx, int level, int option)
{
	int tos = 0, le = LE_TOS;

	if (bpf_getsockopt(ctx, level, option, &tos, sizeof(tos)) || !(tos & DSCP_BITS))
		bpf_setsockopt(ctx, level, option, &le, sizeof(le));
}

/* Give the socket the congestion control @name, DSCP LE unless the application has chosen a DSCP,
 * and the priority of fillers. IP_TOS changes the priority too, so the priority comes last.
 */
static __always_inline void to_background(struct bpf_sock_ops *ctx, char *name)
{
	int priority = PRIO_FILLER;

	bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, name, CONTROL_CHARS);
	/* Older kernels refuse IP_TOS for a socket of IPv6. */
	if (is_ipv4(ctx))
		mark(ctx, IPPROTO_IP, IP_TOS);
	if (ctx->family == AF_INET6)
		mark(ctx, IPPROTO_IPV6, IPV6_TCLASS);
	bpf_setsockopt(ctx, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
}

#endif /* VULTURECTL_UPLOAD_BPF_H */
