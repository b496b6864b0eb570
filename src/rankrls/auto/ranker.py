"""AutoRanker: columns, candidates, cross-fitting and a stack behind scikit-learn's interface."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .. import checks
from ..core.queries import Queries
from ..estimators import RankRLS
from ..estimators.base import Ranker
from ..estimators.hints import mind_columns, mind_one_query
from ..metrics import get_metric
from ..system import frames
from ..system.frames import as_frame
from ..system.progress import Progress
from ..system.types import Ids, Matrix
from ..system.warnings import warn
from ..tables import ColumnMaps, TableEncoder
from . import glassbox
from .candidates import MAKE, NEEDS, Common, Split
from .crossfit import Blend, CrossFit, CrossFitJudge, Folds, fit_on_all, scores_of
from .effort import EFFORTS, Effort
from .rows import AutoRows, Map


@dataclass(frozen=True)
class StackPart:
    """A candidate in the final model: weight * map(N) @ coef."""

    name: str
    map: Map
    coef: np.ndarray
    weight: float

    def __call__(self, N: np.ndarray) -> np.ndarray:
        return scores_of(self.map, self.weight * self.coef, N)


DOUBLE_ROWS = 20_000  # up to this many rows are scored in double precision


class AutoRanker(Ranker):
    """Ranking in one line: closed-form candidates, judged on queries they never saw, and stacked.

    Columns become normal scores of their distribution over all rows and within the query (`ColumnMaps`). The candidates
    are a linear model, additive models with screened pairs of columns, and kernels with learned column weights; each is
    a pairwise ridge regression in closed form. Cross-fitting over folds of queries chooses every alpha and the
    non-negative weights of the stack; all that saw labels is judged on other queries.

    Parameters
    ----------
    scoring : str or callable, default="ndcg@10"
        The metric that candidates are judged by, together with pairwise accuracy. Labels for which the metric is not
        defined (ndcg wants grades of at least zero) are judged by pairwise accuracy; see `scoring_`.
    effort : {"fast", "normal", "best"}, default="normal"
        How much work to spend. "fast" tries the linear and the additive candidates, "normal" kernels of 1,000 points
        as well, "best" the same with 5 folds and 2,000 points. docs/auto.md has the costs.
    relative : bool, default=True
        Whether ranks within the query are columns, too. `predict` then wants whole queries, with `qid`.
    candidates : list of str, default=None
        The candidates to try, instead of those of `effort`: "linear", "additive", "adaptive", "fine", "effects",
        "gauss", "laplace", "gauss learned", "laplace learned". Those they build on are tried as well.
    random_state : int, default=0
        Seed of the folds and of the basis points.
    verbose : bool, default=False
        Report progress, with the time left, on standard error.

    Attributes
    ----------
    leaderboard_ : list of dict
        For each candidate, best first: "candidate", "score" (held out), "error" (its standard error), "weight" (its
        share in the stack), "size" (features) and "seconds".
    cv_score_, cv_error_ : float
        The held-out score of the whole stack, and its standard error over queries.
    cv_scores_ : ndarray of shape (n_folds,)
        The held-out score of the whole stack in each fold.
    cv_predictions_ : ndarray of shape (n_samples,)
        Held-out scores of the whole stack; NaN for rows that are not in the sample that everything is chosen on.
    interactions_ : list of dict
        The pairs of columns in the additive model: "columns", "strength" (energy of what single columns leave, 1 for
        chance) and "spread" (standard deviation of the pair's contribution within queries), largest first.
    feature_effects_ : list of dict
        For each column of scores: "column", "relative", "spread", "values" and "effect", the curve of its contribution.
    parts_ : list
        The candidates of the final model with their weights.
    encoder_ : TableEncoder or None
        What turned text, categories and dates of a data frame into numbers, where there were any.
    columns_ : ColumnMaps
        The scores of columns; None for sparse rows.
    scoring_ : str or callable
        The metric used.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where X has names.
    n_queries_ : int
        Number of queries seen during fit.

    Notes
    -----
    With fewer than six queries the rows are dealt into folds rather than the queries. Interrupting `fit` (Ctrl-C) keeps
    the candidates judged so far. Sparse rows are ranked by a linear model.

    Examples
    --------
    >>> from rankrls import AutoRanker
    >>> from rankrls.datasets import make_search
    >>> data, new = make_search(60, random_state=0), make_search(20, random_state=1)
    >>> model = AutoRanker(effort="fast").fit(data.X, data.y, qid=data.qid)
    >>> bool(model.score(new.X, new.y, qid=new.qid) > 0.7)
    True
    >>> sorted(model.leaderboard_[0])
    ['candidate', 'error', 'score', 'seconds', 'size', 'weight']
    """

    __metadata_request__predict = {"qid": True}  # noqa: RUF012
    _learned = "parts_"

    def __init__(
        self, *, scoring="ndcg@10", effort="normal", relative=True, candidates=None, random_state=0, verbose=False
    ) -> None:
        self.scoring = scoring
        self.effort = effort
        self.relative = relative
        self.candidates = candidates
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, qid=None, sample_weight=None) -> Self:
        """Learn from rows with labels, grouped into queries.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Items, with NaN for missing values. A data frame may hold the query ids in a column named "qid", and
            text, categories and dates, which `TableEncoder` turns into numbers.
        y : array-like of shape (n_samples,), or the name of a column of X
            Relevance, larger is better.
        qid : array-like of shape (n_samples,), or the name of a column of X, default=None
            Query of each row; None is one query.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies that a row counts for. The scores of columns do not depend on it.

        Returns
        -------
        self
        """
        effort = self._checked_effort()
        X, y, qid, sample_weight = checks.named_columns(X, y, qid, sample_weight)
        X, qid = checks.split_qid_column(as_frame(X), qid)
        mind_columns(X, qid)
        self.encoder_ = TableEncoder() if _has_text(X) else None
        if self.encoder_ is not None:
            X = self._encoded(X, y, qid)
        X, y = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, **_INPUT)
        if self.encoder_ is not None:
            self.n_features_in_, self.feature_names_in_ = self.encoder_.n_features_in_, self.encoder_.feature_names_in_
        y = np.asarray(column_or_1d(y), dtype=np.float64)
        mind_one_query(y, qid)
        queries = checks.check_queries(qid, len(y))
        weights = checks.check_weights(sample_weight, len(y))
        checks.check_comparable(y, queries)
        self.n_queries_, self.scoring_ = len(queries), _usable(self.scoring, y)
        if sparse.issparse(X):
            return self._fit_sparse(X, y, queries, weights)
        return self._fit_dense(X, y, queries, weights, effort)

    def _encoded(self, X, y, qid) -> np.ndarray:
        """Text, categories, dates and truth values as numbers."""
        encoded = self.encoder_.fit_transform(X, y, qid=qid)  # type: ignore[union-attr]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        return encoded.toarray() if sparse.issparse(encoded) else encoded

    @property
    def needs_queries(self) -> bool:
        """Whether scores depend on the other rows of the query."""
        return bool(self.relative)

    def _names(self) -> list[str]:
        """Names of the columns that scores are made of."""
        if self.encoder_ is not None:
            return [str(name) for name in self.encoder_.get_feature_names_out()]
        given = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if given is None else [str(name) for name in given]

    def _fit_dense(self, X, y, queries: Queries, weights, effort: Effort):
        kept = slice(None) if weights is None else np.flatnonzero(weights > 0)
        columns = ColumnMaps(relative=self.relative).learn(X, queries)
        if not len(columns.columns_):
            raise ValueError(f"all {X.shape[1]} columns are constant over the {len(X)} rows: there is nothing to learn")
        N = columns.scores(X, queries, np.float32)
        if weights is not None:
            N, y, queries, weights = N[kept], y[kept], Queries.of(queries.codes[kept]), weights[kept]
        rows = AutoRows(N, y, queries, weights)
        sample = self._sample(rows, effort)
        study = self._study(rows if sample is None else rows.part(sample), columns, effort)
        blend = Blend.of(study.judged, study.common.rows, study.folds)
        blend = blend.towards(study.judged, study.common.rows, study.judge)
        final = Split(Common(rows, columns.source_, effort, self.random_state, effort.basis), rows)
        self._fit_parts(final, study, blend)
        self.columns_ = columns
        self._store_judgement(study, blend, sample, kept, len(X))
        self._store_effects(final)
        return self

    def _sample(self, rows: AutoRows, effort: Effort) -> np.ndarray | None:
        """Rows of whole queries, drawn at random, that everything is chosen on; None for all."""
        if len(rows) <= effort.cv_rows:
            return None
        order = np.random.default_rng(self.random_state).permutation(len(rows.queries))
        used = order[: max(2 * effort.folds, int((np.cumsum(rows.queries.sizes[order]) <= effort.cv_rows).sum()))]
        chosen = np.zeros(len(rows.queries), dtype=bool)
        chosen[used] = True
        found = np.flatnonzero(chosen[rows.queries.codes])
        if len(found) <= 2 * effort.cv_rows:
            return found
        return np.sort(np.random.default_rng(self.random_state).choice(found, effort.cv_rows, replace=False))

    def _study(self, rows: AutoRows, columns: ColumnMaps, effort: Effort) -> CrossFit:
        """The candidates, judged by cross-fitting on some rows; fewer of them if it is interrupted."""
        folds = Folds.deal(rows.queries, effort.folds, np.random.default_rng(self.random_state))
        parts = [folds.rows(fold) for fold in range(len(folds))]
        common = Common(rows, columns.source_, effort, self.random_state, effort.cv_basis, parts)
        study = CrossFit(common, folds, CrossFitJudge(get_metric(self.scoring_), rows.y, folds))
        progress = Progress("candidates", len(effort.candidates), quiet=not self.verbose)
        try:
            study.run(progress.over(effort.candidates))
        except KeyboardInterrupt:
            if not study.judged:
                raise
            tried = ", ".join(one.name for one in study.judged)
            warn(f"interrupted: the model is made of the candidates tried so far ({tried})")
        return study

    def _fit_parts(self, final: Split, study: CrossFit, blend: Blend) -> None:
        """The candidates with a weight in the stack, and those they build on, fitted on all rows."""
        alpha = {one.name: one.alpha for one in study.judged}
        used = {one.name for one, weight in zip(study.judged, blend.weights, strict=True) if weight > 0}
        needed = used.union(*(NEEDS.get(name, ()) for name in used))
        order = [one.name for one in study.judged if one.name in needed]
        for name in Progress("final model", len(order), quiet=not self.verbose).over(order):
            fit_on_all(final, name, alpha[name])
        self.parts_: list[Any] = [
            StackPart(one.name, *folded(final.made[one.name].map, final.coef[one.name]), float(weight / deviation))
            for one, weight, deviation in zip(study.judged, blend.weights, blend.deviation, strict=True)
            if weight > 0
        ]

    def _store_judgement(self, study: CrossFit, blend: Blend, sample, kept, m: int) -> None:
        share = blend.weights / max(blend.weights.sum(), 1e-30)
        board: list[dict[str, Any]] = []
        for one, weight in zip(study.judged, share, strict=True):
            score, error = study.judge.score(one.honest)
            entry = {"candidate": one.name, "score": score, "error": error, "weight": float(weight)}
            board.append({**entry, "size": one.size, "seconds": round(one.seconds, 3)})
        sign = 1 if study.judge.metric.greater_is_better else -1
        self.leaderboard_ = sorted(board, key=lambda entry: -sign * entry["score"])
        self.cv_score_, self.cv_error_ = study.judge.score(blend.held)
        values = study.judge.metric.per_query(study.judge.y, blend.held, study.folds.groups)
        self.cv_scores_ = np.array([_mean(values[study.folds.of_group == fold]) for fold in range(len(study.folds))])
        self.cv_predictions_ = np.full(m, np.nan)
        rows = np.arange(m)[kept]
        self.cv_predictions_[rows if sample is None else rows[sample]] = blend.held

    def _store_effects(self, final: Split) -> None:
        name = next((name for name in ("fine", "adaptive", "additive") if name in final.made), None)
        names = self.columns_.get_feature_names_out(self._names())
        if name is None:
            self.interactions_ = []
            coef = final.coef["linear"] if "linear" in final.made and not final.made["linear"].map.projects else ()
            self.feature_effects_ = glassbox.linear_effects(np.asarray(coef), self.columns_, names)
            return
        made, coef = final.made[name], final.coef[name]
        lifts = {}
        if "additive" in final.made:
            lifts = dict(zip(map(tuple, final.made["additive"].map.pairs.tolist()), final.lifts.tolist(), strict=True))
        self.interactions_ = glassbox.interactions(made, coef, lifts, names)
        self.feature_effects_ = glassbox.feature_effects(made, coef, self.columns_, names)

    def _fit_sparse(self, X, y, queries: Queries, weights):
        start = time.perf_counter()
        ids = queries.labels[queries.codes]
        model = RankRLS(weighting="items", tied_pairs=False, scoring=self.scoring_).fit(X, y, ids, weights)
        self.columns_, self.interactions_, self.feature_effects_ = None, [], []
        self.parts_ = [model]
        best = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
        self.cv_score_, self.cv_error_ = float(model.cv_scores_[best]), float(model.cv_errors_[best])
        self.cv_scores_, self.cv_predictions_ = np.array([self.cv_score_]), model.cv_predictions_
        entry = {"candidate": "linear", "score": self.cv_score_, "error": self.cv_error_, "weight": 1.0}
        self.leaderboard_ = [{**entry, "size": X.shape[1], "seconds": round(time.perf_counter() - start, 3)}]
        return self

    def predict(self, X, qid=None) -> np.ndarray:
        """Scores: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Items; all items of each query where the model uses ranks within the query (`relative`).
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None is one query. Not used with `relative=False`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "parts_")
        X, qid = checks.split_qid_column(as_frame(X), qid)
        if self.encoder_ is not None:
            X = check_array(self.encoder_.transform(X, qid=qid), dtype=_INPUT["dtype"])
        else:
            X = validate_data(self, X, reset=False, **_INPUT)
        if self.columns_ is None:
            return self.parts_[0].predict(X)
        queries = checks.check_queries(qid, X.shape[0])
        if sparse.issparse(X):
            raise TypeError("the model was fitted on dense rows: call X.toarray()")
        return self._scores(self.columns_.scores(X, queries, np.float64 if len(X) <= DOUBLE_ROWS else np.float32))

    def _scores(self, N: np.ndarray) -> np.ndarray:
        total = np.zeros(len(N))
        for part in self.parts_:
            total += part(N)
        return total

    def explain(self, x_a, x_b, X=None) -> Any:
        """Why one item is ranked above another: what each column adds to the difference of their scores.

        Both items are moved into one another along a straight line of scores, and the change of the model's score is
        attributed to the columns step by step; the parts sum to the difference.

        Parameters
        ----------
        x_a, x_b : array-like of shape (n_features,)
            The two items.
        X : array-like of shape (n_samples, n_features), default=None
            The other items of their query, which ranks within the query depend on.

        Returns
        -------
        explanation : dict
            "score_a", "score_b", "difference", and "columns": a list of dicts with "column", "a", "b" and "part",
            largest part first.
        """
        check_is_fitted(self, "parts_")
        if self.columns_ is None:
            raise ValueError("explain is for dense rows; the weights of a sparse model are parts_[0].coef_")
        if self.encoder_ is not None:
            raise ValueError("explain takes rows of numbers; this model was fitted on a table with text")
        pair = np.stack([np.asarray(x, dtype=np.float64).ravel() for x in (x_a, x_b)])
        rows = pair if X is None else np.concatenate([pair, np.asarray(X, dtype=np.float64)])
        rows = validate_data(self, rows, reset=False, **_INPUT)
        N = self.columns_.scores(rows, Queries.single(len(rows)), np.float32)[:2]
        return glassbox.explanation(self._scores, N, pair, self.columns_.source_, self._names())

    def _scores_of(self, X: Matrix, qid: Ids) -> np.ndarray:
        return self.predict(X, qid)

    def _checked_effort(self) -> Effort:
        checks.check_choice("effort", self.effort, tuple(EFFORTS))
        effort = EFFORTS[self.effort]
        if self.candidates is None:
            return effort
        names = [self.candidates] if isinstance(self.candidates, str) else list(self.candidates)
        if not names:
            raise ValueError("candidates is empty: name at least one, or None for those of the effort")
        for name in names:
            checks.check_choice("each of candidates", name, tuple(MAKE))
        needed = set(names).union(*(NEEDS.get(name, ()) for name in names))
        return Effort(**{**vars(effort), "candidates": tuple(name for name in MAKE if name in needed)})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


_INPUT: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": "allow-nan",
}


def _has_text(X: Matrix) -> bool:
    """Whether a frame has columns that are not numbers."""
    return any(np.asarray(X[name]).dtype.kind not in "iuf" for name in frames.names(X))


def folded(features: Map, coef: np.ndarray) -> tuple[Map, np.ndarray]:
    """The same scores in the form that is quickest to predict with."""
    return features.folded(coef) if hasattr(features, "folded") else (features, coef)


def _usable(scoring: Any, y: np.ndarray) -> Any:
    """The metric, or pairwise accuracy where the labels have no such metric."""
    metric = get_metric(scoring)
    if not metric.name.startswith("ndcg"):
        return scoring
    return scoring if y.min() >= 0 and y.max() < 50 and (y > 0).any() else "pairwise_accuracy"


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
