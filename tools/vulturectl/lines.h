/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Uploads that lines of apply's file select by a port, the peer's address or the DSCP.
 *
 * One BPF program (lines.bpf.c) at the root of cgroup v2 has all such lines in its map. If the
 * lines change, a program with a map of its own replaces it at once, so that no socket ever meets
 * a part of them. As a rule of vulture does, a line acts in one network namespace.
 *
 * The precedence is that of downloads: a cgroup that `vulturectl fg` has put in the foreground
 * stays there, whatever lines say.
 */
#ifndef VULTURECTL_LINES_H
#define VULTURECTL_LINES_H

#include <stdbool.h>

#include "../libvulture/internal.h"
#include "lines_map.h"

/* names of the program and its map, of 15 characters at most */
#define LINES_PROGRAM	"lbe_lines"
#define LINES_MAP	"lbe_lines_map"

/* lines_equal() - whether two rules match the same, apart from their cgroups */
bool lines_equal(const struct vulture_rule *a, const struct vulture_rule *b);

/* lines_add() - add what a rule matches, except a cgroup; at most LINES_MAX times */
void lines_add(struct lines_map *lines, const struct vulture_rule *rule);

/* lines_has() - whether it was added */
bool lines_has(const struct lines_map *lines, const struct vulture_rule *rule);

/**
 * lines_read() - read the lines that are in force
 * @lines: without a line if there is no program
 * @pin: where the link of the program is pinned
 */
void lines_read(struct lines_map *lines, const char *pin);

/**
 * lines_apply() - put these lines in force, in this network namespace, instead of those before
 * @lines: from lines_add(); without a line the program is detached
 * @control: from upload_control(), or NULL if there is none
 * @pin: a path on a BPF file system
 * Return: 0, or -1 if no line is in force any more: upload_error() says why.
 */
int lines_apply(struct lines_map *lines, const char *control, const char *pin);

#endif /* VULTURECTL_LINES_H */
