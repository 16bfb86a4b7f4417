// SPDX-License-Identifier: GPL-2.0
/* Parser of a plan, see plan.h.  The tables below are the grammar. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static const char *const proto_names[] = { "tcp", "udp", NULL };
static const char *const kind_names[] = {
	"greedy", "bytes", "cbr", "square", "onoff", "trace", NULL
};

static const char *const mode_names[] = { "prompt", "every", "slow", NULL };
static const char *const web_names[] = { "open", "session", NULL };
static const char *const pace_names[] = { "size", "poisson", NULL };
static const char *const close_names[] = { "auto", "fin", "rst", NULL };

#define MAX_S		1e6	/* eleven days: far below the limit of 64 bits of ns */
#define MAX_BPS		1e12
#define MAX_BYTES	1e15	/* exact in a double */
#define MAX_BUF		1e9

#define F(member)	offsetof(struct flow_plan, member)

/* Parses SECONDS:NAME, a change of congestion control */
static int parse_switch(const struct place *at, const struct key *k,
			char *text, void *base)
{
	static const struct key cc = { .name = "switch_s",
				       .max = CC_NAME_LEN };
	struct flow_plan *f = base;
	struct cc_switch *s = &f->switches[f->nswitches];
	char *colon = strchr(text, ':');
	double seconds;

	if (!colon)
		return words_complain(at, "%s=%s: must be SECONDS:NAME", k->name,
				text);
	if (f->nswitches == SWITCHES_MAX)
		return words_complain(at, "%s: more than %d a flow", k->name,
				SWITCHES_MAX);
	*colon = '\0';
	if (words_number(at, k, text, &seconds) ||
	    words_name(at, &cc, colon + 1, s->cc))
		return -1;
	s->at_ns = llround(seconds * NSEC_PER_SEC);
	f->nswitches++;
	return 0;
}

static const struct key flow_keys[] = {
	{ "id", T_U32, F(id), 0, 1e9, .help = "flow id, once a plan" },
	{ "kind", T_ENUM, F(kind), .names = kind_names,
	  .help = "what the source does" },
	{ "proto", T_ENUM, F(proto), .names = proto_names, .preset = "tcp",
	  .help = "transport" },
	{ "to", T_ADDR, F(to), .help = "IPv4 or IPv6 address of the sink" },
	{ "port", T_U32, F(port), 1, 65535, .help = "port of the sink" },
	{ "sport", T_U32, F(sport), 0, 65535,
	  .help = "source port; 0 = the kernel picks; default 20000+id" },
	{ "start_s", T_SEC, F(start_ns), 0, MAX_S, .help = "connect then" },
	{ "stop_s", T_SEC, F(stop_ns), 0, MAX_S,
	  .help = "stop then; default end_s" },
	{ "cc", T_NAME, F(opts.cc), .max = CC_NAME_LEN,
	  .help = "congestion control" },
	{ "switch_s", T_OWN, F(switches), 0, MAX_S, .parse = parse_switch,
	  .help = "T:CC, change the congestion control at T; repeatable" },
	{ "rate_bps", T_U64, F(rate_bps), 1, MAX_BPS,
	  .help = "payload bit/s while on" },
	{ "tick_ms", T_MSEC, F(tick_ns), 0.01, 1e4, .preset = "10",
	  .help = "TCP: a rated source writes this often" },
	{ "backlog_ms", T_MSEC, F(backlog_ns), 0, 1e9,
	  .help = "TCP: most that a rated source owes; 0 = no bound" },
	{ "period_s", T_SEC, F(period_ns), 0.00001, MAX_S,
	  .help = "square: length of a period" },
	{ "duty", T_REAL, F(duty), 0.001, 1, .preset = "0.5",
	  .help = "square: share of the period that is on" },
	{ "on_s", T_SEC, F(on_ns), 0.000001, MAX_S, .help = "onoff: time on" },
	{ "off_s", T_SEC, F(off_ns), 0.000001, MAX_S, .help = "onoff: time off" },
	{ "exp", T_U32, F(exponential), 0, 1,
	  .help = "onoff: 1 = exponential with means on_s and off_s" },
	{ "bytes", T_U64, F(bytes), 1, MAX_BYTES,
	  .help = "bytes: size of a transfer" },
	{ "repeat_s", T_SEC, F(repeat_ns), 0.001, MAX_S,
	  .help = "bytes: a new connection this often" },
	{ "repeat_count", T_U64, F(repeat_count), 1, 1e9,
	  .help = "bytes: connections in all; default until stop_s" },
	{ "file", T_NAME, F(file), .max = PATH_MAX, .help = "trace: its file" },
	{ "time_scale", T_REAL, F(time_scale), 0.000001, 1e6, .preset = "1",
	  .help = "trace: factor on its times" },
	{ "overhead_bytes", T_U32, F(overhead_bytes), 0, 1000,
	  .help = "trace: its sizes hold this much more than the payload" },
	{ "loop", T_U32, F(loop_trace), 0, 1,
	  .help = "trace: 1 = begin again at its end" },
	{ "pkt_bytes", T_U32, F(pkt_bytes), 1, 65507,
	  .help = "UDP payload; default 1472, 1452 to an IPv6 address" },
	{ "seed", T_U64, F(seed), 0, MAX_BYTES,
	  .help = "of exp=1 and verify=1; default the flow id" },
	{ "dscp", T_U32, F(opts.dscp), 0, 63, .help = "code point" },
	{ "mark", T_U32, F(opts.mark), 0, 4294967295.0, .help = "SO_MARK" },
	{ "priority", T_U32, F(opts.priority), 0, 4294967295.0,
	  .help = "SO_PRIORITY; above 6 needs a capability" },
	{ "nodelay", T_U32, F(opts.nodelay), 0, 1, .help = "TCP_NODELAY" },
	{ "sndbuf", T_U32, F(opts.sndbuf_bytes), 4096, MAX_BUF,
	  .help = "bytes; default 16 MiB where allowed: never the limit" },
	{ "rcvbuf", T_U32, F(opts.rcvbuf_bytes), 2048, MAX_BUF,
	  .help = "bytes" },
	{ "maxseg", T_U32, F(opts.maxseg_bytes), 88, 32767,
	  .help = "TCP_MAXSEG" },
	{ "lowat", T_U32, F(lowat_bytes), 4096, MAX_BUF, .preset = "262144",
	  .help = "TCP_NOTSENT_LOWAT: unsent bytes kept in the socket" },
	{ "timestamps", T_U32, F(timestamps), 0, 2,
	  .help = "tcp_timestamps while it connects; default as it is" },
	{ "fastopen", T_U32, F(fastopen), 0, 1,
	  .help = "TCP: 1 = the first bytes go with the SYN (RFC 7413)" },
	{ "close", T_ENUM, F(close_mode), .names = close_names,
	  .preset = "auto",
	  .help = "at stop_s: fin sends what is buffered, rst drops it; auto = rst" },
	{ "verify", T_U32, F(verify), 0, 1,
	  .help = "TCP: seeded bytes; the sink needs verify=1 and the seed" },
	{ "corrupt_at", T_U64, F(corrupt_at), 0, MAX_BYTES,
	  .help = "verify: send this byte wrong (a test of the test)" },
	{ "may_fail", T_U32, F(may_fail), 0, 1,
	  .help = "1 = its errors leave the exit status 0" },
	{ NULL }
};

#undef F

#define F(member)	offsetof(struct sink_plan, member)

static const struct key sink_keys[] = {
	{ "port", T_U32, F(port), 1, 65535, .help = "listen there" },
	{ "flow", T_U32, F(flow), 0, 1e9, .help = "flow id of what arrives" },
	{ "proto", T_ENUM, F(proto), .names = proto_names, .preset = "tcp",
	  .help = "transport" },
	{ "mode", T_ENUM, F(mode), .names = mode_names, .preset = "prompt",
	  .help = "when it reads" },
	{ "read_ms", T_MSEC, F(read_ns), 0.1, 1e5,
	  .help = "prompt, slow: reads this often; default sample_ms" },
	{ "rate_bps", T_U64, F(rate_bps), 1, MAX_BPS,
	  .help = "slow: payload bit/s it reads" },
	{ "lowat", T_U32, F(lowat_bytes), 1, MAX_BUF, .preset = "4194304",
	  .help = "prompt: SO_RCVLOWAT, above what arrives between two reads" },
	{ "window", T_U32, F(opts.window_bytes), 2048, 5e8,
	  .help = "bytes; most that the receive window may be, from the first read on" },
	{ "rcvbuf", T_U32, F(opts.rcvbuf_bytes), 2048, MAX_BUF,
	  .help = "bytes; fixes the buffer" },
	{ "maxseg", T_U32, F(opts.maxseg_bytes), 88, 32767,
	  .help = "TCP_MAXSEG" },
	{ "cc", T_NAME, F(opts.cc), .max = CC_NAME_LEN,
	  .help = "congestion control" },
	{ "dscp", T_U32, F(opts.dscp), 0, 63, .help = "code point of ACKs" },
	{ "mark", T_U32, F(opts.mark), 0, 4294967295.0,
	  .help = "SO_MARK of ACKs" },
	{ "priority", T_U32, F(opts.priority), 0, 4294967295.0,
	  .help = "SO_PRIORITY of ACKs" },
	{ "seed", T_U64, F(seed), 0, MAX_BYTES,
	  .help = "of verify=1; default the flow id" },
	{ "verify", T_U32, F(verify), 0, 1,
	  .help = "TCP: compare with the seeded bytes" },
	{ NULL }
};

#undef F

#define F(member)	offsetof(struct server_plan, member)

static const struct key server_keys[] = {
	{ "port", T_U32, F(port), 1, 65535, .help = "listen there" },
	{ "flow", T_U32, F(flow), 0, 1e9, .help = "flow id of its events" },
	{ "cc", T_NAME, F(opts.cc), .max = CC_NAME_LEN,
	  .help = "congestion control" },
	{ "sndbuf", T_U32, F(opts.sndbuf_bytes), 4096, MAX_BUF,
	  .help = "bytes; default 4 MiB where allowed" },
	{ "maxseg", T_U32, F(opts.maxseg_bytes), 88, 32767,
	  .help = "TCP_MAXSEG" },
	{ "lowat", T_U32, F(lowat_bytes), 4096, MAX_BUF, .preset = "262144",
	  .help = "TCP_NOTSENT_LOWAT: unsent bytes kept in a socket" },
	{ "dscp", T_U32, F(opts.dscp), 0, 63, .help = "code point" },
	{ "mark", T_U32, F(opts.mark), 0, 4294967295.0, .help = "SO_MARK" },
	{ "priority", T_U32, F(opts.priority), 0, 4294967295.0,
	  .help = "SO_PRIORITY" },
	{ NULL }
};

#undef F

#define F(member)	offsetof(struct web_plan, member)

static const struct key web_keys[] = {
	{ "id", T_U32, F(id), 0, 1e9, .help = "flow id, once a plan" },
	{ "kind", T_ENUM, F(kind), .names = web_names,
	  .help = "offered load, or users who wait" },
	{ "to", T_ADDR, F(to), .help = "IPv4 or IPv6 address of the server" },
	{ "port", T_U32, F(port), 1, 65535, .help = "port of the server" },
	{ "start_s", T_SEC, F(start_ns), 0, MAX_S, .help = "begin then" },
	{ "stop_s", T_SEC, F(stop_ns), 0, MAX_S,
	  .help = "begin no page later; default end_s" },
	{ "rate_bps", T_U64, F(rate_bps), 1, MAX_BPS,
	  .help = "open: offered load, bytes of objects in bit/s" },
	{ "pace", T_ENUM, F(pace), .names = pace_names, .preset = "size",
	  .help = "open: a page's wait follows its size, or Poisson" },
	{ "sessions", T_U32, F(sessions), 1, 10000, .preset = "1",
	  .help = "session: users side by side" },
	{ "page_s", T_SEC, F(page_ns), 0.001, 1e4, .preset = "1",
	  .help = "session: mean pause between pages, exponential" },
	{ "object_ms", T_MSEC, F(object_ns), 0.001, 1e6, .preset = "1",
	  .help = "session: mean time between requests, exponential" },
	{ "objects", T_U32, F(objects), 1, 1000,
	  .help = "of a page; open: 1 to so many (1), session: so many (10)" },
	{ "shape", T_REAL, F(shape), 1.001, 100, .preset = "1.2",
	  .help = "of the sizes' Pareto II distribution" },
	{ "mean_bytes", T_REAL, F(mean_bytes), 1, 1e9, .preset = "10000",
	  .help = "mean size, after the cut" },
	{ "min_bytes", T_U64, F(min_bytes), 1, 1e9, .preset = "12",
	  .help = "smaller ones become so large" },
	{ "max_bytes", T_U64, F(max_bytes), 1, 1e9, .preset = "2000000",
	  .help = "larger ones become so small" },
	{ "conns_max", T_U32, F(conns_max), 1, 100000, .preset = "20000",
	  .help = "open connections; an object beyond them fails" },
	{ "seed", T_U64, F(seed), 0, MAX_BYTES,
	  .help = "of sizes and times; default the id" },
	{ "rcvbuf", T_U32, F(opts.rcvbuf_bytes), 2048, MAX_BUF,
	  .help = "bytes; fixes the buffer" },
	{ "maxseg", T_U32, F(opts.maxseg_bytes), 88, 32767,
	  .help = "TCP_MAXSEG" },
	{ "dscp", T_U32, F(opts.dscp), 0, 63,
	  .help = "code point of requests and ACKs" },
	{ "mark", T_U32, F(opts.mark), 0, 4294967295.0, .help = "SO_MARK" },
	{ "priority", T_U32, F(opts.priority), 0, 4294967295.0,
	  .help = "SO_PRIORITY" },
	{ NULL }
};

#undef F

#define F(member)	offsetof(struct queue_plan, member)

static const struct key queue_keys[] = {
	{ "id", T_U32, F(id), 0, 1e9, .help = "queue id, once a plan" },
	{ "dev", T_NAME, F(dev), .max = IFNAMSIZ, .help = "device" },
	{ "handle", T_HANDLE, F(handle), .help = "as tc prints it, 1:" },
	{ "parent", T_HANDLE, F(parent),
	  .help = "class it hangs on, 1:1; neither = root" },
	{ NULL }
};

#undef F

#define F(member)	offsetof(struct plan, member)

static const struct key global_keys[] = {
	{ "node", T_NAME, F(node), .max = NAME_LEN,
	  .help = "names the record files" },
	{ "zero_ns", T_U64, F(zero_ns), 0, 9e18,
	  .help = "CLOCK_MONOTONIC at experiment time 0; 0 = now" },
	{ "end_s", T_SEC, F(end_ns), 0.001, MAX_S, .help = "end of the run" },
	{ "sample_ms", T_MSEC, F(sample_ns), 0.1, 1e6, .preset = "100",
	  .help = "step of all series" },
	{ "out", T_NAME, F(out), .max = PATH_MAX,
	  .help = "folder of the record files" },
	{ NULL }
};

#undef F

#define LIST(...)	((const char *const[]){ __VA_ARGS__, NULL })

static int check_kind(const struct place *at, struct flow_plan *f, u64 seen)
{
	const char *name = kind_names[f->kind];
	const char *const *only_of[] = {
		[KIND_BYTES] = LIST("bytes", "repeat_s", "repeat_count"),
		[KIND_SQUARE] = LIST("period_s", "duty"),
		[KIND_ONOFF] = LIST("on_s", "off_s", "exp"),
		[KIND_TRACE] = LIST("file", "time_scale", "overhead_bytes",
				    "loop"),
	};
	const char *const *needs[] = {
		[KIND_GREEDY] = LIST("id"),
		[KIND_BYTES] = LIST("bytes"),
		[KIND_CBR] = LIST("rate_bps"),
		[KIND_SQUARE] = LIST("period_s"),
		[KIND_ONOFF] = LIST("on_s", "off_s"),
		[KIND_TRACE] = LIST("file"),
	};

	for (u32 i = 0; i < ARRAY_SIZE(only_of); i++)
		if (i != f->kind && only_of[i] &&
		    words_refuse(at, flow_keys, seen, name, only_of[i]))
			return -1;
	if (f->kind == KIND_GREEDY || f->kind == KIND_BYTES ||
	    f->kind == KIND_TRACE)
		if (words_refuse(at, flow_keys, seen, name, LIST("rate_bps")))
			return -1;
	return words_require(at, flow_keys, seen, name, needs[f->kind]);
}

static int check_transport(const struct place *at, struct flow_plan *f,
			   u64 seen)
{
	bool udp_only = f->kind == KIND_TRACE;
	bool tcp_only = f->kind == KIND_GREEDY || f->kind == KIND_BYTES;

	if (f->proto == PROTO_UDP && tcp_only)
		return words_complain(at, "%s needs proto=tcp", kind_names[f->kind]);
	if (f->proto == PROTO_TCP && udp_only)
		return words_complain(at, "%s needs proto=udp", kind_names[f->kind]);
	if (f->proto == PROTO_TCP)
		return words_refuse(at, flow_keys, seen, "tcp", LIST("pkt_bytes"));
	if (f->kind != KIND_TRACE && !f->rate_bps)
		return words_complain(at, "udp needs rate_bps");
	return words_refuse(at, flow_keys, seen, "udp",
		      LIST("cc", "switch_s", "tick_ms", "backlog_ms",
			   "nodelay", "maxseg", "lowat", "timestamps",
			   "fastopen", "close", "verify", "corrupt_at"));
}

/* Sinks and servers must not share a TCP port. */
static int check_port(const struct place *at, const struct plan *p, u32 port)
{
	for (u32 i = 0; i < p->nsinks; i++)
		if (p->sinks[i].port == port && p->sinks[i].proto == PROTO_TCP)
			return words_complain(at, "port=%u: already in line %u",
					port, p->sinks[i].line);
	for (u32 i = 0; i < p->nservers; i++)
		if (p->servers[i].port == port)
			return words_complain(at, "port=%u: already in line %u",
					port, p->servers[i].line);
	return 0;
}

static int check_udp_port(const struct place *at, const struct plan *p,
			  u32 port)
{
	for (u32 i = 0; i < p->nsinks; i++)
		if (p->sinks[i].port == port && p->sinks[i].proto == PROTO_UDP)
			return words_complain(at, "port=%u: already in line %u",
					port, p->sinks[i].line);
	return 0;
}

/* Flows and web clients must not share an id. */
static int check_id(const struct place *at, const struct plan *p, u32 id)
{
	for (u32 i = 0; i < p->nflows; i++)
		if (p->flows[i].id == id)
			return words_complain(at, "id=%u: already in line %u", id,
					p->flows[i].line);
	for (u32 i = 0; i < p->nwebs; i++)
		if (p->webs[i].id == id)
			return words_complain(at, "id=%u: already in line %u", id,
					p->webs[i].line);
	return 0;
}

static int parse_flow(const struct place *at, struct plan *p, char **words)
{
	struct flow_plan *f = &p->flows[p->nflows];
	u64 seen;

	memset(f, 0, sizeof(*f));
	f->line = at->line;
	f->stop_ns = NEVER_NS;
	f->corrupt_at = NEVER_NS;
	f->timestamps = 3;
	if (words_read(at, flow_keys, words, f, &seen) ||
	    words_require(at, flow_keys, seen, "flow",
			  LIST("id", "kind", "to", "port")) ||
	    check_kind(at, f, seen) || check_transport(at, f, seen))
		return -1;
	if (check_id(at, p, f->id))
		return -1;
	if (f->stop_ns <= f->start_ns)
		return words_complain(at, "stop_s must be greater than start_s");
	if (f->repeat_count && !f->repeat_ns)
		return words_complain(at, "repeat_count needs repeat_s");
	if (f->corrupt_at != NEVER_NS && !f->verify)
		return words_complain(at, "corrupt_at needs verify=1");
	if (!words_has(flow_keys, seen, "sport")) {
		if (f->id > 65535 - 20000)
			return words_complain(at, "id=%u: above 45535 a flow needs sport",
					f->id);
		f->sport = 20000 + f->id;
	}
	if (!words_has(flow_keys, seen, "seed"))
		f->seed = f->id;
	if (!f->pkt_bytes)
		f->pkt_bytes = f->to.any.sa_family == AF_INET6 ? 1452 : 1472;
	/* sin_port and sin6_port have the same offset */
	f->to.v4.sin_port = htons(f->port);
	p->nflows++;
	return 0;
}

static int parse_sink(const struct place *at, struct plan *p, char **words)
{
	struct sink_plan *s = &p->sinks[p->nsinks];
	u64 seen;

	memset(s, 0, sizeof(*s));
	s->line = at->line;
	if (words_read(at, sink_keys, words, s, &seen) ||
	    words_require(at, sink_keys, seen, "sink", LIST("port", "flow")))
		return -1;
	if (s->proto == PROTO_TCP ? check_port(at, p, s->port) :
				    check_udp_port(at, p, s->port))
		return -1;
	if (s->mode == MODE_SLOW && !s->rate_bps)
		return words_complain(at, "mode=slow needs rate_bps");
	if (s->mode != MODE_SLOW && s->rate_bps)
		return words_complain(at, "rate_bps needs mode=slow");
	if (s->proto == PROTO_UDP) {
		if (s->mode == MODE_SLOW)
			return words_complain(at, "mode=slow needs proto=tcp");
		if (words_refuse(at, sink_keys, seen, "udp",
				 LIST("lowat", "window", "maxseg", "cc", "verify")))
			return -1;
	}
	if (s->opts.window_bytes && s->opts.rcvbuf_bytes)
		return words_complain(at, "window and rcvbuf exclude each other");
	if (!words_has(sink_keys, seen, "seed"))
		s->seed = s->flow;
	p->nsinks++;
	return 0;
}

static int parse_server(const struct place *at, struct plan *p, char **words)
{
	struct server_plan *s = &p->servers[p->nservers];
	u64 seen;

	memset(s, 0, sizeof(*s));
	s->line = at->line;
	if (words_read(at, server_keys, words, s, &seen) ||
	    words_require(at, server_keys, seen, "server", LIST("port", "flow")) ||
	    check_port(at, p, s->port))
		return -1;
	p->nservers++;
	return 0;
}

static int check_web(const struct place *at, struct web_plan *w, u64 seen)
{
	if (w->kind == WEB_OPEN) {
		if (words_require(at, web_keys, seen, "open", LIST("rate_bps")) ||
		    words_refuse(at, web_keys, seen, "open",
				 LIST("sessions", "page_s", "object_ms")))
			return -1;
	} else if (words_refuse(at, web_keys, seen, "session",
			  LIST("rate_bps", "pace"))) {
		return -1;
	}
	if (w->stop_ns <= w->start_ns)
		return words_complain(at, "stop_s must be greater than start_s");
	if (w->min_bytes >= w->mean_bytes || w->mean_bytes >= w->max_bytes)
		return words_complain(at, "mean_bytes=%.10g: must lie between min_bytes=%" PRIu64
				" and max_bytes=%" PRIu64, w->mean_bytes,
				w->min_bytes, w->max_bytes);
	return 0;
}

static int parse_web(const struct place *at, struct plan *p, char **words)
{
	struct web_plan *w = &p->webs[p->nwebs];
	u64 seen;

	memset(w, 0, sizeof(*w));
	w->line = at->line;
	w->stop_ns = NEVER_NS;
	if (words_read(at, web_keys, words, w, &seen) ||
	    words_require(at, web_keys, seen, "web",
			  LIST("id", "kind", "to", "port")) ||
	    check_web(at, w, seen) || check_id(at, p, w->id))
		return -1;
	if (!w->objects)
		w->objects = w->kind == WEB_OPEN ? 1 : 10;
	if (!words_has(web_keys, seen, "seed"))
		w->seed = w->id;
	w->to.v4.sin_port = htons(w->port);
	p->nwebs++;
	return 0;
}

static int parse_queue(const struct place *at, struct plan *p, char **words)
{
	struct queue_plan *q = &p->queues[p->nqueues];
	u64 seen;

	memset(q, 0, sizeof(*q));
	q->line = at->line;
	if (words_read(at, queue_keys, words, q, &seen) ||
	    words_require(at, queue_keys, seen, "queue", LIST("id", "dev")))
		return -1;
	for (u32 i = 0; i < p->nqueues; i++)
		if (p->queues[i].id == q->id)
			return words_complain(at, "queue id=%u: already in line %u",
					q->id, p->queues[i].line);
	p->nqueues++;
	return 0;
}

/* A line `name value`; *seen as in words_read(), but for the whole plan */
static int parse_global(const struct place *at, struct plan *p, char **words,
			u64 *seen)
{
	int i = words_find(global_keys, words[0]);

	if (i < 0)
		return words_complain(at, "unknown directive %s", words[0]);
	if (!words[1] || words[2])
		return words_complain(at, "%s takes one value", words[0]);
	if (*seen >> i & 1)
		return words_complain(at, "%s is given twice", words[0]);
	*seen |= 1ull << i;
	return words_value(at, &global_keys[i], words[1], p);
}

/* Makes room for one more item; the size doubles when n is a power of two. */
static int room(void *array, u32 n, size_t size)
{
	void **at = array;
	void *grown;

	if (n & (n - 1) || (n && n < 8))
		return 0;
	grown = realloc(*at, (n ? 2 * (size_t)n : 8) * size);
	if (!grown)
		return -1;
	*at = grown;
	return 0;
}

static int parse_line(const struct place *at, struct plan *p, char *line,
		      u64 *seen)
{
	char *words[WORDS_MAX];
	int n = words_split(at, line, words);

	if (n <= 0)
		return n;
	if (room(&p->flows, p->nflows, sizeof(*p->flows)) ||
	    room(&p->sinks, p->nsinks, sizeof(*p->sinks)) ||
	    room(&p->servers, p->nservers, sizeof(*p->servers)) ||
	    room(&p->webs, p->nwebs, sizeof(*p->webs)) ||
	    room(&p->queues, p->nqueues, sizeof(*p->queues)))
		return words_complain(at, "out of memory");
	if (!strcmp(words[0], "flow"))
		return parse_flow(at, p, words + 1);
	if (!strcmp(words[0], "sink"))
		return parse_sink(at, p, words + 1);
	if (!strcmp(words[0], "server"))
		return parse_server(at, p, words + 1);
	if (!strcmp(words[0], "web"))
		return parse_web(at, p, words + 1);
	if (!strcmp(words[0], "queue"))
		return parse_queue(at, p, words + 1);
	return parse_global(at, p, words, seen);
}

static int check_whole(const struct place *at, struct plan *p, u64 seen)
{
	if (words_require(at, global_keys, seen, "a plan",
			  LIST("node", "end_s", "out")))
		return -1;
	if (strchr(p->node, '/'))
		return words_complain(at, "node %s: must not contain /", p->node);
	for (u32 i = 0; i < p->nflows; i++) {
		struct flow_plan *f = &p->flows[i];
		struct place there = { at->path, f->line };

		if (f->start_ns >= p->end_ns)
			return words_complain(&there, "start_s is not before end_s");
	}
	for (u32 i = 0; i < p->nwebs; i++) {
		struct place there = { at->path, p->webs[i].line };

		if (p->webs[i].start_ns >= p->end_ns)
			return words_complain(&there, "start_s is not before end_s");
	}
	for (u32 i = 0; i < p->nsinks; i++)
		if (!p->sinks[i].read_ns)
			p->sinks[i].read_ns = p->sample_ns;
	return 0;
}

int plan_read(struct plan *p, const char *path)
{
	struct place at = { path, 0 };
	size_t size = 0;
	char *line = NULL;
	u64 seen = 0;
	int err = 0;
	FILE *file;

	memset(p, 0, sizeof(*p));
	p->path = path;
	words_preset(global_keys, p);
	file = fopen(path, "re");
	if (!file)
		return words_complain(&at, "%s", strerror(errno));
	while (!err && getline(&line, &size, file) >= 0) {
		at.line++;
		err = parse_line(&at, p, line, &seen);
	}
	if (!err && ferror(file))
		err = words_complain(&at, "read error: %s", strerror(errno));
	fclose(file);
	free(line);
	at.line = 0;
	if (!err)
		err = check_whole(&at, p, seen);
	if (err)
		plan_free(p);
	return err;
}

void plan_free(struct plan *p)
{
	free(p->flows);
	free(p->sinks);
	free(p->servers);
	free(p->webs);
	free(p->queues);
	memset(p, 0, sizeof(*p));
}

void plan_help(void)
{
	printf("A plan has one directive a line, # starts a comment.\n"
	       "Below: [range or choice] (default).\n");
	words_help("NAME VALUE (node, end_s and out are required):",
		   global_keys);
	words_help("flow id= kind= to= port= [key=value...]:", flow_keys);
	words_help("sink port= flow= [key=value...]:", sink_keys);
	words_help("server port= flow= [key=value...]: a web server",
		   server_keys);
	words_help("web id= kind= to= port= [key=value...]: web clients",
		   web_keys);
	words_help("queue id= dev= [key=value...]:", queue_keys);
}
