# SPDX-License-Identifier: GPL-2.0
"""Reading the results folder of a run into a record. If anything is missing, IncompleteRun names it."""

from __future__ import annotations

import json
import platform
import re
import sys
from pathlib import Path

import numpy as np

from ..base.errors import LbeError
from ..measure.metrics import Run
from ..measure.series import Series
from ..results.files import SERIES, Record
from .job import Job

#: the kernel's own modules, which have no version
IN_TREE = ("tcp_vegas", "tcp_bbr", "tcp_lp_intree")


class IncompleteRun(LbeError):
    """A run lacks something that a result must have; the text names it."""


def _read(out: Path, name: str, allow_empty: bool = False) -> str:
    path = out / name
    if not path.is_file():
        raise IncompleteRun(f"the run left no {name}")
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.strip() and not allow_empty:
        raise IncompleteRun(f"the run's {name} is empty")
    return text


def _rows(out: Path, nodes: list[str], kind: str) -> np.ndarray:
    """Records of one kind of all nodes, in node order."""
    parts = []
    for node in nodes:
        path = out / f"{node}.{kind}"
        if not path.is_file():
            continue
        size = path.stat().st_size
        if size % SERIES[kind].itemsize:
            raise IncompleteRun(f"{path.name} has {size} bytes, no multiple of a record's {SERIES[kind].itemsize}")
        parts.append(np.fromfile(path, dtype=SERIES[kind]))
    return np.concatenate(parts) if parts else np.empty(0, dtype=SERIES[kind])


def _events(out: Path, nodes: list[str]) -> list[tuple[float, int, str, str]]:
    events = []
    for node in nodes:
        for line in _read(out, f"{node}.events", allow_empty=True).splitlines():
            words = line.split(" ", 3)
            if len(words) < 3 or not re.fullmatch(r"-?\d+", words[0]):
                raise IncompleteRun(f"{node}.events: unreadable line {line!r}")
            events.append(
                (
                    int(words[0]) / 1e9,
                    int(words[1]) if words[1].isdigit() else 0,
                    words[2],
                    words[3] if len(words) > 3 else "",
                )
            )
    return sorted(events)


def _counters(text: str) -> dict[str, int]:
    """Counters of /proc/net/snmp and netstat (pairs of lines, names and numbers), without zeros."""
    table = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[::2], lines[1::2]):
        group, _, keys = names.partition(":")
        for key, value in zip(keys.split(), numbers.split()[1:]):
            if value != "0":
                table[f"{group}.{key}"] = int(value)
    return table


def _modules(text: str) -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = {}
    current = ""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == "module":
            current = value
            table[current] = {}
        else:
            table[current][key] = value
    return table


def _same(asked: str, got: str) -> bool:
    return asked.split() == got.split()


def collect(job: Job, out: Path) -> Record:
    """Read a run's folder. Raises IncompleteRun if anything is missing or differs from the job's settings."""
    nodes = list(job.network.nodes)
    agents = [plan.node for plan in job.plans]
    sysctls, qdiscs, counters = {}, {}, {}
    for name in nodes:
        lines = (line.partition(" = ") for line in _read(out, f"{name}.sysctl").splitlines())
        sysctls[name] = {key: value.replace("\t", " ") for key, _, value in lines}
        for key, asked in job.network.nodes[name].sysctl.items():
            got = sysctls[name].get(key)
            if got is None:
                raise IncompleteRun(f"{name}: sysctl {key} was not read back")
            if not _same(asked, got):
                raise IncompleteRun(f"{name}: sysctl {key} is {got!r}, asked for {asked!r}")
        try:
            qdiscs[name] = json.loads(_read(out, f"{name}.qdisc"))
        except json.JSONDecodeError as error:
            raise IncompleteRun(f"{name}.qdisc is no JSON: {error}") from error
        counters[name] = _counters(_read(out, f"{name}.counters"))
    modules = _modules(_read(out, "modules", allow_empty=True))
    for module in job.modules:
        if module not in modules:
            raise IncompleteRun(f"module {module} was not read back")
        if module not in IN_TREE and not modules[module].get("version"):
            raise IncompleteRun(f"module {module} has no version")
    series = Series(
        _rows(out, agents, "send"),
        _rows(out, agents, "recv"),
        _rows(out, agents, "queue"),
        _events(out, agents),
        _rows(out, agents, "web"),
    )
    for what in ("recv", "queue"):
        if len(getattr(series, what)) == 0:
            raise IncompleteRun(f"the run recorded no {what} series")
    for flow in job.flows:
        starts_inside = flow.start_s < job.setting.head.duration_s
        if starts_inside and not (series.recv["flow"] == flow.id).any():
            raise IncompleteRun(f"flow {flow.group} (number {flow.id}) has no received series")
    facts = {
        "uname": _read(out, "uname").strip(),
        "sysctls": sysctls,
        "qdiscs": qdiscs,
        "counters": counters,
        "modules": modules,
    }
    return Record(facts, series)


def compute(job: Job, record: Record) -> dict[str, float]:
    """All metrics of one run."""
    run = Run(record.series, job.setting, job.flows, record.facts)
    return {name: run.value(metric) for name, metric in job.setting.metrics.items()}


def host_facts() -> dict[str, str]:
    """Facts about this machine for the provenance: versions, no host name."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
    }
