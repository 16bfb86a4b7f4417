/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parsing of words of the form key=value, by tables of keys.
 *
 * A table (struct key[], ends with a NULL name; at most 64 keys) has for each
 * key its type, range, default and the place of the value.  Messages are
 * written to standard error as "path:line: text".  Functions that can fail
 * return -1 after a message, and 0 for success unless stated otherwise.
 */
#ifndef LBE_AGENT_WORDS_H
#define LBE_AGENT_WORDS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "types.h"

#define WORDS_MAX	64	/* of a line, with the closing NULL */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

enum type {
	T_U32,		/* integer */
	T_U64,
	T_REAL,		/* double */
	T_SEC,		/* seconds, kept as u64 ns */
	T_MSEC,		/* milliseconds, kept as u64 ns */
	T_NAME,		/* string; max = size including the final zero */
	T_ENUM,		/* one of names[], kept as u32 index */
	T_ADDR,		/* IPv4 or IPv6, kept as union address */
	T_HANDLE,	/* qdisc handle "1:" or class "1:2" in hex */
	T_OWN,		/* parsed by parse() of the key; may be repeated */
};

/* Position of the parser, for messages; line 0: no line */
struct place {
	const char *path;
	u32 line;
};

struct key {
	const char *name;
	enum type type;
	size_t at;			/* offset in the directive's struct */
	double min, max;		/* in the key's own unit */
	const char *preset;		/* default; NULL = zero */
	const char *const *names;	/* T_ENUM; ends with NULL */
	const char *help;
	/* T_OWN: stores text in the directive's struct at base */
	int (*parse)(const struct place *at, const struct key *k, char *text,
		     void *base);
};

/* Prints a message, as by printf(), with path and line before it; returns -1 */
__attribute__((format(printf, 2, 3)))
int words_complain(const struct place *at, const char *format, ...);

/* Converts text to a number within the range of k */
int words_number(const struct place *at, const struct key *k,
		 const char *text, double *value);

/* Copies text to `to`, if it has 1 to k->max - 1 characters */
int words_name(const struct place *at, const struct key *k,
	       const char *text, char *to);

/* Converts text to the type of k, and stores it at k's place in base */
int words_value(const struct place *at, const struct key *k,
		char *text, void *base);

/* Index of the key of this name, or -1 */
int words_find(const struct key *keys, const char *name);

/* Stores the defaults of the table in base */
void words_preset(const struct key *keys, void *base);

/*
 * Stores the defaults, then the key=value words, in base; *seen gets a bit for
 * each key that was given
 */
int words_read(const struct place *at, const struct key *keys,
	       char **words, void *base, u64 *seen);

/* Whether the key of this name was given */
bool words_has(const struct key *keys, u64 seen, const char *name);

/* Fails unless all of these keys were given */
int words_require(const struct place *at, const struct key *keys, u64 seen,
		  const char *what, const char *const *names);

/* Fails if any of these keys was given */
int words_refuse(const struct place *at, const struct key *keys, u64 seen,
		 const char *what, const char *const *names);

/*
 * Splits a line (without its comment) into words[WORDS_MAX], the last NULL;
 * returns their number
 */
int words_split(const struct place *at, char *line, char **words);

/* Prints each key with its help, range and default */
void words_help(const char *title, const struct key *keys);

#endif
