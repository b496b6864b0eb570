"""Judge models of a relation on held-out edges and objects: fold by fold, in each setting."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ...core.queries import Queries
from ...kernels import Precomputed
from ...metrics import get_metric, pairwise_accuracy
from ...relations import names
from ...relations.checks import can_rank, check_relation
from ...relations.folds import PastFirst, RelationKFold
from ...relations.games import EdgeList, recency
from ...relations.kernel_sums import WeightedSum
from ...relations.names import Ids
from ...relations.problems import tied
from ...relations.relation import EdgeSet, one_way
from ...system.progress import numbered, reporting
from ...system.types import Matrix, MatrixLike
from .numbers import by_row, without_ids
from .sides import kernels_of

INNER_FOLDS = 5
TIME = "time"


class Evaluation(dict):
    """Scores of each fold by setting: `evaluation[setting]` is an array of the `scoring` of each fold.

    Attributes
    ----------
    metrics : dict of setting to dict of name to ndarray of shape (n_splits,)
        Besides `scoring`: "concordance", the share of all pairs of held-out edges in the right order, across
        conditioning objects; "auc", the same if the relation has two values; and for reciprocal relations "winner",
        the share of edges whose sign is right.

    Examples
    --------
    >>> import numpy as np
    >>> found = Evaluation({2: {"pairwise_accuracy": np.array([0.7, 0.8]), "concordance": np.array([0.6, 0.7])}})
    >>> found[2].mean().round(2), round(found.errors()[2]["concordance"], 2)
    (np.float64(0.75), 0.05)
    """

    def __init__(self, metrics: dict[Any, dict[str, np.ndarray]]):
        super().__init__({setting: next(iter(found.values())) for setting, found in metrics.items()})
        self.metrics = metrics

    def means(self) -> dict[Any, dict[str, float]]:
        """The mean over folds of each metric in each setting."""
        return {s: {name: _mean(values) for name, values in found.items()} for s, found in self.metrics.items()}

    def errors(self) -> dict[Any, dict[str, float]]:
        """The standard error over folds of each metric in each setting."""
        return {s: {name: _error(values) for name, values in found.items()} for s, found in self.metrics.items()}

    def __str__(self) -> str:
        names = list(dict.fromkeys(name for found in self.metrics.values() for name in found))
        lines = ["setting  " + "  ".join(f"{name:>17}" for name in names)]
        means, errors = self.means(), self.errors()
        for setting in self.metrics:
            cells = [
                f"{means[setting][name]:.3f} ± {errors[setting][name]:.3f}" if name in means[setting] else ""
                for name in names
            ]
            lines.append(f"{setting!s:<9}" + "  ".join(f"{cell:>17}" for cell in cells))
        return "\n".join(lines)


@dataclass(frozen=True)
class RelationJudge:
    """A model to be judged, without its data; judges it in any setting."""

    model: Any
    parity: int
    one_domain: bool
    n_splits: int
    random_state: int
    exact: dict[int, str] | None = None  # by setting, the exact hold-out of the model that needs no refits

    def evaluation(
        self, X: Matrix, Y: MatrixLike, Z: Matrix, settings: object, columns: dict[str, Any] | None, half_life: object
    ) -> Evaluation:
        """The metrics of each setting; `columns` name the columns of Y as a list of edges, None if it is a matrix."""
        relation = {0: None, 1: "symmetric", -1: "reciprocal"}[self.parity]
        dated = columns is not None and columns["date"] is not None
        settings = settings_of(settings, self.parity, dated=dated)
        if columns is not None:
            half_life = recency(Y, columns, half_life)
            if TIME in settings:
                columns["date"] = names.date_column(Y, columns["date"])
        judge = replace(self, model=clone(self.model).set_params(relation=relation))
        X, Z = (names.labelled(A, encoded=self.model.encoder is not None) for A in (X, Z))
        ids = Ids.of_objects(X), Ids.of_objects(X if Z is None else Z)
        x, z = (without_ids(A, table=self.model.encoder is not None) for A in (X, Z))
        kernels = kernels_of(self.model.kernel, self.model.target_kernel, Z)
        x, z = (
            kernel.numbers(A, own, name) if A is not None and isinstance(kernel, WeightedSum) and kernel.numbered else A
            for A, kernel, own, name in zip((x, z), kernels, ids, ("X", "Z"), strict=True)
        )
        if columns is not None:
            edges = EdgeList.of(Y, columns.pop("y"), ids, **columns)
            shape = (len(ids[0]), len(ids[1]))
            return Evaluation(
                {s: judge.listed(x, edges, z, shape, s, half_life) for s in _named(settings, self.model.verbose)}
            )
        square = tuple(isinstance(kernel, Precomputed) for kernel in kernels)
        Y = names.aligned(Y, *ids, ("X", "X" if Z is None else "Z"))
        Y = Y if sparse.issparse(Y) else np.asarray(Y)
        return Evaluation({s: judge.matrix(x, Y, z, square, s) for s in _named(settings, self.model.verbose)})

    def inner(self, setting: Any, shape: tuple[int, int], *, complete: bool = False) -> Any:
        """The model with `cv` set to the setting it is judged in, to choose its alpha."""
        model = clone(self.model)
        if model.cv != "auto":
            return model
        if setting == TIME:
            return model.set_params(cv=TIME)
        if self.exact is not None:
            return model.set_params(cv=self.exact[setting])
        if setting == 2 and complete and model.max_iter != "auto":
            return model  # its default leaves out each conditioning object in turn, exactly
        few = {1: shape[0] * shape[1], 2: shape[0], 3: shape[1], 4: min(shape)}[setting]
        same = self.one_domain and setting in (1, 4)  # in other settings objects keep one of their roles
        return model.set_params(cv=self._folds(setting, max(2, min(INNER_FOLDS, few // 2)), same=same))

    def _folds(self, setting: int, n_splits: int, *, same: bool) -> RelationKFold:
        mirrored = bool(self.parity) and setting in (2, 3)
        return RelationKFold(setting, n_splits, same_objects=same, random_state=self.random_state, mirrored=mirrored)

    def _setting_of_Y(self, setting: int) -> int:
        """The setting in terms of Y: 2 holds out rows, 3 columns."""
        return {2: 3, 3: 2}.get(setting, setting) if self.model.condition == "target" else setting

    def matrix(
        self, X: Matrix, Y: MatrixLike, Z: Matrix, square: tuple[bool, ...], setting: int
    ) -> dict[str, np.ndarray]:
        """The metrics of each fold of a relation given as a matrix."""
        turned = self.model.condition == "target"
        rows = []
        splits = self._folds(self._setting_of_Y(setting), self.n_splits, same=self.one_domain).split(Y)
        for train, test in numbered(list(splits), "fold"):
            one = Z is None and np.array_equal(train.rows, train.columns)
            other = X if Z is None else Z
            x, z = (
                _take(X, train.rows, train.rows, square[0]),
                _take(other, train.columns, train.columns, square[1]),
            )
            shape = (len(train.columns), len(train.rows)) if turned else (len(train.rows), len(train.columns))
            y = train.of(Y)
            complete = getattr(self.model, "missing", None) == "zero" if sparse.issparse(y) else not np.isnan(y).any()
            model = _quiet(self.inner(setting, shape, complete=complete).fit, x, y, None if one else z)
            x = self._known(_take(X, test.rows, train.rows, square[0]), test.rows, train.rows, model.X_fit_, square[0])
            z = _take(other, test.columns, train.columns, square[1])
            z = self._known(z, test.columns, train.columns, model.Z_fit_, square[1])
            scores = model.predict(x, None if one and test.rows is test.columns else z)
            edges = check_relation(test.of(Y), *scores.shape, one_domain=False).listed()
            scores = scores[edges.rows, edges.columns]
            rows.append(self.judged(edges, scores))
        return _stacked(rows)

    def _known(self, similarities: np.ndarray, test: np.ndarray, train: np.ndarray, fitted: Any, square: bool) -> Any:
        """Similarities of training objects as the model used them, with any shift of the diagonal."""
        if not square or self.model.indefinite != "shift":
            return similarities
        place = {i: k for k, i in enumerate(train.tolist())}
        out = np.array(similarities)
        for k, i in enumerate(test.tolist()):
            if i in place:
                out[k] = fitted[place[i]]
        return out

    def listed(
        self, X: Matrix, edges: EdgeList, Z: Matrix, shape: tuple[int, int], setting: object, half_life: object
    ) -> dict[str, np.ndarray]:
        """The metrics of each fold of a list of edges."""
        rows, both = [], edges.both_ways(self.parity)
        for train, test in numbered(list(self._splits(both, shape, setting)), "fold"):
            model, seen, held = self.inner(setting, shape), edges.only(train[: len(edges)]), both.only(test)
            _quiet(
                model.fit_edges, X, np.column_stack([seen.rows, seen.columns]), seen.y, Z, sample_weight=seen.weights,
                date=seen.time, half_life=half_life, home=seen.home,
            )  # fmt: skip
            own, others, sign = one_way(held.rows, held.columns, self.parity)
            scores = sign * model.predict_edges(None, np.column_stack([own, others]))  # as `fit` made the kernels
            if held.home is not None:
                scores = scores + model.home_advantage_ * held.home
            rows.append(self.judged(EdgeSet(shape, None, held.rows, held.columns, held.y), scores))
        return _stacked(rows)

    def _splits(self, edges: EdgeList, shape: tuple[int, int], setting: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if setting == TIME:
            if edges.time is None:
                raise ValueError('setting "time" trains on the past: pass date=, the date of each edge')
            folds: RelationKFold = PastFirst(edges.time, self.n_splits)
        else:
            folds = self._folds(self._setting_of_Y(setting), self.n_splits, same=self.one_domain)
        for train, test in folds.split_edges(edges.rows, edges.columns, shape):
            if train.any() and test.any():
                yield train, test

    def judged(self, edges: EdgeSet, scores: np.ndarray) -> dict[str, float]:
        """All metrics of held-out edges; NaN if no edges can be compared."""
        y, ends = edges.y, edges.rows if self.model.condition == "source" else edges.columns
        metric, scores = get_metric(self.model.scoring), tied(scores, ends)
        ranked = can_rank(replace(edges, rows=ends)) if len(y) else False
        name = self.model.scoring if isinstance(self.model.scoring, str) else metric.name
        found = {name: float(metric(y, scores, Queries.of(ends))) if ranked else np.nan}
        values = np.unique(y)
        concordance = pairwise_accuracy(y, scores) if len(values) > 1 else np.nan
        found["concordance"] = float(concordance)
        if len(values) == 2:
            found["auc"] = float(concordance)
        if self.parity == -1 and np.any(y != 0):
            decided = y != 0
            found["winner"] = float(np.mean((1 + np.sign(y[decided]) * np.sign(scores[decided])) / 2))
        return found


def _quiet(fit: Any, *args: Any, **options: Any) -> Any:
    """Call fit without warnings about objects without edges in a fold, or about the grid of alphas."""
    with warnings.catch_warnings():
        for known in (".*have no edge", "the best alpha was at the end", "nothing was learned"):
            warnings.filterwarnings("ignore", message=known, category=UserWarning)
        return fit(*args, **options)


def _named(settings: tuple[Any, ...], verbose: bool) -> Iterator[Any]:
    """The settings, each in its own phase of the progress report."""
    with reporting(verbose, "judging"):
        yield from numbered(settings, "setting", [f"setting {setting}" for setting in settings])


def _take(A: Matrix, rows: np.ndarray, columns: np.ndarray, square: bool) -> Any:
    if hasattr(A, "iloc") and not square:  # a table for an encoder
        return by_row(A.iloc[rows])
    A = A if sparse.issparse(A) else np.asarray(A)
    return A[rows][:, columns] if square else A[rows]


def _stacked(rows: list[dict[str, float]]) -> dict[str, np.ndarray]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _error(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else float("nan")


def settings_of(settings: Any, parity: int, *, dated: bool) -> tuple[Any, ...]:
    """The settings in which a relation can be judged."""
    if settings is None:
        return (TIME,) if dated else (1, 4) if parity else (1, 2, 3, 4)
    settings = tuple(settings)
    strange = [s for s in settings if s not in (1, 2, 3, 4, TIME)]
    if strange:
        raise ValueError(f'settings must be among 1, 2, 3, 4 and "time", got {strange[0]!r}')
    return settings
