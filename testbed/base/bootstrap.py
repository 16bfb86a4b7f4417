# SPDX-License-Identifier: GPL-2.0
"""The project's own Python: `python3 -m testbed` can be started with any Python.

If the importing Python is not the one of the environment of scripts/venv, this makes the environment
if necessary and restarts in it, with the same arguments. Code before that may use only the standard
library, and no syntax newer than Python 3.7.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def inside() -> bool:
    """Whether this Python belongs to a complete environment of scripts/venv."""
    return Path(sys.prefix, "complete").exists()


def enter() -> None:
    """Replace this process by the same command in the project's environment."""
    made = subprocess.run([str(ROOT / "scripts/venv")], stdout=subprocess.PIPE, check=False)
    if made.returncode:
        sys.exit(made.returncode)  # scripts/venv has printed the reason
    python = os.fsdecode(made.stdout).strip()
    os.execv(python, [python, "-m", "testbed", *sys.argv[1:]])


if not inside():
    enter()
