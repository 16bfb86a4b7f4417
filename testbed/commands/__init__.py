# SPDX-License-Identifier: GPL-2.0
"""The verbs of the command line."""
