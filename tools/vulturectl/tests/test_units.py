# SPDX-License-Identifier: GPL-2.0
"""The systemd units in packaging/: systemd itself finds nothing wrong with them, and a broken one is noticed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO

pytestmark = pytest.mark.host

PACKAGING = REPO / "packaging"
UNITS = sorted(path.name for path in PACKAGING.iterdir() if path.suffix in (".service", ".slice"))


def verify(folder: Path, unit: str) -> tuple[int, str]:
    """systemd-analyze's status and words; its search for units ends at this folder."""
    words = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", unit]
    env = {"PATH": "/usr/bin:/bin", "SYSTEMD_UNIT_PATH": f"{folder}:"}
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The units; what they start is there."""
    for name in UNITS:
        text = (PACKAGING / name).read_text()
        for program in ("/usr/bin/vulturectl", "=vulturectl", "/sbin/modprobe"):
            text = text.replace(program, "=/bin/true" if program.startswith("=") else "/bin/true")
        (tmp_path / name).write_text(text.replace("/etc/lbe/jobs/%i", "/bin/true"))
    return tmp_path


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts(folder: Path, unit: str) -> None:
    if "@" in unit:
        shutil.copy(folder / unit, folder / unit.replace("@", "@job"))
        unit = unit.replace("@", "@job")
    status, said = verify(folder, unit)
    assert status == 0 and unit not in said, said


def test_a_broken_unit_is_noticed(folder: Path) -> None:
    unit = folder / "lbe-background.service"
    unit.write_text(unit.read_text().replace("Type=notify", "Type=nonsense").replace("ExecStart=", "ExecStrat="))
    status, said = verify(folder, unit.name)
    assert status and "ExecStrat" in said and "nonsense" in said, said


def test_every_sandboxed_unit_keeps_what_it_needs() -> None:
    """BPF programs, rules and modules: without these capabilities the units start and do nothing."""
    for name in ("lbe-background.service", "vulturectl.service"):
        text = (PACKAGING / name).read_text()
        for needed in ("CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_MODULE", "AF_NETLINK", "AF_INET"):
            assert needed in text, (name, needed)


def test_the_apt_hook_comes_and_goes(tmp_path: Path) -> None:
    hook = PACKAGING / "apt-background.sh"
    env = {"PATH": "/usr/bin:/bin", "SYSTEMD_ETC": str(tmp_path)}
    subprocess.run([hook], check=True, env=env)
    dropped = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.conf"))
    assert dropped == [f"apt-daily{part}.service.d/50-lbe-background.conf" for part in ("-upgrade", "")]
    assert "\nSlice=background.slice\n" in (tmp_path / dropped[0]).read_text()
    subprocess.run([hook, "--remove"], check=True, env=env)
    assert not list(tmp_path.iterdir())
    done = subprocess.run([hook, "--now"], check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 2 and "not '--now'" in done.stderr
