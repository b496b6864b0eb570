"""RankRLS with the papers' penalty, the sum of squared weights, which the oracles also use."""

import rankrls


def RankRLS(alpha="auto", *, scale=None, **params):
    return rankrls.RankRLS(alpha, scale=scale, **params)
