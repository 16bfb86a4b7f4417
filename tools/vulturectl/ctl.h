/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of vulturectl share. */
#ifndef VULTURECTL_CTL_H
#define VULTURECTL_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "../libvulture/internal.h"

#define LBE_RUN	"/run/lbe"	/* what is in force now */

extern bool json;		/* --json: machine-readable output */
extern struct vulture *v;	/* NULL where the module is absent and the command can do without */

extern const char *command_name;	/* as the usage has it; NULL until it is known */

/* usage_of_command() - how the command is called */
void usage_of_command(FILE *to);

/* wrong() - the command line is wrong: a sentence, the command's usage, exit status 2 */
__attribute__((format(printf, 1, 2), noreturn))
void wrong(const char *format, ...);

/* wrong_option() - the same where getopt has said the sentence */
__attribute__((noreturn))
void wrong_option(void);

/* refused() - it cannot be done: a sentence, exit status 1 */
__attribute__((format(printf, 1, 2), noreturn))
void refused(const char *format, ...);

/* say() - a note on standard error */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/* set_*() - a value from a word. NULL, or a sentence that says what @text should be */
const char *set_number(uint64_t *value, const char *text, const char *what, uint64_t min,
		       uint64_t max);
const char *set_port(uint16_t *port, const char *text);
const char *set_prefix(struct vulture_rule *rule, const char *text);
const char *set_dscp(struct vulture_rule *rule, const char *text);
const char *set_cgroup(uint64_t *cgroup, const char *dir);
const char *set_option(struct vulture_options *options, const char *name, const char *text);

/* must() - wrong(), with such a sentence if there is one */
void must(const char *why);

/* read_number() - set_number(), of the command line */
uint64_t read_number(const char *text, const char *what, uint64_t min, uint64_t max);

/* read_option() - NAME=VALUE, as -o has it */
void read_option(struct vulture_options *options, char *text);

/* read_endpoint() - 10.0.0.1:80 or [fd00::1]:80 */
void read_endpoint(const char *text, struct sockaddr_in6 *to);
uint64_t read_cgroup(const char *dir);

/* cgroup_descriptor() - for a rule without privilege */
int cgroup_descriptor(const char *dir);

/* find_cgroup_root() - where the v2 hierarchy is mounted; "" if it is not */
void find_cgroup_root(char *path, size_t room);

/* check() - a library call failed: its sentence, exit status 1; 2 for a number out of its range */
void check(int result);

/* with_room() - the array @at, of @n members of @size bytes and room for *@room, with room for one
 * more. Without memory: exit status 1.
 */
void *with_room(void *at, size_t n, size_t *room, size_t size);

/* no_arguments() - of a command that takes none */
void no_arguments(int argc, char **argv);

/* show_plain() - one connection in plain words, on standard output */
void show_plain(const struct vulture_flow *flow);

int do_list(int argc, char **argv);	/* monitor.c */
int do_monitor(int argc, char **argv);
int do_top(int argc, char **argv);	/* top.c; argc 0: without a verb */
int do_metrics(int argc, char **argv);
int do_run(int argc, char **argv);	/* run.c */
/* What fg and bg tell a run, by sigqueue(): the process that they name, or 0 for the whole command.
 * A run blocks both, and so does nothing else.
 */
#define SIGNAL_FG	(SIGRTMIN + 5)
#define SIGNAL_BG	(SIGRTMIN + 6)
#define RUN_CGROUP	"vulture"	/* that of a run is RUN_CGROUP-PID */
#define OWN_CGROUP	"lbe-own"	/* OWN_CGROUP-PID, of a process that bg or fg has named */
/* find_cgroup_of() - a process's cgroup below the root: "/" or "/user.slice/..." Return: 0, or -1
 * with errno
 */
int find_cgroup_of(pid_t pid, char *path, size_t room);
#define CGROUP_CHARS	1792	/* of a cgroup's directory */
/* make_cgroup() - dir = NAME-PID, below the cgroup of that process. Return: 0, or -1 with errno */
int make_cgroup(char dir[CGROUP_CHARS], const char *name, pid_t pid);
#define REMOVE_MS	500	/* until an attempt to remove one is repeated */
/* remove_cgroup() - with those below it, if no process is there. Return: whether it is gone */
bool remove_cgroup(const char *dir);
/* enter_cgroup() - a process, 0 for this one, moves. Return: 0, or -1 with errno */
int enter_cgroup(const char *dir, pid_t pid);
/* guard_cgroup() - start a process that removes it once it is empty */
void guard_cgroup(const char *dir);
int do_hold(int argc, char **argv);	/* hold.c */
int do_rule(int argc, char **argv);	/* rules.c */
/* all_rules() - an array of them, to free() */
struct vulture_rule *all_rules(size_t *n);
/* live_foreground() - all connections that these processes have now, both ways */
struct pids;
void live_foreground(const struct pids *pids);	/* live.c */
/* live_background() - and back; @up NULL leaves what is sent, @options NULL what is received */
void live_background(const struct pids *pids, const char *up,
		     const struct vulture_options *options);
int do_bg(int argc, char **argv);	/* live.c */
int do_fg(int argc, char **argv);
int do_apply(int argc, char **argv);	/* conf.c */
int do_showconf(int argc, char **argv);

#endif /* VULTURECTL_CTL_H */
