# SPDX-License-Identifier: GPL-2.0
"""Mean and 95 % interval of a number over several runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: two-sided 95 % quantile of Student's t for 1 to 30 degrees of freedom; for more, the normal distribution's is used
# fmt: off
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on


@dataclass(frozen=True)
class Summary:
    """A number over several runs: mean, half-width of the 95 % interval (NaN for one run), and range.

    n: runs with a value; blank: runs without a value; missing: requested runs that were not made.
    """

    n: int
    mean: float
    half: float
    low: float
    median: float
    high: float
    blank: int = 0
    missing: int = 0

    @property
    def asked(self) -> int:
        """Number of requested runs."""
        return self.n + self.blank + self.missing

    @property
    def whole(self) -> bool:
        """Whether every requested run has a value."""
        return self.n > 0 and not self.blank and not self.missing


def summarise(values: Sequence[float | None]) -> Summary:
    """Mean with Student's interval. None (no run) and NaN (no value) are left out of it and counted."""
    missing = sum(value is None for value in values)
    made = [value for value in values if value is not None]
    real = [value for value in made if not math.isnan(value)]
    blank = len(made) - len(real)
    if not real:
        return Summary(0, math.nan, math.nan, math.nan, math.nan, math.nan, blank, missing)
    count = len(real)
    half = math.nan
    if count > 1:
        quantile = T_95[count - 2] if count - 2 < len(T_95) else 1.96
        half = quantile * float(np.std(real, ddof=1)) / math.sqrt(count)
    mean, median = float(np.mean(real)), float(np.median(real))
    return Summary(count, mean, half, min(real), median, max(real), blank, missing)
