"""One learner on one data set in a separate process: seconds, peak memory, scores of new rows.

    python -m benchmarks.contenders NAME FOLDER [FOLDER ...]

Each folder holds X.npy, y.npy, qid.npy and new.npy; the scores of `new` go to scores.npy. What is imported depends on
the name, so that memory is the learner's own, and RLScore can be used where rankrls is not installed.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Predict | None]

LEAST, MOST = 3, 51  # a fit is repeated until a second has passed; a long one less often
CONTENDERS: dict[str, Callable[[], Fit]] = {}
PACKAGES: dict[str, str] = {}  # what a contender imports


def contender(name: str, package: str = "rankrls") -> Callable:
    """Register a function that imports what it needs and returns a fit."""

    def register(make: Callable[[], Fit]) -> Callable[[], Fit]:
        CONTENDERS[name], PACKAGES[name] = make, package
        return make

    return register


# ---------------------------------------------------------------- linear


@contender("X.T @ X", "numpy")
def gram() -> Fit:
    def fit(X, y, qid):
        X.T @ X

    return fit


@contender("RankRLS(alpha=1)")
def one_alpha() -> Fit:
    from rankrls import RankRLS

    return lambda X, y, qid: RankRLS(1.0).fit(X, y, qid=qid).predict


@contender("RankRLS()")
def every_alpha() -> Fit:
    from rankrls import RankRLS

    return lambda X, y, qid: RankRLS().fit(X, y, qid=qid).predict


@contender("sklearn Ridge", "sklearn")
def ridge() -> Fit:
    from sklearn.linear_model import Ridge

    return lambda X, y, qid: Ridge(1.0, solver="cholesky").fit(X, y).predict


@contender("RLScore QueryRankRLS", "rlscore")
def rlscore() -> Fit:
    from rlscore.learner.query_rankrls import QueryRankRLS

    return lambda X, y, qid: QueryRankRLS(X, y, qids=qid, regparam=1.0).predict


# ---------------------------------------------------------------- trees


@contender("LightGBM", "lightgbm")
def lightgbm() -> Fit:
    from lightgbm import LGBMRanker

    return lambda X, y, qid: LGBMRanker(verbose=-1).fit(X, y, group=np.bincount(qid)).predict


@contender("XGBoost", "xgboost")
def xgboost() -> Fit:
    from xgboost import XGBRanker

    return lambda X, y, qid: XGBRanker().fit(X, y, qid=qid).predict


@contender("CatBoost", "catboost")
def catboost() -> Fit:
    from catboost import CatBoostRanker

    settings = {"loss_function": "YetiRank", "iterations": 100, "verbose": False, "allow_writing_files": False}
    return lambda X, y, qid: CatBoostRanker(**settings).fit(X, y, group_id=qid).predict


# ---------------------------------------------------------------- kernels: all rows, or 500 points

POINTS = 500


@contender("RankRLS(alpha=1), Gaussian")
def one_alpha_kernel() -> Fit:
    from rankrls import RankRLS

    return lambda X, y, qid: RankRLS(1.0, kernel="rbf").fit(X, y, qid=qid).predict


@contender("RankRLS(), Gaussian")
def every_alpha_kernel() -> Fit:
    from rankrls import RankRLS

    return lambda X, y, qid: RankRLS(kernel="rbf").fit(X, y, qid=qid).predict


@contender("sklearn KernelRidge", "sklearn")
def kernel_ridge() -> Fit:
    from sklearn.kernel_ridge import KernelRidge

    return lambda X, y, qid: KernelRidge(alpha=1.0, kernel="rbf", gamma=width(X)).fit(X, y).predict


@contender("RLScore QueryRankRLS, Gaussian", "rlscore")
def rlscore_kernel() -> Fit:
    from rlscore.learner.query_rankrls import QueryRankRLS

    def fit(X, y, qid):
        return QueryRankRLS(X, y, qids=qid, regparam=1.0, kernel="GaussianKernel", gamma=width(X)).predict

    return fit


@contender("RankRLS(alpha=1), 500 points")
def one_alpha_points() -> Fit:
    from rankrls import RankRLS

    return lambda X, y, qid: RankRLS(1.0, kernel="rbf", basis=POINTS, random_state=0).fit(X, y, qid=qid).predict


@contender("RankRLS(), 500 points")
def every_alpha_points() -> Fit:
    from rankrls import RankRLS

    return lambda X, y, qid: RankRLS(kernel="rbf", basis=POINTS, random_state=0).fit(X, y, qid=qid).predict


@contender("sklearn Nystroem + Ridge", "sklearn")
def nystroem() -> Fit:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    def fit(X, y, qid):
        features = Nystroem(gamma=width(X), n_components=POINTS, random_state=0)
        return make_pipeline(features, Ridge(1.0, solver="cholesky")).fit(X, y).predict

    return fit


@contender("RLScore QueryRankRLS, 500 points", "rlscore")
def rlscore_points() -> Fit:
    from rlscore.learner.query_rankrls import QueryRankRLS

    def fit(X, y, qid):
        points = X[np.random.default_rng(0).choice(len(X), POINTS, replace=False)]
        kernel = {"kernel": "GaussianKernel", "gamma": width(X), "basis_vectors": points}
        return QueryRankRLS(X, y, qids=qid, regparam=1.0, **kernel).predict

    return fit


def width(X: np.ndarray) -> float:
    """1 / (n var X): for standardised columns, what "rbf" uses in rankrls."""
    return 1.0 / (X.shape[1] * X.var())


# ---------------------------------------------------------------- objects given an object: y is (p, p)


def gaussian(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """The kernel of all conditional rankers."""
    squares = (X * X).sum(axis=1)[:, None] + (Z * Z).sum(axis=1) - 2 * X @ Z.T
    return np.exp(-squares / (2 * X.shape[1]))


@contender("ConditionalRankRLS(alpha=1)")
def conditional_one() -> Fit:
    from rankrls import ConditionalRankRLS

    return lambda X, Y, _: ConditionalRankRLS(1.0, kernel=gaussian).fit(X, Y).predict


@contender("ConditionalRankRLS()")
def conditional_auto() -> Fit:
    from rankrls import ConditionalRankRLS

    return lambda X, Y, _: ConditionalRankRLS(kernel=gaussian).fit(X, Y).predict


@contender("NumPy, two eigh", "numpy")
def conditional_numpy() -> Fit:
    """The closed form, written out: A = U ((U'Y C V) / (d e' + 1)) V'C, scores K A K."""

    def fit(X, Y, _):
        K = gaussian(X, X)
        centred = K - K.mean(axis=0)
        d, U = np.linalg.eigh(K)
        e, V = np.linalg.eigh(centred - centred.mean(axis=1)[:, None])
        V -= V.mean(axis=0)
        A = U @ ((U.T @ Y @ V) / (d[:, None] * e + 1.0)) @ V.T
        return lambda new: gaussian(new, X) @ A @ gaussian(X, new)

    return fit


@contender("RLScore KronRLS (regression)", "rlscore")
def conditional_rlscore() -> Fit:
    from rlscore.learner.kron_rls import KronRLS

    def fit(X, Y, _):
        K = gaussian(X, X)
        model = KronRLS(K1=K, K2=K, Y=Y.ravel(order="F"), regparam=1.0)
        A = np.asarray(model.predictor.A).reshape(K.shape)
        return lambda new: gaussian(new, X) @ A @ gaussian(X, new)

    return fit


# ---------------------------------------------------------------- the process


def peak_megabytes() -> float:
    """The peak resident memory of this process in MB (zero if the system does not say)."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024 / 1e6
    except OSError:
        return 0.0


def run(fit: Fit, folder: Path) -> tuple[float, float]:
    """Least seconds of a fit, by the clock and summed over cores; writes the scores of the new rows."""
    X, y, qid = (np.load(folder / f"{name}.npy") for name in ("X", "y", "qid"))
    seconds: list[float] = []
    cores: list[float] = []
    while len(seconds) < MOST and sum(seconds) < (4.0 if len(seconds) < LEAST else 1.0):
        gc.collect()
        start, busy = time.perf_counter(), time.process_time()
        predict = fit(X, y, qid)
        seconds.append(time.perf_counter() - start)
        cores.append(time.process_time() - busy)
    if predict is not None:
        np.save(folder / "scores.npy", np.asarray(predict(np.load(folder / "new.npy")), dtype=float))
    return min(seconds), min(cores)


def main() -> None:
    name, *folders = sys.argv[1:]
    fit = CONTENDERS[name]()
    seconds, cores = np.mean([run(fit, Path(folder)) for folder in folders], axis=0)
    version = getattr(sys.modules[PACKAGES[name]], "__version__", "")
    print(json.dumps({"seconds": seconds, "cores": cores, "megabytes": peak_megabytes(), "version": version}))


if __name__ == "__main__":
    main()
