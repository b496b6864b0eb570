"""Functions identified by the name they are imported under."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from typing import Any


def importable_name(function: Callable[..., Any], where: str) -> str:
    """`module.name`, if importing that gives the function itself; else an error about `where`."""
    module, name = function.__module__, function.__qualname__
    try:
        found = getattr(importlib.import_module(module), name, None) if module != "__main__" else None
    except ImportError:
        found = None
    if found is not function:
        raise TypeError(
            f"{where} is the function {module}.{name}, which a model file cannot hold: it never contains "
            "code, only names of functions that can be imported. Put it into a module, use a named kernel or "
            "metric, or pickle if you must"
        )
    return f"{module}.{name}"


def imported(name: str, trusted: Collection[str]) -> Callable[..., Any]:
    """The function with this name, if the caller trusts it: importing a module runs it."""
    if name not in trusted:
        raise ValueError(
            f"it names the function {name}, which would be imported and called: if you trust the file, "
            f"load it with trusted=[{name!r}]"
        )
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
