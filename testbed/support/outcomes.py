# SPDX-License-Identifier: GPL-2.0
"""Outcomes of `make check-kernels` as a document that the pages quote: results/check_kernels.json.

    pytest --tiers=kernels --results=FOLDER -> a test's outcome, kernel and numbers -> a case for each kernel

A run of selected tests (PYTEST_ARGS="-k ...") replaces only their outcomes in the document of the same tree.
The kernel of a test is given by its marker, pytest.mark.kernels(on="..."), or by its parameter "series".
A test may record numbers, record_property("rounds", 12), and its kernel's release, record_property("release", ...).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..base.content import hash_of_programs
from ..base.places import REPO
from ..results import digest
from ..results.digest import Document
from ..run import collect, identity, runner

NAME = "check_kernels"
#: files that affect the outcomes, besides the modules
FILES = [
    "testbed/tests/backends/test_distro.py", "testbed/tests/backends/test_distro_senders.py",
    "testbed/tests/backends/user.py", "testbed/support/race.py", "testbed/backends/scripts/install.sh",
    "vulture/tests/test_sanitizers.py", "vulture/tests/guest_control.py",
    "testbed/tests/proof/test_downloads.py", "testbed/proof/downloads.py", "testbed/tests/proof/test_proof.py",
    "tools/tc/tests/test_q_shred.py",
]  # fmt: skip
MODULES = ("sch_shred", "shred_hint", "tcp_lbe", "tcp_ledbat", "tcp_lowpri", "tcp_lp", "vulture")
#: for a kernel: number of tests, passed, failed, their time in seconds; rounds of all workers of the race tests
METRICS = ("ran", "passed", "failed", "seconds", "rounds")
#: kernel of a test that names none
DEFAULT_KERNEL = "6.12"
#: order of the rows
ORDER = ("6.1", "6.12", "7.2", "rt-6.12", "6.12 KCSAN", "6.12 KASAN", "6.12 sanitizers")


@dataclass
class Told:
    """Outcome of one test. told: the properties that it recorded."""

    kernel: str
    passed: bool
    seconds: float
    told: dict[str, Any] = field(default_factory=dict)


def kernel_of(item: Any) -> str:
    """The kernel that a test runs on."""
    marker = item.get_closest_marker("kernels")
    on = marker.kwargs.get("on") if marker else None
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return str(on or parameters.get("series") or DEFAULT_KERNEL)


def state_of_tree() -> dict[str, Any]:
    """Identity of the outcomes, as in a document; outcomes of different trees are never combined."""
    return {
        "identity": identity.of_tree("Debian's and our own", MODULES),
        "file_sha256": hash_of_programs([REPO / name for name in FILES]),
    }


def cases(tests: dict[str, Told]) -> list[dict[str, Any]]:
    """A case for each kernel, in the order of the rows."""
    kernels = sorted({one.kernel for one in tests.values()}, key=lambda name: (*ORDER, name).index(name))
    made = []
    for kernel in kernels:
        mine = {name: one for name, one in tests.items() if one.kernel == kernel}
        passed = sum(one.passed for one in mine.values())
        seconds = round(sum(one.seconds for one in mine.values()))
        rounds = sum(one.told.get("rounds", 0) for one in mine.values())
        values = (len(mine), passed, len(mine) - passed, seconds, rounds)
        faults = [name for name, one in mine.items() if not one.passed]
        made.append(digest.counted({"kernel": kernel}, METRICS, values, faults=faults))
    return made


def document(tests: dict[str, Told], state: dict[str, Any], versions: list[str]) -> Document:
    """The outcomes as a document for the pages. state: state_of_tree() when the tests were loaded."""
    releases = sorted({str(one.told["release"]) for one in tests.values() if "release" in one.told})
    made = digest.of_files(
        NAME,
        (FILES, state["file_sha256"]),
        state["identity"],
        {
            "command": "make check-kernels",
            "kernel": {"series": "all", "flavour": "Debian", "release": ", ".join(releases)},
            "backend": "qemu",
            "host": collect.host_facts(),
        },
        {"testbed": versions, "modules": {}},
        [1],
    )
    made["counts"] = list(METRICS)
    made["tests"] = {name: asdict(one) for name, one in sorted(tests.items())}
    made["cases"] = cases(tests)
    return made


def known(path: Path, state: dict[str, Any]) -> tuple[dict[str, Told], list[str]]:
    """Outcomes and versions of a document; none if it is of another tree or unreadable."""
    try:
        old = digest.load(path)
    except digest.BadDigest:
        return {}, []
    if any(old.get(key) != value for key, value in state.items()):
        return {}, []
    return {name: Told(**one) for name, one in old["tests"].items()}, old["ran"]["testbed"]


def save(tests: dict[str, Told], folder: Path, state: dict[str, Any] | None = None, version: str = "") -> Path:
    """Write outcomes, together with those of other tests in the folder's document. Default: present state, version."""
    state = state or state_of_tree()
    before, versions = known(folder / f"{NAME}.json", state)
    versions = sorted({*versions, version or runner.version()})
    return digest.save(document({**before, **tests}, state, versions), folder)


class Outcomes:
    """The pytest plugin: collects the outcomes of the tier's tests, and writes them when the session ends."""

    def __init__(self, folder: Path):
        self.folder = folder
        #: taken at the start: files that are edited while the tests run are not those that ran
        self.state, self.version = state_of_tree(), runner.version()
        self.kernels: dict[str, str] = {}
        self.tests: dict[str, Told] = {}

    def pytest_collection_finish(self, session: Any) -> None:
        """Note the kernels of the tests that will run."""
        self.kernels = {item.nodeid: kernel_of(item) for item in session.items if item.get_closest_marker("kernels")}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record setup, call or teardown of a test; it has passed if all three have."""
        if report.nodeid not in self.kernels:
            return
        before = self.tests.get(report.nodeid, Told(self.kernels[report.nodeid], True, 0.0))
        self.tests[report.nodeid] = Told(
            before.kernel,
            before.passed and report.passed,
            round(before.seconds + report.duration, 1),
            {**before.told, **told(report.user_properties)},
        )

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes, if any test ran."""
        if self.tests:
            save(self.tests, self.folder, self.state, self.version)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print a line for each kernel about the tests of this session."""
        if not self.tests:
            return
        terminalreporter.section("kernels")
        for case in cases(self.tests):
            value = {name: values[0] for name, values in case["metrics"].items()}
            line = f"{case['case']['kernel']:16}{value['ran']:4} tests, {value['passed']} passed, "
            line += f"{value['failed']} failed, {value['seconds']} s"
            terminalreporter.write_line(line + f", {value['rounds']} rounds of races" * bool(value["rounds"]))
        terminalreporter.write_line(f"{self.folder / NAME}.json")


def told(properties: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The properties recorded by a test that the document has."""
    return {name: value for name, value in properties if name in ("rounds", "release")}
