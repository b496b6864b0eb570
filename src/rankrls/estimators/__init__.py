"""The scikit-learn estimators: one file for each, and a package with its parts.

    rankrls.py        RankRLS               ranking/
    corankrls.py      CoRankRLS             views/
    transductive.py   TransductiveRankRLS   transduction/
    pursuit.py        RankingPursuit        pursuits/
    conditional.py    ConditionalRankRLS    relations/       (two_step.py and on_edges.py use it too)

They share `rows/`, which reads and checks training rows and turns them into a learning problem. An estimator checks its
input, gets a result from these packages, and stores it.
"""

from .conditional import ConditionalRankRLS
from .corankrls import CoRankRLS
from .on_edges import OnEdges
from .pursuit import RankingPursuit
from .rankrls import RankRLS
from .scaling import PerQueryMinMax
from .transductive import TransductiveRankRLS
from .two_step import TwoStepRLS

__all__ = [
    "CoRankRLS",
    "ConditionalRankRLS",
    "OnEdges",
    "PerQueryMinMax",
    "RankRLS",
    "RankingPursuit",
    "TransductiveRankRLS",
    "TwoStepRLS",
]
