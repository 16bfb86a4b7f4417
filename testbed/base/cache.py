# SPDX-License-Identifier: GPL-2.0
"""The per-user cache: its folder, locks so that only one process builds an entry, and atomic entries."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .errors import KernelError, NoSpace
from .progress import Report, silent

MIB = 1 << 20


def cache_root() -> Path:
    """$LBE_CACHE, else $XDG_CACHE_HOME/lbe, else ~/.cache/lbe; created if missing."""
    if os.environ.get("LBE_CACHE"):
        root = Path(os.environ["LBE_CACHE"])
    elif os.environ.get("XDG_CACHE_HOME"):
        root = Path(os.environ["XDG_CACHE_HOME"]) / "lbe"
    else:
        root = Path.home() / ".cache" / "lbe"
    root = root.absolute()
    if any(c.isspace() or c in ":," for c in str(root)):
        raise KernelError(
            f"the cache folder {root} has a blank, a colon or a comma in its path, which the "
            "kernel's make and mount cannot take; set LBE_CACHE to another folder"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable")
    except OSError as error:
        raise KernelError(
            f"cannot use the cache folder {root} ({error.strerror}); set LBE_CACHE to a folder that you can write"
        ) from error
    return root


def need_space(folder: Path, need_mib: int, what: str) -> None:
    """Raise NoSpace if less than `need_mib` MiB are free, before a long step starts."""
    free_mib = shutil.disk_usage(folder).free // MIB
    if free_mib < need_mib:
        raise NoSpace(
            f"{what} needs {need_mib} MiB, and {folder} has {free_mib} MiB free; "
            "free some, or set LBE_CACHE to a folder on a larger disk"
        )


@contextlib.contextmanager
def lock(name: str, report: Report = silent) -> Iterator[None]:
    """Hold the cache's lock `name`; the kernel releases it when this process ends for any reason."""
    folder = cache_root() / "locks"
    folder.mkdir(exist_ok=True)
    with open(folder / name, "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another run that works on {name}", 0, None)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def whole_entry(final: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `final` if the block succeeds, and removed otherwise.

    The caller must hold the entry's lock: folders left by a killed run are removed.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{final.name}."
    for stale in final.parent.glob(prefix + "*"):
        remove(stale)
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=final.parent))
    work.chmod(0o755)
    try:
        yield work
        work.rename(final)
    except OSError as error:
        if error.errno == 28:  # ENOSPC
            raise NoSpace(
                f"no space left in {final.parent}; free some, or set LBE_CACHE to a folder on a larger disk"
            ) from error
        raise
    finally:
        if work.exists():
            remove(work)


def remove(path: Path) -> None:
    """Remove a folder or a file; it need not exist."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def size_mib(folder: Path) -> int:
    """Disk space of a folder, MiB."""
    total = sum(p.lstat().st_blocks * 512 for p in folder.rglob("*") if not p.is_dir())
    return total // MIB
