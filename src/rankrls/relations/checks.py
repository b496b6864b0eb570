"""Checks of relations: edges, their ends, and whether there is anything to learn from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..checks import (
    check_choice,
    check_choices,
    check_content,
    check_kernel_matrix,
    check_number,
    check_weights,
    labels_differ,
)
from ..core.queries import Queries
from ..metrics import get_metric
from ..system.frames import names
from ..system.types import ArrayLike, MatrixLike, Table
from ..system.warnings import warn
from .folds import RelationKFold
from .games import EdgeList
from .relation import Domain, EdgeSet, dense, part

EXACT = ("leave-row-out", "leave-edge-out", "leave-column-out")  # hold-outs that need no refits
ENCODE = 'pass a data frame and set encoder="auto", which turns them into numbers'
TIME = "time"  # hold out later edges


def check_similarity(name: str, K: np.ndarray, indefinite: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Check the caller's kernel matrix: positive semi-definite, or made so as `indefinite` says.

    If its negative part is dropped, also returns a basis (n, rank) of the rest; else None.
    """
    if not np.isfinite(K).all():
        count = int((~np.isfinite(K)).sum())
        raise ValueError(f"the kernel matrix of {name} must be finite: it has {count} other values")
    check_kernel_matrix(K)
    if indefinite == "clip":
        d, U = linalg.eigh(K)
        if d[0] >= 0:
            return K, None
        U, d = U[:, d > 0], d[d > 0]
        return (U * d) @ U.T, U
    low, high = linalg.eigvalsh(K)[[0, -1]]
    if indefinite == "shift":
        return (K if low >= 0 else K - low * np.eye(len(K))), None
    if low < -1e-6 * abs(high):
        raise ValueError(
            f"the kernel matrix of {name} is not positive semi-definite (smallest eigenvalue {low:.3g}, largest "
            f'{high:.3g}): set indefinite="clip" to drop its negative part, "shift" to add {-low:.3g} to its diagonal, '
            "or pass a valid kernel"
        )
    return K, None


def check_range(G: Domain, K: Domain) -> None:
    """Raise an error if products of features overflow: the kernel of pairs multiplies the kernels of both ends."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = float(np.max(G.diagonal, initial=0.0)) * float(np.max(K.diagonal, initial=0.0))
    if not np.isfinite(product):
        raise ValueError(
            "the squares of the features of X and Z overflow when they are multiplied: their values are very large. "
            "Look for wrong values, or divide by a constant"
        )


def check_encoder(encoder: object) -> None:
    """Raise an error unless `encoder` is None, "auto" or a transformer."""
    if isinstance(encoder, str):
        check_choice("encoder", encoder, ("auto",))
    elif encoder is not None and not hasattr(encoder, "fit_transform"):
        raise TypeError(f'encoder must be None, "auto" or a transformer such as TableEncoder(), got {encoder!r}')


def check_relation(Y: Any, p: int, r: int, *, one_domain: bool, missing: str = "unknown") -> EdgeSet:
    """The edges between p and r objects, from a dense matrix (NaN where unknown) or the stored entries of a sparse one.

    With missing="zero", entries that are NaN or not stored are zero, and the relation is complete.
    """
    check_content(Y=Y)
    if not sparse.issparse(Y):
        Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2 or Y.shape != (p, r):
        expected = f"X has {p} objects" + ("" if one_domain else f", Z has {r}")
        hint = "; pass Z if the columns are different objects" if one_domain and Y.ndim == 2 and Y.shape[0] == p else ""
        raise ValueError(f"Y must be a matrix of shape ({p}, {r}), since {expected}: got shape {Y.shape}{hint}")
    values = Y.data if sparse.issparse(Y) else Y
    infinite = np.isinf(values) if not sparse.issparse(Y) else ~np.isfinite(values)
    if infinite.any():
        raise ValueError(
            f"Y must not be infinite: {int(infinite.sum())} entries are; leave unknown edges out, or set them to NaN"
        )
    if sparse.issparse(Y):
        return _stored(Y, missing)
    known = ~np.isnan(Y)
    if known.all():
        return EdgeSet((p, r), Y)
    if missing == "zero":
        return EdgeSet((p, r), np.nan_to_num(Y))
    rows, columns = np.nonzero(known)
    return EdgeSet((p, r), None, rows, columns, Y[known])


def _stored(Y: MatrixLike, missing: str) -> EdgeSet:
    """The edges of a sparse matrix."""
    Y = sparse.csr_array(Y, dtype=np.float64)
    Y.sum_duplicates()
    if Y.nnz == Y.shape[0] * Y.shape[1]:
        return EdgeSet(Y.shape, Y.toarray())
    if missing == "zero":
        return EdgeSet(Y.shape, Y)
    rows, columns = Y.tocoo().coords
    return EdgeSet(Y.shape, None, rows.astype(np.intp), columns.astype(np.intp), Y.data)


def warn_of_lone_objects(edges: EdgeSet, names: tuple[str, str]) -> None:
    """Warn about objects without edges, at either end if both ends are the same objects."""
    if edges.complete:
        return
    ends = [np.union1d(edges.rows, edges.columns)] * 2 if names[0] == names[1] else [edges.rows, edges.columns]
    alone = {name: (n - len(np.unique(met)), n) for name, met, n in zip(names, ends, edges.shape, strict=True)}
    found = [f"{count} of {n} objects of {name}" for name, (count, n) in alone.items() if count]
    if found:
        warn(
            f"{' and '.join(found)} have no edge: they are predicted from their features alone",
        )


def check_feature_names(name: str, frame: Table, known: Any) -> None:
    """Raise an error if a frame does not have the features of `fit` in the same order."""
    given = [str(column) for column in names(frame)]
    if known is None or not given or given == list(known):
        return
    if sorted(given) == sorted(known):
        raise ValueError(f"the features of {name} are in a different order from fit: pass {name}[{list(known)[:5]}...]")
    strange = [column for column in given if column not in set(known)] or [c for c in known if c not in set(given)]
    raise ValueError(
        f"the features of {name} are not those seen in fit: {', '.join(strange[:5])} are in one but not the other"
    )


def check_graph(edges: EdgeSet, *, ranking: bool, parity: int, closed: bool = False) -> None:
    """Refuse Y if it has nothing to learn, contradicts `relation`, or lacks edges a closed form needs."""
    if closed and not edges.complete:
        raise ValueError(
            f'solver="closed" needs every edge, but {edges.n_edges} of {edges.shape[0] * edges.shape[1]} are known: '
            'use solver="auto"'
        )
    if parity and not sparse.issparse(edges.Y):
        _check_parity(edges, parity)
    if sparse.issparse(edges.Y):
        if edges.Y.nnz == 0 or not np.any(edges.Y.data):
            raise ValueError(f"Y is zero for all {edges.n_edges} edges: there is nothing to learn")
        return
    values = edges.Y if edges.complete else edges.y
    if not len(values):
        raise ValueError(f"no edge of {edges.shape[0]} by {edges.shape[1]} is known: there is nothing to learn")
    first = float(np.ravel(values[:1])[0])
    if np.all(values == first):
        hint = '; if edges that are not listed are zero, set missing="zero"' if first and not edges.complete else ""
        raise ValueError(f"Y is the same, {first:.6g}, for all {edges.n_edges} edges: there is nothing to learn{hint}")
    if ranking and not can_rank(edges):
        raise ValueError(
            "no conditioning object has two edges of different value, so there is nothing to rank: is `condition` the "
            "right end?"
        )


def can_rank(edges: EdgeSet) -> bool:
    """True if some row has two edges of different value."""
    if edges.complete:
        Y = dense(edges.Y)
        return bool(np.any(Y[:, 1:] != Y[:, :1]))
    return bool(len(edges.y)) and labels_differ(edges.y, Queries.of(edges.rows))


def _check_parity(edges: EdgeSet, parity: int) -> None:
    """Raise an error if most of the variation of Y is of a kind that the model cannot express."""
    if edges.complete:
        even, odd = part(edges.Y, 1), part(edges.Y, -1)
    else:  # edges whose mirror image is known
        rows, columns, y = edges.rows, edges.columns, edges.y
        known = sparse.csr_array((y, (rows, columns)), shape=edges.shape)
        count = sparse.csr_array((np.ones(len(y)), (rows, columns)), shape=edges.shape)
        known.data /= count.data
        both = (count.multiply(count.T)).tocoo().coords
        if not len(both[0]):
            return
        there, back = known[both], known[both[1], both[0]]
        even, odd = (there + back) / 2, (there - back) / 2
    variance, skew = float(np.var(even)), float(np.mean(odd**2)) if odd.size else 0.0
    wrong = skew if parity == 1 else variance
    if wrong > 0.5 * (variance + skew):
        name, other = ("symmetric", "skew") if parity == 1 else ("reciprocal", "symmetric")
        raise ValueError(
            f'relation="{name}" contradicts Y: {wrong / (variance + skew):.0%} of its variation is {other} '
            f"(mean square of (Y - Y.T) / 2 is {skew:.3g}, variance of (Y + Y.T) / 2 is {variance:.3g}); "
            "use relation=None"
        )


def weighted(edges: EdgeSet, sample_weight: ArrayLike | None, *, turned: bool) -> EdgeSet:
    """The edges with weights of conditioning objects, or of entries of the matrix they came from."""
    if sample_weight is None:
        return edges
    given = np.asarray(sample_weight, dtype=np.float64)
    if given.ndim == 2:
        if given.shape != edges.shape:
            raise ValueError(
                f"sample_weight must have the shape of Y, {edges.shape}, or one weight per row: got {given.shape}"
            )
        if sparse.issparse(edges.Y):
            raise ValueError(
                "weights of single entries need a dense Y, or fit_edges: a sparse one with zeros has too many"
            )
        listed = edges.listed()
        return replace(listed, weights=check_weights(given[listed.rows, listed.columns], len(listed.y), unit="edge"))
    n = edges.shape[1 if turned else 0]
    weights = check_weights(given, n, unit="conditioning object")
    if weights is None or edges.complete:
        return replace(edges, weights=weights)
    return replace(edges, weights=weights[edges.columns if turned else edges.rows])


def all_others_zero(listed: EdgeList, shape: tuple[int, int]) -> EdgeSet:
    """A complete relation from a list of edges: edges that are not listed are zero, and repeated edges add up."""
    if listed.weights is not None or listed.home is not None:
        raise ValueError('missing="zero" does not take weights of edges: multiply y by them')
    return EdgeSet(shape, sparse.csr_array((listed.y, (listed.rows, listed.columns)), shape=shape))


def check_options(model: Any) -> None:
    """Check the parameters of a ConditionalRankRLS."""
    if isinstance(model.alpha, str):
        check_choice("alpha", model.alpha, ("auto",))
    check_choices(
        model,
        loss=("ranking", "regression"),
        relation=(None, "arbitrary", "symmetric", "reciprocal"),
        condition=("source", "target"),
        missing=("unknown", "zero"),
        weighting=("items", "queries", "pairs"),
        intercept=(True, False),
        solver=("auto", "closed", "cg", "pcg", "cr"),
        indefinite=("error", "clip", "shift"),
    )
    if isinstance(model.max_iter, str):
        check_choice("max_iter", model.max_iter, ("auto",))
    else:
        check_number("max_iter", model.max_iter)
    for name in ("callback", "max_iter"):
        asked = model.callback is not None if name == "callback" else model.max_iter == "auto"
        if asked and model.solver not in ("auto", "cr"):
            raise ValueError(f'{name}={getattr(model, name)!r} needs conjugate residuals: set solver="cr"')
    check_number("tol", model.tol, auto=False)
    get_metric(model.scoring)
    for name in [model.pairwise] if isinstance(model.pairwise, str) else model.pairwise:
        check_choice("pairwise", name, ("auto", "kronecker", "sum"))
    number = isinstance(model.cv, int | np.integer) and not isinstance(model.cv, bool)
    named = isinstance(model.cv, str) and model.cv in ("auto", TIME, *EXACT)
    if not (number or named or isinstance(model.cv, RelationKFold)):
        known = ", ".join(map(repr, ("auto", TIME, *EXACT)))
        raise ValueError(f"cv must be {known}, a number of folds or a RelationKFold, got {model.cv!r}")
