# SPDX-License-Identifier: GPL-2.0
"""KUnit suites inside the user-mode kernel, with a separate boot for each module.

    *_kunit.ko -> insmod in the guest -> debugfs results (KTAP) -> SuiteResult, one state each

The initial state of a suite is CRASHED; only a complete, consistent KTAP text changes it. The
results come from debugfs, so other console messages can neither hide nor fake one.

Command line:
    python3 -m testbed.support.kunit [--series S] [--flavour F] [FOLDER ...]
"""

from __future__ import annotations

import argparse
import enum
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..backends.machine import Machine, read_text
from ..base.cache import cache_root
from ..base.errors import JobFailed, LbeError, MachineFailure
from ..base.places import REPO
from ..base.progress import make_progress
from ..kernels.build import KernelBuild, ensure_kernel
from ..kernels.modules import ModuleSet, ensure_modules
from ..kernels.series import DEFAULT_SERIES, USER_MODE_FLAVOURS, KernelSpec, series_number

VIRTUAL_LIMIT_S = 600
WALL_LIMIT_S = 300  # more than the sanitizer kernel needs on a busy machine


class State(enum.Enum):
    """State of a test, a suite or a module. Only SUCCESS and SKIPPED are green."""

    SUCCESS = "success"
    FAILURE = "failure"
    SKIPPED = "skipped"
    CRASHED = "crashed"
    NO_TESTS = "no tests"
    FAILURE_TO_PARSE = "failure to parse"

    @property
    def green(self) -> bool:
        """Whether nothing is wrong."""
        return self in (State.SUCCESS, State.SKIPPED)


@dataclass
class KtapNode:
    """One KTAP result: a suite, a test case or a parameter row of a case."""

    name: str
    state: State = State.CRASHED
    children: list[KtapNode] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def leaves(self) -> list[KtapNode]:
        """The tests that have no subtests."""
        if not self.children:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]


@dataclass(frozen=True)
class SuiteResult:
    """One suite of a module; `suite` is "" if the module did not start any."""

    module: str
    suite: str
    state: State
    text: str
    tests: tuple[KtapNode, ...] = ()

    def explain(self) -> str:
        """Text about the failed tests."""
        bad = [t for node in self.tests for t in node.leaves() if not t.state.green]
        lines = [f"{self.module} {self.suite}: {self.state.value}"]
        for node in bad:
            lines.append(f"  {node.name}: {node.state.value}")
            lines += [f"      {line}" for line in node.log]
        return "\n".join(lines if bad else [*lines, self.text])


RESULT = re.compile(r"(not )?ok (\d+)(?: -)?(?: (.*?))?(?: # (SKIP)\b.*)?$", re.IGNORECASE)
PLAN = re.compile(r"1\.\.(\d+)$")
INDENT = 4
# Older kernels clear a case's debugfs log at each parameter row.
ROWS_KEPT_SINCE = (6, 6)
# Path of the sources in the build, removed so that messages have paths of the repository.
SNAPSHOT = re.compile(r"/\S*/modules/\.[^/\s]+/")


class ParseError(Exception):
    """The text is not KTAP."""


def parse_ktap(text: str, rows_lost: bool = False) -> list[KtapNode]:
    """The top-level results of a KTAP text; raises ParseError.

    `rows_lost`: only the last parameter row of a case may be present (ROWS_KEPT_SINCE); the result
    of the case then covers the others.

    A result line closes the block of deeper lines above it. A block with fewer results than its
    plan gets a CRASHED child for the missing ones, which makes its parent CRASHED too.
    """
    lines = text.splitlines()
    if not any(line.strip() in ("KTAP version 1", "TAP version 14") for line in lines):
        raise ParseError("no line 'KTAP version 1'")
    blocks: list[list[KtapNode]] = [[]]  # results by depth that have no parent yet
    plans: list[int | None] = [None]
    logs: list[list[str]] = [[]]

    def close(depth: int) -> list[KtapNode]:
        """Remove and return the results deeper than `depth`, with nodes for results missing in their plans."""
        taken: list[KtapNode] = []
        while len(blocks) > depth + 1:
            nodes, plan = blocks.pop(), plans.pop()
            rest = logs.pop()
            inner, taken = taken, nodes
            if inner:  # a block without a closing result line: its test did not end
                taken.append(KtapNode("(did not end)", State.CRASHED, inner, rest))
            elif plan is not None and len(nodes) < plan:
                taken.append(KtapNode(f"(test {len(nodes) + 1} of {plan})", State.CRASHED, [], rest))
        return taken

    for line in lines:
        bare = line.strip()
        depth = (len(line) - len(line.lstrip(" "))) // INDENT
        result = RESULT.match(bare)
        plan = PLAN.match(bare)
        if not bare or bare in ("KTAP version 1", "TAP version 14"):
            continue
        if not result and not plan:
            logs[min(depth, len(logs) - 1)].append(bare)
            continue
        children = close(depth) if result else []
        while len(blocks) <= depth:
            blocks.append([])
            plans.append(None)
            logs.append([])
        if plan:
            plans[depth] = int(plan.group(1))
            continue
        assert result is not None  # neither a plan nor a log line
        failed, number, name, directive = result.groups()
        if int(number) != len(blocks[depth]) + 1 and not (rows_lost and depth >= 2):
            raise ParseError(f"result {number} where {len(blocks[depth]) + 1} was due: {bare}")
        log, logs[depth] = logs[depth], []
        node = KtapNode((name or f"test {number}").strip(), State.SUCCESS, children, log)
        node.state = state_of(bool(failed), (directive or "").upper() == "SKIP", children)
        blocks[depth].append(node)
    deeper = close(0)
    if deeper:
        blocks[0].append(KtapNode("(did not end)", State.CRASHED, deeper, logs[0]))
    if plans[0] is not None and len(blocks[0]) < plans[0]:
        blocks[0].append(KtapNode(f"(test {len(blocks[0]) + 1} of {plans[0]})"))
    return blocks[0]


def state_of(failed: bool, skipped: bool, children: Sequence[KtapNode]) -> State:
    """State of a result line with its children: the worst state counts, even if the line reports success."""
    states = {child.state for child in children}
    for worse in (State.CRASHED, State.FAILURE):
        if worse in states:
            return worse
    if failed:
        return State.FAILURE
    if skipped or (states and states == {State.SKIPPED}):
        return State.SKIPPED
    return State.SUCCESS


def judge_suite(module: str, suite: str, text: str, rows_lost: bool = False) -> SuiteResult:
    """The state of one suite from its debugfs text; `rows_lost` as for parse_ktap()."""
    try:
        nodes = parse_ktap(text, rows_lost)
    except ParseError as error:
        return SuiteResult(module, suite, State.FAILURE_TO_PARSE, f"{error}\n{text}")
    leaves = [leaf for node in nodes for child in node.children for leaf in child.leaves()]
    if not leaves:
        crashed = any(node.state is State.CRASHED for node in nodes)
        return SuiteResult(module, suite, State.CRASHED if crashed else State.NO_TESTS, text)
    return SuiteResult(module, suite, state_of(False, False, nodes), text, tuple(nodes))


def load_paths(modules: ModuleSet, name: str) -> list[Path]:
    """Modules to load for a KUnit module: x_kunit may test x through its ops, so x is loaded first."""
    tested = name.removesuffix("_kunit")
    return modules.load_order([*([tested] if tested in modules.paths else []), name])


def job_script(paths: Sequence[Path]) -> str:
    """The guest's job: load, copy the results from debugfs, unload."""
    load = "".join(f'insmod "$LBE_HOST"{shlex.quote(str(p.resolve()))} || exit 1\n' for p in paths)
    unload = "".join(f"rmmod {shlex.quote(p.stem)} || exit 1\n" for p in reversed(paths))
    return (
        "# SPDX-License-Identifier: GPL-2.0\n"
        # Only the suites of the module under test, not those built into the kernel
        'ls /sys/kernel/debug/kunit >"$LBE_OUT/before"\n'
        f"{load}"
        "cd /sys/kernel/debug/kunit || exit 1\n"
        "for suite in *; do\n"
        '\tgrep -qxF "$suite" "$LBE_OUT/before" && continue\n'
        '\t[ -e "$suite/results" ] && cat "$suite/results" >"$LBE_OUT/$suite.ktap"\n'
        "done\n"
        f"cd /\n{unload}"
    )


def run_module(build: KernelBuild, modules: ModuleSet, name: str, seed: int = 1) -> list[SuiteResult]:
    """Boot, load one KUnit module and read its suites. Returns at least one result."""
    machine = Machine(build)
    parent = cache_root() / "run"
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as work:
        job, out = Path(work) / "job", Path(work) / "out"
        job.mkdir()
        (job / "job.sh").write_text(job_script(load_paths(modules, name)), encoding="utf-8")
        crash: MachineFailure | None = None
        try:
            machine.run(job, out, seed, (), VIRTUAL_LIMIT_S, WALL_LIMIT_S)
        except MachineFailure as failure:
            crash = failure
        rows_lost = series_number(build.series) < ROWS_KEPT_SINCE
        console = SNAPSHOT.sub("", read_text(out / "console") or "")
        results = [
            judge_suite(name, path.stem, SNAPSHOT.sub("", read_text(path) or ""), rows_lost)
            for path in sorted(out.glob("*.ktap"))
        ]
        if rows_lost:  # the messages of a failed row are still on the console
            results = [r if r.state.green else replace(r, text=f"{r.text}\nconsole:\n{console}") for r in results]
        if crash:
            text = f"{crash}\n{console}" if not isinstance(crash, JobFailed) else str(crash)
            # Perhaps only the console has the name of the suite; suites that did not end are lost.
            seen = re.findall(r"# Subtest: (\S+)", console)
            suites = [r.suite for r in results] or seen[:1] or [""]
            return [SuiteResult(name, suite, State.CRASHED, text) for suite in suites]
    return results or [SuiteResult(name, "", State.NO_TESTS, "the module registered no suite")]


def expected_suites(repo: Path = REPO) -> list[tuple[str, str]]:
    """(module folder, suite name) of each suite declared in the sources."""
    found = []
    for path in sorted(repo.glob("*/tests/*_kunit.c")):
        text = path.read_text(encoding="utf-8")
        for body in re.findall(r"struct kunit_suite \w+ = \{(.*?)\n\};", text, re.DOTALL):
            name = re.search(r'\.name\s*=\s*"([^"]+)"', body)
            if name:
                found.append((path.parent.parent.name, name.group(1)))
        flows = re.findall(r"^FLOW_SUITE\((\w+),", text, re.MULTILINE)
        found += [(path.parent.parent.name, prefix) for prefix in flows]
    return found


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0 all green, 1 not all green, 2 wrong usage."""
    top = argparse.ArgumentParser(prog="python3 -m testbed.support.kunit", description=__doc__.split("\n")[0])
    top.add_argument("--series", default=DEFAULT_SERIES)
    top.add_argument("--flavour", default="plain", choices=USER_MODE_FLAVOURS)
    top.add_argument("--verbose", action="store_true", help="the whole KTAP of each suite")
    top.add_argument("folders", nargs="*", metavar="FOLDER", help="module folders; default: all")
    args = top.parse_args(argv)
    progress = make_progress()
    bad = 0
    try:
        build = ensure_kernel(KernelSpec(args.series, args.flavour), progress)
        modules = ensure_modules(build, folders=args.folders or None, progress=progress)
        if not modules.kunit:
            print("no KUnit module was built", file=sys.stderr)
            return 1
        for name in modules.kunit:
            for result in run_module(build, modules, name):
                tests = sum(len(node.leaves()) for node in result.tests)
                print(f"{result.state.value:17}{name} {result.suite}: {tests} tests")
                if args.verbose:
                    print(result.text)
                if not result.state.green:
                    bad += 1
                    print(result.explain())
    except LbeError as error:
        print(f"{top.prog}: {error}", file=sys.stderr)
        return error.exit_status
    finally:
        progress.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
