"""AutoRanker: linear, additive and kernel models in closed form, judged on held-out queries and stacked."""

from .additive import AdditiveMap
from .alone import cross_fit, stack_weights
from .fitting import StackPart
from .functions import Curves, Ramps
from .kernelmap import KernelMap
from .link import Link
from .pairs import PairScreen
from .ranker import AutoRanker
from .rows import Scores

__all__ = ["AutoRanker", "PairScreen", "cross_fit", "stack_weights"]
STORED = (
    AdditiveMap,
    Curves,
    Link,
    KernelMap,
    StackPart,
    Ramps,
    Scores,
)  # parts of a model
