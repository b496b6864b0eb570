"""From edges to a model: set up the problem, choose alpha by hold-out, and solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..checks import check_held_out
from ..core.krylov import Solution, warn_if_stopped_early
from ..metrics import Metric
from ..problems import choice
from ..system.memory import check_memory
from ..system.parallel import threads_for
from ..system.progress import numbered
from ..system.warnings import warn
from . import stopping
from .checks import TIME
from .folds import PastFirst, RelationKFold
from .games import EdgeList
from .problems import EDGES, REMEDY, ROWS, CompleteProblem, EdgeProblem, RelationLoss
from .relation import Domain, EdgeSet, Pairwise

FOLDS = 5
KEPT = 1 << 23  # edges up to which a model keeps the factors of its kernels until held-out scores are read
SHARES = (0.01, 0.1, 1.0, 10.0)  # weights to try for effects of single ends, beside a product of weight 1
Problem = CompleteProblem | EdgeProblem


@dataclass(frozen=True)
class RelationCandidate:
    """A candidate of hold-out: kernels of the conditioning and the ranked objects, and a loss."""

    G: Domain
    K: Domain
    loss: RelationLoss
    source: Any = None  # both ends as the caller's objects, returned with the model
    target: Any = None


@dataclass(frozen=True)
class Search:
    """How to choose alpha and solve the problem."""

    alpha: float | None  # None is chosen by hold-out
    alphas: np.ndarray | None
    metric: Metric
    cv: Any  # "auto", a number of folds, a RelationKFold, or the name of something left out exactly
    solver: str = "auto"
    tol: float = 1e-6
    max_iter: int | None = 1000  # None is chosen by hold-out
    watch: Callable[[int, float, Callable[[], Fitted]], object] | None = None  # iteration, residual, its model

    @property
    def iterates(self) -> bool:
        """True if the solver may stop early, after any iteration."""
        return self.solver == "cr"

    @property
    def limit(self) -> int:
        return stopping.MOST if self.max_iter is None else self.max_iter


@dataclass(frozen=True)
class HoldOut:
    """The held-out scores of a grid of alphas."""

    alphas: np.ndarray
    scores: np.ndarray
    predictions: Callable[[], np.ndarray] | None  # at the best alpha, (p, r) or (q,), when they are asked for
    best: int
    ended: tuple[np.ndarray, ...] = ()  # grids to warn of, at whose end the best alpha was


@dataclass(frozen=True)
class Fitted:
    """A model: the coefficients a and how they were found."""

    candidate: RelationCandidate
    alpha: float
    a: Any  # (p, r) Coefficients, array or sparse array
    intercept: float = 0.0
    free: np.ndarray = field(default_factory=lambda: np.empty(0))
    solver: str = "closed"
    iterations: int = 0
    residuals: np.ndarray = field(default_factory=lambda: np.empty(0))
    held_out: HoldOut | None = None
    stop: stopping.Stop | None = None


def fit(candidates: Sequence[RelationCandidate], edges: EdgeSet, search: Search) -> Fitted:
    """The model of the best candidate at the best alpha, or with the best number of iterations."""
    with threads_for(_product(candidates[0], edges)):
        if search.max_iter is None:
            return _stopped_early(candidates, edges, search)
        return _best(candidates, edges, search)


def _product(candidate: RelationCandidate, edges: EdgeSet) -> float:
    """Multiplications in the matrix products over which a fit loops."""
    p, r = edges.shape
    ranks = candidate.G.rank, candidate.K.rank
    return float(max(p * r * min(max(ranks), max(p, r)), p * ranks[0] ** 2, r * ranks[1] ** 2))


def _best(candidates: Sequence[RelationCandidate], edges: EdgeSet, search: Search) -> Fitted:
    """The best candidate and alpha by hold-out, and the model solved with them."""
    best: tuple[RelationCandidate, Problem, HoldOut | None] | None = None
    for candidate in numbered(candidates, "setting"):
        problem = problem_of(candidate, edges, search)
        found = None
        if search.alpha is None:
            found = _hold_out(problem, candidate, edges, search, predict=len(candidates) == 1)
        if best is None or _value(found, search) > _value(best[2], search):
            best = candidate, problem, found
    assert best is not None
    candidate, problem, found = best
    if found is not None:
        _warn_about_chance(float(found.scores[found.best]), search.metric.name, edges.shape[0])
        if found.ended:
            choice.warn_of_end(*found.ended)
    if found is not None and len(candidates) > 1:
        found = _hold_out(problem, candidate, edges, search, only=float(found.alphas[found.best]), judged=found)
    alpha = search.alpha if found is None else float(found.alphas[found.best])
    return _solve(candidate, problem, float(alpha), search, found)  # type: ignore[arg-type]


def pairwise_kernels(names: Sequence[str] | None, G: Domain, K: Domain) -> list[Pairwise]:
    """The kernels of pairs that the names stand for; with several names, one for each weight that hold-out may choose.

    Effects of one end are in units of the mean of the other end's kernel, so the scale of features does not matter.
    """
    g, k = float(np.mean(G.diagonal)) or 1.0, float(np.mean(K.diagonal)) or 1.0
    product, effects = Pairwise(), Pairwise(0.0, k, g)
    if names in ("kronecker", "auto"):
        return [product]
    if names == "sum":
        return [effects]
    return [product, *(Pairwise(1.0, share * k, share * g) for share in SHARES), effects]


def problem_of(candidate: RelationCandidate, edges: EdgeSet, search: Search) -> Problem:
    """The closed form if there is one, else the list of edges."""
    G, K, loss = candidate.G, candidate.K, candidate.loss
    if search.solver not in ("cg", "pcg", "cr") and CompleteProblem.solves(edges, loss):
        check_complete(edges, G, K)
        return CompleteProblem(G, K, edges, loss)
    return EdgeProblem.of(G, K, edges, loss, search.tol, search.limit, direct=search.solver == "auto")


def check_determined(problem: CompleteProblem) -> None:
    """Raise an error if a complete relation does not determine every weight without a penalty."""
    for end, domain, rank in zip(("X", "Z"), (problem.G, problem.K), problem.path.ranks, strict=True):
        n = domain.array.shape[1] if domain.factored else None
        if n is None or rank < n:
            known = "a kernel fits any values" if n is None else f"{rank} of {n} columns of {end} are independent"
            raise ValueError(
                f"alpha=0 needs a relation that determines every weight, but {known}: use an alpha above zero, or "
                'solver="cg" with few iterations'
            )


def check_complete(edges: EdgeSet, G: Domain, K: Domain) -> None:
    """Check that the factors fit in memory and, unless both kernels have low rank and Y is sparse, the scores."""
    p, r = edges.shape
    scores = 0 if G.factored and K.factored and not isinstance(edges.Y, np.ndarray) else 4 * p * r
    factors = sum(4 * len(side) * side.rank if side.factored else 3 * len(side) ** 2 for side in (G, K))
    cells = scores + factors
    check_memory(
        8 * cells,
        f"a complete relation between {p} and {r} objects",
        "use fewer objects, a sample of the edges (a sparse Y), or basis=",
    )


def _value(found: HoldOut | None, search: Search) -> float:
    if found is None:
        return 0.0
    score = float(found.scores[found.best])
    return score if search.metric.greater_is_better else -score


def _hold_out(
    problem: Problem, candidate: RelationCandidate, edges: EdgeSet, search: Search, *,
    predict: bool = True, only: float | None = None, judged: HoldOut | None = None,
) -> HoldOut:  # fmt: skip
    """Scores over the grid and predictions at the best alpha; if scores are known, predictions at `only` that alpha."""
    held = held_out_by(search.cv, problem, candidate)
    if isinstance(problem, CompleteProblem) and isinstance(held, RelationKFold) and held.setting == 1:
        problem = problem.by_edges(search.tol, search.limit)  # folds are incomplete
    if judged is None:
        alphas, scores, ended = _scores(problem, search, held)
        check_held_out(scores, search.metric.name)
        best = choice.best(scores if search.metric.greater_is_better else -scores, alphas)
    else:
        alphas, scores, best, ended = judged.alphas, judged.scores, judged.best, judged.ended
    predictions = None
    small = edges.Y is None or isinstance(edges.Y, np.ndarray)
    if small and (predict or only is not None):
        predictions = _later(problem, float(alphas[best]), held)
    return HoldOut(alphas, scores, predictions, best, ended)


def _later(problem: Any, alpha: float, held: Any) -> Callable[[], np.ndarray]:
    """The held-out scores at alpha: when they are asked for, if that takes no refits and little memory until then."""
    if isinstance(problem, CompleteProblem) and held == ROWS and problem.edges.n_edges <= KEPT:
        return partial(problem.held_out, alpha, held)
    known = problem.held_out(alpha, held)
    return lambda: known


def _scores(problem: Problem, search: Search, held: Any) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """(k,) alphas, the held-out score of each, and grids to warn of; a default grid grows while its best is an end."""
    sign, given = 1 if search.metric.greater_is_better else -1, search.alphas
    grid = alphas = choice.default_alphas(problem.mean_eigenvalue) if given is None else given
    scores = problem.scores(alphas, search.metric, held)
    more = choice.beyond(sign * scores, alphas)
    if given is not None:
        return alphas, scores, () if more is None else (alphas,)
    iterates = isinstance(problem, EdgeProblem) and problem.graph.features is None  # then small alphas take longer
    for _ in range(choice.EXTENSIONS):
        if more is None or (iterates and more[0] < alphas[0]):
            break
        alphas, scores = np.append(alphas, more), np.append(scores, problem.scores(more, search.metric, held))
        order = np.argsort(alphas)
        alphas, scores = alphas[order], scores[order]
        more = choice.beyond(sign * scores, alphas)
    return alphas, scores, (grid, alphas)


def _warn_about_chance(score: float, metric: str, p: int) -> None:
    """Warn if no alpha ranks held-out edges better than chance, over enough objects to tell."""
    if metric in choice.TIES_COUNT_HALF and p >= choice.ENOUGH_GROUPS and score < 0.5 + 0.25 / np.sqrt(p):
        warn(
            f"nothing was learned: on held-out edges {metric} is {score:.3f} at best, no better than chance; check "
            "that values and features belong to the same objects"
        )


def listed_folds(cv: Any, edges: EdgeList, parity: int) -> RelationKFold | None:
    """Folds for a list of edges where they differ from those for a matrix, else None.

    For games between known players, the games of a pair stay together.
    """
    if cv == TIME and edges.time is not None:
        return PastFirst(np.tile(edges.time, 2 if parity else 1), max(2, min(FOLDS, len(edges) // 2)))
    if cv == "auto" and parity == -1:
        return RelationKFold(1, max(2, min(FOLDS, len(edges))), same_objects=True)
    return None


def held_out_by(cv: Any, problem: Problem, candidate: RelationCandidate) -> RelationKFold | str:
    """What is held out: folds, or the name of an exact hold-out."""
    complete, loss = isinstance(problem, CompleteProblem), candidate.loss
    if isinstance(cv, RelationKFold):
        return cv
    if cv == TIME:
        raise ValueError('cv="time" holds out later edges: use fit_edges, with the date of each edge')
    if isinstance(cv, str) and cv != "auto":
        if not complete or loss.parity or (cv not in (ROWS, EDGES) and loss.ranking):
            raise ValueError(
                f"cv={cv!r} is only for complete relations without symmetry"
                + ("" if cv in (ROWS, EDGES) else ' and loss="regression"')
                + ": use a RelationKFold"
            )
        return cv
    if cv == "auto" and complete and not loss.parity:
        return ROWS
    one = candidate.G is candidate.K
    setting = 4 if loss.parity or (one and not complete) else 2
    if setting == 4 and candidate.G.diagonal_only:
        setting = 1  # there are no features to predict new objects from
    return RelationKFold(setting, FOLDS if cv == "auto" else int(cv), same_objects=one)


def _solve(
    candidate: RelationCandidate, problem: Problem, alpha: float, search: Search, found: HoldOut | None
) -> Fitted:
    """Solve a candidate's problem at one alpha."""
    if isinstance(problem, CompleteProblem):
        if alpha == 0:
            check_determined(problem)
        a, intercept = problem.path.coef(alpha)
        return Fitted(candidate, alpha, a, intercept, held_out=found)
    preconditioned = alpha > 0 and (
        search.solver == "pcg" or (search.solver == "auto" and problem.graph.nearly_complete)
    )
    if search.iterates:
        return _iterated(candidate, problem, alpha, search, search.limit, held_out=found)
    solution = problem.graph.solve(np.array([alpha]), preconditioned=preconditioned)
    if alpha > 0:
        warn_if_stopped_early(solution, "conjugate gradients", REMEDY)
    iterated = "pcg" if preconditioned else "cg"
    solver = iterated if problem.graph.features is None else "direct"
    return _of_edges(candidate, problem, alpha, solution, solver, held_out=found)


def _stopped_early(candidates: Sequence[RelationCandidate], edges: EdgeSet, search: Search) -> Fitted:
    """The best candidate with the best number of iterations, both chosen by hold-out."""
    assert search.alpha is not None
    sign, best = 1 if search.metric.greater_is_better else -1, None
    for candidate in numbered(candidates, "setting"):
        problem = problem_of(candidate, edges, search)
        assert isinstance(problem, EdgeProblem)
        held = held_out_by(search.cv, problem, candidate)
        if isinstance(held, str):
            raise ValueError(f"cv={held!r} does not iterate, so it cannot choose max_iter: use a RelationKFold")
        stop = stopping.choose(problem, search.metric, held, search.alpha)
        if best is None or choice.exceeds(sign * stop.scores[stop.best], sign * best[2].scores[best[2].best]):
            best = candidate, problem, stop
    assert best is not None
    candidate, problem, stop = best
    return _iterated(candidate, problem, search.alpha, search, stop.iterations, stop=stop)


def _iterated(
    candidate: RelationCandidate, problem: EdgeProblem, alpha: float, search: Search, most: int, *,
    held_out: HoldOut | None = None, stop: stopping.Stop | None = None,
) -> Fitted:  # fmt: skip
    """Conjugate residuals with a callback."""
    watch = search.watch
    one: stopping.Watch | None = None
    if watch is not None:

        def one(k: int, residual: float, v: np.ndarray) -> object:
            reached = Solution(v[:, None], np.array([residual]), k, residual <= search.tol)
            return watch(k, residual, lambda: _of_edges(candidate, problem, alpha, reached, "cr"))

    solution = stopping.solve(problem, alpha, most, one)
    if alpha > 0 and stop is None and watch is None:
        warn_if_stopped_early(solution, "conjugate residuals", REMEDY)
    return _of_edges(candidate, problem, alpha, solution, "cr", held_out=held_out, stop=stop)


def _of_edges(
    candidate: RelationCandidate, problem: EdgeProblem, alpha: float, solution: Solution, solver: str, *,
    held_out: HoldOut | None = None, stop: stopping.Stop | None = None,
) -> Fitted:  # fmt: skip
    v = np.ascontiguousarray(solution.value[:, 0])
    free = problem.free_coef(v)
    intercept = float(free[-1]) if candidate.loss.intercept and not candidate.loss.ranking else 0.0
    a = problem.graph.kernel.coef(v)
    found = (a, intercept, free, solver, solution.iterations, solution.history, held_out, stop)
    return Fitted(candidate, alpha, *found)
