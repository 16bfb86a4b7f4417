# SPDX-License-Identifier: GPL-2.0
"""Metrics and their statistics, computed from the agents' records."""

from . import areas as areas  # registers its kinds of metric
