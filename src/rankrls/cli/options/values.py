"""Parsers for the values of options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

SIGNS = {"+1": 1, "-1": -1, "1": 1, "+": 1, "-": -1}


def auto_or(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """A value, or the word auto."""

    def value(text: str) -> Any:
        return text if text == "auto" else kind(text)

    value.__name__ = f"{kind.__name__} or auto"
    return value


def word_or_number(text: str) -> str | float:
    """A number where the text is one, else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def numbers(text: str) -> list[float]:
    """Parse 1,10,100, or 0.001:1000:7: seven values evenly spaced in the logarithm."""
    if ":" not in text:
        return [float(part) for part in text.split(",")]
    low, high, count = text.split(":")
    start, stop, n = float(low), float(high), int(count)
    if not (start > 0 and stop > 0 and n > 1):
        raise ValueError
    return [start * (stop / start) ** (i / (n - 1)) for i in range(n)]


def integers(text: str) -> list[int]:
    """1,5,10"""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError
    return found


def words(text: str) -> list[str]:
    """Parse a,b,c; commas in parentheses do not separate; @FILE has one name per line."""
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="utf-8") as file:
                return [line.strip() for line in file if line.strip()]
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text[1:]}: {error.strerror}") from None
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def signs(text: str) -> Any:
    """Parse "all" or names; with signs, as in bm25=+1,spam=-1, each name has its own.

    Examples
    --------
    >>> signs("all"), signs("bm25,title"), signs("bm25=+1,spam=-1,age")
    (True, ['bm25', 'title'], {'bm25': 1, 'spam': -1, 'age': 1})
    """
    if text == "all":
        return True
    found = words(text)
    split = [name.rpartition("=") for name in found]
    signed = [sign.strip() in SIGNS for _, _, sign in split]
    if not any(signed):
        return found
    parts = zip(found, split, signed, strict=True)
    made = [(part[0].strip(), SIGNS[part[2].strip()]) if is_signed else (name, 1) for name, part, is_signed in parts]
    for name, sign in made:
        if (name, -sign) in made:
            raise argparse.ArgumentTypeError(f"{name!r} is given both signs: choose one")
    return dict(made)


def named_numbers(text: str) -> dict[str, float]:
    """relevance=0.7,margin=0.3"""
    found = {name.strip(): float(value) for name, _, value in (word.rpartition("=") for word in words(text))}
    if "" in found:
        raise ValueError
    return found


def yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError
    return text == "yes"


def within_query(text: str) -> bool | str:
    """yes, no, or how a column is made relative to its query."""
    return text if text in ("rank", "zscore") else yes_or_no(text)


def missing(text: str) -> Any:
    """nan, minimum, or a number."""
    return text if text in ("nan", "minimum") else float(text)


def folds(text: str) -> Any:
    """leave-query-out or another exact hold-out by name, or a number of folds."""
    return text if text.startswith("leave-") else int(text)


def basis(text: str) -> Any:
    """500, or random:500, kmeans:500, cholesky:500."""
    kind, colon, size = text.rpartition(":")
    if kind not in ("", "random", "kmeans", "cholesky") or (colon and not kind):
        raise ValueError
    return (kind, int(size)) if kind else int(size)


def views(text: str) -> Any:
    """2, or groups of columns such as 1-10;11-46 or title,body;clicks."""
    if text.isdecimal():
        return int(text)
    return [group.split(",") for group in text.split(";")]
