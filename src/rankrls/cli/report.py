"""rankrls report DATA MODEL... -o report.html"""

from __future__ import annotations

import hashlib
import os
import re
from argparse import Namespace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from rankrls import __version__

from ..datasets import RankingData
from ..estimators.curve import curve_of, scoring_name
from ..estimators.pipelines import ranker_of
from ..metrics import get_metric, standard_error
from ..plotting import CoefficientPathDisplay, HoldOutDisplay, MetricAtKDisplay, PursuitPathDisplay, WinsLossesDisplay
from ..plotting.style import check_matplotlib
from ..system.progress import working
from . import learning, page, relation_report, relations
from .entries import Entry, JudgedEntry, entries_of
from .evaluate import all_metrics, p_value, summary, values_of
from .inspect import described, given, in_a_line, summarised, summary_lines
from .page import Html, join, name, section, tag
from .text import check_target, number, say, target
from .verdict import SIGNIFICANT, equals, important_features, larger_is_better, verdict
from .worst import worst_queries

MOST_MODELS = 10
MOST_WORST, MOST_PLACES = 50, 100
PLACES = range(1, 11)  # cutoffs of the curves


def run(args: Namespace) -> None:
    if len(args.models) == 1 and learning.is_model(args.models[0]):
        model = learning.load(args.models[0])
        if relations.is_relation(model):
            relation_report.report(model, args)
            return
    if args.data is None:
        raise ValueError("which data? They come before the models: rankrls report DATA MODEL...")
    _check(args)
    entries, judged = entries_of(args, args.models)
    main = get_metric(args.by).name
    wanted = list(dict.fromkeys([*(args.metrics or all_metrics(args.k)), main]))
    curves = {base: [f"{base}@{k}" for k in PLACES] for base in ("ndcg", "precision")}
    for entry in entries:
        for metric in dict.fromkeys([*wanted, *curves["ndcg"], *curves["precision"]]):
            entry.values[metric] = values_of(metric, judged.y, entry.scores, judged.queries, args)
    if all(np.isnan(entry.values[main]).all() for entry in entries):
        raise ValueError(
            f"{main} is not defined for any query of {args.data}: choose another metric, e.g. --by pairwise_accuracy"
        )
    with working("testing", args.quiet):
        found = {metric: _compared([entry.values[metric] for entry in entries], args.flips) for metric in wanted}
    text = _page(args, entries, judged, main, found, curves)
    with target(args.output) as file:
        file.write(text)
    if args.output != "-":
        models = [{"name": entry.name, "path": entry.path, "scores": entry.model is None} for entry in entries]
        record = {"report": args.output, "bytes": len(text), "data": args.data, "models": models, "metrics": found}
        counted = lambda n, one, many: f"{n:,} {one if n == 1 else many}"
        what = f"{counted(len(entries), 'model', 'models')} on {counted(len(judged.queries), 'query', 'queries')}"
        say(args, record, f"wrote {args.output} ({len(text) / 1000:,.0f} kB): {what}")


# ---------------------------------------------------------------- input


def _check(args: Namespace) -> None:
    check_matplotlib()
    check_target(args.output)
    if len(args.models) > MOST_MODELS:
        raise ValueError(f"a report compares at most {MOST_MODELS} models, got {len(args.models)}")
    for path in args.models:
        if args.models.count(path) > 1:
            raise ValueError(f"{path} is given twice")
    for option, value, most in (("--worst", args.worst, MOST_WORST), ("--top", args.top, MOST_PLACES)):
        if not 0 <= value <= most:
            raise ValueError(f"{option} must be between 0 and {most}, got {value}")


def _compared(values: list[np.ndarray], flips: int) -> list[dict[str, Any]]:
    """The mean and standard error of each model, and the differences of the others from the first."""
    return [summary(values[:1], flips)] + [summary([values[0], other], flips) for other in values[1:]]


# ---------------------------------------------------------------- the page


def _page(
    args: Namespace,
    entries: list[Entry],
    judged: JudgedEntry,
    main: str,
    found: dict[str, list[dict[str, Any]]],
    curves: dict[str, list[str]],
) -> bytes:
    names = ["verdict", "queries", "comparison", "features", "pictures", "models", "data"]
    links = [tag("a", title.capitalize(), href=f"#{title}") for title in names]
    title = args.title or f"Ranking report: {PurePath(args.data).name if args.data != '-' else 'standard input'}"
    worst = [worst_queries(entry, judged, main, worst=args.worst, top=args.top) for entry in entries]
    return page.page(
        title,
        tag("header", tag("h1", title), tag("nav", *links)),
        section("Verdict", "verdict", verdict(entries, judged, main, found[main])),
        section("Queries ranked worst", "queries", *worst),
        section("Comparison", "comparison", _comparison(entries, found)),
        section("Features that matter", "features", important_features(entries, judged)),
        section("Pictures", "pictures", _pictures(entries, main, found[main], curves)),
        section("Models", "models", *(_card(entry, main, number > 2) for number, entry in enumerate(entries))),
        section("Data", "data", _data(args, entries[0].data, judged)),
        tag("p", f"Written by rankrls {__version__}. Nothing on this page is loaded from elsewhere.", class_="soft"),
    )


def _data(args: Namespace, data: RankingData, judged: JudgedEntry) -> Html:
    lines = [[key, re.sub(" {2,}", " · ", value)] for key, value in summary_lines(summarised(data))]
    rows = [["file", args.data], *lines]
    left = len(data) - len(judged.y)
    note = f"{left:,} rows without a label are not judged." if left else ""
    return join(page.table([], rows), tag("p", note, class_="soft") if note else Html(""))


def _comparison(entries: list[Entry], found: dict[str, list[dict[str, Any]]]) -> Html:
    """A table of all metrics, with differences from the first model."""
    rows = []
    for metric, models in found.items():
        means = [one["mean"][-1] for one in models]
        known = [mean for mean in means if mean is not None]
        best = (max if larger_is_better(metric) else min)(known) if known and len(known) > 1 else None
        rows.append(
            [metric, *(_cell(one, best, larger_is_better(metric)) for one in models), f"{models[0]['queries']:,}"]
        )
    head = ["metric", *(entry.name for entry in entries), "queries"]
    legend = "Mean over the queries where a metric is defined ± its standard error; the best in bold."
    if len(entries) > 1:
        n = (len(entries) - 1) * len(found)
        legend += (
            f" Below: the difference from {entries[0].name}, and p from a paired randomisation test over queries; "
            f"▲ better and ▼ worse where p < {SIGNIFICANT}. p is not corrected for the {n} comparisons, of which about "
            f"{n * SIGNIFICANT:.1f} would be marked by chance alone."
        )
    numbers = range(1, len(head))
    return join(page.table(head, rows, numbers=numbers), Html(f'<p class="soft">{page.long(legend)}</p>'))


def _cell(one: dict[str, Any], best: float | None, larger: bool) -> Html:
    """The mean of a model, and how it compares."""
    if not one["queries"]:
        return page.text("-")
    mean, error = one["mean"][-1], one["standard_error"][-1]
    value = page.text(f"{number(mean)} ± {number(error)}")
    value = tag("strong", value) if mean == best else value
    if "p" not in one:
        return value
    better = (one["difference"] > 0) == larger
    marks = ("▲ ", "better") if better else ("▼ ", "worse")
    mark, kind = marks if one["p"] < SIGNIFICANT and one["difference"] else ("", None)
    return join(value, tag("small", f"{mark}{one['difference']:+.4f}, p {equals(p_value(one['p']))}", class_=kind))


# ---------------------------------------------------------------- plots


def _pictures(entries: list[Entry], main: str, found: list[dict[str, Any]], curves: dict[str, list[str]]) -> Html:
    """Plots that compare the models."""
    drawn = []
    for base, metrics in curves.items():
        values = {entry.name: np.stack([entry.values[metric] for metric in metrics], axis=1) for entry in entries}
        defined = {of: v[~np.isnan(v).any(axis=1)] for of, v in values.items()}
        if all(len(v) for v in defined.values()):
            means = {of: v.mean(axis=0) for of, v in defined.items()}
            errors = {of: standard_error(v) for of, v in defined.items()}
            figure = page.blank()
            MetricAtKDisplay(np.array(PLACES), means, errors, metric=base).plot(ax=figure.subplots())
            drawn.append(page.figure(figure, f"{base} at cutoff k"))
    sign = 1 if larger_is_better(main) else -1
    for entry, one in zip(entries[1:], found[1:], strict=True):
        d, names = sign * (entry.values[main] - entries[0].values[main]), (entries[0].name, entry.name)
        figure = page.blank()
        WinsLossesDisplay(d, names=names, metric=main, p=one["p"]).plot(ax=figure.subplots())
        drawn.append(page.figure(figure, f"{main} of each query: {entry.name} against {entries[0].name}"))
    return tag("div", *drawn, class_="figures")


def _model_pictures(entry: Entry) -> Html:
    """How the model was chosen: the held-out curve, and the path of weights."""
    drawn, model = [], entry.model
    names = {"names": entry.data.feature_names} if entry.data.feature_names is not None else {}
    if hasattr(ranker_of(model), "path_"):
        figure = page.blank()
        linear = names if hasattr(ranker_of(model), "coef_") else {}
        PursuitPathDisplay.from_estimator(model, **linear, ax=figure.subplots())
        drawn.append(page.figure(figure, "training error and held-out score against the number of basis functions"))
    elif curve_of(model) is not None:
        figure = page.blank()
        HoldOutDisplay.from_estimator(model, ax=figure.subplots())
        drawn.append(page.figure(figure, "held-out score against alpha in training"))
    ranker = ranker_of(model)
    if getattr(ranker, "statistics_", None) is not None and np.ndim(getattr(ranker, "coef_", 0)) == 1:
        figure = page.blank()
        CoefficientPathDisplay.from_estimator(model, **names, top=7, ax=figure.subplots())
        drawn.append(page.figure(figure, "weights of the (scaled) features against alpha"))
    return tag("div", *drawn, class_="figures") if drawn else Html("")


# ---------------------------------------------------------------- model cards


def _card(entry: Entry, main: str, folded: bool) -> Html:
    """What is known about a model."""
    values = entry.values[main]
    rows: list[list[Any]] = [["file", entry.path]]
    if entry.path != "-":
        digest = hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()
        rows.append(["size, SHA-256", f"{os.path.getsize(entry.path):,} bytes, {digest[:16]}…"])
    here = f"{main} {number(np.nanmean(values))} ± {number(standard_error(values))} on the data of this report"
    if entry.model is None:
        rows += [["what", "scores from a file: nothing is known about the model"], ["quality", here]]
        return _folded(entry.name, folded, page.table([], rows))
    record, ranker = described(entry.model), ranker_of(entry.model)
    rows += [
        ["what", in_a_line(record)],
        ["settled on", learning.settled(record["chosen"]) or "there was nothing to choose"],
        ["parameters", page.long(given(ranker))],
        ["quality", here],
    ]
    curve = curve_of(entry.model)
    if curve is not None:
        error = "" if curve.errors is None else f" ± {number(curve.errors[curve.chosen])}"
        held = f"{scoring_name(ranker)} {curve.score:.4f}{error}, held out in training"
        rows.append(["", f"{held}; the best of {len(curve.values)}, so slightly optimistic"])
    if not getattr(ranker, "regression", 0):
        rows.append(["use", "scores rank the rows of one query; between queries they mean nothing"])
    return _folded(entry.name, folded, page.table([], rows), _model_pictures(entry))


def _folded(title: str, folded: bool, *pieces: Any) -> Html:
    head = tag("summary", name(title))
    return Html(f"<details{'' if folded else ' open'}>{head}{join(*pieces)}</details>")
