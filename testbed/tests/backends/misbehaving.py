# SPDX-License-Identifier: GPL-2.0
"""Builds the faulty modules of tests/misbehave, for tests of how a failure is detected."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from testbed.base.cache import cache_root, remove
from testbed.base.progress import silent
from testbed.kernels.build import ensure_kernel, run_make
from testbed.kernels.modules import ModuleSet
from testbed.kernels.series import KernelSpec

SOURCES = Path(__file__).resolve().parent / "misbehave"


@functools.cache
def misbehaving(spec: KernelSpec | None = None) -> ModuleSet:
    """Build misbehave and the modules ending_KIND_kunit for a kernel; they are removed when Python ends."""
    build = ensure_kernel(spec or KernelSpec())
    parent = cache_root() / "run"
    parent.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=parent))
    atexit.register(remove, work)
    for path in SOURCES.iterdir():
        if path.suffix in (".c", "") and path.is_file():
            shutil.copy(path, work)
    words = ["-C", str(build.kdir), f"ARCH={build.arch}", f"M={work}", "modules"]
    run_make(words, work / "log", "building misbehave", 10, silent)
    return ModuleSet({path.stem: path for path in work.glob("*.ko")}, "test")
