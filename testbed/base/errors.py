# SPDX-License-Identifier: GPL-2.0
"""The errors of the testbed, a class for each kind.

A failure is never a result: code that runs an experiment catches `LbeError`,
prints it and exits with `exit_status`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


class LbeError(Exception):
    """Base class. `exit_status` is the exit status of a command: 1 failure, 2 wrong usage or input."""

    exit_status = 1


def exit_with(name: str, main: Callable[[], int]) -> NoReturn:
    """Exit with the status that ``main`` returns; after an LbeError, print it with the name, and use its status."""
    try:
        sys.exit(main())
    except LbeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


# --- kernel: source, configuration, build ---------------------------------------------


class KernelError(LbeError):
    """A kernel or a module is not available. No incomplete entry remains in the cache."""


class UnsupportedSeries(KernelError):
    """The requested series or flavour is not supported."""

    exit_status = 2


class MissingTools(KernelError):
    """Programs that the build needs are not installed; the text names their packages."""


class FetchFailed(KernelError):
    """The kernel source could not be downloaded or unpacked."""


class NoSpace(KernelError):
    """The file system of the cache folder is full, or has too little space to start."""


class ConfigMissing(KernelError):
    """Requested options are missing in the resulting configuration."""


class BuildFailed(KernelError):
    """make failed; the text has its last lines and the path of the log."""


# --- machine: one boot ----------------------------------------------------------------


class MachineFailure(LbeError):
    """A boot without a result.

    `text`: the line that describes the failure. `tail`: the end of the console.
    `console`: its file, if there is one. `also`: other kinds of failure in the same log.
    """

    kind = "failure"

    def __init__(
        self,
        text: str,
        tail: str = "",
        console: Path | None = None,
        also: tuple[str, ...] = (),
    ):
        self.text, self.tail, self.console, self.also = text, tail, console, also
        lines = [f"{self.kind}: {text}"]
        if also:
            lines.append("also seen: " + ", ".join(also))
        if tail:
            lines.append("the console ends:\n" + "\n".join("    " + t for t in tail.splitlines()))
        if console:
            lines.append(f"whole console: {console}")
        super().__init__("\n".join(lines))


class Panic(MachineFailure):
    kind = "kernel panic"


class Oops(MachineFailure):
    """A fault or BUG() in kernel code."""

    kind = "kernel oops"


class KernelWarning(MachineFailure):
    """WARN(), or another message of the kernel about a fault."""

    kind = "kernel warning"


class Kasan(MachineFailure):
    kind = "KASAN report"


class Lockdep(MachineFailure):
    kind = "lockdep report"


class AtomicSleep(MachineFailure):
    kind = "sleep in atomic context"


class Kmemleak(MachineFailure):
    kind = "kmemleak report"


class Ubsan(MachineFailure):
    kind = "UBSAN report"


class OutOfMemory(MachineFailure):
    kind = "out of memory"


class VirtualHang(MachineFailure):
    """The job did not end within its virtual time."""

    kind = "hang in virtual time"


class WallHang(MachineFailure):
    """The kernel did not end within its wall time; it was killed."""

    kind = "hang in wall time"


class CutShort(MachineFailure):
    """The kernel ended without a failure message and without a status."""

    kind = "console cut short"


class EmptyLog(MachineFailure):
    """The kernel ended and its console is empty."""

    kind = "empty console"


class JobFailed(MachineFailure):
    """The job, or its set-up, returned an error; the kernel reported none."""

    kind = "job failed"
