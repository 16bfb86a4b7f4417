# SPDX-License-Identifier: GPL-2.0
"""Content of the pages independent of their format: rows of tables, texts of verdicts, numbers of cells."""

from __future__ import annotations

import math

from ..judge import checks, coverage, figures, proof, rivals, scoreboard
from ..results import digest
from ..results.digest import Document, Documents
from ..spec import lives
from ..spec.experiment import OWN_LENGTHS, case_name, names
from . import drawing
from .text import interval, number, off

#: texts for the forms
FORM = {
    "short": "the tests' form: few cases, short",
    "brief": "all cases once, short",
    "default": "the experiment's own lengths",
    "full": "the paper's lengths and runs",
}
SIGNS = (
    "Below 0: the others did better than beside the reference, whose background flow fills every gap that they leave. "
    "More than 100 % used: more than the reference's background flow did, taken from the others unless a note says why."
)
EXPERIMENT_HEAD = ["experiment", "state", "form", "cases", "seeds", "kernel", "modules that ran"]
COVERAGE_HEAD = ["number", "what it shows", "experiment", "form", "claims that hold", "beside the paper's numbers"]
#: heads of a figure's table; the column ns-3 is there if a row has a number of it
ROW_HEAD = ["what", "case", "paper", "ns-2", "ns-3", "ours", "off", "limit", "bound", "the claim", "beside the paper"]
CHECK_HEAD = ["what", "case", "paper", "ours", "off", "limit", "bound", "why this bound", "beside a rival", "verdict"]
#: numbers in words, as a sentence has them
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
CELL_HEAD = ["scenario", "measured", "ours", "limit", "distance"]


# ------------------------------------------------------------------------------------- what was run


def form_text(form: str, seeds: str = "") -> str:
    """A form in words, with the number of seeds if the experiment has more."""
    return FORM[form] + (f", {seeds}" if seeds else "")


def versions(document: Document) -> str:
    """Versions of the modules, as reported at run time."""
    return ", ".join(
        f"{name} {' '.join(said.get('version', ['in-tree']))}" for name, said in document["ran"]["modules"].items()
    )


def provenance(documents: Documents) -> list[tuple[str, str]]:
    """Provenance of all experiments together."""
    kernels = {
        f"{document['provenance']['kernel']['release']} ({document['provenance']['kernel']['flavour']})"
        for document in documents.values()
    }
    hosts = [document["provenance"]["host"] for document in documents.values()]
    runs = sum(len(case["seeds"]) for document in documents.values() for case in document["cases"])
    testbeds = {ran for document in documents.values() for ran in document["ran"]["testbed"] or ["not recorded"]}
    old = sum(bool(document.get("stale")) for document in documents.values())
    return [
        ("kernel", ", ".join(sorted(kernels))),
        ("testbed that ran", ", ".join(sorted(testbeds))),
        ("backend", ", ".join(sorted({document["provenance"]["backend"] for document in documents.values()}))),
        ("python, numpy", ", ".join(sorted({f"{host['python']}, {host['numpy']}" for host in hosts}))),
        ("experiments, runs", f"{len(documents.keys() & set(names()))} of {len(names())}, {runs}"),
        ("of today's tree", f"{len(documents) - old} current, {old} stale (experiments.md says what changed)"),
        *([("not run yet", waiting)] if (waiting := not_run_yet_text(documents)) else []),
    ]


def not_run_yet_text(documents: Documents) -> str:
    """Number of runs of cases that are newer than their experiments' results, as text; "" if there are none."""
    counts = [digest.not_run_yet(document) for document in documents.values()]
    named = sum(cases > 0 for cases, _ in counts)
    if not named:
        return ""
    return f"{sum(runs for _, runs in counts)} runs of {sum(cases for cases, _ in counts)} cases in {named} experiments"


def _state_of(document: Document) -> str:
    """State of an experiment for its row."""
    gone, (cases, runs) = digest.lost_runs(document), digest.not_run_yet(document)
    words = [f"INCOMPLETE: {gone} runs missing"] * bool(gone)
    words += [f"not run yet: {cases} new cases, {runs} runs"] * bool(cases)
    words += ["STALE: " + ", ".join(document.get("stale", ()))] * bool(document.get("stale"))
    return ", ".join(words) or "current"


def pinned_settings(documents: Documents) -> dict[str, str]:
    """The sysctls of the first document that has any; documents of tools have none."""
    return next((document["sysctls"] for document in documents.values() if document["sysctls"]), {})


def experiment_rows(documents: Documents) -> list[list[str]]:
    """A row of provenance for each experiment."""
    rows = []
    for name in sorted({*lives.judged(), *documents}):
        document = documents.get(name)
        if document is None:
            rows.append([name, "not run", "", "", "", "", ""])
            continue
        seeds = document["asked_seeds"]
        rows.append(
            [
                name,
                _state_of(document),
                form_text(document["mode"], digest.few_seeds(document)),
                str(len(document["cases"])),
                f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}",
                document["provenance"]["kernel"]["release"],
                versions(document),
            ]
        )
    return rows


# ------------------------------------------------------------------------------ the papers' figures


def verdict_text(verdict: coverage.FigureVerdict) -> str:
    """Verdict on a figure's claims, with their number."""
    word = verdict.word + (f" ({verdict.held} of {verdict.judged})" if verdict.judged else "")
    return word + (", STALE" if verdict.stale else "")


def against_text(verdict: coverage.FigureVerdict) -> str:
    """Verdict on a figure compared with the paper's numbers, and how many there are."""
    words = verdict.compared
    if len(set(words)) < 2:
        return verdict.against + (f" ({len(words)})" if words else "")
    return "; ".join(f"{word} ({words.count(word)})" for word in coverage.AGAINST if word in words)


def count_text(verdicts: list[coverage.FigureVerdict]) -> str:
    """Number of figures with each verdict."""
    words = [verdict.word for verdict in verdicts]
    said = ", ".join(f"{word} {words.count(word)}" for word in reversed(coverage.WORDS) if word in words)
    beside = [verdict.against for verdict in verdicts]
    order = (*coverage.AGAINST, coverage.NO_NUMBER)
    numbers = ", ".join(f"{word} {beside.count(word)}" for word in order if word in beside)
    return f"claims: {said}; beside the paper's numbers, by the worst of a figure's: {numbers}"


def reasons(verdict: coverage.FigureVerdict) -> list[str]:
    """Remarks on a figure: why it cannot be compared, what is stale, why rows miss their bounds; each once."""
    said: list[str] = []
    if verdict.word == "cannot be compared":
        return [verdict.figure.cannot]
    if verdict.stale:
        said.append(f"STALE: these numbers are of an earlier tree; since then changed: {', '.join(verdict.stale)}.")
    if verdict.rows and verdict.form not in OWN_LENGTHS:
        said.append("Run in a short form only.")
    if verdict.rows and verdict.seeds:
        said.append(f"Run with {verdict.seeds} only.")
    if verdict.word == "not judged":
        said.append("Run, but its bounds are for longer runs than these.")
    for row in verdict.rows:
        if row.note and row.status in ("fail", "differs", "unsettled", "incomplete", "new"):
            said.append(f"{row.what}, {row_case(row)}: {row.note}")
    for row in verdict.rows:
        if row.why:
            same = [other for other in verdict.rows if (other.why, other.against) == (row.why, row.against)]
            word = row.against.capitalize() if row.against in (coverage.UNKNOWN, coverage.UNDECIDED) else "Differs"
            said.append(f"{word} ({', '.join(dict.fromkeys(map(row_case, same)))}): {row.why}")
    for why in dict.fromkeys(row.beside for row in verdict.rows if row.beside):
        cases = dict.fromkeys(row_case(row) for row in verdict.rows if row.beside == why)
        said.append(f"Beside what the figure is judged by ({', '.join(cases)}): {why}")
    explained = ("differs", "unsettled")
    rows = [row for row in verdict.rows if row.against == coverage.DIFFERS and not row.why]
    rows = [row for row in rows if row.status not in explained]
    if rows:
        said.append(f"Differs, and the cause is not known: {', '.join(dict.fromkeys(map(row_case, rows)))}.")
    return list(dict.fromkeys(said))


def row_case(row: coverage.Row) -> str:
    """A row's case in words."""
    return "not in this form" if row.case is None else case_name(row.case)


def row_cells(row: coverage.Row) -> list[str]:
    """A row of a figure's table."""
    return [
        row.what,
        row_case(row),
        "order" if row.order else number(row.paper),
        interval(row.ns2) if row.ns2 else "",
        interval(row.ns3) if row.ns3 else "",
        interval(row.ours),
        off(row.paper, row.ours),
        interval(row.reference),
        row.rule,
        checks.STATUS[row.status],
        "beside" if row.beside else row.against or "-",
    ]


def row_table(verdict: coverage.FigureVerdict) -> tuple[list[str], list[list[str]]]:
    """A figure's table: its heads, and its rows."""
    left_out = None if any(row.ns3 for row in verdict.rows) else ROW_HEAD.index("ns-3")
    kept = [index for index in range(len(ROW_HEAD)) if index != left_out]
    cells = [row_cells(row) for row in verdict.rows]
    return [ROW_HEAD[index] for index in kept], [[row[index] for index in kept] for row in cells]


def of_ns3(verdict: coverage.FigureVerdict) -> str:
    """What the numbers of ns-3 are of, if the figure has any."""
    words = " ns-3: its own TcpLp for lp; its NewReno with SACK for TCP, since it has no plain Reno."
    return words if any(row.ns3 for row in verdict.rows) else ""


def near_rule(figure: figures.Figure) -> str:
    """The rule for "reproduced" of a figure."""
    rule = "Reproduced: within our 95 % interval"
    for one in figure.near:
        of = f" of {', '.join(one.metric)}" if one.metric else ""
        where = {name: " or ".join(value) if isinstance(value, list) else value for name, value in one.case.items()}
        of += f" where {case_name(where)}" if where else ""
        rule += f"; or{of} within {one.percent:g} %: {one.why}"
    return rule + "."


def coverage_row(verdict: coverage.FigureVerdict) -> list[str]:
    """A figure's row in the table of its paper."""
    figure = verdict.figure
    return [
        figure.number,
        figure.shows,
        figure.source or "-",
        (verdict.form or "-") + (f", {verdict.seeds}" if verdict.seeds else ""),
        verdict_text(verdict),
        against_text(verdict),
    ]


# ------------------------------------------------------------------------------------------- bounds


def check_rows(document: Document) -> list[list[str]]:
    """Verdicts on all bounds of an experiment, and whether a rival in place of the project's control meets them too."""
    if document["experiment"] == proof.NAME:
        return _proof_rows(document)
    experiment, results = digest.experiment_of(document), digest.result_set(document)
    beside = {(id(one.check), case_name(one.case)): one.text for one in rivals.beside(experiment, results)}
    metrics = experiment.setting(experiment.cases(document["mode"])[0], document["mode"]).metrics
    return [
        [
            checks.check_title(experiment, verdict.check, metrics),
            case_name(verdict.case),
            number(verdict.check.paper),
            interval(verdict.ours),
            off(verdict.check.paper, verdict.ours),
            interval(verdict.reference),
            checks.bound_text(verdict.bound),
            verdict.why,
            beside.get((id(verdict.check), case_name(verdict.case)), "-"),
            checks.STATUS[verdict.status] + (f": {verdict.note}" if verdict.note else ""),
        ]
        for verdict in checks.judge(experiment, results)
        if verdict.case is not None
    ]


def _proof_rows(document: Document) -> list[list[str]]:
    """The same for the proof's programs; the rival is the plain program."""
    return [
        [
            proof.TITLES[id(verdict.check)],
            case_name(proof.name_of(verdict.case or {})),
            "-",
            interval(verdict.ours),
            "-",
            "-",
            checks.bound_text(verdict.bound),
            verdict.why,
            proof.plain_beside(verdict, document),
            checks.STATUS[verdict.status] + (f": {verdict.note}" if verdict.note else ""),
        ]
        for verdict in proof.judge(document)
    ]


def runs_text(document: Document) -> str:
    """The number of runs of each case in words: "one run", "three runs", or "one to three runs" if they differ."""
    counts = sorted({len(case["seeds"]) for case in document["cases"]})
    words = [NUMBERS[count] if count < len(NUMBERS) else str(count) for count in (counts[0], counts[-1])]
    return " to ".join(dict.fromkeys(words)) + (" run" if counts[-1] == 1 else " runs")


# --------------------------------------------------------------------------------------- scoreboard


def short_number(value: float) -> str:
    """A number with few digits; "-" for NaN."""
    if math.isnan(value):
        return "-"
    if abs(value) < 0.05:
        value = 0.0
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def cell_parts(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> list[tuple[str, float]]:
    """A cell of the main table, as ("lost" or "used", number); NaN if only the use is known and not the loss."""
    lost = scores.over(group, contender, group.loses) if group.loses else math.nan
    used = scores.over(group, contender, "bg") if "bg" in group.metrics else math.nan
    if math.isnan(lost) and math.isnan(used):
        return []
    return [("lost", lost)] * bool(group.loses) + ([] if math.isnan(used) else [("used", used)])


def in_part(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> str:
    """Suffix of a cell if its number covers only some of the group's scenarios."""
    words = [scores.left_out(group, scenario, contender) for scenario in group.scenarios]
    have = words.count("") if scores.run(group, contender) else 0
    lost = ", INCOMPLETE" if any("INCOMPLETE" in word for word in words) else ""
    return f" ({have} of {len(words)}{lost})" if 0 < have < len(words) else ""


def nothing(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> str:
    """Why a cell has no number."""
    if not scores.run(group, contender):
        words = [scores.state(group, scenario, contender) for scenario in group.scenarios]
        return "INCOMPLETE" if "INCOMPLETE" in words else "not run"
    words = [scores.left_out(group, scenario, contender) for scenario in group.scenarios]
    if all(words):
        return max(words)  # "strict priority ...", if any word begins with it
    # an event that did not happen during the run; otherwise a share of zero
    return "never" if scores.board.distance[group.loses or "bg"].unit == "s" else "no value"


def distance_title(distance: scoreboard.Distance) -> str:
    """Title of a distance, with its unit."""
    return distance.title + (f" [{distance.unit}]" if distance.unit else "")


def cell_rows(scores: scoreboard.Scores, group: scoreboard.Group, contender: str) -> list[list[str]]:
    """All numbers behind a cell of the main table."""
    rows = []
    for scenario, label in group.scenarios.items():
        for metric in group.metrics:
            cell = scores.cell(group, scenario, contender, metric)
            word = scores.left_out(group, scenario, contender)
            if cell.ours.n or cell.reference.n or "INCOMPLETE" in word:
                rows.append(
                    [
                        label,
                        distance_title(scores.board.distance[metric]),
                        interval(cell.ours),
                        interval(cell.reference),
                        word or interval(cell.distance),
                    ]
                )
    return rows


def trade_off(scores: scoreboard.Scores) -> str:
    """The trade-off plot; "" if no contender has numbers for it."""
    board = scores.board
    points = {
        contender.title + scores.of_fewer(key): (scores.lost(key), scores.used(key))
        for key, contender in board.contender.items()
    }
    if not any(math.isfinite(lost) and math.isfinite(used) for lost, used in points.values()):
        return ""
    return drawing.trade_off(
        points,
        board.contender[board.reference].title,
        "best effort lost, % of its rate (mean over the scenarios run; less is better)",
        "of the spare bandwidth used, % (more is better)",
        "Trade-off: what best effort lost against the share of the spare bandwidth used",
    )


#: cases of the demo in its plot, from the most aggressive to the reference
DEMO = {
    "cubic": "background transfer by cubic, as any other",
    "lp": "by lp",
    "lbe": "by lbe",
    "strict": "behind a strict-priority queue, the limit",
}


def demo_picture(documents: Documents) -> str:
    """Plot of goodput over time of the demo's first runs; "" if they do not exist."""
    document = documents.get("demo")
    if document is None:
        return ""
    traces = {case["case"]["background"]: case["trace"] for case in document["cases"] if case.get("trace")}
    shown = {title: traces[case] for case, title in DEMO.items() if case in traces}
    length_s = digest.experiment_of(document).setting(document["cases"][0]["case"], document["mode"]).head.duration_s
    words = "A foreground transfer of 40 s beside a background transfer: percent of the link over time"
    return drawing.panels(shown, length_s, words) if shown else ""
