/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Access to the TCP sockets of other processes through duplicated descriptors.
 *
 * pidfd_getfd(2) duplicates the descriptor of a socket that another process
 * holds. It needs the right to trace that process, which a user has for the
 * user's own processes and root for all. It works across network namespaces,
 * and nothing remains when the duplicate is closed.
 */
#ifndef VULTURECTL_SOCKETS_H
#define VULTURECTL_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * struct tcp_socket - a socket of another process
 * @fd: a duplicate of its descriptor; closed after the callback returns
 * @pid: the process that holds it
 * @inode: unique on this machine while the socket exists
 * @state: TCP_ESTABLISHED, TCP_LISTEN, ...; -1 if it is not a TCP socket
 */
struct tcp_socket {
	int fd;
	pid_t pid;
	unsigned long inode;
	int state;
};

/** struct pids - a list that grows; set it to zero first, free it with pids_free() */
struct pids {
	pid_t *pid;
	size_t count, room;
};

void pids_free(struct pids *pids);

int pids_add(struct pids *pids, pid_t pid);
bool pids_has(const struct pids *pids, pid_t pid);

/* pids_leave_out() - remove from a list what is in another one */
void pids_leave_out(struct pids *pids, const struct pids *those);

/* parent_of() - the parent of a process; 0 if the process does not exist any more */
pid_t parent_of(pid_t pid);

/**
 * tree_pids() - append a process and all its present descendants to a list
 * Return: 0, or -1 with errno (ESRCH: there is no such process).
 */
int tree_pids(pid_t root, struct pids *pids);

/**
 * cgroup_pids() - append the processes of a v2 cgroup and of those below it to a list
 * Return: 0, or -1 with errno.
 */
int cgroup_pids(const char *dir, struct pids *pids);

/**
 * pid_sockets() - call a function for each socket of a process
 * @wanted: called with a socket's inode before the socket is opened; if it returns false, the
 *	socket is skipped. NULL opens all.
 * @each: called for each socket
 * Return: number of TCP sockets seen, or -1 with errno: EPERM if the process may not be
 * inspected, ESRCH if it does not exist any more.
 */
int pid_sockets(pid_t pid, bool (*wanted)(unsigned long inode, void *arg),
		void (*each)(const struct tcp_socket *socket, void *arg), void *arg);

#endif /* VULTURECTL_SOCKETS_H */
