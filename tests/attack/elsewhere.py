"""CoRankRLS and TransductiveRankRLS from files and blocks, compared with the same rows in memory."""

import tempfile
import warnings

import numpy as np

from rankrls import CoRankRLS, TransductiveRankRLS, View

from . import problems
from .blocks import source
from .oracles import LD, Linear, differences, ld
from .rankers import asked, some_alpha, typical
from .semisupervised import partly, stacked, unscaled

FILES = ("parquet", "folder", "lazy", "duckdb", "dataset", "function")


def views_of_files(t):
    """Co-regularised linear views of rows in blocks, compared with the least-squares problem of all of them."""
    rows = problems.rows(t, m=(6, 18), n=(2, 5), extreme=False, queries=4, offsets=False, weights=False)
    order = np.argsort(rows.qid, kind="stable")
    new, rows = rows.new, rows.take(order)
    rows.new, rows.y = new, partly(t, rows)
    n, cut = rows.X.shape[1], t.number(1, rows.X.shape[1] - 1)
    columns = [list(range(cut)), list(range(cut, n))]
    weighting, nu = t.pick("pairs", "queries", "items"), t.pick(0.0, 1.0, t.power(-3, 2))
    known, hidden = np.flatnonzero(~np.isnan(rows.y)), np.flatnonzero(np.isnan(rows.y))
    D = differences(rows.y[known], rows.qid[known], weighting=weighting)
    E = differences(np.zeros(len(hidden)), rows.qid[hidden], weighting=weighting)
    Phi = [ld(rows.X[:, c]) for c in columns]
    alpha = some_alpha(t, max(typical(D @ P[known]) for P in Phi), -3)
    kind = t.pick(*FILES)
    t.let(X=rows.X.astype(rows.dtype), y=rows.y, qid=rows.qid)
    ours = {"weighting": weighting, "tied_pairs": True, **unscaled(CoRankRLS)}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        arguments, line = source(t, kind, rows, rows.qid, folder)
        t.do(f"CoRankRLS({alpha!r}, {nu!r}, views=[View(c) for c in {columns!r}], **{ours!r}).fit(...)  # {line}")
        warnings.filterwarnings("ignore", "no query has two of the")
        with t.may_refuse():
            model = CoRankRLS(alpha, nu, views=[View(c) for c in columns], **ours).fit(**arguments)
    big = stacked(Phi, rows.y, known, hidden, D, E, nu)
    truth = Linear(*big, alpha, rows.eps)
    Z = np.zeros((len(rows.new), n), LD)
    found = model.predict_views(asked(model, rows.new.astype(rows.dtype)))
    for v, c in enumerate(columns):
        Z[:] = 0
        Z[:, c] = ld(rows.new[:, c])
        t.close(f"view {v} of new rows", found[:, v], truth.scores(Z)[:, 0], truth.bounds(Z)[:, 0])


def transduction_of_files(t):
    """Transduction of rows in blocks, compared with the same rows in memory."""
    rows = problems.rows(t, m=(6, 16), n=(1, 4), extreme=False, queries=5, offsets=False, weights=False)
    order = np.argsort(rows.qid, kind="stable")
    new, rows = rows.new, rows.take(order)
    rows.new, rows.y = new, partly(t, rows, whole=True)
    if np.isnan(rows.y).all() or not np.isnan(rows.y).any():
        return
    weighting, fidelity = t.pick("pairs", "queries", "items"), t.power(-2, 2)
    filled = np.nan_to_num(rows.y)
    D = differences(filled, rows.qid, weighting=weighting)
    alpha = some_alpha(t, typical(D @ ld(rows.X)), -2)
    kind = t.pick(*FILES)
    ours = {"weighting": weighting, **unscaled(TransductiveRankRLS)}
    t.let(X=rows.X.astype(rows.dtype), y=rows.y, qid=rows.qid)
    with tempfile.TemporaryDirectory() as folder, t.may_refuse():
        arguments, line = source(t, kind, rows, rows.qid, folder)
        t.do(f"TransductiveRankRLS({alpha!r}, {fidelity!r}, **{ours!r}).fit(...)  # {line}")
        model = TransductiveRankRLS(alpha, fidelity, **ours).fit(**arguments)
        memory = TransductiveRankRLS(alpha, fidelity, **ours).fit(rows.X.astype(rows.dtype), rows.y, rows.qid)
    known = np.nanmax(np.abs(rows.y))
    truth = Linear(rows.X, np.full(len(filled), known), D, alpha, rows.eps)
    A = ld(rows.new.astype(rows.dtype))
    expected = memory.predict(rows.new.astype(rows.dtype))
    # both ways round the normal equations of the differences, once for the scores and once for the model
    reach = np.sqrt(np.sum(A * A, axis=1)) * np.sqrt(truth.inverse)
    length = np.linalg.norm(np.nan_to_num(rows.y)) + np.linalg.norm(memory.transduction_)
    bound = truth.roundings * rows.eps * truth.inverse * truth.top * reach * length * np.sqrt(LD(len(D)))
    t.close("scores of new rows", model.predict(asked(model, rows.new.astype(rows.dtype))), expected, bound)


CATEGORIES = {"views of files": views_of_files, "transduction of files": transduction_of_files}
