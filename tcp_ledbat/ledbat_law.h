/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of LEDBAT and LEDBAT++: pure functions on integers.
 *
 * LEDBAT (RFC 6817, section 2.4.2), W in packets, q the queueing delay:
 *
 *	q	= min(delays of the last round trip) - min(delays of 10 minutes)
 *	dW/RTT	= GAIN (T - q) / T				q <= T
 *	dW/RTT	= - min(W / 2, max(GAIN (q - T) / T, D W (q - T) / RTT))   q > T
 *	W	= max(min(W, flight + ALLOWED_INCREASE), MIN_CWND)
 *
 * D W (q - T) / RTT is D times the packets this flow keeps in the queue beyond
 * the target: with D = 0 the decrease is the RFC's own, with D = 1 (default)
 * the excess goes within one round trip at any rate. The RFC permits a higher
 * gain for the decrease. Abu and Gordon write G (T - q) / W for each ACK, with G = 40
 * per second: G T = 40 * 0.025 = 1 is GAIN.
 *
 * LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus, sections 4.1 to 4.4):
 *
 *	GAIN	= 1 / min(16, ceil(2 T / base))
 *	dW/RTT	= GAIN						q <= T
 *	dW/RTT	= max(GAIN - C W (q / T - 1), -W / 2)		q > T
 *
 * Changes of W are 32.32 fixed point and the part below a packet is kept, so
 * nothing is lost to rounding: one unit is 2^-32 packet an ACK.
 */
#ifndef _LEDBAT_LAW_H
#define _LEDBAT_LAW_H

#include <lbe/arith.h>

/* Q16 stands for 1. */
#define LEDBAT_ONE_Q16		(1U << 16)

/* Longest delay that the arithmetic takes at its word, us: 67 s, above any
 * RTO's worth. Longer ones are cut; 2^26 keeps all products below 2^63.
 */
#define LEDBAT_DELAY_MAX_US	(1U << 26)

/* Largest window that the arithmetic takes at its word, packets. */
#define LEDBAT_WINDOW_MAX_PKTS	(1U << 20)

/* RFC 6817 section 2.5: TARGET MUST NOT exceed 100 ms. */
#define LEDBAT_TARGET_MAX_US	100000U

/* Leave slow start when the queue is above 3/4 of the target (LEDBAT++ 4.1;
 * the RFC leaves slow start open). Higher: more packets in the queue by the
 * time the flow knows. Lower: noise ends slow start.
 */
#define LEDBAT_EXIT_NUM		3U
#define LEDBAT_EXIT_DEN		4U

/* LEDBAT++ 4.2: GAIN is at least 1/16. */
#define LEDBATPP_DIVISOR_MAX	16U

/**
 * struct ledbat_window - congestion window with the part below a packet
 * @cwnd: packets
 * @part_q32: 2^-32 packets on top of them
 */
struct ledbat_window {
	u32 cwnd;
	u32 part_q32;
};

/* Queueing delay, us, cut to what the arithmetic takes. */
static inline u32 ledbat_queue_us(u32 delay_us, u32 base_us)
{
	if (delay_us <= base_us)
		return 0;
	return min(delay_us - base_us, LEDBAT_DELAY_MAX_US);
}

/* W in Q16, cut to what the arithmetic takes; at least one packet. */
static inline u64 ledbat_window_q16(const struct ledbat_window *w)
{
	u64 w_q16 = ((u64)w->cwnd << 16) | (w->part_q32 >> 16);

	return clamp_t(u64, w_q16, LEDBAT_ONE_Q16,
		       (u64)LEDBAT_WINDOW_MAX_PKTS << 16);
}

/**
 * ledbat_rate_q32() - change of the window over one round trip, RFC 6817
 * @w: window
 * @queue_us: queueing delay q, us
 * @target_us: target T, us, 1 to LEDBAT_TARGET_MAX_US
 * @rtt_us: round-trip time, us; 0 is taken for 1
 * @gain_q16: GAIN, at most LEDBAT_ONE_Q16
 * @decrease_q16: D, at most LEDBAT_ONE_Q16; 0 = the RFC's own decrease
 *
 * Return: packets in Q32, between minus half the window and one packet.
 */
static inline s64 ledbat_rate_q32(const struct ledbat_window *w, u32 queue_us,
				  u32 target_us, u32 rtt_us, u32 gain_q16,
				  u32 decrease_q16)
{
	u64 w_q16 = ledbat_window_q16(w);
	u64 linear_q32, share_q16, excess_q32;
	u32 over_us;

	queue_us = min(queue_us, LEDBAT_DELAY_MAX_US);
	if (queue_us <= target_us)	/* 2^16 * 2^17 * 2^16 */
		return div_u64((u64)gain_q16 * (target_us - queue_us) << 16,
			       target_us);

	over_us = queue_us - target_us;
	/* 2^16 * 2^26 * 2^16 */
	linear_q32 = div_u64((u64)gain_q16 * over_us << 16, target_us);
	/* q - T above a round trip is the false delay of a stalled ACK */
	share_q16 = div_u64((u64)over_us << 16, max(rtt_us, 1U));
	share_q16 = min_t(u64, share_q16, LEDBAT_ONE_Q16);
	/* 2^36 * 2^16, then D */
	excess_q32 = (w_q16 * share_q16 >> 16) * decrease_q16;

	return -(s64)min_t(u64, max_t(u64, linear_q32, excess_q32),
			   w_q16 << 15);
}

/**
 * ledbatpp_divisor() - 1 / GAIN of LEDBAT++
 * @target_us: target, us
 * @base_us: base round-trip time, us; 0 = not known
 *
 * A short path doubles its window many times while the queue of a long one
 * grows; GAIN takes that advantage away. Return: 1 to LEDBATPP_DIVISOR_MAX.
 */
static inline u32 ledbatpp_divisor(u32 target_us, u32 base_us)
{
	u64 twice_us = 2ULL * target_us;

	if (!base_us)
		return LEDBATPP_DIVISOR_MAX;
	return clamp_t(u64, div_u64(twice_us + base_us - 1, base_us),
		       1, LEDBATPP_DIVISOR_MAX);
}

/**
 * ledbatpp_rate_q32() - change of the window over one round trip, LEDBAT++ 4.3
 * @w: window
 * @queue_us: queueing delay q, us
 * @target_us: target T, us, not 0
 * @divisor: 1 / GAIN
 * @constant_q16: C, at most LEDBAT_ONE_Q16 (recommended)
 *
 * Return: packets in Q32, between minus half the window and GAIN.
 */
static inline s64 ledbatpp_rate_q32(const struct ledbat_window *w, u32 queue_us,
				    u32 target_us, u32 divisor, u32 constant_q16)
{
	u64 w_q16 = ledbat_window_q16(w);
	s64 gain_q32 = div_u64(1ULL << 32, divisor);
	u64 over_q16, less_q32;

	queue_us = min(queue_us, LEDBAT_DELAY_MAX_US);
	if (queue_us <= target_us)
		return gain_q32;

	/* Over twice the target the half of the window is reached anyway. */
	over_q16 = div_u64((u64)(queue_us - target_us) << 16, target_us);
	over_q16 = min_t(u64, over_q16, 4 * LEDBAT_ONE_Q16);
	less_q32 = (w_q16 * over_q16 >> 16) * constant_q16;	/* < 2^54 */

	return max_t(s64, gain_q32 - (s64)less_q32, -(s64)(w_q16 << 15));
}

/**
 * ledbat_per_ack_q32() - the share of a round trip's change that ACKed packets earn
 * @rate_q32: change over one round trip, packets in Q32
 * @acked: packets newly acknowledged
 * @w: window
 *
 * A window's worth of packets makes a round trip; one ACK earns no more.
 */
static inline s64 ledbat_per_ack_q32(s64 rate_q32, u32 acked,
				     const struct ledbat_window *w)
{
	u64 w_q16 = ledbat_window_q16(w);
	u64 acked_q16 = min_t(u64, (u64)acked << 16, w_q16);
	u32 share_q28 = div64_u64(acked_q16 << 26, w_q16 >> 2);
	u64 size_q32 = mul_u64_u32_shr(rate_q32 < 0 ? -rate_q32 : rate_q32,
				       share_q28, 28);

	return rate_q32 < 0 ? -(s64)size_q32 : (s64)size_q32;
}

/**
 * ledbat_reverse_q32() - change of the window that keeps the rate as the reverse delay changes
 * @w: window
 * @change_us: how much longer ACKs take than at the last call, us
 * @rtt_us: round-trip time, us; 0 is taken for 1
 * @acked: packets newly acknowledged
 *
 * A queue on the way back makes the round trip longer, hence the same window a
 * lower rate; as it goes, the window's packets move into the forward queue at
 * once. One packet a round trip is slower than other people's queues. With
 * dW / W = d(reverse) / RTT the rate, and so the forward queue, stays.
 *
 * Return: packets in Q32, up at most one for each packet acknowledged (slow
 * start's pace), down at most half the window.
 */
static inline s64 ledbat_reverse_q32(const struct ledbat_window *w, s32 change_us,
				     u32 rtt_us, u32 acked)
{
	u64 w_q16 = ledbat_window_q16(w);
	u64 size_us = change_us < 0 ? -(s64)change_us : change_us;
	u64 share_q16 = div_u64(min_t(u64, size_us, LEDBAT_DELAY_MAX_US) << 16,
				max(rtt_us, 1U));
	u64 size_q32 = w_q16 * min_t(u64, share_q16, LEDBAT_ONE_Q16 / 2);

	if (change_us < 0)
		return -(s64)size_q32;
	return min_t(u64, size_q32, (u64)acked << 32);
}

/**
 * ledbat_window_add() - change the window, keeping the part below a packet
 * @w: window
 * @delta_q32: packets in Q32, less than 2^31 packets
 * @floor: least window, packets; a window below it is not lowered further
 */
static inline void ledbat_window_add(struct ledbat_window *w, s64 delta_q32,
				     u32 floor)
{
	u64 now_q32 = ((u64)w->cwnd << 32) | w->part_q32;
	u64 least_q32 = (u64)min(floor, w->cwnd) << 32;

	if (delta_q32 < 0 && (now_q32 < least_q32 - delta_q32))
		now_q32 = least_q32;
	else
		now_q32 += delta_q32;
	w->cwnd = now_q32 >> 32;
	w->part_q32 = (u32)now_q32;
}

/**
 * ledbat_clamp() - steps 5 and 6 of RFC 6817's ACK processing
 * @w: window
 * @flight: most packets in flight of late, before the ACK took its own off
 * @allowed_increase: packets
 * @floor: MIN_CWND, packets: wins over the clamp
 */
static inline void ledbat_clamp(struct ledbat_window *w, u32 flight,
				u32 allowed_increase, u32 floor)
{
	u32 most = max(flight + allowed_increase, floor);

	if (w->cwnd >= most) {
		w->cwnd = most;
		w->part_q32 = 0;
	}
	if (w->cwnd < floor) {
		w->cwnd = floor;
		w->part_q32 = 0;
	}
}

/* A loss halves, and never raises, the window (RFC 6817 section 2.4.2). */
static inline u32 ledbat_loss_pkts(u32 cwnd, u32 floor)
{
	return min(cwnd, max(cwnd / 2, floor));
}

/* Is the queue long enough to end slow start? */
static inline bool ledbat_leaves_slow_start(u32 queue_us, u32 target_us)
{
	return (u64)queue_us * LEDBAT_EXIT_DEN > (u64)target_us * LEDBAT_EXIT_NUM;
}

/* HyStart++ (RFC 9406 section 4.2): if the queue that ended slow start is gone
 * within so many round trips, it was a burst or noise, and slow start goes on.
 */
#define LEDBAT_RESUME_ROUNDS	5U
/* "Gone", and "empty" elsewhere: at most this part of the target. */
#define LEDBAT_EMPTY_SHIFT	3

/* Is the queue as good as empty? Jitter adds some delay to an empty one. */
static inline bool ledbat_queue_empty(u32 queue_us, u32 target_us)
{
	return queue_us <= target_us >> LEDBAT_EMPTY_SHIFT;
}

/**
 * struct ledbat_probe - what slow start learns of the link
 * @sent_pkts: in flight when the packet just ACKed was sent; 0 = not known
 * @served_pkts: delivered since the queue began to build
 * @span_us: in that time, us; 0 = not known
 */
struct ledbat_probe {
	u32 sent_pkts;
	u32 served_pkts;
	u32 span_us;
};

/* Fewer packets than this tell no rate. */
#define LEDBAT_PROBE_LEAST_PKTS	4U

/**
 * ledbat_exit_pkts() - window with which slow start ends on delay
 * @cwnd: window now, packets
 * @probe: what is known of the link
 * @base_us: base delay, us
 * @queue_us: queue, us
 * @target_us: target, us
 * @floor: least window, packets
 *
 * While there is a queue the link serves at its rate C, so C (base + T) is the
 * window that the target allows. What slow start added beyond that since the
 * packet now ACKed was sent is yet to be felt; it goes at once. C is measured
 * over the time since the queue began to build, and is at least what the
 * packets in flight at that packet's departure achieved: flight / (base + q).
 *
 * Return: packets, at most @cwnd.
 */
static inline u32 ledbat_exit_pkts(u32 cwnd, const struct ledbat_probe *probe,
				   u32 base_us, u32 queue_us, u32 target_us,
				   u32 floor)
{
	u64 allowed_us = (u64)base_us + target_us;
	u64 fits = 0, served = 0;

	if (probe->sent_pkts)
		fits = div64_u64(probe->sent_pkts * allowed_us,
				 max_t(u64, (u64)base_us + queue_us, 1));
	if (probe->span_us && probe->served_pkts >= LEDBAT_PROBE_LEAST_PKTS)
		served = div_u64(probe->served_pkts * allowed_us, probe->span_us);
	if (!probe->sent_pkts && !served)
		return cwnd;
	fits = max(fits, served);
	return min_t(u64, cwnd, max_t(u64, fits, floor));
}

/**
 * ledbat_rto_ssthresh_pkts() - slow start threshold after a time-out
 * @plain: what RFC 5681 gives, packets
 * @good: largest window of late that kept the queue below the target, packets
 * @queue_us: latest queueing delay, us
 * @target_us: target, us
 *
 * With an empty queue the time-out was no sign of a full path, and half of
 * what the path is known to carry is not more than TCP would take there: it
 * saves minutes of one packet a round trip. Slow start still leaves on delay.
 */
static inline u32 ledbat_rto_ssthresh_pkts(u32 plain, u32 good, u32 queue_us,
					   u32 target_us)
{
	if (ledbat_leaves_slow_start(queue_us, target_us))
		return plain;
	return max(plain, good / 2);
}

/*
 * Rest (a departure): the least window over more than one round trip.
 *
 * Two packets a round trip are a rate of their own, and on a narrow path a large
 * one: 5 % where pipe and buffer hold 40 packets. While the law asks for less
 * than the least window, each window rests twice as long as the one before it,
 * and a delay with which the law asks for more halves that again:
 *
 *	R = 0, 1, 2, 4 ... most		rate = W_min / ((1 + R) RTT)
 *
 * So the window itself stays RFC 6817's, 2 packets, which an ACK answers at
 * once; and a short queue between two of TCP's halvings, which is gone before
 * R is 0, does not make the flow grow.
 */
static inline u32 ledbat_rest_rtts(u32 rest, bool less, u32 most)
{
	return less ? min(max(2 * rest, 1U), most) : rest / 2;
}

/* A rest is no longer than this, us: sch_fq drops what is due in 10 s. */
#define LEDBAT_REST_MAX_US	4000000U

/**
 * ledbat_rest_us() - how long the next window waits
 * @rest: R
 * @rtt_us: round-trip time, us
 * @noise: any number
 *
 * Up to a half is taken off at random: at a fixed interval a flow can fall into
 * step with TCP's halvings and find the same queue each time.
 *
 * Return: us, from half of R round trips to all of them.
 */
static inline u32 ledbat_rest_us(u32 rest, u32 rtt_us, u32 noise)
{
	u32 most_us = min_t(u64, (u64)rest * rtt_us, LEDBAT_REST_MAX_US);

	return most_us - ((u64)(most_us / 2) * noise >> 32);
}

/* A packet on its own is acknowledged late: receivers wait 40 ms and more for a
 * second one, which looks like a queue. So packets that pacing would send further
 * apart than half of that leave together, us.
 */
#define LEDBAT_PACE_GAP_US	20000U

/* Are the packets of a window close enough for pacing? */
static inline bool ledbat_paces(u32 cwnd, u32 rtt_us)
{
	return (u64)cwnd * LEDBAT_PACE_GAP_US >= rtt_us;
}

/*
 * A path that became longer (a departure) looks like a queue for as long as the
 * base delay holds. Queues of others move, TCP's at least as it halves; one that
 * stood still for a minute, in which this flow sent its least and lost nothing,
 * belongs to the path. In the last quarter of that minute the flow looks often.
 */
#define LEDBAT_STEADY_US	(60ULL * 1000000)
#define LEDBAT_STEADY_LOOK_US	(45ULL * 1000000)
/* "Stood still": within this part of the target. A base that falls by more is
 * another path's.
 */
#define LEDBAT_STEADY_SHIFT	2

/**
 * struct ledbat_steady - for how long a delay stood still
 * @since_us: from then on, us; 0 = not watched
 * @least_us: least of the delays since, us
 * @most_us: largest of them, us
 */
struct ledbat_steady {
	u64 since_us;
	u32 least_us;
	u32 most_us;
};

/* Is it time to look often? */
static inline bool ledbat_steady_looks(const struct ledbat_steady *s, u64 now_us)
{
	return s->since_us && now_us - s->since_us >= LEDBAT_STEADY_LOOK_US;
}

/* Add a delay. Return: has it stood still for LEDBAT_STEADY_US? */
static inline bool ledbat_steady_add(struct ledbat_steady *s, u64 now_us,
				     u32 delay_us, u32 target_us)
{
	u32 least_us = min(s->least_us, delay_us);
	u32 most_us = max(s->most_us, delay_us);

	if (!s->since_us || most_us - least_us > target_us >> LEDBAT_STEADY_SHIFT) {
		s->since_us = now_us;
		s->least_us = delay_us;
		s->most_us = delay_us;
		return false;
	}
	s->least_us = least_us;
	s->most_us = most_us;
	return now_us - s->since_us >= LEDBAT_STEADY_US;
}

/*
 * Current delay: the last samples, none older than a round trip.
 */
#define LEDBAT_FILTER_MIN	4U	/* RFC 6817 section 2.5: at least 4 */
#define LEDBAT_FILTER_MAX	32U

/**
 * struct ledbat_filter - ring of delay samples
 * @at_us: when each was taken, us
 * @delay_us: the samples, us
 * @nr: how many are in use, 0 to @size
 * @next: where the next one goes
 * @size: LEDBAT_FILTER_MIN to LEDBAT_FILTER_MAX
 */
struct ledbat_filter {
	u64 at_us[LEDBAT_FILTER_MAX];
	u32 delay_us[LEDBAT_FILTER_MAX];
	u8 nr;
	u8 next;
	u8 size;
};

static inline void ledbat_filter_init(struct ledbat_filter *f, u32 size)
{
	f->nr = 0;
	f->next = 0;
	f->size = clamp(size, LEDBAT_FILTER_MIN, LEDBAT_FILTER_MAX);
}

static inline void ledbat_filter_add(struct ledbat_filter *f, u64 now_us,
				     u32 delay_us)
{
	f->at_us[f->next] = now_us;
	f->delay_us[f->next] = delay_us;
	f->next = f->next + 1U < f->size ? f->next + 1 : 0;
	if (f->nr < f->size)
		f->nr++;
}

/**
 * ledbat_filter_min() - least of the samples that are young enough
 * @f: ring
 * @now_us: time, us
 * @age_us: oldest sample to be heard, us: the round-trip time
 * @delay_us: out, us
 *
 * Return: how many these are; @delay_us is not written if there are none.
 */
static inline u32 ledbat_filter_min(const struct ledbat_filter *f, u64 now_us,
				    u32 age_us, u32 *delay_us)
{
	u32 least = U32_MAX;
	u32 young = 0;
	u32 i;

	for (i = 0; i < f->nr; i++) {
		if (now_us - f->at_us[i] > age_us)
			continue;
		young++;
		least = min(least, f->delay_us[i]);
	}
	if (young)
		*delay_us = least;
	return young;
}

/*
 * Depth of the buffer, learnt from own losses (a departure from the RFC).
 *
 * Where the buffer is about as deep as the target, LEDBAT parks the queue just
 * under full: its own packets replace those that leave, so the TCP flow's
 * additional ones are dropped, for ever. A loss at a delay near the largest
 * one seen means a full buffer; the flow then aims at a part of that delay,
 * and TCP finds room to raise the delay above the target, as the RFC has it.
 */

/* Losses at less than this part of the target are not taken for a full buffer
 * (random loss, AQM): they halve the window as any other.
 */
#define LEDBAT_DEPTH_MIN_SHIFT	5

/**
 * struct ledbat_depth - what is known of the buffer
 * @full_us: queueing delay of the full buffer, us; 0 = not known
 * @until_us: forget it then, us
 */
struct ledbat_depth {
	u32 full_us;
	u64 until_us;
};

/**
 * ledbat_depth_on_loss() - learn from a loss
 * @d: state
 * @now_us: time, us
 * @peak_us: largest filtered queueing delay of the last two round trips, us, of
 *	at least LEDBAT_FILTER_MIN samples each (fewer do not hide a delayed ACK)
 * @target_us: target as set, us
 * @memory_us: for how long to remember, us
 *
 * Return: was it taken for a full buffer?
 */
static inline bool ledbat_depth_on_loss(struct ledbat_depth *d, u64 now_us,
					u32 peak_us, u32 target_us, u64 memory_us)
{
	if (d->full_us && now_us >= d->until_us)
		d->full_us = 0;
	if (peak_us < target_us >> LEDBAT_DEPTH_MIN_SHIFT)
		return false;
	/* A buffer known to be deeper did not fill at this delay. */
	if (peak_us < d->full_us - d->full_us / 4)
		return false;
	d->full_us = peak_us;
	d->until_us = now_us + memory_us;
	return true;
}

/**
 * ledbat_depth_target_us() - target in view of the buffer's depth
 * @d: state
 * @now_us: time, us
 * @target_us: target as set, us
 * @percent: part of the depth to aim at; 0 = leave the target alone
 *
 * Return: us, from 1/32 of @target_us to @target_us.
 */
static inline u32 ledbat_depth_target_us(const struct ledbat_depth *d, u64 now_us,
					 u32 target_us, u32 percent)
{
	u32 part_us;

	if (!percent || !d->full_us || now_us >= d->until_us)
		return target_us;
	part_us = div_u64((u64)d->full_us * percent, 100);
	return clamp(part_us, (target_us >> LEDBAT_DEPTH_MIN_SHIFT) + 1, target_us);
}

/*
 * Slowdowns (LEDBAT++ 4.4): hold two packets for two round trips, so that the
 * queue empties and every flow through it reads its base delay anew, then
 * slow-start back to where it was.
 */
#define LEDBAT_SLOWDOWN_PKTS	2U	/* window meanwhile */
#define LEDBAT_SLOWDOWN_RTTS	2U	/* how long */
#define LEDBAT_SLOWDOWN_SKIP	4U	/* at or below so many packets it would change nothing */
#define LEDBAT_SLOWDOWN_PAUSE	9U	/* next after so many times its duration: 10 % of time */
/* Two slowdowns are at least so far apart, us. Nine times a duration of a LAN
 * is milliseconds, and base delays do not change that fast.
 */
#define LEDBAT_SLOWDOWN_LEAST_US	1000000U
#define LEDBAT_NEVER_US		U64_MAX

enum ledbat_mode {
	LEDBAT_SLOW_START,	/* first slow start: may leave on delay */
	LEDBAT_AVOID,		/* the law above */
	LEDBAT_FREEZE,		/* slowdown: two packets */
	LEDBAT_RAMP,		/* slowdown: slow start back to the threshold */
};

/**
 * struct ledbat_slowdown - when to slow down, and how far it went
 * @start_us: when the latest one began, us
 * @freeze_end_us: when its two packets end, us
 * @next_us: when the next one begins, us; LEDBAT_NEVER_US = not planned
 * @goal: window to come back to, packets
 * @mode: enum ledbat_mode
 */
struct ledbat_slowdown {
	u64 start_us;
	u64 freeze_end_us;
	u64 next_us;
	u32 goal;
	u8 mode;
};

static inline void ledbat_slowdown_init(struct ledbat_slowdown *s)
{
	s->start_us = 0;
	s->freeze_end_us = 0;
	s->next_us = LEDBAT_NEVER_US;
	s->goal = 0;
	s->mode = LEDBAT_SLOW_START;
}

/* Is the flow in a slowdown? */
static inline bool ledbat_slowdown_on(const struct ledbat_slowdown *s)
{
	return s->mode == LEDBAT_FREEZE || s->mode == LEDBAT_RAMP;
}

/* Time from the end of a slowdown of @duration_us to the next one, us. */
static inline u64 ledbat_slowdown_pause_us(u64 duration_us, u32 rtt_us)
{
	u64 freeze_us = (u64)LEDBAT_SLOWDOWN_RTTS * rtt_us;

	return max_t(u64, LEDBAT_SLOWDOWN_PAUSE * max(duration_us, freeze_us),
		     LEDBAT_SLOWDOWN_LEAST_US);
}

/**
 * ledbat_slowdown_due() - shall a slowdown begin now?
 * @s: state; a useless one is put off
 * @now_us: time, us
 * @cwnd: window, packets
 * @rtt_us: round-trip time, us; 0 = none measured
 *
 * A false answer never stops congestion avoidance.
 */
static inline bool ledbat_slowdown_due(struct ledbat_slowdown *s, u64 now_us,
				       u32 cwnd, u32 rtt_us)
{
	if (s->mode != LEDBAT_AVOID || now_us < s->next_us || !rtt_us)
		return false;
	if (cwnd <= LEDBAT_SLOWDOWN_SKIP) {
		s->next_us = now_us + ledbat_slowdown_pause_us(0, rtt_us);
		return false;
	}
	return true;
}

/* Begin: the caller sets cwnd to LEDBAT_SLOWDOWN_PKTS and ssthresh to @cwnd. */
static inline void ledbat_slowdown_begin(struct ledbat_slowdown *s, u64 now_us,
					 u32 cwnd, u32 rtt_us)
{
	s->mode = LEDBAT_FREEZE;
	s->start_us = now_us;
	s->freeze_end_us = now_us + (u64)LEDBAT_SLOWDOWN_RTTS * rtt_us;
	s->next_us = LEDBAT_NEVER_US;
	s->goal = cwnd;
}

/* The freeze ends by the clock, however many ACKs came. */
static inline void ledbat_slowdown_tick(struct ledbat_slowdown *s, u64 now_us)
{
	if (s->mode == LEDBAT_FREEZE && now_us >= s->freeze_end_us)
		s->mode = LEDBAT_RAMP;
}

/**
 * ledbat_slowdown_end() - ramp over, or cut short by loss or delay
 * @s: state
 * @now_us: time, us
 * @rtt_us: round-trip time, us
 * @periodic: plan the next one (LEDBAT++)
 */
static inline void ledbat_slowdown_end(struct ledbat_slowdown *s, u64 now_us,
				       u32 rtt_us, bool periodic)
{
	s->mode = LEDBAT_AVOID;
	s->next_us = periodic ?
		now_us + ledbat_slowdown_pause_us(now_us - s->start_us, rtt_us) :
		LEDBAT_NEVER_US;
}

/*
 * Dynamic minimum window (asked for in Abu and Gordon's conclusion).
 *
 *	MIN_CWND = max(fixed, S C RTT / (N P))
 *
 * C is the bottleneck's capacity as this host has seen it: the largest rate
 * at which all its LEDBAT flows together were served, over the last minutes.
 * S is the share of it that the host keeps beside TCP, N its LEDBAT flows, P
 * the packet. The window stands for the rate S C / N, which is one number for
 * all flows of the host and grows with the link. Its cost: whatever N, TCP
 * gets at least 1 - S of the link (more where N fixed windows are above that).
 */

/**
 * ledbat_floor_pkts() - minimum window for a rate
 * @fixed: least window, packets
 * @most: largest window that may result, packets, at least @fixed
 * @capacity_bytes: C, bytes a second
 * @share_permille: S, 0 to 1000
 * @flows: N, not 0
 * @rtt_us: round-trip time, us
 * @packet_bytes: P, not 0
 *
 * Return: packets, rounded down, @fixed to @most.
 */
static inline u32 ledbat_floor_pkts(u32 fixed, u32 most, u64 capacity_bytes,
				    u32 share_permille, u32 flows, u32 rtt_us,
				    u32 packet_bytes)
{
	/* 2^40 bytes a second and a second of 2^26 us at most: 2^63 after the share */
	u64 rate = div_u64(min_t(u64, capacity_bytes, 1ULL << 40) * share_permille,
			   1000);
	u64 bytes = div_u64(div_u64(rate, max(flows, 1U)) *
			    min(rtt_us, 1U << 23), 1000000);

	return clamp_t(u64, div_u64(bytes, packet_bytes), fixed, most);
}

#endif /* _LEDBAT_LAW_H */
