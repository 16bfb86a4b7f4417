# SPDX-License-Identifier: GPL-2.0
"""Strict reading of TOML tables into dataclasses. The annotations of the fields give types, ranges and choices:

    rate_mbit: Annotated[float, Within(0.01, 10000)] = 10.0
    framing: Annotated[str, OneOf("ip", "link", "ethernet")] = "ethernet"

An error message names the file, the key, the refused value and the allowed values.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from ..base.errors import LbeError

T = typing.TypeVar("T")


class ExperimentError(LbeError):
    """An experiment file or an override is wrong; the text says where and what is allowed."""

    exit_status = 2


@dataclass(frozen=True)
class Within:
    """The range of a field's number, both ends allowed."""

    low: float
    high: float

    def check(self, value: float, where: str) -> None:
        """ExperimentError for a number outside the range; ``where``: its file and key, for the message."""
        if not self.low <= value <= self.high:
            raise ExperimentError(f"{where} = {value:.10g}: allowed are {self.low:.10g} to {self.high:.10g}")


class OneOf:
    """The choices of a field."""

    def __init__(self, *choices: str | int):
        self.choices = choices

    def check(self, value: str | int, where: str) -> None:
        """ExperimentError for a value that is none of the choices."""
        if value not in self.choices:
            raise ExperimentError(f"{where} = {value!r}: allowed are {', '.join(map(str, self.choices))}")


def _type_name(kind: typing.Any) -> str:
    kind = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    return getattr(kind, "__name__", str(kind)).replace("typing.", "")


def _convert(kind: typing.Any, value: typing.Any, where: str) -> typing.Any:
    """Convert ``value`` from TOML to ``kind``; ExperimentError names the place."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return value
    if origin is typing.Annotated:
        value = _convert(args[0], value, where)
        args[1].check(value, where)
        return value
    if origin in (typing.Union, types.UnionType):
        # a table goes to the option that is a dataclass or a dict, any other value to the option that is neither
        for option in args:
            takes_table = dataclasses.is_dataclass(option) or typing.get_origin(option) is dict
            if option is not type(None) and takes_table == isinstance(value, dict):
                return _convert(option, value, where)
        raise ExperimentError(f"{where} = {value!r}: expected {' or '.join(map(_type_name, args))}")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ExperimentError(f"{where} = {value!r}: expected a list")
        if args[-1] is not Ellipsis and len(value) != len(args):
            raise ExperimentError(f"{where}: expected {len(args)} values, got {len(value)}")
        inner = itertools.repeat(args[0]) if args[-1] is Ellipsis else args
        return tuple(_convert(one, item, f"{where}[{index}]") for index, (one, item) in enumerate(zip(inner, value)))
    if origin is list:
        return [_convert(args[0], item, f"{where}[{index}]") for index, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise ExperimentError(f"{where} = {value!r}: expected a table")
        return {key: _convert(args[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return load_table(typing.cast("type[typing.Any]", kind), value, where)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise ExperimentError(f"{where} = {value!r}: expected {_type_name(kind)}")


#: cached: evaluating the hints each time took half of the time of planning a campaign
@functools.cache
def hints(kind: typing.Hashable) -> dict[str, typing.Any]:
    """The types of a dataclass's fields, with their ranges and choices."""
    return typing.get_type_hints(kind, include_extras=True)


def load_table(kind: type[T], table: typing.Any, where: str) -> T:
    """A dataclass from a TOML table; unknown and missing keys are errors that name the keys that exist."""
    if not isinstance(table, dict):
        raise ExperimentError(f"{where} = {table!r}: expected a table")
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # T is a dataclass, for which typing has no word
    names = [field.name for field in fields]
    for key in table:
        if key not in names:
            near = get_close_matches(key, names, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ExperimentError(f"{where}.{key}: unknown key{hint}; allowed are {', '.join(names)}")
    for field in fields:
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in table:
            raise ExperimentError(f"{where}: {field.name} is missing")
    types_of = hints(kind)  # type: ignore[arg-type]  # every class is hashable
    return kind(**{key: _convert(types_of[key], value, f"{where}.{key}") for key, value in table.items()})


def load_words(kind: type[T], words: Iterable[str], where: str) -> T:
    """A dataclass of numbers from words such as key=2.5."""
    table: dict[str, float] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            names = ", ".join(hints(kind))  # type: ignore[arg-type]
            raise ExperimentError(f"{where}: {word!r}: expected key=value with a key of {names}")
        try:
            table[key] = float(text)
        except ValueError:
            raise ExperimentError(f"{where}: {key} = {text!r} is no number") from None
    return load_table(kind, table, where)
