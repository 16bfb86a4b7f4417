/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suite's congestion controls by delay do alike when a flow begins and ends, and
 * how a module registers its controls with the counters.
 *
 * One file of a module includes this header, and defines LBE_COUNTERS_FILE before that
 * (counters.h). The module then has the parameter "mark" (mark.h).
 */
#ifndef LBE_CONTROL_H
#define LBE_CONTROL_H

#include <linux/init.h>

#include <lbe/counters.h>
#include <lbe/mark.h>
#include <lbe/sender.h>

LBE_MARK_PARAM();

/* A flow begins. @paces: TCP is to pace it. Return: what lbe_control_end() is to be given. */
static u8 __maybe_unused lbe_control_begin(struct sock *sk, bool paces)
{
	if (paces)
		lbe_pacing_begin(sk);
	lbe_counters_join(sk);
	return READ_ONCE(mark) ? lbe_mark_set(sk) : 0;
}

/* Another control takes over: at once, and if this flow gave way, as on a new connection,
 * since all that is known of the path is that others were there.
 */
static void __maybe_unused lbe_control_end(struct sock *sk, bool paces, bool yielding,
					   u8 marked)
{
	lbe_counters_leave(sk, yielding);
	lbe_mark_clear(sk, marked);
	lbe_rest_cancel(sk);
	if (paces)
		lbe_pacing_end(sk);
	if (yielding)
		WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
}

#endif /* LBE_CONTROL_H */
