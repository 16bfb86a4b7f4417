# SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
"""Take TCP downloads to the background from Python: a thin layer over libvulture.

    import vulture
    with vulture.background(connection):        # a socket, or anything with fileno()
        download(connection)                    # steps aside for everything else

    with vulture.Vulture() as v:                # the same in pieces
        v.start(connection, psi_us=20000)
        print(v.get(connection).rwnd_bytes)
        v.stop(connection)

An application needs no privilege for its own sockets. Every failure is an OSError (PermissionError,
FileNotFoundError ... by its errno) whose text says what would be right. Windows are in bytes, times in
microseconds; libvulture's header and vulturectl(8) tell what the fields and options mean.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import os
import socket
import sys
from collections.abc import Iterator
from typing import Protocol

OPTIONS = 63    # VULTURE_OPTIONS of the header
STATS = 48    # VULTURE_STATS


class HasFileno(Protocol):
    """A socket, or what wraps one."""

    def fileno(self) -> int:
        """Its file descriptor."""


class _Options(ctypes.Structure):
    _fields_ = [("set", ctypes.c_uint64), ("value", ctypes.c_uint32 * (OPTIONS + 1))]


class _Address(ctypes.Structure):
    _fields_ = [("local", ctypes.c_uint32 * 7), ("remote", ctypes.c_uint32 * 7)]    # union with sockaddr_in6


class _Stat(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class Flow(ctypes.Structure):
    """A connection under control, as ``struct vulture_flow`` of the header has it."""

    _fields_ = [
        ("id", ctypes.c_uint64), ("_address", _Address), ("rule", ctypes.c_uint32), ("_options", _Options),
        ("controller", ctypes.c_uint32), ("_n_stats", ctypes.c_uint32), ("_stats", _Stat * STATS),
        ("queue_us", ctypes.c_uint32),
        *((name, ctypes.c_uint32) for name in (
            "phase", "mode", "policy", "rwnd_bytes", "thresh_bytes", "advertised_bytes", "own_bytes", "cwnd_bytes",
            "rtt_us", "min_rtt_us", "mss_bytes", "peer_tick_us", "last_pivs", "last_positive")),
        ("last_sum_us", ctypes.c_int64),
        *((name, ctypes.c_uint64) for name in (
            "age_us", "piv_negative", "piv_zero", "piv_positive", "piv_low", "piv_middle", "piv_high", "rounds",
            "fixes", "increases", "doublings", "halvings", "losses", "conservative_us", "aggressive_us",
            "segments", "bytes", "acks", "rewritten", "updates")),
    ]

    @property
    def local(self) -> tuple[str, int]:
        """This machine's address and port."""
        return _endpoint(self._address.local)

    @property
    def remote(self) -> tuple[str, int]:
        """The peer's address and port."""
        return _endpoint(self._address.remote)


def _endpoint(words: ctypes.Array) -> tuple[str, int]:
    raw = bytes(words)
    family = int.from_bytes(raw[:2], sys.byteorder)
    port = int.from_bytes(raw[2:4], "big")
    if family == socket.AF_INET:
        return socket.inet_ntop(family, raw[4:8]), port
    return socket.inet_ntop(socket.AF_INET6, raw[8:24]), port


def _load() -> ctypes.CDLL:
    """libvulture: $LIBVULTURE, else the system's."""
    name = os.environ.get("LIBVULTURE") or ctypes.util.find_library("vulture") or "libvulture.so.1"
    library = ctypes.CDLL(name, use_errno=True)
    handle, flow, options = ctypes.c_void_p, ctypes.POINTER(Flow), ctypes.POINTER(_Options)
    for function, result, arguments in (
        ("vulture_open", handle, ()), ("vulture_close", None, (handle,)),
        ("vulture_error", ctypes.c_char_p, (handle,)),
        ("vulture_option", ctypes.c_int, (options, ctypes.c_char_p, ctypes.c_uint32)),
        ("vulture_controller_number", ctypes.c_int, (ctypes.c_char_p,)),
        ("vulture_start", ctypes.c_int, (handle, ctypes.c_int, options)),
        ("vulture_stop", ctypes.c_int, (handle, ctypes.c_int)),
        ("vulture_get", ctypes.c_int, (handle, ctypes.c_int, flow)),
        ("vulture_list", ctypes.c_int, (handle, _EACH, ctypes.c_void_p)),
    ):
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library


_EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Flow), ctypes.c_void_p)


class Vulture:
    """A handle on the kernel module, in the caller's network namespace. For one thread at a time."""

    def __init__(self) -> None:
        """OSError if the module is not loaded or the library is not there."""
        self._handle = None
        self._library = _load()
        self._handle = self._library.vulture_open()
        if not self._handle:
            self._fail()

    def __enter__(self) -> Vulture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the handle back; connections stay as they are."""
        if self._handle:
            self._library.vulture_close(self._handle)
        self._handle = None

    def _fail(self) -> None:
        text = self._library.vulture_error(self._handle).decode(errors="replace")
        raise OSError(ctypes.get_errno(), text)

    def start(self, connection: HasFileno, **options: int | str) -> None:
        """A connected TCP socket goes to the background. Options by name: ``psi_us=20000``, ``observe=1``;
        ``controller="paper"`` for the law.
        """
        chosen = _Options()
        for name, value in options.items():
            if name == "controller" and isinstance(value, str):
                number = self._library.vulture_controller_number(value.encode())
                if number < 0:
                    raise TypeError(f"vulture has no controller {value!r}")
                value = number
            if self._library.vulture_option(chosen, name.replace("_", "-").encode(), value):
                raise TypeError(f"vulture has no option {name!r}")
        if self._library.vulture_start(self._handle, connection.fileno(), chosen) < 0:
            self._fail()

    def stop(self, connection: HasFileno) -> None:
        """It gets its window back, at once."""
        if self._library.vulture_stop(self._handle, connection.fileno()) < 0:
            self._fail()

    def get(self, connection: HasFileno) -> Flow:
        """How it fares."""
        flow = Flow()
        if self._library.vulture_get(self._handle, connection.fileno(), flow) < 0:
            self._fail()
        return flow

    def list(self) -> list[Flow]:
        """All connections under control in this namespace."""
        found: list[Flow] = []

        def each(flow: ctypes._Pointer, _: object) -> int:
            found.append(Flow.from_buffer_copy(flow.contents))
            return 0

        if self._library.vulture_list(self._handle, _EACH(each), None) < 0:
            self._fail()
        return found


@contextlib.contextmanager
def background(connection: HasFileno, **options: int | str) -> Iterator[Vulture]:
    """The connection is a background one inside the block. It may close in there."""
    with Vulture() as vulture:
        vulture.start(connection, **options)
        try:
            yield vulture
        finally:
            if connection.fileno() >= 0:
                with contextlib.suppress(FileNotFoundError, OSError):
                    vulture.stop(connection)
