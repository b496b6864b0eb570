"""How fast a cost grows: the exponent of a power law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log(cost) over log(size), by least squares over the larger half of the sizes (at least three).

    The cost of small sizes is start-up cost, whatever they are; nan for fewer than two sizes.
    """
    order = np.argsort(sizes)
    x, y = np.log(np.asarray(sizes, dtype=float)[order]), np.log(np.asarray(costs, dtype=float)[order])
    kept = slice(-min(len(x), max(3, -(-len(x) // 2))), None)
    if len(x) < 2:
        return float("nan")
    return float(np.polyfit(x[kept], y[kept], 1)[0])
