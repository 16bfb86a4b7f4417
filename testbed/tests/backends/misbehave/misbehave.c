// SPDX-License-Identifier: GPL-2.0
/*
 * Does on load what a kernel must never do, one kind a parameter value, so that
 * the testbed's tests can see that each kind is told from the others.
 * Not part of the suite: only testbed/tests builds and loads it.
 */

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kmemleak.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *kind = "";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "oops, bug, warn, use-after-free, leak, lock-order, atomic-sleep, shift, race or spin");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

/* Both orders, one after the other: no deadlock today, one for lockdep to foresee. */
static void lock_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void use_after_free(void)
{
	char *gone = kmalloc(64, GFP_KERNEL);

	if (!gone)
		return;
	/* The compiler must not see that the two pointers are one. */
	OPTIMIZER_HIDE_VAR(gone);
	kfree(gone);
	WRITE_ONCE(gone[8], 1);
}

static void leak(void)
{
	int count;

	/* Some may be found again through a stale register or stack slot. */
	for (count = 0; count < 16; count++) {
		char *lost = kmalloc(200, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(lost);
	}
}

static void atomic_sleep(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
}

static int shift(void)
{
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	return 1 << by;
}

static int contended;

static int racer(void *unused)
{
	while (!kthread_should_stop()) {
		contended++;
		barrier();
		cond_resched();
	}
	return 0;
}

/* Two threads and no lock, for three seconds. */
static int race(void)
{
	struct task_struct *one, *two;

	one = kthread_run(racer, NULL, "racer one");
	if (IS_ERR(one))
		return PTR_ERR(one);
	two = kthread_run(racer, NULL, "racer two");
	if (!IS_ERR(two)) {
		msleep(3000);
		kthread_stop(two);
	}
	kthread_stop(one);
	return PTR_ERR_OR_ZERO(two);
}

static int __init misbehave_init(void)
{
	int *nowhere = NULL;

	pr_info("misbehave: %s\n", kind);
	if (!strcmp(kind, "oops")) {
		OPTIMIZER_HIDE_VAR(nowhere);
		WRITE_ONCE(*nowhere, 1);
	} else if (!strcmp(kind, "bug")) {
		BUG();
	} else if (!strcmp(kind, "warn")) {
		WARN(1, "misbehave: on purpose\n");
	} else if (!strcmp(kind, "use-after-free")) {
		use_after_free();
	} else if (!strcmp(kind, "leak")) {
		leak();
	} else if (!strcmp(kind, "lock-order")) {
		lock_order();
	} else if (!strcmp(kind, "atomic-sleep")) {
		atomic_sleep();
	} else if (!strcmp(kind, "shift")) {
		pr_info("misbehave: %d\n", shift());
	} else if (!strcmp(kind, "race")) {
		return race();
	} else if (!strcmp(kind, "spin")) {
		for (;;)
			cpu_relax();
	} else {
		return -EINVAL;
	}
	return 0;
}

static void __exit misbehave_exit(void)
{
}

module_init(misbehave_init);
module_exit(misbehave_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Faults on purpose, for the tests of the testbed");
