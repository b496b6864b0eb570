"""Kernels on columns of numbers, on precomputed kernel values, and from functions given by the caller."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from ..system.items import unwrapped
from ..system.rows import CANDIDATES, DistinctRows
from .distances import Array, DistancesTo, Moments, divided, dot, square_distances, square_norms, weighted

WIDTHS = 4.0 ** np.arange(-3, 3)  # gamma="auto" tries these multiples of the median heuristic
MEDIAN_ROWS = 1000
GRIDS = ("gamma", "degree", "coef0")  # parameters that may be lists of values to choose from


class Kernel:
    """Interface: a positive semi-definite function of two points, evaluated on all pairs of rows.

    To write your own, make a dataclass with the parameters as fields and a `__call__`.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from rankrls import RankRLS
    >>> @dataclass
    ... class Intersection(Kernel):
    ...     def __call__(self, X, Z):
    ...         return np.minimum(X[:, None], Z[None]).sum(axis=2)
    >>> X = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> RankRLS(0.1, kernel=Intersection()).fit(X, [2, 1, 0]).rank(X)
    array([1, 2, 3])
    """

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        """(m, r) the kernel between the rows of X and of Z."""
        raise TypeError(f"{type(self).__name__} is abstract: define __call__")

    def beside(self, Z: Array) -> Callable[[Array], np.ndarray]:
        """X -> k(X, Z), with everything that depends only on Z computed once."""
        return lambda X: self(X, Z)

    def diagonal(self, X: Array) -> np.ndarray:
        """(m,) k(x, x) of every row, computed in blocks."""
        blocks = [X[i : i + 64] for i in range(0, X.shape[0], 64)]
        return np.concatenate([np.diag(self(block, block)) for block in blocks]).astype(float)

    def fitted(self, X: Array, weights: np.ndarray | None = None) -> Kernel:
        """The kernel with its data-dependent parameters fixed; a row of weight w counts as w copies."""
        if not hasattr(self, "gamma"):
            return self
        gamma = self.gamma
        number = isinstance(gamma, int | float | np.number) and not isinstance(gamma, bool)
        if number and 0 < gamma < np.inf:
            return self
        if gamma != "scale":
            raise ValueError(f'gamma must be a positive number, "scale", "auto" or a list of these, got {gamma!r}')
        X = weighted(X, getattr(self, "weights", None))
        return replace(self, gamma=Moments.of(X, weights).gamma)  # type: ignore[type-var]

    def candidates(self, X: Array, weights: np.ndarray | None = None) -> list[Kernel]:
        """The kernels to choose from.

        There is one, unless gamma="auto" (widths around the median distance of X) or a parameter is a list (one kernel
        for each value).
        """
        grids = {name: getattr(self, name) for name in GRIDS if isinstance(getattr(self, name, None), list | tuple)}
        if grids:
            of_grid = (replace(self, **dict(zip(grids, one, strict=True))) for one in product(*grids.values()))  # type: ignore[type-var]
            return [kernel for one in of_grid for kernel in one.candidates(X, weights)]
        if getattr(self, "gamma", None) != "auto":
            return [self.fitted(X, weights)]
        X = weighted(X, getattr(self, "weights", None))
        return [replace(self, gamma=float(g)) for g in _median_gamma(X) * WIDTHS]  # type: ignore[type-var]

    @property
    def chooses(self) -> bool:
        """True if `candidates` may return several kernels, for hold-out to choose from."""
        return getattr(self, "gamma", None) == "auto" or any(
            isinstance(getattr(self, name, None), list | tuple) for name in GRIDS
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, so that a grid search can vary `kernel__gamma`."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Kernel:
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {sorted(self.get_params())}")
            setattr(self, name, value)
        return self


@dataclass
class Linear(Kernel):
    """k(x, z) = x'z.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        return dot(X, Z)


@dataclass
class Gaussian(Kernel):
    """k(x, z) = exp(-gamma ||w * (x - z)||^2), with a weight w for each column where `weights` are given.

    With `metric="learned"` the weights are learned from the labels when a `RankRLS` is fitted to rows in memory: three
    times, a model is fitted and columns are weighted by the root mean square of its gradient. All labels are used,
    before queries are held out, so held-out scores are somewhat too good; `AutoRanker` learns the weights in each fold.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(gamma=0.5)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    >>> Gaussian(gamma=0.5, weights=[1.0, 0.0])(np.array([[0.0, 5.0]]), np.array([[2.0, 7.0]])).round(3)
    array([[0.135]])
    """

    gamma: float | str = "scale"
    weights: Any = field(default=None, repr=False)
    metric: str | None = field(default=None, repr=False)

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        _check_metric(self.metric)
        K = square_distances(weighted(X, self.weights), weighted(Z, self.weights))
        K *= -self.gamma  # type: ignore[operator]
        np.exp(K, out=K)
        if X is Z:
            np.fill_diagonal(K, 1)
        return K

    def diagonal(self, X: Array) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.where(np.isfinite(square_norms(weighted(X, self.weights))), 1.0, np.nan)

    def beside(self, Z: Array) -> Callable[[Array], np.ndarray]:
        if sparse.issparse(Z):
            return super().beside(Z)
        _check_metric(self.metric)
        distances = DistancesTo.of(weighted(Z, self.weights))

        def values(X: Array) -> np.ndarray:
            if sparse.issparse(X):
                return self(X, Z)
            K = distances(weighted(X, self.weights))
            K *= -self.gamma  # type: ignore[operator]
            return np.exp(K, out=K)

        return values


@dataclass
class Polynomial(Kernel):
    """k(x, z) = (gamma x'z + coef0)^degree.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(degree=2, gamma=1.0)(np.array([[1.0]]), np.array([[3.0]]))
    array([[16.]])
    """

    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 1.0

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        K = dot(X, Z)
        K *= self.gamma
        K += self.coef0
        return np.power(K, self.degree, out=K)


@dataclass
class Laplacian(Kernel):
    """k(x, z) = exp(-gamma ||w * (x - z)||_1), with a weight w for each column where `weights` are given.

    With `metric="learned"` the weights are learned as for `Gaussian`.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    gamma: float | str = "scale"
    weights: Any = field(default=None, repr=False)
    metric: str | None = field(default=None, repr=False)

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        if sparse.issparse(X) or sparse.issparse(Z):
            raise TypeError("the Laplacian kernel needs dense rows: call X.toarray(), or use Gaussian() or Linear()")
        _check_metric(self.metric)
        X, Z = weighted(X, self.weights), weighted(Z, self.weights)
        K = cdist(X, Z, "cityblock").astype(np.result_type(X, Z), copy=False)
        K *= -self.gamma  # type: ignore[operator]
        return np.exp(K, out=K)


@dataclass
class Cosine(Kernel):
    """k(x, z) = x'z / (||x|| ||z||); zero where a norm is zero.

    Examples
    --------
    >>> import numpy as np
    >>> Cosine()(np.array([[2.0, 0.0]]), np.array([[5.0, 0.0], [0.0, 1.0]]))
    array([[1., 0.]])
    """

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        (X, x), (Z, z) = _with_norms(X), _with_norms(Z)
        K = dot(X, Z)
        K /= _positive(x)[:, None]
        K /= _positive(z)
        return K


@dataclass
class Precomputed(Kernel):
    """X already holds kernel values: its columns are the training points, or those listed in `columns`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> RankRLS(1.0, kernel="precomputed").fit(K, [0, 1]).predict(K).round(2)
    array([-0.2,  0.4])
    """

    columns: np.ndarray | None = None

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        return X if self.columns is None else X[:, self.columns]


@dataclass
class Function(Kernel):
    """A plain function k(X, Z) -> (m, r) matrix; objects other than rows of numbers are passed as lists.

    Examples
    --------
    >>> import numpy as np
    >>> Function(lambda X, Z: (X @ Z.T) ** 2)(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]]))
    array([[9.]])
    """

    function: Callable[[Array, Array], np.ndarray]

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        K = np.array(self.function(unwrapped(X), unwrapped(Z)))
        if K.shape != (X.shape[0], Z.shape[0]):
            expected = (X.shape[0], Z.shape[0])
            raise ValueError(
                f"the kernel function gave an array of shape {K.shape} for {expected[0]} and "
                f"{expected[1]} points; it must return the {expected} matrix of all pairs"
            )
        return K


@dataclass(eq=False)
class Scaled(Kernel):
    """k(x / s, z / s) of another kernel: every column in units of its own spread s.

    Examples
    --------
    >>> import numpy as np
    >>> Scaled(Linear(), np.array([1.0, 1000.0]))(np.array([[2.0, 3000.0]]), np.array([[1.0, 1000.0]]))
    array([[5.]])
    """

    kernel: Kernel
    scale: np.ndarray  # (n_features,) positive

    def __call__(self, X: Array, Z: Array) -> np.ndarray:
        return self.kernel(divided(X, self.scale), divided(Z, self.scale))

    def diagonal(self, X: Array) -> np.ndarray:
        return self.kernel.diagonal(divided(X, self.scale))

    def beside(self, Z: Array) -> Callable[[Array], np.ndarray]:
        values = self.kernel.beside(divided(Z, self.scale))
        return lambda X: values(divided(X, self.scale))


def for_scaled(kernel: Kernel, moments: Moments) -> Kernel:
    """The kernel with gamma="scale" fixed for columns in units of their own spread.

    That is 1 / the number of columns that vary, as for standardised columns. Unlike the variance of all entries it does
    not depend on where columns stand, so a column of dates does not make the kernel wide.
    """
    weights = weighted(np.ones((1, len(moments.mean))), getattr(kernel, "weights", None))[0]
    total = float(np.sum(weights[moments.varies] ** 2))
    fixed = lambda gamma: (1 / total if total else 1.0) if isinstance(gamma, str) and gamma == "scale" else gamma
    gamma = getattr(kernel, "gamma", None)
    found = [fixed(one) for one in gamma] if isinstance(gamma, list | tuple) else fixed(gamma)
    return kernel if gamma is None else replace(kernel, gamma=found)  # type: ignore[type-var]


SHORTHANDS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "rbf": Gaussian,
    "gaussian": Gaussian,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "precomputed": Precomputed,
}


KernelLike: TypeAlias = Kernel | str | Callable[..., np.ndarray]  # what `kernel=` takes besides None


def as_kernel(kernel: KernelLike) -> Kernel:
    """A kernel object, from an object, a shorthand or a function.

    Examples
    --------
    >>> as_kernel("rbf")
    Gaussian(gamma='scale')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel not in SHORTHANDS:
            hint = difflib.get_close_matches(kernel, SHORTHANDS, 1)
            guess = f"; did you mean {hint[0]!r}?" if hint else ""
            raise ValueError(
                f"unknown kernel {kernel!r}{guess} Valid names: {', '.join(SHORTHANDS)}; "
                "or pass an object of rankrls.kernels or a function k(X, Z)"
            )
        return SHORTHANDS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return Function(kernel)
    raise TypeError(f"kernel must be None, a name, an object of rankrls.kernels or a function, got {kernel!r}")


def is_precomputed(kernel: object) -> bool:
    """True if X must hold kernel values: estimators with such a kernel are pairwise."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def is_other(kernel: KernelLike | None, fitted: Kernel | None) -> bool:
    """True if `kernel` is not of the same kind as a fitted one, or has a different number for one of its parameters."""
    if kernel is None or fitted is None:
        return kernel is not fitted
    now = as_kernel(kernel)
    if type(now) is not type(fitted):
        return bool({type(now), type(fitted)} & {Function, *SHORTHANDS.values()})  # others may become what they like
    numbers = {name: value for name, value in vars(now).items() if isinstance(value, int | float)}
    return any(value != getattr(fitted, name, value) for name, value in numbers.items())


def _check_metric(metric: str | None) -> None:
    """Raise an error if weights are still to be learned: when a kernel is called they must be known."""
    if metric is not None:
        raise ValueError(
            f'metric must be None or "learned", which RankRLS.fit learns from rows in memory; got {metric!r}: '
            "give weights= instead"
        )


def _with_norms(X: Array) -> tuple[Array, np.ndarray]:
    """Rows and their norms; rows whose squares overflow or vanish are first divided by their largest entry."""
    with np.errstate(over="ignore"):
        squares = square_norms(X)
    info = np.finfo(np.result_type(X.dtype, np.float32))
    odd = ~((squares > info.tiny / info.eps) & (squares < info.max))
    if not odd.any():
        return X, np.sqrt(squares)
    top = abs(X).max(axis=1)
    top = _positive(np.where(odd, top.toarray().ravel() if sparse.issparse(top) else top, 1))
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True)
        X.data /= np.repeat(top, np.diff(X.indptr))
    else:
        X = X / top[:, None]
    return X, np.sqrt(square_norms(X))


def _positive(norms: np.ndarray) -> np.ndarray:
    return np.where(norms > 0, norms, 1)


def _median_gamma(X: Array) -> float:
    """1 / (median squared distance between rows), estimated from distinct rows drawn at random."""
    drawn = DistinctRows.of(X, None, CANDIDATES, seed=0).shuffled(np.random.default_rng(0))
    rows = drawn.X[:MEDIAN_ROWS].astype(np.float64)
    distance = square_distances(rows, rows)[np.triu_indices(rows.shape[0], 1)]
    distance = distance[distance > 0]
    return float(1 / np.median(distance)) if len(distance) else 1.0
