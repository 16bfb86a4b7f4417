/* SPDX-License-Identifier: GPL-2.0 */
/* Small commands for the guest's scripts. */
#ifndef LBE_AGENT_NETCFG_H
#define LBE_AGENT_NETCFG_H

#include "types.h"

int power_off(void);		/* returns only if it failed */
int set_offload(const char *dev, bool on);

#endif
