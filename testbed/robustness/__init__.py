# SPDX-License-Identifier: GPL-2.0
"""Abuse: what the modules must survive, run in guests, counted.

    parts.py    the list: what each part does, on which kernel, how often
    fuzz.py     messages from grammars (netlink, tc, sysctl, parameters), and their stored corpus
    packets.py  hostile packets, built by scapy
    drill/      scripts: what each module puts on the wire
    guest/      the programs that run inside, with Python's standard library (and dpkt) alone

A part is a program in a guest that does something bad many times beside TCP connections whose every
byte is checked. It is good when the kernel said nothing, no byte is missing and no answer was wrong.
"""
