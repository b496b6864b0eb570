"""Two-step RLS: each shortcut against refits, in all settings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
import rankrls
from rankrls import ConditionalRankRLS, TwoStepRLS
from rankrls.kernels import Gaussian
from rankrls.selection import RelationKFold

ALPHA, BETA, GAMMA = 0.3, 0.7, 0.4


def two_kinds(seed=0, p=7, r=5):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(p, 3)), rng.normal(size=(r, 2))
    return X, X @ rng.normal(size=(3, 2)) @ Z.T + rng.normal(size=(p, r)), Z


def one_kind(parity=0, seed=0, n=7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = X @ rng.normal(size=(3, 3)) @ X.T + rng.normal(size=(n, n))
    return X, (Y + parity * Y.T) / 2 if parity else Y


def held_out(cv, X, Y, Z=None, *, alpha=ALPHA, beta=BETA, **params):
    """Scores of refits that the shortcut promises: those at the one pair of alphas there is."""
    kernel = params.pop("kernel", Gaussian(GAMMA))
    betas = {} if params.get("relation") else {"target_alphas": [beta]}
    return TwoStepRLS(alphas=[alpha], **betas, cv=cv, kernel=kernel, **params).fit(X, Y, Z).cv_predictions_


def gram(X, Z, linear):
    return X @ Z.T if linear else oracles.gaussian(X, Z, GAMMA)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("cv", ["leave-row-out", "leave-column-out", "leave-both-out"])
def test_objects_of_two_kinds_left_out_equal_refits(cv, linear, intercept):
    X, Y, Z = two_kinds()
    Y = Y + 100 * intercept
    found = held_out(cv, X, Y, Z, intercept=intercept, kernel=None if linear else Gaussian(GAMMA))
    for i, j in np.ndindex(Y.shape):
        rows = np.arange(len(X)) != i if cv != "leave-column-out" else np.full(len(X), True)
        columns = np.arange(len(Z)) != j if cv != "leave-row-out" else np.full(len(Z), True)
        x, z = X[rows], Z[columns]
        exact = oracles.two_step(
            gram(x, x, linear), gram(z, z, linear), Y[np.ix_(rows, columns)], gram(X[[i]], x, linear)[0],
            gram(Z[[j]], z, linear)[0], ALPHA, BETA, intercept=intercept,
        )  # fmt: skip
        assert_allclose(found[i, j], exact, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("relation", [None, "symmetric", "reciprocal"])
@pytest.mark.parametrize("cv", ["leave-both-out", "leave-object-out"])
def test_objects_of_one_kind_left_out_in_both_roles_equal_refits(cv, relation, intercept):
    parity = {"symmetric": 1, "reciprocal": -1}.get(relation, 0)
    X, Y = one_kind(parity)
    beta = ALPHA if parity else BETA
    found = held_out(cv, X, Y, relation=relation, intercept=intercept, beta=beta)
    for i, j in np.ndindex(Y.shape):
        keep = np.arange(len(X)) != i
        if cv == "leave-both-out":
            keep &= np.arange(len(X)) != j
        x = X[keep]
        K, exact = gram(x, x, False), None
        exact = oracles.two_step(
            K, K, Y[np.ix_(keep, keep)], gram(X[[i]], x, False)[0], gram(X[[j]], x, False)[0], ALPHA, beta,
            intercept=intercept,
        )  # fmt: skip
        assert_allclose(found[i, j], exact, atol=1e-8)


def test_in_one_kind_a_row_may_be_left_out_alone():
    X, Y = one_kind()
    found = held_out("leave-row-out", X, Y)
    K = gram(X, X, False)
    for i, j in np.ndindex(Y.shape):
        keep = np.arange(len(X)) != i
        exact = oracles.two_step(K[np.ix_(keep, keep)], K, Y[keep], K[i, keep], K[j], ALPHA, BETA)
        assert_allclose(found[i, j], exact, atol=1e-9)


@pytest.mark.parametrize("relation", [None, "symmetric", "reciprocal"])
def test_each_edge_left_out_equals_the_refit_of_the_one_step_model(relation):
    parity = {"symmetric": 1, "reciprocal": -1}.get(relation, 0)
    if parity:
        X, Y = one_kind(parity)
        Z = None
    else:
        X, Y, Z = two_kinds()
    beta = ALPHA if parity else BETA
    found = held_out("leave-edge-out", X, Y, Z, relation=relation, beta=beta)
    G, K = gram(X, X, False), gram(X if Z is None else Z, X if Z is None else Z, False)
    M, r = oracles.two_step_kernel(G, K, ALPHA, beta), Y.shape[1]
    if parity:
        mirror = [j * r + i for i, j in np.ndindex(Y.shape)]
        M = (M + parity * M[mirror]) / 2
        M = (M + parity * M[:, mirror]) / 2
    for i, j in np.ndindex(Y.shape):
        out = {i * r + j, j * r + i} if parity else {i * r + j}
        keep = [e for e in range(Y.size) if e not in out]
        a = np.linalg.solve(M[np.ix_(keep, keep)] + np.eye(len(keep)), Y.ravel()[keep])
        assert_allclose(found[i, j], M[i * r + j, keep] @ a, atol=1e-8)


@pytest.mark.parametrize("relation", [None, "symmetric", "reciprocal"])
def test_the_missing_label_of_an_edge_is_its_own_prediction(relation):
    parity = {"symmetric": 1, "reciprocal": -1}.get(relation, 0)
    X, Y = one_kind(parity)
    beta = ALPHA if parity else BETA
    found = held_out("leave-edge-out", X, Y, relation=relation, beta=beta)
    for i, j in [(0, 3), (5, 2)]:
        filled = Y.copy()
        filled[i, j] = found[i, j]
        if parity:
            filled[j, i] = parity * found[i, j]
        target = "auto" if parity else BETA
        model = TwoStepRLS(ALPHA, target, kernel=Gaussian(GAMMA), relation=relation).fit(X, filled)
        assert_allclose(model.predict(X)[i, j], found[i, j], atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("condition", ["source", "target"])
def test_predictions_equal_the_two_regressions(condition, kernel, intercept):
    X, Y, Z = two_kinds(p=9, r=8)
    model = TwoStepRLS(
        ALPHA, BETA, kernel=Gaussian(GAMMA) if kernel else None, intercept=intercept, condition=condition
    ).fit(X, Y + 50 * intercept, Z)
    new, other = two_kinds(seed=1)[::2]
    linear = kernel is None
    scores = model.predict(new, other)
    for i, j in np.ndindex(scores.shape):
        exact = oracles.two_step(
            gram(X, X, linear), gram(Z, Z, linear), Y + 50 * intercept, gram(new[[i]], X, linear)[0],
            gram(other[[j]], Z, linear)[0], ALPHA, BETA, intercept=intercept,
        )  # fmt: skip
        assert_allclose(scores[i, j], exact, atol=1e-8)
    assert hasattr(model, "coef_") == linear


@pytest.mark.parametrize("condition", ["source", "target"])
def test_the_pair_of_alphas_is_the_one_refits_prefer(condition):
    X, Y, Z = two_kinds(p=8, r=6)
    grids = {"alphas": [0.01, 1.0], "target_alphas": [0.1, 5.0, 50.0]}
    cv = "leave-row-out"  # of the conditioning objects
    model = TwoStepRLS(kernel=Gaussian(GAMMA), cv=cv, condition=condition, **grids).fit(X, Y, Z)
    assert model.cv_scores_.shape == (2, 3) and model.cv_predictions_.shape == Y.shape
    best = np.unravel_index(model.cv_scores_.argmax(), (2, 3))
    assert model.alpha_ == grids["alphas"][best[0]] and model.target_alpha_ == grids["target_alphas"][best[1]]
    for a, b in np.ndindex(2, 3):
        held, alpha, beta = np.empty(Y.shape), grids["alphas"][a], grids["target_alphas"][b]
        n = len(X) if condition == "source" else len(Z)
        for i in range(n):
            keep = np.arange(n) != i
            refit = TwoStepRLS(alpha, beta, kernel=Gaussian(GAMMA))
            if condition == "source":
                held[i] = refit.fit(X[keep], Y[keep], Z).predict(X[[i]], Z)[0]
            else:
                held[:, i] = refit.fit(X, Y[:, keep], Z[keep]).predict(X, Z[[i]])[:, 0]
        y, scores = (Y, held) if condition == "source" else (Y.T, held.T)
        exact = oracles.pairwise_accuracy(y.ravel(), scores.ravel(), np.repeat(np.arange(len(y)), y.shape[1]))
        assert_allclose(model.cv_scores_[a, b], exact, atol=1e-12)


def test_folds_of_one_object_equal_leave_one_out():
    X, Y, Z = two_kinds(p=6, r=6)
    found = held_out("leave-both-out", X, Y, Z)
    for train, test in RelationKFold(4, 6).split(Y):
        model = TwoStepRLS(ALPHA, BETA, kernel=Gaussian(GAMMA))
        model.fit(X[train.rows], train.of(Y), Z[train.columns])
        scores = model.predict(X[test.rows], Z[test.columns])
        assert_allclose(scores, found[np.ix_(test.rows, test.columns)], atol=1e-9)


def test_symmetric_models_are_symmetric_and_far_means_need_constants():
    for parity, relation in ((1, "symmetric"), (-1, "reciprocal")):
        X, Y = one_kind(parity)
        model = TwoStepRLS(kernel="rbf", relation=relation, intercept=True).fit(X, Y)
        assert_allclose(model.predict(X), parity * model.predict(X).T, atol=1e-12)
        assert model.alpha_ == model.target_alpha_ and model.cv_scores_.shape == (15,)
    X, Y = one_kind()
    near, far = (TwoStepRLS(1.0, 1.0, kernel="rbf", intercept=True).fit(X, Y + c).predict(X) for c in (0, 1e4))
    assert_allclose(far, near + 1e4, atol=1e-7)


def test_evaluate_ranks_recommends_and_survives_a_file(tmp_path):
    pd = pytest.importorskip("pandas")
    X, Y, Z = two_kinds(p=20, r=15)
    x, z = pd.DataFrame(X, index=[f"D{i}" for i in range(20)]), pd.DataFrame(Z, index=[f"T{i}" for i in range(15)])
    y = pd.DataFrame(Y, index=x.index, columns=z.index).sample(frac=1, random_state=0)
    model = TwoStepRLS(kernel="rbf").fit(x, y, z)
    assert_allclose(model.predict(x, z), TwoStepRLS(kernel="rbf").fit(X, Y, Z).predict(X, Z), atol=1e-12)
    assert list(model.rank("D1", top=2).columns) == ["id", "score", "rank", "truth"]
    assert model.recommend(X[:3], top=4).ids.shape == (3, 4)
    rankrls.save(model, tmp_path / "model.rankrls")
    assert_allclose(rankrls.load(tmp_path / "model.rankrls").predict(X, Z), model.predict(X, Z))
    found = TwoStepRLS(kernel="rbf").evaluate(x, y, z, n_splits=3)
    assert set(found) == {2, 3, 4} and found[2].shape == (3,)
    wide = TwoStepRLS(1.0, 1.0, kernel=Gaussian("auto")).fit(X, Y, Z)
    assert isinstance(wide.kernel_.gamma, float)


def test_one_step_with_tiny_alphas_is_two_steps_with_tiny_alphas():
    X, Y, Z = two_kinds(p=6, r=5)
    one = ConditionalRankRLS(1e-9, kernel=Gaussian(2.0), loss="regression").fit(X, Y, Z).predict(X, Z)
    two = TwoStepRLS(1e-9, 1e-9, kernel=Gaussian(2.0)).fit(X, Y, Z).predict(X, Z)
    assert_allclose(one, two, atol=1e-5)


@pytest.mark.parametrize(
    ("params", "Z", "message"),
    [
        ({"cv": "leave-one-out"}, True, "cv must be"),
        ({"relation": "symmetric"}, True, "leave Z out"),
        ({"relation": "symmetric", "alpha": 1.0, "target_alpha": 2.0}, False, "has only one alpha"),
        ({"relation": "symmetric", "cv": "leave-row-out"}, False, "mirrored edges"),
        ({"cv": "leave-object-out"}, True, "objects of one kind"),
        ({"alpha": -1.0}, True, "alpha"),
        ({"alpha": "best"}, True, "alpha must be"),
    ],
)
def test_refused(params, Z, message):
    X, Y, z = two_kinds(p=5, r=5)
    Y = Y + Y.T
    with pytest.raises(ValueError, match=message):
        TwoStepRLS(**params).fit(X, Y, z if Z else None)


def test_missing_edges_are_refused():
    X, Y, Z = two_kinds()
    Y[1, 2] = np.nan
    with pytest.raises(ValueError, match="needs every edge, but 34 of 35 are known: use ConditionalRankRLS"):
        TwoStepRLS().fit(X, Y, Z)
    with pytest.raises(ValueError, match="setting 1"):
        TwoStepRLS().evaluate(X, Y, Z, settings=[1])


@pytest.mark.parametrize("kernel", [None, Gaussian(GAMMA)])
def test_objects_that_are_the_same_tie_in_held_out_scores(kernel):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 3)), np.tile(rng.normal(size=(15, 4)), (2, 1))[rng.permutation(30)]
    Y = rng.normal(size=(30, 30))
    held = held_out("leave-row-out", X, Y, Z, kernel=kernel)
    _, first, of = np.unique(Z, axis=0, return_index=True, return_inverse=True)
    assert np.array_equal(held, held[:, first[of.ravel()]])
