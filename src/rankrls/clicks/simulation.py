"""Clicks of simulated readers on real or generated judgments."""

from __future__ import annotations

import numpy as np

from .. import checks
from ..system.seeds import seed_of
from ..system.types import Ids, Seed
from .log import ClickLog

MODELS = ("position-based", "cascade")


def simulate(
    y: np.ndarray,
    qid: Ids = None,
    *,
    scores: np.ndarray | None = None,
    model: str = "position-based",
    sessions: int = 10,
    top: int = 10,
    eta: float = 1.0,
    noise: float = 0.1,
    swaps: float = 0.0,
    random_state: Seed = None,
) -> ClickLog:
    """Simulate clicks on rankings by readers who look at the top first.

    Parameters
    ----------
    y : array-like of shape (m,)
        True relevance, 0 for none.
    qid : array-like of shape (m,), default=None
        Query of each row; None: all rows are one query.
    scores : array-like of shape (m,), default=None
        The logging policy: documents are shown by descending score. None: in a random order, the same in all sessions
        of a query.
    model : {"position-based", "cascade"}, default="position-based"
        "position-based": position k is looked at with probability k^-eta, whatever is above it. "cascade": readers go
        down the list and stop after a click, or after position k with probability 1 - (k / (k + 1))^eta.
    sessions : int, default=10
        Impressions of each query.
    top : int, default=10
        Documents shown.
    eta : float, default=1.0
        How fast readers lose patience; with 0 they look at everything.
    noise : float, default=0.1
        Chance of a click on an irrelevant document that is looked at; it rises to 1 with (2^y - 1) / (2^max - 1).
    swaps : float, default=0.0
        Share of sessions in which the first document is swapped with a random one below it.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    log : ClickLog
        Documents are row numbers of y.

    Examples
    --------
    >>> from rankrls import clicks
    >>> clicks.simulate([2, 0, 1], sessions=100, random_state=0)
    ClickLog of 3 rows: 1 query, 3 documents, 300 impressions, 116 clicks, positions 1 to 3
    """
    y = checks.check_numbers("y", y, len(np.asarray(y)))
    queries = checks.check_queries(qid, len(y))
    checks.check_choice("model", model, MODELS)
    for name, least in (("sessions", 1), ("top", 1)):
        checks.check_count(name, {"sessions": sessions, "top": top}[name], least)
    for name, share in (("noise", noise), ("swaps", swaps)):
        checks.check_share(name, share)
    checks.check_number("eta", eta, zero=True, auto=False)
    if y.min() < 0:
        raise ValueError(f"relevance must not be negative, got y = {y.min():g}: shift the labels")
    rng = np.random.default_rng(seed_of(random_state))
    shown_by = rng.random(len(y)) if scores is None else checks.check_numbers("scores", scores, len(y))
    attraction = noise + (1 - noise) * (np.exp2(y) - 1) / max(np.exp2(y.max()) - 1, 1)
    parts = []
    for q in range(len(queries)):
        rows = queries.rows(q)
        best = rows[np.argsort(-shown_by[rows], kind="stable")][:top]
        pages = _pages(best, sessions, swaps, rng)
        clicked = _clicked(attraction[pages], model, eta, rng)
        parts.append((np.full(pages.size, q), pages.ravel(), np.tile(np.arange(1, len(best) + 1), sessions), clicked))
    query, document, position, clicks = (np.concatenate(part) for part in zip(*parts, strict=True))
    names = queries.labels[query]
    return ClickLog(names, document, position, clicks.astype(np.float64), np.ones(len(clicks))).added()


def _pages(best: np.ndarray, sessions: int, swaps: float, rng: np.random.Generator) -> np.ndarray:
    """(sessions, top) the documents shown."""
    pages = np.tile(best, (sessions, 1))
    if len(best) > 1 and swaps > 0:
        swapped = np.flatnonzero(rng.random(sessions) < swaps)
        other = rng.integers(1, len(best), len(swapped))
        pages[swapped, 0], pages[swapped, other] = pages[swapped, other], pages[swapped, 0]
    return pages


def _clicked(attraction: np.ndarray, model: str, eta: float, rng: np.random.Generator) -> np.ndarray:
    place = np.arange(1, attraction.shape[1] + 1)
    attracted = rng.random(attraction.shape) < attraction
    if model == "position-based":
        return ((rng.random(attraction.shape) < place**-eta) & attracted).ravel()
    stops = attracted | (rng.random(attraction.shape) < 1 - (place / (place + 1)) ** eta)
    reached = np.cumsum(stops, axis=1) - stops == 0
    return (reached & attracted).ravel()
