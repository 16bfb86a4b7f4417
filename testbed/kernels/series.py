# SPDX-License-Identifier: GPL-2.0
"""The supported kernels: series, flavours, and the tools that a build needs."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import KernelError, MissingTools, UnsupportedSeries

HERE = Path(__file__).resolve().parent
FRAGMENTS = HERE / "fragments"

#: series used if none is given; LBE_SERIES changes it for any command, `make check SERIES=7.2` for the tests
DEFAULT_SERIES = os.environ.get("LBE_SERIES") or "6.12"
# series -> the Debian suite with linux-source-<series>
SUITES = {"6.1": "bookworm", "6.12": "trixie", "7.2": "trixie-backports"}
# flavour -> architecture: user mode, or a whole machine in QEMU
ARCHES = {"plain": "um", "sanitizer": "um", "race": "x86_64", "memory": "x86_64"}
FLAVOURS = tuple(ARCHES)
USER_MODE_FLAVOURS = tuple(flavour for flavour, arch in ARCHES.items() if arch == "um")
# architecture -> make's target, and the bootable file that it makes
IMAGES = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}
# A source tree given by the user may be of any series that include/lbe/compat.h supports.
OLDEST, NEWEST = (6, 1), (7, 2)


# program -> Debian package
TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
    "perl": "perl",
    "awk": "mawk",
}


@dataclass(frozen=True)
class KernelSpec:
    """The kernel to use: a series of SUITES, a flavour of FLAVOURS, a user's source tree or None."""

    series: str = DEFAULT_SERIES
    flavour: str = "plain"
    source_dir: Path | None = None


def series_number(series: str) -> tuple[int, ...]:
    """ "6.12" as (6, 12), for comparisons."""
    return tuple(int(number) for number in series.split("."))


def key_of(*parts: object) -> str:
    """Hash of any plain data, twelve hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_spec(spec: KernelSpec) -> None:
    """Raises UnsupportedSeries for a series or flavour that is not known."""
    if spec.flavour not in FLAVOURS:
        raise UnsupportedSeries(f"kernel flavour {spec.flavour!r} is not known; use one of: {', '.join(FLAVOURS)}")
    if spec.series not in SUITES and spec.source_dir is None:
        raise UnsupportedSeries(f"kernel series {spec.series!r} is not supported; use one of: {', '.join(SUITES)}")


def check_tools(tools: dict[str, str]) -> None:
    """Raises MissingTools with the packages to install, or KernelError if the machine is not x86-64."""
    if platform.machine() != "x86_64":
        raise KernelError(f"user-mode kernels run on x86_64 only, this machine is {platform.machine()}")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        packages = " ".join(sorted({tools[tool] for tool in missing}))
        raise MissingTools(f"not installed: {', '.join(missing)}. Install with: apt-get install {packages}")
