/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: trains, which show whether the path has room (PROBE), and the entry to
 * CRUISE. The law is at the head of credit.h.
 *
 *	credit_probe()		begins a train; credit_train_mark() tells which packets are marks
 *	credit_on_bunch()	a mark arrived; credit_on_train() follows
 *	credit_on_cut()		a mark arrived that its sender had held back
 *	credit_judge()		the verdict: CRUISE at R, or FLOOR
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_TRAIN_H
#define VULTURE_CREDIT_TRAIN_H

#include "credit_state.h"

/* Begin a train. */
static inline void credit_probe(struct credit_law *c, u64 now_us)
{
	u32 pkts;

	credit_enter(c, CREDIT_PROBE, now_us);
	c->gap_us = max(credit_packet_us(c), 1U);
	c->slot_us = now_us;
	/* Bursts of other traffic may have a period that divides the round trip: this train would
	 * meet the part of it that the train before met. In CRUISE the delay is a tick at most, as
	 * arrivals bring no credit until the train begins.
	 */
	if (c->fails || c->doubts)
		c->slot_us += credit_random_us(c, c->kept_Bps ? credit_tick_len_us(c) : c->base_us);
	c->train_end_us = 0;
	pkts = CREDIT_TRAIN_PKTS * min(c->noise_us, CREDIT_TRAIN_MOST_US / CREDIT_TRAIN_PKTS);
	pkts = max_t(u32, pkts / c->gap_us, CREDIT_TRAIN_PKTS);
	c->train_step = (pkts - 1) / CREDIT_TRAIN_MARKS + 1;
	c->train_marks = CREDIT_TRAIN_PRIME + pkts / c->train_step;
	c->train_pkts = CREDIT_TRAIN_PRIME + pkts;
	c->train_sent = 0;
	c->train_got = 0;
	c->train_high = 0;
	c->train_cut = 0;
	c->train_least_us = U32_MAX;
	c->bunch_us = 0;
	c->bunch_most_us = 0;
	c->bunch_early_us = S32_MIN / 2;
	c->bunched = false;
	c->bunch_mixed = false;
	c->train_queue_us = 0;
	c->train_cut_at = U32_MAX;
	c->train_bytes = c->bytes;
	memset(c->train, 0, sizeof(c->train));
	c->trains++;
}

/* Return: number of the mark that the train's packet @nth is; U32_MAX = it is none. */
static inline u32 credit_train_mark(const struct credit_law *c, u32 nth)
{
	u32 past = nth - CREDIT_TRAIN_PRIME, mark = CREDIT_TRAIN_PRIME + past / c->train_step;

	if (nth < CREDIT_TRAIN_PRIME)
		return nth;
	return past % c->train_step || mark >= c->train_marks ? U32_MAX : mark;
}

/* Time after which no further mark is expected, from when the last one was due or arrived, us. */
static inline u32 credit_late_us(const struct credit_law *c)
{
	return max(c->base_us / 8, 4000U) + 2 * c->noise_us;
}

/* The train is out. As the path may be slower than the train, the verdict waits for what was sent
 * at @sent_us.
 */
static inline void credit_wait_for_train(struct credit_law *c, u64 sent_us)
{
	u64 until_us = sent_us + c->base_us + credit_longer_us(c) + credit_late_us(c);

	if (until_us > c->train_end_us && c->slot_us == c->train_end_us)
		c->slot_us = until_us;
	c->train_end_us = max(c->train_end_us, until_us);
}

/**
 * credit_on_cut() - a mark arrived that its sender's own window had held back
 * @c: law
 * @mark: its number
 * @now_us: our clock
 */
static inline void credit_on_cut(struct credit_law *c, u32 mark, u64 now_us)
{
	c->train_cut++;
	c->train_cut_at = min(c->train_cut_at, mark);
	if (c->train_end_us)
		credit_wait_for_train(c, now_us);
}

/**
 * credit_on_bunch() - a mark arrived: learn how soon it came after those before
 * @c: law
 * @mark: its number
 * @now_us: our clock, the same for all flows
 *
 * credit_on_train() follows. The first CREDIT_TRAIN_PRIME packets leave their sender together and
 * are not counted.
 */
static inline void credit_on_bunch(struct credit_law *c, u32 mark, u64 now_us)
{
	u32 least_us = credit_least_packet_us(c), gap_us;

	if (mark < CREDIT_TRAIN_PRIME)
		return;
	c->bunch_mixed |= mark + 1 < c->train_high;
	gap_us = c->bunch_us ? (u32)min_t(u64, now_us - min(now_us, c->bunch_us), S32_MAX / 4) : 0;
	c->bunch_us = now_us;
	c->bunch_most_us = max(c->bunch_most_us, gap_us);
	if (gap_us > least_us / 4)
		c->bunch_early_us = 0;
	c->bunch_early_us += (s32)(c->train_step * least_us) - (s32)gap_us;
	c->bunched |= c->bunch_early_us > (s32)(2 * c->train_step * least_us);
}

/**
 * credit_on_train() - a mark of the train arrived
 * @c: law
 * @mark: its number; packets may arrive in another order
 * @arrived_us: our clock, less the least round trip of its flow
 * @sent_us: our clock, less a constant: when it was sent
 */
static inline void credit_on_train(struct credit_law *c, u32 mark, u64 arrived_us, u64 sent_us)
{
	u32 i = c->train_got++ % 2;
	s32 at_us = (s32)(arrived_us - c->since_us);

	if (c->train_end_us)
		credit_wait_for_train(c, arrived_us);
	if (c->train_got > 2)
		c->train_least_us = min_t(u32, c->train_least_us,
					  max((s64)at_us - c->train_late_us[i], 0LL) / 2);
	c->train_late_us[i] = at_us;
	c->train_high = max(c->train_high, mark + 1);
	if (!mark)
		c->train_queue_us = (u32)(arrived_us - sent_us);
	c->train[mark] = (struct credit_came){ true, at_us, (s32)(sent_us - c->since_us),
					       (u32)(c->bytes - c->train_bytes) };
}

/* Number of marks until the first one that its sender held back: until it was sent, all that the
 * sender might send was on its way for half of a round trip or more.
 */
static inline u32 credit_train_part(const struct credit_law *c)
{
	s32 rest_us = (s32)max3(c->base_us / 2, 4 * c->train_step * c->gap_us, CREDIT_REST_US);
	u32 i, n = min(c->train_cut_at, c->train_high);
	s32 latest_us = S32_MAX;	/* until the first one that came */

	for (i = 0; i < n; i++) {
		s32 sent_us = c->train[i].sent_us;

		if (!c->train[i].came)
			continue;
		if (latest_us != S32_MAX && (s32)((u32)sent_us - (u32)latest_us) > rest_us)
			return i;
		latest_us = latest_us == S32_MAX ? sent_us : max(latest_us, sent_us);
	}
	return n;
}

/* Sums over the marks of a half, without the first CREDIT_TRAIN_PRIME of the train. */
struct credit_half {
	s64 arrived_us, sent_us, bytes, marks;
	s32 n;
};

/* Half @half of the first @part marks. */
static inline struct credit_half credit_half_of(const struct credit_law *c, u32 part, u32 half)
{
	u32 middle = (CREDIT_TRAIN_PRIME + part + 1) / 2, i;
	u32 from = half ? middle : CREDIT_TRAIN_PRIME, to = half ? part : middle;
	struct credit_half sum = {};

	for (i = from; i < to; i++) {
		if (!c->train[i].came)
			continue;
		sum.arrived_us += c->train[i].arrived_us;
		sum.sent_us += c->train[i].sent_us;
		sum.bytes += c->train[i].bytes;
		sum.marks += i;
		sum.n++;
	}
	return sum;
}

/* What the first @part marks show */
struct credit_spans {
	u32 n[2];		/* how many arrived of each half */
	s32 arrived_us;		/* from the mean of the first half's marks to that of the second */
	s32 sent_us;
	/* Time that the bottleneck needed for these flows' packets in that span: for those that
	 * were sent, lost or not, or for those that arrived if they are more. The window's unit
	 * also releases packets that are not part of the train, and in another order.
	 */
	s32 work_us;
};

static inline struct credit_spans credit_train_spans(const struct credit_law *c, u32 part)
{
	struct credit_half a = credit_half_of(c, part, 0), b = credit_half_of(c, part, 1);
	struct credit_spans spans = { .n = { (u32)a.n, (u32)b.n } };
	s64 marks_us, bytes_us;

	if (!a.n || !b.n)
		return spans;
	spans.arrived_us = (s32)div_s64(b.arrived_us * a.n - a.arrived_us * b.n, a.n * b.n);
	spans.sent_us = (s32)div_s64(b.sent_us * a.n - a.sent_us * b.n, a.n * b.n);
	marks_us = div_s64((b.marks * a.n - a.marks * b.n) * c->train_step * c->gap_us, a.n * b.n);
	bytes_us = div_s64((b.bytes * a.n - a.bytes * b.n) * c->gap_us, a.n * b.n);
	spans.work_us = (s32)max(marks_us, div_s64(bytes_us, (s32)max(c->mss_bytes, 1U)));
	return spans;
}

/* g, 1/1000. */
static inline u32 credit_train_growth(const struct credit_spans *spans)
{
	s32 work_us = spans->work_us, more_us = max(spans->arrived_us - work_us, 0);

	/* Credit was held up on its way. The train was sent too slowly to keep the bottleneck busy,
	 * or all at once, so that no other traffic came between its packets.
	 */
	if (spans->sent_us > work_us + work_us / 2 || spans->sent_us < work_us / 4)
		return CREDIT_SPOILT;
	return (u32)min_t(u64, div_u64(more_us * 1000ULL, max3(spans->sent_us, work_us / 2, 1)),
			  10000);
}

/* Failures make trains rarer, to spare other traffic in a fair queue or in bursts. On a link that
 * pauses, most failures are due to its pauses, so only one counts.
 */
static inline void credit_train_fails(struct credit_law *c, u64 now_us)
{
	c->fails = c->pause_us >= CREDIT_BUNCH_US ? 1 : c->fails + 1;
	c->spoilt = 0;
	c->failed++;
	credit_yield(c, now_us, c->base_us);
}

/* A queue had looked like a longer route. */
static inline void credit_forget_route(struct credit_law *c)
{
	c->shift_us = 0;
	c->shift_new = false;
}

/* A train had room, so the route is longer. What it adds becomes part of the minima. */
static inline struct credit_move credit_move_route(struct credit_law *c)
{
	struct credit_move moved = { credit_longer_us(c), c->shift_us };

	c->base_us = credit_bounded_us(c->base_us + moved.rtt_us);
	credit_forget_route(c);
	return moved;
}

/* Enter CRUISE at R. If CRUISE sent the train, R is no less than the rate before it. */
static inline void credit_cruise(struct credit_law *c, u64 now_us)
{
	/* A train without a result, or before its time, does not show that the next may wait. */
	if (!c->kept_Bps)
		c->reprobe_us = max(CREDIT_REPROBE_US, 15 * c->base_us);
	else if (!c->doubts && (!c->spoilt || c->spoilt > CREDIT_SPOILT_MOST) &&
		 c->since_us > c->ask_us)
		c->reprobe_us = min(2 * c->reprobe_us, CREDIT_REPROBE_MOST_US);
	c->ask_us = now_us + (c->doubts ? 2 * c->base_us + credit_random_us(c, c->base_us) :
			      c->reprobe_us);
	c->rate_Bps = max(c->rate_Bps, c->kept_Bps);
	c->kept_Bps = 0;
	c->tried = c->fails;
	c->fails = 0;
	credit_enter(c, CREDIT_CRUISE, now_us);
	c->repeated = false;
	c->probed_us = CREDIT_NO_QUEUE;
	c->back.n = 0;
	c->jumped_us = now_us;
	c->window_bytes = credit_bytes_of(c->rate_Bps, c->base_us) + 2 * c->mss_bytes;
	c->peak_bytes = c->window_bytes;
	c->filling = true;
	c->slot_us = now_us;
	c->quiet_us = now_us;
	c->quiet_bytes = c->bytes;
	c->n_ticks = 0;
	c->tick_us = now_us;
	credit_begin_tick(c);
}

/* The g above which the first @part marks of a train have found no room, 1/1000. For a train of
 * CRUISE at a share k of mu, other traffic that sends the rest through the same queue makes
 * g = 1 - k. Traffic with a fair queue of its own takes half of the link from the train, and makes
 * g = 1 or more. The limit is between the two. The fewer marks, the larger is what noise makes of
 * g: a part of a train must find as much more room.
 */
static inline u32 credit_most_growth(const struct credit_law *c, u32 part)
{
	u32 most = 800;

	if (c->kept_Bps)
		most = 1000 - (u32)div64_u64(min(c->kept_Bps, c->mu_Bps) * 500,
					     max_t(u64, c->mu_Bps, 1));
	return most * part / c->train_marks;
}

/* Send the train again a round trip later. What of it a sender's window held back has arrived by
 * then, and has made that window longer: idle senders shorten it to that of a new connection.
 */
static inline void credit_repeat(struct credit_law *c, u64 now_us)
{
	credit_probe(c, now_us);
	c->slot_us = max(c->slot_us, now_us + c->base_us);
	c->repeated = true;
}

/* The train has no result. If its sender @held_back a part, it is repeated. Senders that cannot
 * send a train, CREDIT_SPOILT_MOST times in a row, are the limit themselves. They get mu / 4, the
 * rate at the end of a train, or as many packets a round trip as the train has marks if that is
 * less, and W grows from there. A train of CRUISE leads back to CRUISE, unless this happens often
 * and the way back delays credit by no more than p.
 */
static inline void credit_train_spoilt(struct credit_law *c, u64 now_us, bool held_back)
{
	bool often;

	if (held_back && !c->kept_Bps && !c->repeated) {
		credit_repeat(c, now_us);
		return;
	}
	often = ++c->spoilt >= CREDIT_SPOILT_MOST;
	if (often && !(c->kept_Bps && c->back_us > c->gap_us))
		c->spoilt = 0;
	if (!c->kept_Bps && often)
		c->rate_Bps = min(div_u64(c->mu_Bps, 4),
				  credit_rate_of((u64)c->train_marks * c->mss_bytes, c->base_us));
	if (c->kept_Bps ? !often || c->back_us > c->gap_us : often)
		credit_cruise(c, now_us);
	else
		credit_yield(c, now_us, c->base_us);
}

/* The senders' own windows are shorter than the train, as after an idle time or a loss, or because
 * there are many of them. Either most of the missing marks arrived later because their senders had
 * held them back; or a part from the train's begin on arrived, and then nothing. Of a single sender
 * and a train of the usual length, the rest is taken for lost.
 */
static inline bool credit_train_outgrows_senders(const struct credit_law *c, u32 part)
{
	if (c->train_cut || part < c->train_high)
		return 4 * (c->train_got + c->train_cut) > 3 * c->train_marks;
	return part && part < c->train_marks &&
	       (c->flows > 1 || (c->train_marks > CREDIT_TRAIN_PRIME + CREDIT_TRAIN_PKTS &&
				 part >= CREDIT_TRAIN_PRIME + CREDIT_TRAIN_LEAST));
}

/* How many of the first @part marks were lost. */
static inline u32 credit_train_lost(const struct credit_law *c, u32 part)
{
	u32 i, lost = part;

	for (i = 0; i < part; i++)
		lost -= c->train[i].came;
	return lost;
}

/* A quarter of them. A buffer of a few packets never holds a queue long enough to be measured. */
static inline bool credit_train_lost_much(u32 lost, u32 part)
{
	return 4 * lost >= part;
}

/* Nothing of a train of CRUISE arrived, and more credit was out before it than its senders use in
 * 5/4 round trips plus qhi: the train waits behind that credit. The senders' own windows, or their
 * applications, are the limit.
 */
static inline bool credit_train_waits(const struct credit_law *c)
{
	u32 used_us = c->base_us + c->base_us / 4 + credit_jump_us(c);

	return c->kept_Bps && !c->train_high &&
	       c->window_bytes > credit_bytes_of(c->kept_Bps, used_us);
}

/* The output of a bottleneck with one rate has no packets closer together than p, whatever else
 * shares it. A device behind it that holds packets (Wi-Fi, a card's interrupts) later releases
 * together those that came out meanwhile: t / p + 1 in a time t. If more arrive together, and in
 * order, the link itself serves in bunches with pauses in between, as radio links do. p is the
 * least ever, since other traffic in a fair queue may have lengthened the present one and ended.
 * The estimate of the pause moves to the latest one by half of the difference upwards, and by a
 * sixteenth downwards. Return: the link serves in bunches.
 */
static inline bool credit_learn_pause(struct credit_law *c, u64 now_us)
{
	u32 us = min(c->bunch_most_us - min(c->bunch_most_us, c->gap_us), CREDIT_LINK_PAUSE_US);

	if (c->bunched && c->gap_us >= CREDIT_BUNCH_US && !c->bunch_mixed) {
		if (!c->bunched_us)
			c->bunched_Bps = max(c->fast_Bps, c->mu_Bps);
		c->bunched_us = now_us;
	}
	if (!c->bunched_us || c->bunch_mixed)
		return false;
	if (us > c->pause_us)
		c->pause_us += (us - c->pause_us) / 2;
	else
		c->pause_us -= (c->pause_us - us + 15) / 16;
	return true;
}

/* If the link serves in bunches, the mean spacing of a train shows its present rate, and a fair
 * queue need not be considered. As other traffic in the same queue may have come between the
 * packets, mu falls by a quarter at most. Earlier trains that failed were too fast as well. Return:
 * mu has fallen.
 */
static inline bool credit_relearn_from_bunches(struct credit_law *c)
{
	struct credit_spans spans = credit_train_spans(c, c->train_marks);

	if (!spans.n[0] || !spans.n[1] || spans.work_us <= 0 ||
	    spans.arrived_us <= spans.work_us)
		return false;
	c->gap_us = (u32)min_t(u64, div_u64((u64)c->gap_us * (u32)spans.arrived_us,
					    (u32)spans.work_us),
			       c->gap_us + c->gap_us / 3);
	c->mu_Bps = credit_rate_of(c->mss_bytes, c->gap_us);
	c->fails = 0;
	return true;
}

/* Whether the capacity may have fallen to that of packets @gap_us apart. A fair queue with
 * gap_us / p - 1 competing flows looks the same to a train, but not to the probes of FLOOR: on a
 * slower link each takes as much longer as its packet does, and in a fair queue some find the link
 * between two packets. The more such flows there would have to be, the sooner this is believed.
 */
static inline bool credit_is_slower(const struct credit_law *c, u64 now_us, u32 gap_us)
{
	u64 stale_us = div_u64(2ULL * CREDIT_STALE_US * c->gap_us, gap_us);

	if (!c->mu_us)
		return true;
	if (c->probed_us == CREDIT_NO_QUEUE ||
	    c->probed_us < c->free_us + (gap_us - c->gap_us) / 2)
		stale_us = max(stale_us, div_u64(stale_us * CREDIT_STALE_TIMES * c->gap_us,
						 gap_us));
	return now_us - c->mu_us >= stale_us;
}

/* At a bottleneck no two packets leave closer together than its rate allows, so a larger least
 * spacing means a lower rate, or other traffic in a fair queue. Earlier trains that failed were too
 * fast as well.
 */
static inline void credit_relearn_capacity(struct credit_law *c, u64 now_us)
{
	u32 gap_us = c->train_least_us;
	/* Noise makes the least of several spacings too short, by twice itself at most. */
	bool much = gap_us >= c->gap_us + c->gap_us / 3 || c->noise_us >= c->gap_us / 3;

	credit_fade_bunches(c, now_us);
	if (c->train_got >= CREDIT_TRAIN_LEAST && credit_learn_pause(c, now_us) &&
	    credit_relearn_from_bunches(c))
		return;
	if (c->train_got < CREDIT_TRAIN_LEAST || gap_us <= c->gap_us ||
	    c->noise_us >= gap_us / 2 || (much && !credit_is_slower(c, now_us, gap_us)))
		return;
	c->mu_Bps = credit_rate_of(c->mss_bytes, gap_us);
	c->gap_us = gap_us;
	if (much)
		c->fails = 0;
}

/**
 * credit_judge() - the verdict: the train has arrived, or the time for it is over
 * @c: law
 * @now_us: our clock
 *
 * Return: by how much the train has shown the route to be longer.
 */
static inline struct credit_move credit_judge(struct credit_law *c, u64 now_us)
{
	u32 part = credit_train_part(c), judged, lost, g;
	struct credit_move moved = {};
	struct credit_spans spans;
	bool limited, full;

	credit_relearn_capacity(c, now_us);
	c->growth_permille = 10000;
	if (credit_train_waits(c)) {
		credit_cruise(c, now_us);
		return moved;
	}
	limited = credit_train_outgrows_senders(c, part);
	if (!limited)
		part = c->train_high;
	lost = credit_train_lost(c, part);
	/* A full buffer has a constant delay like a longer route, but loses a part of a train. */
	full = c->shift_new && (lost || (!limited && c->train_got < c->train_marks));
	if (full)
		credit_forget_route(c);
	if (limited && !full && (part < CREDIT_TRAIN_PRIME + CREDIT_TRAIN_LEAST ||
				 (!c->kept_Bps && !c->repeated))) {
		credit_train_spoilt(c, now_us, true);
		return moved;
	}
	judged = limited ? part : c->train_marks;
	spans = credit_train_spans(c, judged);
	if (full || credit_train_lost_much(lost, part) || !spans.n[0] || !spans.n[1] ||
	    spans.n[0] + spans.n[1] < CREDIT_TRAIN_LEAST) {
		credit_train_fails(c, now_us);
		return moved;
	}
	g = credit_train_growth(&spans);
	c->growth_permille = g;
	if (g == CREDIT_SPOILT) {
		credit_train_spoilt(c, now_us, spans.sent_us > spans.work_us);
		return moved;
	}
	c->spoilt = 0;
	/* Beside a full buffer a train finds no room. */
	if (c->shift_new && g >= 100) {
		credit_forget_route(c);
		g = 10000;
	}
	if (c->shift_new)
		moved = credit_move_route(c);
	if (g > credit_most_growth(c, judged)) {
		/* A single burst of other traffic may cover a whole train. */
		if (c->kept_Bps && ++c->doubts < CREDIT_DOUBTS_MOST)
			credit_cruise(c, now_us);
		else
			credit_train_fails(c, now_us);
		return moved;
	}
	c->doubts = 0;
	c->rate_Bps = div_u64(c->mu_Bps * (g < 100 ? 980 : 900 - min(g, 850U)), 1000);
	/* A train of CRUISE may have passed between two bursts of other traffic: it at most doubles
	 * the rate, and does not raise it if its first packet came behind a burst.
	 */
	if (c->kept_Bps)
		c->rate_Bps = min(c->rate_Bps, c->train_queue_us < credit_met_us(c) ?
				  2 * c->kept_Bps : c->kept_Bps);
	if (g < 100 && c->probed_us != CREDIT_NO_QUEUE)
		c->free_us = c->probed_us - min(c->probed_us, moved.rtt_us);
	/* Without other traffic now, the rate that it once left is no limit any more. */
	if (g < 100 && !c->regret)
		c->left_Bps = 0;
	if (c->left_Bps)
		c->rate_Bps = min(c->rate_Bps, div_u64(c->left_Bps * 9, 10));
	credit_cruise(c, now_us);
	return moved;
}

#endif /* VULTURE_CREDIT_TRAIN_H */
