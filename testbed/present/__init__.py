# SPDX-License-Identifier: GPL-2.0
"""Results for people: pictures and pages."""
