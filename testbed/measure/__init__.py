# SPDX-License-Identifier: GPL-2.0
"""Numbers from records: metrics and their statistics."""
