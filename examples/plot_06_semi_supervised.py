"""
Few scores, many rows: two views that agree
===========================================

Scores are expensive, rows are not. :class:`rankrls.CoRankRLS` learns a ranker from each of several *views* of a row and
asks them to agree on the rows without a score. That can only help if the views are different descriptions, each nearly
sufficient, so that they err in different places.

The data are made that way: three queries are scored and 197 are not; a row is described twice, and each description
mixes what matters with much that varies for other reasons. On parses and on ratings we found hardly any gain
(:doc:`reproductions </reproductions/corankrls>`); try :class:`rankrls.RankRLS` first.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import CoRankRLS, RankRLS, View

mix = np.random.default_rng(7)
SHARED, OWN = mix.normal(size=(2, 3, 20)), mix.normal(size=(2, 12, 20))


def two_descriptions(n_queries, rng):
    """20 columns and 20 columns: three numbers that matter, in both, and twelve others in each."""
    qid = np.repeat(np.arange(n_queries), 10)
    hidden = rng.normal(size=(len(qid), 3))
    parts = [
        hidden @ shared + rng.normal(size=(len(qid), 12)) @ own + 0.3 * rng.normal(size=(len(qid), 20))
        for shared, own in zip(SHARED, OWN, strict=True)
    ]
    return np.column_stack(parts), hidden @ [1.0, -0.7, 0.5] + 0.3 * rng.normal(size=len(qid)), qid


views = [View(columns=slice(0, 20)), View(columns=slice(20, 40))]

# %%
# Ten draws of the data. We compare RankRLS on the scored rows; the mean of two views that do not have to agree
# (``nu=0``), which separates averaging from agreement; and CoRankRLS with ``nu`` chosen by leave-query-out.

models = {
    "RankRLS, all columns": RankRLS(),
    "two views, nu = 0": CoRankRLS(nu=0.0, views=views),
    "CoRankRLS": CoRankRLS(views=views),
}
results = {name: [] for name in models}
for seed in range(10):
    rng = np.random.default_rng(seed)
    X, y, qid = two_descriptions(200, rng)
    X_new, y_new, qid_new = two_descriptions(100, rng)
    partly = np.where(qid < 3, y, np.nan)  # NaN: not scored
    for name, model in models.items():
        if isinstance(model, CoRankRLS):
            model.fit(X, partly, qid=qid)
        else:
            model.fit(X[qid < 3], y[qid < 3], qid=qid[qid < 3])
        results[name].append(model.score(X_new, y_new, qid=qid_new))
for name, scores in results.items():
    print(f"{name:22} {np.mean(scores):.4f} +- {np.std(scores) / np.sqrt(len(scores)):.4f}")

# %%
# Two thirds of the gain need no unscored rows: two small models that are averaged do better than one large one.
# Without the row for ``nu=0`` this would be credited to the unscored rows.
#
# The held-out scores of the last draw: a row for each ``nu``, a column for each ``alpha``.

last = models["CoRankRLS"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
image = left.imshow(last.cv_scores_, aspect="auto", origin="lower")
left.set_xticks(range(0, 15, 4), [f"{alpha:.1g}" for alpha in last.alphas_[::4]])
left.set_yticks(range(len(last.nus_)), [f"{nu:.1g}" for nu in last.nus_])
left.set(xlabel="alpha", ylabel="nu", title="Pairwise accuracy, queries left out")
figure.colorbar(image)
right.plot(np.array(list(results.values())), "o-", color="C0", alpha=0.4)
right.set_xticks(range(3), ["RankRLS", "nu = 0", "CoRankRLS"])
right.set(ylabel="pairwise accuracy", title="Ten draws, new queries")
plt.show()
