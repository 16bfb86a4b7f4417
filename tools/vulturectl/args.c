// SPDX-License-Identifier: GPL-2.0
/* Conversion of words of the command line to values, and messages for wrong words. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ctl.h"
#include "print.h"

static void say_v(const char *format, va_list args)
{
	fputs("vulturectl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_v(format, args);
	va_end(args);
}

void wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_v(format, args);
	va_end(args);
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

	va_start(args, format);
	say_v(format, args);
	va_end(args);
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

/* Conversion of words to values. Each function returns NULL, or a sentence that says what the word
 * should be. The sentence is valid until the next call.
 */

__attribute__((format(printf, 1, 2)))
static const char *should(const char *format, ...)
{
	static char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

const char *set_number(uint64_t *value, const char *text, const char *what, uint64_t min,
		       uint64_t max)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || *value < min || *value > max)
		return should("%s '%s' is not a number within %" PRIu64 " to %" PRIu64, what, text,
			      min, max);
	return NULL;
}

const char *set_port(uint16_t *port, const char *text)
{
	uint64_t value;
	const char *why = set_number(&value, text, "port", 1, 65535);

	*port = (uint16_t)value;
	return why;
}

const char *set_prefix(struct vulture_rule *rule, const char *text)
{
	char address[INET6_ADDRSTRLEN];
	size_t length = strcspn(text, "/");
	unsigned int most;
	uint64_t bits;
	const char *why = NULL;

	snprintf(address, sizeof(address), "%.*s", (int)length, text);
	if (length < sizeof(address) && inet_pton(AF_INET, address, rule->prefix) == 1)
		rule->family = AF_INET;
	else if (length < sizeof(address) && inet_pton(AF_INET6, address, rule->prefix) == 1)
		rule->family = AF_INET6;
	else
		return should("'%s' is neither an IPv4 nor an IPv6 prefix (192.0.2.0/24, 2001:db8::/32)",
			      text);
	most = rule->family == AF_INET ? 32 : 128;
	bits = most;
	if (text[length])
		why = set_number(&bits, text + length + 1, "prefix length", 0, most);
	rule->prefix_len = (uint8_t)bits;
	return why;
}

/* The two DSCPs of background traffic: LE of RFC 8622, and CS1 of RFC 3662, which RFC 8622
 * obsoletes.
 */
static const struct { const char *name; uint8_t dscp; } dscps[] = { { "le", 1 }, { "cs1", 8 } };

const char *dscp_name(uint8_t dscp)
{
	static char number[4];
	size_t i;

	for (i = 0; i < sizeof(dscps) / sizeof(dscps[0]); i++)
		if (dscps[i].dscp == dscp)
			return dscps[i].name;
	snprintf(number, sizeof(number), "%u", dscp);
	return number;
}

const char *set_dscp(struct vulture_rule *rule, const char *text)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < sizeof(dscps) / sizeof(dscps[0]); i++)
		if (!strcmp(dscps[i].name, text))
			value = dscps[i].dscp;
	if (!value && set_number(&value, text, "dscp", 0, 63))
		return should("dscp '%s' is neither le, cs1 nor a number within 0 to 63", text);
	rule->by_dscp = true;
	rule->dscp = (uint8_t)value;
	return NULL;
}

const char *set_option(struct vulture_options *options, const char *name, const char *text)
{
	int controller = strcmp(name, "controller") ? -1 : vulture_controller_number(text);
	uint64_t value = (uint64_t)controller;
	const char *why = NULL;
	uint32_t min, max;

	if (lv_option_range(name, &min, &max))
		return should("there is no option '%s'; vulturectl --help-options lists them",
			      name);
	if (controller < 0)
		why = set_number(&value, text, name, min, max);
	if (why && !strcmp(name, "controller"))
		return should("there is no controller '%s': paper, credit, rledbat", text);
	if (!why)
		vulture_option(options, name, (uint32_t)value);
	return why;
}

/* The same for words of the command line: a wrong word ends the program */

void must(const char *why)
{
	if (why)
		wrong("%s", why);
}

uint64_t read_number(const char *text, const char *what, uint64_t min, uint64_t max)
{
	uint64_t value;

	must(set_number(&value, text, what, min, max));
	return value;
}

void read_option(struct vulture_options *options, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals)
		wrong("option '%s' has no value: -o NAME=VALUE", text);
	*equals = '\0';
	must(set_option(options, text, equals + 1));
}

void read_endpoint(const char *text, struct sockaddr_in6 *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	char host[ADDRESS_CHARS];
	const char *colon = strrchr(text, ':');
	const char *from = text;
	size_t length;
	uint16_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		wrong("'%s' is not an address with a port (10.0.0.1:80 or [fd00::1]:80)", text);
	must(set_port(&port, colon + 1));
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
		wrong("'%s' is not an address with a port (10.0.0.1:80 or [fd00::1]:80)", text);
	}
}

void find_cgroup_root(char *path, size_t room)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;

	*path = '\0';
	if (!mounts)
		return;
	while ((mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "cgroup2"))
			continue;
		if (strlen(mount->mnt_dir) < room)
			strcpy(path, mount->mnt_dir);
		break;
	}
	endmntent(mounts);
}

const char *set_cgroup(uint64_t *cgroup, const char *dir)
{
	struct statfs fs;
	struct stat st;

	if (stat(dir, &st))
		return should("%s: %s", dir, strerror(errno));
	/* An inode number of another file system may equal that of an unrelated cgroup. */
	if (!S_ISDIR(st.st_mode) || statfs(dir, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
		return should("%s: not the directory of a v2 cgroup", dir);
	*cgroup = st.st_ino;
	return NULL;
}

uint64_t read_cgroup(const char *dir)
{
	uint64_t cgroup = 0;
	const char *why = set_cgroup(&cgroup, dir);

	if (why)
		refused("%s", why);
	return cgroup;
}

int cgroup_descriptor(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		refused("%s: %s", dir, strerror(errno));
	return fd;
}
