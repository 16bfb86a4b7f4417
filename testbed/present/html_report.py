# SPDX-License-Identifier: GPL-2.0
"""The evaluation as one self-contained HTML page; its layout is in templates/."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import jinja2

from ..judge import coverage, scoreboard
from ..results.digest import Documents
from . import drawing, tables
from .quoting import papers

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
#: titles of the scoreboard's flow groups
FLOWS = {"be": "best effort", "bg": "background"}


def sort_key(parts: list[tuple[str, float]]) -> str:
    """Sort key of a cell of the scoreboard: its first number that is not NaN."""
    return format(next(value for _, value in parts if not math.isnan(value)), ".3f")


def bar_percent(group: scoreboard.Group, kind: str, value: float) -> str:
    """Length of the bar beside a number, in percent; a full bar means 100 %, an index of 1, or 30 s."""
    full = 100
    if kind == "lost":
        full = 30 if group.key == "swift" else 1 if group.loses == "jain" else 100
    return f"{max(0.0, min(100.0, 100 * value / full)):.0f}"


def losses(board: scoreboard.Board) -> str:
    """Meaning and unit of each group's first number."""
    lost = [(group.heading, board.distance[group.loses]) for group in board.group if group.loses]
    return "; ".join(f"{heading}: {distance.title} [{distance.unit or 'index'}]" for heading, distance in lost)


def traces(
    documents: Documents, group: scoreboard.Group, contender: str
) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
    """Goodput over time of each scenario's first run: the scenario's title, a legend, the lines."""
    for run in documents.get(group.experiment, {}).get("cases", []):
        scenario, lines = run["case"]["scenario"], run.get("trace")
        if run["case"]["contender"] == contender and scenario in group.scenarios and lines:
            styles = ["solid", *["dashed"] * len(lines)]
            legend = ", ".join(f"{FLOWS.get(name, name)} {style}" for name, style in zip(lines, styles))
            yield group.scenarios[scenario], legend, lines


def _pictures(verdicts: list[coverage.FigureVerdict], files: dict[str, list[Path]]) -> dict[str, list[str]]:
    """The pictures of each figure, as inline SVG. Those of an experiment appear once, with its first figure."""
    left = dict(files)
    pictures = defaultdict(list)
    for verdict in verdicts:
        figure = verdict.figure
        for index, path in enumerate(left.pop(figure.experiment, [])):
            svg, title = path.read_text(encoding="utf-8"), f"{figure.number}: {path.stem}"
            pictures[figure.key].append(drawing.inline(svg, f"{figure.key}-{index}", title))
    return pictures


def page(documents: Documents, files: dict[str, list[Path]]) -> str:
    """Text of the page. files: the pictures of each experiment."""
    documents = dict(sorted(documents.items()))
    verdicts = coverage.judge_all(documents)
    return TEMPLATES.get_template("report.html").render(
        documents=documents,
        verdicts=verdicts,
        scores=scoreboard.Scores(scoreboard.load_board(), documents),
        papers=papers(documents),
        pictures=_pictures(verdicts, files),
        settings=tables.pinned_settings(documents),
        tables=tables,
        drawing=drawing,
        sort_key=sort_key,
        bar_percent=bar_percent,
        losses=losses,
        traces=traces,
    )


def write(documents: Documents, files: dict[str, list[Path]], path: Path) -> Path:
    """Write the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(documents, files) + "\n", encoding="utf-8")
    return path
