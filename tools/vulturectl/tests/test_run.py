# SPDX-License-Identifier: GPL-2.0
"""vulturectl run, bg and fg inside the user-mode kernel; guest_run.py has the tests."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from testbed.backends.machine import Machine
from testbed.backends.uml import HOST_ROOT
from testbed.base.errors import LbeError
from testbed.base.places import REPO
from testbed.kernels.build import KernelSpec, ensure_kernel
from testbed.kernels.modules import ensure_modules

pytestmark = pytest.mark.scenario

GUEST = Path(__file__).resolve().parent / "guest_run.py"
TESTS = re.findall(r"^def (test_\w+)", GUEST.read_text(encoding="utf-8"), re.MULTILINE)
JOB = """
cp -r bin /tmp/bin
insmod {vulture} && insmod {lbe} || exit 1
/usr/bin/python3 bin/guest_run.py /tmp/bin > "$LBE_OUT/said" 2>&1
"""


@functools.cache
def said() -> dict[str, str]:
    """Test -> "ok" or the reason of its failure."""
    build = ensure_kernel(KernelSpec())
    modules = ensure_modules(build).paths
    with tempfile.TemporaryDirectory(prefix="lbe-run.") as work:
        job, out = Path(work) / "job", Path(work) / "out"
        (job / "bin").mkdir(parents=True)
        for tool in ("vulturectl", "libvulture"):
            subprocess.run(["make", "-s", "-C", REPO / "tools" / tool, f"O={job / 'bin'}", "all"], check=True)
        shutil.copy(GUEST, job / "bin")
        paths = {
            name: f"{HOST_ROOT}{modules[f'{prefix}{name}']}" for prefix, name in (("", "vulture"), ("tcp_", "lbe"))
        }
        (job / "job.sh").write_text(JOB.format(**paths))
        try:
            Machine(build).run(job, out, wall_limit_s=600, virtual_limit_s=600)
        except LbeError as error:
            text = (out / "said").read_text(errors="replace") if (out / "said").exists() else ""
            raise AssertionError(f"{error}\nbefore that the tests said:\n{text[-3000:]}") from error
        text = (out / "said").read_text(errors="replace")
    results = {}
    for match in re.finditer(r"^(ok|not ok) (test_\w+)(.*?)(?=^ok |^not ok |\Z)", text, re.MULTILINE | re.DOTALL):
        results[match[2]] = "ok" if match[1] == "ok" else match[3]
    return results


@pytest.mark.parametrize("test", TESTS)
def test_run(test: str) -> None:
    assert said().get(test, "it did not run") == "ok", said().get(test)
