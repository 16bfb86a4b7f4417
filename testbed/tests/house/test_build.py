# SPDX-License-Identifier: GPL-2.0
"""The Makefile's targets, the scripts, and conftest.py's rules for the result of `make check`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VERBS = (
    "modules", "tools", "demo", "check", "check-fast", "check-kernels", "lint", "bench", "report", "install",
    "uninstall", "dkms", "dkms-remove", "deb", "clean", "help",
)  # fmt: skip


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command, with output and errors in one stream; it does not inherit the variables of a make around us."""
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR", "PREFIX")}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**clean, "LC_ALL": "C", **environment}, text=True,
        check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def module_folders() -> dict[str, list[str]]:
    """Map each folder to the modules that its Kbuild makes, without KUnit modules."""
    (names,) = re.findall(r"^lbe-dirs := (.*)$", (ROOT / "Kbuild").read_text(), re.MULTILINE)
    found = {}
    for name in names.split():
        kbuild = ROOT / name / "Kbuild"
        if kbuild.exists():
            lines = re.findall(r"^obj-m\s*[+:]?=\s*(.*)$", kbuild.read_text(), re.MULTILINE)
            found[name] = [word.removesuffix(".o") for line in lines for word in line.split() if word.endswith(".o")]
    assert found
    return found


def copy_of_tree(folder: Path) -> Path:
    """Copy all files that git tracks or would track to a folder: a build writes into its source tree."""
    names = run("git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard").stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


# -- the Makefile ----------------------------------------------------------------------------


def test_help_names_every_verb() -> None:
    shown = run("make", "help")
    assert shown.returncode == 0
    for verb in VERBS:
        assert re.search(rf"\bmake {verb}\b", shown.stdout) or verb == "help", verb
    assert run("make").stdout == shown.stdout, "make alone teaches too"


def test_no_verb_loads_a_module() -> None:
    for name in ("Makefile", "scripts/deps", "scripts/venv"):
        assert not re.search(r"\b(modprobe|insmod)\b", (ROOT / name).read_text()), name


def test_missing_headers_are_one_line(tmp_path: Path) -> None:
    result = run("make", "-s", "modules", f"KDIR={tmp_path}/none")
    assert result.returncode != 0
    first = result.stdout.splitlines()[0]
    assert f"no kernel build folder at {tmp_path}/none" in first
    assert "install linux-headers-" in first


@pytest.mark.kunit
def test_install_then_uninstall_leaves_nothing(tmp_path: Path, kdir: Path) -> None:
    tree = copy_of_tree(tmp_path / "tree")
    target = tmp_path / "target"
    words = [f"KDIR={kdir}", "ARCH=um", f"DESTDIR={target}", "PREFIX=/usr", "LBE_VERSION=test"]
    installed = run("make", "install", *words, cwd=tree)
    assert installed.returncode == 0, installed.stdout[-3000:]

    there = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    kernel_release = (kdir / "include/config/kernel.release").read_text().strip()
    for folder, modules in module_folders().items():
        for module in modules:
            assert f"lib/modules/{kernel_release}/updates/lbe/{folder}/{module}.ko" in there
    assert not [name for name in there if "kunit" in name]
    assert {"usr/bin/vulturectl", "usr/lib/systemd/system/lbe-background.service", "etc/lbe/background.conf"} <= there

    (target / "usr/somebody-elses").write_text("")
    removed = run("make", "uninstall", *words, cwd=tree)
    assert removed.returncode == 0, removed.stdout[-3000:]
    left = {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}
    assert left == {"usr/somebody-elses"}

    assert run("make", "clean", cwd=tree).returncode == 0
    assert not [*tree.rglob("*.ko"), *tree.rglob("*.o")]


@pytest.fixture
def kdir() -> Path:
    """Return the build folder of the default series: that of its LBE_KDIR_* (as LBE_KDIR_6_12), else the testbed's."""
    from testbed.kernels.build import ensure_kernel
    from testbed.kernels.series import DEFAULT_SERIES, KernelSpec

    given = os.environ.get(f"LBE_KDIR_{DEFAULT_SERIES.replace('.', '_')}")
    return Path(given) if given else ensure_kernel(KernelSpec()).kdir


def test_dkms_lists_what_kbuild_builds() -> None:
    text = (ROOT / "dkms.conf").read_text()
    listed = {}
    for number, name in re.findall(r'^BUILT_MODULE_NAME\[(\d+)\]="(\w+)"', text, re.MULTILINE):
        (listed[name],) = re.findall(rf'^BUILT_MODULE_LOCATION\[{number}\]="(\w+)"', text, re.MULTILINE)
        assert f'DEST_MODULE_LOCATION[{number}]="/updates/dkms"' in text
    assert listed == {module: folder for folder, modules in module_folders().items() for module in modules}
    assert f'PACKAGE_VERSION="{(ROOT / "VERSION").read_text().strip()}"' in text


# -- scripts ----------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> None:
    done = run("git", "-c", "user.name=a", "-c", "user.email=a@b", *words, cwd=folder)
    assert done.returncode == 0, done.stdout


def test_version_of_a_clone_and_of_a_tarball(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy2(ROOT / "scripts/version", tmp_path / "scripts")
    (tmp_path / "VERSION").write_text("9.8.7\n")
    assert run(tmp_path / "scripts/version").stdout == "9.8.7\n"

    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "a")
    clean = run(tmp_path / "scripts/version").stdout
    assert re.fullmatch(r"[0-9a-f]{7,}\n", clean)
    (tmp_path / "VERSION").write_text("9.8.8\n")
    assert run(tmp_path / "scripts/version").stdout == clean.strip() + "-dirty\n"

    # A tarball that is unpacked inside another repository is still a tarball.
    inner = tmp_path / "inner"
    (inner / "scripts").mkdir(parents=True)
    shutil.copy2(ROOT / "scripts/version", inner / "scripts")
    (inner / "VERSION").write_text("1.2.3\n")
    assert run(inner / "scripts/version").stdout == "1.2.3\n"


def fake_path(folder: Path, **programs: str) -> str:
    """Make a PATH that has only these shell scripts and the few real programs that scripts/deps needs."""
    folder.mkdir()
    for real in ("sh", "env", "sort", "sed", "cat", "touch", "true", "dirname"):
        found = shutil.which(real)
        assert found, real
        (folder / real).symlink_to(found)
    for name, body in programs.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    return str(folder)


ALL_BUT_SPARSE = r"""for p; do case $p in -* | *'{'* | sparse) ;; *) echo "installed $p" ;; esac; done; exit 1"""


def test_deps_with_all_there_touches_nothing(tmp_path: Path) -> None:
    path = fake_path(tmp_path / "bin", dpkg_query=ALL_BUT_SPARSE, apt_get=f"touch {tmp_path}/called", id="echo 0")
    result = run(ROOT / "scripts/deps", "compiler", "kernel", "testbed", PATH=path)
    assert (result.returncode, result.stdout) == (0, "")
    assert not (tmp_path / "called").exists()


def test_deps_installs_only_what_is_missing(tmp_path: Path) -> None:
    path = fake_path(tmp_path / "bin", dpkg_query=ALL_BUT_SPARSE, apt_get=f'echo "$*" >>{tmp_path}/called', id="echo 0")
    result = run(ROOT / "scripts/deps", "lint", PATH=path)
    assert result.returncode == 0, result.stdout
    update, install = (tmp_path / "called").read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" install --no-install-recommends sparse")


@pytest.mark.parametrize("sudo", [None, "exit 1"], ids=["no-sudo", "sudo-asks"])
def test_deps_as_ordinary_user_says_what_to_install(tmp_path: Path, sudo: str | None) -> None:
    programs = {"dpkg_query": ALL_BUT_SPARSE, "apt_get": f"touch {tmp_path}/called",
                "id": '[ "$1" = -un ] && echo eve || echo 1000'}  # fmt: skip
    path = fake_path(tmp_path / "bin", **programs, **({"sudo": sudo} if sudo else {}))
    result = run(ROOT / "scripts/deps", "lint", PATH=path)
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "deps: packages are missing and may not be installed by eve; "
        "as root: apt-get install -y --no-install-recommends sparse"
    ]
    assert not (tmp_path / "called").exists()


def test_deps_uses_sudo_that_does_not_ask(tmp_path: Path) -> None:
    path = fake_path(
        tmp_path / "bin", dpkg_query=ALL_BUT_SPARSE, apt_get=f'echo "$*" >>{tmp_path}/called',
        id='[ "$1" = -un ] && echo eve || echo 1000', sudo=f'echo sudo "$1" >>{tmp_path}/called; shift; exec "$@"',
    )  # fmt: skip
    assert run(ROOT / "scripts/deps", "lint", PATH=path).returncode == 0
    assert "sudo -n" in (tmp_path / "called").read_text()


def test_deps_apt_failure_is_a_failure(tmp_path: Path) -> None:
    path = fake_path(tmp_path / "bin", dpkg_query=ALL_BUT_SPARSE, apt_get="exit 100", id="echo 0")
    result = run(ROOT / "scripts/deps", "lint", PATH=path)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == (
        "deps: apt-get failed (see above); as root: apt-get install -y --no-install-recommends sparse"
    )


def test_deps_unknown_group_is_usage(tmp_path: Path) -> None:
    assert run(ROOT / "scripts/deps", "everything").returncode == 2


def test_venv_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run(ROOT / "scripts/venv", LBE_CACHE=str(tmp_path / "file/cache"))
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"venv: cannot create {tmp_path}/file/cache: LBE_CACHE=folder says where the cache may be"
    ]


def test_venv_refuses_a_python_that_does_not_suit() -> None:
    result = run(ROOT / "scripts/venv", PYTHON="/bin/false")
    assert result.returncode == 1
    assert result.stdout.startswith("venv: PYTHON=/bin/false: not a Python 3.11 or newer")


def test_requirements_are_pinned() -> None:
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), line


# -- when make check passes ---------------------------------------------------------------------


def check(folder: Path, files: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the repository's conftest.py and settings in a folder that has these tests."""
    import sys

    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, cwd=folder)


PASS = "def test_a():\n    pass\n"


def test_check_is_green_with_a_test_in_each_tier(tmp_path: Path) -> None:
    result = check(tmp_path, {"tcp_lp/tests/test_a.py": PASS, "testbed/tests/test_a.py": PASS}, "--tiers=host,harness")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^host +1 +0 +0", result.stdout, re.MULTILINE)
    assert re.search(r"^harness +1 +0 +0", result.stdout, re.MULTILINE)
    assert "2 passed" in result.stdout.splitlines()[-1], "pytest has the last word"


def test_check_without_any_test_is_red(tmp_path: Path) -> None:
    assert check(tmp_path, {"testbed/tests/test_a.py": ""}).returncode != 0


def test_check_with_an_empty_tier_is_red(tmp_path: Path) -> None:
    result = check(tmp_path, {"testbed/tests/test_a.py": PASS}, "--tiers=host,harness")
    assert result.returncode != 0
    assert "the tier 'host' has no test at all" in result.stdout


def test_check_with_a_skip_is_red(tmp_path: Path) -> None:
    skip = "import pytest\n\n\ndef test_b():\n    pytest." + "sk" + "ip('no time')\n"
    result = check(tmp_path, {"testbed/tests/test_a.py": PASS + skip})
    assert result.returncode == 1
    assert "1 skipped: a test that does not run proves nothing" in result.stdout


def test_check_with_an_unknown_tier_is_refused(tmp_path: Path) -> None:
    result = check(tmp_path, {"testbed/tests/test_a.py": PASS}, "--tiers=all")
    assert result.returncode == 4
    assert "--tiers=all: 'all' is none of host, harness, kunit, scenario, qemu, kernels" in result.stdout


def test_check_on_an_unknown_series_is_refused() -> None:
    import sys

    result = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--series=5.10", "--collect-only")
    assert result.returncode == 4
    assert "--series=5.10: '5.10' is none of 6.1, 6.12, 7.2" in result.stdout


# -- the testbed's command by any Python ----------------------------------------------------------


def test_testbed_goes_on_in_its_own_environment() -> None:
    import sys

    outside = Path(sys.base_prefix) / "bin/python3"
    listed = run(outside, "-m", "testbed", "list", "--json")
    assert listed.returncode == 0, listed.stdout
    assert '"claim"' in listed.stdout
    assert run(outside, "-m", "testbed", "lisst").returncode == 2, "status and arguments pass through"
