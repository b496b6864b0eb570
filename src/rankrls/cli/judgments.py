"""rankrls judgments FILE -o OUT"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from ..clicks import from_clicks, read_judgments
from .data import kind, table_cells
from .feedback import read_log
from .text import check_target, plural, say, target


def run(args: Namespace) -> None:
    check_target(args.output)
    if _is_log(args):
        log = read_log(args.data, args)
        judged, what = from_clicks(log, theta=args.propensities, method=args.click_method), f"{log}\n"
    elif args.propensities is not None:
        raise ValueError(f"--propensities is for click logs, but {args.data} has no column 'clicked'")
    else:
        judged, what = read_judgments(Path(args.data)), ""
    if args.grades is not None:
        judged = judged.graded(args.grades)
    as_csv = args.output == "-" or kind(args.output) == "csv"
    text = judged.to_csv() if as_csv else judged.to_qrels()
    with target(args.output) as file:
        file.write(text.encode())
    record = {"output": args.output, "judgments": len(judged), "queries": len(set(judged.query.tolist()))}
    form = "query,docid,rating" if as_csv else "qrels"
    said = f"{what}wrote {plural(len(judged), 'judgment')} of {plural(record['queries'], 'query')} to {args.output}"
    say(args, record, f"{said} ({form})", file=sys.stderr if args.output == "-" else sys.stdout)


def _is_log(args: Namespace) -> bool:
    """True if a file is a table with a column of clicks."""
    if kind(args.data) == "letor":
        with open(args.data, encoding="utf-8-sig") as file:
            head = file.readline().strip().lower().split(",")
    else:
        head = [name.lower() for name in table_cells(args.data, args)]
    return bool({"clicked", "clicks", "click"} & {name.strip() for name in head})
