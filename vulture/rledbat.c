// SPDX-License-Identifier: GPL-2.0
/*
 * rLEDBAT (RFC 9840) with the law of LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus). The
 * sender keeps its own congestion control, and the smaller of the two windows limits it.
 *
 *	RLWND	(W) the window wanted, packets
 *	q	= min(last 4 round trips) - min(round trips of 10 minutes)
 *	dW/RTT	as ledbat_law.h has it, T = 60 ms
 *	loss	W = max(W / 2, 2), once per two round trips
 *
 *	          q > 3/4 T, loss          2 round trips later
 *	START -----------------> STEADY ----------------------> DOWN  W = 2, for 2 round trips
 *	  W doubles per 1/GAIN      ^ ^            loss           |
 *	                            | +---------------------------+
 *	                            |  W >= ssthresh, q > T, loss |
 *	                            +--------- RAMP <-------------+
 *	                                     W doubles; the next DOWN comes 9 D later,
 *	                                     D from the begin of DOWN to the end of RAMP
 *
 * A round trip (section 4.2) is measured from the first segment that carried one of our
 * timestamps to the first data that echoes it. It counts if that data is new and in order
 * and arrived within a round trip (or 10 ms) after the data before it. Otherwise the sender
 * was idle in between, and the echo is old.
 *
 * A loss (section 4.3) is data before the furthest that was sent after it (edge.h). An ECN
 * mark counts as loss.
 *
 * The edge never moves to the left (section 4.1.1): a smaller window is reached as data
 * arrives. Until then (a->edge_seq beyond W) delay does not reduce W further.
 *
 * Departs from the RFC in that the window grows only while the sender uses it.
 * The controller does not measure one-way delays, and needs timestamps (the module
 * refuses connections without them).
 */
#include <linux/kernel.h>

#include <lbe/ledbat_law.h>
#include <lbe/slots.h>

#include "controller.h"
#include "lists_gen.h"

/* LEDBAT++ 4.1 and RFC 9840: initial and least window, packets. */
#define RLEDBAT_LEAST_PKTS	2U
/* The current delay is the least of so many round trips. With fewer, a delayed ACK looks like a
 * queue; with twice as many, a queue is seen a round trip later.
 */
#define RLEDBAT_FILTER		4
/* RFC 6817: base delay as the minimum of ten slots of a minute. Their time is in ms, so that it
 * does not wrap within 24 days without data.
 */
#define RLEDBAT_BASE_SLOTS	10
#define RLEDBAT_BASE_SLOT_MS	60000U
/* A gap in the data that is shorter than this does not mean that the sender was idle, us: on a path
 * of some microseconds, each pause for a timer is longer than a round trip. It is a sixth of the
 * target.
 */
#define RLEDBAT_IDLE_US		10000U
/* Number of timestamps in flight whose time of sending is kept. It resolves a round trip to
 * 1/16.
 */
#define RLEDBAT_SENT		32

struct rledbat {
	const u32 *options;		/* by attribute */
	enum vulture_rledbat_state state;
	struct ledbat_window w;		/* RLWND, packets */
	u32 ssthresh_pkts;		/* where RAMP ends */
	u32 mss_bytes;			/* largest segment seen */
	bool draining;			/* the edge is still beyond the window */

	struct { u32 tsval; u64 us; } sent[RLEDBAT_SENT];	/* ring, newest at sent_last */
	u32 sent_last;
	u32 echoed_tsval;		/* latest timestamp that data has echoed */
	bool any_sent, any_echo;	/* sent[sent_last] and echoed_tsval are valid */
	u64 data_us;			/* latest arrival of data, our clock; 0 = none yet */

	u32 rtt_us[RLEDBAT_FILTER];	/* latest round trips, ring; 0 = none */
	u32 n_rtts;			/* their number so far; modulo, index of the next */
	u32 srtt_us;			/* smoothed, 1/8; 0 = none yet */
	struct lbe_slots base;		/* of base_us[], in ms */
	u32 base_us[RLEDBAT_BASE_SLOTS];

	u64 round_us;			/* begin of this round trip */
	u32 round_bytes, last_round_bytes;	/* data in it, and in the one before */
	u64 down_us;			/* begin of the present slowdown; 0 = there is none */
	u64 next_down_us;		/* begin of the next; 0 = not known yet */
	u64 cut_us;			/* latest reduction for a loss; 0 = none yet */
	u64 losses, slowdowns, samples;
};

static const u32 rledbat_initial[] = { VULTURE_RLEDBAT_DEFAULTS };

static u32 rledbat_base_us(const struct rledbat *r)
{
	u32 base_us = lbe_slots_min(&r->base, r->base_us);

	return base_us == LBE_SLOT_EMPTY ? 0 : base_us;
}

/* q; 0 before the first round trip */
static u32 rledbat_queue_us(const struct rledbat *r)
{
	u32 least_us = U32_MAX;
	unsigned int i;

	for (i = 0; i < RLEDBAT_FILTER; i++)
		if (r->rtt_us[i])
			least_us = min(least_us, r->rtt_us[i]);
	return least_us == U32_MAX ? 0 : ledbat_queue_us(least_us, rledbat_base_us(r));
}

static u32 rledbat_window_bytes(const struct rledbat *r)
{
	u64 bytes = (u64)r->w.cwnd * r->mss_bytes +
		    mul_u64_u32_shr(r->mss_bytes, r->w.part_q32, 32);

	return (u32)min_t(u64, bytes, 65535U << 14);
}

static void rledbat_set_pkts(struct rledbat *r, u32 pkts)
{
	r->w.cwnd = max(pkts, RLEDBAT_LEAST_PKTS);
	r->w.part_q32 = 0;
}

/* Enter STEADY, and set the time of the next slowdown. */
static void rledbat_steady(struct rledbat *r, u64 now_us)
{
	u64 took_us = r->down_us ? now_us - r->down_us : 0;

	if (r->state == VULTURE_RLEDBAT_STATE_START)
		r->next_down_us = now_us + LEDBAT_SLOWDOWN_RTTS * (u64)r->srtt_us;
	else if (r->state != VULTURE_RLEDBAT_STATE_STEADY)
		r->next_down_us = now_us + ledbat_slowdown_pause_us(took_us, r->srtt_us);
	r->state = VULTURE_RLEDBAT_STATE_STEADY;
	r->down_us = 0;
}

/* Changes of state that depend on time only. */
static void rledbat_on_time(struct rledbat *r, u64 now_us)
{
	if (r->state == VULTURE_RLEDBAT_STATE_STEADY && r->options[VULTURE_RLEDBAT_O_SLOWDOWN] &&
	    r->next_down_us && now_us >= r->next_down_us) {
		r->ssthresh_pkts = r->w.cwnd;
		rledbat_set_pkts(r, LEDBAT_SLOWDOWN_PKTS);
		r->state = VULTURE_RLEDBAT_STATE_DOWN;
		r->down_us = now_us;
		r->slowdowns++;
	} else if (r->state == VULTURE_RLEDBAT_STATE_DOWN &&
		   now_us - r->down_us >= LEDBAT_SLOWDOWN_RTTS * (u64)r->srtt_us) {
		r->state = VULTURE_RLEDBAT_STATE_RAMP;
	}
}

/* Whether the sender uses about 7/8 of its window or more. */
static bool rledbat_is_used(const struct rledbat *r)
{
	u32 window_bytes = rledbat_window_bytes(r);
	u64 used_bytes = max(r->round_bytes, r->last_round_bytes);

	return used_bytes + window_bytes / 8 + 2 * r->mss_bytes >= window_bytes;
}

static void rledbat_on_pkts(struct rledbat *r, u32 pkts, u64 now_us)
{
	u32 target_us = r->options[VULTURE_RLEDBAT_O_TARGET_US];
	u32 queue_us = rledbat_queue_us(r);
	u32 divisor = ledbatpp_divisor(target_us, rledbat_base_us(r));
	s64 delta_q32;

	switch (r->state) {
	case VULTURE_RLEDBAT_STATE_START:
		if (ledbat_leaves_slow_start(queue_us, target_us))
			rledbat_steady(r, now_us);
		delta_q32 = div_u64((u64)pkts << 32, divisor);
		break;
	case VULTURE_RLEDBAT_STATE_RAMP:
		if (r->w.cwnd >= r->ssthresh_pkts || queue_us > target_us)
			rledbat_steady(r, now_us);
		delta_q32 = (u64)pkts << 32;
		break;
	case VULTURE_RLEDBAT_STATE_STEADY:
		delta_q32 = ledbat_per_ack_q32(ledbatpp_rate_q32(&r->w, queue_us, target_us,
								 divisor, LEDBAT_ONE_Q16),
					       pkts, &r->w);
		break;
	default:
		return;
	}
	if (delta_q32 < 0 ? !r->draining : rledbat_is_used(r))
		ledbat_window_add(&r->w, delta_q32, RLEDBAT_LEAST_PKTS);
}

/* Halve the window, once in two round trips. Losses of data that was in flight at the first loss
 * are seen in the first of them; losses of data that was sent before the sender knew the smaller
 * window are seen in the second.
 */
static void rledbat_on_loss(struct rledbat *r, u64 now_us)
{
	if (r->cut_us && now_us - r->cut_us < 2 * (u64)r->srtt_us)
		return;
	r->cut_us = now_us;
	r->losses++;
	rledbat_set_pkts(r, r->w.cwnd / 2);
	r->ssthresh_pkts = r->w.cwnd;
	rledbat_steady(r, now_us);
}

/* Return: the round trip that this data measures, or 0. */
static u32 rledbat_sample_us(struct rledbat *r, const struct rwnd_data *d)
{
	bool first = !r->any_echo || (s32)(d->tsecr - r->echoed_tsval) > 0;
	bool idle = r->data_us &&
		    d->now_us - r->data_us > max_t(u64, r->srtt_us, RLEDBAT_IDLE_US);
	unsigned int i;

	if (!first)
		return 0;
	r->any_echo = true;
	r->echoed_tsval = d->tsecr;
	if (idle || d->arrival != RWND_NEXT || !r->any_sent)
		return 0;
	for (i = 0; i < RLEDBAT_SENT; i++)
		if (r->sent[i].us && r->sent[i].tsval == d->tsecr)
			return (u32)clamp_t(u64, d->now_us - r->sent[i].us, 1, U32_MAX - 1);
	return 0;
}

static void rledbat_on_rtt(struct rledbat *r, u32 rtt_us, u64 now_us)
{
	r->samples++;
	r->rtt_us[r->n_rtts++ % RLEDBAT_FILTER] = rtt_us;
	r->srtt_us = r->srtt_us ? r->srtt_us - r->srtt_us / 8 + rtt_us / 8 : rtt_us;
	lbe_slots_update(&r->base, r->base_us, RLEDBAT_BASE_SLOT_MS,
			 (u32)div_u64(now_us, 1000), rtt_us);
}

static void rledbat_count(struct rledbat *r, const struct rwnd_data *d)
{
	if (d->now_us - r->round_us > r->srtt_us) {
		r->round_us = d->now_us;
		r->last_round_bytes = r->round_bytes;
		r->round_bytes = 0;
	}
	r->round_bytes += d->bytes;
	r->mss_bytes = max(r->mss_bytes, d->seg_bytes);
}

static void rledbat_want(const struct rledbat *r, struct rwnd_want *want)
{
	want->kind = RWND_WINDOW;
	want->bytes = rledbat_window_bytes(r);
}

static void rledbat_on_data(void *state, const struct rwnd_data *d, struct rwnd_want *want)
{
	struct rledbat *r = state;
	u32 rtt_us = rledbat_sample_us(r, d);

	if (rtt_us)
		rledbat_on_rtt(r, rtt_us, d->now_us);
	rledbat_count(r, d);
	rledbat_on_time(r, d->now_us);
	if (d->arrival == RWND_RETRANSMITTED || d->ce)
		rledbat_on_loss(r, d->now_us);
	else if (d->arrival == RWND_NEXT || d->arrival == RWND_HOLE)
		rledbat_on_pkts(r, d->segs, d->now_us);
	r->data_us = d->now_us;
	rledbat_want(r, want);
}

/* Record when this timestamp first went out. Entries are at least a sixteenth of a round trip
 * apart, so that the ring covers two round trips.
 */
static void rledbat_on_ack(void *state, const struct rwnd_ack *a, struct rwnd_want *want)
{
	struct rledbat *r = state;
	u64 last_us = r->sent[r->sent_last].us;

	if (!r->any_sent || ((s32)(a->tsval - r->sent[r->sent_last].tsval) > 0 &&
			     a->now_us - last_us >= r->srtt_us / 16)) {
		r->sent_last = (r->sent_last + 1) % RLEDBAT_SENT;
		r->sent[r->sent_last].tsval = a->tsval;
		r->sent[r->sent_last].us = a->now_us;
		r->any_sent = true;
	}
	r->draining = (s32)(a->edge_seq - a->ack_seq) >
		      (s32)(rledbat_window_bytes(r) + r->mss_bytes);
	rledbat_want(r, want);
}

static void rledbat_init(void *state, const struct rwnd_start *start, struct rwnd_want *want)
{
	u32 now_ms = (u32)div_u64(start->now_us, 1000);
	struct rledbat *r = state;

	/* the law's arithmetic is right up to that target */
	BUILD_BUG_ON(VULTURE_RLEDBAT_TARGET_US_MAX > LEDBAT_TARGET_MAX_US);
	r->options = start->options;
	r->mss_bytes = max(start->mss_bytes, 536U);	/* RFC 9293 section 3.7.1 */
	r->round_us = start->now_us;
	rledbat_set_pkts(r, RLEDBAT_LEAST_PKTS);
	lbe_slots_init(&r->base, r->base_us, RLEDBAT_BASE_SLOTS, now_ms);
	if (start->min_rtt_us) {
		r->srtt_us = start->min_rtt_us;
		lbe_slots_update(&r->base, r->base_us, RLEDBAT_BASE_SLOT_MS, now_ms,
				 start->min_rtt_us);
	}
	rledbat_want(r, want);
}

static void rledbat_change(void *state, u64 now_us, struct rwnd_want *want)
{
	rledbat_want(state, want);
}

static void rledbat_stats(const void *state, u64 now_us, struct rwnd_view *view, u64 *s)
{
	const struct rledbat *r = state;

	view->window_bytes = rledbat_window_bytes(r);
	view->rtt_us = r->srtt_us;
	view->min_rtt_us = rledbat_base_us(r);
	view->queue_us = rledbat_queue_us(r);
	view->mss_bytes = r->mss_bytes;

	s[VULTURE_RLEDBAT_S_STATE] = r->state;
	s[VULTURE_RLEDBAT_S_SSTHRESH_BYTES] = (u64)r->ssthresh_pkts * r->mss_bytes;
	s[VULTURE_RLEDBAT_S_SAMPLES] = r->samples;
	s[VULTURE_RLEDBAT_S_LOSSES] = r->losses;
	s[VULTURE_RLEDBAT_S_SLOWDOWNS] = r->slowdowns;
}

const struct rwnd_controller rwnd_rledbat = {
	.name = "rledbat",
	.state_bytes = sizeof(struct rledbat),
	.initial = rledbat_initial,
	.n_options = ARRAY_SIZE(rledbat_initial),
	.n_stats = VULTURE_RLEDBAT_S_PAD,
	.init = rledbat_init,
	.change = rledbat_change,
	.on_data = rledbat_on_data,
	.on_ack = rledbat_on_ack,
	.stats = rledbat_stats,
};
