# SPDX-License-Identifier: GPL-2.0
"""Refuses a number that is out of its range, in the words that all of the testbed uses."""

from __future__ import annotations

from ..base.errors import LbeError


def check(
    kind: type[LbeError], place: str, value: float | None, bounds: tuple[float, float], *, digits: int = 6
) -> None:
    """Raise ``kind`` where ``value`` (None: not given) is not within ``bounds``, both allowed.

    place: what a person finds it by; digits: significant ones of the numbers named.
    """
    low, high = bounds
    if value is not None and not low <= value <= high:
        raise kind(f"{place} = {value:.{digits}g}: allowed are {low:.{digits}g} to {high:.{digits}g}")
