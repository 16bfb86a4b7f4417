/* SPDX-License-Identifier: GPL-2.0 */
/* Finds the program that holds a socket: any program for root, else the user's own programs. */
#ifndef VULTURECTL_OWNERS_H
#define VULTURECTL_OWNERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** struct owner - a socket and the first process found that holds it */
struct owner {
	uint64_t inode;
	pid_t pid;
	char name[16];	/* TASK_COMM_LEN of the kernel */
};

/** struct owners - list sorted by inode; set it to zero first, free it with owners_free() */
struct owners {
	struct owner *owner;
	size_t count, room;
};

/* owners_read() - read the sockets of every process that the caller may inspect. Return: 0, or -1
 * with errno.
 */
int owners_read(struct owners *owners);
const struct owner *owners_find(const struct owners *owners, uint64_t inode);
void owners_free(struct owners *owners);

#endif /* VULTURECTL_OWNERS_H */
