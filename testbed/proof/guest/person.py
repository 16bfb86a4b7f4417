# SPDX-License-Identifier: GPL-2.0
"""A user at home, and a third-party program beside them: person.py PROGRAM [MODE...] in the guest.

    home ---- rtr ---- wan ---- net      20 Mbit/s down and 5 Mbit/s up between home and rtr, each way with a buffer
                                         of 200 ms; wan delays each way by 15 ms

home is the machine itself, under systemd; the others are namespaces. The servers in net are third-party programs too.
For PERSON_S the user loads a page of 30 objects every 2 s (by curl with six parallel connections, like a browser) and
has a voice call of 50 packets a second each way. PROGRAM starts PROGRAM_AT_S later. MODE:

    alone         PROGRAM without the user
    plain         PROGRAM with the user, as it is
    background    PROGRAM with the user, started by vulturectl run (apt: by the unit background@)

Each mode runs PROGRAM in a login session of the ordinary user NAME, who has no privilege: in the background,
lbe-background.service gives vulturectl run what it needs. Only the programs of BY_ROOT run as root. The environment
variable RUN is the number of the run: each run starts PROGRAM at another time after the begin of a page.

PROGRAM nobody means the user without a program. Any other program first runs once alone, unmeasured, so that its files
are in the page cache: in an emulated machine disk reads take the host's time, which the virtual clock does not count.
Prints a line of JSON for each mode.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

SERVER, HOME = "10.1.0.2", "10.0.0.2"
WEB_PORT, SSH_PORT, REST_PORT, TRACKER_PORT, REGISTRY_PORT, VOICE_PORT = 80, 2222, 8000, 6969, 5000, 4000
PAGE_OBJECTS = 30
PAGE_EVERY_S, PERSON_S = 2.0, 20.0
#: 3 s in run 1; no two of the first 20 runs have the same time between the begin of a page and that of the program
PROGRAM_AT_S = 3.0 + 0.7 * (int(os.environ.get("RUN", "1")) - 1) % PAGE_EVERY_S
VOICE_PACKET_BYTES, VOICE_PER_S = 172, 50
#: 16 MiB, so that rclone cuts the file into as many equal parts as it has connections
DOWN_BYTES, UP_BYTES = 16 << 20, 4_000_000
#: time for the traffic of a mode to drain. What the modules learn of a path need not be reset: only the last mode uses
#: them.
REST_S = 3
#: maximum number of calls of vulturectl top, which shows the background connections
LOOKS = 6
#: time limit of a program, seconds of the emulated machine
PROGRAM_LIMIT_S = 300
WORK, WEB, GOT = Path("/srv/proof"), Path("/srv/web"), Path("/srv/got")
URL = f"http://{SERVER}"
SSH = f"ssh -p {SSH_PORT} -i {WORK}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
RESTIC = f"export RESTIC_PASSWORD=x RESTIC_REPOSITORY=rest:http://{SERVER}:{REST_PORT}/; restic -q --no-cache"
#: name -> shell command; each stores its data in GOT, which is emptied before
PROGRAMS = {
    "apt": f"rm -f /var/cache/apt/archives/*.deb; apt-get -qq -o APT::Sandbox::User=root install --download-only -y "
           f"--allow-unauthenticated proof-package && cp /var/cache/apt/archives/*.deb {GOT}",
    "curl": f"curl -s -o {GOT}/got {URL}/down",
    "aria2c": f"aria2c -q -x16 -s16 -k1M --file-allocation=none -d {GOT} -o got {URL}/down",
    "aria2c-BitTorrent": f"aria2c -q --seed-time=0 --file-allocation=none --enable-dht=false --bt-enable-lpd=false "
                         f"--listen-port=6900 -d {GOT} {WORK}/down.torrent",
    "rclone": f"rclone copyto --multi-thread-cutoff 1M --multi-thread-streams 16 --http-url {URL} :http:down {GOT}/got",
    "git-clone": f"git clone -q git://{SERVER}/repository {GOT}/clone",
    "skopeo": "skopeo --insecure-policy copy -q --src-tls-verify=false "
              f"docker://{SERVER}:{REGISTRY_PORT}/image:1 dir:{GOT}/image",
    "podman": f"podman --storage-driver vfs --root {GOT}/podman pull -q --tls-verify=false "
              f"{SERVER}:{REGISTRY_PORT}/image:1",
    "rsync-down": f"rsync -e '{SSH}' root@{SERVER}:{WEB}/down {GOT}/got",
    "rsync-up": f"rsync -e '{SSH}' {WORK}/up root@{SERVER}:{GOT}/got",
    "restic": f"{RESTIC} backup {WORK}/up",
}  # fmt: skip
#: the ordinary user who starts the programs
NAME = "person"
#: programs that root starts: apt installs packages, and podman's storage driver is set up for root
BY_ROOT = ("apt", "podman")
#: A login: its session's cgroup belongs to root, so that the user cannot put a rule on it without the service.
IN_A_SESSION = ("systemd-run", "--quiet", "--pipe", "--wait", "--expand-environment=no", f"--property=User={NAME}",
                "--property=PAMName=su-l", "--")  # fmt: skip


def shell(script: str) -> None:
    subprocess.run(["bash", "-euc", script], check=True, stdout=sys.stderr)


def node(name: str, *words: str, **more: Any) -> subprocess.Popen[Any]:
    """Start a program in a node. Not by `ip netns exec`, which mounts a new /sys, without the cgroups."""
    inside = [] if name == "home" else ["nsenter", f"--net=/run/netns/{name}"]
    return subprocess.Popen([*inside, *words], **more)


def server(*words: str, **more: Any) -> None:
    node("net", *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def build_network() -> None:
    shell(f"""
for n in rtr wan net; do ip netns add $n; ip -n $n link set lo up; done
ip link add h0 type veth peer name r0 netns rtr
ip link add r1 netns rtr type veth peer name w0 netns wan
ip link add w1 netns wan type veth peer name n0 netns net
ip address add {HOME}/24 dev h0; ip link set h0 up
set_up() {{ ip -n $1 address add $3 dev $2; ip -n $1 link set $2 up; }}
set_up rtr r0 10.0.0.1/24; set_up rtr r1 10.2.0.1/24; set_up wan w0 10.2.0.2/24
set_up wan w1 10.1.0.1/24; set_up net n0 {SERVER}/24
ip route add default via 10.0.0.1
ip -n rtr route add 10.1.0.0/24 via 10.2.0.2
ip -n wan route add 10.0.0.0/24 via 10.2.0.1
ip -n net route add default via 10.1.0.1
for n in rtr wan; do nsenter --net=/run/netns/$n sysctl -qw net.ipv4.ip_forward=1; done
ip link set h0 gso_max_segs 1
for e in "rtr r0" "rtr r1" "wan w0" "wan w1" "net n0"; do set -- $e; ip -n $1 link set $2 gso_max_segs 1; done
tc -n rtr qdisc add dev r0 root tbf rate 20mbit burst 3200 limit 500000
tc -n rtr qdisc add dev r1 root tbf rate 5mbit burst 3200 limit 125000
tc -n wan qdisc add dev w0 root netem delay 15ms limit 10000
tc -n wan qdisc add dev w1 root netem delay 15ms limit 10000
""")


def add_user() -> None:
    """Add the user who starts the programs and owns what they receive. The user's manager is always there."""
    shell(f"useradd --create-home --shell /bin/bash {NAME}; chown {NAME} {GOT}; loginctl enable-linger {NAME}")


def page_sizes() -> list[int]:
    """Sizes of a page's objects, 8 to 64 kB."""
    return [8000 + 4000 * (number * 7 % 15) for number in range(PAGE_OBJECTS)]


def serve_web() -> None:
    """Serve the page's objects, the large file and apt's archive by nginx."""
    sizes = " ".join(map(str, sorted(set(page_sizes()))))
    shell(f"""
mkdir -p {WORK} {WEB} {GOT} /run/sshd; mount -t tmpfs -o size=700m web {WEB}; mount -t tmpfs -o size=400m got {GOT}
for size in {sizes}; do head -c $size /dev/urandom > {WEB}/$size; done
head -c {DOWN_BYTES} /dev/urandom > {WEB}/down
head -c {UP_BYTES} /dev/urandom > {WORK}/up
cat > {WORK}/nginx.conf <<'END'
pid {WORK}/nginx.pid; worker_processes 1; error_log stderr;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; keepalive_requests 10000;
server {{ listen {WEB_PORT} backlog=512; root {WEB}; autoindex on; }} }}
END
""")
    server("nginx", "-c", f"{WORK}/nginx.conf", "-g", "daemon off;")


def serve_ssh() -> None:
    shell(f"""
ssh-keygen -q -t ed25519 -N '' -f {WORK}/key; cp {WORK}/key.pub {WORK}/authorized; chown {NAME} {WORK}/key
ssh-keygen -q -t ed25519 -N '' -f {WORK}/host
""")
    options = [f"AuthorizedKeysFile={WORK}/authorized", "StrictModes=no", "PermitRootLogin=yes", "UsePAM=no"]
    server("/usr/sbin/sshd", "-D", "-p", str(SSH_PORT), "-h", f"{WORK}/host", "-f", "/dev/null",
           *(word for option in options for word in ("-o", option)))  # fmt: skip


def serve_git() -> None:
    shell(f"""
export HOME={WORK}
git config --global user.email a@example.org; git config --global user.name a
git config --global core.bigFileThreshold 1m
git init -q --bare {WORK}/served/repository; touch {WORK}/served/repository/git-daemon-export-ok
git clone -q {WORK}/served/repository {WORK}/made 2>/dev/null
cd {WORK}/made; cp {WEB}/down data; git add data; git commit -qm data; git push -q origin HEAD; rm -r {WORK}/made
""")
    server("git", "daemon", f"--base-path={WORK}/served", "--reuseaddr", env={**os.environ, "HOME": str(WORK)})


def serve_apt() -> None:
    """Make a flat apt archive with one package; nginx serves it."""
    shell(f"""
mkdir -p {WORK}/package/DEBIAN {WORK}/package/usr/share/proof; cp {WEB}/down {WORK}/package/usr/share/proof
printf '%s\\n' 'Package: proof-package' 'Version: 1' 'Architecture: all' 'Maintainer: a <a@example.org>' \
    'Description: a large file' > {WORK}/package/DEBIAN/control
dpkg-deb -Znone -b {WORK}/package {WEB}/proof-package_1_all.deb >/dev/null; rm -r {WORK}/package
cd {WEB}
(dpkg-deb -f proof-package_1_all.deb; echo "Filename: ./proof-package_1_all.deb"
echo "Size: $(stat -c %s proof-package_1_all.deb)"
echo "SHA256: $(sha256sum proof-package_1_all.deb | cut -d' ' -f1)") > Packages
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] {URL} ./' > /etc/apt/sources.list
apt-get -qq -o APT::Sandbox::User=root update
""")


def serve_restic() -> None:
    server("restic-rest-server", "--no-auth", "--path", f"{WORK}/rest", "--listen", f":{REST_PORT}")
    time.sleep(2)
    shell(f"{RESTIC} init")


def serve_torrent() -> None:
    """Start a tracker and a seeder. Debian's tracker serves only torrents on its whitelist."""
    shell(f"cd {WEB}; mktorrent -a {URL}:{TRACKER_PORT}/announce -l 18 -o {WORK}/down.torrent down >/dev/null")
    torrent = (WORK / "down.torrent").read_bytes()
    info = torrent[torrent.index(b"4:info") + len(b"4:info") : -1]  # info is the last key
    (WORK / "whitelist").write_text(hashlib.sha1(info).hexdigest() + "\n")
    server("opentracker", "-i", SERVER, "-p", str(TRACKER_PORT), "-P", str(TRACKER_PORT), "-w", f"{WORK}/whitelist")
    time.sleep(1)
    server("aria2c", "--check-integrity", "--seed-ratio=0", "--listen-port=6881", "--enable-dht=false",
           "--bt-enable-lpd=false", "-d", str(WEB), f"{WORK}/down.torrent")  # fmt: skip
    time.sleep(4)


def serve_registry() -> None:
    """Start a registry, and push an image of six layers to it from within net."""
    shell(f"""
mkdir -p {WORK}/image {WORK}/registry; cd {WORK}/image
python3 - <<'END'
import hashlib, io, json, os, tarfile
def blob(data):
    name = hashlib.sha256(data).hexdigest()
    open(name, "wb").write(data)
    return {{"digest": "sha256:" + name, "size": len(data)}}
layers = []
for number in range(6):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        member = tarfile.TarInfo(f"data{{number}}")
        member.size = {DOWN_BYTES} // 6
        tar.addfile(member, io.BytesIO(os.urandom(member.size)))
    layers.append({{"mediaType": "application/vnd.oci.image.layer.v1.tar", **blob(body.getvalue())}})
config = {{"architecture": "amd64", "os": "linux", "config": {{}},
          "rootfs": {{"type": "layers", "diff_ids": [one["digest"] for one in layers]}}}}
made = {{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers,
        "config": {{"mediaType": "application/vnd.oci.image.config.v1+json", **blob(json.dumps(config).encode())}}}}
json.dump(made, open("manifest.json", "w"))
open("version", "w").write("Directory Transport Version: 1.1\\n")
END
cat > {WORK}/registry.yml <<'END'
version: 0.1
storage: {{filesystem: {{rootdirectory: {WORK}/registry}}}}
http: {{addr: ":{REGISTRY_PORT}"}}
END
""")
    server("docker-registry", "serve", f"{WORK}/registry.yml")
    time.sleep(3)
    words = ["skopeo", "--insecure-policy", "copy", "-q", "--preserve-digests", "--dest-tls-verify=false"]
    done = node("net", *words, f"dir:{WORK}/image", f"docker://{SERVER}:{REGISTRY_PORT}/image:1", stdout=sys.stderr)
    assert done.wait() == 0


#: program -> the server that it needs in addition to the web server
SERVERS: dict[str, Callable[[], None]] = {
    "apt": serve_apt, "aria2c-BitTorrent": serve_torrent, "git-clone": serve_git, "skopeo": serve_registry,
    "podman": serve_registry, "rsync-down": serve_ssh, "rsync-up": serve_ssh, "restic": serve_restic,
}  # fmt: skip


# ------------------------------------------------------------------------------------------ the person


def send_voice(address: str) -> None:
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    begin = time.monotonic()
    for number in range(int(PERSON_S * VOICE_PER_S)):
        time.sleep(max(0.0, begin + number / VOICE_PER_S - time.monotonic()))
        stamp = struct.pack("=IQ", number, time.monotonic_ns() // 1000)
        link.sendto(stamp.ljust(VOICE_PACKET_BYTES, b"\0"), (address, VOICE_PORT))


def hear_voice(address: str) -> None:
    """Print the one-way delay of each packet, us; both ends use the same clock."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.bind((address, VOICE_PORT))
    link.settimeout(3.0)
    delays_us = []
    with contextlib.suppress(TimeoutError):
        while True:
            data = link.recv(2048)
            delays_us.append(time.monotonic_ns() // 1000 - struct.unpack_from("=IQ", data)[1])
    print(json.dumps(delays_us))


def load_pages() -> list[float]:
    """Load the pages; returns the time of each, seconds."""
    config = WORK / "page"
    objects = [f'url = "{URL}/{size}?{number}"\noutput = "/dev/null"\n' for number, size in enumerate(page_sizes())]
    config.write_text("".join(objects))
    words = ["curl", "-s", "--parallel", "--parallel-max", "6", "--no-progress-meter", "--config", str(config)]
    times = []
    begin = time.monotonic()
    for number in range(int(PERSON_S / PAGE_EVERY_S)):
        time.sleep(max(0.0, begin + number * PAGE_EVERY_S - time.monotonic()))
        at = time.monotonic()
        assert node("home", *words).wait() == 0
        times.append(time.monotonic() - at)
    return times


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def with_person(program_s: Callable[[], float]) -> dict[str, float]:
    """What the user notices while the program runs. program_s waits for the program's end and returns its time."""
    me = [sys.executable, __file__]
    ears = []
    for listener, speaker, address in (("home", "net", HOME), ("net", "home", SERVER)):
        ears.append(node(listener, *me, "hear", address, stdout=subprocess.PIPE, text=True))
        node(speaker, *me, "send", address)
    pages = load_pages()
    end = PROGRAM_AT_S + program_s()
    during = [
        took
        for number, took in enumerate(pages)
        if number * PAGE_EVERY_S >= PROGRAM_AT_S and number * PAGE_EVERY_S + took <= end
    ]
    heard = [json.loads(ear.communicate()[0]) for ear in ears]
    # a packet's index in the list is its number if no packet is lost
    first, last = int(PROGRAM_AT_S * VOICE_PER_S), int(min(end, PERSON_S) * VOICE_PER_S)
    voices = [percentile([one - min(delays) for one in delays[first:last]], 0.95) / 1e3 for delays in heard]
    return {
        "page": statistics.median(during), "page_worst": max(during), "pages": len(during),
        "voice": max(voices), "voice_lost": sum(int(PERSON_S * VOICE_PER_S) - len(delays) for delays in heard),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ the program


def words_of(program: str, mode: str) -> list[str]:
    script = PROGRAMS[program]
    session = [] if program in BY_ROOT else list(IN_A_SESSION)
    if mode != "background":
        return [*session, "bash", "-euc", script]
    if program == "apt":
        job = Path("/etc/lbe/jobs/apt")
        job.parent.mkdir(parents=True, exist_ok=True)
        job.write_text(f"#!/bin/bash\nset -eu\n{script}\n")
        job.chmod(0o755)
        return ["bash", "-euc", "systemctl start --wait background@apt.service"]
    return [*session, "vulturectl", "run", "--", "bash", "-euc", script]


def run_program(program: str, mode: str) -> tuple[float, list[str]]:
    """Run a program; returns its time, and the connections that vulturectl showed: number, direction and controller."""
    shell(f"rm -rf {GOT}/*; rm -rf {WORK}/rest/data/*/* {WORK}/rest/snapshots/* {WORK}/rest/index/* || true")
    at = time.monotonic()
    done = node("home", *words_of(program, mode), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seen: Counter[str] = Counter()
    looks = LOOKS if mode == "background" else 0
    while done.poll() is None and time.monotonic() - at < PROGRAM_LIMIT_S:
        time.sleep(0.25)
        if looks and len(seen) < 2 and time.monotonic() - at > 1:
            looks -= 1
            looked = subprocess.check_output(["vulturectl", "--json", "top", "-c", "1"], text=True)
            connections = json.loads(looked)["connections"]
            # the union of Counters is the maximum for each kind
            seen |= Counter(f"{one['direction']} {one['controller']}" for one in connections)
    took = time.monotonic() - at
    said = done.communicate(timeout=10)[0]
    assert done.returncode == 0, f"{program} {mode}: status {done.returncode}: {said[-800:]}"
    # run says in a line of its own what it cannot put in the background from the first packet
    assert "vulturectl:" not in said, f"{program} {mode}: {said[-800:]}"
    return took, [f"{count} {kind}" for kind, count in sorted(seen.items())]


def one_mode(program: str, mode: str) -> dict[str, object]:
    told: dict[str, object] = {"program": program, "mode": mode}
    if program in PROGRAMS:
        told["user"] = "root" if program in BY_ROOT else NAME
    if program == "nobody":
        return told | with_person(lambda: PERSON_S - PROGRAM_AT_S)
    if mode == "alone":
        return told | {"took": run_program(program, mode)[0]}
    result: list[tuple[float, list[str]]] = []
    timer = threading.Timer(PROGRAM_AT_S, lambda: result.append(run_program(program, mode)))
    timer.start()

    def program_s() -> float:
        timer.join()
        return result[0][0]

    noticed = with_person(program_s)
    return told | noticed | {"took": result[0][0], "seen": result[0][1]}


def main(program: str, *modes: str) -> None:
    build_network()
    serve_web()
    add_user()
    time.sleep(1)
    SERVERS.get(program, lambda: None)()
    if program in PROGRAMS:
        run_program(program, "alone")
    for mode in modes or (("alone",) if program == "nobody" else ("alone", "plain", "background")):
        time.sleep(REST_S)
        shell("ip tcp_metrics flush; nsenter --net=/run/netns/net ip tcp_metrics flush; sync")
        print(json.dumps(one_mode(program, mode)), flush=True)


if __name__ == "__main__":
    {"hear": hear_voice, "send": send_voice}.get(sys.argv[1], main)(*sys.argv[1 + (sys.argv[1] in ("hear", "send")) :])
    sys.stdout.flush()
    os._exit(0)  # does not wait for the servers, which end with the machine
