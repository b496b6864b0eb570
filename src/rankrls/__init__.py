"""Learning to rank in closed form.

With F such that F'F is the Laplacian of the preference graph, ranking is ridge regression on (F X, F y):

- `preferences` gives F, which applies in O(m) and never forms a pair;
- `statistics` adds up what a fit needs of the data;
- `ridge` solves for every regularisation at once, and holds out queries exactly;
- `kronecker` does the same for relations between objects;
- `estimators` put these together behind scikit-learn's interface.
"""

from . import bases, datasets, kernels, metrics, selection
from .estimators import (
    ConditionalRankRLS,
    CoRankRLS,
    PerQueryMinMax,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
)
from .iterative import ConvergenceWarning
from .persistence import ModelFileError, load, save
from .validation import qid_from_group
from .views import View

__version__ = "0.1.0"
__all__ = [
    "CoRankRLS",
    "ConditionalRankRLS",
    "ConvergenceWarning",
    "ModelFileError",
    "PerQueryMinMax",
    "RankRLS",
    "RankingPursuit",
    "TransductiveRankRLS",
    "View",
    "bases",
    "datasets",
    "kernels",
    "load",
    "metrics",
    "qid_from_group",
    "save",
    "selection",
]
