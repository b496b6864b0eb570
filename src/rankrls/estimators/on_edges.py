"""A relation whose samples are edges, so that scikit-learn can split it in any of the four settings."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..core.queries import Queries
from ..kernels import is_precomputed
from ..metrics import get_metric
from ..relations import names
from ..relations.names import Ids
from ..system.types import ArrayLike


class OnEdges(BaseEstimator):
    """A model of a relation with edges as samples, for `GridSearchCV`, `cross_val_score` and the like.

    scikit-learn's searches take subsets of samples. For a matrix these are rows, which is setting 2 of
    `rankrls.selection.RelationKFold`; with edges as samples, all four settings are possible.

    Parameters
    ----------
    model : ConditionalRankRLS
        Not fitted; its parameters are `model__alpha`, `model__kernel__gamma` and so on.
    X, Z : as in `ConditionalRankRLS.fit`
        The objects at both ends; Z None relates those of X to each other.

    Attributes
    ----------
    model_ : ConditionalRankRLS
        The fitted model, in closed form if the edges join each of some objects with each of some others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from rankrls import ConditionalRankRLS, OnEdges
    >>> from rankrls.datasets import make_relation
    >>> from rankrls.kernels import Gaussian
    >>> from rankrls.selection import RelationKFold
    >>> data = make_relation(30, random_state=0)
    >>> edges = np.argwhere(~np.isnan(data.Y))
    >>> ranker = OnEdges(ConditionalRankRLS(1.0, kernel=Gaussian(1.0)), data.X)
    >>> grid = {"model__kernel__gamma": [0.1, 1.0], "model__alpha": [0.1, 1.0]}
    >>> search = GridSearchCV(ranker, grid, cv=RelationKFold(4, same_objects=True))
    >>> sorted(search.fit(edges, data.Y[tuple(edges.T)]).best_params_)
    ['model__alpha', 'model__kernel__gamma']
    """

    def __init__(self, model, X, Z=None) -> None:
        self.model = model
        self.X = X
        self.Z = Z

    def fit(self, edges, y) -> Self:
        """Learn from edges.

        Parameters
        ----------
        edges : array-like of shape (n_edges, 2)
            Both ends: row numbers, or ids if X and Z have an index.
        y : array-like of shape (n_edges,)
            The value of each edge.

        Returns
        -------
        self
        """
        values = np.asarray(y, dtype=np.float64)
        rows, columns = self._places(edges)
        model, found = clone(self.model), None
        plain = not is_precomputed(self.model.kernel) and not is_precomputed(self.model.target_kernel)
        if plain and self.model.relation in (None, "arbitrary"):
            found = _rectangle(rows, columns, values)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*have no edge", category=UserWarning)
            if found is None:
                pairs = np.column_stack([rows, columns])
                self.model_ = model.fit_edges(_without_ids(self.X), pairs, values, _without_ids(self.Z))
                return self
            own, others, Y = found
            one = self.Z is None and np.array_equal(own, others)
            other = None if one else _without_ids(self.X if self.Z is None else self.Z)[others]
            self.model_ = model.fit(_without_ids(self.X)[own], Y, other)
        return self

    def predict(self, edges) -> np.ndarray:
        """Scores of edges.

        Parameters
        ----------
        edges : array-like of shape (n_edges, 2)
            As in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_edges,)
        """
        check_is_fitted(self, "model_")
        other = self.X if self.Z is None else self.Z
        return self.model_.predict_edges(
            _without_ids(self.X), np.column_stack(self._places(edges)), _without_ids(other)
        )

    def score(self, edges, y) -> float:
        """The `scoring` of the model, averaged over conditioning objects.

        Parameters
        ----------
        edges, y : as in `fit`

        Returns
        -------
        score : float
        """
        rows, columns = self._places(edges)
        ends = rows if self.model.condition == "source" else columns
        metric = get_metric(self.model.scoring)
        value = float(metric(np.asarray(y, dtype=np.float64), self.predict(edges), Queries.of(ends)))
        return value if metric.greater_is_better else -value

    def _places(self, edges: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        X = names.labelled(self.X)
        ids = Ids.of_objects(X), Ids.of_objects(X if self.Z is None else names.labelled(self.Z))
        first, second = names.ends(edges, None, None)
        return ids[0].rows(first, "source"), ids[1].rows(second, "target")


def _without_ids(objects: Any) -> Any:
    """Objects without ids: edges already hold row numbers here."""
    objects = names.labelled(objects)
    return objects if objects is None or not hasattr(objects, "iloc") else objects.to_numpy()


def _rectangle(
    rows: np.ndarray, columns: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The objects at both ends and the matrix between them, if each of its edges occurs once."""
    (own, i), (others, j) = (np.unique(ends, return_inverse=True) for ends in (rows, columns))
    if len(y) != len(own) * len(others) or len(np.unique(i * len(others) + j)) < len(y):
        return None
    Y = np.empty((len(own), len(others)))
    Y[i, j] = y
    return own, others, Y
