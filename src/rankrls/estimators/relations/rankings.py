"""Rankings by id as tables, and the edges to leave out of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...checks import check_choice
from ...relations import names
from ...relations.names import Ids
from ...system.frames import as_frame
from ...system.frames import names as frame_names
from ...system.types import ArrayLike


class Ranking(NamedTuple):
    """Objects, best first, and their scores; one row per conditioning object."""

    ids: np.ndarray
    scores: np.ndarray


def excluded(
    exclude: Any, own: Ids, ids: Ids, known: Any, places: tuple[np.ndarray, np.ndarray], columns: dict[str, str], *,
    turned: bool,
) -> Any:  # fmt: skip
    """(n, m) a sparse array of which of `ids` must not be recommended to the objects `own`.

    `known` are the training edges, `places` the rows and columns of own and ids there (-1 for new objects), and
    `columns` the names of both ends in a table of edges.
    """
    shape = len(own), len(ids)
    if exclude is None:
        return None
    if isinstance(exclude, str):
        check_choice("exclude", exclude, ("known",))
        if known is None:
            raise ValueError('exclude="known" needs the training edges, which are kept only for objects with ids')
        found = sparse.csr_array(known)[np.maximum(places[0], 0)][:, np.maximum(places[1], 0)].tocoo()
        at, to = found.coords
        met = (places[0][at] >= 0) & (places[1][to] >= 0)
        return sparse.csr_array((found.data[met], (at[met], to[met])), shape=shape)
    if sparse.issparse(exclude) or (np.shape(exclude) == shape and not frame_names(as_frame(exclude))):
        matrix = sparse.csr_array(exclude)
        if matrix.shape != shape:
            raise ValueError(f"exclude must be of shape {shape}, a row per conditioning object: got {matrix.shape}")
        return matrix
    ends = [columns.get(end) for end in (("target", "source") if turned else ("source", "target"))]
    named = {*frame_names(as_frame(exclude))}.issuperset(ends)
    return _listed(*names.ends(exclude, *(ends if named else (None, None))), own, ids)


def _listed(first: np.ndarray, second: np.ndarray, own: Ids, ids: Ids) -> sparse.csr_array:
    """The edges to exclude. Edges of other objects are ignored, unless all of them are."""
    at, to = own.places(first), ids.places(second)
    for found, of, labels, what in ((at, own, first, "condition"), (to, ids, second, "object")):
        if len(found) and (found < 0).all():
            of.rows(labels, what)  # raises an error that names the first unknown id
    met = (at >= 0) & (to >= 0)
    return sparse.csr_array((np.ones(int(met.sum())), (at[met], to[met])), shape=(len(own), len(ids)))


def ranking_frame(
    own: np.ndarray,
    ids: np.ndarray,
    scores: np.ndarray,
    places: np.ndarray,
    known: object,
    rows: ArrayLike,
    *,
    single: bool,
) -> Any:
    """A data frame with id, score, rank and, where known from training, the truth."""
    pandas = _pandas("rankings by id")
    n, k = ids.shape
    table = {"id": ids.ravel(), "score": scores.ravel(), "rank": np.tile(np.arange(1, k + 1), n)}
    if not single:
        table = {"condition": np.repeat(own, k), **table}
    if known is not None:
        met = np.where(np.repeat(rows, k) >= 0, places.ravel(), -1)
        table["truth"] = _known_values(known, np.maximum(np.repeat(rows, k), 0), met)
    frame = pandas.DataFrame(table)
    return frame[np.isfinite(frame["score"])].reset_index(drop=True)


def edge_frame(
    labels: tuple[np.ndarray, np.ndarray], scores: np.ndarray, known: object, places: Any, *, turned: bool
) -> Any:
    """One row per edge: condition, id, score, rank within the condition and, where known from training, the truth."""
    condition, other = labels[::-1] if turned else labels
    frame = _pandas("scores of edges by id").DataFrame({"condition": condition, "id": other, "score": scores})
    frame["rank"] = frame.groupby("condition", sort=False)["score"].rank(method="first", ascending=False).astype(int)
    if known is not None:
        met = (places[0] >= 0) & (places[1] >= 0)
        frame["truth"] = _known_values(known, np.maximum(places[0], 0), np.where(met, places[1], -1))
    return frame


def are_ids(objects: ArrayLike, ids: Ids) -> bool:
    """True if a caller names training objects by id rather than passing features."""
    if objects is None or sparse.issparse(objects) or (hasattr(objects, "iloc") and np.ndim(objects) == 2):
        return False
    if np.ndim(objects) == 0:
        return True
    if np.ndim(objects) != 1:
        return False
    kind = np.asarray(objects).dtype.kind
    return kind in "US" or (kind == "O" and isinstance(np.asarray(objects)[0], str)) or (kind in "iu" and ids.named)


def known_rows(ids: Ids, labels: list[Any]) -> np.ndarray:
    unknown = [label for label in labels if not ids.knows(label)]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not the id of a training object: ids look like "
            f"{', '.join(map(repr, ids.labels[:3].tolist()))}; pass the features of new objects instead"
        )
    return np.array([ids.number[label] for label in labels], dtype=np.intp)


def _known_values(known: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Entries of a matrix that is NaN, or not stored if sparse, where unknown."""
    safe = np.maximum(columns, 0)
    if not sparse.issparse(known):
        return np.where(columns >= 0, np.asarray(known)[rows, safe], np.nan)
    known = sparse.csr_array(known)
    stored = sparse.csr_array((np.ones(known.nnz), known.indices, known.indptr), shape=known.shape)
    return np.where((columns >= 0) & (np.asarray(stored[rows, safe]) > 0), np.asarray(known[rows, safe]), np.nan)


def by_id(ids: np.ndarray, rating: np.ndarray, std: np.ndarray | None) -> Any:
    try:
        pandas = _pandas("ratings by id")
    except ImportError:
        return rating if std is None else (rating, std)
    if std is None:
        return pandas.Series(rating, index=ids, name="rating").sort_values(ascending=False, kind="stable")
    return pandas.DataFrame({"rating": rating, "std": std}, index=ids).sort_values(
        "rating", ascending=False, kind="stable"
    )


def _pandas(what: str) -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError(
            f"{what} are returned as data frames: pip install pandas, or pass features to get arrays"
        ) from None
    return pandas
