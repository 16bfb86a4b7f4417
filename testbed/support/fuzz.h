/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frame of the programs that give a law the numbers of a hostile peer (law_fuzz.c in the modules'
 * test folders). Undefined behaviour (a division by zero, a signed overflow, a wrong shift) stops
 * such a program, and so does a result that the module could not use. hostc.fuzz() compiles it and
 * reads the counts that it prints.
 *
 *	law_fuzz FIRST COUNT	peers FIRST to FIRST + COUNT - 1, a random seed each
 *
 * The program supplies peer(), which calls step() for each event and must() for each property.
 */
#ifndef LBE_FUZZ_H
#define LBE_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include <lbe/arith.h>

#define FUZZ_COUNTS	16
#define FUZZ_US		(1ULL << 36)	/* longest time between two events: 19 hours */

static u64 fuzz_state, fuzz_peer;
static u32 fuzz_step;
static u64 fuzz_count[FUZZ_COUNTS];	/* events in each state of the law */
static unsigned int fuzz_counts;

/* What one peer does */
static void peer(void);

/* A random number below this; xorshift64* */
static u64 draw(u64 below)
{
	fuzz_state ^= fuzz_state >> 12;
	fuzz_state ^= fuzz_state << 25;
	fuzz_state ^= fuzz_state >> 27;
	return (fuzz_state * 2685821657736338717ULL >> 11) % below;
}

static inline bool one_in(u64 n)
{
	return !draw(n);
}

/* Up to this number, as likely to have few bits as many */
static inline u64 draw_log(u64 most)
{
	return most ? draw(most + 1) >> draw(64 - __builtin_clzll(most)) : 0;
}

/* Any number, with those near a wrap or a change of sign more likely than others */
static inline u32 draw_u32(void)
{
	static const u32 edges[] = { 0, 1U << 31, S32_MAX };

	u32 edge = edges[draw(ARRAY_SIZE(edges))], off = (u32)draw_log(1 << 12);

	if (one_in(4))
		return draw(2) ? edge + off : edge - off;
	return one_in(4) ? (u32)draw(1ULL << 32) : (u32)draw_log(U32_MAX);
}

/* A time until the next event, us */
static inline u64 draw_us(u64 usual_us)
{
	return draw_log(one_in(8) ? FUZZ_US : max(usual_us, 1ULL));
}

/* An event in one of the law's states */
static inline void step(unsigned int state)
{
	fuzz_step++;
	fuzz_count[state]++;
	fuzz_counts = max(fuzz_counts, state + 1);
}

static inline void must(bool holds, const char *what, u64 value)
{
	if (holds)
		return;
	fprintf(stderr, "peer %llu, event %u: %s is %llu\n", (unsigned long long)fuzz_peer,
		fuzz_step, what, (unsigned long long)value);
	exit(1);
}

int main(int argc, char **argv)
{
	u64 first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	u64 count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	unsigned int i;

	for (fuzz_peer = first; fuzz_peer < first + count; fuzz_peer++) {
		fuzz_state = fuzz_peer * 0x9e3779b97f4a7c15ULL | 1;
		for (i = 0; i < 8; i++)
			draw(2);
		fuzz_step = 0;
		peer();
	}
	for (i = 0; i < fuzz_counts; i++)
		printf("%llu ", (unsigned long long)fuzz_count[i]);
	return 0;
}

#endif /* LBE_FUZZ_H */
