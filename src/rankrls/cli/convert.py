"""rankrls convert IN OUT"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from ..datasets import RankingData
from .data import kind, stored, write
from .text import check_target, plural, say


def run(args: Namespace) -> None:
    check_target(args.output)
    tally = {"rows": 0, "features": 0, "skipped": 0}

    def counted() -> Iterator[RankingData]:
        for block in stored(args.data, args):
            tally["rows"] += len(block)
            tally["features"] = int(block.X.shape[1])
            tally["skipped"] += block.skipped
            yield block

    form = kind(args.output, args.output_format)
    write(counted(), args.output, args.output_format, zero_based=bool(args.zero_based))
    if args.output != "-":
        text = f"wrote {tally['rows']:,} rows of {tally['features']:,} features to {args.output} ({form})"
        text += f"; left out {plural(tally['skipped'], 'unreadable line')}" if tally["skipped"] else ""
        say(args, {"output": args.output, "format": form, **tally}, text)
