/* SPDX-License-Identifier: GPL-2.0 */
/* The common sampling step of all series. */
#ifndef LBE_AGENT_SAMPLE_H
#define LBE_AGENT_SAMPLE_H

#include "plan.h"

/* Samples sinks, flows and queues at 0, sample_ns, ... end_ns; then stops. */
void sampling_start(const struct plan *p, u64 zero_ns);

#endif
