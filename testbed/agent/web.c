// SPDX-License-Identifier: GPL-2.0
/*
 * Web clients, see web.h.
 *
 * A fetch wakes the loop twice: when it is connected (the request is sent) and
 * at the end of the stream.  In between, data stays in the receive buffer below
 * SO_RCVLOWAT, which keeps the ACKs prompt (see sink.c).  SO_RCVLOWAT is not set
 * for objects so small that TCP's initial quick ACKs suffice.  An object needs
 * six system calls, and two to wait.
 */
#define _GNU_SOURCE
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

#include "loop.h"
#include "records.h"
#include "request.h"
#include "rng.h"
#include "sock.h"
#include "web.h"

#define DISCARD_BYTES	(64u << 20)	/* maximum discarded by one recv(MSG_TRUNC) */
#define LOWAT_BYTES	(4 << 20)	/* above the largest object */
#define QUICK_BYTES	8192	/* TCP_MAX_QUICKACKS is 16 segments of 536 or more */
#define DRAIN_NS	NSEC_PER_SEC	/* read interval, limits unread data */
#define SYN_RTO_US	200000		/* TCP_RTO_MIN: earliest SYN retransmission */

struct web {
	const struct web_plan *plan;
	struct rng rng;		/* open: pages and sizes */
	double scale;		/* of the size distribution, bytes */
	struct timer next;	/* open: the next page; session: not used */
	struct timer stop;
	struct timer drain;	/* reads available data, every DRAIN_NS */
	struct session *sessions;
	struct fetch *fetches;	/* open connections */
	u32 nfetches;
	u32 pages;		/* started */
	u64 objects;		/* started */
	u64 failed;		/* objects */
	u64 bytes;		/* received */
	bool stopped;		/* starts no further pages */
};

struct session {
	struct web *web;
	struct rng rng;
	struct timer next;	/* next object of a page, or next page */
	struct page *page;	/* being requested; NULL = between pages */
	u32 asked;		/* its requested objects */
};

struct page {
	struct web *web;
	struct session *session;	/* NULL = open */
	u64 start_ns;
	u64 bytes;		/* received */
	u32 number;
	u32 objects;
	u32 left;		/* objects that are not complete */
	u32 flags;		/* of all its objects, combined by OR */
};

struct fetch {
	struct watch watch;
	struct page *page;
	struct fetch *prev, *next;	/* of web->fetches */
	u64 start_ns;
	u64 got_bytes;
	u64 bytes;		/* requested */
	u32 flags;		/* WEB_* */
	bool connected;
};

static struct web *webs;
static u32 nwebs;
static void *discard;		/* address range without memory, never written */

/* ---- records ---- */

static void page_done(struct page *pg)
{
	const struct web *w = pg->web;
	struct rec_web r = {
		.t_ns = record_since_zero(pg->start_ns),
		.dur_us = (loop_now() - pg->start_ns) / NSEC_PER_USEC,
		.bytes = pg->bytes,
		.page = pg->number,
		.objects = pg->objects,
		.flow = w->plan->id,
		.flags = pg->flags | WEB_PAGE,
	};

	record(REC_WEB, &r, sizeof(r));
	free(pg);
}

static void session_pause(struct session *s);

/* An object of the page has ended; the last one ends the page. */
static void page_object_done(struct page *pg, u32 flags)
{
	struct session *s = pg->session;

	pg->flags |= flags;
	if (--pg->left)
		return;
	page_done(pg);
	if (s)
		session_pause(s);
}

static void fetch_record(const struct fetch *f)
{
	struct rec_web r = {
		.t_ns = record_since_zero(f->start_ns),
		.dur_us = (loop_now() - f->start_ns) / NSEC_PER_USEC,
		.bytes = f->got_bytes,
		.page = f->page->number,
		.objects = f->page->objects,
		.flow = f->page->web->plan->id,
		.flags = f->flags,
	};

	record(REC_WEB, &r, sizeof(r));
}

/* ---- one object ---- */

static void fetch_end(struct fetch *f, u32 flags)
{
	struct page *pg = f->page;
	struct web *w = pg->web;

	f->flags |= flags;
	if (flags & WEB_FAILED)
		w->failed++;
	fetch_record(f);
	if (f->prev)
		f->prev->next = f->next;
	else
		w->fetches = f->next;
	if (f->next)
		f->next->prev = f->prev;
	w->nfetches--;
	watch_close(&f->watch);
	loop_free(f);
	page_object_done(pg, f->flags);
}

static void fetch_connected(struct fetch *f)
{
	struct request r = request_make(f->bytes);
	struct tcp_info i = { 0 };
	socklen_t len = sizeof(i);

	f->connected = true;
	if (loop_now() - f->start_ns >= SYN_RTO_US * NSEC_PER_USEC &&
	    !getsockopt(f->watch.fd, IPPROTO_TCP, TCP_INFO, &i, &len) &&
	    i.tcpi_total_retrans)
		f->flags |= WEB_SYN_RETRANS;
	/* The send buffer of a new socket always has space for 16 bytes. */
	if (send(f->watch.fd, &r, sizeof(r), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    sizeof(r))
		fetch_end(f, WEB_FAILED);
}

/* Reads available data; if hungup, up to the end of the stream. */
static void fetch_drain(struct fetch *f, bool hungup)
{
	ssize_t n;

	do {
		n = recv(f->watch.fd, discard, DISCARD_BYTES,
			 MSG_DONTWAIT | MSG_TRUNC);
		if (n > 0) {
			f->got_bytes += n;
			f->page->bytes += n;
			f->page->web->bytes += n;
		}
	} while (n > 0 && hungup && f->got_bytes < f->bytes);
	/* All bytes and the FIN have arrived: a recv() that returns 0 is not needed. */
	if (hungup && f->got_bytes == f->bytes)
		fetch_end(f, 0);
	else if (n == 0 || (n < 0 && errno != EAGAIN))
		fetch_end(f, WEB_FAILED);
}

static void fetch_ready(struct watch *w, u32 events)
{
	struct fetch *f = container_of(w, struct fetch, watch);

	if (!f->connected && events & (EPOLLERR | EPOLLHUP)) {
		fetch_end(f, WEB_FAILED);
		return;
	}
	if (!f->connected && events & EPOLLOUT)
		fetch_connected(f);
	if (w->fd >= 0 && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		fetch_drain(f, true);
}

static int fetch_socket(const struct web_plan *p, u64 bytes, char *why)
{
	int family = p->to.any.sa_family;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		snprintf(why, SOCK_ERROR_LEN, "socket: %s", strerror(errno));
		return -1;
	}
	if (sock_apply(fd, family, &p->opts, why)) {
		close(fd);
		return -1;
	}
	if (bytes > QUICK_BYTES)
		sock_set(fd, SOL_SOCKET, SO_RCVLOWAT, LOWAT_BYTES);
	return fd;
}

/* Starts a fetch; an object that cannot be started is recorded as failed. */
static void fetch_begin(struct page *pg, u64 bytes)
{
	struct web *w = pg->web;
	const struct web_plan *p = w->plan;
	struct fetch *f = calloc(1, sizeof(*f));
	char why[SOCK_ERROR_LEN];

	w->objects++;
	if (!f) {
		event_error(p->id, "out of memory");
		page_object_done(pg, WEB_FAILED);
		return;
	}
	f->page = pg;
	f->bytes = bytes;
	f->start_ns = loop_now();
	f->watch.ready = fetch_ready;
	f->watch.fd = -1;
	f->next = w->fetches;
	if (f->next)
		f->next->prev = f;
	w->fetches = f;
	if (w->nfetches++ < p->conns_max)
		f->watch.fd = fetch_socket(p, bytes, why);
	if (f->watch.fd < 0 ||
	    (connect(f->watch.fd, &p->to.any, address_len(&p->to)) &&
	     errno != EINPROGRESS) ||
	    watch_add(&f->watch, EPOLLOUT | EPOLLRDHUP | EPOLLET))
		fetch_end(f, WEB_FAILED);
}

/* ---- pages ---- */

static u64 draw_size(const struct web *w, struct rng *r)
{
	double x = rng_pareto2(r, w->plan->shape, w->scale);

	if (x < w->plan->min_bytes)
		return w->plan->min_bytes;
	if (x > w->plan->max_bytes)
		return w->plan->max_bytes;
	return llround(x);
}

static struct page *page_begin(struct web *w, struct session *s, u32 objects)
{
	struct page *pg = calloc(1, sizeof(*pg));

	if (!pg) {
		event_error(w->plan->id, "out of memory");
		return NULL;
	}
	pg->web = w;
	pg->session = s;
	pg->start_ns = loop_now();
	pg->number = w->pages++;
	pg->objects = objects;
	pg->left = objects;
	return pg;
}

/*
 * Open loop: all objects of the page at once.  The time of the next page counts
 * from the nominal time of this one, so that the load is exact.
 */
static void open_page(struct timer *t, u64 now_ns)
{
	struct web *w = container_of(t, struct web, next);
	const struct web_plan *p = w->plan;
	u32 objects = rng_between(&w->rng, 1, p->objects);
	struct page *pg = page_begin(w, NULL, objects);
	double wait_s, total = 0;

	(void)now_ns;
	if (!pg)
		return;
	for (u32 i = 0; i < objects; i++) {
		u64 bytes = draw_size(w, &w->rng);

		total += bytes;
		/* This frees the page if its last object fails at once. */
		fetch_begin(pg, bytes);
	}
	if (p->pace == PACE_POISSON)
		total = rng_exponential(&w->rng, p->mean_bytes *
					(1 + p->objects) / 2.0);
	wait_s = 8.0 * total / p->rate_bps;
	timer_arm(t, t->at_ns + 1 + (u64)(wait_s * NSEC_PER_SEC));
}

/* Closed loop: requests one object, after a pause the first one of a page. */
static void session_next(struct timer *t, u64 now_ns)
{
	struct session *s = container_of(t, struct session, next);
	const struct web_plan *p = s->web->plan;
	struct page *pg = s->page;
	u64 wait_ns;

	(void)now_ns;
	if (!pg) {
		if (s->web->stopped)
			return;
		pg = page_begin(s->web, s, p->objects);
		if (!pg)
			return;
		s->page = pg;
		s->asked = 0;
	}
	/* Before the fetch, since a fetch that fails at once may end the page. */
	if (++s->asked < p->objects) {
		wait_ns = rng_exponential(&s->rng, p->object_ns);
		timer_arm(t, t->at_ns + 1 + wait_ns);
	} else {
		s->page = NULL;
	}
	fetch_begin(pg, draw_size(s->web, &s->rng));
}

static void session_pause(struct session *s)
{
	timer_arm(&s->next, loop_now() + 1 +
		  (u64)rng_exponential(&s->rng, s->web->plan->page_ns));
}

/* ---- clients ---- */

static void web_stop(struct timer *t, u64 now_ns)
{
	struct web *w = container_of(t, struct web, stop);

	(void)now_ns;
	w->stopped = true;
	timer_cancel(&w->next);
}

static void web_drain(struct timer *t, u64 now_ns)
{
	struct web *w = container_of(t, struct web, drain);
	struct fetch *f, *next;

	(void)now_ns;
	for (f = w->fetches; f; f = next) {
		next = f->next;
		if (f->connected)
			fetch_drain(f, false);
	}
	timer_arm(t, t->at_ns + DRAIN_NS);
}

static int sessions_open(struct web *w, u64 start_ns)
{
	const struct web_plan *p = w->plan;

	w->sessions = calloc(p->sessions, sizeof(*w->sessions));
	if (!w->sessions) {
		fprintf(stderr, "lbe-agent: out of memory\n");
		return -1;
	}
	for (u32 i = 0; i < p->sessions; i++) {
		struct session *s = &w->sessions[i];

		s->web = w;
		s->next = (struct timer){ .fire = session_next,
					  .rank = RANK_SEND };
		/* A separate random stream, so that sessions do not affect each other. */
		rng_seed(&s->rng, rng_mix(p->seed) + i);
		timer_arm(&s->next, start_ns + 1 +
			  (u64)rng_exponential(&s->rng, p->page_ns));
	}
	return 0;
}

static int web_open(struct web *w, const struct web_plan *p, u64 zero_ns)
{
	u64 start_ns = zero_ns + p->start_ns;
	char why[SOCK_ERROR_LEN];
	int fd = fetch_socket(p, p->max_bytes, why);

	w->plan = p;
	if (fd < 0) {
		event_error(p->id, "%s", why);
		return -1;
	}
	close(fd);
	rng_seed(&w->rng, p->seed);
	w->scale = pareto2_cut_scale(p->shape, p->mean_bytes, p->min_bytes,
				     p->max_bytes);
	w->next = (struct timer){ .fire = open_page, .rank = RANK_SEND };
	w->stop = (struct timer){ .fire = web_stop, .rank = RANK_SEND };
	w->drain = (struct timer){ .fire = web_drain, .rank = RANK_DRAIN };
	timer_arm(&w->drain, start_ns + DRAIN_NS);
	if (p->stop_ns != NEVER_NS)
		timer_arm(&w->stop, zero_ns + p->stop_ns);
	if (p->kind == WEB_SESSION)
		return sessions_open(w, start_ns);
	timer_arm(&w->next, start_ns);
	return 0;
}

int webs_open(const struct plan *p, u64 zero_ns)
{
	nwebs = p->nwebs;
	webs = calloc(nwebs ? nwebs : 1, sizeof(*webs));
	discard = mmap(NULL, DISCARD_BYTES, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!webs || discard == MAP_FAILED) {
		fprintf(stderr, "lbe-agent: out of memory\n");
		return -1;
	}
	for (u32 i = 0; i < nwebs; i++)
		if (web_open(&webs[i], &p->webs[i], zero_ns))
			return -1;
	return 0;
}

void webs_sample(u64 t_ns)
{
	for (u32 i = 0; i < nwebs; i++) {
		struct rec_recv r = { .t_ns = t_ns, .flow = webs[i].plan->id,
				      .bytes = webs[i].bytes };

		record(REC_RECV, &r, sizeof(r));
	}
}

void webs_close(void)
{
	for (u32 i = 0; i < nwebs; i++) {
		struct web *w = &webs[i];
		u64 objects = w->objects, failed = w->failed;
		u32 open = w->nfetches;

		/* Open fetches are recorded; no further pages start. */
		w->stopped = true;
		while (w->fetches)
			fetch_end(w->fetches, WEB_UNFINISHED);
		event(w->plan->id, "web", "pages=%u objects=%" PRIu64
		      " failed=%" PRIu64 " unfinished=%u bytes=%" PRIu64,
		      w->pages, objects, failed, open, w->bytes);
	}
}
