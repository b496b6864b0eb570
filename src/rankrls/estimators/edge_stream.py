"""Relations from edges that need not fit in memory: objects are at hand, edges come in blocks and leave sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import checks
from ..blocks.edges import sum_blocks
from ..problems import choice
from ..relations import fitting
from ..relations.edges import Pairwise
from ..relations.games import EdgeList
from ..relations.names import Ids
from ..relations.relation import Domain, EdgeSet, dense
from ..relations.sums import EdgeSums, PairMap, held_out_losses, path
from ..system.memory import check_memory
from ..system.types import ArrayLike
from .relation_setup import RELATION
from .sides import Side, ends_of, model_of

FOLDS = 5


@dataclass(frozen=True)
class BlockSums:
    """The sums of a block of edges, a part for each fold of conditioning objects."""

    map: PairMap
    ranking: bool
    ids: tuple[Ids, Ids]
    columns: dict[str, str]  # source, target, y, sample_weight
    turned: bool
    fold: np.ndarray  # (p,) of each conditioning object
    parity: int

    def __call__(self, block: dict[str, np.ndarray]) -> list[EdgeSums]:
        pick = lambda name: block[self.columns[name]] if name in self.columns else None
        table = {name: block[self.columns[name]] for name in ("source", "target")}
        edges = EdgeList.of(
            _Columns(table), pick("y"), self.ids, source="source", target="target", sample_weight=pick("sample_weight")
        )
        if self.turned:
            edges = replace(edges, rows=edges.columns, columns=edges.rows)
        edges = edges.both_ways(self.parity)
        fold = self.fold[edges.rows]
        return [
            EdgeSums.nothing(self.map, ranking=self.ranking).add(edges.only(np.flatnonzero(fold == k)))
            for k in range(int(self.fold.max()) + 1)
        ]


class _Columns(dict):
    """Columns by name, as a table has them."""

    @property
    def column_names(self) -> list[str]:
        return list(self)


def refuse_in_streams(model: BaseEstimator, X: object, columns: dict[str, Any], others: dict[str, Any]) -> None:
    """What sums over blocks of edges cannot do, before anything is read."""
    for name in ("source", "target"):
        if not isinstance(columns[name], str):
            raise ValueError(
                f"edges from a file or iterator have named columns: pass source= and target=, got {name}=None"
            )
    for name in ("y", "sample_weight"):
        if columns[name] is not None and not isinstance(columns[name], str):
            raise ValueError(f"{name} of edges from a file or iterator is the name of a column")
    for name, value in others.items():
        if value is not None:
            remedy = "" if name == "home" else ": put the weights into a column, sample_weight="
            raise ValueError(f"{name}= needs all edges in memory{remedy}")
    if X is None or isinstance(X, str):
        raise ValueError(
            "edges from a file or iterator need the objects: pass X, one-hot features if there are no others"
        )
    told = {"missing": "unknown", "intercept": False, "weighting": "items"}
    for name, value in told.items():
        if getattr(model, name) != value:
            raise ValueError(f"{name}={getattr(model, name)!r} needs all edges in memory")
    if not isinstance(model.pairwise, str):
        raise ValueError('several pairwise kernels are chosen from edges in memory: set pairwise="kronecker" or "sum"')


def fit_stream(
    model: BaseEstimator, source: Side, target: Side, edges: ArrayLike, columns: dict[str, Any], parity: int
) -> dict[str, Any]:
    """What a fit leaves on the estimator."""
    turned, ranking = model.condition == "target", model.loss == "ranking"
    first, second = (target, source) if turned else (source, target)
    for side in (first, second):
        if not side.domain.factored:
            raise ValueError(
                f"{side.name} has a full kernel matrix: edges from a file or iterator need linear features, fewer than "
                "objects, or basis="
            )
    pairwise = fitting.pairwise_kernels(model.pairwise, first.domain, second.domain)[0]
    of_pairs = PairMap(_rows(first), _rows(second), pairwise, parity)
    D, auto = of_pairs.size, isinstance(model.alpha, str)
    if auto and parity:
        raise ValueError("alpha of symmetric and reciprocal relations is chosen from edges in memory: set alpha")
    check_memory(8 * D * D * (FOLDS + 4 if auto else 4), f"sums over {D} products of features", "use fewer, or a basis")
    fold = np.zeros(len(of_pairs.X), dtype=np.intp)
    if auto:
        fold = np.random.default_rng(model.random_state).permutation(len(fold)) % min(FOLDS, len(fold))
    named = {name: value for name, value in columns.items() if isinstance(value, str)}
    function = BlockSums(of_pairs, ranking, (source.ids, target.ids), named, turned, fold, parity)
    parts = sum_blocks(edges, list(dict.fromkeys(named.values())), function)
    attributes, alpha = _chosen(model, parts) if auto else ({}, checks.check_number("alpha", model.alpha))
    P, b, _ = sum(parts[1:], parts[0]).quadratic()
    if not np.any(b):
        raise ValueError("there is nothing to learn: no conditioning object has edges of different value")
    W, v, u = of_pairs.weights(path(P, b, np.array([alpha]))[:, 0])
    if turned:
        W, v, u = W.T, u, v
    unit = [replace(side, domain=Domain(np.eye(side.domain.array.shape[1]), True)) for side in (source, target)]
    count = sum(part.count for part in parts)
    return attributes | _ends(source, target, count, RELATION[parity]) | {
        "alpha_": float(alpha), "solver_": "sums", "n_iter_": 0, "residuals_": np.empty(0), "intercept_": 0.0,
        **model_of(unit[0], unit[1], W, Pairwise(), None if v is None or u is None else (v, u)),
    }  # fmt: skip


def _rows(side: Side) -> np.ndarray:
    return np.asarray(dense(side.domain.array), dtype=np.float64)


def _ends(source: Side, target: Side, count: int, relation: str | None) -> dict[str, Any]:
    nothing = np.empty(0, dtype=np.intp)
    edges = EdgeSet((len(source), len(target)), None, nothing, nothing, np.empty(0))
    found = ends_of(source, target, edges, relation)
    found.pop("Y_fit_", None)
    return {**found, "n_edges_": count}


def _chosen(model: BaseEstimator, parts: list[EdgeSums]) -> tuple[dict[str, Any], float]:
    """The alpha of the smallest held-out loss."""
    if model.alphas is None:
        P, _, _ = sum(parts[1:], parts[0]).quadratic()
        alphas = choice.default_alphas(float(np.trace(P)) / max(1, sum(part.count for part in parts)))
    else:
        alphas = checks.check_grid("alphas", model.alphas)
    losses = held_out_losses([part for part in parts if part.count], alphas)
    best = choice.best(-losses, alphas)
    return {"alphas_": alphas, "cv_scores_": -losses, "cv_criterion_": "negative held-out loss"}, float(alphas[best])
