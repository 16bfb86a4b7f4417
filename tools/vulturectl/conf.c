// SPDX-License-Identifier: GPL-2.0
/*
 * vulturectl apply and showconf: one file says what runs in the background on this machine.
 *
 *	/etc/lbe/background.conf   what is wanted, one item a line
 *	        |  apply
 *	        v
 *	rules, BPF programs, drop-ins      what is in force
 *	/run/lbe/applied                   the part of it that apply has made, one item a line
 *
 * apply reads the whole file before it changes anything. It then removes what an earlier
 * apply had put in force and the file no longer names, and adds what is missing. A second
 * apply of the same file changes nothing.
 */
#define _GNU_SOURCE
#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lines.h"
#include "steer.h"
#include "upload.h"
#include "weight.h"

#define CONF_FILE	"/etc/lbe/background.conf"
#define STATE_FILE	LBE_RUN "/applied"
#define PIN_DIR		"/sys/fs/bpf/lbe"
#define LINES_PIN	PIN_DIR "/lines"
#define ITEMS		LINES_MAX	/* also the kernel's limit on rules in a namespace */

enum kind { UNIT, CGROUP, USER, LOCAL_PORT, REMOTE_PORT, REMOTE, DSCP };

static const char *const kinds[] = {
	[UNIT] = "unit", [CGROUP] = "cgroup", [USER] = "user",
	[LOCAL_PORT] = "local-port", [REMOTE_PORT] = "remote-port", [REMOTE] = "remote",
	[DSCP] = "dscp",
};

/**
 * struct item - one line of the file, or of what was applied
 * @kind, @value: which connections
 * @options: weight and options as the file has them, with commas for blanks; "-" for none
 * @line: line number in the file
 * @percent: weight, in percent of an ordinary background connection's; 0: none given
 * @up, @down: the directions
 * @rule: the rule for @down; its id is 0 if it is not in force. What it matches, such as a cgroup,
 *	is matched for @up too
 * @pinned: the BPF program for @up is in force: one of its own for a kind that has a cgroup, one
 *	for all lines of the other kinds (lines.h)
 */
struct item {
	enum kind kind;
	char value[256];
	char options[256];
	unsigned int line;
	uint32_t percent;
	bool up, down;
	struct vulture_rule rule;
	bool pinned;
};

struct items {
	struct item item[ITEMS];
	unsigned int count;
};

/* Reading the file */

static const char *conf_file = CONF_FILE;
static unsigned int conf_line;

__attribute__((format(printf, 1, 2), noreturn))
static void bad(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "vulturectl: %s:%u: ", conf_file, conf_line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static void conf_check(const char *why)
{
	if (why)
		bad("%s", why);
}

/* Append a word to the item's options, which are compared and shown as text. */
static void keep_word(const char *word, struct item *item)
{
	size_t used = strlen(item->options);

	if (used + strlen(word) + 2 > sizeof(item->options))
		bad("the options are longer than %zu characters", sizeof(item->options) - 1);
	sprintf(item->options + used, "%s%s", used ? "," : "", word);
}

static void conf_option(char *word, struct item *item)
{
	char *equals = strchr(word, '=');
	uint32_t before;

	keep_word(word, item);
	*equals = '\0';
	if (!vulture_option_get(&item->rule.options, word, &before))
		bad("a line may have %s only once", word);
	conf_check(set_option(&item->rule.options, word, equals + 1));
}

static void conf_weight(const char *word, struct item *item)
{
	uint64_t percent;

	if (!word)
		bad("weight needs a number within 1 to %d", STEER_PERCENT_MAX);
	if (item->percent)
		bad("a line may have only one weight");
	conf_check(set_number(&percent, word, "weight", 1, STEER_PERCENT_MAX));
	item->percent = (uint32_t)percent;
	keep_word("weight", item);
	keep_word(word, item);
}

/* Once the line is read: refuse what contradicts itself, and set the directions. */
static void conf_whole(struct item *item, const char *direction)
{
	const struct steer steer = { .percent = item->percent };
	uint32_t weight;

	item->up = !direction || strcmp(direction, "down");
	item->down = !direction || strcmp(direction, "up");
	if (item->kind == UNIT && (!item->up || !item->down))
		bad("a unit goes to the background in both directions; leave up or down out");
	if (item->kind == UNIT && strchr(item->options, '='))
		bad("a unit takes weight N and no other option: units share the rule of a slice");
	if (!item->down && item->percent && item->kind > USER)
		bad("uploads have the weight of a cgroup, so a line by port, address or DSCP has none for them: leave out weight %u or up",
		    item->percent);
	if (!item->down && strchr(item->options, '='))
		bad("%s is an option for downloads: leave it out, or up", item->options);
	if (!item->percent)
		return;
	if (!vulture_option_get(&item->rule.options, "weight", &weight))
		bad("a line may have only one weight");
	if (item->down && !steer_first(&steer, &item->rule.options))
		bad("weight works only with the controller credit");
}

/* Set what the rule matches, except a cgroup. */
static const char *set_match(struct item *item)
{
	switch (item->kind) {
	case LOCAL_PORT:
		return set_port(&item->rule.local_port, item->value);
	case REMOTE_PORT:
		return set_port(&item->rule.remote_port, item->value);
	case REMOTE:
		return set_prefix(&item->rule, item->value);
	case DSCP:
		return set_dscp(&item->rule, item->value);
	default:
		return NULL;
	}
}

/* The drop-in sets Slice= in the section [Service], so it acts on services only. */
static void conf_unit(const char *name)
{
	const char *kind = strrchr(name, '.');

	if (!kind || kind == name || strchr(name, '/'))
		bad("'%s' is not the name of a unit, such as restic.service", name);
	if (strcmp(kind, ".service"))
		bad("unit '%s' is not a service: only units whose names end in .service can be put in the background here; name the service that a timer or a socket starts, and use cgroup DIRECTORY for a scope or a slice",
		    name);
}

/* Remove what does not change a path: repeated slashes, and those at the end. */
static void plain_path(char *path)
{
	const char *from = path;
	char *to = path;

	for (; *from; from++)
		if (*from != '/' || to == path || to[-1] != '/')
			*to++ = *from;
	if (to > path + 1 && to[-1] == '/')
		to--;
	*to = '\0';
}

static void conf_value(struct item *item)
{
	switch (item->kind) {
	case UNIT:
		conf_unit(item->value);
		break;
	case CGROUP:
		if (*item->value != '/')
			bad("cgroup '%s' is not an absolute path", item->value);
		plain_path(item->value);
		break;
	case USER:
		if (!getpwnam(item->value))
			bad("there is no user '%s'", item->value);
		break;
	default:
		conf_check(set_match(item));
	}
}

static bool same_match(const struct vulture_rule *a, const struct vulture_rule *b)
{
	return a->cgroup == b->cgroup && a->local_port == b->local_port &&
	       a->remote_port == b->remote_port && a->family == b->family &&
	       a->foreground == b->foreground && a->prefix_len == b->prefix_len &&
	       a->by_dscp == b->by_dscp && a->dscp == b->dscp &&
	       !memcmp(a->prefix, b->prefix, sizeof(a->prefix));
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Whether two items, before their cgroups are known, are about the same connections. */
static bool same_target(const struct item *a, const struct item *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind > USER)
		return lines_equal(&a->rule, &b->rule);
	return !strcmp(a->value, b->value) ||
	       (a->kind == CGROUP && same_file(a->value, b->value));
}

/* Refuse a second line about the same thing, since it is not clear which one is meant. */
static void conf_once(const struct items *items, const struct item *item)
{
	unsigned int i;

	for (i = 0; i < items->count; i++)
		if (same_target(&items->item[i], item))
			bad("%s %s is in line %u already", kinds[item->kind], item->value,
			    items->item[i].line);
}

/* KIND VALUE [up|down|both] [weight N] [NAME=VALUE]... */
static void read_item(char *line, struct items *items)
{
	struct item item = { .line = conf_line };
	char *word = strtok(line, " \t"), *direction = NULL;
	size_t kind;

	for (kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		if (!strcmp(word, kinds[kind]))
			break;
	if (kind == sizeof(kinds) / sizeof(kinds[0]))
		bad("'%s' is none of unit, cgroup, user, local-port, remote-port, remote, dscp",
		    word);
	item.kind = (enum kind)kind;
	word = strtok(NULL, " \t");
	if (!word)
		bad("%s needs a value", kinds[kind]);
	if (strlen(word) >= sizeof(item.value))
		bad("the value is longer than %zu characters", sizeof(item.value) - 1);
	strcpy(item.value, word);
	conf_value(&item);
	conf_once(items, &item);
	while ((word = strtok(NULL, " \t"))) {
		if (strchr(word, '='))
			conf_option(word, &item);
		else if (!strcmp(word, "weight"))
			conf_weight(strtok(NULL, " \t"), &item);
		else if (strcmp(word, "up") && strcmp(word, "down") && strcmp(word, "both"))
			bad("'%s' is neither up, down, both, weight N nor NAME=VALUE", word);
		else if (direction)
			bad("a line may have only one of up, down and both, and this one has %s already",
			    direction);
		else
			direction = word;
	}
	conf_whole(&item, direction);
	if (!*item.options)
		strcpy(item.options, "-");
	if (items->count == ITEMS)
		bad("more than %d lines", ITEMS);
	items->item[items->count++] = item;
}

/* Read a line without its comment. It may end in CR LF, and a byte order mark may be before the
 * first one. Another control character would end a word of the state file, or be sent to the
 * terminal with a message. Return: false at the end of the file
 */
static bool read_line(FILE *file, char *line, size_t room)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t length = 0, i;
	int byte;

	conf_line++;
	while ((byte = getc(file)) != EOF && byte != '\n') {
		if (length == room - 1)
			bad("the line is longer than %zu characters", room - 1);
		line[length++] = (char)byte;
	}
	if (byte == EOF && !length)
		return false;
	if (length && line[length - 1] == '\r')
		length--;
	line[length] = '\0';
	for (i = 0; i < length && line[i] != '#'; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			bad("character %zu of the line is the control character 0x%02x; only text, blanks and tabs are allowed",
			    i + 1, (unsigned char)line[i]);
	line[i] = '\0';
	if (conf_line == 1 && !strncmp(line, mark, strlen(mark)))
		memmove(line, line + strlen(mark), i - strlen(mark) + 1);
	return true;
}

static void read_conf(struct items *items)
{
	FILE *file = fopen(conf_file, "re");
	char line[1023];

	if (!file)
		refused("cannot read %s: %s", conf_file, strerror(errno));
	while (read_line(file, line, sizeof(line)))
		if (line[strspn(line, " \t")])
			read_item(line, items);
	if (ferror(file))
		refused("cannot read %s: %s", conf_file, strerror(errno));
	fclose(file);
}

/* The state file: what is in force in at least one direction, with a line for each item:
 * KIND VALUE OPTIONS UP DOWN CGROUP RULE-ID
 */

static void read_state(struct items *items)
{
	FILE *file = fopen(STATE_FILE, "re");
	char kind[16], value[256], options[256], *weight;
	int up, down;
	unsigned int id;
	uint64_t cgroup;

	if (!file)
		return;
	while (items->count < ITEMS &&
	       fscanf(file, "%15s %255s %255s %d %d %" SCNu64 "%u", kind, value, options, &up,
		      &down, &cgroup, &id) == 7) {
		struct item *item = &items->item[items->count++];
		size_t i;

		for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (!strcmp(kind, kinds[i]))
				item->kind = (enum kind)i;
		strcpy(item->value, value);
		strcpy(item->options, options);
		item->up = up;
		item->pinned = up;
		item->down = down;
		item->rule.id = id;
		item->rule.cgroup = cgroup;
		weight = strstr(options, "weight,");
		if (weight)
			sscanf(weight, "weight,%u", &item->percent);
		set_match(item);
	}
	fclose(file);
}

/* Replace the state file. Return: whether it is written; if not, the previous file is still there
 * and errno says why.
 */
static bool write_state(const struct items *items)
{
	char name[] = STATE_FILE ".new";
	unsigned int i;
	FILE *file;
	int result;

	file = fopen(name, "we");
	if (!file)
		return false;
	for (i = 0; i < items->count; i++) {
		const struct item *item = &items->item[i];

		if (item->kind != UNIT && !item->pinned && !item->rule.id)
			continue;
		fprintf(file, "%s %s %s %d %d %" PRIu64 " %u\n", kinds[item->kind], item->value,
			item->options, item->pinned, item->down, item->rule.cgroup, item->rule.id);
	}
	result = fclose(file);
	if (!result && !rename(name, STATE_FILE))
		return true;
	result = errno;
	unlink(name);
	errno = result;
	return false;
}

/* Let only one apply run at a time. The lock is held until this process ends. */
static void lock_state(void)
{
	int fd;

	mkdir(LBE_RUN, 0755);
	fd = open(LBE_RUN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		flock(fd, LOCK_EX);
}

/* Names of slices, cgroups and pins */

#define SLICE_CHARS	32

/* The slice that all units of one weight share. */
static const char *item_slice(const struct item *item, char slice[SLICE_CHARS])
{
	if (item->percent)
		snprintf(slice, SLICE_CHARS, "background_%u.slice", item->percent);
	else
		strcpy(slice, "background.slice");
	return slice;
}

/* The slice that systemd starts when the user logs in. */
static void user_slice(const struct item *item, char slice[SLICE_CHARS])
{
	const struct passwd *user = getpwnam(item->value);

	*slice = '\0';
	if (user)
		snprintf(slice, SLICE_CHARS, "user-%u.slice", user->pw_uid);
}

/* The directory of the item's cgroup; "" if it has none. */
static void item_cgroup(const struct item *item, char *dir, size_t room)
{
	char root[512], slice[SLICE_CHARS];

	find_cgroup_root(root, sizeof(root));
	*dir = '\0';
	if (item->kind == CGROUP) {
		snprintf(dir, room, "%s", item->value);
	} else if (item->kind == UNIT && *root) {
		snprintf(dir, room, "%s/%s", root, item_slice(item, slice));
	} else if (item->kind == USER && *root) {
		user_slice(item, slice);
		if (*slice)
			snprintf(dir, room, "%s/user.slice/%s", root, slice);
	}
}

/* The path at which the link of the item's BPF program is pinned. It has the cgroup's number, since
 * a cgroup's name may have characters that a file name on a BPF file system may not have.
 */
static void item_pin(const struct item *item, char *pin, size_t room)
{
	snprintf(pin, room, PIN_DIR "/%s-%" PRIu64, kinds[item->kind], item->rule.cgroup);
}

/* Putting it in force */

/**
 * struct change - what apply did, and what it could not do
 * @added, @kept: number of items that are in force, with something new and as they were
 * @removed: number of items of which something has been taken away
 * @failed: number of items of which at least one direction is not in force
 * @reload: a drop-in was written or removed: systemd must reload its units
 */
struct change {
	unsigned int added, removed, kept, failed;
	bool reload;
};

/* Whether systemd runs. /run/systemd/system says nothing: an earlier apply may have made it. */
static bool has_systemd(void)
{
	return !access("/run/systemd/private", F_OK);
}

/* Whether two items are one line. Its directions may have changed since it was applied. */
static bool same(const struct item *a, const struct item *b)
{
	return a->kind == b->kind && !strcmp(a->value, b->value) &&
	       !strcmp(a->options, b->options);
}

struct search {
	uint32_t id;
	const struct vulture_rule *wanted;
	bool found;
};

static int search_rule(const struct vulture_rule *rule, void *arg)
{
	struct search *search = arg;

	search->found |= rule->id == search->id && same_match(rule, search->wanted);
	return 0;
}

/* Whether rule @id is still there. If the module has been reloaded since, the number may belong to
 * a rule that matches something else.
 */
static bool rule_lives(uint32_t id, const struct vulture_rule *wanted)
{
	struct search search = { .id = id, .wanted = wanted };

	return id && v && vulture_rule_list(v, search_rule, &search) >= 0 && search.found;
}

/* The path of the item's systemd drop-in; "" if it needs none. */
static void drop_in_path(const struct item *item, char *path, size_t room)
{
	char slice[SLICE_CHARS];
	const char *unit = NULL;

	if (item->kind == UNIT) {
		unit = item->value;
	} else if (item->kind == USER) {
		user_slice(item, slice);
		unit = slice;
	}
	*path = '\0';
	if (unit && *unit)
		snprintf(path, room, "/run/systemd/system/%s.d/50-lbe-background.conf", unit);
}

/* The drop-in of a unit puts it into its slice. The drop-in of a user's slice keeps the slice after
 * the user's logout, so that the rule and program of its cgroup are still there at the next login.
 */
static void write_drop_in_text(const struct item *item, FILE *file)
{
	char slice[SLICE_CHARS];

	fputs("# written by vulturectl apply\n", file);
	if (item->kind == UNIT)
		fprintf(file, "[Service]\nSlice=%s\n", item_slice(item, slice));
	else
		fputs("[Unit]\nStopWhenUnneeded=no\n", file);
}

/* Return: whether the drop-in is there. A new one sets @change->reload. */
static bool write_drop_in(const struct item *item, struct change *change)
{
	char path[512], *slash;
	FILE *file;

	drop_in_path(item, path, sizeof(path));
	if (!access(path, F_OK))
		return true;
	slash = strrchr(path, '/');
	*slash = '\0';
	mkdir("/run/systemd", 0755);
	mkdir("/run/systemd/system", 0755);
	mkdir(path, 0755);
	*slash = '/';
	file = fopen(path, "we");
	if (file)
		write_drop_in_text(item, file);
	if (!file || fclose(file)) {
		say("%s: cannot write %s: %s", item->value, path, strerror(errno));
		unlink(path);
		return false;
	}
	change->reload = true;
	return true;
}

/* Remove the rule of an applied item. Return: whether there was one */
static bool drop_rule(const struct item *item)
{
	return rule_lives(item->rule.id, &item->rule) && !vulture_rule_del(v, item->rule.id);
}

/* Remove the BPF program of an applied item. That of the lines without a cgroup is replaced by
 * apply_lines(). Return: whether there was one
 */
static bool drop_pin(const struct item *item)
{
	char pin[128];

	if (item->kind > USER)
		return item->pinned;
	if (item->percent && item->pinned)
		weight_clear(item->rule.cgroup);
	item_pin(item, pin, sizeof(pin));
	return item->pinned && !unlink(pin);
}

/* Remove what was applied for an item. Return: whether a drop-in was removed */
static bool remove_item(const struct item *item)
{
	char path[512];

	drop_rule(item);
	drop_pin(item);
	drop_in_path(item, path, sizeof(path));
	return *path && !unlink(path);
}

static bool apply_down(struct item *item, const struct item *before)
{
	if (before && rule_lives(before->rule.id, &item->rule)) {
		item->rule.id = before->rule.id;
		return true;
	}
	if (!v) {
		say("%s %s: downloads stay in the foreground: %s", kinds[item->kind], item->value,
		    vulture_error(NULL));
		return false;
	}
	if (vulture_rule_add(v, &item->rule) < 0) {
		say("%s %s: %s", kinds[item->kind], item->value, vulture_error(v));
		return false;
	}
	return true;
}

/* Give the uploads of a cgroup their weight, for each connection, as downloads have it. Without one
 * they are in the background all the same.
 */
static void apply_weight(const struct item *item, const char *control)
{
	uint32_t weight = steer_weight(item->percent, 1, 0, 0);

	if (!item->percent)
		return;
	if (control && strcmp(control, "lbe"))
		say("%s %s: uploads have no weight: %s has none", kinds[item->kind], item->value,
		    control);
	else if (weight_set(0, item->rule.cgroup, weight, true))
		say("%s %s: uploads have no weight: %s", kinds[item->kind], item->value,
		    weight_error());
}

static bool apply_up(struct item *item, const struct item *before, const char *dir,
		     const char *control)
{
	char pin[128];

	item_pin(item, pin, sizeof(pin));
	if (before && before->pinned && before->rule.cgroup == item->rule.cgroup &&
	    !access(pin, F_OK)) {
		item->pinned = true;
		return true;
	}
	if (before)
		drop_pin(before);
	unlink(pin);
	if (!control) {
		say("%s %s: uploads stay in the foreground: none of %s can be used",
		    kinds[item->kind], item->value, upload_controls());
		return false;
	}
	if (upload_attach(dir, control, pin) < 0) {
		say("%s %s: uploads stay in the foreground: %s", kinds[item->kind], item->value,
		    upload_error());
		return false;
	}
	item->pinned = true;
	return true;
}

/* Put in force, for uploads, the items that have no cgroup. @items: those wanted, of which each is
 * marked as pinned or not. Return: whether it was done
 */
static bool apply_lines(struct items *items, const char *control)
{
	static struct lines_map lines;
	unsigned int i;
	bool good;

	memset(&lines, 0, sizeof(lines));
	for (i = 0; i < items->count; i++)
		if (items->item[i].kind > USER && items->item[i].up)
			lines_add(&lines, &items->item[i].rule);
	good = !lines_apply(&lines, control, LINES_PIN);
	if (!good && lines.count)
		say("uploads of the lines by port, remote or dscp stay in the foreground: %s; write down in these lines to have downloads alone",
		    upload_error());
	else if (!good)
		say("%s", upload_error());
	for (i = 0; i < items->count; i++)
		if (items->item[i].kind > USER)
			items->item[i].pinned = good && items->item[i].up;
	return good;
}

/* Correct what the state file says of the uploads of items without a cgroup: an earlier apply may
 * have been killed, or somebody else has removed the program.
 */
static void see_lines(struct items *applied)
{
	static struct lines_map lines;
	unsigned int i;

	lines_read(&lines, LINES_PIN);
	for (i = 0; i < applied->count; i++)
		if (applied->item[i].kind > USER)
			applied->item[i].pinned = lines_has(&lines, &applied->item[i].rule);
}

/* Units of one slice share its rule and program, which are kept with the first of these units. */
static bool first_of_slice(const struct items *items, const struct item *item)
{
	const struct item *one = items->item;

	while (one->kind != UNIT || one->percent != item->percent)
		one++;
	return one == item;
}

/* Make the cgroup of a slice before systemd starts the slice; systemd then uses this cgroup. */
static void make_slice(const char *dir)
{
	char above[1024], *slash;

	snprintf(above, sizeof(above), "%s", dir);
	slash = strrchr(above, '/');
	if (slash)
		*slash = '\0';
	mkdir(above, 0755);
	mkdir(dir, 0755);
}

static void apply_item(const struct items *wanted, struct item *item, const struct item *before,
		       const char *control, struct change *change)
{
	bool slice = item->kind == UNIT || (item->kind == USER && has_systemd());
	const char *why = NULL;
	char dir[1024];
	bool good = true, dropped = false, same;

	if (slice)
		good = write_drop_in(item, change);
	if (item->kind == UNIT && !first_of_slice(wanted, item)) {
		/* it was the first one; the one that is now has a rule already */
		if (before)
			drop_rule(before);
		change->kept += good && before;
		change->added += good && !before;
		change->failed += !good;
		return;
	}
	item_cgroup(item, dir, sizeof(dir));
	if (slice && *dir)
		make_slice(dir);
	errno = 0;
	if (item->kind <= USER)
		why = *dir ? set_cgroup(&item->rule.cgroup, dir) :
			     "there is no v2 hierarchy of cgroups";
	if (why) {
		say("%s %s: %s%s", kinds[item->kind], item->value, why,
		    errno == ENOENT ? "; apply again once it is there" : "");
		if (before) {
			drop_rule(before);
			drop_pin(before);
		}
		change->failed++;
		return;
	}
	if (item->down)
		good &= apply_down(item, before);
	else if (before)
		dropped |= drop_rule(before);
	if (item->up)
		good &= item->kind > USER ? item->pinned : apply_up(item, before, dir, control);
	else if (before)
		dropped |= drop_pin(before);
	if (item->kind <= USER && item->pinned)
		apply_weight(item, control);
	same = before && before->rule.cgroup == item->rule.cgroup &&
	       (!item->down || before->rule.id == item->rule.id) &&
	       (!item->up || before->pinned);
	change->removed += dropped;
	change->failed += !good;
	change->kept += good && same;
	change->added += good && !same;
}

static const struct item *find_item(const struct items *items, const struct item *like)
{
	unsigned int i;

	for (i = 0; i < items->count; i++)
		if (same(&items->item[i], like))
			return &items->item[i];
	return NULL;
}

static void read_words(int argc, char **argv)
{
	if (argc > 2)
		wrong("%s takes one file at most", command_name);
	if (argc == 2)
		conf_file = argv[1];
}

/* Record an item as in force before the next one is put in force, so that nothing is left without a
 * record if apply is killed.
 */
static void keep_item(struct items *applied, const struct item *item, const char *control)
{
	struct item *known = (struct item *)find_item(applied, item);

	if (!known)
		known = &applied->item[applied->count++];
	*known = *item;
	if (write_state(applied))
		return;
	say("cannot write %s: %s", STATE_FILE, strerror(errno));
	remove_item(item);
	known->up = false;
	apply_lines(applied, control);
	exit(1);
}

int do_apply(int argc, char **argv)
{
	static struct items wanted, applied;
	struct change change = {};
	const char *control;
	unsigned int i;
	bool good;

	read_words(argc, argv);
	read_conf(&wanted);
	if (geteuid())
		refused("apply needs root");
	lock_state();
	read_state(&applied);
	if (!write_state(&applied))
		refused("cannot write %s: %s", STATE_FILE, strerror(errno));
	mkdir(PIN_DIR, 0700);
	control = upload_control();
	see_lines(&applied);
	good = apply_lines(&wanted, control);
	for (i = 0; i < applied.count;) {
		if (find_item(&wanted, &applied.item[i])) {
			i++;
			continue;
		}
		change.reload |= remove_item(&applied.item[i]);
		change.removed++;
		applied.item[i] = applied.item[--applied.count];
	}
	for (i = 0; i < wanted.count; i++) {
		apply_item(&wanted, &wanted.item[i], find_item(&applied, &wanted.item[i]), control,
			   &change);
		keep_item(&applied, &wanted.item[i], control);
	}
	if (!write_state(&wanted))
		refused("cannot write %s: %s", STATE_FILE, strerror(errno));
	if (change.reload && has_systemd() && system("systemctl daemon-reload"))
		say("systemctl daemon-reload failed");
	if (json)
		printf("{\"added\": %u, \"kept\": %u, \"removed\": %u, \"failed\": %u}\n",
		       change.added, change.kept, change.removed, change.failed);
	else
		printf("%u added, %u kept, %u removed, %u failed\n", change.added, change.kept,
		       change.removed, change.failed);
	return change.failed || !good ? 1 : 0;
}

/* Print what is in force, in the format that apply reads. */
int do_showconf(int argc, char **argv)
{
	static struct items applied;
	unsigned int i;

	if (argc > 1)
		wrong("showconf takes no argument '%s'", argv[1]);
	read_state(&applied);
	for (i = 0; i < applied.count; i++) {
		const struct item *item = &applied.item[i];
		const char *direction = "";
		char options[sizeof(item->options)], *comma;

		if (item->kind != UNIT)
			direction = item->pinned && item->rule.id ? " both" :
				    item->pinned ? " up" : " down";
		strcpy(options, strcmp(item->options, "-") ? item->options : "");
		for (comma = options; (comma = strchr(comma, ',')); )
			*comma = ' ';
		printf("%s %s%s%s%s\n", kinds[item->kind], item->value, direction,
		       *options ? " " : "", options);
	}
	return 0;
}
