// SPDX-License-Identifier: GPL-2.0
/* Uploads: the congestion control, DSCP and priority of sockets. */
#include "upload.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "background.skel.h"
#include "lines.h"
#endif

#define CONTROL_CHARS	16	/* TCP_CA_NAME_MAX of the kernel */

#ifdef HAVE_BPF
#define OWN_PROGRAMS	64	/* the kernel's limit on programs of one type on a cgroup */
#define OWN_MAPS	8

/* Descriptors of a background program that is attached to a cgroup, and of its map of modes. */
struct own {
	int program, map;
};
#endif

static const char *const controls[] = { "lbe", "ledbatpp", "ledbat", "lp" };
static char error_text[512] = "no error";

const char *upload_error(void)
{
	return error_text;
}

int upload_failed(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error_text, sizeof(error_text), format, args);
	va_end(args);
	return -1;
}

int upload_open_cgroup(const char *dir)
{
	int cgroup = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return cgroup < 0 ? upload_failed("cannot open %s: %s", dir, strerror(errno)) : cgroup;
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

/* Set the traffic class for both families, since an IPv6 socket may carry IPv4. */
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

	/* IP_TOS changes the priority too, so the priority is set after it. */
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

int upload_refused(int error)
{
	if (error == EPERM)
		return upload_failed("the kernel refuses the BPF program: it needs CAP_BPF and CAP_NET_ADMIN: in a container or a unit, add them or run vulturectl outside of it");
	return upload_failed("the kernel refuses the BPF program (%s): it needs CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF: look for them in /boot/config-$(uname -r)",
			     strerror(error));
}

int upload_no_bpf(void)
{
	return upload_failed("vulturectl was built without BPF (clang, bpftool and libbpf are needed)");
}

#ifdef HAVE_BPF
static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

void upload_be_quiet(void)
{
	libbpf_set_print(quiet);
}

/* The program is loaded once in a process. Its descriptor is never passed on, since a process that
 * has it may attach the program to any cgroup.
 */
static struct background_bpf *load_program(const char *control)
{
	static struct background_bpf *object;
	int error;

	if (object)
		return object;
	upload_be_quiet();
	object = background_bpf__open();
	if (!object) {
		upload_failed("cannot read the BPF program: %s", strerror(errno));
		return NULL;
	}
	snprintf((char *)object->rodata->control, sizeof(object->rodata->control), "%s", control);
	error = -background_bpf__load(object);
	if (error) {
		upload_refused(error);
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
	cgroup = upload_open_cgroup(dir);
	if (cgroup < 0)
		return -1;
	link = bpf_link_create(bpf_program__fd(object->progs.background), cgroup,
			       BPF_CGROUP_SOCK_OPS, NULL);
	if (link < 0)
		upload_failed("cannot attach the BPF program to %s: %s", dir, strerror(errno));
	close(cgroup);
	if (link < 0 || !pin)
		return link < 0 ? -1 : link;
	if (bpf_obj_pin(link, pin)) {
		upload_failed("cannot keep the BPF program at %s: %s", pin, strerror(errno));
		close(link);
		return -1;
	}
	close(link);
	return 0;
}

/* Open a map of a program by the map's name. Return: a descriptor, or -1 */
static int map_of(const struct bpf_prog_info *info, const uint32_t *ids, const char *name)
{
	uint32_t i;

	for (i = 0; i < info->nr_map_ids && i < OWN_MAPS; i++) {
		int fd = bpf_map_get_fd_by_id(ids[i]);
		struct bpf_map_info map = {};
		uint32_t size = sizeof(map);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &map, &size) && !strcmp(map.name, name))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* What a program and its map are called. */
struct name {
	const char *program, *map;
};

static const struct name background_name = { "background", "mode" };
static const struct name lines_name = { LINES_PROGRAM, LINES_MAP };

/* Open program @id if it has this name and a map of that name, loaded by whichever process and
 * version of vulturectl. Return: whether it has
 */
static bool open_own(uint32_t id, const struct name *name, struct own *own)
{
	uint32_t maps[OWN_MAPS] = {};
	struct bpf_prog_info info = {
		.nr_map_ids = OWN_MAPS, .map_ids = (uint64_t)(uintptr_t)maps,
	};
	uint32_t size = sizeof(info);

	own->program = bpf_prog_get_fd_by_id(id);
	if (own->program < 0)
		return false;
	own->map = -1;
	if (!bpf_obj_get_info_by_fd(own->program, &info, &size) &&
	    !strcmp(info.name, name->program))
		own->map = map_of(&info, maps, name->map);
	if (own->map < 0)
		close(own->program);
	return own->map >= 0;
}

int upload_lines_map(uint32_t id)
{
	struct own own;

	if (!open_own(id, &lines_name, &own))
		return upload_failed("program %u is not the one of the lines", id);
	close(own.program);
	return own.map;
}

static void close_own(const struct own *own, int n)
{
	while (n-- > 0) {
		close(own[n].program);
		close(own[n].map);
	}
}

/* Open the programs of one cgroup that have this name; the caller closes them. Return: how many, or
 * -1
 */
static int find_own(int cgroup, const char *dir, const struct name *name,
		    struct own own[OWN_PROGRAMS])
{
	uint32_t ids[OWN_PROGRAMS] = {}, n = OWN_PROGRAMS, i;
	int found = 0;

	if (bpf_prog_query(cgroup, BPF_CGROUP_SOCK_OPS, 0, NULL, ids, &n))
		return upload_failed("cannot see the BPF programs of %s: %s", dir, strerror(errno));
	for (i = 0; i < n; i++)
		found += open_own(ids[i], name, &own[found]);
	return found;
}

static struct bpf_cgroup_storage_key key_of(int cgroup)
{
	struct bpf_cgroup_storage_key key = { .attach_type = BPF_CGROUP_SOCK_OPS };
	struct stat st;

	if (!fstat(cgroup, &st))
		key.cgroup_inode_id = st.st_ino;
	return key;
}

int upload_mode(const char *dir)
{
	int cgroup = upload_open_cgroup(dir), n, result = UPLOAD_NONE;
	struct own own[OWN_PROGRAMS];
	uint32_t value = 0;

	if (cgroup < 0)
		return -1;
	n = find_own(cgroup, dir, &background_name, own);
	if (n > 0) {
		struct bpf_cgroup_storage_key key = key_of(cgroup);

		bpf_map_lookup_elem(own->map, &key, &value);
		result = value == UPLOAD_FOREGROUND ? UPLOAD_FOREGROUND : UPLOAD_BACKGROUND;
	}
	close_own(own, n);
	if (!n) {
		n = find_own(cgroup, dir, &lines_name, own);
		result = n > 0 ? UPLOAD_LINES : UPLOAD_NONE;
		close_own(own, n);
	}
	close(cgroup);
	return n < 0 ? -1 : result;
}

static int set_mode(int map, int cgroup, const char *dir, enum upload_mode mode)
{
	struct bpf_cgroup_storage_key key = key_of(cgroup);
	uint32_t value = mode;

	if (bpf_map_update_elem(map, &key, &value, BPF_ANY))
		return upload_failed("cannot switch the BPF program of %s: %s", dir,
				     strerror(errno));
	return 0;
}

/* Attach without a link, so that the program lasts as long as the cgroup and no process has to hold
 * a descriptor.
 */
static int attach_in_mode(int cgroup, const char *dir, enum upload_mode mode, const char *control)
{
	struct background_bpf *object = load_program(control);
	int program;

	if (!object)
		return -1;
	program = bpf_program__fd(object->progs.background);
	if (bpf_prog_attach(program, cgroup, BPF_CGROUP_SOCK_OPS, BPF_F_ALLOW_MULTI))
		return upload_failed("cannot attach the BPF program to %s: %s", dir,
				     strerror(errno));
	return set_mode(bpf_map__fd(object->maps.mode), cgroup, dir, mode);
}

int upload_enter(const char *dir, const char *control)
{
	int cgroup = upload_open_cgroup(dir), result;

	if (cgroup < 0)
		return -1;
	result = attach_in_mode(cgroup, dir, UPLOAD_BACKGROUND, control);
	close(cgroup);
	return result;
}

int upload_leave(const char *dir, const char *control)
{
	struct background_bpf *object = load_program(control);
	int cgroup = object ? upload_open_cgroup(dir) : -1, result = 0;

	if (cgroup < 0)
		return -1;
	if (bpf_prog_detach2(bpf_program__fd(object->progs.background), cgroup,
			     BPF_CGROUP_SOCK_OPS))
		result = upload_failed("cannot detach the BPF program of %s: %s", dir,
				       strerror(errno));
	close(cgroup);
	return result;
}

int upload_switch(const char *dir, enum upload_mode mode, bool attach, const char *control)
{
	int cgroup = upload_open_cgroup(dir), n, i, result = 0;
	struct own own[OWN_PROGRAMS];

	if (cgroup < 0)
		return -1;
	n = find_own(cgroup, dir, &background_name, own);
	for (i = 0; i < n; i++) {
		/* The mode outlasts the attachment; a process may attach its program again. */
		int set = set_mode(own[i].map, cgroup, dir, mode);

		/* succeeds only for a program without a link, which an earlier call attached */
		if (!bpf_prog_detach2(own[i].program, cgroup, BPF_CGROUP_SOCK_OPS))
			continue;
		attach = false;
		result |= set;
	}
	close_own(own, n);
	if (n >= 0 && attach)
		result = attach_in_mode(cgroup, dir, mode, control);
	close(cgroup);
	return n < 0 ? -1 : result;
}
#else
int upload_mode(const char *dir)
{
	(void)dir;
	return UPLOAD_NONE;
}

int upload_switch(const char *dir, enum upload_mode mode, bool attach, const char *control)
{
	(void)control;
	return attach && mode == UPLOAD_BACKGROUND ? upload_attach(dir, control, NULL) : 0;
}

int upload_enter(const char *dir, const char *control)
{
	return upload_attach(dir, control, NULL);
}

int upload_leave(const char *dir, const char *control)
{
	return upload_attach(dir, control, NULL);
}

int upload_attach(const char *dir, const char *control, const char *pin)
{
	(void)dir;
	(void)control;
	(void)pin;
	return upload_no_bpf();
}
#endif
