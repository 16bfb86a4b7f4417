// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the same traffic in two network namespaces in turn: in "with", vulture has
 * FLOWS connections under control (by a rule on local port 7000 and up), and "plain"
 * has none and therefore no hooks. vulture/tests/bench.py runs it in a guest.
 *
 *	bench_traffic FLOWS ROUNDS
 *	bench_traffic beside NAMESPACE OTHER ROUNDS [BEFORE BEFORE_OTHER]
 *
 * beside: nothing is under control. The same traffic runs in NAMESPACE (packet_with, flow_with)
 * and in OTHER (..._plain), which may be the same one, each time after a shell command.
 *
 * Prints lines "NAME NUMBER...": packet_with, packet_plain (CPU ticks for a packet of
 * a connection under control, and of the same in "plain"; one number a round),
 * flow_with, flow_plain (ticks to open and close a connection), filled_with,
 * filled_plain (KiB of memory that FLOWS connections take; the latter for 10000 at
 * most), flows (number in the table, by the guest's count_flows).
 *
 * The CPU's counter is read directly, because in virtual time clocks do not advance
 * while there is work.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <x86intrin.h>

#define PORT		7000
#define LISTENERS	6	/* of 20000 connections each: with more, finding a port is slow */
#define PAYLOAD		1000	/* bytes a packet: below any segment size */
#define PACKETS		2000	/* in a round, half of them each way */
#define COMPARED	10000	/* up to so many, the memory without control is printed too */
#define OPENINGS	200	/* connections opened and closed in a round */

struct place {
	const char *name;
	int listener[LISTENERS];
	int client, server;	/* the pair that is measured; server's end is controlled */
};

static void enter(const struct place *place)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", place->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(1, "%s", path);
	close(fd);
}

static struct sockaddr_in address(int listener)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(PORT + listener)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static int connected(int listener)
{
	struct sockaddr_in to = address(listener);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "connect to port %d", PORT + listener);
	return fd;
}

static void listen_all(struct place *place)
{
	int i, one = 1;

	enter(place);
	for (i = 0; i < LISTENERS; i++) {
		struct sockaddr_in at = address(i);
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 65535))
			err(1, "listen on port %d", PORT + i);
		place->listener[i] = fd;
	}
}

static void open_pair(struct place *place)
{
	int one = 1;

	place->client = connected(0);
	place->server = accept(place->listener[0], NULL, NULL);
	if (place->server < 0)
		err(1, "accept");
	setsockopt(place->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(place->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static long free_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemFree: %ld", &kib) == 1)
			break;
	if (kib < 0)
		errx(1, "/proc/meminfo tells no MemFree");
	fclose(file);
	return kib;
}

/* Connections that are never accepted need no file, and the client's end closes at once. */
static long fill(struct place *place, long flows)
{
	long before = free_kib(), i;

	enter(place);
	for (i = 0; i < flows; i++)
		close(connected((int)(1 + i % (LISTENERS - 1))));
	return before - free_kib();
}

static void pass(int from, int to)
{
	static char data[PAYLOAD];

	if (send(from, data, sizeof(data), 0) != (ssize_t)sizeof(data) ||
	    recv(to, data, sizeof(data), MSG_WAITALL) != (ssize_t)sizeof(data))
		err(1, "a packet was lost");
}

static unsigned long long packets(const struct place *place)
{
	unsigned long long begin = __rdtsc();
	int i;

	for (i = 0; i < PACKETS / 2; i++) {
		pass(place->client, place->server);
		pass(place->server, place->client);
	}
	return (__rdtsc() - begin) / PACKETS;
}

static unsigned long long openings(const struct place *place)
{
	unsigned long long begin;
	int i;

	enter(place);
	begin = __rdtsc();
	for (i = 0; i < OPENINGS; i++) {
		int client = connected(0);
		int server = accept(place->listener[0], NULL, NULL);

		if (server < 0)
			err(1, "accept");
		close(client);
		close(server);
	}
	return (__rdtsc() - begin) / OPENINGS;
}

static const struct {
	const char *name;
	unsigned long long (*measure)(const struct place *place);
} costs[] = {
	{ "packet", packets },
	{ "flow", openings },
};

static void before(const char *command)
{
	if (system(command))
		errx(1, "%s failed", command);
}

static int beside(char **argv, const char *before_with, const char *before_plain)
{
	struct place with = { .name = argv[0] }, other = { .name = argv[1] }, *plain = &other;
	long rounds = atol(argv[2]), i;
	unsigned int m;

	listen_all(&with);
	open_pair(&with);
	if (strcmp(with.name, other.name)) {
		listen_all(plain);
		open_pair(plain);
	} else {
		plain = &with;
	}
	for (m = 0; m < 2; m++) {
		for (i = -1; i < rounds; i++) {
			unsigned long long ticks_with, ticks_plain;

			before(before_with);
			ticks_with = costs[m].measure(&with);
			before(before_plain);
			ticks_plain = costs[m].measure(plain);
			if (i >= 0)	/* the first round is warm-up */
				printf("%s_with %llu\n%s_plain %llu\n", costs[m].name, ticks_with,
				       costs[m].name, ticks_plain);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct place with = { .name = "with" }, plain = { .name = "plain" };
	long flows, rounds, i;
	unsigned int m;

	if ((argc == 5 || argc == 7) && !strcmp(argv[1], "beside"))
		return beside(argv + 2, argc == 7 ? argv[5] : "true", argc == 7 ? argv[6] : "true");
	if (argc != 3) {
		fputs("usage: bench_traffic FLOWS ROUNDS\n", stderr);
		return 2;
	}
	flows = atol(argv[1]);
	rounds = atol(argv[2]);
	listen_all(&with);
	printf("filled_with %ld\n", fill(&with, flows - 1));
	open_pair(&with);
	listen_all(&plain);
	if (flows <= COMPARED)	/* all namespaces share the kernel's table of sockets */
		printf("filled_plain %ld\n", fill(&plain, flows - 1));
	open_pair(&plain);
	for (m = 0; m < 2; m++) {
		costs[m].measure(&with);	/* warm */
		costs[m].measure(&plain);
		for (i = 0; i < rounds; i++) {
			printf("%s_with %llu\n", costs[m].name, costs[m].measure(&with));
			printf("%s_plain %llu\n", costs[m].name, costs[m].measure(&plain));
		}
	}
	fflush(stdout);
	return system("count_flows") != 0;
}
