// SPDX-License-Identifier: GPL-2.0
/*
 * lbe_link - a link whose chances to send come from a file
 *
 * Cellular links, Wi-Fi aggregates and links that sleep do not send at a
 * constant rate. This queueing discipline sends when a trace says so, as the
 * links of mahimahi do (https://github.com/ravinet/mahimahi). For testbeds,
 * not for use.
 *
 *   insmod lbe_link.ko file=PATH zero_ns=T bytes=N
 *   tc qdisc add dev DEV root handle 1: lbe_link
 *   tc qdisc add dev DEV parent 1:1 ...          the queue under test
 *
 * The file is text: a line is the time of one opportunity in microseconds, in
 * order of time; the last one is also the length of the trace, which then
 * begins again. An opportunity carries N bytes. A packet may take several, and
 * several packets may share one; what is not used because the queue is empty
 * is lost.
 *
 * Time 0 of the trace is T on CLOCK_MONOTONIC. Nothing is sent before it.
 */
#include <linux/kernel_read_file.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#define FILE_MAX_BYTES	(64 << 20)

static char *file;
module_param(file, charp, 0444);
MODULE_PARM_DESC(file, "times of opportunities to send, microseconds, a line each");

static ulong zero_ns;
module_param(zero_ns, ulong, 0444);
MODULE_PARM_DESC(zero_ns, "CLOCK_MONOTONIC at the trace's time 0");

static uint bytes = 1514;
module_param(bytes, uint, 0444);
MODULE_PARM_DESC(bytes, "what one opportunity carries, as the queue counts packets");

/* The trace: written at module load, read-only from then on. */
static u32 *at_us;
static u32 count;	/* at_us[count - 1] is the length of a round */

struct link_sched {
	struct Qdisc *queue;	/* the queue under test */
	struct qdisc_watchdog watchdog;
	u64 round_ns;		/* when the current round of the trace began */
	u32 next;		/* index of the next opportunity of the round */
	u32 credit;		/* bytes left of the opportunities taken */
};

static u64 link_next_ns(const struct link_sched *l)
{
	return l->round_ns + (u64)at_us[l->next] * NSEC_PER_USEC;
}

static void link_step(struct link_sched *l)
{
	if (++l->next < count)
		return;
	l->next = 0;
	l->round_ns += (u64)at_us[count - 1] * NSEC_PER_USEC;
}

/* The queue was empty until now: what could have been sent is lost. */
static void link_skip_to(struct link_sched *l, u64 now_ns)
{
	u64 length_ns = (u64)at_us[count - 1] * NSEC_PER_USEC;

	l->credit = 0;
	if (now_ns >= l->round_ns + length_ns) {
		l->round_ns += div64_u64(now_ns - l->round_ns, length_ns) * length_ns;
		l->next = 0;
	}
	while (link_next_ns(l) < now_ns)
		link_step(l);
}

static int link_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct link_sched *l = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	bool empty = !l->queue->q.qlen;
	int ret;

	ret = qdisc_enqueue(skb, l->queue, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	if (empty)
		link_skip_to(l, ktime_get_ns());
	lbe_qstats_backlog_add(sch, len);
	lbe_qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *link_dequeue(struct Qdisc *sch)
{
	struct link_sched *l = qdisc_priv(sch);
	struct sk_buff *skb = l->queue->ops->peek(l->queue);
	u64 now_ns = ktime_get_ns();

	if (!skb)
		return NULL;
	while (l->credit < qdisc_pkt_len(skb) && link_next_ns(l) <= now_ns) {
		l->credit += bytes;
		link_step(l);
	}
	if (l->credit < qdisc_pkt_len(skb)) {
		qdisc_watchdog_schedule_ns(&l->watchdog, link_next_ns(l));
		return NULL;
	}
	skb = qdisc_dequeue_peeked(l->queue);
	if (!skb)
		return NULL;
	l->credit -= qdisc_pkt_len(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	lbe_qdisc_qlen_dec(sch);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void link_reset(struct Qdisc *sch)
{
	struct link_sched *l = qdisc_priv(sch);

	qdisc_reset(l->queue);
	l->credit = 0;
	qdisc_watchdog_cancel(&l->watchdog);
}

static int link_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct link_sched *l = qdisc_priv(sch);

	l->queue = &noop_qdisc;
	l->round_ns = zero_ns;
	qdisc_watchdog_init(&l->watchdog, sch);
	return 0;
}

static void link_destroy(struct Qdisc *sch)
{
	struct link_sched *l = qdisc_priv(sch);

	qdisc_watchdog_cancel(&l->watchdog);
	qdisc_put(l->queue);
}

/* The one class: whatever queue is put there. */
static int link_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new, struct Qdisc **old,
		      struct netlink_ext_ack *extack)
{
	struct link_sched *l = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &l->queue);
	return 0;
}

static struct Qdisc *link_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct link_sched *l = qdisc_priv(sch);

	return l->queue;
}

static unsigned long link_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void link_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0)
		walker->stop = 1;
	else
		walker->count++;
}

static int link_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			   struct tcmsg *tcm)
{
	struct link_sched *l = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = l->queue->handle;
	return 0;
}

static const struct Qdisc_class_ops link_class_ops = {
	.graft	= link_graft,
	.leaf	= link_leaf,
	.find	= link_find,
	.walk	= link_walk,
	.dump	= link_dump_class,
};

static struct Qdisc_ops link_qdisc_ops __read_mostly = {
	.cl_ops		= &link_class_ops,
	.id		= "lbe_link",
	.priv_size	= sizeof(struct link_sched),
	.enqueue	= link_enqueue,
	.dequeue	= link_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= link_init,
	.reset		= link_reset,
	.destroy	= link_destroy,
	.owner		= THIS_MODULE,
};

/* Fills at_us from text; 0, or -EINVAL with the line in the log. */
static int link_parse(char *text)
{
	char *line;
	u32 last = 0;

	while ((line = strsep(&text, "\n"))) {
		if (!*line)
			continue;
		if (kstrtou32(line, 10, &at_us[count]) || at_us[count] < last) {
			pr_err("lbe_link: %s:%u: must be microseconds, no earlier than the line before\n",
			       file, count + 1);
			return -EINVAL;
		}
		last = at_us[count++];
	}
	if (!last) {
		pr_err("lbe_link: %s: needs a time above 0\n", file);
		return -EINVAL;
	}
	return 0;
}

static int link_read(void)
{
	void *text = NULL;
	ssize_t size;
	int err;

	if (!file || bytes < 64) {
		pr_err("lbe_link: needs file=PATH and bytes of 64 or more\n");
		return -EINVAL;
	}
	size = kernel_read_file_from_path(file, 0, &text, FILE_MAX_BYTES, NULL, READING_UNKNOWN);
	if (size < 0) {
		pr_err("lbe_link: %s: error %zd\n", file, -size);
		return size;
	}
	/* A line takes two bytes or more; one more for the closing NUL. */
	at_us = vcalloc(size / 2 + 1, sizeof(*at_us));
	err = -ENOMEM;
	if (at_us) {
		char *copy = kvmalloc(size + 1, GFP_KERNEL);

		if (copy) {
			memcpy(copy, text, size);
			copy[size] = '\0';
			err = link_parse(copy);
			kvfree(copy);
		}
	}
	vfree(text);
	return err;
}

static int __init link_module_init(void)
{
	int err = link_read();

	if (!err)
		err = register_qdisc(&link_qdisc_ops);
	if (err)
		vfree(at_us);
	return err;
}

static void __exit link_module_exit(void)
{
	unregister_qdisc(&link_qdisc_ops);
	vfree(at_us);
}

module_init(link_module_init);
module_exit(link_module_exit);

MODULE_DESCRIPTION("A link whose chances to send come from a file, for testbeds");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
