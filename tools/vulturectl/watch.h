/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep the sockets of some processes in the background by looking at them again and again.
 *
 * This needs no privilege for one's own processes, no cgroup and no BPF. Its
 * price is a delay: a connection is in the background WATCH_MS after it was
 * opened at the latest. A listening socket hands its control on to what it
 * accepts.
 */
#ifndef VULTURECTL_WATCH_H
#define VULTURECTL_WATCH_H

#include <stdbool.h>

#include "../libvulture/internal.h"
#include "sockets.h"

/* ms between two looks: short beside a transfer, long beside the cost of a look (1 ms) */
#define WATCH_MS	100

/**
 * struct watch - what has been done so far
 * @up: congestion control for what they send; NULL leaves it alone
 * @down: a handle of libvulture for what they receive; NULL leaves it alone
 * @options: for @down
 * @refused: sockets that could not, with the reason of the last one
 */
struct watch {
	const char *up;
	struct vulture *down;
	const struct vulture_options *options;
	unsigned long refused;
	char reason[256];
	/* the rest is private */
	struct watch_seen *seen;
	size_t seen_count, seen_room;
	unsigned long round;
};

/** watch_pids() - one look at the sockets of these processes */
void watch_pids(struct watch *watch, const struct pids *pids);

/** watch_end() - free what it holds; sockets stay as they are */
void watch_end(struct watch *watch);

#endif /* VULTURECTL_WATCH_H */
