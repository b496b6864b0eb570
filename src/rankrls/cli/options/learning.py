"""Options for learning, shared by train and cv."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .parser import Parser
from .values import auto_or, basis, folds, numbers, signs, views, within_query, word_or_number, yes_or_no

METHODS = {  # the estimator of each --method
    "rankrls": "RankRLS",
    "sparse": "RankRLS",
    "co": "CoRankRLS",
    "transductive": "TransductiveRankRLS",
    "pursuit": "RankingPursuit",
    "auto": "AutoRanker",
    "conditional": "ConditionalRankRLS",
}
SCALES = ("auto", "none", "standard", "minmax", "query-minmax")


class Parameter(NamedTuple):
    """A parameter of an estimator as a command line option."""

    name: str
    kind: Callable[[str], Any]
    metavar: str
    text: str
    default: str  # the default in words, by estimator


PARAMETERS = [
    Parameter("alpha", auto_or(float), "A", "regularisation; auto chooses by exact leave-query-out", "auto"),
    Parameter(
        "alphas", numbers, "A,...", "values to choose from: 0.1,1,10 or 0.001:1000:15, log-spaced", "15 from the data"
    ),
    Parameter("kernel", str, "NAME", "linear, rbf, poly, laplacian or cosine", "linear; co, pursuit: rbf"),
    Parameter("gamma", str, "G", "width of the kernel: a number, scale or auto", "scale"),
    Parameter("degree", int, "N", "of the poly kernel", "3"),
    Parameter("coef0", float, "C", "of the poly kernel", "1"),
    Parameter(
        "basis",
        basis,
        "POINTS",
        "basis points of a sparse kernel model: 500, random:500, kmeans:500, cholesky:500",
        "all rows; co: 100; sparse: 500",
    ),
    Parameter("weighting", str, "WHAT", "what counts equally: pairs, queries or items", "items"),
    Parameter(
        "tied_pairs",
        auto_or(yes_or_no),
        "YES|NO|AUTO",
        "whether pairs with equal labels count",
        "no; transductive: yes",
    ),
    Parameter("regression", float, "SHARE", "share of plain squared error, 0 to 1", "0"),
    Parameter("scoring", str, "METRIC", "the metric that chooses, such as ndcg@10", "pairwise_accuracy; auto: ndcg@10"),
    Parameter(
        "cv",
        folds,
        "FOLDS",
        "leave-query-out, or a number of folds of queries",
        "leave-query-out; transductive: 5; conditional: auto",
    ),
    Parameter(
        "positive",
        signs,
        "NAMES",
        "features whose weights must not be negative: all, a,b,c or @FILE; a=+1,b=-1 for either sign",
        "none",
    ),
    Parameter(
        "gain", str, "GAIN", "what labels are worth to the loss: linear, exponential (2^y - 1) or auto", "linear"
    ),
    Parameter("nu", auto_or(float), "NU", "co, pursuit: weight of the agreement between views", "auto; pursuit: 0"),
    Parameter("nus", numbers, "NU,...", "co, pursuit: values of nu to choose from", "from the data"),
    Parameter(
        "views", views, "GROUPS", "co, pursuit: 2, or groups of columns: 1-10;11-46, or by name", "2; pursuit: 1"
    ),
    Parameter("agree_on", str, "ROWS", "co: rows on which views agree: unscored or all", "unscored"),
    Parameter("fidelity", auto_or(float), "F", "transductive: how close to the inductive scores", "1"),
    Parameter("fidelities", numbers, "F,...", "transductive: values of fidelity to choose from", "from the data"),
    Parameter("n_basis", auto_or(int), "N", "pursuit: basis functions, or features", "auto"),
    Parameter("max_basis", int, "N", "pursuit: largest number that --n-basis auto tries", "100"),
    Parameter("view_weights", numbers, "W,...", "pursuit: how much each view counts", "equally"),
    Parameter("shared_basis", yes_or_no, "YES|NO", "pursuit: whether views choose together", "no"),
    Parameter("backfit", yes_or_no, "YES|NO", "pursuit: whether coefficients are refitted at every step", "yes"),
    Parameter("effort", word_or_number, "WORK", "auto: fast, normal, best, or seconds to spend", "normal"),
    Parameter(
        "relative",
        within_query,
        "HOW",
        "encoded tables: add columns relative to the query, by rank or zscore; auto: yes or no",
        "no; auto: yes",
    ),
    Parameter("random_state", int, "SEED", "seed for random draws", "none; auto: 0"),
]


def learning(made: Parser) -> None:
    """The estimator, its scaler and its parameters."""
    group = made.add_argument_group("learning", "the parameters of the estimators, with their own defaults")
    group.add_argument(
        "--method",
        choices=list(METHODS),
        default="rankrls",
        help="RankRLS; a kernel on a few points; co-regularised views; transductive; ranking pursuit, which selects "
        "features; several of these, chosen and stacked; or relations between objects, from --edges or --matrix",
    )
    group.add_argument(
        "--scale",
        choices=SCALES,
        default="auto",
        help="auto: penalty in units of each column's spread (rankrls, sparse); none: columns unchanged; others scale "
        "the columns first",
    )
    group.add_argument(
        "--encode",
        choices=("auto", "yes", "no"),
        default="auto",
        help="encode columns with TableEncoder; auto: if some hold text, dates or missing values",
    )
    for one in PARAMETERS:
        group.add_argument(
            f"--{one.name.replace('_', '-')}",
            type=one.kind,
            metavar=one.metavar,
            help=f"{one.text} (default {one.default})",
        )
