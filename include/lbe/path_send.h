/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tcp_lbe: what a path sends: the one schedule of slots that all its flows share, and the bound on
 * the data in flight. The law that sets the rate is in path.h.
 *
 *	lbe_path_book_after()	may a slot be taken yet?
 *	lbe_path_reserve()	takes the next slot; lbe_path_give_back() returns it unused
 *	lbe_path_device_busy()	the slot has come: must it wait for the sender's own device?
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
/* A flow whose turn comes less than once in this time, us, sends two packets instead of one: the
 * receiver would delay the ACK of a single one. If doubled, several flows on slow links have
 * longer round trips; if halved, twice as many flows send bursts.
 */
#define LBE_TURN_US		10000

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

/* Packets of one slot; two instead of one if a flow has its turn less than once in LBE_TURN_US. */
static inline u32 lbe_path_burst_pkts(const struct lbe_path *p)
{
	u32 pkts;

	if (p->state == LBE_FLOOR)
		return p->prompt ? 1 : 2;
	pkts = (u32)clamp_t(u64, div64_u64(lbe_path_send_rate(p) >> LBE_SLOT_SHIFT, p->mss),
			    1, LBE_SLOT_PKTS);
	if (pkts < 2 && (u64)p->flows * p->mss * USEC_PER_SEC > lbe_path_send_rate(p) * LBE_TURN_US)
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

/* The earliest beginning of a slot that is taken now, so that a late timer costs no rate. */
static inline u64 lbe_path_late_ns(u64 now_ns, u64 slot_ns)
{
	return now_ns - min(min_t(u64, slot_ns, LBE_LATE_NS), now_ns);
}

/* Time of the next free slot. Flows that wait for room in flight go first. */
static inline u64 lbe_path_next_due(const struct lbe_path *p, u64 now_ns, u64 slot_ns)
{
	if (p->state == LBE_FLOOR)
		return max(max(p->next_ns, now_ns), p->blind_us * 1000);
	return max(p->next_ns, lbe_path_late_ns(now_ns, slot_ns) + p->waiting * slot_ns);
}

/* START does not book slots for later than a round trip. They are spaced by the rate at which they
 * are booked, so that a new rate would act only when all flows have had a slot at the first rate:
 * after eight seconds, with a thousand flows. Return: when a slot that may not be booked yet would
 * be, at the present rate; 0: it may be booked.
 */
static inline u64 lbe_path_book_after(const struct lbe_path *p, u64 now_ns, u64 slot_ns)
{
	u64 due_ns;

	if (p->state != LBE_START)
		return 0;
	due_ns = lbe_path_next_due(p, now_ns, slot_ns);
	return due_ns > now_ns + p->rtt_us * 1000ULL ? due_ns : 0;
}

/* Reserve the next slot. Return: its time. */
static inline u64 lbe_path_reserve(struct lbe_path *p, u64 now_ns, u64 slot_ns)
{
	u64 due_ns;

	/* A pulse has sent more than R allows: a rest makes up for it. */
	if (p->pulsed && p->now_us >= p->train.until_us) {
		u64 more = p->train.rate - min(p->train.rate, p->rate);
		u64 len_us = p->train.until_us - p->train.from_us;

		p->pulsed = false;
		p->next_ns = max(p->next_ns, now_ns) +
			     1000 * div64_u64(len_us * more, max_t(u64, p->rate, 1));
	}
	due_ns = lbe_path_next_due(p, now_ns, slot_ns);
	p->next_ns = due_ns + slot_ns;
	return due_ns;
}

/* A flow does not use its slot: the next one that asks gets it, unless the state has changed. */
static inline void lbe_path_give_back(struct lbe_path *p, u32 epoch, u64 due_ns)
{
	if (epoch == p->epoch)
		p->next_ns = min(p->next_ns, due_ns);
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

/* Account for a burst that is sent now. */
static inline void lbe_path_sent(struct lbe_path *p, u64 now_ns, u64 slot_ns, u32 bytes)
{
	if (p->train.on && p->now_us < p->train.until_us)
		p->train.bytes += bytes;
	if (p->state != LBE_FLOOR)
		p->free_ns = max(p->free_ns, lbe_path_late_ns(now_ns, slot_ns)) + slot_ns;
}

/* Bytes that may be in flight. */
static inline u64 lbe_path_cap(const struct lbe_path *p, u32 burst_bytes)
{
	u64 cap;

	if (p->state == LBE_START)
		return lbe_path_bdp(p->rate, 2 * p->rtt_us) + LBE_FIRST_PKTS * p->mss;
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
