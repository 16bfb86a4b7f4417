# SPDX-License-Identifier: GPL-2.0
"""The page "what the papers claim and what holds"."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..judge import claims
from ..judge.figures import PAPERS
from ..results import digest
from .text import interval, number

HEAD = "| what | where | paper | ns-2 | ours | verdict | why |\n|---|---|---|---|---|---|---|"


def _line(row: claims.Found, documents: dict[str, dict[str, Any]]) -> str:
    claimed = row.number
    document = documents.get(claimed.experiment)
    old = " (STALE)" if document and document.get("stale") else ""
    few = digest.few_seeds(document) if document else ""
    paper = "order" if claimed.order else number(claimed.paper) + (" (read off a curve)" if claimed.read else "")
    ns2 = interval(row.ns2) if row.ns2.n else ""
    ours = interval(row.ours) + (f" ({few})" if few else "") + old if row.ours.n else ""
    cells = (claimed.what, claimed.at, paper, ns2, ours, row.word, row.rule)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def text(documents: dict[str, dict[str, Any]], titles: dict[str, str]) -> str:
    """The page in Markdown, without its head."""
    judged = claims.judge(documents)
    counts = Counter(row.word for _, rows in judged for row in rows)
    parts = [
        "# What the papers claim and what holds",
        "The claims of the five abstracts in our words, each with the numbers of the paper behind it, what ns-2 gives "
        "in the same scenario where it has the protocol, and what the modules give. *Reproduced*: the paper's number "
        "lies within our 95 % interval, or within the tolerance that the row names. *At least as good*: beyond it, on "
        "the side that the claim wants. *Unknown*: it depends on a parameter that the paper does not give, and is near "
        "with one of the values that were tried. A number that a figure has too has that figure's verdict and reason. "
        "*order*: the paper states an order without a number; it is reproduced if the whole interval is on "
        "that side, and *undecided* if the interval contains the bound. *STALE*: measured on earlier sources. "
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
