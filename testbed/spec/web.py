# SPDX-License-Identifier: GPL-2.0
"""Web traffic: the lines of the agents' plans for it.

A group of kind "web" is the open loop of Claypool, Kinicki and Hartling (a fixed offered load), one of
kind "session" the closed loop that TCP-LP's authors use. The data's sender (``source``) is the server,
its receiver (``to``) asks for the objects.
"""

from __future__ import annotations

from typing import Any

#: kind of a flow group -> kind in the agent's plan
KINDS = {"web": "open", "session": "session"}

#: limits of the machine as a whole, which a namespace cannot set
HOST_SYSCTLS = {
    # pages: 200 MB before TCP presses its sockets, the kernel's own choice for 512 MB is 22
    "net.ipv4.tcp_mem": "51200 65536 98304",
    # closed by the program, not yet by the peer
    "net.ipv4.tcp_max_orphans": "32768",
}


def server_words(flow: Any) -> dict[str, Any]:
    """The server's line at the source, as words."""
    spec = flow.spec
    words: dict[str, Any] = {"port": flow.port, "flow": flow.id}
    if spec.dscp is not None:
        words["dscp"] = spec.dscp
    if flow.mark:
        words["mark"] = flow.mark
    words |= spec.server_options
    return words


def client_words(flow: Any, server: str) -> dict[str, Any]:
    """The clients' line at the receiver, as words."""
    spec = flow.spec
    words: dict[str, Any] = {"id": flow.id, "kind": KINDS[spec.kind], "to": server, "port": flow.port}
    if spec.objects is not None:
        words["objects"] = spec.objects
    if spec.sessions is not None:
        words["sessions"] = spec.sessions
    words |= {"seed": flow.seed} | spec.options
    return words
