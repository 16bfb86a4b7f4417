/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fields that identify the socket in the trace events of every sender: the cookie, by
 * which `ss -e` and BPF identify it, and both addresses.
 */
#ifndef LBE_SOCK_TRACE_H
#define LBE_SOCK_TRACE_H

#include <linux/in6.h>
#include <linux/ipv6.h>
#include <linux/sock_diag.h>
#include <linux/string.h>
#include <net/inet_sock.h>
#include <trace/events/net_probe_common.h>

#define LBE_TRACE_SOCK_FIELDS						\
	__array(__u32, cookie, 2)					\
	__array(__u8, saddr, sizeof(struct sockaddr_in6))		\
	__array(__u8, daddr, sizeof(struct sockaddr_in6))

/* A socket gets its cookie by an atomic exchange at the first use, hence the cast. */
#define LBE_TRACE_SOCK_ASSIGN(sk)					\
	do {								\
		const struct inet_sock *inet = inet_sk(sk);		\
									\
		sock_diag_save_cookie((struct sock *)(sk), __entry->cookie); \
		memset(__entry->saddr, 0, sizeof(struct sockaddr_in6));	\
		memset(__entry->daddr, 0, sizeof(struct sockaddr_in6));	\
		TP_STORE_ADDR_PORTS(__entry, inet, (sk));		\
	} while (0)

#define LBE_TRACE_SOCK_FORMAT	"cookie=%llx src=%pISpc dst=%pISpc"
#define LBE_TRACE_SOCK_ARGS						\
	(unsigned long long)__entry->cookie[1] << 32 | __entry->cookie[0], \
	__entry->saddr, __entry->daddr

#endif /* LBE_SOCK_TRACE_H */
