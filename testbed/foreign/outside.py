# SPDX-License-Identifier: GPL-2.0
"""Where the files of other projects are that this project needs and must not contain."""

from __future__ import annotations

import os
from pathlib import Path

from ..base.cache import cache_root

#: the variable that names one folder with all of them: packetdrill's archive under its name, and the recorded links
FOLDER = "LBE_FOREIGN"


def place(variable: str, in_folder: str, in_packages: str) -> Path:
    """The path that this variable of the environment names. Without it, a path in the folder that LBE_FOREIGN names;
    without both, a path in the cache's folder "packages"."""
    if named := os.environ.get(variable):
        return Path(named)
    if folder := os.environ.get(FOLDER):
        return Path(folder) / in_folder
    return cache_root() / "packages" / in_packages
