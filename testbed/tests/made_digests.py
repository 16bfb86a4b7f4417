# SPDX-License-Identifier: GPL-2.0
"""Made-up digests of every experiment, from which pages can be built before anything is run."""

from __future__ import annotations

import random
from typing import Any

from testbed.results import digest
from testbed.spec import experiment as experiments


def made(name: str, values: dict[str, float] | None = None, seeds: int = 1) -> dict[str, Any]:
    """Make a digest of all cases. ``values``: metrics that have one value in every case; the others are random."""
    draw = random.Random(name)
    one = experiments.load(name)
    cases = []
    for case in one.cases("brief"):
        metrics = {
            metric: [(values or {}).get(metric, draw.uniform(0, 10)) for _ in range(seeds)]
            for metric in one.tables["metric"]
        }
        made_case = {
            "case": case,
            "seeds": list(range(1, seeds + 1)),
            "jobs": [""] * seeds,
            "queue": ["tc -n rtr qdisc add"],
            "metrics": metrics,
        }
        if "scoreboard" in one.head.tags:
            made_case["trace"] = {"be": [draw.randrange(100) for _ in range(20)], "bg": [1] * 20}
        cases.append(made_case)
    return {
        "format": digest.FORMAT,
        "experiment": name,
        "mode": "brief",
        "sets": {},
        "file_sha256": digest.file_hash(one),
        "asked_seeds": list(range(1, seeds + 1)),
        "identity": {},
        "provenance": {
            "command": "made up",
            "kernel": {"release": "6.12.0", "series": "6.12", "flavour": "plain"},
            "backend": "uml",
            "host": {"python": "3", "numpy": "2"},
        },
        "ran": {"testbed": ["v1"], "modules": {"tcp_lp": {"version": ["1"]}}},
        "sysctls": {"net.ipv4.tcp_sack": "1"},
        "cases": cases,
    }


def all_digests() -> dict[str, dict[str, Any]]:
    """Make a digest of each experiment."""
    return {name: made(name) for name in experiments.names()}
