/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keeps the sockets of some processes in the background by inspecting them periodically.
 *
 * For a user's own processes this needs no privilege, and it needs no cgroup and no BPF.
 * The disadvantage is a delay: a connection is in the background WATCH_MS after it was
 * opened at the latest. An accepted connection inherits the control of its listening
 * socket.
 */
#ifndef VULTURECTL_WATCH_H
#define VULTURECTL_WATCH_H

#include <stdbool.h>

#include "../libvulture/internal.h"
#include "sockets.h"

/* ms between two looks: short compared with a transfer, long compared with a look's cost (1 ms) */
#define WATCH_MS	100

/**
 * struct watch - what has been done so far
 * @up: congestion control for uploads; NULL leaves uploads as they are
 * @down: a handle of libvulture for downloads; NULL leaves downloads as they are
 * @options: options of the downloads
 * @refused: number of failures
 * @reason: sentence that describes the latest one
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

/** watch_pids() - take one look at the sockets of these processes */
void watch_pids(struct watch *watch, const struct pids *pids);

/** watch_end() - free the memory of @watch; sockets stay as they are */
void watch_end(struct watch *watch);

#endif /* VULTURECTL_WATCH_H */
