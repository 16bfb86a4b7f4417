/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The weight and the deadline of a program.
 *
 * With N downloads of the program under control, and p the fraction of the time to the
 * deadline that has passed (0 without a deadline):
 *
 *	weight of each	= percent * 10 / N / (1 - p)	against 1000 of an ordinary one
 *	in foreground	= p^2 of each cycle of STEER_CYCLE_S
 *
 * The weight divides what is spare among the background programs of a path; the
 * program has it whatever its number of connections. It is an option of the
 * controller credit, so uploads have none.
 *
 * A program in front is an ordinary one, both ways, until the cycle goes on. Beside
 * one ordinary transfer it has half of the link there, so on average p^2 / 2: a
 * twelfth of what that one has in the first half of the time, as much as that one at
 * the end. So a deadline raises its weight from less than best effort to best effort,
 * as that of DA-LBE does (Hayes et al. 2017), with any law and without a word about
 * how much is left to move.
 */
#ifndef VULTURECTL_STEER_H
#define VULTURECTL_STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "../libvulture/internal.h"
#include "sockets.h"

/* ms between two rounds: few beside a deadline, many round trips of most paths */
#define STEER_MS		1000
/* --weight, in percent of one ordinary background connection */
#define STEER_PERCENT_MAX	1000
#define STEER_PERCENT		100
/* the option weight of the controller credit: of an ordinary connection, and its limit */
#define STEER_WEIGHT		1000
#define STEER_WEIGHT_MAX	1000000
/* A cycle: in its part in front TCP reaches its share of most paths, and who waits for a page
 * meets one part of it.
 */
#define STEER_CYCLE_S		10
/* nearer deadlines than so many cycles have no part in front */
#define STEER_CYCLES_MIN	6

/**
 * struct steer - the weight of one program; zero what is not named here
 * @v: handle of libvulture
 * @options: of its connections as asked for; the weight is laid over them
 * @percent: weight; 0 leaves each connection an ordinary one
 * @begin, @deadline: wall clock; @deadline 0: none
 */
struct steer {
	struct vulture *v;
	const struct vulture_options *options;
	uint32_t percent;
	time_t begin, deadline;
	/* of the round before */
	unsigned int connections;
	/* of this one */
	unsigned int seen;
	struct vulture_options now;
};

/* steer_weight() - option weight of each of @connections */
static inline uint32_t steer_weight(uint32_t percent, unsigned int connections, uint64_t total_s,
				    uint64_t left_s)
{
	uint64_t all = (uint64_t)(percent ? percent : STEER_PERCENT) * STEER_WEIGHT / STEER_PERCENT;
	uint64_t each = percent && connections ? all / connections : all;

	if (total_s)
		each = each * total_s / (left_s ? left_s : 1);
	return each < 1 ? 1 : each > STEER_WEIGHT_MAX ? STEER_WEIGHT_MAX : (uint32_t)each;
}

/* steer_in_front() - whether a program is to be an ordinary one @gone_s after its start */
static inline bool steer_in_front(uint64_t total_s, uint64_t gone_s)
{
	if (gone_s >= total_s)
		return true;
	if (total_s < STEER_CYCLES_MIN * STEER_CYCLE_S)
		return false;
	return (gone_s % STEER_CYCLE_S) * total_s * total_s < STEER_CYCLE_S * gone_s * gone_s;
}

/* steer_first() - what new connections start with, into @options; false if those forbid it */
bool steer_first(const struct steer *steer, struct vulture_options *options);

/* steer_pids() - one round: the connections of these processes get their options of now */
void steer_pids(struct steer *steer, const struct pids *pids);

#endif /* VULTURECTL_STEER_H */
