"""What a reader of the report wants to know first: which model is better, what is suspicious, which features matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..core.queries import Queries
from ..estimators.curve import curve_of
from ..estimators.pipelines import ranker_of, scaled, scalers_of
from ..metrics import get_metric
from . import page
from .entries import Entry, JudgedEntry
from .evaluate import p_value
from .page import Html, join, name, tag
from .text import number, plural
from .worst import linear_model

SIGNIFICANT = 0.05
CONSTANT = 1e-9  # spread within queries, in units of the values, of a column that is constant there up to rounding
SAMPLE = 20_000  # rows from which the size of a contribution is estimated
TOP_FEATURES = 12
UNSCALED = 100.0  # ratio of the largest to the smallest spread from which on columns should be scaled


def larger_is_better(metric: str) -> bool:
    return get_metric(metric).greater_is_better


def equals(p: str) -> str:
    """`= 0.03` or `< 0.0001`, to follow the letter p."""
    return p.replace("<", "< ") if p.startswith("<") else f"= {p}"


def verdict(entries: Sequence[Entry], judged: JudgedEntry, main: str, found: list[dict[str, Any]]) -> Html:
    """The main metric in words, and what should be looked into before anybody relies on it."""
    first = entries[0].name
    lines = [_against(entry.name, first, main, one) for entry, one in zip(entries[1:], found[1:], strict=True)]
    if not lines:
        mean, error = found[0]["mean"][0], found[0]["standard_error"][0]
        lines = [tag("p", name(first), f" reaches {main} {number(mean)} ± {number(error)}.", class_="verdict")]
    notes = [tag("li", name(entry.name), f": {note}") for entry in entries for note in warnings_of(entry, judged)]
    return join(*lines, tag("ul", *notes, class_="warnings") if notes else Html(""))


def _against(other: str, first: str, main: str, one: dict[str, Any]) -> Html:
    d, p = one["difference"], equals(p_value(one["p"]))
    counts = f"higher on {plural(one['better'], 'query')}, lower on {one['worse']:,}"
    words = f": {d:+.4f} in {main} (p {p}), {counts}."
    if one["p"] < SIGNIFICANT:
        better = "better" if (d > 0) == larger_is_better(main) else "worse"
        return tag("p", name(other), f" is {better} than ", name(first), words, class_="verdict")
    return tag("p", name(other), " and ", name(first), " cannot be told apart", words, class_="verdict")


def warnings_of(entry: Entry, judged: JudgedEntry) -> list[str]:
    """What looks wrong with a model: alpha at an end of its grid, columns of very different scale, nothing learned."""
    if entry.model is None:
        return []
    found, curve, ranker = [], curve_of(entry.model), ranker_of(entry.model)
    if curve is not None and curve.over == "alpha" and len(curve.values) > 1:
        ends = {int(np.argmin(curve.values)): "smallest", int(np.argmax(curve.values)): "largest"}
        if curve.chosen in ends and np.ptp(curve.scores) > 0:
            found.append(
                f"the chosen alpha, {curve.values[curve.chosen]:.3g}, is the {ends[curve.chosen]} of its grid: "
                "train again with a wider --alphas"
            )
        if curve.errors is not None and np.ptp(curve.scores) < 1e-3 and abs(curve.score - 0.5) < 0.02:
            found.append("held-out scores stay at 0.5 for every alpha: nothing was learned")
    if getattr(ranker, "scale", None) is None and not scalers_of(entry.model):
        features = FeatureSummary.of(entry, judged)
        spread = features.deviation[features.deviation > CONSTANT * features.size]
        if len(spread) and spread.max() > UNSCALED * spread.min():
            found.append(
                f"columns differ in scale by a factor of {spread.max() / spread.min():,.0f} and the penalty sees it: "
                "train with --scale auto"
            )
    return found


# ---------------------------------------------------------------- features


@dataclass(frozen=True)
class FeatureSummary:
    """How much each feature of a linear model moves scores within queries."""

    names: Sequence[str]
    weights: np.ndarray  # (n,) of the features as the ranker sees them
    deviation: np.ndarray  # (n,) their standard deviation within queries
    size: np.ndarray  # (n,) their root mean square

    @classmethod
    def of(cls, entry: Entry, judged: JudgedEntry) -> FeatureSummary:
        """Spread from whole queries of up to `SAMPLE` rows, weights of zero where the model is not linear."""
        take = judged.queries.codes < np.searchsorted(np.cumsum(judged.queries.sizes), SAMPLE, side="right") + 1
        rows = np.flatnonzero(judged.rows)[take]
        qid = None if entry.data.qid is None else entry.data.qid[rows]
        Z = scaled(entry.model, entry.data.X[rows], qid)
        Z = np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64)
        queries = Queries.of(judged.queries.codes[take])
        centred = Z - np.stack([queries.sum(z) / queries.sizes for z in Z.T], axis=1)[queries.codes]
        linear = linear_model(ranker_of(entry.model), entry.data.feature_names)
        spread, size = (np.sqrt(np.mean(values**2, axis=0)) for values in (centred, Z))
        names, weights = ([], np.zeros(Z.shape[1])) if linear is None else (linear.names, linear.weights)
        return cls(names, weights, spread, size)

    @property
    def contribution(self) -> np.ndarray:
        """(n,) by how much a feature typically moves a score."""
        return self.weights * self.deviation


def important_features(entries: Sequence[Entry], judged: JudgedEntry) -> Html:
    """One list for all linear models: what share of the movement of scores within queries comes from each feature."""
    linear = {e.name: FeatureSummary.of(e, judged) for e in entries if e.model is not None and _is_linear(e)}
    if not linear:
        return tag("p", "No model here is linear: features have no weights of their own.", class_="soft")
    shares: dict[str, dict[str, float]] = {}
    for model, features in linear.items():
        parts = features.contribution
        total = np.abs(parts).sum() or 1.0
        for feature, part in zip(features.names, parts, strict=True):
            shares.setdefault(str(feature), {})[model] = float(part / total)
    order = sorted(shares, key=lambda feature: -max(map(abs, shares[feature].values())))
    order = [feature for feature in order if any(shares[feature].values())]
    rows = [[feature, *(_share(shares[feature].get(m)) for m in linear)] for feature in order[:TOP_FEATURES]]
    left = len(shares) - len(rows)
    legend = "By how much a feature typically moves scores within a query, as a share of all features; the sign tells"
    legend += " which way." + (f" {left:,} more features move them less or not at all." if left else "")
    table = page.table(["feature", *linear], rows, numbers=range(1, 1 + len(linear)))
    return join(table, tag("p", Html(" ".join(map(page.text, legend.split(" ")))), class_="soft"))


def _is_linear(entry: Entry) -> bool:
    return linear_model(ranker_of(entry.model), entry.data.feature_names) is not None


def _share(share: float | None) -> Html:
    if not share:
        return page.text("-")
    width = f"{max(1, round(100 * abs(share)))}"
    kind = "bar up" if share > 0 else "bar down"
    drawn = Html(f'<meter class="{kind}" min="0" max="100" value="{width}">{width} %</meter>')
    return join(page.text(f"{share:+.1%} "), drawn)
