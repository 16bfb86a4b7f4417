#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write what is made from Documentation/vulture.yaml: `make ynl`, or scripts/ynl.py [--check].

    Documentation/vulture.yaml --+-> the kernel's generator   policies, operations and family of the module,
                                 |   (tools/net/ynl)          numbers for programs, a parser for libynl
                                 +-> this file                lists of options, statistics and names, in C
                                 +-> tools/python/make_spec.py    the tables of the Python binding

The generator is that of the kernel source which the testbed caches. The lists of this file have what
the generator has no output for: defaults, units and ranges of options as macros that the module and
the library expand. --check writes nothing, and names each file that differs.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402

from testbed.base.errors import LbeError  # noqa: E402
from testbed.kernels.mirror import ensure_part  # noqa: E402

SERIES = "6.12"  # whose generator it is
SPEC = "Documentation/vulture.yaml"
AGAIN = "make ynl"
#: file -> arguments of the kernel's generator
GENERATED = {
    "vulture/uapi/vulture_gen.h": ("--mode", "uapi", "--header"),
    "vulture/netlink_gen.h": ("--mode", "kernel", "--header"),
    "vulture/netlink_gen.c": ("--mode", "kernel", "--source"),
    "tools/ynl/vulture-user.h": ("--mode", "user", "--header"),
    "tools/ynl/vulture-user.c": ("--mode", "user", "--source"),
}
LISTS = "vulture/lists_gen.h"
BINDING = "tools/python/vulture/_spec.py"
FILES = (*GENERATED, LISTS, BINDING)
#: by the end of an option's name
UNITS = {"-us": "us", "-s": "s", "-kbit": "kbit/s", "-permille": "1/1000", "-segs": "segments"}
HEAD = f"""/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lists of {SPEC}, as macros for initializers. Do not edit: written by
 * scripts/ynl.py (say {AGAIN}), since the kernel's generator has no output for them.
 *
 *	VULTURE_<CONTROLLER>_DEFAULTS	defaults of a controller's options, by attribute
 *	VULTURE_<CONTROLLER>_<OPTION>_MAX	the greatest value
 *	VULTURE_OPTION_ROWS		all options, from 1: name, nest, attribute, least, greatest
 *					and default value, unit
 *	VULTURE_<CONTROLLER>_STAT_NAMES	names of a controller's statistics, by attribute
 *	VULTURE_<ENUM>_NAMES		names of an enum's values
 *	VULTURE_SETS			the attribute sets of requests, from 1
 *	VULTURE_SET_ROWS		their attributes, by set and number: name, set nested in it
 */
#ifndef VULTURE_LISTS_GEN_H
#define VULTURE_LISTS_GEN_H
"""


class Refused(Exception):
    """Nothing can be written or compared; the text says why."""


def upper(name: str) -> str:
    return name.upper().replace("-", "_")


def macro(head: str, rows: list[str]) -> str:
    return "\n#define " + " \\\n\t".join([head, *rows]) + "\n"


@dataclass(frozen=True)
class Option:
    """An option of a controller; of all of them, if the controller has no name."""

    controller: str
    name: str
    least: int
    most: int
    default: int

    @property
    def attribute(self) -> str:
        return "_".join(filter(None, ("VULTURE", self.controller, "O", upper(self.name))))

    def row(self) -> str:
        """As struct lv_option of the library has it."""
        unit = next((unit for end, unit in UNITS.items() if self.name.endswith(end)), "-")
        nest = f"VULTURE_O_{self.controller}" if self.controller else "0"
        return f'{{ "{self.name}", {nest}, {self.attribute}, {self.least}, {self.most}, {self.default}, "{unit}" }},'


def option(spec: dict[str, Any], one: dict[str, Any], controller: str) -> Option:
    """An attribute as an option. Its doc ends with its default, for which the kernel's format has no key."""
    enums = {each["name"]: each["entries"] for each in spec["definitions"]}
    entries = enums.get(one.get("enum"), [])
    checks = one.get("checks", {})
    least, most = checks.get("min", 0), checks.get("max", len(entries) - 1)
    default = re.search(r"; default (\w+)$", " ".join(one.get("doc", "").split()))
    if not default:
        raise Refused(f"{SPEC}: the doc of option {one['name']} does not end with '; default VALUE'")
    if default[1] not in entries and not default[1].isdigit():
        names = f"one of {', '.join(entries)}" if entries else "a name"
        raise Refused(f"{SPEC}: default '{default[1]}' of option {one['name']} is neither a number nor {names}")
    value = entries.index(default[1]) if default[1] in entries else int(default[1])
    if not least <= value <= most:
        raise Refused(f"{SPEC}: default {value} of option {one['name']} is not within {least} to {most}")
    return Option(controller, one["name"], least, most, value)


def of_requests(spec: dict[str, Any]) -> list[str]:
    """The attribute sets that requests have, in the order of the spec."""
    sets = {one["name"]: one["attributes"] for one in spec["attribute-sets"]}
    found: set[str] = set()
    wanted = {
        (op["attribute-set"], name)
        for op in spec["operations"]["list"]
        for name in op.get("do", {}).get("request", {}).get("attributes", [])
    }
    while wanted:
        inside, name = wanted.pop()
        nested = next(one for one in sets[inside] if one["name"] == name).get("nested-attributes")
        if nested and nested not in found:
            # an unknown set is for the generator to refuse
            wanted |= {(nested, one["name"]) for one in sets.get(nested, ())}
        found |= {inside, nested} - {None}
    return [name for name in sets if name in found]


def set_rows(spec: dict[str, Any]) -> list[str]:
    """The attributes of requests, by set and number."""
    requests = of_requests(spec)
    rows = []
    for one in (one for one in spec["attribute-sets"] if one["name"] in requests):
        rows.append(f"[VULTURE_SET_{upper(one['name'])}] = {{")
        for each in one["attributes"]:
            nested = each.get("nested-attributes")
            number = upper(one["name-prefix"] + each["name"])
            if each["type"] != "pad":
                inside = f"VULTURE_SET_{upper(nested)}" if nested in requests else "0"
                rows.append(f'\t[{number}] = {{ "{each["name"]}", {inside} }},')
        rows.append("},")
    return rows


def lists(text: str) -> str:
    """The header with the lists."""
    spec = yaml.safe_load(text)
    parts, options = [HEAD], []
    for one in spec["attribute-sets"]:
        rows = [each for each in one["attributes"] if each["type"] not in ("pad", "nest")]
        controller, _, kind = upper(one["name"]).rpartition("_")
        if kind == "OPTIONS":
            found = [option(spec, each, controller) for each in rows]
            options += found
            prefix = f"VULTURE_{controller}_" if controller else "VULTURE_"
            parts.append("\n")
            if controller:
                parts += [f"#define {prefix}{upper(each.name)}_MAX {each.most}\n" for each in found]
                parts.append(macro(f"{prefix}DEFAULTS", [f"[{each.attribute}] = {each.default}," for each in found]))
            else:
                parts += [f"#define {prefix}{upper(each.name)}_DEFAULT {each.default}\n" for each in found]
        elif kind == "STATS":
            names = [(upper(each["name"]), each["name"].replace("-", "_")) for each in rows]
            prefix = f"VULTURE_{controller}_S_"
            parts.append(
                macro(f"VULTURE_{controller}_STAT_NAMES", [f'[{prefix}{stat}] = "{name}",' for stat, name in names])
            )
    for one in spec["definitions"]:
        parts.append(macro(f"VULTURE_{upper(one['name'])}_NAMES", [", ".join(f'"{each}"' for each in one["entries"])]))
    first, *rest = (each.row() for each in options)
    parts.append(macro("VULTURE_OPTION_ROWS", [f"[1] = {first}", *rest]))
    parts.append(macro("VULTURE_SETS", [f"VULTURE_SET_{upper(name)}," for name in of_requests(spec)]))
    longest = max(len(one["attributes"]) for one in spec["attribute-sets"] if one["name"] in of_requests(spec))
    parts.append(f"\n/* the greatest number of an attribute there */\n#define VULTURE_SETS_MAX {longest}\n")
    parts.append(macro("VULTURE_SET_ROWS", set_rows(spec)))
    return "".join(parts) + "\n#endif /* VULTURE_LISTS_GEN_H */\n"


def by_the_generator(text: str, folder: Path) -> dict[str, str]:
    """What the kernel's generator makes of the spec, for each file; it looks for a kernel's tree around the spec."""
    place = folder / SPEC
    place.parent.mkdir(parents=True, exist_ok=True)
    (folder / "MAINTAINERS").touch()
    place.write_text(text, encoding="utf-8")
    try:
        shutil.copy(ensure_part(SERIES, "Documentation/netlink/genetlink.yaml"), folder)
        generator = ensure_part(SERIES, "tools/net/ynl") / "ynl-gen-c.py"
    except LbeError as error:
        raise Refused(str(error)) from error
    made = {}
    for name, mode in GENERATED.items():
        out = folder / "out" / Path(name).name  # a source includes the header of its own name
        out.parent.mkdir(exist_ok=True)
        # Debian's interpreter, for python3-jsonschema
        words = ["/usr/bin/python3", str(generator), *mode, "--spec", str(place), "-o", str(out)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise Refused(f"{SPEC}: the kernel's generator refuses it: {(done.stderr.splitlines() or ['?'])[-1]}")
        made[name] = out.read_text(encoding="utf-8")
    return made


def binding(root: Path) -> str:
    """The tables of the Python binding."""
    found = importlib.util.spec_from_file_location("make_spec", root / "tools/python/make_spec.py")
    if not found or not found.loader:
        raise Refused("tools/python/make_spec.py is not there")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return str(module.text())


def everything(root: Path) -> dict[str, str]:
    """File -> its content, for all files that are made from the spec."""
    text = (root / SPEC).read_text(encoding="utf-8")
    try:
        yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Refused(f"{SPEC}: is no YAML: {' '.join(str(error).split())}") from error
    ours = {LISTS: lists(text), BINDING: binding(root)}
    with tempfile.TemporaryDirectory(prefix="lbe-ynl-") as folder:
        return by_the_generator(text, Path(folder)) | ours


def differing(root: Path) -> list[str]:
    """A line for each file that is not what the spec makes, byte for byte."""
    return [
        f"{name}: is not what {SPEC} makes: say {AGAIN}, and commit what it writes"
        for name, content in everything(root).items()
        if not (root / name).is_file() or (root / name).read_bytes() != content.encode()
    ]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if arguments:
            lines = differing(ROOT)  # on standard output, as lint reads it
            print("".join(f"{line}\n" for line in lines), end="")
            return 1 if lines else 0
        for name, content in everything(ROOT).items():
            if not (ROOT / name).is_file() or (ROOT / name).read_bytes() != content.encode():
                (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
                (ROOT / name).write_text(content, encoding="utf-8")
                print(f"wrote {name}")
    except Refused as reason:
        print(f"ynl: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
