/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of TCP as a congestion control of the suite sees: the fields that it reads and the
 * functions that it calls. hostc.sender() puts the module's own source behind this file, without
 * the kernel's headers. fake_peer.h has a sender whose peer acknowledges anything at any time.
 *
 * In the kernel tcp_snd_cwnd_set() warns of a window of 0 or of 2^31 packets. Here it ends the
 * test.
 */
#ifndef LBE_FAKE_TCP_H
#define LBE_FAKE_TCP_H

#include "fuzz.h"

/* The kernel, and what its build does not warn of */

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, v)	((x) = (v))
#define cmpxchg(p, old, new)						\
	({								\
		__typeof__(*(p)) was = *(p);				\
									\
		*(p) = was == (old) ? (new) : was;			\
		was;							\
	})
#define smp_rmb()		do { } while (0)
#define USEC_PER_SEC		1000000UL
#define USEC_PER_MSEC		1000UL
#define NSEC_PER_USEC		1000UL
#define HZ			250
#define __init			__attribute__((unused))
#define __exit			__attribute__((unused))
#define __read_mostly
#define __initconst
#define __maybe_unused		__attribute__((unused))
#define __stringify(x)		#x
#define THIS_MODULE		NULL
#define MODULE_PARM_DESC(...)
#define MODULE_AUTHOR(...)
#define MODULE_LICENSE(...)
#define MODULE_VERSION(...)
#define MODULE_DESCRIPTION(...)
#define MODULE_ALIAS(...)
#define module_param(...)
#define module_param_cb(...)
#define module_init(...)
#define module_exit(...)

typedef struct { s64 counter; } atomic64_t;
typedef struct { s32 counter; } atomic_t;

#define atomic_read(a)		((a)->counter)
#define atomic_add(n, a)	((a)->counter += (n))
#define atomic_inc(a)		((a)->counter++)
#define atomic_dec(a)		((a)->counter--)
#define atomic64_read(a)	((a)->counter)
#define atomic64_add(n, a)	((a)->counter += (n))
#define atomic64_inc(a)		((a)->counter++)

static inline s64 atomic64_xchg(atomic64_t *a, s64 now)
{
	s64 was = a->counter;

	a->counter = now;
	return was;
}

static inline s64 atomic64_cmpxchg(atomic64_t *a, s64 old, s64 now)
{
	return cmpxchg(&a->counter, old, now);
}

static inline u32 hash_32(u32 value, unsigned int bits)
{
	return value * 0x61C88647 >> (32 - bits);
}

/* Parameters have any value in their range. */
struct lbe_range {
	unsigned int value, least, most;
};

#define LBE_PARAM(name, initial, least, most, text) \
	static struct lbe_range name = { initial, least, most }

static inline void draw_param(struct lbe_range *p, unsigned int initial)
{
	p->value = draw(2) ? initial : p->least + (u32)draw_log(p->most - p->least);
}

struct kernel_param {
	const char *name;
};

struct kernel_param_ops {
	int (*set)(const char *val, const struct kernel_param *kp);
	int (*get)(char *buffer, const struct kernel_param *kp);
};

static inline int param_get_uint(char *buffer, const struct kernel_param *kp)
{
	return 0;
}

#define param_set_uint_minmax(val, kp, least, most)	((void)(val), (void)(kp), 0)

/* TCP */

#define ICSK_CA_PRIV_SIZE	104
#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define TCP_CONG_NON_RESTRICTED	1
#define TCP_CONG_NEEDS_ECN	2
#define CA_ACK_ECE		4
#define INET_DIAG_VEGASINFO	3
#define INET_DIAG_BBRINFO	16
#define HRTIMER_MODE_ABS_PINNED_SOFT	0

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART };

struct hrtimer {
	int unused;
};

union tcp_cc_info {
	struct {
		u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	} bbr;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct sock;

struct tcp_congestion_ops {
	u32 flags;
	const char *name;
	void *owner;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
};

#define LBE_DEFINE_TX_START(name, tx_start)
#define LBE_TX_START(name, tx_start)	.cwnd_event_tx_start = tx_start

struct tcp_sock {
	u64 tcp_mstamp, tcp_clock_cache, tcp_wstamp_ns;
	u32 snd_una, snd_nxt, snd_cwnd, snd_ssthresh, snd_cwnd_clamp, snd_cwnd_cnt, prior_cwnd;
	u32 mss_cache, srtt_us, min_rtt_us, packets_out, max_packets_out, data_segs_out, lsndtime;
	u32 rate_delivered, rate_interval_us, tlp_high_seq;
	bool is_cwnd_limited, ecn;
	struct hrtimer pacing_timer;
	struct {
		u32 rcv_tsval;
		bool saw_tstamp;
	} rx_opt;
};

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	u32 icsk_rto;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / 8];
};

struct net {
	struct {
		u32 sysctl_tcp_min_tso_segs;
	} ipv4;
};

struct sock {
	struct tcp_sock tp;
	struct inet_connection_sock icsk;
	u8 sk_state;
	int sk_pacing_status;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
};

static struct net init_net = { { 2 } };
static struct sock the_sock;
static u64 now_us;	/* TCP's clock */

#define tcp_sk(sk)			((struct tcp_sock *)&(sk)->tp)
#define inet_csk(sk)			((struct inet_connection_sock *)&(sk)->icsk)
#define inet_csk_ca(sk)			((void *)(sk)->icsk.icsk_ca_priv)
#define sock_net(sk)			(&init_net)
#define tcp_jiffies32			((u32)div_u64(now_us, USEC_PER_SEC / HZ))
#define tcp_clock_us()			(now_us)
#define tcp_clock_ns()			(now_us * NSEC_PER_USEC)
#define tcp_min_rtt(tp)			((tp)->min_rtt_us)
#define tcp_snd_cwnd(tp)		((tp)->snd_cwnd)
#define tcp_packets_in_flight(tp)	((tp)->packets_out)
#define tcp_in_slow_start(tp)		((tp)->snd_cwnd < (tp)->snd_ssthresh)
#define tcp_ecn_mode_any(tp)		((tp)->ecn)
#define INET_ECN_dontxmit(sk)		((void)(sk))
#define before(a, b)			((s32)((a) - (b)) < 0)
#define hrtimer_try_to_cancel(timer)	((void)(timer), one_in(2))
#define hrtimer_start(timer, at, mode)	((void)(timer))

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 pkts)
{
	must((s32)pkts > 0, "a window", pkts);
	tp->snd_cwnd = pkts;
}

static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->is_cwnd_limited ||
	       (tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out);
}

static inline u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 pkts = min(tp->snd_cwnd + acked, tp->snd_ssthresh), used = pkts - tp->snd_cwnd;

	tcp_snd_cwnd_set(tp, min(pkts, tp->snd_cwnd_clamp));
	return acked - used;
}

static inline void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 window, u32 acked)
{
	u32 more = tp->snd_cwnd_cnt >= window;

	tp->snd_cwnd_cnt = (more ? 0 : tp->snd_cwnd_cnt) + acked;
	more += tp->snd_cwnd_cnt / window;
	tp->snd_cwnd_cnt %= window;
	tcp_snd_cwnd_set(tp, min(tp->snd_cwnd + more, tp->snd_cwnd_clamp));
}

static inline void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_is_cwnd_limited(sk) && tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (tcp_is_cwnd_limited(sk) && acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

static inline u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 2, 2U);
}

static inline u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

/* The suite's mark, on which no law depends; its counters are the module's own. */

#define LBE_MARK_PARAM()		static bool mark = true
#define lbe_mark_set(sk)		((void)(sk), (u8)0)
#define lbe_mark_clear(sk, parts)	((void)(sk), (void)(parts))

#define __net_init
#define __net_exit
#define IS_ENABLED(option)		0
#define ENOMEM				12
#define EEXIST				17
#define seq_printf(seq, ...)		((void)(seq))
#define seq_file_single_net(seq)	((void)(seq), &init_net)
#define net_generic(net, id)		((void)(net), (void)(id), (void *)pernet)
#define proc_create_net_single(...)	(true)
#define remove_proc_entry(...)		do { } while (0)
#define register_pernet_subsys(ops)	((void)(ops), 0)
#define unregister_pernet_subsys(ops)	((void)(ops))
#define tcp_register_congestion_control(ops)	((void)(ops), 0)
#define tcp_unregister_congestion_control(ops)	((void)(ops))
#define pr_err(...)			do { } while (0)

struct seq_file;
struct pernet_operations {
	int (*init)(struct net *net);
	void (*exit)(struct net *net);
	unsigned int *id;
	size_t size;
};

static u64 pernet[16];

#endif /* LBE_FAKE_TCP_H */
