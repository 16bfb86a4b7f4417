# SPDX-License-Identifier: GPL-2.0
"""What apply reads of a file, in a program of its own: no kernel, no rights, nothing is put in force."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO

pytestmark = pytest.mark.host

TOOL = REPO / "tools" / "vulturectl"
#: prints each item that the file named by the first word has
READER = """
#include "conf.c"

int main(int argc, char **argv)
{
	static struct items items;
	unsigned int i;

	conf_file = argv[1];
	read_conf(&items);
	for (i = 0; i < items.count; i++)
		printf("%u %s %s %s%s %s\\n", items.item[i].line, kinds[items.item[i].kind],
		       items.item[i].value, items.item[i].up ? "up" : "",
		       items.item[i].down ? "down" : "", items.item[i].options);
	return 0;
}
"""


#: a line of each kind that may have a direction
DIRECTED = ("cgroup /a", "user root", "local-port 80", "remote-port 80", "remote ::/0", "dscp le")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conf")
    (folder / "reader.c").write_text(READER)
    sources = [*TOOL.glob("*.c"), *(TOOL.parent / "libvulture").glob("*.c")]
    words = ["cc", "-std=gnu11", "-w", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{TOOL}"]
    others = [path for path in sources if path.name != "conf.c" and not path.name.endswith(".bpf.c")]
    subprocess.run([*words, "-Dmain=program", '-DLBE_VERSION=""', "-c", *others], cwd=folder, check=True)
    subprocess.run([*words, "reader.c", *folder.glob("*.o"), "-lmnl", "-o", "reader"], cwd=folder, check=True)
    return folder / "reader"


def read(reader: Path, text: bytes) -> subprocess.CompletedProcess[str]:
    path = reader.parent / "background.conf"
    path.write_bytes(text)
    return subprocess.run([reader, path], capture_output=True, text=True, check=False, timeout=300)


def items(reader: Path, text: bytes) -> list[str]:
    done = read(reader, text)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.splitlines()


def error(reader: Path, text: bytes) -> str:
    """The line number and the sentence; nothing is read, and it is one line of text."""
    done = read(reader, text)
    assert done.returncode == 2 and done.stdout == "", done
    assert done.stderr.count("\n") == 1 and done.stderr[:-1].isprintable(), done
    return done.stderr.split("background.conf:", 1)[1].strip()


def test_lines_are_the_same_however_their_end_is_written(reader: Path) -> None:
    text = b"# ports\nremote-port 873\n\nunit a.service weight 20\nuser root down"
    expected = ["2 remote-port 873 updown -", "4 unit a.service updown weight,20", "5 user root down -"]
    for odd in (text, text + b"\n", text.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + text, text.replace(b" ", b"\t ")):
        assert items(reader, odd) == expected, odd
    for nothing in (b"", b"\n", b"\r\n", b"\xef\xbb\xbf", b"#", b" \t", "# größer\n".encode(), b"# \x00\x0c\n"):
        assert items(reader, nothing) == [], nothing


@pytest.mark.parametrize("byte", [0, 1, 7, 11, 12, 13, 27, 31])
def test_a_control_character_is_named(reader: Path, byte: int) -> None:
    """One would divide a line of the state file, or act on the terminal that a message is written to."""
    odd = bytes([byte])
    for line in (b"remote-port 8" + odd + b"0", b"unit a" + odd + b"b.service", odd + b"dscp le"):
        assert f"the control character 0x{byte:02x}" in error(reader, b"dscp 2\n" + line + b"\n"), line


def test_a_long_line_is_refused_and_no_memory_is_taken_for_it(reader: Path) -> None:
    for line in (b"#" * 1023, b"unit " + b"a" * 2000 + b".service", b" " * (1 << 22) + b"\n"):
        assert error(reader, b"dscp le\n" + line) == "2: the line is longer than 1022 characters"
    assert items(reader, b"#" * 1022) == []
    for length, good in ((255, True), (256, False)):
        line = b"unit " + b"a" * (length - 8) + b".service"
        assert good or "the value is longer than 255 characters" in error(reader, line)
        assert not good or len(items(reader, line)) == 1
    done = subprocess.run([reader, "/dev/zero"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2 and "the line is longer" in done.stderr, done


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("unit a.service", "unit a.service weight 5"),
        ("cgroup /sys/fs/cgroup/a", "cgroup /sys/fs/cgroup/a/ up"),
        ("cgroup /sys/fs/cgroup/a", "cgroup //sys/fs//cgroup/a"),
        ("cgroup /", "cgroup ///"),
        ("cgroup /proc/self", "cgroup /proc/thread-self/../.."),
        ("remote-port 80", "remote-port 080"),
        ("remote 192.0.2.1", "remote 192.0.2.1/32"),
        ("remote 2001:db8::1", "remote 2001:0db8:0::1"),
        ("remote 10.0.0.0/8", "remote 10.1.2.3/8 up"),
        ("remote 128.0.0.0/1", "remote 255.0.0.0/1"),
        ("remote ::/0", "remote 2001:db8::/0"),
        ("remote 2001:db8::8/126", "remote 2001:db8::b/126"),
        ("remote 2001:db8::/33", "remote 2001:db8:7fff::/33"),
        ("dscp le", "dscp 1 weight 7"),
        ("user root", "user root down"),
    ],
)
def test_the_same_in_two_ways_is_a_mistake(reader: Path, first: str, second: str) -> None:
    if second.endswith("../.."):
        first = "cgroup /proc/self/task/.."
    said = error(reader, f"{first}\nlocal-port 80\n{second}\n".encode())
    assert said.startswith("3: ") and said.endswith("is in line 1 already"), said


def test_what_differs_is_no_mistake(reader: Path) -> None:
    lines = ["local-port 80", "remote-port 80", "remote 192.0.2.0/24", "remote 192.0.2.0/25", "dscp 0", "dscp le"]
    lines += ["remote 0.0.0.0/0", "remote ::/0", "remote ::1", "remote ::2", "remote ::/127", "remote ::ffff:0:0/96"]
    lines += ["cgroup /sys/fs/cgroup/a", "cgroup /sys/fs/cgroup/b", "unit a.service", "unit b.service"]
    assert len(items(reader, "\n".join(lines).encode())) == len(lines)


@pytest.mark.parametrize("kind", ["timer", "socket", "scope", "slice", "target", "mount", "path", "Service"])
def test_a_unit_that_has_no_section_service_is_refused(reader: Path, kind: str) -> None:
    said = error(reader, f"unit backup.{kind}\n".encode())
    assert said.startswith(f"1: unit 'backup.{kind}' is not a service: only units whose names end in .service"), said


def test_the_direction_is_both_unless_a_line_says_up_or_down(reader: Path) -> None:
    for line in DIRECTED:
        for word, directions in (("", "updown"), (" both", "updown"), (" up", "up"), (" down", "down")):
            assert items(reader, f"{line}{word}".encode()) == [f"1 {line} {directions} -"]
            if word != " up":
                expected = [f"1 {line} {directions} weight,20,min-kbit=9"]
                assert items(reader, f"{line} weight 20{word} min-kbit=9".encode()) == expected


@pytest.mark.parametrize("line", DIRECTED)
def test_what_uploads_cannot_have_is_refused_by_name(reader: Path, line: str) -> None:
    for words in ("up weight 20", "weight 20 up"):
        why = "1: uploads have the weight of a cgroup, so a line by port, address or DSCP has none for them: "
        if line.startswith(("cgroup", "user")):
            assert items(reader, f"{line} {words}".encode()) == [f"1 {line} up weight,20"]
        else:
            assert error(reader, f"{line} {words}".encode()) == why + "leave out weight 20 or up"
    for words, which in (("up min-kbit=9", "min-kbit=9"), ("weight=20 up escape-s=5", "weight=20,escape-s=5")):
        why = f"1: {which} is an option for downloads: leave it out, or up"
        assert error(reader, f"{line} {words}".encode()) == why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *((f"local-port {n}", f"port '{n}' is not a number within 1 to 65535") for n in ("0", "65536", "-1", "80x")),
        *((f"remote-port {n}", f"port '{n}' is not a number within 1 to 65535") for n in ("0", "65536", "http")),
        *((f"dscp {n}", f"dscp '{n}' is neither le, cs1 nor a number within 0 to 63") for n in ("64", "-1", "LE")),
        *((f"dscp le weight {n}", f"weight '{n}' is not a number within 1 to 1000") for n in ("0", "1001", "20%")),
        ("remote 10.0.0.0/33", "prefix length '33' is not a number within 0 to 32"),
        ("remote ::/129", "prefix length '129' is not a number within 0 to 128"),
        ("remote 10.0.0", "'10.0.0' is neither an IPv4 nor an IPv6 prefix"),
        ("port 443 both", "'port' is none of unit, cgroup, user, local-port, remote-port, remote, dscp"),
    ],
)  # fmt: skip
def test_a_value_out_of_its_range_is_named_with_the_range(reader: Path, line: str, why: str) -> None:
    assert error(reader, f"dscp 5\n{line}\n".encode()).startswith(f"2: {why}"), line


def test_what_a_line_may_not_have(reader: Path) -> None:
    for line, why in (
        ("unit backup", "'backup' is not the name of a unit, such as restic.service"),
        ("unit .service", "'.service' is not the name of a unit"),
        ("unit a/b.service", "'a/b.service' is not the name of a unit"),
        ("remote-port 80 down down", "only one of up, down and both, and this one has down already"),
        ("cgroup /a up both", "only one of up, down and both, and this one has up already"),
        ("remote-port 80 min-kbit=2 min-kbit=3", "a line may have min-kbit only once"),
        ("remote-port 80 weight 2 weight 3", "a line may have only one weight"),
        ("remote-port 80 weight=2 weight 3", "a line may have only one weight"),
        ("remote-port 80 =", "there is no option ''"),
        ("remote-port 80 sideways", "'sideways' is neither up, down, both, weight N nor NAME=VALUE"),
        ("cgroup a", "cgroup 'a' is not an absolute path"),
        ("unit", "unit needs a value"),
        ("UNIT a.service", "'UNIT' is none of unit, cgroup,"),
    ):
        assert why in error(reader, f"{line}\n".encode()), line


def test_as_many_lines_as_the_kernel_takes_rules(reader: Path) -> None:
    lines = [f"remote-port {port}" for port in range(1, 258)]
    assert len(items(reader, "\n".join(lines[:256]).encode())) == 256
    assert error(reader, "\n".join(lines).encode()) == "257: more than 256 lines"
