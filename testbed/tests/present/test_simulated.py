# SPDX-License-Identifier: GPL-2.0
"""A simulator's results are of the present tree if the simulator would be given the same and the same be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.backends.ns2 import machine, plan
from testbed.present import simulated, state
from testbed.present.simulated import NS2, NS3, SimulatorEntry
from testbed.results import digest
from testbed.run import identity
from testbed.run import job as jobs
from testbed.run.job import Job
from testbed.spec.experiment import Experiment, load, parse

NAME = "lp_fig11_paper"
SEEDS = [1, 2]


def made(simulator: SimulatorEntry = NS2, cases: int = 2) -> digest.Document:
    """Make the document of the first cases of NAME that a simulator can express, with made-up numbers."""
    one = load(NAME)
    asked = simulated.expressible(one, "default", simulator)
    numbers = {"used": [50.0] * len(SEEDS), "queue": [4.0] * len(SEEDS)}
    return simulated.identified(
        {
            "format": digest.FORMAT,
            "experiment": NAME,
            "mode": "default",
            "sets": {},
            "asked_cases": asked,
            "asked_seeds": SEEDS,
            "identity": {},
            "provenance": {"backend": simulator.command, "kernel": {"release": "made up"}},
            "cases": [{"case": case, "seeds": SEEDS, "jobs": ["", ""], "metrics": numbers} for case in asked[:cases]],
        },
        one,
        simulator,
    )


def with_text(monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str]) -> None:
    """Make the file of NAME look as if these parts of its text were others."""
    one = load(NAME)
    text = one.path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)

    def other(_name: str) -> Experiment:
        return parse(text, one.path)

    monkeypatch.setattr(simulated, "load", other)


@pytest.mark.parametrize("simulator", [NS2, NS3], ids=["ns2", "ns3"])
def test_results_of_this_tree_are_current(simulator: SimulatorEntry) -> None:
    document = made(simulator)
    assert document["experiment"] == f"{simulator.prefix}{NAME}"
    assert set(document["identity"]) == {"kernel", "program", "metrics"}
    assert all(len(job) == identity.DIGITS for case in document["cases"] for job in case["jobs"])
    assert len({job for case in document["cases"] for job in case["jobs"]}) == 2 * len(SEEDS)
    assert state.mark_stale({document["experiment"]: document})[document["experiment"]]["stale"] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max = 93.7\n", "max = 93.8\n"),
        ('why = "Figure 11: the curves', 'why = "Figure 11: all curves'),
        ("[experiment]\n", "# one more comment\n[experiment]\n"),
        ('label = "used of the available"', 'label = "used"'),
        ('label = "period of the square wave [s]"\nlog = true', 'label = "period [s]"'),
        ("snd --100M 2ms--", "snd --100M--"),
        ("[metric.queue]", '[metric.more]\nkind = "queue_p95"\n[metric.queue]'),
        # what only a kernel has, and a case that ns-2 cannot express
        ('"net.ipv4.tcp_dsack" = "0"\n', ""),
        ("lp = {}\n", 'lp = {}\nlp_more = { "flow.data.cc" = "lp_ecn" }\n'),
        ("runs = 3\n", "runs = 4\n"),
    ],
    ids=["differs", "why", "comment", "label", "plot", "drawing", "metric more", "sysctl", "other case", "seeds"],
)  # fmt: skip
def test_what_a_simulator_is_not_given_makes_nothing_stale(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = made()
    with_text(monkeypatch, (old, new))
    assert simulated.stale(document) == []


ALL = ["experiment (2 of 2 cases)"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\nrate_mbit = 10\n", "\nrate_mbit = 11\n", ALL),
        ('queue = { kind = "pfifo", packets = 22 }\n', 'queue = { kind = "pfifo", packets = 23 }\n', ALL),
        ("period_s = 0.2\nduty = 0.5", "period_s = 0.2\nduty = 0.6", ALL),
        ("start_spread_s = 2", "start_spread_s = 3", ALL),
        ("rto_min_ms = 200", "rto_min_ms = 300", ALL),
        # by timestamps a segment has less payload, and a share of the link is another
        ("mtu = 1000\n", "mtu = 1000\ntimestamps = false\n", ALL),
        ("initcwnd 1", "initcwnd 2", ALL),
        ("duration_s = 220", "duration_s = 230", ALL),
        ("measure_s = [20, 220]", "measure_s = [30, 220]", ALL),
        ('kind = "queue_mean"', 'kind = "queue_p95"', ALL),
        ('kind = "queue_mean"', 'kind = "queue_mean"\nfrom_s = 50', ALL),
        ('[metric.queue]\nkind = "queue_mean"\nlabel = "queue"\n', "", ALL),
        ('tcp = { "flow.data.cc" = "ns2_reno"', 'tcp = { "flow.data.cc" = "ns2_newreno"', ALL),
        ("10.0, 50.0]", "10.0, 50.0, 60.0]", ["experiment (2 new cases)"]),
    ],
)
def test_what_a_simulator_is_given_or_what_is_measured_makes_its_results_stale(
    old: str, new: str, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = made()
    with_text(monkeypatch, (old, new))
    assert simulated.stale(document) == said


def test_a_case_that_a_simulator_cannot_express_any_more_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    document = made()
    with_text(monkeypatch, ('framing = "ip"\n', ""))
    assert simulated.stale(document) == ALL


@pytest.mark.parametrize(
    ("simulator", "part"), [(NS2, "program"), (NS3, "program"), (NS2, "metrics"), (NS3, "metrics")]
)
def test_results_of_another_program_are_stale(simulator: SimulatorEntry, part: str) -> None:
    document = made(simulator)
    document["identity"][part] = "other"
    assert simulated.stale(document) == [part]


@pytest.mark.parametrize("path", [machine.NETWORK, machine.PACKETS, Path(machine.__file__)], ids=lambda path: path.name)
def test_each_program_is_in_the_identity_and_a_comment_is_not(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document, read = made(), Path.read_text
    more = "\n# one more comment\n"
    monkeypatch.setattr(Path, "read_text", lambda one, *a, **k: read(one, *a, **k) + (more if one == path else ""))
    assert simulated.stale(document) == []
    more = "\none_more = 1\n"
    assert simulated.stale(document) == ["program"]


def test_a_kind_of_metric_with_a_file_of_its_own_is_in_the_identity() -> None:
    one = load("shred_fig4_mixed")
    assert "object_area" in simulated.of_tree("made up", NS2, ["object_area"])["kinds"]
    document = made()
    document["identity"]["kinds"] = {"object_area": "other"}
    assert simulated.stale(document) == ["metric object_area"]
    assert any(metric["kind"] == "object_area" for metric in one.tables["metric"].values())


def test_results_of_an_experiment_or_a_case_that_is_gone_are_stale() -> None:
    document = made()
    document["cases"][0]["case"] = {"data": "tcp", "period": "7"}
    assert simulated.stale(document) == ["experiment (1 of 2 cases)"]
    assert simulated.stale(made() | {"experiment": "ns2_no_such"}) == ["experiment (gone)"]


def test_a_trace_of_packets_is_identified_without_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace takes much longer than a plan, and a machine may round one of its times in another way."""
    one = load("lowpri_paper")
    case = next(case for case in simulated.expressible(one) if plan.text(_job(one, case, 1)).files)
    monkeypatch.setattr("testbed.spec.traces.make", lambda *_: pytest.fail("a trace is made"))
    hashes = [simulated.of_run(_job(one, case, seed), [], NS2) for seed in (1, 2, 1)]
    assert hashes[0] == hashes[2] != hashes[1]
    first, second = (next(iter(plan.text(_job(one, case, seed)).files.values())).identity() for seed in (1, 2))
    assert first != second


def _job(one: Experiment, case: dict[str, str], seed: int) -> Job:
    return jobs.make(one.name, case, seed, one.setting(case))


def test_an_older_document_is_identified_by_its_files() -> None:
    """Its files were the whole experiment and the programs, so that also a bound's reason makes it stale."""
    files = [f"testbed/experiments/tcp_lp/{NAME}.toml", "testbed/backends/ns2/network.tcl"]
    older = made() | {"identity": {}, "files": files, "file_sha256": identity.hash_of_files(files)}
    key = older["experiment"]
    assert state.mark_stale({key: older})[key]["stale"] == []
    assert state.mark_stale({key: older | {"file_sha256": "other"}})[key]["stale"] == ["tool"]
