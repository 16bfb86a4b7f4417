# SPDX-License-Identifier: GPL-2.0
"""The controller credit in a closed loop with TCP senders, on this machine: credit_model.c, compiled with credit.c.

    python3 -m vulture.tests.credit_model [key=value ...]       keys of Case

A mutated controller can be compiled too, so that a test can show that it would see the fault.
"""

from __future__ import annotations

import ctypes
import dataclasses
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.support import hostc, models

FOLDER = Path(__file__).resolve().parent
MODULE = FOLDER.parent

#: what a controller takes from the kernel
WORLD = """
#define _GNU_SOURCE
#include <stddef.h>
#include <lbe/arith.h>
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct list_head { struct list_head *next, *prev; };
#define container_of(p, type, member)		((type *)((char *)(p) - offsetof(type, member)))
#define list_first_entry(list, type, member)	container_of((list)->next, type, member)
#define list_for_each_entry(one, list, member) \\
	for (one = container_of((list)->next, __typeof__(*one), member); &one->member != (list); \\
	     one = container_of(one->member.next, __typeof__(*one), member))
static void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}
static void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}
static void list_add_tail(struct list_head *node, struct list_head *list)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}
static void list_move_tail(struct list_head *node, struct list_head *list)
{
	list_del(node);
	list_add_tail(node, list);
}
static void list_rotate_left(struct list_head *list)
{
	if (list->next != list)
		list_move_tail(list->next, list);
}
static int list_empty(const struct list_head *list)
{
	return list->next == list;
}
"""


class _Config(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("rate_bps", "rtt_us", "buffer_pkts", "mss_bytes", "unit_bytes",
                                               "own_bytes", "jitter_us", "loss")),
        *((name, ctypes.c_int) for name in ("ours", "mute", "chatty")),
        *((name, ctypes.c_double) for name in ("chat_us", "app_bps")),
        ("greedy", ctypes.c_int),
        *((name, ctypes.c_double) for name in ("on_us", "others_us", "steady")),
        ("burst_pkts", ctypes.c_int),
        *((name, ctypes.c_double) for name in ("duration_us", "measure_us", "change_us", "change_bps",
                                               "change_rtt_us", "change_back_us", "handshake_bytes")),
        ("hold_us", ctypes.c_double),
        ("hold_chance", ctypes.c_double),
        ("fair", ctypes.c_int),
        ("first_seq", ctypes.c_uint),
        ("first_tsval", ctypes.c_uint),
        ("seed", ctypes.c_ulonglong),
    ]  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("first_bps", "ours_bps", "others_bps", "queue_us", "stall_us", "jain")),
        *((name, ctypes.c_double) for name in ("mu_bps", "drops", "yields", "trains", "failed")),
    ]


@dataclass(frozen=True)
class Case:
    """A network and what is on it; credit_model.c says what each field means. Rates are of the link, with headers."""

    rate_mbit: float = 10.0
    rtt_ms: float = 100.0
    buffer_pkts: float = 86.0
    mss_bytes: int = 1448
    unit_bytes: int = 128
    own_bytes: int = 6 << 20
    jitter_ms: float = 0.0
    loss: float = 0.0
    ours: int = 1
    mute: int = 0
    chatty: int = 0
    chat_s: float = 0.8
    app_mbit: float = 0.0
    greedy: int = 0
    on_s: float = 0.0
    others_s: float = 10.0
    steady: float = 0.0
    burst_pkts: int = 1
    duration_s: float = 60.0
    measure_s: float = 20.0
    change_s: float = 0.0
    change_mbit: float = 0.0
    change_rtt_ms: float = 0.0
    change_back_ms: float = 0.0
    handshake_bytes: int = 0
    hold_ms: float = 0.0
    hold_chance: float = 0.0
    fair: int = 0
    first_seq: int = 0
    first_tsval: int = 0
    seed: int = 1

    @property
    def efficiency(self) -> float:
        """The part of the link that TCP can carry: 66 octets of each packet are headers."""
        return self.mss_bytes / (self.mss_bytes + 66)


@dataclass(frozen=True)
class Outcome:
    """In the window: shares of what the link carries at its end, the queue, and the longest time without data."""

    first: float
    ours: float
    others: float
    queue_ms: float
    stall_s: float
    jain: float
    capacity: float
    drops: int
    yields: int
    trains: int
    failed: int


def _with_headers(name: str) -> str:
    """A source of the controller, with the headers credit*.h where it includes them."""
    text = (MODULE / name).read_text(encoding="utf-8")
    return re.sub(r'^#include "(credit\w*\.h)"\n', lambda found: _with_headers(found[1]), text, flags=re.MULTILINE)


def without_kernel(text: str) -> str:
    """Return the source of a controller without the kernel's headers, which WORLD replaces."""
    return re.sub(r'^#include (<linux/\w+\.h>|"vulture\.h")\n', "", text, flags=re.MULTILINE)


class Model:
    """The compiled loop."""

    def __init__(self, folder: Path, mutations: dict[str, str] | None = None):
        """``mutations``: text of credit.c or its headers -> what stands there instead; each is there exactly once."""
        text = models.mutated("credit.c", without_kernel(_with_headers("credit.c")), mutations)
        source = WORLD + text + (FOLDER / "credit_model.c").read_text(encoding="utf-8")
        self.library = hostc.load(source, folder, MODULE, "credit_model")

    def trace(self, times_us: Sequence[int]) -> None:
        """In the next runs the link sends one packet at each of these times; without times it sends at its rate."""
        self.library.model_trace((ctypes.c_uint64 * len(times_us))(*times_us), len(times_us))

    def run(self, case: Case) -> Outcome:
        """One run."""
        bps = case.efficiency * 1e6
        config = _Config(
            rate_bps=case.rate_mbit * bps,
            rtt_us=case.rtt_ms * 1e3,
            buffer_pkts=case.buffer_pkts,
            mss_bytes=case.mss_bytes,
            unit_bytes=case.unit_bytes,
            own_bytes=case.own_bytes,
            jitter_us=case.jitter_ms * 1e3,
            loss=case.loss,
            ours=case.ours,
            mute=case.mute,
            chatty=case.chatty,
            chat_us=case.chat_s * 1e6,
            app_bps=case.app_mbit * 1e6,
            greedy=case.greedy,
            on_us=case.on_s * 1e6,
            others_us=case.others_s * 1e6,
            steady=case.steady,
            burst_pkts=case.burst_pkts,
            duration_us=case.duration_s * 1e6,
            measure_us=case.measure_s * 1e6,
            change_us=case.change_s * 1e6,
            change_bps=(case.change_mbit or case.rate_mbit) * bps,
            change_rtt_us=(case.change_rtt_ms or case.rtt_ms) * 1e3,
            change_back_us=case.change_back_ms * 1e3,
            handshake_bytes=case.handshake_bytes,
            hold_us=case.hold_ms * 1e3,
            hold_chance=case.hold_chance,
            fair=case.fair,
            first_seq=case.first_seq,
            first_tsval=case.first_tsval,
            seed=case.seed,
        )
        made = _Result()
        self.library.model_run(ctypes.byref(config), ctypes.byref(made))
        link = bps * (case.change_mbit or case.rate_mbit)
        return Outcome(
            made.first_bps / link,
            made.ours_bps / link,
            made.others_bps / link,
            made.queue_us / 1e3,
            made.stall_us / 1e6,
            made.jain,
            made.mu_bps / link,
            *(round(value) for value in (made.drops, made.yields, made.trains, made.failed)),
        )


def main(words: list[str]) -> None:
    """Print the outcome of the case that the words describe."""
    case = Case(**models.asked(Case, words))
    with tempfile.TemporaryDirectory() as folder:
        for key, value in dataclasses.asdict(Model(Path(folder)).run(case)).items():
            print(f"{key:10}{value:10.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
