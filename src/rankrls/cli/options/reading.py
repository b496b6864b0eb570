"""How data files are read: the options of every command that reads data."""

from __future__ import annotations

from .parser import Parser
from .values import missing, words

FORMATS = ("letor", "csv", "tsv", "parquet")
ABOUT = """text is LETOR (svmlight) unless a file ends in .csv, .tsv or .parquet, compressed or not; a model remembers
how its training data were read, and other data are read the same way unless these options say otherwise"""


def reading(made: Parser) -> None:
    """Add the options for reading; those not given are None, so that a model can fill them in."""
    group = made.add_argument_group("reading", ABOUT)
    add = group.add_argument
    add("--input-format", choices=FORMATS, help="format of the data, whatever the name; - is LETOR text without it")
    add("--label", metavar="COLUMN", help="column of the label in a table (default label, else y)")
    add("--qid", metavar="COLUMN", help="column of the query id in a table (default qid)")
    add("--docid", metavar="COLUMN", help="column of the document id in a table (default docid, else doc_id)")
    add(
        "--columns", type=words, metavar="NAMES", help="columns that are features: a,b,c or @FILE (default: all others)"
    )
    add("--exclude", type=words, metavar="NAMES", help="columns that are not features: a,b,c or @FILE (default: none)")
    add("--group", metavar="FILE", help="sizes of queries, one per line, as in LightGBM's .query and .group files")
    add(
        "--feature-names",
        type=words,
        metavar="NAMES",
        help="feature names for LETOR text: a,b,c or @FILE with one per line (default: f1, f2, ...)",
    )
    add(
        "--missing",
        type=missing,
        metavar="VALUE",
        help="what missing values become: nan, minimum (of the query) or a number (default nan, which train encodes in "
        "tables and refuses in LETOR text)",
    )
    add("--zero-based", action="store_true", default=None, help="features of LETOR text are numbered from 0, not 1")
    add("--sparse", action="store_true", default=None, help="read LETOR text into sparse rows")
    add("--skip-bad-lines", action="store_true", help="leave out unreadable lines, and say how many")
