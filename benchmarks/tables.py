"""How to scale numbers: held-out NDCG@10 of linear models on raw, standardised and quantile columns.

    python benchmarks/tables.py ../shared/data

Five folds of queries; alpha is chosen within the training part. Data sets that are scaled within queries say little
about raw tables and are shown next to those that are not.
"""

import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupKFold

from rankrls import RankRLS, TableEncoder, datasets, metrics

WAYS = ("raw", "standard", "quantile")


def data_sets(archives: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    with tempfile.TemporaryDirectory() as folder:

        def read(name: str, file: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            with tarfile.open(archives / name / f"{name}.tar.xz") as tar:
                tar.extractall(Path(folder) / name, filter="data")
            data = datasets.load_letor(Path(folder) / name / file, missing="minimum")
            return data.X, data.y, data.qid

        yield "MSLR sample, train", *read("mslr-web-fold1-5k", "msn1.fold1.train.5k.txt")
        yield "MSLR sample, test", *read("mslr-web-fold1-5k", "msn1.fold1.test.5k.txt")
        yield "OHSUMED 2, raw", *read("letor2-ohsumed", "OHSUMED/Data/All/OHSUMED.txt")
        yield "MQ2008, scaled", *read("letor4-mq2008", "MQ2008/Querylevelnorm.txt")


def held_out(X: np.ndarray, y: np.ndarray, qid: np.ndarray, how: str) -> np.ndarray:
    scores = np.zeros(len(y))
    for train, test in GroupKFold(5).split(X, y, qid):
        encoder = None if how == "raw" else TableEncoder(numbers=how).fit(X[train])
        A, B = (X[rows] if encoder is None else encoder.transform(X[rows]) for rows in (train, test))
        scores[test] = RankRLS(scoring="ndcg@10").fit(A, y[train], qid=qid[train]).predict(B)
    return metrics.per_query("ndcg@10", y, scores, qid)


def main(archives: str = "../shared/data") -> None:
    print(f"| data | {' | '.join(WAYS)} | p of quantile against standard |\n|---|---|---|---|---|")
    for name, X, y, qid in data_sets(Path(archives)):
        values = {how: held_out(X, y, qid, how) for how in WAYS}
        kept = ~np.isnan(values["raw"])
        p = metrics.randomisation_test(values["quantile"][kept], values["standard"][kept], random_state=0)
        print(f"| {name} | {' | '.join(f'{v[kept].mean():.4f}' for v in values.values())} | {p} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
