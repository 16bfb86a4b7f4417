/*
 * SPDX-License-Identifier: GPL-2.0
 *
 * The host's entropy, made a function of the environment variable LBE_SEED.
 *
 * Every random number of the guest (initial sequence numbers, timestamp
 * offsets, ports, hash seeds, netem) starts from this call, so one seed gives
 * one run. Without LBE_SEED the host's own entropy is passed on.
 *
 * The stream is SplitMix64: Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014. Good enough to seed; the guest
 * hashes it into ChaCha20 before anybody sees it.
 *
 * kernel.py puts this in the place of the function of the same name in
 * arch/um/os-Linux/util.c.
 */
ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	static enum { UNKNOWN, SEEDED, UNSEEDED } mode;
	static unsigned long long state;
	unsigned char *out = buf;
	size_t done;

	if (mode == UNKNOWN) {
		const char *seed = getenv("LBE_SEED");

		mode = seed ? SEEDED : UNSEEDED;
		if (seed)
			state = strtoull(seed, NULL, 0);
	}
	if (mode == UNSEEDED)
		return getrandom(buf, len, flags);

	for (done = 0; done < len; ) {
		unsigned long long word = state += 0x9e3779b97f4a7c15ULL;
		int byte;

		word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
		word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
		word ^= word >> 31;
		for (byte = 0; byte < 8 && done < len; byte++, done++)
			out[done] = word >> (8 * byte);
	}
	return len;
}
