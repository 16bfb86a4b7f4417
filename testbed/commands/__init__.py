# SPDX-License-Identifier: GPL-2.0
"""The subcommands of the command line."""
