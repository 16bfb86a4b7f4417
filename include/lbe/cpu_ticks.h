/* SPDX-License-Identifier: GPL-2.0 */
/* The time stamp counter, for tests that measure the cost of code on one x86 CPU. */
#ifndef LBE_CPU_TICKS_H
#define LBE_CPU_TICKS_H

#include <linux/types.h>

/* The counter, read only when all instructions before this are done (lfence) */
static inline u64 lbe_cpu_ticks(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc" : "=a" (low), "=d" (high));
	return (u64)high << 32 | low;
}

#endif /* LBE_CPU_TICKS_H */
