// SPDX-License-Identifier: GPL-2.0
/* shred_hint: a packet's TOS byte or traffic class, its protocol, and its output interface. */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/dsfield.h>
#include <net/ipv6.h>

#include "writer.h"

u8 shred_packet_tos(const struct sk_buff *skb, int family)
{
	return family == NFPROTO_IPV4 ? ip_hdr(skb)->tos : ipv6_get_dsfield(ipv6_hdr(skb));
}

/* IPv6: the protocol after the extension headers; negative if it cannot be determined. */
int shred_packet_protocol(const struct sk_buff *skb, int family)
{
	unsigned int at = 0;

	return family == NFPROTO_IPV4 ? ip_hdr(skb)->protocol :
					ipv6_find_hdr(skb, &at, -1, NULL, NULL);
}

/* Write a hint and count it; no change if there is no memory for a private copy of the header. */
void shred_packet_write(struct shred_hint_net *hn, struct sk_buff *skb, int family, u8 mode,
			u32 hint, enum shred_hint_count what)
{
	int header = family == NFPROTO_IPV4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	u8 tos = shred_hint_write(mode, shred_packet_tos(skb, family), hint);

	if (skb_ensure_writable(skb, skb_network_offset(skb) + header))
		return;
	if (family == NFPROTO_IPV4)
		ipv4_change_dsfield(ip_hdr(skb), 0, tos);
	else
		ipv6_change_dsfield(ipv6_hdr(skb), 0, tos);
	shred_hint_count(hn, what);
}

/* Called under RCU, from netfilter hooks. */
bool shred_device_wanted(const struct shred_hint_net *hn, const struct net_device *dev)
{
	const struct shred_devices *devices = rcu_dereference(hn->devices);
	unsigned int i;

	if (likely(!devices))
		return true;
	for (i = 0; i < devices->n; i++)
		if (!strncmp(devices->names[i], dev->name, IFNAMSIZ))
			return true;
	return false;
}
