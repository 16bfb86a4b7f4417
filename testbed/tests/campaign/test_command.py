# SPDX-License-Identifier: GPL-2.0
"""`make report` as a user runs it: interrupted by Ctrl-C, continued, its pages opened. Run by `make check-report`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.base.cache import cache_root
from testbed.results import digest

pytestmark = pytest.mark.report

ROOT = Path(__file__).parents[3]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Make a cache that has every built program and kernel but no runs."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for built in cache_root().iterdir():
        if built.is_dir() and built.name not in ("runs", "run", "locks"):
            (cache / built.name).symlink_to(built)
    return os.environ | {"LBE_CACHE": str(cache)}


def kept(environment: dict[str, str]) -> dict[Path, int]:
    """Map each run of the cache to the time at which it was stored."""
    found = Path(environment["LBE_CACHE"], "runs").glob("*/*/facts.json")
    return {path: path.stat().st_mtime_ns for path in found}


def test_report_goes_on_after_ctrl_c(environment: dict[str, str], tmp_path: Path) -> None:
    # if this test runs as a background job it ignores SIGINT, and its children would inherit that
    words = ["env", "--default-signal=INT"]
    words += [sys.executable, "-m", "testbed", "evaluate", "demo", "--minutes", "2", "--jobs", "2", "--no-plots"]
    words += ["--out", str(tmp_path / "out"), "--docs", str(tmp_path / "docs")]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        assert first.stderr
        for line in first.stderr:
            if " runs, " in line:
                assert "left" in line, "what time is left is said"
                break
        os.killpg(first.pid, signal.SIGINT)  # to the whole process group, as the terminal does
        assert "the same command goes on from here" in first.stderr.read()
    assert first.returncode == 130
    for _ in range(50):
        try:
            os.killpg(first.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process is left running")
    before = kept(environment)
    assert before

    second = subprocess.run(words, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    after = kept(environment)
    assert {path: after[path] for path in before} == before, "nothing was run twice"
    document = digest.load(tmp_path / "out" / "digests" / "demo.json")
    assert sum(len(case["seeds"]) for case in document["cases"]) == document["runs_wanted"] <= len(after)
    assert (tmp_path / "out" / "index.html").is_file() and (tmp_path / "docs" / "coverage.md").is_file()
