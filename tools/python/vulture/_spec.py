# SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
"""The netlink family as Documentation/vulture.yaml has it; written by make_spec.py."""

from enum import IntEnum

FAMILY = "vulture"
GROUP = "events"


class Controller(IntEnum):
    """The law that sets a connection's window. paper: Li and Welzl's, Documentation/vulture.md; credit: the
    suite's own, Documentation/vulture_credit.md; rledbat: RFC 9840 with the law of LEDBAT++.
    """

    PAPER = 0
    CREDIT = 1
    RLEDBAT = 2


class Pairing(IntEnum):
    """How the controller paper forms pairs. each: each packet forms one pair; literal: the paper's
    pseudo-code as printed.
    """

    EACH = 0
    LITERAL = 1


class Mode(IntEnum):
    CONSERVATIVE = 0
    AGGRESSIVE = 1


class Policy(IntEnum):
    FIX = 0
    INCREASE = 1
    DOUBLE = 2
    HALVE = 3


class Phase(IntEnum):
    """Of the controller paper. observe: estimates the sender's window, limits nothing; start: the same,
    for the one round trip before control; wait: until data reflects the latest policy; collect:
    collects the variations of a round trip.
    """

    OBSERVE = 0
    START = 1
    WAIT = 2
    COLLECT = 3


class CreditPhase(IntEnum):
    """Of the controller credit. start: follows the sender's slow start; cruise: keeps a queue of about two
    packets; floor: gives credit for a packet now and then; probe: measures with a train of packets.
    """

    START = 0
    CRUISE = 1
    FLOOR = 2
    PROBE = 3


class RledbatState(IntEnum):
    """Of the controller rledbat. start: slow start, until the first queue; steady; down: two packets for
    two round trips; ramp: back to the window before the slowdown.
    """

    START = 0
    STEADY = 1
    DOWN = 2
    RAMP = 3


class Reason(IntEnum):
    """Why control ended. stopped: by request; closed: the connection ended; removed: the module or the
    namespace was removed.
    """

    STOPPED = 0
    CLOSED = 1
    REMOVED = 2


#: command -> number
COMMANDS = {
    "start": 1,
    "stop": 2,
    "get": 3,
    "set": 4,
    "get-defaults": 5,
    "rule-add": 6,
    "rule-del": 7,
    "rule-get": 8,
    "event-start": 9,
    "event-end": 10,
}

#: attribute set -> its attributes in order, from 1: (name, type, set nested in it)
SETS: dict[str, list[tuple[str, str, str]]] = {
    "main": [
        ("fd", "u32", ""),
        ("addr", "nest", "addr"),
        ("pid", "u32", ""),
        ("cgroup", "u64", ""),
        ("id", "u64", ""),
        ("options", "nest", "options"),
        ("flow", "nest", "flow"),
        ("rule", "nest", "rule"),
        ("count", "u32", ""),
        ("max-flows", "u32", ""),
        ("flow-bytes", "u32", ""),
        ("reason", "u32", ""),
        ("version", "string", ""),
        ("pad", "pad", ""),
    ],
    "addr": [
        ("local", "binary", ""),
        ("local-port", "u16", ""),
        ("remote", "binary", ""),
        ("remote-port", "u16", ""),
    ],
    "options": [
        ("controller", "u32", ""),
        ("paper", "nest", "paper-options"),
        ("credit", "nest", "credit-options"),
        ("rledbat", "nest", "rledbat-options"),
    ],
    "paper-options": [
        ("tick-us", "u32", ""),
        ("psi-us", "u32", ""),
        ("cons-low-us", "u32", ""),
        ("cons-high-us", "u32", ""),
        ("aggr-low-us", "u32", ""),
        ("aggr-high-us", "u32", ""),
        ("pairing", "u32", ""),
        ("alpha-permille", "u32", ""),
        ("increase-segs", "u32", ""),
        ("positive-test", "u32", ""),
        ("goals", "u32", ""),
        ("settle", "u32", ""),
        ("retract", "u32", ""),
        ("observe", "u32", ""),
    ],
    "flow": [
        ("id", "u64", ""),
        ("addr", "nest", "addr"),
        ("rule", "u32", ""),
        ("options", "nest", "options"),
        ("window-bytes", "u32", ""),
        ("advertised-bytes", "u32", ""),
        ("own-bytes", "u32", ""),
        ("rtt-us", "u32", ""),
        ("min-rtt-us", "u32", ""),
        ("queue-us", "u32", ""),
        ("mss-bytes", "u32", ""),
        ("age-us", "u64", ""),
        ("segments", "u64", ""),
        ("bytes", "u64", ""),
        ("acks", "u64", ""),
        ("rewritten", "u64", ""),
        ("updates", "u64", ""),
        ("paper", "nest", "paper-stats"),
        ("credit", "nest", "credit-stats"),
        ("rledbat", "nest", "rledbat-stats"),
        ("pad", "pad", ""),
    ],
    "paper-stats": [
        ("phase", "u64", ""),
        ("mode", "u64", ""),
        ("policy", "u64", ""),
        ("thresh-bytes", "u64", ""),
        ("cwnd-bytes", "u64", ""),
        ("peer-tick-us", "u64", ""),
        ("last-pivs", "u64", ""),
        ("last-positive", "u64", ""),
        ("last-sum-us", "s64", ""),
        ("piv-negative", "u64", ""),
        ("piv-zero", "u64", ""),
        ("piv-positive", "u64", ""),
        ("piv-low", "u64", ""),
        ("piv-middle", "u64", ""),
        ("piv-high", "u64", ""),
        ("rounds", "u64", ""),
        ("fixes", "u64", ""),
        ("increases", "u64", ""),
        ("doublings", "u64", ""),
        ("halvings", "u64", ""),
        ("losses", "u64", ""),
        ("conservative-us", "u64", ""),
        ("aggressive-us", "u64", ""),
        ("pad", "pad", ""),
    ],
    "credit-options": [
        ("min-kbit", "u32", ""),
        ("escape-s", "u32", ""),
        ("weight", "u32", ""),
    ],
    "credit-stats": [
        ("phase", "u64", ""),
        ("flows", "u64", ""),
        ("capacity-bps", "u64", ""),
        ("rate-bps", "u64", ""),
        ("credit-bytes", "u64", ""),
        ("growth-permille", "u64", ""),
        ("fails", "u64", ""),
        ("yields", "u64", ""),
        ("trains", "u64", ""),
        ("trains-failed", "u64", ""),
        ("pad", "pad", ""),
    ],
    "rledbat-options": [
        ("target-us", "u32", ""),
        ("slowdown", "u32", ""),
    ],
    "rledbat-stats": [
        ("state", "u64", ""),
        ("ssthresh-bytes", "u64", ""),
        ("samples", "u64", ""),
        ("losses", "u64", ""),
        ("slowdowns", "u64", ""),
        ("pad", "pad", ""),
    ],
    "rule": [
        ("id", "u32", ""),
        ("cgroup", "u64", ""),
        ("local-port", "u16", ""),
        ("remote-port", "u16", ""),
        ("remote-prefix", "binary", ""),
        ("remote-prefix-bits", "u8", ""),
        ("options", "nest", "options"),
        ("started", "u64", ""),
        ("pad", "pad", ""),
        ("failed", "u64", ""),
        ("cgroup-fd", "u32", ""),
        ("uid", "u32", ""),
        ("dscp", "u8", ""),
        ("foreground", "flag", ""),
    ],
}
