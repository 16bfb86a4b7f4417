/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The mark by which a network recognises less-than-best-effort packets: DSCP LE, and
 * TC_PRIO_FILLER on the sending host.
 *
 * RFC 8622: LE is code point 1, so the byte is 0x04. Its two low bits are ECN's
 * and belong to the stack. The queues of the sending host use sk_priority; Linux maps
 * LE to plain best effort there (ip_tos2prio[2]), so sk_priority has to be set as well.
 *
 * The rules for congestion controls that mark sockets:
 *  - a choice of the application is kept: a code point other than 0, or a
 *    priority other than 0. If it has chosen a code point, the priority does not
 *    change either, since IP_TOS sets both; but if it has chosen LE, the priority is
 *    set too;
 *  - a later choice of the application takes effect, since IP_TOS, IPV6_TCLASS and
 *    SO_PRIORITY overwrite the mark; only IPV6_TCLASS does not change sk_priority;
 *  - removing the mark changes only values that are still those of the mark. A value
 *    that the application has set cannot be told from the mark if both are the same;
 *  - one byte is written, that of the family on the wire: an IPv6 socket that
 *    is connected to a mapped address sends IPv4 packets, with inet->tos.
 *
 * A congestion control is first called when the connection is established, so SYN and
 * SYN-ACK are not marked; the application can mark them by IP_TOS.
 *
 * The caller of both functions holds the socket lock. The byte and sk_priority are read
 * for each packet without it, so each is written with WRITE_ONCE; a packet that is sent
 * between the two writes has one of them.
 */
#ifndef LBE_MARK_H
#define LBE_MARK_H

#include <lbe/arith.h>

#define LBE_MARK_DSCP_LE	0x04	/* whole byte with ECN 00; RFC 8622 */
#define LBE_MARK_ECN_MASK	0x03	/* RFC 3168 section 5 */
#define LBE_MARK_FILLER		1	/* TC_PRIO_FILLER of linux/pkt_sched.h */

/* The parts of the mark that a control has set on a socket; 0: none. */
#define LBE_MARK_HAS_DSCP	0x01
#define LBE_MARK_HAS_PRIORITY	0x02
#define LBE_MARK_IS_IPV6	0x04

/* Parts to set on a socket that has this TOS (or traffic class) and priority */
static inline u8 lbe_mark_parts(u8 tos, u32 priority)
{
	u8 dscp = tos & ~LBE_MARK_ECN_MASK;
	u8 parts = 0;

	if (!dscp)
		parts |= LBE_MARK_HAS_DSCP;
	if (!priority && (!dscp || dscp == LBE_MARK_DSCP_LE))
		parts |= LBE_MARK_HAS_PRIORITY;
	return parts;
}

/* Those of @parts that have not been changed since, and so are to be removed */
static inline u8 lbe_mark_parts_left(u8 parts, u8 tos, u32 priority)
{
	if ((tos & ~LBE_MARK_ECN_MASK) != LBE_MARK_DSCP_LE)
		parts &= ~LBE_MARK_HAS_DSCP;
	if (priority != LBE_MARK_FILLER)
		parts &= ~LBE_MARK_HAS_PRIORITY;
	return parts;
}

#ifdef __KERNEL__

#include <linux/ipv6.h>
#include <linux/moduleparam.h>
#include <linux/pkt_sched.h>
#include <net/inet_connection_sock.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/sock.h>

static inline u8 *lbe_mark_byte(struct sock *sk, u8 parts)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (parts & LBE_MARK_IS_IPV6)
		return &inet6_sk(sk)->tclass;
#endif
	return &inet_sk(sk)->tos;
}

static inline void lbe_mark_write(struct sock *sk, u8 parts, u8 dscp, u32 priority)
{
	u8 *byte = lbe_mark_byte(sk, parts);

	if (parts & LBE_MARK_HAS_DSCP) {
		WRITE_ONCE(*byte, (*byte & LBE_MARK_ECN_MASK) | dscp);
		/* Routes may depend on TOS; IP_TOS drops the cached route too. */
		sk_dst_reset(sk);
	}
	if (parts & LBE_MARK_HAS_PRIORITY)
		WRITE_ONCE(sk->sk_priority, priority);
}

/* The parameter that turns the mark off, the same in every module; used once in a module. */
#define LBE_MARK_PARAM()						\
	static bool mark = true;					\
	module_param(mark, bool, 0644);					\
	MODULE_PARM_DESC(mark, "DSCP LE and TC_PRIO_FILLER for new flows, unless they chose (Y)")

/**
 * lbe_mark_set - mark a socket's packets as less than best effort
 * @sk: connected socket, locked
 *
 * Return: the argument @parts of lbe_mark_clear().
 */
static inline u8 lbe_mark_set(struct sock *sk)
{
	u8 family = 0, parts;

	BUILD_BUG_ON(LBE_MARK_FILLER != TC_PRIO_FILLER);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		family = LBE_MARK_IS_IPV6;
#endif
	parts = lbe_mark_parts(*lbe_mark_byte(sk, family), sk->sk_priority);
	parts |= family;
	lbe_mark_write(sk, parts, LBE_MARK_DSCP_LE, LBE_MARK_FILLER);
	/* TCP needs the route after this to store what the SYN-ACK said about Fast Open. */
	if (parts & LBE_MARK_HAS_DSCP && inet_csk(sk)->icsk_af_ops)
		inet_csk(sk)->icsk_af_ops->rebuild_header(sk);
	return parts;
}

/**
 * lbe_mark_clear - remove the mark again
 * @sk: socket, locked, or no longer reachable
 * @parts: what lbe_mark_set() returned; 0: never marked
 */
static inline void lbe_mark_clear(struct sock *sk, u8 parts)
{
	if (!(parts & (LBE_MARK_HAS_DSCP | LBE_MARK_HAS_PRIORITY)))
		return;
	parts = lbe_mark_parts_left(parts, *lbe_mark_byte(sk, parts), sk->sk_priority);
	lbe_mark_write(sk, parts, 0, TC_PRIO_BESTEFFORT);
}

#endif /* __KERNEL__ */

#endif /* LBE_MARK_H */
