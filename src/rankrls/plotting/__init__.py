"""Plots of fitted models, in the style of scikit-learn's displays.

A display holds the numbers and draws them: `from_estimator` and `from_predictions` compute the numbers and draw them,
`plot(ax=None)` draws again. `ax_` and `figure_` are then matplotlib's objects; `line_` and the like are what was drawn.
matplotlib is imported when the first picture is drawn: `pip install 'rankrls[plot]'`.

Examples
--------
>>> from rankrls import RankRLS, plotting
>>> from rankrls.datasets import make_search
>>> data = make_search(20, random_state=0)
>>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
>>> display = plotting.HoldOutDisplay.from_estimator(model)
>>> display.ax_.get_xlabel()
'alpha'
"""

from .comparison import MetricAtKDisplay, WinsLossesDisplay
from .effects import EffectsDisplay, PairEffectsDisplay
from .iterations import IterationsDisplay
from .paths import CoefficientPathDisplay, HoldOutDisplay, PursuitPathDisplay
from .relations import RelationDisplay
from .tradeoff import TradeOffDisplay
from .unscored import UnscoredCurveDisplay

__all__ = [
    "CoefficientPathDisplay",
    "EffectsDisplay",
    "HoldOutDisplay",
    "IterationsDisplay",
    "MetricAtKDisplay",
    "PairEffectsDisplay",
    "PursuitPathDisplay",
    "RelationDisplay",
    "TradeOffDisplay",
    "UnscoredCurveDisplay",
    "WinsLossesDisplay",
]
