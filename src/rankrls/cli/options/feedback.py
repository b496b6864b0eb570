"""Files with feedback about documents: judgments, preferences, clicks."""

from __future__ import annotations

from .parser import Parser
from .values import named_numbers, numbers

CLICK_METHODS = ("positions", "propensities", "expected", "naive")
ABOUT = (
    """tables that refer to rows of DATA by query and document (or by row number from 1 if there are no documents)"""
)


def judgments(made: Parser) -> None:
    """Labels from a separate file."""
    made.add_argument(
        "--qrels",
        dest="judgments",
        metavar="FILE",
        help="labels by query and document: TREC qrels, or CSV query,docid,rating (default: those in DATA)",
    )


def feedback(made: Parser) -> None:
    """Other feedback that train learns from, besides labels or instead of them."""
    group = made.add_argument_group("feedback", ABOUT)
    add = group.add_argument
    add(
        "--pairs",
        metavar="FILE",
        help="preferences, with or without labels: query,better,worse and optionally margin,weight,exact",
    )
    add(
        "--clicks",
        metavar="FILE",
        help="a click log instead of labels: query,document,position,clicked and optionally impressions",
    )
    add(
        "--click-method",
        choices=CLICK_METHODS,
        default="positions",
        help="with --clicks: how the effect of positions is removed",
    )
    add(
        "--propensities",
        type=numbers,
        metavar="P,...",
        help="with --clicks: the chance that each position is looked at (default: estimated)",
    )
    add(
        "--mix",
        type=named_numbers,
        metavar="NAMES",
        help="several columns of labels instead of --label, with their weights: relevance=0.7,margin=0.3",
    )
