# SPDX-License-Identifier: GPL-2.0
"""ns-3 on the testbed's dumbbell, to compare the cost of real kernel code with that of a simulator.

Its Python package contains libraries and headers, with which dumbbell.cc is compiled. Its Python bindings are not
used (they need cppyy, which has to be built). The package is fetched once, into the cache.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from ...base.cache import cache_root, lock, whole_entry
from ...base.errors import LbeError
from ...base.progress import Report, silent

PACKAGE = "ns3==3.44.post0"
SOURCE = Path(__file__).with_name("dumbbell.cc")
MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats", "bridge", "mpi")


def _run(words: list[str], limit_s: float) -> str:
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=limit_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LbeError(f"ns-3: {words[0]}: {error}") from error
    if done.returncode:
        raise LbeError(f"ns-3: {Path(words[0]).name}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def ensure(report: Report = silent) -> Path:
    """The compiled dumbbell. LbeError if the package or a compiler is not available."""
    final = cache_root() / "ns3" / PACKAGE.replace("==", "-")
    program = final / "dumbbell"
    with lock("ns3", report):
        if program.is_file() and program.stat().st_mtime >= SOURCE.stat().st_mtime:
            return program
        if not (final / "ns3").is_dir():
            report("fetching ns-3", 0, None)
            with whole_entry(final) as work:
                pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-input"]
                _run([*pip, "--disable-pip-version-check", "--only-binary", ":all:", "-d", str(work), PACKAGE], 300)
                for wheel in work.glob("*.whl"):
                    with zipfile.ZipFile(wheel) as file:
                        file.extractall(work)
                    wheel.unlink()
        if shutil.which("g++") is None:
            raise LbeError("ns-3: no g++ here to compile the dumbbell with")
        report("compiling the dumbbell for ns-3", 0, None)
        libraries = final / "ns3" / "lib64"
        linked = [f"-l:{path.name}" for name in MODULES for path in libraries.glob(f"libns3*-{name}.so")]
        words = [
            "g++",
            "-O2",
            "-std=c++20",
            "-w",
            "-I",
            str(final / "ns3" / "include"),
            str(SOURCE),
            "-o",
            str(program),
        ]
        words += ["-L", str(libraries), f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined", *linked]
        _run(words, 300)
    return program


def measure(flows: int, seconds: float, rounds: int, report: Report = silent) -> tuple[float, float]:
    """(wall seconds of the fastest round, Mbit/s received)."""
    program = ensure(report)
    fastest, mbit = float("inf"), 0.0
    for _ in range(rounds):
        began = time.monotonic()
        mbit = float(_run([str(program), str(flows), f"{seconds:g}"], 600))
        fastest = min(fastest, time.monotonic() - began)
    return fastest, mbit
