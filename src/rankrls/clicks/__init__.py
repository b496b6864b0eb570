"""Learning from clicks: logs, propensities of positions, judgments, and a simulator.

Examples
--------
>>> from rankrls import clicks
>>> from rankrls.datasets import make_search
>>> data = make_search(100, random_state=0)
>>> log = clicks.simulate(data.y, data.qid, scores=-data.X[:, 0], random_state=0)
>>> model = clicks.ClickRanker(method="positions").fit(data.X, log, qid=data.qid)
>>> scores = model.predict(data.X)
"""

from .judgments import Joined, Judgments, from_clicks, read_judgments
from .log import ClickLog
from .propensities import propensities
from .ranker import ClickRanker
from .simulation import simulate

__all__ = [
    "ClickLog",
    "ClickRanker",
    "Joined",
    "Judgments",
    "from_clicks",
    "propensities",
    "read_judgments",
    "simulate",
]
