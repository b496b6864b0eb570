"""Data to rank: readers, writers, downloads and generators.

Examples
--------
>>> from io import BytesIO
>>> from rankrls.datasets import load_letor
>>> data = load_letor(BytesIO(b"2 qid:7 1:0.5 2:1 # docid = A\\n0 qid:7 1:0.1 # docid = B\\n"))
>>> data.X, data.y, data.qid.tolist(), data.doc_ids.tolist()
(array([[0.5, 1. ],
       [0.1, 0. ]]), array([2., 0.]), ['7', '7'], ['A', 'B'])
"""

from .download import DownloadError
from .fetch import Documents, Fold, Ratings, fetch_20newsgroups, fetch_jester, fetch_letor, fetch_movielens
from .generators import SEARCH_FEATURES, make_ranking, make_search
from .letor.text import dump_letor, iter_letor, load_letor, read_svmlight
from .records import RankingData
from .relations import Games, Relation, make_relation, make_rock_paper_scissors
from .scaling import per_query_minmax
from .trec import to_qrels, to_trec_run

__all__ = [
    "SEARCH_FEATURES",
    "Documents",
    "DownloadError",
    "Fold",
    "Games",
    "RankingData",
    "Ratings",
    "Relation",
    "dump_letor",
    "fetch_20newsgroups",
    "fetch_jester",
    "fetch_letor",
    "fetch_movielens",
    "iter_letor",
    "load_letor",
    "make_ranking",
    "make_relation",
    "make_rock_paper_scissors",
    "make_search",
    "per_query_minmax",
    "read_svmlight",
    "to_qrels",
    "to_trec_run",
]
