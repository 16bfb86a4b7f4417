/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flow of LEDBAT or LEDBAT++: its state, and the steps both take.
 *
 *	flow.c		delay samples, loss, slowdowns, slow start, ss -i
 *	host.c		capacity as all flows of a network namespace saw it
 *	ledbat.c	congestion control "ledbat"
 *	ledbatpp.c	congestion control "ledbatpp"
 *	module.c	parameters, registration
 */
#ifndef _LEDBAT_FLOW_H
#define _LEDBAT_FLOW_H

#include <linux/types.h>
#include <net/tcp.h>

#include <lbe/owd.h>
#include <lbe/slots.h>

#include "ledbat_law.h"

/* BASE_HISTORY of RFC 6817: at most so many slots of a minute. */
#define LEDBAT_HISTORY_MAX	10
#define LEDBAT_SLOT_S		60

/* How long a learnt buffer depth is believed: as long as a base delay, us. */
#define LEDBAT_DEPTH_MEMORY_US	(10ULL * 60 * USEC_PER_SEC)

/* Weight of a sample in the smoothed reverse delay: 1/8, as for srtt. Half of
 * that: less of a coarse tick's noise, and twice as late.
 */
#define LEDBAT_REVERSE_SHIFT	3

/* RFC 6817 section 2.5, LEDBAT++ 4.1: a new flow's window, packets. */
#define LEDBAT_INIT_PKTS	2U

/* Memory of the largest good window: it loses 1/64 a round trip, so half of it
 * in 44. Twice as long: a time-out finds it after twice as many bad rounds.
 */
#define LEDBAT_GOOD_SHIFT	6

enum ledbat_signal {
	LEDBAT_SIGNAL_OWD,	/* one-way delay, from the peer's timestamps */
	LEDBAT_SIGNAL_RTT,	/* round-trip time */
};

/**
 * struct ledbat_params - what the administrator sets; a flow keeps a copy
 * @target_us: target, us, 1 to LEDBAT_TARGET_MAX_US
 * @gain_q16: GAIN (ledbat) or C (ledbatpp), at most 1
 * @decrease_q16: D, at most 1; ledbat only
 * @depth_percent: part of a learnt buffer depth to aim at; 0 = do not
 * @share_permille: S of the dynamic minimum window
 * @min_pkts: MIN_CWND, packets; the fixed part of a dynamic one
 * @allowed_increase_pkts: ALLOWED_INCREASE, packets; ledbat only
 * @history_min: BASE_HISTORY, minutes, 1 to LEDBAT_HISTORY_MAX
 * @filter_samples: CURRENT_FILTER, samples
 * @rest_max_rtts: longest rest at the least window, round trips; 0 = none
 * @signal: enum ledbat_signal
 * @dynamic: the minimum window follows the capacity
 * @slowdowns: slow down now and then to read the base delay
 * @periodic: after a first slow start and after each slowdown plan the next
 * @mark: ask for DSCP LE
 * @pace: spread the packets of a window over its round trip
 */
struct ledbat_params {
	u32 target_us;
	u32 gain_q16;
	u32 decrease_q16;
	u32 depth_percent;
	u32 share_permille;
	u32 min_pkts;
	u32 allowed_increase_pkts;
	u8 history_min;
	u8 filter_samples;
	u8 rest_max_rtts;
	u8 signal;
	bool dynamic;
	bool slowdowns;
	bool periodic;
	bool mark;
	bool pace;
};

/**
 * struct ledbat - state of a flow
 *
 * Read and written under the socket lock alone.
 *
 * @params: as they were when the flow began
 * @owd: peer's tick and reverse delay
 * @base_slots: ages @base_slot
 * @base_slot: least delay of each of the last minutes, us
 * @filter: latest delay samples
 * @depth: what losses told of the buffer
 * @slowdown: slowdowns, and the mode
 * @steady: is a long delay the path's?
 * @host: capacity of the network namespace; NULL = minimum window not dynamic
 * @now_us: arrival of the latest ACK with a sample, us
 * @base_seen_us: when the queue was last (near) empty, us
 * @base_us: base delay, us
 * @queue_us: queueing delay q, us
 * @rtt_us: latest round-trip time, us
 * @aim_us: target in view of the buffer's depth, us
 * @part_q32: part of a packet that the window is larger than snd_cwnd
 * @round_end: the present round trip ends when this is acknowledged (sequence)
 * @peak_us: largest @queue_us of this and the previous round trip, us
 * @full_us: the same where the filter was full, so that no delayed ACK shows, us
 * @least_us: smallest queue of any packet of this round trip, us
 * @flight_pkts: most packets in flight in them, before an ACK took its own off
 * @sent_flight_pkts: packets in flight when the packet just ACKed was sent
 * @reverse_q3: smoothed delay of the reverse path above its least, us << 3
 * @reverse_felt_us: what of it the window has followed, us
 * @short_us: when the queue was last short of a quarter of the target, us
 * @short_delivered: packets delivered up to then
 * @hold_end: until this is acknowledged, delays are of packets sent before the
 *	window was last set anew (sequence; compared while @holds alone)
 * @holds: it is not acknowledged yet; ends with the first round trip after it
 * @rest_end: @rest_rtts changes again when more than this is acknowledged
 *	(sequence; moves along with each ACK above the least window)
 * @rest_rtts: R, rest before the next window, round trips
 * @resume_rounds: round trips for which slow start may yet go on
 * @restarted: after an idle time: TCP's window for it is yet to be lowered
 * @good_pkts: largest window of late that kept the queue below the target
 * @has_sample: @queue_us is that of the latest ACK
 * @mark: what of the LE mark is ours (LBE_MARK_*)
 */
struct ledbat {
	struct ledbat_params params;
	struct lbe_owd owd;
	struct lbe_slots base_slots;
	u32 base_slot[LEDBAT_HISTORY_MAX];
	struct ledbat_filter filter;
	struct ledbat_depth depth;
	struct ledbat_slowdown slowdown;
	struct ledbat_steady steady;
	struct ledbat_host *host;
	u64 now_us;
	u64 base_seen_us;
	u32 base_us;
	u32 queue_us;
	u32 rtt_us;
	u32 aim_us;
	u32 part_q32;
	u32 round_end;
	u32 peak_us[2];
	u32 full_us[2];
	u32 least_us;
	u32 flight_pkts[2];
	u32 sent_flight_pkts;
	u32 reverse_q3;
	u32 reverse_felt_us;
	u64 short_us;
	u32 short_delivered;
	u32 hold_end;
	bool holds;
	u32 rest_end;
	u8 rest_rtts;
	u8 resume_rounds;
	bool restarted;
	u32 good_pkts;
	bool has_sample;
	u8 mark;
};

/**
 * struct ledbat_ca - what the socket itself holds
 * @flow: state; NULL = memory was short when the flow began: it keeps to the
 *	minimum window and asks again with each ACK
 * @base_us: copy for ledbat_get_info()
 * @queue_us: likewise
 * @aim_us: likewise
 * @mode: likewise
 *
 * ledbat_get_info() runs without the socket lock, perhaps while the socket goes
 * to another congestion control that puts its own data here. It may read
 * numbers, which are then wrong once, but must not follow a pointer.
 */
struct ledbat_ca {
	struct ledbat *flow;
	u32 base_us;
	u32 queue_us;
	u32 aim_us;
	u8 mode;
};

static inline struct ledbat *ledbat_of(const struct sock *sk)
{
	return ((struct ledbat_ca *)inet_csk_ca(sk))->flow;
}

static inline u64 ledbat_now_us(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

/* Is a slowdown planned after each (LEDBAT++)? */
static inline bool ledbat_slowdown_is_periodic(const struct ledbat *f)
{
	return f->params.slowdowns && f->params.periodic;
}

/* Smoothed round-trip time, us; 0 = none measured. */
static inline u32 ledbat_srtt_us(const struct sock *sk)
{
	return tcp_sk(sk)->srtt_us >> 3;
}

/* Callbacks of both. */
void ledbat_init(struct sock *sk);
void ledbat_release(struct sock *sk);
void ledbat_pkts_acked(struct sock *sk, const struct ack_sample *sample);
u32 ledbat_min_tso_segs(struct sock *sk);
u32 ledbat_ssthresh(struct sock *sk);
void ledbat_set_state(struct sock *sk, u8 new_state);
void ledbat_cwnd_event(struct sock *sk, enum tcp_ca_event event);
size_t ledbat_get_info(struct sock *sk, u32 ext, int *attr,
		       union tcp_cc_info *info);

/* Steps of an ACK, before and after the law. */
struct ledbat *ledbat_heard(struct sock *sk, u32 acked);
u32 ledbat_before_law(struct sock *sk, struct ledbat *f, u32 acked, u32 divisor);
bool ledbat_feels_window(const struct sock *sk, const struct ledbat *f);
bool ledbat_rest(struct sock *sk, struct ledbat *f,
		 const struct ledbat_window *w, u32 floor, s64 rate_q32);
void ledbat_steer_window(struct sock *sk, struct ledbat *f,
			 const struct ledbat_window *w);

struct ledbat_host *ledbat_host_join(const struct sock *sk);
void ledbat_host_leave(struct ledbat_host *host);
void ledbat_host_delivered(struct ledbat_host *host, u32 bytes);
u32 ledbat_host_floor_pkts(struct ledbat_host *host, const struct sock *sk,
			   const struct ledbat_params *params);
int ledbat_host_register(void);
void ledbat_host_unregister(void);

struct ledbat_params ledbat_params_of(const struct sock *sk);

/* The two differ in their law alone. */
#define LEDBAT_OPS(_name)						\
struct tcp_congestion_ops _name##_ops __read_mostly = {			\
	.flags		= TCP_CONG_NON_RESTRICTED,			\
	.init		= ledbat_init,					\
	.release	= ledbat_release,				\
	.ssthresh	= ledbat_ssthresh,				\
	.cong_avoid	= _name##_cong_avoid,				\
	.set_state	= ledbat_set_state,				\
	.cwnd_event	= ledbat_cwnd_event,				\
	.pkts_acked	= ledbat_pkts_acked,				\
	.min_tso_segs	= ledbat_min_tso_segs,				\
	.undo_cwnd	= tcp_reno_undo_cwnd,				\
	.get_info	= ledbat_get_info,				\
	.owner		= THIS_MODULE,					\
	.name		= #_name,					\
}

extern struct tcp_congestion_ops ledbat_ops;
extern struct tcp_congestion_ops ledbatpp_ops;

#endif /* _LEDBAT_FLOW_H */
