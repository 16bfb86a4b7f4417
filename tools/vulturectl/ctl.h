/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that the files of vulturectl share. */
#ifndef VULTURECTL_CTL_H
#define VULTURECTL_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "../libvulture/internal.h"

#define LBE_RUN	"/run/lbe"	/* records of what is in force now */

extern bool json;		/* --json: machine-readable output */
extern struct vulture *v;	/* NULL if the module is absent and the command works without it */

extern const char *command_name;	/* the verb of the command line; NULL until it is read */

/* usage_of_command() - print the usage of the command */
void usage_of_command(FILE *to);

/* wrong() - the command line is wrong: print a sentence and the command's usage, exit status 2 */
__attribute__((format(printf, 1, 2), noreturn))
void wrong(const char *format, ...);

/* wrong_option() - the same if getopt has printed the sentence */
__attribute__((noreturn))
void wrong_option(void);

/* refused() - the command failed: print a sentence, exit status 1 */
__attribute__((format(printf, 1, 2), noreturn))
void refused(const char *format, ...);

/* say() - print a note on standard error */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/* set_*() - convert a word to a value. Return: NULL, or a sentence that says what @text should be
 */
const char *set_number(uint64_t *value, const char *text, const char *what, uint64_t min,
		       uint64_t max);
const char *set_port(uint16_t *port, const char *text);
const char *set_prefix(struct vulture_rule *rule, const char *text);
const char *set_dscp(struct vulture_rule *rule, const char *text);
const char *set_cgroup(uint64_t *cgroup, const char *dir);
const char *set_option(struct vulture_options *options, const char *name, const char *text);

/* must() - call wrong() with the sentence of a set_*(), if it returned one */
void must(const char *why);

/* read_number() - set_number() for a word of the command line; calls wrong() on failure */
uint64_t read_number(const char *text, const char *what, uint64_t min, uint64_t max);

/* read_option() - read NAME=VALUE, the argument of -o */
void read_option(struct vulture_options *options, char *text);

/* read_endpoint() - read an address with a port: 10.0.0.1:80 or [fd00::1]:80 */
void read_endpoint(const char *text, struct sockaddr_in6 *to);
uint64_t read_cgroup(const char *dir);

/* cgroup_descriptor() - open a cgroup's directory, for a rule that is added without privilege */
int cgroup_descriptor(const char *dir);

/* find_cgroup_root() - the mount point of the v2 hierarchy; "" if it is not mounted */
void find_cgroup_root(char *path, size_t room);

/* check() - if a library call failed, print its error text and exit: status 1, or 2 if a number was
 * out of its range
 */
void check(int result);

/* with_room() - grow the array @at, which has @n members of @size bytes and room for *@room, if it
 * has no room for another member. Return: the array. Exits with status 1 if memory is short.
 */
void *with_room(void *at, size_t n, size_t *room, size_t size);

/* no_arguments() - call wrong() if a command that takes no argument has one */
void no_arguments(int argc, char **argv);

/* show_plain() - describe one connection in plain words on standard output */
void show_plain(const struct vulture_flow *flow);

int do_list(int argc, char **argv);	/* monitor.c */
int do_monitor(int argc, char **argv);
int do_top(int argc, char **argv);	/* top.c; argc 0: the command line has no verb */
int do_metrics(int argc, char **argv);
int do_run(int argc, char **argv);	/* run.c */
/* The signals that fg and bg send to a run by sigqueue(). The value is the process that they name,
 * or 0 for the whole command. A run is recognised by blocking both; no other process does.
 */
#define SIGNAL_FG	(SIGRTMIN + 5)
#define SIGNAL_BG	(SIGRTMIN + 6)
#define RUN_CGROUP	"vulture"	/* the cgroup of a run is named RUN_CGROUP-PID */
#define OWN_CGROUP	"lbe-own"	/* OWN_CGROUP-PID: cgroup of a process named to bg or fg */
/* find_cgroup_of() - path of a process's cgroup below the root: "/" or "/user.slice/..."
 * Return: 0, or -1 with errno
 */
int find_cgroup_of(pid_t pid, char *path, size_t room);
#define CGROUP_CHARS	1792	/* room for the path of a cgroup's directory */
/* find_cgroup_dir_of() - directory of a process's cgroup. Return: 0, or -1 with errno and "" */
int find_cgroup_dir_of(pid_t pid, char dir[CGROUP_CHARS]);
/* make_cgroup() - make the cgroup NAME-PID below the cgroup of process @pid; @dir is its directory.
 * Return: 0, or -1 with errno
 */
int make_cgroup(char dir[CGROUP_CHARS], const char *name, pid_t pid);
/* give_cgroup() - let a user move processes to a cgroup. Return: 0, or -1 with errno */
int give_cgroup(const char *dir, uid_t uid, gid_t gid);
#define REMOVE_MS	500	/* interval between attempts to remove a cgroup */
/* cgroup_is_populated() - whether a cgroup, or one below, has a process. @events: descriptor of its
 * cgroup.events, which poll() then says to have changed (POLLPRI)
 */
bool cgroup_is_populated(int events);
/* remove_cgroup() - remove a cgroup and those below it if they have no process. Return: whether it
 * is gone
 */
bool remove_cgroup(const char *dir);
/* enter_cgroup() - move a process, 0 for this one, to a cgroup. Return: 0, or -1 with errno */
int enter_cgroup(const char *dir, pid_t pid);
/* guard_cgroup() - start a process that removes the cgroup once it is empty */
void guard_cgroup(const char *dir);
int do_hold(int argc, char **argv);	/* hold.c */
int do_rule(int argc, char **argv);	/* rules.c */
/* all_rules() - an array of all rules, which the caller must free() */
struct vulture_rule *all_rules(size_t *n);
/* live_foreground() - switch all present connections of these processes to the foreground, both
 * directions
 */
struct pids;
void live_foreground(const struct pids *pids);	/* live.c */
/* live_background() - switch them to the background. @up NULL leaves uploads as they are, @options
 * NULL downloads
 */
void live_background(const struct pids *pids, const char *up,
		     const struct vulture_options *options);
int do_bg(int argc, char **argv);	/* live.c */
int do_fg(int argc, char **argv);
int do_apply(int argc, char **argv);	/* conf.c */
int do_showconf(int argc, char **argv);

#endif /* VULTURECTL_CTL_H */
