# SPDX-License-Identifier: GPL-2.0
"""The page "what the papers claim and what holds"."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..judge import claims
from ..judge.coverage import PAPERS
from .text import interval, number

HEAD = "| what | where | paper | ns-2 | ours | verdict | why |\n|---|---|---|---|---|---|---|"


def _line(found: claims.Found, documents: dict[str, dict[str, Any]]) -> str:
    one = found.number
    old = " (STALE)" if documents.get(one.experiment, {}).get("stale") else ""
    paper = number(one.paper) + (" (read off a curve)" if one.read else "")
    ns2 = interval(found.ns2) if found.ns2.n else ""
    ours = interval(found.ours) + old if found.ours.n else ""
    cells = (one.what, one.at, paper, ns2, ours, found.word, found.rule)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def text(documents: dict[str, dict[str, Any]], titles: dict[str, str]) -> str:
    """The page's Markdown, below its head."""
    judged = claims.judge(documents)
    counts = Counter(found.word for _, rows in judged for found in rows)
    parts = [
        "# What the papers claim and what holds",
        "The claims of the five abstracts in our words, each with the numbers of the paper behind it, what ns-2 gives "
        "in the same scenario where it has the protocol, and what the modules give. *Reproduced*: the paper's number "
        "lies within our 95 % interval, or within the tolerance that the row names. *At least as good*: beyond it, on "
        "the side that the claim wants. *STALE*: measured on earlier sources. "
        "Figure by figure: [coverage.md](coverage.md).",
        "Of "
        + str(sum(counts.values()))
        + " numbers: "
        + ", ".join(f"{word} {counts[word]}" for word in claims.WORDS if counts[word])
        + ".",
    ]
    for paper in PAPERS:
        parts.append(f"## {titles[paper]}")
        for claim, rows in judged:
            if claim.paper == paper:
                parts.append(f"**{claim.says}**\n\n" + "\n".join([HEAD, *(_line(row, documents) for row in rows)]))
    return "\n\n".join(parts) + "\n"
