"""What a caller passes to `fit`, read and checked in one place.

Rows that all have scores, or only some; warnings about data that look like a mistake; and `cv`, the rows that are held
out together and the groups in which they are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import column_or_1d, validate_data

from ... import checks
from ...checks import is_query_name
from ...core.queries import Queries
from ...kernels import Moments, is_precomputed
from ...problems import choice
from ...problems.base import HeldOutFold
from ...system.frames import as_column, names
from ...system.items import Items
from ...system.parallel import share
from ...system.types import ArrayLike, Ids, Matrix, MatrixLike
from ...system.warnings import warn
from ..base import items_of, takes_objects
from ..ranking.base import RidgeRanker
from .training import Training

Folds = tuple[list[HeldOutFold] | None, Queries]  # None leaves out each query in turn
ONE_QUERY = 1000  # a single query with more graded rows than this is probably several queries
GRADES = 10  # graded relevance has at most this many different labels
PART, MANY = 1 << 12, 1 << 20  # numbers in a product, too few for BLAS to start threads of its own, and in a call
UNSCALED, CELLS = 1000.0, 1_000_000  # warn above this ratio of column spreads; values used to estimate it


def training_rows(
    model: RidgeRanker, X: MatrixLike, y: ArrayLike, qid: Ids, sample_weight: ArrayLike | None, *, fresh: bool = True
) -> Training:
    """The rows to fit to or, unless `fresh`, more rows for a fitted model."""
    checks.check_features(X)
    if takes_objects(model, X):
        rows = items_of(model, X, reset=fresh, at_least=2 if fresh else 1)
        targets = checks.check_numbers("y", y, len(rows), flat=False)
        return _training(model, rows, targets, qid, sample_weight, fresh=fresh)
    if fresh:
        warn_about_columns(X, qid)
    if fresh and _plain(X, y):
        plain = np.asarray(X)
        model.n_features_in_ = plain.shape[1]
        model.__dict__.pop("feature_names_in_", None)
        return _training(model, plain, np.asarray(y), qid, sample_weight, fresh=True)
    try:
        rows, targets = validate_data(
            model,
            X,
            as_column(y),
            accept_sparse=False if is_precomputed(model.kernel) else "csr",
            dtype=[np.float64, np.float32],
            y_numeric=True,
            multi_output=True,
            ensure_min_samples=2 if fresh else 1,
            reset=fresh or not hasattr(model, "alpha_"),
        )
    except (ValueError, TypeError) as error:
        raise checks.unreadable(error, X) from None
    return _training(model, rows, targets, qid, sample_weight, fresh=fresh)


def _plain(X: Any, y: Any) -> bool:
    """True if these are arrays of finite numbers, in which `validate_data` would find nothing wrong."""
    if not (type(X) is type(y) is np.ndarray and X.dtype in (np.float64, np.float32) and y.dtype.kind in "fiu"):
        return False
    if X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y) or len(X) < 2 or not X.size or not y.size:
        return False
    return _surely_finite(X) and _surely_finite(y)


def _surely_finite(values: np.ndarray) -> bool:
    """True if all numbers are finite; False if one is not, or if their sum or that of their squares overflows.

    Many numbers are squared and not only added up, because BLAS takes half as long for it.
    """
    contiguous = values.flags.c_contiguous or values.flags.f_contiguous
    if values.size < MANY or values.dtype.kind != "f" or not contiguous:
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(values.sum()))
    flat = values.ravel(order="K")
    whole = len(flat) - len(flat) % PART
    parts = [part.reshape(-1, PART) for part in np.split(flat[:whole], range(MANY, whole, MANY))]
    square = lambda some: sum(np.vecdot(part, part).sum() for part in some)
    squares = share(square, [*parts, flat[whole:, None]], cost=float(len(flat)), label="check of the rows")
    return bool(np.isfinite(sum(squares)))


def _training(
    model: RidgeRanker, rows: Any, targets: np.ndarray, qid: Ids, sample_weight: ArrayLike | None, *, fresh: bool
) -> Training:
    """Checked training rows, with warnings about data that look like a mistake."""
    if model.tied_pairs is not True and targets.ndim == 2 and targets.shape[1] == 1:
        targets = column_or_1d(targets, warn=True)
    m, n = rows.shape
    if fresh:
        warn_about_one_query(targets, qid)
    queries, weights = checks.check_queries(qid, m), checks.check_weights(sample_weight, m)
    if fresh and is_precomputed(model.kernel):
        checks.check_kernel_values(rows, model.basis)
    signs = checks.check_signs(model.positive, n, vars(model).get("feature_names_in_"))
    kind = {"n_given": m, "flat": targets.ndim == 1, "signs": signs, "scaled": model.scale is not None}
    y = checks.check_targets(targets, tied_pairs=model.tied_pairs)
    data = Training(rows, y, queries, weights, **kind).without_zero_weights()
    if model.tied_pairs is not False:
        checks.check_query_mass(data.queries, data.weights, model.weighting)
    if fresh and model.regression == 0:
        checks.check_comparable(data.y, data.queries)
    return data


@dataclass(frozen=True)
class PartlyScored:
    """Checked rows; y is NaN where a row has no score. A row of weight zero is neither scored nor unscored."""

    X: Any
    y: np.ndarray  # (m,) or (m, t)
    queries: Queries
    weights: np.ndarray | None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None,
        qid: Ids,
        sample_weight: ArrayLike | None = None,
        *,
        several: bool = False,
        fresh: bool = True,
    ) -> PartlyScored:
        """Rows as the caller passes them: y, qid and sample_weight may be column names of X.

        `several` allows y to have several columns. Unless `fresh`, these are more rows for a fitted model, and no row
        needs a score.
        """
        checks.check_in_memory(X, type(model).__name__)
        X, y, qid, sample_weight = checks.split_columns(X, y, qid, sample_weight)
        warn_about_columns(X, qid)
        X = model._rows(X, reset=fresh, at_least=2 if fresh else 1)
        m = X.shape[0]
        if fresh and _sees_scales(model, X):
            warn_about_scales(X, type(model).__name__)
        several = several and np.ndim(y) == 2 and np.shape(y)[1] > 1
        if y is None and not fresh:
            y = np.full(m, np.nan)
        y = checks.check_scores(np.asarray(as_column(y), dtype=np.float64) if several else scores_of(y), m, some=fresh)
        warn_about_one_query(y, qid)
        rows = cls(X, y, checks.check_queries(qid, m), checks.check_weights(sample_weight, m))
        if fresh and not len(rows.scored):
            raise ValueError(f"none of the {m} rows is scored (y is NaN, or the weight is zero): give some a score")
        return rows

    @property
    def scored(self) -> np.ndarray:
        """Row numbers of the scored rows."""
        return np.flatnonzero(self._given & ~self._missing)

    @property
    def unscored(self) -> np.ndarray:
        """Row numbers of the unscored rows."""
        return np.flatnonzero(self._given & self._missing)

    @property
    def targets(self) -> np.ndarray:
        """(m, t) the scores, with one column if y has one dimension."""
        return self.y.reshape(len(self.y), -1)

    @property
    def _missing(self) -> np.ndarray:
        return np.isnan(self.targets).any(axis=1)

    @property
    def _given(self) -> np.ndarray:
        return np.ones(len(self.y), dtype=bool) if self.weights is None else self.weights > 0


def scores_of(y: object) -> np.ndarray:
    """y as numbers in one dimension, NaN where a row has no score."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: NaN marks unscored rows")
    plain = isinstance(y, np.ndarray | list | tuple)  # a table with one column counts as one dimension
    try:
        return column_or_1d(as_column(y), dtype=np.float64, warn=plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold one number per row, NaN where unscored: {error}") from None


def _sees_scales(model: BaseEstimator, X: Matrix) -> bool:
    """True if a method without `scale` depends on the scale of columns: all but feature selection do."""
    selects = hasattr(model, "n_basis") and model.kernel in (None, "linear")
    return not (selects or isinstance(X, Items) or model.__sklearn_tags__().input_tags.pairwise)


def warn_about_columns(X: Any, qid: Any) -> None:
    """Warn if a column of a frame that probably holds query ids is used as a feature."""
    columns = [name for name in names(X) if isinstance(name, str)]
    hint = query_column(columns, lambda name: np.asarray(X[name]), given=qid is not None)
    if hint is not None:
        remedy = "drop it from X" if qid is not None else f"pass qid={hint!r}, or drop it"
        warn(f"column {hint!r} looks like query ids, but is used as a feature: {remedy}")


def warn_about_one_query(y: np.ndarray, qid: object) -> None:
    """Warn if there are no query ids, but many rows with few different labels, which is hardly one ranking."""
    if qid is None and _graded(y):
        warn(
            f"no qid was given, so all {len(y):,} rows are ranked as one query: if they belong to several, pass qid "
            "(rankrls.qid_from_group makes it from sizes); pass a constant qid if one is meant"
        )


def warn_about_scales(X: Any, method: str) -> None:
    """Warn if columns differ so much in scale that only a few of them matter to a penalty or kernel."""
    rows = max(100, CELLS // X.shape[1])
    some = (X.tocsr() if sparse.issparse(X) else X)[:: max(1, X.shape[0] // rows)][:rows]
    moments = Moments.of(some)
    varying = moments.deviation[moments.square > 0]
    if len(varying) > 1 and varying.max() > UNSCALED * varying.min():
        warn(
            f"columns differ in scale by a factor of {varying.max() / varying.min():,.0f}, and {method} depends on it: "
            f"put a scaler before it, make_pipeline(StandardScaler(), {method}(...))"
        )


def query_column(columns: Iterable[str], values: Callable[[str], np.ndarray], *, given: bool = False) -> str | None:
    """The column that probably holds query ids: by its name, or by part of its name and runs of equal values."""
    columns = list(columns)
    named = [name for name in columns if is_query_name(name) and not _has_fractions(values(name))]
    likely = [name for name in columns if not given and any(part in name.lower() for part in ("query", "session"))]
    return next(iter([*named, *(name for name in likely if _are_ids(values(name)))]), None)


def _graded(y: np.ndarray) -> bool:
    if y.ndim != 1 or len(y) < ONE_QUERY:
        return False
    labels = np.unique(y[~np.isnan(y)])
    return len(labels) <= GRADES and bool(np.all(labels == np.floor(labels)))


def _are_ids(values: np.ndarray) -> bool:
    """True if values are whole numbers or text, with equal values in two or more runs."""
    if values.ndim != 1 or len(values) < 4 or values.dtype.kind not in "iufUO":
        return False
    if _has_fractions(values):
        return False
    runs = 1 + int(np.sum(values[1:] != values[:-1]))
    return 2 <= runs < len(values) / 1.5 and runs == len(set(values.tolist()))


def _has_fractions(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool(np.any(values[~np.isnan(values)] % 1))


def part_of_query(rows: np.ndarray) -> HeldOutFold:
    """Items held out of a single query, which changes the remaining pairs."""
    return HeldOutFold(rows, whole=False)


def folds_of(
    cv: object, data: Training, *, item_fold: Callable[[np.ndarray], HeldOutFold] = part_of_query, refits: bool = False
) -> Folds:
    """The folds of whole queries, or of the items of a single query.

    With `refits` every fold costs a fit, so leave-query-out becomes a few folds.
    """
    if len(data.queries) == 1:
        folds = [item_fold(rows) for rows in _item_rows(cv, data)]
        return folds, choice.fold_groups(folds, data.queries.n_rows)
    if isinstance(cv, str):  # leave-query-out
        if not refits:
            return None, data.queries
        cv = min(choice.ITERATIVE_FOLDS, len(data.queries))
    if isinstance(cv, (int, np.integer)):
        _check_n_folds(int(cv), len(data.queries), "queries")
        codes = data.queries.codes
        tests = [test for _, test in GroupKFold(cv).split(codes, groups=codes)]
    else:
        tests = _given(cv, data)
    return choice.query_folds(tests, data.queries), data.queries


def _item_rows(cv: object, data: Training) -> Sequence[np.ndarray]:
    m = data.queries.n_rows
    if isinstance(cv, str):
        checks.check_choice("cv", cv, ("leave-query-out",))
        cv = max(2, min(choice.ITEM_FOLDS, m // 2))
    if isinstance(cv, (int, np.integer)):
        _check_n_folds(int(cv), m // 2, "pairs of items")
        return choice.dealt_folds(data.y[:, 0], int(cv))
    return _given(cv, data)


def _given(cv: Any, data: Training) -> list[np.ndarray]:
    """The test rows of each fold from a splitter or an iterable of splits, as numbers among the kept rows."""
    if hasattr(cv, "split"):
        groups = data.queries.labels[data.queries.codes]
        if data.kept is not None:  # rows of weight zero become a group of their own
            groups = np.full(data.n_given, -1)
            groups[data.kept] = data.queries.codes
        no_rows = np.zeros((data.n_given, 1))
        cv = cv.split(no_rows, no_rows[:, 0], groups=groups if len(data.queries) > 1 else None)
    try:
        tests = [np.arange(data.n_given)[test] for _, test in cv]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            'cv must be "leave-query-out", a number of folds, a scikit-learn group splitter or an iterable '
            f"of (train, test) row numbers: {error}"
        ) from None
    if data.kept is not None:
        position = np.full(data.n_given, -1)
        position[data.kept] = np.arange(len(data.kept))
        tests = [rows[rows >= 0] for rows in (position[test] for test in tests)]
    tests = [rows for rows in tests if len(rows)]
    if not tests:
        raise ValueError(
            "cv gives no fold with a row to hold out: pass (train, test) splits with test rows, a number of folds, or "
            '"leave-query-out"'
        )
    return tests


def _check_n_folds(cv: int, most: int, what: str) -> None:
    if not 2 <= cv <= most:
        raise ValueError(
            f'cv={cv} folds cannot be made from {most} {what}: choose between 2 and {most}, or leave nothing to "auto"'
        )
