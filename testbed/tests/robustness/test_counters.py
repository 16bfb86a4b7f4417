# SPDX-License-Identifier: GPL-2.0
"""Every 32-bit field that counts time, octets or packets without end: when it wraps, and the test of the wrap.

Fields of 64 bits do not wrap: 2^64 us are 584,000 years. The table is checked against the sources: it must have each
32-bit field of the modules' structures whose name tells a time, a sequence number, a timestamp or a count of events,
or whose comment says that it wraps, is an index by modulo, or counts things in a row, and each test that it names
must exist.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base.places import REPO


@dataclass(frozen=True)
class Counter:
    """A field. wraps: after how much it wraps. test: file::name, or "none: " and why no test is needed."""

    file: str
    field: str
    wraps: str
    test: str


DAYS, OCTETS, TICKS = "49.7 days of ms", "2^32 octets", "2^32 of the peer's ticks: 71.6 min of us, 49.7 days of ms"
MODEL = "vulture/tests/test_credit_model.py::test_counters_that_wrap"
WRAPS = "vulture/tests/test_wraps.py::test_nothing_shows_when_a_counter_wraps"
LOSSES = "vulture/tests/test_pieces.py::test_losses_count_however_long_there_was_none"
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
    Counter(
        "include/lbe/path.h", "epoch", "2^32 changes of state",
        "none: compared for equality only, with its value when a slot was reserved, a slot before",
    ),
    Counter(
        "include/lbe/path.h", "ticks", "2^32 ticks",
        "none: an index modulo a power of two; at its wrap the noise is not learnt for 16 ticks",
    ),
    Counter(
        "include/lbe/path.h", "low_ticks", "2^32 ticks in a row",
        "none: compared with 4: at its wrap the law waits four ticks once more",
    ),
    Counter(
        "include/lbe/path.h", "least_ticks", "2^32 ticks in a row",
        "none: the path gives way, which begins it anew, after LBE_PATH_TICKS",
    ),
    Counter(
        "include/lbe/path.h", "high", "2^32 samples in a row",
        "none: the path gives way after a few, which begins it anew",
    ),
    Counter(
        "include/lbe/path.h", "fails", "2^32 returns in a row",
        "none: the waiting time takes 10 of them at most; at its wrap the law returns as after a success",
    ),
    Counter(
        "include/lbe/path.h", "n", "2^32 pairs in a row",
        "none: the path is probed after a few, which begins it anew",
    ),
    Counter(
        "include/lbe/path.h", "flat", "2^32 pairs in a row",
        "none: at its wrap the stretch begins with the next pair",
    ),
    Counter(
        "tcp_lbe/module.c", "sent_mark", "2^32 segments",
        "none: a difference; read while a grant is used, which is for a slot's packets",
    ),
    Counter(
        "tcp_lbe/module.c", "acked_us", "71 min",
        "none: a difference: an ACK that comes that long after the latest, to within 25 ms, counts even if late",
    ),
    Counter(
        "include/lbe/path.h", "turn_pkts", "2^32 packets",
        "none: from 0 in each turn; a flow alone sends on, and at the wrap its turn counts as unused for one slot",
    ),
    Counter(
        "tcp_lbe/module.c", "epoch", "2^32 changes of state", "none: a copy of the path's, compared for equality only"
    ),
    Counter("tcp_lp/lp.h", "mark_seq", OCTETS, f"{ARITHMETIC}::test_a_mark_across_the_wrap_of_sequence_numbers"),
    Counter("tcp_lp/lp.h", "itt_end_ms", DAYS, f"{ARITHMETIC}::test_a_phase_is_over_after_any_pause"),
    Counter("tcp_lp/lp.h", "snd_una", OCTETS, f"{ARITHMETIC}::test_a_mark_across_the_wrap_of_sequence_numbers"),
    Counter("tcp_lp/lp.h", "snd_nxt", OCTETS, f"{ARITHMETIC}::test_a_mark_across_the_wrap_of_sequence_numbers"),
    Counter("tcp_lp/lp.h", "now_ms", DAYS, f"{ARITHMETIC}::test_a_phase_is_over_after_any_pause"),
    Counter("tcp_ledbat/ledbat.h", "round_end", OCTETS, "tcp_ledbat/tests/ledbat_kunit.c::ledbat_every_2gib"),
    Counter("tcp_ledbat/ledbat.h", "began_ms", DAYS, "none: read within the slowdown that it begins, of seconds"),
    Counter(
        "tcp_ledbat/ledbat.h", "next_ms", DAYS,
        "tcp_ledbat/tests/ledbat_kunit.c::ledbat_test_doubt_after_days",
    ),
    Counter("vulture/edge.h", "ack_seq", OCTETS, "vulture/tests/edge_kunit.c::takes_what_tcp_takes"),
    Counter("vulture/edge.h", "edge_seq", OCTETS, "vulture/tests/edge_kunit.c::fields"),
    Counter("vulture/edge.h", "goal_seq", OCTETS, "vulture/tests/edge_kunit.c::fields"),
    Counter("vulture/edge.h", "high_seq", OCTETS, "vulture/tests/edge_kunit.c::arrivals"),
    Counter("vulture/edge.h", "high_tsval", TICKS, "vulture/tests/edge_kunit.c::arrivals"),
    Counter("vulture/edge.h", "recent_tsval", TICKS, "vulture/tests/edge_kunit.c::arrivals"),
    Counter(
        "vulture/edge.h", "out_tsval", TICKS,
        "none: compared for equality only, with the timestamp of a segment that passes the hook twice",
    ),
    Counter("vulture/credit.c", "seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "edge_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "from_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "goal_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "high_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "own_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "probe_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "ref_tsval", TICKS, MODEL),
    Counter("vulture/credit.c", "train_seq", OCTETS, MODEL),
    Counter("vulture/credit.c", "wire_seq", OCTETS, MODEL),
    Counter(
        "vulture/credit_state.h", "arrivals", "2^32 segments",
        "none: counted in one tick, which a round trip's arrivals end",
    ),
    Counter(
        "vulture/credit_state.h", "n_ticks", "2^32 ticks",
        "none: from 0 in each CRUISE; at its wrap the law looks back over fewer ticks for a while",
    ),
    Counter(
        "vulture/credit_state.h", "low_ticks", "2^32 ticks in a row",
        "none: a step's exponent is a quarter of it, 5 at most: at its wrap the step is short for 20 ticks",
    ),
    Counter(
        "vulture/credit_state.h", "high_ticks", "2^32 ticks in a row",
        "none: the path yields, which begins it anew, after CREDIT_HIGH_TICKS",
    ),
    Counter(
        "vulture/credit_state.h", "short_ticks", "2^32 ticks in a row",
        "none: at its wrap the next train of CRUISE waits for CREDIT_HIGH_TICKS more",
    ),
    Counter(
        "vulture/credit_state.h", "high_row", "2^32 samples in a row",
        "none: the path yields after two, which begins it anew",
    ),
    Counter(
        "vulture/credit_state.h", "jump_row", "2^32 samples in a row",
        "none: the path yields after four that last longer than a burst; at its wrap that time begins anew",
    ),
    Counter(
        "vulture/credit_state.h", "doubts", "2^32 trains in a row",
        "none: CRUISE ends at CREDIT_DOUBTS_MOST, which begins it anew",
    ),
    Counter(
        "vulture/credit_state.h", "fails", "2^32 trains in a row",
        "none: 10 of them at most count; at its wrap the law returns as after a success",
    ),
    Counter("vulture/credit_state.h", "tried", "2^32 trains in a row", "none: a copy of fails, to which 1 is added"),
    Counter(
        "vulture/credit_state.h", "score", "2^32 probes",
        "none: a train is sent at 12 at the latest, which begins it anew",
    ),
    Counter(
        "vulture/credit_state.h", "deep", "2^32 probes in a row",
        "none: compared with 2: at its wrap the next failures are forgotten two probes later",
    ),
    Counter(
        "vulture/credit_state.h", "spoilt", "2^32 trains in a row",
        "none: compared with CREDIT_SPOILT_MOST: at its wrap a train without a result is one of the first again",
    ),
    Counter("vulture/controller.h", "seq", OCTETS, MODEL),
    Counter("vulture/controller.h", "tsecr", "2^32 of our ticks", WRAPS),
    Counter("vulture/controller.h", "ack_seq", OCTETS, MODEL),
    Counter("vulture/controller.h", "edge_seq", OCTETS, MODEL),
    Counter("vulture/controller.h", "tsval", TICKS, MODEL),
    Counter("vulture/policy.h", "first_tsval", TICKS, WRAPS),
    Counter("vulture/policy.h", "last_tsval", TICKS, WRAPS),
    Counter("vulture/piv.h", "ref_tsval", TICKS, WRAPS),
    Counter("vulture/piv.h", "last_tsval", TICKS, WRAPS),
    Counter("vulture/piv.h", "sent_us", "71.6 min of us", "vulture/tests/vulture_kunit.c::trains"),
    Counter("vulture/piv.h", "arrived_us", "71.6 min of us", "vulture/tests/vulture_kunit.c::trains"),
    Counter("vulture/rledbat.c", "echoed_tsval", TICKS, WRAPS),
    Counter("vulture/rledbat.c", "tsval", TICKS, WRAPS),
    Counter(
        "vulture/rledbat.c", "n_rtts", "2^32 round trips",
        "none: an index modulo RLEDBAT_FILTER, which divides 2^32, so that its wrap changes nothing",
    ),
    Counter("vulture/paper.c", "mark_tsval", TICKS, WRAPS),
    Counter("vulture/paper.c", "sent_tsval", TICKS, WRAPS),
    Counter("vulture/paper.c", "high_seq", OCTETS, LOSSES),
    Counter("vulture/paper.c", "reduced_seq", OCTETS, LOSSES),
    Counter(
        "vulture/vulture.h", "id", "2^32 rules",
        "vulture/tests/test_pieces.py::test_an_id_is_not_used_again_while_its_rule_is_there",
    ),
    Counter("sch_shred/age.h", "last_ms", DAYS, "none: after 49.7 idle days an age may come back for one idle time"),
    Counter(
        "sch_shred/queue.h", "arrivals", "2^32 packets",
        "none: compared by difference with numbers of packets in the queue",
    ),
    Counter(
        "sch_shred/queue.c", "arrival", "2^32 packets",
        "none: subtracted from arrivals while the packet is in the queue",
    ),
)  # fmt: skip
#: names of fields that grow without end
ENDLESS = re.compile(
    r"_ms$|(^|_)seq$|tsval$|tsecr$|^snd_|_end$|_mark$|_ce$|^arrivals?$|(^|_)ticks$|^epoch$|^id$|^jiffies|^last_jiffies"
)
#: members whose comment counts something in a row that they do not count themselves
NO_COUNTS = {("include/lbe/path.h", "low_us"), ("tcp_lowpri/lowpri_law.h", "cwnd")}
#: a comment that says so, behind a member or in a structure's description
SAYS_SO = re.compile(
    r"\bu32 (?P<behind>[a-z_0-9, ]+);\s*/\*(?:(?!\*/).)*?(?:modulo|\bwraps?\b|\bin a row\b)"
    r"|@(?P<described>[a-z_0-9]+):(?:(?!@\w+:|\*/).)*?(?:modulo|\bwraps?\b|\bin a row\b)",
    re.DOTALL,
)
#: files with such fields; only their structures are read, as the indentation of locals is the same as a member's
SOURCES = ("include/lbe/*.h", "tcp_*/*.h", "tcp_*/*.c", "vulture/*.h", "vulture/*.c", "sch_shred/*.h", "sch_shred/*.c")
#: the tests that FLOW_SUITE() of a file makes
SHARED = REPO / "include/lbe/kunit_flow.h"
STRUCT = re.compile(r"^struct \w+ \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
#: members that are arrays may stand among them
MEMBER = re.compile(r"\bu32 ([a-z_0-9]+(?:\[\w+\])?(?:, [a-z_0-9]+(?:\[\w+\])?)*);")


def fields_of(path: Path) -> set[str]:
    """Return the names of the 32-bit members of a file's structures."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {name for body in STRUCT.findall(text) for found in MEMBER.findall(body) for name in found.split(", ")}


def said_to_wrap(path: Path) -> set[str]:
    """Return the names of the members that a comment of the file says to wrap."""
    found = SAYS_SO.finditer(path.read_text(encoding="utf-8"))
    return {name for match in found for name in (match["behind"] or match["described"]).split(", ")}


def test_every_field_that_goes_on_without_end_is_in_the_table() -> None:
    listed = {(one.file, one.field) for one in COUNTERS}
    found = {
        (str(path.relative_to(REPO)), name)
        for pattern in SOURCES
        for path in sorted(REPO.glob(pattern))
        for name in fields_of(path)
        if ENDLESS.search(name) or name in said_to_wrap(path)
    }
    assert len(found) > 20
    found -= NO_COUNTS
    assert found <= listed, f"not in the table: {sorted(found - listed)}"


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda one: f"{one.file}:{one.field}")
def test_the_field_and_its_test_are_there(counter: Counter) -> None:
    assert counter.field in fields_of(REPO / counter.file), f"{counter.file} has no u32 {counter.field}"
    if counter.test.startswith("none: "):
        assert len(counter.test) > 30
        return
    file, name = counter.test.split("::")
    text = (REPO / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        assert name in {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    else:
        shared = re.findall(r"KUNIT_CASE\(_prefix##(\w+)\)", SHARED.read_text(encoding="utf-8"))
        made = {prefix + case for prefix in re.findall(r"^FLOW_SUITE\((\w+),", text, re.MULTILINE) for case in shared}
        assert name in made or re.search(rf"KUNIT_CASE(_PARAM)?\({name}\b", text), f"{file} runs no {name}"
