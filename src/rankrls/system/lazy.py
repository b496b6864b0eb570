"""Properties that are computed once.

Before Python 3.12 `functools.cached_property` has a lock: while a thread computes a property of one object, no other
thread can compute the same property of any other object, so that threads work one after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")

if sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(Generic[T]):  # noqa: N801  (the name in the standard library)
        """`functools.cached_property` without the lock."""

        def __init__(self, function: Callable[[Any], T]) -> None:
            self.func, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...

        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...

        def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[T] | T:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self.func(instance)
            return value
