# SPDX-License-Identifier: GPL-2.0
"""Every figure and the scoreboard within a time: what to run, in which form, and the command that does it."""
