// SPDX-License-Identifier: GPL-2.0
/*
 * "ledbat" and "ledbatpp": TCP congestion controls that keep the queueing delay at a target.
 *
 *	ledbat    RFC 6817 (S. Shalunov, G. Hazel, J. Iyengar, M. Kuehlewind: Low
 *	          Extra Delay Background Transport, 2012), with the one-way delay
 *	ledbatpp  LEDBAT++ (P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo,
 *	          draft-irtf-iccrg-ledbat-plus-plus), with the round-trip time
 *
 * The laws are at the head of ledbat_law.h. These are the modes of a flow (T is the
 * target, q the queueing delay):
 *
 *	SLOW_START --q > 3/4 T, loss, ssthresh--> AVOID --due--> FREEZE --2 RTT--> RAMP
 *	     ^  ^                                  | ^ ^            | loss          |
 *	     |  +-- queue gone within 5 RTT -------+ | +------------+               |
 *	     +----- idle (from all)                  +------ ssthresh, q > T, loss -+
 *
 * Slowdowns (FREEZE, RAMP) are LEDBAT++'s; the pause after a slowdown is 9 times as long
 * as the slowdown. ledbat has a slowdown only if its base delay is about to expire and
 * was not measured again, if the round trip contradicts it (once a minute), if the
 * reverse path suddenly became shorter, or if the flow used another control before,
 * whose queue would become part of the base.
 *
 * Analysis beside TCP: A. J. Abu, S. Gordon, "Performance Analysis of LEDBAT in the
 * Presence of TCP-Newreno"; its law is paper=1, min_window=1, target_us=25000. Departures
 * (paper=1 removes those marked with *):
 *  - * the decrease is larger than the increase: the packets that a flow has in the queue
 *    beyond the target drain within a round trip (the RFC permits this by MAY);
 *  - slow start, which the RFC does not define, ends on delay with the window that the
 *    target allows, and continues if the queue was only a burst;
 *  - the window of a flow that it does not limit does not grow (TCP's own rule, in place
 *    of the RFC's clamp to the packets in flight, which limits long paths too much);
 *  - * if the buffer is not deeper than 1.7 targets, the flow uses a lower target;
 *  - * the window follows the reverse path's delay, so that the rate does not change;
 *  - * slowdowns of ledbat (above);
 *  - * at the least window a flow rests (pauses) between round trips: two packets a round
 *    trip are 6 % of a narrow path. It also rests after the second of two losses from a
 *    window of few packets: many flows may keep the queue so full that none measures base;
 *  - * a queue of up to an eighth of the target counts as empty: jitter does not slow growth;
 *  - * a delay that is constant for a minute at the least window is that of a longer path;
 *  - * pacing: a window that is sent at once is a queue at the bottleneck. Other flows wait
 *    in it, and the flow itself would attribute it to them;
 *  - ramps are standard slow start, not scaled by GAIN: at 1/6 they take 20 round
 *    trips to 50 packets; two slowdowns are at least a second apart, since nine times
 *    the duration of one is milliseconds on a short path, and routes do not change so
 *    often;
 *  - min_window=0: the least window follows the capacity, for an operator who wants
 *    background transfers to keep a part of the link beside TCP (share_permille).
 *
 * ledbat does not remove the advantage of a latecomer (ledbatpp does). Neither control
 * yields to TCP flows whose queue never reaches the target (AQM).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/module.h>

#include <lbe/param.h>

#include "ledbat.h"

/**
 * struct ledbat_capacity - capacity measured by all flows of a network namespace
 * @bytes: bytes that they delivered since @since_us
 * @since_us: start of the present interval, us
 * @rate: largest recent rate, bytes a second; 0 = none yet
 *
 * No lock: the flow whose cmpxchg of @since_us succeeds ends the interval, and only this flow
 * writes @rate.
 */
struct ledbat_capacity {
	atomic64_t bytes;
	atomic64_t since_us;
	u32 rate;
};

#define LBE_COUNTERS_FILE	"lbe_ledbat"
#define LBE_COUNTERS_OWN	struct ledbat_capacity
#include <lbe/control.h>

#define CREATE_TRACE_POINTS
#include "ledbat_trace.h"

/* Weight of a sample in the smoothed reverse delay: 1/8, as for srtt. If the weight is halved,
 * the noise of a coarse timestamp clock is lower, and changes are followed twice as late.
 */
#define LEDBAT_REVERSE_SHIFT	3
/* Least time between two base refreshes of ledbat, ms: one costs some ten round trips, 2 %
 * of a minute at 100 ms. If it is doubled, a wrong base is used for twice as long.
 */
#define LEDBAT_REFRESH_MS	60000U
/* A delay that is constant for this time, ms, is the path's: TCP's queue varies within a cycle
 * of cubic, 23 s at 1 Gbit/s and 200 ms. If it is halved, such a queue counts as the path's
 * delay; if it is doubled, the flow is slow for twice as long after the path became longer.
 * In the last quarter, from LOOK_MS on, rests are short, for more samples.
 */
#define LEDBAT_STEADY_MS	60000U
#define LEDBAT_STEADY_LOOK_MS	45000U
/* A delay is constant, and base is measured again, within this part of the target. */
#define LEDBAT_STEADY_SHIFT	2
/* Half of this, rounded down, is the largest ssthresh after a loss that counts as a small
 * window, packets: the window was 5 at most. If it is doubled, random losses of 1 % count as
 * those of many flows with small windows.
 */
#define LEDBAT_CROWD_PKTS	4U
/* Longest rest, RTT. 2 packets are then 1 % of a pipe and buffer that hold 11. If it is
 * doubled, they are half of that, and the flow notices twice as late that TCP has ended.
 */
#define LEDBAT_REST_MAX_RTTS	16

/* Interval of one measurement of the capacity, us: several round trips of any path. An
 * interval of twice this length or more contained idle time and is not used.
 */
#define LEDBAT_CAPACITY_US	USEC_PER_SEC
/* Each interval reduces the capacity by 2^-10: by half in 12 minutes. If the reduction is
 * doubled, the rate that a flow keeps beside TCP falls by a tenth each minute.
 */
#define LEDBAT_CAPACITY_SHIFT	10

/* ---- parameters ------------------------------------------------------------- */

/* A change of "paper" or "mark" applies to flows that start later, one of the others at once. */

/* RFC 6817 section 2.5 allows up to 100 ms; 25 ms is Abu and Gordon's value. If it is
 * doubled, other flows have twice the delay, and more noise is tolerated.
 */
LBE_PARAM(target_us, 25000, 1000, 100000,
	  "ledbat: queueing delay to settle at, us");
LBE_PARAM(gain_percent, 100, 1, 100, "ledbat: RFC 6817's GAIN, percent");
LBE_PARAM(share_permille, 50, 1, 500,
	  "ledbat: part of the capacity that a dynamic minimum window keeps for all flows of the host, permille");
LBE_PARAM(pp_target_us, 60000, 1000, 100000,
	  "ledbatpp: queueing delay to settle at, us");

LBE_PARAM(min_window, 2, 0, 64,
	  "ledbat: least window, packets; 0: it follows the capacity");

static bool round_trip;
module_param(round_trip, bool, 0644);
MODULE_PARM_DESC(round_trip, "ledbat: go by the round trip, not by the one-way delay (N)");

static bool paper;
module_param(paper, bool, 0644);
MODULE_PARM_DESC(paper, "both: the law as its document has it (N)");

u32 ledbat_target_us(const struct ledbat *f)
{
	return f->pp ? READ_ONCE(pp_target_us.value) : READ_ONCE(target_us.value);
}

/* The target, limited by the buffer's depth, us. */
static u32 ledbat_aim(const struct ledbat *f)
{
	return ledbat_flow_aim_us(f, ledbat_target_us(f));
}

/* Does the least window follow the capacity? */
static bool ledbat_dynamic(const struct ledbat *f)
{
	return !f->pp && !READ_ONCE(min_window.value);
}

/* Count the bytes that an ACK acknowledged. A host has a single capacity, that of its access
 * link; for flows with a narrower bottleneck the least window is too large, and losses reduce
 * their window.
 */
static void ledbat_measure_capacity(const struct sock *sk, u32 bytes)
{
	struct ledbat_capacity *c = &lbe_counters_of(sk)->own;
	u64 since_us = atomic64_read(&c->since_us);
	u64 span_us = tcp_clock_us() - since_us, rate;

	atomic64_add(bytes, &c->bytes);
	if (span_us < LEDBAT_CAPACITY_US ||
	    atomic64_cmpxchg(&c->since_us, since_us, since_us + span_us) != since_us)
		return;
	rate = div64_u64(atomic64_xchg(&c->bytes, 0) * USEC_PER_SEC, span_us);
	if (span_us < 2 * LEDBAT_CAPACITY_US)
		WRITE_ONCE(c->rate, max_t(u64, min_t(u64, rate, U32_MAX),
					  c->rate - (c->rate >> LEDBAT_CAPACITY_SHIFT)));
}

/* Least window, packets. */
static u32 ledbat_floor(const struct sock *sk, const struct ledbat *f)
{
	const struct lbe_counters *c = lbe_counters_of(sk);
	u32 pkts = f->pp ? LEDBAT_SLOWDOWN_PKTS : READ_ONCE(min_window.value);

	if (pkts)
		return pkts;
	return ledbat_floor_pkts(LEDBAT_SLOWDOWN_PKTS, LEDBAT_WINDOW_MAX_PKTS,
				 READ_ONCE(c->own.rate), READ_ONCE(share_permille.value),
				 atomic_read(&c->flows), lbe_srtt_us(tcp_sk(sk)),
				 max(tcp_sk(sk)->mss_cache, 1U));
}

/* ---- window and modes --------------------------------------------------------- */

/* Duration of @rtts round trips, ms, rounded up. */
static u32 ledbat_rtts_ms(const struct sock *sk, u32 rtts)
{
	return div_u64((u64)rtts * lbe_srtt_us(tcp_sk(sk)) + 999, USEC_PER_MSEC);
}

static void ledbat_store_window(struct sock *sk, struct ledbat *f,
				const struct ledbat_window *w)
{
	struct tcp_sock *tp = tcp_sk(sk);

	f->part_q32 = w->part_q32;
	tcp_snd_cwnd_set(tp, min(w->cwnd, tp->snd_cwnd_clamp));
}

static void ledbat_enter(struct sock *sk, struct ledbat *f, u8 mode)
{
	f->mode = mode;
	trace_ledbat_state(sk, f, LEDBAT_ENTERS);
}

static void ledbat_set_rest(struct sock *sk, struct ledbat *f, u8 rest_rtts)
{
	bool rests = rest_rtts, rested = f->rest_rtts;

	f->rest_rtts = rest_rtts;
	if (rests == rested)
		return;
	lbe_counters_ack(sk, rested, rests, 0);
	trace_ledbat_state(sk, f, rests ? LEDBAT_RESTS : LEDBAT_SENDS);
}

/* Slow start, or a slowdown, is over: continue with the law once the delays are those of
 * packets sent from now on.
 */
static void ledbat_begin_avoiding(struct sock *sk, struct ledbat *f)
{
	u32 now_ms = lbe_now_ms(sk);
	u64 pause_us;

	if (f->mode == LEDBAT_AVOID)
		return;
	f->holds = 1;
	f->round_end = tcp_sk(sk)->snd_nxt;
	ledbat_set_rest(sk, f, 0);
	if (f->mode == LEDBAT_SLOW_START) {
		/* A resumed slow start has a slowdown scheduled already. */
		if ((s32)(now_ms - f->next_ms) >= 0)
			f->next_ms = now_ms + ledbat_rtts_ms(sk, LEDBAT_SLOWDOWN_RTTS);
	} else {
		pause_us = (u64)(now_ms - f->began_ms) * USEC_PER_MSEC;
		pause_us = ledbat_slowdown_pause_us(pause_us, lbe_srtt_us(tcp_sk(sk)));
		f->next_ms = now_ms + (f->pp ? (u32)div_u64(pause_us, USEC_PER_MSEC) :
					       LEDBAT_REFRESH_MS);
	}
	ledbat_enter(sk, f, LEDBAT_AVOID);
}

/* The same, with window and ssthresh set to @cwnd. */
static void ledbat_avoid_from(struct sock *sk, struct ledbat *f, u32 cwnd)
{
	const struct ledbat_window w = { .cwnd = cwnd };

	ledbat_store_window(sk, f, &w);
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, cwnd);
	ledbat_begin_avoiding(sk, f);
}

/* ---- each ACK: samples and round trips ------------------------------------------ */

/* A round trip is over. If the queue that ended slow start is gone, it was a burst or noise,
 * and slow start is resumed. A ramp returns to the window from before the slowdown, so it
 * ends early only if all packets of a round trip met more than the target.
 */
static void ledbat_end_round(struct sock *sk, struct ledbat *f)
{
	if (f->resume_rounds && f->mode == LEDBAT_AVOID) {
		f->resume_rounds--;
		if (!f->long_seen) {
			f->resume_rounds = 0;
			WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
			ledbat_enter(sk, f, LEDBAT_SLOW_START);
		}
	}
	if (f->mode == LEDBAT_RAMP && f->long_seen && !f->short_seen)
		ledbat_avoid_from(sk, f, tcp_snd_cwnd(tcp_sk(sk)));
}

static void ledbat_begin_round(struct sock *sk, struct ledbat *f)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_una, f->round_end))
		return;
	f->round_end = tp->snd_nxt;
	f->holds = 0;
	ledbat_end_round(sk, f);
	f->new_round = 1;
	f->short_seen = 0;
	f->long_seen = 0;
}

/* Evaluate the delay of this ACK. Return: may the law use it? */
static bool ledbat_add_sample(struct sock *sk, struct ledbat *f,
			      const struct ack_sample *sample)
{
	struct lbe_delay_sample path;
	u32 aim_us = ledbat_aim(f);

	if (!lbe_hears(sk, &f->path, f->pp || READ_ONCE(round_trip), sample, &path))
		return false;
	if (path.rerouted && !f->pp && !f->paper)
		f->asked = 1;
	f->reverse_q3 += path.held_us - (f->reverse_q3 >> LEDBAT_REVERSE_SHIFT);
	f->queue_us = min(path.queue_us, LEDBAT_DELAY_MAX_US);
	if (!f->paper && ledbat_queue_empty(f->queue_us, ledbat_target_us(f)))
		f->queue_us = 0;
	if (f->path.peak_us)
		lbe_delay_lost(&f->path, path.delay_us);
	/* The receiver may have delayed the ACK of a lone packet: no evidence of a queue. */
	if (lbe_ack_is_lone(sk, sample) && f->queue_us > aim_us && !f->paper)
		return false;
	if (f->queue_us <= aim_us)
		f->short_seen = 1;
	if (!ledbat_queue_empty(f->queue_us, ledbat_target_us(f)))
		f->long_seen = 1;
	return true;
}

/* End slow start if the queue has grown too long. */
static void ledbat_stop_slow_start(struct sock *sk, struct ledbat *f,
				   const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 aim_us = ledbat_aim(f), cwnd = tcp_snd_cwnd(tp);

	if (f->mode != LEDBAT_SLOW_START || !tcp_in_slow_start(tp) ||
	    inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder ||
	    !ledbat_leaves_slow_start(f->queue_us, aim_us))
		return;
	f->resume_rounds = LEDBAT_RESUME_ROUNDS;
	ledbat_avoid_from(sk, f,
			  ledbat_exit_pkts(cwnd, sample->in_flight / max(tp->mss_cache, 1U),
					   lbe_delay_base_us(&f->path), f->queue_us,
					   aim_us, min(cwnd, LEDBAT_SLOWDOWN_PKTS)));
}

static void ledbat_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *f = inet_csk_ca(sk);

	if (!f->on)
		return;
	lbe_counters_ack(sk, f->rest_rtts, f->rest_rtts,
			 sample->pkts_acked * tp->mss_cache);
	if (ledbat_dynamic(f))
		ledbat_measure_capacity(sk, sample->pkts_acked * tp->mss_cache);
	ledbat_begin_round(sk, f);
	f->has_sample = ledbat_add_sample(sk, f, sample);
	if (f->has_sample)
		ledbat_stop_slow_start(sk, f, sample);
}

/* ---- slowdowns and slow start --------------------------------------------------- */

/* Does ledbat have to measure its base delay again? Yes if the base is about to expire, or
 * if the round trip contains a queue that the one-way delay does not. That is a queue of the
 * reverse path, or one of the forward path that a slow clock of the peer hides.
 */
static bool ledbat_base_doubtful(const struct sock *sk, const struct ledbat *f)
{
	u32 target = ledbat_target_us(f);

	return !f->paper &&
	       (f->reverse_q3 >> LEDBAT_REVERSE_SHIFT > target / 2 ||
		lbe_delay_base_fades(&f->path, target >> LEDBAT_STEADY_SHIFT,
				     lbe_now_ms(sk)));
}

static bool ledbat_slowdown_due(struct sock *sk, struct ledbat *f)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), now_ms = lbe_now_ms(sk);

	if (f->mode != LEDBAT_AVOID ||
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Open)
		return false;
	if (!f->asked && (s32)(now_ms - f->next_ms) < 0)
		return false;
	if (!f->asked && !f->pp && !ledbat_base_doubtful(sk, f)) {
		f->next_ms = now_ms;	/* or it would be in the future in 25 days */
		return false;
	}
	f->asked = 0;
	if (cwnd > LEDBAT_SLOWDOWN_SKIP)
		return true;
	/* At so small a window a slowdown would change nothing: postpone it. */
	f->next_ms = now_ms + ledbat_rtts_ms(sk, LEDBAT_SLOWDOWN_PAUSE *
						 LEDBAT_SLOWDOWN_RTTS);
	return false;
}

/* Begin or continue a slowdown. The freeze ends by time, independent of ACKs.
 * Return: is the window frozen?
 */
static bool ledbat_slow_down(struct sock *sk, struct ledbat *f)
{
	const struct ledbat_window frozen = { .cwnd = LEDBAT_SLOWDOWN_PKTS };
	u32 now_ms = lbe_now_ms(sk);

	if (ledbat_slowdown_due(sk, f)) {
		WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, tcp_snd_cwnd(tcp_sk(sk)));
		ledbat_store_window(sk, f, &frozen);
		f->began_ms = now_ms;
		f->next_ms = now_ms + ledbat_rtts_ms(sk, LEDBAT_SLOWDOWN_RTTS);
		ledbat_enter(sk, f, LEDBAT_FREEZE);
	}
	if (f->mode == LEDBAT_FREEZE && (s32)(now_ms - f->next_ms) >= 0)
		ledbat_enter(sk, f, LEDBAT_RAMP);
	return f->mode == LEDBAT_FREEZE;
}

/* One ACK in slow start or in a ramp: one packet more for each @divisor acknowledged ones.
 * Return: acknowledged packets that slow start did not use.
 */
static u32 ledbat_slow_start(struct sock *sk, struct ledbat *f, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat_window w = {
		.cwnd = tcp_snd_cwnd(tp),
		.part_q32 = f->part_q32,
	};
	u32 divisor = 1;

	if (!tcp_is_cwnd_limited(sk))
		return 0;
	if (f->pp && f->mode == LEDBAT_SLOW_START)
		divisor = ledbatpp_divisor(ledbat_target_us(f),
					   lbe_delay_base_us(&f->path));
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

/* ---- the law ------------------------------------------------------------------ */

/* Below the least window (after a loss, or if the least window grows) the window grows by one
 * packet a round trip, as Reno's does, whatever the delay is.
 */
static s64 ledbat_change_q32(const struct sock *sk, const struct ledbat *f,
			     const struct ledbat_window *w, u32 floor)
{
	u32 aim_us = ledbat_aim(f), target_us = ledbat_target_us(f);

	if (w->cwnd < floor)
		return 1LL << 32;
	if (f->pp)
		return ledbatpp_rate_q32(w, f->queue_us, aim_us,
					 ledbatpp_divisor(target_us,
							  lbe_delay_base_us(&f->path)),
					 LEDBAT_ONE_Q16);
	return ledbat_rate_q32(w, f->queue_us, aim_us, lbe_srtt_us(tcp_sk(sk)),
			       READ_ONCE(gain_percent.value) * LEDBAT_ONE_Q16 / 100,
			       f->paper ? 0 : LEDBAT_ONE_Q16);
}

/* Change of the window that makes up for the change of the reverse delay since the last ACK. */
static s64 ledbat_follow_reverse_q32(const struct sock *sk, struct ledbat *f,
				     const struct ledbat_window *w, u32 acked)
{
	u32 reverse_us = f->reverse_q3 >> LEDBAT_REVERSE_SHIFT;
	s32 change_us = reverse_us - f->reverse_felt_us;

	f->reverse_felt_us = reverse_us;
	if (f->pp || f->paper)
		return 0;
	return ledbat_reverse_q32(w, change_us, lbe_srtt_us(tcp_sk(sk)), acked);
}

/* At the least window: is a constant delay that of a longer path? Return: the rest before the
 * next window, round trips.
 */
static u32 ledbat_watch_path(struct sock *sk, struct ledbat *f, bool less)
{
	u32 now_ms = lbe_now_ms(sk);

	if (!less) {
		lbe_delay_unsteady(&f->path);
	} else if (lbe_delay_steady(&f->path, lbe_delay_base_us(&f->path) + f->queue_us,
				 ledbat_target_us(f) >> LEDBAT_STEADY_SHIFT,
				 LEDBAT_STEADY_MS, now_ms)) {
		f->queue_us = 0;
		f->path.last_us = 0;
		trace_ledbat_state(sk, f, LEDBAT_LONGER_PATH);
	}
	if (f->path.flat_samples &&
	    now_ms - f->path.flat_ms >= LEDBAT_STEADY_LOOK_MS)
		return min_t(u32, f->rest_rtts, 1);
	return f->rest_rtts;
}

/* Rest at the least window, and update the length of rests once a round trip. Return: does
 * the flow rest, so that the window does not change?
 */
static bool ledbat_rest(struct sock *sk, struct ledbat *f, bool least, bool less)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool empty;
	u32 rtts;

	if (f->paper || ledbat_dynamic(f) || !least ||
	    READ_ONCE(sk->sk_pacing_status) == SK_PACING_NONE) {
		lbe_delay_unsteady(&f->path);
		ledbat_set_rest(sk, f, 0);
		return false;
	}
	if (f->new_round) {
		/* Delay alone keeps the flow at the longest rest: halve the rest after losses. */
		if (less && f->rest_rtts == LEDBAT_REST_MAX_RTTS)
			f->path.crowd_rtts /= 2;
		empty = f->path.crowd_rtts <= 1 && !f->queue_us;
		ledbat_set_rest(sk, f, ledbat_rest_rtts(f->rest_rtts, less, empty,
							LEDBAT_REST_MAX_RTTS));
	}
	f->new_round = 0;
	rtts = ledbat_watch_path(sk, f, less);
	lbe_rest(sk, ledbat_rest_us(rtts, lbe_srtt_us(tp), hash_32(tp->snd_una, 32)));
	return f->rest_rtts;
}

static void ledbat_control(struct sock *sk, struct ledbat *f, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat_window w = {
		.cwnd = tcp_snd_cwnd(tp),
		.part_q32 = f->part_q32,
	};
	bool limited = tcp_is_cwnd_limited(sk);
	u32 floor = ledbat_floor(sk, f);
	s64 rate_q32 = ledbat_change_q32(sk, f, &w, floor);
	s64 follow_q32 = ledbat_follow_reverse_q32(sk, f, &w, acked);

	if (f->holds ||
	    ledbat_rest(sk, f, w.cwnd <= floor, f->queue_us > ledbat_aim(f)))
		return;
	if (rate_q32 < 0 || limited)
		ledbat_window_add(&w, ledbat_per_ack_q32(rate_q32, acked, &w), floor);
	if (follow_q32 < 0 || limited)
		ledbat_window_add(&w, follow_q32, floor);
	ledbat_store_window(sk, f, &w);
	/* A reduction lowers ssthresh too, or the window would return by slow start. */
	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh)
		WRITE_ONCE(tp->snd_ssthresh, tcp_snd_cwnd(tp));
}

static void ledbat_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *f = inet_csk_ca(sk);

	if (!f->on)
		return;
	/* Recovery from a time-out is slow start, whatever the delay is: without timestamps
	 * the ACKs of retransmissions give no delay (Karn).
	 */
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Loss && tcp_in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
		return;
	}
	if (!f->has_sample || ledbat_slow_down(sk, f))
		return;
	if (tcp_in_slow_start(tp))
		acked = ledbat_slow_start(sk, f, acked);
	else	/* after an idle time ssthresh may be the least window */
		ledbat_begin_avoiding(sk, f);
	if (acked)
		ledbat_control(sk, f, acked);
}

/* Called when TCP is about to send. Packets that pacing would send far apart are sent
 * together, as receivers delay the ACK of a single one. Return: the least size of an
 * aggregate, packets; TCP's default.
 */
static u32 ledbat_min_tso_segs(struct sock *sk)
{
	const struct ledbat *f = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (f->on && !f->paper &&
	    !ledbat_paces(tcp_snd_cwnd(tp), lbe_srtt_us(tp)))
		WRITE_ONCE(sk->sk_pacing_rate, READ_ONCE(sk->sk_max_pacing_rate));
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

/* ---- losses, idle periods --------------------------------------------------------- */

/* In a freeze ssthresh holds the window from before the slowdown, from which the lost packets
 * were sent: halve that one.
 */
static u32 ledbat_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct ledbat *f = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (f->mode == LEDBAT_FREEZE)
		cwnd = max(cwnd, tp->snd_ssthresh);
	return ledbat_loss_pkts(cwnd, LEDBAT_SLOWDOWN_PKTS);
}

/* A loss at a queue clearly shorter than the known buffer does not change its known depth. */
static void ledbat_lost(struct ledbat *f)
{
	u32 range_us = lbe_delay_range_us(&f->path);

	if (f->queue_us >= range_us - range_us / 4)
		lbe_delay_lost(&f->path, lbe_delay_base_us(&f->path) + f->queue_us);
}

/* A loss was repaired. A single loss from a window of few packets may be random. A second one,
 * if the window was not larger in between, is caused by many flows with small windows (a crowd):
 * rest, each time twice as long. The base may contain the queue of these flows, so a low delay
 * does not halve such a rest.
 */
static void ledbat_crowd(struct sock *sk, struct ledbat *f)
{
	u8 *rtts = &f->path.crowd_rtts;

	if (f->paper || ledbat_dynamic(f))
		return;
	if (tcp_sk(sk)->snd_ssthresh > LEDBAT_CROWD_PKTS / 2) {
		*rtts = 0;
		return;
	}
	*rtts = ledbat_rest_rtts(*rtts, true, false, 2 * LEDBAT_REST_MAX_RTTS);
	if (*rtts > 1)	/* the window after a loss may be above the least one */
		tcp_snd_cwnd_set(tcp_sk(sk), min(tcp_snd_cwnd(tcp_sk(sk)), ledbat_floor(sk, f)));
	ledbat_set_rest(sk, f, max(f->rest_rtts, *rtts / 2));
}

static void ledbat_set_state(struct sock *sk, u8 new_state)
{
	u8 old_state = inet_csk(sk)->icsk_ca_state;
	struct ledbat *f = inet_csk_ca(sk);
	u32 full_us = f->path.full_us;

	if (!f->on)
		return;
	if (old_state == TCP_CA_Recovery && new_state < TCP_CA_Recovery) {
		ledbat_crowd(sk, f);
		lbe_delay_repaired(&f->path);
		if (f->path.full_us != full_us)
			trace_ledbat_state(sk, f, LEDBAT_LEARNT);
	}
	if (new_state < TCP_CA_CWR)
		return;
	f->part_q32 = 0;
	f->resume_rounds = 0;
	lbe_delay_unsteady(&f->path);
	lbe_delay_loss(&f->path);
	f->path.peak_us = 0;
	if (new_state == TCP_CA_Recovery)
		ledbat_lost(f);
	ledbat_begin_avoiding(sk, f);
}

static u32 ledbat_undo_cwnd(struct sock *sk)
{
	struct ledbat *f = inet_csk_ca(sk);

	if (f->on) {
		lbe_delay_undone(&f->path);
		f->path.crowd_rtts = 0;
	}
	return tcp_reno_undo_cwnd(sk);
}

/* The window after an idle time, or before the first packet. */
static void ledbat_first_window(struct tcp_sock *tp)
{
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), LEDBAT_SLOWDOWN_PKTS));
}

/* Has no data been sent yet, except one packet of Fast Open? */
static bool ledbat_is_new(const struct tcp_sock *tp)
{
	return tp->data_segs_out <= 1;
}

/* Is the present idle time a rest? It may exceed the rest by up to a round trip. */
static bool ledbat_rests(const struct sock *sk, const struct ledbat *f)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return f->rest_rtts && tp->tcp_clock_cache < tp->tcp_wstamp_ns +
			       (u64)lbe_srtt_us(tp) * NSEC_PER_USEC;
}

/* The first packet after an idle time is sent: the state of a slowdown and earlier samples
 * are no longer valid.
 */
static void ledbat_tx_start(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *f = inet_csk_ca(sk);

	if (!f->on)
		return;
	/* If init ran in SYN_SENT, TCP has set its own initial window since then. */
	if (ledbat_is_new(tp))
		ledbat_first_window(tp);
	if (tcp_jiffies32 - tp->lsndtime <= inet_csk(sk)->icsk_rto || ledbat_rests(sk, f))
		return;
	ledbat_first_window(tp);
	f->part_q32 = 0;
	f->path.last_us = 0;
	f->resume_rounds = 0;
	f->next_ms = lbe_now_ms(sk);
	ledbat_set_rest(sk, f, 0);
	ledbat_enter(sk, f, LEDBAT_SLOW_START);
}

/* ---- control ------------------------------------------------------------------ */

/* A flow that used another congestion control has packets of that control in the queue. It
 * starts with a slowdown; else that queue would become part of the base delay.
 */
static void ledbat_take_over(struct sock *sk, struct ledbat *f)
{
	struct tcp_sock *tp = tcp_sk(sk);

	f->mode = LEDBAT_AVOID;
	f->asked = !f->paper;
	WRITE_ONCE(tp->snd_ssthresh, min(tp->snd_ssthresh, tcp_snd_cwnd(tp)));
}

static void __ledbat_init(struct sock *sk, bool pp)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *f = inet_csk_ca(sk);

	memset(f, 0, sizeof(*f));
	lbe_delay_init(&f->path, lbe_now_ms(sk));
	f->pp = pp;
	f->paper = READ_ONCE(paper);
	f->round_end = tp->snd_nxt;
	f->next_ms = lbe_now_ms(sk);
	if (ledbat_is_new(tp))
		ledbat_first_window(tp);
	else
		ledbat_take_over(sk, f);
	f->mark = lbe_control_begin(sk, !f->paper);
	f->on = 1;
}

static void ledbat_init(struct sock *sk)
{
	__ledbat_init(sk, false);
}

static void ledbatpp_init(struct sock *sk)
{
	__ledbat_init(sk, true);
}

/* May be called twice, or without init. The next control raises a window left by a freeze. */
static void ledbat_release(struct sock *sk)
{
	struct ledbat *f = inet_csk_ca(sk);

	if (!f->on)
		return;
	lbe_control_end(sk, !f->paper, f->rest_rtts, f->mark);
	f->on = 0;
}

/* Called without the socket lock. */
static size_t ledbat_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	const struct ledbat *f = inet_csk_ca(sk);

	return lbe_bbr_info(sk, ledbat_get_info, lbe_delay_base_us(&f->path),
			    READ_ONCE(f->rest_rtts), ext, attr, info);
}

LBE_DEFINE_TX_START(ledbat_cwnd_event, ledbat_tx_start)

#define LEDBAT_OPS(_name, _init) {					\
	.flags		= TCP_CONG_NON_RESTRICTED,			\
	.init		= _init,					\
	.release	= ledbat_release,				\
	.ssthresh	= ledbat_ssthresh,				\
	.cong_avoid	= ledbat_cong_avoid,				\
	.set_state	= ledbat_set_state,				\
	.pkts_acked	= ledbat_pkts_acked,				\
	.min_tso_segs	= ledbat_min_tso_segs,				\
	.undo_cwnd	= ledbat_undo_cwnd,				\
	.get_info	= ledbat_get_info,				\
	.owner		= THIS_MODULE,					\
	.name		= _name,					\
	LBE_TX_START(ledbat_cwnd_event, ledbat_tx_start)		\
}

static struct tcp_congestion_ops ledbat_ops __read_mostly =
	LEDBAT_OPS("ledbat", ledbat_init);

static struct tcp_congestion_ops ledbatpp_ops __read_mostly =
	LEDBAT_OPS("ledbatpp", ledbatpp_init);

static struct tcp_congestion_ops *const ledbat_controls[] = { &ledbat_ops, &ledbatpp_ops };

static int __init ledbat_module_init(void)
{
	BUILD_BUG_ON(sizeof(struct ledbat) > ICSK_CA_PRIV_SIZE);
	return lbe_register(ledbat_controls, ARRAY_SIZE(ledbat_controls));
}

static void __exit ledbat_module_exit(void)
{
	lbe_unregister(ledbat_controls, ARRAY_SIZE(ledbat_controls));
}

module_init(ledbat_module_init);
module_exit(ledbat_module_exit);

MODULE_AUTHOR("LBE transport project");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_DESCRIPTION("LEDBAT (RFC 6817) and LEDBAT++: TCP congestion controls for background traffic");
MODULE_ALIAS("tcp_ledbatpp");
