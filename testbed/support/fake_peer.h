/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A TCP sender whose peer acknowledges anything at any time, for a congestion control that is
 * compiled behind fake_tcp.h. tcp_live() is the life of one connection.
 *
 * What a peer cannot choose, as TCP enforces it: a round trip is below 2^31 us, whether measured or
 * from an echoed timestamp; the least segment has 8 octets. The smoothed round trip is 8 times that
 * in 32 bits, and so may wrap.
 *
 * A control lets the window grow by the packets that an ACK acknowledges at most, as slow start
 * does, and one more. No rest is longer than 10 s, the horizon of sch_fq.
 */
#ifndef LBE_FAKE_PEER_H
#define LBE_FAKE_PEER_H

#include "fake_tcp.h"

struct peer {
	u64 usual_us;		/* between two ACKs */
	u32 rtt_us;		/* its usual round trip */
	u32 tick_us, tsval_at;	/* tick and origin of its timestamps */
	u32 acked, flight;	/* packets of an ACK; in flight after it */
	bool stamps;
};

static struct peer the_peer;

static inline u32 draw_rtt(void)
{
	u32 us = one_in(4) ? draw_u32() : (u32)draw_log(one_in(4) ? 1 << 28 : 1 << 20);

	return min_t(u32, us, S32_MAX);
}

static inline void tcp_tell_rtt(struct tcp_sock *tp, u32 rtt_us)
{
	if (!tp->srtt_us)
		tp->srtt_us = rtt_us << 3;
	else
		tp->srtt_us += rtt_us - (tp->srtt_us >> 3);
	tp->srtt_us = max(tp->srtt_us, 1U);
	tp->min_rtt_us = one_in(64) ? rtt_us : min(tp->min_rtt_us, rtt_us);
}

static inline void tcp_at(u64 us)
{
	now_us += us;
	the_sock.tp.tcp_mstamp = now_us;
	the_sock.tp.tcp_clock_cache = now_us * NSEC_PER_USEC;
}

/* A new connection with this control, or an old one to which another one was set before */
static inline void tcp_open(const struct tcp_congestion_ops *ops)
{
	static const u32 sizes[] = { 8, 36, 536, 1448, 8948, 65483 };
	struct tcp_sock *tp = tcp_sk(&the_sock);

	memset(&the_sock, 0, sizeof(the_sock));
	the_sock.icsk.icsk_ca_ops = ops;
	the_sock.icsk.icsk_rto = HZ;
	the_sock.sk_state = TCP_ESTABLISHED;
	the_sock.sk_pacing_status = (int)draw(3);
	the_sock.sk_max_pacing_rate = ~0UL;
	now_us = 1000000 + draw_log(1ULL << 50);
	tcp_at(0);
	tp->mss_cache = sizes[draw(ARRAY_SIZE(sizes))];
	tp->snd_una = draw_u32();
	tp->snd_nxt = tp->snd_una;
	tp->snd_ssthresh = one_in(4) ? 2 + (u32)draw_log(1 << 16) : TCP_INFINITE_SSTHRESH;
	tp->snd_cwnd_clamp = one_in(8) ? 2 + (u32)draw_log(1 << 16) : U32_MAX;
	tp->min_rtt_us = U32_MAX;
	tp->ecn = draw(2);
	tp->data_segs_out = one_in(2) ? 0 : (u32)draw_log(U32_MAX);
	tcp_snd_cwnd_set(tp, 1 + (u32)draw_log(one_in(8) ? 1 << 20 : 100));
	the_peer = (struct peer){ .acked = 2, .tick_us = 1000, .stamps = draw(8) };
	the_peer.rtt_us = draw_rtt();
	the_peer.usual_us = draw_log(1 << 20);
	the_peer.tsval_at = draw_u32();
	ops->init(&the_sock);
}

/* Other habits, which stay for some ACKs, so that the law can reach each of its states */
static inline void tcp_peer_changes(void)
{
	static const u32 ticks[] = { 1, 1000, 1000, 4000, 10000, 16000, 1000000, U32_MAX };
	struct tcp_sock *tp = tcp_sk(&the_sock);
	struct peer *p = &the_peer;

	switch (draw(8)) {
	case 0:
		p->usual_us = draw_log(one_in(8) ? 1 << 28 : 1 << 18);
		break;
	case 1:
		p->rtt_us = draw_rtt();
		break;
	case 2:		/* a queue comes or goes */
		p->rtt_us = min_t(u32, tp->min_rtt_us, S32_MAX / 2) +
			    (u32)draw_log(one_in(8) ? 1 << 28 : 1 << 18);
		break;
	case 3:
		p->tsval_at = draw_u32();
		break;
	case 4:
		p->tick_us = ticks[draw(ARRAY_SIZE(ticks))];
		break;
	case 5:
		p->acked = 1 + (u32)draw_log(one_in(8) ? 1 << 16 : 4);
		break;
	case 6:
		p->flight = (u32)draw_log(one_in(8) ? 1 << 16 : 8);
		break;
	case 7:
		tp->is_cwnd_limited = draw(4);
		p->stamps = draw(8);
		break;
	}
}

static inline void tcp_state(u8 state)
{
	const struct tcp_congestion_ops *ops = the_sock.icsk.icsk_ca_ops;

	if (ops->set_state)
		ops->set_state(&the_sock, state);
	the_sock.icsk.icsk_ca_state = state;
}

/* A reduction begins: of an ECN mark, of a loss, of a time-out. */
static inline void tcp_reduce(u8 state)
{
	const struct tcp_congestion_ops *ops = the_sock.icsk.icsk_ca_ops;
	struct tcp_sock *tp = tcp_sk(&the_sock);

	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = ops->ssthresh(&the_sock);
	must(tp->snd_ssthresh, "ssthresh", 0);
	if (state == TCP_CA_Loss)
		tcp_snd_cwnd_set(tp, 1);
	tcp_state(state);
}

/* Between two ACKs: losses and their ends, false ones, time-outs, idle times. */
static inline void tcp_happens(void)
{
	const struct tcp_congestion_ops *ops = the_sock.icsk.icsk_ca_ops;
	struct tcp_sock *tp = tcp_sk(&the_sock);
	u8 state = the_sock.icsk.icsk_ca_state;

	tp->tlp_high_seq = one_in(32);
	if (state >= TCP_CA_CWR && one_in(8)) {
		if (one_in(4)) {
			tcp_snd_cwnd_set(tp, ops->undo_cwnd(&the_sock));
			tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_cwnd);
		} else if (state < TCP_CA_Loss) {
			tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
		}
		tcp_state(draw(2) ? TCP_CA_Open : TCP_CA_Disorder);
	} else if (state < TCP_CA_CWR && one_in(64)) {
		tcp_reduce(TCP_CA_CWR + (u8)draw(3));
	} else if (state < TCP_CA_CWR && one_in(16)) {
		tcp_state(draw(2) ? TCP_CA_Open : TCP_CA_Disorder);
	} else if (state == TCP_CA_Recovery && one_in(32)) {
		tcp_reduce(TCP_CA_Loss);
	}
	if (one_in(64)) {
		tcp_at(draw_us(the_peer.usual_us));
		tp->packets_out = 0;
		if (ops->cwnd_event)
			ops->cwnd_event(&the_sock, CA_EVENT_CWND_RESTART);
		if (ops->cwnd_event_tx_start)
			ops->cwnd_event_tx_start(&the_sock);
	}
}

/* An ACK comes, and TCP sends. */
static inline void tcp_acked(void)
{
	const struct tcp_congestion_ops *ops = the_sock.icsk.icsk_ca_ops;
	struct tcp_sock *tp = tcp_sk(&the_sock);
	struct ack_sample sample = { .pkts_acked = the_peer.acked };
	u8 state = the_sock.icsk.icsk_ca_state;
	u32 cwnd, rtt_us;

	tcp_at(one_in(32) ? draw_us(the_peer.usual_us) : draw(the_peer.usual_us + 1));
	rtt_us = the_peer.rtt_us + (u32)draw_log(1000);
	rtt_us = min_t(u32, rtt_us, S32_MAX);
	sample.rtt_us = one_in(16) ? -1 : (s32)(one_in(16) ? draw_rtt() : rtt_us);
	if (sample.rtt_us >= 0)
		tcp_tell_rtt(tp, (u32)sample.rtt_us);
	sample.in_flight = one_in(4) ? draw_u32() : tp->packets_out * tp->mss_cache;
	tp->rx_opt.saw_tstamp = the_peer.stamps;
	tp->rx_opt.rcv_tsval = one_in(16) ? draw_u32() :
			       the_peer.tsval_at + (u32)div_u64(now_us, the_peer.tick_us);
	tp->rate_delivered = one_in(8) ? draw_u32() : sample.pkts_acked;
	tp->rate_interval_us = one_in(8) ? draw_u32() : (u32)draw_log(1 << 20);
	tp->packets_out = the_peer.flight;
	tp->max_packets_out = the_peer.flight + the_peer.acked;
	tp->snd_una += sample.pkts_acked * tp->mss_cache;
	tp->snd_nxt = tp->snd_una + tp->packets_out * tp->mss_cache;
	if (ops->in_ack_event)
		ops->in_ack_event(&the_sock, one_in(16) ? CA_ACK_ECE : 0);
	ops->pkts_acked(&the_sock, &sample);
	cwnd = tp->snd_cwnd;
	if (state < TCP_CA_CWR || state == TCP_CA_Loss) {
		ops->cong_avoid(&the_sock, tp->snd_una, sample.pkts_acked);
		must(tp->snd_cwnd <= max((u64)cwnd + sample.pkts_acked + 1, 2ULL),
		     "a growth of the window, packets", tp->snd_cwnd - cwnd);
	} else {
		tcp_snd_cwnd_set(tp, 1 + (u32)draw(cwnd));
	}
	must(tp->snd_ssthresh, "ssthresh", 0);
	must(tp->tcp_wstamp_ns < tp->tcp_clock_cache + 10000000000ULL, "a rest, ns",
	     tp->tcp_wstamp_ns - tp->tcp_clock_cache);
	tp->lsndtime = tcp_jiffies32;
	tp->data_segs_out++;
	if (ops->min_tso_segs)
		ops->min_tso_segs(&the_sock);
}

/* The whole life of a connection. @state: number of the law's state, for the counts. */
static inline void tcp_live(const struct tcp_congestion_ops *ops, int acks,
			    unsigned int (*state)(const struct sock *sk))
{
	union tcp_cc_info info;
	int attr;

	tcp_open(ops);
	while (acks--) {
		if (one_in(8))
			tcp_peer_changes();
		step(state(&the_sock));
		tcp_happens();
		tcp_acked();
		if (one_in(16))
			ops->get_info(&the_sock, ~0U, &attr, &info);
	}
	ops->release(&the_sock);
}

#endif /* LBE_FAKE_PEER_H */
