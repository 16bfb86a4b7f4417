# SPDX-License-Identifier: GPL-2.0
"""The queue's decision under any packets and any settings that tc accepts: law_fuzz.c."""

from __future__ import annotations

from pathlib import Path

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
#: 500 packets each; 4000 of them take two seconds
PEERS = 4000

#: what these sections take from the kernel
WORLD = """
#include <assert.h>
#include <stddef.h>
#include "fuzz.h"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define offsetofend(type, member)	(offsetof(type, member) + sizeof(((type *)0)->member))
#define sizeof_field(type, member)	sizeof(((type *)0)->member)
#define ____cacheline_aligned		__attribute__((aligned(64)))
#define DIV_ROUND_UP(n, d)		(((n) + (d) - 1) / (d))
#define USEC_PER_SEC			1000000UL
#define check_mul_overflow(a, b, to)	__builtin_mul_overflow(a, b, to)
#define mul_u64_u64_div_u64(a, b, c)	mul_div(a, b, c)
#define get_random_u32()		((u32)draw(1ULL << 32))
#define ktime_get()			((s64)now_us)
#define ktime_us_delta(later, earlier)	((later) - (earlier))
#define shred_refuse(...)		(-22)
#define SHRED_BURST_MAX			(1U << 24)
#define SHRED_MAX_P_STEP		(U32_MAX / 100)
#define SHRED_MAX_P_MOST		(U32_MAX / 2)

typedef s64 ktime_t;
struct sk_buff;
struct nlattr;
struct gnet_dump;
struct netlink_ext_ack;
struct timer_list { int unused; };
struct Qdisc { struct { u32 backlog; } qstats; struct { u32 qlen; } q; };

static u64 now_us;

/* The processor stops at a quotient of more than 64 bits. */
static u64 mul_div(u64 a, u64 b, u64 c)
{
	unsigned __int128 quotient = (unsigned __int128)a * b / c;

	must(quotient <= U64_MAX, "a quotient beyond 64 bits, less 2^64", (u64)quotient);
	return (u64)quotient;
}
"""


def section(name: str, begin: str, end: str) -> str:
    """A part of a source file."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text.count(begin) == text.count(end) == 1
    return text[text.index(begin) : text.index(end)]


def test_no_packet_and_no_setting_breaks_the_decision(tmp_path: Path) -> None:
    """And each verdict is given (a full queue, SHRED_LIMIT, is not one of the decision's)."""
    source = (
        WORLD
        + hostc.bare(FOLDER / "queue.h")
        + section("config.c", "const struct shred_config shred_defaults", "/* ---- from a request")
        + section("config.c", "static int shred_set_time", "/* Apply a request, if")
        + section("queue.c", "static u64 shred_qavg_after_idle", "/* ---- the bands")
    )
    packets = hostc.fuzz(source, tmp_path, FOLDER, PEERS)
    assert len(packets) == 5
    assert all(one > 1000 for one in (packets[0], packets[1], packets[2], packets[4])), packets
