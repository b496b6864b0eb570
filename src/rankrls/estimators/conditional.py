"""ConditionalRankRLS: rank objects given another object, by a relation between them."""

from __future__ import annotations

from typing import Any, Self

from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from ..blocks.edges import is_stream
from ..kernels import is_precomputed
from ..relations import checks as relation_checks
from ..relations import fitting, names
from ..relations.games import EdgeList
from ..relations.relation import EdgeSet
from ..system.progress import reporting
from ..system.types import Matrix
from .edge_stream import fit_stream, refuse_in_streams
from .iterates import Iterate
from .judging import Evaluation, RelationJudge
from .rankings import Ranking
from .relation_model import INPUT, RelationModel
from .relation_setup import PARITY, RELATION, candidates_of, objects_of, parity_of_edges, search_of
from .sides import FLOATS, Side, attributes_of, kernels_of, sides_of

__all__ = ["ConditionalRankRLS", "Ranking"]


class ConditionalRankRLS(RelationModel):
    """Ranking of objects given an object, for objects never seen in training.

    Learns a relation f(x, z) between a conditioning object x and an object z to be ranked: who beats whom, which
    targets a drug binds, which items a user buys. Features, or kernels, describe the objects. The model minimises ::

        sum over x of the sum over pairs z, z' related to x of
            ((Y[x, z] - Y[x, z']) - (f(x, z) - f(x, z')))^2 / n_x  +  alpha ||f||^2

    with n_x the edges of x (`loss="ranking"`), or the squared errors of Y instead (`loss="regression"`). Complete
    relations are solved in closed form, incomplete ones by conjugate gradients without a matrix of edges by edges.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation; "auto" chooses among `alphas` by hold-out. With an iterative solver it may be 0: then stopping
        after `max_iter` iterations is what regularises.
    kernel : None, str, Kernel, callable, "precomputed" or list of kernels or matrices, default=None
        Kernel among the objects of X; None is linear, f(x, z) = x' W z. See `rankrls.kernels`. gamma="auto" and
        parameters that are lists, `Gaussian([0.1, 1.0])`, are chosen by hold-out. A list of kernels is a weighted sum:
        hold-out chooses between weights by alignment with the relation, equal ones, and each kernel by itself. With
        a list of matrices of similarities, X names their rows by its index, or is a column of row numbers.
    target_kernel : as `kernel`, default=None
        Kernel among the objects of Z, if other than `kernel`.
    loss : {"ranking", "regression"}, default="ranking"
        Whether differences within a conditioning object count, or the values.
    relation : {None, "symmetric", "reciprocal"}, default=None
        f(x, z) = f(z, x), or f(x, z) = -f(z, x), exactly; only where both ends are of one kind (no Z). A reciprocal
        relation that is a probability has to be Y - 1/2. "arbitrary" is another name of None.
    condition : {"source", "target"}, default="source"
        Y[i, j] is the edge from object i of X to object j of Z (of X if there is no Z). "source" ranks the ends of the
        edges that leave an object, "target" the starts of those that arrive at it.
    missing : {"unknown", "zero"}, default="unknown"
        What an edge is that Y does not have. With "zero" the relation is complete, as in implicit feedback: linear
        features need X'X, Z'Z and X'YZ only, and a sparse Y stays sparse.
    pairwise : {"kronecker", "sum"} or list of both, default="kronecker"
        The kernel of two pairs: the product of those of their ends; their sum, so that f(x, z) = g(x) + h(z); or both,
        with a weight chosen by hold-out. The sum lets an object be popular, or strong, with everybody.
    weighting : {"items", "queries", "pairs"}, default="items"
        A conditioning object counts by its edges, as all others, or by its pairs of edges.
    intercept : bool, default=False
        A constant without penalty (loss="regression"): needed if the mean of Y is far from zero.
    solver : {"auto", "closed", "cg", "pcg", "cr"}, default="auto"
        Closed form for complete graphs, conjugate gradients, these preconditioned by the closed form of the complete
        graph, or conjugate residuals, whose early iterates are the better models. "auto" takes the first where it
        can, "pcg" where less than 30 % of the edges are missing, "cr" where alpha is 0, and solves directly for a few
        features of ends that are scored apart, pairwise="sum".
    alphas : array-like of float, default=None
        Values to choose from; None takes 15 over seven decades about the mean eigenvalue of the loss.
    scoring : str or callable, default="pairwise_accuracy"
        Metric of `rankrls.metrics`, averaged over conditioning objects: chooses alpha, and is what `score` returns.
    cv : "auto", int, RelationKFold or the name of an exact hold-out, default="auto"
        What is held out to choose alpha: what will be new when the model is used. "leave-row-out" leaves out each
        conditioning object of a complete relation in turn, exactly and without refits, "leave-edge-out" each edge,
        "leave-column-out" each ranked object (regression). "auto" is the first where `relation` is None; else five
        folds of objects, of the conditioning ones (setting 2) where the ends differ in kind, in both roles (setting 4)
        where they do not, and games (setting 1) of a reciprocal list. See `rankrls.selection.RelationKFold`.
    indefinite : {"error", "clip", "shift"}, default="error"
        A precomputed kernel with negative eigenvalues, as similarities of drugs and proteins often have, is refused,
        loses its negative part (and new similarities theirs), or has a multiple of the identity added. The matrices
        used are `X_fit_` and `Z_fit_`: after "shift", pass rows of these to predict training objects again.
    basis, target_basis, random_state : None, int, Basis or array, default=None; int, default=0
        Points in which the kernel of X, of Z, is expanded, as in `RankRLS`, and the seed of their choice.
    encoder : None, "auto" or transformer, default=None
        Makes numbers of data frames with text, missing values or dates, at both ends: "auto" is a `TableEncoder`
        that standardises numbers. Arrays stay as they are. Kept as `encoder_` and `target_encoder_`.
    tol : float, default=1e-6
        Relative residual at which conjugate gradients stop, in folds too.
    max_iter : int or "auto", default=1000
        Iterations after which they give up, with a warning unless alpha is 0. "auto" chooses the number of conjugate
        residuals by hold-out of folds; alpha="auto" is then 0, since stopping early is what regularises.
    callback : callable, default=None
        Called with an `Iterate` after each iteration of conjugate residuals; something true ends the fit.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    alpha_ : float
        The regularisation used.
    coef_ : ndarray of shape (n_features, n_target_features)
        W of a linear model with fewer features than objects at both ends. Other models have `dual_coef_` instead.
    dual_coef_ : ndarray or sparse array of shape (n_sources, n_targets)
        a in f = sum over i, j of k(x, x_i) a[i, j] k(z, z_j). Symmetric or skew if the relation is.
    source_effects_, target_effects_ : ndarray
        Coefficients of the ends by themselves, if `pairwise` has them.
    intercept_ : float
    kernel_, target_kernel_ : Kernel
        With their parameters.
    alphas_, cv_scores_ : ndarray of shape (n_alphas,)
        The grid and the mean held-out score of each (only if alpha is "auto", as the next). With each of many rows
        left out, from 2,000,000 edges on, alphas that are far behind on a sample of rows have an estimate.
    cv_predictions_ : ndarray of shape (n_sources, n_targets) or (n_edges,)
        Held-out scores at `alpha_`, those of refits; a matrix if Y is dense, else one for each edge; NaN where an edge
        was not held out.
    solver_, n_iter_, residuals_
        "closed", "cg", "pcg", "cr" or "direct"; iterations; the relative residual before the first and after each.
    iterations_ : ndarray of shape (n_tried,)
        The numbers of iterations that `cv_scores_` is of, if max_iter is "auto".
    n_edges_ : int
        Edges learned from.
    edge_columns_ : dict
        The columns of a data frame of edges: source, target and what else was named.
    home_advantage_, probability_scale_, rating_std_ : float
        Of games, see `fit_edges`.

    References
    ----------
    Pahikkala, Airola, Stock, De Baets, Waegeman: Efficient regularized least-squares algorithms for conditional ranking
    on relational data. Machine Learning 93 (2013). The closed form for symmetric and reciprocal ranking is not in it.

    Examples
    --------
    Players that beat each other like rock, paper and scissors:

    >>> import numpy as np
    >>> from rankrls import ConditionalRankRLS
    >>> moves = np.random.default_rng(0).dirichlet([0.3] * 3, size=40)  # how often each player plays each move
    >>> beats = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> model = ConditionalRankRLS(relation="reciprocal").fit(moves[:30], moves[:30] @ beats @ moves[:30].T)
    >>> new = moves[30:]
    >>> model.score(new, new @ beats @ new.T) > 0.99
    True
    >>> weakest = model.rank([1.0, 0.0, 0.0], new, top=1).ids  # whom a player of rock beats most surely
    >>> new[weakest].argmax(axis=1)  # one who plays scissors
    array([2])
    """

    def __init__(
        self, alpha="auto", *, kernel=None, target_kernel=None, loss="ranking", relation=None, condition="source",
        missing="unknown", pairwise="kronecker", weighting="items", intercept=False, solver="auto", alphas=None,
        scoring="pairwise_accuracy", cv="auto", indefinite="error", basis=None, target_basis=None, encoder=None,
        random_state=0, tol=1e-6, max_iter=1000, callback=None, verbose=False,
    ) -> None:  # fmt: skip
        self.alpha = alpha
        self.kernel = kernel
        self.target_kernel = target_kernel
        self.loss = loss
        self.relation = relation
        self.condition = condition
        self.missing = missing
        self.pairwise = pairwise
        self.weighting = weighting
        self.intercept = intercept
        self.solver = solver
        self.alphas = alphas
        self.scoring = scoring
        self.cv = cv
        self.indefinite = indefinite
        self.basis = basis
        self.target_basis = target_basis
        self.encoder = encoder
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def fit(self, X, Y, Z=None, *, sample_weight=None) -> Self:
        """Learn from a matrix of relations.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_sources, n_features)
            Objects; with kernel="precomputed" the kernel matrix among them. The index of a pandas frame, unless it is
            plainly 0, 1, 2, ..., holds their ids.
        Y : array-like, sparse matrix or data frame of shape (n_sources, n_targets)
            The relation from each object of X to each of Z. NaN where it is not known; of a sparse matrix only the
            stored entries, zeros too, are known (entries stored twice add up, as everywhere in SciPy), unless
            missing="zero". A frame is put in the order of the ids of X and Z by its index and its columns.
        Z : as X, of shape (n_targets, n_target_features), default=None
            The objects at the other end; None relates those of X to each other.
        sample_weight : array-like of shape (n_conditioning,) or that of Y, default=None
            How much each conditioning object counts, or each entry of Y.

        Returns
        -------
        self
        """
        relation_checks.check_options(self)
        with reporting(self.verbose):
            source, target = self._sides(X, Z)
            Y = names.aligned(Y, source.ids, target.ids, (source.name, target.name))
            shape = (len(source), len(target))
            edges = relation_checks.check_relation(Y, *shape, one_domain=Z is None, missing=self.missing)
            edges = relation_checks.weighted(edges, sample_weight, turned=self.condition == "target")
            self._fit(source, target, edges, PARITY[self.relation], None if sparse.issparse(Y) else shape)
        return self

    def fit_edges(
        self, X, edges, y=None, Z=None, *, source=None, target=None, sample_weight=None, date=None, half_life=None,
        home=None,
    ) -> Self:  # fmt: skip
        """Learn from a list of edges, such as games, in which an edge may occur several times.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_sources, n_features), "ids" or None
            Objects; with kernel="precomputed" the kernel matrix among them. "ids" or None: nothing is known of them
            but the ids in `edges`, as of teams in a league (with pairwise="sum").
        edges : array-like of shape (n_edges, 2), or data frame
            Source and target of each edge: ids where X and Z are pandas frames with an index of their own, else row
            numbers. A symmetric or reciprocal relation takes each edge from both of its ends. Edges that do not fit in
            memory may be the path of a Parquet file or folder or of a CSV file, a polars LazyFrame, an Arrow Dataset
            or reader, a DuckDB relation, or an iterator of data frames: for linear features or a `basis`, with named
            columns. alpha="auto" is then chosen by the loss of five folds of conditioning objects.
        y : array-like of shape (n_edges,) or str, default=None
            The value of each edge, or the column that holds it. None makes each edge a 1: of a reciprocal relation,
            the source beat the target; with missing="zero", all other edges are 0.
        Z : as X, default=None
            The objects at the other end; None relates those of X to each other.
        source, target : str, default=None
            The columns of a data frame of edges that hold the two ends.
        sample_weight : array-like of shape (n_edges,) or str, default=None
            How much each edge counts, or the column that says so. "recency", where no column is called that, is a
            half-life of 365 days.
        date : array-like of shape (n_edges,) or str, default=None
            When each edge was seen, or the column that says so.
        half_life : str, float or timedelta, default=None
            The age at which an edge counts half, counted from the latest date: "365d", "52w", "2y".
        home : array-like of shape (n_edges,) or str, default=None
            1 where the source plays at home, -1 where the target does, 0 on neutral ground: its effect is learned
            without penalty, as `home_advantage_`.

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from rankrls import ConditionalRankRLS
        >>> teams = pd.DataFrame([[1.0, 0.2], [1.0, 0.5], [1.0, 0.9]], index=["ajax", "bari", "celta"])
        >>> games = pd.DataFrame({"winner": ["bari", "celta", "celta"], "loser": ["ajax", "bari", "ajax"]})
        >>> model = ConditionalRankRLS(0.1, relation="reciprocal")
        >>> model.fit_edges(teams, games, source="winner", target="loser").rating().index.tolist()
        ['celta', 'bari', 'ajax']
        """
        relation_checks.check_options(self)
        if is_stream(edges):
            columns = {"source": source, "target": target, "y": y, "sample_weight": sample_weight}
            refuse_in_streams(self, X, columns, {"date": date, "half_life": half_life, "home": home})
            with reporting(self.verbose):
                self._store(fit_stream(self, *self._sides(X, Z), edges, columns, parity_of_edges(self, y, Z)))
                self._store_columns(columns)
            return self
        X, Z = objects_of(self, X, Z, edges, source, target)
        with reporting(self.verbose):
            sides = self._sides(X, Z)
            shape = (len(sides[0]), len(sides[1]))
            parity = parity_of_edges(self, y, Z)
            listed = EdgeList.of(
                edges, y, (sides[0].ids, sides[1].ids), source=source, target=target, sample_weight=sample_weight,
                date=date, half_life=half_life, home=home,
            )  # fmt: skip
            columns = {"source": source, "target": target, "y": y, "date": date, "home": home}
            if self.missing == "zero":
                self._fit(*sides, relation_checks.all_others_zero(listed, shape), parity, None)
                self._store_columns(columns)
                return self
            known = fitting.known_objects(len(listed)) if parity == -1 and self.cv == "auto" else None
            found = self._fit(*sides, listed.both_ways(parity).edge_set(shape), parity, None, known)
            self._store_games(found, listed, parity)
            self._store_columns(columns)
        return self

    def evaluate(
        self, X, Y, Z=None, *, settings=None, n_splits=5, random_state=0, y=None, source=None, target=None,
        sample_weight=None, date=None, half_life=None, home=None,
    ) -> Evaluation:  # fmt: skip
        """Scores of models with these parameters on what they have not seen, in each of the four settings.

        alpha="auto" is chosen by hold-out of what is new in the setting that is judged.

        Parameters
        ----------
        X, Y, Z : as in `fit`
            Y may also be a list of edges, as in `fit_edges`: if `source`, `y` or `date` is given.
        settings : iterable of {1, 2, 3, 4, "time"}, default=None
            As in `rankrls.selection.RelationKFold`; "time" learns from the past and judges what came next, a piece of
            the edges at a time. None is all four, or 1 and 4 for symmetric and reciprocal relations, where an edge
            that is left out in one direction only would be known from the other; with dates, "time".
        n_splits : int, default=5
            Folds in each setting.
        random_state : int, default=0
            Seed of the folds.
        y, source, target, sample_weight, date, half_life, home
            As in `fit_edges`.

        Returns
        -------
        scores : Evaluation, a dict of setting to ndarray of shape (n_splits,)
            For each setting the `scoring` of each fold, NaN where it holds out nothing that could be ranked. Its
            `metrics` have the concordance of all pairs beside it, and `print(scores)` means and standard errors.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import ConditionalRankRLS
        >>> rng = np.random.default_rng(0)
        >>> u, v = rng.normal(size=(40, 2)), rng.normal(size=(50, 2))
        >>> drugs, targets = (w + 0.3 * rng.normal(size=w.shape) for w in (u, v))  # features tell part of the truth
        >>> found = ConditionalRankRLS(kernel="rbf").evaluate(drugs, u @ v.T, targets)
        >>> {setting: round(float(scores.mean()), 2) for setting, scores in found.items()}
        {1: 0.88, 2: 0.86, 3: 0.84, 4: 0.81}
        """
        relation_checks.check_options(self)
        listed = any(given is not None for given in (y, source, target, date))
        X, Z = objects_of(self, X, Z, Y, source, target) if listed else (X, Z)
        parity = parity_of_edges(self, y, Z) if listed else PARITY[self.relation]
        columns = {"y": y, "source": source, "target": target, "sample_weight": sample_weight, "date": date}
        judge = RelationJudge(self, parity, Z is None, n_splits, random_state)
        return judge.evaluation(X, Y, Z, settings, {**columns, "home": home} if listed else None, half_life)

    # ---------------------------------------------------------------- inside

    def _fit(
        self, source: Side, target: Side, edges: EdgeSet, parity: int, matrix: tuple[int, int] | None, cv: object = None
    ) -> fitting.Fitted:
        """Learn from checked edges; `matrix` is the shape that held-out scores of edges are put back into."""
        turned, ranking = self.condition == "target", self.loss == "ranking"
        relation_checks.warn_of_lone_objects(edges, (source.name, target.name))
        known = edges
        edges = edges.T if turned else edges
        relation_checks.check_graph(edges, ranking=ranking, parity=parity, closed=self.solver == "closed")
        candidates = candidates_of(self, source, target, known, parity)
        attributes = lambda found: attributes_of(found, known, RELATION[parity], matrix, turned=turned)
        watch = None
        if self.callback is not None:
            watch = lambda k, residual, found: self.callback(
                Iterate(k, residual, lambda: self._as_it_stands(attributes(found())))
            )
        found = fitting.fit(candidates, edges, search_of(self, edges, len(candidates), cv, watch))
        self._store(attributes(found))
        return found

    def _as_it_stands(self, attributes: dict[str, Any]) -> ConditionalRankRLS:
        """A model of its own with these attributes."""
        model = clone(self).set_params(callback=None)
        model._store(attributes | {name: getattr(self, name) for name in INPUT if hasattr(self, name)})
        return model

    def _sides(self, X: Matrix, Z: Matrix) -> tuple[Side, Side]:
        if Z is not None and PARITY[self.relation]:
            raise ValueError(f'relation="{self.relation}" relates objects of one kind: leave Z out')
        kernels = kernels_of(self.kernel, self.target_kernel, Z)
        validate = lambda X: validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        of_bases = (self.basis, self.basis if self.target_basis is None else self.target_basis)
        return sides_of(X, Z, kernels, self.indefinite, validate, of_bases, self.random_state, self.encoder)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags
