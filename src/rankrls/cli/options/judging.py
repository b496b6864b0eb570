"""How rankings are judged: the options of evaluate and report."""

from __future__ import annotations

from .parser import Parser
from .targets import CONVENTIONS
from .values import integers, words


def judging(made: Parser) -> None:
    """Which metrics, and how they are computed."""
    add = made.add_argument
    add("--metrics", type=words, metavar="NAMES", help="such as ndcg@10,map (default: all)")
    add("-k", type=integers, default=[1, 5, 10], metavar="K,...", help="cutoffs of ndcg and precision")
    add("--convention", choices=CONVENTIONS, help="NDCG as another tool computes it (default: our own)")
    add("--relevant", type=float, default=1.0, metavar="LABEL", help="labels at or above this are relevant")
    add("--flips", type=int, default=10_000, metavar="N", help="flips of the randomisation test")
