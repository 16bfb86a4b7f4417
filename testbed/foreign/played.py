# SPDX-License-Identifier: GPL-2.0
"""Scenarios of other projects that are experiments here, each judged by its checks.

    flent     flent's tests of LEDBAT
    wifi      picoquic's suspended Wi-Fi links
    recorded  links that somebody recorded, in mahimahi's format. They are not part of the project: LBE_TRACES names
              their folder, or LBE_FOREIGN one that has packetdrill's archive too. A file of it is a recording if its
              first line is a time in ms and nothing else; FILE.gz is decompressed first. Other files, such as a README
              or an archive, are ignored
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.errors import LbeError
from ..base.places import TESTBED
from ..base.progress import Report, silent
from ..kernels.series import DEFAULT_SERIES
from ..results import digest
from ..robustness.soak import Lived, play
from ..run.runner import Options
from ..spec import links
from . import outside

VARIABLE = "LBE_TRACES"
PACKET_BYTES = 1500
#: the first line of a recording: a time in ms
TIME = re.compile(rb"[ \t]*\d+(\.\d+)?[ \t]*(\r?\n|$)")
RECORDED = "recorded"
EXPERIMENTS = {
    "flent": TESTBED / "experiments" / "suite" / "flent.toml",
    "wifi": TESTBED / "experiments" / "suite" / "wifi_suspensions.toml",
    RECORDED: TESTBED / "foreign" / "recorded.toml",
}


class TracesAbsent(LbeError):
    """There are no recordings on this machine. This is a separate state, which is never green."""


def recordings() -> dict[str, Path]:
    """Name -> file of the recorded links; the name is the file's, without .gz. Raises TracesAbsent, and LbeError if two
    files have the same name."""
    folder = outside.place(VARIABLE, "", "traces")
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if not path.is_file() or not TIME.match(links.content(path)):
            continue
        name = path.name.removesuffix(".gz")
        if name in found:
            raise LbeError(f"{folder}: {found[name].name} and {path.name} are one recording; remove one of them")
        found[name] = path
    if not found:
        raise TracesAbsent(
            f"recorded links are absent: {folder} has none; set {VARIABLE} or {outside.FOLDER} to a folder of "
            "traces in mahimahi's format"
        )
    return found


def sha256(recording: Path) -> str:
    """Hash of a recording, the same whether it is compressed or not."""
    return hashlib.sha256(links.content(recording)).hexdigest()


def sets_of(recording: Path) -> dict[str, Any]:
    """The settings of an experiment that plays a recording: the trace, and its mean as the link's rate."""
    mean = links.mean_mbit(links.make(str(recording), PACKET_BYTES), PACKET_BYTES)
    return {"topology.link_trace": str(recording), "topology.rate_mbit": round(mean, 3)}


def together(several: dict[str, Lived]) -> Lived:
    """The results of several recordings as those of one experiment with a dimension more."""
    first = next(iter(several.values()))
    document = first.document | {"sets": {}, "cases": [], "asked_cases": [], "wrong": [], "differs": []}
    document[digest.SECONDS] = sum(one.document[digest.SECONDS] for one in several.values())
    for name, one in several.items():
        for case in one.document["cases"]:
            document["cases"].append(case | {"case": {"recording": name, **case["case"]}})
        document["asked_cases"] += [{"recording": name, **case} for case in one.document["asked_cases"]]
        for key in ("wrong", "differs"):
            document[key] += [f"recording={name} {text}" for text in one.document[key]]
    return Lived(
        document,
        sum(one.checks for one in several.values()),
        document["wrong"],
        document["differs"],
        sum(one.missing for one in several.values()),
    )


def run(name: str, prefix: str, mode: str, series: str | None = None, report: Report = silent) -> Lived:
    """Run the experiment of a suite. Raises TracesAbsent, and a run's errors."""
    options = Options(mode, command=f"python3 -m testbed foreign --suite {name}")
    path, kernel = EXPERIMENTS[name], series or DEFAULT_SERIES
    if name == RECORDED:
        found = recordings()
        hashes = {one: sha256(file) for one, file in found.items()}
        lived = together(
            {one: play(path, replace(options, sets=sets_of(file)), kernel, report) for one, file in found.items()}
        )
        lived = replace(lived, document=lived.document | {"recordings": hashes})
    else:
        lived = play(path, options, kernel, report)
    return replace(lived, document=lived.document | {"experiment": f"{prefix}{name}"})
