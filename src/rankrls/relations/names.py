"""Objects by id: ids of rows, edges in frames, and frames put in the order of ids.

An id is the index label of a pandas frame. A frame without an index of ids (polars, Arrow, or pandas with unnamed
numbers) has ids if a text column contains the ends of all edges, if a column is called "id", or if the first column is
text. Arrays and frames with the plain index 0, 1, 2, ... have no ids, and row numbers are used instead. Ids that are
known are used everywhere, and a mismatch is an error.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.frames import as_column, as_frame, names
from ..system.lazy import cached_property
from ..system.types import ArrayLike, Matrix

LISTED = 5  # ids shown in an error
ID, DATE = "id", "date"  # names of columns
BY_ID = "ids"  # passed instead of features: objects are known only by their ids


@dataclass(frozen=True)
class Ids:
    """The ids of n objects; row numbers unless `named`."""

    labels: np.ndarray
    named: bool = False
    of_frame: bool = False  # whether they came with a frame
    column: str | None = None  # the column they came from, or the name of the index

    @classmethod
    def of(cls, objects: Any) -> Ids:
        """The ids of the rows of a pandas frame, else row numbers."""
        if not hasattr(objects, "iloc"):
            return cls(np.arange(objects.shape[0] if hasattr(objects, "shape") else len(objects)))
        labels = np.asarray(objects.index)
        if labels.dtype.kind not in "iufmMbU":
            labels = _objects(list(objects.index))
        column = objects.index.name
        return cls(labels, not is_range(labels), True, column if isinstance(column, str) else None)

    @classmethod
    def of_objects(cls, objects: ArrayLike) -> Ids:
        """The ids of a table; an `Ids` is returned unchanged."""
        return objects if isinstance(objects, Ids) else cls.of(as_frame(objects))

    @classmethod
    def distinct(cls, labels: np.ndarray) -> Ids:
        """The distinct labels, sorted, or in order of appearance if they cannot be compared."""
        try:
            found = np.unique(labels)
        except TypeError:
            found = _objects(list(dict.fromkeys(labels.tolist())))
        if labels.dtype.kind == "O" and any(item is None or item != item for item in found.tolist()):
            raise ValueError("some edges have a missing end (None or NaN): drop them")
        return cls(found, True, True)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def number(self) -> dict[Any, int]:
        """The row of each id."""
        return {label: i for i, label in enumerate(self.labels.tolist())}

    def check_unique(self, name: str) -> None:
        if len(self.number) < len(self):
            labels, counts = np.unique(self.labels.astype(str), return_counts=True)
            twice = labels[counts > 1]
            raise ValueError(
                f"the index of {name} must not repeat, but {_examples(twice)} occur{'s' if len(twice) == 1 else ''} "
                "several times: each object needs one row"
            )

    def rows(self, labels: ArrayLike, what: str) -> np.ndarray:
        """The row numbers of some ids; `what` describes them in errors."""
        values = np.asarray(as_column(labels))
        if not self.named and values.dtype.kind in "iu":
            bad = (values < 0) | (values >= len(self))
            if bad.any():
                e = int(np.argmax(bad))
                raise ValueError(f"the {what} of edge {e} is {values[e]}, but there are objects 0 to {len(self) - 1}")
            return values.astype(np.intp)
        items = values.tolist()
        found = [self.number.get(item, -1) for item in items]
        unknown = [e for e, row in enumerate(found) if row < 0]
        if unknown:
            e = unknown[0]
            hint = (
                f"ids look like {_examples(self.labels)}" if self.named
                else 'objects have no ids: make the column that holds them the index of the frame, or call it "id"'
            )  # fmt: skip
            raise ValueError(
                f"the {what} of edge {e} is {items[e]!r}, which is not the id of any of the {len(self)} objects "
                f"({len(unknown):,} {'edge' if len(unknown) == 1 else 'edges'} of {len(items):,} like this): {hint}"
            )
        return np.array(found, dtype=np.intp)

    def places(self, labels: ArrayLike) -> np.ndarray:
        """The row numbers of some ids, -1 for unknown objects."""
        return np.array([self.number.get(label, -1) for label in np.asarray(labels).tolist()], dtype=np.intp)

    def knows(self, label: object) -> bool:
        try:
            return label in self.number
        except TypeError:
            return False


def labelled(
    objects: Any, *, encoded: bool = False, features: Collection[str] = (), ends: Any = None, column: str | None = None
) -> Any:
    """A frame with its column of ids as the index, if it has one; anything else unchanged.

    The column of ids is `column` if a model knows it, a text column that contains all `ends` of edges, one called
    "id", or the first if it is text. A table that is `encoded` may have text as a feature, so its first column does
    not count. `features` are never ids.
    """
    frame = as_frame(objects)
    columns = [name for name in names(frame) if name not in features]
    if len(columns) < 1 or len(names(frame)) < 2 or (hasattr(frame, "iloc") and not _is_plain(frame.index)):
        return objects
    called = [name for name in columns if name == column]
    called = called or [name for name in columns if ends is not None and _contains_ends(frame[name], ends)]
    called = called or [name for name in columns if str(name).lower() == ID]
    if not called and not encoded and columns[0] == names(frame)[0] and _is_text(frame[columns[0]]):
        called = columns[:1]
    if not called:
        return objects
    if hasattr(frame, "iloc"):
        return frame.set_index(called[0])
    try:
        import pandas
    except ImportError:
        raise ImportError(f"reading the ids in column {called[0]!r} needs pandas: pip install pandas") from None
    ids = pandas.Index(np.asarray(frame[called[0]]), name=called[0])
    return pandas.DataFrame({name: np.asarray(frame[name]) for name in names(frame) if name != called[0]}, index=ids)


def _contains_ends(column: Any, ends: np.ndarray) -> bool:
    """True if a text column has a row for each end of the edges, and no duplicates."""
    if not _is_text(column):
        return False
    own = np.asarray(column).tolist()
    known = set(own)
    return len(known) == len(own) and known.issuperset(ends.tolist())


def _is_plain(index: Any) -> bool:
    """True if a pandas index is only row numbers, possibly of a part of a longer table."""
    return index.name is None and np.asarray(index).dtype.kind in "iu"


def _is_text(column: Any) -> bool:
    values = np.asarray(column)
    return values.dtype.kind == "U" or (
        values.dtype.kind == "O" and len(values) > 0 and all(isinstance(v, str) for v in values)
    )


def is_range(labels: np.ndarray) -> bool:
    """True if labels are 0, 1, 2, ..."""
    return labels.dtype.kind in "iu" and np.array_equal(labels, np.arange(len(labels)))


def _objects(items: list[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _examples(labels: Any) -> str:
    shown = ", ".join(map(repr, (labels.tolist() if isinstance(labels, np.ndarray) else list(labels))[:LISTED]))
    return shown + (", ..." if len(labels) > LISTED else "")


def in_order(of: str, labels: list[Any], ids: Ids, whose: str) -> np.ndarray | None:
    """The positions of `ids` among the labels of another frame; None if there is nothing to reorder."""
    given = _plain(labels)
    if not ids.of_frame or (not ids.named and is_range(given)):
        return None
    place = {label: i for i, label in enumerate(given.tolist())}
    if len(place) < len(given):
        raise ValueError(f"the {of} of Y must not repeat: name each object once")
    missing = [label for label in ids.labels.tolist() if label not in place]
    extra = [label for label in given.tolist() if label not in ids.number]
    if (missing or extra) and is_range(given):
        return None  # the labels are only row numbers
    if missing or extra:
        parts = (
            [f"{len(missing)} objects of {whose} are not among the {of} of Y ({_examples(missing)})"] if missing else []
        )
        parts += [f"{len(extra)} {of} of Y are not objects of {whose} ({_examples(extra)})"] if extra else []
        raise ValueError(
            "; ".join(parts)
            + f": give Y the same labels as {whose}, or pass arrays if rows and columns are in the same order"
        )
    return np.array([place[label] for label in ids.labels.tolist()], dtype=np.intp)


def aligned(Y: Any, source: Ids, target: Ids, names_: tuple[str, str]) -> Any:
    """Y with rows and columns in the order of the objects, if it is a frame with labels."""
    Y = labelled(Y) if source.named else Y
    if not hasattr(Y, "iloc"):
        return as_frame(Y)
    rows = in_order("row labels", list(Y.index), source, names_[0])
    columns = in_order("column labels", list(Y.columns), target, names_[1])
    if rows is None and columns is None and names_[0] == names_[1]:
        _check_one_order(list(Y.index), list(Y.columns), names_[0])
    if rows is not None:
        Y = Y.iloc[rows]
    return Y if columns is None else Y.iloc[:, columns]


def _check_one_order(rows: list[Any], columns: list[Any], name: str) -> None:
    """Raise an error if Y, of one kind of objects without labels, lists them in two orders."""
    if rows != columns and len(rows) == len(columns) and set(rows) == set(columns):
        raise ValueError(
            f"rows and columns of Y are the same objects in different orders, and {name} has no labels to tell which "
            f"order is its own: give {name} the labels as its index, or put the columns of Y in the order of its rows"
        )


def similarities(K: Any, known: object, name: str) -> Any:
    """A frame of similarities with its columns in the order of the training objects, matched by label."""
    if not hasattr(K, "iloc") or known is None:
        return K
    columns = list(K.columns)
    place = {label: i for i, label in enumerate(columns)}
    wanted = np.asarray(known).tolist()
    if wanted == columns or (is_range(np.asarray(columns)) and len(columns) == len(wanted)):
        return K
    missing = [label for label in wanted if label not in place]
    if missing:
        raise ValueError(
            f"the similarities {name} have no column for {len(missing)} of the training objects "
            f"({_examples(missing)}): name columns after the objects they compare with"
        )
    return K.iloc[:, [place[label] for label in wanted]]


def column(frame: Any, name: Any, argument: str) -> np.ndarray:
    """A column of an edge list, by name; `argument` is the parameter that names it."""
    if not isinstance(name, str) and (np.ndim(name) > 0 or name is None):
        return np.asarray(as_column(name))
    have = names(frame)
    if name not in have:
        shown = ", ".join(map(str, have[:20])) or "no columns with names: pass a data frame"
        raise ValueError(f"{argument}={name!r} is not a column of the edges, which have {shown}")
    return np.asarray(frame[name])


def date_column(edges: Any, date: Any) -> Any:
    """The dates given or, if `date` is None, the column called "date", or else the only column of dates."""
    frame = as_frame(edges)
    if date is not None or not names(frame):
        return date
    called = [name for name in names(frame) if str(name).lower() == DATE]
    called = called or [name for name in names(frame) if np.asarray(frame[name]).dtype.kind == "M"]
    return called[0] if len(called) == 1 else None


def ends(edges: Any, source: object, target: object) -> tuple[Any, Any]:
    """Both ends of edges: columns of a frame by name, or the two columns of an array."""
    frame = as_frame(edges)
    if source is not None or target is not None:
        if source is None or target is None:
            raise ValueError(f"name both ends of an edge: got source={source!r}, target={target!r}")
        return column(frame, source, "source"), column(frame, target, "target")
    have = names(frame)
    if have:
        if len(have) != 2:
            likely = [str(name) for name in have if DATE not in str(name).lower()][:2]
            one, other = likely if len(likely) == 2 else ("a", "b")
            raise ValueError(
                f"edges have {len(have)} columns ({', '.join(map(str, have[:20]))}): name the two ends, as in "
                f"fit_edges(X, edges, source={one!r}, target={other!r})"
            )
        return np.asarray(frame[have[0]]), np.asarray(frame[have[1]])
    if isinstance(edges, np.ndarray):
        pairs = edges
    else:
        items = list(edges)
        if items and all(np.ndim(item) == 1 and len(item) == 2 for item in items):
            return tuple(_plain([item[side] for item in items]) for side in (0, 1))  # type: ignore[return-value]
        pairs = np.asarray(items)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"edges must be a (q, 2) array of (source, target), got shape {pairs.shape}")
    return pairs[:, 0], pairs[:, 1]


def objects_of(
    X: Matrix, Z: Matrix, edges: object, source: object, target: object, *, encoded: bool = False
) -> tuple[Any, Any]:
    """X and Z by id; None and "ids" are replaced by the ids in the edges."""
    of_x, of_z = X is None or _is_word(X, BY_ID), _is_word(Z, BY_ID)
    first, second = (np.asarray(end) for end in ends(edges, source, target))
    if Z is None:
        both = _joined(first, second)
        return Ids.distinct(both) if of_x else labelled(X, encoded=encoded, ends=both), None
    return (
        Ids.distinct(first) if of_x else labelled(X, encoded=encoded, ends=first),
        Ids.distinct(second) if of_z else labelled(Z, encoded=encoded, ends=second),
    )


def _is_word(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word


def _joined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    alike = first.dtype.kind == second.dtype.kind
    return np.concatenate([first, second]) if alike else _objects([*first.tolist(), *second.tolist()])


def _plain(items: list[Any]) -> np.ndarray:
    """Labels as an array that keeps their types, even if strings and numbers are mixed."""
    kinds = {type(item) for item in items}
    alike = len(kinds) == 1 or all(issubclass(kind, int | np.integer) for kind in kinds)
    return np.asarray(items) if alike and not kinds <= {tuple} else _objects(items)
