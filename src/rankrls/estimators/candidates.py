"""From checked training input to the pursuits to choose from: one for each kernel, or for each value of nu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import bases
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS
from ..core.views import FittedView
from ..kernels import Precomputed, as_kernel
from ..metrics import Metric
from ..problems import choice
from ..problems.choice import Judged, Setting
from ..problems.coregularised import Stack, agreement, default_nus
from ..problems.dictionary import Columns, KernelAtoms
from ..problems.joint_pursuit import Agreeing
from ..problems.pursuit import Supervised
from ..system import memory
from ..system.warnings import warn
from .folds import folds_of
from .training import Training


@dataclass(frozen=True)
class Candidate:
    """A pursuit, and the functions it chooses from as the caller knows them."""

    problem: Any  # Supervised or Agreeing
    numbers: Sequence[np.ndarray]  # for each view, the number of each atom: of a row, a point or a column
    views: Sequence[FittedView]

    @property
    def n_atoms(self) -> int:
        """Of the smallest view."""
        return min(len(numbers) for numbers in self.numbers)


@dataclass(frozen=True)
class Trial:
    """A pursuit with the sizes to choose from."""

    candidate: Candidate
    data: Training
    sizes: np.ndarray

    @cached_property
    def problem(self) -> Any:
        """The pursuit with the values of its functions at hand, for several paths over the same rows."""
        return self.candidate.problem.evaluated()

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The held-out score of every size."""
        folds, groups = folds_of(cv, self.data)
        settings = [Setting(size=int(size)) for size in self.sizes]
        leave_out = lambda layer: self.problem.leave_out(layer, self.sizes)
        return choice.judge(leave_out, settings, self.problem.y, folds, groups, metric)


def supervised(
    F: QueryPreferences,
    data: Training,
    scored: np.ndarray,
    *,
    kernel: Any,
    basis: Any,
    backfit: bool,
    seed: int,
) -> list[Candidate]:
    """A pursuit of one view for each kernel there is to choose from; all numbers of rows are the caller's."""
    X = data.X
    rows = X if data.kept is None else X[scored]
    if kernel is None:
        columns = np.arange(X.shape[1])
        return [Candidate(Supervised(F, Columns(rows), data.y, backfit), [columns], [FittedView(columns, None, None)])]
    kernel = as_kernel(kernel)
    named = basis is None or (np.ndim(basis) == 1 and np.asarray(basis).dtype.kind in "iu")
    numbers, place = np.zeros(0, dtype=np.intp), None
    if named:
        numbers = scored if basis is None else bases.row_numbers(basis, X.shape[0])
        position = np.full(X.shape[0], -1)
        position[scored] = np.arange(len(scored))
        place = position[numbers]
    if isinstance(kernel, Precomputed):
        if not named:
            raise ValueError("the basis of a precomputed kernel is None or row numbers")
        view = FittedView(slice(None), Precomputed(numbers), None)
        return [Candidate(Supervised(F, Columns(rows[:, numbers]), data.y, backfit, place), [numbers], [view])]
    found = []
    for one in kernel.candidates(rows, data.weights):
        points = X[numbers] if named else bases.points(basis, rows, one, seed, data.weights)
        problem = Supervised(F, KernelAtoms(rows, one, points), data.y, backfit, place)
        view = FittedView(slice(0, X.shape[1]), one, points.astype(np.float64))
        found.append(Candidate(problem, [numbers if named else np.arange(points.shape[0])], [view]))
    return found


def agreeing(
    F: QueryPreferences,
    G: QueryPreferences,
    data: Training,
    scored: np.ndarray,
    unscored: np.ndarray,
    *,
    views: Sequence[FittedView],
    nus: np.ndarray | None,
    backfit: bool,
    shared: bool,
) -> list[Candidate]:
    """A pursuit of several views for each value of nu (None: of a grid fitted to the data); one pass over the rows."""
    X = data.X
    stack = Stack.unweighted(views, X)
    numbers = [np.arange(block.stop - block.start) for block in stack.blocks]
    if shared and len({len(n) for n in numbers}) > 1:
        raise ValueError(
            f"shared_basis=True needs as many functions in each view, the views have "
            f"{', '.join(str(len(n)) for n in numbers)}: give all of them the same rows"
        )
    memory.check_memory(
        6 * 8 * stack.n_columns**2 + 16 * len(scored) * stack.n_columns,
        f"{len(views)} views with {stack.n_columns} functions to choose from together",
        "take fewer, e.g. basis=500",
    )
    if not G.n_pairs and len(views) > 1 and (nus is None or np.any(nus)):
        warn(
            f"no query has two of the {len(unscored)} unscored rows: the views have nothing to agree on; unscored "
            "rows are those where y is NaN",
        )
    S = agreement(stack, X, unscored, G) if G.n_pairs else np.zeros((stack.n_columns,) * 2)
    Z = np.vstack([stack(X[scored[i : i + BATCH_ROWS]]) for i in range(0, len(scored), BATCH_ROWS)])
    problem = Agreeing(F, Z, stack.blocks, data.y, S, 0.0, backfit, shared)
    values = default_nus(*problem.traces()) if nus is None else nus
    return [Candidate(replace(problem, nu=float(nu)), numbers, views) for nu in values]
