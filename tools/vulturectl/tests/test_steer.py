# SPDX-License-Identifier: GPL-2.0
"""steer.h: what a weight and a deadline come to, over the whole range of both."""

from __future__ import annotations

import ctypes
import random
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

FOLDER = Path(__file__).resolve().parent.parent
WRAPPER = """
#include "steer.h"
uint32_t weight(uint32_t percent, unsigned int connections, uint64_t total_s, uint64_t left_s)
{
	return steer_weight(percent, connections, total_s, left_s);
}
bool in_front(uint64_t total_s, uint64_t gone_s) { return steer_in_front(total_s, gone_s); }
"""
WEEK_S = 168 * 3600


@pytest.fixture(scope="module")
def steer(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("steer")
    (folder / "wrapper.c").write_text(WRAPPER)
    words = ["cc", "-shared", "-fPIC", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover", "-Wall", "-Werror"]
    subprocess.run([*words, f"-I{FOLDER}", folder / "wrapper.c", "-o", folder / "steer.so"], check=True)
    library = ctypes.CDLL(str(folder / "steer.so"))
    library.weight.restype = ctypes.c_uint32
    library.weight.argtypes = [ctypes.c_uint32, ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64]
    library.in_front.restype = ctypes.c_bool
    library.in_front.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    return library


def test_the_weight_is_the_programs_and_stays_in_its_range(steer: ctypes.CDLL) -> None:
    draw = random.Random(1)
    for _ in range(20000):
        percent = draw.choice((0, 1, 100, 1000, draw.randint(1, 1000)))
        connections = draw.choice((0, 1, 2, 16, 16384, draw.randint(1, 500)))
        total_s = draw.choice((0, 1, 60, WEEK_S, draw.randint(1, WEEK_S)))
        left_s = draw.randint(0, total_s)
        each = Fraction(percent * 10, max(connections, 1)) if percent else Fraction(1000)
        if total_s:
            each = int(each) * Fraction(total_s, max(left_s, 1))
        expected = min(max(int(each), 1), 1000000)
        assert steer.weight(percent, connections, total_s, left_s) == expected, (percent, connections, total_s, left_s)


@pytest.mark.parametrize("total_s", [60, 61, 65, 600, 3600, WEEK_S])
def test_the_part_in_front_is_the_square_of_the_time_that_has_gone(steer: ctypes.CDLL, total_s: int) -> None:
    for begin in range(0, total_s - 9, max(10, total_s // 500 // 10 * 10)):
        front = [steer.in_front(total_s, begin + second) for second in range(10)]
        low, high = 10 * Fraction(begin, total_s) ** 2, 10 * Fraction(begin + 10, total_s) ** 2
        assert low - 1 <= sum(front) <= high + 1, (begin, front)
    assert not steer.in_front(total_s, 0)
    assert all(steer.in_front(total_s, total_s + late) for late in (0, 1, 5, 10**6))


def test_a_near_deadline_has_no_part_in_front(steer: ctypes.CDLL) -> None:
    for total_s in range(1, 60):
        assert not any(steer.in_front(total_s, second) for second in range(total_s))
        assert steer.in_front(total_s, total_s)
