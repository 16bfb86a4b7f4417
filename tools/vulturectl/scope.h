/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A cgroup that vulturectl bg and fg switch, for all connections that its processes open later.
 *
 *	            bg                                   fg
 *	downloads   fg's rule ends; a rule for the       bg's rule ends; a rule for the
 *	            cgroup, if none holds it             foreground, if another may match
 *	uploads     fg's program ends; the program,      bg's program ends; one that stops those
 *	            if none holds the cgroup             of the cgroups above, if there are any
 *
 * A program that somebody else has attached to the cgroup itself is switched. All that is added
 * is the cgroup's, and ends with it. bg's rule is known by its number in /run/lbe; a user's, who
 * may not write there, by the user.
 */
#ifndef VULTURECTL_SCOPE_H
#define VULTURECTL_SCOPE_H

#include <stdbool.h>

/**
 * scope_switch() - connections that are opened from now on in a cgroup and below
 * @dir: its directory
 * @background: else the foreground
 * @up: congestion control for uploads; NULL leaves what is sent alone where @background
 * Return: 0, or -1: scope_error() says which direction does not change, and why.
 */
int scope_switch(const char *dir, bool background, const char *up);

/** scope_is() - whether such connections are there already; as far as the caller may know */
bool scope_is(const char *dir, bool background, const char *up);

const char *scope_error(void);

#endif /* VULTURECTL_SCOPE_H */
