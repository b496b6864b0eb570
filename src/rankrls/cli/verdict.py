"""The summary of a report: which model is better, what is suspicious, and which features matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..auto import AutoRanker
from ..core.queries import Queries
from ..estimators import RankingPursuit
from ..estimators.curve import curve_of
from ..estimators.pipelines import ranker_of, scaled, scalers_of
from ..metrics import get_metric
from . import page
from .entries import Entry, JudgedEntry
from .evaluate import p_value
from .page import Html, join, name, tag
from .text import number, plural
from .worst import linear_model, reasons_for

SIGNIFICANT = 0.05
CONSTANT = 1e-9  # a column is constant within queries if its spread is less than this share of its values
SAMPLE = 20_000  # rows used to estimate the size of contributions
TOP_FEATURES = 12
PAIRS = 60  # pairs of rows used to estimate the contributions of a nonlinear model
UNSCALED = 100.0  # columns should be scaled if their spreads differ by more than this factor


def larger_is_better(metric: str) -> bool:
    return get_metric(metric).greater_is_better


def equals(p: str) -> str:
    """`= 0.03` or `< 0.0001`, to follow the letter p."""
    return p.replace("<", "< ") if p.startswith("<") else f"= {p}"


def verdict(entries: Sequence[Entry], judged: JudgedEntry, main: str, found: list[dict[str, Any]]) -> Html:
    """The main metric in words, and warnings to look into first."""
    first = entries[0].name
    lines = [
        _difference_in_words(entry.name, first, main, one) for entry, one in zip(entries[1:], found[1:], strict=True)
    ]
    if not lines:
        mean, error = found[0]["mean"][0], found[0]["standard_error"][0]
        lines = [tag("p", name(first), f" reaches {main} {number(mean)} ± {number(error)}.", class_="verdict")]
    notes = [tag("li", name(entry.name), f": {note}") for entry in entries for note in warnings_of(entry, judged)]
    return join(_tiles(entries, main, found), *lines, tag("ul", *notes, class_="warnings") if notes else Html(""))


def _tiles(entries: Sequence[Entry], main: str, found: list[dict[str, Any]]) -> Html:
    """The main metric of each model, large."""
    means = [one["mean"][-1] for one in found]
    known = [mean for mean in means if mean is not None]
    best = (max if larger_is_better(main) else min)(known) if len(known) > 1 else None
    drawn = [
        tag(
            "div",
            tag("small", name(entry.name)),
            tag("strong", number(mean, 3)),
            tag("small", f"{main} ± {number(one['standard_error'][-1], 3)}"),
            class_="best" if mean is not None and mean == best else None,
        )
        for entry, one, mean in zip(entries, found, means, strict=True)
    ]
    return tag("div", *drawn, class_="tiles")


def _difference_in_words(other: str, first: str, main: str, one: dict[str, Any]) -> Html:
    d, p = one["difference"], equals(p_value(one["p"]))
    counts = f"higher on {plural(one['better'], 'query')}, lower on {one['worse']:,}"
    words = f": {d:+.4f} in {main} (p {p}), {counts}."
    if one["p"] < SIGNIFICANT:
        better = "better" if (d > 0) == larger_is_better(main) else "worse"
        return tag("p", name(other), f" is {better} than ", name(first), words, class_="verdict")
    return tag("p", name(other), " and ", name(first), " cannot be told apart", words, class_="verdict")


def warnings_of(entry: Entry, judged: JudgedEntry) -> list[str]:
    """What looks wrong: alpha at an end of its grid, columns of very different scales, nothing learned."""
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
    if _sees_scales(ranker) and not scalers_of(entry.model):
        features = FeatureSummary.of(entry, judged)
        varying = features.deviation[features.deviation > CONSTANT * features.size]
        if len(varying) and varying.max() > UNSCALED * varying.min():
            found.append(
                f"columns differ in scale by a factor of {varying.max() / varying.min():,.0f}, which the penalty "
                "depends on: train with --scale auto"
            )
    return found


def _sees_scales(ranker: Any) -> bool:
    """True if a model depends on the scale of columns; AutoRanker and the selection of features do not."""
    if isinstance(ranker, RankingPursuit):
        return ranker.kernel not in (None, "linear")
    return not isinstance(ranker, AutoRanker) and getattr(ranker, "scale", None) is None


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
        """Spreads from whole queries of up to `SAMPLE` rows; weights are zero if the model is not linear."""
        take = judged.queries.codes < np.searchsorted(np.cumsum(judged.queries.sizes), SAMPLE, side="right") + 1
        rows = np.flatnonzero(judged.rows)[take]
        qid = None if entry.data.qid is None else entry.data.qid[rows]
        Z = scaled(entry.model, entry.data.X[rows], qid)
        Z = np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64)
        queries = Queries.of(judged.queries.codes[take])
        centred = Z - np.stack([queries.sum(z) / queries.sizes for z in Z.T], axis=1)[queries.codes]
        linear = linear_model(ranker_of(entry.model), entry.data.feature_names)
        deviation, size = (np.sqrt(np.mean(values**2, axis=0)) for values in (centred, Z))
        names, weights = ([], np.zeros(Z.shape[1])) if linear is None else (linear.names, linear.weights)
        return cls(names, weights, deviation, size)

    @property
    def contribution(self) -> np.ndarray:
        """(n,) how much a feature typically moves a score."""
        return self.weights * self.deviation


def important_features(entries: Sequence[Entry], judged: JudgedEntry) -> Html:
    """One table for all models: the share of each feature in the variation of scores within queries."""
    shares: dict[str, dict[str, float]] = {}
    models: dict[str, bool] = {}  # whether each model's shares have signs
    for entry in entries:
        parts = _contributions(entry, judged)
        if parts is None:
            continue
        models[entry.name] = _is_linear(entry)
        total = sum(map(abs, parts.values())) or 1.0
        for feature, part in parts.items():
            shares.setdefault(feature, {})[entry.name] = part / total
    if not models:
        return tag("p", "None of these models can say what a feature adds to a score.", class_="soft")
    order = sorted(shares, key=lambda feature: -max(map(abs, shares[feature].values())))
    order = [feature for feature in order if any(shares[feature].values())]
    most = max((abs(share) for found in shares.values() for share in found.values()), default=1.0)
    cells = lambda found: (_share(found.get(model), most, signed) for model, signed in models.items())
    rows = [[feature, *cells(shares[feature])] for feature in order[:TOP_FEATURES]]
    left = len(shares) - len(rows)
    legend = "How much a feature typically moves scores within a query, as a share of all features; the sign is its"
    legend += " direction." if all(models.values()) else " direction in a linear model."
    legend += f" {left:,} more features move them less or not at all." if left else ""
    return join(
        page.table(["feature", *models], rows, numbers=range(1, 1 + len(models))),
        tag("p", page.long(legend), class_="soft"),
    )


def _contributions(entry: Entry, judged: JudgedEntry) -> dict[str, float] | None:
    """What each feature adds to differences of scores: with a sign if the model is linear, else on average."""
    if entry.model is None:
        return None
    if _is_linear(entry):
        features = FeatureSummary.of(entry, judged)
        return dict(zip(map(str, features.names), features.contribution.tolist(), strict=True))
    ranker = ranker_of(entry.model)
    if isinstance(ranker, AutoRanker):
        effects: dict[str, float] = {}
        for effect in getattr(ranker, "feature_effects_", None) or []:
            number = effect["source"]  # features of LETOR text are numbered from 1
            column = f"f{number + 1}" if entry.data.feature_names is None else ranker.column_names()[number]
            effects[column] = effects.get(column, 0.0) + float(effect["spread"])
        return effects or None
    return _mean_contributions(entry, judged)


def _mean_contributions(entry: Entry, judged: JudgedEntry) -> dict[str, float] | None:
    """What each feature adds to the difference of two scores, on average over pairs of rows."""
    rng, parts, names = np.random.default_rng(0), [], []
    for query in rng.permutation(len(judged.queries))[:PAIRS]:
        rows = np.flatnonzero(judged.rows)[judged.queries.rows(int(query))]
        if len(rows) > 1:
            found = reasons_for(entry, rng.choice(rows, 2, replace=False))
            if found is None:
                return None
            parts.append(np.abs(found.parts))
            names = list(found.names)
    return dict(zip(map(str, names), np.mean(parts, axis=0).tolist(), strict=True)) if parts else None


def _is_linear(entry: Entry) -> bool:
    return linear_model(ranker_of(entry.model), entry.data.feature_names) is not None


def _share(share: float | None, most: float, signed: bool) -> Html:
    """A share as a number and as a bar, which is full for the largest."""
    if not share:
        return page.text("-")
    width = f"{max(1, round(100 * abs(share) / most))}"
    kind = "bar up" if share > 0 else "bar down"
    drawn = Html(f'<meter class="{kind}" min="0" max="100" value="{width}">{width} %</meter>')
    return join(page.text(f"{share:+.1%} " if signed else f"{share:.1%} "), drawn)
