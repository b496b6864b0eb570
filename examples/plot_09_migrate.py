"""
Coming from RankSVM or LightGBM
===============================

The same data in three dialects, and the results. These are the differences in the calls:

================  ============================  ============================================
LightGBM          RankSVM                       rankrls
================  ============================  ============================================
``group=[5, 3]``  ``qid:1`` in the file         ``qid=``, any labels, rows in any order
integer grades    order only                    any real numbers; differences count
``num_leaves``    ``-c``                        ``alpha``, chosen by exact leave-query-out
early stopping    none                          not needed: nothing iterates
``eval_at=[10]``  none                          ``scoring="ndcg@10"``
================  ============================  ============================================

:doc:`The command line page </cli>` has the options of SVMrank one by one.
"""

import itertools
import time

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from rankrls import RankRLS, metrics, qid_from_group
from rankrls.datasets import make_search


def rank_svm(X, y, group, C=0.01):
    """A linear RankSVM: a classifier without intercept on the differences of all pairs with different labels."""
    start = np.cumsum([0, *group])
    pairs = []
    for i, j in itertools.pairwise(start):
        better, worse = np.nonzero(y[i:j, None] > y[i:j])
        pairs.append(X[i + better] - X[i + worse])
    D = np.concatenate(pairs)
    sign = np.where(np.arange(len(D)) % 2, 1, -1)  # both classes, as many
    svm = LinearSVC(C=C, fit_intercept=False).fit(D * sign[:, None], sign)
    return lambda X: X @ svm.coef_[0]


def trees(X, y, group):
    """LightGBM's ranker, with rounds chosen on the last fifth of the queries."""
    cut = len(group) * 4 // 5
    rows = sum(group[:cut])
    train = lightgbm.Dataset(X[:rows], y[:rows], group=group[:cut])
    judge = lightgbm.Dataset(X[rows:], y[rows:], group=group[cut:], reference=train)
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "learning_rate": 0.05, "num_leaves": 8}
    stop = lightgbm.early_stopping(30, verbose=False)
    ranker = lightgbm.train({**parameters, "verbose": -1}, train, 300, valid_sets=[judge], callbacks=[stop])
    return ranker.predict


def rls(X, y, group):
    """RankRLS: ``qid_from_group`` turns group sizes into query ids."""
    return RankRLS(scoring="ndcg@10").fit(X, y, qid=qid_from_group(group)).predict


def gaussian(X, y, group):
    """RankRLS with a Gaussian kernel on 300 basis points, its width chosen with alpha."""
    model = RankRLS(kernel="rbf", basis=300, scoring="ndcg@10", random_state=0)
    return model.fit(X, y, qid=qid_from_group(group)).predict


# %%
# Two data sets
# -------------
# One in which relevance is nearly linear in the features, and one in which it is not: what counts is whether two
# features are both high or both low, which no linear model can express and trees find easily.


def linear_data(seed):
    data = make_search(250, random_state=seed)
    return StandardScaler().fit_transform(data.X), data.y, np.unique(data.qid, return_counts=True)[1]


def interactions(seed):
    rng = np.random.default_rng(seed)
    group = np.full(250, 20)
    X = rng.normal(size=(group.sum(), 12))
    relevance = 1.5 * (X[:, 0] * X[:, 1] > 0) + (X[:, 2] > 0.5) * X[:, 3] + 0.5 * rng.normal(size=len(X))
    return X, np.digitize(relevance, [0, 1, 2, 3]).astype(float), group


methods = {"RankSVM": rank_svm, "LightGBM": trees, "RankRLS": rls, "RankRLS, Gaussian": gaussian}
table = np.zeros((len(methods), 2))
for column, (name, make) in enumerate({"nearly linear": linear_data, "interactions": interactions}.items()):
    X, y, group = make(0)
    X_new, y_new, group_new = make(1)
    for line, (method, fit) in enumerate(methods.items()):
        begin = time.perf_counter()
        predict = fit(X, y, group)
        seconds = time.perf_counter() - begin
        table[line, column] = metrics.ndcg(y_new, predict(X_new), qid_from_group(group_new), k=10)
        print(f"{name:14} {method:18} ndcg@10 {table[line, column]:.4f}   {seconds:5.2f} s")

# %%
figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
place = np.arange(2)
for line, method in enumerate(methods):
    axis.bar(place + 0.2 * (line - 1.5), table[line], 0.18, label=method)
axis.set_xticks(place, ["nearly linear", "interactions"])
axis.set(ylim=(0.5, 1), ylabel="ndcg@10, new queries", title="Where trees win, and where they do not")
axis.legend(loc="lower left", ncols=2, fontsize=8)
plt.show()

# %%
# Where relevance depends on thresholds and interactions of raw features, trees are the right tool, and a kernel goes
# part of the way. Where features are engineered to be monotone in relevance, a linear model is as good, is fitted in a
# fraction of the time, and can be read. :doc:`How it compares </comparison>` has measurements on public data.
