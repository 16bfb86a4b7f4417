# SPDX-License-Identifier: GPL-2.0
"""What the two shells offer after vulturectl: the completion files, run by the shells themselves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.backends.tools import build_vulturectl
from testbed.base.places import REPO

pytestmark = pytest.mark.host

TOOL = REPO / "tools" / "vulturectl"

#: words before the one to complete, what is typed of it, what must be offered, what must not
CASES = [
    ([], "", {"start", "stop", "show", "list", "monitor", "run", "rule", "set"}, {"--pid"}),
    ([], "mo", {"monitor"}, {"start"}),
    (["start"], "--", {"--pid", "--cgroup"}, {"--id"}),
    (["stop"], "--", {"--pid", "--cgroup", "--id"}, {"--events"}),
    (["rule"], "", {"add", "del", "list"}, {"start"}),
    (
        ["rule", "add"],
        "--",
        {"--cgroup", "--local-port", "--remote-port", "--remote", "--dscp", "--foreground"},
        {"--pid"},
    ),
    (["set", "-o"], "ps", {"psi-us="}, {"tick-us="}),
    (["run", "-u"], "nob", {"nobody"}, {"list"}),
    (["run"], "--", {"--up", "--down", "--weight", "--deadline"}, {"--pid"}),
    ([], "b", {"bg"}, {"fg"}),
]

BASH = """
source {file}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
compopt() {{ :; }}
_vulturectl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

# zsh's completion works in its line editor alone: a pseudo-terminal of its own, and a hook that tells what compadd was
# given. `compadd -O` leaves in an array what fits the word typed; the options that say how to show it do not matter.
ZSH = """
zmodload zsh/zpty
zpty -b shell zsh -f -i
feed() {{ zpty -w shell "$1" }}
feed 'PS1=; PS2=; autoload -Uz compinit; compinit -u -d {folder}/dump; fpath=({folder} $fpath)'
feed 'autoload -Uz _vulturectl; compdef _vulturectl vulturectl; zstyle ":completion:*" verbose no; LISTMAX=1000'
feed 'compadd() {{ local -a fit; local i
 for ((i = 1; i <= $#; i++)); do case ${{@[i]}} in (-[ODA]) builtin compadd "$@"; return;; esac; done
 builtin compadd -O fit "$@"; print -rl -- ${{fit/%/"$suffix"}} >> {folder}/offered; builtin compadd "$@"; }}'
feed 'print ready > {folder}/ready'
for i in {{1..100}}; do [[ -e {folder}/ready ]] && break; sleep 0.05; done
zpty -w -n shell '{line}'$'\\t'
for i in {{1..60}}; do [[ -s {folder}/offered ]] && sleep 0.3 && break; sleep 0.05; done
zpty -d shell
cat {folder}/offered
"""


def environment() -> dict[str, str]:
    """With vulturectl on the path."""
    return os.environ | {"PATH": f"{build_vulturectl().parent}:{os.environ['PATH']}", "TERM": "dumb"}


def by_bash(words: list[str], typed: str, _: Path) -> set[str]:
    """What bash would offer."""
    script = BASH.format(file=TOOL / "vulturectl.bash")
    done = subprocess.run(
        ["bash", "-c", script, "bash", "vulturectl", *words, typed],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    return set(done.stdout.split())


def by_zsh(words: list[str], typed: str, folder: Path) -> set[str]:
    """What zsh would offer."""
    (folder / "_vulturectl").write_text((TOOL / "vulturectl.zsh").read_text())
    line = " ".join(["vulturectl", *words, typed])
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH.format(folder=folder, line=line)],
        check=False,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
    )
    return {word if not words or words[-1] != "-o" else f"{word}=" for word in done.stdout.split()}


@pytest.mark.parametrize(
    ("words", "typed", "some", "none"),
    [
        (["run", "--"], "mktem", {"mktemp"}, {"--up"}),
        (["run", "--up", "--weight", "5"], "mktem", {"mktemp"}, set()),
        (["run", "--", "tar", "xf"], "/etc/host", {"/etc/hostname"}, set()),
        (["run", "tar", "xf"], "/etc/host", {"/etc/hostname"}, set()),
        (["run", "--", "rsync"], "--", set(), {"--up", "--weight"}),
        (["run", "--", "rsync", "-u"], "nob", set(), {"nobody"}),
        (["run", "--", "rsync", "-o"], "ps", set(), {"psi-us="}),
        (["run", "--up", "-o"], "ps", {"psi-us="}, set()),
    ],
)
def test_what_run_runs_is_completed_as_it_is_without_run(
    words: list[str], typed: str, some: set[str], none: set[str], tmp_path: Path
) -> None:
    """The command after `run` is completed as without `run`: by bash without its package of completions, and by zsh
    with the completions of each command."""
    offered = by_bash(words, typed, tmp_path)
    assert some <= offered and not none & offered, offered


@pytest.mark.parametrize("shell", [by_bash, by_zsh])
@pytest.mark.parametrize(("words", "typed", "some", "none"), CASES)
def test_completion(
    shell: Callable[[list[str], str, Path], set[str]],
    words: list[str],
    typed: str,
    some: set[str],
    none: set[str],
    tmp_path: Path,
) -> None:
    offered = shell(words, typed, tmp_path)
    assert some <= offered, offered
    assert not none & offered, offered
