/* SPDX-License-Identifier: GPL-2.0 */
/* Statistics of queueing disciplines by rtnetlink. */
#ifndef LBE_AGENT_QUEUE_H
#define LBE_AGENT_QUEUE_H

#include "plan.h"

int queues_open(const struct plan *p);	/* fails if a queue does not exist */
void queues_sample(u64 t_ns);		/* a struct rec_queue for each */

#endif
