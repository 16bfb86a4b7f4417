#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The ABI of libvulture as text: abi.py LIBRARY [--check].

The text has the soname, the name and version of each symbol that LIBRARY exports, each prototype as the compiler reads
it in vulture.h, the constants, and the layout of the one struct that is not opaque. --check compares it with the
committed libvulture.abi. A line that is gone or has changed breaks programs: raise the soname and the version, then
write the file again. A new line is a new function: write the file again, and name the symbol in
debian/libvulture1.symbols.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HEADER = FOLDER / "vulture.h"
COMMITTED = FOLDER / "libvulture.abi"
LAYOUT = """
#include <stdio.h>
#include "vulture.h"
int main(void)
{
	printf("struct vulture_address: %zu bytes, remote at %zu\\n", sizeof(struct vulture_address),
	       offsetof(struct vulture_address, remote));
}
"""


def output(*words: object) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def symbols(library: Path) -> list[str]:
    """name@@VERSION of each exported function."""
    listed = output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    return sorted(words[2] for words in map(str.split, listed) if words[1] == "T")


def prototypes() -> list[str]:
    """The prototypes of vulture.h as the compiler reads them."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "info"
        output("cc", "-aux-info", info, "-fsyntax-only", "-x", "c", HEADER)
        lines = info.read_text().splitlines()
    found = [re.sub(r"/\*.*?\*/ *", "", line).strip() for line in lines if f"{HEADER}:" in line]
    return sorted(line.removeprefix("extern ") for line in found if "vulture_" in line)


def layout() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "layout"
        (Path(folder) / "layout.c").write_text(LAYOUT)
        output("cc", "-I", FOLDER, "-o", program, Path(folder) / "layout.c")
        return output(program).splitlines()


def abi(library: Path) -> list[str]:
    soname = re.search(r"SONAME +(\S+)", output("objdump", "-p", library))
    constants = re.findall(r"^#define (VULTURE_\w+)\s+(\d+)", HEADER.read_text(), re.MULTILINE)
    return [
        f"soname {soname[1] if soname else 'none'}",
        *(f"symbol {name}" for name in symbols(library)),
        *(f"prototype {line}" for line in prototypes()),
        *(f"constant {name} {value}" for name, value in constants),
        *layout(),
    ]


def differences(library: Path) -> list[str]:
    """Lines that are in only one of the library's ABI and the committed one."""
    committed = [line for line in COMMITTED.read_text().splitlines() if line and not line.startswith("#")]
    now = abi(library)
    broken = [f"breaks programs: gone or changed: {line}" for line in committed if line not in now]
    return broken + [f"new, not in {COMMITTED.name}: {line}" for line in now if line not in committed]


def main(arguments: list[str]) -> int:
    if not arguments or arguments[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    library = Path(arguments[0])
    if not arguments[1:]:
        print("# SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0", *abi(library), sep="\n")
        return 0
    found = differences(library)
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
