"""evaluate: every setting, for one kind of objects and for two, complete or not."""

import numpy as np
import pytest

from rankrls import ConditionalRankRLS, TwoStepRLS
from rankrls.datasets import make_relation
from rankrls.estimators.relations.judging import RelationJudge
from rankrls.selection import RelationKFold


@pytest.mark.parametrize("condition", ["source", "target"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_all_settings_of_one_kind_of_objects(missing, condition):
    data = make_relation(15, missing=missing, random_state=0)
    model = ConditionalRankRLS(kernel="rbf", condition=condition, tol=1e-3, alphas=[0.1, 10.0])
    found = model.evaluate(data.X, data.Y, n_splits=2)
    assert list(found) == [1, 2, 3, 4]
    for setting in found:
        assert set(found.metrics[setting]) >= {"pairwise_accuracy", "concordance"}
        assert np.isfinite(found.errors()[setting]["concordance"])
    if not missing:
        two_step = TwoStepRLS(kernel="rbf", condition=condition, alphas=[0.1, 10.0], target_alphas=[1.0])
        assert list(two_step.evaluate(data.X, data.Y, n_splits=2)) == [2, 3, 4]


def test_alpha_is_chosen_for_the_setting_that_is_judged():
    judge = RelationJudge(ConditionalRankRLS(), 0, True, 5, 0)
    for setting in (1, 2, 3, 4):
        cv = judge.inner(setting, (20, 20), complete=False).cv
        assert isinstance(cv, RelationKFold) and cv.setting == setting and cv.same_objects == (setting in (1, 4))
    assert judge.inner(2, (20, 20), complete=True).cv == "auto"  # each row in turn
    own = RelationKFold(4, 3)
    assert RelationJudge(ConditionalRankRLS(cv=own), 0, True, 5, 0).inner(2, (20, 20)).cv.setting == 4


def test_two_values_have_an_area_under_the_curve():
    data = make_relation(15, random_state=0)
    found = ConditionalRankRLS(1.0, kernel="rbf").evaluate(data.X, (data.Y > 0).astype(float), settings=[2], n_splits=2)
    assert 0.5 < found.means()[2]["auc"] <= 1
