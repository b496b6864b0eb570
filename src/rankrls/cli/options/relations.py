"""Options for relations: drug-target tables, games, users and items. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from typing import Any

from .learning import Parameter
from .values import auto_or

VALUES = ("as-is", "minus", "log", "minus-log")


def settings(text: str) -> list[Any]:
    """1,2,3,4 or time."""
    found: list[Any] = [part if part == "time" else int(part) for part in text.split(",")]
    if any(part not in (1, 2, 3, 4, "time") for part in found):
        raise ValueError
    return found


def names(text: str) -> Any:
    """One name, or several of them."""
    parts = text.split(",")
    return parts[0] if len(parts) == 1 else parts


PARAMETERS = [  # those of ConditionalRankRLS that other estimators lack
    Parameter(
        "relation", str, "KIND", "symmetric, or reciprocal (games)", "none; reciprocal without --y or if it is A - B"
    ),
    Parameter(
        "pairwise",
        names,
        "KERNEL",
        "how both ends combine: kronecker, sum, or both to choose",
        "kronecker; games: both; ids: sum",
    ),
    Parameter("loss", str, "LOSS", "ranking or regression", "ranking"),
    Parameter("condition", str, "END", "which end others are ranked for: source or target", "source"),
    Parameter("target_kernel", str, "NAME", "kernel of --target-features, if different", "that of --features"),
    Parameter("indefinite", str, "WHAT", "similarities with negative eigenvalues: error, clip or shift", "error"),
    Parameter("solver", str, "NAME", "auto, closed, cg, pcg or cr", "auto"),
    Parameter("target_basis", int, "N", "basis points of the other end", "as --basis"),
    Parameter("tol", float, "T", "relative residual at which iterations stop", "1e-6"),
    Parameter("max_iter", auto_or(int), "N", "iterations at most; auto chooses by hold-out", "1000"),
]


def data(made: argparse.ArgumentParser) -> None:
    """Where the edges and the objects are."""
    group = made.add_argument_group("relations", "tables with names: CSV, TSV or Parquet, or text with tabs or blanks")
    group.add_argument("--edges", metavar="FILE", help="a row for each edge: a game, a rating, a measured pair")
    group.add_argument(
        "--matrix", metavar="FILE", help="alternative to --edges: a table of values with named rows and columns"
    )
    group.add_argument(
        "--features", metavar="FILE", help="a row for each object, or their similarities; ids come first"
    )
    group.add_argument("--target-features", metavar="FILE", help="the same for the other end, if it is of another kind")
    group.add_argument("--id", metavar="COLUMN", help="id column in feature files (default: the first)")
    for name, what in (
        ("source", "column of the start of an edge (source, winner, home_team, user, ...)"),
        ("target", "column of its end (target, loser, away_team, item, ...)"),
        ("y", "value of an edge, or a difference: 'home_score - away_score'"),
        ("date", "when an edge was seen (default for --half-life and --settings time: the column with that name)"),
        ("home", "1 where the source is at home; yes means everywhere, 'not neutral' the opposite of a column"),
        ("weight", "how much an edge counts"),
    ):
        group.add_argument(f"--{name}", metavar="COLUMN", help=what)
    group.add_argument("--half-life", metavar="AGE", help="age at which an edge counts half: 365d, 52w, 2y")
    group.add_argument("--values", choices=VALUES, help="transformation of the values, logs to base 10 (default as-is)")
    group.add_argument("--transpose", action="store_true", default=None, help="swap rows and columns of --matrix")
    group.add_argument("--row-names", metavar="FILE", help="names for a --matrix without them: JSON, or one per line")
    group.add_argument("--column-names", metavar="FILE", help="the same for its columns")
    group.add_argument(
        "--normalise", action="store_true", default=None, help="divide similarities by the roots of their diagonal"
    )


def learning(made: argparse.ArgumentParser) -> None:
    """The parameters of the estimator."""
    group = made.add_argument_group("learning relations", "with --edges or --matrix")
    for one in PARAMETERS:
        option, text = f"--{one.name.replace('_', '-')}", f"{one.text} (default {one.default})"
        group.add_argument(option, type=one.kind, metavar=one.metavar, help=text)
    group.add_argument("--implicit", action="store_true", help="edges not listed count as 0, such as items not bought")
    group.add_argument("--intercept", action="store_true", help="a constant without penalty (--loss regression)")


def judging(made: argparse.ArgumentParser) -> None:
    """How a relation is judged: which settings, and how many folds."""
    made.add_argument(
        "--settings",
        type=settings,
        metavar="S",
        help="settings for relations: 1,2,3,4 or time (default: all that apply)",
    )
    made.add_argument("--folds", type=int, default=5, metavar="N", help="folds in each setting")
