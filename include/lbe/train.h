/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tcp_lbe: a train, and what the delays of its packets tell. A train is a number of packets sent at
 * one rate. The law that sends trains, and the equations by which it reads them, are in path.h.
 *
 * Pure functions: no clock, no socket, no lock.
 */
#ifndef LBE_TRAIN_H
#define LBE_TRAIN_H

#include <lbe/arith.h>

#ifndef USEC_PER_SEC
#define USEC_PER_SEC	1000000UL
#endif

/* A train has this many packets, and lasts at least this long, us (on fast links). If doubled, the
 * error of g is halved, and the queue that a train puts in the way of other traffic is doubled.
 */
#define LBE_TRAIN_PKTS		8
#define LBE_TRAIN_US		4000
/* Growth of a train, Q10. Below 0.05 it met no other traffic: a third of a packet's time over 8
 * packets is noise. Above 0.72 it may have met a flow whose packets alternate with its own at a
 * fair queue (1.0). If the first is doubled, trains pass that met other traffic; if the second is
 * halved, a third of the link stays unused beside steady traffic of two fifths.
 */
#define LBE_GROWTH_NONE		52
#define LBE_GROWTH_FULL		742
/* Error of the rate of other traffic as the growth of a train shows it, as a part of the link, Q10:
 * 0.15. A return leaves this much more of the link to other traffic. And the sum of both rates must
 * exceed the link by at least this much before a pulse shows fair queueing, which covers noise of
 * up to a sixteenth of the train's duration. If doubled, other flows behind fair queueing lose
 * their share for longer; if halved, returns beside steady traffic end early.
 */
#define LBE_GROWTH_ERROR	154

/**
 * struct lbe_train - a train or pulse, and the samples of its packets
 * @from_us: beginning, by time of sending
 * @until_us: end
 * @rate: at which it is sent, bytes a second
 * @delay_us: sum of the delays of each half
 * @sent_us: sum of the times of sending of each half, since @from_us
 * @n: samples of each half
 * @least_us: least delay
 * @bytes: granted between beginning and end
 * @lost_bytes: lost until its verdict, of all that was in flight
 * @throttled: the sender's own device delayed it
 * @ran_out: data ran out in it
 * @limited: samples of packets that were sent when the application had no more to send
 * @on: it is being sent, or its verdict is to come
 */
struct lbe_train {
	u64 from_us, until_us, rate;
	u64 delay_us[2], sent_us[2];
	u32 n[2], least_us, limited;
	u64 bytes, lost_bytes;
	bool throttled, ran_out, on;
};

static inline void lbe_train_start(struct lbe_train *t, u64 now_us, u64 rate, u32 len_us)
{
	memset(t, 0, sizeof(*t));
	t->from_us = now_us;
	t->until_us = now_us + len_us;
	t->rate = rate;
	t->on = true;
}

static inline u32 lbe_train_samples(const struct lbe_train *t)
{
	return t->n[0] + t->n[1];
}

static inline u32 lbe_train_mean_us(const struct lbe_train *t)
{
	return (u32)div_u64(t->delay_us[0] + t->delay_us[1], max_t(u32, lbe_train_samples(t), 1));
}

/* Bytes that are sent in it if there is enough data */
static inline u64 lbe_train_paced(const struct lbe_train *t)
{
	return div_u64(t->rate * (t->until_us - t->from_us), USEC_PER_SEC);
}

/* Was it sent in full? In PROBE only a lack of data makes it shorter, or the sender's own device,
 * for which lbe_train_growth() corrects.
 */
static inline bool lbe_train_whole(const struct lbe_train *t)
{
	return t->throttled || t->bytes >= lbe_train_paced(t);
}

/* Did data run out in it? Single packets of a flow that has little to send do not count as that. */
static inline bool lbe_train_limited(const struct lbe_train *t)
{
	return 2 * t->limited > lbe_train_samples(t);
}

static inline void lbe_train_add(struct lbe_train *t, u64 sent_us, u32 delay_us, bool limited)
{
	int half;

	if (!t->on || sent_us < t->from_us || sent_us >= t->until_us)
		return;
	t->limited += limited;
	t->least_us = lbe_train_samples(t) ? min(t->least_us, delay_us) : delay_us;
	half = sent_us - t->from_us >= (t->until_us - t->from_us) / 2;
	t->n[half]++;
	t->delay_us[half] += delay_us;
	t->sent_us[half] += sent_us - t->from_us;
}

/* Growth of the delay divided by the time of sending, Q10; below 0: the delay fell. That of a train
 * that the sender's own device delayed is scaled to the intended rate. Return: false if the
 * samples do not tell.
 */
static inline bool lbe_train_growth(const struct lbe_train *t, s32 *growth_q10)
{
	u64 paced;
	s64 d, s;

	if (!t->n[0] || !t->n[1])
		return false;
	d = (s64)div_u64(t->delay_us[1], t->n[1]) - (s64)div_u64(t->delay_us[0], t->n[0]);
	s = (s64)div_u64(t->sent_us[1], t->n[1]) - (s64)div_u64(t->sent_us[0], t->n[0]);
	if (s <= 0)
		return false;
	*growth_q10 = (s32)clamp_t(s64, div_s64(d * 1024, (s32)s), -1023, 1 << 20);
	paced = lbe_train_paced(t);
	if (t->throttled && paced > t->bytes)
		*growth_q10 = (s32)min_t(u64, div64_u64((1024 + *growth_q10) * paced,
							max_t(u64, t->bytes, 1)), 1 << 20) - 1024;
	return true;
}

#endif /* LBE_TRAIN_H */
