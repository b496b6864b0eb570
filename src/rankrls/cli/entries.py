"""What a report compares: models or score files, on the rows that have a label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.queries import Queries
from ..datasets import RankingData


@dataclass
class Entry:
    """A model file, or a file of scores."""

    path: str
    name: str
    model: Any  # None for scores
    data: RankingData  # with the columns of the model
    scores: np.ndarray  # (m,) of the rows that are judged
    values: dict[str, np.ndarray] = field(default_factory=dict)  # of each metric (q,)


@dataclass(frozen=True)
class Judged:
    """The rows with a label."""

    rows: np.ndarray
    y: np.ndarray
    queries: Queries
