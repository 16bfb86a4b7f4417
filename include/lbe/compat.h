/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only file that depends on kernel versions.
 *
 * Kbuild includes this file before everything else (-include), so that the
 * modules can be written for the newest kernel. An entry provides a feature of that
 * kernel on older ones and says when it can be removed. A difference that cannot be hidden
 * becomes a macro that is named after its effect. Oldest kernel 6.1, tested up to 7.2.
 */
#ifndef LBE_COMPAT_H
#define LBE_COMPAT_H

#include <linux/types.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "lbe needs Linux 6.1 or newer"
#endif

/* A kernel newer than any that this was built and run on. It may work; if it does not, start
 * here.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#pragma message("lbe is tested up to Linux 7.2; this kernel is newer")
#endif

/* The release, defined by the build (git describe --dirty, or the VERSION file) */
#ifndef LBE_VERSION
#define LBE_VERSION "unknown"
#endif

/*
 * tcp_congestion_ops: 7.1 moved CA_EVENT_TX_START from cwnd_event to a callback
 * of its own. A module uses LBE_DEFINE_TX_START(name, tx_start) at file scope and
 * LBE_TX_START(name, tx_start) in its table; a test calls it by LBE_CALL_TX_START(ops,
 * sk). Needed until 7.1 is the oldest kernel.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define LBE_DEFINE_TX_START(name, tx_start)
#define LBE_TX_START(name, tx_start)	.cwnd_event_tx_start = tx_start
#define LBE_CALL_TX_START(ops, sk)	((ops)->cwnd_event_tx_start(sk))
#else
#define LBE_DEFINE_TX_START(name, tx_start)				\
static void name(struct sock *sk, enum tcp_ca_event ev)			\
{									\
	if (ev == CA_EVENT_TX_START)					\
		tx_start(sk);						\
}
#define LBE_TX_START(name, tx_start)	.cwnd_event = name
#define LBE_CALL_TX_START(ops, sk)	((ops)->cwnd_event(sk, CA_EVENT_TX_START))
#endif

/*
 * cong_control takes the ACK's number and flags from 6.10 on, and in stable
 * releases of older series too, so the type of the table decides and not the version. A
 * module uses LBE_DEFINE_CONG_CONTROL(name, control) at file scope, with a control that
 * needs neither, and LBE_CONG_CONTROL(name) in its table. Needed until every series has
 * these arguments.
 */
#define LBE_DEFINE_CONG_CONTROL(name, control)				\
static void __maybe_unused name##_plain(struct sock *sk,		\
					const struct rate_sample *rs)	\
{									\
	control(sk, rs);						\
}									\
static void __maybe_unused name##_flags(struct sock *sk, u32 ack, int flag, \
					const struct rate_sample *rs)	\
{									\
	control(sk, rs);						\
}
#define LBE_CONG_CONTROL(name)						\
	.cong_control = __builtin_choose_expr(				\
		__builtin_types_compatible_p(				\
			typeof(((struct tcp_congestion_ops *)0)->cong_control), \
			void (*)(struct sock *, const struct rate_sample *)), \
		name##_plain, name##_flags)
/* A test calls it by LBE_CALL_CONG_CONTROL(ops, sk, rs). */
#define LBE_CALL_CONG_CONTROL(ops, sk, rs)				\
	__builtin_choose_expr(						\
		__builtin_types_compatible_p(				\
			typeof(((struct tcp_congestion_ops *)0)->cong_control), \
			void (*)(struct sock *, const struct rate_sample *)), \
		((void (*)(struct sock *, const struct rate_sample *))	\
			(void *)(ops)->cong_control)(sk, rs),		\
		((void (*)(struct sock *, u32, int, const struct rate_sample *)) \
			(void *)(ops)->cong_control)(sk, 0, 0, rs))

/* tcp_ecn_mode_any(): ECN was negotiated, of whatever kind. Before 6.15 there was one
 * kind, and a flag for it.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define tcp_ecn_mode_any(tp)		((tp)->ecn_flags & TCP_ECN_OK)
#endif

/* Timers: timer_container_of() was from_timer() before 6.16. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define timer_container_of(var, callback_timer, timer_fieldname)	\
	container_of(callback_timer, typeof(*(var)), timer_fieldname)
#endif

/* hrtimer_setup() takes the callback too from 6.13 on. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define hrtimer_setup(timer, callback, clock, mode)			\
do {									\
	hrtimer_init(timer, clock, mode);				\
	(timer)->function = callback;					\
} while (0)
#endif

/* Formatted extack texts came in 6.2. Before that the text must outlive the
 * request: each place has one buffer, which another refusal at the same moment may
 * overwrite (the length is bounded, the last byte is always NUL).
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define NL_SET_ERR_MSG_FMT_MOD(extack, fmt, args...)			\
do {									\
	static char __text[128];					\
	struct netlink_ext_ack *__extack = (extack);			\
									\
	if (__extack) {							\
		scnprintf(__text, sizeof(__text),			\
			  KBUILD_MODNAME ": " fmt, ##args);		\
		__extack->_msg = __text;				\
	}								\
} while (0)
#endif

/* Queueing disciplines: MODULE_ALIAS_NET_SCH() came in 6.9. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("sch_" id)
#endif

/*
 * The length of a queueing discipline and the reasons for its drops: 7.1 has functions
 * for both, and stable releases of older series have some of them (6.12.117). The names
 * here have the prefix lbe_, so that no macro breaks a declaration of the kernel. They are
 * macros, so that this file need not include the headers of queueing disciplines.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define lbe_qdisc_qlen_inc(sch)		((void)(sch)->q.qlen++)
#define lbe_qdisc_qlen_dec(sch)		((void)(sch)->q.qlen--)
#define lbe_qstats_backlog_add(sch, len) ((void)((sch)->qstats.backlog += (len)))
#define lbe_qdisc_drop_reason(skb, sch, to_free, reason)		\
	qdisc_drop(skb, sch, to_free)
#else
#define lbe_qdisc_qlen_inc(sch)		qdisc_qlen_inc(sch)
#define lbe_qdisc_qlen_dec(sch)		qdisc_qlen_dec(sch)
#define lbe_qstats_backlog_add(sch, len) qstats_backlog_add(sch, len)
#define lbe_qdisc_drop_reason		qdisc_drop_reason
#endif

/* skb_gso_segment() moved from linux/netdevice.h to a header of its own in 6.5. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define LBE_GSO_HEADER	"net/gso.h"
#else
#define LBE_GSO_HEADER	"linux/netdevice.h"
#endif

/* Sysctl handlers take a const table from 6.11 on; tables are registered with their size
 * from 6.6 on (before that an empty entry ends them).
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define LBE_CTL_CONST	const
#else
#define LBE_CTL_CONST
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size)			\
	register_net_sysctl(net, path, table)
#endif

/*
 * __tcp_send_ack() takes header flags from 6.15 on, and in stable releases of
 * older series too, so its type decides and not the version. Needed until every series
 * has them.
 */
#define lbe_tcp_send_ack(sk, rcv_nxt)					\
	__builtin_choose_expr(						\
		__builtin_types_compatible_p(typeof(__tcp_send_ack),	\
					     void(struct sock *, u32)),	\
		__lbe_send_ack, __lbe_send_ack_flags)(__tcp_send_ack, sk, rcv_nxt)

struct sock;

static inline void __lbe_send_ack(void *send_ack, struct sock *sk, u32 rcv_nxt)
{
	((void (*)(struct sock *, u32))send_ack)(sk, rcv_nxt);
}

static inline void __lbe_send_ack_flags(void *send_ack, struct sock *sk, u32 rcv_nxt)
{
	((void (*)(struct sock *, u32, u16))send_ack)(sk, rcv_nxt, 0);
}

/* get_unaligned_*() moved from asm/ to linux/ in 6.12; included here for all files. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif /* LBE_COMPAT_H */
