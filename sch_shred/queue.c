// SPDX-License-Identifier: GPL-2.0
/*
 * SHRED: RED that prefers short flows, by a hint in each packet.
 *
 * The queue has three laws; the coding of the hint (hint.h) selects one:
 *
 *   hint off    RED, with the drops of net/sched/sch_red.c
 *   hint tos    the paper: Claypool, Kinicki, Hartling, "Active Queue Management
 *               for Web Traffic", Equations (1) to (4). The hint is a congestion
 *               window; one FIFO.
 *   hint dscp   the suite's own: the hint is the flow's age, the bytes that it sent
 *               before. Equations (1), (2'), (4') of shred.h, also above max, and
 *               four bands:
 *
 *     age, KiB    0 .. 8   8 .. 32   32 .. 128   128 ..   no hint
 *     band          0         1          2          3        3
 *
 *               The lowest band that has packets is served. While several bands have
 *               packets, one byte in SHRED_OLDEST_SHARE is sent from the packet that
 *               arrived first, so that old flows do not starve. If a packet arrives
 *               at a full queue, packets of higher bands are dropped to make room.
 *
 * Why no packet overtakes another one of its flow: an age only increases while
 * packets of the flow are queued, so an earlier packet is in the same band or in a
 * lower one. A band is a FIFO. A packet of a higher band is sent before a lower
 * band's only if it arrived before all other queued packets.
 * Exceptions: once, when "hint dscp" is switched on, young packets overtake the
 * queued ones; and with a limit above 187 ms of the link a packet may wait longer
 * than the writer's SHRED_IDLE_MS (age.h), after which its flow is young again.
 *
 * Departures from the paper:
 *  - A packet without a hint is treated as by RED: the paper says "normal RED
 *    dropping probabilities".
 *  - The first hint is the initial average; the paper does not define one.
 *  - RED resets its count since the last drop whenever the average queue is below
 *    the lower threshold. Here each packet has its own threshold. The count is
 *    reset only if the average is below every threshold; otherwise the packets of
 *    one short flow would keep resetting the count of all other flows.
 *
 * Departures from sch_red: gentle (which the paper's authors used) is on by
 * default; idle time begins when the last packet leaves, also below a parent
 * that does not dequeue from an empty child (below tbf or htb, sch_red's idle time
 * never begins).
 *
 * Not supported: classes and a child queue, offload to hardware, qevents.
 *
 * Locking: the qdisc's tree lock protects all of struct shred_sched_data.
 */

#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/prefetch.h>
#include LBE_GSO_HEADER
#include <net/dsfield.h>
#include <net/inet_ecn.h>

#include "queue.h"

/* The adaptive rule (Floyd, Gummadi, Shenker, "Adaptive RED", 2001) as in net/red.h: twice a
 * second max_p rises by a quarter, at most 0.01, or falls by a tenth, within 0.01 to 0.5.
 */
#define SHRED_ADAPT_PERIOD	(HZ / 2)
#define SHRED_MAX_P_STEP	(U32_MAX / 100)
#define SHRED_MAX_P_MOST	(U32_MAX / 2)

struct shred_skb_cb {
	u32 arrival;		/* shred_sched_data.arrivals when it was queued */
};

static struct shred_skb_cb *shred_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct shred_skb_cb));
	return (struct shred_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* ---- the TOS byte or traffic class ---- */

/* The byte of a packet whose IP header is outside the linear part or follows VLAN tags; 0 if the
 * packet is not IP. A bridge leaves the network header at the inner one of two tags. It is set to
 * the IP header here, so that washing and marking also find the TOS byte.
 */
static noinline u8 shred_far_tos(struct sk_buff *skb)
{
	int at = skb_network_offset(skb);
	__be16 proto = __vlan_get_protocol(skb, skb->protocol, &at), buf;
	const __be16 *first;

	if (eth_type_vlan(skb->protocol))
		skb_set_network_header(skb, at);
	first = skb_header_pointer(skb, skb_network_offset(skb), sizeof(buf), &buf);
	if (first && proto == htons(ETH_P_IP))
		return (u8)ntohs(*first);		/* version, length; TOS */
	if (first && proto == htons(ETH_P_IPV6))
		return (u8)(ntohs(*first) >> 4);	/* version; class; label */
	return 0;
}

/* The byte of a packet with its IP header in the usual place; false: call shred_far_tos(). */
static __always_inline bool shred_near_tos(const struct sk_buff *skb, u8 *tos)
{
	const u8 *first = skb_network_header(skb);

	if (unlikely(skb->network_header + 1 >= skb_tail_pointer(skb) - skb->head))
		return false;
	*tos = first[1];
	if (likely(skb->protocol == htons(ETH_P_IP)))
		return true;
	*tos = (u8)(first[0] << 4 | first[1] >> 4);
	return skb->protocol == htons(ETH_P_IPV6);
}

static u8 shred_tos(struct sk_buff *skb)
{
	u8 tos;

	return shred_near_tos(skb, &tos) ? tos : shred_far_tos(skb);
}

static void shred_wash(const struct shred_sched_data *q, struct sk_buff *skb)
{
	u8 tos = shred_tos(skb);
	int at = skb_network_offset(skb);
	__be16 proto = skb_protocol(skb, true);

	if (!shred_hint_read(q->config.hint, tos))
		return;
	tos = shred_hint_clear(q->config.hint, tos);
	if (proto == htons(ETH_P_IP) && !skb_ensure_writable(skb, at + sizeof(struct iphdr)))
		ipv4_change_dsfield(ip_hdr(skb), 0, tos);
	else if (proto == htons(ETH_P_IPV6) &&
		 !skb_ensure_writable(skb, at + sizeof(struct ipv6hdr)))
		ipv6_change_dsfield(ipv6_hdr(skb), 0, tos);
}

/* ---- the decision on an arrival ---- */

static u64 shred_qavg_after_idle(const struct shred_sched_data *q)
{
	u64 idle_us = ktime_us_delta(ktime_get(), q->idle_since);
	/* 2^40 us are twelve days: any average has decayed to 0 by then */
	u64 pkts = mul_u64_u64_div_u64(min_t(u64, idle_us, 1ULL << 40), q->config.rate_bytes_s,
				       (u64)q->config.avpkt_bytes * USEC_PER_SEC);

	return shred_qavg_idle(q->qavg, q->config.wlog, pkts);
}

static __always_inline u64 shred_qavg_of(const struct Qdisc *sch, const struct shred_sched_data *q)
{
	return shred_qavg(q->qavg, sch->qstats.backlog, q->config.wlog);
}

static u64 shred_certain_bytes(const struct shred_config *c)
{
	return shred_certain(c->min_bytes, c->max_bytes, c->max_p_q32);
}

/* Draw R. Plain RED: the same value as net/red.h; else exact for any max_p and thresholds. */
static void shred_draw(struct shred_sched_data *q)
{
	const struct shred_config *c = &q->config;
	u32 random = get_random_u32();

	q->left_bytes = c->hint == SHRED_HINT_OFF ?
				random / max(c->max_p_q32 / (c->max_bytes - c->min_bytes), 1U) :
				mul_u64_u32_shr(shred_certain_bytes(c), random, 32);
}

/* Reset A; R is drawn at the next packet that adds to A. */
static __always_inline void shred_forget_count(struct shred_sched_data *q)
{
	q->count = -1;
	q->left_bytes = 0;
}

/* Thresholds below min exist with hint tos only; the other modes do not read floor_bytes. */
static __always_inline u32 shred_floor(const struct shred_sched_data *q, enum shred_hint_mode mode)
{
	return mode == SHRED_HINT_TOS ? q->floor_bytes : q->config.min_bytes;
}

static __always_inline u32 shred_threshold_of(const struct shred_sched_data *q,
					      enum shred_hint_mode mode, u32 hint)
{
	u32 min_bytes = q->config.min_bytes;

	return hint ? shred_threshold(min_bytes, q->config.max_bytes, shred_floor(q, mode), hint,
				      q->hint_avg_q22) : min_bytes;
}

/* Add to A. Return: false if A reaches R, or R is not drawn yet. */
static __always_inline bool shred_add(struct shred_sched_data *q, enum shred_hint_mode mode,
				      u64 added)
{
	u64 sum;

	/* sch_red's product of probability and count: all packets have the same probability */
	if (mode == SHRED_HINT_OFF) {
		if (check_mul_overflow(added, (u64)q->count + 1, &sum) || sum >= q->left_bytes)
			return false;
		q->count++;
		return true;
	}
	if (added >= q->left_bytes)
		return false;
	q->left_bytes -= added;
	return true;
}

/* Does the packet pass? If not, no state has changed, and shred_decide() decides. */
static __always_inline bool shred_passes(struct shred_sched_data *q, enum shred_hint_mode mode,
					 u32 qavg_bytes, u32 hint)
{
	u32 threshold_bytes;

	/* below every packet's threshold: reset RED's count */
	if (qavg_bytes < shred_floor(q, mode)) {
		shred_forget_count(q);
		return true;
	}
	/* with ages the line continues above max; a full queue drops packets of old flows */
	if (mode != SHRED_HINT_DSCP && unlikely(qavg_bytes >= q->config.max_bytes))
		return false;
	threshold_bytes = shred_threshold_of(q, mode, hint);
	/* below this packet's threshold only: keep the count */
	if (qavg_bytes < threshold_bytes)
		return true;
	return likely(!(q->config.flags & SHRED_F_BYTES)) &&
	       shred_add(q, mode, qavg_bytes - threshold_bytes);
}

/* Decide on a packet that did not pass: the average queue is at or above its threshold. */
static enum shred_verdict shred_decide(struct shred_sched_data *q, u32 qavg_bytes, u32 hint,
				       unsigned int len)
{
	const struct shred_config *c = &q->config;
	bool above = qavg_bytes >= c->max_bytes && c->hint != SHRED_HINT_DSCP, drawn;
	u32 threshold_bytes = shred_threshold_of(q, c->hint, hint);
	u64 added = qavg_bytes - threshold_bytes;

	if (above && (!(c->flags & SHRED_F_GENTLE) || qavg_bytes >= 2ULL * c->max_bytes)) {
		shred_forget_count(q);
		return SHRED_FORCED;
	}
	if (above)
		added = shred_gentle(threshold_bytes, c->max_bytes, shred_certain_bytes(c),
				     qavg_bytes);
	if (c->flags & SHRED_F_BYTES)
		added = shred_sized(added, len, c->avpkt_bytes);
	if (shred_add(q, c->hint, added))
		return SHRED_PASS;
	drawn = q->count >= 0;
	q->count = 0;
	shred_draw(q);
	return drawn ? SHRED_EARLY : SHRED_PASS;
}

/* ---- the bands ---- */

/* Without ages all packets go to the last band, a FIFO. Packets that a change of mode left in the
 * other bands are before it.
 */
static __always_inline u32 shred_band_of(enum shred_hint_mode mode, u32 class)
{
	return mode == SHRED_HINT_DSCP ? (class - 1) / SHRED_AGES_PER_BAND % SHRED_BANDS :
					 SHRED_BANDS - 1;
}

static __always_inline void shred_push(struct Qdisc *sch, struct shred_sched_data *q,
				       struct sk_buff *skb, unsigned int len, u32 band)
{
	struct shred_band *b = &q->bands[band];

	shred_cb(skb)->arrival = q->arrivals++;
	skb->next = NULL;
	if (b->head) {
		b->tail->next = skb;
	} else {
		b->head = skb;
		q->busy |= 1U << band;
	}
	b->tail = skb;
	lbe_qstats_backlog_add(sch, len);
	lbe_qdisc_qlen_inc(sch);
}

static __always_inline struct sk_buff *shred_pop(struct Qdisc *sch, struct shred_sched_data *q,
						 u32 band)
{
	struct shred_band *b = &q->bands[band];
	struct sk_buff *skb = b->head;

	b->head = skb->next;
	if (!b->head)
		q->busy &= ~(1U << band);
	skb_mark_not_on_list(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	lbe_qdisc_qlen_dec(sch);
	return skb;
}

/* The band whose first packet arrived before those of all others. */
static u32 shred_oldest_band(const struct shred_sched_data *q)
{
	u32 band, oldest = __ffs(q->busy);

	for (band = oldest + 1; band < SHRED_BANDS; band++)
		if (q->busy & 1U << band &&
		    (s32)(shred_cb(q->bands[band].head)->arrival -
			  shred_cb(q->bands[oldest].head)->arrival) < 0)
			oldest = band;
	return oldest;
}

/* Dequeue a packet if several bands have packets. */
static noinline struct sk_buff *shred_pop_among(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u32 lowest = __ffs(q->busy);
	u32 band = lowest, len;

	if (q->owed_bytes > 0)
		band = shred_oldest_band(q);
	len = min_t(u32, qdisc_pkt_len(q->bands[band].head), 1U << 16);
	if (band == lowest)
		q->owed_bytes = min_t(s32, q->owed_bytes + len, 1 << 19);
	else
		q->owed_bytes -= (SHRED_OLDEST_SHARE - 1) * len;
	return shred_pop(sch, q, band);
}

/* ---- dropping and marking ---- */

/* Drop a packet that is not, or no longer, in a band. Return: the return value for enqueue. */
static int shred_drop(struct Qdisc *sch, struct shred_sched_data *q, struct sk_buff *skb,
		      u32 class, enum shred_verdict verdict, struct sk_buff **to_free)
{
	q->stats.drops[verdict]++;
	q->stats.class_drops[class]++;
	lbe_qdisc_drop_reason(skb, sch, to_free,
			      verdict == SHRED_EARLY ? QDISC_DROP_CONGESTED :
						       QDISC_DROP_OVERLIMIT);
	return verdict == SHRED_LIMIT ? NET_XMIT_DROP : NET_XMIT_CN;
}

/* Return: true if a selected packet is to be queued: marked, or unmarked with nodrop. */
static bool shred_mark(struct Qdisc *sch, struct shred_sched_data *q,
		       struct sk_buff *skb, enum shred_verdict verdict)
{
	u16 flags = q->config.flags;

	qdisc_qstats_overlimit(sch);
	if (!(flags & SHRED_F_ECN) || (verdict == SHRED_FORCED && flags & SHRED_F_HARDDROP))
		return false;
	if (!INET_ECN_set_ce(skb))
		return flags & SHRED_F_NODROP;
	q->stats.marks[verdict]++;
	return true;
}

/* Drop packets from the head of the highest of @bands until @len more bytes fit.
 * Return: true if they fit.
 */
static bool shred_make_room(struct Qdisc *sch, struct shred_sched_data *q, u32 bands, u32 len,
			    struct sk_buff **to_free)
{
	struct sk_buff *skb;

	while (q->busy & bands && sch->qstats.backlog + len > q->config.limit_bytes) {
		skb = shred_pop(sch, q, __fls(q->busy));
		if (!q->busy)
			q->idle_since = ktime_get();
		shred_drop(sch, q, skb, shred_hint_class(q->config.hint, shred_tos(skb)),
			   SHRED_LIMIT, to_free);
	}
	return sch->qstats.backlog + len <= q->config.limit_bytes;
}

/* The queue is full: drop packets of higher bands to make room; if there are not enough, drop this
 * packet. Parents are told of the drops only after the packet is queued: a parent that is told of
 * an empty queue takes its class out of service, and hfsc does not put it back for the packet that
 * it is just enqueueing.
 */
static noinline int shred_enqueue_full(struct sk_buff *skb, struct Qdisc *sch,
				       struct sk_buff **to_free, u32 class)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb), qlen = sch->q.qlen, backlog = sch->qstats.backlog;
	u32 band = shred_band_of(q->config.hint, class);
	bool fits = len <= q->config.limit_bytes &&
		    shred_make_room(sch, q, -2U << band, len, to_free);

	qlen -= sch->q.qlen;
	backlog -= sch->qstats.backlog;
	if (fits)
		shred_push(sch, q, skb, len, band);
	if (qlen)
		qdisc_tree_reduce_backlog(sch, qlen, backlog);
	return fits ? NET_XMIT_SUCCESS : shred_drop(sch, q, skb, class, SHRED_LIMIT, to_free);
}

/* ---- queue operations ---- */

static int shred_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);

/* Later kernels store the number of segments in the skb (Kbuild checks for it). */
static void shred_one_segment(struct sk_buff *skb)
{
#ifdef SHRED_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* Enqueue each packet of an aggregate separately. */
static noinline int shred_enqueue_split(struct sk_buff *skb, struct Qdisc *sch,
					struct sk_buff **to_free)
{
	unsigned int whole_len = qdisc_pkt_len(skb), taken_len = 0;
	struct sk_buff *segs, *next;
	int taken = 0;

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = segs->len;
		shred_one_segment(segs);
		if (shred_enqueue(segs, sch, to_free) == NET_XMIT_SUCCESS) {
			taken++;
			taken_len += segs->len;
		}
	}
	if (taken)
		qdisc_tree_reduce_backlog(sch, 1 - taken, whole_len - taken_len);
	consume_skb(skb);
	return taken ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

/* The last step: queue the packet if there is room. */
static __always_inline int shred_enqueue_last(struct sk_buff *skb, struct Qdisc *sch,
					      struct sk_buff **to_free, enum shred_hint_mode mode,
					      u32 class)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);

	if (likely(sch->qstats.backlog + len <= q->config.limit_bytes)) {
		shred_push(sch, q, skb, len, shred_band_of(mode, class));
		return NET_XMIT_SUCCESS;
	}
	return shred_enqueue_full(skb, sch, to_free, class);
}

/* A packet that did not pass shred_passes() and may be selected; it is counted already. */
static noinline int shred_enqueue_decided(struct sk_buff *skb, struct Qdisc *sch,
					  struct sk_buff **to_free)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	enum shred_hint_mode mode = q->config.hint;
	u8 tos = shred_tos(skb);
	u32 class = shred_hint_class(mode, tos);
	enum shred_verdict verdict = shred_decide(q, q->qavg >> q->config.wlog,
						  shred_hint_read(mode, tos), qdisc_pkt_len(skb));

	if (verdict != SHRED_PASS && !shred_mark(sch, q, skb, verdict))
		return shred_drop(sch, q, skb, class, verdict, to_free);
	return shred_enqueue_last(skb, sch, to_free, mode, class);
}

/* The steps for every packet, once the average queue and the TOS byte are known. */
static __always_inline int shred_enqueue_as(struct sk_buff *skb, struct Qdisc *sch,
					    struct sk_buff **to_free, enum shred_hint_mode mode,
					    u64 qavg, u8 tos)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u32 class = shred_hint_class(mode, tos), hint = shred_hint_read(mode, tos);

	q->qavg = qavg;
	q->stats.class_pkts[class]++;
	if (hint)
		q->hint_avg_q22 = shred_hint_avg(q->hint_avg_q22, hint, q->config.weight_q32);
	if (likely(shred_passes(q, mode, qavg >> q->config.wlog, hint)))
		return shred_enqueue_last(skb, sch, to_free, mode, class);
	return shred_enqueue_decided(skb, sch, to_free);
}

/* The slow path: an aggregate to split, an empty queue, or a header in an unusual place. */
static noinline int shred_enqueue_any(struct sk_buff *skb, struct Qdisc *sch,
				      struct sk_buff **to_free)
{
	const struct shred_sched_data *q = qdisc_priv(sch);

	if (qdisc_pkt_len(skb) > q->config.split_bytes && skb_is_gso(skb))
		return shred_enqueue_split(skb, sch, to_free);
	return shred_enqueue_as(skb, sch, to_free, q->config.hint,
				sch->q.qlen ? shred_qavg_of(sch, q) : shred_qavg_after_idle(q),
				shred_tos(skb));
}

/* The fast path, for most packets, calls no function, so that few registers are saved, and is
 * compiled once for each mode. All other packets take shred_enqueue_any().
 */
static int shred_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u8 tos;

	/* on hosts with many active queues the bands are not in the cache */
	prefetchw(q->bands);
	if (likely(qdisc_pkt_len(skb) <= q->config.split_bytes && sch->q.qlen &&
		   shred_near_tos(skb, &tos))) {
		u64 qavg = shred_qavg_of(sch, q);

		if (q->config.hint == SHRED_HINT_DSCP)
			return shred_enqueue_as(skb, sch, to_free, SHRED_HINT_DSCP, qavg, tos);
		if (q->config.hint == SHRED_HINT_OFF)
			return shred_enqueue_as(skb, sch, to_free, SHRED_HINT_OFF, qavg, tos);
		return shred_enqueue_as(skb, sch, to_free, SHRED_HINT_TOS, qavg, tos);
	}
	return shred_enqueue_any(skb, sch, to_free);
}

/* Finish a dequeue that washes or that leaves the queue empty. */
static noinline struct sk_buff *shred_dequeue_last(struct Qdisc *sch, struct sk_buff *skb)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	if (!q->busy)
		q->idle_since = ktime_get();
	if (q->config.flags & SHRED_F_WASH)
		shred_wash(q, skb);
	return skb;
}

static struct sk_buff *shred_dequeue(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	prefetchw(q->bands);
	if (!q->busy)
		return NULL;
	if (likely(!(q->busy & (q->busy - 1))))
		skb = shred_pop(sch, q, __ffs(q->busy));
	else
		skb = shred_pop_among(sch);
	qdisc_bstats_update(sch, skb);
	if (likely(q->busy && !(q->config.flags & SHRED_F_WASH)))
		return skb;
	return shred_dequeue_last(sch, skb);
}

static void shred_reset(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u32 band;

	for (band = 0; band < SHRED_BANDS; band++) {
		if (q->busy & 1U << band)
			rtnl_kfree_skbs(q->bands[band].head, q->bands[band].tail);
		q->bands[band].head = NULL;
	}
	q->busy = 0;
	q->qavg = 0;
	shred_forget_count(q);
	q->hint_avg_q22 = 0;
	q->owed_bytes = 0;
	q->idle_since = ktime_get();
}

/* ---- configuration ---- */

static void shred_adapt(struct timer_list *t)
{
	struct shred_sched_data *q = timer_container_of(q, t, adapt_timer);
	struct shred_config *c = &q->config;
	u32 fifth_bytes, qavg_bytes;
	spinlock_t *root_lock;

	rcu_read_lock();
	root_lock = qdisc_lock(qdisc_root_sleeping(q->sch));
	spin_lock(root_lock);
	/* may have been switched off while this waited for the lock */
	if (c->flags & SHRED_F_ADAPTIVE) {
		fifth_bytes = (c->max_bytes - c->min_bytes) / 5;
		qavg_bytes = (q->sch->q.qlen ? q->qavg : shred_qavg_after_idle(q)) >> c->wlog;
		if (qavg_bytes > c->min_bytes + 3 * fifth_bytes &&
		    c->max_p_q32 <= SHRED_MAX_P_MOST)
			c->max_p_q32 += min(SHRED_MAX_P_STEP, c->max_p_q32 / 4);
		else if (qavg_bytes < c->min_bytes + 2 * fifth_bytes &&
			 c->max_p_q32 >= SHRED_MAX_P_STEP)
			c->max_p_q32 = c->max_p_q32 / 10 * 9;
		mod_timer(&q->adapt_timer, jiffies + SHRED_ADAPT_PERIOD);
	}
	spin_unlock(root_lock);
	rcu_read_unlock();
}

/* Called under the tree lock. Queued packets stay in their bands; those above a new limit are
 * dropped.
 */
static void shred_config_apply(struct Qdisc *sch, const struct shred_config *c,
			       struct sk_buff **to_free)
{
	unsigned int qlen = sch->q.qlen, backlog = sch->qstats.backlog;
	struct shred_sched_data *q = qdisc_priv(sch);
	u8 wlog = q->config.wlog;

	/* the unit of the average depends on its weight */
	q->qavg = c->wlog >= wlog ? q->qavg << (c->wlog - wlog) : q->qavg >> (wlog - c->wlog);
	shred_forget_count(q);
	if (c->hint != q->config.hint)
		q->hint_avg_q22 = 0;
	q->config = *c;
	q->floor_bytes = c->min_bytes;
	if (c->hint == SHRED_HINT_TOS)
		q->floor_bytes = min_t(u64, c->min_bytes, (u64)SHRED_FLOOR_PKTS * c->avpkt_bytes);
	shred_make_room(sch, q, ~0U, 0, to_free);
	qlen -= sch->q.qlen;
	if (qlen)
		qdisc_tree_reduce_backlog(sch, qlen, backlog - sch->qstats.backlog);
	timer_delete(&q->adapt_timer);
	if (c->flags & SHRED_F_ADAPTIVE)
		mod_timer(&q->adapt_timer, jiffies + SHRED_ADAPT_PERIOD);
}

/* Read and check a request, then apply it as a whole. */
static int shred_configure(struct Qdisc *sch, struct nlattr *opt, struct shred_config *c,
			   struct netlink_ext_ack *extack)
{
	int err = shred_config_parse(opt, c, extack);
	struct sk_buff *to_free = NULL;

	if (err)
		return err;
	sch_tree_lock(sch);
	shred_config_apply(sch, c, &to_free);
	sch_tree_unlock(sch);
	kfree_skb_list(to_free);
	return 0;
}

static int shred_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct shred_config config;

	shred_config_get(sch, &config);
	return shred_configure(sch, opt, &config, extack);
}

static int shred_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct shred_config config = shred_defaults;

	/* destroy runs even when init fails */
	q->sch = sch;
	timer_setup(&q->adapt_timer, shred_adapt, 0);
	shred_reset(sch);
	return shred_configure(sch, opt, &config, extack);
}

static void shred_destroy(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	timer_delete_sync(&q->adapt_timer);
}

static struct Qdisc_ops shred_qdisc_ops __read_mostly = {
	.id		= "shred",
	.priv_size	= sizeof(struct shred_sched_data),
	.enqueue	= shred_enqueue,
	.dequeue	= shred_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= shred_init,
	.reset		= shred_reset,
	.destroy	= shred_destroy,
	.change		= shred_change,
	.dump		= shred_dump,
	.dump_stats	= shred_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init shred_module_init(void)
{
	return register_qdisc(&shred_qdisc_ops);
}

static void __exit shred_module_exit(void)
{
	unregister_qdisc(&shred_qdisc_ops);
}

module_init(shred_module_init);
module_exit(shred_module_exit);

MODULE_ALIAS_NET_SCH("shred");
MODULE_DESCRIPTION("SHRED: RED that spares short flows by a hint in each packet");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
