# SPDX-License-Identifier: GPL-2.0
"""Mutation tests: faults are planted in the sources, and tests must notice them.

    python3 -m testbed.support.mutants [--jobs N] [WORD ...]

WORD selects the faults whose name or file contains it; default: all.

tests/mutants.toml lists the faults: the file, the text and its replacement, and the tests that should notice. Each one
is applied to a scratch copy of the tree, never to the tree itself, N in parallel. The tests run there: tests on the
host, or the KUnit suites of module folders in the user-mode kernel. The tests must pass without the fault. A fault that
no test notices survives: exit status 1. A fault whose text does not occur exactly once in its file also counts as
surviving, since it proves nothing.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import LbeError, exit_with
from ..base.places import REPO, TESTBED
from ..run.runner import default_jobs
from ..spec.tables import load_table

LIST = TESTBED / "tests" / "mutants.toml"
LIMIT_S = 600


class MutantError(LbeError):
    """The list of faults is wrong, or the tests fail without a fault."""

    exit_status = 2


@dataclass(frozen=True)
class Fault:
    """``old`` occurs in ``file`` once; if it is replaced by ``new``, one of ``tests`` must fail: arguments of pytest,
    or "kunit" and module folders."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def faults() -> list[Fault]:
    """All faults of the list."""
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))["fault"]
    made = [load_table(Fault, table, f"{LIST.name}:fault[{index}]") for index, table in enumerate(tables)]
    names = [one.name for one in made]
    if len(set(names)) != len(names):
        raise MutantError(f"{LIST.name}: two faults have one name")
    return made


def misplaced(fault: Fault, top: Path = REPO) -> str:
    """Why a fault cannot be planted; "" if it can."""
    path = top / fault.file
    if not path.is_file():
        return f"{fault.file} is not there"
    count = path.read_text(encoding="utf-8").count(fault.old)
    return "" if count == 1 else f"its text stands {count} times in {fault.file}"


def scratch(folder: Path) -> Path:
    """Copy all files of the tree that git tracks or does not ignore."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True, text=True, cwd=REPO
    )
    for name in filter(None, listing.stdout.split("\0")):
        if (REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, folder / name)
    return folder


def command(tests: tuple[str, ...]) -> list[str]:
    """The command that runs a fault's tests."""
    if tests[0] == "kunit":
        return [sys.executable, "-m", "testbed.support.kunit", *tests[1:]]
    return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]


def passes(top: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass in a copy. MutantError if there are none, or they cannot be run."""
    try:
        done = subprocess.run(
            command(tests),
            check=False,
            capture_output=True,
            text=True,
            cwd=top,
            timeout=LIMIT_S,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "LBE_VERSION": "mutants"},
        )
    except subprocess.TimeoutExpired:
        return False  # an endless loop counts as noticed
    if done.returncode < 0:
        return False  # so does a division by zero, which kills the process of the tests
    if done.returncode not in (0, 1) and (tests[0] == "kunit" or done.returncode != 2):  # 2: an import that broke
        said = done.stdout[-2000:] + done.stderr[-2000:]
        raise MutantError(f"{' '.join(tests)}: status {done.returncode}\n{said}")
    return done.returncode == 0


class Planter:
    """Plants faults, several in parallel: each worker has its own copy of the tree. Tests first run without a fault,
    once for all workers."""

    def __init__(self, work: Path, jobs: int) -> None:
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            folder = work / str(number)
            folder.mkdir()
            self._free.put(scratch(folder))
        self._lock = threading.Lock()
        self._sound: dict[tuple[str, ...], Future[bool]] = {}

    def try_one(self, fault: Fault) -> tuple[str, float]:
        """Plant a fault; returns what is wrong with it ("" if it was noticed), and the time taken, seconds."""
        began = time.monotonic()
        top = self._free.get()
        try:
            return self._outcome(fault, top), time.monotonic() - began
        finally:
            self._free.put(top)

    def _outcome(self, fault: Fault, top: Path) -> str:
        wrong = misplaced(fault, top)
        if wrong:
            return wrong
        if not self._sound_tests(fault.tests, top):
            raise MutantError(f"without any fault these tests fail: {' '.join(fault.tests)}")
        path = top / fault.file
        whole = path.read_text(encoding="utf-8")
        path.write_text(whole.replace(fault.old, fault.new), encoding="utf-8")
        try:
            return "SURVIVED" if passes(top, fault.tests) else ""
        finally:
            path.write_text(whole, encoding="utf-8")

    def _sound_tests(self, tests: tuple[str, ...], top: Path) -> bool:
        """Whether the tests pass without a fault; the first caller runs them, the others wait."""
        with self._lock:
            mine = tests not in self._sound
            answer = self._sound.setdefault(tests, Future())
        if mine:
            try:
                answer.set_result(passes(top, tests))
            except BaseException as error:
                answer.set_exception(error)
                raise
        return answer.result()


def main(arguments: list[str] | None = None) -> int:
    """Entry point: plant each fault and print a line for it; 1 if one survived."""
    parser = argparse.ArgumentParser(prog="mutants", description="plants faults, and runs the tests that should notice")
    parser.add_argument("words", nargs="*", metavar="WORD", help="faults whose name or file has one of the words")
    parser.add_argument("--jobs", type=int, metavar="N", default=default_jobs(), help="at a time; default: one per CPU")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        raise MutantError(f"--jobs {options.jobs}: at least 1")
    words = options.words or [""]
    chosen = [one for one in faults() if any(word in one.name or word in one.file for word in words)]
    if not chosen:
        raise MutantError(f"no fault's name or file has {' or '.join(words)}")
    survived = 0
    print(f"{len(chosen)} faults, {options.jobs} at a time; each set of tests runs without a fault first", flush=True)
    with tempfile.TemporaryDirectory(prefix="lbe-mutants.") as work, ThreadPoolExecutor(options.jobs) as pool:
        planter = Planter(Path(work), options.jobs)
        running = {pool.submit(planter.try_one, one): one for one in chosen}
        try:
            for done, future in enumerate(as_completed(running), 1):
                wrong, took_s = future.result()
                survived += bool(wrong)
                said = wrong or "noticed"
                print(f"[{done}/{len(chosen)}] {said}: {running[future].name} ({took_s:.0f} s)", flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    print(f"{len(chosen)} faults, {len(chosen) - survived} noticed, {survived} not")
    return 1 if survived else 0


if __name__ == "__main__":
    exit_with("mutants", main)
