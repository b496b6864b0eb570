"""Pieces of one self-contained HTML page: no scripts, no network, and all text from the data escaped.

A piece is `Html`; anything else is text, which is escaped and shortened. The Content-Security-Policy forbids the page
to load or run anything, so whatever might slip through has no effect.
"""

from __future__ import annotations

import base64
import html
import io
import math
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH = 120  # most characters of a text

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light; --ink: #1c2330; --soft: #5a6474; --line: #d9dee6; --blue: #0072B2; --red: #B34A00; }
* { box-sizing: border-box; }
body { margin: 0; background: #f5f6f8; color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem; }
header h1 { margin: 0.5rem 0 0; font-size: 1.7rem; }
h2 { font-size: 1.3rem; margin: 0 0 0.6rem; }
h3 { font-size: 1.05rem; margin: 1.2rem 0 0.4rem; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 1rem; margin: 1rem 0; }
nav a { display: inline-block; padding: 0.3rem 0; margin-right: 1rem; color: var(--blue); }
p { margin: 0.4rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: 0.88rem; }
.wide { overflow-x: auto; margin: 0.4rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: 0.3rem; }
th, td { padding: 0.25rem 0.7rem 0.25rem 0; border-bottom: 1px solid var(--line); }
th, td { text-align: left; vertical-align: top; }
th { font-weight: 600; color: var(--soft); }
td, th, bdi { overflow-wrap: anywhere; unicode-bidi: isolate; }
td { max-width: 34rem; }
th:not(.number), td:not(.number) { min-width: 4.5rem; }
.named th:first-child, .named td:first-child { position: sticky; left: 0; background: #fff; min-width: 8rem; }
.number { text-align: right; white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: 0.8rem; white-space: nowrap; }
td small.better { color: var(--blue); font-weight: 600; }
td small.worse { color: var(--red); font-weight: 600; }
tr.marked td { background: #fff4e8; }
.verdict { font-size: 1.1rem; }
.tiles { display: flex; flex-wrap: wrap; gap: 0.8rem; margin: 0 0 0.8rem; }
.tiles > div { border: 1px solid var(--line); border-radius: 6px; padding: 0.5rem 0.9rem; min-width: 8rem; }
.tiles strong { display: block; font-size: 1.6rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.tiles small { color: var(--soft); font-size: 0.85rem; overflow-wrap: anywhere; }
.tiles .best { border-color: var(--blue); box-shadow: inset 0 3px 0 var(--blue); }
.warnings { margin: 0.6rem 0 0; padding: 0.6rem 0.8rem 0.6rem 1.8rem; background: #fff4e8; border-radius: 6px; }
.warnings li { overflow-wrap: anywhere; }
meter.bar { width: 5rem; height: 0.7rem; border: 0; background: none; vertical-align: middle; }
meter.bar::-webkit-meter-bar { background: #edf0f4; border: 0; border-radius: 2px; height: 0.6rem; }
meter.up::-webkit-meter-optimum-value { background: var(--blue); border-radius: 2px; }
meter.down::-webkit-meter-optimum-value { background: var(--red); border-radius: 2px; }
meter.up::-moz-meter-bar { background: var(--blue); }
meter.down::-moz-meter-bar { background: var(--red); }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0.4rem 0; flex: 1 1 22rem; max-width: 34rem; min-width: 0; }
.full figure { max-width: none; }
figure img { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 0.88rem; overflow-wrap: anywhere; }
details { border-top: 1px solid var(--line); padding: 0.4rem 0; }
summary { cursor: pointer; font-weight: 600; padding: 0.3rem 0; overflow-wrap: anywhere; }
.sides { display: flex; flex-wrap: wrap; gap: 0 2rem; }
.sides > * { flex: 1 1 20rem; min-width: 0; }
.sides table { width: 100%; }
@media (max-width: 30rem) {
  main { padding: 0.5rem; } section { padding: 0.8rem; }
  th, td { padding-right: 0.45rem; } .named th:first-child, .named td:first-child { min-width: 6rem; }
}
@media print { body { background: #fff; } section { border: 0; break-inside: avoid; } nav { display: none; } }
"""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as text: escaped, shortened, in its own element if its script runs from right to left.

    Examples
    --------
    >>> text("<script>alert(1)</script>"), text(Html("<b>"))
    ('&lt;script&gt;alert(1)&lt;/script&gt;', '<b>')
    """
    if isinstance(value, Html):
        return value
    plain = "".join(" " if c in "\t\r\n" else c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))
    return Html(html.escape(plain if len(plain) <= LENGTH else f"{plain[: LENGTH - 1]}…"))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element; `class_` is class, and every attribute is escaped."""
    given = "".join(f' {key.rstrip("_")}="{text(value)}"' for key, value in attributes.items() if value is not None)
    return Html(f"<{name}{given}>{''.join(map(text, children))}</{name}>")


def join(*pieces: Any) -> Html:
    """Pieces one after the other."""
    return Html("\n".join(map(text, pieces)))


def short(value: float) -> str:
    """A number with four digits, the way people write it.

    Examples
    --------
    >>> short(65290.0), short(0.02633), short(153.0), short(1.5e9)
    ('65,290', '0.02633', '153', '1.5e+09')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def alike(values: Sequence[float]) -> list[str]:
    """The numbers of a column, all with the same number of decimals.

    Examples
    --------
    >>> alike([0.02633, -0.9256, 0.0])
    ['0.0263', '-0.9256', '0.0000']
    """
    largest = max((abs(value) for value in values), default=0.0)
    if not 1e-4 <= largest < 1e7:
        return [f"{value:.4g}" for value in values]
    return [f"{value:,.{max(0, 3 - math.floor(math.log10(largest)))}f}" for value in values]


def name(value: object) -> Html:
    """A user's name in running text, isolated from the direction of the text around it."""
    return tag("bdi", value)


def long(value: str) -> Html:
    """Our own words, which are never shortened."""
    return Html(" ".join(map(text, value.split(" "))))


def table(
    head: Sequence[Any], rows: Sequence[Sequence[Any]], *, numbers: Sequence[int] = (), marked: Collection[int] = ()
) -> Html:
    """Rows under a header; columns `numbers` right-aligned, rows `marked` in colour. Scrolls if it is too wide."""
    kind = lambda j: "number" if j in numbers else None
    cells = lambda row, of: join(*(tag(of, cell, class_=kind(j)) for j, cell in enumerate(row)))
    body = (tag("tr", cells(row, "td"), class_="marked" if i in marked else None) for i, row in enumerate(rows))
    top = tag("thead", tag("tr", cells(head, "th"))) if head else Html("")
    return tag("div", tag("table", top, tag("tbody", *body), class_=None if 0 in numbers else "named"), class_="wide")


def figure(drawn: Figure, caption: str) -> Html:
    """A matplotlib figure as an image in the page."""
    import matplotlib

    file = io.BytesIO()
    settings: Any = {"svg.fonttype": "path", "svg.hashsalt": "rankrls"}  # the same figure gives the same bytes
    with warnings.catch_warnings(), matplotlib.rc_context(settings):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    source = f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"
    width, height = (round(96 * side) for side in drawn.get_size_inches())
    image = Html(f'<img src="{source}" alt="{text(caption)}" width="{width}" height="{height}">')
    return tag("figure", image, tag("figcaption", caption))


def blank() -> Any:
    """An empty figure small enough for a phone."""
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, 3.4), layout="constrained")


def section(title: str, anchor: str, *pieces: Any) -> Html:
    """A part of the page with a heading."""
    return tag("section", tag("h2", title), *pieces, id=anchor)


def page(title: str, *pieces: Any) -> bytes:
    """The whole page."""
    head = (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>"
    )
    body = f"<main>\n{join(*pieces)}\n</main>"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'.encode(
        "utf-8", "replace"
    )
