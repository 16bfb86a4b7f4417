# SPDX-License-Identifier: GPL-2.0
"""Each step of scripts/lint.py accepts a good file and rejects a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import lint

ROOT = Path(__file__).resolve().parents[3]
SPDX_C = "// SPDX-License-Identifier: GPL-2.0\n"
SPDX = "# SPDX-License-Identifier: GPL-2.0\n"


def tree_of(folder: Path, files: dict[str, str]) -> lint.Tree:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return lint.Tree(folder)


# step, a file that it accepts, the same file with a fault. Some faults are composed of parts, so
# that the lint of this file does not find them.
SAMPLES = [
    ("spdx", {"a.sh": SPDX + "true\n"}, {"a.sh": "true\n"}),
    ("spdx", {"a.md": "<!-- SPDX-License-Identifier: GPL-2.0 -->\n"}, {"a.md": "# Title\n"}),
    ("versions", {"a.c": "int a;\n"}, {"a.c": "#if LINUX_VERSION_" + "CODE > 0\n#endif\n"}),
    ("versions", {"include/lbe/compat.h": "KERNEL_VERSION" + "(6, 1, 0)\n"},
     {"vulture/compat.h": "KERNEL_VERSION" + "(6, 1, 0)\n"}),
    ("marks", {"a.py": "# done\n"}, {"a.py": "# TO" + "DO: all of it\n"}),
    ("marks", {"a.py": "# done\n"}, {"a.py": "pytest.sk" + "ip('later')\n"}),
    ("places", {"a.md": "see /usr/share\n"}, {"a.md": "see /ro" + "ot/results\n"}),
    ("places", {"a.sh": "apt-get update\n"}, {"a.sh": "echo deb.debi" + "an.org\n"}),
    ("links", {"a.md": "[b](b.md)\n", "b.md": "b\n"}, {"a.md": "[b](c.md)\n"}),
    ("typed", {"README.md": "It takes <!--= demo be -->9.5<!--/--> s.\n"}, {"README.md": "It takes 9.5 s.\n"}),
    ("typed", {"Documentation/a.md": "`be 3.2` runs\n"}, {"Documentation/a.md": "|a|b|\n|---|---|\n|lbe|3.2|\n"}),
    ("shellcheck", {"a": '#!/bin/sh\necho "$1"\n'}, {"a": "#!/bin/sh\necho $1\n"}),
    ("ruff", {"a.py": "import os\n\nprint(os.name)\n"}, {"a.py": "import os\n"}),
    ("mypy", {"testbed/base/a.py": "A: int = 1\n"}, {"testbed/base/a.py": "def a():\n    return 1\n"}),
    ("mypy", {"testbed/tests/a/test_a.py": "A: int = 1\n", "testbed/tests/b/test_a.py": "A: str = ''\n"},
     {"testbed/tests/a/test_a.py": "def test_a():\n    pass\n"}),
    ("mypy", {"tcp_lp/tests/a.py": "A: int = 1\n", "tcp_lp/tests/test_a.py": "from tcp_lp.tests.a import A\n"},
     {"tcp_lp/tests/test_a.py": "def test_a():\n    pass\n"}),
]  # fmt: skip


@pytest.mark.parametrize(("step", "good", "bad"), SAMPLES)
def test_step_tells_good_from_bad(step: str, good: dict[str, str], bad: dict[str, str], tmp_path: Path) -> None:
    assert lint.STEPS[step](tree_of(tmp_path / "good", good)) == []
    failures = lint.STEPS[step](tree_of(tmp_path / "bad", bad))
    assert failures
    assert all(line.startswith(next(iter(bad))) for line in failures), failures


HEADER = "/* SPDX-License-Identifier: GPL-2.0 */\n#ifndef A_H\n#define A_H\n\nint a(int b);\n\n#endif\n"


@pytest.mark.kunit
def test_checkpatch_tells_good_from_bad(tmp_path: Path) -> None:
    good = {"tcp_lp/a.h": HEADER}
    assert lint.check_checkpatch(tree_of(tmp_path / "good", good)) == []
    for name in ("tcp_lp/a.h", "tools/a/a.h"):
        bad = {name: good["tcp_lp/a.h"].replace("int a(int b);", "int a( int b ) ;")}
        assert any(f"{name}:5: ERROR:SPACING" in line for line in lint.check_checkpatch(tree_of(tmp_path / "bad", bad)))
        (tmp_path / "bad" / name).unlink()


MODULE = (
    SPDX_C
    + """#include <linux/module.h>
#include <linux/uaccess.h>

%s
MODULE_DESCRIPTION("sample for a test");
MODULE_LICENSE("GPL");
"""
)
MODULE_FILES = {
    "Kbuild": (ROOT / "Kbuild").read_text(encoding="utf-8"),
    "include/lbe/compat.h": "/* SPDX-License-Identifier: GPL-2.0 */\n",
    "tcp_lp/Kbuild": "obj-m += sample.o\n",
}
BUILD_SAMPLES = [
    # gcc warns of a missing prototype only with W=1
    ("w1", "int sample(void);\nint sample(void)\n{\n\treturn 1;\n}\n", "int sample(void)\n{\n\treturn 1;\n}\n"),
    ("w1", "", "int sample(void\n"),
    ("sparse", "", "static int __user *word;\nint sample(void);\nint sample(void)\n{\n\treturn *word;\n}\n"),
]


@pytest.mark.kunit
@pytest.mark.parametrize(("step", "good", "bad"), BUILD_SAMPLES, ids=["w1-warning", "w1-error", "sparse"])
def test_build_step_tells_good_from_bad(
    step: str, good: str, bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint, "cached_build", lambda series: None)  # one series is enough here
    good_tree = tree_of(tmp_path / "good", {**MODULE_FILES, "tcp_lp/sample.c": MODULE % good})
    assert lint.STEPS[step](good_tree) == []
    bad_tree = tree_of(tmp_path / "bad", {**MODULE_FILES, "tcp_lp/sample.c": MODULE % bad})
    failures = lint.STEPS[step](bad_tree)
    assert any("tcp_lp/sample.c:" in line for line in failures), failures


def test_only_a_trylock_excuses_an_imbalance(tmp_path: Path) -> None:
    body = "void a(void)\n{\n\tif (!spin_%s(&lock))\n\t\treturn;\n\tspin_unlock(&lock);\n}\n"
    tree = tree_of(tmp_path, {"m/try.c": body % "trylock", "m/other.c": body % "lock"})
    text = "6.12: m/{}.c:1:6: warning: context imbalance in 'a' - different lock contexts for basic block"
    assert lint.false_imbalance(tree, text.format("try"))
    assert not lint.false_imbalance(tree, text.format("other"))
    assert not lint.false_imbalance(tree, "6.12: m/try.c:1:6: warning: incorrect type in argument 3")


@pytest.mark.parametrize("step", [name for name in lint.STEPS if name not in ("checkpatch", "w1", "sparse")])
def test_empty_tree_is_no_pass(step: str, tmp_path: Path) -> None:
    with pytest.raises(lint.Refused, match="no file to look at"):
        lint.STEPS[step](lint.Tree(tmp_path))


def test_command_prints_each_step_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("# no licence\n", encoding="utf-8")
    assert lint.main(["--root", str(tmp_path), "spdx", "links", "ruff"]) == 1
    out = capsys.readouterr().out
    assert "lint: spdx        FAIL" in out
    assert "    a.md:1: no SPDX-License-Identifier" in out
    assert "lint: links       ok" in out
    assert "no file to look at (*.py)" in out
    assert out.endswith("lint: failed: spdx ruff\n")


def test_unknown_step_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        lint.main(["spelling"])
    assert stop.value.code == 2
    assert "no step 'spelling': one of spdx, versions" in capsys.readouterr().err
