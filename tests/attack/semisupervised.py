"""CoRankRLS, TransductiveRankRLS and RankingPursuit."""

import inspect
import warnings

import numpy as np

from rankrls import CoRankRLS, RankingPursuit, TransductiveRankRLS, View

from . import oracles, problems
from .oracles import LD, Linear, differences, ld, norm, roundings, solve
from .rankers import asked, some_alpha, some_kernel, typical
from .trial import DeviationError

CONDITION = 1e6  # of the kernel matrix of basis points, at most


def unscaled(cls):
    return {"scale": None} if "scale" in inspect.signature(cls).parameters else {}


def partly(t, rows, *, whole=False):
    """Labels with NaN: for some rows, or for whole queries."""
    hidden = t.rng.random(len(rows.y)) < 0.5
    if whole:
        hidden = np.isin(rows.qid, np.flatnonzero(t.rng.random(int(rows.qid.max()) + 1) < 0.5))
    return np.where(hidden, np.nan, rows.y)


def coregularised(t):
    """Views that agree on unscored rows: one least-squares problem in all coefficients."""
    rows = problems.rows(t, m=(6, 18), n=(2, 5), extreme="labels", queries=4, offsets=t.chance(0.3))
    y = partly(t, rows)
    views, phis, errors, spreads = zip(*(some_view(t, rows) for _ in range(t.number(1, 3))), strict=True)
    views = list(views)
    weighting, tied, nu = t.pick("pairs", "queries", "items"), t.chance(0.5), t.pick(0.0, 1.0, t.power(-4, 3))
    alive = np.ones(len(y), bool) if rows.u is None else rows.u > 0
    scored, unscored = np.flatnonzero(alive & ~np.isnan(y)), np.flatnonzero(alive & np.isnan(y))
    part = lambda where: None if rows.u is None else rows.u[where]
    D = differences(y[scored], rows.qid[scored], tied=tied, weighting=weighting, u=part(scored))
    agree_on = t.pick("unscored", "unscored", "all")
    among = unscored if agree_on == "unscored" else np.flatnonzero(alive)
    E = differences(np.zeros(len(among)), rows.qid[among], tied=True, weighting=weighting, u=part(among))
    try:
        Phi = [phi(rows.X) for phi in phis]
        big = stacked(Phi, y, scored, among, D, E, nu)
    except ZeroDivisionError:  # basis points that repeat each other: no oracle
        t.compared = t.undecided = 1
        return
    alpha = some_alpha(t, max(typical(D @ P[scored]) for P in Phi), -3)
    X, qid, u = problems.dressed(t, rows.X, rows.dtype), problems.labelled(t, rows.qid), rows.u
    t.let(X=X, y=y, qid=qid, u=u)
    ours = {"weighting": weighting, "tied_pairs": tied, "agree_on": agree_on, **unscaled(CoRankRLS)}
    t.do(f"model = CoRankRLS({alpha!r}, {nu!r}, views={views!r}, **{ours!r}).fit(X, y, qid, u)")
    with t.may_refuse(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no query has two of the")
        model = CoRankRLS(alpha, nu, views=views, **ours).fit(X, y, qid=qid, sample_weight=u)
    # kernels are known to kernel_error of theirs, and features whitened by a matrix of condition up to CONDITION
    loose = rows.eps * (1 + max(errors)) * (np.sqrt(CONDITION) if any(e > 0 for e in errors) else 1)
    try:
        truth = Linear(big[0], big[1], big[2], alpha, loose)
    except ZeroDivisionError:
        t.compared = t.undecided = 1
        return
    place = np.cumsum([0, *(P.shape[1] for P in Phi)])
    for name, A in (("training rows", rows.X), ("new rows", rows.new)):
        found = model.predict_views(asked(model, A.astype(rows.dtype)))
        for v, phi in enumerate(phis):
            Z = np.zeros((len(A), big[0].shape[1]), LD)
            Z[:, place[v] : place[v + 1]] = phi(A)
            values = truth.roundings * rows.eps * spreads[v](truth.w[place[v] : place[v + 1], 0])
            t.close(f"view {v} of {name}", found[:, v], truth.scores(Z)[:, 0], truth.bounds(Z)[:, 0] + values)


def some_view(t, rows):
    """A view, its features in which the penalty is the identity, the error of its kernel in units of eps, and by how
    much errors of eps in kernel values, even of a row that is orthogonal to all points, change a score.
    """
    n = rows.X.shape[1]
    columns = t.pick(None, sorted(t.rng.permutation(n)[: t.number(1, n)].tolist()))
    take = lambda A: ld(A) if columns is None else ld(A)[:, columns]
    if t.chance(0.5):
        return View(columns), take, 0.0, lambda w: 0.0
    own, name, options = some_kernel(t, np.asarray(take(rows.X), float))
    numbers = t.rng.permutation(len(rows.y))[: t.number(1, 4)]
    points = take(rows.X[numbers])
    values = lambda A: oracles.kernel(name, take(A), points, **options)
    square = values(rows.X[numbers])
    if np.linalg.cond(square.astype(float)) > CONDITION or name == "laplacian":
        return View(columns), take, 0.0, lambda w: 0.0
    R = oracles.cholesky(square)
    error = oracles.kernel_error(name, take(rows.X), 1.0, **options)
    whole = oracles.kernel_error(name, take(np.vstack([rows.X, rows.new])), 1.0, **options)
    return (
        View(columns, own, numbers.tolist()),
        lambda A: solve(R.T, values(A).T).T,
        float(error / np.abs(square).max()),
        lambda w: whole * np.abs(solve(R, w)).sum(),
    )


def stacked(Phi, y, scored, among, D, E, nu):
    """Rows, targets and differences of the joint problem: a copy of the scored rows for each view, and for each two
    views the rows to agree on, where the views should not differ."""
    place = np.cumsum([0, *(P.shape[1] for P in Phi)])
    rows, targets, blocks = [], [], []
    for v, P in enumerate(Phi):
        Z = np.zeros((len(scored), place[-1]), LD)
        Z[:, place[v] : place[v + 1]] = P[scored]
        rows.append(Z)
        targets.append(ld(y[scored]))
        blocks.append(D)
    for v in range(len(Phi)):
        for w in range(v):
            Z = np.zeros((len(among), place[-1]), LD)
            Z[:, place[v] : place[v + 1]] = Phi[v][among]
            Z[:, place[w] : place[w + 1]] = -Phi[w][among]
            rows.append(Z)
            targets.append(np.zeros(len(among), LD))
            blocks.append(np.sqrt(LD(2) * LD(nu)) * E)
    whole = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)), LD)
    i = j = 0
    for b in blocks:
        whole[i : i + len(b), j : j + b.shape[1]] = b
        i, j = i + len(b), j + b.shape[1]
    return np.vstack(rows), np.concatenate(targets), whole


def transductive(t):
    """The scores of unscored queries that make cross-validation agree: a refit for every fold and unit vector."""
    rows = problems.rows(t, m=(6, 14), n=(1, 4), weights=False, extreme="labels", queries=5, offsets=t.chance(0.3))
    y = partly(t, rows, whole=True)
    unscored = np.flatnonzero(np.isnan(y))
    weighting, fidelity = t.pick("pairs", "queries", "items"), t.power(-3, 2)
    D = differences(rows.y, rows.qid, weighting=weighting)
    alpha = some_alpha(t, typical(D @ ld(rows.X)), -2)
    X, qid = problems.dressed(t, rows.X, rows.dtype), problems.labelled(t, rows.qid)
    t.let(X=X, y=y, qid=qid)
    folds = rows.qid
    ours = {"weighting": weighting, **unscaled(TransductiveRankRLS)}
    if len(np.unique(rows.qid)) > 2 and t.chance(0.4):  # several queries at a time, scored and unscored
        folds = (t.rng.permutation(int(rows.qid.max()) + 1) % 2)[rows.qid]
        if len(np.unique(folds)) > 1:
            ours["folds"] = folds.tolist()
    t.do(f"model = TransductiveRankRLS({alpha!r}, {fidelity!r}, **{ours!r}).fit(X, y, qid)")
    with t.may_refuse(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "every row has a score")
        model = TransductiveRankRLS(alpha, fidelity, **ours).fit(X, y, qid=qid)
    if len(unscored):
        weight = fidelity * row_weight(rows.qid, weighting)
        expected, bound = completed(rows, y, folds if "folds" in ours else rows.qid, D, weighting, alpha, weight)
        t.close("completed scores", model.transduction_, expected, bound)
    truth = Linear(rows.X, model.transduction_, D, alpha, rows.eps)
    for name, A in (("training rows", rows.X), ("new rows", rows.new)):
        found = model.predict(asked(model, A.astype(rows.dtype)))
        t.close(f"scores of {name}", found, truth.scores(A)[:, 0], truth.bounds(A)[:, 0])


def row_weight(qid, weighting):
    """The mean weight of a row in the loss, the unit of fidelity: c S of its query, S rows and tied pairs included."""
    S = np.array([np.sum(qid == q) for q in qid], dtype=float)
    pairs = np.maximum(1, S * (S - 1) / 2)
    factor = {"pairs": np.ones_like(S), "items": 1 / S, "queries": (S > 1) / pairs}[weighting]
    return float(np.mean(factor * S))


def completed(rows, y, folds, D, weighting, alpha, fidelity):
    """(scores, bounds) of all rows."""
    m, parts, worst = len(y), [], LD(0)
    scored, unscored = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    if folds is not rows.qid:  # from the kernel matrix of all rows, of which alpha is the least eigenvalue
        worst = 1 / LD(alpha)
    for f in np.unique(folds):
        fold, rest = np.flatnonzero(folds == f), np.flatnonzero(folds != f)
        d = differences(np.zeros(len(fold)), rows.qid[fold], weighting=weighting)
        S = np.zeros((len(fold), m), LD)
        S[np.arange(len(fold)), fold] = 1
        if len(rest):
            part = rows.take(rest)
            model = Linear(
                part.X, np.eye(len(rest)), differences(part.y, part.qid, weighting=weighting), alpha, rows.eps
            )
            S[:, rest] -= model.scores(rows.X[fold])
            worst = max(worst, model.inverse)
        parts.append(d @ S)
    R = np.vstack(parts)
    known = rows.take(scored)
    inductive = Linear(known.X, y[scored], differences(y[scored], known.qid, weighting=weighting), alpha, rows.eps)
    prior = inductive.scores(rows.X[unscored])[:, 0]
    N = R[:, unscored].T @ R[:, unscored] + LD(fidelity) * np.eye(len(unscored), dtype=LD)
    right = LD(fidelity) * prior - R[:, unscored].T @ (R[:, scored] @ ld(y[scored]))
    found = ld(y).copy()
    found[unscored] = solve(N, right)
    size = norm(np.abs(D) @ np.abs(ld(rows.X)))
    kappa = (size * oracles.spectral(D @ ld(rows.X)) + LD(alpha)) * worst
    many = roundings(m, rows.X.shape[1])
    dR = many * rows.eps * kappa * oracles.spectral(R)
    inverse = 1 / oracles.least_eigenvalue(N)
    dy = inverse * (
        dR * oracles.spectral(R) * 2 * (norm(found)) + LD(fidelity) * norm(inductive.bounds(rows.X[unscored]))
    )
    return found, np.where(np.isnan(y), dy + many * rows.eps * np.abs(found).max(), 0)


def pursuit(t):
    """Check that every step takes the best function there is, and fits what the mathematics says."""
    rows = problems.rows(t, m=(5, 14), n=(2, 6), extreme="labels", offsets=t.chance(0.3))
    weighting, tied = t.pick("pairs", "queries", "items"), t.chance(0.5)
    beta, backfit = t.pick(0.0, 0.0, 0.3, 1.0), t.chance(0.6)
    own, values, atoms, wrong = None, ld, rows.X.shape[1], 0.0
    kept = rows.take(np.arange(len(rows.y)) if rows.u is None else np.flatnonzero(rows.u > 0))
    if t.chance(0.5):
        own, name, options = some_kernel(t, rows.X)
        values, atoms = lambda A: oracles.kernel(name, A, kept.X, **options), len(kept.y)
        wrong = oracles.kernel_error(name, rows.X, rows.eps, **options)
    steps = t.number(1, min(4, atoms))
    X, qid = rows.X.astype(rows.dtype), problems.labelled(t, rows.qid)
    t.let(X=X, y=rows.y, qid=qid, u=rows.u)
    ours = {
        "weighting": weighting,
        "tied_pairs": tied,
        "regression": beta,
        "backfit": backfit,
        **unscaled(RankingPursuit),
    }
    t.do(f"model = RankingPursuit({steps}, kernel={own!r}, **{ours!r}).fit(X, y, qid, u)")
    with t.may_refuse(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "stopped after")
        model = RankingPursuit(steps, kernel=own, **ours).fit(X, rows.y, qid=qid, sample_weight=rows.u)
    D = differences(kept.y, kept.qid, tied=tied, weighting=weighting, beta=beta, u=kept.u)
    A, V = D @ values(kept.X), np.abs(D) @ np.abs(values(kept.X))
    z, w = D @ ld(kept.y), np.abs(D) @ np.abs(ld(kept.y))
    many = roundings(len(kept.y), steps)
    size, whole = np.sum(A * A, axis=0), np.sum(V * V, axis=0)
    error = many * (rows.eps * np.sqrt(whole) + wrong * norm(np.abs(D).sum(axis=1)))  # of each atom
    nothing = size <= 1e-26 * whole  # constant within queries
    A[:, nothing] = 0
    lost = error[~nothing] > 1e-3 * np.sqrt(size[~nothing])  # differences of large values
    if lost.any() or norm(z) <= 1e3 * many * rows.eps * norm(w):
        t.compared = t.undecided = 1
        return
    Retraced(t, model, A, z, rows, error, many * rows.eps, backfit).follow(many * rows.eps * norm(w))


class Retraced:
    """A pursuit step by step: each takes the best atom up to rounding, and fits as least squares does.

    With B = A - P (P'P)^-1 P'A what is new of the atoms and r the residual, an atom gains (B'r)^2 / B'B. If atoms are
    off by e, B is off by e_B = e + |P^+ A|'e. Gram matrices are off by nu ||A||^2, nu being the rounding of sums. So

        |d gain| <= 2 sqrt(gain / B'B) (e_B ||r|| + ||B|| e_r + nu ||A|| ||z||)
                    + gain (2 e_B / ||B|| + nu ||A||^2 / B'B)

    with e_r = e_z + |coef|'e for the residual. The loss is off by what every gain is, by 2 ||r|| e_r and by nu ||z||^2.
    """

    def __init__(self, t, model, A, z, rows, error, nu, backfit):
        self.t, self.model, self.A, self.z, self.e, self.nu, self.backfit = t, model, A, z, error, nu, backfit
        self.chosen = [int(i) for i in model.path_.indices]
        if model.kernel is not None:  # row numbers of the caller
            alive = np.arange(len(rows.y)) if rows.u is None else np.flatnonzero(rows.u > 0)
            self.chosen = [int(np.flatnonzero(alive == i)[0]) for i in self.chosen]
        self.size = np.sum(A * A, axis=0)

    def follow(self, e_z):
        A, z, loss = self.A, self.z, norm(self.z) ** 2
        coef, off = np.zeros(A.shape[1], LD), LD(0)
        for step, g in enumerate(self.chosen):
            r, e_r = z - A @ coef, e_z + np.abs(coef) @ self.e
            B, e_B = self.new(self.chosen[:step])
            if B is None:
                break
            gain, doubt = self.gains(B, e_B, r, e_r)
            self.check_choice(step, g, B, gain, doubt)
            coef = self.fitted(coef, r, g, step)
            off += doubt[g]
            left = z - A @ coef
            bound = off + 2 * norm(left) * (e_z + np.abs(coef) @ self.e) + self.nu * loss
            self.t.close(
                f"loss after step {step}", self.model.path_.errors[step], norm(left) ** 2, bound, size=float(loss)
            )

    def new(self, before):
        """B and its error; None where the atoms chosen hardly differ."""
        if not self.backfit or not before:
            return self.A, self.e
        P = self.A[:, before]
        if np.linalg.cond((P / np.sqrt(self.size[before])).astype(float)) > 1e5:
            self.t.compared = self.t.undecided = 1
            return None, None
        share = solve(P.T @ P, P.T @ self.A)
        return self.A - P @ share, self.e + np.abs(share).T @ self.e[before]

    def gains(self, B, e_B, r, e_r):
        power = np.sum(B * B, axis=0)
        real = power > np.maximum(1e-20 * self.size, e_B**2)
        safe = np.where(real, power, 1)
        gain = np.where(real, (B.T @ r) ** 2 / safe, 0)
        first = e_B * norm(r) + np.sqrt(power) * e_r + self.nu * np.sqrt(self.size) * norm(self.z)
        doubt = 2 * np.sqrt(gain / safe) * first + gain * (2 * e_B / np.sqrt(safe) + self.nu * self.size / safe)
        return gain, np.where(real, doubt, norm(self.z) ** 2)

    def check_choice(self, step, g, B, gain, doubt):
        if self.size[g] == 0:
            raise DeviationError(f"step {step} takes atom {g}, which is constant within queries")
        new = np.sum(B * B, axis=0) > 1e-9 * self.size  # atoms of which less than 1e-10 is new count as spanned
        for c in self.chosen[:step] if not self.backfit else []:  # as do copies of those chosen, which may come again
            along = self.A[:, c] @ self.A / self.size[c]
            rest = self.A - np.outer(self.A[:, c], along)
            new &= (np.arange(len(new)) == c) | (np.sum(rest * rest, axis=0) > 1e-9 * self.size)
        best = int(np.argmax(np.where(new, gain - doubt, 0)))
        if new[best] and gain[best] - doubt[best] > gain[g] + doubt[g]:
            raise DeviationError(
                f"step {step} takes atom {g}, which gains {gain[g]:.9g}; {best} gains {gain[best]:.9g}"
            )

    def fitted(self, coef, r, g, step):
        coef = coef.copy()
        if self.backfit:
            P = self.A[:, self.chosen[: step + 1]]
            coef[self.chosen[: step + 1]] = solve(P.T @ P, P.T @ self.z)
        else:
            coef[g] += (self.A[:, g] @ r) / self.size[g]
        return coef


CATEGORIES = {
    "co-regularised views": coregularised,
    "transduction": transductive,
    "pursuit": pursuit,
}
