// SPDX-License-Identifier: GPL-2.0
/*
 * The hint of coding "dscp" (../hint.h) without shred_hint.ko: a tc egress
 * program that writes a TCP flow's age into its packets, from the socket.
 *
 *   clang -O2 -g -target bpf -c age.bpf.c -o age.bpf.o
 *   tc qdisc add dev eth0 clsact
 *   tc filter add dev eth0 egress bpf direct-action obj age.bpf.o sec tc
 *
 * An example: it does not reset the age after a pause of 1.5 s. It does not change
 * packets that carry another DSCP, IPv6 extension headers or a VLAN tag, packets
 * without a socket (forwarded ones) except resets, and packets on a device without an
 * Ethernet header.
 */
#include <stdbool.h>
#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../uapi/shred.h"

#define AGE_UNIT_LOG	11	/* SHRED_AGE_UNIT_LOG of hint.h */
#define AGE_CLASSES	8
#define DSCP_BITS	0x1c	/* yyy111, above ECN */
#define ECN_BITS	0x03
#define OLDEST		(~0ULL)	/* an age of the last class */
#define TCP_FLAGS_AT	13	/* offset in the TCP header */
#define TCP_SYN		0x02
#define TCP_RST		0x04
#define TCP_ACK		0x10
#define SOCK_STREAM	1	/* include/linux/net.h */

char LICENSE[] SEC("license") = "GPL";

/* c of hint.h: at least 2^c units were sent before, for c > 0. */
static __always_inline __u32 age_class(__u64 bytes)
{
	__u64 units = bytes >> AGE_UNIT_LOG;
	__u32 class = 0;

#pragma unroll
	for (int c = 1; c < AGE_CLASSES; c++)
		if (units >> c)
			class = c;
	return class;
}

/* Age of an answer without a connection, as shred_host_gone_hint() has it: data of the connection
 * may still be queued, and the answer must not overtake it. Nothing precedes an answer to a SYN: a
 * SYN/ACK, or a reset with ACK (RFC 9293, section 3.10.7.1).
 */
static __always_inline __u64 gone_age(__u8 flags)
{
	return flags & TCP_SYN || (flags & (TCP_RST | TCP_ACK)) == (TCP_RST | TCP_ACK) ? 0 : OLDEST;
}

/* bytes_acked plus the bytes in flight. A connection request and TIME-WAIT are not full sockets. A
 * reset of no connection leaves through a raw socket of the kernel, which has no struct tcp_sock,
 * or without a socket (IPv6).
 */
static __always_inline __u64 age_of(struct bpf_sock *sk, __u8 flags)
{
	struct bpf_tcp_sock *tp;

	if (sk)
		sk = bpf_sk_fullsock(sk);
	if (!sk || sk->type != SOCK_STREAM)
		return gone_age(flags);
	tp = bpf_tcp_sock(sk);
	return tp ? tp->bytes_acked + (__u32)(tp->snd_nxt - tp->snd_una) : OLDEST;
}

/* Is the hint to be written? Not over another DSCP, and not into a packet without a socket, except
 * that a reset has the TOS byte, and thus perhaps the hint, of the packet that it answers.
 */
static __always_inline bool wanted(const struct bpf_sock *sk, __u8 tos, __u8 flags)
{
	if (tos & ~ECN_BITS)
		return flags & TCP_RST && (tos & DSCP_BITS) == DSCP_BITS;
	return sk;
}

static __always_inline __u8 hint(__u8 tos, __u64 age)
{
	return (AGE_CLASSES - 1 - age_class(age)) << 5 | DSCP_BITS | (tos & ECN_BITS);
}

static __always_inline int write4(struct __sk_buff *skb, struct bpf_sock *sk)
{
	const int at = ETH_HLEN + offsetof(struct iphdr, tos);
	__u8 first, protocol, old, new, flags;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &first, 1) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, protocol), &protocol, 1) ||
	    protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, at, &old, 1) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + (first & 0x0f) * 4 + TCP_FLAGS_AT, &flags, 1) ||
	    !wanted(sk, old, flags))
		return TC_ACT_OK;
	new = hint(old, age_of(sk, flags));
	bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), bpf_htons(old),
			    bpf_htons(new), 2);
	bpf_skb_store_bytes(skb, at, &new, 1, 0);
	return TC_ACT_OK;
}

static __always_inline int write6(struct __sk_buff *skb, struct bpf_sock *sk)
{
	__u8 next, tos, flags, first[2];

	if (bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &next, 1) ||
	    next != IPPROTO_TCP || bpf_skb_load_bytes(skb, ETH_HLEN, first, 2) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr) + TCP_FLAGS_AT, &flags, 1))
		return TC_ACT_OK;
	tos = first[0] << 4 | first[1] >> 4;
	if (!wanted(sk, tos, flags))
		return TC_ACT_OK;
	tos = hint(tos, age_of(sk, flags));
	first[0] = (first[0] & 0xf0) | tos >> 4;
	first[1] = (first[1] & 0x0f) | tos << 4;
	bpf_skb_store_bytes(skb, ETH_HLEN, first, 2, 0);
	return TC_ACT_OK;
}

SEC("tc")
int shred_age(struct __sk_buff *skb)
{
	__u16 ethertype;

	/* the offsets assume an Ethernet header */
	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &ethertype, 2) ||
	    ethertype != skb->protocol)
		return TC_ACT_OK;
	switch (ethertype) {
	case bpf_htons(ETH_P_IP):
		return write4(skb, skb->sk);
	case bpf_htons(ETH_P_IPV6):
		return write6(skb, skb->sk);
	}
	return TC_ACT_OK;
}
