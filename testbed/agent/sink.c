// SPDX-License-Identifier: GPL-2.0
/*
 * Sinks.
 *
 * ACKs are prompt although reads are few: with unread data and a window that
 * does not advance, TCP delays an ACK until the delayed-ACK timer
 * (__tcp_ack_snd_check()), except while less than SO_RCVLOWAT is unread.  Then
 * it acknowledges every second segment, as if the application had read at once.
 * The end of a stream wakes the loop (EPOLLRDHUP), so completion times do not
 * depend on the next read.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sink.h"
#include "sock.h"
#include "stream.h"

#define DISCARD_BYTES	(64u << 20)	/* maximum discarded by one recv(MSG_TRUNC) */
#define VERIFY_BYTES	(256u << 10)	/* read and compared at once */
#define UDP_BUF_BYTES	(16u << 20)	/* for packets that arrive between two reads */
#define UDP_BATCH	256		/* packets of one recvmmsg() */
#define BACKLOG		4096		/* connections waiting for accept() */

static struct sink *sinks;
static u32 nsinks;
static u64 run_zero_ns;		/* CLOCK_MONOTONIC of experiment time 0 */
static void *discard;		/* address range without memory, never written */
static u8 verify_buf[VERIFY_BYTES];

/* ---- one TCP connection ---- */

static void conn_close(struct sink_conn *c)
{
	struct sink_conn **at = &c->sink->conns;
	const struct sink_plan *p = c->sink->plan;

	if (p->verify && c->corrupt_at == NEVER_NS)
		event(p->flow, "verified", "conn=%u bytes=%" PRIu64, c->index,
		      c->bytes);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	watch_close(&c->watch);
	event(p->flow, "close", "conn=%u", c->index);
	loop_free(c);
}

/* Compares the data in verify_buf with the stream; reports the first fault. */
static void conn_compare(struct sink_conn *c, size_t len)
{
	const struct sink_plan *p = c->sink->plan;
	size_t good;

	if (c->corrupt_at != NEVER_NS)
		return;
	good = stream_match(p->seed, c->bytes, verify_buf, len);
	if (good == len)
		return;
	c->corrupt_at = c->bytes + good;
	event(p->flow, "corrupt", "conn=%u at=%" PRIu64, c->index,
	      c->corrupt_at);
	event_error(p->flow, "corrupt stream conn=%u at=%" PRIu64, c->index,
		    c->corrupt_at);
}

/* Calls recv() once for at most len bytes; returns its result. */
static ssize_t conn_recv(struct sink_conn *c, size_t len)
{
	bool verify = c->sink->plan->verify;
	ssize_t n;

	if (verify)
		n = recv(c->watch.fd, verify_buf,
			 min_u64(len, sizeof(verify_buf)), MSG_DONTWAIT);
	else
		n = recv(c->watch.fd, discard, min_u64(len, DISCARD_BYTES),
			 MSG_DONTWAIT | MSG_TRUNC);
	if (n > 0) {
		if (verify)
			conn_compare(c, n);
		sock_clamp_again(c->watch.fd, &c->sink->plan->opts);
		c->bytes += n;
		c->sink->bytes += n;
	}
	return n;
}

static void conn_eof(struct sink_conn *c)
{
	event(c->sink->plan->flow, "finished",
	      "conn=%u bytes=%" PRIu64 " us=%" PRIu64, c->index, c->bytes,
	      (loop_now() - c->accepted_ns) / NSEC_PER_USEC);
	conn_close(c);
}

/*
 * Reads up to limit bytes.  A short read has emptied the socket, so the call
 * that would return EAGAIN is omitted; only at the end of the stream (hungup)
 * the last call is necessary.
 */
static u64 conn_drain(struct sink_conn *c, u64 limit, bool hungup)
{
	size_t piece = c->sink->plan->verify ? VERIFY_BYTES : DISCARD_BYTES;
	u64 total = 0;

	while (total < limit || hungup) {
		size_t want = min_u64(max_u64(limit - total, 1), piece);
		ssize_t n = conn_recv(c, want);

		if (n > 0) {
			total += n;
			if (n < want && !hungup)
				break;
			continue;
		}
		if (n == 0) {
			conn_eof(c);
		} else if (errno != EAGAIN && errno != EINTR) {
			event(c->sink->plan->flow, "reset",
			      "conn=%u bytes=%" PRIu64 " %s", c->index,
			      c->bytes, strerror(errno));
			conn_close(c);
		}
		break;
	}
	return total;
}

static void conn_ready(struct watch *w, u32 events)
{
	struct sink_conn *c = container_of(w, struct sink_conn, watch);
	bool hungup = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

	/* A slow reader keeps its rate at the end of the stream too. */
	if (c->sink->plan->mode != MODE_SLOW || events & EPOLLERR)
		conn_drain(c, NEVER_NS, hungup);
}

static int conn_setup(struct sink_conn *c)
{
	const struct sink_plan *p = c->sink->plan;
	u32 events = EPOLLRDHUP | EPOLLET;

	if (p->mode == MODE_EVERY)
		events |= EPOLLIN;
	if (p->mode == MODE_PROMPT)
		sock_set(c->watch.fd, SOL_SOCKET, SO_RCVLOWAT, p->lowat_bytes);
	return watch_add(&c->watch, events);
}

static void conn_accepted(struct sink *s, int fd, const union address *peer)
{
	struct sink_conn *c = calloc(1, sizeof(*c));
	char text[INET6_ADDRSTRLEN] = "?";

	if (!c) {
		close(fd);
		event_error(s->plan->flow, "out of memory");
		return;
	}
	c->watch.ready = conn_ready;
	c->watch.fd = fd;
	c->sink = s;
	c->index = s->accepted++;
	c->accepted_ns = loop_now();
	c->corrupt_at = NEVER_NS;
	c->next = s->conns;
	s->conns = c;
	if (peer->any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &peer->v6.sin6_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET, &peer->v4.sin_addr, text, sizeof(text));
	event(s->plan->flow, "accept", "conn=%u peer=%s/%u", c->index, text,
	      ntohs(peer->v4.sin_port));
	if (conn_setup(c)) {
		event_error(s->plan->flow, "epoll conn=%u %s", c->index,
			    strerror(errno));
		conn_close(c);
	}
}

static void tcp_accept(struct sink *s, struct watch *w)
{
	for (;;) {
		union address peer;
		socklen_t len = sizeof(peer);
		int fd = accept4(w->fd, &peer.any, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			conn_accepted(s, fd, &peer);
		else if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
	if (errno != EAGAIN)
		event_error(s->plan->flow, "accept: %s", strerror(errno));
}

/* ---- UDP ---- */

/* Time at which the kernel received a packet (SO_TIMESTAMPNS); 0 = unknown. */
static u64 udp_arrival_ns(struct msghdr *msg)
{
	struct cmsghdr *c;
	struct timespec at;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&at, CMSG_DATA(c), sizeof(at));
			return at.tv_sec * NSEC_PER_SEC + at.tv_nsec;
		}
	return 0;
}

/* Stores the delay of a stamped packet for the percentiles. */
static void udp_keep_delay(struct sink *s, u64 delay_ns)
{
	if (s->stamped == s->delays_room) {
		u64 room = s->delays_room ? 2 * s->delays_room : 1024;
		u64 *more = realloc(s->delays_ns, room * sizeof(*more));

		if (!more) {
			event_error(s->plan->flow, "out of memory");
			return;
		}
		s->delays_ns = more;
		s->delays_room = room;
	}
	s->delays_ns[s->stamped++] = delay_ns;
	s->delay_ns += delay_ns;
	s->max_delay_ns = max_u64(s->max_delay_ns, delay_ns);
}

static int udp_compare_delays(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return (left > right) - (left < right);
}

/*
 * The delay that pct percent of the packets did not exceed (nearest rank).
 * The delays must be sorted; 0 if there is none.
 */
static u64 udp_percentile(const struct sink *s, u64 pct)
{
	if (!s->stamped)
		return 0;
	return s->delays_ns[max_u64((s->stamped * pct + 99) / 100, 1) - 1];
}

static void udp_report(struct sink *s)
{
	if (s->stamped)
		qsort(s->delays_ns, s->stamped, sizeof(*s->delays_ns),
		      udp_compare_delays);
	event(s->plan->flow, "received",
	      "packets=%" PRIu64 " bytes=%" PRIu64 " stamped=%" PRIu64
	      " delay_ns=%" PRIu64 " max_delay_ns=%" PRIu64
	      " p50_delay_ns=%" PRIu64 " p95_delay_ns=%" PRIu64
	      " p99_delay_ns=%" PRIu64,
	      s->packets, s->bytes, s->stamped, s->delay_ns, s->max_delay_ns,
	      udp_percentile(s, 50), udp_percentile(s, 95),
	      udp_percentile(s, 99));
	free(s->delays_ns);
	s->delays_ns = NULL;
}

static void udp_count(struct sink *s, struct mmsghdr *m, u64 stamp_ns)
{
	u64 arrival_ns = udp_arrival_ns(&m->msg_hdr);

	s->packets++;
	s->bytes += m->msg_len;
	/* Shorter packets have no stamp; a stamp in the future is not the agent's. */
	if (m->msg_len < sizeof(stamp_ns) || arrival_ns < stamp_ns)
		return;
	udp_keep_delay(s, arrival_ns - stamp_ns);
}

static void udp_drain(struct sink *s, int fd)
{
	static char control[UDP_BATCH][CMSG_SPACE(sizeof(struct timespec))];
	static struct mmsghdr msgs[UDP_BATCH];
	static struct iovec parts[UDP_BATCH];
	static u64 stamps_ns[UDP_BATCH];
	int n;

	do {
		for (int i = 0; i < UDP_BATCH; i++) {
			parts[i] = (struct iovec){ &stamps_ns[i],
						   sizeof(stamps_ns[i]) };
			msgs[i].msg_hdr = (struct msghdr){
				.msg_iov = &parts[i],
				.msg_iovlen = 1,
				.msg_control = control[i],
				.msg_controllen = sizeof(control[i]),
			};
		}
		n = recvmmsg(fd, msgs, UDP_BATCH, MSG_DONTWAIT | MSG_TRUNC,
			     NULL);
		for (int i = 0; i < n; i++)
			udp_count(s, &msgs[i], stamps_ns[i]);
	} while (n == UDP_BATCH);
}

/* ---- sinks ---- */

static void sink_drain(struct sink *s)
{
	struct sink_conn *c, *next;

	if (s->plan->proto == PROTO_UDP) {
		for (int i = 0; i < ARRAY_SIZE(s->listener); i++)
			if (s->listener[i].fd >= 0)
				udp_drain(s, s->listener[i].fd);
		return;
	}
	for (c = s->conns; c; c = next) {
		next = c->next;
		conn_drain(c, NEVER_NS, false);
	}
}

/* The connections share the rate; newer ones are served first. */
static void sink_drain_slowly(struct sink *s, u64 at_ns)
{
	struct sink_conn *c, *next;
	u64 allowed;

	if (!s->conns) {
		s->slow_since_ns = at_ns;
		s->read_bytes = 0;
		return;
	}
	allowed = (u128)s->plan->rate_bps * (at_ns - s->slow_since_ns) /
		  (8 * NSEC_PER_SEC);
	for (c = s->conns; c && s->read_bytes < allowed; c = next) {
		next = c->next;
		s->read_bytes += conn_drain(c, allowed - s->read_bytes, false);
	}
}

static void sink_read(struct timer *t, u64 now_ns)
{
	struct sink *s = container_of(t, struct sink, read);
	u64 late_ns = now_ns - run_zero_ns;

	if (s->plan->mode == MODE_SLOW)
		sink_drain_slowly(s, t->at_ns);
	else
		sink_drain(s);
	/* A late reader does not make up for each missed step, but keeps to
	 * the steps.
	 */
	timer_arm(t, max_u64(t->at_ns + s->plan->read_ns,
			     now_ns - late_ns % s->plan->read_ns));
}

static void sink_ready(struct watch *w, u32 events)
{
	/* w is listener[0] (IPv4) or [1] (IPv6) of a sink */
	struct sink *s;

	(void)events;
	for (s = sinks; s < sinks + nsinks; s++)
		if (w >= s->listener &&
		    w < s->listener + ARRAY_SIZE(s->listener))
			break;
	if (s->plan->proto == PROTO_UDP)
		udp_drain(s, w->fd);
	else
		tcp_accept(s, w);
}

static int sink_listen(struct sink *s, struct watch *w, int family, char *why)
{
	const struct sink_plan *p = s->plan;
	bool tcp = p->proto == PROTO_TCP;
	u32 events = EPOLLIN | EPOLLET;

	w->ready = sink_ready;
	w->fd = socket(family, SOCK_CLOEXEC | SOCK_NONBLOCK |
		       (tcp ? SOCK_STREAM : SOCK_DGRAM), 0);
	if (w->fd < 0) {
		snprintf(why, SOCK_ERROR_LEN, "socket: %s", strerror(errno));
		return family == AF_INET6 ? 0 : -1;
	}
	if (sock_apply(w->fd, family, &p->opts, why) ||
	    sock_bind_port(w->fd, family, p->port, why))
		return -1;
	if (!tcp)
		sock_set(w->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	if (!tcp && !p->opts.rcvbuf_bytes)
		sock_set_buffer(w->fd, false, UDP_BUF_BYTES);
	if (tcp && listen(w->fd, BACKLOG)) {
		snprintf(why, SOCK_ERROR_LEN, "listen on port %u: %s", p->port,
			 strerror(errno));
		return -1;
	}
	/* UDP sockets that are read on a timer need no wake-ups. */
	return tcp || p->mode == MODE_EVERY ? watch_add(w, events) : 0;
}

static int sink_open(struct sink *s, const struct sink_plan *p)
{
	char why[SOCK_ERROR_LEN] = "epoll";

	s->plan = p;
	s->listener[1].fd = -1;
	s->slow_since_ns = run_zero_ns;
	s->read = (struct timer){ .fire = sink_read, .rank = RANK_DRAIN };
	if (sink_listen(s, &s->listener[0], AF_INET, why) ||
	    sink_listen(s, &s->listener[1], AF_INET6, why)) {
		event_error(p->flow, "%s", why);
		return -1;
	}
	event(p->flow, "listen", "port=%u", p->port);
	if (p->mode != MODE_EVERY)
		timer_arm(&s->read, run_zero_ns + p->read_ns);
	return 0;
}

int sinks_open(const struct plan *p, u64 zero_ns)
{
	int err = 0;

	run_zero_ns = zero_ns;
	nsinks = p->nsinks;
	sinks = calloc(nsinks ? nsinks : 1, sizeof(*sinks));
	discard = mmap(NULL, DISCARD_BYTES, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!sinks || discard == MAP_FAILED) {
		fprintf(stderr, "lbe-agent: out of memory\n");
		return -1;
	}
	for (u32 i = 0; i < nsinks; i++)
		if (sink_open(&sinks[i], &p->sinks[i]))
			err = -1;
	return err;
}

void sinks_sample(u64 t_ns)
{
	for (u32 i = 0; i < nsinks; i++) {
		struct sink *s = &sinks[i];
		struct rec_recv r = { .t_ns = t_ns, .flow = s->plan->flow };

		if (s->plan->mode == MODE_PROMPT)
			sink_drain(s);
		r.bytes = s->bytes;
		record(REC_RECV, &r, sizeof(r));
	}
}

void sinks_close(void)
{
	for (u32 i = 0; i < nsinks; i++) {
		struct sink *s = &sinks[i];

		if (s->plan->proto == PROTO_UDP)
			udp_report(s);
		while (s->conns)
			conn_close(s->conns);
	}
}
