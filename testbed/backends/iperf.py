# SPDX-License-Identifier: GPL-2.0
"""iperf3 as the traffic source of real-time backends, beside the agent for flows that iperf3 cannot generate.

    plans of a job -> divide(): each plan without iperf3's flows + a shell fragment that scripts/traffic.sh runs
    samples of ss  -> collect(): the same records that the agent writes

iperf3 can generate a TCP flow that is greedy or has a constant rate, if its receiver reads promptly and it has no
further options. The agent remains responsible for sizes, on and off times, traces, web traffic, marks, UDP time
stamps and checks of the data, and it samples the queues. iperf3 takes four to five round trips until data flows.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..base.errors import LbeError
from ..base.places import SCRIPTS
from ..spec.records import RECV, SEND

KINDS = ("greedy", "cbr")
#: iperf3 takes over a flow or sink whose line has no other keys than these; these kinds do not use the seed
FLOW_KEYS = {"id", "kind", "to", "port", "proto", "cc", "start_s", "stop_s", "rate_bps", "dscp", "seed"}
SINK_KEYS = {"port", "flow", "proto", "mode"}
#: lines of a plan for which the agent has to run on a node
AGENT_WORDS = ("flow", "sink", "server", "web", "queue")
#: shortest interval of samples by ss, which is a new process for each sample and would load an emulated CPU
LEAST_SAMPLE_S = 0.5


class BadSamples(LbeError):
    """The output of ss cannot be parsed."""


class BadJob(LbeError):
    """A job folder does not have the form that job.py writes."""


@dataclass(frozen=True)
class Taken:
    """The flows that iperf3 carries: flow id -> (sending node, receiving node, port)."""

    flows: dict[int, tuple[str, str, int]]


def words_of(line: str) -> tuple[str, dict[str, str]]:
    """A plan's line as its first word and its keys; a value without a key is under ""."""
    first, *rest = line.split()
    keys = {}
    for word in rest:
        key, equals, value = word.partition("=")
        keys[key if equals else ""] = value if equals else word
    return first, keys


def expressible(first: str, keys: dict[str, str]) -> bool:
    """Whether iperf3 can generate this flow, or replace this sink."""
    if keys.get("proto", "tcp") != "tcp":
        return False
    if first == "flow":
        return keys["kind"] in KINDS and set(keys) <= FLOW_KEYS
    return first == "sink" and keys.get("mode", "prompt") == "prompt" and set(keys) <= SINK_KEYS


def divide(job: Path) -> Taken:
    """Rewrite the plans of a job folder, and write NODE.iperf for each node with a flow of iperf3."""
    plans = {path.stem: path.read_text(encoding="ascii").splitlines() for path in sorted(job.glob("*.plan"))}
    ends: dict[str, dict[int, tuple[str, dict[str, str]]]] = {"flow": {}, "sink": {}}
    for node, lines in plans.items():
        for line in lines:
            first, keys = words_of(line)
            if first in ends and expressible(first, keys):
                ends[first][int(keys["id" if first == "flow" else "flow"])] = node, keys
    both = set(ends["flow"]) & set(ends["sink"])
    taken = Taken(
        {one: (ends["flow"][one][0], ends["sink"][one][0], int(ends["flow"][one][1]["port"])) for one in both}
    )

    for node, lines in plans.items():
        kept, calls = [], []
        head: dict[str, str] = {}
        for line in lines:
            first, keys = words_of(line)
            number = int(keys.get("id" if first == "flow" else "flow", 0)) if first in ends else 0
            if number not in both:
                kept.append(line)
            elif first == "sink":
                calls.append(f"serve {keys['port']}")
            else:
                calls.append(
                    f"send {keys['port']} {keys['to']} {keys.get('cc', 'cubic')} {keys.get('rate_bps', 0)} "
                    f"{int(keys.get('dscp', 0)) << 2} {keys.get('start_s', 0)} {keys.get('stop_s', head['end_s'])}"
                )
            if first in ("zero_ns", "end_s", "sample_ms"):
                head[first] = keys[""]
        if not calls:
            continue
        has_agent = any(words_of(line)[0] in AGENT_WORDS for line in kept)
        sample_s = max(LEAST_SAMPLE_S, float(head["sample_ms"]) / 1000)
        fragment = [
            f"zero_cs={int(head['zero_ns']) // 10_000_000} end_s={head['end_s']} sample_s={sample_s:g}",
            f"agent={int(has_agent)}",
            *calls,
        ]
        (job / f"{node}.iperf").write_text("\n".join(fragment) + "\n", encoding="ascii")
        (job / f"{node}.plan").write_text("\n".join(kept) + "\n", encoding="ascii")
    return taken


def start_when_ready(job: Path) -> None:
    """Change a job so that its traffic starts when its set-up is done, instead of at a fixed time."""
    text = (job / "job.sh").read_text(encoding="ascii")
    if text.count("\npids=\n") != 1:
        raise BadJob("job.sh has no place where its set-up ends")
    (job / "job.sh").write_text(text.replace("\npids=\n", "\n. ./now.sh\npids=\n"), encoding="ascii")
    shutil.copy(SCRIPTS / "now.sh", job / "now.sh")


# --------------------------------------------------------------------------------------- samples


def samples(text: str) -> Iterator[tuple[float, dict[str, str]]]:
    """(uptime in seconds, fields) of each socket of each sample: "t UPTIME" lines, then those of `ss -tinHO`."""
    at_s = None
    for line in text.splitlines():
        if line.startswith("t "):
            at_s = float(line.split()[1])
            continue
        words = line.split()
        if at_s is None or len(words) < 5:
            raise BadSamples(f"unreadable sample of ss: {line[:100]!r}")
        fields = {"local": words[3], "peer": words[4]}
        for word in words[5:]:
            key, colon, value = word.partition(":")
            if colon:
                fields[key] = value
        yield at_s, fields


def port_of(end: str) -> int:
    """Port of an address in the format of ss."""
    return int(end.rpartition(":")[2])


def of_flow(text: str, side: str, port: int) -> list[tuple[float, dict[str, str]]]:
    """Samples of a flow's data connection; iperf3 has a second connection to the same port, which carries few bytes."""
    counter = "bytes_acked" if side == "peer" else "bytes_received"
    ends: dict[str, list[tuple[float, dict[str, str]]]] = {}
    for at_s, fields in samples(text):
        # of a closed connection ss shows only the addresses
        if port_of(fields[side]) == port and len(fields) > 2:
            ends.setdefault(fields["local"] + fields["peer"], []).append((at_s, fields))
    if not ends:
        return []
    return max(ends.values(), key=lambda one: int(one[-1][1].get(counter, 0)))


def number(fields: dict[str, str], key: str, scale: float = 1) -> int:
    """The first number of a field, 0 if ss omitted it (it omits zeros)."""
    match = re.match(r"[\d.]+", fields.get(key, ""))
    return round(float(match[0]) * scale) if match else 0


def collect(taken: Taken, out: Path, zeros: dict[str, float] | None = None) -> None:
    """Append records of iperf3's flows to the records of the agents.

    zeros: experiment time 0 of each node on its own clock, if the nodes have no common clock.
    """
    for one, (sender, receiver, port) in sorted(taken.flows.items()):
        for node, side, kind in ((sender, "peer", "send"), (receiver, "local", "recv")):
            path = out / f"{node}.ss"
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            zero_s = zeros[node] if zeros else int((out / "zero_cs").read_text(encoding="ascii")) / 100
            rows = of_flow(text, side, port)
            made = send_rows(one, rows, zero_s) if kind == "send" else recv_rows(one, rows, zero_s, text)
            with open(out / f"{node}.{kind}", "ab") as file:
                file.write(made.tobytes())


def send_rows(flow: int, rows: list[tuple[float, dict[str, str]]], zero_s: float) -> np.ndarray:
    """Records of the sender's state over time."""
    made = np.zeros(len(rows), dtype=SEND)
    for row, (at_s, fields) in zip(made, rows):
        row["t_ns"] = max(0, round((at_s - zero_s) * 1e9))
        row["flow"] = flow
        row["cwnd_pkts"] = number(fields, "cwnd")
        row["ssthresh_pkts"] = number(fields, "ssthresh")
        row["srtt_us"] = number(fields, "rtt", 1000)
        row["rttvar_us"] = round(float(fields.get("rtt", "0/0").partition("/")[2] or 0) * 1000)
        row["minrtt_us"] = number(fields, "minrtt", 1000)
        row["mss_bytes"] = number(fields, "mss")
        row["delivered_pkts"] = number(fields, "delivered")
        row["retrans_pkts"] = int(fields.get("retrans", "0/0").partition("/")[2] or 0)
        row["lost_pkts"] = number(fields, "lost")
        row["unacked_pkts"] = number(fields, "unacked")
        row["bytes_acked"] = number(fields, "bytes_acked")
        row["bytes_sent"] = number(fields, "bytes_sent")
    return made


def recv_rows(flow: int, rows: list[tuple[float, dict[str, str]]], zero_s: float, text: str) -> np.ndarray:
    """Records of the bytes received; after the end of the connection they stay constant, as in the agent's records."""
    if not rows:
        return np.empty(0, dtype=RECV)
    times = sorted({float(line.split()[1]) for line in text.splitlines() if line.startswith("t ")})
    known = {at_s: number(fields, "bytes_received") for at_s, fields in rows}
    series, last = [], 0
    for at_s in times:
        last = max(last, known.get(at_s, 0))
        if at_s >= rows[0][0]:
            series.append((max(0, round((at_s - zero_s) * 1e9)), flow, 0, last))
    return np.array(series, dtype=RECV)
