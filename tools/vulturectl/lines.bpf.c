// SPDX-License-Identifier: GPL-2.0
/*
 * Puts uploads in the background that a line of apply's file selects by a port, the peer's address
 * or the DSCP which the application has chosen.
 *
 * Attached to the root of cgroup v2 as sock_ops. User space fills the map before the program is
 * attached. The programs of other cgroups (background.bpf.c) have run before, with the same
 * context: if the nearest one with a mode said foreground, this program does nothing.
 */
#include "lines_map.h"
#include "upload.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lines_map);
} lbe_lines_map SEC(".maps");

/* What a line may ask of a connection; the fields are those of struct lines_match. */
struct connection {
	__u16 local_port, remote_port;
	__u8 family, dscp;
	__u32 remote[4];
};

/* Read a field of the context at this place. The compiler may otherwise read one of two fields at
 * an address that it computes, which the kernel refuses.
 */
#define HERE(field) ({				\
	__u32 value_ = (field);			\
	asm volatile("" : "+r"(value_));	\
	value_;					\
})

static __always_inline void read_connection(struct bpf_sock_ops *ctx, struct connection *its)
{
	int tos = 0;

	its->local_port = ctx->local_port;
	its->remote_port = bpf_ntohl(ctx->remote_port);
	if (is_ipv4(ctx)) {
		its->family = AF_INET;
		its->remote[0] = HERE(ctx->remote_ip4);
	} else {
		its->family = AF_INET6;
		its->remote[0] = HERE(ctx->remote_ip6[0]);
		its->remote[1] = HERE(ctx->remote_ip6[1]);
		its->remote[2] = HERE(ctx->remote_ip6[2]);
		its->remote[3] = HERE(ctx->remote_ip6[3]);
	}
	/* Older kernels refuse IP_TOS for a socket of IPv6. */
	if (its->family != AF_INET || bpf_getsockopt(ctx, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)))
		bpf_getsockopt(ctx, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	its->dscp = (tos & DSCP_BITS) >> 2;
}

static __always_inline int matches(const struct lines_match *line, const struct connection *its)
{
	if (line->local_port && line->local_port != its->local_port)
		return 0;
	if (line->remote_port && line->remote_port != its->remote_port)
		return 0;
	if (line->by_dscp && line->dscp != its->dscp)
		return 0;
	if (!line->family)
		return 1;
	return line->family == its->family &&
	       (its->remote[0] & line->mask[0]) == line->prefix[0] &&
	       (its->remote[1] & line->mask[1]) == line->prefix[1] &&
	       (its->remote[2] & line->mask[2]) == line->prefix[2] &&
	       (its->remote[3] & line->mask[3]) == line->prefix[3];
}

SEC("sockops")
int lbe_lines(struct bpf_sock_ops *ctx)
{
	struct connection its = {};
	struct lines_map *lines;
	__u32 first = 0, i;

	if (!is_new(ctx) || ctx->reply == SAID_FOREGROUND)
		return 1;
	lines = bpf_map_lookup_elem(&lbe_lines_map, &first);
	if (!lines || bpf_get_netns_cookie(ctx) != lines->netns)
		return 1;
	read_connection(ctx, &its);
	for (i = 0; i < LINES_MAX && i < lines->count; i++) {
		if (!matches(&lines->match[i], &its))
			continue;
		to_background(ctx, lines->control);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "GPL";
