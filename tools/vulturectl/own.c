// SPDX-License-Identifier: GPL-2.0
/* A service gives a user's running program a cgroup of its own. */
#define _GNU_SOURCE
#include "own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "lend.h"
#include "scope.h"
#include "upload.h"

#define OWN_SOCKET	LBE_RUN "/own.sock"
/* As many cgroups again as lend.c has */
#define OWN_MAX		LENT_MAX
#define OWN_PER_USER	LENT_PER_USER
/* connections at a time: each has a request, so that it is short */
#define ASK_MAX		32
#define ASK_PER_USER	2
#define REQUEST_CHARS	32

/* The user's side */

/* Send a request to the service. Return: whether it was done; otherwise @why says why not, or is
 * NULL if no service runs
 */
static bool request(const char *text, const char **why)
{
	static char said[LEND_CHARS];
	ssize_t length;
	int fd = lend_connect(OWN_SOCKET, why);

	if (fd < 0)
		return false;
	*why = "it does not answer";
	/* a connection that the service has closed already may still have its answer */
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	length = recv(fd, said, sizeof(said) - 1, 0);
	close(fd);
	if (length < 1)
		return false;
	said[length] = '\0';
	*why = said + 1;
	return *said == '+';
}

bool own_background(const struct pids *pids, const char **why)
{
	pid_t pid = pids->pid[0];
	char text[REQUEST_CHARS], before[1024], now[1024];
	struct pids tree = {};
	size_t i, moved;

	if (find_cgroup_of(pid, before, sizeof(before))) {
		*why = strerror(errno);
		return false;
	}
	snprintf(text, sizeof(text), "bg %d", (int)pid);
	if (!request(text, why))
		return false;
	/* repeat until no child was forked meanwhile; if it had its cgroup already, none is left */
	do {
		moved = 0;
		tree_pids(pid, &tree);
		for (i = 1; i < tree.count; i++) {
			const char *ignored;

			if (find_cgroup_of(tree.pid[i], now, sizeof(now)) || strcmp(now, before))
				continue;
			snprintf(text, sizeof(text), "in %d %d", (int)tree.pid[i], (int)pid);
			moved += request(text, &ignored);
		}
		pids_free(&tree);
	} while (moved);
	return true;
}

bool own_foreground(pid_t pid)
{
	char text[REQUEST_CHARS];
	const char *why;

	snprintf(text, sizeof(text), "fg %d", (int)pid);
	return request(text, &why);
}

/* The service's side */

/**
 * struct own - a cgroup that a user's program has got
 * @dir: its directory; "" if this place is free
 * @events: descriptor of its cgroup.events
 * @ended: it is empty, and was still in use when it was to be removed
 */
struct own {
	char dir[CGROUP_CHARS];
	uid_t uid;
	int events;
	bool ended;
};

/* struct asker - a connection of a user; @fd 0: this place is free */
struct asker {
	int fd;
	struct ucred peer;
};

static struct own owns[OWN_MAX];
static struct asker askers[ASK_MAX];
static int queue = -1, listener = -1;

/* What a descriptor of the queue is: the listener, asker N, or the events of cgroup N. */
#define LISTENER	0
#define ASKER(n)	(1 + (n))
#define EVENTS(n)	(1 + ASK_MAX + (n))

static int watch(int fd, uint32_t what, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = what };

	return epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event);
}

__attribute__((format(printf, 2, 3)))
static bool no(const struct asker *asker, const char *format, ...)
{
	char text[LEND_CHARS] = "-";
	va_list args;

	va_start(args, format);
	vsnprintf(text + 1, sizeof(text) - 1, format, args);
	va_end(args);
	send(asker->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	return false;
}

/* Whether a process lives, and all its user numbers are the asker's: it is no program with other
 * rights (setuid). @pidfd is open for it, so that the number cannot have become another's.
 */
static bool is_its(const struct asker *asker, pid_t pid, int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	unsigned int id[4] = { 0 }, i;
	char path[64], line[256];
	bool same = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = pidfd < 0 ? NULL : fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4)
			same = true;
	if (file)
		fclose(file);
	for (i = 0; i < 4; i++)
		same = same && id[i] == asker->peer.uid;
	return same && poll(&end, 1, 0) == 0;
}

/* The place of the cgroup that a process is in, if the asker has got it here; or NULL. */
static struct own *own_of(const struct asker *asker, pid_t pid)
{
	char dir[CGROUP_CHARS];
	struct own *own;

	if (find_cgroup_dir_of(pid, dir))
		return NULL;
	for (own = owns; own < owns + OWN_MAX; own++)
		if (*own->dir && own->uid == asker->peer.uid && !strcmp(own->dir, dir))
			return own;
	return NULL;
}

/* A free place for the asker, or NULL; the asker has been told why. */
static struct own *find_place(const struct asker *asker)
{
	struct own *own, *place = NULL;
	unsigned int has = 0;

	for (own = owns; own < owns + OWN_MAX; own++) {
		if (!*own->dir)
			place = own;
		else
			has += own->uid == asker->peer.uid;
	}
	if (has >= OWN_PER_USER) {
		no(asker, "user %u has %d programs in cgroups of lbe-background already",
		   asker->peer.uid, OWN_PER_USER);
		return NULL;
	}
	if (!place)
		no(asker, "all %d cgroups of lbe-background are taken", OWN_MAX);
	return place;
}

/* Remove the cgroup if it is empty. If it cannot be removed yet, own_waits(). */
static void end_own(struct own *own)
{
	own->ended = !cgroup_is_populated(own->events);
	if (!own->ended || !remove_cgroup(own->dir))
		return;
	close(own->events);
	*own->dir = '\0';
}

int own_listen(void)
{
	queue = epoll_create1(EPOLL_CLOEXEC);
	listener = queue < 0 ? -1 : lend_bind(OWN_SOCKET);
	if (listener >= 0 && !watch(listener, LISTENER, EPOLLIN))
		return queue;
	own_end();
	return -1;
}

void own_end(void)
{
	int i;

	for (i = 0; i < OWN_MAX; i++)
		if (*owns[i].dir)
			end_own(&owns[i]);
	if (listener >= 0) {
		unlink(OWN_SOCKET);
		close(listener);
	}
	if (queue >= 0)
		close(queue);
	listener = -1;
	queue = -1;
}

bool own_waits(void)
{
	const struct own *own;

	for (own = owns; own < owns + OWN_MAX; own++)
		if (*own->dir && own->ended)
			return true;
	return false;
}

/* Give the cgroup to the asker, and watch for its end. */
static bool give(struct own *own, const struct asker *asker)
{
	char path[CGROUP_CHARS + 16];

	snprintf(path, sizeof(path), "%s/cgroup.events", own->dir);
	own->events = open(path, O_RDONLY | O_CLOEXEC);
	if (own->events < 0 || watch(own->events, EVENTS(own - owns), EPOLLPRI))
		return false;
	cgroup_is_populated(own->events);	/* only later changes are to be told */
	return !give_cgroup(own->dir, asker->peer.uid, asker->peer.gid);
}

/* Attach the program, unless the cgroup has it already. */
static bool attach(const struct own *own, const struct asker *asker, const char *control)
{
	int mode = upload_mode(own->dir);

	if (mode == UPLOAD_FOREGROUND)
		return no(asker, "root has put it in the foreground");
	if (mode == UPLOAD_BACKGROUND || (mode >= 0 && !upload_enter(own->dir, control)))
		return true;
	return no(asker, "%s", upload_error());
}

/* Move a process to its new cgroup, and give that to the asker. Return: 0, or -1 with errno */
static int move(struct own *own, const struct asker *asker, pid_t pid, int pidfd)
{
	if (enter_cgroup(own->dir, pid))
		return -1;
	/* if it still lives and is the asker's, it is the process that was moved */
	errno = ESRCH;
	return is_its(asker, pid, pidfd) && give(own, asker) ? 0 : -1;
}

static bool ask_bg(const struct asker *asker, pid_t pid, int pidfd, const char *control)
{
	struct own *own = own_of(asker, pid);

	if (own)
		return attach(own, asker, control);
	own = find_place(asker);
	if (!own)
		return false;
	*own = (struct own){ .uid = asker->peer.uid, .events = -1 };
	if (make_cgroup(own->dir, OWN_CGROUP, pid)) {
		*own->dir = '\0';
		return no(asker, "process %d: %s", (int)pid, strerror(errno));
	}
	/* the program comes first, so that no connection is missed once the process is there */
	if (attach(own, asker, control)) {
		if (!move(own, asker, pid, pidfd))
			return true;
		no(asker, "process %d: %s", (int)pid, strerror(errno));
		upload_leave(own->dir, control);
	}
	if (own->events >= 0)
		close(own->events);
	remove_cgroup(own->dir);
	*own->dir = '\0';
	return false;
}

/* Move a child to the cgroup that its ancestor has got, from the one above it. */
static bool ask_in(const struct asker *asker, pid_t pid, pid_t of)
{
	const struct own *own = own_of(asker, of);
	char dir[CGROUP_CHARS];

	if (!own || find_cgroup_dir_of(pid, dir) ||
	    strncmp(own->dir, dir, strlen(dir)) ||
	    strrchr(own->dir, '/') != own->dir + strlen(dir))
		return no(asker, "process %d is not beside process %d", (int)pid, (int)of);
	return !enter_cgroup(own->dir, pid) ||
	       no(asker, "process %d: %s", (int)pid, strerror(errno));
}

static bool ask_fg(const struct asker *asker, pid_t pid, const char *control)
{
	const struct own *own = own_of(asker, pid);

	if (!own)
		return no(asker, "process %d is in no cgroup of lbe-background", (int)pid);
	upload_leave(own->dir, control);
	return scope_up(own->dir) != UPLOAD_BACKGROUND ||
	       no(asker, "root keeps it in the background");
}

static void obey(const struct asker *asker, const char *text, const char *control)
{
	int pid = 0, of = 0, end = 0, pidfd;
	bool done;

	if (sscanf(text, "%*2[a-z] %d%n %d%n", &pid, &end, &of, &end) < 1)
		pid = 0;
	pidfd = pid > 0 && !text[end] ? pidfd_open(pid, 0) : -1;
	if (!is_its(asker, pid, pidfd))
		done = no(asker, "process %d is not user %u's", pid, asker->peer.uid);
	else if (!strncmp(text, "bg ", 3) && !of)
		done = ask_bg(asker, pid, pidfd, control);
	else if (!strncmp(text, "in ", 3) && of > 0)
		done = ask_in(asker, pid, of);
	else if (!strncmp(text, "fg ", 3) && !of)
		done = ask_fg(asker, pid, control);
	else
		done = no(asker, "what is asked for is neither bg, in nor fg");
	if (done)
		send(asker->fd, "+", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (pidfd >= 0)
		close(pidfd);
}

static void serve_asker(struct asker *asker, const char *control)
{
	char text[REQUEST_CHARS];
	ssize_t length = recv(asker->fd, text, sizeof(text), MSG_DONTWAIT);

	if (length > 0 && (size_t)length < sizeof(text)) {
		text[length] = '\0';
		obey(asker, text, control);
	}
	close(asker->fd);
	asker->fd = 0;
}

static void serve_listener(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct asker now = { .fd = fd }, *place = NULL, *one;
	char request[REQUEST_CHARS];
	socklen_t size = sizeof(now.peer);
	unsigned int has = 0;

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &now.peer, &size)) {
		close(fd);
		return;
	}
	for (one = askers; one < askers + ASK_MAX; one++) {
		if (!one->fd)
			place = one;
		else
			has += one->peer.uid == now.peer.uid;
	}
	if (!now.peer.uid)
		no(&now, "root needs no help");
	else if (has >= ASK_PER_USER || !place)
		no(&now, "lbe-background is busy");
	else if (!watch(fd, ASKER(place - askers), EPOLLIN))
		*place = now;
	if (place && place->fd == fd)
		return;
	/* With a request that was not read, its answer would be lost. */
	recv(fd, request, sizeof(request), MSG_DONTWAIT);
	close(fd);
}

void own_serve(const char *control)
{
	struct epoll_event events[16];
	int n = epoll_wait(queue, events, 16, 0), i;

	for (i = 0; i < n; i++) {
		uint32_t what = events[i].data.u32;

		if (what == LISTENER)
			serve_listener();
		else if (what < EVENTS(0))
			serve_asker(&askers[what - ASKER(0)], control);
		else
			end_own(&owns[what - EVENTS(0)]);
	}
	for (i = 0; i < OWN_MAX; i++)
		if (*owns[i].dir && owns[i].ended)
			end_own(&owns[i]);
}
