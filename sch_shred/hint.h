/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a window, in packets, travels in the TOS byte or traffic class.
 *
 *   tos    the whole byte: 0 = no hint, 1 to 255 packets (the paper, section 5).
 *          It overwrites DSCP and ECN.
 *   dscp   the upper six bits: 0 = no hint, code c = 1 to 63. Codes 1 to 43 are
 *          the window itself; from there each step is about 9.35 % (that is
 *          255^(1/62)), so that 63 means 255. A window reads back exactly up to
 *          43 packets and within 4.8 % above. ECN stays TCP's.
 *
 * The queue reads, the writer writes; both include this file.
 */
#ifndef _SHRED_HINT_H
#define _SHRED_HINT_H

#include <lbe/arith.h>

#include "uapi/shred.h"

#define SHRED_HINT_PKTS_MAX	255U
#define SHRED_DSCP_EXACT	43U	/* codes up to this one are the window itself */
#define SHRED_DSCP_CODES	64U

/* code -> packets: max(code, round(255^((code - 1) / 62))); tests/test_hint.py derives it. */
static const u8 shred_dscp_pkts[SHRED_DSCP_CODES] = {
	  0,   1,   2,   3,   4,   5,   6,   7,   8,   9,  10,  11,  12,  13,  14,  15,
	 16,  17,  18,  19,  20,  21,  22,  23,  24,  25,  26,  27,  28,  29,  30,  31,
	 32,  33,  34,  35,  36,  37,  38,  39,  40,  41,  42,  43,  47,  51,  56,  61,
	 67,  73,  80,  87,  95, 104, 114, 125, 136, 149, 163, 178, 195, 213, 233, 255,
};

/**
 * shred_hint_clamp() - the window that a hint can carry
 * @cwnd_pkts: congestion window, packets
 *
 * Return: min(max(cwnd, 1), 255), packets.
 */
static inline u32 shred_hint_clamp(u32 cwnd_pkts)
{
	if (cwnd_pkts < 1)
		return 1;
	return cwnd_pkts < SHRED_HINT_PKTS_MAX ? cwnd_pkts : SHRED_HINT_PKTS_MAX;
}

/**
 * shred_dscp_encode() - nearest six-bit code of a window
 * @cwnd_pkts: window, packets; taken as 1 to 255
 *
 * Return: code, 1 to 63.
 */
static inline u8 shred_dscp_encode(u32 cwnd_pkts)
{
	u32 w = shred_hint_clamp(cwnd_pkts);
	u32 c = SHRED_DSCP_EXACT;

	if (w <= SHRED_DSCP_EXACT)
		return (u8)w;
	while (shred_dscp_pkts[c] < w)
		c++;
	if (w - shred_dscp_pkts[c - 1] < shred_dscp_pkts[c] - w)
		c--;
	return (u8)c;
}

/**
 * shred_hint_read() - the hint in a TOS byte or traffic class
 * @mode: how it is coded
 * @tos: the whole byte
 *
 * Return: window in packets, 1 to 255, or 0 = no hint.
 */
static inline u32 shred_hint_read(enum shred_hint_mode mode, u8 tos)
{
	switch (mode) {
	case SHRED_HINT_TOS:
		return tos;
	case SHRED_HINT_DSCP:
		return shred_dscp_pkts[tos >> 2];
	default:
		return 0;
	}
}

/**
 * shred_hint_write() - the TOS byte or traffic class that carries a hint
 * @mode: how to code it
 * @tos: the byte as it is now
 * @cwnd_pkts: window, packets; taken as 1 to 255
 *
 * Return: the new byte; @tos itself when @mode is off.
 */
static inline u8 shred_hint_write(enum shred_hint_mode mode, u8 tos,
				  u32 cwnd_pkts)
{
	switch (mode) {
	case SHRED_HINT_TOS:
		return (u8)shred_hint_clamp(cwnd_pkts);
	case SHRED_HINT_DSCP:
		return (u8)(shred_dscp_encode(cwnd_pkts) << 2 | (tos & 3));
	default:
		return tos;
	}
}

/**
 * shred_hint_class() - statistics class of a hint
 * @hint_pkts: 1 to 255
 *
 * Return: 0 for 1, 1 for 2-3, 2 for 4-7, ... 7 for 128-255.
 */
static inline u32 shred_hint_class(u32 hint_pkts)
{
	return 31 - __builtin_clz(hint_pkts);
}

#endif
