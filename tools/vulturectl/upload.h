/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a host sends: congestion control, DSCP and priority of its sockets.
 *
 * A background socket has a less-than-best-effort congestion control, DSCP LE
 * (RFC 8622) and the priority TC_PRIO_FILLER. Another DSCP is the application's
 * and stands. Of its other settings none is kept: a socket that goes back to the
 * foreground gets the namespace's default control, DSCP 0 for LE, and priority 0.
 */
#ifndef VULTURECTL_UPLOAD_H
#define VULTURECTL_UPLOAD_H

#include <stdbool.h>

/* DSCP LE in the upper six bits of the traffic class */
#define LE_TOS		0x04
/* of linux/pkt_sched.h */
#define PRIO_FILLER	1

/**
 * upload_control() - the best less-than-best-effort control that can be used here
 *
 * The order is lbe, ledbatpp, ledbat, lp. A control counts if a socket of this
 * process can choose it; as root that loads its module.
 * Return: its name, or NULL if there is none.
 */
const char *upload_control(void);

/** upload_controls() - the names that upload_control() tries, for messages */
const char *upload_controls(void);

/**
 * upload_background() - what this socket sends goes to the background
 * @control: from upload_control()
 * Return: 0, or -1 with errno if the control was refused.
 */
int upload_background(int fd, const char *control);

/** upload_foreground() - and back. Return: 0, or -1 with errno. */
int upload_foreground(int fd);

/**
 * upload_attach() - all sockets that a cgroup opens or accepts from now on
 * @dir: directory of a v2 cgroup
 * @control: from upload_control(), the same in each call of a process
 * @pin: a path on a BPF file system that keeps it after this process has
 *	ended, or NULL
 * Return: 0 with a pin; without one a descriptor, until that is closed; or -1:
 * upload_error() says why.
 */
int upload_attach(const char *dir, const char *control, const char *pin);

/* what the program does on a cgroup; UPLOAD_NONE: there is none */
enum upload_mode { UPLOAD_BACKGROUND, UPLOAD_FOREGROUND, UPLOAD_NONE };

/**
 * upload_mode() - of one cgroup and not of those above it
 *
 * Return: the mode; -1 if that cannot be known: upload_error() says why.
 */
int upload_mode(const char *dir);

/**
 * upload_switch() - sockets that a cgroup opens or accepts from now on, whatever holds those above
 * @dir: directory of a v2 cgroup
 * @mode: UPLOAD_BACKGROUND or UPLOAD_FOREGROUND
 * @attach: a program is needed, if none is there that somebody else has attached
 * @control: from upload_control()
 *
 * What it attaches ends with the cgroup, or with the next call for it.
 * Return: 0, or -1: upload_error() says why.
 */
int upload_switch(const char *dir, enum upload_mode mode, bool attach, const char *control);

/** upload_error() - a sentence on the latest failure of upload_attach() */
const char *upload_error(void);

#endif /* VULTURECTL_UPLOAD_H */
