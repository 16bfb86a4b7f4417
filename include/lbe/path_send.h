/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tcp_lbe: what a path sends: the one schedule of slots that all its flows share, and the bound on
 * the data in flight. The law that sets the rate is in path.h.
 *
 *	lbe_path_wait()		joins the line of flows that have data
 *	lbe_path_turn_begin()	begins a turn
 *	lbe_path_turn_over()	is the turn of the flow that sends over?
 *	lbe_path_due_ns()	when does the next slot come?
 *	lbe_path_device_busy()	it has come: must it wait for the sender's own device?
 *	lbe_path_cap()		and for room in flight?
 *	lbe_path_sent()		accounts for a burst
 *
 * Pure functions: no clock, no socket, no lock.
 */
#ifndef LBE_PATH_SEND_H
#define LBE_PATH_SEND_H

#include <lbe/path.h>

/* Between the end of a train and its verdict, mu / the first is sent, so that ACKs keep coming;
 * after a failed return mu / the second, next to nothing. If the first is doubled, fewer samples
 * follow the train; if halved, twice as much meets other traffic; with the first after failures
 * too, best effort beside CoDel and cake loses a quarter.
 */
#define LBE_WAIT_PART		4
#define LBE_WAIT_FAILED		64
/* A flow whose packets are sent farther apart than this, us, sends two at once instead of one: the
 * receiver would delay the ACK of a single one. If doubled, flows on slow links have longer round
 * trips; if halved, twice as many flows send bursts.
 */
#define LBE_APART_US		10000

/* A turn ends if nothing is sent for so long, us, after its slot has come: as long as a flow may
 * take to notice that it may send. If doubled, a connection that has ended without its process
 * having closed it delays the others of its path for twice as long; if halved, a flow on a busy
 * host loses its turn.
 */
#define LBE_TURN_UNUSED_US	100000

/* The rate at which the path sends now, bytes a second: at least 1, since it divides. */
static inline u64 lbe_path_send_rate(const struct lbe_path *p)
{
	u64 rate = p->rate;

	if (p->train.on && p->now_us < p->train.until_us)
		rate = p->train.rate;
	else if (p->state == LBE_PROBE)
		rate = lbe_path_link_rate(p) / (p->fails ? LBE_WAIT_FAILED : LBE_WAIT_PART);
	return max_t(u64, rate, 1);
}

/* The rate from which the module derives TCP's pacing rate, four times as high. That leaves room
 * for trains at mu and 1.25 mu; a train that is to learn an unknown capacity is faster.
 */
static inline u64 lbe_path_peak_rate(const struct lbe_path *p)
{
	return max3(p->rate, p->mu, p->train.on && !p->mu ? p->train.rate : 0);
}

/* Packets of one slot; at least two if they are LBE_APART_US apart, or if no more than one packet
 * were sent in a turn.
 */
static inline u32 lbe_path_burst_pkts(const struct lbe_path *p)
{
	u32 apart_us = LBE_APART_US;
	u32 pkts;

	if (p->state == LBE_FLOOR)
		return p->prompt ? 1 : 2;
	pkts = (u32)clamp_t(u64, div64_u64(lbe_path_send_rate(p) >> LBE_SLOT_SHIFT, p->mss),
			    1, LBE_SLOT_PKTS);
	if (p->waiting)
		apart_us = min(apart_us, lbe_path_turn_len_us(p));
	if (pkts < 2 && (u64)p->mss * USEC_PER_SEC > lbe_path_send_rate(p) * apart_us)
		return 2;
	return pkts;
}

/* The time of a slot. It varies with @dither, any number: in an inspection by half of it each way,
 * so that the packets do not all meet the same phase of another flow's; between pairs by an eighth.
 */
static inline u64 lbe_path_slot_ns(const struct lbe_path *p, u32 bytes, u32 dither)
{
	u64 slot_ns;

	if (p->state != LBE_FLOOR) {
		slot_ns = div64_u64(bytes * 1000000000ULL, lbe_path_send_rate(p));
		if (p->state == LBE_PROBE && p->reason == LBE_INSPECT)
			slot_ns = slot_ns / 2 + (slot_ns >> 8) * (dither % 256);
		return slot_ns;
	}
	slot_ns = lbe_path_pair_us(p) * 1000ULL;
	return slot_ns + (slot_ns >> 10) * ((s32)(dither % 256) - 128);
}

/* The earliest beginning of a slot that is used now, so that a late timer costs no rate. */
static inline u64 lbe_path_late_ns(u64 now_ns, u64 slot_ns)
{
	return now_ns - min(min_t(u64, slot_ns, LBE_LATE_NS), now_ns);
}

/* When the next slot comes; it may have come already. */
static inline u64 lbe_path_due_ns(const struct lbe_path *p)
{
	return p->state == LBE_FLOOR ? max(p->next_ns, p->blind_us * 1000) : p->next_ns;
}

/* A pulse that is over has sent more than R allows: a rest makes up for it. */
static inline void lbe_path_rest(struct lbe_path *p, u64 now_ns)
{
	u64 more, len_us;

	if (!p->pulsed || p->now_us < p->train.until_us)
		return;
	more = p->train.rate - min(p->train.rate, p->rate);
	len_us = p->train.until_us - p->train.from_us;
	p->pulsed = false;
	p->next_ns = max(p->next_ns, now_ns) +
		     1000 * div64_u64(len_us * more, max_t(u64, p->rate, 1));
}

/* A flow waits for its turn. */
static inline void lbe_path_wait(struct lbe_path *p, const struct lbe_view *v)
{
	p->waiting++;
	p->line_weight += v->weight;
}

/* It waits no more. Its weight must be what it was when it began to. */
static inline void lbe_path_wait_end(struct lbe_path *p, const struct lbe_view *v)
{
	p->waiting--;
	p->line_weight -= v->weight;
}

/* A turn begins: that of a flow that was first in line, or of one that found nobody there. */
static inline void lbe_path_turn_begin(struct lbe_path *p, const struct lbe_view *v)
{
	/* Each flow that has data has a turn in that time: who had none does not count any more. */
	if (p->now_us - p->least_us > LBE_CYCLE_US) {
		p->least_us = p->now_us;
		p->least_weight[1] = p->least_weight[0];
		p->least_weight[0] = LBE_WEIGHT_MAX;
	}
	p->least_weight[0] = min(p->least_weight[0], v->weight);
	p->turn_weight = v->weight;
	p->turn_us = p->now_us;
	p->turn_pkts = 0;
}

/* No flow of the path has more data. If a train has no verdict because of that, it has not failed;
 * if timers were late, it has, or a busy host would send one train after the other.
 */
static inline void lbe_path_ran_out(struct lbe_path *p)
{
	p->train.ran_out |= p->train.on && p->now_us < p->train.until_us;
}

/* Is the turn over, if other flows wait for theirs? In FLOOR a turn is a pair, whatever the weights
 * are: a flow learns from pairs that the path is there, and all pairs together are so little of the
 * link that shares of them mean nothing. In proportion to weights, a flow with a thousandth of the
 * weight would have a pair in half an hour. All packets of a train are sent by one flow, unless it
 * has no more. The receiver delays the ACK of an odd packet, which would be in flight for as long:
 * one more is waited for, but not for longer than another turn. A flow that does not use the slots
 * of its turn may have ended, or its process may stand.
 */
static inline bool lbe_path_turn_over(const struct lbe_path *p)
{
	u64 due_us = max(div_u64(lbe_path_due_ns(p), 1000), p->turn_us);
	u64 lasted_us = p->now_us - p->turn_us;

	if (p->now_us > due_us + LBE_TURN_UNUSED_US)
		return true;
	if (!p->turn_pkts || (p->train.on && p->now_us < p->train.until_us))
		return false;
	if (p->state == LBE_FLOOR)
		return true;
	return lasted_us >= (p->turn_pkts & 1 ? 2 : 1) * (u64)lbe_path_turn_len_us(p);
}

/* A slot has come: must it wait for the sender's own device? @mine: packets of this flow are still
 * there; @any: packets of any flow wait there. If packets of this path keep waiting, the device is
 * the bottleneck, and its queue shows what other flows have to send: nothing is sent while anything
 * waits, except for pairs.
 */
static inline bool lbe_path_device_busy(struct lbe_path *p, bool mine, bool any)
{
	if (p->state == LBE_FLOOR)
		return false;
	if (mine)
		p->local += p->local < LBE_LOCAL_MAX;
	else if (!any)
		p->local -= p->local > 0;
	if (!any || p->local < LBE_LOCAL_MAX / 2)
		return false;
	/* No ACKs come because nothing is sent, and what delays the train is this device. */
	p->heard_us = p->now_us;
	p->train.throttled = p->train.on;
	return true;
}

/* Account for a burst that is sent now, in a slot that has come. */
static inline void lbe_path_sent(struct lbe_path *p, u64 now_ns, u64 slot_ns, u32 pkts, u32 bytes)
{
	if (p->train.on && p->now_us < p->train.until_us)
		p->train.bytes += bytes;
	p->granted_ns = now_ns;
	p->turn_pkts += pkts;
	p->next_ns = p->state == LBE_FLOOR ? now_ns + slot_ns :
		     max(p->next_ns, lbe_path_late_ns(now_ns, slot_ns)) + slot_ns;
}

/* Bytes that may be in flight. */
static inline u64 lbe_path_cap(const struct lbe_path *p, u32 burst_bytes)
{
	u64 cap;

	if (p->state == LBE_START)
		return LBE_FIRST_PKTS * p->mss +
		       (p->base_us == U32_MAX ? 0 : lbe_path_bdp(p->rate, 2 * p->rtt_us));
	if (p->state != LBE_CRUISE)
		return U64_MAX;
	/* What TCP took for lost may still arrive: until an ACK tells, one slot is sent at most. */
	if (p->timed_out)
		return 0;
	cap = lbe_path_bdp(p->rate, p->rtt_us + 2 * p->noise_us) +
	      max(2 * p->mss, burst_bytes);
	if (p->train.on)
		cap += lbe_train_paced(&p->train);
	return cap;
}

#endif /* LBE_PATH_SEND_H */
