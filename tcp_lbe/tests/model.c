// SPDX-License-Identifier: GPL-2.0
/*
 * A simulated link, with lbe's law in a closed loop, packet by packet.
 *
 * The law is the header from which the module is compiled; model.py puts it before
 * this text. flow_may_send() and host_ack() take the same steps as the module; the rest
 * of TCP is left out. The network is one drop-tail queue, or one for each flow, served in
 * turn, or a policer without a queue:
 *
 *   host 0..n-1, each with flows --+
 *   other traffic -----------------+--> rate, buffer --> half an RTT --> receiver
 *
 * The receiver acknowledges every second packet, or one after 40 ms; its ACKs take half an RTT.
 *
 * Noise is a random delay of each packet, uniformly distributed, behind the queue. With a queue
 * for each flow there is as much noise in front of the queue too.
 */
#include <math.h>
#include <stdlib.h>

#define MSS		1448
#define FRAME_BYTES	1514
#define NS		1000000000ULL
#define DELACK_NS	40000000ULL
#define FLOWS_MAX	128
#define SAMPLE_NS	10000000ULL
#define SECOND		((int)(NS / SAMPLE_NS))	/* samples in a second */
#define LIAR_PKTS	40	/* the window of a lying peer, which hides every queue */
#define QUEUE_PKTS	1024	/* longest queue of one flow, if each has its own; power of 2 */

enum other { OTHER_NONE, OTHER_STEADY, OTHER_GREEDY, OTHER_ONOFF };

struct model_config {
	double rate_bps;
	double rtt_s;
	double buffer_pkts;
	double noise_us;
	int fair;		/* a queue for each flow, served in turn */
	int policer;		/* no queue: drops what exceeds rate_bps and a bucket */
	int hosts;
	int flows;		/* of each host */
	int other;		/* enum other */
	double other_bps;	/* OTHER_STEADY: payload rate */
	double other_start_s, other_stop_s;
	double on_s;		/* OTHER_ONOFF: length of each on and each off period */
	double duration_s;
	double measure_s;	/* beginning of the window of measurement */
	double change_s;	/* when the rate changes; 0: never */
	double change_bps;
	double back_s;		/* when it changes back; 0: never */
	double pause_every_s, pause_s;	/* the link stops for pause_s; 0: never */
	double walk;		/* deviation of the rate's logarithm, each 100 ms */
	int liars;		/* flows of host 0 whose peer acknowledges early, even if lost */
	double lie_us;		/* by how much: the queue, and this much of the path */
	double lie_stop_s;	/* when they leave; 0: never */
	double chat_s;		/* until then each flow sends one packet and waits for the answer */
	double answer_us;	/* longest time until the answer */
	double others_start_s;	/* the honest flows of host 0 begin within 1 s from then */
	int weighed;		/* the last flows of host 0, which have another weight, each or */
	int together;		/* together */
	double weight;		/* that, as users give it; or that of an ordinary flow */
	double weigh_s;		/* until then */
	unsigned long long seed;
};

struct model_result {
	double host_bps[FLOWS_MAX];	/* payload in the window */
	double other_bps;
	double queue_us;		/* mean, at the rate of the moment */
	double queue_max_us;
	double rate_dev;		/* standard deviation of host 0's rate over its mean */
	double drops;
	double state_s[8];		/* time in each state of host 0, in the window */
	double honest_bps;		/* of host 0's flows whose peer does not lie */
	double weighed_bps;		/* of its flows that have another weight */
	double pause_s;			/* longest time for which a flow of host 0 sent nothing */
	double capacity_bps;		/* mean, of a link whose rate varies */
	double paths;			/* hosts, and flows that got a path of their own */
	double reap_s;			/* from other_stop_s until lbe had nine tenths for 1 s */
};

enum what {
	EV_COME, EV_WAKE, EV_ARRIVE, EV_DELACK, EV_ACK, EV_LOST,
	EV_OTHER, EV_OTHER_ACK, EV_OTHER_LOST,
	EV_QUEUED, EV_SERVED, EV_SAMPLE, EV_CHANGE, EV_WALK, EV_KINDS
};

struct event {
	u64 at_ns, order;
	u64 sent_ns, delay_ns;
	int what, who, pkts;
	u32 version;
};

struct flow {
	int host;
	bool lies;
	struct lbe_view view;
	u64 heard_ns;
	u32 epoch, out, segs_out, sent_mark, grant, version;
	u32 lost;		/* packets that are lost and to be sent again first */
	bool in_line, left;
	bool weighed, active;	/* it has the turn, or waits for it */
	u64 asked;		/* when it joined the line: a number that counts up */
	u64 sent_ns;		/* when it sent last */
	/* receiver */
	int held;
	u32 held_version;
	u64 held_sent_ns, held_delay_ns;
};

/* The queue of one flow at the bottleneck; the last one is that of the other traffic. */
struct queue {
	struct event pkt[QUEUE_PKTS];
	u32 head, tail;
	bool served;	/* since it was empty */
};

struct model {
	struct model_config c;
	struct model_result *r;
	struct event *heap;
	int n, room;
	u64 order, now_ns, free_ns, rate_bps, random;
	struct lbe_path host[FLOWS_MAX];
	int turn[FLOWS_MAX];	/* flow of each host that may send; -1: none */
	u64 wake_ns[FLOWS_MAX];	/* when it asks again; 0: it is not to be woken before */
	u64 asked;
	struct flow flow[FLOWS_MAX];
	struct queue queue[FLOWS_MAX + 1];
	int last;		/* the queue that had its turn last */
	bool busy;
	int paths;		/* hosts, and flows that have a path of their own */
	int active;		/* flows that have a weight together, and data */
	double delivered[FLOWS_MAX], other_delivered, honest_delivered, weighed_delivered;
	/* other traffic: window in packets, with Reno's increase and cubic's decrease */
	double cwnd, ssthresh;
	int other_out;
	u64 other_cut_ns;
	bool other_on;
	/* statistics */
	double queue_sum, rate_sum, rate_squares;
	int samples;
	double carried, before[SECOND];	/* by lbe: now, and at each sample of the last second */
	int at;
};

/* xorshift64*, 0 to 1 */
static double draw(struct model *m)
{
	m->random ^= m->random >> 12;
	m->random ^= m->random << 25;
	m->random ^= m->random >> 27;
	return (double)((m->random * 2685821657736338717ULL) >> 11) / 9007199254740992.0;
}

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void push(struct model *m, struct event e)
{
	int i = m->n++;

	if (m->n > m->room) {
		m->room = m->room ? 2 * m->room : 4096;
		m->heap = realloc(m->heap, m->room * sizeof(e));
		if (!m->heap)
			abort();
	}
	e.order = m->order++;
	for (; i && earlier(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = e;
}

static void push_at(struct model *m, u64 at_ns, struct event e)
{
	e.at_ns = at_ns;
	push(m, e);
}

static struct event pop(struct model *m)
{
	struct event first = m->heap[0], last = m->heap[--m->n];
	int i = 0, child;

	while ((child = 2 * i + 1) < m->n) {
		if (child + 1 < m->n && earlier(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!earlier(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = last;
	return first;
}

static bool chats(const struct model *m)
{
	return m->now_ns < m->c.chat_s * NS;
}

static u64 packet_ns(const struct model *m)
{
	return FRAME_BYTES * 8 * NS / m->rate_bps;
}

/* Are packets served one by one? This is so if the link pauses or its rate varies, or if each flow
 * has its own queue.
 */
static bool serves(const struct model *m)
{
	return m->c.fair || m->c.pause_s > 0 || m->c.walk > 0;
}

/* End of the transmission of a packet that is served from now on */
static u64 served_ns(const struct model *m)
{
	u64 end_ns = m->now_ns + packet_ns(m), since_ns;

	if (m->c.pause_s <= 0)
		return end_ns;
	since_ns = end_ns % (u64)(m->c.pause_every_s * NS);
	if (since_ns < (u64)(m->c.pause_s * NS))
		end_ns += (u64)(m->c.pause_s * NS) - since_ns + packet_ns(m);
	return end_ns;
}

static u64 backlog_ns(const struct model *m)
{
	return m->free_ns > m->now_ns ? m->free_ns - m->now_ns : 0;
}

/* The time for which a packet that comes now waits. At a policer the backlog is what its bucket has
 * lent, and nothing waits.
 */
static u64 queue_ns(const struct model *m)
{
	return m->c.policer ? 0 : backlog_ns(m);
}

/* Put a packet into the queue. Return: when it has left the queue and travelled for half an RTT; 0:
 * it is dropped.
 */
static u64 through_ns(struct model *m)
{
	u64 half_ns = (u64)(m->c.rtt_s * NS / 2);

	if ((double)backlog_ns(m) / packet_ns(m) > m->c.buffer_pkts) {
		m->r->drops++;
		return 0;
	}
	m->free_ns = m->now_ns + backlog_ns(m) + packet_ns(m);
	return (m->c.policer ? m->now_ns : m->free_ns) + half_ns +
	       (u64)(draw(m) * m->c.noise_us * 1000);
}

/* ---- a queue for each flow ---- */

/* The link is free: serve a queue that was empty until now first, otherwise each in turn. */
static void fair_serve(struct model *m)
{
	int queues = m->c.hosts * m->c.flows + 1, best = -1, i;

	for (i = 1; i <= queues; i++) {
		int k = (m->last + i) % queues;
		struct queue *q = &m->queue[k];

		if (q->head == q->tail)
			continue;
		if (best < 0 || (m->queue[best].served && !q->served))
			best = k;
	}
	m->busy = best >= 0;
	if (!m->busy)
		return;
	if (m->queue[best].served)
		m->last = best;
	m->queue[best].served = true;
	push_at(m, served_ns(m), (struct event){ .what = EV_SERVED, .who = best });
}

/* A packet has reached its queue. */
static void fair_queue(struct model *m, const struct event *e)
{
	struct queue *q = &m->queue[!m->c.fair ? 0 : e->pkts ? e->who : m->c.hosts * m->c.flows];
	struct event pkt = *e;

	if (q->tail - q->head >= min_t(double, m->c.buffer_pkts, QUEUE_PKTS)) {
		m->r->drops++;
		pkt.what = e->pkts ? EV_LOST : EV_OTHER_LOST;
		push_at(m, m->now_ns + (u64)(m->c.rtt_s * NS), pkt);
		return;
	}
	q->pkt[q->tail++ % QUEUE_PKTS] = pkt;
	if (!m->busy)
		fair_serve(m);
}

static void fair_served(struct model *m, const struct event *e)
{
	struct queue *q = &m->queue[e->who];
	struct event pkt = q->pkt[q->head++ % QUEUE_PKTS];

	if (q->head == q->tail)
		q->served = false;
	pkt.what = pkt.pkts ? EV_ARRIVE : EV_OTHER_ACK;
	push_at(m, m->now_ns + (u64)(m->c.rtt_s * NS / (pkt.pkts ? 2 : 1)) +
		   (u64)(draw(m) * m->c.noise_us * 1000), pkt);
	fair_serve(m);
}

/* ---- a flow of lbe: as in module.c ---- */

static void flow_wake(struct model *m, int who, u64 wake_ns)
{
	push_at(m, max(wake_ns, m->now_ns + 1000),
		(struct event){ .what = EV_WAKE, .who = who, .version = ++m->flow[who].version });
}

/* It has data now, or has none. */
static void set_active(struct model *m, struct flow *f, bool active)
{
	m->active += f->weighed * (active - f->active);
	f->active = active;
}

static void weigh(struct model *m, struct flow *f)
{
	bool weighed = f->weighed && m->now_ns >= m->c.weigh_s * NS;

	f->view.weight = lbe_weight_each(weighed ? (u32)m->c.weight : LBE_GIVEN,
					 weighed && m->c.together ? m->active : 1);
}

static void line_leave(struct model *m, struct flow *f)
{
	if (!f->in_line)
		return;
	f->in_line = false;
	lbe_path_wait_end(&m->host[f->host], &f->view);
	set_active(m, f, false);
}

static void line_join(struct model *m, struct flow *f)
{
	if (f->in_line)
		return;
	f->in_line = true;
	f->asked = m->asked++;
	set_active(m, f, true);
	weigh(m, f);
	lbe_path_wait(&m->host[f->host], &f->view);
}

static void turn_begin(struct model *m, int who)
{
	struct flow *f = &m->flow[who];

	line_leave(m, f);
	m->turn[f->host] = who;
	m->wake_ns[f->host] = 0;
	set_active(m, f, true);
	weigh(m, f);
	lbe_path_turn_begin(&m->host[f->host], &f->view);
}

static void turn_pass(struct model *m, int host)
{
	struct lbe_path *p = &m->host[host];
	int next = -1, i;

	if (m->turn[host] >= 0 && !m->flow[m->turn[host]].in_line)
		set_active(m, &m->flow[m->turn[host]], false);
	m->turn[host] = -1;
	if (!p->waiting) {
		lbe_path_ran_out(p);
		return;
	}
	for (i = 0; i < m->c.hosts * m->c.flows; i++) {
		const struct flow *f = &m->flow[i];

		if (f->host == host && f->in_line && (next < 0 || f->asked < m->flow[next].asked))
			next = i;
	}
	turn_begin(m, next);
	m->wake_ns[host] = max(lbe_path_due_ns(p), m->now_ns);
	flow_wake(m, next, m->wake_ns[host]);
}

static void turn_leave(struct model *m, int who)
{
	struct flow *f = &m->flow[who];

	line_leave(m, f);
	if (m->turn[f->host] == who)
		turn_pass(m, f->host);
}

static bool turn(struct model *m, int who)
{
	struct flow *f = &m->flow[who];
	struct lbe_path *p = &m->host[f->host];
	int *turn = &m->turn[f->host];

	if (*turn >= 0 && p->waiting + (*turn != who) && lbe_path_turn_over(p)) {
		line_join(m, f);
		turn_pass(m, f->host);
	}
	if (*turn < 0)
		turn_begin(m, who);
	if (*turn != who)
		line_join(m, f);
	return *turn == who;
}

static void turn_hurry(struct model *m, int who)
{
	int host = m->flow[who].host;
	u64 due_ns = max(lbe_path_due_ns(&m->host[host]), m->now_ns);

	if (m->turn[host] < 0 || m->turn[host] == who || due_ns >= m->wake_ns[host])
		return;
	m->wake_ns[host] = due_ns;
	flow_wake(m, m->turn[host], due_ns);
}

static u32 flow_may_send(struct model *m, int who, u64 *wake_ns)
{
	struct flow *f = &m->flow[who];
	struct lbe_path *p = &m->host[f->host];
	u32 sent = f->segs_out - f->sent_mark;
	u32 burst, bytes;
	u64 slot_ns;

	lbe_path_time(p, m->now_ns / 1000);
	if (f->epoch == p->epoch && f->grant > sent)
		return f->grant - sent;
	f->grant = 0;
	if (!turn(m, who)) {
		*wake_ns = m->now_ns + NS / 10;
		return 0;
	}
	lbe_path_rest(p, m->now_ns);
	*wake_ns = m->wake_ns[f->host] = lbe_path_due_ns(p);
	if (m->now_ns < *wake_ns)
		return 0;
	burst = lbe_path_burst_pkts(p);
	if (burst == 2 && f->out & 1)
		burst++;
	bytes = burst * MSS;
	slot_ns = lbe_path_slot_ns(p, bytes, f->segs_out * 0x9e3779b1 >> 8);
	if (p->state == LBE_FLOOR && p->reason == LBE_HEAVY_LOSS && f->lost)
		slot_ns = min(slot_ns, bytes * 16 * NS / p->mu);
	if (p->in_flight && p->in_flight + bytes > lbe_path_cap(p, bytes)) {
		*wake_ns = m->wake_ns[f->host] = m->now_ns + 2000000;
		return 0;
	}
	lbe_path_sent(p, m->now_ns, slot_ns, burst, bytes);
	f->epoch = p->epoch;
	f->grant = burst;
	f->sent_mark = f->segs_out;
	*wake_ns = m->wake_ns[f->host] = p->next_ns;
	return burst;
}

static void flow_send(struct model *m, int who)
{
	struct flow *f = &m->flow[who];
	struct lbe_path *p = &m->host[f->host];
	u64 wake_ns = m->now_ns, at_ns;
	int k;

	if (f->lies && m->c.lie_stop_s && m->now_ns > m->c.lie_stop_s * NS) {
		turn_leave(m, who);
		if (!f->left)
			lbe_path_leave(p, &f->view);
		f->left = true;
		return;
	}
	for (;;) {
		u32 pkts;

		if ((f->lies && f->out >= LIAR_PKTS) || (chats(m) && f->out)) {
			turn_leave(m, who);
			wake_ns = m->now_ns + NS / 1000;
			break;
		}
		pkts = flow_may_send(m, who, &wake_ns);
		if (!pkts)
			break;
		if (chats(m))
			pkts = 1;
		for (k = 0; k < (int)pkts; k++) {
			struct event e = { .who = who, .sent_ns = m->now_ns, .pkts = 1 };

			if (!f->host && m->now_ns >= m->c.measure_s * NS && f->sent_ns)
				m->r->pause_s = max(m->r->pause_s,
						    (double)(m->now_ns - f->sent_ns) / NS);
			f->sent_ns = m->now_ns;
			f->segs_out++;
			f->out++;
			f->lost -= f->lost > 0;
			p->in_flight += MSS;
			if (serves(m)) {
				e.what = EV_QUEUED;
				at_ns = (u64)(m->c.fair * draw(m) * m->c.noise_us * 1000);
				push_at(m, m->now_ns + at_ns, e);
				continue;
			}
			at_ns = through_ns(m);
			if (f->lies)	/* acknowledged early, even if it was dropped */
				at_ns = m->now_ns + (u64)(m->c.rtt_s * NS / 2 - m->c.lie_us * 1000);
			e.what = at_ns ? EV_ARRIVE : EV_LOST;
			e.at_ns = at_ns ?: m->now_ns + queue_ns(m) + (u64)(m->c.rtt_s * NS);
			push(m, e);
		}
	}
	turn_hurry(m, who);
	flow_wake(m, who, wake_ns);
}

/* The receiver sends an ACK, which covers @pkts packets. */
static void receiver_ack(struct model *m, int who, u64 sent_ns, u64 delay_ns, int pkts)
{
	push_at(m, m->now_ns + (u64)(m->c.rtt_s * NS / 2),
		(struct event){ .what = EV_ACK, .who = who, .sent_ns = sent_ns,
				.delay_ns = delay_ns, .pkts = pkts });
}

static void receiver_arrive(struct model *m, const struct event *e)
{
	struct flow *f = &m->flow[e->who];

	if (m->now_ns >= m->c.measure_s * NS) {
		m->delivered[e->who / m->c.flows] += MSS;
		m->honest_delivered += e->who < m->c.flows && !f->lies ? MSS : 0;
		m->weighed_delivered += f->weighed ? MSS : 0;
	}
	m->carried += MSS;
	f->held_sent_ns = e->sent_ns;
	f->held_delay_ns = m->now_ns - e->sent_ns;
	f->held_version++;
	if (chats(m)) {
		u64 answer_ns = (u64)(draw(m) * m->c.answer_us * 1000);

		push_at(m, m->now_ns + answer_ns + (u64)(m->c.rtt_s * NS / 2),
			(struct event){ .what = EV_ACK, .who = e->who, .sent_ns = e->sent_ns,
					.delay_ns = f->held_delay_ns + answer_ns, .pkts = 1 });
	} else if (++f->held >= 2) {
		receiver_ack(m, e->who, f->held_sent_ns, f->held_delay_ns, f->held);
		f->held = 0;
	} else {
		push_at(m, m->now_ns + DELACK_NS,
			(struct event){ .what = EV_DELACK, .who = e->who,
					.version = f->held_version });
	}
}

static void receiver_timer(struct model *m, const struct event *e)
{
	struct flow *f = &m->flow[e->who];

	if (e->version != f->held_version || !f->held)
		return;
	receiver_ack(m, e->who, f->held_sent_ns, m->now_ns - f->held_sent_ns, f->held);
	f->held = 0;
}

/* The flow meets another queue than the other flows of its path: it gets a path of its own. */
static struct lbe_path *flow_split(struct model *m, int who)
{
	struct flow *f = &m->flow[who];
	struct lbe_path *p = &m->host[f->host];

	turn_leave(m, who);
	lbe_path_leave(p, &f->view);
	p->in_flight -= f->out * MSS;
	if (m->paths == FLOWS_MAX)
		abort();
	f->host = m->paths++;
	m->turn[f->host] = -1;
	p = &m->host[f->host];
	lbe_path_init(p, m->now_ns / 1000, MSS, (u32)(m->c.rtt_s * 1e6));
	p->flows = 1;
	p->in_flight = f->out * MSS;
	f->epoch = p->epoch - 1;
	return p;
}

static void host_ack(struct model *m, const struct event *e, u32 lost_pkts)
{
	struct flow *f = &m->flow[e->who];
	struct lbe_path *p = &m->host[f->host];
	struct lbe_path_ack ack = {
		.now_us = m->now_ns / 1000,
		.delay_us = e->delay_ns / 1000,
		.rtt_us = max((m->now_ns - e->sent_ns) / 1000, 1),
		.acked_pkts = e->pkts,
		.acked_bytes = e->pkts * MSS,
		.lost_bytes = lost_pkts * MSS,
		.limited = chats(m),
		.small = chats(m),
	};

	if (e->pkts < 2 && !chats(m))
		ack.alone_us = (u32)min_t(u64, (m->now_ns - f->heard_ns) / 1000, U32_MAX);
	if (lbe_path_maybe_delayed(p, &ack))
		ack.delay_us = 0;
	f->heard_ns = m->now_ns;
	f->out -= e->pkts + lost_pkts;
	f->lost += lost_pkts;
	p->in_flight -= (e->pkts + lost_pkts) * MSS;
	if (ack.delay_us && lbe_path_contradicts(p, &f->view, &ack)) {
		lbe_view_init(&f->view);
		flow_split(m, e->who);
	} else {
		lbe_path_ack(p, &ack);
	}
	flow_send(m, e->who);
}

/* ---- other traffic ---- */

static void other_packet(struct model *m)
{
	u64 at_ns;

	m->other_out++;
	if (serves(m)) {
		push_at(m, m->now_ns, (struct event){ .what = EV_QUEUED, .sent_ns = m->now_ns });
		return;
	}
	at_ns = through_ns(m);
	push_at(m, (at_ns ?: m->now_ns + queue_ns(m)) +
		   (u64)(m->c.rtt_s * NS / (at_ns ? 2 : 1)),
		(struct event){ .what = at_ns ? EV_OTHER_ACK : EV_OTHER_LOST,
				.sent_ns = m->now_ns });
}

static void other_fill(struct model *m)
{
	while (m->other_on && m->other_out < (int)m->cwnd)
		other_packet(m);
}

static void other_step(struct model *m)
{
	double now_s = (double)m->now_ns / NS;

	if (m->c.other_stop_s && now_s >= m->c.other_stop_s) {
		m->other_on = false;
		return;
	}
	if (m->c.other == OTHER_STEADY) {
		double gap_s = MSS * 8 / m->c.other_bps;

		other_packet(m);
		push_at(m, m->now_ns + (u64)(gap_s * NS * (0.5 + draw(m))),
			(struct event){ .what = EV_OTHER });
		return;
	}
	m->other_on = !m->other_on;
	if (m->other_on) {
		m->cwnd = 10;
		m->ssthresh = 1e9;
		other_fill(m);
	}
	if (m->c.other == OTHER_ONOFF)
		push_at(m, m->now_ns + (u64)(m->c.on_s * NS), (struct event){ .what = EV_OTHER });
}

static void other_ack(struct model *m)
{
	m->other_out--;
	if (m->now_ns >= m->c.measure_s * NS)
		m->other_delivered += MSS;
	m->cwnd += m->cwnd < m->ssthresh ? 1 : 1 / m->cwnd;
	other_fill(m);
}

static void other_lost(struct model *m, u64 sent_ns)
{
	m->other_out--;
	if (sent_ns >= m->other_cut_ns) {
		m->other_cut_ns = m->now_ns;
		m->cwnd = max(m->cwnd * 0.7, 2.0);
		m->ssthresh = m->cwnd;
	}
	other_fill(m);
}

/* ---- the run ---- */

static void sample(struct model *m)
{
	double rate = (double)m->host[0].rate;
	double since_s = (double)m->now_ns / NS - m->c.other_stop_s;
	double bps = (m->carried - m->before[m->at]) * 8;

	m->before[m->at] = m->carried;
	m->at = (m->at + 1) % SECOND;
	if (m->c.other_stop_s && since_s > 0 && !m->r->reap_s &&
	    bps >= 0.9 * m->rate_bps * MSS / FRAME_BYTES)
		m->r->reap_s = since_s;
	push(m, (struct event){ .what = EV_SAMPLE, .at_ns = m->now_ns + SAMPLE_NS });
	if (m->now_ns < m->c.measure_s * NS)
		return;
	m->queue_sum += (double)queue_ns(m) / 1000;
	m->r->queue_max_us = max(m->r->queue_max_us, (double)queue_ns(m) / 1000);
	m->rate_sum += rate;
	m->rate_squares += rate * rate;
	m->samples++;
	m->r->state_s[m->host[0].state % 8] += (double)SAMPLE_NS / NS;
}

static void change(struct model *m)
{
	u64 pkts = backlog_ns(m) / packet_ns(m);

	m->rate_bps = (u64)(m->rate_bps == (u64)m->c.change_bps ? m->c.rate_bps : m->c.change_bps);
	m->free_ns = m->now_ns + pkts * packet_ns(m);
}

/* The rate varies at random, from a fifth to twice of the configured one: a cellular link. */
static void walk(struct model *m)
{
	double step = sqrt(-2 * log(1 - draw(m))) * cos(2 * M_PI * draw(m));
	double bps = m->rate_bps * exp(m->c.walk * step);

	m->rate_bps = (u64)min(max(bps, m->c.rate_bps / 5), 2 * m->c.rate_bps);
	if (m->now_ns >= m->c.measure_s * NS)
		m->r->capacity_bps += m->rate_bps * 0.1 / (m->c.duration_s - m->c.measure_s);
	push_at(m, m->now_ns + NS / 10, (struct event){ .what = EV_WALK });
}

static void happen(struct model *m, const struct event *e)
{
	switch (e->what) {
	case EV_COME:
		lbe_path_join(&m->host[m->flow[e->who].host], m->now_ns / 1000);
		flow_send(m, e->who);
		break;
	case EV_WAKE:
		if (e->version == m->flow[e->who].version)
			flow_send(m, e->who);
		break;
	case EV_ARRIVE:
		receiver_arrive(m, e);
		break;
	case EV_DELACK:
		receiver_timer(m, e);
		break;
	case EV_ACK:
		host_ack(m, e, 0);
		break;
	case EV_LOST: {
		struct event none = *e;

		none.pkts = 0;
		none.delay_ns = 0;
		host_ack(m, &none, 1);
		break;
	}
	case EV_OTHER:
		other_step(m);
		break;
	case EV_OTHER_ACK:
		other_ack(m);
		break;
	case EV_OTHER_LOST:
		other_lost(m, e->sent_ns);
		break;
	case EV_QUEUED:
		fair_queue(m, e);
		break;
	case EV_SERVED:
		fair_served(m, e);
		break;
	case EV_SAMPLE:
		sample(m);
		break;
	case EV_CHANGE:
		change(m);
		break;
	case EV_WALK:
		walk(m);
		break;
	}
}

static void finish(struct model *m)
{
	double span_s = m->c.duration_s - m->c.measure_s, mean;
	int i;

	for (i = 0; i < m->c.hosts; i++)
		m->r->host_bps[i] = m->delivered[i] * 8 / span_s;
	m->r->other_bps = m->other_delivered * 8 / span_s;
	m->r->honest_bps = m->honest_delivered * 8 / span_s;
	m->r->weighed_bps = m->weighed_delivered * 8 / span_s;
	m->r->paths = m->paths;
	if (!m->samples)
		return;
	mean = m->rate_sum / m->samples;
	m->r->queue_us = m->queue_sum / m->samples;
	m->r->rate_dev = sqrt(max(m->rate_squares / m->samples - mean * mean, 0.0));
	m->r->rate_dev /= max(mean, 1.0);
}

/* Return: 0, or -1 if there are too many flows. */
int model_run(const struct model_config *c, struct model_result *r)
{
	struct model *m;
	int i;

	memset(r, 0, sizeof(*r));
	if (c->hosts * c->flows > FLOWS_MAX)
		return -1;
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	m->c = *c;
	m->r = r;
	m->rate_bps = (u64)c->rate_bps;
	m->random = c->seed * 2 + 88172645463325252ULL;
	m->paths = c->hosts;
	for (i = 0; i < FLOWS_MAX; i++)
		m->turn[i] = -1;
	for (i = 0; i < c->hosts; i++)
		lbe_path_init(&m->host[i], 0, MSS, (u32)(c->rtt_s * 1e6));
	for (i = 0; i < c->hosts * c->flows; i++) {
		double start_s = i >= c->liars && i < c->flows ? c->others_start_s : 0;
		u64 at_ns = (u64)((start_s + draw(m)) * NS);

		m->flow[i].host = i / c->flows;
		m->flow[i].lies = i < c->liars;
		m->flow[i].weighed = i < c->flows && i >= c->flows - c->weighed;
		lbe_view_init(&m->flow[i].view);
		push(m, (struct event){ .what = EV_COME, .who = i, .at_ns = at_ns });
	}
	if (c->other != OTHER_NONE)
		push(m, (struct event){ .what = EV_OTHER, .at_ns = (u64)(c->other_start_s * NS) });
	if (c->other == OTHER_GREEDY && c->other_stop_s > 0)
		push(m, (struct event){ .what = EV_OTHER, .at_ns = (u64)(c->other_stop_s * NS) });
	if (c->change_s > 0)
		push(m, (struct event){ .what = EV_CHANGE, .at_ns = (u64)(c->change_s * NS) });
	if (c->walk > 0)
		push(m, (struct event){ .what = EV_WALK });
	if (c->back_s > 0)
		push(m, (struct event){ .what = EV_CHANGE, .at_ns = (u64)(c->back_s * NS) });
	push(m, (struct event){ .what = EV_SAMPLE, .at_ns = SAMPLE_NS });
	while (m->n && m->heap[0].at_ns < c->duration_s * NS) {
		struct event e = pop(m);

		m->now_ns = e.at_ns;
		happen(m, &e);
	}
	finish(m);
	free(m->heap);
	free(m);
	return 0;
}
