// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_lbe: congestion control "lbe".
 *
 * The law, its states and its constants are in include/lbe/path.h; the paths that flows
 * share are kept by paths.c. This file connects them to TCP:
 *
 *	each ACK	cong_control: gives delay, bytes and marks to the path; then the gate
 *	before sending	min_tso_segs: the gate
 *
 * The gate (lbe_gate()) asks the path for a slot. If the slot is granted, the window is what is
 * in flight plus the grant. If not, the departure time of the next packet is put off, as pacing
 * does, by 100 ms at most; then the gate asks again. So a long rest consists of many short ones.
 * The flows of a path have slots in turns (lbe_turn()), which are as long as their weights say
 * (weights.h). Those that wait for their turn form a line, and the first one is woken when the turn
 * passes on.
 * While nothing is in flight TCP takes a rest for a closed window, and would send a window probe,
 * which bypasses pacing and carries a timestamp of the future. The timer of the probe is
 * therefore stopped if the window is open, and only then. But if the sender's own device drops
 * everything, it is this timer that ends the connection: it runs again after TCP_USER_TIMEOUT.
 *
 * Loss does not mean congestion here. TCP finds and repairs it as always; retransmissions use
 * the same slots. Lost packets are not in flight, so a grant makes room for their repair.
 *
 * Pacing is always TCP's own, so that a device with sch_fq gets only packets that are due. sch_fq
 * claims the pacing of each socket whose packet it queues, and TCP then arms no timer. So the
 * gate takes the pacing back and arms the timer for the next slot itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "paths.h"
#include "weights.h"

#define LBE_COUNTERS_FILE		"lbe_lbe"
#define LBE_COUNTERS_MORE(seq, net)	lbe_paths_totals(seq, net)
#include <lbe/clock_back.h>
#include <lbe/counters.h>
#include <lbe/info.h>
#include <lbe/mark.h>
#include <lbe/owd.h>
#include <lbe/sender.h>

#define CREATE_TRACE_POINTS
#include "lbe_trace.h"

/* A rest is cut into pieces no longer than this, ns. If doubled, a flow whose turn comes while its
 * socket is locked may notice that later by as much.
 */
#define LBE_SLICE_NS	(100 * NSEC_PER_MSEC)

/* If the sender's own device is the bottleneck, its queue is inspected every quarter of a packet's
 * time, but no more often than this, ns: less than a driver's ring holds, so that the ring does not
 * run empty. If doubled, some of a fast device stays unused; if halved, twice as many timers run.
 */
#define LBE_DEVICE_POLL_NS	(100 * NSEC_PER_USEC)

/* A flow that waits for room in flight asks again after this, ns, unless an ACK comes before. If
 * doubled, room that data given up has left stays unused for twice as long; if halved, twice as
 * many timers run.
 */
#define LBE_ROOM_POLL_NS	(2 * NSEC_PER_MSEC)

/* A policer may have dropped hundreds of packets: they are not repaired at the rate of pairs, but
 * at mu / this at least. If doubled, the repair takes twice as long; if halved, it takes an eighth
 * of the policer's rate from other traffic.
 */
#define LBE_REPAIR_PART		16

/* The size that packets of other traffic are taken to have falls by 1 / this an ACK, in case the
 * path's MTU has fallen: by half in 177 ACKs. If doubled, it follows twice as slowly; if halved,
 * one flow of small packets among others pulls it down.
 */
#define LBE_MSS_FADE		256

/* If the device drops everything, and the application has set no TCP_USER_TIMEOUT, the connection
 * ends after this, ms: about as late as by TCP's default for a peer that does not answer. If
 * doubled, a connection that its application has closed holds its memory for twice as long.
 */
#define LBE_DROPS_MS		(15 * 60 * MSEC_PER_SEC)

/**
 * struct lbe_flow - private state of a socket; written under the socket's lock, and @view, @place,
 *	@in_line, @active and @in_flight under the path's lock
 * @shared: its path; NULL before init, after release, while a handshake goes on, or if there was
 *	no memory for one
 * @owd: forward delay
 * @view: its weight, and how its delays compare with those of the other flows of the path
 * @acked_us: time of the latest ACK; wraps after 71 min. An ACK that comes that long after, to
 *	within 25 ms, counts even if it may have been delayed
 * @place: in one of the path's lists of flows
 * @capped_ns: no slot before, because of the application's SO_MAX_PACING_RATE
 * @rate: of the path, as `ss` shows it, bytes a second; U32_MAX: that or more
 * @base_us: of the path, as `ss` shows it
 * @in_flight: its part of the path's bytes in flight
 * @epoch: of the path at the time of the grant
 * @sent_mark: data_segs_out at the time of the grant; only differences are used: it wraps
 * @delivered_ce: the socket's, at the latest ACK, modulo 2^16; only compared for equality
 * @bytes_acked: likewise; the difference is used if an ACK is that of a single packet
 * @grant: packets granted at that time; 0: none
 * @mark: the parts of the LE mark that this control has set (LBE_MARK_*)
 * @in_line: @place is in the list of those that wait for their turn; it and @active are in a
 *	structure of their own, so that they share no byte with fields that the socket's lock
 *	guards: other sockets write them
 * @active: it has the turn or waits for it, and is counted as such for its weight
 * @claimed: sch_fq has claimed the pacing of the socket since init
 * @resends: packets that were lost in a silence or at the end of START are still to be sent again
 * @on: between init and release, and so counted in the counters' flows
 * @yielding: counted as yielding in the counters
 * @behind: samples in a row that say that the peer's clock was set back, 0 to LBE_OWD_AGREE - 1
 */
struct lbe_flow {
	struct lbe_shared *shared;
	struct lbe_owd owd;
	struct lbe_view view;
	u32 acked_us;
	u32 base_us;
	struct list_head place;
	u64 capped_ns;
	u32 rate;
	u32 in_flight;
	u32 epoch;
	u32 sent_mark;
	u16 delivered_ce;
	u16 bytes_acked;
	u8 grant;
	u8 mark;
	struct {
		u8 in_line:1,
		   active:1;
	};
	u8 claimed:1,
	   resends:1,
	   on:1,
	   yielding:1,
	   behind:2;
};

LBE_MARK_PARAM();

/* For the counters a flow gives way while it has data and its path is in FLOOR or PROBE. */
static void lbe_count(const struct sock *sk, struct lbe_flow *f, bool yields)
{
	lbe_counters_ack(sk, f->yielding, yields, 0);
	f->yielding = yields;
}

/* The pacing timer */

/* TCP does not arm its pacing timer again while it is armed: cancel one that expires too late. */
static void lbe_wake_by(struct sock *sk, u64 wake_ns)
{
	struct hrtimer *timer = &tcp_sk(sk)->pacing_timer;

	if (hrtimer_is_queued(timer) && ktime_to_ns(hrtimer_get_expires(timer)) > (s64)wake_ns &&
	    hrtimer_try_to_cancel(timer) == 1)
		__sock_put(sk);
}

/* Arm the pacing timer, which holds a reference to the socket. TCP does this itself unless sch_fq
 * has claimed the pacing.
 */
static void lbe_wake_at(struct sock *sk, u64 wake_ns)
{
	struct hrtimer *timer = &tcp_sk(sk)->pacing_timer;

	if (hrtimer_is_queued(timer))
		return;
	hrtimer_start(timer, ns_to_ktime(wake_ns), HRTIMER_MODE_ABS_PINNED_SOFT);
	sock_hold(sk);
}

/* Turns. All of this is done under the path's lock. */

static struct sock *lbe_sock(struct lbe_flow *f)
{
	return (struct sock *)((char *)f - offsetof(struct inet_connection_sock, icsk_ca_priv));
}

static bool lbe_ended(struct lbe_flow *f)
{
	return READ_ONCE(lbe_sock(f)->sk_state) == TCP_CLOSE;
}

/* Let another socket ask at this time, or when it would ask anyway if that is sooner. If its
 * process is in a system call, it asks at the end of that. Return: false if its lock is held
 * elsewhere, so that it could not be told.
 */
static bool lbe_wake(struct sock *sk, u64 wake_ns)
{
	if (!spin_trylock(&sk->sk_lock.slock))
		return false;
	if (!sock_owned_by_user_nocheck(sk)) {
		lbe_wake_by(sk, wake_ns);
		lbe_wake_at(sk, wake_ns);
	} else if (!test_and_set_bit(TCP_TSQ_DEFERRED, &sk->sk_tsq_flags)) {
		sock_hold(sk);
	}
	spin_unlock(&sk->sk_lock.slock);
	return true;
}

/* Tell the flow that has the turn when its slot comes. */
static void lbe_turn_tell(struct lbe_shared *s)
{
	u64 due_ns = max(lbe_path_due_ns(&s->law), s->law.now_us * 1000);

	if (due_ns < s->wake_ns)
		s->wake_ns = lbe_wake(lbe_sock(s->turn), due_ns) ? due_ns : U64_MAX;
}

/* The flow has data, and the weight that this gives it, or has none any more. If others of its
 * group begin or end to have data, its weight changes when it is weighed again: when its turn
 * begins, and when it waits for the next one.
 */
static void lbe_weigh(struct lbe_flow *f, bool active)
{
	struct sock *sk = lbe_sock(f);

	if (f->active != active)
		lbe_weights_count(sk, f->view.group, active);
	f->active = active;
	f->view.weight = lbe_weights_each(sk, f->view.group);
}

static void lbe_line_leave(struct lbe_shared *s, struct lbe_flow *f)
{
	if (!f->in_line)
		return;
	f->in_line = 0;
	list_move(&f->place, &s->rest);
	lbe_path_wait_end(&s->law, &f->view);
}

static void lbe_line_join(struct lbe_shared *s, struct lbe_flow *f)
{
	if (f->in_line)
		return;
	f->in_line = 1;
	list_move_tail(&f->place, &s->line);
	lbe_weigh(f, true);
	lbe_path_wait(&s->law, &f->view);
}

static void lbe_turn_begin(struct lbe_shared *s, struct lbe_flow *f)
{
	lbe_line_leave(s, f);
	s->turn = f;
	s->wake_ns = 0;
	lbe_weigh(f, true);
	lbe_path_turn_begin(&s->law, &f->view);
}

/* The first in line, but no connection that the peer or a time-out has ended: this control is not
 * told of that before its process closes it.
 */
static struct lbe_flow *lbe_line_first(struct lbe_shared *s)
{
	struct lbe_flow *f;

	while ((f = list_first_entry_or_null(&s->line, struct lbe_flow, place))) {
		if (!lbe_ended(f))
			return f;
		lbe_line_leave(s, f);
		lbe_weigh(f, false);
	}
	return NULL;
}

/* The turn is over: the first in line has the next one. */
static void lbe_turn_pass(struct lbe_shared *s)
{
	struct lbe_flow *next = lbe_line_first(s);

	if (s->turn && !s->turn->in_line)
		lbe_weigh(s->turn, false);
	s->turn = NULL;
	if (!next) {
		lbe_path_ran_out(&s->law);
		return;
	}
	lbe_turn_begin(s, next);
	s->wake_ns = U64_MAX;
	lbe_turn_tell(s);
}

/* The flow has nothing to send now: it does not wait for its turn, and does not keep it. */
static void lbe_turn_leave(struct lbe_shared *s, struct lbe_flow *f)
{
	lbe_line_leave(s, f);
	if (s->turn == f)
		lbe_turn_pass(s);
	else
		lbe_weigh(f, false);
}

/* Is it the turn of this flow, which has data? If not, the flow waits in line. */
static bool lbe_turn(struct lbe_shared *s, struct lbe_flow *f)
{
	bool others = s->turn != f || s->law.waiting;

	if (s->turn && others && lbe_path_turn_over(&s->law)) {
		lbe_line_join(s, f);
		lbe_turn_pass(s);
	}
	if (!s->turn)
		lbe_turn_begin(s, f);
	if (s->turn != f)
		lbe_line_join(s, f);
	return s->turn == f;
}

/* An ACK of another flow may allow the flow that has the turn to send before it would ask. */
static void lbe_turn_hurry(struct lbe_shared *s, const struct lbe_flow *f)
{
	if (s->turn && s->turn != f)
		lbe_turn_tell(s);
}

/* The path */

static void lbe_account(struct lbe_path *p, struct lbe_flow *f, u32 bytes)
{
	p->in_flight += bytes - (u64)f->in_flight;
	f->in_flight = bytes;
}

static bool lbe_join(struct sock *sk, struct lbe_flow *f, bool alone)
{
	u64 now_us = div_u64(tcp_clock_ns(), NSEC_PER_USEC);
	struct lbe_path *p;

	f->shared = lbe_shared_get(sk, now_us, alone);
	if (!f->shared)
		return false;
	p = &f->shared->law;
	f->grant = 0;
	lbe_view_init(&f->view);
	spin_lock_bh(&f->shared->lock);
	lbe_path_join(p, now_us);
	f->epoch = p->epoch;
	list_add(&f->place, &f->shared->rest);
	/* Later than the flow is in the list, where a change of the weights finds it. */
	f->view.group = lbe_weights_group(sk);
	spin_unlock_bh(&f->shared->lock);
	return true;
}

static void lbe_leave(struct sock *sk, struct lbe_flow *f)
{
	struct lbe_path *p = &f->shared->law;

	spin_lock_bh(&f->shared->lock);
	lbe_account(p, f, 0);
	lbe_turn_leave(f->shared, f);
	list_del(&f->place);
	lbe_path_leave(p, &f->view);
	spin_unlock_bh(&f->shared->lock);
	lbe_shared_put(sk, f->shared);
	f->shared = NULL;
}

/* Another weight may be the flow's. */
static void lbe_flow_regroup(struct lbe_shared *s, struct lbe_flow *f)
{
	bool in_line = f->in_line, active = f->active;

	if (in_line)
		lbe_path_wait_end(&s->law, &f->view);
	lbe_weigh(f, false);
	f->view.group = lbe_weights_group(lbe_sock(f));
	lbe_weigh(f, active);
	if (in_line)
		lbe_path_wait(&s->law, &f->view);
	if (s->turn == f)
		s->law.turn_weight = f->view.weight;
}

void lbe_flows_regroup(struct lbe_shared *s)
{
	struct lbe_flow *f;

	spin_lock_bh(&s->lock);
	list_for_each_entry(f, &s->line, place)
		lbe_flow_regroup(s, f);
	list_for_each_entry(f, &s->rest, place)
		lbe_flow_regroup(s, f);
	spin_unlock_bh(&s->lock);
}

/* Connections that have ended have nothing in flight. */
static void lbe_account_ended(struct lbe_path *p, struct list_head *flows)
{
	struct lbe_flow *f;

	list_for_each_entry(f, flows, place)
		if (lbe_ended(f))
			lbe_account(p, f, 0);
}

/* Move the flow to the path of its present device. Return: false if it has no path. */
static bool lbe_on_path(struct sock *sk, struct lbe_flow *f)
{
	int ifindex = lbe_shared_device(sk);

	if (f->shared && ifindex && ifindex != f->shared->ifindex)
		lbe_leave(sk, f);
	return f->shared || (f->on && lbe_join(sk, f, false));
}

/* Sending */

/* Is there data to send again, or new data that fits the peer's window? */
static bool lbe_has_data(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb = tcp_send_head(sk);

	if (tp->lost_out > tp->retrans_out)
		return true;
	return skb && !after(min(TCP_SKB_CB(skb)->end_seq,
				 TCP_SKB_CB(skb)->seq + tp->mss_cache), tcp_wnd_end(tp));
}

/* Bytes that it may send before it has to wait for an ACK or for the application */
static u64 lbe_data_bytes(const struct tcp_sock *tp)
{
	u32 end = before(tcp_wnd_end(tp), tp->write_seq) ? tcp_wnd_end(tp) : tp->write_seq;

	return (u64)(tp->lost_out - min(tp->retrans_out, tp->lost_out)) * tp->mss_cache +
	       (u32)max_t(s32, end - tp->snd_nxt, 0);
}

/* Does any packet, of whatever flow, wait in the queueing discipline of the sender's own device? */
static bool lbe_device_waits(struct sock *sk)
{
	const struct dst_entry *dst;
	const struct Qdisc *qdisc;
	bool waits = false;
	int queue;

	rcu_read_lock();
	dst = __sk_dst_get(sk);
	if (dst) {
		queue = sk_tx_queue_get(sk);
		if (queue < 0 || queue >= (int)dst->dev->real_num_tx_queues)
			queue = 0;
		qdisc = rcu_dereference(netdev_get_tx_queue(dst->dev, queue)->qdisc);
		waits = qdisc_qlen_sum(qdisc) > 0;
	}
	rcu_read_unlock();
	return waits;
}

/* The application's limit by SO_MAX_PACING_RATE, bytes a second; 0: none */
static u64 lbe_cap(const struct sock *sk)
{
	unsigned long rate = READ_ONCE(sk->sk_max_pacing_rate);

	return rate == ~0UL ? 0 : rate;
}

static u32 lbe_in_flight(const struct tcp_sock *tp)
{
	return tcp_packets_in_flight(tp) * tp->mss_cache;
}

/* Packets of the grant in use that are still to be sent */
static u32 lbe_grant_left(struct lbe_shared *s, const struct lbe_flow *f, const struct tcp_sock *tp,
			  u64 now_ns)
{
	struct lbe_path *p = &s->law;
	u32 sent = tp->data_segs_out - f->sent_mark;

	/* A grant of an earlier state of the path is void. */
	if (f->epoch != p->epoch || f->grant <= sent)
		return 0;
	/* Not used for a packet's time in its turn: the sender's own device delays it. */
	if (s->turn == f && now_ns > p->granted_ns + lbe_path_pkt_us(p) * 1000ULL)
		p->train.throttled = true;
	return f->grant - sent;
}

/* Packets of the next grant: what a slot holds, and at most 1/1024 s of the application's cap */
static u32 lbe_burst_pkts(const struct lbe_path *p, const struct tcp_sock *tp, u64 cap)
{
	u32 burst = lbe_path_burst_pkts(p);

	if (cap)
		burst = (u32)clamp_t(u64, div_u64(cap >> 10, tp->mss_cache), 1, burst);
	/* The receiver delays the ACK of an odd packet until the next one or a timer. */
	return burst == 2 && tp->packets_out & 1 ? burst + 1 : burst;
}

static u64 lbe_slot_ns(const struct lbe_path *p, const struct tcp_sock *tp, u32 bytes)
{
	/* A number that differs from packet to packet: a multiplicative hash, 2^32 / phi */
	u64 slot_ns = lbe_path_slot_ns(p, bytes, tp->data_segs_out * 0x9e3779b1 >> 8);

	if (p->state == LBE_FLOOR && p->reason == LBE_HEAVY_LOSS && tp->lost_out > tp->retrans_out)
		slot_ns = min(slot_ns,
			      div64_u64((u64)bytes * LBE_REPAIR_PART * NSEC_PER_SEC, p->mu));
	return slot_ns;
}

static bool lbe_device_busy(struct sock *sk, struct lbe_path *p)
{
	/* Only data counts: TCP accounts a pure ACK as 2 bytes, and netem keeps those. */
	bool mine = sk_wmem_alloc_get(sk) >= (int)SKB_TRUESIZE(1);

	return lbe_path_device_busy(p, mine, (mine || p->local) && lbe_device_waits(sk));
}

/* Is there room in flight? If not, what is counted may have ended; this is checked now and then,
 * since there may be thousands of flows.
 */
static bool lbe_room(struct lbe_shared *s, u64 now_ns, u32 bytes)
{
	const struct lbe_path *p = &s->law;
	u64 cap = lbe_path_cap(p, bytes);

	if (p->in_flight + bytes > cap && now_ns > s->checked_ns + LBE_SLICE_NS) {
		s->checked_ns = now_ns;
		lbe_account_ended(&s->law, &s->line);
		lbe_account_ended(&s->law, &s->rest);
	}
	return !p->in_flight || p->in_flight + bytes <= cap;
}

/* TCP's pacing rate is above that of the path, since it only spaces the packets of one grant. It is
 * so far above that the receiver acknowledges them together.
 */
static void lbe_set_pacing(struct sock *sk, const struct lbe_path *p)
{
	u64 rate = max(4 * lbe_path_peak_rate(p),
		       (u64)tcp_sk(sk)->mss_cache * (4 * USEC_PER_SEC / LBE_DELACK_US));

	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* The slot is used now. */
static void lbe_grant(struct lbe_path *p, struct lbe_flow *f, const struct tcp_sock *tp, u64 now_ns,
		      u64 slot_ns, u32 pkts)
{
	u32 bytes = pkts * tp->mss_cache;

	lbe_path_sent(p, now_ns, slot_ns, pkts, bytes);
	f->epoch = p->epoch;
	f->grant = pkts;
	f->sent_mark = tp->data_segs_out;
	lbe_account(p, f, lbe_in_flight(tp) + bytes);
}

/* The application's cap begins to count when the flow asks for a turn, or 1 ms before, since timers
 * are late. What it allows while the flow waits for its turn is sent in that turn, up to what it
 * allows in the time in which all flows have theirs.
 */
static void lbe_cap_begin(const struct lbe_shared *s, struct lbe_flow *f, u64 now_ns)
{
	bool waits = f->in_line || (s->turn == f && s->law.waiting);
	u64 keep_ns = waits ? LBE_CYCLE_US * 1000 : LBE_LATE_NS;

	f->capped_ns = max(f->capped_ns, now_ns - min(keep_ns, now_ns));
}

/* No slot before what the cap takes for this grant. Return: true if the next one is not due yet. */
static bool lbe_cap_charge(struct lbe_flow *f, u64 cap, u64 now_ns, u32 bytes)
{
	if (!cap)
		return false;
	f->capped_ns += div64_u64((u64)bytes * NSEC_PER_SEC, cap);
	return now_ns < f->capped_ns;
}

/* Packets that may be sent now; 0: none, and *wake_ns says when to ask again. In this order: the
 * grant in use, the application's cap, the turn, the slot, the sender's own device, the room in
 * flight.
 */
static u32 lbe_may_send(struct sock *sk, struct lbe_flow *f, u64 now_ns, u64 *wake_ns)
{
	struct lbe_shared *s = f->shared;
	struct lbe_path *p = &s->law;
	struct tcp_sock *tp = tcp_sk(sk);
	u64 slot_ns, cap = lbe_cap(sk);
	u32 pkts, bytes;

	lbe_account(p, f, lbe_in_flight(tp));
	lbe_path_time(p, div_u64(now_ns, NSEC_PER_USEC));
	pkts = lbe_grant_left(s, f, tp, now_ns);
	if (pkts) {
		/* Perhaps TCP does not use it: ask again after as long as that has been so. */
		*wake_ns = 2 * now_ns - min(p->granted_ns, now_ns);
		if (s->turn != f)
			*wake_ns = max(*wake_ns, now_ns + LBE_DEVICE_POLL_NS);
		return pkts;
	}
	f->grant = 0;
	if (cap && now_ns < f->capped_ns) {
		lbe_turn_leave(s, f);
		*wake_ns = f->capped_ns;
		return 0;
	}
	lbe_cap_begin(s, f, now_ns);
	if (!lbe_turn(s, f)) {
		*wake_ns = now_ns + LBE_SLICE_NS;
		return 0;
	}
	lbe_path_rest(p, now_ns);
	*wake_ns = s->wake_ns = lbe_path_due_ns(p);
	if (now_ns < *wake_ns)
		return 0;
	pkts = lbe_burst_pkts(p, tp, cap);
	bytes = pkts * tp->mss_cache;
	slot_ns = lbe_slot_ns(p, tp, bytes);
	if (lbe_device_busy(sk, p)) {
		*wake_ns = now_ns + max_t(u64, lbe_path_pkt_us(p) * 250ULL, LBE_DEVICE_POLL_NS);
		return 0;
	}
	if (!lbe_room(s, now_ns, bytes)) {
		*wake_ns = s->wake_ns = now_ns + LBE_ROOM_POLL_NS;
		return 0;
	}
	lbe_grant(p, f, tp, now_ns, slot_ns, pkts);
	lbe_set_pacing(sk, p);
	s->wake_ns = p->next_ns;
	/* The other packets of this slot do not wait for the next one. */
	*wake_ns = pkts > 1 ? now_ns : p->next_ns;
	/* This is all that it may send. */
	if (lbe_cap_charge(f, cap, now_ns, bytes) || lbe_data_bytes(tp) <= bytes)
		lbe_turn_pass(s);
	return pkts;
}

/* Set a window that TCP accepts, even if a peer that lies makes the packets in flight wrong. */
static void lbe_set_window(struct tcp_sock *tp, u32 pkts)
{
	tcp_snd_cwnd_set(tp, clamp_t(u32, pkts, 1, min_t(u32, tp->snd_cwnd_clamp, S32_MAX)));
}

/* Was the next packet given to the sender's own device, and dropped by it? TCP sets the departure
 * time of a packet before it knows, and leaves a packet that was dropped at the head.
 */
static bool lbe_dropped(const struct sock *sk)
{
	const struct sk_buff *skb = tcp_send_head(sk);

	return skb && skb->skb_mstamp_ns;
}

/* A rest is not a closed window: stop TCP's probe of it. It stays stopped while the device drops
 * everything, since TCP counts a probe that is dropped as one without an answer, and ends the
 * connection after fifteen in 8 s. The gate tries again instead, and notes the first drop where TCP
 * notes its first probe. If a try after the time-out fails too, the timer runs, and by it TCP ends
 * the connection. So no rest that is longer than the time-out does.
 */
static void lbe_probe_timer(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 limit_ms = READ_ONCE(icsk->icsk_user_timeout) ?: LBE_DROPS_MS;
	u32 limit = icsk->icsk_probes_tstamp + msecs_to_jiffies(limit_ms);

	if (!lbe_dropped(sk)) {
		icsk->icsk_probes_tstamp = 0;
	} else if (!icsk->icsk_probes_tstamp) {
		icsk->icsk_probes_tstamp = tcp_jiffies32;
	} else if (!before(tcp_sk(sk)->lsndtime, limit)) {
		tcp_check_probe_timer(sk);
		return;
	}
	if (icsk->icsk_pending == ICSK_TIME_PROBE0)
		inet_csk_clear_xmit_timer(sk, ICSK_TIME_PROBE0);
}

/* Let TCP send what the schedule of the path allows now, or make it ask again later. */
static u32 lbe_gate(struct sock *sk)
{
	struct lbe_flow *f = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now_ns = tp->tcp_clock_cache, wake_ns = 0, wide_bytes;
	u32 in_flight = tcp_packets_in_flight(tp);
	struct lbe_path *p;
	u32 pkts, wide;
	u8 state;

	if (!f->shared && !(f->on && lbe_join(sk, f, false))) {
		if (f->on && !tp->packets_out)
			lbe_wake_at(sk, now_ns + LBE_SLICE_NS);
		return 1;
	}
	p = &f->shared->law;
	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_NEEDED) {
		f->claimed |= READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ;
		WRITE_ONCE(sk->sk_pacing_status, SK_PACING_NEEDED);
	}
	spin_lock_bh(&f->shared->lock);
	p->now_us = max(p->now_us, div_u64(now_ns, NSEC_PER_USEC));
	if (!lbe_has_data(sk)) {
		lbe_account(p, f, lbe_in_flight(tp));
		lbe_turn_leave(f->shared, f);
		lbe_turn_hurry(f->shared, f);
		spin_unlock_bh(&f->shared->lock);
		lbe_count(sk, f, false);
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, now_ns);
		return 1;
	}
	state = p->state;
	pkts = lbe_may_send(sk, f, now_ns, &wake_ns);
	lbe_turn_hurry(f->shared, f);
	if (state != p->state)
		trace_lbe_state(sk, p, 0, 0);
	state = p->state;
	wide_bytes = pkts ? 0 : lbe_path_bdp(p->rate, 2 * p->rtt_us);
	spin_unlock_bh(&f->shared->lock);
	lbe_count(sk, f, state == LBE_FLOOR || state == LBE_PROBE);
	if (pkts) {
		/* More than 1 ms ago, so that TCP's GSO deferral does not wait for more data. */
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, now_ns - 2 * NSEC_PER_MSEC);
		lbe_set_window(tp, in_flight + pkts);
		lbe_wake_by(sk, now_ns);
		/* TCP arms none if sch_fq has claimed the pacing, for the first ten segments, or if
		 * its device drops the packet. Then no ACK comes either if none is in flight. With
		 * the application's cap as pacing rate, TCP's would expire too late.
		 */
		if (f->claimed || tp->data_segs_out < TCP_INIT_CWND || !tp->packets_out ||
		    lbe_cap(sk))
			lbe_wake_at(sk, max(wake_ns, now_ns + NSEC_PER_USEC));
	} else {
		u64 slice_ns = min_t(u64, LBE_SLICE_NS,
				     jiffies_to_nsecs(inet_csk(sk)->icsk_rto) / 2);

		tp->tcp_wstamp_ns = min(wake_ns, now_ns + slice_ns);
		lbe_wake_by(sk, tp->tcp_wstamp_ns);
		wide = (u32)min_t(u64, div_u64(wide_bytes, tp->mss_cache) + 4, S32_MAX);
		lbe_set_window(tp, max(wide, in_flight + 1));
	}
	lbe_probe_timer(sk);
	return max(pkts, 1U);
}

static u32 lbe_min_tso_segs(struct sock *sk)
{
	return lbe_gate(sk);
}

/* ACKs */

/* Round trip of the latest packet that this ACK acknowledges, us; 0: not known. For a packet that
 * was sent again, RACK knows it if the packet that was sent last is also the last to arrive. RACK
 * takes no round trip below the least, since then the original was acknowledged. Such a round trip
 * counts after a silence, after START, which may have lost a round trip's packets, and after a
 * heavy loss: they are sent again pair by pair, and no other packets could show that the path is
 * idle. Otherwise it does not count: reordering makes it too short, and just after a loss other
 * flows have slowed down.
 */
static u32 lbe_rtt_us(const struct sock *sk, struct lbe_flow *f, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u8 reason = READ_ONCE(f->shared->law.reason);

	f->resends = tp->lost_out &&
		     (f->resends || reason == LBE_SILENCE || reason == LBE_QUEUE_FOUND ||
		      reason == LBE_HEAVY_LOSS || reason == LBE_MEASURED);
	if (!rs->is_retrans && !tp->tlp_high_seq && inet_csk(sk)->icsk_ca_state != TCP_CA_Loss)
		return max_t(s32, rs->rtt_us, 0);
	if (!f->resends || tp->rack.mstamp + tp->rack.rtt_us != tp->tcp_mstamp)
		return 0;
	return tp->rack.rtt_us;
}

static u32 lbe_delay_us(struct sock *sk, struct lbe_flow *f, u64 now_us, u32 rtt_us,
			const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lbe_owd_ack ack = {
		.now_us = now_us,
		.tsval = tp->rx_opt.rcv_tsval,
		.rtt_us = rtt_us,
		.min_rtt_us = min(READ_ONCE(f->shared->law.base_us), rtt_us),
		.has_tsval = tp->rx_opt.saw_tstamp,
	}, back;

	if (!rtt_us)
		return 0;
	back = ack;
	back.min_rtt_us = min(tcp_min_rtt(tp), rtt_us);
	f->behind = lbe_clock_back(&f->owd, &back, f->behind);
	if (f->behind)
		return 0;
	return lbe_owd_update(&f->owd, &ack);
}

static void lbe_control(struct sock *sk, const struct rate_sample *rs)
{
	struct lbe_flow *f = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct lbe_path_ack ack;
	struct lbe_path *p;
	u32 rtt_us;
	u8 state;

	if (!lbe_on_path(sk, f)) {
		lbe_set_window(tp, 2);
		return;
	}
	p = &f->shared->law;
	ack.now_us = div_u64(tp->tcp_clock_cache, NSEC_PER_USEC);
	rtt_us = min_t(u32, lbe_rtt_us(sk, f, rs), LBE_PATH_RTT_MAX_US);
	ack.delay_us = lbe_delay_us(sk, f, ack.now_us, rtt_us, rs);
	ack.rtt_us = rtt_us ?: (u32)clamp_t(s32, rs->rtt_us, 1, LBE_PATH_RTT_MAX_US);
	ack.acked_pkts = rs->acked_sacked;
	/* The receiver does not delay the ACK of a packet that comes after a gap. */
	ack.alone_us = ack.acked_pkts < 2 && !tp->sacked_out ? (u32)ack.now_us - f->acked_us : 0;
	f->acked_us = (u32)ack.now_us;
	ack.acked_bytes = rs->acked_sacked * tp->mss_cache;
	ack.lost_bytes = max(rs->losses, 0) * tp->mss_cache;
	ack.limited = rs->is_app_limited;
	ack.small = ack.acked_pkts < 2 &&
		    (u16)(tp->bytes_acked - f->bytes_acked) < tp->mss_cache;
	f->bytes_acked = tp->bytes_acked;
	ack.marked = (u16)tp->delivered_ce != f->delivered_ce;
	f->delivered_ce = tp->delivered_ce;
	/* The device does not drop everything (lbe_probe_timer()). */
	if (ack.acked_pkts)
		inet_csk(sk)->icsk_probes_tstamp = 0;
	if (f->yielding)
		lbe_counters_ack(sk, true, true, ack.acked_bytes);
	spin_lock_bh(&f->shared->lock);
	/* An ACK on another CPU may have a later time, and have taken the lock before. */
	ack.now_us = max(ack.now_us, p->now_us);
	if (lbe_path_maybe_delayed(p, &ack))
		ack.delay_us = 0;
	if (ack.delay_us && lbe_path_contradicts(p, &f->view, &ack)) {
		trace_lbe_split(sk, p, ack.delay_us, ack.rtt_us);
		lbe_turn_hurry(f->shared, f);
		spin_unlock_bh(&f->shared->lock);
		lbe_leave(sk, f);
		if (lbe_join(sk, f, true))
			lbe_gate(sk);
		else
			lbe_set_window(tp, 2);
		return;
	}
	state = p->state;
	/* Packets of other traffic are taken to be as large as the largest of this path's flows. */
	p->mss = max(tp->mss_cache, p->mss - p->mss / LBE_MSS_FADE);
	lbe_account(p, f, lbe_in_flight(tp));
	lbe_path_ack(p, &ack);
	WRITE_ONCE(f->rate, (u32)min_t(u64, p->rate, U32_MAX));
	WRITE_ONCE(f->base_us, p->base_us);
	trace_lbe_ack(sk, p, ack.delay_us, ack.rtt_us);
	if (state != p->state)
		trace_lbe_state(sk, p, ack.delay_us, ack.rtt_us);
	spin_unlock_bh(&f->shared->lock);
	lbe_gate(sk);
}

LBE_DEFINE_CONG_CONTROL(lbe_cong_control, lbe_control)

static void lbe_init(struct sock *sk)
{
	struct lbe_flow *f = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	BUILD_BUG_ON(sizeof(*f) > ICSK_CA_PRIV_SIZE);
	memset(f, 0, sizeof(*f));
	f->on = 1;
	lbe_counters_join(sk);
	/* During the handshake neither the round trip nor the size of packets is known: the flow
	 * joins its path later, when it has data. Otherwise it joins now, before lbe_mark_set()
	 * drops the route, by which the path is found.
	 */
	if (sk->sk_state != TCP_SYN_SENT)
		lbe_join(sk, f, false);
	f->delivered_ce = tp->delivered_ce;
	f->bytes_acked = tp->bytes_acked;
	lbe_pacing_begin(sk);
	if (READ_ONCE(mark))
		f->mark = lbe_mark_set(sk);
}

static void lbe_release(struct sock *sk)
{
	struct lbe_flow *f = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!f->on)
		return;
	f->on = 0;
	lbe_counters_leave(sk, f->yielding);
	lbe_mark_clear(sk, f->mark);
	if (f->shared)
		lbe_leave(sk, f);
	/* Without a grant the window is wide: the next control starts from what is in flight. */
	lbe_set_window(tp, max_t(u32, tcp_packets_in_flight(tp), TCP_INIT_CWND));
	lbe_rest_cancel(sk);
	lbe_pacing_end(sk);
	if (f->claimed)
		WRITE_ONCE(sk->sk_pacing_status, SK_PACING_FQ);
	WRITE_ONCE(sk->sk_pacing_rate, READ_ONCE(sk->sk_max_pacing_rate));
}

static u32 lbe_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 lbe_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

/* On a retransmission time-out, the packet that TCP sends now must not carry the end of a rest as
 * its departure time. And the packets in flight have become lost, which is accounted for here,
 * since the gate may not be called again if there is no more to send.
 */
static void lbe_set_state(struct sock *sk, u8 new_state)
{
	struct lbe_flow *f = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state != TCP_CA_Loss)
		return;
	tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tcp_clock_ns());
	if (!f->shared)
		return;
	spin_lock_bh(&f->shared->lock);
	f->shared->law.timed_out = true;
	lbe_account(&f->shared->law, f, lbe_in_flight(tp));
	spin_unlock_bh(&f->shared->lock);
}

/* In BBR's fields; bw is the rate of the whole path. This is called without the socket's lock, so
 * it reads the flow only: the path may be freed at any time.
 */
static size_t lbe_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct lbe_flow *f = inet_csk_ca(sk);

	return lbe_bbr_rate(sk, lbe_get_info, READ_ONCE(f->rate), READ_ONCE(f->base_us), ext, attr,
			    info);
}

static struct tcp_congestion_ops lbe_ops __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "lbe",
	.owner		= THIS_MODULE,
	.init		= lbe_init,
	.release	= lbe_release,
	.ssthresh	= lbe_ssthresh,
	.undo_cwnd	= lbe_undo_cwnd,
	.set_state	= lbe_set_state,
	LBE_CONG_CONTROL(lbe_cong_control),
	.min_tso_segs	= lbe_min_tso_segs,
	.get_info	= lbe_get_info,
};

static int __init lbe_module_init(void)
{
	int err = lbe_paths_register();

	if (err)
		return err;
	err = lbe_weights_register();
	if (err)
		goto err_paths;
	err = register_pernet_subsys(&lbe_counters_ops);
	if (err)
		goto err_weights;
	err = tcp_register_congestion_control(&lbe_ops);
	if (err)
		goto err_counters;
	return 0;

err_counters:
	unregister_pernet_subsys(&lbe_counters_ops);
err_weights:
	lbe_weights_unregister();
err_paths:
	lbe_paths_unregister();
	return err;
}

static void __exit lbe_module_exit(void)
{
	tcp_unregister_congestion_control(&lbe_ops);
	unregister_pernet_subsys(&lbe_counters_ops);
	lbe_weights_unregister();
	lbe_paths_unregister();
}

module_init(lbe_module_init);
module_exit(lbe_module_exit);

MODULE_AUTHOR("LBE transport project");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_DESCRIPTION("lbe: TCP congestion control for background traffic, one rate for all flows of a path");
