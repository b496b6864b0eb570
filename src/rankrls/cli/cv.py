"""rankrls cv DATA"""

from __future__ import annotations

from argparse import Namespace
from pathlib import PurePath
from typing import Any

from . import learning
from .data import read
from .learning import Curve, Recorder
from .text import bars, number, say, sparkline, table, target


def run(args: Namespace) -> None:
    if args.plot:
        _figure()  # say now if that cannot be
    data = read(args.data, args)
    recorder, scoring = Recorder.of(args.scoring or "pairwise_accuracy")
    with learning.stopwatch() as seconds:
        model = learning.fit(learning.make(args, data, scoring), data)
    curve = learning.curve(model, recorder)
    if curve is None:
        raise ValueError("with --alpha (or --n-basis) given there is no curve: leave it out, or give --alphas")
    name = recorder.metric.name
    if args.plot:
        draw(curve, name, args.plot)
    record = {
        "data": args.data,
        "scoring": name,
        "held_out": curve.score,
        "chosen": learning.chosen(model),
        "curve": curve.record(),
        "seconds": round(seconds[0], 3),
    }
    head = f"{learning.described(data)}; {type(learning.ranker_of(model)).__name__} in {seconds[0]:.2f} s"
    say(args, record, f"{head}\n\n{text(curve, name)}\n\nchose {learning.settled(record['chosen'])}")


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


def draw(curve: Curve, name: str, path: str) -> None:
    """The curve as a picture."""
    figure = _figure()
    axes = figure.subplots()
    axes.errorbar(curve.values, curve.scores, yerr=curve.errors, marker="o", capsize=2, color="C0")
    axes.plot(curve.values[curve.chosen], curve.score, "o", color="C3", markersize=9, label="chosen")
    if curve.over == "alpha":
        axes.set_xscale("log")
    axes.set_xlabel(curve.over)
    axes.set_ylabel(f"held-out {name}" + ("" if curve.errors is None else ", with standard errors over queries"))
    axes.legend()
    form = PurePath(path).suffix.lstrip(".").lower()
    if form not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"--plot {path}: the name must end in .png, .svg or .pdf")
    with target(path) as file:
        figure.savefig(file, format=form, dpi=120)


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install 'rankrls[plot]'") from None
    return Figure(figsize=(7, 4.2), layout="constrained")
