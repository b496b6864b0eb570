"""A pursuit's path together with the functions of every step, which gives a model of every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...bases import is_count
from ...core.expansion import in_precision
from ...core.queries import BATCH_ROWS
from ...core.views import FittedView, View
from ...kernels import Kernel, Precomputed
from ...problems.pursuit import PursuitPath
from ...system.progress import reporting
from ...system.types import ArrayLike, MatrixLike
from ..base import Ranker
from ..reasons import of_views
from .fitting import PursuitSetup


@dataclass(frozen=True)
class SizedModel:
    """What `RankingPursuit` stores about the model of one size."""

    n_basis: int
    basis_indices: np.ndarray | list[np.ndarray]
    views: list[FittedView]
    view_coefs: list[np.ndarray]
    view_intercepts: np.ndarray
    intercept: float
    view_weights: np.ndarray | None = None
    coef: np.ndarray | None = None
    dual_coef: np.ndarray | None = None
    basis: np.ndarray | None = None
    kernel: Kernel | None = None


@dataclass(frozen=True)
class Course:
    """A path of k steps through M views."""

    path: PursuitPath  # in the caller's numbers, without an axis for views if there is one view
    chosen: np.ndarray  # (k, M) the function of each step, by its index in the dictionary
    steps: list[FittedView]  # for each view the functions of all steps
    mean: float  # what a model without functions predicts
    shares: np.ndarray  # (M,) of the views in the prediction

    @classmethod
    def of(cls, path: PursuitPath, setup: PursuitSetup, mean: float) -> Course:
        k, M = len(path), len(setup.views)
        columns = [numbers[path.indices[:, v]] for v, numbers in enumerate(setup.numbers)]
        steps = [_part(view, path.indices[:, v]) for v, view in enumerate(setup.views)]
        named = replace(
            path,
            indices=columns[0] if M == 1 else np.column_stack(columns),
            coefs=path.coefs.reshape(k, k) if M == 1 else path.coefs,
            intercepts=path.intercepts[:, 0] if M == 1 else path.intercepts,
        )
        return cls(named, path.indices, steps, mean, setup.shares)

    def model(self, n: int, n_columns: int | None) -> SizedModel:
        """The model with the first n functions of each view; `n_columns` is None unless there is one view."""
        k, M = len(self.path), len(self.steps)
        intercepts = self.path.intercepts.reshape(k, M)[n - 1] if n else np.full(M, self.mean)
        parts = [self._view(v, n) for v in range(M)]
        model = SizedModel(
            n,
            [indices for indices, _, _ in parts],
            [view for _, _, view in parts],
            [coef for _, coef, _ in parts],
            intercepts,
            float(intercepts @ self.shares),
            self.shares,
        )
        return model if n_columns is None else _of_one_view(model, n_columns)

    def _view(self, v: int, n: int) -> tuple[np.ndarray, np.ndarray, FittedView]:
        """Numbers, weights and functions of one view; repeated functions are merged into their first occurrence."""
        k, M = len(self.path), len(self.steps)
        indices, coefs = self.path.indices.reshape(k, M), self.path.coefs.reshape(k, M, k)
        _, first, place = np.unique(self.chosen[:n, v], return_index=True, return_inverse=True)
        order = np.argsort(first)
        coef = np.bincount(place, weights=coefs[n - 1, v, :n], minlength=len(first))[order] if n else np.zeros(0)
        return indices[first[order], v], coef, _part(self.steps[v], first[order])


def _of_one_view(model: SizedModel, n_columns: int) -> SizedModel:
    """The same model under the attribute names of a model with one view."""
    (indices,), (view,), (weights,) = model.basis_indices, model.views, model.view_coefs
    model = replace(model, view_weights=None)
    if view.kernel is not None:
        return replace(model, basis_indices=indices, kernel=view.kernel, dual_coef=weights, basis=view.points)
    coef = np.zeros(n_columns)
    coef[indices] = weights
    return replace(model, basis_indices=indices, coef=coef)


def _part(view: FittedView, atoms: np.ndarray) -> FittedView:
    """The view with only some of its functions."""
    if view.kernel is None:
        columns = view.columns
        numbers = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
        return FittedView(numbers[atoms], None, None)
    if view.points is None:
        assert isinstance(view.kernel, Precomputed) and view.kernel.columns is not None
        return FittedView(view.columns, Precomputed(view.kernel.columns[atoms]), None)
    return replace(view, points=view.points[atoms])


class SizedRanker(Ranker):
    """A ranker that holds models of every size up to a largest one, and currently is one of them."""

    n_basis_: int
    basis_indices_: np.ndarray
    path_: PursuitPath
    views_: list[FittedView]
    view_coefs_: list[np.ndarray]
    view_intercepts_: np.ndarray
    intercept_: float
    coef_: np.ndarray
    dual_coef_: np.ndarray
    basis_: np.ndarray
    kernel_: Kernel
    n_features_in_: int

    _learned = "n_basis_"
    _skips_unscored = True

    views: int | Sequence[View]
    verbose: bool
    _candidate: PursuitSetup | None

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores, the (weighted) mean of the views: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is ignored. With kernel="precomputed", kernel values between the
            items and all training rows, or only the rows of the basis if `fit` got only those.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        scores = self.predict_views(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores @ self._shares.astype(scores.dtype)

    def predict_views(self, X: MatrixLike) -> np.ndarray:
        """Scores of each view.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        scores : ndarray of shape (n_samples, n_views)
        """
        X = self._checked(X)
        scores = np.empty((X.shape[0], len(self.views_)))
        for i in range(0, X.shape[0], BATCH_ROWS):
            block = X[i : i + BATCH_ROWS]
            for v, (view, coef) in enumerate(zip(self.views_, self.view_coefs_, strict=True)):
                scores[i : i + BATCH_ROWS, v] = view(block) @ coef + self.view_intercepts_[v]
        return in_precision(scores, X.dtype)

    def predict_path(self, X: MatrixLike) -> np.ndarray:
        """Scores of the models of all sizes, each the mean of the views.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        scores : ndarray of shape (n_samples, n_sizes)
            Column p holds the scores of the model of size p + 1.

        Examples
        --------
        >>> from rankrls import RankingPursuit, metrics
        >>> from rankrls.datasets import make_search
        >>> data, new = make_search(60, random_state=0), make_search(40, random_state=1)
        >>> model = RankingPursuit(4, kernel=None).fit(data.X, data.y, qid=data.qid)
        >>> metrics.pairwise_accuracy(new.y, model.predict_path(new.X), new.qid).round(2)
        array([0.76, 0.81, 0.82, 0.84])
        """
        X = self._checked(X)
        k, M = len(self.path_), len(self._steps)
        coefs, intercepts = self.path_.coefs.reshape(k, M, k), self.path_.intercepts.reshape(k, M)
        scores = np.empty((X.shape[0], k))
        for i in range(0, X.shape[0], BATCH_ROWS):
            block = X[i : i + BATCH_ROWS]
            total = sum(self._shares[v] * (view(block) @ coefs[:, v].T) for v, view in enumerate(self._steps))
            scores[i : i + BATCH_ROWS] = total + intercepts @ self._shares
        return in_precision(scores, X.dtype)

    def explain(self, x_a: ArrayLike, x_b: ArrayLike) -> np.ndarray:
        """Explain why a ranks above b: the contribution of each feature to score(a) - score(b), as in `RankRLS`.

        Parameters
        ----------
        x_a, x_b : array-like of shape (n_features,)
            Two items.

        Returns
        -------
        contributions : ndarray of shape (n_features,), or Series by name where x_a is a row of a pandas frame
            They sum to the difference of the scores; those of several views are averaged as their scores are.

        Examples
        --------
        >>> from rankrls import RankingPursuit
        >>> from rankrls.datasets import make_search
        >>> data = make_search(60, random_state=0)
        >>> model = RankingPursuit(2, kernel=None).fit(data.X, data.y, qid=data.qid)
        >>> reasons, scores = model.explain(data.X[0], data.X[1]), model.predict(data.X[:2])
        >>> bool(abs(reasons.sum() - (scores[0] - scores[1])) < 1e-9)
        True
        """
        check_is_fitted(self, self._learned)
        return of_views(self, self._shares, x_a, x_b)

    def resized(self, n_basis: int) -> Self:
        """The model of another size on the path; nothing is fitted.

        Parameters
        ----------
        n_basis : int
            A size between 1 and `len(path_)`.

        Returns
        -------
        model : RankingPursuit
            A copy; this model is not changed.

        Examples
        --------
        >>> from rankrls import RankingPursuit
        >>> from rankrls.datasets import make_search
        >>> data = make_search(60, random_state=0)
        >>> model = RankingPursuit(4, kernel=None).fit(data.X, data.y, qid=data.qid)
        >>> model.resized(2).basis_indices_.tolist() == model.basis_indices_[:2].tolist()
        True
        """
        check_is_fitted(self, self._learned)
        if not is_count(n_basis) or not 1 <= n_basis <= len(self.path_):
            raise ValueError(f"n_basis must be a size on the path, 1 to {len(self.path_)}, got {n_basis!r}")
        return self._copy(self._course, int(n_basis))

    def alternatives(self, k: int = 5, *, tolerance: float = 0.05) -> list[Self]:
        """Other models of the same size that are nearly as good on the training rows.

        Each comes from a pursuit that must not use one of the functions of this model (or several, if that does not
        give enough), so every alternative has a different basis. Only for models with one view.

        Parameters
        ----------
        k : int, default=5
            The largest number of alternatives.
        tolerance : float, default=0.05
            How much the training loss of an alternative may exceed that of this model, as a share of it.

        Returns
        -------
        models : list of RankingPursuit
            Best first; fewer than k if no others are within the tolerance. `models[0].basis_indices_` is the basis,
            `models[0].path_.errors[-1]` the loss.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankingPursuit
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 4))
        >>> X[:, 3] = X[:, 0] + 0.1 * rng.normal(size=100)  # another way to say almost the same
        >>> model = RankingPursuit(2, kernel=None).fit(X, X[:, 0] + X[:, 1] + rng.normal(size=100))
        >>> sorted(model.basis_indices_.tolist()), sorted(model.alternatives(1)[0].basis_indices_.tolist())
        ([1, 3], [0, 1])
        """
        check_is_fitted(self, self._learned)
        if self._several:
            raise ValueError("alternatives are for models with one view; predict_views has the scores of each view")
        setup = getattr(self, "_candidate", None)
        if setup is None:
            raise ValueError("alternatives need the training rows, which are not stored with a model: fit again")
        if not is_count(k) or k < 1:
            raise ValueError(f"k must be a positive number of models, got {k!r}")
        tolerance = checks.check_number("tolerance", tolerance, zero=True, auto=False)
        if not self.n_basis_:
            return []
        own = replace(self.path_, indices=self._chosen)
        with reporting(self.verbose):
            paths = setup.problem.released().alternatives(own, self.n_basis_, int(k), tolerance)
        return [self._copy(Course.of(path, setup, self._mean), len(path)) for path in paths]

    # ---------------------------------------------------------------- helpers

    @property
    def _course(self) -> Course:
        return Course(self.path_, self._chosen, self._steps, self._mean, self._shares)

    @property
    def _shares(self) -> np.ndarray:
        """(M,) the shares of the views in the prediction; equal in models saved before views had weights."""
        M = len(self.views_)
        return getattr(self, "view_weights_", np.full(M, 1 / M))

    def _follow(self, course: Course, n: int) -> Self:
        """Become the model with n functions of this course."""
        self.path_, self._chosen, self._steps, self._mean = course.path, course.chosen, course.steps, course.mean
        return self._store(course.model(n, None if self._several else self.n_features_in_))

    def _copy(self, course: Course, n: int) -> Self:
        model = type(self).__new__(type(self))
        model.__dict__.update(self.__dict__)
        model.__dict__.pop("cv_predictions_", None)
        return model._follow(course, n)

    def _checked(self, X: MatrixLike) -> Any:
        check_is_fitted(self, self._learned)
        X, _ = checks.split_qid_column(X, None)
        return self._rows(X)

    @property
    def _several(self) -> bool:
        return not (is_count(self.views) and self.views == 1)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_candidate", None)  # the training rows; only `alternatives` needs them
        return state
