# SPDX-License-Identifier: GPL-2.0
"""What runs leave: result files, and the digests of them that the tree keeps."""
