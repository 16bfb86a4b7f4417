/* SPDX-License-Identifier: GPL-2.0 */
/* Lists the TCP sockets of this network namespace by sock_diag(7), which needs no privilege. */
#ifndef VULTURECTL_DIAG_H
#define VULTURECTL_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "../libvulture/internal.h"

/**
 * struct diag_socket - one connection; counters count since it was opened
 * @address: an IPv6 socket that carries IPv4 has IPv4 addresses here, as vulture reports them
 * @inode: inode of the socket, as /proc/PID/fd shows it
 * @uid: owner of the socket
 * @unread_bytes: bytes received that the application has not read
 * @control: name of the congestion control
 * @acked_bytes: bytes sent and acknowledged
 * @busy_us: time in which there was data to send
 * @rwnd_us: part of @busy_us in which the peer's window was full
 * @sndbuf_us: part of @busy_us in which the send buffer was full
 * @rtt_us, @min_rtt_us: round trip, smoothed and the shortest; 0 if not known
 * @path_Bps: the congestion control's estimate of the path's rate, bytes a second; 0 if it has none
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
 * diag_each() - call @each for all connections in a state in which data may be in flight
 * Return: 0, or -1 with errno (ENOENT: the kernel was built without inet_diag).
 */
int diag_each(void (*each)(const struct diag_socket *socket, void *arg), void *arg);

#endif /* VULTURECTL_DIAG_H */
