#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write vulture/_spec.py from the netlink specification: make_spec.py [--check]. `make ynl` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent
YAML = FOLDER.parent.parent / "Documentation" / "vulture.yaml"
TARGET = FOLDER / "vulture" / "_spec.py"
HEAD = '''# SPDX-License-Identifier: LGPL-2.1-or-later OR GPL-2.0
"""The netlink family as Documentation/vulture.yaml has it; written by make_spec.py."""

from enum import IntEnum

'''


def class_of(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def docstring(doc: str) -> str:
    lines = [f"    {line}" for line in doc.splitlines()]
    return '    """' + "\n".join(lines).lstrip() + ('\n    """' if len(lines) > 1 else '"""') + "\n\n"


def text() -> str:
    spec = yaml.safe_load(YAML.read_text(encoding="utf-8"))
    parts = [HEAD, f'FAMILY = "{spec["name"]}"\nGROUP = "{spec["mcast-groups"]["list"][0]["name"]}"\n']
    for one in spec["definitions"]:
        lines = [f"    {entry.upper().replace('-', '_')} = {number}" for number, entry in enumerate(one["entries"])]
        doc = docstring(one["doc"]) if "doc" in one else ""
        parts.append("\n\nclass " + class_of(one["name"]) + "(IntEnum):\n" + doc + "\n".join(lines) + "\n")
    parts.append("\n\n#: command -> number\nCOMMANDS = {\n")
    parts += [f'    "{op["name"]}": {number},\n' for number, op in enumerate(spec["operations"]["list"], 1)]
    parts.append("}\n\n#: attribute set -> its attributes in order, from 1: (name, type, set nested in it)\n")
    parts.append("SETS: dict[str, list[tuple[str, str, str]]] = {\n")
    for one in spec["attribute-sets"]:
        parts.append(f'    "{one["name"]}": [\n')
        for attribute in one["attributes"]:
            nested = attribute.get("nested-attributes", "")
            parts.append(f'        ("{attribute["name"]}", "{attribute["type"]}", "{nested}"),\n')
        parts.append("    ],\n")
    parts.append("}\n")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    if not arguments:
        TARGET.write_text(text(), encoding="utf-8")
        return 0
    same = TARGET.read_text(encoding="utf-8") == text()
    if not same:
        print(f"{TARGET.name} is not what make_spec.py writes: run it")
    return not same


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
