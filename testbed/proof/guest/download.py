# SPDX-License-Identifier: GPL-2.0
"""Downloads under vulture from a Linux sender, and pages beside them: download.py CONTROL PROGRAM... in the guest.

    home ---- rtr ---- net       10 Mbit/s from rtr to home, with a buffer of 200 ms; 15 ms each way between rtr and
                 `---- mirror    the others. net has the pages, by cubic; mirror has the files, by CONTROL.

home is the machine itself. The unit fetch.service runs PROGRAM, and /etc/lbe/background.conf names this unit. A page
has 30 objects, which curl loads over six connections. For each program there are three downloads:

    plain     without vulturectl.service: pages beside the download, which is then ended
    first     with the service: the download alone, then pages beside it. During the last page the service is stopped;
              the download goes on alone to its end
    second    the service has been started again: a page beside the download. During the next page the module is
              removed; the download goes on alone to its end

Prints a line of JSON for each program. Rates are in percent of the link's, with headers. Those beside a page are what
mirror sends, those alone what home receives.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from person import GOT, URL, WEB, WORK, node, page_sizes, serve_web, shell

MIRROR = "10.3.0.2"
LINK_BIT = 10_000_000
LARGE_BYTES = 16_000_000
#: for downloads that are ended
ENDLESS_BYTES = 100_000_000
#: name -> command, without the address of a file in mirror
PROGRAMS = {
    "curl": f"curl -s -o {GOT}/got",
    "aria2c": f"aria2c -q -x16 -s16 -k1M --file-allocation=none -d {GOT} -o got",
    "go": f"fetch {GOT}/got",
}
#: connections that each of them opens
CONNECTIONS = {"curl": 1, "aria2c": 16, "go": 1}
PAGES = 3
PAGES_S = 10.0
#: from the start of a download until its rate is measured or a page is loaded: a slow start, and what follows it
BEGIN_S = 3.0
RATE_S = 2.0
#: from the start of a page until the service is stopped or the module is removed: the download has stepped aside
WITHIN_PAGE_S = 0.4
#: between two pages, and between an interruption and what is measured after it
PAUSE_S = 1.0
LIMIT_S = 120.0


def build_network(control: str) -> None:
    delayed = "rtr r1", "rtr r2", "net n0", "mirror m0"
    devices = " ".join(f"'{one}'" for one in ("rtr r0", *delayed))
    shell(f"""
for n in rtr net mirror; do ip netns add $n; ip -n $n link set lo up; done
ip link add h0 type veth peer name r0 netns rtr
ip link add r1 netns rtr type veth peer name n0 netns net
ip link add r2 netns rtr type veth peer name m0 netns mirror
ip address add 10.0.0.2/24 dev h0; ip link set h0 up
set_up() {{ ip -n $1 address add $3 dev $2; ip -n $1 link set $2 up; }}
set_up rtr r0 10.0.0.1/24; set_up rtr r1 10.1.0.1/24; set_up rtr r2 10.3.0.1/24
set_up net n0 10.1.0.2/24; set_up mirror m0 {MIRROR}/24
ip route add default via 10.0.0.1
ip -n net route add default via 10.1.0.1
ip -n mirror route add default via 10.3.0.1
ip link set h0 gso_max_segs 1
for e in {devices}; do set -- $e; ip -n $1 link set $2 gso_max_segs 1; done
tc -n rtr qdisc add dev r0 root tbf rate {LINK_BIT} burst 3200 limit {LINK_BIT // 8 // 5}
for e in {" ".join(f"'{one}'" for one in delayed)}; do
    set -- $e; tc -n $1 qdisc add dev $2 root netem delay 15ms limit 10000
done
modprobe tcp_bbr
# a namespace's default may be a control that all may use only
sysctl -qw net.ipv4.tcp_allowed_congestion_control="cubic reno bbr"
nsenter --net=/run/netns/rtr sysctl -qw net.ipv4.ip_forward=1
nsenter --net=/run/netns/mirror sysctl -qw net.ipv4.tcp_congestion_control={control}
""")


def serve() -> None:
    """Serve the pages in net, and the large file in mirror."""
    serve_web()
    shell(f"head -c {LARGE_BYTES} /dev/urandom > {WEB}/large; truncate -s {ENDLESS_BYTES} {WEB}/endless")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    node("mirror", "nginx", "-c", f"{WORK}/nginx.conf", "-g", "daemon off;", **quiet)
    objects = [f'url = "{URL}/{size}?{number}"\noutput = "/dev/null"\n' for number, size in enumerate(page_sizes())]
    (WORK / "page").write_text("".join(objects))
    time.sleep(1)


# ------------------------------------------------------------------------------------------ what is measured


def octets(name: str, device: str, way: str) -> int:
    """Octets that a node's device has received or sent."""
    inside = [] if name == "home" else ["-n", name]
    said = subprocess.check_output(["ip", *inside, "-j", "-s", "link", "show", device], text=True)
    return int(json.loads(said)[0]["stats64"][way]["bytes"])


class Rate:
    """What passes a device from now on, in percent of the link's rate."""

    def __init__(self, *place: str) -> None:
        self.place = place
        self.begin = time.monotonic(), octets(*place)

    def percent(self) -> float:
        at, count = self.begin
        return 100 * 8 * (octets(*self.place) - count) / (time.monotonic() - at) / LINK_BIT


def received_percent() -> float:
    """What home receives for RATE_S."""
    rate = Rate("home", "h0", "rx")
    time.sleep(RATE_S)
    return rate.percent()


def load_page(during: Callable[[], None] | None = None) -> tuple[float, float]:
    """Load a page; returns its time in seconds, and the download's rate beside it until ``during`` is called."""
    rate = Rate("mirror", "m0", "tx")
    begin = time.monotonic()
    words = ["curl", "-s", "--parallel", "--parallel-max", "6", "--no-progress-meter", "--config", f"{WORK}/page"]
    done = node("home", *words)
    if during:
        time.sleep(WITHIN_PAGE_S)
        percent = rate.percent()
        during()
    assert done.wait() == 0
    took = time.monotonic() - begin
    return took, percent if during else rate.percent()


def load_pages(count: int) -> tuple[float, float]:
    """Medians of that many pages, or of fewer if these take PAGES_S."""
    loaded: list[tuple[float, float]] = []
    end = time.monotonic() + PAGES_S
    while len(loaded) < count and time.monotonic() < end:
        loaded.append(load_page())
        time.sleep(PAUSE_S)
    return statistics.median(took for took, _ in loaded), statistics.median(percent for _, percent in loaded)


# ------------------------------------------------------------------------------------------ the download


class Download:
    """fetch.service with a program and a file of mirror."""

    def __init__(self, program: str, file: str = "large") -> None:
        unit = f"[Service]\nType=exec\nExecStart={PROGRAMS[program]} http://{MIRROR}/{file}\n"
        Path("/etc/systemd/system/fetch.service").write_text(unit)
        shell(f"""
rm -f {GOT}/*; systemctl daemon-reload
ip tcp_metrics flush; nsenter --net=/run/netns/mirror ip tcp_metrics flush
""")
        self.done = subprocess.Popen(["systemctl", "start", "--wait", "fetch.service"])
        time.sleep(BEGIN_S)

    def goes_on(self) -> bool:
        return self.done.poll() is None

    def end(self) -> None:
        shell("systemctl stop fetch.service")
        self.done.wait(LIMIT_S)

    def is_intact(self) -> bool:
        """Wait for the end; whether the program succeeded and has what the server has."""
        return self.done.wait(LIMIT_S) == 0 and digest_of(GOT / "got") == digest_of(WEB / "large")


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def controlled() -> int:
    """Number of connections under control."""
    return subprocess.check_output(["vulturectl", "list"], text=True).count(f"{MIRROR}:80")


def stop_service() -> None:
    shell("systemctl stop vulturectl.service; [ -z \"$(vulturectl showconf)\" ]")


def plain(program: str) -> dict[str, float]:
    download = Download(program, "endless")
    page, beside = load_pages(PAGES)
    measured = {"page_plain": page, "beside_plain": beside, "long_plain": download.goes_on()}
    download.end()
    return measured


def first(program: str) -> dict[str, float]:
    shell("systemctl start vulturectl.service")
    download = Download(program)
    alone, connections = received_percent(), controlled()
    page, beside = load_pages(PAGES - 1)
    load_page(during=stop_service)
    time.sleep(PAUSE_S)
    stopped = received_percent()
    return {
        "alone": alone, "connections": connections, "page": page, "beside": beside, "stopped": stopped,
        "long_first": download.goes_on(), "intact_first": download.is_intact(),
    }  # fmt: skip


def second(program: str) -> dict[str, float]:
    shell("systemctl start vulturectl.service")
    download = Download(program)
    page, beside = load_page()
    time.sleep(PAUSE_S)
    load_page(during=lambda: shell("rmmod vulture"))
    time.sleep(PAUSE_S)
    measured = {
        "page_second": page, "beside_second": beside, "removed": received_percent(),
        "long_second": download.goes_on(), "intact_second": download.is_intact(),
    }  # fmt: skip
    shell("systemctl stop vulturectl.service")
    return measured


def of_program(program: str) -> dict[str, Any]:
    measured = {**plain(program), **first(program), **second(program)}
    return {"program": program, "expected_connections": CONNECTIONS[program], **measured}


def main(control: str, *programs: str) -> None:
    if subprocess.run(["ldd", "/usr/bin/fetch"], check=False, capture_output=True).returncode == 0:
        raise SystemExit("fetch is not statically linked")
    build_network(control)
    serve()
    Path("/etc/lbe").mkdir(exist_ok=True)
    Path("/etc/lbe/background.conf").write_text("unit fetch.service\n")
    load_pages(1)
    empty, _ = load_pages(PAGES)
    for program in programs or PROGRAMS:
        print(json.dumps({"control": control, "page_empty": empty, **of_program(program)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # does not wait for the servers, which end with the machine
