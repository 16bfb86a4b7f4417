# SPDX-License-Identifier: GPL-2.0
"""Benchmarks: the speed of the testbed compared with ns-3."""
