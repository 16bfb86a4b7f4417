# SPDX-License-Identifier: GPL-2.0
"""What is booted: kernels and modules, fetched, built and kept by content."""
