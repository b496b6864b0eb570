"""Data to rank: readers, downloads and generators."""

from .generators import SEARCH_FEATURES, make_search
from .letor import dump_letor, iter_letor, load_letor, read_svmlight
from .records import RankingData
from .scaling import per_query_minmax

__all__ = [
    "SEARCH_FEATURES",
    "RankingData",
    "dump_letor",
    "iter_letor",
    "load_letor",
    "make_search",
    "per_query_minmax",
    "read_svmlight",
]
