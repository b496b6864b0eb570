"""
Scores for the queries at hand
==============================

:class:`rankrls.TransductiveRankRLS` gives scores to queries that have none, such that the leave-query-out error over
*all* queries is small, and pulls these scores towards those of a RankRLS of the scored queries, with a weight
``fidelity``.

It is in closed form, it is what the paper describes, and **where we compared it did not rank better than RankRLS**
(144 comparisons, :doc:`none better and 20 worse </reproductions/transductive>`). The data are scikit-learn's
diabetes study, cut into queries by sex and five years of age: within such a group, whose disease progresses most?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from rankrls import RankRLS, TransductiveRankRLS, metrics

X, progression = load_diabetes(return_X_y=True, scaled=False)
X = (X - X.mean(axis=0)) / X.std(axis=0)
age, sex = load_diabetes(scaled=False).data[:, :2].T
group = 2 * (age // 5).astype(int) + (sex == 1)
y = (progression - progression.mean()) / progression.std()
print(f"{len(y)} patients, {len(set(group))} groups")

# %%
# Six groups are scored; the others are what we want to rank now. NaN means "not scored", for whole queries.

fidelities = [0.01, 0.1, 1.0, 10.0, 100.0]
gains = []
for seed in range(12):
    scored = np.isin(group, np.random.default_rng(seed).permutation(np.unique(group))[:6])
    plain = RankRLS(tied_pairs=True).fit(X[scored], y[scored], qid=group[scored])
    base = metrics.pairwise_accuracy(y[~scored], plain.predict(X[~scored]), group[~scored])
    line = []
    for fidelity in fidelities:
        model = TransductiveRankRLS(plain.alpha_, fidelity).fit(X, np.where(scored, y, np.nan), qid=group)
        line.append(metrics.pairwise_accuracy(y[~scored], model.transduction_[~scored], group[~scored]) - base)
    gains.append(line)
gains = np.array(gains)
for fidelity, gain in zip(fidelities, gains.T, strict=True):
    print(f"fidelity {fidelity:6}: gain {gain.mean():+.4f} +- {gain.std() / np.sqrt(len(gain)):.4f}")

# %%
# The smaller the fidelity, the further the learned scores are from those of RankRLS; the ranking hardly changes.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogx(fidelities, gains.T, color="C0", alpha=0.3)
left.semilogx(fidelities, gains.mean(axis=0), "o-", color="C0")
left.axhline(0, color="grey", linewidth=0.8)
left.set(xlabel="fidelity", ylabel="gain in pairwise accuracy", title="Against RankRLS, 12 draws")
for fidelity in (0.01, 1.0):
    model = TransductiveRankRLS(plain.alpha_, fidelity).fit(X, np.where(scored, y, np.nan), qid=group)
    right.plot(plain.predict(X[~scored]), model.transduction_[~scored], ".", label=f"fidelity {fidelity}")
right.set(xlabel="score by RankRLS", ylabel="score by transduction", title="The last draw")
right.legend()
plt.show()
