# SPDX-License-Identifier: GPL-2.0
"""The lives: experiments of long connections (testbed/robustness/lives), which `testbed soak` runs.

They have the format and the checks of the other experiments, but take too long for the report, so that
experiment.names() does not list them.
"""

from __future__ import annotations

from pathlib import Path

from ..base.places import TESTBED
from .experiment import names

FOLDER = TESTBED / "robustness" / "lives"


def files() -> dict[str, Path]:
    """Files of all lives, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def judged() -> set[str]:
    """Names of all that is judged by its checks: the report's experiments and the lives."""
    return {*names(), *files()}
