"""How likely readers are to look at each position, estimated from the log.

A document of relevance r at position k is clicked with probability theta_k r (the position-based model). If documents
were shown at several positions, the likelihood of the counts as Poisson variables,

    clicks_dk ~ Poisson(impressions_dk r_d theta_k),

is largest where the sums over documents and over positions both agree; scaling the two in turn finds it (iterative
proportional fitting). If documents kept their positions, theta comes from an additive model of clicks on features and
positions.
"""

from __future__ import annotations

import numpy as np

from .log import ClickLog

ROUNDS, TOLERANCE = 500, 1e-10


def propensities(log: ClickLog, *, least: float = 0.01) -> np.ndarray:
    """The chance that each position is looked at, relative to the first, from documents shown at several positions.

    Parameters
    ----------
    log : ClickLog
        A log in which some documents of a query were shown at several positions, because of random swaps or changed
        rankings.
    least : float, default=0.01
        Lower bound of propensities, because clicks are divided by them.

    Returns
    -------
    propensities : ndarray of shape (largest position,)
        1 at the position looked at most; NaN at positions that no document links to the others.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import clicks
    >>> y, qid = np.tile([2, 1, 0, 0], 500), np.repeat(np.arange(500), 4)
    >>> log = clicks.simulate(y, qid, sessions=200, swaps=0.3, random_state=0)
    >>> clicks.propensities(log).round(1)
    array([1. , 0.5, 0.3, 0.3])
    """
    pair, k = log.pairs(), log.position - 1
    several = np.bincount(pair, minlength=pair.max() + 1) > 1
    clicked = np.bincount(pair, weights=log.clicks) > 0
    use = (several & clicked)[pair]
    if not use.any():
        raise ValueError(
            "no clicked document of a query was shown at two positions, so nothing in the log tells positions from "
            'relevance: give propensities, use ClickRanker(method="positions") or train --clicks, which compare '
            "documents by their features, or swap results at random"
        )
    pair, k = np.unique(pair[use], return_inverse=True)[1], k[use]
    clicks, shown = log.clicks[use], log.impressions[use]
    theta = np.ones(int(log.position.max()))
    clicks_at = np.bincount(k, weights=clicks, minlength=len(theta))
    clicks_of = np.bincount(pair, weights=clicks)
    for _ in range(ROUNDS):
        relevance = clicks_of / np.bincount(pair, weights=shown * theta[k])
        expected = np.bincount(k, weights=shown * relevance[pair], minlength=len(theta))
        new = np.where(expected > 0, clicks_at / np.where(expected > 0, expected, 1), np.nan)
        new = np.where(np.isnan(new), 1.0, np.maximum(new, 1e-12))
        new /= new[expected > 0].max()
        change, theta = float(np.abs(new - theta).max()), new
        if change < TOLERANCE:
            break
    theta[np.bincount(k, minlength=len(theta)) == 0] = np.nan
    return np.maximum(theta, least)


def check_propensities(values: object, log: ClickLog) -> np.ndarray:
    """(largest position,) positive numbers, one for every position of the log; an error otherwise."""
    try:
        theta = np.asarray(values, dtype=np.float64)
    except ValueError:
        raise ValueError(f"propensities must hold one number per position, got {values!r}") from None
    n = int(log.position.max())
    if theta.ndim != 1 or len(theta) < n:
        raise ValueError(f"propensities must hold one number per position: got shape {theta.shape}, the log has {n}")
    used = theta[log.position - 1]
    bad = ~(used > 0) | ~np.isfinite(used)
    if bad.any():
        place = int(log.position[np.argmax(bad)])
        raise ValueError(
            f"the propensity of position {place} is {theta[place - 1]:g}, but clicks are divided by it: pass a "
            "positive number, or remove the rows of that position from the log"
        )
    return theta
