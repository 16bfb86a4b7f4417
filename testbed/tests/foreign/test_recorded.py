# SPDX-License-Identifier: GPL-2.0
"""The recorded link: the experiment replays the recording that the user names, or a generated one without a name."""

from __future__ import annotations

from pathlib import Path

from testbed.base.places import REPO
from testbed.spec import links
from testbed.spec.experiment import load

RECORDED = REPO / "testbed" / "foreign" / "recorded.toml"


def test_one_names_a_recording_of_ones_own(tmp_path: Path) -> None:
    experiment = load(str(RECORDED))
    cases = experiment.cases("default")
    assert [case["background"] for case in cases] == ["nobody", "lbe", "credit", "cubic"]
    assert experiment.setting(cases[0], "default").topology.link_trace.startswith("generate:cellular ")
    trace = tmp_path / "link.down"
    trace.write_text("0\n3\n3\n10\n")
    setting = experiment.setting(cases[0], "default", {"topology.link_trace": str(trace)})
    assert setting.topology.link_trace == str(trace)
    assert links.make(setting.topology.link_trace, 1500) == [0, 3000, 3000, 10000]
