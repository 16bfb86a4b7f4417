# SPDX-License-Identifier: GPL-2.0
"""Experiments, topologies, traffic and traces as pure data, with the allowed range of every number."""
