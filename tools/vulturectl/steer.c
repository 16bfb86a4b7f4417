// SPDX-License-Identifier: GPL-2.0
/* Sets the weight of a program as an option of its downloads. */
#include "steer.h"

#include <netinet/tcp.h>
#include <string.h>

bool steer_first(const struct steer *steer, struct vulture_options *options)
{
	uint32_t credit = (uint32_t)vulture_controller_number("credit");
	bool chosen = options->set & 1ULL << VULTURE_OPTION_CONTROLLER;

	if (chosen && options->value[VULTURE_OPTION_CONTROLLER] != credit)
		return false;
	vulture_option(options, "controller", credit);
	if (steer->percent)
		vulture_option(options, "weight", steer_weight(steer->percent, 1, 0, 0));
	return true;
}

/* The options of this round, for the number of connections that the previous round counted. */
static void choose_options(struct steer *steer)
{
	time_t now = time(NULL);
	uint64_t total_s = 0, left_s = 0;

	if (steer->deadline) {
		if (steer->deadline > steer->begin)
			total_s = (uint64_t)(steer->deadline - steer->begin);
		if (steer->deadline > now)
			left_s = (uint64_t)(steer->deadline - now);
	}
	steer->now = *steer->options;
	vulture_option(&steer->now, "weight",
		       steer_weight(steer->percent, steer->connections, total_s, left_s));
}

static void one_socket(const struct tcp_socket *socket, void *arg)
{
	struct steer *steer = arg;
	struct vulture_flow flow;

	/* A connection that is not under control has been stopped, or is not a download. */
	if (socket->state != TCP_ESTABLISHED || vulture_get(steer->v, socket->fd, &flow))
		return;
	steer->seen++;
	if (steer->connections)
		vulture_start(steer->v, socket->fd, &steer->now);
}

void steer_pids(struct steer *steer, const struct pids *pids)
{
	size_t i;

	if (steer->connections)
		choose_options(steer);
	steer->seen = 0;
	for (i = 0; i < pids->count; i++)
		pid_sockets(pids->pid[i], NULL, one_socket, steer);
	steer->connections = steer->seen;
}
