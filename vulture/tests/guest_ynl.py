# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_control.py: the kernel's own netlink client speaks our YAML spec.

    guest_ynl.py BIN YNL SCHEMA     BIN: as guest_control.py has it, with vulture.yaml
                                    YNL: tools/net/ynl of a kernel's source
                                    SCHEMA: Documentation/netlink/genetlink.yaml of the same

Every operation, attribute set and event of the spec is used by name; the client knows nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import subprocess
import sys

BIN, YNL, SCHEMA = sys.argv[1:4]
sys.path.insert(0, YNL)

from guest_control import pair, pump, run_tests  # noqa: E402
from lib import NlError, YnlFamily  # noqa: E402

SPEC = f"{BIN}/vulture.yaml"


class Client(YnlFamily):
    """The kernel's client; what it gives back without the padding of 64-bit attributes, which it has no type for."""

    def __init__(self):
        super().__init__(SPEC, SCHEMA, process_unknown=True)

    def _decode(self, attrs, space, outer_attrs=None):
        return {name: value for name, value in super()._decode(attrs, space, outer_attrs).items() if name != "pad"}


def family() -> Client:
    """A client; the spec is held against the kernel's schema for specs on the way."""
    return Client()


#: the kernel's own text, for what the policies refuse
OUT_OF_RANGE = "integer out of range"


def ynl_refused(number: int, words: str, client: YnlFamily, operation: str, request: dict) -> tuple:
    """The operation fails with this errno and text. Return: the path of the attribute at fault, and its range."""
    try:
        client.do(operation, request)
    except NlError as error:
        said = error.nl_msg.extack or {}
        assert error.error == number, f"{error}: expected {errno.errorcode[number]}"
        assert words in said.get("msg", ""), f"{said}: does not say {words!r}"
        policy = said.get("policy", {})
        return said.get("bad-attr"), (policy.get("min-value"), policy.get("max-value"))
    raise AssertionError(f"{operation} {request} was not refused")


def address(sock: socket.socket, peer: socket.socket) -> dict:
    """The nest that names a connection."""
    octets = socket.inet_aton(sock.getsockname()[0])
    return {
        "local": octets,
        "local-port": sock.getsockname()[1],
        "remote": socket.inet_aton(peer.getsockname()[0]),
        "remote-port": peer.getsockname()[1],
    }


def options_space(name: str) -> str:
    """Attribute set of a controller's options."""
    return f"{name}-options"


def test_ynl_defaults():
    client = family()
    before = client.do("get-defaults", {})
    controllers = [name for name in before["options"] if name != "controller"]
    assert before["options"]["controller"] in controllers and "paper" in controllers
    for controller in controllers:
        check_options(client, controller, before["options"][controller])
    client.do("set", {"options": {"paper": {"psi-us": 24000}}, "max-flows": 7})
    now = client.do("get-defaults", {})
    paper = before["options"]["paper"]
    assert now["options"] == before["options"] | {"paper": paper | {"psi-us": 24000}} and now["max-flows"] == 7
    client.do("set", {"options": {"paper": {"psi-us": paper["psi-us"]}}, "max-flows": before["max-flows"]})
    assert client.do("get-defaults", {}) == before
    at, limits = ynl_refused(errno.ERANGE, OUT_OF_RANGE, client, "set", {"options": {"controller": 17}})
    assert (at, limits) == (".options.controller", (0, len(controllers) - 1)), (at, limits)
    at, limits = ynl_refused(errno.ERANGE, OUT_OF_RANGE, client, "set", {"max-flows": 1000001})
    assert (at, limits) == (".max-flows", (0, 1000000)), (at, limits)
    assert client.do("get-defaults", {}) == before
    assert before["version"] and before["count"] == 0 and before["flow-bytes"] > 1000


def check_options(client: YnlFamily, controller: str, options: dict) -> None:
    """The spec's ranges and defaults are the kernel's; a value outside is refused by name."""
    spec = client.attr_sets[options_space(controller)]
    assert sorted(options) == sorted(spec), "an option that the spec does not have, or the other way"
    numbers = {name: index for index, name in enumerate(client.consts["pairing"].entries)}
    for name, value in options.items():
        value = numbers.get(value, value)  # the client gives an enum's name
        limits = {"min": 0} | spec[name].yaml["checks"]
        assert limits["min"] <= value <= limits["max"]
        default = re.search(r"; default (\w+)$", " ".join(spec[name].yaml["doc"].split()))[1]
        default = numbers.get(default, default)
        assert int(default) == value, f"{name}: the spec says {default}, the kernel {value}"
        for outside in {limits["min"] - 1, limits["max"] + 1} - {-1}:
            at, range_ = ynl_refused(
                errno.ERANGE, OUT_OF_RANGE, client, "set", {"options": {controller: {name: outside}}}
            )
            assert at == f".options.{controller}.{name}", at
            assert range_ == (limits["min"], limits["max"]), (name, range_)


def test_ynl_flow_and_events():
    client, watcher = family(), family()
    watcher.ntf_subscribe("events")
    with pair() as (receiver, sender):
        options = {"controller": "paper", "paper": {"psi-us": 25000}}
        reply = client.do("start", {"fd": receiver.fileno(), "options": options})
        assert reply["count"] == 1
        pump(sender, receiver, 1 << 20)
        flow = client.do("get", {"addr": address(receiver, sender)})["flow"]
        assert flow["id"] == reply["id"] and flow["bytes"] == 1 << 20 and flow["options"]["paper"]["psi-us"] == 25000
        assert flow["addr"] == address(receiver, sender)
        known = set(client.attr_sets["flow"]) - {"pad", "credit", "rledbat"}
        assert set(flow["paper"]) == set(client.attr_sets["paper-stats"]) - {"pad"}
        assert set(flow) == known, f"the kernel and the spec differ in {set(flow) ^ known}"
        assert client.do("get", {"id": reply["id"]})["flow"]["id"] == reply["id"]
        client.do("start", {"addr": address(sender, receiver)})
        assert [one["flow"]["id"] for one in client.dump("get", {})] == [reply["id"], reply["id"] + 1]
        assert client.do("stop", {"pid": os.getpid()}) == {"count": 2}
        ynl_refused(errno.ENOENT, "not under control", client, "get", {"fd": receiver.fileno()})
        ynl_refused(errno.EINVAL, "exactly one of", client, "stop", {"fd": receiver.fileno(), "id": 1})
    watcher.check_ntf()
    seen = [
        (one["name"], one["msg"]["flow"]["id"] - reply["id"], one["msg"].get("reason"))
        for one in watcher.async_msg_queue
    ]
    assert sorted(seen[:2]) == [("event-start", 0, None), ("event-start", 1, None)], seen
    assert sorted(seen[2:]) == [("event-end", 0, "stopped"), ("event-end", 1, "stopped")], seen


def test_ynl_rules():
    client = family()
    cgroup = os.stat("/sys/fs/cgroup").st_ino
    wanted = {
        "cgroup": cgroup,
        "local-port": 9,
        "remote-port": 10,
        "remote-prefix": socket.inet_aton("192.0.2.0"),
        "remote-prefix-bits": 24,
        "dscp": 8,
        "options": {"controller": "paper", "paper": {"psi-us": 26000}},
    }
    rule = client.do("rule-add", {"rule": wanted})["rule"]
    assert {name: rule[name] for name in wanted if name != "options"} | {"options": wanted["options"]} == wanted
    assert rule["options"]["paper"]["psi-us"] == 26000 and rule["started"] == 0
    assert client.dump("rule-get", {}) == [{"rule": rule}]
    client.do("rule-del", {"rule": {"id": rule["id"]}})
    other = client.do("rule-add", {"rule": {"local-port": 9, "foreground": True}})["rule"]
    assert other["foreground"] and client.dump("rule-get", {}) == [{"rule": other}]
    client.do("rule-del", {"rule": {"id": other["id"]}})
    ynl_refused(errno.ENOENT, f"no rule with id {rule['id']}", client, "rule-del", {"rule": {"id": rule["id"]}})
    ynl_refused(errno.EINVAL, "a rule needs", client, "rule-add", {"rule": {}})
    ynl_refused(
        errno.ERANGE,
        "remote-prefix-bits 33 is not within 0 to 32",
        client,
        "rule-add",
        {"rule": wanted | {"remote-prefix-bits": 33}},
    )
    for name, value, limits in (
        ("dscp", 64, (0, 63)),
        ("remote-prefix-bits", 129, (0, 128)),
        ("local-port", 0, (1, 65535)),
        ("id", 0, (1, 2**32 - 1)),
    ):
        found = ynl_refused(errno.ERANGE, OUT_OF_RANGE, client, "rule-add", {"rule": {name: value}})
        assert found == (f".rule.{name}", limits), found
    for name in ("started", "failed", "uid"):
        ynl_refused(errno.EINVAL, "only the kernel sets", client, "rule-add", {"rule": {"dscp": 8, name: 1}})
    assert client.dump("rule-get", {}) == []


def test_ynl_an_operation_takes_only_its_own_attributes():
    """Each operation has a policy of its own. (Of one that takes none, the kernel reads no attribute.)"""
    client = family()
    for operation, name, value in (
        ("start", "id", 1),
        ("stop", "options", {}),
        ("get", "pid", 1),
        ("set", "fd", 1),
        ("rule-del", "max-flows", 1),
    ):
        try:
            client.do(operation, {name: value})
        except NlError as error:
            said = error.nl_msg.extack or {}
            assert error.error == errno.EINVAL and said["bad-attr"] == f".{name}", (operation, said)
        else:
            raise AssertionError(f"{operation} took {name}")


def test_ynl_parser_in_c():
    """A program with the parser for libynl that the generator makes reads what the module says."""
    client = family()
    before = client.do("get-defaults", {})
    with pair() as (receiver, sender):
        done = c_client(receiver, 25000)
        assert done.returncode == 0, done
        said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        flow = client.do("get", {"fd": receiver.fileno()})["flow"]
        wanted = {
            "controller": before["options"]["controller"],
            "max-flows": before["max-flows"],
            "psi-us": before["options"]["paper"]["psi-us"],
            "weight": before["options"]["credit"]["weight"],
            "version": before["version"],
            "count": 1,
            "flow": flow["id"],
            "flow-psi-us": 25000,
            "phase": said["phase"],
            "remote-port": sender.getsockname()[1],
            "local-octets": 4,
        }
        assert said == {name: str(value) for name, value in wanted.items()}, said
        assert said["phase"] in client.consts["phase"].entries, said
        done = c_client(receiver, 999)
        assert done.returncode == 1 and OUT_OF_RANGE in done.stderr and "psi-us" in done.stderr, done


def c_client(sock: socket.socket, psi_us: int) -> subprocess.CompletedProcess:
    words = [f"{BIN}/ynl_client", str(sock.fileno()), str(psi_us)]
    return subprocess.run(words, pass_fds=[sock.fileno()], capture_output=True, text=True, timeout=30, check=False)


def test_ynl_failed_starts_of_a_rule_are_counted():
    client = family()
    with socket.create_server(("127.0.0.1", 0)) as server:
        rule = client.do("rule-add", {"rule": {"local-port": server.getsockname()[1]}})["rule"]
        assert (rule["started"], rule["failed"]) == (0, 0)
        client.do("set", {"max-flows": 1})
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(socket.create_connection(server.getsockname()))
                stack.enter_context(server.accept()[0])
            rule = client.dump("rule-get", {})[0]["rule"]
            assert (rule["started"], rule["failed"]) == (1, 2), rule
    client.do("set", {"max-flows": 16384})
    client.do("rule-del", {"rule": {"id": rule["id"]}})


if __name__ == "__main__":
    run_tests(globals())
