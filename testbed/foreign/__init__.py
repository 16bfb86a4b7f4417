# SPDX-License-Identifier: GPL-2.0
"""Suites that others wrote, run against the modules (`make check-foreign`)."""
