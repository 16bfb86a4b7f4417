# SPDX-License-Identifier: GPL-2.0
"""Source text as hashes that a comment, a moved import or a line break does not change.

What decides a result is the program, not what is said of it. Source is hashed rather than objects: an object also
holds the compiler's choices, line numbers (WARN_ON) and the version's name, so that it differs from machine to
machine and from commit to commit although nothing that runs has changed. And source can be hashed without a kernel.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

#: strings and characters, which may hold what looks like a comment; or a comment
_C_PART = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
_SHELL_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
C_SUFFIXES = (".c", ".h", ".S", ".inc")


def c_program(text: str) -> str:
    """C without comments, blank lines and indentation. Lines stay: the preprocessor knows them."""
    bare = _C_PART.sub(lambda part: " " if part[0].startswith("/") else part[0], text)
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in bare.splitlines())
    return "\n".join(line for line in lines if line)


def python_program(text: str) -> str:
    """Python without comments, docstrings and imports."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body = body[1:]
            node.body = [part for part in body if not isinstance(part, ast.Import | ast.ImportFrom)]
    return ast.dump(tree)


def program(path: Path) -> str:
    """What of a source file decides what it does, by its suffix; scripts and makefiles without their comment lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in C_SUFFIXES:
        return c_program(text)
    if path.suffix == ".py":
        return python_program(text)
    return "\n".join(line for line in _SHELL_COMMENT.sub("", text).splitlines() if line.strip())


def hash_of_programs(paths: Iterable[Path]) -> str:
    """One hash of several sources, whatever folder they are in."""
    state = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        text = program(path).encode()
        state.update(f"{path.name}\0{len(text)}\0".encode() + text)
    return state.hexdigest()
