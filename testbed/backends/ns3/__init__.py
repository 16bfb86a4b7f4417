# SPDX-License-Identifier: GPL-2.0
"""ns-3 as a backend: a second opinion on TCP-LP. Its TcpLp is another author's; ns-2 has no TCP-LP.

package.py    fetches ns-3's package, and compiles a program with it
plan.py       an experiment's case as a plan, or the reason why ns-3 cannot express it
network.cc    the program that runs a plan
machine.py    the backend; ns2/machine.py converts the output, which has the same form

campaign/oracle.py is `python3 -m testbed ns3`.
"""
