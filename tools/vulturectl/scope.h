/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vulturectl bg and fg switch a cgroup, for all connections that its processes open later.
 *
 *	            bg                                   fg
 *	downloads   deletes fg's rule; adds a rule,      deletes bg's rule; adds a foreground
 *	            unless another rule already          rule, if another rule may match
 *	            holds the cgroup
 *	uploads     detaches fg's program; attaches      detaches bg's program; attaches one in
 *	            one, unless a program of a           foreground mode, if a cgroup above has
 *	            cgroup above does the same           a program, also one for lines (lines.h)
 *
 * A program that another process (run, hold or apply) has attached to the cgroup itself is not
 * detached: its mode is changed. What bg and fg add belongs to the cgroup and ends with it. bg's
 * rule is recognised by its number in /run/lbe; if a user added it, who may not write there, by
 * its owner.
 */
#ifndef VULTURECTL_SCOPE_H
#define VULTURECTL_SCOPE_H

#include <stdbool.h>

/**
 * scope_switch() - switch connections that a cgroup and those below it open from now on
 * @dir: directory of the cgroup
 * @background: to the background; else to the foreground
 * @up: congestion control for uploads; NULL with @background leaves uploads as they are
 * Return: 0, or -1: scope_error() says which direction does not change, and why.
 */
int scope_switch(const char *dir, bool background, const char *up);

/** scope_is() - whether all such connections already are where @background says, as far as the
 * caller may know
 */
bool scope_is(const char *dir, bool background, const char *up);

/** scope_up() - the mode of a cgroup, or of the nearest one above that has a program. Return: enum
 * upload_mode, or -1
 */
int scope_up(const char *dir);

/** scope_switch_down() - scope_switch() for downloads alone */
int scope_switch_down(const char *dir, bool background);

/** scope_is_held() - whether the cgroup, or one above, puts all of them in the background; if not,
 * rules and lines for a port, a prefix or a DSCP may still take some
 */
bool scope_is_held(const char *dir);

/**
 * scope_exempt() - keep what a cgroup opens from now on in the foreground, though a cgroup above
 *	it, or a rule for any cgroup, would put it in the background
 * @dir: directory of a cgroup that has no rule and no program of its own
 * @up: congestion control that this process attaches programs with, or NULL
 *
 * Needs root. Adds nothing if nothing would put it there. Return: 0, or -1: scope_error().
 */
int scope_exempt(const char *dir, const char *up);

/** scope_exempt_end() - undo it. Return: 0, or -1: scope_error(). */
int scope_exempt_end(const char *dir);

const char *scope_error(void);

#endif /* VULTURECTL_SCOPE_H */
