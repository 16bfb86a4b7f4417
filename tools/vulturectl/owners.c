// SPDX-License-Identifier: GPL-2.0
/* Finds the program that holds a socket. */
#include "owners.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add(struct owners *owners, uint64_t inode, pid_t pid, const char *name)
{
	struct owner *owner;

	if (owners->count == owners->room) {
		size_t room = owners->room ? 2 * owners->room : 256;
		struct owner *grown = realloc(owners->owner, room * sizeof(*grown));

		if (!grown)
			return -1;
		owners->owner = grown;
		owners->room = room;
	}
	owner = &owners->owner[owners->count++];
	owner->inode = inode;
	owner->pid = pid;
	snprintf(owner->name, sizeof(owner->name), "%s", name);
	return 0;
}

static void read_name(const char *pid, char *name, size_t room)
{
	char path[300];
	FILE *file;

	*name = '\0';
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(name, (int)room, file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

static int read_process(struct owners *owners, const char *pid)
{
	char path[600], link[64], name[16] = "";
	struct dirent *entry;
	int result = 0;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	fds = opendir(path);
	while (fds && !result && (entry = readdir(fds))) {
		uint64_t inode;
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		if (length < 0)
			continue;
		link[length] = '\0';
		if (sscanf(link, "socket:[%" SCNu64 "]", &inode) != 1)
			continue;
		if (!*name)
			read_name(pid, name, sizeof(name));
		result = add(owners, inode, atoi(pid), name);
	}
	if (fds)
		closedir(fds);
	return result;
}

static int by_inode(const void *a, const void *b)
{
	const struct owner *left = a, *right = b;

	if (left->inode != right->inode)
		return left->inode < right->inode ? -1 : 1;
	return left->pid - right->pid;
}

int owners_read(struct owners *owners)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int result = 0;

	if (!processes)
		return -1;
	while (!result && (entry = readdir(processes)))
		if (entry->d_name[strspn(entry->d_name, "0123456789")] == '\0')
			result = read_process(owners, entry->d_name);
	closedir(processes);
	if (owners->count)
		qsort(owners->owner, owners->count, sizeof(*owners->owner), by_inode);
	return result;
}

/* If several processes share the socket, the one with the lowest pid is found. */
const struct owner *owners_find(const struct owners *owners, uint64_t inode)
{
	size_t low = 0, high = owners->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (owners->owner[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == owners->count || owners->owner[low].inode != inode)
		return NULL;
	return &owners->owner[low];
}

void owners_free(struct owners *owners)
{
	free(owners->owner);
	owners->owner = NULL;
	owners->count = 0;
	owners->room = 0;
}
