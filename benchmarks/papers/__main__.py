"""Every table of the papers, one after the other: python -m benchmarks.papers --data DIR [--quick] [--only NAME ...]

What a script prints goes to FOLDER/NAME.md (build/papers by default). A table that is there already is left alone, so
that an interrupted run goes on where it was; --again makes all of them anew. --quick takes few repetitions: it tells
whether everything runs, and its figures are not for quoting.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

# name: (module, arguments, arguments of a quick run)
TABLES: dict[str, tuple[str, list[str], list[str]]] = {
    "letor": ("letor", [], ["--sets", "letor2-ohsumed"]),
    "parses": ("parses", [], ["--parts", "linear"]),
    "transductive": ("transductive", [], []),
    "corankrls": ("corankrls_table", [], ["--quick"]),
    "corankrls-views": ("corankrls_genia", ["--parts", "paper", "curve", "columns"], ["--parts", "columns"]),
    "games": ("conditional_games", [], ["--parts", "table", "--repetitions", "3"]),
    "newsgroups": ("conditional_newsgroups", ["--draws", "10"], ["--parts", "table", "--every", "4"]),
    "usps": ("conditional_usps", [], ["--parts", "usps", "--draws", "1"]),
    "drugs": ("conditional_drugs", [], ["--sets", "nr", "--repeats", "1"]),
    "jester": ("pursuit_jester", [], ["--repetitions", "1", "--users", "20", "--hold-out", "8"]),
    "movielens": ("pursuit_movielens", [], ["--repetitions", "1", "--users", "20", "--hold-out", "8"]),
    "label-ranking": ("label_ranking", [], ["--folds", "2"]),
}


def make(name: str, data: Path, folder: Path, quick: bool) -> bool:
    """Run one script; its file takes its place only when it is complete."""
    module, arguments, few = TABLES[name]
    command = [sys.executable, "-m", f"benchmarks.papers.{module}", "--data", str(data), *(few if quick else arguments)]
    start, path = time.time(), folder / f"{name}.md"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: failed after {time.time() - start:.0f} s\n{done.stderr[-2000:]}", flush=True)
        return False
    path.write_text(done.stdout, encoding="utf-8")
    print(f"{name}: {time.time() - start:.0f} s, {path}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--folder", type=Path, default=Path("build/papers"), help="where the tables go")
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--again", action="store_true", help="make tables that are there already")
    options = parser.parse_args()
    folder = options.folder / "quick" if options.quick else options.folder
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in options.only if options.again or not (folder / f"{name}.md").exists()]
    made = [make(name, options.data, folder, options.quick) for name in wanted]  # all of them, whichever fails
    return int(not all(made))


if __name__ == "__main__":
    sys.exit(main())
