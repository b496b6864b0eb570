"""Commands on relations: train, predict, evaluate and inspect a ConditionalRankRLS, with names everywhere."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.base import BaseEstimator, clone

from ..estimators import ConditionalRankRLS
from ..estimators.curve import curve_of
from ..system.progress import reporting
from ..system.types import Matrix
from . import learning, relation_data
from .data import DELIMITERS, kind
from .memory import in_words, recalled, remember_edges
from .options.relations import PARAMETERS
from .relation_data import RelationFiles, is_similarity
from .tables import write_csv, write_parquet
from .text import plural, remark, say, table, target

SHARED = (
    "alpha",
    "alphas",
    "kernel",
    "basis",
    "weighting",
    "scoring",
    "cv",
    "random_state",
)  # parameters that other estimators have too
FEW = 10  # rows of a printed list
PLAIN = (bool, int, float, str, list, type(None))  # parameters that JSON can hold
UNSURE = 3  # remark on ratings with a standard error above this many times the median


def is_relation(model: BaseEstimator) -> bool:
    return isinstance(model, ConditionalRankRLS)


def load(path: str) -> ConditionalRankRLS:
    """A model of a relation."""
    model = learning.load(path)
    if not is_relation(model):
        raise ValueError(
            f"{path} is a {type(model).__name__}, which scores rows of queries; this command needs a model of relations"
        )
    return model


# ---------------------------------------------------------------- training


def make(args: Namespace, known: RelationFiles) -> ConditionalRankRLS:
    """The estimator that the options describe."""
    names = [*SHARED, *(one.name for one in PARAMETERS)]
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    of_kernel = {key: getattr(args, key) for key in learning.OF_KERNEL if getattr(args, key) is not None}
    for name, objects in (("kernel", known.X), ("target_kernel", known.Z)):
        if objects is not None and is_similarity(objects) and name not in given:
            given[name] = "precomputed"
        elif given.get(name) not in (None, "precomputed") or (of_kernel and name == "kernel"):
            given[name] = learning.kernel(given.get(name), of_kernel)
    if given.get("kernel") == "precomputed" and known.Z is not None and "target_kernel" not in given:
        given["target_kernel"] = "linear"
    if known.Z is None and relation_data.is_difference(args.y):
        given.setdefault("relation", "reciprocal")
    if isinstance(given.get("basis"), tuple):
        method, size = given["basis"]
        given["basis"] = learning.BASES[method](size)
    missing = "zero" if args.implicit else "unknown"
    return ConditionalRankRLS(
        **given, encoder="auto", missing=missing, intercept=args.intercept, verbose=not args.quiet
    )


def fit(model: ConditionalRankRLS, known: RelationFiles) -> ConditionalRankRLS:
    if known.listed:
        model.fit_edges(known.X, known.edges, Z=known.Z, **known.columns)
    else:
        model.fit(known.X, known.Y, known.Z)
    model.verbose = False
    return model


def train(args: Namespace) -> None:
    """Learn a relation and write the model."""
    if args.data:
        raise ValueError(f"--method conditional reads --edges or --matrix, not rows of queries ({args.data[0]})")
    with learning.stopwatch() as reading:
        known = relation_data.relation(args)
    with learning.stopwatch() as fitting:
        model = fit(make(args, known), known)
    remember_edges(model, args)
    learning.save(model, args.output)
    if known.listed and model._one_domain and not args.features:
        remark_islands(known.edges, known.columns, args)
    curve, size = curve_of(model), sizes(model)
    record = {
        "model": args.output,
        "class": type(model).__name__,
        **size,
        "chosen": learning.chosen(model),
        "relation": model.relation_,
        "solver": model.solver_,
        "scoring": model.scoring,
        "held_out": None if curve is None else curve.score,
        "seconds": {"reading": round(reading[0], 3), "fitting": round(fitting[0], 3)},
    }
    lines = [
        f"read     {described(size)} in {reading[0]:.2f} s",
        f"fitted   {type(model).__name__} in {fitting[0]:.2f} s: {settled(model)}",
        f"held out {_held_out(model, curve)}",
        f"wrote    {args.output}",
    ]
    say(args, record, "\n".join(lines), file=learning.out(args.output))


def _held_out(model: ConditionalRankRLS, curve: Any) -> str:
    if curve is None:
        return "nothing: alpha was given"
    return f"{model.scoring} {curve.score:.4f}, best of {len(curve.values)} values of {curve.over}"


def remark_islands(edges: Any, columns: dict[str, Any], args: Namespace) -> None:
    """Report objects that no chain of edges connects with the rest, so that they cannot be compared with it."""
    both = np.concatenate([edges[columns[end]].astype(str) for end in ("source", "target")])
    names, ends = np.unique(both, return_inverse=True)
    source, target = np.split(ends, 2)
    graph = sparse.coo_array((np.ones(len(source)), (source, target)), shape=(len(names), len(names)))
    n, island = csgraph.connected_components(graph, directed=False)
    if n > 1:
        apart = names[island != np.argmax(np.bincount(island))]
        some = ", ".join(apart[:3]) + (", ..." if len(apart) > 3 else "")
        remark(
            args,
            f"{plural(len(apart), 'object')} of {len(names):,} ({some}) never met the others, even indirectly: "
            "their place among the others is a guess",
        )


def sizes(model: ConditionalRankRLS) -> dict[str, Any]:
    """The size of a model's training data."""
    both_ways = hasattr(model, "edge_columns_") and model.relation_ is not None
    size = {"edges": int(model.n_edges_) // (2 if both_ways else 1), "objects": len(model.source_ids_)}
    if not model._one_domain:
        size["targets"] = len(model.target_ids_)
    return size


def described(size: dict[str, Any]) -> str:
    ends = f"{size['objects']:,} objects" + (f" and {size['targets']:,} others" if "targets" in size else "")
    return f"{size['edges']:,} edges between {ends}"


def settled(model: ConditionalRankRLS) -> str:
    """What a fit chose, in words."""
    words = [learning.settled(learning.chosen(model)), model.relation_ or "no symmetry", f"solved by {model.solver_}"]
    if hasattr(model, "home_advantage_"):
        words.append(f"home advantage {model.home_advantage_:.3g}")
    return ", ".join(words)


# ---------------------------------------------------------------- predicting


def predict(model: ConditionalRankRLS, args: Namespace) -> None:
    """Write the scores of the edges in a table; without a table, all scores by name."""
    args = recalled(args, model)
    X, Z = (relation_data.objects(path, args) for path in (args.features, args.target_features))
    path = args.data or args.edges
    if path is None:
        frame = _all_scores(model, X, Z)
    else:
        relation_data.check_edges(path, args.model)
        edges = relation_data.read_table(path, args)
        columns = relation_data.columns_to_score(edges, args, getattr(model, "edge_columns_", {}))
        frame = edge_scores(model, edges, X, Z, columns)
    write(frame, args)


def edge_scores(model: ConditionalRankRLS, edges: Any, X: Matrix, Z: Matrix, columns: dict[str, Any]) -> Any:
    """A frame with a row for each edge."""
    ends = {"source": columns["source"], "target": columns["target"]}
    home = columns.get("home") if hasattr(model, "home_advantage_") else None
    found = model.predict_edges(X, edges, Z, **ends, home=home)
    if not hasattr(found, "iloc"):  # objects without ids
        labels = {"condition": edges[ends["source"]].to_numpy(), "id": edges[ends["target"]].to_numpy()}
        found = relation_data.pandas().DataFrame({**labels, "score": found})
    if hasattr(model, "probability_scale_"):
        found["probability"] = 0.5 * (1 + np.tanh(model.probability_scale_ * found["score"] / 2))
    return found


def _all_scores(model: ConditionalRankRLS, X: Any, Z: Any) -> Any:
    scores = model.predict(X, Z)
    rows = model.source_ids_ if X is None else X.index
    columns = rows if Z is None and model._one_domain else model.target_ids_ if Z is None else Z.index
    frame = relation_data.pandas().DataFrame(scores, columns=[str(label) for label in columns])
    frame.insert(0, "id", list(rows))
    return frame


def write(frame: Any, args: Namespace) -> None:
    """Write a frame as CSV or Parquet, or its scores only."""
    form = args.format or {"tsv": "tsv", "parquet": "parquet"}.get(kind(args.output), "csv")
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    with target(args.output) as file:
        if form == "parquet":
            write_parquet([columns], file)
        elif form == "scores" and "score" in columns:
            file.write("".join(f"{score!r}\n" for score in columns["score"].tolist()).encode())
        elif form in DELIMITERS:
            write_csv([columns], file, DELIMITERS[form])
        else:
            raise ValueError(f"--format {form} is for scores of rows: write relations as csv or parquet")
    if args.output != "-":
        record = {"scores": args.output, "format": form, "rows": len(frame)}
        say(args, record, f"wrote {len(frame):,} rows to {args.output}")


# ---------------------------------------------------------------- judging


def evaluation(model: ConditionalRankRLS, known: RelationFiles, args: Namespace) -> Any:
    """Held-out scores in each setting."""
    options = {"settings": args.settings, "n_splits": args.folds}
    if hasattr(model, "X_fit_") and args.features is None:
        model = clone(model).set_params(encoder=None)  # the stored objects are already encoded
    with reporting(not args.quiet, "judging"):
        if known.listed:
            return model.evaluate(known.X, known.edges, known.Z, **known.columns, **options)
        return model.evaluate(known.X, known.Y, known.Z, **options)


def data_for(model: ConditionalRankRLS | None, args: Namespace) -> RelationFiles:
    """The relation on which to judge a model, read in the way the model remembers."""
    if model is None:
        return relation_data.relation(args)
    return relation_data.relation(recalled(args, model), model)


def named(args: Namespace) -> Namespace:
    """Turn `evaluate DATA MODEL` into edges or a matrix, if the model is one of relations."""
    if len(args.scores) != 1 or args.edges or args.matrix or not learning.is_model(args.scores[0]):
        return args
    model = learning.load(args.scores[0])
    if not is_relation(model):
        return args
    how = "edges" if hasattr(model, "edge_columns_") else "matrix"
    return Namespace(**{**vars(args), how: args.data, "data": args.scores[0], "scores": []})


def evaluate(args: Namespace) -> None:
    """Judge models with these parameters, or with those of a model file, on held-out data."""
    model = load(args.data) if args.data else None
    known = data_for(model, args)
    found = evaluation(make(args, known) if model is None else model, known, args)
    record = {"settings": {str(s): {"mean": found.means()[s], "error": found.errors()[s]} for s in found}}
    say(args, record, f"{found}\n{LEGEND}")


LEGEND = (
    "what is new in setting 1: the edge, 2: its conditioning object, 3: the ranked object, 4: both, time: later "
    "edges;\nmeans over folds ± standard errors"
)


# ---------------------------------------------------------------- inspecting


def lists(model: ConditionalRankRLS, top: int) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the best rated objects."""
    errors = hasattr(model, "rating_std_")
    found = model.rating(return_std=True) if errors else model.rating().to_frame()
    rows = [[str(i), *(f"{v:+.4g}" if k == 0 else f"{v:.3g}" for k, v in enumerate(row))]
            for i, row in zip(found.index[:top], found.head(top).to_numpy(), strict=True)]  # fmt: skip
    return ["object", "rating", *(["s.e."] if errors else [])], rows


def remark_unsure(model: ConditionalRankRLS, top: int, args: Namespace) -> None:
    """Remark on top objects whose ratings rest on few edges: their standard errors are far above the usual."""
    if not hasattr(model, "rating_std_"):
        return
    found = model.rating(return_std=True)
    errors = found.to_numpy()[:, 1]
    unsure = [str(i) for i in found.index[:top][errors[:top] > UNSURE * np.median(errors)]]
    if unsure:
        few = ", ".join(unsure[:3]) + (", ..." if len(unsure) > 3 else "")
        remark(args, f"{few}: few edges, so a large standard error (s.e.); the true place may be far from this one")


def inspect(model: ConditionalRankRLS, args: Namespace) -> tuple[dict[str, Any], str]:
    """A description of a model of a relation."""
    curve, size = curve_of(model), sizes(model)
    record = {
        "class": type(model).__name__,
        **size,
        "relation": model.relation_,
        "chosen": learning.chosen(model),
        "columns": getattr(model, "edge_columns_", None),
        "reading": getattr(model, "reading_", None),
        "ids": [str(label) for label in model.source_ids_[:FEW]],
        "parameters": {k: v if isinstance(v, PLAIN) else repr(v) for k, v in model.get_params(False).items()},
        "curve": None if curve is None else curve.record(),
        "rating": {str(k): float(v) for k, v in model.rating().items()},
    }
    named = ", ".join(record["ids"][:3])
    head, rows = lists(model, args.top)
    lines = [
        f"{type(model).__name__}, {described(size)}",
        f"settled on {settled(model)}",
        f"ids of objects: {named}, ...",
    ]
    if read_as := in_words(model):
        lines.append(f"reads data with {read_as}")
    if hasattr(model, "edge_columns_"):
        lines.append("columns of edges: " + ", ".join(f"{k} = {v}" for k, v in model.edge_columns_.items()))
    lines += ["", "mean relation to all others" if model._one_domain else "mean score over all", table(head, rows)]
    if curve is not None:
        lines += ["", f"held out {model.scoring} {curve.score:.4f} at {curve.over} = {model.alpha_:.4g}"]
    return record, "\n".join(lines)
