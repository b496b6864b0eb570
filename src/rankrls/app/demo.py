"""An example to try the workbench on: a shop's search log with product titles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..datasets import make_search
from .documents import DocumentTable, documents

_KINDS = {  # what is searched for, and words that describe it
    "hiking boots": ("leather", "waterproof", "lightweight", "wide", "insulated", "ankle-high"),
    "desk lamp": ("LED", "dimmable", "brass", "clamp-on", "USB", "foldable"),
    "espresso machine": ("manual", "compact", "dual boiler", "15 bar", "stainless", "with grinder"),
    "rain jacket": ("packable", "hooded", "breathable", "reflective", "long", "two-layer"),
    "office chair": ("ergonomic", "mesh", "high-back", "swivel", "armless", "oak"),
    "running shoes": ("trail", "cushioned", "carbon plate", "stability", "minimal", "wide"),
    "wool blanket": ("merino", "checked", "king size", "washable", "fringed", "undyed"),
    "cast iron pan": ("26 cm", "pre-seasoned", "enamelled", "with lid", "grill", "deep"),
    "bike helmet": ("urban", "MIPS", "kids", "with light", "aero", "foldable"),
    "noise cancelling headphones": ("wireless", "over-ear", "in-ear", "foldable", "wired", "kids"),
    "tent": ("two-person", "four-season", "ultralight", "family", "tunnel", "pop-up"),
    "chef knife": ("20 cm", "carbon steel", "Damascus", "serrated", "with guard", "forged"),
}
_OTHERS = ("gift card", "care kit", "spare part", "storage bag", "replacement strap", "travel case", "cleaning spray")


def demo() -> DocumentTable:
    """120 queries of a shop with graded products, the same every time.

    Examples
    --------
    >>> data = demo()
    >>> len(data.queries), len(data.feature_names)
    (120, 12)
    """
    data = make_search(120, mean_documents=24, random_state=39)
    rng = np.random.default_rng(11)
    subjects = list(_KINDS)
    names: dict[str, tuple[str, str, str]] = {}
    taken: set[str] = set()
    for label in dict.fromkeys(data.qid.tolist()):
        while True:
            subject = subjects[rng.integers(len(subjects))]
            words = rng.choice(_KINDS[subject], size=rng.integers(1, 3), replace=False).tolist()
            name = " ".join([*words, subject])
            if name not in taken:
                break
        taken.add(name)
        names[label] = (name, subject, words[0])
    titles = [_title(names[q], grade, rng) for q, grade in zip(data.qid.tolist(), data.y.tolist(), strict=True)]
    qid = np.array([names[q][0] for q in data.qid.tolist()], dtype=object)
    y = data.y.copy()
    y[rng.random(len(y)) < 0.04] = np.nan  # some products that nobody has judged yet
    ids = [f"SKU-{number:05d}" for number in rng.permutation(90_000)[: len(y)] + 10_000]
    return documents(replace(data, y=y, qid=qid), doc_ids=ids, titles=titles, name="Shop search (example)")


def _title(query: tuple[str, str, str], grade: float, rng: np.random.Generator) -> str:
    """A product title that fits its query as well as the grade says."""
    _, subject, word = query
    other = str(rng.choice([w for w in _KINDS[subject] if w != word]))
    model = f"{rng.choice(['No.', 'Series', 'Model', 'Type'])} {rng.integers(2, 99)}"
    if grade >= 3:
        return f"{subject.capitalize()}, {word}, {other} · {model}"
    if grade >= 2:
        return f"{subject.capitalize()}, {other} · {model}"
    if grade >= 1:
        return f"{subject.capitalize()} {model}"
    odd = str(rng.choice(list(_KINDS))) if rng.random() < 0.4 else f"{subject} {rng.choice(_OTHERS)}"
    return f"{odd.capitalize()} · {model}"
