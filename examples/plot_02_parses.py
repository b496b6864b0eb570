"""
Re-ranking parses
=================

A parser returns several candidate parses of a sentence; a ranker should put the best first. The label of a parse is how
much of it is right, a number between 0 and 1. What makes this number large or small is mostly the *sentence*: short
sentences are parsed well, whichever the candidate. A regression of the label learns that, which is of no use, as all
candidates belong to the same sentence.

The treebank used for the :doc:`reproduction of the paper's table </reproductions/letor>` (GENIA, tau-b .434 by
regression and .488 by RankRLS) cannot be shipped, so this script generates data with the same important property:
71 % of the variance of the labels is between sentences, as measured there. Its figures say nothing about real parsers.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import RankRLS, metrics

LINKS = ["subject", "object", "modifier", "preposition", "determiner", "conjunction", "clause", "punctuation"]


def sentences(n, rng):
    """Candidate parses: counts of link types, an F1 score, and the sentence of each."""
    sizes = rng.integers(2, 21, n)
    sentence = np.repeat(np.arange(n), sizes)
    length = rng.integers(8, 45, n)[sentence]
    X = rng.poisson(length[:, None] * rng.dirichlet(np.full(len(LINKS), 3.0), len(sentence)))
    share = X / length[:, None]  # what tells a good parse from a bad one
    quality = 2.0 * share @ [1.0, 0.8, -1.0, 0.5, 0.2, -0.8, -0.6, 0.0] + 0.25 * rng.normal(size=len(sentence))
    difficulty = -0.06 * length + 0.35 * rng.normal(size=n)[sentence]
    f1 = 1 / (1 + np.exp(-(quality + difficulty + 1.8)))
    return np.column_stack([X, share]), f1, sentence


rng = np.random.default_rng(0)
X, y, sentence = sentences(300, rng)
X_new, y_new, sentence_new = sentences(300, rng)
means = np.array([y[sentence == s].mean() for s in range(300)])
print(f"{len(y)} parses; {means[sentence].var() / y.var():.0%} of the variance of F1 is between sentences")

# %%
# Regression, ranking, and in between
# -----------------------------------
# ``regression`` is the share of plain squared error in the loss. At 1 the model is ridge regression, at 0 it is
# RankRLS. Each chooses its own ``alpha`` by exact leave-sentence-out of Kendall's tau-b.

shares = [0.0, 0.25, 0.5, 0.75, 1.0]
tau = []
for share in shares:
    model = RankRLS(regression=share, scoring="kendall_tau_b").fit(X, y, qid=sentence)
    tau.append(metrics.kendall_tau_b(y_new, model.predict(X_new), sentence_new))
    print(f"regression={share:<5} tau-b on new sentences {tau[-1]:.3f}")

figure, axis = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
axis.plot(shares, tau, "o-")
axis.set(
    xlabel="share of regression in the loss", ylabel="tau-b, new sentences", title="Only differences are asked for"
)
plt.show()

# %%
# A calibrated score costs some of the order. Use ``regression=0`` unless somebody will read the scores as values.
