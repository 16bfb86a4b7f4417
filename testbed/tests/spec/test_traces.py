# SPDX-License-Identifier: GPL-2.0
"""The pre-existing traffic: statistics that the generator promises, and reading of captures."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest

from testbed.backends.uml import Uml
from testbed.base.errors import LbeError
from testbed.run import job
from testbed.run.runner import Options, run
from testbed.spec import experiment, traces
from testbed.spec.traces import Ethernet, TraceError

DURATION_S = 3000.0
FILE = "generate:ethernet"


@pytest.fixture(scope="module")
def trace() -> traces.Trace:
    return traces.make(FILE, DURATION_S, 1)


def test_mean_is_the_paper_s_in_every_seed(trace: traces.Trace) -> None:
    for seed in range(1, 6):
        made = traces.make(FILE, 300.0, seed)
        # a packet may lie after the end
        assert made.rate_bytes_s(300.0) == pytest.approx(179533, rel=1e-3), seed
    assert trace.rate_bytes_s(DURATION_S) == pytest.approx(179533, rel=1e-4)


def test_packets_are_full_or_much_smaller(trace: traces.Trace) -> None:
    assert trace.bytes.min() >= 20
    assert trace.bytes.max() == traces.MTU
    assert trace.bytes.mean() == pytest.approx(495, rel=0.02)
    full = float((trace.bytes == traces.MTU).mean())
    between = float(((trace.bytes > traces.SMALL_MAX_BYTES) & (trace.bytes < traces.MTU)).mean())
    assert 0.2 < full < 0.4
    # only the last packet of a transfer has a size in between
    assert between < 0.02


def test_the_wire_has_room_for_each_packet(trace: traces.Trace) -> None:
    """On 10 Mbit/s Ethernet a packet begins only after the end of the one before: none queues at 10 Mbit/s."""
    gaps_ns = np.diff(trace.at_ns.astype(np.int64))
    needed_ns = (trace.bytes[1:].astype(np.int64) + traces.WIRE_EXTRA_BYTES) * 800
    assert (gaps_ns >= needed_ns - 1).all()


def counts(trace: traces.Trace, step_s: float) -> np.ndarray:
    """Return the rate in Mbit/s of each step of the trace."""
    edges = np.arange(0, DURATION_S + step_s / 2, step_s)
    return np.histogram(trace.at_ns / 1e9, edges, weights=trace.bytes)[0] * 8e-6 / step_s


def test_bursts_stay_bursts_over_time_scales(trace: traces.Trace) -> None:
    """The variance of means over m steps falls as m^(2H-2). H is 0.5 for independent steps, above 0.65 on Ethernets.

    Without their cut at 4 MB, Pareto sizes of shape 1.2 would give H = (3 - 1.2) / 2 = 0.9.
    """
    rate = counts(trace, 0.1)
    steps = [1, 3, 10, 30, 100, 300]
    variances = [np.var(rate[: len(rate) // m * m].reshape(-1, m).mean(axis=1)) for m in steps]
    slope = np.polyfit(np.log(steps), np.log(variances), 1)[0]
    assert 0.65 < 1 + slope / 2 < 0.95


def test_bursts_fill_the_link_at_times_and_leave_it_empty_at_most(trace: traces.Trace) -> None:
    rate = counts(trace, 0.1)
    assert rate.max() > 9.0
    assert np.percentile(rate, 50) < 1.5
    assert np.percentile(rate, 99) > 5.0


def test_transfers_are_heavy_tailed() -> None:
    """Hill's estimator over the largest 5 % of sizes gives the shape. Each size is made of one uniform draw.

    The cut is raised so far that it does not change the tail.
    """
    keys = dataclasses.replace(Ethernet(), max_transfer_bytes=1e9)
    sizes = np.sort(traces._pareto(keys, np.random.default_rng(1).random(200000)))[::-1][:10000]
    assert 1 / np.mean(np.log(sizes[:-1] / sizes[-1])) == pytest.approx(keys.shape, rel=0.05)


def test_a_seed_makes_the_same_bytes_and_another_seed_others() -> None:
    one = traces.make(FILE, 20.0, 7).tobytes()
    assert one == traces.make(FILE, 20.0, 7).tobytes()
    assert one != traces.make(FILE, 20.0, 8).tobytes()
    assert traces.identity(FILE, 20.0, 7) != traces.identity(FILE, 20.0, 8)
    assert traces.identity(FILE, 20.0, 7) != traces.identity(FILE + " shape=1.3", 20.0, 7)


def test_the_agent_s_format() -> None:
    made = traces.make(FILE, 5.0, 1)
    data = made.tobytes()
    assert data[:8] == b"LBETRACE"
    assert len(data) == 8 + 12 * len(made.at_ns)
    assert struct.unpack_from("<QI", data, 8) == (int(made.at_ns[0]), int(made.bytes[0]))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("generate:token_ring", "known generators: ethernet"),
        ("generate:ethernet mean=1", "file.mean: unknown key; allowed are mean_bytes_s, mean_packet_bytes"),
        ("generate:ethernet shape", "expected key=value"),
        ("generate:ethernet shape=x", "is no number"),
        ("generate:ethernet shape=1.0", "allowed are 1.05 to 3"),
        ("generate:ethernet min_rate_mbit=5 max_rate_mbit=5", "must be below"),
        ("pcap:/nonexistent.pcap", "No such file"),
        ("pcap:/nonexistent.pcap speed=2", "unknown key; allowed are skip_s, loop"),
    ],
)
def test_refusals(file: str, words: str) -> None:
    with pytest.raises(LbeError, match=words):
        traces.make(file, 10.0, 1)


def test_mean_packet_out_of_reach() -> None:
    with pytest.raises(TraceError, match="must lie between"):
        traces.make("generate:ethernet mean_packet_bytes=100 small_mean_bytes=120", 10.0, 1)


# ------------------------------------------------------------------------------------- captures

ETHERNET, RAW = 1, 101


def ipv4(length: int) -> bytes:
    """Return a header with this length; only headers are read from a capture."""
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 1, 0, 64, 17, 0, bytes(4), bytes(4)) + bytes(8)


def ipv6(length: int) -> bytes:
    return struct.pack(">IHBB16s16s", 0x60000000, length - 40, 17, 64, bytes(16), bytes(16)) + bytes(8)


def pcap(path: Path, packets: list[tuple[float, bytes]], link: int = RAW) -> str:
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for at_s, frame in packets:
        data += struct.pack("<IIII", int(at_s), round(at_s % 1 * 1e6), len(frame), len(frame) + 1000) + frame
    path.write_bytes(data)
    return f"pcap:{path}"


def listed(trace: traces.Trace) -> list[tuple[float, int]]:
    return [(round(int(at) / 1e9, 6), int(size)) for at, size in zip(trace.at_ns, trace.bytes)]


def test_capture(tmp_path: Path) -> None:
    file = pcap(tmp_path / "a.pcap", [(100.0, ipv4(1500)), (100.5, ipv6(72)), (101.0, b"\xff" * 30), (102.0, ipv4(40))])
    assert listed(traces.make(file + " loop=0", 10.0, 1)) == [(0.0, 1500), (0.5, 72), (2.0, 40)]


def test_capture_of_ethernet(tmp_path: Path) -> None:
    header = bytes(12)
    frames = [(1.0, header + b"\x08\x00" + ipv4(400)), (1.1, header + b"\x08\x06" + bytes(28)),
              (1.2, header + b"\x86\xdd" + ipv6(60))]  # fmt: skip
    file = pcap(tmp_path / "e.pcap", frames, ETHERNET)
    assert listed(traces.make(file + " loop=0", 10.0, 1)) == [(0.0, 400), (0.2, 60)]


def block(kind: int, body: bytes) -> bytes:
    """Return a block of a pcapng file. The body's length must be a multiple of four bytes."""
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def test_capture_in_the_newer_format(tmp_path: Path) -> None:
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", RAW, 0, 65535))
    for at_us, frame in ((5_000_000, ipv4(300)), (5_250_000, ipv6(80))):
        data += block(6, struct.pack("<IIIII", 0, at_us >> 32, at_us & 0xFFFFFFFF, len(frame), 1000) + frame)
    path = tmp_path / "a.pcapng"
    path.write_bytes(data)
    assert listed(traces.make(f"pcap:{path} loop=0", 10.0, 1)) == [(0.0, 300), (0.25, 80)]


def test_capture_with_segmentation_offload(tmp_path: Path) -> None:
    file = pcap(tmp_path / "o.pcap", [(0.0, ipv4(3100))])
    assert listed(traces.make(file + " loop=0", 10.0, 1)) == [(0.0, 1500), (0.0, 1500), (0.0, 100)]


def test_capture_begins_again(tmp_path: Path) -> None:
    file = pcap(tmp_path / "l.pcap", [(5.0, ipv4(100)), (6.0, ipv4(200))])
    assert listed(traces.make(file, 4.5, 1)) == [(0.0, 100), (1.0, 200), (2.0, 100), (3.0, 200), (4.0, 100)]


def test_capture_from_later_on(tmp_path: Path) -> None:
    file = pcap(tmp_path / "s.pcap", [(5.0, ipv4(100)), (6.0, ipv4(200)), (7.5, ipv4(300))])
    assert listed(traces.make(file + " skip_s=1 loop=0", 9.0, 1)) == [(0.0, 200), (1.5, 300)]
    with pytest.raises(TraceError, match="after skip_s = 9"):
        traces.make(file + " skip_s=9", 9.0, 1)


def test_capture_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "n.pcap"
    path.write_bytes(b"no capture at all")
    with pytest.raises(TraceError, match="no capture that can be read"):
        traces.make(f"pcap:{path}", 9.0, 1)
    with pytest.raises(TraceError, match="no IP packet"):
        traces.make(pcap(path, []), 9.0, 1)


# ----------------------------------------------------------------------------------------- jobs

REPLAY = """
[experiment]
claim = "replay"
source = "-"
duration_s = 5
measure_s = [0, 5]
[flow.pre]
kind = "trace"
proto = "udp"
file = "generate:ethernet"
"""


def test_a_job_brings_its_trace(tmp_path: Path) -> None:
    setting = experiment.parse(REPLAY, Path("replay.toml")).setting({})
    made = job.make("replay", {}, 1, setting)
    flow = next(line for plan in made.plans for line in plan.lines if line.startswith("flow "))
    assert "kind=trace" in flow and "file=flow1.trace" in flow and "overhead_bytes=28" in flow
    made.write(tmp_path)
    data = (tmp_path / "flow1.trace").read_bytes()
    assert data == traces.make(FILE, 5.0, made.flows[0].seed).tobytes()
    assert made.content_hash() != job.make("replay", {}, 2, setting).content_hash()


def test_a_job_refuses_a_trace_that_cannot_be(tmp_path: Path) -> None:
    setting = experiment.parse(REPLAY.replace("ethernet", "fddi"), Path("replay.toml")).setting({})
    with pytest.raises(TraceError, match="known generators"):
        job.make("replay", {}, 1, setting)


WIRE = """
[experiment]
claim = "a capture goes over the link packet by packet"
source = "-"
duration_s = 4
measure_s = [0, 4]
[topology]
framing = "ip"
delay_ms = 5
[flow.pre]
kind = "trace"
proto = "udp"
file = "FILE"
stop_s = 3
[metric.rate]
kind = "kbytes_s"
flow = "pre"
[metric.lost]
kind = "udp_lost"
flow = "pre"
[metric.delay]
kind = "udp_delay_mean"
flow = "pre"
"""


@pytest.mark.scenario
def test_a_capture_is_replayed_on_the_wire(tmp_path: Path) -> None:
    """A capture of 1 s, with 1000 and 100 bytes in turn every 10 ms, is replayed in a loop; --set names the file."""
    file = pcap(tmp_path / "w.pcap", [(7 + i / 100, ipv4(1000 if i % 2 == 0 else 100)) for i in range(100)])
    path = tmp_path / "wire.toml"
    path.write_text(WIRE)
    options = Options(command="pytest", runs=1, sets={"flow.pre.file": file})
    made = run(experiment.load(str(path)), ready(), options, lambda *_: None)
    metrics = made.results[0].metrics
    # the payload of 300 packets, 150 of each size, in 4 s
    assert metrics["rate"] == pytest.approx(150 * (972 + 72) / 4 / 1000, rel=0.01)
    assert metrics["lost"] == 0
    # the path takes 7 ms, the sender's processing up to 1 ms
    assert 7 < metrics["delay"] < 9


def ready() -> Uml:
    """Prepare the user-mode kernel; no module is needed."""
    backend = Uml()
    backend.prepare([])
    return backend
