/* SPDX-License-Identifier: GPL-2.0 */
/* Request of a web client to a server; pure functions. */
#ifndef LBE_AGENT_REQUEST_H
#define LBE_AGENT_REQUEST_H

#include <string.h>

#include "types.h"

#define REQUEST_TEXT	"LBE-GET\n"

struct request {
	char text[8];
	u64 bytes;
} __attribute__((packed));

static inline struct request request_make(u64 bytes)
{
	struct request r = { .bytes = bytes };

	memcpy(r.text, REQUEST_TEXT, sizeof(r.text));
	return r;
}

static inline bool request_valid(const struct request *r)
{
	return !memcmp(r->text, REQUEST_TEXT, sizeof(r->text));
}

#endif
