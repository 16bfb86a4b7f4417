# SPDX-License-Identifier: GPL-2.0
"""The LBE testbed: kernels in virtual time, networks, traffic, experiments, results.

Data flows in one direction only. Each arrow stands for a plain data structure that can be printed:

    experiment -> topology + traffic -> machine (by a backend) -> results -> report
"""
