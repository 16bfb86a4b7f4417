# SPDX-License-Identifier: GPL-2.0
"""lbe's law in a closed loop with a link, on this machine: model.c, compiled with the header that the module uses.

A mutated law can be compiled too, so that a test can show that it would see the fault.

    python3 -m tcp_lbe.tests.model [key=value ...]      keys of Case; without any: a list of networks
"""

from __future__ import annotations

import ctypes
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from testbed.support import hostc, models

FOLDER = Path(__file__).resolve().parent
#: in the order in which one includes the other
LAW = [FOLDER.parent.parent / "include" / "lbe" / name for name in ("train.h", "path.h", "path_send.h")]
FLOWS_MAX = 128
OTHERS = ("none", "steady", "greedy", "onoff")
#: what TCP carries of a link that counts Ethernet headers
EFFICIENCY = 1448 / 1514


class _Config(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("rate_bps", "rtt_s", "buffer_pkts", "noise_us")),
        *((name, ctypes.c_int) for name in ("fair", "policer", "hosts", "flows", "other")),
        *((name, ctypes.c_double) for name in ("other_bps", "other_start_s", "other_stop_s", "on_s", "duration_s",
                                               "measure_s", "change_s", "change_bps", "back_s",
                                               "pause_every_s", "pause_s", "walk")),
        ("liars", ctypes.c_int),
        *((name, ctypes.c_double) for name in ("lie_us", "lie_stop_s", "chat_s", "answer_us", "others_start_s")),
        *((name, ctypes.c_int) for name in ("weighed", "together")),
        *((name, ctypes.c_double) for name in ("weight", "weigh_s")),
        ("seed", ctypes.c_ulonglong),
    ]  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = [
        ("host_bps", ctypes.c_double * FLOWS_MAX),
        *((name, ctypes.c_double) for name in ("other_bps", "queue_us", "queue_max_us", "rate_dev", "drops")),
        ("state_s", ctypes.c_double * 8),
        *((name, ctypes.c_double) for name in ("honest_bps", "weighed_bps", "pause_s")),
        *((name, ctypes.c_double) for name in ("capacity_bps", "paths", "reap_s")),
    ]


@dataclass(frozen=True)
class Case:
    """A network and what is on it.

    Buffer: 0 = one bandwidth-delay product, at least 20 packets. Noise: below 0 = one packet's time, at most 1 ms,
    which is what the testbed's hosts take to process a packet. Policer: the buffer is the size of its bucket. Liars: so
    many of the first host's flows. Weighed: so many of its last flows have the weight, each or together; 1000 is that
    of an ordinary flow, which they have until weigh_s.
    """

    rate_mbit: float = 10.0
    rtt_ms: float = 100.0
    buffer_pkts: float = 0.0
    noise_ms: float = -1.0
    fair: int = 0
    policer: int = 0
    hosts: int = 1
    flows: int = 1
    other: str = "none"
    other_mbit: float = 0.0
    other_start_s: float = 10.0
    other_stop_s: float = 0.0
    on_s: float = 1.0
    duration_s: float = 60.0
    measure_s: float = 20.0
    change_s: float = 0.0
    change_mbit: float = 0.0
    back_s: float = 0.0
    pause_every_s: float = 5.0
    pause_s: float = 0.0
    walk: float = 0.0
    liars: int = 0
    lie_ms: float = 30.0
    lie_stop_s: float = 0.0
    others_start_s: float = 0.0
    chat_s: float = 0.0
    answer_ms: float = 20.0
    weighed: int = 0
    together: int = 1
    weight: float = 1000.0
    weigh_s: float = 0.0
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """In the window: payload rates, the queue, and how much host 0's rate moved (deviation over mean)."""

    hosts_mbit: list[float] = field(repr=False)
    total_mbit: float = 0.0
    other_mbit: float = 0.0
    queue_ms: float = 0.0
    queue_max_ms: float = 0.0
    rate_dev: float = 0.0
    drops: int = 0
    states_s: tuple[float, ...] = ()
    honest_mbit: float = 0.0
    weighed_mbit: float = 0.0
    #: longest time for which a flow of host 0 sent nothing
    pause_s: float = 0.0
    capacity_mbit: float = 0.0
    paths: int = 0
    reap_s: float = 0.0

    @property
    def jain(self) -> float:
        """Jain's index over hosts."""
        squares = sum(rate * rate for rate in self.hosts_mbit)
        return self.total_mbit**2 / (len(self.hosts_mbit) * squares) if squares else 0.0


def mutated(mutations: dict[str, str] | None = None) -> str:
    """The source of the loop with the law. ``mutations``: text of it -> what stands there instead; each must be there
    once.
    """
    law = "".join(header.read_text(encoding="utf-8") for header in LAW)
    law = re.sub(r"^#include <lbe/(arith|train|path).h>", "", law, flags=re.MULTILINE)
    text = law + (FOLDER / "model.c").read_text(encoding="utf-8")
    return models.mutated("the law of lbe with its model", text, mutations)


class Model:
    """The compiled loop."""

    def __init__(self, folder: Path, mutations: dict[str, str] | None = None):
        """``mutations``: as for mutated()."""
        source = (
            "#define _GNU_SOURCE\n#include <lbe/arith.h>\n"
            '#pragma GCC diagnostic ignored "-Wunused-parameter"\n#pragma GCC diagnostic ignored "-Wunused-function"\n'
            + mutated(mutations)
        )
        self.library = hostc.load(source, folder, FOLDER.parent, "model")

    def run(self, case: Case) -> Outcome:
        """One run."""
        bdp_pkts = case.rate_mbit * 1e6 / 8 * case.rtt_ms / 1e3 / 1514
        config = _Config(
            rate_bps=case.rate_mbit * 1e6,
            rtt_s=case.rtt_ms / 1e3,
            buffer_pkts=case.buffer_pkts or max(20.0, bdp_pkts),
            noise_us=case.noise_ms * 1e3 if case.noise_ms >= 0 else min(1e3, 1514 * 8 / case.rate_mbit),
            fair=case.fair,
            policer=case.policer,
            hosts=case.hosts,
            flows=case.flows,
            other=OTHERS.index(case.other),
            other_bps=case.other_mbit * 1e6,
            other_start_s=case.other_start_s,
            other_stop_s=case.other_stop_s,
            on_s=case.on_s,
            duration_s=case.duration_s,
            measure_s=case.measure_s,
            change_s=case.change_s,
            change_bps=case.change_mbit * 1e6,
            back_s=case.back_s,
            pause_every_s=case.pause_every_s,
            pause_s=case.pause_s,
            walk=case.walk,
            liars=case.liars,
            lie_us=case.lie_ms * 1e3,
            lie_stop_s=case.lie_stop_s,
            others_start_s=case.others_start_s,
            chat_s=case.chat_s,
            answer_us=case.answer_ms * 1e3,
            weighed=case.weighed,
            together=case.together,
            weight=case.weight,
            weigh_s=case.weigh_s,
            seed=case.seed,
        )
        made = _Result()
        if self.library.model_run(ctypes.byref(config), ctypes.byref(made)):
            raise ValueError(f"at most {FLOWS_MAX} flows")
        hosts = [rate / 1e6 for rate in made.host_bps[: case.hosts]]
        return Outcome(
            hosts,
            sum(hosts),
            made.other_bps / 1e6,
            made.queue_us / 1e3,
            made.queue_max_us / 1e3,
            made.rate_dev,
            round(made.drops),
            tuple(made.state_s),
            made.honest_bps / 1e6,
            made.weighed_bps / 1e6,
            made.pause_s,
            made.capacity_bps / 1e6,
            round(made.paths),
            made.reap_s,
        )


#: a look at the law in a few seconds
NETWORKS: dict[str, dict[str, float | str]] = {
    "alone": {},
    "steady 6": {"other": "steady", "other_mbit": 6},
    "greedy": {"other": "greedy"},
    "on/off 1 s": {"other": "onoff"},
    "on/off 3 s": {"other": "onoff", "on_s": 3},
    "16 flows": {"flows": 16},
    "64 flows": {"flows": 64},
    **{f"{hosts} hosts": {"hosts": hosts} for hosts in (2, 4, 16)},
    **{f"{hosts} hosts, greedy": {"hosts": hosts, "other": "greedy"} for hosts in (4, 16)},
    "half": {"change_s": 20, "change_mbit": 5, "measure_s": 30},
    "double": {"change_s": 20, "change_mbit": 20, "measure_s": 30},
    "20 packets": {"buffer_pkts": 20},
    "20 packets, greedy": {"buffer_pkts": 20, "other": "greedy"},
    "pauses of 0.25 s": {"pause_s": 0.25, "buffer_pkts": 120},
    "pauses, on/off 1 s": {"pause_s": 0.25, "buffer_pkts": 120, "other": "onoff"},
    "a rate that moves": {"walk": 0.15, "buffer_pkts": 200},
    **{f"noise {noise} ms": {"noise_ms": noise} for noise in (0, 2, 4, 8)},
    **{
        f"{rate} Mbit/s {rtt} ms": {"rate_mbit": rate, "rtt_ms": rtt, "duration_s": 40}
        for rate in (1, 4, 20, 37, 200)
        for rtt in (7, 17, 60, 180, 300)
    },
}


def main(words: list[str]) -> None:
    """Print a line for each network, or for the one that the words describe."""
    asked = models.asked(Case, words)
    with tempfile.TemporaryDirectory() as folder:
        model = Model(Path(folder))
        head = ("lbe", "% of left", "other", "Jain", "queue ms", "dev")
        print(f"{'network':24}" + "".join(f"{word:>10}" for word in head) + "  start cruise floor probe [s]")
        for name, keys in ({" ".join(words): asked} if words else NETWORKS).items():
            case = Case(**keys)
            out = model.run(case)
            left = (case.change_mbit or case.rate_mbit) * EFFICIENCY - out.other_mbit
            used_pct = 100 * out.total_mbit / left
            numbers = (out.total_mbit, used_pct, out.other_mbit, out.jain, out.queue_ms, out.rate_dev)
            states = " ".join(f"{one:5.1f}" for one in out.states_s[:4])
            print(f"{name:24}" + "".join(f"{one:10.2f}" for one in numbers) + "  " + states)


if __name__ == "__main__":
    main(sys.argv[1:])
