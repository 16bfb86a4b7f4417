# SPDX-License-Identifier: GPL-2.0
"""The Python client without a kernel: its tables are the specification's, its types hold, bad input is refused.

What it does against the kernel: vulture/tests/guest_client.py, by vulture/tests/test_control.py.
"""

from __future__ import annotations

import importlib
import re
import struct
import subprocess
import sys

import pytest

from testbed.base.places import REPO

pytestmark = pytest.mark.host

FOLDER = REPO / "tools" / "python"


@pytest.fixture(scope="module")
def client():
    """The package, read as a program reads it."""
    sys.path.insert(0, str(FOLDER))
    held = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "vulture"}
    try:
        yield importlib.import_module("vulture")
    finally:
        sys.path.remove(str(FOLDER))
        for name in [name for name in sys.modules if name.split(".")[0] == "vulture"]:
            del sys.modules[name]
        sys.modules.update(held)


def test_the_tables_are_the_specifications():
    words = [sys.executable, FOLDER / "make_spec.py", "--check"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold():
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", FOLDER / "vulture"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_numbers_are_the_headers(client):
    """Attribute numbers come from the order in the specification; the C header has the same."""
    header = (REPO / "vulture" / "uapi" / "vulture.h").read_text(encoding="utf-8")
    spec = sys.modules["vulture._spec"]
    for table, prefix in (("main", "A"), ("flow", "F"), ("rule", "R"), ("options", "O"), ("addr", "ADDR")):
        names = re.findall(rf"^\tVULTURE_{prefix}_(\w+),", header, re.MULTILINE)
        assert [name.lower().replace("_", "-") for name in names if name != "UNSPEC"] == \
            [name for name, _, _ in spec.SETS[table]], table
    commands = re.findall(r"^\tVULTURE_CMD_(\w+),", header, re.MULTILINE)
    assert [name.lower().replace("_", "-") for name in commands[1:]] == list(spec.COMMANDS)


def test_what_is_encoded_is_decoded(client):
    netlink = sys.modules["vulture._netlink"]
    flow = {"addr": {"local": b"\x7f\0\0\1", "local-port": 80}, "rtt-us": 7, "paper": {"last-sum-us": 5}}
    said = {"id": 1 << 40, "flow": flow, "version": "0.1-x", "options": {"controller": 2}}
    assert netlink.decode("main", netlink.encode("main", said)) == said


def test_a_newer_kernel_may_say_more(client):
    netlink = sys.modules["vulture._netlink"]
    more = struct.pack("=HHI", 8, 999, 1) + netlink.encode("main", {"count": 3}) + struct.pack("=HH", 400, 1)
    assert netlink.decode("main", more) == {"count": 3}


@pytest.mark.parametrize("options", [{"altitude": 3}, {"controller": "best"}, {"psi-us": 1}])
def test_an_unknown_option_is_refused(client, options: dict):
    with pytest.raises(TypeError, match="vulture has no"):
        client._options(options)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_a_number_that_does_not_fit_is_refused(client, value: int):
    with pytest.raises(OverflowError):
        sys.modules["vulture._netlink"].encode("main", client._options({"psi_us": value}))
