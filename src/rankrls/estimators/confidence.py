"""How sure a ranking is: the ridge solution as the mean of a normal distribution, with noise from held-out residuals.

With M = gram + alpha I, weights are distributed as N(w, sigma^2 M^-1), sigma^2 the mean square of held-out residuals
within queries. That a is above b has the probability

    Phi((f(a) - f(b)) / sqrt(tau^2 + sigma^2 d'M^-1 d)),    d = phi(a) - phi(b),

tau being what makes these probabilities fit held-out pairs best (maximum likelihood).
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, ndtr
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..core.features import Nystroem
from ..core.penalty import per_deviation
from ..core.queries import Queries
from ..core.ridge import eigh
from ..system.types import Matrix
from .ridge_ranker import RidgeRanker

SAMPLE = 8000  # held-out pairs to calibrate by
FLATTEST, STEEPEST = 1e-4, 1e5  # of probabilities over margins up to 1: where order says nothing, or all
DRAWS = 1000  # of a ranking, for intervals of ranks
CANDIDATES = 50  # documents of a query among which pairs to judge next are looked for


def noise_of(y: np.ndarray, held_out: np.ndarray, queries: Queries) -> tuple[float, float]:
    """sigma and tau from held-out scores (m,) of rows."""
    known = ~np.isnan(held_out)
    y, held_out, codes = y[known], held_out[known], queries.codes[known]
    rest = Queries(queries.labels, codes)
    residual = y - held_out
    residual -= (rest.sum(residual) / np.maximum(rest.sizes, 1))[codes]
    free = max(1, len(y) - np.count_nonzero(rest.sizes))
    sigma = float(np.sqrt(residual @ residual / free))
    a, b = _pairs(y, rest)
    margin = (held_out[a] - held_out[b]) * np.sign(y[a] - y[b])
    if not len(margin) or not np.abs(margin).max() > 0:
        return sigma, np.inf
    size = float(np.abs(margin).max())
    return sigma, size / _steepness(margin / size)


def _steepness(margin: np.ndarray) -> float:
    """The b with the largest sum of log Phi(b margin), which is concave in b, by Newton's method; margins to 1."""
    b = 0.0
    for _ in range(50):
        z = b * margin
        r = np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2))  # phi(z) / Phi(z)
        step = float(margin @ r / (margin**2 @ (r * (z + r))))
        b = float(np.clip(b + step, FLATTEST, STEEPEST))
        if abs(step) <= 1e-6 * b or (b == FLATTEST and step < 0) or (b == STEEPEST and step > 0):
            break
    return b


def _pairs(y: np.ndarray, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows of one query with different labels, each as likely as any other; always the same ones."""
    rng = np.random.default_rng(0)
    total = np.cumsum(queries.sizes.astype(np.float64) ** 2)
    draws = int(min(4 * SAMPLE, 4 * total[-1])) if len(y) else 0
    q = np.searchsorted(total, (total[-1] if len(y) else 0.0) * rng.random(draws), side="right")
    row = lambda: queries.starts[q] + (rng.random(len(q)) * queries.sizes[q]).astype(np.intp)
    a, b = (place if queries.order is None else queries.order[place] for place in (row(), row()))
    differ = y[a] != y[b]
    return a[differ][:SAMPLE], b[differ][:SAMPLE]


class Confidence(RidgeRanker):
    """What a model with sums and held-out scores knows of its own uncertainty."""

    def probability_above(self, X_a, X_b):
        """The probability that each row of X_a belongs above the row of X_b beside it.

        Parameters
        ----------
        X_a, X_b : array-like of shape (n_pairs, n_features)
            Items of one query each.

        Returns
        -------
        probabilities : ndarray of shape (n_pairs,)

        Notes
        -----
        Needs a linear model or a kernel with a basis, fitted with held-out scores: alpha="auto" (`alphas=[value]` for
        one value), several queries. The probability is that of the order of labels that differ.

        Examples
        --------
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(50, random_state=0)
        >>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
        >>> p, q = model.probability_above(data.X[:2], data.X[1::-1])
        >>> bool(abs(p + q - 1) < 1e-12)
        True
        """
        difference = self._factor(X_a) - self._factor(X_b)
        sigma, tau = self.noise_
        deviation = np.sqrt(tau**2 + sigma**2 * (difference**2).sum(axis=1))
        return ndtr((self.predict(X_a) - self.predict(X_b)) / deviation)

    def rank_interval(self, X, qid=None, level=0.9):
        """Ranks between which each row lies with the probability `level`, if labels were known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items, all of each query.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None is one query.
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        intervals : ndarray of int, shape (n_samples, 2)
            Best and worst rank, from 1000 draws of weights and noise, the same every time.

        Examples
        --------
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(50, random_state=0)
        >>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
        >>> low, high = model.rank_interval(data.X[:10]).T
        >>> bool(((1 <= low) & (low <= model.rank(data.X[:10])) & (high <= 10)).all())
        True
        """
        if not 0 < level < 1:
            raise ValueError(f"level is a probability between 0 and 1, got {level!r}")
        X, qid = checks.split_qid_column(X, qid)
        B, scores = self._factor(X), self.predict(X)
        queries, (sigma, tau) = checks.check_queries(qid, len(scores)), self.noise_
        rng = np.random.default_rng(0)
        weights = sigma * rng.normal(size=(B.shape[1], DRAWS))
        out = np.empty((len(scores), 2), dtype=np.intp)
        for q in range(len(queries)):
            rows = queries.rows(q)
            own = tau / np.sqrt(2) if np.isfinite(tau) else 1e6 * (np.ptp(scores) + 1)
            drawn = scores[rows, None] + B[rows] @ weights + own * rng.normal(size=(len(rows), DRAWS))
            ranks = np.argsort(np.argsort(-drawn, axis=0), axis=0) + 1
            shown = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=1, method="nearest")
            at = np.argsort(np.argsort(-scores[rows], kind="stable"), kind="stable") + 1
            out[rows, 0], out[rows, 1] = np.minimum(shown[0], at), np.maximum(shown[1], at)
        return out

    def next_pairs(self, X, qid=None, n=10):
        """Pairs of rows to judge next: those whose answer is open and would tell most about the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None is one query.
        n : int, default=10
            Pairs wanted; each row is in at most one of them.

        Returns
        -------
        pairs : ndarray of int, shape (at most n, 2)
            Row numbers, the one with the higher score first; the most telling pair first.

        Notes
        -----
        A pair counts p (1 - p) v / (tau^2 + v), p the probability of its order and v the variance of the difference of
        scores. The 50 best rows of a query are looked at.

        Examples
        --------
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(50, random_state=0)
        >>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
        >>> model.next_pairs(data.X, data.qid, n=3).shape
        (3, 2)
        """
        checks.check_count("n", n)
        X, qid = checks.split_qid_column(X, qid)
        B, scores = self._factor(X), self.predict(X)
        queries, (sigma, tau) = checks.check_queries(qid, len(scores)), self.noise_
        found = []
        for q in range(len(queries)):
            rows = queries.rows(q)
            rows = rows[np.argsort(-scores[rows], kind="stable")][:CANDIDATES]
            i, j = np.triu_indices(len(rows), 1)
            v = sigma**2 * ((B[rows[i]] - B[rows[j]]) ** 2).sum(axis=1)
            p = ndtr((scores[rows[i]] - scores[rows[j]]) / np.sqrt(tau**2 + v))
            found.append(np.column_stack([rows[i], rows[j], p * (1 - p) * v / (tau**2 + v)]))
        pairs = np.vstack(found)
        taken: set[float] = set()
        chosen: list[tuple[int, int]] = []
        for a, b, _ in pairs[np.argsort(-pairs[:, 2], kind="stable")]:
            if not {a, b} & taken:
                taken |= {a, b}
                chosen.append((int(a), int(b)))
            if len(chosen) == n:
                break
        return np.array(chosen, dtype=np.intp).reshape(-1, 2)

    def _standard_deviation(self, X: Matrix) -> np.ndarray:
        return self.noise_[0] * np.sqrt((self._factor(X) ** 2).sum(axis=1))

    def _factor(self, X: Matrix) -> np.ndarray:
        """(m, r) B with B B' = Phi M^-1 Phi'."""
        check_is_fitted(self, "alpha_")
        if self.statistics_ is None or not hasattr(self, "noise_"):
            what = "sums" if self.statistics_ is None else "held-out scores"
            raise ValueError(
                f"this model keeps no {what} to tell how sure it is: fit several queries with a linear model of at "
                'most as many features as rows, or a kernel with a basis, with alpha="auto" (alphas=[value] for one)'
            )
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        gram, W = self.statistics_.gram, None
        if hasattr(self, "kernel_"):
            W = Nystroem(self.kernel_, self.X_fit_).W
            gram, X = W.T @ gram @ W, self.kernel_(X, self.X_fit_) @ W
        elif self.scale is not None:
            w = per_deviation(self.scale_ if hasattr(self, "scale_") else self.statistics_.deviation)
            gram, X = w[:, None] * gram * w, X * w
        d, V = eigh(gram)
        return np.asarray(X @ (V / np.sqrt(np.maximum(d, 0) + self.alpha_)))
