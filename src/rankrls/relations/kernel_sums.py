"""Weighted sums of kernels on objects of one kind, with weights derived from the relation.

`kernel=[...]` is a weighted sum, k = sum over m of w_m k_m, w_m >= 0. Its members act on features, or are similarity
matrices in which an object is a row number. Weights come from alignment: with S_m the centred kernel matrices, each
divided by its mean diagonal, and T = R R', R the relation minus its mean, the w that solves

    min over w >= 0 of || sum over m of w_m S_m - T ||^2,

Hold-out chooses, together with alpha, between these weights, equal weights, and each kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from ..kernels import Kernel, Precomputed, as_kernel
from ..system.types import MatrixLike
from . import names
from .names import Ids
from .relation import EdgeSet


@dataclass(eq=False)
class Similarity(Kernel):
    """k(x, z) = matrix[x, z], for objects given as row numbers in a single column."""

    matrix: Any = field(repr=False)  # (n, n)
    labels: Any = field(default=None, repr=False)  # (n,) ids of the rows, if there are any

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        rows, columns = (np.asarray(objects)[:, 0].astype(np.intp) for objects in (X, Z))
        return np.asarray(self.matrix)[np.ix_(rows, columns)]


@dataclass(eq=False)
class WeightedSum(Kernel):
    """k(x, z) = sum over m of weights[m] kernels[m](x, z); equal weights if `weights` is None."""

    kernels: list[Kernel]
    weights: Any = None  # (n_kernels,)

    @classmethod
    def of(cls, given: Sequence[Any]) -> WeightedSum:
        """From kernels, names and functions, or from similarity matrices; frames are matched by their index."""
        if not len(given):
            raise ValueError("kernel=[] is empty: list kernels or similarity matrices")
        matrices = [hasattr(one, "shape") for one in given]
        if not any(matrices):
            kernels = [as_kernel(one) for one in given]
            if any(isinstance(one, Precomputed) for one in kernels):
                raise ValueError('list several precomputed kernels as matrices: kernel=[K1, K2], not "precomputed"')
            return cls(kernels)
        if not all(matrices):
            raise ValueError("kernel mixes matrices with kernels on features: compute all of them, or none")
        given = [names.labelled(one) for one in given]
        ids = next((Ids.of(one) for one in given if hasattr(one, "iloc")), None)
        labels = ids.labels if ids is not None and ids.named else None
        found = [_in_order(one, labels) for one in given]
        shapes = {one.shape for one in found}
        if len(shapes) > 1 or len(set(next(iter(shapes)))) > 1:
            raise ValueError(f"similarity matrices must be square and of one size, got shapes {sorted(shapes)}")
        return cls([Similarity(one, labels) for one in found])

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        weights = np.ones(len(self.kernels)) if self.weights is None else self.weights
        return np.asarray(sum(w * np.asarray(k(X, Z)) for w, k in zip(weights, self.kernels, strict=True) if w))

    def fitted(self, X: MatrixLike, weights: np.ndarray | None = None) -> WeightedSum:
        """The sum with the parameters of each kernel fixed; a kernel with gamma="auto" becomes one for each width."""
        return replace(self, kernels=[one for kernel in self.kernels for one in kernel.candidates(X, weights)])

    @property
    def numbered(self) -> bool:
        """True if its members are matrices, in which objects are row numbers."""
        return isinstance(self.kernels[0], Similarity)

    @property
    def labels(self) -> np.ndarray | None:
        """The ids of the rows of the matrices."""
        return getattr(self.kernels[0], "labels", None)

    def cleaned(self, clean: Callable[[np.ndarray], np.ndarray]) -> WeightedSum:
        """The same sum with a function applied to each similarity matrix."""
        if not self.numbered:
            return self
        matrices = [k for k in self.kernels if isinstance(k, Similarity)]
        return replace(self, kernels=[replace(k, matrix=clean(k.matrix)) for k in matrices])

    def numbers(self, objects: Any, ids: Ids, name: str) -> np.ndarray:
        """(n, 1) the row of each object: by id, by a column of row numbers, or in order if there is one per row."""
        first = self.kernels[0]
        assert isinstance(first, Similarity)
        n = len(first.matrix)
        if ids.named and self.labels is not None:
            rows = Ids(self.labels, True, True).places(ids.labels)
            if (rows < 0).any():
                unknown, count = ids.labels[int(np.argmin(rows))], int((rows < 0).sum())
                raise ValueError(f"{unknown!r} of {name} is not a row of the kernel matrices ({count} such objects)")

            return rows[:, None].astype(np.float64)
        given = None if sparse.issparse(objects) else np.asarray(objects)
        if given is not None and given.dtype.kind in "iuf" and given.ndim <= 2 and given.size == len(given):
            rows = given.reshape(-1, 1).astype(np.float64)
            if np.all((rows >= 0) & (rows < n) & (rows == np.floor(rows))):
                return rows
        if objects.shape[0] != n:
            raise ValueError(
                f"{name} must tell which rows of the kernel matrices its objects are: ids, a column of row "
                f"numbers, or one object for each of the {n} rows; got shape {tuple(objects.shape)}"
            )
        return np.arange(n, dtype=np.float64)[:, None]


def _in_order(K: Any, labels: np.ndarray | None) -> np.ndarray:
    """A similarity matrix with rows and columns in the order of labels, if it has labels."""
    if hasattr(K, "iloc") and labels is not None:
        own = Ids.of(K)
        own.check_unique("a matrix of similarities")
        K = names.similarities(K.iloc[own.rows(labels, "object")], labels, "in kernel=[...]")
    return np.asarray(K, dtype=np.float64)


def weightings(kernel: WeightedSum, data: MatrixLike, R: np.ndarray) -> list[WeightedSum]:
    """The candidate sums: weights by alignment with R R', equal weights, each kernel alone."""
    matrices = [np.asarray(k(data, data), dtype=np.float64) for k in kernel.kernels]
    scale = np.array([1 / (float(np.mean(np.diagonal(K))) or 1.0) for K in matrices])
    shares = [aligned([K * s for K, s in zip(matrices, scale, strict=True)], R), np.full(len(scale), 1 / len(scale))]
    shares += list(np.eye(len(scale)))
    distinct: list[np.ndarray] = []
    for share in shares:
        if share.any() and not any(np.allclose(share, other) for other in distinct):
            distinct.append(share)
    return [replace(kernel, weights=share * scale) for share in distinct]


def aligned(matrices: Sequence[np.ndarray], R: np.ndarray) -> np.ndarray:
    """(n_kernels,) weights with sum 1 that align the sum of kernels with R R'; zeros if none does."""
    centred = [K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for K in matrices]
    R = R - R.mean(axis=0)
    gram = np.array([[float(np.sum(A * B)) for B in centred] for A in centred])
    with_target = np.array([float(np.sum((A @ R) * R)) for A in centred])
    # min w' gram w - 2 w' t over w >= 0 is least squares with a square root of gram
    d, U = np.linalg.eigh(gram)
    keep = d > max(d.max(initial=0), 0) * 1e-12
    if not keep.any():
        return np.zeros(len(matrices))
    root = np.sqrt(d[keep])
    w = nnls((U[:, keep] * root).T, (U[:, keep].T @ with_target) / root)[0]
    return w / w.sum() if w.sum() > 0 else w


def residual_relation(edges: EdgeSet) -> np.ndarray:
    """(p, r) the relation minus its mean, zero where unknown."""
    if edges.complete:
        Y = edges.Y.toarray() if sparse.issparse(edges.Y) else np.asarray(edges.Y)
        return Y - Y.mean()
    R, count = np.zeros(edges.shape), np.zeros(edges.shape)
    np.add.at(R, (edges.rows, edges.columns), edges.y - edges.y.mean())
    np.add.at(count, (edges.rows, edges.columns), 1)
    return R / np.maximum(count, 1)
