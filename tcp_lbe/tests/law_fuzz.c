// SPDX-License-Identifier: GPL-2.0
/*
 * The law of lbe under ACKs that no network produces: a peer chooses what it acknowledges, when,
 * and which timestamps it echoes. module.c bounds round trips and delays by LBE_PATH_RTT_MAX_US.
 * test_fuzz.py compiles and runs it.
 */
#include <fuzz.h>
#include <lbe/path_send.h>

#define ACKS	400
#define NS	1000000000ULL

/* What the module asks before it sends */
static void send_some(struct lbe_path *p)
{
	u64 now_ns = p->now_us * 1000, slot_ns;
	struct lbe_view v;
	u32 burst = lbe_path_burst_pkts(p), bytes = burst * p->mss;
	bool mine, any;

	must(burst && burst <= LBE_SLOT_PKTS, "a burst in packets", burst);
	must(lbe_path_send_rate(p), "the rate", 0);
	slot_ns = lbe_path_slot_ns(p, bytes, (u32)draw(1 << 24));
	must(slot_ns && slot_ns <= 65536 * NS, "a slot in ns", slot_ns);
	p->waiting = (u32)draw_log(1 << 16);
	p->line_weight = p->waiting * (1 + draw_log(LBE_WEIGHT_MAX));
	must(lbe_path_turn_len_us(p) <= LBE_CYCLE_US, "a turn in us", lbe_path_turn_len_us(p));
	v.weight = lbe_weight_each(1 + (u32)draw_log(LBE_GIVEN_MAX), (u32)draw_log(1 << 16));
	must(v.weight && v.weight <= LBE_WEIGHT_MAX, "a weight", v.weight);
	must(lbe_path_part_us(p, v.weight) <= LBE_CYCLE_US, "a flow's part in us", v.weight);
	if (one_in(4) && lbe_path_turn_over(p))
		lbe_path_turn_begin(p, &v);
	lbe_path_rest(p, now_ns);
	if (now_ns < lbe_path_due_ns(p))
		return;
	mine = one_in(4);
	any = one_in(2);
	if (!one_in(8) && !lbe_path_device_busy(p, mine, any) &&
	    p->in_flight + bytes <= lbe_path_cap(p, bytes)) {
		lbe_path_sent(p, now_ns, slot_ns, burst, bytes);
		p->in_flight += bytes;
	}
	must(lbe_path_peak_rate(p), "the peak rate", 0);
}

static void check(const struct lbe_path *p)
{
	must(!p->mu || (p->mu >= LBE_PATH_RATE_MIN && p->mu <= U32_MAX), "the capacity", p->mu);
	must(p->mu || p->state != LBE_CRUISE, "the capacity of CRUISE", 0);
	must(p->rate, "R", 0);
	must(p->rtt_us && p->rtt_us <= LBE_PATH_RTT_MAX_US, "the round trip", p->rtt_us);
	must(p->base_us == U32_MAX || p->base_us <= LBE_PATH_RTT_MAX_US, "the base delay",
	     p->base_us);
}

/* Other habits, which stay for some ACKs, so that the law can reach each of its states */
static void change(const struct lbe_path *p, struct lbe_path_ack *a, u64 *step_us)
{
	switch (draw(8)) {
	case 0:
		*step_us = draw_log(draw(4) ? 4ULL * p->rtt_us : FUZZ_US);
		break;
	case 1:
		a->delay_us = draw_u32();
		a->rtt_us = (u32)draw_log(U32_MAX);
		a->rtt_us = max(a->delay_us, a->rtt_us);
		break;
	case 2:
		a->delay_us = p->base_us + (u32)draw_log(2 * lbe_path_jump_us(p) + 1);
		a->rtt_us = max(a->delay_us, 1U);
		break;
	case 3:
		a->delay_us = draw(4) ? min(p->base_us, U32_MAX - 1) : 0;
		a->rtt_us = (u32)draw_log(2 * p->rtt_us) + 1;
		break;
	case 4:
		a->acked_pkts = (u32)draw_log(1 << 16);
		a->lost_bytes = one_in(2) ? 0 : (u32)draw_log(1 << 24);
		a->marked = one_in(8);
		a->limited = one_in(3);
		a->small = one_in(3);
		break;
	}
}

static void peer(void)
{
	static const u32 sizes[] = { 8, 36, 536, 1448, 8948, 65483 };
	u64 begin_us = draw_log(1ULL << 50) + 1, step_us = 1;
	u32 mss = sizes[draw(ARRAY_SIZE(sizes))], rtt_us = draw_u32();
	struct lbe_view views[2];
	struct lbe_path_ack a = { .now_us = begin_us, .acked_pkts = 2 };
	struct lbe_path p;
	int i, k;

	lbe_path_init(&p, begin_us, mss, rtt_us);
	lbe_view_init(&views[0]);
	lbe_view_init(&views[1]);
	p.flows = 1 + (u32)draw_log(1000);
	a.delay_us = draw_u32();
	a.rtt_us = a.delay_us;
	for (i = 0; i < ACKS; i++) {
		change(&p, &a, &step_us);
		a.now_us += step_us;
		/* as the module bounds them */
		a.delay_us = min_t(u32, a.delay_us, LBE_PATH_RTT_MAX_US);
		a.rtt_us = clamp_t(u32, a.rtt_us, 1, LBE_PATH_RTT_MAX_US);
		a.acked_bytes = a.acked_pkts * p.mss;
		p.in_flight -= min(p.in_flight, (u64)a.acked_bytes + a.lost_bytes);
		lbe_path_time(&p, a.now_us);
		k = (int)draw(2);
		if (!(a.delay_us && lbe_path_contradicts(&p, &views[k], &a)))
			lbe_path_ack(&p, &a);
		check(&p);
		for (k = 0; k < 3; k++)
			send_some(&p);
		p.timed_out |= one_in(64);
		if (p.flows > 1 && one_in(64))
			p.flows--;
		if (one_in(32))
			lbe_path_join(&p, a.now_us);
		step(p.state);
	}
}
