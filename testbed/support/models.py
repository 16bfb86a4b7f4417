# SPDX-License-Identifier: GPL-2.0
"""What the closed loops of our laws share: a law with a fault in it, and a case from the command line."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any


def mutated(name: str, text: str, mutations: dict[str, str] | None) -> str:
    """A source with faults.

    name: of the source, for the error.
    mutations: text of it -> what is to stand there instead.
    Raises ValueError if one of them is not there exactly once.
    """
    for old, new in (mutations or {}).items():
        if text.count(old) != 1:
            raise ValueError(f"{name} has {old!r} {text.count(old)} times, not once")
        text = text.replace(old, new)
    return text


def asked(case: type, words: list[str]) -> dict[str, Any]:
    """Fields of a dataclass, each with a default, from key=value words. Exits with a message at any other word."""
    kinds: dict[str, Any] = {one.name: type(one.default) for one in dataclasses.fields(case)}
    fields: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            fields[key] = kinds[key](value)
        except (KeyError, ValueError):
            sys.exit(f"{word}: give key=value; keys: {', '.join(kinds)}")
    return fields
