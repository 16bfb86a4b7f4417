# SPDX-License-Identifier: GPL-2.0
"""The keys of backends: a comment changes none of them, a statement changes each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.backends.backend import Backend
from testbed.backends.distro import Image, Installed
from testbed.backends.netns import Host
from testbed.backends.ns2.machine import Ns2
from testbed.backends.ns3.machine import Ns3
from testbed.backends.qemu import Qemu


def qemu() -> Qemu:
    """A backend whose image and installation are made up: a key needs their names only."""
    made = Qemu()
    nowhere = Path("made up")
    made.image, made.installed = Image("6.12", nowhere, "made up"), Installed(nowhere, "made up")
    return made


BACKENDS: dict[str, Callable[[], Backend]] = {"qemu": qemu, "host": Host, "ns2": Ns2, "ns3": Ns3}


def known(backend: Backend) -> tuple[str, ...]:
    """Return what identifies runs and documents: the key, and for simulators also what their documents record."""
    return backend.key(), *(backend.facts().values() if backend.name in ("ns2", "ns3") else ())


def with_line(monkeypatch: pytest.MonkeyPatch, suffix: str, line: str) -> None:
    """Make all files with this suffix look as if they had one more line."""
    text, data = Path.read_text, Path.read_bytes

    def more(path: Path) -> str:
        return f"\n{line}\n" if path.suffix == suffix else ""

    monkeypatch.setattr(Path, "read_text", lambda path, *a, **k: text(path, *a, **k) + more(path))
    monkeypatch.setattr(Path, "read_bytes", lambda path: data(path) + more(path).encode())


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("qemu", ".py"),
        ("qemu", ".sh"),
        ("host", ".py"),
        ("host", ".sh"),
        ("ns2", ".py"),
        ("ns2", ".tcl"),
        ("ns3", ".py"),
        ("ns3", ".cc"),
    ],
)
def test_a_comment_is_in_no_key_and_a_statement_is(name: str, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = BACKENDS[name]()
    before = known(backend)
    with_line(monkeypatch, suffix, "// one more comment" if suffix == ".cc" else "# one more comment")
    assert known(backend) == before
    monkeypatch.undo()
    with_line(monkeypatch, suffix, "one_more = 1")
    assert known(backend) != before
