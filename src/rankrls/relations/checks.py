"""Checks of relations: edges, their ends, and whether there is anything to learn from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..checks import (
    _differ,
    check_kernel_matrix,
)
from ..core.queries import Queries
from .relation import Relation, part


def check_similarity(name: str, K: np.ndarray, indefinite: str) -> tuple[np.ndarray, np.ndarray | None]:
    """A kernel matrix given by the user, positive semi-definite or made so on request.

    If its negative part was dropped, also a basis (n, rank) of the rest.
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


def check_relation(Y: Any, p: int, r: int, *, one_domain: bool) -> Relation:
    """Edges between p and r objects from a dense matrix, NaN where unknown, or the stored entries of a sparse one."""
    if not sparse.issparse(Y):
        Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2 or Y.shape != (p, r):
        expected = f"X has {p} objects" + ("" if one_domain else f", Z has {r}")
        hint = "; pass Z if the columns are other objects" if one_domain and Y.ndim == 2 and Y.shape[0] == p else ""
        raise ValueError(f"Y must be a matrix of shape ({p}, {r}), since {expected}: got shape {Y.shape}{hint}")
    values = Y.data if sparse.issparse(Y) else Y
    infinite = np.isinf(values) if not sparse.issparse(Y) else ~np.isfinite(values)
    if infinite.any():
        raise ValueError(f"Y must not be infinite: {int(infinite.sum())} entries are; leave unknown edges out, or NaN")
    if sparse.issparse(Y):
        Y = sparse.csr_array(Y, dtype=np.float64)
        Y.sum_duplicates()
        if Y.nnz == p * r:
            return Relation((p, r), Y.toarray())
        rows, columns = Y.tocoo().coords
        return Relation((p, r), None, rows.astype(np.intp), columns.astype(np.intp), Y.data)
    known = ~np.isnan(Y)
    if known.all():
        return Relation((p, r), Y)
    rows, columns = np.nonzero(known)
    return Relation((p, r), None, rows, columns, Y[known])


def check_edges(edges: Any, p: int, r: int, ids: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of edges as row numbers; names are looked up among the ids of the objects."""
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"edges must be a (q, 2) array of (source, target), got shape {pairs.shape}")
    ends = []
    for side, (name, n) in enumerate((("source", p), ("target", r))):
        end = pairs[:, side]
        if end.dtype.kind not in "iu":
            number = {label: i for i, label in enumerate(ids[side].tolist())}
            unknown = [(e, label) for e, label in enumerate(end.tolist()) if label not in number]
            if unknown:
                e, label = unknown[0]
                raise ValueError(
                    f"the {name} of edge {e} is {label!r}, which is not the id of any of the {n} objects "
                    f"({len(unknown)} such edges): edges hold row numbers (integers), or the index labels of a pandas "
                    "DataFrame of objects"
                )
            end = np.array([number[label] for label in end.tolist()])
        bad = (end < 0) | (end >= n)
        if bad.any():
            e = int(np.argmax(bad))
            raise ValueError(f"the {name} of edge {e} is {end[e]}, but there are objects 0 to {n - 1}")
        ends.append(end.astype(np.intp))
    return ends[0], ends[1]


def check_every_object(relation: Relation, names: tuple[str, str]) -> None:
    """Every object has an edge, at either end where both ends are the same objects."""
    if relation.Y is not None:
        return
    rows, columns, _ = relation.edges()
    ends = [np.union1d(rows, columns)] * 2 if names[0] == names[1] else [rows, columns]
    for name, met, n in zip(names, ends, relation.shape, strict=True):
        alone = np.setdiff1d(np.arange(n), met)
        if len(alone):
            raise ValueError(
                f"{len(alone)} objects of {name} have no edge, the first at row {alone[0]}: nothing can be learned "
                "of them; leave them out of fit (they can be predicted all the same)"
            )


def check_graph(relation: Relation, *, ranking: bool, parity: int) -> None:
    """There is something to learn, and the relation is not the opposite of what is asked."""
    if parity:
        _check_parity(relation, parity)
    values = relation.y if relation.Y is None else relation.Y
    first = float(np.ravel(values[:1])[0])  # type: ignore[index]
    if np.all(values == first):
        raise ValueError(f"Y is the same, {first:.6g}, for all {relation.n_edges} edges: there is nothing to learn")
    if relation.Y is not None:
        differ = bool(np.any(relation.Y[:, 1:] != relation.Y[:, :1]))
    else:
        differ = _differ(relation.y, Queries.of(relation.rows))  # type: ignore[arg-type]
    if ranking and not differ:
        raise ValueError(
            "no conditioning object has two edges of different value: there is nothing to rank; does `condition` name "
            "the end that conditions?"
        )


def _check_parity(relation: Relation, parity: int) -> None:
    """Most of the variation must be of the kind that the model can express."""
    if relation.Y is not None:
        even, odd = part(relation.Y, 1), part(relation.Y, -1)
    else:  # edges whose mirror image is known
        rows, columns, y = relation.edges()
        known = sparse.csr_array((y, (rows, columns)), shape=relation.shape)
        count = sparse.csr_array((np.ones(len(y)), (rows, columns)), shape=relation.shape)
        known.data /= count.data
        both = (count.multiply(count.T)).tocoo().coords
        if not len(both[0]):
            return
        there, back = known[both], known[both[1], both[0]]
        even, odd = (there + back) / 2, (there - back) / 2
    spread, skew = float(np.var(even)), float(np.mean(odd**2)) if odd.size else 0.0
    wrong = skew if parity == 1 else spread
    if wrong > 0.5 * (spread + skew):
        name, other = ("symmetric", "skew") if parity == 1 else ("reciprocal", "symmetric")
        raise ValueError(
            f'relation="{name}" contradicts Y: {wrong / (spread + skew):.0%} of its variation is {other} '
            f"(mean square of (Y - Y.T) / 2 is {skew:.3g}, variance of (Y + Y.T) / 2 is {spread:.3g}); "
            "use relation=None"
        )
