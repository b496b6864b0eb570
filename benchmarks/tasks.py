"""Ranking tasks made of public data that are not ranking benchmarks, by fixed rules and without looking at any score.

Nothing in AutoRanker was settled on them: they were made to judge it once. They lie where `benchmarks.published` says.
"""

from __future__ import annotations

import json
import lzma
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.defaults import read_rows
from benchmarks.generated import Rows

Fold = tuple[Rows, Rows]


def ohsumed_2(data: Path, folds: int) -> list[Fold]:
    """LETOR 2: documents of OHSUMED, 25 raw features, its own folds."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data / "letor2-ohsumed/letor2-ohsumed.tar.xz") as tar:
            tar.extractall(folder, filter="data")
        found = []
        for k in range(1, folds + 1):
            names = {path.stem: path for path in (Path(folder) / f"OHSUMED/Data/Fold{k}").iterdir()}
            found.append((read_rows(names["trainingset"]), read_rows(names["testset"])))
    return found


# ---------------------------------------------------------------- parses of sentences


def parses(data: Path, folds: int) -> list[Fold]:
    """Candidate parses of a sentence; the grade is their F1 in fifths. Links, lengths and costs."""
    train, test = (_sentences(data / f"parse-ranking-genia/genia-{part}.jsonl.xz") for part in ("dev", "test"))
    kinds = Counter(kind for sentence in train for parse in sentence["parses"] for kind in set(_links(sentence, parse)))
    names = sorted(kinds, key=lambda kind: (-kinds[kind], kind))[:80]
    return [(_parses(train, names), _parses(test, names))]


def _sentences(path: Path) -> list[dict]:
    with lzma.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def _links(sentence: dict, parse: dict) -> list[str]:
    ends = [f"{sentence['pos'][left]} {sentence['pos'][right]}" for left, right, _ in parse["links"]]
    return ["".join(filter(str.isupper, label)) for *_, label in parse["links"]] + ends


def _parses(sentences: list[dict], names: list[str]) -> Rows:
    rows, grades, qid = [], [], []
    for number, sentence in enumerate(sentences):
        for parse in sentence["parses"]:
            count = Counter(_links(sentence, parse))
            length = np.array([right - left for left, right, _ in parse["links"]])
            cost = [parse["rank"], parse["dis"], parse["len"]]
            shape = [len(length), length.mean(), length.max(), (length == 1).sum()]
            rows.append([*cost, *shape, *(count[name] for name in names)])
            grades.append(min(int(5 * parse["f1"]), 4))
            qid.append(number)
    return np.array(rows, float), np.array(grades, float), np.array(qid)


# ---------------------------------------------------------------- films of a user


def films(data: Path, folds: int) -> list[Fold]:
    """MovieLens 100k: thirty films that a user rated. Genre, year, what 300 other users thought, and the user."""
    folder, rng = data / "movielens-100k", np.random.default_rng(0)
    table = pd.read_csv(folder / "u.data.xz", sep="\t", header=None, names=["user", "item", "rating", "time"])
    part = lambda name: pd.read_csv(folder / name, sep="|", header=None, encoding="latin-1", index_col=0)
    users, movies = part("u.user.xz").set_axis(["age", "gender", "work", "zip"], axis=1), part("u.item.xz")
    order = rng.permutation(users.index)
    asked = table[table["user"].isin(order[:300])].merge(users, left_on="user", right_index=True)
    told = pd.DataFrame({"year": movies[2].str.extract(r"(\d{4})$")[0].astype(float)}).join(movies.iloc[:, 4:])
    told.columns = told.columns.astype(str)
    for name, some in {"all": asked, **dict(iter(asked.groupby("gender"))), "young": asked[asked["age"] < 30]}.items():
        about = some.groupby("item")["rating"].agg(["mean", "count", "std"]).add_prefix(f"{name} ")
        told = told.join(about)
    told["person's age"] = told["woman"] = 0.0
    found = []
    for chosen in (order[300:730], order[730:]):
        rated = table[table["user"].isin(chosen)].sample(frac=1, random_state=0).groupby("user").head(30)
        rated = rated.sort_values("user", kind="stable")
        X = told.loc[rated["item"]].to_numpy()
        X[:, -2], X[:, -1] = users.loc[rated["user"], "age"], users.loc[rated["user"], "gender"] == "F"
        found.append((np.nan_to_num(X, nan=-1.0), rated["rating"].to_numpy(float) - 1, rated["user"].to_numpy()))
    return [(found[0], found[1])]


# ---------------------------------------------------------------- documents like a document


def documents(data: Path, folds: int) -> list[Fold]:
    """20 newsgroups: forty posts for a given one; grade 2 in its group, 1 in its kind of group. Similarities."""
    with np.load(data / "20newsgroups/word-counts.npz") as file:
        parts = []
        for s in ("train", "test"):
            counted = (file[f"{s}_counts"], file[f"{s}_indices"], file[f"{s}_indptr"])
            group = file[f"{s}_group"].astype(int) - 1
            parts.append((sparse.csr_matrix(counted, shape=(len(group), 61188), dtype=np.float64), group))
    first_words = {"alt": 1, "comp": 5, "misc": 1, "rec": 4, "sci": 4, "soc": 1, "talk": 4}  # of names of groups
    kind = np.repeat(np.arange(7), list(first_words.values()))
    weigh = TfidfTransformer(sublinear_tf=True).fit(parts[0][0])
    topics = TruncatedSVD(50, random_state=0).fit(weigh.transform(parts[0][0]))
    draws = zip(parts, (300, 200), (0, 1), strict=True)
    train, test = (_similar(C, group, kind, weigh, topics, count, seed) for (C, group), count, seed in draws)
    return [(train, test)]


def _similar(C, group, kind, weigh, topics, count: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    given = rng.choice(C.shape[0], count, replace=False)
    near = lambda g, of: rng.choice(np.flatnonzero(of == of[g]), 8, replace=False)
    of_kind = kind[group]
    rest = lambda g: rng.choice(np.delete(np.arange(C.shape[0]), g), 40, replace=False)
    ten = [np.unique(np.concatenate([near(g, group), near(g, of_kind), rest(g)])) for g in given]
    others = [rng.permutation(found[found != g])[:40] for g, found in zip(given, ten, strict=True)]
    a, b = np.repeat(given, [len(o) for o in others]), np.concatenate(others)
    T, B = weigh.transform(C), (C > 0).astype(float)
    Z = topics.transform(T)
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    dot = lambda M: np.asarray(M[a].multiply(M[b]).sum(axis=1)).ravel()
    words, length = B.sum(axis=1).A1, C.sum(axis=1).A1
    both = dot(B)
    columns = [
        dot(T), both, both / np.maximum(words[a] + words[b] - both, 1), dot(np.sqrt(C)), dot(C.log1p()),
        words[a], words[b], length[a], length[b], (Z[a] * Z[b]).sum(axis=1), (Z[a, :10] * Z[b, :10]).sum(axis=1),
    ]  # fmt: skip
    X = np.column_stack([*columns, np.abs(Z[a, :8] - Z[b, :8]), Z[b, :8]])
    y = (group[a] == group[b]).astype(float) + (of_kind[a] == of_kind[b])
    return X, y, np.repeat(np.arange(count), [len(o) for o in others])


TASKS = {
    "OHSUMED 2": ohsumed_2,
    "parses": parses,
    "films": films,
    "posts": documents,
}
