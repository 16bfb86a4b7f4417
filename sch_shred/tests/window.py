# SPDX-License-Identifier: GPL-2.0
"""The square root of packets times window as the hint, in place of the age, with the traffic of shred_today.

    python3 -m sch_shred.tests.window [SEEDS [SECONDS]]

prints the table of Documentation/sch_shred.md. In both rows the sending host's writer is examples/age.bpf.c. In the
second, one expression of it is replaced, so that the hint is sqrt(n W): n packets have been sent, W is the window.
"""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from pathlib import Path

from sch_shred.tests import bpf
from sch_shred.tests.seeds import print_table
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.base.places import REPO
from testbed.measure.metrics import Run
from testbed.run import runner
from testbed.spec.experiment import parse

TODAY = REPO / "testbed/experiments/sch_shred/shred_today.toml"
QUEUE = 'queue = { kind = "tc", bytes = 218750, tc = "shred bandwidth 10mbit" }'
LOAD = f"""
[[event]]
at_s = 0
node = "snd"
run = "{bpf.LOAD}"
"""

#: rows of the table
HINTS = {"age": "age", "window": "square root of packets times window"}

AGE = "tp->bytes_acked + (__u32)(tp->snd_nxt - tp->snd_una)"
#: an age of which age_class() makes the class of the hint sqrt(n W), which is half of the logarithm of n W
WINDOW = "window_age(tp->data_segs_out, tp->snd_cwnd)"
WINDOW_AGE = """
static __always_inline __u64 window_age(__u32 packets, __u32 window)
{
	__u64 product = (__u64)packets * window, age = 0;

#pragma unroll
	for (int c = 1; c < AGE_CLASSES; c++)
		if (product >> (2 * c))
			age = 1ULL << (c + AGE_UNIT_LOG);
	return age;
}
"""
BEFORE = "/* Age of an answer without a connection"


def source(hint: str) -> str:
    """The writer's source. hint: "age" or "window"."""
    text = bpf.SOURCE.read_text(encoding="utf-8").replace('#include "../uapi/', f'#include "{REPO}/sch_shred/uapi/')
    if hint == "age":
        return text
    assert text.count(AGE) == text.count(BEFORE) == 1, f"{bpf.SOURCE}: {AGE!r} or {BEFORE!r} is not there once"
    return text.replace(AGE, WINDOW).replace(BEFORE, f"{WINDOW_AGE.lstrip()}\n{BEFORE}")


def compiled(hint: str, folder: Path) -> Path:
    """The writer's program."""
    code = folder / f"{hint}.bpf.c"
    code.write_text(source(hint), encoding="utf-8")
    return bpf.compiled(code, folder / f"{hint}.bpf.o")


def experiment_of(program: Path) -> str:
    """shred_today with shred alone, whose hints the program writes on the sending host."""
    text = TODAY.read_text(encoding="utf-8").split("[[check]]")[0]
    text = re.sub(r"\[vary\.queue\]\n.*?\n(?=\[metric)", "", text, flags=re.DOTALL)
    text = re.sub(r"^queue = .*$", QUEUE, text, flags=re.MULTILINE)
    return text + LOAD.format(dev="eth0", program=f"{HOST_ROOT}{program}")


def measure(backend: Uml, text: str, seconds: int, seed: int) -> tuple[float, ...]:
    """Mean and 95th percentile of an object's time in seconds, FTP in Mbit/s; one run."""
    sets = {"experiment.duration_s": seconds, "experiment.measure_s": [20, seconds - 10]}
    sets["flow.web.stop_s"] = seconds - 10
    (job,) = runner.plan(parse(text, TODAY), runner.Options(runs=1, seed=seed, sets=sets))
    record = runner.run_one(job, backend)
    run = Run(record.series, job.setting, job.flows, record.facts)
    return tuple(run.value(job.setting.metrics[name]) for name in ("object", "p95", "ftp"))


def main(seeds: int, seconds: int) -> None:
    """Measure and print."""
    made = Uml()
    made.prepare(["sch_shred", "shred_hint"])
    heads = ("hint", "an object, s", "its 95th percentile, s", "ten FTP flows, Mbit/s")
    with tempfile.TemporaryDirectory() as folder:
        texts = {label: experiment_of(compiled(hint, Path(folder))) for hint, label in HINTS.items()}
        print_table(heads, ((label, partial(measure, made, text, seconds)) for label, text in texts.items()), seeds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, int(sys.argv[2]) if len(sys.argv) > 2 else 170)
