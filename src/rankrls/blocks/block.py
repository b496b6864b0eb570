"""A block: some rows of the data. The rows of one query may lie in several blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

WIDEST = 64  # longer query ids are stored as objects, not in a fixed-width array


@dataclass(frozen=True)
class Block:
    """Some rows; those of a query may be in several blocks."""

    X: Any  # (k, n); None where only labels are read
    y: np.ndarray  # (k, t)
    qid: np.ndarray  # (k,)
    weights: np.ndarray | None = None  # (k,)
    where: str = ""  # start of error messages

    @property
    def unscored(self) -> np.ndarray:
        """(k,) True where a row has no score."""
        return np.isnan(self.y).any(axis=1)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> Block:
        """A subset of the rows, without a copy if they are adjacent."""
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
            rows = slice(int(rows[0]), int(rows[-1]) + 1)  # type: ignore[assignment]
        X = None if self.X is None else self.X[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Block(X, self.y[rows], self.qid[rows], weights, self.where)

    @classmethod
    def join(cls, blocks: Sequence[Block]) -> Block:
        """The rows of several blocks one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        stack = sparse.vstack if sparse.issparse(blocks[0].X) else np.concatenate
        weights = None
        if any(b.weights is not None for b in blocks):
            weights = np.concatenate([np.ones(len(b)) if b.weights is None else b.weights for b in blocks])
        X: Any = stack([b.X for b in blocks])
        X = X.tocsr() if sparse.issparse(X) else X
        return cls(X, np.concatenate([b.y for b in blocks]), np.concatenate([b.qid for b in blocks]), weights)


def as_labels(qid: np.ndarray) -> np.ndarray:
    """Query ids in a form that sorts and compares fast: text as fixed-width characters, unless some ids are long."""
    if qid.dtype == object and len(qid) and all(isinstance(q, str) and len(q) <= WIDEST for q in qid.tolist()):
        return qid.astype(str)
    return qid
