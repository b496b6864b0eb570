"""
Hybrid search from TREC runs
============================

Three retrievers, each with its own scale of scores, and judgments of some documents. What weights should they have?
"""

# %%
# Runs and judgments
# ------------------
# TREC run files are read by `fusion.Runs.of({"bm25": "bm25.run", ...})`, judgments by `clicks.read_judgments`. Here
# both are generated, and written to files first.
import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np

from rankrls import clicks, fusion
from rankrls.datasets import to_trec_run

generated, judged = fusion.make_runs(150, random_state=0)
with tempfile.TemporaryDirectory() as folder:
    files = {}
    for name, scores in zip(generated.names, generated.scores.T, strict=True):
        known = ~np.isnan(scores)
        files[name] = pathlib.Path(folder, f"{name}.run")
        files[name].write_text(to_trec_run(scores[known], generated.query[known], generated.document[known], tag=name))
    judged.save(pathlib.Path(folder, "judged.qrels"))
    runs = fusion.Runs.of(files)
    judgments = clicks.read_judgments(pathlib.Path(folder, "judged.qrels"))
print(runs)

# %%
# Weights, and what they are worth
# --------------------------------
# Learned weights are judged on queries that were left out, exactly.
model = fusion.Fusion().fit(runs, judgments)
print(model)

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].barh(model.names_, model.weights_, xerr=model.weight_errors_)
axes[0].set(xlabel="weight")
rows = model.table_[::-1]
axes[1].barh([row.name for row in rows], [row.score for row in rows], xerr=[row.error for row in rows])
axes[1].set(xlabel="NDCG@10", xlim=(0.5, 1))
plt.show()

# %%
# Into the engine
# ---------------
print(fusion.export(model, "opensearch"))
