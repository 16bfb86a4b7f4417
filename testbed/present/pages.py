# SPDX-License-Identifier: GPL-2.0
"""The evaluation as Markdown (committed) and as one HTML page that needs no other file.

Both are made of the same digests, so that a figure has one origin. No number is typed here.
"""

from __future__ import annotations

import math
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

from ..base.errors import LbeError
from ..judge import checks, coverage, scoreboard
from ..measure.summary import Summary, summarise
from ..results import digest
from ..run import identity
from ..spec.experiment import case_name, load, matches, names
from . import claims_page, drawing
from .text import interval, number, off

HERE = Path(__file__).parent
TEXTS = HERE / "papers.toml"
STYLE = HERE / "page.css"
SCRIPT = HERE / "page.js"
BOX = "[[experiment metric dim=variant ... of dim=variant ...]]"
#: stand for a number that is not there, or not whole
NOT_RUN, INCOMPLETE = "(not run)", "(incomplete)"
#: stands where the runs are there and none has such a value: a flow that was not started, a time that did not come
NO_VALUE = "-"
ON_WHITE = '<svg style="color:#333;background:#fff" '
NO_PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><title>not run</title></svg>'
#: words of the forms, for people
FORM = {
    "short": "the tests' form: few cases, short",
    "brief": "all cases once, short",
    "default": "the experiment's own lengths",
    "full": "the paper's lengths and runs",
}
#: the forms in which an experiment is as long as it is meant to be
OWN_LENGTHS = ("default", "full")
#: groups of the scoreboard's flows, for people
GROUPS = {"be": "best effort", "bg": "background"}
SIGNS = (
    "Below 0: the others did better than beside the reference, whose background flow fills every gap that they leave. "
    "More than 100 % used: more than the reference's background flow did, taken from the others unless a note says why."
)
Documents = dict[str, dict[str, Any]]


# ------------------------------------------------------------------------------------ numbers


def pairs(words: list[str], where: str) -> dict[str, str]:
    """A case, or a part of one, from words such as dim=variant."""
    found = {}
    for word in words:
        dimension, equals, variant = word.partition("=")
        if not equals:
            raise LbeError(f"{where}: {word!r}: expected {BOX}")
        found[dimension] = variant
    return found


def quote(words: str, documents: Documents) -> str:
    """The number that a [[...]] in a text stands for: mean and interval over the runs of the cases it names."""
    name, metric, *rest = words.split()
    here, other = (rest[: rest.index("of")], rest[rest.index("of") + 1 :]) if "of" in rest else (rest, [])
    case, limit = pairs(here, words), pairs(other, words)
    if name not in documents:
        return NOT_RUN
    results = digest.result_set(documents[name])
    if not any(metric in run.metrics for run in results.results):
        raise LbeError(f"{TEXTS.name}: {words!r}: {name} has no metric {metric!r}")
    table = checks.Table.of(results)
    values: list[float | None] = []
    for mine in results.asked_cases:
        if matches(mine, case):
            theirs = {**mine, **limit}
            values += table.compare(mine, metric, theirs, metric, "percent") if limit else table.values(mine, metric)
    summary = summarise(values)
    if values and summary.blank == len(values):
        return NO_VALUE
    if summary.missing or summary.blank:
        return INCOMPLETE if summary.n else NOT_RUN
    return interval(summary) if summary.n else NOT_RUN


def _filled(paragraph: str, documents: Documents) -> str:
    """A paragraph with its numbers; one whose numbers are not there says nothing but that.

    Numbers of short forms are said to be such.
    """
    text = re.sub(r"\[\[(.+?)\]\]", lambda found: quote(found[1], documents), paragraph)
    named = list(dict.fromkeys(found.split()[0] for found in re.findall(r"\[\[(.+?)\]\]", paragraph)))
    for mark, words in ((NOT_RUN, "Not run for this state of the pages"), (INCOMPLETE, "INCOMPLETE")):
        if mark in text:
            return f"{words}: {', '.join(named)}."
    old = [name for name in named if documents[name].get("stale")]
    if old:
        text += f" (STALE, of an earlier tree: {', '.join(old)}.)"
    short = [name for name in named if documents[name]["mode"] not in OWN_LENGTHS]
    return f"{text} (From short runs only: {', '.join(short)}.)" if short else text


def texts(documents: Documents) -> dict[str, tuple[str, str]]:
    """Title and text of each paper, numbers filled in."""
    tables = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
    return {
        paper: (
            tables[paper]["title"],
            "\n\n".join(_filled(part, documents) for part in tables[paper]["text"].strip().split("\n\n")),
        )
        for paper in coverage.PAPERS
    }


def short_number(value: float) -> str:
    """Three digits at most, a plain minus, nothing for what is not there."""
    if math.isnan(value):
        return "-"
    if abs(value) < 0.05:
        value = 0.0
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def versions(document: dict[str, Any]) -> str:
    """The modules' versions by their own word, as they ran."""
    return ", ".join(
        f"{name} {' '.join(said.get('version', ['in-tree']))}" for name, said in document["ran"]["modules"].items()
    )


def provenance(documents: Documents) -> list[tuple[str, str]]:
    """What is the same for all experiments, or the range of it."""
    kernels = {
        f"{one['provenance']['kernel']['release']} ({one['provenance']['kernel']['flavour']})"
        for one in documents.values()
    }
    hosts = [document["provenance"]["host"] for document in documents.values()]
    runs = sum(len(case["seeds"]) for document in documents.values() for case in document["cases"])
    testbeds = {one for document in documents.values() for one in document["ran"]["testbed"] or ["not recorded"]}
    old = sum(bool(document.get("stale")) for document in documents.values())
    return [
        ("kernel", ", ".join(sorted(kernels))),
        ("testbed that ran", ", ".join(sorted(testbeds))),
        ("backend", ", ".join(sorted({document["provenance"]["backend"] for document in documents.values()}))),
        ("python, numpy", ", ".join(sorted({f"{one['python']}, {one['numpy']}" for one in hosts}))),
        ("experiments, runs", f"{len(documents.keys() & set(names()))} of {len(names())}, {runs}"),
        ("of today's tree", f"{len(documents) - old} current, {old} stale (experiments.md says what changed)"),
    ]


# ------------------------------------------------------------------------------- shared tables


def verdict_text(verdict: coverage.Verdict) -> str:
    """What is said of a figure's claims, with its count."""
    word = verdict.word + (f" ({verdict.held} of {verdict.judged})" if verdict.judged else "")
    return word + (", STALE" if verdict.stale else "")


def against_text(verdict: coverage.Verdict) -> str:
    """What is said of a figure beside the paper's numbers, and of how many."""
    words = verdict.compared
    if len(set(words)) < 2:
        return verdict.against + (f" ({len(words)})" if words else "")
    return "; ".join(f"{word} ({words.count(word)})" for word in coverage.AGAINST if word in words)


def count_text(verdicts: list[coverage.Verdict]) -> str:
    """How many figures have which verdict."""
    words = [verdict.word for verdict in verdicts]
    said = ", ".join(f"{word} {words.count(word)}" for word in reversed(coverage.WORDS) if word in words)
    beside = [verdict.against for verdict in verdicts]
    order = (*coverage.AGAINST, coverage.NO_NUMBER)
    numbers = ", ".join(f"{word} {beside.count(word)}" for word in order if word in beside)
    return f"claims: {said}; beside the paper's numbers, by the worst of a figure's: {numbers}"


def in_own_lengths(verdict: coverage.Verdict) -> bool:
    """Whether its experiment was run as long as it is meant to be."""
    return verdict.form in OWN_LENGTHS


def reasons(verdict: coverage.Verdict) -> list[str]:
    """What is to be said of a figure: why it cannot be compared, what is stale, why rows miss; each once."""
    said: list[str] = []
    if verdict.word == "cannot be compared":
        return [verdict.figure.cannot]
    if verdict.stale:
        said.append(f"STALE: these numbers are of an earlier tree; since then changed: {', '.join(verdict.stale)}.")
    if verdict.rows and not in_own_lengths(verdict):
        said.append("Run in a short form only.")
    if verdict.word == "not judged":
        said.append("Run, but its bounds are for longer runs than these.")
    for row in verdict.rows:
        if row.note and row.status in ("fail", "differs", "incomplete"):
            said.append(f"{row.what}, {row_case(row)}: {row.note}")
    for row in verdict.rows:
        if row.why:
            same = [other for other in verdict.rows if other.why == row.why]
            said.append(f"Differs ({', '.join(dict.fromkeys(row_case(one) for one in same))}): {row.why}")
    rows = [row for row in verdict.rows if row.against == coverage.DIFFERS and not row.why and row.status != "differs"]
    if rows:
        said.append(f"Differs, and the cause is not known: {', '.join(dict.fromkeys(map(row_case, rows)))}.")
    return list(dict.fromkeys(said))


def row_case(row: coverage.Row) -> str:
    """A row's case in words."""
    return "not in this form" if row.case is None else case_name(row.case)


def row_verdict(row: coverage.Row) -> str:
    """What is said of a row's claim."""
    return checks.STATUS[row.status]


def group_cells(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> tuple[float, float]:
    """What the main table shows of a group: lost, used (NaN where it does not apply)."""
    lost = scores.over(group, contender, group.loses) if group.loses else math.nan
    used = scores.over(group, contender, "bg") if "bg" in group.metrics else math.nan
    return lost, used


def cell_parts(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> list[tuple[str, float]]:
    """The same as ("lost" or "used", number); a loss that cannot be told leaves its place where the other is known."""
    lost, used = group_cells(scores, group, contender)
    if math.isnan(lost) and math.isnan(used):
        return []
    return [("lost", lost)] * bool(group.loses) + ([] if math.isnan(used) else [("used", used)])


def in_part(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> str:
    """Says so where only some of a group's scenarios were run."""
    have = scores.run(group, contender)
    return f" ({have} of {len(group.scenarios)})" if 0 < have < len(group.scenarios) else ""


def nothing(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> str:
    """Why a cell has no number."""
    have = [scores.ran(group, scenario, contender) for scenario in group.scenarios]
    if not scores.run(group, contender):
        return "not run"
    if not any(mine and scores.ran(group, name, scores.board.reference) for mine, name in zip(have, group.scenarios)):
        return "strict priority not run"
    # a time that did not come while the run lasted; else a share of nothing
    return "never" if scores.board.distance[group.loses or "bg"].unit == "s" else "no value"


def trade_off(scores: scoreboard.Scores) -> str:
    """The picture; "" where nobody has a place in it."""
    board = scores.board
    points = {one.title: (scores.lost(key), scores.used(key)) for key, one in board.contender.items()}
    if not any(math.isfinite(lost) and math.isfinite(used) for lost, used in points.values()):
        return ""
    return drawing.trade_off(
        points,
        board.contender[board.reference].title,
        "best effort lost, % of its rate (mean over the scenarios run; less is better)",
        "of the spare bandwidth used, % (more is better)",
        "Trade-off: what best effort lost against the share of the spare bandwidth used",
    )


#: cases of the demo in its picture, from the greedy one to the limit
DEMO = {
    "cubic": "background transfer by cubic, as any other",
    "lp": "by lp",
    "lbe": "by lbe",
    "strict": "behind a strict-priority queue, the limit",
}


def demo_picture(documents: Documents) -> str:
    """Goodput over time of the demo's first runs; "" if they are not there."""
    document = documents.get("demo")
    if document is None:
        return ""
    traces = {case["case"]["background"]: case["trace"] for case in document["cases"] if case.get("trace")}
    shown = {title: traces[case] for case, title in DEMO.items() if case in traces}
    length_s = digest.experiment_of(document).setting(document["cases"][0]["case"], document["mode"]).head.duration_s
    words = "A foreground transfer of 40 s beside a background transfer: percent of the link over time"
    return drawing.panels(shown, length_s, words) if shown else ""


def _gone(document: dict[str, Any]) -> int:
    """Runs that were asked for and are not there."""
    return len(digest.result_set(document).missing())


def experiment_rows(documents: Documents) -> list[list[str]]:
    """A row of provenance an experiment."""
    rows = []
    for name in sorted({*names(), *documents}):
        document = documents.get(name)
        if document is None:
            rows.append([name, "not run", "", "", "", "", ""])
            continue
        seeds = document["asked_seeds"]
        gone = _gone(document)
        rows.append(
            [
                name,
                ", ".join(
                    [f"INCOMPLETE: {gone} runs missing"] * bool(gone)
                    + ["STALE: " + ", ".join(document.get("stale", ()))] * bool(document.get("stale"))
                )
                or "current",
                FORM[document["mode"]],
                str(len(document["cases"])),
                f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}",
                document["provenance"]["kernel"]["release"],
                versions(document),
            ]
        )
    return rows


EXPERIMENT_HEAD = ["experiment", "state", "form", "cases", "seeds", "kernel", "modules that ran"]
COVERAGE_HEAD = ["number", "what it shows", "experiment", "form", "claims that hold", "beside the paper's numbers"]
ROW_HEAD = ["what", "case", "paper", "ns-2", "ours", "off", "limit", "bound", "the claim", "beside the paper"]
CELL_HEAD = ["scenario", "measured", "ours", "limit", "distance"]


def row_cells(row: coverage.Row) -> list[str]:
    """A row of a figure's table."""
    return [
        row.what,
        row_case(row),
        number(row.paper),
        interval(row.ns2) if row.ns2 else "",
        interval(row.ours),
        off(row.paper, row.ours),
        interval(row.reference),
        row.rule,
        row_verdict(row),
        row.against or "-",
    ]


def near_rule(figure: coverage.Figure) -> str:
    """What reproduced means for a figure."""
    return f"Reproduced: within our 95 % interval, or within {figure.about:g} %."


CHECK_HEAD = ["what", "case", "paper", "ours", "off", "limit", "bound", "why this bound", "verdict"]


def check_rows(document: dict[str, Any]) -> list[list[str]]:
    """Every bound of an experiment, judged."""
    one = digest.experiment_of(document)
    metrics = one.setting(one.cases(document["mode"])[0], document["mode"]).metrics
    return [
        [
            checks.check_title(one, verdict.check, metrics),
            case_name(verdict.case),
            number(verdict.check.paper),
            interval(verdict.ours),
            off(verdict.check.paper, verdict.ours),
            interval(verdict.reference),
            checks.bound_text(verdict.bound),
            verdict.why,
            checks.STATUS[verdict.status] + (f": {verdict.note}" if verdict.note else ""),
        ]
        for verdict in checks.judge(one, digest.result_set(document))
        if verdict.case is not None
    ]


def reds(documents: Documents) -> list[str]:
    """What is to be mended: bounds missed without an explanation, what is incomplete. A line each."""
    found = []
    for name, document in sorted(documents.items()):
        gone = _gone(document)
        if gone and not outgrown(document):
            found.append(f"{name}: INCOMPLETE: {gone} runs that were asked for are missing")
        if name not in names():
            continue
        one = digest.experiment_of(document)
        metrics = one.setting(one.cases(document["mode"])[0], document["mode"]).metrics
        for verdict in checks.failures(checks.judge(one, digest.result_set(document))):
            if verdict.status == "incomplete":
                continue  # said above
            note = f" ({verdict.note})" if verdict.note else ""
            title = checks.check_title(one, verdict.check, metrics)
            found.append(
                f"{name}: {title}, {case_name(verdict.case or {})}: {interval(verdict.ours)}, "
                f"bound {checks.bound_text(verdict.bound)}: {checks.STATUS[verdict.status]}{note}"
            )
    for figure in coverage.judge_all(documents):
        if figure.figure.traced:
            found += [
                f"{figure.figure.traced}: {row.what}, {row_case(row)}: {interval(row.ours)}, bound {row.rule}: "
                f"{checks.STATUS[row.status]}" + (f" ({row.note})" if row.note else "")
                for row in figure.rows
                if row.red
            ]
    return found


def outgrown(document: dict[str, Any]) -> bool:
    """Whether the experiment has changed since: then what is missing is stale, not lost."""
    return any(part.startswith("experiment") for part in document.get("stale", ()))


def mark_stale(documents: Documents) -> Documents:
    """The same, each with what of it is not of today's tree."""
    marked = {}
    for name, document in documents.items():
        experiment = load(name) if name in names() else None
        marked[name] = {**document, "stale": identity.stale(document, experiment)}
    return marked


def cell_rows(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> list[list[str]]:
    """All numbers behind a cell of the main table."""
    rows = []
    for scenario, label in group.scenarios.items():
        for metric in group.metrics:
            distance = scores.board.distance[metric]
            cell = scores.cell(group, scenario, contender, metric)
            if cell.ours.n or cell.reference.n:
                rows.append(
                    [
                        label,
                        f"{distance.title}{f' [{distance.unit}]' if distance.unit else ''}",
                        interval(cell.ours),
                        interval(cell.reference),
                        interval(cell.distance),
                    ]
                )
    return rows


# ------------------------------------------------------------------------------------ markdown


def _md_table(head: list[str], rows: list[list[str]], right: tuple[int, ...] = ()) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("\n", " ") or " "

    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|" + "|".join("---:" if index in right else "---" for index in range(len(head))) + "|")
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines)


NOTE = "<!-- SPDX-License-Identifier: GPL-2.0 -->\n<!-- Made by `make report`; do not edit. -->\n"


def _index_md(documents: Documents, verdicts: list[coverage.Verdict], picture: str) -> str:
    count = count_text(verdicts)
    parts = [
        NOTE + "# Results",
        "What `make report` found. The same as one page, with every picture: `results/report/index.html` after it.",
        _md_table(["", ""], [[key, value] for key, value in provenance(documents)]),
        f"Of {len(verdicts)} tables and figures with data in the papers: {count} ([coverage.md](coverage.md)). "
        "Every bound of every experiment: [checks.md](checks.md). "
        "Contenders, scenario by scenario: [scoreboard.md](scoreboard.md). "
        "What was run, with seeds, settings, queues: [experiments.md](experiments.md); every run's metrics: `data/`. "
        "Experiments are run in several forms, from the tests' short one to the papers' lengths, and not all of them "
        "for each state of these pages: each says its form, and what was not run is said to be not run.",
    ]
    if picture:
        parts += [
            "## At a glance",
            "![Trade-off: what best effort lost against the share of the spare bandwidth used](tradeoff.svg)",
        ]
    parts.append("## Paper by paper")
    for title, text in texts(documents).values():
        parts += [f"### {title}", text]
    return "\n\n".join(parts) + "\n"


def _coverage_md(verdicts: list[coverage.Verdict], titles: dict[str, str]) -> str:
    parts = [
        NOTE + "# Coverage: every table and figure with data in the five papers",
        "Two verdicts a figure, computed from results by the rules in `testbed/judge/coverage.toml`. *The claim*: our "
        "number is within the bound that the paper's statement or our aim gives. It holds if the whole 95 % interval "
        "(±: half of it) is within; an interval that contains the bound leaves it undecided, and asks for more seeds. "
        "*Beside the paper's number*: reproduced (it lies in our 95 % interval, or within 10 %, since most numbers are "
        "read off a curve and the papers give no spread); at least as good (ours is beyond it on the side that the "
        "claim wants); differs, with a cause that was tested by changing it and seeing the number follow, or without. "
        "A row without a number of the paper's counts for nothing. *off*: how far our mean is. *limit*: the "
        "reference of the experiment (strict priority, where it has one). *form*: "
        + "; ".join(f"{form}: {words}" for form, words in FORM.items())
        + ".",
    ]
    for paper in coverage.PAPERS:
        mine = [verdict for verdict in verdicts if verdict.figure.paper == paper]
        parts += [f"## {titles[paper]}"]
        rows = [
            [
                one.figure.number,
                one.figure.shows,
                one.figure.source or "-",
                one.form or "-",
                verdict_text(one),
                against_text(one),
            ]
            for one in mine
        ]
        parts.append(_md_table(COVERAGE_HEAD, rows))
        for one in mine:
            parts.append(f"### {one.figure.number}: {verdict_text(one)}")
            parts += reasons(one)
            if one.rows:
                form = f" ({FORM[one.form]})" if one.form else ""
                parts.append(f"`{one.figure.source}`{form}. {near_rule(one.figure)}")
                parts.append(_md_table(ROW_HEAD, [row_cells(row) for row in one.rows], (2, 3, 4, 5, 6, 7)))
    return "\n\n".join(parts) + "\n"


def _checks_md(documents: Documents) -> str:
    """Every bound of every experiment."""
    red = reds(documents)
    parts = [
        NOTE + "# Checks: every bound of every experiment",
        "A bound is a statement of a paper, of an RFC, or an aim, and says why. "
        + (f"To be mended ({len(red)}):" if red else "None is missed without an explanation, and none is incomplete."),
    ]
    if red:
        parts.append("\n".join(f"- {line}" for line in red))
    for name, document in documents.items():
        if name not in names():
            continue
        rows = check_rows(document)
        state = f"STALE: {', '.join(document['stale'])}. " if document.get("stale") else ""
        parts += [f"## {name}", f"{state}{FORM[document['mode']]}"]
        parts.append(_md_table(CHECK_HEAD, rows, (2, 3, 4, 5, 6)) if rows else "No bound is for these cases.")
    return "\n\n".join(parts) + "\n"


def _scoreboard_md(scores: scoreboard.Scores, picture: str) -> str:
    board = scores.board
    rows = []
    for key, one in board.contender.items():
        cells = [one.title]
        for group in board.group:
            numbers = " / ".join(short_number(value) for _, value in cell_parts(scores, group, key))
            cells.append((numbers or nothing(scores, group, key)) + in_part(scores, group, key))
        rows.append(cells)
    parts = [
        NOTE + "# Scoreboard",
        "Each cell is a distance from strict priority in the same scenario with the same seed: what best effort lost "
        "(see each group's first line for what is measured), then, where there is spare bandwidth, the percent of it "
        "that was used. Lost: less is better; used: more is better. " + SIGNS,
        _md_table(["contender", *[group.short or group.title for group in board.group]], rows, tuple(range(1, 15))),
        "![Trade-off](tradeoff.svg)" if picture else "",
        "## Contenders",
        "\n".join(f"- **{one.title}**: {one.what}" for one in board.contender.values()),
        "## Behind each cell",
    ]
    for group in board.group:
        parts += [f"### {group.title}", *([group.note] if group.note else [])]
        metrics = list(group.metrics)
        for scenario, label in group.scenarios.items():
            head = [
                "contender",
                *[
                    f"{board.distance[m].title}" + (f" [{board.distance[m].unit}]" if board.distance[m].unit else "")
                    for m in metrics
                ],
            ]
            table = []
            for key, one in board.contender.items():
                cells = []
                for metric in metrics:
                    cell = scores.cell(group, scenario, key, metric)
                    cells.append("-" if not cell.ours.n else f"{interval(cell.distance)} ({number(cell.ours.mean)})")
                table.append([one.title, *cells])
            parts += [f"{label} (in brackets what was measured):", _md_table(head, table, tuple(range(1, len(head))))]
    return "\n\n".join(parts) + "\n"


def _experiments_md(documents: Documents) -> str:
    parts = [
        NOTE + "# Experiments: what was run",
        _md_table(EXPERIMENT_HEAD, experiment_rows(documents)),
        "## Pinned settings",
        "As read back from the sending host of the first experiment (a case may set others: its file says so).",
    ]
    first = next(iter(documents.values()))
    parts.append(
        _md_table(["sysctl", "value"], [[f"`{key}`", f"`{value}`"] for key, value in first["sysctls"].items()])
    )
    parts.append("## Queues and module parameters")
    for name, document in documents.items():
        lines = list(dict.fromkeys(line for case in document["cases"] for line in case["queue"]))
        parts.append(f"### {name}")
        parts.append(f"`{document['provenance']['command']}`")
        modules = [
            f"{module}: " + ", ".join(f"{key} = {' '.join(values)}" for key, values in said.items())
            for module, said in document["ran"]["modules"].items()
        ]
        more = [f"and {len(lines) - 12} more lines of other cases"] if len(lines) > 12 else []
        parts.append("```\n" + "\n".join([*modules, *lines[:12], *more]) + "\n```")
    return "\n\n".join(parts) + "\n"


def markdown(documents: Documents) -> dict[str, str]:
    """The pages that are committed, and the picture in them, from digests alone."""
    documents = dict(sorted(documents.items()))
    verdicts = coverage.judge_all(documents)
    scores = scoreboard.Scores(scoreboard.load_board(), documents)
    titles = {paper: title for paper, (title, _) in texts(documents).items()}
    picture = trade_off(scores)
    return {
        "README.md": _index_md(documents, verdicts, picture),
        "coverage.md": _coverage_md(verdicts, titles),
        "claims.md": NOTE + claims_page.text(documents, titles),
        "checks.md": _checks_md(documents),
        "scoreboard.md": _scoreboard_md(scores, picture),
        "experiments.md": _experiments_md(documents),
        # a picture in a page of its own has no page's ink to follow
        "demo.svg": (demo_picture(documents) or NO_PICTURE).replace("<svg ", ON_WHITE) + "\n",
        "tradeoff.svg": (picture or NO_PICTURE).replace("<svg ", ON_WHITE) + "\n",
    }


def write_markdown(documents: Documents, folder: Path) -> list[Path]:
    """The pages, and the digests that they are made of, each with what of it was stale then. Nothing is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in markdown(documents).items():
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(folder / name)
    return paths + [digest.save(document, folder / "data") for document in documents.values()]


# ---------------------------------------------------------------------------------------- html


def _table(head: list[str], rows: list[list[str]], caption: str, sortable: bool = True, raw: bool = False) -> str:
    """A table in a box that scrolls by itself; ``raw``: cells are HTML already."""

    def cell(text: str, index: int) -> str:
        body = text if raw else escape(text)
        return f'<th scope="row">{body}</th>' if index == 0 else f"<td>{body}</td>"

    heads = "".join(
        f'<th scope="col">{f"<button type=button>{escape(text)}</button>" if sortable else escape(text)}</th>'
        for text in head
    )
    body = "".join("<tr>" + "".join(cell(text, index) for index, text in enumerate(row)) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _score_cell(scores: scoreboard.Scores, group: scoreboard.Group, key: str) -> str:
    """A cell of the main table: numbers, and a bar of each that repeats them."""
    parts = cell_parts(scores, group, key)
    if not parts:
        return nothing(scores, group, key)
    spans = []
    for kind, value in parts:
        bar = ""
        if not math.isnan(value):
            full = 100 if group.loses != "jain" or kind == "used" else 1
            full = 30 if group.key == "swift" and kind == "lost" else full
            bar = f'<i style="width:{max(0.0, min(100.0, 100 * value / full)):.0f}%"></i>'
        spans.append(f'<span class="{kind}"><span class="sr">{kind} </span>{short_number(value)}{bar}</span>')
    sort = next(value for _, value in parts if not math.isnan(value))
    return f'<a href="#{group.key}-{key}" data-sort="{sort:.3f}">{"".join(spans)}</a>'


def _traces(documents: Documents, group: scoreboard.Group, contender: str) -> str:
    """Goodput over time of each scenario's first run."""
    out = []
    for case in documents.get(group.experiment, {}).get("cases", []):
        if case["case"]["contender"] != contender or case["case"]["scenario"] not in group.scenarios:
            continue
        if case.get("trace"):
            label = group.scenarios[case["case"]["scenario"]]
            keys = ", ".join(
                f"{GROUPS.get(name, name)} {'solid' if index == 0 else 'dashed'}"
                for index, name in enumerate(case["trace"])
            )
            out.append(
                f"<figure>{drawing.trace(case['trace'], f'{label}: {keys}, percent of the link over time')}"
                f"<figcaption>{escape(label)}: {escape(keys)}</figcaption></figure>"
            )
    return f'<div class="traces">{"".join(out)}</div>' if out else ""


def _scoreboard_html(documents: Documents, scores: scoreboard.Scores) -> str:
    board = scores.board
    if not scores.complete():
        return '<section id="scoreboard"><h2>Scoreboard</h2><p>Not run.</p></section>'
    rows, details = [], []
    for key, one in board.contender.items():
        cells = [f"<b>{escape(one.title)}</b>"]
        for group in board.group:
            cells.append(_score_cell(scores, group, key) + in_part(scores, group, key))
        rows.append(cells)
    for group in board.group:
        inner = []
        for key, one in board.contender.items():
            table = _table(CELL_HEAD, cell_rows(scores, group, key), f"{one.title}, {group.title}")
            inner.append(
                f'<details id="{group.key}-{key}"><summary>{escape(one.title)}</summary>{table}'
                f"{_traces(documents, group, key)}</details>"
            )
        note = f"<p>{escape(group.note)}</p>" if group.note else ""
        details.append(
            f'<details id="{group.key}"><summary>{escape(group.title)}</summary>{note}{"".join(inner)}</details>'
        )
    what = "".join(f"<dt>{escape(one.title)}</dt><dd>{escape(one.what)}</dd>" for one in board.contender.values())
    lost = "; ".join(
        f"{group.short or group.title}: {board.distance[group.loses].title} "
        f"[{board.distance[group.loses].unit or 'index'}]"
        for group in board.group
        if group.loses
    )
    picture = trade_off(scores)
    return (
        '<section id="scoreboard"><h2>Scoreboard</h2>'
        "<p>Each cell is a distance from strict priority in the same scenario with the same seed: first what the "
        "others lost (less is better), then the percent of the spare bandwidth used (more is better). Press a cell "
        "for the numbers behind it, a head to sort.</p>"
        + _table(["contender", *[group.short or group.title for group in board.group]], rows, "Scoreboard", raw=True)
        + f"<p class=small>Lost is: {escape(lost)}. {SIGNS}</p>"
        + (f"<figure>{picture}<figcaption>Upper left is best.</figcaption></figure>" if picture else "")
        + f"<details><summary>Contenders</summary><dl>{what}</dl></details>"
        f"<h3>Behind each cell</h3>{''.join(details)}</section>"
    )


def _figure_html(one: coverage.Verdict, pictures: list[Path]) -> str:
    """A figure's rows, reason and pictures, folded."""
    figure = one.figure
    parts = [f"<p>{escape(text)}</p>" for text in reasons(one)]
    if one.rows:
        parts.append(f"<p class=small>{escape(near_rule(figure))}</p>")
        parts.append(_table(ROW_HEAD, [row_cells(row) for row in one.rows], f"{figure.number}: the paper's and ours"))
    for index, path in enumerate(pictures):
        svg = path.read_text(encoding="utf-8")
        parts.append(
            f"<figure>{drawing.inline(svg, f'{figure.key}-{index}', f'{figure.number}: {path.stem}')}</figure>"
        )
    form = f" <span class=small>{escape(figure.source)}, {FORM[one.form]}</span>" if one.form else ""
    return (
        f'<details id="{figure.key}"><summary><b>{escape(figure.number)}</b> {escape(figure.shows)}: '
        f'<span class="word {one.word.split()[0]}">{escape(verdict_text(one))}</span></summary>'
        f"{form}{''.join(parts)}</details>"
    )


def _coverage_html(documents: Documents, verdicts: list[coverage.Verdict], pictures: dict[str, list[Path]]) -> str:
    parts = ['<section id="coverage"><h2>The papers</h2>']
    shown: set[str] = set()
    for paper, (title, text) in texts(documents).items():
        mine = [verdict for verdict in verdicts if verdict.figure.paper == paper]
        paragraphs = "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n"))
        rows = [
            [
                f'<a href="#{one.figure.key}">{escape(one.figure.number)}</a>',
                escape(one.figure.shows),
                escape(one.figure.source or "-"),
                escape(one.form or "-"),
                f'<span class="word {one.word.split()[0]}">{escape(verdict_text(one))}</span>',
                escape(against_text(one)),
            ]
            for one in mine
        ]
        parts.append(f'<h3 id="{paper}">{escape(title)}</h3>{paragraphs}')
        parts.append(_table(COVERAGE_HEAD, rows, f"Tables and figures of {title}", raw=True))
        for one in mine:
            name = one.figure.experiment
            # an experiment's pictures stand once, with its first figure
            mine_pictures = [] if name in shown else pictures.get(name, [])
            shown.add(name)
            parts.append(_figure_html(one, mine_pictures))
    return "".join(parts) + "</section>"


def html(documents: Documents, pictures: dict[str, list[Path]]) -> str:
    """The page."""
    documents = dict(sorted(documents.items()))
    verdicts = coverage.judge_all(documents)
    scores = scoreboard.Scores(scoreboard.load_board(), documents)
    count = count_text(verdicts)
    facts = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in provenance(documents))
    settings = next(iter(documents.values()))["sysctls"]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">',
            "<title>Less-than-best-effort transport: results</title>",
            f"<style>{STYLE.read_text(encoding='utf-8')}</style></head><body>",
            "<header><h1>Less-than-best-effort transport: results</h1>",
            f"<p>{len(verdicts)} tables and figures of five papers: {escape(count)}. Twelve contenders beside each "
            "other, against the queue that no end-to-end scheme beats.</p>",
            '<nav aria-label="Sections"><a href="#scoreboard">Scoreboard</a> <a href="#coverage">The papers</a> '
            '<a href="#experiments">What was run</a></nav></header><main>',
            _scoreboard_html(documents, scores),
            _coverage_html(documents, verdicts, pictures),
            '<section id="experiments"><h2>What was run</h2>',
            f"<dl>{facts}</dl>",
            _table(EXPERIMENT_HEAD, experiment_rows(documents), "Experiments"),
            "<details><summary>Pinned settings</summary>"
            + _table(
                ["sysctl", "value"], [[key, str(value)] for key, value in settings.items()], "Settings as read back"
            )
            + "</details></section></main>",
            f"<script>{SCRIPT.read_text(encoding='utf-8')}</script></body></html>",
        ]
    )


def write_html(documents: Documents, pictures: dict[str, list[Path]], path: Path) -> Path:
    """Write the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html(documents, pictures) + "\n", encoding="utf-8")
    return path


__all__ = ["Summary", "html", "quote", "write_html", "write_markdown"]
