// SPDX-License-Identifier: GPL-2.0
/*
 * The controllers under senders that no network has: a peer chooses what it sends and when, and
 * which timestamps it writes and echoes. The controllers themselves are compiled in front of this
 * file (test_fuzz.py does that), and edge.h has the rules of the window on the wire. What hook.c
 * and update.c do around a controller is done by arrive(), acknowledge() and serve() in the same
 * steps.
 *
 * What a peer cannot choose, as hook.c and edge.h enforce it: data ends inside the window that was
 * shown or inside TCP's own, and is not older than the latest data in order; a segment has one
 * octet to the MSS that we announced. A local user chooses the options.
 *
 * credit shares its state among the senders of a network. So in the end an honest one begins, while
 * the others go on or are silent: it gets credit beyond the handshake's within PATIENCE_US.
 */
#include "edge.h"
#include "fuzz.h"

#define EVENTS		1000
#define BETWEEN		32	/* timers and honest arrivals between two of these, at most */
#define FLOWS		4
#define SHOWN		64
#define PATIENCE_US	(4ULL * CREDIT_RTT_MAX_US)

struct sender {
	void *state;		/* NULL: not under control */
	u32 options[RWND_OPTIONS_MAX];
	struct edge wire;
	struct rwnd_want want;
	u64 poke_us;
	u32 unit, mss;		/* of our window; that we announced */
	u32 own_bytes;		/* TCP's own window */
	u32 next_seq;		/* end of the data that it has sent */
	u32 answer_us;		/* its usual delay */
	u32 packet_us;		/* between two of its arrivals */
	u32 segs;		/* of one arrival */
	u32 tick_us, tsval_at;	/* tick and origin of its timestamps */
	u64 came_us;		/* latest arrival */
	/* The windows that it was shown and has not used. An honest sender answers each. */
	struct { u32 edge_seq; u64 at_us; } shown[SHOWN];
	u32 first, n;
	bool honest;
};

static const struct rwnd_controller *const rwnd_of[] = {
	[VULTURE_O_PAPER] = &rwnd_paper,
	[VULTURE_O_CREDIT] = &rwnd_credit,
	[VULTURE_O_RLEDBAT] = &rwnd_rledbat,
};

static const struct rwnd_controller *controller;
static struct sender senders[FLOWS];
static struct credit_path path;
static u64 now_us, scale_us;	/* the latter of most times that peers choose */

void vulture_trace_round(const void *state, const struct rwnd_round *round)
{
}

void rwnd_wake(void *state, u64 at_us)
{
	struct sender *s = senders;

	while (s->state != state)
		s++;
	s->poke_us = s->poke_us ? min(s->poke_us, at_us) : at_us;
}

static unsigned int state_of(const struct sender *s)
{
	if (controller == &rwnd_credit)
		return path.law.phase;
	if (controller == &rwnd_paper)
		return 4 + ((const struct paper *)s->state)->phase;
	return 8 + ((const struct rledbat *)s->state)->state;
}

/* What the module relies on */
static void check(const struct sender *s)
{
	const struct credit_law *c = &path.law;

	must(s->want.kind <= RWND_EDGE, "the kind of window", s->want.kind);
	must(c->base_us <= CREDIT_RTT_MAX_US, "credit's base", c->base_us);
	must(c->noise_us <= CREDIT_RTT_MAX_US, "credit's noise", c->noise_us);
	must(c->window_bytes <= CREDIT_WINDOW_MAX_BYTES + 2 * c->mss_bytes, "credit's W",
	     c->window_bytes);
	must(c->phase != CREDIT_CRUISE || c->window_bytes >= 2 * c->mss_bytes, "W of CRUISE",
	     c->window_bytes);
	if (controller == &rwnd_paper)
		must(((const struct paper *)s->state)->rwnd.bytes <= RWND_MAX_BYTES,
		     "paper's window", ((const struct paper *)s->state)->rwnd.bytes);
	if (controller == &rwnd_rledbat)
		must(rledbat_window_bytes(s->state), "rledbat's window", 0);
}

/* Our TCP sends a segment. */
static void acknowledge(struct sender *s, u32 ack_seq)
{
	struct edge *e = &s->wire;
	u16 own = (u16)min(s->own_bytes >> e->scale, 65535U), field;
	struct rwnd_ack a = { .now_us = now_us, .tsval = (u32)(now_us / 1000),
			      .ack_seq = ack_seq, .own_bytes = (u32)own << e->scale,
			      .edge_seq = e->edge_seq };
	u32 goal_seq = e->goal_seq, last;

	a.acked_bytes = edge_acknowledged(e, ack_seq);
	controller->on_ack(s->state, &a, &s->want);
	s->want.update = false;
	field = edge_field(e, ack_seq, a.acked_bytes, own, &s->want, s->mss);
	must(field <= own, "a window above TCP's own", field);
	must(s->want.retract || !edge_before(e->goal_seq, goal_seq), "an edge that moved back by",
	     goal_seq - e->goal_seq);
	edge_advertised(e, ack_seq, own, field, s->want.kind == RWND_LEAVE, a.tsval);
	s->n = min(s->n + 1, SHOWN);
	last = (s->first + s->n - 1) % SHOWN;
	s->shown[last].edge_seq = ack_seq + e->advertised_bytes;
	s->shown[last].at_us = now_us;
}

/* Data arrives. */
static void arrive(struct sender *s, u32 seq, u32 bytes, u32 tsval)
{
	struct rwnd_data d = { .now_us = now_us, .tsval = tsval, .seq = seq, .bytes = bytes };
	struct edge *e = &s->wire;

	d.push = one_in(4);
	d.ce = one_in(32);
	d.tsecr = one_in(8) ? draw_u32() : (u32)((now_us - s->answer_us) / 1000);
	d.seg_bytes = one_in(16) ? 1 + (u32)draw_log(s->mss) : bytes / s->segs + 1;
	d.seg_bytes = min(min(d.seg_bytes, bytes), s->mss);
	d.segs = (bytes + d.seg_bytes - 1) / d.seg_bytes;
	if (!edge_takes(e, now_us, seq, bytes, tsval))
		return;
	d.ack_seq = e->ack_seq;
	d.edge_seq = e->edge_seq;
	d.arrival = edge_seen(e, now_us, seq, bytes, tsval);
	step(state_of(s));
	controller->on_data(s->state, &d, &s->want);
	check(s);
	if (edge_before(s->next_seq, seq + bytes))
		s->next_seq = seq + bytes;
}

static u32 tsval_now(const struct sender *s)
{
	return s->tsval_at + (u32)div_u64(now_us, s->tick_us);
}

/* What a peer sends if it likes: often the next data, as much as the window takes. */
static void send_any(struct sender *s)
{
	u32 room = s->wire.ack_seq + s->wire.advertised_bytes - s->next_seq;
	u32 bytes = s->segs * s->mss, seq = s->next_seq;

	if (one_in(4))
		bytes = 1 + (u32)draw_log(bytes);
	if ((s32)room > 0 && !one_in(4))
		bytes = min(bytes, room);
	if (one_in(4))
		seq += (u32)draw_log(4 * bytes);
	if (one_in(4))
		seq -= (u32)draw_log(4 * bytes);
	arrive(s, seq, min(bytes, 1U << 19), one_in(4) ? draw_u32() : tsval_now(s));
}

/* When the next segment of an honest sender arrives */
static u64 next_honest(struct sender *s)
{
	for (; s->honest && s->n; s->first = (s->first + 1) % SHOWN, s->n--)
		if (!edge_before(s->shown[s->first].edge_seq, s->next_seq + s->mss))
			return max(s->shown[s->first].at_us + s->answer_us,
				   s->came_us + s->packet_us);
	return U64_MAX;
}

static u64 next_timer(const struct sender *s)
{
	u64 next_us = s->poke_us ? s->poke_us : U64_MAX;

	return s->want.wake_us ? min(next_us, s->want.wake_us) : next_us;
}

/* What is due at one sender, or comes from it. Return: when there is more. */
static u64 serve(struct sender *s)
{
	u64 timer_us, honest_us;

	if (next_timer(s) <= now_us) {
		if (s->poke_us <= now_us)
			s->poke_us = 0;
		if (s->want.wake_us <= now_us)
			s->want.wake_us = 0;
		controller->on_timer(s->state, now_us, &s->want);
	}
	if (next_honest(s) <= now_us) {
		s->came_us = now_us;
		arrive(s, s->next_seq, s->mss, tsval_now(s));
		if (draw(4))
			acknowledge(s, s->next_seq);
	}
	if (s->want.update)
		acknowledge(s, s->wire.ack_seq);
	timer_us = next_timer(s);
	honest_us = next_honest(s);
	return min(timer_us, honest_us);
}

/* Everything that is due now. Return: when there is more. */
static u64 serve_all(void)
{
	u64 next_us = U64_MAX, one_us;
	struct sender *s;

	for (s = senders; s < senders + FLOWS; s++) {
		one_us = s->state ? serve(s) : U64_MAX;
		next_us = min(next_us, one_us);
	}
	return next_us;
}

/* Time passes, with all that happens meanwhile. */
static void pass(u64 us)
{
	u64 until_us = now_us + us, next_us;
	int n;

	for (n = 0; n < BETWEEN; n++) {
		next_us = serve_all();
		if (next_us > until_us)
			break;
		now_us = max(now_us, next_us);
	}
	now_us = until_us;
}

static void begin(struct sender *s, u32 offered, u32 mss_bytes, u32 min_rtt_us, bool fresh)
{
	struct rwnd_start start = {
		.now_us = now_us, .options = s->options, .path = &path, .mss_bytes = mss_bytes,
		.min_rtt_us = min_rtt_us, .ack_seq = s->next_seq,
		.edge_seq = s->next_seq + offered, .unit_bytes = s->unit, .fresh = fresh,
	};

	s->state = calloc(1, controller->state_bytes);
	edge_init(&s->wire, s->next_seq, offered, (u8)__builtin_ctz(s->unit));
	controller->init(s->state, &start, &s->want);
}

/* A user chooses the options. */
static void choose(struct sender *s)
{
	static const struct {
		const char *name;
		u32 nest, attr, least, most, initial;
		const char *unit;
	} rows[] = { VULTURE_OPTION_ROWS };
	u32 i;

	do {
		for (i = 2; i < ARRAY_SIZE(rows); i++)
			if (rwnd_of[rows[i].nest] == controller)
				s->options[rows[i].attr] = draw(2) ? rows[i].initial :
					rows[i].least +
					(u32)draw_log(rows[i].most - rows[i].least);
	} while (controller->clash && controller->clash(s->options));
}

static void open_any(struct sender *s)
{
	static const u32 sizes[] = { 88, 536, 1448, 8948, 65483 };
	u32 mss_bytes, min_rtt_us;

	*s = (struct sender){ .segs = 1, .tick_us = 1000 };
	s->unit = 1U << draw(15);
	s->next_seq = draw_u32();
	s->mss = sizes[draw(ARRAY_SIZE(sizes))];
	s->tsval_at = draw_u32();
	s->answer_us = (u32)(scale_us - draw_log(scale_us - 1));
	s->packet_us = (u32)draw_log(scale_us) / 64;
	s->honest = draw(4);
	s->own_bytes = (u32)draw_log(65535U * (u64)s->unit);
	choose(s);
	mss_bytes = (u32)draw_log(s->mss);
	min_rtt_us = draw(2) ? 0 : draw_u32();
	begin(s, min(s->own_bytes, 65535U), mss_bytes, min_rtt_us, draw(4));
}

static void close_one(struct sender *s)
{
	if (controller->leave)
		controller->leave(s->state, now_us);
	free(s->state);
	s->state = NULL;
}

/* Other habits, which stay for some events, so that the law can reach each of its states */
static void change(struct sender *s)
{
	static const u32 ticks[] = { 1, 1000, 1000, 4000, 10000, 16000, 1000000, U32_MAX };
	struct paper *p = s->state;
	u32 us;

	switch (draw(9)) {
	case 0:
		s->answer_us = one_in(4) ? draw_u32() : (u32)(scale_us - draw_log(scale_us - 1));
		break;
	case 1:
		s->tick_us = ticks[draw(ARRAY_SIZE(ticks))];
		break;
	case 2:
		s->tsval_at = draw_u32();
		/* as after any number of such jumps */
		if (controller == &rwnd_paper && p->tick.sent_us)
			p->tick.sent_us = S64_MAX - (s64)draw_log(1ULL << 44);
		break;
	case 3:
		s->own_bytes = (u32)draw_log(65535U * (u64)s->unit);
		break;
	case 4:
		s->segs = 1 + (u32)draw_log(44);
		break;
	case 5:
		s->honest = draw(4);
		break;
	case 6:
		s->packet_us = (u32)draw_log(scale_us) / 16;
		break;
	case 7:
		/* Half an hour passes, and its clock stands still. */
		us = (1U << 31) + (u32)draw_log(1 << 16);
		now_us += us;
		s->tsval_at -= us / s->tick_us;
		break;
	case 8:
		choose(s);
		if (controller->change)
			controller->change(s->state, now_us, &s->want);
		break;
	}
}

/* An honest sender of the same network begins. The others go on, or are silent. */
static void recover(void)
{
	struct sender *s = &senders[FLOWS - 1], *other;
	u64 from_us = now_us, gap_us = draw(2) ? 1 + draw_log(1 << 22) : U64_MAX / 2, next_us;
	u32 first_seq, i;

	if (s->state)
		close_one(s);
	*s = (struct sender){ .unit = 128, .segs = 1, .tick_us = 1000, .mss = 1448,
			      .answer_us = 50000, .packet_us = 1000, .own_bytes = 1 << 20 };
	s->next_seq = draw_u32();
	s->tsval_at = draw_u32();
	for (i = 0; i < FLOWS; i++)
		senders[i].honest = &senders[i] == s;
	memcpy(s->options, controller->initial, controller->n_options * sizeof(u32));
	begin(s, CREDIT_SYN_SEGS * s->mss, s->mss, s->answer_us, true);
	acknowledge(s, s->next_seq);
	first_seq = s->next_seq;
	while (s->next_seq - first_seq <= CREDIT_SYN_SEGS * s->mss) {
		next_us = serve_all();
		must(next_us != U64_MAX, "no timer after, us", now_us - from_us);
		next_us = max(now_us, next_us);
		now_us = min(next_us, now_us + gap_us);
		must(now_us < from_us + PATIENCE_US, "no credit for, us", now_us - from_us);
		other = &senders[draw(FLOWS - 1)];
		if (other->state && gap_us < U64_MAX / 2)
			send_any(other);
	}
}

static void peer(void)
{
	static const struct rwnd_controller *const all[] = {
		&rwnd_credit, &rwnd_credit, &rwnd_paper, &rwnd_rledbat
	};
	u64 usual_us;
	int i;

	controller = all[draw(ARRAY_SIZE(all))];
	now_us = 1000000 + draw_log(1ULL << 50);
	memset(&path, 0, sizeof(path));
	if (controller->path_init)
		controller->path_init(&path, now_us);
	memset(senders, 0, sizeof(senders));
	scale_us = one_in(8) ? draw_u32() + 1ULL : draw_log(1 << 20) + 1;
	usual_us = draw_log(scale_us);
	open_any(&senders[0]);
	for (i = 0; i < EVENTS; i++) {
		struct sender *s = &senders[one_in(4) ? draw(FLOWS) : 0];

		if (!s->state) {
			if (one_in(8))
				open_any(s);
			continue;
		}
		if (one_in(16))
			change(s);
		if (one_in(64))
			usual_us = draw_log(16 * scale_us);
		pass(one_in(32) ? draw_us(s->answer_us) : draw(usual_us + 1));
		if (s->honest ? one_in(64) : draw(4))
			send_any(s);
		if (draw(2))
			acknowledge(s, s->next_seq);
		if (s != senders && one_in(64))
			close_one(s);
	}
	if (controller == &rwnd_credit)
		recover();
	for (i = 0; i < FLOWS; i++)
		if (senders[i].state)
			close_one(&senders[i]);
}
