// SPDX-License-Identifier: GPL-2.0
/*
 * The controller "credit": the law of credit.h, carried out by the flows of a path.
 *
 * All downloads of a path share one struct credit_law, which gives credit to them in turn.
 *
 *	on_data()	passes the queueing delay of each arrival to the law, and gives new
 *			credit for what arrived: to the same flow while that is below its share
 *	on_ack()	records when which credit went out; credit that TCP's own window held
 *			back goes out with the ACK that opens that window
 *	on_timer()	gives the credit that no arrival brings: probes in FLOOR, trains, W
 *			after a train
 *
 * Each event of any flow continues the path's work (credit_pump()). A flow that gets credit
 * through an event of another flow is woken and sends an ACK.
 *
 * There are two upper bounds of the queueing delay, since either may be unusable:
 *  - the one-way delay by the peer's timestamps, less its minimum: too long by up to a tick, and
 *    wrong by the drift between the clocks in a minute
 *  - the time from credit to data, less its minimum: includes the queueing delay of the way back,
 *    and the time of a sender that waits for something other than credit
 * The lesser of the two counts.
 *
 * Minimum rate: in FLOOR one packet a period goes to one flow after the other. After escape-s in
 * FLOOR each flow gets min-kbit at least, whatever this costs other traffic, because a server ends
 * a connection that makes no progress.
 *
 * All state is written under the path's lock (controller.h).
 */
#include <linux/list.h>

#include <lbe/slots.h>

#include "controller.h"
#include "credit.h"
#include "credit_use.h"
#include "lists_gen.h"
#include "piv.h"
#include "vulture.h"

/* Number of grants of credit whose time is kept: a round trip of them at 10 Mbit/s and 100 ms with
 * 2 packets each. Further ones are merged with the latest, whose time is then too early for them.
 */
#define CREDIT_MARKS		96
/* The minima of the delays are those of so many slots of so many ms. Clocks that differ by 50 ppm
 * are 9 ms apart after 3 minutes; the other bound of the queueing delay counts then.
 */
#define CREDIT_SLOTS		3
#define CREDIT_SLOT_MS		60000
/* Added to each one-way delay, us, so that it stays away from the wrap of an unsigned number. */
#define CREDIT_BIAS_US		(1U << 30)
/* Time that TCP has to send an ACK with new credit before the module does, us. */
#define CREDIT_ACK_US		1000U
/* Segments that a SYN offers: a server's initial window (RFC 6928). Connections that open together
 * bring so much each before anything is known of the path. With half as many, a single connection
 * starts a round trip later; with twice as many, sixteen connections fill a buffer of 200 ms at 20
 * Mbit/s.
 */
#define CREDIT_SYN_SEGS		10
/* A flow that does not use its credit for a segment during this time is idle, us. */
#define CREDIT_IDLE_US		1000000U
/* A sender's RTO is not shorter than this, us: 200 ms of Linux, less its timer's slack and the way
 * back.
 */
#define CREDIT_RTO_US		150000U
/* RFC 9293 section 3.7.1 */
#define CREDIT_MSS_MIN		536U
#define CREDIT_TICK_US		1000U	/* the peer's, until measured: Linux, BSD, Windows */
/* Limits for credit_turn(), apart from a number of bytes */
#define CREDIT_ANY		(1U << 29)	/* credit_cap(); as bytes, no limit */
#define CREDIT_OWN_SHARE	0U		/* credit_share() */
#define CREDIT_SPENT		(CREDIT_ANY + 1)	/* no limit if credit_waits(), else 0 */

struct credit_flow;

struct credit_mark {
	u32 from_seq, edge_seq;	/* the credit that this segment added */
	u64 at_us;		/* when it went out, our clock */
};

struct credit_path {
	struct credit_law law;
	struct list_head flows;	/* active ones; the first is the next in turn */
	struct list_head idle;	/* the others */
	u32 n;			/* number of active flows */
	u64 weights;		/* sum of their weights */
	s64 out_bytes;		/* credit out, of active flows */
	u32 clock_bytes;	/* arrivals for which no new credit was given yet */
	u64 sure_us;		/* latest sample of a flow that is sure of its minima */
	u64 data_us;		/* latest arrival */
	u64 now_us;		/* latest event */
	u32 turn_bytes;		/* credit of the train that the first flow got in its turn */
	struct {
		struct credit_flow *flow;	/* NULL: it arrived, or its flow has gone */
		u32 seq;			/* first octet */
	} train[CREDIT_TRAIN];	/* by number of the mark */
};

struct credit_flow {
	struct list_head node;		/* in path->flows or path->idle */
	struct credit_path *path;	/* constant */
	const u32 *options;		/* constant pointer, by attribute */
	u32 unit_bytes;			/* constant, the unit of the window */
	u32 weight;			/* its part of path->weights; the option while active */
	u32 mss_bytes;			/* largest segment seen */
	bool active;
	bool push;			/* it has credit that no ACK has carried yet */
	bool sure;			/* it has sampled an empty path: its minima are right */
	bool probing;			/* a probe is out */
	bool own_known;			/* own_seq is valid */
	bool finished;			/* the furthest data had PSH: its sender had no more */
	u32 goal_seq;			/* the edge that credit allows */
	u32 wire_seq;			/* the highest edge on the wire, rounded up to the unit */
	u32 edge_seq;			/* the edge of the latest ACK: rounding may make it less */
	u32 high_seq;			/* end of the furthest data */
	u32 own_seq;			/* the edge that TCP itself would allow */
	u32 probe_seq;			/* first octet of the probe */
	u32 train_nth, train_seq;	/* law.trains of its latest train; goal_seq before that */
	s32 counted_bytes;		/* its part of path->out_bytes */
	u64 data_us, grant_us;		/* latest arrival; latest credit */
	u64 timeout_us;			/* when data arrived that an RTO had delayed; 0 = never */
	struct credit_use use;		/* what its sender uses */
	struct piv_tick tick;		/* the peer's clock */
	u32 tick_us;			/* its tick as used for the one-way delays */
	u32 ref_tsval;			/* origin of these delays; valid if ref_us is not 0 */
	u64 ref_us;
	struct lbe_slots owd, rtt;	/* slots of the minima, ms */
	u32 owd_us[CREDIT_SLOTS], rtt_us[CREDIT_SLOTS];
	u32 base_us;			/* least of rtt_us[] */
	u32 latest_rtt_us, latest_queue_us;
	struct credit_mark marks[CREDIT_MARKS];
	u8 head, len;			/* of marks[]: index of the oldest, number of entries */
};

/* Credit that the sender has not used, bytes; below 0 if rounding to the unit gave it more. */
static s32 credit_out(const struct credit_flow *f)
{
	return (s32)(f->goal_seq - f->high_seq);
}

/* The same with what rounding to the unit gave on the wire, 0 or more */
static s32 credit_held(const struct credit_flow *f)
{
	return max3(credit_out(f), (s32)(f->wire_seq - f->high_seq), 0);
}

/* Whether the sender has credit for a segment. What rounding gave before counts no more once an ACK
 * of further data has made it less: a sender then has what that ACK says.
 */
static bool credit_has_segment(const struct credit_flow *f)
{
	return (s32)(f->edge_seq - f->high_seq) >= (s32)f->mss_bytes;
}

/* What its sender uses in a round trip, bytes. */
static u32 credit_used(const struct credit_flow *f)
{
	return credit_use_trip(&f->use, f->mss_bytes);
}

/* Update the flow's part of the credit that is out. Only whole segments count, because a sender
 * waits for the rest of a segment before it sends it. If such parts counted, those of many flows
 * would fill W with nothing in flight. That of a single flow cannot, and if segments are longer
 * than W its sender splits them.
 */
static void credit_count(struct credit_flow *f)
{
	s32 out = 0;

	if (f->active) {
		out = credit_held(f);
		if (f->path->n > 1) {
			out -= out % (s32)f->mss_bytes;
			/* A sender that writes now and then uses no more than this. With a factor
			 * of one, a slow start is not counted; with four, fifty such senders fill
			 * W.
			 */
			out = min_t(s64, out, 2 * (s64)credit_used(f));
		}
	}
	f->path->out_bytes += out - f->counted_bytes;
	f->counted_bytes = out;
}

/* What rounding gave, and an ACK of further data took back: data that was sent for it has arrived
 * by now, or there is none. If it counted on, such parts of many flows would fill W for ever.
 */
static void credit_take_back(struct credit_flow *f, u64 now_us)
{
	if (credit_has_segment(f) || now_us - f->data_us <= 2ULL * f->path->law.base_us)
		return;
	f->wire_seq = f->edge_seq;
	credit_count(f);
}

/* The least round trip of the path is that of its active flows. The route may have become longer
 * since idle ones measured theirs, and a train would be judged before it can have arrived. All
 * flows are read only if the minimum may have changed, since there may be thousands.
 */
static void credit_find_base(struct credit_path *p)
{
	struct credit_flow *f;
	u32 least_us = U32_MAX;

	list_for_each_entry(f, &p->flows, node)
		if (f->base_us)
			least_us = min(least_us, f->base_us);
	if (least_us != U32_MAX)
		p->law.base_us = least_us;
}

/* The route has become longer, for each flow by this much at most. Its next samples show if it is
 * less.
 */
static void credit_raise_bases(struct list_head *flows, u32 rtt_us, u32 trip_us)
{
	struct credit_flow *f;

	list_for_each_entry(f, flows, node) {
		lbe_slots_raise(&f->rtt, f->rtt_us, rtt_us);
		lbe_slots_raise(&f->owd, f->owd_us, trip_us);
		f->base_us = f->base_us ? credit_bounded_us(f->base_us + rtt_us) : 0;
	}
}

static void credit_move_bases(struct credit_path *p, struct credit_move moved)
{
	if (!moved.rtt_us)
		return;
	credit_raise_bases(&p->flows, moved.rtt_us, moved.trip_us);
	credit_raise_bases(&p->idle, moved.rtt_us, moved.trip_us);
}

static void credit_activate(struct credit_flow *f)
{
	if (!f->active) {
		f->active = true;
		list_move_tail(&f->node, &f->path->flows);
		/* The largest of active flows: the route may now carry shorter segments. */
		if (!f->path->n)
			f->path->law.mss_bytes = 0;
		credit_take_mss(&f->path->law, f->mss_bytes);
		f->path->law.flows = ++f->path->n;
		f->weight = f->options[VULTURE_CREDIT_O_WEIGHT];
		f->path->weights += f->weight;
		if (f->path->n == 1 || f->base_us < f->path->law.base_us)
			credit_find_base(f->path);
		credit_count(f);
	}
}

static void credit_deactivate(struct credit_flow *f)
{
	struct credit_path *p = f->path;
	u32 i;

	if (!f->active)
		return;
	f->active = false;
	list_move_tail(&f->node, &p->idle);
	p->law.flows = --p->n;
	p->weights -= f->weight;
	if (f->base_us == p->law.base_us)
		credit_find_base(p);
	credit_count(f);
	for (i = 0; i < CREDIT_TRAIN; i++)
		if (p->train[i].flow == f)
			p->train[i].flow = NULL;
}

/* Handing out */

/* An active flow's part of W, by its weight; at least one segment. */
static u32 credit_share(const struct credit_flow *f)
{
	const struct credit_path *p = f->path;
	u64 share = div64_u64((u64)p->law.window_bytes * f->weight, p->weights);

	return max_t(u32, (u32)share, p->law.mss_bytes);
}

/* Credit that a flow may have out: somewhat more than its share and than what it used. */
static u32 credit_cap(const struct credit_flow *f)
{
	u32 used = credit_used(f);

	if (f->path->n <= 1)
		return CREDIT_ANY;
	return max(used + used / 4, credit_share(f)) + 2 * f->mss_bytes;
}

/* Whether the sender waits for credit: the credit from before the train is used up or, for a train
 * of CRUISE, no more than twice what it uses in a round trip. Other senders do not send their part
 * of a train, which then looks lost.
 */
static bool credit_waits(const struct credit_flow *f)
{
	const struct credit_law *c = &f->path->law;
	u32 before_seq = f->train_nth == (u32)c->trains ? f->train_seq : f->goal_seq;
	s32 before = (s32)(before_seq - f->high_seq);

	return before < (s32)(f->mss_bytes + f->unit_bytes) ||
	       (c->kept_Bps && before <= 2 * (s64)credit_used(f));
}

/* Whether a flow can use @bytes more with @limit out. TCP's own window must have room for as many
 * of the flow's segments: with a small buffer, the longest segment of the path may be longer than
 * that window. The rest of a segment for which the sender waits is counted with them.
 */
static bool credit_can_use(const struct credit_flow *f, u32 bytes, u32 limit)
{
	u32 own_bytes = bytes / f->path->law.mss_bytes * f->mss_bytes;
	u32 from_seq = credit_out(f) < (s32)f->mss_bytes ? f->high_seq : f->goal_seq;

	if (f->own_known && (s32)(f->own_seq - from_seq) < (s32)own_bytes)
		return false;
	return credit_out(f) + (s32)bytes < (s32)(limit + f->mss_bytes);
}

/* The next flow in turn that can use @bytes with at most @limit out, bytes, or NULL. It stays first
 * in the list. Thus a flow gets all of its share before the next one gets any, and rounding to the
 * unit releases a packet too much for only one flow at a time.
 */
static struct credit_flow *credit_turn(struct credit_path *p, u32 bytes, u32 limit)
{
	struct credit_flow *f;
	u32 n = p->n, most = limit;

	while (n--) {
		f = list_first_entry(&p->flows, struct credit_flow, node);
		if (limit == CREDIT_OWN_SHARE)
			most = credit_share(f);
		else if (limit == CREDIT_ANY)
			most = credit_cap(f);
		else if (limit == CREDIT_SPENT)
			most = credit_waits(f) ? CREDIT_ANY : 0;
		if (credit_can_use(f, bytes, most))
			return f;
		list_move_tail(&f->node, &p->flows);
	}
	return NULL;
}

/* First flows below their share, then any. */
static struct credit_flow *credit_next(struct credit_path *p, u32 bytes)
{
	struct credit_flow *f = credit_turn(p, bytes, CREDIT_OWN_SHARE);

	return f ? f : credit_turn(p, bytes, CREDIT_ANY);
}

/* How many of @bytes TCP's own window takes. The rest would not go out. */
static s32 credit_fits(const struct credit_flow *f, s64 bytes)
{
	return (s32)(f->own_known ? min_t(s64, bytes, (s32)(f->own_seq - f->goal_seq)) : bytes);
}

static void credit_grant(struct credit_flow *f, u32 bytes, u64 now_us)
{
	f->goal_seq += bytes;
	f->grant_us = now_us;
	credit_count(f);
}

static void credit_give(struct credit_flow *f, u32 bytes, u64 now_us)
{
	s32 out = credit_out(f);

	if (f->path->law.phase < CREDIT_FLOOR)
		bytes = (u32)max(credit_fits(f, bytes), 0);
	/* A probe is a whole segment, whatever rounding to the unit gave before. */
	else if (out < (s32)f->mss_bytes && out > -(s32)(f->mss_bytes + f->unit_bytes))
		f->goal_seq = f->high_seq;
	credit_grant(f, bytes, now_us);
}

/* @f got credit in an event of @self. */
static void credit_send(struct credit_flow *f, const struct credit_flow *self, u64 now_us)
{
	f->push = true;
	if (f != self)
		rwnd_wake(f, now_us);
}

/* Give new credit for what arrived: to the flow of the arrival while that stays below its share,
 * else to the next one. If each flow filled its share up to a whole segment, the last of many would
 * never have a turn.
 */
static void credit_give_back(struct credit_path *p, struct credit_flow *self, u64 now_us)
{
	struct credit_law *c = &p->law;
	u32 mss = c->mss_bytes;

	while (p->clock_bytes >= mss && p->out_bytes + mss <= c->window_bytes) {
		struct credit_flow *f = self;

		if (!credit_can_use(f, mss, credit_share(f) - mss))
			f = credit_next(p, mss);
		if (!f)
			return;
		credit_give(f, mss, now_us);
		p->clock_bytes -= mss;
		if (f != self)
			credit_send(f, self, now_us);
	}
}

/* Give credit to the octet, to go out with the ACK that TCP sends anyway: for a single flow, or if
 * TCP's own window had held credit back.
 */
static void credit_give_self(struct credit_flow *f, u32 fresh, u64 now_us)
{
	const struct credit_law *c = &f->path->law;
	s64 room = (s64)c->window_bytes - f->path->out_bytes;

	room = credit_fits(f, min_t(s64, room, fresh));
	if (room > 0)
		credit_grant(f, (u32)room, now_us);
}

/* P, or less if min-kbit needs it, us. */
static u64 credit_probe_period(const struct credit_flow *f, u64 now_us)
{
	const struct credit_law *c = &f->path->law;
	u32 min_kbit = f->options[VULTURE_CREDIT_O_MIN_KBIT];
	u64 escape_us = f->options[VULTURE_CREDIT_O_ESCAPE_S] * 1000000ULL;
	u32 bytes = max(f->unit_bytes, c->mss_bytes);
	u64 period_us = div_u64((u64)credit_period_us(c, now_us) * bytes, c->mss_bytes);

	if (min_kbit && now_us - c->since_us >= escape_us)
		period_us = min(period_us, div64_u64(bytes * 8000ULL, (u64)min_kbit * f->path->n));
	return clamp_t(u64, period_us, 1000, CREDIT_RTT_MAX_US);
}

/* Each step returns the flow that got credit; or NULL, and sets when to call it again. */

static struct credit_flow *credit_pump_floor(struct credit_path *p, u64 now_us, u64 *again_us)
{
	struct credit_law *c = &p->law;
	struct credit_flow *f;

	*again_us = max(c->probe_us, c->blind_us);
	if (now_us < *again_us)
		return NULL;
	f = credit_turn(p, c->mss_bytes, c->mss_bytes);
	if (!f) {
		*again_us = now_us + max_t(u32, c->base_us / 2, 1000);
		return NULL;
	}
	list_move_tail(&f->node, &p->flows);
	f->probe_seq = f->high_seq;
	f->probing = true;
	credit_give(f, c->mss_bytes, now_us);
	c->probe_us = now_us + credit_probe_period(f, now_us);
	c->probe_us += credit_dither_us(c, (u32)(c->probe_us - now_us) / 4);
	return f;
}

static struct credit_flow *credit_pump_train(struct credit_path *p, u64 now_us, u64 *again_us)
{
	struct credit_law *c = &p->law;
	struct credit_flow *f;
	u32 mark;

	if (!c->train_sent) {
		memset(p->train, 0, sizeof(p->train));
		p->turn_bytes = 0;
	}
	*again_us = c->slot_us;
	if (now_us < c->slot_us)
		return NULL;
	/* A train that is repeated comes from the flow whose window it has made longer. */
	if (!c->train_sent && !c->repeated)
		list_rotate_left(&p->flows);
	if (c->train_end_us && now_us >= c->train_end_us) {
		credit_move_bases(p, credit_judge(c, now_us));
		*again_us = now_us;
		return NULL;
	}
	/* The train is sent in addition to W of CRUISE, which is out already. */
	f = credit_turn(p, c->mss_bytes, CREDIT_SPENT);
	if (!f)
		f = credit_turn(p, c->mss_bytes,
				c->window_bytes + 2 * c->train_pkts * c->mss_bytes);
	if (!f) {
		*again_us = now_us + 1000;
		return NULL;
	}
	if (f->train_nth != (u32)c->trains) {
		f->train_nth = (u32)c->trains;
		f->train_seq = f->goal_seq;
	}
	credit_give(f, c->mss_bytes, now_us);
	/* A single flow sends the train. In a fair queue, trains of n flows have n times its part.
	 * If the windows of single flows were too short, all send it in turn. What rounding up to
	 * the unit releases is part of the train too, so a flow stays first until it has had a
	 * unit.
	 */
	p->turn_bytes += c->mss_bytes;
	if (c->spoilt && !c->kept_Bps && p->turn_bytes + c->mss_bytes > f->unit_bytes) {
		list_move_tail(&f->node, &p->flows);
		p->turn_bytes = 0;
	}
	mark = credit_train_mark(c, c->train_sent++);
	if (mark < c->train_marks) {
		p->train[mark].flow = f;
		p->train[mark].seq = f->goal_seq - c->mss_bytes;
	}
	if (c->train_sent >= c->train_pkts) {
		/* mu / 4 until the verdict, if no train failed before and no packets of CRUISE are
		 * in flight.
		 */
		if (!c->train_end_us)
			credit_wait_for_train(c, now_us + c->train_pkts * c->gap_us);
		c->slot_us = c->fails || c->kept_Bps ? c->train_end_us :
			     min(c->slot_us + 4 * c->gap_us, c->train_end_us);
	} else if (c->train_sent > CREDIT_TRAIN_PRIME) {
		c->slot_us += c->gap_us;
	}
	return f;
}

/* START and CRUISE: hand out the part of W that arrivals do not bring, at R after a train. */
static struct credit_flow *credit_pump_window(struct credit_path *p, u64 now_us, u64 *again_us)
{
	struct credit_law *c = &p->law;
	bool spread = credit_spreads(c);
	/* With less than a segment out, no arrival will bring the rest. */
	u32 least = spread || p->out_bytes < c->mss_bytes ? 1 : 2;
	u32 bytes = (p->n > 1 ? 1 : least) * c->mss_bytes;
	struct credit_flow *f;
	u64 rate_Bps;

	*again_us = 0;
	if (p->out_bytes + least * c->mss_bytes > c->window_bytes ||
	    (c->filling && now_us - c->jumped_us > c->base_us * 5ULL / 4)) {
		c->filling = false;
		return NULL;
	}
	*again_us = c->slot_us;
	if (now_us < c->slot_us)
		return NULL;
	*again_us = 0;
	f = credit_next(p, bytes);
	if (!f)
		return NULL;
	credit_give(f, bytes, now_us);
	rate_Bps = c->filling ? c->rate_Bps : max(c->rate_Bps, div_u64(c->mu_Bps, 2));
	/* The arrivals so far do not show the rate of the path, so W is spread over two round
	 * trips.
	 */
	if (c->phase == CREDIT_START)
		rate_Bps = credit_rate_of(c->window_bytes, max(2 * c->base_us, 1U));
	else if (spread)
		rate_Bps = credit_rate_of(c->window_bytes, c->base_us) * 5 / 4;
	c->slot_us = max(c->slot_us, now_us - (spread ? 0 : 2000)) +
		     div64_u64(bytes * 1000000ULL, max(rate_Bps, 1000ULL));
	return f;
}

/* Do the path's work that is due. Return: when there will be more; 0 = after an arrival. */
static u64 credit_pump(struct credit_path *p, struct credit_flow *self, u64 now_us)
{
	u32 most = 64;
	u64 again_us;

	while (p->n && most--) {
		struct credit_flow *f;

		if (p->law.phase == CREDIT_FLOOR)
			f = credit_pump_floor(p, now_us, &again_us);
		else if (p->law.phase == CREDIT_PROBE)
			f = credit_pump_train(p, now_us, &again_us);
		else
			f = credit_pump_window(p, now_us, &again_us);
		if (f)
			credit_send(f, self, now_us);
		else if (again_us != now_us)
			return again_us;
	}
	return p->n ? now_us + 1000 : 0;
}

/* Whether the sender has less credit left than a segment, and an ACK would bring it that. Rounding
 * to the unit may have brought a part of it before.
 */
static bool credit_is_late(const struct credit_flow *f)
{
	return !credit_has_segment(f) && credit_out(f) >= (s32)f->mss_bytes &&
	       (!f->own_known || (s32)(f->own_seq - f->edge_seq) > 0);
}

/* The end of each event: do the path's work, and set what this flow wants. */
static void credit_settle(struct credit_flow *f, u64 now_us, struct rwnd_want *want)
{
	const struct credit_law *c = &f->path->law;
	u64 wake_us = credit_pump(f->path, f, now_us);

	if (f->push) {
		want->update = true;
		f->push = false;
	} else if ((s32)(f->goal_seq - f->wire_seq) >= (s32)f->mss_bytes || credit_is_late(f)) {
		/* TCP's own ACK did not come, or does not soon enough. */
		u64 ack_us = now_us + max(CREDIT_ACK_US, 2 * credit_packet_us(c));

		if (f->grant_us + CREDIT_ACK_US <= now_us)
			want->update = true;
		else if (!wake_us || ack_us < wake_us)
			wake_us = ack_us;
	}
	want->kind = RWND_EDGE;
	want->edge_seq = f->goal_seq + f->unit_bytes - 1;
	if (wake_us && (!want->wake_us || wake_us < want->wake_us))
		want->wake_us = wake_us;
	/* In time to see that it is idle: its part of W would stay with it otherwise. */
	if (f->active && !want->wake_us)
		want->wake_us = now_us + CREDIT_IDLE_US / 4;
}

/* Sensing */

/* Return: when the credit for the octets up to @end went out; 0 = not known. */
static u64 credit_released_us(struct credit_flow *f, u32 end)
{
	for (; f->len; f->head = (f->head + 1) % CREDIT_MARKS, f->len--) {
		const struct credit_mark *m = &f->marks[f->head];

		if ((s32)(m->edge_seq - end) >= 0)
			return (s32)(end - m->from_seq) > 0 ? m->at_us : 0;
	}
	return 0;
}

static void credit_mark_wire(struct credit_flow *f, u32 wire_seq, u64 now_us)
{
	struct credit_mark *m;

	if (f->len == CREDIT_MARKS) {
		f->marks[(f->head + f->len - 1) % CREDIT_MARKS].edge_seq = wire_seq;
	} else {
		m = &f->marks[(f->head + f->len++) % CREDIT_MARKS];
		*m = (struct credit_mark){ f->wire_seq, wire_seq, now_us };
	}
	f->wire_seq = wire_seq;
}

/* One-way delay of the data less its minimum, us, or CREDIT_NO_QUEUE. */
static u32 credit_queue_of_trip(struct credit_flow *f, const struct rwnd_data *d)
{
	u32 now_ms = (u32)div_u64(d->now_us, 1000), tick_us, trip_us;

	piv_tick_on_data(&f->tick, d->now_us, d->tsval);
	tick_us = f->tick.tick_us ? f->tick.tick_us : CREDIT_TICK_US;
	if (!f->ref_us || tick_us != f->tick_us) {
		f->tick_us = tick_us;
		f->ref_us = d->now_us;
		f->ref_tsval = d->tsval;
		lbe_slots_init(&f->owd, f->owd_us, CREDIT_SLOTS, now_ms);
	}
	if (tick_us > PIV_COARSE_US)
		return CREDIT_NO_QUEUE;
	trip_us = CREDIT_BIAS_US + (u32)((s64)(d->now_us - f->ref_us) -
					 (s64)(s32)(d->tsval - f->ref_tsval) * tick_us);
	/* The origin moves along with the data, so a wrap of the peer's clock has no effect. */
	if ((s32)(d->tsval - f->ref_tsval) > 0) {
		f->ref_us += (u64)(d->tsval - f->ref_tsval) * tick_us;
		f->ref_tsval = d->tsval;
	}
	return trip_us - lbe_slots_update(&f->owd, f->owd_us, CREDIT_SLOT_MS, now_ms, trip_us);
}

/* Time from credit to data less its minimum, us, or CREDIT_NO_QUEUE. */
static u32 credit_queue_of_credit(struct credit_flow *f, u64 released_us, u64 now_us)
{
	u32 base_us;

	if (!released_us)
		return CREDIT_NO_QUEUE;
	f->latest_rtt_us = credit_bounded_us(now_us - released_us);
	base_us = lbe_slots_update(&f->rtt, f->rtt_us, CREDIT_SLOT_MS, (u32)div_u64(now_us, 1000),
				   f->latest_rtt_us);
	if (base_us != f->base_us) {
		bool least = !f->base_us || f->base_us == f->path->law.base_us;

		f->base_us = base_us;
		if (least || base_us < f->path->law.base_us)
			credit_find_base(f->path);
	}
	return f->latest_rtt_us - base_us;
}

/* Find the marks of the train in an arrival. Those that their sender had held back say nothing. */
static void credit_match_train(struct credit_flow *f, const struct rwnd_data *d,
			       u32 trip_us, u32 credit_us)
{
	struct credit_path *p = f->path;
	struct credit_law *c = &p->law;
	u32 half = c->mss_bytes / 2, i;
	bool cut;

	u64 base_us = d->now_us - f->base_us;
	u32 queue_us = trip_us == CREDIT_NO_QUEUE ? credit_us : trip_us;

	/* If packets are closer together than the timestamps' ticks, take the lesser of the two,
	 * although they have different minima.
	 */
	if (c->gap_us < f->tick_us)
		queue_us = min(credit_us, trip_us);

	if (credit_us == CREDIT_NO_QUEUE && trip_us == CREDIT_NO_QUEUE)
		return;
	cut = credit_us != CREDIT_NO_QUEUE && trip_us != CREDIT_NO_QUEUE &&
	      credit_us > trip_us + max(6000U, c->base_us / 8) + 2 * c->back_us +
			  credit_lately(&c->back);
	for (i = 0; i < c->train_marks; i++) {
		if (p->train[i].flow != f || (s32)(d->seq - p->train[i].seq) > (s32)half ||
		    (s32)(d->seq + d->bytes - p->train[i].seq) < (s32)half)
			continue;
		p->train[i].flow = NULL;
		if (cut) {
			credit_on_cut(c, i, d->now_us);
			continue;
		}
		credit_on_bunch(c, i, d->now_us);
		credit_on_train(c, i, base_us, base_us - queue_us);
	}
	if (c->train_got + c->train_cut == c->train_marks)
		credit_move_bases(p, credit_judge(c, d->now_us));
}

/* Whether the data had been lost before. The furthest data of a flow, retransmitted after an RTO,
 * looks like new data that was delayed, but not on its way. Data that an application wrote late
 * looks the same; but then the flow was silent because all had been sent (PSH), or was not silent.
 */
static bool credit_is_resent(struct credit_flow *f, const struct rwnd_data *d, u64 released_us,
			     u32 credit_us, u32 trip_us)
{
	if (d->arrival == RWND_RETRANSMITTED)
		return true;
	if (credit_us == CREDIT_NO_QUEUE || trip_us == CREDIT_NO_QUEUE ||
	    credit_us <= trip_us + CREDIT_RTO_US)
		return false;
	if (!f->finished && d->now_us - f->data_us > f->base_us + trip_us + CREDIT_RTO_US)
		f->timeout_us = d->now_us;
	return released_us < f->timeout_us;
}

/* Measure the queueing delay of an arrival, and pass it to the law. */
static void credit_sense(struct credit_flow *f, const struct rwnd_data *d, u64 released_us)
{
	u32 credit_us = credit_queue_of_credit(f, released_us, d->now_us);
	u32 trip_us = credit_queue_of_trip(f, d);
	struct credit_path *p = f->path;
	struct credit_law *c = &p->law;
	u32 queue_us = min(credit_us, trip_us);

	if (credit_us != CREDIT_NO_QUEUE && trip_us != CREDIT_NO_QUEUE)
		credit_learn_back(c, credit_us - min(credit_us, trip_us));
	if (c->phase == CREDIT_FLOOR && d->now_us >= c->blind_us)
		f->sure = true;
	if (f->sure)
		p->sure_us = d->now_us;
	else if (d->now_us - p->sure_us < c->base_us)
		queue_us = CREDIT_NO_QUEUE;
	if (queue_us != CREDIT_NO_QUEUE)
		f->latest_queue_us = queue_us;
	if (credit_is_resent(f, d, released_us, credit_us, trip_us))
		credit_on_resent(c, d->now_us, d->bytes);

	switch (c->phase) {
	case CREDIT_FLOOR:
		c->bytes += d->bytes;
		if (f->probing && (s32)(d->seq - f->probe_seq) >= 0) {
			f->probing = false;
			credit_learn_probe(c, credit_us);
			if (credit_us != CREDIT_NO_QUEUE && trip_us != CREDIT_NO_QUEUE)
				credit_lately_add(&c->back, credit_us - min(credit_us, trip_us));
			credit_move_bases(p, credit_watch_back(c));
			if (d->now_us >= c->blind_us && queue_us != CREDIT_NO_QUEUE)
				credit_on_probe(c, d->now_us, queue_us);
		}
		break;
	case CREDIT_PROBE:
		c->bytes += d->bytes;
		if (d->arrival != RWND_RETRANSMITTED)
			credit_match_train(f, d, trip_us, credit_us);
		break;
	default:
		credit_on_data(c, d->now_us, d->bytes, queue_us);
	}
}

/* After a time without arrivals W says little about the present path. */
static void credit_after_idle(struct credit_path *p, u64 now_us)
{
	struct credit_law *c = &p->law;

	if (c->phase == CREDIT_CRUISE &&
	    now_us - p->data_us > max_t(u64, CREDIT_IDLE_US, 10ULL * c->base_us)) {
		credit_forget_bunches(c);
		credit_yield(c, now_us, c->base_us);
	}
}

/* The controller's calls */

/* The clock is read before the path's lock is taken, so the events of two CPUs may come in another
 * order. As time differences are unsigned, time must not go back. Return: the path's time.
 */
static u64 credit_clock(struct credit_path *p, u64 now_us)
{
	p->now_us = max(p->now_us, now_us);
	return p->now_us;
}

static void credit_path_init(void *path, u64 now_us)
{
	struct credit_path *p = path;

	INIT_LIST_HEAD(&p->flows);
	INIT_LIST_HEAD(&p->idle);
	credit_init_law(&p->law, now_us);
}

static void credit_init(void *state, const struct rwnd_start *start, struct rwnd_want *want)
{
	struct credit_path *p = start->path;
	u64 now_us = credit_clock(p, start->now_us);
	u32 now_ms = (u32)div_u64(now_us, 1000);
	struct credit_flow *f = state;

	f->path = p;
	f->options = start->options;
	f->unit_bytes = start->unit_bytes;
	f->mss_bytes = max(start->mss_bytes, CREDIT_MSS_MIN);
	/* Whatever TCP has advertised stays valid. */
	f->goal_seq = start->edge_seq;
	f->wire_seq = start->edge_seq;
	f->edge_seq = start->edge_seq;
	f->high_seq = start->ack_seq;
	lbe_slots_init(&f->owd, f->owd_us, CREDIT_SLOTS, now_ms);
	lbe_slots_init(&f->rtt, f->rtt_us, CREDIT_SLOTS, now_ms);
	f->base_us = credit_bounded_us(start->min_rtt_us);
	if (f->base_us)
		lbe_slots_update(&f->rtt, f->rtt_us, CREDIT_SLOT_MS, now_ms, f->base_us);
	list_add_tail(&f->node, &p->idle);
	/* What the handshake advertised counts from the first data on. Thus a connection that only
	 * sends, or waits for an answer, holds no part of W.
	 */
	if (!start->fresh)
		credit_activate(f);
	f->data_us = now_us;
	want->kind = RWND_EDGE;
	want->edge_seq = f->goal_seq;
	want->wake_us = now_us + max(p->law.base_us, 10000U);
}

static void credit_on_data_in(void *state, const struct rwnd_data *data, struct rwnd_want *want)
{
	struct rwnd_data copy = *data, *d = &copy;
	struct credit_flow *f = state;
	struct credit_path *p = f->path;
	struct credit_law *c = &p->law;
	u32 end = d->seq + d->bytes, fresh = 0;
	u64 released_us = 0;

	d->now_us = credit_clock(p, d->now_us);
	f->mss_bytes = max(f->mss_bytes, d->seg_bytes);
	credit_take_mss(c, f->mss_bytes);
	credit_after_idle(p, d->now_us);
	credit_activate(f);
	p->data_us = d->now_us;
	credit_use_add(&f->use, d->now_us, c->base_us, d->bytes);

	if ((s32)(end - f->high_seq) > 0) {
		fresh = end - f->high_seq;
		released_us = credit_released_us(f, end);
		f->high_seq = end;
		credit_count(f);
	}
	/* Data behind the furthest counts for the path, but brings no credit. */
	credit_sense(f, d, released_us);
	f->data_us = d->now_us;
	f->finished = fresh ? d->push : f->finished;
	if (fresh && !credit_spreads(c) &&
	    (c->phase == CREDIT_START || (c->phase == CREDIT_CRUISE && !c->filling))) {
		fresh <<= c->phase == CREDIT_START;
		if (p->n == 1) {
			credit_give_self(f, fresh, d->now_us);
		} else {
			p->clock_bytes = min(p->clock_bytes + fresh, c->window_bytes);
			credit_give_back(p, f, d->now_us);
		}
	}
	credit_settle(f, d->now_us, want);
}

static void credit_on_ack(void *state, const struct rwnd_ack *a, struct rwnd_want *want)
{
	struct credit_flow *f = state;
	s32 room = (s32)(f->goal_seq + f->unit_bytes - 1 - a->ack_seq);
	enum credit_phase phase = f->path->law.phase;
	u32 wire_seq, own_seq = a->ack_seq + a->own_bytes;
	u64 now_us = credit_clock(f->path, a->now_us);
	bool held = f->active && f->own_known &&
		    (s32)(f->own_seq - f->goal_seq) < (s32)f->mss_bytes &&
		    (s32)(own_seq - f->own_seq) > 0;

	f->own_seq = own_seq;
	f->own_known = true;
	/* TCP's own window was the limit and opens now; no data will come that brings credit. This
	 * is done even if it opens by less than a segment: TCP sends no further ACK until it can
	 * double the window that it believes to have advertised, and a sender that lacks a few
	 * octets of a segment would wait for its RTO.
	 */
	if (held) {
		s32 opened = (s32)(own_seq - f->goal_seq);

		if (opened > 0 && (phase == CREDIT_START ||
				   (phase == CREDIT_CRUISE && opened < (s32)f->mss_bytes)))
			credit_give_self(f, (u32)opened, now_us);
		credit_settle(f, now_us, want);
		room = (s32)(f->goal_seq + f->unit_bytes - 1 - a->ack_seq);
	}
	room = max(room, 0) & ~(s32)(f->unit_bytes - 1);
	wire_seq = a->ack_seq + min_t(u32, room, a->own_bytes);
	f->edge_seq = wire_seq;
	if ((s32)(wire_seq - f->wire_seq) > 0) {
		credit_mark_wire(f, wire_seq, now_us);
		credit_count(f);
	}
	want->kind = RWND_EDGE;
	want->edge_seq = f->goal_seq + f->unit_bytes - 1;
}

static void credit_on_timer(void *state, u64 now_us, struct rwnd_want *want)
{
	struct credit_flow *f = state;
	u64 idle_us = max_t(u64, CREDIT_IDLE_US, 4ULL * f->path->law.base_us);

	now_us = credit_clock(f->path, now_us);
	credit_take_back(f, now_us);
	if (f->active && f->data_us && credit_has_segment(f) &&
	    now_us - f->data_us > idle_us && now_us - f->grant_us > idle_us)
		credit_deactivate(f);
	credit_settle(f, now_us, want);
}

static void credit_leave(void *state, u64 now_us)
{
	struct credit_flow *f = state;
	struct credit_path *p = f->path;

	credit_deactivate(f);
	list_del(&f->node);
	if (!list_empty(&p->flows))	/* the path's work may have been up to this flow's timer */
		rwnd_wake(list_first_entry(&p->flows, struct credit_flow, node), now_us);
}

/* The other options are read where they are used. */
static void credit_change(void *state, u64 now_us, struct rwnd_want *want)
{
	struct credit_flow *f = state;

	if (!f->active)
		return;
	f->path->weights -= f->weight;
	f->weight = f->options[VULTURE_CREDIT_O_WEIGHT];
	f->path->weights += f->weight;
}

static void credit_stats(const void *state, u64 now_us, struct rwnd_view *view, u64 *s)
{
	const struct credit_flow *f = state;
	const struct credit_law *c = &f->path->law;

	view->window_bytes = max(credit_out(f), 0);
	view->rtt_us = f->latest_rtt_us;
	view->min_rtt_us = lbe_slots_min(&f->rtt, f->rtt_us);
	if (view->min_rtt_us == LBE_SLOT_EMPTY)
		view->min_rtt_us = 0;
	view->queue_us = f->latest_queue_us;
	view->mss_bytes = f->mss_bytes;

	s[VULTURE_CREDIT_S_PHASE] = c->phase;
	s[VULTURE_CREDIT_S_FLOWS] = c->flows;
	s[VULTURE_CREDIT_S_CAPACITY_BPS] = c->mu_Bps * 8;
	s[VULTURE_CREDIT_S_RATE_BPS] = c->rate_Bps * 8;
	s[VULTURE_CREDIT_S_CREDIT_BYTES] = c->window_bytes;
	s[VULTURE_CREDIT_S_GROWTH_PERMILLE] = c->growth_permille;
	s[VULTURE_CREDIT_S_FAILS] = c->fails;
	s[VULTURE_CREDIT_S_YIELDS] = c->yields;
	s[VULTURE_CREDIT_S_TRAINS] = c->trains;
	s[VULTURE_CREDIT_S_TRAINS_FAILED] = c->failed;
}

static const u32 credit_initial[] = { VULTURE_CREDIT_DEFAULTS };

const struct rwnd_controller rwnd_credit = {
	.name = "credit",
	.state_bytes = sizeof(struct credit_flow),
	.path_bytes = sizeof(struct credit_path),
	.initial = credit_initial,
	.n_options = ARRAY_SIZE(credit_initial),
	.n_stats = VULTURE_CREDIT_S_PAD,
	.syn_segs = CREDIT_SYN_SEGS,
	.path_init = credit_path_init,
	.init = credit_init,
	.change = credit_change,
	.on_data = credit_on_data_in,
	.on_ack = credit_on_ack,
	.on_timer = credit_on_timer,
	.leave = credit_leave,
	.stats = credit_stats,
};
