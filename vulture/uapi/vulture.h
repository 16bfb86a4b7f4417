/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "vulture": background downloads by receive window.
 *
 * This is the contract in prose. Documentation/vulture.yaml has the types, ranges, units and
 * defaults of all attributes in the kernel's own format; the numbers below are made from it. (The
 * kernel's generator writes no comments for attributes, so this file is not generated itself.)
 *
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
 * Errors. The text in the extended ACK gives the value, and which values are allowed. For a value
 * out of its range, and an attribute that the command does not take, the text is the kernel's own;
 * then the extended ACK has the attribute's position and the range (NLMSGERR_ATTR_OFFS,
 * NLMSGERR_ATTR_POLICY):
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

#include "vulture_gen.h"

#endif /* _UAPI_VULTURE_H */
