# SPDX-License-Identifier: GPL-2.0
"""What the rows that lbe misses are due to: the model's network of each, with one thing changed at a time.

Documentation/tcp_lbe.md derives from the table why each of these rows is missed, and by how much.

python3 -m tcp_lbe.tests.causes         a Markdown table
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from tcp_lbe.tests.ablate import OFF
from tcp_lbe.tests.model import Case, Model, Outcome

#: the other traffic begins at 10 s: what these two leave out, they leave out from then on
NO_TRAINS = {
    "if (lbe_path_looks_idle(p) || lbe_path_flat(p, a->now_us))": "if (a->now_us < 9500000 && lbe_path_looks_idle(p))"
}
NO_PAIRS = {
    "return (u32)min_t(u64, us, LBE_PAIR_MAX_US);": "return p->now_us < 9500000 ? (u32)us : 1000 * USEC_PER_SEC;"
}
NO_PULSES, NO_BOUND = OFF["no pulses"], OFF["no bound on what is in flight"]
QUICK_PAIRS = {"u64 us = div_u64(p->now_us - p->since_us, LBE_PAIR_AGE);": "u64 us = 0;"}
NO_SILENCE = {"(u64)blind_rtts * p->rtt_us;": "(u64)(blind_rtts > 1 ? 1 : blind_rtts) * p->rtt_us;"}
ROOM_ENDS = {"if (p->train.on)\n\t\tcap +=": "if (p->train.on && p->now_us < p->train.until_us)\n\t\tcap +="}
IN_PROPORTION = {"\t\tdrain *= 2;\n": "\t\tdrain = 8 * drain * (s64)p->rate / mu;\n"}
PACKET_MORE = {"max(2 * p->mss, burst_bytes);": "max(2 * p->mss, burst_bytes) + p->mss;"}
LAW: dict[str, str] = {}
#: no flow of lbe
NOBODY: dict[str, str] | None = None


def at_most(rate: str) -> dict[str, str]:
    """A law whose rate in CRUISE is never above ``rate``, so that fewer packets are in flight when another begins."""
    return {"mu + mu / LBE_CRUISE_OVER);": f"{rate});"}


@dataclass(frozen=True)
class Row:
    """A row of the page, its network in the model, and what is changed."""

    title: str
    case: Case
    seeds: int
    changes: dict[str, dict[str, str] | None]


#: period -> fewer packets in flight when the other flow begins: 0, 21 and 41, where the law has 83
HELD: dict[float, dict[str, dict[str, str] | None]] = {
    1.0: {"nobody": NOBODY, "R at most mu / 4": at_most("mu / 4"), "R at most mu / 2": at_most("mu / 2")},
    3.0: {},
}
SWIFT = Case(other="greedy", other_start_s=30, other_stop_s=60, measure_s=35, duration_s=70)
ROWS = [
    Row("a greedy flow", Case(other="greedy"), 20, {"the law": LAW, "pairs each 1.25 RTT": QUICK_PAIRS}),
    Row("it ends after 30 s", SWIFT, 20, {"the law": LAW, "pairs each 1.25 RTT": QUICK_PAIRS}),
    *(
        Row(
            f"on/off {period:.0f} s",
            Case(other="onoff", on_s=period),
            10,
            {**held, "the law": LAW, "pairs each 1.25 RTT": QUICK_PAIRS, "1 RTT of silence": NO_SILENCE},
        )
        for period, held in HELD.items()
    ),
    *(
        Row(
            f"{hosts} hosts",
            Case(hosts=hosts, duration_s=120),
            10,
            {
                "the law": LAW,
                "no pulses": NO_PULSES,
                "no bound in flight": NO_BOUND,
                "the room for a pulse ends with it": ROOM_ENDS,
                "decreases in proportion to R": IN_PROPORTION,
            },
        )
        for hosts in (2, 4, 16)
    ),
    *(
        Row(title, case, 10, {"the law": LAW, "no trains": NO_TRAINS, "no pairs, no trains": NO_PAIRS})
        for title, case in (
            ("16 hosts, a greedy flow", Case(hosts=16, other="greedy")),
            ("20 packets, a greedy flow", Case(buffer_pkts=20, other="greedy")),
            ("1 Mbit/s, 9 packets, a greedy flow", Case(rate_mbit=1, buffer_pkts=9, other="greedy")),
        )
    ),
    Row(
        "1 Mbit/s, 9 packets",
        Case(rate_mbit=1, buffer_pkts=9),
        10,
        {"the law": LAW, "a packet more in flight": PACKET_MORE, "no bound in flight": NO_BOUND},
    ),
]


def cells(case: Case, runs: list[Outcome]) -> list[str]:
    """Best effort, lbe, Jain's index, and the time until the link is filled again: means, and the range of the last."""
    digits = 3 if case.rate_mbit < 10 else 2
    lbe = sum(run.total_mbit for run in runs) / len(runs)
    other = sum(run.other_mbit for run in runs) / len(runs)
    jain = sum(run.jain for run in runs) / len(runs)
    again = [run.reap_s for run in runs]
    if case.other_stop_s:  # the window of the rates ends after the other flow does
        return ["", "", "", f"{sum(again) / len(runs):.1f} ({min(again):.1f} to {max(again):.1f})"]
    return [
        f"{other:.{digits}f}" if case.other != "none" else "",
        f"{lbe:.{digits}f}",
        f"{jain:.2f}" if case.hosts > 1 and case.other == "none" else "",
        "",
    ]


def main() -> None:
    """Print the table."""
    print("| row | the law with | best effort | lbe | Jain | filled again after, s |\n" + "|---" * 6 + "|", flush=True)
    for row in ROWS:
        for name, mutations in row.changes.items():
            with tempfile.TemporaryDirectory() as folder:
                model = Model(Path(folder), mutations)
                case = replace(row.case, flows=0) if mutations is NOBODY else row.case
                runs = [model.run(replace(case, seed=seed)) for seed in range(1, row.seeds + 1)]
            print(f"| {row.title} | {name} | " + " | ".join(cells(row.case, runs)) + " |", flush=True)


if __name__ == "__main__":
    main()
