# SPDX-License-Identifier: GPL-2.0
"""What every test of the suite shares: its tier, and what counts as green.

Tiers, in the order in which they run (the cheap ones first):

    host      arithmetic headers and tools, compiled for this machine
    harness   the testbed and the build themselves
    kunit     what needs a built kernel: KUnit inside it, modules built against it
    scenario  flows between nodes inside the user-mode kernel
    qemu      a user's steps on a distribution's own kernel, several CPUs, real time
    kernels   the same at length, on each series; packages: only where --tiers asks for it (make check-kernels)
    report    the report's page in a browser, runs on Dask workers: only where --tiers asks for it (make check-report)

A test without a tier marker is `harness` under testbed/ and scripts/, else
`host`. With --tiers=a,b only those run, and each must hold at least one test:
a tier that lost its tests is a failure, not a pass. So is a skipped test.

With --series=7.2 all that boots or builds for a kernel takes that one (`make check SERIES=7.2`).
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
TIERS = ("host", "harness", "kunit", "scenario", "qemu", "kernels", "report")
ON_REQUEST = {"kernels", "report"}
OWN_TESTS = ("testbed", "scripts")
#: of one test of the tiers of `make check`, wall time: no bound on speed, but what ends a hang with the name of its
#: test and the stack of each thread. Ten times what the slowest takes that builds a kernel first.
HANG_S = 1800


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tiers",
        metavar="A,B",
        help=f"run these tiers only, and fail if one of them has no test ({', '.join(TIERS)})",
    )
    parser.addoption("--results", metavar="DIR", help="where the outcomes of the tier kernels go (check_kernels.json)")
    parser.addoption("--series", metavar="S", help="the kernel series of tests that need one (6.1, 6.12, 7.2)")


def pytest_configure(config: pytest.Config) -> None:
    """Pass --series on, before any test module is imported, to all that names no series of its own."""
    if config.getoption("--results") is not None:
        from testbed.support.outcomes import Outcomes

        config.pluginmanager.register(Outcomes(Path(config.getoption("--results"))))
    series = config.getoption("--series")
    if series is None:
        return
    os.environ["LBE_SERIES"] = series
    from testbed.kernels.series import SUITES

    if series not in SUITES:
        raise pytest.UsageError(f"--series={series}: '{series}' is none of {', '.join(SUITES)}")


def wanted_tiers(config: pytest.Config) -> tuple[str, ...]:
    """The tiers named by --tiers, or () where it was not given."""
    given = config.getoption("--tiers")
    tiers = tuple(given.split(",")) if given is not None else ()
    for tier in tiers:
        if tier not in TIERS:
            raise pytest.UsageError(f"--tiers={given}: '{tier}' is none of {', '.join(TIERS)}")
    return tiers


def tier_of(item: pytest.Item) -> str:
    """The tier of a test; gives it the marker where it has none."""
    marked = [tier for tier in TIERS if item.get_closest_marker(tier)]
    if len(marked) > 1:
        raise pytest.UsageError(f"{item.nodeid}: more than one tier: {', '.join(marked)}")
    if marked:
        return marked[0]
    folder = item.path.relative_to(ROOT).parts[0]
    tier = "harness" if folder in OWN_TESTS else "host"
    item.add_marker(tier)
    return tier


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = wanted_tiers(config)
    tiers = {item: tier_of(item) for item in items}
    items.sort(key=lambda item: TIERS.index(tiers[item]))  # stable: keeps the order within a tier
    taken = set(wanted) or set(TIERS) - ON_REQUEST
    dropped = [item for item in items if tiers[item] not in taken]
    items[:] = [item for item in items if tiers[item] in taken]
    for item in items:
        if tiers[item] not in ON_REQUEST:
            item.add_marker(pytest.mark.timeout(HANG_S))
    if dropped:
        config.hook.pytest_deselected(items=dropped)
    # A choice by -k, -m or path is the caller's own; the promise is about the whole.
    narrowed = config.option.keyword or config.option.markexpr or config.args_source.name == "ARGS"
    for tier in wanted:
        if not narrowed and tier not in tiers.values():
            raise pytest.UsageError(f"the tier '{tier}' has no test at all: that is no pass")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and reporter.stats.get("skipped") and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line a tier: how many passed, failed, were skipped, and the time they took."""
    count: Counter[tuple[str, str]] = Counter()
    seconds: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            tier = next((tier for tier in TIERS if tier in getattr(report, "keywords", {})), None)
            if tier:
                count[tier, outcome] += 1
                seconds[tier] += report.duration
    if not count:
        return
    terminalreporter.section("tiers")
    terminalreporter.write_line(f"{'tier':10}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>10}")
    for tier in TIERS:
        if seconds[tier] or any(key[0] == tier for key in count):
            failed = count[tier, "failed"] + count[tier, "error"]
            terminalreporter.write_line(
                f"{tier:10}{count[tier, 'passed']:8}{failed:8}{count[tier, 'skipped']:9}{seconds[tier]:10.1f}"
            )
    skipped = sum(number for (_, outcome), number in count.items() if outcome == "skipped")
    if skipped:
        terminalreporter.write_line(f"{skipped} skipped: a test that does not run proves nothing, so this is red")
