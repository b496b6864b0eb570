"""A fitted relation: scores, rankings by features or by id, ratings and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.queries import Queries
from ...kernels import is_precomputed
from ...metrics import get_metric
from ...relations import checks as relation_checks
from ...relations import names, ratings, top
from ...relations.edges import sampled
from ...relations.fitting import Fitted
from ...relations.games import EdgeList
from ...relations.names import Ids
from ...relations.problems import tied
from ...relations.relation import dense
from ...system.frames import as_frame, like
from ...system.frames import names as frame_names
from ...system.lazy import cached_property
from ...system.memory import check_memory
from .ends import RelationEnds
from .rankings import Ranking, by_id, edge_frame, excluded, ranking_frame

INPUT = ("n_features_in_", "feature_names_in_")  # stored when X is checked
MOST_RATED = 2000  # with more objects than this, ratings get no error bars
LATER = ("_cache", "_held_out")  # made from a fit when something is asked for


class RelationModel(RelationEnds):
    """A fitted relation f(x, z); subclasses learn it.

    It has the parameters `condition` and `scoring`, and the attributes `coef_` or `dual_coef_`, `kernel_`,
    `target_kernel_`, `X_fit_`, `Z_fit_`, `source_ids_`, `target_ids_`, `intercept_` and, for effects of single ends,
    `source_effects_` and `target_effects_`.
    """

    @cached_property
    def cv_predictions_(self):
        """Held-out scores at the alpha chosen, computed when they are first asked for."""
        if "_held_out" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} has no cv_predictions_: nothing was held out")
        return self.__dict__.pop("_held_out")()

    def predict(self, X=None, Z=None):
        """Scores of the relation from each object of X to each of Z.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features), or ids, default=None
            Objects, seen in training or not; with kernel="precomputed" the kernel between them and those of `fit`.
            Ids name training objects; None: all training objects.
        Z : as X, of shape (m, n_target_features), default=None
            The objects at the other end; None: X itself, or the Z of `fit` if there was one.

        Returns
        -------
        scores : ndarray of shape (n, m)
            Larger is ranked higher: within a row if condition="source", within a column if "target".
        """
        left, right = self._ends(X, Z)
        n, m = left.shape[0], right.shape[0]
        check_memory(left.itemsize * n * m, f"scores between {n} and {m} objects", "use recommend, or fewer at a time")
        return np.asarray(left @ right.T)

    def predict_edges(self, X, edges, Z=None, *, source=None, target=None, home=None):
        """Scores of some edges.

        Parameters
        ----------
        X, Z : as in `predict`
            If X or Z has an index, or is None and the training objects had one, edges hold ids.
        edges : array-like of shape (n_edges, 2) or data frame
            Both ends of each edge, as in `fit_edges`.
        source, target : str, default=None
            The columns of a data frame that hold the two ends.
        home : array-like of shape (n_edges,) or str, default=None
            Who plays at home, as in `fit_edges`; None: neutral ground.

        Returns
        -------
        scores : ndarray of shape (n_edges,), or data frame
            For a frame of edges between objects with ids, a frame with the same rows: condition, id, score, rank among
            the listed edges of its condition and, where known from training, truth.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankrls import ConditionalRankRLS
        >>> teams = pd.DataFrame([[1.0, 0.2], [1.0, 0.5], [1.0, 0.9]], index=["ajax", "bari", "celta"])
        >>> games = pd.DataFrame({"winner": ["bari", "celta", "celta"], "loser": ["ajax", "bari", "ajax"]})
        >>> ends = {"source": "winner", "target": "loser"}
        >>> model = ConditionalRankRLS(0.1, relation="reciprocal").fit_edges(teams, games, **ends)
        >>> model.predict_edges(None, games, **ends).round(2)
          condition    id  score  rank  truth
        0      bari  ajax   0.27     1    1.0
        1     celta  bari   0.36     2    1.0
        2     celta  ajax   0.64     1    1.0
        """
        left, right = self._ends(X, Z)
        source_ids = self._ids(X, "source")
        other = X if Z is None and self._one_domain else Z
        target_ids = source_ids if other is X and self._one_domain else self._ids(other, "target")
        if source is None and target is None:
            remembered = [getattr(self, "edge_columns_", {}).get(name) for name in ("source", "target")]
            source, target = remembered if {*remembered} <= {*frame_names(as_frame(edges))} else (None, None)
        ends = names.ends(edges, source, target)
        rows, columns = source_ids.rows(ends[0], "source"), target_ids.rows(ends[1], "target")
        scores = sampled(left, right, rows, columns)
        if home is not None and hasattr(self, "home_advantage_"):
            scores = scores + self.home_advantage_ * checks.check_numbers(
                "home", names.column(as_frame(edges), home, "home"), len(rows), unit="edge"
            )
        if not frame_names(as_frame(edges)) or not (source_ids.named or target_ids.named):
            return scores
        labels = source_ids.labels[rows], target_ids.labels[columns]
        known = [self._known_ids(end).places(of) for end, of in zip(("source", "target"), labels, strict=True)]
        frame = edge_frame(labels, scores, getattr(self, "Y_fit_", None), known, turned=self.condition == "target")
        return frame if hasattr(edges, "iloc") else like(as_frame(edges), {c: frame[c].to_numpy() for c in frame})

    def rank(self, conditions, candidates=None, *, top=None):
        """Candidates from best to worst for each conditioning object.

        Parameters
        ----------
        conditions : array-like of shape (n, n_features) or (n_features,), or an id, or ids
            One or several conditioning objects.
        candidates : array-like of shape (m, n_features), default=None
            Objects to rank; None: those of the training set.
        top : int, default=None
            How many to return; None: all.

        Returns
        -------
        ranking : Ranking
            `ids` (n, top) or (top,): row numbers of the candidates, or index labels of a data frame; and `scores`.
            If conditions are ids, a data frame instead, with columns id, score, rank and, where known from training,
            truth; for several conditions also a column condition.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import ConditionalRankRLS
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
        >>> ConditionalRankRLS(0.1).fit(X, X @ X.T).rank([0.9, 0.1], X, top=2).ids  # the most alike
        array([0, 2])
        """
        check_is_fitted(self, "alpha_")
        return self._best(conditions, candidates, top, None)

    def recommend(self, X, Z=None, *, top=10, exclude=None):
        """The best few objects for each of many, computed in blocks of bounded memory.

        Parameters
        ----------
        X : as `conditions` in `rank`
            Conditioning objects, such as users, by id or features; None: all training objects.
        Z : as X, default=None
            Objects to choose from; None: those of the training set.
        top : int, default=10
            How many to return for each.
        exclude : sparse matrix or array of shape (n, m), edges, or "known", default=None
            What not to recommend: the nonzero entries of a matrix; a list of (conditioning object, object) by id, or a
            table of edges with the columns of `fit_edges`, which may include other objects; or "known", the training
            edges, which models of objects with ids store.

        Returns
        -------
        ranking : Ranking or data frame
            As `rank` returns it. Rows for which fewer than `top` objects remain end in id -1 (or None) and score NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy import sparse
        >>> from rankrls import ConditionalRankRLS
        >>> rng = np.random.default_rng(0)
        >>> users, items = rng.normal(size=(30, 3)), rng.normal(size=(50, 3))
        >>> bought = sparse.csr_array(users @ items.T > 2.0, dtype=float)
        >>> model = ConditionalRankRLS(1.0, missing="zero").fit(users, bought, items)
        >>> model.recommend(users, top=5, exclude=bought).ids.shape
        (30, 5)
        """
        check_is_fitted(self, "alpha_")
        checks.check_count("top", top)
        return self._best(X, Z, int(top), exclude)

    def score(self, X, Y, Z=None):
        """The `scoring` metric of the rankings, averaged over conditioning objects.

        Parameters
        ----------
        X, Z : as in `predict`
        Y : array-like, sparse matrix or data frame of shape (n, m)
            True relation; NaN, or not stored in a sparse matrix, where unknown. A frame is put in the order of the
            index of X and Z.

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "alpha_")
        edges, scores = self._judged(X, Y, Z)
        ends = edges.rows if self.condition == "source" else edges.columns
        return float(get_metric(self.scoring)(edges.y, tied(scores, ends), Queries.of(ends)))

    def rating(self, *, return_std=False):
        """One number per object: the mean of its relation to all training objects, the additive part of the model.

        For a reciprocal relation, the difference of two ratings is the prediction for a game without effects of the
        particular pairing. With two kinds of objects, the ranked ones are rated.

        Parameters
        ----------
        return_std : bool, default=False
            Also return standard errors, for one kind of objects and models fitted by `fit_edges`. They refer to the
            difference from the mean of all objects, each counted by its edges; what ratings do not explain of the edges
            counts as noise.

        Returns
        -------
        rating : Series, or data frame with columns rating and std
            By id, best first; arrays in the order of the objects if pandas is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import ConditionalRankRLS
        >>> model = ConditionalRankRLS(0.1, relation="reciprocal", pairwise="sum")
        >>> model.fit_edges(np.eye(3), [(2, 0), (0, 1)]).rating().index.tolist()  # 2 beat 0, 0 beat 1
        [2, 0, 1]
        """
        check_is_fitted(self, "alpha_")
        std = None
        if return_std:
            if not hasattr(self, "rating_std_"):
                raise ValueError(
                    "standard errors of ratings need one kind of objects and a model fitted by fit_edges, which this "
                    "one is not"
                )
            std = self.rating_std_
        return by_id(self.source_ids_ if self._one_domain else self.target_ids_, self._ratings(), std)

    def probability(self, a, b, *, home=0.0):
        """The probability that a beats b: 1 / (1 + exp(-steepness * score)), calibrated on held-out games.

        Parameters
        ----------
        a, b : id, list of ids, or features of one object or several
            Both ends, seen in training or new.
        home : float, default=0.0
            1 if a plays at home, -1 if b does; for models fitted with `home`.

        Returns
        -------
        probability : float, or ndarray of shape (n,)
        """
        check_is_fitted(self, "alpha_")
        if not hasattr(self, "probability_scale_"):
            raise ValueError('probabilities need a reciprocal relation: fit with fit_edges and relation="reciprocal"')
        single = self._is_one(a) and self._is_one(b, "target")
        left, right = self._ends(self._rows(a), self._rows(b, "target"))
        scores = np.einsum("ij,ij->i", *np.broadcast_arrays(left, right)) + home * getattr(self, "home_advantage_", 0.0)
        found = ratings.logistic(self.probability_scale_ * scores)
        return float(found[0]) if single else found

    # ---------------------------------------------------------------- helpers

    def _store(self, attributes: dict[str, Any]) -> None:
        stale = [name for name in vars(self) if (name.endswith("_") or name in LATER) and name not in INPUT]
        for name in stale:
            delattr(self, name)
        for name, value in attributes.items():
            setattr(self, name, value)

    def _store_columns(self, columns: dict[str, Any]) -> None:
        """Store the columns of a table of edges, so that other tables are read in the same way."""
        named = {name: value for name, value in columns.items() if isinstance(value, str)}
        if "source" in named:
            self.edge_columns_ = named

    def _store_games(self, found: Fitted, listed: EdgeList, parity: int) -> None:
        """Store what only games have: the scale of probabilities, and standard errors of ratings."""
        held = getattr(self, "cv_predictions_", None)
        if held is not None:
            self.cv_predictions_ = held = held[: len(listed)]
        if not parity:
            return
        at_home = 0.0 if listed.home is None else self.home_advantage_ * listed.home
        left, right = self._ends(None, None)
        scores = sampled(left, right, listed.rows, listed.columns) + at_home
        if parity == -1:
            judged = scores if held is None else held
            self.probability_scale_ = ratings.probability_scale(judged, listed.y, listed.weights)
        if len(left) <= MOST_RATED and self.alpha_ > 0:  # standard errors need the prior that a penalty implies
            P = ratings.prior(found.candidate.source.domain, parity, found.candidate.loss.pairwise)
            games = (listed.rows, listed.columns, listed.y - at_home, listed.weights)
            self.rating_std_ = ratings.rating_errors(P, self.alpha_, self._ratings(), *games, parity)

    def _ratings(self) -> np.ndarray:
        """(n,) in the order of the objects, zero on average."""
        left, right = self._ends(None, None)
        right = dense(right)
        rows, columns = left @ right.mean(axis=0), right @ left.mean(axis=0)
        parity = {"symmetric": 1, "reciprocal": -1}.get(str(getattr(self, "relation_", self.relation)), 0)
        rating = (rows + parity * columns) / 2 if parity else columns
        rating = rating - rating.mean()
        rounding = 1e-13 * float(np.abs(left).mean(axis=0) @ np.abs(right).mean(axis=0))
        return np.where(np.abs(rating).max(initial=0) > rounding, rating, 0.0)

    def _best(self, conditions, candidates, top_: int | None, exclude) -> Any:
        """The best candidates for each conditioning object, as `rank` and `recommend` return them."""
        source = self.condition == "source"
        mine, other = ("source", "target") if source else ("target", "source")
        by_id = conditions is not None and self._are_ids(conditions, mine)
        single = conditions is not None and self._is_one(conditions, mine)
        rows = conditions if conditions is None else self._rows(conditions, mine)
        left, right = self._ranked_ends(rows, candidates, source)
        own, ids = self._ids(rows, mine), self._ids(candidates, other)
        known = getattr(self, "Y_fit_", None)
        known = known if source or known is None else known.T
        met = self._places(own, rows, mine, by_id=by_id), self._places(ids, candidates, other)
        out = excluded(exclude, own, ids, known, met, getattr(self, "edge_columns_", {}), turned=not source)
        if top_ is None:
            check_memory(24 * len(left) * len(right), "all rankings", "set top=, or use fewer objects at a time")
        places, scores = top.best(left, right, len(right) if top_ is None else top_, out)
        found = ids.labels[places]
        if (places < 0).any():
            found = np.where(places < 0, None if found.dtype.kind == "O" else -1, found)
        if by_id:
            places = np.where(places < 0, -1, met[1][places])
            return ranking_frame(own.labels, found, scores, places, known, met[0], single=single)
        return Ranking(found[0], scores[0]) if single else Ranking(found, scores)

    def _places(self, ids: Ids, objects, end: str, *, by_id: bool = False) -> np.ndarray:
        """The rows of objects among the training objects; -1 for new objects and objects without ids."""
        if objects is None:
            return np.arange(len(ids))
        return self._known_ids(end).places(ids.labels) if ids.named or by_id else np.full(len(ids), -1)

    def _ranked_ends(self, conditions, candidates, source: bool) -> tuple[np.ndarray, np.ndarray]:
        if not source:
            right, left = self._ends(candidates, conditions)
            return dense(left), dense(right)
        plain = hasattr(self, "dual_coef_") and not hasattr(self, "source_effects_")
        plain = plain and not getattr(self, "intercept_", 0.0)  # missing in older models
        if candidates is not None or not plain:
            left, right = self._ends(conditions, self._objects(None, "target") if candidates is None else candidates)
            return left, dense(right)
        left = self.kernel_(self._objects(conditions, "source"), self.X_fit_)
        short = self.dual_coef_.shape[0] <= self.dual_coef_.shape[1]
        return dense(left if short else left @ self.dual_coef_), self._known_scores(short)

    def _known_scores(self, short: bool) -> np.ndarray:
        """K (r, m) of the training candidates, or K a' (m, p) if that is `short`; cached between calls."""
        if "_cache" not in vars(self):
            K = dense(self.target_kernel_(self._objects(None, "target"), self.Z_fit_))
            self._cache = dense(self.dual_coef_ @ K.T).T if short else K
        return self._cache

    def __getstate__(self):
        if "_held_out" in vars(self):
            self.cv_predictions_  # noqa: B018 - computed now, since what it takes is not stored
        state = {name: value for name, value in super().__getstate__().items() if name not in LATER}
        for name in ("kernel", "target_kernel"):  # frames of similarities are stored once, as arrays
            given = state.get(name)
            if isinstance(given, list | tuple) and any(hasattr(one, "iloc") for one in given) and f"{name}_" in state:
                state[name] = state[f"{name}_"]
        return state | ({"callback": None} if "callback" in state else {})  # not part of the model

    def _judged(self, X, Y, Z) -> tuple[Any, np.ndarray]:
        """The known edges of Y as a list, and their scores."""
        left, right = self._ends(X, Z)
        one = Z is None and self._one_domain
        source = self._ids(X, "source")
        Y = names.aligned(Y, source, source if one else self._ids(Z, "target"), ("X", "X" if one else "Z"))
        edges = relation_checks.check_relation(Y, len(left), len(right), one_domain=one).listed()
        if len(edges.y) == left.shape[0] * right.shape[0]:
            return edges, (left @ right.T).ravel()
        return edges, sampled(left, right, edges.rows, edges.columns)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags
