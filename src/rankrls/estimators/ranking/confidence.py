"""Uncertainty of rankings: the ridge solution is the mean of a normal distribution, with noise from held-out residuals.

With M = gram + alpha I, weights are distributed as N(w, sigma^2 M^-1), where sigma^2 is the mean square of held-out
residuals within queries. The probability that a is above b is

    Phi((f(a) - f(b)) / sqrt(tau^2 + sigma^2 d'M^-1 d)),    d = phi(a) - phi(b),

where tau fits these probabilities to held-out pairs (maximum likelihood).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.features import Nystroem
from ...core.symmetric import per_deviation
from ...kernels import Precomputed
from ...problems.dual import Dual
from ...system.parallel import threads_for
from ...system.types import Matrix
from .base import RidgeRanker
from .posterior import FeaturePosterior, KernelPosterior, Posterior
from .setup import setup_again

DRAWS = 1000  # random rankings, for intervals of ranks
CANDIDATES = 50  # rows of a query among which `next_pairs` looks


class Confidence(RidgeRanker):
    """The uncertainty of a model that has sums and held-out scores."""

    def probability_above(self, X_a, X_b):
        """The probability that each row of X_a belongs above the corresponding row of X_b.

        Parameters
        ----------
        X_a, X_b : array-like of shape (n_pairs, n_features)
            Pairs of items, each from one query.

        Returns
        -------
        probabilities : ndarray of shape (n_pairs,)

        Notes
        -----
        Needs one target, and a linear model with at most as many features as rows, or a kernel. If alpha is given,
        rows are held out at the first call; for that a model keeps copies of up to 16 MB of rows. The probability is
        for pairs with different labels.

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
        posterior, (sigma, tau) = self._posterior()
        A, B = (self._rows(checks.split_qid_column(X, None)[0]) for X in (X_a, X_b))
        if A.shape[0] != B.shape[0]:
            raise ValueError(f"rows are compared in pairs, but X_a has {A.shape[0]} and X_b {B.shape[0]}: pass as many")
        variance = posterior.difference(A, B)
        deviation = np.sqrt(tau**2 + sigma**2 * variance)
        return ndtr((self.predict(X_a) - self.predict(X_b)) / deviation)

    def rank_interval(self, X, qid=None, level=0.9):
        """An interval for the true rank of each row, with probability `level`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items; all items of each query.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        intervals : ndarray of int, shape (n_samples, 2)
            Best and worst rank, from 1000 draws of weights and noise with a fixed seed.

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
        if isinstance(level, str) or not 0 < level < 1:
            raise ValueError(f"level must be a probability between 0 and 1, got {level!r}")
        posterior, (sigma, tau) = self._posterior()
        X, qid = checks.split_qid_column(X, qid)
        scores, X = self.predict(X), self._rows(X)
        queries, rng = checks.check_queries(qid, len(scores)), np.random.default_rng(0)
        weights = sigma * rng.normal(size=(posterior.width(int(queries.sizes.max())), DRAWS))
        own = tau / np.sqrt(2) if np.isfinite(tau) else 1e6 * (np.ptp(scores) + 1)
        out = np.empty((len(scores), 2), dtype=np.intp)
        with threads_for(float(queries.sizes.max()) * weights.size):
            for q in range(len(queries)):
                rows = queries.rows(q)
                B = posterior.factor(X[rows])
                drawn = scores[rows, None] + B @ weights[: B.shape[1]] + own * rng.normal(size=(len(rows), DRAWS))
                ranks = np.argsort(np.argsort(-drawn, axis=0), axis=0) + 1
                shown = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=1, method="nearest")
                at = np.argsort(np.argsort(-scores[rows], kind="stable"), kind="stable") + 1
                out[rows, 0], out[rows, 1] = np.minimum(shown[0], at), np.maximum(shown[1], at)
        return out

    def next_pairs(self, X, qid=None, n=10):
        """Pairs of rows to judge next: those whose order is uncertain and would tell most about the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.
        n : int, default=10
            Number of pairs; each row is in at most one of them.

        Returns
        -------
        pairs : ndarray of int, shape (at most n, 2)
            Row numbers, higher score first; the most informative pair first.

        Notes
        -----
        A pair is worth p (1 - p) v / (tau^2 + v), with p the probability of its order and v the variance of the
        difference of scores. The 50 best rows of each query are considered.

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
        posterior, (sigma, tau) = self._posterior()
        X, qid = checks.split_qid_column(X, qid)
        scores, X = self.predict(X), self._rows(X)
        queries = checks.check_queries(qid, len(scores))
        found = []
        with threads_for(CANDIDATES * float(posterior.width(CANDIDATES)) ** 2):
            for q in range(len(queries)):
                rows = queries.rows(q)
                rows = rows[np.argsort(-scores[rows], kind="stable")][:CANDIDATES]
                i, j = np.triu_indices(len(rows), 1)
                B = posterior.factor(X[rows])
                v = sigma**2 * ((B[i] - B[j]) ** 2).sum(axis=1)
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
        posterior, (sigma, _) = self._posterior()
        return sigma * np.sqrt(posterior.variance(self._rows(checks.split_qid_column(X, None)[0])))

    def _posterior(self) -> tuple[Posterior, tuple[float, float]]:
        """The uncertainty of scores in units of the noise, from one factorisation, and the noise (sigma and tau)."""
        check_is_fitted(self, "alpha_")
        learned = self.statistics_ if self.statistics_ is not None else vars(self).get("trained_on_")
        kept = vars(self).get("_cached_posterior")
        if kept is None or kept[0] is not learned or kept[1] != self.alpha_:
            with threads_for(np.inf if self.statistics_ is None else float(len(self.statistics_.gram)) ** 3):
                self._cached_posterior = kept = learned, self.alpha_, self._new_posterior()
        noise = getattr(self, "noise_", None)
        if noise is None:
            if self.statistics_ is not None and self.statistics_.cross.shape[1] > 1:
                raise ValueError("uncertainty needs one target, not several: fit one target, or mix([...]) them")
            raise ValueError(
                'this model has no held-out scores to estimate uncertainty from: fit it with alpha="auto" '
                "(alphas=[value] for one value)"
            )
        return kept[2], noise

    def _new_posterior(self) -> Posterior:
        """The uncertainty of scores in units of the noise; an error if the model cannot give it."""
        if self.alpha_ == 0:
            raise ValueError("without a penalty (alpha=0) weights have no distribution: use a positive alpha")
        setup = None if self.statistics_ is not None else setup_again(self, self.alpha_)
        if setup is not None and isinstance(setup.problem, Dual) and not isinstance(setup.data.kernel, Precomputed):
            return KernelPosterior.of(self.kernel_, self.X_fit_, setup.problem, self.alpha_, setup.unit)
        if self.statistics_ is None:
            raise ValueError(
                "this model keeps no sums, which uncertainty is computed from: use a linear model with at most as many "
                "features as rows, or a kernel that is not precomputed"
            )
        gram = self.statistics_.gram
        if hasattr(self, "kernel_"):
            W = Nystroem(self.kernel_, self.X_fit_).W
            features = lambda X: self.kernel_(X, self.X_fit_) @ W
            return FeaturePosterior.of(features, W.T @ gram @ W, self.alpha_)
        if self.scale is None:
            return FeaturePosterior.of(lambda X: X, gram, self.alpha_)
        w = per_deviation(self.scale_)
        return FeaturePosterior.of(lambda X: X * w, w[:, None] * gram * w, self.alpha_)
