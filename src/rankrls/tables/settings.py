"""The parameters of an encoder, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import checks
from . import reading

NUMBERS = ("quantile", "standard")
RELATIVE = ("zscore", "rank")
KINDS = (reading.NUMBER, reading.BOOLEAN, reading.DATE, reading.TEXT)


@dataclass(frozen=True)
class Settings:
    """The parameters of an encoder."""

    numbers: str
    max_categories: int
    relative: dict[str, str] | str | None  # by column, or for all
    kinds: dict[str, str] | list[str] | None
    n_quantiles: int
    smoothing: float
    n_folds: int

    @classmethod
    def of(cls, encoder: Any) -> Settings:
        """The parameters of a `TableEncoder`."""
        how, columns = encoder.relative, encoder.columns
        if not isinstance(how, dict):
            how = {True: "zscore", False: None}.get(how, how)
        kinds = list(columns) if isinstance(columns, tuple) else columns
        smoothing = float(encoder.smoothing)
        return cls(encoder.numbers, encoder.max_categories, how, kinds, encoder.n_quantiles, smoothing, encoder.n_folds)


def check_settings(encoder: Any) -> None:
    """Raise an error if a parameter of a `TableEncoder` has a value that makes no sense."""
    checks.check_choice("numbers", encoder.numbers, NUMBERS)
    if isinstance(encoder.relative, dict):
        for name, how in encoder.relative.items():
            checks.check_choice(f"relative[{name!r}]", how, RELATIVE)
    else:
        checks.check_choice("relative", encoder.relative, (True, False, *RELATIVE))
    if isinstance(encoder.columns, dict):
        for name, kind in encoder.columns.items():
            checks.check_choice(f"columns[{name!r}]", kind, KINDS)
    for name, least in (("max_categories", 0), ("n_quantiles", 2), ("n_folds", 2)):
        checks.check_count(name, getattr(encoder, name), least)
    checks.check_number("smoothing", encoder.smoothing, zero=True, auto=False)
