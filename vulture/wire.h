/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads the options of a TCP header: the timestamps, and whether the segment is signed.
 * Pure functions, without access to a packet or a clock.
 */
#ifndef VULTURE_WIRE_H
#define VULTURE_WIRE_H

#include <net/tcp.h>

/* Option kind of TCP-AO (RFC 5925); the kernel defines a name for it from 6.7 on. */
#define WIRE_OPT_AO	29

/**
 * wire_timestamps() - find the timestamps among the options of a header
 * @opt: first octet after the fixed header
 * @end: end of the options
 * @tsval: where to put the sender's timestamp, in its ticks
 * @tsecr: where to put the timestamp that it echoes, in our ticks
 *
 * A signature (TCP-MD5, RFC 2385; TCP-AO) covers the window, so the window of a signed segment must
 * not be rewritten. Such a segment is treated like one without timestamps.
 *
 * Return: false without timestamps, for a signed segment, and for options that end before the
 * timestamps do.
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
