# SPDX-License-Identifier: GPL-2.0
"""The tests of test_control.py on the kernel with KASAN, UBSAN and lockdep: all of them hold, and it reports nothing.

A report ends the run as an error (testbed/backends/machine.py), so that no test of it holds.

    make check-kernels PYTEST_ARGS=vulture/tests/test_sanitizers.py
"""

from __future__ import annotations

import pytest

from vulture.tests.test_control import TESTS, said

pytestmark = pytest.mark.kernels(on="6.12 sanitizers")


@pytest.mark.parametrize("test", TESTS)
def test_control_under_sanitizers(test: str) -> None:
    assert said("sanitizer").get(test, "it did not run") == "ok", said("sanitizer").get(test)
