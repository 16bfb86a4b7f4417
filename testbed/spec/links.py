# SPDX-License-Identifier: GPL-2.0
"""Links of varying rate: a list of sending opportunities, generated here or read from a file.

Forms of ``topology.link_trace``:

    generate:KIND [key=value ...]    generated from the keys; kinds and keys: `KINDS`
    FILE                             mahimahi's format: each line is the time of one opportunity, in ms; FILE.gz: the
                                     same, compressed with gzip

An opportunity carries one full packet. After its last opportunity a trace starts again. A generated trace depends
on its keys only. The module lbe_link (testbed/kernels/guest-modules) plays traces; it reads microseconds.
"""

from __future__ import annotations

import gzip
import math
import random
import typing
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ..base.errors import LbeError
from .tables import Within, load_words

#: longest time in a link trace: the module reads times as 32 bits of microseconds
LENGTH_MAX_US = 2**32 - 1


class LinkError(LbeError):
    """A link's trace cannot be made or read; the text names the key or the file."""

    exit_status = 2


@dataclass(frozen=True)
class Steady:
    """A constant rate: for comparison with the shaper."""

    mbit: Annotated[float, Within(0.1, 1000)] = 10.0
    length_s: Annotated[float, Within(1, 4000)] = 10.0
    seed: Annotated[float, Within(0, 2**31)] = 1


@dataclass(frozen=True)
class Wifi:
    """Aggregation: the link waits for min_ms to max_ms (uniform), then sends at once as many packets as ``mbit`` allows
    for that time."""

    mbit: Annotated[float, Within(0.1, 1000)] = 10.0
    min_ms: Annotated[float, Within(0, 1000)] = 1.0
    max_ms: Annotated[float, Within(0.1, 1000)] = 9.0
    length_s: Annotated[float, Within(1, 4000)] = 60.0
    seed: Annotated[float, Within(0, 2**31)] = 1


@dataclass(frozen=True)
class Pauses:
    """A constant rate that stops for pause_ms every every_s seconds, like a station that sleeps or scans.

    The first pause begins at from_s. count: number of pauses; 0: pauses until the end of the trace.
    """

    mbit: Annotated[float, Within(0.1, 1000)] = 10.0
    every_s: Annotated[float, Within(0.1, 1000)] = 5.0
    pause_ms: Annotated[float, Within(0, 10000)] = 250.0
    from_s: Annotated[float, Within(0, 4000)] = 0.0
    count: Annotated[float, Within(0, 1000)] = 0
    length_s: Annotated[float, Within(1, 4000)] = 60.0
    seed: Annotated[float, Within(0, 2**31)] = 1


@dataclass(frozen=True)
class Cellular:
    """A rate that follows a random walk, with outages. Opportunities are placed in slots of 1 ms.

    Every step_ms the rate is multiplied by exp(N(0, sigma)), held between min_mbit and max_mbit. An outage begins
    every outage_every_s on average and lasts outage_ms on average (both exponential).
    """

    mbit: Annotated[float, Within(0.1, 1000)] = 10.0
    min_mbit: Annotated[float, Within(0.01, 1000)] = 2.0
    max_mbit: Annotated[float, Within(0.1, 1000)] = 20.0
    step_ms: Annotated[float, Within(1, 10000)] = 100.0
    sigma: Annotated[float, Within(0, 2)] = 0.15
    outage_every_s: Annotated[float, Within(0.1, 100000)] = 20.0
    outage_ms: Annotated[float, Within(0, 10000)] = 200.0
    length_s: Annotated[float, Within(1, 4000)] = 60.0
    seed: Annotated[float, Within(0, 2**31)] = 1


KINDS = {"steady": Steady, "wifi": Wifi, "pauses": Pauses, "cellular": Cellular}


def make(text: str, packet_bytes: int) -> list[int]:
    """Times of the opportunities that ``text`` describes, microseconds; each carries ``packet_bytes``."""
    if not text.startswith("generate:"):
        return _read(Path(text))
    kind, *words = text.removeprefix("generate:").split()
    if kind not in KINDS:
        raise LinkError(f"link_trace = {text!r}: known kinds: {', '.join(KINDS)}")
    keys = _keys(text, KINDS[kind], words)
    times_us = _opportunities(keys, packet_bytes)
    # the last time gives the length of the trace, whenever the last generated opportunity is
    return [*times_us, round(keys.length_s * 1e6)]


def _keys(text: str, kind: type, words: list[str]) -> typing.Any:
    keys: typing.Any = load_words(kind, words, "link_trace")
    for low, high in (("min_ms", "max_ms"), ("min_mbit", "max_mbit")):
        if hasattr(keys, low) and getattr(keys, low) > getattr(keys, high):
            raise LinkError(f"link_trace = {text!r}: {low} must not be above {high}")
    return keys


def _opportunities(keys: typing.Any, packet_bytes: int) -> list[int]:
    draw = random.Random(keys.seed)
    end_us = keys.length_s * 1e6
    if isinstance(keys, Cellular):
        return _cellular(keys, packet_bytes, draw)
    packet_us = packet_bytes * 8 / keys.mbit
    if isinstance(keys, Wifi):
        return _wifi(keys, packet_us, draw)
    every_us = [packet_us * index for index in range(int(end_us / packet_us))]
    if isinstance(keys, Pauses):
        every_us = [t for t in every_us if not _in_pause(keys, t)]
    return [round(t) for t in every_us]


def _in_pause(keys: Pauses, at_us: float) -> bool:
    pauses_before, since_us = divmod(at_us - keys.from_s * 1e6, keys.every_s * 1e6)
    counted = pauses_before >= 0 and (not keys.count or pauses_before < keys.count)
    return counted and since_us < keys.pause_ms * 1e3


def _wifi(keys: Wifi, packet_us: float, draw: random.Random) -> list[int]:
    times_us: list[int] = []
    at_us = 0.0
    while True:
        at_us += draw.uniform(keys.min_ms, keys.max_ms) * 1e3
        if at_us >= keys.length_s * 1e6:
            return times_us
        times_us += [round(at_us)] * (int(at_us / packet_us) - len(times_us))


def _cellular(keys: Cellular, packet_bytes: int, draw: random.Random) -> list[int]:
    times_us: list[int] = []
    rate_mbit, credit_bytes = keys.mbit, 0.0
    dark_from_ms = draw.expovariate(1 / keys.outage_every_s) * 1e3
    dark_to_ms = dark_from_ms + (draw.expovariate(1 / keys.outage_ms) if keys.outage_ms else 0)
    for slot_ms in range(int(keys.length_s * 1e3)):
        if slot_ms % round(keys.step_ms) == 0:
            rate_mbit *= math.exp(draw.gauss(0, keys.sigma))
            rate_mbit = min(max(rate_mbit, keys.min_mbit), keys.max_mbit)
        if slot_ms >= dark_to_ms:
            dark_from_ms = slot_ms + draw.expovariate(1 / keys.outage_every_s) * 1e3
            dark_to_ms = dark_from_ms + (draw.expovariate(1 / keys.outage_ms) if keys.outage_ms else 0)
        if dark_from_ms <= slot_ms < dark_to_ms:
            credit_bytes = 0.0
            continue
        credit_bytes += rate_mbit * 1e3 / 8
        while credit_bytes >= packet_bytes:
            credit_bytes -= packet_bytes
            times_us.append(slot_ms * 1000)
    return times_us


def content(path: Path) -> bytes:
    """The bytes of a recorded trace, decompressed if its name ends with .gz. Raises LinkError."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise LinkError(f"link_trace {path}: {getattr(error, 'strerror', None) or f'gzip: {error}'}") from error


def _read(path: Path) -> list[int]:
    """Read a recorded trace: one time in milliseconds on each line."""
    try:
        lines = content(path).decode("ascii").split()
    except UnicodeDecodeError as error:
        raise LinkError(f"link_trace {path}: is no text") from error
    times_us: list[int] = []
    for number, line in enumerate(lines, start=1):
        try:
            at_us = round(float(line) * 1e3)
        except (ValueError, OverflowError):
            raise LinkError(f"link_trace {path}:{number}: {line!r} is no time in ms") from None
        if at_us < (times_us[-1] if times_us else 0) or at_us > LENGTH_MAX_US:
            raise LinkError(f"link_trace {path}:{number}: {line} ms: times must not decrease, nor pass 4294967 ms")
        times_us.append(at_us)
    if not times_us or times_us[-1] == 0:
        raise LinkError(f"link_trace {path}: needs a time above 0")
    return times_us


def mean_mbit(times_us: list[int], packet_bytes: int) -> float:
    """The mean rate of a trace, Mbit/s as the queue counts packets."""
    return len(times_us) * packet_bytes * 8 / times_us[-1]
