# SPDX-License-Identifier: GPL-2.0
"""The state of results: stale, incomplete, red."""

from __future__ import annotations

from ..judge import checks, coverage, proof, rivals
from ..results import digest
from ..results.digest import Document, Documents
from ..run import identity
from ..spec import lives
from ..spec.experiment import case_name, load, names
from . import simulated
from .tables import row_case
from .text import interval


def mark_stale(documents: Documents) -> Documents:
    """The documents, each with the stale parts of its identity."""
    marked = {}
    for name, document in documents.items():
        if simulated.is_identified(document):
            stale = simulated.stale(document)
        else:
            stale = identity.stale(document, load(name) if name in names() else None)
        marked[name] = {**document, "stale": stale}
    return marked


def reported(document: Document) -> list[str]:
    """What the tool that made a document found wrong: missed checks of a scenario, faults of a case of a suite. The
    missed checks of a life are left out, since it is judged as an experiment."""
    if document["experiment"] in lives.files():
        return []
    faults = [f"{case_name(case['case'])}: {fault}" for case in document["cases"] for fault in case.get("faults", ())]
    return [*document.get("wrong", ()), *faults]


def proof_faults(document: Document) -> list[str]:
    """The bounds that a program of the proof misses."""
    return [
        f"{proof.TITLES[id(verdict.check)]}, {case_name(proof.name_of(verdict.case or {}))}: {interval(verdict.ours)}, "
        f"bound {checks.bound_text(verdict.bound)}: {checks.STATUS[verdict.status]}"
        for verdict in checks.failures(proof.judge(document))
        if verdict.status != "incomplete"
    ]


def reds(documents: Documents) -> list[str]:
    """Everything that needs work, one line each: incomplete results, bounds missed without an explanation, bounds that
    a rival meets too, and what the tools reported."""
    red = []
    for name, document in sorted(documents.items()):
        gone = digest.lost_runs(document)
        if gone:
            red.append(f"{name}: INCOMPLETE: {gone} runs that were asked for are missing")
        red += [f"{name}: {text}" for text in reported(document)]
        if name == proof.NAME:
            red += [f"{name}: {text}" for text in proof_faults(document)]
        if name not in lives.judged():
            continue
        experiment = digest.experiment_of(document)
        results = digest.result_set(document)
        metrics = experiment.setting(experiment.cases(document["mode"])[0], document["mode"]).metrics
        for bound in rivals.undistinguished(rivals.beside(experiment, results)):
            title = checks.check_title(experiment, bound.check, metrics)
            red.append(f"{name}: {title}, {case_name(bound.case)}: {bound.said}, and nothing says why it is kept")
        for verdict in checks.failures(checks.judge(experiment, results)):
            if verdict.status == "incomplete" and gone:
                continue  # said above
            note = f" ({verdict.note})" if verdict.note else ""
            title = checks.check_title(experiment, verdict.check, metrics)
            red.append(
                f"{name}: {title}, {case_name(verdict.case or {})}: {interval(verdict.ours)}, "
                f"bound {checks.bound_text(verdict.bound)}: {checks.STATUS[verdict.status]}{note}"
            )
    for figure in coverage.judge_all(documents):
        if figure.figure.traced:
            red += [
                f"{figure.figure.traced}: {row.what}, {row_case(row)}: {interval(row.ours)}, bound {row.rule}: "
                f"{checks.STATUS[row.status]}" + (f" ({row.note})" if row.note else "")
                for row in figure.rows
                if row.red
            ]
    return red
