"""ConditionalRankRLS: rank objects given another object, by a relation between them."""

from __future__ import annotations

from typing import Any, Self

from scipy import sparse
from sklearn.base import clone

from ..blocks.edges import is_stream
from ..relations import checks as relation_checks
from ..relations import fitting, names
from ..relations.games import EdgeList
from ..relations.relation import EdgeSet
from ..system.progress import reporting
from .relations.iterates import Iterate
from .relations.judging import Evaluation, RelationJudge
from .relations.model import INPUT, RelationModel
from .relations.rankings import Ranking
from .relations.setup import PARITY, RELATION, both_sides, candidates_of, objects_of, parity_of_edges, search_of
from .relations.sides import Side, attributes_of
from .relations.stream import fit_stream, refuse_in_streams

__all__ = ["ConditionalRankRLS", "Ranking"]


class ConditionalRankRLS(RelationModel):
    """Rank objects given another object, including objects never seen in training.

    Learns a relation f(x, z) between a conditioning object x and an object z to be ranked: who beats whom, which
    targets a drug binds, which items a user buys. Objects are described by features or kernels. The model minimises ::

        sum over x of the sum over pairs z, z' related to x of
            ((Y[x, z] - Y[x, z']) - (f(x, z) - f(x, z')))^2 / n_x  +  alpha ||f||^2

    where n_x is the number of edges of x (`loss="ranking"`), or the squared errors of Y (`loss="regression"`). Complete
    relations are solved in closed form, incomplete ones by conjugate gradients; no matrix of edges by edges is formed.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation; "auto" chooses among `alphas` by hold-out. Zero is allowed if a complete relation determines
        every weight, and with an iterative solver, where stopping after `max_iter` iterations regularises instead.
    kernel : None, str, Kernel, callable, "precomputed" or list of kernels or matrices, default=None
        Kernel between the objects of X; None is linear, f(x, z) = x' W z. See `rankrls.kernels`. gamma="auto", and
        parameters given as lists, such as `Gaussian([0.1, 1.0])`, are chosen by hold-out. A list of kernels means their
        weighted sum; hold-out chooses between weights by alignment with the relation, equal weights, and each kernel
        alone. For a list of similarity matrices, the index of X names their rows, or X is a column of row numbers.
    target_kernel : as `kernel`, default=None
        Kernel between the objects of Z, if it differs from `kernel`.
    loss : {"ranking", "regression"}, default="ranking"
        Whether to fit differences of Y within each conditioning object, or the values of Y.
    relation : {None, "symmetric", "reciprocal"}, default=None
        Makes f(x, z) = f(z, x), or f(x, z) = -f(z, x), hold exactly; both ends must be of one kind (no Z). Pass
        probabilities of a reciprocal relation as Y - 1/2. Lists of games (see `fit_edges`) count as reciprocal unless
        you pass "arbitrary", which is otherwise the same as None.
    condition : {"source", "target"}, default="source"
        Which end conditions. Y[i, j] is the edge from object i of X to object j of Z (of X if there is no Z): "source"
        ranks the objects that an object has edges to, "target" those that have edges to it.
    missing : {"unknown", "zero"}, default="unknown"
        What an edge that is not in Y means. With "zero" the relation is complete, as in implicit feedback: linear
        features then need only X'X, Z'Z and X'YZ, and a sparse Y stays sparse.
    pairwise : {"auto", "kronecker", "sum"} or list of both, default="auto"
        The kernel between two pairs: the product of the kernels of their ends ("kronecker"), or their sum, which means
        f(x, z) = g(x) + h(z), so that an object can be popular, or strong, regardless of the other end. With a list of
        both, hold-out chooses their weights. "auto" means the sum for objects known only by their ids, both for games
        (lists of edges of a reciprocal relation) if alpha is "auto" too, and otherwise the product.
    weighting : {"items", "queries", "pairs"}, default="items"
        The weight of a conditioning object: its number of edges, one for all, or its number of pairs of edges.
    intercept : bool, default=False
        Whether to fit an unpenalised constant (loss="regression"); needed if the mean of Y is far from zero.
    solver : {"auto", "closed", "cg", "pcg", "cr"}, default="auto"
        "closed": closed form, for complete relations. "cg": conjugate gradients. "pcg": the same, preconditioned by the
        closed form of the complete relation. "cr": conjugate residuals, whose early iterates are better models. "auto"
        takes the closed form where it applies, solves directly where the features of both ends and their products are
        few, and otherwise takes "cr" if alpha is 0, "pcg" if less than 30 % of the edges are missing, else "cg".
    alphas : array-like of float, default=None
        Values to choose from; None: 15 over seven decades around the mean eigenvalue of the loss.
    scoring : str or callable, default="pairwise_accuracy"
        Metric of `rankrls.metrics`, averaged over conditioning objects; it chooses alpha, and `score` returns it.
    cv : "auto", int, RelationKFold or the name of an exact hold-out, default="auto"
        What to hold out to choose alpha: what will be new when the model is used. Three kinds are exact and need no
        refits: "leave-row-out" leaves out each conditioning object of a complete relation in turn, "leave-edge-out"
        each edge, and "leave-column-out" each ranked object (regression). "time" is for edges with dates: it learns
        from the past and holds out what came next. "auto" is "leave-row-out" if the relation is complete and `relation`
        is None; otherwise five folds, of games for a reciprocal list (setting 1), of conditioning objects if the two
        ends differ in kind (setting 2), or of objects in both roles (setting 4). Edges with hardly any weight, such as
        games long ago, are not used for judging. See `rankrls.selection.RelationKFold`.
    indefinite : {"error", "clip", "shift"}, default="error"
        What to do with a precomputed kernel that has negative eigenvalues, as similarities of drugs and proteins often
        do: raise an error, drop the negative part (also from new similarities), or add a multiple of the identity. The
        matrices used are `X_fit_` and `Z_fit_`. After "shift", rows that equal those of `fit` are training objects and
        get the shift too.
    basis, target_basis, random_state : None, int, Basis or array, default=None; int, default=0
        Points in which the kernels of X and Z are expanded, as in `RankRLS`, and the seed for drawing them.
    encoder : None, "auto" or transformer, default=None
        Turns data frames with text, missing values or dates into numbers, at both ends; "auto" is a `TableEncoder`
        that standardises numbers. Arrays are left as they are. Stored as `encoder_` and `target_encoder_`.
    tol : float, default=1e-6
        Relative residual at which conjugate gradients stop, in folds too.
    max_iter : int or "auto", default=1000
        Largest number of iterations; reaching it gives a warning unless alpha is 0. "auto" chooses the number of
        iterations of conjugate residuals by hold-out; alpha="auto" is then 0, as early stopping regularises.
    callback : callable, default=None
        Called with an `Iterate` after each iteration of conjugate residuals; returning True ends the fit.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    alpha_ : float
        The regularisation used.
    coef_ : ndarray of shape (n_features, n_target_features)
        W of a linear model with fewer features than objects at both ends; other models have `dual_coef_` instead.
    dual_coef_ : ndarray or sparse array of shape (n_sources, n_targets)
        a in f = sum over i, j of k(x, x_i) a[i, j] k(z, z_j); symmetric or skew if the relation is.
    source_effects_, target_effects_ : ndarray
        Coefficients of the effects of single ends, if `pairwise` includes "sum".
    pairwise_ : dict
        The weights of "kronecker" and "sum", the latter in units of the mean of the kernel.
    intercept_ : float
    kernel_, target_kernel_ : Kernel
        The kernels with their parameters fixed.
    alphas_, cv_scores_ : ndarray of shape (n_alphas,)
        The grid and the mean held-out score of each value (only if alpha is "auto", like the next attribute).
    cv_predictions_ : ndarray of shape (n_sources, n_targets) or (n_edges,)
        Held-out scores at `alpha_`, equal to those of refits: a matrix if Y is dense, else one per edge; NaN where an
        edge was not held out. Where they take no refits they are computed when they are first read.
    solver_, n_iter_, residuals_
        The solver used ("closed", "cg", "pcg", "cr" or "direct"), its number of iterations, and the relative residual
        before the first iteration and after each.
    iterations_ : ndarray of shape (n_tried,)
        The numbers of iterations to which `cv_scores_` refers, if max_iter is "auto".
    n_edges_ : int
        Number of training edges.
    edge_columns_ : dict
        The columns of a data frame of edges: source, target and others that were named.
    home_advantage_, probability_scale_, rating_std_ : float
        For games, see `fit_edges`.

    References
    ----------
    Pahikkala, Airola, Stock, De Baets, Waegeman: Efficient regularized least-squares algorithms for conditional ranking
    on relational data. Machine Learning 93 (2013). The closed form for symmetric and reciprocal ranking is not in the
    paper.

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
        missing="unknown", pairwise="auto", weighting="items", intercept=False, solver="auto", alphas=None,
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
            Objects; with kernel="precomputed" the kernel matrix among them, or only its columns for a `basis` of row
            numbers; with a kernel on objects (strings, graphs) a list of these. Their ids are the index of a pandas
            frame (unless it is just 0, 1, 2, ...), a column called "id", or a first column of text.
        Y : array-like, sparse matrix or data frame of shape (n_sources, n_targets)
            The relation from each object of X to each of Z, NaN where unknown. In a sparse matrix only stored entries,
            including zeros, are known, unless missing="zero" (entries stored twice add up, as always in SciPy). The
            index and columns of a frame are matched to the ids of X and Z.
        Z : as X, of shape (n_targets, n_target_features), default=None
            The objects at the other end; None relates those of X to each other.
        sample_weight : array-like of shape (n_conditioning,) or that of Y, default=None
            The weight of each conditioning object, or of each entry of Y.

        Returns
        -------
        self
        """
        relation_checks.check_options(self)
        with reporting(self.verbose):
            source, target = both_sides(self, X, Z)
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
        """Learn from a list of edges, such as games; an edge may occur several times.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_sources, n_features), "ids" or None
            Objects; with kernel="precomputed" the kernel matrix between them. "ids" or None: only the ids in `edges`
            are known, as for teams in a league.
        edges : array-like of shape (n_edges, 2), or data frame
            Source and target of each edge: ids if X and Z are frames with ids, as in `fit`, else row numbers. Edges of
            a symmetric or reciprocal relation count from both of their ends. Edges need not fit in memory: pass the
            path of a Parquet file or folder or of a CSV file, a polars LazyFrame, an Arrow Dataset or reader, a DuckDB
            relation, or an iterator of data frames, and name the columns. This needs linear features or a `basis`, and
            alpha="auto" is then chosen by the held-out loss: of five folds of conditioning objects, or of games for a
            symmetric or reciprocal relation, or with missing="zero" of each conditioning object.
        y : array-like of shape (n_edges,) or str, default=None
            The value of each edge, or the name of its column. None: every edge is 1, which means in a reciprocal
            relation that the source beat the target; with missing="zero", all other edges are 0. Margins of games need
            relation="reciprocal", unless `source` and `target` are columns called winner and loser.
        Z : as X, default=None
            The objects at the other end; None relates those of X to each other.
        source, target : str, default=None
            The columns of a data frame of edges that hold the two ends.
        sample_weight : array-like of shape (n_edges,) or str, default=None
            The weight of each edge, or the name of its column. "recency" means a half-life of 365 days, unless there is
            a column of that name.
        date : array-like of shape (n_edges,) or str, default=None
            The date of each edge, or the name of its column.
        half_life : str, float or timedelta, default=None
            The age, from the latest date, at which an edge counts half: "365d", "52w", "2y".
        home : array-like of shape (n_edges,) or str, default=None
            1 where the source plays at home, -1 where the target does, 0 on neutral ground. The effect, which is not
            penalised, is stored as `home_advantage_`.

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
            parity = parity_of_edges(self, y, Z, source, target)
            refuse_in_streams(self, X, columns, {"date": date, "half_life": half_life, "home": home})
            with reporting(self.verbose):
                self._store(fit_stream(self, *both_sides(self, X, Z), edges, columns, parity))
                self._store_columns(columns)
            return self
        X, Z = objects_of(self, X, Z, edges, source, target)
        with reporting(self.verbose):
            sides = both_sides(self, X, Z)
            shape = (len(sides[0]), len(sides[1]))
            parity = parity_of_edges(self, y, Z, source, target)
            listed = EdgeList.of(
                edges, y, (sides[0].ids, sides[1].ids), source=source, target=target, sample_weight=sample_weight,
                date=date, half_life=half_life, home=home,
            )  # fmt: skip
            columns = {"source": source, "target": target, "y": y, "date": date, "home": home}
            if self.missing == "zero":
                self._fit(*sides, relation_checks.all_others_zero(listed, shape), parity, None)
                self._store_columns(columns)
                return self
            folds = fitting.listed_folds(self.cv, listed, parity)
            edge_set = listed.both_ways(parity).edge_set(shape)
            found = self._fit(*sides, edge_set, parity, None, folds, games=parity == -1)
            self._store_games(found, listed, parity)
            self._store_columns(columns)
        return self

    def evaluate(
        self, X, Y, Z=None, *, settings=None, n_splits=5, random_state=0, y=None, source=None, target=None,
        sample_weight=None, date=None, half_life=None, home=None,
    ) -> Evaluation:  # fmt: skip
        """Scores of models with these parameters on held-out edges and objects, in each of the four settings.

        alpha="auto" is chosen by holding out the same kind of objects or edges as the setting does.

        Parameters
        ----------
        X, Y, Z : as in `fit`
            Y may also be a list of edges, as in `fit_edges`, if `source`, `y` or `date` is given.
        settings : iterable of {1, 2, 3, 4, "time"}, default=None
            As in `rankrls.selection.RelationKFold`; "time" learns from the past and judges what came next, piece by
            piece. None: all four, or 1 and 4 for symmetric and reciprocal relations, or "time" with `date`. In settings
            2 and 3 of symmetric and reciprocal relations an object is new in both roles, and is judged by its edges to
            known objects.
        n_splits : int, default=5
            Folds in each setting.
        random_state : int, default=0
            Seed of the folds.
        y, source, target, sample_weight, date, half_life, home
            As in `fit_edges`.

        Returns
        -------
        scores : Evaluation, a dict of setting to ndarray of shape (n_splits,)
            For each setting the `scoring` of each fold, NaN if the fold has nothing to rank. Its `metrics` also have
            the concordance of all pairs, and `print(scores)` shows means and standard errors.

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
        parity = parity_of_edges(self, y, Z, source, target) if listed else PARITY[self.relation]
        columns = {"y": y, "source": source, "target": target, "sample_weight": sample_weight, "date": date}
        judge = RelationJudge(self, parity, Z is None, n_splits, random_state)
        return judge.evaluation(X, Y, Z, settings, {**columns, "home": home} if listed else None, half_life)

    # ---------------------------------------------------------------- helpers

    def _fit(
        self, source: Side, target: Side, edges: EdgeSet, parity: int, matrix: tuple[int, int] | None,
        cv: object = None, *, games: bool = False,
    ) -> fitting.Fitted:  # fmt: skip
        """Learn from checked edges; `matrix` is the shape that held-out scores are put into."""
        turned, ranking = self.condition == "target", self.loss == "ranking"
        relation_checks.warn_of_lone_objects(edges, (source.name, target.name))
        known = edges
        edges = edges.T if turned else edges
        relation_checks.check_graph(edges, ranking=ranking, parity=parity, closed=self.solver == "closed")
        candidates = candidates_of(self, source, target, known, parity, games=games)
        attributes = lambda found: attributes_of(found, known, RELATION[parity], matrix, turned=turned)
        watch = None
        if self.callback is not None:
            watch = lambda k, residual, found: self.callback(
                Iterate(k, residual, lambda: self._snapshot(attributes(found())))
            )
        found = fitting.fit(candidates, edges, search_of(self, edges, len(candidates), cv, watch))
        self._store(attributes(found))
        return found

    def _snapshot(self, attributes: dict[str, Any]) -> ConditionalRankRLS:
        """A separate fitted model with these attributes, for callbacks."""
        model = clone(self).set_params(callback=None)
        model._store(attributes | {name: getattr(self, name) for name in INPUT if hasattr(self, name)})
        return model
