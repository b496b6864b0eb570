"""Scores for queries that have none, chosen to make every query easy to predict from the others.

Let p hold the given scores y on the scored rows S and the inductive scores f, of a model of S alone, on the unscored
rows V. Transductive RankRLS [Pahikkala07, eq. 11] completes the scores by the v (v = y on S) that minimises

    sum over queries U of || F_U (v_U - f_{-U}(X_U)) ||^2  +  gamma || v_V - p_V ||^2,

with f_{-U} the model of all other queries, scored v. With A = F Phi and H = A (A'A + alpha I)^-1 A' the held-out
residuals are (I - H_UU)^-1 [(I - H) F v]_U (see `ridge`), a linear map of v, so this is linear least squares in v_V.
Tied pairs are included (v has no ties): F_U = k_U C_U, k_U^2 = c l, with C_U the centring of the l rows of a query.

Dense (a kernel matrix of all rows). I - H = alpha N with N = (F K F' + alpha I)^-1, hence the residuals are

    M F v,  M = blockdiag(N_UU^-1) N,    and    v_V = p_V - ((M F)_V'(M F)_V + gamma I)^-1 (M F)_V' M F p;    O(m^3).

Low rank (columns of X, or a basis of a kernel). In coordinates where H = B B' with B (m, r), a query's residual is
T_U (F v - B c)_U with T_U = (I - B_U B_U')^-1 and c = B'F v. Only c couples the queries. With its multiplier mu and

    e = (I - B_U B_U')^2 = T_U^-2,    q = k^2 (k^2 I + gamma e)^-1    (q = 0 where U is scored, as with infinite gamma)

which commute, setting the derivatives to zero gives

    Y c - Z mu = sum B'(1 - q) e^-1 k p      Y = sum B'(1 - q) e^-1 B      Z = I - sum B'q B
    Z c + X mu = sum B'(1 - q) k p           X = sum B'q e B                                   (sums over queries)
    v_U = mean(p_U) + (1 - q) (p_U - mean(p_U)) + q (B_U c - e B_U mu) / k:

a system of 2 r unknowns, exact for any |V|. The thin SVD of B_U makes e and q diagonal. This takes two passes over the
rows in batches of whole queries, O(m r min(l, r) + m r^2) time and O(r^2) memory besides a batch, and no iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import linalg

from .. import checks
from ..core.preferences import QueryPreferences
from ..core.queries import Batch
from ..core.symmetric import cutoff
from ..system.lazy import cached_property
from ..system.parallel import share
from ..system.progress import counted, step
from .dual import Dual
from .primal import Primal

FAR = 100.0  # means this many deviations from zero cost single precision two of its seven digits
ALONE = 1e-13  # a query whose leverage is this close to one determines some direction alone


class Completion(Protocol):
    """Completes the scores of some queries from those of the others, at one alpha."""

    def scores(self, p: np.ndarray, unscored: np.ndarray, gammas: np.ndarray) -> np.ndarray:
        """(|V|, k) the scores v_V for each gamma; p (m,) as above; `unscored` (m,) marks V, which is whole queries."""


def completion(problem: Primal | Dual, alpha: float) -> Completion:
    """The form that suits the problem, which has all rows and tied pairs included; its targets are not used."""
    return LowRank.of(problem, alpha) if isinstance(problem, Primal) else Dense(problem, alpha)


@dataclass(frozen=True)
class Dense:
    """Completion by F K F' of all rows."""

    problem: Dual
    alpha: float

    @cached_property
    def MF(self) -> np.ndarray:
        """(m, m) the matrix that takes scores of all rows to held-out residuals."""
        F, FKF = self.problem.F, self.problem.system.FKF
        N = _inverse(FKF, self.alpha)
        M = np.empty_like(N)
        for batch in F.batches():
            rows = np.arange(len(N))[batch.rows].reshape(-1, batch.length)
            M[rows] = np.linalg.solve(N[rows[:, :, None], rows[:, None, :]], N[rows])
        return (F.T @ M.T).T

    def scores(self, p: np.ndarray, unscored: np.ndarray, gammas: np.ndarray) -> np.ndarray:
        J = self.MF[:, unscored]
        gram, gradient = J.T @ J, J.T @ (self.MF @ p)
        eye = np.eye(J.shape[1])
        solve = lambda gamma: linalg.solve(gram + gamma * eye, gradient, assume_a="pos", overwrite_a=True)
        steps = [solve(gamma) for gamma in counted(gammas, "fidelities")]
        return p[unscored, None] - np.column_stack(steps)


@dataclass(frozen=True)
class AnyFolds:
    """Completion by F K F' of all rows, for any loss, weights and folds, which may mix scored and unscored.

    Folds are whole queries. With an intercept, N is restricted to the complement of F 1, which is not penalised. A row
    of weight w counts w times in the fidelity.
    """

    F: QueryPreferences
    FKF: np.ndarray
    folds: Sequence[np.ndarray]
    alpha: float

    @cached_property
    def MF(self) -> np.ndarray:
        """(m, m) the matrix that takes scores of all rows to held-out residuals F_U (v_U - f_{-U})."""
        F, FKF, m = self.F, self.FKF, self.F.shape[0]
        if self.alpha == 0:  # I - H instead: a factor of N cancels
            d, V = linalg.eigh(FKF)
            V = V[:, d > d[-1] * cutoff(m)]
            N = np.eye(m) - V @ V.T
        else:
            N = _inverse(FKF, self.alpha)
        if F.beta > 0:
            one = (F @ np.ones((m, 1)))[:, 0]
            N -= np.outer(N @ one, N @ one) / (one @ N @ one)
        M = np.empty_like(N)
        for rows in self.folds:
            own = N[np.ix_(rows, rows)]
            if self.alpha == 0 and linalg.eigvalsh(own, subset_by_index=(0, 0))[0] < ALONE:
                checks.check_determined_without(F.queries.labels.tolist()[int(F.queries.codes[rows[0]])])
            M[rows] = np.linalg.solve(own, N[rows])
        return (F.T @ M.T).T

    def scores(self, p: np.ndarray, unscored: np.ndarray, gammas: np.ndarray) -> np.ndarray:
        J = self.MF[:, unscored]
        gram, gradient = J.T @ J, J.T @ (self.MF @ p)
        u = np.ones(J.shape[1]) if self.F.u is None else self.F.u[unscored]
        solve = lambda gamma: linalg.solve(gram + gamma * np.diag(u), gradient, assume_a="pos")
        steps = [solve(gamma) for gamma in counted(gammas, "fidelities")]
        return p[unscored, None] - np.column_stack(steps)


def _inverse(M: np.ndarray, alpha: float) -> np.ndarray:
    """(M + alpha I)^-1."""
    m = len(M)
    with step(f"inverse of {m:,} x {m:,} values", 1.5 * m**3):
        return linalg.solve(M + alpha * np.eye(m), np.eye(m), assume_a="pos")


@dataclass(frozen=True)
class LowRank:
    """Completion by rows B = F Phi basis with H = B B', read in batches of whole queries."""

    problem: Primal
    basis: np.ndarray  # (n, r)

    @classmethod
    def of(cls, problem: Primal, alpha: float) -> LowRank:
        problem = replace(problem, dtype=np.float64)  # I - H_UU may be small: never in single precision
        if isinstance(problem.X, np.ndarray) and problem.X.dtype == np.float32 and _far_from_zero(problem.X):
            problem = replace(problem, X=problem.X.astype(np.float64))
        return cls(problem, problem.path.basis / np.sqrt(problem.path.d + alpha))

    def scores(self, p: np.ndarray, unscored: np.ndarray, gammas: np.ndarray) -> np.ndarray:
        S, V = self._part(p, ~unscored), self._part(p, unscored)
        return V.scores(gammas, (S.sums(np.array([np.inf])) + V.sums(gammas)).solutions())

    def _part(self, p: np.ndarray, mask: np.ndarray) -> QueryPart:
        rows = np.flatnonzero(mask)
        return QueryPart(self.problem.restrict(rows), self.basis, p[rows])


def _far_from_zero(X: np.ndarray) -> bool:
    """True if some column lies so far from zero that its mean rounds by much of its deviation."""
    return bool(np.any(np.abs(X.mean(axis=0, dtype=np.float64)) > FAR * X.std(axis=0, dtype=np.float64)))


@dataclass(frozen=True)
class CompletionSums:
    """For each gamma, the sums over queries that make up the system for c and mu; sums of two parts add."""

    matrices: np.ndarray  # (k, 3, r, r) of B'(1 - q) e^-1 B, B'q B, B'q e B
    vectors: np.ndarray  # (k, 2, r) of the right sides

    def __add__(self, other: CompletionSums) -> CompletionSums:
        return CompletionSums(self.matrices + other.matrices, self.vectors + other.vectors)

    def solutions(self) -> np.ndarray:
        """(k, 2, r) c and mu, once all queries are added."""
        r = self.vectors.shape[2]
        found = []
        for (Y, BqB, X), g in zip(self.matrices, self.vectors, strict=True):
            Z = np.eye(r) - BqB
            saddle = np.block([[Y, -Z], [-Z, -X]])  # Y, X >= 0 and Z > 0: never singular
            unit = 1 / np.sqrt(np.abs(saddle).max(axis=1))  # scales rows: Y may be far larger than X
            rhs = unit * np.concatenate([g[0], -g[1]])
            solution = unit * linalg.solve(unit[:, None] * saddle * unit, rhs, assume_a="sym")
            found.append(solution.reshape(2, r))
        return np.array(found)


@dataclass(frozen=True)
class QueryPart:
    """Some or all of the scored, or of the unscored, queries."""

    problem: Primal
    basis: np.ndarray  # (n, r)
    p: np.ndarray  # (rows,)

    def sums(self, gammas: np.ndarray) -> CompletionSums:
        """The queries' share of the system; gamma is infinite for queries whose scores are given."""
        r = self.basis.shape[1]

        def work(batches: Sequence[Batch]) -> tuple[np.ndarray, np.ndarray]:
            matrices, vectors = np.zeros((len(gammas), 3, r, r)), np.zeros((len(gammas), 2, r))
            spectra = self._spectra()
            for batch in batches:
                U, sigma, Wt, k = spectra(batch)
                s, Wt = sigma.ravel() ** 2, Wt.reshape(-1, r)
                projected = (sigma * k * np.einsum("gls,gl->gs", U, self._centred(batch))).ravel()
                for j, gamma in enumerate(gammas):
                    e, q = (array.ravel() for array in _functions(sigma, k, gamma))
                    for i, weight in enumerate(((1 - q) / e, q, q * e)):
                        if np.any(weight):
                            matrices[j, i] += Wt.T @ ((s * weight)[:, None] * Wt)
                    vectors[j, 0] += ((1 - q) / e * projected) @ Wt
                    vectors[j, 1] += ((1 - q) * projected) @ Wt
            return matrices, vectors

        parts = self._share(work)
        return CompletionSums(sum(part[0] for part in parts), sum(part[1] for part in parts))

    def scores(self, gammas: np.ndarray, solutions: np.ndarray) -> np.ndarray:
        """(rows, k) v from c and mu, `solutions` (k, 2, r)."""
        out = np.empty((len(self.p), len(gammas)))

        def work(batches: Sequence[Batch]) -> None:
            spectra = self._spectra()
            for batch in batches:
                U, sigma, Wt, k = spectra(batch)
                p = self._centred(batch)
                mean, projected = batch.stack(self.p) - p, np.einsum("gls,gl->gs", U, p)
                for j, gamma in enumerate(gammas):
                    e, q = _functions(sigma, k, gamma)
                    rest = _functions(np.zeros_like(k), k, gamma)[1]  # q on directions outside the range of B_U
                    share_of_B = np.divide(q, k, out=np.zeros_like(q), where=k > 0) * sigma
                    inside = (rest - q) * projected + share_of_B * (Wt @ solutions[j, 0] - e * (Wt @ solutions[j, 1]))
                    v = mean + (1 - rest) * p + np.einsum("gls,gs->gl", U, inside)
                    out[batch.rows, j] = v.ravel()

        self._share(work)
        return out

    @property
    def F(self) -> QueryPreferences:
        assert isinstance(self.problem.F, QueryPreferences)
        return self.problem.F

    def _share(self, work: Callable) -> list:
        return share(work, self.F.batches(), cost=float(len(self.p)) * self.basis.size, label="queries to complete")

    def _centred(self, batch: Batch) -> np.ndarray:
        p = batch.stack(self.p)
        return p - p.mean(axis=1, keepdims=True)

    def _spectra(self) -> Callable[[Batch], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """A reader of thin SVDs B_U = U diag(sigma) W' and k (g, 1) for the queries of a batch."""
        F, rotate = self.F, self.problem.rotation(self.basis, np.zeros(len(self.basis)))()

        def spectra(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            V, mean = rotate(batch)
            B = F.scale(V, batch, mean)
            U, sigma, Wt = np.linalg.svd(B.reshape(-1, batch.length, B.shape[1]), full_matrices=False)
            if np.any(sigma > 1 - ALONE):
                alone = batch.queries[int(np.argmax(sigma.max(axis=1)))]
                checks.check_determined_without(F.queries.labels.tolist()[int(alone)])
            return U, sigma, Wt, F.between[batch.queries][:, None]

        return spectra


def _functions(sigma: np.ndarray, k: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """e = (1 - sigma^2)^2 and q = k^2 / (k^2 + gamma e) on the singular directions of each query."""
    e = np.maximum((1 - sigma) * (1 + sigma), np.finfo(np.float64).eps) ** 2
    return e, k**2 / (k**2 + gamma * e)
