/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The right edge of the receive window: which data has arrived, what was acknowledged and
 * promised, and which window a segment may advertise. All rules for the window on the wire are
 * here.
 *
 *	        ack_seq          goal_seq  edge_seq      ack_seq + own
 *	  --------|-----------------|--------|----------------|----->  sequence numbers
 *	 arrived      may be sent                TCP would take
 *
 *	own	the window that TCP itself would advertise
 *	unit	2^scale octets, the unit of the header's window field
 *
 *	window = min(own, ceil((goal - ack) / unit))	RWND_WINDOW, at least 1
 *	window = min(own, floor((goal - ack) / unit))	RWND_EDGE
 *	goal   = max(goal, edge wanted by the controller)	without retraction
 *	goal   = edge wanted by the controller			with it, on new acknowledgments
 *
 * goal is kept to the octet. If the rounded edge were kept instead, each ACK that
 * acknowledges less than a unit would move the edge to the right by as much, and the
 * window would never shrink. The edge on the wire may therefore move to the left by
 * less than a unit, which RFC 7323 section 2.4 allows. Data that was sent beyond it is
 * accepted, since TCP's own edge does not move.
 *
 * Retraction (RFC 7323 section 2.4, RFC 9293 section 3.8.6) is the controller's
 * choice. It leaves at least EDGE_KEEP_SEGS segments.
 *
 * Sequence numbers are compared as in RFC 9293 section 3.4, so all of them must lie within 2^31
 * of each other. They do: all move with ack_seq, which moves with each octet that TCP accepts, and
 * a window is below 2^30.
 *
 * Pure functions; the caller holds the flow's lock.
 */
#ifndef VULTURE_EDGE_H
#define VULTURE_EDGE_H

#include <lbe/arith.h>

#include "controller.h"

/* Segments that a retraction leaves open. With only one, the delayed ACK of a single segment
 * stalls the sender.
 */
#define EDGE_KEEP_SEGS	2
/* Greatest age of the timestamp with which a peer's timestamp is compared, us: about half
 * of the time after which a clock with the finest tick, 1 us, changes its sign.
 */
#define EDGE_TSVAL_US	1000000000U

struct edge {
	u32 ack_seq;		/* latest acknowledgment number sent */
	u32 edge_seq;		/* furthest right edge advertised, in whole units */
	u32 goal_seq;		/* the same before rounding */
	u32 high_seq;		/* end of the furthest data seen */
	u32 high_tsval;		/* the peer's timestamp on it */
	u32 recent_tsval;	/* the peer's timestamp on the latest data in order, as for PAWS */
	u64 recent_us;		/* when that data arrived, our clock; 0 = none yet */
	u32 own_bytes;		/* TCP's own window in the latest segment */
	u32 advertised_bytes;	/* the window that went out instead */
	u32 out_tsval;		/* timestamp of the latest segment sent */
	u16 own_field, field;	/* of the latest segment, as in the header */
	u8 scale;		/* our window scale, 0 to 14 */
	bool any_data;		/* high_* are valid */
};

static inline bool edge_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/**
 * edge_init() - control begins
 * @e: edge
 * @ack_seq: latest acknowledgment number that TCP sent
 * @own_bytes: window that it advertised with it
 * @scale: our window scale
 *
 * Whatever TCP has advertised so far stays valid.
 */
static inline void edge_init(struct edge *e, u32 ack_seq, u32 own_bytes, u8 scale)
{
	*e = (struct edge){
		.ack_seq = ack_seq,
		.edge_seq = ack_seq + own_bytes,
		.goal_seq = ack_seq + own_bytes,
		.high_seq = ack_seq,
		.own_bytes = own_bytes,
		.advertised_bytes = own_bytes,
		.scale = scale,
	};
}

/**
 * edge_takes() - whether TCP accepts this data
 * @e: edge
 * @now_us: our clock
 * @seq: first octet
 * @bytes: octets, above 0
 * @tsval: the peer's timestamp
 *
 * It must bring an octet that is not acknowledged yet, end inside the window that was offered or
 * that TCP itself would offer, and not be older than the latest data in order (PAWS, RFC 7323
 * section 5). Other data is stray, a duplicate or forged, and must not be counted.
 */
static inline bool edge_takes(const struct edge *e, u64 now_us, u32 seq, u32 bytes, u32 tsval)
{
	u32 end = seq + bytes;

	if (!edge_before(e->ack_seq, end) || edge_before(end, seq))
		return false;
	if (edge_before(e->edge_seq, end) && edge_before(e->ack_seq + e->own_bytes, end))
		return false;
	return !e->recent_us || now_us - e->recent_us > EDGE_TSVAL_US ||
	       (s32)(tsval - e->recent_tsval) >= 0;
}

/**
 * edge_seen() - account for data that edge_takes()
 * Return: what kind of arrival it is, against the furthest data before it.
 */
static inline enum rwnd_arrival edge_seen(struct edge *e, u64 now_us, u32 seq, u32 bytes,
					  u32 tsval)
{
	enum rwnd_arrival arrival = RWND_NEXT;
	u32 end = seq + bytes;

	if (e->any_data && edge_before(seq, e->high_seq))
		arrival = (s32)(tsval - e->high_tsval) > 0 ? RWND_RETRANSMITTED : RWND_REORDERED;
	else if (e->any_data && seq != e->high_seq)
		arrival = RWND_HOLE;
	if (!edge_before(e->ack_seq, seq)) {
		e->recent_tsval = tsval;
		e->recent_us = now_us;
	}
	if (!e->any_data || edge_before(e->high_seq, end)) {
		e->high_seq = end;
		e->high_tsval = tsval;
		e->any_data = true;
	}
	return arrival;
}

/* Whether the sender has reached the edge, or is within one segment of it. */
static inline bool edge_reached(const struct edge *e, u32 seg_bytes)
{
	return edge_before(e->ack_seq + e->advertised_bytes, e->high_seq + seg_bytes);
}

/* Whether data awaits an ACK while the advertised window is smaller than TCP's own. */
static inline bool edge_owes(const struct edge *e)
{
	return e->advertised_bytes < e->own_bytes && edge_before(e->ack_seq, e->high_seq);
}

/**
 * edge_acknowledged() - a segment is about to go out
 * Return: octets that it acknowledges for the first time
 */
static inline u32 edge_acknowledged(struct edge *e, u32 ack)
{
	u32 bytes = ack - e->ack_seq;

	if (!edge_before(e->ack_seq, ack))
		return 0;
	e->ack_seq = ack;
	return bytes;
}

/* Whether this segment has passed the hook before and has the window that was written then. A VRF
 * device sends each packet through the hook twice.
 */
static inline bool edge_is_repeated(const struct edge *e, u32 ack, u16 own_field, u32 tsval)
{
	return e->field != e->own_field && own_field == e->field &&
	       ack == e->ack_seq && tsval == e->out_tsval;
}

/**
 * edge_goal() - move the goal as the controller wants
 * @e: edge
 * @ack: acknowledgment number of the segment
 * @fresh: it acknowledges data for the first time
 * @own_bytes: window that TCP put there
 * @want: what the controller wants, not RWND_LEAVE
 * @mss_bytes: full segment
 *
 * The goal does not exceed TCP's own window: the part beyond that would have to be used up before
 * the window could shrink.
 *
 * Return: the window before rounding, octets from @ack on, 0 or more.
 */
static inline u32 edge_goal(struct edge *e, u32 ack, bool fresh, u32 own_bytes,
			    const struct rwnd_want *want, u32 mss_bytes)
{
	u32 wanted_seq = want->kind == RWND_EDGE ? want->edge_seq :
						   ack + min(want->bytes, own_bytes);
	u32 least_seq = ack + EDGE_KEEP_SEGS * mss_bytes;

	if (edge_before(ack + own_bytes, wanted_seq))
		wanted_seq = ack + own_bytes;
	if (edge_before(e->goal_seq, wanted_seq)) {
		e->goal_seq = wanted_seq;
	} else if (want->retract && fresh) {
		if (edge_before(wanted_seq, least_seq))
			wanted_seq = least_seq;
		if (edge_before(wanted_seq, e->goal_seq))
			e->goal_seq = wanted_seq;
	}
	return edge_before(ack, e->goal_seq) ? e->goal_seq - ack : 0;
}

/**
 * edge_field() - the window field of the header, 16 bits
 * @e: edge
 * @ack: acknowledgment number of the segment
 * @fresh: it acknowledges data for the first time
 * @own_field: what TCP put there
 * @want: what the controller wants
 * @mss_bytes: full segment
 *
 * Return: at most @own_field.
 */
static inline u16 edge_field(struct edge *e, u32 ack, bool fresh, u16 own_field,
			     const struct rwnd_want *want, u32 mss_bytes)
{
	u32 bytes, units;

	if (want->kind == RWND_LEAVE)
		return own_field;
	bytes = edge_goal(e, ack, fresh, (u32)own_field << e->scale, want, mss_bytes);
	units = bytes >> e->scale;
	if (want->kind == RWND_WINDOW && (!units || bytes & ((1U << e->scale) - 1)))
		units++;
	return (u16)min_t(u32, units, own_field);
}

/**
 * edge_advertised() - account for the window that goes out
 * @e: edge
 * @ack: acknowledgment number of the segment
 * @own_field: what TCP put there
 * @field: what goes out
 * @left: it is TCP's own, because the controller wants that or the header could not be written
 * @tsval: timestamp of the segment
 */
static inline void edge_advertised(struct edge *e, u32 ack, u16 own_field, u16 field,
				   bool left, u32 tsval)
{
	u32 edge_seq = ack + ((u32)field << e->scale);

	e->own_field = own_field;
	e->field = field;
	e->out_tsval = tsval;
	e->own_bytes = (u32)own_field << e->scale;
	e->advertised_bytes = (u32)field << e->scale;
	if (edge_before(e->edge_seq, edge_seq))
		e->edge_seq = edge_seq;
	if (left && edge_before(e->goal_seq, edge_seq))
		e->goal_seq = edge_seq;
}

#endif /* VULTURE_EDGE_H */
