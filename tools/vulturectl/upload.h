/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Uploads: the congestion control, DSCP and priority of sockets.
 *
 * A background socket has a less-than-best-effort congestion control, DSCP LE
 * (RFC 8622) and the priority TC_PRIO_FILLER. A DSCP that the application has set
 * is kept. Earlier settings are not remembered: a socket that returns to the
 * foreground gets the namespace's default control, DSCP 0 instead of LE, and
 * priority 0.
 */
#ifndef VULTURECTL_UPLOAD_H
#define VULTURECTL_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

/* DSCP LE in the upper six bits of the traffic class */
#define LE_TOS		0x04
/* TC_PRIO_FILLER of linux/pkt_sched.h */
#define PRIO_FILLER	1

/**
 * upload_control() - the best less-than-best-effort control that can be used here
 *
 * The order is lbe, ledbatpp, ledbat, lp. A control can be used if a socket of this
 * process can choose it. If this process is root, the attempt loads its module.
 * Return: its name, or NULL if there is none.
 */
const char *upload_control(void);

/** upload_controls() - the names that upload_control() tries, for messages */
const char *upload_controls(void);

/**
 * upload_background() - put what this socket sends in the background
 * @control: from upload_control()
 * Return: 0, or -1 with errno if the control was refused.
 */
int upload_background(int fd, const char *control);

/** upload_foreground() - put it back in the foreground. Return: 0, or -1 with errno. */
int upload_foreground(int fd);

/**
 * upload_attach() - put all sockets that a cgroup opens or accepts from now on in the background
 * @dir: directory of a v2 cgroup
 * @control: from upload_control(), the same in each call of a process
 * @pin: a path on a BPF file system at which the link is pinned, so that it outlives this
 *	process, or NULL
 * Return: 0 with a pin; without one a descriptor of the link, which lasts until the descriptor is
 * closed; or -1: upload_error() says why.
 */
int upload_attach(const char *dir, const char *control, const char *pin);

/* What the BPF programs of a cgroup do with all its sockets. UPLOAD_NONE: it has no program;
 * UPLOAD_LINES: it has only the one of lines.h, which puts some sockets in the background.
 */
enum upload_mode { UPLOAD_BACKGROUND, UPLOAD_FOREGROUND, UPLOAD_NONE, UPLOAD_LINES };

/**
 * upload_mode() - the mode of one cgroup, regardless of the cgroups above it
 *
 * Return: the mode; -1 if it cannot be read: upload_error() says why.
 */
int upload_mode(const char *dir);

/**
 * upload_switch() - set the mode for sockets that a cgroup opens or accepts from now on
 * @dir: directory of a v2 cgroup
 * @mode: UPLOAD_BACKGROUND or UPLOAD_FOREGROUND
 * @attach: attach a program in this mode if the cgroup has none of another process
 * @control: from upload_control()
 *
 * A program of another process (run, hold, apply) changes its mode; one that an earlier call
 * attached is detached. What this call attaches ends with the cgroup, or with the next call.
 * The mode has precedence over the programs of the cgroups above.
 * Return: 0, or -1: upload_error() says why.
 */
int upload_switch(const char *dir, enum upload_mode mode, bool attach, const char *control);

/**
 * upload_enter() - attach the program of this process in UPLOAD_BACKGROUND; it lasts as long as the
 *	cgroup, also when the process has ended
 * upload_leave() - detach it again
 * @control: from upload_control(), the same in each call of a process
 *
 * Return: 0, or -1: upload_error() says why.
 */
int upload_enter(const char *dir, const char *control);
int upload_leave(const char *dir, const char *control);

/** upload_error() - a sentence that describes the latest failure of a function above */
const char *upload_error(void);

/* For lines.c. Each function that returns int sets upload_error() if it returns -1. */

__attribute__((format(printf, 1, 2)))
int upload_failed(const char *format, ...);
/* upload_refused() - the kernel did not load a program, for this error number. Return: -1 */
int upload_refused(int error);
/* upload_no_bpf() - this build has no BPF. Return: -1 */
int upload_no_bpf(void);
/* upload_be_quiet() - keep libbpf from printing */
void upload_be_quiet(void);
/* upload_open_cgroup() - open a cgroup's directory. Return: a descriptor, or -1 */
int upload_open_cgroup(const char *dir);
/* upload_lines_map() - open the map of program @id, which is one of lines.h. Return: fd, or -1 */
int upload_lines_map(uint32_t id);

#endif /* VULTURECTL_UPLOAD_H */
