"""Folds for choosing settings by hold-out.

Examples
--------
Relations have their own folds, depending on which end will be new when the model is used:

>>> from rankrls import ConditionalRankRLS
>>> from rankrls.datasets import make_relation
>>> data = make_relation(40, random_state=0)
>>> model = ConditionalRankRLS(kernel="rbf", cv=RelationKFold(4, same_objects=True)).fit(data.X, data.Y)
>>> model.cv_scores_.shape
(15,)
"""

from .relations.folds import Part, RelationKFold

__all__ = ["Part", "RelationKFold"]
