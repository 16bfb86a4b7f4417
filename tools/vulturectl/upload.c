// SPDX-License-Identifier: GPL-2.0
/* What a host sends: congestion control, DSCP and priority of its sockets. */
#include "upload.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef HAVE_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "background.skel.h"
#endif

#define CONTROL_CHARS	16	/* TCP_CA_NAME_MAX of the kernel */

static const char *const controls[] = { "lbe", "ledbatpp", "ledbat", "lp" };
static char error_text[512] = "no error";

const char *upload_error(void)
{
	return error_text;
}

__attribute__((format(printf, 1, 2)))
static int failed(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error_text, sizeof(error_text), format, args);
	va_end(args);
	return -1;
}

static int choose(int fd, const char *control)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control));
}

const char *upload_control(void)
{
	const char *found = NULL;
	size_t i;
	int fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	for (i = 0; i < sizeof(controls) / sizeof(controls[0]) && !found; i++)
		if (!choose(fd, controls[i]))
			found = controls[i];
	close(fd);
	return found;
}

const char *upload_controls(void)
{
	return "lbe, ledbatpp, ledbat, lp";
}

/* The traffic class of either family; both are set, since a v6 socket may carry IPv4. */
static void set_class(int fd, int tos)
{
	setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

/* The traffic class of a socket, of either family, without ECN's bits. */
static int get_class(int fd)
{
	int tos = 0;
	socklen_t size = sizeof(tos);

	if (!getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &size) && (tos & 0xfc))
		return tos & 0xfc;
	tos = 0;
	size = sizeof(tos);
	return getsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, &size) ? 0 : tos & 0xfc;
}

int upload_background(int fd, const char *control)
{
	int priority = PRIO_FILLER;

	/* IP_TOS sets the priority too, so that comes after it. */
	if (!get_class(fd))
		set_class(fd, LE_TOS);
	setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	return choose(fd, control);
}

int upload_foreground(int fd)
{
	char control[CONTROL_CHARS] = "cubic";
	int priority = 0;
	FILE *file;

	file = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "re");
	if (file) {
		if (fscanf(file, "%15s", control) != 1)
			strcpy(control, "cubic");
		fclose(file);
	}
	if (get_class(fd) == LE_TOS)
		set_class(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	return choose(fd, control);
}

#ifdef HAVE_BPF
static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Loaded once: whoever has its descriptor may attach it to any cgroup, so nobody else gets it. */
static struct background_bpf *load_program(const char *control)
{
	static struct background_bpf *object;

	if (object)
		return object;
	libbpf_set_print(quiet);
	object = background_bpf__open();
	if (!object) {
		failed("cannot read the BPF program: %s", strerror(errno));
		return NULL;
	}
	snprintf((char *)object->rodata->control, sizeof(object->rodata->control), "%s", control);
	if (background_bpf__load(object)) {
		failed("the kernel refuses the BPF program: %s", strerror(errno));
		background_bpf__destroy(object);
		object = NULL;
	}
	return object;
}

int upload_attach(const char *dir, const char *control, const char *pin)
{
	struct background_bpf *object = load_program(control);
	int cgroup, link;

	if (!object)
		return -1;
	cgroup = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup < 0)
		return failed("cannot open %s: %s", dir, strerror(errno));
	link = bpf_link_create(bpf_program__fd(object->progs.background), cgroup,
			       BPF_CGROUP_SOCK_OPS, NULL);
	if (link < 0)
		failed("cannot attach the BPF program to %s: %s", dir, strerror(errno));
	close(cgroup);
	if (link < 0 || !pin)
		return link < 0 ? -1 : link;
	if (bpf_obj_pin(link, pin)) {
		failed("cannot keep the BPF program at %s: %s", pin, strerror(errno));
		close(link);
		return -1;
	}
	close(link);
	return 0;
}
#else
int upload_attach(const char *dir, const char *control, const char *pin)
{
	(void)dir;
	(void)control;
	(void)pin;
	return failed("vulturectl was built without BPF (clang, bpftool and libbpf are needed)");
}
#endif
