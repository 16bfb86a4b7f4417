# SPDX-License-Identifier: GPL-2.0
"""Layout of the agents' records, octet by octet, as in agent/records.h."""

from __future__ import annotations

import numpy as np

SEND = np.dtype(
    [
        ("t_ns", "<u8"),
        ("flow", "<u4"),
        ("cwnd_pkts", "<u4"),
        ("ssthresh_pkts", "<u4"),
        ("srtt_us", "<u4"),
        ("rttvar_us", "<u4"),
        ("minrtt_us", "<u4"),
        ("mss_bytes", "<u4"),
        ("delivered_pkts", "<u4"),
        ("retrans_pkts", "<u4"),
        ("lost_pkts", "<u4"),
        ("unacked_pkts", "<u4"),
        ("ca_state", "<u4"),
        ("bytes_acked", "<u8"),
        ("bytes_sent", "<u8"),
        ("cc", "<u4", (5,)),
    ]
)
RECV = np.dtype([("t_ns", "<u8"), ("flow", "<u4"), ("reserved", "<u4"), ("bytes", "<u8")])
QUEUE = np.dtype(
    [
        ("t_ns", "<u8"),
        ("queue", "<u4"),
        ("qlen_pkts", "<u4"),
        ("backlog_bytes", "<u4"),
        ("drops", "<u4"),
        ("overlimits", "<u4"),
        ("requeues", "<u4"),
        ("sent_bytes", "<u8"),
        ("sent_pkts", "<u4"),
        ("marks", "<u4"),
    ]
)
WEB = np.dtype(
    [
        ("t_ns", "<u8"),
        ("dur_us", "<u4"),
        ("bytes", "<u4"),
        ("page", "<u4"),
        ("objects", "<u4"),
        ("flow", "<u4"),
        ("flags", "<u4"),
    ]
)
SYN_RETRANS, FAILED, PAGE, UNFINISHED = 1, 2, 4, 8  # bits of flags, as in agent/records.h
