"""What rounding rows leave behind that were in sums, or in a fit, and no longer are."""

from dataclasses import dataclass

import numpy as np

from .oracles import LD, ld, norm, roundings, spectral

HEAVY = 0.5  # a query with more than this share of the weight is held out by a fit of the others
LABELS = 1e8  # so is one whose squared labels are this many times those of the others


@dataclass(frozen=True)
class Spent:
    """All rows that were ever in sums from which some were subtracted.

    Sums are stored about a mean, which is rounded, so the mean that the regression part subtracts is not exact for rows
    that are nearly the mean themselves: |D| counts a row and the mean by their full size. And the weight W of what
    remains is off by eps times the weight W_0 of all rows that ever were in the sums, so that means have a relative
    error of eps W_0 / W, and beta W mean mean', which centring subtracts, has the same; the mean there is that of the
    remaining rows less that of the removed ones, which may be much larger.
    """

    X: np.ndarray
    y: np.ndarray
    D: np.ndarray
    u: np.ndarray | None = None
    beta: float = 0.0

    def besides(self, fold):
        """None where a fold outweighs the rest: the library then adds up the rest anew, and nothing is subtracted."""
        return None if self.weights[fold].sum() > LD(HEAVY) * self.weights.sum() else self

    @property
    def weights(self):
        return np.ones(len(self.X), dtype=LD) if self.u is None else ld(self.u)

    def absolute(self):
        """|D|."""
        found, u = np.abs(self.D), self.weights
        if self.beta > 0:
            found[-len(u) :] = np.sqrt(LD(self.beta) * u)[:, None] * (np.eye(len(u), dtype=LD) + u / u.sum())
        return found


@dataclass(frozen=True)
class Whole:
    """A kernel fit of all rows: kernel values, labels, D and weights. Some are held out, and `rest` are the others.

    The library solves for all rows and takes out what some contribute. Let F be its root of the loss, F'F = D'D,
    G = F K F', E = (G + alpha I)^-1, z = F y and c = E z; with E_U the columns of the rows held out and M their block,
    the dual variables of the others are

        v = c - E_U t,    M t = c_U,    where t = F_U (y - f)_U is the held-out residual.

    In exact arithmetic v = Q z, where Q is the inverse for the others alone: at most 1 / alpha, and zero for rows held
    out. Rounding of c is a change of z by eps ||z||, which Q makes eps ||z|| / alpha. Forming c_U and M, and the solve,
    round by eps (||c|| + ||M|| ||t||) <= eps / alpha (||z|| + ||t||), which E_U M^-1 makes larger by at most
    ||E||^1/2 ||M^-1||^1/2. Without an intercept M >= 1 / (||G|| + alpha). A free intercept takes one direction from E,
    that of the roots of weights, and leaves M at least the share W_rest / W of this. With kappa = 1 + ||G|| / alpha

        |dv| <= eps / alpha (||z|| + (kappa W / W_rest)^1/2 (||z|| + ||t||)),

    for the dual variables of all rows, since those held out are zero only up to this. The intercept is a mean over the
    others by sums over the rows held out, so errors of f there count W / W_rest times, and labels round by eps times
    sum of u |y - c| / W_rest, at most ||z|| (W / W_rest)^1/2 / (beta W_rest)^1/2 about a mean c, and by eps |c|.

    y - f has mean zero over the others, so ||t||^2 <= W / W_rest ||D (y - f)||^2, and ||D y|| = ||z||.

    A query that outweighs the others is solved without them, and has none of these errors, so that W / W_rest <= 2
    elsewhere. So is one whose labels about c have LABELS times the squares of the others'; c is one of two means, of
    which at least one is in the range of the others' labels. So ||z||^2 <= (1 + LABELS) (||z_rest||^2 + beta W_rest
    range^2) elsewhere.
    """

    K: np.ndarray
    y: np.ndarray
    D: np.ndarray
    rest: np.ndarray
    u: np.ndarray | None = None
    beta: float = 0.0

    @property
    def weights(self):
        """(W_rest, W / W_rest)."""
        u = np.ones(len(self.K), dtype=LD) if self.u is None else ld(self.u)
        own = u[self.rest].sum()
        return own, min(u.sum() / own, LD(1 / HEAVY))

    @property
    def top(self):
        """||G||."""
        return spectral(self.D @ ld(self.K) @ self.D.T)

    def labels(self, z):
        """||z||, from that of the others."""
        spread = LD(self.beta) * self.weights[0] * np.ptp(ld(self.y)[self.rest]) ** 2
        most, found = np.sqrt((1 + LD(LABELS)) * (norm(z) ** 2 + spread)), norm(self.D @ ld(self.y))
        return min(found, most) if most > 0 else found

    def bounds(self, a, z, alpha, eps):
        """The error from the rows held out, at these; a are the coefficients and z the labels of the others."""
        K, (weight, ratio) = ld(self.K), self.weights
        f, far, reach = K[:, self.rest] @ a, self.labels(z), np.sqrt(np.sum((K @ self.D.T) ** 2, axis=1))
        t = np.sqrt(ratio) * (far + norm(self.D @ f))
        dv = eps / alpha * (far + np.sqrt(ratio * (1 + self.top / alpha)) * (far + t))
        found = np.delete(reach, self.rest) * dv
        if self.beta > 0:
            mean = np.abs(ld(self.y)[self.rest]).max() + far * np.sqrt(ratio / (LD(self.beta) * weight))
            found = found + ratio * (reach.max() * dv + eps * np.abs(f).max()) + eps * mean
        return roundings(*K.shape) * found
