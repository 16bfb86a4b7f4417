/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent's plan: what one node sends, receives and measures.
 *
 * A plan is text with one directive on each line; '#' starts a comment.  Values
 * are plain numbers in the unit at the end of the key's name (1e6 is a number,
 * 1M is not).  An unknown word, a key given twice, a value out of range, or a
 * key that the flow's kind does not use is an error with file and line.
 * `lbe-agent --help` prints every key with its range and default, from the
 * tables in plan.c.
 *
 *   node NAME            name of the record files: <out>/<node>.send and so on
 *   zero_ns N            CLOCK_MONOTONIC at experiment time 0; 0 or absent: now
 *   end_s S              end of the run (required)
 *   sample_ms N          interval of all series
 *   out DIR              folder of the records (required)
 *   sink port=P flow=ID [key=value...]       receive and count
 *   flow id=ID kind=KIND to=ADDR port=P [key=value...]    send
 *   server port=P flow=ID [key=value...]     web server, see web.h
 *   web id=ID kind=open|session to=ADDR port=P [key=value...]   its clients
 *   queue id=ID dev=DEV [handle=M:] [parent=M:N]   qdisc to sample
 *
 * All times are relative to experiment time 0.  Rates and sizes are those of
 * the payload: the goodput of TCP, the data of a UDP datagram.
 *
 * Kinds of flow:
 *   greedy   as much as TCP can send, from start_s to stop_s
 *   bytes    bytes=N, then close; with repeat_s=T a new connection each T
 *   cbr      rate_bps; TCP in ticks of tick_ms, UDP packet by packet
 *   square   on for duty * period_s of each period_s, then off
 *   onoff    on_s on, off_s off; exp=1: exponential with these means
 *   trace    UDP, sizes and times from a file, see below
 * square and onoff send at rate_bps while on; TCP without rate_bps is greedy
 * while on.  A TCP source with a rate does not wait: data that the socket does
 * not accept yet is kept (at most backlog_ms of it) and sent when possible.
 *
 * A trace file is text with lines "seconds bytes" and '#' comments, or binary:
 * the 8 bytes "LBETRACE", then records of u64 nanoseconds, u32 bytes, packed,
 * little-endian.  Times count from start_s and do not decrease.
 *
 * A sink reads on a timer; SO_RCVLOWAT keeps its ACKs prompt (see sink.c):
 *   prompt   all available data, every read_ms and before each sample
 *   every    all available data, at each arrival (many wake-ups; for comparison)
 *   slow     rate_bps at most, every read_ms: a receiver that limits the flow
 */
#ifndef LBE_AGENT_PLAN_H
#define LBE_AGENT_PLAN_H

#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>

#include "words.h"

#define CC_NAME_LEN	16	/* TCP_CA_NAME_MAX */
#define NAME_LEN	64
#define SWITCHES_MAX	16	/* changes of congestion control per flow */

enum proto { PROTO_TCP, PROTO_UDP };
enum kind { KIND_GREEDY, KIND_BYTES, KIND_CBR, KIND_SQUARE, KIND_ONOFF,
	    KIND_TRACE };
enum sink_mode { MODE_PROMPT, MODE_EVERY, MODE_SLOW };
enum web_kind { WEB_OPEN, WEB_SESSION };
enum web_pace { PACE_SIZE, PACE_POISSON };
enum close_mode { CLOSE_AUTO, CLOSE_FIN, CLOSE_RST };

/* Socket options of senders and receivers; 0 = the kernel's default */
struct sock_opts {
	char cc[CC_NAME_LEN];
	u32 sndbuf_bytes;
	u32 rcvbuf_bytes;
	u32 maxseg_bytes;
	u32 window_bytes;	/* upper bound of the receive window */
	u32 mark;
	u32 priority;
	u32 dscp;
	u32 nodelay;
};

struct cc_switch {
	u64 at_ns;		/* experiment time */
	char cc[CC_NAME_LEN];
};

struct flow_plan {
	u32 line;		/* of the plan, for messages */
	u32 id;
	u32 kind;		/* enum kind */
	u32 proto;		/* enum proto */
	union address to;
	u32 port;
	u32 sport;		/* source port; 0 = the kernel picks */
	struct sock_opts opts;
	u64 start_ns;
	u64 stop_ns;		/* NEVER_NS = at the end of the run */
	u64 rate_bps;		/* payload; 0 = greedy */
	u64 tick_ns;		/* TCP: write interval of a source with a rate */
	u64 backlog_ns;		/* TCP: maximum backlog; 0 = no limit */
	u64 period_ns;
	double duty;
	u64 on_ns;
	u64 off_ns;
	u32 exponential;
	u64 bytes;
	u64 repeat_ns;		/* 0 = one connection */
	u64 repeat_count;	/* 0 = until stop */
	char file[PATH_MAX];
	double time_scale;	/* trace times are multiplied by this */
	u32 overhead_bytes;	/* trace sizes include this in addition to the payload */
	u32 loop_trace;
	u32 pkt_bytes;		/* UDP payload of a packet */
	u64 seed;
	u32 verify;
	u64 corrupt_at;		/* test hook: this byte is sent wrong */
	u32 close_mode;		/* enum close_mode, at stop_s */
	u32 lowat_bytes;	/* unsent bytes in the socket, TCP_NOTSENT_LOWAT */
	u32 timestamps;		/* 0 off, 1 on, 2 on without offset, 3 unchanged */
	u32 fastopen;		/* TCP: the first bytes are sent with the SYN */
	u32 may_fail;		/* errors do not change the agent's exit status */
	struct cc_switch switches[SWITCHES_MAX];
	u32 nswitches;
};

struct sink_plan {
	u32 line;
	u32 flow;
	u32 port;
	u32 proto;
	u32 mode;		/* enum sink_mode */
	u64 read_ns;
	u64 rate_bps;
	struct sock_opts opts;
	u32 lowat_bytes;	/* SO_RCVLOWAT */
	u32 verify;
	u64 seed;
};

struct server_plan {
	u32 line;
	u32 flow;		/* for its events */
	u32 port;
	struct sock_opts opts;
	u32 lowat_bytes;	/* unsent bytes in the socket, TCP_NOTSENT_LOWAT */
};

struct web_plan {
	u32 line;
	u32 id;
	u32 kind;		/* enum web_kind */
	union address to;
	u32 port;
	struct sock_opts opts;
	u64 start_ns;
	u64 stop_ns;		/* no page starts later; NEVER_NS = end of the run */
	u64 rate_bps;		/* open: offered load, payload of objects */
	u32 pace;		/* open: enum web_pace */
	u32 sessions;		/* session: concurrent users */
	u64 page_ns;		/* session: mean pause between pages */
	u64 object_ns;		/* session: mean time between requests */
	u32 objects;		/* of a page; open: maximum */
	double shape;		/* of the object sizes, Pareto II */
	double mean_bytes;
	u64 min_bytes;
	u64 max_bytes;
	u32 conns_max;		/* open connections; further objects fail */
	u64 seed;
};

struct queue_plan {
	u32 line;
	u32 id;
	char dev[IFNAMSIZ];
	u32 handle;		/* 0 = not given */
	u32 parent;		/* 0 = not given */
};

struct plan {
	const char *path;
	char node[NAME_LEN];
	char out[PATH_MAX];
	u64 zero_ns;		/* CLOCK_MONOTONIC; 0 = now */
	u64 end_ns;		/* experiment time */
	u64 sample_ns;
	struct flow_plan *flows;
	struct sink_plan *sinks;
	struct server_plan *servers;
	struct web_plan *webs;
	struct queue_plan *queues;
	u32 nflows, nsinks, nservers, nwebs, nqueues;
};

/* Returns 0, or -1 after a message with file and line on standard error. */
int plan_read(struct plan *p, const char *path);
void plan_free(struct plan *p);
void plan_help(void);		/* prints all directives and keys */

#endif
