"""Data to rank: generators of realistic problems."""

from .generators import SEARCH_FEATURES, RankingData, make_search

__all__ = ["SEARCH_FEATURES", "RankingData", "make_search"]
