# SPDX-License-Identifier: GPL-2.0
"""Programs that runs need beside the product's modules, cached by content: agent, tools, guest modules."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..base.cache import cache_root, lock, whole_entry
from ..base.errors import BuildFailed, MissingTools
from ..base.places import AGENT_SOURCE, GUEST_MODULES, REPO
from ..base.progress import Report, silent
from ..kernels.build import KernelBuild, run_make
from ..kernels.modules import GUEST_HEADERS

#: sources of tc's plugin for the shred queue
PLUGIN_SOURCES = ("tools/tc/Makefile", "tools/tc/q_shred.c", "tools/tc/tc_abi.h", "sch_shred/uapi/shred.h")
CONTROL_SOURCES = (
    *sorted(
        str(path.relative_to(REPO))
        for tool in ("vulturectl", "libvulture")
        for path in (REPO / "tools" / tool).glob("*.[ch]")
    ),
    "tools/vulturectl/Makefile",
    "vulture/lists_gen.h",
    "vulture/uapi/vulture.h",
    "vulture/uapi/vulture_gen.h",
)


def _built(kind: str, result: str, sources: Iterable[Path], make: Callable[[Path], list[str]], report: Report) -> Path:
    """Path of ``result``, cached by the content of its sources; ``make`` gives the build command for a work folder."""
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    final = cache_root() / kind / digest.hexdigest()[:16]
    if (final / result).is_file():
        return final / result
    with lock(f"{kind}-{final.name}", report):
        if (final / result).is_file():
            return final / result
        report(f"building {result}", 0, None)
        with whole_entry(final) as work:
            done = subprocess.run(make(work), check=False, capture_output=True, text=True)
            if done.returncode:
                raise BuildFailed(f"{result} does not build:\n{done.stdout}{done.stderr}")
    return final / result


def agent_sources() -> list[Path]:
    """All files that the agent is built from."""
    sources = sorted(path for path in AGENT_SOURCE.iterdir() if path.suffix in (".c", ".h") or path.name == "Makefile")
    if not any(path.suffix == ".c" for path in sources):
        raise BuildFailed(f"the traffic agent has no source under {AGENT_SOURCE.name}/")
    return [*sources, REPO / "sch_shred" / "uapi" / "shred.h"]


def build_agent(report: Report = silent) -> Path:
    """The guest agent, cached by the content of its source."""
    return _built(
        "agent", "lbe-agent", agent_sources(), lambda work: ["make", "-s", "-C", str(AGENT_SOURCE), f"O={work}"], report
    )


def build_tc_plugin(report: Report = silent) -> Path:
    """q_shred.so, cached by the content of its source."""
    sources = [REPO / name for name in PLUGIN_SOURCES]
    return _built(
        "tc", "q_shred.so", sources, lambda work: ["make", "-s", "-C", str(REPO / "tools" / "tc"), f"O={work}"], report
    )


def build_vulturectl(report: Report = silent) -> Path:
    """vulturectl, cached by the content of its source."""
    sources = [REPO / name for name in CONTROL_SOURCES]
    return _built(
        "vulturectl",
        "vulturectl",
        sources,
        lambda work: ["make", "-s", "-C", str(REPO / "tools" / "vulturectl"), f"O={work}"],
        report,
    )


def build_go_program(source: Path, report: Report = silent) -> Path:
    """A statically linked program of one Go file, cached by the content of the file."""
    if not shutil.which("go"):
        raise MissingTools(f"no Go compiler for {source.name}; `scripts/deps go` installs it")
    static = ["env", "CGO_ENABLED=0", "GO111MODULE=off", "GOTOOLCHAIN=local"]
    return _built(
        "go",
        source.stem,
        [source],
        lambda work: [*static, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", f"{work}/", str(source)],
        report,
    )


@dataclass(frozen=True)
class Extra:
    """A tool of the project that a job may call. link: its name in the job folder; line: its line in env.sh."""

    link: str
    line: str
    build: Callable[[], Path]
    wanted: Callable[[dict[str, str]], bool]


EXTRAS = (
    # only for jobs that need it: with TC_LIB_DIR tc looks for its own tables (netem's) in the same folder
    Extra(
        "tc/q_shred.so",
        "export TC_LIB_DIR=/tmp/job/tc",
        build_tc_plugin,
        lambda files: any(" shred " in text for name, text in files.items() if name.endswith(".tc")),
    ),
    Extra(
        "bin/vulturectl",
        "export PATH=/tmp/job/bin:$PATH",
        build_vulturectl,
        lambda files: "vulturectl " in files.get("events.sh", ""),
    ),
)


def extras_of(files: dict[str, str]) -> dict[Extra, Path]:
    """Build the tools that a job's files call."""
    return {extra: extra.build() for extra in EXTRAS if extra.wanted(files)}


def build_side_modules(
    build: KernelBuild, name: str, content: str, files: dict[str, Path], words: Iterable[str], what: str, report: Report
) -> dict[str, Path]:
    """Modules of the testbed for a user-mode kernel, built once: name -> .ko.

    name: their folder in the cache; content: hash of all their sources; files: path in the build -> source.
    """
    final = cache_root() / "guest-modules" / name
    with lock(f"guest-modules-{content}", report):
        if not final.is_dir():
            log = cache_root() / "logs" / f"guest-modules-{content}.log"
            log.parent.mkdir(exist_ok=True)
            with whole_entry(final) as work:
                for place, path in files.items():
                    (work / place).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, work / place)
                run_make(["-C", str(build.kdir), f"M={work}", "ARCH=um", *words, "modules"], log, what, 5, report)
    return {path.stem: path for path in sorted(final.glob("*.ko"))}


def content_of(build: KernelBuild, files: dict[str, Path]) -> str:
    """Hash of a kernel's build and of these files with their paths in the build."""
    digest = hashlib.sha256(build.key.encode())
    for name, path in files.items():
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build_guest_modules(build: KernelBuild, report: Report = silent) -> dict[str, Path]:
    """Modules for guests only (guest-modules/), cached by content and kernel."""
    files = {
        path.name: path
        for path in sorted(GUEST_MODULES.iterdir())
        if path.suffix in (".c", ".h") or path.name == "Kbuild"
    }
    files |= {name: REPO / name for name in GUEST_HEADERS}
    content = content_of(build, files)
    name = f"{build.release}-{build.flavour}-{content}"
    words = [f"LBE_VERSION=testbed-{content}"]
    return build_side_modules(build, name, content, files, words, "building the testbed's own modules", report)
