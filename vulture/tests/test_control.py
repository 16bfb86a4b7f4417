# SPDX-License-Identifier: GPL-2.0
"""Module, library, command line and binding together, inside the user-mode kernel.

The tests are in guest_*.py. This file boots a kernel for them once, and reads what they print.
"""

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
from testbed.kernels.mirror import ensure_part
from testbed.kernels.modules import ensure_modules
from testbed.kernels.series import DEFAULT_SERIES, KernelSpec

pytestmark = pytest.mark.scenario

FOLDER = Path(__file__).resolve().parent
#: in this order: the tests of the last one end with the module's removal
GUESTS = [FOLDER / f"guest_{name}.py" for name in ("ynl", "client", "lives", "busy", "control")]
TESTS = [
    test for path in GUESTS for test in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
]
#: the first series whose source has the kernel's own netlink client
YNL_SERIES = "6.12"

JOB = """
cp -r bin /tmp/bin
insmod {module} || exit 1
/usr/bin/python3 bin/guest_ynl.py /tmp/bin {ynl} {schema} > "$LBE_OUT/said" 2>&1
/usr/bin/python3 bin/guest_client.py /tmp/bin >> "$LBE_OUT/said" 2>&1
/usr/bin/python3 bin/guest_lives.py /tmp/bin {module} >> "$LBE_OUT/said" 2>&1
/usr/bin/python3 bin/guest_busy.py /tmp/bin {module} >> "$LBE_OUT/said" 2>&1
/usr/bin/python3 bin/guest_control.py /tmp/bin >> "$LBE_OUT/said" 2>&1
dmesg > "$LBE_OUT/dmesg"
"""


def build_tools(folder: Path) -> None:
    """Build vulturectl, the library, the binding and a client of libynl into a folder."""
    folder.mkdir(parents=True)
    for name in ("libvulture", "vulturectl"):
        subprocess.run(["make", "-s", "-C", REPO / "tools" / name, f"O={folder}", "all"], check=True)
    shutil.copytree(REPO / "tools" / "python" / "vulture", folder / "vulture")
    (folder / "libvulture.so.1").symlink_to("libvulture.so")
    example = REPO / "tools" / "libvulture" / "examples" / "switching.c"
    words = ["-Wall", "-Wextra", "-Werror", f"-I{REPO}/tools/libvulture", f"-L{folder}", "-lvulture", "-lmnl"]
    subprocess.run(["cc", example, "-o", folder / "switching", *words], check=True)
    library = ensure_part(YNL_SERIES, "tools/net/ynl") / "lib"
    parser = REPO / "tools" / "ynl"
    words = ["-Wall", "-Werror", f"-I{library}", f"-I{parser}", f"-I{REPO}/vulture/uapi"]
    subprocess.run(["cc", "-w", "-c", library / "ynl.c", "-o", folder / "ynl.o"], check=True)
    sources = [FOLDER / "ynl_client.c", parser / "vulture-user.c", folder / "ynl.o"]
    subprocess.run(["cc", *words, "-o", folder / "ynl_client", *sources], check=True)
    for path in (
        *GUESTS,
        REPO / "tools/python/examples/download.py",
        REPO / "Documentation/vulture.yaml",
        REPO / "tools/vulturectl/vulturectl.schema.json",
    ):
        shutil.copy(path, folder)


@functools.cache
def said(flavour: str = "plain", series: str = DEFAULT_SERIES) -> dict[str, str]:
    """Map each test to "ok" or the reason of its failure."""
    build = ensure_kernel(KernelSpec(series=series, flavour=flavour))
    module = ensure_modules(build, REPO, ["vulture"]).paths["vulture"]
    with tempfile.TemporaryDirectory(prefix="lbe-vulture.") as work:
        job, out = Path(work) / "job", Path(work) / "out"
        build_tools(job / "bin")
        ynl = HOST_ROOT + str(ensure_part(YNL_SERIES, "tools/net/ynl"))
        schema = HOST_ROOT + str(ensure_part(YNL_SERIES, "Documentation/netlink/genetlink.yaml"))
        (job / "job.sh").write_text(JOB.format(module=f"{HOST_ROOT}{module}", ynl=ynl, schema=schema))
        try:
            Machine(build, mem_mb=768).run(job, out, wall_limit_s=900, virtual_limit_s=3600)
        except LbeError as error:
            text = (out / "said").read_text(errors="replace") if (out / "said").exists() else ""
            raise AssertionError(f"{error}\nbefore that the tests said:\n{text[-3000:]}") from error
        text = (out / "said").read_text(errors="replace")
    results = {}
    for match in re.finditer(r"^(ok|not ok) (test_\w+)(.*?)(?=^ok |^not ok |\Z)", text, re.MULTILINE | re.DOTALL):
        results[match[2]] = "ok" if match[1] == "ok" else match[3]
    return results


@pytest.mark.parametrize("test", TESTS)
def test_control(test: str) -> None:
    assert said().get(test, "it did not run") == "ok", said().get(test)
