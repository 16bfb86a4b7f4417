# SPDX-License-Identifier: GPL-2.0
"""Where a job runs. A backend takes a job folder and leaves the guest's results in another.

uml is the default: a user-mode kernel in virtual time. Other backends (a distribution's kernel in QEMU,
the running kernel's namespaces, three machines) take the same job: they set AGENT, MODULES and OUT in env.sh.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .cache import cache_root, lock, whole_entry
from .errors import BuildFailed, LbeError
from .progress import Report, silent

if TYPE_CHECKING:
    from .kernel import KernelBuild

HERE = Path(__file__).resolve().parent
REPO = HERE.parent
AGENT_SOURCE = HERE / "agent"
GUEST_MODULES = HERE / "guest-modules"
#: the product's headers that they are built with
GUEST_HEADERS = (
    "include/lbe/compat.h",
    "include/lbe/arith.h",
    "include/lbe/fixed_point.h",
    "tcp_lowpri/lowpri_law.h",
)
#: tc's plugin for the shred queue: what it is made of
PLUGIN_SOURCES = ("tools/tc/Makefile", "tools/tc/q_shred.c", "tools/tc/tc_abi.h", "sch_shred/uapi/shred.h")
CONTROL_SOURCES = (
    "tools/vulturectl/vulturectl.c",
    "tools/vulturectl/Makefile",
    "tools/libvulture/libvulture.c",
    "tools/libvulture/vulture.h",
    "vulture/uapi/vulture.h",
)
#: where the guest sees the host's root (guest/init.sh)
HOST_ROOT = "/tmp/host"
#: folders that are not named like their module
FOLDERS = {"shred_hint": "sch_shred", "shred_rto": "sch_shred"}


class BackendError(LbeError):
    """A backend is unknown or cannot run here."""

    exit_status = 2


@dataclass(frozen=True)
class RunReport:
    """How long a run took, in both kinds of time."""

    wall_s: float
    virtual_s: float


@dataclass
class Tools:
    """What runs need on the host: agent and modules, by content."""

    agent: Path
    modules: dict[str, Path] = field(default_factory=dict)
    modules_version: str = ""
    hashes: dict[str, str] = field(default_factory=dict)

    def module_hash(self, name: str) -> str:
        """Content of a module (its source, where it is ours); BackendError if it is not built."""
        if name not in self.modules:
            raise BackendError(
                f"module {name}: not built for this kernel; there are " + (", ".join(sorted(self.modules)) or "none")
            )
        return self.hashes[name]


class Backend(Protocol):
    """What the runner asks of a backend."""

    name: str
    #: how many machines at once where nobody said; None: one for each CPU
    at_once: int | None

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Build or fetch what all runs share; ``modules``: those that some run loads."""

    def facts(self) -> dict[str, str]:
        """Kernel and modules, for the provenance."""

    def tools(self) -> Tools:
        """Agent and modules."""

    def key(self) -> str:
        """What of the backend decides a result."""

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Run a job folder; an error (errors.MachineFailure) if it did not end well."""


def _built(kind: str, result: str, sources: Iterable[Path], make: Callable[[Path], list[str]], report: Report) -> Path:
    """``result``, made once per content of its sources; ``make`` gives the command for a work folder."""
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


def build_agent(report: Report = silent) -> Path:
    """The guest agent, built once per content of its source."""
    sources = sorted(path for path in AGENT_SOURCE.iterdir() if path.suffix in (".c", ".h") or path.name == "Makefile")
    if not any(path.suffix == ".c" for path in sources):
        raise BuildFailed(f"the traffic agent has no source under {AGENT_SOURCE.name}/")
    sources.append(REPO / "sch_shred" / "uapi" / "shred.h")
    return _built(
        "agent", "lbe-agent", sources, lambda work: ["make", "-s", "-C", str(AGENT_SOURCE), f"O={work}"], report
    )


def build_tc_plugin(report: Report = silent) -> Path:
    """q_shred.so, built once per content of its source."""
    sources = [REPO / name for name in PLUGIN_SOURCES]
    return _built(
        "tc", "q_shred.so", sources, lambda work: ["make", "-s", "-C", str(REPO / "tools" / "tc"), f"O={work}"], report
    )


def build_vulturectl(report: Report = silent) -> Path:
    """vulturectl, built once per content of its source."""
    sources = [REPO / name for name in CONTROL_SOURCES]
    return _built(
        "vulturectl",
        "vulturectl",
        sources,
        lambda work: ["make", "-s", "-C", str(REPO / "tools" / "vulturectl"), f"O={work}"],
        report,
    )


@dataclass(frozen=True)
class Extra:
    """A tool of ours that a job calls. link: its name in the job folder; line: what env.sh says of it."""

    link: str
    line: str
    build: Callable[[], Path]
    wanted: Callable[[dict[str, str]], bool]


EXTRAS = (
    # only where it is asked for: tc looks for its own tables (netem's) in the same folder
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
    """The tools that a job's files call, built."""
    return {extra: extra.build() for extra in EXTRAS if extra.wanted(files)}


def build_side_modules(
    build: KernelBuild, name: str, content: str, files: dict[str, Path], words: Iterable[str], what: str, report: Report
) -> dict[str, Path]:
    """Modules of the testbed's own for a user-mode kernel, built once: name -> .ko.

    name: their folder in the cache; content: hash of all that they are made of; files: place in the build -> source.
    """
    from .kernel import run_make

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
    """Hash of a kernel's build and of these files, by their places."""
    digest = hashlib.sha256(build.key.encode())
    for name, path in files.items():
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build_guest_modules(build: KernelBuild, report: Report = silent) -> dict[str, Path]:
    """Modules that only guests load (guest-modules/), built once per content and kernel."""
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


class Uml:
    """User-mode kernel in virtual time; needs neither root nor KVM."""

    name = "uml"
    at_once = None

    def __init__(self, series: str | None = None, flavour: str = "plain", source_dir: Path | None = None):
        """series: None is the default one."""
        from .kernel import DEFAULT_SERIES, FLAVOURS, USER_MODE_FLAVOURS, KernelSpec

        if flavour in FLAVOURS and flavour not in USER_MODE_FLAVOURS:
            known = " and ".join(USER_MODE_FLAVOURS)
            raise BackendError(f"--flavour {flavour}: a kernel for QEMU alone; user mode has {known}")
        self.spec = KernelSpec(series=series or DEFAULT_SERIES, flavour=flavour, source_dir=source_dir)
        self.build = None
        self._tools: Tools | None = None

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Kernel, modules, agent: from the cache, or built into it."""
        from .kernel import ensure_kernel
        from .modules import content_key, ensure_modules, included, module_folders, source_files

        modules = set(modules)
        agent = build_agent(report)
        self.build = ensure_kernel(self.spec, report)
        have = module_folders(REPO)
        folders = sorted({folder for name in modules if (folder := FOLDERS.get(name, name)) in have})
        built = ensure_modules(self.build, REPO, folders, report)
        # a commit changes the version inside every .ko; what decides a result is the source and what it includes
        hashes = {}
        for name, path in built.paths.items():
            folder = FOLDERS.get(name, name)
            sources = source_files(REPO, [folder]) if folder in folders else []
            ours = [p for p in sources if p.parts[0] == folder and ("tests" not in p.parts or p.stem == name)]
            hashes[name] = (
                content_key(REPO, [Path("Kbuild"), *included(REPO, ours), *ours])
                if ours
                else hashlib.sha256(path.read_bytes()).hexdigest()
            )
        paths = dict(built.paths)
        if any((GUEST_MODULES / f"{name}.c").is_file() for name in modules):
            guest = build_guest_modules(self.build, report)
            paths |= guest
            hashes |= {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in guest.items()}
        self._tools = Tools(agent, paths, built.version, hashes)

    def facts(self) -> dict[str, str]:
        """Which kernel this is."""
        return {
            "series": self.spec.series,
            "flavour": self.spec.flavour,
            "release": str(self.build.release),
            "source": Path(self.build.source).name,
            "key": self.build.key,
        }

    def tools(self) -> Tools:
        """Agent and modules."""
        return self._tools

    def key(self) -> str:
        """The kernel's build, and what boots it and sets it up."""
        around = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in ("guest/init.sh", "machine.py")))
        return f"uml-{self.build.key}-{around.hexdigest()[:16]}"

    def lay_out(self, job: Path) -> None:
        """Put env.sh and links to the tools beside a written job."""
        tools = self.tools()
        # the guest sees one text whatever this machine's paths are: links lead to the host's root
        environment = "AGENT=/tmp/job/lbe-agent\nMODULES=/tmp/job/modules\nOUT=$LBE_OUT\n"
        files = {
            path.name: path.read_text(encoding="ascii")
            for path in job.iterdir()
            if path.is_file() and path.suffix in (".tc", ".sh")
        }
        called = {}
        for extra, path in extras_of(files).items():
            environment += extra.line + "\n"
            called[extra.link] = path
            (job / extra.link).parent.mkdir(exist_ok=True)
        (job / "env.sh").write_text(environment, encoding="ascii")
        (job / "modules").mkdir(exist_ok=True)
        links = {f"modules/{name}.ko": path for name, path in tools.modules.items()}
        for name, path in {"lbe-agent": tools.agent, **links, **called}.items():
            (job / name).unlink(missing_ok=True)
            (job / name).symlink_to(f"{HOST_ROOT}{path}")

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Boot, run, power off."""
        from .machine import Machine

        self.lay_out(job)
        done = Machine(self.build, mem_mb=mem_mb).run(
            job=job, out=out, seed=seed, modules=[], virtual_limit_s=virtual_limit_s, wall_limit_s=wall_limit_s
        )
        return RunReport(done.wall_s, done.virtual_s)


BACKENDS = ("uml", "qemu", "host", "ssh")


def make_backend(
    name: str,
    series: str | None = None,
    flavour: str = "plain",
    source_dir: Path | None = None,
    machines: Path | None = None,
) -> Backend:
    """The backend of this name; BackendError where it has no such kernel. machines: the file that ssh needs."""
    if name not in BACKENDS:
        raise BackendError(f"no backend {name!r}: there are {', '.join(BACKENDS)}")
    if (name == "ssh") != (machines is not None):
        raise BackendError("--backend ssh and --machines FILE belong together")
    if name == "uml":
        return Uml(series, flavour, source_dir)
    if flavour != "plain" or source_dir:
        raise BackendError(f"--backend {name} takes the kernel as it is: no --flavour, no --kernel-source")
    if name == "qemu":
        from .kernel import DEFAULT_SERIES
        from .qemu import Qemu

        return Qemu(series or DEFAULT_SERIES)
    if name == "host":
        from .host import Host

        return Host()
    from .machines import Ssh

    return Ssh(machines)
