# SPDX-License-Identifier: GPL-2.0
"""Compile a module's arithmetic header for this machine, to test it against a reference.

The headers contain pure functions (with types from include/lbe/arith.h), so a few lines of
C around them make a shared library that ctypes can call.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Overflows of signed numbers and invalid shifts trap, so that they end the test.
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fsanitize=undefined",
    "-fsanitize-undefined-trap-on-error",
)


def load(source: str, folder: Path, include: Path, name: str = "host") -> ctypes.CDLL:
    """Compile `source` and load it.

    folder: folder for the library (pytest's tmp_path).
    include: folder of the header under test, searched in addition to include/.
    Raises RuntimeError with the compiler's output if it does not compile.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("no C compiler: install gcc")
    unit = folder / f"{name}.c"
    library = folder / f"lib{name}.so"
    unit.write_text(source)
    command = [compiler, *FLAGS, "-shared", "-fPIC", f"-I{ROOT / 'include'}", f"-I{include}"]
    run = subprocess.run([*command, "-o", library, unit], check=False, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{name}.c does not compile:\n{run.stderr}")
    return ctypes.CDLL(str(library))
