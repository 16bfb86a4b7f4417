/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The mark by which a network knows filler: DSCP LE and TC_PRIO_FILLER.
 *
 * RFC 8622: LE is code point 1, so the byte is 0x04. Its two low bits are ECN's
 * and belong to the stack. sk_priority is what the sending host's own queues go
 * by; Linux maps LE to plain best effort there (ip_tos2prio[2]), so it has to
 * be set as well.
 *
 * Manners, for congestion controls that mark the sockets they are given:
 *  - what the application has chosen stays: a code point other than 0, or a
 *    priority other than 0. Its choice of a code point covers the priority too,
 *    since IP_TOS sets both; LE chosen by itself gets the priority with it;
 *  - an application that chooses later wins, as IP_TOS, IPV6_TCLASS and
 *    SO_PRIORITY write over the mark; IPV6_TCLASS alone leaves sk_priority;
 *  - taking the mark off touches only what still is as it was put on. A value
 *    that the application set to just the same cannot be told from ours;
 *  - one byte is written, that of the family on the wire: an IPv6 socket that
 *    talks to a mapped address sends IPv4 packets from inet->tos.
 *
 * A congestion control is first called when the connection stands, so SYN and
 * SYN-ACK go unmarked; the application can have them marked by IP_TOS.
 *
 * Both functions want the socket lock. Header fields and sk_priority are read
 * without it per packet, so each is written at once (WRITE_ONCE); a packet may
 * leave between the two writes with one of them.
 */
#ifndef LBE_MARK_H
#define LBE_MARK_H

#include <lbe/arith.h>

#define LBE_MARK_DSCP_LE	0x04	/* whole byte with ECN 00; RFC 8622 */
#define LBE_MARK_ECN_MASK	0x03	/* RFC 3168 section 5 */
#define LBE_MARK_FILLER		1	/* TC_PRIO_FILLER of linux/pkt_sched.h */

/* What of the mark is ours on this socket; 0: nothing. */
#define LBE_MARK_HAS_DSCP	0x01
#define LBE_MARK_HAS_PRIORITY	0x02
#define LBE_MARK_IS_IPV6	0x04

/* Parts to put on a socket with this TOS or traffic class and priority. */
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

/* Parts of ours that nobody has changed since, and so are to be taken off. */
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
		/* Routes may be chosen by TOS; IP_TOS does the same. */
		sk_dst_reset(sk);
	}
	if (parts & LBE_MARK_HAS_PRIORITY)
		WRITE_ONCE(sk->sk_priority, priority);
}

/* The parameter that turns it off, the same in every module. Once a module. */
#define LBE_MARK_PARAM()						\
	static bool mark = true;					\
	module_param(mark, bool, 0644);					\
	MODULE_PARM_DESC(mark, "DSCP LE and TC_PRIO_FILLER for new flows, unless they chose (Y)")

/**
 * lbe_mark_set - mark a socket's packets as filler
 * @sk: connected socket, locked
 *
 * Return: what lbe_mark_clear() is to be given.
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
	return parts;
}

/**
 * lbe_mark_clear - take the mark off again
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
