"""Fusion: non-negative weights of retrievers, learned from judgments in closed form."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..clicks.judgments import Joined, Judgments, read_judgments
from ..core.queries import Queries
from ..estimators import RankRLS
from ..metrics import get_metric
from ..system.parallel import one_thread_each
from ..system.seeds import seed_of
from ..system.types import Seed
from .runs import NORMALISATIONS, Runs


@dataclass(frozen=True)
class Row:
    """One way to rank, and its quality.

    Examples
    --------
    >>> print(Row("learned", 0.7, 0.01))
    learned                        0.7000 ± 0.0100
    """

    name: str
    score: float
    error: float  # standard error over queries

    def __str__(self) -> str:
        return f"{self.name:30} {self.score:.4f} ± {self.error:.4f}"


class Fusion(BaseEstimator):
    """Learn weights for the scores of several retrievers: hybrid search from a few hundred judgments.

    Scores are normalised within each query, and non-negative weights are learned by pairwise least squares, with alpha
    chosen by exact leave-query-out. The result includes a comparison with each retriever alone, equal weights and
    reciprocal rank fusion, in which learned weights are judged on held-out queries.

    Parameters
    ----------
    normalise : {"minmax", "zscore"}, default="minmax"
        How scores are normalised within a query.
    scoring : str, default="ndcg@10"
        The metric that chooses alpha and is shown in the table.
    alpha : float or "auto", default="auto"
        Regularisation.

    Attributes
    ----------
    weights_ : ndarray of shape (n_retrievers,)
        Non-negative; they add up to 1.
    weight_errors_ : ndarray of shape (n_retrievers,)
        Standard errors of the weights over queries (jackknife).
    names_ : list of str
        The retrievers.
    table_ : list of Row
        The metric of every way to rank, best first.
    ranker_ : RankRLS
        The model of normalised scores.
    depth_ : int
        The largest number of documents that a retriever returned for a query.
    n_judged_, n_unjudged_ : int
        Documents of the runs with a judgment, and without one (which count as irrelevant).

    Examples
    --------
    >>> from rankrls import fusion
    >>> runs, judgments = fusion.make_runs(50, random_state=0)
    >>> model = fusion.Fusion().fit(runs, judgments)
    >>> dict(zip(model.names_, model.weights_.round(1).tolist()))
    {'title': 0.3, 'body': 0.2, 'dense': 0.5}
    >>> model.table_[0].name
    'learned weights, held out'
    """

    def __init__(self, *, normalise="minmax", scoring="ndcg@10", alpha="auto"):
        self.normalise = normalise
        self.scoring = scoring
        self.alpha = alpha

    def fit(self, runs, judgments):
        """Learn the weights.

        Parameters
        ----------
        runs : Runs, or dict that `Runs.of` takes
            What the retrievers returned.
        judgments : Judgments, or anything `rankrls.clicks.read_judgments` reads
            Ratings of documents. Documents without one, or with a negative one, count as irrelevant.

        Returns
        -------
        self
        """
        checks.check_choice("normalise", self.normalise, NORMALISATIONS)
        runs = runs if isinstance(runs, Runs) else Runs.of(runs)
        runs.check_overlap()
        judged = judgments if isinstance(judgments, Judgments) else read_judgments(judgments)
        runs = _judged_queries(runs, judged)
        joined = judged.join(runs.query, runs.document)
        y = np.maximum(np.nan_to_num(joined.y), 0.0)
        _check_judged(y, runs, joined)
        qid, S = runs.query, runs.normalised(self.normalise)
        ranker = RankRLS(self.alpha, scale=None, positive=True, scoring=self.scoring).fit(S, y, qid=qid)
        if not ranker.coef_.any():
            raise ValueError(
                "no retriever ranks relevant documents above others, so every weight is zero: do the judgments belong "
                "to these runs?"
            )
        held_out = RankRLS(scale=None, alphas=[ranker.alpha_], positive=True, scoring=self.scoring).fit(S, y, qid=qid)
        self.names_, self.depth_ = runs.names, runs.depth
        self.n_judged_, self.n_unjudged_ = joined.n_judged, joined.n_unjudged
        self.ranker_, self.weights_ = ranker, ranker.coef_ / ranker.coef_.sum()
        self.weight_errors_ = _jackknife(S, y, qid, ranker.alpha_)
        self.table_ = self._table(runs, S, y, held_out.cv_predictions_)
        return self

    def _table(self, runs: Runs, S: np.ndarray, y: np.ndarray, held_out: np.ndarray) -> list[Row]:
        metric = get_metric(self.scoring)
        ways = {f"{name} alone": s for name, s in zip(runs.names, S.T, strict=True)}
        ways |= {"equal weights": S.mean(axis=1), "reciprocal rank fusion": runs.reciprocal_ranks()}
        ways["learned weights, held out"] = held_out
        rows = []
        for name, scores in ways.items():
            values = metric.per_query(y, scores, runs.query)
            values = values[~np.isnan(values)]
            error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
            rows.append(Row(name, float(values.mean()), error))
        return sorted(rows, key=lambda row: -row.score if metric.greater_is_better else row.score)

    def predict(self, runs):
        """(m,) fused scores of the documents of runs of the same retrievers.

        Parameters
        ----------
        runs : Runs, or dict that `Runs.of` takes

        Returns
        -------
        scores : ndarray of shape (m,)
        """
        check_is_fitted(self, "weights_")
        runs = runs if isinstance(runs, Runs) else Runs.of(runs)
        if sorted(runs.names) != sorted(self.names_):
            raise ValueError(f"the weights are for {', '.join(self.names_)}, but got runs of {', '.join(runs.names)}")
        runs = runs.only(self.names_)
        return runs.normalised(self.normalise) @ self.weights_

    def __str__(self) -> str:
        if not hasattr(self, "weights_"):
            return repr(self)
        parts = zip(self.names_, self.weights_, self.weight_errors_, strict=True)
        lines = [f"{name:30} {weight:.3f} ± {error:.3f}" for name, weight, error in parts]
        return "\n".join(["weights", *lines, "", self.scoring, *map(str, self.table_)])


def _judged_queries(runs: Runs, judged: Judgments) -> Runs:
    keep = np.isin(runs.query, judged.query)
    if not keep.any():
        raise ValueError(
            f"no query of the runs has a judgment: the runs have query {str(runs.query[0])!r}, the judgments "
            f"{str(judged.query[0])!r}"
        )
    return Runs(runs.names, runs.query[keep], runs.document[keep], runs.scores[keep])


def _check_judged(y: np.ndarray, runs: Runs, joined: Joined) -> None:
    """Raise an error unless two queries have documents of different ratings: weights are judged on held-out queries."""
    if not joined.n_judged:
        raise ValueError(
            f"no document of the runs has a judgment: they have document {str(runs.document[0])!r} of query "
            f"{str(runs.query[0])!r}; are documents named alike in both?"
        )
    queries = runs.queries
    n = sum(len(np.unique(y[queries.rows(q)])) > 1 for q in range(len(queries)))
    if n < 2:
        raise ValueError(
            f"only {n} of {len(queries)} judged queries {'has' if n == 1 else 'have'} documents of different ratings "
            "in the runs: weights need at least two, and about 30 to be reliable"
        )


def _jackknife(S: np.ndarray, y: np.ndarray, qid: np.ndarray, alpha: float) -> np.ndarray:
    """Standard errors of the weights: subtracts each query from the sums in turn."""
    whole, queries = RankRLS(alpha, scale=None, positive=True).fit(S, y, qid=qid), Queries.of(qid)
    parts = [queries.rows(q) for q in range(len(queries))]
    parts = [rows for rows in parts if y[rows].min() < y[rows].max()]  # other queries have no pair
    if len(parts) < 2:
        return np.full(S.shape[1], np.nan)
    found = []
    with one_thread_each:  # sums of a few columns
        for rows in parts:
            coef = copy(whole).forget(S[rows], y[rows], qid=qid[rows]).coef_
            found.append(coef / coef.sum() if coef.any() else coef)
    n = len(found)
    return np.sqrt((n - 1) / n * ((found - np.mean(found, axis=0)) ** 2).sum(axis=0))


def make_runs(n_queries: int = 100, *, top: int = 20, random_state: Seed = None) -> tuple[Runs, Judgments]:
    """Runs of three retrievers on generated documents, and judgments of all of them.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries, with 40 documents each.
    top : int, default=20
        Documents each retriever returns.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    runs : Runs
        "title", "body" and "dense", each on a different scale.
    judgments : Judgments

    Examples
    --------
    >>> from rankrls import fusion
    >>> fusion.make_runs(10, random_state=0)[0].names
    ['title', 'body', 'dense']
    """
    rng = np.random.default_rng(seed_of(random_state))
    rows: dict[str, list[Any]] = {"title": [], "body": [], "dense": []}
    query, document, rating = [], [], []
    for q in range(n_queries):
        relevance = rng.normal(size=40)
        signals = {"title": (1.2, 5.0, 10.0), "body": (1.6, 8.0, 20.0), "dense": (0.8, 0.1, 0.6)}
        for name, (noise, scale, shift) in signals.items():
            s = shift + scale * (relevance + noise * rng.normal(size=40))
            rows[name] += [(f"q{q}", f"d{i}", float(s[i])) for i in np.argsort(-s)[:top]]
        query += [f"q{q}"] * 40
        document += [f"d{i}" for i in range(40)]
        rating += np.clip(np.floor(relevance + 0.5), 0, 2).tolist()
    return Runs.of(rows), Judgments(np.array(query), np.array(document), np.array(rating))
