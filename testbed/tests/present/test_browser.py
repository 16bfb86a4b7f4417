# SPDX-License-Identifier: GPL-2.0
"""The page in Chromium: a complete page passes, and each kind of fault is found. Run by `make check-report`."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.present import browser, html_report
from testbed.tests.made_digests import all_digests

pytestmark = pytest.mark.report

PLOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g id="a"><path d="M0 0L9 9" '
    'style="stroke: #000000"/></g><use href="#a"/></svg>'
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a page of made-up results, with pictures."""
    picture = tmp_path_factory.mktemp("made") / "lp_fig8_delta-delta.svg"
    picture.write_text(f'<?xml version="1.0"?>\n{PLOT}')
    return html_report.page(all_digests(), {"lp_fig8_delta": [picture, picture]})


def faults(tmp_path: Path, text: str) -> list[str]:
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    return browser.faults(page)


def test_a_whole_page_is_good(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<main>", '<main><img src="not-there.png" alt="">', "picture missing: "),
        ("<main>", '<main><div style="width: 900px">wide</div>', "380 px: scrolls sideways"),
        ("</script>", "\nconsole.error('oh'); notDefined();</script>", "console: ReferenceError"),
        ("--ink: #1a1a1a", "--ink: #bbbbbb", "light, 380 px: p: contrast"),
        ("const down = head", "const down = true || head", "a head does not sort ascending"),
        ('href="#scoreboard"', 'href="#nowhere"', "link to nothing: #nowhere"),
        ("@media (prefers-color-scheme: dark)", "@media (never)", "dark: the ground stays light"),
    ],
)
def test_each_kind_of_fault_is_found(tmp_path: Path, text: str, old: str, new: str, fault: str) -> None:
    assert old in text
    assert any(fault in one for one in faults(tmp_path, text.replace(old, new, 1)))
