# SPDX-License-Identifier: GPL-2.0
"""The evaluation as Markdown pages with their pictures, which are committed; made from digests only."""

from __future__ import annotations

from pathlib import Path

from ..judge import checks, coverage, figures, proof, scoreboard
from ..results import digest
from ..results.digest import Documents
from ..spec import lives
from . import claims_page, tables
from .quoting import papers
from .state import reds
from .tables import FORM
from .text import interval, number

NOTE = "<!-- SPDX-License-Identifier: GPL-2.0 -->\n<!-- Made by `make report`; do not edit. -->\n"
ON_WHITE = '<svg style="color:#333;background:#fff" '
NO_PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><title>not run</title></svg>'


def _table(head: list[str], rows: list[list[str]], right: tuple[int, ...] = ()) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("\n", " ") or " "

    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|" + "|".join("---:" if index in right else "---" for index in range(len(head))) + "|")
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def _index(documents: Documents, verdicts: list[coverage.FigureVerdict], picture: str) -> str:
    parts = [
        NOTE + "# Results",
        "What `make report` found. The same as one page, with every picture: `results/report/index.html` after it.",
        _table(["", ""], [[key, value] for key, value in tables.provenance(documents)]),
        f"Of {len(verdicts)} tables and figures with data in the papers: {tables.count_text(verdicts)} "
        "([coverage.md](coverage.md)). "
        "Every bound of every experiment: [checks.md](checks.md). "
        "Contenders, scenario by scenario: [scoreboard.md](scoreboard.md). "
        "What was run, with seeds, settings, queues: [experiments.md](experiments.md); every run's metrics: `data/`. "
        "Experiments are run in several forms, from the tests' short one to the papers' lengths, and not all of them "
        "for each state of these pages: each result names its form; missing runs are marked 'not run'.",
    ]
    if picture:
        parts += [
            "## At a glance",
            "![Trade-off: what best effort lost against the share of the spare bandwidth used](tradeoff.svg)",
        ]
    parts.append("## Paper by paper")
    for title, text in papers(documents).values():
        parts += [f"### {title}", text]
    return "\n\n".join(parts) + "\n"


def _coverage(verdicts: list[coverage.FigureVerdict], titles: dict[str, str]) -> str:
    parts = [
        NOTE + "# Coverage: every table and figure with data in the five papers",
        "Two verdicts a figure, computed from results by the rules in `testbed/judge/coverage.toml`. *The claim*: our "
        "number is within the bound that the paper's statement or our aim gives. It holds if the whole 95 % interval "
        "(±: half of it) is within; an interval that contains the bound leaves it undecided, and asks for more seeds. "
        "*Beside the paper's number*: reproduced (it lies in our 95 % interval, or within the tolerance that the "
        "figure names with its reason); at least as good (ours is beyond it on the side that the claim wants); unknown "
        "(it depends on a parameter that the paper does not give, and is near with one of the values that were tried, "
        "the same for all rows); differs, with a cause that was tested by changing it and seeing the number follow, "
        "or without. "
        "*order*: the paper says an order or a trend without a number, which is the bound; it is reproduced if the "
        "whole interval is within, and undecided if the interval contains the bound. "
        "A row with neither counts for nothing, nor does one that stands *beside*: it is "
        "not what the paper measured, and the figure says why. *off*: how far our mean is. *limit*: the "
        "reference of the experiment (strict priority, where it has one). *form*: "
        + "; ".join(f"{form}: {words}" for form, words in FORM.items())
        + ".",
    ]
    for paper in figures.PAPERS:
        mine = [verdict for verdict in verdicts if verdict.figure.paper == paper]
        parts.append(f"## {titles[paper]}")
        parts.append(_table(tables.COVERAGE_HEAD, [tables.coverage_row(verdict) for verdict in mine]))
        for verdict in mine:
            figure, (head, rows) = verdict.figure, tables.row_table(verdict)
            parts.append(f"### {figure.number}: {tables.verdict_text(verdict)}")
            parts += tables.reasons(verdict)
            if rows:
                form = f" ({tables.form_text(verdict.form, verdict.seeds)})" if verdict.form else ""
                parts.append(f"`{figure.source}`{form}. {tables.near_rule(figure)}{tables.of_ns3(verdict)}")
                right = tuple(range(head.index("paper"), head.index("bound") + 1))
                parts.append(_table(head, rows, right))
    return "\n\n".join(parts) + "\n"


def _checks(documents: Documents) -> str:
    """The page with all bounds of all experiments; of a life without results it says that it was not run."""
    red = reds(documents)
    named = {*lives.judged(), proof.NAME}
    judged = {name: tables.check_rows(document) for name, document in documents.items() if name in named}
    waiting = sum(row[-1].startswith(checks.STATUS["new"]) for rows in judged.values() for row in rows)
    few = sum(row[-1].startswith(checks.STATUS["few"]) for rows in judged.values() for row in rows)
    undecided = sum(row[-1].startswith("undecided") for rows in judged.values() for row in rows)
    parts = [
        NOTE + "# Checks: every bound of every experiment",
        "A bound is a statement of a paper or of an RFC, a limit of the path or of the law, or a number that the "
        "project set itself; *why this bound* says which, and what it means. Of a bound on what others lose beside "
        "one of our controls, *beside a rival* has the same number with a control that yields to nobody in its place. "
        "If that meets the bound too, the row shows safety, not yielding, and says why it is kept. "
        + ("" if red else "None is missed without an explanation, and no run that was asked for is missing."),
    ]
    if waiting:
        parts.append(
            f"{waiting} rows are *not run yet*: their case or their metric was added to the experiment after these "
            f"results were made. Of new cases, also those without a bound: {tables.not_run_yet_text(documents) or 0}."
        )
    if few:
        parts.append(
            f"{few} rows are of *few seeds*: the experiment has more seeds than these results, so that what a row "
            "shows is no verdict yet."
        )
    if undecided:
        parts.append(
            f"{undecided} rows are *undecided*: the 95 % interval contains the bound, so that more seeds are needed. "
            "Of these, the explained ones are not red: the mean misses the bound by no more than the range of the "
            "explanation, or even meets it."
        )
    if red:
        parts.append(f"To be mended ({len(red)}):\n\n" + "\n".join(f"- {line}" for line in red))
    for name in sorted({*judged, *lives.files()}):
        if name not in judged:
            parts += [f"## {name}", "not run: `make soak` runs this long connection"]
            continue
        document, rows = documents[name], judged[name]
        state = f"STALE: {', '.join(document['stale'])}. " if document.get("stale") else ""
        form = tables.form_text(document["mode"], digest.few_seeds(document))
        if name == proof.NAME:
            form = f"{tables.runs_text(document)} of each program"
        parts += [f"## {name}", state + form]
        parts.append(_table(tables.CHECK_HEAD, rows, (2, 3, 4, 5, 6)) if rows else "No bound is for these cases.")
    return "\n\n".join(parts) + "\n"


def _distance(cell: scoreboard.Cell, left_out: str) -> str:
    measured = f" ({number(cell.ours.mean)})" if cell.ours.n else ""
    return (left_out or (interval(cell.distance) if measured else "-")) + measured


def scoreboard_page(scores: scoreboard.Scores, picture: str) -> str:
    """The page with the contenders' distances in one table, and the numbers behind each cell."""
    board = scores.board
    rows = []
    for key, contender in board.contender.items():
        cells = [contender.title]
        for group in board.group:
            numbers = " / ".join(tables.short_number(value) for _, value in tables.cell_parts(scores, group, key))
            cells.append((numbers or tables.nothing(scores, group, key)) + tables.in_part(scores, group, key))
        rows.append(cells)
    parts = [
        NOTE + "# Scoreboard",
        "Each cell is a distance from strict priority in the same scenario with the same seed: what best effort lost "
        "(see each group's first line for what is measured), then, where there is spare bandwidth, the percent of it "
        "that was used. Lost: less is better; used: more is better. " + tables.SIGNS,
        _table(["contender", *(group.heading for group in board.group)], rows, tuple(range(1, 15))),
        "![Trade-off](tradeoff.svg)" if picture else "",
        "## Contenders",
        "\n".join(f"- **{contender.title}**: {contender.what}" for contender in board.contender.values()),
        "## Behind each cell",
    ]
    for group in board.group:
        parts += [f"### {group.title}", *([group.note] if group.note else [])]
        head = ["contender", *(tables.distance_title(board.distance[metric]) for metric in group.metrics)]
        for scenario, label in group.scenarios.items():
            rows = []
            for key, contender in board.contender.items():
                word = scores.left_out(group, scenario, key)
                behind = (_distance(scores.cell(group, scenario, key, metric), word) for metric in group.metrics)
                rows.append([contender.title, *behind])
            parts += [f"{label} (in brackets what was measured):", _table(head, rows, tuple(range(1, len(head))))]
    return "\n\n".join(parts) + "\n"


def _experiments(documents: Documents) -> str:
    parts = [
        NOTE + "# Experiments: what was run",
        _table(tables.EXPERIMENT_HEAD, tables.experiment_rows(documents)),
        "## Pinned settings",
        "As read back from the sending host of the first experiment (a case may set others: its file says so).",
    ]
    settings = tables.pinned_settings(documents)
    parts.append(_table(["sysctl", "value"], [[f"`{key}`", f"`{value}`"] for key, value in settings.items()]))
    parts.append("## Queues and module parameters")
    for name, document in documents.items():
        lines = list(dict.fromkeys(line for case in document["cases"] for line in case["queue"]))
        parts += [f"### {name}", f"`{document['provenance']['command']}`"]
        modules = [
            f"{module}: " + ", ".join(f"{key} = {' '.join(values)}" for key, values in said.items())
            for module, said in document["ran"]["modules"].items()
        ]
        more = [f"and {len(lines) - 12} more lines of other cases"] if len(lines) > 12 else []
        if modules or lines:
            parts.append("```\n" + "\n".join([*modules, *lines[:12], *more]) + "\n```")
    return "\n\n".join(parts) + "\n"


def pages(documents: Documents) -> dict[str, str]:
    """The committed pages and pictures, made from digests only: file name -> content."""
    documents = dict(sorted(documents.items()))
    verdicts = coverage.judge_all(documents)
    scores = scoreboard.Scores(scoreboard.load_board(), documents)
    titles = {paper: title for paper, (title, _) in papers(documents).items()}
    picture = tables.trade_off(scores)
    return {
        "README.md": _index(documents, verdicts, picture),
        "coverage.md": _coverage(verdicts, titles),
        "claims.md": NOTE + claims_page.text(documents, titles),
        "checks.md": _checks(documents),
        "scoreboard.md": scoreboard_page(scores, picture),
        "experiments.md": _experiments(documents),
        # a picture in a file of its own cannot inherit the colours of a page
        "demo.svg": (tables.demo_picture(documents) or NO_PICTURE).replace("<svg ", ON_WHITE) + "\n",
        "tradeoff.svg": (picture or NO_PICTURE).replace("<svg ", ON_WHITE) + "\n",
    }


def write(documents: Documents, folder: Path) -> list[Path]:
    """Write the pages, and the digests from which they are made, with their stale parts. Nothing is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in pages(documents).items():
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(folder / name)
    return paths + [digest.save(document, folder / "data") for document in documents.values()]
