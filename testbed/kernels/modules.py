# SPDX-License-Identifier: GPL-2.0
"""The project's modules, built for one of the testbed's kernels and cached by content.

    repository -> snapshot in the cache -> make modules KDIR=... ARCH=... -> ModuleSet

The key of a snapshot is the content of the module folders, the version string and the kernel. Parallel
runs, several kernels and changes of the source during a build therefore never share object files.

Command line:
    python3 -m testbed.kernels.modules [--series S] [--flavour F] [--kernel-source DIR] [FOLDER ...]
prints a line "name path" for each module; with FOLDERs, for the modules of these folders only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.cache import cache_root, lock, need_space, remove, whole_entry
from ..base.content import C_SUFFIXES, hash_of_programs
from ..base.errors import BuildFailed, KernelError, LbeError
from ..base.places import GUEST_MODULES, REPO
from ..base.progress import Report, make_progress, silent
from .build import KernelBuild, ensure_kernel, jobs, run_make
from .series import DEFAULT_SERIES, TOOLS, KernelSpec, check_tools, key_of

#: module -> folder, where their names differ
FOLDERS = {"shred_hint": "sch_shred", "shred_rto": "sch_shred"}
#: headers of the product that the guest modules include
GUEST_HEADERS = (
    "include/lbe/compat.h",
    "include/lbe/arith.h",
    "include/lbe/fixed_point.h",
    "tcp_lowpri/lowpri_law.h",
)
# Files that the build of every module folder needs; a folder with a Kbuild is a module folder.
SHARED = ("Kbuild", "Makefile", "VERSION", "scripts", "include")
# Matches source files by suffix or name; object files and caches do not match.
SOURCE = re.compile(r"(\.(c|h|S|py|sh|config|kunitconfig)|/(Kbuild|Kconfig|Makefile|VERSION|version))$")
COMPAT = Path("include/lbe/compat.h")
LBE_INCLUDE = re.compile(r"^#\s*include\s*<(lbe/[\w.]+)>", re.MULTILINE)
GENERATED = re.compile(r"\.mod\.c$")
KEEP_DAYS = 14  # module builds that are not used for this time are removed


@dataclass(frozen=True)
class ModuleSet:
    """Modules by name: the project's and the kernel's. The in-tree tcp_lp is named "tcp_lp_intree".

    `version`: the string in MODULE_VERSION and in every result file.
    """

    paths: dict[str, Path]
    version: str

    @property
    def kunit(self) -> list[str]:
        """Names of the modules with KUnit suites."""
        return sorted(name for name in self.paths if name.endswith("_kunit"))

    def load_order(self, names: Iterable[str]) -> list[Path]:
        """Paths of the named modules and of all modules they depend on, in the order of loading.

        Raises KernelError for a name that is not in the set.
        """
        done: dict[str, Path] = {}

        def visit(name: str, asked_by: str) -> None:
            if name in done:
                return
            if name not in self.paths:
                raise KernelError(f"no module {name!r}{asked_by}; there are: {', '.join(sorted(self.paths))}")
            for other in depends(self.paths[name]):
                visit(other, f" (needed by {name})")
            done[name] = self.paths[name]

        for name in names:
            visit(name, "")
        return list(done.values())


def depends(module: Path) -> list[str]:
    """Names of the modules that a .ko depends on, from its modinfo."""
    match = re.search(rb"(?:^|\0)depends=([^\0]*)\0", module.read_bytes())
    names = match.group(1).decode("ascii") if match else ""
    return [name for name in names.split(",") if name]


def module_folders(repo: Path) -> list[str]:
    """Top-level folders that contain a Kbuild."""
    return sorted(p.parent.name for p in repo.glob("*/Kbuild"))


def source_files(repo: Path, folders: Sequence[str]) -> list[Path]:
    """Paths, relative to the repository, of all files that a module build reads."""
    found = []
    for name in (*SHARED, *folders):
        top = repo / name
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for path in files:
            text = path.as_posix()
            if SOURCE.search(text) and not GENERATED.search(text) and path.is_file():
                found.append(path.relative_to(repo))
    return found


def included(repo: Path, files: Iterable[Path]) -> list[Path]:
    """The shared headers that C files are compiled with, relative to the repository: those that they include, directly
    or indirectly, and compat.h, which Kbuild includes before every source."""
    found = {COMPAT}
    ahead = [COMPAT, *files]
    while ahead:
        path = ahead.pop()
        if path.suffix not in (".c", ".h"):
            continue
        for name in LBE_INCLUDE.findall((repo / path).read_text(encoding="utf-8")):
            header = Path("include", name)
            if header not in found and (repo / header).is_file():
                found.add(header)
                ahead.append(header)
    return sorted(found)


def program_hash(name: str, repo: Path = REPO) -> str:
    """Hash of the files that a module of the project is compiled from, without comments; "" for any other module."""
    folder = FOLDERS.get(name, name)
    if (GUEST_MODULES / f"{name}.c").is_file():
        ours = [GUEST_MODULES / f"{name}.c", GUEST_MODULES / "Kbuild", *(repo / header for header in GUEST_HEADERS)]
        return hash_of_programs(ours)
    if not (repo / folder / "Kbuild").is_file():
        return ""
    files = [path for path in source_files(repo, [folder]) if path.parts[0] == folder]
    files = [path for path in files if path.suffix in C_SUFFIXES or path.name in ("Kbuild", "Makefile")]
    files = [path for path in files if "tests" not in path.parts or path.stem == name]
    return hash_of_programs([repo / "Kbuild", *(repo / path for path in [*included(repo, files), *files])])


def content_key(repo: Path, files: Sequence[Path]) -> str:
    """Hash of the files' names and contents."""
    state = hashlib.sha256()
    for path in files:
        data = (repo / path).read_bytes()
        state.update(f"{path}\0{len(data)}\0".encode() + data)
    return state.hexdigest()


def version_of(repo: Path, content: str) -> str:
    """The output of scripts/version; without a git history and a VERSION file, the content's hash."""
    done = (
        subprocess.run([str(repo / "scripts" / "version")], capture_output=True, text=True, check=False)
        if (repo / "scripts" / "version").exists()
        else None
    )
    if done and done.returncode == 0 and done.stdout.strip():
        return done.stdout.strip()
    return f"content-{content[:12]}"


def collect(build: KernelBuild, tree: Path, version: str) -> ModuleSet:
    """The modules of a built snapshot and the kernel's in-tree modules."""
    paths = {("tcp_lp_intree" if name == "tcp_lp" else name): path for name, path in build.intree.items()}
    for path in sorted(tree.rglob("*.ko")):
        paths[path.stem] = path
    return ModuleSet(paths, version)


def ensure_modules(
    build: KernelBuild,
    repo: Path = REPO,
    folders: Sequence[str] | None = None,
    progress: Report | None = None,
) -> ModuleSet:
    """The repository's modules for a kernel, built if the cache does not have them with this content.

    `folders`: these module folders only; None means all. Raises BuildFailed, NoSpace, MissingTools.
    """
    report = progress or silent
    repo = Path(repo).resolve()
    have = module_folders(repo)
    folders = have if folders is None else list(folders)
    unknown = [f for f in folders if f not in have]
    if unknown:
        raise KernelError(f"no module folder {', '.join(unknown)}; there are: {', '.join(have)}")
    files = source_files(repo, folders)
    content = content_key(repo, files)
    version = version_of(repo, content)
    final = (
        cache_root() / "modules" / f"{build.release}-{build.flavour}-"
        f"{key_of(build.key, content, version, sorted(folders))}"
    )
    if final.is_dir():
        os.utime(final)
        return collect(build, final, version)
    if not folders:
        return collect(build, final, version)
    check_tools(TOOLS)
    with lock(f"modules-{final.name}", report):
        if not final.is_dir():
            build_modules(build, repo, files, version, final, report)
    forget_old(final.parent)
    return collect(build, final, version)


def build_modules(
    build: KernelBuild, repo: Path, files: Sequence[Path], version: str, final: Path, report: Report
) -> None:
    """Copy the files, run the top Makefile, and store the tree under its final name."""
    final.parent.mkdir(exist_ok=True)
    need_space(final.parent, 50, "building the modules")
    logs = cache_root() / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"modules-{final.name}.log"
    log.unlink(missing_ok=True)
    with whole_entry(final) as tree:
        for path in files:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(repo / path, tree / path)
        words = [
            "-C", str(tree), "modules", f"KDIR={build.kdir}", f"ARCH={build.arch}",
            f"LBE_VERSION={version}", f"-j{jobs()}",
        ]  # fmt: skip
        step = f"building the modules for {build.release} ({build.flavour})"
        run_make(words, log, step, 4 * sum(p.suffix == ".c" for p in files) + 10, report)
        if not any(tree.rglob("*.ko")):
            raise BuildFailed(f"make modules built no module; log: {log}")
    log.unlink(missing_ok=True)


def forget_old(folder: Path) -> None:
    """Remove module builds that have not been used for KEEP_DAYS."""
    oldest = time.time() - KEEP_DAYS * 86400
    for path in folder.glob("[!.]*"):
        if path.stat().st_mtime < oldest:
            remove(path)


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0 success, 1 failure, 2 wrong usage."""
    top = argparse.ArgumentParser(prog="python3 -m testbed.kernels.modules", description=__doc__.split("\n")[0])
    top.add_argument("--series", default=DEFAULT_SERIES)
    top.add_argument("--flavour", default="plain")
    top.add_argument("--kernel-source", type=Path, metavar="DIR")
    top.add_argument("folders", nargs="*", metavar="FOLDER", help="module folders; default: all")
    args = top.parse_args(argv)
    progress = make_progress()
    try:
        spec = KernelSpec(args.series, args.flavour, args.kernel_source)
        modules = ensure_modules(ensure_kernel(spec, progress), folders=args.folders or None, progress=progress)
    except LbeError as error:
        print(f"{top.prog}: {error}", file=sys.stderr)
        return error.exit_status
    finally:
        progress.close()
    for name, path in modules.paths.items():
        print(name, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
