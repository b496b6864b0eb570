"""Fitted models are plain arrays and a few classes: skops reads them back when it is told to trust these."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.pipeline import make_pipeline

import rankrls
from rankrls import PerQueryMinMax, RankRLS
from test_persistence import KINDS, MODELS, X, qid, scores, y

skops = pytest.importorskip("skops.io")


@pytest.mark.parametrize("name", MODELS)
def test_models_come_back_the_same(name):
    model = MODELS[name]()
    same = skops.loads(skops.dumps(model), trusted=rankrls.SKOPS_TRUSTED_TYPES)
    assert type(same) is type(model)
    assert_array_equal(scores(same), scores(model))


@pytest.mark.parametrize("name", KINDS)
def test_single_precision(name):
    rows = X.astype(np.float32)
    model = KINDS[name](rows)
    same = skops.loads(skops.dumps(model), trusted=rankrls.SKOPS_TRUSTED_TYPES)
    assert_array_equal(same.predict(rows.copy()), model.predict(rows.copy()))


def test_scaling_by_query():
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(PerQueryMinMax(), RankRLS(1.0)).fit(X, y, qid=qid)
        same = skops.loads(skops.dumps(model), trusted=rankrls.SKOPS_TRUSTED_TYPES)
        assert_array_equal(same.predict(X, qid=qid), model.predict(X, qid=qid))


def test_custom_functions_are_not_trusted():
    data = skops.dumps(RankRLS(1.0, kernel=product).fit(X, y, qid=qid))
    with pytest.raises(Exception, match="Untrusted types"):
        skops.loads(data, trusted=rankrls.SKOPS_TRUSTED_TYPES)


def product(A, B):
    return A @ B.T
