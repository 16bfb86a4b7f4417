# SPDX-License-Identifier: GPL-2.0
"""Fetching, building and caching kernels, with a fake apt, make and compiler: every way in which they fail."""

from __future__ import annotations

import platform
import shutil
import subprocess
import threading
from collections import namedtuple
from pathlib import Path

import pytest

from testbed.base import cache
from testbed.base.errors import (
    BuildFailed,
    ConfigMissing,
    FetchFailed,
    KernelError,
    MissingTools,
    NoSpace,
    UnsupportedSeries,
)
from testbed.kernels import build as kernel
from testbed.kernels import mirror, series
from testbed.kernels.series import KernelSpec

MIRROR = "http://mirror.invalid/debian"
UTIL_C = """\
#include <stdlib.h>
ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	return getrandom(buf, len, flags);
}

int after;
"""
RANDOM_C = """\
static void _mix_pool_bytes(const void *buf, size_t len)
{
	blake2s_update(&input_pool.hash, buf, len);
}

/*
 * next
 */
"""
# Replaces make: writes the files that a kernel build leaves, logs its calls, obeys the variables FAKE_*.
FAKE_MAKE = """\
#!/bin/sh
for word in "$@"; do
	case $word in O=*) out=${word#O=} ;; esac
	verb=$word
done
echo "$verb" >>"$FAKE_CALLS"
case $verb in
tinyconfig) : >"$out/.config" ;;
olddefconfig) [ -z "$FAKE_DROP" ] || sed -i "/^$FAKE_DROP=/d" "$out/.config" ;;
modules)
	echo "  CC      init/main.o"
	[ -z "$FAKE_SAYS" ] || { echo "$FAKE_SAYS"; exit 2; }
	sleep 0.3
	mkdir -p "$out/include/config" "$out/net/ipv4"
	echo "$FAKE_RELEASE" >"$out/include/config/kernel.release"
	echo "include $out" >"$out/Makefile"
	case $* in
	*ARCH=um*linux*) echo kernel >"$out/linux" ;;
	*ARCH=x86_64*bzImage*) mkdir -p "$out/arch/x86/boot" && echo machine >"$out/arch/x86/boot/bzImage" ;;
	esac
	echo object >"$out/net/ipv4/tcp.o"
	echo module >"$out/net/ipv4/tcp_lp.ko"
	;;
esac
exit 0
"""
FAKE_APT = """\
#!/bin/sh
echo "$*" >>"$FAKE_CALLS"
for word in "$@"; do
	case $word in
	update) [ -z "$FAKE_SAYS" ] || { echo "$FAKE_SAYS" >&2; exit "${FAKE_CODE:-100}"; } ;;
	--print-uris)
		echo "'http://m.invalid/x' linux-source-6.12_6.12.9-1_all.deb ${FAKE_SIZE:-6} SHA256:0"
		exit 0
		;;
	esac
done
case $* in *" download "*) printf 'no deb' >linux-source-6.12_6.12.9-1_all.deb ;; esac
exit 0
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up an empty cache and fake programs, first on the PATH; return the file that lists their calls."""
    programs, path = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    path.touch()
    for name, text in (("make", FAKE_MAKE), ("apt-get", FAKE_APT)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin:/usr/sbin")
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LBE_DEBIAN_MIRROR", MIRROR)
    monkeypatch.setenv("FAKE_CALLS", str(path))
    monkeypatch.setenv("FAKE_RELEASE", "6.12.9")
    for name in ("FAKE_SAYS", "FAKE_DROP", "FAKE_SIZE", "FAKE_CODE"):
        monkeypatch.delenv(name, raising=False)
    # The fake apt needs no keyring; the real keyring is tested whenever a kernel is fetched.
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    monkeypatch.setattr(mirror, "DEBIAN_KEYRINGS", (keyring,))
    monkeypatch.setattr(series, "TOOLS", {"make": "make", "gcc": "gcc"})
    monkeypatch.setattr(mirror, "FETCH_TOOLS", {"apt-get": "apt"})
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a folder with the files of a kernel source that the edits change."""
    top = tmp_path / "linux"
    files = {
        "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 9\nEXTRAVERSION =\n",
        "arch/um/Kconfig": "config HZ\n\tint\n\tdefault 100\n\nconfig REST\n",
        "arch/um/os-Linux/util.c": UTIL_C,
        "drivers/char/random.c": RANDOM_C,
        "net/stale.o": "object",
        "include/generated/autoconf.h": "left by a build in place",
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def half_built() -> list[Path]:
    """Return the files in the cache that a failed call must not leave."""
    root = cache.cache_root()
    left = [*root.glob("kernels/*"), *root.glob("kernels/.*"), *root.glob("sources/.*")]
    return [*left, *root.glob("packages/.*"), *root.glob("packages/*")]


# --- a build that goes well --------------------------------------------------------------


def test_own_source_is_copied_edited_and_left_alone(calls: Path, tree: Path) -> None:
    before = {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    build = kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()} == before
    assert "default 1000\n" in (build.source / "arch/um/Kconfig").read_text()
    util = (build.source / "arch/um/os-Linux/util.c").read_text()
    assert 'getenv("LBE_SEED")' in util
    assert util.endswith("int after;\n")
    assert not (build.source / "net/stale.o").exists()
    assert not (build.source / "include/generated").exists()
    assert (build.series, build.release, build.flavour) == ("6.12", "6.12.9", "plain")


def test_entry_is_trimmed_relocated_and_found_again(calls: Path, tree: Path) -> None:
    build = kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert build.intree == {"tcp_lp": build.kdir / "intree" / "tcp_lp.ko"}
    assert not list(build.kdir.rglob("*.o"))
    assert (build.kdir / "Makefile").read_text() == f"include {build.kdir}\n"
    made = calls.read_text()
    assert kernel.ensure_kernel(KernelSpec(source_dir=tree)) == build
    assert calls.read_text() == made, "a built kernel was built again"


@pytest.mark.parametrize("flavour", ["race", "memory"])
def test_a_flavour_for_qemu_is_a_whole_machine(calls: Path, tree: Path, flavour: str) -> None:
    build = kernel.ensure_kernel(KernelSpec(flavour=flavour, source_dir=tree))
    assert build.arch == "x86_64" and build.linux.read_text() == "machine\n"
    assert not (build.kdir / "arch/x86/boot").exists()


def test_key_follows_source_and_compiler(calls: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {kernel.ensure_kernel(KernelSpec(source_dir=tree)).key}
    monkeypatch.setattr(kernel, "compiler_version", lambda: "gcc version 99")
    keys.add(kernel.ensure_kernel(KernelSpec(source_dir=tree)).key)
    (tree / "Makefile").write_text((tree / "Makefile").read_text() + "# edited\n")
    keys.add(kernel.ensure_kernel(KernelSpec(source_dir=tree)).key)
    keys.add(kernel.ensure_kernel(KernelSpec(flavour="sanitizer", source_dir=tree)).key)
    assert len(keys) == 4


def test_parallel_calls_build_once(calls: Path, tree: Path) -> None:
    builds: list[kernel.KernelBuild] = []
    threads = [
        threading.Thread(target=lambda: builds.append(kernel.ensure_kernel(KernelSpec(source_dir=tree))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 3
    assert len(set(builds)) == 1
    assert calls.read_text().split().count("modules") == 1


def test_prune_drops_what_nothing_leads_to(calls: Path, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert kernel.main(["prune"]) == 0
    assert not build.kdir.exists()
    assert not build.source.exists()
    assert str(build.kdir) in capsys.readouterr().out


# --- wrong requests ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "value"),
    [(KernelSpec("5.10"), "5.10"), (KernelSpec(""), "''"), (KernelSpec(flavour="fast"), "fast")],
)
def test_unknown_series_and_flavour(calls: Path, spec: KernelSpec, value: str) -> None:
    with pytest.raises(UnsupportedSeries, match=value) as caught:
        kernel.ensure_kernel(spec)
    assert caught.value.exit_status == 2
    assert "use one of" in str(caught.value)
    assert not half_built()


@pytest.mark.parametrize("version", ["5.10", "6.0", "7.3"])
def test_own_source_out_of_range(calls: Path, tree: Path, version: str) -> None:
    major, minor = version.split(".")
    (tree / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 0\n")
    with pytest.raises(UnsupportedSeries, match=rf"{version}.*6\.1 to 7\.2"):
        kernel.ensure_kernel(KernelSpec(source_dir=tree))


def test_own_source_is_no_source(calls: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSeries, match="no kernel source"):
        kernel.ensure_kernel(KernelSpec(source_dir=tmp_path))


def test_command_line(calls: Path, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kernel.main(["build", "--kernel-source", str(tree)]) == 0
    assert Path(capsys.readouterr().out.strip()).name.startswith("6.12.9-plain-")
    assert kernel.main(["build", "--series", "5.10"]) == 2
    assert "5.10" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        kernel.main(["bild"])
    assert caught.value.code == 2


# --- what can go wrong -----------------------------------------------------------------------


def test_no_compiler(calls: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(calls.parent / "bin"))
    with pytest.raises(MissingTools, match=r"not installed: gcc.*apt-get install gcc"):
        kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert not half_built()


def test_missing_tools_are_named_at_once(calls: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "TOOLS", {"make": "make", "flex-lbe": "flex", "bison-lbe": "bison"})
    with pytest.raises(MissingTools, match="apt-get install bison flex"):
        kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert not half_built()


def test_other_machine(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(KernelError, match="riscv64"):
        kernel.ensure_kernel(KernelSpec())


def test_no_disk_to_begin_with(calls: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 30, 1 << 30, 10 << 20))
    with pytest.raises(NoSpace, match=r"10 MiB free.*LBE_CACHE"):
        kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert not half_built()


@pytest.mark.parametrize(
    ("says", "error", "expected"),
    [
        ("net/core/dev.c:7: error: no", BuildFailed, "dev.c:7: error: no"),
        ("cc1: fatal error: No space left on device", NoSpace, "LBE_CACHE"),
    ],
)
def test_make_fails(
    calls: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, says: str, error: type, expected: str
) -> None:
    monkeypatch.setenv("FAKE_SAYS", says)
    with pytest.raises(error, match=expected):
        kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert not half_built()
    monkeypatch.delenv("FAKE_SAYS")
    assert kernel.ensure_kernel(KernelSpec(source_dir=tree)).linux.exists(), "the failure lasts"


def test_option_that_does_not_survive(calls: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DROP", "CONFIG_VETH")
    with pytest.raises(ConfigMissing, match=r"CONFIG_VETH=y \(is n\)") as caught:
        kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert "CONFIG_NET_SCH_TBF" not in str(caught.value)
    assert not half_built()


def test_source_that_looks_otherwise(calls: Path, tree: Path) -> None:
    (tree / "arch/um/Kconfig").write_text('config HZ\n\tint "ticks"\n')
    with pytest.raises(BuildFailed, match="arch/um/Kconfig"):
        kernel.ensure_kernel(KernelSpec(source_dir=tree))
    assert not half_built()


def test_interrupt_leaves_nothing(calls: Path, tree: Path) -> None:
    def interrupt(step: str, done: int = 0, total: int | None = None) -> None:
        if step.startswith("building") and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel.ensure_kernel(KernelSpec(source_dir=tree), interrupt)
    assert not half_built()


# --- fetching ----------------------------------------------------------------------------------

APT_SAYS = {
    "offline": ("E: Failed to fetch x  Temporary failure resolving 'mirror.invalid'", "online"),
    "refused": ("E: Failed to fetch x  Could not connect to mirror.invalid:80", "online"),
    "unsigned": ("E: GPG error: NO_PUBKEY 0123", "debian-archive-keyring"),
    "early": ("E: Release file for x is not valid yet (invalid for another 3d)", "clock"),
    "no space": ("E: Write error - write (28: No space left on device)", "LBE_CACHE"),
    "gone": ("E: Unable to locate package linux-source-6.12", "--kernel-source"),
    "other": ("E: something new", "something new"),
}


@pytest.mark.parametrize(("says", "expected"), APT_SAYS.values(), ids=APT_SAYS)
def test_apt_fails(calls: Path, monkeypatch: pytest.MonkeyPatch, says: str, expected: str) -> None:
    monkeypatch.setenv("FAKE_SAYS", says)
    with pytest.raises(NoSpace if "space" in says else FetchFailed, match=expected):
        kernel.ensure_kernel(KernelSpec())
    assert not half_built()


def test_apt_update_that_only_warns_is_a_failure(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """apt-get update returns 0 even if the mirror cannot be reached: a warning counts as a failure."""
    monkeypatch.setenv("FAKE_SAYS", "W: Failed to fetch x  Could not resolve 'mirror.invalid'")
    monkeypatch.setenv("FAKE_CODE", "0")
    with pytest.raises(FetchFailed, match="online"):
        kernel.ensure_kernel(KernelSpec())


def test_download_cut_short(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SIZE", "600")
    with pytest.raises(FetchFailed, match="broken; try again"):
        kernel.ensure_kernel(KernelSpec())
    assert not half_built()


def test_package_that_does_not_unpack_is_dropped(calls: Path) -> None:
    with pytest.raises(FetchFailed, match=r"unpacking linux-source-6\.12_6\.12\.9-1_all\.deb"):
        kernel.ensure_kernel(KernelSpec())
    assert not half_built(), "the broken package would be found again for ever"


def test_apt_is_private(calls: Path, tmp_path: Path) -> None:
    """Every folder that apt writes to is below the cache, and the system's hooks are disabled."""
    folder = tmp_path / "private"
    mirror.PrivateApt(folder, "6.12", MIRROR, Path("/keyring"))
    real = shutil.which("apt-config", path="/usr/bin")
    assert real
    done = subprocess.run([real, "-c", str(folder / "apt.conf"), "dump"], capture_output=True, text=True, check=True)
    setting = dict(line.rstrip(";").split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    for name in (
        "Dir::State::lists",
        "Dir::State::status",
        "Dir::Cache",
        "Dir::Cache::archives",
        "Dir::Etc::sourcelist",
        "Dir::Etc::sourceparts",
        "Dir::Log",
    ):
        assert setting[name].strip('"').startswith(str(folder)), name
    assert "Invoke::" not in done.stdout
    assert (folder / "sources.list").read_text() == (
        f"deb [arch=amd64 signed-by=/keyring target=Packages] {MIRROR} trixie main\n"
    )


# --- the mirror ----------------------------------------------------------------------------------

SOURCES = {
    "deb822": ("x.sources", "Types: deb\nURIs: http://a.invalid/debian\nSuites: bookworm\nComponents: main\n"),
    "deb822, second stanza": (
        "x.sources",
        "Types: deb\nURIs: http://other.invalid/\nSuites: nodistro\nComponents: main\n\n"
        "# why\nTypes: deb deb-src\nURIs: http://a.invalid/debian\nSuites:\n bookworm\n bookworm-updates\n"
        "Components: main\n",
    ),
    "deb822, first disabled": (
        "x.sources",
        "Enabled: no\nTypes: deb\nURIs: http://off.invalid/\nSuites: sid\nComponents: main\n\n"
        "Types: deb\nURIs: http://a.invalid/debian\nSuites: sid\nComponents: main\n",
    ),
    "security is not the archive": (
        "x.sources",
        "Types: deb\nURIs: http://sec.invalid/\nSuites: bookworm-security\nComponents: main\n\n"
        "Types: deb\nURIs: http://a.invalid/debian\nSuites: stable\nComponents: main contrib\n",
    ),
    "one line": ("x.list", "# deb http://off.invalid/ sid main\ndeb http://a.invalid/debian trixie main # x\n"),
    "one line, options": (
        "x.list",
        "deb cdrom:[Debian]/ bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://a.invalid/debian bookworm-backports main\n",
    ),
}


@pytest.mark.parametrize(("name", "text"), SOURCES.values(), ids=SOURCES)
def test_mirror_of_the_system(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.delenv("LBE_DEBIAN_MIRROR")
    (tmp_path / "etc/sources.list.d").mkdir(parents=True)
    (tmp_path / "etc/sources.list.d" / name).write_text(text)
    assert mirror.debian_mirror(tmp_path / "etc")[0] == "http://a.invalid/debian"


def test_no_mirror(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LBE_DEBIAN_MIRROR")
    with pytest.raises(FetchFailed, match=r"LBE_DEBIAN_MIRROR.*--kernel-source"):
        mirror.debian_mirror(tmp_path)


def test_no_keyring(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "DEBIAN_KEYRINGS", (tmp_path / "none",))
    with pytest.raises(FetchFailed, match="apt-get install debian-archive-keyring"):
        mirror.debian_mirror(tmp_path)


# --- configuration ----------------------------------------------------------------------------------


def test_fragments_parse_and_later_ones_win() -> None:
    plain = kernel.wanted_config("6.12", "plain")
    assert plain["CONFIG_UML_TIME_TRAVEL_SUPPORT"] == "y"
    assert plain["CONFIG_BLK_DEV"] == "n"
    assert kernel.wanted_config("6.1", "plain")["CONFIG_BLOCK"] == "y"
    assert kernel.wanted_config("6.12", "sanitizer")["CONFIG_KASAN"] == "y"


@pytest.mark.parametrize("path", sorted(series.FRAGMENTS.glob("*.config")), ids=lambda p: p.name)
def test_fragment_lines(path: Path) -> None:
    """Each line is an option, a comment or blank; no option is set twice."""
    lines = [line for line in path.read_text().splitlines() if line]
    options = [line for line in lines if "CONFIG_" in line]
    assert len(kernel.parse_config(path.read_text())) == len(options)
    assert all(line.startswith("#") for line in lines if line not in options)


def test_missing_options() -> None:
    wanted = kernel.parse_config("CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=y\n")
    built = kernel.parse_config("CONFIG_A=y\nCONFIG_B=y\nCONFIG_E=y\n")
    assert kernel.missing_options(wanted, built) == ["CONFIG_B=m (is y)", "CONFIG_D=y (is n)"]


# --- cache ------------------------------------------------------------------------------------------


def test_entry_is_whole_or_absent(tmp_path: Path) -> None:
    final = tmp_path / "entry"
    stale = tmp_path / ".entry.killed"
    stale.mkdir()
    with pytest.raises(ValueError, match="half"), cache.whole_entry(final) as work:
        (work / "file").touch()
        raise ValueError("half")
    assert not list(tmp_path.iterdir())
    with cache.whole_entry(final) as work:
        (work / "file").touch()
        assert not final.exists()
    assert [p.name for p in tmp_path.rglob("*")] == ["entry", "file"]


def test_disk_full_while_writing(tmp_path: Path) -> None:
    with pytest.raises(NoSpace, match="LBE_CACHE"), cache.whole_entry(tmp_path / "entry"):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", ["with blank", "with:colon", "with,comma"])
def test_cache_folder_that_make_cannot_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / name))
    with pytest.raises(KernelError, match="LBE_CACHE"):
        cache.cache_root()


def test_cache_folder_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(KernelError, match="cannot use the cache folder"):
        cache.cache_root()
