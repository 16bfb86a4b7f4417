# SPDX-License-Identifier: GPL-2.0
"""How fast the testbed is, beside ns-3."""
