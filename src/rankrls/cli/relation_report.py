"""rankrls report for a relation: how well it predicts new objects, a heat map, and lists of the best."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from rankrls import __version__

from ..estimators import ConditionalRankRLS
from ..estimators.curve import curve_of
from ..plotting import HoldOutDisplay, RelationDisplay
from ..plotting.style import check_matplotlib, plain
from . import page, relation_data, relations
from .inspect import given
from .page import Html, join, name, section, tag
from .text import say, target

MOST_DRAWN = 40  # objects on each side of a heat map
LISTS = 6  # conditioning objects whose best matches are shown


def report(model: ConditionalRankRLS, args: Namespace) -> None:
    """Write the page; the relation is judged by refits on DATA, --edges or --matrix."""
    check_matplotlib()
    if args.data is not None:
        relation_data.check_edges(args.data, args.models[0])
    if args.data is not None and args.edges is None and args.matrix is None:
        args.edges = args.data if hasattr(model, "edge_columns_") else None
        args.matrix = args.data if args.edges is None else None
    evaluation = None
    if args.edges is not None or args.matrix is not None:
        evaluation = relations.evaluation(model, relations.data_for(model, args), args)
    text = _page(model, evaluation, args)
    with target(args.output) as file:
        file.write(text)
    if args.output != "-":
        size = relations.sizes(model)
        found = None if evaluation is None else {str(k): v for k, v in evaluation.means().items()}
        record = {"report": args.output, "bytes": len(text), **size, "settings": found}
        say(args, record, f"wrote {args.output} ({len(text) / 1000:,.0f} kB): {relations.described(size)}")


def _page(model: ConditionalRankRLS, evaluation: Any, args: Namespace) -> bytes:
    title = args.title or f"Relation report: {relation_data.title_of(args.models[0]).removesuffix('.rankrls')}"
    parts = [("Verdict", _verdict(model, evaluation)), ("Settings", _settings(evaluation))]
    parts += [("Best of all", _rated(model, args.top)), ("Best for each", _lists(model, args.top))]
    parts += [("Pictures", _pictures(model)), ("Model", _card(model, args))]
    parts = [(head, body) for head, body in parts if body]
    anchors = {head: head.lower().replace(" ", "-") for head, _ in parts}
    links = [tag("a", head, href=f"#{anchors[head]}") for head, _ in parts]
    return page.page(
        title,
        tag("header", tag("h1", title), tag("nav", *links)),
        *(section(head, anchors[head], body) for head, body in parts),
        tag("p", f"Written by rankrls {__version__}. Nothing on this page is loaded from elsewhere.", class_="soft"),
    )


# ---------------------------------------------------------------- words

NEW = {
    1: "new pairs of known objects",
    2: "new objects to rank for",
    3: "new objects to be ranked",
    4: "both ends new",
    "time": "later than the training data",
}


def _verdict(model: ConditionalRankRLS, evaluation: Any) -> Html:
    """The main result in a sentence."""
    size = relations.described(relations.sizes(model))
    if evaluation is None:
        return tag(
            "p",
            f"Learned from {size}. Pass the data to see how well it predicts new pairs and objects.",
            class_="verdict",
        )
    means, errors = evaluation.means(), evaluation.errors()
    lines = []
    for setting, found in means.items():
        metric = next((name for name, value in found.items() if np.isfinite(value)), None)
        if metric is None:
            lines.append(tag("li", f"{NEW[setting]}: too few held-out edges to judge"))
            continue
        error = errors[setting][metric]
        chance = _against_chance(metric, found[metric], error)
        lines.append(tag("li", f"{NEW[setting]}: {metric} {_measured(found[metric], error)}{chance}"))
    intro = page.long(f"Learned from {size}. Models with these parameters, judged on held-out data:")
    intro = tag("p", intro)
    return tag("div", intro, tag("ul", *lines), class_="verdict")


def _measured(mean: float | None, error: float | None) -> str:
    """A mean with its standard error, as far as there are."""
    if mean is None or error is None:
        return ""
    if not np.isfinite(mean):
        return "-"
    return f"{mean:.3f} ± {error:.3f}" if np.isfinite(error) else f"{mean:.3f}"


def _against_chance(metric: str, value: float, error: float) -> str:
    if metric != "pairwise_accuracy" or not np.isfinite(value):
        return ""
    if not np.isfinite(error) or value > 0.5 + 2 * error:
        return ""
    return ", no better than chance"


def _settings(evaluation: Any) -> Html | None:
    """A table of the metrics in each setting."""
    if evaluation is None:
        return None
    names = list(dict.fromkeys(metric for found in evaluation.metrics.values() for metric in found))
    means, errors = evaluation.means(), evaluation.errors()
    rows = [
        [
            f"{setting}: {NEW[setting]}",
            *(_measured(means[setting].get(m), errors[setting].get(m)) for m in names),
        ]
        for setting in evaluation.metrics
    ]
    legend = "Means over folds ± standard errors over folds. concordance compares all held-out edges with each other."
    return join(
        page.table(["setting: what is new", *names], rows, numbers=range(1, 1 + len(names))),
        tag("p", legend, class_="soft"),
    )


def _rated(model: ConditionalRankRLS, top: int) -> Html:
    if not model.rating().any():
        return tag("p", "Averaged over all others, no object is better than another.")
    head, rows = relations.lists(model, top)
    legend = "The mean relation to all objects, centred at zero"
    legend += "; its standard error treats what ratings do not explain as noise." if len(head) > 2 else "."
    numbered = [[str(i + 1), *row] for i, row in enumerate(rows)]
    places = page.table(["", *head], numbered, numbers=[0, *range(2, 1 + len(head))])
    return join(places, tag("p", page.long(legend), class_="soft"))


def _lists(model: ConditionalRankRLS, top: int) -> Html:
    """The best matches of some conditioning objects."""
    source = model.condition == "source"
    ids = model.source_ids_ if source else model.target_ids_
    products = getattr(model, "pairwise_", {"kronecker": 1.0})["kronecker"]  # missing in older models
    alike = model._one_domain and not products  # then everybody has the same list
    if len(ids) == 0 or not top or alike:
        return Html("")
    if model._one_domain:
        chosen = list(model.rating().index[:LISTS])
    else:
        chosen = ids[np.linspace(0, len(ids) - 1, min(LISTS, len(ids))).astype(int)].tolist()
    blocks = []
    for label in chosen:
        frame = model.rank([_as_id(label)], top=top) if _named(model) else None
        if frame is None:
            return Html("")
        known = "truth" in frame and frame["truth"].notna().any()
        head = ["", "object", "score", *(["known"] if known else [])]
        rows = [
            [str(rank), str(i), f"{score:.4g}", *([_shown(truth)] if known else [])]
            for rank, i, score, truth in zip(
                frame["rank"], frame["id"], frame["score"], frame.get("truth", frame["score"]), strict=True
            )
        ]
        blocks.append(tag("div", tag("h3", name(label)), page.table(head, rows, numbers=range(2, len(head)))))
    return tag("div", *blocks, class_="sides")


def _named(model: ConditionalRankRLS) -> bool:
    ids = model.source_ids_ if model.condition == "source" else model.target_ids_
    return not (ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(len(ids))))


def _as_id(label: object) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _shown(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "-"


def _card(model: ConditionalRankRLS, args: Namespace) -> Html:
    """A table of what is known about the model."""
    rows = [
        ["file", args.models[0]],
        ["learned from", relations.described(relations.sizes(model))],
        ["settled on", relations.settled(model)],
        ["parameters", page.long(given(model))],
    ]
    curve = curve_of(model)
    if curve is not None:
        rows.append(
            ["held out", f"{model.scoring} {curve.score:.4f}; the best of {len(curve.values)}, so slightly optimistic"]
        )
    rows.append(["use", "scores rank objects for one object; between objects they mean little with --loss ranking"])
    return page.table([], rows)


# ---------------------------------------------------------------- plots


def _pictures(model: ConditionalRankRLS) -> Html:
    drawn = []
    if curve_of(model) is not None:
        figure = page.blank()
        HoldOutDisplay.from_estimator(model, ax=figure.subplots())
        drawn.append(page.figure(figure, "held-out score against alpha in training"))
    return join(tag("div", _heat_map(model), class_="full"), tag("div", *drawn, class_="figures"))


def _heat_map(model: ConditionalRankRLS) -> Html:
    """Scores between the objects with the most edges, best rated first, next to the known values."""
    from matplotlib.figure import Figure

    rows, columns = _drawn(model)
    scores = model.predict()[np.ix_(rows, columns)]
    known = getattr(model, "Y_fit_", None)
    truth = None
    if known is not None:
        part = known[rows][:, columns] if hasattr(known, "tocsr") else np.asarray(known)[np.ix_(rows, columns)]
        truth = part
    names = [model.source_ids_[rows], model.target_ids_[columns]]
    if model.condition == "target":
        scores, truth, names = scores.T, None if truth is None else truth.T, names[::-1]
    panels = 1 if truth is None else 2
    figure = Figure(figsize=(5.0 * panels, 4.6), layout="constrained")
    display = RelationDisplay.from_predictions({"model": scores}, truth, ax=figure.subplots(1, panels))
    _name_axes(display, names)
    which = "" if len(rows) == len(model.source_ids_) and len(columns) == len(model.target_ids_) else " some of"
    return page.figure(figure, f"scores between{which} the objects, best rated first; grey is unknown")


def _drawn(model: ConditionalRankRLS) -> tuple[np.ndarray, np.ndarray]:
    """The objects of both ends with the most known edges, by number, in the order of their mean score."""
    known, scores = getattr(model, "Y_fit_", None), model.predict()
    found = []
    for axis in (0, 1):
        n = scores.shape[axis]
        count = np.zeros(n)
        if known is not None and hasattr(known, "tocsr"):
            stored = known.tocoo().coords[axis]
            count = np.bincount(stored, minlength=n).astype(float)
            if model._one_domain:
                count += np.bincount(known.tocoo().coords[1 - axis], minlength=n)
        most = np.argsort(-count, kind="stable")[:MOST_DRAWN]
        mean = scores.mean(axis=1 - axis)
        sign = 1 if axis == 1 and model.relation_ == "reciprocal" else -1  # the strongest first at both ends
        found.append(most[np.argsort(sign * mean[most], kind="stable")])
    return (found[0], found[0]) if model._one_domain else (found[0], found[1])


def _name_axes(display: Any, names: list[np.ndarray]) -> None:
    for k, axis in enumerate(display.axes_):
        labels = [[plain(str(label))[:22] for label in of] for of in names]
        size = 6 if max(map(len, labels)) > 25 else 8
        axis.set_xticks(range(len(labels[1])), labels[1], rotation=90, fontsize=size)
        axis.set_yticks(range(len(labels[0])), labels[0] if k == 0 else [""] * len(labels[0]), fontsize=size)
        axis.set_xlabel("")
        axis.set_ylabel("")
