# SPDX-License-Identifier: GPL-2.0
"""Conversion of packetdrill scripts without timestamps to scripts with them, which vulture needs.

Each segment has twelve octets more. The MSS of each SYN and the device's MTU are larger by as much (EXTRA_BYTES), so
that payloads remain the same. Each segment of the script has the script's time in ms as its timestamp, and echoes the
latest segment of the kernel. The values of the kernel's timestamps are not asserted. A reset may or may not have
timestamps.
"""

from __future__ import annotations

import re

#: size of the option with the two NOPs before it
EXTRA_BYTES = 12
#: clock of the script at its start, ms
BEGIN_MS = 1000

PACKET = re.compile(
    r"(?P<time>\s*(?:\+?[\d.]+(?:~\+?[\d.]+)?|\*)?\s*)(?P<way>[<>])(?P<before>\s+(?:\[[^\]]*\]\s*)?)"
    r"(?P<flags>[A-Z0-9.]+)(?P<middle>\s+\d+:\d+\(\d+\)[^</]*?)\s*(?P<options><[^>]*>)?\s*(?P<comment>//.*)?$"
)
#: options of a SYN that are copied unchanged to the end
BEHIND = ("FO", "FOEXP")


class Unsuitable(ValueError):
    """The script cannot be converted by these rules."""


def of_syn(items: list[str], stamp: str, extra_bytes: int) -> list[str]:
    """A SYN's options in the kernel's order."""
    at = next((index for index, item in enumerate(items) if item.startswith(BEHIND)), len(items))
    first, behind = [item for item in items[:at] if item != "nop"], items[at:]
    made = []
    for item in first:
        if item.startswith("mss "):
            made.append(f"mss {int(item.split()[1]) + extra_bytes}")
        elif item != "sackOK" and not item.startswith("wscale "):
            raise Unsuitable(f"option {item}")
    made += ["sackOK", stamp] if "sackOK" in first else ["nop", "nop", stamp]
    for item in first:
        if item.startswith("wscale "):
            made += ["nop", item]
    return made + behind


def of_other(items: list[str], stamp: str) -> list[str]:
    """Options of any other segment: the timestamps, and SACK blocks."""
    made = ["nop", "nop", stamp]
    for item in items:
        if item.startswith("sack "):
            made += ["nop", "nop", item]
        elif item != "nop":
            raise Unsuitable(f"option {item}")
    return made


def with_timestamps(text: str) -> str | None:
    """The script with timestamps; None if it has timestamps already, or has options that these rules do not know."""
    if "TS val" in text or "tcp_timestamps=0" in text:
        return None
    now_ms, sent, lines = float(BEGIN_MS), 0, []
    syn_ms = BEGIN_MS
    for line in text.splitlines():
        time = re.match(r"\s*(\+?)([\d.]+)(?:~\+?([\d.]+))?\s", line)
        if time and re.fullmatch(r"\d*\.?\d+|\d+\.", time[2]):
            spent_ms = 1000 * float(time[2])
            now_ms = now_ms + spent_ms if time[1] else BEGIN_MS + spent_ms
        match = PACKET.match(line)
        if not match:
            lines.append(line)
            continue
        options = (match["options"] or "")[1:-1].strip()
        items = [item.strip() for item in options.split(",") if item.strip()]
        syn, out = "S" in match["flags"], match["way"] == ">"
        if out and (options == "..." or "R" in match["flags"]):
            made = ["..."]
        else:
            if out:
                sent += 1
                stamp = f"TS val {sent} ecr {syn_ms if '.' in match['flags'] else 0}"
            else:
                stamp = f"TS val {int(now_ms)} ecr {sent if '.' in match['flags'] else 0}"
            if syn and not out:
                syn_ms = int(now_ms)
            try:
                made = of_syn(items, stamp, EXTRA_BYTES) if syn else of_other(items, stamp)
            except Unsuitable:
                return None
        comment = f" {match['comment']}" if match["comment"] else ""
        head = match["time"] + match["way"] + match["before"] + match["flags"] + match["middle"]
        lines.append(f"{head} <{','.join(made)}>{comment}")
    return "\n".join(lines) + "\n"
