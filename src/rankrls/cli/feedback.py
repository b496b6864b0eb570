"""Files with feedback on documents: judgments, preferences and click logs, joined to rows of features."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..clicks import ClickLog, ClickRanker
from ..datasets import RankingData
from ..estimators import RankRLS
from ..estimators.pipelines import quietly, ranker_of, scaled
from . import learning
from .data import complete, doc_ids, table_cells
from .text import plural

QUERY, BETTER, WORSE = ("query", "qid", "query_id"), ("better", "winner"), ("worse", "loser")


@dataclass(frozen=True)
class Preferences:
    """Pairs of rows: the first belongs above the second."""

    pairs: np.ndarray  # (p, 2)
    margins: np.ndarray  # (p,) NaN where none is given
    weights: np.ndarray  # (p,)
    exact: np.ndarray  # (p,) bool

    def kinds(self) -> list[tuple[np.ndarray, bool]]:
        """Groups of pairs to add together, as indices, each with whether its pairs must hold exactly."""
        given = ~np.isnan(self.margins)
        parts = [(~self.exact & ~given, False), (~self.exact & given, False)]
        parts += [(self.exact & ~given, True), (self.exact & given, True)]
        return [(np.flatnonzero(rows), exact) for rows, exact in parts if rows.any()]

    def options(self, rows: np.ndarray) -> dict[str, Any]:
        margins = self.margins[rows]
        return {"margins": None if np.isnan(margins).any() else margins, "weights": self.weights[rows]}


def read_preferences(path: str, data: RankingData, args: Namespace) -> Preferences:
    """The pairs of a file, by query and document; their margin, weight and whether they must hold exactly."""
    cells = table_cells(path, args)
    query = _column(cells, QUERY, path, needed=data.qid is not None)
    ends = [_column(cells, names, path) for names in (BETTER, WORSE)]
    p = len(ends[0] or ())
    if not p:
        raise ValueError(f"{path} has no pairs")
    queries = ["1"] * len(data) if data.qid is None else [str(q) for q in data.qid]
    place = {key: i for i, key in enumerate(zip(queries, doc_ids(data).tolist(), strict=True))}
    if len(place) < len(data):
        raise ValueError(
            f"some documents occur twice in a query of the data, so it is not clear which rows {path} means"
        )
    pairs = np.empty((p, 2), dtype=np.intp)
    for side, documents in enumerate(ends):
        for i, key in enumerate(zip(query or ["1"] * p, documents or (), strict=True)):
            if key not in place:
                raise ValueError(f"{path}, pair {i + 1}: the data have no document {key[1]!r} in query {key[0]!r}")
            pairs[i, side] = place[key]
    margins, weights, exact = (_numbers(cells, name, p, path) for name in ("margin", "weight", "exact"))
    _check_agreement(pairs, margins, ends, path)
    return Preferences(pairs, margins, np.where(np.isnan(weights), 1.0, weights), np.nan_to_num(exact) != 0)


def _check_agreement(pairs: np.ndarray, margins: np.ndarray, ends: list[Any], path: str) -> None:
    """Raise an error if two pairs contradict each other."""
    said: dict[tuple[int, int], int] = {}
    for p, (i, j) in enumerate(pairs.tolist()):
        if margins[p] <= 0:
            continue
        if (j, i) in said:
            first = f"pair {p + 1} prefers {ends[0][p]!r} to {ends[1][p]!r}"
            raise ValueError(
                f"{path}: {first}, but pair {said[j, i] + 1} says the opposite: leave one of them out, or both"
            )
        said[i, j] = p


def read_log(path: str, args: Namespace) -> ClickLog:
    """A click log, with ids as text."""
    cells = table_cells(path, args)
    counts = {"position", "rank", "clicked", "clicks", "click", "impressions", "shown", "views"}
    table = {k: _numbers(cells, k, len(v), path) if k in counts else np.array(v) for k, v in cells.items()}
    for name in counts & table.keys():
        if np.isnan(table[name]).any():
            raise ValueError(f"{path}, row {int(np.argmax(np.isnan(table[name]))) + 1}: column {name!r} is empty")
    return ClickLog.of(table)


def fit(model: BaseEstimator, data: RankingData, args: Namespace) -> tuple[Any, list[str], dict[str, Any]]:
    """Fit the model to labels, preferences or clicks; also returns lines about them to print, and a record of them."""
    if args.clicks:
        return _fit_clicks(model, data, args)
    if args.propensities is not None:
        raise ValueError("--propensities needs --clicks")
    if not args.pairs:
        return learning.fit(model, scored(model, data, args)), [], {}
    wanted = read_preferences(args.pairs, data, args)
    ranker = ranker_of(model)
    if not isinstance(ranker, RankRLS):
        raise ValueError("--pairs needs --method rankrls or sparse, which keep the sums that pairs are added to")
    n = len(wanted.pairs)
    if _comparable(data):
        learning.fit(model, _only(data, ~np.isnan(data.y)))
        rest, X = wanted.kinds(), scaled(model, data.X, data.qid)
        how = "added to the labels"
    else:
        if wanted.exact.all():
            raise ValueError("every pair must hold exactly, and there are no labels: nothing is left to learn from")
        X = _before(model, data)
        soft = np.flatnonzero(~wanted.exact)
        margins = np.where(np.isnan(wanted.margins), 1.0, wanted.margins)[soft]
        ranker.fit_pairs(X, wanted.pairs[soft], margins, wanted.weights[soft])
        ranker.verbose, rest, how = False, [part for part in wanted.kinds() if part[1]], "without labels"
    with quietly(model):
        for rows, exact in rest:
            ranker.add_pairs(X, wanted.pairs[rows], **wanted.options(rows), exact=exact)
    exactly = f", {int(wanted.exact.sum()):,} of them exactly" if wanted.exact.any() else ""
    return model, [f"learned  {plural(n, 'pair')} {how}{exactly}"], {"pairs": n, "exact": int(wanted.exact.sum())}


def _fit_clicks(model: BaseEstimator, data: RankingData, args: Namespace) -> tuple[Any, list[str], dict[str, Any]]:
    """Fit the model to a click log."""
    if args.pairs or args.judgments:
        raise ValueError("--clicks cannot be combined with --pairs or --qrels: clicks replace labels")
    if not isinstance(ranker_of(model), RankRLS):
        raise ValueError("--clicks needs --method rankrls or sparse")
    if args.propensities is not None and args.click_method not in ("propensities", "expected"):
        raise ValueError("--propensities needs --click-method propensities or expected")
    complete(data)
    log = read_log(args.clicks, args)
    ranker = ClickRanker(model, method=args.click_method, propensities=args.propensities)
    qid = np.full(len(data), "1", dtype=object) if data.qid is None else data.qid
    ranker.fit(data.X, log, qid=qid, doc_ids=doc_ids(data))
    ranker_of(ranker.ranker_).verbose = False
    learning.name_features(ranker.ranker_, data)
    n = ranker.n_unmatched_
    lines = [f"clicks   {log}", *([f"left out {plural(n, 'row')} of the log without a row of data"] if n else [])]
    found = {"log": len(log), "clicks": float(log.clicks.sum()), "unmatched": n, "method": args.click_method}
    for name, what in (("position_effects_", "effect"), ("propensities_", "chance of being looked at")):
        values = getattr(ranker, name, None)
        if values is not None:
            lines.append(f"position {what}: " + ", ".join(f"{value:.3g}" for value in values[:10]))
            found[name.rstrip("_")] = values.tolist()
    return ranker.ranker_, lines, found


def scored(model: BaseEstimator, data: RankingData, args: Namespace) -> RankingData:
    """The rows with a label from --qrels, if the method can learn only from those."""
    if not args.judgments or getattr(ranker_of(model), "_skips_unscored", False):
        return data
    return _only(data, ~np.isnan(data.y))


def _only(data: RankingData, keep: np.ndarray) -> RankingData:
    if keep.all():
        return data
    some = lambda values: None if values is None else values[keep]
    parts = {"qid": some(data.qid), "comments": some(data.comments), "documents": some(data.documents)}
    return RankingData(data.X[keep], data.y[keep], feature_names=data.feature_names, skipped=data.skipped, **parts)


def _comparable(data: RankingData) -> bool:
    """True if some query has two different labels."""
    known = ~np.isnan(data.y)
    qid = np.zeros(len(data)) if data.qid is None else data.qid
    seen: dict[Any, float] = {}
    return any(seen.setdefault(q, y) != y for q, y in zip(qid[known].tolist(), data.y[known].tolist(), strict=True))


def _before(model: BaseEstimator, data: RankingData) -> Any:
    """The rows after the steps before the ranker, which are fitted to them without labels."""
    complete(data)
    learning.name_features(model, data)
    if model is ranker_of(model):
        return data.X
    model[:-1].fit(data.X)
    return scaled(model, data.X, data.qid)


def _column(cells: dict[str, list[str]], names: Sequence[str], path: str, *, needed: bool = True) -> list[str] | None:
    found = next((name for name in names if name in cells), None)
    if found is None and needed:
        raise ValueError(f"{path} has no column {names[0]!r} (or {', '.join(names[1:])}); it has {', '.join(cells)}")
    return None if found is None else [str(value).strip() for value in cells[found]]


def _numbers(cells: dict[str, list[Any]], name: str, n: int, path: str) -> np.ndarray:
    """(n,) a column of numbers, or of true and false; NaN where a cell is empty or missing."""
    values = np.full(n, np.nan)
    for i, cell in enumerate(cells.get(name, ())):
        text = "" if cell is None else str(cell).strip().lower()
        try:
            values[i] = {"": np.nan, "true": 1.0, "false": 0.0}[text] if text in ("", "true", "false") else float(text)
        except ValueError:
            raise ValueError(f"{path}, row {i + 1}: {cell!r} in column {name!r} is not a number") from None
    return values
