"""One line of progress for every fit: phase, setting, fold, share done, time left; in logs, terminals, notebooks."""

import io
import re
import sys

import numpy as np
import pandas as pd
import pytest

from rankrls import (
    AutoRanker,
    ConditionalRankRLS,
    CoRankRLS,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    TwoStepRLS,
)
from rankrls.datasets import make_search
from rankrls.system.limits import limited

DATA = make_search(12, mean_documents=8, random_state=0)
HALF = np.where(DATA.qid < "q0006", DATA.y, np.nan)
A = np.random.default_rng(0).normal(size=(12, 3))
SOME = np.where(np.random.default_rng(1).random((12, 12)) < 0.3, np.nan, A @ A.T)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    pass


Notebook.__module__ = "ipykernel.iostream"

FITS = {
    "linear": lambda: RankRLS(verbose=True).fit(DATA.X, DATA.y, qid=DATA.qid),
    "kernel": lambda: RankRLS(verbose=True, kernel="rbf").fit(DATA.X, DATA.y, qid=DATA.qid),
    "sparse": lambda: RankRLS(verbose=True, kernel="rbf", basis=10).fit(DATA.X, DATA.y, qid=DATA.qid),
    "folds": lambda: RankRLS(verbose=True, cv=3).fit(DATA.X, DATA.y, qid=DATA.qid),
    "settings": lambda: RankRLS(verbose=True, tied_pairs="auto").fit(DATA.X, DATA.y, qid=DATA.qid),
    "co": lambda: CoRankRLS(verbose=True, basis=5).fit(DATA.X, HALF, qid=DATA.qid),
    "transductive": lambda: TransductiveRankRLS(verbose=True).fit(DATA.X, HALF, qid=DATA.qid),
    "pursuit": lambda: RankingPursuit(verbose=True, max_basis=3).fit(DATA.X, DATA.y, qid=DATA.qid),
    "auto": lambda: AutoRanker(verbose=True, effort="fast").fit(DATA.X, DATA.y, qid=DATA.qid),
    "relation": lambda: ConditionalRankRLS(verbose=True).fit(A, A @ A.T),
    "edges": lambda: ConditionalRankRLS(verbose=True, kernel="rbf").fit(A, SOME),
    "hidden": lambda: TransductiveRankRLS(verbose=True, kernel="rbf", fidelity="auto").fit(DATA.X, HALF, qid=DATA.qid),
    "one query": lambda: RankRLS(verbose=True, kernel="rbf", weighting="pairs").fit(DATA.X, DATA.y),
    "two-step": lambda: TwoStepRLS(verbose=True).fit(A, A @ A.T, A),
}


def printed(name, stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    with limited(silent_seconds=-1.0, redraw_seconds=-1.0):
        FITS[name]()
    return stream.getvalue()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FITS)
def test_every_fit_reports_progress(name, monkeypatch):
    text = printed(name, io.StringIO(), monkeypatch)
    assert " %" in text and "\r" not in text and "\x1b" not in text
    assert all(":" in line for line in text.splitlines())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_settings_and_folds_are_named_and_time_is_estimated(monkeypatch):
    assert "setting 2, " in printed("settings", io.StringIO(), monkeypatch)
    text = printed("edges", Terminal(), monkeypatch)
    assert re.search(r"fold \d of 5, conjugate gradients: \d+ %, .* left", text)
    assert "fold" not in printed("linear", io.StringIO(), monkeypatch)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_long_part_is_counted_and_named(monkeypatch):
    assert re.search(r"^alphas: \d+ %", printed("two-step", Terminal(), monkeypatch).replace("\r", "\n"), re.M)
    assert re.search(r"^fold \d of 5, ", printed("hidden", Terminal(), monkeypatch).replace("\r", "\n"), re.M)
    assert re.search(r"^link, fold", printed("auto", Terminal(), monkeypatch).replace("\r", "\n"), re.M)


@pytest.mark.parametrize("stream", [Terminal, Notebook])
def test_terminals_and_notebooks_rewrite_one_line(stream, monkeypatch):
    assert "\r" in printed("linear", stream(), monkeypatch)


def test_short_and_quiet_fits_print_nothing(capsys):
    RankRLS(verbose=True).fit(DATA.X, DATA.y, qid=DATA.qid)
    with limited(silent_seconds=-1.0):
        RankRLS().fit(DATA.X, DATA.y, qid=DATA.qid)
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nested_work_is_one_count(monkeypatch):
    """Iterations in folds in folds in settings: a single share that grows, however often the inner counts restart."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with limited(silent_seconds=-1.0, redraw_seconds=-1.0):
        ConditionalRankRLS(kernel="rbf", verbose=True).evaluate(A, SOME, settings=[1, 2], n_splits=2)
    lines = [line for line in stream.getvalue().split("\r") if line.startswith("setting 1, fold 2 of 2, inner fold ")]
    assert len(lines) > 3
    shares = [int(re.search(r"(\d+) %", line)[1]) for line in lines]
    assert shares == sorted(shares) and 20 <= shares[0] <= shares[-1] <= 50
    assert stream.getvalue().count(" in ") == 1  # one last line


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_long_calls_in_folds_are_part_of_the_whole(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with limited(silent_seconds=-1.0, long_call=0.0, redraw_seconds=-1.0):
        FITS["one query"]()
    lines = [line for line in stream.getvalue().split("\r") if re.match(r"fold \d+ of 10, decomposition", line)]
    shares = [int(re.search(r"(\d+) %, .* left", line)[1]) for line in lines]
    assert len(shares) >= 10 and shares == sorted(shares) and shares[0] < 20 and 80 <= shares[-1] < 100


def test_passes_over_blocks_count_as_what_they_are(monkeypatch, tmp_path):
    """Neither the sums of a block nor those of a sample count as the whole pass over the rows."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(DATA.X, columns=DATA.feature_names).assign(y=DATA.y, qid=DATA.qid)
    frame.to_parquet(tmp_path / "rows.parquet")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with limited(silent_seconds=-1.0, redraw_seconds=-1.0, threads=1, table_rows=5):
        AutoRanker(verbose=True, effort="fast").fit(tmp_path / "rows.parquet", "y", "qid")
    final = stream.getvalue().split("candidates: ")[-1]
    shares = [int(share) for share in re.findall(r"sums over rows: (\d+) %", final)]
    assert len(shares) > 20 and shares == sorted(shares) and np.diff(shares).max() < 20


def test_a_long_call_is_announced_with_the_time_it_will_take(capsys):
    with limited(silent_seconds=-1.0, long_call=0.0):
        RankRLS(kernel="rbf", verbose=True).fit(DATA.X, DATA.y, qid=DATA.qid)
    found = capsys.readouterr().err
    size = f"{len(DATA)} x {len(DATA)}"
    assert re.search(rf"decomposition of {size} values: 0 %, .* left", found)
    assert f"decomposition of {size} values: 100 % in" in found and "queries held out" in found
