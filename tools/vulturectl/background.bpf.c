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
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

/* From in.h, in6.h, socket.h and tcp.h, which do not all compile for BPF. */
#define IPPROTO_IP	0
#define IPPROTO_TCP	6
#define IPPROTO_IPV6	41
#define IP_TOS		1
#define IPV6_TCLASS	67
#define SOL_SOCKET	1
#define SO_PRIORITY	12
#define TCP_CONGESTION	13
#define AF_INET		2
#define AF_INET6	10
#define CONTROL_CHARS	16

#define MODE_FOREGROUND	1	/* UPLOAD_FOREGROUND of upload.h */
/* A reply that neither the kernel nor another program uses for these operations. */
#define SAID_FOREGROUND	0x6c626566

#define LE_TOS		0x04
#define PRIO_FILLER	1

/* Name of the congestion control; user space writes it before loading. */
const volatile char control[CONTROL_CHARS] = "";

/* The mode of each cgroup: 0, or MODE_FOREGROUND. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	__type(key, struct bpf_cgroup_storage_key);
	__type(value, __u32);
} mode SEC(".maps");

static void mark(struct bpf_sock_ops *ctx, int level, int option)
{
	int tos = 0, le = LE_TOS;

	if (bpf_getsockopt(ctx, level, option, &tos, sizeof(tos)) || !(tos & 0xfc))
		bpf_setsockopt(ctx, level, option, &le, sizeof(le));
}

SEC("sockops")
int background(struct bpf_sock_ops *ctx)
{
	char name[CONTROL_CHARS];
	int priority = PRIO_FILLER, i;
	__u32 *own;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB &&
	    ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	own = bpf_get_local_storage(&mode, 0);
	if (*own == MODE_FOREGROUND)
		ctx->reply = SAID_FOREGROUND;
	if (ctx->reply == SAID_FOREGROUND)
		return 1;
	for (i = 0; i < CONTROL_CHARS; i++)
		name[i] = control[i];
	bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name));
	bpf_setsockopt(ctx, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	if (ctx->family == AF_INET)
		mark(ctx, IPPROTO_IP, IP_TOS);
	else if (ctx->family == AF_INET6)
		mark(ctx, IPPROTO_IPV6, IPV6_TCLASS);
	return 1;
}

char _license[] SEC("license") = "GPL";
