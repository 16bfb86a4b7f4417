# SPDX-License-Identifier: GPL-2.0
"""Results of runs in memory and in versioned files.

A result set is NAME.json (everything needed to reproduce it, and the metrics of each run) and NAME.npz
(the raw series; the JSON has its name and hash). Documentation/testbed.md describes format 2.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import LbeError
from ..measure.series import Series
from ..spec.records import QUEUE, RECV, SEND, WEB

#: formats of a run's record in the cache, and of the files of a result set
FORMAT, FILE_FORMAT = 1, 2
SERIES = {"send": SEND, "recv": RECV, "queue": QUEUE, "web": WEB}


class BadResults(LbeError):
    """A results file is unreadable, has another format, or does not match its hash."""


@dataclass
class Record:
    """The raw result of one run. ``facts`` is plain JSON."""

    facts: dict[str, Any]
    series: Series


# ---------------------------------------------------------------------------------------- files


def plain(value: Any) -> Any:
    """A value for JSON: NaN and infinity become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def pack(series: Series) -> dict[str, np.ndarray]:
    """Series as named arrays; events as one array of text."""
    text = "\n".join(f"{t!r} {flow} {event} {detail}".rstrip() for t, flow, event, detail in series.events)
    arrays = {
        "send": series.send,
        "recv": series.recv,
        "queue": series.queue,
        "events": np.frombuffer(text.encode(), dtype=np.uint8),
    }
    # only runs with web traffic have web records
    return arrays | ({"web": series.web} if len(series.web) else {})


def unpack(arrays: dict[str, np.ndarray]) -> Series:
    """The inverse of :func:`pack`."""
    events = []
    for line in arrays["events"].tobytes().decode().splitlines():
        words = line.split(" ", 3)
        events.append((float(words[0]), int(words[1]), words[2], words[3] if len(words) > 3 else ""))
    series = Series(arrays["send"], arrays["recv"], arrays["queue"], events)
    series.web = arrays.get("web", series.web)
    return series


def series_bytes(series: Series) -> bytes:
    """All series as one byte string, for comparisons byte for byte."""
    parts = pack(series)
    return b"".join(parts[name].tobytes() for name in sorted(parts))


def series_hash(series: Series) -> str:
    """SHA-256 of :func:`series_bytes`."""
    return hashlib.sha256(series_bytes(series)).hexdigest()


def _packed(arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz file like numpy's, but compressed at the fastest level: the default took most of the time of a report."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


@dataclass
class Result:
    """One run in a result set."""

    case: dict[str, str]
    seed: int
    metrics: dict[str, float]
    facts: dict[str, Any]
    series: Series


@dataclass
class ResultSet:
    """An experiment's results, in memory or from files."""

    experiment: str
    mode: str
    text: str
    sets: dict[str, Any]
    provenance: dict[str, Any]
    results: list[Result]
    #: the requested cases and seeds, whether or not their runs exist
    asked_cases: list[dict[str, str]]
    asked_seeds: list[int]
    #: hashes of everything that affected these results (run/identity.py)
    identity: dict[str, Any] = field(default_factory=dict)
    #: requested cases that were added to the experiment after these results were made
    new_cases: list[dict[str, str]] = field(default_factory=list)
    #: the experiment's file has changed since, and may have metrics that these results lack
    outgrown: bool = False

    def missing(self) -> list[tuple[dict[str, str], int]]:
        """Requested runs that do not exist, as (case, seed)."""
        have = {(frozenset(run.case.items()), run.seed) for run in self.results}
        return [
            (case, seed)
            for case in self.asked_cases
            for seed in self.asked_seeds
            if (frozenset(case.items()), seed) not in have
        ]

    def lost(self) -> list[tuple[dict[str, str], int]]:
        """Runs that were requested when these results were made, and do not exist."""
        return [(case, seed) for case, seed in self.missing() if case not in self.new_cases]

    def save(self, folder: Path) -> Path:
        """Write NAME.json and NAME.npz; returns the JSON's path."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {}
        for index, result in enumerate(self.results):
            for key, array in pack(result.series).items():
                arrays[f"{index}/{key}"] = array
        data = _packed(arrays)
        series_name = f"{self.experiment}.npz"
        (folder / series_name).write_bytes(data)
        document = {
            "format": FILE_FORMAT,
            "experiment": self.experiment,
            "mode": self.mode,
            "sets": self.sets,
            "provenance": self.provenance,
            "identity": self.identity,
            "asked": {"cases": self.asked_cases, "seeds": self.asked_seeds},
            "file": self.text,
            "series": {"file": series_name, "sha256": hashlib.sha256(data).hexdigest()},
            "runs": [
                {"case": run.case, "seed": run.seed, "metrics": run.metrics, "facts": run.facts} for run in self.results
            ],
        }
        path = folder / f"{self.experiment}.json"
        path.write_text(json.dumps(plain(document), indent=1) + "\n", encoding="utf-8")
        return path


PROVENANCE_KEYS = ("command", "kernel", "modules_version", "testbed", "backend")


def load(path: Path) -> ResultSet:
    """Read a result set; checks format, hash and completeness."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise BadResults(f"{path}: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FILE_FORMAT:
        got = document.get("format") if isinstance(document, dict) else "none"
        raise BadResults(f"{path}: format {got!r}, this testbed reads {FILE_FORMAT}")
    missing = [
        key
        for key in ("experiment", "mode", "sets", "provenance", "identity", "asked", "file", "series", "runs")
        if key not in document
    ]
    missing += [f"provenance.{key}" for key in PROVENANCE_KEYS if key not in document.get("provenance", {})]
    if missing:
        raise BadResults(f"{path}: {', '.join(missing)} missing")
    series_path = path.parent / document["series"]["file"]
    try:
        data = series_path.read_bytes()
    except OSError as error:
        raise BadResults(f"{path}: {error}") from error
    if hashlib.sha256(data).hexdigest() != document["series"]["sha256"]:
        raise BadResults(f"{series_path}: its hash is not the one in {path.name}")
    arrays = np.load(io.BytesIO(data))
    results = []
    for index, run in enumerate(document["runs"]):
        have = [key for key in (*SERIES, "events") if f"{index}/{key}" in arrays.files]
        series = unpack({key: arrays[f"{index}/{key}"] for key in have})
        metrics = {name: math.nan if value is None else value for name, value in run["metrics"].items()}
        results.append(Result(run["case"], run["seed"], metrics, run["facts"], series))
    return ResultSet(
        document["experiment"],
        document["mode"],
        document["file"],
        document["sets"],
        document["provenance"],
        results,
        document["asked"]["cases"],
        document["asked"]["seeds"],
        document["identity"],
    )
