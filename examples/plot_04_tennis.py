"""
Tennis: who beats whom
======================

"a beats b" is a *reciprocal* relation: f(a, b) = -f(b, a). One number per player (Elo) can express it only if it is
transitive. When styles matter, it is not: a may beat b, b beat c and c beat a. ``relation="reciprocal"`` learns f from
features of both players, even for players who have never met or never played.

The matches here are generated, with a strength, a style and noise; the ATP's results cannot be shipped. On those, with
features from the four years before, a Gaussian kernel predicted 65.0 % of the winners of 2017-2019 and Elo 63.2 %
(:doc:`reproductions </reproductions/conditional>`): expect a gain of that size, not of the size shown below.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankrls import ConditionalRankRLS

rng = np.random.default_rng(1)
n, known = 120, 80  # players, of whom the last 40 have not played yet
strength, style = rng.normal(size=n), rng.uniform(0, 2 * np.pi, n)
X = np.column_stack([strength, np.cos(style), np.sin(style)]) + 0.15 * rng.normal(size=(n, 3))

advantage = 0.8 * (strength[:, None] - strength) + 2.0 * np.sin(style[:, None] - style)
chance = 1 / (1 + np.exp(-advantage))

a = rng.integers(known, size=3000)
b = (a + rng.integers(1, known, size=3000)) % known
won = rng.random(3000) < chance[a, b]
print(f"{len(a)} matches of {known} players")

# %%
# Learn from the matches
# ----------------------
# ``fit_edges`` takes a list of edges, here matches, in which a pair may occur several times. 1 is a win, -1 a defeat.
# A constant feature lets a linear kernel represent a player's strength as such; a Gaussian one needs none.

edges, y = np.column_stack([a, b]), np.where(won, 1.0, -1.0)
model = ConditionalRankRLS(kernel="rbf", relation="reciprocal").fit_edges(X[:known], edges, y)
print(f"alpha = {model.alpha_:.3g} by folds of players")

# %%
# Elo for the same matches, for comparison. It knows nothing about players who have not played.

elo = np.zeros(n)
for i, j, win in zip(a, b, won, strict=True):
    change = 0.1 * (win - 1 / (1 + np.exp(elo[j] - elo[i])))
    elo[i], elo[j] = elo[i] + change, elo[j] - change


def right(scores, players):
    """The share of pairs of these players for which the likelier winner is predicted."""
    above = np.triu_indices(len(players), 1)
    truth = chance[np.ix_(players, players)][above] > 0.5
    return np.mean((scores[above] > 0) == truth)


old, new = np.arange(known), np.arange(known, n)
learned = model.predict(X)
print(
    f"known players: learned {right(learned[:known, :known], old):.3f}, Elo {right(elo[old, None] - elo[old], old):.3f}"
)
print(f"new players:   learned {right(learned[known:, known:], new):.3f}")

# %%
# A circle of three
# -----------------
# Players of equal strength whose styles are a third of a turn apart. No single ranking can express what the model
# says.

turn = 2 * np.pi * np.arange(3) / 3
three = np.column_stack([np.zeros(3), np.cos(turn), np.sin(turn)])
scores = model.predict(three)

figure, (left, right_axis) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
limit = np.abs(scores).max()
left.imshow(scores, cmap="RdBu", vmin=-limit, vmax=limit)
left.set_xticks(range(3), "abc")
left.set_yticks(range(3), "abc")
for i, j in np.argwhere(~np.eye(3, dtype=bool)):
    left.text(j, i, f"{scores[i, j]:+.2f}", ha="center", va="center", color="white")
left.set_title("The row beats the column (blue)")
i, j = np.triu_indices(len(new), 1)
right_axis.plot(chance[known:, known:][i, j], learned[known:, known:][i, j], ".", markersize=3)
right_axis.axhline(0, color="grey", linewidth=0.8)
right_axis.axvline(0.5, color="grey", linewidth=0.8)
right_axis.set(xlabel="true chance to win", ylabel="score", title="Pairs of players never seen")
plt.show()
