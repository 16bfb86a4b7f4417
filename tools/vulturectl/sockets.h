/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The TCP sockets of other processes, through descriptors of our own.
 *
 * pidfd_getfd(2) gives a second descriptor of a socket that another process
 * holds. It needs the right to trace that process: one's own processes, or
 * root. It works across network namespaces, and nothing is left behind when
 * the descriptor is closed.
 */
#ifndef VULTURECTL_SOCKETS_H
#define VULTURECTL_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * struct tcp_socket - a socket of another process
 * @fd: a descriptor of ours; closed after the callback returns
 * @pid: its process
 * @inode: unique on this machine while the socket lives
 * @state: TCP_ESTABLISHED, TCP_LISTEN, ...; -1 if it is not a TCP socket
 */
struct tcp_socket {
	int fd;
	pid_t pid;
	unsigned long inode;
	int state;
};

/** struct pids - a list that grows; zero it, free it with pids_free() */
struct pids {
	pid_t *pid;
	size_t count, room;
};

void pids_free(struct pids *pids);

int pids_add(struct pids *pids, pid_t pid);
bool pids_has(const struct pids *pids, pid_t pid);

/* pids_leave_out() - those that are in another list go from this one */
void pids_leave_out(struct pids *pids, const struct pids *those);

/* parent_of() - the parent of a process; 0 if it has gone */
pid_t parent_of(pid_t pid);

/**
 * tree_pids() - a process and all its descendants that live now
 * Return: 0, or -1 with errno (ESRCH: there is no such process).
 */
int tree_pids(pid_t root, struct pids *pids);

/**
 * cgroup_pids() - the processes of a v2 cgroup and of those below it
 * Return: 0, or -1 with errno.
 */
int cgroup_pids(const char *dir, struct pids *pids);

/**
 * pid_sockets() - all sockets of a process
 * @wanted: called with a socket's inode before it is opened; false passes it
 *	over. NULL opens all.
 * @each: called for each socket
 * Return: how many TCP sockets were seen, or -1 with errno: EPERM if the process may not
 * be looked into, ESRCH if it has gone.
 */
int pid_sockets(pid_t pid, bool (*wanted)(unsigned long inode, void *arg),
		void (*each)(const struct tcp_socket *socket, void *arg), void *arg);

#endif /* VULTURECTL_SOCKETS_H */
