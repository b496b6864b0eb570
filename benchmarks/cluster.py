"""A fit on a local cluster of two processes, compared with the same fit in memory: seconds, and bytes sent.

    python -m benchmarks.cluster [--rows 1000000] [--folder FOLDER] [--spark]

Rows are first written to a folder of Parquet files, once with queries one after the other and once scattered.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankrls import RankRLS, distributed

COLUMNS, FILES, PER_QUERY = 136, 16, 100


def write(folder, rows, scattered):
    """Files of float32 features, grades and query ids."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    w = rng.normal(size=COLUMNS).astype(np.float32)
    n_queries = max(2, rows // PER_QUERY)
    for k in range(FILES):
        m = rows // FILES
        start = k * m
        qid = rng.integers(0, n_queries, m) if scattered else (start + np.arange(m)) // PER_QUERY
        X = rng.normal(size=(m, COLUMNS)).astype(np.float32)
        y = np.clip(np.round(X @ w / 10 + rng.normal(size=m)), 0, 4)
        columns = {f"f{i}": X[:, i] for i in range(COLUMNS)} | {"y": y, "qid": qid}
        pq.write_table(pa.table(columns), folder / f"{k:03}.parquet", compression="zstd")


def count_bytes():
    """Count what this process sends from now on."""
    from distributed.comm.tcp import TCP

    plain, TCP.sent = TCP.write, 0

    async def counting(self, *args, **options):
        n = await plain(self, *args, **options)
        TCP.sent += n
        return n

    TCP.write = counting


def bytes_here():
    from distributed.comm.tcp import TCP

    return TCP.sent


def in_memory(folder, alpha):
    import pandas as pd

    start = time.perf_counter()
    frame = pd.read_parquet(folder)
    X, y, qid = frame.drop(columns=["y", "qid"]).to_numpy(np.float32), frame["y"].to_numpy(), frame["qid"].to_numpy()
    read = time.perf_counter()
    model = RankRLS(alpha).fit(X, y, qid=qid)
    return model, read - start, time.perf_counter() - read


def on_dask(client, folder, alpha):
    import dask.dataframe as dd

    total = lambda: bytes_here() + sum(client.run(bytes_here).values())
    before, start = total(), time.perf_counter()
    model = distributed.dask.fit(RankRLS(alpha), dd.read_parquet(folder))
    return model, time.perf_counter() - start, total() - before


def on_spark(session, folder, alpha):
    start = time.perf_counter()
    model = distributed.spark.fit(RankRLS(alpha), session.read.parquet(str(folder)))
    return model, time.perf_counter() - start


def spark_session():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "3g").config("spark.ui.showConsoleProgress", "false")
    return builder.config("spark.driver.host", "127.0.0.1").getOrCreate()


def main():
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "rankrls-cluster")
    parser.add_argument("--spark", action="store_true")
    options = parser.parse_args()
    folders = {}
    for order in ("in order", "scattered"):
        folders[order] = options.folder / f"{options.rows}-{order.replace(' ', '-')}"
        write(folders[order], options.rows, order == "scattered")
    count_bytes()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.run(count_bytes)
        on_dask(client, folders["in order"], 1.0)  # imports
        for order, folder in folders.items():
            for alpha in (1.0, "auto"):
                local, read, fitted = in_memory(folder, alpha)
                model, seconds, moved = on_dask(client, folder, alpha)
                off = abs(model.coef_ - local.coef_).max() / abs(local.coef_).max()
                print(
                    f"{order}, alpha={alpha}: in memory {read:.1f} s (reading) + {fitted:.1f} s, "
                    f"Dask {seconds:.1f} s, {moved / 1e6:.1f} MB sent; coefficients differ by {off:.0e}",
                    flush=True,
                )
    if options.spark:
        session = spark_session()
        on_spark(session, folders["in order"], 1.0)
        for order, folder in folders.items():
            for alpha in (1.0, "auto"):
                print(f"{order}, alpha={alpha}: Spark {on_spark(session, folder, alpha)[1]:.1f} s", flush=True)
        session.stop()


if __name__ == "__main__":
    main()
