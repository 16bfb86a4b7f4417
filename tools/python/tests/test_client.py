# SPDX-License-Identifier: GPL-2.0
"""The Python client without a kernel: its tables match the specification, its types check, bad input is refused.

vulture/tests/guest_client.py, run by vulture/tests/test_control.py, tests it against the kernel.
"""

from __future__ import annotations

import asyncio
import errno
import importlib
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import yaml

from testbed.base.places import REPO

if TYPE_CHECKING:
    from vulture import Events

pytestmark = pytest.mark.host

FOLDER = REPO / "tools" / "python"


@pytest.fixture(scope="module")
def client() -> Iterator[ModuleType]:
    """The package, imported as a program imports it."""
    sys.path.insert(0, str(FOLDER))
    held = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "vulture"}
    try:
        yield importlib.import_module("vulture")
    finally:
        sys.path.remove(str(FOLDER))
        for name in [name for name in sys.modules if name.split(".")[0] == "vulture"]:
            del sys.modules[name]
        sys.modules.update(held)


def test_the_tables_are_the_specifications() -> None:
    words = [sys.executable, str(FOLDER / "make_spec.py"), "--check"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", FOLDER / "vulture"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_numbers_are_the_headers(client: ModuleType) -> None:
    """Attribute numbers come from the order in the specification, which must be that of the C header."""
    header = (REPO / "vulture" / "uapi" / "vulture_gen.h").read_text(encoding="utf-8")
    spec = sys.modules["vulture._spec"]
    for table, prefix in (("main", "A"), ("flow", "F"), ("rule", "R"), ("options", "O"), ("addr", "ADDR")):
        names = re.findall(rf"^\tVULTURE_{prefix}_(\w+)(?: = 1)?,", header, re.MULTILINE)
        assert [name.lower().replace("_", "-") for name in names] == [
            name for name, _, _ in spec.SETS[table]
        ], table
    commands = re.findall(r"^\tVULTURE_CMD_(\w+)(?: = 1)?,", header, re.MULTILINE)
    assert [name.lower().replace("_", "-") for name in commands] == list(spec.COMMANDS)


def test_every_statistic_that_is_an_enum_is_given_as_one(client: ModuleType) -> None:
    spec = yaml.safe_load((REPO / "Documentation" / "vulture.yaml").read_text(encoding="utf-8"))
    found = {
        one["name"].removesuffix("-stats"): {
            attribute["name"]: attribute["enum"] for attribute in one["attributes"] if "enum" in attribute
        }
        for one in spec["attribute-sets"]
        if one["name"].endswith("-stats")
    }
    expected = {
        law: {name: "".join(map(str.capitalize, enum.split("-"))) for name, enum in stats.items()}
        for law, stats in found.items()
    }
    given = {law: {name: one.__name__ for name, one in enums.items()} for law, enums in client._ENUMS.items()}
    assert given == expected
    assert all(one.__name__ in client.__all__ for enums in client._ENUMS.values() for one in enums.values())


def test_what_is_encoded_is_decoded(client: ModuleType) -> None:
    netlink = sys.modules["vulture._netlink"]
    flow = {"addr": {"local": b"\x7f\0\0\1", "local-port": 80}, "rtt-us": 7, "paper": {"last-sum-us": 5}}
    said = {"id": 1 << 40, "flow": flow, "version": "0.1-x", "options": {"controller": 2}}
    assert netlink.decode("main", netlink.encode("main", said)) == said


def test_a_newer_kernel_may_say_more(client: ModuleType) -> None:
    netlink = sys.modules["vulture._netlink"]
    more = struct.pack("=HHI", 8, 999, 1) + netlink.encode("main", {"count": 3}) + struct.pack("=HH", 400, 1)
    assert netlink.decode("main", more) == {"count": 3}


@pytest.mark.parametrize("options", [{"altitude": 3}, {"controller": "best"}, {"psi-us": 1}])
def test_an_unknown_option_is_refused(client: ModuleType, options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="vulture has no"):
        client._options(options)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_a_number_that_does_not_fit_is_refused(client: ModuleType, value: int) -> None:
    with pytest.raises(OSError, match=f"psi-us {value} is not within 0 to 4294967295") as refused:
        sys.modules["vulture._netlink"].encode("main", client._options({"psi_us": value}))
    assert refused.value.errno == errno.ERANGE


# -- events, from a socket that stands in for the kernel ----------------------------------------------------


class Kernel:
    """A replacement for _netlink.Connection: tell() sends events to the client."""

    family = 30

    def __init__(self) -> None:
        self.socket, self.end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def listen(self) -> None:
        """There is no multicast group to join."""

    def close(self) -> None:
        self.socket.close()

    def tell(self, *kinds: str) -> None:
        netlink, spec = sys.modules["vulture._netlink"], sys.modules["vulture._spec"]
        ends = {"local": bytes(4), "local-port": 80, "remote": bytes(4), "remote-port": 81}
        said = netlink.encode("main", {"flow": {"addr": ends, "options": {"controller": 1}}})
        for kind in kinds:
            body = netlink.GENL_HEADER.pack(spec.COMMANDS[kind], 1, 0) + said
            self.end.send(netlink.HEADER.pack(netlink.HEADER.size + len(body), self.family, 0, 0, 0) + body)


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    yield made
    made.end.close()


@pytest.fixture
def events(client: ModuleType, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """An Events object that reads from such a kernel."""
    monkeypatch.setattr(sys.modules["vulture._netlink"], "Connection", lambda: kernel)
    with client.Events() as made:
        yield made


def test_events_come_in_their_order_and_end_with_close(events: Events, kernel: Kernel) -> None:
    kernel.tell("event-start", "event-end", "event-start")
    assert [next(events).kind for _ in range(2)] == ["start", "end"]
    events.close()
    assert list(events) == [] and events.fileno() == -1


def test_a_plain_loop_may_follow_an_async_one(events: Events, kernel: Kernel) -> None:
    """next() waits for an event, and then a task does so again."""

    async def one() -> str:
        kernel.tell("event-start")
        return (await anext(aiter(events))).kind

    for _ in range(2):
        assert asyncio.run(one()) == "start"
        teller = threading.Timer(0.05, kernel.tell, ["event-end"])
        teller.start()
        assert next(events).kind == "end"
        teller.join()


def test_a_task_that_waits_for_an_event_ends_with_close(events: Events, kernel: Kernel) -> None:
    """The iteration ends for close() only: a task that is cancelled raises CancelledError."""

    async def watch() -> list[str]:
        return [event.kind async for event in events]

    async def closed() -> list[str]:
        task = asyncio.create_task(watch())
        await asyncio.sleep(0)
        kernel.tell("event-start", "event-end")
        await asyncio.sleep(0.05)
        events.close()
        return await asyncio.wait_for(task, 5)

    async def cancelled() -> None:
        task = asyncio.create_task(watch())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert asyncio.run(closed()) == ["start", "end"]
    assert asyncio.run(watch()) == []
