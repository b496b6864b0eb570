"""scikit-learn estimators: input checked at the border, then a sentence made of the nouns below."""

from .rankrls import RankRLS

__all__ = ["RankRLS"]
