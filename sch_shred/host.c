// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint on the sending host: what the socket knows, without parsing.
 *
 *   mode dscp   TCP: age = bytes_acked + (snd_nxt - snd_una), what the connection
 *               had sent before this packet, less what that was when it last sent
 *               after an idle second. A retransmission is as old as new data, or it
 *               would overtake what it repeats. Other protocols: counted as at the
 *               edge.
 *   mode tos    TCP: min(max(snd_cwnd, 1), 255), the paper's hint. Others: none.
 *
 * A SYN, a SYN/ACK and what belongs to no connection (reset, TIME-WAIT) say 1.
 * A packet whose DSCP is set already, by its socket or by a rule, stays as it is.
 */

#include <linux/hash.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "age.h"
#include "writer.h"

/* An entry of hn->restarts: the connection's hash, then its age at the restart in KiB. */
static u64 shred_restart_entry(const struct sock *sk, u64 age_bytes)
{
	return (u64)sk->sk_hash << 32 | min_t(u64, age_bytes >> 10, U32_MAX);
}

/* Age at which the socket's present burst began, bytes. */
static u64 shred_restart_bytes(struct shred_hint_net *hn, const struct sock *sk, u64 age_bytes)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	atomic64_t *entry = &hn->restarts[hash_32(sk->sk_hash, ilog2(SHRED_RESTARTS))];
	u64 now = shred_restart_entry(sk, age_bytes), was = atomic64_read(entry);

	/* of another connection: this one's restart, if it had any, is forgotten */
	if (was >> 32 != sk->sk_hash)
		was = 0;
	/* nothing is under way, and what was has been acknowledged a while ago; or an earlier
	 * connection had the same addresses and ports
	 */
	if (was > now || (!tp->packets_out && tp->tcp_mstamp - tp->delivered_mstamp >
					      SHRED_IDLE_MS * USEC_PER_MSEC)) {
		atomic64_set(entry, now);
		return age_bytes;
	}
	return (was & U32_MAX) << 10;
}

/* snd_nxt moves on after the packet has left: new data finds its own number in it. */
static u64 shred_host_age(struct shred_hint_net *hn, const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 age_bytes = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);

	return age_bytes - min(age_bytes, shred_restart_bytes(hn, sk, age_bytes));
}

static u32 shred_host_tcp_hint(struct shred_hint_net *hn, const struct sock *sk, u8 mode)
{
	/* a listening socket, or one that has sent no data yet */
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_SYN_SENT | TCPF_CLOSE))
		return 1;
	if (mode == SHRED_HINT_TOS)
		return tcp_snd_cwnd(tcp_sk(sk));
	return 1U << shred_age_class(shred_host_age(hn, sk));
}

static u32 shred_host_hint(struct shred_hint_net *hn, const struct sk_buff *skb,
			   const struct sock *sk, int family, u8 mode)
{
	/* a connection request, or TIME-WAIT */
	if (!sk_fullsock(sk))
		return 1;
	if (sk_is_tcp(sk))
		return shred_host_tcp_hint(hn, sk, mode);
	/* TCP from a raw socket: the kernel's own, for resets of no connection */
	if (sk->sk_protocol == IPPROTO_TCP)
		return 1;
	return mode == SHRED_HINT_DSCP ? shred_edge_hint(hn, skb, family, mode) : 0;
}

unsigned int shred_host_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct shred_hint_net *hn = shred_hint_pernet(state->net);
	/* an IPv6 reset of no connection has its socket only here */
	const struct sock *sk = skb->sk ?: state->sk;
	u8 mode = READ_ONCE(hn->mode);
	u32 hint;

	/* a forwarded packet has no socket and is the edge's */
	if (!sk || mode == SHRED_HINT_OFF || !shred_device_wanted(hn, state->out))
		return NF_ACCEPT;
	if (shred_packet_tos(skb, state->pf) & ~SHRED_ECN_MASK) {
		shred_hint_count(hn, SHRED_SKIPPED);
		return NF_ACCEPT;
	}
	hint = shred_host_hint(hn, skb, sk, state->pf, mode);
	if (hint && shred_packet_write(skb, state->pf, mode, hint))
		shred_hint_count(hn, SHRED_WRITTEN_HOST);
	return NF_ACCEPT;
}

/* Before the hooks are in place. Once there, the table stays until the namespace goes. */
int shred_host_prepare(struct shred_hint_net *hn)
{
	if (!hn->restarts)
		hn->restarts = kvcalloc(SHRED_RESTARTS, sizeof(*hn->restarts), GFP_KERNEL_ACCOUNT);
	return hn->restarts ? 0 : -ENOMEM;
}

void shred_host_free(struct shred_hint_net *hn)
{
	kvfree(hn->restarts);
}
