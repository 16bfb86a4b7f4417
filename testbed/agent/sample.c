// SPDX-License-Identifier: GPL-2.0
/* The common sampling step of all series, see sample.h. */
#include "flow.h"
#include "loop.h"
#include "queue.h"
#include "records.h"
#include "sample.h"
#include "sink.h"
#include "web.h"

static struct timer step, end;
static u64 step_ns;

static void take_samples(struct timer *t, u64 now_ns)
{
	u64 t_ns = record_time(t->at_ns, now_ns);

	sinks_sample(t_ns);
	webs_sample(t_ns);
	flows_sample(t_ns);
	queues_sample(t_ns);
	timer_arm(t, t->at_ns + step_ns);
}

static void stop(struct timer *t, u64 now_ns)
{
	(void)t;
	(void)now_ns;
	loop_stop();
}

void sampling_start(const struct plan *p, u64 zero_ns)
{
	step_ns = p->sample_ns;
	step = (struct timer){ .fire = take_samples, .rank = RANK_SAMPLE };
	end = (struct timer){ .fire = stop, .rank = RANK_END };
	timer_arm(&step, zero_ns);
	timer_arm(&end, zero_ns + p->end_ns);
}
