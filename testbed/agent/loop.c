// SPDX-License-Identifier: GPL-2.0
/* Timers and ready descriptors, see loop.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define EVENTS_AT_ONCE	256	/* further ones are returned by the next call */

static struct {
	int epoll_fd;
	int timer_fd;
	u64 now_ns;		/* clock at or after the last wake-up; 0 = not read */
	u64 armed_ns;		/* time that timer_fd is set to */
	u64 sequence;		/* number of timers armed since the start */
	struct timer **heap;
	size_t timers;		/* used slots of heap */
	size_t heap_size;
	void **garbage;		/* memory of loop_free() until the batch is done */
	size_t garbage_used;
	size_t garbage_size;
	volatile sig_atomic_t stop;
} loop = { .epoll_fd = -1, .timer_fd = -1 };

static void out_of_memory(void)
{
	fprintf(stderr, "lbe-agent: out of memory\n");
	exit(1);
}

static void *grow(void *array, size_t *size, size_t item)
{
	*size = *size ? *size * 2 : 64;
	array = realloc(array, *size * item);
	if (!array)
		out_of_memory();
	return array;
}

u64 loop_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

u64 loop_now(void)
{
	if (!loop.now_ns)
		loop.now_ns = loop_clock();
	return loop.now_ns;
}

int sleep_until(u64 at_ns)
{
	struct timespec ts = {
		.tv_sec = at_ns / NSEC_PER_SEC,
		.tv_nsec = at_ns % NSEC_PER_SEC,
	};
	int err;

	do {
		err = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts,
				      NULL);
	} while (err == EINTR);
	return -err;
}

/* ---- heap of timers ---- */

static bool before(const struct timer *a, const struct timer *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	return a->order < b->order;
}

static void put(struct timer *t, size_t slot)
{
	loop.heap[slot] = t;
	t->slot = slot + 1;
}

static void sift_up(struct timer *t, size_t slot)
{
	while (slot) {
		size_t parent = (slot - 1) / 2;

		if (!before(t, loop.heap[parent]))
			break;
		put(loop.heap[parent], slot);
		slot = parent;
	}
	put(t, slot);
}

static void sift_down(struct timer *t, size_t slot)
{
	for (;;) {
		size_t child = 2 * slot + 1;

		if (child >= loop.timers)
			break;
		if (child + 1 < loop.timers &&
		    before(loop.heap[child + 1], loop.heap[child]))
			child++;
		if (!before(loop.heap[child], t))
			break;
		put(loop.heap[child], slot);
		slot = child;
	}
	put(t, slot);
}

void timer_cancel(struct timer *t)
{
	struct timer *last;
	size_t slot;

	if (!t->slot)
		return;
	slot = t->slot - 1;
	t->slot = 0;
	last = loop.heap[--loop.timers];
	if (last == t)
		return;
	if (slot && before(last, loop.heap[(slot - 1) / 2]))
		sift_up(last, slot);
	else
		sift_down(last, slot);
}

void timer_arm(struct timer *t, u64 at_ns)
{
	timer_cancel(t);
	if (at_ns == NEVER_NS)
		return;
	if (loop.timers == loop.heap_size)
		loop.heap = grow(loop.heap, &loop.heap_size,
				 sizeof(loop.heap[0]));
	t->at_ns = at_ns;
	t->order = (u64)t->rank << 56 | loop.sequence++;
	sift_up(t, loop.timers++);
}

/* ---- descriptors ---- */

int watch_add(struct watch *w, u32 events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, w->fd, &ev))
		return -errno;
	return 0;
}

void watch_close(struct watch *w)
{
	if (w->fd < 0)
		return;
	close(w->fd);
	w->fd = -1;
}

void loop_free(void *memory)
{
	if (loop.garbage_used == loop.garbage_size)
		loop.garbage = grow(loop.garbage, &loop.garbage_size,
				    sizeof(loop.garbage[0]));
	loop.garbage[loop.garbage_used++] = memory;
}

/* ---- the loop ---- */

int loop_init(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	/* The default slack of 50 us would change the spacing of packets. */
	prctl(PR_SET_TIMERSLACK, 1ul);
	loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop.timer_fd = timerfd_create(CLOCK_MONOTONIC,
				       TFD_NONBLOCK | TFD_CLOEXEC);
	if (loop.epoll_fd < 0 || loop.timer_fd < 0)
		return -errno;
	/* data.ptr NULL marks the timer; edge-triggered, so that it need not be read */
	if (epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, loop.timer_fd, &ev))
		return -errno;
	loop.armed_ns = NEVER_NS;
	return 0;
}

void loop_stop(void)
{
	loop.stop = 1;
}

static void fire_due(void)
{
	u64 now_ns = loop_now();

	while (!loop.stop && loop.timers && loop.heap[0]->at_ns <= now_ns) {
		struct timer *t = loop.heap[0];

		timer_cancel(t);
		t->fire(t, now_ns);
	}
}

/* Sets the timerfd to the first timer; if its time has passed, it fires at once. */
static int arm_first(void)
{
	u64 next = loop.timers ? loop.heap[0]->at_ns : NEVER_NS;
	struct itimerspec its = {
		.it_value.tv_sec = next / NSEC_PER_SEC,
		.it_value.tv_nsec = next % NSEC_PER_SEC,
	};

	if (next == loop.armed_ns || next == NEVER_NS)
		return 0;
	if (timerfd_settime(loop.timer_fd, TFD_TIMER_ABSTIME, &its, NULL))
		return -errno;
	loop.armed_ns = next;
	return 0;
}

/* Handles one batch of events, or one time-out. */
static int wait_ready(void)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n, err = arm_first();

	if (err)
		return err;
	n = epoll_wait(loop.epoll_fd, events, EVENTS_AT_ONCE, -1);
	loop.now_ns = 0;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	/* Timers that are due come first: a sample counts earlier arrivals only. */
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr)
			continue;
		loop.armed_ns = NEVER_NS;
		fire_due();
	}
	for (int i = 0; i < n; i++) {
		struct watch *w = events[i].data.ptr;

		if (w && w->fd >= 0)
			w->ready(w, events[i].events);
	}
	while (loop.garbage_used)
		free(loop.garbage[--loop.garbage_used]);
	return 0;
}

int loop_run(void)
{
	int err = 0;

	while (!loop.stop && !err)
		err = wait_ready();
	return err;
}
