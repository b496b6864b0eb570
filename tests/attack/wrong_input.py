"""Input that has no answer: a clear error, and a model that was fitted before stays as it was."""

import re

import numpy as np
from scipy import sparse

from rankrls import CoRankRLS, RankingPursuit, RankRLS, TransductiveRankRLS, kernels

from . import problems
from .rankers import UNSCALED
from .trial import DeviationError, Refused

INTERNAL = re.compile(
    r"broadcast|cannot reshape|out of bounds|singular matrix|infs or nans|leading minor|core dimension|"
    r"setting an array element|unhashable|subscriptable|has no attribute|unsupported operand|not callable|"
    r"should not happen|must be real|NoneType|mismatch in its",
    re.IGNORECASE,
)


def spoil(name):
    """Register a way to spoil a valid problem (X, y, qid, u, parameters)."""

    def register(function):
        WAYS[name] = function
        return function

    return register


WAYS = {}
for _value in (np.nan, np.inf, -np.inf):
    WAYS[f"X has {_value}"] = lambda t, a, value=_value: _set(a["X"], t, value)
    WAYS[f"y has {_value}"] = lambda t, a, value=_value: _set(a["y"], t, value)
    WAYS[f"weights have {_value}"] = lambda t, a, value=_value: a.update(u=_set(np.ones(len(a["y"])), t, value))


def _set(A, t, value):
    A[tuple(t.number(0, n - 1) for n in A.shape)] = value
    return A


@spoil("negative weight")
def _(t, a):
    a["u"] = _set(np.ones(len(a["y"])), t, -1.0)


@spoil("all weights zero")
def _(t, a):
    a["u"] = np.zeros(len(a["y"]))


@spoil("a row of y too few")
def _(t, a):
    a["y"] = a["y"][:-1]


@spoil("a row of qid too few")
def _(t, a):
    a["qid"] = a["qid"][:-1]


@spoil("a weight too many")
def _(t, a):
    a["u"] = np.ones(len(a["y"]) + 1)


@spoil("qid with NaN")
def _(t, a):
    a["qid"] = _set(a["qid"].astype(float), t, np.nan)


@spoil("qid with None")
def _(t, a):
    a["qid"] = _set(a["qid"].astype(object), t, None)


@spoil("nullable qid with NA")
def _(t, a):
    import pandas as pd

    a["qid"] = pd.Series([None, *a["qid"][1:].tolist()], dtype="Int64")


@spoil("string qid with NA")
def _(t, a):
    import pandas as pd

    a["qid"] = pd.Series([None, *map(str, a["qid"][1:])], dtype="string")


@spoil("qid of mixed types")
def _(t, a):
    a["qid"] = np.array([*a["qid"][:-1].tolist(), "x"], dtype=object)


@spoil("qid in two columns")
def _(t, a):
    a["qid"] = np.column_stack([a["qid"], a["qid"]])


@spoil("X in three dimensions")
def _(t, a):
    a["X"] = a["X"][:, :, None]


@spoil("X in one dimension")
def _(t, a):
    a["X"] = a["X"][:, 0]


@spoil("no rows")
def _(t, a):
    a.update(X=a["X"][:0], y=a["y"][:0], qid=a["qid"][:0])


@spoil("no columns")
def _(t, a):
    a["X"] = a["X"][:, :0]


@spoil("words in X")
def _(t, a):
    a["X"] = _set(a["X"].astype(object), t, "red")


@spoil("words in y")
def _(t, a):
    a["y"] = _set(a["y"].astype(object), t, "good")


@spoil("imaginary X")
def _(t, a):
    a["X"] = a["X"] + 1j


@spoil("imaginary y")
def _(t, a):
    a["y"] = a["y"] + 1j


@spoil("masked X")
def _(t, a):
    a["X"] = np.ma.masked_array(a["X"], mask=_set(np.zeros(a["X"].shape, bool), t, True))


@spoil("masked y")
def _(t, a):
    a["y"] = np.ma.masked_array(a["y"], mask=_set(np.zeros(a["y"].shape, bool), t, True))


@spoil("sparse X with NaN")
def _(t, a):
    a["X"] = sparse.csr_array(_set(a["X"], t, np.nan))


@spoil("no y")
def _(t, a):
    a["y"] = None


BAD = {
    "alpha": [-1.0, np.nan, np.inf, "automatic", None, [1.0], True],
    "kernel": ["rfb", 3, kernels.Gaussian(np.nan), kernels.Gaussian(-1.0), kernels.Gaussian("wide"), int],
    "weighting": ["pair", None, 1],
    "tied_pairs": ["yes", None],
    "regression": [-0.1, 1.5, np.nan, "some"],
    "scoring": ["accuracy@", "ndcg@x", 3, "ndgc"],
    "cv": ["leave", [], 1, 0, 10**6, 2.5],
    "basis": [0, -3, "all", np.zeros((2, 99)), np.array([10**6]), 1.5],
    "alphas": [[], [-1.0], [1.0, np.nan], "many"],
}
NEEDS = {"cv": {"alpha": "auto"}, "alphas": {"alpha": "auto"}, "basis": {"kernel": "rbf"}}
OF = {
    RankRLS: set(BAD),
    CoRankRLS: {"alpha", "weighting", "tied_pairs", "scoring"},
    TransductiveRankRLS: {"alpha", "kernel", "weighting", "scoring"},
    RankingPursuit: {"kernel", "weighting", "tied_pairs", "regression", "scoring"},
}


def wrong(t):
    """Fit a valid model, then ask it to fit invalid input."""
    cls = t.pick(RankRLS, RankRLS, CoRankRLS, TransductiveRankRLS, RankingPursuit)
    rows = problems.rows(t, m=(8, 16), n=(2, 4), weights=False, extreme=False, offsets=False)
    rows.qid = np.arange(len(rows.y)) % 3
    rows.y = t.rng.normal(size=len(rows.y))
    hidden = cls in (CoRankRLS, TransductiveRankRLS)
    y = np.where(rows.qid == 2, np.nan, rows.y) if hidden else rows.y
    base = {"alpha": 1.0}
    if cls is CoRankRLS:
        base |= {"nu": 1.0, "kernel": "rbf", "basis": 2, "random_state": 0}
    if cls in (RankingPursuit, CoRankRLS):  # which need rows that differ
        rows.X = t.rng.normal(size=rows.X.shape)
    if cls is RankingPursuit:
        base = {"n_basis": 1, "kernel": None}
    if cls is RankRLS:
        base |= UNSCALED
        if t.chance(0.3):
            base |= {"kernel": "rbf"}
    model = cls(**base).fit(rows.X, y, qid=rows.qid)
    before = model.predict(rows.X)
    arguments = {"X": rows.X.copy(), "y": y.copy(), "qid": rows.qid.copy(), "u": None}
    names = sorted(OF[cls])
    if t.chance(0.5):
        name = t.pick(*names)
        value = t.pick(*BAD[name])
        what = f"{name}={value!r}"
        params = base | NEEDS.get(name, {}) | {name: value}
        if name == "kernel" and isinstance(value, str) and cls is CoRankRLS:
            params |= {"basis": 2}
    else:
        what = t.pick(*(w for w in WAYS if not (hidden and w == "y has nan")))
        if cls is RankingPursuit and what == "y has nan":
            return
        if cls is TransductiveRankRLS and "weight" in what:
            return
        WAYS[what](t, arguments)
        params = base
    t.do(f"{cls.__name__}(**{params!r}).fit(...)  # {what}")
    refused(t, model, params, arguments, what, cls)
    model.set_params(**base)
    t.same(f"scores after a refused fit ({what})", model.predict(rows.X), before)
    raise Refused(what)


def refused(t, model, params, a, what, cls):
    extra = {} if a["u"] is None else {"sample_weight": a["u"]}
    try:
        model.set_params(**params)
        model.fit(a["X"], a["y"], qid=a["qid"], **extra)
    except (ValueError, TypeError, MemoryError) as error:
        if INTERNAL.search(str(error)) or len(str(error)) < 15:
            raise DeviationError(f"{what}: an error from inside: {type(error).__name__}: {error}") from error
        return
    raise DeviationError(f"{cls.__name__}: {what} was accepted")


CATEGORIES = {"wrong input": wrong}
