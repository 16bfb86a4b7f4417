// SPDX-License-Identifier: GPL-2.0
/*
 * vulture: background downloads by receive window, on the receiver alone.
 *
 * The sender of a TCP connection keeps within the window that the receiver
 * advertises. This module looks at the data of chosen connections as it comes
 * in, judges by the variation of packet intervals whether others want the path
 * (piv.h), and makes the window of the segments that go out smaller than TCP
 * itself would (policy.h). Nothing changes at the sender, in the application or
 * in the kernel's TCP.
 *
 * Does not: raise a window above TCP's own; act on connections without
 * timestamps or with signed headers; hold back what this machine sends.
 */
#include <linux/module.h>
#include <net/genetlink.h>

#include "vulture.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static int __init vulture_init(void)
{
	int err;

	err = vulture_flows_init();
	if (err)
		return err;
	err = vulture_netlink_init();
	if (err)
		vulture_flows_exit();
	return err;
}

static void __exit vulture_exit(void)
{
	vulture_flows_stop();
	vulture_netlink_exit();
	vulture_flows_exit();
}

module_init(vulture_init);
module_exit(vulture_exit);

MODULE_AUTHOR("LBE transport suite");
MODULE_DESCRIPTION("Less-than-best-effort receiving by receive window (Vulture)");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_ALIAS_GENL_FAMILY("vulture");
