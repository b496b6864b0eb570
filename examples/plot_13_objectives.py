"""
Several objectives, and an editor's wishes
==========================================

Relevance against freshness: one fit contains every mix of the two. Then an editor prefers one document to another, and
a weight must not be negative.
"""

# %%
# Two targets, one fit
# --------------------
import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS
from rankrls.datasets import make_search
from rankrls.plotting import TradeOffDisplay

data = make_search(120, random_state=0)
age = data.X[:, data.feature_names.index("freshness_days")]
Y = np.column_stack([data.y, -age])
model = RankRLS(tied_pairs=True).fit(data.X, Y / Y.std(axis=0), qid=data.qid)

# %%
# What each mix is worth, on queries that were left out:
TradeOffDisplay.from_predictions(Y, model.cv_predictions_, data.qid, names=["grade", "freshness"])
plt.show()

# %%
# A model from the curve
# ----------------------
mixed = model.mix([0.7, 0.3])
print("weights of the mix:", dict(zip(data.feature_names, mixed.coef_.round(3).tolist(), strict=True)))

# %%
# An editor's wish
# ----------------
# One document of the first query belongs above another. The weights change by a rank-one update of the sums; held-out
# scores are updated when a query is added.
scores = mixed.predict(data.X[:10])
low, high = int(scores.argmin()), int(scores.argmax())
mixed.add_pairs(data.X, [[low, high]], margins=[0.1], exact=True)
after = mixed.predict(data.X[:10])
print(f"difference before {scores[low] - scores[high]:+.2f}, after {after[low] - after[high]:+.2f}")

# %%
# Signs
# -----
# Fresher is never worse, spam never better:
signs = {"freshness_days": -1, "spam_score": -1}
columns = {data.feature_names.index(name): sign for name, sign in signs.items()}
signed = RankRLS(positive=columns).fit(data.X, data.y, qid=data.qid)
print({name: round(float(signed.coef_[j]), 4) for name, j in zip(signs, columns, strict=True)})
