"""
Learning from clicks
====================

A search engine shows a bad ranking, and its log is all there is to learn from. Clicks follow positions more than
relevance. This example simulates such a log, learns from it in three ways, and compares with the true labels, which a
real log does not have.
"""

# %%
# A log
# -----
# Documents are shown in ascending order of a feature. Readers look at position k with probability 1 / k.
import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS, clicks, metrics
from rankrls.datasets import make_search

train, test = make_search(300, random_state=0), make_search(200, random_state=1)
log = clicks.simulate(train.y, train.qid, scores=-train.X[:, 0], sessions=10, random_state=0)
print(log)

# %%
# Three ways to learn from it
# ---------------------------
models = {
    method: clicks.ClickRanker(method=method).fit(train.X, log, qid=train.qid)
    for method in ("naive", "propensities", "positions")
}
models["true labels"] = RankRLS().fit(train.X, train.y, qid=train.qid)
quality = {name: metrics.ndcg(test.y, model.predict(test.X), test.qid, k=10) for name, model in models.items()}
for name, value in quality.items():
    print(f"{name:13} NDCG@10 {value:.3f}")

# %%
# What positions do
# -----------------
# The additive model says how many clicks per impression each position costs.
places = np.arange(1, 11)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].barh(list(quality), list(quality.values()))
axes[0].set(xlabel="NDCG@10 on new queries", xlim=(min(quality.values()) - 0.05, 1))
axes[1].plot(places, models["positions"].position_effects_, marker="o")
axes[1].set(xlabel="position", ylabel="effect on the rate of clicks")
plt.show()
