# SPDX-License-Identifier: GPL-2.0
"""The evaluation: which experiments stand for what, what they cost, and the pages made of their results.

campaign     what is run, in which form, within which time
digest       an experiment's results without the series: what pages are made of, and what is committed
coverage     the papers' tables and figures against ours, with verdicts
scoreboard   every contender in every scenario, as distances from strict priority
pages        Markdown and one HTML page of all that
"""
