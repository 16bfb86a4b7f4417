// SPDX-License-Identifier: GPL-2.0
/*
 * Web server: reads a request, sends the object, closes; see web.h.
 *
 * TCP_DEFER_ACCEPT is set, as in large servers: a connection can be accepted
 * when its request has arrived.  An object that fits into the socket then needs
 * one wake-up and five system calls (epoll_wait, accept, recv, send, shutdown).
 * The socket is closed one or two seconds later.  A socket closed at once would
 * be an orphan and count against tcp_max_orphans; by then most clients have
 * closed too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"
#include "records.h"
#include "request.h"
#include "sock.h"
#include "web.h"

#define BLOCK_BYTES	(1u << 20)	/* maximum size of one send() */
#define SNDBUF_BYTES	(4u << 20)	/* an object of the largest usual size */
#define BACKLOG		4096
#define DEFER_S		5		/* a later request is read too */
#define SWEEP_NS	NSEC_PER_SEC	/* short: an open socket holds a page of tcp_mem */

struct server {
	const struct server_plan *plan;
	struct watch listener[2];	/* IPv4, IPv6 */
	struct timer sweep;
	u64 objects;			/* complete: all data written to the socket */
	u64 bytes;			/* of all answers, written to sockets */
	u64 broken;			/* ended before they were complete */
	struct answer *done[2];		/* complete answers; [1] is closed next */
	u32 open;			/* answers that are not complete */
};

struct answer {
	struct watch watch;
	struct server *server;
	struct answer *next;		/* of server->done */
	u64 left_bytes;			/* still to be written */
	bool asked;			/* the request was read */
	bool watched;			/* watch was added to the loop */
};

static struct server *servers;
static u32 nservers;
static const u8 block[BLOCK_BYTES];

static void answer_broken(struct answer *a)
{
	a->server->broken++;
	a->server->open--;
	watch_close(&a->watch);
	loop_free(a);
}

static void answer_done(struct answer *a)
{
	struct server *s = a->server;

	shutdown(a->watch.fd, SHUT_WR);
	s->objects++;
	s->open--;
	a->next = s->done[0];
	s->done[0] = a;
}

/* Waits for the request, or for space in the send buffer. */
static void answer_wait(struct answer *a)
{
	if (a->watched)
		return;
	a->watched = true;
	if (watch_add(&a->watch, EPOLLIN | EPOLLOUT | EPOLLET)) {
		event_error(a->server->plan->flow, "epoll: %s",
			    strerror(errno));
		answer_broken(a);
	}
}

static void answer_pump(struct answer *a)
{
	while (a->left_bytes) {
		size_t want = min_u64(a->left_bytes, BLOCK_BYTES);
		ssize_t n = send(a->watch.fd, block, want,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN) {
			answer_broken(a);
			return;
		}
		if (n > 0) {
			a->left_bytes -= n;
			a->server->bytes += n;
		}
		if (n < (ssize_t)want) {
			answer_wait(a);
			return;
		}
	}
	answer_done(a);
}

static void answer_go_on(struct answer *a)
{
	struct request r;
	ssize_t n;

	if (!a->asked) {
		n = recv(a->watch.fd, &r, sizeof(r), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			answer_wait(a);
			return;
		}
		/* The 16 bytes come in one segment; fewer are not a valid request. */
		if (n != sizeof(r) || !request_valid(&r)) {
			answer_broken(a);
			return;
		}
		a->asked = true;
		a->left_bytes = r.bytes;
	}
	answer_pump(a);
}

static void answer_ready(struct watch *w, u32 events)
{
	struct answer *a = container_of(w, struct answer, watch);

	(void)events;
	/* A complete answer waits for the sweep. */
	if (!a->asked || a->left_bytes)
		answer_go_on(a);
}

/* Closes the answers that were completed at least a period ago. */
static void server_sweep(struct timer *t, u64 now_ns)
{
	struct server *s = container_of(t, struct server, sweep);
	struct answer *a, *next;

	for (a = s->done[1]; a; a = next) {
		next = a->next;
		watch_close(&a->watch);
		loop_free(a);
	}
	s->done[1] = s->done[0];
	s->done[0] = NULL;
	timer_arm(t, now_ns + SWEEP_NS);
}

/* Accepts one connection; the listener stays ready while there are more. */
static void server_accept(struct server *s, struct watch *w)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct answer *a;

	if (fd < 0) {
		if (errno != ECONNABORTED && errno != EAGAIN)
			event_error(s->plan->flow, "accept: %s",
				    strerror(errno));
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		close(fd);
		event_error(s->plan->flow, "out of memory");
		return;
	}
	a->watch.ready = answer_ready;
	a->watch.fd = fd;
	a->server = s;
	s->open++;
	answer_go_on(a);
}

static void server_ready(struct watch *w, u32 events)
{
	(void)events;
	for (u32 i = 0; i < nservers; i++)
		if (w == &servers[i].listener[0] ||
		    w == &servers[i].listener[1])
			server_accept(&servers[i], w);
}

/* Accepted sockets inherit all options set here. */
static int server_listen(const struct server_plan *p, struct watch *w,
			 int family, char *why)
{
	w->ready = server_ready;
	w->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0) {
		snprintf(why, SOCK_ERROR_LEN, "socket: %s", strerror(errno));
		return family == AF_INET6 ? 0 : -1;
	}
	sock_set(w->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, p->lowat_bytes);
	if (!p->opts.sndbuf_bytes)
		sock_set(w->fd, SOL_SOCKET, SO_SNDBUFFORCE, SNDBUF_BYTES / 2);
	if (sock_apply(w->fd, family, &p->opts, why) ||
	    sock_bind_port(w->fd, family, p->port, why))
		return -1;
	if (listen(w->fd, BACKLOG)) {
		snprintf(why, SOCK_ERROR_LEN, "listen on port %u: %s", p->port,
			 strerror(errno));
		return -1;
	}
	sock_set(w->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_S);
	return watch_add(w, EPOLLIN);
}

int servers_open(const struct plan *p)
{
	char why[SOCK_ERROR_LEN] = "epoll";

	nservers = p->nservers;
	servers = calloc(nservers ? nservers : 1, sizeof(*servers));
	if (!servers) {
		fprintf(stderr, "lbe-agent: out of memory\n");
		return -1;
	}
	for (u32 i = 0; i < nservers; i++) {
		const struct server_plan *s = &p->servers[i];

		servers[i].plan = s;
		servers[i].listener[1].fd = -1;
		servers[i].sweep = (struct timer){ .fire = server_sweep,
						   .rank = RANK_DRAIN };
		if (server_listen(s, &servers[i].listener[0], AF_INET, why) ||
		    server_listen(s, &servers[i].listener[1], AF_INET6, why)) {
			event_error(s->flow, "%s", why);
			return -1;
		}
		event(s->flow, "listen", "port=%u", s->port);
		timer_arm(&servers[i].sweep, loop_now() + SWEEP_NS);
	}
	return 0;
}

void servers_close(void)
{
	for (u32 i = 0; i < nservers; i++) {
		const struct server *s = &servers[i];

		event(s->plan->flow, "served", "objects=%" PRIu64 " bytes=%"
		      PRIu64 " broken=%" PRIu64 " open=%u", s->objects,
		      s->bytes, s->broken, s->open);
	}
}
