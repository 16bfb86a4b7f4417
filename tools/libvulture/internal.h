/* SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0 */
/*
 * The structs behind the opaque names of vulture.h. Only libvulture and vulturectl, which is
 * linked with the library's objects, may include this file.
 */
#ifndef LIBVULTURE_INTERNAL_H
#define LIBVULTURE_INTERNAL_H

#include "vulture.h"

/* Highest option number that fits. Options are numbered from 1; number 1 is the controller. */
#define VULTURE_OPTIONS		63
#define VULTURE_OPTION_CONTROLLER	1
/* Highest number of statistics of one controller. */
#define VULTURE_STATS		48

/**
 * struct vulture_options - options that differ from the kernel's defaults
 * @set: bit n is set if value[n] is valid
 * @value: indexed by option number, from 1
 *
 * Set it to zero, then use vulture_option().
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
 * Windows are in bytes, times in microseconds. Counters count since the
 * connection was put under control. A value that is not known yet is 0.
 */
struct vulture_flow {
	uint64_t id;			/* unique on this machine */
	struct vulture_address address;
	uint32_t rule;			/* id of the rule that started it; 0 = none */
	struct vulture_options options;	/* all options of its controller */
	uint32_t controller;		/* vulture_controller_name() */
	uint32_t n_stats;		/* valid entries of stats[] */
	struct vulture_stat stats[VULTURE_STATS];
	uint32_t queue_us;		/* queueing delay on the path */
	uint32_t rwnd_bytes;		/* window that the control law allows */
	uint32_t advertised_bytes;	/* window in the latest segment sent */
	uint32_t own_bytes;		/* window that TCP itself put into that segment */
	uint32_t rtt_us, min_rtt_us;
	uint32_t mss_bytes;
	uint64_t age_us;
	uint64_t segments, bytes;	/* received */
	uint64_t acks, rewritten, updates;	/* sent */
};

/**
 * struct vulture_rule - puts each new connection that it matches under control
 * @id: from the kernel; 0 in vulture_rule_add()
 * @cgroup: inode of a v2 cgroup's directory; 0 = any
 * @cgroup_fd: in vulture_rule_add() instead of @cgroup: a descriptor of the directory, to which
 *	the caller may write; no privilege is needed then. Valid if @by_fd
 * @owned, @uid: in a list: @uid is the user who added the rule without privilege, if @owned
 * @local_port, @remote_port: host byte order; 0 = any
 * @family: of @prefix, AF_INET or AF_INET6; 0 = any
 * @prefix_len: bits
 * @prefix: remote addresses, network byte order
 * @by_dscp, @dscp: the DSCP that the socket sends, 0 to 63; a condition only if @by_dscp
 * @foreground: the connections that it matches stay in the foreground: no rule starts them,
 *	except rules for cgroups below @cgroup
 * @options: options of the connections that it starts; after vulture_rule_add() all of them, as
 *	the kernel has them
 * @asked: the options that vulture_rule_add() was called with, if it has filled this in
 *	(@has_asked); it uses them again in a second call
 * @started: number of connections that it put under control
 * @failed: number of connections that it matched but that could not be put under control
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
	bool has_asked;
	struct vulture_options asked;
	uint64_t started, failed;
};

/** struct vulture_defaults - defaults and limits of this network namespace */
struct vulture_defaults {
	struct vulture_options options;	/* all of them */
	uint32_t max_flows;		/* limit on connections */
	uint32_t flows;			/* connections under control now */
	uint32_t flow_bytes;		/* kernel memory for each connection */
	char version[64];		/* of the module */
};

/**
 * struct lv_option - description of an option; the index in lv_options[] is its number
 * @nest: netlink nest of the controller that has it; 0 for the option "controller"
 * @attr: its attribute in that nest
 * @min, @max: the range that the kernel accepts (Documentation/vulture.yaml, as the rest)
 * @def: the module's own default
 * @unit: "-" for a number without unit, and for a switch (1 on, 0 off)
 */
struct lv_option {
	const char *name;
	uint16_t nest, attr;
	uint32_t min, max, def;
	const char *unit;
};

extern const struct lv_option lv_options[];	/* from 1 */
extern const unsigned int lv_n_options;

/* lv_option_number() - number of an option, from 1; 0 with EINVAL if there is no such option */
unsigned int lv_option_number(const char *name);

/* lv_option_range() - the values that the kernel accepts. Return: 0, or -1 with EINVAL if there is
 * no such option
 */
int lv_option_range(const char *name, uint32_t *min, uint32_t *max);

#endif /* LIBVULTURE_INTERNAL_H */
