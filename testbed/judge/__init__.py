# SPDX-License-Identifier: GPL-2.0
"""Numbers against bounds: checks, figures of papers, the scoreboard."""
