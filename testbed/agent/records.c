// SPDX-License-Identifier: GPL-2.0
/* Buffered record files, see records.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "records.h"

#define BUFFER_BYTES	(256 * 1024)	/* large, for few calls of write() */
#define LATE_NS		NSEC_PER_MSEC

static const char *const suffix[REC_KINDS] = {
	[REC_SEND] = "send", [REC_RECV] = "recv", [REC_QUEUE] = "queue",
	[REC_WEB] = "web",
};

/* setvbuf() of glibc uses the given size only with a buffer of the caller */
static char buffers[REC_KINDS][BUFFER_BYTES];

static struct {
	FILE *file[REC_KINDS];
	FILE *events;
	u64 zero_ns;		/* CLOCK_MONOTONIC at experiment time 0 */
	bool failed;
} records;

static FILE *open_file(const char *dir, const char *node, const char *name,
		       char *buffer)
{
	char path[PATH_MAX + 128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", dir, node, name);
	file = fopen(path, "we");
	if (!file)
		fprintf(stderr, "lbe-agent: %s: %s\n", path, strerror(errno));
	else if (buffer)
		setvbuf(file, buffer, _IOFBF, BUFFER_BYTES);
	return file;
}

int records_open(const char *dir, const char *node, u64 zero_ns)
{
	records.zero_ns = zero_ns;
	for (int i = 0; i < REC_KINDS; i++) {
		records.file[i] = open_file(dir, node, suffix[i], buffers[i]);
		if (!records.file[i])
			return -1;
	}
	/* Default buffer of 4 kB: of a run that hangs, only the last 4 kB are lost. */
	records.events = open_file(dir, node, "events", NULL);
	return records.events ? 0 : -1;
}

void record(enum rec_kind kind, const void *rec, size_t size)
{
	if (fwrite(rec, size, 1, records.file[kind]) != 1)
		records.failed = true;
}

u64 record_time(u64 nominal_ns, u64 now_ns)
{
	if (now_ns - nominal_ns > LATE_NS)
		return now_ns - records.zero_ns;
	return nominal_ns - records.zero_ns;
}

u64 record_since_zero(u64 at_ns)
{
	return at_ns - records.zero_ns;
}

static void event_args(u32 flow, const char *name, const char *format,
		       va_list args)
{
	fprintf(records.events, "%" PRId64 " %u %s ",
		(s64)(loop_now() - records.zero_ns), flow, name);
	vfprintf(records.events, format, args);
	if (fputc('\n', records.events) == EOF)
		records.failed = true;
}

void event(u32 flow, const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	event_args(flow, name, format, args);
	va_end(args);
}

void event_error(u32 flow, const char *format, ...)
{
	va_list args;

	records.failed = true;
	va_start(args, format);
	event_args(flow, "error", format, args);
	va_end(args);

	fprintf(stderr, "lbe-agent: flow %u: ", flow);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

bool records_failed(void)
{
	return records.failed;
}

int records_close(void)
{
	int err = 0;

	for (int i = 0; i < REC_KINDS; i++)
		if (records.file[i] && fclose(records.file[i]))
			err = -errno;
	if (records.events && fclose(records.events))
		err = -errno;
	if (err)
		fprintf(stderr, "lbe-agent: writing records: %s\n",
			strerror(-err));
	return err;
}
