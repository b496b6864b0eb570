"""Early stopping: conjugate residuals, iterations chosen by hold-out, callbacks and the display."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
import rankrls
from rankrls import ConditionalRankRLS
from rankrls.core.krylov import conjugate_residuals
from rankrls.datasets import make_relation
from rankrls.kernels import Gaussian
from rankrls.metrics import pairwise_accuracy
from rankrls.selection import RelationKFold


@pytest.fixture(scope="module")
def data():
    return make_relation(18, missing=0.4, random_state=0)


def known(Y):
    return [(i, j) for i, j in np.argwhere(~np.isnan(Y))]


def expected(data, edges, steps, *, ranking, at, parity=0, alpha=0.0):
    """Scores after so many iterations, from the explicit Krylov space."""
    K = Gaussian(0.5)(data.X, data.X)
    M = oracles.edge_kernel(K, K, edges, edges, parity)
    y = np.array([data.Y[e] for e in edges])
    F = oracles.row_centring([e[0] for e in edges]) if ranking else np.eye(len(y))
    c = oracles.least_residual(F @ M @ F + alpha * np.eye(len(y)), F @ y, steps)
    return oracles.edge_kernel(K, K, at, edges, parity) @ F @ c


@pytest.mark.parametrize("ranking", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_every_iterate_has_the_least_residual_of_its_krylov_space(data, ranking, steps):
    edges = known(data.Y)
    loss = "ranking" if ranking else "regression"
    model = ConditionalRankRLS(0.0, kernel=Gaussian(0.5), loss=loss, max_iter=steps).fit(data.X, data.Y)
    assert model.solver_ == "cr" and model.n_iter_ == steps
    assert np.all(np.diff(model.residuals_) < 0)
    exact = expected(data, edges, steps, ranking=ranking, at=edges)
    assert_allclose(model.predict_edges(data.X, edges), exact, atol=1e-8)


def test_at_the_end_conjugate_residuals_are_conjugate_gradients(data):
    models = [
        ConditionalRankRLS(0.1, kernel=Gaussian(0.5), solver=solver, tol=1e-12).fit(data.X, data.Y)
        for solver in ("cr", "cg")
    ]
    assert_allclose(models[0].predict(data.X), models[1].predict(data.X), atol=1e-9)


def test_residuals_in_the_null_space_end_the_iterations():
    M = np.diag([2.0, 1.0, 0.0])
    found = list(conjugate_residuals(lambda v: M @ v, np.ones(3)))
    assert len(found) <= 3
    assert_allclose(found[-1][0][:2], [0.5, 1.0])
    assert list(conjugate_residuals(lambda v: M @ v, np.zeros(3))) == []
    assert list(conjugate_residuals(lambda v: M @ v, np.array([0.0, 0.0, 1.0]))) == []


@pytest.mark.parametrize("loss", ["ranking", "regression"])
def test_the_number_of_iterations_is_the_one_that_refits_prefer(data, loss):
    cv = RelationKFold(4, 3, same_objects=True)
    model = ConditionalRankRLS(kernel=Gaussian(0.5), loss=loss, max_iter="auto", cv=cv).fit(data.X, data.Y)
    assert model.alpha_ == 0 and model.n_iter_ == 1 + np.argmax(model.cv_scores_)
    assert len(model.iterations_) == len(model.cv_scores_) and len(model.residuals_) == model.n_iter_ + 1
    edges = np.array(known(data.Y))
    folds = list(cv.split_edges(edges[:, 0], edges[:, 1], data.Y.shape))
    for steps in {1, model.n_iter_, len(model.iterations_)}:
        scores = []
        for train, test in folds:
            held = [tuple(e) for e in edges[test]]
            keep = [tuple(e) for e in edges[train]]
            found = expected(data, keep, steps, ranking=loss == "ranking", at=held)
            y = np.array([data.Y[e] for e in held])
            scores.append(pairwise_accuracy(y, found, edges[test][:, 0]))
            if steps == model.n_iter_:
                assert_allclose(model.cv_predictions_[tuple(np.transpose(held))], found, atol=1e-7)
        assert_allclose(model.cv_scores_[steps - 1], np.mean(scores), atol=1e-9)


def test_complete_symmetric_and_listed_relations_stop_early_too():
    data = make_relation(16, random_state=1)
    Y = data.Y + data.Y.T
    whole = ConditionalRankRLS(kernel="rbf", relation="symmetric", max_iter="auto").fit(data.X, Y)
    assert whole.solver_ == "cr"
    assert_allclose(whole.predict(data.X), whole.predict(data.X).T, atol=1e-12)
    games = [(i, j) for i in range(16) for j in range(16) if Y[i].sum() > Y[j].sum()]
    listed = ConditionalRankRLS(kernel="rbf", relation="reciprocal", max_iter="auto").fit_edges(data.X, games)
    assert 0.5 < listed.probability(data.X[games[0][0]], data.X[games[0][1]]) < 1
    wide = ConditionalRankRLS(kernel=Gaussian("auto"), max_iter="auto").fit(data.X, data.Y)
    assert isinstance(wide.kernel_.gamma, float)


def test_a_callback_sees_the_model_after_each_iteration_and_may_stop(data, tmp_path):
    seen = []

    def callback(iterate):
        seen.append((iterate.iteration, iterate.residual, iterate.model()))
        return iterate.iteration == 4

    model = ConditionalRankRLS(0.0, kernel=Gaussian(0.5), callback=callback).fit(data.X, data.Y)
    assert [k for k, _, _ in seen] == [1, 2, 3, 4] and model.n_iter_ == 4
    assert_allclose([r for _, r, _ in seen], model.residuals_[1:])
    for steps, _, then in seen:
        again = ConditionalRankRLS(0.0, kernel=Gaussian(0.5), max_iter=steps).fit(data.X, data.Y)
        assert_allclose(then.predict(data.X), again.predict(data.X), atol=1e-10)
    rankrls.save(model, tmp_path / "model.rankrls")  # without the callback
    assert rankrls.load(tmp_path / "model.rankrls").callback is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_iter": "many"}, "max_iter must be"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": "auto", "solver": "cg"}, 'set solver="cr"'),
        ({"callback": print, "solver": "pcg"}, 'set solver="cr"'),
        ({"max_iter": "auto", "cv": "leave-row-out"}, "RelationKFold"),
    ],
)
def test_refused(data, params, message):
    with pytest.raises(ValueError, match=message):
        ConditionalRankRLS(kernel="rbf", **params).fit(data.X, data.Y)


def test_the_history_is_drawn(data):
    pytest.importorskip("matplotlib").use("Agg")
    from rankrls.plotting import HoldOutDisplay, IterationsDisplay

    model = ConditionalRankRLS(kernel="rbf", max_iter="auto").fit(data.X, data.Y)
    display = IterationsDisplay.from_estimator(model)
    assert_allclose(display.line_.get_ydata(), model.residuals_)
    assert_allclose(display.score_line_.get_ydata(), model.cv_scores_)
    assert HoldOutDisplay.from_estimator(model).chosen_.get_xdata()[0] == model.n_iter_
    fixed = ConditionalRankRLS(1.0, kernel="rbf", solver="cr").fit(data.X, data.Y)
    assert IterationsDisplay.from_estimator(fixed).score_line_ is None
    closed = ConditionalRankRLS(1.0).fit(data.X, np.nan_to_num(data.Y))
    with pytest.raises(ValueError, match="was not fitted by iterations"):
        IterationsDisplay.from_estimator(closed)
