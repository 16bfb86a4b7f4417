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


def ynl_refused(number: int, words: str, client: YnlFamily, operation: str, request: dict) -> str | None:
    """The operation fails with this errno and text. Return: the path of the attribute at fault."""
    try:
        client.do(operation, request)
    except NlError as error:
        said = error.nl_msg.extack or {}
        assert error.error == number, f"{error}: expected {errno.errorcode[number]}"
        assert words in said.get("msg", ""), f"{said}: does not say {words!r}"
        return said.get("bad-attr")
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
    ynl_refused(errno.ERANGE, "controller 17 is not within", client, "set", {"options": {"controller": 17}})
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
        default, spread = spec[name].yaml["doc"].rsplit("; ", 2)[1:]
        assert int(default) == value, f"{name}: the spec says {default}, the kernel {value}"
        assert [int(word) for word in re.findall(r"\d+", spread)] == [limits["min"], limits["max"]], name
        for outside in {limits["min"] - 1, limits["max"] + 1} - {-1}:
            at = ynl_refused(
                errno.ERANGE,
                f"{name} {outside} is not within {limits['min']} to {limits['max']}",
                client,
                "set",
                {"options": {controller: {name: outside}}},
            )
            assert at == f".options.{controller}.{name}", at


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
        "remote-prefix-len": 24,
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
        "remote-prefix-len 33 is not within 0 to 32",
        client,
        "rule-add",
        {"rule": wanted | {"remote-prefix-len": 33}},
    )
    ynl_refused(errno.ERANGE, "dscp 64 is not within 0 to 63", client, "rule-add", {"rule": {"dscp": 64}})
    assert client.dump("rule-get", {}) == []


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
