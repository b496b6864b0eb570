"""scikit-learn estimators: input checked at the border, then a sentence made of the nouns below."""

from .corankrls import CoRankRLS
from .pursuit import RankingPursuit
from .rankrls import RankRLS
from .transductive import TransductiveRankRLS

__all__ = ["CoRankRLS", "RankRLS", "RankingPursuit", "TransductiveRankRLS"]
