"""A cache of recent results with bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
KEPT_BYTES = 256 << 20  # limit of each cache: models, curves, labels


class Recent(Generic[T]):
    """Values by key; the least recently used are dropped first. `size` returns the bytes of a value; two always stay.

    Examples
    --------
    >>> kept = Recent(lambda value: len(value), 10)
    >>> for word in ("first", "second", "third"):
    ...     kept.put(word, word)
    >>> kept.get("first"), kept.get("third")
    (None, 'third')
    """

    def __init__(self, size: Callable[[T], int], budget: int, most: int = 64):
        self._size, self._budget, self._most = size, budget, most
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value of a key, if it is still cached."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, value: T) -> None:
        """Store a value."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            total = sum(self._size(one) for one in self._kept.values())
            while len(self._kept) > 2 and (total > self._budget or len(self._kept) > self._most):
                total -= self._size(self._kept.popitem(last=False)[1])

    def made(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, computed if it is missing."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found
