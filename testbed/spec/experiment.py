# SPDX-License-Identifier: GPL-2.0
"""Experiment files: one TOML file each under testbed/experiments/SYSTEM/, read strictly.

Documentation/testbed.md describes the format. Each key of a file is a field of a dataclass here; an
unknown key is an error that names the file, the place and the keys that exist.
"""

from __future__ import annotations

import copy
import itertools
import re
import tomllib
import typing
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from .metrics import Metric, lacks
from .parameters import Topology
from .tables import ExperimentError, OneOf, T, Within, load_table
from .traffic import FlowGroup

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
#: short: run by the tests; brief: all cases at the short form's lengths, one run each; full: the paper's lengths
MODES = ("short", "brief", "default", "full")
#: the forms in which an experiment has its intended length
OWN_LENGTHS = ("default", "full")
#: seeds per case
RUNS = Within(1, 10000)
#: top-level tables that a case, a mode or --set may override
OVERRIDABLE = ("experiment", "topology", "flow", "modules", "sysctl", "metric")


#: dimension -> variant
Case = dict[str, str]


# --------------------------------------------------------------------------------------- schema


@dataclass(frozen=True)
class Head:
    """Table [experiment]."""

    claim: str
    source: str
    duration_s: Annotated[float, Within(0.001, 1e6)]
    measure_s: tuple[float, float]
    title: str = ""
    drawing: str = ""
    tags: tuple[str, ...] = ()
    runs: Annotated[int, RUNS] = 3
    sample_ms: Annotated[int, Within(1, 10000)] = 100
    seed: Annotated[int, Within(0, 2**63 - 1)] = 1
    mem_mb: Annotated[int, Within(64, 65536)] = 512
    reference: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bound:
    """A check's bounds in the short form, and why they differ."""

    why: str
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Older:
    """A check's bounds on kernels before a series such as "6.7", and what these kernels lack or do differently."""

    before: str
    why: str
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Differs:
    """Why a check misses its bound in these cases, and the range of its values there; outside of it the check fails."""

    why: str
    min: float
    max: float
    case: dict[str, typing.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """Why a bound remains useful in these cases although a rival congestion control meets it too."""

    why: str
    case: dict[str, typing.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A statement about one metric: the paper's value, the bound for the measured one, and the reason.

    case: dimension -> variant (or list of variants) in which it must hold; missing = all.
    of: compare with the same metric in this other case (dimension -> variant); ``how``: "percent" =
    this / other * 100, "difference" = this - other; metric_of names another metric for the comparison.
    ns2: compare in the same way with ns-2's mean of the same metric in the same case (``testbed ns2`` makes it).
    each: every single run must meet the bound, not only the mean.
    order: the bound is the paper's own statement, an order or a trend without a number; if met, it is reproduced.
    differs: where the current kernel misses this bound, which remains as claimed: why, and the range of its values.
    rival: where a rival such as cubic, which is best effort, meets this bound too: why the bound remains useful.
    older: the bound on kernels that lack what this one is about, in place of this one and of the short form's.
    """

    metric: str
    why: str = ""
    case: dict[str, typing.Any] = field(default_factory=dict)
    of: dict[str, str] | None = None
    metric_of: str = ""
    ns2: bool = False
    how: Annotated[str, OneOf("percent", "difference")] = "percent"
    each: bool = False
    order: bool = False
    min: float | None = None
    max: float | None = None
    paper: float | None = None
    paper_at: str = ""
    differs: tuple[Differs, ...] = ()
    rival: tuple[Kept, ...] = ()
    short: Bound | bool = True
    older: Older | None = None


@dataclass(frozen=True)
class Event:
    """An event at ``at_s`` (in ``case`` only): a change of parameters, a command, or the removal of a module."""

    at_s: float
    case: dict[str, typing.Any] = field(default_factory=dict)
    set: dict[str, typing.Any] = field(default_factory=dict)
    node: str = ""
    run: str = ""
    remove_module: str = ""


@dataclass(frozen=True)
class Sweep:
    """A dimension whose variants set one key (or several) to each of the values."""

    key: str
    values: tuple[typing.Any, ...]
    label: str = ""
    log: bool = False


@dataclass(frozen=True)
class Plot:
    """A plot. time: series of one case; panels: goodput of several cases; sweep: a metric over a [sweep];
    bars, spread: a metric per case; cdf: times of all web objects of the metric's flows, a line per case; sizes:
    the mean time of these objects by size."""

    name: str
    kind: Annotated[str, OneOf("time", "panels", "sweep", "bars", "spread", "cdf", "sizes")] = "time"
    title: str = ""
    metric: tuple[str, ...] = ()
    case: dict[str, typing.Any] = field(default_factory=dict)
    x: str = ""
    paper: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Mode:
    """Table [short] or [full]: the differences from the default form."""

    runs: Annotated[int, RUNS] | None = None
    set: dict[str, typing.Any] = field(default_factory=dict)
    vary: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """The parameters of one run, all overrides applied."""

    head: Head
    topology: Topology
    flows: dict[str, FlowGroup]
    metrics: dict[str, Metric]
    modules: dict[str, dict[str, typing.Any]]
    sysctl: dict[str, dict[str, typing.Any]]
    events: tuple[Event, ...]
    tables: dict[str, typing.Any]


# --------------------------------------------------------------------------------------- loader


def override(tables: dict[str, typing.Any], key: str, value: typing.Any, where: str) -> None:
    """Set a dotted key in the tables, in place. Keys of [sysctl.NODE] keep their own dots."""
    parts = key.split(".")
    if parts[0] == "sysctl" and len(parts) > 2:
        parts = [parts[0], parts[1], ".".join(parts[2:])]
    if parts[0] not in OVERRIDABLE or len(parts) < 2:
        raise ExperimentError(f"{where}: {key!r} cannot be set; keys begin with {', '.join(OVERRIDABLE)}")
    if parts[0] in ("flow", "metric") and parts[1] not in tables.get(parts[0], {}):
        raise ExperimentError(f"{where}: no {parts[0]} {parts[1]!r}; there are " + ", ".join(tables.get(parts[0], {})))
    table = tables
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError(f"{where}: {key!r}: {part} is no table")
    table[parts[-1]] = copy.deepcopy(value)


# ----------------------------------------------------------------------------------- experiment


@dataclass
class Experiment:
    """An experiment file. The parts that no case can override are already parsed."""

    name: str
    path: Path
    tables: dict[str, typing.Any]
    head: Head
    vary: dict[str, dict[str, dict[str, typing.Any]]]
    sweeps: dict[str, Sweep]
    exclude: list[dict[str, typing.Any]]
    checks: list[Check]
    plots: list[Plot]
    modes: dict[str, Mode]

    def cases(self, mode: str = "default") -> list[dict[str, str]]:
        """All combinations of the dimensions' variants, in file order, without those that [[exclude]] names."""
        chosen = self.modes[mode].vary if mode in self.modes else {}
        names = []
        for dimension, variants in self.vary.items():
            picked = list(chosen.get(dimension, variants))
            for variant in picked:
                if variant not in variants:
                    raise ExperimentError(
                        f"{self.path.name}:{mode}.vary.{dimension}: no variant {variant!r}; there are "
                        + ", ".join(variants)
                    )
            names.append([(dimension, variant) for variant in picked])
        all_cases = [dict(combination) for combination in itertools.product(*names)]
        return [case for case in all_cases if not any(matches(case, rule) for rule in self.exclude)]

    def runs(self, mode: str = "default") -> int:
        """Number of runs (seeds) of each case."""
        special = self.modes[mode].runs if mode in self.modes else None
        return special if special is not None else self.head.runs

    def setting(
        self, case: dict[str, str], mode: str = "default", sets: dict[str, typing.Any] | None = None
    ) -> Setting:
        """The parameters of one case. Overrides apply in this order: file, mode, case, --set."""
        tables = copy.deepcopy(self.tables)
        file = self.path.name
        if mode in self.modes:
            for key, value in self.modes[mode].set.items():
                override(tables, key, value, f"{file}:{mode}.set")
        for dimension, variant in case.items():
            for key, value in self.vary[dimension][variant].items():
                override(tables, key, value, f"{file}:vary.{dimension}.{variant}")
        for key, value in (sets or {}).items():
            override(tables, key, value, "--set")
        tables["event"] = [
            table
            for table in tables.get("event", [])
            if not isinstance(table, dict) or matches(case, table.get("case", {}))
        ]
        return setting_of(tables, file)


def setting_of(tables: dict[str, typing.Any], file: str) -> Setting:
    """The parameters given by these tables; ExperimentError for invalid ones."""
    head = load_table(Head, tables["experiment"], f"{file}:experiment")
    if not 0 <= head.measure_s[0] < head.measure_s[1] <= head.duration_s:
        raise ExperimentError(
            f"{file}:experiment.measure_s = {list(head.measure_s)}: must lie within 0 to "
            f"duration_s = {head.duration_s:g}"
        )
    topology = load_table(Topology, tables.get("topology", {}), f"{file}:topology")
    flows = {
        name: load_table(FlowGroup, table, f"{file}:flow.{name}") for name, table in tables.get("flow", {}).items()
    }
    if not flows:
        raise ExperimentError(f"{file}: no [flow.NAME]")
    metrics = {
        name: load_table(Metric, table, f"{file}:metric.{name}") for name, table in tables.get("metric", {}).items()
    }
    for name, metric in metrics.items():
        for key in lacks(metric):
            raise ExperimentError(f"{file}:metric.{name}.{key}: missing; kind {metric.kind!r} needs it")
        for group in filter(None, metric.flow.split("+")):
            if group not in flows:
                raise ExperimentError(f"{file}:metric.{name}.flow: no flow {group!r}; there are {', '.join(flows)}")
    events = tuple(
        load_table(Event, table, f"{file}:event[{index}]") for index, table in enumerate(tables.get("event", []))
    )
    for index, event in enumerate(events):
        if sum(map(bool, (event.set, event.run, event.remove_module))) != 1:
            raise ExperimentError(f"{file}:event[{index}]: give exactly one of set, run, remove_module")
        if event.run and not event.node:
            raise ExperimentError(f"{file}:event[{index}]: run needs node")
    return Setting(head, topology, flows, metrics, tables.get("modules", {}), tables.get("sysctl", {}), events, tables)


TOP_LEVEL = (
    "experiment",
    "topology",
    "flow",
    "modules",
    "sysctl",
    "event",
    "vary",
    "sweep",
    "exclude",
    "metric",
    "check",
    "plot",
    "short",
    "full",
)


def matches(case: dict[str, str], pattern: dict[str, typing.Any]) -> bool:
    """Whether a case has the variants that the pattern names (a list means any of them)."""
    return all(
        case.get(dimension) in (wanted if isinstance(wanted, list | tuple) else [wanted])
        for dimension, wanted in pattern.items()
    )


def case_name(case: dict[str, str]) -> str:
    """Printable name of a case."""
    return " ".join(f"{dimension}={variant}" for dimension, variant in case.items()) or "base"


def _variant_name(value: typing.Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse(text: str, path: Path) -> Experiment:
    """Parse an experiment; ExperimentError names file, key and allowed values."""
    file = path.name
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{file}: {error}") from error
    for key in tables:
        if key not in TOP_LEVEL:
            raise ExperimentError(f"{file}:{key}: unknown table; allowed are {', '.join(TOP_LEVEL)}")
    if "experiment" not in tables:
        raise ExperimentError(f"{file}: [experiment] is missing")

    vary = tables.pop("vary", {})
    sweeps = {}
    for dimension, table in tables.pop("sweep", {}).items():
        sweep = load_table(Sweep, table, f"{file}:sweep.{dimension}")
        sweeps[dimension] = sweep
        vary[dimension] = {_variant_name(value): {sweep.key: value} for value in sweep.values}
    for dimension, variants in vary.items():
        if not variants or not all(isinstance(table, dict) for table in variants.values()):
            raise ExperimentError(f"{file}:vary.{dimension}: expected a table of variants, each a table of keys to set")

    def many(key: str, kind: type[T]) -> list[T]:
        return [load_table(kind, table, f"{file}:{key}[{index}]") for index, table in enumerate(tables.pop(key, []))]

    checks, plots = many("check", Check), many("plot", Plot)
    exclude = tables.pop("exclude", [])
    modes = {}
    for name in ("short", "full"):
        if name in tables:
            modes[str(name)] = load_table(Mode, tables.pop(name), f"{file}:{name}")
    modes["brief"] = Mode(1, modes["short"].set if "short" in modes else {})
    head = load_table(Head, tables["experiment"], f"{file}:experiment")
    experiment = Experiment(path.stem, path, tables, head, vary, sweeps, exclude, checks, plots, modes)
    _References(experiment).all()
    return experiment


class _References:
    """Checks that every dimension, variant and metric that a file refers to exists."""

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        self.file = experiment.path.name
        self.metrics = experiment.tables.get("metric", {})

    def refuse(self, where: str, text: str) -> typing.NoReturn:
        """Raise the error, with its place in the file."""
        raise ExperimentError(f"{self.file}:{where}: {text}")

    def case(self, case: dict[str, typing.Any], where: str) -> None:
        """Check a case, or a part of one."""
        vary = self.experiment.vary
        for dimension, wanted in case.items():
            if dimension not in vary:
                self.refuse(where, f"no dimension {dimension!r}; there are {', '.join(vary) or 'none'}")
            for variant in wanted if isinstance(wanted, list) else [wanted]:
                if variant not in vary[dimension]:
                    known = ", ".join(vary[dimension])
                    self.refuse(f"{where}.{dimension}", f"no variant {variant!r}; there are {known}")

    def metric(self, name: str, where: str) -> None:
        """Check a metric's name."""
        if name not in self.metrics:
            self.refuse(where, f"no metric {name!r}; there are {', '.join(self.metrics) or 'none'}")

    def check(self, check: Check, where: str) -> None:
        """Check a [[check]], and that its keys do not exclude each other."""
        self.metric(check.metric, f"{where}.metric")
        if check.metric_of:
            self.metric(check.metric_of, f"{where}.metric_of")
        self.case(check.case, f"{where}.case")
        self.case(check.of or {}, f"{where}.of")
        if check.ns2 and (check.of is not None or check.metric_of or check.paper is not None):
            self.refuse(where, "ns2 compares with ns-2: of, metric_of and paper are not for it")
        bounded = check.min is not None or check.max is not None
        if not bounded and check.paper is None:
            self.refuse(where, "needs min, max or paper")
        if check.order and (not bounded or check.paper is not None):
            self.refuse(where, "order is of a bound that the paper states without a number: needs min or max, no paper")
        if bounded and not check.why:
            self.refuse(where, "a bound needs its reason in why")
        if check.older and not (bounded and re.fullmatch(r"\d+\.\d+", check.older.before)):
            self.refuse(where, "older is of a bound, and before is a series such as 6.7")
        if check.differs and not bounded:
            self.refuse(where, "differs tells why a bound is missed: needs min or max")
        if check.rival and not bounded:
            self.refuse(where, "rival tells why a bound is kept: needs min or max")
        for index, kept in enumerate(check.rival):
            self.case(kept.case, f"{where}.rival[{index}].case")
        for index, known in enumerate(check.differs):
            at = f"{where}.differs[{index}]"
            self.case(known.case, f"{at}.case")
            below = check.min is not None and known.max < check.min
            above = check.max is not None and known.min > check.max
            if known.min > known.max or not (below or above):
                self.refuse(at, f"{known.min:g} to {known.max:g} must be a range of values that all miss the bound")

    def undone(self) -> None:
        """Refuse a variant that changes a key set by a variant of an earlier dimension, except by removing a flow."""
        vary = self.experiment.vary
        for case in self.experiment.cases():
            done: dict[str, tuple[str, typing.Any]] = {}
            for dimension, variant in case.items():
                for key, value in vary[dimension][variant].items():
                    for old, (by, before) in done.items():
                        same = old == key or old.startswith(f"{key}.")
                        if same and before != value and not (key.endswith(".count") and value == 0):
                            self.refuse(f"vary.{dimension}.{variant}", f"{key} undoes {old} of {by}: exclude this case")
                for key, value in vary[dimension][variant].items():
                    done[key] = (f"{dimension}={variant}", value)

    def plot(self, plot: Plot, where: str) -> None:
        """Check a [[plot]]."""
        for name in plot.metric:
            self.metric(name, f"{where}.metric")
        sweeps = self.experiment.sweeps
        if plot.kind == "sweep" and plot.x not in sweeps:
            raise ExperimentError(f"{self.file}:{where}.x = {plot.x!r}: no such sweep; there are {', '.join(sweeps)}")
        self.case(plot.case, f"{where}.case")

    def all(self) -> None:
        """Check the whole file."""
        experiment = self.experiment
        self.case(experiment.head.reference, "experiment.reference")
        for index, table in enumerate(experiment.tables.get("event", [])):
            event = load_table(Event, table, f"{self.file}:event[{index}]")
            self.case(event.case, f"event[{index}].case")
        for index, rule in enumerate(experiment.exclude):
            self.case(rule, f"exclude[{index}]")
        for index, check in enumerate(experiment.checks):
            self.check(check, f"check[{index}]")
        for index, plot in enumerate(experiment.plots):
            self.plot(plot, f"plot[{index}]")
        self.undone()


def files() -> dict[str, Path]:
    """Files of all experiments, by name. The folder is not part of the name, so no two names may be equal."""
    by_name: dict[str, Path] = {}
    for path in sorted(EXPERIMENTS.rglob("*.toml")):
        if path.stem in by_name:
            raise ExperimentError(f"two experiments are named {path.stem!r}: {by_name[path.stem]} and {path}")
        by_name[path.stem] = path
    return by_name


def names() -> list[str]:
    """All experiments, sorted."""
    return sorted(files())


def load(name: str) -> Experiment:
    """Load an experiment by name or from a path. ExperimentError for an unknown name lists similar ones."""
    path = Path(name) if name.endswith(".toml") else files().get(name)
    if path is None or not path.is_file():
        near = get_close_matches(name, names(), 5, 0.4) or names()
        raise ExperimentError(f"no experiment {name!r}; near: {', '.join(near)}  (python3 -m testbed list shows all)")
    return parse(path.read_text(encoding="utf-8"), path)


def parse_set(text: str) -> tuple[str, typing.Any]:
    """Parse ``key=value`` of --set; a value that is not valid TOML is a string."""
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w.\-]+", key):
        raise ExperimentError(f"--set {text!r}: expected key=value, such as topology.rate_mbit=5")
    try:
        return key, tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        return key, value
