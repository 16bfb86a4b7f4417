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
from ..present import browser, pages
from ..results import digest
from ..run import dask_engine
from ..run.job import Job
from ..run.runner import default_jobs, label, locally
from ..spec.experiment import ExperimentError, load, names
from . import campaign

#: documents that a tool makes of a module's own trace, and the tool (a module with document(), PIV and CWND)
TOOLS = {"vulture_figures": "vulture.tests.figures"}


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


def _plan_text(parts: list[campaign.Part]) -> str:
    lines = [f"{'experiment':<24}{'form':<10}{'runs':>6}{'CPU seconds left':>18}"]
    for part in parts:
        lines.append(f"{part.experiment.name:<24}{part.mode:<10}{len(part.jobs):>6}{part.cost_s:>18.0f}")
    total = sum(part.cost_s for part in parts)
    return "\n".join([*lines, f"{'together':<24}{'':<10}{sum(len(part.jobs) for part in parts):>6}{total:>18.0f}"])


def earlier(out: Path, docs: Path) -> dict[str, dict]:
    """Digests of before: committed ones, and over them those of this folder; of experiments that are as they were."""
    documents: dict[str, dict] = {}
    for folder in (docs / "data", out / "digests"):
        if folder.is_dir():
            documents |= digest.load_all(folder)
    return {name: one for name, one in documents.items() if digest.is_current(one)}


def found_in(folders: list[Path]) -> dict[str, dict]:
    """Digests of the result files in these folders, of experiments that are as they were; of two, all their cases."""
    best: dict[str, dict] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        if path.stem not in names() or not path.with_suffix(".npz").is_file():
            continue
        try:
            made = digest.from_results(path)
        except LbeError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if made["sets"]:
            print(f"left out: {path}: run with --set", file=sys.stderr)
        elif not digest.is_current(made, load(path.stem)):
            print(f"left out: {path}: its experiment has changed since", file=sys.stderr)
        else:
            best[path.stem] = digest.with_more(best.get(path.stem, made), made)
    return best


def traced(chosen: list[str], backend: Backend, args: argparse.Namespace) -> tuple[dict[str, dict], list[str]]:
    """Documents of the tools whose experiments are among those chosen, and what failed.

    All seeds where they are there already, or for --full; else one, since their machines run one after the other.
    """
    made, failed = {}, []
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
            made[name] = document
    return made, failed


def write(documents: dict[str, dict], out: Path, docs: Path) -> list[str]:
    """All pages; pictures are those that lie beside the results. Gives what a browser finds wrong with the page."""
    pictures: dict[str, list[Path]] = {}
    for name in documents:
        pictures[name] = sorted(out.glob(f"{name}-*.svg"))
    page = pages.write_html(documents, pictures, out / "index.html")
    pages.write_markdown(documents, docs)
    print(f"page: {page}\nMarkdown: {docs}/README.md")
    if not browser.program():
        print("the page was not looked at: no Chromium here (scripts/deps browser)", file=sys.stderr)
        return []
    found = browser.faults(page)
    for one in found:
        print(f"{page}: {one}", file=sys.stderr)
    return found


def carry_out(args: argparse.Namespace, command: str) -> int:
    """The whole of it; the exit status is 1 if a run failed."""
    _check(args)
    if args.pages or (args.results and not args.cached):
        documents = earlier(args.out, args.docs) | found_in(args.results)
        if not documents:
            raise ExperimentError(
                f"no results in {args.out} or {args.docs}; the same command without --pages makes some"
            )
        return 1 if write(documents, args.out, args.docs) else 0
    began = time.monotonic()
    chosen = args.names or campaign.wanted()
    backend = Uml(args.kernel)
    progress = make_progress()
    try:
        backend.prepare(campaign.modules_of(chosen), progress)
    finally:
        progress.close()
    count = args.jobs or default_jobs()
    minutes = campaign.MINUTES if args.minutes is None else args.minutes
    failed: list[tuple[Job, str]] = []
    others, faults = ({}, []) if args.plan else traced(chosen, backend, args)
    if args.cached:
        parts = campaign.from_cache(chosen, backend)
    else:
        forms = campaign.FULL if args.full else campaign.FORMS
        ladders = campaign.ladders_of(chosen, backend, forms)
        limit_s = math.inf if args.full else max(0.0, minutes * 60 - (time.monotonic() - began))
        if args.plan:
            have = set() if args.fresh else campaign.in_cache(ladders)
            parts = campaign.pick(ladders, have, limit_s * count * campaign.PLANNED)
        else:
            execute = dask_engine.over(args.dask) if args.dask else locally
            parts, failed = campaign.spend(ladders, backend, limit_s, count, execute, not args.fresh)
            wanted = {ladder[0].experiment.name for ladder in ladders}
            for name in sorted(wanted - {part.experiment.name for part in parts}):
                print(f"{name}: no time was left for it", file=sys.stderr)
    if args.plan:
        print(_plan_text(parts))
        return 0
    outcome = campaign.carry_out(parts, backend, args.out, command, failed, not args.no_plots)
    broken = {job.experiment for job, _ in outcome.failed}
    documents = earlier(args.out, args.docs) | outcome.documents | others
    # more runs than the form has
    for name, one in found_in(args.results).items():
        documents[name] = digest.with_more(documents.get(name, one), one)
    found = write({name: one for name, one in documents.items() if name not in broken}, args.out, args.docs)
    for job, error in outcome.failed:
        print(f"failed: {label(job)}: {error}", file=sys.stderr)
    for fault in faults:
        print(f"failed: {fault}", file=sys.stderr)
    print(f"{(time.monotonic() - began) / 60:.1f} min", file=sys.stderr)
    return 1 if outcome.failed or faults or found else 0
