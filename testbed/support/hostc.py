# SPDX-License-Identifier: GPL-2.0
"""Compile a module's arithmetic header for this machine, to test it against a reference.

The headers contain pure functions (with types from include/lbe/arith.h), so a few lines of
C around them make a shared library that ctypes can call. A program with fuzz.h gives them the
numbers of hostile peers.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Overflows of signed numbers, invalid shifts and divisions by zero end the test.
FLAGS = ("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined")
# In a library they trap, in a program they are printed.
LIBRARY = ("-O2", "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC")
PROGRAM = ("-O1", "-fno-sanitize-recover")


def load(source: str, folder: Path, include: Path, name: str = "host") -> ctypes.CDLL:
    """Compile `source` and load it.

    folder: folder for the library (pytest's tmp_path).
    include: folder of the header under test, searched in addition to include/.
    Raises RuntimeError with the compiler's output if it does not compile.
    """
    library = folder / f"lib{name}.so"
    _compile(source, folder / f"{name}.c", library, (*LIBRARY, f"-I{include}"))
    return ctypes.CDLL(str(library))


def fuzz(source: str, folder: Path, module: Path, peers: int) -> list[int]:
    """Compile a module's tests/law_fuzz.c, which uses fuzz.h, and run it with so many hostile peers.

    source: what the program needs in front of it.
    folder: folder for the program.
    module: folder of the module, searched for headers too.
    Return the number of events in each state of the law. Raises RuntimeError with the compiler's output if it does not
    compile, or with what the program found: a peer, its event, and undefined behaviour or a number out of range.
    """
    program = folder / "fuzz"
    source += (module / "tests" / "law_fuzz.c").read_text(encoding="utf-8")
    _compile(source, folder / "fuzz.c", program, (*PROGRAM, f"-I{module}", f"-I{Path(__file__).parent}"))
    run = subprocess.run([program, "1", str(peers)], check=False, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"status {run.returncode}: {run.stderr}")
    return [int(word) for word in run.stdout.split()]


def table(name: str, text: str) -> str:
    """A static struct or array with its values, cut out of a source."""
    found = re.search(rf"^static [^\n;(]*\b{name}(?:\[\])? [^\n;(]*= {{\n.*?^}};\n", text, re.MULTILINE | re.DOTALL)
    assert found, f"no {name}"
    return found[0]


def bare(path: Path) -> str:
    """Source of a module without the kernel's headers and those of trace points, marks and parameters, in whose place a
    test puts others (fake_tcp.h). The suite's headers that include some of these, and the module's own, are put in."""
    kernel = r"<(?:linux|net)/[\w/]+\.h>|<lbe/(?:mark|param)\.h>|\"\w+_trace\.h\""
    text = re.sub(rf"^#include (?:{kernel})\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = re.sub(r"^#include <(lbe/(?:control|counters|info|sender)\.h)>\n",
                  lambda found: bare(ROOT / "include" / found[1]), text, flags=re.MULTILINE)  # fmt: skip
    return re.sub(r'^#include "(\w+\.h)"\n', lambda found: bare(path.parent / found[1]), text, flags=re.MULTILINE)


def sender(path: Path) -> str:
    """Source of a congestion control's module for this machine, with fake_tcp.h in front of it. Its trace points do
    nothing."""
    text = bare(path)
    traces = sorted(set(re.findall(r"\btrace_\w+(?=\()", text)))
    return "\n".join(['#include "fake_tcp.h"', *(f"#define {one}(...) do {{ }} while (0)" for one in traces), text])


def _compile(source: str, unit: Path, result: Path, flags: tuple[str, ...]) -> None:
    """Write the source to ``unit`` and compile it. Raises RuntimeError if that fails."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("no C compiler: install gcc")
    unit.write_text(source, encoding="utf-8")
    command = [compiler, *FLAGS, f"-I{ROOT / 'include'}", *flags, "-o", str(result), str(unit)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{unit.name} does not compile:\n{run.stderr}")
