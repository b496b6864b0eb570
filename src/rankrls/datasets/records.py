"""The records that readers, generators and fetchers return."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.lazy import cached_property

_DOC_ID = re.compile(r"\s*docid\s*=\s*(\S+)")
_WORD = re.compile(r"\s*(\S+)")


@dataclass(frozen=True)
class RankingData:
    """Rows of a ranking problem.

    Attributes
    ----------
    X : ndarray or sparse array of shape (m, n)
        Features.
    y : ndarray of shape (m,)
        Relevance.
    qid : ndarray of shape (m,) or None
        Query of each row; None if the data have no query ids.
    feature_names : list of str or None
        Names of the columns of X.
    comments : ndarray of str, shape (m,), or None
        The text after the # of each line of a file.
    skipped : int
        Number of lines of a file that were left out because they could not be read.
    documents : ndarray of str, shape (m,), or None
        Document of each row, if the data have a column for it; otherwise `doc_ids` looks in the comments.

    Examples
    --------
    >>> from rankrls.datasets import make_ranking
    >>> data = make_ranking(5, random_state=0)
    >>> len(data) == len(data.y) == len(data.X)
    True
    """

    X: Any
    y: np.ndarray
    qid: Any = None
    feature_names: Any = None
    comments: Any = None
    skipped: int = 0
    documents: Any = None

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def doc_ids(self) -> np.ndarray | None:
        """(m,) the document of each row, else from comments such as "docid = GX008-86" ("" if without); or None.

        Rows without features are judgments, as Quepid exports them: their comments start with a document.

        Examples
        --------
        >>> import numpy as np
        >>> RankingData(np.eye(1), np.ones(1), comments=np.array(["docid = GX008-86 inc = 1"])).doc_ids.tolist()
        ['GX008-86']
        """
        if self.documents is not None:
            return np.asarray(self.documents, dtype=object)
        if self.comments is None:
            return None
        found = [_DOC_ID.match(comment) for comment in self.comments.tolist()]
        if not any(found) and self.X.shape[1] == 0:
            found = [_WORD.match(comment) for comment in self.comments.tolist()]
        if not any(found):
            return None
        return np.array(["" if match is None else match[1] for match in found], dtype=object)


@dataclass(frozen=True)
class Ratings:
    """Ratings of items by users.

    Attributes
    ----------
    user, item : ndarray of int, shape (n_ratings,)
        Who rated what, numbered from 0.
    rating : ndarray of shape (n_ratings,)
        The ratings.
    item_names : list of str
        One per item.
    item_features : ndarray of shape (n_items, n_features) or None
        Features of the items, if there are any.
    feature_names : list of str or None
        Their names.

    Examples
    --------
    >>> import numpy as np
    >>> Ratings(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([5.0, 3.0, 4.0]), ["Heat", "Babe"]).matrix()
    array([[ 5.,  3.],
           [nan,  4.]])
    """

    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    item_names: list[str]
    item_features: np.ndarray | None = None
    feature_names: list[str] | None = None

    def matrix(self) -> np.ndarray:
        """(n_users, n_items) ratings, NaN where missing."""
        Y = np.full((int(self.user.max()) + 1, len(self.item_names)), np.nan)
        Y[self.user, self.item] = self.rating
        return Y

    def ranking(self) -> RankingData:
        """The ranking problem of these ratings: a user is a query, and the features are those of the items."""
        if self.item_features is None:
            raise ValueError("these items have no features: build some, e.g. from the ratings of other users")
        return RankingData(self.item_features[self.item], self.rating, self.user, self.feature_names)


@dataclass(frozen=True)
class Fold:
    """A fold of a LETOR set.

    Examples
    --------
    >>> from rankrls.datasets import make_search
    >>> fold = Fold(*(make_search(n, random_state=n) for n in (60, 20, 20)))
    >>> len(fold.train) > len(fold.test)
    True
    """

    train: RankingData
    validation: RankingData
    test: RankingData


@dataclass(frozen=True)
class Documents:
    """Texts, and the group of each.

    Examples
    --------
    >>> import numpy as np
    >>> Documents(["The engine stalls.", "A sore throat."], np.array(["rec.autos", "sci.med"])).group.tolist()
    ['rec.autos', 'sci.med']
    """

    texts: list[str]
    group: np.ndarray  # (n,) names
