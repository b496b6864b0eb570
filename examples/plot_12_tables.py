"""
A shop's table, as it is
========================

Prices with gaps, brands, flags and dates: how each column is encoded, what it contributes, and why one offer is above
another. The table is generated.
"""

# %%
# The table
# ---------
import numpy as np
import pandas as pd

from rankrls import RankRLS, TableEncoder, metrics

rng = np.random.default_rng(0)
m = 3000
brands = rng.choice([f"brand {i}" for i in range(60)], m)
worth = dict(zip(np.unique(brands), rng.normal(size=60), strict=True))
offers = pd.DataFrame(
    {
        "price": rng.lognormal(3, 1, m).round(2),
        "brand": brands,
        "colour": rng.choice(["red", "blue", "green", None], m),
        "in_stock": rng.random(m) < 0.7,
        "listed": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, m), "D"),
    }
)
query = rng.integers(0, 200, m)
liked = [worth[b] for b in brands] - np.log(offers["price"]) + offers["in_stock"] + rng.normal(size=m)
grade = np.clip(np.round(liked + 4), 0, 4)
offers.loc[rng.random(m) < 0.15, "price"] = np.nan
print(offers.head(3))

# %%
# Encoded, learned, judged
# ------------------------
# A brand becomes one column: its mean grade over *other* queries. For comparison, two ways to do without the encoder.
train = query < 140
encoder = TableEncoder()
A = encoder.fit_transform(offers[train], grade[train], query[train])
model = RankRLS().fit(A, grade[train], qid=query[train])
print(encoder.get_feature_names_out())

numbers = offers[["price", "in_stock"]].astype(float).fillna(offers["price"].median())
plain = RankRLS().fit(numbers[train], grade[train], qid=query[train])
for name, scores in (
    ("numbers alone", plain.predict(numbers[~train])),
    ("the whole table", model.predict(encoder.transform(offers[~train]))),
):
    print(f"{name:16} NDCG@10 {metrics.ndcg(grade[~train], scores, query[~train], k=10):.3f}")

# %%
# Why is this one above that one?
# -------------------------------
a, b = encoder.transform(offers[~train][:2])
for column, share in encoder.inverse(model.explain(a, b)).items():
    print(f"{column:10} {share:+.3f}")

# %%
# Which pairs of offers would be worth a judgment?
# ------------------------------------------------
new = encoder.transform(offers[~train])
for i, j in model.next_pairs(new, query[~train], n=2):
    p = model.probability_above(new[[i]], new[[j]])[0]
    print(f"offers {i} and {j}: the first belongs above with probability {p:.2f}")
