"""
Search ranking
==============

A search log has queries, documents for each query, and grades of relevance. The task is an order within each query;
documents of different queries are never compared. A model that predicts grades spends part of its weights on just that,
the level of a query. RankRLS only looks at differences within a query.

The log is generated (:func:`rankrls.datasets.make_search`): 12 features of very different scale, 5 grades, queries of
1 to 105 documents.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS, metrics
from rankrls.datasets import make_search

data, new = make_search(300, random_state=0), make_search(200, random_state=1)
print(f"{len(data)} documents of {len(set(data.qid))} queries, {data.X.shape[1]} features")

# %%
# Fit
# ---
# ``alpha`` is chosen by the exact leave-query-out score of every value of a grid: 15 values times 300 queries are
# 4,500 models, none of which is fitted separately.

ranker = make_pipeline(StandardScaler(), RankRLS(scoring="ndcg@10"))
ranker.fit(data.X, data.y, rankrls__qid=data.qid)
model = ranker[-1]
print(f"alpha = {model.alpha_:.3g}, held-out ndcg@10 = {model.cv_scores_.max():.4f}")

# %%
# Compare
# -------
# Ridge regression of the grades, with its alpha chosen too, on queries that neither has seen. ``per_query`` returns a
# value for each query, and the paired test tells how often a difference this large occurs by chance.

regression = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 15))).fit(data.X, data.y)
scores = {"RankRLS": ranker.predict(new.X), "regression": regression.predict(new.X)}
for metric in ("pairwise_accuracy", "ndcg@10", "map"):
    values = {name: metrics.per_query(metric, new.y, s, new.qid) for name, s in scores.items()}
    means = ", ".join(f"{name} {np.nanmean(v):.4f}" for name, v in values.items())
    print(f"{metric:18} {means}, p = {metrics.randomisation_test(*values.values()):.1e}")

# %%
# The held-out curve, and the reasons
# -----------------------------------
# On the left, the leave-query-out score of every ``alpha``. On the right, why the first document of a query is above
# the second: a linear score is a sum, so the difference is a sum over features.

query = new.qid == "q0011"
order = np.argsort(-scores["RankRLS"][query])
scaled = ranker[0].transform(new.X[query])
why = model.explain(scaled[order[0]], scaled[order[1]])
largest = np.argsort(-np.abs(why))[:6][::-1]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogx(model.alphas_, model.cv_scores_, "o-")
left.axvline(model.alpha_, color="grey", linestyle=":")
left.set(xlabel="alpha", ylabel="ndcg@10, queries left out", title="Choice of alpha")
right.barh([data.feature_names[j] for j in largest], why[largest])
right.axvline(0, color="grey", linewidth=0.8)
right.set(xlabel="contribution to the difference of scores", title="Why the first is first")
plt.show()
