// SPDX-License-Identifier: GPL-2.0
/*
 * lbe_ns2 - the TCPs of ns-2: Reno, NewReno, Sack1, and Sack1 with the LowPri laws
 *
 * Four of the papers measured with ns-2's TCPs of about 2003. A kernel's sysctls
 * take RACK, tail loss probes, F-RTO and DSACK's undo away; this takes the rest.
 * The experiment ns2_tcp compares each with ns-2 itself in the same scenario.
 * For testbeds, not for use.
 *
 *	ns2_reno       Reno as in 1990: fast recovery ends with the first new ACK
 *	ns2_newreno    ends when all is acknowledged that was sent before the drop
 *	ns2_sack       Sack1; halves its window on a drop
 *	ns2_<variant>  Sack1 with the law of that name in tcp_lowpri/lowpri_law.h
 *
 * The first two are for connections without SACK (net.ipv4.tcp_sack=0), all of
 * them for tcp_recovery=0, tcp_early_retrans=0, tcp_frto=0.
 *
 * What is ns-2's (tcp.cc), and not the kernel's, in all of them:
 *  - The window grows by one (or 1/window) for each ACK that advances, however
 *    much it acknowledges.
 *  - Nothing is ever undone.
 *  - rto_min_ms=N: the time-out is the larger of N and srtt + 4 rttvar, as
 *    minrto_ has it; a kernel's least time-out comes on top of srtt.
 *
 * Reno and NewReno (tcp-reno.cc, tcp-newreno.cc):
 *  - A drop sets the window to half at once; each duplicate ACK lets a packet out.
 *  - Until something is acknowledged that was sent after the last drop or
 *    time-out, three duplicate ACKs cut nothing and send nothing again
 *    (bugFix_), and none lets a packet out but the first two
 *    (exitFastRetrans_, singledup_). So Reno, which stops recovering at the
 *    first new ACK, waits for its time-out whenever a window lost more than one
 *    packet or two.
 *  - NewReno restarts the timer for the first partial ACK alone
 *    (newreno_changes1_), and leaves recovery with no more than what is
 *    outstanding (exit_recovery_fix_).
 *
 * Sack1 (tcp-sack1.cc):
 *  - No PRR. A drop sets the window at once. What is on its way is counted down
 *    by one for each packet that arrives, by two where an ACK advances without
 *    ending recovery, and up by one for each packet sent. Lost packets count
 *    until then: if half the window is lost, the sender waits for its time-out.
 *  - Each time-out cuts ssthresh from the window of that moment: again if
 *    recovery was on, and to the least after the second in a row.
 *  - limited_transmit=0: nothing new is sent for the first two duplicate ACKs,
 *    so a loss in a window of three packets or fewer always costs a time-out
 *    (ns-2's default until November 2001).
 *
 * What stays the kernel's: Sack1's scoreboard survives a time-out (ns-2 sends
 * again what the receiver holds), delayed ACKs, the handshake.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "lowpri_law.h"

/* Duplicate ACKs that prove a loss, and a number that proves none. */
#define NS2_DUPACKS	3U
#define NS2_NEVER	1000000
/* ns-2's least ssthresh, packets. */
#define NS2_SSTHRESH_MIN	2U
/*
 * A timer of 504 to 4031 jiffies is rounded up to the next multiple of 64
 * (kernel/time/timer.c): half of that late on the mean, which ns-2's is not.
 */
#define NS2_LATE_FROM	504
#define NS2_LATE	32

enum ns2_recovery { NS2_SACK, NS2_RENO, NS2_NEWRENO };

/**
 * struct ns2 - state of a flow; written under the socket lock
 * @window_pkts: ns-2's window; the kernel's follows what recovery lets out
 * @drop_target_pkts: window that the last drop or time-out left
 * @limit_pkts: window to grow back to; 0: the law does not grow back
 * @part_q16: part of a packet that slow start earned, Q16, under 1
 * @pipe_pkts: packets on their way when recovery began, less those that have
 *	arrived since; what recovery has sent comes on top
 * @grown: packets acknowledged towards the next one of the window, under
 *	window_pkts; kept here because the kernel forgets it as recovery begins
 * @rest_q16: part of a packet that the cut left beyond drop_target_pkts, Q16
 * @una: snd_una at the last ACK
 * @recover: (Reno, NewReno) snd_nxt at the last drop or time-out
 * @deadline: (NewReno) jiffy at which the timer fires that a partial ACK leaves
 *	alone
 * @recovering: fast recovery is on
 * @held: the kernel's window is kept down while duplicate ACKs come in
 * @cut_once: recover is meant
 * @partial: (NewReno) this recovery had its first partial ACK
 */
struct ns2 {
	u32 window_pkts;
	u32 drop_target_pkts;
	u32 limit_pkts;
	u32 part_q16;
	s32 pipe_pkts;
	u32 grown;
	u32 rest_q16;
	u32 una;
	u32 recover;
	u32 deadline;
	u8 recovering:1,
	   held:1,
	   cut_once:1,
	   partial:1;
};

static bool limited_transmit = true;
module_param(limited_transmit, bool, 0444);
MODULE_PARM_DESC(limited_transmit, "send new data for the first two duplicate ACKs (Y)");

static unsigned int rto_min_ms;
module_param(rto_min_ms, uint, 0444);
MODULE_PARM_DESC(rto_min_ms, "least time-out as ns-2 reckons it, ms; 0: the kernel's own (0)");

/* Halving, by the three ways to recover, in the order of enum ns2_recovery. */
static const struct lowpri_law ns2_halving[] = {
	LOWPRI_ROW_F("sack", LOWPRI_TIMES, 50),
	LOWPRI_ROW_F("reno", LOWPRI_TIMES, 50),
	LOWPRI_ROW_F("newreno", LOWPRI_TIMES, 50),
};

/* These, then one for each row of lowpri_laws, in its order. */
static struct tcp_congestion_ops ns2_ops[ARRAY_SIZE(ns2_halving) + ARRAY_SIZE(lowpri_laws)];
static unsigned int ns2_registered;

static const struct lowpri_law *ns2_law(unsigned int index)
{
	return index < ARRAY_SIZE(ns2_halving) ? &ns2_halving[index] :
						 &lowpri_laws[index - ARRAY_SIZE(ns2_halving)];
}

static unsigned int ns2_index(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_ops - ns2_ops;
}

static const struct lowpri_law *ns2_law_of(const struct sock *sk)
{
	return ns2_law(ns2_index(sk));
}

static enum ns2_recovery ns2_recovery_of(const struct sock *sk)
{
	unsigned int index = ns2_index(sk);

	return index < ARRAY_SIZE(ns2_halving) ? (enum ns2_recovery)index : NS2_SACK;
}

/* What a law leaves of a window; ns-2 leaves one packet at least, our own protocols two. */
static u64 ns2_left_q16(const struct lowpri_law *law, u32 window_pkts)
{
	return max_t(u64, lowpri_rule_q16(law, window_pkts), LBE_ONE_Q16);
}

/* A drop or a time-out: the law's window, and ssthresh to grow back to. */
static void ns2_cut(struct sock *sk)
{
	const struct lowpri_law *law = ns2_law_of(sk);
	struct ns2 *ca = inet_csk_ca(sk);
	u64 target_q16 = ns2_left_q16(law, ca->window_pkts);
	u64 above_q16 = ns2_left_q16(law, ca->window_pkts + 1);

	/* ns-2's window has a fraction, half of which is left. */
	if (above_q16 > target_q16)
		target_q16 += div_u64((above_q16 - target_q16) * ca->grown, ca->window_pkts);
	ca->drop_target_pkts = (u32)(target_q16 >> 16);
	ca->rest_q16 = (u32)target_q16 & 0xffff;
	ca->limit_pkts = lowpri_limit_pkts(law, ca->window_pkts);
	ca->part_q16 = 0;
	ca->grown = 0;
}

/* Recovery is over: growth goes on from the fraction that the cut left. */
static void ns2_resume(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, ca->window_pkts);
	if (ca->window_pkts == ca->drop_target_pkts)
		ca->grown = (u32)(((u64)ca->rest_q16 * ca->window_pkts) >> 16);
	tp->snd_cwnd_cnt = ca->grown;
}

static u32 ns2_ssthresh_pkts(const struct ns2 *ca)
{
	return max3(ca->drop_target_pkts, ca->limit_pkts, NS2_SSTHRESH_MIN);
}

/* As recovery begins, and before some time-outs: see ns2_set_state(). */
static u32 ns2_ssthresh(struct sock *sk)
{
	struct ns2 *ca = inet_csk_ca(sk);

	return max(ca->drop_target_pkts, NS2_SSTHRESH_MIN);
}

/* Reno, NewReno: three duplicate ACKs. The kernel sends the first packet again. */
static void ns2_begin_reno_recovery(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ns2_cut(sk);
	ca->recovering = 1;
	ca->partial = 0;
	ca->recover = tp->snd_nxt;
	ca->cut_once = 1;
	ca->window_pkts = ca->drop_target_pkts;
	WRITE_ONCE(tp->snd_ssthresh, ns2_ssthresh_pkts(ca));
	/* Reno's recovery ends with the first byte that is acknowledged. */
	if (ns2_recovery_of(sk) == NS2_RENO)
		tp->high_seq = tp->snd_una + 1;
}

static void ns2_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ns2 *ca = inet_csk_ca(sk);

	if (new_state == TCP_CA_Recovery && ns2_recovery_of(sk) != NS2_SACK) {
		ns2_begin_reno_recovery(sk, ca);
		return;
	}
	if (new_state != TCP_CA_Loss)
		return;
	ns2_cut(sk);
	ca->recovering = 0;
	ca->held = 0;
	ca->window_pkts = 1;
	ca->recover = tp->snd_nxt;
	ca->cut_once = 1;
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

/* Reno, NewReno: duplicate ACKs while no second cut is allowed. */
static void ns2_hold_reno(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 out = limited_transmit ? min(tp->sacked_out, NS2_DUPACKS - 1) : 0;
	s32 window_pkts = (s32)(ca->window_pkts + out - tp->sacked_out);

	ca->held = 1;
	tcp_snd_cwnd_set(tp, max(window_pkts, 1));
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
	ns2_resume(sk, ca);
	WRITE_ONCE(tp->snd_ssthresh, ns2_ssthresh_pkts(ca));
}

/* Reno, NewReno: the kernel counts a packet less in flight for each duplicate ACK. */
static void ns2_end_reno_recovery(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->recovering = 0;
	if (ns2_recovery_of(sk) == NS2_NEWRENO)
		ca->window_pkts = min(ca->window_pkts, tp->packets_out + 1);
	ns2_resume(sk, ca);
}

/* By one packet in slow start, else by one window's part, for each ACK. */
static void ns2_grow(struct sock *sk, struct ns2 *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 acked = 1;

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
	ca->grown = min(tp->snd_cwnd_cnt, ca->window_pkts - 1);
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
		if (ns2_recovery_of(sk) == NS2_SACK)
			ns2_recover(sk, ca, arrived, advanced);
		else
			tcp_snd_cwnd_set(tp, ca->window_pkts);
		return;
	}
	if (ns2_recovery_of(sk) != NS2_SACK && !advanced && tp->sacked_out && ca->cut_once) {
		ns2_hold_reno(sk, ca);
		return;
	}
	if (state == TCP_CA_Disorder && !advanced && !limited_transmit) {
		ns2_hold(sk, ca);
		return;
	}
	if (ca->held)
		ns2_end_hold(sk, ca);
	if (ca->recovering && ns2_recovery_of(sk) == NS2_SACK)
		ns2_end_recovery(sk, ca);
	else if (ca->recovering)
		ns2_end_reno_recovery(sk, ca);
	else if (advanced && arrived && tcp_is_cwnd_limited(sk))
		ns2_grow(sk, ca);
}

/* Before the kernel looks for losses: no second cut for drops of before the last one. */
static void ns2_in_ack_event(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ns2 *ca = inet_csk_ca(sk);

	if (ns2_recovery_of(sk) == NS2_SACK)
		return;
	if (ca->cut_once && after(tp->snd_una, ca->recover))
		ca->cut_once = 0;
	tp->reordering = ca->cut_once ? NS2_NEVER : NS2_DUPACKS;
}

/* After the round trip of an ACK is known, before the timer is set by it. */
static void ns2_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ns2 *ca = inet_csk_ca(sk);
	u32 rto;
	s32 left;

	/* Backed off: until something is timed that was sent once. */
	if (rto_min_ms && tp->srtt_us && !icsk->icsk_backoff) {
		rto = clamp_t(u32, usecs_to_jiffies((tp->srtt_us >> 3) + tp->mdev_us),
			      msecs_to_jiffies(rto_min_ms), TCP_RTO_MAX);
		icsk->icsk_rto = rto >= NS2_LATE_FROM + NS2_LATE ? rto - NS2_LATE : rto;
	}
	if (ns2_recovery_of(sk) != NS2_NEWRENO || icsk->icsk_ca_state != TCP_CA_Recovery ||
	    !before(tp->snd_una, tp->high_seq))
		return;
	if (!ca->partial) {
		ca->partial = 1;
		ca->deadline = (u32)jiffies + icsk->icsk_rto;
		return;
	}
	left = ca->deadline - (u32)jiffies;
	icsk->icsk_rto = max(left, 1);
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
	if (rto_min_ms > 60000) {
		pr_err("lbe_ns2: rto_min_ms=%u: allowed are 0 to 60000\n", rto_min_ms);
		return -EINVAL;
	}
	while (ns2_registered < ARRAY_SIZE(ns2_ops)) {
		struct tcp_congestion_ops *ops = &ns2_ops[ns2_registered];

		ops->init = ns2_init;
		ops->ssthresh = ns2_ssthresh;
		ops->cong_control = NS2_CONG_CONTROL;
		ops->set_state = ns2_set_state;
		ops->undo_cwnd = ns2_undo_cwnd;
		ops->in_ack_event = ns2_in_ack_event;
		ops->pkts_acked = ns2_pkts_acked;
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
