// SPDX-License-Identifier: GPL-2.0
/*
 * Offloads of a device, and power-off of the machine.
 *
 * Segmentation offloads make packets larger than those on a wire: with them a
 * queue of 86 packets may hold more than 86 * 1500 bytes.  The ethtool flags
 * are not enough: since Linux 4.17 TCP builds large packets for every device,
 * and the core splits them below the queueing discipline.  gso_max_segs=1 makes
 * TCP build single segments.  Checksum offload changes no packet and stays on.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netcfg.h"

#define GSO_SEGS_ON	65535	/* the kernel's default, GSO_MAX_SEGS */

static const struct {
	const char *name;
	u32 command;
} offloads[] = {
	{ "tso", ETHTOOL_STSO },
	{ "gso", ETHTOOL_SGSO },
	{ "gro", ETHTOOL_SGRO },
};

int power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	fprintf(stderr, "lbe-agent: poweroff: %s\n", strerror(errno));
	return 1;
}

static int ethtool(int fd, const char *dev, u32 command, u32 *value)
{
	struct ethtool_value v = { .cmd = command, .data = *value };
	struct ifreq r = { .ifr_data = (char *)&v };

	strncpy(r.ifr_name, dev, sizeof(r.ifr_name) - 1);
	if (ioctl(fd, SIOCETHTOOL, &r))
		return -errno;
	*value = v.data;
	return 0;
}

static int set_lro(int fd, const char *dev, bool on)
{
	u32 flags = 0;
	int err = ethtool(fd, dev, ETHTOOL_GFLAGS, &flags);

	if (err || !!(flags & ETH_FLAG_LRO) == on)
		return err;
	flags ^= ETH_FLAG_LRO;
	err = ethtool(fd, dev, ETHTOOL_SFLAGS, &flags);
	/* Few devices have LRO; "on" is no error for the others. */
	return on && (err == -EINVAL || err == -EOPNOTSUPP) ? 0 : err;
}

static int set_gso_segs(const char *dev, u32 segs)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg link;
		struct rtattr attr;
		u32 value;
	} request = {
		.h.nlmsg_len = sizeof(request),
		.h.nlmsg_type = RTM_NEWLINK,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.link.ifi_index = if_nametoindex(dev),
		.attr.rta_type = IFLA_GSO_MAX_SEGS,
		.attr.rta_len = RTA_LENGTH(sizeof(u32)),
		.value = segs,
	};
	union {
		struct nlmsghdr h;
		char bytes[4096];
	} answer;
	int fd, err = 0;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (send(fd, &request, sizeof(request), 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		err = -errno;
	else if (answer.h.nlmsg_type == NLMSG_ERROR)
		err = ((struct nlmsgerr *)NLMSG_DATA(&answer.h))->error;
	close(fd);
	return err;
}

static int complain(const char *dev, const char *what, int err)
{
	fprintf(stderr, "lbe-agent: offload %s: %s: %s\n", dev, what,
		strerror(-err));
	return 1;
}

int set_offload(const char *dev, bool on)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *what = NULL;
	int err = 0;

	if (fd < 0)
		return complain(dev, "socket", -errno);
	for (u32 i = 0; i < ARRAY_SIZE(offloads) && !err; i++) {
		u32 value = on;

		what = offloads[i].name;
		err = ethtool(fd, dev, offloads[i].command, &value);
	}
	if (!err) {
		what = "lro";
		err = set_lro(fd, dev, on);
	}
	close(fd);
	if (!err) {
		what = "gso_max_segs";
		err = set_gso_segs(dev, on ? GSO_SEGS_ON : 1);
	}
	return err ? complain(dev, what, err) : 0;
}
