"""Rows in blocks (iterators, functions, files, LazyFrames, DuckDB, Arrow) give the same model as rows in memory."""

import tempfile
from pathlib import Path

import numpy as np

from rankrls import RankRLS, datasets

from . import oracles, problems
from .left_out import Spent
from .oracles import Linear, differences
from .rankers import check_scores, given, loss, some_alpha, typical

KINDS = (
    "tuples",
    "tuples",
    "function",
    "frames",
    "parquet",
    "folder",
    "letor",
    "gzip",
    "lazy",
    "duckdb",
    "dataset",
    "reader",
)


def table(rows, qid, *, order=None, weights="w"):
    """A polars frame of the rows."""
    import polars as pl

    columns = {f"f{j}": rows.X[:, j].astype(rows.dtype) for j in range(rows.X.shape[1])}
    names = list(columns) if order is None else [f"f{j}" for j in order]
    columns = {name: columns[name] for name in names}
    columns |= {"y": rows.y, "qid": qid}
    if rows.u is not None:
        columns[weights] = rows.u
    return pl.DataFrame(columns)


def cuts(t, m):
    """The indices at which blocks end."""
    inner = np.sort(t.rng.permutation(np.arange(1, m))[: t.number(0, min(3, m - 1))]) if m > 1 else np.empty(0, int)
    return np.split(np.arange(m), inner)


def source(t, kind, rows, qid, folder):
    """(arguments of fit, a line for the script)."""
    named = {"y": "y", "qid": "qid", "sample_weight": None if rows.u is None else "w"}
    if kind in ("tuples", "function"):
        parts = [
            (rows.X[p].astype(rows.dtype), rows.y[p], qid[p], *([] if rows.u is None else [rows.u[p]]))
            for p in cuts(t, len(rows.y))
        ]
        return (
            {"X": iter(parts)} if kind == "tuples" else {"X": lambda: iter(parts)}
        ), f"{kind} of {len(parts)} blocks"
    frame = table(rows, qid)
    if kind == "frames":
        return {"X": iter([frame[p.tolist()] for p in cuts(t, len(rows.y))]), **named}, "frames in an iterator"
    if kind == "lazy":
        return {"X": frame.lazy(), **named}, "frame.lazy()"
    if kind == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.register("rows", frame.to_arrow())
        return {"X": connection.sql("select * from rows"), **named}, "a DuckDB relation"
    if kind in ("dataset", "reader"):
        import pyarrow.dataset as ds

        arrow = frame.to_arrow()
        made = ds.dataset(arrow) if kind == "dataset" else arrow.to_reader(max_chunksize=5)
        return {"X": made, **named}, f"a pyarrow {kind}"
    if kind in ("letor", "gzip"):
        path = Path(folder) / ("rows.txt" if kind == "letor" else "rows.txt.gz")
        datasets.dump_letor(datasets.RankingData(rows.X, rows.y, np.array([str(q) for q in qid])), path)
        return {"X": path}, "a LETOR file"
    if kind == "parquet":
        frame.write_parquet(Path(folder) / "rows.parquet")
        return {"X": Path(folder) / "rows.parquet", **named}, "a Parquet file"
    for i, p in enumerate(cuts(t, len(rows.y))):
        frame[p.tolist()].write_parquet(Path(folder) / f"part{i}.parquet")
    return {"X": Path(folder), **named}, "a folder of Parquet files"


def blocks(t):
    """Fit from blocks, and possibly learn and forget more of them from another source."""
    kind = t.pick(*KINDS)
    rows = problems.rows(t, m=(4, 20), n=(1, 6), offsets=t.chance(0.3), extreme=t.chance(0.5))
    whole = kind in ("tuples", "function", "frames", "letor", "gzip", "reader")  # rows of a query stand together
    if kind in ("letor", "gzip"):
        rows.u, rows.dtype = None, np.float64
        rows.X[0, -1] = 1.0  # the last column is there
    if whole:
        order = np.argsort(rows.qid, kind="stable")
        new, rows = rows.new, rows.take(order)
        rows.new = new
    ours, theirs = loss(t)
    kept = rows.take(given(rows))
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    alpha = some_alpha(t, typical(D @ oracles.ld(kept.X)))
    qid = problems.labelled(t, rows.qid, types=("int", "str"))
    t.let(X=rows.X.astype(rows.dtype), y=rows.y, qid=qid, u=rows.u)
    with tempfile.TemporaryDirectory() as folder:
        arguments, line = source(t, kind, rows, qid, folder)
        t.do(f"model = RankRLS({alpha!r}, **{ours!r}).fit(...)  # {line}")
        with t.may_refuse():
            model = RankRLS(alpha, **ours).fit(**arguments)
    eps = rows.eps if kind not in ("letor", "gzip") else problems.DOUBLE
    truth = Linear(kept.X, kept.y, D, alpha, eps, u=kept.u, intercept=theirs["beta"] > 0)
    check_scores(t, model, truth, rows)


def more_blocks(t):
    """A model of named columns learns more from tables with columns in another order, and forgets them again."""
    rows = problems.rows(t, m=(8, 20), n=(2, 5), offsets=False, extreme=False)
    ours, theirs = loss(t)
    ours["weighting"] = theirs["weighting"] = t.pick("pairs", "items")
    new, rows = rows.new, rows.take(np.argsort(rows.qid, kind="stable"))
    rows.new = new
    half = rows.qid < max(1, (rows.qid.max() + 1) // 2)
    first, second = np.flatnonzero(half), np.flatnonzero(~half)
    every = given(rows)
    D = differences(rows.y[every], rows.qid[every], u=None if rows.u is None else rows.u[every], **theirs)
    alpha = some_alpha(t, typical(D @ oracles.ld(rows.X[every])))
    qid = rows.qid
    t.let(X=rows.X.astype(rows.dtype), y=rows.y, qid=qid, u=rows.u)
    if not len(second) or (rows.u is not None and not (rows.u[first].any() and rows.u[second].any())):
        return
    order, kind = t.rng.permutation(rows.X.shape[1]), t.pick("lazy", "parquet", "frames", "frame")
    t.do(f"# learn {first.tolist()}, then {second.tolist()} from {kind} with columns {order.tolist()}")
    named = {"y": "y", "qid": "qid", "sample_weight": None if rows.u is None else "w"}
    forget = t.chance(0.5)
    with tempfile.TemporaryDirectory() as folder, t.may_refuse():
        model = RankRLS(alpha, **ours).partial_fit(table(rows.take(first), qid[first]).lazy(), **named)
        for step in ("partial_fit", "forget") if forget else ("partial_fit",):
            other = table(rows.take(second), qid[second], order=order)
            if kind == "parquet":
                other.write_parquet(Path(folder) / "more.parquet")
            given_ = {
                "lazy": other.lazy(),
                "parquet": Path(folder) / "more.parquet",
                "frames": iter([other]),
                "frame": other,
            }
            getattr(model, step)(given_[kind], **named)
    kept = first if forget else np.arange(len(rows.y))
    kept = kept if rows.u is None else kept[rows.u[kept] > 0]
    part, full = rows.take(kept), rows.take(every)
    D2 = differences(part.y, part.qid, u=part.u, **theirs)
    if not len(D2):
        return
    spent = Spent(full.X, full.y, D, full.u, theirs["beta"])
    truth = Linear(part.X, part.y, D2, alpha, rows.eps, u=part.u, intercept=theirs["beta"] > 0, spent=spent)
    check_scores(t, model, truth, rows)


CATEGORIES = {"rows in blocks and files": blocks, "sums from other tables": more_blocks}
