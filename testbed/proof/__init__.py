# SPDX-License-Identifier: GPL-2.0
"""The suite together with unmodified programs of a distribution, on its kernel, under systemd."""
