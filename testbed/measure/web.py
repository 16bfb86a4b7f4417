# SPDX-License-Identifier: GPL-2.0
"""Web records of a window: objects and pages, complete or not, and their times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..spec.records import FAILED, PAGE, SYN_RETRANS, UNFINISHED

__all__ = ["FAILED", "SYN_RETRANS", "UNFINISHED", "Rows", "sized"]


def sized(rows: np.ndarray, bytes_from: int, bytes_to: int | None) -> np.ndarray:
    """Records of at least ``bytes_from`` and fewer than ``bytes_to`` bytes."""
    if bytes_to is not None:
        rows = rows[rows["bytes"] < bytes_to]
    return rows[rows["bytes"] >= bytes_from]


@dataclass(frozen=True)
class Rows:
    """Records that began in a window. An object or page that failed or was unfinished at the end has no time."""

    rows: np.ndarray
    ids: list[int]
    from_s: float
    to_s: float

    def _of(self, page: bool) -> np.ndarray:
        t = self.rows["t_ns"] / 1e9
        mine = np.isin(self.rows["flow"], self.ids) & (t >= self.from_s) & (t < self.to_s)
        return self.rows[mine & (((self.rows["flags"] & PAGE) != 0) == page)]  # type: ignore[no-any-return]

    @property
    def objects(self) -> np.ndarray:
        """All objects."""
        return self._of(page=False)

    @property
    def complete(self) -> np.ndarray:
        """Objects that were received completely."""
        return _whole(self.objects)

    @property
    def object_s(self) -> np.ndarray:
        """Time of each complete object, seconds."""
        return _seconds(self.complete)

    @property
    def page_s(self) -> np.ndarray:
        """Time of each complete page, seconds."""
        return _seconds(_whole(self._of(page=True)))

    def flagged(self, flag: int) -> float:
        """Number of objects with a flag."""
        return float(np.count_nonzero(self.objects["flags"] & flag))


def _whole(rows: np.ndarray) -> np.ndarray:
    return rows[rows["flags"] & (FAILED | UNFINISHED) == 0]  # type: ignore[no-any-return]


def _seconds(rows: np.ndarray) -> np.ndarray:
    return rows["dur_us"] / 1e6
