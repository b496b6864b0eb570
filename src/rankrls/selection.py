"""The choice of alpha by exact hold-out.

Folds are unions of whole queries: a model never sees part of the query it is judged on. A single query (global
ranking) is cut into folds of its items instead; with tied pairs included that too is exact without refits, since
ranking m items of one query is ridge regression with a free intercept::

    c S || C (y - f) ||^2 = c S min_b || y - f - b ||^2.

Examples
--------
Relations have folds of their own, for what will be new when the model is used:

>>> from rankrls import ConditionalRankRLS
>>> from rankrls.datasets import make_relation
>>> data = make_relation(40, random_state=0)
>>> model = ConditionalRankRLS(kernel="rbf", cv=RelationKFold(4, same_objects=True)).fit(data.X, data.Y)
>>> model.cv_scores_.shape
(15,)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .metrics import Metric, standard_error
from .preferences import PairPreferences, QueryPreferences
from .problems import Fold, Primal, Problem
from .queries import Queries

__all__ = ["Part", "RelationKFold"]

ALPHA_RANGE = (-5.0, 2.0)  # decades around the mean eigenvalue of the loss: docs/decisions/0001-defaults.md
N_ALPHAS = 15
ITEM_FOLDS = 10
ITERATIVE_FOLDS = 5


@dataclass(frozen=True)
class Choice:
    """What hold-out says of a grid of alphas."""

    alphas: np.ndarray  # (k,)
    scores: np.ndarray  # (k,) mean score over held-out queries
    errors: np.ndarray  # (k,) its standard error over them; NaN where the metric is not a mean over queries
    predictions: np.ndarray  # (m, t) held-out scores at the best alpha
    best: int

    @property
    def score(self) -> float:
        return float(self.scores[self.best])


def default_alphas(spread: float) -> np.ndarray:
    """A grid in units of the loss's mean eigenvalue, so that it does not depend on the scale of the data."""
    return (spread if spread > 0 else 1.0) * np.logspace(*ALPHA_RANGE, N_ALPHAS)


def choose(
    problem: Problem,
    folds: Sequence[Fold] | None,
    alphas: np.ndarray,
    metric: Metric,
    groups: Queries,
    unit: float = 1.0,
) -> Choice:
    """The alpha of the best mean score over held-out groups; the larger one where several are best.

    `unit` is what alpha is divided by inside the problem.
    """
    predictions: Any = None
    layers: list[Any] = [folds] if folds is None or _disjoint(folds) else [[fold] for fold in folds]
    scores, of_groups, undefined = [], [], None
    for layer in layers:
        held = problem.leave_out(layer, alphas / unit)
        rows = slice(None) if layer is None else np.sort(np.concatenate([fold.rows for fold in layer]))
        part = groups if layer is None else Queries.of(groups.codes[rows])
        if predictions is None:
            predictions = held  # NaN outside the folds
        else:
            predictions[rows] = held[rows]
        try:
            judged = [metric.judge(problem.y[rows, t], held[rows, :, t], part) for t in range(held.shape[2])]
            scores.append(np.mean([mean for mean, _ in judged], axis=0))
        except ValueError as error:  # nothing to judge in this layer; perhaps in another
            undefined = error
            continue
        codes = np.arange(len(groups)) if layer is None else part.labels
        of_groups += [(codes, values) for _, values in judged]
    if undefined is not None and not scores:
        raise undefined
    mean = np.mean(scores, axis=0)
    winner = best(mean if metric.greater_is_better else -mean, alphas)
    return Choice(alphas, mean, _errors(of_groups), predictions[:, winner], winner)


def _errors(of_groups: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(k,) standard errors over groups from their codes (g,) and values (g, k); a group that comes again, in another
    fold or for another target, counts once with the mean of its values."""
    codes, values = (np.concatenate(parts) for parts in zip(*of_groups, strict=True))
    defined = ~np.isnan(values).any(axis=1)
    seen, place, times = np.unique(codes[defined], return_inverse=True, return_counts=True)
    total = np.zeros((len(seen), values.shape[1]))
    np.add.at(total, place, values[defined])
    return standard_error(total / times[:, None])


def pair_scores(problem: Primal, alphas: np.ndarray) -> np.ndarray:
    """(k,) the share of explicit pairs in the right order by models that never saw them.

    Connected components of the preference graph are left out as queries are; where all pairs are linked, each pair.
    """
    F = problem.F
    assert isinstance(F, PairPreferences)
    components = F.components()
    if len(components) > 1:
        predicted = problem.leave_out([Fold(rows) for rows in components], alphas)[:, :, 0]
    else:
        predicted = problem.leave_pairs_out(alphas)[:, :, 0]
    right = np.sign(predicted) * np.sign(problem.y)
    return np.average((1 + right) / 2, axis=0, weights=F.w)


def best(scores: np.ndarray, alphas: np.ndarray) -> int:
    """Where the score is largest; the largest alpha of several."""
    ties = np.flatnonzero(scores >= np.max(scores))
    return int(ties[np.argmax(alphas[ties])])


def query_folds(tests: Sequence[np.ndarray], queries: Queries) -> list[Fold]:
    """Folds from test sets of rows, each a union of whole queries."""
    folds = []
    for number, test in enumerate(tests):
        rows = np.unique(test)
        inside = np.bincount(queries.codes[rows], minlength=len(queries))
        cut = (inside > 0) & (inside < queries.sizes)
        if cut.any():
            q = int(np.argmax(cut))
            raise ValueError(
                f"cv fold {number} cuts query {queries.labels[q]!r} ({inside[q]} of its {queries.sizes[q]} rows): "
                "held-out folds must be unions of whole queries; use GroupKFold or another group splitter"
            )
        if len(rows) == queries.n_rows:
            raise ValueError(f"cv fold {number} holds out every row: nothing is left to train on")
        folds.append(Fold(rows))
    return folds


def dealt_folds(y: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Items in the order of y dealt out like cards: every fold spans the whole range of y; no randomness."""
    order = np.argsort(y, kind="stable")
    return [np.sort(order[i::n_folds]) for i in range(n_folds)]


def fold_groups(folds: Sequence[Fold], m: int) -> Queries:
    """Items of a single query are judged within their fold: each fold has another model."""
    codes = np.zeros(m, dtype=np.intp)
    if _disjoint(folds):
        for number, fold in enumerate(folds):
            codes[fold.rows] = number
    return Queries.of(codes)


def item_factor(F: QueryPreferences, rows: np.ndarray | None = None) -> float:
    """beta + (1 - beta) c S of the one query that is left when some of its items are left out."""
    stay = np.ones(F.shape[0], dtype=bool)
    if rows is not None:
        stay[rows] = False
    u = np.ones(stay.sum()) if F.u is None else F.u[stay]
    S = float(u.sum())
    mass = (S**2 - float(u @ u) if F.y is not None else S * (S - 1)) / 2  # as in QueryPreferences
    c = {"pairs": 1.0, "items": 1 / S, "queries": 1 / mass if mass > 0 else 0.0}[F.weighting]
    return F.beta + (1 - F.beta) * c * S


def _disjoint(folds: Sequence[Fold]) -> bool:
    rows = np.concatenate([fold.rows for fold in folds])
    return len(np.unique(rows)) == len(rows)


# ---------------------------------------------------------------- relations


@dataclass(frozen=True)
class Part:
    """Some edges of a relation Y.

    Attributes
    ----------
    rows, columns : ndarray of int
        The objects at either end.
    edges : ndarray of bool or None
        None if every edge between the rows and the columns belongs here; else, for each entry of Y in its order
        (each stored entry if Y is sparse), whether it does.

    Examples
    --------
    >>> import numpy as np
    >>> Part(np.array([0, 2]), np.array([1])).of(np.arange(6.0).reshape(3, 2))
    array([[1.],
           [5.]])
    """

    rows: np.ndarray
    columns: np.ndarray
    edges: np.ndarray | None = None

    def of(self, Y: Any) -> Any:
        """The relation between these rows and columns: NaN, or not stored if sparse, where an edge is not in it."""
        if not sparse.issparse(Y):
            Y = np.asarray(Y, dtype=np.float64)
            part = Y[np.ix_(self.rows, self.columns)]
            return part if self.edges is None else np.where(self.edges.reshape(part.shape), part, np.nan)
        if self.edges is None:
            return sparse.csr_array(Y)[self.rows][:, self.columns]
        Y = sparse.coo_array(Y)
        i, j = Y.coords
        return sparse.coo_array((Y.data[self.edges], (i[self.edges], j[self.edges])), shape=Y.shape).tocsr()


class RelationKFold:
    """Folds of a relation for one of the four ways in which a model can meet something new.

    =======  ===================  ==============  ===============================================
    setting  conditioning object  ranked objects  an example
    =======  ===================  ==============  ===============================================
    1        known                known           missing entries of a drug-target table
    2        new                  known           known targets for a new drug
    3        known                new             new targets for a known drug
    4        new                  new             new targets for a new drug
    =======  ===================  ==============  ===============================================

    Rows of Y are the conditioning objects, columns the ranked ones. Each setting is harder than those before it, and a
    score from one says nothing of another: hold out what will be new.

    Parameters
    ----------
    setting : {1, 2, 3, 4}
        What is held out: edges, rows, columns, or rows and columns at once (fold i of the rows with fold i of the
        columns; training edges are those between the objects that stay).
    n_splits : int, default=5
        Number of folds.
    same_objects : bool, default=False
        Whether rows and columns are the same objects. Setting 4 then holds out an object in both roles, and setting 1
        an edge with its mirror image, which would give it away where the relation is symmetric or reciprocal.
    random_state : int, default=0
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.arange(16.0).reshape(4, 4)
    >>> for train, test in RelationKFold(4, n_splits=2, same_objects=True).split(Y):
    ...     print(test.rows, test.columns, train.of(Y).shape)
    [0 1] [0 1] (2, 2)
    [2 3] [2 3] (2, 2)
    """

    def __init__(self, setting: int, n_splits: int = 5, *, same_objects: bool = False, random_state: int = 0):
        if setting not in (1, 2, 3, 4):
            raise ValueError(f"setting must be 1 (edges), 2 (rows), 3 (columns) or 4 (both), got {setting!r}")
        if n_splits < 2:
            raise ValueError(f"n_splits must be at least 2, got {n_splits}")
        self.setting, self.n_splits = setting, int(n_splits)
        self.same_objects, self.random_state = same_objects, random_state

    def __repr__(self) -> str:
        return f"RelationKFold({self.setting}, n_splits={self.n_splits}, same_objects={self.same_objects})"

    def split(self, Y: Any) -> Iterator[tuple[Part, Part]]:
        """Training and test parts of a relation, dense (NaN where unknown) or sparse."""
        p, r = Y.shape
        if self.setting == 1:
            if sparse.issparse(Y):
                number = self._of_edges(*sparse.coo_array(Y).coords)
            else:
                known = ~np.isnan(np.asarray(Y, dtype=np.float64))
                number = np.full(p * r, -1)
                number[known.ravel()] = self._of_edges(*np.nonzero(known))
            for fold in range(self.n_splits):
                inside, outside = (Part(np.arange(p), np.arange(r), e) for e in (number != fold, number == fold))
                yield inside, outside
            return
        of_row, of_column = self._of_objects(p, r)
        for fold in range(self.n_splits):
            inside, outside = (
                Part(np.flatnonzero(keep(of_row, fold)), np.flatnonzero(keep(of_column, fold)))
                for keep in (np.not_equal, np.equal)
            )
            if self.setting == 2:
                inside, outside = (Part(part.rows, np.arange(r)) for part in (inside, outside))
            elif self.setting == 3:
                inside, outside = (Part(np.arange(p), part.columns) for part in (inside, outside))
            yield inside, outside

    def split_edges(
        self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same for a list of edges: which of them are for training, and which for the test."""
        if self.setting == 1:
            number = self._of_edges(rows, columns)
            for fold in range(self.n_splits):
                yield number != fold, number == fold
            return
        of_row, of_column = (folds[ends] for folds, ends in zip(self._of_objects(*shape), (rows, columns), strict=True))
        for fold in range(self.n_splits):
            if self.setting == 4:
                yield (of_row != fold) & (of_column != fold), (of_row == fold) & (of_column == fold)
            else:
                number = of_row if self.setting == 2 else of_column
                yield number != fold, number == fold

    def _of_objects(self, p: int, r: int) -> tuple[np.ndarray, np.ndarray]:
        """The fold of each row and of each column."""
        if self.same_objects and p != r:
            raise ValueError(f"rows and columns cannot be the same objects: there are {p} rows and {r} columns")
        few = {2: p, 3: r, 4: min(p, r)}[self.setting]
        if self.n_splits > few:
            raise ValueError(f"setting {self.setting} cannot hold out {self.n_splits} folds of {few} objects")
        rng = np.random.default_rng(self.random_state)
        rows = rng.permutation(p) % self.n_splits
        return rows, rows if self.same_objects else rng.permutation(r) % self.n_splits

    def _of_edges(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The fold of each edge; repeated edges, and mirrored ones of the same objects, share it."""
        if self.same_objects:
            rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
        key = rows.astype(np.int64) * (int(columns.max(initial=0)) + 1) + columns
        distinct, place = np.unique(key, return_inverse=True)
        if self.n_splits > len(distinct):
            raise ValueError(f"setting 1 cannot hold out {self.n_splits} folds of {len(distinct)} edges")
        return (np.random.default_rng(self.random_state).permutation(len(distinct)) % self.n_splits)[place]
