# SPDX-License-Identifier: GPL-2.0
"""ns-3's package for Python, which contains libraries and headers to compile a C++ program with.

Its Python bindings are not used (they need cppyy, which has to be built). The package is fetched once, into the cache.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from ...base.cache import cache_root, lock, whole_entry
from ...base.content import hash_of_programs
from ...base.errors import LbeError
from ...base.progress import Report, silent

PACKAGE = "ns3==3.44.post0"
VERSION = PACKAGE.partition("==")[2].partition(".post")[0]
MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats", "bridge", "mpi")


def run(words: list[str], limit_s: float) -> str:
    """Standard output of a command. Raises LbeError."""
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=limit_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LbeError(f"ns-3: {words[0]}: {error}") from error
    if done.returncode:
        raise LbeError(f"ns-3: {Path(words[0]).name}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _fetch(final: Path) -> None:
    with whole_entry(final) as work:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-input"]
        run([*pip, "--disable-pip-version-check", "--only-binary", ":all:", "-d", str(work), PACKAGE], 300)
        for wheel in work.glob("*.whl"):
            with zipfile.ZipFile(wheel) as file:
                file.extractall(work)
            wheel.unlink()


def ensure(source: Path, report: Report = silent) -> Path:
    """The compiled program. Raises LbeError if the package or a compiler is not available."""
    final = cache_root() / "ns3" / PACKAGE.replace("==", "-")
    words = ["g++", "-O2", "-std=c++20", "-w", "-I", str(final / "ns3" / "include"), str(source)]
    key = hashlib.sha256((hash_of_programs([source]) + " ".join(words[:4])).encode()).hexdigest()[:16]
    program = final / f"{source.stem}-{key}"
    with lock("ns3", report):
        if not (final / "ns3").is_dir():
            report("fetching ns-3", 0, None)
            _fetch(final)
        if program.is_file():
            return program
        if shutil.which("g++") is None:
            raise LbeError(f"ns-3: no g++ here to compile {source.name} with")
        report(f"compiling {source.name} for ns-3", 0, None)
        libraries = final / "ns3" / "lib64"
        linked = [f"-l:{path.name}" for name in MODULES for path in libraries.glob(f"libns3*-{name}.so")]
        made = program.with_suffix(".new")
        words += ["-o", str(made), "-L", str(libraries), f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"]
        run([*words, *linked], 300)
        made.rename(program)
    return program
