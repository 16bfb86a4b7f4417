// SPDX-License-Identifier: GPL-2.0
/*
 * The controller credit in a closed loop with TCP senders and a link, packet by packet.
 *
 * credit.c itself is compiled in front of this file (credit_model.py does that), and edge.h has the
 * rules of the window on the wire. What hook.c and update.c do around a controller is done by
 * receive(), acknowledge() and wake() in the same steps.
 *
 *	senders --> half an RTT --> rate, buffer (drop tail) --> half an RTT --> receiver
 *	   ^                                                                        |
 *	   +--------------------------------- half an RTT --------------------------+
 *
 * (The first two halves are one: a packet with its ACK takes one RTT plus the queueing delay.)
 *
 * A sender behaves like a present Linux as far as windows are concerned: cubic, HyStart by delay,
 * RACK, tail loss probe, RTO of 200 ms, ten packets after an idle time. It sends only whole
 * segments. The receiver acknowledges every second packet, or one after 40 ms. All packets have the
 * same length.
 */
#include <math.h>
#include <stdlib.h>

#include "edge.h"

#define RING		8192	/* packets of a flow in flight, at most */
#define QUEUE		65536	/* packets in the bottleneck's queue, at most */
#define DELACK_US	40000
#define RTO_US		200000
#define WRITES_US	10000	/* interval at which an application writes */

struct model_config {
	double rate_bps;	/* payload at the bottleneck */
	double rtt_us, buffer_pkts, mss_bytes, unit_bytes, own_bytes;
	double jitter_us;	/* behind the queue, uniformly distributed up to this */
	double loss;		/* share of packets, behind the queue */
	int ours;		/* downloads under control */
	int mute;		/* of the downloads, so many at the end never send */
	int chatty;		/* likewise, before those, so many send a packet each chat_us */
	double chat_us;
	double app_bps;		/* rate at which each sender's application writes; 0: no limit */
	int greedy;		/* competing flows */
	double on_us;		/* they send for this time and pause for as long; 0: no pauses */
	double others_us;	/* when they begin */
	double steady;		/* steady traffic: share of the rate, in bursts of burst_pkts */
	int burst_pkts;
	double duration_us, measure_us;	/* end of the run; begin of the measurement */
	double change_us, change_bps, change_rtt_us;	/* time of a change, 0: none; new path */
	double change_back_us;	/* then the way of the ACKs alone becomes longer by this */
	double handshake_bytes;	/* window before the first ACK; 0: as credit's SYN offers */
	double hold_us, hold_chance;	/* a packet behind the queue begins a hold: all wait */
	int fair;		/* each flow has a queue of its own; they are served in turn */
	unsigned int first_seq, first_tsval;
	unsigned long long seed;
};

struct model_result {
	double first_bps, ours_bps, others_bps, queue_us, stall_us, jain, mu_bps;
	double drops, yields, trains, failed;
};

enum what { SENT, SERVED, ARRIVED, ACKED, TIMEOUT, WAKE, DELACK, WRITE, TOGGLE, BEGIN };

struct event {
	u64 at_us, order;
	enum what what;
	int flow;
	u64 number, edge;	/* number of a packet, or of the next one for an ACK; edge, bytes */
	u32 tsval, n, came[4];	/* number and list of the packets that an ACK reports */
};

struct packet {
	u64 sent_us, order;
	bool sacked, lost, out, again;
};

struct flow {
	bool ours, on, in_repair, probed;
	u64 una, next, edge, begin_us;	/* packets; bytes */
	struct packet packets[RING];
	u32 in_flight, backoff;
	u64 repaired, order, top_order, top_sent_us, timeout_us, sent_us;
	double cwnd, ssthresh, srtt_us, var_us, least_us;
	double most, cubic_s, reno;
	u64 epoch_us, round;
	double round_us;
	u32 round_n;
	double app_bps, written;	/* bytes */
	u32 burst;			/* not 0: no TCP, but so many packets at once */
	/* the receiver */
	u64 wanted, poke_us, came_us;
	bool got[RING], delack;
	u32 unacked, n_came, came[4];
	struct edge wire;
	struct rwnd_want want;
	struct credit_flow *state;
	double bytes, stall_us;
	u32 drops;
};

static struct model_config cfg;
static struct flow *flows;
static struct credit_path *path;
static struct event *heap;
static size_t heap_n, heap_room;
static u64 now_us, orders, begin_us, random_state;
static int n_flows;
static u32 options[8];
static struct event queue[QUEUE];
static u32 queue_head, queue_len;
static bool busy;
static double free_us, rate_Bps, back_us;
static int fair_flow;
static u64 held_us;
static u64 *trace_us, trace_at;
static u32 trace_n;

static double chance(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

static bool sooner(const struct event *a, const struct event *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

static void put(struct event e)
{
	size_t i, up;

	e.order = orders++;
	e.at_us = max(e.at_us, now_us);
	if (heap_n == heap_room) {
		heap_room = 2 * heap_room + 1024;
		heap = realloc(heap, heap_room * sizeof(*heap));
	}
	for (i = heap_n++; i && sooner(&e, &heap[up = (i - 1) / 2]); i = up)
		heap[i] = heap[up];
	heap[i] = e;
}

static struct event take(void)
{
	struct event first = heap[0], last = heap[--heap_n];
	size_t i = 0, down;

	while ((down = 2 * i + 1) < heap_n) {
		if (down + 1 < heap_n && sooner(&heap[down + 1], &heap[down]))
			down++;
		if (!sooner(&heap[down], &last))
			break;
		heap[i] = heap[down];
		i = down;
	}
	heap[i] = last;
	return first;
}

static void at(u64 at_us, enum what what, const struct flow *f)
{
	put((struct event){ .at_us = at_us, .what = what, .flow = (int)(f - flows) });
}

void rwnd_wake(void *state, u64 at_us)
{
	struct flow *f;

	for (f = flows; f->state != state; f++)
		;
	if (!f->poke_us || at_us < f->poke_us) {
		f->poke_us = max(at_us, 1ULL);
		at(at_us, WAKE, f);
	}
}

/* The link */

/* When the next packet may leave by the link's trace, which is repeated after its last time. */
static double next_chance(void)
{
	u64 at_us, round_us = trace_us[trace_n - 1];

	do
		at_us = begin_us + trace_us[trace_at % trace_n] + trace_at / trace_n * round_us;
	while (trace_at++, at_us < now_us);
	return (double)at_us;
}

/* Set the link's trace for the runs that follow: packets leave only at these times after the begin
 * of the run, us. With no times they leave at a rate.
 */
void model_trace(const u64 *us, u32 n)
{
	trace_n = n;
	if (!n)
		return;
	trace_us = realloc(trace_us, n * sizeof(*us));
	memcpy(trace_us, us, n * sizeof(*us));
}

/* Take the first packet of the queue; with a fair queue, the first one of the next flow in turn. */
static struct event dequeue(void)
{
	u32 best = 0, i;
	int least = n_flows;
	struct event e;

	for (i = 0; cfg.fair && i < queue_len; i++) {
		int turns = (queue[(queue_head + i) % QUEUE].flow - fair_flow - 1 + n_flows) %
			    n_flows;

		if (turns < least) {
			least = turns;
			best = i;
		}
	}
	e = queue[(queue_head + best) % QUEUE];
	for (i = best; i > 0; i--)
		queue[(queue_head + i) % QUEUE] = queue[(queue_head + i - 1) % QUEUE];
	queue_head++;
	queue_len--;
	fair_flow = e.flow;
	return e;
}

static void serve(void)
{
	struct event e;

	busy = queue_len;
	if (!busy)
		return;
	e = dequeue();
	if (trace_n)
		free_us = next_chance();
	else
		free_us = fmax(free_us, now_us) + cfg.mss_bytes * 1e6 / rate_Bps;
	e.at_us = (u64)free_us;
	e.what = SERVED;
	put(e);
}

static void enqueue(struct event e)
{
	u32 len = cfg.fair ? 0 : queue_len, i;

	for (i = 0; cfg.fair && i < queue_len; i++)
		len += queue[(queue_head + i) % QUEUE].flow == e.flow;
	if (len >= cfg.buffer_pkts) {
		flows[e.flow].drops++;
		return;
	}
	queue[(queue_head + queue_len++) % QUEUE] = e;
	if (!busy)
		serve();
}

static void served(struct event e)
{
	e.what = ARRIVED;
	e.at_us = now_us + (u64)(chance() * cfg.jitter_us);
	if (cfg.hold_us && now_us >= held_us && chance() < cfg.hold_chance)
		held_us = now_us + (u64)(cfg.hold_us * (0.5 + chance()));
	e.at_us = max(e.at_us, held_us);
	if (chance() >= cfg.loss)
		put(e);
	serve();
}

/* The sender */

static void arm(struct flow *f)
{
	double us = f->srtt_us ? f->srtt_us + max(4 * f->var_us, (double)RTO_US) : 1e6;
	double probe_us = max(2 * f->srtt_us, 10000.0) + (f->in_flight == 1 ? DELACK_US : 0);

	if (f->srtt_us && !f->in_repair && !f->probed)
		us = min(us, probe_us);
	f->timeout_us = now_us + ((u64)us << min(f->backoff, 6U));
	at(f->timeout_us, TIMEOUT, f);
}

static void send_packet(struct flow *f, u64 number, bool again)
{
	struct event e = { .at_us = now_us + (u64)cfg.rtt_us / 2, .what = SENT,
			   .flow = (int)(f - flows), .number = number };
	struct packet *p = &f->packets[number % RING];

	if (!again)
		*p = (struct packet){ 0 };
	f->in_flight += !p->out;
	p->sent_us = now_us;
	p->order = ++f->order;
	p->lost = false;
	p->again = again;
	p->out = true;
	f->sent_us = now_us;
	e.tsval = cfg.first_tsval + (u32)(now_us / 1000);
	put(e);
	if (!f->timeout_us)
		arm(f);
}

static bool may_send(const struct flow *f)
{
	double end = (double)(f->next + 1) * cfg.mss_bytes;

	return f->on && now_us >= f->begin_us && f->next - f->una < RING - 8 &&
	       end <= (double)f->edge && (!f->app_bps || end <= f->written);
}

static void send_some(struct flow *f)
{
	u64 i;

	if (f->una == f->next && f->cwnd > 10 &&
	    now_us - f->sent_us > f->srtt_us + max(4 * f->var_us, (double)RTO_US)) {
		f->ssthresh = max(f->ssthresh, f->cwnd * 3 / 4);
		f->cwnd = 10;
		f->epoch_us = 0;
	}
	for (i = f->una; f->in_repair && i < f->next && f->in_flight < (u32)f->cwnd; i++)
		if (f->packets[i % RING].lost)
			send_packet(f, i, true);
	while (f->in_flight < (u32)f->cwnd && may_send(f))
		send_packet(f, f->next++, false);
}

static void repair(struct flow *f, bool timed_out)
{
	if (!f->in_repair || (timed_out && !f->backoff)) {
		f->most = f->cwnd < f->most ? f->cwnd * 0.85 : f->cwnd;
		f->epoch_us = 0;
		f->ssthresh = max(f->cwnd * 0.7, 2.0);
		f->cwnd = f->ssthresh;
	}
	f->in_repair = true;
	f->repaired = f->next;
	if (timed_out)
		f->cwnd = 1;
}

static void slow_start(struct flow *f, u32 fresh, double rtt_us)
{
	f->cwnd += fresh;
	if (rtt_us && f->una >= f->round) {
		f->round = f->next;
		f->round_us = rtt_us;
		f->round_n = 1;
	} else if (rtt_us && f->round_n < 8) {
		f->round_us = min(f->round_us, rtt_us);
		f->round_n++;
	}
	if (f->round_n == 8 && f->cwnd >= 16 &&
	    f->round_us > f->least_us + clamp(f->least_us / 8, 4000.0, 16000.0))
		f->ssthresh = f->cwnd;
	f->cwnd = min(f->cwnd, f->ssthresh);
}

static void cubic(struct flow *f, u32 fresh)
{
	double t_s, goal;

	if (!f->epoch_us) {
		f->epoch_us = now_us;
		f->reno = f->cwnd;
		f->most = max(f->most, f->cwnd);
		f->cubic_s = cbrt((f->most - f->cwnd) / 0.4);
	}
	t_s = ((double)(now_us - f->epoch_us) + f->least_us) / 1e6 - f->cubic_s;
	f->reno += 0.529 * fresh / f->cwnd;
	goal = min(max(f->most + 0.4 * t_s * t_s * t_s, f->reno), 1.5 * f->cwnd);
	f->cwnd += (goal > f->cwnd ? goal - f->cwnd : 0.01) / f->cwnd * fresh;
}

/* Account for a packet that an ACK reports. Return: its round trip, us; 0 = none. */
static double delivered(struct flow *f, struct packet *p)
{
	f->in_flight -= p->out;
	p->out = false;
	p->lost = false;
	if (p->order > f->top_order) {
		f->top_order = p->order;
		f->top_sent_us = p->sent_us;
	}
	return p->again ? 0 : (double)(now_us - p->sent_us);
}

static bool find_losses(struct flow *f)
{
	double late_us = f->least_us / 4 + 2 * cfg.jitter_us;
	bool found = false;
	u64 i;

	for (i = f->una; i < f->next; i++) {
		struct packet *p = &f->packets[i % RING];

		if (p->sacked || p->lost || !p->out ||
		    (cfg.jitter_us ? (double)p->sent_us + late_us >= (double)f->top_sent_us :
				     p->order + 3 > f->top_order))
			continue;
		p->lost = true;
		p->out = false;
		f->in_flight--;
		found = true;
	}
	return found;
}

static void acked(struct flow *f, const struct event *e)
{
	double rtt_us = 0, one_us;
	u32 fresh = 0, before = f->in_flight, i;

	/* As Linux does: what an ACK of more data says counts, even if rounding makes it less. */
	f->edge = e->number > f->una ? e->edge : max(f->edge, e->edge);
	for (i = 0; i < e->n; i++) {
		struct packet *p = &f->packets[e->came[i] % RING];

		if (e->came[i] < f->una || e->came[i] >= f->next || p->sacked)
			continue;
		p->sacked = true;
		fresh++;
		one_us = delivered(f, p);
		rtt_us = one_us ? one_us : rtt_us;
	}
	for (; f->una < e->number; f->una++) {
		struct packet *p = &f->packets[f->una % RING];

		if (!p->sacked) {
			fresh++;
			one_us = delivered(f, p);
			rtt_us = one_us ? one_us : rtt_us;
		}
		f->backoff = 0;
		f->probed = false;
		f->timeout_us = 0;
	}
	if (f->una < f->next && (fresh || !f->timeout_us))
		arm(f);
	if (rtt_us) {
		f->var_us = f->srtt_us ? f->var_us + (fabs(rtt_us - f->srtt_us) - f->var_us) / 4 :
					 rtt_us / 2;
		f->srtt_us = f->srtt_us ? f->srtt_us + (rtt_us - f->srtt_us) / 8 : rtt_us;
		f->least_us = f->least_us ? min(f->least_us, rtt_us) : rtt_us;
	}
	if (find_losses(f) && !f->in_repair)
		repair(f, false);
	if (f->in_repair && f->una >= f->repaired)
		f->in_repair = false;
	if (fresh && !f->in_repair && f->cwnd < f->ssthresh && before + fresh >= f->cwnd / 2)
		slow_start(f, fresh, rtt_us);
	else if (fresh && !f->in_repair && before + fresh >= f->cwnd - 2)
		cubic(f, fresh);
	send_some(f);
}

static void timed_out(struct flow *f)
{
	u64 i;

	if (f->timeout_us != now_us || f->una == f->next)
		return;
	if (!f->in_repair && !f->probed) {
		f->probed = true;
		send_packet(f, f->packets[(f->next - 1) % RING].out ? f->next - 1 : f->una, true);
		arm(f);
		return;
	}
	for (i = f->una; i < f->next; i++) {
		struct packet *p = &f->packets[i % RING];

		f->in_flight -= p->out;
		p->out = false;
		p->lost = !p->sacked;
	}
	repair(f, true);
	f->backoff++;
	f->timeout_us = 0;
	send_some(f);
	if (!f->timeout_us)
		arm(f);
}

/* The receiver */

static void wake_at(struct flow *f, u64 at_us)
{
	if (at_us)
		at(at_us, WAKE, f);
}

static u32 sequence(u64 number)
{
	return cfg.first_seq + (u32)(number * (u64)cfg.mss_bytes);
}

static void acknowledge(struct flow *f)
{
	struct event e = { .at_us = now_us + (u64)(cfg.rtt_us / 2 + back_us), .what = ACKED,
			   .flow = (int)(f - flows), .number = f->wanted, .edge = 1ULL << 50,
			   .n = f->n_came };

	if (f->state) {
		u16 own = (u16)min((u32)cfg.own_bytes >> f->wire.scale, 65535U), field;
		struct rwnd_ack a = { .now_us = now_us, .tsval = (u32)(now_us / 1000),
				      .ack_seq = sequence(f->wanted),
				      .own_bytes = (u32)own << f->wire.scale };

		a.edge_seq = f->wire.edge_seq;
		a.acked_bytes = edge_acknowledged(&f->wire, a.ack_seq);
		rwnd_credit.on_ack(f->state, &a, &f->want);
		f->want.update = false;
		field = edge_field(&f->wire, a.ack_seq, a.acked_bytes, own, &f->want,
				   (u32)cfg.mss_bytes);
		edge_advertised(&f->wire, a.ack_seq, own, field, false, a.tsval);
		e.edge = f->wanted * (u64)cfg.mss_bytes + ((u64)field << f->wire.scale);
		wake_at(f, f->want.wake_us);
	}
	memcpy(e.came, f->came, sizeof(e.came));
	f->n_came = 0;
	f->unacked = 0;
	put(e);
}

static void wake(struct flow *f)
{
	bool poked = f->poke_us && f->poke_us <= now_us;
	bool due = f->want.wake_us && f->want.wake_us <= now_us;

	if (poked)
		f->poke_us = 0;
	if (due)
		f->want.wake_us = 0;
	if (poked || due)
		rwnd_credit.on_timer(f->state, now_us, &f->want);
	if (f->want.update)
		acknowledge(f);
	if (poked || due)
		wake_at(f, f->want.wake_us);
	if (poked)
		wake_at(f, f->poke_us);
}

static void sense(struct flow *f, const struct event *e)
{
	u32 mss = (u32)cfg.mss_bytes;
	struct rwnd_data d = { .now_us = now_us, .tsval = e->tsval, .seq = sequence(e->number),
			       .bytes = mss, .segs = 1, .seg_bytes = mss,
			       .ack_seq = f->wire.ack_seq, .edge_seq = f->wire.edge_seq };

	if (!edge_takes(&f->wire, now_us, d.seq, mss, e->tsval))
		return;
	d.push = f->app_bps && (double)(e->number + 2) * mss > f->written;
	d.arrival = edge_seen(&f->wire, now_us, d.seq, mss, e->tsval);
	rwnd_credit.on_data(f->state, &d, &f->want);
	wake_at(f, f->want.update ? now_us : f->want.wake_us);
}

static void receive(struct flow *f, const struct event *e)
{
	bool measured = now_us >= begin_us + cfg.measure_us, fresh;

	fresh = f->burst || (e->number >= f->wanted && !f->got[e->number % RING]);
	if (measured && fresh)
		f->bytes += cfg.mss_bytes;
	if (f->burst)
		return;
	if (measured && f->came_us)
		f->stall_us = max(f->stall_us, (double)(now_us - f->came_us));
	f->came_us = now_us;
	if (f->state)
		sense(f, e);
	f->unacked++;
	if (e->number != f->wanted)
		f->unacked = 2;
	if (fresh)
		f->got[e->number % RING] = true;
	for (; f->got[f->wanted % RING]; f->wanted++)
		f->got[f->wanted % RING] = false;
	f->came[min(f->n_came, 3U)] = (u32)e->number;
	f->n_came = min(f->n_came + 1, 4U);
	if (f->unacked >= 2) {
		acknowledge(f);
	} else if (!f->delack) {
		f->delack = true;
		at(now_us + DELACK_US, DELACK, f);
	}
}

/* Begin, writes and pauses of flows */

static void write_some(struct flow *f)
{
	u32 i;

	if (f->burst) {
		for (i = 0; i < f->burst; i++)
			enqueue((struct event){ .flow = (int)(f - flows) });
		at(now_us + (u64)(f->burst * cfg.mss_bytes * 8e6 / f->app_bps), WRITE, f);
		return;
	}
	f->written += f->app_bps / 8 * WRITES_US / 1e6;
	at(now_us + WRITES_US, WRITE, f);
	send_some(f);
}

static u32 handshake_bytes(void)
{
	u32 own_bytes = min_t(u32, cfg.own_bytes, 65535U);

	if (cfg.handshake_bytes)
		return (u32)cfg.handshake_bytes;
	return min(rwnd_credit.syn_segs * (u32)cfg.mss_bytes, own_bytes);
}

static void begin(struct flow *f)
{
	u32 unit = (u32)cfg.unit_bytes, offered = handshake_bytes();
	struct rwnd_start start = { .now_us = now_us, .options = options, .path = path,
				    .mss_bytes = (u32)cfg.mss_bytes,
				    .min_rtt_us = (u32)cfg.rtt_us, .ack_seq = cfg.first_seq,
				    .edge_seq = cfg.first_seq + offered, .unit_bytes = unit,
				    .fresh = true };

	f->edge = f->ours ? offered : 1ULL << 50;
	if (f->ours) {
		f->state = calloc(1, sizeof(*f->state));
		edge_init(&f->wire, cfg.first_seq, offered, (u8)__builtin_ctz(unit));
		rwnd_credit.init(f->state, &start, &f->want);
		acknowledge(f);	/* the last of the handshake */
	}
	if (f->app_bps)
		write_some(f);
	if (!f->ours && cfg.on_us)
		at(now_us + (u64)cfg.on_us, TOGGLE, f);
	send_some(f);
}

static void handle(const struct event *e)
{
	struct flow *f = &flows[e->flow];

	switch (e->what) {
	case SENT:
		enqueue(*e);
		break;
	case SERVED:
		served(*e);
		break;
	case ARRIVED:
		receive(f, e);
		break;
	case ACKED:
		acked(f, e);
		break;
	case TIMEOUT:
		timed_out(f);
		break;
	case WAKE:
		wake(f);
		break;
	case DELACK:
		f->delack = false;
		if (f->unacked)
			acknowledge(f);
		break;
	case WRITE:
		write_some(f);
		break;
	case TOGGLE:
		f->on = !f->on;
		at(now_us + (u64)cfg.on_us, TOGGLE, f);
		send_some(f);
		break;
	case BEGIN:
		begin(f);
	}
}

static void set_up(void)
{
	int i, chatty = cfg.ours - cfg.mute - cfg.chatty;

	random_state = 88172645463325252ULL ^ cfg.seed * 0x9E3779B97F4A7C15ULL;
	for (i = 0; i < 20; i++)
		chance();
	rate_Bps = cfg.rate_bps / 8;
	now_us = 1000000 + (u64)(chance() * 1e5);
	begin_us = now_us;
	orders = 0;
	heap_n = 0;
	queue_head = 0;
	queue_len = 0;
	busy = false;
	free_us = 0;
	back_us = 0;
	fair_flow = 0;
	held_us = 0;
	trace_at = 0;
	options[VULTURE_CREDIT_O_MIN_KBIT] = 2;
	options[VULTURE_CREDIT_O_ESCAPE_S] = 20;
	options[VULTURE_CREDIT_O_WEIGHT] = 1000;
	path = calloc(1, sizeof(*path));
	rwnd_credit.path_init(path, now_us);
	n_flows = cfg.ours + cfg.greedy + (cfg.steady > 0);
	flows = calloc((size_t)n_flows, sizeof(*flows));
	for (i = 0; i < n_flows; i++) {
		struct flow *f = &flows[i];

		f->ours = i < cfg.ours;
		f->on = !f->ours || i < cfg.ours - cfg.mute;
		f->cwnd = 10;
		f->ssthresh = 1e9;
		f->begin_us = begin_us + (u64)(chance() * cfg.rtt_us);
		if (!f->ours)
			f->begin_us += (u64)(cfg.others_us + chance() * cfg.on_us);
		if (f->ours)
			f->app_bps = i < chatty ? cfg.app_bps : cfg.mss_bytes * 8e6 / cfg.chat_us;
		f->written = chance() * cfg.mss_bytes;
		if (i == cfg.ours + cfg.greedy) {
			f->burst = (u32)cfg.burst_pkts;
			f->app_bps = cfg.steady * cfg.rate_bps;
		}
		at(f->begin_us, BEGIN, f);
	}
}

static void sum_up(struct model_result *r, double queued, double samples)
{
	double s = (cfg.duration_us - cfg.measure_us) / 1e6, squares = 0;
	int i;

	*r = (struct model_result){ .first_bps = flows[0].bytes * 8 / s };
	for (i = 0; i < n_flows; i++) {
		double bps = flows[i].bytes * 8 / s;
		double quiet_us = (double)(now_us - max(flows[i].came_us, begin_us));

		*(flows[i].ours ? &r->ours_bps : &r->others_bps) += bps;
		squares += flows[i].ours ? bps * bps : 0;
		r->drops += flows[i].drops;
		if (flows[i].ours && flows[i].on)
			r->stall_us = max3(r->stall_us, flows[i].stall_us, quiet_us);
		free(flows[i].state);
	}
	r->jain = squares ? r->ours_bps * r->ours_bps / squares / cfg.ours : 0;
	r->queue_us = queued / max(samples, 1.0) * cfg.mss_bytes * 1e6 / rate_Bps;
	r->mu_bps = (double)path->law.mu_Bps * 8;
	r->yields = (double)path->law.yields;
	r->trains = (double)path->law.trains;
	r->failed = (double)path->law.failed;
	free(flows);
	free(path);
}

void model_run(const struct model_config *config, struct model_result *r)
{
	double queued = 0, samples = 0;
	u64 sample_us;

	cfg = *config;
	set_up();
	sample_us = begin_us + (u64)cfg.measure_us;
	while (heap_n) {
		struct event e = take();

		if (e.at_us > begin_us + cfg.duration_us)
			break;
		now_us = e.at_us;
		for (; sample_us < now_us; sample_us += 1000) {
			queued += queue_len;
			samples++;
		}
		if (cfg.change_us && now_us >= begin_us + cfg.change_us) {
			rate_Bps = cfg.change_bps / 8;
			cfg.rtt_us = cfg.change_rtt_us;
			back_us = cfg.change_back_us;
		}
		handle(&e);
	}
	sum_up(r, queued, samples);
}

/* Single steps of the controller, without the loop */

static struct flow *join(u32 min_rtt_us)
{
	struct rwnd_start start = { .now_us = now_us, .options = options, .path = path,
				    .min_rtt_us = min_rtt_us, .edge_seq = handshake_bytes(),
				    .unit_bytes = 1, .fresh = true };
	struct flow *f = &flows[n_flows++];

	f->state = calloc(1, sizeof(*f->state));
	rwnd_credit.init(f->state, &start, &f->want);
	return f;
}

static void brings(struct flow *f, u32 seq, u32 bytes)
{
	struct rwnd_data d = { .now_us = now_us, .seq = seq, .bytes = bytes, .segs = 1,
			       .seg_bytes = bytes };

	rwnd_credit.on_data(f->state, &d, &f->want);
}

/* Return: the window on the wire, bytes. */
static u32 tells(struct flow *f, u32 ack_seq, u32 own_bytes)
{
	struct rwnd_ack a = { .now_us = now_us, .ack_seq = ack_seq, .own_bytes = own_bytes };

	rwnd_credit.on_ack(f->state, &a, &f->want);
	return (u32)clamp_t(s32, (s32)(f->want.edge_seq - ack_seq), 0, (s32)own_bytes);
}

static void new_path(void)
{
	n_flows = 0;
	heap_n = 0;
	flows = calloc(8, sizeof(*flows));
	now_us = 1000000;
	options[VULTURE_CREDIT_O_WEIGHT] = 1000;
	path = calloc(1, sizeof(*path));
	rwnd_credit.path_init(path, now_us);
}

/* A download whose TCP has a window of two segments, the second of which opens in parts, with
 * @others other downloads, in phase @phase. Return: what its sender may send in the end, in
 * thousandths of a segment.
 */
u32 model_second_segment(int phase, int others)
{
	enum { SEGMENT = 60000 };
	struct flow *f;

	new_path();
	while (others--)
		brings(join(1000), 0, SEGMENT);
	f = join(1000);
	brings(f, 0, SEGMENT);
	path->law.phase = (enum credit_phase)phase;
	path->law.mu_Bps = 1000000000;
	path->law.window_bytes = 40 * SEGMENT;
	tells(f, SEGMENT, 2 * SEGMENT);
	f->state->goal_seq = 3 * SEGMENT;
	f->state->wire_seq = 3 * SEGMENT;
	/* A segment and a part of one arrive; the application has not read all of that. */
	brings(f, SEGMENT, SEGMENT + SEGMENT / 10);
	return tells(f, 2 * SEGMENT + SEGMENT / 10, SEGMENT + SEGMENT / 50) / (SEGMENT / 1000);
}

/* Data of two downloads, for which the clock was read in another order than the path's lock was
 * taken. Return: ticks that have ended.
 */
u32 model_clock_back(void)
{
	struct flow *one, *other;

	new_path();
	one = join(40000);
	other = join(40000);
	brings(one, 0, 1448);
	now_us -= 3;
	brings(other, 0, 1448);
	return path->law.n_ticks;
}

/* The timers of a download, for this time */
static void pass(struct flow *f, u64 us)
{
	u64 end_us = now_us + us;

	while (f->want.wake_us && f->want.wake_us <= end_us) {
		now_us = max(now_us, f->want.wake_us);
		f->want.wake_us = 0;
		rwnd_credit.on_timer(f->state, now_us, &f->want);
	}
	now_us = end_us;
}

/* A download that was silent for a time brings data once more, and is silent again. Its credit for
 * a segment is then out by @rounded octets on the wire alone. Return: active downloads after that.
 */
u32 model_silent_again(u32 rounded)
{
	struct flow *f;

	new_path();
	f = join(40000);
	brings(f, 0, 1448);
	pass(f, 10000000);
	brings(f, 1448, 1448);
	path->law.phase = CREDIT_CRUISE;
	path->law.window_bytes = 0;
	f->state->wire_seq = f->state->high_seq + 1448;
	f->state->edge_seq = f->state->wire_seq;
	f->state->goal_seq = f->state->wire_seq - rounded;
	pass(f, 10000000);
	return path->n;
}

/* Return: interval between the probes of a download that has been in FLOOR for floor_us, us. Its
 * least rate is min_kbit, kbit/s, after escape_s there.
 */
u64 model_probe_interval(u32 unit_bytes, u32 mu_Bps, u32 min_kbit, u32 escape_s, u64 floor_us)
{
	struct flow *f;

	new_path();
	f = join(40000);
	brings(f, 0, 1448);
	f->state->unit_bytes = unit_bytes;
	options[VULTURE_CREDIT_O_MIN_KBIT] = min_kbit;
	options[VULTURE_CREDIT_O_ESCAPE_S] = escape_s;
	path->law.mu_Bps = mu_Bps;
	path->law.since_us = now_us;
	return credit_probe_period(f->state, now_us + floor_us);
}

/* Two downloads, one after the other, with these round trips. @both: data of the later one arrives
 * before the first one ends. Return: round trip of the path, us.
 */
u32 model_later_base(u32 first_us, u32 later_us, bool both)
{
	struct flow *first, *later;

	new_path();
	first = join(first_us);
	brings(first, 0, 1448);
	later = join(later_us);
	if (both)
		brings(later, 0, 1448);
	rwnd_credit.leave(first->state, now_us);
	brings(later, both ? 1448 : 0, 1448);
	return path->law.base_us;
}
