# SPDX-License-Identifier: GPL-2.0
"""Every command in README.md and Documentation/*.md runs: here, in a guest, or in a test that documented.toml names."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from testbed import results
from testbed.__main__ import main
from testbed.backends.machine import Machine
from testbed.kernels.build import ensure_kernel
from testbed.kernels.modules import ensure_modules
from testbed.kernels.series import KernelSpec
from testbed.spec import tables
from testbed.spec.experiment import Head, load
from testbed.spec.parameters import Hop, Queue, Tick, Topology
from testbed.spec.tables import Within
from testbed.spec.traffic import FlowGroup

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "packaging" / "sysctl.conf"
RULES = tomllib.loads((Path(__file__).parent / "documented.toml").read_text(encoding="utf-8"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "Documentation").glob("*.md"))]
#: the beginning of each line of a block that is a command; other lines are drawings, formulas and plans
COMMAND = re.compile(
    r"(sudo|make|python3|scripts/|\.ci/|\"\$\(scripts|PYTHONPATH=|git|vulturectl|tc|ip|ss|sysctl|insmod|rmmod|modprobe|"
    r"iperf3|echo|setsockopt|dkms|apt|apt-get|wget|curl|ethtool|nft)(?=[ /(\"$.=]|$)"
)
#: languages of blocks that hold no commands
NOT_COMMANDS = ("toml", "python", "json", "c", "yaml")


@dataclass(frozen=True)
class Command:
    """A command of a page; ``block``: its number within the page."""

    page: str
    block: int
    line: int
    text: str


def blocks(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield (language, numbered lines) of each fenced or indented block of a page."""
    fence, language = False, ""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            if lines:
                yield language, lines
            fence, language, lines = not fence, line[3:].strip() if not fence else "", []
        elif fence or line.startswith("    "):
            lines.append((number, line.strip()))
        elif lines:
            yield language, lines
            lines = []


def commands(page: Path) -> list[Command]:
    """Return the commands of a page; a backslash at a line's end continues the command on the next line."""
    found = []
    for index, (language, lines) in enumerate(blocks(page.read_text(encoding="utf-8"))):
        if language in NOT_COMMANDS:
            continue
        joined, number = "", 0
        for at, line in lines:
            number = number if joined else at
            joined += line.removesuffix("\\")
            if not line.endswith("\\"):
                if COMMAND.match(joined):
                    # cut off the explanation: a comment, or text in a column of its own
                    text = re.split(r" +#| {2,}(?=/\*)", joined)[0]
                    text = re.split(r" {3,}", text)[0] if text.startswith("python3") else text
                    found.append(Command(page.relative_to(ROOT).as_posix(), index, number, text.strip()))
                joined = ""
    return found


ALL = [command for page in PAGES for command in commands(page)]


def rule_of(command: Command) -> dict[str, Any] | None:
    """Return the first rule whose pattern matches a command."""
    return next((rule for rule in RULES["rule"] if re.match(rule["match"], command.text)), None)


def those(how: str) -> list[Command]:
    """Return the commands whose rule has this ``how``, each text once."""
    return list({one.text: one for one in ALL if (rule_of(one) or {}).get("how") == how}.values())


def test_pages_have_commands() -> None:
    assert len(ALL) > 40
    assert {"README.md", "Documentation/tutorial.md"} <= {one.page for one in ALL}


def ranges() -> Iterator[tuple[str, Within]]:
    """Yield each key of an experiment file that has a range. Not `seed`: the page writes its maximum as a power."""
    for kind in (Head, Topology, Queue, Hop, Tick, FlowGroup):
        for key, hint in tables.hints(kind).items():
            for part in (hint, *get_args(hint)):
                marks = [mark for mark in getattr(part, "__metadata__", ()) if isinstance(mark, Within)]
                yield from ((key, mark) for mark in marks if key != "seed")


def test_the_testbeds_page_has_every_number_with_its_range() -> None:
    page = (ROOT / "Documentation/testbed.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if "|" in line]
    assert len(list(ranges())) > 40
    for key, bounds in ranges():
        low, high = bounds.low, bounds.high
        words = f"{low:.6f}".rstrip("0").rstrip(".") + f" to {high:.0f} |"
        assert any(f"`{key}`" in row and words in row for row in rows), f"{key}: no row with {words}"


def test_every_command_has_a_rule() -> None:
    bare = [f"{one.page}:{one.line}: {one.text}" for one in ALL if rule_of(one) is None]
    assert not bare, "commands that documented.toml does not know:\n" + "\n".join(bare)


def test_no_command_takes_controls_from_users() -> None:
    """A write to tcp_allowed_congestion_control replaces the list: users may no longer choose a control left out."""
    written = [one for one in ALL if re.search(r"tcp_allowed_congestion_control *=", one.text)]
    assert written, "the page of lowpri has one"
    for one in written:
        assert "$(sysctl -n net.ipv4.tcp_allowed_congestion_control) " in one.text, f"{one.page}:{one.line}"
    # sysctl.d cannot refer to the old value; it is read after the modules are loaded, so it must list all of them
    (line,) = re.findall(r"^net.ipv4.tcp_allowed_congestion_control = (.*)$", EXAMPLE.read_text(), re.MULTILINE)
    assert {"reno", "cubic", "lbe", "lp", "lp_ecn", "ledbat", "ledbatpp", "background"} <= set(line.split())


def test_every_rule_names_a_test_that_is_there_or_a_reason() -> None:
    for rule in RULES["rule"]:
        if rule["how"] == "by":
            assert rule["word"] in (ROOT / rule["file"]).read_text(encoding="utf-8"), rule
        else:
            assert rule["how"] in ("here", "guest") or rule.get("why"), rule


@pytest.mark.parametrize("text", [one.text for one in those("here")])
def test_runs_here(text: str) -> None:
    done = subprocess.run(
        ["sh", "-c", text],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        env={**os.environ, "LBE_NO_DEPS": "1"},
    )
    assert done.returncode == 0, f"{text}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"


def guest_script(page: str, paths: dict[str, Path]) -> str:
    """Return a script of all guest commands of a page. Each block begins with a module loaded and east without qdiscs.
    """
    module = Path(page).stem if Path(page).stem in paths else "tcp_lp"
    lines = [
        "set -e",
        "ip link add name east type veth peer name west",
        "ip link set dev west up && ip link set dev east up && ip addr add 10.9.0.1/24 dev east",
    ]
    block = None
    for one in ALL:
        if one.page != page or (rule_of(one) or {}).get("how") != "guest":
            continue
        if one.block != block:
            block = one.block
            mine = [other.text for other in ALL if (other.page, other.block) == (page, block)]
            lines.append("tc qdisc del dev east root 2> /dev/null || :; tc qdisc del dev east clsact 2> /dev/null || :")
            if not any("insmod" in text or "modprobe" in text for text in mine):
                lines.append(f'insmod "$LBE_HOST{paths[module]}" 2> /dev/null || :')
            if not any(re.search(r"dev DEV root", text) for text in mine):
                lines.append("tc qdisc add dev east root handle 1: tbf rate 10mbit burst 1600 latency 1s")
        text = one.text
        for old, new in RULES["guest"].items():
            text = text.replace(old, new)
        text = re.sub(
            r"modprobe (\w+)|insmod \S*?(\w+)\.ko",
            lambda found: f'insmod "$LBE_HOST{paths[found[1] or found[2]]}"',
            text,
        )
        lines += [f"echo '{one.line}: '{one.text!r}", text]
    return "\n".join([*lines, "echo all of them"])


@pytest.mark.scenario
@pytest.mark.parametrize("page", sorted({one.page for one in ALL if (rule_of(one) or {}).get("how") == "guest"}))
def test_runs_in_a_guest(page: str, tmp_path: Path) -> None:
    build = ensure_kernel(KernelSpec())
    paths = {name: path.resolve() for name, path in ensure_modules(build).paths.items()}
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "job.sh").write_text(guest_script(page, paths))
    Machine(build).run(tmp_path / "job", tmp_path / "out", 1, (), virtual_limit_s=120)
    assert (tmp_path / "out" / "job.log").read_text().rstrip().endswith("all of them")


@pytest.mark.scenario
def test_the_tutorials_own_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the tutorial's reader does: save the file, run it, show its results, read the numbers in Python."""
    page = ROOT / "Documentation" / "tutorial.md"
    found = {language: "\n".join(line for _, line in lines) for language, lines in blocks(page.read_text())}
    (tmp_path / "mine.toml").write_text(found["toml"])
    monkeypatch.chdir(tmp_path)
    assert main(["run", "mine.toml", "--no-plots", "--runs", "1"]) == 0
    assert main(["show", "mine", "--no-plots"]) == 0
    one = load("mine.toml")
    made = results.load(Path("results/mine.json"))
    assert {run.case["seeding"] for run in made.results} == set(one.vary["seeding"])
    assert "results.load" in found["python"]
    exec(compile(re.sub(r"(?m)^(print)", r"    \1", found["python"]), "tutorial", "exec"), {})  # indented in the page
