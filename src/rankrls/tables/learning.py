"""From the rows of a table to the maps of its columns, and from a table and maps to a matrix.

Rows may be in memory, in a file or on a cluster: they only need to provide the sum of a function over their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.queries import Queries
from ..system.lazy import cached_property
from ..system.memory import check_memory
from ..system.warnings import warn
from . import reading
from .maps import NumberMap, RelativeMap, TargetMap
from .settings import Settings
from .summaries import ByColumn, LabelTotals, TableSummary, TargetSums, TextSummary, folds_of, relative, summary_of

LONELY = 0.9  # a text column is an id if the values of at least this share of its rows are unique
LONELY_ROWS = 100  # and there are at least this many rows

ONE_QUERY = 1000  # a single query with at least this many rows is probably several queries

T = TypeVar("T")


@dataclass(frozen=True)
class TableRows:
    """Some rows of a table."""

    table: Any
    y: np.ndarray | None  # (m, t), NaN where there is no label
    queries: Queries

    @cached_property
    def columns(self) -> reading.ColumnReader:
        return reading.ColumnReader(self.table)

    def scored(self) -> tuple[np.ndarray, np.ndarray, Queries]:
        """Numbers of the rows with labels, their labels, and their queries."""
        assert self.y is not None
        rows = np.flatnonzero(~np.isnan(self.y).any(axis=1))
        return rows, self.y[rows], Queries(self.queries.labels, self.queries.codes[rows])

    def sum_tables(self, function: Callable[[TableRows], T]) -> T:
        """The function of these rows: rows in memory are a single part."""
        return function(self)


class TableParts(Protocol):
    """Rows of a table, wherever they are; the results of functions of some rows can be added."""

    def sum_tables(self, function: Callable[[TableRows], T]) -> T:
        """The sum of a function over all parts."""


@dataclass(frozen=True)
class LearnedMap:
    """The map of each column, and the columns left out."""

    kinds: dict[str, str]
    maps: list[Any]
    training: list[Any]  # the maps for training rows: out of fold if they use labels
    ids: list[str]  # text columns that differ in nearly every row
    n_queries: int
    n_rows: int


class ManyLevelsError(ValueError):
    """Target statistics are needed, but there are no labels."""

    def __init__(self, levels: dict[str, int], most: int):
        super().__init__(levels, most)
        self.levels, self.most = levels, most

    def __str__(self) -> str:
        name, n = next(iter(self.levels.items()))
        return (
            f"column {name!r} has {n:,} levels, more than max_categories={self.most}: pass y, so that the mean label "
            "of each level can be used, or raise max_categories"
        )


def learn(parts: TableParts, settings: Settings) -> LearnedMap:
    """Learn the maps in one pass that summarises columns, and another for target statistics if there are any."""
    found = parts.sum_tables(Summarise(settings.kinds))
    kinds, summaries = found.kinds, found.columns
    many = [name for name, part in summaries.items() if isinstance(part, TextSummary)]
    many = [name for name in many if len(summaries[name].levels) > settings.max_categories]
    ids = [name for name in many if summaries[name].n >= LONELY_ROWS and summaries[name].lonely > LONELY]
    many = [name for name in many if name not in ids]
    if many and not found.labels.total:
        raise ManyLevelsError({name: len(summaries[name].levels) for name in many}, settings.max_categories)
    levels = {name: summaries[name].levels for name in many}
    targets: dict[str, TargetSums] = {}
    if many:
        single = len(found.queries) == 1
        sums = SumTargets({name: kinds[name] for name in many}, levels, found.labels, settings.n_folds, single)
        targets = parts.sum_tables(sums).columns
    training: list[Any] = []
    for name, part in summaries.items():
        if name in targets:
            training.append(targets[name].map(name, levels[name], settings.smoothing))
        elif name not in ids:
            training += _maps(name, kinds[name], part, settings)
    training = [made for made in training if made.names]
    maps = [replace(made, held_out=None) if isinstance(made, TargetMap) else made for made in training]
    n_rows = max((part.n for part in summaries.values()), default=0)
    return LearnedMap(kinds, maps, training, ids, len(found.queries), n_rows)


def warn_about_queries(learned: LearnedMap, qid: object) -> None:
    """Warn if there is no qid, so that labels are averaged over other rows where other queries are probably meant."""
    targets = [made.name for made in learned.maps if isinstance(made, TargetMap)]
    if targets and qid is None and learned.n_rows >= ONE_QUERY:
        warn(
            f"no qid reached TableEncoder, so the label means in {targets[0]!r} are over other rows rather than other "
            "queries: pass qid, or, inside a pipeline, call sklearn.set_config(enable_metadata_routing=True); pass a "
            "constant qid if one query is meant"
        )


@dataclass(frozen=True)
class Summarise:
    """Maps some rows to summaries of their columns, and the labels of their queries."""

    given: dict[str, str] | list[str] | None  # columns, or their kinds

    def __call__(self, rows: TableRows) -> TableSummary:
        kinds = chosen_kinds(rows.columns, self.given)
        summaries = {name: summary_of(x, kinds[name]) for name, x in columns(rows.columns, kinds).items()}
        labels = LabelTotals({}) if rows.y is None else LabelTotals.of(*rows.scored()[1:])
        return TableSummary(kinds, summaries, labels, frozenset(rows.queries.labels.tolist()))


@dataclass(frozen=True)
class SumTargets:
    """Maps some rows to counts and labels of each level, by fold, for columns with many levels."""

    kinds: dict[str, str]
    levels: dict[str, np.ndarray]
    labels: LabelTotals
    n_folds: int
    single: bool  # whether there is only one query

    def __call__(self, rows: TableRows) -> ByColumn:
        scored, y, queries = rows.scored()
        y, fold = self.labels.centred(y, queries), folds_of(rows.queries, self.n_folds, single=self.single)[scored]
        values = columns(rows.columns, self.kinds).items()
        return ByColumn({n: TargetSums.of(x[scored], self.levels[n], y, fold, self.n_folds) for n, x in values})


def _maps(name: str, kind: str, part: Any, settings: Settings) -> list[Any]:
    if kind == reading.TEXT:
        made = part.map(name)
        return [made] if len(made.names) > 1 else []  # a single level carries no information
    made = part.map(name, "standard" if kind == reading.BOOLEAN else settings.numbers, settings.n_quantiles)
    how = settings.relative.get(name) if isinstance(settings.relative, dict) else settings.relative
    if how is None or made.curve is None or (kind == reading.BOOLEAN and not isinstance(settings.relative, dict)):
        return [made]
    return [made, RelativeMap(name, how)]


def chosen_kinds(columns: reading.ColumnReader, given: dict[str, str] | list[str] | None) -> dict[str, str]:
    """The kind of each column that is used."""
    wanted = columns.names if given is None else [name for name in columns.names if name in given]
    kinds = given if isinstance(given, dict) else {}
    return {name: kinds.get(name) or columns[name].kind for name in wanted}


def columns(table: reading.ColumnReader, kinds: dict[str, str]) -> dict[str, np.ndarray]:
    """The values of some columns, read as the kinds they had in training."""
    return {name: table.values(name, kind) for name, kind in kinds.items()}


def encode(
    table: reading.ColumnReader,
    kinds: dict[str, str],
    maps: list[Any],
    queries: Queries | None,
    fold: np.ndarray | None = None,
) -> np.ndarray:
    """(m, n) the maps of the columns side by side."""
    values = columns(table, {made.name: kinds[made.name] for made in maps})
    encoded = _room(reading.n_rows(table.table), maps)
    end = 0
    for made in maps:
        x, start, end = values[made.name], end, end + len(made.names)
        if isinstance(made, RelativeMap):
            assert queries is not None
            encoded[:, start] = relative(x, queries, made.kind)
        else:
            encoded[:, start:end] = made(x, fold)
    return encoded


def _room(m: int, maps: list[Any]) -> np.ndarray:
    """(m, n) memory for the encoded rows; an error that names the column with most levels if there is too little."""
    n, widest = sum(len(made.names) for made in maps), max(maps, key=lambda made: len(made.names))
    check_memory(
        8 * m * (n + len(widest.names)),
        f"{m:,} rows of {n:,} encoded columns, {len(widest.names):,} of them for {widest.name!r},",
        "lower max_categories, so that columns with many levels become one column each, or encode fewer rows at a time",
    )
    return np.empty((m, n))


def infinite(table: reading.ColumnReader, kinds: dict[str, str], maps: list[Any]) -> str | None:
    """The first standardised column with an infinite value, which only quantiles can handle."""
    names = {made.name: kinds[made.name] for made in maps if isinstance(made, NumberMap)}
    return next((name for name, x in columns(table, names).items() if np.isinf(x).any()), None)
