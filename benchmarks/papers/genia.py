"""Candidate parses of GENIA sentences, which replace BioInfer: features, the walk kernel, and draws of sentences."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from rankrls.kernels import Walks, parse_graph

REPETITIONS = 5
N_TEST, N_TRAIN = 600, 500
COLUMNS = 200  # of each kind of features, the most frequent ones
FOLDERS = {20: "parse-ranking-genia", 30: "parse-ranking-genia-30"}  # by parses of a sentence; 30 by `candidates`


@dataclass(frozen=True)
class Parses:
    """Candidate parses; the sentence is the query and F1 against the gold dependencies the score."""

    X: Any  # (m, n): link types, then parts of speech; or counts of walks
    y: np.ndarray
    qid: np.ndarray

    def take(self, rows: np.ndarray) -> Parses:
        return Parses(self.X[rows], self.y[rows], self.qid[rows])

    def of(self, sentences: np.ndarray) -> Parses:
        return self.take(np.flatnonzero(np.isin(self.qid, sentences)))

    def scored_only_in(self, sentences: np.ndarray) -> np.ndarray:
        """y, NaN in other sentences."""
        return np.where(np.isin(self.qid, sentences), self.y, np.nan)


def link_types(sentence: dict, parse: dict) -> Iterator[str]:
    """Labels of links, whole and without their subscripts, and with the distance they span."""
    for left, right, label in parse["links"]:
        kind = "".join(filter(str.isupper, label))
        yield from (f"{kind}", f"={label}", f"{kind} {min(right - left, 8)}")


def parts_of_speech(sentence: dict, parse: dict) -> Iterator[str]:
    """Parts of speech at the ends of links, alone and with the distance, and the distance."""
    for left, right, _ in parse["links"]:
        ends = f"{sentence['pos'][left]} {sentence['pos'][right]}"
        yield from (ends, f"{ends} {min(right - left, 8)}", f"{min(right - left, 15)}")


def folders(data: Path) -> dict[int, Path]:
    """The sets that exist, by the largest number of parses per sentence."""
    return {parses: data / name for parses, name in FOLDERS.items() if (data / name).is_dir()}


def sentences_of(folder: Path) -> list[dict]:
    found: list[dict] = []
    for path in sorted(folder.glob("genia-*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            found += map(json.loads, lines)
    return found


def _parses(sentences: list[dict], X: Any) -> Parses:
    lengths = [len(sentence["parses"]) for sentence in sentences]
    y = np.array([parse["f1"] for sentence in sentences for parse in sentence["parses"]])
    return Parses(X, y, np.repeat(np.arange(len(sentences)), lengths))


def read(folder: Path, columns: int = COLUMNS) -> Parses:
    """Counts of the most frequent features of both kinds, each scaled to norm 1; y is F1 against the gold parse."""
    sentences, blocks = sentences_of(folder), []
    pairs = [(sentence, parse) for sentence in sentences for parse in sentence["parses"]]
    for kind in (link_types, parts_of_speech):
        counts = CountVectorizer(analyzer=lambda pair, kind=kind: kind(*pair), max_features=columns)
        blocks.append(normalize(counts.fit_transform(pairs).astype(float)))
    return _parses(sentences, sparse.hstack(blocks).toarray())


def read_walks(folder: Path, kernel: Walks) -> Parses:
    """Counts of walks in the graph of each parse; their products are the walk kernel of the papers' experiments."""
    sentences = sentences_of(folder)
    inside = lambda sentence, link: link[0] >= 0 and link[1] < len(sentence["tokens"])
    graphs = [
        parse_graph(s["tokens"], s["pos"], [link for link in parse["links"] if inside(s, link)])
        for s in sentences
        for parse in s["parses"]
    ]
    return _parses(sentences, kernel.features(graphs))


def with_parses(data: Parses, parses: int) -> Parses:
    """The first `parses` candidates of every sentence that has as many; the sentences are numbered anew."""
    place = np.concatenate([np.arange(n) for n in np.bincount(data.qid)])
    enough = np.bincount(data.qid)[data.qid] >= parses
    kept = data.take(np.flatnonzero(enough & (place < parses)))
    return replace(kept, qid=np.unique(kept.qid, return_inverse=True)[1])


def splits(data: Parses, repetitions: int = REPETITIONS) -> Iterator[tuple[int, np.ndarray, Parses]]:
    """(number, training sentences, test parses): the same test sentences in every repetition."""
    order = np.random.default_rng(0).permutation(int(data.qid.max()) + 1)
    test, pool = data.of(order[:N_TEST]), order[N_TEST:]
    for number in range(repetitions):
        yield number, np.random.default_rng(number).permutation(pool)[:N_TRAIN], test
