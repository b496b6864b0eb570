"""Which of many alphas is best, without judging all of them on every row.

All are judged on a sample of the rows first. Differences between two alphas vary far less from row to row than their
scores do, so that a few hundred rows tell most of them from the best: one that is behind by more than six standard
errors of the difference is out. The others are judged on all rows, exactly as without a race. One that is out keeps
the score of the winner less its deficit on the sample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Values = Callable[[np.ndarray, np.ndarray], np.ndarray]  # rows (n,), alphas (k,) by number -> (n, k), NaN undefined

SHARE = 5  # one row in so many is in the sample
LEAST = 200  # rows of a sample
SURE = 6.0  # standard errors


def worthwhile(n_rows: int) -> bool:
    """Whether there are enough rows to sample from."""
    return n_rows >= 2 * LEAST


def scores(values: Values, n_rows: int, n_alphas: int, *, greater_is_better: bool = True) -> np.ndarray:
    """(n_alphas,) the mean over rows: exact for every alpha that could be the best."""
    order = np.random.default_rng(0).permutation(n_rows)
    size = max(LEAST, n_rows // SHARE)
    sample = values(np.sort(order[:size]), np.arange(n_alphas))
    best, deficit, error = _deficits(sample if greater_is_better else -sample)
    stay = np.flatnonzero(deficit <= SURE * error)
    rest = values(np.sort(order[size:]), stay)
    whole = np.nanmean(np.concatenate([sample[:, stay], rest]), axis=0)
    found = whole[np.searchsorted(stay, best)] - (deficit if greater_is_better else -deficit)
    found[stay] = whole
    return found


def _deficits(sample: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """The best alpha of a sample, how far each is behind it, and the standard error of that; larger is better."""
    defined = sample[~np.isnan(sample).any(axis=1)]
    if len(defined) < LEAST // 2:  # too few to tell: nobody is out
        return 0, np.zeros(sample.shape[1]), np.ones(sample.shape[1])
    best = int(np.argmax(defined.mean(axis=0)))
    behind = defined[:, [best]] - defined
    return best, behind.mean(axis=0), behind.std(axis=0, ddof=1) / np.sqrt(len(defined))
