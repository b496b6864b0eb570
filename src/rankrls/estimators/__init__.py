"""scikit-learn estimators: input checked at the border, then a sentence made of the nouns below."""

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
