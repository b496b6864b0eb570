"""RankRLS with the penalty of the papers, the sum of squared weights, which the oracles have."""

import rankrls


def RankRLS(alpha="auto", *, scale=None, **params):
    return rankrls.RankRLS(alpha, scale=scale, **params)
