// SPDX-License-Identifier: GPL-2.0
/*
 * Sampling of queueing disciplines: RTM_GETQDISC in batches, TCA_STATS2 of the
 * answers.  Two system calls per batch.
 */
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../sch_shred/uapi/shred.h"
#include "netlink.h"
#include "queue.h"
#include "records.h"

#define QUEUE_BATCH	4	/* queues in one batch; a router has two */
#define ANSWER_BYTES	32768	/* maximum size of an answer about a qdisc */

struct queue {
	const struct queue_plan *plan;
	int ifindex;
};

/* Offset of the ECN mark counter in TCA_STATS_APP of a kind, a struct of u32 */
static const struct {
	const char *kind;
	size_t offset;
} mark_counters[] = {
	{ "red", offsetof(struct tc_red_xstats, marked) },
	{ "codel", offsetof(struct tc_codel_xstats, ecn_mark) },
	{ "fq_codel", offsetof(struct tc_fq_codel_xstats, qdisc_stats.ecn_mark) },
};

/* Kinds whose TCA_STATS_APP has nested attributes: u64 counters first to last */
static const struct {
	const char *kind;
	u16 first, last;
} mark_attributes[] = {
	{ "shred", TCA_SHRED_STATS_EARLY_MARK,
	  TCA_SHRED_STATS_FORCED_MARK },
};

static struct queue *queues;
static u32 nqueues;
static struct netlink_batch batch;

static const char *attr_kind(const struct rtattr *a)
{
	const char *text = RTA_DATA(a);

	return memchr(text, '\0', RTA_PAYLOAD(a)) ? text : "";
}

/* Copies at most size bytes; an older kernel's struct may be shorter. */
static void attr_copy(void *to, size_t size, const struct rtattr *a)
{
	memcpy(to, RTA_DATA(a), min_u64(size, RTA_PAYLOAD(a)));
}

static void parse_mark_attributes(struct rec_queue *r, const struct rtattr *app,
				  u16 first, u16 last)
{
	int len = RTA_PAYLOAD(app);

	for (struct rtattr *a = RTA_DATA(app); RTA_OK(a, len);
	     a = RTA_NEXT(a, len)) {
		u16 type = a->rta_type & NLA_TYPE_MASK;
		u64 count = 0;

		if (type < first || type > last)
			continue;
		attr_copy(&count, sizeof(count), a);
		r->marks += count;
	}
}

static void parse_marks(struct rec_queue *r, const struct rtattr *app,
			const char *kind)
{
	for (u32 i = 0; i < ARRAY_SIZE(mark_counters); i++) {
		size_t at = mark_counters[i].offset;

		if (!strcmp(kind, mark_counters[i].kind) &&
		    RTA_PAYLOAD(app) >= at + sizeof(r->marks))
			memcpy(&r->marks, (char *)RTA_DATA(app) + at,
			       sizeof(r->marks));
	}
	for (u32 i = 0; i < ARRAY_SIZE(mark_attributes); i++)
		if (!strcmp(kind, mark_attributes[i].kind))
			parse_mark_attributes(r, app, mark_attributes[i].first,
					      mark_attributes[i].last);
}

static void parse_stats(struct rec_queue *r, const struct rtattr *stats,
			const char *kind)
{
	int len = RTA_PAYLOAD(stats);
	struct gnet_stats_basic basic = { 0 };
	struct gnet_stats_queue queue = { 0 };

	for (struct rtattr *a = RTA_DATA(stats); RTA_OK(a, len);
	     a = RTA_NEXT(a, len)) {
		switch (a->rta_type) {
		case TCA_STATS_BASIC:
			attr_copy(&basic, sizeof(basic), a);
			break;
		case TCA_STATS_QUEUE:
			attr_copy(&queue, sizeof(queue), a);
			break;
		case TCA_STATS_APP:
			parse_marks(r, a, kind);
			break;
		}
	}
	r->sent_bytes = basic.bytes;
	r->sent_pkts = basic.packets;
	r->qlen_pkts = queue.qlen;
	r->backlog_bytes = queue.backlog;
	r->drops = queue.drops;
	r->overlimits = queue.overlimits;
	r->requeues = queue.requeues;
}

static int parse_answer(struct rec_queue *r, struct nlmsghdr *h)
{
	struct rtattr *a, *stats = NULL;
	const char *kind = "";
	int len;

	if (h->nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
	if (h->nlmsg_type != RTM_NEWQDISC)
		return -EPROTO;
	len = h->nlmsg_len - NLMSG_LENGTH(sizeof(struct tcmsg));
	a = (void *)((char *)NLMSG_DATA(h) +
		     NLMSG_ALIGN(sizeof(struct tcmsg)));
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == TCA_KIND)
			kind = attr_kind(a);
		else if (a->rta_type == TCA_STATS2)
			stats = a;
	}
	if (!stats)
		return -ENODATA;
	parse_stats(r, stats, kind);
	return 0;
}

struct queue_request {
	struct nlmsghdr h;
	struct tcmsg tc;
};

static void request_make(struct queue_request *request, const struct queue *q,
			 u32 sequence)
{
	*request = (struct queue_request) {
		.h.nlmsg_len = sizeof(*request),
		.h.nlmsg_type = RTM_GETQDISC,
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO,
		.h.nlmsg_seq = sequence,
		.tc.tcm_ifindex = q->ifindex,
		.tc.tcm_handle = q->plan->handle,
		.tc.tcm_parent = q->plan->parent,
	};
	if (!request->tc.tcm_handle && !request->tc.tcm_parent)
		request->tc.tcm_parent = TC_H_ROOT;
}

/* Answers about a batch of queues */
struct queue_answers {
	struct rec_queue records[QUEUE_BATCH];
	int err[QUEUE_BATCH];	/* 0 or a negative errno for each */
};

static void take_answer(void *context, u32 place, struct nlmsghdr *header)
{
	struct queue_answers *said = context;

	said->err[place] = parse_answer(&said->records[place], header);
}

/* Reads n <= QUEUE_BATCH queues. */
static void queues_read(struct queue_answers *said, const struct queue *q,
			u32 n)
{
	struct queue_request requests[QUEUE_BATCH] = { 0 };
	int err;

	*said = (struct queue_answers){ 0 };
	for (u32 i = 0; i < n; i++) {
		request_make(&requests[i], &q[i], i);
		/* The kernel does not answer for noqueue and other built-in qdiscs. */
		said->err[i] = -ENOENT;
	}
	err = netlink_batch_ask(&batch, requests, n * sizeof(requests[0]), n,
				take_answer, said);
	for (u32 i = 0; err && i < n; i++)
		said->err[i] = err;
}

/* Samples a batch of queues from index from; returns the next index. */
static u32 queues_sample_batch(u32 from, u64 t_ns)
{
	u32 n = min_u64(nqueues - from, QUEUE_BATCH);
	struct queue_answers said;

	queues_read(&said, &queues[from], n);
	for (u32 i = 0; i < n; i++) {
		const struct queue_plan *p = queues[from + i].plan;
		struct rec_queue *r = &said.records[i];

		r->t_ns = t_ns;
		r->queue = p->id;
		if (said.err[i])
			event_error(p->id, "queue dev=%s: %s", p->dev,
				    strerror(-said.err[i]));
		else
			record(REC_QUEUE, r, sizeof(*r));
	}
	return from + n;
}

void queues_sample(u64 t_ns)
{
	for (u32 at = 0; at < nqueues;)
		at = queues_sample_batch(at, t_ns);
}

static int queue_open(struct queue *q, const struct queue_plan *p)
{
	struct queue_answers said;
	int err;

	q->plan = p;
	q->ifindex = if_nametoindex(p->dev);
	if (!q->ifindex) {
		event_error(p->id, "queue dev=%s: no such device", p->dev);
		return -1;
	}
	queues_read(&said, q, 1);
	err = said.err[0];
	if (err)
		event_error(p->id, "queue dev=%s handle=%x:%x parent=%x:%x: %s",
			    p->dev, p->handle >> 16, p->handle & 0xffff,
			    p->parent >> 16, p->parent & 0xffff,
			    strerror(-err));
	return err;
}

int queues_open(const struct plan *p)
{
	int err = 0;

	if (!p->nqueues)
		return 0;
	queues = calloc(p->nqueues, sizeof(*queues));
	if (!queues)
		return -1;
	err = netlink_batch_open(&batch, NETLINK_ROUTE, QUEUE_BATCH,
				 ANSWER_BYTES);
	if (err) {
		fprintf(stderr, "lbe-agent: netlink socket: %s\n",
			strerror(-err));
		return -1;
	}
	for (u32 i = 0; i < p->nqueues; i++)
		if (queue_open(&queues[i], &p->queues[i]))
			err = -1;
	nqueues = err ? 0 : p->nqueues;
	return err;
}
