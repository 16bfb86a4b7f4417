/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/vulture.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_VULTURE_GEN_H
#define _LINUX_VULTURE_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/vulture.h>

/* Common nested types */
extern const struct nla_policy vulture_addr_nl_policy[VULTURE_ADDR_REMOTE_PORT + 1];
extern const struct nla_policy vulture_credit_options_nl_policy[VULTURE_CREDIT_O_WEIGHT + 1];
extern const struct nla_policy vulture_options_nl_policy[VULTURE_O_RLEDBAT + 1];
extern const struct nla_policy vulture_paper_options_nl_policy[VULTURE_PAPER_O_OBSERVE + 1];
extern const struct nla_policy vulture_rledbat_options_nl_policy[VULTURE_RLEDBAT_O_SLOWDOWN + 1];
extern const struct nla_policy vulture_rule_nl_policy[VULTURE_R_FOREGROUND + 1];

int vulture_nl_start_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_stop_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_get_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int vulture_nl_set_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_get_defaults_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_rule_add_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_rule_del_doit(struct sk_buff *skb, struct genl_info *info);
int vulture_nl_rule_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb);

enum {
	VULTURE_NLGRP_EVENTS,
};

extern struct genl_family vulture_nl_family;

#endif /* _LINUX_VULTURE_GEN_H */
