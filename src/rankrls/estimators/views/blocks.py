"""Fit CoRankRLS to rows in blocks: in files, in streams, on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...bases import Basis, Draw, is_count
from ...blocks.totals import Loss
from ...core.means import Read
from ...core.queries import Queries
from ...core.views import FittedView, View, as_views, fitted_views
from ...problems.coregularised import Stack
from ...system.rows import CANDIDATES
from ...system.seeds import seed_of
from ...system.types import Matrix
from ..rows.blocks import BlockSetup, CountedRows
from ..rows.training import Seen, Training
from .fitting import JointParameters, JointRows, Unscored


@dataclass(frozen=True)
class JointBlocks:
    """Rows in blocks for CoRankRLS: scored rows are read into memory, unscored ones only add to S = Z'G'G Z."""

    parts: Any

    def joint_rows(self, model: JointParameters) -> tuple[Seen, JointRows]:
        scored = self.parts.only("scored").collect()
        if scored is None:
            raise ValueError("no row is scored (y is missing, or the weight is zero, everywhere): give some a score")
        stack = Stack.of(_views(model, self.parts), scored.X)
        unscored = _agreement(model, self.parts.only("unscored"), stack)
        if model.agree_on == "all":
            everything = _agreement(model, self.parts.only("any"), stack)
            unscored = Unscored(everything.S, unscored.n_rows, everything.n_pairs)
        m = len(scored)
        data = Training(scored.X, scored.y, Queries.of(scored.qid), scored.weights, n_given=m)
        seen = Seen.of(self.parts.n_columns, self.parts.names)
        return seen, JointRows(data, np.arange(m), stack, unscored)


def _views(model: JointParameters, parts: Any) -> list[FittedView]:
    """Views with everything fixed; basis points are drawn from a random sample of rows."""
    views = as_views(model.views, model.kernel, model.basis)
    for number, view in enumerate(views):
        if view.kernel is not None and not _has_points(view) and not _draws_points(view):
            raise ValueError(
                f"view {number}: a kernel on rows in blocks needs a basis: pass a number, an object of rankrls.bases "
                f"or the points themselves as basis=; got {view.basis!r}"
            )
    X: Any = np.empty((1, parts.n_columns), dtype=parts.dtype)
    weights, seed = None, seed_of(model.random_state)
    if any(_draws_points(view) or isinstance(getattr(view.kernel, "gamma", view.kernel), str) for view in views):
        sizes = [view.basis if is_count(view.basis) else getattr(view.basis, "size", 0) for view in views]
        rows = parts.only("any").sample(Draw(max(CANDIDATES, int(np.sum(sizes))), seed)).rows
        X, weights = rows.X, rows.weights
    return fitted_views(views, X, parts.names, weights, seed)


def _draws_points(view: View) -> bool:
    return is_count(view.basis) or isinstance(view.basis, Basis)


def _has_points(view: View) -> bool:
    return view.basis is not None and np.ndim(view.basis) == 2


def _agreement(model: JointParameters, unscored: Any, stack: Stack) -> Unscored:
    n = stack.n_columns
    if not unscored.n_rows():
        return Unscored(np.zeros((n, n)), 0, 0)
    none = np.empty(0, dtype=np.intp)
    nothing = Training(np.empty((0, unscored.n_columns)), np.empty((0, 1)), Queries(none, none))
    loss = Loss(model.weighting, 0.0, True)
    sums = BlockSetup(CountedRows(unscored), nothing, StackFeatures(stack), loss, None).sums
    return Unscored(sums.gram, sums.n_rows, sums.n_pairs)


@dataclass(frozen=True)
class StackFeatures:
    """The columns of all views side by side, as features."""

    stack: Stack
    W = None

    @property
    def n_columns(self) -> int:
        return self.stack.n_columns

    def reader(self, X: Matrix) -> Callable[[], Read]:
        return self.stack.reader(X, np.arange(X.shape[0]))
