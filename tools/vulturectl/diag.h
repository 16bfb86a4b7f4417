/* SPDX-License-Identifier: GPL-2.0 */
/* The TCP sockets of this network namespace, by sock_diag(7); needs no privilege. */
#ifndef VULTURECTL_DIAG_H
#define VULTURECTL_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "../libvulture/internal.h"

/**
 * struct diag_socket - one connection; counters count since it was opened
 * @address: a v6 socket that carries IPv4 has IPv4 addresses here, as vulture has them
 * @inode: of the socket, as /proc/PID/fd shows it
 * @uid: who owns it
 * @unread_bytes: received, and not read by the application
 * @control: name of its congestion control
 * @acked_bytes: sent, and acknowledged
 * @busy_us: time with data to send; of that
 * @rwnd_us: the peer's window was full,
 * @sndbuf_us: the send buffer was full
 * @rtt_us, @min_rtt_us: 0 if not known
 * @path_Bps: rate of the whole path as the congestion control knows it; 0 if it does not
 */
struct diag_socket {
	struct vulture_address address;
	uint64_t inode;
	uint32_t uid;
	uint32_t unread_bytes;
	char control[16];
	uint64_t acked_bytes;
	uint64_t busy_us, rwnd_us, sndbuf_us;
	uint32_t rtt_us, min_rtt_us;
	uint64_t path_Bps;
};

/**
 * diag_each() - all connections, in states with data under way
 * Return: 0, or -1 with errno (ENOENT: the kernel was built without inet_diag).
 */
int diag_each(void (*each)(const struct diag_socket *socket, void *arg), void *arg);

#endif /* VULTURECTL_DIAG_H */
