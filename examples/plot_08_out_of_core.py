"""
More data than memory
=====================

A linear model, or a kernel model with fixed basis points, needs only sums over queries from the data. So a file can be
read in blocks of whole queries, and the model of the blocks *is* the model of the whole, not an approximation. The same
sums can be subtracted: a query is un-learned exactly.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS
from rankrls.datasets import dump_letor, iter_letor, load_letor, make_search

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "train.txt"
dump_letor(make_search(1500, random_state=0), path)
print(f"{path.stat().st_size / 1e6:.1f} MB of LETOR text")

# %%
# In one call
# -----------
# ``fit`` takes the name of a file and reads it in blocks. ``alpha`` is chosen in a second pass, in which each query is
# left out as if all rows were in memory. Parquet, polars, DuckDB and others work the same way: :doc:`More rows than
# memory </scale>`.

chosen = RankRLS().fit(str(path))
print(f"alpha = {chosen.alpha_:.3g}, held-out pairwise accuracy {chosen.cv_scores_.max():.4f}")

# %%
# Block by block
# --------------
# The same by hand, for blocks that come from elsewhere or over time: ``iter_letor`` reads a number of rows at a time
# and never cuts a query. With ``alpha="auto"`` the first block would choose; here it is given.

streamed, new, scores, rows = RankRLS(alpha=100.0), make_search(200, random_state=1), [], []
for block in iter_letor(path, rows=2000):
    streamed.partial_fit(block.X, block.y, qid=block.qid)
    rows.append(len(block) + (rows[-1] if rows else 0))
    scores.append(streamed.score(new.X, new.y, qid=new.qid))

whole = load_letor(path)
at_once = RankRLS(alpha=100.0).fit(whole.X, whole.y, qid=whole.qid)
print(f"{len(rows)} blocks; largest difference of a weight from the fit of all rows at once: ", end="")
print(f"{np.abs(streamed.coef_ - at_once.coef_).max():.1e}")

# %%
# Un-learning
# -----------
# A user withdraws consent: these queries must leave no trace in the model.

gone = np.isin(whole.qid, [f"q{n:04d}" for n in range(100)])
streamed.forget(whole.X[gone], whole.y[gone], qid=whole.qid[gone])
never = RankRLS(alpha=100.0).fit(whole.X[~gone], whole.y[~gone], qid=whole.qid[~gone])
print(f"largest difference from a model that never saw them: {np.abs(streamed.coef_ - never.coef_).max():.1e}")

# %%
# What more rows bring
# --------------------

figure, axis = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
axis.plot(rows, scores, "o-")
axis.set(xlabel="rows read", ylabel="pairwise accuracy, new queries", title="One pass over a file")
plt.show()
folder.cleanup()
