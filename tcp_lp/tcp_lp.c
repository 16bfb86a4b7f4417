// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-LP: less-than-best-effort TCP with a threshold on one-way delay.
 *
 * The law, for each ACK with a delay d (one way, relative; include/lbe/path_delay.h):
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
 * A TCP flow detects congestion when the buffer overflows, this flow when 15 % of the
 * buffer is in use. It therefore reduces its rate before TCP flows do, and uses the
 * capacity that they leave.
 *
 * Source: A. Kuzmanovic, E. Knightly, "TCP-LP: a distributed algorithm for low
 * priority data transfer", INFOCOM 2003, sections III-A (indication), III-B
 * (policy, Figure 3), III-D (settings), IV-A (the ECN variant).
 *
 * The signal of lp is one-way delay, and also ECN marks if ECN is in use. The signal of
 * lp_ecn is the router's ECN marks, or delay if ECN was not negotiated.
 *
 * Departures from the paper, and the reason for each:
 *  - an indication is a delay above the threshold for a whole round trip, not a
 *    smoothed delay above it once (paper=1): clumped ACKs cause bursts in a queue
 *    that is empty in between; the queue of a TCP flow persists. One sample is enough
 *    if the buffer holds few packets and ACKs meet a queue (lp_few());
 *  - the delay excludes the reverse path's queue and the time for which the receiver
 *    delays an ACK (owd.h);
 *  - full is the delay at losses, not the largest seen: a single stall would raise the
 *    threshold for the rest of the connection. Random losses do not change full
 *    (path_delay.h);
 *  - the threshold is at least 1 ms and a packet time above base, because of noise;
 *  - data sent before a reaction gives no indication: it met the queue to which the
 *    flow has reacted already;
 *  - a second indication that is explained by this flow's own halved window only halves
 *    the window again: this happens in deep buffers, after slow start;
 *  - W = 1 is two packets every other round trip: receivers delay the ACK of a single
 *    packet, which looks like a queue. With further indications it is two packets up to
 *    every ninth round trip, since one packet a round trip is 6 % of 1.5 Mbit/s;
 *  - at W = 1 a constant delay is that of a longer path;
 *  - a loss at W = 1, or from a window of four packets or fewer, is an indication:
 *    many flows with such windows keep the queue full and never measure base. Until the
 *    window is larger, each rest doubles the last one;
 *  - a reduction sets ssthresh too, since Reno would otherwise return by slow start;
 *    in Recovery and Loss only the kernel sets the window.
 *
 * lp does not react to delay before the first loss (the paper's rule), unless its window
 * did not limit it for 10 s. It does not yield if the buffer holds less than the noise, nor
 * at queues that isolate flows (fq_codel), which have to use the LE mark.
 *
 * The state is in the socket, the counters are in the network namespace.
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

/* Longest rest, us: sch_fq drops a packet that is due more than 10 s (its horizon) ahead. */
#define LP_REST_MAX_US		(8 * USEC_PER_SEC)

/* Parameters: a change applies to sockets that start to use lp after it. */
LBE_PARAM(delta_permille, 150, 10, 900,
	  "threshold's place between base and full delay, per mille");

static bool paper;
module_param(paper, bool, 0644);
MODULE_PARM_DESC(paper, "the paper's literal rule: smoothed delay above the threshold, once (N)");

/* ---- state of the socket --------------------------------------------------- */

/* May this control set the window? Not during the repair of a loss, nor in CWR. */
static bool tcp_lp_owns_window(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state <= TCP_CA_Disorder;
}

/* Packets in use before this ACK: the window, or fewer if the flow has less data to
 * send. Halving a window that is not used would not reduce the rate.
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

/* Set the window and end slow start, so that the window grows additively from here. */
static void tcp_lp_set_window(struct tcp_sock *tp, u32 cwnd)
{
	tcp_snd_cwnd_set(tp, cwnd);
	WRITE_ONCE(tp->snd_ssthresh, max(cwnd, 2U));
	tp->snd_cwnd_cnt = 0;
}

/* The window after an indication. The caller sets it; after LP_LOSS, which leads to the floor,
 * the next ACK does.
 */
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

/* The inference phase is over: update the counters, and trace @event. */
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

/* At the floor: once nothing is in flight, send two packets after a rest. */
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

/* A longer path had caused the indications that led to the floor. Undo them by slow
 * start, since the previous window was that of another path.
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
		tcp_lp_set_window(tcp_sk(sk), tcp_lp_indication(sk, LP_DELAY));
		break;
	case LP_LONGER_PATH:
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
		.reducing = !tcp_lp_owns_window(sk),
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

	/* Recovery from a time-out is Reno's, whatever the delay is. */
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

/* The window for the reduction that begins, because of a mark or a loss. */
static u32 tcp_lp_ssthresh(struct sock *sk)
{
	const struct lp *lp = inet_csk_ca(sk);
	u32 cwnd;

	if (!lp->on || !lp->ece || inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR)
		return tcp_reno_ssthresh(sk);
	cwnd = tcp_lp_indication(sk, LP_ECE);
	/* A packet has to be sent to end the reduction; it waits for a rest, as a pair does. */
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

/* A reduction without a mark means a loss: in Recovery and Loss; in CWR if the sender's own
 * device dropped a packet, or if a tail loss probe repaired a loss.
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

/* The first packet after an idle time is sent: delays of earlier data are stale. */
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

/* Without ECN negotiated, no packet may be sent as ECT, though TCP_CONG_NEEDS_ECN has
 * set ECT for the handshake: routers would mark instead of dropping, and the receiver
 * would not echo the mark. In SYN_SENT the socket only knows its own request.
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

/* May be called twice, or without init. */
static void tcp_lp_release(struct sock *sk)
{
	struct lp *lp = inet_csk_ca(sk);

	if (!lp->on)
		return;
	lbe_control_end(sk, true, lp->inference, lp->mark);
	lp->on = 0;
}

/* Called without the socket lock. */
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

/* Replaces lp_ecn if ECN was not negotiated; not registered. */
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
