# SPDX-License-Identifier: GPL-2.0
"""What every room uses: errors, the cache, progress, places in the tree, the project's own Python."""
