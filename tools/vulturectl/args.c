// SPDX-License-Identifier: GPL-2.0
/* Words of the command line as values; and what is said where they are wrong. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ctl.h"
#include "print.h"

void wrong(const char *format, ...)
{
	va_list args;

	fputs("vulturectl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	usage_of_command(stderr);
	exit(2);
}

void wrong_option(void)
{
	usage_of_command(stderr);
	exit(2);
}

void refused(const char *format, ...)
{
	va_list args;

	fputs("vulturectl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *with_room(void *at, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return at;
	*room = *room ? 2 * *room : 64;
	at = realloc(at, *room * size);
	if (!at)
		refused("out of memory");
	return at;
}

void say(const char *format, ...)
{
	va_list args;

	fputs("vulturectl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* Reading arguments */

static int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno || *end || end == text || *text < '0' || *text > '9' || *value < min ||
	       *value > max ? -1 : 0;
}

static int parse_number(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t wide;

	if (parse_u64(text, min, max, &wide))
		return -1;
	*value = (uint32_t)wide;
	return 0;
}

uint64_t read_number(const char *text, const char *what, uint64_t min, uint64_t max)
{
	uint64_t value;

	if (parse_u64(text, min, max, &value))
		wrong("%s '%s' is not a number within %" PRIu64 " to %" PRIu64, what, text, min,
		      max);
	return value;
}

const char *set_option(struct vulture_options *options, const char *name, const char *text)
{
	static char why[160];
	uint32_t min, max, value;
	int controller;

	if (!strcmp(name, "controller")) {
		controller = vulture_controller_number(text);
		if (controller >= 0) {
			vulture_option(options, name, (uint32_t)controller);
			return NULL;
		}
	}
	if (lv_option_range(name, &min, &max)) {
		snprintf(why, sizeof(why),
			 "there is no option '%s'; vulturectl --help-options lists them", name);
	} else if (!parse_number(text, min, max, &value)) {
		vulture_option(options, name, value);
		return NULL;
	} else if (!strcmp(name, "controller")) {
		snprintf(why, sizeof(why), "there is no controller '%s': paper, credit, rledbat",
			 text);
	} else {
		snprintf(why, sizeof(why), "%s '%s' is not a number within %u to %u", name, text,
			 min, max);
	}
	return why;
}

void read_option(struct vulture_options *options, char *text)
{
	char *equals = strchr(text, '=');
	const char *why;

	if (!equals)
		wrong("option '%s' has no value: -o NAME=VALUE", text);
	*equals = '\0';
	why = set_option(options, text, equals + 1);
	if (why)
		wrong("%s", why);
}

/* "10.0.0.1:80", "[fd00::1]:80" */
void read_endpoint(const char *text, struct sockaddr_in6 *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	char host[ADDRESS_CHARS];
	const char *colon = strrchr(text, ':');
	const char *from = text;
	size_t length;
	uint16_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		wrong("'%s' is no address with a port (10.0.0.1:80 or [fd00::1]:80)", text);
	port = (uint16_t)read_number(colon + 1, "port", 1, 65535);
	length = colon - text;
	if (length >= 2 && *text == '[' && text[length - 1] == ']') {
		from++;
		length -= 2;
	}
	memcpy(host, from, length);
	host[length] = '\0';
	memset(to, 0, sizeof(*to));
	if (from == text && inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else if (from != text && inet_pton(AF_INET6, host, &to->sin6_addr) == 1) {
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(port);
	} else {
		wrong("'%s' is no address with a port (10.0.0.1:80 or [fd00::1]:80)", text);
	}
}

/* Where the v2 hierarchy is; "" if nowhere. */
void find_cgroup_root(char *path, size_t room)
{
	char line[1024], type[64], dir[512];
	FILE *mounts = fopen("/proc/self/mounts", "re");

	*path = '\0';
	if (!mounts)
		return;
	while (fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %511s %63s", dir, type) == 2 && !strcmp(type, "cgroup2")) {
			snprintf(path, room, "%s", dir);
			break;
		}
	}
	fclose(mounts);
}

uint64_t read_cgroup(const char *dir)
{
	struct statfs fs;
	struct stat st;

	if (stat(dir, &st))
		refused("%s: %s", dir, strerror(errno));
	/* Elsewhere the number of an inode may be that of a stranger's cgroup. */
	if (!S_ISDIR(st.st_mode) || statfs(dir, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
		refused("%s: not the directory of a v2 cgroup", dir);
	return st.st_ino;
}

int cgroup_descriptor(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		refused("%s: %s", dir, strerror(errno));
	return fd;
}
