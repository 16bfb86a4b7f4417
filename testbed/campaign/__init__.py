# SPDX-License-Identifier: GPL-2.0
"""Campaigns: all figures and the scoreboard within a given time. Which runs to make, in which form, and the command."""
