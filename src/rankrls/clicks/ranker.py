"""ClickRanker: learning to rank from clicks, corrected for positions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..core.symmetric import per_deviation
from ..estimators import RankRLS
from ..estimators.pipelines import predicted, ranker_of, scaled, scalers_of
from ..problems.solved import mean_eigenvalue
from ..system import frames
from ..system.memory import check_memory
from ..system.types import Matrix
from .judgments import rows_of
from .log import ClickLog
from .propensities import check_propensities, propensities

METHODS = ("positions", "propensities", "expected", "naive")
TIE_BITS = 40
LEAST = 0.05  # lower bound of propensities
ALPHA_RANGE, N_ALPHAS = (-7.0, 4.0), 23  # decades around the mean eigenvalue: wide enough never to be extended
FREE = 100.0  # scale of the columns of positions, so that their weights are hardly penalised


class ClickRanker(BaseEstimator):
    """Learn to rank from a click log.

    Documents at the top are clicked because they are at the top. `method` corrects for this:

    - "positions": the click rate is modelled as f(x) + b_k, a function of the features plus an effect of position k,
      in one closed form; scores leave b out.
    - "propensities": clicks at position k count 1 / theta_k, where theta_k is the chance that the position is looked
      at.
    - "expected": clicks over expected clicks, sum of clicks / sum of impressions * theta_k, for each document.
    - "naive": the plain click rate.

    Parameters
    ----------
    ranker : RankRLS, another ranker, or Pipeline that ends in one, default=None
        The ranker to fit; None: `RankRLS()`. "positions" needs a linear RankRLS; other methods take any ranker with
        `sample_weight`, such as `AutoRanker`. Steps of a pipeline before it, such as a `TableEncoder`, are fitted to
        the documents shown; as labels they get clicks relative to those expected at their positions.
    method : {"positions", "propensities", "expected", "naive"}, default="positions"
        How to correct for positions.
    propensities : array-like of shape (n_positions,), default=None
        theta, for "propensities" and "expected". None estimates it: from documents that were shown at several positions
        if there are any, else from the additive model of "positions", a linear one whatever the ranker.

    Attributes
    ----------
    ranker_ : RankRLS or Pipeline
        The fitted ranker of the features, which you can save, export or explain.
    position_effects_ : ndarray of shape (n_positions,)
        b, relative to the first position (only with "positions").
    propensities_ : ndarray of shape (n_positions,)
        theta (only with "propensities" and "expected").
    n_unmatched_ : int
        Rows of the log whose document is not in X.

    Examples
    --------
    >>> from rankrls import clicks
    >>> from rankrls.datasets import make_search
    >>> data = make_search(100, random_state=0)
    >>> log = clicks.simulate(data.y, data.qid, scores=-data.X[:, 0], random_state=0)
    >>> model = clicks.ClickRanker().fit(data.X, log, qid=data.qid)
    >>> bool(model.position_effects_[9] < model.position_effects_[1] < model.position_effects_[0])
    True
    >>> model.predict(data.X).shape == data.y.shape
    True
    """

    def __init__(self, ranker=None, *, method="positions", propensities=None):
        self.ranker = ranker
        self.method = method
        self.propensities = propensities

    def fit(self, X, log, qid=None, doc_ids=None):
        """Learn from the rows of a log whose documents have features.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Documents.
        log : ClickLog, or a table that `ClickLog.of` reads
            What was shown and clicked.
        qid : array-like of shape (n_samples,), default=None
            Query of each row of X, as in the log. None: all rows are one query.
        doc_ids : array-like of shape (n_samples,), default=None
            Document of each row of X, as in the log; None: row numbers from 0, as in `simulate`.

        Returns
        -------
        self
        """
        checks.check_choice("method", self.method, METHODS)
        log = log if isinstance(log, ClickLog) else ClickLog.of(log)
        shown = _Shown.of(frames.as_frame(X), log, qid, doc_ids)
        given = RankRLS() if self.ranker is None else self.ranker
        ranker, before = ranker_of(given), [clone(step) for step in scalers_of(given)]
        for step in before:
            shown = shown.through(step)
        for name in ("position_effects_", "propensities_"):
            self.__dict__.pop(name, None)
        if self.method == "positions":
            self.ranker_, self.position_effects_ = _additive(ranker, shown)
        elif self.method == "naive":
            self.ranker_ = shown.fitted(ranker, np.ones(int(log.position.max())), inverse=False)
        else:
            self.propensities_ = self._propensities(log, ranker, shown)
            self.ranker_ = shown.fitted(ranker, self.propensities_, inverse=self.method == "propensities")
        if before:
            names = [name for name, _ in given.steps]
            self.ranker_ = Pipeline(list(zip(names, [*before, self.ranker_], strict=True)))
        self.n_unmatched_ = len(log) - len(shown.log)
        return self

    def _propensities(self, log: ClickLog, ranker: BaseEstimator, shown: _Shown) -> np.ndarray:
        if self.propensities is not None:
            return check_propensities(self.propensities, log)
        try:
            theta = propensities(log)
        except ValueError:
            theta = np.full(int(log.position.max()), np.nan)
        if np.isnan(theta[log.position - 1]).any():
            theta = _from_effects(_additive(ranker if _is_linear(ranker) else RankRLS(), shown)[1], shown.log)
        return theta

    def predict(self, X, qid=None):
        """Scores of documents, without effects of positions.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        qid : array-like of shape (n_samples,), default=None
            Query of each row; needed only by an encoder with columns relative to the query.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "ranker_")
        return predicted(self.ranker_, X, qid)

    def rank(self, X, qid=None):
        """Position of each row in the ranking of its query, 1 for the best.

        Parameters
        ----------
        X, qid
            As in `RankRLS.rank`.

        Returns
        -------
        ranks : ndarray of int, shape (n_samples,)
        """
        check_is_fitted(self, "ranker_")
        return ranker_of(self.ranker_).rank(scaled(self.ranker_, X, qid), qid)

    def score(self, X, y, qid=None):
        """The `scoring` metric of the ranker on true labels.

        Parameters
        ----------
        X, y, qid
            As in `RankRLS.score`.

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "ranker_")
        return ranker_of(self.ranker_).score(scaled(self.ranker_, X, qid), y, qid=qid)


@dataclass(frozen=True)
class _Shown:
    """The rows of a log whose documents are rows of X."""

    X: Any
    log: ClickLog
    row: np.ndarray  # (n,) row of X

    @classmethod
    def of(cls, X: Any, log: ClickLog, qid: Any, doc_ids: Any) -> _Shown:
        m = X.shape[0] if hasattr(X, "shape") else len(X)
        row = rows_of(log.query, log.document, qid, doc_ids, m)
        found = row >= 0
        if not found.any():
            raise ValueError(
                f"none of the {len(log)} rows of the log has a document in X: the log has query {log.query[0]!r} and "
                f"document {log.document[0]!r}; do qid and doc_ids use the same ids?"
            )
        if not log.clicks[found].any():
            raise ValueError(
                f"none of the {int(log.impressions[found].sum()):,} impressions of documents in X was clicked: there "
                "is nothing to learn from"
            )
        columns = (log.query, log.document, log.position, log.clicks, log.impressions)
        return cls(X, ClickLog(*(column[found] for column in columns)), row[found])

    def features(self, rows: np.ndarray) -> Any:
        return frames.rows(self.X if hasattr(self.X, "shape") else np.asarray(self.X), rows)

    def through(self, step: Any) -> _Shown:
        """The documents shown, one row each, transformed by a step that is fitted to them."""
        rows, code = np.unique(self.row, return_inverse=True)
        log, k = self.log, self.log.position
        rate = np.bincount(k, weights=log.clicks) / np.maximum(np.bincount(k, weights=log.impressions), 1)
        expected = np.bincount(code, weights=log.impressions * rate[k])
        y = np.bincount(code, weights=log.clicks) / np.where(expected > 0, expected, 1.0)
        qid = log.query[np.unique(code, return_index=True)[1]]
        more = {"qid": qid} if "qid" in inspect.signature(step.fit).parameters else {}
        return replace(self, X=step.fit_transform(self.features(rows), y, **more), row=code)

    def fitted(self, ranker: object, theta: np.ndarray, *, inverse: bool) -> Any:
        """The ranker fitted to one row per document: clicks per (expected) impression, or inversely weighted clicks."""
        rows, code = np.unique(self.row, return_inverse=True)
        first = np.unique(code, return_index=True)[1]
        at = theta[self.log.position - 1]
        clicks = np.bincount(code, weights=self.log.clicks / at if inverse else self.log.clicks)
        shown = np.bincount(code, weights=self.log.impressions if inverse else self.log.impressions * at)
        return clone(ranker).fit(
            self.features(rows), _tied(clicks / shown), qid=self.log.query[first], sample_weight=shown / shown.mean()
        )


def _tied(rates: np.ndarray) -> np.ndarray:
    """Rates to 40 bits: those that are equal but for the rounding of different sums of propensities tie."""
    share, power = np.frexp(rates)
    return np.ldexp(np.rint(np.ldexp(share, TIE_BITS)), power - TIE_BITS)


def _additive(ranker: RankRLS, shown: _Shown) -> tuple[RankRLS, np.ndarray]:
    """Fit f(x) + b_k with columns of positions, then f alone to the clicks minus b, which gives the same f.

    (Minimising a sum of squares over f and b is the same as minimising over f at the best b.)
    """
    if not _is_linear(ranker):
        raise ValueError(
            f'method="positions" needs a linear RankRLS, got {ranker}: use method="propensities" or "expected" with it'
        )
    log = shown.log
    n = int(log.position.max())
    check_memory(3 * 8 * len(log) * n, f"a column for each of {n:,} positions", "leave out rows at low positions")
    P = FREE * (log.position[:, None] == np.arange(1, n + 1))
    fit = {"qid": log.query, "sample_weight": log.impressions / log.impressions.mean()}
    ranker = clone(ranker).set_params(tied_pairs=True)
    signs = checks.check_signs(ranker.positive, shown.X.shape[1], frames.names(shown.X) or None)
    free = {"scale": None, "positive": False if signs is None else {j: int(s) for j, s in enumerate(signs) if s}}
    X, alphas = _in_deviations(ranker, shown, fit)
    both = clone(ranker).set_params(**free, alphas=alphas).fit(np.hstack([X, P]), log.rate, **fit)
    effects = FREE * both.coef_[-n:]
    rest = log.rate - effects[log.position - 1]
    alone = clone(ranker).set_params(alpha=both.alpha_)
    alone.fit(shown.features(shown.row), rest, **fit)
    return alone, effects - effects[0]


def _is_linear(ranker: object) -> bool:
    return isinstance(ranker, RankRLS) and ranker.kernel is None


def _in_deviations(ranker: RankRLS, shown: _Shown, fit: dict[str, np.ndarray]) -> tuple[np.ndarray, Any]:
    """Features in the units in which the ranker penalises them, and the alphas to choose from.

    Columns of positions are not rescaled; a grid fitted to them would be too high for the features.
    """
    X = shown.features(shown.row)
    alone = clone(ranker).set_params(alpha=1.0).fit(X, shown.log.rate, **fit)
    W = None if ranker.scale is None else per_deviation(alone.scale_)
    alphas, sums = ranker.alphas, alone.statistics_
    if alphas is None and sums is not None:
        alphas = mean_eigenvalue(sums, W) * np.logspace(*ALPHA_RANGE, N_ALPHAS)
    return _matrix(X) if W is None else _matrix(X) * W, alphas


def _matrix(X: Matrix) -> np.ndarray:
    if sparse.issparse(X):
        check_memory(2 * 8 * X.shape[0] * X.shape[1], f"{X.shape[1]} features beside positions", "use fewer features")
        return np.asarray(X.toarray())  # type: ignore[union-attr]
    return np.asarray(X, dtype=np.float64)


def _from_effects(effects: np.ndarray, log: ClickLog) -> np.ndarray:
    """The click rate of a document of average relevance at each position, relative to the best position."""
    mean = float(log.clicks.sum() / log.impressions.sum())
    shares = np.bincount(log.position, weights=log.impressions)[1:] / log.impressions.sum()
    at = mean + effects - shares @ effects
    return np.clip(at / at.max(), LEAST, 1.0) if at.max() > 0 else np.ones(len(effects))
