# SPDX-License-Identifier: GPL-2.0
"""Whether a rival would meet a bound too: what best effort has beside a flow that yields to nobody, in the same case.

A bound on what others lose beside one of our controls says little if they lose no more beside cubic: the scenario then
does not tell the two apart. For each such bound the rivals are the cases that differ in one dimension alone, on the
same network and with the same traffic, in which the flows that our control had have a control that yields to nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..measure.summary import Summary, summarise
from ..results.files import ResultSet
from ..spec import traffic
from ..spec.experiment import Case, Check, Experiment, Kept, Setting, case_name, matches
from ..spec.traffic import FlowGroup
from . import checks

#: modules whose controls are ours; vulture's are seen from the commands of a run
OURS = {"tcp_lbe", "tcp_lp", "tcp_ledbat", "tcp_lowpri"}
#: controls that yield to nobody
RIVALS = {"cubic", "reno", "bbr", "ns2_reno", "ns2_newreno", "ns2_sack"}
#: kinds of metric that say what a flow has. Those of which more is better, so that a least value bounds the harm:
MORE = {
    "goodput", "min_flow", "kbytes_s", "kibytes_s", "share", "active_share", "object_within", "objects", "pages",
}  # fmt: skip
#: and those of which less is better
LESS = {
    "retransmits", "rtt_mean", "rtt_p95", "reap_s", "longest_stall", "completion_s", "udp_lost", "udp_delay_mean",
    "udp_delay_p50", "udp_delay_p95", "udp_delay_p99", "udp_delay_max", "object_s", "object_p50_s", "object_p95_s",
    "page_s", "page_p50_s", "page_p95_s", "web_failed", "web_unfinished", "syn_lost", "family_lost",
}  # fmt: skip


@dataclass(frozen=True)
class Rival:
    """The bound's number in the case of a rival. meets: whether it is within the bound; None if it was not run."""

    case: Case
    number: Summary
    meets: bool | None


@dataclass(frozen=True)
class Beside:
    """A bound of best effort beside one of our controls in one case, with the rivals that the experiment has."""

    check: Check
    case: Case
    bound: checks.Limits
    rivals: tuple[Rival, ...]

    @property
    def met(self) -> list[Rival]:
        """The rivals that meet the bound too."""
        return [rival for rival in self.rivals if rival.meets]

    @property
    def unknown(self) -> bool:
        """Whether a rival is yet to be run, or there is none."""
        return not self.rivals or any(rival.meets is None for rival in self.rivals)

    @property
    def said(self) -> str:
        """What the pages say."""
        if not self.rivals:
            return "no rival in the experiment"
        words = {True: "meets it too", False: "misses it", None: "not run"}
        apart = [
            " ".join(variant for dimension, variant in rival.case.items() if self.case[dimension] != variant)
            + (f" {rival.number.mean:.4g}" if rival.number.n else "")
            + f" {words[rival.meets]}"
            for rival in self.rivals
        ]
        return ", ".join(apart)

    @property
    def kept(self) -> Kept | None:
        """What the experiment says of why the bound is kept in this case."""
        return next((one for one in self.check.rival if matches(self.case, one.case)), None)

    @property
    def text(self) -> str:
        """The same, with why the bound is kept."""
        return self.said + (f": {self.kept.why}" if self.kept and (self.met or self.unknown) else "")


def _by_vulture(setting: Setting) -> set[str]:
    """Groups that a command of the run puts under vulture, by their ports; all of the receiver's, if it names none."""
    commands = [event.run for event in setting.events if "vulturectl" in event.run]
    ranges = [(int(low), int(high)) for text in commands for low, high in re.findall(r"seq (\d+) (\d+)", text)]
    ports = {int(port) for text in commands for port in re.findall(r"\b(5\d\d\d)\b", text)}
    ports |= {port for low, high in ranges for port in range(low, high + 1)}
    if not commands:
        return set()
    return {
        group
        for group, numbers in traffic.numbers(setting.flows).items()
        if not ports or ports & {traffic.SINK_PORT + number for number in numbers}
    }


def _controls(group: FlowGroup) -> list[str]:
    """The control that a group begins with, and those to which it goes in the run ("10:lp,20:cubic")."""
    switches = str(group.options.get("switch_s", ""))
    return [group.cc, *(part.split(":")[1] for part in switches.split(",") if ":" in part)]


def controlled(setting: Setting) -> set[str]:
    """Groups of flows that have one of our controls."""
    flows = {name: group for name, group in _present(setting).items() if group.proto == "tcp"}
    ours = {name for name, group in flows.items() if any(traffic.module_of(cc) in OURS for cc in _controls(group))}
    return ours | _by_vulture(setting)


def _present(setting: Setting) -> dict[str, FlowGroup]:
    return {name: group for name, group in setting.flows.items() if group.count}


def is_rival(ours: Setting, other: Setting) -> bool:
    """Whether ``other`` is the same run with flows that yield to nobody in the place of our control."""
    mine, here, there = controlled(ours), _present(ours), _present(other)
    return (
        not controlled(other)
        and here.keys() == there.keys()
        and (ours.topology, ours.head) == (other.topology, replace(other.head, modules=ours.head.modules))
        and all(there[name].cc in RIVALS if name in mine else here[name] == there[name] for name in here)
    )


def of_best_effort(setting: Setting, check: Check, bound: checks.Limits) -> bool:
    """Whether a bound limits the harm to flows beside one of our controls."""
    metric, mine, present = setting.metrics[check.metric], controlled(setting), _present(setting)
    groups = {group for group in metric.flow.split("+") if group}
    limits = (metric.kind in MORE and bound[0] is not None) or (metric.kind in LESS and bound[1] is not None)
    return limits and bool(mine) and bool(groups) and groups <= present.keys() and not mine & groups


def _apart(case: Case, other: Case) -> int:
    return sum(case[dimension] != other[dimension] for dimension in case)


def beside(experiment: Experiment, results: ResultSet) -> list[Beside]:
    """Every bound of best effort beside one of our controls, with what rivals have in the same case."""
    cases = experiment.cases(results.mode)
    settings = {case_name(case): experiment.setting(case, results.mode) for case in cases}
    table = checks.Table.of(results, checks.committed_ns2(experiment))
    found = []
    for verdict in checks.judge(experiment, results):
        check, case = verdict.check, verdict.case
        if case is None or not of_best_effort(settings[case_name(case)], check, verdict.bound):
            continue
        mine, rivals = settings[case_name(case)], []
        near = [other for other in cases if _apart(case, other) == 1 and is_rival(mine, settings[case_name(other)])]
        if check.of is not None and {**case, **check.of} in near:
            continue  # the bound itself is on the distance from the rival
        for other in near:
            values = table.check(check, other)
            number = summarise(values)
            known = [value for value in values if value is not None]
            judged = known if check.each else [number.mean]
            meets = all(checks.meets(value, verdict.bound) for value in judged) if known else None
            rivals.append(Rival(other, number, meets))
        found.append(Beside(check, case, verdict.bound, tuple(rivals)))
    return found


def undistinguished(found: list[Beside]) -> list[Beside]:
    """Bounds that a rival meets too and that do not say why they are kept."""
    return [one for one in found if one.met and not one.kept]


def needless(experiment: Experiment, found: list[Beside]) -> list[Kept]:
    """Reasons of bounds that rivals were run for, and miss in each case that the reason is of."""
    asked = {id(one.kept) for one in found if one.met or one.unknown}
    return [kept for check in experiment.checks for kept in check.rival if id(kept) not in asked]
