# SPDX-License-Identifier: GPL-2.0
"""The document of `make check-kernels`: a case for each kernel; a partial run is merged if its tree is the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from testbed.base.places import REPO
from testbed.present import quoting, tables
from testbed.results import digest
from testbed.support import outcomes
from testbed.support.outcomes import Told

RAN = {
    "t.py::test_kernel[7.2-load]": Told("7.2", True, 3.2),
    "t.py::test_kernel[6.1-races]": Told("6.1", True, 40.0, {"rounds": 12, "release": "6.1.0-x"}),
    "t.py::test_kernel[6.1-log]": Told("6.1", False, 1.0),
}

TESTS = """
import pytest
@pytest.mark.kernels
@pytest.mark.parametrize("series", ["6.1", "rt-6.12"])
def test_one(series, record_property):
    record_property("rounds", 3)
    assert series != "6.1"
@pytest.mark.kernels(on="6.12 KCSAN")
def test_two():
    pass
@pytest.mark.host
def test_of_another_tier():
    pass
@pytest.fixture
def broken():
    yield
    raise RuntimeError("at the end")
@pytest.mark.kernels
def test_three(broken):
    pass
"""


def test_a_kernel_is_a_case_in_the_order_of_the_rows(tmp_path: Path) -> None:
    document = digest.load(outcomes.save(RAN, tmp_path))
    assert [case["case"]["kernel"] for case in document["cases"]] == ["6.1", "7.2"]
    (old, _) = document["cases"]
    assert {name: values[0] for name, values in old["metrics"].items()} == {
        "ran": 2, "passed": 1, "failed": 1, "seconds": 41, "rounds": 12,
    }  # fmt: skip
    assert old["faults"] == ["t.py::test_kernel[6.1-log]"]
    said = {outcomes.NAME: document}
    assert quoting.quote("check_kernels rounds kernel=6.1", said) == "12"
    assert quoting.quote("check_kernels @kernel", said) == "6.1.0-x"


def test_it_hides_no_settings_of_the_experiments(tmp_path: Path) -> None:
    document = digest.load(outcomes.save(RAN, tmp_path))
    demo = {"sysctls": {"net.ipv4.tcp_ecn": "2"}}
    assert tables.pinned_settings({outcomes.NAME: document, "demo": demo}) == {"net.ipv4.tcp_ecn": "2"}
    assert tables.pinned_settings({outcomes.NAME: document}) == {}


def test_a_part_of_a_run_stands_beside_the_rest(tmp_path: Path) -> None:
    outcomes.save(RAN, tmp_path)
    outcomes.save({"t.py::test_kernel[6.1-log]": Told("6.1", True, 2.0)}, tmp_path)
    document = digest.load(tmp_path / "check_kernels.json")
    assert document["cases"][0]["metrics"]["passed"] == [2] and len(document["tests"]) == 3
    outcomes.save(RAN, tmp_path, version="another")
    assert "another" in digest.load(tmp_path / "check_kernels.json")["ran"]["testbed"]


def test_outcomes_of_another_tree_are_dropped(tmp_path: Path) -> None:
    path = outcomes.save(RAN, tmp_path)
    path.write_text(path.read_text().replace(digest.load(path)["file_sha256"], "0" * 64))
    outcomes.save({"t.py::test_kernel[7.2-load]": Told("7.2", True, 1.0)}, tmp_path)
    assert list(digest.load(path)["tests"]) == ["t.py::test_kernel[7.2-load]"]
    path.write_text("{")
    assert outcomes.known(path, outcomes.state_of_tree()) == ({}, [])


def test_the_files_that_decide_are_there() -> None:
    for name in outcomes.FILES:
        assert (REPO / name).is_file(), name


def test_every_file_with_tests_of_the_tier_is_listed() -> None:
    marked = re.compile(r"^(@|pytestmark = )pytest\.mark\.kernels\b", re.MULTILINE)
    here = Path(__file__).resolve()
    folders = sorted(folder for folder in REPO.glob("**/tests") if ".git" not in folder.parts)
    files = {path for folder in folders for path in folder.glob("**/test_*.py") if path != here}
    found = {str(path.relative_to(REPO)) for path in files if marked.search(path.read_text(encoding="utf-8"))}
    assert len(found) > 3 and found <= set(outcomes.FILES), sorted(found - set(outcomes.FILES))


def test_a_session_leaves_what_it_saw(tmp_path: Path) -> None:
    """Run another pytest with the plugin: a failure in a fixture counts, tests of other tiers do not."""
    import subprocess
    import sys

    (tmp_path / "test_it.py").write_text(TESTS)
    markers = "".join(f"    {name}\n" for name in ("kernels", "host"))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{markers}")
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(REPO)!r})\n"
        "from pathlib import Path\nfrom testbed.support.outcomes import Outcomes\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(Outcomes(Path('out')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        check=False, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    document = json.loads((tmp_path / "out" / "check_kernels.json").read_text())
    passed = {case["case"]["kernel"]: case["metrics"]["passed"][0] for case in document["cases"]}
    assert passed == {"6.1": 0, "6.12": 0, "rt-6.12": 1, "6.12 KCSAN": 1}
    assert "rt-6.12            1 tests, 1 passed, 0 failed, 0 s, 3 rounds of races" in done.stdout
