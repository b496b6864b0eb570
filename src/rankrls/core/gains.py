"""What a label is worth in the loss: the label itself, 2^y - 1, or the value of the caller's own function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LINEAR, EXPONENTIAL = "linear", "exponential"
Gain = str | Callable[[np.ndarray], np.ndarray]


def recoded(y: np.ndarray, gain: Gain) -> np.ndarray:
    """Labels (m, t) as the loss sees them."""
    if gain == LINEAR:
        return y
    with np.errstate(over="ignore"):
        found = np.exp2(y) - 1 if gain == EXPONENTIAL else np.asarray(gain(y), dtype=np.float64)  # type: ignore[operator]
    if found.shape != y.shape:
        raise ValueError(f"gain gave an array of shape {found.shape} for labels of shape {y.shape}: one number each")
    bad = ~np.isfinite(found) & np.isfinite(y)
    if bad.any():
        name = gain if isinstance(gain, str) else getattr(gain, "__name__", "a function")
        raise ValueError(
            f"gain={name!r} makes {found[bad][0]} of the label {y[bad][0]:g}: use labels such as 0 to 4, or no gain"
        )
    if callable(gain):
        _check_growing(y, found)
    return found


def _check_growing(y: np.ndarray, found: np.ndarray) -> None:
    """Raise an error if a larger label is worth less: the metric would judge the opposite of what is learned."""
    for label, worth in zip(y.T, found.T, strict=True):
        known = np.flatnonzero(np.isfinite(label))
        order = known[np.argsort(label[known], kind="stable")]
        falls = np.flatnonzero((np.diff(label[order]) > 0) & (np.diff(worth[order]) < 0))
        if len(falls):
            a, b = order[falls[0]], order[falls[0] + 1]
            raise ValueError(
                f"gain makes {worth[a]:g} of the label {label[a]:g} and {worth[b]:g} of {label[b]:g}: it must not fall "
                "as labels grow. If less is better, negate y instead"
            )


def gains_of(gain: Gain | None) -> tuple[Gain, ...]:
    """The gains to choose from."""
    return (LINEAR, EXPONENTIAL) if isinstance(gain, str) and gain == "auto" else (LINEAR if gain is None else gain,)
