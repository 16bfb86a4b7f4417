// SPDX-License-Identifier: GPL-2.0
/*
 * The list of controllers, and their options from and to messages.
 */
#include <net/netlink.h>
#include <lbe/genl.h>

#include "lists_gen.h"
#include "netlink_gen.h"
#include "vulture.h"

const struct rwnd_controller *const rwnd_controllers[] = {
	[VULTURE_CONTROLLER_PAPER] = &rwnd_paper,
	[VULTURE_CONTROLLER_CREDIT] = &rwnd_credit,
	[VULTURE_CONTROLLER_RLEDBAT] = &rwnd_rledbat,
};

/* The attribute with a controller's options. The attributes are in the controllers' order. */
static unsigned int vulture_options_attr(u32 controller)
{
	return VULTURE_O_PAPER + controller;
}

static const struct rwnd_controller *vulture_controller(u32 controller)
{
	return controller < __VULTURE_CONTROLLER_MAX ? rwnd_controllers[controller] : NULL;
}

/* Overwrite @values with the options in one controller's nest, which its policy has admitted. On
 * error @values is not valid.
 */
static int vulture_parse_values(const struct nlattr *nest, const struct rwnd_controller *c,
				u32 *values, struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	const char *clash;
	int left;

	if (!c) {
		NL_SET_BAD_ATTR(extack, nest);
		NL_SET_ERR_MSG_MOD(extack, "this module has no such controller");
		return -EOPNOTSUPP;
	}
	nla_for_each_nested(attr, nest, left)
		values[nla_type(attr)] = nla_get_u32(attr);
	NL_SET_BAD_ATTR(extack, nest);
	clash = c->clash ? c->clash(values) : NULL;
	if (clash) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "options clash: %s must hold", clash);
		return -EINVAL;
	}
	NL_SET_BAD_ATTR(extack, NULL);
	return 0;
}

static int vulture_parse_controller(const struct nlattr *attr, u32 *controller,
				    struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;
	*controller = nla_get_u32(attr);
	if (vulture_controller(*controller))
		return 0;
	NL_SET_BAD_ATTR(extack, attr);
	NL_SET_ERR_MSG_FMT_MOD(extack, "this module does not have controller %u", *controller);
	return -ERANGE;
}

static int vulture_parse_nest(const struct nlattr *nest, struct nlattr **attrs,
			      struct netlink_ext_ack *extack)
{
	memset(attrs, 0, (VULTURE_O_MAX + 1) * sizeof(*attrs));
	return nest ? nla_parse_nested(attrs, VULTURE_O_MAX, nest, vulture_options_nl_policy,
				       extack) : 0;
}

/**
 * vulture_options_parse() - parse the options of one start or rule
 * @vn: namespace, whose defaults are used for options not given; the caller holds rules_lock
 * @nest: VULTURE_A_OPTIONS or alike, or NULL
 * @options: where to put them
 * @extack: where to put the reason of a refusal
 */
int vulture_options_parse(struct vulture_net *vn, const struct nlattr *nest,
			  struct vulture_options *options, struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[VULTURE_O_MAX + 1];
	unsigned int i;
	int err;

	err = vulture_parse_nest(nest, attrs, extack);
	if (err)
		return err;
	options->controller = vn->controller;
	err = vulture_parse_controller(attrs[VULTURE_O_CONTROLLER], &options->controller, extack);
	if (err)
		return err;
	memcpy(options->values, vn->defaults[options->controller], sizeof(options->values));
	for (i = 0; i < __VULTURE_CONTROLLER_MAX; i++) {
		const struct nlattr *values = attrs[vulture_options_attr(i)];

		if (!values)
			continue;
		if (i != options->controller) {
			NL_SET_BAD_ATTR(extack, values);
			NL_SET_ERR_MSG_FMT_MOD(extack, "options of %s, but controller %s is to run: say controller=%s",
					       rwnd_controllers[i]->name,
					       rwnd_controllers[options->controller]->name,
					       rwnd_controllers[i]->name);
			return -EINVAL;
		}
		err = vulture_parse_values(values, rwnd_controllers[i], options->values, extack);
		if (err)
			return err;
	}
	return 0;
}

/**
 * vulture_defaults_parse() - change the defaults of the namespace
 * @vn: namespace; the caller holds rules_lock
 * @nest: VULTURE_A_OPTIONS, or NULL
 * @extack: where to put the reason of a refusal
 *
 * Changes all options that are given, or on error none.
 */
int vulture_defaults_parse(struct vulture_net *vn, const struct nlattr *nest,
			   struct netlink_ext_ack *extack)
{
	u32 values[RWND_OPTIONS_MAX], controller = vn->controller;
	struct nlattr *attrs[VULTURE_O_MAX + 1];
	unsigned int i, pass;
	int err;

	err = vulture_parse_nest(nest, attrs, extack);
	if (!err)
		err = vulture_parse_controller(attrs[VULTURE_O_CONTROLLER], &controller, extack);
	if (err)
		return err;
	for (pass = 0; pass < 2; pass++) {	/* check all, then set all */
		for (i = 0; i < __VULTURE_CONTROLLER_MAX; i++) {
			const struct nlattr *given = attrs[vulture_options_attr(i)];

			if (!given)
				continue;
			memcpy(values, vn->defaults[i], sizeof(values));
			err = vulture_parse_values(given, rwnd_controllers[i], values, extack);
			if (err)
				return err;
			if (pass)
				memcpy(vn->defaults[i], values, sizeof(values));
		}
	}
	vn->controller = controller;
	return 0;
}

static int vulture_put_values(struct sk_buff *skb, u32 controller, const u32 *values)
{
	struct nlattr *nest = nla_nest_start(skb, vulture_options_attr(controller));
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 1; i < rwnd_controllers[controller]->n_options; i++)
		if (nla_put_u32(skb, i, values[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int vulture_options_put(struct sk_buff *skb, int type, const struct vulture_options *options)
{
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest || nla_put_u32(skb, VULTURE_O_CONTROLLER, options->controller) ||
	    vulture_put_values(skb, options->controller, options->values))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Caller: holds rules_lock. */
int vulture_defaults_put(struct sk_buff *skb, int type, struct vulture_net *vn)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	unsigned int i;

	if (!nest || nla_put_u32(skb, VULTURE_O_CONTROLLER, vn->controller))
		return -EMSGSIZE;
	for (i = 0; i < __VULTURE_CONTROLLER_MAX; i++)
		if (rwnd_controllers[i] && vulture_put_values(skb, i, vn->defaults[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

void vulture_defaults_init(struct vulture_net *vn)
{
	unsigned int i, k;

	BUILD_BUG_ON(ARRAY_SIZE(rwnd_controllers) != __VULTURE_CONTROLLER_MAX);
	vn->controller = VULTURE_CONTROLLER_DEFAULT;
	for (i = 0; i < __VULTURE_CONTROLLER_MAX; i++)
		for (k = 1; rwnd_controllers[i] && k < rwnd_controllers[i]->n_options; k++)
			vn->defaults[i][k] = rwnd_controllers[i]->initial[k];
}
