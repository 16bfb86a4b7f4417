/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What background connections do: how fast each is, and what holds it back.
 *
 * A look reads vulture's connections (what this machine receives) and the
 * sockets with a less-than-best-effort congestion control (what it sends).
 * Rates, holders and pauses are differences of two looks.
 *
 * Who holds a connection back, in the order in which it is tested:
 *
 *	down	application	it leaves more unread than TCP's window has room for
 *		us		the law allows less than a packet: it has yielded
 *		sender		less than half the window comes in a round trip
 *		receiver	TCP's own window is the smaller one
 *		us		the law's window is full
 *	up	application	it had nothing to send for more than half the time
 *		receiver	the peer's window was full for more than half of the rest
 *		application	its send buffer was too small for that long
 *		us		the congestion control
 *
 * Others' pauses: a connection has yielded while we hold it below 1/8 of the
 * path's capacity. What it moves later, until it yields again, it moves while
 * others pause. 1/8 lies well above what a yielding law keeps (a packet now and
 * then) and well below a share of a path that is free for two or three.
 */
#ifndef VULTURECTL_ACTIVITY_H
#define VULTURECTL_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../libvulture/internal.h"
#include "diag.h"

enum holder { HELD_UNKNOWN, HELD_US, HELD_SENDER, HELD_RECEIVER, HELD_APPLICATION, HOLDERS };

/** struct activity - one direction of one connection */
struct activity {
	bool up;
	uint64_t key;			/* down: id of vulture; up: inode */
	struct vulture_address address;
	const char *law;		/* controller or congestion control */
	int pid;			/* 0: not known */
	char name[16];			/* of the program; "" if not known */
	uint32_t uid;
	uint64_t bytes;
	uint64_t pause_bytes;		/* of them in others' pauses, as far as was looked */
	uint32_t queue_us, rtt_us;
	double rate_bps;		/* bit/s since the look before; 0 in the first */
	enum holder holder;
	/* for the next look */
	uint64_t at_us, busy_us, rwnd_us, sndbuf_us;
	bool has_yielded, yields;
	char control[16];
	struct vulture_flow *flow;	/* down */
};

/** struct look - all of them at one time; zero it before the first */
struct look {
	struct activity *activity;	/* in the order of direction and key */
	size_t count, room;
	uint64_t at_us;			/* monotonic */
};

/**
 * look_again() - take a look
 * @look: becomes the new one
 * @before: the one before, or NULL; its connections' histories go on
 * Return: 0, or -1 with a sentence in look_error().
 */
int look_again(struct look *look, const struct look *before);
void look_free(struct look *look);

/* look_find() - one of them, by id of vulture (down) or inode (up); NULL if it is not there */
const struct activity *look_find(const struct look *look, bool up, uint64_t key);

const char *look_error(void);

const char *holder_name(enum holder holder);

/** struct program - the connections of one program in one direction */
struct program {
	const struct activity *first;	/* name, pid, uid, direction */
	unsigned int connections;
	double rate_bps;
	uint64_t bytes, pause_bytes;
	uint32_t queue_us;		/* the longest */
	enum holder holder;		/* of most of those that moved */
	unsigned int holders[HOLDERS];
};

/**
 * look_programs() - by program and direction, the fastest first
 * Return: an array to free(), of @count; NULL if it is empty.
 */
struct program *look_programs(const struct look *look, size_t *count);

#endif /* VULTURECTL_ACTIVITY_H */
