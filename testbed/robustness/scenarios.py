# SPDX-License-Identifier: GPL-2.0
"""Scenario tests on the sanitizer kernel: for each module some experiments in their short form, with their checks.

Virtual time does not depend on the speed of the kernel, so checks that pass on the plain kernel must pass here.
"""

from __future__ import annotations

from ..backends.uml import Uml
from ..base.progress import Report, silent
from ..judge import checks
from ..run import runner
from ..spec.experiment import load

#: module -> experiments that use it in several ways (with a foreground flow, with losses, with IPv4 and IPv6)
EXPERIMENTS = {
    "tcp_lbe": ("lbe_rows", "lbe_sources"),
    "tcp_lp": ("lp_beside_cubic", "lp_alone"),
    "tcp_lowpri": ("lowpri_long_delay", "lowpri_timeout"),
    "tcp_ledbat": ("ledbat_robust", "ledbat_reverse"),
    "vulture": ("vulture_robust", "vulture_onoff", "vulture_credit", "vulture_rledbat"),
    "sch_shred, shred_hint": ("shred_writer", "shred_cheat"),
}


def run_all(
    seed: int, series: str = "6.12", flavour: str = "sanitizer", fresh: bool = False, report: Report = silent
) -> tuple[int, list[str], list[str], dict[str, int], str]:
    """Run all; returns (runs, the kernel's messages, failed checks, runs by experiment, the kernel)."""
    names = [name for several in EXPERIMENTS.values() for name in several]
    warnings: list[str] = []
    wrong: list[str] = []
    counts: dict[str, int] = {}
    options = runner.Options("short", runs=1, seed=seed, reuse=not fresh, command="abuse")
    experiments = [load(name) for name in names]
    backend = Uml(series, flavour)
    jobs = [job for one in experiments for job in runner.plan(one, options)]
    backend.prepare({module for job in jobs for module in job.modules}, report)
    for done, (name, one) in enumerate(zip(names, experiments, strict=True)):
        report(f"scenarios ({flavour})", done, len(names))
        try:
            made = runner.run(one, backend, options, lambda done, total, text: None)
        except runner.RunFailed as failure:
            warnings.append(f"{name}: {failure}")
            continue
        counts[name] = len(made.results)
        wrong += [f"{name}: {verdict}" for verdict in checks.failures(checks.judge(one, made))]
    return sum(counts.values()), warnings, wrong, counts, f"{backend.build.release} {flavour}"
