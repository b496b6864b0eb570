"""Kernels on objects that are not rows of numbers: strings and other sequences, and labelled graphs.

Each kernel counts features of an object, and k(x, z) is the inner product of the counts, which are stored sparse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..system.items import is_list_of_objects, unwrapped
from ..system.types import Matrix
from .columns import Function, Kernel

Graph = tuple[Sequence[Iterable[Hashable]], Sequence[tuple[int, int]]]


class ObjectKernel(Kernel):
    """Interface: k(x, z) = sum over features of count(x) count(z), or its cosine; a subclass defines the counts.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from rankrls import RankRLS
    >>> @dataclass
    ... class Words(ObjectKernel):
    ...     normalise: bool = False
    ...     def counts(self, text):
    ...         return {word: text.split().count(word) for word in text.split()}
    >>> RankRLS(0.1, kernel=Words()).fit(["good soup", "bad soup", "good good"], [1, 0, 2]).rank(["bad", "good"])
    array([2, 1])
    """

    normalise: bool = True

    def counts(self, item: Any) -> dict[Hashable, float]:
        """The features of an object, with how often it has each."""
        raise TypeError(f"{type(self).__name__} is abstract: define counts")

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """(m, r) the kernel between the objects of X and of Z."""
        place: dict[Hashable, int] = {}
        A = self._features(X, place)
        B = A if X is Z else self._features(Z, place)
        A.resize(A.shape[0], len(place))
        B.resize(B.shape[0], len(place))
        return np.asarray((A @ B.T).toarray())

    def features(self, X: Matrix) -> sparse.csr_array:
        """(m, n) the counts of the objects of X, with a column for each feature that occurs."""
        place: dict[Hashable, int] = {}
        A = self._features(X, place)
        A.resize(A.shape[0], len(place))
        return A

    def _features(self, X: Matrix, place: dict[Hashable, int]) -> sparse.csr_array:
        """(m, n) counts; `place` maps each feature to its column, and new features are added to it."""
        starts, columns, values = [0], [], []
        for item in unwrapped(X):
            found = self.counts(item)
            columns += [place.setdefault(feature, len(place)) for feature in found]
            norm = float(np.sqrt(sum(value**2 for value in found.values()))) if self.normalise else 1.0
            values += [value / norm for value in found.values()]
            starts.append(len(columns))
        return sparse.csr_array((values, columns, starts), shape=(len(starts) - 1, len(place)), dtype=np.float64)


@dataclass
class Spectrum(ObjectKernel):
    """k(x, z) = sum over substrings s of a given length of #(s in x) #(s in z), for strings and other sequences.

    `normalise` divides by sqrt(k(x, x) k(z, z)); an object shorter than `length` has no features.

    Examples
    --------
    >>> Spectrum(2, normalise=False)(["banana"], ["ana", "band"])
    array([[4., 3.]])
    """

    length: int = 3
    normalise: bool = True

    def counts(self, item: Any) -> dict[Hashable, float]:
        n = self.length
        parts = (item[i : i + n] for i in range(len(item) - n + 1))
        found = Counter(parts if isinstance(item, str | bytes) else map(tuple, parts))
        return {part: float(times) for part, times in found.items()}


@dataclass
class Walks(ObjectKernel):
    """k(G, H) = sum over n <= length and labels a, b of decay^n #(walks of n steps from an a to a b in G) #(... in H).

    This is the kernel of walks with equal labels at both ends [Gaertner03], with which the papers' experiments on parse
    ranking compare parses. A graph is a pair (labels, edges): the labels of each vertex, and the pairs of vertices that
    are joined, in either direction. `parse_graph` makes one from a parse. `normalise` divides by
    sqrt(k(G, G) k(H, H)).

    Examples
    --------
    >>> path = ([["a"], ["b"], ["a"]], [(0, 1), (1, 2)])
    >>> Walks(1, decay=0.5, normalise=False)([path], [path])  # 2^2 + 1^2 labels, half of 2^2 + 2^2 steps
    array([[9.]])
    """

    length: int = 2
    decay: float = 1.0
    normalise: bool = True

    def counts(self, item: Graph) -> dict[Hashable, float]:
        labels, edges = item
        names = list(dict.fromkeys(name for some in labels for name in some))
        place, m = {name: i for i, name in enumerate(names)}, len(labels)
        pairs = [(place[name], vertex) for vertex, some in enumerate(labels) for name in some]
        L = _matrix([a for a, _ in pairs], [v for _, v in pairs], (len(names), m))
        ends = np.array(edges, dtype=np.intp).reshape(-1, 2)
        E = _matrix(np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]]), (m, m))
        found: dict[Hashable, float] = {}
        walks, weight = L, 1.0  # L E^n
        for n in range(self.length + 1):
            ways = sparse.coo_array(walks @ L.T)
            found |= {
                (n, names[a], names[b]): weight * count
                for a, b, count in zip(ways.row.tolist(), ways.col.tolist(), ways.data.tolist(), strict=True)
            }
            walks, weight = walks @ E, weight * float(np.sqrt(self.decay))
        return found


def compares_objects(kernel: object, X: object) -> bool:
    """True if X holds objects that are not rows of numbers, and the kernel compares such objects."""
    if isinstance(kernel, ObjectKernel):
        return True
    function = isinstance(kernel, Function) or (callable(kernel) and not isinstance(kernel, Kernel | type))
    return function and is_list_of_objects(X)


def parse_graph(tokens: Sequence[str], tags: Sequence[str], links: Iterable[tuple[int, int, str]]) -> Graph:
    """The graph of a parse: a vertex for every token, labelled by word and tag, and one for each link between tokens.

    Parameters
    ----------
    tokens, tags : sequences of str
        The words of a sentence and their parts of speech.
    links : iterable of (int, int, str)
        The tokens that a link joins, and its label.

    Returns
    -------
    graph : (labels, edges), as `Walks` takes them

    Examples
    --------
    >>> parse_graph(["p53", "binds"], ["NN", "VBZ"], [(0, 1, "Ss")])
    ([['w:p53', 't:NN'], ['w:binds', 't:VBZ'], ['l:Ss']], [(0, 2), (1, 2)])
    """
    labels: list[Iterable[Hashable]] = [[f"w:{w}", f"t:{t}"] for w, t in zip(tokens, tags, strict=True)]
    edges = []
    for left, right, label in links:
        edges += [(int(left), len(labels)), (int(right), len(labels))]
        labels.append([f"l:{label}"])
    return labels, edges


def _matrix(rows: Any, columns: Any, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
