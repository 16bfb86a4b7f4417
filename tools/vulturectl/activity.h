/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Activity of background connections: the rate of each, and what limits it.
 *
 * A look reads the downloads under vulture's control and the sockets with a
 * less-than-best-effort congestion control (uploads). The rate, the holder and
 * the bytes in pauses are computed from the differences of two looks.
 *
 * The holder is what limits the rate of a connection. The tests, in order:
 *
 *	down	application	unread data is as long as the window that TCP has left
 *		us		the law allows less than a packet: the flow has yielded
 *		sender		less than half of the window arrives in a round trip
 *		receiver	TCP's own window is the smaller one
 *		us		the law's window is full
 *	up	application	no data to send for more than half of the time
 *		receiver	the peer's window was full for more than half of the rest
 *		application	the send buffer was too small for that long
 *		us		the congestion control limits the rate
 *
 * Pauses of other traffic: a connection has yielded when the law ("us") limits
 * it to less than 1/8 of the path's capacity. From then on, what it moves while
 * it does not yield counts as moved while other traffic pauses. 1/8 is well above
 * the rate that a yielding law leaves (a packet now and then), and well below the
 * share of one of two or three flows on an otherwise idle path.
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
	uint64_t key;			/* down: vulture's id; up: the socket's inode */
	struct vulture_address address;
	const char *law;		/* controller or congestion control */
	int pid;			/* 0: not known */
	char name[16];			/* of the program; "" if not known */
	uint32_t uid;
	uint64_t bytes;
	uint64_t pause_bytes;		/* those moved in pauses of other traffic, between looks */
	uint32_t queue_us, rtt_us;
	double rate_bps;		/* bit/s since the previous look; 0 in the first one */
	enum holder holder;
	/* values that the next look compares with */
	uint64_t at_us, busy_us, rwnd_us, sndbuf_us;
	bool has_yielded, yields;
	char control[16];
	struct vulture_flow *flow;	/* down; NULL for up */
};

/** struct look - all background connections at one time */
struct look {
	struct activity *activity;	/* sorted by direction, then key */
	size_t count, room;
	uint64_t at_us;			/* CLOCK_MONOTONIC */
};

/**
 * look_again() - read all background connections
 * @look: overwritten with the new look
 * @before: the previous look, to compare with, or NULL
 * Return: 0, or -1 with a sentence in look_error().
 */
int look_again(struct look *look, const struct look *before);
void look_free(struct look *look);

/* look_find() - find a connection by vulture's id (down) or inode (up); NULL if it is not there */
const struct activity *look_find(const struct look *look, bool up, uint64_t key);

const char *look_error(void);

const char *holder_name(enum holder holder);

/** struct program - the connections of one program in one direction */
struct program {
	const struct activity *first;	/* has the program's name, pid and uid, and the direction */
	unsigned int connections;
	double rate_bps;
	uint64_t bytes, pause_bytes;
	uint32_t queue_us;		/* the longest of its connections */
	enum holder holder;		/* the most frequent one of those that moved data */
	unsigned int holders[HOLDERS];
};

/**
 * look_programs() - group the connections by program and direction, the fastest first
 * Return: an array of @count members, which the caller must free(); NULL if memory is short.
 */
struct program *look_programs(const struct look *look, size_t *count);

#endif /* VULTURECTL_ACTIVITY_H */
