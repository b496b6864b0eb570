"""The command line: train on one file, predict another, and compare with the oracle on the numbers in the files."""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np

from rankrls import cli, datasets

from . import oracles, problems
from .oracles import Linear, differences
from .rankers import loss, some_alpha, typical
from .trial import DeviationError, Refused


def command_line(t):
    """`rankrls train` and `rankrls predict` on LETOR, CSV or Parquet."""
    rows = problems.rows(t, m=(4, 16), n=(1, 5), weights=False, extreme=t.chance(0.3), offsets=t.chance(0.3))
    rows.dtype = np.float64
    rows.X[0, -1] = 1.0
    order = np.argsort(rows.qid, kind="stable")
    rows.X, rows.y, rows.qid = rows.X[order], rows.y[order], rows.qid[order]
    ours, theirs = loss(t)
    D = differences(rows.y, rows.qid, **theirs)
    alpha = some_alpha(t, typical(D @ oracles.ld(rows.X)), -4)
    kind = t.pick("txt", "txt.gz", "csv", "tsv", "parquet")
    t.let(X=rows.X, y=rows.y, qid=rows.qid)
    options = ["--alpha", repr(alpha), "--weighting", ours["weighting"], "--regression", repr(ours["regression"])]
    options += ["--tied-pairs", "yes" if ours["tied_pairs"] else "no", "--scale", "none"]
    if t.chance(0.3) and kind != "csv":
        options += ["--stream"] if kind in ("txt", "parquet") else []
    t.do(f"rankrls train rows.{kind} -o model {' '.join(options)}; rankrls predict model rows.{kind}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{kind}"
        write(rows, path, kind)
        run("train", str(path), "-o", f"{folder}/model", "--quiet", *options)
        run("predict", f"{folder}/model", str(path), "-o", f"{folder}/scores", "--quiet")
        found = np.loadtxt(f"{folder}/scores", ndmin=1)
    truth = Linear(rows.X, rows.y, D, alpha, rows.eps, intercept=theirs["beta"] > 0)
    t.close("scores", found, truth.scores(rows.X)[:, 0], truth.bounds(rows.X)[:, 0])


def write(rows, path, kind):
    if kind.startswith("txt"):
        datasets.dump_letor(datasets.RankingData(rows.X, rows.y, rows.qid), path)
        return
    import polars as pl

    columns = {f"f{j}": rows.X[:, j] for j in range(rows.X.shape[1])}
    frame = pl.DataFrame({"qid": rows.qid, "label": rows.y, **columns})
    if kind == "parquet":
        frame.write_parquet(path)
    else:
        names = "\t".join(frame.columns) if kind == "tsv" else ",".join(frame.columns)
        mark = "\t" if kind == "tsv" else ","
        path.write_text("\n".join([names, *(mark.join(map(repr, row)) for row in frame.rows())]) + "\n")


def run(*words):
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(list(words))
    if code == 0:
        return
    text = output.getvalue()
    if "should not happen" in text or "Traceback" in text:
        raise DeviationError(text)
    raise Refused(text[:200])


CATEGORIES = {"command line": command_line}
