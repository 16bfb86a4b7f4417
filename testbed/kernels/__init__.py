# SPDX-License-Identifier: GPL-2.0
"""Kernels and modules: fetched, built, and cached by a hash of their content."""
