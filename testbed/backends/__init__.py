# SPDX-License-Identifier: GPL-2.0
"""Backends that run jobs: a user-mode kernel, QEMU, namespaces of this machine, machines over ssh, ns-2."""
