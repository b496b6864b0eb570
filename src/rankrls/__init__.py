"""Learning to rank in closed form.

With F such that F'F is the Laplacian of the preference graph, ranking is ridge regression on (F X, F y):

- `core.preferences` applies F in O(m) and never forms a pair;
- `core.statistics` adds up the sums that a fit needs;
- `core.ridge` solves for every regularisation at once, and holds out queries exactly;
- `problems` and `relations` set up the system to solve; `blocks` does the same for rows that arrive in pieces;
- `estimators` put these together behind scikit-learn's interface;
- `distributed` fits them on a cluster.

Names are imported on first use, so `import rankrls` and the command line start fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import bases, clicks, datasets, distributed, export, fusion, kernels, metrics, plotting, selection
    from .app import workbench
    from .auto import AutoRanker, PairScreen, cross_fit, stack_weights
    from .checks import qid_from_group
    from .core.krylov import ConvergenceWarning
    from .core.views import View
    from .estimators import (
        ConditionalRankRLS,
        CoRankRLS,
        OnEdges,
        PerQueryMinMax,
        RankingPursuit,
        RankRLS,
        TransductiveRankRLS,
        TwoStepRLS,
    )
    from .estimators.reasons import explain
    from .persistence import SKOPS_TRUSTED_TYPES, ModelFileError, load, save
    from .tables import ColumnMaps, TableEncoder

__version__ = "0.1.0"
__all__ = [
    "SKOPS_TRUSTED_TYPES",
    "AutoRanker",
    "CoRankRLS",
    "ColumnMaps",
    "ConditionalRankRLS",
    "ConvergenceWarning",
    "ModelFileError",
    "OnEdges",
    "PairScreen",
    "PerQueryMinMax",
    "RankRLS",
    "RankingPursuit",
    "TableEncoder",
    "TransductiveRankRLS",
    "TwoStepRLS",
    "View",
    "bases",
    "clicks",
    "cross_fit",
    "datasets",
    "distributed",
    "explain",
    "export",
    "fusion",
    "kernels",
    "load",
    "metrics",
    "plotting",
    "qid_from_group",
    "save",
    "selection",
    "stack_weights",
    "workbench",
]

_HOME = {  # the module that defines each name; names not listed are modules
    "AutoRanker": "auto",
    "PairScreen": "auto",
    "cross_fit": "auto",
    "stack_weights": "auto",
    "ColumnMaps": "tables",
    "CoRankRLS": "estimators",
    "ConditionalRankRLS": "estimators",
    "ConvergenceWarning": "core.krylov",
    "ModelFileError": "persistence",
    "OnEdges": "estimators",
    "PerQueryMinMax": "estimators",
    "RankRLS": "estimators",
    "RankingPursuit": "estimators",
    "SKOPS_TRUSTED_TYPES": "persistence",
    "TableEncoder": "tables",
    "TransductiveRankRLS": "estimators",
    "TwoStepRLS": "estimators",
    "View": "core.views",
    "explain": "estimators.reasons",
    "load": "persistence",
    "qid_from_group": "checks",
    "save": "persistence",
    "workbench": "app",
}


_OPTIONAL = ("pyterrier",)  # modules with dependencies of their own


def __getattr__(name: str) -> Any:
    if name not in __all__ and name not in _OPTIONAL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_HOME.get(name, name)}", __name__)
    value = getattr(module, name) if name in _HOME else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
