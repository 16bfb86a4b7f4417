# SPDX-License-Identifier: GPL-2.0
"""Small plots written directly as SVG, and the conversion of matplotlib's SVG for use inside a page.

Lines and text have currentColor, so that they are visible in a page's dark mode. Colours are Okabe and Ito's and never
the only difference.
"""

from __future__ import annotations

import math
import re
from html import escape

from .plots import COLOURS

#: readable on white and on near-black
POINT = COLOURS[0]
LIMIT = COLOURS[2]
SHAPES = "circle", "square", "triangle", "diamond"


def _mark(shape: str, x: float, y: float, size: float, fill: str) -> str:
    style = f'fill="{fill}" stroke="currentColor" stroke-width="0.7"'
    if shape == "square":
        return f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size:.1f}" height="{2 * size:.1f}" {style}/>'
    if shape == "triangle":
        points = f"{x:.1f},{y - 1.2 * size:.1f} {x - 1.1 * size:.1f},{y + size:.1f} {x + 1.1 * size:.1f},{y + size:.1f}"
        return f'<polygon points="{points}" {style}/>'
    if shape == "diamond":
        far = 1.4 * size
        corners = ((x, y - far), (x + far, y), (x, y + far), (x - far, y))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        return f'<polygon points="{points}" {style}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" {style}/>'


def _placed(points: list[tuple[float, float]], height: float, width: float = 90) -> list[float]:
    """Heights of labels beside points; each is moved down until it does not overlap those above."""
    out: dict[int, float] = {}
    for index in sorted(range(len(points)), key=lambda index: points[index][1]):
        x, y = points[index]
        for other in sorted(out, key=lambda other: out[other]):
            if abs(points[other][0] - x) < width and abs(out[other] - y) < height:
                y = out[other] + height
        out[index] = y
    return [out[index] for index in range(len(points))]


def trade_off(points: dict[str, tuple[float, float]], reference: str, x_title: str, y_title: str, title: str) -> str:
    """Use (upward) over loss (to the right), with a labelled mark for each contender; the upper left corner is best."""
    width, height, left, bottom, top, right = 640, 420, 56, 48, 16, 130
    real = {name: at for name, at in points.items() if not any(map(math.isnan, at))}
    x_low, x_high = min([0.0, *(x for x, _ in real.values())]), max([10.0, *(x for x, _ in real.values())])
    x_low, x_high = math.floor(x_low / 5) * 5 if x_low < 0 else 0.0, math.ceil(x_high / 10) * 10
    y_high = max(100.0, math.ceil(max([0.0, *(y for _, y in real.values())]) / 20) * 20)

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (x - x_low) / (x_high - x_low) * (width - left - right),
            height - bottom - y / y_high * (height - bottom - top),
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="currentColor"><title>{escape(title)}</title>'
    ]
    for step in range(0, int(y_high) + 1, 20):
        x, y = at(x_low, step)
        out.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="currentColor" opacity="0.2"/>'
            f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{step}</text>'
        )
    every = 5 if x_high <= 30 else 10 if x_high <= 100 else 50
    for step in range(math.ceil(x_low / every) * every, int(x_high) + 1, every):
        x, y = at(step, 0)
        out.append(
            f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{y:.1f}" stroke="currentColor" opacity="0.2"/>'
            f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{step}</text>'
        )
    marks = [at(*position) for position in real.values()]
    heights = _placed(marks, 13)
    for index, (name, (x, y), label_y) in enumerate(zip(real, marks, heights)):
        fill = LIMIT if name == reference else POINT
        out.append(_mark("diamond" if name == reference else SHAPES[index % 3], x, y, 5, fill))
        out.append(
            f'<line x1="{x + 6:.1f}" y1="{y:.1f}" x2="{x + 11:.1f}" y2="{label_y:.1f}" '
            'stroke="currentColor" opacity="0.5"/>'
            f'<text x="{x + 13:.1f}" y="{label_y + 4:.1f}">{escape(name)}</text>'
        )
    out.append(
        f'<text x="{(left + width - right) / 2:.0f}" y="{height - 10}" text-anchor="middle">{escape(x_title)}</text>'
        f'<text transform="translate(14 {(height - bottom + top) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_title)}</text></svg>"
    )
    return "".join(out)


def trace(lines: dict[str, list[int]], title: str) -> str:
    """Percentage of the link over time, one line for each group: the first solid, others dashed."""
    width, height = 240, 60
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" class="trace" '
        f'role="img"><title>{escape(title)}</title>'
        f'<line x1="0" y1="{height - 1}" x2="{width}" y2="{height - 1}" stroke="currentColor" opacity="0.4"/>'
    ]
    for index, values in enumerate(lines.values()):
        step = width / max(1, len(values) - 1)
        points = " ".join(
            f"{i * step:.0f},{height - 1 - min(110, v) / 110 * (height - 2):.0f}" for i, v in enumerate(values)
        )
        dash = "" if index == 0 else ' stroke-dasharray="3 2"'
        out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[index]}" stroke-width="1.3"{dash}/>')
    return "".join(out) + "</svg>"


def panels(traces: dict[str, dict[str, list[int]]], duration_s: float, title: str) -> str:
    """Percentage of the link over time, with one panel below the other for each case and a legend at the top."""
    width, left, top, panel = 640, 52, 34, 74
    height = top + len(traces) * panel + 34
    inner = width - left - 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="currentColor"><title>{escape(title)}</title>'
    ]
    for index, name in enumerate(dict.fromkeys(name for lines in traces.values() for name in lines)):
        at, dash = left + 150 * index, "" if index == 0 else ' stroke-dasharray="4 3"'
        out.append(
            f'<line x1="{at}" y1="14" x2="{at + 24}" y2="14" stroke="{COLOURS[index]}" stroke-width="2"{dash}/>'
            f'<text x="{at + 30}" y="18">{escape(name)}</text>'
        )
    for row, (case, lines) in enumerate(traces.items()):
        floor = top + (row + 1) * panel - 14
        high = panel - 30
        for percent in (0, 100):
            y = floor - percent / 100 * high
            out.append(
                f'<line x1="{left}" y1="{y:.1f}" x2="{left + inner}" y2="{y:.1f}" stroke="currentColor" opacity="0.2"/>'
                f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent}%</text>'
            )
        out.append(f'<text x="{left + 4}" y="{floor - high - 5}" font-weight="bold">{escape(case)}</text>')
        for index, values in enumerate(lines.values()):
            step = inner / max(1, len(values) - 1)
            points = " ".join(
                f"{left + i * step:.1f},{floor - min(105, v) / 100 * high:.1f}" for i, v in enumerate(values)
            )
            dash = "" if index == 0 else ' stroke-dasharray="4 3"'
            out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[index]}" stroke-width="1.8"{dash}/>')
    for second in range(0, int(duration_s) + 1, 20):
        x = left + second / duration_s * inner
        out.append(f'<text x="{x:.1f}" y="{height - 18}" text-anchor="middle">{second}</text>')
    out.append(f'<text x="{left + inner / 2:.0f}" y="{height - 3}" text-anchor="middle">seconds</text></svg>')
    return "".join(out)


def inline(svg: str, prefix: str, title: str) -> str:
    """matplotlib's SVG for use inside a page: without prologue, with the page's text colour, with unique ids."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # black becomes the page's text colour, a white background becomes transparent
    svg = re.sub(r"(stroke|fill): #000000", r"\1: currentColor", svg)
    svg = re.sub(r"fill: #ffffff", "fill: none", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    head_end = svg.index(">")
    head = re.sub(r' (width|height)="[^"]*"', "", svg[:head_end])
    return f'{head} role="img" fill="currentColor"><title>{escape(title)}</title>' + svg[head_end + 1 :]
