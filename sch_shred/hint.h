/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The meaning of a hint, and its coding in the TOS byte or traffic class.
 *
 *   tos    the paper (section 5): the flow's congestion window, 1 to 255 packets,
 *          in the whole byte; 0 = no hint. The writer overwrites DSCP and ECN, and
 *          the queue reads a byte that was set for another purpose as a window.
 *   dscp   the flow's age a: bytes that the flow sent before this packet, in units
 *          of 2^SHRED_AGE_UNIT_LOG bytes. The hint is the largest power of two up to
 *          a, 1 <= 2^c <= 128, in DSCP yyy111 with yyy = 7 - c. ECN is not changed.
 *
 * Why age: the window distinguishes short flows from long ones only if TCP starts
 * with one packet. Today TCP starts with ten, and a short flow's window is larger
 * than that of one of many long flows. A short flow has always sent less.
 *
 * Why yyy111: these eight belong to DSCP Pool 2 (xxxx11, RFC 2474: experimental or
 * local use), so that no standard DSCP is read as a hint. All eight have the same
 * value in the bits that IPv4 forwarding maps to skb->priority, and pfifo_fast and
 * prio put that priority into the best-effort band: such a queue on the path keeps
 * a flow's packets in order. Why 7 - c: equipment that evaluates only the upper
 * three bits prefers larger values, and equipment that clears these bits turns
 * every hint into that of the oldest flows.
 *
 * Both the queue (reader) and the writer include this file. Pure functions.
 */
#ifndef _SHRED_HINT_H
#define _SHRED_HINT_H

#include <lbe/arith.h>

#include "uapi/shred.h"

#define SHRED_HINT_MAX		255U	/* largest hint of any coding */

/* log2 of bytes: the unit is 2 KiB, and classes end at 4, 8 ... 256 KiB. If the unit is doubled, a
 * flow's first 256 KiB, instead of 128 KiB, are served before the flows of the last band.
 */
#define SHRED_AGE_UNIT_LOG	11
#define SHRED_AGE_CLASSES	8U

/* The product of the two, 1.4 s, is the longest time that a packet waits in a queue with the
 * default limit. The writer must remember a flow for longer (SHRED_IDLE_MS in age.h).
 *
 * OLDEST_SHARE: while several bands have packets, one byte in eight is sent from the packet that
 * arrived first. With one byte in 16, old flows get a sixteenth of a link that short flows fill;
 * with one in four, short flows wait behind old ones more often.
 * LIMIT_US: a buffer of about 1.5 times 120 ms. If it is doubled, old packets wait twice as long
 * (measured: Documentation/sch_shred.md).
 */
#define SHRED_OLDEST_SHARE	8
#define SHRED_LIMIT_US		175000U

/* DSCP yyy111 in the TOS byte, above the two bits of ECN. */
#define SHRED_DSCP_MASK		0x1CU
#define SHRED_DSCP_SHIFT	5
#define SHRED_ECN_MASK		0x03U

/**
 * shred_age_class() - class of a flow's age
 * @bytes: bytes that the flow sent before this packet
 *
 * Return: c, 0 to 7; c > 0 from 2^c units on.
 */
static inline u32 shred_age_class(u64 bytes)
{
	u64 units = bytes >> SHRED_AGE_UNIT_LOG;

	if (units >= 1U << (SHRED_AGE_CLASSES - 1))
		return SHRED_AGE_CLASSES - 1;
	return units ? 31 - __builtin_clz((u32)units) : 0;
}

/**
 * shred_hint_clamp() - limit a number to what the coding "tos" can carry
 * @value: window, packets
 *
 * Return: min(max(value, 1), 255).
 */
static inline u32 shred_hint_clamp(u32 value)
{
	return clamp_t(u32, value, 1, SHRED_HINT_MAX);
}

/**
 * shred_hint_class() - statistics class of the hint in a TOS byte or traffic class
 * @mode: coding of the hint
 * @tos: the whole byte
 *
 * Return: 0 for no hint, 1 for a hint of 1, 2 for 2-3, 3 for 4-7, ... 8 for 128-255.
 */
static __always_inline u32 shred_hint_class(enum shred_hint_mode mode, u8 tos)
{
	if (mode == SHRED_HINT_DSCP)
		return (tos & SHRED_DSCP_MASK) == SHRED_DSCP_MASK ?
			       SHRED_AGE_CLASSES - (tos >> SHRED_DSCP_SHIFT) : 0;
	return mode == SHRED_HINT_TOS && tos ? 32 - __builtin_clz(tos) : 0;
}

/**
 * shred_hint_read() - the hint in a TOS byte or traffic class
 * @mode: coding of the hint
 * @tos: the whole byte
 *
 * Return: 1 to 255, or 0 = no hint.
 */
static __always_inline u32 shred_hint_read(enum shred_hint_mode mode, u8 tos)
{
	return mode == SHRED_HINT_TOS ? tos : (1U << shred_hint_class(mode, tos)) >> 1;
}

/**
 * shred_hint_write() - the TOS byte or traffic class that carries a hint
 * @mode: coding to use, not off
 * @tos: the present byte
 * @hint: 1 to 255; the coding "dscp" carries the largest power of two up to it
 *
 * Return: the new byte.
 */
static inline u8 shred_hint_write(enum shred_hint_mode mode, u8 tos, u32 hint)
{
	u32 class = 31 - __builtin_clz(shred_hint_clamp(hint));

	if (mode == SHRED_HINT_TOS)
		return (u8)shred_hint_clamp(hint);
	return (u8)((SHRED_AGE_CLASSES - 1 - class) << SHRED_DSCP_SHIFT | SHRED_DSCP_MASK |
		    (tos & SHRED_ECN_MASK));
}

/**
 * shred_hint_clear() - the TOS byte or traffic class without its hint
 * @mode: coding of the hint
 * @tos: the byte, which carries a hint
 *
 * Return: the new byte: 0, with coding "dscp" except for the ECN bits.
 */
static inline u8 shred_hint_clear(enum shred_hint_mode mode, u8 tos)
{
	return mode == SHRED_HINT_DSCP ? tos & SHRED_ECN_MASK : 0;
}

#endif
