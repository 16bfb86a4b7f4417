/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words of the form key=value, read by tables of keys.
 *
 * A table (struct key[], ends with a NULL name; at most 64 keys) says for each
 * key its type, range, default and where the value goes.  Messages go to
 * standard error as "path:line: text"; every function that can fail returns
 * -1 after its message, else 0 unless said.
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
	T_NAME,		/* string; max = room with the closing zero */
	T_ENUM,		/* one of names[], kept as u32 index */
	T_ADDR,		/* IPv4 or IPv6, kept as union address */
	T_HANDLE,	/* qdisc handle "1:" or class "1:2" in hex */
	T_OWN,		/* parse() of the key; may be repeated */
};

/* Where the parser is: for messages; line 0: none */
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
	/* T_OWN: text into the directive's struct at base */
	int (*parse)(const struct place *at, const struct key *k, char *text,
		     void *base);
};

/* A message of printf's format with path and line before it; returns -1 */
__attribute__((format(printf, 2, 3)))
int words_complain(const struct place *at, const char *format, ...);

/* The number in text, if it is within the range of k */
int words_number(const struct place *at, const struct key *k,
		 const char *text, double *value);

/* text to `to`, if it has 1 to k->max - 1 characters */
int words_name(const struct place *at, const struct key *k,
	       const char *text, char *to);

/* The value in text, of the type of k, to where k says it goes in base */
int words_value(const struct place *at, const struct key *k,
		char *text, void *base);

/* Index of the key of this name, or -1 */
int words_find(const struct key *keys, const char *name);

/* The defaults of the table into base */
void words_preset(const struct key *keys, void *base);

/*
 * Defaults, then the key=value words, into base; *seen gets a bit for each key
 * that was given
 */
int words_read(const struct place *at, const struct key *keys,
	       char **words, void *base, u64 *seen);

/* Was the key of this name given? */
bool words_has(const struct key *keys, u64 seen, const char *name);

/* All of these keys must have been given */
int words_require(const struct place *at, const struct key *keys, u64 seen,
		  const char *what, const char *const *names);

/* None of these keys may have been given */
int words_refuse(const struct place *at, const struct key *keys, u64 seen,
		 const char *what, const char *const *names);

/*
 * The words of a line (comment removed) into words[WORDS_MAX], the last NULL;
 * returns their number
 */
int words_split(const struct place *at, char *line, char **words);

/* Prints each key with its help, range and default */
void words_help(const char *title, const struct key *keys);

#endif
