// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-LP: less-than-best-effort TCP by a threshold on one-way delay.
 *
 * The law, per ACK with a delay sample d (one way, relative; include/lbe/owd.h):
 *
 *	sd	 = (1 - gamma) sd + gamma d			gamma = 1/8
 *	indication if d > dmin + delta (dmax - dmin) for a round trip
 *								delta = 0.15
 *
 *	first indication:		W = W/2, inference phase for 3 RTT
 *	again in the inference phase:	W = 1, and the phase starts over
 *	in the inference phase:		no growth
 *	after it:			W = W + 1 per RTT
 *	loss:				Reno
 *
 * TCP sees congestion when the buffer overflows, this flow when 15 % of it is
 * in use: so it leaves before TCP has to, and takes what TCP leaves.
 *
 * Source: A. Kuzmanovic, E. Knightly, "TCP-LP: a distributed algorithm for low
 * priority data transfer", INFOCOM 2003, sections III-A (indication), III-B
 * (policy, Figure 3), III-D (settings), IV-A (the ECN variant).
 *
 * lp takes one-way delay. lp_ecn takes the router's ECN marks instead (and one
 * way delay where ECN was not negotiated); lp takes marks as well as delay.
 *
 * Departs from the paper in:
 *  - An indication is a delay above the threshold in every sample of a round
 *    trip, instead of a smoothed delay above it once. A smoothed delay over 8
 *    samples takes a burst for a queue: ACKs of a TCP flow that are held up on
 *    their way back come in clumps and leave such bursts, between which the link
 *    idles. A queue of TCP stands. sd serves as the delay found at losses.
 *    One sample is enough where ACKs are held up on their way back and the
 *    buffer holds few packets (lp_few()).
 *  - Delay is the round-trip time less the reverse path's queueing (from TSval
 *    alone), not TSval - TSecr: that difference has the coarseness of two
 *    clocks in it and the time the receiver sat on its ACK. See owd.h.
 *  - dmax is the delay found at losses, not the largest ever seen: one stalled
 *    radio link would else lift the threshold for the connection's life. It
 *    falls when max_age_losses losses in a row were lower. It does not fall
 *    with time: a flow that leaves at 15 % of the buffer never sees more than
 *    15 %, and would talk itself down to nothing.
 *  - The threshold is at least floor_us and a packet's time above dmin: less is
 *    noise. A loss that finds less than twice that of queue is taken for a
 *    random one, which says nothing about the buffer.
 *  - Samples count once data sent after the latest reaction is ACKed, and sd
 *    then begins anew. What was in flight, and the average over it, still show
 *    the queue that the reaction was about.
 *  - A second indication whose delay is no more than our own halved window
 *    explains halves again and does not go to 1 (deep buffers, after slow start).
 *  - At W = 1 a window is two packets every other round trip: receivers ACK two
 *    packets at once but hold the ACK of one for 40 ms or more, which looks
 *    like a queue and would keep W at 1 for ever. The rest doubles with each
 *    further indication, up to rest_max_rtts: one packet a round trip is 6 % of
 *    a 1.5 Mbit/s link.
 *  - At W = 1, a delay that stays flat for route_s is a longer path and not a
 *    queue; dmin moves up to it, and the window returns by slow start to
 *    the same rate (at most twice the packets).
 *  - A reduction sets ssthresh too, or Reno would slow-start back.
 *  - Recovery owns the window: indications act in Open and Disorder only.
 *
 * Does not: act before the first loss (the paper's rule), unless the flow is
 * not limited by its window for 10 s; give way on links whose buffer holds less
 * than the noise, or under queues that isolate flows (fq_codel): there it is
 * Reno.
 *
 * No state per network namespace: everything is in the socket.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include <lbe/sender.h>

#include "lp.h"

#define CREATE_TRACE_POINTS
#include "lp_trace.h"

/* sch_fq drops what is to leave more than 10 s from now (its horizon), ns. */
#define LP_REST_MAX_NS		(8ULL * NSEC_PER_SEC)

/* ---- parameters: for sockets that start to use lp from now on ------------ */

static struct lp_params lp_params = LP_PARAMS_DEFAULT;

/* One range-checked parameter: its place in lp_params, size, and limits. */
struct lp_param {
	const char *unit;
	void *value;
	u8 size;
	u16 least;
	u16 most;
};

static int lp_param_set(const char *val, const struct kernel_param *kp)
{
	const struct lp_param *arg = kp->arg;
	unsigned int value;
	int err;

	err = kstrtouint(val, 0, &value);
	if (err || value < arg->least || value > arg->most) {
		pr_err("%s=%s is not in the allowed range %u to %u (%s)\n",
		       kp->name, val, arg->least, arg->most, arg->unit);
		return err ?: -ERANGE;
	}
	if (arg->size == sizeof(u8))
		WRITE_ONCE(*(u8 *)arg->value, value);
	else
		WRITE_ONCE(*(u16 *)arg->value, value);
	return 0;
}

static int lp_param_get(char *buffer, const struct kernel_param *kp)
{
	const struct lp_param *arg = kp->arg;
	unsigned int value;

	value = arg->size == sizeof(u8) ? READ_ONCE(*(u8 *)arg->value) :
					  READ_ONCE(*(u16 *)arg->value);
	return sysfs_emit(buffer, "%u\n", value);
}

static const struct kernel_param_ops lp_param_ops = {
	.set = lp_param_set,
	.get = lp_param_get,
};

#define LP_PARAM(name, lo, hi, unit_text, text)				\
	static const struct lp_param lp_param_##name = {		\
		unit_text, &lp_params.name, sizeof(lp_params.name), lo, hi \
	};								\
	module_param_cb(name, &lp_param_ops, (void *)&lp_param_##name, 0644); \
	MODULE_PARM_DESC(name, text " (" unit_text ", " #lo " to " #hi ")")

LP_PARAM(delta_permille, 10, 900, "per mille",
	 "threshold's place between dmin and dmax, default 150");
LP_PARAM(gamma_shift, 0, 4, "power of two",
	 "the smoothed delay moves by 1/2^this of the error, default 3");
LP_PARAM(itt_rtts, 1, 20, "round trips",
	 "inference time-out, default 3");
LP_PARAM(floor_us, 50, 50000, "us",
	 "smallest queueing delay acted upon, plus one packet's time, default 1000");
LP_PARAM(min_age_s, 10, 36000, "s",
	 "dmin is forgotten after so long, default 600");
LP_PARAM(max_age_losses, 1, 255, "losses",
	 "dmax is replaced after so many lower losses, default 8");
LP_PARAM(route_s, 5, 3600, "s",
	 "a delay flat for so long is a longer path, default 10");
LP_PARAM(rest_max_rtts, 1, 64, "round trips",
	 "longest rest between pairs of packets at the floor, default 8");

/* ---- what the socket tells ------------------------------------------------ */

static u32 tcp_lp_now_ms(void)
{
	return jiffies_to_msecs(tcp_jiffies32);
}

static u32 tcp_lp_srtt_us(const struct tcp_sock *tp)
{
	return max_t(u32, tp->srtt_us >> 3, 1);
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

/* The forward delay that this ACK tells of, us. */
static u32 tcp_lp_delay_us(struct lp *lp, const struct tcp_sock *tp, u32 rtt_us)
{
	struct lbe_owd_ack ack = {
		.now_us = tp->tcp_mstamp,
		.tsval = tp->rx_opt.rcv_tsval,
		.rtt_us = rtt_us,
		.min_rtt_us = min(tcp_min_rtt(tp), rtt_us),
		.has_tsval = tp->rx_opt.saw_tstamp,
	};

	return lp_delay_us(lp, &ack);
}

/* ---- the steps of an ACK -------------------------------------------------- */

/* Cut the window for an indication; the caller has it applied. */
static u32 tcp_lp_indication(struct sock *sk, enum lp_kind kind)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);
	u32 cwnd;

	cwnd = lp_react(lp, kind, tcp_lp_window_pkts(sk), tp->snd_nxt,
			tcp_lp_srtt_us(tp), tp->tcp_mstamp);
	trace_lp_indication(sk, lp, kind, tcp_snd_cwnd(tp), cwnd);
	return cwnd;
}

/* Set the window and leave slow start, so that growth from here is additive. */
static void tcp_lp_set_window(struct tcp_sock *tp, u32 cwnd)
{
	tcp_snd_cwnd_set(tp, cwnd);
	tp->snd_ssthresh = max(cwnd, 2U);
	tp->snd_cwnd_cnt = 0;
}

/* The indications that led to the floor were false, and are undone; but by slow
 * start, since the window was another path's.
 */
static void tcp_lp_resume(struct tcp_sock *tp, const struct lp *lp)
{
	tcp_lp_set_window(tp, 2);
	tp->snd_ssthresh = max_t(u32, lp->before_pkts, 2);
}

/* Let nothing go before a rest. The departure time of the next packet is what
 * pacing (our own or sch_fq's) waits for.
 */
static void tcp_lp_rest(struct sock *sk)
{
	const struct lp *lp = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rest_ns = (u64)lp_rest_rtts(lp) * tcp_lp_srtt_us(tp) * NSEC_PER_USEC;

	tp->tcp_wstamp_ns = max(tp->tcp_wstamp_ns,
				tp->tcp_clock_cache +
				min(rest_ns, LP_REST_MAX_NS));
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

static void tcp_lp_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);
	struct lp_ack ack = {
		.pkts = sample->pkts_acked,
		.snd_una = tp->snd_una,
		.snd_nxt = tp->snd_nxt,
		.now_ms = tcp_lp_now_ms(),
		.lone = sample->pkts_acked <= 1 &&
			sample->in_flight <= tp->mss_cache,
	};
	enum lp_kind kind;

	if (!lp->on)
		return;
	if (lp_inference_over(lp, tp->tcp_mstamp) && tcp_snd_cwnd(tp) < 2 &&
	    inet_csk(sk)->icsk_ca_state < TCP_CA_CWR)
		tcp_lp_set_window(tp, 2);
	if (tcp_is_cwnd_limited(sk))
		lp_growing(lp, ack.now_ms);
	else
		lp_not_growing(lp, ack.now_ms);
	if (sample->rtt_us <= 0 || !lbe_ack_is_original(sk))
		return;

	lp_delivered(lp, tp->rate_delivered, tp->rate_interval_us);
	ack.d_us = tcp_lp_delay_us(lp, tp, sample->rtt_us);
	if (!ack.d_us)
		return;
	ack.held_us = sample->rtt_us - min_t(u32, ack.d_us, sample->rtt_us);
	kind = lp_sample(lp, &ack);
	if (inet_csk(sk)->icsk_ca_state <= TCP_CA_Disorder) {
		if (kind == LP_DELAY)
			tcp_lp_set_window(tp, tcp_lp_indication(sk, kind));
		else if (kind == LP_LONGER_PATH)
			tcp_lp_resume(tp, lp);
	}
	if (lp->peak_us)
		lp_loss_seen(lp);
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

/* ---- losses, marks, idle periods ------------------------------------------ */

static void tcp_lp_in_ack_event(struct sock *sk, u32 flags)
{
	struct lp *lp = inet_csk_ca(sk);

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
	lp_loss_undone(inet_csk_ca(sk));
	return tcp_reno_undo_cwnd(sk);
}

static void tcp_lp_set_state(struct sock *sk, u8 new_state)
{
	u8 old_state = inet_csk(sk)->icsk_ca_state;
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lp *lp = inet_csk_ca(sk);

	if (!lp->on)
		return;
	if (new_state >= TCP_CA_Recovery && old_state < TCP_CA_Recovery)
		lp_loss_seen(lp);
	if (new_state < TCP_CA_Recovery && old_state >= TCP_CA_Recovery)
		lp_repaired(lp, tp->snd_nxt, tcp_lp_srtt_us(tp), tp->tcp_mstamp);
}

/* The first packet after a pause goes out: what came before it is old. */
static void tcp_lp_tx_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 idle = tcp_jiffies32 - tp->lsndtime;
	struct lp *lp = inet_csk_ca(sk);

	if (!lp->on)
		return;
	if (lp->inference && idle > LP_IDLE_S * HZ)
		lp_inference_end(lp);
	if (!lp->floor && idle > inet_csk(sk)->icsk_rto)
		lp_mark(lp, tp->snd_nxt);
}

/* ---- control -------------------------------------------------------------- */

static void __tcp_lp_init(struct sock *sk, bool marks)
{
	lp_init(inet_csk_ca(sk), &lp_params,
		marks && tcp_ecn_mode_any(tcp_sk(sk)), tcp_lp_now_ms());
	lbe_pacing_begin(sk);
}

static void tcp_lp_init(struct sock *sk)
{
	__tcp_lp_init(sk, false);
}

static struct tcp_congestion_ops tcp_lp_ecn_plain;

/* Without ECN agreed upon no packet may say that it is: routers would mark what
 * nobody echoes, and drop nothing. The handshake was ECN-capable by our flag.
 */
static void tcp_lp_ecn_init(struct sock *sk)
{
	__tcp_lp_init(sk, true);
	if (tcp_ecn_mode_any(tcp_sk(sk)) || sk->sk_state == TCP_LISTEN ||
	    sk->sk_state == TCP_CLOSE)
		return;
	inet_csk(sk)->icsk_ca_ops = &tcp_lp_ecn_plain;
	INET_ECN_dontxmit(sk);
}

/* What `ss -i` shows, in the words of tcpvegas_info:
 *	enabled	bit 0 always, 1 learnt, 2 inference, 3 floor, 4 delay is one
 *		way (else round trip), 5 marks are the signal; bits 8 to 23
 *		early congestion indications so far (wraps)
 *	rttcnt	queueing delay that is an indication when exceeded, us
 *	rtt	smoothed delay, us
 *	minrtt	dmin, us; 0x7fffffff = none yet, as vegas has it
 */
static size_t tcp_lp_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	const struct lp *now = inet_csk_ca(sk);
	struct lp copy = *now, *lp = &copy;

	if (!lp->on || !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	/* No lock: another control may have put its own data there. */
	lp->dmin_age.nr = LP_DMIN_SLOTS;
	lp->p.gamma_shift &= 31;
	info->vegas.tcpv_enabled = BIT(0) | lp->learnt << 1 |
				   lp->inference << 2 | lp->floor << 3 |
				   lbe_owd_source(&lp->owd) << 4 |
				   lp->marks << 5 | lp->indications << 8;
	info->vegas.tcpv_rttcnt = lp_margin_us(lp);
	info->vegas.tcpv_rtt = lp_sd_us(lp);
	info->vegas.tcpv_minrtt = min_t(u32, lp_dmin_us(lp), 0x7fffffff);
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(struct tcpvegas_info);
}

/* Another control takes over: at once, and as a new connection if all that is
 * known of the path is that others were there.
 */
static void tcp_lp_release(struct sock *sk)
{
	struct lp *lp = inet_csk_ca(sk);

	if (!lp->on)
		return;
	lbe_rest_cancel(sk);
	lbe_pacing_end(sk);
	if (lp->inference)
		WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	lp->on = 0;
}

LBE_DEFINE_TX_START(tcp_lp_cwnd_event, tcp_lp_tx_start)

#define TCP_LP_OPS							\
	.ssthresh	= tcp_lp_ssthresh,				\
	.undo_cwnd	= tcp_lp_undo_cwnd,				\
	.cong_avoid	= tcp_lp_cong_avoid,				\
	.pkts_acked	= tcp_lp_pkts_acked,				\
	.in_ack_event	= tcp_lp_in_ack_event,				\
	.set_state	= tcp_lp_set_state,				\
	.get_info	= tcp_lp_get_info,				\
	.release	= tcp_lp_release,				\
	.owner		= THIS_MODULE,					\
	LBE_TX_START(tcp_lp_cwnd_event, tcp_lp_tx_start)

static struct tcp_congestion_ops tcp_lp __read_mostly = {
	TCP_LP_OPS,
	.init	= tcp_lp_init,
	.flags	= TCP_CONG_NON_RESTRICTED,
	.name	= "lp",
};

static struct tcp_congestion_ops tcp_lp_ecn __read_mostly = {
	TCP_LP_OPS,
	.init	= tcp_lp_ecn_init,
	.flags	= TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
	.name	= "lp_ecn",
};

/* What lp_ecn is where ECN was not agreed upon; not registered. */
static struct tcp_congestion_ops tcp_lp_ecn_plain __read_mostly = {
	TCP_LP_OPS,
	.init	= tcp_lp_init,
	.name	= "lp_ecn",
};

static int __init tcp_lp_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct lp) > ICSK_CA_PRIV_SIZE);

	err = tcp_register_congestion_control(&tcp_lp);
	if (err == -EEXIST)
		pr_err("the name lp is taken: unload the kernel's own tcp_lp first (rmmod tcp_lp; to keep it out, a line 'blacklist tcp_lp' in /etc/modprobe.d/)\n");
	if (err)
		return err;
	err = tcp_register_congestion_control(&tcp_lp_ecn);
	if (err)
		tcp_unregister_congestion_control(&tcp_lp);
	return err;
}

static void __exit tcp_lp_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_lp_ecn);
	tcp_unregister_congestion_control(&tcp_lp);
}

module_init(tcp_lp_register);
module_exit(tcp_lp_unregister);

MODULE_AUTHOR("LBE transport suite");
MODULE_DESCRIPTION("TCP-LP: less-than-best-effort TCP by one-way delay (lp, lp_ecn)");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
