/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between the module and a controller of receive windows.
 *
 * The module calls a controller when data arrives, when a segment goes out and at times that the
 * controller has set. The controller returns where it wants the right edge of the window. It has
 * no access to a socket, a packet or a clock; the module decides what may go on the wire (edge.h).
 * A controller is one file with its state, its options, its statistics, and a struct
 * rwnd_controller that rwnd_controllers[] lists.
 *
 *	          start                                      stop, close
 *	init() ----------> on_data() / on_ack() / on_timer() ----------> leave()
 *	                        |  each fills struct rwnd_want
 *	                        v
 *	     the edge of the next segment; when on_timer() comes; an ACK now
 *
 * Locks: every call is made under the flow's lock, and under the path's lock too
 * if the controller has state there (path_bytes). A controller takes no lock and
 * must not sleep. Calls come in softirq or process context.
 */
#ifndef VULTURE_CONTROLLER_H
#define VULTURE_CONTROLLER_H

#include <lbe/arith.h>

#include "uapi/vulture.h"

/* Limits of the options and statistics of one controller; attribute 0 is not used. */
#define RWND_OPTIONS_MAX	32
#define RWND_STATS_MAX		48

/* What is known about a connection when control begins. */
struct rwnd_start {
	u64 now_us;
	const u32 *options;	/* by attribute; valid and constant until change() or leave() */
	void *path;		/* the path's state, or NULL without path_bytes; valid until
				 * leave()
				 */
	u32 mss_bytes;		/* TCP's estimate of the peer's segment size */
	u32 min_rtt_us;		/* least round trip that TCP has measured; 0 = none */
	u32 ack_seq;		/* next octet that TCP expects, as last acknowledged */
	u32 edge_seq;		/* right edge that TCP has advertised so far */
	u32 unit_bytes;		/* the window's unit, 1 << window scale */
	bool fresh;		/* no data has arrived yet: the connection begins now */
};

/* Kinds of arrivals, as far as the receiver can tell (RFC 9840 section 4.3). */
enum rwnd_arrival {
	RWND_NEXT,		/* begins where the furthest data ended */
	RWND_HOLE,		/* begins beyond it: the data in between is late or lost */
	RWND_RETRANSMITTED,	/* begins before it and was sent later (TSval) */
	RWND_REORDERED,		/* begins before it and was not sent later: late, a
				 * duplicate, or a retransmission within one tick of the
				 * peer's clock
				 */
};

/* One arrival: a segment with data, or a GRO aggregate of several. */
struct rwnd_data {
	u64 now_us;		/* our clock */
	u32 tsval, tsecr;	/* its timestamps, the peer's and our ticks */
	u32 seq;		/* first octet */
	u32 bytes;		/* payload, above 0 */
	u32 segs;		/* packets on the wire, above 0 */
	u32 seg_bytes;		/* payload of each but the last */
	u32 ack_seq;		/* latest acknowledgment number sent */
	u32 edge_seq;		/* furthest right edge advertised */
	enum rwnd_arrival arrival;
	bool push;		/* PSH: the sender had no more to send at that moment */
	bool ce;		/* ECN: marked "congestion experienced" */
};

/* One segment that is about to be sent. */
struct rwnd_ack {
	u64 now_us;		/* our clock */
	u32 tsval;		/* its timestamp, our ticks */
	u32 ack_seq;		/* its acknowledgment number */
	u32 acked_bytes;	/* octets that it acknowledges for the first time */
	u32 own_bytes;		/* the window that TCP itself put there */
	u32 edge_seq;		/* furthest right edge advertised before */
};

enum rwnd_kind {
	RWND_LEAVE,	/* TCP's own window */
	RWND_WINDOW,	/* @bytes from the acknowledgment number on; rounded up to the
			 * unit, never 0
			 */
	RWND_EDGE,	/* up to @edge_seq; rounded down to the unit, which may give 0.
			 * To hold the window, leave @edge_seq as it is.
			 */
};

/* What the controller wants. It keeps its value between calls, apart from @update and @wake_us.
 * In any case no window exceeds TCP's own, and without @retract the edge does not move to the left
 * except by rounding to the unit (RFC 7323 section 2.4).
 */
struct rwnd_want {
	enum rwnd_kind kind;
	u32 bytes;		/* RWND_WINDOW */
	u32 edge_seq;		/* RWND_EDGE */
	bool retract;		/* may move to the left, on segments that acknowledge data */
	bool update;		/* send an ACK now, with the window that on_ack() gives it;
				 * cleared when the ACK is sent
				 */
	u64 wake_us;		/* call on_timer() at this time of our clock; 0 = never.
				 * Cleared before the call.
				 */
};

/* Statistics that all controllers have; 0 = not known. */
struct rwnd_view {
	u32 window_bytes;	/* the window that it wants */
	u32 rtt_us;		/* latest round trip */
	u32 min_rtt_us;		/* least round trip */
	u32 queue_us;		/* present queueing delay of the path */
	u32 mss_bytes;		/* full segment of the peer */
};

struct rwnd_controller {
	const char *name;		/* as users write it */
	u32 state_bytes;		/* size of the flow's state, zeroed before init() */
	u32 path_bytes;			/* size of the path's state; 0 = none */
	/* Defaults of its options, by attribute ({ VULTURE_PAPER_DEFAULTS }); [0] is not used. The
	 * flow keeps the values as u32 values[] with the same index. The policies have the ranges.
	 */
	const u32 *initial;
	u32 n_options;			/* with [0] */
	u32 n_stats;			/* with statistic 0, which is not used */
	u32 syn_segs;			/* segments that a SYN offers at most; 0 = no limit */

	/* Return: NULL, or the condition that these values, each in its range, do not meet. */
	const char *(*clash)(const u32 *options);
	/* The path is made for its first flow; its state is zeroed. */
	void (*path_init)(void *path, u64 now_us);

	void (*init)(void *state, const struct rwnd_start *start, struct rwnd_want *want);
	/* The options have changed in place, while the flow runs. */
	void (*change)(void *state, u64 now_us, struct rwnd_want *want);
	void (*on_data)(void *state, const struct rwnd_data *data, struct rwnd_want *want);
	void (*on_ack)(void *state, const struct rwnd_ack *ack, struct rwnd_want *want);
	void (*on_timer)(void *state, u64 now_us, struct rwnd_want *want);
	/* The flow ends: remove it from the path's state. stats() may be called after this, as
	 * long as the path exists.
	 */
	void (*leave)(void *state, u64 now_us);
	/* Fill in statistics, by attribute of the controller's nest. Both are zeroed before. */
	void (*stats)(const void *state, u64 now_us, struct rwnd_view *view, u64 *stats);
};

/**
 * rwnd_wake() - have on_timer() of another flow of the same path called
 * @state: state of that flow, for which leave() was not called yet
 * @at_us: time of our clock; now if that is past
 *
 * A flow uses this when its own event gives credit to another flow. May be called within any call
 * of the controller. An earlier time that was set before stays.
 */
void rwnd_wake(void *state, u64 at_us);

extern const struct rwnd_controller rwnd_paper, rwnd_credit, rwnd_rledbat;
/* By enum vulture_controller. */
extern const struct rwnd_controller *const rwnd_controllers[];

#endif /* VULTURE_CONTROLLER_H */
