"""Slow, obvious answers in extended precision, with bounds on rounding. Imports nothing of the library.

Everything is computed in `np.longdouble` (64 bits of mantissa and exponents up to 1e4932 on x86), so that neither
values of 1e150 nor weights of 1e-160 overflow here, and the error of an oracle is a thousandth of what it allows.

A loss is a matrix of differences D: one row sqrt(w) (e_i - e_j) for each pair that counts and, with a regression part,
one row sqrt(beta u_i) (e_i - mean) for each item, where the free intercept takes up the mean. Then every model is

    min || D (y - f) ||^2 + alpha || f ||^2

Error bounds
------------
Input is read with a relative error eps (of the library's precision), so A = D X is known up to e_A = eps || |D| |X| ||
and z = D y up to e_z = eps || |D| |y| ||; normal equations are formed with an error of eps ||A||^2, which e_A ||A||
covers. With G = A'A + alpha I, to first order in eps ::

    |dw| <= ||G^-1|| (e_A ||z - A w|| + 2 ||A|| e_A ||w|| + ||A|| e_z)

which is eps times the condition number of the problem. For the dual and Nystroem forms below, the error of the kernel
matrix takes the place of e_A.

That is for one rounding of every number. Sums of m products carry m roundings, a Cholesky factor or eigendecomposition
of size n and two triangular solves 3 n [Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 10], and
weights, means and square roots some ten more: `roundings(m, n)` = m + 3 n + 10 multiplies every bound.

Near the smallest numbers, rounding is absolute: a product is off by up to `LEAST`, the smallest double [Higham,
chapter 2]. This affects A'z, which G^-1 magnifies, and the weights and scores themselves.

Held-out scores have three further errors, which the library documents: their equations are solved to a relative
residual of `RESIDUAL`, scores of a query are taken about the mean of its rows, and they are rounded to `BITS` bits of
the largest of them, so that equal rows tie.
"""

import math

import numpy as np

LD = np.longdouble
EXTENDED = np.finfo(LD).nmant >= 63  # where it is no more than double precision, fewer cases can be decided
RESIDUAL = {"double": 1e-10, "single": 1e-5}  # of held-out equations
BITS = {"double": 38, "single": 17}  # of held-out scores
LEAST = LD(2) ** -1074


class OutOfReachError(ZeroDivisionError):
    """The problem is so ill-conditioned that extended precision has no digit of the answer."""


def roundings(m, n):
    """The number of roundings in sums over m rows and the solution of n equations."""
    return LD(m + 3 * n + 10)


def ld(values):
    return np.asarray(values).astype(LD)


# ---------------------------------------------------------------- linear algebra


def solve(A, b):
    """A^-1 b by Gaussian elimination with partial pivoting."""
    A, b = ld(A).copy(), ld(b).copy()
    flat = b.ndim == 1
    b = b[:, None] if flat else b
    scale = np.abs(A).max(axis=1)
    if not np.all(scale > 0):
        raise OutOfReachError("the oracle's matrix has a zero row")
    A, b = A / scale[:, None], b / scale[:, None]
    n = len(A)
    for k in range(n):
        p = k + int(np.argmax(np.abs(A[k:, k])))
        if A[p, k] == 0:
            raise OutOfReachError("the oracle's matrix is singular")
        if p != k:
            A[[k, p]], b[[k, p]] = A[[p, k]], b[[p, k]]
        f = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k:] -= np.outer(f, A[k, k:])
        b[k + 1 :] -= np.outer(f, b[k])
    for k in range(n - 1, -1, -1):
        b[k] = (b[k] - A[k, k + 1 :] @ b[k + 1 :]) / A[k, k]
    return b[:, 0] if flat else b


def cholesky(S):
    """Upper triangular R with R'R = S."""
    S = ld(S).copy()
    R = np.zeros_like(S)
    for k in range(len(S)):
        if S[k, k] <= 0:
            raise OutOfReachError("the oracle's matrix is not positive definite")
        R[k, k:] = S[k, k:] / np.sqrt(S[k, k])
        S[k:, k:] -= np.outer(R[k, k:], R[k, k:])
    return R


def norm(V):
    """The Frobenius norm, without overflow."""
    V = ld(V)
    return np.sqrt(np.sum(V * V)) if V.size else LD(0)


def spectral(V):
    """The largest singular value."""
    V = ld(V)
    top = np.abs(V).max(initial=0)
    return top * ld(np.linalg.norm((V / top).astype(float), 2)) if top > 0 else LD(0)


def least_eigenvalue(S):
    """The smallest eigenvalue of a symmetric matrix, from double precision after scaling: not below rounding."""
    S = ld(S)
    top = np.abs(S).max(initial=0)
    if top == 0:
        return LD(0)
    values = np.linalg.eigvalsh((S / top).astype(float))
    return top * ld(max(values[0], values[-1] * 1e-18, 0.0))


# ---------------------------------------------------------------- losses


def differences(y, qid, *, tied=True, weighting="items", beta=0.0, u=None):
    """D of the loss: a row for each pair of a query that counts, and one for each item where beta > 0."""
    m = len(y)
    u = np.ones(m, dtype=LD) if u is None else ld(u)
    rows = []
    for q in dict.fromkeys(np.asarray(qid).tolist()):
        items = [i for i in range(m) if qid[i] == q]
        pairs = [(i, j) for n, i in enumerate(items) for j in items[:n] if tied or y[i] != y[j]]
        S = sum(u[i] for i in items)
        if S == 0:
            continue
        others = LD(math.fsum([-1.0, *(float(u[i]) for i in items)]))  # S - 1, exactly also where S is near 1
        mass = S * others / 2 if tied else sum((u[i] * u[j] for i, j in pairs), LD(0))
        c = {"pairs": LD(1), "items": 1 / S, "queries": 1 / mass if mass > 0 else LD(0)}[weighting]
        for i, j in pairs:
            row = np.zeros(m, dtype=LD)
            w = np.sqrt((1 - LD(beta)) * c * u[i] * u[j])
            row[i], row[j] = w, -w
            rows.append(row)
    D = np.array(rows, dtype=LD).reshape(len(rows), m)
    if beta == 0:
        return D
    return np.vstack([D, np.sqrt(LD(beta) * u)[:, None] * (np.eye(m, dtype=LD) - u / u.sum())])


def pair_differences(pairs, m, weights=None):
    """D of explicit pairs (i above j)."""
    D = np.zeros((len(pairs), m), dtype=LD)
    w = np.ones(len(pairs), dtype=LD) if weights is None else np.sqrt(ld(weights))
    for p, (i, j) in enumerate(pairs):
        D[p, i] += w[p]
        D[p, j] -= w[p]
    return D


def item_means(V, u=None):
    """The weighted mean of rows, which the free intercept takes up."""
    u = np.ones(len(V), dtype=LD) if u is None else ld(u)
    return (u / u.sum()) @ ld(V)


# ---------------------------------------------------------------- models: scores of new rows, and their error bounds


class Linear:
    """min ||D (y - X w)||^2 + alpha ||w||^2: weights, and a bound of their error."""

    def __init__(self, X, y, D, alpha, eps, *, u=None, intercept=False, z=None, spent=None):
        """`spent`: see `left_out.Spent`."""
        X, alpha = ld(X), LD(alpha)
        y = None if y is None else ld(y).reshape(len(X), -1)
        A, z = D @ X, D @ y if z is None else ld(z).reshape(len(D), -1)
        G = A.T @ A + alpha * np.eye(X.shape[1], dtype=LD)
        self.w = solve(G, A.T @ z)  # (n, t)
        self.inverse, self.eps = 1 / (least_eigenvalue(A.T @ A) + alpha), eps
        self.measure(X, y, D, A, z, alpha, u=u, intercept=intercept, spent=spent)

    def measure(self, X, y, D, A, z, alpha, *, u, intercept, spent):
        """The intercept that belongs to the weights, and bounds of the errors of both."""
        eps, self.b = self.eps, np.zeros(z.shape[1], dtype=LD)
        if intercept:
            self.b = item_means(y, u) - item_means(X, u) @ self.w
        Xs, ys, Ds, size = X, y, D, np.abs(D)
        if spent is not None:
            Xs, ys, Ds, size = ld(spent.X), ld(spent.y).reshape(len(spent.X), -1), spent.D, spent.absolute()
        a, e_A = max(spectral(A), spectral(Ds @ Xs)), eps * norm(size @ np.abs(Xs))
        e_z = eps * (norm(z) if y is None else norm(size @ np.abs(ys)))
        self.top = a**2 + alpha
        r = norm(z - A @ self.w)
        self.roundings = roundings(len(Xs), X.shape[1])
        self.dw = self.roundings * self.inverse * (e_A * r + 2 * a * e_A * norm(self.w) + a * e_z)
        self.dw += self.roundings * LEAST * (1 + self.inverse * (1 + norm(self.w)))
        self.db, self.means = LD(0), item_means(np.abs(X), u) if intercept else None
        if intercept:
            weight, ever = LD(len(X)) if u is None else np.sum(ld(u)), LD(1)
            if spent is not None:
                ever = np.sum(spent.weights) / weight
                size_x = norm(self.means) + norm(item_means(np.abs(Xs), spent.u))
                size_y = norm(item_means(np.abs(y), u)) + norm(item_means(np.abs(ys), spent.u))
                centring = LD(spent.beta) * weight * size_x * (size_x * norm(self.w) + size_y)
                self.dw += self.roundings * self.inverse * eps * ever * centring
            self.db = norm(self.means) * self.dw
            self.db += ever * self.roundings * eps * (np.abs(y).max() + self.means @ np.abs(self.w)).max()

    def scores(self, X):
        return ld(X) @ self.w + self.b

    def bounds(self, X):
        """(k, 1) the bound of the errors of scores of rows."""
        X = np.abs(ld(X))
        rounding = self.roundings * (self.eps * (X @ np.abs(self.w) + np.abs(self.b)).max(axis=1) + LEAST)
        return (np.sqrt(np.sum(X * X, axis=1)) * self.dw + self.db + rounding)[:, None]

    def held_out_bounds(self, X, y, D):
        """(k,) the bound of the errors of scores of rows left out of a larger fit; D is the loss among them.

        The held-out equations (I - H) t = r are solved to a residual of rho = RESIDUAL ||r||, or, where the leverage
        h = ||H|| is small, of rho / h. That moves the weights by at most ||A_q|| ||G^-1|| rho, or by rho
        sqrt(||G^-1|| / h), and h is at least ||A_q||^2 / ||G||. Scores whose differences are within their errors may be
        tied at one of them.
        """
        precision = "single" if self.eps > 1e-10 else "double"
        scores, size = self.scores(X)[:, 0], spectral(D @ ld(X))
        rho = LD(RESIDUAL[precision]) * norm(D @ (ld(y) - scores))
        far = rho * (size * self.inverse + (np.sqrt(self.inverse * self.top) / size if size > 0 else 0))
        lengths = np.sqrt(np.sum(ld(X) ** 2, axis=1))
        reach = lengths + (0 if self.means is None else norm(self.means))
        about = lengths.max(initial=0) * self.roundings * self.eps * (norm(self.w) + self.dw)  # the mean, turned
        found = self.bounds(X)[:, 0] + reach * far + about + last_bits(scores - self.b[0], precision)
        most, spread = found.max(initial=0), np.ptp(scores) if len(scores) else LD(0)
        return np.full_like(found, most + spread) if spread <= 2 * most else found


class Kernel:
    """min ||D (y - f)||^2 + alpha a'K a with f = K a, in dual form; `eK` is the error of an entry of K."""

    def __init__(self, K, y, D, alpha, eps, eK, *, u=None, intercept=False, z=None, residual=0.0, steps=0, whole=None):
        """`residual`: at which share of ||D y|| an iterative solver stops, after so many `steps`, each of which rounds
        a product with K; `whole`: see `left_out.Whole`."""
        K, alpha, m = ld(K), LD(alpha), len(K)
        y = None if y is None else ld(y).reshape(m, -1)
        z = D @ y if z is None else ld(z).reshape(len(D), -1)
        # differences of kernel values first: where values are nearly equal, D'D K would lose what D K keeps
        self.a = solve(D.T @ (D @ K) + alpha * np.eye(m, dtype=LD), D.T @ z)
        self.b = np.zeros(z.shape[1], dtype=LD)
        if intercept:
            self.b = item_means(y - K @ self.a, u)
        DK = D @ K
        r = norm(z - DK @ self.a)  # alpha times the dual variables of D
        e_z = eps * (norm(z) if y is None else norm(np.abs(D) @ np.abs(y)))
        size, top = (spectral(D) ** 2, spectral(DK @ D.T)) if whole is None else (spectral(whole.D) ** 2, whole.top)
        self.roundings = roundings(m, m) + steps * m
        self.dv = self.roundings / alpha * ((size * eK * m + eps * (top + alpha)) * r / alpha + e_z)
        self.dv += residual * norm(z) / alpha
        self.D, self.eps, self.eK, self.u, self.y = D, eps, eK, u, y
        self.db = LD(0)
        if intercept:
            self.db = self._bound(K).max() + self.roundings * eps * np.abs(y).max()
        self.held_out = 0 if whole is None else whole.bounds(self.a, z, alpha, eps)

    def _bound(self, K):
        """The scores and their bounds, from kernel rows (k, m)."""
        K = ld(K)
        deviation = np.sqrt(np.sum((K @ self.D.T) ** 2, axis=1))
        rest = self.roundings * (self.eK + self.eps * np.abs(K).max(axis=1)) * np.abs(self.a).sum(axis=0).max()
        return deviation * self.dv + rest

    def scores(self, K):
        return ld(K) @ self.a + self.b

    def bounds(self, K):
        return (self._bound(K) + self.db + self.roundings * self.eps * np.abs(self.b).max())[:, None]

    def held_out_bounds(self, K, level=0):
        """(k,) the bound for the rows left out of `whole`, whose equations are solved directly.

        With an intercept functions are stored about their mean over all rows, `level`; bits are of the difference.
        """
        precision = "single" if self.eps > 1e-10 else "double"
        return (
            self.bounds(K)[:, 0]
            + self.held_out
            + last_bits(np.abs(self.scores(K) - self.b)[:, 0] + np.abs(level), precision)
        )


def stored(scores, eps):
    """What storing all these scores in single precision changes near zero; scores too small for it are doubles."""
    single = eps > 1e-10 and np.nanmax(np.abs(scores), initial=0) > 1e-30
    return LD(2) ** -149 if single else LD(0)


def last_bits(scores, precision):
    """The change from rounding to some bits of the largest score of a query."""
    return 2 * np.abs(scores).max(initial=0) * LD(2) ** -BITS[precision]


class Subset:
    """min ||D (y - K_mr c)||^2 + alpha c'K_rr c: the kernel model expanded in r points.

    Solved in r coordinates w of features Phi = K_mr R^-1, K_rr = R'R, in which the penalty is alpha ||w||^2. So
    its error is that of a kernel model whose values are off by eK, plus that of a linear model of Phi: normal
    equations round in every direction, even in those that no difference of rows reaches.
    """

    def __init__(self, K_mr, K_rr, y, D, alpha, eps, eK, **more):
        self.K_mr, self.K_rr = ld(K_mr), ld(K_rr)
        self.P = solve(self.K_rr, self.K_mr.T).T  # (m, r) weights of interpolation from the points
        Q = self.P @ self.K_mr.T
        reach = 1 + norm(self.P)
        self.model = Kernel((Q + Q.T) / 2, y, D, alpha, eps, eK * reach**2, **more)
        self.eK, self.reach = eK, reach
        self.R = cholesky(self.K_rr)
        self.linear = Linear(self.features(self.K_mr), y, D, alpha, eps, **more)

    def features(self, K):
        """(k, r) R'^-1 K' of kernel rows, as rows."""
        return solve(self.R.T, ld(K).T).T

    def scores(self, K):
        return self.model.scores(ld(K) @ self.P.T)

    def bounds(self, K):
        rows = ld(K) @ self.P.T
        own = norm(solve(self.K_rr, ld(K).T)) + 1
        self.model.eK = self.eK * self.reach * own
        return self.model.bounds(rows) + self.linear.bounds(self.features(K))


def kernel(name, X, Z, *, gamma=1.0, degree=3, coef0=1.0):
    """The kernel matrix, entry by entry, as the formulas are written."""
    X, Z, gamma = ld(X), ld(Z), LD(gamma)
    if name == "rbf":
        return np.exp(-gamma * np.sum((X[:, None] - Z[None]) ** 2, axis=2))
    if name == "laplacian":
        return np.exp(-gamma * np.sum(np.abs(X[:, None] - Z[None]), axis=2))
    if name == "linear":
        return X @ Z.T
    if name == "poly":
        return (gamma * (X @ Z.T) + LD(coef0)) ** degree
    nx, nz = np.sqrt(np.sum(X * X, axis=1)), np.sqrt(np.sum(Z * Z, axis=1))
    return (X @ Z.T) / np.outer(np.where(nx > 0, nx, 1), np.where(nz > 0, nz, 1))  # cosine


def kernel_error(name, X, eps, *, gamma=1.0, degree=3, coef0=1.0):
    """A bound on the rounding of an entry of the kernel matrix of rows X."""
    X, gamma = ld(X), LD(gamma)
    if name == "rbf":  # the exponent is gamma times a squared distance, at best from differences of rows about a centre
        C = X - X.mean(axis=0)
        return eps * (1 + gamma * np.sum(C * C, axis=1).max() + gamma * np.sum(np.abs(C) * np.abs(X), axis=1).max())
    if name == "laplacian":
        return eps * (1 + gamma * np.sum(np.abs(X), axis=1).max())
    if name == "cosine":
        return 4 * eps
    top = np.sum(X * X, axis=1).max()
    return eps * top if name == "linear" else degree * eps * (gamma * top + abs(LD(coef0))) ** degree


# ---------------------------------------------------------------- metrics


def pairwise_accuracy(y, scores, qid, slack, X, learned):
    """(value, doubtful): the mean over queries of correctly ordered pairs; doubtful counts pairs within `slack`.

    Equal rows must tie, and so must rows about which nothing is `learned`. Other rows whose exact scores happen to be
    equal may come in any order: no rounding is small enough to preserve a tie.
    """
    shares, doubtful = [], 0
    slack = np.broadcast_to(np.asarray(slack, dtype=LD).ravel(), (len(y),))
    for q in dict.fromkeys(np.asarray(qid).tolist()):
        rows = [i for i in range(len(y)) if qid[i] == q]
        right = []
        for n, i in enumerate(rows):
            for j in rows[:n]:
                if y[i] != y[j]:
                    gap = scores[i] - scores[j]
                    equal = not learned[i] or np.array_equal(X[i], X[j])
                    doubtful += bool(abs(gap) <= slack[i] + slack[j] and not equal)
                    right.append((1 + np.sign(y[i] - y[j]) * np.sign(gap)) / 2)
        if right:
            shares.append(np.mean(right))
    return (float(np.mean(shares)) if shares else float("nan")), doubtful
