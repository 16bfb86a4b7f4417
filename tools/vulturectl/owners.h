/* SPDX-License-Identifier: GPL-2.0 */
/* Which program holds a socket. One's own programs, or all as root. */
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

/** struct owners - by inode, in order; zero it, free it with owners_free() */
struct owners {
	struct owner *owner;
	size_t count, room;
};

/* owners_read() - looks into every process that it may look into. Return: 0, or -1 with errno. */
int owners_read(struct owners *owners);
const struct owner *owners_find(const struct owners *owners, uint64_t inode);
void owners_free(struct owners *owners);

#endif /* VULTURECTL_OWNERS_H */
