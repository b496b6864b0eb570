"""Warnings point to the line that called the library, however deep they come from."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import problem
from rankrls import ConditionalRankRLS, CoRankRLS, RankingPursuit, RankRLS, TransductiveRankRLS, View
from rankrls.system.seeds import seed_of

X, Y, QID = problem()


def blocks():
    order = np.argsort(QID, kind="stable")
    yield X[order], Y[order], QID[order]


FITS = {
    "transductive": lambda: TransductiveRankRLS(1.0).fit(X, Y, qid=QID),
    "views": lambda: CoRankRLS(1.0, 0.1, views=[View([0, 1]), View([2, 3])]).fit(X, Y, qid=QID),
    "pursuit": lambda: RankingPursuit(3, kernel=None).fit(np.repeat(X[:, :1], 3, axis=1), Y, qid=QID),
    "pursuit of views": lambda: RankingPursuit(1, views=2, nu=0.1, basis=5).fit(X, Y, qid=QID),
    "read once": lambda: RankRLS(cv=2).fit(blocks()),
    "relation": lambda: ConditionalRankRLS(1e-6, kernel="rbf", max_iter=1, solver="cg").fit(X, X @ X.T),
    "pipeline": lambda: make_pipeline(StandardScaler(), TransductiveRankRLS(1.0)).fit(
        X, Y, transductiverankrls__qid=QID
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_a_warning_names_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FITS[name]()
    assert caught and {warning.filename for warning in caught} == {__file__}


def test_one_meaning_of_random_state():
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    for make in (np.random.default_rng, np.random.RandomState):
        state = make(0)
        assert seed_of(make(0)) == seed_of(state) != seed_of(state)
    assert seed_of(None) != seed_of(None)
    for wrong in ("seven", -1, 1.5, True):
        with pytest.raises(ValueError, match="random_state must be"):
            seed_of(wrong)
