# SPDX-License-Identifier: GPL-2.0
"""Helpers of tests: KUnit in a guest, a script in a guest, a header compiled for this machine, a kernel with KCSAN."""
