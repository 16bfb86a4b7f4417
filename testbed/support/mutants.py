# SPDX-License-Identifier: GPL-2.0
"""Planted faults: does a test notice?

    python3 -m testbed.support.mutants [WORD ...]      those whose name or file has one of the words; default: all

tests/mutants.toml lists the faults: in which file, what is put in place of what, and which tests should notice. Each is
applied to a scratch copy of the tree, never to the tree itself, and the tests are run there: tests of the host, or the
KUnit suites of module folders in the user-mode kernel. The tests must pass without the fault. A fault that no test
notices survives: exit status 1. So does one whose text is no longer in its file once, for it proves nothing any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import LbeError
from ..base.places import REPO, TESTBED
from ..spec.tables import load_table

LIST = TESTBED / "tests" / "mutants.toml"
LIMIT_S = 600


class MutantError(LbeError):
    """The list of faults is wrong, or the tests fail without a fault."""

    exit_status = 2


@dataclass(frozen=True)
class Fault:
    """``old`` stands in ``file`` once; with ``new`` in its place, one of ``tests`` must fail: pytest's words, or
    "kunit" and module folders."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def faults() -> list[Fault]:
    """All of the list."""
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
    """A copy of all files that git knows or would know."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True, text=True, cwd=REPO
    )
    for name in filter(None, listing.stdout.split("\0")):
        if (REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, folder / name)
    return folder


def command(tests: tuple[str, ...]) -> list[str]:
    """What runs a fault's tests."""
    if tests[0] == "kunit":
        return [sys.executable, "-m", "testbed.support.kunit", *tests[1:]]
    return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]


def passes(top: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass there. MutantError if there are none, or they cannot be run."""
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
        return False  # a loop without an end is noticed too
    if done.returncode < 0:
        return False  # and so is a division by zero, which ends the tests' process
    if done.returncode not in (0, 1) and (tests[0] == "kunit" or done.returncode != 2):  # 2: an import that broke
        said = done.stdout[-2000:] + done.stderr[-2000:]
        raise MutantError(f"{' '.join(tests)}: status {done.returncode}\n{said}")
    return done.returncode == 0


def main(words: list[str]) -> int:
    """Plant each fault; a line each; 1 if one survived."""
    chosen = [one for one in faults() if not words or any(word in one.name or word in one.file for word in words)]
    if not chosen:
        raise MutantError(f"no fault's name or file has {' or '.join(words)}")
    survived = []
    with tempfile.TemporaryDirectory(prefix="lbe-mutants.") as work:
        top = scratch(Path(work))
        for tests in dict.fromkeys(one.tests for one in chosen):
            if not passes(top, tests):
                raise MutantError(f"without any fault these tests fail: {' '.join(tests)}")
        for one in chosen:
            began = time.monotonic()
            wrong = misplaced(one, top)
            if not wrong:
                path = top / one.file
                whole = path.read_text(encoding="utf-8")
                path.write_text(whole.replace(one.old, one.new), encoding="utf-8")
                wrong = "SURVIVED" if passes(top, one.tests) else ""
                path.write_text(whole, encoding="utf-8")
            survived += [one] * bool(wrong)
            print(f"{wrong or 'noticed'}: {one.name} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(chosen)} faults, {len(chosen) - len(survived)} noticed, {len(survived)} not")
    return 1 if survived else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LbeError as error:
        print(f"mutants: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
