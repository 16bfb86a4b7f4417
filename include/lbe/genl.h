/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Families of generic netlink as the kernel's generator writes them, also for kernels before those
 * that the generator is for. To be included before the generated header; the build includes it
 * before the generated source, and defines what it found in the kernel's headers (vulture/Kbuild):
 *
 *	LBE_GENL_SPLIT_OPS		operations are split into do and dump (6.2)
 *	LBE_POLICY_RANGE_NOT_CONST	ranges in policies are not const (until 6.7)
 *
 * Can be removed when 6.7 is the oldest kernel.
 *
 *	lbe_genl(family)		what the kernel's functions take
 *	lbe_genl_register(family)
 */
#ifndef LBE_GENL_H
#define LBE_GENL_H

#include <linux/bug.h>
#include <net/genetlink.h>

#ifdef LBE_POLICY_RANGE_NOT_CONST
#undef NLA_POLICY_FULL_RANGE
#define NLA_POLICY_FULL_RANGE(tp, _range) {				\
	.type = NLA_ENSURE_UINT_OR_BINARY_TYPE(tp),			\
	.validation_type = NLA_VALIDATE_RANGE_PTR,			\
	.range = (typeof(((struct nla_policy *)0)->range))(_range),	\
}
#endif

#ifdef LBE_GENL_SPLIT_OPS

#define lbe_genl(family)		(family)
#define lbe_genl_register(family)	genl_register_family(family)

#else

/* Operations of one family. */
#define LBE_GENL_OPS_MAX	16

/* One operation: either doit or dumpit, each with the policy of its own request. */
struct genl_split_ops {
	int (*doit)(struct sk_buff *skb, struct genl_info *info);
	int (*dumpit)(struct sk_buff *skb, struct netlink_callback *cb);
	const struct nla_policy *policy;
	unsigned int maxattr;
	u8 cmd;
	u8 flags;
};

/* The fields that generated sources fill in, and the family that the kernel gets. */
struct lbe_genl_family {
	char name[GENL_NAMSIZ];
	unsigned int version;
	u8 netnsok:1;
	u8 parallel_ops:1;
	u8 n_split_ops;
	u8 n_mcgrps;
	const struct genl_split_ops *split_ops;
	const struct genl_multicast_group *mcgrps;
	struct module *module;

	struct genl_family plain;
	struct genl_ops ops[LBE_GENL_OPS_MAX];
};

/* A dump of the same command comes after its doit, and uses the policy of that. */
static inline int lbe_genl_register(struct lbe_genl_family *f)
{
	struct genl_family *plain = &f->plain;
	unsigned int i, n = 0;

	for (i = 0; i < f->n_split_ops; i++) {
		const struct genl_split_ops *split = &f->split_ops[i];

		if (!n || f->ops[n - 1].cmd != split->cmd) {
			if (WARN_ON(n == LBE_GENL_OPS_MAX))
				return -EINVAL;
			f->ops[n].cmd = split->cmd;
			f->ops[n].flags = split->flags & ~(GENL_CMD_CAP_DO | GENL_CMD_CAP_DUMP);
			f->ops[n].policy = split->policy;
			f->ops[n].maxattr = split->maxattr;
			n++;
		}
		if (split->doit)
			f->ops[n - 1].doit = split->doit;
		else
			f->ops[n - 1].dumpit = split->dumpit;
	}
	strscpy(plain->name, f->name, sizeof(plain->name));
	plain->version = f->version;
	plain->netnsok = f->netnsok;
	plain->parallel_ops = f->parallel_ops;
	plain->ops = f->ops;
	plain->n_ops = n;
	plain->mcgrps = f->mcgrps;
	plain->n_mcgrps = f->n_mcgrps;
	plain->module = f->module;
	return genl_register_family(plain);
}

#define lbe_genl(family)	(&(family)->plain)

/* From here on, for the generated files. */
#define genl_family		lbe_genl_family

#endif /* LBE_GENL_SPLIT_OPS */

#endif /* LBE_GENL_H */
