# SPDX-License-Identifier: GPL-2.0
"""Paths in the tree."""

from __future__ import annotations

from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
REPO = TESTBED.parent
AGENT_SOURCE = TESTBED / "agent"
#: modules that only guests load
GUEST_MODULES = TESTBED / "kernels" / "guest-modules"
#: shell scripts that run inside a guest, a namespace or another machine
SCRIPTS = TESTBED / "backends" / "scripts"
