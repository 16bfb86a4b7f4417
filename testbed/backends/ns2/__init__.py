# SPDX-License-Identifier: GPL-2.0
"""ns-2 as a backend: the simulator used by four of the five papers runs the experiments that it can express.

plan.py       an experiment's case as ns-2's Tcl, or the reason why ns-2 cannot express it
packets.py    a packet trace in ns-2's format, which a plan names
network.tcl   the Tcl commands used by these plans, and the output written during a run
machine.py    the backend: runs ns and converts its output to the records of the other backends

campaign/oracle.py is `python3 -m testbed ns2`: it selects the experiments and writes the documents of their results.
"""
