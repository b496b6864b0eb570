"""ConditionalRankRLS: rank objects given another object, by a relation between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..core.krylov import warn_if_stopped_early
from ..core.queries import Queries
from ..kernels import Kernel, Precomputed, as_kernel
from ..metrics import get_metric
from ..problems import choice
from ..relations import checks as relation_checks
from ..relations.edges import Graph, sampled
from ..relations.folds import RelationKFold
from ..relations.problems import REMEDY, CompleteProblem, EdgeProblem
from ..relations.relation import Relation
from ..system import memory
from ..system.frames import as_frame
from ..system.progress import reporting
from .sides import Side, as_objects, ids_of

PARITY = {None: 0, "arbitrary": 0, "symmetric": 1, "reciprocal": -1}
FOLDS = 5


class Ranking(NamedTuple):
    """Objects, best first, and their scores; a row for each conditioning object."""

    ids: np.ndarray
    scores: np.ndarray


class ConditionalRankRLS(BaseEstimator):
    """Ranking of objects given an object, for objects never seen in training.

    Learns a relation f(x, z) between a conditioning object x and an object z to be ranked: who beats whom, which
    targets a drug binds, which documents resemble a document. Features, or kernels, describe the objects; Y holds the
    relation between those of the training set. The model is a kernel on pairs that is the product of a kernel on each
    end, and minimises ::

        sum over x of the sum over pairs z, z' related to x of
            ((Y[x, z] - Y[x, z']) - (f(x, z) - f(x, z')))^2 / n_x  +  alpha ||f||^2

    with n_x the edges of x (`loss="ranking"`), or the squared errors of Y instead (`loss="regression"`).

    A complete graph is solved in closed form, also for symmetric and reciprocal relations: with p objects two
    eigendecompositions, after which every alpha costs a few matrix products. Incomplete graphs are solved by conjugate
    gradients that never form a matrix of edges by edges.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation; "auto" chooses among `alphas` by hold-out. With an incomplete graph it may be 0: then stopping
        after `max_iter` iterations is what regularises.
    kernel : None, str, Kernel, callable or "precomputed", default=None
        Kernel among the objects of X; None is linear, f(x, z) = x' W z. See `rankrls.kernels`.
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
    solver : {"auto", "closed", "cg", "pcg"}, default="auto"
        Closed form for complete graphs, conjugate gradients, or these preconditioned by the closed form of the
        complete graph. "auto" takes the first where it can and the last where less than 30 % of the edges are missing.
    alphas : array-like of float, default=None
        Values to choose from; None takes 15 over seven decades about the mean eigenvalue of the loss.
    scoring : str or callable, default="pairwise_accuracy"
        Metric of `rankrls.metrics`, averaged over conditioning objects: chooses alpha, and is what `score` returns.
    cv : "auto", int or RelationKFold, default="auto"
        What is held out to choose alpha. "auto" leaves out each conditioning object of a complete graph in turn,
        exactly and without refits (setting 2), if `relation` is None; else five folds of objects: of the conditioning
        ones (setting 2) where the ends differ in kind, in both roles (setting 4) where they do not. A number is that
        many folds of that setting. What will be new when the model is used should be held out: see
        `rankrls.selection.RelationKFold`.
    indefinite : {"error", "clip", "shift"}, default="error"
        What to do with a precomputed kernel that has negative eigenvalues, as similarities of drugs and proteins
        often have: refuse it, drop the negative part (of new similarities too, when they are predicted from), or add
        a multiple of the identity. The matrices used are kept as `X_fit_` and `Z_fit_`: with "shift", similarities of
        training objects to be predicted again have to be rows of these.
    tol : float, default=1e-6
        Relative residual at which conjugate gradients stop.
    max_iter : int, default=1000
        Iterations after which they give up, with a warning unless alpha is 0.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    alpha_ : float
        The regularisation used.
    coef_ : ndarray of shape (n_features, n_target_features)
        W of a linear model with fewer features than objects at both ends; other models have
    dual_coef_ : ndarray or sparse array of shape (n_sources, n_targets)
        a in f = sum over i, j of k(x, x_i) a[i, j] k(z, z_j). Symmetric or skew if the relation is.
    kernel_, target_kernel_ : Kernel
        With their parameters.
    alphas_, cv_scores_ : ndarray of shape (n_alphas,)
        The grid and the mean held-out score of each (only if alpha is "auto", as the next).
    cv_predictions_ : ndarray of shape (n_sources, n_targets) or (n_edges,)
        Held-out scores at `alpha_`: a matrix if Y is dense, else one for each edge; NaN where an edge was not held out.
    solver_ : str
        "closed", "cg" or "pcg".
    n_iter_ : int
        Iterations of conjugate gradients; 0 for the closed form.
    residuals_ : ndarray
        The relative residual before the first and after each iteration.
    n_edges_ : int
        Edges learned from.
    n_features_in_, feature_names_in_
        As in `RankRLS`, of X.

    Notes
    -----
    A linear kernel has no constant: add a column of ones to X (or Z) to let the other end have effects of its own.

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
    >>> scores = model.predict(new)
    >>> bool(np.allclose(scores, -scores.T))
    True
    >>> rock = [1.0, 0.0, 0.0]
    >>> weakest = model.rank(rock, new, top=1).ids  # whom a player of rock beats most surely: who plays scissors
    >>> new[weakest].argmax(axis=1)
    array([2])
    """

    def __init__(
        self,
        alpha="auto",
        *,
        kernel=None,
        target_kernel=None,
        loss="ranking",
        relation=None,
        condition="source",
        solver="auto",
        alphas=None,
        scoring="pairwise_accuracy",
        cv="auto",
        indefinite="error",
        tol=1e-6,
        max_iter=1000,
        verbose=False,
    ):
        self.alpha = alpha
        self.kernel = kernel
        self.target_kernel = target_kernel
        self.loss = loss
        self.relation = relation
        self.condition = condition
        self.solver = solver
        self.alphas = alphas
        self.scoring = scoring
        self.cv = cv
        self.indefinite = indefinite
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X, Y, Z=None):
        """Learn from a matrix of relations.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_sources, n_features)
            Objects; with kernel="precomputed" the kernel matrix among them.
        Y : array-like or sparse matrix of shape (n_sources, n_targets)
            The relation from each object of X to each of Z. NaN where it is not known; of a sparse matrix only the
            stored entries, zeros too, are known (entries stored twice add up, as everywhere in SciPy).
        Z : as X, of shape (n_targets, n_target_features), default=None
            The objects at the other end; None relates those of X to each other.

        Returns
        -------
        self
        """
        return self._fit_matrix(X, Y, Z)

    def fit_edges(self, X, edges, y, Z=None):
        """Learn from a list of edges, in which an edge may occur several times.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_sources, n_features)
            Objects; with kernel="precomputed" the kernel matrix among them.
        edges : array-like of shape (n_edges, 2)
            Source and target of each edge: row numbers of X and of Z (of X if there is no Z), or the index labels
            where X and Z are pandas data frames.
        y : array-like of shape (n_edges,)
            The value of each edge; each is an observation of its own.
        Z : as X, default=None
            The objects at the other end; None relates those of X to each other.

        Returns
        -------
        self

        Examples
        --------
        >>> from rankrls import ConditionalRankRLS
        >>> teams, matches = [[1.0, 0.2], [1.0, 0.5], [1.0, 0.9]], [[0, 1], [2, 1], [2, 0], [1, 0]]
        >>> model = ConditionalRankRLS(0.1, relation="reciprocal").fit_edges(teams, matches, [-1.0, 1.0, 3.0, 2.0])
        >>> model.predict_edges(teams, [[1, 2], [2, 1]]).round(2)
        array([-0.49,  0.49])
        """
        self._check_params()
        with reporting(self.verbose):
            source, target = self._sides(X, Z)
            shape = (len(source), len(target))
            rows, columns = relation_checks.check_edges(edges, *shape, (source.ids, target.ids))
            y = checks.check_numbers("y", y, len(rows), unit="edge")
            return self._fit(source, target, Relation(shape, None, rows, columns, y), matrix=False)

    def predict(self, X, Z=None):
        """Scores of the relation from each object of X to each of Z.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Objects, seen in training or not; with kernel="precomputed" the kernel between them and those of `fit`.
        Z : as X, of shape (m, n_target_features), default=None
            The objects at the other end; None is X itself, or where `fit` had a Z, that Z.

        Returns
        -------
        scores : ndarray of shape (n, m)
            Larger is ranked higher: within a row if condition="source", within a column if "target".
        """
        left, right = self._ends(X, Z)
        return left @ right.T

    def predict_edges(self, X, edges, Z=None):
        """Scores of some edges only.

        Parameters
        ----------
        X, Z : as in `predict`
        edges : array-like of shape (n_edges, 2)
            Row numbers in X and Z, or index labels, as in `fit_edges`.

        Returns
        -------
        scores : ndarray of shape (n_edges,)
        """
        left, right = self._ends(X, Z)
        other = X if Z is None and self._one_domain else Z
        ids = (ids_of(X), self.target_ids_ if other is None else ids_of(other))
        rows, columns = relation_checks.check_edges(edges, len(left), len(right), ids)
        return sampled(left, right, rows, columns)

    def rank(self, conditions, candidates=None, *, top=None):
        """Candidates from best to worst for each conditioning object.

        Parameters
        ----------
        conditions : array-like of shape (n, n_features) or (n_features,)
            Conditioning objects, or one of them.
        candidates : array-like of shape (m, n_features), default=None
            Objects to rank; None ranks those of the training set.
        top : int, default=None
            How many to return; None returns all.

        Returns
        -------
        ids : ndarray of shape (n, top) or (top,)
            Row numbers of the candidates, or the index labels of a pandas data frame.
        scores : ndarray of shape (n, top) or (top,)

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import ConditionalRankRLS
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
        >>> ConditionalRankRLS(0.1).fit(X, X @ X.T).rank([0.9, 0.1], X, top=2).ids  # the most alike
        array([0, 2])
        """
        check_is_fitted(self, "alpha_")
        single = not sparse.issparse(conditions) and np.ndim(conditions) == 1
        if single:  # a row of a data frame keeps its names
            series = hasattr(conditions, "to_frame")
            conditions = conditions.to_frame().T if series else np.asarray(conditions, dtype=np.float64)[None]
        source = self.condition == "source"
        known = self.target_ids_ if source else self.source_ids_
        ids = known if candidates is None else ids_of(candidates)
        if source:
            left, right = self._ends(conditions, self.Z_fit_ if candidates is None else candidates)
        else:
            right, left = self._ends(candidates, conditions)
        scores = left @ right.T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        found = Ranking(ids[order], np.take_along_axis(scores, order, axis=1))
        return Ranking(found.ids[0], found.scores[0]) if single else found

    def score(self, X, Y, Z=None):
        """The `scoring` metric of the rankings, averaged over conditioning objects.

        Parameters
        ----------
        X, Z : as in `predict`
        Y : array-like or sparse matrix of shape (n, m)
            True relation; NaN, or not stored in a sparse one, where it is not known.

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "alpha_")
        left, right = self._ends(X, Z)
        relation = relation_checks.check_relation(Y, len(left), len(right), one_domain=Z is None and self._one_domain)
        rows, columns, y = relation.edges()
        scores = (left @ right.T).ravel() if relation.Y is not None else sampled(left, right, rows, columns)
        queries = Queries.of(rows if self.condition == "source" else columns)
        return float(get_metric(self.scoring)(y, scores, queries))

    def evaluate(self, X, Y, Z=None, *, settings=None, n_splits=5, random_state=0):
        """Scores of models with these parameters on what they have not seen, in each of the four settings.

        Parameters
        ----------
        X, Y, Z : as in `fit`
        settings : iterable of {1, 2, 3, 4}, default=None
            As in `rankrls.selection.RelationKFold`. None is all four, or 1 and 4 for symmetric and reciprocal
            relations, where an edge that is left out in one direction only would be known from the other.
        n_splits : int, default=5
            Folds in each setting.
        random_state : int, default=0
            Seed of the folds.

        Returns
        -------
        scores : dict of int to ndarray of shape (n_splits,)
            For each setting the `scoring` of each fold, NaN where it holds out nothing that could be ranked.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import ConditionalRankRLS
        >>> rng = np.random.default_rng(0)
        >>> u, v = rng.normal(size=(40, 2)), rng.normal(size=(50, 2))
        >>> drugs, targets = (w + 0.3 * rng.normal(size=w.shape) for w in (u, v))  # features tell part of the truth
        >>> found = ConditionalRankRLS(kernel="rbf").evaluate(drugs, u @ v.T, targets)
        >>> {setting: round(float(scores.mean()), 2) for setting, scores in found.items()}
        {1: 0.87, 2: 0.86, 3: 0.81, 4: 0.8}
        """
        parity = PARITY[self.relation]
        settings = ((1, 4) if parity else (1, 2, 3, 4)) if settings is None else tuple(settings)
        if parity and not {1, 4}.issuperset(settings):
            raise ValueError(f'settings 2 and 3 have no meaning for relation="{self.relation}": use 1 and 4')
        pairwise, target_pairwise = (isinstance(k, Precomputed) for k in self._kernels(Z))
        take = lambda A, rows, columns, square: A[rows][:, columns] if square else A[rows]
        X, Y, Z = (A if A is None or sparse.issparse(A) else np.asarray(A) for A in (X, Y, Z))
        found = {}
        for setting in settings:
            held = {2: 3, 3: 2}.get(setting, setting) if self.condition == "target" else setting  # 2: rows, 3: columns
            splitter = RelationKFold(held, n_splits, same_objects=Z is None, random_state=random_state)
            found[setting] = np.full(n_splits, np.nan)
            for fold, (train, test) in enumerate(splitter.split(Y)):
                one = Z is None and np.array_equal(train.rows, train.columns)
                other = X if Z is None else Z
                objects = [
                    (
                        take(X, part.rows, train.rows, pairwise),
                        None if one else take(other, part.columns, train.columns, target_pairwise),
                    )
                    for part in (train, test)
                ]
                model = clone(self)._fit_matrix(objects[0][0], train.of(Y), objects[0][1], alone=True)
                try:
                    found[setting][fold] = model.score(objects[1][0], test.of(Y), objects[1][1])
                except ValueError:  # nothing to rank in this fold
                    continue
        return found

    # ---------------------------------------------------------------- inside

    def _fit_matrix(self, X, Y, Z, *, alone: bool = False):
        """`fit`, with objects that have no edge if they may be `alone`."""
        self._check_params()
        with reporting(self.verbose):
            source, target = self._sides(X, Z)
            relation = relation_checks.check_relation(Y, len(source), len(target), one_domain=Z is None)
            return self._fit(source, target, relation, matrix=not sparse.issparse(Y), alone=alone)

    def _fit(self, source: Side, target: Side, relation: Relation, *, matrix: bool, alone: bool = False):
        parity, ranking = PARITY[self.relation], self.loss == "ranking"
        names = (source.name, target.name)
        turned = self.condition == "target"
        conditioning, ranked = (target, source) if turned else (source, target)
        relation = relation.T if turned else relation
        if not alone:
            relation_checks.check_every_object(relation, names[::-1] if turned else names)
        relation_checks.check_graph(relation, ranking=ranking, parity=parity)
        G, K = conditioning.domain, ranked.domain
        if relation.Y is not None and self.solver not in ("cg", "pcg"):
            self._check_memory(relation)
            problem: Any = CompleteProblem(G, K, relation.Y, ranking, parity)
        elif self.solver == "closed":
            raise ValueError(
                f'solver="closed" needs every edge: {relation.n_edges} of {relation.shape[0] * relation.shape[1]} are '
                'known; use solver="auto"'
            )
        else:
            problem = EdgeProblem(Graph(G, K, *relation.edges(), ranking, parity, self.tol, self.max_iter))
        self._choose(problem, relation, one_domain=source is target, matrix=matrix)
        a = self._solve(problem)
        self._store(source, target, a.T if turned else a)
        self.n_edges_ = relation.n_edges
        return self

    def _choose(self, problem: Any, relation: Relation, *, one_domain: bool, matrix: bool) -> None:
        for name in ("alphas_", "cv_scores_", "cv_predictions_"):
            self.__dict__.pop(name, None)
        if self.alpha != "auto":
            self.alpha_ = checks.check_number("alpha", self.alpha, zero=isinstance(problem, EdgeProblem))
            return
        alphas = (
            choice.default_alphas(problem.spread) if self.alphas is None else checks.check_grid("alphas", self.alphas)
        )
        splitter = self._splitter(isinstance(problem, CompleteProblem), one_domain)
        judge = problem
        if splitter is not None and splitter.setting == 1 and isinstance(problem, CompleteProblem):
            judge = problem.by_edges(self.tol, self.max_iter)  # without some of its edges it is not complete
        metric = get_metric(self.scoring)
        scores = judge.scores(alphas, metric, splitter)
        best = choice.best(scores if metric.greater_is_better else -scores, alphas)
        self.alpha_, self.alphas_, self.cv_scores_ = float(alphas[best]), alphas, scores
        held = judge.held_out(self.alpha_, splitter)
        if held.ndim == 1 and matrix:
            rows, columns, _ = relation.edges()
            filled = np.full(relation.shape, np.nan)
            filled[rows, columns] = held
            held = filled
        self.cv_predictions_ = held.T if held.ndim == 2 and self.condition == "target" else held

    def _splitter(self, complete: bool, one_domain: bool) -> RelationKFold | None:
        """What is held out; None for exact leave-one-conditioning-object-out."""
        if isinstance(self.cv, RelationKFold):
            return self.cv
        mirrored = PARITY[self.relation] != 0
        if self.cv == "auto" and complete and not mirrored:
            return None
        setting = 4 if mirrored or (one_domain and not complete) else 2
        return RelationKFold(setting, FOLDS if self.cv == "auto" else self.cv, same_objects=one_domain)

    def _solve(self, problem: Any) -> Any:
        """(p, r) coefficients at the alpha chosen."""
        if isinstance(problem, CompleteProblem):
            self.solver_, self.n_iter_, self.residuals_ = "closed", 0, np.empty(0)
            return problem.coef(self.alpha_)
        graph = problem.graph
        preconditioned = self.alpha_ > 0 and (self.solver == "pcg" or (self.solver == "auto" and graph.nearly_complete))
        solution = graph.solve(np.array([self.alpha_]), preconditioned=preconditioned)
        self.solver_ = "pcg" if preconditioned else "cg"
        self.n_iter_, self.residuals_ = solution.iterations, solution.history
        if self.alpha_ > 0:
            warn_if_stopped_early(solution, "conjugate gradients", REMEDY)
        return graph.kernel.coef(np.ascontiguousarray(solution.value[:, 0]))

    def _store(self, source: Side, target: Side, a: Any) -> None:
        """The model from coefficients (n_sources, n_targets), as weights of the features where these are fewer."""
        for name in ("coef_", "dual_coef_"):
            self.__dict__.pop(name, None)
        self.kernel_, self.target_kernel_ = source.kernel, target.kernel
        self.X_fit_, self.Z_fit_ = source.data, target.data
        self.source_ids_, self.target_ids_ = source.ids, target.ids
        self._one_domain = source is target
        if source.basis is not None or target.basis is not None:
            a = target.projected(source.projected(a.toarray() if sparse.issparse(a) else a).T).T
        if source.domain.factored and target.domain.factored:
            self.coef_ = source.domain.array.T @ (a @ target.domain.array)
        else:
            self.dual_coef_ = a

    def _ends(self, X, Z) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays, for X and for Z, whose inner products are the scores; X None is that of `fit`."""
        check_is_fitted(self, "alpha_")
        x = self.X_fit_
        if X is not None:
            x = validate_data(self, as_frame(X), accept_sparse="csr", dtype=np.float64, reset=False)
        known = x if self._one_domain else self.Z_fit_
        z = known if Z is None else as_objects(Z, "Z", self.Z_fit_.shape[1])
        if hasattr(self, "coef_"):
            return np.asarray(x @ self.coef_), (z.toarray() if sparse.issparse(z) else z)
        return np.asarray(self.kernel_(x, self.X_fit_) @ self.dual_coef_), self.target_kernel_(z, self.Z_fit_)

    def _sides(self, X: Any, Z: Any) -> tuple[Side, Side]:
        if Z is not None and PARITY[self.relation]:
            raise ValueError(f'relation="{self.relation}" relates objects of one kind: leave Z out')
        kernel, target_kernel = self._kernels(Z)
        X, Z = as_frame(X), as_frame(Z)
        ids = ids_of(X)
        source = Side.of(
            "X", validate_data(self, X, accept_sparse="csr", dtype=np.float64), kernel, self.indefinite, ids
        )
        if Z is None:
            return source, source
        z = as_objects(Z, "Z")
        return source, Side.of("Z", z, target_kernel, self.indefinite, ids_of(Z))

    def _kernels(self, Z: Any) -> tuple[Kernel | None, Kernel | None]:
        """The kernels of X and of Z; None is linear."""
        if Z is None and self.target_kernel is not None:
            raise ValueError("target_kernel is the kernel of Z: pass Z, or leave target_kernel out")
        given = (self.kernel, self.kernel if self.target_kernel is None else self.target_kernel)
        found = []
        for kernel in given:
            found.append(None if kernel is None else as_kernel(kernel))
            if getattr(found[-1], "gamma", None) == "auto":
                raise ValueError('gamma="auto" is not available here: use gamma="scale" or a number')
        return found[0], found[1]

    def _check_memory(self, relation: Relation) -> None:
        p, r = relation.shape
        memory.check_memory(
            8 * (4 * p * r + 3 * (p * p + r * r)),
            f"a complete relation between {p} and {r} objects",
            "use fewer objects, or a sample of the edges (a sparse Y)",
        )

    def _check_params(self) -> None:
        if isinstance(self.alpha, str):
            checks.check_choice("alpha", self.alpha, ("auto",))
        checks.check_choice("loss", self.loss, ("ranking", "regression"))
        checks.check_choice("relation", self.relation, PARITY)
        checks.check_choice("condition", self.condition, ("source", "target"))
        checks.check_choice("solver", self.solver, ("auto", "closed", "cg", "pcg"))
        checks.check_choice("indefinite", self.indefinite, ("error", "clip", "shift"))
        checks.check_number("tol", self.tol)
        get_metric(self.scoring)
        number = isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool)
        if not (number or self.cv == "auto" or isinstance(self.cv, RelationKFold)):
            raise ValueError(f'cv must be "auto", a number of folds or a RelationKFold, got {self.cv!r}')

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
