/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flow's window as a router sees it: bytes sent and not acknowledged.
 *
 *   flight = highest sequence number sent - what the sender knew acknowledged
 *   window = ceil(flight / largest segment seen)		packets, modulo 2^32
 *
 * Counted with the packet at hand in it: what the sender had to allow in order
 * to send it. What the sender knew is in the packet: its TSecr is the TSval of
 * the latest ACK that had reached the sender, and that ACK passed here. So the
 * estimate is the sender's own wherever on the path the router stands. Without
 * timestamps it is the latest ACK that passed here instead, which misses what
 * is under way between sender and router: then the router should stand near
 * the sender. Source: Claypool, Kinicki, Hartling, section 5 ("an edge router
 * that keeps per flow TCP state"); the use of timestamps is ours.
 *
 * Policing, same section: a hint that stays low although the flow's flight is
 * large. A strike is a packet of new data whose hint is below half the window;
 * SHRED_STRIKES in a row make the flow a cheat, until it tells the truth as
 * often. Only new data counts: after a time-out an honest sender's window is 1
 * while all that it had sent before is still unacknowledged, but then it
 * retransmits. Half, because right after a loss the flight is up to twice the
 * window.
 *
 * Pure functions; the caller holds the flow's lock.
 */
#ifndef _SHRED_FLIGHT_H
#define _SHRED_FLIGHT_H

#include <lbe/arith.h>

/* Packets of new data; three round trips of a window of ten. Double it: an honest flow with
 * odd bursts is safer, a cheat gains for as long again.
 */
#define SHRED_STRIKES		32

/* Without any ACK after so many bytes the other direction goes another way. */
#define SHRED_BLIND_BYTES	(256U * 1024)

/* ACKs remembered, to look up which had reached the sender. They are thinned out so that they
 * span the way to the sender and back; the flight is uncertain by what one gap acknowledges, a
 * sixteenth to an eighth of that round trip.
 */
#define SHRED_ACK_LOG		16

struct shred_flight {
	u32 snd_nxt;	/* highest sequence number seen, plus one */
	u32 snd_una;	/* highest acknowledgement seen */
	u32 known_una;	/* highest acknowledgement that the sender knew of */
	u32 mss_bytes;	/* largest segment seen */
	u32 ack_tsval[SHRED_ACK_LOG];	/* a ring; ticks of the receiver */
	u32 ack_seq[SHRED_ACK_LOG];	/* acknowledged there */
	u32 ack_gap;	/* ticks between two entries, at least; 0 = any new tick */
	u8 ack_newest;	/* index of the latest entry */
	u8 ack_count;	/* entries in use */
	u8 ack_fresh;	/* entries since the gap was changed, at most SHRED_ACK_LOG */
	u8 strikes;	/* packets in a row that lied (honest flow) or told the truth (cheat) */
	bool started;	/* a packet was seen */
	bool acked;	/* an acknowledgement was seen */
	bool cheat;	/* its hints are overwritten */
};

static inline bool shred_seq_after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* Note that an ACK with this TSval passed. */
static inline void __shred_log_ack(struct shred_flight *f, u32 ack, u32 tsval)
{
	u8 newest = f->ack_newest;

	if (f->ack_count) {
		s32 ticks = (s32)(tsval - f->ack_tsval[newest]);

		if (ticks <= 0 || (u32)ticks < f->ack_gap)
			return;
		newest = (newest + 1) % SHRED_ACK_LOG;
	}
	f->ack_tsval[newest] = tsval;
	f->ack_seq[newest] = ack;
	f->ack_newest = newest;
	if (f->ack_count < SHRED_ACK_LOG)
		f->ack_count++;
	if (f->ack_fresh < SHRED_ACK_LOG)
		f->ack_fresh++;
}

/* A packet echoes @tsecr: which acknowledgement did its sender know? */
static inline void __shred_learn_una(struct shred_flight *f, u32 tsecr)
{
	u8 back, at = f->ack_newest;

	for (back = 0; back < f->ack_count; back++) {
		at = (f->ack_newest + SHRED_ACK_LOG - back) % SHRED_ACK_LOG;
		if ((s32)(tsecr - f->ack_tsval[at]) >= 0)
			break;
	}
	/* a log that is too short or too long is made twice or half as thin, once a turn;
	 * until it reaches back, its oldest entry bounds the flight from below
	 */
	if (f->ack_fresh == SHRED_ACK_LOG && back == SHRED_ACK_LOG) {
		f->ack_gap = f->ack_gap ? 2 * f->ack_gap : 2;
		f->ack_fresh = 0;
	} else if (f->ack_fresh == SHRED_ACK_LOG && back < SHRED_ACK_LOG / 4) {
		f->ack_gap /= 2;
		f->ack_fresh = 0;
	}
	if (back == f->ack_count && back < SHRED_ACK_LOG)
		return;	/* the sender had heard nothing yet of what passed here */
	if (shred_seq_after(f->ack_seq[at], f->known_una))
		f->known_una = f->ack_seq[at];
}

/**
 * shred_flight_syn() - a SYN passed on its way to the receiver
 * @f: the flow
 * @seq: its sequence number
 *
 * A client that uses its port again soon begins another flow under the same key: what was
 * known is of the old one, and its sequence numbers may be anywhere. A SYN sent again begins
 * nothing. To be called before shred_flight_sent().
 */
static inline void shred_flight_syn(struct shred_flight *f, u32 seq)
{
	if (f->started && f->snd_una != seq && f->snd_una != seq + 1)
		*f = (struct shred_flight){ 0 };
}

/**
 * shred_flight_sent() - a packet passed on its way to the receiver
 * @f: the flow
 * @seq: its first sequence number
 * @len: sequence numbers it takes (payload bytes, SYN and FIN one each)
 * @segment_bytes: payload of one segment (of an aggregate: of each)
 * @tsecr: its TSecr; 0 = no timestamps, or none to echo yet
 *
 * Return: true when it carried new data.
 */
static inline bool shred_flight_sent(struct shred_flight *f, u32 seq, u32 len,
				     u32 segment_bytes, u32 tsecr)
{
	bool new_data;

	if (!f->started) {
		f->snd_una = seq;
		f->known_una = seq;
		f->snd_nxt = seq;
		f->started = true;
	}
	if (segment_bytes > f->mss_bytes)
		f->mss_bytes = segment_bytes;
	new_data = shred_seq_after(seq + len, f->snd_nxt);
	if (new_data)
		f->snd_nxt = seq + len;
	if (tsecr && f->ack_count)
		__shred_learn_una(f, tsecr);
	return new_data;
}

/**
 * shred_flight_acked() - an acknowledgement passed on its way to the sender
 * @f: the flow
 * @ack: its acknowledgement number
 * @tsval: its TSval; 0 = no timestamps
 */
static inline void shred_flight_acked(struct shred_flight *f, u32 ack, u32 tsval)
{
	if (!f->started)
		return;
	f->acked = true;
	if (shred_seq_after(ack, f->snd_una))
		f->snd_una = ack;
	if (shred_seq_after(f->snd_una, f->snd_nxt))
		f->snd_nxt = f->snd_una;	/* what it acknowledges went another way */
	if (tsval)
		__shred_log_ack(f, ack, tsval);
}

/**
 * shred_flight_pkts() - window estimate
 * @f: the flow
 *
 * Return: packets in flight, at least 1; 0 when it cannot be known, since no
 * acknowledgement passes here.
 */
static inline u32 shred_flight_pkts(const struct shred_flight *f)
{
	u32 bytes = f->snd_nxt - (f->ack_count ? f->known_una : f->snd_una);
	u32 mss = f->mss_bytes ? f->mss_bytes : 1;

	if (!f->acked && bytes > SHRED_BLIND_BYTES)
		return 0;
	/* SYN and FIN take a number but no room: one alone is one packet */
	return max_t(u32, 1, f->mss_bytes ? (bytes + mss - 1) / mss : 1);
}

/**
 * shred_flight_judge() - is this flow's hint to be believed?
 * @f: the flow
 * @hint_pkts: what its packet says, 1 to 255
 * @new_data: result of shred_flight_sent() for that packet
 *
 * Return: true when the hint must be overwritten.
 */
static inline bool shred_flight_judge(struct shred_flight *f, u32 hint_pkts, bool new_data)
{
	u32 pkts = min_t(u32, shred_flight_pkts(f), 255);
	bool lies = 2 * hint_pkts < pkts;

	if (new_data) {
		if (lies == f->cheat) {
			f->strikes = 0;
		} else if (++f->strikes >= SHRED_STRIKES) {
			f->cheat = lies;
			f->strikes = 0;
		}
	}
	return f->cheat && lies;
}

#endif
