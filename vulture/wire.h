/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads a TCP header's options: the timestamps, and whether the segment is signed.
 * Pure functions, without access to a packet or a clock.
 */
#ifndef VULTURE_WIRE_H
#define VULTURE_WIRE_H

#include <net/tcp.h>

/* Option kind of TCP-AO (RFC 5925); the kernel has a name for it from 6.7 on. */
#define WIRE_OPT_AO	29

/**
 * wire_timestamps() - the timestamps among a header's options
 * @opt: first octet after the fixed header
 * @end: after the last option
 * @tsval: where to put the sender's timestamp, in its ticks
 * @tsecr: where to put the one it echoes, in ours
 *
 * A signature (TCP-MD5, RFC 2385; TCP-AO) covers the window, so that a signed
 * segment is none to rewrite: it counts as one without timestamps.
 *
 * Return: false without timestamps, for a signed segment, and for options cut
 * short before them.
 */
static inline bool wire_timestamps(const u8 *opt, const u8 *end, u32 *tsval, u32 *tsecr)
{
	bool found = false;

	while (opt < end && *opt != TCPOPT_EOL) {
		u8 length;

		if (*opt == TCPOPT_NOP) {
			opt++;
			continue;
		}
		if (end - opt < 2)
			break;
		length = opt[1];
		if (length < 2 || length > end - opt)
			break;
		if (*opt == TCPOPT_TIMESTAMP && length == TCPOLEN_TIMESTAMP) {
			*tsval = get_unaligned_be32(opt + 2);
			*tsecr = get_unaligned_be32(opt + 6);
			found = true;
		} else if (*opt == TCPOPT_MD5SIG || *opt == WIRE_OPT_AO) {
			return false;
		}
		opt += length;
	}
	return found;
}

#endif /* VULTURE_WIRE_H */
