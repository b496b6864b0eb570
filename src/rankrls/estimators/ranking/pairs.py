"""RankRLS from explicit preferences: pairs of rows instead of scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from ... import checks
from ...core.noise import noise_of_pairs
from ...core.pairs import PairPreferences
from ...core.queries import Queries
from ...core.symmetric import per_deviation
from ...metrics import Metric, get_metric
from ...problems import choice
from ...problems.base import Model
from ...problems.choice import Choice, Judged, Setting
from ...problems.primal import Primal
from ...system import memory
from ...system.frames import as_frame
from ...system.lazy import cached_property
from ...system.limits import limits
from ...system.types import ArrayLike, Matrix, MatrixLike
from ..rows.training import Learned, RankRLSFit, Selected, Training, Weights
from .base import RidgeRanker
from .history import History

WIDE_COLUMNS = 500  # up to this many columns, weights are solved for directly


@dataclass(frozen=True)
class PairSetup:
    """The problem of explicit pairs with one kernel."""

    data: Training
    problem: Primal
    given: Any  # alphas to choose from; None for a grid fitted to the data

    @classmethod
    def of(cls, data: Training, F: PairPreferences, margins: np.ndarray, given: object) -> PairSetup:
        if data.kernel is not None and data.points is None:  # expanded in all rows, as pairs may outnumber them
            m = data.X.shape[0]
            memory.check_memory(4 * 8 * m**2, f"a model expanded in all {m} rows", "pass basis=")
            data = replace(data, points=data.X)
        problem = data.primal(F, margins[:, None])
        checks.check_no_overflow(problem.sums)
        return cls(data, problem, given)

    @cached_property
    def alphas(self) -> np.ndarray:
        if self.given is not None:
            return checks.check_grid("alphas", self.given, zero=True)
        return choice.default_alphas(self.problem.mean_eigenvalue)

    @property
    def scale(self) -> np.ndarray | None:
        """The units in which columns are penalised; None for their own units."""
        if self.data.kernel is not None:
            return getattr(self.data.kernel, "scale", None)
        return per_deviation(self.problem.W) if self.problem.W is not None else None

    @property
    def extends(self) -> bool:
        """True if the grid of alphas may be extended, because the caller gave none."""
        return self.given is None

    def judge(self, folds: object, metric: Metric, alphas: np.ndarray | None = None) -> Judged:
        """The share of held-out pairs in the right order, for every alpha."""
        alphas = self.alphas if alphas is None else alphas
        settings = [Setting(alpha=float(alpha)) for alpha in alphas]
        scores = choice.pair_scores(self.problem, alphas)
        return Judged(settings, scores, np.full(len(scores), np.nan))


class PairFit(RidgeRanker):
    """Fitting to explicit preferences."""

    def fit_pairs(
        self, X: MatrixLike, pairs: ArrayLike, margins: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> Self:
        """Learn from explicit preferences: minimise sum_p w_p (d_p - (f(x_i) - f(x_j)))^2 + alpha ||f||^2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (i, j): item i is preferred to item j.
        margins : array-like of shape (n_pairs,), default=None
            d, the difference of their scores; 1 if not given.
        weights : array-like of shape (n_pairs,), default=None
            w, the weight of each pair; 1 if not given.

        Returns
        -------
        self

        Notes
        -----
        alpha="auto" leaves out each pair, exactly, and counts held-out pairs in the right order. If the preference
        graph falls into at least four components and none holds more than half of the pairs, whole components are left
        out instead, like queries. `weighting`, `tied_pairs`, `regression`, `scoring` and `cv` are not used.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
        >>> RankRLS(alpha=0.1).fit_pairs(X, [[2, 1], [1, 0]]).predict(X).round(2)
        array([-0.08,  0.83,  1.83])
        """
        self._check_params()
        with self._attempt():
            X = self._rows(as_frame(X), reset=True, at_least=2)
            if self.__sklearn_tags__().input_tags.pairwise:
                checks.check_kernel_values(X, self.basis)
            self.__dict__.pop("_history", None)
            fitted = fit_preferences(self, X, *checked_pairs(X, pairs, margins, weights))
            self._store(*fitted)
            if self.statistics_ is not None and self._auto:
                self._history = History(of_pairs=fitted[2])
            return self


def checked_pairs(
    X: Matrix, pairs: ArrayLike, margins: ArrayLike | None, weights: ArrayLike | None
) -> tuple[PairPreferences, np.ndarray]:
    """The pairs with nonzero weight, and their margins."""
    found = checks.check_pairs(pairs, X.shape[0])
    p = len(found)
    y = np.ones(p) if margins is None else checks.check_numbers("margins", margins, p, unit="pair")
    w = checks.check_weights(weights, p, name="weights", unit="pair")
    if w is not None:
        found, y, w = (array[w > 0] for array in (found, y, w))
    return PairPreferences(found, X.shape[0], w), y


def fit_preferences(model: RidgeRanker, X: Matrix, F: PairPreferences, margins: np.ndarray) -> RankRLSFit:
    """Fit to pairs of rows; `model` has the parameters."""
    auto, (m, n) = isinstance(model.alpha, str), X.shape
    # expand weights in rows only if there are far fewer rows than columns: their kernel matrix squares large values
    signs = checks.check_signs(model.positive, n, getattr(model, "feature_names_in_", None))
    wide = model.kernel is None and signs is None and n > min(max(m, WIDE_COLUMNS), limits.gram_columns)
    if wide and not sparse.issparse(X):
        X = X - X.mean(axis=0)  # differences do not depend on the mean
    rows = Training(X, margins, Queries.single(m), n_given=m, scaled=model.scale is not None, signs=signs)
    options = rows.with_kernels("linear" if wide else model.kernel, model.basis, model.random_state)
    candidates = [PairSetup.of(data, F, margins, model.alphas if auto else [model.alpha]) for data in options]
    if auto or len(options) > 1:
        chosen = choice.choose(candidates, None, get_metric("pairwise_accuracy"))
    else:
        chosen = Choice.only(candidates[0], Setting(alpha=float(model.alpha)))
    setup, alpha = chosen.candidate, chosen.setting.alpha
    solution, data, sums = setup.problem.model(alpha), setup.data, None
    if wide:
        coef, scale = X.T @ solution.coef, getattr(data.kernel, "scale", None)
        solution, data = Model(coef if scale is None else coef / scale[:, None] ** 2, solution.intercept), rows
    else:
        sums = replace(setup.problem.sums, weight=0.0, beta=float(model.regression), explicit=len(margins))
    learned = Learned(alpha, False, n_queries=0, n_pairs=len(margins), statistics=sums, scale=setup.scale)
    selected = Selected()
    if auto:
        noise = noise_of_pairs(margins, choice.pair_margins(setup.problem, np.array([alpha]))[:, 0], F.w)
        selected = Selected(chosen.alphas, chosen.scores, chosen.errors, noise=noise)
    return Weights.of(solution, data, model.regression), learned, selected
