# SPDX-License-Identifier: GPL-2.0
"""One run as a job folder: a shell script, the commands for each node, the agents' plans.

The files of a job contain no path of this machine; paths come from ``env.sh``, which is added when the
job runs. Equal jobs on equal kernels are therefore equal runs, and results can be reused by content.
"""

from __future__ import annotations

import hashlib
import json
import typing
from dataclasses import dataclass, field
from pathlib import Path

from ..spec import links, traces, traffic, web
from ..spec.experiment import Setting, override, setting_of
from ..spec.tables import ExperimentError
from ..spec.topology import Network, build, difference
from ..spec.traffic import Flow, Plan

#: experiment time 0 on the guest's CLOCK_MONOTONIC; the set-up before it takes almost no virtual time
ZERO_S = 10.0
#: time after the end of the experiment in which agents close their flows and the job reads back its settings
AFTER_S = 5.0
#: incremented whenever the meaning of the same job files changes
JOB_FORMAT = 1

#: the link's trace in the job folder, microseconds
LINK_TRACE = "link.trace"

HOST_SYSCTLS = {
    # in the initial namespace: the upper limits of setsockopt(), raised for the agents
    "net.core.rmem_max": "67108864",
    "net.core.wmem_max": "67108864",
    "net.core.somaxconn": "16384",
    # no packet of a burst may be dropped at the backlog of the only CPU
    "net.core.netdev_max_backlog": "100000",
}


@dataclass
class Job:
    """One run. ``files``: everything that the guest reads, by name.

    ``traces``: the arguments of traces.make(), by file name, for packet traces that are made when the job is
    written. A file with the identity of each trace represents it in the job's hash.
    """

    experiment: str
    case: dict[str, str]
    seed: int
    setting: Setting
    network: Network
    flows: list[Flow]
    plans: list[Plan]
    modules: list[str]
    events: list[tuple[float, str, str]]
    files: dict[str, str] = field(default_factory=dict)
    traces: dict[str, tuple[str, float, int]] = field(default_factory=dict)

    def content_hash(self) -> str:
        """Hash of everything that the guest reads, and of the seed."""
        content = json.dumps(
            {"format": JOB_FORMAT, "seed": self.seed, "mem_mb": self.setting.head.mem_mb, "files": self.files},
            sort_keys=True,
        )
        return hashlib.sha256(content.encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the files to an existing folder."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="ascii")
        for name, (file, duration_s, seed) in self.traces.items():
            (folder / name).write_bytes(traces.make(file, duration_s, seed).tobytes())


def _network(setting: Setting, flows: list[Flow]) -> Network:
    return build(setting.topology, traffic.low_ports(flows), traffic.extra_delays(flows), setting.sysctl, ZERO_S)


def _event_commands(setting: Setting, flows: list[Flow], network: Network, file: str) -> list[tuple[float, str, str]]:
    """Timed commands as (experiment time, node or "", shell line)."""
    commands: list[tuple[float, str, str]] = []
    current, tables = network, setting.tables
    for event in sorted(setting.events, key=lambda one: one.at_s):
        if event.run:
            if event.node not in network.nodes:
                raise ExperimentError(f"{file}:event: no node {event.node!r}; there are {', '.join(network.nodes)}")
            commands.append((event.at_s, event.node, event.run))
        elif event.remove_module:
            commands.append((event.at_s, "", f"rmmod {event.remove_module}"))
        else:
            tables = json.loads(json.dumps(tables))
            for key, value in event.set.items():
                if not key.startswith(("topology.", "sysctl.")):
                    raise ExperimentError(f"{file}:event.set: {key!r}: only topology and sysctl can change in mid-run")
                override(tables, key, value, f"{file}:event.set")
            after = _network(setting_of(tables, file), flows)
            commands += [(event.at_s, node, line) for node, line in difference(current, after)]
            current = after
    return commands


def _events_script(events: list[tuple[float, str, str]]) -> str:
    """Script that sleeps until each event's time and runs it, in steps of 10 ms, the resolution of /proc/uptime."""
    lines = [
        "# SPDX-License-Identifier: GPL-2.0",
        "set -eu",
        "until_cs() {",
        "    read -r up _ < /proc/uptime",
        "    left=$(($1 - ${up%.*} * 100 - 1${up#*.} + 100))",
        '    if [ "$left" -gt 0 ]; then sleep "$((left / 100)).$(printf %02d $((left % 100)))"; fi',
        "}",
    ]
    for at_s, node, command in events:
        lines.append(f"until_cs {round((ZERO_S + at_s) * 100)}")
        lines.append(
            f"ip netns exec {node} sh -c '{command}'"
            if node and "'" not in command
            else f"ip netns exec {node} {command}"
            if node
            else command
        )
    return "\n".join(lines) + "\n"


def _parameters(values: dict[str, typing.Any]) -> str:
    return " ".join(f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in values.items())


def _frame_bytes(job: Job) -> int:
    """Bytes that one opportunity of a link trace carries: a full packet."""
    return job.setting.topology.frame_bytes


def _set_up_lines(job: Job) -> list[str]:
    """Lines that load modules and make nodes, links and queues, in this order, as an administrator would type them."""
    nodes = list(job.network.nodes)
    lines = ["set -eu", ". ./env.sh   # AGENT, MODULES, OUT", ""]
    for module in job.modules:
        parameters = _parameters(job.setting.modules.get(module, {}))
        if module == "lbe_link":
            parameters = f'file="$PWD/{LINK_TRACE}" zero_ns={round(ZERO_S * 1e9)} bytes={_frame_bytes(job)}'
        lines.append(f'insmod "$MODULES/{module}.ko" {parameters}'.rstrip())
    lines += ['"$AGENT" sysctl host.sysctl', ""]
    lines += [f"ip netns add {node}" for node in nodes]
    lines += [f'"$AGENT" --netns {node} sysctl {node}.sysctl' for node in nodes]
    lines.append("ip -batch links.ip")
    for node in nodes:
        lines.append(f"ip -n {node} -batch {node}.ip")
        lines.append(f"tc -n {node} -batch {node}.tc")
        if not job.setting.topology.offloads:
            lines.append(f'"$AGENT" --netns {node} offload off {" ".join(job.network.nodes[node].devices)}')
    return lines


def _run_lines(job: Job) -> list[str]:
    """Lines that run all agents and the timed events in parallel; the run fails if one of them fails."""
    lines = ["pids="]
    if job.events:
        lines.append('sh events.sh & pids="$pids $!"')
    for plan in job.plans:
        lines.append(f'"$AGENT" --netns {plan.node} run {plan.node}.plan & pids="$pids $!"')
    return [*lines, 'for pid in $pids; do wait "$pid"; done']


def _module_lines(modules: list[str]) -> list[str]:
    """Lines that read version and parameters of loaded modules back from the kernel."""
    lines = []
    for module in modules:
        name = "tcp_lp" if module == "tcp_lp_intree" else module
        lines += [
            f'echo "module {module}" >> "$OUT/modules"',
            f"for f in /sys/module/{name}/version /sys/module/{name}/srcversion /sys/module/{name}/parameters/*; do",
            '    [ -r "$f" ] && printf \'%s %s\\n\' "${f##*/}" "$(cat "$f")" >> "$OUT/modules"',
            "done",
        ]
    return lines


def _removed(job: Job) -> set[str]:
    """Modules that an event removes; they are read back before the traffic starts."""
    return {event.remove_module for event in job.setting.events if event.remove_module}


def _read_back_lines(job: Job) -> list[str]:
    """Lines that read back the kernel's qdiscs, sysctls, counters and modules after the traffic."""
    lines = []
    for node in job.network.nodes:
        lines.append(f'tc -s -j -n {node} qdisc show > "$OUT/{node}.qdisc"')
        lines.append(f'"$AGENT" --netns {node} facts {node}.sysctl "$OUT/{node}"')
    lines.append('uname -srvm > "$OUT/uname"')
    removed = _removed(job)
    if not removed:
        lines.append(': > "$OUT/modules"')
    lines += _module_lines([module for module in job.modules if module not in removed])
    return [*lines, "true"]


def _head_lines(job: Job) -> list[str]:
    case = " ".join(f"{key}={value}" for key, value in job.case.items()) or "base"
    return ["#!/bin/sh", "# SPDX-License-Identifier: GPL-2.0", f"# {job.experiment}, {case}, seed {job.seed}"]


def _script(job: Job) -> str:
    """job.sh."""
    first = _module_lines([module for module in job.modules if module in _removed(job)])
    parts = [*_head_lines(job), *_set_up_lines(job), "", *first, *_run_lines(job), "", *_read_back_lines(job)]
    return "\n".join(parts) + "\n"


def shell_script(job: Job, last: list[str]) -> str:
    """A job that sets the nodes up and then runs the lines ``last`` instead of traffic."""
    return "\n".join([*_head_lines(job), *_set_up_lines(job), *last]) + "\n"


def make(name: str, case: dict[str, str], seed: int, setting: Setting) -> Job:
    """The job of one run. ExperimentError, TopologyError or TrafficError for invalid parameters."""
    file = f"{name}.toml"
    flows = traffic.expand(setting.flows, seed)
    network = _network(setting, flows)
    made = traffic.plans(
        flows,
        network.addresses,
        network.queues,
        zero_ns=round(ZERO_S * 1e9),
        end_s=setting.head.duration_s,
        sample_ms=setting.head.sample_ms,
        out="/tmp/out",
    )
    modules = sorted({*traffic.modules_of(setting.flows), *setting.head.modules})
    if setting.topology.tick:
        modules.append("lbe_tick")
    if setting.topology.link_trace:
        modules.append("lbe_link")
    for module in setting.modules:
        if not isinstance(setting.modules[module], dict):
            raise ExperimentError(f"{file}:modules.{module}: expected a table of parameters")
    events = _event_commands(setting, flows, network, file)
    job = Job(name, case, seed, setting, network, flows, made, modules, events)

    host = HOST_SYSCTLS | (web.HOST_SYSCTLS if any(flow.spec.kind in web.KINDS for flow in flows) else {})
    files = {
        "host.sysctl": "".join(f"{key} = {value}\n" for key, value in host.items()),
        "links.ip": "\n".join(network.links) + "\n",
    }
    for node in network.nodes.values():
        files[f"{node.name}.sysctl"] = "".join(f"{key}={value}\n" for key, value in node.sysctl.items())
        files[f"{node.name}.ip"] = "\n".join(node.ip) + "\n"
        files[f"{node.name}.tc"] = "\n".join(node.tc) + "\n"
    for plan in made:
        files[f"{plan.node}.plan"] = plan.text()
    for flow in flows:
        if name := traffic.trace_name(flow):
            job.traces[name] = (flow.spec.file or "", setting.head.duration_s - flow.start_s, flow.seed)
            files[f"{name}.id"] = traces.identity(*job.traces[name]) + "\n"
    if setting.topology.link_trace:
        opportunities = links.make(setting.topology.link_trace, setting.topology.frame_bytes)
        files[LINK_TRACE] = "".join(f"{at_us}\n" for at_us in opportunities)
    if events:
        files["events.sh"] = _events_script(events)
    files["job.sh"] = _script(job)
    job.files = files
    return job


def dry_run(job: Job) -> str:
    """Everything that a run would do, as text for a reader."""
    parts = [
        f"# {job.experiment}: " + (" ".join(f"{k}={v}" for k, v in job.case.items()) or "base") + f", seed {job.seed}"
    ]
    parts += [
        f"insmod {module}.ko {_parameters(job.setting.modules.get(module, {}))}".rstrip() for module in job.modules
    ]
    parts += job.network.lines()
    parts += [f"# at {at_s:g} s on {node or 'the machine'}: {line}" for at_s, node, line in job.events]
    for plan in job.plans:
        parts += ["", f"# plan of {plan.node}", *plan.lines]
    return "\n".join(parts)
