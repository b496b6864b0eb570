"""Outputs in the pages: a Python block that prints is followed by a `text` block with what it printed.

    python docs/outputs.py [PAGE ...]     run the blocks of the pages and write what they print below them

`tests/test_docs.py` runs the same blocks and compares; numbers may differ by a few per cent between machines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n?^```text\n(?P<output>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")


def run(text: str, name: str) -> Iterator[tuple[re.Match[str], str]]:
    """The Python blocks of a page, run one after the other in the current folder, and what each printed."""
    names = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block["code"], name, "exec"), names)
        yield block, "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


def differs(found: str, written: str, tolerance: float = 0.03) -> bool:
    """Whether two outputs differ in words, or in numbers by more than rounding."""
    numbers = zip(NUMBER.findall(found), NUMBER.findall(written), strict=False)
    close = (abs(float(a) - float(b)) <= tolerance * max(1.0, abs(float(b))) for a, b in numbers)
    words = [NUMBER.sub("#", re.sub(r"\s+", " ", text)) for text in (found, written)]
    return words[0] != words[1] or not all(close)


def filled(text: str, name: str) -> str:
    """The page with its outputs."""
    parts, end = [], 0
    for block, output in run(text, name):
        shown = f"\n```text\n{output}```\n" if output else ""
        parts += [text[end : block.start()], f"```python\n{block['code']}```\n{shown}"]
        end = block.end()
    return "".join([*parts, text[end:]])


def main(pages: list[str]) -> None:
    here = Path(__file__).resolve().parent
    for page in [Path(page).resolve() for page in pages] or sorted(here.glob("*.md")):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = page.read_text()
            new = filled(text, page.name)
        if new != text:
            page.write_text(new)
            print(os.path.relpath(page))


if __name__ == "__main__":
    main(sys.argv[1:])
