# SPDX-License-Identifier: GPL-2.0
"""Numbers in hand-written pages: README.md, Documentation/*.md and papers.toml quote results by reference.

A number is between two comments that Markdown does not show:

    best effort keeps <!--= lbe_rows be contender=lbe scenario=greedy -->9.52 ±0.01<!--/--> Mbit/s

The words after "=" are those of quote(): experiment, metric, dimensions, and "of" for a percentage of another
case. With "from dim=variant to dim=variant" in place of "of" the number is the part of the difference between two
other cases that this case has, in percent: 0 like the first, 100 like the second.
In place of a metric, @commit means the versions of the testbed at run time, @kernel the kernel's release, @seconds the
wall time of all, and @runs the number of runs of each case, in words ("three runs").
A table has a row for each variant of a dimension, and a column for each line of the directive:

    <!--table lowpri_timeout by keep burst=250k
    filler | kB/s
    filler of keep=0 | in % of keeping nothing
    -->
    | keep | kB/s | in % of keeping nothing |
    ...
    <!--/table-->

A table of the bounds that are missed, as the experiments explain them, is between

    <!--missed lbe_rows lbe_queues contender=lbe-->
    | experiment | what | case | bound | measured | cause |
    ...
    <!--/missed-->

The papers' tables and figures by their verdict are between <!--figures--> and <!--/figures-->.

In the texts on the papers (papers.toml) the same words are between [[ and ]].

The list of metrics (spec/metrics.py) is between <!--metrics--> and <!--/metrics-->.

`python3 -m testbed evaluate --pages` writes the numbers of the results between the comments; `make check` fails if a
page has other numbers. A number of a stale result, or the head of its column, has an asterisk; a missing number is
"(not run)".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

from ..base.errors import LbeError
from ..base.places import REPO
from ..judge import checks, coverage, figures
from ..measure.summary import summarise
from ..results import digest
from ..results.digest import Document, Documents
from ..spec import experiment as experiments
from ..spec import metrics as catalogue
from ..spec.experiment import OWN_LENGTHS, case_name, matches
from .tables import runs_text
from .text import interval

IN_TEXT = re.compile(r"\[\[(.+?)\]\]")
QUOTE = re.compile(r"<!--=\s*(?P<words>[^>]*?)\s*-->(?P<said>[^<]*)<!--/-->")
#: the start of a quote, to find quotes without an end
BEGUN = re.compile(r"<!--=")
TABLE = re.compile(r"<!--table\s+(?P<words>[^>]*?)\s*-->\n(?P<said>.*?)<!--/table-->", re.DOTALL)
TABLE_BEGUN = re.compile(r"<!--table")
MISSED = re.compile(r"<!--missed\s+(?P<words>[^>]*?)\s*-->\n(?P<said>.*?)<!--/missed-->", re.DOTALL)
MISSED_BEGUN = re.compile(r"<!--missed")
MISSED_HEAD = "| experiment | what | case | bound | measured | cause |\n|---|---|---|---:|---:|---|\n"
METRICS = re.compile(r"(?<=<!--metrics-->\n).*?(?=<!--/metrics-->)", re.DOTALL)
FIGURES = re.compile(r"(?<=<!--figures-->\n).*?(?=<!--/figures-->)", re.DOTALL)
FIGURES_HEAD = "| beside the paper's numbers | tables and figures | which |\n|---|---:|---|\n"
TEXTS = Path(__file__).with_name("papers.toml")
BOX = "[[experiment metric dim=variant ... of dim=variant ...]]"
#: words that begin another case in a quote
OF, FROM, TO = "of", "from", "to"
STALE = "*"
#: in place of a number whose runs do not exist, or are incomplete
NOT_RUN, INCOMPLETE = "(not run)", "(incomplete)"
#: in place of a number that no run has: a flow that was not started, an event that did not happen
NO_VALUE = "-"
#: in place of a time that the document does not have
NOT_RECORDED = "a time that is not recorded"
#: in a table, for a combination that no case has
NO_CASE = ""

RUNS = "@runs"
#: word in place of a metric -> function that gives its text for a document
SAID_OF_ALL: dict[str, Callable[[Document], str]] = {
    "@commit": lambda document: ", ".join(document["ran"]["testbed"]),
    "@kernel": lambda document: str(document["provenance"]["kernel"]["release"]),
    RUNS: runs_text,
    "@seconds": lambda document: f"{document[digest.SECONDS]} s" if digest.SECONDS in document else NOT_RECORDED,
}


def pairs(words: list[str], where: str) -> dict[str, str]:
    """A case, or a part of one, from words of the form dim=variant."""
    case = {}
    for word in words:
        dimension, equals, variant = word.partition("=")
        if not equals:
            raise LbeError(f"{where}: {word!r}: expected {BOX}")
        case[dimension] = variant
    return case


def cases_of(words: list[str], where: str) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The case that a quote's words name, and those after "of", or "from" and "to"."""
    parts: dict[str, list[str]] = {"": []}
    for word in words:
        if word in (OF, FROM, TO):
            parts[word] = []
        else:
            parts[list(parts)[-1]].append(word)
    others = {word: pairs(part, where) for word, part in parts.items() if word}
    if list(others) not in ([], [OF], [FROM, TO]):
        raise LbeError(f"{where!r}: expected {BOX}, or from dim=variant ... to dim=variant ... in place of of")
    return pairs(parts[""], where), others


def quote(words: str, documents: Documents) -> str:
    """The number for a [[...]] in a text: mean and interval over the runs of the matching cases."""
    name, metric, *rest = words.split()
    case, others = cases_of(rest, words)
    if name not in documents:
        return NOT_RUN
    if metric in SAID_OF_ALL and not rest:
        return SAID_OF_ALL[metric](documents[name])
    results = digest.result_set(documents[name])
    if not any(metric in run.metrics for run in results.results):
        if name in experiments.names() and metric in digest.experiment_of(documents[name]).tables["metric"]:
            return NOT_RUN  # newer than the results
        raise LbeError(f"{TEXTS.name}: {words!r}: {name} has no metric {metric!r}")
    table = checks.Table.of(results)
    values: list[float | None] = []
    used: list[dict[str, str]] = []
    for mine in results.asked_cases:
        if matches(mine, case):
            theirs = [{**mine, **other} for other in others.values()]
            used += [mine, *theirs]
            if FROM in others:
                values += table.part(mine, metric, *theirs)
            elif others:
                values += table.compare(mine, metric, theirs[0], metric, "percent")
            else:
                values += table.values(mine, metric)
    summary = summarise(values)
    if values and summary.blank == len(values):
        return NO_VALUE
    if summary.missing or summary.blank:
        lost = any(gone in used for gone, _ in results.lost())
        return INCOMPLETE if summary.n or lost else NOT_RUN
    if metric in documents[name].get("counts", ()) and not others:
        return f"{summary.mean:.0f}"
    return interval(summary) if summary.n else NOT_RUN


def _paragraph(paragraph: str, documents: Documents) -> str:
    """A paragraph with its numbers filled in; if one is missing, only a remark about that.

    A remark follows if numbers are stale, or come from short forms or from fewer seeds than the experiment has.
    """
    text = IN_TEXT.sub(lambda match: quote(match[1], documents), paragraph)
    named = list(dict.fromkeys(words.split()[0] for words in IN_TEXT.findall(paragraph)))
    for mark, state in ((NOT_RUN, "Not run for this state of the pages"), (INCOMPLETE, "INCOMPLETE")):
        if mark in text:
            return f"{state}: {', '.join(named)}."
    old = [name for name in named if documents[name].get("stale")]
    if old:
        text += f" (STALE, of an earlier tree: {', '.join(old)}.)"
    few = [f"{name}, {seeds}" for name in named if (seeds := digest.few_seeds(documents[name]))]
    if few:
        text += f" (From few seeds: {'; '.join(few)}.)"
    short = [name for name in named if documents[name]["mode"] not in OWN_LENGTHS]
    return f"{text} (From short runs only: {', '.join(short)}.)" if short else text


def papers(documents: Documents) -> dict[str, tuple[str, str]]:
    """Title and text of each paper, with numbers filled in."""
    tables = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
    return {
        paper: (
            tables[paper]["title"],
            "\n\n".join(_paragraph(part, documents) for part in tables[paper]["text"].strip().split("\n\n")),
        )
        for paper in figures.PAPERS
    }


def written_pages(root: Path = REPO) -> list[Path]:
    """The hand-written pages: README.md and those of Documentation/, without the generated Documentation/results."""
    return [root / "README.md", *sorted((root / "Documentation").glob("*.md"))]


def goes_with(docs: Path, root: Path = REPO) -> bool:
    """Whether these results are the ones that the pages of the tree quote."""
    return docs.resolve() == (root / "Documentation" / "results").resolve()


def said(words: str, documents: Documents) -> str:
    """Text of a quote: the number, with the marks of its result; without seeds if it only names versions. A number of
    runs has no marks.
    """
    name, metric, *_ = words.split()
    return quote(words, documents) + (marks(documents.get(name), metric in SAID_OF_ALL) if metric != RUNS else "")


def marks(document: Document | None, versions: bool = False) -> str:
    """What follows a number of this document: an asterisk if it is stale, the seeds if the experiment has more."""
    if document is None:
        return ""
    few = "" if versions else digest.few_seeds(document)
    return STALE * bool(document.get("stale")) + (f" ({few})" if few else "")


def table(words: str, documents: Documents) -> str:
    """The table for a directive. Its first line names the experiment, the dimensions of the rows, and the variants that
    all cells share; each further line is a column, "METRIC dim=variant ... | head".
    """
    first, *columns = words.strip().splitlines()
    name, by, dimensions, *common = [*first.split(), *[""] * (3 - len(first.split()))]
    if by != "by" or not dimensions or not columns or not all("|" in column for column in columns):
        raise LbeError(
            f"table {first!r}: expected EXPERIMENT by DIMENSION[,DIMENSION], then lines of METRIC ... | head"
        )
    if name not in documents:
        return f"{NOT_RUN}\n"
    keys = dimensions.split(",")
    cases = digest.result_set(documents[name]).asked_cases
    here = pairs(common, first)
    for key in keys:
        if not any(key in case for case in cases):
            raise LbeError(f"table {first!r}: {name} has no dimension {key!r}")
    mine = [case for case in cases if matches(case, here)]
    order = {key: list(dict.fromkeys(case[key] for case in mine)) for key in keys}
    rows = sorted(
        {tuple(case[key] for key in keys) for case in mine},
        key=lambda row: [order[key].index(variant) for key, variant in zip(keys, row)],
    )
    mark = marks(documents[name])
    heads = [column.partition("|")[2].strip() + mark for column in columns]
    lines = ["| " + " | ".join([*keys, *heads]) + " |"]
    lines.append("|" + "---|" * len(keys) + "---:|" * len(columns))
    for row in rows:
        variants = [f"{key}={variant}" for key, variant in zip(keys, row)]
        cells = []
        for column in columns:
            metric, *rest = column.partition("|")[0].split()
            case = {**here, **dict(zip(keys, row)), **cases_of(rest, column)[0]}
            there = any(matches(asked, case) for asked in cases)
            cells.append(quote(" ".join([name, metric, *variants, *common, *rest]), documents) if there else NO_CASE)
        lines.append("| " + " | ".join([*row, *cells]) + " |")
    return "\n".join(lines) + "\n"


def missed(words: str, documents: Documents) -> str:
    """The bounds that are missed for a known cause, or are undecided, as a table.

    The words are experiments, then dim=variant.
    """
    names = [word for word in words.split() if "=" not in word]
    case = pairs([word for word in words.split() if "=" in word], words)
    rows = []
    for name in names:
        if name not in documents:
            return f"{NOT_RUN}: {name}\n"
        document = documents[name]
        experiment, results = digest.experiment_of(document), digest.result_set(document)
        measured = experiment.setting(experiment.cases(document["mode"])[0], document["mode"]).metrics
        for verdict in checks.judge(experiment, results):
            listed = verdict.status in ("differs", "unsettled")
            if not listed or verdict.case is None or not matches(verdict.case, case):
                continue
            rest = {key: variant for key, variant in verdict.case.items() if key not in case}
            cells = (
                f"`{name}`{marks(document)}",
                checks.check_title(experiment, verdict.check, measured),
                case_name(rest) if rest else "",
                checks.bound_text(verdict.bound),
                interval(verdict.ours),
                f"undecided: {verdict.note}" if verdict.status == "unsettled" else verdict.note,
            )
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return MISSED_HEAD + "".join(rows) if rows else "None.\n"


def metrics() -> str:
    """The kinds of metrics as a table."""
    rows = [f"| `{name}` | {unit} | {needs} | {text} |\n" for name, unit, needs, text in catalogue.table()]
    return "| kind | unit | needs | meaning |\n|---|---|---|---|\n" + "".join(rows)


def by_verdict(documents: Documents) -> str:
    """The papers' tables and figures by their verdict beside the paper's numbers, as a table."""
    verdicts = coverage.judge_all(documents)
    rows = []
    for word in (*coverage.AGAINST, coverage.NO_NUMBER):
        which: dict[str, list[str]] = {}
        for one in verdicts:
            if one.against == word:
                which.setdefault(one.figure.paper, []).append(one.figure.number)
        said = "; ".join(f"{paper}: {', '.join(numbers)}" for paper, numbers in which.items())
        rows.append(f"| {word} | {sum(map(len, which.values()))} | {said} |\n")
    return f"{FIGURES_HEAD}{''.join(rows)}| all | {len(verdicts)} | |\n"


def filled(text: str, documents: Documents, where: str) -> str:
    """A page with updated quotes. LbeError if a quote has no end, or names something that does not exist."""
    if len(BEGUN.findall(text)) != len(QUOTE.findall(text)):
        raise LbeError(f"{where}: a quote <!--= ... --> has no end <!--/-->")
    if len(TABLE_BEGUN.findall(text)) != len(TABLE.findall(text)):
        raise LbeError(f"{where}: a table <!--table ... --> has no end <!--/table-->")
    if len(MISSED_BEGUN.findall(text)) != len(MISSED.findall(text)):
        raise LbeError(f"{where}: a table <!--missed ... --> has no end <!--/missed-->")
    text = METRICS.sub(lambda _: metrics(), text)
    text = FIGURES.sub(lambda _: by_verdict(documents), text)
    try:
        text = MISSED.sub(
            lambda match: f"<!--missed {match['words']}-->\n{missed(match['words'], documents)}<!--/missed-->", text
        )
        text = TABLE.sub(
            lambda match: f"<!--table {match['words']}\n-->\n{table(match['words'], documents)}<!--/table-->", text
        )
        return QUOTE.sub(lambda match: f"<!--= {match['words']} -->{said(match['words'], documents)}<!--/-->", text)
    except LbeError as error:
        raise LbeError(f"{where}: {error}") from error


def differing(documents: Documents, root: Path = REPO) -> dict[Path, str]:
    """The pages whose numbers differ from the results, and their correct text."""
    differ = {}
    for path in written_pages(root):
        text = path.read_text(encoding="utf-8")
        quoted = filled(text, documents, path.name)
        if quoted != text:
            differ[path] = quoted
    return differ


def write(documents: Documents, root: Path = REPO) -> list[Path]:
    """Update the quotes of all pages; returns the pages that changed."""
    differ = differing(documents, root)
    for path, text in differ.items():
        path.write_text(text, encoding="utf-8")
    return list(differ)
