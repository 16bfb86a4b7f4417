// SPDX-License-Identifier: GPL-2.0
/* Reads packet traces; the formats are in plan.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

#define MAGIC		"LBETRACE"
#define MAGIC_LEN	8
#define UDP_PAYLOAD_MAX	65507
#define TRACE_MAX_S	1e6

struct reader {
	const struct flow_plan *plan;
	struct trace *trace;
	size_t size;		/* allocated entries of trace->packets */
	u64 number;		/* line or record, from 1 */
	char *why;
	size_t why_len;
};

static int complain(struct reader *r, const char *text)
{
	snprintf(r->why, r->why_len, "%s:%" PRIu64 ": %s", r->plan->file,
		 r->number, text);
	return -1;
}

static int add(struct reader *r, double at_ns, u64 bytes)
{
	struct trace *t = r->trace;
	u64 at;

	if (bytes > UDP_PAYLOAD_MAX)
		return complain(r, "size out of range 0 to 65507 bytes");
	at = at_ns * r->plan->time_scale;
	if (t->count && at < t->packets[t->count - 1].at_ns)
		return complain(r, "time goes back");
	if (t->count == r->size) {
		r->size = r->size ? 2 * r->size : 4096;
		t->packets = realloc(t->packets,
				     r->size * sizeof(t->packets[0]));
		if (!t->packets)
			return complain(r, "out of memory");
	}
	t->packets[t->count].at_ns = at;
	t->packets[t->count++].bytes = bytes > r->plan->overhead_bytes ?
				       bytes - r->plan->overhead_bytes : 0;
	return 0;
}

static int read_text(struct reader *r, FILE *file)
{
	char *line = NULL, tail;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&line, &size, file) >= 0) {
		double seconds, bytes;
		int n;

		r->number++;
		line[strcspn(line, "#\n")] = '\0';
		if (!line[strspn(line, " \t\r")])
			continue;
		n = sscanf(line, "%lf %lf %c", &seconds, &bytes, &tail);
		if (n != 2)
			err = complain(r, "must be: seconds bytes");
		else if (!(seconds >= 0 && seconds <= TRACE_MAX_S))
			err = complain(r, "time out of range 0 to 1e6 s");
		else if (!(bytes >= 0 && bytes <= UDP_PAYLOAD_MAX))
			err = complain(r, "size out of range 0 to 65507 bytes");
		else
			err = add(r, seconds * NSEC_PER_SEC, bytes);
	}
	free(line);
	return err;
}

static int read_binary(struct reader *r, FILE *file)
{
	struct { u64 at_ns; u32 bytes; } __attribute__((packed)) rec;
	size_t n;
	int err;

	while ((n = fread(&rec, 1, sizeof(rec), file)) == sizeof(rec)) {
		r->number++;
		if (rec.at_ns > TRACE_MAX_S * NSEC_PER_SEC)
			return complain(r, "time out of range 0 to 1e15 ns");
		err = add(r, rec.at_ns, rec.bytes);
		if (err)
			return err;
	}
	return n ? complain(r, "the last record is cut short") : 0;
}

int trace_read(struct trace *t, const struct flow_plan *p, char *why,
	       size_t why_len)
{
	struct reader r = { .plan = p, .trace = t, .why = why,
			    .why_len = why_len };
	FILE *file = fopen(p->file, "re");
	char magic[MAGIC_LEN];
	int err;

	if (!file) {
		snprintf(why, why_len, "%s: %s", p->file, strerror(errno));
		return -1;
	}
	if (fread(magic, 1, MAGIC_LEN, file) == MAGIC_LEN &&
	    !memcmp(magic, MAGIC, MAGIC_LEN)) {
		err = read_binary(&r, file);
	} else {
		rewind(file);
		err = read_text(&r, file);
	}
	if (!err && !t->count)
		err = complain(&r, "no packet in it");
	fclose(file);
	return err;
}
