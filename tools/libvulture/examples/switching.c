// SPDX-License-Identifier: GPL-2.0
/*
 * switching: a download that changes its mode while it runs.
 *
 *	switching ADDRESS PORT BEST_EFFORT_S BACKGROUND_S
 *
 * Connects, reads for BEST_EFFORT_S as best effort, then for BACKGROUND_S in the
 * background, and the rest as best effort again, like the client of the paper's
 * experiments. Once a second it prints the rate and the window.
 *
 *	cc switching.c $(pkg-config --cflags --libs libvulture) -lmnl -o switching
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <vulture.h>

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *one;
	int error = getaddrinfo(host, port, &hints, &list), fd = -1;

	if (error)
		errx(1, "%s port %s: %s", host, port, gai_strerror(error));
	for (one = list; one; one = one->ai_next) {
		fd = socket(one->ai_family, one->ai_socktype, one->ai_protocol);
		if (fd >= 0 && !connect(fd, one->ai_addr, one->ai_addrlen))
			break;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		err(1, "%s port %s", host, port);
	return fd;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void tell(struct vulture *v, int fd, double at_s, double mbit_s)
{
	struct vulture_flow *flow = vulture_flow_new();
	int64_t window = 0, queue = 0;

	if (!flow)
		err(1, "no memory");
	if (vulture_get(v, fd, flow) < 0) {
		printf("%6.1f s %7.2f Mbit/s  best effort\n", at_s, mbit_s);
	} else {
		vulture_flow_number(flow, "rwnd_bytes", &window);
		vulture_flow_number(flow, "queue_us", &queue);
		printf("%6.1f s %7.2f Mbit/s  background, window %lld kB, queue %lld ms\n", at_s,
		       mbit_s, (long long)window / 1000, (long long)queue / 1000);
	}
	vulture_flow_free(flow);
}

int main(int argc, char **argv)
{
	double begin_s, told_s, start_s, stop_s, told_bytes = 0, bytes = 0;
	enum { BEFORE, BACKGROUND, AFTER } mode = BEFORE;
	static char buffer[65536];
	struct vulture *v;
	ssize_t got;
	int fd;

	if (argc != 5) {
		fputs("usage: switching ADDRESS PORT BEST_EFFORT_S BACKGROUND_S\n", stderr);
		return 2;
	}
	start_s = atof(argv[3]);
	stop_s = start_s + atof(argv[4]);
	v = vulture_open();
	if (!v)
		errx(1, "%s", vulture_error(NULL));
	fd = connect_to(argv[1], argv[2]);
	begin_s = now_s();
	told_s = begin_s;
	while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
		double at_s = now_s();

		bytes += (double)got;
		if (mode == BEFORE && at_s - begin_s >= start_s) {
			if (vulture_start(v, fd, NULL) < 0)
				errx(1, "%s", vulture_error(v));
			mode = BACKGROUND;
		} else if (mode == BACKGROUND && at_s - begin_s >= stop_s) {
			if (vulture_stop(v, fd) < 0)
				errx(1, "%s", vulture_error(v));
			mode = AFTER;
		}
		if (at_s - told_s >= 1) {
			tell(v, fd, at_s - begin_s,
			     (bytes - told_bytes) * 8 / (at_s - told_s) / 1e6);
			told_s = at_s;
			told_bytes = bytes;
		}
	}
	if (got < 0)
		err(1, "read");
	vulture_close(v);
	return 0;
}
