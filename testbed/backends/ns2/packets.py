# SPDX-License-Identifier: GPL-2.0
"""A packet trace in ns-2's format. It is made when a run is written, since it takes much longer than the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...spec import traces as generators


@dataclass(frozen=True)
class Packets:
    """The packets of one flow. trace: the arguments of traces.make(). length_s: later packets are left out."""

    trace: tuple[str, float, int]
    length_s: float

    def identity(self) -> str:
        """What determines the file's content, beside this program."""
        return f"{generators.identity(*self.trace)} {self.length_s!r}"

    def content(self) -> bytes:
        """The file: microseconds since the previous packet, and octets, both big-endian."""
        trace = generators.make(*self.trace)
        at_us = np.round(trace.at_ns / 1e3).astype(np.int64)
        inside = at_us < self.length_s * 1e6
        gaps = np.diff(at_us[inside], prepend=0)
        return np.column_stack([gaps, trace.bytes[inside]]).astype(">u4").tobytes()
