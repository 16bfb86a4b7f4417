# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed list: list the experiments, one per line."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..spec.experiment import Experiment, load, names
from ..spec.tables import ExperimentError


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser("list", help="list the experiments, one per line")
    sub.add_argument("--json", action="store_true", help="as JSON")
    sub.add_argument("tag", nargs="?", help="only those with this tag (tcp_lp, demo, ...)")
    sub.set_defaults(do=run)


def tagged(tag: str | None) -> list[Experiment]:
    """The experiments with a tag, or all; ExperimentError if there are none."""
    experiments = [load(name) for name in names()]
    chosen = [experiment for experiment in experiments if not tag or tag in experiment.head.tags]
    if not chosen:
        raise ExperimentError(f"no experiment has the tag {tag!r}" if tag else "there are no experiments")
    return chosen


def _facts(experiment: Experiment) -> dict[str, Any]:
    head = experiment.head
    return {
        "name": experiment.name,
        "title": head.title,
        "claim": head.claim,
        "source": head.source,
        "tags": head.tags,
        "cases": len(experiment.cases()),
        "runs": experiment.runs(),
    }


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    experiments = tagged(args.tag)
    if args.json:
        print(json.dumps(list(map(_facts, experiments)), indent=1))
        return 0
    width = max(len(experiment.name) for experiment in experiments)
    for experiment in experiments:
        print(f"{experiment.name:<{width}}  {experiment.head.title or experiment.head.claim}")
    return 0
