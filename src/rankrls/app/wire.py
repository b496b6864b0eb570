"""Answers as bytes: JSON, or JSON with binary arrays."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LONGEST = 2000  # longer ids and titles are cut to this length


@dataclass(frozen=True)
class Answer:
    """A status, a media type and the bytes."""

    status: int
    kind: str
    content: bytes
    name: str | None = None  # file name of a download


@dataclass(frozen=True)
class AnswerPart:
    """A JSON object and its arrays."""

    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


def as_json(value: object, status: int = 200) -> Answer:
    """A JSON answer, with null for numbers that are not finite."""
    return Answer(status, "application/json", _text(value).encode())


def bundle(part: AnswerPart) -> Answer:
    """JSON and arrays in one answer: length of the header, header, then each array at a multiple of eight bytes."""
    listed, parts, offset = [], [], 0
    for name, array in part.arrays.items():
        array = np.ascontiguousarray(array)
        listed.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
        content = array.tobytes()
        parts.append(content + b"\0" * (-len(content) % 8))
        offset += len(parts[-1])
    text = _text({**part.header, "arrays": listed}).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return Answer(200, "application/octet-stream", struct.pack("<I", len(text)) + text + b"".join(parts))


def joined(parts: Mapping[str, AnswerPart]) -> AnswerPart:
    """Several parts as one: an array named "list.score" belongs to the object `list` of the header."""
    arrays = {f"{key}.{name}": array for key, part in parts.items() for name, array in part.arrays.items()}
    return AnswerPart({key: part.header for key, part in parts.items()}, arrays)


def cut(text: str) -> str:
    """Text cut to the longest length that is sent."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _text(value: object) -> str:
    """JSON; values are checked one by one only if some are not finite."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, int | str) else str(value)
