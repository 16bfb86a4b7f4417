# SPDX-License-Identifier: GPL-2.0
"""What is asked, as pure data: experiments, topologies, traffic and traces, and the ranges of every number."""
