# SPDX-License-Identifier: GPL-2.0
"""What each mechanism of the law brings: the model's networks with one of them off at a time.

python3 -m tcp_lbe.tests.ablate         a Markdown table
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tcp_lbe.tests.model import EFFICIENCY, Case, Model

#: mechanism -> text of the law -> what stands there instead
OFF: dict[str, dict[str, str]] = {
    "all on": {},
    "no bound on what is in flight": {
        "if (p->state != LBE_CRUISE)\n\t\treturn U64_MAX;": "if (1)\n\t\treturn U64_MAX;",
    },
    "no pulses": {"#define LBE_PULSE_TICKS\t\t4": "#define LBE_PULSE_TICKS\t\t1000000"},
    "2 round trips of silence instead of a slow start's": {"for (; pkts > 1;": "for (; pkts > 100000000;"},
    "no strict evidence": {"return (p->fails >= LBE_STRICT_FAILS ||": "return (p->fails >= 1000 ||"},
    "strict evidence without an end": {"p->now_us - p->since_us < patience_us;": "patience_us;"},
    "any pair starts a train": {"if (lbe_path_looks_idle(p) ||": "if (p->n > 0 ||"},
    "no quarter of mu after a train": {"(p->fails ? LBE_WAIT_FAILED : LBE_WAIT_PART)": "LBE_WAIT_FAILED"},
    "the same gain above the target": {"drain *= 2;": "drain *= 1;"},
    "twice the gain": {"drain) / 2;": "2 * drain) / 2;"},
    "a silence of the link is others' queue": {"if (lbe_path_stood_still(p, a))": "if (0)"},
    "yields at a far queue alone": {
        "if (!far && q_us < p->q_us[(p->ticks - LBE_ROUND_TICKS) % LBE_PATH_TICKS] + jump_us) {": "if (!far) {"
    },
    "no backoff after failures": {
        "#define LBE_BACKOFF_FAILS\t2": "#define LBE_BACKOFF_FAILS\t1000000",
        "clamp_t(u32, p->fails + 1, LBE_PAIRS_MIN, LBE_PAIRS_MAX)": "2U",
    },
    "no arrival rate as a sign of a slower link": {
        "p->leaving = lbe_path_steps(p);": "p->leaving = false;",
    },
    "the arrival rate of any round trip": {"p->leaving = lbe_path_steps(p);": "p->leaving = true;"},
    "no spread as a sign of a slower link": {"#define LBE_INSPECT_FAILS\t2": "#define LBE_INSPECT_FAILS\t1000000"},
    "no rule for policers": {"p->lossy = min(p->lossy + 1, LBE_LOSS_ROUNDS);": "p->lossy = 0;"},
    "no RTT / 32 in the jump": {"#define LBE_JUMP_US\t\t4000": "#define LBE_JUMP_US\t\t1"},
    "no least time of a tick": {"#define LBE_TICK_US\t\t11000": "#define LBE_TICK_US\t\t1"},
    "a target of 2 p + e": {"max(own_us, error_us / LBE_TARGET_NOISE)": "own_us"},
    "no mu from what is in flight after START": {"\tp->few = few;\n": "\tp->few = false;\n"},
    "a drain within RTT, not a tick": {
        "return max(p->rtt_us, lbe_path_tick_len_us(p));": "return max_t(u32, p->rtt_us, LBE_TICK_US);"
    },
}
NETWORKS: dict[str, Case] = {
    "alone": Case(),
    "steady 6": Case(other="steady", other_mbit=6),
    "greedy": Case(other="greedy"),
    "on/off 1 s": Case(other="onoff"),
    "on/off 3 s": Case(other="onoff", on_s=3),
    "4 hosts": Case(hosts=4),
    "half": Case(change_s=20, change_mbit=5, measure_s=30),
    "half, 30 ms": Case(rtt_ms=30, change_s=20, change_mbit=5, measure_s=30),
    "pauses": Case(pause_s=0.25, buffer_pkts=120),
    "fair": Case(fair=1, other="greedy"),
    "policer": Case(policer=1, buffer_pkts=40, other="steady", other_mbit=4),
    "fast": Case(rate_mbit=100, other="steady", other_mbit=50, duration_s=40),
    "wireless": Case(200, 5, 200, noise_ms=4),
    "fair, noise": Case(50, 11, 45, noise_ms=1, fair=1, other="greedy"),
    "few": Case(0.8, 6, 10, fair=1),
    "slow": Case(2, 10, 10, flows=8, other="steady", other_mbit=1),
}


def row(model: Model) -> list[str]:
    """Best effort / lbe in Mbit/s (one number: lbe alone); mean of three seeds."""
    cells = []
    for case in NETWORKS.values():
        runs = [model.run(Case(**{**case.__dict__, "seed": seed})) for seed in (1, 2, 3)]
        lbe = sum(run.total_mbit for run in runs) / len(runs)
        other = sum(run.other_mbit for run in runs) / len(runs)
        cells.append(f"{other:.2f} / {lbe:.2f}" if case.other != "none" else f"{lbe:.2f}")
    return cells


def main() -> None:
    """Print the table."""
    print(f"Mbit/s of {10 * EFFICIENCY:.2f}; best effort / lbe; three seeds.\n")
    print("| the law with | " + " | ".join(NETWORKS) + " |")
    print("|---" * (len(NETWORKS) + 1) + "|")
    for name, mutations in OFF.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"| {name} | " + " | ".join(row(Model(Path(folder), mutations))) + " |")


if __name__ == "__main__":
    main()
