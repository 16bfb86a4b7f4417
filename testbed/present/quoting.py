# SPDX-License-Identifier: GPL-2.0
"""Numbers in the pages that people write: README.md and Documentation/*.md quote results by reference.

A number stands between two comments that Markdown does not show:

    best effort keeps <!--= lbe_rows be contender=lbe scenario=greedy -->9.52 ±0.01<!--/--> Mbit/s

The words after "=" are those of pages.quote(): experiment, metric, dimensions, and "of" for a percentage of another
case. A whole table with a row for each variant of a dimension, and a column for each line:

    <!--table lowpri_timeout by keep burst=250k
    filler | kB/s
    filler of keep=0 | in % of keeping nothing
    -->
    | keep | kB/s | in % of keeping nothing |
    ...
    <!--/table-->

The list of metrics (spec/metrics.py) stands between <!--metrics--> and <!--/metrics-->.

`python3 -m testbed evaluate --pages` writes what the results say between the comments; `make check` fails if a
page says something else. A number of a stale result, or the head of its column, has an asterisk; one that is not there
reads "(not run)".
"""

from __future__ import annotations

import re
from pathlib import Path

from ..base.errors import LbeError
from ..base.places import REPO
from ..results import digest
from ..spec import metrics as catalogue
from ..spec.experiment import matches
from . import pages

QUOTE = re.compile(r"<!--=\s*(?P<words>[^>]*?)\s*-->(?P<said>[^<]*)<!--/-->")
#: a quote that was begun and not ended
BEGUN = re.compile(r"<!--=")
TABLE = re.compile(r"<!--table\s+(?P<words>[^>]*?)\s*-->\n(?P<said>.*?)<!--/table-->", re.DOTALL)
TABLE_BEGUN = re.compile(r"<!--table")
METRICS = re.compile(r"(?<=<!--metrics-->\n).*?(?=<!--/metrics-->)", re.DOTALL)
STALE = "*"
#: stands in a table where no case has this combination
NO_CASE = ""


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


def table(words: str, documents: pages.Documents) -> str:
    """What a table directive says: its first line names the experiment, the dimensions of the rows and what all cells
    have in common; each further line is a column, "METRIC dim=variant ... | head".
    """
    first, *columns = words.strip().splitlines()
    name, by, dimensions, *common = [*first.split(), *[""] * (3 - len(first.split()))]
    if by != "by" or not dimensions or not columns or not all("|" in column for column in columns):
        raise LbeError(
            f"table {first!r}: expected EXPERIMENT by DIMENSION[,DIMENSION], then lines of METRIC ... | head"
        )
    if name not in documents:
        return f"{pages.NOT_RUN}\n"
    keys = dimensions.split(",")
    cases = digest.result_set(documents[name]).asked_cases
    here = pages.pairs(common, first)
    for key in keys:
        if not any(key in case for case in cases):
            raise LbeError(f"table {first!r}: {name} has no dimension {key!r}")
    mine = [case for case in cases if matches(case, here)]
    order = {key: list(dict.fromkeys(case[key] for case in mine)) for key in keys}
    rows = sorted(
        {tuple(case[key] for key in keys) for case in mine},
        key=lambda row: [order[key].index(variant) for key, variant in zip(keys, row)],
    )
    mark = STALE if documents[name].get("stale") else ""
    heads = [column.partition("|")[2].strip() + mark for column in columns]
    lines = ["| " + " | ".join([*keys, *heads]) + " |"]
    lines.append("|" + "---|" * len(keys) + "---:|" * len(columns))
    for row in rows:
        variants = [f"{key}={variant}" for key, variant in zip(keys, row)]
        cells = []
        for column in columns:
            metric, *rest = column.partition("|")[0].split()
            at = rest.index("of") if "of" in rest else len(rest)
            case = {**here, **dict(zip(keys, row)), **pages.pairs(rest[:at], column)}
            there = any(matches(one, case) for one in cases)
            cells.append(
                pages.quote(" ".join([name, metric, *variants, *common, *rest]), documents) if there else NO_CASE
            )
        lines.append("| " + " | ".join([*row, *cells]) + " |")
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """The kinds of metrics as a table."""
    rows = [f"| `{name}` | {unit} | {needs} | {text} |\n" for name, unit, needs, text in catalogue.table()]
    return "| kind | unit | needs | meaning |\n|---|---|---|---|\n" + "".join(rows)


def filled(text: str, documents: pages.Documents, where: str) -> str:
    """A page with its quotes made anew. LbeError if a quote is not ended or names what there is not."""
    if len(BEGUN.findall(text)) != len(QUOTE.findall(text)):
        raise LbeError(f"{where}: a quote <!--= ... --> has no end <!--/-->")
    if len(TABLE_BEGUN.findall(text)) != len(TABLE.findall(text)):
        raise LbeError(f"{where}: a table <!--table ... --> has no end <!--/table-->")
    text = METRICS.sub(lambda _: metrics(), text)
    try:
        text = TABLE.sub(
            lambda found: f"<!--table {found['words']}\n-->\n{table(found['words'], documents)}<!--/table-->", text
        )
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
