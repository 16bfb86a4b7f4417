// SPDX-License-Identifier: GPL-2.0
/* Keeps the sockets of some processes in the background by inspecting them periodically. */
#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upload.h"

/* A socket that was seen: which directions are done, and the latest round in which it was there. */
struct watch_seen {
	unsigned long inode;
	unsigned long round;
	bool up_done, down_done;
};

static struct watch_seen *find(struct watch *watch, unsigned long inode)
{
	size_t i;

	for (i = 0; i < watch->seen_count; i++)
		if (watch->seen[i].inode == inode)
			return &watch->seen[i];
	return NULL;
}

static struct watch_seen *add(struct watch *watch, unsigned long inode)
{
	if (watch->seen_count == watch->seen_room) {
		size_t room = watch->seen_room ? 2 * watch->seen_room : 64;
		struct watch_seen *grown = realloc(watch->seen, room * sizeof(*grown));

		if (!grown)
			return NULL;
		watch->seen = grown;
		watch->seen_room = room;
	}
	watch->seen[watch->seen_count] = (struct watch_seen){ .inode = inode };
	return &watch->seen[watch->seen_count++];
}

/* Whether a direction of a socket has still to be put in the background. */
static bool unfinished(unsigned long inode, void *arg)
{
	struct watch *watch = arg;
	struct watch_seen *seen = find(watch, inode);

	if (!seen)
		return true;
	seen->round = watch->round;
	return (watch->up && !seen->up_done) || (watch->down && !seen->down_done);
}

/* Whether a socket is not connected yet. One that listens will not be, nor one that is closing. */
static bool may_be_established(int state)
{
	return state == TCP_CLOSE || state == TCP_SYN_SENT || state == TCP_SYN_RECV;
}

static void note(struct watch *watch, const char *what, const char *why)
{
	watch->refused++;
	snprintf(watch->reason, sizeof(watch->reason), "%s: %s", what, why);
}

static void one_socket(const struct tcp_socket *socket, void *arg)
{
	struct watch *watch = arg;
	struct watch_seen *seen = find(watch, socket->inode);

	if (!seen)
		seen = add(watch, socket->inode);
	if (!seen)
		return;
	seen->round = watch->round;
	if (socket->state < 0) {
		seen->up_done = true;
		seen->down_done = true;
		return;
	}
	if (watch->up && !seen->up_done) {
		seen->up_done = true;
		if (upload_background(socket->fd, watch->up))
			note(watch, watch->up, strerror(errno));
	}
	/* vulture controls a connection only once it is established. A socket that will not be is
	 * not opened again.
	 */
	if (!watch->down || seen->down_done || may_be_established(socket->state))
		return;
	seen->down_done = true;
	if (socket->state == TCP_ESTABLISHED &&
	    vulture_start(watch->down, socket->fd, watch->options) < 0 && errno != EALREADY)
		note(watch, "vulture", vulture_error(watch->down));
}

void watch_pids(struct watch *watch, const struct pids *pids)
{
	size_t i, kept = 0;

	watch->round++;
	for (i = 0; i < pids->count; i++)
		if (pid_sockets(pids->pid[i], unfinished, one_socket, watch) < 0 && errno == EPERM)
			note(watch, "a process", "its sockets may not be inspected (ptrace is restricted)");
	/* Forget the sockets that are gone, since their inode numbers may be reused. */
	for (i = 0; i < watch->seen_count; i++)
		if (watch->seen[i].round == watch->round)
			watch->seen[kept++] = watch->seen[i];
	watch->seen_count = kept;
}

void watch_end(struct watch *watch)
{
	free(watch->seen);
	watch->seen = NULL;
	watch->seen_count = 0;
	watch->seen_room = 0;
}
