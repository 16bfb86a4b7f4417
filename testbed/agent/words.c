// SPDX-License-Identifier: GPL-2.0
/* Parser of the words of a plan's line by a table of keys, see words.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

int words_complain(const struct place *at, const char *format, ...)
{
	va_list args;

	if (at->line)
		fprintf(stderr, "%s:%u: ", at->path, at->line);
	else
		fprintf(stderr, "%s: ", at->path);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

/* ---- values ---- */

int words_number(const struct place *at, const struct key *k,
		 const char *text, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	if (!*text || *end || errno || !isfinite(*value) ||
	    strpbrk(text, "xXpP"))
		return words_complain(at, "%s=%s: not a number", k->name, text);
	if (*value < k->min || *value > k->max)
		return words_complain(at, "%s=%s: out of range %.10g to %.10g",
				k->name, text, k->min, k->max);
	return 0;
}

static int parse_integer(const struct place *at, const struct key *k,
			 const char *text, u64 *value)
{
	double real;

	if (words_number(at, k, text, &real))
		return -1;
	if (real != floor(real))
		return words_complain(at, "%s=%s: not an integer, range %.10g to %.10g",
				k->name, text, k->min, k->max);
	/* Plain digits keep all 64 bits; a form like 6e6 is converted by double. */
	if (text[strspn(text, "0123456789")])
		*value = real;
	else
		*value = strtoull(text, NULL, 10);
	return 0;
}

static int parse_enum(const struct place *at, const struct key *k,
		      const char *text, u32 *value)
{
	char all[256] = "";

	for (u32 i = 0; k->names[i]; i++) {
		if (!strcmp(k->names[i], text)) {
			*value = i;
			return 0;
		}
		strcat(all, i ? ", " : "");
		strcat(all, k->names[i]);
	}
	return words_complain(at, "%s=%s: must be one of %s", k->name, text, all);
}

static int parse_address(const struct place *at, const struct key *k,
			 const char *text, union address *a)
{
	if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		return 0;
	}
	if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		return 0;
	}
	return words_complain(at, "%s=%s: not an IPv4 or IPv6 address", k->name,
			text);
}

static int parse_handle(const struct place *at, const struct key *k,
			const char *text, u32 *value)
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF");
	const char *colon = text + digits;
	size_t more = *colon ? strspn(colon + 1, "0123456789abcdefABCDEF") : 0;
	unsigned long major = strtoul(text, NULL, 16);
	unsigned long minor = more ? strtoul(colon + 1, NULL, 16) : 0;

	if (*colon != ':' || colon[1 + more] || digits > 4 || more > 4 ||
	    !major)
		return words_complain(at, "%s=%s: not a handle, such as 1: or 1:2 (hexadecimal)",
				k->name, text);
	*value = major << 16 | minor;
	return 0;
}

int words_name(const struct place *at, const struct key *k,
	       const char *text, char *to)
{
	if (!*text || strlen(text) >= (size_t)k->max)
		return words_complain(at, "%s=%s: must have 1 to %zu characters",
				k->name, text, (size_t)k->max - 1);
	strcpy(to, text);
	return 0;
}

int words_value(const struct place *at, const struct key *k,
		char *text, void *base)
{
	void *to = (char *)base + k->at;
	double real;
	u64 integer;

	switch (k->type) {
	case T_U32:
		if (parse_integer(at, k, text, &integer))
			return -1;
		*(u32 *)to = integer;
		return 0;
	case T_U64:
		return parse_integer(at, k, text, to);
	case T_REAL:
		return words_number(at, k, text, to);
	case T_SEC:
	case T_MSEC:
		if (words_number(at, k, text, &real))
			return -1;
		*(u64 *)to = llround(real * (k->type == T_SEC ?
					     NSEC_PER_SEC : NSEC_PER_MSEC));
		return 0;
	case T_NAME:
		return words_name(at, k, text, to);
	case T_ENUM:
		return parse_enum(at, k, text, to);
	case T_ADDR:
		return parse_address(at, k, text, to);
	case T_HANDLE:
		return parse_handle(at, k, text, to);
	case T_OWN:
		return k->parse(at, k, text, base);
	}
	return -1;
}

int words_find(const struct key *keys, const char *name)
{
	for (int i = 0; keys[i].name; i++)
		if (!strcmp(keys[i].name, name))
			return i;
	return -1;
}

void words_preset(const struct key *keys, void *base)
{
	static const struct place nowhere = { "preset", 0 };
	char text[32];

	for (const struct key *k = keys; k->name; k++) {
		if (!k->preset)
			continue;
		snprintf(text, sizeof(text), "%s", k->preset);
		words_value(&nowhere, k, text, base);
	}
}

int words_read(const struct place *at, const struct key *keys,
	       char **words, void *base, u64 *seen)
{
	*seen = 0;
	words_preset(keys, base);
	for (; *words; words++) {
		char *value = strchr(*words, '=');
		int i;

		if (!value)
			return words_complain(at, "%s: must be key=value", *words);
		*value++ = '\0';
		i = words_find(keys, *words);
		if (i < 0)
			return words_complain(at, "unknown key %s", *words);
		if (*seen >> i & 1 && keys[i].type != T_OWN)
			return words_complain(at, "%s is given twice", *words);
		*seen |= 1ull << i;
		if (words_value(at, &keys[i], value, base))
			return -1;
	}
	return 0;
}

bool words_has(const struct key *keys, u64 seen, const char *name)
{
	return seen >> words_find(keys, name) & 1;
}

int words_require(const struct place *at, const struct key *keys, u64 seen,
		  const char *what, const char *const *names)
{
	for (; *names; names++)
		if (!words_has(keys, seen, *names))
			return words_complain(at, "%s needs %s", what, *names);
	return 0;
}

int words_refuse(const struct place *at, const struct key *keys, u64 seen,
		 const char *what, const char *const *names)
{
	for (; *names; names++)
		if (words_has(keys, seen, *names))
			return words_complain(at, "%s has no use for %s", what,
					*names);
	return 0;
}

int words_split(const struct place *at, char *line, char **words)
{
	char *save, *word;
	int n = 0;

	line[strcspn(line, "#\n")] = '\0';
	for (word = strtok_r(line, " \t\r", &save); word;
	     word = strtok_r(NULL, " \t\r", &save)) {
		if (n == WORDS_MAX - 1)
			return words_complain(at, "more than %d words",
					WORDS_MAX - 1);
		words[n++] = word;
	}
	words[n] = NULL;
	return n;
}

void words_help(const char *title, const struct key *keys)
{
	printf("\n%s\n", title);
	for (const struct key *k = keys; k->name; k++) {
		printf("  %-15s %s", k->name, k->help);
		if (k->names) {
			printf(" [");
			for (u32 i = 0; k->names[i]; i++)
				printf("%s%s", i ? " " : "", k->names[i]);
			printf("]");
		} else if (k->max && k->type != T_NAME) {
			printf(" [%.10g..%.10g]", k->min, k->max);
		}
		if (k->preset)
			printf(" (%s)", k->preset);
		putchar('\n');
	}
}
