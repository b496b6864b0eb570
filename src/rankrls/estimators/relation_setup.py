"""From the parameters of a ConditionalRankRLS to what is fitted: candidates to choose between, and how to choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import checks
from ..metrics import get_metric
from ..relations import fitting, names
from ..relations.edges import Pairwise
from ..relations.names import Ids
from ..relations.problems import RelationLoss
from ..relations.relation import EdgeSet
from ..system.types import Matrix
from .sides import Side, kernels_of, variants

PARITY = {None: 0, "arbitrary": 0, "symmetric": 1, "reciprocal": -1}
RELATION = {0: None, 1: "symmetric", -1: "reciprocal"}


def candidates_of(
    model: BaseEstimator, source: Side, target: Side, edges: EdgeSet, parity: int
) -> list[fitting.RelationCandidate]:
    """Every combination of kernels and of pairwise kernels that hold-out may choose; `edges` as they were given."""
    turned = model.condition == "target"
    loss = RelationLoss(model.loss == "ranking", parity, Pairwise(), model.weighting, model.intercept)
    kernels = kernels_of(model.kernel, model.target_kernel, None if source is target else target)
    found = []
    for x, z in variants(source, target, kernels, edges):
        G, K = (z.domain, x.domain) if turned else (x.domain, z.domain)
        for pairwise in fitting.pairwise_kernels(model.pairwise, G, K):
            found.append(fitting.RelationCandidate(G, K, replace(loss, pairwise=pairwise), x, z))
    return found


def search_of(model: BaseEstimator, edges: EdgeSet, n_candidates: int, cv: object, watch: Any) -> fitting.Search:
    """How alpha, the candidate and the number of iterations are found."""
    early, auto = model.max_iter == "auto", isinstance(model.alpha, str)
    alpha = (0.0 if early else None) if auto else model.alpha
    alphas = None if model.alphas is None else checks.check_grid("alphas", model.alphas)
    solver = "cr" if model.solver == "auto" and (early or watch is not None or alpha == 0) else model.solver
    if not auto:
        asked = early or watch is not None or model.solver in ("cg", "pcg", "cr")
        zero = not edges.complete or asked
        alpha = checks.check_number("alpha", alpha, zero=zero)
        if n_candidates > 1 and not early:
            alpha, alphas = None, np.array([alpha])
    most = None if early else int(model.max_iter)
    return fitting.Search(alpha, alphas, get_metric(model.scoring), cv or model.cv, solver, model.tol, most, watch)


def parity_of_edges(model: BaseEstimator, y: object, Z: object) -> int:
    """Edges without values between objects of one kind are won by their source."""
    parity = PARITY[model.relation]
    if y is not None or model.missing == "zero":
        return parity
    if Z is not None or parity == 1:
        raise ValueError(
            'all edges are 1 without y, and there is nothing to learn from them: pass y, or missing="zero" if '
            "edges that are not listed are 0"
        )
    return -1


def objects_of(
    model: BaseEstimator, X: Matrix, Z: Matrix, edges: object, source: object, target: object
) -> tuple[Any, Any]:
    """X and Z, or the ids in the edges where nothing else is known."""
    found = names.objects_of(X, Z, edges, source, target)
    if model.pairwise == "kronecker" and all(isinstance(A, Ids) or A is None for A in found):
        raise ValueError(
            "objects that are known by id only have nothing in common that a product of kernels could learn from: "
            'set pairwise="sum", or pass features'
        )
    return found
