"""
Ten of 136 features
===================

Every feature of a search engine costs something at serving time. :class:`rankrls.RankingPursuit` adds one feature at a
time, always the one that lowers the loss most when all weights are refitted, so one run gives the models of every size.
Here there are 136 features, as in the MSLR sets, of which 12 carry information (:func:`rankrls.datasets.make_search`
with 124 columns of noise).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from rankrls import RankingPursuit, RankRLS, metrics
from rankrls.datasets import make_search

data, new = make_search(120, n_noise=124, random_state=0), make_search(200, n_noise=124, random_state=1)
scaler = StandardScaler().fit(data.X)
X, X_new = scaler.transform(data.X), scaler.transform(new.X)
print(f"{len(data)} documents of {len(set(data.qid))} queries, {X.shape[1]} features")

# %%
# One run, every size. The size is chosen by five folds of whole queries, each with a path of its own.

pursuit = RankingPursuit(kernel=None, max_basis=40).fit(X, data.y, qid=data.qid)
print(f"chosen size: {pursuit.n_basis_}")
ten = pursuit.resized(10)  # nothing is fitted
for place, j in enumerate(ten.basis_indices_, start=1):
    print(f"{place:2} {data.feature_names[j]:18} {ten.coef_[j]:+.3f}")

# %%
# How much do the other 126 bring? On queries that no model has seen:

everything = RankRLS().fit(X, data.y, qid=data.qid)
path = metrics.pairwise_accuracy(new.y, pursuit.predict_path(X_new), new.qid)
full = everything.score(X_new, new.y, qid=new.qid)
print(f"ten features {path[9]:.4f}, all {X.shape[1]} with the best alpha {full:.4f}")

figure, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
sizes = np.arange(1, len(path) + 1)
axis.plot(sizes, pursuit.path_.scores, "o-", markersize=3, label="pursuit, queries held out")
axis.plot(sizes, path, "s-", markersize=3, label="pursuit, new queries")
axis.axhline(full, color="grey", linestyle=":", label="RankRLS, all features, new queries")
axis.axvline(10, color="grey", linewidth=0.8)
axis.set(xlabel="features", ylabel="pairwise accuracy", title="Every size from one run")
axis.legend()
plt.show()

# %%
# Other sets of ten
# -----------------
# A feature may be expensive, or gone tomorrow. ``alternatives`` returns models of the same size with other features,
# whose training loss is at most 5 % above that of this model.

for other in ten.alternatives(3):
    gone = set(ten.basis_indices_) - set(other.basis_indices_)
    instead = set(other.basis_indices_) - set(ten.basis_indices_)
    score = other.score(X_new, new.y, qid=new.qid)
    print(
        f"{score:.4f} without {', '.join(data.feature_names[j] for j in gone)}, "
        f"with {', '.join(data.feature_names[j] for j in instead)}"
    )
