"""The common style of all plots: colours that everybody can tell apart, axes, and labels as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from ..estimators.pipelines import scalers_of
from ..tables import TableEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# blue, vermilion, green, purple, orange, sky blue, black: told apart with any kind of colour vision (Okabe and Ito)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
DASHES = ("-", "--", ":", "-.")
GREY = "#8A8A8A"
LENGTH = 28  # most characters of a name


def check_matplotlib() -> None:
    """Raise an error that tells what to install, before anything is computed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'rankrls[plot]'") from None


def axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.0)) -> tuple[Any, Any]:
    """The figure and the axes to draw on: those given, or new ones from pyplot."""
    check_matplotlib()
    if ax is not None:
        return ax.figure, ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")


def panels(
    ax: Axes | list[Axes] | tuple[Axes, ...] | np.ndarray | None,
    n: int,
    size: tuple[float, float] = (4.4, 4.0),
    across: int | None = None,
) -> tuple[Any, np.ndarray]:
    """A figure and n axes: new ones, `across` of them side by side; or those given; or parts of the one given."""
    check_matplotlib()
    wide = min(n, across or n)
    high = -(-n // wide)
    if ax is None:
        from matplotlib import pyplot

        about: dict[str, Any] = {"figsize": (size[0] * wide, size[1] * high), "layout": "constrained"}
        figure, found = pyplot.subplots(high, wide, squeeze=False, **about)
        for unused in found.ravel()[n:]:
            unused.remove()
        return figure, found.ravel()[:n]
    if isinstance(ax, list | tuple | np.ndarray):
        found = np.ravel(np.asarray(ax, dtype=object))
        if len(found) != n:
            raise ValueError(f"there are {n} panels to draw, but {len(found)} axes were given")
        return found[0].figure, found
    if n == 1:
        return ax.figure, np.array([ax], dtype=object)
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(f"there are {n} panels to draw: pass {n} axes, or one made by subplots")
    ax.set_axis_off()
    parts = place.subgridspec(high, wide)
    return ax.figure, np.array([ax.figure.add_subplot(parts[divmod(i, wide)]) for i in range(n)], dtype=object)


def tidy(ax: Axes, *, x: str, y: str, grid: Literal["both", "x", "y"] = "both") -> None:
    """Add labels and a faint grid behind the data; remove the frame at the top and right."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def look(number: int) -> dict[str, Any]:
    """Colour, dashes and marker of line `number`, arranged so that combinations repeat as late as possible."""
    n = len(COLOURS)
    return {
        "color": COLOURS[number % n],
        "linestyle": DASHES[number // n % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def band(ax: Axes, x: np.ndarray, middle: np.ndarray, errors: np.ndarray | None, color: str) -> Any:
    """Draw one standard error on either side as a light band; returns None if there are no errors."""
    if errors is None or not np.isfinite(errors).any():
        return None
    return ax.fill_between(x, middle - errors, middle + errors, color=color, alpha=0.15, linewidth=0)


def held_out_axis(
    ax: Axes, scores: np.ndarray, errors: np.ndarray | None, metric: str, **style: Any
) -> tuple[Any, Any]:
    """Add a second axis on the right with the held-out scores of sizes 1, 2, ...; returns the axis and the line."""
    right, scores = ax.twinx(), np.asarray(scores)
    sizes, label = np.arange(1, len(scores) + 1), f"held-out {plain(metric)}"
    band(right, sizes, scores, errors, COLOURS[1])
    (line,) = right.plot(sizes, scores, color=COLOURS[1], linestyle="--", label=f"{label} (right)", **style)
    right.set_ylabel(label, color=COLOURS[1])
    right.spines["top"].set_visible(False)
    return right, line


def plain(text: object) -> str:
    """The caller's text made safe for matplotlib: one short line, without formulas or hidden labels.

    Examples
    --------
    >>> plain("price in $"), plain("a\\nb"), len(plain("x" * 1000))
    ('price in \\\\$', 'a b', 28)
    """
    text = str(text).encode("utf-8", "replace").decode()
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(text) > LENGTH:
        text = f"{text[: LENGTH - 1]}…"
    return ("\N{ZERO WIDTH SPACE}" if text.startswith("_") else "") + text.replace("$", r"\$")


def names_of(estimator: BaseEstimator, n: int, names: Sequence[str] | None = None) -> list[str]:
    """Names of features: those given, those seen during fit, or f1, f2, ..."""
    if names is None and any(isinstance(step, TableEncoder) for step in scalers_of(estimator)):
        names = estimator[:-1].get_feature_names_out()
    if names is None:
        names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"f{j}" for j in range(1, n + 1)]
    if len(names) != n:
        raise ValueError(f"the model has {n} features, got {len(names)} names")
    return [str(name) for name in names]
