"""Items of any kind instead of rows of numbers: strings, sequences, graphs, anything a kernel can compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .types import DTypeLike, Matrix


class Items:
    """m objects with the shape (m, 1), so that they can be indexed like rows.

    Examples
    --------
    >>> items = Items(["a", "b", "c"])
    >>> items.shape, items[np.array([2, 0])].tolist()
    ((3, 1), ['c', 'a'])
    """

    ndim = 2
    dtype = np.dtype(np.float64)  # type of values computed from the items

    def __init__(self, items: Iterable[Any]):
        given = list(items)
        self.items = np.empty(len(given), dtype=object)
        for i, item in enumerate(given):  # one by one, because NumPy would look inside sequences
            self.items[i] = item

    @classmethod
    def _of(cls, items: np.ndarray) -> Items:
        found = cls.__new__(cls)
        found.items = items
        return found

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.items), 1

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, rows: Any) -> Items:
        """Some of the items; there are no columns to select."""
        rows = rows[0] if isinstance(rows, tuple) else rows
        return Items._of(self.items[rows if isinstance(rows, slice) else np.atleast_1d(rows)])

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Items:
        return self

    def copy(self) -> Items:
        return Items._of(self.items.copy())

    def tolist(self) -> list[Any]:
        return list(self.items)


def unwrapped(X: Matrix) -> Any:
    """The list inside `Items`; anything else unchanged."""
    return X.tolist() if isinstance(X, Items) else X


def is_list_of_objects(X: Matrix) -> bool:
    """True if X is a list (or a column) of something other than numbers or equally long lists of numbers."""
    if isinstance(X, Items):
        return True
    if not isinstance(X, list | tuple | np.ndarray) and not hasattr(X, "to_list"):
        return False
    if getattr(X, "ndim", 1) != 1 or not len(X):
        return False
    try:
        return np.asarray(X, dtype=np.float64).ndim > 2
    except (TypeError, ValueError):
        return True
