"""Folds of relations: which edges, rows or columns are left out together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..system.seeds import seed_of
from ..system.types import MatrixLike


@dataclass(frozen=True)
class Part:
    """Some edges of a relation Y.

    Attributes
    ----------
    rows, columns : ndarray of int
        The objects at the two ends.
    edges : ndarray of bool or None
        None if every edge between the rows and columns belongs to the part; otherwise whether each entry of Y (each
        stored entry if Y is sparse) does.

    Examples
    --------
    >>> import numpy as np
    >>> Part(np.array([0, 2]), np.array([1])).of(np.arange(6.0).reshape(3, 2))
    array([[1.],
           [5.]])
    """

    rows: np.ndarray
    columns: np.ndarray
    edges: np.ndarray | None = None

    def of(self, Y: MatrixLike) -> Any:
        """The relation between these rows and columns; edges outside the part are NaN (not stored if sparse)."""
        if not sparse.issparse(Y):
            Y = np.asarray(Y, dtype=np.float64)
            part = Y[np.ix_(self.rows, self.columns)]
            return part if self.edges is None else np.where(self.edges.reshape(part.shape), part, np.nan)
        if self.edges is None:
            return sparse.csr_array(Y)[self.rows][:, self.columns]
        Y = sparse.coo_array(Y)
        i, j = Y.coords
        return sparse.coo_array((Y.data[self.edges], (i[self.edges], j[self.edges])), shape=Y.shape).tocsr()


class RelationKFold:
    """Folds of a relation for one of four settings, which differ in what is new when the model is used.

    =======  ===================  ==============  ===============================================
    setting  conditioning object  ranked objects  an example
    =======  ===================  ==============  ===============================================
    1        known                known           missing entries of a drug-target table
    2        new                  known           known targets for a new drug
    3        known                new             new targets for a known drug
    4        new                  new             new targets for a new drug
    =======  ===================  ==============  ===============================================

    Rows of Y are the conditioning objects, columns the ranked ones. Each setting is harder than the previous ones, and
    a score in one says nothing about another: hold out what will be new.

    Parameters
    ----------
    setting : {1, 2, 3, 4}
        What is held out: edges, rows, columns, or rows and columns at once (fold i of the rows with fold i of the
        columns; training edges are those between the remaining objects).
    n_splits : int, default=5
        Number of folds.
    same_objects : bool, default=False
        Whether rows and columns are the same objects. Setting 4 then holds out an object in both roles, and setting 1
        an edge with its mirror image, which would give it away if the relation is symmetric or reciprocal.
    random_state : int, default=0
        Seed of the shuffle.
    mirrored : bool, default=False
        For symmetric and reciprocal relations, where an edge determines its mirror image: settings 2 and 3 then hold
        out an object in both roles, and test edges join a new object with a known one.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.arange(16.0).reshape(4, 4)
    >>> for train, test in RelationKFold(4, n_splits=2, same_objects=True).split(Y):
    ...     print(test.rows, test.columns, train.of(Y).shape)
    [0 1] [0 1] (2, 2)
    [2 3] [2 3] (2, 2)
    """

    def __init__(
        self, setting: int, n_splits: int = 5, *, same_objects: bool = False, random_state: int = 0,
        mirrored: bool = False,
    ):  # fmt: skip
        if setting not in (1, 2, 3, 4):
            raise ValueError(f"setting must be 1 (edges), 2 (rows), 3 (columns) or 4 (both), got {setting!r}")
        if n_splits < 2:
            raise ValueError(f"n_splits must be at least 2, got {n_splits}")
        self.setting, self.n_splits = setting, int(n_splits)
        self.same_objects, self.random_state = same_objects or mirrored, random_state
        self.mirrored = mirrored

    def __repr__(self) -> str:
        how = "mirrored=True" if self.mirrored else f"same_objects={self.same_objects}"
        return f"RelationKFold({self.setting}, n_splits={self.n_splits}, {how})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"mirrored": False, **state})  # missing in older files

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """The number of folds, for scikit-learn."""
        return self.n_splits

    def split(self, X: object, y: Any = None, groups: object = None) -> Iterator[tuple[Any, Any]]:
        """Training and test parts of a relation X, dense (NaN where unknown) or sparse.

        If scikit-learn calls it with y, the parts are sample numbers: of edges X (n_edges, 2) with values y or, in
        setting 2, of rows of X with a matrix y.
        """
        if y is None:
            yield from self._parts(X)
            return
        if np.ndim(y) == 2 or sparse.issparse(y):
            if self.setting != 2:
                raise ValueError(f"folds of rows are setting 2, not {self.setting}: use OnEdges, with edges as samples")
            of_row, _ = self._of_objects(*y.shape)
            for fold in range(self.n_splits):
                yield np.flatnonzero(of_row != fold), np.flatnonzero(of_row == fold)
            return
        ends = np.asarray(X)
        if ends.ndim != 2 or ends.shape[1] != 2:
            raise ValueError(f"edges have two ends: X must have the shape (n_edges, 2), got {ends.shape}")
        if self.same_objects:
            labels, places = np.unique(ends.ravel(), return_inverse=True)
            rows, columns = places.reshape(ends.shape).T
            shape = (len(labels), len(labels))
        else:
            (of, rows), (to, columns) = (np.unique(end, return_inverse=True) for end in ends.T)
            shape = (len(of), len(to))
        for train, test in self.split_edges(rows, columns, shape):
            yield np.flatnonzero(train), np.flatnonzero(test)

    def _parts(self, Y: Any) -> Iterator[tuple[Part, Part]]:
        """Yield training and test parts of a relation."""
        p, r = Y.shape
        if self.setting == 1:
            if sparse.issparse(Y):
                number = self._of_edges(*sparse.coo_array(Y).coords)
            else:
                known = ~np.isnan(np.asarray(Y, dtype=np.float64))
                number = np.full(p * r, -1)
                number[known.ravel()] = self._of_edges(*np.nonzero(known))
            for fold in range(self.n_splits):
                inside, outside = (Part(np.arange(p), np.arange(r), e) for e in (number != fold, number == fold))
                yield inside, outside
            return
        of_row, of_column = self._of_objects(p, r)
        for fold in range(self.n_splits):
            inside, outside = (
                Part(np.flatnonzero(keep(of_row, fold)), np.flatnonzero(keep(of_column, fold)))
                for keep in (np.not_equal, np.equal)
            )
            if self.mirrored and self.setting in (2, 3):
                ends = (outside.rows, inside.columns), (inside.rows, outside.columns)
                outside = Part(*ends[self.setting - 2])
            elif self.setting == 2:
                inside, outside = (Part(part.rows, np.arange(r)) for part in (inside, outside))
            elif self.setting == 3:
                inside, outside = (Part(np.arange(p), part.columns) for part in (inside, outside))
            yield inside, outside

    def split_edges(
        self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same for a list of edges: the numbers of training and test edges."""
        if self.setting == 1:
            number = self._of_edges(rows, columns)
            for fold in range(self.n_splits):
                yield number != fold, number == fold
            return
        of_row, of_column = (folds[ends] for folds, ends in zip(self._of_objects(*shape), (rows, columns), strict=True))
        for fold in range(self.n_splits):
            new_row, new_column = of_row == fold, of_column == fold
            if self.setting == 4:
                yield ~new_row & ~new_column, new_row & new_column
            elif self.mirrored:
                new, known = (new_row, new_column) if self.setting == 2 else (new_column, new_row)
                yield ~new & ~known, new & ~known
            else:
                number = of_row if self.setting == 2 else of_column
                yield number != fold, number == fold

    def _of_objects(self, p: int, r: int) -> tuple[np.ndarray, np.ndarray]:
        """The fold of each row and of each column."""
        if self.same_objects and p != r:
            raise ValueError(f"rows and columns cannot be the same objects: there are {p} rows and {r} columns")
        few = {2: p, 3: r, 4: min(p, r)}[self.setting]
        if self.n_splits > few:
            raise ValueError(f"setting {self.setting} cannot hold out {self.n_splits} folds of {few} objects")
        rng = np.random.default_rng(seed_of(self.random_state))
        rows = rng.permutation(p) % self.n_splits
        return rows, rows if self.same_objects else rng.permutation(r) % self.n_splits

    def _of_edges(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The fold of each edge; repeated edges, and mirrored edges of the same objects, share a fold."""
        if self.same_objects:
            rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
        key = rows.astype(np.int64) * (int(columns.max(initial=0)) + 1) + columns
        distinct, place = np.unique(key, return_inverse=True)
        if self.n_splits > len(distinct):
            raise ValueError(f"setting 1 cannot hold out {self.n_splits} folds of {len(distinct)} edges")
        return (np.random.default_rng(seed_of(self.random_state)).permutation(len(distinct)) % self.n_splits)[place]


class PastFirst(RelationKFold):
    """Folds in the order of time: each piece is held out, with everything before it for training.

    Parameters
    ----------
    time : array-like of shape (n_edges,)
        The time of each edge; edges of the same time stay together.
    n_splits : int, default=5
        Number of pieces to hold out; the first piece is only trained on.

    Examples
    --------
    >>> for train, test in PastFirst([2022, 2019, 2020, 2021, 2021, 2019], n_splits=2).split_edges(None, None, None):
    ...     print(np.flatnonzero(train), np.flatnonzero(test))
    [1 5] [2]
    [1 2 5] [0 3 4]
    """

    def __init__(self, time: Any, n_splits: int = 5):
        super().__init__(1, n_splits)
        values = np.asarray(time)
        moments = np.sort(values, kind="stable")
        at = [i * len(values) // (n_splits + 1) for i in range(1, n_splits + 1)]
        self.piece = np.searchsorted(np.unique(moments[at]), values, side="right")

    def split_edges(self, rows: Any, columns: Any, shape: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The numbers of training and test edges."""
        for piece in range(1, int(self.piece.max(initial=0)) + 1):
            yield self.piece < piece, self.piece == piece
