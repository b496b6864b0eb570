"""Rankings as people ask for them: by id, without what is known already, as tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..checks import check_choice
from ..relations import names
from ..relations.names import Ids
from ..system.types import ArrayLike


class Ranking(NamedTuple):
    """Objects, best first, and their scores; a row for each conditioning object."""

    ids: np.ndarray
    scores: np.ndarray


def excluded(exclude: Any, own: Ids, ids: Ids, shape: tuple[int, int], known: Any, rows: Any) -> Any:
    """(n, m) a sparse array of what must not be recommended; `known` training edges, `rows` of whom it is asked."""
    if exclude is None:
        return None
    if isinstance(exclude, str):
        check_choice("exclude", exclude, ("known",))
        if known is None:
            raise ValueError('exclude="known" needs the training edges, which are kept for objects with ids only')
        return sparse.csr_array(known)[rows()]
    if sparse.issparse(exclude) or np.shape(exclude) == shape:
        matrix = sparse.csr_array(exclude)
        if matrix.shape != shape:
            raise ValueError(f"exclude must be of shape {shape}, a row per conditioning object: got {matrix.shape}")
        return matrix
    first, second = names.ends(exclude, None, None)
    at, columns = own.rows(first, "source"), ids.rows(second, "target")
    return sparse.csr_array((np.ones(len(at)), (at, columns)), shape=shape)


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
    """A data frame with id, score and rank, and where training told it the truth."""
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
    """A row for each edge: condition, id, score, rank within the condition and, where training told it, the truth."""
    condition, other = labels[::-1] if turned else labels
    frame = _pandas("scores of edges by id").DataFrame({"condition": condition, "id": other, "score": scores})
    frame["rank"] = frame.groupby("condition", sort=False)["score"].rank(method="first", ascending=False).astype(int)
    if known is not None:
        met = (places[0] >= 0) & (places[1] >= 0)
        frame["truth"] = _known_values(known, np.maximum(places[0], 0), np.where(met, places[1], -1))
    return frame


def are_ids(objects: ArrayLike, ids: Ids) -> bool:
    """Whether a caller names training objects rather than describing some."""
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
    """Entries of a matrix that is NaN, or not stored if sparse, where nothing is known."""
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
        raise ImportError(f"{what} come as data frames: pip install pandas, or pass features for arrays") from None
    return pandas
