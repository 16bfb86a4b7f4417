# SPDX-License-Identifier: GPL-2.0
"""Metrics that compare distributions. run/identity.py names this file for them: results of other kinds of metric do
not depend on it."""

from __future__ import annotations

import math

import numpy as np

from ..spec.metrics import KINDS, OWN_FILE_KINDS
from .metrics import Asked, computes
from .web import Rows, sized

KINDS.update(OWN_FILE_KINDS)


@computes("object_area")
def _object_area(asked: Asked) -> float:
    records = sized(asked.series.web, asked.metric.bytes_from, asked.metric.bytes_to)
    rows = Rows(records, asked.ids, asked.from_s, asked.to_s)
    if not len(rows.object_s):
        return math.nan
    left_s = np.clip((asked.metric.threshold or 0.0) - rows.object_s, 0, None)
    return float(np.sum(left_s)) / len(rows.objects)
