/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "vulture": background downloads by receive window.
 *
 * The same contract in the kernel's own format: Documentation/vulture.yaml.
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
 *	VULTURE_A_FD	u32	file descriptor of the caller; no privilege
 *	VULTURE_A_ADDR	nest	both ends			(*)
 *	VULTURE_A_PID	u32	all sockets of that process	(*)
 *	VULTURE_A_CGROUP u64	all sockets of that v2 cgroup and those below;
 *				its id is its directory's inode	(*)
 *	and
 *	VULTURE_A_OPTIONS nest	what differs from the defaults
 *	(*) needs CAP_NET_ADMIN in the namespace.
 *	Reply: VULTURE_A_COUNT (connections started); with FD or ADDR also
 *	VULTURE_A_ID. With PID and CGROUP, sockets that cannot be started are
 *	passed over; none at all is ENOENT.
 *	A connection that is only observed (VULTURE_PAPER_O_OBSERVE) may be started:
 *	it then goes to background at once, at the window estimated so far.
 *
 * VULTURE_CMD_STOP	give connections their window back
 *	one of FD, ADDR, PID, CGROUP as above, or VULTURE_A_ID u64 (*); a window
 *	update goes out at once. Reply: VULTURE_A_COUNT. None at all is ENOENT.
 *
 * VULTURE_CMD_GET	one connection: FD, ADDR or ID; or a dump of all
 *	Reply: VULTURE_A_FLOW. A dump is one message per connection; one that
 *	starts or ends while it runs may or may not be in it.
 *
 * VULTURE_CMD_SET (*)	change the namespace's defaults
 *	VULTURE_A_OPTIONS nest	options for connections started from now on
 *	VULTURE_A_MAX_FLOWS u32	0 to 1000000; 0 lets none start
 *
 * VULTURE_CMD_GET_DEFAULTS
 *	Reply: VULTURE_A_OPTIONS (all), VULTURE_A_MAX_FLOWS, VULTURE_A_COUNT
 *	(connections now), VULTURE_A_FLOW_BYTES, VULTURE_A_VERSION.
 *
 * VULTURE_CMD_RULE_ADD		every connection that matches starts when it is
 *				established, until the rule is deleted
 *	VULTURE_A_RULE nest	at least one of CGROUP, LOCAL_PORT, REMOTE_PORT,
 *				REMOTE_PREFIX, DSCP; all that are given must match.
 *				DSCP is the socket's own (IP_TOS, IPV6_TCLASS) at that
 *				moment, not that of packets that arrive.
 *				OPTIONS as for START. A rule acts in this network
 *				namespace alone, and goes when its cgroup does.
 *				Needs (*), or CGROUP_FD instead of CGROUP: a file
 *				descriptor of the cgroup's directory, to which the
 *				caller may write. A rule of the latter kind belongs to
 *				its user; for 16 users a namespace, 8 rules each, and
 *				512 connections at a time that they started.
 *	Reply: VULTURE_A_RULE with its ID. The rule added first wins.
 * VULTURE_CMD_RULE_DEL		VULTURE_A_RULE with its ID; needs (*) if it is not the
 *				caller's own. Connections that it started stay under
 *				control.
 * VULTURE_CMD_RULE_GET		dump, one rule per message
 *
 * Events, to multicast group "events" of the connection's namespace:
 * VULTURE_CMD_EVENT_START	VULTURE_A_FLOW
 * VULTURE_CMD_EVENT_END	VULTURE_A_FLOW, VULTURE_A_REASON
 *
 * Errors, each with a text in the extended ACK that names the value and what
 * would be right:
 *	EBADF		no such file descriptor
 *	ENOTSOCK	the file descriptor is no socket
 *	EPROTONOSUPPORT	not TCP
 *	ENOTCONN	not connected, or receiving has ended
 *	EOPNOTSUPP	no timestamps, or signed
 *	EALREADY	under control already
 *	ENOSPC		the table or the list of rules is full
 *	ENOENT		no such connection, cgroup or rule
 *	ENOTDIR, EACCES	a cgroup-fd is no v2 cgroup's directory, or one may not write there
 *	ESRCH		no such process
 *	ERANGE, EINVAL	a value out of its range, or options that clash
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
	VULTURE_A_ID,		/* u64, of a connection under control */
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

/* Which law a connection follows. */
enum vulture_controller {
	VULTURE_CONTROLLER_PAPER,	/* Li and Welzl's, Documentation/vulture.md */
	VULTURE_CONTROLLER_CREDIT,	/* the suite's own */
	VULTURE_CONTROLLER_RLEDBAT,	/* RFC 9840 with the law of LEDBAT++ */
	__VULTURE_CONTROLLER_MAX,
};

/* A controller, and the options of its own. In a start or a rule: the controller
 * that is to run, and options of that one alone; what is not given is the
 * namespace's default. As defaults: which one runs if none is named, and the
 * options of each.
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
 * paper's; what it leaves open is what Documentation/vulture.md says.
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
	VULTURE_PAPER_O_ALPHA_PERMILLE,	/* deciding share of a class; 875; 500 to 999 */
	VULTURE_PAPER_O_INCREASE_SEGS,	/* step of "increase", segments; 1; 1 to 64 */
	VULTURE_PAPER_O_POSITIVE_TEST,	/* use sign and sum of the variations; 1; 0 or 1 */
	VULTURE_PAPER_O_GOALS,		/* policies end at twice, or half, the window; 1; 0 or 1 */
	VULTURE_PAPER_O_SETTLE,		/* "double" is judged when it is done; 1; 0 or 1 */
	VULTURE_PAPER_O_RETRACT,	/* the right edge may move to the left; 1; 0 or 1 */
	VULTURE_PAPER_O_OBSERVE,	/* only estimate, leave the window; 0; 0 or 1 */
	__VULTURE_PAPER_O_MAX,
};

#define VULTURE_PAPER_O_MAX (__VULTURE_PAPER_O_MAX - 1)

/* Options of the controller credit, all u32: default; range. */
enum vulture_credit_option {
	VULTURE_CREDIT_O_UNSPEC,
	VULTURE_CREDIT_O_MIN_KBIT, /* what each connection gets at least, kbit/s, once
				    * all of its path have been at the floor for
				    * escape-s; 2; 0 (nothing) to 1000000
				    */
	VULTURE_CREDIT_O_ESCAPE_S, /* seconds; 20; 0 to 86400 */
	VULTURE_CREDIT_O_WEIGHT, /* share of what its path's connections have together, as
				  * against theirs; 1000; 1 to 1000000
				  */
	__VULTURE_CREDIT_O_MAX,
};

#define VULTURE_CREDIT_O_MAX (__VULTURE_CREDIT_O_MAX - 1)

enum vulture_pairing {
	VULTURE_PAIRING_EACH,		/* every packet enters and pairs once */
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
	VULTURE_PHASE_COLLECT,	/* gathers the variations of a round trip */
};

enum vulture_reason {
	VULTURE_REASON_STOPPED,	/* by request */
	VULTURE_REASON_CLOSED,	/* the connection ended */
	VULTURE_REASON_REMOVED,	/* module or namespace went away */
};

enum vulture_flow_attr {
	VULTURE_F_UNSPEC,
	VULTURE_F_ID,			/* u64 */
	VULTURE_F_ADDR,			/* nest of VULTURE_ADDR_* */
	VULTURE_F_RULE,			/* u32, rule that started it; 0 = none */
	VULTURE_F_OPTIONS,		/* nest of VULTURE_O_: the controller that runs and
					 * all its options
					 */
	VULTURE_F_WINDOW_BYTES,		/* u32, window that the controller wants */
	VULTURE_F_ADVERTISED_BYTES,	/* u32, window of the latest segment out */
	VULTURE_F_OWN_BYTES,		/* u32, what TCP itself wanted there */
	VULTURE_F_RTT_US,		/* u32, latest round trip; 0 = none yet */
	VULTURE_F_MIN_RTT_US,		/* u32, least one; 0 = none yet */
	VULTURE_F_QUEUE_US,		/* u32, what stands in the path's queue */
	VULTURE_F_MSS_BYTES,		/* u32, full segment of the peer */
	VULTURE_F_AGE_US,		/* u64, since it was started */
	VULTURE_F_SEGMENTS,		/* u64, data segments in */
	VULTURE_F_BYTES,		/* u64, their payload */
	VULTURE_F_ACKS,			/* u64, segments out */
	VULTURE_F_REWRITTEN,		/* u64, of them with a smaller window */
	VULTURE_F_UPDATES,		/* u64, window updates of our own */
	/* State and counters of the controller that runs, one of these. */
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
	VULTURE_RLEDBAT_O_TARGET_US,	/* queue that it aims at; 60000; 1000 to 100000 */
	VULTURE_RLEDBAT_O_SLOWDOWN,	/* let the queue drain now and then; 1; 0 or 1 */
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
	VULTURE_RLEDBAT_STATE_RAMP,	/* back to the window before */
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
	VULTURE_PAPER_S_LAST_POSITIVE,	/* of them above 0 */
	VULTURE_PAPER_S_LAST_SUM_US,	/* s64, their sum */
	VULTURE_PAPER_S_PIV_NEGATIVE,	/* counters from here on */
	VULTURE_PAPER_S_PIV_ZERO,
	VULTURE_PAPER_S_PIV_POSITIVE,
	VULTURE_PAPER_S_PIV_LOW,	/* by the mode of their round */
	VULTURE_PAPER_S_PIV_MIDDLE,
	VULTURE_PAPER_S_PIV_HIGH,
	VULTURE_PAPER_S_ROUNDS,		/* rounds analysed */
	VULTURE_PAPER_S_FIXES,		/* rounds by their policy */
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
	VULTURE_CREDIT_PHASE_CRUISE,	/* a queue of about two packets */
	VULTURE_CREDIT_PHASE_FLOOR,	/* a packet now and then */
	VULTURE_CREDIT_PHASE_PROBE,	/* a train is out */
};

/* Statistics of the controller credit, all u64, of the connection's path. */
enum vulture_credit_stat {
	VULTURE_CREDIT_S_UNSPEC,
	VULTURE_CREDIT_S_PHASE,		/* enum vulture_credit_phase */
	VULTURE_CREDIT_S_FLOWS,		/* connections that share the credit */
	VULTURE_CREDIT_S_CAPACITY_BPS,	/* bit/s */
	VULTURE_CREDIT_S_RATE_BPS,	/* arrivals of the latest round trip, bit/s */
	VULTURE_CREDIT_S_CREDIT_BYTES,	/* credit that may be out */
	VULTURE_CREDIT_S_GROWTH_PERMILLE, /* of the latest train; what others took, 1/1000 */
	VULTURE_CREDIT_S_FAILS,		/* trains in a row that met others */
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
	VULTURE_R_REMOTE_PREFIX_LEN,	/* u8, bits; default all of them */
	VULTURE_R_OPTIONS,		/* nest of VULTURE_O_; in replies the controller that it
					 * starts, and all its options
					 */
	VULTURE_R_STARTED,		/* u64, connections that it started */
	VULTURE_R_PAD,
	VULTURE_R_FAILED,		/* u64, connections that matched and could not be started */
	VULTURE_R_CGROUP_FD,		/* u32, in requests: of the directory, open */
	VULTURE_R_UID,			/* u32, in replies: its user; absent: CAP_NET_ADMIN */
	VULTURE_R_DSCP,			/* u8, 0 to 63: what this machine's socket sends with */
	VULTURE_R_FOREGROUND,		/* flag: no rule starts what matches, but for rules of
					 * cgroups below this one's
					 */
	__VULTURE_R_MAX,
};

#define VULTURE_R_MAX (__VULTURE_R_MAX - 1)

#endif /* _UAPI_VULTURE_H */
