# SPDX-License-Identifier: GPL-2.0
"""The emulated timestamp clocks, read from the wire: tick, offset, speed, wrap; and TCP works with them."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path

import numpy as np
import pytest

from testbed.backends.uml import Uml
from testbed.run import job as jobs
from testbed.run.runner import run_one
from testbed.spec.experiment import parse
from testbed.spec.records import SEND

pytestmark = pytest.mark.scenario

EXPERIMENT = """
[experiment]
claim = "c"
source = "s"
duration_s = 8
measure_s = [1, 8]
[topology]
tick = {{ rcv = {{ {tick} }} }}
[flow.a]
family = {family}
[flow.back]
kind = "cbr"
rate_mbit = 1
source = "rcv"
to = "snd"
family = {family}
[[event]]
at_s = 1.5
node = "rtr"
run = "python3 /tmp/host{script} east 5"
"""


def capture(device: str, seconds: float) -> None:
    """Write (CLOCK_MONOTONIC ns, source port, TSval, TSecr) of rcv's TCP packets to ts.bin; runs in the guest."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tap.bind((device, 0))
    tap.settimeout(1)
    end = time.monotonic() + seconds
    with open("/tmp/out/ts.bin", "wb") as out:
        while time.monotonic() < end:
            try:
                packet, address = tap.recvfrom(256)
            except TimeoutError:
                continue
            now = time.monotonic_ns()
            if address[2] == socket.PACKET_OUTGOING:
                continue
            six = packet[12:14] == b"\x86\xdd"
            at = 54 if six else 14 + 4 * (packet[14] & 15)
            if packet[20 if six else 23] != 6:
                continue
            options, stop = at + 20, at + 4 * (packet[at + 12] >> 4)
            while options < stop and packet[options] != 0:
                if packet[options] == 8:
                    out.write(
                        struct.pack(
                            "<QIII",
                            now,
                            int.from_bytes(packet[at : at + 2], "big"),
                            *struct.unpack_from(">II", packet, options + 2),
                        )
                    )
                    break
                options += 1 if packet[options] == 1 else packet[options + 1]


if __name__ == "__main__":
    import sys

    capture(sys.argv[1], float(sys.argv[2]))
    sys.exit(0)


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare({"lbe_tick"})
    return made


def shown(backend: Uml, folder: Path, tick: str, family: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Run the experiment; return captured packets of the forward flow's receiver and all sender samples."""
    text = EXPERIMENT.format(tick=tick, family=family, script=capture_script(folder))
    one = parse(text, Path("ticks.toml"))
    folder.mkdir(exist_ok=True)
    run_one(jobs.make("ticks", {}, 1, one.setting({})), backend, keep=folder)
    rows = np.fromfile(
        folder / "out" / "ts.bin", dtype=[("ns", "<u8"), ("port", "<u4"), ("val", "<u4"), ("ecr", "<u4")]
    )
    assert len(rows) > 1000
    samples = np.concatenate([np.fromfile(folder / "out" / f"{node}.send", dtype=SEND) for node in ("snd", "rcv")])
    return rows[rows["port"] == 5001], samples


def capture_script(folder: Path) -> Path:
    """Write capture() as a script that imports nothing of the testbed; return its path."""
    folder.mkdir(exist_ok=True)
    source = Path(__file__).read_text(encoding="utf-8")
    body = source[source.index("def capture") : source.index("@pytest.fixture")]
    script = folder / "capture.py"
    script.write_text("import socket, struct, time\n\n\n" + body, encoding="utf-8")
    return script


@pytest.mark.parametrize(
    ("tick_us", "drift_ppm", "family"),
    [(1, 0, 4), (1000, 0, 4), (4000, 0, 6), (10000, 0, 4), (1000, 200, 4), (1000, -200, 6)],
)
def test_clock_is_the_one_asked_for(backend: Uml, tmp_path: Path, tick_us: int, drift_ppm: int, family: int) -> None:
    rows, samples = shown(backend, tmp_path / "run", f"tick_us = {tick_us}, drift_ppm = {drift_ppm}", family)
    # the path, of 50 ms with a jitter of 1 ms, lies between the clock and the capture
    expected = rows["ns"] / 1e3 * (1 + drift_ppm / 1e6) / tick_us
    late = expected - rows["val"].astype(float)
    assert late.min() >= 50000 / tick_us - 1
    assert late.max() <= 50000 / tick_us + 2000 / tick_us + 130000 / tick_us + 1
    slope = np.polyfit(rows["ns"] / 1e9, np.unwrap(rows["val"].astype(float), period=2**32), 1)[0]
    assert slope == pytest.approx(1e6 / tick_us * (1 + drift_ppm / 1e6), rel=50e-6 + 0.1 * tick_us / 1e6)
    # TCP on the host itself gets its own clock back: its flow's RTT is the path's, less at most two ticks
    own = samples[(samples["flow"] == 2) & (samples["t_ns"] > 1e9)]["srtt_us"] / 1e3
    assert 100 - 2.2 * tick_us / 1e3 - 1 < own.mean() < 260
    # and it accepts the handshake's last ACK (its check is strict since 6.14): four round trips carry 70 kB
    early = samples[(samples["flow"] == 1) & (samples["t_ns"] < 0.6e9)]
    assert early["bytes_acked"].max() > 40e3 and early["retrans_pkts"].max() == 0
    assert samples[samples["flow"] == 1]["bytes_acked"].max() > 4e6


def test_value_wraps_when_asked_to(backend: Uml, tmp_path: Path) -> None:
    rows, samples = shown(backend, tmp_path / "run", "tick_us = 1000, wrap_at_s = 4")
    wrapped = np.flatnonzero(np.diff(rows["val"].astype(np.int64)) < 0)
    assert len(wrapped) == 1
    # 4 s of the experiment's time are 14 s of uptime
    assert rows["ns"][wrapped[0]] / 1e9 == pytest.approx(14.05, abs=0.2)
    assert samples[samples["flow"] == 1]["bytes_acked"].max() > 4e6


def test_connections_have_offsets_of_their_own(backend: Uml, tmp_path: Path) -> None:
    first, _ = shown(backend, tmp_path / "one", "tick_us = 1000, per_flow = true")
    plain, _ = shown(backend, tmp_path / "two", "tick_us = 1000")
    assert abs(int(first["val"][0]) - int(plain["val"][0])) > 100000
