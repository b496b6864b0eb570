"""rankrls cv DATA"""

from __future__ import annotations

from argparse import Namespace
from pathlib import PurePath

from sklearn.base import BaseEstimator

from ..datasets import RankingData
from ..estimators.curve import Curve, curve_of, scoring_name
from ..estimators.pipelines import ranker_of
from ..plotting import HoldOutDisplay, PursuitPathDisplay
from ..plotting.style import check_matplotlib
from . import feedback, learning
from .data import read_to_learn
from .text import bars, check_target, number, say, sparkline, table, target


def run(args: Namespace) -> None:
    check_target(args.plot)
    if args.plot:
        check_matplotlib()  # fail now if matplotlib is missing
    data = read_to_learn(args)
    with learning.stopwatch() as seconds:
        model = learning.make(args, data)
        model = learning.fit(model, feedback.scored(model, data, args))
    curve, ranker = curve_of(model), ranker_of(model)
    if hasattr(ranker, "leaderboard_"):
        _leaderboard(args, data, ranker, seconds[0])
        return
    if curve is None:
        raise ValueError("with --alpha (or --n-basis) there is no curve: leave it out, or pass --alphas")
    if args.plot:
        draw(model, args.plot)
    name = scoring_name(ranker)
    record = {
        "data": args.data,
        "scoring": name,
        "held_out": curve.score,
        "chosen": learning.chosen(model),
        "curve": curve.record(),
        "seconds": round(seconds[0], 3),
    }
    head = f"{learning.described(data)}; {type(ranker).__name__} in {seconds[0]:.2f} s"
    say(args, record, f"{head}\n\n{text(curve, name)}\n\nchose {learning.settled(record['chosen'])}")


def _leaderboard(args: Namespace, data: RankingData, ranker: BaseEstimator, seconds: float) -> None:
    """The candidates of AutoRanker, best first."""
    if args.plot:
        raise ValueError("--plot draws the curve over alpha, but --method auto has a leaderboard instead")
    stack = {"candidate": "the stack", "score": ranker.cv_score_, "error": ranker.cv_error_, "weight": 1.0}
    rows = [
        [entry["candidate"], *(number(entry[key]) for key in ("score", "error", "weight"))]
        for entry in [stack, *ranker.leaderboard_]
    ]
    record = {"data": args.data, "scoring": str(ranker.scoring_), "held_out": ranker.cv_score_}
    record |= {"leaderboard": ranker.leaderboard_, "seconds": round(seconds, 3)}
    head = f"{learning.described(data)}; {type(ranker).__name__} in {seconds:.2f} s"
    say(args, record, f"{head}\n\n{table(['candidate', str(ranker.scoring_), 's.e.', 'weight'], rows)}")


def text(curve: Curve, name: str) -> str:
    """The curve as a table with bars, and as a line."""
    rows = []
    for i, bar in enumerate(bars(curve.scores.tolist())):
        error = [] if curve.errors is None else [number(curve.errors[i])]
        rows.append(
            [f"{curve.values[i]:.4g}", number(curve.scores[i]), *error, bar.ljust(24), "<" * (i == curve.chosen)]
        )
    head = [curve.over, name, *([] if curve.errors is None else ["s.e."]), "", ""]
    return f"{table(head, rows)}\n{sparkline(curve.scores.tolist())}"


def draw(model: BaseEstimator, path: str) -> None:
    """Write a plot of the curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    form = PurePath(path).suffix.lstrip(".").lower()
    if form not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"--plot {path}: the name must end in .png, .svg or .pdf")
    if hasattr(ranker_of(model), "path_"):
        PursuitPathDisplay.from_estimator(model, ax=figure.subplots())
    else:
        HoldOutDisplay.from_estimator(model, ax=figure.subplots())
    with target(path) as file:
        figure.savefig(file, format=form, dpi=120)
