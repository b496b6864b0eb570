"""What `random_state` means, everywhere: a seed."""

from __future__ import annotations

import numpy as np

from .types import Seed


def seed_of(random_state: Seed) -> int:
    """A seed: the number given, a new one for None, or one drawn from a Generator or RandomState.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    if random_state is None:
        return int(np.random.default_rng().integers(2**62))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(
            f"random_state must be None, a whole number from 0, a Generator or a RandomState, got {random_state!r}"
        )
    return int(random_state)
