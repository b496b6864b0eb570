"""Which points a sparse kernel model is expanded in::

    RandomRows(r)         rows drawn at random, as in the paper on Sparse RankRLS
    KMeansCentres(r)      centres of k-means clusters, not rows of the data
    PivotedCholesky(r)    rows drawn in proportion to what the rows drawn before do not explain [Chen23]

An object of these is what `RankRLS(kernel=..., basis=...)` takes; a plain number is `PivotedCholesky`.

Examples
--------
>>> from rankrls import RankRLS, bases
>>> from rankrls.datasets import make_search
>>> data = make_search(20, random_state=0)
>>> model = RankRLS(kernel="rbf", basis=bases.KMeansCentres(10), random_state=0).fit(data.X, data.y, qid=data.qid)
>>> model.dual_coef_.shape
(10,)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.vq import kmeans2

from .kernels import Kernel

__all__ = ["Basis", "KMeansCentres", "PivotedCholesky", "RandomRows"]

CANDIDATES = 20_000  # rows looked at, drawn at random from more


class Basis:
    """Interface: a way to choose basis points.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> class FirstRows(Basis):
    ...     size = 2
    ...     def choose(self, X, kernel, rng):
    ...         return X[: self.size]
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> RankRLS(1.0, kernel="rbf", basis=FirstRows()).fit(X, [0, 1, 2, 3]).X_fit_
    array([[0., 1.],
           [2., 3.]])
    """

    size: int

    def choose(self, X: Any, kernel: Kernel, rng: np.random.Generator) -> Any:
        """(r, n_features) points for rows X under a kernel."""
        raise TypeError(f"{type(self).__name__} is abstract: define choose")


@dataclass(frozen=True)
class RandomRows(Basis):
    """Rows drawn at random, each at most once.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> data = make_search(20, random_state=0)
    >>> model = RankRLS(kernel="rbf", basis=RandomRows(15), random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> model.X_fit_.shape
    (15, 12)
    """

    size: int

    def choose(self, X: Any, kernel: Kernel, rng: np.random.Generator) -> Any:
        return X[np.sort(rng.choice(X.shape[0], self.size, replace=False))]


@dataclass(frozen=True)
class KMeansCentres(Basis):
    """Centres of k-means clusters of (at most 20,000) rows; for dense rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2]])
    >>> from rankrls.kernels import Gaussian
    >>> np.sort(KMeansCentres(2).choose(X, Gaussian(1.0), np.random.default_rng(0)), axis=0)
    array([[0.1],
           [5.1]])
    """

    size: int
    iterations: int = 10

    def choose(self, X: Any, kernel: Kernel, rng: np.random.Generator) -> np.ndarray:
        if sparse.issparse(X):
            raise TypeError("k-means centres need dense rows: use PivotedCholesky or RandomRows for sparse ones")
        rows = _candidates(X, rng)
        centres, label = kmeans2(rows, self.size, iter=self.iterations, minit="++", rng=rng, missing="warn")
        used = np.unique(label)  # clusters may run empty where rows repeat
        return centres[used].astype(X.dtype)


@dataclass(frozen=True)
class PivotedCholesky(Basis):
    """Randomly pivoted Cholesky: O(c r) kernel values and O(c r^2) time for c (at most 20,000) candidate rows.

    The next row is drawn in proportion to its squared distance, in the kernel's space, to the span of those drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    >>> PivotedCholesky(2).choose(X, Linear(), np.random.default_rng(0)).shape
    (2, 2)
    """

    size: int

    def choose(self, X: Any, kernel: Kernel, rng: np.random.Generator) -> Any:
        rows = _candidates(X, rng)
        c = rows.shape[0]
        diagonal = _diagonal(kernel, rows)
        residual = diagonal.copy()
        L = np.empty((self.size, c))  # K is near L'L
        chosen = np.empty(self.size, dtype=np.intp)
        for i in range(self.size):
            total = residual.sum()
            if total == 0:  # the rows drawn span all others
                chosen = chosen[:i]
                break
            pivot = min(int(np.searchsorted(np.cumsum(residual), rng.random() * total, side="right")), c - 1)
            column = np.asarray(kernel(rows[pivot : pivot + 1], rows), dtype=np.float64)[0]
            column -= L[:i, pivot] @ L[:i]
            L[i] = column / np.sqrt(column[pivot])
            residual -= L[i] ** 2
            residual[residual <= 1e-10 * diagonal] = 0
            residual[pivot] = 0
            chosen[i] = pivot
        return rows[np.sort(chosen)]


DEFAULT = PivotedCholesky  # docs/decisions/0003-basis.md


def _candidates(X: Any, rng: np.random.Generator) -> Any:
    if X.shape[0] <= CANDIDATES:
        return X
    return X[np.sort(rng.choice(X.shape[0], CANDIDATES, replace=False))]


def _diagonal(kernel: Kernel, X: Any) -> np.ndarray:
    """k(x, x) of every row, in blocks."""
    return np.concatenate([np.diag(kernel(X[i : i + 64], X[i : i + 64])) for i in range(0, X.shape[0], 64)]).astype(
        float
    )
