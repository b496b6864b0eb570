"""Sixty rows of six queries, with a rule that can be learned, for tests of one claim each."""

import numpy as np

from rankrls import View

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
Y = X @ [1.0, 2.0, -3.0] + 0.1 * RNG.normal(size=60)
PARTLY = np.where(QID > 3, np.nan, Y)  # two queries without scores
VIEWS = [View([0]), View([1, 2])]
