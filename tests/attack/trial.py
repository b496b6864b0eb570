"""One case: what it tried, what it compared, and how it ended."""

import contextlib
import signal
import time
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np

from .oracles import LD, OutOfReachError
from .refusals import ADVICE, is_documented

EQUAL, REFUSED, UNDECIDED, DEVIATES = "equal", "refused", "undecided", "DEVIATES"
SECONDS = 20  # of a processor, for one case
PATIENCE = 300  # seconds by the clock: a case that waits for something for ever uses no processor
DRAWS = 50  # of a problem, until there is something to compare
DECIDED = 0.05  # a bound above this share of the largest score decides nothing


class DeviationError(AssertionError):
    """The library and the oracle differ by more than the bound."""


class Refused(Exception):  # noqa: N818
    """The library refused to answer, with a documented message."""


class TooLong(BaseException):  # no `except Exception` of the library swallows it
    """The case took longer than allowed."""


@dataclass
class Trial:
    """A random generator, a script of what is done with it, and comparisons."""

    category: str
    rng: np.random.Generator
    names: dict = field(default_factory=dict)  # of the script: name -> value
    lines: list = field(default_factory=list)
    compared: int = 0
    undecided: int = 0
    worst: float = 0.0  # the largest error as a share of its bound

    # ------------------------------------------------------------ drawing

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def number(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def power(self, low, high):
        """10 to the power of something between."""
        return float(10.0 ** self.rng.uniform(low, high))

    # ------------------------------------------------------------ the script

    def let(self, **values):
        """Record named values in the script; returns the last of them."""
        self.names.update(values)
        return value_of(values)

    def do(self, line, value=None):
        """Record a line of the script; returns its value."""
        self.lines.append(line)
        return value

    def script(self):
        head = ["import numpy as np", "from scipy import sparse", "from rankrls import *", ""]
        return "\n".join([*head, *(f"{name} = {literal(value)}" for name, value in self.names.items()), *self.lines])

    # ------------------------------------------------------------ comparing

    def close(self, what, found, expected, bound, *, size=0.0):
        """Check that `found` is within `bound` of `expected` everywhere; counts cases where the bound is too wide.

        A bound is too wide if it is not small compared with the largest expected value, or with `size`.
        """
        found, expected = np.asarray(found, dtype=LD), np.asarray(expected, dtype=LD)
        if found.shape != expected.shape:
            raise DeviationError(f"{what}: shape {found.shape}, expected {expected.shape}")
        bound = np.broadcast_to(np.asarray(bound, dtype=LD), expected.shape)
        if not np.array_equal(np.isnan(found), np.isnan(expected)):
            raise DeviationError(f"{what}: NaN in other places than expected: {found} for {expected}")
        known = ~np.isnan(expected)
        found, expected, bound = found[known], expected[known], bound[known]
        if not len(expected):
            return
        self.compared += 1
        if bound.max() > DECIDED * max(np.abs(expected).max(), size) or not np.all(np.isfinite(bound)):
            self.undecided += 1
            if not np.all(np.isfinite(found)):
                raise DeviationError(f"{what}: {found} is not finite, expected {expected.astype(float)}")
            return
        error = np.abs(found - expected)
        share = error / np.maximum(bound, LD("1e-4900"))
        self.worst = max(self.worst, float(share.max()))
        if not np.all(share <= 1):
            i = int(np.argmax(np.where(np.isnan(share), np.inf, share)))
            raise DeviationError(
                f"{what}: {float(found[i])!r} instead of {float(expected[i])!r} (entry {i} of {len(found)}), "
                f"an error of {float(error[i]):.3g} where rounding explains {float(bound[i]):.3g}"
            )

    def same(self, what, found, expected):
        """Check exact equality."""
        self.compared += 1
        if not np.array_equal(np.asarray(found), np.asarray(expected)):
            raise DeviationError(f"{what}: {found!r} instead of {expected!r}")

    def true(self, what, condition):
        self.compared += 1
        if not condition:
            raise DeviationError(what)

    @contextlib.contextmanager
    def may_refuse(self):
        """Run a call of the library: documented refusals end the case, other errors are deviations."""
        try:
            yield
        except (DeviationError, Refused):
            raise
        except Exception as error:
            if is_documented(error):
                raise Refused(f"{type(error).__name__}: {error}") from error
            raise

    @contextlib.contextmanager
    def must_refuse(self, what):
        """Run a call that has no answer: the library must raise a documented error."""
        try:
            yield
        except (DeviationError, Refused):
            raise
        except Exception as error:
            if is_documented(error):
                raise Refused(f"{type(error).__name__}: {error}") from error
            raise
        raise DeviationError(f"{what} was accepted")


@dataclass
class Outcome:
    """How a case ended."""

    category: str
    case: int
    end: str
    message: str = ""
    script: str = ""
    worst: float = 0.0
    seconds: float = 0.0  # of a processor


def value_of(values):
    return next(reversed(values.values())) if values else None


def literal(value):
    """Python source for a value."""
    if isinstance(value, np.ndarray):
        plain = value.tolist()
        return f"np.array({plain!r}, dtype={value.dtype.str!r})".replace("nan", "np.nan").replace("inf", "np.inf")
    return repr(value)


def run_trial(run, category, case, seed):
    """The outcome of a case, with its own random numbers and time limit; drawn again if there is nothing to compare."""
    for attempt in range(DRAWS):
        found = _run_once(run, category, case, [seed, case, attempt] if attempt else [seed, case])
        if found is not None:
            return found
    return Outcome(category, case, UNDECIDED, f"nothing to compare in {DRAWS} draws")


def _run_once(run, category, case, numbers):
    """The outcome of one draw; None if the problem had nothing to compare, such as one query to hold out."""
    trial = Trial(category, np.random.default_rng(numbers))

    def stop(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.signal(signal.SIGPROF, stop)
    signal.alarm(PATIENCE)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    start = time.process_time()

    def end(kind, message=""):
        script = trial.script() if kind == DEVIATES else ""
        return Outcome(category, case, kind, message, script, trial.worst, time.process_time() - start)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for pattern in ADVICE:
                warnings.filterwarnings("ignore", pattern, UserWarning)
            run(trial)
    except Refused as refusal:
        return end(REFUSED, str(refusal))
    except TooLong:
        return end(DEVIATES, f"took more than {SECONDS} s of a processor, or {PATIENCE} s by the clock")
    except DeviationError as error:
        return end(DEVIATES, str(error))
    except OutOfReachError as error:
        return end(UNDECIDED, str(error))
    except Exception as error:
        where = "".join(traceback.format_exception(error)[-3:])
        return end(DEVIATES, f"{type(error).__name__}: {error}\n{where}")
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    if not trial.compared:
        return None
    return end(UNDECIDED if trial.undecided == trial.compared else EQUAL)
