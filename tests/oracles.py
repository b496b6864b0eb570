"""Dense, slow, obvious versions of everything: loops over pairs, one solve per alpha, a refit per held-out fold.

Imports nothing of the library, so that agreement means something.
"""

import numpy as np


def laplacian(y, qid, *, tied=True, weighting="pairs", beta=0.0, u=None):
    """Lt = beta diag(u) + (1 - beta) L, from a loop over pairs. An item of weight u is u copies of it."""
    m = len(y)
    u = np.ones(m) if u is None else np.asarray(u, float)
    L = np.zeros((m, m))
    for q in set(np.asarray(qid).tolist()):
        rows = [i for i in range(m) if qid[i] == q]
        S = sum(u[i] for i in rows)
        pairs = [(i, j) for n, i in enumerate(rows) for j in rows[:n] if tied or y[i] != y[j]]
        if weighting == "pairs":
            c = 1.0
        elif weighting == "items":
            c = 1 / S
        else:
            mass = S * (S - 1) / 2 if tied else sum(u[i] * u[j] for i, j in pairs)
            c = 1 / mass if mass > 0 else 0.0
        for i, j in pairs:
            w = c * u[i] * u[j]
            L[i, i] += w
            L[j, j] += w
            L[i, j] -= w
            L[j, i] -= w
    return beta * np.diag(u) + (1 - beta) * L


def ridge(Phi, y, Lt, alpha, *, intercept=False, penalty=None):
    """Coefficients (and intercept) of min (y - Phi w - b)' Lt (y - Phi w - b) + alpha w' penalty w."""
    n = Phi.shape[1]
    P = np.eye(n) if penalty is None else penalty
    if not intercept:
        return np.linalg.solve(Phi.T @ Lt @ Phi + alpha * P, Phi.T @ Lt @ y), 0.0
    A = np.column_stack([Phi, np.ones(len(Phi))])
    Q = np.zeros((n + 1, n + 1))
    Q[:n, :n] = alpha * P
    w = np.linalg.solve(A.T @ Lt @ A + Q, A.T @ Lt @ y)
    return w[:n], w[n]


def kernel_ridge(K, y, Lt, alpha, *, intercept=False):
    """Dual coefficients (and intercept) of min (y - K a - b)' Lt (y - K a - b) + alpha a'K a."""
    m = len(y)
    if intercept:
        one = np.ones(m)
        total = one @ Lt @ one
        Lt = Lt - np.outer(Lt @ one, Lt @ one) / total
    a = np.linalg.solve(Lt @ K + alpha * np.eye(m), Lt @ y)
    return a, 0.0


def refit_scores(X, y, qid, folds, alpha, *, kernel=None, beta=0.0, u=None, **loss):
    """Scores of each fold by a model fitted on all other rows."""
    m = len(y)
    u = np.ones(m) if u is None else np.asarray(u, float)
    scores = np.full(m, np.nan)
    for fold in folds:
        rest = np.setdiff1d(np.arange(m), fold)
        Lt = laplacian(y[rest], np.asarray(qid)[rest], beta=beta, u=u[rest], **loss)
        if kernel is None:
            w, b = ridge(X[rest], y[rest], Lt, alpha, intercept=beta > 0)
            scores[fold] = X[fold] @ w + b
        else:
            K = kernel(X[rest], X[rest])
            a, _ = kernel_ridge(K, y[rest], Lt, alpha, intercept=beta > 0)
            b = np.average(y[rest] - K @ a, weights=u[rest]) if beta > 0 else 0.0
            scores[fold] = kernel(X[fold], X[rest]) @ a + b
    return scores


def gaussian(X, Z, gamma):
    return np.array([[np.exp(-gamma * np.sum((x - z) ** 2)) for z in Z] for x in X])


def pairwise_accuracy(y, scores, qid):
    """The mean over queries of the share of correctly ordered pairs; ties in the scores count half."""
    shares = []
    for q in set(np.asarray(qid).tolist()):
        rows = [i for i in range(len(y)) if qid[i] == q]
        right = [
            (1 + np.sign(y[i] - y[j]) * np.sign(scores[i] - scores[j])) / 2
            for n, i in enumerate(rows)
            for j in rows[:n]
            if y[i] != y[j]
        ]
        if right:
            shares.append(np.mean(right))
    return float(np.mean(shares))


def high_precision_ridge(X, y, Lt, alpha, digits=60):
    """`ridge` in multi-precision arithmetic."""
    import mpmath

    with mpmath.workdps(digits):
        A, L, t = mpmath.matrix(X.tolist()), mpmath.matrix(Lt.tolist()), mpmath.matrix(y.tolist())
        G = A.T * L * A
        for i in range(X.shape[1]):
            G[i, i] += mpmath.mpf(alpha)
        w = mpmath.lu_solve(G, A.T * (L * t))
        f = A * w
        return np.array([float(v) for v in w]), np.array([float(v) for v in f])


def high_precision_kernel_scores(K, y, Lt, alpha, rest, fold, digits=60):
    """Scores of a fold by `kernel_ridge` on the rest, in multi-precision arithmetic."""
    import mpmath

    with mpmath.workdps(digits):
        L, inner = mpmath.matrix(Lt.tolist()), mpmath.matrix(K[np.ix_(rest, rest)].tolist())
        a = mpmath.lu_solve(L * inner + mpmath.mpf(alpha) * mpmath.eye(len(rest)), L * mpmath.matrix(y.tolist()))
        f = mpmath.matrix(K[np.ix_(fold, rest)].tolist()) * a
        return np.array([float(v) for v in f])


def edge_kernel(G, K, edges, others, parity=0):
    """The kernel between two lists of edges, one entry at a time; G, K are kernels k(i, j) of object numbers."""
    M = np.empty((len(edges), len(others)))
    for a, (h, i) in enumerate(edges):
        for b, (g, j) in enumerate(others):
            M[a, b] = G[h, g] * K[i, j]
            if parity:
                M[a, b] = (M[a, b] + parity * G[h, j] * K[i, g]) / 2
    return M


def conditional_scores(G, K, edges, y, test, alpha, *, ranking, parity=0):
    """Scores of test edges by the model of the training edges; G, K hold the kernels of all objects."""
    M = edge_kernel(G, K, edges, edges, parity)
    qid = [h for h, _ in edges]
    L = laplacian(y, qid, weighting="items") if ranking else np.eye(len(y))
    a = np.linalg.solve(L @ M + alpha * np.eye(len(y)), L @ y)
    return edge_kernel(G, K, test, edges, parity) @ a


def pair_kernel(G, K, edges, others, parity=0, product=1.0, source=0.0, target=0.0):
    """product G kron K + source G kron 1 + target 1 kron K between two lists of edges, one entry at a time."""
    kernel = lambda h, i, g, j: product * G[h, g] * K[i, j] + source * G[h, g] + target * K[i, j]
    M = np.empty((len(edges), len(others)))
    for a, (h, i) in enumerate(edges):
        for b, (g, j) in enumerate(others):
            M[a, b] = kernel(h, i, g, j)
            if parity:
                M[a, b] = (M[a, b] + parity * kernel(h, i, j, g)) / 2
    return M


def relation_model(M, y, rows, alpha, *, ranking, weights=None, weighting="items", free=None):
    """Coefficients (q,) and those of free columns (k,) of min (y - M a - H b)' L (y - M a - H b) + alpha a'M a."""
    q = len(y)
    u = np.ones(q) if weights is None else np.asarray(weights, float)
    L = laplacian(np.arange(q), rows, weighting=weighting, u=u) if ranking else np.diag(u)
    H = np.zeros((q, 0)) if free is None else np.asarray(free, float)
    A = np.block([[L @ M + alpha * np.eye(q), L @ H], [H.T @ L @ M, H.T @ L @ H]])
    solution = np.linalg.lstsq(A, np.concatenate([L @ y, H.T @ L @ y]), rcond=None)[0]
    return solution[:q], solution[q:]


def row_centring(rows):
    """The matrix that takes the mean of its row out of each edge."""
    same = np.equal.outer(rows, rows).astype(float)
    return np.eye(len(rows)) - same / same.sum(axis=1)


def least_residual(M, b, steps):
    """The x that minimises ||b - M x|| in span(b, M b, ..., M^(steps-1) b)."""
    space = [b / np.linalg.norm(b)]
    for _ in range(steps - 1):
        v = M @ space[-1]
        for _ in range(2):
            v = v - sum((u @ v) * u for u in space)
        space.append(v / np.linalg.norm(v))
    Q = np.column_stack(space)
    return Q @ np.linalg.lstsq(M @ Q, b, rcond=None)[0]


def top_of(scores, top, excluded=()):
    """[(column, score), ...] of each row, best first, ties by column, by plain sorting."""
    found = []
    for i, row in enumerate(scores):
        left = [(j, v) for j, v in enumerate(row) if (i, j) not in excluded]
        found.append(sorted(left, key=lambda item: (-item[1], item[0]))[:top])
    return found


def letor_rows(text):
    """(label, qid, {feature: value}, comment) of each line of LETOR text, by str methods and float() alone."""
    rows = []
    for line in text.split("\n"):
        body, mark, comment = line.rstrip("\r").partition("#")
        if not body.split():
            continue
        label, *tokens = body.split()
        qid = tokens.pop(0)[len("qid:") :] if tokens and tokens[0].startswith("qid:") else None
        pairs = [token.split(":") for token in tokens]
        values = {int(i): float("nan") if v == "NULL" else float(v) for i, v in pairs}
        rows.append((float("nan") if label == "NULL" else float(label), qid, values, comment if mark else ""))
    return rows


def minmax_by_query(X, qid):
    """Every feature scaled to [0, 1] within each query, by loops; 0 if constant, NaN where NaN."""
    scaled = np.full(X.shape, np.nan)
    for j in range(X.shape[1]):
        for q in set(np.asarray(qid).tolist()):
            rows = [i for i in range(len(X)) if qid[i] == q and not np.isnan(X[i, j])]
            low, high = min((X[i, j] for i in rows), default=0), max((X[i, j] for i in rows), default=0)
            for i in rows:
                scaled[i, j] = (X[i, j] - low) / (high - low) if high > low else 0.0
    return scaled


def pursuit(D, y, Lt, n, *, backfit=True, intercept=False):
    """[(atom, loss, coefficients of all atoms, intercept)], found by trying every candidate in every step."""
    m, N = D.shape
    L, b = Lt, 0.0
    if intercept:  # a free constant in every model: the part of Lt that does not see it
        one = np.ones(m)
        L = Lt - np.outer(Lt @ one, Lt @ one) / (one @ Lt @ one)
    coef, chosen, steps = np.zeros(N), [], []
    for _ in range(n):
        best = None
        for g in range(N):
            if backfit and g in chosen:
                continue
            trial = np.zeros(N)
            if backfit:
                V = D[:, [*chosen, g]]
                if np.linalg.matrix_rank(L @ V) <= len(chosen):
                    continue
                trial[[*chosen, g]] = np.linalg.lstsq(V.T @ L @ V, V.T @ L @ y, rcond=None)[0]
            else:
                r, k = y - D @ coef, D[:, g]
                trial[:] = coef
                trial[g] += (k @ L @ r) / (k @ L @ k)
            rest = y - D @ trial
            loss = rest @ L @ rest
            if best is None or loss < best[1] * (1 - 1e-12):
                best = g, loss, trial
        if best is None:
            break
        chosen.append(best[0])
        coef = best[2]
        if intercept:
            b = (np.ones(m) @ Lt @ (y - D @ coef)) / (np.ones(m) @ Lt @ np.ones(m))
        steps.append((best[0], best[1], coef.copy(), b))
    return steps


def kernel_matching_pursuit(K, y, n):
    """The plain algorithm of Vincent and Bengio (2002), residual and atoms about their means (a free constant)."""
    K, r, terms = K - K.mean(axis=0), y - y.mean(), []
    for _ in range(n):
        gains = [(k @ r) ** 2 / (k @ k) for k in K.T]
        g = int(np.argmax(gains))
        a = (K[:, g] @ r) / (K[:, g] @ K[:, g])
        r = r - a * K[:, g]
        terms.append((g, a, r @ r))
    return terms


def joint_pursuit(D, y, L, Du, U, nu, n, *, backfit=True, shared=False, weights=None):
    """[(atoms, coefficients of each view)], found by trying all combinations; D_v scored rows, Du_v unscored ones."""
    from itertools import product

    M = len(D)
    w = [1.0] * M if weights is None else weights  # their mean is 1
    coefs, chosen, steps = [np.zeros(d.shape[1]) for d in D], [[] for _ in D], []

    def objective(a):
        J = sum(c * (y - d @ x) @ L @ (y - d @ x) for c, d, x in zip(w, D, a, strict=True))
        f = [d @ x for d, x in zip(Du, a, strict=True)]
        return J + nu * sum((p - q) @ U @ (p - q) for p in f for q in f)

    def refit(sets):
        sizes = [len(s) for s in sets]
        cuts = np.cumsum(sizes)[:-1]
        H, e = np.zeros((sum(sizes),) * 2), np.zeros(sum(sizes))
        V, W = [d[:, s] for d, s in zip(D, sets, strict=True)], [d[:, s] for d, s in zip(Du, sets, strict=True)]
        at = np.split(np.arange(sum(sizes)), cuts)
        for v in range(M):
            H[np.ix_(at[v], at[v])] += w[v] * V[v].T @ L @ V[v] + 2 * nu * (M - 1) * W[v].T @ U @ W[v]
            e[at[v]] = w[v] * V[v].T @ L @ y
            for u in range(M):
                if u != v:
                    H[np.ix_(at[v], at[u])] -= 2 * nu * W[v].T @ U @ W[u]
        x = np.linalg.solve(H, e)
        out = [np.zeros(d.shape[1]) for d in D]
        for v in range(M):
            out[v][sets[v]] = x[at[v]]
        return out

    def paper_step(atoms, r):
        B = np.array(
            [[-2 * nu * Du[v][:, atoms[v]] @ U @ Du[u][:, atoms[u]] for u in range(M)] for v in range(M)], float
        )
        for v in range(M):
            k, ku = D[v][:, atoms[v]], Du[v][:, atoms[v]]
            B[v, v] = w[v] * k @ L @ k + 2 * nu * (M - 1) * ku @ U @ ku
        a = np.linalg.solve(B, [w[v] * D[v][:, atoms[v]] @ L @ r for v in range(M)])
        J = sum(w[v] * (r - a[v] * D[v][:, atoms[v]]) @ L @ (r - a[v] * D[v][:, atoms[v]]) for v in range(M))
        f = [a[v] * Du[v][:, atoms[v]] for v in range(M)]
        return a, J + nu * sum((p - q) @ U @ (p - q) for p in f for q in f)

    for _ in range(n):
        best, r = None, y - sum(c * (d @ x) for c, d, x in zip(w, D, coefs, strict=True)) / M
        combinations = [(g,) * M for g in range(D[0].shape[1])] if shared else product(*(range(d.shape[1]) for d in D))
        for atoms in combinations:
            if backfit:
                if any(g in c for g, c in zip(atoms, chosen, strict=True)):
                    continue
                trial = refit([[*c, g] for g, c in zip(atoms, chosen, strict=True)])
                J = objective(trial)
            else:
                a, J = paper_step(atoms, r)
                trial = [x.copy() for x in coefs]
                for v in range(M):
                    trial[v][atoms[v]] += a[v]
            if best is None or best[1] > J:
                best = atoms, J, trial
        coefs = best[2]
        for c, g in zip(chosen, best[0], strict=True):
            c.append(g)
        steps.append((best[0], [x.copy() for x in coefs]))
    return steps


def target_statistics(levels, y, qid, n_folds, smoothing):
    """The mean of y relative to its query at each row's level, shrunk: over queries of other folds, and over all."""
    import zlib

    levels, y, qid = list(levels), np.asarray(y, dtype=float), list(qid)
    centred = [y[i] - np.mean([y[j] for j in range(len(y)) if qid[j] == qid[i]]) for i in range(len(y))]
    fold = [zlib.crc32(str(q).encode()) % n_folds for q in qid]

    def mean(rows):
        return sum(centred[j] for j in rows) / (len(rows) + smoothing)

    same = [[j for j in range(len(y)) if levels[j] == levels[i]] for i in range(len(y))]
    held_out = [mean([j for j in rows if fold[j] != fold[i]]) for i, rows in enumerate(same)]
    return np.array(held_out), np.array([mean(rows) for rows in same])


def expected_reciprocal_rank(y, scores, k=None, max_grade=4):
    """The mean over all orders of tied items (all permutations that sort the scores)."""
    from itertools import permutations

    values = []
    for order in permutations(range(len(y))):
        s = [scores[i] for i in order]
        if s == sorted(s, reverse=True):
            go_on, value = 1.0, 0.0
            for rank, i in enumerate(order[:k], start=1):
                stop = (2 ** y[i] - 1) / 2**max_grade
                value += go_on * stop / rank
                go_on *= 1 - stop
            values.append(value)
    return np.mean(values)


def rank_biased_overlap(a, b, p):
    """The infinite sum, cut off where the rest is zero; for two rankings of the same items."""
    first = sorted(range(len(a)), key=lambda i: -a[i])
    second = sorted(range(len(b)), key=lambda i: -b[i])
    depths = range(1, 3000)
    return (1 - p) * sum(p ** (d - 1) * len(set(first[:d]) & set(second[:d])) / min(d, len(a)) for d in depths)


def poisson_propensities(log):
    """Maximum likelihood of clicks ~ Poisson(impressions * relevance of document * theta of position), numerically."""
    from scipy.optimize import minimize

    pairs = sorted({(str(q), str(d)) for q, d in zip(log.query, log.document, strict=True)})
    code = [pairs.index((str(q), str(d))) for q, d in zip(log.query, log.document, strict=True)]

    def loss(v):
        rate = log.impressions * np.exp(v[code] + np.append(0, v[len(pairs) :])[log.position - 1])
        return np.sum(rate - log.clicks * np.log(rate))

    v = minimize(loss, np.zeros(len(pairs) + log.position.max() - 1), method="BFGS", options={"gtol": 1e-7}).x
    theta = np.exp(np.append(0, v[len(pairs) :]))
    return theta / theta.max()


def click_targets(log, theta, method, m):
    """Labels and weights of the m documents, one by one."""
    y, weight = np.zeros(m), np.zeros(m)
    for d in range(m):
        rows = [i for i in range(len(log.query)) if int(log.document[i]) == d]
        if not rows:
            continue
        at = [1.0 if method == "naive" else theta[log.position[i] - 1] for i in rows]
        clicks, shown = [log.clicks[i] for i in rows], [log.impressions[i] for i in rows]
        if method == "propensities":
            weight[d] = sum(shown)
            y[d] = sum(c / a for c, a in zip(clicks, at, strict=True)) / weight[d]
        else:
            weight[d] = sum(n * a for n, a in zip(shown, at, strict=True))
            y[d] = sum(clicks) / weight[d]
    return y, weight


def labels_and_pairs(
    X, y, qid, pairs, margins, weights, exact, *, alpha, kernel=None, basis=None, regression=0.0, **loss
):
    """Scores of the rows: one dense KKT system of labels, weighted pairs, and pairs that hold as equations."""
    m, weights = len(X), np.ones(len(pairs)) if weights is None else weights
    Phi, penalty = X, np.eye(X.shape[1])
    if kernel is not None:
        gamma = 1 / (X.shape[1] * X.var())
        Phi, penalty = gaussian(X, X[basis], gamma), gaussian(X[basis], X[basis], gamma)
    tied = loss.get("tied_pairs", False)
    L = laplacian(y, qid, tied=tied, weighting=loss.get("weighting", "items"), beta=regression)
    B = np.column_stack([Phi, np.ones(m)]) if regression > 0 else Phi
    n = B.shape[1]
    M = B.T @ L @ B
    M[: Phi.shape[1], : Phi.shape[1]] += alpha * penalty
    rhs, A, d = B.T @ L @ y, np.empty((0, n)), []
    for p, (i, j) in enumerate(pairs):
        a = B[i] - B[j]
        if p in exact:
            A, d = np.vstack([A, a]), [*d, margins[p]]
        else:
            M, rhs = M + weights[p] * np.outer(a, a), rhs + weights[p] * margins[p] * a
    system = np.block([[M, A.T], [A, np.zeros((len(d), len(d)))]])
    return B @ np.linalg.lstsq(system, np.concatenate([rhs, d]), rcond=None)[0][:n]


def path_shares(f, a, b, steps=4000, h=1e-5):
    """The integral of the gradient of f along the line from b to a, by differences at the middles of many steps."""
    d, n = a - b, len(a)
    line = b + ((np.arange(steps) + 0.5) / steps)[:, None] * d
    gradient = np.array([(f(line + h * e) - f(line - h * e)).mean() / (2 * h) for e in np.eye(n)])
    return d * gradient


def two_step(G, K, Y, g, k, alpha, beta, *, intercept=False):
    """The score of one new pair: ridge regression for each column of Y, then over what these predict.

    g (p,), k (r,) are the kernels between the new objects and the training ones.
    """

    def ridge_at(K, k, T, alpha):
        n = len(K)
        if not intercept:
            return k @ np.linalg.solve(K + alpha * np.eye(n), T)
        M = np.block([[K + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        solved = np.linalg.solve(M, np.vstack([T, np.zeros((1, T.shape[1]))]))
        return k @ solved[:n] + solved[n]

    first = ridge_at(G, g, Y, alpha)  # (r,) the new row at all known columns
    return float(ridge_at(K, k, first[:, None], beta)[0])


def two_step_kernel(G, K, alpha, beta):
    """(p r, p r) the pairwise kernel for which ridge regression with alpha = 1 is the two-step model."""
    p, r = len(G), len(K)
    A, B = G + alpha * np.eye(p), K + beta * np.eye(r)
    H = np.kron(G @ np.linalg.inv(A), K @ np.linalg.inv(B))
    return H @ np.linalg.inv(np.eye(p * r) - H)
