# SPDX-License-Identifier: GPL-2.0
"""vulturectl inside the user-mode kernel; the guest_*.py have the tests."""

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
from testbed.kernels.build import ensure_kernel
from testbed.kernels.modules import ensure_modules
from testbed.kernels.series import KernelSpec

pytestmark = pytest.mark.scenario

FOLDER = Path(__file__).resolve().parent
GUESTS = sorted(FOLDER.glob("guest_*.py"))
TESTS = [
    pytest.param(path.name, test, id=f"{path.stem.removeprefix('guest_')}-{test}")
    for path in GUESTS
    for test in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
]
JOB = """
cp -r bin /tmp/bin
export TCP_LEDBAT={ledbat} TCP_LP={lp}
insmod {vulture} && insmod {lbe} || exit 1
/usr/bin/python3 bin/{guest} /tmp/bin > "$LBE_OUT/said" 2>&1
"""


@functools.cache
def said(guest: str) -> dict[str, str]:
    """Test of this file -> "ok" or the reason of its failure."""
    build = ensure_kernel(KernelSpec())
    modules = ensure_modules(build).paths
    with tempfile.TemporaryDirectory(prefix="lbe-run.") as work:
        job, out = Path(work) / "job", Path(work) / "out"
        (job / "bin").mkdir(parents=True)
        for tool in ("vulturectl", "libvulture"):
            subprocess.run(["make", "-s", "-C", REPO / "tools" / tool, f"O={job / 'bin'}", "all"], check=True)
        if "without_bpf" in (FOLDER / guest).read_text(encoding="utf-8"):
            (job / "bin" / "plain").mkdir()
            words = ["make", "-s", "-C", f"{REPO}/tools/vulturectl", f"O={job / 'bin' / 'plain'}", "BPF=no"]
            subprocess.run([*words, "all"], check=True, stdout=subprocess.DEVNULL)
        for path in (*GUESTS, REPO / "tools/vulturectl/vulturectl.schema.json"):
            shutil.copy(path, job / "bin")
        paths = {
            name: f"{HOST_ROOT}{modules[f'{prefix}{name}']}"
            for prefix, name in (("", "vulture"), ("tcp_", "lbe"), ("tcp_", "ledbat"), ("tcp_", "lp"))
        }
        (job / "job.sh").write_text(JOB.format(guest=guest, **paths))
        try:
            Machine(build).run(job, out, wall_limit_s=300, virtual_limit_s=600)
        except LbeError as error:
            text = (out / "said").read_text(errors="replace") if (out / "said").exists() else ""
            raise AssertionError(f"{error}\nbefore that the tests said:\n{text[-3000:]}") from error
        text = (out / "said").read_text(errors="replace")
    results = {}
    for match in re.finditer(r"^(ok|not ok) (test_\w+)(.*?)(?=^ok |^not ok |\Z)", text, re.MULTILINE | re.DOTALL):
        results[match[2]] = "ok" if match[1] == "ok" else match[3]
    return results


@pytest.mark.parametrize(("guest", "test"), TESTS)
def test_run(guest: str, test: str) -> None:
    assert said(guest).get(test, "it did not run") == "ok", said(guest).get(test)
