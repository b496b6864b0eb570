"""Random ranking problems, with everything that goes wrong in practice.

The values of a problem are exactly those the library is given (rounded to float32 where it gets float32), so that the
oracles start from the same numbers.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

DOUBLE, SINGLE = 2.0**-52, 2.0**-23


@dataclass
class Rows:
    """Rows to rank, their labels, queries (numbers 0, 1, ...) and weights (or None)."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    u: np.ndarray | None
    dtype: type = np.float64
    new: np.ndarray = field(default=None)  # rows to predict besides

    @property
    def eps(self):
        return SINGLE if self.dtype == np.float32 else DOUBLE

    def take(self, rows):
        return Rows(self.X[rows], self.y[rows], self.qid[rows], None if self.u is None else self.u[rows], self.dtype)


def rows(t, *, m=(3, 24), n=(1, 8), weights=True, extreme=True, several=False, queries=6, offsets=True):
    """A random problem of a trial t; values are `extreme` everywhere, nowhere, or in labels only (extreme="labels")."""
    m, n = t.number(*m), t.number(*n)
    qid = _queries(t, m, queries)
    X, new = np.split(_features(t, m + 5, n, np.resize(qid, m + 5), extreme is True, offsets), [m])
    y = np.column_stack([_labels(t, m, extreme) for _ in range(t.number(2, 3))]) if several else _labels(t, m, extreme)
    u = _weights(t, m, extreme is True) if weights else None
    found = Rows(X, y, qid, u, np.float64, new)
    kind = t.pick("double", "double", "double", "single", "whole")
    if kind == "single" and np.abs(found.X).max(initial=0) < 1e30 and np.abs(found.new).max(initial=0) < 1e30:
        found.dtype = np.float32
        found.X, found.new = found.X.astype(np.float32).astype(float), found.new.astype(np.float32).astype(float)
    elif kind == "whole" and np.abs(found.X).max(initial=0) < 1e6:
        found.dtype = t.pick(np.int64, np.int32, np.int16 if np.abs(found.X).max(initial=0) < 3e4 else np.int64)
        found.X, found.new = np.rint(found.X), np.rint(found.new)
        if np.abs(found.new).max(initial=0) > 3e4:
            found.dtype = np.int64
    return found


def _queries(t, m, most):
    q = t.number(1, min(most, m))
    qid = np.concatenate([np.arange(q), t.rng.integers(0, q, m - q)])
    return t.pick(np.sort(qid), t.rng.permutation(qid), t.rng.permutation(qid), np.sort(qid)[::-1].copy())


def _features(t, m, n, qid, extreme, offsets):
    X = t.rng.normal(size=(m, n))
    if t.chance(0.3):
        X = np.rint(X * t.pick(1, 3))
    if t.chance(0.3):
        X *= 10.0 ** t.rng.integers(-3, 4, n)
    if t.chance(0.3):
        X += 3 * t.rng.normal(size=(qid.max() + 1, n))[qid]
    if t.chance(0.2) and m > 3:
        X[t.rng.integers(m, size=2)] = X[0]
    if t.chance(0.15):
        X[:, t.number(0, n - 1)] = t.pick(0.0, 1.0, -2.5)
    if t.chance(0.15) and n > 1:
        X[:, 0] = X[:, 1] * t.pick(1.0, -2.0, 3.7)
    if t.chance(0.15):
        X[t.rng.random(X.shape) < 0.6] = 0.0
    if offsets and t.chance(0.15):
        X += t.pick(1e2, 1e4, 1e6, 1e8)
    if extreme and t.chance(0.12):
        X *= t.pick(1e-150, 1e-100, 1e-60, 1e-30, 1e-12, 1e-8, 1e8, 1e12, 1e30, 1e60, 1e100, 1e150)
    return X


def _labels(t, m, extreme):
    y = t.pick(
        lambda: t.rng.integers(0, 3, m).astype(float),
        lambda: t.rng.integers(0, 2, m).astype(float),
        lambda: t.rng.normal(size=m),
        lambda: t.rng.integers(-2, 3, m) * 0.1,
        lambda: np.rint(t.rng.exponential(2.0, size=m)),
    )()
    if t.chance(0.08):
        y = y + t.pick(1e3, 1e6, -1e9)
    if extreme and t.chance(0.08):
        y = y * t.pick(1e-150, 1e-60, 1e-20, 1e20, 1e60, 1e150)
    return y


def _weights(t, m, extreme):
    if t.chance(0.5):
        return None
    u = t.pick(
        lambda: t.rng.integers(1, 4, m).astype(float),
        lambda: t.rng.uniform(0.2, 3.0, m),
        lambda: np.full(m, t.pick(0.5, 1.0, 2.0, 7.0)),
        lambda: 10.0 ** t.rng.uniform(-2, 2, m),
        lambda: 10.0 ** t.rng.uniform(-12, 12, m) if extreme else t.rng.uniform(0.5, 2, m),
    )()
    if t.chance(0.15):
        u = u * t.power(-12, 12)
    if extreme and t.chance(0.03):
        with np.errstate(over="ignore"):
            u = np.minimum(u * t.pick(1e-290, 1e-160, 1e-100, 1e100, 1e150, 1e290), 1e307)
    if t.chance(0.15):
        u[t.rng.random(m) < 0.3] = 0.0
        u[t.number(0, m - 1)] = 1.0
    return u


# ---------------------------------------------------------------- what the library is given

FORMATS = ("array", "array", "array", "fortran", "strided", "list", "csr", "csc", "coo", "pandas", "polars", "arrow")


def dressed(t, X, dtype=np.float64, *, formats=FORMATS):
    """X in one of the forms users have; the form's name goes into the script."""
    kind = t.pick(*formats)
    X = X.astype(dtype)
    if kind == "fortran":
        return np.asfortranarray(X)
    if kind == "strided":
        wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 7, dtype=X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if kind == "list":
        return X.tolist() if dtype != np.float32 else X
    if kind in ("csr", "csc", "coo"):
        return getattr(sparse, f"{kind}_{t.pick('array', 'matrix')}")(X)
    if kind == "array":
        X.setflags(write=t.chance(0.5))
        return X
    return framed(t, {f"f{j}": X[:, j] for j in range(X.shape[1])}, kind)


def framed(t, columns, kind):
    """A table of this kind, with named columns."""
    if kind == "pandas":
        import pandas as pd

        index = t.pick(None, t.rng.permutation(len(next(iter(columns.values())))) + 10)
        return pd.DataFrame({name: np.asarray(v) for name, v in columns.items()}, index=index)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame({name: np.asarray(v) for name, v in columns.items()})
    import pyarrow as pa

    return pa.table({name: pa.array(np.asarray(v).tolist(), _arrow_type(pa, v)) for name, v in columns.items()})


def _arrow_type(pa, values):
    kind = np.asarray(values).dtype
    return None if kind.kind in "UO" else pa.from_numpy_dtype(kind)


QID_TYPES = (
    "int",
    "int",
    "negative",
    "uint8",
    "str",
    "object",
    "float",
    "list",
    "series",
    "nullable",
    "string",
    "category",
    "date",
    "polars",
)


def labelled(t, qid, *, types=QID_TYPES):
    """Query ids of some type, equal where the numbers are, in any order."""
    names = t.rng.permutation(100)[: int(qid.max()) + 1] if len(qid) else np.empty(0, int)
    ids, kind = names[qid] if len(qid) else qid, t.pick(*types)
    words = np.array([f"q{i}" for i in ids])
    plain = {
        "int": lambda: ids,
        "negative": lambda: ids - 50,
        "uint8": lambda: ids.astype(np.uint8),
        "str": lambda: words,
        "object": lambda: words.astype(object),
        "float": lambda: ids / 4.0,
        "list": lambda: ids.tolist(),
        "date": lambda: np.datetime64("2026-01-01") + ids,
    }
    if kind in plain:
        return plain[kind]()
    if kind == "polars":
        import polars as pl

        return pl.Series("qid", t.pick(ids, words))
    import pandas as pd

    series = pd.Series(ids if kind in ("series", "nullable") else words)
    return series.astype({"series": "int64", "nullable": "Int64", "string": "string", "category": "category"}[kind])
