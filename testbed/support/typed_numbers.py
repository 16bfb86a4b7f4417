# SPDX-License-Identifier: GPL-2.0
"""Find measured numbers that are typed by hand into README.md, Documentation/*.md or an experiment's ``why``.

A page quotes results by reference (testbed/present/quoting.py), so that its numbers change with them. These count as
measured: a number with its interval; a decimal or a percentage in a cell of a table; one in a sentence that tells
what a flow takes, keeps, gets, uses or costs. Settings, constants of a law and quotations of a document are not
measured: the patterns of ALLOWED cover them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..judge import figures
from ..robustness import soak
from ..spec.experiment import load, names

#: output of a command that writes no result file: times on one machine, a model that runs on the host
MADE = re.compile(r"<!--made by (?P<command>[^>]+?)-->.*?<!--/made-->", re.DOTALL)
QUOTED = re.compile(r"<!--table.*?<!--/table-->|<!--missed.*?<!--/missed-->|<!--=.*?<!--/-->|<!--.*?-->", re.DOTALL)
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
NUMBER = re.compile(r"(?<![\w.,])\d+\.\d+(?![\w.]*\.\d)|(?<![\w.,])\d+(?= ?%)")
WITH_INTERVAL = re.compile(r"\d\s*%?\s*±\s*\d")
SENTENCE = re.compile(r"(?<=[.;:])\s+(?=[A-Z*`(])")
#: words that show that a sentence reports a measurement
TELLS = (
    r"measured|(?:mean|median)s? of|takes?|took|gets?|got|keeps?|kept|has|had|have|leaves?|left|uses?|used|loses?|"
    r"lost|costs?|gains?|gained|reache[sd]|carries|carried|falls? to|instead of|makes?|made|spares?|delivers?"
)
#: further such words for pages, in which few numbers are derived
MORE = (
    r"is|are|was|were|ends?|ended|achieves?|achieved|yields?|yielded|fell|rises?|rose|grows?|grew|stays?|stayed|drops?|"
    r"dropped|sees|saw|holds?|held|shows?|showed|sends?|sent|miss(?:es|ed)?|differs?|differed|receives?|received|"
    r"lasts?|lasted"
)
IN_REASONS, IN_PAGES = re.compile(rf"\b(?:{TELLS})\b"), re.compile(rf"\b(?:{TELLS}|{MORE})\b")
#: heads of columns that hold settings, aims or explanations, not results
ASKED = re.compile(
    r"paper|range|default|aim|bound|unit|meaning|what(?! was)|condition|window|law|then|reason|ends|departure|option|"
    r"values|keys"
)

#: (pattern, why): numbers that are not measured; the pattern's match covers the number
ALLOWED = (
    (r"\b(?:6\.1|6\.7|6\.12|7\.2)\b", "versions of kernels"),
    (r"(?:[Ss]ections?|RFC \d+ \(|LEDBAT\+\+) ?\d+\.\d+|\(\d\.\d\.\d\)", "sections of documents"),
    (r"95 %(?= interval)", "the interval that every result has"),
    (r"of at most \d\.\d+|\d\.\d+ of 10\b", "what TCP can carry: payload over the octets on the wire"),
    (
        r"[Tt]he paper's [^.;]* \d+ % [^.;]*|the paper (?:tells|gives for its traces:) [^;]*|\d+ to \d+ % of the paper",
        "what a paper says",
    ),
    (r"\d+ % of random loss|aim, \d+ % above", "what a network is set to, or an aim"),
    (r"(?:[Aa]t|UDP of|a source of) \d+\.\d+(?: and 10)?\sMbit/s", "rates that a network or a flow is set to"),
    (r"every \d\.\d+ to \d+ s|burst of \d\.\d s in each", "periods that a flow is set to"),
    (r"a packet takes \d+(?:\.\d+)? ms|\d\.\d ms early", "a packet's size over the rate"),
    (
        r"[bgPR] [<=] [^:;]*|\(1 \+ 0\.\d+ b\)|\d+\.\d+ (?:b|w|M|mu|BDP|targets|times)\b|w\^\d\.\d+|Pareto[^;]*",
        "terms of a law",
    ),
    (
        r"\d+ % of the\s+(?:bottleneck's buffer|buffer|delay|capacity|time|line's)|\d+ %(?= of \(full)",
        "constants of a law",
    ),
    (r"\(\d\.\d minutes\)|share of \d+ %|at least \d\.\d+ RTT|more than 0\.5 Mbit/s together", "constants of a law"),
    (r"(?:, |\b)of 9\.56(?=, for)", "what TCP can carry on the link"),
    (r"(?:asks for|requires) \d+\.\d : 1|1\.25 is a queue", "what a law's formula gives"),
    (r"\d\.\d s that cubic stays on its plateau", "what a law's formula gives"),
    (r"(?:after|10, 40 and) \d+ % of (?:the time|it)|contrast of text is at least \d\.\d", "what a program does"),
    (r"within 10 %, or|bound of \d+ %", "what is judged"),
    (r"on the wire, \d\.\d ms|one packet's time, \d\.\d ms", "a packet's size over the rate"),
    (r"time-out of 0\.2 s", "a constant of TCP"),
    (r"at 0\.01 and 0\.05 of the range|expected of 0\.15", "thresholds that were tried"),
    (r"about \d+ s and \d+ MB to fetch, [\d.]+ GB", "sizes of what is fetched"),
)


class Typed(NamedTuple):
    """A number typed by hand: its line, and the sentence or cell that contains it."""

    line: int
    number: str
    text: str


def _blank(found: re.Match[str]) -> str:
    """Replace a match by its newlines only, so that the lines after it keep their numbers."""
    return "\n" * found[0].count("\n")


def prose(text: str) -> str:
    """Return a page without code, quoted results and output of commands."""
    text = re.sub(r"(?ms)^```.*?^```", _blank, text)
    text = re.sub(r"(?m)^(?:    |\t).*$", "", text)
    return CODE.sub("", QUOTED.sub(_blank, MADE.sub(_blank, text)))


def _numbers(text: str) -> list[str]:
    allowed = [found.span() for pattern, _ in ALLOWED for found in re.finditer(pattern, text)]
    return [found[0] for found in NUMBER.finditer(text) if not any(at <= found.start() < end for at, end in allowed)]


def _cells(head: list[str], line: str) -> Iterator[str]:
    """Yield the cells of a row that hold results; the first cell names the case."""
    for title, cell in list(zip(head, line.strip().strip("|").split("|")))[1:]:
        if not ASKED.search(title.lower()):
            yield cell


def typed(page: str, says: re.Pattern[str] = IN_PAGES) -> list[Typed]:
    """Return every measured number of a page that is typed by hand."""
    found: list[Typed] = []
    head: list[str] = []
    block: list[str] = []
    begin = 0

    def judge_block() -> None:
        text = " ".join(block)
        for sentence in SENTENCE.split(text):
            if WITH_INTERVAL.search(sentence) or says.search(sentence):
                found.extend(Typed(begin, number, sentence.strip()) for number in _numbers(sentence))
        block.clear()

    for number, line in enumerate([*prose(page).splitlines(), ""], 1):
        if line.startswith("|"):
            judge_block()
            if not head:
                head = line.strip().strip("|").split("|")
            for cell in _cells(head, line):
                found.extend(Typed(number, one, cell.strip()) for one in _numbers(cell))
            continue
        head = []
        if not line.strip() or re.match(r"[-*#] ", line):
            judge_block()
        if line.strip():
            begin = begin if block else number
            block.append(line.strip())
    return found


def in_page(name: str, page: str) -> list[str]:
    """Return a line for each measured number of a page that is typed by hand."""
    return [f"{name}:{one.line}: {one.number} is typed by hand in: {one.text[:160]}" for one in typed(page)]


#: words of a sentence in a ``why`` that derives or names a bound, instead of reporting a result
BOUNDS = re.compile(
    r"aim|at (?:least|most)|within|less|allows?|under|tolerance|paper|claim|target|Section|strict priority|bound|"
    r"tenth|fifth|half of|thirds? of|what the link carries|the link's \d|that (?:are left|a flow)|of what is offered|"
    r"a packet of lp takes|it sends \d|the limit|At \d+ %|at \d+ % (?:TCP's|nearly)|leaves open|the mean's|first "
    r"round trip"
)


#: the name of an experiment, which may contain one of these words without their meaning
NAME = re.compile(r"\w+_\w+")


def reasons() -> Iterator[tuple[str, str]]:
    """Yield (experiment or table, why) of every check, short form, deviation and figure, including the long lives."""
    for name in [*names(), *map(str, soak.lives().values())]:
        for check in load(name).checks:
            yield name, check.why
            yield from ((name, one.why) for one in check.rival)
            yield from ((name, one.why) for one in check.differs)
            if not isinstance(check.short, bool):
                yield name, check.short.why
            if check.older:
                yield name, check.older.why
    for figure in figures.listed():
        yield from ((figure.key, one.text) for one in figure.why)
        yield from ((figure.key, one.why) for one in figure.beside)
        yield from ((figure.key, one.why) for one in figure.near)


def in_reasons() -> list[str]:
    """Return a line for each measured number in a reason.

    A bound's ``why`` tells where the bound comes from; pages print the measured value beside it, from the results.
    """
    return [
        f"{name}: {one.number} is typed by hand in: {one.text}"
        for name, why in dict.fromkeys(reasons())
        for one in typed(why, IN_REASONS)
        if not BOUNDS.search(NAME.sub("", one.text))
    ]
