"""
Drugs and targets: four settings
================================

Which targets does a drug bind, and how strongly? The data are a table of drugs by targets. A model may be asked for a
missing entry of that table, for a new drug, for a new target, or for both. These are four different questions, and "how
good is it?" has four different answers.

Public affinity tables cannot be shipped; this one is generated so that features describe part of a drug and a target,
and the rest shows only in their other affinities. What we measured on Davis' kinases and on Yamanishi's sets is in the
:doc:`reproductions </reproductions/conditional>`: there, too, settings differ more than models do.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import ConditionalRankRLS, metrics
from rankrls.selection import RelationKFold

rng = np.random.default_rng(0)
hidden_drug, hidden_target = rng.normal(size=(40, 3)), rng.normal(size=(60, 3))
drugs = hidden_drug + 0.5 * rng.normal(size=hidden_drug.shape)  # what is known of them
targets = hidden_target + 0.5 * rng.normal(size=hidden_target.shape)
promiscuity = rng.normal(size=60)  # some targets bind whatever comes
affinity = np.tanh(0.5 * hidden_drug @ hidden_target.T) + 0.3 * promiscuity + 0.2 * rng.normal(size=(40, 60))

# %%
# ``evaluate`` holds out what is new in each setting, refits, and returns a value for each fold. Inside each training
# part ``alpha`` is chosen by hold-out as well. For comparison, the mean affinity of a target over the training drugs,
# which needs no features but exists only for known targets.

model = ConditionalRankRLS(kernel="rbf")
settings = {1: "missing entries", 2: "new drug", 3: "new target", 4: "both new"}
learned = {setting: scores.mean() for setting, scores in model.evaluate(drugs, affinity, targets, n_splits=3).items()}


def popularity(setting):
    """Pairwise accuracy of the column means of the training part."""
    scores = []
    for train, test in RelationKFold(setting, n_splits=3).split(affinity):
        truth, means = test.of(affinity), np.nanmean(train.of(affinity), axis=0)
        row, column = np.nonzero(~np.isnan(truth))
        scores.append(metrics.pairwise_accuracy(truth[row, column], means[column], row))
    return np.mean(scores)


popular = {setting: popularity(setting) for setting in (1, 2)}
for setting, name in settings.items():
    beside = f"popularity {popular[setting]:.3f}" if setting in popular else "a new target has no popularity"
    print(f"setting {setting}, {name:16} {learned[setting]:.3f}   {beside}")

# %%
figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
place = np.arange(4)
axis.bar(place - [0.2, 0.2, 0, 0], list(learned.values()), 0.4, label="ConditionalRankRLS")
axis.bar(place[:2] + 0.2, list(popular.values()), 0.4, label="popularity of the target")
axis.set_xticks(place, [f"{setting}: {name}" for setting, name in settings.items()])
axis.set(ylim=(0.5, 1), ylabel="pairwise accuracy", title="Hold out what will be new")
axis.legend()
plt.show()

# %%
# A score in setting 1 says nothing about setting 4. Which one counts depends on what the model is for:
# screening a new compound against known targets is setting 2.
#
# To rank targets for one new drug:

fitted = ConditionalRankRLS(kernel="rbf").fit(drugs[:35], affinity[:35], targets)
best = fitted.rank(drugs[38], targets, top=5)
print("first for drug 38:", best.ids, "true places:", np.argsort(np.argsort(-affinity[38]))[best.ids] + 1)
