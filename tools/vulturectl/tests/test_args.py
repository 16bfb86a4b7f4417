# SPDX-License-Identifier: GPL-2.0
"""vulturectl's command line without a kernel module: what is wrong is named, with what it may be, and status 2."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.base.places import REPO

pytestmark = pytest.mark.host

TOOL = REPO / "tools" / "vulturectl"
COMMANDS = [
    "top", "start", "stop", "show", "list", "monitor", "metrics", "run", "bg", "fg", "hold", "apply", "showconf",
    "rule", "set",
]  # fmt: skip
#: by the end of an option's name
UNITS = {"-us": "us", "-s": "s", "-kbit": "kbit/s", "-permille": "1/1000", "-segs": "segments"}
Ranges = list[tuple[str, int, int]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ctl")
    subprocess.run(["make", "-s", "-C", TOOL, f"O={folder}", "BPF=no"], check=True, capture_output=True)
    return folder / "vulturectl"


@pytest.fixture(scope="module")
def ranges() -> Ranges:
    """(option, least, most) as the kernel's specification has them."""
    specification = yaml.safe_load((REPO / "Documentation" / "vulture.yaml").read_text(encoding="utf-8"))
    return [
        (one["name"], one["checks"].get("min", 0), one["checks"]["max"])
        for options in specification["attribute-sets"]
        if options["name"].endswith("-options")
        for one in options["attributes"]
    ]


def ctl(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in (program, *words)], check=False, capture_output=True, text=True)


def test_an_option_out_of_its_range_is_named_with_the_range(program: Path, ranges: Ranges, tmp_path: Path) -> None:
    """By -o and in a file of apply. What is within is no fault of the command line."""
    conf = tmp_path / "background.conf"
    for name, least, most in ranges:
        text = f"{name} '{{}}' is not a number within {least} to {most}"
        for value in (least - 1, most + 1, "x", "", "+5", " 5", "1e3", 1 << 70):
            done = ctl(program, "run", "-o", f"{name}={value}", "--", "true")
            assert done.returncode == 2 and text.format(value) in done.stderr, (name, value, done)
        conf.write_text(f"remote-port 80\nremote-port 81 {name}={most + 1}\n")
        done = ctl(program, "apply", conf)
        assert (done.returncode, done.stderr) == (2, f"vulturectl: {conf}:2: {text.format(most + 1)}\n")
        for value in (least, most):
            done = ctl(program, "run", "-o", f"{name}={value}", "--frobnicate")
            assert "not a number" not in done.stderr and "unrecognized option '--frobnicate'" in done.stderr, done


def test_all_options_are_listed_with_range_default_and_unit(program: Path) -> None:
    """As the kernel's specification has them; its doc ends with the default."""
    head, controller, *rest = (line.split("  ") for line in ctl(program, "--help-options").stdout.splitlines())
    lines = {line[0]: [word.strip() for word in line[1:] if word.strip()] for line in (head, controller, *rest)}
    assert lines.pop("NAME") == ["VALUES", "DEFAULT", "UNIT", "CONTROLLER"]
    assert lines.pop("controller") == ["paper, credit, rledbat", "credit", "-", "all"]
    wanted = {}
    specification = yaml.safe_load((REPO / "Documentation" / "vulture.yaml").read_text(encoding="utf-8"))
    for options in specification["attribute-sets"]:
        for one in options["attributes"] if options["name"].endswith("-options") else []:
            least, most = one["checks"].get("min", 0), one["checks"]["max"]
            default = one["doc"].split()[-1].replace("each", "0")
            unit = next((unit for end, unit in UNITS.items() if one["name"].endswith(end)), "-")
            wanted[one["name"]] = [f"{least} to {most}", default, unit, options["name"].removesuffix("-options")]
    assert lines == wanted


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("remote 10.0.0.0/33", "prefix length '33' is not a number within 0 to 32"),
        ("remote 10.0.0.0/", "prefix length '' is not a number within 0 to 32"),
        ("remote 10.0.0.0/-1", "prefix length '-1' is not a number within 0 to 32"),
        ("remote 2001:db8::/129", "prefix length '129' is not a number within 0 to 128"),
        ("remote 10.0.0/8", "'10.0.0/8' is neither an IPv4 nor an IPv6 prefix (192.0.2.0/24, 2001:db8::/32)"),
        (f"remote {'1' * 250}", f"'{'1' * 250}' is neither an IPv4 nor an IPv6 prefix"),
        ("local-port 0", "port '0' is not a number within 1 to 65535"),
        ("remote-port +80", "port '+80' is not a number within 1 to 65535"),
        ("dscp 64", "dscp '64' is neither le, cs1 nor a number within 0 to 63"),
        ("dscp LE", "dscp 'LE' is neither le, cs1 nor a number within 0 to 63"),
        ("remote-port 80 weight", "weight needs a number within 1 to 1000"),
        ("remote-port 80 weight 0", "weight '0' is not a number within 1 to 1000"),
        ("remote-port 80 weight 1001", "weight '1001' is not a number within 1 to 1000"),
        ("remote-port 80 weight 20 down weight 30", "a line may have only one weight"),
        ("remote-port 80 weight=200 weight 20", "a line may have only one weight"),
        ("remote-port 80 weight 20 controller=paper", "weight works only with the controller credit"),
        ("dscp le up weight 20", "uploads have the weight of a cgroup"),
        ("unit a.service weight=200", "a unit takes weight N and no other option"),
        ("remote-port 80 heavy", "'heavy' is neither up, down, both, weight N nor NAME=VALUE"),
        ("dscp le up min-kbit=9", "min-kbit=9 is an option for downloads: leave it out, or up"),
    ],
)
def test_a_value_of_a_line_is_named(program: Path, tmp_path: Path, line: str, text: str) -> None:
    conf = tmp_path / "background.conf"
    conf.write_text(f"# one that is right\nremote 2001:db8::/32\n{line}\n")
    done = ctl(program, "apply", conf)
    assert done.returncode == 2 and done.stderr.startswith(f"vulturectl: {conf}:3: {text}"), done


def test_a_controller_is_named(program: Path) -> None:
    for word in ("pigeon", "3", "-1"):
        done = ctl(program, "run", "-o", f"controller={word}", "--", "true")
        assert done.returncode == 2 and f"no controller '{word}': paper, credit, rledbat" in done.stderr, done
    for word in ("credit", "rledbat", "paper", "0", "2"):
        assert "no controller" not in ctl(program, "run", "-o", f"controller={word}", "--frobnicate").stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_how_it_is_called(program: Path, command: str) -> None:
    """--help: its own lines of the usage and no other's; a wrong option: the same after a sentence."""
    done = ctl(program, command, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: vulturectl {command}"), done
    others = {line.split()[1] for line in done.stdout.splitlines() if line.lstrip().startswith("vulturectl ")}
    assert others <= {command}, done.stdout
    if command not in ("metrics", "list", "showconf", "apply", "bg", "fg", "rule"):
        wrong = ctl(program, command, "--frobnicate")
        # without the module some commands come no further
        assert wrong.returncode == 2 or "is not loaded" in wrong.stderr, wrong
        assert wrong.stderr.startswith("vulturectl: "), wrong
    for folder_word in ("bash", "zsh"):
        assert command in (TOOL / f"vulturectl.{folder_word}").read_text().split("rest)")[0], folder_word
    page = (TOOL / "vulturectl.8").read_text()
    assert re.search(rf'^\.B[IR]? "?{command}\b', page, re.MULTILINE), "the manual does not have it"


def test_the_help_of_what_is_run_is_its_own(program: Path) -> None:
    """`run -- CMD --help` is CMD's."""
    assert "usage: vulturectl" not in ctl(program, "run", "--", "true", "--help").stdout
    assert ctl(program, "run", "--help").returncode == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["fly"], "there is no command 'fly'"),
        (["--loud", "list"], "there is no option '--loud'"),
        (["bg", "0"], "pid '0' is not a number within 1 to 2147483647"),
        (["bg", "a b"], "'a b' is neither a process number nor the name of a unit"),
        (["fg"], "fg takes a process number or the name of a unit"),
        (["top", "-n", "86401"], "interval '86401' is not a number within 1 to 86400"),
        (["top", "x"], "top takes no argument 'x'"),
        (["metrics", "x"], "metrics takes no argument 'x'"),
        (["apply", "a", "b"], "apply takes one file at most"),
        (["showconf", "x"], "showconf takes no argument 'x'"),
        (["hold"], "hold takes the directory of a v2 cgroup"),
        (["run"], "run needs a command"),
        (["run", "--deadline", "25:00", "--", "true"], "deadline '25:00' is neither a time of day, 00:00 to 23:59, "),
        (["run", "--weight", "1001", "--", "true"], "weight '1001' is not a number within 1 to 1000"),
        (["run", "--weight"], "option '--weight' requires an argument"),
    ],
)
def test_what_is_wrong_is_said_first_and_then_the_usage(program: Path, words: list[str], text: str) -> None:
    done = ctl(program, *words)
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 2 and first.startswith("vulturectl: ") and text in first, done
    assert any(line.startswith("usage: vulturectl") for line in rest) and len(rest) < 8, "the sentence stays in sight"
