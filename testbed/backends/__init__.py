# SPDX-License-Identifier: GPL-2.0
"""Where a job runs: a user-mode kernel, QEMU, namespaces of this machine, machines over ssh."""
