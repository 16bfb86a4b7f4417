# SPDX-License-Identifier: GPL-2.0
"""Test suites of other projects, run against the modules (`make check-foreign`)."""
