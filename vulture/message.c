// SPDX-License-Identifier: GPL-2.0
/*
 * Writes flows as netlink messages, and sends the events of their start and end.
 */
#include <net/genetlink.h>
#include <lbe/genl.h>

#include "netlink_gen.h"
#include "vulture.h"

static bool vulture_listening;	/* the family is registered: events may go out */

static int vulture_put_addr(struct sk_buff *skb, int type, const struct vulture_key *key)
{
	unsigned int length = key->family == AF_INET ? 4 : 16;
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest ||
	    nla_put(skb, VULTURE_ADDR_LOCAL, length, key->local) ||
	    nla_put_u16(skb, VULTURE_ADDR_LOCAL_PORT, ntohs(key->local_port)) ||
	    nla_put(skb, VULTURE_ADDR_REMOTE, length, key->remote) ||
	    nla_put_u16(skb, VULTURE_ADDR_REMOTE_PORT, ntohs(key->remote_port)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* The state and counters of a flow, copied under its lock so that they are consistent. */
struct vulture_snapshot {
	struct rwnd_view view;
	u64 stats[RWND_STATS_MAX];
	struct vulture_options options;
	u32 own_bytes, advertised_bytes;
	u64 age_us, segments, bytes, acks, rewritten, updates;
};

static void vulture_snapshot(struct vulture_flow *flow, struct vulture_snapshot *s)
{
	u64 now_us = vulture_now_us();

	memset(s, 0, sizeof(*s));
	spin_lock_bh(&flow->lock);
	spin_lock(flow->state_lock);
	if (!flow->left)
		flow->controller->stats(flow->state, now_us, &s->view, s->stats);
	spin_unlock(flow->state_lock);
	s->options = flow->options;
	s->own_bytes = flow->edge.own_bytes;
	s->advertised_bytes = flow->edge.advertised_bytes;
	s->age_us = now_us - flow->started_us;
	s->segments = flow->segments;
	s->bytes = flow->bytes;
	s->acks = flow->acks;
	s->rewritten = flow->rewritten;
	s->updates = flow->updates;
	spin_unlock_bh(&flow->lock);
}

static int vulture_put_counters(struct sk_buff *skb, const struct vulture_snapshot *s)
{
	const struct { int type; u64 value; } counters[] = {
		{ VULTURE_F_AGE_US, s->age_us },
		{ VULTURE_F_SEGMENTS, s->segments },
		{ VULTURE_F_BYTES, s->bytes },
		{ VULTURE_F_ACKS, s->acks },
		{ VULTURE_F_REWRITTEN, s->rewritten },
		{ VULTURE_F_UPDATES, s->updates },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		if (nla_put_u64_64bit(skb, counters[i].type, counters[i].value,
				      VULTURE_F_PAD))
			return -EMSGSIZE;
	return 0;
}

static int vulture_put_view(struct sk_buff *skb, const struct vulture_snapshot *s)
{
	const struct { int type; u32 value; } fields[] = {
		{ VULTURE_F_WINDOW_BYTES, s->view.window_bytes },
		{ VULTURE_F_ADVERTISED_BYTES, s->advertised_bytes },
		{ VULTURE_F_OWN_BYTES, s->own_bytes },
		{ VULTURE_F_RTT_US, s->view.rtt_us },
		{ VULTURE_F_MIN_RTT_US, s->view.min_rtt_us },
		{ VULTURE_F_QUEUE_US, s->view.queue_us },
		{ VULTURE_F_MSS_BYTES, s->view.mss_bytes },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (nla_put_u32(skb, fields[i].type, fields[i].value))
			return -EMSGSIZE;
	return 0;
}

/* Put the nest of the flow's controller. The attributes are in the order of the controllers. */
static int vulture_put_stats(struct sk_buff *skb, const struct vulture_snapshot *s)
{
	const struct rwnd_controller *c = rwnd_controllers[s->options.controller];
	struct nlattr *nest = nla_nest_start(skb, VULTURE_F_PAPER + s->options.controller);
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 1; i < c->n_stats; i++)
		if (nla_put_u64_64bit(skb, i, s->stats[i], c->n_stats))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int vulture_flow_put_message(struct sk_buff *skb, struct vulture_flow *flow)
{
	struct nlattr *nest = nla_nest_start(skb, VULTURE_A_FLOW);
	struct vulture_snapshot snapshot;

	if (!nest)
		return -EMSGSIZE;
	vulture_snapshot(flow, &snapshot);
	if (nla_put_u64_64bit(skb, VULTURE_F_ID, flow->id, VULTURE_F_PAD) ||
	    vulture_put_addr(skb, VULTURE_F_ADDR, &flow->key) ||
	    nla_put_u32(skb, VULTURE_F_RULE, flow->rule) ||
	    vulture_options_put(skb, VULTURE_F_OPTIONS, &snapshot.options) ||
	    vulture_put_view(skb, &snapshot) ||
	    vulture_put_counters(skb, &snapshot) ||
	    vulture_put_stats(skb, &snapshot)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* Send an event to the listeners, if there are any. May be called in any context. */
void vulture_event(struct vulture_flow *flow, u8 cmd, u32 reason)
{
	struct net *net = flow->vn->net;
	struct sk_buff *msg;
	void *header;

	if (!READ_ONCE(vulture_listening) ||
	    !genl_has_listeners(lbe_genl(&vulture_nl_family), net, VULTURE_NLGRP_EVENTS))
		return;
	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_ATOMIC);
	if (!msg)
		return;
	header = genlmsg_put(msg, 0, 0, lbe_genl(&vulture_nl_family), 0, cmd);
	if (!header || vulture_flow_put_message(msg, flow) ||
	    (cmd == VULTURE_CMD_EVENT_END && nla_put_u32(msg, VULTURE_A_REASON, reason))) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, header);
	genlmsg_multicast_netns(lbe_genl(&vulture_nl_family), net, msg, 0, VULTURE_NLGRP_EVENTS,
				GFP_ATOMIC);
}

void vulture_events_enable(bool on)
{
	WRITE_ONCE(vulture_listening, on);
}
