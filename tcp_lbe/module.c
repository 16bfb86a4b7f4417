// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_lbe: congestion control "lbe".
 *
 * The law, its states and its constants are in include/lbe/path.h; the paths that flows
 * share are kept by paths.c. Here is what ties them to TCP:
 *
 *	each ACK	cong_control: delay, bytes, marks -> path; then the gate
 *	before sending	min_tso_segs: the gate
 *
 * The gate asks the path for a slot. If it is granted, the window is what is in flight
 * plus the grant. If not, the next packet's time of departure is put off, as pacing does
 * it, by 100 ms at most: then the gate is asked again. So a rest is many short ones and
 * never looks like a peer that is stuck: with nothing in flight TCP takes a rest for a
 * closed window, and its probe of that would go past pacing with a time stamp of the
 * future. The probe's timer is therefore stopped where the window is open, and only there.
 *
 * Loss is no congestion here. TCP finds and repairs it as ever; retransmissions go by
 * the same slots. What is lost is not in flight, so a grant follows it up.
 *
 * Pacing is always TCP's own: a device with sch_fq then gets packets that are due. sch_fq
 * claims the pacing of each packet that it queues, and TCP then arms no timer; so the gate
 * takes the pacing back and arms the timer for the next slot itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "paths.h"

#define LBE_COUNTERS_FILE		"lbe_lbe"
#define LBE_COUNTERS_MORE(seq, net)	lbe_paths_totals(seq, net)
#include <lbe/counters.h>
#include <lbe/mark.h>
#include <lbe/owd.h>
#include <lbe/sender.h>

#define CREATE_TRACE_POINTS
#include "lbe_trace.h"

/* A rest is cut into pieces no longer than this, ns. Double it: flows that another one's
 * ACK would free come as much later.
 */
#define LBE_SLICE_NS	(100 * NSEC_PER_MSEC)

/* Where our own device is the bottleneck it is looked at once in a quarter of a packet's time,
 * and no more often than this, ns: below what a driver's ring holds, so that it does not run
 * dry. Double it: some of a fast device is left unused; halve it: twice the timers.
 */
#define LBE_DEVICE_POLL_NS	(100 * NSEC_PER_USEC)

/**
 * struct lbe_flow - what a socket has of its own; written under its lock
 * @shared: its path; NULL: before init, after release, or no memory for one
 * @owd: forward delay
 * @view: how it differs from what the others of the path meet
 * @due_ns: its slot, or since when it has the grant
 * @capped_ns: no slot before, by the application's SO_MAX_PACING_RATE
 * @acked_us: latest ACK
 * @rate: of the path, as `ss` shows it, bytes a second
 * @base_us: of the path, as `ss` shows it
 * @in_flight: its part of the path's bytes in flight
 * @epoch: of the path when it took its slot
 * @sent_mark: data_segs_out when it got the grant; differences alone count: it wraps
 * @delivered_ce: the socket's, at the latest ACK; the same
 * @grant: packets granted since then
 * @mark: what of the LE mark is ours (LBE_MARK_*)
 * @has_slot: @due_ns is a slot
 * @waiting: it is among the path's waiting flows
 * @claimed: sch_fq has claimed the pacing of a packet since init
 * @resends: what was lost in a silence or at the end of START is still to be sent again
 * @on: between init and release, and so among the counters' flows
 * @yielding: as the counters have it
 */
struct lbe_flow {
	struct lbe_shared *shared;
	struct lbe_owd owd;
	struct lbe_view view;
	u64 due_ns;
	u64 capped_ns;
	u64 acked_us;
	u64 rate;
	u32 base_us;
	u32 in_flight;
	u32 epoch;
	u32 sent_mark;
	u32 delivered_ce;
	u16 grant;
	u8 mark;
	u8 has_slot:1,
	   waiting:1,
	   claimed:1,
	   resends:1,
	   on:1,
	   yielding:1;
};

LBE_MARK_PARAM();

/* For the counters a flow gives way while it has data and its path is not in use. */
static void lbe_count(const struct sock *sk, struct lbe_flow *f, bool yields)
{
	lbe_counters_ack(sk, f->yielding, yields, 0);
	f->yielding = yields;
}

/* The path */

/* Its slot is taken, or of no use. */
static void lbe_slot_over(struct lbe_path *p, struct lbe_flow *f)
{
	if (f->waiting && f->epoch == p->epoch && p->waiting)
		p->waiting--;
	f->waiting = 0;
	f->has_slot = 0;
}

/* It does not take its slot: the next flow that asks gets it. */
static void lbe_slot_free(struct lbe_path *p, struct lbe_flow *f)
{
	if (f->has_slot)
		lbe_path_give_back(p, f->epoch, f->due_ns);
	lbe_slot_over(p, f);
}

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
	spin_lock_bh(&f->shared->lock);
	lbe_path_join(p, now_us);
	f->epoch = p->epoch;
	spin_unlock_bh(&f->shared->lock);
	f->grant = 0;
	f->view = (struct lbe_view) {};
	return true;
}

static void lbe_leave(struct sock *sk, struct lbe_flow *f)
{
	struct lbe_path *p = &f->shared->law;

	spin_lock_bh(&f->shared->lock);
	lbe_account(p, f, 0);
	lbe_slot_free(p, f);
	p->flows--;
	spin_unlock_bh(&f->shared->lock);
	lbe_shared_put(sk, f->shared);
	f->shared = NULL;
}

/* Is it on a path, and the one of the device that it leaves by? */
static bool lbe_on_path(struct sock *sk, struct lbe_flow *f)
{
	int ifindex = lbe_shared_device(sk);

	if (f->shared && ifindex && ifindex != f->shared->ifindex)
		lbe_leave(sk, f);
	return f->shared || (f->on && lbe_join(sk, f, false));
}

/* Sending */

/* Is there anything that the peer lets us send? */
static bool lbe_has_data(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb = tcp_send_head(sk);

	if (tp->lost_out > tp->retrans_out)
		return true;
	return skb && !after(min(TCP_SKB_CB(skb)->end_seq,
				 TCP_SKB_CB(skb)->seq + tp->mss_cache), tcp_wnd_end(tp));
}

/* Does a packet of anybody wait at our own device? */
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

/* What the application allows by SO_MAX_PACING_RATE, bytes a second; 0: any rate */
static u64 lbe_cap(const struct sock *sk)
{
	unsigned long rate = READ_ONCE(sk->sk_max_pacing_rate);

	return rate == ~0UL ? 0 : rate;
}

/* Packets that may go now; 0: none, and *wake_ns says when to ask again. */
static u32 lbe_may_send(struct sock *sk, struct lbe_flow *f, u64 now_ns, u64 *wake_ns)
{
	struct lbe_path *p = &f->shared->law;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 sent = tp->data_segs_out - f->sent_mark;
	u32 in_flight = tcp_packets_in_flight(tp) * tp->mss_cache;
	u64 slot_ns, cap = lbe_cap(sk);
	u32 burst, bytes;
	bool mine;

	lbe_account(p, f, in_flight);
	lbe_path_time(p, div_u64(now_ns, NSEC_PER_USEC));
	if (f->epoch != p->epoch) {
		lbe_slot_over(p, f);
		f->epoch = p->epoch;
		f->grant = 0;
	}
	if (f->grant > sent) {
		/* Not taken for a packet's time: our own device holds us up. */
		if (now_ns - f->due_ns > lbe_path_pkt_us(p) * 1000ULL)
			p->train.throttled = true;
		return f->grant - sent;
	}
	f->grant = 0;
	if (cap && now_ns < f->capped_ns) {
		lbe_slot_over(p, f);
		*wake_ns = f->capped_ns;
		return 0;
	}
	*wake_ns = max(f->due_ns, p->free_ns);
	if (f->has_slot && now_ns < *wake_ns)
		return 0;
	burst = lbe_path_burst_pkts(p);
	if (cap)
		burst = (u32)clamp_t(u64, div_u64(cap >> 10, tp->mss_cache), 1, burst);
	/* The receiver holds the ACK of an odd one until the next or a timer. */
	if (burst == 2 && tp->packets_out & 1)
		burst++;
	bytes = burst * tp->mss_cache;
	slot_ns = lbe_path_slot_ns(p, bytes, tp->data_segs_out * 0x9e3779b1 >> 8);
	/* What a policer has dropped by the hundred is not repaired pair by pair. */
	if (p->state == LBE_FLOOR && p->reason == LBE_HEAVY_LOSS && tp->lost_out > tp->retrans_out)
		slot_ns = min(slot_ns, div64_u64(bytes * 16000000000ULL, p->mu));
	if (!f->has_slot) {
		*wake_ns = lbe_path_book_after(p, now_ns, slot_ns);
		if (*wake_ns)
			return 0;
		f->due_ns = lbe_path_reserve(p, now_ns, slot_ns);
		f->has_slot = 1;
	}
	*wake_ns = max(f->due_ns, p->free_ns);
	if (now_ns < *wake_ns)
		return 0;
	/* Data, that is: TCP counts a pure ACK as 2 bytes, and netem keeps those. */
	mine = sk_wmem_alloc_get(sk) >= (int)SKB_TRUESIZE(1);
	if (lbe_path_device_busy(p, mine, (mine || p->local) && lbe_device_waits(sk))) {
		*wake_ns = now_ns + max_t(u64, lbe_path_pkt_us(p) * 250ULL, LBE_DEVICE_POLL_NS);
		return 0;
	}
	if (p->in_flight && p->in_flight + bytes > lbe_path_cap(p, bytes)) {
		if (!f->waiting) {
			f->waiting = 1;
			p->waiting++;
		}
		*wake_ns = now_ns + 2 * NSEC_PER_MSEC;
		return 0;
	}
	lbe_slot_over(p, f);
	lbe_path_sent(p, now_ns, slot_ns, bytes);
	f->due_ns = now_ns;
	f->grant = burst;
	f->sent_mark = tp->data_segs_out;
	lbe_account(p, f, in_flight + bytes);
	if (cap)
		f->capped_ns = max(f->capped_ns, lbe_path_late_ns(now_ns, U64_MAX)) +
			       div64_u64((u64)bytes * NSEC_PER_SEC, cap);
	*wake_ns = p->free_ns;
	return burst;
}

/* TCP's pacing timer is armed once: one that is later than we want is in the way. */
static void lbe_wake_by(struct sock *sk, u64 wake_ns)
{
	struct hrtimer *timer = &tcp_sk(sk)->pacing_timer;

	if (hrtimer_is_queued(timer) && ktime_to_ns(hrtimer_get_expires(timer)) > (s64)wake_ns &&
	    hrtimer_try_to_cancel(timer) == 1)
		__sock_put(sk);
}

/* What TCP does itself unless sch_fq has claimed the pacing: the timer holds the socket. */
static void lbe_wake_at(struct sock *sk, u64 wake_ns)
{
	struct hrtimer *timer = &tcp_sk(sk)->pacing_timer;

	if (hrtimer_is_queued(timer))
		return;
	hrtimer_start(timer, ns_to_ktime(wake_ns), HRTIMER_MODE_ABS_PINNED_SOFT);
	sock_hold(sk);
}

/* A window that TCP takes, whatever a peer that lies makes of the packets in flight. */
static void lbe_set_window(struct tcp_sock *tp, u32 pkts)
{
	tcp_snd_cwnd_set(tp, clamp_t(u32, pkts, 1, min_t(u32, tp->snd_cwnd_clamp, S32_MAX)));
}

/* Let TCP send what the path's schedule allows now, or have it ask again. */
static u32 lbe_gate(struct sock *sk)
{
	struct lbe_flow *f = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now_ns = tp->tcp_clock_cache, wake_ns = 0, wide_bytes;
	u32 in_flight = tcp_packets_in_flight(tp);
	struct lbe_path *p;
	u32 pkts, wide;
	u8 state;

	if (!f->shared && !(f->on && lbe_join(sk, f, false)))
		return 1;
	p = &f->shared->law;
	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_NEEDED) {
		f->claimed |= READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ;
		WRITE_ONCE(sk->sk_pacing_status, SK_PACING_NEEDED);
	}
	spin_lock_bh(&f->shared->lock);
	if (!lbe_has_data(sk)) {
		lbe_account(p, f, in_flight * tp->mss_cache);
		lbe_slot_free(p, f);
		spin_unlock_bh(&f->shared->lock);
		lbe_count(sk, f, false);
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, now_ns);
		return 1;
	}
	state = p->state;
	pkts = lbe_may_send(sk, f, now_ns, &wake_ns);
	if (state != p->state)
		trace_lbe_state(sk, p, 0, 0);
	state = p->state;
	wide_bytes = pkts ? 0 : lbe_path_bdp(p->rate, 2 * p->rtt_us);
	spin_unlock_bh(&f->shared->lock);
	lbe_count(sk, f, state == LBE_FLOOR || state == LBE_PROBE);
	if (pkts) {
		/* More than 1 ms ago, so that TCP does not wait for more to send. */
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, now_ns - 2 * NSEC_PER_MSEC);
		lbe_set_window(tp, in_flight + pkts);
		lbe_wake_by(sk, now_ns);
		/* Nor does TCP's own pacing wake us before its first ten segments have gone. */
		if (f->claimed || tp->data_segs_out < TCP_INIT_CWND)
			lbe_wake_at(sk, max(wake_ns, now_ns + NSEC_PER_USEC));
	} else {
		u64 slice_ns = min_t(u64, LBE_SLICE_NS,
				     jiffies_to_nsecs(inet_csk(sk)->icsk_rto) / 2);

		tp->tcp_wstamp_ns = min(wake_ns, now_ns + slice_ns);
		lbe_wake_by(sk, tp->tcp_wstamp_ns);
		wide = (u32)min_t(u64, div_u64(wide_bytes, tp->mss_cache) + 4, S32_MAX);
		lbe_set_window(tp, max(wide, in_flight + 1));
		/* A rest is no closed window. */
		if (inet_csk(sk)->icsk_pending == ICSK_TIME_PROBE0)
			inet_csk_clear_xmit_timer(sk, ICSK_TIME_PROBE0);
	}
	return max(pkts, 1U);
}

static u32 lbe_min_tso_segs(struct sock *sk)
{
	return lbe_gate(sk);
}

/* Hearing */

/* Round trip of the latest packet that this ACK acknowledges, us; 0: not known. Of what was sent
 * again RACK knows it, if the last that was sent is the last to come; not where it is below the
 * least, for then the original was acknowledged. After a silence, and after START, which may have
 * lost a round trip's packets, it counts: they go pair by pair, and nothing else could tell that
 * the path is idle. Elsewhere it does not: reordering makes it shorter, and when a few packets
 * were lost others have just slowed down.
 */
static u32 lbe_rtt_us(const struct sock *sk, struct lbe_flow *f, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u8 reason = READ_ONCE(f->shared->law.reason);

	f->resends = tp->lost_out &&
		     (f->resends || reason == LBE_SILENCE || reason == LBE_QUEUE_FOUND);
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
	};
	u64 last_us = f->acked_us;

	f->acked_us = now_us;
	if (!rtt_us)
		return 0;
	/* A lone packet's ACK may have been held. */
	if (rs->acked_sacked < 2 && !tp->sacked_out &&
	    now_us - last_us > LBE_DELACK_US &&
	    !(READ_ONCE(f->shared->law.state) == LBE_FLOOR && READ_ONCE(f->shared->law.prompt)))
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
	u64 rate;
	u8 state;

	if (!lbe_on_path(sk, f)) {
		lbe_set_window(tp, 2);
		return;
	}
	p = &f->shared->law;
	ack.now_us = div_u64(tp->tcp_clock_cache, NSEC_PER_USEC);
	rtt_us = lbe_rtt_us(sk, f, rs);
	ack.delay_us = lbe_delay_us(sk, f, ack.now_us, rtt_us, rs);
	ack.rtt_us = rtt_us ?: max_t(s32, rs->rtt_us, 1);
	ack.acked_pkts = rs->acked_sacked;
	ack.acked_bytes = rs->acked_sacked * tp->mss_cache;
	ack.lost_bytes = max(rs->losses, 0) * tp->mss_cache;
	ack.limited = rs->is_app_limited;
	ack.marked = tp->delivered_ce != f->delivered_ce;
	f->delivered_ce = tp->delivered_ce;
	if (f->yielding)
		lbe_counters_ack(sk, true, true, ack.acked_bytes);
	spin_lock_bh(&f->shared->lock);
	/* Another CPU's ACK may be later than this one, and was first. */
	ack.now_us = max(ack.now_us, p->now_us);
	if (ack.delay_us && lbe_path_contradicts(p, &f->view, &ack)) {
		trace_lbe_split(sk, p, ack.delay_us, ack.rtt_us);
		spin_unlock_bh(&f->shared->lock);
		lbe_leave(sk, f);
		if (lbe_join(sk, f, true))
			lbe_gate(sk);
		else
			lbe_set_window(tp, 2);
		return;
	}
	state = p->state;
	/* Others' packets are like the largest of ours, until the path's MTU falls. */
	p->mss = max(tp->mss_cache, p->mss - p->mss / 256);
	lbe_account(p, f, tcp_packets_in_flight(tp) * tp->mss_cache);
	lbe_path_ack(p, &ack);
	WRITE_ONCE(f->rate, p->rate);
	WRITE_ONCE(f->base_us, p->base_us);
	trace_lbe_ack(sk, p, ack.delay_us, ack.rtt_us);
	if (state != p->state)
		trace_lbe_state(sk, p, ack.delay_us, ack.rtt_us);
	spin_unlock_bh(&f->shared->lock);
	/* Above what the path grants: it only spaces the packets of one grant. Far enough above
	 * that the receiver acknowledges them together.
	 */
	rate = max(4 * max(READ_ONCE(p->rate), READ_ONCE(p->mu)),
		   (u64)tp->mss_cache * (4 * USEC_PER_SEC / LBE_DELACK_US));
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
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
	/* Before the handshake neither its round trip nor the size of its packets is known: it
	 * joins when it has data. The mark drops the route, by which the path is found.
	 */
	if (sk->sk_state != TCP_SYN_SENT)
		lbe_join(sk, f, false);
	f->delivered_ce = tp->delivered_ce;
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
	/* A window without a grant is wide. The next control may start from what is out. */
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

/* TCP times out: what it sends now is not to bear the end of a rest as its time; and what was in
 * flight is lost, which the gate may never be asked about again if there is no more to send.
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
	lbe_account(&f->shared->law, f, tcp_packets_in_flight(tp) * tp->mss_cache);
	spin_unlock_bh(&f->shared->lock);
}

/* In BBR's words: bw is the rate of the whole path. Read without a lock, and so from
 * the flow alone: its path may go at any time.
 */
static size_t lbe_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct lbe_flow *f = inet_csk_ca(sk);
	u32 base_us = READ_ONCE(f->base_us);
	u64 rate = READ_ONCE(f->rate);

	/* What was read is ours if the control still is: it changes first. */
	smp_rmb();
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops)->get_info != lbe_get_info)
		return 0;
	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->bbr, 0, sizeof(info->bbr));
	info->bbr.bbr_bw_lo = (u32)rate;
	info->bbr.bbr_bw_hi = (u32)(rate >> 32);
	info->bbr.bbr_min_rtt = base_us;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
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
	err = register_pernet_subsys(&lbe_counters_ops);
	if (err)
		goto err_paths;
	err = tcp_register_congestion_control(&lbe_ops);
	if (err)
		goto err_counters;
	return 0;

err_counters:
	unregister_pernet_subsys(&lbe_counters_ops);
err_paths:
	lbe_paths_unregister();
	return err;
}

static void __exit lbe_module_exit(void)
{
	tcp_unregister_congestion_control(&lbe_ops);
	unregister_pernet_subsys(&lbe_counters_ops);
	lbe_paths_unregister();
}

module_init(lbe_module_init);
module_exit(lbe_module_exit);

MODULE_AUTHOR("LBE transport project");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_DESCRIPTION("One less-than-best-effort TCP congestion control");
