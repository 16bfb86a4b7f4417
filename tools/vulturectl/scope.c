// SPDX-License-Identifier: GPL-2.0
/* Switches the connections that the processes of a cgroup open later. */
#include "scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "upload.h"

static char error_text[700];

const char *scope_error(void)
{
	return error_text;
}

static int failed(const char *what, const char *why)
{
	snprintf(error_text, sizeof(error_text), "%s: %s%s", what, why,
		 geteuid() ? "; run this as root" : "");
	return -1;
}

/* Replace @dir by the cgroup above it, up to the root. Return: whether there was one */
static bool go_up(char dir[CGROUP_CHARS])
{
	char *slash = strrchr(dir, '/');
	char procs[CGROUP_CHARS + 16];

	if (!slash || slash == dir)
		return false;
	*slash = '\0';
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	return !access(procs, F_OK);
}

static uint64_t number_of(const char *dir)
{
	struct stat st;

	return stat(dir, &st) ? 0 : st.st_ino;
}

/* Downloads: rules */

struct list {
	struct vulture_rule *rule;
	size_t n;
	bool no_memory;
};

static int keep_rule(const struct vulture_rule *rule, void *arg)
{
	struct list *list = arg;
	struct vulture_rule *grown;

	grown = realloc(list->rule, (list->n + 1) * sizeof(*grown));
	if (!grown) {
		list->no_memory = true;
		return 1;
	}
	list->rule = grown;
	list->rule[list->n++] = *rule;
	return 0;
}

/* Read all rules. This returns on failure, unlike all_rules(): a guard that ended would leave its
 * cgroup. Return: 0, or -1 with an empty list
 */
static int read_rules(struct list *list)
{
	*list = (struct list){};
	if (vulture_rule_list(v, keep_rule, list) >= 0 && !list->no_memory)
		return 0;
	failed("downloads", list->no_memory ? "out of memory" : vulture_error(v));
	free(list->rule);
	*list = (struct list){};
	return -1;
}

/* Whether a rule matches all connections of its cgroup. */
static bool takes_all(const struct vulture_rule *rule)
{
	return rule->cgroup && !rule->local_port && !rule->remote_port && !rule->family &&
	       !rule->by_dscp;
}

static bool has_rule(const struct list *list, uint64_t cgroup, bool foreground)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (takes_all(&list->rule[i]) && list->rule[i].cgroup == cgroup &&
		    list->rule[i].foreground == foreground)
			return true;
	return false;
}

/* As in the kernel, the nearest cgroup with a rule decides; if it has rules of both kinds, the
 * foreground rule does.
 */
static bool down_is_background(const struct list *list, const char *dir)
{
	char at[CGROUP_CHARS];

	snprintf(at, sizeof(at), "%s", dir);
	do {
		uint64_t cgroup = number_of(at);

		if (has_rule(list, cgroup, true))
			return false;
		if (has_rule(list, cgroup, false))
			return true;
	} while (go_up(at));
	return false;
}

/* Whether there is a rule for the background for this cgroup itself; 0: for any cgroup. */
static bool has_background(const struct list *list, uint64_t cgroup)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (!list->rule[i].foreground && list->rule[i].cgroup == cgroup)
			return true;
	return false;
}

/* Whether some rule may put a connection of the cgroup in the background; @unless_hidden: and is
 * not hidden by a rule for the foreground, of its own cgroup or of a nearer one.
 */
static bool may_match(const struct list *list, const char *dir, bool unless_hidden)
{
	char at[CGROUP_CHARS];

	snprintf(at, sizeof(at), "%s", dir);
	do {
		uint64_t cgroup = number_of(at);

		if (unless_hidden && has_rule(list, cgroup, true))
			return false;
		if (has_background(list, cgroup))
			return true;
	} while (go_up(at));
	return has_background(list, 0);
}

static void record_path(uint64_t cgroup, char *path, size_t room)
{
	snprintf(path, room, LBE_RUN "/bg-%" PRIu64, cgroup);
}

static uint32_t recorded(uint64_t cgroup)
{
	uint32_t id = 0;
	char path[64];
	FILE *file;

	record_path(cgroup, path, sizeof(path));
	file = fopen(path, "re");
	if (file && fscanf(file, "%" SCNu32, &id) != 1)
		id = 0;
	if (file)
		fclose(file);
	return id;
}

/* Delete fg's rules (@foreground) or bg's rules of a cgroup, also from the list. */
static int drop(struct list *list, uint64_t cgroup, bool foreground)
{
	uint32_t id = foreground ? 0 : recorded(cgroup);
	char path[64];
	size_t i, kept = 0;
	int result = 0;

	for (i = 0; i < list->n; i++) {
		const struct vulture_rule *rule = &list->rule[i];
		bool mine = rule->id == id || (rule->owned && rule->uid == geteuid());

		if (takes_all(rule) && rule->cgroup == cgroup && rule->foreground == foreground &&
		    (foreground || mine)) {
			if (!vulture_rule_del(v, rule->id) || errno == ENOENT)
				continue;
			result = -1;
		}
		list->rule[kept++] = *rule;
	}
	list->n = kept;
	record_path(cgroup, path, sizeof(path));
	if (!foreground)
		unlink(path);
	return result;
}

static int add(const char *dir, uint64_t cgroup, bool foreground)
{
	struct vulture_rule rule = { .cgroup = cgroup, .foreground = foreground };
	char path[64];
	FILE *file;
	int result;

	rule.by_fd = geteuid();
	if (rule.by_fd)
		rule.cgroup_fd = cgroup_descriptor(dir);
	result = vulture_rule_add(v, &rule);
	if (rule.by_fd)
		close(rule.cgroup_fd);
	if (result < 0 || foreground)
		return result;
	mkdir(LBE_RUN, 0755);
	record_path(cgroup, path, sizeof(path));
	file = fopen(path, "we");
	if (file) {
		fprintf(file, "%u\n", rule.id);
		fclose(file);
	}
	return 0;
}

int scope_switch_down(const char *dir, bool background)
{
	uint64_t cgroup = number_of(dir);
	struct list list;
	int result;

	if (read_rules(&list))
		return -1;
	result = drop(&list, cgroup, background);
	if (!result && background && !down_is_background(&list, dir))
		result = add(dir, cgroup, false);
	else if (!result && !background && !has_rule(&list, cgroup, true) &&
		 may_match(&list, dir, false))
		result = add(dir, cgroup, true);
	free(list.rule);
	return result < 0 ? failed("downloads", vulture_error(v)) : 0;
}

/* Uploads: programs */

/* The mode of the nearest cgroup above that has a program; UPLOAD_NONE if none has one. */
static int mode_above(const char *dir)
{
	char at[CGROUP_CHARS];
	int mode = UPLOAD_NONE;

	snprintf(at, sizeof(at), "%s", dir);
	while (mode == UPLOAD_NONE && go_up(at))
		mode = upload_mode(at);
	return mode;
}

static int switch_up(const char *dir, bool background, const char *up)
{
	int above = mode_above(dir);
	/* lines of apply take some connections of a cgroup, so only fg has to do something */
	bool attach = background ? above != UPLOAD_BACKGROUND : above != UPLOAD_NONE;

	if (above < 0 || upload_switch(dir, background ? UPLOAD_BACKGROUND : UPLOAD_FOREGROUND,
				       attach, up ? up : ""))
		return failed("uploads", upload_error());
	return 0;
}

int scope_switch(const char *dir, bool background, const char *up)
{
	int result = 0;

	if (up || !background)
		result = switch_up(dir, background, up);
	if (v && scope_switch_down(dir, background))
		result = -1;
	return result;
}

int scope_up(const char *dir)
{
	int mode = upload_mode(dir);

	return mode == UPLOAD_NONE ? mode_above(dir) : mode;
}

bool scope_is(const char *dir, bool background, const char *up)
{
	bool down = background;
	struct list list;
	int mode;

	if (v && !read_rules(&list)) {
		down = background ? down_is_background(&list, dir) : !may_match(&list, dir, true);
		free(list.rule);
	}
	mode = scope_up(dir);
	if (!down || mode < 0)
		return down;
	if (background)
		return !up || mode == UPLOAD_BACKGROUND;
	return mode == UPLOAD_NONE || mode == UPLOAD_FOREGROUND;
}

bool scope_is_held(const char *dir)
{
	bool down = false;
	struct list list;

	if (v && !read_rules(&list)) {
		down = down_is_background(&list, dir);
		free(list.rule);
	}
	return down || scope_up(dir) == UPLOAD_BACKGROUND;
}

int scope_exempt(const char *dir, const char *up)
{
	return scope_switch(dir, false, up);
}

int scope_exempt_end(const char *dir)
{
	struct list list;
	int result = 0;

	/* only a program without a link, as scope_exempt() attaches it, is detached */
	if (upload_switch(dir, UPLOAD_BACKGROUND, false, ""))
		result = failed("uploads", upload_error());
	if (!v)
		return result;
	if (read_rules(&list))
		return -1;
	if (drop(&list, number_of(dir), true))
		result = failed("downloads", vulture_error(v));
	free(list.rule);
	return result;
}
