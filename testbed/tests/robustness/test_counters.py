# SPDX-License-Identifier: GPL-2.0
"""Every 32-bit field that counts time, octets or packets without end: when it wraps, and the test of the wrap.

Fields of 64 bits do not wrap: 2^64 us are 584,000 years. The table is checked against the sources: it must have each
32-bit field of the modules' structures whose name tells a time, a sequence number or a timestamp, and each test that
it names must exist.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base.places import REPO
from testbed.robustness import soak
from testbed.spec.experiment import load


@dataclass(frozen=True)
class Counter:
    """A field. wraps: after how much it wraps. test: file::name, "life NAME LAW", or "none: " and why it needs none."""

    file: str
    field: str
    wraps: str
    test: str


DAYS, OCTETS, TICKS = "49.7 days of ms", "2^32 octets", "2^32 of the peer's ticks: 71.6 min of us, 49.7 days of ms"
MODEL = "vulture/tests/test_credit_model.py::test_counters_that_wrap"
ARITHMETIC = "tcp_lp/tests/test_arithmetic.py"
COUNTERS = (
    Counter("include/lbe/slots.h", "start", DAYS, "tcp_lp/tests/lp_kunit.c::slots_age_by_time"),
    Counter(
        "include/lbe/path_delay.h", "flat_ms", DAYS,
        "tcp_lp/tests/test_path_delay.py::test_a_delay_that_stands_still_is_a_longer_path",
    ),
    Counter("include/lbe/owd.h", "ref_tsval", TICKS, "tcp_lp/tests/lp_kunit.c::owd_snaps_tick"),
    Counter("include/lbe/owd.h", "tsval", TICKS, f"{ARITHMETIC}::test_one_hour_of_microsecond_ticks_wraps_and_goes_on"),
    Counter(
        "include/lbe/owd.h", "moved_ms", DAYS,
        "none: a difference; without an ACK for 49.7 days the base may rise by less",
    ),
    Counter(
        "include/lbe/path.h", "odd_ms", DAYS,
        "none: differences alone count; a view that stays odd for 49.7 days is believed four seconds later",
    ),
    Counter("tcp_lp/lp.h", "mark_seq", OCTETS, f"{ARITHMETIC}::test_a_mark_across_the_wrap_of_sequence_numbers"),
    Counter("tcp_lp/lp.h", "itt_end_ms", DAYS, f"{ARITHMETIC}::test_a_phase_is_over_after_any_pause"),
    Counter("tcp_lp/lp.h", "snd_una", OCTETS, f"{ARITHMETIC}::test_a_mark_across_the_wrap_of_sequence_numbers"),
    Counter("tcp_lp/lp.h", "snd_nxt", OCTETS, f"{ARITHMETIC}::test_a_mark_across_the_wrap_of_sequence_numbers"),
    Counter("tcp_lp/lp.h", "now_ms", DAYS, f"{ARITHMETIC}::test_a_phase_is_over_after_any_pause"),
    Counter("tcp_ledbat/ledbat.h", "round_end", OCTETS, "life life_bytes ledbat"),
    Counter("tcp_ledbat/ledbat.h", "began_ms", DAYS, "none: read within the slowdown that it begins, of seconds"),
    Counter(
        "tcp_ledbat/ledbat.h", "next_ms", DAYS,
        "none: each ACK of a flow that is not asked moves it along, so that no ACK sees it more than a pause away",
    ),
    Counter("vulture/edge.h", "ack_seq", OCTETS, "vulture/tests/edge_kunit.c::takes_what_tcp_takes"),
    Counter("vulture/edge.h", "edge_seq", OCTETS, "vulture/tests/edge_kunit.c::fields"),
    Counter("vulture/edge.h", "goal_seq", OCTETS, "vulture/tests/edge_kunit.c::fields"),
    Counter("vulture/edge.h", "high_seq", OCTETS, "vulture/tests/edge_kunit.c::arrivals"),
    Counter("vulture/edge.h", "high_tsval", TICKS, "vulture/tests/edge_kunit.c::arrivals"),
    Counter("vulture/edge.h", "recent_tsval", TICKS, "vulture/tests/edge_kunit.c::arrivals"),
    Counter("vulture/edge.h", "out_tsval", TICKS, "life life_clocks credit"),
    Counter("vulture/credit.c", "edge_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "from_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "goal_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "high_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "own_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "probe_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "ref_tsval", TICKS, MODEL),
    Counter("vulture/credit.c", "train_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "wire_seq", OCTETS, MODEL),
    Counter("vulture/controller.h", "ack_seq", OCTETS, MODEL),
    Counter("vulture/controller.h", "edge_seq", OCTETS, MODEL),
    Counter("vulture/controller.h", "tsval", TICKS, MODEL),
    Counter("vulture/policy.h", "first_tsval", TICKS, "life life_clocks paper"),
    Counter("vulture/policy.h", "last_tsval", TICKS, "life life_clocks paper"),
    Counter("vulture/piv.h", "ref_tsval", TICKS, "life life_clocks paper"),
    Counter("vulture/piv.h", "last_tsval", TICKS, "life life_clocks paper"),
    Counter("vulture/rledbat.c", "echoed_tsval", TICKS, "life life_clocks rledbat"),
    Counter("vulture/rledbat.c", "tsval", TICKS, "life life_clocks rledbat"),
    Counter("vulture/paper.c", "mark_tsval", TICKS, "life life_clocks paper"),
    Counter("vulture/paper.c", "sent_tsval", TICKS, "life life_clocks paper"),
    Counter("vulture/paper.c", "high_seq", OCTETS, "life life_bytes paper"),
    Counter("vulture/paper.c", "reduced_seq", OCTETS, "life life_bytes paper"),
    Counter("sch_shred/age.h", "last_ms", DAYS, "none: after 49.7 idle days an age may come back for one idle time"),
    Counter(
        "sch_shred/queue.h", "arrivals", "2^32 packets",
        "none: compared by difference with numbers of packets in the queue",
    ),
)  # fmt: skip
#: names of fields that grow without end
ENDLESS = re.compile(r"_ms$|_seq$|tsval$|^snd_|_end$|^jiffies|^last_jiffies")
#: files with such fields; only their structures are read, as the indentation of locals is the same as a member's
SOURCES = ("include/lbe/*.h", "tcp_*/*.h", "tcp_*/*.c", "vulture/*.h", "vulture/*.c", "sch_shred/*.h")
STRUCT = re.compile(r"^struct \w+ \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"\bu32 ([a-z_0-9]+(?:, [a-z_0-9]+)*);")


def fields_of(path: Path) -> set[str]:
    """Return the names of the 32-bit members of a file's structures."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {name for body in STRUCT.findall(text) for found in MEMBER.findall(body) for name in found.split(", ")}


def test_every_field_that_goes_on_without_end_is_in_the_table() -> None:
    listed = {(one.file, one.field) for one in COUNTERS}
    found = {
        (str(path.relative_to(REPO)), name)
        for pattern in SOURCES
        for path in sorted(REPO.glob(pattern))
        for name in fields_of(path)
        if ENDLESS.search(name)
    }
    assert len(found) > 20
    assert found <= listed, f"not in the table: {sorted(found - listed)}"


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda one: f"{one.file}:{one.field}")
def test_the_field_and_its_test_are_there(counter: Counter) -> None:
    assert counter.field in fields_of(REPO / counter.file), f"{counter.file} has no u32 {counter.field}"
    if counter.test.startswith("none: "):
        assert len(counter.test) > 30
        return
    if counter.test.startswith("life "):
        _, name, law = counter.test.split()
        assert law in load(str(soak.lives()[name])).vary["background"]
        return
    file, name = counter.test.split("::")
    text = (REPO / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        assert name in {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    else:
        assert re.search(rf"KUNIT_CASE(_PARAM)?\({name}\b", text), f"{file} runs no {name}"
