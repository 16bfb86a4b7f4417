/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The weight and the deadline of a program.
 *
 * Let N be the number of the program's downloads under control, and p the fraction of the
 * time from its start to the deadline that has passed (0 without a deadline). Then
 *
 *	weight of each download	= percent * 10 / N / (1 - p); an ordinary one has 1000
 *	time in the foreground	= p^2 of each cycle of STEER_CYCLE_S
 *
 * The weights divide the spare bandwidth of a path among the background programs. A
 * program's share does not depend on its number of connections. The weight of downloads is
 * an option of the controller credit. Uploads by lbe have one of their cgroup (weight.h),
 * percent * 10 / (1 - p), which the module divides by the number of connections.
 *
 * In the foreground part of a cycle all connections of the program are best effort, both
 * ways. Beside one best-effort transfer it then has half of the link, so p^2 / 2 of the
 * link on average over a cycle: 1/24 of it over the first half of the time, and half of it
 * at the end. So a deadline raises the program from less than best effort to best effort,
 * as in DA-LBE (Hayes et al. 2017). This works with any control law, and does not need to
 * know how much data is left.
 */
#ifndef VULTURECTL_STEER_H
#define VULTURECTL_STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "../libvulture/internal.h"
#include "sockets.h"

/* ms between two rounds: short compared with a deadline, many round trips of most paths */
#define STEER_MS		1000
/* --weight, in percent of one ordinary background connection */
#define STEER_PERCENT_MAX	1000
#define STEER_PERCENT		100
/* the option weight of the controller credit: the value of an ordinary connection, and the limit */
#define STEER_WEIGHT		1000
#define STEER_WEIGHT_MAX	1000000
/* s of a cycle: long enough that TCP reaches its share of most paths in the foreground part, and
 * that a page load of other traffic meets only one foreground part.
 */
#define STEER_CYCLE_S		10
/* with a deadline nearer than this number of cycles there are no foreground parts */
#define STEER_CYCLES_MIN	6

/**
 * struct steer - the weight of one program; set fields that are not named here to zero
 * @v: handle of libvulture
 * @options: options of its connections as asked for; the weight replaces theirs
 * @percent: weight; 0 leaves each connection an ordinary one
 * @begin, @deadline: wall clock; @deadline 0: none
 */
struct steer {
	struct vulture *v;
	const struct vulture_options *options;
	uint32_t percent;
	time_t begin, deadline;
	/* of the previous round */
	unsigned int connections;
	/* of this round */
	unsigned int seen;
	struct vulture_options now;
};

/* steer_weight() - value of the option weight for each of @connections downloads */
static inline uint32_t steer_weight(uint32_t percent, unsigned int connections, uint64_t total_s,
				    uint64_t left_s)
{
	uint64_t all = (uint64_t)(percent ? percent : STEER_PERCENT) * STEER_WEIGHT / STEER_PERCENT;
	uint64_t each = percent && connections ? all / connections : all;

	if (total_s)
		each = each * total_s / (left_s ? left_s : 1);
	return each < 1 ? 1 : each > STEER_WEIGHT_MAX ? STEER_WEIGHT_MAX : (uint32_t)each;
}

/* steer_in_front() - whether a program is in the foreground @gone_s after its start */
static inline bool steer_in_front(uint64_t total_s, uint64_t gone_s)
{
	if (gone_s >= total_s)
		return true;
	if (total_s < STEER_CYCLES_MIN * STEER_CYCLE_S)
		return false;
	return (gone_s % STEER_CYCLE_S) * total_s * total_s < STEER_CYCLE_S * gone_s * gone_s;
}

/* steer_first() - set in @options what new connections start with. Return: false if @options name
 * another controller than credit
 */
bool steer_first(const struct steer *steer, struct vulture_options *options);

/* steer_pids() - one round: set the present options of the downloads of these processes */
void steer_pids(struct steer *steer, const struct pids *pids);

#endif /* VULTURECTL_STEER_H */
