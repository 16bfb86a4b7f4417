// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl run: a command whose connections use spare bandwidth only, both ways.
 *
 *	            as root                     in a cgroup of one's own    else
 *	downloads   a rule for a cgroup below   the same                    each socket
 *	uploads     a BPF program for it        each socket                 each socket
 *
 * A rule and a program act from a connection's first packet, a look at each socket
 * WATCH_MS later at the latest. The administrator's service gives a user a cgroup of
 * one's own, with the program if uploads are asked for (lend.h). Without it a cgroup is
 * one's own if one may write to it, as below systemd's user manager (systemd-run --user
 * --scope).
 *
 *	run ---- the command, in its cgroup, with the rights of the invoking user
 *	 |
 *	 +------ guard: holds rule and program, or what is lent, until the cgroup is empty, then
 *	         removes both and the cgroup; it outlives a run that is killed
 *
 * Without the cgroup's means, run looks at the sockets of the command and of
 * its descendants instead (watch.h), which needs no privilege.
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
#include "steer.h"
#include "upload.h"
#include "watch.h"

/* ms that run waits for its guard once the command has ended */
#define GUARD_WAIT_MS	200
/* ms until run goes on if its guard does not answer: it has been killed, or stopped */
#define ORDER_WAIT_MS	1000
/* ms until run, with nothing else to do, looks for a process in another network namespace: for the
 * first time, and at most; each time is twice the one before
 */
#define NAMESPACE_MS		1000
#define NAMESPACE_MAX_MS	3600000
/* a week: what lies further off is a schedule, which is for a timer */
#define DEADLINE_MAX_S	(168 * 3600ULL)

/**
 * struct plan - what run was asked for, and how it goes about it
 * @up: congestion control for uploads, NULL for none
 * @down: downloads too
 * @watched_up, @watched_down: by looking at sockets, not by the cgroup
 * @dir: the cgroup's directory; "" without one
 * @deadline: from then on the command is in the foreground, wall clock; 0 = never
 * @begin: of the command, wall clock
 * @in_front: it is an ordinary program until the cycle of steer.h goes on
 * @by_hand: it is an ordinary program until `vulturectl bg`
 * @taken_out: processes that `vulturectl fg` has named, with their children
 * @steer, @steered: the weight of its downloads, if it has one
 * @link: the program on the cgroup, or -1
 * @lent: a connection to the service that lends a user a cgroup, or -1
 * @ready: written once rule and program are in force; the command waits for it
 * @entered: closed once the command is in its cgroup; the guard waits for it
 * @orders: what run tells its guard, a byte each, and the guard's answers; [1] is run's, -1 without
 *	a guard
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
	char dir[CGROUP_CHARS];
	int link, lent;
	int ready[2], entered[2], orders[2];
};

/* orders: the cgroup is an ordinary one now; and back */
#define ORDER_FRONT	'f'
#define ORDER_BACK	'b'

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
		/* what follows would be read as a line, and its author may have chosen it */
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

/* What make_cgroup() would make. Return: 0, or -1 with errno if that is not allowed. */
static int name_cgroup(char dir[CGROUP_CHARS], const char *name, pid_t pid)
{
	char root[512], own[1024];
	char procs[2048];
	int length;

	find_cgroup_root(root, sizeof(root));
	if (!*root) {
		errno = ENODEV;
		return -1;
	}
	if (find_cgroup_of(pid, own, sizeof(own)))
		return -1;
	length = snprintf(dir, CGROUP_CHARS, "%s%s%s%s-%d", root, own,
			  own[strlen(own) - 1] == '/' ? "" : "/", name, (int)pid);
	if (length < 0 || length >= CGROUP_CHARS) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* A process enters it from there: that cgroup's list changes too. */
	snprintf(procs, sizeof(procs), "%s%s/cgroup.procs", root, own);
	return access(procs, W_OK);
}

int make_cgroup(char dir[CGROUP_CHARS], const char *name, pid_t pid)
{
	if (name_cgroup(dir, name, pid))
		return -1;
	/* one that is empty has been left by a process that had this number */
	rmdir(dir);
	return mkdir(dir, 0755);
}

static bool is_populated(int events)
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
	if (events >= 0 && !is_populated(events))
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

/* Root only for what needs it; the command has the user's rights. */
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

/* Whom the command runs as where -u says nothing: under sudo, who called it. */
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

	/* Nothing is opened before rule and program are in force. */
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

/* The rule. Return: whether it is there */
static bool guard_down(struct plan *plan)
{
	/* the answer takes its place */
	struct vulture_rule rule = plan->rule;

	if (!v || vulture_rule_add(v, &rule) < 0)
		return false;
	plan->rule.id = rule.id;
	return true;
}

/* The program. Return: whether it is there */
static bool guard_up(struct plan *plan)
{
	plan->link = upload_attach(plan->dir, plan->up, NULL);
	return plan->link >= 0;
}

/* What run says, as long as there is one: it is answered, for run to go on. */
static void take_order(struct plan *plan)
{
	char order;

	if (read(plan->orders[0], &order, 1) != 1) {
		close(plan->orders[0]);
		plan->orders[0] = -1;
		return;
	}
	if (order == ORDER_FRONT) {
		if (plan->rule.id)
			vulture_rule_del(v, plan->rule.id);
		plan->rule.id = 0;
		if (plan->link >= 0)
			close(plan->link);
		plan->link = -1;
	} else {
		if (plan->down && !plan->watched_down && !plan->rule.id)
			guard_down(plan);
		if (plan->up && !plan->watched_up && plan->lent < 0 && plan->link < 0)
			guard_up(plan);
	}
	send(plan->orders[0], &order, 1, MSG_NOSIGNAL);
}

/* Wait until no process is left in the cgroup. */
static void await_empty(struct plan *plan)
{
	struct pollfd events[2] = { { .events = POLLPRI }, { .events = POLLIN } };
	char path[2048];

	snprintf(path, sizeof(path), "%s/cgroup.events", plan->dir);
	events[0].fd = open(path, O_RDONLY | O_CLOEXEC);
	if (events[0].fd < 0)
		return;
	while (is_populated(events[0].fd)) {
		events[1].fd = plan->orders[0];
		if (poll(events, 2, -1) > 0 && events[1].revents)
			take_order(plan);
	}
	close(events[0].fd);
}

/*
 * A reader of the command's output, and who waits for a lock or a mount of the caller's, must not
 * wait for the guard to end. What run was called with is all that is not closed by exec().
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
		return;	/* it stays in use */
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
 * The guard holds what the cgroup's processes need and takes it away when the
 * last one has ended. started: told once all is in force, or not.
 */
__attribute__((noreturn))
static void guard(struct plan *plan, int started)
{
	char answer = 0, byte;

	sigset_t all;

	setsid();
	/* what is sent to all whose command line has the command's words; and SIGPIPE: a run that
	 * was killed hears no answer
	 */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "vulture-guard");
	/* The handle of the parent is the parent's: a netlink socket is not shared. */
	v = vulture_open();
	if (plan->down && !plan->watched_down) {
		plan->rule.by_fd = geteuid();
		if (plan->rule.by_fd)
			plan->rule.cgroup_fd = cgroup_descriptor(plan->dir);
		if (!guard_down(plan)) {
			say("run: cannot add a rule for the cgroup, so run watches the command's sockets instead: %s",
			    vulture_error(v));
			answer |= 1;
		}
	}
	if (plan->up && !plan->watched_up && plan->lent < 0) {
		if (!guard_up(plan)) {
			say("run: cannot use BPF for the cgroup, so run watches the command's sockets instead: %s",
			    upload_error());
			answer |= 2;
		}
	}
	answer |= 0x40;
	if (write(started, &answer, 1) != 1)
		answer |= 3;
	close(started);
	drop_callers();
	/* The end of the pipe: the command has entered the cgroup, or never will. */
	close(plan->ready[0]);
	close(plan->ready[1]);
	close(plan->entered[1]);
	close(plan->orders[1]);
	while (read(plan->entered[0], &byte, 1) < 0 && errno == EINTR)
		;
	await_empty(plan);
	if (plan->rule.id)
		vulture_rule_del(v, plan->rule.id);
	while (!remove_cgroup(plan->dir)) {
		poll(NULL, 0, REMOVE_MS);
		await_empty(plan);
	}
	_exit(0);
}

/* Cgroup and guard. Return: the guard's pid, or 0 if the cgroup has no means for anything asked. */
static pid_t set_up_cgroup(struct plan *plan)
{
	int started[2];
	char answer = 0;
	pid_t pid;

	if (pipe2(started, O_CLOEXEC))
		refused("run: %s", strerror(errno));
	/* the kernel lets root alone load programs */
	plan->watched_up = geteuid() && plan->lent < 0;
	if ((!plan->down && plan->watched_up) || make_cgroup(plan->dir, RUN_CGROUP, getpid())) {
		*plan->dir = '\0';
		plan->watched_up = plan->lent < 0;
		plan->watched_down = true;
		close(started[0]);
		close(started[1]);
		close(plan->orders[0]);
		close(plan->orders[1]);
		plan->orders[1] = -1;
		return 0;
	}
	plan->rule.cgroup = read_cgroup(plan->dir);
	pid = fork();
	if (pid == 0) {
		close(started[0]);
		guard(plan, started[1]);
	}
	close(started[1]);
	close(plan->orders[0]);
	if (pid < 0 || read(started[0], &answer, 1) != 1) {
		rmdir(plan->dir);
		refused("run: cannot start the guard: %s", strerror(errno));
	}
	close(started[0]);
	plan->watched_down = plan->watched_down || (answer & 1);
	plan->watched_up = plan->watched_up || (answer & 2);
	return pid;
}

/* Where the command is: `vulturectl fg` and `bg`, and the deadline */

/* Rule and program of the cgroup; they have changed when this returns, unless the guard is gone. */
static void tell_guard(const struct plan *plan, char order)
{
	struct pollfd done = { .fd = plan->orders[1], .events = POLLIN };

	if (done.fd < 0 || send(done.fd, &order, 1, MSG_NOSIGNAL) != 1)
		return;
	if (poll(&done, 1, ORDER_WAIT_MS) > 0)
		recv(done.fd, &order, 1, 0);
}

/* The command and all that it has started; none without memory. */
static void command_pids(const struct plan *plan, pid_t pid, struct pids *pids)
{
	if (*plan->dir ? cgroup_pids(plan->dir, pids) : tree_pids(pid, pids))
		pids_free(pids);
}

/* Without those that `vulturectl fg` has taken out, and their children. */
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

/* The whole command: what it has now and what it opens later. */
static void all_to_front(struct plan *plan, pid_t pid)
{
	struct pids pids = {};

	plan->by_hand = true;
	if (plan->lent >= 0 && plan->up)
		lend_program(plan->lent, false);
	tell_guard(plan, ORDER_FRONT);
	command_pids(plan, pid, &pids);
	live_foreground(&pids);
	pids_free(&pids);
}

static void all_to_back(struct plan *plan, pid_t pid)
{
	struct pids pids = {};

	plan->by_hand = false;
	plan->in_front = false;
	pids_free(&plan->taken_out);
	if (plan->lent >= 0 && plan->up)
		lend_program(plan->lent, true);
	tell_guard(plan, ORDER_BACK);
	command_pids(plan, pid, &pids);
	live_background(&pids, plan->up, plan->down ? &plan->rule.options : NULL);
	pids_free(&pids);
}

/* What `vulturectl fg` or `bg` says of a process of the command, or of all (0). The connections
 * that one process has now are theirs.
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

/* From now on the command is an ordinary one. */
static void meet_deadline(struct plan *plan, pid_t pid)
{
	plan->deadline = 0;
	plan->steered = false;
	all_to_front(plan, pid);
	say("run: the deadline has come: the command is in the foreground now");
}

/* The service has nothing more to say: what can be read is its end. */
static void mind_service(struct plan *plan)
{
	struct pollfd end = { .fd = plan->lent, .events = POLLIN };

	if (plan->lent < 0 || !plan->up || poll(&end, 1, 0) <= 0)
		return;
	plan->lent = -1;
	plan->watched_up = true;
	say("run: lbe-background has ended; from now on uploads are put in the background up to %d ms after they are opened",
	    WATCH_MS);
}

/* Step to the foreground and back, as steer.h says. */
static void near_deadline(struct plan *plan, const struct pids *pids)
{
	uint64_t total_s = (uint64_t)(plan->deadline - plan->begin);
	time_t now = time(NULL);
	uint64_t gone_s = now > plan->begin ? (uint64_t)(now - plan->begin) : 0;
	bool in_front = steer_in_front(total_s, gone_s);

	if (in_front == plan->in_front)
		return;
	plan->in_front = in_front;
	if (in_front)
		live_foreground(pids);
	else
		live_background(pids, plan->up, plan->down ? &plan->rule.options : NULL);
}

/* A rule is of a network namespace, and so is this process's handle. Return: whether it was said */
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

/* Signals: what run alone gets is passed on; what its process group gets, the command has, too */

static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
#define PASSED	(sizeof(passed) / sizeof(passed[0]))

/* ms after a signal in which the same one to the group counts as that one: timeout(1) sends it to
 * its child, then to the group
 */
#define GROUP_MS	20

/**
 * struct signals - those of the command
 * @set: what run may pass on: not what its caller ignores
 * @fd: where they come
 * @witness: a process of the same group that blocks all, so that what was sent to the group is
 *	pending there: nothing else tells it from what was sent to run; 0 or less for none
 */
struct signals {
	sigset_t set;
	int fd;
	pid_t witness;
};

/* Fork, with no signal between. Return: as fork() */
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

/* What is pending for a process; nothing if that cannot be read. */
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

/* Some have come. What `vulturectl fg` and `bg` say is done by take_word(). */
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

/* Start the command. It has the signals as the caller has set them, and misses none. */
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

/* Whether run has anything to do while the command runs. */
static bool has_work(const struct plan *plan)
{
	return (plan->watched_up && plan->up) || (plan->watched_down && plan->down) ||
	       plan->deadline || plan->steered || (plan->lent >= 0 && plan->up);
}

/*
 * Look at the sockets of the command and its descendants, at the clock and at signals, until it
 * ends. Return: its status, as waitpid() has it
 */
static int watch_command(struct plan *plan, pid_t pid, struct signals *signals)
{
	struct watch watch = { .options = &plan->rule.options };
	struct pollfd events[] = {
		{ .fd = pidfd_open(pid, 0), .events = POLLIN },
		{ .fd = signals->fd, .events = POLLIN },
	};
	/* without a descriptor of the process its end is looked for, too */
	bool idle = events[0].fd >= 0 && !has_work(plan), elsewhere = false;
	int wait_ms = idle ? NAMESPACE_MS : WATCH_MS;
	unsigned long told = 0, round;
	int status;
	pid_t ended;

	for (round = 0; (ended = waitpid(pid, &status, WNOHANG)) == 0; round++) {
		bool second = idle || round % (STEER_MS / WATCH_MS) == 0;
		struct pids pids = {};

		if (plan->deadline && time(NULL) >= plan->deadline)
			meet_deadline(plan, pid);
		mind_service(plan);
		watch.up = plan->watched_up && !plan->by_hand ? plan->up : NULL;
		watch.down = plan->watched_down && !plan->by_hand && plan->down ? v : NULL;
		if (watch.up || watch.down || second)
			command_pids(plan, pid, &pids);
		if (second && plan->down && !elsewhere)
			elsewhere = say_other_namespace(&pids);
		leave_out(plan, &pids);
		if (watch.up || watch.down)
			watch_pids(&watch, &pids);
		if (second && plan->deadline && !plan->by_hand)
			near_deadline(plan, &pids);
		if (second && plan->steered && !plan->in_front && !plan->by_hand)
			steer_pids(&plan->steer, &pids);
		pids_free(&pids);
		if (watch.refused && !told++)
			say("run: a connection stays in the foreground: %s", watch.reason);
		if (poll(events, 2, wait_ms) > 0 && events[1].revents)
			pass_on(signals, pid, plan);
		else if (idle && wait_ms < NAMESPACE_MAX_MS)
			wait_ms *= 2;
	}
	close(events[0].fd);
	end_witness(signals->witness);
	watch_end(&watch);
	return ended == pid ? status : -1;
}

/* "06:00", the next time that the clock says so, or "90s", "45m", "6h" from now. */
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

/* The guard ends with the last process of the cgroup; says so if some still run. */
static void leave_guard(const struct plan *plan, pid_t pid)
{
	int waited;

	for (waited = 0; waited < GUARD_WAIT_MS; waited += 10) {
		if (waitpid(pid, NULL, WNOHANG) == pid) {
			/* one that was killed has left it, and the rule, which ends with it */
			remove_cgroup(plan->dir);
			return;
		}
		poll(NULL, 0, 10);
	}
	say("run: some processes of %s still run; they stay in the background until they end",
	    plan->dir);
}

/*
 * A user's cgroup, by the administrator's service: for uploads, and for downloads where none of
 * one's own can be made. Return: what uploads use
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

/* The directions that can be put in the background, of those asked for; exits if there is none. */
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

/* Weight and deadline of the downloads. A deadline alone needs no weight of the law. */
static void set_up_steering(struct plan *plan)
{
	struct steer *steer = &plan->steer;

	if (steer->percent && !plan->down)
		refused("run: --weight is for downloads only, and this command's stay in the foreground");
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
