/* SPDX-License-Identifier: GPL-2.0 */
/* Socket options; a failure gives a message with option and value. */
#ifndef LBE_AGENT_SOCK_H
#define LBE_AGENT_SOCK_H

#include "plan.h"

#define SOCK_ERROR_LEN	256

/* These return 0, or -1 with the reason in why. */
int sock_apply(int fd, int family, const struct sock_opts *o, char *why);
int sock_set_cc(int fd, const char *cc, char *why);
int sock_bind_port(int fd, int family, u32 port, char *why);

int sock_set(int fd, int level, int name, int value);	/* 0 or -errno */
int sock_set_buffer(int fd, bool send, u32 bytes);	/* by FORCE if permitted */
int sock_error(int fd);			/* pending error, positive errno or 0 */
/*
 * Sets the window clamp of sock_apply() again: after the first full segment
 * TCP computes the window anew from the buffer (tcp_measure_rcv_mss(), since
 * 6.6).
 */
void sock_clamp_again(int fd, const struct sock_opts *o);

socklen_t address_len(const union address *a);

/* Sets the namespace's tcp_timestamps; returns the old value, or a negative errno. */
int timestamps_swap(int value);

#endif
