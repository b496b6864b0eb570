"""
How sure is a ranking, and what to ask next?
============================================

A model of few judged queries. Which of its orders can be trusted, and which pairs of documents should be judged next?
"""

# %%
# Probabilities that mean what they say
# -------------------------------------
# The model gives a probability for the order of two documents. On new queries we count how often it is right.
import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS, metrics
from rankrls.datasets import make_search

data, new = make_search(120, random_state=0), make_search(100, random_state=1)
few = data.qid < "q0040"
model = RankRLS().fit(data.X[few], data.y[few], qid=data.qid[few])

rng = np.random.default_rng(0)
a, b = rng.integers(0, len(new.y), (2, 200_000))
keep = (new.qid[a] == new.qid[b]) & (new.y[a] > new.y[b])
a, b = a[keep], b[keep]  # a belongs above b
p = model.probability_above(new.X[a], new.X[b])
sure = np.maximum(p, 1 - p)
for low in (0.5, 0.6, 0.7, 0.8, 0.9):
    there = (sure >= low) & (sure < low + 0.1)
    right = np.mean(p[there] > 0.5)
    print(f"said to be {low:.0%} to {low + 0.1:.0%} sure: {right:.0%} of {there.sum()} pairs are right")

# %%
# Where could each document stand?
# --------------------------------
# The documents of one query by score, with the ranks they have with a probability of 80 %.
rows = np.flatnonzero(new.qid == new.qid[0])
rows = rows[np.argsort(-model.predict(new.X[rows]))][:12]
ranks = np.arange(1, len(rows) + 1)
best, worst = model.rank_interval(new.X[rows], level=0.8).T
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].errorbar(ranks, ranks, yerr=[ranks - best, worst - ranks], fmt="o", capsize=3)
axes[0].invert_yaxis()
axes[0].set(xlabel="documents by score", ylabel="rank", title="80 % intervals of ranks")

# %%
# What to ask next
# ----------------
# `next_pairs` names pairs whose order is uncertain and would tell most about the weights. We start with eight judged
# queries. An editor answers 20 questions at a time, and `add_pairs` takes the answers. For comparison: random pairs of
# a query. Both are evaluated on the new queries; the means of six starts are shown.


def at_random(learner, X, qid, n):
    first = rng.choice(len(qid), n, replace=False)
    return np.array([(i, rng.choice(np.flatnonzero((qid == qid[i]) & (np.arange(len(qid)) != i)))) for i in first])


def asked(choose, start, rounds=7):
    pool = make_search(200, random_state=10 + start)
    judged = np.isin(pool.qid, np.unique(pool.qid)[:8])
    learner = RankRLS(alphas=[30.0]).fit(pool.X[judged], pool.y[judged], qid=pool.qid[judged])
    left, curve = np.flatnonzero(~judged), []
    for _ in range(rounds):
        curve.append(metrics.pairwise_accuracy(new.y, learner.predict(new.X), new.qid))
        pairs = left[choose(learner, pool.X[left], pool.qid[left], 20)]
        left = np.setdiff1d(left, pairs)
        i, j = pairs[pool.y[pairs[:, 0]] != pool.y[pairs[:, 1]]].T  # of equal grades there is nothing to say
        better, other = np.where(pool.y[i] > pool.y[j], [i, j], [j, i])
        learner.add_pairs(pool.X, np.column_stack([better, other]), margins=np.abs(pool.y[i] - pool.y[j]))
    return curve


for name, choose in (("next_pairs", RankRLS.next_pairs), ("at random", at_random)):
    curve = np.mean([asked(choose, start) for start in range(6)], axis=0)
    axes[1].plot(20 * np.arange(len(curve)), curve, marker="o", label=name)
    print(f"{name:11} pairwise accuracy {curve[0]:.3f} at first, {curve[-1]:.3f} after 120 questions")
axes[1].set(xlabel="questions", ylabel="pairwise accuracy on new queries")
axes[1].legend()
plt.show()
