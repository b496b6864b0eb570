"""Add rows, scored or not, to a fitted TransductiveRankRLS, and remove them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.queries import Queries
from ...kernels import is_precomputed
from ...system.items import Items
from ...system.types import ArrayLike, Ids, MatrixLike
from ..base import Ranker
from ..rankrls import RankRLS
from ..rows.intake import PartlyScored
from .fitting import TransductiveFit, fit_transduction


@dataclass(frozen=True)
class StoredRows:
    """The rows a model has learned from, not copied; a checksum detects whether the caller has changed them."""

    rows: PartlyScored
    checksum: int

    @classmethod
    def of(cls, rows: PartlyScored) -> StoredRows:
        return cls(rows, _checksum(rows))

    def unchanged(self) -> PartlyScored:
        """The rows; raises an error if the caller has changed them since."""
        if _checksum(self.rows) != self.checksum:
            raise ValueError("the rows that the model was fitted to have been changed in place since: fit it again")
        return self.rows


class TransductiveUpdates(Ranker):
    """Learn from more rows, and forget some.

    What is learned about a query depends on all the others, so sums are not enough and the rows are stored.
    """

    alpha_: float
    alpha: float | str
    fidelity: float | str
    fidelity_: float
    inductive_: RankRLS
    kernel: Any
    folds: Any
    _kept: StoredRows | None = None

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike | None = None, qid: Ids = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, scored or not, exactly as if they had been there from the start.

        The first call is `fit`: values that are "auto", and the points of a kernel, are chosen then and kept. Every
        call solves again for all rows so far, which stay in memory. A query may be split between calls.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `fit`; y may be None where no row has a score.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import TransductiveRankRLS
        >>> rng = np.random.default_rng(0)
        >>> X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)
        >>> y = np.where(qid % 2, X[:, 0] + X[:, 2], np.nan)
        >>> whole, model, early = TransductiveRankRLS(1.0).fit(X, y, qid=qid), TransductiveRankRLS(1.0), qid < 4
        >>> for part in (early, ~early):
        ...     model = model.partial_fit(X[part], y[part], qid=qid[part])
        >>> bool(np.allclose(model.transduction_, whole.transduction_))
        True
        """
        if not hasattr(self, "alpha_"):
            return self._fit_rows(X, y, qid, sample_weight, more_to_come=True)
        before = self._rows_so_far()
        with self._attempt():
            more = PartlyScored.of(self, X, y, qid, sample_weight, fresh=False)
            return self._refit(_joined(before, more))

    def forget(
        self, X: MatrixLike, y: ArrayLike | None = None, qid: Ids = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Forget queries, scored or not: the model then equals one that never saw them.

        Parameters
        ----------
        X, y, qid, sample_weight
            The rows of whole queries that the model was fitted to.

        Returns
        -------
        self
        """
        check_is_fitted(self, "alpha_")
        before = self._rows_so_far()
        with self._attempt():
            gone = PartlyScored.of(self, X, y, qid, sample_weight, fresh=False)
            return self._refit(_without(before, gone))

    def _fit_rows(
        self, X: Any, y: ArrayLike | None, qid: Ids, sample_weight: ArrayLike | None, *, more_to_come: bool = False
    ) -> Self:
        raise NotImplementedError

    def _rows_so_far(self) -> PartlyScored:
        kept = vars(self).get("_kept")
        if kept is None:
            raise ValueError(
                "the model no longer has its training rows (it was loaded from a file, or fitted to rows in blocks), "
                "and what it learns about a query depends on all of them: call fit with all rows"
            )
        if self.folds is not None:
            raise ValueError("folds has a label for each row of fit, but none for later rows: call fit with all rows")
        if is_precomputed(self.kernel):
            raise ValueError("new rows need kernel values with all rows: call fit with the whole matrix")
        return kept.unchanged()

    def _refit(self, rows: PartlyScored) -> Self:
        """Fit to these rows, with the values chosen before."""
        first = self.inductive_
        checks.check_same_kernel(self.kernel, vars(first).get("kernel_"), "set it back, or call fit with all rows")
        fixed = {**self.get_params(deep=False), "alpha": self.alpha_ if self.alpha == "auto" else self.alpha}
        if self.fidelity == "auto" and np.isfinite(self.fidelity_):
            fixed["fidelity"] = self.fidelity_
        if self.kernel is not None:
            fixed |= {"kernel": first.kernel_, "basis": None if fixed["basis"] is None else first.X_fit_}
        found = fit_transduction(SimpleNamespace(**fixed), rows, more_to_come=True)
        return self._keep(found, rows)

    def _keep(self, found: TransductiveFit, rows: PartlyScored) -> Self:
        self._kept = StoredRows.of(rows)
        return self._store(found)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_kept", None)  # the training rows; only partial_fit and forget need them
        return state


def _checksum(rows: PartlyScored) -> int:
    X = rows.X
    if isinstance(X, Items):
        return 0
    arrays = (X.data, X.indices) if sparse.issparse(X) else (X,)
    return sum(zlib.adler32(np.ascontiguousarray(array).view(np.uint8).data) for array in arrays)


def _joined(before: PartlyScored, more: PartlyScored) -> PartlyScored:
    both = before, more
    X: Any = [rows.X for rows in both]
    if isinstance(X[0], Items):
        X = Items(X[0].tolist() + X[1].tolist())
    else:
        X = sparse.csr_array(sparse.vstack(X)) if sparse.issparse(X[0]) else np.vstack(X)
    labels = [rows.queries.labels[rows.queries.codes] for rows in both]
    if {label.dtype.kind in "iuf" for label in labels} == {True, False}:
        raise ValueError(f"query ids had the type {labels[0].dtype} so far, but now have the type {labels[1].dtype}")
    weights = None
    if any(rows.weights is not None for rows in both):
        weights = np.concatenate([np.ones(len(r.y)) if r.weights is None else r.weights for r in both])
    return PartlyScored(X, np.concatenate([rows.y for rows in both]), Queries.of(np.concatenate(labels)), weights)


def _without(before: PartlyScored, gone: PartlyScored) -> PartlyScored:
    """The rows of other queries; raises an error unless all rows of the forgotten queries are given."""
    queries = before.queries
    number = {label: q for q, label in enumerate(queries.labels.tolist())}
    for label, size in zip(gone.queries.labels.tolist(), gone.queries.sizes, strict=True):
        have = 0 if label not in number else int(queries.sizes[number[label]])
        if size != have:
            raise ValueError(
                f"query {label!r} was learned from {have} rows, but {size} were given to forget: pass all of them"
            )
    out = np.isin(queries.codes, [number[label] for label in gone.queries.labels.tolist()])
    stay = np.flatnonzero(~out)
    labels = queries.labels[queries.codes[stay]]
    weights = None if before.weights is None else before.weights[stay]
    if not len(stay) or np.isnan(before.y[stay]).all():
        raise ValueError("no scored row would be left: keep at least one scored query")
    return PartlyScored(before.X[stay], before.y[stay], Queries.of(labels), weights)
