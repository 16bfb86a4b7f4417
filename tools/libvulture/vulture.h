/* SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0 */
/*
 * libvulture: take TCP downloads to the background, and back.
 *
 * Talks to the kernel module vulture (generic netlink). An application needs
 * no privilege for sockets of its own:
 *
 *	struct vulture *v = vulture_open();
 *	if (!v || vulture_start(v, fd, NULL) < 0)
 *		warnx("%s", vulture_error(v));
 *	... the download goes on, and steps aside for everything else ...
 *	vulture_stop(v, fd);
 *	vulture_close(v);
 *
 * Functions return 0 or a count, or -1 with errno set and a sentence in
 * vulture_error(). A handle is for one thread at a time.
 *
 * errno:
 *	ENOENT		no such connection, cgroup or rule; or, from vulture_open(),
 *			the module is not loaded
 *	EBADF, ENOTSOCK, EPROTONOSUPPORT, ENOTCONN	what the descriptor lacks
 *	EOPNOTSUPP	the connection has no timestamps, or is signed
 *	EALREADY	it is under control already
 *	ENOSPC		the kernel's table is full
 *	ERANGE, EINVAL	an option out of its range, or options that clash
 *	EPERM		CAP_NET_ADMIN is needed
 */
#ifndef LIBVULTURE_H
#define LIBVULTURE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VULTURE_API __attribute__((visibility("default")))

struct vulture;

/* Room for options. They are numbered from 1; vulture_option_name() gives their names
 * and ends with NULL. Number 1 is the controller.
 */
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
 * struct vulture_address - both ends of a connection
 * @local: this machine's; sin_family AF_INET or AF_INET6
 * @remote: the peer's, of the same family
 */
struct vulture_address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} local, remote;
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
	/* Of the paper's controller, from here on to last_sum_us, and piv_negative to
	 * aggressive_us; but rwnd_bytes, windows, round trips and mss_bytes of all.
	 */
	uint32_t phase;			/* vulture_phase_name() */
	uint32_t mode;			/* vulture_mode_name() */
	uint32_t policy;		/* vulture_policy_name() */
	uint32_t rwnd_bytes;		/* window wanted */
	uint32_t thresh_bytes;		/* window before the last reduction */
	uint32_t advertised_bytes;	/* in the latest segment sent */
	uint32_t own_bytes;		/* what TCP itself wanted there */
	uint32_t cwnd_bytes;		/* estimate of the sender's window */
	uint32_t rtt_us, min_rtt_us;
	uint32_t mss_bytes;
	uint32_t peer_tick_us;		/* of the peer's timestamps */
	uint32_t last_pivs, last_positive;	/* latest round */
	int64_t last_sum_us;
	uint64_t age_us;
	uint64_t piv_negative, piv_zero, piv_positive;
	uint64_t piv_low, piv_middle, piv_high;
	uint64_t rounds, fixes, increases, doublings, halvings, losses;
	uint64_t conservative_us, aggressive_us;
	uint64_t segments, bytes;	/* received */
	uint64_t acks, rewritten, updates;	/* sent */
};

/**
 * struct vulture_rule - which new connections start by themselves
 * @id: from the kernel; 0 in vulture_rule_add()
 * @cgroup: inode of a v2 cgroup's directory; 0 = any
 * @cgroup_fd: in vulture_rule_add() instead of @cgroup: a descriptor of the directory, to which
 *	the caller may write; no privilege is needed then. 0 = none
 * @owned, @uid: in a list: whose rule it is, if it was made without privilege
 * @local_port, @remote_port: host byte order; 0 = any
 * @family: of @prefix, AF_INET or AF_INET6; 0 = any
 * @prefix_len: bits
 * @prefix: remote addresses, network byte order
 * @options: of the connections that it starts
 * @started: how many it started
 */
struct vulture_rule {
	uint32_t id;
	uint64_t cgroup;
	int cgroup_fd;
	bool owned;
	uint32_t uid;
	uint16_t local_port, remote_port;
	uint16_t family;
	uint8_t prefix_len;
	uint8_t prefix[16];
	struct vulture_options options;
	uint64_t started;
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
 * vulture_open() - a handle for the calling thread's network namespace
 * Return: the handle, or NULL; vulture_error(NULL) then tells why.
 */
VULTURE_API struct vulture *vulture_open(void);

/** vulture_close() - give a handle back; NULL is fine */
VULTURE_API void vulture_close(struct vulture *v);

/**
 * vulture_error() - a sentence on the latest failure of this handle (or, for
 * NULL, of vulture_open() in this thread)
 */
VULTURE_API const char *vulture_error(const struct vulture *v);

/**
 * vulture_option() - set one option by name
 * @options: to change
 * @name: as in vulture_option_name(), "psi-us" for example
 * @value: the kernel checks the range
 * Return: 0, or -1 with EINVAL if there is no such option.
 */
VULTURE_API int vulture_option(struct vulture_options *options, const char *name, uint32_t value);

/** vulture_option_name() - of option 1 and so on; NULL after the last */
VULTURE_API const char *vulture_option_name(unsigned int option);

/** vulture_controller_name() - "paper" for example */
VULTURE_API const char *vulture_controller_name(uint32_t controller);

/** vulture_controller_number() - by name; -1 with EINVAL if there is none */
VULTURE_API int vulture_controller_number(const char *name);

VULTURE_API const char *vulture_phase_name(uint32_t phase);
VULTURE_API const char *vulture_mode_name(uint32_t mode);
VULTURE_API const char *vulture_policy_name(uint32_t policy);
VULTURE_API const char *vulture_reason_name(uint32_t reason);

/**
 * vulture_start() - a connection of the caller goes to the background
 * @fd: a connected TCP socket, or one that is only observed so far
 * @options: NULL for the defaults
 */
VULTURE_API int vulture_start(struct vulture *v, int fd, const struct vulture_options *options);

/** vulture_stop() - it gets its window back, at once */
VULTURE_API int vulture_stop(struct vulture *v, int fd);

/** vulture_get() - how it fares */
VULTURE_API int vulture_get(struct vulture *v, int fd, struct vulture_flow *flow);

/* The same for any connection of this namespace: CAP_NET_ADMIN. Those of a
 * process or a cgroup return how many connections were started or stopped.
 */
VULTURE_API int vulture_start_address(struct vulture *v, const struct vulture_address *address,
				      const struct vulture_options *options);
VULTURE_API int vulture_stop_address(struct vulture *v, const struct vulture_address *address);
VULTURE_API int vulture_get_address(struct vulture *v, const struct vulture_address *address,
				    struct vulture_flow *flow);
VULTURE_API int vulture_start_pid(struct vulture *v, uint32_t pid,
				  const struct vulture_options *options);
VULTURE_API int vulture_stop_pid(struct vulture *v, uint32_t pid);
VULTURE_API int vulture_start_cgroup(struct vulture *v, uint64_t cgroup,
				     const struct vulture_options *options);
VULTURE_API int vulture_stop_cgroup(struct vulture *v, uint64_t cgroup);
VULTURE_API int vulture_get_id(struct vulture *v, uint64_t id, struct vulture_flow *flow);
VULTURE_API int vulture_stop_id(struct vulture *v, uint64_t id);

/**
 * vulture_list() - all connections under control in this namespace
 * @each: called for each; a value other than 0 ends the list
 * @arg: passed on
 * Return: 0, what @each returned, or -1.
 */
VULTURE_API int vulture_list(struct vulture *v,
			     int (*each)(const struct vulture_flow *flow, void *arg), void *arg);

/** vulture_rule_add() - @rule gets its id */
VULTURE_API int vulture_rule_add(struct vulture *v, struct vulture_rule *rule);
VULTURE_API int vulture_rule_del(struct vulture *v, uint32_t id);
VULTURE_API int vulture_rule_list(struct vulture *v,
				  int (*each)(const struct vulture_rule *rule, void *arg),
				  void *arg);

VULTURE_API int vulture_get_defaults(struct vulture *v, struct vulture_defaults *defaults);

/**
 * vulture_set_defaults() - for connections started from now on
 * @options: what changes; NULL for nothing
 * @max_flows: NULL leaves the limit
 */
VULTURE_API int vulture_set_defaults(struct vulture *v, const struct vulture_options *options,
				     const uint32_t *max_flows);

/**
 * vulture_listen() - from now on this handle is for vulture_event() alone
 * Return: a file descriptor to poll, or -1.
 */
VULTURE_API int vulture_listen(struct vulture *v);

/**
 * vulture_event() - wait for the next event
 * @flow: the connection
 * @reason: why it ended, vulture_reason_name()
 * Return: 1 it started, 2 it ended, -1 (ENOBUFS: events were lost).
 */
VULTURE_API int vulture_event(struct vulture *v, struct vulture_flow *flow, uint32_t *reason);

#ifdef __cplusplus
}
#endif

#endif /* LIBVULTURE_H */
