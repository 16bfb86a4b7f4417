/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Web traffic: clients that fetch objects, each over a TCP connection of its
 * own, and the server that sends them.
 *
 * Request: 16 bytes, the text "LBE-GET\n" and the object's size as u64,
 * little-endian.  Answer: so many bytes, then the server closes; so TIME_WAIT
 * stays at the server, and the client's ports are free again at once.
 *
 * Two clients (struct web_plan):
 *   open    offered load (Claypool et al., section on the traffic generator):
 *           a page at once, of 1 to `objects` objects; the next page comes
 *           8 * bytes / rate_bps after it (pace=size), or in a Poisson process
 *           of the same load (pace=poisson); congestion does not slow it
 *   session closed loop (Feldmann et al., as TCP-LP's authors use it): a page
 *           of exactly `objects`, asked for at exponential distances of
 *           mean object_ms; when all are there, an exponential pause of mean
 *           page_s, then the next page; sessions of them side by side
 * Sizes: Pareto II, cut to [min_bytes, max_bytes], with the scale at which the
 * cut variable's mean is mean_bytes.
 *
 * The workload is a function of the seed: of the plan alone for open, of the
 * plan and the sequence of each session for session.
 */
#ifndef LBE_AGENT_WEB_H
#define LBE_AGENT_WEB_H

#include "plan.h"

int webs_open(const struct plan *p, u64 zero_ns);
void webs_sample(u64 t_ns);	/* a struct rec_recv for each client */
void webs_close(void);		/* records what is unfinished */

int servers_open(const struct plan *p);
void servers_close(void);

#endif
