/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: the law of one path.
 *
 * The right edge of a receive window is credit. A sender that waits for credit sends a packet
 * as soon as credit reaches it, so this packet arrives one round trip after its credit went out,
 * plus the queueing delay. The law is therefore that of a sender, with arrivals in the place of
 * ACKs: credit for at most W bytes is out, and each arrival allows as much new credit.
 *
 *	     queue > max(3 ms, 3 p)                evidence of an empty path
 *	START ----------------------> FLOOR --------------------------------> PROBE
 *	                              ^   ^                                  |    |
 *	       queue of other traffic |   +----------------------------------+    |
 *	                              |       train: other traffic, or loss       |
 *	                           CRUISE <---------------------------------------+
 *	                                       train: room, rate R
 *
 *	q	queueing delay: the lesser of two upper bounds, each a delay less its minimum
 *		(one-way delay by the peer's timestamps; time from credit to data)
 *	mu	capacity: the largest rate of arrivals over a tick or a round trip, in either
 *		case over 32 e at least
 *	p	MSS / mu, the time of a packet at the bottleneck
 *	r	rate of arrivals in the latest round trip
 *	e	noise: mean excess of a tick's samples over the least of them, less p
 *	z	length of the pauses of a link that serves in bunches, 40 ms at most; else 0
 *	qt	max(2 p, 2 ms) + e / 4, the target of q
 *	qhi	max(5 p, 6 ms) + 2 e + z, a jump of q that is no noise
 *	pipe	the bandwidth-delay product, mu base
 *
 * START	W = 2 r base + 20 MSS (2 MSS a flow if that is more), handed out over two round
 *		trips. The sender's own slow start is slower than that and sets the pace. START
 *		ends with a queue, or, at a buffer too short for one, when 1/16 of the data has
 *		been lost. If no round trip has brought 8 packets, mu is r, or 8 packets a round
 *		trip if that is more: a lower rate may be that of an application.
 * CRUISE	W changes with each tick. A tick lasts max(base / 4, 4 p, 4 ms), and then waits
 *		for its eighth sample until base has passed. q is the least sample of the
 *		tick. In a tick that saw a loss it is the largest mean of the latest five
 *		ticks if that exceeds qt, as it does at a full buffer.
 *			dW = r / 2 (qt - q) tick / (base + q)		q < qt
 *			dW = max(r, mu / 2) (qt - q) tick / (base + q)	q >= qt
 *		The gain doubles with each 4 ticks of q < qt / 2 (up to 32 times), while W is
 *		below 93 % of the W at which a queue was met in the last 10 s. The growth of a
 *		round trip adds at most qhi / 2 to q. In equilibrium q = qt: W is the pipe and
 *		two packets. When a burst of other traffic is in front of these packets in the
 *		queue, arrivals stop, and with them credit.
 *		If W is less than half of the pipe, credit goes out evenly instead, 5/4 W a
 *		round trip at most, since credit that follows arrivals would stay in step with
 *		the bursts behind which they came. q is then the least of twice as many
 *		samples, because bursts of other traffic can fill a tick.
 *		CRUISE yields to FLOOR
 *		 - when two samples in a row exceed 2 qhi, or the least of a tick does
 *		 - when at least four samples in a row, over 8 p, exceed the q of the latest
 *		   tick by qhi, or the q of a tick exceeds that of a round trip ago by qhi
 *		 - when q stays above 2 qt (above qt if W is 2 MSS) for 8 ticks
 *		unless other traffic has used less of the path, since q was last below qt, than
 *		half of the queue: such a queue is that of these flows, and dW removes it.
 *		If dW has reduced W by a quarter, competing flows grow. CRUISE then yields if
 *		packets were lost since it began. Otherwise it sends a train, whose result
 *		alone decides, since ACKs that share the link keep up such a queue too.
 * FLOOR	No credit for 2 + log2(pipe / 10 packets) round trips, the length of a slow
 *		start: gaps between the bursts of a slow start look like an empty path.
 *		Then one packet in each period P measures q. It raises the score by 1 if
 *		q < qt + 2 e, by 2 if q < max(p / 3, 300 us) + e / 2 or if the probe before met
 *		a deep queue, and lowers it by 2 if q is larger. A deep queue (q above 2 qhi and
 *		0.3 base) clears it, and two in a row also clear fails. PROBE begins at a score of
 *		2 + 2 fails (12 at most). Each 10 s in FLOOR forget one failure. Once a probe has
 *		met a queue after others had met none, a random time up to P / 4 is added to P.
 *		If the samples of 8 s agree with each other above qt, the route may have become
 *		longer. q is then counted from their least, and base follows if a train
 *		loses nothing and has g < 0.1. If the credit of eight probes in a row came back
 *		later by base / 8 or more than their data was delayed, the way back has become
 *		longer, and base is raised by that.
 * PROBE	A train: two packets to fill the queue, then 8 at the rate mu (8 e / p if that
 *		is more, for 50 ms at most), then mu / 4 until the verdict unless a train failed
 *		before. A single download sends it: in a fair queue, each has a share of its own,
 *		and the trains of n have n shares. After a failure a train begins at a random
 *		time within a round trip, within a tick if CRUISE sends it, because bursts of
 *		other traffic may have a period that divides the round trip.
 *		The measured packets are marks. They give the part of the bottleneck's time
 *		that other traffic took while they were sent:
 *			g = (span of arrivals - work) / span of sending = X / mu,
 *		X being the rate of other traffic. Each span is from the mean of the marks of
 *		the train's first half to that of its second. work is p for each packet sent in
 *		between, or for each that arrived if these are more. The verdict comes when all
 *		marks have arrived, or none has for base / 8.
 *		If no two marks came closer than p' > p, p becomes p': at once if p' is below
 *		4/3 p and e below p / 3, and otherwise if mu was never confirmed, or not for
 *		120 s p / p'. This is 10 p / p' times as long (if that is more than one) if the
 *		time from credit to data of one of FLOOR's probes was not (p' - p) / 2 longer
 *		than before the latest train with g < 0.1: packets take longer on a slower link,
 *		but in a fair queue a single one waits for less than p.
 *		If k marks came together and in order, less than (k - 2) p after those before
 *		(p at the largest mu ever; of 250 us or more), the link serves in bunches. For
 *		the next 60 s z follows the longest gap, p' is the mean spacing of each train,
 *		4/3 p at most, and fails does not exceed 1. A higher mu or a pause of the
 *		download ends this.
 *		g > 0.8, or a quarter of the train lost (with later marks arriving): the train
 *		has failed. fails grows by 1, and FLOOR gives no credit for a round trip.
 *		Otherwise R = 0.98 mu if g < 0.1, else mu (0.9 - g). R is at most 0.9 of the
 *		rate that other traffic left before the latest yield (of half of that rate if
 *		it was there when CRUISE began), until g < 0.1 shows that it has gone.
 *		W = R base + 2 MSS, handed out at R.
 *		If the sender rests for half of a round trip, or the end of the train is missing
 *		(of one longer than 8, or of several downloads), the sender's own window was
 *		shorter than the train. The train is repeated a round trip later, since what the
 *		window held back makes it longer. If it is still shorter, or CRUISE has sent the
 *		train, the first part decides, from six marks on: it fails above 0.8 times its
 *		part of the train.
 *		A train has no result if this part is shorter, or if it was sent all at once (its
 *		ACKs were held up on their way) or too slowly; the latter is repeated as well.
 *		After one without a result in FLOOR all downloads send the next in turn. After
 *		three in a row R is mu / 4, or as many packets a round trip as the train has
 *		marks if that is less.
 *		CRUISE at r = k mu < 0.9 mu and q < qt sends trains too (of n downloads, after 8
 *		ticks below 1 - 1 / 2(n + 1), 0.9 to 0.95, as n + 1 share a fair queue): the
 *		first after 15 round trips, but 1.5 s at least, the next each time after twice
 *		as long (48 s at most) if it had a result, and two to three round trips after
 *		one that failed.
 *		g > 1 - k / 2 (of a part, as much less as it is shorter) three times in
 *		a row ends CRUISE. Otherwise R = k mu, or what the train found if that is more:
 *		up to 2 k mu, but no more than k mu if the train's first packet met a queue. If
 *		nothing of the train came, and W was more than r brings in 5/4 base + qhi, the
 *		senders do not use W and the train waits behind it: R = k mu again.
 *
 * Sources: the delay term is that of FAST, with a target for the whole queue instead of a flow's
 * own part. Trains are those of TOPP and pathload. The time without credit and the score of FLOOR
 * are new.
 *
 * credit_state.h has the state and its arithmetic, credit_train.h PROBE, and this file the
 * handling of arrivals in START, CRUISE and FLOOR.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_H
#define VULTURE_CREDIT_H

#include "credit_train.h"

/* The time from credit to data exceeded the one-way delay of the data by @back_us, each less its
 * minimum: queueing delay of the way back, or the time of a sender that waited for something else.
 */
static inline void credit_learn_back(struct credit_law *c, u32 back_us)
{
	if (c->phase != CREDIT_START && !c->filling)
		c->back_us += ((s32)min(back_us, 16000U) - (s32)c->back_us) / 16;
}

/* Noise is the mean excess of a tick's samples over the least of them, less p for the packet of
 * the same flows in front. It is not learnt while a queue lasts. Beside other traffic the excess
 * is due to that traffic's bursts, which as noise would raise qt and qhi until its queue no longer
 * counts: there it is limited, except for the variation of a link that pauses.
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

/* The latest tick that ended @ago_us ago or before, else the oldest one kept. Return: NULL while
 * fewer ticks than the ring takes have ended, and the oldest less than 3/4 of @ago_us ago.
 */
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

/* A tick has ended: update r and mu. Return: round trip with this queueing delay, us. */
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
	/* If the link turns out to be faster, its packets had not come too early for one rate. */
	if (c->mu_Bps > c->bunched_Bps + c->bunched_Bps / 16 ||
	    credit_packet_us(c) < CREDIT_BUNCH_US)
		credit_forget_bunches(c);
	c->fast_Bps = max(c->fast_Bps, c->mu_Bps);
	credit_fade_bunches(c, now_us);
	return rtt_us;
}

/* Change W by dW of one tick. */
static inline void credit_steer(struct credit_law *c, u64 now_us, u32 queue_us,
				u32 rtt_us, u32 len_us)
{
	u32 target_us = credit_target_us(c);
	u64 rate_Bps;
	s64 step;

	/* On slow links a tick of four packets is longer than a round trip. */
	len_us = min(len_us, rtt_us);
	/* W shrinks within two round trips even if little of the traffic is that of these flows. */
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
	c->window_bytes = (u32)clamp_t(s64, c->window_bytes + step, 2 * c->mss_bytes,
				       CREDIT_WINDOW_MAX_BYTES);
	c->peak_bytes = max(c->peak_bytes, c->window_bytes);
}

/* The queueing delay of a tick. With few samples it is an estimate of what the least of many would
 * be.
 */
static inline u32 credit_tick_queue(const struct credit_law *c)
{
	u32 mean_us, over_us = c->noise_us + credit_packet_us(c);

	if (!c->samples || c->samples >= CREDIT_TICK_SAMPLES)
		return c->least_us;
	mean_us = (u32)div_u64(c->sum_us, c->samples);
	return min(c->least_us, mean_us - min(mean_us, over_us));
}

/* The queueing delay by which a tick is judged. A short buffer is empty at times in each tick, and
 * full in between. If a loss was detected, the mean in the round trip before counts: it is high if
 * the buffer was full, and low if the link lost the packet.
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

/* Whether competing flows grow: dW has reduced W by a quarter since CRUISE began, there is a queue,
 * and less than 17/20 of what leaves it belongs to these flows. If one of these does not hold, W
 * only falls to what a short buffer holds, or the flows' own senders wait for a time-out.
 */
static inline bool credit_is_outgrown(const struct credit_law *c)
{
	return c->window_bytes + 2 * c->mss_bytes < c->peak_bytes / 4 * 3 &&
	       c->ticks[(c->n_ticks - 1) % CREDIT_TICKS].mean_us > credit_target_us(c) &&
	       c->rate_Bps * 20 < c->mu_Bps * 17;
}

/* Other traffic uses most of the path, and its bursts sometimes fill a tick of few samples. W
 * follows the queueing delay that lasts: the least of twice the samples of a usual tick.
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
		/* If TCP has no sample, the round trip is not known before data arrives for
		 * credit of this law. Until then W is what the handshake advertised.
		 */
		if ((c->lost_bytes * CREDIT_LOST_PART > c->bytes ||
		     queue_us > max_t(u32, 3000, 3 * credit_packet_us(c))) && c->rate_Bps &&
		    c->base_us) {
			/* No round trip brought that many packets: the senders were the limit. */
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
	c->short_ticks = c->rate_Bps < credit_alone_Bps(c) ? c->short_ticks + 1 : 0;
	outgrown = credit_is_outgrown(c);
	if (outgrown && c->lost_us > c->jumped_us) {
		credit_yield_to_others(c, now_us, true);
		return;
	}
	/* After such a reduction of W one failed train is enough. */
	if (outgrown)
		c->doubts = CREDIT_DOUBTS_MOST - 1;
	else if (queue_us >= credit_target_us(c) || !credit_is_shared(c) ||
		 now_us <= c->ask_us)
		return;
	c->kept_Bps = c->rate_Bps;
	credit_probe(c, now_us);
}

/* A sample in CRUISE. Return: it calls for FLOOR at once. */
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

/* The data that arrived had been lost before. */
static inline void credit_on_resent(struct credit_law *c, u64 now_us, u32 bytes)
{
	c->lost = true;
	c->lost_us = now_us;
	c->lost_bytes += bytes;
}

/* Subtract what a longer route adds. A sample below that shows that the route adds less. */
static inline u32 credit_unshift(struct credit_law *c, u32 queue_us)
{
	if (queue_us == CREDIT_NO_QUEUE)
		return queue_us;
	queue_us = credit_bounded_us(queue_us);
	c->shift_us = min(c->shift_us, queue_us);
	return queue_us - c->shift_us;
}

/**
 * credit_on_data() - data arrived in START or CRUISE
 * @c: law
 * @now_us: our clock
 * @bytes: payload
 * @queue_us: queueing delay of the data, or CREDIT_NO_QUEUE
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
		c->window_bytes = clamp(2 * credit_bytes_of(c->rate_Bps, c->base_us) +
					max(20U, 2 * c->flows) * c->mss_bytes,
					c->window_bytes, CREDIT_WINDOW_MAX_BYTES);
}

/* A probe's data came @us after its credit went out, less the minimum, or CREDIT_NO_QUEUE. */
static inline void credit_learn_probe(struct credit_law *c, u32 us)
{
	c->probed_us = min(c->probed_us, us);
}

/* Samples that agree with each other for long, above qt: the route may be longer now. */
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

/* Whether the way back has become longer, by an eighth of a round trip or more; less has little
 * effect. As this is no queue of data, no train is needed to confirm it. Return: by how much.
 */
static inline struct credit_move credit_watch_back(struct credit_law *c)
{
	struct credit_move moved = { .rtt_us = credit_lately(&c->back) };

	if (c->back.n < CREDIT_LATELY || moved.rtt_us < max(c->base_us / 8, 1000U))
		return (struct credit_move){};
	c->base_us = credit_bounded_us(c->base_us + moved.rtt_us);
	c->back.n = 0;
	if (c->probed_us != CREDIT_NO_QUEUE)
		c->probed_us -= min(c->probed_us, moved.rtt_us);
	return moved;
}

/**
 * credit_on_probe() - a probe packet of FLOOR arrived
 * @c: law
 * @now_us: our clock
 * @queue_us: its queueing delay
 */
static inline void credit_on_probe(struct credit_law *c, u64 now_us, u32 queue_us)
{
	queue_us = credit_unshift(c, queue_us);
	credit_fade_bunches(c, now_us);
	credit_watch_route(c, now_us, queue_us);
	if (queue_us > max(2 * credit_jump_us(c), c->base_us / 10 * 3)) {
		/* A buffer with room for such a queue does not overflow because of a train. */
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
