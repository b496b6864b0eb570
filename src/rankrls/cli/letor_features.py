"""--exclude and --columns for LETOR text, whose features have numbers, or the names of --feature-names."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..datasets import RankingData
from .options.parser import did_you_mean


def chosen_features(data: RankingData, args: Namespace) -> RankingData:
    """The data with zeros for features that are left out, so that the others keep their numbers."""
    if args.columns is None and not args.exclude:
        return data
    n, first = data.X.shape[1], 0 if args.zero_based else 1
    place = {f"{letter}{i + first}": i for letter in ("f", "") for i in range(n)}
    place |= {name: i for i, name in enumerate(args.feature_names or ())}
    kept = np.full(n, args.columns is None)
    kept[_places(args, "columns", place, n)] = True
    kept[_places(args, "exclude", place, n)] = False
    return replace(data, X=_zeroed(data.X, kept))


def _places(args: Namespace, option: str, place: dict[str, int], n: int) -> list[int]:
    names = getattr(args, option) or ()
    for name in names:
        if name not in place:
            hint = did_you_mean(name, args.feature_names or ()) or f"; there are {n} features"
            raise ValueError(f"--{option} {name}: there is no such feature{hint}")
    return [place[name] for name in names]


def _zeroed(X: Any, kept: np.ndarray) -> Any:
    if not sparse.issparse(X):
        return np.where(kept, X, 0.0)  # NaN too
    X = sparse.csr_array(X)
    X.data = np.where(kept[X.indices], X.data, 0.0)
    X.eliminate_zeros()
    return X
