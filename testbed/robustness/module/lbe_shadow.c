// SPDX-License-Identifier: GPL-2.0
/*
 * Lets KASAN of user mode see modules come and go many times.
 *
 * A module's globals have red zones, marked in KASAN's shadow when it is loaded.
 * Where vmalloc is not covered (CONFIG_KASAN_VMALLOC), user mode never takes these
 * marks away: the next module to get that memory is taken for an overflow, and
 * KASAN's memcpy() then copies nothing into it. So: clear the marks of what is
 * about to be freed. The sanitizer's guests load this first.
 */
#include <linux/kasan.h>
#include <linux/module.h>
#include <linux/notifier.h>

static void lbe_shadow_clear(const struct module_memory *mem)
{
	u8 *shadow;
	size_t i;

	if (!mem->base)
		return;
	shadow = kasan_mem_to_shadow(mem->base);
	/* no memset(): it would be KASAN's own, which checks */
	for (i = 0; i < mem->size >> KASAN_SHADOW_SCALE_SHIFT; i++)
		WRITE_ONCE(shadow[i], 0);
}

static int lbe_shadow_notify(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *mod = data;

	for_each_mod_mem_type(type) {
		/* loaded: what served its init goes; going: all of it */
		if (state == MODULE_STATE_GOING ||
		    (state == MODULE_STATE_LIVE && mod_mem_type_is_init(type)))
			lbe_shadow_clear(&mod->mem[type]);
	}
	return NOTIFY_OK;
}

static struct notifier_block lbe_shadow_notifier = {
	.notifier_call = lbe_shadow_notify,
	.priority = INT_MIN,	/* last: others still read the module */
};

static int __init lbe_shadow_init(void)
{
	return register_module_notifier(&lbe_shadow_notifier);
}

static void __exit lbe_shadow_exit(void)
{
	unregister_module_notifier(&lbe_shadow_notifier);
}

module_init(lbe_shadow_init);
module_exit(lbe_shadow_exit);

MODULE_DESCRIPTION("Keeps KASAN's shadow right over modules that are gone, in user mode");
MODULE_LICENSE("GPL");
