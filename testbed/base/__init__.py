# SPDX-License-Identifier: GPL-2.0
"""Shared by all packages of the testbed: errors, cache, progress, places in the tree, the project's own Python."""
