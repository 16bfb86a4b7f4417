// SPDX-License-Identifier: GPL-2.0
/* A service lends a cgroup to a user's run. */
#define _GNU_SOURCE
#include "lend.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl.h"
#include "own.h"
#include "upload.h"
#include "weight.h"

/* s that run waits for an answer, so that a service that hangs does not stop it */
#define ANSWER_S	2
/* room for a request */
#define REQUEST_CHARS	32

/**
 * struct lent - a cgroup that is lent to a user
 * @dir: its directory; "" if this place is free
 * @connection: to the user's run; -1 once it is closed and the cgroup is to be removed
 * @link: link of the BPF program on the cgroup, or -1
 * @pid: the process that asked, in whose network namespace a weight is
 */
struct lent {
	char dir[CGROUP_CHARS];
	uid_t uid;
	pid_t pid;
	int connection, link;
};

static struct lent lent[LENT_MAX];

/* The user's side */

bool lend_program(int fd, bool up)
{
	const char *word = up ? LEND_UP : LEND_DOWN;
	char byte;

	return send(fd, word, strlen(word), MSG_NOSIGNAL) > 0 && recv(fd, &byte, 1, 0) == 1;
}

bool lend_weight(int fd, uint32_t weight, bool each, const char **why)
{
	static char said[LEND_CHARS];
	char text[REQUEST_CHARS];
	ssize_t length;

	snprintf(text, sizeof(text), LEND_WEIGHT " %u%s", weight, each ? " each" : "");
	*why = "lbe-background does not answer";
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return false;
	length = recv(fd, said, sizeof(said) - 1, 0);
	if (length < 1)
		return false;
	said[length] = '\0';
	*why = said + 1;
	return *said == '+';
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

int lend_connect(const char *path, const char **why)
{
	const struct sockaddr_un address = address_of(path);
	struct timeval patience = { .tv_sec = ANSWER_S };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	*why = NULL;
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	if (errno != ENOENT && errno != ECONNREFUSED)
		*why = strerror(errno);
	close(fd);
	return -1;
}

int lend_ask(bool up, const char **said)
{
	static char answer[LEND_CHARS];
	int fd = lend_connect(LEND_SOCKET, said);
	ssize_t length;

	if (fd < 0)
		return -1;
	*said = "it does not answer";
	length = recv(fd, answer, sizeof(answer) - 1, 0);
	if (length > 1) {
		answer[length] = '\0';
		*said = answer + 1;
		if (*answer == '+' && (up || lend_program(fd, false)))
			return fd;
		if (*answer == '+')
			*said = "it keeps the program for uploads";
	}
	close(fd);
	return -1;
}

/* The service's side */

int lend_bind(const char *path)
{
	const struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	mkdir(LBE_RUN, 0755);
	/* A service that was killed has left its socket. If another service runs, keep its own. */
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		errno = EADDRINUSE;
		return -1;
	}
	unlink(path);
	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&address, sizeof(address)) &&
	    !chmod(path, 0666) && !listen(fd, LENT_MAX))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

__attribute__((format(printf, 2, 3)))
static void answer(int connection, const char *format, ...)
{
	char text[LEND_CHARS];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* do not wait for a caller that does not read its answers */
	send(connection, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A free place for a user. Return: NULL if there is none; the caller has been told so. */
static struct lent *find_place(int connection, uid_t uid)
{
	struct lent *place = NULL;
	unsigned int i, has = 0;

	for (i = 0; i < LENT_MAX; i++) {
		if (!*lent[i].dir)
			place = &lent[i];
		else
			has += lent[i].uid == uid;
	}
	if (has >= LENT_PER_USER) {
		answer(connection, "-user %u has %d of them already", uid, LENT_PER_USER);
		return NULL;
	}
	if (!place)
		answer(connection, "-all %d of them are taken", LENT_MAX);
	return place;
}

/* Whether the process that connected still lives and belongs to the user that connected. */
static bool is_there(int pidfd, const struct ucred *peer)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)peer->pid);
	return pidfd >= 0 && !stat(path, &st) && st.st_uid == peer->uid && poll(&end, 1, 0) == 0;
}

/*
 * Make the cgroup and move the process into it. A pid is not reused while its process lives. So
 * if the process still lives after the move, it is the process that was moved.
 */
static bool make(struct lent *to, const struct ucred *peer)
{
	int pidfd = peer->pid > 0 ? pidfd_open(peer->pid, 0) : -1;
	bool done = false;

	errno = ESRCH;
	if (is_there(pidfd, peer) && !make_cgroup(to->dir, "lbe", peer->pid))
		done = !enter_cgroup(to->dir, peer->pid) && is_there(pidfd, peer) &&
		       !give_cgroup(to->dir, peer->uid, peer->gid);
	else
		*to->dir = '\0';
	if (pidfd >= 0)
		close(pidfd);
	return done;
}

/* End a loan: close the connection, detach the program, and remove the cgroup if it is empty. */
static void take_back(struct lent *back)
{
	if (back->connection >= 0)
		close(back->connection);
	if (back->link >= 0)
		close(back->link);
	back->connection = -1;
	back->link = -1;
	if (*back->dir && remove_cgroup(back->dir))
		*back->dir = '\0';
}

/* Give the cgroup the weight that a request names, and answer. Return: whether it was a request */
static bool weigh(const struct lent *to, const char *text)
{
	unsigned int weight = 0;
	uint64_t cgroup = 0;
	char each[5] = "", rest;
	int n = sscanf(text, LEND_WEIGHT " %9u %4s%c", &weight, each, &rest);

	if ((n != 1 && n != 2) || (n == 2 && strcmp(each, "each")) || !weight ||
	    weight > lend_weight_max(n == 2))
		return false;
	if (set_cgroup(&cgroup, to->dir))
		answer(to->connection, "-its cgroup is gone");
	else if (weight_set(to->pid, cgroup, weight, n == 2))
		answer(to->connection, "-%s", weight_error());
	else
		answer(to->connection, "+");
	return true;
}

/* Carry out a caller's request. Return: whether it was done; false also if the connection is closed
 * or the request is not valid.
 */
static bool obey(struct lent *to, const char *control)
{
	char word[REQUEST_CHARS] = "";
	ssize_t length = recv(to->connection, word, sizeof(word), MSG_DONTWAIT);

	if (length <= 0 || length == sizeof(word))
		return false;
	if (!strncmp(word, LEND_WEIGHT, strlen(LEND_WEIGHT)))
		return weigh(to, word);
	if (to->link >= 0 && !strcmp(word, LEND_DOWN)) {
		close(to->link);
		to->link = -1;
	} else if (to->link < 0 && !strcmp(word, LEND_UP)) {
		to->link = upload_attach(to->dir, control, NULL);
		if (to->link < 0)
			return false;
	} else {
		return false;
	}
	answer(to->connection, "+");
	return true;
}

static void lend(int connection, const char *control)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct lent *to;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
		close(connection);
		return;
	}
	if (!peer.uid) {
		answer(connection, "-root needs no help");
		close(connection);
		return;
	}
	to = find_place(connection, peer.uid);
	if (!to) {
		close(connection);
		return;
	}
	*to = (struct lent){
		.uid = peer.uid, .pid = peer.pid, .connection = connection, .link = -1,
	};
	if (!make(to, &peer)) {
		answer(connection, "-process %d: %s", (int)peer.pid, strerror(errno));
		take_back(to);
		return;
	}
	to->link = upload_attach(to->dir, control, NULL);
	if (to->link < 0) {
		answer(connection, "-%s", upload_error());
		take_back(to);
		return;
	}
	answer(connection, "+%s", control);
}

#define FIXED	3	/* descriptors before those of the cgroups */

void lend_until(int signals, int listener, int own, const char *control)
{
	struct pollfd events[FIXED + LENT_MAX] = {
		{ .fd = signals, .events = POLLIN }, { .fd = listener, .events = POLLIN },
		{ .fd = own, .events = POLLIN },
	};
	int i, wait, connection;

	do {
		wait = -1;
		for (i = 0; i < LENT_MAX; i++) {
			bool spoke = events[FIXED + i].revents;

			if (*lent[i].dir && (lent[i].connection < 0 ||
					     (spoke && !obey(&lent[i], control))))
				take_back(&lent[i]);
			if (*lent[i].dir && lent[i].connection < 0)
				wait = REMOVE_MS;
		}
		connection = events[1].revents ?
			     accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
		if (connection >= 0)
			lend(connection, control);
		if (own >= 0 && (events[2].revents || own_waits()))
			own_serve(control);
		if (own >= 0 && own_waits())
			wait = REMOVE_MS;
		for (i = 0; i < LENT_MAX; i++)
			events[FIXED + i] = (struct pollfd){
				.fd = *lent[i].dir ? lent[i].connection : -1, .events = POLLIN,
			};
		if (poll(events, FIXED + LENT_MAX, wait) < 0 && errno != EINTR)
			refused("hold: %s", strerror(errno));
	} while (!events[0].revents);
	for (i = 0; i < LENT_MAX; i++)
		take_back(&lent[i]);
	if (listener >= 0)
		unlink(LEND_SOCKET);
	own_end();
}
