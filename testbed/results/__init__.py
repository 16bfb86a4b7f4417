# SPDX-License-Identifier: GPL-2.0
"""The output of runs: result files, and their digests, which the tree keeps.

The interface for analysis scripts: :func:`load` reads NAME.json and NAME.npz as a
:class:`ResultSet`, which holds one :class:`Result` for each run.
"""

from .files import BadResults, Result, ResultSet, load

__all__ = ["BadResults", "Result", "ResultSet", "load"]
