"""Add preferences to a fitted model: exact changes of the sums it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.features import Nystroem
from ...core.queries import Queries
from ...core.statistics import Statistics
from ...core.symmetric import gentle, per_deviation, steep
from ...core.weighting import LINEAR
from ...problems.base import Model
from ...problems.constrained import Preferred, constrained_model, contradiction
from ...problems.signed import signed_models
from ...system import frames
from ...system.parallel import threads_for
from ...system.types import Matrix
from ...system.warnings import warn
from ..base import takes_objects
from ..rows.blocks import features_of
from ..rows.training import Learned, Training, Weights
from .base import RidgeRanker

TOLERANCE = 1e-6  # how closely exact pairs must hold


class PairFeedback(RidgeRanker):
    """Add pairs to a model that keeps its sums, and remove them again."""

    def add_pairs(self, X, pairs, margins=None, weights=None, *, exact=False):
        """Add preferences to what the model has learned: each is an exact rank-one change of its sums.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Items.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (i, j): item i is preferred to item j.
        margins : array-like of shape (n_pairs,), default=None
            The difference of their scores. None: max(1, the current difference), so that a pair that is already in the
            right order is not pulled together.
        weights : array-like of shape (n_pairs,), default=None
            The weight of each pair; 1 if not given.
        exact : bool, default=False
            Require the margins exactly, as equations (`weights` are then not used).

        Returns
        -------
        self

        Notes
        -----
        The model minimises the loss it was fitted with plus sum_p w_p (d_p - (f(x_i) - f(x_j)))^2, at the same
        alpha. `alphas_` and `cv_scores_` stay as they were when alpha was chosen. `remove_pairs` undoes it.

        Examples
        --------
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(20, random_state=0)
        >>> model = RankRLS(1.0).fit(data.X, data.y, qid=data.qid)
        >>> low, high = model.predict(data.X[:10]).argsort()[[0, -1]]
        >>> model = model.add_pairs(data.X, [[low, high]], margins=[0.5], exact=True)
        >>> round(float(model.predict(data.X)[low] - model.predict(data.X)[high]), 6)
        0.5
        """
        new, pairs = self._differences(X, pairs)
        p = len(new)
        if margins is None:
            coef = self.coef_ if hasattr(self, "coef_") else self.dual_coef_
            new = replace(new, margin=np.maximum(1.0, new.difference @ np.asarray(coef, dtype=np.float64)))
        else:
            new = replace(new, margin=checks.check_numbers("margins", margins, p, unit="pair"))
        given = checks.check_weights(weights, p, name="weights", unit="pair")
        new = replace(new, weight=np.ones(p) if given is None else given, exact=np.full(p, bool(exact)))
        before = getattr(self, "pairs_", None) or Preferred.none(new.difference.shape[1])
        self._check_agreement(new, before, pairs)
        return self._with_pairs(before + new, new, +1)

    def remove_pairs(self, X, pairs, margins=None, weights=None):
        """Remove pairs that `add_pairs` added: the model then equals, to rounding, one that never saw them.

        Parameters
        ----------
        X, pairs
            As they were added; of equal pairs the last one is removed first.
        margins, weights : array-like of shape (n_pairs,), default=None
            The values the pairs were added with; optional, but checked if given.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(20, random_state=0)
        >>> model = RankRLS(1.0).fit(data.X, data.y, qid=data.qid)
        >>> before = model.coef_
        >>> after = model.add_pairs(data.X, [[3, 5]]).remove_pairs(data.X, [[3, 5]]).coef_
        >>> bool(np.allclose(before, after))
        True
        """
        gone, pairs = self._differences(X, pairs)
        kept = getattr(self, "pairs_", None) or Preferred.none(gone.difference.shape[1])
        stay, places = np.ones(len(kept), dtype=bool), []
        for p, equal in enumerate(kept.places(gone.difference)):
            place = next((place for place in reversed(equal) if stay[place]), None)
            if place is None:
                raise ValueError(
                    f"pair {tuple(pairs[p].tolist())} was never added to this model with these rows (it has "
                    f"{len(kept)} added pairs); the model is unchanged"
                )
            places.append(place)
            stay[place] = False
        taken = kept.take(np.array(places, dtype=np.intp))
        for name, given, have in (("margins", margins, taken.margin), ("weights", weights, taken.weight)):
            if given is not None and not np.allclose(checks.check_numbers(name, given, len(taken), unit="pair"), have):
                raise ValueError(f"{name} differ from those the pairs were added with, {have.tolist()[:5]}: omit them")
        return self._with_pairs(kept.take(stay), taken, -1)

    # ---------------------------------------------------------------- helpers

    def _differences(self, X: Matrix, pairs: object) -> tuple[Preferred, np.ndarray]:
        """The pairs in the feature space of the model, without margins and weights, and their row numbers.

        Reads only the rows that pairs name, so that one pair costs the same however many rows there are.
        """
        check_is_fitted(self, "alpha_")
        sums = self.statistics_
        if sums is None or (self.kernel is not None and self.basis is None):
            raise ValueError(
                "this model keeps no sums to add pairs to: use a linear model with no more features than rows, or a "
                "kernel with a basis"
            )
        if sums.cross.shape[1] > 1:
            raise ValueError(f"a pair has one margin, but this model has {sums.cross.shape[1]} targets")
        X, _ = checks.split_qid_column(frames.as_frame(X), None)
        if takes_objects(self, X) or len(np.shape(X)) != 2:
            X = self._rows(X)
        X = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "shape") else np.asarray(X)
        named = checks.check_pairs(pairs, X.shape[0])
        rows, place = np.unique(named, return_inverse=True)
        X = self._rows(frames.rows(X, rows))
        Phi = X if not hasattr(self, "kernel_") else self.kernel_(X, self.X_fit_)
        Phi = np.asarray(Phi.toarray() if hasattr(Phi, "toarray") else Phi, dtype=np.float64)
        i, j = place.reshape(-1, 2).T
        with np.errstate(over="ignore"):
            difference = Phi[i] - Phi[j]
            bad = ~np.isfinite(np.sum(difference**2, axis=1))
        if bad.any():
            p = int(np.argmax(bad))
            raise ValueError(
                f"the squares of the difference between rows {named[p][0]} and {named[p][1]}, pair {p}, overflow: look "
                "for wrong values in these rows"
            )
        nothing = np.zeros(len(named))
        return Preferred(difference, nothing, nothing, nothing.astype(bool)), named

    def _check_agreement(self, new: Preferred, before: Preferred, pairs: np.ndarray) -> None:
        equal = ~new.difference.any(axis=1)
        if equal.any():
            p = int(np.argmax(equal))
            i, j = pairs[p]
            raise ValueError(f"pair {p} prefers row {i} to row {j}, but the two are equal in every feature")
        for known in (new, before):
            for p, others in enumerate(known.places(-new.difference)):
                if others and new.margin[p] > 0 and known.margin[others[-1]] > 0:
                    where = "before" if known is before else f"as pair {others[-1]}"
                    raise ValueError(
                        f"pair {p} prefers row {pairs[p][0]} to row {pairs[p][1]}, but the opposite was given {where}: "
                        "remove one of them (remove_pairs), or leave both out"
                    )

    def _with_pairs(self, pairs: Preferred, changed: Preferred, sign: int) -> Self:
        """Become the model with `pairs`, of which `changed` were just added (sign 1) or removed; alpha stays."""
        assert self.statistics_ is not None
        known: tuple[Statistics | None, Statistics | None] = vars(self).get("_unpaired") or (None, None)
        now, before = known
        if now is not self.statistics_:
            before = self.statistics_ if not len(getattr(self, "pairs_", None) or ()) else None
        # from the sums without pairs where they are known: subtraction would leave rounding
        with np.errstate(over="ignore", invalid="ignore"):
            sums = changed.added(self.statistics_, sign) if before is None else pairs.added(before)
        checks.check_no_overflow(sums)
        coef = self.coef_ if hasattr(self, "coef_") else self.dual_coef_
        data = Training(
            np.empty((0, self.n_features_in_), dtype=coef.dtype),
            np.empty((0, 1)),
            Queries.single(0),
            kernel=getattr(self, "kernel_", None),
            points=getattr(self, "X_fit_", None),
            scaled=self.scale is not None,
        )
        scale = getattr(self, "scale_", None)
        warn_of_dependent_points(data, "add_pairs" if sign > 0 else "remove_pairs")
        with threads_for(float(len(sums.gram)) ** 3):
            weights = Weights.of(solution(self, self.alpha_, sums, data, pairs, scale), data, self.regression)
        learned = Learned(
            self.alpha_,
            self.tied_pairs_,
            self.n_queries_,
            sums.n_pairs,
            sums,
            weighting=getattr(self, "weighting_", None),
            scale=scale,
            pairs=pairs,
            gain=getattr(self, "gain_", LINEAR),  # missing in older model files
        )
        self._store(weights, learned)
        self._unpaired = None if before is None or not len(pairs) else (self.statistics_, before)
        return self


def warn_of_dependent_points(data: Training, method: str) -> None:
    """Warn that sums lose directions of basis points that are nearly dependent."""
    if data.kernel is None:
        return
    W = Nystroem(data.kernel, data.points).W
    if steep(W):
        warn(
            f"the {len(W)} basis points are nearly dependent under this kernel: {method} keeps "
            f"{gentle(W).shape[1]} of {W.shape[1]} directions, while fit keeps all. Fit all rows at once, or use "
            "fewer points or a narrower kernel"
        )


def solution(
    model: RidgeRanker,
    alpha: float,
    sums: Statistics,
    data: Training,
    pairs: Preferred | None,
    deviation: np.ndarray | None,
) -> Model:
    """The solution from sums and added pairs; an error if pairs contradict each other.

    The penalty is in units of `deviation`, the spread of the labelled rows, whatever pairs have been added since.
    """
    W = features_of(data, data.X.shape[1]).W
    if data.kernel is None and deviation is not None:
        W = per_deviation(deviation)
    signs = checks.check_signs(model.positive, data.X.shape[1], getattr(model, "feature_names_in_", None))
    if signs is not None:
        if pairs is not None and pairs.exact.any():
            raise ValueError("exact pairs cannot be combined with positive=: add them with weights instead")
        return signed_models(sums, np.array([alpha]), signs, W=W)[0]
    found, failure = constrained_model(alpha, sums, W, data.dtype, pairs)
    if failure > TOLERANCE:
        raise ValueError(
            f"the exact pairs contradict each other{_named(pairs)}: no function of these features satisfies all of "
            f"them (the smallest error is {failure:.2g}); the model is unchanged"
        )
    return found


def _named(pairs: Preferred | None) -> str:
    """Which pairs contradict each other, by the order in which they were added."""
    found = None if pairs is None else contradiction(pairs)
    if found is None or pairs is None:
        return ""
    last, others = found
    listed = ", ".join(f"{i} (by {pairs.margin[i]:g})" for i in others[:5].tolist())
    what = f"pair{'s' if len(others) > 1 else ''} {listed}{' ...' if len(others) > 5 else ''}"
    return f" (pair {last} by {pairs.margin[last]:g} against {what}, counted from 0 in the order they were added)"
