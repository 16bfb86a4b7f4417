# SPDX-License-Identifier: GPL-2.0
"""Web traffic: the lines of the agents' plans for it.

A group of kind "web" is the open loop of Claypool, Kinicki and Hartling (a fixed offered load). A group of
kind "session" is the closed loop that TCP-LP's authors use. The node that sends the data (``source``) runs the
server; the node that receives it (``to``) runs the clients, which request the objects.
"""

from __future__ import annotations

from typing import Any

#: kind of a flow group -> kind in the agent's plan
KINDS = {"web": "open", "session": "session"}

#: limits that apply to the whole machine and cannot be set for a namespace
HOST_SYSCTLS = {
    # pages: no memory pressure below 200 MB; the kernel's own choice for a machine of 512 MB is 22 MB
    "net.ipv4.tcp_mem": "51200 65536 98304",
    # sockets that the program has closed and the peer has not
    "net.ipv4.tcp_max_orphans": "32768",
}


def server_words(flow: Any) -> dict[str, Any]:
    """Words of the server's line in the plan of the source."""
    spec = flow.spec
    words: dict[str, Any] = {"port": flow.port, "flow": flow.id}
    if spec.dscp is not None:
        words["dscp"] = spec.dscp
    if flow.mark:
        words["mark"] = flow.mark
    words |= spec.server_options
    return words


def client_words(flow: Any, server: str) -> dict[str, Any]:
    """Words of the clients' line in the plan of the receiver."""
    spec = flow.spec
    words: dict[str, Any] = {"id": flow.id, "kind": KINDS[spec.kind], "to": server, "port": flow.port}
    if spec.objects is not None:
        words["objects"] = spec.objects
    if spec.sessions is not None:
        words["sessions"] = spec.sessions
    words |= {"seed": flow.seed} | spec.options
    return words
