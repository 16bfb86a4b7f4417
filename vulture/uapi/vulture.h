/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "vulture": background downloads by receive window.
 *
 * Documentation/vulture.yaml describes the same interface in the kernel's own format.
 * All integers are in host byte order; addresses are in network byte order, 4
 * octets for IPv4 (also on a v6 socket with a mapped address) or 16 for IPv6.
 * All requests act on the network namespace of the netlink socket, except that
 * VULTURE_A_FD names a socket of any namespace.
 *
 * A "connection" is one TCP socket of this machine in ESTABLISHED, FIN_WAIT1
 * or FIN_WAIT2 that uses timestamps (RFC 7323) and carries no TCP-MD5 or TCP-AO
 * signature (which would cover the window).
 *
 * VULTURE_CMD_START	take connections under control
 *	exactly one of
 *	VULTURE_A_FD	u32	file descriptor of the caller; needs no privilege
 *	VULTURE_A_ADDR	nest	addresses and ports of both ends	(*)
 *	VULTURE_A_PID	u32	all sockets of that process	(*)
 *	VULTURE_A_CGROUP u64	all sockets of that v2 cgroup and those below;
 *				its id is its directory's inode	(*)
 *	and
 *	VULTURE_A_OPTIONS nest	options that differ from the defaults
 *	(*) needs CAP_NET_ADMIN in the namespace.
 *	Reply: VULTURE_A_COUNT (connections started); with FD or ADDR also
 *	VULTURE_A_ID. With PID and CGROUP, sockets that cannot be started are
 *	skipped; the error is ENOENT if none can.
 *	A connection that is only observed (VULTURE_PAPER_O_OBSERVE) may be started:
 *	it is then limited at once, to the window estimated so far.
 *
 * VULTURE_CMD_STOP	end the control of connections
 *	one of FD, ADDR, PID, CGROUP as above, or VULTURE_A_ID u64 (*); a window
 *	update with TCP's own window goes out at once. Reply: VULTURE_A_COUNT. The
 *	error is ENOENT if no connection was under control.
 *
 * VULTURE_CMD_GET	one connection: FD, ADDR or ID; or a dump of all
 *	Reply: VULTURE_A_FLOW. A dump has one message per connection. A connection
 *	that starts or ends during the dump may or may not be in it.
 *
 * VULTURE_CMD_SET (*)	change the namespace's defaults
 *	VULTURE_A_OPTIONS nest	options for connections started from now on
 *	VULTURE_A_MAX_FLOWS u32	limit, 0 to 1000000; with 0 none can start
 *
 * VULTURE_CMD_GET_DEFAULTS
 *	Reply: VULTURE_A_OPTIONS (all), VULTURE_A_MAX_FLOWS, VULTURE_A_COUNT
 *	(present connections), VULTURE_A_FLOW_BYTES, VULTURE_A_VERSION.
 *
 * VULTURE_CMD_RULE_ADD		start each connection that matches when it is
 *				established, until the rule is deleted
 *	VULTURE_A_RULE nest	at least one of CGROUP, LOCAL_PORT, REMOTE_PORT,
 *				REMOTE_PREFIX, DSCP; all that are given must match.
 *				DSCP is the socket's own (IP_TOS, IPV6_TCLASS) at that
 *				moment, not that of packets that arrive.
 *				OPTIONS as for START. A rule acts in this network
 *				namespace only, and is deleted when its cgroup is.
 *				Needs (*), or CGROUP_FD instead of CGROUP: a file
 *				descriptor of the cgroup's directory, to which the
 *				caller may write. A rule of the latter kind belongs to
 *				its user. 16 users of a namespace may have 8 such rules
 *				each, and 512 connections at a time that these started.
 *	Reply: VULTURE_A_RULE with its ID. Of several rules that match, the one added
 *	first starts the connection.
 * VULTURE_CMD_RULE_DEL		VULTURE_A_RULE with the rule's ID; needs (*) if it is
 *				not the caller's own. Connections that it started stay
 *				under control.
 * VULTURE_CMD_RULE_GET		dump, one rule per message
 *
 * Events, to multicast group "events" of the connection's namespace:
 * VULTURE_CMD_EVENT_START	VULTURE_A_FLOW
 * VULTURE_CMD_EVENT_END	VULTURE_A_FLOW, VULTURE_A_REASON
 *
 * Errors. The text in the extended ACK gives the value, and which values are allowed:
 *	EBADF		no such file descriptor
 *	ENOTSOCK	the file descriptor is not a socket
 *	EPROTONOSUPPORT	not TCP
 *	ENOTCONN	not connected, or the peer has finished sending
 *	EOPNOTSUPP	without timestamps, or signed
 *	EALREADY	under control already
 *	EBUSY		a system call of the application has kept the socket locked for 0.1 s;
 *			the same request may succeed later
 *	ENOSPC		the table or the list of rules is full
 *	ENOENT		no such connection, cgroup or rule
 *	ENOTDIR, EACCES	a cgroup-fd is not a v2 cgroup's directory, or the caller may not write
 *			there
 *	ESRCH		no such process
 *	ERANGE, EINVAL	a value out of its range, or options that contradict each other
 *	EPERM		CAP_NET_ADMIN is needed
 */
#ifndef _UAPI_VULTURE_H
#define _UAPI_VULTURE_H

#define VULTURE_GENL_NAME	"vulture"
#define VULTURE_GENL_VERSION	1
#define VULTURE_MCGRP_EVENTS	"events"

enum vulture_cmd {
	VULTURE_CMD_UNSPEC,
	VULTURE_CMD_START,
	VULTURE_CMD_STOP,
	VULTURE_CMD_GET,
	VULTURE_CMD_SET,
	VULTURE_CMD_GET_DEFAULTS,
	VULTURE_CMD_RULE_ADD,
	VULTURE_CMD_RULE_DEL,
	VULTURE_CMD_RULE_GET,
	VULTURE_CMD_EVENT_START,
	VULTURE_CMD_EVENT_END,
	__VULTURE_CMD_MAX,
};

#define VULTURE_CMD_MAX (__VULTURE_CMD_MAX - 1)

enum vulture_attr {
	VULTURE_A_UNSPEC,
	VULTURE_A_FD,		/* u32 */
	VULTURE_A_ADDR,		/* nest of VULTURE_ADDR_* */
	VULTURE_A_PID,		/* u32, in the caller's pid namespace */
	VULTURE_A_CGROUP,	/* u64 */
	VULTURE_A_ID,		/* u64, id of a connection under control */
	VULTURE_A_OPTIONS,	/* nest of VULTURE_O_* */
	VULTURE_A_FLOW,		/* nest of VULTURE_F_* */
	VULTURE_A_RULE,		/* nest of VULTURE_R_* */
	VULTURE_A_COUNT,	/* u32, connections */
	VULTURE_A_MAX_FLOWS,	/* u32, connections */
	VULTURE_A_FLOW_BYTES,	/* u32, kernel memory per connection of the default
				 * controller, bytes
				 */
	VULTURE_A_REASON,	/* u32, enum vulture_reason */
	VULTURE_A_VERSION,	/* string, of the module */
	VULTURE_A_PAD,
	__VULTURE_A_MAX,
};

#define VULTURE_A_MAX (__VULTURE_A_MAX - 1)

enum vulture_addr_attr {
	VULTURE_ADDR_UNSPEC,
	VULTURE_ADDR_LOCAL,		/* binary, 4 or 16 octets */
	VULTURE_ADDR_LOCAL_PORT,	/* u16 */
	VULTURE_ADDR_REMOTE,		/* binary, as long as LOCAL */
	VULTURE_ADDR_REMOTE_PORT,	/* u16 */
	__VULTURE_ADDR_MAX,
};

#define VULTURE_ADDR_MAX (__VULTURE_ADDR_MAX - 1)

/* The law that sets a connection's window. */
enum vulture_controller {
	VULTURE_CONTROLLER_PAPER,	/* Li and Welzl's, Documentation/vulture.md */
	VULTURE_CONTROLLER_CREDIT,	/* the suite's own, Documentation/vulture_credit.md */
	VULTURE_CONTROLLER_RLEDBAT,	/* RFC 9840 with the law of LEDBAT++ */
	__VULTURE_CONTROLLER_MAX,
};

/* A controller, and its options. In a start or a rule: the controller to use, and
 * options of that one only; what is not given is the namespace's default. In the
 * defaults: the controller that is used if none is named, and the options of each.
 */
enum vulture_option {
	VULTURE_O_UNSPEC,
	VULTURE_O_CONTROLLER,	/* u32, enum vulture_controller */
	VULTURE_O_PAPER,	/* nest of VULTURE_PAPER_O_* */
	VULTURE_O_CREDIT,	/* nest of VULTURE_CREDIT_O_* */
	VULTURE_O_RLEDBAT,	/* nest of VULTURE_RLEDBAT_O_* */
	__VULTURE_O_MAX,
};

#define VULTURE_O_MAX (__VULTURE_O_MAX - 1)

/* Options of the paper's controller, all u32: default; range. The defaults are the
 * paper's. Documentation/vulture.md explains those that it does not give.
 */
enum vulture_paper_option {
	VULTURE_PAPER_O_UNSPEC,
	VULTURE_PAPER_O_TICK_US,	/* resolution of both clocks; 4000; 1 to 10000 */
	VULTURE_PAPER_O_PSI_US,		/* least sending interval of a pair; 20000; 1000 to
					 * 1000000
					 */
	VULTURE_PAPER_O_CONS_LOW_US,	/* conservative: low below; 4000; 1 to 1000000 */
	VULTURE_PAPER_O_CONS_HIGH_US,	/* conservative: high from; 8000; 1 to 1000000 */
	VULTURE_PAPER_O_AGGR_LOW_US,	/* aggressive: low up to; 12000; 1 to 1000000 */
	VULTURE_PAPER_O_AGGR_HIGH_US,	/* aggressive: high from; 20000; 1 to 1000000 */
	VULTURE_PAPER_O_PAIRING,	/* enum vulture_pairing; 0; 0 or 1 */
	VULTURE_PAPER_O_ALPHA_PERMILLE,	/* share above which a class decides; 875; 500 to 999 */
	VULTURE_PAPER_O_INCREASE_SEGS,	/* step of "increase", segments; 1; 1 to 64 */
	VULTURE_PAPER_O_POSITIVE_TEST,	/* use sign and sum of the variations; 1; 0 or 1 */
	VULTURE_PAPER_O_GOALS,		/* policies end at twice, or half, the window; 1; 0 or 1 */
	VULTURE_PAPER_O_SETTLE,		/* "double" is judged when it is complete; 1; 0 or 1 */
	VULTURE_PAPER_O_RETRACT,	/* the right edge may move to the left; 1; 0 or 1 */
	VULTURE_PAPER_O_OBSERVE,	/* only estimate, leave the window; 0; 0 or 1 */
	__VULTURE_PAPER_O_MAX,
};

#define VULTURE_PAPER_O_MAX (__VULTURE_PAPER_O_MAX - 1)

/* Options of the controller credit, all u32: default; range. */
enum vulture_credit_option {
	VULTURE_CREDIT_O_UNSPEC,
	VULTURE_CREDIT_O_MIN_KBIT, /* least rate of each connection, kbit/s, once its path
				    * has been in FLOOR for escape-s; 2; 0 (none) to
				    * 1000000
				    */
	VULTURE_CREDIT_O_ESCAPE_S, /* seconds; 20; 0 to 86400 */
	VULTURE_CREDIT_O_WEIGHT, /* share of what the connections of the path have together,
				  * relative to their weights; 1000; 1 to 1000000
				  */
	__VULTURE_CREDIT_O_MAX,
};

#define VULTURE_CREDIT_O_MAX (__VULTURE_CREDIT_O_MAX - 1)

enum vulture_pairing {
	VULTURE_PAIRING_EACH,		/* each packet forms one pair */
	VULTURE_PAIRING_LITERAL,	/* the paper's pseudo-code as printed */
	__VULTURE_PAIRING_MAX,
};

enum vulture_mode { VULTURE_MODE_CONSERVATIVE, VULTURE_MODE_AGGRESSIVE };

enum vulture_policy {
	VULTURE_POLICY_FIX,
	VULTURE_POLICY_INCREASE,
	VULTURE_POLICY_DOUBLE,
	VULTURE_POLICY_HALVE,
};

enum vulture_phase {
	VULTURE_PHASE_OBSERVE,	/* estimates the sender's window, limits nothing */
	VULTURE_PHASE_START,	/* the same, for the one round trip before control */
	VULTURE_PHASE_WAIT,	/* until data reflects the latest policy */
	VULTURE_PHASE_COLLECT,	/* collects the variations of a round trip */
};

enum vulture_reason {
	VULTURE_REASON_STOPPED,	/* by request */
	VULTURE_REASON_CLOSED,	/* the connection ended */
	VULTURE_REASON_REMOVED,	/* the module or the namespace was removed */
};

enum vulture_flow_attr {
	VULTURE_F_UNSPEC,
	VULTURE_F_ID,			/* u64 */
	VULTURE_F_ADDR,			/* nest of VULTURE_ADDR_* */
	VULTURE_F_RULE,			/* u32, rule that started it; 0 = none */
	VULTURE_F_OPTIONS,		/* nest of VULTURE_O_: its controller, with all options
					 * of that
					 */
	VULTURE_F_WINDOW_BYTES,		/* u32, window that the controller wants */
	VULTURE_F_ADVERTISED_BYTES,	/* u32, window of the latest segment sent */
	VULTURE_F_OWN_BYTES,		/* u32, TCP's own window in that segment */
	VULTURE_F_RTT_US,		/* u32, latest round trip; 0 = none yet */
	VULTURE_F_MIN_RTT_US,		/* u32, least round trip; 0 = none yet */
	VULTURE_F_QUEUE_US,		/* u32, queueing delay of the path */
	VULTURE_F_MSS_BYTES,		/* u32, full segment of the peer */
	VULTURE_F_AGE_US,		/* u64, time since the start of control */
	VULTURE_F_SEGMENTS,		/* u64, data segments received */
	VULTURE_F_BYTES,		/* u64, their payload */
	VULTURE_F_ACKS,			/* u64, segments sent */
	VULTURE_F_REWRITTEN,		/* u64, those of them with a smaller window than TCP's */
	VULTURE_F_UPDATES,		/* u64, ACKs that the module sent */
	/* State and counters of the connection's controller: one of these. */
	VULTURE_F_PAPER,		/* nest of VULTURE_PAPER_S_ */
	VULTURE_F_CREDIT,		/* nest of VULTURE_CREDIT_S_ */
	VULTURE_F_RLEDBAT,		/* nest of VULTURE_RLEDBAT_S_ */
	VULTURE_F_PAD,
	__VULTURE_F_MAX,
};

#define VULTURE_F_MAX (__VULTURE_F_MAX - 1)

/* Options of rLEDBAT, all u32: default; range. */
enum vulture_rledbat_option {
	VULTURE_RLEDBAT_O_UNSPEC,
	VULTURE_RLEDBAT_O_TARGET_US,	/* target queueing delay; 60000; 1000 to 100000 */
	VULTURE_RLEDBAT_O_SLOWDOWN,	/* let the queue drain periodically; 1; 0 or 1 */
	__VULTURE_RLEDBAT_O_MAX,
};

#define VULTURE_RLEDBAT_O_MAX (__VULTURE_RLEDBAT_O_MAX - 1)

/* State and counters of rLEDBAT, all u64. */
enum vulture_rledbat_stat {
	VULTURE_RLEDBAT_S_UNSPEC,
	VULTURE_RLEDBAT_S_STATE,	/* enum vulture_rledbat_state */
	VULTURE_RLEDBAT_S_SSTHRESH_BYTES,	/* where the ramp after a slowdown ends */
	VULTURE_RLEDBAT_S_SAMPLES,	/* round trips measured */
	VULTURE_RLEDBAT_S_LOSSES,	/* halvings for loss and ECN */
	VULTURE_RLEDBAT_S_SLOWDOWNS,
	VULTURE_RLEDBAT_S_PAD,
	__VULTURE_RLEDBAT_S_MAX,
};

#define VULTURE_RLEDBAT_S_MAX (__VULTURE_RLEDBAT_S_MAX - 1)

enum vulture_rledbat_state {
	VULTURE_RLEDBAT_STATE_START,	/* slow start, until the first queue */
	VULTURE_RLEDBAT_STATE_STEADY,
	VULTURE_RLEDBAT_STATE_DOWN,	/* two packets for two round trips */
	VULTURE_RLEDBAT_STATE_RAMP,	/* back to the window before the slowdown */
};

/* State and counters of the paper's controller, all u64 but LAST_SUM_US. */
enum vulture_paper_stat {
	VULTURE_PAPER_S_UNSPEC,
	VULTURE_PAPER_S_PHASE,		/* enum vulture_phase */
	VULTURE_PAPER_S_MODE,		/* enum vulture_mode */
	VULTURE_PAPER_S_POLICY,		/* enum vulture_policy */
	VULTURE_PAPER_S_THRESH_BYTES,	/* rwndThresh */
	VULTURE_PAPER_S_CWND_BYTES,	/* estimate of the sender's window */
	VULTURE_PAPER_S_PEER_TICK_US,	/* peer's timestamp tick; 0 = not known yet */
	VULTURE_PAPER_S_LAST_PIVS,	/* variations of the latest round */
	VULTURE_PAPER_S_LAST_POSITIVE,	/* those of them above 0 */
	VULTURE_PAPER_S_LAST_SUM_US,	/* s64, their sum */
	VULTURE_PAPER_S_PIV_NEGATIVE,	/* counters from here on */
	VULTURE_PAPER_S_PIV_ZERO,
	VULTURE_PAPER_S_PIV_POSITIVE,
	VULTURE_PAPER_S_PIV_LOW,	/* classes in the mode of their round */
	VULTURE_PAPER_S_PIV_MIDDLE,
	VULTURE_PAPER_S_PIV_HIGH,
	VULTURE_PAPER_S_ROUNDS,		/* rounds analysed */
	VULTURE_PAPER_S_FIXES,		/* decisions by policy */
	VULTURE_PAPER_S_INCREASES,
	VULTURE_PAPER_S_DOUBLINGS,
	VULTURE_PAPER_S_HALVINGS,	/* all causes */
	VULTURE_PAPER_S_LOSSES,		/* halvings for loss, reordering, ECN */
	VULTURE_PAPER_S_CONSERVATIVE_US,	/* time in that mode */
	VULTURE_PAPER_S_AGGRESSIVE_US,		/* time in that mode */
	VULTURE_PAPER_S_PAD,
	__VULTURE_PAPER_S_MAX,
};

#define VULTURE_PAPER_S_MAX (__VULTURE_PAPER_S_MAX - 1)

enum vulture_credit_phase {
	VULTURE_CREDIT_PHASE_START,	/* follows the sender's slow start */
	VULTURE_CREDIT_PHASE_CRUISE,	/* keeps a queue of about two packets */
	VULTURE_CREDIT_PHASE_FLOOR,	/* gives credit for a packet now and then */
	VULTURE_CREDIT_PHASE_PROBE,	/* measures with a train of packets */
};

/* Statistics of the controller credit, all u64. They are those of the connection's path. */
enum vulture_credit_stat {
	VULTURE_CREDIT_S_UNSPEC,
	VULTURE_CREDIT_S_PHASE,		/* enum vulture_credit_phase */
	VULTURE_CREDIT_S_FLOWS,		/* connections that share the credit */
	VULTURE_CREDIT_S_CAPACITY_BPS,	/* estimated capacity, bit/s */
	VULTURE_CREDIT_S_RATE_BPS,	/* rate of arrivals in the latest round trip, bit/s */
	VULTURE_CREDIT_S_CREDIT_BYTES,	/* credit that may be out */
	VULTURE_CREDIT_S_GROWTH_PERMILLE, /* g of the latest train: other traffic's part, 1/1000 */
	VULTURE_CREDIT_S_FAILS,		/* trains in a row that met other traffic */
	VULTURE_CREDIT_S_YIELDS,	/* counters from here on */
	VULTURE_CREDIT_S_TRAINS,
	VULTURE_CREDIT_S_TRAINS_FAILED,
	VULTURE_CREDIT_S_PAD,
	__VULTURE_CREDIT_S_MAX,
};

#define VULTURE_CREDIT_S_MAX (__VULTURE_CREDIT_S_MAX - 1)

enum vulture_rule_attr {
	VULTURE_R_UNSPEC,
	VULTURE_R_ID,			/* u32 */
	VULTURE_R_CGROUP,		/* u64, as VULTURE_A_CGROUP */
	VULTURE_R_LOCAL_PORT,		/* u16, 1 to 65535 */
	VULTURE_R_REMOTE_PORT,		/* u16, 1 to 65535 */
	VULTURE_R_REMOTE_PREFIX,	/* binary, 4 or 16 octets */
	VULTURE_R_REMOTE_PREFIX_LEN,	/* u8, bits; default: the whole address */
	VULTURE_R_OPTIONS,		/* nest of VULTURE_O_; in replies the rule's controller,
					 * with all options of that
					 */
	VULTURE_R_STARTED,		/* u64, connections that it started */
	VULTURE_R_PAD,
	VULTURE_R_FAILED,		/* u64, connections that matched and could not be started */
	VULTURE_R_CGROUP_FD,		/* u32, in requests: file descriptor of the directory */
	VULTURE_R_UID,			/* u32, in replies: user of a rule that was added without
					 * CAP_NET_ADMIN
					 */
	VULTURE_R_DSCP,			/* u8, 0 to 63: DSCP with which the local socket sends */
	VULTURE_R_FOREGROUND,		/* flag: no rule starts what matches, except rules for
					 * cgroups below this one's
					 */
	__VULTURE_R_MAX,
};

#define VULTURE_R_MAX (__VULTURE_R_MAX - 1)

#endif /* _UAPI_VULTURE_H */
