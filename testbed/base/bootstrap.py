# SPDX-License-Identifier: GPL-2.0
"""The project's own Python: `python3 -m testbed` works with any Python that can start.

Importing this from a Python outside the environment of scripts/venv makes that environment
where it is missing and goes on in it, with the same arguments. Only the standard library,
and no syntax newer than Python 3.7, may be used before that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def inside() -> bool:
    """Whether this Python is one that scripts/venv made, and finished."""
    return Path(sys.prefix, "complete").exists()


def enter() -> None:
    """Replace this process by the same command in the project's environment."""
    made = subprocess.run([str(ROOT / "scripts/venv")], stdout=subprocess.PIPE, check=False)
    if made.returncode:
        sys.exit(made.returncode)  # scripts/venv has said why
    python = os.fsdecode(made.stdout).strip()
    os.execv(python, [python, "-m", "testbed", *sys.argv[1:]])


if not inside():
    enter()
