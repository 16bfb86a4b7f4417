// SPDX-License-Identifier: GPL-2.0
/* Uploads that lines of apply's file select by a port, the peer's address or the DSCP. */
#include "lines.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "upload.h"

#ifdef HAVE_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lines.skel.h"
#endif

static struct lines_match match_of(const struct vulture_rule *rule)
{
	struct lines_match match = {
		.local_port = rule->local_port, .remote_port = rule->remote_port,
		.family = (uint8_t)rule->family, .by_dscp = rule->by_dscp, .dscp = rule->dscp,
	};
	unsigned int i, bits = rule->prefix_len;
	uint32_t word;

	for (i = 0; rule->family && i < 4; i++) {
		memcpy(&word, rule->prefix + 4 * i, sizeof(word));
		match.mask[i] = !bits ? 0 : htonl(bits < 32 ? ~0U << (32 - bits) : ~0U);
		match.prefix[i] = word & match.mask[i];
		bits -= bits < 32 ? bits : 32;
	}
	return match;
}

bool lines_equal(const struct vulture_rule *a, const struct vulture_rule *b)
{
	const struct lines_match one = match_of(a), other = match_of(b);

	return !memcmp(&one, &other, sizeof(one));
}

void lines_add(struct lines_map *lines, const struct vulture_rule *rule)
{
	lines->match[lines->count++] = match_of(rule);
}

bool lines_has(const struct lines_map *lines, const struct vulture_rule *rule)
{
	const struct lines_match match = match_of(rule);
	unsigned int i;

	for (i = 0; i < lines->count; i++)
		if (!memcmp(&lines->match[i], &match, sizeof(match)))
			return true;
	return false;
}

#ifdef HAVE_BPF
/* Detach the program. The link would end without this too, a moment after its pin is gone. */
static void end_link(const char *pin)
{
	int link = bpf_obj_get(pin);

	if (link < 0)
		return;
	bpf_link_detach(link);
	close(link);
}
#else
static void end_link(const char *pin)
{
	(void)pin;
}
#endif

static int detach(const char *pin)
{
	end_link(pin);
	if (unlink(pin) && errno != ENOENT)
		return upload_failed("cannot remove %s: %s", pin, strerror(errno));
	return 0;
}

#ifdef HAVE_BPF
/* Open the link of the program, if it is pinned and attached to the cgroup @number. Return: a
 * descriptor, and the program's id; or -1
 */
static int open_link(const char *pin, uint64_t number, uint32_t *id)
{
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);
	int link = bpf_obj_get(pin);

	if (link >= 0 && !bpf_obj_get_info_by_fd(link, &info, &size) &&
	    info.type == BPF_LINK_TYPE_CGROUP && info.cgroup.cgroup_id == number) {
		*id = info.prog_id;
		return link;
	}
	if (link >= 0)
		close(link);
	return -1;
}

/* The number of the root of cgroup v2; 0 if it is not mounted. */
static uint64_t root_number(char root[512])
{
	struct stat st;

	find_cgroup_root(root, 512);
	return *root && !stat(root, &st) ? st.st_ino : 0;
}

void lines_read(struct lines_map *lines, const char *pin)
{
	char root[512];
	uint32_t id, first = 0;
	int link, map;

	memset(lines, 0, sizeof(*lines));
	link = open_link(pin, root_number(root), &id);
	if (link < 0)
		return;
	map = upload_lines_map(id);
	if (map < 0 || bpf_map_lookup_elem(map, &first, lines) || lines->count > LINES_MAX)
		memset(lines, 0, sizeof(*lines));
	if (map >= 0)
		close(map);
	close(link);
}

/* The number by which BPF knows this network namespace; 0 if the kernel does not tell. */
static uint64_t own_namespace(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size))
		cookie = 0;
	close(fd);
	return cookie;
}

/* Load a program with these lines. Return: NULL if the kernel refuses it */
static struct lines_bpf *load(const struct lines_map *lines)
{
	struct lines_bpf *object;
	uint32_t first = 0;
	int error;

	upload_be_quiet();
	object = lines_bpf__open();
	if (!object) {
		upload_failed("cannot read the BPF program: %s", strerror(errno));
		return NULL;
	}
	error = -lines_bpf__load(object);
	if (!error && bpf_map_update_elem(bpf_map__fd(object->maps.lbe_lines_map), &first, lines,
					  BPF_ANY))
		error = errno;
	if (!error)
		return object;
	upload_refused(error);
	lines_bpf__destroy(object);
	return NULL;
}

/* Attach a program to the root, in place of the one of @link if that is not negative. */
static int attach(int program, int link, const char *root, const char *pin)
{
	int cgroup, result;

	if (link >= 0)
		return bpf_link_update(link, program, NULL) ?
		       upload_failed("cannot replace the BPF program at %s: %s", pin,
				     strerror(errno)) : 0;
	if (detach(pin))
		return -1;
	cgroup = upload_open_cgroup(root);
	if (cgroup < 0)
		return -1;
	link = bpf_link_create(program, cgroup, BPF_CGROUP_SOCK_OPS, NULL);
	if (link < 0)
		upload_failed("cannot attach the BPF program to %s: %s", root, strerror(errno));
	close(cgroup);
	if (link < 0)
		return -1;
	result = bpf_obj_pin(link, pin) ?
		 upload_failed("cannot keep the BPF program at %s: %s", pin, strerror(errno)) : 0;
	close(link);
	return result;
}

static int put_in_force(struct lines_map *lines, const char *pin)
{
	static struct lines_map before;
	char root[512];
	uint64_t number = root_number(root);
	struct lines_bpf *object;
	int link, result;
	uint32_t id;

	if (!number)
		return upload_failed("there is no v2 hierarchy of cgroups");
	lines->netns = own_namespace();
	if (!lines->netns)
		return upload_failed("the kernel has no number for the network namespace (SO_NETNS_COOKIE)");
	lines_read(&before, pin);
	if (!memcmp(&before, lines, sizeof(before)))
		return 0;
	object = load(lines);
	if (!object)
		return -1;
	link = open_link(pin, number, &id);
	result = attach(bpf_program__fd(object->progs.lbe_lines), link, root, pin);
	if (link >= 0)
		close(link);
	lines_bpf__destroy(object);
	return result;
}
#else
void lines_read(struct lines_map *lines, const char *pin)
{
	(void)pin;
	memset(lines, 0, sizeof(*lines));
}

static int put_in_force(struct lines_map *lines, const char *pin)
{
	(void)lines;
	(void)pin;
	return upload_no_bpf();
}
#endif

int lines_apply(struct lines_map *lines, const char *control, const char *pin)
{
	int result;

	if (!lines->count)
		return detach(pin);
	if (!control) {
		result = upload_failed("none of %s can be used", upload_controls());
	} else {
		snprintf(lines->control, sizeof(lines->control), "%s", control);
		result = put_in_force(lines, pin);
	}
	if (result) {
		end_link(pin);
		unlink(pin);
	}
	return result;
}
