"""Every table and figure of the papers: python -m benchmarks.papers --data DIR [--quick] [--only NAME ...] [--jobs 2]

What a script prints goes to FOLDER/NAME.md (build/papers by default), its pictures beside it, and the CPU time of all
scripts to FOLDER/times.md. Existing tables are not made again, so that an interrupted run resumes; --again makes all of
them again. --quick does few repetitions: it shows whether everything runs, and its figures are not for quoting. Each
script uses one thread. The results that the documentation shows are in docs/reproductions/results.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen


@dataclass(frozen=True)
class Table:
    """What a script reproduces: the paper's table, arguments (also of a quick run), data it reads, pictures."""

    what: str
    module: str
    needs: tuple[str, ...] = ()  # folders of DIR
    arguments: str = ""
    quick: str = ""
    draws: bool = False

    def command(self, data: Path, folder: Path, quick: bool) -> list[str]:
        given = f"{self.arguments} {self.quick}" if quick else self.arguments
        pictures = ["--png", str(folder)] if self.draws else []
        module = f"benchmarks.papers.{self.module}"
        return [sys.executable, "-m", module, "--data", str(data), *given.split(), *pictures]


NEWS, GENIA = ("20newsgroups",), ("parse-ranking-genia",)
DRUGS = ("davis-drug-target", "yamanishi-drug-target", "yeast-protein-network")
UNSCORED = (*GENIA, "letor4-mq2008", "mslr-web-fold1-5k", "jester", "usps", *NEWS)
FEW = "--repetitions 2 --users 10 --hold-out 8"
BOTH = "--scalings counts tf-idf --parts auto --every 4"
HIERARCHY = "--objects 300 --inner 2"
TABLES = {  # the longest first, so that two at a time end together
    "hierarchy": Table("[Pahikkala13] 3, figure 4", "conditional_hierarchy", NEWS, quick=HIERARCHY, draws=True),
    "drugs": Table("[Pahikkala13] 3", "conditional_drugs", DRUGS, "", "--sets nr --repeats 1"),
    "newsgroups": Table(
        "[Pahikkala13] 2", "conditional_newsgroups", NEWS, "--parts table --scalings counts", "--every 8"
    ),
    "scalings": Table("beyond", "conditional_newsgroups", NEWS, "--parts table --every 2", "--every 8"),
    "scalings-auto": Table("beyond", "conditional_newsgroups", NEWS, BOTH, "--every 16"),
    "scalability": Table(
        "[Pahikkala13] figure 5", "conditional_times", ("usps", *NEWS), "", "--nodes 64 --edges 2000", draws=True
    ),
    "unscored": Table(
        "beyond: where unscored rows help", "unscored", UNSCORED, "", "--draws 2 --sources independent jokes"
    ),
    "transductive": Table("[Pahikkala07]", "transductive", ("letor4-mq2008", *GENIA), "", "--draws 2 --parts alpha"),
    "stopping": Table("[Pahikkala13] figure 3", "conditional_stopping", NEWS, "", "--draws 2", draws=True),
    "usps": Table("[Pahikkala13] 2, bacteria", "conditional_usps", ("usps", *NEWS), "", "--parts usps --draws 2"),
    "ohsumed": Table("[Pahikkala07b] 1-3", "letor", ("letor2-ohsumed",), "--sets letor2-ohsumed", "--models papers"),
    "letor3": Table("beyond", "letor", ("letor3-ohsumed",), "--sets letor3-ohsumed", "--models papers"),
    "mq2008": Table("beyond", "letor", ("letor4-mq2008",), "--sets letor4-mq2008", "--models papers"),
    "trec": Table("[Pahikkala07b] 1, 4-7", "letor", ("TD2003", "TD2004"), "--sets TD2003 TD2004", "--models papers"),
    "label-ranking": Table("[Cheng09]", "label_ranking", ("label-ranking",), "", "--folds 2 --sets iris wine"),
    "games": Table("[Pahikkala13] 1, figure 2", "conditional_games", (), "", "--repetitions 2", draws=True),
    "movielens-half": Table("[Tsivtsivadze13] 4", "pursuit_movielens", ("movielens-1m",), "--parts semi", FEW),
    "movielens": Table("[Tsivtsivadze13] 3", "pursuit_movielens", ("movielens-1m",), "--parts supervised", FEW),
    "jester-half": Table("[Tsivtsivadze13] 2", "pursuit_jester", ("jester",), "--parts semi", FEW),
    "jester": Table("[Tsivtsivadze13] 1, 5", "pursuit_jester", ("jester",), "--parts supervised", FEW),
    "corankrls-curve": Table(
        "[Tsivtsivadze10] figure 1", "corankrls_curve", GENIA, "", "--repetitions 2 --parts curve", draws=True
    ),
    "parses": Table("[Pahikkala07b] 8", "parses", GENIA, "", "--parts linear"),
    "corankrls": Table("[Tsivtsivadze10] 1", "corankrls_table", GENIA, "", "--repetitions 2"),
    "matches": Table(
        "beyond", "conditional_matches", ("tennis-atp", "football-international"), "", "--sports football"
    ),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def make(name: str, data: Path, folder: Path, quick: bool) -> bool:
    """Run one script; its output file is replaced only when it is complete."""
    start, path = time.time(), folder / f"{name}.md"
    missing = [needed for needed in TABLES[name].needs if not (data / needed).is_dir()]
    if missing:
        print(f"{name}: left out, {data} has no folder {' or '.join(missing)}", flush=True)
        return True
    draft, errors = folder / f".{name}.md", folder / f".{name}.err"
    draft.write_text(heading(name, quick), encoding="utf-8")
    with draft.open("ab") as out, errors.open("wb") as err:
        environment = os.environ | dict.fromkeys(THREADS, "1")
        process = Popen(
            TABLES[name].command(data, folder, quick), stdin=DEVNULL, stdout=out, stderr=err, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu = f"{(used.ru_utime + used.ru_stime) / 60:.1f} CPU minutes"
    said = f"{cpu}, {(time.time() - start) / 60:.1f} minutes"
    if process.returncode:
        print(f"{name}: failed after {said}\n{errors.read_text(errors='replace')[-2000:]}", flush=True)
        return False
    errors.unlink()
    with draft.open("a", encoding="utf-8") as out:
        out.write(f"\n{cpu}.\n")
    draft.replace(path)
    print(f"{name}: {said}, {path}", flush=True)
    return True


def heading(name: str, quick: bool) -> str:
    """The start of a file of results: what it is, and the command that makes it."""
    command = f"python -m benchmarks.papers --data DIR --only {name}"
    return f"# {name}: {TABLES[name].what}\n\n    {command}{' --quick' * quick}\n\n"


def times(folder: Path) -> str:
    """A Markdown table of the CPU minutes of everything that was made."""
    rows, total = [], 0.0
    for name, table in TABLES.items():
        path = folder / f"{name}.md"
        found = re.findall(r"^([\d.]+) CPU minutes\.$", path.read_text(encoding="utf-8"), re.M) if path.exists() else []
        if found:
            rows.append(f"| `{name}` | {table.what} | {found[-1]} |")
            total += float(found[-1])
    head = ["# CPU minutes of every table", "", "| command | what | CPU minutes |", "|---|---|---|"]
    return "\n".join([*head, *sorted(rows), f"| all | | {total:.0f} |", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--folder", type=Path, default=Path("build/papers"), help="where the tables go")
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--again", action="store_true", help="make tables that are there already")
    parser.add_argument("--list", action="store_true", help="say what there is, and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="scripts at a time")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name}: {table.what}" for name, table in TABLES.items()))
        return 0
    folder = options.folder / "quick" if options.quick else options.folder
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in options.only if options.again or not (folder / f"{name}.md").exists()]
    with ThreadPoolExecutor(options.jobs) as pool:  # all of them, whichever fails
        made = list(pool.map(lambda name: make(name, options.data, folder, options.quick), wanted))
    (folder / "times.md").write_text(times(folder), encoding="utf-8")
    return int(not all(made))


if __name__ == "__main__":
    sys.exit(main())
