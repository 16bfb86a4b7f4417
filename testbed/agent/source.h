/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On times of a source, and the bytes that it has generated at a time.  Pure
 * functions, except trace_read() in source.c.
 *
 * A source is a sequence of intervals [on, off), in nanoseconds since the
 * start of the source.  Within an interval, at rate R bit/s of payload:
 *	bytes generated at time t:	R * (t - on) / 8e9, rounded down
 *	packet k of S bytes is sent at:	on + k * 8e9 * S / R, while < off
 * Products have 128 bits, so that neither drifts in a long run.
 */
#ifndef LBE_AGENT_SOURCE_H
#define LBE_AGENT_SOURCE_H

#include "plan.h"
#include "rng.h"

struct source {
	const struct flow_plan *plan;
	struct rng rng;		/* for exponential times */
	u64 on_ns;		/* current interval */
	u64 off_ns;
	u64 count;		/* intervals started */
};

static inline u64 source_bytes(u64 rate_bps, u64 ns)
{
	return (u128)rate_bps * ns / (8 * NSEC_PER_SEC);
}

static inline u64 source_packet_ns(u64 rate_bps, u32 pkt_bytes, u64 k)
{
	return (u128)k * pkt_bytes * (8 * NSEC_PER_SEC) / rate_bps;
}

/* Length of one on or off time; at least a nanosecond, so that time advances. */
static inline u64 source_draw(struct source *s, u64 mean_ns)
{
	if (!s->plan->exponential)
		return mean_ns;
	return 1 + (u64)rng_exponential(&s->rng, mean_ns);
}

/* Advances to the next interval; cbr, greedy and bytes have only one. */
static inline void source_next(struct source *s)
{
	const struct flow_plan *p = s->plan;

	switch (p->kind) {
	case KIND_SQUARE:
		s->on_ns = s->count * p->period_ns;
		s->off_ns = s->on_ns + (u64)(p->duty * p->period_ns);
		break;
	case KIND_ONOFF:
		s->on_ns = s->count ? s->off_ns + source_draw(s, p->off_ns) : 0;
		s->off_ns = s->on_ns + source_draw(s, p->on_ns);
		break;
	default:
		s->on_ns = s->count ? NEVER_NS : 0;
		s->off_ns = NEVER_NS;
	}
	s->count++;
}

static inline void source_init(struct source *s, const struct flow_plan *p)
{
	s->plan = p;
	s->count = 0;
	rng_seed(&s->rng, p->seed);
	source_next(s);
}

/* A trace: packets in order of time */
struct trace_packet {
	u64 at_ns;
	u32 bytes;		/* payload, without overhead */
};

struct trace {
	struct trace_packet *packets;
	size_t count;
};

/* Returns 0, or -1 with the reason (file, line or record) in why. */
int trace_read(struct trace *t, const struct flow_plan *p, char *why,
	       size_t why_len);

#endif
