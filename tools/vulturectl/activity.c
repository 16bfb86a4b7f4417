// SPDX-License-Identifier: GPL-2.0
/* Activity of background connections. */
#include "activity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "owners.h"

/* A connection that the law limits has yielded when its rate is below capacity / YIELDED (1/8, see
 * activity.h). Doubling it counts fewer connections as having yielded.
 */
#define YIELDED	8

static char error_text[300];

const char *look_error(void)
{
	return error_text;
}

const char *holder_name(enum holder holder)
{
	static const char *const names[] = { "-", "us", "sender", "receiver", "application" };

	return names[holder];
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* What limits the rate */

/* @Bps: bytes a second since the previous look. */
static enum holder down_holder(const struct vulture_flow *flow, uint32_t unread_bytes, double Bps)
{
	uint32_t window_bytes = flow->own_bytes < flow->rwnd_bytes ? flow->own_bytes :
								     flow->rwnd_bytes;
	/* While the sender pauses there is no recent sample of the round trip. */
	uint32_t rtt_us = flow->rtt_us ? flow->rtt_us : flow->min_rtt_us;

	if (unread_bytes && unread_bytes >= flow->own_bytes)
		return HELD_APPLICATION;
	if (flow->rwnd_bytes < flow->mss_bytes && flow->rwnd_bytes < flow->own_bytes)
		return HELD_US;
	if (!rtt_us)
		return HELD_UNKNOWN;
	if (Bps * rtt_us / 1e6 < window_bytes / 2.0)
		return HELD_SENDER;
	return flow->own_bytes <= flow->rwnd_bytes ? HELD_RECEIVER : HELD_US;
}

static enum holder up_holder(const struct activity *now, const struct activity *before)
{
	uint64_t time_us = now->at_us - before->at_us;
	uint64_t busy_us = now->busy_us - before->busy_us;

	if (busy_us < time_us / 2)
		return HELD_APPLICATION;
	if (now->rwnd_us - before->rwnd_us > busy_us / 2)
		return HELD_RECEIVER;
	if (now->sndbuf_us - before->sndbuf_us > busy_us / 2)
		return HELD_APPLICATION;
	return HELD_US;
}

static uint64_t stat_of(const struct vulture_flow *flow, const char *name)
{
	uint32_t i;

	for (i = 0; i < flow->n_stats; i++)
		if (!strcmp(flow->stats[i].name, name))
			return (uint64_t)flow->stats[i].value;
	return 0;
}

/* Compute what follows from two looks. @path_Bps: capacity of the path; 0 if not known. */
static void compare(struct activity *now, const struct activity *before, uint32_t unread_bytes,
		    uint64_t path_Bps)
{
	double seconds = (double)(now->at_us - before->at_us) / 1e6;
	uint64_t moved = now->bytes - before->bytes;
	double Bps;

	if (now->bytes < before->bytes || seconds <= 0)
		return;
	Bps = (double)moved / seconds;
	now->rate_bps = 8 * Bps;
	now->holder = now->up ? up_holder(now, before) : down_holder(now->flow, unread_bytes, Bps);
	now->yields = now->holder == HELD_US && path_Bps && Bps < (double)path_Bps / YIELDED;
	now->has_yielded = before->has_yielded || now->yields;
	now->pause_bytes = before->pause_bytes + (now->has_yielded && !now->yields ? moved : 0);
}

/* Taking a look */

struct taking {
	struct look *look;
	const struct look *before;
	struct owners owners;
	bool no_memory;
	size_t flows;	/* the first members of look, vulture's connections, sorted by address */
};

static struct activity *add(struct taking *taking)
{
	struct look *look = taking->look;

	if (look->count == look->room) {
		size_t room = look->room ? 2 * look->room : 64;
		struct activity *grown = realloc(look->activity, room * sizeof(*grown));

		if (!grown) {
			taking->no_memory = true;
			return NULL;
		}
		look->activity = grown;
		look->room = room;
	}
	memset(&look->activity[look->count], 0, sizeof(*look->activity));
	return &look->activity[look->count++];
}

static int by_key(const void *a, const void *b)
{
	const struct activity *left = a, *right = b;

	if (left->up != right->up)
		return left->up - right->up;
	return (left->key > right->key) - (left->key < right->key);
}

const struct activity *look_find(const struct look *look, bool up, uint64_t key)
{
	struct activity like = { .up = up, .key = key };

	if (!look || !look->count)
		return NULL;
	return bsearch(&like, look->activity, look->count, sizeof(like), by_key);
}

static int one_flow(const struct vulture_flow *flow, void *arg)
{
	struct taking *taking = arg;
	struct activity *now = add(taking);

	if (!now)
		return 1;
	now->flow = malloc(sizeof(*flow));
	if (!now->flow) {
		taking->look->count--;
		taking->no_memory = true;
		return 1;
	}
	*now->flow = *flow;
	now->key = flow->id;
	now->address = flow->address;
	now->law = vulture_controller_name(flow->controller);
	now->bytes = flow->bytes;
	now->queue_us = flow->queue_us;
	now->rtt_us = flow->rtt_us;
	now->has_yielded = stat_of(flow, "yields");
	return 0;
}

static int end_order(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (a->sin6_family != b->sin6_family)
		return a->sin6_family - b->sin6_family;
	if (a->sin6_port != b->sin6_port)
		return a->sin6_port - b->sin6_port;
	if (a->sin6_family == AF_INET)
		return memcmp(&a4->sin_addr, &b4->sin_addr, sizeof(a4->sin_addr));
	return memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr));
}

static int by_address(const void *a, const void *b)
{
	const struct activity *left = a, *right = b;
	int order = end_order(&left->address.local.in6, &right->address.local.in6);

	return order ? order : end_order(&left->address.remote.in6, &right->address.remote.in6);
}

static void name_owner(struct taking *taking, struct activity *now,
		       const struct diag_socket *socket)
{
	const struct owner *owner = owners_find(&taking->owners, socket->inode);

	now->uid = socket->uid;
	if (!owner)
		return;
	now->pid = owner->pid;
	memcpy(now->name, owner->name, sizeof(now->name));
}

/* Whether a congestion control is one of the suite's. Each variant of tcp_lowpri has a name that
 * begins with lowpri, or the name background.
 */
static bool is_background(const char *control)
{
	static const char *const controls[] = {
		"lbe", "ledbatpp", "ledbat", "lp", "lp_ecn", "background",
	};
	size_t i;

	if (!strncmp(control, "lowpri", strlen("lowpri")))
		return true;
	for (i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
		if (!strcmp(control, controls[i]))
			return true;
	return false;
}

static void add_up(struct taking *taking, const struct diag_socket *socket)
{
	const struct activity *before = look_find(taking->before, true, socket->inode);
	struct activity *now = add(taking);

	if (!now)
		return;
	now->up = true;
	now->key = socket->inode;
	now->address = socket->address;
	memcpy(now->control, socket->control, sizeof(now->control));
	now->bytes = socket->acked_bytes;
	now->rtt_us = socket->rtt_us;
	if (socket->rtt_us > socket->min_rtt_us)
		now->queue_us = socket->rtt_us - socket->min_rtt_us;
	now->busy_us = socket->busy_us;
	now->rwnd_us = socket->rwnd_us;
	now->sndbuf_us = socket->sndbuf_us;
	now->at_us = now_us();
	name_owner(taking, now, socket);
	if (before)
		compare(now, before, 0, socket->path_Bps);
}

static void one_socket(const struct diag_socket *socket, void *arg)
{
	struct activity like = { .address = socket->address }, *now = NULL;
	const struct activity *before;
	struct taking *taking = arg;

	if (taking->flows)
		now = bsearch(&like, taking->look->activity, taking->flows, sizeof(like),
			      by_address);
	if (now) {
		name_owner(taking, now, socket);
		before = look_find(taking->before, false, now->key);
		if (before)
			compare(now, before, socket->unread_bytes,
				stat_of(now->flow, "capacity_bps") / 8);
	}
	if (is_background(socket->control))
		add_up(taking, socket);
}

static void sort(struct look *look, int (*order)(const void *, const void *))
{
	if (look->count)
		qsort(look->activity, look->count, sizeof(*look->activity), order);
}

int look_again(struct look *look, const struct look *before)
{
	struct taking taking = { .look = look, .before = before };
	int result = -1;
	size_t i;

	memset(look, 0, sizeof(*look));
	look->at_us = now_us();
	*error_text = '\0';
	if (v && vulture_list(v, one_flow, &taking) < 0)
		snprintf(error_text, sizeof(error_text), "%s", vulture_error(v));
	taking.flows = look->count;
	sort(look, by_address);
	for (i = 0; i < look->count; i++)
		look->activity[i].at_us = look->at_us;
	if (!*error_text && owners_read(&taking.owners))
		snprintf(error_text, sizeof(error_text), "cannot read /proc: %s", strerror(errno));
	else if (!*error_text && diag_each(one_socket, &taking))
		snprintf(error_text, sizeof(error_text),
			 "the kernel does not list sockets (CONFIG_INET_DIAG): %s",
			 strerror(errno));
	else if (taking.no_memory)
		snprintf(error_text, sizeof(error_text), "out of memory");
	else if (!*error_text)
		result = 0;
	owners_free(&taking.owners);
	sort(look, by_key);
	/* The array is not moved any more, so pointers into it stay valid. */
	for (i = 0; i < look->count; i++)
		if (look->activity[i].up)
			look->activity[i].law = look->activity[i].control;
	return result;
}

void look_free(struct look *look)
{
	size_t i;

	for (i = 0; i < look->count; i++)
		free(look->activity[i].flow);
	free(look->activity);
	memset(look, 0, sizeof(*look));
}

/* Grouping by program */

static bool same_program(const struct activity *a, const struct activity *b)
{
	return a->up == b->up && a->pid == b->pid && (a->pid || a->uid == b->uid);
}

static int faster_first(const void *a, const void *b)
{
	const struct program *left = a, *right = b;

	if (left->rate_bps != right->rate_bps)
		return left->rate_bps > right->rate_bps ? -1 : 1;
	if (left->first->pid != right->first->pid)
		return left->first->pid - right->first->pid;
	return left->first->up - right->first->up;
}

/* The most frequent holder. Idle connections decide only if no connection has moved data, by the
 * weights of look_programs().
 */
static void choose_holder(struct program *program)
{
	unsigned int i, most = 0;

	for (i = HELD_US; i < HOLDERS; i++) {
		if (program->holders[i] > most) {
			most = program->holders[i];
			program->holder = (enum holder)i;
		}
	}
}

struct program *look_programs(const struct look *look, size_t *count)
{
	struct program *programs = calloc(look->count + 1, sizeof(*programs));
	size_t i, k;

	*count = 0;
	for (i = 0; programs && i < look->count; i++) {
		const struct activity *one = &look->activity[i];
		struct program *program;

		for (k = 0; k < *count; k++)
			if (same_program(programs[k].first, one))
				break;
		program = &programs[k];
		if (k == *count) {
			program->first = one;
			++*count;
		}
		program->connections++;
		program->rate_bps += one->rate_bps;
		program->bytes += one->bytes;
		program->pause_bytes += one->pause_bytes;
		if (one->queue_us > program->queue_us)
			program->queue_us = one->queue_us;
		/* one connection that moves data outweighs all idle ones */
		program->holders[one->holder] += one->rate_bps > 0 ? 100000 : 1;
	}
	for (k = 0; k < *count; k++)
		choose_holder(&programs[k]);
	if (programs)
		qsort(programs, *count, sizeof(*programs), faster_first);
	return programs;
}
