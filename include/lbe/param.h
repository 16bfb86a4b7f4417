/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Module parameters that are numbers with a range. A value out of range is refused
 * with a line in the kernel's log, and the parameter keeps its value.
 *
 *	LBE_PARAM(delta_permille, 150, 10, 900, "what it is, unit");
 *	... READ_ONCE(delta_permille.value) ...
 */
#ifndef LBE_PARAM_H
#define LBE_PARAM_H

#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

/**
 * struct lbe_range - a number with its bounds
 * @value: present value
 * @least: smallest allowed
 * @most: largest allowed
 */
struct lbe_range {
	unsigned int value;
	unsigned int least;
	unsigned int most;
};

/* Length of a value as the user has written it, without a final newline. */
static inline int lbe_text_len(const char *val)
{
	return val ? strcspn(val, "\n") : 0;
}

static int __maybe_unused lbe_set_range(const char *val,
					const struct kernel_param *kp)
{
	struct lbe_range *range = kp->arg;
	unsigned int value;
	int err;

	err = val ? kstrtouint(val, 0, &value) : -EINVAL;
	if (!err && (value < range->least || value > range->most))
		err = -ERANGE;
	if (err) {
		pr_err("%s=%.*s refused: a number from %u to %u is wanted\n",
		       kp->name, lbe_text_len(val), val ?: "", range->least,
		       range->most);
		return err;
	}
	WRITE_ONCE(range->value, value);
	return 0;
}

static int __maybe_unused lbe_get_range(char *buffer,
					const struct kernel_param *kp)
{
	const struct lbe_range *range = kp->arg;

	return sysfs_emit(buffer, "%u\n", READ_ONCE(range->value));
}

static const struct kernel_param_ops lbe_range_ops __maybe_unused = {
	.set = lbe_set_range,
	.get = lbe_get_range,
};

#define LBE_PARAM(_name, _default, _least, _most, _text)		\
	static struct lbe_range _name = { _default, _least, _most };	\
	module_param_cb(_name, &lbe_range_ops, &_name, 0644);		\
	MODULE_PARM_DESC(_name, _text " (" __stringify(_least) " to "	\
			 __stringify(_most) ", default "		\
			 __stringify(_default) ")")

#endif /* LBE_PARAM_H */
