"""What the scripts of papers print and draw: Markdown tables, means with 95 % intervals, p of Wilcoxon's test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats


def table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A Markdown table."""
    if title:
        print(f"\n{title}\n")
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def half_width(values: Sequence[float] | np.ndarray) -> float:
    """Half of the 95 % interval (Student's t) of the mean of independent values; NaN for fewer than two."""
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    return float(stats.t.ppf(0.975, len(known) - 1) * stats.sem(known)) if len(known) > 1 else np.nan


def mean(values: Sequence[float] | np.ndarray, digits: int = 4) -> str:
    """Mean and 95 % interval, `0.3461 ± 0.0144`."""
    half = half_width(values)
    shown = f"{np.nanmean(values):.{digits}f}"
    return shown if np.isnan(half) else f"{shown} ± {half:.{digits}f}"


def wilcoxon(values: np.ndarray, others: np.ndarray) -> str:
    """p of the paired differences; empty if there are none."""
    gap = np.asarray(values, dtype=float) - others
    gap = gap[~np.isnan(gap)]
    return f"{stats.wilcoxon(gap).pvalue:.1g}" if gap.any() else ""


def gain(values: np.ndarray, others: np.ndarray) -> str:
    """How many thousandths values are above others, with the 95 % interval over pairs and p."""
    by = 1000 * (np.asarray(values, dtype=float) - others)
    return f"{np.nanmean(by):+.1f} ± {half_width(by):.1f} ({wilcoxon(values, others) or 'same'})"


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, (rows, columns) of them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, dpi=110, squeeze=False, **options)


def band(axis: Any, x: Sequence[float], values: np.ndarray, style: str = "-", **options: Any) -> None:
    """The mean of each column of `values` with its 95 % interval, as a line in a band."""
    middle, half = values.mean(axis=0), np.array([half_width(column) for column in values.T])
    (line,) = axis.plot(x, middle, style, **options)
    axis.fill_between(x, middle - half, middle + half, color=line.get_color(), alpha=0.18, linewidth=0)


def finish(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path)
