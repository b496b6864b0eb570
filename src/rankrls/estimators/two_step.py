"""TwoStepRLS: a complete relation learned one end at a time, each with its own regularisation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .. import checks
from ..metrics import get_metric
from ..problems import choice
from ..relations import checks as relation_checks
from ..relations import names
from ..relations.relation import EdgeSet, Pairwise
from ..relations.two_step import BOTH, COLUMN, EDGE, OBJECT, ROW, JudgedAlphas, TwoStep
from ..system.parallel import threads_for
from ..system.progress import numbered, reporting
from ..system.types import Matrix
from .relations.judging import Evaluation, RelationJudge
from .relations.model import RelationModel
from .relations.setup import PARITY, both_sides
from .relations.sides import Side, ends_of, kernels_of, model_of, variants

EXACT = {1: EDGE, 2: ROW, 3: COLUMN, 4: BOTH}


class TwoStepRLS(RelationModel):
    """Two-step kernel ridge regression on a complete relation, with exact hold-out in all four settings.

    The first step predicts the relation of each object of Z from the objects of X, by ridge regression with `alpha`;
    the second predicts the result of the first from the objects of Z, with `target_alpha`. In closed form, with G and K
    the kernels of X and Z, ::

        f(x, z) = g(x)' (G + alpha I)^-1 Y (K + target_alpha I)^-1 k(z)

    Unlike in `ConditionalRankRLS`, each end has its own regularisation, and an object, an edge or both ends of an edge
    can be left out without refits, so that both alphas are chosen for what will be new when the model is used.

    Parameters
    ----------
    alpha, target_alpha : float or "auto", default="auto"
        Regularisation of the two ends; "auto" chooses among all pairs of `alphas` and `target_alphas`. A symmetric or
        reciprocal relation has only `alpha`.
    kernel, target_kernel : as in `ConditionalRankRLS`
    relation : {None, "symmetric", "reciprocal"}, default=None
        Makes f(x, z) = f(z, x), or f(x, z) = -f(z, x), hold exactly; both ends must be of one kind (no Z).
    condition : {"source", "target"}, default="source"
        Whether `scoring` judges rankings within rows of Y ("source") or within columns ("target").
    intercept : bool, default=False
        An unpenalised constant in each step: f has effects of both ends and a mean, none of which is shrunk to zero.
        Needed if the mean of Y is far from zero.
    alphas, target_alphas : array-like of float, default=None
        Values to choose from; None: 15 over seven decades around the mean eigenvalue of each kernel.
    scoring : str or callable, default="pairwise_accuracy"
        Metric of `rankrls.metrics`, averaged over conditioning objects; it chooses alphas, and `score` returns it.
    cv : {"auto", "leave-edge-out", "leave-row-out", "leave-column-out", "leave-both-out", "leave-object-out"}
        What is left out, exactly: each edge (with its mirror image if the relation is symmetric or reciprocal), each
        conditioning object, each ranked object, or both ends of each edge, for new objects at both ends (in both roles
        if the ends are of one kind). "leave-object-out" leaves out each object of one kind in both roles and judges its
        row. "auto" is "leave-object-out" without Z, else "leave-row-out".
    indefinite, basis, target_basis, encoder, random_state, verbose : as in `ConditionalRankRLS`

    Attributes
    ----------
    alpha_, target_alpha_ : float
        The regularisation used.
    alphas_, target_alphas_ : ndarray of shape (n_alphas,), (n_target_alphas,)
        The grids (only if an alpha is "auto", like the next two attributes).
    cv_scores_ : ndarray of shape (n_alphas, n_target_alphas), or (n_alphas,) for a single alpha
        Mean held-out score of each pair.
    cv_predictions_ : ndarray of shape (n_sources, n_targets)
        Held-out scores at the chosen alphas.
    coef_, dual_coef_, source_effects_, target_effects_, intercept_, kernel_, target_kernel_
        As in `ConditionalRankRLS`.

    References
    ----------
    Stock, Pahikkala, Airola, De Baets, Waegeman: A comparative study of pairwise learning methods based on kernel ridge
    regression. Neural Computation 30 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import TwoStepRLS
    >>> rng = np.random.default_rng(0)
    >>> u, v = rng.normal(size=(40, 2)), rng.normal(size=(50, 2))
    >>> drugs, targets = (w + 0.3 * rng.normal(size=w.shape) for w in (u, v))  # features tell part of the truth
    >>> model = TwoStepRLS(kernel="rbf", cv="leave-both-out").fit(drugs[:30], (u @ v.T)[:30, :40], targets[:40])
    >>> model.cv_scores_.shape
    (15, 15)
    >>> bool(model.score(drugs[30:], (u @ v.T)[30:, 40:], targets[40:]) > 0.8)  # both ends new
    True
    """

    def __init__(
        self,
        alpha="auto",
        target_alpha="auto",
        *,
        kernel=None,
        target_kernel=None,
        relation=None,
        condition="source",
        intercept=False,
        alphas=None,
        target_alphas=None,
        scoring="pairwise_accuracy",
        cv="auto",
        indefinite="error",
        basis=None,
        target_basis=None,
        encoder=None,
        random_state=0,
        verbose=False,
    ) -> None:
        self.alpha = alpha
        self.target_alpha = target_alpha
        self.kernel = kernel
        self.target_kernel = target_kernel
        self.relation = relation
        self.condition = condition
        self.intercept = intercept
        self.alphas = alphas
        self.target_alphas = target_alphas
        self.scoring = scoring
        self.cv = cv
        self.indefinite = indefinite
        self.basis = basis
        self.target_basis = target_basis
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, Y, Z=None) -> Self:
        """Learn from a complete matrix of relations.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_sources, n_features)
            Objects; with kernel="precomputed" the kernel matrix among them. Their ids are the index of a pandas frame
            (unless it is just 0, 1, 2, ...), a column called "id", or a first column of text.
        Y : array-like or data frame of shape (n_sources, n_targets)
            The relation from each object of X to each of Z; every entry must be known. The index and columns of a frame
            are matched to the ids of X and Z.
        Z : as X, of shape (n_targets, n_target_features), default=None
            The objects at the other end; None relates those of X to each other.

        Returns
        -------
        self
        """
        self._check_options()
        with reporting(self.verbose):
            source, target = self._sides(X, Z)
            Y = names.aligned(Y, source.ids, target.ids, (source.name, target.name))
            edges = relation_checks.check_relation(Y, len(source), len(target), one_domain=Z is None)
            if not edges.complete:
                raise ValueError(
                    f"TwoStepRLS needs every edge, but {edges.n_edges} of {len(source) * len(target)} are known: use "
                    "ConditionalRankRLS"
                )
            parity = PARITY[self.relation]
            relation_checks.check_graph(edges, ranking=False, parity=parity)
            with threads_for(len(source) * len(target) * max(edges.shape)):
                self._store(self._fitted(source, target, edges, parity))
        return self

    def evaluate(self, X, Y, Z=None, *, settings=None, n_splits=5, random_state=0) -> Evaluation:
        """Scores of models with these parameters on held-out objects, in settings 2 to 4.

        Alphas that are "auto" are chosen by exact hold-out of the same kind of objects as in the setting.

        Parameters
        ----------
        X, Y, Z : as in `fit`
        settings : iterable of {2, 3, 4}, default=None
            As in `rankrls.selection.RelationKFold`; None: all three, or 4 for symmetric and reciprocal relations.
            Setting 1 needs no folds: fit with cv="leave-edge-out" and see `cv_scores_`.
        n_splits : int, default=5
            Folds in each setting.
        random_state : int, default=0
            Seed of the folds.

        Returns
        -------
        scores : Evaluation, a dict of setting to ndarray of shape (n_splits,)
            As `ConditionalRankRLS.evaluate` returns it.
        """
        self._check_options()
        parity = PARITY[self.relation]
        if settings is None:
            settings = (4,) if parity else (2, 3, 4)
        settings = tuple(settings)
        if 1 in settings:
            raise ValueError(
                'setting 1 leaves the relation incomplete: fit with cv="leave-edge-out" and see cv_scores_'
            )
        judge = RelationJudge(self, parity, Z is None, n_splits, random_state, EXACT)
        return judge.evaluation(X, Y, Z, settings, None, None)

    # ---------------------------------------------------------------- helpers

    def _fitted(self, source: Side, target: Side, edges: EdgeSet, parity: int) -> dict[str, Any]:
        """The attributes of the model with the best kernel and pair of alphas."""
        turned, metric = self.condition == "target", get_metric(self.scoring)
        kernels = kernels_of(self.kernel, self.target_kernel, None if source is target else target)
        sides = variants(source, target, kernels, edges)
        given = (self.alpha,) if parity else (self.alpha, self.target_alpha)
        searched = len(sides) > 1 or any(isinstance(alpha, str) for alpha in given)
        best: tuple[Side, Side, TwoStep, JudgedAlphas] | None = None
        for x, z in numbered(sides, "setting"):
            G, K = (z.domain, x.domain) if turned else (x.domain, z.domain)
            steps = TwoStep.of(G, K, edges.Y.T if turned else edges.Y, parity, intercept=self.intercept)
            alphas, betas = self._grids(steps, turned)
            found = JudgedAlphas.of(steps, self._left_out(steps), alphas, betas, metric if searched else None)
            if best is None or choice.exceeds(found.value, best[3].value):
                best = x, z, steps, found
        assert best is not None
        x, z, steps, found = best
        model = steps.model(found.alpha, found.beta)
        a, own = (model.a.T, (model.target, model.source)) if turned else (model.a, (model.source, model.target))
        order = -1 if turned else 1
        attributes = ends_of(x, z, edges, self.relation)
        attributes["alpha_"], attributes["target_alpha_"] = (found.alpha, found.beta)[::order]
        attributes["intercept_"] = model.constant
        if found.scores is not None:
            held = next(steps.held_out(self._left_out(steps), np.array([found.alpha]), np.array([found.beta])))
            attributes["alphas_"], attributes["target_alphas_"] = (found.alphas, found.betas)[::order]
            attributes["cv_scores_"] = found.scores.T if turned else found.scores
            attributes["cv_predictions_"] = held.T if turned else held
        return attributes | model_of(x, z, a, Pairwise(), own if self.intercept else None)

    def _grids(self, steps: TwoStep, turned: bool) -> tuple[np.ndarray, np.ndarray]:
        """The alphas to choose from, for the rows and the columns."""
        source, target = (steps.columns, steps.rows) if turned else (steps.rows, steps.columns)
        of_source = self._grid("alpha", source.mean_eigenvalue)
        of_target = of_source if steps.parity else self._grid("target_alpha", target.mean_eigenvalue)
        return (of_target, of_source) if turned else (of_source, of_target)

    def _grid(self, name: str, mean_eigenvalue: float) -> np.ndarray:
        given, grid = getattr(self, name), getattr(self, f"{name}s")
        if not isinstance(given, str):
            return np.array([checks.check_number(name, given)])
        return choice.default_alphas(mean_eigenvalue) if grid is None else checks.check_grid(f"{name}s", grid)

    def _left_out(self, steps: TwoStep) -> str:
        if self.cv != "auto":
            return self.cv
        return OBJECT if steps.one_domain else ROW

    def _check_options(self) -> None:
        """Raise an error for invalid parameters."""
        checks.check_choices(
            self,
            relation=tuple(PARITY),
            condition=("source", "target"),
            indefinite=("error", "clip", "shift"),
            intercept=(True, False),
            cv=("auto", EDGE, ROW, COLUMN, BOTH, OBJECT),
        )
        get_metric(self.scoring)
        parity = PARITY[self.relation]
        for name in ("alpha", "target_alpha"):
            value = getattr(self, name)
            if isinstance(value, str):
                checks.check_choice(name, value, ("auto",))
        if parity and not isinstance(self.target_alpha, str) and self.target_alpha != self.alpha:
            raise ValueError(f'relation="{self.relation}" has only one alpha: leave target_alpha out')
        if parity and self.cv in (ROW, COLUMN):
            raise ValueError(f'cv="{self.cv}" leaves the mirrored edges in: use "{OBJECT}", "{BOTH}" or "{EDGE}"')

    def _sides(self, X: Matrix, Z: Matrix) -> tuple[Side, Side]:
        if Z is not None and self.cv == OBJECT and not PARITY[self.relation]:
            raise ValueError(f'cv="{OBJECT}" is for objects of one kind: with Z use "{ROW}", "{COLUMN}" or "{BOTH}"')
        return both_sides(self, X, Z)
