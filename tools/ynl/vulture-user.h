/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/vulture.yaml */
/* YNL-GEN user header */

#ifndef _LINUX_VULTURE_GEN_H
#define _LINUX_VULTURE_GEN_H

#include <stdlib.h>
#include <string.h>
#include <linux/types.h>
#include <vulture.h>

struct ynl_sock;

extern const struct ynl_family ynl_vulture_family;

/* Enums */
const char *vulture_op_str(int op);
const char *vulture_controller_str(enum vulture_controller value);
const char *vulture_pairing_str(enum vulture_pairing value);
const char *vulture_mode_str(enum vulture_mode value);
const char *vulture_policy_str(enum vulture_policy value);
const char *vulture_phase_str(enum vulture_phase value);
const char *vulture_credit_phase_str(enum vulture_credit_phase value);
const char *vulture_rledbat_state_str(enum vulture_rledbat_state value);
const char *vulture_reason_str(enum vulture_reason value);

/* Common nested types */
struct vulture_addr {
	struct {
		__u32 local_len;
		__u32 local_port:1;
		__u32 remote_len;
		__u32 remote_port:1;
	} _present;

	void *local;
	__u16 local_port;
	void *remote;
	__u16 remote_port;
};

struct vulture_paper_options {
	struct {
		__u32 tick_us:1;
		__u32 psi_us:1;
		__u32 cons_low_us:1;
		__u32 cons_high_us:1;
		__u32 aggr_low_us:1;
		__u32 aggr_high_us:1;
		__u32 pairing:1;
		__u32 alpha_permille:1;
		__u32 increase_segs:1;
		__u32 positive_test:1;
		__u32 goals:1;
		__u32 settle:1;
		__u32 retract:1;
		__u32 observe:1;
	} _present;

	__u32 tick_us;
	__u32 psi_us;
	__u32 cons_low_us;
	__u32 cons_high_us;
	__u32 aggr_low_us;
	__u32 aggr_high_us;
	enum vulture_pairing pairing;
	__u32 alpha_permille;
	__u32 increase_segs;
	__u32 positive_test;
	__u32 goals;
	__u32 settle;
	__u32 retract;
	__u32 observe;
};

struct vulture_credit_options {
	struct {
		__u32 min_kbit:1;
		__u32 escape_s:1;
		__u32 weight:1;
	} _present;

	__u32 min_kbit;
	__u32 escape_s;
	__u32 weight;
};

struct vulture_rledbat_options {
	struct {
		__u32 target_us:1;
		__u32 slowdown:1;
	} _present;

	__u32 target_us;
	__u32 slowdown;
};

struct vulture_paper_stats {
	struct {
		__u32 phase:1;
		__u32 mode:1;
		__u32 policy:1;
		__u32 thresh_bytes:1;
		__u32 cwnd_bytes:1;
		__u32 peer_tick_us:1;
		__u32 last_pivs:1;
		__u32 last_positive:1;
		__u32 last_sum_us:1;
		__u32 piv_negative:1;
		__u32 piv_zero:1;
		__u32 piv_positive:1;
		__u32 piv_low:1;
		__u32 piv_middle:1;
		__u32 piv_high:1;
		__u32 rounds:1;
		__u32 fixes:1;
		__u32 increases:1;
		__u32 doublings:1;
		__u32 halvings:1;
		__u32 losses:1;
		__u32 conservative_us:1;
		__u32 aggressive_us:1;
	} _present;

	enum vulture_phase phase;
	enum vulture_mode mode;
	enum vulture_policy policy;
	__u64 thresh_bytes;
	__u64 cwnd_bytes;
	__u64 peer_tick_us;
	__u64 last_pivs;
	__u64 last_positive;
	__s64 last_sum_us;
	__u64 piv_negative;
	__u64 piv_zero;
	__u64 piv_positive;
	__u64 piv_low;
	__u64 piv_middle;
	__u64 piv_high;
	__u64 rounds;
	__u64 fixes;
	__u64 increases;
	__u64 doublings;
	__u64 halvings;
	__u64 losses;
	__u64 conservative_us;
	__u64 aggressive_us;
};

struct vulture_credit_stats {
	struct {
		__u32 phase:1;
		__u32 flows:1;
		__u32 capacity_bps:1;
		__u32 rate_bps:1;
		__u32 credit_bytes:1;
		__u32 growth_permille:1;
		__u32 fails:1;
		__u32 yields:1;
		__u32 trains:1;
		__u32 trains_failed:1;
	} _present;

	enum vulture_credit_phase phase;
	__u64 flows;
	__u64 capacity_bps;
	__u64 rate_bps;
	__u64 credit_bytes;
	__u64 growth_permille;
	__u64 fails;
	__u64 yields;
	__u64 trains;
	__u64 trains_failed;
};

struct vulture_rledbat_stats {
	struct {
		__u32 state:1;
		__u32 ssthresh_bytes:1;
		__u32 samples:1;
		__u32 losses:1;
		__u32 slowdowns:1;
	} _present;

	enum vulture_rledbat_state state;
	__u64 ssthresh_bytes;
	__u64 samples;
	__u64 losses;
	__u64 slowdowns;
};

struct vulture_options {
	struct {
		__u32 controller:1;
		__u32 paper:1;
		__u32 credit:1;
		__u32 rledbat:1;
	} _present;

	enum vulture_controller controller;
	struct vulture_paper_options paper;
	struct vulture_credit_options credit;
	struct vulture_rledbat_options rledbat;
};

struct vulture_flow {
	struct {
		__u32 id:1;
		__u32 addr:1;
		__u32 rule:1;
		__u32 options:1;
		__u32 window_bytes:1;
		__u32 advertised_bytes:1;
		__u32 own_bytes:1;
		__u32 rtt_us:1;
		__u32 min_rtt_us:1;
		__u32 queue_us:1;
		__u32 mss_bytes:1;
		__u32 age_us:1;
		__u32 segments:1;
		__u32 bytes:1;
		__u32 acks:1;
		__u32 rewritten:1;
		__u32 updates:1;
		__u32 paper:1;
		__u32 credit:1;
		__u32 rledbat:1;
	} _present;

	__u64 id;
	struct vulture_addr addr;
	__u32 rule;
	struct vulture_options options;
	__u32 window_bytes;
	__u32 advertised_bytes;
	__u32 own_bytes;
	__u32 rtt_us;
	__u32 min_rtt_us;
	__u32 queue_us;
	__u32 mss_bytes;
	__u64 age_us;
	__u64 segments;
	__u64 bytes;
	__u64 acks;
	__u64 rewritten;
	__u64 updates;
	struct vulture_paper_stats paper;
	struct vulture_credit_stats credit;
	struct vulture_rledbat_stats rledbat;
};

struct vulture_rule {
	struct {
		__u32 id:1;
		__u32 cgroup:1;
		__u32 local_port:1;
		__u32 remote_port:1;
		__u32 remote_prefix_len;
		__u32 remote_prefix_bits:1;
		__u32 options:1;
		__u32 started:1;
		__u32 failed:1;
		__u32 cgroup_fd:1;
		__u32 uid:1;
		__u32 dscp:1;
		__u32 foreground:1;
	} _present;

	__u32 id;
	__u64 cgroup;
	__u16 local_port;
	__u16 remote_port;
	void *remote_prefix;
	__u8 remote_prefix_bits;
	struct vulture_options options;
	__u64 started;
	__u64 failed;
	__u32 cgroup_fd;
	__u32 uid;
	__u8 dscp;
};

/* ============== VULTURE_CMD_START ============== */
/* VULTURE_CMD_START - do */
struct vulture_start_req {
	struct {
		__u32 fd:1;
		__u32 addr:1;
		__u32 pid:1;
		__u32 cgroup:1;
		__u32 options:1;
	} _present;

	__u32 fd;
	struct vulture_addr addr;
	__u32 pid;
	__u64 cgroup;
	struct vulture_options options;
};

static inline struct vulture_start_req *vulture_start_req_alloc(void)
{
	return calloc(1, sizeof(struct vulture_start_req));
}
void vulture_start_req_free(struct vulture_start_req *req);

static inline void
vulture_start_req_set_fd(struct vulture_start_req *req, __u32 fd)
{
	req->_present.fd = 1;
	req->fd = fd;
}
static inline void
vulture_start_req_set_addr_local(struct vulture_start_req *req,
				 const void *local, size_t len)
{
	req->_present.addr = 1;
	free(req->addr.local);
	req->addr._present.local_len = len;
	req->addr.local = malloc(req->addr._present.local_len);
	memcpy(req->addr.local, local, req->addr._present.local_len);
}
static inline void
vulture_start_req_set_addr_local_port(struct vulture_start_req *req,
				      __u16 local_port)
{
	req->_present.addr = 1;
	req->addr._present.local_port = 1;
	req->addr.local_port = local_port;
}
static inline void
vulture_start_req_set_addr_remote(struct vulture_start_req *req,
				  const void *remote, size_t len)
{
	req->_present.addr = 1;
	free(req->addr.remote);
	req->addr._present.remote_len = len;
	req->addr.remote = malloc(req->addr._present.remote_len);
	memcpy(req->addr.remote, remote, req->addr._present.remote_len);
}
static inline void
vulture_start_req_set_addr_remote_port(struct vulture_start_req *req,
				       __u16 remote_port)
{
	req->_present.addr = 1;
	req->addr._present.remote_port = 1;
	req->addr.remote_port = remote_port;
}
static inline void
vulture_start_req_set_pid(struct vulture_start_req *req, __u32 pid)
{
	req->_present.pid = 1;
	req->pid = pid;
}
static inline void
vulture_start_req_set_cgroup(struct vulture_start_req *req, __u64 cgroup)
{
	req->_present.cgroup = 1;
	req->cgroup = cgroup;
}
static inline void
vulture_start_req_set_options_controller(struct vulture_start_req *req,
					 enum vulture_controller controller)
{
	req->_present.options = 1;
	req->options._present.controller = 1;
	req->options.controller = controller;
}
static inline void
vulture_start_req_set_options_paper_tick_us(struct vulture_start_req *req,
					    __u32 tick_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.tick_us = 1;
	req->options.paper.tick_us = tick_us;
}
static inline void
vulture_start_req_set_options_paper_psi_us(struct vulture_start_req *req,
					   __u32 psi_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.psi_us = 1;
	req->options.paper.psi_us = psi_us;
}
static inline void
vulture_start_req_set_options_paper_cons_low_us(struct vulture_start_req *req,
						__u32 cons_low_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.cons_low_us = 1;
	req->options.paper.cons_low_us = cons_low_us;
}
static inline void
vulture_start_req_set_options_paper_cons_high_us(struct vulture_start_req *req,
						 __u32 cons_high_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.cons_high_us = 1;
	req->options.paper.cons_high_us = cons_high_us;
}
static inline void
vulture_start_req_set_options_paper_aggr_low_us(struct vulture_start_req *req,
						__u32 aggr_low_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.aggr_low_us = 1;
	req->options.paper.aggr_low_us = aggr_low_us;
}
static inline void
vulture_start_req_set_options_paper_aggr_high_us(struct vulture_start_req *req,
						 __u32 aggr_high_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.aggr_high_us = 1;
	req->options.paper.aggr_high_us = aggr_high_us;
}
static inline void
vulture_start_req_set_options_paper_pairing(struct vulture_start_req *req,
					    enum vulture_pairing pairing)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.pairing = 1;
	req->options.paper.pairing = pairing;
}
static inline void
vulture_start_req_set_options_paper_alpha_permille(struct vulture_start_req *req,
						   __u32 alpha_permille)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.alpha_permille = 1;
	req->options.paper.alpha_permille = alpha_permille;
}
static inline void
vulture_start_req_set_options_paper_increase_segs(struct vulture_start_req *req,
						  __u32 increase_segs)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.increase_segs = 1;
	req->options.paper.increase_segs = increase_segs;
}
static inline void
vulture_start_req_set_options_paper_positive_test(struct vulture_start_req *req,
						  __u32 positive_test)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.positive_test = 1;
	req->options.paper.positive_test = positive_test;
}
static inline void
vulture_start_req_set_options_paper_goals(struct vulture_start_req *req,
					  __u32 goals)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.goals = 1;
	req->options.paper.goals = goals;
}
static inline void
vulture_start_req_set_options_paper_settle(struct vulture_start_req *req,
					   __u32 settle)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.settle = 1;
	req->options.paper.settle = settle;
}
static inline void
vulture_start_req_set_options_paper_retract(struct vulture_start_req *req,
					    __u32 retract)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.retract = 1;
	req->options.paper.retract = retract;
}
static inline void
vulture_start_req_set_options_paper_observe(struct vulture_start_req *req,
					    __u32 observe)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.observe = 1;
	req->options.paper.observe = observe;
}
static inline void
vulture_start_req_set_options_credit_min_kbit(struct vulture_start_req *req,
					      __u32 min_kbit)
{
	req->_present.options = 1;
	req->options._present.credit = 1;
	req->options.credit._present.min_kbit = 1;
	req->options.credit.min_kbit = min_kbit;
}
static inline void
vulture_start_req_set_options_credit_escape_s(struct vulture_start_req *req,
					      __u32 escape_s)
{
	req->_present.options = 1;
	req->options._present.credit = 1;
	req->options.credit._present.escape_s = 1;
	req->options.credit.escape_s = escape_s;
}
static inline void
vulture_start_req_set_options_credit_weight(struct vulture_start_req *req,
					    __u32 weight)
{
	req->_present.options = 1;
	req->options._present.credit = 1;
	req->options.credit._present.weight = 1;
	req->options.credit.weight = weight;
}
static inline void
vulture_start_req_set_options_rledbat_target_us(struct vulture_start_req *req,
						__u32 target_us)
{
	req->_present.options = 1;
	req->options._present.rledbat = 1;
	req->options.rledbat._present.target_us = 1;
	req->options.rledbat.target_us = target_us;
}
static inline void
vulture_start_req_set_options_rledbat_slowdown(struct vulture_start_req *req,
					       __u32 slowdown)
{
	req->_present.options = 1;
	req->options._present.rledbat = 1;
	req->options.rledbat._present.slowdown = 1;
	req->options.rledbat.slowdown = slowdown;
}

struct vulture_start_rsp {
	struct {
		__u32 count:1;
		__u32 id:1;
	} _present;

	__u32 count;
	__u64 id;
};

void vulture_start_rsp_free(struct vulture_start_rsp *rsp);

/*
 * Take connections under control. Exactly one of fd, addr, pid, cgroup.
 */
struct vulture_start_rsp *
vulture_start(struct ynl_sock *ys, struct vulture_start_req *req);

/* ============== VULTURE_CMD_STOP ============== */
/* VULTURE_CMD_STOP - do */
struct vulture_stop_req {
	struct {
		__u32 fd:1;
		__u32 addr:1;
		__u32 pid:1;
		__u32 cgroup:1;
		__u32 id:1;
	} _present;

	__u32 fd;
	struct vulture_addr addr;
	__u32 pid;
	__u64 cgroup;
	__u64 id;
};

static inline struct vulture_stop_req *vulture_stop_req_alloc(void)
{
	return calloc(1, sizeof(struct vulture_stop_req));
}
void vulture_stop_req_free(struct vulture_stop_req *req);

static inline void
vulture_stop_req_set_fd(struct vulture_stop_req *req, __u32 fd)
{
	req->_present.fd = 1;
	req->fd = fd;
}
static inline void
vulture_stop_req_set_addr_local(struct vulture_stop_req *req,
				const void *local, size_t len)
{
	req->_present.addr = 1;
	free(req->addr.local);
	req->addr._present.local_len = len;
	req->addr.local = malloc(req->addr._present.local_len);
	memcpy(req->addr.local, local, req->addr._present.local_len);
}
static inline void
vulture_stop_req_set_addr_local_port(struct vulture_stop_req *req,
				     __u16 local_port)
{
	req->_present.addr = 1;
	req->addr._present.local_port = 1;
	req->addr.local_port = local_port;
}
static inline void
vulture_stop_req_set_addr_remote(struct vulture_stop_req *req,
				 const void *remote, size_t len)
{
	req->_present.addr = 1;
	free(req->addr.remote);
	req->addr._present.remote_len = len;
	req->addr.remote = malloc(req->addr._present.remote_len);
	memcpy(req->addr.remote, remote, req->addr._present.remote_len);
}
static inline void
vulture_stop_req_set_addr_remote_port(struct vulture_stop_req *req,
				      __u16 remote_port)
{
	req->_present.addr = 1;
	req->addr._present.remote_port = 1;
	req->addr.remote_port = remote_port;
}
static inline void
vulture_stop_req_set_pid(struct vulture_stop_req *req, __u32 pid)
{
	req->_present.pid = 1;
	req->pid = pid;
}
static inline void
vulture_stop_req_set_cgroup(struct vulture_stop_req *req, __u64 cgroup)
{
	req->_present.cgroup = 1;
	req->cgroup = cgroup;
}
static inline void
vulture_stop_req_set_id(struct vulture_stop_req *req, __u64 id)
{
	req->_present.id = 1;
	req->id = id;
}

struct vulture_stop_rsp {
	struct {
		__u32 count:1;
	} _present;

	__u32 count;
};

void vulture_stop_rsp_free(struct vulture_stop_rsp *rsp);

/*
 * Give connections their window back. Exactly one of fd, addr, pid, cgroup, id.
 */
struct vulture_stop_rsp *
vulture_stop(struct ynl_sock *ys, struct vulture_stop_req *req);

/* ============== VULTURE_CMD_GET ============== */
/* VULTURE_CMD_GET - do */
struct vulture_get_req {
	struct {
		__u32 fd:1;
		__u32 addr:1;
		__u32 id:1;
	} _present;

	__u32 fd;
	struct vulture_addr addr;
	__u64 id;
};

static inline struct vulture_get_req *vulture_get_req_alloc(void)
{
	return calloc(1, sizeof(struct vulture_get_req));
}
void vulture_get_req_free(struct vulture_get_req *req);

static inline void
vulture_get_req_set_fd(struct vulture_get_req *req, __u32 fd)
{
	req->_present.fd = 1;
	req->fd = fd;
}
static inline void
vulture_get_req_set_addr_local(struct vulture_get_req *req, const void *local,
			       size_t len)
{
	req->_present.addr = 1;
	free(req->addr.local);
	req->addr._present.local_len = len;
	req->addr.local = malloc(req->addr._present.local_len);
	memcpy(req->addr.local, local, req->addr._present.local_len);
}
static inline void
vulture_get_req_set_addr_local_port(struct vulture_get_req *req,
				    __u16 local_port)
{
	req->_present.addr = 1;
	req->addr._present.local_port = 1;
	req->addr.local_port = local_port;
}
static inline void
vulture_get_req_set_addr_remote(struct vulture_get_req *req,
				const void *remote, size_t len)
{
	req->_present.addr = 1;
	free(req->addr.remote);
	req->addr._present.remote_len = len;
	req->addr.remote = malloc(req->addr._present.remote_len);
	memcpy(req->addr.remote, remote, req->addr._present.remote_len);
}
static inline void
vulture_get_req_set_addr_remote_port(struct vulture_get_req *req,
				     __u16 remote_port)
{
	req->_present.addr = 1;
	req->addr._present.remote_port = 1;
	req->addr.remote_port = remote_port;
}
static inline void
vulture_get_req_set_id(struct vulture_get_req *req, __u64 id)
{
	req->_present.id = 1;
	req->id = id;
}

struct vulture_get_rsp {
	struct {
		__u32 flow:1;
	} _present;

	struct vulture_flow flow;
};

void vulture_get_rsp_free(struct vulture_get_rsp *rsp);

/*
 * One connection under control, by fd, addr or id; or all.
 */
struct vulture_get_rsp *
vulture_get(struct ynl_sock *ys, struct vulture_get_req *req);

/* VULTURE_CMD_GET - dump */
struct vulture_get_list {
	struct vulture_get_list *next;
	struct vulture_get_rsp obj __attribute__((aligned(8)));
};

void vulture_get_list_free(struct vulture_get_list *rsp);

struct vulture_get_list *vulture_get_dump(struct ynl_sock *ys);

/* ============== VULTURE_CMD_SET ============== */
/* VULTURE_CMD_SET - do */
struct vulture_set_req {
	struct {
		__u32 options:1;
		__u32 max_flows:1;
	} _present;

	struct vulture_options options;
	__u32 max_flows;
};

static inline struct vulture_set_req *vulture_set_req_alloc(void)
{
	return calloc(1, sizeof(struct vulture_set_req));
}
void vulture_set_req_free(struct vulture_set_req *req);

static inline void
vulture_set_req_set_options_controller(struct vulture_set_req *req,
				       enum vulture_controller controller)
{
	req->_present.options = 1;
	req->options._present.controller = 1;
	req->options.controller = controller;
}
static inline void
vulture_set_req_set_options_paper_tick_us(struct vulture_set_req *req,
					  __u32 tick_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.tick_us = 1;
	req->options.paper.tick_us = tick_us;
}
static inline void
vulture_set_req_set_options_paper_psi_us(struct vulture_set_req *req,
					 __u32 psi_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.psi_us = 1;
	req->options.paper.psi_us = psi_us;
}
static inline void
vulture_set_req_set_options_paper_cons_low_us(struct vulture_set_req *req,
					      __u32 cons_low_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.cons_low_us = 1;
	req->options.paper.cons_low_us = cons_low_us;
}
static inline void
vulture_set_req_set_options_paper_cons_high_us(struct vulture_set_req *req,
					       __u32 cons_high_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.cons_high_us = 1;
	req->options.paper.cons_high_us = cons_high_us;
}
static inline void
vulture_set_req_set_options_paper_aggr_low_us(struct vulture_set_req *req,
					      __u32 aggr_low_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.aggr_low_us = 1;
	req->options.paper.aggr_low_us = aggr_low_us;
}
static inline void
vulture_set_req_set_options_paper_aggr_high_us(struct vulture_set_req *req,
					       __u32 aggr_high_us)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.aggr_high_us = 1;
	req->options.paper.aggr_high_us = aggr_high_us;
}
static inline void
vulture_set_req_set_options_paper_pairing(struct vulture_set_req *req,
					  enum vulture_pairing pairing)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.pairing = 1;
	req->options.paper.pairing = pairing;
}
static inline void
vulture_set_req_set_options_paper_alpha_permille(struct vulture_set_req *req,
						 __u32 alpha_permille)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.alpha_permille = 1;
	req->options.paper.alpha_permille = alpha_permille;
}
static inline void
vulture_set_req_set_options_paper_increase_segs(struct vulture_set_req *req,
						__u32 increase_segs)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.increase_segs = 1;
	req->options.paper.increase_segs = increase_segs;
}
static inline void
vulture_set_req_set_options_paper_positive_test(struct vulture_set_req *req,
						__u32 positive_test)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.positive_test = 1;
	req->options.paper.positive_test = positive_test;
}
static inline void
vulture_set_req_set_options_paper_goals(struct vulture_set_req *req,
					__u32 goals)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.goals = 1;
	req->options.paper.goals = goals;
}
static inline void
vulture_set_req_set_options_paper_settle(struct vulture_set_req *req,
					 __u32 settle)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.settle = 1;
	req->options.paper.settle = settle;
}
static inline void
vulture_set_req_set_options_paper_retract(struct vulture_set_req *req,
					  __u32 retract)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.retract = 1;
	req->options.paper.retract = retract;
}
static inline void
vulture_set_req_set_options_paper_observe(struct vulture_set_req *req,
					  __u32 observe)
{
	req->_present.options = 1;
	req->options._present.paper = 1;
	req->options.paper._present.observe = 1;
	req->options.paper.observe = observe;
}
static inline void
vulture_set_req_set_options_credit_min_kbit(struct vulture_set_req *req,
					    __u32 min_kbit)
{
	req->_present.options = 1;
	req->options._present.credit = 1;
	req->options.credit._present.min_kbit = 1;
	req->options.credit.min_kbit = min_kbit;
}
static inline void
vulture_set_req_set_options_credit_escape_s(struct vulture_set_req *req,
					    __u32 escape_s)
{
	req->_present.options = 1;
	req->options._present.credit = 1;
	req->options.credit._present.escape_s = 1;
	req->options.credit.escape_s = escape_s;
}
static inline void
vulture_set_req_set_options_credit_weight(struct vulture_set_req *req,
					  __u32 weight)
{
	req->_present.options = 1;
	req->options._present.credit = 1;
	req->options.credit._present.weight = 1;
	req->options.credit.weight = weight;
}
static inline void
vulture_set_req_set_options_rledbat_target_us(struct vulture_set_req *req,
					      __u32 target_us)
{
	req->_present.options = 1;
	req->options._present.rledbat = 1;
	req->options.rledbat._present.target_us = 1;
	req->options.rledbat.target_us = target_us;
}
static inline void
vulture_set_req_set_options_rledbat_slowdown(struct vulture_set_req *req,
					     __u32 slowdown)
{
	req->_present.options = 1;
	req->options._present.rledbat = 1;
	req->options.rledbat._present.slowdown = 1;
	req->options.rledbat.slowdown = slowdown;
}
static inline void
vulture_set_req_set_max_flows(struct vulture_set_req *req, __u32 max_flows)
{
	req->_present.max_flows = 1;
	req->max_flows = max_flows;
}

/*
 * Defaults of the network namespace.
 */
int vulture_set(struct ynl_sock *ys, struct vulture_set_req *req);

/* ============== VULTURE_CMD_GET_DEFAULTS ============== */
/* VULTURE_CMD_GET_DEFAULTS - do */

struct vulture_get_defaults_rsp {
	struct {
		__u32 options:1;
		__u32 max_flows:1;
		__u32 count:1;
		__u32 flow_bytes:1;
		__u32 version_len;
	} _present;

	struct vulture_options options;
	__u32 max_flows;
	__u32 count;
	__u32 flow_bytes;
	char *version;
};

void vulture_get_defaults_rsp_free(struct vulture_get_defaults_rsp *rsp);

/*
 * Defaults, limits and version.
 */
struct vulture_get_defaults_rsp *vulture_get_defaults(struct ynl_sock *ys);

/* ============== VULTURE_CMD_RULE_ADD ============== */
/* VULTURE_CMD_RULE_ADD - do */
struct vulture_rule_add_req {
	struct {
		__u32 rule:1;
	} _present;

	struct vulture_rule rule;
};

static inline struct vulture_rule_add_req *vulture_rule_add_req_alloc(void)
{
	return calloc(1, sizeof(struct vulture_rule_add_req));
}
void vulture_rule_add_req_free(struct vulture_rule_add_req *req);

static inline void
vulture_rule_add_req_set_rule_id(struct vulture_rule_add_req *req, __u32 id)
{
	req->_present.rule = 1;
	req->rule._present.id = 1;
	req->rule.id = id;
}
static inline void
vulture_rule_add_req_set_rule_cgroup(struct vulture_rule_add_req *req,
				     __u64 cgroup)
{
	req->_present.rule = 1;
	req->rule._present.cgroup = 1;
	req->rule.cgroup = cgroup;
}
static inline void
vulture_rule_add_req_set_rule_local_port(struct vulture_rule_add_req *req,
					 __u16 local_port)
{
	req->_present.rule = 1;
	req->rule._present.local_port = 1;
	req->rule.local_port = local_port;
}
static inline void
vulture_rule_add_req_set_rule_remote_port(struct vulture_rule_add_req *req,
					  __u16 remote_port)
{
	req->_present.rule = 1;
	req->rule._present.remote_port = 1;
	req->rule.remote_port = remote_port;
}
static inline void
vulture_rule_add_req_set_rule_remote_prefix(struct vulture_rule_add_req *req,
					    const void *remote_prefix,
					    size_t len)
{
	req->_present.rule = 1;
	free(req->rule.remote_prefix);
	req->rule._present.remote_prefix_len = len;
	req->rule.remote_prefix = malloc(req->rule._present.remote_prefix_len);
	memcpy(req->rule.remote_prefix, remote_prefix, req->rule._present.remote_prefix_len);
}
static inline void
vulture_rule_add_req_set_rule_remote_prefix_bits(struct vulture_rule_add_req *req,
						 __u8 remote_prefix_bits)
{
	req->_present.rule = 1;
	req->rule._present.remote_prefix_bits = 1;
	req->rule.remote_prefix_bits = remote_prefix_bits;
}
static inline void
vulture_rule_add_req_set_rule_options_controller(struct vulture_rule_add_req *req,
						 enum vulture_controller controller)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.controller = 1;
	req->rule.options.controller = controller;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_tick_us(struct vulture_rule_add_req *req,
						    __u32 tick_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.tick_us = 1;
	req->rule.options.paper.tick_us = tick_us;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_psi_us(struct vulture_rule_add_req *req,
						   __u32 psi_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.psi_us = 1;
	req->rule.options.paper.psi_us = psi_us;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_cons_low_us(struct vulture_rule_add_req *req,
							__u32 cons_low_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.cons_low_us = 1;
	req->rule.options.paper.cons_low_us = cons_low_us;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_cons_high_us(struct vulture_rule_add_req *req,
							 __u32 cons_high_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.cons_high_us = 1;
	req->rule.options.paper.cons_high_us = cons_high_us;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_aggr_low_us(struct vulture_rule_add_req *req,
							__u32 aggr_low_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.aggr_low_us = 1;
	req->rule.options.paper.aggr_low_us = aggr_low_us;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_aggr_high_us(struct vulture_rule_add_req *req,
							 __u32 aggr_high_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.aggr_high_us = 1;
	req->rule.options.paper.aggr_high_us = aggr_high_us;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_pairing(struct vulture_rule_add_req *req,
						    enum vulture_pairing pairing)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.pairing = 1;
	req->rule.options.paper.pairing = pairing;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_alpha_permille(struct vulture_rule_add_req *req,
							   __u32 alpha_permille)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.alpha_permille = 1;
	req->rule.options.paper.alpha_permille = alpha_permille;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_increase_segs(struct vulture_rule_add_req *req,
							  __u32 increase_segs)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.increase_segs = 1;
	req->rule.options.paper.increase_segs = increase_segs;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_positive_test(struct vulture_rule_add_req *req,
							  __u32 positive_test)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.positive_test = 1;
	req->rule.options.paper.positive_test = positive_test;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_goals(struct vulture_rule_add_req *req,
						  __u32 goals)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.goals = 1;
	req->rule.options.paper.goals = goals;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_settle(struct vulture_rule_add_req *req,
						   __u32 settle)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.settle = 1;
	req->rule.options.paper.settle = settle;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_retract(struct vulture_rule_add_req *req,
						    __u32 retract)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.retract = 1;
	req->rule.options.paper.retract = retract;
}
static inline void
vulture_rule_add_req_set_rule_options_paper_observe(struct vulture_rule_add_req *req,
						    __u32 observe)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.observe = 1;
	req->rule.options.paper.observe = observe;
}
static inline void
vulture_rule_add_req_set_rule_options_credit_min_kbit(struct vulture_rule_add_req *req,
						      __u32 min_kbit)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.credit = 1;
	req->rule.options.credit._present.min_kbit = 1;
	req->rule.options.credit.min_kbit = min_kbit;
}
static inline void
vulture_rule_add_req_set_rule_options_credit_escape_s(struct vulture_rule_add_req *req,
						      __u32 escape_s)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.credit = 1;
	req->rule.options.credit._present.escape_s = 1;
	req->rule.options.credit.escape_s = escape_s;
}
static inline void
vulture_rule_add_req_set_rule_options_credit_weight(struct vulture_rule_add_req *req,
						    __u32 weight)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.credit = 1;
	req->rule.options.credit._present.weight = 1;
	req->rule.options.credit.weight = weight;
}
static inline void
vulture_rule_add_req_set_rule_options_rledbat_target_us(struct vulture_rule_add_req *req,
							__u32 target_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.rledbat = 1;
	req->rule.options.rledbat._present.target_us = 1;
	req->rule.options.rledbat.target_us = target_us;
}
static inline void
vulture_rule_add_req_set_rule_options_rledbat_slowdown(struct vulture_rule_add_req *req,
						       __u32 slowdown)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.rledbat = 1;
	req->rule.options.rledbat._present.slowdown = 1;
	req->rule.options.rledbat.slowdown = slowdown;
}
static inline void
vulture_rule_add_req_set_rule_started(struct vulture_rule_add_req *req,
				      __u64 started)
{
	req->_present.rule = 1;
	req->rule._present.started = 1;
	req->rule.started = started;
}
static inline void
vulture_rule_add_req_set_rule_failed(struct vulture_rule_add_req *req,
				     __u64 failed)
{
	req->_present.rule = 1;
	req->rule._present.failed = 1;
	req->rule.failed = failed;
}
static inline void
vulture_rule_add_req_set_rule_cgroup_fd(struct vulture_rule_add_req *req,
					__u32 cgroup_fd)
{
	req->_present.rule = 1;
	req->rule._present.cgroup_fd = 1;
	req->rule.cgroup_fd = cgroup_fd;
}
static inline void
vulture_rule_add_req_set_rule_uid(struct vulture_rule_add_req *req, __u32 uid)
{
	req->_present.rule = 1;
	req->rule._present.uid = 1;
	req->rule.uid = uid;
}
static inline void
vulture_rule_add_req_set_rule_dscp(struct vulture_rule_add_req *req, __u8 dscp)
{
	req->_present.rule = 1;
	req->rule._present.dscp = 1;
	req->rule.dscp = dscp;
}
static inline void
vulture_rule_add_req_set_rule_foreground(struct vulture_rule_add_req *req)
{
	req->_present.rule = 1;
	req->rule._present.foreground = 1;
}

struct vulture_rule_add_rsp {
	struct {
		__u32 rule:1;
	} _present;

	struct vulture_rule rule;
};

void vulture_rule_add_rsp_free(struct vulture_rule_add_rsp *rsp);

/*
 * New connections that match start by themselves.
 */
struct vulture_rule_add_rsp *
vulture_rule_add(struct ynl_sock *ys, struct vulture_rule_add_req *req);

/* ============== VULTURE_CMD_RULE_DEL ============== */
/* VULTURE_CMD_RULE_DEL - do */
struct vulture_rule_del_req {
	struct {
		__u32 rule:1;
	} _present;

	struct vulture_rule rule;
};

static inline struct vulture_rule_del_req *vulture_rule_del_req_alloc(void)
{
	return calloc(1, sizeof(struct vulture_rule_del_req));
}
void vulture_rule_del_req_free(struct vulture_rule_del_req *req);

static inline void
vulture_rule_del_req_set_rule_id(struct vulture_rule_del_req *req, __u32 id)
{
	req->_present.rule = 1;
	req->rule._present.id = 1;
	req->rule.id = id;
}
static inline void
vulture_rule_del_req_set_rule_cgroup(struct vulture_rule_del_req *req,
				     __u64 cgroup)
{
	req->_present.rule = 1;
	req->rule._present.cgroup = 1;
	req->rule.cgroup = cgroup;
}
static inline void
vulture_rule_del_req_set_rule_local_port(struct vulture_rule_del_req *req,
					 __u16 local_port)
{
	req->_present.rule = 1;
	req->rule._present.local_port = 1;
	req->rule.local_port = local_port;
}
static inline void
vulture_rule_del_req_set_rule_remote_port(struct vulture_rule_del_req *req,
					  __u16 remote_port)
{
	req->_present.rule = 1;
	req->rule._present.remote_port = 1;
	req->rule.remote_port = remote_port;
}
static inline void
vulture_rule_del_req_set_rule_remote_prefix(struct vulture_rule_del_req *req,
					    const void *remote_prefix,
					    size_t len)
{
	req->_present.rule = 1;
	free(req->rule.remote_prefix);
	req->rule._present.remote_prefix_len = len;
	req->rule.remote_prefix = malloc(req->rule._present.remote_prefix_len);
	memcpy(req->rule.remote_prefix, remote_prefix, req->rule._present.remote_prefix_len);
}
static inline void
vulture_rule_del_req_set_rule_remote_prefix_bits(struct vulture_rule_del_req *req,
						 __u8 remote_prefix_bits)
{
	req->_present.rule = 1;
	req->rule._present.remote_prefix_bits = 1;
	req->rule.remote_prefix_bits = remote_prefix_bits;
}
static inline void
vulture_rule_del_req_set_rule_options_controller(struct vulture_rule_del_req *req,
						 enum vulture_controller controller)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.controller = 1;
	req->rule.options.controller = controller;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_tick_us(struct vulture_rule_del_req *req,
						    __u32 tick_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.tick_us = 1;
	req->rule.options.paper.tick_us = tick_us;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_psi_us(struct vulture_rule_del_req *req,
						   __u32 psi_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.psi_us = 1;
	req->rule.options.paper.psi_us = psi_us;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_cons_low_us(struct vulture_rule_del_req *req,
							__u32 cons_low_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.cons_low_us = 1;
	req->rule.options.paper.cons_low_us = cons_low_us;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_cons_high_us(struct vulture_rule_del_req *req,
							 __u32 cons_high_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.cons_high_us = 1;
	req->rule.options.paper.cons_high_us = cons_high_us;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_aggr_low_us(struct vulture_rule_del_req *req,
							__u32 aggr_low_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.aggr_low_us = 1;
	req->rule.options.paper.aggr_low_us = aggr_low_us;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_aggr_high_us(struct vulture_rule_del_req *req,
							 __u32 aggr_high_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.aggr_high_us = 1;
	req->rule.options.paper.aggr_high_us = aggr_high_us;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_pairing(struct vulture_rule_del_req *req,
						    enum vulture_pairing pairing)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.pairing = 1;
	req->rule.options.paper.pairing = pairing;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_alpha_permille(struct vulture_rule_del_req *req,
							   __u32 alpha_permille)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.alpha_permille = 1;
	req->rule.options.paper.alpha_permille = alpha_permille;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_increase_segs(struct vulture_rule_del_req *req,
							  __u32 increase_segs)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.increase_segs = 1;
	req->rule.options.paper.increase_segs = increase_segs;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_positive_test(struct vulture_rule_del_req *req,
							  __u32 positive_test)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.positive_test = 1;
	req->rule.options.paper.positive_test = positive_test;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_goals(struct vulture_rule_del_req *req,
						  __u32 goals)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.goals = 1;
	req->rule.options.paper.goals = goals;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_settle(struct vulture_rule_del_req *req,
						   __u32 settle)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.settle = 1;
	req->rule.options.paper.settle = settle;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_retract(struct vulture_rule_del_req *req,
						    __u32 retract)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.retract = 1;
	req->rule.options.paper.retract = retract;
}
static inline void
vulture_rule_del_req_set_rule_options_paper_observe(struct vulture_rule_del_req *req,
						    __u32 observe)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.paper = 1;
	req->rule.options.paper._present.observe = 1;
	req->rule.options.paper.observe = observe;
}
static inline void
vulture_rule_del_req_set_rule_options_credit_min_kbit(struct vulture_rule_del_req *req,
						      __u32 min_kbit)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.credit = 1;
	req->rule.options.credit._present.min_kbit = 1;
	req->rule.options.credit.min_kbit = min_kbit;
}
static inline void
vulture_rule_del_req_set_rule_options_credit_escape_s(struct vulture_rule_del_req *req,
						      __u32 escape_s)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.credit = 1;
	req->rule.options.credit._present.escape_s = 1;
	req->rule.options.credit.escape_s = escape_s;
}
static inline void
vulture_rule_del_req_set_rule_options_credit_weight(struct vulture_rule_del_req *req,
						    __u32 weight)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.credit = 1;
	req->rule.options.credit._present.weight = 1;
	req->rule.options.credit.weight = weight;
}
static inline void
vulture_rule_del_req_set_rule_options_rledbat_target_us(struct vulture_rule_del_req *req,
							__u32 target_us)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.rledbat = 1;
	req->rule.options.rledbat._present.target_us = 1;
	req->rule.options.rledbat.target_us = target_us;
}
static inline void
vulture_rule_del_req_set_rule_options_rledbat_slowdown(struct vulture_rule_del_req *req,
						       __u32 slowdown)
{
	req->_present.rule = 1;
	req->rule._present.options = 1;
	req->rule.options._present.rledbat = 1;
	req->rule.options.rledbat._present.slowdown = 1;
	req->rule.options.rledbat.slowdown = slowdown;
}
static inline void
vulture_rule_del_req_set_rule_started(struct vulture_rule_del_req *req,
				      __u64 started)
{
	req->_present.rule = 1;
	req->rule._present.started = 1;
	req->rule.started = started;
}
static inline void
vulture_rule_del_req_set_rule_failed(struct vulture_rule_del_req *req,
				     __u64 failed)
{
	req->_present.rule = 1;
	req->rule._present.failed = 1;
	req->rule.failed = failed;
}
static inline void
vulture_rule_del_req_set_rule_cgroup_fd(struct vulture_rule_del_req *req,
					__u32 cgroup_fd)
{
	req->_present.rule = 1;
	req->rule._present.cgroup_fd = 1;
	req->rule.cgroup_fd = cgroup_fd;
}
static inline void
vulture_rule_del_req_set_rule_uid(struct vulture_rule_del_req *req, __u32 uid)
{
	req->_present.rule = 1;
	req->rule._present.uid = 1;
	req->rule.uid = uid;
}
static inline void
vulture_rule_del_req_set_rule_dscp(struct vulture_rule_del_req *req, __u8 dscp)
{
	req->_present.rule = 1;
	req->rule._present.dscp = 1;
	req->rule.dscp = dscp;
}
static inline void
vulture_rule_del_req_set_rule_foreground(struct vulture_rule_del_req *req)
{
	req->_present.rule = 1;
	req->rule._present.foreground = 1;
}

/*
 * Delete a rule by its id.
 */
int vulture_rule_del(struct ynl_sock *ys, struct vulture_rule_del_req *req);

/* ============== VULTURE_CMD_RULE_GET ============== */
/* VULTURE_CMD_RULE_GET - dump */
struct vulture_rule_get_rsp_dump {
	struct {
		__u32 rule:1;
	} _present;

	struct vulture_rule rule;
};

struct vulture_rule_get_rsp_list {
	struct vulture_rule_get_rsp_list *next;
	struct vulture_rule_get_rsp_dump obj __attribute__((aligned(8)));
};

void vulture_rule_get_rsp_list_free(struct vulture_rule_get_rsp_list *rsp);

struct vulture_rule_get_rsp_list *vulture_rule_get_dump(struct ynl_sock *ys);

/* VULTURE_CMD_EVENT_START - event */
struct vulture_event_start_rsp {
	struct {
		__u32 flow:1;
	} _present;

	struct vulture_flow flow;
};

struct vulture_event_start {
	__u16 family;
	__u8 cmd;
	struct ynl_ntf_base_type *next;
	void (*free)(struct vulture_event_start *ntf);
	struct vulture_event_start_rsp obj __attribute__((aligned(8)));
};

void vulture_event_start_free(struct vulture_event_start *rsp);

/* VULTURE_CMD_EVENT_END - event */
struct vulture_event_end_rsp {
	struct {
		__u32 flow:1;
		__u32 reason:1;
	} _present;

	struct vulture_flow flow;
	enum vulture_reason reason;
};

struct vulture_event_end {
	__u16 family;
	__u8 cmd;
	struct ynl_ntf_base_type *next;
	void (*free)(struct vulture_event_end *ntf);
	struct vulture_event_end_rsp obj __attribute__((aligned(8)));
};

void vulture_event_end_free(struct vulture_event_end *rsp);

#endif /* _LINUX_VULTURE_GEN_H */
