// SPDX-License-Identifier: GPL-2.0
/*
 * Sources of traffic; plan.h describes the kinds.
 *
 * TCP.  A socket is written when TCP has less than half of lowat_bytes unsent,
 * in blocks of at most BLOCK_BYTES.  A greedy flow thus needs a few system
 * calls per round trip and is never limited by the application.  A source with
 * a rate adds to made_bytes at each tick and writes as much as possible; if the
 * socket is full, the edge-triggered EPOLLOUT continues the writing.
 *
 * UDP.  A timer for each packet at its exact time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"
#include "flow.h"
#include "sock.h"
#include "stream.h"

#define BLOCK_BYTES	(1u << 20)	/* maximum size of one send() */
#define SNDBUF_BYTES	(16u << 20)	/* far above any window in use here */
#define UDP_BUF_BYTES	(8u << 20)	/* for packets held by a delaying qdisc */
#define UDP_BURST	1024		/* packets before returning to the loop */
#define UDP_TRIES	4		/* attempts, since errors of earlier packets are ignored */

static struct flow *flows;
static u32 nflows;
static u64 run_zero_ns;		/* CLOCK_MONOTONIC of experiment time 0 */
static u8 block[BLOCK_BYTES];	/* zeros, or a part of a verified stream */

__attribute__((format(printf, 2, 3)))
static void flow_error(struct flow *f, const char *format, ...)
{
	char text[SOCK_ERROR_LEN + 64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (f->plan->may_fail)
		event(f->plan->id, "error", "%s", text);
	else
		event_error(f->plan->id, "%s", text);
}

/* ---- one TCP connection ---- */

static void conn_close(struct conn *c)
{
	struct conn **at = &c->flow->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	watch_close(&c->watch);
	event(c->flow->plan->id, "close", "conn=%u", c->index);
	loop_free(c);
}

static void conn_fail(struct conn *c, const char *what, int err)
{
	flow_error(c->flow, "%s conn=%u %s", what, c->index, strerror(err));
	conn_close(c);
}

/* The next bytes to write, at most len of them */
static const void *payload(struct conn *c, size_t len)
{
	const struct flow_plan *p = c->flow->plan;
	u64 at = c->written_bytes;

	if (p->verify) {
		stream_fill(p->seed, at, block, len);
		if (p->corrupt_at - at < len)
			block[p->corrupt_at - at] ^= 1;
	}
	return block;
}

static void conn_written(struct conn *c)
{
	event(c->flow->plan->id, "written", "conn=%u bytes=%" PRIu64, c->index,
	      c->written_bytes);
	shutdown(c->watch.fd, SHUT_WR);
	c->state = CONN_DRAINING;
}

/* Writes the generated data until the socket is full. */
static void conn_pump(struct conn *c)
{
	const struct flow_plan *p = c->flow->plan;

	if (c->state != CONN_OPEN)
		return;
	while (c->written_bytes < c->made_bytes) {
		size_t want = min_u64(c->made_bytes - c->written_bytes,
				      BLOCK_BYTES);
		ssize_t n = send(c->watch.fd, payload(c, want), want,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0) {
			if (errno != EAGAIN)
				conn_fail(c, "send", errno);
			return;
		}
		c->written_bytes += n;
		if (n < want)
			break;
	}
	if (p->kind == KIND_BYTES && c->written_bytes == p->bytes)
		conn_written(c);
}

static void flow_begin_source(struct flow *f, u64 zero_ns);

static void conn_connected(struct conn *c)
{
	struct flow *f = c->flow;

	event(f->plan->id, "connected", "conn=%u us=%" PRIu64, c->index,
	      (loop_now() - c->start_ns) / NSEC_PER_USEC);
	c->state = CONN_OPEN;
	/*
	 * A cbr source starts when it is connected; square and onoff use the
	 * experiment's time.
	 */
	if (f->plan->kind == KIND_CBR)
		flow_begin_source(f, loop_now());
	conn_pump(c);
}

static void conn_finished(struct conn *c)
{
	event(c->flow->plan->id, "finished",
	      "conn=%u bytes=%" PRIu64 " us=%" PRIu64, c->index,
	      c->written_bytes, (loop_now() - c->start_ns) / NSEC_PER_USEC);
	conn_close(c);
}

static void conn_ready(struct watch *w, u32 events)
{
	struct conn *c = container_of(w, struct conn, watch);
	int err;

	if (events & (EPOLLERR | EPOLLHUP)) {
		err = sock_error(w->fd);
		if (err) {
			conn_fail(c, c->state == CONN_CONNECTING ? "connect" :
				  "connection", err);
			return;
		}
	}
	if (c->state == CONN_CONNECTING && events & EPOLLOUT)
		conn_connected(c);
	else if (events & EPOLLOUT)
		conn_pump(c);
	if (w->fd < 0 || !(events & EPOLLRDHUP))
		return;
	if (c->state == CONN_DRAINING)
		conn_finished(c);
	else
		conn_fail(c, "closed by the peer", ECONNRESET);
}

/* Makes a socket with the plan's options; -1 with the reason in why. */
static int flow_socket(const struct flow_plan *p, char *why)
{
	int family = p->to.any.sa_family;
	bool tcp = p->proto == PROTO_TCP;
	int fd = socket(family, SOCK_CLOEXEC | SOCK_NONBLOCK |
			(tcp ? SOCK_STREAM : SOCK_DGRAM), 0);

	if (fd < 0) {
		snprintf(why, SOCK_ERROR_LEN, "socket: %s", strerror(errno));
		return -1;
	}
	if (sock_apply(fd, family, &p->opts, why)) {
		close(fd);
		return -1;
	}
	if (tcp) {
		sock_set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, p->lowat_bytes);
		/* Without permission for FORCE, autotuning is sufficient. */
		if (!p->opts.sndbuf_bytes)
			sock_set(fd, SOL_SOCKET, SO_SNDBUFFORCE,
				 SNDBUF_BYTES / 2);
	} else if (!p->opts.sndbuf_bytes) {
		sock_set_buffer(fd, true, UDP_BUF_BYTES);
	}
	return fd;
}

/*
 * connect() with the plan's timestamps; only the SYN depends on the sysctl.
 * With Fast Open, if a cookie is known, connect() sends nothing: the first
 * write sends the SYN.
 */
static int flow_connect(const struct flow_plan *p, int fd)
{
	int old = -1, err = 0;

	if (p->fastopen && setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT,
				      &p->fastopen, sizeof(p->fastopen)))
		return errno;
	if (p->timestamps < 3) {
		old = timestamps_swap(p->timestamps);
		if (old < 0)
			return -old;
	}
	if (connect(fd, &p->to.any, address_len(&p->to)) &&
	    errno != EINPROGRESS)
		err = errno;
	if (old >= 0)
		timestamps_swap(old);
	return err;
}

static void flow_open_conn(struct flow *f)
{
	const struct flow_plan *p = f->plan;
	struct conn *c = calloc(1, sizeof(*c));
	char why[SOCK_ERROR_LEN];
	int err;

	if (!c) {
		flow_error(f, "out of memory");
		return;
	}
	c->flow = f;
	c->index = f->started++;
	c->start_ns = loop_now();
	c->watch.ready = conn_ready;
	c->watch.fd = flow_socket(p, why);
	/* Only the first connection: later its port may be in TIME_WAIT. */
	if (c->watch.fd >= 0 && p->sport && !c->index &&
	    sock_bind_port(c->watch.fd, p->to.any.sa_family, p->sport, why))
		watch_close(&c->watch);
	if (c->watch.fd < 0) {
		flow_error(f, "%s", why);
		free(c);
		return;
	}
	c->next = f->conns;
	f->conns = c;
	if (p->kind == KIND_BYTES)
		c->made_bytes = p->bytes;
	else if (p->kind == KIND_GREEDY)
		c->made_bytes = NEVER_NS;
	event(p->id, "start", "conn=%u", c->index);
	err = flow_connect(p, c->watch.fd);
	if (err)
		conn_fail(c, "connect", err);
	else if (watch_add(&c->watch, EPOLLOUT | EPOLLRDHUP | EPOLLET))
		conn_fail(c, "epoll", errno);
}

/* ---- TCP sources with a rate ---- */

/* Limits the backlog to backlog_ms at the rate; more is never generated. */
static void bound_backlog(struct flow *f, struct conn *c)
{
	const struct flow_plan *p = f->plan;
	u64 owed = c->made_bytes - c->written_bytes;
	u64 most;

	if (!p->backlog_ns || !p->rate_bps)
		return;
	most = source_bytes(p->rate_bps, max_u64(p->backlog_ns, p->tick_ns));
	if (owed > most) {
		f->interval_base -= owed - most;
		c->made_bytes -= owed - most;
	}
}

/*
 * One step of a source over TCP.  Within an interval each tick generates the
 * bytes of the following tick, so that the first ones are sent at once and the
 * sum of the interval is exact.  Without a rate, the source is greedy within
 * the interval.
 */
static void tcp_tick(struct flow *f, u64 at_ns)
{
	const struct flow_plan *p = f->plan;
	struct source *s = &f->source;
	u64 t = at_ns - f->zero_ns;
	struct conn *c = f->conns;
	u64 end;

	if (!c)
		return;
	if (t >= s->off_ns) {
		if (p->rate_bps)
			f->interval_base += source_bytes(p->rate_bps,
							 s->off_ns - s->on_ns);
		else
			c->made_bytes = c->written_bytes;
		source_next(s);
		timer_arm(&f->send, f->zero_ns + s->on_ns);
		return;
	}
	if (p->rate_bps) {
		end = min_u64(t + p->tick_ns, s->off_ns);
		c->made_bytes = f->interval_base +
				source_bytes(p->rate_bps, end - s->on_ns);
		bound_backlog(f, c);
	} else {
		end = s->off_ns;
		c->made_bytes = NEVER_NS;
	}
	timer_arm(&f->send, f->zero_ns + end);
	conn_pump(c);
}

/* ---- UDP sources ---- */

/*
 * The stamp at the start of a UDP packet: its send time on the clock of the
 * receiver's SO_TIMESTAMPNS (CLOCK_REALTIME), from CLOCK_MONOTONIC.  Both nodes
 * are on one machine.
 */
static u64 udp_stamp_ns(u64 monotonic_ns)
{
	static s64 offset_ns;

	if (!offset_ns) {
		struct timespec real, mono;

		clock_gettime(CLOCK_MONOTONIC, &mono);
		clock_gettime(CLOCK_REALTIME, &real);
		offset_ns = (s64)(real.tv_sec - mono.tv_sec) * (s64)NSEC_PER_SEC +
			    (real.tv_nsec - mono.tv_nsec);
	}
	return monotonic_ns + offset_ns;
}

/* Sends a packet that starts with its send time, as far as that fits. */
static ssize_t udp_send_once(struct flow *f, u32 bytes)
{
	u64 stamp_ns = udp_stamp_ns(loop_now());
	struct iovec parts[] = {
		{ &stamp_ns, min_u64(bytes, sizeof(stamp_ns)) },
		{ block, bytes - min_u64(bytes, sizeof(stamp_ns)) },
	};
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };

	return sendmsg(f->udp_fd, &msg, MSG_DONTWAIT);
}

static void udp_send(struct flow *f, u32 bytes)
{
	/* A call may return the ICMP error of an earlier packet: try again. */
	for (int i = 0; i < UDP_TRIES; i++) {
		if (udp_send_once(f, bytes) >= 0) {
			f->packets_sent++;
			f->bytes_sent += bytes;
			return;
		}
		if (errno == EAGAIN || errno == ENOBUFS)
			break;
	}
	f->packets_refused++;
}

/* Send time of the next packet, and its size; NEVER_NS = no more packets. */
static u64 udp_next(struct flow *f, u32 *bytes)
{
	const struct flow_plan *p = f->plan;
	struct source *s = &f->source;
	u64 at;

	if (p->kind == KIND_TRACE) {
		const struct trace *t = &f->trace;

		if (f->packet == t->count) {
			if (!p->loop_trace || !t->packets[t->count - 1].at_ns)
				return NEVER_NS;
			f->zero_ns += t->packets[t->count - 1].at_ns;
			f->packet = 0;
		}
		*bytes = t->packets[f->packet].bytes;
		return f->zero_ns + t->packets[f->packet].at_ns;
	}
	*bytes = p->pkt_bytes;
	at = s->on_ns + source_packet_ns(p->rate_bps, p->pkt_bytes, f->packet);
	if (at >= s->off_ns) {
		source_next(s);
		f->packet = 0;
		at = s->on_ns;
	}
	return at == NEVER_NS ? at : f->zero_ns + at;
}

static void udp_tick(struct flow *f, u64 now_ns)
{
	u32 bytes = 0;
	u64 at;

	for (int i = 0; i < UDP_BURST; i++) {
		at = udp_next(f, &bytes);
		if (at > now_ns)
			break;
		udp_send(f, bytes);
		f->packet++;
	}
	timer_arm(&f->send, at);
}

/* ---- flows ---- */

static void flow_send(struct timer *t, u64 now_ns)
{
	struct flow *f = container_of(t, struct flow, send);

	if (f->plan->proto == PROTO_UDP)
		udp_tick(f, now_ns);
	else
		tcp_tick(f, t->at_ns);
}

static void flow_begin_source(struct flow *f, u64 zero_ns)
{
	f->zero_ns = zero_ns;
	source_init(&f->source, f->plan);
	timer_arm(&f->send, zero_ns);
}

static void udp_open(struct flow *f)
{
	const struct flow_plan *p = f->plan;
	char why[SOCK_ERROR_LEN];

	f->udp_fd = flow_socket(p, why);
	if (f->udp_fd < 0 ||
	    (p->sport && sock_bind_port(f->udp_fd, p->to.any.sa_family,
					p->sport, why))) {
		flow_error(f, "%s", why);
		return;
	}
	if (connect(f->udp_fd, &p->to.any, address_len(&p->to))) {
		flow_error(f, "connect %s", strerror(errno));
		return;
	}
	event(p->id, "start", "conn=0");
}

static void flow_start(struct timer *t, u64 now_ns)
{
	struct flow *f = container_of(t, struct flow, start);
	const struct flow_plan *p = f->plan;

	(void)now_ns;
	if (p->proto == PROTO_UDP) {
		udp_open(f);
		flow_begin_source(f, t->at_ns);
		return;
	}
	flow_open_conn(f);
	if (p->kind == KIND_SQUARE || p->kind == KIND_ONOFF)
		flow_begin_source(f, t->at_ns);
	if (p->repeat_ns && (!p->repeat_count || f->started < p->repeat_count))
		timer_arm(t, t->at_ns + p->repeat_ns);
}

static void conn_stop(struct conn *c)
{
	const struct flow_plan *p = c->flow->plan;
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	event(p->id, "stop", "conn=%u bytes=%" PRIu64, c->index,
	      c->written_bytes);
	if (p->close_mode == CLOSE_FIN && c->state == CONN_OPEN) {
		c->made_bytes = c->written_bytes;
		shutdown(c->watch.fd, SHUT_WR);
		c->state = CONN_DRAINING;
		return;
	}
	setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	conn_close(c);
}

static void udp_close(struct flow *f)
{
	if (f->udp_fd < 0)
		return;
	event(f->plan->id, "sent", "packets=%" PRIu64 " bytes=%" PRIu64
	      " refused=%" PRIu64, f->packets_sent, f->bytes_sent,
	      f->packets_refused);
	close(f->udp_fd);
	f->udp_fd = -1;
}

static void flow_stop(struct timer *t, u64 now_ns)
{
	struct flow *f = container_of(t, struct flow, stop);
	struct conn *c, *next;

	(void)now_ns;
	timer_cancel(&f->start);
	timer_cancel(&f->send);
	for (c = f->conns; c; c = next) {
		next = c->next;
		if (c->state != CONN_DRAINING)
			conn_stop(c);
	}
	udp_close(f);
}

static void flow_change_cc(struct timer *t, u64 now_ns)
{
	struct flow *f = container_of(t, struct flow, change);
	const struct cc_switch *s = &f->plan->switches[f->switched++];
	char why[SOCK_ERROR_LEN];
	struct conn *c;

	(void)now_ns;
	for (c = f->conns; c; c = c->next) {
		if (sock_set_cc(c->watch.fd, s->cc, why))
			flow_error(f, "%s", why);
		else
			event(f->plan->id, "switch", "conn=%u cc=%s", c->index,
			      s->cc);
	}
	if (f->switched < f->plan->nswitches)
		timer_arm(t, run_zero_ns + s[1].at_ns);
}

/* ---- samples ---- */

static void conn_record(const struct conn *c, u64 t_ns,
			const struct diag_socket *s)
{
	struct rec_send r = { .t_ns = t_ns, .flow = c->flow->plan->id };
	const struct tcp_info *i = &s->info;

	if (!s->valid)
		return;
	r.cwnd_pkts = i->tcpi_snd_cwnd;
	r.ssthresh_pkts = i->tcpi_snd_ssthresh;
	r.srtt_us = i->tcpi_rtt;
	r.rttvar_us = i->tcpi_rttvar;
	r.minrtt_us = i->tcpi_min_rtt;
	r.mss_bytes = i->tcpi_snd_mss;
	r.delivered_pkts = i->tcpi_delivered;
	r.retrans_pkts = i->tcpi_total_retrans;
	r.lost_pkts = i->tcpi_lost;
	r.unacked_pkts = i->tcpi_unacked;
	r.ca_state = i->tcpi_ca_state;
	r.bytes_acked = i->tcpi_bytes_acked;
	r.bytes_sent = i->tcpi_bytes_sent;
	memcpy(r.cc, &s->cc, sizeof(r.cc));
	record(REC_SEND, &r, sizeof(r));
}

/* The connection of flow f to sample: the newest one, if it repeats */
static struct conn *flow_sampled(const struct flow *f)
{
	struct conn *c = f->conns;

	return c && c->state != CONN_CONNECTING ? c : NULL;
}

/* Samples a batch of flows from index from; returns the next index. */
static u32 flows_sample_batch(u32 from, u64 t_ns)
{
	static struct diag_socket sockets[DIAG_BATCH];
	const struct conn *conns[DIAG_BATCH];
	u32 n = 0;

	for (; from < nflows && n < DIAG_BATCH; from++) {
		struct conn *c = flow_sampled(&flows[from]);

		if (!c)
			continue;
		conns[n] = c;
		sockets[n].fd = c->watch.fd;
		sockets[n++].request = &c->diag;
	}
	diag_ask(sockets, n);
	for (u32 i = 0; i < n; i++)
		conn_record(conns[i], t_ns, &sockets[i]);
	return from;
}

void flows_sample(u64 t_ns)
{
	for (u32 at = 0; at < nflows;)
		at = flows_sample_batch(at, t_ns);
}

/* ---- start and end ---- */

/* Tries the options, so that refused ones are reported before the run. */
static int flow_try(const struct flow_plan *p)
{
	char why[SOCK_ERROR_LEN];
	int fd = flow_socket(p, why), err = fd < 0 ? -1 : 0;

	for (u32 i = 0; !err && i < p->nswitches; i++)
		err = sock_set_cc(fd, p->switches[i].cc, why);
	if (err)
		event_error(p->id, "%s", why);
	if (fd >= 0)
		close(fd);
	return err;
}

static int flow_open(struct flow *f, const struct flow_plan *p)
{
	char why[PATH_MAX + 128];

	f->plan = p;
	f->udp_fd = -1;
	f->start = (struct timer){ .fire = flow_start, .rank = RANK_SEND };
	f->stop = (struct timer){ .fire = flow_stop, .rank = RANK_SEND };
	f->send = (struct timer){ .fire = flow_send, .rank = RANK_SEND };
	f->change = (struct timer){ .fire = flow_change_cc,
				    .rank = RANK_SEND };
	if (p->kind == KIND_TRACE &&
	    trace_read(&f->trace, p, why, sizeof(why))) {
		event_error(p->id, "%s", why);
		return -1;
	}
	if (flow_try(p))
		return -1;
	timer_arm(&f->start, run_zero_ns + p->start_ns);
	if (p->stop_ns != NEVER_NS)
		timer_arm(&f->stop, run_zero_ns + p->stop_ns);
	if (p->nswitches)
		timer_arm(&f->change, run_zero_ns + p->switches[0].at_ns);
	return 0;
}

int flows_open(const struct plan *p, u64 zero_ns)
{
	int err = 0;

	run_zero_ns = zero_ns;
	nflows = p->nflows;
	flows = calloc(nflows ? nflows : 1, sizeof(*flows));
	if (!flows) {
		fprintf(stderr, "lbe-agent: out of memory\n");
		return -1;
	}
	/* Reports all errors, not only the first. */
	for (u32 i = 0; i < nflows; i++)
		if (flow_open(&flows[i], &p->flows[i]))
			err = -1;
	return err;
}

void flows_close(void)
{
	for (u32 i = 0; i < nflows; i++) {
		udp_close(&flows[i]);
		free(flows[i].trace.packets);
	}
}
