# SPDX-License-Identifier: GPL-2.0
"""The suite beside programs that nobody here wrote, on a distribution's kernel, under systemd."""
