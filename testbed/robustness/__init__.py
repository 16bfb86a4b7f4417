# SPDX-License-Identifier: GPL-2.0
"""Abuse tests: hostile input and failures that the modules must survive, run in guests and counted.

    parts.py    the list of the parts: what each does, on which kernel, how often
    fuzz.py     messages from grammars (netlink, tc, sysctl, parameters), and their stored corpus
    packets.py  hostile packets, built by scapy
    drill/      scripts: what each module puts on the wire
    guest/      the programs that run in the guest; they need Python's standard library and dpkt only

A part is a program that repeats one kind of abuse many times in a guest, while TCP connections transfer data
of which every byte is checked. It passes if the kernel logged nothing, no byte is missing and no answer was wrong.
"""
