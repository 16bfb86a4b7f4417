# SPDX-License-Identifier: GPL-2.0
"""The systemd units in packaging/: systemd itself finds nothing wrong with them, and a broken one is noticed.

And what `make install` puts beside the modules: the Debian packages ship the same, and uninstall takes it away.
"""

from __future__ import annotations

import fnmatch
import os
import re
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
    """BPF programs, rules and drop-ins: without these the units start and do nothing."""
    more = {
        "lbe-background.service": ("CAP_CHOWN", "AF_UNIX"),
        "vulturectl.service": (
            "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "AF_UNIX", "ReadWritePaths=/run/systemd/system -/sys/fs/bpf/lbe\n",
        ),
    }  # fmt: skip
    for name in more:
        text = (PACKAGING / name).read_text()
        for needed in ("CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "AF_NETLINK", "AF_INET", *more[name]):
            assert needed in text, (name, needed)


@pytest.mark.parametrize("unit", ["lbe-background.service", "vulturectl.service"])
def test_a_unit_of_root_may_do_little_else(unit: str) -> None:
    """By the score of systemd itself, of 100; and no unit may load modules, which is done before it."""
    text = (PACKAGING / unit).read_text()
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=45", "--no-pager", str(PACKAGING / unit)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CAP_SYS_MODULE" not in text and "ExecStartPre=-+/sbin/modprobe -a vulture tcp_lbe" in text
    assert "ProtectControlGroups" not in re.sub(r"#.*", "", text), "it makes cgroups"


def test_what_users_talk_to_may_do_little() -> None:
    """lbe-background answers every user: it loads no module, and is no administrator of the system."""
    text = (PACKAGING / "lbe-background.service").read_text()
    (line,) = re.findall(r"^CapabilityBoundingSet=(.*)", text, re.MULTILINE)
    may = {"CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_DAC_OVERRIDE", "CAP_CHOWN"}
    assert set(line.split()) == may
    for word in ("NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryMax=", "TasksMax="):
        assert word in text, word


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


# -- make install ---------------------------------------------------------------------------------------


def make(verb: str, target: Path, prefix: str) -> None:
    """As a package's build or a user calls it; built in place, without BPF, which changes no name."""
    words = [f"DESTDIR={target}", f"PREFIX={prefix}", "LBE_VERSION=test", "BPF=no"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "-s", "-C", target.parent / "tree" / "tools", verb, *words],
        check=False, capture_output=True, text=True, env=clean,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def files(target: Path) -> set[str]:
    """What is there, relative; links too."""
    return {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of what the tools are made of."""
    folder = tmp_path_factory.mktemp("install")
    left_out = shutil.ignore_patterns("*.o", "*.a", "*.so", "*.pc", "__pycache__")
    for name in ("tools", "packaging", "vulture/uapi", "sch_shred/uapi"):
        shutil.copytree(REPO / name, folder / "tree" / name, ignore=left_out)
    (folder / "tree" / "Documentation").mkdir()
    pages = (f"Documentation/{page}.md" for page in ("admin", "vulture", "vulture_credit"))
    for name in ("VERSION", "vulture/lists_gen.h", *pages):
        shutil.copy(REPO / name, folder / "tree" / name)
    return folder


def test_a_package_without_the_program_for_uploads_is_not_built(root: Path) -> None:
    """It asks for BPF, so that a machine without clang fails instead."""
    (line,) = re.findall(r"^tools = (.*)", (REPO / "debian" / "rules").read_text(), re.MULTILINE)
    assert " BPF=yes " in line
    words = [f"O={root}", "BPF=yes", "CLANG=no-such-clang", "all"]
    make = ["make", "-s", "-C", str(root / "tree/tools/vulturectl"), *words]
    done = subprocess.run(make, check=False, capture_output=True, text=True)
    assert done.returncode and "no-such-clang" in done.stderr, done


def test_the_packages_ship_what_make_installs(root: Path) -> None:
    target = root / "usr"
    make("install", target, "/usr")
    patterns = [
        line.split()[0]
        for path in (REPO / "debian").glob("*.install")
        for line in path.read_text().splitlines()
        if line and not line.startswith("#")
    ]
    # the library's folder has the machine's name in a package, and none here
    patterns = [re.sub(r"^usr/lib/\*/(?!tc)", "usr/lib/", pattern) for pattern in patterns]
    for name in files(target):
        owners = [one for one in patterns if fnmatch.fnmatch(name, one) or name.startswith(f"{one}/")]
        assert len(owners) == 1, (name, owners)
    for pattern in patterns:
        assert list(target.glob(pattern)), f"debian/ names {pattern}, which is not installed"


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_what_is_installed_finds_the_rest_and_goes_again(root: Path, prefix: str) -> None:
    target = root / "target"
    make("install", target, prefix)
    there = target / prefix.lstrip("/")
    units = there / "lib/systemd/system"
    assert {path.name for path in units.iterdir()} == set(UNITS)
    for unit in units.iterdir():
        for program in re.findall(r"^Exec\w+=(\S*vulturectl)\b", unit.read_text(), re.MULTILINE):
            assert program == f"{prefix}/bin/vulturectl" and (there / "bin/vulturectl").is_file(), (unit.name, program)
    assert os.access(there / "share/doc/lbe-tools/examples/apt-background.sh", os.X_OK)
    assert (target / "etc/lbe/jobs").is_dir(), "background@NAME.service runs what is there"
    for page in re.findall(r"\b\w+\.(?:md|schema\.json)", (REPO / "tools/vulturectl/vulturectl.8").read_text()):
        assert (there / "share/doc/lbe-tools" / page).is_file(), f"the manual names {page}"
    conf = target / "etc/lbe/background.conf"
    assert all(line.startswith("#") for line in conf.read_text().splitlines() if line), "nothing by itself"

    asked = ["/usr/bin/python3", "-c", "import site; print(*site.getsitepackages())"]
    searched = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    (client,) = there.glob("lib/python3*/dist-packages/vulture/py.typed")
    assert str(Path("/") / client.relative_to(target).parents[1]) in searched, "import vulture would fail"

    conf.write_text("unit restic.service\n")
    make("install", target, prefix)
    make("uninstall", target, prefix)
    assert files(target) == {"etc/lbe/background.conf"} and conf.read_text() == "unit restic.service\n"
    conf.unlink()
    make("install", target, prefix)
    make("uninstall", target, prefix)
    assert files(target) == set()
