"""The record that readers and generators return."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

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
