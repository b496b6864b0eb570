"""From the parameters of a relation model to the objects at both ends, and the candidates hold-out chooses from."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ... import checks
from ...metrics import get_metric
from ...relations import fitting, names
from ...relations.names import Ids
from ...relations.problems import RelationLoss
from ...relations.relation import EdgeSet, Pairwise
from ...system.types import Matrix
from .sides import Side, kernels_of, sides_of, validated, variants

PARITY = {None: 0, "arbitrary": 0, "symmetric": 1, "reciprocal": -1}
RELATION = {0: None, 1: "symmetric", -1: "reciprocal"}


def both_sides(model: BaseEstimator, X: Matrix, Z: Matrix) -> tuple[Side, Side]:
    """The objects at both ends, with the kernels and bases of a model."""
    if Z is not None and PARITY[model.relation]:
        raise ValueError(f'relation="{model.relation}" relates objects of one kind: leave Z out')
    kernels = kernels_of(model.kernel, model.target_kernel, Z)
    of_bases = (model.basis, model.basis if model.target_basis is None else model.target_basis)
    validate = partial(validated, model)
    return sides_of(X, Z, kernels, model.indefinite, validate, of_bases, model.random_state, model.encoder)


def candidates_of(
    model: BaseEstimator, source: Side, target: Side, edges: EdgeSet, parity: int, *, games: bool
) -> list[fitting.RelationCandidate]:
    """Every combination of kernels and pairwise kernels that hold-out may choose; `edges` are those given to fit.

    Games are a list of edges of a reciprocal relation.
    """
    turned = model.condition == "target"
    loss = RelationLoss(model.loss == "ranking", parity, Pairwise(), model.weighting, model.intercept)
    kernels = kernels_of(model.kernel, model.target_kernel, None if source is target else target)
    names_of = _pairwise(model, source, target, games=games)
    found = []
    for x, z in variants(source, target, kernels, edges):
        G, K = (z.domain, x.domain) if turned else (x.domain, z.domain)
        for pairwise in fitting.pairwise_kernels(names_of, G, K):
            found.append(fitting.RelationCandidate(G, K, replace(loss, pairwise=pairwise), x, z))
    return found


def _pairwise(model: BaseEstimator, source: Side, target: Side, *, games: bool) -> Any:
    """Resolve pairwise="auto": sums for objects known only by id, both for games if hold-out can choose."""
    if model.pairwise != "auto":
        return model.pairwise
    if source.domain.diagonal_only and target.domain.diagonal_only:
        return "sum"
    chosen = isinstance(model.alpha, str) and model.max_iter != "auto"
    return ["kronecker", "sum"] if games and chosen else "kronecker"


def search_of(model: BaseEstimator, edges: EdgeSet, n_candidates: int, cv: object, watch: Any) -> fitting.Search:
    """How to choose alpha, the candidate and the number of iterations."""
    early, auto = model.max_iter == "auto", isinstance(model.alpha, str)
    alpha = (0.0 if early else None) if auto else model.alpha
    alphas = None if model.alphas is None else checks.check_grid("alphas", model.alphas)
    unpenalised = alpha == 0 and not edges.complete
    solver = "cr" if model.solver == "auto" and (early or watch is not None or unpenalised) else model.solver
    if not auto:
        alpha = checks.check_number("alpha", alpha, zero=True)
        if n_candidates > 1 and not early:
            alpha, alphas = None, np.array([alpha])
    most = None if early else int(model.max_iter)
    return fitting.Search(alpha, alphas, get_metric(model.scoring), cv or model.cv, solver, model.tol, most, watch)


def parity_of_edges(model: BaseEstimator, y: object, Z: object, source: object = None, target: object = None) -> int:
    """The parity of the relation: edges without values between objects of one kind are games.

    With values they are games if their columns are called winner and loser and `relation` is None.
    """
    parity = PARITY[model.relation]
    if model.missing == "zero":
        return parity
    if y is not None:
        named = "winner" in str(source).lower() and "loser" in str(target).lower()
        return -1 if named and model.relation is None and Z is None else parity
    if Z is not None or parity == 1:
        raise ValueError(
            'without y all edges are 1, so there is nothing to learn: pass y, or missing="zero" if edges that are not '
            "listed are 0"
        )
    return -1


def objects_of(
    model: BaseEstimator, X: Matrix, Z: Matrix, edges: object, source: object, target: object
) -> tuple[Any, Any]:
    """X and Z, or the ids in the edges if there are no features."""
    found = names.objects_of(X, Z, edges, source, target, encoded=model.encoder is not None)
    if model.pairwise == "kronecker" and all(isinstance(A, Ids) or A is None for A in found):
        raise ValueError(
            "objects that are known only by id have no features that a product of kernels could use: "
            'set pairwise="sum", or pass features'
        )
    return found
