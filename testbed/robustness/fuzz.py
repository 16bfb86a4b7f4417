# SPDX-License-Identifier: GPL-2.0
"""A fuzzer: messages made from grammars and mutated according to their structure, from a seed.

    Documentation/vulture.yaml --+
    the tc attributes below   ---+-> a valid request -> mutations of the tree -> of the bytes -> a line

guest/fuzz.py reads the lines: a letter (v: family vulture, t: rtnetlink, s: sysctl or module
parameter, l: a module's load parameters) and hexadecimal digits. Values that only the guest knows (the
number of the family, its process, a cgroup) are marks in the line, which the guest replaces.

The stored corpus (corpus/*.txt) has one line for each different answer that was ever seen (command,
error, text). `make check` sends it again.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
SPEC = HERE.parent.parent / "Documentation" / "vulture.yaml"
CORPUS = HERE / "corpus"

#: marks that the guest replaces
FAMILY_MARK = 0xFAFA
PID_MARK = 0x50494450
CGROUP_MARK = 0x4352_4756_4F55_4750

#: descriptors that guest/fuzz.py opens: both ends of IPv4 and IPv6 connections, and other kinds of files
DESCRIPTORS = range(100, 112)
PORTS = (5001, 6001, 5002, 6002)
ADDRESSES = (bytes([127, 0, 0, 1]), bytes(15) + b"\1", bytes(10) + b"\xff\xff" + bytes([127, 0, 0, 1]), bytes(16))
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "s64": 8, "bitfield32": 8}
NESTED, NET_ORDER = 0x8000, 0x4000
QUEUE_MESSAGES = range(36, 43)
REQUEST, MULTI, ACK, ECHO, DUMP, ROOT, CREATE, EXCL, REPLACE = 1, 2, 4, 8, 0x300, 0x100, 0x400, 0x200, 0x100


@dataclass
class AttributeKind:
    """An attribute in the grammar."""

    number: int
    name: str
    type: str
    least: int | None = None
    most: int | None = None
    nest: str = ""


@dataclass
class Attribute:
    """A node of a request's tree."""

    number: int
    payload: bytes | list[Attribute]
    flags: int = 0
    length: int | None = None  # the length in its header; None: the true one

    def raw(self) -> bytes:
        """Its bytes as sent."""
        body = b"".join(one.raw() for one in self.payload) if isinstance(self.payload, list) else self.payload
        length = 4 + len(body) if self.length is None else self.length
        head = struct.pack("=HH", length & 0xFFFF, (self.number | self.flags) & 0xFFFF)
        return head + body + b"\0" * (-len(body) % 4)


@dataclass
class Grammar:
    """Attribute sets by name, and requests: (command, flags, attribute names, set)."""

    sets: dict[str, list[AttributeKind]] = field(default_factory=dict)
    requests: list[tuple[int, int, list[str], str]] = field(default_factory=list)


def vulture_grammar(path: Path = SPEC) -> Grammar:
    """Read the grammar from the netlink specification."""
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    made = Grammar()
    for one in spec["attribute-sets"]:
        kinds = []
        for number, entry in enumerate(one["attributes"], 1):
            checks = entry.get("checks", {})
            kinds.append(
                AttributeKind(
                    number, entry["name"], entry["type"], checks.get("min"), checks.get("max"),
                    entry.get("nested-attributes", ""),
                )
            )  # fmt: skip
        made.sets[one["name"]] = kinds
    for number, one in enumerate(spec["operations"]["list"], 1):
        for what, flags in (("do", REQUEST | ACK), ("dump", REQUEST | DUMP)):
            if what in one:
                names = one[what].get("request", {}).get("attributes", [])
                made.requests.append((number, flags, names, one["attribute-set"]))
    return made


#: sch_shred/uapi/shred.h
SHRED = [
    AttributeKind(1, "limit", "u32", 1, 1 << 24),
    AttributeKind(2, "min", "u32", 1, 1 << 20),
    AttributeKind(3, "max", "u32", 2, 1 << 22),
    AttributeKind(4, "avpkt", "u32", 1, 65536),
    AttributeKind(5, "wlog", "u8", 0, 31),
    AttributeKind(6, "burst", "u32", 1, 1 << 24),
    AttributeKind(7, "pad", "u32", 0, 0),
    AttributeKind(8, "rate64", "u64", 1, 1 << 40),
    AttributeKind(9, "max-p", "u32", 1, 1 << 31),
    AttributeKind(10, "flags", "bitfield32", 0, 255),
    AttributeKind(11, "hint", "u8", 0, 2),
    AttributeKind(12, "weight", "u32", 429497, (1 << 32) - 1),
    AttributeKind(13, "limit-us", "u32", 1, 1 << 24),
    AttributeKind(14, "min-us", "u32", 1, 1 << 22),
    AttributeKind(15, "max-us", "u32", 2, 1 << 23),
]

#: net.shred_hint.* and the parameters that are writable while a module is loaded
TEXTS = {
    "/proc/sys/net/shred_hint/mode": ("off", "tos", "dscp"),
    "/proc/sys/net/shred_hint/host": ("0", "1"),
    "/proc/sys/net/shred_hint/edge": ("0", "1"),
    "/proc/sys/net/shred_hint/police": ("0", "1", "2"),
    "/proc/sys/net/shred_hint/devices": ("", "lo", "lo idle", " lo", "lolo", "l"),
    **{
        f"/sys/module/tcp_lp/parameters/{name}": (least, most)
        for name, least, most in (
            ("delta_permille", "10", "900"), ("paper", "Y", "N"), ("mark", "Y", "N"),
        )
    },
    **{
        f"/sys/module/tcp_ledbat/parameters/{name}": (least, most)
        for name, least, most in (
            ("target_us", "1000", "100000"), ("gain_percent", "1", "100"), ("share_permille", "1", "500"),
            ("pp_target_us", "1000", "100000"), ("min_window", "0", "64"), ("round_trip", "0", "1"),
            ("paper", "Y", "N"), ("mark", "Y", "N"),
        )
    },
    "/sys/module/tcp_lbe/parameters/mark": ("Y", "N"),
    "/sys/module/tcp_lowpri/parameters/mark": ("Y", "N"),
    "/sys/module/tcp_lowpri/parameters/timeout_keep_percent": ("0", "100"),
}  # fmt: skip


class Fuzzer:
    """A stream of lines from one seed."""

    def __init__(self, seed: int):
        self.random = random.Random(f"lbe fuzz {seed}")
        self.grammar = vulture_grammar()

    # ---- values --------------------------------------------------------------------------

    def _number(self, kind: AttributeKind) -> bytes:
        size = SIZES[kind.type]
        bits = 8 * min(size, 8)
        edges = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
        if kind.least is not None:
            edges += 3 * [kind.least, kind.least + 1] + [kind.least - 1]
        if kind.most is not None:
            edges += 3 * [kind.most, kind.most - 1] + [kind.most + 1]
        if kind.least is not None and kind.most is not None and self.random.random() < 0.6:
            value = self.random.randint(kind.least, kind.most)
        else:
            value = self.random.choice([*edges, self.random.getrandbits(bits), self.random.randint(0, 20)])
        return (value & ((1 << bits) - 1)).to_bytes(size, "little")

    def _value(self, kind: AttributeKind) -> bytes:
        choose, chance = self.random.choice, self.random.random()
        if kind.name == "fd" and chance < 0.9:
            return struct.pack("=I", choose(DESCRIPTORS))
        if kind.name == "pid" and chance < 0.8:
            return struct.pack("=I", PID_MARK)
        if kind.name == "cgroup" and chance < 0.8:
            return struct.pack("=Q", CGROUP_MARK)
        if kind.name == "id" and chance < 0.8:
            return self.random.randint(0, 200).to_bytes(SIZES[kind.type], "little")
        if kind.name.endswith("port") and chance < 0.8:
            return struct.pack("=H", choose(PORTS))
        if kind.type == "bitfield32":
            value = self.random.getrandbits(5)
            return struct.pack("=II", value, choose([value, value, 31, self.random.getrandbits(32)]))
        if kind.type == "table":
            low = bytes(self.random.randint(0, 33) for _ in range(256))
            return choose([bytes(256), low, self.random.randbytes(256)])
        if kind.type in SIZES:
            return self._number(kind)
        if kind.type == "binary" and chance < 0.8:
            return choose(ADDRESSES)
        return self.random.randbytes(choose([0, 1, 3, 4, 5, 15, 16, 17, 64]))

    # ---- trees ---------------------------------------------------------------------------

    def _attribute(self, kind: AttributeKind) -> Attribute:
        if kind.nest:
            inside = self.grammar.sets[kind.nest]
            if kind.nest == "addr":
                return Attribute(kind.number, self._connection(inside), NESTED)
            some = self.random.sample(inside, self.random.choice([0, 1, 1, 2, 3, len(inside)]) % (len(inside) + 1))
            return Attribute(kind.number, [self._attribute(one) for one in some], NESTED)
        return Attribute(kind.number, self._value(kind))

    def _connection(self, inside: list[AttributeKind]) -> list[Attribute]:
        """Attributes of a connection, in most cases of an existing one."""
        made = [self._attribute(one) for one in inside]
        if self.random.random() < 0.7:
            family, client = self.random.choice([(0, 0), (1, 2)]), self.random.getrandbits(1)
            values = [
                ADDRESSES[family[0]], struct.pack("=H", PORTS[family[1] + client]),
                ADDRESSES[family[0]], struct.pack("=H", PORTS[family[1] + 1 - client]),
            ]  # fmt: skip
            made = [replace(one, payload=value) for one, value in zip(made, values)]
        return made

    def _all(self, tree: list[Attribute]) -> list[tuple[list[Attribute], int]]:
        """(list, index) of every node."""
        found = []
        for index, one in enumerate(tree):
            found.append((tree, index))
            if isinstance(one.payload, list):
                found += self._all(one.payload)
        return found

    def _mutate_tree(self, tree: list[Attribute]) -> None:
        nodes = self._all(tree)
        what = self.random.randrange(10)
        if not nodes or what == 0:
            new = Attribute(self.random.randint(0, 20), self.random.randbytes(4))
            tree.insert(self.random.randint(0, len(tree)), new)
            return
        inside, at = self.random.choice(nodes)
        one = inside[at]
        if what == 1:
            del inside[at]
        elif what == 2:
            inside.insert(at, one)
        elif what == 3:
            one.number = self.random.choice([0, 1, one.number + 1, 15, 0x3FFF, self.random.getrandbits(14)])
        elif what == 4:
            one.flags ^= self.random.choice([NESTED, NESTED, NET_ORDER])
        elif what == 5:
            one.length = self.random.choice([0, 1, 3, 4, 5, 0x7FFF, 0xFFFF, self.random.getrandbits(8)])
        elif what == 6 and isinstance(one.payload, bytes):
            cut = self.random.randint(0, len(one.payload))
            one.payload = self.random.choice([one.payload[:cut], one.payload + self.random.randbytes(cut + 1), b""])
        elif what == 7:
            other, there = self.random.choice(nodes)
            inside[at], other[there] = other[there], inside[at]
            self._untangle(tree)
        elif what == 8:
            deep: bytes | list[Attribute] = one.payload
            for _ in range(self.random.randint(1, 40)):
                deep = [Attribute(one.number, deep, NESTED)]
            one.payload = deep
        elif isinstance(one.payload, bytes):
            one.payload = self.random.randbytes(len(one.payload))

    def _untangle(self, tree: list[Attribute], above: tuple[int, ...] = ()) -> None:
        """Remove cycles: a swap may put a node below itself."""
        for one in tree:
            if isinstance(one.payload, list):
                if id(one) in above:
                    one.payload = b""
                else:
                    self._untangle(one.payload, (*above, id(one)))

    def _mutate_bytes(self, data: bytearray) -> bytearray:
        what = self.random.randrange(5)
        at = self.random.randrange(len(data))
        if what == 0:
            data[at] ^= 1 << self.random.randrange(8)
        elif what == 1:
            data[at] = self.random.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif what == 2:
            data = data[: max(at, 1)]
        elif what == 3:
            data += self.random.randbytes(self.random.choice([1, 3, 4, 40]))
        elif len(data) >= 16:
            claims = [0, 15, 16, 19, 20, len(data) - 1, len(data) + 4, 1 << 31]
            struct.pack_into("=I", data, 0, self.random.choice(claims))
        return data

    def _mutated(self, head: bytes, tree: list[Attribute], kind: int, flags: int) -> bytes:
        """The bytes of a message, of which three quarters are mutated in one or more ways."""
        tree_changes = self.random.choice([0, 0, 1, 1, 2, 4])
        for _ in range(tree_changes):
            self._mutate_tree(tree)
        if self.random.random() < 0.05:
            flags = self.random.getrandbits(12)
        body = head + b"".join(one.raw() for one in tree)
        body = body[:60000]
        data = bytearray(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        if self.random.random() < 0.2:
            for _ in range(self.random.randint(1, 3)):
                data = self._mutate_bytes(data)
            if kind in QUEUE_MESSAGES and len(data) >= 6:
                struct.pack_into("=H", data, 4, kind)  # other types might remove the device or its address
        return bytes(data)

    # ---- lines ---------------------------------------------------------------------------

    def vulture(self) -> str:
        """A message to the family."""
        command, flags, names, of = self.random.choice(self.grammar.requests)
        kinds = {one.name: one for one in self.grammar.sets[of]}
        targets = [name for name in names if name not in ("options",)]
        chosen = self.random.sample(targets, min(len(targets), self.random.choice([1, 1, 1, 1, 1, 2])))
        if "options" in names and self.random.random() < 0.5:
            chosen.append("options")
        if self.random.random() < 0.05:
            chosen.append(self.random.choice(list(kinds)))
        if self.random.random() < 0.03:
            command = self.random.getrandbits(8)
        version = 1 if self.random.random() < 0.97 else self.random.getrandbits(8)
        head = struct.pack("=BBH", command, version, 0 if self.random.random() < 0.98 else self.random.getrandbits(16))
        return "v " + self._mutated(head, [self._attribute(kinds[name]) for name in chosen], FAMILY_MARK, flags).hex()

    def _shred(self) -> list[Attribute]:
        """Attributes of a shred queue, in 60 % of cases with consistent values, so that the queue can be made."""
        values = {one.name: self._attribute(one) for one in SHRED}
        if self.random.random() < 0.6:
            least = self.random.choice([1, 100, 1514, 15000, 1 << 20])
            most = least * self.random.choice([2, 3, 100]) + 1
            for name, value in (("limit", most * self.random.choice([1, 4])), ("min", least), ("max", most)):
                values[name].payload = struct.pack("=I", min(value, (1 << 32) - 1))
            values["burst"].payload = struct.pack("=I", self.random.choice([least, 1 << 24]))
            values["avpkt"].payload = struct.pack("=I", self.random.choice([1, 1514, 65536]))
            for name in ("wlog", "pad", "limit-us", "min-us", "max-us"):
                values.pop(name)
        chosen = list(values)
        if self.random.random() < 0.4:
            chosen = self.random.sample(chosen, self.random.randint(0, len(chosen)))
        return [values[name] for name in chosen]

    def shred(self) -> str:
        """A message about queues."""
        kind = self.random.choice([36, 36, 36, 36, 36, 37, 38, 40, 41, 42])
        device = self.random.choice([1, 1, 2, 2, 2, 0, 99])
        handle = self.random.choice([0, 0x10000, 0x10000, 0x20000, 0xFFFFFFFF, self.random.getrandbits(32)])
        parent = self.random.choice([0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x10001, 0x10000, 0, 0x20001])
        flags = REQUEST | ACK
        if kind == 36:
            flags |= self.random.choice([0, 0, CREATE, CREATE | EXCL, CREATE | REPLACE, REPLACE])
        elif kind in (38, 42):
            flags = REQUEST | self.random.choice([ACK, DUMP])
        name = self.random.choice([b"shred\0"] * 8 + [b"bfifo\0", b"pfifo\0", b"red\0", b"shred", b"shre\0", b""])
        tree = [Attribute(1, name)]
        if self.random.random() < 0.95:
            inside = self._shred() if name.startswith(b"shred") else [Attribute(1, struct.pack("=I", 1000))]
            payload: bytes | list[Attribute] = inside
            if name in (b"bfifo\0", b"pfifo\0"):
                payload = struct.pack("=I", self.random.choice([0, 1, 1000, 100000]))
            tree.append(Attribute(2, payload, self.random.choice([0, 0, NESTED])))
        head = struct.pack("=BxHiIII", 0, 0, device, handle, parent, self.random.choice([0, 0, 0, 1 << 16]))
        return "t " + self._mutated(head, tree, kind, flags).hex()

    def _string(self, seeds: tuple[str, ...]) -> bytes:
        what = self.random.randrange(9)
        text = self.random.choice(seeds).encode()
        if what <= 1:
            return text + self.random.choice([b"", b"\n", b" ", b"\0"])
        if what == 2:
            edges = [1 << bits for bits in (0, 8, 16, 31, 32, 64)]
            number = self.random.choice([-1, 0, *edges, *[one - 1 for one in edges]])
            return str(number).encode() + self.random.choice([b"", b"\n"])
        if what == 3:
            return self.random.randbytes(self.random.choice([0, 1, 2, 7, 8, 127, 128, 129, 1000]))
        if what == 4:
            return text * self.random.choice([2, 40, 1000])
        if what == 5:
            return text + b"\n" + text
        if what == 6:
            return self.random.choice((b"0x10|010|+1|1e3| 1|1 2|%n%s%p|\xff\xfe|on|y").split(b"|"))
        if what == 7:
            return text[: self.random.randint(0, len(text))]
        letters = (self.random.choice(text or b"x") for _ in range(len(text) + 1))
        return bytes(one ^ self.random.choice([0, 1, 0x20, 0x80]) for one in letters)

    def text(self) -> str:
        """A write to a sysctl or a parameter: path, offset, content."""
        path = self.random.choice(list(TEXTS))
        offset = self.random.choice([0] * 12 + [1, 4096])
        return f"s {path} {offset} {self._string(TEXTS[path])[:4096].hex() or '-'}"

    def load(self) -> str:
        """A module to load, with parameters."""
        module = self.random.choice(["tcp_lp", "tcp_lowpri", "tcp_lowpri", "tcp_ledbat", "tcp_lbe"])
        if module == "tcp_lowpri":
            names = ["background", "lowpri1", "lowpri2", "lowpri3.7", "lowpri3.70", "lowpri9", "cubic", "", "a" * 20]
            value = ",".join(self.random.choice(names) for _ in range(self.random.choice([0, 1, 2, 3, 30]))).encode()
            if self.random.random() < 0.3:
                value = self._string(("lowpri3.7", "background,lowpri1"))
            words = b"variants=" + value
        else:
            path = self.random.choice([path for path in TEXTS if f"/{module}/" in path])
            words = path.rsplit("/", 1)[1].encode() + b"=" + self._string(TEXTS[path])
        words = words.replace(b"\0", b"")[:1000]
        return f"l {module} {words.hex() or '-'}"

    def lines(self, number: int) -> Iterator[str]:
        """``number`` lines: mostly messages to the family and about queues, a tenth writes, few loads."""
        makers = [self.vulture] * 50 + [self.shred] * 40 + [self.text] * 9
        for index in range(number):
            yield self.load() if index % 400 == 399 else self.random.choice(makers)()


def stored() -> list[str]:
    """Lines of the corpus."""
    lines: list[str] = []
    for path in sorted(CORPUS.glob("*.txt")):
        lines += [line.split("#")[0].strip() for line in path.read_text(encoding="ascii").splitlines()]
    return [line for line in lines if line]


NAMES = {"v": "vulture", "t": "shred", "s": "settings", "l": "load"}


def make_corpus(signatures: dict[str, str], folder: Path = CORPUS) -> dict[str, int]:
    """Write the corpus: a line for each answer. Returns the number of lines by file.

    signatures: answer -> line, from guest/fuzz.py, which sends the stored lines first.
    """
    folder.mkdir(exist_ok=True)
    written = {}
    for letter, name in NAMES.items():
        found = sorted((answer, line) for answer, line in signatures.items() if line.startswith(f"{letter} "))
        text = "".join(f"{line} # {answer}\n" for answer, line in found)
        (folder / f"{name}.txt").write_text(f"# SPDX-License-Identifier: GPL-2.0\n{text}", encoding="ascii")
        written[name] = len(found)
    return written
