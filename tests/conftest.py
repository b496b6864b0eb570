import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("rankrls", deadline=None)  # a busy machine is no failure
settings.load_profile("rankrls")


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Figures of pyplot that a test or a page of the guide leaves open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
