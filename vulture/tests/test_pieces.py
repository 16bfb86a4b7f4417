# SPDX-License-Identifier: GPL-2.0
"""Functions cut out of the module's sources, and vulturectl, in conditions that no guest produces on demand.

A hash chain that changes under its reader, 3 GiB without loss, an application that holds its socket for long, a list
that fails half way, more rules than there are ids, downloads that have rested, a kernel without tracepoints.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.base.places import REPO
from vulture.tests.pieces import FOLDER, compiled, cut

pytestmark = pytest.mark.host

LOSS = """
#include <stdlib.h>
#include "policy.h"
#include "controller.h"
#define PAPER_REDUCED_BYTES	RWND_MAX_BYTES
struct paper { bool seen_data; u32 high_seq, reduced_seq; };
%s
/* Losses that are answered after so many bytes without one, of `losses`: one each 64 kB. */
u32 answered(u64 quiet_bytes, u32 losses, u32 ce)
{
	struct paper p = { 0 };
	struct rwnd_data d = { .seq = 0xfff00000, .bytes = 65536, .arrival = RWND_NEXT };
	u32 seen = 0;
	u64 i;

	for (i = 0; i < quiet_bytes / 65536; i++, d.seq += 65536)
		seen += paper_sees_loss(&p, &d);
	for (i = 0; i < losses; i++, d.seq += 65536) {
		d.arrival = ce ? RWND_NEXT : RWND_HOLE;
		d.ce = ce;
		if (paper_sees_loss(&p, &d)) {
			p.reduced_seq = p.high_seq;	/* paper_on_loss() */
			seen++;
		}
	}
	return seen;
}
"""


@pytest.mark.parametrize("gib", [0.001, 1, 1.9, 2.1, 3, 3.9, 5])
@pytest.mark.parametrize("ce", [0, 1])
def test_losses_count_however_long_there_was_none(tmp_path: Path, gib: float, ce: int) -> None:
    """A reduction covers what was in flight, not data 2 GiB earlier, where sequence numbers have wrapped."""
    library = compiled(LOSS, "paper_sees_loss", "paper.c", tmp_path)
    library.answered.argtypes = [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32]
    assert library.answered(int(gib * (1 << 30)), 10, ce) == 10


CHAIN = """
#include <stdlib.h>
#include <lbe/arith.h>
#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
struct hlist_nulls_node { struct hlist_nulls_node *next; };
struct sock { struct hlist_nulls_node node; bool matches; int refs, sk_refcnt; };
struct chain { struct hlist_nulls_node *chain; };
struct inet_hashinfo { struct chain *ehash; };
struct vulture_match { int unused; };
struct net { struct { struct { struct inet_hashinfo *hashinfo; } tcp_death_row; } ipv4; };

static struct sock socks[6];
static int pass;
#define refcount_inc_not_zero(refs)	(++*(refs))
#define sock_gen_put(sk)		((void)--(sk)->sk_refcnt)
#define get_nulls_value(end)		((unsigned int)((unsigned long)(end) >> 1))
/* First pass: the reader stands on 1 when that is freed and used anew in bucket 7. Second pass: all of 3. */
static struct sock *at(int i)
{
	return i < (pass ? 6 : 2) ? &socks[i] : NULL;
}
#define sk_nulls_for_each_rcu(sk, node, list)						\\
	for (int i_ = 0; (void)(list), (sk) = at(i_),					\\
	     (node) = (void *)(((unsigned long)((sk) ? 0 : pass++ ? 3 : 7) << 1) | 1), (sk); i_++)
static bool vulture_match_sock(struct net *net, const struct vulture_match *match, const struct sock *sk)
{
	return sk->matches;
}
%s
/* Return: matches; *held, and how many references there are on sockets. */
u32 scan(u32 room, u32 *held, s32 *refs)
{
	struct chain chains[8] = { { NULL } };
	struct inet_hashinfo info = { chains };
	struct net net = { { { &info } } };
	struct vulture_match match = { 0 };
	struct sock *found[8];
	u32 n, i;

	pass = 0;
	for (i = 0; i < 6; i++)
		socks[i] = (struct sock){ .matches = i != 4 };
	*held = 0;
	n = vulture_sockets_bucket(&net, &match, 3, found, room, held);
	for (*refs = 0, i = 0; i < 6; i++)
		*refs += socks[i].sk_refcnt;
	return n;
}
"""


@pytest.mark.parametrize(("room", "held"), [(8, 5), (3, 3)])
def test_a_chain_that_ends_in_another_bucket_is_read_again(tmp_path: Path, room: int, held: int) -> None:
    """The reader misses no flow, and takes no flow twice."""
    library = compiled(CHAIN, "vulture_sockets_bucket", "sockets.c", tmp_path)
    got, refs = ctypes.c_uint32(), ctypes.c_int32()
    assert library.scan(room, ctypes.byref(got), ctypes.byref(refs)) == 5
    assert (got.value, refs.value) == (held, held)


FLUSH = """
#include <stdlib.h>
#include <lbe/arith.h>
struct vulture_net { int flows; };
struct net { struct vulture_net vn; int users; bool dying; };
static struct net nets[4];
static int locked, net_rwsem, wrong;
static unsigned long jiffies = 1000;
#define VULTURE_LOCK_WAIT	100
#define down_read(sem)		((void)(sem), locked++)
#define up_read(sem)		((void)(sem), locked--)
#define for_each_net(net)	for ((net) = nets; (net) < nets + 4; (net)++)
#define atomic_read(value)	(*(value))
#define vulture_net(net)	(&(net)->vn)
static struct net *maybe_get_net(struct net *net)
{
	return net->dying ? NULL : (net->users++, net);
}
static void put_net(struct net *net) { net->users--; }
/* Ends one flow, and waits for an application that holds its socket: for all of them together until one time. */
static void vulture_flows_flush(struct vulture_net *vn, unsigned long until)
{
	struct net *net = (struct net *)vn;

	wrong += locked || net->users < 2 || until != 1000 + VULTURE_LOCK_WAIT;
	jiffies++;
	vn->flows--;
}
%s
int flush(void)
{
	for (int i = 0; i < 4; i++)
		nets[i] = (struct net){ { i }, 1, false };
	vulture_flush_all();
	for (int i = 0; i < 4; i++)
		wrong += nets[i].vn.flows || nets[i].users != 1;
	return wrong + locked;
}
"""


def test_flows_end_without_the_list_of_all_namespaces(tmp_path: Path) -> None:
    """An application may hold its socket for as long as it likes. The creation of namespaces does not wait for it."""
    library = compiled(FLUSH, "vulture_flush_all", "main.c", tmp_path)
    assert library.flush() == 0


NUMBER = """
#include <lbe/arith.h>
struct vulture_rule { u64 number; u32 id; };
static struct vulture_net { u64 next_rule; int rules; } net;
static struct vulture_rule rules[] = { { .id = 1 }, { .id = 2 }, { .id = 0xffffffff } };
#define list_for_each_entry(one, list, node)	for ((one) = rules; (void)(list), (one) < rules + 3; (one)++)
#define lower_32_bits(number)	((u32)(number))
%s
u64 number(u64 next, u32 *id)
{
	struct vulture_rule rule = { 0 };

	net.next_rule = next;
	vulture_rule_number(&net, &rule);
	*id = rule.id;
	return rule.number;
}
"""


@pytest.mark.parametrize(
    ("following", "number", "rule"), [(3, 3, 3), ((1 << 32) - 1, (1 << 32) + 3, 3), (1 << 33, (1 << 33) + 3, 3)]
)
def test_an_id_is_not_used_again_while_its_rule_is_there(
    tmp_path: Path, following: int, number: int, rule: int
) -> None:
    """After 2^32 rules the ids begin again, without 0 and without those in use. The order of the rules stays."""
    library = compiled(NUMBER, "vulture_rule_number", "rules.c", tmp_path)
    library.number.restype = ctypes.c_uint64
    got = ctypes.c_uint32()
    assert (library.number(ctypes.c_uint64(following), ctypes.byref(got)), got.value) == (number, rule)


BROKEN = """
#include <errno.h>
#include <stdint.h>
#include "internal.h"
struct vulture *__wrap_vulture_open(void);
struct vulture *__wrap_vulture_open(void) { static char handle[4096]; return (void *)handle; }
void __wrap_vulture_close(struct vulture *v);
void __wrap_vulture_close(struct vulture *v) { (void)v; }
const char *__wrap_vulture_error(const struct vulture *v);
const char *__wrap_vulture_error(const struct vulture *v) { (void)v; return "the rest is lost"; }
int __wrap_vulture_list(struct vulture *v, int (*each)(const struct vulture_flow *, void *), void *arg);
int __wrap_vulture_list(struct vulture *v, int (*each)(const struct vulture_flow *, void *), void *arg)
{
	struct vulture_flow flow = { .id = 1 };

	(void)v;
	each(&flow, arg);
	return RESULT;
}
int __wrap_vulture_rule_list(struct vulture *v, int (*each)(const struct vulture_rule *, void *), void *arg);
int __wrap_vulture_rule_list(struct vulture *v, int (*each)(const struct vulture_rule *, void *), void *arg)
{
	struct vulture_rule rule = { .id = 1 };

	(void)v;
	each(&rule, arg);
	return RESULT;
}
"""
WRAPPED = ("open", "close", "error", "list", "rule_list")


TURNS = """
#include <stdlib.h>
#include <lbe/arith.h>
#define CREDIT_ANY		(1U << 29)
#define CREDIT_OWN_SHARE	0U
#define CREDIT_SPENT		(CREDIT_ANY + 1)
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define list_first_entry(list, type, member)	(&flows[first])
#define list_move_tail(node, list)		(first = (first + 1) %%%% 3)
struct credit_flow {
	struct credit_path *path;
	bool own_known;
	u32 own_seq, goal_seq, high_seq, used_bytes, mss_bytes, unit_bytes, weight, train_nth, train_seq;
};
struct credit_law { u32 window_bytes, mss_bytes; u64 trains, kept_Bps; };
struct credit_path { struct credit_law law; u32 n; u64 weights; };
static struct credit_flow flows[3];
static int first;
static s32 credit_out(const struct credit_flow *f) { return (s32)(f->goal_seq - f->high_seq); }
static u32 credit_used(const struct credit_flow *f) { return f->used_bytes; }
%s
/* Three downloads that have rested: packets that they get at once, of so many, with this limit. */
u32 given(u32 pkts, u32 limit)
{
	struct credit_path p = { { 0, 1448, 7, 0 }, 3, 3 };
	u32 n = 0;

	for (int i = 0; i < 3; i++)
		flows[i] = (struct credit_flow){ .path = &p, .mss_bytes = 1448, .weight = 1 };
	while (n < pkts) {
		struct credit_flow *f = credit_turn(&p, 1448, limit);

		if (!f)
			break;
		f->goal_seq += 1448;
		list_move_tail(&f->node, &p.flows);
		n++;
	}
	return n;
}

/* A train of ten on three downloads, of which one has used all that it had and others hold @held packets, of which they
 * use one a round trip; in CRUISE or not. Return: packets for the first.
 */
u32 given_to_waiting(u32 held, u64 kept_Bps)
{
	struct credit_path p = { { 0, 1448, 7, kept_Bps }, 3, 3 };
	u32 n = 0;

	for (int i = 0; i < 3; i++)
		flows[i] = (struct credit_flow){ .path = &p, .mss_bytes = 1448, .unit_bytes = 128, .weight = 1,
						 .used_bytes = 1448, .goal_seq = i ? held * 1448 : 0 };
	for (int i = 0; i < 10; i++) {
		struct credit_flow *f = credit_turn(&p, 1448, CREDIT_SPENT);

		if (!f)
			break;
		if (f->train_nth != 7) {
			f->train_nth = 7;
			f->train_seq = f->goal_seq;
		}
		f->goal_seq += 1448;
		n += f == &flows[0];
		list_move_tail(&f->node, &p.flows);
	}
	return n;
}

/* Is one download given a segment of the path's length, where TCP's own window and its segments are so long? */
u32 given_to_small(u32 own_bytes, u32 mss_bytes)
{
	struct credit_path p = { { 65536, 65483, 0, 0 }, 1, 1 };

	flows[0] = (struct credit_flow){ .path = &p, .own_known = true, .own_seq = own_bytes,
					 .mss_bytes = mss_bytes, .weight = 1 };
	first = 0;
	return credit_turn(&p, 65483, 65483) != NULL;
}
"""


def test_a_train_is_not_cut_to_what_downloads_used_at_the_floor(tmp_path: Path) -> None:
    """A train has a limit of its own; the window goes to the downloads that use it."""
    pieces = [cut(f"credit_{name}", "credit.c") for name in ("share", "cap", "waits", "can_use")]
    library = compiled(TURNS % ("".join(pieces) + "%s"), "credit_turn", "credit.c", tmp_path)
    assert library.given(100, 200 * 1448) == 100
    assert library.given(100, 1 << 29) < 20
    assert library.given(100, 0) < 10


@pytest.mark.parametrize(
    ("held", "kept", "first"),
    [(0, 0, range(3, 5)), (3, 0, [10]), (40, 0, [10]), (2, 10**6, range(3, 5)), (3, 10**6, [10])],
)
def test_a_train_goes_to_those_that_wait_for_credit(tmp_path: Path, held: int, kept: int, first: list[int]) -> None:
    """A download that holds credit without using it would not send its part of a train, which would look lost."""
    pieces = [cut(f"credit_{name}", "credit.c") for name in ("share", "cap", "waits", "can_use")]
    library = compiled(TURNS % ("".join(pieces) + "%s"), "credit_turn", "credit.c", tmp_path)
    assert library.given_to_waiting(held, ctypes.c_uint64(kept)) in first


def test_a_small_buffer_gets_credit_beside_long_segments(tmp_path: Path) -> None:
    """Its own window of TCP never holds a segment as long as those of another download of the path."""
    pieces = [cut(f"credit_{name}", "credit.c") for name in ("share", "cap", "waits", "can_use")]
    library = compiled(TURNS % ("".join(pieces) + "%s"), "credit_turn", "credit.c", tmp_path)
    assert library.given_to_small(8192, 4096) and library.given_to_small(65483, 65483)
    assert not library.given_to_small(4000, 4096) and not library.given_to_small(65000, 65483)


PERIOD = """
#include <stdlib.h>
#include "credit.h"
#define VULTURE_CREDIT_O_MIN_KBIT	1
#define VULTURE_CREDIT_O_ESCAPE_S	2
struct credit_flow { struct credit_path *path; const u32 *options; u32 unit_bytes; };
struct credit_path { struct credit_law law; u32 n; };
%s
/* Time between two packets of the floor, us: so many downloads, each with this option. */
u64 period(u32 n, u32 min_kbit)
{
	struct credit_path p = { .law = { .mss_bytes = 1448, .base_us = 100000, .mu_Bps = 1250000 }, .n = n };
	const u32 options[3] = { 0, min_kbit, 0 };
	struct credit_flow f = { &p, options, 1 };

	return credit_probe_period(&f, 10000000);
}
"""


@pytest.mark.parametrize(
    ("n", "min_kbit", "period_us"),
    [(1, 100, 115_840), (8192, 524_288, 1000), (8192, 600_000, 1000), (65_535, 1_000_000, 1000)],
)
def test_the_least_rate_of_thousands_of_downloads(tmp_path: Path, n: int, min_kbit: int, period_us: int) -> None:
    """The sum in kbit/s does not fit into 32 bits: 8192 times 524288 would be 0, and the kernel divides by it."""
    library = compiled(PERIOD, "credit_probe_period", "credit.c", tmp_path)
    library.period.restype = ctypes.c_uint64
    assert library.period(n, min_kbit) == period_us


TIMER = """
#include <stdlib.h>
#include <lbe/arith.h>
#define VULTURE_TIMER_MAX_US	1000000
#define NSEC_PER_USEC		1000
#define HRTIMER_MODE_ABS_SOFT	0
#define ns_to_ktime(ns)		(ns)
#define spin_lock(lock)		((void)(lock))
#define spin_unlock(lock)	((void)(lock))
#define bh_lock_sock(sk)	((void)(sk))
#define bh_unlock_sock(sk)	((void)(sk))
#define sock_put(sk)		((void)(sk))
#define refcount_inc(refs)	(++*(refs))
#define atomic_inc(value)	(++*(value))
#define atomic_dec_and_test(value)	(!--*(value))
#define wake_up_var(value)	((void)(value))
#define container_of(member, type, name)	(&one)
enum hrtimer_restart { HRTIMER_NORESTART };
struct hrtimer { bool queued, running; };
struct sock { int unused; };
struct vulture_net { int timers; };
struct vulture_flow {
	struct vulture_net *vn;
	struct hrtimer timer;
	int refs, timer_lock;
	u64 timer_us, poke_us;
	bool timer_ends, timer_held;
};
static struct vulture_net net;
static struct vulture_flow one;
static struct sock socket;
static int wrong;

/* The kernel's: what is queued again while it runs runs once more. */
static void hrtimer_start(struct hrtimer *timer, u64 at_ns, int mode) { timer->queued = true; }
__attribute__((unused)) static bool hrtimer_is_queued(const struct hrtimer *timer) { return timer->queued; }
static int hrtimer_try_to_cancel(struct hrtimer *timer)
{
	int was = timer->queued;

	if (timer->running)
		return -1;
	timer->queued = false;
	return was;
}
static void vulture_flow_put(struct vulture_flow *flow) { wrong += --flow->refs < 0; }
static struct sock *vulture_flow_hold_sock(struct vulture_flow *flow);
static bool vulture_flow_due(struct vulture_flow *flow, const struct sock *sk);
static void vulture_send_update(struct vulture_flow *flow, struct sock *sk) { }
%s

/* What the other CPU does, and when: as the timer's function begins, in its middle, or not at all. */
enum { NEVER, BEGIN, MIDDLE };
static int wakes, ends;
static void other(int when)
{
	if (wakes == when)
		vulture_timer_set(&one, 500);
	if (ends == when)
		vulture_timer_end(&one);
}
static struct sock *vulture_flow_hold_sock(struct vulture_flow *flow) { other(BEGIN); return &socket; }
static bool vulture_flow_due(struct vulture_flow *flow, const struct sock *sk) { other(MIDDLE); return false; }

/* A timer for 1000 runs; then all that is queued. Return: references left, or taken that nobody had. */
int race(int wakes_when, int ends_when)
{
	net.timers = wrong = 0;
	one = (struct vulture_flow){ .vn = &net, .refs = 1 };
	wakes = wakes_when;
	ends = ends_when;
	vulture_timer_set(&one, 1000);
	for (int runs = 0; one.timer.queued && runs < 5; runs++) {
		one.timer = (struct hrtimer){ .running = true };
		vulture_timer(&one.timer);
		one.timer.running = false;
		wakes = ends = NEVER;
	}
	vulture_timer_end(&one);
	return wrong + abs(one.refs - 1) + abs(net.timers);
}
"""


@pytest.mark.parametrize("wakes", [0, 1, 2])
@pytest.mark.parametrize("ends", [0, 1, 2])
def test_a_timer_armed_while_it_runs_has_one_reference(tmp_path: Path, wakes: int, ends: int) -> None:
    """While the timer's function runs, and before it has noted so, another CPU may arm the timer for an earlier time or
    end it."""
    names = ("put", "set", "ran", "done")
    text = (FOLDER / "update.c").read_text(encoding="utf-8")
    pieces = [cut(f"vulture_timer_{name}", "update.c") for name in names if f" vulture_timer_{name}(" in text]
    pieces.append(cut("vulture_timer_end", "update.c"))
    library = compiled(TIMER % ("".join(pieces) + "%s"), "vulture_timer", "update.c", tmp_path)
    assert library.race(wakes, ends) == 0


@pytest.mark.parametrize("enum", ["mode", "policy", "reason"])
def test_tracepoints_name_what_there_is(enum: str) -> None:
    """The names in tracepoints are those of the spec, and all of them."""
    spec = yaml.safe_load((REPO / "Documentation/vulture.yaml").read_text(encoding="utf-8"))
    wanted = next(one["entries"] for one in spec["definitions"] if one["name"] == enum)
    text = (FOLDER / "trace.h").read_text(encoding="utf-8")
    found = re.search(rf"__print_symbolic\(__entry->{enum},(.*?)\)", text, re.DOTALL)
    assert found
    assert re.findall(r'\{ (\d+), "(\w+)" \}', found[1]) == [(str(i), name) for i, name in enumerate(wanted)]


@pytest.fixture(scope="module")
def ctl(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """vulturectl whose lists hand over one and then return the key."""
    tools = {}
    for result in (-1, 0):
        folder = tmp_path_factory.mktemp("ctl")
        (folder / "broken.c").write_text(BROKEN.replace("RESULT", str(result)))
        words = [*(f"-Wl,--wrap=vulture_{name}" for name in WRAPPED), f"-I{REPO}/tools/libvulture"]
        flags = " ".join([*words, str(folder / "broken.c")])
        make = ["make", "-s", "-C", f"{REPO}/tools/vulturectl", f"O={folder}", "BPF=no", f"LDFLAGS={flags}"]
        subprocess.run(make, check=True)
        tools[result] = folder / "vulturectl"
    return tools


@pytest.mark.parametrize("words", [["list"], ["rule", "list"], ["monitor"]])
def test_a_list_that_fails_half_way_leaves_no_half_of_a_document(ctl: dict[int, Path], words: list[str]) -> None:
    done = subprocess.run([ctl[-1], "--json", *words], check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "vulturectl: the rest is lost\n")


@pytest.mark.parametrize("words", [["list"], ["rule", "list"]])
def test_a_list_that_does_not_fail_is_whole(ctl: dict[int, Path], words: list[str]) -> None:
    said = json.loads(subprocess.run([ctl[0], "--json", *words], check=True, capture_output=True, text=True).stdout)
    assert [one["id"] for one in (said["connections"] if words == ["list"] else said)] == [1]


@pytest.mark.parametrize("lacks", [[], ["CONFIG_TRACEPOINTS"], ["CONFIG_NETFILTER"]])
def test_a_kernel_that_cannot_carry_it_builds_the_others(lacks: list[str]) -> None:
    """Kbuild leaves out a module that this kernel cannot build, says why, and builds the others."""
    has = [f"{name}=y" for name in ("CONFIG_TRACEPOINTS", "CONFIG_NETFILTER") if name not in lacks]
    text = f"src := {FOLDER}\nKBUILD_MODULES := 1\ninclude {FOLDER}/Kbuild\nall:\n\t@echo modules: $(obj-m)\n"
    words = ["make", "-s", "-f", "-", "all", *has]
    said = subprocess.run(words, input=text, check=True, capture_output=True, text=True).stdout
    assert ("vulture.o" in said.split("modules:")[1].split()) == (not lacks)
    assert ("left out" in said and all(name in said for name in lacks)) == bool(lacks)
