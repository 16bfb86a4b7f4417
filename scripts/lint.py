#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks of the code style: `make lint`, or scripts/lint.py [STEP...].

Each step has a name, prints its time and the lines that fail, and does not depend
on other steps. A step that finds no file to check fails: it would prove nothing.

Kernel sources and builds come from the testbed's cache. The environment may name
others: LBE_CHECKPATCH=path of checkpatch.pl, LBE_KDIR_6_12=build folder of 6.12
(and so on for other series).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.base.cache import cache_root  # noqa: E402
from testbed.base.errors import LbeError  # noqa: E402
from testbed.base.progress import make_progress  # noqa: E402
from testbed.kernels.build import ensure_kernel  # noqa: E402
from testbed.kernels.series import KernelSpec  # noqa: E402
from testbed.kernels.source import ensure_source  # noqa: E402
from testbed.support import typed_numbers  # noqa: E402

MAIN_SERIES = "6.12"
ALL_SERIES = ("6.1", "6.12", "7.2")

# Files whose format has no comments, or whose text is not the project's.
NO_COMMENT = {".json", ".log", ".png", ".svg", ".npz", ".npy", ".bin"}
NOT_OURS = {"LICENSE", "VERSION", "debian/changelog", "debian/source/format"}
STORED = re.compile(r"/tests/\w+/logs/")  # stored output of programs, unchanged

# Types of checkpatch --strict that are ignored, and why.
KERNEL_IGNORE = (
    "BIT_MACRO",  # arithmetic and uapi headers compile where there is no BIT()
    "CAMELCASE",  # names of the kernel's headers (red.h: Wlog), which checkpatch does not see with --no-tree
    "LINUX_VERSION_CODE",  # checked by a separate step, with the exception of compat.h
    "LONG_LINE_STRING",  # messages are not split, so that they can be searched for
    "UNCOMMENTED_DEFINITION",  # kernel-doc above the struct says what a lock protects
    "TYPO_SPELLING",  # British spelling, and names used by a paper (aLow)
    "MACRO_ARG_REUSE",  # macros that generate tables and parameters; no argument has a side effect
)
# TRACE_EVENT() in the layout of the kernel's own trace headers, which checkpatch does not know.
TRACE_H = re.compile(r"trace\.h$")
TRACE_IGNORE = (*KERNEL_IGNORE, "COMPLEX_MACRO", "OPEN_ENDED_LINE", "PARENTHESIS_ALIGNMENT", "SPACING")
# Version tests, and replacements of newer macros with the same arguments.
COMPAT_H = re.compile(r"^include/lbe/compat\.h$")
COMPAT_IGNORE = (*KERNEL_IGNORE, "CONSTANT_COMPARISON", "LINE_SPACING", "MACRO_ARG_UNUSED")
# C for user space (arith.h is for both). Ignored are types that recommend kernel headers which
# user space lacks, or that misread a usage text.
USER_C = re.compile(
    r"^(tools|testbed/agent|testbed/kernels/fragments|testbed/support)/|^include/lbe/arith\.h$|/tests/host"
)
USER_IGNORE = (
    *KERNEL_IGNORE,
    "ARRAY_SIZE",
    "AVOID_EXTERNS",
    "EMBEDDED_FUNCTION_NAME",
    "NEW_TYPEDEFS",
    "PREFER_DEFINED_ATTRIBUTE_MACRO",
    "PREFER_FALLTHROUGH",
    "PREFER_KERNEL_TYPES",
    "SSCANF_TO_KSTRTO",
    "STRCPY",
    "STRLCPY",
    "STRNCPY",
    "UNSPECIFIED_INT",
    "VOLATILE",
)
# Written by the kernel's generator and scripts/ynl.py, in their layout; the step ynl compares them.
GENERATED_C = re.compile(r"_gen\.[ch]$|^tools/ynl/")
# Stands in the place of the kernel's headers in tests on the host.
FAKE_H = re.compile(r"^testbed/support/fake_\w+\.h$")
FAKE_IGNORE = (*USER_IGNORE, "INIT_ATTRIBUTE", "IS_ENABLED_CONFIG", "MACRO_ARG_UNUSED", "MEMORY_BARRIER")
# A row of a table of cases remains on one line.
KUNIT_C = re.compile(r"/tests/\w+_kunit\.c$")
# Modules that crash the guest, to test that the testbed notices.
CRASH_C = re.compile(r"^testbed/tests/")
# The first match decides; all other files are kernel code.
CHECKPATCH_GROUPS = (
    (FAKE_H, FAKE_IGNORE),
    (USER_C, USER_IGNORE),
    (COMPAT_H, COMPAT_IGNORE),
    (TRACE_H, TRACE_IGNORE),
    (KUNIT_C, (*KERNEL_IGNORE, "LONG_LINE")),
    (CRASH_C, (*KERNEL_IGNORE, "AVOID_BUG")),
    (re.compile(""), KERNEL_IGNORE),
)

# Written such that this file does not match its own patterns.
MARKS = r"TO[D]O|FIX[M]E|X[X]X|NotImplemented[E]rror"
SKIPS = r"pytest\.(skip|importor[s]kip|mark\.(skip|xfail))|[k]unit_skip"
VERSIONS = r"LINUX_VERSION_[C]ODE|KERNEL_VERSION[(]"
PATHS = r"(?<![\w.-])/(w[o]rk|r[o]ot|f[a]rm|tmp/k)/"
HOSTS = (
    r"\b(deb|ftp[\w.]*|security|snapshot|archive)\.(deb[i]an|ub[u]ntu)\.(org|com)"
    r"|\b(pyp[i]|python[h]osted|crate[s])\.(org|io)"
)


class Refused(Exception):
    """A step could not be run; the text says why."""


@dataclass
class Tree:
    """The files to check, and the kernels to check them with."""

    root: Path
    series: tuple[str, ...] = ()
    copies: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def files(self) -> list[str]:
        """All files of the tree that git does not ignore, as relative paths."""
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=self.root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if listing.returncode == 0:
            names = [name for name in listing.stdout.split("\0") if name]
        else:  # a tarball
            names = [str(path.relative_to(self.root)) for path in self.root.rglob("*")]
        return sorted(name for name in names if (self.root / name).is_file())

    @cached_property
    def texts(self) -> dict[str, str]:
        """The content of all text files, except those of NOT_OURS."""
        texts = {}
        for name in self.files:
            content = (self.root / name).read_bytes()
            if name not in NOT_OURS and b"\0" not in content[:8000]:
                texts[name] = content.decode("utf-8", "replace")
        return texts

    def ending(self, *suffixes: str) -> list[str]:
        return some([name for name in self.files if name.endswith(suffixes)], f"*{' *'.join(suffixes)}")

    def scripts_of(self, *shells: str) -> list[str]:
        """Scripts of some shells, recognized by name or first line."""
        shebang = re.compile(rf"#!\s*(/usr)?/bin/(env )?({'|'.join(shells)})\b")
        return [
            name for name, text in self.texts.items()
            if name.endswith(tuple(f".{shell}" for shell in shells)) or shebang.match(text)
        ]  # fmt: skip


def some(files: list[str], what: str) -> list[str]:
    """The list itself; Refused if it is empty."""
    if not files:
        raise Refused(f"no file to look at ({what})")
    return files


def run(command: list[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        raise Refused(f"{command[0]} is not installed")
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, text=True, check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip


def grep(tree: Tree, pattern: str, names: Iterable[str]) -> list[str]:
    """file:line: text for each line that matches."""
    regex = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name in names
        for number, line in enumerate(tree.texts[name].splitlines(), 1)
        if regex.search(line)
    ]


# -- rules about the text of the sources -----------------------------------------------------


def check_spdx(tree: Tree) -> list[str]:
    """Every file that can have comments names its licence in the first lines.

    A second licence beside GPL-2.0, or an exception for users of a uapi header, is allowed.
    """
    names = some([n for n in tree.texts if Path(n).suffix not in NO_COMMENT], "text files")
    return [
        f"{name}:1: no SPDX-License-Identifier: GPL-2.0 in the first five lines"
        for name in names
        if tree.texts[name].strip()
        and not STORED.search(name)
        and not re.search(r"SPDX-License-Identifier: .*\bGPL-2\.0\b", head(tree.texts[name]))
    ]


def head(text: str) -> str:
    """The first five lines."""
    return "\n".join(text.splitlines()[:5])


def check_versions(tree: Tree) -> list[str]:
    """Only compat.h tests kernel versions."""
    names = tree.ending(".c", ".h")
    return grep(tree, VERSIONS, (name for name in names if name != "include/lbe/compat.h"))


def check_marks(tree: Tree) -> list[str]:
    """No marks of unfinished code, no skipped tests."""
    names = some([n for n in tree.texts if Path(n).suffix not in NO_COMMENT], "text files")
    return grep(tree, f"{MARKS}|{SKIPS}", names)


def check_places(tree: Tree) -> list[str]:
    """No path of a particular machine, no package host."""
    names = some(list(tree.texts), "text files")
    return grep(tree, f"{PATHS}|{HOSTS}", names)


def check_links(tree: Tree) -> list[str]:
    """Relative links between pages have existing targets."""
    failures = []
    for name in tree.ending(".md"):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", tree.texts[name]):
            if "://" not in target and not (tree.root / name).parent.joinpath(target).exists():
                failures.append(f"{name}: link to {target}, which is not there")
    return failures


def check_typed(tree: Tree) -> list[str]:
    """No measured number is typed by hand into a written page, or into a reason of this tree's experiments."""
    names = some([n for n in tree.texts if re.fullmatch(r"README\.md|Documentation/[^/]+\.md", n)], "written pages")
    failures = [line for name in names for line in typed_numbers.in_page(name, tree.texts[name])]
    return failures + (typed_numbers.in_reasons() if tree.root == ROOT else [])


# -- tools on sources --------------------------------------------------------------------------


def checkpatch_path() -> Path:
    given = os.environ.get("LBE_CHECKPATCH")
    path = Path(given) if given else kernel_source() / "scripts/checkpatch.pl"
    if not path.is_file():
        raise Refused(f"{path} is not there")
    return path


def check_checkpatch(tree: Tree) -> list[str]:
    """The kernel's checkpatch with --strict on all C files."""
    names = [name for name in tree.ending(".c", ".h") if not GENERATED_C.search(name)]
    copy = copy_of(tree, "checkpatch")  # in a copy, since it writes files where it runs
    failures = []
    rest = names
    for pattern, ignore in CHECKPATCH_GROUPS:
        group = [name for name in rest if pattern.search(name)]
        rest = [name for name in rest if name not in group]
        if not group:
            continue
        result = run(
            ["perl", checkpatch_path(), "--no-tree", "--strict", "--terse", "--show-types", "--no-summary",
             "--color=never", f"--ignore={','.join(ignore)}", "-f", *group],
            copy,
        )  # fmt: skip
        failures += [line for line in result.stdout.splitlines() if re.search(r": (ERROR|WARNING|CHECK):", line)]
        if result.returncode and not failures:
            failures.append(f"checkpatch ended with status {result.returncode}: {result.stdout[-500:]}")
    return failures


def check_shellcheck(tree: Tree) -> list[str]:
    names = some(tree.scripts_of("sh", "bash", "dash"), "shell scripts")
    result = run(["shellcheck", "--format=gcc", "--external-sources", *names], tree.root)
    return result.stdout.splitlines() or status_line("shellcheck", result)


def check_ruff(tree: Tree) -> list[str]:
    names = some([*tree.ending(".py"), *tree.scripts_of("python3")], "*.py")
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "--no-cache", "--output-format=concise"]
    result = run([*command, f"--config={ROOT / 'pyproject.toml'}", *sorted(set(names))], tree.root)
    return result.stdout.splitlines() or status_line("ruff", result)


def check_mypy(tree: Tree) -> list[str]:
    """All Python but what pyproject.toml excludes under [tool.mypy] passes mypy's strict rules."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    names = some([name for name in tree.ending(".py") if not re.search(settings["exclude"], name)], "*.py")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", f"--config-file={ROOT / 'pyproject.toml'}"]
    kept = cache_root() / "mypy" if tree.root == ROOT else os.devnull
    result = run([*command, f"--cache-dir={kept}", *names], tree.root)
    return [line for line in result.stdout.splitlines() if ": note: " not in line] or status_line("mypy", result)


def check_abi(tree: Tree) -> list[str]:
    """The library's ABI is the committed one (tools/libvulture/abi.py says what to do if not)."""
    some([name for name in tree.files if name.startswith("tools/libvulture/")], "tools/libvulture")
    folder = copy_of(tree, "abi") / "tools" / "libvulture"
    made = run(["make", "-s", "-C", folder, "libvulture.so"], folder)
    if made.returncode:
        return made.stdout.splitlines()[-20:] or status_line("make", made)
    result = run([sys.executable, folder / "abi.py", folder / "libvulture.so", "--check"], folder)
    return result.stdout.splitlines() or status_line("abi.py", result)


def check_ynl(tree: Tree) -> list[str]:
    """What is made from Documentation/vulture.yaml is what the kernel's generator makes of it today."""
    some([name for name in tree.files if name == "Documentation/vulture.yaml"], "Documentation/vulture.yaml")
    result = run([sys.executable, tree.root / "scripts/ynl.py", "--check"], tree.root)
    return result.stdout.splitlines() or status_line("ynl.py", result)


def status_line(tool: str, result: subprocess.CompletedProcess[str]) -> list[str]:
    """A line about a tool that failed without output."""
    return [f"{tool} ended with status {result.returncode}"] if result.returncode else []


# -- module builds -----------------------------------------------------------------------------


def kernel_source() -> Path:
    try:
        return ensure_source(MAIN_SERIES, progress=make_progress()).path
    except LbeError as error:
        raise Refused(str(error)) from error


def given_build(series: str) -> Path | None:
    """The build folder that the environment gives for a series, if any."""
    variable = f"LBE_KDIR_{series.replace('.', '_')}"
    folder = os.environ.get(variable)
    if folder and not Path(folder, "Makefile").exists():
        raise Refused(f"{variable}={folder}: not a kernel build folder")
    return Path(folder) if folder else None


def kernel_build(series: str) -> Path:
    """The build folder of a series, given by the environment, else the testbed's."""
    if given := given_build(series):
        return given
    try:
        return ensure_kernel(KernelSpec(series), make_progress()).kdir
    except LbeError as error:
        raise Refused(str(error)) from error


def cached_build(series: str) -> Path | None:
    """A build of the series that exists already, even if it does not have the current edits; else None."""
    kernels = cache_root() / "kernels"
    builds = sorted(kernels.glob(f"{series}.*-plain-*/build.json"), key=lambda path: path.stat().st_mtime)
    return given_build(series) or (builds[-1].parent if builds else None)


def copy_of(tree: Tree, purpose: str) -> Path:
    """A private copy to build in, so that parallel lints and builds do not interfere."""
    if purpose not in tree.copies:
        copy = Path(tempfile.mkdtemp(prefix="lbe-lint-"))
        tree.copies[purpose] = copy
        for name in tree.files:
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree.root / name, target)
    return tree.copies[purpose]


def build(tree: Tree, series: str, kdir: Path, *words: str) -> list[str]:
    """Build all modules; returns the diagnostics about the project's files (not the kernel's headers)."""
    copy = copy_of(tree, series)
    some([str(path) for path in copy.glob("*/Kbuild")], "folders with a Kbuild")
    failures = []
    # Guest modules are built separately, with the product's headers in their folder (testbed/backends/tools.py).
    shared = ["include", *(path.parent.name for path in copy.glob("*/Kbuild"))]
    for folder in [copy, *(path.parent for path in sorted(copy.glob("testbed/kernels/*/Kbuild")))]:
        for name in shared:
            if folder != copy and not (folder / name).exists():
                (folder / name).symlink_to(copy / name)
        failures += build_folder(kdir, folder, copy, *words)
    return [f"{series}: {line}" for line in failures]


def build_folder(kdir: Path, folder: Path, copy: Path, *words: str) -> list[str]:
    """kbuild's diagnostics about files of the copy."""
    arch = ["ARCH=um"] if "CONFIG_UML=y" in (kdir / "include/config/auto.conf").read_text() else []
    result = run(
        ["make", "-C", kdir, f"M={folder}", *arch, "LBE_VERSION=lint", f"-j{os.cpu_count()}", *words, "modules"],
        folder,
    )
    failures = []
    for line in result.stdout.splitlines():
        if "WARNING: modpost" in line or "ERROR: modpost" in line:
            failures.append(line)
        elif match := re.match(r"(?P<file>[^\s:]+):\d+(:\d+)?: (fatal )?(warning|error)\b", line):
            path = (folder / match["file"]).resolve()
            if path.is_relative_to(copy.resolve()) and path.exists():
                failures.append(line.replace(f"{copy}/", ""))
    if result.returncode and not failures:
        failures = result.stdout.splitlines()[-20:]
    return failures


def check_w1(tree: Tree) -> list[str]:
    """W=1 builds have no warning, for 6.12 and each other series that is requested or cached."""
    kdirs = {
        series: kernel_build(series) if series in (MAIN_SERIES, *tree.series) else cached_build(series)
        for series in ALL_SERIES
    }
    return [line for series, kdir in kdirs.items() if kdir for line in build(tree, series, kdir, "W=1")]


def check_sparse(tree: Tree) -> list[str]:
    """sparse on all sources of the modules."""
    if shutil.which("sparse") is None:
        raise Refused("sparse is not installed")
    return [
        line
        for line in build(tree, MAIN_SERIES, kernel_build(MAIN_SERIES), "C=2", "CHECK=sparse")
        if not false_imbalance(tree, line)
    ]


def false_imbalance(tree: Tree, line: str) -> bool:
    """Whether a warning is false: with one CPU, as in user mode, spin_trylock() declares the lock to sparse twice."""
    match = re.match(r"[\d.]+: ([^:]+):\d+:\d+: warning: context imbalance in '(\w+)'", line)
    if not match:
        return False
    body = re.search(rf"\b{match[2]}\([^;{{]*\)\n\{{.*?\n\}}", tree.texts[match[1]], re.DOTALL)
    return bool(body and "spin_trylock(" in body[0])


STEPS: dict[str, Callable[[Tree], list[str]]] = {
    "spdx": check_spdx,
    "versions": check_versions,
    "marks": check_marks,
    "places": check_places,
    "links": check_links,
    "typed": check_typed,
    "shellcheck": check_shellcheck,
    "ruff": check_ruff,
    "mypy": check_mypy,
    "checkpatch": check_checkpatch,
    "abi": check_abi,
    "ynl": check_ynl,
    "w1": check_w1,
    "sparse": check_sparse,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)} (default: all)")
    parser.add_argument("--series", action="append", default=[], choices=ALL_SERIES,
                        help="build for this kernel series too, even if it is not in the cache yet")  # fmt: skip
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to check (default: this one)")
    options = parser.parse_args(arguments)
    for step in options.steps:
        if step not in STEPS:
            parser.error(f"no step '{step}': one of {', '.join(STEPS)}")

    tree = Tree(options.root.resolve(), tuple(options.series))
    red = []
    try:
        for step in options.steps or STEPS:
            begin = time.monotonic()
            try:
                failures = STEPS[step](tree)
            except Refused as reason:
                failures = [str(reason)]
            seconds = time.monotonic() - begin
            print(f"lint: {step:11} {'FAIL' if failures else 'ok':4} {seconds:6.1f} s", flush=True)
            for line in failures:
                print(f"    {line}", flush=True)
            if failures:
                red.append(step)
    finally:
        for copy in tree.copies.values():
            shutil.rmtree(copy, ignore_errors=True)
    print(f"lint: {'failed: ' + ' '.join(red) if red else 'all steps pass'}")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
