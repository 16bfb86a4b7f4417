# SPDX-License-Identifier: GPL-2.0
"""Judging the proof's numbers (testbed/proof): what a program in the background may take from a person, and how long it
may take itself. The statuses are those of an experiment's checks."""

from __future__ import annotations

from ..measure.summary import summarise
from ..results import digest
from ..results.digest import Document
from ..spec.experiment import Case, Check, matches
from . import checks

NAME = "proof"
NOBODY = "nobody"
#: the case of the person without a program
ALONE = {"beside": NOBODY, "program": NOBODY, "mode": "alone"}
PLAIN = {"mode": "plain"}
BACKGROUND = {"beside": "program", "mode": "background"}

#: (check, its title). The bounds are wider than what was measured, for other versions of the kernel and the programs.
CHECKS = (
    (
        Check(
            "page", "a page takes about the time that it takes without a program", BACKGROUND, ALONE, max=125
        ),
        "page in % of that beside nobody",
    ),
    (
        Check(
            "voice", "a tenth of the buffer's 200 ms, besides what pages add to a call's delay without a program",
            BACKGROUND, ALONE, how="difference", max=20,
        ),
        "call's queueing delay minus that beside nobody [ms]",
    ),
    (
        Check(
            "took", "a program that steps aside still does its work beside a person who loads pages all the time",
            BACKGROUND, PLAIN, max=150,
        ),
        "time of the program in % of that of the plain program",
    ),
)  # fmt: skip
TITLES = {id(check): title for check, title in CHECKS}


def judge(document: Document) -> list[checks.Verdict]:
    """Verdicts of all checks for all programs of the document."""
    results = digest.result_set(document)
    table = checks.Table.of(results)
    verdicts = []
    for check, _ in CHECKS:
        bound = check.min, check.max
        for case in results.asked_cases:
            if matches(case, check.case):
                values = table.check(check, case)
                status, note = checks.status_of(check, case, values, bound, results.mode)
                verdicts.append(checks.Verdict(check, case, summarise(values), None, bound, check.why, status, note))
    return verdicts


def name_of(case: Case) -> Case:
    """The dimensions of a case that tell it from others."""
    return {key: variant for key, variant in case.items() if key != "beside"}


def plain_beside(verdict: checks.Verdict, document: Document) -> str:
    """The number of the plain program in place of the one in the background, and whether it meets the bound too."""
    other = {**(verdict.case or {}), **PLAIN}
    if verdict.check.of == PLAIN:
        return "-"  # the bound is already a comparison with it
    ours = summarise(checks.Table.of(digest.result_set(document)).check(verdict.check, other))
    if not ours.n:
        return "plain not run"
    return f"plain {ours.mean:.4g} {'meets it too' if checks.meets(ours.mean, verdict.bound) else 'misses it'}"
