# SPDX-License-Identifier: GPL-2.0
"""ns-2 as a backend: the simulator of four of the five papers runs the experiments that it can express.

plan.py       an experiment's case as ns-2's Tcl, or why it cannot be said there
network.tcl   the words of that Tcl, and what is written down while it runs
machine.py    the backend: runs ns, reads what it wrote into the records that every other backend gives
command.py    `python3 -m testbed ns2`: which experiments, and the documents of their results
"""
