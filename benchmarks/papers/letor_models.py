"""The rankers of benchmarks.papers.letor: each chooses its parameters by MAP on the validation set of a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge

from benchmarks.papers.letor_sets import Fold
from rankrls import RankRLS
from rankrls.datasets import RankingData
from rankrls.kernels import Gaussian
from rankrls.metrics import get_metric

Predict = Callable[[np.ndarray], np.ndarray]
ALPHAS = 2.0 ** np.arange(-15, 31)  # the paper does not give its grid
ROUNDS, PATIENCE = 500, 50  # of boosting, and without gain before it stops
LIGHTGBM = list(product((4, 8, 16), (20, 100)))  # num_leaves, min_data_in_leaf
XGBOOST = list(product((2, 4, 6), ("topk", "mean")))  # max_depth, lambdarank_pair_method
RATE = 0.05


@dataclass(frozen=True)
class Choice:
    """What the validation set chose, and how to train with it."""

    text: str
    fit: Callable[[RankingData], Predict]


Ranker = Callable[[Fold], Choice]


def by_validation(**options: Any) -> Ranker:
    """RankRLS; the validation set is held out of a fit to all rows, which is exact and takes one fit."""

    def choose(fold: Fold) -> Choice:
        rows = np.arange(len(fold.both))
        cv = [(rows[: len(fold.train)], rows[len(fold.train) :])]
        chosen = _fitted(RankRLS(scoring="map", cv=cv, random_state=0, **options), fold.both)
        fixed = clone(chosen).set_params(alpha=chosen.alpha_, tied_pairs=chosen.tied_pairs_)
        if chosen.kernel is not None:
            fixed.set_params(kernel=chosen.kernel_)
        return Choice(_text(chosen), lambda part: _fitted(clone(fixed), part).predict)

    return choose


def by_leave_query_out(**options: Any) -> Ranker:
    """RankRLS, by leave-query-out of whatever it is trained on; the validation set is not needed."""
    model = RankRLS(scoring="map", random_state=0, **options)
    return lambda fold: Choice("", lambda part: _fitted(clone(model), part).predict)


def ridge_without_intercept(fold: Fold) -> Choice:
    """RLS as a linear kernel gives it, without an intercept."""

    def fit(part: RankingData, alpha: float) -> Predict:
        return Ridge(alpha, fit_intercept=False).fit(part.X, part.y).predict

    scores = [_judged(fold, fit(fold.train, a)(fold.validation.X)) for a in ALPHAS]
    alpha = float(ALPHAS[np.argmax(scores)])
    return Choice(f"alpha {alpha:.2g}", lambda part: fit(part, alpha))


def _fitted(model: RankRLS, part: RankingData) -> RankRLS:
    return model.fit(part.X, part.y, qid=part.qid)


def _text(model: RankRLS) -> str:
    ties = "" if model.tied_pairs != "auto" else ", ties in" if model.tied_pairs_ else ", ties out"
    inner = None if model.kernel is None else getattr(model.kernel_, "kernel", model.kernel_)  # of scaled columns
    width = "" if inner is None else f", gamma {inner.gamma:.2g}"
    edge = "" if model.alphas_.min() < model.alpha_ < model.alphas_.max() else " (end of the grid)"
    return f"alpha {model.alpha_:.2g}{edge}{ties}{width}"


def lightgbm(fold: Fold) -> Choice:
    """LambdaRank; rounds by early stopping, and the grid, on validation MAP."""
    import lightgbm as gbm

    def data(part: RankingData) -> gbm.Dataset:
        return gbm.Dataset(part.X, part.y, group=_sizes(part), free_raw_data=False)

    def settings(leaves: int, rows: int) -> dict[str, Any]:
        common = {"objective": "lambdarank", "metric": "None", "learning_rate": RATE, "num_threads": 1}
        return {**common, "num_leaves": leaves, "min_data_in_leaf": rows, "seed": 0, "verbosity": -1}

    def judge(scores: np.ndarray, _: gbm.Dataset) -> tuple[str, float, bool]:
        return "MAP", _judged(fold, scores), True

    def run(leaves: int, rows: int) -> tuple[float, int]:
        stop = gbm.early_stopping(PATIENCE, verbose=False)
        train, validation = data(fold.train), data(fold.validation)
        model = gbm.train(settings(leaves, rows), train, ROUNDS, [validation], feval=judge, callbacks=[stop])
        return model.best_score["valid_0"]["MAP"], model.best_iteration

    runs = [run(*point) for point in LIGHTGBM]
    best = int(np.argmax([score for score, _ in runs]))
    (leaves, rows), (_, rounds) = LIGHTGBM[best], runs[best]
    text = f"{leaves} leaves of {rows} rows, {rounds} rounds"
    return Choice(text, lambda part: gbm.train(settings(leaves, rows), data(part), rounds).predict)


def xgboost(fold: Fold) -> Choice:
    """rank:ndcg; rounds by early stopping, and the grid, on validation MAP."""
    import xgboost as xgb

    def data(part: RankingData) -> xgb.DMatrix:
        return xgb.DMatrix(part.X, part.y, group=_sizes(part))

    def settings(depth: int, pairs: str) -> dict[str, Any]:
        common = {"objective": "rank:ndcg", "disable_default_eval_metric": True, "eta": RATE, "nthread": 1}
        return {**common, "max_depth": depth, "lambdarank_pair_method": pairs, "seed": 0}

    def judge(scores: np.ndarray, _: xgb.DMatrix) -> tuple[str, float]:
        return "MAP", _judged(fold, scores)

    train, validation = data(fold.train), data(fold.validation)

    def run(depth: int, pairs: str) -> tuple[float, int]:
        stop = xgb.callback.EarlyStopping(rounds=PATIENCE, metric_name="MAP", maximize=True)
        judged = {"evals": [(validation, "valid")], "custom_metric": judge, "verbose_eval": False}
        model = xgb.train(settings(depth, pairs), train, num_boost_round=ROUNDS, callbacks=[stop], **judged)
        return model.best_score, model.best_iteration + 1

    runs = [run(*point) for point in XGBOOST]
    best = int(np.argmax([score for score, _ in runs]))
    (depth, pairs), (_, rounds) = XGBOOST[best], runs[best]

    def fit(part: RankingData) -> Predict:
        model = xgb.train(settings(depth, pairs), data(part), num_boost_round=rounds)
        return lambda X: model.predict(xgb.DMatrix(X))

    return Choice(f"depth {depth}, pairs {pairs}, {rounds} rounds", fit)


def _judged(fold: Fold, scores: np.ndarray) -> float:
    """Validation MAP as RankRLS computes it: small trees tie many rows, and file order reveals relevance."""
    return get_metric("map")(fold.validation.y, scores, fold.validation.qid)


def _sizes(part: RankingData) -> np.ndarray:
    """Lengths of the queries, whose rows are adjacent in LETOR files."""
    starts = np.flatnonzero(np.append(True, part.qid[1:] != part.qid[:-1]))
    if len(starts) != len(np.unique(part.qid)):
        raise SystemExit("the rows of a query must stand together: sort the file by query")
    return np.diff(starts, append=len(part))


PAPERS: dict[str, Ranker] = {
    "RankRLS": by_validation(weighting="pairs", tied_pairs="auto", alphas=ALPHAS, scale=None),
    "RLS": by_validation(regression=1.0, alphas=ALPHAS, scale=None),
}
OURS: dict[str, Ranker] = {
    "RankRLS, defaults": by_validation(),
    "RankRLS, leave-query-out": by_leave_query_out(),
    "RankRLS, Gaussian": by_validation(kernel=Gaussian(gamma="auto"), basis=500),
}
TREES: dict[str, Ranker] = {"LightGBM": lightgbm, "XGBoost": xgboost}
