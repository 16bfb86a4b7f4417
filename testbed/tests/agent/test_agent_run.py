# SPDX-License-Identifier: GPL-2.0
"""The agent on this machine: in real time, in a network namespace of its own that has only lo.

Bounds on values that depend on timing are loose here; test_agent_uml.py measures these values in virtual time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from testbed.tests.agent.agent_build import (
    QUEUE,
    RECV,
    SEND,
    WEB,
    WEB_FAILED,
    WEB_PAGE,
    WEB_UNFINISHED,
    Run,
    namespace,
    run_loopback,
)


def ok(run: Run) -> Run:
    assert (run.status, run.stderr) == (0, "")
    return run


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run many kinds of flow together, for two seconds."""
    return ok(
        run_loopback(
            tmp_path_factory.mktemp("transfers"),
            """
            sample_ms 100
            sink port=5001 flow=1 verify=1
            sink port=5002 flow=2
            sink port=5003 flow=3 proto=udp
            sink port=5004 flow=4
            sink port=5005 flow=5 mode=every
            sink port=5006 flow=6 mode=slow rate_bps=4e6
            flow id=1 kind=bytes bytes=3000000 verify=1 seed=1 to=127.0.0.1 port=5001
            flow id=2 kind=cbr rate_bps=4e6 to=::1 port=5002 stop_s=1.5 close=fin
            flow id=3 kind=cbr rate_bps=1e6 pkt_bytes=500 proto=udp to=127.0.0.1 port=5003 stop_s=1.5
            flow id=4 kind=bytes bytes=250000 repeat_s=0.5 repeat_count=3 cc=reno to=127.0.0.1 port=5004
            flow id=5 kind=square rate_bps=8e6 period_s=0.5 duty=0.2 to=127.0.0.1 port=5005 stop_s=1.5
            flow id=6 kind=greedy to=127.0.0.1 port=5006 switch_s=1:reno
            queue id=1 dev=lo handle=1:
            """,
            end_s=2,
        )
    )


def test_a_verified_transfer(transfers: Run) -> None:
    (finished,) = transfers.events("lo", "verified", 1)
    assert finished[2]["bytes"] == "3000000"
    ends = transfers.events("lo", "finished", 1)
    assert [end[2]["bytes"] for end in ends] == ["3000000", "3000000"], "receiver, sender"
    assert not transfers.events("lo", "corrupt")


def test_constant_bit_rate_over_tcp(transfers: Run) -> None:
    (stop,) = transfers.events("lo", "stop", 2)
    # 1.5 s at 4 Mbit/s, give or take a tick's worth if the machine was late
    assert int(stop[2]["bytes"]) == pytest.approx(750_000, abs=4e6 / 8 * 0.1)
    received = transfers.records("lo", "recv", RECV)
    assert received[received["flow"] == 2]["bytes"][-1] == int(stop[2]["bytes"]), "close=fin loses nothing"


def test_constant_bit_rate_over_udp(transfers: Run) -> None:
    (sent,) = transfers.events("lo", "sent", 3)
    # one packet each 4 ms from 0 s on, none at 1.5 s or later
    assert int(sent[2]["packets"]) == 375
    (received,) = transfers.events("lo", "received", 3)
    assert (received[2]["packets"], received[2]["bytes"]) == ("375", str(375 * 500))


def test_repeated_connections(transfers: Run) -> None:
    starts = transfers.events("lo", "start", 4)
    assert [event[2]["conn"] for event in starts] == ["0", "1", "2"]
    assert [event[0] / 1e9 for event in starts] == pytest.approx([0, 0.5, 1.0], abs=0.2)
    assert len(transfers.events("lo", "finished", 4)) == 6
    received = transfers.records("lo", "recv", RECV)
    assert received[received["flow"] == 4]["bytes"][-1] == 750_000


def test_square_wave_over_tcp(transfers: Run) -> None:
    received = transfers.records("lo", "recv", RECV)
    total = received[received["flow"] == 5]["bytes"][-1]
    assert total == 3 * 8e6 / 8 * 0.1, "three times on, a fifth of half a second each"


def test_a_slow_reader_is_the_limit(transfers: Run) -> None:
    received = transfers.records("lo", "recv", RECV)
    mine = received[received["flow"] == 6]
    assert mine["bytes"][-1] == pytest.approx(4e6 / 8 * 2, rel=0.1)


def test_the_congestion_control_is_changed_live(transfers: Run) -> None:
    (event,) = transfers.events("lo", "switch", 6)
    assert event[2]["cc"] == "reno"
    assert event[0] / 1e9 == pytest.approx(1.0, abs=0.2)


def test_series_have_a_record_each_step(transfers: Run) -> None:
    received = transfers.records("lo", "recv", RECV)
    for flow in range(1, 7):
        times = received[received["flow"] == flow]["t_ns"]
        assert len(times) == 21, "0, 0.1, ... 2.0 s"
        # at its time on the grid, or later if the machine was late
        assert np.all(times.astype(np.int64) - np.arange(21) * 10**8 >= 0)
        assert np.all(np.diff(received[received["flow"] == flow]["bytes"].astype(np.int64)) >= 0)
    assert not received["reserved"].any()


def test_tcp_info(transfers: Run) -> None:
    sent = transfers.records("lo", "send", SEND)
    mine = sent[sent["flow"] == 2]
    assert len(mine) >= 13
    assert np.all(mine["cwnd_pkts"] >= 2)
    assert np.all(mine["mss_bytes"] > 1000)
    assert np.all(mine["minrtt_us"] <= mine["srtt_us"])
    assert np.all(np.diff(mine["bytes_acked"].astype(np.int64)) >= 0)
    assert np.all(mine["bytes_sent"] >= mine["bytes_acked"] - 1), "the handshake counts one byte"
    assert not sent[np.isin(sent["flow"], [3])].size, "UDP has none"


def test_queue_statistics(transfers: Run) -> None:
    queue = transfers.records("lo", "queue", QUEUE)
    assert len(queue) == 21
    assert set(queue["queue"]) == {1}
    received = transfers.records("lo", "recv", RECV)
    last = sum(received[received["flow"] == flow]["bytes"][-1] for flow in range(1, 7))
    assert queue["sent_bytes"][-1] > last
    assert queue["sent_pkts"][-1] > 0
    assert np.all(np.diff(queue["sent_bytes"].astype(np.int64)) >= 0)


@pytest.mark.parametrize("at", [0, 5, 99_999])
def test_one_wrong_byte_is_found(tmp_path: Path, at: int) -> None:
    run = run_loopback(
        tmp_path,
        f"""sink port=5001 flow=1 verify=1
        flow id=1 kind=bytes bytes=100000 verify=1 corrupt_at={at} to=127.0.0.1 port=5001""",
        end_s=0.5,
    )
    assert run.status == 1
    assert f"corrupt stream conn=0 at={at}" in run.stderr
    (event,) = run.events("lo", "corrupt", 1)
    assert event[2]["at"] == str(at)
    assert not run.events("lo", "verified")


def test_another_seed_is_another_stream(tmp_path: Path) -> None:
    run = run_loopback(
        tmp_path,
        """sink port=5001 flow=1 verify=1 seed=2
        flow id=1 kind=bytes bytes=1000 verify=1 seed=1 to=127.0.0.1 port=5001""",
        end_s=0.5,
    )
    assert run.status == 1
    assert "corrupt stream" in run.stderr


def test_an_unknown_congestion_control(tmp_path: Path) -> None:
    run = run_loopback(
        tmp_path,
        """flow id=7 kind=greedy cc=nosuch to=127.0.0.1 port=5001
        flow id=8 kind=greedy switch_s=1:never to=127.0.0.1 port=5001""",
        end_s=5,
    )
    assert run.status == 1
    assert "flow 7: congestion control nosuch refused: No such file or directory (available: " in run.stderr
    assert "flow 8: congestion control never refused" in run.stderr
    assert not run.events("lo", "start"), "nothing was sent"


@pytest.mark.parametrize("tolerated", [False, True])
def test_nobody_listens(tmp_path: Path, tolerated: bool) -> None:
    run = run_loopback(tmp_path, f"flow id=1 kind=greedy may_fail={int(tolerated)} to=127.0.0.1 port=5001", end_s=0.3)
    assert run.status == (0 if tolerated else 1)
    assert bool(run.stderr) is not tolerated
    (event,) = run.events("lo", "error", 1)
    assert "connect" in event[2]


def test_a_missing_queue(tmp_path: Path) -> None:
    run = run_loopback(tmp_path, "queue id=1 dev=eth7\nqueue id=2 dev=lo handle=5:", end_s=0.3)
    assert run.status == 1
    assert "queue dev=eth7: no such device" in run.stderr
    assert "queue dev=lo handle=5:0 parent=0:0: No such file or directory" in run.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    run = run_loopback(
        tmp_path,
        """sink port=5001 flow=1
        sink port=5002 flow=2
        flow id=1 kind=greedy sport=5002 to=127.0.0.1 port=5001""",
        end_s=0.3,
    )
    assert run.status == 1
    assert "bind to port 5002: Address already in use" in run.stderr


TRACE = [(0.0, 100), (0.1, 1428), (0.1, 28), (0.25, 1000)]


def write_text(path: Path) -> None:
    lines = [f"{seconds} {size}" for seconds, size in TRACE]
    path.write_text("# seconds bytes\n\n" + "\n".join(lines) + "  # the last\n")


def write_binary(path: Path) -> None:
    records = [struct.pack("<QI", round(seconds * 1e9), size) for seconds, size in TRACE]
    path.write_bytes(b"LBETRACE" + b"".join(records))


@pytest.mark.parametrize("write", [write_text, write_binary])
@pytest.mark.parametrize(("options", "packets", "size"), [("", 4, 2556), ("overhead_bytes=28", 4, 2556 - 4 * 28),
                                                          ("time_scale=2", 3, 1556)])  # fmt: skip
def test_a_trace_is_replayed(
    tmp_path: Path, write: Callable[[Path], None], options: str, packets: int, size: int
) -> None:
    write(tmp_path / "x.trace")
    run = ok(
        run_loopback(
            tmp_path,
            f"""sink port=5001 flow=1 proto=udp
            flow id=1 kind=trace file=x.trace proto=udp {options} to=127.0.0.1 port=5001 stop_s=0.4""",
            end_s=0.5,
        )
    )
    (received,) = run.events("lo", "received", 1)
    assert (int(received[2]["packets"]), int(received[2]["bytes"])) == (packets, size)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no packet in it"),
        (b"1.0\n", "x.trace:1: must be: seconds bytes"),
        (b"# x\n1.0 5 7\n", "x.trace:2: must be: seconds bytes"),
        (b"1 5\n0.5 5\n", "x.trace:2: time goes back"),
        (b"1 70000\n", "x.trace:1: size out of range 0 to 65507 bytes"),
        (b"-1 5\n", "x.trace:1: time out of range 0 to 1e6 s"),
        (b"LBETRACE1234567890", "x.trace:0: the last record is cut short"),
    ],
)
def test_a_bad_trace_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.trace").write_bytes(content)
    run = run_loopback(tmp_path, "flow id=1 kind=trace file=x.trace proto=udp to=127.0.0.1 port=5001", end_s=0.3)
    assert run.status == 1
    assert message in run.stderr


def test_timestamps_of_one_flow(tmp_path: Path) -> None:
    """The segment size shows whether the timestamp option is in use; the sysctl has its old value afterwards."""
    run = ok(
        run_loopback(
            tmp_path,
            """sink port=5001 flow=1
            sink port=5002 flow=2
            flow id=1 kind=greedy timestamps=0 maxseg=1000 to=127.0.0.1 port=5001
            flow id=2 kind=greedy maxseg=1000 to=127.0.0.1 port=5002""",
            end_s=0.3,
        )
    )
    sent = run.records("lo", "send", SEND)
    assert set(sent[sent["flow"] == 1]["mss_bytes"]) == {1000}
    assert set(sent[sent["flow"] == 2]["mss_bytes"]) == {988}


def test_fast_open_sends_the_first_bytes_with_the_syn(tmp_path: Path) -> None:
    """The first connection gets a cookie, the second uses it; a flow without the key requests no cookie."""
    (tmp_path / "out").mkdir()
    flow = "flow id={id} kind=bytes bytes=3000 repeat_s=0.2 repeat_count=2 to=127.0.0.1 port={port} {key}"
    plan = ["node lo", "end_s 0.6", "out out", "sink port=5001 flow=1", "sink port=5002 flow=2",
            flow.format(id=1, port=5001, key="fastopen=1"), flow.format(id=2, port=5002, key="")]  # fmt: skip
    (tmp_path / "a.plan").write_text("\n".join(plan) + "\n")
    done = namespace(
        # 0x403: Fast Open for clients and servers, and for every listener without a socket option
        'ip link set lo up; sysctl -q -w net.ipv4.tcp_fastopen=0x403; "$AGENT" run a.plan; cat /proc/net/netstat',
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    names, values = [line.split() for line in done.stdout.splitlines() if line.startswith("TcpExt:")]
    counters = dict(zip(names, values))
    assert (counters["TCPFastOpenActive"], counters["TCPFastOpenPassive"]) == ("1", "1")
    run = Run(0, "", tmp_path / "out")
    assert len(run.events("lo", "finished", 1)) == len(run.events("lo", "finished", 2)) == 4


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ok(
        run_loopback(
            tmp_path_factory.mktemp("web"),
            """
            server port=80 flow=1
            web id=1 kind=open rate_bps=8e6 objects=8 to=127.0.0.1 port=80 stop_s=2
            web id=2 kind=session sessions=20 page_s=0.1 to=::1 port=80 stop_s=2
            """,
            end_s=3,
        )
    )


def test_web_open_loop(web: Run) -> None:
    records = web.records("lo", "web", WEB)
    mine = records[records["flow"] == 1]
    pages, objects = mine[mine["flags"] & WEB_PAGE != 0], mine[mine["flags"] & WEB_PAGE == 0]
    assert not np.any(mine["flags"] & (WEB_FAILED | WEB_UNFINISHED))
    assert len(objects) == pages["objects"].sum()
    assert set(pages["objects"]) <= set(range(1, 9))
    assert sorted(pages["page"]) == list(range(len(pages)))
    for page in pages:
        of_page = objects[objects["page"] == page["page"]]
        assert page["bytes"] == of_page["bytes"].sum()
        assert page["dur_us"] >= of_page["dur_us"].max()
    # the time to the next page is its size divided by the load: all pages but the last fit into two seconds
    by_number = np.sort(pages, order="page")
    assert by_number["bytes"][:-1].sum() * 8 / 8e6 <= 2.0
    assert by_number["bytes"].sum() * 8 / 8e6 >= 2.0


def test_web_sessions(web: Run) -> None:
    records = web.records("lo", "web", WEB)
    mine = records[records["flow"] == 2]
    pages, objects = mine[mine["flags"] & WEB_PAGE != 0], mine[mine["flags"] & WEB_PAGE == 0]
    assert not np.any(mine["flags"] & (WEB_FAILED | WEB_UNFINISHED))
    assert set(pages["objects"]) == {10}
    assert len(objects) == 10 * len(pages)
    # 20 users load a page each 0.1 s and a few ms; a busy machine makes fewer (exact count: test_agent_uml.py)
    assert 0 < len(pages) < 450
    # the gaps between a page's requests are exponential with mean 1 ms: ten requests take about 9 ms
    assert np.median(pages["dur_us"]) > 3000


def test_web_sizes(web: Run) -> None:
    records = web.records("lo", "web", WEB)
    sizes = records[records["flags"] & WEB_PAGE == 0]["bytes"]
    assert sizes.min() >= 12
    assert sizes.max() <= 2_000_000


def test_web_totals(web: Run) -> None:
    (served,) = web.events("lo", "served")
    clients = web.events("lo", "web")
    records = web.records("lo", "web", WEB)
    objects = records[records["flags"] & WEB_PAGE == 0]
    assert int(served[2]["objects"]) == sum(int(c[2]["objects"]) for c in clients) == len(objects)
    assert int(served[2]["bytes"]) == sum(int(c[2]["bytes"]) for c in clients) == objects["bytes"].sum()
    received = web.records("lo", "recv", RECV)
    assert (
        received[received["flow"] == 1]["bytes"][-1] + received[received["flow"] == 2]["bytes"][-1]
        == objects["bytes"].sum()
    )


def test_web_without_a_server(tmp_path: Path) -> None:
    run = run_loopback(tmp_path, "web id=1 kind=open rate_bps=1e6 to=127.0.0.1 port=80", end_s=0.5)
    records = run.records("lo", "web", WEB)
    assert len(records)
    assert np.all(records["flags"] & WEB_FAILED)


def test_a_server_refuses_what_is_no_request(tmp_path: Path) -> None:
    run = run_loopback(
        tmp_path,
        """server port=80 flow=1
        flow id=2 kind=bytes bytes=1000 may_fail=1 to=127.0.0.1 port=80""",
        end_s=0.3,
    )
    (served,) = run.events("lo", "served")
    assert (served[2]["objects"], served[2]["broken"]) == ("0", "1")


def test_a_signal_ends_the_run_with_its_records(tmp_path: Path) -> None:
    (tmp_path / "a.plan").write_text("node a\nend_s 1000\nout .\nsink port=5001 flow=1\n")
    done = namespace('ip link set lo up\n"$AGENT" run a.plan & sleep 0.5; kill $!; wait $!', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Run(0, "", tmp_path).records("a", "recv", RECV)) >= 2


def test_offload_of_no_device(tmp_path: Path) -> None:
    done = namespace('"$AGENT" offload off nosuch', tmp_path)
    assert done.returncode == 1
    assert "offload nosuch: tso: No such device" in done.stderr


def test_wait_until(tmp_path: Path) -> None:
    done = namespace(
        "read -r up _ < /proc/uptime\n"
        '"$AGENT" wait-until 1\n'
        "IFS=. read -r s cs < /proc/uptime; cs=${cs%% *}\n"
        '"$AGENT" wait-until $(((s * 100 + 1$cs - 100 + 50) * 10000000))\n'
        "echo $up; cat /proc/uptime",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    before, after = (float(line.split()[0]) for line in done.stdout.splitlines())
    assert after - before >= 0.49


def test_many_flows_are_sampled_each_as_itself(tmp_path: Path) -> None:
    """More flows than one query to the kernel covers; each sends its own amount, and its last sample shows that."""
    flows = range(1, 151)
    lines = [f"sink port={5000 + one} flow={one}" for one in flows]
    lines += [
        f"flow id={one} kind=cbr rate_bps={one}e4 cc={'reno' if one % 2 else 'cubic'} to={to} port={5000 + one}"
        for one in flows
        for to in ["127.0.0.1" if one % 3 else "::1"]
    ]
    run = ok(run_loopback(tmp_path, "sample_ms 100\n" + "\n".join(lines), end_s=1))
    sent = run.records("lo", "send", SEND)
    received = run.records("lo", "recv", RECV)
    for one in flows:
        samples = sent[sent["flow"] == one]
        # all samples but the first, which is taken before the handshake
        assert len(samples) >= 8, f"flow {one}"
        assert (samples["cwnd_pkts"] > 0).all() and (samples["mss_bytes"] > 500).all()
        got = int(received[received["flow"] == one]["bytes"][-1])
        # The SYN counts as a byte; the sink has not yet read at most a tick's worth.
        assert abs(int(samples["bytes_acked"][-1]) - got) <= one * 1e4 / 8 * 0.1 + 2, f"flow {one}"
        assert abs(got - one * 1e4 / 8) <= one * 1e4 / 8 * 0.2, f"flow {one}"


def test_settings_and_counters_of_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "a.sysctl").write_text("net.ipv4.tcp_rmem=4096 65536  1000000\n\nnet.ipv4.tcp_ecn = 1\n")
    script = """
        mount -t tmpfs run /run
        mkdir /run/netns
        ip netns add a
        "$AGENT" --netns a sysctl a.sysctl
        ip netns exec a ip link set lo up
        ip netns exec a ping -qc 1 127.0.0.1 >/dev/null || :
        "$AGENT" --netns a facts a.sysctl in
        "$AGENT" facts a.sysctl own
        cat /proc/net/snmp /proc/net/netstat >own.expected
    """
    done = namespace(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "in.sysctl").read_text() == "net.ipv4.tcp_rmem = 4096\t65536\t1000000\nnet.ipv4.tcp_ecn = 1\n"
    own = dict(line.split(" = ") for line in (tmp_path / "own.sysctl").read_text().splitlines())
    assert own["net.ipv4.tcp_ecn"] != "1", "another namespace's was set"
    assert (tmp_path / "own.counters").read_text() == (tmp_path / "own.expected").read_text()
    assert (tmp_path / "in.counters").read_text().startswith("Ip: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sysctl bad", "sysctl net.ipv4.no_such: No such file or directory"),
        ("sysctl range", "sysctl net.ipv4.tcp_ecn=99: Invalid argument"),
        ("sysctl nofile", "sysctl nofile: No such file or directory"),
        ("facts bad out", "sysctl net.ipv4.no_such: No such file or directory"),
        ("facts range no/out", "facts no/out.sysctl: No such file or directory"),
        ("--netns nosuch sysctl range", "netns /run/netns/nosuch: No such file or directory"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "bad").write_text("net.ipv4.no_such=1\n")
    (tmp_path / "range").write_text("net.ipv4.tcp_ecn=99\n")
    done = namespace(f'"$AGENT" {words}', tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"lbe-agent: {said}\n"
