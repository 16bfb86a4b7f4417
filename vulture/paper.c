// SPDX-License-Identifier: GPL-2.0
/*
 * The controller of Li and Welzl (piv.h names the report).
 *
 *	            ACK that carries       data that          data that
 *	            the policy goes out    echoes it          echoes that
 *	   decide ----------------------> collect ----------> decide
 *	             WAIT (1 round trip)   COLLECT (1 round trip)
 *
 * A round trip is the time from a segment we send to the first data that echoes
 * its timestamp or a later one. After a decision the variations of one round
 * trip are passed over, since that data left before the sender knew ("until the
 * first data packet that reflects the new policy", section 0.3.3); those of the
 * next one decide.
 *
 * Where the paper is silent:
 *  - A round without variations (fewer than two packets, or all within PSI) is
 *    prolonged by a round trip.
 *  - The queue of packets starts empty with COLLECT: a pair must not reach back
 *    to data of the earlier policy. The packet that ends COLLECT still counts,
 *    or a window of two segments would have no pair at all.
 *  - Control begins one round trip after the start, with rwnd = rwndThresh =
 *    the estimate of the sender's window (at once if the connection was
 *    observed before). A connection that begins under control starts with what
 *    the handshake advertised and has no threshold yet: it doubles until its
 *    first reduction, and the sender's own slow start is the slower of the two.
 *  - TCP may have advertised far more before. That edge stays (it must not
 *    move to the left), so the first decision waits until it is used up.
 *  - A connection that is only observed is analysed in every round trip, since
 *    there is no policy to wait for: what the paper's Figures 3 to 8 show.
 *  - "Increase" adds its step in every round trip, waiting or collecting.
 *  - Loss and reordering halve at once, but once per round trip: one
 *    reduction covers all that was in flight when it was seen. So does ECN.
 *  - Algorithm 6 takes for "acknowledged" what has arrived since the last ACK. The
 *    two differ while there is a hole: duplicate ACKs release data too, and the
 *    ACK that fills it releases little. Counted as printed, each loss would leave
 *    a shortfall for ever.
 *  - Beyond the paper: bursts whose first packets meet a long queue need not wait
 *    for the round's end (watch_bursts).
 *  - From the request to its first own window nothing further is advertised.
 *  - No peer tick (not learnt yet, or coarser than 10 ms): no variations, the
 *    window is kept and loss alone acts on it.
 */
#include <linux/kernel.h>

#include <lbe/slots.h>

#include "controller.h"
#include "policy.h"
#include "uapi/vulture.h"

/* First and least estimate of a full segment, bytes: RFC 9293 section 3.7.1. */
#define PAPER_MSS_MIN	536U

/* A packet sent so long after the one before heads a burst, us: the queue that it
 * meets is none of our own. Just above the time of a full packet at 10 Mbit/s;
 * faster links part sooner. Twice as much sees competitors too late.
 */
#define PAPER_BURST_US		1500

/* How old the least sending-to-arrival time may grow, us: a minute, two slots.
 * Longer lets clock skew (200 ppm: 12 ms a minute) pass for a queue.
 */
#define PAPER_BASE_SLOT_US	30000000U
#define PAPER_BASE_SLOTS	2
/* Trip times begin here, us: as unsigned numbers they then stay off their wrap
 * for 17 minutes of drift either way.
 */
#define PAPER_TRIP_BIAS_US	(1 << 30)

/* The options, from their attributes. */
struct paper_options {
	struct piv_params piv;
	struct policy_params policy;
	u32 observe;		/* 1: only estimate */
	u32 settle;		/* 1: variations of a growing window do not count */
	u32 loss_permille;	/* what loss leaves of the window, 1/1000 */
	u32 queue_high_us;	/* drain above this queue, us; 0 = off */
	u32 watch_bursts;	/* bursts in a row that met more drain at once; 0 = off */
	u32 outgrown_pct;	/* of the queue drained last: halve above; 0 = off */
	u32 speedup;		/* increases in a row per further segment; 0 = off */
};

/* The paper's values for the paper's constants; for what it leaves open, and beyond
 * it, what measured best (Documentation/vulture.md).
 */
static const struct rwnd_option paper_option[] = {
	[VULTURE_PAPER_O_TICK_US] = { "tick-us", 1, 10000, 1000 },
	[VULTURE_PAPER_O_ZERO_US] = { "zero-us", 0, 10000, 0 },
	[VULTURE_PAPER_O_PSI_US] = { "psi-us", 1000, 1000000, 20000 },
	[VULTURE_PAPER_O_CONS_LOW_US] = { "cons-low-us", 1, 1000000, 4000 },
	[VULTURE_PAPER_O_CONS_HIGH_US] = { "cons-high-us", 1, 1000000, 8000 },
	[VULTURE_PAPER_O_AGGR_LOW_US] = { "aggr-low-us", 1, 1000000, 12000 },
	[VULTURE_PAPER_O_AGGR_HIGH_US] = { "aggr-high-us", 1, 1000000, 20000 },
	[VULTURE_PAPER_O_PAIRING] = { "pairing", 0, __VULTURE_PAIRING_MAX - 1, PIV_PAIR_EACH },
	[VULTURE_PAPER_O_ALPHA_PERMILLE] = { "alpha-permille", 500, 999, 875 },
	[VULTURE_PAPER_O_INCREASE_SEGS] = { "increase-segs", 1, 64, 1 },
	[VULTURE_PAPER_O_POSITIVE_TEST] = { "positive-test", 0, 1, 1 },
	[VULTURE_PAPER_O_THRESH_CAP] = { "thresh-cap", 0, 1, 1 },
	[VULTURE_PAPER_O_THRESH_PERMILLE] = { "thresh-permille", 250, 1000, 500 },
	[VULTURE_PAPER_O_GOALS] = { "goals", 0, 1, 1 },
	[VULTURE_PAPER_O_SETTLE] = { "settle", 0, 1, 1 },
	[VULTURE_PAPER_O_LOSS_PERMILLE] = { "loss-permille", 0, 1000, 125 },
	[VULTURE_PAPER_O_OBSERVE] = { "observe", 0, 1, 0 },
	[VULTURE_PAPER_O_QUEUE_HIGH_US] = { "queue-high-us", 0, 1000000, 10000 },
	[VULTURE_PAPER_O_SPEEDUP] = { "speedup", 0, 64, 3 },
	[VULTURE_PAPER_O_WATCH_BURSTS] = { "watch-bursts", 0, 64, 2 },
	[VULTURE_PAPER_O_OUTGROWN_PCT] = { "outgrown-pct", 0, 1000, 125 },
	[VULTURE_PAPER_O_RISING] = { "rising", 0, 1, 1 },
};

static struct paper_options paper_options_of(const u32 *o)
{
	return (struct paper_options){
		.piv = {
			.tick_us = o[VULTURE_PAPER_O_TICK_US],
			.zero_us = o[VULTURE_PAPER_O_ZERO_US],
			.psi_us = o[VULTURE_PAPER_O_PSI_US],
			.cons_low_us = o[VULTURE_PAPER_O_CONS_LOW_US],
			.cons_high_us = o[VULTURE_PAPER_O_CONS_HIGH_US],
			.aggr_low_us = o[VULTURE_PAPER_O_AGGR_LOW_US],
			.aggr_high_us = o[VULTURE_PAPER_O_AGGR_HIGH_US],
			.pairing = o[VULTURE_PAPER_O_PAIRING],
			.rising = o[VULTURE_PAPER_O_RISING],
		},
		.policy = {
			.alpha_permille = o[VULTURE_PAPER_O_ALPHA_PERMILLE],
			.increase_segs = o[VULTURE_PAPER_O_INCREASE_SEGS],
			.positive_test = o[VULTURE_PAPER_O_POSITIVE_TEST],
			.thresh_cap = o[VULTURE_PAPER_O_THRESH_CAP],
			.goals = o[VULTURE_PAPER_O_GOALS],
			.thresh_permille = o[VULTURE_PAPER_O_THRESH_PERMILLE],
		},
		.observe = o[VULTURE_PAPER_O_OBSERVE],
		.settle = o[VULTURE_PAPER_O_SETTLE],
		.loss_permille = o[VULTURE_PAPER_O_LOSS_PERMILLE],
		.queue_high_us = o[VULTURE_PAPER_O_QUEUE_HIGH_US],
		.watch_bursts = o[VULTURE_PAPER_O_WATCH_BURSTS],
		.outgrown_pct = o[VULTURE_PAPER_O_OUTGROWN_PCT],
		.speedup = o[VULTURE_PAPER_O_SPEEDUP],
	};
}

struct paper {
	const u32 *values;	/* of the flow's options, by attribute */
	struct paper_options options;	/* the same by name */
	struct piv_params piv;	/* options.piv, scaled to the peer's tick */
	struct piv_queue queue;	/* packets of this round that wait for a pair */
	struct piv_set set;	/* variations of this round */
	struct piv_set last;	/* of the latest round that was analysed */
	struct piv_tick tick;	/* peer's timestamp clock */
	struct cwnd_est cwnd;	/* Algorithm 6 */
	u32 arrived_bytes;	/* data since the latest segment that we sent */
	struct rwnd rwnd;	/* Algorithms 4 and 5 */

	enum vulture_phase phase;
	u32 mark_tsval;		/* data that echoes this ends the round */
	u64 mark_us;		/* when it was sent; 0 = not yet */
	u32 sent_tsval;		/* latest timestamp sent */
	bool sent_any;		/* sent_tsval is valid */

	u32 mss_bytes;		/* largest segment seen */
	u32 round_bytes;	/* data of this round so far */
	u32 last_round_bytes;	/* of the round before */
	bool may_grow;		/* the sender used its window in the round before */
	u32 rtt_us, min_rtt_us;	/* 0 = none yet */

	u32 high_seq;		/* end of the furthest data seen */
	u32 reduced_seq;	/* loss before this was answered already */
	bool seen_data;		/* high_seq and reduced_seq are valid */

	struct lbe_slots base;	/* of base_us[], in us */
	u32 base_us[PAPER_BASE_SLOTS];	/* least arrival - sending, plus bias */
	u32 round_queue_us;	/* least queue in this round; U32_MAX = none */
	s64 watched_us;		/* sending time of the packet before */
	u32 high_bursts;	/* bursts in a row that met a queue above the limit */
	u32 high_queue_us;	/* the least that they met */
	u32 drained_us;		/* queue at the latest drain of these reductions; 0 = none */
	u32 from_bytes;		/* window when this round trip began, which its data answers */
	u32 in_a_row;		/* increases without another policy between */

	enum piv_mode mode;
	u64 mode_since_us;	/* our clock */
	u64 mode_us[PIV_MODES];	/* time before that in each mode */
	u64 negative, zero, positive, by[PIV_CLASSES];
	u64 rounds, by_policy[RWND_POLICIES], losses;
};

static bool paper_controls(const struct paper *p)
{
	return p->phase == VULTURE_PHASE_WAIT || p->phase == VULTURE_PHASE_COLLECT;
}

static bool paper_has_clock(const struct paper *p)
{
	return p->tick.tick_us && p->tick.tick_us <= PIV_COARSE_US;
}

static bool paper_reduces(const struct paper *p)
{
	return p->rwnd.policy == RWND_HALVE || p->rwnd.policy == RWND_DRAIN;
}

static u32 paper_floor_bytes(const struct paper *p)
{
	return RWND_FLOOR_SEGS * p->mss_bytes;
}

/* What the sender uses of its window, generously: the estimate of Algorithm 6
 * falls short while there is loss, a round's count while the round is young.
 */
static u32 paper_used_bytes(const struct paper *p)
{
	u32 used = max3(cwnd_est_bytes(&p->cwnd), p->round_bytes, p->last_round_bytes);

	return used + 2 * p->mss_bytes;
}

/* What a reduction leaves of the window, 1/1000: half (after loss, as set), or
 * what does not stand in the queue.
 */
static u32 paper_keep_permille(const struct paper *p, enum rwnd_policy policy, bool loss)
{
	if (policy != RWND_DRAIN)
		return loss ? p->options.loss_permille : 500;
	return rwnd_drain_permille(p->round_queue_us, p->rtt_us, paper_reduces(p),
				   p->drained_us, p->options.outgrown_pct);
}

/* Begin a phase; its round trip runs from the next timestamp that goes out. */
static void paper_enter(struct paper *p, enum vulture_phase phase)
{
	p->phase = phase;
	p->mark_us = 0;
	p->may_grow = rwnd_may_grow(p->round_bytes, p->from_bytes, p->mss_bytes);
	p->from_bytes = p->rwnd.bytes;
	p->last_round_bytes = p->round_bytes;
	p->round_bytes = 0;
	p->rwnd.increased = false;
	p->round_queue_us = U32_MAX;
	p->high_queue_us = U32_MAX;
	p->high_bursts = 0;
	if (phase == VULTURE_PHASE_COLLECT || phase == VULTURE_PHASE_OBSERVE) {
		piv_queue_clear(&p->queue);
		memset(&p->set, 0, sizeof(p->set));
	}
}

static void paper_set_mode(struct paper *p, enum piv_mode mode, u64 now_us)
{
	p->mode_us[p->mode] += now_us - p->mode_since_us;
	p->mode_since_us = now_us;
	p->mode = mode;
}

static void paper_trace(struct paper *p, enum rwnd_policy policy, bool loss)
{
	struct rwnd_round round = {
		.set = &p->last,
		.mode = p->mode,
		.policy = policy,
		.rwnd_bytes = p->rwnd.bytes,
		.thresh_bytes = p->rwnd.thresh_bytes,
		.cwnd_bytes = cwnd_est_bytes(&p->cwnd),
		.rtt_us = p->rtt_us,
		.loss = loss,
	};

	vulture_trace_round(p, &round);
}

static void paper_set_policy(struct paper *p, enum rwnd_policy policy, bool loss)
{
	rwnd_set_policy(&p->rwnd, policy, paper_keep_permille(p, policy, loss),
			paper_used_bytes(p), paper_floor_bytes(p),
			&p->options.policy);
	if (policy == RWND_DRAIN)
		p->drained_us = p->round_queue_us;
	else if (policy != RWND_HALVE)
		p->drained_us = 0;	/* the next reduction is a first one */
	p->by_policy[policy]++;
	p->in_a_row = policy == RWND_INCREASE ? p->in_a_row + 1 : 0;
	paper_enter(p, VULTURE_PHASE_WAIT);
	paper_trace(p, policy, loss);
}

/* From observing to controlling. */
static void paper_begin(struct paper *p, u32 rwnd_bytes, u32 thresh_bytes)
{
	p->rwnd.bytes = max(rwnd_bytes, paper_floor_bytes(p));
	p->rwnd.thresh_bytes = max(thresh_bytes, p->rwnd.bytes);
	p->rwnd.goal_bytes = p->rwnd.bytes;
	p->rwnd.policy = RWND_FIX;
	paper_enter(p, VULTURE_PHASE_WAIT);
}

/* What stands in the queue is taken out at once: our least trip is from a time
 * when it stood already, but TCP's least round trip dates from the handshake.
 */
static void paper_begin_at_estimate(struct paper *p)
{
	u32 bytes = cwnd_est_bytes(&p->cwnd);

	if (p->options.queue_high_us && p->min_rtt_us &&
	    p->rtt_us > p->min_rtt_us && p->rtt_us - p->min_rtt_us > p->options.queue_high_us)
		bytes = rwnd_part(bytes, rwnd_drain_permille(p->rtt_us - p->min_rtt_us,
							     p->rtt_us, false, 0, 0), 0);
	paper_begin(p, bytes, 0);
}

/* Algorithm 2 and the first half of 3 at the end of a round that has variations. */
static void paper_analyse(struct paper *p, u64 now_us)
{
	const struct piv_set *set = &p->set;
	unsigned int class;

	paper_set_mode(p, piv_mode(set, p->options.policy.positive_test), now_us);
	p->rounds++;
	p->negative += set->negative;
	p->zero += set->zero;
	p->positive += set->positive;
	for (class = 0; class < PIV_CLASSES; class++)
		p->by[class] += set->by[p->mode][class];
	p->last = *set;
}

/* Algorithms 2 to 4 at the end of a round. */
static void paper_decide(struct paper *p, u64 now_us)
{
	const struct piv_set *set = &p->set;
	enum rwnd_policy policy;

	if (!set->n) {
		u32 queue_us = p->round_queue_us;

		paper_enter(p, VULTURE_PHASE_COLLECT);
		p->round_queue_us = queue_us;
		return;
	}
	paper_analyse(p, now_us);
	policy = policy_make(set, p->mode, p->options.policy.alpha_permille,
			     p->rwnd.bytes, p->rwnd.thresh_bytes);
	if (p->options.queue_high_us && p->round_queue_us != U32_MAX &&
	    p->round_queue_us > p->options.queue_high_us)
		policy = RWND_DRAIN;
	paper_set_policy(p, policy, false);
}

/* Does this data echo the mark? Then a round trip is over. */
static bool paper_round_over(struct paper *p, const struct rwnd_data *d)
{
	if (!p->mark_us || (s32)(d->tsecr - p->mark_tsval) < 0)
		return false;
	p->rtt_us = (u32)clamp_t(u64, d->now_us - p->mark_us, 1, U32_MAX);
	if (!p->min_rtt_us || p->rtt_us < p->min_rtt_us)
		p->min_rtt_us = p->rtt_us;
	return true;
}

/* A hole, old data, or a mark: the network dropped, reordered or said so. */
static bool paper_sees_loss(struct paper *p, const struct rwnd_data *d)
{
	u32 end = d->seq + d->bytes;
	bool late, loss;

	if (!p->seen_data) {
		p->seen_data = true;
		p->high_seq = end;
		p->reduced_seq = d->seq;
		return d->ce;
	}
	late = (s32)(d->seq - p->high_seq) < 0;
	loss = d->ce || d->seq != p->high_seq;
	if (!late || (s32)(end - p->high_seq) > 0)
		p->high_seq = end;
	return loss && (s32)(d->seq - p->reduced_seq) >= 0;
}

static void paper_on_loss(struct paper *p)
{
	p->reduced_seq = p->high_seq;
	if (!paper_controls(p))
		return;
	if (p->phase == VULTURE_PHASE_WAIT && p->rwnd.policy == RWND_HALVE)
		return;		/* of the same round trip */
	p->losses++;
	paper_set_policy(p, RWND_HALVE, true);
}

/* The queue: arrival - sending against its least value. The least of the round
 * decides at its end; the first packets of bursts can do so before.
 */
static void paper_watch_queue(struct paper *p, s64 sent_us, u64 now_us)
{
	u32 trip_us = (u32)((s64)now_us - sent_us);
	u32 base_us = lbe_slots_update(&p->base, p->base_us, PAPER_BASE_SLOT_US,
				       (u32)now_us, trip_us);
	u32 queue_us = trip_us - base_us;
	bool head = sent_us - p->watched_us >= PAPER_BURST_US;

	p->watched_us = sent_us;

	p->round_queue_us = min(p->round_queue_us, queue_us);
	if (queue_us <= p->options.queue_high_us) {
		p->high_bursts = 0;
		p->high_queue_us = U32_MAX;
	} else if (head) {
		p->high_bursts++;
		p->high_queue_us = min(p->high_queue_us, queue_us);
	}
}

/* A queue stands that need not be watched to the round's end. After a reduction
 * the queue that it met takes a while to go: twice as many bursts must agree.
 */
static bool paper_must_drain(const struct paper *p)
{
	u32 bursts = p->options.watch_bursts;

	if (paper_reduces(p))
		bursts *= 2;
	return p->options.queue_high_us && p->options.watch_bursts &&
	       p->high_bursts >= bursts && paper_controls(p) &&
	       (p->phase == VULTURE_PHASE_COLLECT || !paper_reduces(p));
}

static void paper_count_variations(struct paper *p, const struct rwnd_data *d)
{
	s64 sent_us;

	if (!paper_has_clock(p))
		return;
	sent_us = piv_tick_sent_us(&p->tick, d->tsval);
	if (p->options.queue_high_us)
		paper_watch_queue(p, sent_us, d->now_us);
	if (p->phase == VULTURE_PHASE_COLLECT || p->phase == VULTURE_PHASE_OBSERVE)
		piv_on_data(&p->queue, &p->set, &p->piv, sent_us, d->now_us, d->segs);
}

/* The peer's clock got another unit: times taken before mean nothing now. */
static void paper_new_tick(struct paper *p, u64 now_us)
{
	p->piv = piv_scale(&p->options.piv, p->tick.tick_us);
	p->tick.sent_us = (s64)now_us - PAPER_TRIP_BIAS_US;
	lbe_slots_init(&p->base, p->base_us, PAPER_BASE_SLOTS, (u32)now_us);
	if (p->phase == VULTURE_PHASE_COLLECT)
		paper_enter(p, VULTURE_PHASE_COLLECT);
}

static void paper_round_ends(struct paper *p, u64 now_us)
{
	switch (p->phase) {
	case VULTURE_PHASE_OBSERVE:
		if (p->set.n) {
			paper_analyse(p, now_us);
			paper_trace(p, RWND_FIX, false);
		}
		paper_enter(p, VULTURE_PHASE_OBSERVE);
		break;
	case VULTURE_PHASE_START:
		paper_begin_at_estimate(p);
		break;
	default:
		paper_decide(p, now_us);
	}
}

static void paper_on_data(void *state, const struct rwnd_data *d, struct rwnd_want *want)
{
	struct paper *p = state;
	bool over;

	p->mss_bytes = max(p->mss_bytes, d->seg_bytes);
	if ((s32)(d->seq + d->bytes - d->ack_seq) > 0) {
		p->round_bytes += d->bytes;
		p->arrived_bytes += d->bytes;
		cwnd_on_data(&p->cwnd, d->tsecr, d->bytes);
	}
	if (piv_tick_on_data(&p->tick, d->now_us, d->tsval))
		paper_new_tick(p, d->now_us);
	if (paper_sees_loss(p, d))
		paper_on_loss(p);

	over = paper_round_over(p, d);
	if (over && p->phase == VULTURE_PHASE_WAIT) {
		paper_enter(p, VULTURE_PHASE_COLLECT);
		over = false;
	}
	paper_count_variations(p, d);
	if (paper_must_drain(p)) {
		p->round_queue_us = p->high_queue_us;
		paper_set_policy(p, RWND_DRAIN, false);
	} else if (over) {
		paper_round_ends(p, d->now_us);
	}
}

/* May this segment begin a round trip? Its timestamp must tell it from those
 * sent before, and its window must be the one that the policy wants.
 */
static bool paper_is_mark(const struct paper *p, const struct rwnd_ack *a)
{
	s32 edge_bytes;

	if (p->mark_us)
		return false;
	if (p->sent_any && (s32)(a->tsval - p->sent_tsval) <= 0)
		return false;
	if (p->phase != VULTURE_PHASE_WAIT)
		return true;
	if (p->options.settle && p->rwnd.policy == RWND_DOUBLE &&
	    p->may_grow && p->rwnd.bytes < p->rwnd.goal_bytes)
		return false;
	edge_bytes = (s32)(a->edge_seq - a->ack_seq);
	return edge_bytes <= 0 || (u32)edge_bytes <= p->rwnd.bytes + p->mss_bytes;
}

static u32 paper_step_bytes(const struct paper *p)
{
	u32 segs = p->options.policy.increase_segs;

	if (p->options.speedup)
		segs += p->in_a_row / p->options.speedup;
	return segs * p->mss_bytes;
}

/* What the phase wants of the window. */
static void paper_want(const struct paper *p, struct rwnd_want *want)
{
	want->kind = RWND_WINDOW;
	if (p->phase == VULTURE_PHASE_START)
		want->bytes = paper_floor_bytes(p);	/* the edge stays meanwhile */
	else if (paper_controls(p))
		want->bytes = p->rwnd.bytes;
	else
		want->kind = RWND_LEAVE;
}

static void paper_on_ack(void *state, const struct rwnd_ack *a, struct rwnd_want *want)
{
	struct paper *p = state;

	if (p->arrived_bytes)
		cwnd_on_ack(&p->cwnd, a->tsval, p->arrived_bytes);
	p->arrived_bytes = 0;
	if (paper_controls(p))
		rwnd_on_ack(&p->rwnd, a->acked_bytes, paper_step_bytes(p),
			    paper_floor_bytes(p), p->may_grow);
	if (paper_is_mark(p, a)) {
		p->mark_tsval = a->tsval;
		p->mark_us = a->now_us;
	}
	if (!p->sent_any || (s32)(a->tsval - p->sent_tsval) > 0) {
		p->sent_tsval = a->tsval;
		p->sent_any = true;
	}
	paper_want(p, want);
}

static void paper_init(void *state, const struct rwnd_start *start, struct rwnd_want *want)
{
	struct paper *p = state;

	p->values = start->options;
	p->options = paper_options_of(p->values);
	p->piv = p->options.piv;
	p->mss_bytes = max(start->mss_bytes, PAPER_MSS_MIN);
	p->min_rtt_us = start->min_rtt_us;
	p->mode = PIV_CONSERVATIVE;
	p->mode_since_us = start->now_us;
	p->round_queue_us = U32_MAX;
	lbe_slots_init(&p->base, p->base_us, PAPER_BASE_SLOTS, (u32)start->now_us);
	if (p->options.observe)
		paper_enter(p, VULTURE_PHASE_OBSERVE);
	else if (start->fresh)
		paper_begin(p, start->edge_seq - start->ack_seq, RWND_MAX_BYTES);
	else
		paper_enter(p, VULTURE_PHASE_START);
	paper_want(p, want);
}

static void paper_change(void *state, u64 now_us, struct rwnd_want *want)
{
	struct paper *p = state;

	p->options = paper_options_of(p->values);
	p->piv = piv_scale(&p->options.piv, p->tick.tick_us);
	if (p->options.observe)
		paper_enter(p, VULTURE_PHASE_OBSERVE);
	else if (paper_controls(p))
		paper_enter(p, VULTURE_PHASE_COLLECT);
	else if (p->rtt_us && cwnd_est_bytes(&p->cwnd))
		paper_begin_at_estimate(p);
	else
		paper_enter(p, VULTURE_PHASE_START);
	paper_set_mode(p, PIV_CONSERVATIVE, now_us);
	paper_want(p, want);
}

static void paper_stats(const void *state, u64 now_us, struct rwnd_view *view, u64 *s)
{
	const struct paper *p = state;
	u64 mode_us[PIV_MODES] = { p->mode_us[0], p->mode_us[1] };

	mode_us[p->mode] += now_us - p->mode_since_us;
	view->window_bytes = p->rwnd.bytes;
	view->rtt_us = p->rtt_us;
	view->min_rtt_us = p->min_rtt_us;
	view->mss_bytes = p->mss_bytes;
	if (p->rtt_us > p->min_rtt_us)
		view->queue_us = p->rtt_us - p->min_rtt_us;

	s[VULTURE_PAPER_S_PHASE] = p->phase;
	s[VULTURE_PAPER_S_MODE] = p->mode;
	s[VULTURE_PAPER_S_POLICY] = p->rwnd.policy;
	s[VULTURE_PAPER_S_THRESH_BYTES] = p->rwnd.thresh_bytes;
	s[VULTURE_PAPER_S_CWND_BYTES] = cwnd_est_bytes(&p->cwnd);
	s[VULTURE_PAPER_S_PEER_TICK_US] = p->tick.tick_us;
	s[VULTURE_PAPER_S_LAST_PIVS] = p->last.n;
	s[VULTURE_PAPER_S_LAST_POSITIVE] = p->last.positive;
	s[VULTURE_PAPER_S_LAST_SUM_US] = p->last.sum_us;
	s[VULTURE_PAPER_S_PIV_NEGATIVE] = p->negative;
	s[VULTURE_PAPER_S_PIV_ZERO] = p->zero;
	s[VULTURE_PAPER_S_PIV_POSITIVE] = p->positive;
	s[VULTURE_PAPER_S_PIV_LOW] = p->by[PIV_LOW];
	s[VULTURE_PAPER_S_PIV_MIDDLE] = p->by[PIV_MIDDLE];
	s[VULTURE_PAPER_S_PIV_HIGH] = p->by[PIV_HIGH];
	s[VULTURE_PAPER_S_ROUNDS] = p->rounds;
	s[VULTURE_PAPER_S_FIXES] = p->by_policy[RWND_FIX];
	s[VULTURE_PAPER_S_INCREASES] = p->by_policy[RWND_INCREASE];
	s[VULTURE_PAPER_S_DOUBLINGS] = p->by_policy[RWND_DOUBLE];
	s[VULTURE_PAPER_S_HALVINGS] = p->by_policy[RWND_HALVE];
	s[VULTURE_PAPER_S_DRAINS] = p->by_policy[RWND_DRAIN];
	s[VULTURE_PAPER_S_LOSSES] = p->losses;
	s[VULTURE_PAPER_S_CONSERVATIVE_US] = mode_us[PIV_CONSERVATIVE];
	s[VULTURE_PAPER_S_AGGRESSIVE_US] = mode_us[PIV_AGGRESSIVE];
}

static const char *paper_clash(const u32 *values)
{
	struct paper_options o = paper_options_of(values);

	return piv_params_ok(&o.piv) ? NULL :
	       "cons-low-us <= cons-high-us, aggr-low-us < aggr-high-us and tick-us <= psi-us";
}

const struct rwnd_controller rwnd_paper = {
	.name = "paper",
	.state_bytes = sizeof(struct paper),
	.options = paper_option,
	.n_options = ARRAY_SIZE(paper_option),
	.n_stats = VULTURE_PAPER_S_PAD,
	.clash = paper_clash,
	.init = paper_init,
	.change = paper_change,
	.on_data = paper_on_data,
	.on_ack = paper_on_ack,
	.stats = paper_stats,
};
