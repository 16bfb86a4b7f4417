# SPDX-License-Identifier: GPL-2.0
"""Presentation of results: plots, tables and pages."""
