"""Generators give what they promise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankrls import RankRLS
from rankrls.datasets import make_search


def test_search_log_has_the_traits_of_a_real_one():
    data = make_search(400, n_noise=3, random_state=0)
    assert data.X.shape == (len(data.y), 15) == (len(data.qid), len(data.feature_names))
    assert set(data.y) == {0, 1, 2, 3, 4}
    _, sizes = np.unique(data.qid, return_counts=True)
    assert sizes.min() == 1 and sizes.max() > 40
    tied = [np.ptp(data.y[data.qid == q]) == 0 for q in np.unique(data.qid) if (data.qid == q).sum() > 1]
    assert 0 < np.sum(tied) < len(tied) / 4
    assert np.isfinite(data.X).all()


def test_same_seed_same_data():
    a, b = make_search(20, random_state=3), make_search(20, random_state=3)
    assert_array_equal(a.X, b.X)
    assert not np.array_equal(a.X[:10], make_search(20, random_state=4).X[:10])


def test_ranking_beats_regression_on_it():
    data = make_search(200, random_state=0)
    scaled = (data.X - data.X.mean(0)) / data.X.std(0)
    ranking, regression = (RankRLS(regression=beta).fit(scaled, data.y, qid=data.qid) for beta in (0.0, 1.0))
    assert ranking.cv_scores_.max() > regression.cv_scores_.max() + 0.003


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least 1"):
        make_search(0)
