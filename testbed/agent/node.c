// SPDX-License-Identifier: GPL-2.0
/*
 * Settings and counters of a node, see node.h.  In a user-mode kernel, starting
 * a program takes as long as a second of traffic, so the agent replaces several
 * programs that each node would need.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node.h"

#define LINE_BYTES	4096	/* a line of /proc/net/netstat has about 3000 */

static int complain(const char *what, const char *path)
{
	fprintf(stderr, "lbe-agent: %s %s: %s\n", what, path, strerror(errno));
	return 1;
}

int node_enter(const char *name)
{
	char path[PATH_MAX];
	int fd, err;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return complain("netns", path);
	err = setns(fd, CLONE_NEWNET) ? complain("setns", path) : 0;
	close(fd);
	return err;
}

/* ---- sysctls ---- */

/* Splits "NAME = VALUE" or "NAME=VALUE\n"; false for an empty line. */
static bool split(char *line, char **name, char **value)
{
	char *equals = strchr(line, '=');
	char *end;

	*name = line + strspn(line, " \t\n");
	if (!**name)
		return false;
	*value = equals ? equals + 1 + strspn(equals + 1, " \t") : "";
	if (equals)
		*equals = '\0';
	(*name)[strcspn(*name, " \t\n")] = '\0';
	end = *value + strcspn(*value, "\n");
	if (*end)
		*end = '\0';
	return true;
}

static void sysctl_path(char *path, size_t size, const char *name)
{
	size_t at = snprintf(path, size, "/proc/sys/");

	snprintf(path + at, size - at, "%s", name);
	for (char *c = path + at; *c; c++)
		if (*c == '.')
			*c = '/';
}

static int set_one(const char *name, const char *value)
{
	char path[PATH_MAX];
	size_t len = strlen(value);
	int fd, err = 0;

	sysctl_path(path, sizeof(path), name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return complain("sysctl", name);
	if (write(fd, value, len) != (ssize_t)len) {
		fprintf(stderr, "lbe-agent: sysctl %s=%s: %s\n", name, value,
			strerror(errno));
		err = 1;
	}
	close(fd);
	return err;
}

static int read_one(const char *name, FILE *to)
{
	char path[PATH_MAX], value[LINE_BYTES];
	ssize_t len;
	int fd;

	sysctl_path(path, sizeof(path), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return complain("sysctl", name);
	len = read(fd, value, sizeof(value) - 1);
	close(fd);
	if (len < 0)
		return complain("sysctl", name);
	value[len] = '\0';
	value[strcspn(value, "\n")] = '\0';
	fprintf(to, "%s = %s\n", name, value);
	return 0;
}

int node_set_sysctls(const char *file)
{
	char line[LINE_BYTES], *name, *value;
	FILE *from = fopen(file, "re");
	int err = 0;

	if (!from)
		return complain("sysctl", file);
	while (!err && fgets(line, sizeof(line), from))
		if (split(line, &name, &value))
			err = set_one(name, value);
	fclose(from);
	return err;
}

/* ---- reading back ---- */

static FILE *create(const char *out, const char *suffix)
{
	char path[PATH_MAX];
	FILE *to;

	snprintf(path, sizeof(path), "%s.%s", out, suffix);
	to = fopen(path, "we");
	if (!to)
		complain("facts", path);
	return to;
}

static int finish(FILE *to, const char *out, int err)
{
	bool failed = ferror(to);

	if ((fclose(to) || failed) && !err)
		err = complain("facts", out);
	return err;
}

static int read_sysctls(const char *file, const char *out)
{
	char line[LINE_BYTES], *name, *value;
	FILE *to, *from = fopen(file, "re");
	int err = 0;

	if (!from)
		return complain("facts", file);
	to = create(out, "sysctl");
	while (to && !err && fgets(line, sizeof(line), from))
		if (split(line, &name, &value))
			err = read_one(name, to);
	fclose(from);
	return to ? finish(to, out, err) : 1;
}

static int copy(const char *path, FILE *to)
{
	char line[LINE_BYTES];
	FILE *from = fopen(path, "re");

	if (!from)
		return complain("facts", path);
	while (fgets(line, sizeof(line), from))
		fputs(line, to);
	fclose(from);
	return 0;
}

static int read_counters(const char *out)
{
	FILE *to = create(out, "counters");

	if (!to)
		return 1;
	return finish(to, out, copy("/proc/net/snmp", to) |
			       copy("/proc/net/netstat", to));
}

int node_read_back(const char *file, const char *out)
{
	int err = read_sysctls(file, out);

	return err ? err : read_counters(out);
}
