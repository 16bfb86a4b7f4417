/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent's output: one file for each kind of record, little-endian, packed,
 * without a header; numpy.fromfile() can read it with the matching dtype.
 *
 *   <out>/<node>.send     struct rec_send    each TCP flow, each step
 *   <out>/<node>.recv     struct rec_recv    each sink, each step
 *   <out>/<node>.queue    struct rec_queue   each queue, each step
 *   <out>/<node>.web      struct rec_web     each object and page, at its end
 *   <out>/<node>.events   text: "t_ns flow event detail"
 *
 * t_ns is experiment time.  It is the nominal time of the step, unless the
 * agent was more than a millisecond late (a real host under load): then it is
 * the time at which the sample was taken.
 *
 * Events (detail is key=value words; conn counts a flow's connections):
 *   listen port             a sink is ready
 *   start conn              connect() was called
 *   connected conn us       the handshake's duration, sender
 *   accept conn peer        a connection was accepted, receiver
 *   switch conn cc          the congestion control was changed
 *   written conn bytes      the last byte was written to the socket
 *   finished conn bytes us  sender: the peer has read all and closed;
 *                           receiver: the end of the stream arrived
 *   reset conn bytes        receiver: the connection failed
 *   stop conn bytes         stop_s was reached
 *   verified conn bytes     the stream was correct
 *   corrupt conn at         its first wrong byte
 *   sent packets bytes refused   UDP, at its end: refused by the local stack
 *   received packets bytes stamped delay_ns max_delay_ns
 *            p50_delay_ns p95_delay_ns p99_delay_ns
 *                           UDP, at the end of the run; delays are one way,
 *                           delay_ns the sum over the stamped packets
 *   web pages objects failed unfinished bytes     a client, at the end
 *   served objects bytes broken open              a server, at the end
 *   close conn              the socket was closed
 *   error what text         the agent's exit status will be 1, except for a
 *                           flow with may_fail
 */
#ifndef LBE_AGENT_RECORDS_H
#define LBE_AGENT_RECORDS_H

#include "types.h"

#define PACKED	__attribute__((packed))

struct rec_send {
	u64 t_ns;
	u32 flow;
	u32 cwnd_pkts;
	u32 ssthresh_pkts;
	u32 srtt_us;
	u32 rttvar_us;
	u32 minrtt_us;
	u32 mss_bytes;
	u32 delivered_pkts;
	u32 retrans_pkts;	/* total since the start */
	u32 lost_pkts;		/* at present */
	u32 unacked_pkts;
	u32 ca_state;		/* enum tcp_ca_state */
	u64 bytes_acked;
	u64 bytes_sent;		/* including retransmissions */
	u32 cc[5];		/* union tcp_cc_info, raw; 0 if there is none */
} PACKED;

struct rec_recv {
	u64 t_ns;
	u32 flow;
	u32 reserved;		/* 0 */
	u64 bytes;		/* since the start, of all connections */
} PACKED;

struct rec_queue {
	u64 t_ns;
	u32 queue;
	u32 qlen_pkts;
	u32 backlog_bytes;
	u32 drops;
	u32 overlimits;
	u32 requeues;
	u64 sent_bytes;
	u32 sent_pkts;
	u32 marks;		/* red, codel, fq_codel; 0 for others */
} PACKED;

/* Bits of rec_web.flags */
#define WEB_SYN_RETRANS	1	/* the SYN was sent more than once */
#define WEB_FAILED	2	/* refused, reset or cut short */
#define WEB_PAGE	4	/* a page; other bits are set if any object has them */
#define WEB_UNFINISHED	8	/* not finished at the end of the run */

struct rec_web {
	u64 t_ns;		/* connect() of the object, or of a page's first one */
	u32 dur_us;		/* until the end of the stream, or of a page's last one */
	u32 bytes;		/* received */
	u32 page;		/* counts the client's pages from 0 */
	u32 objects;		/* of the page */
	u32 flow;
	u32 flags;
} PACKED;

_Static_assert(sizeof(struct rec_send) == 92, "layout is an interface");
_Static_assert(sizeof(struct rec_recv) == 24, "layout is an interface");
_Static_assert(sizeof(struct rec_queue) == 48, "layout is an interface");
_Static_assert(sizeof(struct rec_web) == 32, "layout is an interface");

enum rec_kind { REC_SEND, REC_RECV, REC_QUEUE, REC_WEB, REC_KINDS };

int records_open(const char *dir, const char *node, u64 zero_ns);
void record(enum rec_kind kind, const void *rec, size_t size);
u64 record_time(u64 nominal_ns, u64 now_ns);	/* both CLOCK_MONOTONIC */

u64 record_since_zero(u64 at_ns);		/* exact, for a start or end */

/* Writes a line to the events file, with the time of loop_now(). */
__attribute__((format(printf, 3, 4)))
void event(u32 flow, const char *name, const char *format, ...);

/* Writes an "error" event, also to standard error; the run will fail. */
__attribute__((format(printf, 2, 3)))
void event_error(u32 flow, const char *format, ...);

bool records_failed(void);	/* there was an event_error() or a write error */
int records_close(void);

#endif
