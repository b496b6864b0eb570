import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from rankrls.system.limits import limited

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("rankrls", deadline=None)  # a busy machine is no failure
settings.load_profile("rankrls")


@pytest.fixture
def limit():
    """`limit(table_rows=64)` changes limits of `rankrls.system.limits` until the test ends."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(limited(**changes))


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Close figures that a test or a page of the guide leaves open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
