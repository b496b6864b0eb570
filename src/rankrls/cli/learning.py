"""From options to a fitted estimator, and a description of it."""

from __future__ import annotations

import inspect
import shutil
import sys
import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .. import bases, estimators, persistence
from ..auto import AutoRanker
from ..core.views import View
from ..datasets import RankingData
from ..estimators.pipelines import learned, ranker_of
from ..estimators.rows.intake import query_column
from ..kernels import as_kernel
from ..system.limits import limits
from ..system.warnings import warn
from ..tables import PlainTable, TableEncoder
from .data import complete
from .options import METHODS, PARAMETERS
from .options.parser import did_you_mean
from .tables import listed
from .text import is_stream, plural, source, target

NAMES = [one.name for one in PARAMETERS]
OF_KERNEL = ("gamma", "degree", "coef0")
BASES = {"random": bases.RandomRows, "kmeans": bases.KMeansCentres, "cholesky": bases.PivotedCholesky}
SPARSE_POINTS = 500  # points of --method sparse if --basis is not given
STREAMED = RankingData(np.empty((SPARSE_POINTS, 0)), np.empty(SPARSE_POINTS))  # stands in for rows not in memory


# ---------------------------------------------------------------- making an estimator


def make(args: Namespace, data: RankingData) -> Any:
    """The unfitted estimator that the options describe, after its scaler."""
    if args.method == "conditional":
        raise ValueError("relations have no curve over queries: judge them with rankrls evaluate --settings 1,2,3,4")
    cls = AutoRanker if METHODS[args.method] == AutoRanker.__name__ else getattr(estimators, METHODS[args.method])
    known = inspect.signature(cls).parameters
    given = {key: getattr(args, key) for key in NAMES if getattr(args, key) is not None}
    encoder = _encoder(False if "relative" in known else given.pop("relative", False), data)
    if args.method == "sparse":
        given = {"kernel": "rbf", "basis": min(SPARSE_POINTS, len(data)), **given}
    for key in given:
        if key not in known and key not in OF_KERNEL:
            takes = ", ".join(f"--{other.replace('_', '-')}" for other in NAMES if other in known)
            raise ValueError(
                f"--{key.replace('_', '-')} cannot be combined with --method {args.method}, which takes {takes}"
            )
    of_kernel = {key: given.pop(key) for key in OF_KERNEL if key in given}
    if "kernel" in given or of_kernel:
        given["kernel"] = kernel(given.get("kernel", known["kernel"].default), of_kernel)
    if isinstance(given.get("basis"), tuple):
        method, size = given["basis"]
        given["basis"] = BASES[method](size)
    if isinstance(given.get("views"), list):
        shared = [given.get(key, known[key].default) for key in ("kernel", "basis")]
        given["views"] = _views(given["views"], shared, data)
    if not isinstance(given.get("positive", True), bool):
        given["positive"] = _signs(given["positive"], data, encoder)
    if "scale" in known and args.scale != "auto":
        given["scale"] = None
    ranker = cls(**given, verbose=not args.quiet)
    steps = [step for step in (encoder, _scaler(args.scale, sparse.issparse(data.X))) if step is not None]
    return make_pipeline(*steps, ranker) if steps else ranker


def _encoder(relative: bool | str, data: RankingData) -> TableEncoder | None:
    """The encoder of a table, if it needs one."""
    if isinstance(data.X, PlainTable):
        return TableEncoder(relative=relative)
    if relative:
        raise ValueError(
            "--relative is for encoded tables in memory: pass --encode yes, or use --method auto, which uses ranks "
            "within the query anyway"
        )
    return None


def kernel(name: Any, options: dict[str, Any]) -> Any:
    """A kernel by name with its options; None for a linear model."""
    if name in (None, "linear", "none"):
        if options:
            raise ValueError(f"--{next(iter(options))} needs a kernel, such as --kernel rbf")
        return None
    if name == "precomputed":
        raise ValueError("--kernel precomputed needs a matrix of kernel values: use the library from Python")
    kernel = as_kernel(name)
    if "gamma" in options and options["gamma"] not in ("scale", "auto"):
        try:
            options["gamma"] = float(options["gamma"])
        except ValueError:
            raise ValueError(f"--gamma is a number, scale or auto, got {options['gamma']!r}") from None
    return kernel.set_params(**options) if options else name


def _views(groups: list[list[str]], shared: list[Any], data: RankingData) -> list[View]:
    """Views of groups of columns, by name or by number from 1, ranges included."""
    kernel, basis = shared
    names = {} if data.feature_names is None else {name: j for j, name in enumerate(data.feature_names)}
    views = []
    for group in groups:
        columns: list[int] = []
        for word in group:
            first, _, last = word.strip().partition("-")
            if word.strip() in names:
                columns.append(names[word.strip()])
            elif first.isdecimal() and (last or first).isdecimal() and int(first) > 0:
                columns.extend(range(int(first) - 1, int(last or first)))
            else:
                raise ValueError(f"--views: {word!r} is not a column; columns are named, or numbered from 1 as in 1-10")
        views.append(View(columns, kernel, basis if kernel is not None else None))
    return views


def _signs(given: Any, data: RankingData, encoder: TableEncoder | None) -> dict[Any, int]:
    """Signs of weights by column: by name, or by number from 1 if columns have no names."""
    signs = given if isinstance(given, dict) else dict.fromkeys(given, 1)
    if data is STREAMED:
        return signs
    if encoder is not None:
        with warnings.catch_warnings(action="ignore"):  # warnings appear when the model is fitted
            encoded = clone(encoder).fit(data.X, np.nan_to_num(data.y), data.qid)
        names, columns = encoded.get_feature_names_out().tolist(), data.feature_names
    else:
        names = columns = data.feature_names or [str(j) for j in range(1, data.X.shape[1] + 1)]
    for name in signs:
        if name not in names:
            what = "is not encoded as one column" if name in columns else "is not a column"
            raise ValueError(
                f"--positive: {name!r} {what}{did_you_mean(name, names) or f'; there are {listed(names)}'}"
            )
    return {names.index(name): sign for name, sign in signs.items()}


def _scaler(name: str, is_sparse: bool) -> Any:
    if is_sparse and name not in ("auto", "none", "standard"):
        raise ValueError(
            f"--scale {name} would make sparse rows dense: use --scale standard, which keeps zeros, or leave out "
            "--sparse"
        )
    if name == "standard":
        return StandardScaler(with_mean=not is_sparse)
    return {"auto": None, "none": None, "minmax": MinMaxScaler(), "query-minmax": estimators.PerQueryMinMax()}[name]


def fit(model: BaseEstimator, data: RankingData) -> Any:
    """Fit a model to data; it remembers the names of the columns."""
    complete(data)
    _warn_about_data(model, data)
    unscored = np.isnan(data.y)
    if unscored.any() and not getattr(ranker_of(model), "_skips_unscored", False):
        raise ValueError(
            f"{unscored.sum()} of {len(data)} rows have no label, the first is row {np.argmax(unscored) + 1}: "
            "remove them, or use --method co or transductive, which learn from them"
        )
    ranker = ranker_of(model)
    learned(model, data.X, data.y, data.qid)
    ranker.verbose = False  # in the model file, too
    name_features(model, data)
    return model


def name_features(model: BaseEstimator, data: RankingData) -> None:
    """Store the names of the columns in the model; an encoder already has them."""
    if data.feature_names is not None and not isinstance(data.X, PlainTable):
        names = np.array(data.feature_names, dtype=object)
        for step in [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]:
            step.feature_names_in_ = names


def _warn_about_data(model: BaseEstimator, data: RankingData) -> None:
    """Warn about data that look like a mistake, or like hours of work."""
    if isinstance(data.X, np.ndarray | PlainTable) and data.feature_names is not None:
        places = {name: j for j, name in enumerate(data.feature_names)}
        text = isinstance(data.X, PlainTable)
        column = lambda name: data.X[name] if text else data.X[:, places[name]]
        found = query_column(places, column, given=data.qid is not None)
        if found is not None and text and data.qid is None:
            raise ValueError(
                f"column {found!r} looks like query ids: pass --qid {found}, or leave it out with --exclude"
            )
        if found is not None:
            remedy = "" if data.qid is not None else f"pass --qid {found}, or "
            warn(
                f"column {found!r} looks like query ids, but is used as a feature: {remedy}leave it out with --exclude"
            )
    ranker = ranker_of(model)
    whole = getattr(ranker, "kernel", None) is not None and getattr(ranker, "basis", 1) is None
    if whole and isinstance(ranker, estimators.RankRLS) and len(data) > limits.kernel_rows:
        warn(
            f"a kernel model of all {len(data):,} rows takes long, as time grows with the cube of their number: "
            "--basis 500 uses 500 points, which is often as good"
        )


# ---------------------------------------------------------------- files


def save(model: BaseEstimator, path: str) -> None:
    """Write a model to a file, to standard output (-) or to a device."""
    if not is_stream(path):
        persistence.save(model, path)
        return
    with tempfile.TemporaryDirectory() as folder:
        persistence.save(model, f"{folder}/model")
        with open(f"{folder}/model", "rb") as whole, target(path) as file:
            shutil.copyfileobj(whole, file)


def load(path: str) -> Any:
    """Read a model; - is standard input."""
    if path != "-":
        return persistence.load(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard input"
        with source(path, quiet=True) as file:
            copy.write_bytes(file.read())
        try:
            return persistence.load(copy)
        except persistence.ModelFileError as error:
            raise persistence.ModelFileError(str(error).replace(str(copy), "standard input")) from None


def is_model(path: str) -> bool:
    """True if a file is a model."""
    if path == "-":
        return False
    with open(path, "rb") as file:
        return file.read(len(persistence.MAGIC)) == persistence.MAGIC


# ---------------------------------------------------------------- describing


def chosen(model: BaseEstimator) -> dict[str, Any]:
    """The values that a fit chose, by name."""
    ranker, found = ranker_of(model), {}
    for name in ("alpha", "nu", "fidelity", "n_basis", "tied_pairs"):
        value = getattr(ranker, f"{name}_", None)
        if value is not None:
            found[name] = bool(value) if name == "tied_pairs" else value
    if hasattr(ranker, "leaderboard_"):
        found["candidates"] = [entry["candidate"] for entry in ranker.leaderboard_ if entry["weight"] > 0]
    gamma = getattr(getattr(ranker, "kernel_", None), "gamma", None)
    return found if gamma is None else {**found, "gamma": float(gamma)}


def settled(values: dict[str, Any]) -> str:
    """The chosen values in words."""
    return ", ".join(f"{name} = {_shown(value)}" for name, value in values.items())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " + ".join(map(_shown, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def described(data: RankingData) -> str:
    """The size of data in words."""
    queries = 1 if data.qid is None else len(np.unique(data.qid))
    return f"{plural(len(data), 'row')}, {plural(queries, 'query')}, {plural(data.X.shape[1], 'feature')}"


@contextmanager
def stopwatch() -> Iterator[list[float]]:
    """Yield a list that gets the elapsed seconds at the end of the block."""
    seconds: list[float] = []
    start = time.perf_counter()
    yield seconds
    seconds.append(time.perf_counter() - start)


def out(path: str) -> Any:
    """Where to print messages if the result goes to `path`: standard error if that is standard output."""
    return sys.stderr if path == "-" else sys.stdout
