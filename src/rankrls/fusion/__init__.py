"""Hybrid search: add up the scores of several retrievers, with weights learned from judgments.

Examples
--------
>>> from rankrls import fusion
>>> runs, judgments = fusion.make_runs(50, random_state=0)
>>> model = fusion.Fusion().fit(runs, judgments)
>>> model.predict(runs).shape == runs.query.shape
True
"""

from .engines import export
from .learning import Fusion, Row, make_runs
from .runs import Runs, read_run

__all__ = ["Fusion", "Row", "Runs", "export", "make_runs", "read_run"]
