# SPDX-License-Identifier: GPL-2.0
"""Modules built from a snapshot of the sources, with a fake make: what a snapshot contains and depends on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from testbed.base import cache
from testbed.base.errors import BuildFailed, KernelError
from testbed.base.places import REPO
from testbed.kernels import modules
from testbed.kernels.build import KernelBuild, ensure_kernel
from testbed.kernels.modules import ensure_modules, included
from testbed.kernels.series import KernelSpec

FAKE_MAKE = """\
#!/bin/sh
echo "$*" >>"$FAKE_CALLS"
[ -z "$FAKE_SAYS" ] || { echo "$FAKE_SAYS"; exit 2; }
cd "$2" || exit 1
for kbuild in */Kbuild; do
	name=${kbuild%/Kbuild}
	printf 'x\\0depends=\\0' >"$name/$name.ko"
	mkdir -p "$name/tests"
	printf 'x\\0depends=%s\\0' "$name" >"$name/tests/${name}_kunit.ko"
done
"""


def write_tree(top: Path, files: dict[str, str]) -> None:
    """Write files (path below ``top`` -> text)."""
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a tree with two module folders and files that do not affect them, and put a fake make on the PATH."""
    top = tmp_path / "repo"
    files = {
        "Kbuild": "obj-m",
        "Makefile": "modules:",
        "VERSION": "1.0",
        "include/lbe/compat.h": "/* */",
        "tcp_lp/Kbuild": "obj-m",
        "tcp_lp/tcp_lp.c": "int a;",
        "tcp_lp/tcp_lp.o": "object",
        "tcp_lp/tcp_lp.mod.c": "generated",
        "vulture/Kbuild": "obj-m",
        "vulture/hook.c": "int b;",
        "tools/tool.c": "int c;",
        "README.md": "words",
    }
    write_tree(top, files)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "make").write_text(FAKE_MAKE)
    (programs / "make").chmod(0o755)
    (tmp_path / "calls").touch()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("FAKE_SAYS", raising=False)
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(modules, "TOOLS", {"make": "make"})
    return top


@pytest.fixture
def build(tmp_path: Path) -> KernelBuild:
    """Make a kernel build that has two in-tree modules."""
    kdir = tmp_path / "kdir"
    (kdir / "intree").mkdir(parents=True)
    for name in ("tcp_lp", "tcp_vegas"):
        (kdir / "intree" / f"{name}.ko").write_bytes(b"depends=\0")
    return KernelBuild(kdir / "linux", kdir, kdir, "6.12.9", "6.12", "plain", "key")


def test_set(repo: Path, build: KernelBuild) -> None:
    found = ensure_modules(build, repo)
    assert sorted(found.paths) == ["tcp_lp", "tcp_lp_intree", "tcp_lp_kunit", "tcp_vegas", "vulture", "vulture_kunit"]
    assert found.paths["tcp_lp_intree"].parent == build.kdir / "intree"
    assert found.kunit == ["tcp_lp_kunit", "vulture_kunit"]
    assert [path.name for path in found.load_order(["tcp_lp_kunit"])] == ["tcp_lp.ko", "tcp_lp_kunit.ko"]
    with pytest.raises(KernelError, match="no module 'tcp_reno'; there are: tcp_lp,"):
        found.load_order(["tcp_reno"])


def test_snapshot_holds_sources_only(repo: Path, build: KernelBuild) -> None:
    tree = ensure_modules(build, repo).paths["tcp_lp"].parent.parent
    names = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.suffix != ".ko"}
    assert {"tcp_lp/tcp_lp.c", "include/lbe/compat.h", "vulture/hook.c"} <= names
    assert not names & {"tcp_lp/tcp_lp.o", "tcp_lp/tcp_lp.mod.c", "tools/tool.c", "README.md"}


def test_key_follows_content_version_and_kernel(
    repo: Path, build: KernelBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(kernel: KernelBuild = build) -> Path:
        return ensure_modules(kernel, repo).paths["tcp_lp"].parent.parent

    first = folder()
    (repo / "README.md").write_text("other words")
    assert folder() == first
    assert Path(os.environ["FAKE_CALLS"]).read_text().count("ARCH=um") == 1
    (repo / "vulture/hook.c").write_text("int other;")
    edited = folder()
    monkeypatch.setattr(modules, "version_of", lambda *_: "2.0")
    renamed = folder()
    other = KernelBuild(build.linux, build.kdir, build.source, "6.1.9", "6.1", "plain", "other")
    assert len({first, edited, renamed, folder(other)}) == 4


def test_some_folders_alone(repo: Path, build: KernelBuild) -> None:
    found = ensure_modules(build, repo, ["vulture"])
    assert "vulture" in found.paths
    assert "tcp_lp" not in found.paths
    with pytest.raises(KernelError, match="no module folder tcp_reno; there are: tcp_lp, vulture"):
        ensure_modules(build, repo, ["tcp_reno"])


def test_version(repo: Path) -> None:
    assert modules.version_of(repo, "0123456789abcdef") == "content-0123456789ab"
    script = repo / "scripts/version"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho v1-3-gabc-dirty\n")
    script.chmod(0o755)
    assert modules.version_of(repo, "0") == "v1-3-gabc-dirty"


def test_failed_build_leaves_nothing(repo: Path, build: KernelBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", "tcp_lp/tcp_lp.c:1: error: no")
    with pytest.raises(BuildFailed, match=r"tcp_lp\.c:1: error: no"):
        ensure_modules(build, repo)
    folder = cache.cache_root() / "modules"
    assert not list(folder.iterdir())
    monkeypatch.delenv("FAKE_SAYS")
    assert ensure_modules(build, repo).kunit


def test_old_builds_are_forgotten(repo: Path, build: KernelBuild) -> None:
    stale = cache.cache_root() / "modules" / "stale"
    stale.mkdir(parents=True)
    long_ago = time.time() - (modules.KEEP_DAYS + 1) * 86400
    os.utime(stale, (long_ago, long_ago))
    ensure_modules(build, repo)
    assert not stale.exists()


@pytest.mark.kunit
def test_real_modules_carry_the_version() -> None:
    found = ensure_modules(ensure_kernel(KernelSpec()))
    marked = b"version=" + found.version.encode() + b"\0"
    for folder in modules.module_folders(REPO):
        own = [p for name, p in found.paths.items() if p.parent.name == folder and name not in found.kunit]
        assert own, f"{folder} built no module"
        assert all(marked in path.read_bytes() for path in own), folder


def test_a_module_is_made_of_the_headers_that_it_includes(tmp_path: Path) -> None:
    """A header that a module does not include does not make its runs stale; every source includes compat.h."""
    files = {
        "include/lbe/compat.h": "#include <linux/version.h>\n",
        "include/lbe/arith.h": "",
        "include/lbe/owd.h": "#include <lbe/arith.h>\n",
        "include/lbe/mark.h": "",
        "one/one.c": '#include <lbe/owd.h>\n#include "one.h"\n',
        "one/one.h": "/* #include <lbe/mark.h> */\n# include <lbe/none.h>\n",
    }
    write_tree(tmp_path, files)
    found = included(tmp_path, [Path("one/one.c"), Path("one/one.h")])
    assert [path.name for path in found] == ["arith.h", "compat.h", "owd.h"]
