# SPDX-License-Identifier: GPL-2.0
"""Numbers in the pages that people write: README.md and Documentation/*.md quote results by reference.

A number stands between two comments that Markdown does not show:

    best effort keeps <!--= lbe_rows be contender=lbe scenario=greedy -->9.52 ±0.01<!--/--> Mbit/s

The words after "=" are those of pages.quote(): experiment, metric, dimensions, and "of" for a percentage of another
case. `python3 -m testbed evaluate --pages` writes what the results say between the comments; `make check` fails if a
page says something else. A number of a stale result has an asterisk, one that is not there reads "(not run)".
"""

from __future__ import annotations

import re
from pathlib import Path

from ..base.errors import LbeError
from ..base.places import REPO
from . import pages

QUOTE = re.compile(r"<!--=\s*(?P<words>[^>]*?)\s*-->(?P<said>[^<]*)<!--/-->")
#: a quote that was begun and not ended
BEGUN = re.compile(r"<!--=")
STALE = "*"


def written_pages(root: Path = REPO) -> list[Path]:
    """README.md and the pages of Documentation/; those of Documentation/results are made whole."""
    return [root / "README.md", *sorted((root / "Documentation").glob("*.md"))]


def goes_with(docs: Path, root: Path = REPO) -> bool:
    """Whether these results are the ones that the tree's own pages quote."""
    return docs.resolve() == (root / "Documentation" / "results").resolve()


def said(words: str, documents: pages.Documents) -> str:
    """What a quote says: the number, with an asterisk if its result is stale."""
    text = pages.quote(words, documents)
    name = words.split()[0]
    return text + STALE if name in documents and documents[name].get("stale") else text


def filled(text: str, documents: pages.Documents, where: str) -> str:
    """A page with its quotes made anew. LbeError if a quote is not ended or names what there is not."""
    if len(BEGUN.findall(text)) != len(QUOTE.findall(text)):
        raise LbeError(f"{where}: a quote <!--= ... --> has no end <!--/-->")
    try:
        return QUOTE.sub(lambda found: f"<!--= {found['words']} -->{said(found['words'], documents)}<!--/-->", text)
    except LbeError as error:
        raise LbeError(f"{where}: {error}") from error


def differing(documents: pages.Documents, root: Path = REPO) -> dict[Path, str]:
    """The pages that say something else than the results, and what they should say."""
    differ = {}
    for path in written_pages(root):
        text = path.read_text(encoding="utf-8")
        made = filled(text, documents, path.name)
        if made != text:
            differ[path] = made
    return differ


def write(documents: pages.Documents, root: Path = REPO) -> list[Path]:
    """Make the quotes of all pages anew; those that changed."""
    differ = differing(documents, root)
    for path, text in differ.items():
        path.write_text(text, encoding="utf-8")
    return list(differ)
