# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: lines of apply by port, prefix and DSCP, for what is sent.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from guest_run import CTL, Object, Server, apply, ctl, flows, main, rules, said_inside, until
from guest_switch import USER, Inside, remove, switched, talk

ROOT = Path("/sys/fs/cgroup")
PIN = Path("/sys/fs/bpf/lbe/lines")
STATE = Path("/run/lbe/applied")
FAMILIES = (socket.AF_INET, socket.AF_INET6)
LE, CS1 = 0x04, 0x20
BACKGROUND, FOREGROUND = ("lbe", LE, 1), ("cubic", 0, 0)
#: whether BPF may read and set IP_TOS of a socket of IPv6 that carries IPv4; background.conf(5) says what else holds
BPF_HAS_MAPPED_TOS = tuple(int(number) for number in os.uname().release.split(".")[:2]) >= (6, 12)


def told(one: socket.socket, ipv4: bool) -> tuple[str, int, int]:
    """Congestion control, traffic class and priority."""
    control = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()
    tos = one.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) if ipv4 else one.getsockopt(41, socket.IPV6_TCLASS)
    return control, tos, one.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)


@contextlib.contextmanager
def connected(server: Server, tos: int = 0, mapped: bool = False) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection's two ends. tos: set before connect(); mapped: IPv4, on a socket of IPv6."""
    client = socket.socket(socket.AF_INET6 if mapped else server.socket.family)
    with client:
        if tos and (mapped or client.family == socket.AF_INET):
            client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        if tos and client.family == socket.AF_INET6 and not (mapped and BPF_HAS_MAPPED_TOS):
            client.setsockopt(41, socket.IPV6_TCLASS, tos)
        client.connect((f"::ffff:{server.address}" if mapped else server.address, int(server.port)))
        accepted = server.socket.accept()[0]
        with accepted:
            yield client, accepted


def ends(server: Server, tos: int = 0, mapped: bool = False) -> list[tuple[str, int, int]]:
    """What the two ends of a new connection are told to send with."""
    ipv4 = server.socket.family == socket.AF_INET
    with connected(server, tos, mapped) as pair:
        return [told(one, ipv4) for one in pair]


def applied(text: str, counts: str | None = None) -> None:
    done = apply(text)
    assert (done.returncode, done.stderr) == (0, ""), (text, done)
    assert counts is None or done.stdout == f"{counts}, 0 failed\n", (text, done)


def program() -> int:
    """The number of the program that is attached."""
    words = ["/usr/sbin/bpftool", "-j", "link", "show", "pinned", str(PIN)]
    return int(json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["prog_id"])


def in_force() -> tuple[list[tuple[int, Object]], int]:
    """Rules and program."""
    return [(rule["id"], rule["options"]) for rule in rules()], program()


def none_is_left() -> None:
    applied("")
    assert not PIN.exists() and ctl("showconf").stdout == ""
    until(lambda: not flows() and not rules(), 15)  # what fg has added ends with its cgroup


def test_a_port_in_either_direction_or_both() -> None:
    """The end whose port it is, and not its peer; whichever of both has opened the connection."""
    for family in FAMILIES:
        server = Server(family)
        other = Server(family)
        for kind, chosen in (("remote-port", 0), ("local-port", 1)):
            for words, up, down in (("up", 1, 0), ("down", 0, 1), ("both", 1, 1), ("", 1, 1)):
                line = f"{kind} {server.port} {words}".strip() + "\n"
                applied(line)
                expected = [FOREGROUND, FOREGROUND]
                expected[chosen] = BACKGROUND if up else FOREGROUND
                with connected(server) as pair:
                    said = [told(one, family == socket.AF_INET) for one in pair]
                    assert said == expected and len(flows()) == down, (line, said, flows())
                assert ends(other) == [FOREGROUND] * 2, line
                assert ctl("showconf").stdout == f"{kind} {server.port} {words or 'both'}\n"
                until(lambda: not flows())
    none_is_left()


def test_the_peers_prefix() -> None:
    """Of the packets' family, also where the socket is of the other one."""
    four, six = Server(), Server(socket.AF_INET6)
    for prefix, in_four, in_six in (
        ("127.0.0.1", 1, 0), ("127.0.0.0/8", 1, 0), ("126.0.0.0/7", 1, 0), ("0.0.0.0/0", 1, 0), ("127.0.0.2", 0, 0),
        ("128.0.0.0/1", 0, 0), ("::1", 0, 1), ("::/0", 0, 1), ("::/127", 0, 1), ("::2/127", 0, 0), ("::2", 0, 0),
        ("::ffff:0:0/96", 0, 0), ("2001:db8::/32", 0, 0), ("0:0:0:1::/63", 0, 1),
    ):  # fmt: skip
        applied(f"remote {prefix} up\n")
        for server, mapped, background in ((four, False, in_four), (four, True, in_four), (six, False, in_six)):
            assert (ends(server, mapped=mapped)[0] == BACKGROUND) == background, (prefix, mapped, ends(server))
    none_is_left()


def test_the_dscp_that_an_application_has_set() -> None:
    """Before it connects, or on its listening socket; the DSCP itself stays."""
    for family, mapped in ((socket.AF_INET, False), (socket.AF_INET6, False), (socket.AF_INET, True)):
        server = Server(family)
        for line, marked, control in (
            ("dscp le up", LE, "lbe"), ("dscp le", LE, "lbe"), ("dscp le up", CS1, "cubic"), ("dscp le up", 0, "cubic"),
            ("dscp cs1 both", CS1, "lbe"), ("dscp 63 up", 0xFC, "lbe"), ("dscp 62 up", 0xFC, "cubic"),
            ("dscp le down", LE, "cubic"),
        ):  # fmt: skip
            applied(f"{line}\n")
            said = ends(server, marked, mapped)[0]
            assert said[:2] == (control, marked), (family, mapped, line, marked, said)
            assert control == "cubic" or said[2] == 1, (line, said)
        if mapped and not BPF_HAS_MAPPED_TOS:
            applied("dscp 0 up\n")
            with socket.socket(socket.AF_INET6) as one:
                one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, CS1)
                one.connect((f"::ffff:{server.address}", int(server.port)))
                assert told(one, True)[:2] == ("lbe", CS1), "IP_TOS does not count here, but stays"
                server.socket.accept()[0].close()
        applied("dscp 0 up\n")
        assert ends(server, 0, mapped)[0] == BACKGROUND, "a socket without a DSCP gets one"
        applied("dscp le up\n")
        level, option = (socket.IPPROTO_IP, socket.IP_TOS) if family == socket.AF_INET else (41, socket.IPV6_TCLASS)
        server.socket.setsockopt(level, option, LE)
        client, accepted = ends(server, 0, mapped)
        assert (client[0], accepted[:2]) == ("cubic", ("lbe", LE)), (family, mapped, client, accepted)
    none_is_left()


def test_priority_and_mark_do_not_depend_on_the_control() -> None:
    """As the kernel's own lp: it marks nothing."""
    Path("/sys/module/tcp_lbe/parameters/mark").write_text("0")
    try:
        for family, mapped in ((socket.AF_INET, False), (socket.AF_INET6, False), (socket.AF_INET, True)):
            server = Server(family)
            applied(f"remote-port {server.port} up\n")
            mark = 0 if mapped and not BPF_HAS_MAPPED_TOS else LE
            assert ends(server, 0, mapped)[0] == ("lbe", mark, 1), (family, mapped)
            assert ends(server, CS1, mapped)[0] == ("lbe", CS1, 1), (family, mapped)
        applied(f"cgroup {ROOT} up\n")
        assert ends(Server())[0] == BACKGROUND
    finally:
        Path("/sys/module/tcp_lbe/parameters/mark").write_text("1")
    none_is_left()


def test_what_fg_has_taken_out_stays_out() -> None:
    """Both ways, as downloads; and bg takes everything of a program, not what a line says alone."""
    plain = ROOT / "plain.service"
    for verb in ("fg", "bg"):
        one = Inside(plain)
        applied(f"remote-port {one.server.port}\nlocal-port 9\n")
        one.now("lbe")
        switched("fg", one.pid)
        one.now("cubic")
        applied(f"remote-port {one.server.port}\n")
        one.now("cubic")
        switched("bg", one.pid)
        one.now("lbe")
        applied("")
        one.now("lbe")
        switched(verb, one.pid)
        applied(f"remote-port {one.server.port}\n")
        one.end()
        applied("")
        remove(plain)
    none_is_left()


def test_fg_of_a_process_among_others() -> None:
    """It gets a cgroup of its own, since lines may take what it opens."""
    plain = ROOT / "plain.service"
    for words in ("both", "up", "down"):
        one, other = Inside(plain), Inside(plain)
        applied(f"remote-port {one.server.port} {words}\n")
        switched("fg", one.pid)
        opened = one.ask("0")
        assert opened == ["cubic"] and not flows(), (words, opened, flows())
        one.end()
        other.end()
        none_is_left()
        until(lambda: not list(plain.glob("lbe-own-*")))
        remove(plain)


def test_run_near_its_deadline_and_after_fg() -> None:
    """root's run leaves what lines say, as it leaves its cgroup."""
    server = Server()
    applied(f"remote-port {server.port}\n")
    words = f"import socket, time; time.sleep(2); s = socket.create_connection(('127.0.0.1', {server.port})); "
    words += "time.sleep(0.3); print(s.getsockopt(6, 13, 16).split(b'\\0')[0].decode())"
    done = ctl("run", "--deadline", "1s", "--", sys.executable, "-c", words)
    assert done.stdout == "cubic\n" and not flows(), done
    none_is_left()


def test_what_a_users_run_cannot_leave_is_said() -> None:
    """A rule of root's for a port stays; fg and run say so."""
    with talk(**USER) as one:
        assert one.ask("0.3") == ["lbe"]
        applied(f"remote-port {one.server.port} down\n")
        done = ctl("fg", one.pid, **USER)
        why = "those that a rule for a port, a prefix or a DSCP matches, which only root's"
        assert done.returncode == 0 and why in done.stderr and "later ones too" not in done.stdout, done
        assert one.ask("0.3") == ["cubic", "cubic"] and len(flows()) == 1, "as it says"
        none = apply("")
        assert none.returncode == 0, none
        error = one.end()
        assert error.count(why) == 1, error
    none_is_left()


def test_only_the_network_namespace_of_apply() -> None:
    """As a rule for downloads. A container has ports of its own."""
    applied("remote 0.0.0.0/0 up\ndscp le up\n")
    script = """
import socket, subprocess
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
print(client.getsockopt(6, 13, 16).split(b"\\0")[0].decode())
"""
    for words, control in (([], "lbe"), (["unshare", "-n"], "cubic")):
        done = subprocess.run([*words, sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == f"{control}\n", (words, done)
    none_is_left()


def test_a_second_apply_changes_nothing() -> None:
    server, other = Server(), Server(socket.AF_INET6)
    one, two = f"remote-port {server.port}\n", f"local-port {other.port} up\n"
    applied(one + two, "2 added, 0 kept, 0 removed")
    before = in_force()
    applied(one + two, "0 added, 2 kept, 0 removed")
    assert in_force() == before
    applied(two, "0 added, 1 kept, 1 removed")
    assert ends(server)[0] == FOREGROUND and ends(other)[1] == BACKGROUND
    applied(one.replace("\n", " up\n") + two, "1 added, 1 kept, 0 removed")
    applied(one + two, "1 added, 1 kept, 0 removed")
    applied(one.replace("\n", " down\n") + two, "0 added, 2 kept, 1 removed")
    assert ends(server)[0] == FOREGROUND and ends(other)[1] == BACKGROUND
    # what somebody else has taken away is put back
    PIN.unlink()
    until(lambda: ends(other)[1] == FOREGROUND)
    applied(one + two, "2 added, 0 kept, 0 removed")
    assert ends(server)[0] == BACKGROUND and ends(other)[1] == BACKGROUND
    # as after an apply that was killed before it could say what it has done
    STATE.unlink()
    for rule in rules():
        ctl("rule", "del", str(rule["id"]))
    none_is_left()
    assert ends(server)[0] == FOREGROUND


def test_a_file_with_a_mistake_changes_nothing() -> None:
    server = Server()
    applied(f"remote-port {server.port}\n")
    before = in_force()
    for line, why in (
        ("remote-port 0", "port '0' is not a number within 1 to 65535"),
        ("local-port 65536 up", "port '65536' is not a number within 1 to 65535"),
        ("dscp 64 up", "dscp '64' is neither le, cs1 nor a number within 0 to 63"),
        ("remote-port 80 weight 0", "weight '0' is not a number within 1 to 1000"),
        ("remote-port 80 up weight 20", "uploads have the weight of a cgroup"),
        ("dscp le up min-kbit=9", "min-kbit=9 is an option for downloads"),
    ):
        done = apply(f"local-port 80\n{line}\n")
        assert done.returncode == 2 and f":2: {why}" in done.stderr, (line, done)
        assert in_force() == before and ends(server)[0] == BACKGROUND, (line, in_force(), before)
    none_is_left()


def test_as_many_lines_as_a_file_may_have() -> None:
    server = Server()
    lines = "".join(f"remote-port {port} up\n" for port in range(1, 256))
    applied(f"{lines}remote-port {server.port} up\n", "256 added, 0 kept, 0 removed")
    assert ends(server)[0] == BACKGROUND and not rules()
    none_is_left()


def test_what_to_do_without_bpf_is_said_once() -> None:
    """Downloads are in force; a build with BPF puts the rest there."""
    server = Server()
    text = f"remote-port {server.port}\ndscp le up\nlocal-port 9 down\n"
    Path("/tmp/background.conf").write_text(text)
    plain = [f"{sys.argv[1]}/plain/vulturectl", "apply", "/tmp/background.conf"]
    unprivileged = ["setpriv", "--bounding-set", "-bpf,-sys_admin", CTL, "apply", "/tmp/background.conf"]
    for words, why in ((plain, "was built without BPF"), (unprivileged, "it needs CAP_BPF and CAP_NET_ADMIN")):
        applied(text, "3 added, 0 kept, 0 removed")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "2 failed" in done.stdout and done.stderr.count("\n") == 1, done
        assert why in done.stderr and "write down in these lines to have downloads alone" in done.stderr, done
        assert ends(server)[0] == FOREGROUND and len(rules()) == 2 and not PIN.exists()
        shown = ctl("showconf").stdout
        assert shown == f"remote-port {server.port} down\nlocal-port 9 down\n", shown
        assert apply(text).stdout == "2 added, 1 kept, 0 removed, 0 failed\n"
        none_is_left()


def test_a_program_that_is_in_a_cgroup_of_its_own() -> None:
    """A line takes it wherever it runs."""
    inner = ROOT / "deep" / "within"
    inner.mkdir(parents=True, exist_ok=True)
    server = Server()
    applied(f"remote-port {server.port}\n")
    assert said_inside(str(inner), server)["cc"] == "lbe"
    none_is_left()
    assert said_inside(str(inner), server)["cc"] == "cubic"
    inner.rmdir()
    inner.parent.rmdir()


if __name__ == "__main__":
    os.chdir("/")
    main(dict(globals()))
