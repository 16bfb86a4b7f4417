// SPDX-License-Identifier: GPL-2.0
/* Socket options, see sock.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock.h"

int sock_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

int sock_set_buffer(int fd, bool send, u32 bytes)
{
	/* The kernel doubles the value; FORCE ignores wmem_max, rmem_max. */
	int half = bytes / 2;

	if (!sock_set(fd, SOL_SOCKET, send ? SO_SNDBUFFORCE : SO_RCVBUFFORCE,
		      half))
		return 0;
	return sock_set(fd, SOL_SOCKET, send ? SO_SNDBUF : SO_RCVBUF, half);
}

int sock_error(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return errno;
	return err;
}

socklen_t address_len(const union address *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static void available_cc(char *text, int size)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control",
			"re");

	if (!f || !fgets(text, size, f))
		snprintf(text, size, "unknown");
	text[strcspn(text, "\n")] = '\0';
	if (f)
		fclose(f);
}

int sock_set_cc(int fd, const char *cc, char *why)
{
	char known[128];
	int err;

	if (!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)))
		return 0;
	err = errno;
	available_cc(known, sizeof(known));
	snprintf(why, SOCK_ERROR_LEN,
		 "congestion control %s refused: %s (available: %s)", cc,
		 strerror(err), known);
	return -1;
}

static int sock_set_why(int fd, int level, int name, int value,
			const char *text, char *why)
{
	int err = sock_set(fd, level, name, value);

	if (!err)
		return 0;
	snprintf(why, SOCK_ERROR_LEN, "%s=%u refused: %s", text, value,
		 strerror(-err));
	return -1;
}

/*
 * Sets a hard limit of the receive window.  Autotuning of the receive buffer
 * would raise TCP_WINDOW_CLAMP again, so the buffer is fixed too, and large
 * enough that only the clamp limits the window.
 */
static int set_window(int fd, u32 bytes, char *why)
{
	if (sock_set_buffer(fd, false, min_u64(8ull * bytes, 1u << 30))) {
		snprintf(why, SOCK_ERROR_LEN, "rcvbuf refused: %s",
			 strerror(errno));
		return -1;
	}
	return sock_set_why(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, bytes,
			    "window", why);
}

void sock_clamp_again(int fd, const struct sock_opts *o)
{
	if (o->window_bytes)
		sock_set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, o->window_bytes);
}

int sock_apply(int fd, int family, const struct sock_opts *o, char *why)
{
	if (o->cc[0] && sock_set_cc(fd, o->cc, why))
		return -1;
	if (o->sndbuf_bytes && sock_set_buffer(fd, true, o->sndbuf_bytes)) {
		snprintf(why, SOCK_ERROR_LEN, "sndbuf=%u refused",
			 o->sndbuf_bytes);
		return -1;
	}
	if (o->rcvbuf_bytes && sock_set_buffer(fd, false, o->rcvbuf_bytes)) {
		snprintf(why, SOCK_ERROR_LEN, "rcvbuf=%u refused",
			 o->rcvbuf_bytes);
		return -1;
	}
	if (o->maxseg_bytes &&
	    sock_set_why(fd, IPPROTO_TCP, TCP_MAXSEG, o->maxseg_bytes,
			 "maxseg", why))
		return -1;
	if (o->window_bytes && set_window(fd, o->window_bytes, why))
		return -1;
	if (o->mark && sock_set_why(fd, SOL_SOCKET, SO_MARK, o->mark, "mark",
				    why))
		return -1;
	/* IP_TOS changes SO_PRIORITY, so SO_PRIORITY is set after it. */
	if (o->dscp && family == AF_INET &&
	    sock_set_why(fd, IPPROTO_IP, IP_TOS, o->dscp << 2, "tos", why))
		return -1;
	if (o->dscp && family == AF_INET6 &&
	    sock_set_why(fd, IPPROTO_IPV6, IPV6_TCLASS, o->dscp << 2, "tclass",
			 why))
		return -1;
	if (o->priority && sock_set_why(fd, SOL_SOCKET, SO_PRIORITY,
					o->priority, "priority", why))
		return -1;
	if (o->nodelay && sock_set_why(fd, IPPROTO_TCP, TCP_NODELAY, 1,
				       "nodelay", why))
		return -1;
	return 0;
}

int sock_bind_port(int fd, int family, u32 port, char *why)
{
	union address a = { 0 };

	a.any.sa_family = family;
	a.v4.sin_port = htons(port);
	/* Sockets of an earlier run may be in TIME_WAIT. */
	sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (family == AF_INET6)
		sock_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!bind(fd, &a.any, address_len(&a)))
		return 0;
	snprintf(why, SOCK_ERROR_LEN, "bind to port %u: %s", port,
		 strerror(errno));
	return -1;
}

int timestamps_swap(int value)
{
	static const char path[] = "/proc/sys/net/ipv4/tcp_timestamps";
	char text[16] = "";
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int old = -1;

	if (fd < 0)
		return -errno;
	if (read(fd, text, sizeof(text) - 1) > 0)
		old = atoi(text);
	snprintf(text, sizeof(text), "%d\n", value);
	if (old < 0 || pwrite(fd, text, strlen(text), 0) < 0)
		old = errno ? -errno : -EIO;
	close(fd);
	return old;
}
