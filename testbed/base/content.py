# SPDX-License-Identifier: GPL-2.0
"""Hashes of source code that do not depend on comments, docstrings, imports and blank lines.

How Python is laid out does not count at all. Of C and of scripts, a line that is divided in two does count: the
preprocessor and the shell need line breaks, so these stay in what is hashed.

Results depend on the program, not on its comments. Sources are hashed rather than objects: an object also depends on
the compiler, on line numbers (WARN_ON) and on the version string, so it differs between machines and commits although
the program is the same. Also, sources can be hashed without a kernel.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

#: a string or character, which may contain what looks like a comment, or a comment
_C_PART = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
_SHELL_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
C_SUFFIXES = (".c", ".cc", ".h", ".S", ".inc")


def c_program(text: str) -> str:
    """C without comments, blank lines and indentation. Line breaks remain, since the preprocessor needs them."""
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
    """The program in a source file, depending on its suffix; scripts and makefiles without comment lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in C_SUFFIXES:
        return c_program(text)
    if path.suffix == ".py":
        return python_program(text)
    return "\n".join(line for line in _SHELL_COMMENT.sub("", text).splitlines() if line.strip())


def hash_of_programs(paths: Iterable[Path]) -> str:
    """One hash of several sources, independent of their folders."""
    state = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        text = program(path).encode()
        state.update(f"{path.name}\0{len(text)}\0".encode() + text)
    return state.hexdigest()
