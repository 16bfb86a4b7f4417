/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For KUnit tests of congestion controls: a socket that is never connected, whose
 * ACKs are simulated by the tests, and tests that apply to every control of the suite.
 *
 * A control is selected by its name, as by an application: its module has to be loaded
 * first, with its default parameters.
 */
#ifndef LBE_KUNIT_FLOW_H
#define LBE_KUNIT_FLOW_H

#include <kunit/test.h>
#include <linux/inet_diag.h>
#include <linux/net.h>
#include <linux/sockptr.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#define MS		1000U	/* us */

/**
 * struct flow - a socket and the simulated path of its ACKs
 * @sock: to be released
 * @sk: its sock
 * @tp: @sk as a tcp_sock
 * @ops: its congestion control
 * @now_us: simulated time, us
 * @base_us: round-trip time with an empty queue, us
 * @queue_us: queueing delay, us
 * @reverse_us: delay of the ACKs, a part of @base_us, as the timestamps of the peer show it
 * @stamps: the peer sends timestamps, with a tick of 1 ms
 */
struct flow {
	struct socket *sock;
	struct sock *sk;
	struct tcp_sock *tp;
	const struct tcp_congestion_ops *ops;
	u64 now_us;
	u32 base_us;
	u32 queue_us;
	u32 reverse_us;
	bool stamps;
};

static __maybe_unused void flow_open_of(struct kunit *test, struct flow *flow, int family,
					const char *name)
{
	int err;

	memset(flow, 0, sizeof(*flow));
	flow->now_us = 1000000;
	flow->base_us = 100 * MS;
	err = sock_create_kern(&init_net, family, SOCK_STREAM, IPPROTO_TCP,
			       &flow->sock);
	KUNIT_ASSERT_EQ(test, err, 0);
	test->priv = flow->sock;
	err = flow->sock->ops->setsockopt(flow->sock, SOL_TCP, TCP_CONGESTION,
					  KERNEL_SOCKPTR((char *)name),
					  strlen(name));
	KUNIT_ASSERT_EQ_MSG(test, err, 0, "%s: is its module loaded?", name);
	flow->sk = flow->sock->sk;
	flow->tp = tcp_sk(flow->sk);
	flow->ops = inet_csk(flow->sk)->icsk_ca_ops;
	flow->tp->mss_cache = 1448;
	flow->tp->tcp_mstamp = flow->now_us;
	flow->tp->is_cwnd_limited = 1;
	tcp_snd_cwnd_set(flow->tp, 10);
	lock_sock(flow->sk);
	flow->ops->init(flow->sk);
	release_sock(flow->sk);
	inet_csk(flow->sk)->icsk_ca_initialized = 1;
}

static __maybe_unused void flow_open(struct kunit *test, struct flow *flow, const char *name)
{
	flow_open_of(test, flow, AF_INET, name);
}

/* Exit function of a suite whose tests open flows */
static __maybe_unused void flow_close(struct kunit *test)
{
	if (test->priv)
		sock_release(test->priv);
}

/* Give an ACK to the control by those callbacks that it has. */
static __maybe_unused void flow_hear(struct flow *flow, const struct ack_sample *sample)
{
	struct rate_sample rate = {
		.rtt_us = sample->rtt_us,
		.acked_sacked = sample->pkts_acked,
		.delivered = sample->pkts_acked,
	};

	if (flow->ops->pkts_acked)
		flow->ops->pkts_acked(flow->sk, sample);
	if (flow->ops->cong_control)
		LBE_CALL_CONG_CONTROL(flow->ops, flow->sk, &rate);
	else
		flow->ops->cong_avoid(flow->sk, flow->tp->snd_una, sample->pkts_acked);
}

/* One ACK of @pkts packets, @gap_us after the previous one; @flight packets remain in flight. */
static __maybe_unused void flow_ack_of(struct flow *flow, u32 pkts, u32 gap_us, u32 flight)
{
	u32 rtt_us = flow->base_us + flow->queue_us;
	struct ack_sample sample = {
		.pkts_acked = pkts,
		.rtt_us = rtt_us,
		.in_flight = tcp_snd_cwnd(flow->tp) * flow->tp->mss_cache,
	};

	flow->now_us += gap_us;
	flow->tp->tcp_mstamp = flow->now_us;
	flow->tp->tcp_clock_cache = flow->now_us * NSEC_PER_USEC;
	flow->tp->srtt_us = rtt_us << 3;
	flow->tp->rx_opt.saw_tstamp = flow->stamps;
	flow->tp->rx_opt.rcv_tsval = div_u64(flow->now_us - flow->reverse_us, MS);
	flow->tp->packets_out = flight;
	flow->tp->snd_una += pkts * flow->tp->mss_cache;
	flow->tp->snd_nxt = flow->tp->snd_una + flight * flow->tp->mss_cache;
	flow_hear(flow, &sample);
}

static __maybe_unused void flow_ack(struct flow *flow, u32 pkts, u32 gap_us)
{
	flow_ack_of(flow, pkts, gap_us, tcp_snd_cwnd(flow->tp));
}

/* A round trip: one ACK for each packet of the window */
static __maybe_unused void flow_round(struct flow *flow)
{
	u32 cwnd = tcp_snd_cwnd(flow->tp), i;

	for (i = 0; i < cwnd; i++)
		flow_ack(flow, 1, (flow->base_us + flow->queue_us) / cwnd);
}

static __maybe_unused void flow_state(struct flow *flow, u8 state)
{
	flow->ops->set_state(flow->sk, state);
	inet_csk(flow->sk)->icsk_ca_state = state;
}

/* Change the window as tcp_enter_recovery() and the end of PRR do. */
static __maybe_unused void flow_recover(struct flow *flow)
{
	flow->tp->prior_cwnd = tcp_snd_cwnd(flow->tp);
	flow->tp->snd_ssthresh = flow->ops->ssthresh(flow->sk);
	flow_state(flow, TCP_CA_Recovery);
	tcp_snd_cwnd_set(flow->tp, flow->tp->snd_ssthresh);
	flow_state(flow, TCP_CA_Open);
}

/* Change the window as tcp_enter_loss() does. */
static __maybe_unused void flow_timeout(struct flow *flow)
{
	flow->tp->prior_cwnd = tcp_snd_cwnd(flow->tp);
	flow->tp->snd_ssthresh = flow->ops->ssthresh(flow->sk);
	if (flow->ops->cwnd_event)
		flow->ops->cwnd_event(flow->sk, CA_EVENT_LOSS);
	tcp_snd_cwnd_set(flow->tp, 1);
	flow->tp->snd_cwnd_cnt = 0;
	flow_state(flow, TCP_CA_Loss);
}

/* A flow in congestion avoidance with a window of @cwnd packets */
static __maybe_unused void flow_open_at(struct kunit *test, struct flow *flow,
					const char *name, u32 cwnd)
{
	flow_open(test, flow, name);
	flow_ack(flow, 1, 1000);
	flow_recover(flow);
	tcp_snd_cwnd_set(flow->tp, cwnd);
	flow->tp->snd_ssthresh = cwnd;
}

/* How long the next packet has to wait, us. */
static __maybe_unused u32 flow_rest_us(const struct flow *flow)
{
	if (flow->tp->tcp_wstamp_ns <= flow->tp->tcp_clock_cache)
		return 0;
	return div_u64(flow->tp->tcp_wstamp_ns - flow->tp->tcp_clock_cache,
		       NSEC_PER_USEC);
}

/* Two packets that are sent after a rest and acknowledged together */
static __maybe_unused void flow_pair(struct flow *flow)
{
	flow_ack_of(flow, 2, flow->base_us + flow->queue_us + flow_rest_us(flow), 0);
}

/* The least delay that the control shows, us. */
static __maybe_unused u32 flow_base_us(const struct flow *flow)
{
	union tcp_cc_info info = {};
	int attr = 0;

	flow->ops->get_info(flow->sk, ~0U, &attr, &info);
	if (attr == INET_DIAG_DCTCPINFO)
		return info.dctcp.dctcp_alpha;
	if (attr == INET_DIAG_VEGASINFO)
		return info.vegas.tcpv_minrtt;
	return info.bbr.bbr_min_rtt;
}

/* The first packet after a pause of @seconds is sent. */
static __maybe_unused void flow_idle(struct flow *flow, u32 seconds)
{
	flow->now_us += seconds * (u64)USEC_PER_SEC;
	flow->tp->tcp_mstamp = flow->now_us;
	flow->tp->tcp_clock_cache = flow->now_us * NSEC_PER_USEC;
	flow->tp->lsndtime = tcp_jiffies32 - seconds * HZ;
	flow->tp->packets_out = 0;
	LBE_CALL_TX_START(flow->ops, flow->sk);
}

/* A flow that has lost packets at a queue of 100 ms, which is empty again */
static __maybe_unused void flow_open_learnt(struct kunit *test, struct flow *flow,
					    const char *name)
{
	flow_open_at(test, flow, name, 20);
	flow_round(flow);
	flow->queue_us = 100 * MS;
	flow_round(flow);
	flow_round(flow);
	flow_recover(flow);
	flow->queue_us = 0;
	flow_round(flow);
	tcp_snd_cwnd_set(flow->tp, 20);
	flow->tp->snd_ssthresh = 20;
	flow_round(flow);
	flow_round(flow);
}

/* ---- tests of every delay-based control ------------------------------------ */

/* Beside other traffic the window falls to 2 packets or less, however much has been sent. */
static __maybe_unused void flow_expect_yields(struct kunit *test, struct flow *flow)
{
	int i;

	flow->queue_us = 100 * MS;
	for (i = 0; i < 40 && tcp_snd_cwnd(flow->tp) > 2; i++)
		flow_round(flow);
	KUNIT_EXPECT_LE(test, tcp_snd_cwnd(flow->tp), 2U);
}

/* The flow gives way when it has sent more than half of the sequence space, and again after its
 * sequence numbers have wrapped.
 */
static __maybe_unused void flow_test_2gib(struct kunit *test, const char *name)
{
	struct flow f;
	int i;

	flow_open_learnt(test, &f, name);
	for (i = 0; i < 18; i++) {	/* 4.5 GiB: 16 round trips of 2^24 bytes each */
		int j;

		for (j = 0; j < 16; j++) {
			f.tp->snd_una += 1 << 24;
			f.tp->snd_nxt += 1 << 24;
			flow_ack(&f, 1, 100 * MS);
			tcp_snd_cwnd_set(f.tp, 20);
		}
		if (i != 8)
			continue;
		flow_expect_yields(test, &f);
		f.queue_us = 0;
		tcp_snd_cwnd_set(f.tp, 20);
		flow_round(&f);
	}
	flow_expect_yields(test, &f);
}

/* TCP Fast Open: data is acknowledged before init of the control. */
static __maybe_unused void flow_test_before_init(struct kunit *test, const char *name)
{
	struct ack_sample sample = { .pkts_acked = 1, .rtt_us = 100 * MS };
	struct flow f;

	flow_open(test, &f, name);
	if (f.ops->release)
		f.ops->release(f.sk);
	memset(inet_csk_ca(f.sk), 0, ICSK_CA_PRIV_SIZE);
	inet_csk(f.sk)->icsk_ca_initialized = 0;
	flow_hear(&f, &sample);
	KUNIT_EXPECT_NULL(test, memchr_inv(inet_csk_ca(f.sk), 0, ICSK_CA_PRIV_SIZE));
	inet_csk(f.sk)->icsk_ca_initialized = 1;
	f.ops->init(f.sk);
}

/* A delay from a timestamp of whole milliseconds, as for retransmitted data, must not become
 * the least delay.
 */
static __maybe_unused void flow_test_least_delay(struct kunit *test, const char *name)
{
	struct flow f;

	flow_open_at(test, &f, name, 20);
	flow_round(&f);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
	flow_state(&f, TCP_CA_Recovery);
	f.base_us = 99 * MS;
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
	flow_state(&f, TCP_CA_Open);
	f.tp->tlp_high_seq = 1;
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 100 * MS);
	f.tp->tlp_high_seq = 0;
	flow_ack(&f, 1, 1000);
	KUNIT_EXPECT_EQ(test, flow_base_us(&f), 99 * MS);
}

/* A retransmission time-out with a peer without timestamps: no ACK gives a delay, and slow
 * start continues up to ssthresh.
 */
static __maybe_unused void flow_test_blind_timeout(struct kunit *test, const char *name)
{
	struct ack_sample none = { .pkts_acked = 1, .rtt_us = -1 };
	struct flow f;
	int i;

	flow_open_learnt(test, &f, name);
	tcp_snd_cwnd_set(f.tp, 64);
	flow_timeout(&f);
	for (i = 0; i < 31; i++) {
		f.now_us += 10 * MS;
		f.tp->tcp_mstamp = f.now_us;
		f.tp->snd_una += f.tp->mss_cache;
		f.ops->pkts_acked(f.sk, &none);
		f.ops->cong_avoid(f.sk, f.tp->snd_una, 1);
	}
	KUNIT_EXPECT_GE(test, f.tp->snd_ssthresh, 30U);
	KUNIT_EXPECT_GE(test, tcp_snd_cwnd(f.tp), 31U);
}

/* Another control takes over no rest, no ssthresh of the least window, and no pacing. */
static __maybe_unused void flow_test_release(struct kunit *test, const char *name)
{
	struct flow f;
	int i;

	flow_open_learnt(test, &f, name);
	KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_NEEDED);
	flow_expect_yields(test, &f);
	for (i = 0; i < 20 && !flow_rest_us(&f); i++)
		flow_pair(&f);
	KUNIT_EXPECT_GT(test, flow_rest_us(&f), 0U);
	f.tp->tcp_wstamp_ns = tcp_clock_ns() + 4 * (u64)NSEC_PER_SEC;
	f.ops->release(f.sk);
	KUNIT_EXPECT_LE(test, f.tp->tcp_wstamp_ns, tcp_clock_ns());
	KUNIT_EXPECT_GT(test, f.tp->snd_ssthresh, 1000U);
	KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_NONE);
}

/* The same at any time: beside other traffic, during a rest, after it, and while the window grows
 * again.
 */
static __maybe_unused void flow_test_release_any_time(struct kunit *test, const char *name)
{
	int steps;

	for (steps = 0; steps < 48; steps++) {
		struct flow f;
		int i;

		flow_open_learnt(test, &f, name);
		f.queue_us = 100 * MS;
		for (i = 0; i < steps; i++) {
			if (i == 24)
				f.queue_us = 0;
			if (tcp_snd_cwnd(f.tp) > 2)
				flow_round(&f);
			else
				flow_pair(&f);
		}
		f.ops->release(f.sk);
		KUNIT_EXPECT_GT_MSG(test, f.tp->snd_ssthresh, 1000U, "after %d steps", steps);
		KUNIT_EXPECT_GE(test, tcp_snd_cwnd(f.tp), 1U);
		flow_close(test);
		test->priv = NULL;
	}
}

/* Beside other traffic, and then idle for some minutes: the window grows again at once. */
static __maybe_unused void flow_test_idle(struct kunit *test, const char *name)
{
	static const u32 minutes[] = { 1, 40, 80 };
	struct flow f;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(minutes); i++) {
		flow_open_learnt(test, &f, name);
		flow_expect_yields(test, &f);
		f.queue_us = 0;
		flow_idle(&f, minutes[i] * 60);
		f.tp->tcp_wstamp_ns = 0;
		for (j = 0; j < 40; j++)
			flow_round(&f);
		KUNIT_EXPECT_GE_MSG(test, tcp_snd_cwnd(f.tp), 10U, "%u minutes",
				    minutes[i]);
		flow_close(test);
		test->priv = NULL;
	}
}

/* If get_info is called without the socket's lock while another control takes over, the private
 * state of that control is not shown.
 */
static __maybe_unused void flow_test_info_of_another(struct kunit *test, const char *name)
{
	union tcp_cc_info info = {};
	struct flow f;
	int attr = 0;

	flow_open_at(test, &f, name, 20);
	KUNIT_EXPECT_GT(test, f.ops->get_info(f.sk, ~0U, &attr, &info), 0U);
	KUNIT_ASSERT_EQ(test, 0, f.sock->ops->setsockopt(f.sock, SOL_TCP, TCP_CONGESTION,
							 KERNEL_SOCKPTR((char *)"reno"),
							 strlen("reno")));
	memset(inet_csk_ca(f.sk), 0x5a, ICSK_CA_PRIV_SIZE);
	KUNIT_EXPECT_EQ(test, f.ops->get_info(f.sk, ~0U, &attr, &info), 0U);
}

/* A flow is marked by default, which alone tells it from other traffic on the sender's own device;
 * the mark is removed with the control.
 */
static __maybe_unused void flow_test_mark_by_default(struct kunit *test, const char *name)
{
	struct flow f;

	flow_open(test, &f, name);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos & ~INET_ECN_MASK, 0x04);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_FILLER);
	f.ops->release(f.sk);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos & ~INET_ECN_MASK, 0);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_BESTEFFORT);
}

/* The control is chosen in each of TCP's states, after another one that left data in the private
 * area: the window grows, the flow gives way as @expect_yields() expects it at a queue of 100 ms,
 * and nothing is left behind, as with a flow that had the control from the beginning.
 */
static __maybe_unused void
__flow_test_chosen_in_each_state(struct kunit *test, const char *name,
				 void (*expect_yields)(struct kunit *test, struct flow *flow))
{
	static const u8 states[] = {
		TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss
	};
	struct flow f;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		flow_open_at(test, &f, name, 20);
		f.ops->release(f.sk);
		f.tp->data_segs_out = 100;
		memset(inet_csk_ca(f.sk), 0x5a, ICSK_CA_PRIV_SIZE);
		f.tp->prior_cwnd = 20;
		inet_csk(f.sk)->icsk_ca_state = states[i];
		f.ops->init(f.sk);
		f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
		f.ops->undo_cwnd(f.sk);
		flow_state(&f, TCP_CA_Open);
		for (j = 0; j < 40; j++)
			flow_round(&f);
		KUNIT_EXPECT_GE_MSG(test, tcp_snd_cwnd(f.tp), 20U, "state %u", states[i]);
		f.queue_us = 100 * MS;
		flow_round(&f);
		flow_recover(&f);
		expect_yields(test, &f);
		f.ops->release(f.sk);
		f.ops->release(f.sk);
		KUNIT_EXPECT_EQ(test, f.sk->sk_pacing_status, SK_PACING_NONE);
		KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos & ~INET_ECN_MASK, 0);
		flow_close(test);
		test->priv = NULL;
	}
}

static __maybe_unused void flow_test_chosen_in_each_state(struct kunit *test, const char *name)
{
	__flow_test_chosen_in_each_state(test, name, flow_expect_yields);
}

/* Defines the tests above as the suite _prefix##_suite. */
#define FLOW_SUITE(_prefix, _name)					\
	static void _prefix##_2gib(struct kunit *test)			\
	{ flow_test_2gib(test, _name); }				\
	static void _prefix##_before_init(struct kunit *test)		\
	{ flow_test_before_init(test, _name); }				\
	static void _prefix##_least_delay(struct kunit *test)		\
	{ flow_test_least_delay(test, _name); }				\
	static void _prefix##_blind_timeout(struct kunit *test)		\
	{ flow_test_blind_timeout(test, _name); }			\
	static void _prefix##_release(struct kunit *test)		\
	{ flow_test_release(test, _name); }				\
	static void _prefix##_release_any_time(struct kunit *test)	\
	{ flow_test_release_any_time(test, _name); }			\
	static void _prefix##_idle(struct kunit *test)			\
	{ flow_test_idle(test, _name); }				\
	static void _prefix##_info_of_another(struct kunit *test)	\
	{ flow_test_info_of_another(test, _name); }			\
	static void _prefix##_mark_by_default(struct kunit *test)	\
	{ flow_test_mark_by_default(test, _name); }			\
	static void _prefix##_chosen_in_each_state(struct kunit *test)	\
	{ flow_test_chosen_in_each_state(test, _name); }		\
	static struct kunit_case _prefix##_cases[] = {			\
		KUNIT_CASE(_prefix##_2gib),				\
		KUNIT_CASE(_prefix##_before_init),			\
		KUNIT_CASE(_prefix##_least_delay),			\
		KUNIT_CASE(_prefix##_blind_timeout),			\
		KUNIT_CASE(_prefix##_release),				\
		KUNIT_CASE(_prefix##_release_any_time),			\
		KUNIT_CASE(_prefix##_idle),				\
		KUNIT_CASE(_prefix##_info_of_another),			\
		KUNIT_CASE(_prefix##_mark_by_default),			\
		KUNIT_CASE(_prefix##_chosen_in_each_state),		\
		{}							\
	};								\
	static struct kunit_suite _prefix##_suite = {			\
		.name = #_prefix,					\
		.exit = flow_close,					\
		.test_cases = _prefix##_cases,				\
	}

#endif /* LBE_KUNIT_FLOW_H */
