# SPDX-License-Identifier: GPL-2.0
"""The LBE testbed: kernels in virtual time, networks, traffic, experiments, results.

Data flows one way only, and every arrow is a plain structure that can be printed:

    experiment -> topology + traffic -> machine (by a backend) -> results -> report
"""
