# SPDX-License-Identifier: GPL-2.0
"""What runs leave: result files, and the digests of them that the tree keeps.

What a script of a researcher needs stands here: :func:`load` reads NAME.json and NAME.npz as a
:class:`ResultSet`, which holds one :class:`Result` for each run.
"""

from .files import BadResults, Result, ResultSet, load

__all__ = ["BadResults", "Result", "ResultSet", "load"]
