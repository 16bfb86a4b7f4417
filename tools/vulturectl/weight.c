// SPDX-License-Identifier: GPL-2.0
/* The weight of a cgroup's uploads. */
#include "weight.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REQUEST_CHARS	80

static const char *error_text = "no error";

/* Write one request. Return: 0, or -1 with errno; *@opened: whether the file could be opened */
static int request(pid_t pid, const char *text, bool *opened)
{
	char path[64] = "/proc/self/net/lbe_weights";
	ssize_t length;
	int fd, error;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/net/lbe_weights", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	*opened = fd >= 0;
	if (fd < 0)
		return -1;
	length = write(fd, text, strlen(text));
	error = errno;
	close(fd);
	errno = error;
	return length < 0 ? -1 : 0;
}

int weight_set(pid_t pid, uint64_t cgroup, uint32_t weight, bool each)
{
	char text[REQUEST_CHARS];
	bool opened;

	snprintf(text, sizeof(text), "set %" PRIu64 " %u%s", cgroup, weight, each ? " each" : "");
	if (!request(pid, text, &opened))
		return 0;
	if (!opened && errno == ENOENT)
		error_text = "this tcp_lbe has no weights (no /proc/net/lbe_weights)";
	else if (errno == EACCES || errno == EPERM)
		error_text = "only root, or the service lbe-background, may give uploads a weight";
	else if (errno == ENOSPC)
		error_text = "too many cgroups have one (/proc/net/lbe_weights)";
	else
		error_text = strerror(errno);
	return -1;
}

void weight_clear(uint64_t cgroup)
{
	char text[REQUEST_CHARS];
	bool opened;

	snprintf(text, sizeof(text), "del %" PRIu64, cgroup);
	request(0, text, &opened);
}

const char *weight_error(void)
{
	return error_text;
}
