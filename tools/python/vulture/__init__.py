# SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
"""Put TCP downloads in the background from Python: a client of the kernel module's netlink family.

    import vulture
    with vulture.background(connection):        # a socket, or anything with fileno()
        download(connection)                    # yields to other traffic

    with vulture.Vulture() as v:                # the same in single steps
        v.start(connection, controller="credit")
        print(v.get(connection).queue_us)
        v.stop(connection)
        v.rule_add(cgroup="/sys/fs/cgroup/background.slice")

    for event in vulture.Events():              # or: async for event in vulture.Events()
        print(event.kind, event.flow.remote, event.reason)

An application needs no privilege for its own sockets, nor for rules for a cgroup whose directory it may write to. If
the kernel refuses a request, an OSError is raised (PermissionError, FileNotFoundError ... by its errno) whose text says
what is wrong. Windows are in bytes, times in microseconds. The package needs only the standard library. A Vulture must
be used by one thread only; each thread opens its own.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import dataclasses
import errno
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Protocol

from . import _netlink
from ._netlink import Values
from ._spec import COMMANDS, SETS, Controller, CreditPhase, Mode, Pairing, Phase, Policy, Reason, RledbatState

__all__ = [
    "Controller", "CreditPhase", "Defaults", "Event", "Events", "Flow", "HasFileno", "Mode", "Pairing", "Phase",
    "Policy", "Reason", "RledbatState", "Rule", "Vulture", "background",
]  # fmt: skip

Endpoint = tuple[str, int]
Option = int | str


class HasFileno(Protocol):
    """A socket, or an object that wraps one."""

    def fileno(self) -> int:
        """The file descriptor of the socket."""


def _plain(name: str) -> str:
    return name.replace("-", "_")


#: option -> the controller that has it
_OPTION_OWNER = {
    _plain(name): controller.name.lower()
    for controller in Controller
    for name, _, _ in SETS[f"{controller.name.lower()}-options"]
}
#: statistics that are enums, by controller
_ENUMS: dict[str, dict[str, type[Phase] | type[Mode] | type[Policy] | type[CreditPhase] | type[RledbatState]]] = {
    "paper": {"phase": Phase, "mode": Mode, "policy": Policy},
    "credit": {"phase": CreditPhase},
    "rledbat": {"state": RledbatState},
}


def _options(options: Mapping[str, Option]) -> Values:
    """Options in the form of a request. TypeError for a name that no controller has."""
    nest: Values = {}
    for name, value in options.items():
        if name == "controller":
            if isinstance(value, str):
                if value.upper() not in Controller.__members__:
                    raise TypeError(f"vulture has no controller {value!r}")
                value = Controller[value.upper()]
            nest["controller"] = value
        elif name in _OPTION_OWNER:
            nest.setdefault(_OPTION_OWNER[name], {})[name.replace("_", "-")] = value
        else:
            raise TypeError(f"vulture has no option {name!r}")
    return {"options": nest} if nest else {}


def _plain_options(nest: Values) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for name, value in nest.items():
        if name == "controller":
            options["controller"] = Controller(value).name.lower()
        else:
            options |= {_plain(option): number for option, number in value.items()}
    return options


def _address(sock: HasFileno | tuple[Endpoint, Endpoint]) -> Values:
    """The attributes that name a connection: a descriptor, or the addresses of both ends."""
    if not isinstance(sock, tuple):
        return {"fd": sock.fileno()}
    (local, local_port), (remote, remote_port) = sock
    return {
        "addr": {
            "local": ipaddress.ip_address(local).packed, "local-port": local_port,
            "remote": ipaddress.ip_address(remote).packed, "remote-port": remote_port,
        }
    }  # fmt: skip


def _cgroup(directory: str | os.PathLike[str]) -> Values:
    """The cgroup by its inode. Other directories are refused, since their inode may equal that of another cgroup."""
    number = os.stat(directory).st_ino
    if not os.path.exists(os.path.join(directory, "cgroup.controllers")):
        raise NotADirectoryError(errno.ENOTDIR, "is not the directory of a v2 cgroup", os.fspath(directory))
    return {"cgroup": number}


@dataclasses.dataclass(frozen=True)
class Flow:
    """The state of a connection under control at the time of reading."""

    id: int
    local: Endpoint
    remote: Endpoint
    rule: int
    controller: Controller
    options: dict[str, Option]
    rwnd_bytes: int
    own_bytes: int
    advertised_bytes: int
    rtt_us: int
    min_rtt_us: int
    queue_us: int
    mss_bytes: int
    age_us: int
    segments: int
    bytes: int
    acks: int
    rewritten: int
    updates: int
    #: statistics of its controller, by name; each can also be read as an attribute of the flow
    stats: dict[str, int]

    def __getattr__(self, name: str) -> int:
        if not name.startswith("__") and name in self.__dict__.get("stats", {}):
            return self.stats[name]
        raise AttributeError(f"a flow of controller {self.__dict__.get('controller')!r} has no {name!r}")


#: fields of Flow that the kernel sends as numbers of the same name
_NUMBERS = {
    "id", "rule", "own_bytes", "advertised_bytes", "rtt_us", "min_rtt_us", "queue_us", "mss_bytes", "age_us",
    "segments", "bytes", "acks", "rewritten", "updates",
}  # fmt: skip


def _flow(values: Values) -> Flow:
    ends = values["addr"]
    options = _plain_options(values["options"])
    controller = Controller(values["options"]["controller"])
    law = controller.name.lower()
    enums = _ENUMS.get(law, {})
    numbers = {_plain(name): value for name, value in values.items() if _plain(name) in _NUMBERS}
    stats = {_plain(name): value for name, value in values.get(law, {}).items()}
    for name, enum in enums.items():
        if stats.get(name) in list(enum):
            stats[name] = enum(stats[name])
    return Flow(
        local=(str(ipaddress.ip_address(ends["local"])), ends["local-port"]),
        remote=(str(ipaddress.ip_address(ends["remote"])), ends["remote-port"]),
        controller=controller, options=options, rwnd_bytes=values.get("window-bytes", 0), stats=stats,
        **dict.fromkeys(_NUMBERS, 0) | numbers,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule: it puts new connections under control if they meet all conditions that are not None."""

    id: int
    cgroup: int | None
    local_port: int | None
    remote_port: int | None
    remote: str | None
    options: dict[str, Option]
    started: int
    failed: int
    #: user who added the rule without privilege; None: an administrator added it
    uid: int | None
    #: the DSCP that the socket sends, 0 to 63
    dscp: int | None
    #: matching connections stay in the foreground: no rule starts them, except rules for cgroups below this one's
    foreground: bool


def _rule(values: Values) -> Rule:
    remote = None
    if "remote-prefix" in values:
        remote = f"{ipaddress.ip_address(values['remote-prefix'])}/{values['remote-prefix-bits']}"
    return Rule(
        values["id"], values.get("cgroup"), values.get("local-port"), values.get("remote-port"), remote,
        _plain_options(values.get("options", {})), values["started"], values.get("failed", 0), values.get("uid"),
        values.get("dscp"), values.get("foreground", False),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Defaults:
    """Default options and limits of this network namespace."""

    options: dict[str, Option]
    max_flows: int
    flows: int
    flow_bytes: int
    version: str


class Vulture:
    """A handle on the kernel module in the caller's network namespace, for use by one thread."""

    def __init__(self) -> None:
        """FileNotFoundError if the module is not loaded."""
        self._netlink = _netlink.Connection()

    def __enter__(self) -> Vulture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle. Connections stay as they are."""
        self._netlink.close()

    def _one(self, command: str, values: Values) -> Values:
        (answer,) = self._netlink.request(command, values)
        return answer

    def start(self, connection: HasFileno | tuple[Endpoint, Endpoint], **options: Option) -> None:
        """Put a connection in the background: a TCP socket of the caller, or (CAP_NET_ADMIN) one by (local, remote).

        Options are given by name, ``psi_us=20000`` or ``observe=1``; ``controller="paper"`` chooses the law.
        """
        self._one("start", _address(connection) | _options(options))

    def stop(self, connection: HasFileno | tuple[Endpoint, Endpoint]) -> None:
        """End the control of a connection, which advertises TCP's own window again at once."""
        self._one("stop", _address(connection))

    def stop_id(self, number: int) -> None:
        """The same for a connection by ``Flow.id``. Needs CAP_NET_ADMIN."""
        self._one("stop", {"id": number})

    def get(self, connection: HasFileno | tuple[Endpoint, Endpoint]) -> Flow:
        """Read the state of a connection."""
        return _flow(self._one("get", _address(connection))["flow"])

    def list(self) -> list[Flow]:
        """All connections under control in this namespace."""
        return [_flow(answer["flow"]) for answer in self._netlink.request("get", {}, dump=True)]

    def start_pid(self, pid: int, **options: Option) -> int:
        """Start all connections of a process. Return how many were started.

        Needs CAP_NET_ADMIN, also for a process of the caller's own. Without it, call ``start`` with each socket;
        ``vulturectl start --pid`` does this for all sockets of a process that the caller may trace.
        """
        return int(self._one("start", {"pid": pid} | _options(options))["count"])

    def stop_pid(self, pid: int) -> int:
        """Stop all connections of a process. Return how many were stopped.

        Needs CAP_NET_ADMIN like ``start_pid``; without it, ``stop`` with each socket, or ``vulturectl stop --pid``.
        """
        return int(self._one("stop", {"pid": pid})["count"])

    def start_cgroup(self, directory: str | os.PathLike[str], **options: Option) -> int:
        """Start all connections of a v2 cgroup and of those below. Return how many. Needs CAP_NET_ADMIN."""
        return int(self._one("start", _cgroup(directory) | _options(options))["count"])

    def stop_cgroup(self, directory: str | os.PathLike[str]) -> int:
        """Stop all connections of a v2 cgroup and of those below. Return how many. Needs CAP_NET_ADMIN."""
        return int(self._one("stop", _cgroup(directory))["count"])

    def rule_add(
        self, *, cgroup: str | os.PathLike[str] | None = None, local_port: int | None = None,
        remote_port: int | None = None, remote: str | None = None, dscp: int | None = None,
        foreground: bool = False, **options: Option,
    ) -> Rule:  # fmt: skip
        """Add a rule, which puts each new connection that matches in the background.

        Without CAP_NET_ADMIN, ``cgroup`` must be a directory that the caller may write to. ``remote`` is a prefix such
        as "192.0.2.0/24". ``dscp`` is the DSCP that the socket sends when its connection is established, 0 to 63
        (1: LE). With ``foreground``, connections that match stay in the foreground: no rule starts them, except rules
        for cgroups below this one's. That needs CAP_NET_ADMIN in any case.
        """
        nest: Values = {}
        if local_port is not None:
            nest["local-port"] = local_port
        if remote_port is not None:
            nest["remote-port"] = remote_port
        if remote is not None:
            network = ipaddress.ip_network(remote, strict=False)
            nest |= {"remote-prefix": network.network_address.packed, "remote-prefix-bits": network.prefixlen}
        if dscp is not None:
            nest["dscp"] = dscp
        if foreground:
            nest["foreground"] = True
        nest |= _options(options)
        if cgroup is None:
            return _rule(self._one("rule-add", {"rule": nest})["rule"])
        directory = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return _rule(self._one("rule-add", {"rule": nest | {"cgroup-fd": directory}})["rule"])
        finally:
            os.close(directory)

    def rule_del(self, rule: Rule | int) -> None:
        """Delete a rule. Connections that it started stay under control."""
        self._netlink.request("rule-del", {"rule": {"id": rule.id if isinstance(rule, Rule) else rule}})

    def rules(self) -> builtins.list[Rule]:
        """All rules of this namespace, the oldest first."""
        return [_rule(answer["rule"]) for answer in self._netlink.request("rule-get", {}, dump=True)]

    def defaults(self) -> Defaults:
        """The options of connections that are started without options, and the limits."""
        found = self._one("get-defaults", {})
        return Defaults(
            _plain_options(found["options"]), found["max-flows"], found["count"], found["flow-bytes"], found["version"]
        )

    def set_defaults(self, *, max_flows: int | None = None, **options: Option) -> None:
        """Set the limit, and options for connections started from now on. Needs CAP_NET_ADMIN."""
        values = _options(options)
        if max_flows is not None:
            values["max-flows"] = max_flows
        self._netlink.request("set", values)


@dataclasses.dataclass(frozen=True)
class Event:
    """An event: a connection came under control, or its control ended."""

    #: "start" or "end"
    kind: str
    flow: Flow
    #: why the control ended; None for a start
    reason: Reason | None


_KINDS = {COMMANDS["event-start"]: "start", COMMANDS["event-end"]: "end"}


class Events:
    """The events of this network namespace from now on, by ``for`` or ``async for``.

    An OSError with ENOBUFS means that events were lost; the iteration may be continued after it. It ends when the
    object is closed.
    """

    def __init__(self) -> None:
        self._netlink = _netlink.Connection()
        self._netlink.listen()
        self._waiting: list[Event] = []
        self._reading: asyncio.Future[bytes] | None = None

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Events:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration, also for a task of this thread that waits for an event."""
        if self._reading:
            self._reading.cancel()
        self._netlink.close()

    def fileno(self) -> int:
        """The descriptor to poll; -1 once this is closed."""
        return self._netlink.socket.fileno()

    def _take(self, data: bytes) -> None:
        for kind, _, _, body in _netlink.messages(data):
            if kind != self._netlink.family or body[0] not in _KINDS:
                continue
            values = _netlink.decode("main", body[_netlink.GENL_HEADER.size :])
            reason = Reason(values["reason"]) if "reason" in values else None
            self._waiting.append(Event(_KINDS[body[0]], _flow(values["flow"]), reason))

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._waiting:
            if self.fileno() < 0:
                raise StopIteration
            if self._netlink.socket.gettimeout() is not None:  # after ``async for``
                self._netlink.socket.setblocking(True)
            self._take(self._netlink.socket.recv(1 << 16))
        return self._waiting.pop(0)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        loop = asyncio.get_running_loop()
        while not self._waiting:
            if self.fileno() < 0:
                raise StopAsyncIteration
            self._netlink.socket.setblocking(False)
            self._reading = asyncio.ensure_future(loop.sock_recv(self._netlink.socket, 1 << 16))
            try:
                self._take(await self._reading)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self.fileno() >= 0 or (task and task.cancelling()):
                    raise
            finally:
                self._reading = None
        return self._waiting.pop(0)


@contextlib.contextmanager
def background(connection: socket.socket | HasFileno, **options: Option) -> Iterator[Vulture]:
    """Put a connection in the background for the duration of the block, in which it may be closed."""
    with Vulture() as handle:
        handle.start(connection, **options)
        try:
            yield handle
        finally:
            # fileno() raises ValueError for a closed file, and returns -1 for a closed socket, which the kernel refuses
            with contextlib.suppress(OSError, ValueError):
                handle.stop(connection)
