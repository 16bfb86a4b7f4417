# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed downloads: downloads under vulture from Linux senders with cubic, bbr and reno, by real programs.

The numbers are written to downloads.json, a document for the pages. Exit status: 0 success; 1 a bound is missed or a
program failed; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backends.tools import CONTROL_SOURCES, build_go_program, build_vulturectl
from ..base.columns import aligned
from ..base.errors import LbeError
from ..base.places import TESTBED
from ..base.progress import make_progress
from ..results import digest
from . import command, machine

NAME = "downloads"
CONTROLS = ("cubic", "bbr", "reno")
PROGRAMS = ("curl", "aria2c", "go")
GUEST = TESTBED / "proof" / "guest"
FETCH = GUEST / "fetch.go"
SCRIPTS = (GUEST / "download.py", machine.PERSON)
#: files that affect the numbers, besides the modules
FILES = [
    "testbed/proof/guest/download.py", "testbed/proof/guest/fetch.go", "testbed/proof/guest/person.py",
    "testbed/proof/machine.py", "testbed/proof/programs.sh", "testbed/backends/distro.py",
    *(name for name in CONTROL_SOURCES if not name.endswith(".skel.h")),
    *(f"packaging/{name}" for name in machine.UNITS),
]  # fmt: skip
METRICS = (
    "page_empty", "page_plain", "page", "page_second", "beside_plain", "beside", "beside_second", "alone", "stopped",
    "removed",
)  # fmt: skip
#: Vulture is on the machine that receives; two CPUs as most machines have at least, in virtual time.
CPUS = 2
#: of the emulated machine, and of this one, which may have other work
LIMIT_S, WALL_LIMIT_S = 600, 7200
EXAMPLES = """\
examples:
  python3 -m testbed downloads            every control, three programs each: some minutes a control on an idle machine
  python3 -m testbed downloads bbr        this one; what the file has of others stays, if it is of the same tree
"""
Told = dict[str, Any]


@dataclass(frozen=True)
class DownloadBound:
    """What must hold for a download. sound: whether it does."""

    text: str
    sound: Callable[[Told], bool]


#: Wider than what was measured, for other versions of the kernel and of the programs.
BOUNDS = (
    DownloadBound(
        "all connections that the program should open are in the background",
        lambda told: told["connections"] == told["expected_connections"],
    ),
    DownloadBound(
        "the downloads last longer than what is measured of them",
        lambda told: told["long_plain"] and told["long_first"] and told["long_second"],
    ),
    DownloadBound("alone the download has nearly the whole link", lambda told: told["alone"] > 85),
    DownloadBound(
        "a page beside it takes about the time that it takes on an empty link",
        lambda told: told["page"] < 1.25 * told["page_empty"],
    ),
    DownloadBound("without vulture a page takes much longer", lambda told: told["page_plain"] > 1.4 * told["page"]),
    DownloadBound(
        "beside a page the download has much less than without vulture",
        lambda told: told["beside"] < 0.5 * told["beside_plain"],
    ),
    DownloadBound("it goes on at full rate after the service has been stopped", lambda told: told["stopped"] > 85),
    DownloadBound(
        "after a second start a page takes about the time that it takes on an empty link",
        lambda told: told["page_second"] < 1.25 * told["page_empty"],
    ),
    DownloadBound("it goes on at full rate after the module has been removed", lambda told: told["removed"] > 85),
    DownloadBound(
        "what has arrived is what the server has", lambda told: told["intact_first"] and told["intact_second"]
    ),
)


class DownloadsUnknown(LbeError):
    """The name of the control is not valid."""

    exit_status = 2


def faults(told: Told) -> list[str]:
    """The bounds that a download misses, with what it has measured."""
    return [f"{told['control']}, {told['program']}: {bound.text}: {told}" for bound in BOUNDS if not bound.sound(told)]


def measured(control: str, out: Path, programs: tuple[str, ...] = PROGRAMS) -> list[Told]:
    """What download.py says of each program with a sender's control."""
    words = " ".join((control, *programs))
    files = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS}
    script = f"cd /tmp/job\nexec python3 download.py {words}\n"
    said = machine.boot(
        script, out, files, LIMIT_S, cpus=CPUS, wall_limit_s=WALL_LIMIT_S, programs=(build_go_program(FETCH),)
    )
    return [json.loads(line) for line in said.splitlines() if line.startswith('{"control"')]


def with_case(document: digest.Document, told: Told) -> None:
    """Add a download to a document; it replaces an earlier one of that case."""
    case = {"sender": told["control"], "program": told["program"]}
    made = digest.counted(case, METRICS, [round(float(told[name]), 4) for name in METRICS], faults=faults(told))
    cases = [one for one in document["cases"] if one["case"] != case]
    document["cases"] = sorted(
        [*cases, made],
        key=lambda one: (CONTROLS.index(one["case"]["sender"]), PROGRAMS.index(one["case"]["program"])),
    )


def table(document: digest.Document) -> str:
    """A line for each download."""
    rows = [("sender", "program", *METRICS)]
    for one in document["cases"]:
        rows.append((*one["case"].values(), *(f"{one['metrics'][name][0]:.2f}" for name in METRICS)))
    return "\n".join(aligned(rows, words=2))


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser(
        NAME,
        help="measure downloads under vulture from Linux's senders, by curl, aria2c and a static Go program",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="CONTROL", help=f"of {', '.join(CONTROLS)} (default: all)")
    sub.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help=f"where {NAME}.json is read and written"
    )
    sub.set_defaults(do=run)


def run(args: argparse.Namespace) -> int:
    """Run the command: measure, print and write; returns the exit status."""
    unknown = [name for name in args.names if name not in CONTROLS]
    if unknown:
        raise DownloadsUnknown(f"no control {', '.join(unknown)}; there are: {', '.join(CONTROLS)}")
    progress = make_progress()
    path = args.out / f"{NAME}.json"
    failed = []
    try:
        document = command.empty(progress, NAME, FILES)
        if path.is_file() and command.same_tree(old := digest.load(path), document):
            document = old
        machine.ensure_disk(progress)
        build_vulturectl(progress)
        names = args.names or CONTROLS
        for number, name in enumerate(names):
            began = time.monotonic()
            try:
                with tempfile.TemporaryDirectory(prefix="lbe-downloads.") as folder:
                    said = measured(name, Path(folder) / "out")
            except LbeError as error:
                failed.append(f"{name}: {error}")
                continue
            for told in said:
                with_case(document, told)
                failed += faults(told)
            digest.save(document, args.out)
            progress(f"{name}: {time.monotonic() - began:.0f} s", number + 1, len(names))
    finally:
        progress.close()
    print(table(document))
    for text in failed:
        print(f"FAILED: {text}")
    return 1 if failed else 0
