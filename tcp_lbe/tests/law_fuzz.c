// SPDX-License-Identifier: GPL-2.0
/*
 * The law of lbe under ACKs that no network produces: a peer chooses what it acknowledges, when,
 * and which timestamps it echoes. A division by zero, a signed overflow or a wrong shift stops the
 * program; so does a result that the module could not use. test_fuzz.py compiles and runs it.
 *
 *	law_fuzz FIRST COUNT	peers FIRST to FIRST + COUNT - 1, one random seed each
 */
#include <stdio.h>
#include <stdlib.h>

#include <lbe/path_send.h>

#define ACKS		400
#define LONGEST_US	(1ULL << 36)	/* between two ACKs: 19 hours */
#define NS		1000000000ULL

static u64 state;

/* xorshift64* */
static u64 draw(u64 below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 2685821657736338717ULL >> 11) % below;
}

/* As likely to have few bits as many, up to this number */
static u64 draw_log(u64 most)
{
	return min(draw(most) >> draw(64 - __builtin_clzll(most)), most);
}

static void fail(u64 seed, int number, const char *what, u64 value)
{
	fprintf(stderr, "peer %llu, ACK %d: %s is %llu\n", (unsigned long long)seed, number, what,
		(unsigned long long)value);
	exit(1);
}

/* What the module asks before it sends */
static void send_some(struct lbe_path *p, u64 seed, int number)
{
	u64 now_ns = p->now_us * 1000, slot_ns, due_ns;
	u32 burst = lbe_path_burst_pkts(p);
	u32 bytes = burst * p->mss;

	if (!burst || burst > LBE_SLOT_PKTS)
		fail(seed, number, "a burst in packets", burst);
	if (!lbe_path_send_rate(p))
		fail(seed, number, "the rate", 0);
	slot_ns = lbe_path_slot_ns(p, bytes, (u32)draw(1 << 24));
	if (!slot_ns || slot_ns > 65536 * NS)
		fail(seed, number, "a slot in ns", slot_ns);
	if (lbe_path_book_after(p, now_ns, slot_ns))
		return;
	due_ns = lbe_path_reserve(p, now_ns, slot_ns);
	if (draw(8) == 0) {
		lbe_path_give_back(p, p->epoch, due_ns);
	} else if (!lbe_path_device_busy(p, draw(4) == 0, draw(2)) &&
		   p->in_flight + bytes <= lbe_path_cap(p, bytes)) {
		lbe_path_sent(p, now_ns, slot_ns, bytes);
		p->in_flight += bytes;
	}
	if (!lbe_path_peak_rate(p))
		fail(seed, number, "the peak rate", 0);
}

static void check(const struct lbe_path *p, u64 seed, int number)
{
	if (p->mu && (p->mu < LBE_PATH_RATE_MIN || p->mu > U32_MAX))
		fail(seed, number, "the capacity", p->mu);
	if (!p->mu && p->state == LBE_CRUISE)
		fail(seed, number, "the capacity of CRUISE", 0);
	if (!p->rate)
		fail(seed, number, "R", 0);
	if (!p->rtt_us || p->rtt_us > LBE_PATH_RTT_MAX_US)
		fail(seed, number, "the round trip", p->rtt_us);
	if (p->base_us != U32_MAX && p->base_us > LBE_PATH_RTT_MAX_US)
		fail(seed, number, "the base delay", p->base_us);
}

int main(int argc, char **argv)
{
	static const u32 sizes[] = { 8, 36, 536, 1448, 8948, 65483 };
	u64 first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	u64 count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	u64 entered[4] = { 0 };
	u64 seed;

	for (seed = first; seed < first + count; seed++) {
		struct lbe_view views[2] = { { 0 } };
		struct lbe_path_ack a = { 0 };
		struct lbe_path p;
		u64 step_us = 1;
		int i, k;

		state = seed * 0x9e3779b97f4a7c15ULL | 1;
		for (i = 0; i < 8; i++)
			draw(2);
		lbe_path_init(&p, draw_log(1ULL << 50) + 1, sizes[draw(ARRAY_SIZE(sizes))],
			      (u32)draw_log(U32_MAX));
		p.flows = 1 + (u32)draw_log(1000);
		a.now_us = p.since_us;
		a.delay_us = (u32)draw_log(U32_MAX);
		a.rtt_us = a.delay_us;
		a.acked_pkts = 2;
		for (i = 0; i < ACKS; i++) {
			/* Most ways stay as they are from ACK to ACK, so that states last. */
			switch (draw(8)) {
			case 0:
				step_us = draw_log(draw(4) ? 4ULL * p.rtt_us : LONGEST_US);
				break;
			case 1:
				a.delay_us = (u32)draw_log(U32_MAX);
				a.rtt_us = max_t(u32, a.delay_us, draw_log(U32_MAX));
				break;
			case 2:
				a.delay_us = p.base_us +
					     (u32)draw_log(2 * lbe_path_jump_us(&p) + 1);
				a.rtt_us = max_t(u32, a.delay_us, 1);
				break;
			case 3:
				a.delay_us = draw(4) ? (u32)min_t(u64, p.base_us, U32_MAX - 1) : 0;
				a.rtt_us = (u32)draw_log(2 * p.rtt_us) + 1;
				break;
			case 4:
				a.acked_pkts = (u32)draw_log(1 << 16);
				a.lost_bytes = draw(2) ? (u32)draw_log(1 << 24) : 0;
				a.marked = draw(8) == 0;
				a.limited = draw(3) == 0;
				break;
			}
			a.now_us += step_us;
			/* as the module bounds them */
			a.delay_us = min_t(u32, a.delay_us, LBE_PATH_RTT_MAX_US);
			a.rtt_us = clamp_t(u32, a.rtt_us, 1, LBE_PATH_RTT_MAX_US);
			a.acked_bytes = a.acked_pkts * p.mss;
			p.in_flight -= min(p.in_flight, (u64)a.acked_bytes + a.lost_bytes);
			lbe_path_time(&p, a.now_us);
			if (!(a.delay_us && lbe_path_contradicts(&p, &views[draw(2)], &a)))
				lbe_path_ack(&p, &a);
			check(&p, seed, i);
			for (k = 0; k < 3; k++)
				send_some(&p, seed, i);
			if (draw(64) == 0)
				p.timed_out = true;
			if (p.flows > 1 && draw(64) == 0)
				p.flows--;
			if (draw(32) == 0)
				lbe_path_join(&p, a.now_us);
			entered[p.state]++;
		}
	}
	printf("%llu %llu %llu %llu\n", (unsigned long long)entered[LBE_START],
	       (unsigned long long)entered[LBE_CRUISE], (unsigned long long)entered[LBE_FLOOR],
	       (unsigned long long)entered[LBE_PROBE]);
	return 0;
}
