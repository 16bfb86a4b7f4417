# SPDX-License-Identifier: GPL-2.0
"""Selection of a backend by name."""

from __future__ import annotations

from pathlib import Path

from ..backends.backend import Backend, BackendError
from ..backends.netns import Host
from ..backends.ns2.machine import Ns2
from ..backends.ns3.machine import Ns3
from ..backends.qemu import Qemu
from ..backends.ssh import Ssh
from ..backends.uml import Uml
from ..kernels.series import DEFAULT_SERIES

BACKENDS = ("uml", "qemu", "host", "ssh", "ns2", "ns3")


def make_backend(
    name: str,
    series: str | None = None,
    flavour: str = "plain",
    source_dir: Path | None = None,
    machines: Path | None = None,
) -> Backend:
    """The backend of this name; BackendError if it cannot use the given kernel. machines: the file for ssh."""
    if name not in BACKENDS:
        raise BackendError(f"no backend {name!r}: there are {', '.join(BACKENDS)}")
    if (name == "ssh") != (machines is not None):
        raise BackendError("--backend ssh and --machines FILE belong together")
    if name == "uml":
        return Uml(series, flavour, source_dir)
    if flavour != "plain" or source_dir:
        raise BackendError(f"--backend {name} takes the kernel as it is: no --flavour, no --kernel-source")
    if name == "qemu":
        return Qemu(series or DEFAULT_SERIES)
    if name == "host":
        return Host()
    if name == "ns2":
        return Ns2()
    if name == "ns3":
        return Ns3()
    assert machines is not None  # checked above for ssh
    return Ssh(machines)
