// SPDX-License-Identifier: GPL-2.0
/*
 * The controller of Li and Welzl (piv.h names the report).
 *
 *	            ACK that carries       data that          data that
 *	            the policy goes out    echoes it          echoes that
 *	   decide ----------------------> collect ----------> decide
 *	             WAIT (1 round trip)   COLLECT (1 round trip)
 *
 * A round trip is the time from a segment that we send to the first data that echoes
 * its timestamp or a later one. After a decision the variations of one round trip are
 * ignored, since that data was sent before the sender knew of the decision ("until the
 * first data packet that reflects the new policy", section 0.3.3). Those of the next
 * round trip are used for the next decision.
 *
 * Where the paper is silent:
 *  - A round without variations (fewer than two packets, or all within PSI) is
 *    prolonged by a round trip.
 *  - The queue of packets is empty at the begin of COLLECT, since a pair must not contain
 *    data of the earlier policy. The packet that ends COLLECT still counts; otherwise a
 *    window of two segments would have no pair at all.
 *  - Control begins one round trip after the start, with rwnd = rwndThresh =
 *    the estimate of the sender's window (at once if the connection was
 *    observed before). A connection that begins under control starts with what
 *    the handshake advertised and has no threshold yet: it doubles until its
 *    first reduction, and the sender's own slow start is the slower of the two.
 *  - TCP may have advertised far more before, and each "halve" leaves an edge ahead
 *    of the window. The paper only requires that TCP advertises rwnd, so the edge is
 *    put where rwnd has it, also to the left (retract, RFC 7323 section 2.4). With
 *    retract = 0 the edge stays until it is used up, and the next decision waits for that.
 *  - A connection that is only observed is analysed in each round trip, since there is
 *    no policy to wait for. This is what the paper's Figures 3 to 8 show.
 *  - "Increase" adds its step once each time that it is decided.
 *  - Loss and reordering halve the window at once, but only once per round trip: one
 *    reduction covers all data that was in flight when the loss was detected. ECN does
 *    the same.
 *  - Algorithm 6 uses for "acknowledged" what has arrived since the last ACK. The two
 *    differ while there is a hole: duplicate ACKs release data too, and the ACK that
 *    fills the hole releases little. Counted as printed, each loss would make the
 *    estimate too small for ever.
 *  - From the start by a request to the first window of its own, the controller
 *    advertises no further edge.
 *  - Without a tick of the peer (not learnt yet, or coarser than 10 ms) there are no
 *    variations: the window is kept, and only loss changes it.
 */
#include <linux/kernel.h>

#include "controller.h"
#include "lists_gen.h"
#include "policy.h"
#include "uapi/vulture.h"

/* First and least estimate of a full segment, bytes: RFC 9293 section 3.7.1. */
#define PAPER_MSS_MIN	536U

/* The options by name. */
struct paper_options {
	struct piv_params piv;
	struct policy_params policy;
	u32 observe;		/* 1: only estimate, limit nothing */
	u32 settle;		/* 1: variations do not count while the window doubles */
	u32 retract;		/* 1: the edge may move to the left */
};

static const u32 paper_initial[] = { VULTURE_PAPER_DEFAULTS };

static struct paper_options paper_options_of(const u32 *o)
{
	return (struct paper_options){
		.piv = {
			.tick_us = o[VULTURE_PAPER_O_TICK_US],
			.psi_us = o[VULTURE_PAPER_O_PSI_US],
			.cons_low_us = o[VULTURE_PAPER_O_CONS_LOW_US],
			.cons_high_us = o[VULTURE_PAPER_O_CONS_HIGH_US],
			.aggr_low_us = o[VULTURE_PAPER_O_AGGR_LOW_US],
			.aggr_high_us = o[VULTURE_PAPER_O_AGGR_HIGH_US],
			.pairing = o[VULTURE_PAPER_O_PAIRING],
		},
		.policy = {
			.alpha_permille = o[VULTURE_PAPER_O_ALPHA_PERMILLE],
			.increase_segs = o[VULTURE_PAPER_O_INCREASE_SEGS],
			.positive_test = o[VULTURE_PAPER_O_POSITIVE_TEST],
			.goals = o[VULTURE_PAPER_O_GOALS],
		},
		.observe = o[VULTURE_PAPER_O_OBSERVE],
		.settle = o[VULTURE_PAPER_O_SETTLE],
		.retract = o[VULTURE_PAPER_O_RETRACT],
	};
}

/* Greatest distance at which reduced_seq follows the furthest data, octets: above any window, below
 * 2^31.
 */
#define PAPER_REDUCED_BYTES	RWND_MAX_BYTES

struct paper {
	const u32 *values;	/* the flow's options, by attribute */
	struct paper_options options;	/* the same by name */
	struct piv_params piv;	/* options.piv, scaled to the peer's tick */
	struct piv_queue queue;	/* packets of this round that have no partner yet */
	struct piv_set set;	/* variations of this round */
	struct piv_set last;	/* variations of the latest round that was analysed */
	struct piv_tick tick;	/* peer's timestamp clock */
	struct cwnd_est cwnd;	/* Algorithm 6 */
	u32 arrived_bytes;	/* data since the latest segment that we sent */
	struct rwnd rwnd;	/* Algorithms 4 and 5 */

	enum vulture_phase phase;
	u32 mark_tsval;		/* data that echoes this timestamp ends the round */
	u64 mark_us;		/* when it was sent; 0 = not yet */
	u32 sent_tsval;		/* latest timestamp sent */
	bool sent_any;		/* sent_tsval is valid */

	u32 mss_bytes;		/* largest segment seen */
	u32 round_bytes;	/* data of this round so far */
	u32 last_round_bytes;	/* of the round before */
	bool may_grow;		/* the sender used its window in the round before */
	u32 rtt_us, min_rtt_us;	/* 0 = none yet */

	u32 high_seq;		/* end of the furthest data seen */
	u32 reduced_seq;	/* a loss before this has reduced the window already */
	bool seen_data;		/* high_seq and reduced_seq are valid */

	u32 from_bytes;		/* window at the begin of this round trip, which its data uses */

	enum piv_mode mode;
	u64 mode_since_us;	/* our clock */
	u64 mode_us[PIV_MODES];	/* time in each mode before mode_since_us */
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

static u32 paper_floor_bytes(const struct paper *p)
{
	return RWND_FLOOR_SEGS * p->mss_bytes;
}

/* Upper bound of what the sender uses of its window: the estimate of Algorithm 6 is too
 * small while there is loss, and the count of a round while the round has just begun.
 */
static u32 paper_used_bytes(const struct paper *p)
{
	u32 used = max3(cwnd_est_bytes(&p->cwnd), p->round_bytes, p->last_round_bytes);

	return used + 2 * p->mss_bytes;
}

/* Begin a phase. Its round trip begins with the next timestamp that goes out. */
static void paper_enter(struct paper *p, enum vulture_phase phase)
{
	p->phase = phase;
	p->mark_us = 0;
	p->may_grow = rwnd_may_grow(p->round_bytes, p->from_bytes, p->mss_bytes);
	p->from_bytes = p->rwnd.bytes;
	p->last_round_bytes = p->round_bytes;
	p->round_bytes = 0;
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
	rwnd_set_policy(&p->rwnd, policy, paper_used_bytes(p), paper_floor_bytes(p),
			&p->options.policy);
	p->by_policy[policy]++;
	paper_enter(p, VULTURE_PHASE_WAIT);
	paper_trace(p, policy, loss);
}

/* Begin to control the window. */
static void paper_begin(struct paper *p, u32 rwnd_bytes, u32 thresh_bytes)
{
	p->rwnd.bytes = max(rwnd_bytes, paper_floor_bytes(p));
	p->rwnd.thresh_bytes = max(thresh_bytes, p->rwnd.bytes);
	p->rwnd.goal_bytes = p->rwnd.bytes;
	p->rwnd.policy = RWND_FIX;
	paper_enter(p, VULTURE_PHASE_WAIT);
}

/* Algorithm 2 and the first half of Algorithm 3, at the end of a round that has variations. */
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
		paper_enter(p, VULTURE_PHASE_COLLECT);
		return;
	}
	paper_analyse(p, now_us);
	policy = policy_make(set, p->mode, p->options.policy.alpha_permille,
			     p->rwnd.bytes, p->rwnd.thresh_bytes);
	paper_set_policy(p, policy, false);
}

/* Whether this data echoes the mark, which ends a round trip. */
static bool paper_round_over(struct paper *p, const struct rwnd_data *d)
{
	if (!p->mark_us || (s32)(d->tsecr - p->mark_tsval) < 0)
		return false;
	p->rtt_us = (u32)clamp_t(u64, d->now_us - p->mark_us, 1, U32_MAX);
	if (!p->min_rtt_us || p->rtt_us < p->min_rtt_us)
		p->min_rtt_us = p->rtt_us;
	return true;
}

/* Whether data arrived out of order, after a hole, or with an ECN mark, and no reduction has
 * covered this yet. One reduction covers all data that was in flight when the loss was detected.
 * reduced_seq is moved along, as it would compare as later after 2 GiB without loss.
 */
static bool paper_sees_loss(struct paper *p, const struct rwnd_data *d)
{
	u32 end = d->seq + d->bytes;

	if (!p->seen_data) {
		p->seen_data = true;
		p->high_seq = end;
		p->reduced_seq = d->seq;
		return d->ce;
	}
	if ((s32)(end - p->high_seq) > 0)
		p->high_seq = end;
	if (p->high_seq - p->reduced_seq > PAPER_REDUCED_BYTES)
		p->reduced_seq = p->high_seq - PAPER_REDUCED_BYTES;
	return (d->ce || d->arrival != RWND_NEXT) && (s32)(d->seq - p->reduced_seq) >= 0;
}

static void paper_on_loss(struct paper *p)
{
	p->reduced_seq = p->high_seq;
	if (!paper_controls(p))
		return;
	if (p->phase == VULTURE_PHASE_WAIT && p->rwnd.policy == RWND_HALVE)
		return;		/* a loss of the same round trip */
	p->losses++;
	paper_set_policy(p, RWND_HALVE, true);
}

static void paper_count_variations(struct paper *p, const struct rwnd_data *d)
{
	s64 sent_us;

	if (!paper_has_clock(p))
		return;
	sent_us = piv_tick_sent_us(&p->tick, d->tsval);
	if (p->phase == VULTURE_PHASE_COLLECT || p->phase == VULTURE_PHASE_OBSERVE)
		piv_on_data(&p->queue, &p->set, &p->piv, sent_us, d->now_us, d->segs);
}

/* The tick of the peer has changed: times computed before are in another unit. */
static void paper_new_tick(struct paper *p)
{
	p->piv = piv_scale(&p->options.piv, p->tick.tick_us);
	if (p->phase == VULTURE_PHASE_COLLECT || p->phase == VULTURE_PHASE_OBSERVE)
		paper_enter(p, p->phase);
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
		paper_begin(p, cwnd_est_bytes(&p->cwnd), 0);
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
		paper_new_tick(p);
	if (paper_sees_loss(p, d))
		paper_on_loss(p);

	over = paper_round_over(p, d);
	if (over && p->phase == VULTURE_PHASE_WAIT) {
		paper_enter(p, VULTURE_PHASE_COLLECT);
		over = false;
	}
	paper_count_variations(p, d);
	if (over)
		paper_round_ends(p, d->now_us);
}

/* Whether this segment may begin a round trip: its timestamp must differ from those
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
	if (p->options.retract)
		return true;
	edge_bytes = (s32)(a->edge_seq - a->ack_seq);
	return edge_bytes <= 0 || (u32)edge_bytes <= p->rwnd.bytes + p->mss_bytes;
}

/* Set the window that the phase wants. */
static void paper_want(const struct paper *p, struct rwnd_want *want)
{
	want->kind = RWND_WINDOW;
	want->retract = p->options.retract && paper_controls(p);
	if (p->phase == VULTURE_PHASE_START)
		want->bytes = paper_floor_bytes(p);	/* the edge does not move */
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
		rwnd_on_ack(&p->rwnd, a->acked_bytes,
			    p->options.policy.increase_segs * p->mss_bytes,
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
		paper_begin(p, cwnd_est_bytes(&p->cwnd), 0);
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
	.initial = paper_initial,
	.n_options = ARRAY_SIZE(paper_initial),
	.n_stats = VULTURE_PAPER_S_PAD,
	.clash = paper_clash,
	.init = paper_init,
	.change = paper_change,
	.on_data = paper_on_data,
	.on_ack = paper_on_ack,
	.stats = paper_stats,
};
