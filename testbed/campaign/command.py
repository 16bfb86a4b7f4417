# SPDX-License-Identifier: GPL-2.0
"""The command `evaluate`: choose forms, run, write the pages."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from pathlib import Path

from ..backends.backend import Backend
from ..backends.uml import Uml
from ..base.errors import LbeError
from ..base.progress import make_progress
from ..present import browser, html_report, markdown, quoting, state
from ..results import digest
from ..results.digest import Document, Documents
from ..run import dask_engine, identity
from ..run.job import Job
from ..run.runner import Options, default_jobs, label, locally
from ..spec.experiment import OWN_LENGTHS, load, names
from ..spec.tables import ExperimentError
from . import campaign, oracle

#: documents made by a tool from a module's trace -> the tool (a Python module with document(), PIV and CWND)
TOOLS = {"vulture_figures": "testbed.campaign.vulture_trace"}


def _check(args: argparse.Namespace) -> None:
    if args.minutes is not None and not 0 < args.minutes <= 100000:
        raise ExperimentError(f"--minutes {args.minutes:g}: allowed are more than 0, up to 100000")
    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs}: at least 1")
    if args.cached and (args.fresh or args.full):
        raise ExperimentError("--cached runs nothing: not with --fresh or --full")
    if args.full and args.minutes is not None:
        raise ExperimentError("--full and --minutes: give one of them")
    for name in args.names:
        load(name)


def _plan_text(parts: list[campaign.PlannedForm]) -> str:
    lines = [f"{'experiment':<24}{'form':<10}{'runs':>6}{'CPU seconds left':>18}"]
    for part in parts:
        lines.append(f"{part.experiment.name:<24}{part.mode:<10}{len(part.jobs):>6}{part.cost_s:>18.0f}")
    total = sum(part.cost_s for part in parts)
    return "\n".join([*lines, f"{'together':<24}{'':<10}{sum(len(part.jobs) for part in parts):>6}{total:>18.0f}"])


def earlier(out: Path, docs: Path) -> Documents:
    """Earlier digests, committed ones and those of ``out``: the better one of each two. Stale ones are marked."""
    documents: Documents = {}
    for folder in (docs / "data", out / "digests"):
        if folder.is_dir():
            documents = better(documents, state.mark_stale(digest.load_all(folder)))
    return state.mark_stale(documents)


def better(mine: Documents, other: Documents) -> Documents:
    """The document to show for each experiment: own lengths before short forms, then current before stale ones.

    A short form never replaces a longer one, even if that is stale: the numbers of the longer one stay, marked.
    """

    def rank(document: Document) -> tuple[bool, bool, bool, int]:
        own = document["mode"] in OWN_LENGTHS
        return own, not document.get("stale"), document["mode"] == "full", digest.runs(document)

    chosen = dict(mine)
    for name, document in other.items():
        if name not in chosen or rank(document) >= rank(chosen[name]):
            chosen[name] = document
    return chosen


def check(out: Path, docs: Path) -> int:
    """Judge the results of the pages and list stale ones; 1 if any is red, or if the pages differ from their data."""
    kept = digest.load_all(docs / "data")
    if not kept:
        raise ExperimentError(f"no results in {docs}/data")
    status = 0
    for name, text in markdown.pages(kept).items():
        path = docs / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path}: is not what its data say; python3 -m testbed evaluate --pages makes it")
            status = 1
    for path in quoting.differing(kept) if quoting.goes_with(docs) else ():
        print(f"{path}: quotes other numbers than the results; python3 -m testbed evaluate --pages makes it")
        status = 1
    documents = state.mark_stale(kept)
    for name, document in sorted(documents.items()):
        if document["stale"]:
            print(f"STALE {name}: {', '.join(document['stale'])}")
    not_run = 0
    for name, document in sorted(documents.items()):
        cases, runs = digest.not_run_yet(document)
        not_run += runs
        if cases:
            print(f"NOT RUN YET {name}: {cases} new cases, {runs} runs")
    few = {name: seeds for name, document in sorted(documents.items()) if (seeds := digest.few_seeds(document))}
    for name, seeds in few.items():
        print(f"FEW SEEDS {name}: {seeds}")
    red = state.reds(documents)
    for line in red:
        print(f"RED {line}")
    old = sum(bool(document["stale"]) for document in documents.values())
    some = f", {len(few)} with few seeds" if few else ""
    print(f"{len(documents)} results, {old} stale{some}, {len(red)} red, {not_run} runs not run yet")
    return 1 if red or status else 0


def found_in(folders: list[Path]) -> Documents:
    """Digests of the result files in these folders, without stale ones; the cases of several files are combined."""
    best: Documents = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        if path.stem not in names() or not path.with_suffix(".npz").is_file():
            continue
        try:
            document = digest.from_results(path)
        except LbeError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if document["sets"]:
            print(f"left out: {path}: run with --set", file=sys.stderr)
        elif old := identity.stale(document, load(path.stem)):
            print(f"left out: {path}: stale, since changed: {', '.join(old)}", file=sys.stderr)
        else:
            best[path.stem] = digest.with_more(best.get(path.stem, document), document)
    return best


def traced(chosen: list[str], backend: Backend, args: argparse.Namespace) -> tuple[Documents, list[str]]:
    """Documents of the tools whose experiments are chosen, and failures.

    With all seeds if these are cached or for --full; otherwise with one, since the tools make one run after the other.
    """
    documents, failed = {}, []
    for name, module in TOOLS.items():
        tool = importlib.import_module(module)
        if not {tool.PIV, tool.CWND} <= set(chosen):
            continue
        try:
            document = None if args.fresh else tool.document(backend, run=False)
            document = document or tool.document(
                backend, tool.RUNS if args.full else 1, run=not args.cached, reuse=not args.fresh
            )
        except LbeError as error:
            failed.append(f"{name}: {error}")
            continue
        if document:
            digest.save(document, args.out / "digests")
            documents[name] = document
    return documents, failed


def beside_ns2(chosen: list[str], args: argparse.Namespace) -> tuple[Documents, list[str]]:
    """ns-2's documents of the chosen experiments of the papers, and failures; takes minutes at most."""
    if args.cached:
        return {}, []
    options = Options(
        "full" if args.full else "default", jobs=args.jobs, reuse=not args.fresh, command=args.command_line
    )
    documents, failed = oracle.documents([name for name in oracle.wanted(()) if name in chosen], options)
    for document in documents.values():
        digest.save(document, args.out / "digests")
    return documents, failed


def write(documents: Documents, out: Path, docs: Path) -> list[str]:
    """Write all pages, with the pictures in ``out``. Returns the faults that a browser finds in the HTML page."""
    pictures: dict[str, list[Path]] = {}
    for name in documents:
        pictures[name] = sorted(out.glob(f"{name}-*.svg"))
    page = html_report.write(documents, pictures, out / "index.html")
    markdown.write(documents, docs)
    for path in quoting.write(documents) if quoting.goes_with(docs) else ():
        print(f"numbers made anew: {path}")
    print(f"page: {page}\nMarkdown: {docs}/README.md")
    if not browser.program():
        print("the page was not looked at: no Chromium here (scripts/deps browser)", file=sys.stderr)
        return []
    faults = browser.faults(page)
    for fault in faults:
        print(f"{page}: {fault}", file=sys.stderr)
    return faults


def _print_reds(red: list[str]) -> None:
    for line in red:
        print(f"RED {line}", file=sys.stderr)


def make_pages(args: argparse.Namespace) -> int:
    """Write the pages from earlier results and those of --results; 1 if something is red."""
    documents = better(earlier(args.out, args.docs), state.mark_stale(found_in(args.results)))
    if not documents:
        raise ExperimentError(f"no results in {args.out} or {args.docs}; the same command without --pages makes some")
    faults = write(documents, args.out, args.docs)
    red = state.reds(documents)
    _print_reds(red)
    return 1 if faults or red else 0


def _prepared(kernel: str, chosen: list[str]) -> Backend:
    """The kernel's backend, prepared with the modules that any form of these experiments needs."""
    backend = Uml(kernel)
    progress = make_progress()
    try:
        backend.prepare(campaign.modules_of(chosen), progress)
    finally:
        progress.close()
    return backend


def _parts(
    chosen: list[str], backend: Backend, args: argparse.Namespace, began_s: float
) -> tuple[list[campaign.PlannedForm], list[tuple[Job, str]]]:
    """Each experiment in its cached, planned or run form, depending on the options; and failed runs."""
    if args.cached:
        return campaign.from_cache(chosen, backend), []
    ladders = campaign.ladders_of(chosen, backend, campaign.FULL if args.full else campaign.FORMS)
    count = args.jobs or default_jobs()
    minutes = campaign.MINUTES if args.minutes is None else args.minutes
    limit_s = math.inf if args.full else max(0.0, minutes * 60 - (time.monotonic() - began_s))
    if args.plan:
        have = set() if args.fresh else campaign.in_cache(ladders)
        return campaign.pick(ladders, have, limit_s * count * campaign.PLANNED), []
    execute = dask_engine.over(args.dask) if args.dask else locally
    parts, failed = campaign.spend(ladders, backend, limit_s, count, execute, not args.fresh)
    wanted = {ladder[0].experiment.name for ladder in ladders}
    for name in sorted(wanted - {part.experiment.name for part in parts}):
        print(f"{name}: no time was left for it", file=sys.stderr)
    return parts, failed


def run(args: argparse.Namespace) -> int:
    """Run the command; exit status 1 if a run failed or something is red."""
    _check(args)
    if args.check:
        return check(args.out, args.docs)
    if args.pages or (args.results and not args.cached):
        return make_pages(args)
    began_s = time.monotonic()
    chosen = args.names or campaign.wanted()
    backend = _prepared(args.kernel, chosen)
    if args.plan:
        print(_plan_text(_parts(chosen, backend, args, began_s)[0]))
        return 0
    others, faults = traced(chosen, backend, args)
    simulated, failures = beside_ns2(chosen, args)
    parts, failed = _parts(chosen, backend, args, began_s)
    outcome = campaign.carry_out(parts, backend, args.out, args.command_line, failed, not args.no_plots)
    documents = better(earlier(args.out, args.docs), state.mark_stale(outcome.documents | others | simulated))
    # --results may have more runs than the form
    for name, document in found_in(args.results).items():
        documents[name] = digest.with_more(documents.get(name, document), document)
    broken = {job.experiment for job, _ in outcome.failed}
    shown = {name: document for name, document in documents.items() if name not in broken}
    seen = write(shown, args.out, args.docs)
    # results made now are judged even if a longer form is shown
    fresh = {name: document for name, document in outcome.documents.items() if documents.get(name) is not document}
    red = list(dict.fromkeys([*state.reds(documents), *state.reds(state.mark_stale(fresh))]))
    _print_reds(red)
    faults += [*failures, *(f"{label(job)}: {error}" for job, error in outcome.failed)]
    for fault in faults:
        print(f"failed: {fault}", file=sys.stderr)
    print(f"{(time.monotonic() - began_s) / 60:.1f} min", file=sys.stderr)
    return 1 if faults or seen or red else 0
