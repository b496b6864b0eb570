"""Relations from edges that need not fit in memory: objects are in memory, edges are summed in blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ... import checks
from ...blocks.edges import sum_blocks
from ...problems import choice
from ...relations import fitting
from ...relations.complete import Kronecker
from ...relations.games import EdgeList
from ...relations.names import Ids
from ...relations.relation import Domain, EdgeSet, Pairwise, dense
from ...relations.sums import EdgeSums, PairMap, SummedRelation, ZeroSums, held_out_losses, path
from ...system.memory import check_memory
from ...system.seeds import seed_of
from ...system.types import ArrayLike
from .setup import RELATION
from .sides import Side, ends_of, model_of, weights_of

FOLDS = 5
CRITERION = "negative held-out loss"


@dataclass(frozen=True)
class BlockEdges:
    """Reads the edges of a block: columns of a table, and the objects they name."""

    ids: tuple[Ids, Ids]
    columns: dict[str, str]  # source, target, y, sample_weight
    turned: bool
    parity: int

    def __call__(self, block: dict[str, np.ndarray]) -> EdgeList:
        pick = lambda name: block[self.columns[name]] if name in self.columns else None
        table = {name: block[self.columns[name]] for name in ("source", "target")}
        edges = EdgeList.of(
            _Columns(table), pick("y"), self.ids, source="source", target="target", sample_weight=pick("sample_weight")
        )
        if self.turned:
            edges = replace(edges, rows=edges.columns, columns=edges.rows)
        return edges.both_ways(self.parity)


@dataclass(frozen=True)
class BlockSums:
    """The sums of a block for each fold: of conditioning objects, or of pairs if edges are mirrored."""

    read: BlockEdges
    map: PairMap
    ranking: bool
    fold: np.ndarray  # (p,) the fold of each conditioning object

    def __call__(self, block: dict[str, np.ndarray]) -> list[EdgeSums]:
        edges, n = self.read(block), int(self.fold.max()) + 1
        fold = self.fold[edges.rows]
        if self.read.parity and n > 1:  # games of a pair stay in one fold, whichever end is named first
            low, high = np.minimum(edges.rows, edges.columns), np.maximum(edges.rows, edges.columns)
            fold = (low * 1_000_003 + high * 8_191 + low * high) % n
        return [
            EdgeSums.nothing(self.map, ranking=self.ranking).add(edges.only(np.flatnonzero(fold == k)))
            for k in range(n)
        ]


@dataclass(frozen=True)
class BlockProducts:
    """The sums of a block of edges, if all other edges are zero."""

    read: BlockEdges
    Z: np.ndarray

    def __call__(self, block: dict[str, np.ndarray]) -> list[ZeroSums]:
        return [ZeroSums.of(self.read(block), self.Z)]


class _Columns(dict):
    """Columns by name, with the interface of a table that edges are read from."""

    @property
    def column_names(self) -> list[str]:
        return list(self)


def refuse_in_streams(model: BaseEstimator, X: object, columns: dict[str, Any], others: dict[str, Any]) -> None:
    """Raise an error for options that need all edges in memory, before any edge is read."""
    for name in ("source", "target"):
        if not isinstance(columns[name], str):
            raise ValueError(
                f"edges from a file or iterator need named columns: pass source= and target=, got {name}=None"
            )
    for name in ("y", "sample_weight"):
        if columns[name] is not None and not isinstance(columns[name], str):
            raise ValueError(f"for edges from a file or iterator, {name} must be the name of a column")
    for name, value in others.items():
        if value is not None:
            remedy = "" if name == "home" else ": put the weights into a column, sample_weight="
            raise ValueError(f"{name}= needs all edges in memory{remedy}")
    if X is None or isinstance(X, str):
        raise ValueError(
            "edges from a file or iterator need the objects: pass X (one-hot rows if there are no features)"
        )
    products = model.pairwise in ("auto", "kronecker")
    if model.missing == "zero" and not (products and columns["sample_weight"] is None):
        raise ValueError(
            'missing="zero" takes neither sample_weight nor sums of kernels here: pass the weights of edges as their '
            "values, y="
        )
    told = {"intercept": False, "weighting": "items"}
    for name, value in told.items():
        if getattr(model, name) != value:
            raise ValueError(f"{name}={getattr(model, name)!r} needs all edges in memory")
    if not isinstance(model.pairwise, str):
        raise ValueError('a choice of pairwise kernels needs edges in memory: set pairwise="kronecker" or "sum"')


def _check_factored(*sides: Side) -> None:
    """Raise an error unless both ends have features, which sums over edges need."""
    for side in sides:
        if not side.domain.factored:
            raise ValueError(
                f"{side.name} has a full kernel matrix, but edges from a file or iterator need linear features (fewer "
                "than objects) or basis="
            )


def fit_stream(
    model: BaseEstimator, source: Side, target: Side, edges: ArrayLike, columns: dict[str, Any], parity: int
) -> dict[str, Any]:
    """The attributes that a fit stores in the estimator."""
    turned, ranking = model.condition == "target", model.loss == "ranking"
    first, second = (target, source) if turned else (source, target)
    _check_factored(first, second)
    named = {name: value for name, value in columns.items() if isinstance(value, str)}
    read = BlockEdges((source.ids, target.ids), named, turned, parity)
    if model.missing == "zero":
        return _all_others_zero(model, source, target, edges, read)
    pairwise = fitting.pairwise_kernels(model.pairwise, first.domain, second.domain)[0]
    of_pairs = PairMap(_rows(first), _rows(second), pairwise, parity)
    D, auto = of_pairs.size, isinstance(model.alpha, str)
    check_memory(8 * D * D * (FOLDS + 4 if auto else 4), f"sums over {D} products of features", "use fewer, or a basis")
    fold = np.zeros(len(of_pairs.X), dtype=np.intp)
    if auto:
        fold = np.random.default_rng(seed_of(model.random_state)).permutation(len(fold)) % min(FOLDS, len(fold))
    parts = sum_blocks(edges, list(dict.fromkeys(named.values())), BlockSums(read, of_pairs, ranking, fold))
    attributes, alpha = _chosen(model, parts) if auto else ({}, checks.check_number("alpha", model.alpha))
    P, b, _ = sum(parts[1:], parts[0]).quadratic()
    if not np.any(b):
        raise ValueError("there is nothing to learn: no conditioning object has edges of different value")
    W, v, u = of_pairs.weights(path(P, b, np.array([alpha]))[:, 0])
    if turned:
        W, v, u = W.T, u, v
    unit = [replace(side, domain=Domain(np.eye(side.domain.array.shape[1]), True)) for side in (source, target)]
    attributes |= _found(source, target, sum(part.count for part in parts), RELATION[parity], alpha)
    attributes["pairwise_"] = weights_of(pairwise, first.domain)
    return attributes | model_of(unit[0], unit[1], W, Pairwise(), None if v is None or u is None else (v, u))


def _all_others_zero(
    model: BaseEstimator, source: Side, target: Side, edges: ArrayLike, read: BlockEdges
) -> dict[str, Any]:
    """The closed form of implicit feedback from X'X, Z'Z and the products of Y with Z, added up over blocks."""
    if read.parity:
        raise ValueError('missing="zero" of symmetric and reciprocal relations needs all edges in memory')
    first, second = (target, source) if read.turned else (source, target)
    (sums,) = sum_blocks(edges, list(dict.fromkeys(read.columns.values())), BlockProducts(read, _rows(second)))
    Y = SummedRelation(sums, (len(first), len(second)))
    problem = Kronecker(first.domain, second.domain, Y, ranking=model.loss == "ranking")
    attributes, alpha = {}, model.alpha
    if isinstance(alpha, str):
        alphas = _alphas(model, problem.mean_eigenvalue)
        losses = problem.row_losses(alphas) / (len(first) * len(second))
        alpha = float(alphas[choice.best(-losses, alphas)])
        attributes = {"alphas_": alphas, "cv_scores_": -losses, "cv_criterion_": CRITERION}
    a = problem.coef(checks.check_number("alpha", alpha))
    attributes |= _found(source, target, sums.count, None, alpha) | {"pairwise_": {"kronecker": 1.0, "sum": 0.0}}
    return attributes | model_of(source, target, a.T if read.turned else a, Pairwise())


def _found(source: Side, target: Side, count: int, relation: str | None, alpha: float) -> dict[str, Any]:
    of_solver = {"solver_": "sums", "n_iter_": 0, "residuals_": np.empty(0), "intercept_": 0.0}
    return _ends(source, target, count, relation) | {"alpha_": float(alpha), **of_solver}


def _rows(side: Side) -> np.ndarray:
    return np.asarray(dense(side.domain.array), dtype=np.float64)


def _ends(source: Side, target: Side, count: int, relation: str | None) -> dict[str, Any]:
    nothing = np.empty(0, dtype=np.intp)
    edges = EdgeSet((len(source), len(target)), None, nothing, nothing, np.empty(0))
    found = ends_of(source, target, edges, relation)
    found.pop("Y_fit_", None)
    return {**found, "n_edges_": count}


def _chosen(model: BaseEstimator, parts: list[EdgeSums]) -> tuple[dict[str, Any], float]:
    """The alpha with the smallest held-out loss."""
    P, _, _ = sum(parts[1:], parts[0]).quadratic()
    alphas = _alphas(model, float(np.trace(P)) / max(1, sum(part.count for part in parts)))
    losses = held_out_losses([part for part in parts if part.count], alphas)
    best = choice.best(-losses, alphas)
    return {"alphas_": alphas, "cv_scores_": -losses, "cv_criterion_": CRITERION}, float(alphas[best])


def _alphas(model: BaseEstimator, mean_eigenvalue: float) -> np.ndarray:
    return choice.default_alphas(mean_eigenvalue) if model.alphas is None else checks.check_grid("alphas", model.alphas)
