// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl run: runs a command whose connections use spare bandwidth only, both ways.
 *
 *	            as root                     in a cgroup of the user's   otherwise
 *	downloads   a rule for a cgroup below   the same                    each socket
 *	uploads     a BPF program for it        each socket                 each socket
 *
 * A rule and a program act from a connection's first packet on. A look at the sockets acts
 * up to WATCH_MS later. The administrator's service lends a user a cgroup, with the program
 * if uploads are asked for (lend.h). Without the service, a cgroup is the user's if the user
 * may write to it, as below systemd's user manager (systemd-run --user --scope).
 *
 *	run ---- the command, in its cgroup, with the rights of the invoking user
 *	 |
 *	 +------ guard: holds the rule and the program, or the loan, until the cgroup is empty,
 *	         then removes them and the cgroup; it also does so if run is killed
 *
 * If a direction cannot be controlled through the cgroup, run inspects the sockets of the
 * command and of its descendants instead (watch.h), which needs no privilege.
 */
#define _GNU_SOURCE
#include "ctl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lend.h"
#include "scope.h"
#include "steer.h"
#include "upload.h"
#include "watch.h"
#include "weight.h"

/* ms that run waits for its guard to end once the command has ended */
#define GUARD_WAIT_MS	200
/* ms that run waits for its guard's answer; a guard that was killed or stopped does not answer */
#define ORDER_WAIT_MS	1000
/* If run has nothing else to do, it looks for a process in another network namespace at increasing
 * intervals: the first interval and the longest one in ms. Each is twice the one before.
 */
#define NAMESPACE_MS		1000
#define NAMESPACE_MAX_MS	3600000
/* a week; a later time is better set by a timer that starts the command */
#define DEADLINE_MAX_S	(168 * 3600ULL)

/**
 * struct plan - what run was asked for, and by which means it does it
 * @up: congestion control for uploads, NULL if they stay in the foreground
 * @down: downloads go to the background
 * @watched_up, @watched_down: this direction by looks at sockets, not by the cgroup
 * @dir: the cgroup's directory; "" without one
 * @deadline: wall-clock time from which on the command is in the foreground; 0 = never
 * @begin: wall-clock time at which the command starts
 * @in_front: the command is in the foreground part of a cycle (steer.h); the guard's copy likewise
 * @by_hand: the command is in the foreground until `vulturectl bg`
 * @taken_out: processes that `vulturectl fg` has named; they count with their descendants
 * @steer, @steered: the weight of its downloads; valid if @steered
 * @weight_up: weight that the cgroup has for uploads; 0: none, as it has an ordinary one's or none
 *	can be set
 * @link: link of the BPF program on the cgroup, or -1
 * @exempt: guard: the cgroup is exempt from what cgroups above it have (scope.h)
 * @held: run has said that a cgroup above keeps the command's new connections in the background
 * @lent: connection to the service that lends a user a cgroup, or -1
 * @detached: the service has detached the program of the lent cgroup; it refuses to do so twice
 * @ready: written once rule and program are in force; the command waits for it
 * @entered: closed once the command is in its cgroup; the guard waits for it
 * @orders: run sends its guard orders of one byte each, and the guard answers each one when it is
 *	carried out. [0] is the guard's end; [1] is run's, -1 without a guard
 * @unanswered: number of orders that the guard has not answered yet
 */
struct plan {
	const char *up;
	bool down;
	bool watched_up, watched_down;
	const struct passwd *user;
	struct vulture_rule rule;
	time_t begin, deadline;
	bool in_front, by_hand;
	struct pids taken_out;
	struct steer steer;
	bool steered;
	uint32_t weight_up;
	char dir[CGROUP_CHARS];
	int link, lent;
	bool detached, exempt, held;
	int ready[2], entered[2], orders[2];
	unsigned int unanswered;
};

/* orders: the cgroup goes to the foreground, until another order; to the foreground for a part of a
 * cycle, until another order or the end of run; and back to the background
 */
#define ORDER_FRONT	'f'
#define ORDER_PART	'p'
#define ORDER_BACK	'b'

/* The guard's answer, at its start and to each order: one byte of these bits */
#define ANSWER		0x40
#define ANSWER_NO_RULE	1	/* the rule could not be added */
#define ANSWER_NO_PROG	2	/* the program could not be attached */
#define ANSWER_NO_CGROUP	4	/* the cgroup could not be made */

int find_cgroup_of(pid_t pid, char *path, size_t room)
{
	char line[1024], *end;
	int result = -1;
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%d/cgroup", (int)pid);
	file = fopen(line, "re");
	if (!file)
		return -1;
	errno = ENAMETOOLONG;
	while (fgets(line, sizeof(line), file)) {
		end = strchr(line, '\n');
		/* The rest would be read as a line of its own; a user may have chosen that text as
		 * the name of a cgroup.
		 */
		if (!end)
			break;
		*end = '\0';
		if (strncmp(line, "0::/", 4))
			continue;
		snprintf(path, room, "%s", line + 3);
		result = 0;
	}
	fclose(file);
	return result;
}

int find_cgroup_dir_of(pid_t pid, char dir[CGROUP_CHARS])
{
	char root[512], path[1024];

	*dir = '\0';
	find_cgroup_root(root, sizeof(root));
	if (!*root) {
		errno = ENODEV;
		return -1;
	}
	if (find_cgroup_of(pid, path, sizeof(path)))
		return -1;
	snprintf(dir, CGROUP_CHARS, "%s%s", root, path[1] ? path : "");
	return 0;
}

/* The directory that make_cgroup() would make. Return: 0, or -1 with errno if it may not make it */
static int name_cgroup(char dir[CGROUP_CHARS], const char *name, pid_t pid)
{
	char own[CGROUP_CHARS], procs[CGROUP_CHARS + 16];
	int length;

	if (find_cgroup_dir_of(pid, own))
		return -1;
	length = snprintf(dir, CGROUP_CHARS, "%s/%s-%d", own, name, (int)pid);
	if (length < 0 || length >= CGROUP_CHARS) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* A process enters the new cgroup from this one, which takes the right to write here. */
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", own);
	return access(procs, W_OK);
}

static int make_named(const char *dir)
{
	/* an empty one was left by an earlier process with this pid */
	rmdir(dir);
	return mkdir(dir, 0755);
}

int make_cgroup(char dir[CGROUP_CHARS], const char *name, pid_t pid)
{
	return name_cgroup(dir, name, pid) ? -1 : make_named(dir);
}

int give_cgroup(const char *dir, uid_t uid, gid_t gid)
{
	char procs[CGROUP_CHARS + 16];

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	return chown(dir, uid, gid) || chown(procs, uid, gid) ? -1 : 0;
}

bool cgroup_is_populated(int events)
{
	char text[256];
	ssize_t length = pread(events, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	return strstr(text, "populated 1");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	if (type == FTW_DP)
		rmdir(path);
	return 0;
}

bool remove_cgroup(const char *dir)
{
	char path[2048];
	int events;

	snprintf(path, sizeof(path), "%s/cgroup.events", dir);
	events = open(path, O_RDONLY | O_CLOEXEC);
	if (events >= 0 && !cgroup_is_populated(events))
		nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (events >= 0)
		close(events);
	return access(dir, F_OK);
}

int enter_cgroup(const char *dir, pid_t pid)
{
	char path[2048];
	int fd, ok;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ok = dprintf(fd, "%d", (int)pid);
	close(fd);
	return ok < 0 ? -1 : 0;
}

/* Take the rights of a user, before the command is executed. */
static int become(const struct passwd *user)
{
	if (!user)
		return 0;
	if (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) ||
	    setuid(user->pw_uid))
		return -1;
	setenv("HOME", user->pw_dir, 1);
	setenv("USER", user->pw_name, 1);
	setenv("LOGNAME", user->pw_name, 1);
	return 0;
}

/* The user whose rights the command gets without -u: under sudo, the user who called it. NULL: no
 * change.
 */
static const struct passwd *invoking_user(void)
{
	const char *uid = getenv("SUDO_UID");
	const struct passwd *user;

	if (!uid || geteuid())
		return NULL;
	user = getpwuid((uid_t)read_number(uid, "SUDO_UID", 0, UINT32_MAX - 1));
	if (!user)
		refused("run: there is no user with the number %s, which SUDO_UID names: name one by -u",
			uid);
	return user;
}

__attribute__((noreturn))
static void child(const struct plan *plan, char **command)
{
	char byte;

	/* The command opens no connection before rule and program are in force. */
	close(plan->ready[1]);
	if (read(plan->ready[0], &byte, 1) != 1)
		_exit(126);
	if (*plan->dir && enter_cgroup(plan->dir, 0)) {
		fprintf(stderr, "vulturectl: run: cannot enter %s: %s\n", plan->dir,
			strerror(errno));
		_exit(126);
	}
	if (become(plan->user)) {
		fprintf(stderr, "vulturectl: run: cannot become %s: %s\n", plan->user->pw_name,
			strerror(errno));
		_exit(126);
	}
	execvp(command[0], command);
	fprintf(stderr, "vulturectl: run: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Add the rule. Return: whether it is in force */
static bool guard_down(struct plan *plan)
{
	return v && !vulture_rule_add(v, &plan->rule);
}

/* Attach the program. Return: whether it is in force */
static bool guard_up(struct plan *plan)
{
	plan->link = upload_attach(plan->dir, plan->up, NULL);
	return plan->link >= 0;
}

/* Take the rule and the program out of force. If a cgroup above is in the background, such as
 * background.slice, only root can take this one out of it.
 */
static void guard_front(struct plan *plan)
{
	if (plan->rule.id)
		vulture_rule_del(v, plan->rule.id);
	plan->rule.id = 0;
	if (plan->link >= 0)
		close(plan->link);
	plan->link = -1;
	plan->exempt = !geteuid();
	if (plan->exempt)
		scope_exempt(plan->dir, plan->up);
}

/* Undo guard_front(). Return: the answer to the order */
static char guard_back(struct plan *plan)
{
	char answer = ANSWER;

	if (plan->exempt)
		scope_exempt_end(plan->dir);
	plan->exempt = false;
	if (plan->down && !plan->watched_down && !plan->rule.id && !guard_down(plan))
		answer |= ANSWER_NO_RULE;
	if (plan->up && !plan->watched_up && plan->lent < 0 && plan->link < 0 && !guard_up(plan))
		answer |= ANSWER_NO_PROG;
	return answer;
}

/* Run has ended in a foreground part, so nobody else ends the part. */
static void end_part(struct plan *plan)
{
	struct pids pids = {};

	plan->in_front = false;
	if (plan->lent >= 0 && plan->up)
		lend_program(plan->lent, true);
	guard_back(plan);
	cgroup_pids(plan->dir, &pids);
	live_background(&pids, plan->up, plan->down ? &plan->rule.options : NULL);
	pids_free(&pids);
}

/* Carry out an order of run and answer it. If run has ended, close the connection. */
static void take_order(struct plan *plan)
{
	char order, answer = ANSWER;

	if (read(plan->orders[0], &order, 1) != 1) {
		close(plan->orders[0]);
		plan->orders[0] = -1;
		if (plan->in_front)
			end_part(plan);
		return;
	}
	plan->in_front = order == ORDER_PART;
	if (order == ORDER_BACK)
		answer = guard_back(plan);
	else
		guard_front(plan);
	send(plan->orders[0], &answer, 1, MSG_NOSIGNAL);
}

/* Wait until no process is left in the cgroup, and carry out run's orders meanwhile. */
static void await_empty(struct plan *plan)
{
	struct pollfd events[2] = { { .events = POLLPRI }, { .events = POLLIN } };
	char path[2048];

	snprintf(path, sizeof(path), "%s/cgroup.events", plan->dir);
	events[0].fd = open(path, O_RDONLY | O_CLOEXEC);
	if (events[0].fd < 0)
		return;
	while (cgroup_is_populated(events[0].fd)) {
		events[1].fd = plan->orders[0];
		if (poll(events, 2, -1) > 0 && events[1].revents)
			take_order(plan);
	}
	close(events[0].fd);
}

/*
 * Close what this process has inherited from run's caller, and leave the current directory.
 * Otherwise a reader of the command's output, or a process that waits for a lock or a mount of
 * the caller, would wait until the guard ends. The inherited descriptors are those without
 * FD_CLOEXEC.
 */
static void drop_callers(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;

	for (fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	while (fds && (entry = readdir(fds))) {
		fd = atoi(entry->d_name);
		if (fd > 2 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			close(fd);
	}
	if (fds)
		closedir(fds);
	if (chdir("/"))
		return;	/* the directory stays in use */
}

void guard_cgroup(const char *dir)
{
	struct plan plan = { .orders = { -1, -1 } };
	sigset_t all;

	if (fork())
		return;
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "vulture-guard");
	drop_callers();
	snprintf(plan.dir, sizeof(plan.dir), "%s", dir);
	await_empty(&plan);
	while (!remove_cgroup(plan.dir)) {
		poll(NULL, 0, REMOVE_MS);
		await_empty(&plan);
	}
	_exit(0);
}

/*
 * The guard makes the cgroup, holds its rule and its program, and removes all three when the last
 * process has ended. That it makes the cgroup itself leaves no moment at which the end of run would
 * leave one behind. started: a pipe to which it writes what of these is there.
 */
__attribute__((noreturn))
static void guard(struct plan *plan, int started)
{
	char answer = ANSWER, byte;
	sigset_t all;

	setsid();
	/* Signals sent to all processes whose command line contains the command's (pkill -f) must
	 * not end the guard, nor may SIGPIPE when run was killed and does not read the answer.
	 */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "vulture-guard");
	if (make_named(plan->dir)) {
		answer |= ANSWER_NO_CGROUP;
		_exit(write(started, &answer, 1) != 1);
	}
	plan->rule.cgroup = read_cgroup(plan->dir);
	/* Open a handle of its own: two processes cannot share a netlink socket. */
	v = vulture_open();
	if (plan->down && !plan->watched_down) {
		plan->rule.by_fd = geteuid();
		if (plan->rule.by_fd)
			plan->rule.cgroup_fd = cgroup_descriptor(plan->dir);
		if (!guard_down(plan)) {
			say("run: cannot add a rule for the cgroup, so run watches the command's sockets instead: %s",
			    vulture_error(v));
			answer |= ANSWER_NO_RULE;
		}
	}
	if (plan->up && !plan->watched_up && plan->lent < 0) {
		if (!guard_up(plan)) {
			say("run: cannot use BPF for the cgroup, so run watches the command's sockets instead: %s",
			    upload_error());
			answer |= ANSWER_NO_PROG;
		}
	}
	if (write(started, &answer, 1) != 1)
		say("run: cannot answer: %s", strerror(errno));
	close(started);
	drop_callers();
	/* The read below ends when the command has entered the cgroup, or has failed to. */
	close(plan->ready[0]);
	close(plan->ready[1]);
	close(plan->entered[1]);
	close(plan->orders[1]);
	while (read(plan->entered[0], &byte, 1) < 0 && errno == EINTR)
		;
	await_empty(plan);
	if (plan->exempt)
		scope_exempt_end(plan->dir);
	if (plan->rule.id)
		vulture_rule_del(v, plan->rule.id);
	while (!remove_cgroup(plan->dir)) {
		poll(NULL, 0, REMOVE_MS);
		await_empty(plan);
	}
	_exit(0);
}

/* There is no cgroup: watch the command's sockets instead. */
static void do_without_cgroup(struct plan *plan)
{
	*plan->dir = '\0';
	plan->watched_up = plan->lent < 0;
	plan->watched_down = true;
	close(plan->orders[0]);
	close(plan->orders[1]);
	plan->orders[1] = -1;
}

/* Start the guard, which makes the cgroup. Return: the guard's pid, or 0 if a cgroup is of no use
 * for what was asked or cannot be made.
 */
static pid_t set_up_cgroup(struct plan *plan)
{
	int started[2];
	char answer = 0;
	pid_t pid;

	/* only root can load BPF programs */
	plan->watched_up = geteuid() && plan->lent < 0;
	if ((!plan->down && plan->watched_up) || name_cgroup(plan->dir, RUN_CGROUP, getpid())) {
		do_without_cgroup(plan);
		return 0;
	}
	if (pipe2(started, O_CLOEXEC))
		refused("run: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		close(started[0]);
		guard(plan, started[1]);
	}
	close(started[1]);
	if (pid < 0 || read(started[0], &answer, 1) != 1)
		refused("run: cannot start the guard: %s", strerror(errno));
	close(started[0]);
	if (answer & ANSWER_NO_CGROUP) {
		do_without_cgroup(plan);
		return 0;
	}
	close(plan->orders[0]);
	plan->watched_down = plan->watched_down || (answer & ANSWER_NO_RULE);
	plan->watched_up = plan->watched_up || (answer & ANSWER_NO_PROG);
	return pid;
}

/* Foreground and background: `vulturectl fg` and `bg`, and the deadline */

/* Watch the sockets of a direction from now on, since the guard could not put its rule or its
 * program in force again.
 */
static void watch_instead(bool *watched, const char *what)
{
	if (!*watched)
		say("run: the cgroup's %s could not be put in force again; from now on run watches the command's sockets instead",
		    what);
	*watched = true;
}

/* Have the guard switch the rule and the program of the cgroup. They are switched when this
 * returns, unless the guard has been killed or stopped. The guard answers in the order in which it
 * was told, so that the last answer is the one to this order.
 */
static void tell_guard(struct plan *plan, char order)
{
	struct pollfd done = { .fd = plan->orders[1], .events = POLLIN };
	char answer;

	if (done.fd < 0 || send(done.fd, &order, 1, MSG_NOSIGNAL) != 1)
		return;
	plan->unanswered++;
	while (plan->unanswered && poll(&done, 1, ORDER_WAIT_MS) > 0 &&
	       recv(done.fd, &answer, 1, 0) == 1) {
		plan->unanswered--;
		if (answer & ANSWER_NO_RULE)
			watch_instead(&plan->watched_down, "rule");
		if (answer & ANSWER_NO_PROG)
			watch_instead(&plan->watched_up, "BPF program");
	}
}

/* Whether the connections that the command opens go to the foreground now. */
static bool goes_to_front(const struct plan *plan)
{
	return plan->by_hand || plan->in_front;
}

/* The processes of the command; an empty list on failure. */
static void command_pids(const struct plan *plan, pid_t pid, struct pids *pids)
{
	if (*plan->dir ? cgroup_pids(plan->dir, pids) : tree_pids(pid, pids))
		pids_free(pids);
}

/* Remove from a list the processes that `vulturectl fg` has taken out, and their descendants. */
static void leave_out(struct plan *plan, struct pids *pids)
{
	size_t i = 0;

	while (i < plan->taken_out.count) {
		struct pids tree = {};

		if (tree_pids(plan->taken_out.pid[i], &tree)) {
			/* it has ended */
			plan->taken_out.pid[i] = plan->taken_out.pid[--plan->taken_out.count];
			continue;
		}
		pids_leave_out(pids, &tree);
		pids_free(&tree);
		i++;
	}
}

/* Say if the command's later connections cannot be put in the foreground. */
static void mind_cgroups_above(struct plan *plan)
{
	char dir[CGROUP_CHARS];

	snprintf(dir, sizeof(dir), "%s", plan->dir);
	if (!*dir)
		find_cgroup_dir_of(getpid(), dir);
	if (plan->held || !*dir || scope_is(dir, false, NULL))
		return;
	plan->held = true;
	if (scope_is_held(dir))
		say("run: connections that the command opens from now on stay in the background: the cgroup that run was started in is there, and only root's run can leave it");
	else
		say("run: some connections that the command opens from now on go to the background: those that a rule for a port, a prefix or a DSCP matches, which only root's run can leave");
}

/* Switch the command to where goes_to_front() says: its later connections, then its present ones.
 * In this order, and with the list of processes made in between, no connection is missed that is
 * opened meanwhile.
 */
static void switch_command(struct plan *plan, pid_t pid)
{
	bool front = goes_to_front(plan);
	struct pids pids = {};

	if (plan->lent >= 0 && plan->up && plan->detached != front) {
		plan->detached = front;
		lend_program(plan->lent, !front);
	}
	tell_guard(plan, !front ? ORDER_BACK : plan->by_hand ? ORDER_FRONT : ORDER_PART);
	if (front)
		mind_cgroups_above(plan);
	command_pids(plan, pid, &pids);
	leave_out(plan, &pids);
	if (front)
		live_foreground(&pids);
	else
		live_background(&pids, plan->up, plan->down ? &plan->rule.options : NULL);
	pids_free(&pids);
}

/* Put the whole command in the foreground: its present and its later connections. */
static void all_to_front(struct plan *plan, pid_t pid)
{
	plan->by_hand = true;
	pids_free(&plan->taken_out);
	switch_command(plan, pid);
}

static void all_to_back(struct plan *plan, pid_t pid)
{
	plan->by_hand = false;
	plan->in_front = false;
	pids_free(&plan->taken_out);
	switch_command(plan, pid);
}

/* Carry out `vulturectl fg` or `bg` for process @which of the command, or for the whole command
 * (0). For a single process, fg and bg themselves switch its present connections.
 */
static void take_word(struct plan *plan, pid_t pid, bool front, pid_t which)
{
	struct pids tree = {};

	if (!which && front) {
		all_to_front(plan, pid);
	} else if (!which) {
		all_to_back(plan, pid);
	} else if (!tree_pids(which, &tree)) {
		pids_leave_out(&plan->taken_out, &tree);
		if (front)
			pids_add(&plan->taken_out, which);
	}
	pids_free(&tree);
}

/* At the deadline the command goes to the foreground for good. */
static void meet_deadline(struct plan *plan, pid_t pid)
{
	plan->deadline = 0;
	plan->steered = false;
	all_to_front(plan, pid);
	say("run: the deadline has come: the command is in the foreground now");
}

/* Notice the end of the service that lends the cgroup. It sends only answers, which are read at
 * once, so that a readable connection has been closed.
 */
static void mind_service(struct plan *plan)
{
	struct pollfd end = { .fd = plan->lent, .events = POLLIN };

	if (plan->lent < 0 || !plan->up || poll(&end, 1, 0) <= 0)
		return;
	close(plan->lent);
	plan->lent = -1;
	plan->watched_up = true;
	say("run: lbe-background has ended; from now on uploads are put in the background up to %d ms after they are opened",
	    WATCH_MS);
}

/* Switch between foreground and background in the cycle that steer.h describes. */
static void near_deadline(struct plan *plan, pid_t pid)
{
	uint64_t total_s = (uint64_t)(plan->deadline - plan->begin);
	time_t now = time(NULL);
	uint64_t gone_s = now > plan->begin ? (uint64_t)(now - plan->begin) : 0;
	bool in_front = steer_in_front(total_s, gone_s);

	if (in_front == plan->in_front)
		return;
	plan->in_front = in_front;
	switch_command(plan, pid);
}

/* Warn of a process in another network namespace, since rules and handles act in one namespace
 * only. Return: whether a warning was printed
 */
static bool say_other_namespace(const struct pids *pids)
{
	struct stat own, its;
	char path[64];
	size_t i;

	if (stat("/proc/self/ns/net", &own))
		return false;
	for (i = 0; i < pids->count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pids->pid[i]);
		if (stat(path, &its) || its.st_ino == own.st_ino)
			continue;
		say("run: process %d is in another network namespace: its downloads stay in the foreground (start vulturectl run in that namespace)",
		    (int)pids->pid[i]);
		return true;
	}
	return false;
}

/* Signals: run passes on a signal that was sent to run alone. One that was sent to its process
 * group has reached the command, too.
 */

static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
#define PASSED	(sizeof(passed) / sizeof(passed[0]))

/* ms that run waits after a signal for the same signal to the group: timeout(1) sends a signal to
 * its child and then to the group, and both count as one
 */
#define GROUP_MS	20

/**
 * struct signals - signals that run receives for the command
 * @set: signals that run may pass on, without those that its caller ignores, and those of fg and bg
 * @fd: descriptor of signalfd()
 * @witness: pid of a process of the same group that blocks all signals. A signal sent to the group
 *	is pending there, one sent to run is not; nothing else tells the two apart. 0 or less: none
 */
struct signals {
	sigset_t set;
	int fd;
	pid_t witness;
};

/* Fork with all signals blocked; they stay blocked in the child. Return: as fork() */
static pid_t fork_quietly(void)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid)
		sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static pid_t start_witness(void)
{
	pid_t run = getpid(), pid = fork_quietly();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "vulture-witness");
	drop_callers();
	close_range(3, ~0U, 0);
	while (getppid() == run)
		pause();
	_exit(0);
}

/* The signals that are pending for a process, as bits; none if they cannot be read. */
static uint64_t pending_signals(pid_t pid)
{
	char path[64], line[256];
	uint64_t pending = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = pid > 0 ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "ShdPnd: %" SCNx64, &pending) == 1)
			break;
	if (file)
		fclose(file);
	return pending;
}

static void end_witness(pid_t witness)
{
	if (witness > 0 && !kill(witness, SIGKILL))
		waitpid(witness, NULL, 0);
}

static uint64_t signal_bit(int sig)
{
	return 1ULL << (sig - 1);
}

/* Signals have arrived: pass on those that were sent to run alone, and carry out those of
 * `vulturectl fg` and `bg`. A witness with a pending signal is replaced by a new one.
 */
static void pass_on(struct signals *signals, pid_t pid, struct plan *plan)
{
	struct signalfd_siginfo info;
	uint64_t came = 0, group;
	pid_t old = signals->witness;
	size_t i;

	poll(NULL, 0, GROUP_MS);
	while (read(signals->fd, &info, sizeof(info)) == sizeof(info)) {
		if ((int)info.ssi_signo == SIGNAL_FG || (int)info.ssi_signo == SIGNAL_BG)
			take_word(plan, pid, (int)info.ssi_signo == SIGNAL_FG, info.ssi_int);
		else
			came |= signal_bit((int)info.ssi_signo);
	}
	group = pending_signals(old);
	for (i = 0; i < PASSED; i++)
		if (came & ~group & signal_bit(passed[i]))
			kill(pid, passed[i]);
	if (!group)
		return;
	signals->witness = start_witness();
	end_witness(old);
}

/* Start the command. It has the signal mask of run's caller. Signals are blocked in run before the
 * fork, so that none is lost.
 */
static pid_t start_command(const struct plan *plan, char **command, struct signals *signals)
{
	struct sigaction callers;
	sigset_t before;
	size_t i;
	pid_t pid;

	sigemptyset(&signals->set);
	for (i = 0; i < PASSED; i++)
		if (!sigaction(passed[i], NULL, &callers) && callers.sa_handler != SIG_IGN)
			sigaddset(&signals->set, passed[i]);
	sigaddset(&signals->set, SIGNAL_FG);
	sigaddset(&signals->set, SIGNAL_BG);
	sigprocmask(SIG_BLOCK, &signals->set, &before);
	signals->fd = signalfd(-1, &signals->set, SFD_CLOEXEC | SFD_NONBLOCK);
	pid = signals->fd < 0 ? -1 : fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		child(plan, command);
	}
	if (pid < 0)
		refused("run: cannot start the command: %s", strerror(errno));
	signals->witness = start_witness();
	return pid;
}

/* Give the cgroup of the uploads the weight of this moment. Near a deadline it rises; a change by
 * less than an eighth is left for later. Return: NULL, or a sentence on why they have none
 */
static const char *weigh_uploads(struct plan *plan)
{
	time_t now = time(NULL);
	uint64_t total_s = plan->deadline > plan->begin ?
			   (uint64_t)(plan->deadline - plan->begin) : 0;
	uint64_t left_s = plan->deadline > now ? (uint64_t)(plan->deadline - now) : 0;
	uint32_t weight = steer_weight(plan->steer.percent, 1, total_s, left_s);
	bool each = !plan->steer.percent;
	const char *why = NULL;
	uint64_t cgroup;

	if (weight >= plan->weight_up && weight - plan->weight_up <= plan->weight_up / 8)
		return NULL;
	if (strcmp(plan->up, "lbe"))
		return "only lbe has weights";
	if (plan->lent >= 0) {
		if (weight > lend_weight_max(each))
			weight = lend_weight_max(each);
		if (weight != plan->weight_up && !lend_weight(plan->lent, weight, each, &why))
			return why;
	} else {
		why = *plan->dir ? set_cgroup(&cgroup, plan->dir) : "the command has no cgroup";
		if (why)
			return why;
		if (weight_set(0, cgroup, weight, each))
			return weight_error();
	}
	plan->weight_up = weight;
	return NULL;
}

/* Whether run has anything to do while the command runs. */
static bool has_work(const struct plan *plan)
{
	return (plan->watched_up && plan->up) || (plan->watched_down && plan->down) ||
	       plan->deadline || plan->steered || (plan->lent >= 0 && plan->up);
}

/*
 * Watch the sockets of the command and its descendants, the clock and the signals until the command
 * ends. Return: its status, as from waitpid()
 */
static int watch_command(struct plan *plan, pid_t pid, struct signals *signals)
{
	struct watch watch = { .options = &plan->rule.options };
	struct pollfd events[] = {
		{ .fd = pidfd_open(pid, 0), .events = POLLIN },
		{ .fd = signals->fd, .events = POLLIN },
	};
	bool elsewhere = false;
	int idle_ms = NAMESPACE_MS;
	unsigned long told = 0, round;
	int status;
	pid_t ended;

	for (round = 0; (ended = waitpid(pid, &status, WNOHANG)) == 0; round++) {
		/* Without a descriptor of the process, its end has to be polled for, too. */
		bool idle = events[0].fd >= 0 && !has_work(plan), front;
		bool second = idle || round % (STEER_MS / WATCH_MS) == 0;
		struct pids pids = {};

		if (plan->deadline && time(NULL) >= plan->deadline)
			meet_deadline(plan, pid);
		mind_service(plan);
		if (second && plan->deadline && !plan->by_hand)
			near_deadline(plan, pid);
		front = goes_to_front(plan);
		watch.up = plan->watched_up && !front ? plan->up : NULL;
		watch.down = plan->watched_down && !front && plan->down ? v : NULL;
		if (watch.up || watch.down || second)
			command_pids(plan, pid, &pids);
		if (second && plan->down && !elsewhere)
			elsewhere = say_other_namespace(&pids);
		leave_out(plan, &pids);
		if (watch.up || watch.down)
			watch_pids(&watch, &pids);
		if (second && plan->steered && !front)
			steer_pids(&plan->steer, &pids);
		if (second && plan->weight_up && plan->deadline && weigh_uploads(plan))
			plan->weight_up = 0;
		pids_free(&pids);
		if (watch.refused && !told++)
			say("run: a connection stays in the foreground: %s", watch.reason);
		if (poll(events, 2, idle ? idle_ms : WATCH_MS) > 0 && events[1].revents)
			pass_on(signals, pid, plan);
		else if (idle && idle_ms < NAMESPACE_MAX_MS)
			idle_ms *= 2;
	}
	close(events[0].fd);
	end_witness(signals->witness);
	watch_end(&watch);
	return ended == pid ? status : -1;
}

/* "06:00" is the next time that the clock shows it; "90s", "45m" and "6h" count from now. */
static time_t read_deadline(const char *text)
{
	unsigned int hours, minutes, seconds;
	time_t now = time(NULL), then;
	struct tm clock;
	char unit, rest;

	if (sscanf(text, "%2u:%2u%c", &hours, &minutes, &rest) == 2 && hours < 24 && minutes < 60) {
		clock = *localtime(&now);
		clock.tm_hour = (int)hours;
		clock.tm_min = (int)minutes;
		clock.tm_sec = 0;
		clock.tm_isdst = -1;
		then = mktime(&clock);
		if (then > now)
			return then;
		clock.tm_mday++;
		clock.tm_isdst = -1;
		return mktime(&clock);
	}
	if (*text != '-' && *text != '+' && sscanf(text, "%9u%c%c", &seconds, &unit, &rest) == 2 &&
	    seconds >= 1 && (unit == 's' || unit == 'm' || unit == 'h')) {
		uint64_t length = seconds * (unit == 'h' ? 3600ULL : unit == 'm' ? 60 : 1);

		if (length <= DEADLINE_MAX_S)
			return now + (time_t)length;
	}
	wrong("run: deadline '%s' is neither a time of day, 00:00 to 23:59, nor 1s to 168h from now",
	      text);
}

/* Wait briefly for the guard, which ends with the last process of the cgroup. If processes still
 * run, say so.
 */
static void leave_guard(const struct plan *plan, pid_t pid)
{
	int waited;

	for (waited = 0; waited < GUARD_WAIT_MS; waited += 10) {
		if (waitpid(pid, NULL, WNOHANG) == pid) {
			/* a guard that was killed leaves the cgroup, with which its rule ends */
			remove_cgroup(plan->dir);
			return;
		}
		poll(NULL, 0, 10);
	}
	say("run: some processes of %s still run; they stay in the background until they end",
	    plan->dir);
}

/*
 * Ask the administrator's service for a cgroup: for uploads, or if the user cannot make one for
 * downloads. Return: name of the uploads' congestion control, or NULL without a cgroup
 */
static const char *ask_service(struct plan *plan, bool up)
{
	const char *said;

	if (!up && !name_cgroup(plan->dir, RUN_CGROUP, getpid()))
		return NULL;
	plan->lent = lend_ask(up, &said);
	if (plan->lent >= 0)
		return said;
	if (said)
		say("run: connections are put in the background up to %d ms after they are opened, since lbe-background refuses a cgroup: %s",
		    WATCH_MS, said);
	else
		say("run: connections are put in the background up to %d ms after they are opened; to have them there from the first packet, do once: sudo systemctl enable --now lbe-background",
		    WATCH_MS);
	return NULL;
}

/* Choose which of the directions asked for can be put in the background. Exits if none can. */
static void choose_means(struct plan *plan, bool up, bool down)
{
	const char *control = NULL;

	if (geteuid() && (up || v))
		control = ask_service(plan, up);
	if (up) {
		plan->up = control;
		if (!plan->up)
			plan->up = upload_control();
		if (!plan->up)
			say("run: uploads stay in the foreground: none of the congestion controls %s can be used (is tcp_lbe loaded?)",
			    upload_controls());
		else if (strcmp(plan->up, "lbe"))
			say("run: uploads use %s: lbe is not available (is tcp_lbe loaded?)",
			    plan->up);
	}
	plan->down = down && v;
	if (down && !v)
		say("run: downloads stay in the foreground: %s", vulture_error(NULL));
	if (!plan->up && !plan->down)
		refused("run: nothing can be put in the background here; the command was not started");
}

/* Before the command starts: give its uploads their weight, or say why they have none. */
static void set_up_weight(struct plan *plan)
{
	const char *why;

	if (!plan->up || (!plan->steer.percent && !plan->deadline))
		return;
	plan->weight_up = plan->steer.percent ? 0 : STEER_WEIGHT;
	why = weigh_uploads(plan);
	if (!why)
		return;
	plan->weight_up = 0;
	say("run: uploads share evenly: %s", why);
}

/* Set up weight and deadline of the downloads. A deadline alone also works with a controller that
 * has no weights.
 */
static void set_up_steering(struct plan *plan)
{
	struct steer *steer = &plan->steer;

	if (!plan->down || (!steer->percent && !plan->deadline))
		return;
	steer->v = v;
	steer->begin = plan->begin;
	steer->deadline = plan->deadline;
	plan->steered = steer_first(steer, &plan->rule.options);
	if (!plan->steered && steer->percent)
		wrong("run: --weight is an option of the controller credit: leave -o controller=... out");
	steer->options = &plan->rule.options;
}

int do_run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "up", no_argument, NULL, 'U' },
		{ "down", no_argument, NULL, 'D' },
		{ "weight", required_argument, NULL, 'w' },
		{ "deadline", required_argument, NULL, 'd' },
		{ "user", required_argument, NULL, 'u' },
		{ "option", required_argument, NULL, 'o' },
		{}
	};
	struct plan plan = { .link = -1, .lent = -1 };
	bool up = false, down = false;
	struct signals signals;
	pid_t pid, guard_pid;
	int c, status;

	while ((c = getopt_long(argc, argv, "+u:o:", longs, NULL)) != -1) {
		if (c == 'U') {
			up = true;
		} else if (c == 'D') {
			down = true;
		} else if (c == 'w') {
			plan.steer.percent = (uint32_t)read_number(optarg, "weight", 1,
								   STEER_PERCENT_MAX);
		} else if (c == 'd') {
			plan.deadline = read_deadline(optarg);
		} else if (c == 'u') {
			plan.user = getpwnam(optarg);
			if (!plan.user)
				wrong("run: there is no user '%s'", optarg);
			if (geteuid())
				wrong("run: -u %s needs root", optarg);
		} else if (c == 'o') {
			read_option(&plan.rule.options, optarg);
		} else {
			wrong_option();
		}
	}
	if (optind == argc)
		wrong("run needs a command");
	if (!plan.user)
		plan.user = invoking_user();
	if (!up && !down) {
		up = true;
		down = true;
	}
	if (!down && plan.rule.options.set)
		wrong("run: -o is for downloads only: leave --up out, or add --down");
	choose_means(&plan, up, down);
	plan.begin = time(NULL);
	set_up_steering(&plan);
	if (pipe2(plan.ready, O_CLOEXEC) || pipe2(plan.entered, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plan.orders))
		refused("run: %s", strerror(errno));
	guard_pid = set_up_cgroup(&plan);
	set_up_weight(&plan);
	pid = start_command(&plan, argv + optind, &signals);
	close(plan.entered[1]);
	close(plan.ready[0]);
	if (write(plan.ready[1], "", 1) != 1)
		kill(pid, SIGKILL);
	close(plan.ready[1]);
	status = watch_command(&plan, pid, &signals);
	if (guard_pid)
		leave_guard(&plan, guard_pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
