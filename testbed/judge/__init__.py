# SPDX-License-Identifier: GPL-2.0
"""Comparison of measured numbers with bounds: checks, numbers of papers, the scoreboard."""
