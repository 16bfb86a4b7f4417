/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: the law of one path.
 *
 * The right edge of a receive window is credit. A sender that waits for it sends
 * a packet the moment credit reaches it, so the packet of a credit arrives one
 * round trip after the credit went out, plus what stood in the queue. The law is
 * that of a sender, then, with arrivals in the place of ACKs: it hands out credit
 * for W bytes at most, and gives back what arrives.
 *
 *	        queue > 3 ms or 3 p                evidence of an empty path
 *	START ----------------------> FLOOR --------------------------------> PROBE
 *	                              ^   ^                                  |    |
 *	     a queue that others made |   +----------------------------------+    |
 *	                              |            train: others, or lost         |
 *	                           CRUISE <---------------------------------------+
 *	                                       train: room, W at once
 *
 *	q	queue: least of two upper bounds of it, each against its own least
 *		value (one-way delay by the peer's timestamps; credit to data)
 *	mu	capacity: most bytes that came in a tick or a round trip, and in 32 e
 *	p	MSS / mu, the time of a packet
 *	r	arrivals of the latest round trip
 *	e	noise: by how much the samples of a tick exceed the least of them, less p
 *	z	what the link itself pauses for, 40 ms at most; 0 unless it serves in bunches
 *	qt	2 p + e / 4, the target		qhi	5 p + 2 e + z, a jump
 *
 * START	W = 2 r base + 20 MSS, 2 MSS a flow at least, handed out within two round trips:
 *		the sender's own slow start is the slower one. It ends with a queue, or where
 *		the buffer is too short for one when 1/16 is lost. mu is 8 packets a round trip
 *		then at least: that few are an application's rate.
 * CRUISE	each tick (a quarter of base, 4 p and 4 ms at least, and eight samples unless
 *		that takes longer than base), q being the least in it, or after a loss the
 *		largest mean of the last five (is the buffer full?):
 *			dW = r / 2 (qt - q) tick / (base + q)		q < qt
 *			dW = max(r, mu / 2) (qt - q) tick / (base + q)	q >= qt
 *		The gain doubles with each 4 ticks of q < qt / 2 (32 at most), below
 *		93 % of the W at which a queue was met in the last 10 s; a step of a
 *		round trip is at most half of qhi. At rest q = qt, so about two packets
 *		of our own stand: W is the pipe and two packets, and arrivals, with them
 *		credit, stop the moment a foreign burst is in front of ours. With less
 *		than half of the path credit goes out evenly instead, 5/4 W a round trip
 *		at most: what comes in step with a burst stays in step with it; and q
 *		is the least of twice as many samples: bursts of others fill a tick.
 *		Yield to FLOOR when q exceeds 2 qhi twice, when four samples in 8 p exceed
 *		the latest tick by qhi, or a tick the one of a round trip ago, and when q
 *		stays above 2 qt (qt if W is 2 MSS) for 8 ticks; unless what others had of the
 *		path since the queue was short is less than half of the queue: such a queue
 *		is ours, and dW takes it away. Where dW has given a quarter of W away, others
 *		grow: yield if packets were lost since the jump, else ask with a train, which
 *		decides alone: ACKs that share the link keep a queue there too.
 * FLOOR	no credit at all for 2 + log2(pipe / 10 packets) round trips: the length
 *		of a slow start, whose bursts leave gaps that look like an empty path.
 *		Then a packet each P; it says q. Score: +1 if q < qt + 2 e, +2 if
 *		q < p / 3 + e / 2 or after deep queues, less if above. PROBE at
 *		2 + 2 fails (12 at most); each 10 s at the floor forgets a failure.
 *		Once q went up after it was low, up to a quarter of P is added, by chance.
 *		Where the samples of 8 s agree above qt the route may be longer: q counts from
 *		there, and a train that loses nothing and has g < 0.1 moves base along. Where
 *		eight probes came back later by base / 8 than they were on the way the way
 *		back is longer, and base with it.
 * PROBE	a train: two packets to prime the queue, then 8 at mu (8 e / p if that is
 *		more, 50 ms at most), then mu / 4 until the verdict, unless one failed before.
 *		After one that failed it begins at random within a round trip, in CRUISE within
 *		a tick: others' bursts may have a period that divides the round trip.
 *		Of the 8, the time that the bottleneck spent on others:
 *			g = (span of arrivals - work) / span of sending = X / mu,
 *		each span from the mean of the first half's to that of the second's; work is
 *		p for each packet that was sent in between, or that came, if these are more.
 *		The verdict waits until no mark has come for base / 8. Where none came closer
 *		than p' > p, p' is p from now on: up to 4/3 p at once, more if nothing has
 *		ever confirmed mu, or not for 120 s p / p'.
 *		Where k came at once and in order, and less than (k - 2) p (the least ever, 250 us
 *		or more) after those before, the link serves in bunches for 60 s: z follows the
 *		longest gap, p' is the mean of each train, 4/3 p at most, and fails is never more
 *		than 1. A higher mu, or a rest, ends that.
 *		g > 0.8, or a quarter of the train lost (later marks came): fails + 1, FLOOR
 *		for a round trip.
 *		Otherwise R = 0.98 mu if g < 0.1, else mu (0.9 - g); at most 0.9 of the rate
 *		that others left us before we yielded (half of it if they were there when we
 *		jumped), until g < 0.1 says that they have gone. W = R base + 2 MSS, handed
 *		out at R.
 *		Sent at once (ACKs were held up on their way), too slowly, or of more than 8
 *		less than half as much of the second half as of the first: nothing is said;
 *		after three of these R = mu / 4, or as many packets a round trip as the
 *		train has marks, if that is less.
 *		CRUISE at k mu < 0.9 mu asks with a train too, first after 15 round trips and
 *		1.5 s, then after twice as long, 48 s at most, and two to three round trips
 *		after one that failed: g > 1 - k / 2 three times in a row ends CRUISE; else
 *		R = k mu, or what the train says if that is more, 2 k mu at most, and k mu if
 *		its first packet met a queue. If nothing of it came and W was more than r base
 *		5/4 (and a jump's worth), senders do not use W, and the train waits: k mu again.
 *
 * Where it comes from: the delay term is FAST's, with a target for the whole queue
 * instead of one's own part; trains are those of TOPP and pathload; the blind time
 * and the evidence are ours.
 *
 * credit_state.h has the state and its arithmetic, credit_train.h PROBE, and this file what an
 * arrival means in START, CRUISE and FLOOR.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_H
#define VULTURE_CREDIT_H

#include "credit_train.h"

/* A credit came back later than its data was on the way, by so much: the queue of the
 * way back, or a sender that waits for something else.
 */
static inline void credit_learn_back(struct credit_law *c, u32 back_us)
{
	if (c->phase != CREDIT_START && !c->filling)
		c->back_us += ((s32)min(back_us, 16000U) - (s32)c->back_us) / 16;
}

/* By how much the samples of a tick exceed the least of them in the mean, without the
 * packet of ours that goes before. Not while somebody's queue stands there. Beside others
 * it is their bursts: as noise these would raise qt and qhi until nothing of theirs counts. The
 * swing of a link that pauses is its own.
 */
static inline void credit_learn_noise(struct credit_law *c)
{
	u32 over_us;

	if (c->samples < CREDIT_TICK_SAMPLES || c->filling || c->least_us > 2 * credit_target_us(c))
		return;
	over_us = (u32)div_u64(c->sum_us, c->samples) - c->least_us;
	over_us -= min(over_us, credit_packet_us(c));
	if (c->phase != CREDIT_START && c->rate_Bps * 20 < c->mu_Bps * 17)
		over_us = min(over_us, max3(c->noise_us, CREDIT_NOISE_BESIDE_US,
					    c->pause_us / 2));
	c->noise_us += ((s32)over_us - (s32)c->noise_us) / (c->phase == CREDIT_START ? 4 : 16);
}

/* The tick that ended so long ago, or NULL: less than 3/4 of that is known. */
static inline const struct credit_tick *credit_ago(const struct credit_law *c, u64 now_us,
						   u32 ago_us)
{
	const struct credit_tick *then = NULL;
	u32 i;

	for (i = 2; i <= min_t(u32, c->n_ticks, CREDIT_TICKS); i++) {
		then = &c->ticks[(c->n_ticks - i) % CREDIT_TICKS];
		if (now_us - then->at_us >= ago_us)
			break;
	}
	if (then && now_us - then->at_us < ago_us / 4 * 3 && c->n_ticks < CREDIT_TICKS)
		then = NULL;
	return then;
}

/* A tick has ended: r and mu. Return: time of a round trip with this queue, us. */
static inline u32 credit_measure(struct credit_law *c, u64 now_us, u32 queue_us)
{
	u32 rtt_us = c->base_us + (queue_us == CREDIT_NO_QUEUE ? 0 : queue_us);
	u32 span_us = (c->phase == CREDIT_START ? 8 : CREDIT_SPAN) * c->noise_us;
	const struct credit_tick *then;
	u64 rate_Bps = 0;

	if (c->arrivals > 16 && c->latest_us - c->first_us > span_us)
		rate_Bps = credit_rate_of(c->bytes - c->first_bytes, c->latest_us - c->first_us);
	then = credit_ago(c, now_us, rtt_us);
	if (then)
		c->rate_Bps = credit_rate_of(c->bytes - then->bytes, now_us - then->at_us);
	then = credit_ago(c, now_us, max(rtt_us, span_us));
	if (then && c->bytes - then->bytes >= CREDIT_LEAST_PKTS * c->mss_bytes)
		rate_Bps = max(rate_Bps, credit_rate_of(c->bytes - then->bytes,
							now_us - then->at_us));
	if (rate_Bps * 10 > c->mu_Bps * 8)
		c->mu_us = now_us;
	c->mu_Bps = max(c->mu_Bps, rate_Bps);
	/* What looked like bunches was a link that is faster than was known. */
	if (c->mu_Bps > c->bunched_Bps + c->bunched_Bps / 16 ||
	    credit_packet_us(c) < CREDIT_BUNCH_US)
		credit_forget_bunches(c);
	c->fast_Bps = max(c->fast_Bps, c->mu_Bps);
	credit_fade_bunches(c, now_us);
	return rtt_us;
}

/* dW of one tick. */
static inline void credit_steer(struct credit_law *c, u64 now_us, u32 queue_us,
				u32 rtt_us, u32 len_us)
{
	u32 target_us = credit_target_us(c);
	u64 rate_Bps;
	s64 step;

	/* Slow links: a tick of four packets is longer than a round trip. */
	len_us = min(len_us, rtt_us);
	/* Too much goes within two round trips, however little of it is ours. */
	rate_Bps = queue_us < target_us ? c->rate_Bps : max(c->rate_Bps, c->mu_Bps / 2);
	step = div_s64((s64)credit_bytes_of(rate_Bps, len_us) *
			   ((s64)target_us - queue_us), max(rtt_us, 1U));

	if (queue_us < target_us) {
		u32 most = (u32)div_u64((u64)credit_jump_us(c) * len_us, 2 * max(rtt_us, 1U));

		step /= 2;
		c->low_ticks = queue_us < target_us / 2 ? c->low_ticks + 1 : 0;
		if (c->window_bytes < c->rose_bytes / 100 * 93 ||
		    now_us - c->rose_us > CREDIT_MEMORY_US)
			step *= 1 << min(c->low_ticks / 4, 5U);
		step = min_t(s64, step, credit_bytes_of(c->mu_Bps, most));
	} else {
		c->low_ticks = 0;
		c->rose_bytes = c->window_bytes;
		c->rose_us = now_us;
	}
	c->window_bytes = (u32)clamp_t(s64, c->window_bytes + step, 2 * c->mss_bytes, 1 << 30);
	c->peak_bytes = max(c->peak_bytes, c->window_bytes);
}

/* The queue of a tick: what the least of many samples would be, if there are few. */
static inline u32 credit_tick_queue(const struct credit_law *c)
{
	u32 mean_us, over_us = c->noise_us + credit_packet_us(c);

	if (!c->samples || c->samples >= CREDIT_TICK_SAMPLES)
		return c->least_us;
	mean_us = (u32)div_u64(c->sum_us, c->samples);
	return min(c->least_us, mean_us - min(mean_us, over_us));
}

/* The queue that a tick is judged by. A short buffer is empty now and then in each tick, and
 * full in between. Where a loss was found out it is the mean that counts, in the round trip
 * before: high if the buffer was full, low if it was the link that lost.
 */
static inline u32 credit_full_queue(const struct credit_law *c, u32 queue_us)
{
	u32 mean_us = 0, i;

	if (!c->lost || queue_us == CREDIT_NO_QUEUE)
		return queue_us;
	for (i = 1; i <= min_t(u32, c->n_ticks, 5); i++)
		mean_us = max(mean_us, c->ticks[(c->n_ticks - i) % CREDIT_TICKS].mean_us);
	return mean_us > credit_target_us(c) ? max(queue_us, mean_us) : queue_us;
}

/* Do others grow? What dW gave them is a quarter of what we had, a queue stands now, and less
 * than 17/20 of what leaves it is ours. Else W only falls to what a short buffer holds, or
 * our own senders wait for a time-out.
 */
static inline bool credit_is_outgrown(const struct credit_law *c)
{
	return c->window_bytes + 2 * c->mss_bytes < c->peak_bytes / 4 * 3 &&
	       c->ticks[(c->n_ticks - 1) % CREDIT_TICKS].mean_us > credit_target_us(c) &&
	       c->rate_Bps * 20 < c->mu_Bps * 17;
}

/* Most of the path is others', and their bursts fill a tick of a few samples now and then. What
 * W is set by is what stays: the least of twice the samples that a tick has else.
 */
static inline u32 credit_lasting_queue(const struct credit_law *c, u32 queue_us)
{
	u32 i, samples = 0;

	for (i = 1; i <= min_t(u32, c->n_ticks, CREDIT_TICKS); i++) {
		const struct credit_tick *tick = &c->ticks[(c->n_ticks - i) % CREDIT_TICKS];

		queue_us = min(queue_us, tick->queue_us);
		samples += tick->samples;
		if (samples >= 2 * CREDIT_TICK_SAMPLES)
			break;
	}
	return queue_us;
}

static inline void credit_end_tick(struct credit_law *c, u64 now_us)
{
	struct credit_tick *tick = &c->ticks[c->n_ticks++ % CREDIT_TICKS];
	u32 len_us = (u32)(now_us - c->tick_us), queue_us = credit_tick_queue(c), rtt_us;
	const struct credit_tick *ago;
	u32 jump_us = credit_jump_us(c);
	bool high, outgrown;

	*tick = (struct credit_tick){ now_us, c->bytes, queue_us,
				      c->samples ? (u32)div_u64(c->sum_us, c->samples) : 0,
				      c->samples };
	rtt_us = credit_measure(c, now_us, queue_us);
	queue_us = credit_full_queue(c, queue_us);
	c->tick_us = now_us;
	if (queue_us != CREDIT_NO_QUEUE)
		credit_learn_noise(c);
	credit_begin_tick(c);
	if (queue_us == CREDIT_NO_QUEUE)
		return;
	if (c->phase == CREDIT_START) {
		/* The round trip is not known before data answers credit of ours if TCP has no
		 * sample of it: W is what the handshake advertised until then.
		 */
		if ((c->lost_bytes * CREDIT_LOST_PART > c->bytes ||
		     queue_us > max_t(u32, 3000, 3 * credit_packet_us(c))) && c->rate_Bps &&
		    c->base_us) {
			/* In no round trip did that many come: the senders were the limit. */
			if (!c->mu_Bps)
				c->mu_Bps = max(c->rate_Bps,
						credit_rate_of(CREDIT_LEAST_PKTS * c->mss_bytes,
							       rtt_us));
			credit_yield(c, now_us, c->base_us * 3ULL / 2);
		}
		return;
	}
	ago = c->n_ticks > 5 ? &c->ticks[(c->n_ticks - 5) % CREDIT_TICKS] : NULL;
	high = queue_us > 2 * jump_us ||
	       (ago && ago->queue_us != CREDIT_NO_QUEUE && queue_us > ago->queue_us + jump_us);
	if (credit_is_own(c, now_us, queue_us)) {
		high = false;
		c->high_ticks = 0;
	} else {
		c->high_ticks = queue_us > 2 * credit_target_us(c) ||
				(queue_us > credit_target_us(c) &&
				 c->window_bytes <= 2 * c->mss_bytes) ? c->high_ticks + 1 : 0;
	}
	if (credit_spreads(c))
		queue_us = credit_lasting_queue(c, queue_us);
	if (high || c->high_ticks >= CREDIT_HIGH_TICKS)
		credit_yield_to_others(c, now_us, c->high_ticks >= CREDIT_HIGH_TICKS);
	else
		credit_steer(c, now_us, queue_us, rtt_us, len_us);
	if (c->phase != CREDIT_CRUISE || c->filling)
		return;
	outgrown = credit_is_outgrown(c);
	if (outgrown && c->lost_us > c->jumped_us) {
		credit_yield_to_others(c, now_us, true);
		return;
	}
	/* Who has given that much away already is sure after one train. */
	if (outgrown)
		c->doubts = CREDIT_DOUBTS_MOST - 1;
	else if (queue_us >= credit_target_us(c) || c->rate_Bps >= c->mu_Bps / 10 * 9 ||
		 now_us <= c->ask_us)
		return;
	c->kept_Bps = c->rate_Bps;
	credit_probe(c, now_us);
}

/* A sample of CRUISE: does it call for the floor at once? */
static inline bool credit_sees_others(struct credit_law *c, u64 now_us, u32 queue_us)
{
	const struct credit_tick *last = c->n_ticks ?
		&c->ticks[(c->n_ticks - 1) % CREDIT_TICKS] : NULL;
	u32 jump_us = credit_jump_us(c);

	if (queue_us < credit_target_us(c)) {
		c->quiet_us = now_us;
		c->quiet_bytes = c->bytes;
	}
	c->high_row = queue_us > 2 * jump_us ? c->high_row + 1 : 0;
	if (!last || last->queue_us == CREDIT_NO_QUEUE || queue_us <= last->queue_us + jump_us)
		c->jump_row = 0;
	else if (!c->jump_row++)
		c->row_us = now_us;
	return (c->high_row >= 2 ||
		(c->jump_row >= 4 && now_us - c->row_us >= credit_burst_us(c))) &&
	       !credit_is_own(c, now_us, queue_us);
}

/* What came had been lost before. */
static inline void credit_on_resent(struct credit_law *c, u64 now_us, u32 bytes)
{
	c->lost = true;
	c->lost_us = now_us;
	c->lost_bytes += bytes;
}

/* A longer route is no queue; a shorter one ends that. */
static inline u32 credit_unshift(struct credit_law *c, u32 queue_us)
{
	if (queue_us == CREDIT_NO_QUEUE)
		return queue_us;
	c->shift_us = min(c->shift_us, queue_us);
	return queue_us - c->shift_us;
}

/**
 * credit_on_data() - data came, in START or CRUISE
 * @c: law
 * @now_us: our clock
 * @bytes: payload
 * @queue_us: that it met, or CREDIT_NO_QUEUE
 */
static inline void credit_on_data(struct credit_law *c, u64 now_us, u32 bytes, u32 queue_us)
{
	queue_us = credit_unshift(c, queue_us);
	c->bytes += bytes;
	if (!c->tick_us)
		c->tick_us = now_us;
	if (!c->arrivals++) {
		c->first_us = now_us;
		c->first_bytes = c->bytes;
	}
	c->latest_us = now_us;
	c->least_us = min(c->least_us, queue_us);
	if (queue_us != CREDIT_NO_QUEUE) {
		c->sum_us += queue_us;
		c->samples++;
	}
	if (c->phase == CREDIT_CRUISE && queue_us != CREDIT_NO_QUEUE &&
	    credit_sees_others(c, now_us, queue_us)) {
		credit_yield_to_others(c, now_us, false);
		return;
	}
	if (now_us - c->tick_us >= credit_tick_len_us(c) &&
	    (c->samples >= CREDIT_TICK_SAMPLES || c->phase == CREDIT_START ||
	     now_us - c->tick_us >= c->base_us))
		credit_end_tick(c, now_us);
	if (c->phase == CREDIT_START)
		c->window_bytes = max(c->window_bytes,
				      2 * credit_bytes_of(c->rate_Bps, c->base_us) +
				      max(20U, 2 * c->flows) * c->mss_bytes);
}

/* Samples that agree for long, far above base: the route is longer now. */
static inline void credit_watch_route(struct credit_law *c, u64 now_us, u32 queue_us)
{
	u32 least = min(c->flat_min_us, queue_us), most = max(c->flat_max_us, queue_us);

	if (!c->flat_samples || most - least > credit_target_us(c)) {
		c->flat_us = now_us;
		c->flat_samples = 1;
		c->flat_min_us = queue_us;
		c->flat_max_us = queue_us;
		return;
	}
	c->flat_min_us = least;
	c->flat_max_us = most;
	if (++c->flat_samples >= CREDIT_FLAT_SAMPLES && now_us - c->flat_us >= CREDIT_FLAT_US &&
	    least > credit_target_us(c)) {
		c->shift_us += least;
		c->shift_new = true;
		c->flat_samples = 0;
	}
}

/* The way back has become longer, by an eighth of a round trip or more: that is no queue of data,
 * so that no train need tell. Less changes no time by much. Return: by how much.
 */
static inline struct credit_move credit_watch_back(struct credit_law *c)
{
	struct credit_move moved = { .rtt_us = credit_lately(&c->back) };

	if (c->back.n < CREDIT_LATELY || moved.rtt_us < max(c->base_us / 8, 1000U))
		return (struct credit_move){};
	c->base_us += moved.rtt_us;
	c->back.n = 0;
	return moved;
}

/**
 * credit_on_probe() - a packet of the floor came
 * @c: law
 * @now_us: our clock
 * @queue_us: that it met
 */
static inline void credit_on_probe(struct credit_law *c, u64 now_us, u32 queue_us)
{
	queue_us = credit_unshift(c, queue_us);
	credit_fade_bunches(c, now_us);
	credit_watch_route(c, now_us, queue_us);
	if (queue_us > max(2 * credit_jump_us(c), c->base_us / 10 * 3)) {
		/* A buffer that deep loses nothing to a train of ours. */
		c->score = 0;
		if (++c->deep >= 2) {
			c->fails = 0;
			c->left_Bps = 0;
		}
		return;
	}
	if (queue_us >= credit_met_us(c)) {
		c->bursts |= c->score > 0;
		c->score = c->score > 2 ? c->score - 2 : 0;
		c->deep = 0;
		return;
	}
	c->score += c->deep ||
		    queue_us < max(credit_packet_us(c) / 3, 300U) + c->noise_us / 2 ? 2 : 1;
	c->deep = 0;
	if (c->fails < 2)
		c->probe_us = now_us + credit_dither_us(c, credit_tick_len_us(c));
	if (c->score >= min(2 + 2 * credit_fails(c, now_us), 12U))
		credit_probe(c, now_us);
}

#endif /* VULTURE_CREDIT_H */
