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
    """Labels with NaN: of some rows, or of whole queries."""
    hidden = t.rng.random(len(rows.y)) < 0.5
    if whole:
        hidden = np.isin(rows.qid, np.flatnonzero(t.rng.random(int(rows.qid.max()) + 1) < 0.5))
    return np.where(hidden, np.nan, rows.y)


def coregularised(t):
    """Views that agree on unscored rows: one least-squares problem in all coefficients."""
    rows = problems.rows(t, m=(6, 18), n=(2, 5), extreme=False, queries=4, offsets=t.chance(0.3))
    y = partly(t, rows)
    views, phis, errors = zip(*(some_view(t, rows) for _ in range(t.number(1, 3))), strict=True)
    views = list(views)
    weighting, tied, nu = t.pick("pairs", "queries", "items"), t.chance(0.5), t.pick(0.0, 1.0, t.power(-4, 3))
    alive = np.ones(len(y), bool) if rows.u is None else rows.u > 0
    scored, unscored = np.flatnonzero(alive & ~np.isnan(y)), np.flatnonzero(alive & np.isnan(y))
    part = lambda where: None if rows.u is None else rows.u[where]
    D = differences(y[scored], rows.qid[scored], tied=tied, weighting=weighting, u=part(scored))
    E = differences(np.zeros(len(unscored)), rows.qid[unscored], tied=True, weighting=weighting, u=part(unscored))
    try:
        Phi = [phi(rows.X) for phi in phis]
        big = stacked(Phi, y, scored, unscored, D, E, nu)
    except ZeroDivisionError:  # basis points that repeat each other: no oracle
        t.compared = t.undecided = 1
        return
    alpha = some_alpha(t, max(typical(D @ P[scored]) for P in Phi), -3)
    X, qid, u = problems.dressed(t, rows.X, rows.dtype), problems.labelled(t, rows.qid), rows.u
    t.let(X=X, y=y, qid=qid, u=u)
    ours = {"weighting": weighting, "tied_pairs": tied, **unscaled(CoRankRLS)}
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
            t.close(f"view {v} of {name}", found[:, v], truth.scores(Z)[:, 0], truth.bounds(Z)[:, 0])


def some_view(t, rows):
    """A view, its features in which the penalty is the identity, and the error of its kernel in units of eps."""
    n = rows.X.shape[1]
    columns = t.pick(None, sorted(t.rng.permutation(n)[: t.number(1, n)].tolist()))
    take = lambda A: ld(A) if columns is None else ld(A)[:, columns]
    if t.chance(0.5):
        return View(columns), take, 0.0
    own, name, options = some_kernel(t, np.asarray(take(rows.X), float))
    numbers = t.rng.permutation(len(rows.y))[: t.number(1, 4)]
    points = take(rows.X[numbers])
    values = lambda A: oracles.kernel(name, take(A), points, **options)
    square = values(rows.X[numbers])
    if np.linalg.cond(square.astype(float)) > CONDITION or name == "laplacian":
        return View(columns), take, 0.0
    R = oracles.cholesky(square)
    error = oracles.kernel_error(name, take(rows.X), 1.0, **options)
    return (
        View(columns, own, numbers.tolist()),
        lambda A: solve(R.T, values(A).T).T,
        float(error / np.abs(square).max()),
    )


def stacked(Phi, y, scored, unscored, D, E, nu):
    """Rows, targets and differences of the one problem: a copy of the scored rows for each view, and for each two
    views the unscored rows, whose differences between the views are to be none."""
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
            Z = np.zeros((len(unscored), place[-1]), LD)
            Z[:, place[v] : place[v + 1]] = Phi[v][unscored]
            Z[:, place[w] : place[w + 1]] = -Phi[w][unscored]
            rows.append(Z)
            targets.append(np.zeros(len(unscored), LD))
            blocks.append(np.sqrt(LD(2) * LD(nu)) * E)
    whole = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)), LD)
    i = j = 0
    for b in blocks:
        whole[i : i + len(b), j : j + b.shape[1]] = b
        i, j = i + len(b), j + b.shape[1]
    return np.vstack(rows), np.concatenate(targets), whole


def transductive(t):
    """The scores of unscored queries that make cross-validation agree: a refit for every query and unit vector."""
    rows = problems.rows(t, m=(6, 14), n=(1, 4), weights=False, extreme=False, queries=5, offsets=t.chance(0.3))
    y = partly(t, rows, whole=True)
    scored, unscored = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    weighting, fidelity = t.pick("pairs", "queries", "items"), t.power(-3, 2)
    D = differences(rows.y, rows.qid, weighting=weighting)
    alpha = some_alpha(t, typical(D @ ld(rows.X)), -2)
    X, qid = problems.dressed(t, rows.X, rows.dtype), problems.labelled(t, rows.qid)
    t.let(X=X, y=y, qid=qid)
    ours = {"weighting": weighting, **unscaled(TransductiveRankRLS)}
    t.do(f"model = TransductiveRankRLS({alpha!r}, {fidelity!r}, **{ours!r}).fit(X, y, qid)")
    with t.may_refuse(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "every row has a score")
        model = TransductiveRankRLS(alpha, fidelity, **ours).fit(X, y, qid=qid)
    if len(unscored):
        weight = fidelity * row_weight(rows.qid, weighting)
        expected, bound = completed(rows, y, scored, unscored, D, weighting, alpha, weight)
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


def completed(rows, y, scored, unscored, D, weighting, alpha, fidelity):
    """(scores, bounds) of all rows."""
    m, parts, worst = len(y), [], LD(0)
    for q in np.unique(rows.qid):
        fold, rest = np.flatnonzero(rows.qid == q), np.flatnonzero(rows.qid != q)
        d = differences(y[fold], np.zeros(len(fold)), weighting=weighting)
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
    """Every step takes the best function there is, and fits what the mathematics says."""
    rows = problems.rows(t, m=(5, 14), n=(2, 6), extreme=False, offsets=t.chance(0.3))
    weighting, tied = t.pick("pairs", "queries", "items"), t.chance(0.5)
    beta, backfit = t.pick(0.0, 0.0, 0.3, 1.0), t.chance(0.6)
    own, values, atoms = None, ld, rows.X.shape[1]
    kept = rows.take(np.arange(len(rows.y)) if rows.u is None else np.flatnonzero(rows.u > 0))
    if t.chance(0.5):
        own, name, options = some_kernel(t, rows.X)
        values, atoms = lambda A: oracles.kernel(name, A, kept.X, **options), len(kept.y)
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
    # differences lose digits where values are large beside them; atoms that are constant within queries are nothing
    own, whole = np.sum(A * A, axis=0), np.sum(V * V, axis=0) + LD("1e-4000")
    lost = max(np.max(whole[own > 1e-26 * whole] / own[own > 1e-26 * whole], initial=1), norm(w) ** 2 / norm(z) ** 2)
    A[:, own <= 1e-26 * whole] = 0
    if 1e3 * rows.eps * np.sqrt(lost) > 1e-3:
        t.compared = t.undecided = 1
        return
    follow(t, model, A, z, rows, 1e3 * rows.eps * np.sqrt(lost), backfit)


def follow(t, model, A, z, rows, slack, backfit):
    """Retrace the path: the atom of each step is the best to rounding, the coefficients are those of least squares."""
    chosen = [int(i) for i in model.path_.indices]
    if model.kernel is not None:  # row numbers of the caller
        alive = np.arange(len(rows.y)) if rows.u is None else np.flatnonzero(rows.u > 0)
        chosen = [int(np.flatnonzero(alive == i)[0]) for i in chosen]
    loss, coef = norm(z) ** 2, np.zeros(A.shape[1], LD)
    size = np.sum(A * A, axis=0)
    for step, g in enumerate(chosen):
        r = z - A @ coef
        if backfit:
            before = chosen[:step]
            P = A[:, before]
            if before:
                condition = np.linalg.cond((P / np.sqrt(np.sum(P * P, axis=0))).astype(float))
                if condition > 1e5:
                    t.compared = t.undecided = 1
                    return
                B = A - P @ solve(P.T @ P, P.T @ A)
            else:
                B = A
        else:
            B = A
        power = np.sum(B * B, axis=0)
        real = power > 1e-20 * np.maximum(size, LD("1e-4000"))
        gain = np.where(real, (B.T @ r) ** 2 / np.where(real, power, 1), 0)
        doubt = np.where(real, slack * loss * np.sqrt(size / np.where(real, power, 1)), 0)
        new = power > 1e-9 * size  # atoms of which less than 1e-10 is new count as spanned by those chosen
        best = int(np.argmax(np.where(new, gain - doubt, 0)))
        if new[best] and gain[best] - doubt[best] > gain[g] + doubt[g]:
            raise DeviationError(
                f"step {step} takes atom {g}, which gains {gain[g]:.6g}; {best} gains {gain[best]:.6g}"
            )
        if backfit:
            P = A[:, chosen[: step + 1]]
            try:
                coef = np.zeros(A.shape[1], LD)
                coef[chosen[: step + 1]] = solve(P.T @ P, P.T @ z)
            except ZeroDivisionError:
                t.compared = t.undecided = 1
                return
        else:
            if size[g] == 0:
                raise DeviationError(f"step {step} takes atom {g}, which is constant within queries")
            coef[g] += (A[:, g] @ r) / size[g]
        left = norm(z - A @ coef) ** 2
        t.close(f"loss after step {step}", model.path_.errors[step], left, slack * loss * 10)


CATEGORIES = {
    "co-regularised views": coregularised,
    "transduction": transductive,
    "pursuit": pursuit,
}
