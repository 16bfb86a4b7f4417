# SPDX-License-Identifier: GPL-2.0
"""Traces of links: generated and read from files; errors are refused with a reason."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest

from testbed.base.errors import LbeError
from testbed.spec.links import KINDS, LinkError, make, mean_mbit

FRAME = 1514


@pytest.mark.parametrize("kind", KINDS)
def test_a_made_trace_is_ordered_and_a_function_of_its_keys(kind: str) -> None:
    made = make(f"generate:{kind} length_s=20", FRAME)
    assert made == sorted(made) == make(f"generate:{kind} length_s=20", FRAME)
    assert made[-1] == 20_000_000
    if kind in ("wifi", "cellular"):
        assert made != make(f"generate:{kind} length_s=20 seed=2", FRAME)


def test_a_steady_link_has_its_rate() -> None:
    assert mean_mbit(make("generate:steady mbit=4 length_s=60", FRAME), FRAME) == pytest.approx(4, rel=0.001)


def test_aggregates_leave_gaps_of_their_lengths_and_keep_the_rate() -> None:
    made = make("generate:wifi mbit=10 min_ms=2 max_ms=5", FRAME)
    gaps_us = [then - now for now, then in itertools.pairwise(sorted(set(made)))]
    assert 2000 <= min(gaps_us[:-1]) < 2100 and 4900 < max(gaps_us) <= 5000
    assert mean_mbit(made, FRAME) == pytest.approx(10, rel=0.001)


def test_pauses_have_their_length_and_period() -> None:
    made = make("generate:pauses mbit=10 every_s=5 pause_ms=250", FRAME)
    gaps_ms = [(then - now) / 1e3 for now, then in itertools.pairwise(made) if then - now > 10_000]
    # of the twelve pauses in 60 s the first is at the trace's beginning, so eleven are gaps within it
    assert len(gaps_ms) == 11 and all(250 <= gap < 252.5 for gap in gaps_ms)
    assert mean_mbit(made, FRAME) == pytest.approx(9.5, rel=0.001)


def test_pauses_begin_when_they_are_told_and_are_counted() -> None:
    made = make("generate:pauses mbit=10 from_s=1 count=6 every_s=0.255 pause_ms=250", FRAME)
    pauses_ms = [(now / 1e3, then / 1e3) for now, then in itertools.pairwise(made) if then - now > 10_000]
    assert len(pauses_ms) == 6
    for index, (now, then) in enumerate(pauses_ms):
        assert now <= 1000 + 255 * index < now + 2.5 and then - now == pytest.approx(251, abs=1.5)


def test_a_cellular_link_stays_within_its_rates_and_has_outages() -> None:
    made = make("generate:cellular min_mbit=4 max_mbit=12 outage_every_s=5 outage_ms=300", FRAME)
    per_s = [sum(1 for t in made if second * 1e6 <= t < (second + 1) * 1e6) * FRAME * 8 / 1e6 for second in range(60)]
    assert max(per_s) <= 12.1 and min(per_s) < 4
    gaps_us = [then - now for now, then in itertools.pairwise(made)]
    assert max(gaps_us) > 100_000


def test_a_recorded_trace_is_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "x.down"
    path.write_text("0\n0\n3\n10\n")
    assert make(str(path), FRAME) == [0, 0, 3000, 10000]
    path.write_text("0.5\n1.25\n")
    assert make(str(path), FRAME) == [500, 1250]
    packed = tmp_path / "x.down.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert make(str(packed), FRAME) == [500, 1250]


@pytest.mark.parametrize(
    "content", [b"", b"1\n2\n", gzip.compress(b"1\n2\n", mtime=0)[:-9]], ids=["empty", "plain", "cut"]
)
def test_a_bad_compressed_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.down.gz"
    path.write_bytes(content)
    with pytest.raises(LinkError, match=r"x.down.gz: (gzip|needs a time above 0)"):
        make(str(path), FRAME)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "needs a time above 0"),
        ("0\n0\n", "needs a time above 0"),
        ("5\n4\n", ":2: 4 ms: times must not decrease"),
        ("x\n", ":1: 'x' is no time in ms"),
        ("nan\n", ":1: 'nan' is no time in ms"),
        ("5000000\n", ":1: 5000000 ms: times must not decrease, nor pass 4294967 ms"),
    ],
)
def test_a_bad_recording_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.down"
    path.write_text(content)
    with pytest.raises(LinkError, match=message):
        make(str(path), FRAME)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/nowhere/x", "/nowhere/x: No such file"),
        ("generate:dsl", "known kinds: steady, wifi, pauses, cellular"),
        ("generate:wifi mbit", "'mbit': expected key=value with a key of mbit, min_ms"),
        ("generate:wifi mbits=3", r"link_trace.mbits: unknown key \(did you mean 'mbit'"),
        ("generate:wifi mbit=fast", "mbit = 'fast' is no number"),
        ("generate:wifi mbit=0", "link_trace.mbit = 0: allowed are 0.1 to 1000"),
        ("generate:wifi min_ms=5 max_ms=2", "min_ms must not be above max_ms"),
    ],
)
def test_a_bad_request_is_refused(text: str, message: str) -> None:
    with pytest.raises(LbeError, match=message):
        make(text, FRAME)
