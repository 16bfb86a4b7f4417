# SPDX-License-Identifier: GPL-2.0
"""Debian's PREEMPT_RT kernel in QEMU, made and booted as the other distribution kernels (backends/distro.py).

Almost every lock of such a kernel sleeps, and softirqs run in threads that can be preempted. Code that takes a lock
or allocates memory where it may not sleep works elsewhere, and here the kernel reports it.
"""

from __future__ import annotations

import os
import platform

from ..backends.distro import IMAGE_MIB, MAKE_ROOT, Image, NoDistro, check_tools, digest_of, run_script
from ..base.cache import cache_root, lock, need_space, whole_entry
from ..base.places import SCRIPTS
from ..base.progress import Report, silent
from ..kernels.mirror import debian_mirror

#: as scripts/distro names it
SERIES = "rt-6.12"


def ensure_image(report: Report = silent) -> Image:
    """Its image, from the cache or made."""
    if platform.machine() != "x86_64":
        raise NoDistro(f"the distribution kernels are those of x86_64; this machine is {platform.machine()}")
    key = digest_of([MAKE_ROOT, SCRIPTS / "first.sh"])[:16]
    final = cache_root() / "distro" / f"{SERIES}-{key}"
    if not final.is_dir():
        with lock(f"distro-{final.name}", report):
            if not final.is_dir():
                check_tools(("mmdebstrap", "mke2fs", "unshare"))
                need_space(cache_root(), IMAGE_MIB, f"a Debian root for {SERIES}")
                mirror, keyring = debian_mirror()
                report(f"making a Debian root with kernel {SERIES}", 0, None)
                with whole_entry(final) as work:
                    log = cache_root() / "logs" / f"distro-{SERIES}.log"
                    run_script(MAKE_ROOT, [SERIES, mirror, keyring, work], log)
    os.utime(final)
    return Image(SERIES, final, f"{SERIES}-{key}")
