# SPDX-License-Identifier: GPL-2.0
"""Shared code of the closed-loop models of the algorithms: source code with faults, and cases from the command line."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any


def mutated(name: str, text: str, mutations: dict[str, str] | None) -> str:
    """A source with faults.

    name: name of the source, for the error.
    mutations: text in the source -> its replacement.
    Raises ValueError if one of the texts does not occur exactly once.
    """
    for old, new in (mutations or {}).items():
        if text.count(old) != 1:
            raise ValueError(f"{name} has {old!r} {text.count(old)} times, not once")
        text = text.replace(old, new)
    return text


def asked(case: type, words: list[str]) -> dict[str, Any]:
    """Fields of a dataclass with defaults, from key=value words. Exits with a message for any other word."""
    kinds: dict[str, Any] = {one.name: type(one.default) for one in dataclasses.fields(case)}
    fields: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            fields[key] = kinds[key](value)
        except (KeyError, ValueError):
            sys.exit(f"{word}: give key=value; keys: {', '.join(kinds)}")
    return fields
