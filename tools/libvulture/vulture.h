/* SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0 */
/*
 * libvulture: put TCP downloads in the background, and take them back.
 *
 * The library talks to the kernel module vulture by generic netlink. An application
 * needs no privilege for sockets of its own:
 *
 *	struct vulture *v = vulture_open();
 *	if (!v || vulture_start(v, fd, NULL) < 0)
 *		warnx("%s", vulture_error(v));
 *	... the download goes on, and yields to other traffic ...
 *	vulture_stop(v, fd);
 *	vulture_close(v);
 *
 * Functions return 0 or a count. On failure they return -1 and set errno, and
 * vulture_error() returns a sentence that describes the failure. A handle must be used
 * by one thread only; each thread opens its own. A callback may use the handle whose
 * function called it.
 *
 * The ABI is stable: structs are opaque, and symbols carry the version VULTURE_1. If a
 * later kernel reports more, vulture_flow_number() has new names for it. The file
 * libvulture.abi in the source lists the ABI as text.
 *
 * errno:
 *	ENOENT		no such connection, cgroup or rule; or, from vulture_open(),
 *			the module is not loaded
 *	EBADF, ENOTSOCK, EPROTONOSUPPORT, ENOTCONN	the descriptor is not open, is not
 *			a socket, is not a TCP socket, or is not connected
 *	EOPNOTSUPP	the connection has no timestamps, or is signed (TCP-MD5, TCP-AO)
 *	EALREADY	it is under control already, with the same options or by another
 *			controller
 *	EBUSY		a system call of the application has kept the socket locked for 0.1 s;
 *			the same call may succeed later
 *	ENOSPC		a limit on connections or rules is reached
 *	ERANGE, EINVAL	an option is out of its range, or options contradict each other
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

/* Opaque structs. The caller must free what *_new() returned with the matching *_free(). An object
 * that is passed to a callback belongs to the library and is valid until the callback returns.
 */
struct vulture;			/* a handle on the kernel module */
struct vulture_options;		/* options that differ from the kernel's defaults */
struct vulture_flow;		/* state of one connection under control at the time of reading */
struct vulture_rule;		/* matches new connections, which are then put under control */
struct vulture_defaults;	/* defaults and limits of this network namespace */

/**
 * struct vulture_address - addresses and ports of both ends of a connection
 * @local: address of this machine; sin_family is AF_INET or AF_INET6
 * @remote: address of the peer, of the same family
 */
struct vulture_address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} local, remote;
};

/**
 * vulture_open() - open a handle for the calling thread's network namespace
 * Return: the handle, or NULL; vulture_error(NULL) then returns the reason.
 */
VULTURE_API struct vulture *vulture_open(void);

/** vulture_close() - free a handle; it may be NULL */
VULTURE_API void vulture_close(struct vulture *v);

/**
 * vulture_error() - a sentence that describes the latest failure of this handle (or,
 * for NULL, of vulture_open() in this thread)
 */
VULTURE_API const char *vulture_error(const struct vulture *v);

/** vulture_options_new() - allocate options, none of them set; NULL if memory is short */
VULTURE_API struct vulture_options *vulture_options_new(void);
VULTURE_API void vulture_options_free(struct vulture_options *options);

/**
 * vulture_option() - set one option by name
 * @options: the options to change
 * @name: a name that vulture_option_name() returns, "psi-us" for example
 * @value: the value; the kernel checks its range when the options are used
 * Return: 0, or -1 with EINVAL if there is no such option.
 */
VULTURE_API int vulture_option(struct vulture_options *options, const char *name, uint32_t value);

/**
 * vulture_option_get() - read one option by name
 * Return: 0, or -1 with ENOENT if it is not set, or EINVAL if there is no such option.
 */
VULTURE_API int vulture_option_get(const struct vulture_options *options, const char *name,
				   uint32_t *value);

/** vulture_option_name() - name of option number 1, 2, ...; NULL after the last one */
VULTURE_API const char *vulture_option_name(unsigned int option);

/* A connection. Windows are in bytes, times in microseconds. Counters count since the
 * connection was put under control. A value that is not known yet is 0.
 */
VULTURE_API struct vulture_flow *vulture_flow_new(void);	/* room for vulture_get() */
VULTURE_API void vulture_flow_free(struct vulture_flow *flow);
VULTURE_API uint64_t vulture_flow_id(const struct vulture_flow *flow);
VULTURE_API const struct vulture_address *vulture_flow_address(const struct vulture_flow *flow);
VULTURE_API uint32_t vulture_flow_rule(const struct vulture_flow *flow);	/* 0 = no rule */
VULTURE_API uint32_t vulture_flow_controller(const struct vulture_flow *flow);
/* all options of the connection's controller; valid as long as @flow is */
VULTURE_API const struct vulture_options *vulture_flow_options(const struct vulture_flow *flow);

/**
 * vulture_flow_number() - one number of a connection, by name
 * @name: rwnd_bytes (the window that the control law allows), own_bytes (the window that TCP
 *	itself would advertise), advertised_bytes (the window in the latest segment sent),
 *	rtt_us, min_rtt_us, queue_us (queueing delay on the path), mss_bytes, age_us, segments,
 *	bytes, acks, rewritten, updates, or a statistic of the connection's controller
 * Return: 0, or -1 with ENOENT if the connection has no such number.
 */
VULTURE_API int vulture_flow_number(const struct vulture_flow *flow, const char *name,
				    int64_t *value);

/** vulture_flow_name() - name of number 0, 1, ...; NULL after the last one */
VULTURE_API const char *vulture_flow_name(const struct vulture_flow *flow, unsigned int number);

/* A rule: a connection matches if it meets all conditions that are set. Ports are in host byte
 * order.
 */
VULTURE_API struct vulture_rule *vulture_rule_new(void);
VULTURE_API void vulture_rule_free(struct vulture_rule *rule);
/* The rule matches sockets of a v2 cgroup and of the cgroups below it. The cgroup is named by the
 * inode number of its directory (needs CAP_NET_ADMIN), or by a descriptor of the directory. With a
 * descriptor, a caller who may write to the directory needs no privilege. The descriptor stays the
 * caller's to close.
 */
VULTURE_API void vulture_rule_set_cgroup(struct vulture_rule *rule, uint64_t inode);
VULTURE_API void vulture_rule_set_cgroup_fd(struct vulture_rule *rule, int fd);
VULTURE_API void vulture_rule_set_ports(struct vulture_rule *rule, uint16_t local, uint16_t remote);
/* Return: 0, or -1 with EAFNOSUPPORT, or ERANGE for more bits than the address has */
VULTURE_API int vulture_rule_set_remote(struct vulture_rule *rule, const struct sockaddr *prefix,
					unsigned int bits);
/* the DSCP that the socket sends when its connection is established, 0 to 63 (1: LE) */
VULTURE_API void vulture_rule_set_dscp(struct vulture_rule *rule, uint8_t dscp);
/* The connections that this rule matches stay in the foreground: no other rule puts them under
 * control, except rules for cgroups below the cgroup of this one. Needs CAP_NET_ADMIN.
 */
VULTURE_API void vulture_rule_set_foreground(struct vulture_rule *rule, bool foreground);
VULTURE_API void vulture_rule_set_options(struct vulture_rule *rule,
					  const struct vulture_options *options);
VULTURE_API uint32_t vulture_rule_id(const struct vulture_rule *rule);
VULTURE_API uint64_t vulture_rule_cgroup(const struct vulture_rule *rule);	/* 0 = any */
VULTURE_API uint16_t vulture_rule_local_port(const struct vulture_rule *rule);	/* 0 = any */
VULTURE_API uint16_t vulture_rule_remote_port(const struct vulture_rule *rule);	/* 0 = any */
/* Write the prefix of the peers' addresses to @prefix: its family, and its address with port 0.
 * Return: the prefix length in bits, or -1 (and @prefix unchanged) if the rule matches any peer.
 */
VULTURE_API int vulture_rule_remote(const struct vulture_rule *rule, struct sockaddr_in6 *prefix);
/* uid of the user who added the rule without privilege; -1 if an administrator added it */
VULTURE_API int64_t vulture_rule_uid(const struct vulture_rule *rule);
VULTURE_API int vulture_rule_dscp(const struct vulture_rule *rule);	/* -1 = any */
VULTURE_API bool vulture_rule_foreground(const struct vulture_rule *rule);
/* number of connections that the rule put under control */
VULTURE_API uint64_t vulture_rule_started(const struct vulture_rule *rule);
/* number of connections that the rule matched but that could not be put under control, because a
 * limit was reached or memory was short
 */
VULTURE_API uint64_t vulture_rule_failed(const struct vulture_rule *rule);
VULTURE_API const struct vulture_options *vulture_rule_options(const struct vulture_rule *rule);

/* Defaults of this network namespace. */
VULTURE_API struct vulture_defaults *vulture_defaults_new(void);
VULTURE_API void vulture_defaults_free(struct vulture_defaults *defaults);
VULTURE_API uint32_t vulture_defaults_max_flows(const struct vulture_defaults *defaults);
VULTURE_API uint32_t vulture_defaults_flows(const struct vulture_defaults *defaults);	/* now */
/* kernel memory for one connection under control, bytes */
VULTURE_API uint32_t vulture_defaults_flow_bytes(const struct vulture_defaults *defaults);
VULTURE_API const char *vulture_defaults_version(const struct vulture_defaults *defaults);
VULTURE_API const struct vulture_options *
vulture_defaults_options(const struct vulture_defaults *defaults);

/** vulture_controller_name() - name of a controller, "paper" for example */
VULTURE_API const char *vulture_controller_name(uint32_t controller);

/** vulture_controller_number() - number of a controller; -1 with EINVAL if there is none */
VULTURE_API int vulture_controller_number(const char *name);

/* Names of values of statistics: of the controller paper (phase, mode, policy), of credit (phase)
 * and of rledbat (state), and of the reason of an event; "unknown" for a value without a name.
 */
VULTURE_API const char *vulture_phase_name(uint32_t phase);
VULTURE_API const char *vulture_mode_name(uint32_t mode);
VULTURE_API const char *vulture_policy_name(uint32_t policy);
VULTURE_API const char *vulture_credit_phase_name(uint32_t phase);
VULTURE_API const char *vulture_rledbat_state_name(uint32_t state);
VULTURE_API const char *vulture_reason_name(uint32_t reason);

/**
 * vulture_start() - put a connection of the caller in the background
 * @fd: a connected TCP socket; it may already be observed (option "observe")
 * @options: NULL for the defaults
 */
VULTURE_API int vulture_start(struct vulture *v, int fd, const struct vulture_options *options);

/** vulture_stop() - end the control: the connection advertises TCP's own window again at once */
VULTURE_API int vulture_stop(struct vulture *v, int fd);

/** vulture_get() - read the state of the connection into @flow (from vulture_flow_new()) */
VULTURE_API int vulture_get(struct vulture *v, int fd, struct vulture_flow *flow);

/* The same for any connection of this namespace; these functions need CAP_NET_ADMIN, also for a
 * process of the caller's own. Without it, call vulture_start() with each descriptor: that of
 * another process, if the caller may trace it, comes from pidfd_getfd(2). "vulturectl start --pid"
 * does this for all sockets of a process. Those for a process or a cgroup return the number of
 * connections that were started or stopped.
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
 * vulture_list() - list all connections under control in this namespace
 * @each: called for each connection; if it returns a value other than 0, the list ends
 * @arg: passed to @each
 * Return: 0, what @each returned, or -1.
 */
VULTURE_API int vulture_list(struct vulture *v,
			     int (*each)(const struct vulture_flow *flow, void *arg), void *arg);

/**
 * vulture_rule_add() - add a rule
 * @rule: then the rule as the kernel reports it: with its id, its cgroup, the user whose it is and
 *	all options
 *
 * A second call with the same @rule sends the same request and adds another rule: it names the
 * cgroup by the same descriptor, which must still be open, and sets the same options.
 */
VULTURE_API int vulture_rule_add(struct vulture *v, struct vulture_rule *rule);
VULTURE_API int vulture_rule_del(struct vulture *v, uint32_t id);
VULTURE_API int vulture_rule_list(struct vulture *v,
				  int (*each)(const struct vulture_rule *rule, void *arg),
				  void *arg);

VULTURE_API int vulture_get_defaults(struct vulture *v, struct vulture_defaults *defaults);

/**
 * vulture_set_defaults() - set the defaults for connections started from now on
 * @options: the options to change; NULL for none
 * @max_flows: new limit on connections; NULL to keep the limit
 */
VULTURE_API int vulture_set_defaults(struct vulture *v, const struct vulture_options *options,
				     const uint32_t *max_flows);

/* The events that vulture_event() returns. */
#define VULTURE_EVENT_START	1
#define VULTURE_EVENT_END	2

/**
 * vulture_listen() - subscribe to events; the handle may then be used for vulture_event() only
 * Return: a file descriptor to poll, or -1.
 */
VULTURE_API int vulture_listen(struct vulture *v);

/**
 * vulture_event() - wait for the next event
 * @flow: the connection that the event is about
 * @reason: why its control ended; vulture_reason_name() has the names
 * Return: VULTURE_EVENT_START, VULTURE_EVENT_END, or -1 (ENOBUFS: events were lost).
 */
VULTURE_API int vulture_event(struct vulture *v, struct vulture_flow *flow, uint32_t *reason);

#ifdef __cplusplus
}
#endif

#endif /* LIBVULTURE_H */
