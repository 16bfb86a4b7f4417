# SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
"""Generic netlink: conversion of messages to and from dictionaries, by the tables of _spec.py."""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Any

from ._spec import COMMANDS, FAMILY, GROUP, SETS

NETLINK_GENERIC = 16
SOL_NETLINK = 270
NETLINK_ADD_MEMBERSHIP, NETLINK_EXT_ACK = 1, 11
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSG_ERROR, NLMSG_DONE, NLMSG_MIN_TYPE = 2, 3, 16
NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS, NLMSGERR_ATTR_POLICY = 1, 2, 4
#: of a policy: the range of a number
MIN_VALUE_U, MAX_VALUE_U = 4, 5
NESTED, TYPE_MASK = 0x8000, 0x3FFF
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
#: attributes by which the kernel describes a family, from linux/genetlink.h
CONTROL_SETS = {
    "control": {1: ("id", "u16", ""), 2: ("name", "string", ""), 7: ("groups", "list", "group")},
    "group": {1: ("name", "string", ""), 2: ("id", "u32", "")},
}
HEADER = struct.Struct("=IHHII")
GENL_HEADER = struct.Struct("=BBH")
NUMBERS = {"u8": "=B", "u16": "=H", "u32": "=I", "u64": "=Q", "s64": "=q"}

Values = dict[str, Any]
Table = dict[int, tuple[str, str, str]]
_BY_NUMBER: dict[str, Table] = {name: dict(enumerate(attributes, 1)) for name, attributes in SETS.items()}
_BY_NUMBER |= CONTROL_SETS


def _padded(length: int) -> int:
    return (length + 3) & ~3


def _attribute(number: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, number) + payload + bytes(_padded(length) - length)


def encode(table: str, values: Values) -> bytes:
    """Encode the attributes of one set. KeyError for an unknown name; OSError (ERANGE) for a number too large."""
    known = {name: (number, kind, nested) for number, (name, kind, nested) in _BY_NUMBER[table].items()}
    parts = []
    for name, value in values.items():
        number, kind, nested = known[name]
        if kind == "nest":
            parts.append(_attribute(number | NESTED, encode(nested, value)))
        elif kind == "binary":
            parts.append(_attribute(number, value))
        elif kind == "flag":
            parts.extend([_attribute(number, b"")] if value else [])
        elif kind == "string":
            parts.append(_attribute(number, value.encode() + b"\0"))
        else:
            size = struct.calcsize(NUMBERS[kind])
            if not 0 <= int(value) < 1 << 8 * size:
                raise OSError(errno.ERANGE, f"{name} {value} is not within 0 to {(1 << 8 * size) - 1}")
            parts.append(_attribute(number, int(value).to_bytes(size, sys.byteorder)))
    return b"".join(parts)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, payload) of each attribute, up to the first one that is incomplete."""
    at = 0
    while at + 4 <= len(data):
        length, number = struct.unpack_from("=HH", data, at)
        if length < 4 or at + length > len(data):
            return
        yield number & TYPE_MASK, data[at + 4 : at + length]
        at += _padded(length)


def decode(table: str, data: bytes) -> Values:
    """Decode the attributes of one set. Attributes that this client does not know are skipped."""
    values: Values = {}
    for number, payload in attributes(data):
        name, kind, nested = _BY_NUMBER[table].get(number, ("", "pad", ""))
        if kind == "nest":
            values[name] = decode(nested, payload)
        elif kind == "list":
            values[name] = [decode(nested, one) for _, one in attributes(payload)]
        elif kind == "binary":
            values[name] = payload
        elif kind == "flag":
            values[name] = True
        elif kind == "string":
            values[name] = payload.rstrip(b"\0").decode(errors="replace")
        elif kind in NUMBERS and len(payload) >= struct.calcsize(NUMBERS[kind]):
            values[name] = struct.unpack_from(NUMBERS[kind], payload)[0]
    return values


def messages(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """(type, flags, sequence number, body) of each message of a datagram."""
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, flags, sequence, _ = HEADER.unpack_from(data, at)
        if length < HEADER.size or at + length > len(data):
            return
        yield kind, flags, sequence, data[at + HEADER.size : at + length]
        at += _padded(length)


def _attribute_at(table: str, data: bytes, at: int) -> tuple[str, bytes] | None:
    """(name, payload) of the attribute that begins at an offset, also in a nest; None if there is none."""
    begin = 0
    for number, payload in attributes(data):
        end = begin + 4 + len(payload)
        if at < end:
            name, _, nested = _BY_NUMBER[table].get(number, ("", "", ""))
            if at == begin:
                return (name, payload) if name else None
            return _attribute_at(nested, payload, at - begin - 4) if nested else None
        begin = _padded(end)
    return None


def _reason(found: dict[int, bytes], request: bytes) -> str:
    """The kernel's text. If it has refused an attribute by its policy, with the attribute's name, value and range."""
    text = found[NLMSGERR_ATTR_MSG].rstrip(b"\0").decode(errors="replace")
    if text.startswith("vulture: ") or NLMSGERR_ATTR_OFFS not in found:
        return text.removeprefix("vulture: ")
    (offset,) = struct.unpack("=I", found[NLMSGERR_ATTR_OFFS])
    refused = _attribute_at("main", request[GENL_HEADER.size :], offset - HEADER.size - GENL_HEADER.size)
    if not refused:
        return text
    name, payload = refused
    limits = dict(attributes(found.get(NLMSGERR_ATTR_POLICY, b"")))
    if MIN_VALUE_U not in limits or MAX_VALUE_U not in limits:
        return f"{name}: {text}"
    value, least, most = (
        int.from_bytes(one, sys.byteorder) for one in (payload, limits[MIN_VALUE_U], limits[MAX_VALUE_U])
    )
    return f"{name} {value} is not within {least} to {most}"


def _raise(body: bytes, flags: int, request: bytes) -> None:
    """Raise an OSError with the kernel's text if the kernel's answer to a request is an error."""
    (code,) = struct.unpack_from("=i", body)
    if not code:
        return
    text = os.strerror(-code)
    if flags & NLM_F_ACK_TLVS:
        (inner,) = struct.unpack_from("=I", body, 4)
        start = 4 + (HEADER.size if flags & NLM_F_CAPPED else _padded(inner))
        found = dict(attributes(body[start:]))
        if NLMSGERR_ATTR_MSG in found:
            text = _reason(found, request)
    raise OSError(-code, text)


class Connection:
    """A netlink socket for the family in the caller's network namespace, for use by one thread."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_GENERIC)
        self._sequence = 0
        try:
            self.socket.bind((0, 0))
            self.socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
            (found,) = self._talk(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, encode("control", {"name": FAMILY}), "control", 0)
        except FileNotFoundError:
            self.close()
            text = "the kernel module vulture is not loaded (modprobe vulture)"
            raise FileNotFoundError(errno.ENOENT, text) from None
        except BaseException:
            self.close()
            raise
        self.family: int = found["id"]
        self._groups = {group["name"]: group["id"] for group in found.get("groups", [])}

    def close(self) -> None:
        self.socket.close()

    def request(self, command: str, values: Values, dump: bool = False) -> list[Values]:
        """Send a request and return the kernel's answers. OSError if the kernel refuses it."""
        flags = NLM_F_DUMP if dump else 0
        return self._talk(self.family, COMMANDS[command], encode("main", values), "main", flags)

    def listen(self) -> None:
        """Subscribe to events."""
        self.socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, self._groups[GROUP])

    def _talk(self, family: int, command: int, payload: bytes, table: str, flags: int) -> list[Values]:
        self._sequence += 1
        body = GENL_HEADER.pack(command, 1, 0) + payload
        flags |= NLM_F_REQUEST | (0 if flags & NLM_F_DUMP else NLM_F_ACK)
        self.socket.send(HEADER.pack(HEADER.size + len(body), family, flags, self._sequence, 0) + body)
        answers: list[Values] = []
        while True:
            for kind, answer_flags, sequence, answer in messages(self.socket.recv(1 << 16)):
                if sequence != self._sequence:  # it belongs to an earlier answer that was not read to its end
                    continue
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    if len(answer) >= 4:
                        _raise(answer, answer_flags, body)
                    return answers
                if kind >= NLMSG_MIN_TYPE:
                    answers.append(decode(table, answer[GENL_HEADER.size :]))
