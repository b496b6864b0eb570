"""A session of the workbench: documents, a history of steps, and the exact model of each.

Every change goes through `do`, which writes it to the journal first. The model of a step comes from kept sums (`sums`),
so it is there at once; its held-out quality (`holdout`) follows from a thread of its own, which tells listeners how far
it is. All methods may be called from several threads.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.features import Features, Identity, Nystroem
from ..estimators import RankRLS
from ..estimators.pipelines import predicted, ranker_of, scaled, scalers_of
from ..metrics import get_metric
from .documents import DocumentTable
from .fit import DIRECT, Fit, fitted, scales
from .history import EditHistory
from .holdout import HoldOutJudge, Quality
from .journal import Journal, fingerprint
from .recent import Recent
from .state import ActionError, SessionLimits, Snapshot, State, Step, check_setting
from .sums import KEYS, Sums
from .why import line_integral

SMALL = 2_000_000  # values of X up to which the first curve is waited for
FEW = 5000  # and queries
KEPT_BYTES = 256 << 20  # of models, of curves and of labels that were needed lately, each
PAUSE = 0.15  # seconds without a change before the held-out curve is worked on
ENOUGH = 0.05  # share of its margin by which a preference of just enough weight is met
PREPARED = 600  # columns up to which the sums of all switches are made in advance
CURRENT = 0  # the snapshot id that stands for the model as it is


class ReadOnlyError(PermissionError):
    """A change was asked of a session that is open for reading only."""


@dataclass(frozen=True)
class Given:
    """A model the session was opened with: its scores of all rows, and the steps before its ranker."""

    model: Any
    name: str
    scores: np.ndarray  # (m,)


class Session:
    """Documents under a model that changes as one works.

    Parameters
    ----------
    documents : Documents
    model : a fitted ranker or pipeline, default=None
        Its parameters are the first settings, and its scores are kept for comparison.
    journal : path, default=None
        Where actions are stored; those that are there already are carried out first. None keeps them in memory.
    read_only : bool, default=False
        Refuse every change.
    """

    def __init__(
        self,
        documents: DocumentTable,
        model: BaseEstimator | None = None,
        *,
        journal: Any = None,
        read_only: bool = False,
    ):
        self.documents, self.read_only = documents, read_only
        self.model = model
        self.X, features, start = _opening(documents, model)
        self.features: Features = features
        self.sums = Sums(self.X, features, documents.queries)
        self.limits = SessionLimits(len(self.X), documents.X.shape[1], len(documents.queries), documents.queries.codes)
        self.given = None if model is None else _given(documents, model)
        self._lock = threading.RLock()
        self._fits: Recent[Fit] = Recent(lambda fit: fit.nbytes, KEPT_BYTES)
        self._points: Recent[Quality] = Recent(lambda found: found.nbytes, KEPT_BYTES)
        self._grids: Recent[Quality] = Recent(lambda found: found.nbytes, KEPT_BYTES)
        self._judged: Recent[np.ndarray] = Recent(lambda counts: counts.nbytes, KEPT_BYTES, most=2)
        self._labels: Recent[np.ndarray] = Recent(lambda y: y.nbytes, KEPT_BYTES, most=6)
        self._listeners: list[Callable[[dict[str, Any]], None]] = []
        self._wake, self._closed = threading.Event(), False
        self.version, self.run = 0, secrets.token_hex(8)  # changes of this run, and which run it is
        self.journal = Journal(journal, self._header(start), read_only=read_only)
        self.history = EditHistory(self._first(self.journal.header["start"]), self.limits, self._restart)
        self._started = model is not None  # alpha has been chosen
        self._replay()
        if not self._started and not self.history.undoes and not self.history.redoes:
            self._choose_alpha()
        self._worker = threading.Thread(target=self._work, name="workbench hold-out", daemon=True)
        self._worker.start()

    # ---------------------------------------------------------------- history

    @property
    def step(self) -> Step:
        """The current point of the history."""
        return self.history.step

    @property
    def state(self) -> State:
        """What the current model is made of."""
        return self.step.state

    def do(self, action: Mapping[str, Any]) -> int:
        """Carry out an action, stored on disk before anything changes; the new version."""
        with self._lock:
            if self.read_only:
                raise ReadOnlyError("this workbench was opened with --read-only: nothing can be changed")
            self._go(self._resolved(dict(action)))
            self.version += 1
        self._wake.set()
        self._tell({"type": "changed", "version": self.version})
        return self.version

    def _go(self, action: Mapping[str, Any]) -> None:
        """Take the step of an action, on disk before anything changes."""
        if self.history.beyond(action):
            self.history.recover(self._first(self.journal.header["start"]), self.journal.actions)
        following = self.history.following(action)
        self.journal.append(action)
        self.history.go(action, following)
        self._started |= action.get("do") == "start"

    def _replay(self) -> None:
        for number, action in enumerate(self.journal.actions, start=2):
            try:
                if self.history.beyond(action):
                    before = itertools.islice(self.journal.actions, number - 2)
                    self.history.recover(self._first(self.journal.header["start"]), before)
                self.history.go(action, self.history.following(action))
            except ActionError as error:
                raise ValueError(f"{self.journal.path}, line {number}: {error}") from None
            self._started |= action.get("do") == "start"

    def _restart(self, action: Mapping[str, Any]) -> Step:
        settings = self._first(self.journal.header["start"]).state.settings()
        return self._first({**settings, "alpha": check_setting("alpha", action.get("alpha"))})

    def _resolved(self, action: dict[str, Any]) -> dict[str, Any]:
        """The action with everything that depends on the present model written out."""
        if action.get("do") == "prefer":
            above, below = action.get("above"), action.get("below")
            rows = self.limits.rows
            if not all(isinstance(r, int) and 0 <= r < rows for r in (above, below)):
                return action
            enough = self.enough(int(above), int(below), action.get("margin"))  # type: ignore[arg-type]
            if action.get("margin") is None:
                action["margin"] = enough["margin"]
            if action.get("weight") in (None, "enough"):
                action["weight"] = enough["weight"]
        return action

    def _header(self, start: dict[str, Any]) -> dict[str, Any]:
        data, X = self.documents, self.documents.X
        return {"data": fingerprint(X, data.y, data.queries.codes), "name": data.name, "start": start}

    def _first(self, settings: Mapping[str, Any]) -> Step:
        checked = {name: check_setting(name, value) for name, value in settings.items()}
        state = State(**checked)
        snapshots = [Snapshot(1, "Start", state)]
        if self.given is not None:
            snapshots.append(Snapshot(2, self.given.name, None))
        return Step(state, tuple(snapshots))

    def _choose_alpha(self) -> None:
        """Start at the best alpha of the held-out curve: at once for small data, when it is known for large."""
        if self.X.size <= SMALL and self.features.n_columns <= DIRECT and self.limits.queries <= FEW:
            self._adopt(self.grid(self.state))

    def _adopt(self, grid: Quality) -> None:
        best = best_alpha(grid, self.state.metrics[0])
        if best is None:
            return
        action = {"do": "start", "alpha": best}
        with self._lock:
            if self.read_only:
                self.history.go(action, self.history.following(action))
            else:
                self._go(action)
                self.version += 1

    # ---------------------------------------------------------------- models

    def labels(self, state: State) -> np.ndarray:
        """(m,) the grades of all rows, NaN where there is none."""
        if not state.grades:
            return self.documents.y
        return self._labels.made(state.grades, lambda: self._graded(state))

    def _graded(self, state: State) -> np.ndarray:
        y = self.documents.y.copy()
        rows, grades = zip(*state.grades.pairs(), strict=True)
        y[list(rows)] = [np.nan if grade is None else grade for grade in grades]
        return y

    def learned_labels(self, state: State) -> np.ndarray:
        """(m,) those a model learns from: not of queries that are left out."""
        y = self.labels(state)
        if not state.forgotten:
            return y

        def left() -> np.ndarray:
            gone = np.zeros(self.limits.queries, dtype=bool)
            gone[sorted(state.forgotten)] = True
            return np.where(gone[self.documents.queries.codes], np.nan, y)

        return self._labels.made((state.grades, state.forgotten), left)

    def levels(self, state: State) -> dict[float, int]:
        """How many documents have each grade."""
        found = dict(self.documents.levels)
        for row, grade in state.grades.pairs():
            before = float(self.documents.y[row])
            if before == before:
                found[before] -= 1
            if grade is not None:
                found[grade] = found.get(grade, 0) + 1
        return {grade: count for grade, count in sorted(found.items()) if count}

    def judged(self, state: State) -> np.ndarray:
        """(q,) how many documents of each query have a grade."""
        count = lambda: self.documents.queries.sum(~np.isnan(self.labels(state)))
        return self._judged.made(state.grades, count)

    def fit(self, state: State) -> Fit:
        """The model of a state at every alpha."""
        return self._fits.made(state.structure(), lambda: self._fitted(state))

    def _fitted(self, state: State) -> Fit:
        y = self.learned_labels(state)
        judged, sums = self.sums.of(state, y)
        units = scales(judged if judged.n_rows else sums, state.scale)
        few = judged.n_rows + len(state.preferences) < self.features.n_columns - len(state.off)
        rows = partial(self.sums.rows, state, y, sums.mean, sums.target_mean) if few else None
        return fitted(sums, self.features.W, state.off, state.signs, units, rows)

    def coef(self, state: State) -> np.ndarray:
        """(columns of Phi,) the weights of a state's model."""
        return self.fit(state).coef(state.alpha)

    def phi(self, rows: np.ndarray) -> np.ndarray:
        """The features of some rows in which the model is linear."""
        return np.asarray(self.features.reader(self.X)()(rows), dtype=np.float64)

    def scores(self, which: State | Snapshot, rows: np.ndarray) -> np.ndarray:
        """Scores of some rows by a state or a snapshot."""
        if isinstance(which, Snapshot):
            if which.state is None:
                assert self.given is not None
                return self.given.scores[rows]
            which = which.state
        coef = self.coef(which)
        return self.phi(rows) @ coef + self.fit(which).intercept(coef)

    def snapshot(self, number: int) -> Snapshot:
        """A snapshot by its id; 0 is the model as it is."""
        return Snapshot(CURRENT, "Now", self.state) if number == CURRENT else self.step.snapshot(number)

    def enough(self, above: int, below: int, margin: float | None = None) -> dict[str, float]:
        """The margin m and the least weight w with which a preference puts one document above another.

        Adding a row d with weight w turns the difference D of two scores into (D + w h m) / (1 + w h), where
        h = d'(A'A + alpha)^-1 d; so D becomes t for w = (t - D) / (h (m - t)). t is a small share of m, just enough to
        be above. Documents that are already in this order keep at least their distance.
        """
        state = self.state
        fit, pair = self.fit(state), self.phi(np.array([above, below]))
        direction = pair[0] - pair[1]
        now = float(direction @ fit.coef(state.alpha))
        h = fit.leverage(state.alpha, direction)
        m = float(margin) if isinstance(margin, int | float) and margin > 0 else max(1.0, now)
        if not h > 0:
            return {"margin": m, "weight": 1.0}
        t = ENOUGH * m
        return {"margin": m, "weight": max((t - now) / (h * (m - t)), 0.01 / h)}

    def why(self, a: int, b: int) -> dict[str, Any]:
        """What each feature adds to score(a) - score(b)."""
        state, fit = self.state, self.fit(self.state)
        coef, Z = fit.coef(state.alpha), np.asarray(self.X[[a, b]], dtype=np.float64)
        if self.features.W is None:
            parts = coef * (Z[0] - Z[1])
        else:
            kernel_scores = lambda rows: np.asarray(self.features.reader(rows)()(slice(0, len(rows))) @ coef)
            parts = line_integral(kernel_scores, Z[0], Z[1])
        raw = np.asarray(self.documents.X[[a, b]], dtype=np.float64)
        return {"parts": parts, "a": raw[0], "b": raw[1], "total": float(parts.sum())}

    # ---------------------------------------------------------------- quality

    def judge(self, state: State) -> HoldOutJudge:
        """Who holds out the queries of a state."""
        pairs: dict[int, list[Any]] = {}
        for preference in state.preferences:
            query = int(self.documents.queries.codes[preference.above])
            if query not in state.forgotten:
                pairs.setdefault(query, []).append(preference)
        fit, y = self.fit(state), self.learned_labels(state)
        return HoldOutJudge(self.X, self.features, self.documents.queries, fit, state, self.labels(state), y, pairs)

    def point(self, state: State, report: object = None) -> Quality:
        """Held-out quality at the alpha of a state, by all metrics that are shown."""
        key = (state.structure(), state.alpha, state.metrics)
        return self._quality(self._points, key, state, np.array([state.alpha]), state.metrics, report)

    def grid(self, state: State, report: object = None) -> Quality:
        """The held-out curve of a state over alpha, by the first metric."""
        key = (state.structure(), state.metrics[0])
        return self._quality(self._grids, key, state, self.fit(state).alphas(), state.metrics[:1], report)

    def known(self, state: State) -> tuple[Quality | None, Quality | None]:
        """What is known of the quality of a state: at its alpha, and along the curve."""
        key = state.structure()
        return self._points.get((key, state.alpha, state.metrics)), self._grids.get((key, state.metrics[0]))

    def _quality(
        self, kept: Recent[Quality], key: object, state: State, alphas: np.ndarray, metrics: Any, report: Any
    ) -> Quality:
        found = kept.get(key)
        if found is not None and found.done >= 1:
            return found

        def progress(partial: Quality) -> bool:
            kept.put(key, replace(partial, values={k: v.copy() for k, v in partial.values.items()}))
            return report is None or report(partial)

        found = self.judge(state).quality(alphas, metrics, progress)
        kept.put(key, found)
        return found

    # ---------------------------------------------------------------- work that follows

    def listen(self, listener: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Have changes and progress told; returns a function that ends it."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock, contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return stop

    @property
    def prepared(self) -> bool:
        """Whether every switch is ready: all sums are made, or there are too many columns to make them in advance."""
        return self.features.n_columns > PREPARED or all(self.sums.known(key) for key in KEYS)

    def close(self) -> None:
        """End the work and close the journal."""
        self._closed = True
        self._wake.set()
        self._worker.join(timeout=30)
        self.journal.close()

    def _tell(self, event: dict[str, Any]) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(event)

    def _work(self) -> None:
        if hasattr(os, "setpriority"):  # whoever waits for an answer goes first
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 3)
        self._wake.set()
        while not self._closed:
            self._wake.wait()
            while not self._closed and self._wake.is_set():  # while changes come in quick succession, they go first
                self._wake.clear()
                self._wake.wait(PAUSE)
            try:
                self._follow()
            except Exception as error:  # told to whoever looks; the session goes on
                self._tell({"type": "problem", "text": f"{type(error).__name__}: {error}"})

    def _follow(self) -> None:
        version, state = self.version, self.state
        current = lambda: self.version == version and not self._closed

        def report(kind: str) -> Callable[[Quality], bool]:
            def tell(found: Quality) -> bool:
                self._tell({"type": "progress", "of": kind, "done": round(found.done, 3), "version": version})
                return current()

            return tell

        if not self.prepared:
            for key in KEYS:
                if current() and not self.sums.known(key):
                    self.sums.loss(key, self.learned_labels(state))
        if current():
            self.point(state, report("point"))
        if current():
            grid = self.grid(state, report("curve"))
            fresh = not self._started and self.history.undoes is None and self.history.redoes is None
            if current() and fresh and grid.done >= 1:
                self._started = True
                self._adopt(grid)
                self._tell({"type": "changed", "version": self.version})
                self._wake.set()
                return
        for kept in self.step.snapshots:
            if current() and kept.state is not None:
                self.point(replace(kept.state, metrics=state.metrics), report("snapshots"))
        self._tell({"type": "quality", "version": version})


def best_alpha(grid: Quality, metric: str) -> float | None:
    """The alpha of the best mean; None where no query defines the metric."""
    mean = grid.mean(metric)
    if np.isnan(mean).all():
        return None
    sign = 1 if get_metric(metric).greater_is_better else -1
    ties = np.flatnonzero(sign * mean >= np.nanmax(sign * mean))
    return float(grid.alphas[ties].max())


def _given(documents: DocumentTable, model: BaseEstimator) -> Given:
    qid = documents.queries.codes
    return Given(model, "Model given", np.asarray(predicted(model, documents.X, qid), dtype=np.float64))


def _opening(documents: DocumentTable, model: BaseEstimator) -> tuple[Any, Features, dict[str, Any]]:
    """Rows as the ranker sees them, its features, and the first settings."""
    X = documents.X
    state = State()
    defaults = RankRLS().get_params(deep=False)
    ranker = None if model is None else ranker_of(model)
    ours = ranker if isinstance(ranker, RankRLS) else None
    params = defaults if ours is None else ours.get_params(deep=False)
    settings = state.settings() | {name: params[name] for name in ("weighting", "regression")}
    settings["regression"] = float(settings["regression"])
    settings["tied_pairs"] = bool(getattr(ranker, "tied_pairs_", params["tied_pairs"] is True))
    settings["scale"] = "none" if params.get("scale", "auto") is None else "auto"
    if model is not None and scalers_of(model):
        X = np.asarray(scaled(model, X, documents.queries.codes))
        settings["scale"] = "none"
    features: Features = Identity(X.shape[1])
    if ours is not None and hasattr(ours, "X_fit_"):
        features = Nystroem(ours.kernel_, np.asarray(ours.X_fit_))
    if ours is not None and hasattr(ours, "alpha_"):
        settings["alpha"] = float(ours.alpha_)
    return X, features, settings
