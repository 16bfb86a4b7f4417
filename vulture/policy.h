/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the variations of a round to the receive window: Algorithms 4, 5 and 6 of
 * the paper named in piv.h (sections 0.3.3 to 0.3.5).
 *
 * The law. Of the n variations of one round trip:
 *
 *	high > alpha n				halve
 *	low  > alpha n, rwnd <  threshold	double
 *	low  > alpha n, rwnd >= threshold	increase
 *	otherwise				fix
 *	loss or reordering			halve, at once
 *
 *	double		rwnd += bytes acknowledged
 *	increase	rwnd += MSS, once
 *	halve		rwnd -= bytes acknowledged (the right edge stands still
 *			meanwhile), threshold = rwnd before
 *
 * As printed, double and halve last until the next decision, one or two round trips later. The
 * text says "doubled (or halved) during the next RTT": with goals = 1 they end at twice, or half,
 * the window before.
 *
 * Departs from the paper in:
 *  - Double ends at the threshold if that is nearer, since beyond it the window is
 *    to grow "very prudently" (section 0.3.3).
 *  - The window grows only while the sender uses about 7/8 of it or more, and a
 *    reduction starts from what the sender uses. Otherwise the window of a sender that
 *    its congestion window or its application limits would grow far beyond its use, and
 *    no longer limit it (RFC 9840 section 4.1).
 *  - The least window is two full segments. With less, delayed ACKs and silly-window
 *    avoidance stall the sender.
 *
 * Pure functions; the caller holds the flow's lock.
 */
#ifndef VULTURE_POLICY_H
#define VULTURE_POLICY_H

#include "piv.h"

/* Least window, in full segments. */
#define RWND_FLOOR_SEGS		2
/* Largest window that TCP can express: 65535 << 14. */
#define RWND_MAX_BYTES		(65535U << 14)

enum rwnd_policy {
	RWND_FIX, RWND_INCREASE, RWND_DOUBLE, RWND_HALVE, RWND_POLICIES
};

struct policy_params {
	u32 alpha_permille;	/* share of the variations above which a class decides, 1/1000 */
	u32 increase_segs;	/* step of RWND_INCREASE, segments */
	u32 positive_test;	/* see piv_mode() */
	u32 goals;		/* policies end at twice, or half, the window */
};

struct rwnd {
	u32 bytes;		/* the window wanted, bytes */
	u32 thresh_bytes;	/* the window before the last reduction, bytes */
	u32 goal_bytes;		/* where double and halve end, bytes */
	enum rwnd_policy policy;
	bool increased;		/* RWND_INCREASE has added its step for this policy */
};

/**
 * policy_make() - Algorithm 4: choose the policy
 * @set: variations of the round, not empty
 * @mode: from piv_mode()
 * @alpha_permille: share above which a class decides
 * @rwnd_bytes: window
 * @thresh_bytes: threshold between double and increase
 */
static inline enum rwnd_policy policy_make(const struct piv_set *set,
					   enum piv_mode mode,
					   u32 alpha_permille, u32 rwnd_bytes,
					   u32 thresh_bytes)
{
	u64 needed = (u64)alpha_permille * set->n;

	if (set->by[mode][PIV_HIGH] * 1000ULL > needed)
		return RWND_HALVE;
	if (set->by[mode][PIV_LOW] * 1000ULL > needed)
		return rwnd_bytes < thresh_bytes ? RWND_DOUBLE : RWND_INCREASE;
	return RWND_FIX;
}

/**
 * rwnd_set_policy() - begin to carry out a policy
 * @w: window
 * @policy: from policy_make(), or RWND_HALVE on loss
 * @used_bytes: upper bound of what the sender uses of it in a round trip
 * @floor_bytes: least window
 * @p: parameters
 */
static inline void rwnd_set_policy(struct rwnd *w, enum rwnd_policy policy, u32 used_bytes,
				   u32 floor_bytes, const struct policy_params *p)
{
	u64 twice = p->goals ? 2ULL * w->bytes : RWND_MAX_BYTES;

	w->policy = policy;
	w->increased = false;
	w->goal_bytes = w->bytes;
	if (policy == RWND_HALVE) {
		w->bytes = max(min(w->bytes, used_bytes), floor_bytes);
		w->thresh_bytes = w->bytes;
		w->goal_bytes = p->goals ? max(w->bytes / 2, floor_bytes) : floor_bytes;
	} else if (policy == RWND_DOUBLE) {
		twice = min_t(u64, twice, w->thresh_bytes);
		w->goal_bytes = (u32)min_t(u64, twice, RWND_MAX_BYTES);
	}
}

/**
 * rwnd_on_ack() - Algorithm 5: before an ACK goes out
 * @w: window
 * @acked_bytes: bytes that this ACK acknowledges for the first time
 * @step_bytes: what RWND_INCREASE adds, once
 * @floor_bytes: least window
 * @may_grow: the sender uses its window
 *
 * Return: the window wanted, bytes, never below the floor.
 */
static inline u32 rwnd_on_ack(struct rwnd *w, u32 acked_bytes, u32 step_bytes,
			      u32 floor_bytes, bool may_grow)
{
	u64 next = w->bytes;

	if (acked_bytes && w->policy == RWND_HALVE) {
		u32 over = w->bytes > w->goal_bytes ? w->bytes - w->goal_bytes : 0;

		next = w->bytes - min(over, acked_bytes);
	} else if (acked_bytes && may_grow && w->policy == RWND_DOUBLE) {
		next = max_t(u64, w->bytes,
			     min_t(u64, next + acked_bytes, w->goal_bytes));
	} else if (acked_bytes && may_grow && w->policy == RWND_INCREASE &&
		   !w->increased) {
		next += step_bytes;
		w->increased = true;
	}
	w->bytes = (u32)min_t(u64, max_t(u64, next, floor_bytes), RWND_MAX_BYTES);
	return w->bytes;
}

/**
 * rwnd_may_grow() - whether the sender uses its window
 * @round_bytes: data of the latest full round
 * @rwnd_bytes: window wanted
 * @mss_bytes: full segment
 */
static inline bool rwnd_may_grow(u32 round_bytes, u32 rwnd_bytes, u32 mss_bytes)
{
	return (u64)round_bytes + rwnd_bytes / 8 + 2 * mss_bytes >= rwnd_bytes;
}

/* Number of entries for ACKs that no data has echoed yet. 64 entries resolve a round trip to 1/32
 * or finer: in a full queue they are merged in pairs.
 */
#define CWND_ACKS	64

struct cwnd_ack {
	u32 first_tsval, last_tsval;	/* range of our timestamps that it stands for */
	u32 bytes;			/* acknowledged, but not yet answered by data */
};

/* State of Algorithm 6: an estimate of the sender's window, from what arrives in
 * one round trip.
 */
struct cwnd_est {
	struct cwnd_ack at[CWND_ACKS];
	s64 bytes;	/* the estimate, bytes */
	u8 head;	/* index of the oldest */
	u8 len;		/* entries in use */
};

static inline struct cwnd_ack *cwnd_ack_at(struct cwnd_est *e, u8 i)
{
	return &e->at[(e->head + i) % CWND_ACKS];
}

static inline void cwnd_ack_pop(struct cwnd_est *e)
{
	e->head = (e->head + 1) % CWND_ACKS;
	e->len--;
}

/* The estimate as a window: never negative. */
static inline u32 cwnd_est_bytes(const struct cwnd_est *e)
{
	return (u32)clamp_t(s64, e->bytes, 0, RWND_MAX_BYTES);
}

/**
 * cwnd_on_data() - Algorithm 6, on data
 * @e: estimate
 * @tsecr: our timestamp that the data echoes
 * @bytes: length of the data
 *
 * Data that echoes an ACK already answered in full is growth. Data that echoes a later
 * ACK than the oldest one shows that the sender did not use the rest of the oldest one.
 * ACKs of one tick share an entry, which stays until all their bytes are answered.
 */
static inline void cwnd_on_data(struct cwnd_est *e, u32 tsecr, u32 bytes)
{
	while (e->len) {
		struct cwnd_ack *ack = cwnd_ack_at(e, 0);

		if ((s32)(tsecr - ack->first_tsval) < 0)
			break;
		if ((s32)(tsecr - ack->last_tsval) <= 0) {
			if (ack->bytes > bytes) {
				ack->bytes -= bytes;
				return;
			}
			/* The entry is answered in full; the rest is growth. */
			bytes -= ack->bytes;
			cwnd_ack_pop(e);
			break;
		}
		e->bytes -= ack->bytes;
		cwnd_ack_pop(e);
	}
	e->bytes += bytes;
}

/**
 * cwnd_on_ack() - Algorithm 6, when an ACK goes out
 * @e: estimate
 * @tsval: timestamp of the ACK
 * @bytes: bytes that it acknowledges for the first time, above 0
 */
static inline void cwnd_on_ack(struct cwnd_est *e, u32 tsval, u32 bytes)
{
	struct cwnd_ack *tail = e->len ? cwnd_ack_at(e, e->len - 1) : NULL;
	u8 i;

	if (tail && (s32)(tsval - tail->last_tsval) <= 0) {
		tail->bytes += bytes;
		return;
	}
	if (e->len == CWND_ACKS) {
		for (i = 0; i < CWND_ACKS / 2; i++) {
			struct cwnd_ack one = *cwnd_ack_at(e, 2 * i);
			struct cwnd_ack two = *cwnd_ack_at(e, 2 * i + 1);

			*cwnd_ack_at(e, i) = (struct cwnd_ack){
				.first_tsval = one.first_tsval,
				.last_tsval = two.last_tsval,
				.bytes = one.bytes + two.bytes,
			};
		}
		e->len = CWND_ACKS / 2;
	}
	*cwnd_ack_at(e, e->len++) = (struct cwnd_ack){
		.first_tsval = tsval,
		.last_tsval = tsval,
		.bytes = bytes,
	};
}

/* A decision as the tracepoint shows it. The module supplies vulture_trace_round(). */
struct rwnd_round {
	const struct piv_set *set;
	u32 mode, policy, rwnd_bytes, thresh_bytes, cwnd_bytes, rtt_us;
	bool loss;
};

void vulture_trace_round(const void *state, const struct rwnd_round *round);

#endif /* VULTURE_POLICY_H */
