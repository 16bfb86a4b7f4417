# SPDX-License-Identifier: GPL-2.0
"""The BPF writer of hints, examples/age.bpf.c: compiled, and put in place on a device."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "examples" / "age.bpf.c"
#: puts the program in place on a device
LOAD = "tc qdisc add dev {dev} clsact && tc filter add dev {dev} egress bpf da obj {program} sec tc"


def compiled(source: Path, program: Path) -> Path:
    """Compile as the head comment of SOURCE does. Return: the program."""
    include = f"/usr/include/{os.uname().machine}-linux-gnu"
    options = ["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", f"-I{include}"]
    subprocess.run(["clang", *options, "-c", source, "-o", program], check=True)
    return program
