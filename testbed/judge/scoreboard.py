# SPDX-License-Identifier: GPL-2.0
"""The scoreboard: all contenders in all scenarios, as distances from strict priority with the same seed."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..measure.summary import Summary, summarise
from ..results import digest
from ..spec.experiment import Case
from ..spec.tables import ExperimentError, load_table
from .checks import Table

PATH = Path(__file__).parent / "scoreboard.toml"
#: if the reference itself could use less than this, Mbit/s, a share of it has no meaning
LEAST_SPARE_MBIT = 0.3


@dataclass(frozen=True)
class Contender:
    """A row of the table."""

    title: str
    what: str


@dataclass(frozen=True)
class Distance:
    """How a metric is compared with the reference."""

    title: str
    unit: str
    how: str
    good: str


@dataclass(frozen=True)
class Group:
    """A column of the table: a group of similar scenarios."""

    key: str
    title: str
    scenarios: dict[str, str]
    metrics: tuple[str, ...]
    experiment: str = "scoreboard"
    short: str = ""
    #: a remark for the reader
    note: str = ""

    @property
    def heading(self) -> str:
        """Its title as head of a column."""
        return self.short or self.title

    @property
    def loses(self) -> str:
        """The metric of the other traffic's loss; "" if there is no other traffic."""
        return next((name for name in self.metrics if name != "bg"), "")


@dataclass(frozen=True)
class Board:
    """scoreboard.toml."""

    reference: str
    contender: dict[str, Contender]
    distance: dict[str, Distance]
    group: list[Group]


@dataclass(frozen=True)
class Cell:
    """One contender in one scenario, one metric."""

    ours: Summary
    reference: Summary
    distance: Summary


def load_board() -> Board:
    """Read scoreboard.toml."""
    board = load_table(Board, tomllib.loads(PATH.read_text(encoding="utf-8")), PATH.name)
    for group in board.group:
        for name in group.metrics:
            if name not in board.distance:
                raise ExperimentError(f"{PATH.name}: group {group.key}: no distance {name!r}")
    return board


def apart(how: str, ours: float, reference: float) -> float:
    """Distance of a run's number from the reference's."""
    if how == "more":
        return ours - reference
    if how == "less":
        return reference - ours
    if not reference:
        return math.nan
    percent = 100 * ours / reference
    return {"percent": percent, "percent_less": 100 - percent, "percent_more": percent - 100}[how]


class Scores:
    """The cells, computed from digests."""

    def __init__(self, board: Board, documents: dict[str, dict[str, Any]]):
        self.board = board
        listed = [(scenario, group.key) for group in board.group for scenario in group.scenarios]
        self.shared = Counter(scenario for scenario, _ in listed)
        #: the first group that has a scenario
        self.home = dict(reversed(listed))
        self.tables: dict[str, Table] = {}
        #: cases of which a run was lost, by experiment
        self.lost_cases: dict[str, list[Case]] = {}
        for name in sorted({group.experiment for group in board.group} & documents.keys()):
            results = digest.result_set(documents[name])
            self.tables[name] = Table.of(results)
            self.lost_cases[name] = [case for case, _ in results.lost()]

    def cell(self, group: Group, scenario: str, contender: str, metric: str) -> Cell:
        """One cell; its summaries are empty if there are no values."""
        table = self.tables.get(group.experiment, Table([], []))
        mine = {"scenario": scenario, "contender": contender}
        limit = {**mine, "contender": self.board.reference}
        ours, theirs = table.values(mine, metric), table.values(limit, metric)
        how = self.board.distance[metric].how
        spare = metric != "bg" or summarise(theirs).mean > LEAST_SPARE_MBIT
        pairs = zip(table.values(mine, metric, limit), table.values(limit, metric, mine)) if spare else ()
        distances = [None if one is None or other is None else apart(how, one, other) for one, other in pairs]
        return Cell(summarise(ours), summarise(theirs), summarise(distances))

    def ran(self, group: Group, scenario: str, contender: str) -> bool:
        """Whether a scenario was run with all requested seeds."""
        if group.experiment not in self.tables:
            return False
        values = self.tables[group.experiment].values({"scenario": scenario, "contender": contender}, group.metrics[0])
        return bool(values) and None not in values

    def state(self, group: Group, scenario: str, contender: str) -> str:
        """State of a scenario: "" if all runs exist, INCOMPLETE if a run was lost, else "not run"."""
        if self.ran(group, scenario, contender):
            return ""
        lost = {"scenario": scenario, "contender": contender} in self.lost_cases.get(group.experiment, [])
        return "INCOMPLETE" if lost else "not run"

    def left_out(self, group: Group, scenario: str, contender: str) -> str:
        """Why a scenario does not count in a cell; "" if it counts."""
        limit = self.state(group, scenario, self.board.reference)
        return self.state(group, scenario, contender) or (limit and f"strict priority {limit}")

    def of_fewer(self, contender: str) -> str:
        """Suffix of a contender's name if its means are over fewer scenarios than strict priority's."""
        each = [
            (self.state(group, scenario, contender), self.state(group, scenario, self.board.reference))
            for group in self.board.group
            for scenario in group.scenarios
        ]
        if any("INCOMPLETE" in words for words in each):
            return " (INCOMPLETE)" if any(mine == "INCOMPLETE" for mine, _ in each) else " (strict priority INCOMPLETE)"
        return " (in part)" if any(mine and not limit for mine, limit in each) else ""

    def run(self, group: Group, contender: str) -> int:
        """Number of a group's scenarios that were run; 0 if all of these belong to an earlier group too."""
        have = [scenario for scenario in group.scenarios if self.ran(group, scenario, contender)]
        own = [scenario for scenario in have if self.shared.get(scenario, 0) < 2 or group.key == self.home[scenario]]
        return len(have) if own else 0

    def over(self, group: Group, contender: str, metric: str) -> float:
        """Mean distance of a metric over the group's scenarios that were run, NaN if there are none."""
        if not self.run(group, contender):
            return math.nan
        both = (contender, self.board.reference)
        there = [name for name in group.scenarios if all(self.ran(group, name, one) for one in both)]
        distances = [self.cell(group, scenario, contender, metric).distance for scenario in there]
        # a run without a value (an event that never happened) makes the mean NaN; a distance without spare bandwidth
        # has no runs
        if any(one.blank for one in distances):
            return math.nan
        return summarise([one.mean for one in distances]).mean

    def lost(self, contender: str) -> float:
        """Percentage of its rate that best effort lost, a mean over the groups with best-effort traffic.

        Groups measured by time or fairness are not included, except pages: a page time longer by p percent counts as a
        rate of 100 / (100 + p).
        """
        values = []
        for group in self.board.group:
            if group.loses in ("be", "page"):
                value = self.over(group, contender, group.loses)
                slower = self.board.distance[group.loses].how == "percent_more"
                values.append(100 * value / (100 + value) if slower else value)
        return summarise(values).mean

    def used(self, contender: str) -> float:
        """Percentage of the spare bandwidth used, a mean over the groups that have some."""
        picked = [one for one in self.board.group if "bg" in one.metrics]
        return summarise([self.over(group, contender, "bg") for group in picked]).mean

    def complete(self) -> bool:
        """Whether there is any run."""
        return any(table.runs for table in self.tables.values())
