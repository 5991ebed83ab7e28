"""A trade-off curve as SVG, which needs no library to draw and none to look at."""

from __future__ import annotations

import html

from .content import Curve

#: Of the picture, and of the square that the curve is in: left, top, size.
WIDTH, HEIGHT = 360, 330
LEFT, TOP, SIZE = 56, 14, 260
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TITLE = "True positive rates that no attack exceeds"
DESCRIPTION = (
    "Horizontal: the false positive rate of an attack, from 0 to 1. Vertical: its true positive rate, from 0 to 1. No "
    "attack lies above the solid line. Pure guessing lies on the dashed diagonal. The numbers are in the table."
)


def svg(curve: Curve, key: str) -> str:
    """The picture, in the colour of the text; a page may give its classes others: axis, text, line and guess."""
    points = dict.fromkeys(
        f"{_x(float(alpha)):.1f},{_y(float(power)):.1f}"
        for alpha, power in zip(curve.false_positive_rates, curve.true_positive_rates)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-title {key}-desc" '
        f'xmlns="http://www.w3.org/2000/svg"><title id="{key}-title">{html.escape(TITLE)}</title>'
        f'<desc id="{key}-desc">{html.escape(DESCRIPTION)}</desc>{_axes()}'
        f'<line class="guess" stroke="currentColor" stroke-dasharray="5 4" {_from_to()}/>'
        f'<polyline class="line" fill="none" stroke="currentColor" stroke-width="2.5" points="{" ".join(points)}"/>'
        "</svg>"
    )


def _from_to() -> str:
    """The diagonal."""
    return f'x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(1):.1f}"'


def _x(rate: float) -> float:
    return LEFT + SIZE * rate


def _y(rate: float) -> float:
    return TOP + SIZE * (1.0 - rate)


def _axes() -> str:
    frame = (
        f'<rect class="axis" fill="none" stroke="currentColor" x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}"/>'
    )
    below = "".join(_text(_x(tick), TOP + SIZE + 17, f"{tick:g}", "middle") for tick in TICKS)
    beside = "".join(_text(LEFT - 7, _y(tick) + 4, f"{tick:g}", "end") for tick in TICKS)
    name_below = _text(_x(0.5), TOP + SIZE + 40, "false positive rate", "middle")
    turned = f'transform="rotate(-90 16 {_y(0.5):.0f})"'
    return frame + below + beside + name_below + _text(16, _y(0.5), "true positive rate", "middle", turned)


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}'
    return f'<text class="text" fill="currentColor" font-size="12" {place}>{text}</text>'
