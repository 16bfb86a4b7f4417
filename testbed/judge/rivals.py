# SPDX-License-Identifier: GPL-2.0
"""Whether a rival meets a bound too: the same number with a congestion control that does not yield, in the same case.

A bound on the harm to other traffic beside one of the project's controls says little if that traffic is not harmed more
beside cubic: the scenario then does not distinguish the two. For each such bound the rivals are the cases that differ
in one dimension only, with the same network and traffic, and in which the flows of the project's control have one that
does not yield.
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

#: modules with congestion controls of the project; flows under vulture are recognized by the commands of a run
OURS = {"tcp_lbe", "tcp_lp", "tcp_ledbat", "tcp_lowpri"}
#: congestion controls that do not yield
RIVALS = {"cubic", "reno", "bbr", "ns2_reno", "ns2_newreno", "ns2_sack"}
#: kinds of metric for the performance of a flow: those for which more is better, so that a minimum limits the harm,
MORE = {
    "goodput", "min_flow", "kbytes_s", "kibytes_s", "share", "active_share", "object_within", "object_area", "objects",
    "pages",
}  # fmt: skip
#: and those for which less is better
LESS = {
    "retransmits", "rtt_mean", "rtt_p95", "reap_s", "longest_stall", "completion_s", "udp_lost", "udp_delay_mean",
    "udp_delay_p50", "udp_delay_p95", "udp_delay_p99", "udp_delay_max", "object_s", "object_p50_s", "object_p95_s",
    "page_s", "page_p50_s", "page_p95_s", "web_failed", "web_unfinished", "syn_lost", "family_lost",
}  # fmt: skip


@dataclass(frozen=True)
class Rival:
    """The number of a bound in the case of a rival. meets: whether it is within the bound; None if it was not run."""

    case: Case
    number: Summary
    meets: bool | None


@dataclass(frozen=True)
class BesideRivals:
    """A bound on the harm by one of the project's controls to best effort in one case, and the experiment's rivals."""

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
        """Whether a rival has not been run yet, or there is none."""
        return not self.rivals or any(rival.meets is None for rival in self.rivals)

    @property
    def said(self) -> str:
        """Text for the pages."""
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
        """The experiment's reason to keep the bound in this case, if any."""
        return next((one for one in self.check.rival if matches(self.case, one.case)), None)

    @property
    def text(self) -> str:
        """The same, with the reason to keep the bound."""
        return self.said + (f": {self.kept.why}" if self.kept and (self.met or self.unknown) else "")


def _by_vulture(setting: Setting) -> set[str]:
    """Groups that a command of the run puts under vulture, by their ports; all groups if it names no ports."""
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
    """The congestion controls of a group: the first one, and those of switch_s ("10:lp,20:cubic")."""
    switches = str(group.options.get("switch_s", ""))
    return [group.cc, *(part.split(":")[1] for part in switches.split(",") if ":" in part)]


def controlled(setting: Setting) -> set[str]:
    """Groups of flows with one of the project's controls."""
    flows = {name: group for name, group in _present(setting).items() if group.proto == "tcp"}
    ours = {name for name, group in flows.items() if any(traffic.module_of(cc) in OURS for cc in _controls(group))}
    return ours | _by_vulture(setting)


def _present(setting: Setting) -> dict[str, FlowGroup]:
    return {name: group for name, group in setting.flows.items() if group.count}


def is_rival(ours: Setting, other: Setting) -> bool:
    """Whether ``other`` is the same run, with controls that do not yield in place of the project's."""
    mine, here, there = controlled(ours), _present(ours), _present(other)
    return (
        not controlled(other)
        and here.keys() == there.keys()
        and (ours.topology, ours.head) == (other.topology, replace(other.head, modules=ours.head.modules))
        and all(there[name].cc in RIVALS if name in mine else here[name] == there[name] for name in here)
    )


def of_best_effort(setting: Setting, check: Check, bound: checks.Limits) -> bool:
    """Whether a bound limits the harm to best-effort flows beside one of the project's controls."""
    metric, mine, present = setting.metrics[check.metric], controlled(setting), _present(setting)
    groups = {group for group in metric.flow.split("+") if group}
    limits = (metric.kind in MORE and bound[0] is not None) or (metric.kind in LESS and bound[1] is not None)
    return limits and bool(mine) and bool(groups) and groups <= present.keys() and not mine & groups


def _apart(case: Case, other: Case) -> int:
    return sum(case[dimension] != other[dimension] for dimension in case)


def beside(experiment: Experiment, results: ResultSet) -> list[BesideRivals]:
    """All bounds on the harm to best effort by the project's controls, with the rivals' numbers in the same case."""
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
            continue  # the bound is already a comparison with the rival
        for other in near:
            values = table.check(check, other)
            number = summarise(values)
            known = [value for value in values if value is not None]
            judged = known if check.each else [number.mean]
            meets = all(checks.meets(value, verdict.bound) for value in judged) if known else None
            rivals.append(Rival(other, number, meets))
        found.append(BesideRivals(check, case, verdict.bound, tuple(rivals)))
    return found


def undistinguished(found: list[BesideRivals]) -> list[BesideRivals]:
    """Bounds that a rival meets too, without a reason to keep them."""
    return [one for one in found if one.met and not one.kept]


def needless(experiment: Experiment, found: list[BesideRivals]) -> list[Kept]:
    """Reasons that are no longer needed: rivals were run, and miss the bound in all cases of the reason."""
    asked = {id(one.kept) for one in found if one.met or one.unknown}
    return [kept for check in experiment.checks for kept in check.rival if id(kept) not in asked]
