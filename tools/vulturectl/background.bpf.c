// SPDX-License-Identifier: GPL-2.0
/*
 * Puts the uploads of a cgroup in the background: each connection that its processes
 * open or accept gets a less-than-best-effort congestion control, DSCP LE and the
 * priority TC_PRIO_FILLER.
 *
 * Attached to a cgroup v2 as sock_ops. User space writes the control's name before
 * the program is loaded. A DSCP that the application has set is kept.
 *
 * Each cgroup that the program is attached to has a mode, which user space may
 * change. In MODE_FOREGROUND the program only sets ctx->reply. The kernel then runs
 * the programs of the cgroups above with the same context; they see the reply and do
 * nothing either. So the nearest cgroup with a program decides.
 */
#include "upload.bpf.h"

#define MODE_FOREGROUND	1	/* UPLOAD_FOREGROUND of upload.h */

/* Name of the congestion control; user space writes it before loading. */
const volatile char control[CONTROL_CHARS] = "";

/* The mode of each cgroup: 0, or MODE_FOREGROUND. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	__type(key, struct bpf_cgroup_storage_key);
	__type(value, __u32);
} mode SEC(".maps");

SEC("sockops")
int background(struct bpf_sock_ops *ctx)
{
	char name[CONTROL_CHARS];
	__u32 *own;
	int i;

	if (!is_new(ctx))
		return 1;
	own = bpf_get_local_storage(&mode, 0);
	if (*own == MODE_FOREGROUND)
		ctx->reply = SAID_FOREGROUND;
	if (ctx->reply == SAID_FOREGROUND)
		return 1;
	for (i = 0; i < CONTROL_CHARS; i++)
		name[i] = control[i];
	to_background(ctx, name);
	return 1;
}

char _license[] SEC("license") = "GPL";
