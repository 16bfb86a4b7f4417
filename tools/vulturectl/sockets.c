// SPDX-License-Identifier: GPL-2.0
/* Access to the TCP sockets of other processes through duplicated descriptors. */
#define _GNU_SOURCE
#include "sockets.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

void pids_free(struct pids *pids)
{
	free(pids->pid);
	*pids = (struct pids){};
}

int pids_add(struct pids *pids, pid_t pid)
{
	if (pids->count == pids->room) {
		size_t room = pids->room ? 2 * pids->room : 16;
		pid_t *grown = realloc(pids->pid, room * sizeof(*grown));

		if (!grown)
			return -1;
		pids->pid = grown;
		pids->room = room;
	}
	pids->pid[pids->count++] = pid;
	return 0;
}

bool pids_has(const struct pids *pids, pid_t pid)
{
	size_t i;

	for (i = 0; i < pids->count; i++)
		if (pids->pid[i] == pid)
			return true;
	return false;
}

void pids_leave_out(struct pids *pids, const struct pids *those)
{
	size_t i, kept = 0;

	for (i = 0; i < pids->count; i++)
		if (!pids_has(those, pids->pid[i]))
			pids->pid[kept++] = pids->pid[i];
	pids->count = kept;
}

/* The number that a directory entry's name is; 0 if it is no number. */
static long entry_number(const char *name)
{
	char *end;
	long number = strtol(name, &end, 10);

	return *end || number <= 0 ? 0 : number;
}

/* /proc/PID/stat is "PID (NAME) STATE PPID ...". NAME may contain ')', so look for the last one. */
pid_t parent_of(pid_t pid)
{
	char path[64], line[512], *after;
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(line, sizeof(line), file)) {
		after = strrchr(line, ')');
		if (!after || sscanf(after + 1, " %*c %d", &parent) != 1)
			parent = 0;
	}
	fclose(file);
	return parent;
}

int tree_pids(pid_t root, struct pids *pids)
{
	struct pids all = {}, parents = {};
	struct dirent *entry;
	bool grown = true;
	DIR *proc;
	size_t i;

	if (!parent_of(root) && root != 1) {
		errno = ESRCH;
		return -1;
	}
	proc = opendir("/proc");
	if (!proc)
		return -1;
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)entry_number(entry->d_name);

		if (pid && (pids_add(&all, pid) || pids_add(&parents, parent_of(pid))))
			break;
	}
	closedir(proc);
	pids_add(pids, root);
	while (grown) {
		grown = false;
		for (i = 0; i < parents.count; i++) {
			if (pids_has(pids, parents.pid[i]) && !pids_has(pids, all.pid[i])) {
				pids_add(pids, all.pid[i]);
				grown = true;
			}
		}
	}
	pids_free(&all);
	pids_free(&parents);
	return 0;
}

int cgroup_pids(const char *dir, struct pids *pids)
{
	char path[4096];
	struct dirent *entry;
	FILE *procs;
	DIR *below;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	procs = fopen(path, "re");
	if (!procs)
		return -1;
	while (fscanf(procs, "%d", &pid) == 1)
		if (pid > 0)
			pids_add(pids, pid);
	fclose(procs);
	below = opendir(dir);
	if (!below)
		return -1;
	while ((entry = readdir(below))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		cgroup_pids(path, pids);
	}
	closedir(below);
	return 0;
}

/* The state of a TCP socket; -1 for any other socket. */
static int tcp_state(int fd)
{
	int protocol = 0;
	socklen_t size = sizeof(protocol);
	struct tcp_info info = {};

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) || protocol != IPPROTO_TCP)
		return -1;
	size = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		return -1;
	return info.tcpi_state;
}

int pid_sockets(pid_t pid, bool (*wanted)(unsigned long inode, void *arg),
		void (*each)(const struct tcp_socket *socket, void *arg), void *arg)
{
	struct tcp_socket socket = { .pid = pid };
	char path[300], link[64];
	struct dirent *entry;
	int pidfd, count = 0;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	if (!fds) {
		if (errno == EACCES)
			errno = EPERM;
		else if (errno == ENOENT)
			errno = ESRCH;
		return -1;
	}
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		closedir(fds);
		return -1;
	}
	while ((entry = readdir(fds))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		if (length < 0)
			continue;
		link[length] = '\0';
		if (sscanf(link, "socket:[%lu]", &socket.inode) != 1)
			continue;
		if (wanted && !wanted(socket.inode, arg))
			continue;
		socket.fd = pidfd_getfd(pidfd, atoi(entry->d_name), 0);
		if (socket.fd < 0) {
			if (errno == EPERM) {
				count = -1;
				break;
			}
			continue;
		}
		socket.state = tcp_state(socket.fd);
		each(&socket, arg);
		count += socket.state >= 0;
		close(socket.fd);
	}
	close(pidfd);
	closedir(fds);
	if (count < 0)
		errno = EPERM;
	return count;
}
