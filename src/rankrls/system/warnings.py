"""Warnings that point to the line of the caller's own code."""

from __future__ import annotations

import sys
import warnings

PACKAGES = ("rankrls", "sklearn", "joblib")  # lines in these packages are not the caller's


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning for the innermost line outside this package and the packages that call it for the user.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("mind the gap")
    >>> str(caught[0].message)
    'mind the gap'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
