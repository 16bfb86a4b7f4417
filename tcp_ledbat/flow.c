// SPDX-License-Identifier: GPL-2.0
/*
 * What a flow of LEDBAT and of LEDBAT++ have in common.
 *
 *	each ACK     pkts_acked: delay, base, queue, peaks of the round trip
 *	             cong_avoid: slowdown? slow start? else the law (ledbat*.c)
 *	a loss       ssthresh: half; set_state: end slow start or slowdown,
 *	             learn the buffer's depth
 *	a time-out   ssthresh: half of what the path carried of late, if the
 *	             queue was short
 *
 *	SLOW_START --delay, loss, ssthresh--> AVOID --due--> FREEZE --2 RTT--> RAMP
 *	     ^                                  ^ ^            | loss            |
 *	     +----- idle restart (from all)     | +------------+                 |
 *	                                        +------- ssthresh, queue > T, loss
 *
 * Recovery owns the window while it lasts; nothing here writes it then.
 */
#include <linux/hash.h>
#include <linux/inet_diag.h>
#include <linux/slab.h>

#include <lbe/mark.h>
#include <lbe/sender.h>

#include "flow.h"

#define CREATE_TRACE_POINTS
#include "ledbat_trace.h"

/* Delay samples */

/* A reverse path that is shorter than it ever was, by more than clocks drift, is
 * another one; so may the forward path be. Its own delays would not tell: a
 * window that filled the longer path keeps the round trip as it was, the rest of
 * it as queue. So the base delay is read again.
 */
static void ledbat_watch_reverse(struct ledbat *f, const struct lbe_owd *before)
{
	s32 step_us = f->params.target_us >> LEDBAT_STEADY_SHIFT;

	if (f->params.slowdowns && f->slowdown.mode == LEDBAT_AVOID &&
	    before->has_base && f->owd.has_base &&
	    before->base_us - f->owd.base_us > step_us)
		f->slowdown.next_us = f->now_us;
}

static u32 ledbat_delay_us(const struct sock *sk, struct ledbat *f, u32 rtt_us)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lbe_owd_ack ack = {
		.now_us = f->now_us,
		.tsval = tp->rx_opt.rcv_tsval,
		.rtt_us = rtt_us,
		.min_rtt_us = f->base_us ? min(f->base_us, rtt_us) : rtt_us,
		.has_tsval = tp->rx_opt.saw_tstamp,
	};

	const struct lbe_owd before = f->owd;
	u32 delay_us;

	if (f->params.signal == LEDBAT_SIGNAL_RTT)
		return rtt_us;
	delay_us = lbe_owd_update(&f->owd, &ack);
	lbe_slots_raise(&f->base_slots, f->base_slot,
			lbe_owd_rise_us(&f->owd, before.base_us));
	ledbat_watch_reverse(f, &before);
	return delay_us;
}

/* Base, filter and queue from one sample; a path of less than 1 us has 1 us. */
static void ledbat_add_sample(const struct sock *sk, struct ledbat *f, s32 rtt_us)
{
	u32 delay_us;

	f->rtt_us = max(rtt_us, 1);
	delay_us = max(ledbat_delay_us(sk, f, f->rtt_us), 1U);
	f->reverse_q3 += f->rtt_us - min(delay_us, f->rtt_us) -
			 (f->reverse_q3 >> LEDBAT_REVERSE_SHIFT);
	f->base_us = lbe_slots_update(&f->base_slots, f->base_slot, LEDBAT_SLOT_S,
				      div_u64(f->now_us, USEC_PER_SEC), delay_us);
	ledbat_filter_add(&f->filter, f->now_us, delay_us);
	f->least_us = min(f->least_us, ledbat_queue_us(delay_us, f->base_us));
}

/* Window */

static void ledbat_store_window(struct sock *sk, struct ledbat *f,
				const struct ledbat_window *w)
{
	struct tcp_sock *tp = tcp_sk(sk);

	f->part_q32 = w->part_q32;
	tcp_snd_cwnd_set(tp, min(w->cwnd, tp->snd_cwnd_clamp));
}

/* The same from avoidance. A reduction lowers ssthresh with it, else the way back
 * would be slow start.
 */
void ledbat_steer_window(struct sock *sk, struct ledbat *f,
			 const struct ledbat_window *w)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ledbat_store_window(sk, f, w);
	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh)
		WRITE_ONCE(tp->snd_ssthresh, tcp_snd_cwnd(tp));
}

static void ledbat_leave_slow_start(const struct sock *sk, struct ledbat *f)
{
	f->slowdown.mode = LEDBAT_AVOID;
	/* Slow start that went on had a slowdown planned before. */
	if (ledbat_slowdown_is_periodic(f) &&
	    f->slowdown.next_us == LEDBAT_NEVER_US)
		f->slowdown.next_us = f->now_us + (u64)LEDBAT_SLOWDOWN_RTTS *
						  ledbat_srtt_us(sk);
	trace_ledbat_mode(sk, f);
}

static void ledbat_end_slowdown(const struct sock *sk, struct ledbat *f)
{
	ledbat_slowdown_end(&f->slowdown, f->now_us, ledbat_srtt_us(sk),
			    ledbat_slowdown_is_periodic(f));
	f->base_seen_us = f->now_us;
	trace_ledbat_mode(sk, f);
}

/* The window was set anew: what is in flight tells of the one before. */
static void ledbat_hold(const struct sock *sk, struct ledbat *f)
{
	f->hold_end = tcp_sk(sk)->snd_nxt;
	f->holds = true;
}

/* Slow start, or a ramp, is over: go on by the law, once the delays are those of
 * the window it left.
 */
static void ledbat_begin_avoiding(const struct sock *sk, struct ledbat *f)
{
	if (f->slowdown.mode != LEDBAT_AVOID) {
		ledbat_hold(sk, f);
		f->rest_rtts = 0;
	}
	if (ledbat_slowdown_on(&f->slowdown))
		ledbat_end_slowdown(sk, f);
	else if (f->slowdown.mode == LEDBAT_SLOW_START)
		ledbat_leave_slow_start(sk, f);
}

/* The same from a window that is to be kept. */
static void ledbat_avoid_from(struct sock *sk, struct ledbat *f, u32 cwnd)
{
	const struct ledbat_window w = { .cwnd = cwnd };

	ledbat_store_window(sk, f, &w);
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, cwnd);
	ledbat_hold(sk, f);
	ledbat_begin_avoiding(sk, f);
}

/* Round trips */

/* Do the delays of late belong to the present window? */
bool ledbat_feels_window(const struct sock *sk, const struct ledbat *f)
{
	return !f->holds || !before(tcp_sk(sk)->snd_una, f->hold_end);
}

/* The queue that ended slow start is gone: it was a burst's, or noise. */
static void ledbat_resume_slow_start(struct sock *sk, struct ledbat *f)
{
	if (!f->resume_rounds || f->slowdown.mode != LEDBAT_AVOID ||
	    !ledbat_feels_window(sk, f))
		return;
	f->resume_rounds--;
	if (!ledbat_queue_empty(f->peak_us[0], f->params.target_us))
		return;
	f->resume_rounds = 0;
	f->slowdown.mode = LEDBAT_SLOW_START;
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	trace_ledbat_mode(sk, f);
}

/* A ramp comes back to a window that was good, so it goes on above 3/4 of the
 * target. It ends where every packet of a round trip met more than the target;
 * of its own bursts the first packets meet none.
 */
static void ledbat_stop_ramp(struct sock *sk, struct ledbat *f)
{
	if (f->slowdown.mode == LEDBAT_RAMP && f->least_us != U32_MAX &&
	    f->least_us > f->aim_us)
		ledbat_avoid_from(sk, f, tcp_snd_cwnd(tcp_sk(sk)));
}

static void ledbat_begin_round(struct sock *sk, struct ledbat *f)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, f->round_end))
		return;
	f->round_end = tp->snd_nxt;
	if (ledbat_feels_window(sk, f))
		f->holds = false;
	ledbat_resume_slow_start(sk, f);
	ledbat_stop_ramp(sk, f);
	f->least_us = U32_MAX;
	f->good_pkts -= DIV_ROUND_UP(f->good_pkts, 1 << LEDBAT_GOOD_SHIFT);
	if (f->peak_us[0] <= f->aim_us)
		f->good_pkts = max(f->good_pkts, f->flight_pkts[0]);
	f->peak_us[1] = f->peak_us[0];
	f->flight_pkts[1] = f->flight_pkts[0];
	f->full_us[1] = f->full_us[0];
	f->peak_us[0] = 0;
	f->full_us[0] = 0;
	f->flight_pkts[0] = 0;
}

/* Each ACK */

/* What the filter says now; false: nothing young enough, so no verdict. */
static bool ledbat_read_queue(const struct sock *sk, struct ledbat *f)
{
	u32 delay_us, young;

	young = ledbat_filter_min(&f->filter, f->now_us,
				  max(ledbat_srtt_us(sk), f->rtt_us), &delay_us);
	if (!young)
		return false;
	f->queue_us = ledbat_queue_us(delay_us, f->base_us);
	f->aim_us = ledbat_depth_target_us(&f->depth, f->now_us,
					   f->params.target_us,
					   f->params.depth_percent);
	f->peak_us[0] = max(f->peak_us[0], f->queue_us);
	if (young >= LEDBAT_FILTER_MIN)
		f->full_us[0] = max(f->full_us[0], f->queue_us);
	if (ledbat_queue_empty(f->queue_us, f->params.target_us))
		f->base_seen_us = f->now_us;
	if (f->queue_us <= f->aim_us / 4) {
		f->short_us = f->now_us;
		f->short_delivered = tcp_sk(sk)->delivered;
	}
	return true;
}

static void ledbat_publish(struct sock *sk, const struct ledbat *f)
{
	struct ledbat_ca *ca = inet_csk_ca(sk);

	WRITE_ONCE(ca->base_us, f->base_us);
	WRITE_ONCE(ca->queue_us, f->queue_us);
	WRITE_ONCE(ca->aim_us, f->aim_us);
	WRITE_ONCE(ca->mode, f->slowdown.mode);
}

void ledbat_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *f = ledbat_of(sk);

	if (!f)
		return;
	f->now_us = ledbat_now_us(sk);
	ledbat_begin_round(sk, f);
	f->flight_pkts[0] = max(f->flight_pkts[0],
				tcp_packets_in_flight(tp) + sample->pkts_acked);
	if (f->host)
		ledbat_host_delivered(f->host, sample->pkts_acked * tp->mss_cache);
	if (sample->rtt_us >= 0 && lbe_ack_is_original(sk)) {
		ledbat_add_sample(sk, f, sample->rtt_us);
		f->sent_flight_pkts = sample->in_flight / max(tp->mss_cache, 1U);
	}
	f->has_sample = ledbat_read_queue(sk, f);
	ledbat_publish(sk, f);
	trace_ledbat_ack(sk, f);
}

/* Slowdowns and slow start */

/* Begin or go on with a slowdown. Return: is the window frozen? */
static bool ledbat_slow_down(struct sock *sk, struct ledbat *f)
{
	const struct ledbat_window frozen = { .cwnd = LEDBAT_SLOWDOWN_PKTS };
	struct ledbat_slowdown *s = &f->slowdown;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = max(ledbat_srtt_us(sk), f->rtt_us);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Open &&
	    ledbat_slowdown_due(s, f->now_us, cwnd, rtt_us)) {
		ledbat_slowdown_begin(s, f->now_us, cwnd, rtt_us);
		WRITE_ONCE(tp->snd_ssthresh, cwnd);
		ledbat_store_window(sk, f, &frozen);
		trace_ledbat_mode(sk, f);
	}
	if (s->mode != LEDBAT_FREEZE)
		return false;
	ledbat_slowdown_tick(s, f->now_us);
	if (s->mode == LEDBAT_FREEZE)
		return true;
	trace_ledbat_mode(sk, f);
	return false;
}

/* Has the queue grown too long for slow start to go on? */
static bool ledbat_stop_slow_start(struct sock *sk, struct ledbat *f)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ledbat_probe probe = {
		.sent_pkts = f->sent_flight_pkts,
		.served_pkts = tp->delivered - f->short_delivered,
		.span_us = f->short_us ? f->now_us - f->short_us : 0,
	};
	u32 cwnd = tcp_snd_cwnd(tp);

	if (f->slowdown.mode == LEDBAT_RAMP ||
	    !ledbat_leaves_slow_start(f->queue_us, f->aim_us))
		return false;
	f->resume_rounds = LEDBAT_RESUME_ROUNDS;
	ledbat_avoid_from(sk, f,
			  ledbat_exit_pkts(cwnd, &probe, f->base_us, f->queue_us,
					   f->aim_us,
					   min(cwnd, LEDBAT_INIT_PKTS)));
	return true;
}

/* One ACK in slow start or in a ramp: a packet more for @divisor acknowledged.
 * Return: acknowledged packets that slow start has no use for.
 */
static u32 ledbat_slow_start(struct sock *sk, struct ledbat *f, u32 acked,
			     u32 divisor)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat_window w = {
		.cwnd = tcp_snd_cwnd(tp),
		.part_q32 = f->part_q32,
	};

	if (ledbat_stop_slow_start(sk, f))
		return acked;
	if (!tcp_is_cwnd_limited(sk))
		return 0;
	if (divisor == 1) {
		acked = tcp_slow_start(tp, acked);
	} else {
		ledbat_window_add(&w, div_u64((u64)acked << 32, divisor), 0);
		w.cwnd = min(w.cwnd, tp->snd_ssthresh);
		ledbat_store_window(sk, f, &w);
		acked = 0;
	}
	if (!tcp_in_slow_start(tp))
		ledbat_begin_avoiding(sk, f);
	return acked;
}

/**
 * ledbat_before_law() - what comes before the law on each ACK
 * @sk: socket
 * @f: flow
 * @acked: packets newly acknowledged
 * @divisor: 1 / GAIN of the first slow start; a ramp has 1
 *
 * Return: packets for the law; 0 = a slowdown or slow start has the window.
 */
u32 ledbat_before_law(struct sock *sk, struct ledbat *f, u32 acked, u32 divisor)
{
	if (ledbat_slow_down(sk, f))
		return 0;
	if (!tcp_in_slow_start(tcp_sk(sk))) {
		/* After an idle time ssthresh may be the least window. */
		if (f->slowdown.mode == LEDBAT_SLOW_START)
			ledbat_leave_slow_start(sk, f);
		return acked;
	}
	if (f->slowdown.mode != LEDBAT_SLOW_START)
		divisor = 1;
	return ledbat_slow_start(sk, f, acked, divisor);
}

/* At the least window */

/* A path that became longer: what stood still is its delay. */
static void ledbat_watch_path(struct ledbat *f)
{
	u32 now_s = div_u64(f->now_us, USEC_PER_SEC);

	if (!f->params.slowdowns ||
	    !ledbat_steady_add(&f->steady, f->now_us, f->queue_us,
			       f->params.target_us))
		return;
	f->base_us += f->steady.least_us;
	lbe_slots_init(&f->base_slots, f->base_slot, f->params.history_min, now_s);
	lbe_slots_update(&f->base_slots, f->base_slot, LEDBAT_SLOT_S, now_s,
			 f->base_us);
	ledbat_filter_init(&f->filter, f->params.filter_samples);
	f->base_seen_us = f->now_us;
	f->steady.since_us = 0;
}

/* May TCP be told when to send next? */
static bool ledbat_is_paced(const struct sock *sk)
{
	return READ_ONCE(sk->sk_pacing_status) != SK_PACING_NONE;
}

/**
 * ledbat_rest() - rest at the least window, longer or shorter than last time
 * @sk: socket
 * @f: flow
 * @w: window
 * @floor: least window, packets
 * @rate_q32: change that the law asks for
 *
 * The next packet is told its time of departure, as pacing does it.
 *
 * Return: is the flow at rest, so that the window stays?
 */
bool ledbat_rest(struct sock *sk, struct ledbat *f,
		 const struct ledbat_window *w, u32 floor, s64 rate_q32)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool least = w->cwnd <= floor && !w->part_q32;
	u32 rest_us;

	if (least && rate_q32 < 0)
		ledbat_watch_path(f);
	else
		f->steady.since_us = 0;
	if (!least || !ledbat_is_paced(sk)) {
		f->rest_end = tp->snd_una;
		f->rest_rtts = 0;
		return false;
	}
	if (after(tp->snd_una, f->rest_end)) {
		f->rest_end = tp->snd_nxt;
		f->rest_rtts = ledbat_rest_rtts(f->rest_rtts, rate_q32 < 0,
						f->params.rest_max_rtts);
	}
	rest_us = ledbat_rest_us(ledbat_steady_looks(&f->steady, f->now_us) ?
				 min_t(u32, f->rest_rtts, 1) : f->rest_rtts,
				 ledbat_srtt_us(sk), hash_32(tp->snd_una, 32));
	tp->tcp_wstamp_ns = max(tp->tcp_wstamp_ns, tp->tcp_clock_cache +
				(u64)rest_us * NSEC_PER_USEC);
	return f->rest_rtts;
}

/* Is TCP's idle time our rest? */
static bool ledbat_rests(const struct sock *sk, const struct ledbat *f)
{
	u64 rtt_ns = (u64)ledbat_srtt_us(sk) * NSEC_PER_USEC;

	return f->rest_rtts &&
	       tcp_clock_ns() < tcp_sk(sk)->tcp_wstamp_ns + rtt_ns;
}

/**
 * ledbat_min_tso_segs() - TCP is about to send
 * @sk: socket
 *
 * The last moment to correct what TCP did on its own: the window after an idle
 * time, and the pacing of packets that are far apart.
 *
 * Return: the least size of an aggregate, packets, as it is without us.
 */
u32 ledbat_min_tso_segs(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *f = ledbat_of(sk);

	if (f && f->restarted) {
		f->restarted = false;
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), LEDBAT_INIT_PKTS));
	}
	if (f && f->params.pace &&
	    !ledbat_paces(tcp_snd_cwnd(tp), ledbat_srtt_us(sk)))
		WRITE_ONCE(sk->sk_pacing_rate, READ_ONCE(sk->sk_max_pacing_rate));
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

/* Loss */

/* A freeze holds the window low on purpose; what was lost was sent before. */
u32 ledbat_ssthresh(struct sock *sk)
{
	const struct ledbat *f = ledbat_of(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (!f)
		return ledbat_loss_pkts(cwnd, LEDBAT_INIT_PKTS);
	if (f->slowdown.mode == LEDBAT_FREEZE)
		cwnd = max(cwnd, f->slowdown.goal);
	return ledbat_loss_pkts(cwnd, f->params.min_pkts);
}

void ledbat_set_state(struct sock *sk, u8 new_state)
{
	struct ledbat *f = ledbat_of(sk);

	if (!f || new_state < TCP_CA_CWR)
		return;
	f->now_us = ledbat_now_us(sk);
	f->part_q32 = 0;
	f->resume_rounds = 0;
	f->steady.since_us = 0;
	if (new_state == TCP_CA_Recovery &&
	    ledbat_depth_on_loss(&f->depth, f->now_us,
				 max(f->full_us[0], f->full_us[1]),
				 f->params.target_us, LEDBAT_DEPTH_MEMORY_US))
		trace_ledbat_depth(sk, f);
	ledbat_begin_avoiding(sk, f);
}

/* TCP has just taken ledbat_ssthresh() for a time-out. */
static void ledbat_on_timeout(struct sock *sk, struct ledbat *f)
{
	struct tcp_sock *tp = tcp_sk(sk);

	WRITE_ONCE(tp->snd_ssthresh,
		   ledbat_rto_ssthresh_pkts(tp->snd_ssthresh, f->good_pkts,
					    f->queue_us, f->aim_us));
	f->good_pkts /= 2;
}

/* After an idle time nothing of a slowdown holds, nor any sample. */
static void ledbat_restart(struct sock *sk, struct ledbat *f)
{
	ledbat_slowdown_init(&f->slowdown);
	ledbat_filter_init(&f->filter, f->params.filter_samples);
	f->part_q32 = 0;
	f->rest_rtts = 0;
	f->resume_rounds = 0;
	f->restarted = true;
	f->base_seen_us = ledbat_now_us(sk);
	trace_ledbat_mode(sk, f);
}

void ledbat_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct ledbat *f = ledbat_of(sk);

	if (!f)
		return;
	if (event == CA_EVENT_LOSS)
		ledbat_on_timeout(sk, f);
	else if (event == CA_EVENT_CWND_RESTART && !ledbat_rests(sk, f))
		ledbat_restart(sk, f);
}

/* Life */

static void ledbat_setup(struct sock *sk, struct ledbat *f,
			 const struct ledbat_params *params)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	f->params = *params;
	f->now_us = ledbat_now_us(sk);
	f->base_seen_us = f->now_us;
	f->aim_us = params->target_us;
	f->round_end = tp->snd_nxt;
	f->least_us = U32_MAX;
	f->rest_end = tp->snd_nxt;
	lbe_owd_init(&f->owd);
	lbe_slots_init(&f->base_slots, f->base_slot, params->history_min,
		       div_u64(f->now_us, USEC_PER_SEC));
	ledbat_filter_init(&f->filter, params->filter_samples);
	ledbat_slowdown_init(&f->slowdown);
	if (params->dynamic)
		f->host = ledbat_host_join(sk);
}

/* A flow that had another congestion control has a queue of that one's making:
 * it begins with a slowdown, else it would take it for the base delay.
 */
static void ledbat_take_over(struct ledbat *f)
{
	f->slowdown.mode = LEDBAT_AVOID;
	if (f->params.slowdowns)
		f->slowdown.next_us = f->now_us;
}

static bool ledbat_alloc(struct sock *sk, const struct ledbat_params *params)
{
	struct ledbat_ca *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	ca->flow = kzalloc(sizeof(*ca->flow), GFP_NOWAIT | __GFP_NOWARN);
	if (!ca->flow)
		return false;
	ledbat_setup(sk, ca->flow, params);
	if (tp->data_segs_out && !tcp_in_slow_start(tp))
		ledbat_take_over(ca->flow);
	return true;
}

/* A flow begins, or comes from another congestion control. */
void ledbat_init(struct sock *sk)
{
	const struct ledbat_params params = ledbat_params_of(sk);
	struct ledbat_ca *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	BUILD_BUG_ON(sizeof(*ca) > ICSK_CA_PRIV_SIZE);
	if (!tp->data_segs_out)
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), LEDBAT_INIT_PKTS));
	if (!ledbat_alloc(sk, &params))
		return;
	if (params.mark)
		ca->flow->mark = lbe_mark_set(sk);
	if (params.pace)
		lbe_pacing_begin(sk);
}

/* Ask again for the memory that was not there: until it is, the least window,
 * whatever happens.
 */
static void ledbat_reinit(struct sock *sk)
{
	const struct ledbat_params params = ledbat_params_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ledbat_alloc(sk, &params)) {
		tcp_snd_cwnd_set(tp, params.min_pkts);
		WRITE_ONCE(tp->snd_ssthresh, params.min_pkts);
		return;
	}
	WRITE_ONCE(tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	ledbat_slowdown_init(&ledbat_of(sk)->slowdown);
}

/**
 * ledbat_heard() - the flow that an ACK is for
 * @sk: socket
 * @acked: packets newly acknowledged
 *
 * A time-out is recovered from by slow start, whatever is known of the delay:
 * without timestamps retransmissions tell none (Karn). The ACK of a Fast Open
 * comes before ledbat_init().
 *
 * Return: NULL: there is nothing for the law.
 */
struct ledbat *ledbat_heard(struct sock *sk, u32 acked)
{
	struct ledbat *f = ledbat_of(sk);

	if (!f) {
		if (inet_csk(sk)->icsk_ca_initialized)
			ledbat_reinit(sk);
		return NULL;
	}
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Loss &&
	    tcp_in_slow_start(tcp_sk(sk))) {
		tcp_slow_start(tcp_sk(sk), acked);
		return NULL;
	}
	return f->has_sample ? f : NULL;
}

/* May come twice, and without an open before. The window stays as it is; after
 * a freeze ssthresh is where it was, so the next congestion control grows back.
 */
void ledbat_release(struct sock *sk)
{
	struct ledbat_ca *ca = inet_csk_ca(sk);

	if (!ca->flow)
		return;
	if (ca->flow->host)
		ledbat_host_leave(ca->flow->host);
	lbe_mark_clear(sk, ca->flow->mark);
	lbe_rest_cancel(sk);
	if (ca->flow->params.pace)
		lbe_pacing_end(sk);
	if (ca->flow->rest_rtts)
		WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	kfree(ca->flow);
	ca->flow = NULL;
}

/* `ss -i` has names for the fields of a few in-tree controls only, so this goes
 * under dctcp's; Documentation/tcp_ledbat.md has the key. Read without the
 * socket lock: see struct ledbat_ca.
 */
size_t ledbat_get_info(struct sock *sk, u32 ext, int *attr,
		       union tcp_cc_info *info)
{
	const struct ledbat_ca *ca = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1) |
		     1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	info->dctcp.dctcp_enabled = 1;
	info->dctcp.dctcp_ce_state = READ_ONCE(ca->mode);
	info->dctcp.dctcp_alpha = READ_ONCE(ca->base_us);
	info->dctcp.dctcp_ab_ecn = READ_ONCE(ca->queue_us);
	info->dctcp.dctcp_ab_tot = READ_ONCE(ca->aim_us);
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}
