# SPDX-License-Identifier: GPL-2.0
"""The order in which the module begins and ends its work, and the longest segment that it believes.

Each function is cut out of its source. The functions that it calls are replaced by ones that only note the call.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from vulture.tests.pieces import compiled, cut, cut_table

pytestmark = pytest.mark.host

# ------------------------------------------------------------------------------- segments

GEOMETRY = """
#include <stdlib.h>
#include "controller.h"
#define min3(a, b, c)	min(min(a, b), c)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
struct sk_buff { struct { u32 gso_size; } shared; };
#define skb_shinfo(skb)	(&(skb)->shared)
%s
/* Return: length of a segment, and in *segs how many there are. */
u32 geometry(u32 gso_size, u32 bytes, u32 max_seg_bytes, u32 *segs)
{
	const struct sk_buff skb = { { gso_size } };
	struct rwnd_data data = { .bytes = bytes };

	vulture_geometry(&skb, max_seg_bytes, &data);
	*segs = data.segs;
	return data.seg_bytes;
}
"""


@pytest.mark.parametrize(
    ("gso_size", "size", "longest", "segment", "segments"),
    [
        (0, 1448, 1448, 1448, 1),
        (0, 100, 1448, 100, 1),
        (1448, 14480, 1448, 1448, 10),
        (1448, 15000, 1448, 1448, 11),
        # an aggregate that does not say of what: a card's LRO, a peer on the same machine
        (0, 65160, 1448, 1448, 45),
        # one that says more than we announced
        (9000, 45000, 1448, 1448, 32),
        (65000, 65000, 536, 536, 122),
        (600, 500, 1448, 500, 1),
    ],
)
def test_no_segment_is_longer_than_the_mss_that_was_announced(
    tmp_path: Path, gso_size: int, size: int, longest: int, segment: int, segments: int
) -> None:
    """Credit counts in segments. If it believed a segment of 65 kB, one segment would be as much as a train."""
    library = compiled(GEOMETRY, "vulture_geometry", "hook.c", tmp_path)
    got = ctypes.c_uint32()
    assert (library.geometry(gso_size, size, longest, ctypes.byref(got)), got.value) == (segment, segments)


NEW = """
#include <stdlib.h>
#include <lbe/arith.h>
#define TCP_MIN_MSS	88U
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define spin_lock_init(lock)	((void)(lock))
#define atomic64_inc_return(value)	(++*(value))
#define tcp_sk(sk)	(sk)
typedef int gfp_t;
struct sock { u32 advmss; };
struct vulture_net { int unused; };
struct vulture_key { int unused; };
struct vulture_rule { u32 id; void *user; };
struct vulture_options { int controller; };
struct rwnd_controller { u32 path_bytes; };
struct path { int lock; };
struct vulture_flow {
	struct vulture_key key;
	struct sock *sk;
	struct vulture_net *vn;
	const struct rwnd_controller *controller;
	struct path *path;
	u64 id, started_us;
	u32 rule, max_seg_bytes;
	void *user;
	int lock, own_lock, *state_lock;
};
static struct rwnd_controller one;
static const struct rwnd_controller *rwnd_controllers[] = { &one };
static u64 vulture_last_id;
static struct vulture_flow flow;
static struct vulture_flow *vulture_flow_alloc(const struct vulture_options *o, gfp_t gfp) { return &flow; }
static void vulture_flow_free(struct vulture_flow *f) { }
static struct path *vulture_path_get(struct vulture_net *vn, struct sock *sk, const struct vulture_key *key, int c,
				     gfp_t gfp) { return NULL; }
static u64 vulture_now_us(void) { return 1; }
static void vulture_timer_init(struct vulture_flow *f) { }
static void vulture_flow_edge(struct vulture_flow *f, struct sock *sk, bool opening) { }
static void vulture_flow_init_controller(struct vulture_flow *f, struct sock *sk) { }
%s
u32 longest(u32 advmss)
{
	struct vulture_net vn = { 0 };
	struct vulture_key key = { 0 };
	struct vulture_options options = { 0 };
	struct sock sk = { advmss };

	return vulture_flow_new(&vn, &sk, &key, &options, NULL, false, 0)->max_seg_bytes;
}
"""


@pytest.mark.parametrize(("advmss", "longest"), [(1448, 1448), (536, 536), (65483, 65483), (0, 88)])
def test_the_longest_segment_is_what_we_announced(tmp_path: Path, advmss: int, longest: int) -> None:
    library = compiled(NEW, "vulture_flow_new", "flow.c", tmp_path)
    assert library.longest(advmss) == longest


# --------------------------------------------------------------------------------- begins

#: What both worlds have: the hooks, of which hold fails with hold_err, and what comes after them with next_err. order()
#: returns what begin(), which each has, has called.
HOOKS = """
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <lbe/arith.h>
#define NL_SET_ERR_MSG_MOD(extack, text)	((void)(extack))
#define vulture_net(net)	(&vulture)
struct netlink_ext_ack { int unused; };
static struct vulture_net { int rules_lock; } vulture;
static int hold_err, next_err;
static char log_[64];
static void note(const char *what) { strcat(log_, what); }
static int vulture_hooks_hold(struct vulture_net *vn) { note("hold "); return hold_err; }
static void vulture_hooks_release(struct vulture_net *vn) { note("release "); }
static int begin(void);
const char *order(int held, int next, int *err)
{
	log_[0] = 0;
	hold_err = held;
	next_err = next;
	*err = begin();
	return log_;
}
"""


def ordered(world: str, name: str, folder: Path, held: int, following: int) -> tuple[str, int]:
    """Return the calls of a function of netlink.c, in order, if the hooks and what follows them return these values;
    and its result."""
    library = compiled(HOOKS + world, name, "netlink.c", folder)
    library.order.restype = ctypes.c_char_p
    got = ctypes.c_int()
    return library.order(held, following, ctypes.byref(got)).decode().strip(), got.value


START = """
#define sock_net(sk)	(sk)
struct sock { int unused; };
struct vulture_options { int unused; };
static int vulture_flow_start(struct sock *sk, const struct vulture_options *options, unsigned long until, u64 *id,
			      struct netlink_ext_ack *extack)
{
	note("start ");
	return next_err;
}
%s
static int begin(void)
{
	struct vulture_options options = { 0 };
	struct sock sk = { 0 };
	u64 id;

	return vulture_start_one(&sk, &options, 0, &id, NULL);
}
"""


@pytest.mark.parametrize(
    ("held", "started", "order", "result"),
    [(0, 0, "hold start release", 0), (0, -17, "hold start release", -17), (-12, 0, "hold", -12)],
)
def test_hooks_are_there_before_a_connection_starts(
    tmp_path: Path, held: int, started: int, order: str, result: int
) -> None:
    """If the hooks missed a segment, it would advertise more than the flow knows."""
    assert ordered(START, "vulture_start_one", tmp_path, held, started) == (order, result)


RULE = """
#define GFP_KERNEL_ACCOUNT	0
#define kzalloc(bytes, gfp)	calloc(1, bytes)
#define kfree(p)	free(p)
#define mutex_lock(lock)	((void)(lock))
#define mutex_unlock(lock)	((void)(lock))
#define genl_info_net(info)	((struct net *)NULL)
enum { VULTURE_R_CGROUP_FD, VULTURE_R_FOREGROUND, VULTURE_R_MAX = VULTURE_R_FOREGROUND };
#define VULTURE_CMD_RULE_ADD	1
struct net;
struct nlattr;
struct sk_buff { int unused; };
struct genl_info { struct netlink_ext_ack *extack; };
struct vulture_rule { u32 id; };
static struct sk_buff reply;
static int rules;
static int vulture_rule_attrs(struct genl_info *info, struct nlattr **attrs) { return 0; }
static bool vulture_is_admin(struct sk_buff *skb, struct net *net) { return true; }
static bool vulture_admin(struct sk_buff *skb, struct net *net, struct netlink_ext_ack *e) { return true; }
static bool vulture_sender_is_caller(struct sk_buff *skb) { return true; }
static struct sk_buff *vulture_reply(struct genl_info *info, int cmd, void **header) { return &reply; }
static void nlmsg_free(struct sk_buff *msg) { }
static void genlmsg_end(struct sk_buff *msg, void *header) { }
static int genlmsg_reply(struct sk_buff *msg, struct genl_info *info) { return 0; }
static int vulture_parse_rule(struct vulture_net *vn, struct nlattr **attrs, struct vulture_rule *rule,
			      struct netlink_ext_ack *extack) { return 0; }
static int vulture_rule_own(struct vulture_net *vn, struct vulture_rule *rule, struct netlink_ext_ack *e) { return 0; }
static int vulture_rule_insert(struct vulture_net *vn, struct vulture_rule *rule, struct netlink_ext_ack *extack)
{
	note("insert ");
	rules += !next_err;
	rule->id = !next_err;
	return next_err;
}
static int vulture_put_rule(struct sk_buff *msg, const struct vulture_rule *rule) { return 0; }
static struct vulture_rule *vulture_rule_remove(struct vulture_net *vn, u32 id, bool admin) { return NULL; }
static void vulture_rule_free(struct vulture_rule *rule) { note("free "); free(rule); }
%s
static int begin(void)
{
	struct genl_info info = { NULL };
	struct sk_buff skb = { 0 };

	return vulture_nl_rule_add_doit(&skb, &info);
}
"""


@pytest.mark.parametrize(
    ("held", "inserted", "order", "result"),
    [(0, 0, "hold insert release", 0), (0, -28, "hold insert release free", -28), (-12, 0, "hold free", -12)],
)
def test_hooks_are_there_before_a_rule(tmp_path: Path, held: int, inserted: int, order: str, result: int) -> None:
    """The hooks see a connection that the rule starts from its first segment on. Without hooks a rule is refused."""
    assert ordered(RULE, "vulture_nl_rule_add_doit", tmp_path, held, inserted) == (order, result)


# ----------------------------------------------------------------------------------- ends

END = """
#include <stdlib.h>
#include <lbe/arith.h>
#define __net_init
#define __net_exit
#define WRITE_ONCE(place, value)	((place) = (value))
static unsigned long jiffies;
static int vulture_net_id;
struct net { int unused; };
struct vulture_net { bool closing; int hooks_work; };
struct pernet_operations {
	int (*init)(struct net *net);
	void (*pre_exit)(struct net *net);
	void (*exit)(struct net *net);
	int *id;
	unsigned long size;
};
static struct vulture_net vulture;
#define vulture_net(net)	(&vulture)
static int vulture_net_init(struct net *net) { return 0; }
/* What there is, and what was wrong: one bit each. */
static bool hooked, rules, paths, table, work;
static int flows, timers, wrong;
/* Since the hooks went, every CPU has left them. */
static bool grace;
static void is(int bit, bool good) { wrong |= good ? 0 : 1 << bit; }
static void vulture_hooks_net_exit(struct vulture_net *v)
{
	is(0, vulture.closing);		/* else a request registers them again */
	is(1, !work);			/* so would the delayed work */
	hooked = false;
}
static bool cancel_delayed_work_sync(int *w) { return work = false; }
static void vulture_flows_flush(struct vulture_net *v, unsigned long until)
{
	flows = 0;
	work |= !vulture.closing;	/* the last flow that ends asks for the hooks to go */
}
static void vulture_timers_wait(struct vulture_net *v) { is(2, !flows); timers = 0; }
static void vulture_rules_net_exit(struct vulture_net *v) { is(3, !hooked && grace); rules = false; }
static void vulture_paths_exit(struct vulture_net *v) { is(4, !flows && !timers); paths = false; }
static void vulture_flows_net_exit(struct vulture_net *v)
{
	is(5, !hooked && grace);	/* a CPU would look for a flow in it */
	is(6, !flows && !timers);	/* a timer's flow is in it */
	is(7, !work);
	table = false;
}
%s
/* As cleanup_net() ends a namespace: .pre_exit, a grace period, .exit. Meanwhile a request starts one flow more.
 * Return: what was wrong, by bit.
 */
int end(void)
{
	struct net net = { 0 };

	vulture.closing = false;
	hooked = rules = paths = table = work = true;
	grace = false;
	flows = timers = 3;
	wrong = 0;
	if (vulture_net_ops.pre_exit)
		vulture_net_ops.pre_exit(&net);
	grace = !hooked;
	flows++;
	timers++;
	vulture_net_ops.exit(&net);
	is(8, !hooked && !rules && !paths && !table && !work);
	return wrong;
}
"""


def test_a_namespace_ends_its_hooks_a_grace_period_before_the_table(tmp_path: Path) -> None:
    """Flows, timers and work items end before what they use."""
    before, table = cut("vulture_net_pre_exit", "main.c"), cut_table("vulture_net_ops", "main.c")
    library = compiled(END.replace("%s", before + "%s" + table), "vulture_net_exit", "main.c", tmp_path)
    assert library.end() == 0, f"bits of END that are wrong: {library.end():#b}"
