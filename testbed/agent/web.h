/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Web traffic: clients that fetch each object over a separate TCP connection,
 * and the server that sends the objects.
 *
 * Request: 16 bytes, the text "LBE-GET\n" and the object's size as u64,
 * little-endian.  Answer: that number of bytes, then the server closes.  So
 * TIME_WAIT is at the server, and the client's ports are free at once.
 *
 * Two clients (struct web_plan):
 *   open    offered load (Claypool et al., section on the traffic generator):
 *           a page of 1 to `objects` objects, all at once; the next page starts
 *           8 * bytes / rate_bps later (pace=size), or in a Poisson process
 *           of the same load (pace=poisson); congestion does not slow it down
 *   session closed loop (Feldmann et al., as used by TCP-LP's authors): a page
 *           of exactly `objects`, requested at exponential intervals of
 *           mean object_ms; when all are complete, an exponential pause of mean
 *           page_s, then the next page; `sessions` of these run concurrently
 * Sizes: Pareto II, cut to [min_bytes, max_bytes], with the scale for which the
 * cut variable's mean is mean_bytes.
 *
 * The workload is a function of the seed: for open of the plan only, for
 * session of the plan and each session's own sequence of random numbers.
 */
#ifndef LBE_AGENT_WEB_H
#define LBE_AGENT_WEB_H

#include "plan.h"

int webs_open(const struct plan *p, u64 zero_ns);
void webs_sample(u64 t_ns);	/* a struct rec_recv for each client */
void webs_close(void);		/* records unfinished objects */

int servers_open(const struct plan *p);
void servers_close(void);

#endif
