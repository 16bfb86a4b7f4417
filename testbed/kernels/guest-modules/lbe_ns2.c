// SPDX-License-Identifier: GPL-2.0
/*
 * lbe_ns2 - the LowPri laws and Reno's with the loss recovery of ns-2
 *
 * The paper on LowPri compares its protocols with ns-2's Sack1 of about 2003. A
 * kernel's sysctls take RACK, tail loss probes, F-RTO and DSACK's undo away;
 * this takes the rest, so that a gap that the paper saw and today's kernel does
 * not show can be looked for without them. For testbeds, not for use.
 *
 *	ns2_sack       halves its window on a drop
 *	ns2_<variant>  the law of that name in tcp_lowpri/lowpri_law.h
 *
 * What is ns-2's (tcp-sack1.cc, tcp.cc), and not the kernel's:
 *  - No PRR. A drop sets the window at once. What is on its way is counted down
 *    by one for each packet that arrives, by two where an ACK advances without
 *    ending recovery, and up by one for each packet sent. Lost packets count
 *    until then: if half the window is lost, the sender waits for its time-out.
 *  - Each time-out cuts ssthresh from the window of that moment: again if
 *    recovery was on, and to the least after the second in a row.
 *  - limited_transmit=0: nothing new is sent for the first two duplicate ACKs,
 *    so a loss in a window of three packets or fewer always costs a time-out
 *    (ns-2's default until November 2001).
 *  - Nothing is ever undone.
 *
 * What stays the kernel's: the scoreboard survives a time-out (ns-2 sends again
 * what the receiver holds), delayed ACKs, the timer's estimate. The least
 * time-out (ns-2: 1 s for some years until October 2004) is a sysctl.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "lowpri_law.h"

/**
 * struct ns2 - state of a flow; written under the socket lock
 * @window_pkts: ns-2's window; the kernel's follows what recovery lets out
 * @drop_target_pkts: window that the last drop or time-out left
 * @limit_pkts: window to grow back to; 0: the law does not grow back
 * @part_q16: part of a packet that slow start earned, Q16, under 1
 * @pipe_pkts: packets on their way when recovery began, less those that have
 *	arrived since; what recovery has sent comes on top
 * @una: snd_una at the last ACK
 * @recovering: fast recovery is on
 * @held: the kernel's window is kept down while duplicate ACKs come in
 */
struct ns2 {
	u32 window_pkts;
	u32 drop_target_pkts;
	u32 limit_pkts;
	u32 part_q16;
	s32 pipe_pkts;
	u32 una;
	u8 recovering:1,
	   held:1;
};

static bool limited_transmit = true;
module_param(limited_transmit, bool, 0444);
MODULE_PARM_DESC(limited_transmit, "send new data for the first two duplicate ACKs (Y)");

static const struct lowpri_law ns2_sack = LOWPRI_ROW_F("sack", LOWPRI_TIMES, 50);

/* Reno's, then one for each row of lowpri_laws, in its order. */
static struct tcp_congestion_ops ns2_ops[1 + ARRAY_SIZE(lowpri_laws)];
static unsigned int ns2_registered;

static const struct lowpri_law *ns2_law(unsigned int index)
{
	return index ? &lowpri_laws[index - 1] : &ns2_sack;
}

static const struct lowpri_law *ns2_law_of(const struct sock *sk)
{
	return ns2_law(inet_csk(sk)->icsk_ca_ops - ns2_ops);
}

/* A drop or a time-out: the law's window, and ssthresh to grow back to. */
static void ns2_cut(struct sock *sk)
{
	const struct lowpri_law *law = ns2_law_of(sk);
	struct ns2 *ca = inet_csk_ca(sk);

	ca->drop_target_pkts = (u32)(lowpri_target_q16(law, ca->window_pkts) >> 16);
	ca->limit_pkts = lowpri_limit_pkts(law, ca->window_pkts);
	ca->part_q16 = 0;
}

static u32 ns2_ssthresh_pkts(const struct ns2 *ca)
{
	return max(ca->drop_target_pkts, ca->limit_pkts);
}

/* As recovery begins, and before some time-outs: see ns2_set_state(). */
static u32 ns2_ssthresh(struct sock *sk)
{
	struct ns2 *ca = inet_csk_ca(sk);

	return ca->drop_target_pkts;
}

static void ns2_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ns2 *ca = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	ns2_cut(sk);
	ca->recovering = 0;
	ca->held = 0;
	ca->window_pkts = 1;
	WRITE_ONCE(tp->snd_ssthresh, ns2_ssthresh_pkts(ca));
}

static void ns2_begin_recovery(struct sock *sk, struct ns2 *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	ns2_cut(sk);
	ca->recovering = 1;
	ca->held = 0;
	ca->window_pkts = ca->drop_target_pkts;
	/* The first retransmission is not counted, but prr_out will have it. */
	ca->pipe_pkts = (s32)(tp->packets_out - tp->sacked_out) - 1;
}

static void ns2_recover(struct sock *sk, struct ns2 *ca, u32 arrived, bool advanced)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s32 room;

	if (!ca->recovering)
		ns2_begin_recovery(sk, ca);
	else
		ca->pipe_pkts -= (s32)arrived + advanced;
	room = (s32)ca->window_pkts - (ca->pipe_pkts + (s32)tp->prr_out);
	room = max_t(s32, room, !tp->prr_out);
	tcp_snd_cwnd_set(tp, max_t(u32, tcp_packets_in_flight(tp) + max(room, 0), 1));
}

/* Duplicate ACKs, too few of them for recovery. */
static void ns2_hold(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->held = 1;
	tcp_snd_cwnd_set(tp, max_t(u32, tcp_packets_in_flight(tp), 1));
}

static void ns2_end_hold(struct sock *sk, struct ns2 *ca)
{
	ca->held = 0;
	tcp_snd_cwnd_set(tcp_sk(sk), ca->window_pkts);
}

static void ns2_end_recovery(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->recovering = 0;
	tcp_snd_cwnd_set(tp, ca->window_pkts);
	tp->snd_cwnd_cnt = 0;
	WRITE_ONCE(tp->snd_ssthresh, ns2_ssthresh_pkts(ca));
}

static void ns2_grow(struct sock *sk, struct ns2 *ca, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_slow_start(tp)) {
		struct lowpri_growth g = {
			.cwnd = tcp_snd_cwnd(tp),
			.part_q16 = ca->part_q16,
			.acked = acked,
		};

		lowpri_slow_start(ns2_law_of(sk), &g, ca->drop_target_pkts, tp->snd_ssthresh);
		ca->part_q16 = g.part_q16;
		tcp_snd_cwnd_set(tp, g.cwnd);
		acked = g.acked;
	}
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
	ca->window_pkts = tcp_snd_cwnd(tp);
}

/* Every ACK, in the place of PRR and growth. */
static void ns2_cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ns2 *ca = inet_csk_ca(sk);
	bool advanced = tp->snd_una != ca->una;
	u32 arrived = rs->acked_sacked > 0 ? rs->acked_sacked : 0;
	u8 state = inet_csk(sk)->icsk_ca_state;

	ca->una = tp->snd_una;
	if (state == TCP_CA_Recovery || state == TCP_CA_CWR) {
		ns2_recover(sk, ca, arrived, advanced);
		return;
	}
	if (state == TCP_CA_Disorder && !advanced && !limited_transmit) {
		ns2_hold(sk, ca);
		return;
	}
	if (ca->held)
		ns2_end_hold(sk, ca);
	if (ca->recovering)
		ns2_end_recovery(sk, ca);
	else if (advanced && arrived && tcp_is_cwnd_limited(sk))
		ns2_grow(sk, ca, arrived);
}

static void ns2_cong_control_of_6_10(struct sock *sk, u32 ack, int flag,
				     const struct rate_sample *rs)
{
	ns2_cong_control(sk, rs);
}

/* 6.10 added two arguments: the callback's type tells. */
#define NS2_CONG_CONTROL							\
	__builtin_choose_expr(							\
		__builtin_types_compatible_p(					\
			typeof_member(struct tcp_congestion_ops, cong_control),	\
			void (*)(struct sock *, const struct rate_sample *)),	\
		ns2_cong_control, ns2_cong_control_of_6_10)

static u32 ns2_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void ns2_init(struct sock *sk)
{
	struct ns2 *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->window_pkts = tcp_snd_cwnd(tcp_sk(sk));
	ca->drop_target_pkts = LOWPRI_NO_DROP;
	ca->una = tcp_sk(sk)->snd_una;
}

static void ns2_unregister(void)
{
	while (ns2_registered)
		tcp_unregister_congestion_control(&ns2_ops[--ns2_registered]);
}

static int __init ns2_module_init(void)
{
	int err = 0;

	BUILD_BUG_ON(sizeof(struct ns2) > ICSK_CA_PRIV_SIZE);
	while (ns2_registered < ARRAY_SIZE(ns2_ops)) {
		struct tcp_congestion_ops *ops = &ns2_ops[ns2_registered];

		ops->init = ns2_init;
		ops->ssthresh = ns2_ssthresh;
		ops->cong_control = NS2_CONG_CONTROL;
		ops->set_state = ns2_set_state;
		ops->undo_cwnd = ns2_undo_cwnd;
		ops->owner = THIS_MODULE;
		snprintf(ops->name, sizeof(ops->name), "ns2_%s", ns2_law(ns2_registered)->name);
		err = tcp_register_congestion_control(ops);
		if (err) {
			ns2_unregister();
			break;
		}
		ns2_registered++;
	}
	return err;
}

static void __exit ns2_module_exit(void)
{
	ns2_unregister();
}

module_init(ns2_module_init);
module_exit(ns2_module_exit);

MODULE_DESCRIPTION("Loss recovery of ns-2, for testbeds");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
