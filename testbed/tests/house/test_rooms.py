# SPDX-License-Identifier: GPL-2.0
"""The testbed's rooms (Documentation/design.md): which may import from which; and that imports form no cycle."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

from testbed.base.places import REPO, TESTBED

#: each room may import from itself and from those listed before it
ROOMS = (
    "base", "spec", "kernels", "backends", "measure", "results", "run", "backends/ns2", "backends/ns3", "judge",
    "present", "campaign", "robustness", "bench", "foreign", "proof", "support", "commands",
)  # fmt: skip


def files() -> Iterator[Path]:
    """Yield the testbed's modules, without tests and without programs that run inside a guest."""
    for path in sorted(TESTBED.rglob("*.py")):
        inside = path.relative_to(TESTBED).parts
        if inside[0] != "tests" and "guest" not in inside and "__pycache__" not in inside:
            yield path


def room_of(parts: tuple[str, ...]) -> str:
    """Return the room of a path or a dotted name under testbed/.

    backends/ns2 and backends/ns3 are rooms of their own: unlike the other backends they read jobs and write results
    themselves.
    """
    return "/".join(parts[:2]) if "/".join(parts[:2]) in ROOMS else parts[0]


def imports(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the dotted name, in parts, of everything that a module imports, also inside functions."""
    package = list(path.relative_to(REPO).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                name = [*target, alias.name]
                yield tuple(name if (REPO / Path(*name)).with_suffix(".py").is_file() else target)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))


def test_every_folder_is_a_room() -> None:
    folders = {room_of(path.parent.relative_to(TESTBED).parts) for path in files() if path.parent != TESTBED}
    assert folders == set(ROOMS)


def test_a_room_imports_from_the_rooms_before_it_alone() -> None:
    wrong = []
    for path in files():
        if path.parent == TESTBED:
            continue
        room = room_of(path.relative_to(TESTBED).parts)
        for target in imports(path):
            there = room_of(target[1:]) if target[0] == "testbed" and len(target) > 1 else room
            if there in ROOMS and ROOMS.index(there) > ROOMS.index(room):
                wrong.append(f"{path.relative_to(REPO)} imports {'.'.join(target)}")
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_from_a_test_or_from_a_product_s_folder() -> None:
    wrong = [
        f"{path.relative_to(REPO)} imports {'.'.join(target)}"
        for path in files()
        for target in imports(path)
        if "tests" in target or (REPO / target[0] / "Kbuild").is_file()
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_goes_round() -> None:
    graph = {
        ".".join(path.relative_to(REPO).with_suffix("").parts): {".".join(target) for target in imports(path)}
        for path in files()
        if path.name != "__init__.py"
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(f"imports go round: {' -> '.join(error.args[1])}") from error


def test_no_module_has_the_name_of_a_folder_beside_it() -> None:
    """An import would be ambiguous to the reader."""
    assert not [path for path in files() if path.with_suffix("").is_dir()]


def defined_twice(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the names of classes that stand more than once, with the files. texts: file name -> its source."""
    found: dict[str, list[str]] = {}
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name)
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_two_classes_have_one_name() -> None:
    """The name of a class in an import, a type or a log shows which class it is."""
    assert not defined_twice({str(path.relative_to(REPO)): path.read_text(encoding="utf-8") for path in files()})


def test_a_class_that_stands_twice_is_found() -> None:
    texts = {"a.py": "class One: pass", "b.py": "def f():\n    class One: pass\nclass Two: pass"}
    assert defined_twice(texts) == {"One": ["a.py", "b.py"]}
