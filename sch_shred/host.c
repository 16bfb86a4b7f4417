// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint on the sending host: for TCP the hint comes from the socket.
 *
 *   mode dscp   TCP: bytes that the connection has sent, counted as at the edge, so
 *               that both write the same hint. Other protocols: as at the edge.
 *   mode tos    TCP: min(max(snd_cwnd, 1), 255), the paper's hint. Others: none.
 *
 * The hint of a SYN and of an answer to one (a SYN/ACK, a refusal) is 1. In mode dscp an
 * answer for a connection that no longer exists (a reset, an ACK in TIME-WAIT) carries the
 * largest hint: data of the connection may still be queued, and the answer must not
 * overtake it. The receiver discards data that arrives after a reset.
 * A packet whose DSCP is already set, by its socket or by a rule, is not changed.
 */

#include <linux/hash.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "writer.h"

static u32 shred_host_tcp_hint(struct shred_hint_net *hn, const struct sk_buff *skb,
			       const struct sock *sk, u8 mode)
{
	u32 age_bytes;

	/* no data was sent before: a listening socket, or a SYN */
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_SYN_SENT))
		return 1;
	if (mode == SHRED_HINT_TOS)
		return tcp_snd_cwnd(tcp_sk(sk));
	age_bytes = shred_flow_count(hn, sk->sk_hash * GOLDEN_RATIO_64, false,
				     skb->len - skb_transport_offset(skb) - tcp_hdrlen(skb), 0);
	return 1U << shred_age_class(age_bytes);
}

/* The hint for an answer without a connection. A SYN is answered by a SYN/ACK or by a reset with
 * ACK; a reset that answers a segment of a connection has no ACK (RFC 9293, section 3.10.7.1).
 */
static u32 shred_host_gone_hint(const struct sk_buff *skb, u8 mode)
{
	const struct tcphdr *th = tcp_hdr(skb);

	return mode == SHRED_HINT_DSCP && !th->syn && !(th->rst && th->ack) ? SHRED_HINT_MAX : 1;
}

/* Return: the hint, 0 = none. */
static u32 shred_host_hint(struct shred_hint_net *hn, const struct sk_buff *skb,
			   const struct sock *sk, int family, u8 mode)
{
	/* a connection request, or TIME-WAIT */
	if (!sk_fullsock(sk))
		return shred_host_gone_hint(skb, mode);
	/* not if a tunnel has encapsulated the packet */
	if (sk_is_tcp(sk) && shred_packet_protocol(skb, family) == IPPROTO_TCP)
		return shred_host_tcp_hint(hn, skb, sk, mode);
	return mode == SHRED_HINT_DSCP ? shred_flow_hint(hn, skb, family, mode) : 0;
}

/* Is this an answer that the kernel sends for TCP without a connection? These leave through a raw
 * socket of the kernel. A reset has the TOS byte of the packet that it answers.
 */
static bool shred_host_answer(const struct sk_buff *skb, const struct sock *sk, int family)
{
	return sk_fullsock(sk) && sk->sk_protocol == IPPROTO_TCP && !sk_is_tcp(sk) &&
	       shred_packet_protocol(skb, family) == IPPROTO_TCP;
}

unsigned int shred_host_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct shred_hint_net *hn = shred_hint_pernet(state->net);
	/* an IPv6 reset without a connection has its socket in state only */
	const struct sock *sk = skb->sk ?: state->sk;
	u8 mode = READ_ONCE(hn->set[SHRED_MODE]), tos = shred_packet_tos(skb, state->pf);
	bool answer;
	u32 hint;

	/* a forwarded packet has no socket: the edge hook handles it */
	if (!sk || mode == SHRED_HINT_OFF || !READ_ONCE(hn->set[SHRED_HOST]) ||
	    !shred_device_wanted(hn, state->out))
		return NF_ACCEPT;
	answer = shred_host_answer(skb, sk, state->pf);
	if (tos & ~SHRED_ECN_MASK && !(answer && shred_hint_read(mode, tos))) {
		shred_hint_count(hn, SHRED_SKIPPED);
		return NF_ACCEPT;
	}
	hint = answer ? shred_host_gone_hint(skb, mode) :
			shred_host_hint(hn, skb, sk, state->pf, mode);
	if (hint)
		shred_packet_write(hn, skb, state->pf, mode, hint, SHRED_WRITTEN_HOST);
	return NF_ACCEPT;
}
