// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-LP: less-than-best-effort TCP by a threshold on one-way delay.
 *
 * The law, per ACK with a delay d (one way, relative; include/lbe/path_delay.h):
 *
 *	sd	 = (1 - gamma) sd + gamma d				gamma = 1/8
 *	indication if d > base + delta (full - base) for a round trip	delta = 0.15
 *
 *	   loss              indication: W/2         indication: W = 1
 *	LEARN ----> GROW +1/RTT ------------> INFER -------------> FLOOR <-+
 *	  Reno        ^  ^                      | 3 RTT              | | | | indication:
 *	              |  +----------------------+                    | | +-+ rest doubles
 *	              +--- 3 RTT and the rest without indication ----+ |
 *	   slow start +--- the same delay for 10 s: a longer path -----+
 *
 *	in INFER and FLOOR: no growth.   a loss: Reno.
 *
 * TCP sees congestion when the buffer overflows, and this flow sees it when 15 % of
 * the buffer is in use. It therefore yields before TCP has to, and uses what TCP
 * leaves.
 *
 * Source: A. Kuzmanovic, E. Knightly, "TCP-LP: a distributed algorithm for low
 * priority data transfer", INFOCOM 2003, sections III-A (indication), III-B
 * (policy, Figure 3), III-D (settings), IV-A (the ECN variant).
 *
 * lp goes by one-way delay, and by ECN marks too if ECN is in use. lp_ecn goes by the
 * router's ECN marks, or by delay if ECN was not agreed upon.
 *
 * Departures from the paper, and what each avoids:
 *  - an indication is a delay above the threshold for a whole round trip, not a
 *    smoothed one above it once (paper=1): clumped ACKs leave bursts in a queue
 *    that is empty in between; a TCP flow's queue stands. One sample is enough
 *    where the buffer holds few packets and ACKs are held up (lp_few());
 *  - the delay excludes the reverse path's queue and the time for which the receiver
 *    delays an ACK (owd.h);
 *  - full is the delay at losses, not the largest seen: one stall would lift the
 *    threshold for life. Random losses teach nothing (path_delay.h);
 *  - the threshold is at least 1 ms and a packet's time above base: noise;
 *  - data sent before a reaction gives no indication: it met the queue to which the
 *    flow has reacted already;
 *  - a second indication that our own halved window explains only halves the window
 *    again: this happens in deep buffers, after slow start;
 *  - W = 1 is two packets every other round trip: receivers hold the ACK of one,
 *    which looks like a queue; then up to every ninth, since one packet a round
 *    trip is 6 % of 1.5 Mbit/s;
 *  - at W = 1 a constant delay is taken for a longer path;
 *  - a loss at W = 1, or from a window of four packets or fewer, is an indication:
 *    many flows with such windows keep the queue full and never see base. Until the
 *    window is larger, rests stay as long as the last one;
 *  - a reduction sets ssthresh too, since Reno would otherwise return by slow start;
 *    in Recovery and Loss the kernel alone sets the window.
 *
 * lp does not act before the first loss (the paper's rule), unless its window did
 * not limit it for 10 s. It does not give way if the buffer holds less than the noise,
 * or behind queues that isolate flows (fq_codel), which have to go by the mark.
 *
 * State is in the socket, counters in the network namespace.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include <lbe/param.h>

#define LBE_COUNTERS_FILE	"lbe_lp"
#include <lbe/control.h>

#include "lp.h"

#define CREATE_TRACE_POINTS
#include "lp_trace.h"

/* sch_fq drops what is to leave more than 10 s from now (its horizon), us. */
#define LP_REST_MAX_US		(8 * USEC_PER_SEC)

/* Parameters: for sockets that start to use lp from then on. */
LBE_PARAM(delta_permille, 150, 10, 900,
	  "threshold's place between base and full delay, per mille");

static bool paper;
module_param(paper, bool, 0644);
MODULE_PARM_DESC(paper, "the paper's literal rule: smoothed delay above the threshold, once (N)");

/* ---- what the socket tells ------------------------------------------------- */

/* Does the window belong to us, and not to the repair of a loss? */
static bool tcp_lp_owns_window(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state <= TCP_CA_Disorder;
}

/* Packets in use, before this ACK: the window, or less if the flow has less to
 * send. Halving what is not used would change nothing.
 */
static u32 tcp_lp_window_pkts(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (tcp_is_cwnd_limited(sk))
		return cwnd;
	return min(cwnd, max(tp->max_packets_out, tcp_packets_in_flight(tp)));
}

/* ---- the window ------------------------------------------------------------ */

/* Set the window and leave slow start, so that growth from here is additive. */
static void tcp_lp_set_window(struct tcp_sock *tp, u32 cwnd)
{
	tcp_snd_cwnd_set(tp, cwnd);
	WRITE_ONCE(tp->snd_ssthresh, max(cwnd, 2U));
	tp->snd_cwnd_cnt = 0;
}

/* The window that an indication leaves; the caller has it applied. */
static u32 tcp_lp_indication(struct sock *sk, enum lp_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);
	bool yielding = lp->inference;
	u32 cwnd;

	cwnd = lp_react(lp, event, tcp_lp_window_pkts(sk), tp->snd_nxt,
			lbe_srtt_us(tp), lbe_now_ms(sk));
	lbe_counters_ack(sk, yielding, true, 0);
	trace_lp_state(sk, lp, event, tcp_snd_cwnd(tp), cwnd);
	return cwnd;
}

/* The inference phase is over, as far as the counters go. */
static void tcp_lp_stops_yielding(struct sock *sk, enum lp_event event)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	lbe_counters_ack(sk, true, false, 0);
	trace_lp_state(sk, inet_csk_ca(sk), event, tcp_snd_cwnd(tp),
		       tcp_snd_cwnd(tp));
}

static void tcp_lp_rest(struct sock *sk)
{
	const struct lp *lp = inet_csk_ca(sk);
	u64 rest_us = (u64)lp->rest_rtts * lbe_srtt_us(tcp_sk(sk));

	lbe_rest(sk, min_t(u64, rest_us, LP_REST_MAX_US));
}

/* At the floor: when nothing is in flight, two packets go after a rest. */
static void tcp_lp_schedule_pair(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_packets_in_flight(tp)) {
		tcp_lp_set_window(tp, 1);
		return;
	}
	tcp_lp_set_window(tp, 2);
	tcp_lp_rest(sk);
}

/* ---- the steps of an ACK --------------------------------------------------- */

static void tcp_lp_end_inference(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);

	if (!lp_inference_over(lp, lbe_now_ms(sk)))
		return;
	if (tcp_snd_cwnd(tp) < 2 && tcp_lp_owns_window(sk))
		tcp_lp_set_window(tp, 2);
	tcp_lp_stops_yielding(sk, LP_OVER);
}

/* A longer path: the indications that led to the floor were false, and are undone;
 * by slow start, since the window was another path's.
 */
static void tcp_lp_resume(struct sock *sk)
{
	const struct lp *lp = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_lp_set_window(tp, 2);
	WRITE_ONCE(tp->snd_ssthresh, max_t(u32, lp->before_pkts, 2));
	tcp_lp_stops_yielding(sk, LP_LONGER_PATH);
}

static void tcp_lp_heard(struct sock *sk, const struct lp_ack *ack)
{
	struct lp *lp = inet_csk_ca(sk);

	switch (lp_sample(lp, ack)) {
	case LP_DELAY:
		if (tcp_lp_owns_window(sk))
			tcp_lp_set_window(tcp_sk(sk), tcp_lp_indication(sk, LP_DELAY));
		break;
	case LP_LONGER_PATH:
		if (tcp_lp_owns_window(sk))
			tcp_lp_resume(sk);
		break;
	default:
		break;
	}
}

static void tcp_lp_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);
	struct lp_ack ack = {
		.snd_una = tp->snd_una,
		.snd_nxt = tp->snd_nxt,
		.now_ms = lbe_now_ms(sk),
		.lone = lbe_ack_is_lone(sk, sample),
	};
	bool learnt = lp_learnt(lp);

	if (!lp->on)
		return;
	lbe_counters_ack(sk, lp->inference, lp->inference,
			 sample->pkts_acked * tp->mss_cache);
	tcp_lp_end_inference(sk);
	lp_limited(lp, tcp_is_cwnd_limited(sk), ack.now_ms);
	if (!learnt && lp_learnt(lp))
		trace_lp_state(sk, lp, LP_LEARNT, tcp_snd_cwnd(tp), tcp_snd_cwnd(tp));
	if (lbe_hears(sk, &lp->path, false, sample, &ack.path))
		tcp_lp_heard(sk, &ack);
}

static void tcp_lp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct lp *lp = inet_csk_ca(sk);

	/* A time-out is recovered from as Reno does, whatever the delay was. */
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Loss)
		tcp_reno_cong_avoid(sk, ack, acked);
	else if (lp->floor)
		tcp_lp_schedule_pair(sk);
	else if (lp_may_grow(lp))
		tcp_reno_cong_avoid(sk, ack, acked);
}

/* ---- losses, marks, idle periods ------------------------------------------- */

static void tcp_lp_in_ack_event(struct sock *sk, u32 flags)
{
	struct lp *lp = inet_csk_ca(sk);

	if (lp->on)
		lp->ece = !!(flags & CA_ACK_ECE);
}

/* The window for the reduction that begins: by a mark or by a loss. */
static u32 tcp_lp_ssthresh(struct sock *sk)
{
	const struct lp *lp = inet_csk_ca(sk);
	u32 cwnd;

	if (!lp->on || !lp->ece || inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR)
		return tcp_reno_ssthresh(sk);
	cwnd = tcp_lp_indication(sk, LP_ECE);
	/* A packet has to go to end the reduction; it rests like a pair. */
	if (lp->floor)
		tcp_lp_rest(sk);
	return cwnd;
}

static u32 tcp_lp_undo_cwnd(struct sock *sk)
{
	struct lp *lp = inet_csk_ca(sk);

	if (lp->on && lp_undo(lp))
		tcp_lp_stops_yielding(sk, LP_OVER);
	return tcp_reno_undo_cwnd(sk);
}

/* A reduction that no mark asked for is a loss: in Recovery and Loss, in CWR of a packet
 * that the sender's own device did not take, or whose tail loss probe was acknowledged.
 */
static void tcp_lp_set_state(struct sock *sk, u8 new_state)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);
	bool learnt = lp_learnt(lp);

	if (!lp->on)
		return;
	if (new_state >= TCP_CA_Recovery || (new_state == TCP_CA_CWR && !lp->ece)) {
		lbe_delay_loss(&lp->path);
		lbe_delay_lost(&lp->path, lp_sd_us(lp));
		lp->losing = 1;
		lp->undone = 0;
	}
	if (new_state >= TCP_CA_CWR || !lp->losing)
		return;
	lp->losing = 0;
	if (lp_repaired(lp, tp->prior_cwnd, tp->snd_nxt))
		tcp_lp_indication(sk, LP_LOSS);
	if (!learnt && lp_learnt(lp))
		trace_lp_state(sk, lp, LP_LEARNT, tcp_snd_cwnd(tp), tcp_snd_cwnd(tp));
}

/* The first packet after a pause goes out: what came before it is old. */
static void tcp_lp_tx_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);

	if (lp->on && !lp->floor &&
	    tcp_jiffies32 - tp->lsndtime > inet_csk(sk)->icsk_rto)
		lp_mark(lp, tp->snd_nxt);
}

/* ---- control --------------------------------------------------------------- */

static void __tcp_lp_init(struct sock *sk, bool marks)
{
	struct lp *lp = inet_csk_ca(sk);

	lp_init(lp, READ_ONCE(delta_permille.value), READ_ONCE(paper), marks,
		lbe_now_ms(sk));
	lp->mark = lbe_control_begin(sk, true);
}

static void tcp_lp_init(struct sock *sk)
{
	__tcp_lp_init(sk, false);
}

static struct tcp_congestion_ops tcp_lp_no_ecn;

/* Without ECN agreed upon no packet may say that it is capable, though the
 * handshake did by our flag: routers would mark instead of dropping, and nobody
 * would echo the mark. In SYN_SENT the socket knows only what it has asked for.
 */
static void tcp_lp_ecn_init(struct sock *sk)
{
	bool agreed = sk->sk_state != TCP_SYN_SENT && tcp_ecn_mode_any(tcp_sk(sk));

	__tcp_lp_init(sk, agreed);
	if (agreed || sk->sk_state == TCP_LISTEN || sk->sk_state == TCP_CLOSE)
		return;
	inet_csk(sk)->icsk_ca_ops = &tcp_lp_no_ecn;
	INET_ECN_dontxmit(sk);
}

/* May come twice, or without init. */
static void tcp_lp_release(struct sock *sk)
{
	struct lp *lp = inet_csk_ca(sk);

	if (!lp->on)
		return;
	lbe_control_end(sk, true, lp->inference, lp->mark);
	lp->on = 0;
}

/* Without the socket's lock. */
static size_t tcp_lp_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	const struct lp *lp = inet_csk_ca(sk);

	return lbe_bbr_info(sk, tcp_lp_get_info, lbe_delay_base_us(&lp->path),
			    lp->floor ? READ_ONCE(lp->rest_rtts) : 0, ext, attr, info);
}

LBE_DEFINE_TX_START(tcp_lp_cwnd_event, tcp_lp_tx_start)

#define TCP_LP_OPS(_name, _init, _flags) {				\
	.ssthresh	= tcp_lp_ssthresh,				\
	.undo_cwnd	= tcp_lp_undo_cwnd,				\
	.cong_avoid	= tcp_lp_cong_avoid,				\
	.pkts_acked	= tcp_lp_pkts_acked,				\
	.in_ack_event	= tcp_lp_in_ack_event,				\
	.set_state	= tcp_lp_set_state,				\
	.get_info	= tcp_lp_get_info,				\
	.init		= _init,					\
	.release	= tcp_lp_release,				\
	.flags		= TCP_CONG_NON_RESTRICTED | (_flags),		\
	.owner		= THIS_MODULE,					\
	.name		= _name,					\
	LBE_TX_START(tcp_lp_cwnd_event, tcp_lp_tx_start)		\
}

static struct tcp_congestion_ops tcp_lp __read_mostly =
	TCP_LP_OPS("lp", tcp_lp_init, 0);

static struct tcp_congestion_ops tcp_lp_ecn __read_mostly =
	TCP_LP_OPS("lp_ecn", tcp_lp_ecn_init, TCP_CONG_NEEDS_ECN);

/* What lp_ecn is where ECN was not agreed upon; not registered. */
static struct tcp_congestion_ops tcp_lp_no_ecn __read_mostly =
	TCP_LP_OPS("lp_ecn", tcp_lp_init, 0);

static struct tcp_congestion_ops *const tcp_lp_controls[] = { &tcp_lp, &tcp_lp_ecn };

static int __init tcp_lp_register(void)
{
	BUILD_BUG_ON(sizeof(struct lp) > ICSK_CA_PRIV_SIZE);
	return lbe_register(tcp_lp_controls, ARRAY_SIZE(tcp_lp_controls));
}

static void __exit tcp_lp_unregister(void)
{
	lbe_unregister(tcp_lp_controls, ARRAY_SIZE(tcp_lp_controls));
}

module_init(tcp_lp_register);
module_exit(tcp_lp_unregister);

MODULE_AUTHOR("LBE transport suite");
MODULE_DESCRIPTION("TCP-LP: less-than-best-effort TCP by one-way delay (lp, lp_ecn)");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
