# SPDX-License-Identifier: GPL-2.0
"""Every way in which the testbed can fail, one class each.

A failure is never a result: whoever runs an experiment catches `LbeError`,
prints it and exits with `exit_status`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


class LbeError(Exception):
    """Base of all. `exit_status` is what a command returns: 1 failed, 2 asked wrongly."""

    exit_status = 1


def exit_with(name: str, main: Callable[[], int]) -> NoReturn:
    """End the program with what ``main`` returns; after a failure with its words, behind the name, and its status."""
    try:
        sys.exit(main())
    except LbeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


# --- kernel: source, configuration, build ---------------------------------------------


class KernelError(LbeError):
    """A kernel or a module could not be had. Nothing half-built stays in the cache."""


class UnsupportedSeries(KernelError):
    """The series or flavour asked for is none that the testbed knows."""

    exit_status = 2


class MissingTools(KernelError):
    """Programs that the build needs are not installed; the text names their packages."""


class FetchFailed(KernelError):
    """The kernel source could not be downloaded or unpacked."""


class NoSpace(KernelError):
    """The cache folder's file system is full, or too small to begin."""


class ConfigMissing(KernelError):
    """Options asked for did not survive in the configuration."""


class BuildFailed(KernelError):
    """make failed; the text has its last lines and the log's path."""


# --- machine: one boot ----------------------------------------------------------------


class MachineFailure(LbeError):
    """A boot that gave no result.

    `text`: the line that tells what happened. `tail`: the end of the console.
    `console`: its file, if there is one. `also`: other kinds seen in the same log.
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
    """WARN(), or a complaint that some part of the kernel makes about another."""

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
    """The kernel ended without a word and left no status."""

    kind = "console cut short"


class EmptyLog(MachineFailure):
    """The kernel ended and its console is empty."""

    kind = "empty console"


class JobFailed(MachineFailure):
    """The kernel is well; the job, or its set-up, returned an error."""

    kind = "job failed"
