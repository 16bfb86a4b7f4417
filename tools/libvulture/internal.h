/* SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0 */
/*
 * The structs behind the opaque names of vulture.h. Only libvulture and vulturectl, which is
 * linked with the library's objects, may include this file.
 */
#ifndef LIBVULTURE_INTERNAL_H
#define LIBVULTURE_INTERNAL_H

#include "vulture.h"

/* Room for options, numbered from 1. Number 1 is the controller. */
#define VULTURE_OPTIONS		63
#define VULTURE_OPTION_CONTROLLER	1
/* Room for a controller's statistics. */
#define VULTURE_STATS		48

/**
 * struct vulture_options - what differs from the kernel's defaults
 * @set: bit n is set if value[n] counts
 * @value: by option number, from 1
 *
 * Zero it, then use vulture_option().
 */
struct vulture_options {
	uint64_t set;
	uint32_t value[VULTURE_OPTIONS + 1];
};

/** struct vulture_stat - one statistic of a controller */
struct vulture_stat {
	const char *name;
	int64_t value;
};

/**
 * struct vulture_flow - one connection under control
 *
 * Windows are in bytes, times in microseconds; counters count since the
 * start. A value that is not known yet is 0.
 */
struct vulture_flow {
	uint64_t id;			/* unique on this machine */
	struct vulture_address address;
	uint32_t rule;			/* that started it; 0 = none */
	struct vulture_options options;	/* of its controller, all of them */
	uint32_t controller;		/* vulture_controller_name() */
	uint32_t n_stats;		/* in stats[], of any controller */
	struct vulture_stat stats[VULTURE_STATS];
	uint32_t queue_us;		/* what stands in the path's queue */
	uint32_t rwnd_bytes;		/* window wanted */
	uint32_t advertised_bytes;	/* in the latest segment sent */
	uint32_t own_bytes;		/* what TCP itself wanted there */
	uint32_t rtt_us, min_rtt_us;
	uint32_t mss_bytes;
	uint64_t age_us;
	uint64_t segments, bytes;	/* received */
	uint64_t acks, rewritten, updates;	/* sent */
};

/**
 * struct vulture_rule - which new connections start by themselves
 * @id: from the kernel; 0 in vulture_rule_add()
 * @cgroup: inode of a v2 cgroup's directory; 0 = any
 * @cgroup_fd: in vulture_rule_add() instead of @cgroup: a descriptor of the directory, to which
 *	the caller may write; no privilege is needed then. Valid if @by_fd
 * @owned, @uid: in a list: whose rule it is, if it was made without privilege
 * @local_port, @remote_port: host byte order; 0 = any
 * @family: of @prefix, AF_INET or AF_INET6; 0 = any
 * @prefix_len: bits
 * @prefix: remote addresses, network byte order
 * @by_dscp, @dscp: what the socket sends with, 0 to 63; it counts if @by_dscp
 * @foreground: no rule starts what it matches, but for rules of cgroups below its own
 * @options: of the connections that it starts
 * @started: how many it started
 * @failed: how many it matched and could not start
 */
struct vulture_rule {
	uint32_t id;
	uint64_t cgroup;
	bool by_fd;
	int cgroup_fd;
	bool owned;
	uint32_t uid;
	uint16_t local_port, remote_port;
	uint16_t family;
	uint8_t prefix_len;
	uint8_t prefix[16];
	bool by_dscp;
	uint8_t dscp;
	bool foreground;
	struct vulture_options options;
	uint64_t started, failed;
};

/** struct vulture_defaults - of this network namespace */
struct vulture_defaults {
	struct vulture_options options;	/* all of them */
	uint32_t max_flows;		/* limit on connections */
	uint32_t flows;			/* connections now */
	uint32_t flow_bytes;		/* kernel memory for each */
	char version[64];		/* of the module */
};

/**
 * struct lv_option - an option, by its number in the library
 * @nest: of its controller; 0 for the controller itself
 * @attr: its attribute there
 * @min, @max: what the kernel takes (Documentation/vulture.yaml)
 * @def: the module's own default
 * @unit: "-" for a plain number, and where 1 is yes and 0 no
 */
struct lv_option {
	const char *name;
	uint16_t nest, attr;
	uint32_t min, max, def;
	const char *unit;
};

extern const struct lv_option lv_options[];	/* from 1 */
extern const unsigned int lv_n_options;

/* lv_option_number() - of a name, from 1; 0 with EINVAL if there is no such option */
unsigned int lv_option_number(const char *name);

/* lv_option_range() - what the kernel takes. Return: 0, or -1 (EINVAL: there is no such option) */
int lv_option_range(const char *name, uint32_t *min, uint32_t *max);

#endif /* LIBVULTURE_INTERNAL_H */
